"""What importers yield; which column of a table is what, and what a label cell says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from loop.core.errors import DataError, UnknownLabelError
from loop.core.nouns import counted
from loop.core.records import Mark
from loop.core.safe_text import quoted
from loop.labels.cohort import CONTEXT, PAIR_INPUTS, REPORT_INPUTS
from loop.labels.expert_ratings import Judgements
from loop.labels.importing.encodings import check_encoding
from loop.labels.taxonomy import Taxonomy, fold_name

MAX_ID = 200
"""Characters of a case id, of a reader's or of a system's name."""

MAX_GENERATED = 10_000_000
"""Characters of a generated text; a generator that never stopped writes less."""

MAX_TEXT = 1_000_000
"""Characters; the longest radiology report is hundreds of times shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCase:
    """One case as it stands in a source."""

    where: str
    """Where it stands, for messages: ``"reports.csv, line 7"``."""

    case_id: str
    text: str = ""
    """Findings and impression; never indication or comparison. Empty for a pair."""

    pair: Mapping[str, str] = field(default_factory=dict)
    """Texts of a pair by input: reference, candidate, and where known context."""

    system: str = ""
    """Which system wrote the candidate of a pair, or empty."""

    reference_id: str = ""
    """Names the reference of a pair, or empty: then equal references are one."""

    patient: str = ""
    """Patient id as given, or empty."""

    language: str = ""
    """ISO 639-1 code as given, or empty."""

    exam: str = ""
    """Words for what was examined, or empty."""

    unusable: str = ""
    """Why the source itself says that the case is of no use, or empty."""

    marks: Mapping[str, Mark] = field(default_factory=dict)
    """Label id to mark, for sources that carry labels."""

    @property
    def texts(self) -> Mapping[str, str]:
        """Its texts by input."""
        return self.pair or {"text": self.text}

    @property
    def reports(self) -> tuple[str, ...]:
        """Its reports: one, or reference and candidate."""
        return tuple(text for name, text in self.texts.items() if name != CONTEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source that was opened: what is known before its cases are read."""

    cases: Iterable[SourceCase]
    """Read lazily; raises `DataError` where the source is wrong."""

    inputs: tuple[str, ...] = REPORT_INPUTS
    """Names of the texts of every case."""

    labels: tuple[str, ...] = ()
    """Label ids the source has columns for; empty when it has none."""

    not_coded: bool = False
    """Its labels come from coding: nothing coded is weaker than absent."""

    not_comparable: Mapping[str, str] = field(default_factory=dict)
    """Label id to why its marks say nothing of a prompt."""

    judgements: Judgements | None = None
    """What raters say of pairs, for sources that carry it."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and sha256 of the files read."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Column to what it is taken for: a role of `ROLES`, or a label id."""

    unused: tuple[str, ...] = ()
    """Columns that were not used."""

    source: str = ""
    """Origin in words, when the format knows it."""

    licence: str = ""
    citation: str = ""
    format: str = ""
    """Name of the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """How a source becomes a cohort."""

    name: str
    """Name of the new cohort."""

    role: str
    """``taxonomy``, ``dev``, ``holdout`` or ``external``."""

    format: str = "auto"
    """``auto``, or a format of `loop.labels.importing.importer.FORMATS`."""

    source: str = ""
    """Where the texts come from, in words; default: what the format knows."""

    licence: str = ""
    """What may be done with them, in words; default: what the format knows."""

    language: str = "auto"
    """ISO 639-1 code for every case, or ``auto``: by column, else by script."""

    encoding: str = "auto"
    """``auto``: UTF-8, else GBK; or a codec name."""

    id_prefix: str = ""
    """Put before every case id, for sources that number from 1."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Role to the column of a table that holds it, for names that are not known:
    ``case_id``, ``text``, ``patient``; of pairs also ``reference``, ``candidate``,
    ``system``, ``context``, ``reference_id``."""

    number_rows: bool = False
    """Number the rows of a table instead of reading ids: ``row-000001`` is the first
    after the header, whatever is left out. The same file gives the same ids."""

    drop_duplicates: bool = False
    """Leave out cases whose text, patient and labels an earlier case has exactly."""

    values: Mapping[str, str] = field(default_factory=dict)
    """Word of a label cell to what it means; see `read_meanings`."""

    labels: bool = True
    """Whether columns of labels are read; else they are as any other column."""

    part: str = ""
    """``"1/2"``: only the first of two parts, which share no patient; empty for all.
    Where the patient is unknown, no reference; and of reports, no case."""

    exclude: tuple[str, ...] = ()
    """Case ids to leave out, as they stand in the source; counted as excluded."""

    replace: bool = False
    """Replace a cohort of this name; the old one is kept in the private folder."""

    reason: str = ""
    """Why, for the ledger; default: that it was imported."""

    def __post_init__(self) -> None:
        check_encoding(self.encoding)
        if self.part:
            parse_part(self.part)
        if self.number_rows and "case_id" in self.columns:
            raise DataError(
                "rows are numbered, or a column holds their ids: give either "
                "--number-rows or --id-column."
            )
        if "text" in self.columns and {*PAIR_INPUTS} & self.columns.keys():
            raise DataError(
                "a table holds single reports or pairs: give either --text-column, or "
                "--reference-column and --candidate-column."
            )


def parse_part(words: str) -> tuple[int, int]:
    """Return which part, and of how many, ``1/2`` names.

    Raises
    ------
    DataError
        It names none.

    Examples
    --------
    >>> parse_part("2/3")
    (2, 3)
    """
    found = _PART.fullmatch(words.strip())
    if found and int(found[1]) <= int(found[2]):
        return int(found[1]), int(found[2])
    raise DataError(
        f"{quoted(words)} is no part. Write for example 1/2 for the first of two."
    )


_LANGUAGE = re.compile(r"[a-z]{2,3}")
_PART = re.compile(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})")
_SENTENCE = 5
"""Words from which an id is a sentence."""

