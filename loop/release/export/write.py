"""Writes an export: a folder that is whole or is not there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from loop import __version__
from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_text
from loop.core.errors import ConflictError, DataError
from loop.core.files import folder_beside, move_folder, write_atomic, write_error
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import Workspace
from loop.core.records import Item
from loop.labels.cohort import CohortCase, cases_digest
from loop.prompts.catalog import write_folder
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import PromptPlan, plan_prompts
from loop.prompts.version import CallPlan, PromptVersion
from loop.release.export.contents import IGNORE, digest_files
from loop.release.export.manifest import (
    MANIFEST,
    PROMPT,
    CasesFacts,
    Manifest,
    Written,
    make_manifest,
)
from loop.release.export.programs import CODE, program_code, save_program
from loop.release.export.records import (
    CaseSource,
    ExportOrigin,
    ExportSpec,
    ExportTarget,
    RequestParameters,
)
from loop.release.export.requests import RequestFiles, RequestForm
from loop.release.export.templates import call_files

_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class BuiltExport(NamedTuple):
    """What every export of one version to one target has."""

    files: Mapping[str, bytes]
    form: RequestForm | None
    """Writes requests about cases; None for a target that takes none."""


def build(
    origin: ExportOrigin, target: ExportTarget, *, with_cases: bool
) -> BuiltExport:
    """Return the files of an export but its manifest, its prompt and its requests.

    Parameters
    ----------
    with_cases
        For batches: requests about cases are written, so no template of one is.

    Raises
    ------
    DataError
        The version cannot be rendered or has no place in this form.
    """
    version, asking = origin.version, origin.asking
    contract = get_contract(version.contract)
    plan = plan_prompts(version, contract.schema)
    _check_labels(version)
    if target.is_batch:
        form = _form(origin, plan, target)
        return BuiltExport({} if with_cases else _request_templates(form), form)
    if target is ExportTarget.JINJA:
        return BuiltExport(_templates(version, plan), None)
    parser = f"{contract.name}/{contract.version}"
    return BuiltExport(_programs(version, plan, parser, asking), None)


def prefix(version: PromptVersion, call: str) -> str:
    """Return what the names of the files of a call begin with."""
    return "" if version.plan is CallPlan.JOINT else f"{call}."


def _check_labels(version: PromptVersion) -> None:
    """Refuse labels that cannot be part of a file's name."""
    for label in version.labels:
        if _SAFE.fullmatch(label) is None:
            raise DataError(
                f"{version.ref}, guides.yaml: label {label[:70]!r} cannot be part of a "
                "file's name. Use lower-case letters, digits, '_' and '-'."
            )


def _form(origin: ExportOrigin, plan: PromptPlan, target: ExportTarget) -> RequestForm:
    if not origin.asking.model:
        released = f"{origin.release} was released with {origin.engine}, and "
        raise DataError(
            f"{released if origin.release else ''}every request of a batch names the "
            "model to ask. Name it with --model."
        )
    return RequestForm(origin.version, plan, origin.asking, target)


def _request_templates(form: RequestForm) -> dict[str, bytes]:
    return {
        f"{prefix(form.version, call.frame.call)}request.jsonl.jinja": form.template(
            number
        ).encode("utf-8")
        for number, call in enumerate(form.calls)
    }


def _templates(version: PromptVersion, plan: PromptPlan) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for call in plan.calls:
        files |= call_files(call, prefix(version, call.frame.call))
    return files


def _programs(
    version: PromptVersion, plan: PromptPlan, parser: str, asking: RequestParameters
) -> dict[str, bytes]:
    files = {CODE: program_code()}
    for call in plan.calls:
        before = prefix(version, call.frame.call)
        schema = call_files(call, before)[f"{before}schema.json"]
        files[f"{before}schema.json"] = schema
        files[f"{before}program.json"] = save_program(version, parser, call, asking)
    return files


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
    now: Clock = utc_now,
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
    # What a killed export left behind goes too: it may hold texts of cases.
    with folder_beside(out, "export") as folder:
        manifest = _fill(folder, spec)
        append_event(workspace.ledger, _event(spec, manifest, act), act.actor, now=now)
        taken = f"{out} appeared while the export was written. Name another folder."
        move_folder(folder, out, taken=taken, over_empty=True)
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
