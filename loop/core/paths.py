"""Where things are: the workspace, its folders, and the material in the wheel."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from loop.core.errors import DataError, WorkspaceError
from loop.core.files import make_folder, write_atomic, write_error

_FOR_GIT = {
    ".gitignore": ".ranloop/\n",
    ".gitattributes": "".join(
        f"{folder}/** -text\n"
        for folder in ("prompts", "labels/cohorts", "reports/releases")
    ),
}
"""Files of a workspace for git: what is private, and what it must not touch, because
the ledger or a signature has its digest."""

_OF_ANY_TASK = ("protocol.yaml", "cues", "errors.yaml")

_OF_CHEST_XRAY = ("taxonomy.yaml", "crosswalks")


@cache
def bundled() -> Path:
    """Folder that holds the shipped ``prompts/``, ``labels/`` and ``reports/``.

    Inside an installed wheel that is ``loop/_data``; in a checkout, the checkout.
    """
    inside = Path(__file__).resolve().parents[1] / "_data"
    return inside if inside.is_dir() else Path(__file__).resolve().parents[2]


def install_command(extra: str) -> str:
    """Return the command that adds an extra to ranloop as it is installed here.

    From a checkout or a wheel's file it names that; elsewhere the package's name.

    Examples
    --------
    >>> install_command("plot").endswith("[plot]'")
    True
    """
    source, editable = "ranloop", ""
    try:
        record = distribution("ranloop").read_text("direct_url.json")
    except PackageNotFoundError:
        record = None
    origin = json.loads(record) if record else {}
    if str(origin.get("url", "")).startswith("file:"):
        source = unquote(urlsplit(origin["url"]).path)
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"{sys.executable} -m pip install {editable}'{source}[{extra}]'"


@dataclass(frozen=True, slots=True)
class WorkspacePaths:
    """A folder with ``prompts/`` and ``labels/``, and private state beside them."""

    root: Path

    @property
    def prompts(self) -> Path:
        """Every prompt version, in the open."""
        return self.root / "prompts"

    @property
    def labels(self) -> Path:
        """Taxonomy, crosswalks, cues, cohorts, protocol."""
        return self.root / "labels"

    @property
    def cohorts(self) -> Path:
        """One folder per cohort: digests and labels, never text."""
        return self.labels / "cohorts"

    @property
    def ledger(self) -> Path:
        """The hash-chained log."""
        return self.prompts / "ledger.jsonl"

    @property
    def protocol(self) -> Path:
        """What will be claimed, before it is measured."""
        return self.labels / "protocol.yaml"

    @property
    def private(self) -> Path:
        """Clinical text, runs, verdicts, keys; git-ignored, mode 0700."""
        return self.root / ".ranloop"

    @property
    def store(self) -> Path:
        """SQLite file with completions, runs, outcomes, verdicts."""
        return self.private / "store.db"

    @property
    def config(self) -> Path:
        """Settings of this machine: hosts, engines, prices."""
        return self.private / "config.yaml"

    @property
    def keys(self) -> Path:
        """Private keys, mode 0600: those of people, and the one of the vault."""
        return self.private / "keys"

    @property
    def releases(self) -> Path:
        """What was released, one folder each, and the public keys."""
        return self.root / "reports" / "releases"

    def require_outside(self, path: Path) -> None:
        """Refuse to write a document over the workspace's own files.

        Raises
        ------
        DataError
            It lies in ``prompts/``, ``labels/``, ``reports/releases/`` or
            ``.ranloop/``.
        """
        target = path.resolve()
        for folder in (self.prompts, self.labels, self.releases, self.private):
            if target.is_relative_to(folder.resolve()):
                raise DataError(
                    f"{path} lies in {folder.name}/, which holds the workspace's own "
                    "files. Name a file elsewhere, for example in reports/."
                )

    def open_private(self) -> Path:
        """Create ``.ranloop/`` (0700, git-ignored) if needed and return it.

        Raises
        ------
        WriteError
            The workspace cannot be written.
        """
        if not self.private.is_dir():
            make_folder(self.private, mode=0o700)
        ignore = self.private / ".gitignore"
        if not ignore.exists():
            write_atomic(ignore, "*\n")
        return self.private


def material(place: WorkspacePaths | None) -> WorkspacePaths:
    """Return the workspace to read prompts and labels from; never to write to."""
    return place or WorkspacePaths(bundled())


def find_workspace(start: Path, explicit: Path | None = None) -> WorkspacePaths:
    """Return the workspace at `explicit`, or the nearest one from `start` upwards.

    Raises
    ------
    WorkspaceError
        There is none.
    """
    if explicit is not None:
        if not _is_workspace(explicit):
            raise WorkspaceError(
                f"{explicit} is not a workspace: it has no prompts/ and labels/. "
                f"Make one with `ranloop init {explicit}`."
            )
        return WorkspacePaths(explicit.resolve())
    for folder in (start.resolve(), *start.resolve().parents):
        if _is_workspace(folder):
            return WorkspacePaths(folder)
    raise WorkspaceError(
        f"no workspace at {start.resolve()} or above it. Make one with "
        "`ranloop init DIR`, or name one with --workspace DIR."
    )


def init_workspace(target: Path, taxonomy: str | None = None) -> WorkspacePaths:
    """Make an empty workspace at `target`: no prompt, no ledger, no release.

    It gets the protocol, the cues and the categories of errors as they ship.

    Parameters
    ----------
    taxonomy
        Text of its ``taxonomy.yaml``; None for the shipped one of chest X-rays, with
        the crosswalks to it.

    Raises
    ------
    WorkspaceError
        `target` already holds a workspace.
    WriteError
        It cannot be written.
    """
    refuse_workspace(target, taxonomy)
    source = bundled() / "labels"
    parts = _OF_ANY_TASK if taxonomy is not None else (*_OF_ANY_TASK, *_OF_CHEST_XRAY)
    try:
        for part in parts:
            _copy(source / part, target / "labels" / part)
    except (OSError, shutil.Error) as error:
        cause = error if error.errno else OSError(str(error))
        raise write_error(target, cause) from error
    workspace = WorkspacePaths(target.resolve())
    if taxonomy is not None:
        write_atomic(workspace.labels / "taxonomy.yaml", taxonomy)
    for name, text in _FOR_GIT.items():
        if not (target / name).exists():
            write_atomic(target / name, text)
    workspace.open_private()
    # Last: a folder is a workspace only when all else is there.
    make_folder(workspace.prompts)
    return workspace


def refuse_workspace(target: Path, taxonomy: str | None = None) -> None:
    """Refuse a folder that is a workspace already.

    One without a prompt and a ledger, of the same task, was not finished: it may be
    made again.

    Parameters
    ----------
    taxonomy
        As for `init_workspace`.

    Raises
    ------
    WorkspaceError
        It is one.
    """
    if _is_workspace(target) and not _is_unfinished(target, taxonomy):
        raise WorkspaceError(
            f"{target} is already a workspace. Use it, or name another folder."
        )


def _is_unfinished(target: Path, taxonomy: str | None) -> bool:
    """Whether a workspace has nothing but what `init_workspace` puts there."""
    place = WorkspacePaths(target)
    shipped = bundled() / "labels" / "taxonomy.yaml"
    try:
        there = (place.labels / "taxonomy.yaml").read_bytes()
        wanted = shipped.read_bytes() if taxonomy is None else taxonomy.encode()
        begun = any(place.prompts.iterdir()) or place.cohorts.exists()
    except OSError:
        return False
    return there == wanted and not begun


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(
            source, target, dirs_exist_ok=True, copy_function=_copy_writable
        )
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    _copy_writable(str(source), str(target))


def _copy_writable(source: str, target: str) -> None:
    """Copy bytes only: the shipped files may be read-only in site-packages."""
    shutil.copyfile(source, target)


def _is_workspace(folder: Path) -> bool:
    return os.path.isdir(folder / "prompts") and os.path.isdir(folder / "labels")
