"""Loads an export back: everything in it is made again and must be the same."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from loop.core.digests import digest_text
from loop.core.errors import DataError
from loop.labels.cohort import CohortCase, cases_digest
from loop.prompts.catalog import read_folder
from loop.prompts.version import PromptVersion
from loop.release.export.contents import IGNORE, digest_files, open_plain, read_plain
from loop.release.export.manifest import (
    MANIFEST,
    PROMPT,
    CasesFacts,
    Manifest,
    Written,
    make_manifest,
    read_asking,
)
from loop.release.export.programs import with_versions_of
from loop.release.export.records import ExportOrigin, ExportTarget
from loop.release.export.requests import RequestForm, part_name
from loop.release.export.write import BuiltExport, build


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
    parts = {part_name(number) for number in range(1, len(others) + 1)}
    if others != (parts if private else set()):
        name = min(others - parts, default=MANIFEST)
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
        case = CohortCase(item.id, "", digest_text(item.variables["text"]))
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