_UNSPACED = 40
"""Characters from which one without spaces is: of scripts that put none."""


CHEXPERT = "chexpert"
"""Name of the convention of the CheXpert labeler and CheXbert."""

_NOT_MENTIONED = "=absent"
"""A blank cell is absent."""


def parse_meanings(words: Iterable[str]) -> dict[str, str]:
    """Return what words of label cells mean, from ``WORD=VALUE`` each.

    ``chexpert`` stands for what the CheXpert labeler and CheXbert write: a blank cell
    is a finding that is not mentioned, so absent; 1, 0 and -1 are as everywhere.

    Raises
    ------
    DataError
        There is no ``=``, or a word appears twice.

    Examples
    --------
    >>> parse_meanings(["ja=present", "chexpert"])
    {'ja': 'present', '': 'absent'}
    """
    meanings: dict[str, str] = {}
    for one in words:
        text = _NOT_MENTIONED if one.strip().casefold() == CHEXPERT else one
        word, sign, meaning = text.rpartition("=")
        if not sign:
            raise DataError(
                f"{quoted(text)}: write WORD=VALUE, for example yes=present, or "
                f"{CHEXPERT} for files of the CheXpert labeler and CheXbert."
            )
        if meanings.setdefault(word.strip(), meaning.strip()) != meaning.strip():
            raise DataError(f"{quoted(word)}: it is given two meanings. Give one.")
    return meanings


def refuse_sentence(case_id: str, where: str) -> None:
    """Refuse an id that is a text: ids are shown wherever a case is named.

    Raises
    ------
    DataError
        It has five words, or more than 40 characters that are not all ASCII.
    """
    if len(case_id.split()) < _SENTENCE and (
        case_id.isascii() or len(case_id) <= _UNSPACED
    ):
        return
    raise DataError(
        f"{where}: the case id is a text of {len(case_id)} characters. Name the column "
        "with the ids with --id-column, or give every case a short id."
    )


