"""An export is a folder that is whole or is not there, and loads back only as it was.

What is loaded back is made again from its prompt, every file of it, and must be the
same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from loop import __version__
from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_texts
from loop.core.errors import ConflictError, DataError
from loop.core.files import folder_beside, move_folder, write_atomic, write_error
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths
from loop.core.records import Item
from loop.core.safe_text import quoted
from loop.labels.cohort import CohortCase, cases_digest
from loop.labels.shot_pool import SYNTHETIC
from loop.prompts.catalog import read_folder, write_folder
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import PromptPlan, plan_prompts
from loop.prompts.shot_records import ShotKind
from loop.prompts.version import CallPlan, PromptVersion
from loop.release.export.contents import (
    IGNORE,
    MANIFEST,
    PROMPT,
    CasesFacts,
    Manifest,
    Written,
    digest_files,
    make_manifest,
    open_plain,
    read_asking,
    read_plain,
)
from loop.release.export.programs import (
    CODE,
    program_code,
    save_program,
    with_versions_of,
)
from loop.release.export.records import (
    CaseSource,
    ExportOrigin,
    ExportSpec,
    ExportTarget,
    RequestParameters,
)
from loop.release.export.requests import (
    RequestFiles,
    RequestForm,
    call_files,
    part_name,
)
from loop.run.pool_shots import with_shots

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
    _refuse_private_shots(version)
    plan = plan_prompts(with_shots(None, version), contract.schema)
    _check_labels(version)
    if any(call.numbered for call in plan.calls):
        raise DataError(
            f"{version.ref} puts a text in as numbered lines, and what is exported "
            "puts texts in as they stand. Ask it with `ranloop judge` instead."
        )
    if plan.stages and target is not ExportTarget.JINJA:
        made = ", ".join(one.name for one in plan.stages)
        raise DataError(
            f"{version.ref} asks in stages: what is asked last holds what was answered "
            f"first ({made}), so its requests cannot be written beforehand. Export it "
            f"to {ExportTarget.JINJA}, and {version.stages[0].ref} too."
        )
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


def _refuse_private_shots(version: PromptVersion) -> None:
    """Refuse a version whose examples are texts that must not leave the workspace."""
    shots = version.shots
    if shots is None or (
        shots.pool == SYNTHETIC and shots.kind is not ShotKind.INJECTED
    ):
        return
    raise DataError(
        f"{version.ref} shows examples of the pool {quoted(shots.pool)} to the model, "
        "and an export would carry their texts out of the private part of the "
        "workspace. Export a version without them (`ranloop prompt shots "
        f"{version.name} none`) or with those of the pool {SYNTHETIC}, or ask by "
        "`ranloop run`."
    )


def _check_labels(version: PromptVersion) -> None:
    """Refuse labels that cannot be part of a file's name."""
    for label in version.labels:
        if _SAFE.fullmatch(label) is None:
            raise DataError(
                f"{version.ref}, guides.yaml: label {quoted(label)} cannot be part of "
                "a file's name. Use lower-case letters, digits, '_' and '-'."
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
    workspace: WorkspacePaths,
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


def _check_place(workspace: WorkspacePaths, out: Path) -> None:
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
        for item in _watched(source.items, form.version.inputs, cases):
            for number in range(len(form.calls)):
                parts.write(form.line(number, item))
    if not cases:
        raise DataError(f"{source.origin} has no cases. Name another one.")
    return CasesFacts(
        origin=source.origin, count=len(cases), digest=cases_digest(cases)
    )


def _watched(
    items: Iterable[Item], inputs: Sequence[str], cases: list[CohortCase]
) -> Iterator[Item]:
    """Yield `items` with what the prompt reads of them; add each digest to `cases`."""
    for item in items:
        texts = {name: item.variables[name] for name in inputs}
        cases.append(CohortCase(item.id, "", digest_texts(texts)))
        yield replace(item, variables=texts)


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


class Loaded(NamedTuple):
    """An export that holds exactly what its prompt version makes."""

    prompt_digest: str
    """Identity of the prompt version, made anew from its files; 64 hex characters."""

    version: PromptVersion
    target: ExportTarget
    release: str
    """Name of the release it was exported as; empty for none. Nothing here is signed:
    compare `prompt_digest` with the release."""

    cases: int
    """Number of cases that requests ask about; 0 for none."""

    manifest: Manifest


def load_export(folder: Path) -> Loaded:
    """Return what `folder` holds, after making every file of it again.

    Raises
    ------
    DataError
        A file is missing, unknown, no plain file, or not the one that the prompt in
        the folder makes; names it.
    """
    manifest = _read_manifest(folder / MANIFEST)
    digests = digest_files(folder)
    digests.pop(MANIFEST)
    _check_digests(folder, digests, manifest.files)
    origin = _origin(folder, manifest)
    target = ExportTarget(manifest.target)
    built = build(origin, target, with_cases=manifest.cases is not None)
    _check_files(folder, built, manifest)
    cases = _read_cases(folder, manifest, built.form)
    made = make_manifest(origin, target, Written(digests, cases), manifest.tool)
    if made.as_bytes() != read_plain(folder / MANIFEST):
        raise _changed(folder / MANIFEST)
    return Loaded(
        prompt_digest=origin.version.digest,
        version=origin.version,
        target=target,
        release=manifest.release,
        cases=cases.count if cases else 0,
        manifest=manifest,
    )


def _changed(path: Path) -> DataError:
    return DataError(
        f"{path} is not what its prompt version makes: it was changed after the "
        "export, or another version of ranloop wrote it. Export it again."
    )


def _read_manifest(path: Path) -> Manifest:
    try:
        manifest = Manifest.model_validate_json(read_plain(path))
        ExportTarget(manifest.target)
    except (ValidationError, ValueError) as error:
        raise DataError(
            f"{path} is not the manifest of an export. Export it again."
        ) from error
    return manifest


def _check_digests(
    folder: Path, found: Mapping[str, str], said: Mapping[str, str]
) -> None:
    for name in sorted(found.keys() | said.keys()):
        if name not in found:
            raise DataError(f"{folder / name} is missing. Export it again.")
        if name not in said:
            raise DataError(
                f"{folder / name} is not part of the export. Remove it, or export "
                "again."
            )
        if found[name] != said[name]:
            raise _changed(folder / name)


def _origin(folder: Path, manifest: Manifest) -> ExportOrigin:
    """Return the version in the folder, if it is the one the manifest names."""
    version, header = read_folder(folder / PROMPT)
    if not version.digest == header.digest == manifest.prompt.digest:
        raise DataError(
            f"{folder / PROMPT} is the prompt version {version.digest[:12]}, and the "
            f"export is of {manifest.prompt.digest[:12]}. Export it again."
        )
    return ExportOrigin(
        version=version,
        asking=read_asking(manifest.asking),
        release=manifest.release,
        engine=manifest.engine,
    )


def _check_files(folder: Path, built: BuiltExport, manifest: Manifest) -> None:
    """Compare every file with the one that is made again."""
    for name, made in built.files.items():
        if name not in manifest.files:
            raise DataError(f"{folder / name} is missing. Export it again.")
        stored = read_plain(folder / name)
        again = (
            with_versions_of(made, stored) if name.endswith("program.json") else made
        )
        if again != stored:
            raise _changed(folder / name)
    private = manifest.cases is not None
    others = {name for name in manifest.files if not name.startswith(f"{PROMPT}/")}
    others -= built.files.keys() | ({IGNORE} if private else set())
    count = len(others) if private else 0
    unknown = others - {part_name(number) for number in range(1, count + 1)}
    if unknown:
        name = min(unknown)
        raise DataError(
            f"{folder / name} is not part of the export. Remove it, or export again."
        )
    if private and read_plain(folder / IGNORE) != b"*\n":
        raise _changed(folder / IGNORE)


def _read_cases(
    folder: Path, manifest: Manifest, form: RequestForm | None
) -> CasesFacts | None:
    """Return the facts of the cases in the requests, read back from each of them."""
    if manifest.cases is None or form is None:
        return None
    cases: list[CohortCase] = []
    expected: CohortCase | None = None
    number = 0
    for path, line in _lines(folder, manifest):
        item = form.read(line, number)
        if item is None:
            raise _changed(path)
        case = CohortCase(item.id, "", digest_texts(item.variables))
        if number and case != expected:
            raise _changed(path)
        expected = case
        number = (number + 1) % len(form.calls)
        if not number:
            cases.append(case)
    if number:
        raise _changed(path)
    facts = {"count": len(cases), "digest": cases_digest(cases)}
    return manifest.cases.model_copy(update=facts)


def _lines(folder: Path, manifest: Manifest) -> Iterator[tuple[Path, bytes]]:
    """Yield the requests of all files, in order, with the file each is in."""
    names = sorted(name for name in manifest.files if name.startswith("requests-"))
    for name in names:
        path = folder / name
        with os.fdopen(open_plain(path), "rb") as stream:
            for line in stream:
                yield path, line
