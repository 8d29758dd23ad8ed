"""Reads a judge's four sections as the published parser of GREEN does, faults included.

For comparison with published scores only: it takes a count of 0 for whatever it cannot
read, so an answer that is hard to read scores as a perfect or as a worthless candidate.
`loop.prompts.outputs.green_text` reads the same answers without guessing.

References
----------
Ostmeier S, et al. GREEN. Findings of EMNLP 2024:374-390, and its published code.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SECTION = r"\[{}\]:\s*(.*?)(?:\n\s*\n|\Z)"
_SIGNIFICANT, _INSIGNIFICANT, _MATCHED = (
    re.compile(_SECTION.format(name), re.DOTALL)
    for name in (
        "Clinically Significant Errors",
        "Clinically Insignificant Errors",
        "Matched Findings",
    )
)
_LETTERS, _DIGITS = re.compile(r"\([a-f]\) .*"), re.compile(r"\([1-6]\) .*")
_COUNT = re.compile(r"(?<=: )\b\d+\b(?=\.)")
_MATCHES = re.compile(r"^\b\d+\b(?=\.)")


class OfficialCounts(NamedTuple):
    """What the published parser counts in one answer."""

    significant: tuple[int, ...]
    """By category, a to f."""

    insignificant: tuple[int, ...]
    matched: int


def read_officially(text: str) -> OfficialCounts:
    """Return the counts that the published parser finds; 0 for what it cannot read.

    A section ends at its first blank line, and a section that begins with "No" has
    none. Letters and names are read in one spelling, counts only with a full stop.
    """
    found = _MATCHED.search(text)
    counted = _MATCHES.match(found[1]) if found and found[1][:2] != "No" else None
    return OfficialCounts(
        _count_errors(_SIGNIFICANT, text),
        _count_errors(_INSIGNIFICANT, text),
        _number(counted[0]) if counted else 0,
    )


def _count_errors(section: re.Pattern[str], text: str) -> tuple[int, ...]:
    counts = [0] * 6
    found = section.search(text)
    if found is None or found[1].startswith("No"):
        return tuple(counts)
    lines, marks = _LETTERS.findall(found[1]), "abcdef"
    if not lines:
        lines, marks = _DIGITS.findall(found[1]), "123456"
    for line in sorted(lines):
        counted = _COUNT.search(line)
        if counted:
            counts[marks.index(line[1])] = _number(counted[0])
    return tuple(counts)


def _number(digits: str) -> int:
    """Return a count; of absurdly many digits the first ones, which is absurd too."""
    return int(digits[:18])
