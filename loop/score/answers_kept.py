"""Where an extractor keeps its answers, and what it reads where nothing is kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loop.core.files import write_error
from loop.core.paths import Workspace, bundled
from loop.run.store import RunRecord, Store

_MATERIAL: Final = ("prompts", "labels")


def forget_run(store: Store, run: RunRecord) -> None:
    """Remove the outcomes of a run that was read: its completions are what is kept."""
    # First the folder: while the run is there, no other one takes its name.
    shutil.rmtree(store.path.parent / "runs" / run.id, ignore_errors=True)
    with store.writing() as connection:
        connection.execute("DELETE FROM outcomes WHERE run = ?", [run.number])
        connection.execute("DELETE FROM runs WHERE number = ?", [run.number])


@contextmanager
def shipped_material() -> Iterator[Path]:
    """Give a workspace of the shipped material that nothing is kept in."""
    with tempfile.TemporaryDirectory(prefix="ranloop-") as folder:
        try:
            for part in _MATERIAL:
                os.symlink(bundled() / part, Path(folder) / part)
        except OSError as error:
            raise write_error(Path(folder), error) from error
        yield Path(folder)


@contextmanager
def place_of_store(workspace: Workspace | None) -> Iterator[Path]:
    """Give the folder of the store: in the workspace, or one that goes afterwards."""
    if workspace is not None:
        yield workspace.open_private() / "score"
        return
    with tempfile.TemporaryDirectory(prefix="ranloop-") as folder:
        yield Path(folder)
