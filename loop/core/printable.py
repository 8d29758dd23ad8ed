"""Text from outside made safe to show: nothing in it can take over a terminal."""

from __future__ import annotations

import re

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
