"""The verb ``cohort show``: what a cohort is, and what its reference says."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.core.ledger import read_ledger
from loop.core.paths import Workspace
from loop.labels.cohort import (
    as_recorded,
    has_texts,
    list_cohorts,
    read_cohort,
    read_cohort_file,
)
from loop.labels.holdout import label_files, replaced_files
from loop.labels.intact import edited_references
from loop.labels.recorded import find_record, read_record
from loop.labels.reference import list_references, read_reference
from loop.labels.sealing import vault_key


def show(
    name: Annotated[
        str | None, typer.Argument(help="Cohort to show; default: list all.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a cohort: what it is, its reference versions and their marks."""
    place = open_workspace(workspace)
    if name is None:
        _list(place, as_json=as_json)
    else:
        _show(place, name, as_json=as_json)


def _list(place: Workspace, *, as_json: bool) -> None:
    entries = read_ledger(place.ledger)
    rows = [
        {
            "name": about.name,
            "role": about.role.value,
            "cases": about.cases,
            "language": about.language,
            "references": list(list_references(place, about.name)),
            "texts_here": has_texts(place, about.name),
            "as_recorded": as_recorded(about, find_record(entries, about.name)),
        }
        for about in (read_cohort_file(place, each) for each in list_cohorts(place))
    ]
    if as_json:
        print_json({"cohorts": rows})
    elif not rows:
        say("no cohort yet: import one with `ranloop cohort import FILE --name NAME`")
    else:
        header = ["cohort", "role", "cases", "language", "references", "texts here"]
        header += ["as recorded"]
        print_table(header, [[_cell(cell) for cell in row.values()] for row in rows])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{number} {what}" for what, number in value.items())
    if isinstance(value, list):
        words = (f"v{one}" if isinstance(one, int) else str(one) for one in value)
        return ", ".join(words) or "none"
    return str(value)


def _show(place: Workspace, name: str, *, as_json: bool) -> None:
    about = read_cohort_file(place, name).model_dump(mode="json")
    cohort = read_cohort(place, name)
    record = read_record(place, name)
    numbers = list_references(place, name)
    state: dict[str, Any] = {
        "texts_here": has_texts(place, name),
        "patients_known": cohort.patients_known,
        "references": list(numbers),
    }
    marks: dict[str, dict[str, int]] = {}
    if record.is_holdout:
        state |= _seal(place, name)
    else:
        state |= {"references_edited": _edited(place, name)}
        marks = _marks(place, name)
    state |= {"reference_digest": record.newest_digest}
    if as_json:
        print_json({**about, **state, "marks": marks})
        return
    for key, value in {**about, **state}.items():
        if value not in ("", [], {}, None):
            say(f"{key:<18}{_cell(value) if key != 'files' else _files(value)}")
    if marks:
        kinds = list(dict.fromkeys(kind for row in marks.values() for kind in row))
        rows = [
            [label, *(str(row.get(kind, 0)) for kind in kinds)]
            for label, row in marks.items()
        ]
        say()
        print_table([f"reference v{numbers[-1]}", *kinds], rows)


def _edited(place: Workspace, name: str) -> list[int]:
    return list(edited_references(place, name))


def _marks(place: Workspace, name: str) -> dict[str, dict[str, int]]:
    """Return label to how often each mark stands in the newest reference."""
    if not list_references(place, name):
        return {}
    reference = read_reference(place, name)
    return {
        label: {m.value: n for m, n in reference.counts(label).items() if n}
        for label in reference.labels
    }


def _seal(place: Workspace, name: str) -> dict[str, Any]:
    """Return how the labels of a holdout lie, and whether the key to them is here."""
    plain = [path for path in label_files(place, name) if path.is_file()]
    before = [path for path in replaced_files(place, name) if path.is_file()]
    return {
        "sealed": not plain,
        "plain_copies": [
            path.relative_to(place.root).as_posix() for path in (*plain, *before)
        ],
        "key_here": vault_key(place).is_file(),
    }


def _files(files: list[dict[str, str]]) -> str:
    return ", ".join(f"{file['name']} ({file['sha256'][:12]})" for file in files)
