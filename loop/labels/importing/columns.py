"""Which column of a table is what, and what a label cell says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loop.core.errors import DataError, UnknownLabelError
from loop.core.records import Mark
from loop.labels.importing.source import SourceCase
from loop.labels.taxonomy import Taxonomy, fold_name

_ROLES: Mapping[str, tuple[str, ...]] = {
    "case_id": ("case_id", "case", "id", "study_id", "uid", "report_id"),
    "text": ("text", "report", "report_text", "文本", "报告"),
    "findings": ("findings", "finding", "影像所见", "检查所见", "影像表现"),
    "impression": ("impression", "conclusion", "诊断意见", "印象", "结论", "影像诊断"),
    "patient": ("patient", "patient_id", "subject_id", "subject", "患者", "病人"),
    "language": ("language", "lang"),
    "exam": ("exam", "examination", "study_description", "body_part", "检查部位"),
    "labels": ("labels",),
}
_WORDS: Mapping[str, Mark] = {
    **{mark.value: mark for mark in Mark},
    "1": Mark.PRESENT,
    "0": Mark.ABSENT,
    "-1": Mark.UNCERTAIN,
    **dict.fromkeys(("1.0", "positive", "yes", "true"), Mark.PRESENT),
    **dict.fromkeys(("0.0", "negative", "no", "false"), Mark.ABSENT),
    **dict.fromkeys(("-1.0", "possible"), Mark.UNCERTAIN),
    **dict.fromkeys(("", "nan", "none", "null", "na"), Mark.MISSING),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of one source, by what they hold."""

    roles: Mapping[str, str]
    """Role to column name: ``case_id``, ``text``, ``findings``, ..."""

    labels: Mapping[str, str]
    """Label id to column name, in taxonomy order."""

    unused: tuple[str, ...]

    def case(self, row: Mapping[str, object], where: str) -> SourceCase:
        """Return one row as a case.

        Raises
        ------
        DataError
            A cell is not text, or a label cell is no mark.
        """
        cells = {
            role: cell_text(row.get(name), name, where)
            for role, name in self.roles.items()
            if role != "labels"
        }
        both = f"{cells.get('findings', '')} {cells.get('impression', '')}"
        return SourceCase(
            where=where,
            case_id=cells["case_id"].strip(),
            text=cells.get("text", both).strip(),
            patient=cells.get("patient", ""),
            language=cells.get("language", "").strip(),
            exam=cells.get("exam", ""),
            marks={
                label: read_mark(row.get(name), name, where)
                for label, name in self.labels.items()
            },
        )


def find_columns(header: Sequence[str], taxonomy: Taxonomy, source: str) -> Columns:
    """Return what each column of `header` holds.

    Raises
    ------
    DataError
        A needed column is missing, or two columns hold the same thing.
    UnknownLabelError
        A column is almost, but not quite, a label of the taxonomy.
    """
    _refuse_repeats(header, source)
    folded = {fold_name(name): name for name in header}
    roles = {
        role: folded[fold_name(alias)]
        for role, aliases in _ROLES.items()
        for alias in reversed(aliases)
        if fold_name(alias) in folded
    }
    _require(roles, header, source)
    rest = [name for name in header if name not in roles.values()]
    found = label_columns(rest, taxonomy, source)
    unused = tuple(name for name in rest if name not in found.values())
    return Columns(roles=roles, labels=found, unused=unused)


def label_columns(
    names: Iterable[str], taxonomy: Taxonomy, source: str, *, all_of: bool = False
) -> dict[str, str]:
    """Return label id to name for the `names` that are labels, in taxonomy order.

    With `all_of`, every name must be a label.

    Raises
    ------
    UnknownLabelError
        A name is a misspelt label, or with `all_of` no label.
    DataError
        Two names are the same label.
    """
    found: dict[str, str] = {}
    for name in names:
        if taxonomy.knows(name):
            label = taxonomy.find(name).id
            if label in found:
                raise DataError(
                    f"{source}: columns {found[label]!r} and {name!r} are both label "
                    f"{label}. Remove one of them."
                )
            found[label] = name
        elif all_of or taxonomy.suggest(name, cutoff=0.85):
            _refuse_label(name, taxonomy, source)
    return {label: found[label] for label in taxonomy.ids if label in found}


def read_mark(cell: object, column: str, where: str) -> Mark:
    """Return the mark that a label cell holds; an empty cell is `Mark.MISSING`.

    An empty cell is never read as absent: nobody said so.

    Raises
    ------
    DataError
        The cell holds something else.
    """
    known = cell is None or isinstance(cell, (str, int, float))
    word = "" if cell is None else str(cell).strip().casefold() if known else "?"
    mark = _WORDS.get(word)
    if mark is None:
        raise DataError(
            f"{where}: column {column[:60]!r} holds a value that is none of present, "
            "absent, uncertain (or 1, 0, -1). Correct that cell."
        )
    return mark


def cell_text(cell: object, column: str, where: str) -> str:
    """Return a cell as text; a missing one is empty.

    Raises
    ------
    DataError
        The cell holds a list, an object or bytes.
    """
    if cell is None or (isinstance(cell, float) and cell != cell):
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, (int, float)):
        return str(cell)
    raise DataError(
        f"{where}: column {column[:60]!r} holds {type(cell).__name__}, not text. "
        "Export it as text."
    )


def _require(roles: Mapping[str, str], header: Sequence[str], source: str) -> None:
    there = ", ".join(repr(name[:40]) for name in header[:12]) or "nothing"
    if "case_id" not in roles:
        raise DataError(
            f"{source}: no column with case ids (there: {there}). Name it case_id, id, "
            "study_id, uid or report_id."
        )
    if "text" not in roles and not {"findings", "impression"} & roles.keys():
        raise DataError(
            f"{source}: no column with the text (there: {there}). Name it text or "
            "report, or give findings and impression."
        )


def _refuse_repeats(header: Sequence[str], source: str) -> None:
    for index, name in enumerate(header):
        if name in header[:index]:
            raise DataError(
                f"{source}: column {name[:60]!r} stands twice. Rename one of the two."
            )


def _refuse_label(name: str, taxonomy: Taxonomy, source: str) -> None:
    try:
        taxonomy.find(name)
    except UnknownLabelError as error:
        raise UnknownLabelError(f"{source}: {error}") from error
