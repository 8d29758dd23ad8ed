"""Labels that a file gives: what the cells of a row say."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from loop.core.errors import DataError
from loop.core.records import ValueCode

MEANINGS: Final[Mapping[str, int]] = {
    "present": ValueCode.PRESENT,
    "absent": ValueCode.ABSENT,
    "uncertain": ValueCode.UNCERTAIN,
    "missing": ValueCode.MISSING,
}
"""What a word of a label cell can be said to mean."""

# Readers without a majority decided nothing, so their label is there no more than a
# blank one. "yes" or "none" is not here: it is for the user to say what they mean.
_WORDS: Final[Mapping[str, int]] = {
    **MEANINGS,
    "1": ValueCode.PRESENT,
    "0": ValueCode.ABSENT,
    "-1": ValueCode.UNCERTAIN,
    "": ValueCode.MISSING,
    "nan": ValueCode.MISSING,
    "no_majority": ValueCode.MISSING,
}
_WHOLE = re.compile(r"([+-]?[0-9]{1,18})(?:\.0*)?")
# A cell is named in a message only if it can be no part of a clinical text.
_NAMEABLE = re.compile(
    r"[+-]?[\d.]{1,12}|yes|no|true|false|y|n|t|f|pos|neg|positive|negative|possible"
    r"|none|null|na|n/a|unknown|blank|not_coded|u"
)


class LabelCells:
    """What the label cells of a file mean.

    Without a policy: ``present``, ``absent``, ``uncertain`` and ``missing``; 1, 0 and
    -1 (or 1.0, 0.0, -1.0); and a blank cell, which is missing and never absent. Case
    and spaces do not matter. Everything else is refused.

    Parameters
    ----------
    policy
        Word of a cell to its meaning; goes before the words above. The word ``""`` is a
        blank cell.

    Raises
    ------
    DataError
        A meaning is unknown, or one word is given two.

    Examples
    --------
    >>> cells = LabelCells({"yes": "present"})
    >>> said = ("Yes", 0.0, "-1", None)
    >>> [int(cells.read(cell, "Edema", "line 2")) for cell in said]
    [1, 0, -1, -3]
    """

    def __init__(self, policy: Mapping[str, str] | None = None) -> None:
        said: dict[str, int] = {}
        for word, meaning in (policy or {}).items():
            code = MEANINGS.get(meaning.strip().casefold())
            if code is None:
                raise DataError(
                    f"label value {word[:40]!r}: {meaning[:40]!r} is no meaning. Use "
                    f"one of {', '.join(MEANINGS)}, for example yes=present."
                )
            if said.setdefault(_fold(word), code) != code:
                raise DataError(
                    f"label value {word[:40]!r} is given two meanings. Keep one."
                )
        self._codes = {**_WORDS, **said}

    def read(self, cell: object, column: str, where: str) -> int:
        """Return the code of a cell.

        Raises
        ------
        DataError
            The cell holds something that has no meaning; says how to give it one.
        """
        code = self._codes.get(_fold(cell))
        if code is not None:
            return code
        what = repr(_fold(cell)) if _NAMEABLE.fullmatch(_fold(cell)) else "a value"
        raise DataError(
            f"{where}: column {column[:60]!r} holds {what}, which is none of present, "
            "absent, uncertain (or 1, 0, -1) and not blank. Correct that cell, or say "
            "what the value means, for example --value yes=present."
        )


def _fold(cell: object) -> str:
    """Return the one spelling of a cell: 1, 1.0 and "1.0" are ``"1"``."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return (
            str(int(cell)) if math.isfinite(cell) and cell == int(cell) else repr(cell)
        )
    word = str(cell).strip().casefold()
    whole = _WHOLE.fullmatch(word)
    return str(int(whole[1])) if whole else word
