"""Labels of reports in one call, for a notebook: texts in, a table of labels out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from loop.core.paths import WorkspacePaths
from loop.core.records import Value, ValueCode
from loop.labels.language import guess_language
from loop.release.extractors import (
    ExtractorOptions,
    choose_extractor,
    open_extractor,
)
from loop.run.label_table import STATUS, VALUE_NUMBERS, CellValues, LabelNames
from loop.score.api import choose
from loop.score.grading import find_no_finding
from loop.score.reading.options import read_language
from loop.score.records import NoFinding

NO_TEXT = "no_text"
"""Status of a report without a word: nothing was asked about it."""

_WORDS: Mapping[int, Value] = {
    ValueCode.PRESENT: Value.PRESENT,
    ValueCode.ABSENT: Value.ABSENT,
    ValueCode.UNCERTAIN: Value.UNCERTAIN,
}


def label(
    texts: Mapping[Any, str | None] | Sequence[str | None] | pd.Series[Any],
    *,
    release: str | None = None,
    extractor: str | ExtractorOptions | None = None,
    engine: str | None = None,
    workspace: WorkspacePaths | None = None,
    names: str = LabelNames.PUBLISHED,
    values: str = CellValues.WORDS,
    language: str = "",
) -> pd.DataFrame:
    """Return the labels that an extractor reads out of reports, one row a report.

    Each distinct text is asked about once; in a workspace, one that was asked before is
    not asked again. As ``loop.label`` it needs no other import.

    Parameters
    ----------
    texts
        Id to report, a Series, or a list, whose ids are its places from 0. None and
        a text without a word are kept as rows without labels.
    release
        Release that reads, for example ``"extractor-v11"``; it is verified first.
    extractor
        Version that reads instead, for example ``"extractor@v11"``; or
        `ExtractorOptions`, which also say how an engine is asked. With neither, the
        newest release that was not withdrawn, else as `ExtractorOptions` says.
    engine
        Asked instead of the release's; default ``"rules"`` without a release.
    workspace
        Where they are, as `loop.core.paths.find_workspace` gives it; default what
        ships with ranloop.
    names
        Columns as ``"published"`` (default) or by label id, ``"ids"``.
    values
        ``"words"`` (default): present, absent, uncertain; or ``"numbers"``: 1, 0, -1.
    language
        ISO 639-1 code of all reports; empty: as each looks. A report in a language
        that the engine cannot read ends as ``engine_failed``.

    Returns
    -------
    pandas.DataFrame
        Index: the ids, in the order given. Columns: ``status`` (``answered``,
        ``unparsed``, ``engine_failed`` or ``no_text``) and every label of the taxonomy
        in published order. What was not answered is missing, never absent; "No
        Finding" is derived as the taxonomy says. ``attrs["ranloop"]`` holds extractor
        and engine with their digests, and why reports were not answered.

    Raises
    ------
    DataError
        There is no such version or release, both are named, the release does not
        hold, or `language` is no code.
    EngineError
        The engine is not available, or failed as a whole.
    ValueError
        An option is not what it may be, or `texts` are no texts.

    Examples
    --------
    >>> found = label(
    ...     {"a": "Small left pleural effusion. No pneumothorax.", "b": None},
    ...     release="extractor-v11",
    ... )
    >>> found[["status", "Pleural Effusion", "Pneumothorax"]].values.tolist()
    [['answered', 'present', 'absent'], ['no_text', nan, nan]]
    """
    columns = choose(LabelNames, "names", names)
    cells = choose(CellValues, "values", values)
    ids, reports = _take_reports(texts)
    said = read_language(language, "language")
    languages = [said or guess_language(text) for text in reports]
    options = _label_options(extractor, release, engine)
    request = choose_extractor(workspace, options).request
    with open_extractor(workspace, request, options.asking) as opened:
        found, facts = opened.read(reports, languages), opened.facts
        taxonomy = opened.taxonomy
    policy = NoFinding(taxonomy.no_finding_policy.value)
    codes = find_no_finding(found.codes, taxonomy, policy)
    table: dict[str, Any] = {
        STATUS: [one.value if one else NO_TEXT for one in found.statuses]
    }
    for place, one in enumerate(taxonomy.labels):
        words = [_WORDS.get(code) for code in codes[:, place].tolist()]
        name = one.name if columns is LabelNames.PUBLISHED else one.id
        if cells is CellValues.NUMBERS:
            table[name] = pd.array(
                [None if word is None else VALUE_NUMBERS[word] for word in words],
                dtype="Int8",
            )
        else:
            table[name] = pd.array(
                [None if word is None else word.value for word in words], dtype="str"
            )
    frame = pd.DataFrame(table, index=ids)
    frame.attrs["ranloop"] = {
        "extractor": facts.ref,
        "release": facts.release,
        "prompt_digest": facts.digest,
        "engine": facts.engine,
        "engine_digest": facts.identity,
        "taxonomy_digest": taxonomy.digest,
        "problems": [f"{one.cases} x {one.text}" for one in found.problems],
    }
    return frame


def _label_options(
    extractor: str | ExtractorOptions | None, release: str | None, engine: str | None
) -> ExtractorOptions:
    if not isinstance(extractor, ExtractorOptions):
        return ExtractorOptions(version=extractor, release=release, engine=engine)
    if release is not None or engine is not None:
        raise ValueError(
            "name the release and the engine in ExtractorOptions, not here"
        )
    return extractor


def _take_reports(texts: object) -> tuple[pd.Index, list[str]]:
    """Return ids and reports; a missing report is an empty one."""
    if isinstance(texts, pd.Series):
        ids, given = texts.index, texts.tolist()
    elif isinstance(texts, Mapping):
        ids, given = pd.Index(list(texts), dtype=object), list(texts.values())
    elif isinstance(texts, Sequence) and not isinstance(texts, (str, bytes)):
        ids, given = pd.RangeIndex(len(texts)), list(texts)
    else:
        raise ValueError(
            "texts must be a mapping of id to report, a list or a Series, got "
            f"{type(texts).__name__}"
        )
    reports = []
    for place, one in enumerate(given):
        if one is None or one is pd.NA or (isinstance(one, float) and one != one):
            reports.append("")
        elif isinstance(one, str):
            reports.append(one)
        else:
            raise ValueError(
                f"texts, item {place}: expected a report as text, got "
                f"{type(one).__name__}"
            )
    return ids, reports
