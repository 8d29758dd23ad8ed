"""What an export holds: plain files, and ``ranloop.json`` with their digests."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.prompts.outputs.base import get_contract
from loop.prompts.version import CallPlan
from loop.release.export.records import ExportOrigin, ExportTarget, RequestParameters
from loop.release.export.requests import batch_metadata, readable_json

MANIFEST = "ranloop.json"
PROMPT = "prompt"
"""Folder with the prompt version itself: what all other files are made from."""

RUNNER = '--structured-outputs-config \'{"backend":"xgrammar",'
RUNNER += '"disable_any_whitespace":true}\''
"""How ranloop starts vLLM: without it white space may fill an answer."""


class _ManifestModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PromptFacts(_ManifestModel):
    """Which prompt version it is."""

    name: str
    version: int
    ref: str
    digest: str
    """Identity of the version, 64 hex characters."""


class AskingFacts(_ManifestModel):
    """How it is to be asked; see `loop.release.export.records.RequestParameters`."""

    model: str
    temperature: float
    max_tokens: int
    seed: int
    extra: dict[str, Any]


class CasesFacts(_ManifestModel):
    """Which cases the requests are about."""

    origin: str
    count: int
    digest: str
    """Sha256 over case ids and texts, as in ``cohort.yaml``."""


class Manifest(_ManifestModel):
    """The form of ``ranloop.json``."""

    format: Literal["ranloop-export/1"] = "ranloop-export/1"
    target: str
    prompt: PromptFacts
    release: str
    """Name of the release that was verified; empty for a version that is none."""

    engine: str
    """Engine that the release's evidence is of; empty without a release."""

    contract: str
    """Output contract and version of its parser, ``"label_values/1"``."""

    plan: str
    inputs: list[str]
    labels: list[str]
    asking: AskingFacts
    cases: CasesFacts | None
    batch_metadata: dict[str, str]
    """For the ``metadata`` of a batch, where the service takes some; else empty."""

    remarks: list[str]
    """What whoever loads it should know."""

    tool: str
    """Version of ranloop that wrote it."""

    files: dict[str, str]
    """Every other file to its sha256."""

    digest: str = ""
    """Sha256 of the canonical JSON of all of this without ``digest``."""

    def sealed(self) -> Manifest:
        """Return the manifest with its own digest."""
        data = self.model_dump(mode="json", exclude={"digest"})
        return self.model_copy(update={"digest": digest_json(data)})

    def as_bytes(self) -> bytes:
        """Return the manifest as the bytes of its file."""
        return readable_json(self.model_dump(mode="json")).encode("utf-8")


class Written(NamedTuple):
    """What a manifest says of the files."""

    files: Mapping[str, str]
    cases: CasesFacts | None


def make_manifest(
    origin: ExportOrigin, target: ExportTarget, written: Written, tool: str
) -> Manifest:
    """Return the manifest of an export whose files are known."""
    version, asking = origin.version, origin.asking
    contract = get_contract(version.contract)
    batch = batch_metadata(version) if target is ExportTarget.OPENAI_BATCH else {}
    return Manifest(
        target=target.value,
        prompt=PromptFacts(
            name=version.name,
            version=version.number,
            ref=version.ref,
            digest=version.digest,
        ),
        release=origin.release,
        engine=origin.engine,
        contract=f"{contract.name}/{contract.version}",
        plan=version.plan.value,
        inputs=list(version.inputs),
        labels=list(version.labels),
        asking=AskingFacts(
            model=asking.model,
            temperature=float(asking.temperature),
            max_tokens=asking.max_tokens,
            seed=asking.seed,
            extra=dict(asking.extra),
        ),
        cases=written.cases,
        batch_metadata=batch,
        remarks=list(find_remarks(origin, target)),
        tool=tool,
        files=dict(sorted(written.files.items())),
    ).sealed()


def read_asking(facts: AskingFacts) -> RequestParameters:
    """Return the record that `facts` were made from."""
    return RequestParameters(**facts.model_dump())


def find_remarks(origin: ExportOrigin, target: ExportTarget) -> tuple[str, ...]:
    """Return what whoever loads an export should know, in words."""
    remarks = [_evidence(origin)]
    if origin.version.plan is CallPlan.PER_LABEL:
        remarks.append("One call a label: each has files of its own.")
    return (*remarks, *_OF_TARGET[target])


def _evidence(origin: ExportOrigin) -> str:
    if not origin.release:
        return (
            f"{origin.version.ref} is exported as a version: no evidence goes with it. "
            "Name a release (PROMPT-vN) to export that."
        )
    model = origin.asking.model
    asked = f"; this asks {model}" if model and model not in origin.engine else ""
    return (
        f"The evidence of {origin.release} is of the engine {origin.engine}{asked}. It "
        "says nothing of another model or other settings."
    )


_OF_TARGET: Mapping[ExportTarget, tuple[str, ...]] = {
    ExportTarget.JINJA: (
        "Render with autoescape off: a prompt is no HTML. Ask for an answer that "
        "follows schema.json.",
    ),
    ExportTarget.OPENAI_BATCH: (
        "Differs from how ranloop asks: the schema has no maxLength, which strict mode "
        "does not know, and the limit is called max_completion_tokens.",
        "prompt_cache_key holds the prompt's digest. OpenAI takes metadata in a "
        "request only where it may store the texts, so give batch_metadata to the "
        "batch itself.",
    ),
    ExportTarget.VLLM_BATCH: (
        f"Start the runner as ranloop does: vllm run-batch {RUNNER}",
    ),
    ExportTarget.DSPY: (
        "program.py loads the saved program and sends exactly the exported messages.",
        "Loaded with dspy.Predict alone it sends other messages: DSPy's adapters add "
        "their own words, take the white space around the instructions away, and do "
        "not know the user message. Nothing was measured on those.",
    ),
}


IGNORE = ".gitignore"
"""Keeps texts of cases out of a repository."""

MAX_BYTES = 64_000_000
"""Largest file read as a whole; files of requests are read line by line."""


def list_files(folder: Path) -> tuple[str, ...]:
    """Return the names of all files below `folder`, ``/`` between folders, sorted.

    Raises
    ------
    DataError
        It is no folder, or holds a link or anything else that is not a regular file.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise DataError(f"{folder} is not a folder. Name the folder of an export.")
    try:
        return tuple(sorted(_walk(folder, "")))
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror}.") from error


def _walk(folder: Path, before: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        name = f"{before}{entry.name}"
        if entry.is_dir(follow_symlinks=False) and not before:
            yield from _walk(folder / entry.name, f"{name}/")
        elif entry.is_file(follow_symlinks=False):
            yield name
        else:
            raise DataError(
                f"{folder}: {entry.name!r} is not a regular file, and an export holds "
                "nothing else. Export it again."
            )


def open_plain(path: Path) -> int:
    """Return a handle that reads the plain file `path`; links are not followed.

    Raises
    ------
    DataError
        There is no such file, or it is none.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DataError(f"{path} is not a regular file. Export it again.")
    return handle


def read_plain(path: Path) -> bytes:
    """Return the bytes of a plain file of an export.

    Raises
    ------
    DataError
        It cannot be read or is larger than any file of ours.
    """
    with os.fdopen(open_plain(path), "rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(f"{path} is larger than any file of an export. Export again.")
    return data


def digest_files(folder: Path) -> dict[str, str]:
    """Return every file below `folder` with its sha256.

    Raises
    ------
    DataError
        As for `list_files`.
    """
    digests = {}
    for name in list_files(folder):
        with os.fdopen(open_plain(folder / name), "rb") as stream:
            digests[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests
