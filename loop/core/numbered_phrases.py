"""Phrases of a report as one text, a line for each with its number.

A judge of phrases is given those of reference and candidate in this form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

PRECISION: Final = "precision"
RECALL: Final = "recall"
REFERENCE_PHRASES: Final = "reference_phrases"
CANDIDATE_PHRASES: Final = "candidate_phrases"

SIDES: Final[Mapping[str, tuple[str, str]]] = {
    PRECISION: (CANDIDATE_PHRASES, REFERENCE_PHRASES),
    RECALL: (REFERENCE_PHRASES, CANDIDATE_PHRASES),
}
"""Field of a judge of phrases to the input whose phrases are held, and the one they are
held against."""

_NUMBERED = re.compile(r"\[(\d+)\] (.*)")


def number_phrases(phrases: Sequence[str]) -> str:
    r"""Return phrases as an input has them; none holds a line end.

    Examples
    --------
    >>> number_phrases(["left effusion", "no pneumothorax"])
    '[0] left effusion\n[1] no pneumothorax'
    """
    return "\n".join(f"[{number}] {one}" for number, one in enumerate(phrases))


def split_phrases(numbered: str) -> tuple[str, ...]:
    """Return the phrases that `number_phrases` wrote; none of other lines."""
    found = (_NUMBERED.fullmatch(line) for line in numbered.split("\n"))
    return tuple([one[2] for one in found if one])
