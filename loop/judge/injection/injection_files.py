"""Where reports to inject into come from, and the folder that the variants go to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from loop import __version__
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.files import folder_beside, move_folder, write_atomic
from loop.core.paths import WorkspacePaths, material
from loop.core.safe_text import format_csv, shielded
from loop.judge.injection.inject import Injection
from loop.labels.cohort import (
    REPORT_INPUTS,
    CohortRole,
    iter_items,
    read_cohort,
    require_reports,
    single_report,
)
from loop.labels.importing.importer import open_source
from loop.labels.importing.screening import Screening
from loop.labels.importing.source import ImportOptions
from loop.labels.taxonomy import read_taxonomy

FORMAT: Final = "ranloop-injection/1"
COLUMNS: Final = (
    *("id", "reference_id", "reference", "candidate"),
    *("kind", "significant", "number", "severity"),
)
"""Columns of ``pairs.csv``."""

_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_COMMAND = "inject"


class InjectionSource(NamedTuple):
    """Reports to inject into."""

    texts: Mapping[str, str]
    """By case id, in the order of the source."""

    languages: Mapping[str, str]
    about: Mapping[str, str]
    """What ``inject.json`` says of it: kind and name."""

    left_out: Mapping[str, int]
    """Cases that did not enter, by the reason."""


def read_injection_cohort(workspace: WorkspacePaths, name: str) -> InjectionSource:
    """Return the reports of a cohort.

    Raises
    ------
    DataError
        There is no such cohort, it is a holdout or holds pairs, or its texts are not
        those that were imported.
    """
    cohort = read_cohort(workspace, name)
    if cohort.role is CohortRole.HOLDOUT:
        raise DataError(
            f"cohort {name!r} is a holdout: its texts stay unseen until a release "
            "opens them. Name a cohort of another role."
        )
    require_reports(cohort, "error injection")
    texts, languages = {}, {}
    for item in iter_items(workspace, cohort):
        texts[item.id] = single_report(item)
        languages[item.id] = item.language
    about = {"kind": "cohort", "name": name, "role": cohort.role.value}
    return InjectionSource(texts, languages, about, {})


def read_injection_file(
    path: Path,
    workspace: WorkspacePaths | None,
    *,
    language: str = "auto",
    encoding: str = "auto",
) -> InjectionSource:
    """Return the reports of a file, as ``ranloop cohort import`` reads it.

    Raises
    ------
    DataError
        The file is wrong or holds pairs, or an id appears twice.
    """
    labels = material(workspace).labels
    options = ImportOptions(
        name=_COMMAND, role="dev", language=language, encoding=encoding
    )
    source = open_source(path, options, labels)
    if tuple(source.inputs) != REPORT_INPUTS:
        raise DataError(
            f"{path} holds pairs of reports, and errors are injected into single ones. "
            "Give a table with columns id and text."
        )
    screening = Screening(options, read_taxonomy(labels).region)
    texts, languages = {}, {}
    for case in screening.passed(source.cases):
        texts[case.case_id] = case.text
        languages[case.case_id] = case.language
    if not texts:
        raise DataError(
            f"{path}: no report to inject into ({screening.summary()}). Check that its "
            "text columns are filled."
        )
    about = {"kind": "file", "name": path.name}
    return InjectionSource(texts, languages, about, dict(screening.excluded))


def check_injection_folder(folder: Path, workspace: WorkspacePaths | None) -> None:
    """Refuse a folder that variants cannot be written to.

    Raises
    ------
    DataError
        It is there already and not empty, or among the workspace's own files.
    """
    if workspace is not None:
        workspace.require_outside(folder)
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        raise DataError(_taken(folder))


def _taken(folder: Path) -> str:
    return f"{folder} already exists and was left as it is. Name a new folder."


def write_injection(
    folder: Path, injection: Injection, source: InjectionSource
) -> Mapping[str, Any]:
    """Write the variants as a new folder that only its owner can read.

    Returns
    -------
    Mapping
        What ``inject.json`` says.

    Raises
    ------
    ConflictError
        The folder came into being meanwhile.
    DataError
        There is no variant to write.
    WriteError
        It cannot be written; nothing is left behind.
    """
    if not injection.pairs:
        raise DataError(
            "no variant could be made: "
            f"{_reasons(injection, source) or 'no report has a place for one'}. Name "
            "other errors, or other reports."
        )
    files = {
        "pairs.csv": _format_pairs(injection).encode("utf-8"),
        "changes.jsonl": _format_changes(injection).encode("utf-8"),
    }
    about = injection_data(injection, source)
    about["files"] = {name: digest_bytes(data) for name, data in sorted(files.items())}
    files["inject.json"] = (
        json.dumps(about, ensure_ascii=False, indent=2) + "\n"
    ).encode("utf-8")
    target = folder.resolve()
    with folder_beside(target) as building:
        for name, data in files.items():
            write_atomic(building / name, data, mode=_FILE_MODE)
        building.chmod(_FOLDER_MODE)
        move_folder(building, target, taken=_taken(folder), over_empty=True)
    return about


def _reasons(injection: Injection, source: InjectionSource) -> str:
    counts = Counter(injection.unused) + Counter(source.left_out)
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))


def _format_pairs(injection: Injection) -> str:
    rows = (
        (
            shielded(one.id),
            shielded(one.reference_id),
            shielded(one.reference),
            shielded(one.candidate),
            one.kind,
            "yes" if one.significant else "no",
            one.number,
            one.severity,
        )
        for one in injection.pairs
    )
    return format_csv(COLUMNS, rows)


def _format_changes(injection: Injection) -> str:
    return "".join(
        json.dumps(
            {
                "id": one.id,
                "reference_id": one.reference_id,
                "changes": [change.data() for change in one.changes],
            },
            ensure_ascii=False,
        )
        + "\n"
        for one in injection.pairs
    )


def injection_data(injection: Injection, source: InjectionSource) -> dict[str, Any]:
    """Return what ``inject.json`` says: counts and digests, no text."""
    options = injection.options
    counts = Counter((one.kind, one.number) for one in injection.pairs)
    further = sum(one.severity > 1 for one in injection.pairs)
    more_severe = options.severities != (1,)
    significant = sum(one.significant for one in injection.pairs)
    return {
        "format": FORMAT,
        "ranloop": __version__,
        "seed": options.seed,
        "options": {
            "errors": options.errors,
            "numbers": list(options.numbers),
            **({"severities": list(options.severities)} if more_severe else {}),
            "harmless": options.harmless,
            "negated": options.negated,
            "modality": options.modality,
            "most": options.most,
            **({} if options.reread else {"reread": False}),
        },
        "bank": {
            "version": injection.bank_version,
            "language": injection.language,
            "sha256": injection.bank_digest,
            **(
                {"wording_sha256": injection.wording_digest}
                if injection.wording_digest
                else {}
            ),
        },
        "reader": dict(injection.reader),
        **({"model": injection.model.data()} if injection.model else {}),
        "source": {
            **source.about,
            "cases": injection.cases,
            "digest": injection.source_digest,
        },
        "pairs": len(injection.pairs),
        "significant": significant,
        "insignificant": len(injection.pairs) - significant,
        "counts": {
            kind: {
                str(number): counts[kind, number] for number in sorted(options.numbers)
            }
            for kind in injection.kinds
        },
        **({"further_off": further} if more_severe else {}),
        "cases_unused": {**source.left_out, **injection.unused},
        "left_out": [one._asdict() for one in injection.left_out],
        "places": {
            kind: {
                "tried": injection.tried.get(kind, 0),
                "read_otherwise": injection.read_otherwise.get(kind, 0),
            }
            for kind in injection.kinds
        },
    }
