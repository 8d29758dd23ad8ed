"""Two small prompt versions."""

from dataclasses import replace

import pytest

from loop.core.records import Clarification, Exemplar, Guide, Value
from loop.prompts.version import PromptVersion


@pytest.fixture
def first() -> PromptVersion:
    """Return a version with two plain guides."""
    return PromptVersion(
        name="tiny",
        number=1,
        system="Read.\n",
        user=(
            "{% for guide in guides %}\n"
            "{{ guide.label }}: {{ guide.definition }}\n"
            "{% endfor %}\n"
            "{# frozen: answer #}\n"
            'Answer {{ fields | join(", ") }}.\n'
            "{# end frozen #}\n"
            "{{ text }}\n"
        ),
        guides=(
            Guide(label="edema", name="Edema", definition="Fluid in the lung."),
            Guide(label="fracture", name="Fracture", definition="A broken bone."),
        ),
        author="Dr A. Example",
        time="2026-01-05T09:00:00Z",
        why="a start",
    )


@pytest.fixture
def second(first: PromptVersion) -> PromptVersion:
    """Return the next version, with every kind of content in one guide."""
    guide = replace(
        first.guides[0],
        terms=("wet lungs", "fluid ... lung"),
        exclusions=("soft tissue edema",),
        clarifications=(
            Clarification(phrase="hazy", value=Value.UNCERTAIN, note="Not enough."),
        ),
        exemplars=(
            Exemplar(
                text="The lungs are wet.",
                value=Value.PRESENT,
                evidence="wet",
                why="Said outright.",
            ),
        ),
        implies=("fracture",),
    )
    return replace(
        first,
        number=2,
        parent=first.digest,
        guides=(guide, first.guides[1]),
        why="terms",
        verdicts=("0a1b2c3d4e5f",),
    )
