"""Writes an export: a folder that is whole or is not there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from loop import __version__
from loop.core.digests import digest_text
from loop.core.errors import ConflictError, DataError
from loop.core.files import write_atomic, write_error
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import Workspace
from loop.core.records import Item
from loop.labels.cohort import CohortCase, cases_digest
from loop.prompts.folder import write_folder
from loop.release.export.build import build
from loop.release.export.contents import IGNORE, digest_files
from loop.release.export.manifest import (
    MANIFEST,
    PROMPT,
    CasesFacts,
    Manifest,
    Written,
    make_manifest,
)
from loop.release.export.parts import RequestFiles
from loop.release.export.records import CaseSource, ExportSpec, ExportTarget
from loop.release.export.requests import RequestForm
from loop.release.export.staging import publish, staged


class Act(NamedTuple):
    """Who exports and why, for the ledger."""

    actor: Actor
    why: str


def write_export(
    workspace: Workspace,
    spec: ExportSpec,
    out: Path,
    act: Act,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Manifest:
    """Write an export as the new folder `out` and return its manifest.

    A folder with texts of cases can be entered by its owner only, its requests are
    0600, and git ignores it. The ledger has the entry before the folder appears.

    Raises
    ------
    ConflictError
        `out` holds something.
    DataError
        `out` lies where the workspace keeps its own files, or the version or a case
        cannot be exported.
    WriteError
        It cannot be written; nothing remains of it.
    """
    _check_place(workspace, out)
    with staged(out) as folder:
        manifest = _fill(folder, spec)
        append_event(workspace.ledger, _event(spec, manifest, act), act.actor, now=now)
        publish(folder, out)
    return manifest


def _check_place(workspace: Workspace, out: Path) -> None:
    target = out.resolve()
    own = (
        workspace.prompts,
        workspace.labels,
        workspace.private,
        workspace.releases,
    )
    for folder in own:
        if target.is_relative_to(folder.resolve()):
            raise DataError(
                f"{out} lies in {folder.name}/, which holds the workspace's own files. "
                "Name a folder elsewhere."
            )
    if os.path.lexists(out) and (out.is_symlink() or not _is_empty(out)):
        raise ConflictError(
            f"{out} exists already, and an export is never written over. Name another "
            "folder, or remove that one."
        )


def _is_empty(path: Path) -> bool:
    try:
        return path.is_dir() and next(path.iterdir(), None) is None
    except OSError as error:
        raise write_error(path, error) from error


def _fill(folder: Path, spec: ExportSpec) -> Manifest:
    """Write all files of an export into `folder`."""
    built = build(spec.origin, spec.target, with_cases=spec.cases is not None)
    write_folder(folder / PROMPT, spec.origin.version)
    for name, data in built.files.items():
        write_atomic(folder / name, data)
    cases = None
    if spec.cases is not None:
        if built.form is None:
            raise DataError(
                f"{spec.target} holds no requests about cases. Leave the cases out, or "
                "export to openai-batch or vllm-batch."
            )
        write_atomic(folder / IGNORE, "*\n", mode=0o600)
        cases = _write_requests(folder, spec.cases, built.form, spec.target)
    else:
        folder.chmod(0o755)
    written = Written(digest_files(folder), cases)
    manifest = make_manifest(spec.origin, spec.target, written, __version__)
    private = 0o600 if cases else None
    write_atomic(folder / MANIFEST, manifest.as_bytes(), mode=private)
    return manifest


def _write_requests(
    folder: Path, source: CaseSource, form: RequestForm, target: ExportTarget
) -> CasesFacts:
    """Write the requests of all cases, in as many files as the target needs."""
    cases: list[CohortCase] = []
    parts = RequestFiles(folder, bounded=target is ExportTarget.OPENAI_BATCH)
    with parts:
        for item in _watched(source.items, cases):
            for number in range(len(form.calls)):
                parts.write(form.line(number, item))
    if not cases:
        raise DataError(f"{source.origin} has no cases. Name another one.")
    return CasesFacts(
        origin=source.origin, count=len(cases), digest=cases_digest(cases)
    )


def _watched(items: Iterable[Item], cases: list[CohortCase]) -> Iterator[Item]:
    """Yield `items`, adding the digest of each to `cases`."""
    for item in items:
        cases.append(CohortCase(item.id, "", digest_text(item.variables["text"])))
        yield item


def _event(spec: ExportSpec, manifest: Manifest, act: Act) -> Event:
    cases = manifest.cases
    return Event(
        action="exported",
        subject=manifest.prompt.ref,
        reason=act.why,
        payload={
            "target": manifest.target,
            "digest": manifest.prompt.digest,
            "export": manifest.digest,
            "release": manifest.release,
            "model": manifest.asking.model,
            "cases": cases.model_dump(mode="json") if cases else None,
        },
    )