def check_id(case_id: str, where: str) -> None:
    """Refuse an id that names no case: too long, a text, or with control characters.

    Raises
    ------
    DataError
        It cannot be used.
    """
    if len(case_id) > MAX_ID or not case_id.isprintable():
        raise DataError(
            f"{where}: the case id is longer than {MAX_ID} characters or "
            "holds a control character. Give the case a short id."
        )
    refuse_sentence(case_id, where)


def language_code(given: str, where: str) -> str:
    """Return the ISO 639-1 code of a language, without its country.

    Raises
    ------
    DataError
        It is not written as a code.

    Examples
    --------
    >>> language_code("zh_CN", "reports.csv, line 2")
    'zh'
    """
    code = re.split("[-_]", given.casefold())[0]
    if _LANGUAGE.fullmatch(code) is None:
        raise DataError(
            f"{where}: {quoted(given)} is not a language code. Use ISO 639-1, for "
            "example en or zh."
        )
    return code


def check_length(text: str, where: str) -> None:
    """Refuse a text that cannot be one report.

    Raises
    ------
    DataError
        It has more than `MAX_TEXT` characters.
    """
    if len(text) > MAX_TEXT:
        raise DataError(
            f"{where}: a text of {len(text):,} characters; a report has at most "
            f"{MAX_TEXT:,}. Look for a quote that is never closed, or for several "
            "reports run together, and split them."
        )


# Names are folded before they are compared: AccessionNumber is accession_number. Of
# several columns for one role, the first listed here is used.
ROLES: Mapping[str, tuple[str, ...]] = {
    "case_id": (
        *("case_id", "case", "id", "study_id", "uid", "report_id", "exam_id"),
        *("accession_number", "accession", "accession_no", "study_uid"),
        *("study_instance_uid", "report_number", "report_no", "exam_number"),
        *("note_id", "检查号", "报告号", "检查编号", "报告编号", "检查流水号"),
        *("检查ID", "报告ID", "病例号", "病例编号", "编号", "序号"),
    ),
    "text": (
        *("text", "report", "report_text", "report_body", "full_report"),
        *("radiology_report", "full_text", "narrative", "文本", "报告"),
        *("报告内容", "报告文本", "报告正文", "检查报告", "影像报告"),
    ),
    "findings": (
        *("findings", "finding", "findings_text", "report_findings"),
        *("影像所见", "检查所见", "影像表现", "影像学所见", "影像学表现"),
        *("放射学所见", "放射学表现", "影像描述", "检查描述", "检查表现", "所见"),
    ),
    "impression": (
        *("impression", "impressions", "conclusion", "conclusions"),
        *("impression_text", "report_impression", "诊断意见", "印象", "结论"),
        *("影像诊断", "影像学诊断", "放射学诊断", "诊断印象", "诊断结论"),
        *("检查结论", "影像结论", "影像意见", "诊断"),
    ),
    "patient": (
        *("patient", "patient_id", "subject_id", "subject", "patient_no"),
        *("patient_number", "mrn", "medical_record_number", "患者", "病人"),
        *("患者ID", "病人ID", "患者编号", "病人编号", "患者号", "病人号"),
        *("病历号", "病案号", "登记号"),
    ),
    "language": ("language", "lang"),
    "exam": (
        *("exam", "examination", "study_description", "body_part"),
        *("body_part_examined", "检查部位", "检查项目", "检查名称"),
    ),
    "labels": ("labels",),
}
"""Role of a column to the names it goes by."""

