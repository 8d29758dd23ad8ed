"""Template blocks that optimizers must not touch, marked by Jinja comments.

A block begins with ``{# frozen: NAME #}`` and ends with ``{# end frozen #}``, each on
a line of its own; both lines render to nothing.
"""

from __future__ import annotations

import re

from loop.core.errors import DataError

_MARK = re.compile(r"\{#-?\s*(?:frozen:\s*(?P<name>[\w-]+)|end frozen)\s*-?#\}")


def frozen_blocks(template: str) -> dict[str, str]:
    r"""Return the frozen blocks of a template, name to source between the marks.

    Raises
    ------
    DataError
        A block is not closed, closed twice, nested, or named twice.

    Examples
    --------
    >>> frozen_blocks("{# frozen: a #}\nkeep\n{# end frozen #}\n")
    {'a': '\nkeep\n'}
    """
    blocks: dict[str, str] = {}
    name, start = "", 0
    for mark in _MARK.finditer(template):
        line = template.count("\n", 0, mark.start()) + 1
        if bool(mark["name"]) == bool(name) or mark["name"] in blocks:
            raise DataError(
                f"line {line}: frozen blocks must be closed with "
                "{# end frozen #}, not nested, and each needs its own name"
            )
        if name:
            blocks[name] = template[start : mark.start()]
        name, start = mark["name"] or "", mark.end()
    if name:
        raise DataError(f"frozen block {name!r} has no {{# end frozen #}}")
    return blocks
