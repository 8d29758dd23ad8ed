"""A throw-away copy of a workspace's labels, in which something can be tried."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loop.core.errors import ConflictError, LoopError
from loop.core.files import locked, make_folder, write_error
from loop.core.paths import Workspace

_LINKED = ("cases", "replaced")
"""Private folders whose files are read, or replaced as a whole, never written into."""

_KEYS = ("pseudonym", "vault.key")
"""Without them patients could not be compared, and no sealed vote be added to."""


@contextmanager
def trial(workspace: Workspace) -> Iterator[Workspace]:
    """Give a workspace with the same taxonomy, cohorts, texts, ledger and keys.

    Whatever is done in it is gone afterwards, and nothing of it reaches `workspace`.
    It has no prompts and an empty store, and errors of the block name `workspace`. It
    lies in ``.ranloop/trials/``, mode 0700; what a killed process left there is
    removed first.

    Raises
    ------
    WriteError
        The copy cannot be made.
    """
    parent = workspace.open_private() / "trials"
    make_folder(parent, mode=0o700)
    _sweep(parent)
    place = parent / secrets.token_hex(8)
    with locked(_lock(place)):
        try:
            make_folder(place, mode=0o700)
            _fill(Workspace(place), workspace)
            yield Workspace(place)
        except LoopError as error:
            # Whoever reads the message looks for the file in the workspace.
            error.args = (str(error).replace(str(place), str(workspace.root)),)
            raise
        finally:
            shutil.rmtree(place, ignore_errors=True)
            _lock(place).unlink(missing_ok=True)


def _fill(copy: Workspace, workspace: Workspace) -> None:
    try:
        shutil.copytree(
            workspace.labels, copy.labels, ignore=shutil.ignore_patterns(".*")
        )
        copy.prompts.mkdir()
        if workspace.ledger.exists():
            shutil.copyfile(workspace.ledger, copy.ledger)
        copy.private.mkdir(mode=0o700)
        make_folder(copy.keys, mode=0o700)
        for key in _KEYS:
            if (workspace.keys / key).exists():
                shutil.copy(workspace.keys / key, copy.keys / key)
        for name in _LINKED:
            _link_files(workspace.private / name, copy.private / name)
    except OSError as error:
        # shutil.Error, which gathers several, has no number of its own.
        cause = error if error.errno else OSError(str(error))
        raise write_error(copy.root, cause) from error


def _link_files(source: Path, target: Path) -> None:
    """Give every file of `source` a name in `target`; replacing one replaces a link."""
    if source.is_dir():
        target.mkdir(mode=0o700)
        for path in source.iterdir():
            if path.is_file() and not path.name.startswith("."):
                os.symlink(path.resolve(), target / path.name)


def _sweep(parent: Path) -> None:
    """Remove the copies whose process is gone: nobody holds their lock."""
    for place in parent.iterdir():
        if place.is_dir():
            try:
                with locked(_lock(place), wait=False):
                    shutil.rmtree(place, ignore_errors=True)
                    _lock(place).unlink(missing_ok=True)
            except ConflictError:
                continue


def _lock(place: Path) -> Path:
    return place.with_name(f".{place.name}.lock")
