"""Text made safe to show, on a terminal and in a spreadsheet; and the CSV writer."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

_UNPRINTABLE = {
    code: f"\\x{code:02x}"
    for code in (*range(32), *range(0x7F, 0xA0))
    if chr(code) not in "\t\n"
} | {
    code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
"""Control and text-direction characters."""

_FOUND = re.compile(f"[{re.escape(''.join(map(chr, _UNPRINTABLE)))}]")


def printable(text: str) -> str:
    r"""Return `text` with control and text-direction characters spelled out.

    Examples
    --------
    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    """
    # To look is twenty times faster than to translate, and there is rarely any.
    return text.translate(_UNPRINTABLE) if _FOUND.search(text) else text


_UNSEEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u2028\u2029\u2060-\u2064\ufeff\ue000-\uf8ff]"
)
"""Characters without a shape of their own, which `printable` leaves alone."""

_BLANKS = re.compile(r"\s{81,}")


def exposed(text: str) -> str:
    r"""Return `text` of unknown origin so that all of it is seen, and nothing acts.

    Besides what `printable` spells out, that is every character without a shape. A long
    run of white space becomes a remark that says its length.

    Examples
    --------
    >>> exposed("a\u200bb"), exposed("a" + " " * 2000 + "b")
    ('a\\u200bb', 'a(2,000 characters of white space)b')
    """
    short = _BLANKS.sub(
        lambda run: f"({len(run[0]):,} characters of white space)", text
    )
    seen = _UNSEEN.sub(lambda one: f"\\u{ord(one[0]):04x}", short.replace("\r\n", "\n"))
    return printable(seen)


_LONGEST = 64
"""Characters of the longest word that `quoted` shows."""

_WORD = re.compile(rf"[A-Za-z0-9_.:@/+*~-]{{0,{_LONGEST}}}|[!-~]")
"""What ids, keys and names of columns are made of; no sentence is, in any language."""


def quoted(given: object) -> str:
    """Return a word of somebody's input for a message, unless it may be a text.

    Every message that quotes a cell, a header, a key or an id of an input goes through
    here: a column may hold reports where ids were expected. One word of ASCII letters,
    digits and ``. _ : @ / + * ~ -`` is shown in quotes and a number as it is; of
    anything else, the length.

    Examples
    --------
    >>> quoted("study_id"), quoted("Small left effusion."), quoted(["a"])
    ("'study_id'", '(20 characters, not shown)', '(a list, not shown)')
    """
    if isinstance(given, str):
        if _WORD.fullmatch(given):
            return repr(given)
        return f"({len(given):,} characters, not shown)"
    if given is None or isinstance(given, (int, float)):
        return repr(given)
    return f"(a {type(given).__name__}, not shown)"


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def shielded(text: str) -> str:
    """Return `text` with an apostrophe before what a spreadsheet would run.

    Where apostrophes stand before such a start already, one more is added, since
    `unshielded` takes one away.

    References
    ----------
    OWASP. CSV Injection.

    Examples
    --------
    >>> shielded("=1+1"), shielded("'-2"), shielded("no change")
    ("'=1+1", "''-2", 'no change')
    """
    return f"'{text}" if _runs(text) else text


def unshielded(text: str) -> str:
    """Return what `shielded` was given.

    Examples
    --------
    >>> unshielded("'=1+1"), unshielded("''-2"), unshielded("'s")
    ('=1+1', "'-2", "'s")
    """
    return text[1:] if text[:1] == "'" and _runs(text) else text


def _runs(text: str) -> bool:
    return text.lstrip(" '").startswith(_FORMULA)


def format_csv(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, end: str = "\r\n"
) -> str:
    """Return a table as CSV, its cells as they are given.

    Parameters
    ----------
    header
        The first line; none where it is empty.
    end
        End of a line: CR LF, as RFC 4180 has it; LF for files whose bytes are pinned.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator=end)
    if header:
        writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()