PAIR_ROLES: Mapping[str, tuple[str, ...]] = {
    "reference": (
        *("reference", "reference_text", "reference_report", "references"),
        *("ground_truth", "ground_truth_report", "gt", "gt_report", "gold", "target"),
    ),
    "candidate": (
        *("candidate", "candidate_text", "candidate_report", "candidates"),
        *("prediction", "predictions", "predicted", "predicted_report", "pred"),
        *("generated", "generated_report", "generated_text", "generation"),
        *("hypothesis", "output", "model_output", "response", "completion"),
    ),
    "system": (
        *("system", "system_name", "system_id", "model", "model_name", "generator"),
    ),
    "reference_id": ("reference_id", "ref_id"),
    "context": ("context", "clinical_context"),
    "age": ("age", "patient_age"),
    "sex": ("sex", "gender", "patient_sex"),
    "indication": ("indication", "clinical_indication", "history", "clinical_history"),
}
"""Role of a column of a table of pairs to the names it goes by, besides `ROLES`."""

_CONTEXT_PARTS = ("age", "sex", "indication")
_REPORT_ROLES = ("text", "findings", "impression")

_KNOWN = {fold_name(alias) for aliases in ROLES.values() for alias in aliases}
NAMED_BY = {
    "case_id": "--id-column",
    "text": "--text-column",
    "patient": "--patient-column",
    "reference": "--reference-column",
    "candidate": "--candidate-column",
    "system": "--system-column",
    "context": "--context-column",
    "reference_id": "--reference-id-column",
}
"""Role to the option that names its column, for names that are not known."""

_COLUMNS = _KNOWN | {
    *("reference", "references", "referencetext", "referencereport", "groundtruth"),
    *("candidate", "candidates", "candidatetext", "candidatereport", "prediction"),
    *("generated", "generatedreport", "hypothesis", "system", "model", "reader"),
    *("rater", "label", "value"),
}
"""What only the name of a column says, folded: where one stands, there is a header."""

QUOTED = "evidence"
"""Last word of a column that quotes what the answer to a label rests on."""

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
    values: Mapping[str, Mark] = field(default_factory=dict)
    """What words of label cells mean, beside the usual ones."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the texts of every row."""
        if "candidate" not in self.roles:
            return REPORT_INPUTS
        known = {CONTEXT, *_CONTEXT_PARTS} & self.roles.keys()
        return (*PAIR_INPUTS, CONTEXT) if known else PAIR_INPUTS

    @property
    def taken(self) -> Mapping[str, str]:
        """Column to what it is taken for, in the order of roles and labels."""
        found: dict[str, str] = {}
        for what, name in (*self.roles.items(), *self.labels.items()):
            found[name] = f"{found[name]}, {what}" if name in found else what
        return found

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
        text = cells.get("text")
        if text is None:
            text = f"{cells.get('findings', '')} {cells.get('impression', '')}"
        return SourceCase(
            where=where,
            case_id=cells.get("case_id", "").strip(),
            text=text.strip(),
            pair=self._pair(cells) if "candidate" in cells else {},
            system=cells.get("system", "").strip(),
            reference_id=cells.get("reference_id", "").strip(),
            patient=cells.get("patient", ""),
            language=cells.get("language", "").strip(),
            exam=cells.get("exam", ""),
            marks={
                label: read_mark(row.get(name), name, where, self.values)
                for label, name in self.labels.items()
            },
        )

    def _pair(self, cells: Mapping[str, str]) -> dict[str, str]:
        """Return the inputs of a pair by their names."""
        parts = [cells.get(part, "") for part in _CONTEXT_PARTS]
        given = {CONTEXT: format_context(*parts), **cells}
        return {name: given[name].strip() for name in self.inputs}


def format_context(age: str, sex: str, indication: str) -> str:
    r"""Return what is known of a patient, one line each; empty where nothing is.

    Examples
    --------
    >>> format_context("72", "", "Cough.")
    'Age: 72\nIndication: Cough.'
    """
    known = {"Age": age.strip(), "Sex": sex.strip(), "Indication": indication.strip()}
    return "\n".join(f"{name}: {words}" for name, words in known.items() if words)


