"""What the mean answer in a contract is made of, so that its tokens can be counted."""

from __future__ import annotations

from typing import Final, NamedTuple

EVIDENCE: Final = "mild prominence of the right hilum"
"""What an answer is taken to quote for one label: six words."""


class AnswerPart(NamedTuple):
    """Text that an answer holds, and how many times the mean answer does."""

    text: str
    times: float
    """Below 0 for text that another part takes the place of."""
