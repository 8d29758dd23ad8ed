"""Takes away what models put around an answer: thinking and code fences."""

from __future__ import annotations

import re
from typing import NamedTuple

_OPEN = re.compile(r"<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*+(?:```|~~~)[ \t]*+\w*+[ \t]*+\r?$", re.MULTILINE)
_INLINE_FENCE = re.compile(r"\A\s*```(?:json)?(.*)```\s*\Z", re.DOTALL | re.IGNORECASE)


class Stripped(NamedTuple):
    """An answer without its wrapping."""

    text: str
    repairs: tuple[str, ...]


def strip_thinking(text: str) -> Stripped:
    """Return `text` without thinking blocks.

    A closing tag without an opening one ends a block that the prompt opened. A block
    that is never closed reaches to the end of the text: a draft inside thinking is not
    an answer.
    """
    kept, at = [], 0
    stray = _CLOSE.search(text)
    first = _OPEN.search(text)
    if stray and (first is None or stray.start() < first.start()):
        at = stray.end()
    found = at > 0
    while opening := _OPEN.search(text, at):
        found = True
        kept.append(text[at : opening.start()])
        closing = _CLOSE.search(text, opening.end())
        at = closing.end() if closing else len(text)
    if not found:
        return Stripped(text, ())
    return Stripped("".join((*kept, text[at:])), ("thinking removed",))


def strip_fences(text: str) -> Stripped:
    """Return `text` without the marks of Markdown code fences."""
    inline = _INLINE_FENCE.match(text)
    bare = inline[1] if inline else _FENCE.sub("", text)
    return Stripped(bare, ("code fence removed",) if bare != text else ())
