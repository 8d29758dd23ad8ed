"""Staging: a cohort is built beside its final place and moved there in one go."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from loop.core.clock import Clock
from loop.core.errors import DataError
from loop.core.files import folder_beside, make_folder, sync_folder, write_error
from loop.core.paths import Workspace
from loop.labels.cohort import cohort_folder, texts_path
from loop.labels.importing.source import ImportOptions


@contextmanager
def staged(workspace: Workspace, options: ImportOptions) -> Iterator[tuple[Path, Path]]:
    """Yield a hidden folder and texts file beside their final places."""
    name = options.name
    if cohort_folder(workspace, name).exists() and not options.replace:
        raise DataError(
            f"cohort {name!r} already exists in {workspace.cohorts}. Choose another "
            "name, or use --replace; the old one is then kept in .ranloop/replaced/."
        )
    texts = texts_path(workspace, name)
    staging = texts.with_name(f".{name}.importing")
    make_folder(workspace.cohorts)
    make_folder(texts.parent, mode=0o700)
    with folder_beside(cohort_folder(workspace, name), "importing") as folder:
        folder.chmod(0o755)
        try:
            yield folder, staging
        finally:
            staging.unlink(missing_ok=True)


@contextmanager
def published(
    workspace: Workspace,
    options: ImportOptions,
    staged: tuple[Path, Path],
    now: Clock,
) -> Iterator[None]:
    """Move the staged cohort into place; move everything back if the block fails."""
    finals = (
        cohort_folder(workspace, options.name),
        texts_path(workspace, options.name),
    )
    moved: list[tuple[Path, Path]] = []
    try:
        if any(final.exists() for final in finals):
            attic = _make_attic(workspace, options.name, now())
            for final, kept in zip(finals, ("cohort", "texts.jsonl"), strict=True):
                if final.exists():
                    _move(final, attic / kept, moved)
        for path, final in zip(staged, finals, strict=True):
            _move(path, final, moved)
            sync_folder(final.parent)
        yield
    except BaseException:
        for origin, place in reversed(moved):
            with suppress(OSError):
                shutil.move(place, origin)
        raise


def _make_attic(workspace: Workspace, name: str, now: datetime) -> Path:
    """Make a new private folder for what is replaced; two in a second do not meet."""
    parent = workspace.private / "replaced"
    make_folder(parent, mode=0o700)
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    try:
        return Path(tempfile.mkdtemp(dir=parent, prefix=f"{name}-{stamp}-"))
    except OSError as error:
        raise write_error(parent, error) from error


def _move(origin: Path, place: Path, moved: list[tuple[Path, Path]]) -> None:
    try:
        shutil.move(origin, place)
    except OSError as error:
        raise write_error(place, error) from error
    moved.append((origin, place))
