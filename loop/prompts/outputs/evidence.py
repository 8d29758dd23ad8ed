"""Finds the evidence an answer quotes in the case text, and never believes it blindly.

A wrong quote or span costs the span, not the value; what happened is a repair.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from loop.core.records import Span

MAX_QUOTE = 120
"""Longest quote a model is asked for, characters.

A bound keeps a rambling model from spending its whole budget on one label. A quote that
a server cuts off here still stands in the text, so it is still found.
"""

_LONGEST = 2000
"""Longest quote searched for apart from case and spacing, characters."""


class Located(NamedTuple):
    """Where the evidence stands, and what had to be repaired."""

    spans: tuple[Span, ...]
    repair: str = ""


def locate(evidence: object, span: object, source: str) -> Located:
    """Return where an answer's evidence stands in `source`.

    Parameters
    ----------
    evidence
        The quote, if any; the empty text and null mean none.
    span
        ``[start, end]`` as the answer gives it, if any.
    source
        The case text.

    Notes
    -----
    A span is believed if it lies inside the text and, where there is a quote, holds
    exactly the quote. Otherwise the quote decides.
    """
    given = _inside(span, source)
    if evidence is None or evidence == "":
        if given or span is None:
            return Located((given,) if given else ())
        return Located((), "span is not inside the text")
    if not isinstance(evidence, str):
        return Located((), "evidence is not a text")
    if given and source[given.start : given.end] == evidence:
        return Located((given,))
    return _search(evidence, span is not None, source)


def _inside(span: object, source: str) -> Span | None:
    """Return `span` if it is two integers that enclose text of `source`."""
    if not isinstance(span, list | tuple) or len(span) != 2:
        return None
    start, end = span
    # bool is an int to isinstance and never an offset.
    if type(start) is not int or type(end) is not int:
        return None
    return Span(start, end) if 0 <= start < end <= len(source) else None


def _search(evidence: str, corrected: bool, source: str) -> Located:
    start = source.find(evidence)
    if start >= 0:
        span = Span(start, start + len(evidence))
        if source.find(evidence, start + 1) >= 0:
            return Located((span,), "evidence occurs more than once, first taken")
        return Located((span,), "span corrected from the quote" if corrected else "")
    words = evidence.split()
    if words and len(evidence) <= _LONGEST:
        pattern = r"\s+".join(map(re.escape, words))
        match = re.search(pattern, source, re.IGNORECASE)
        if match:
            return Located((Span(*match.span()),), "evidence differs in case or space")
    return Located((), "evidence is not in the text")
