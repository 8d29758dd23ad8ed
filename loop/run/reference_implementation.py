"""How the published reference implementation asks: what ours is compared with.

One call a label, and in each call the case before the guidance, so that two cases have
next to nothing in common from the start. Only the layout is theirs; the words are ours
and the clinical content comes from the guides of the version that is compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from loop.prompts.version import CallPlan, PromptVersion

SOURCE = "Ran Score reference implementation"

_SYSTEM = "You read reports of chest X-rays.\n"

_USER = """\
Finding: {{ guides[0].name }}
Report:
{{ text }}

{% for guide in guides %}
{{ guide.definition }}
{% for term in guide.terms %}
- {{ term }}
{% endfor %}
{% for exclusion in guide.exclusions %}
- not: {{ exclusion }}
{% endfor %}
{% for rule in guide.clarifications %}
- {{ rule.phrase }}: {{ rule.value }}{{ ". " ~ rule.note if rule.note else "" }}
{% endfor %}
{% for example in guide.exemplars %}
- "{{ example.text }}": {{ example.value }}. {{ example.why }}
{% endfor %}
{% endfor %}
Answer with one digit: 1 if the finding is present, else 0.
"""

ANSWER = "1"
"""Every answer of that layout is one digit."""


class PublishedFigure(NamedTuple):
    """What the published implementation was found to send for one case."""

    requests: int
    prompt_tokens: int
    """Of all requests together, roughly."""

    characters: int
    """Length of the case this was counted for."""


FIGURE = PublishedFigure(requests=20, prompt_tokens=8_100, characters=450)


def in_published_layout(version: PromptVersion) -> PromptVersion:
    """Return the guides of `version` in the layout of the published implementation."""
    user = _USER.replace(
        "{{ text }}", "\n".join(f"{{{{ {n} }}}}" for n in version.inputs)
    )
    return replace(version, system=_SYSTEM, user=user, plan=CallPlan.PER_LABEL)
