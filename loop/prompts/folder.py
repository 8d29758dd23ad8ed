"""The four files of one prompt version, written as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from loop.core.digests import digest_bytes
from loop.core.errors import ConflictError, DataError
from loop.core.files import read_text, sync_folder, write_atomic, write_error
from loop.core.yaml_files import dump_yaml, read_model
from loop.prompts.guides import dump_guides, parse_guides
from loop.prompts.version import CallPlan, PromptVersion

FILES = ("prompt.yaml", "system.jinja", "user.jinja", "guides.yaml")


class Header(BaseModel):
    """``prompt.yaml``: everything about a version that is not its wording."""

    model_config = ConfigDict(extra="forbid")

    name: str
    number: int
    digest: str
    parent: str | None = None
    author: str
    time: str
    why: str
    verdicts: tuple[str, ...] = ()
    plan: CallPlan = CallPlan.JOINT
    contract: str
    inputs: tuple[str, ...] = ("text",)


def read_folder(folder: Path, *, draft: str = "") -> tuple[PromptVersion, Header]:
    """Return the version in `folder` and its header as recorded.

    The recorded digest is not compared here: a draft may be edited by hand.

    Raises
    ------
    DataError
        A file is missing, malformed or contradicts itself.
    """
    header = read_model(folder / "prompt.yaml", Header)
    guides = folder / "guides.yaml"
    try:
        version = PromptVersion(
            name=header.name,
            number=header.number,
            system=read_text(folder / "system.jinja"),
            user=read_text(folder / "user.jinja"),
            guides=parse_guides(read_text(guides), guides),
            plan=header.plan,
            contract=header.contract,
            inputs=header.inputs,
            parent=header.parent,
            author=header.author,
            time=header.time,
            why=header.why,
            verdicts=header.verdicts,
            draft=draft,
        )
    except ValueError as error:
        raise DataError(f"{folder / 'prompt.yaml'}: {error}. Correct it.") from error
    return version, header


def write_folder(folder: Path, version: PromptVersion) -> None:
    """Write the four files of `version` as the new folder `folder`.

    The files are written beside it and moved into place by one rename.

    Raises
    ------
    ConflictError
        `folder` exists: versions are immutable.
    WriteError
        It cannot be written; nothing remains.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    except OSError as error:
        raise write_error(folder, error) from error
    try:
        for name, text in _contents(version).items():
            write_atomic(building / name, text)
        building.chmod(0o755)
        _rename(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _rename(building: Path, folder: Path) -> None:
    """Move the finished folder into place; an existing one is never replaced."""
    if folder.exists():
        raise ConflictError(
            f"{folder} exists already and versions are immutable. Run the command "
            "again: it takes the next number."
        )
    try:
        os.rename(building, folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise write_error(folder, error) from error


def _contents(version: PromptVersion) -> dict[str, str]:
    header = Header(
        name=version.name,
        number=version.number,
        digest=version.digest,
        parent=version.parent,
        author=version.author,
        time=version.time,
        why=version.why,
        verdicts=version.verdicts,
        plan=version.plan,
        contract=version.contract,
        inputs=version.inputs,
    )
    return {
        "prompt.yaml": dump_yaml(header.model_dump(mode="json")),
        "system.jinja": version.system,
        "user.jinja": version.user,
        "guides.yaml": dump_guides(version.guides),
    }


def file_digests(folder: Path) -> dict[str, str]:
    """Sha256 of each file of a version, for the ledger."""
    return {name: digest_bytes((folder / name).read_bytes()) for name in FILES}
