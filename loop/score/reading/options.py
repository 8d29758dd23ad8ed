"""What a user may say of the files that are scored, and what label cells mean."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.records import ValueCode
from loop.core.safe_text import quoted
from loop.labels.importing.encodings import check_encoding

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
                    f"label value {quoted(word)}: {quoted(meaning)} is not a value. "
                    f"Use one of {', '.join(MEANINGS)}, for example yes=present."
                )
            if said.setdefault(_fold(word), code) != code:
                raise DataError(
                    f"label value {quoted(word)} is given two meanings. Keep one."
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
            f"{where}: column {quoted(column)} holds {what}, which must be present, "
            "absent, uncertain (or 1, 0, -1) or blank. Correct that cell, or say "
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


_LANGUAGE = re.compile("[a-z]{2,3}")
DUPLICATES = ("refuse", "first", "last")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How files of references and candidates are read.

    A column that is named is used in every file that has it; the other files are read
    by the names that are known, and a note says so.

    Raises
    ------
    DataError
        The encoding, the language, the policy for duplicates or one for label cells is
        unknown.
    """

    encoding: str = "auto"
    """``"auto"``: UTF-8, else GBK; or a codec name."""

    id_column: str | None = None
    """Column of the case ids; None: found by its name, for example ``study_id``."""

    text_column: str | None = None
    """Column of the texts; None: found, for example ``prediction`` or ``report``."""

    system_column: str | None = None
    """Column that names the system of a candidate; None: found, as ``system``."""

    patient_column: str | None = None
    """Column of the references with their patients; None: found, as ``patient_id``."""

    language: str = ""
    """ISO 639-1 code of every case; empty: by column, else by the text itself."""

    duplicates: str = "refuse"
    """What happens to an id with two different contents: ``"refuse"``, or the
    ``"first"`` or ``"last"`` row is used."""

    values: Mapping[str, str] = field(default_factory=dict)
    """Word of a label cell to ``present``, ``absent``, ``uncertain`` or ``missing``,
    for example ``{"yes": "present"}``; ``""`` is a blank cell."""

    def __post_init__(self) -> None:
        check_encoding(self.encoding)
        read_language(self.language, "language")
        LabelCells(self.values)
        if self.duplicates not in DUPLICATES:
            raise DataError(
                f"duplicates: {quoted(self.duplicates)} must be one of "
                f"{', '.join(DUPLICATES)}."
            )

    @property
    def chosen(self) -> dict[str, object]:
        """What is not the default, by name: each may change a score."""
        every = {one.name: getattr(self, one.name) for one in fields(self)}
        every["values"] = dict(sorted(self.values.items()))
        default = {one.name: getattr(DEFAULTS, one.name) for one in fields(self)}
        return {name: one for name, one in every.items() if one != default[name]}

    @property
    def digest(self) -> str:
        """Digest of what is not the default; empty where everything is."""
        return digest_json(self.chosen) if self.chosen else ""

    def told(self) -> tuple[str, ...]:
        """Return what is not the default in a sentence, if anything is."""
        chosen = self.chosen
        meanings = [f"{word[:40]!r} means {one}" for word, one in self.values.items()]
        chosen.pop("values", None)
        words = [
            f"{name.replace('_', ' ')} {str(one)[:60]!r}"
            for name, one in chosen.items()
        ]
        told = ", ".join([*words, *sorted(meanings)])
        return (f"As the cases were read: {told}.",) if told else ()


def read_language(code: str, where: str) -> str:
    """Return an ISO 639 code without region; empty when none is given.

    Raises
    ------
    DataError
        It is no such code.

    Examples
    --------
    >>> read_language("zh-CN", "line 2")
    'zh'
    """
    short = re.split("[-_]", code.strip().casefold())[0]
    if short and _LANGUAGE.fullmatch(short) is None:
        raise DataError(
            f"{where}: {quoted(code)} is not a language code. Use ISO 639-1, for "
            "example en or zh."
        )
    return short


_IN_PYTHON: Final = {
    "--value yes=present": "values={'yes': 'present'}",
    "--duplicates first or last": "duplicates='first' or 'last'",
    "--id-column": "id_column",
    "--text-column": "text_column",
    "--system-column": "system_column",
    "--patient-column": "patient_column",
}


def in_python(message: str) -> str:
    """Return a message that names options of the command line, naming these instead.

    Examples
    --------
    >>> in_python("Say which it is with --id-column.")
    'Say which it is with id_column (of loop.score.ReadingOptions).'
    """
    for option, name in _IN_PYTHON.items():
        message = message.replace(option, f"{name} (of loop.score.ReadingOptions)")
    return message


DEFAULTS = ReadingOptions()
"""Everything found by name; two contents of one id refused."""