def find_columns(
    header: Sequence[str],
    taxonomy: Taxonomy,
    source: str,
    options: ImportOptions | None = None,
) -> Columns:
    """Return what each column of `header` holds.

    A column with the whole text is used instead of findings and impression. A table
    with a reference and a candidate is one of pairs, unless it has its own text
    and nobody named the two; labels in it say nothing of a pair and are not used.

    Parameters
    ----------
    options
        Which column the user says holds what, whether rows are numbered, and what
        words of label cells mean.

    Raises
    ------
    DataError
        There is no header, a needed column is missing, or two columns hold the same
        thing.
    UnknownLabelError
        A column is almost, but not quite, a label of the taxonomy.
    """
    named = options.columns if options else {}
    numbered = options is not None and options.number_rows
    _require_header(header, source, named)
    refuse_repeats(header, source)
    folded = {fold_name(name): name for name in reversed(header)}
    roles = {
        role: folded[fold_name(alias)]
        for role, aliases in {**ROLES, **PAIR_ROLES}.items()
        for alias in reversed(aliases)
        if fold_name(alias) in folded
    }
    roles = _with_named(roles, named, header, source)
    if numbered:
        roles.pop("case_id", None)
    pairs = _are_pairs(roles, named)
    roles = _only_needed(roles, pairs=pairs)
    _require(roles, header, source, numbered=numbered)
    rest = [name for name in header if name not in roles.values()]
    if pairs or not (options is None or options.labels):
        roles.pop("labels", None)
        rest = [name for name in header if name not in roles.values()]
        return Columns(roles=roles, labels={}, unused=tuple(rest))
    # "Findings", though not used, is no misspelt "No Finding".
    candidates = [name for name in rest if fold_name(name) not in _KNOWN]
    found = label_columns(candidates, taxonomy, source)
    unused = tuple(name for name in rest if name not in found.values())
    values = read_meanings(options.values if options else {})
    return Columns(roles=roles, labels=found, unused=unused, values=values)


def _are_pairs(roles: Mapping[str, str], named: Mapping[str, str]) -> bool:
    """Whether a table holds pairs of reports; a text beside them is what it is of."""
    if {*PAIR_ROLES} & named.keys():
        return True
    own = any(role in roles for role in _REPORT_ROLES)
    return not own and all(role in roles for role in PAIR_INPUTS)


def _only_needed(roles: Mapping[str, str], *, pairs: bool) -> dict[str, str]:
    """Return `roles` without those that another makes needless."""
    if pairs:
        needless = {*_REPORT_ROLES, "labels"}
        needless |= {*_CONTEXT_PARTS} if CONTEXT in roles else set()
    else:
        needless = {*PAIR_ROLES}
        needless |= {"findings", "impression"} if "text" in roles else set()
    return {role: name for role, name in roles.items() if role not in needless}


def describe_columns(taxonomy: Taxonomy) -> str:
    """Return which headers a table of cases may have, one role a paragraph.

    Case, spaces, hyphens and underscores of a header do not matter.
    """
    what = {
        "case_id": "id of the case (or --id-column; --number-rows without one)",
        "text": "the whole text (or --text-column)",
        "findings": "first part of the text, where there is no column with all of it",
        "impression": "second part of the text",
        "patient": "patient, pseudonymised (or --patient-column)",
        "language": "ISO 639-1 code of the text",
        "exam": "what was examined: other regions than the chest are left out",
        "labels": "in JSON, an object of label: value",
    }
    of_pairs = {
        "reference": "the report that a candidate is held against "
        "(or --reference-column)",
        "candidate": "the report that is judged; it may be empty "
        "(or --candidate-column)",
        "system": "system that wrote the candidate (or --system-column)",
        "reference_id": "id of the reference, where several candidates share one "
        "(or --reference-id-column); without it, equal references are one",
        "context": "what is known of the patient (or --context-column)",
        "age": "age, where there is no column with all of the context",
        "sex": "sex, likewise",
        "indication": "indication, likewise",
    }
    names = ", ".join(label.name for label in taxonomy.labels)
    labels = f"one column per label, by id, name or alias:\n  {names}"
    pairs = (
        "\nA table with a reference and a candidate, and no other text, holds pairs of "
        "reports. Its columns, besides the id, patient, language and exam above:"
    )
    single, double = _describe(ROLES, what), _describe(PAIR_ROLES, of_pairs)
    return "\n".join([*single, labels, pairs, *double]) + "\n"


