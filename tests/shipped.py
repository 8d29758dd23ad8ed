"""A workspace that holds everything that is shipped, with its history and releases."""

import shutil
from pathlib import Path

from loop.core.paths import WorkspacePaths, bundled, init_workspace


def shipped_workspace(target: Path) -> WorkspacePaths:
    """Make a workspace at `target` with the shipped prompts, ledger and releases."""
    workspace = init_workspace(target)
    for part in ("prompts", "labels", "reports/releases"):
        shutil.copytree(
            bundled() / part,
            target / part,
            dirs_exist_ok=True,
            copy_function=shutil.copyfile,
        )
    return workspace
