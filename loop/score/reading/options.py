"""What a user may say about the files that are scored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.labels.importing.encodings import check_encoding
from loop.score.given import LabelCells

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
                f"duplicates: {self.duplicates[:40]!r} is none of "
                f"{', '.join(DUPLICATES)}. Name one of them."
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
            f"{where}: {code[:20]!r} is not a language code. Use ISO 639-1, for "
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