def _describe(
    roles: Mapping[str, tuple[str, ...]], what: Mapping[str, str]
) -> list[str]:
    return [f"{what[role]}:\n  {', '.join(names)}" for role, names in roles.items()]


def read_meanings(values: Mapping[str, str]) -> Mapping[str, Mark]:
    """Return what words of label cells mean: present, absent, uncertain or missing.

    Raises
    ------
    DataError
        A meaning is none of these.

    Examples
    --------
    >>> {word: mark.value for word, mark in read_meanings({"Ja": "present"}).items()}
    {'ja': 'present'}
    """
    known = {
        mark.value: mark
        for mark in (Mark.PRESENT, Mark.ABSENT, Mark.UNCERTAIN, Mark.MISSING)
    }
    found: dict[str, Mark] = {}
    for word, meaning in values.items():
        mark = known.get(meaning.strip().casefold())
        if mark is None or found.setdefault(word.strip().casefold(), mark) is not mark:
            raise DataError(
                f"label value {word[:40]!r}: {meaning[:40]!r} is none of "
                f"{', '.join(known)}, or it is given two meanings. Say for example "
                "yes=present."
            )
    return found


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
                    f"{source}: columns {quoted(found[label])} and {quoted(name)} are "
                    f"both label {label}. Remove one of them."
                )
            found[label] = name
        elif all_of or _is_misspelt(name, taxonomy):
            _refuse_label(name, taxonomy, source)
    return {label: found[label] for label in taxonomy.ids if label in found}


def _is_misspelt(name: str, taxonomy: Taxonomy) -> bool:
    """Whether a column is almost a label, and no quote of what one rests on."""
    if fold_name(name).endswith(QUOTED):
        return False
    return taxonomy.suggest(name, cutoff=0.85) is not None


def read_mark(
    cell: object, column: str, where: str, values: Mapping[str, Mark] | None = None
) -> Mark:
    """Return the mark that a label cell holds; an empty cell is `Mark.MISSING`.

    An empty cell is never read as absent: nobody said so. What `values` says of a word
    goes before what it usually means.

    Raises
    ------
    DataError
        The cell holds something else.
    """
    known = cell is None or isinstance(cell, (str, int, float))
    word = "" if cell is None else str(cell).strip().casefold() if known else "?"
    said = values or {}
    mark = said.get(word)
    if mark is None and isinstance(cell, float) and cell != cell:
        # A column of numbers has no other blank.
        mark = said.get("")
    mark = mark or _WORDS.get(word)
    if mark is None:
        raise DataError(
            f"{where}: column {quoted(column)} holds a value that is none of present, "
            "absent, uncertain (or 1, 0, -1). Correct that cell, or say what the value "
            "means, for example --value ja=present."
        )
    return mark


def cell_text(cell: object, column: str, where: str) -> str:
    """Return a cell as text; a missing one is empty.

    Raises
    ------
    DataError
        The cell holds a list, an object or bytes.
    """
    if isinstance(cell, str):
        return cell
    if cell is None or (isinstance(cell, float) and cell != cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, (int, float)):
        return str(cell)
    raise DataError(
        f"{where}: column {quoted(column)} holds {type(cell).__name__}, not text. "
        "Export it as text."
    )


