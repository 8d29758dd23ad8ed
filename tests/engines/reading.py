"""Ask the rules engine about one text: shared by the engine's tests."""

import json
from collections.abc import Mapping, Sequence

from loop.core.paths import bundled
from loop.core.records import Clarification, Exemplar, Guide, Value
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import ReportReader

CUES = read_cues(bundled() / "labels")


def guide(label: str, *terms: str, **more: object) -> Guide:
    """Return a guide whose own name never matches."""
    return Guide(label=label, name=f"@{label}", definition="", terms=terms, **more)


def rule(phrase: str, value: str) -> Clarification:
    """Return a clarification."""
    return Clarification(phrase=phrase, value=Value(value))


def exemplar(evidence: str, value: str) -> Exemplar:
    """Return an exemplar."""
    return Exemplar(text=f"Seen: {evidence}.", value=Value(value), evidence=evidence)


def answers(text: str, guides: Sequence[Guide]) -> Mapping[str, dict[str, object]]:
    """Return the engine's answer for `text`, every entry as an object."""
    reader = ReportReader(guides, [one.label for one in guides], CUES)
    return entries(reader.answer(text))


def entries(answer: str) -> dict[str, dict[str, object]]:
    """Return an answer as data; plain "absent" is the object without evidence."""
    return {
        label: {"value": entry} if isinstance(entry, str) else entry
        for label, entry in json.loads(answer).items()
    }


def value_of(text: str, *terms: str, **more: object) -> str:
    """Return the value of one label with these terms."""
    return str(answers(text, [guide("x", *terms, **more)])["x"]["value"])