def _with_named(
    roles: Mapping[str, str],
    named: Mapping[str, str],
    header: Sequence[str],
    source: str,
) -> dict[str, str]:
    """Return `roles` with the columns that the user named.

    Those mean nothing else, but one column may hold both case and patient.
    """
    folded = {fold_name(name): name for name in reversed(header)}
    found = {}
    for role, wanted in named.items():
        if wanted not in header and fold_name(wanted) not in folded:
            raise DataError(
                f"{source}: no column {quoted(wanted)} (found: "
                f"{name_columns(header)}). Correct {NAMED_BY[role]}."
            )
        found[role] = wanted if wanted in header else folded[fold_name(wanted)]
    ids, taken = ("case_id", "patient"), set(found.values())
    rest = {r: name for r, name in roles.items() if r in ids or name not in taken}
    return {**rest, **found}


_PROSE = re.compile(r"\S+\s+\S+.*[.。;；]\s*$|(?:\S+\s+){7}|.{61}", re.DOTALL)
_COUNTED = re.compile(r"\W*\d[\d\W]*|\d+[-./]\d+.*")


def _require_header(
    header: Sequence[str], source: str, named: Mapping[str, str]
) -> None:
    """Refuse a first line that holds a case instead of names; its cells stay unsaid.

    That is one of whose cells none is a known name, or one that the user named, and one
    is a sentence, long, or a number.
    """
    wanted = {fold_name(name) for name in named.values()}
    if any(fold_name(name) in _KNOWN | wanted for name in header):
        return
    if any(_PROSE.search(name) or _COUNTED.fullmatch(name) for name in header):
        raise DataError(
            f"{source}: the names of the columns are missing: what stands there looks "
            "like a case. Put a line with names before it, for example case_id,text; "
            "`ranloop cohort columns` lists what is understood."
        )


def _require(
    roles: Mapping[str, str],
    header: Sequence[str],
    source: str,
    *,
    numbered: bool = False,
) -> None:
    there = name_columns(header)
    if "case_id" not in roles and not numbered:
        raise DataError(
            f"{source}: no column with case ids (found: {there}). Say which it is with "
            "--id-column, or name it case_id, study_id, accession_number or 检查号; "
            "without any id, number the rows with --number-rows."
        )
    if {*PAIR_ROLES} & roles.keys():
        _require_pair(roles, there, source)
    elif not any(role in roles for role in _REPORT_ROLES):
        raise DataError(
            f"{source}: no column with the text (found: {there}). Say which it is with "
            "--text-column, or name it text, report or 报告内容, or give findings and "
            "impression; for pairs of reports, reference and candidate."
        )


def _require_pair(roles: Mapping[str, str], there: str, source: str) -> None:
    for role in PAIR_INPUTS:
        if role not in roles:
            raise DataError(
                f"{source}: no column with the {role} of a pair (found: {there}). Say "
                f"which it is with {NAMED_BY[role]}, or name it {role}."
            )
    if roles["reference"] == roles["candidate"]:
        raise DataError(
            f"{source}: column {quoted(roles['reference'])} is named as reference and "
            "as candidate. Name two columns."
        )


def name_columns(header: Sequence[str], *, known: bool = False) -> str:
    """Return the first columns of `header` in words, for messages.

    A file without a header begins with a case: unless one of the names is known to be
    a column's, none is shown. With `known` the header was found to be one.
    """
    if not header:
        return "nothing"
    if known or any(fold_name(name) in _COLUMNS for name in header):
        return ", ".join(map(quoted, header[:12]))
    return (
        f"{counted(len(header), 'column')} without a known name; if that is a case "
        "already, put a line with the names of the columns before it"
    )


def refuse_repeats(header: Sequence[str], source: str) -> None:
    """Refuse a header in which a name appears twice.

    Raises
    ------
    DataError
        There is one.
    """
    for index, name in enumerate(header):
        if name in header[:index]:
            places = f"{header.index(name) + 1} and {index + 1}"
            raise DataError(
                f"{source}: columns {places} have the same name. Rename one of the "
                "two; if they hold a case, put a line with names before it."
            )


def _refuse_label(name: str, taxonomy: Taxonomy, source: str) -> None:
    try:
        taxonomy.find(name)
    except UnknownLabelError as error:
        raise UnknownLabelError(f"{source}: {error}") from error
