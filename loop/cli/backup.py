"""The verbs ``backup`` and ``restore``: a workspace in one encrypted file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    megabytes,
    note,
    open_workspace,
    own_output,
    print_json,
    read_secret,
    say,
)
from loop.release.backup import BackedUp, restore_backup, write_backup

StdinOption = Annotated[
    bool,
    typer.Option(
        "--passphrase-stdin", help="Read the passphrase from the first line of stdin."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs to `app`."""
    app.command("backup")(backup)
    app.command("restore")(restore)


def backup(
    file: Annotated[Path, typer.Argument(help="New file to write.")],
    passphrase_stdin: StdinOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the whole workspace to one encrypted file.

    Prompts, labels, reports and all private state: texts, answers, verdicts, users and
    keys. A passphrase is asked for twice; without it nobody can open the file. Others
    may go on working meanwhile. Git's own history is not in it.
    """
    place = open_workspace(workspace)
    own_output(file, place)
    secret = read_secret("passphrase", passphrase_stdin)
    with ProgressBar(f"back up {place.root.name}", quiet=as_json).shown():
        made = write_backup(place, file, secret)
    if as_json:
        print_json(_row(made, "file"))
        return
    say(f"{made.files:,} files ({megabytes(made.size)}) of {place.root} are in {file}")
    say(f"sha256 {made.digest}")
    note("keep the passphrase elsewhere: without it nothing of this can be restored")


def restore(
    file: Annotated[Path, typer.Argument(help="File that `ranloop backup` wrote.")],
    folder: Annotated[
        Path, typer.Argument(help="New or empty folder, or one without private state.")
    ],
    private_only: Annotated[
        bool,
        typer.Option(
            "--private-only",
            help="Restore .ranloop/ alone, beside the public part that is there.",
        ),
    ] = False,
    passphrase_stdin: StdinOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a workspace of a backup.

    Nothing that is there is replaced. In a clone of the workspace's repository, the
    public files must be those of the backup; --private-only does not look at them.
    """
    secret = read_secret("passphrase", passphrase_stdin, confirm=False)
    with ProgressBar(f"restore {folder.name}", quiet=as_json).shown():
        made = restore_backup(file, folder, secret, private_only=private_only)
    if as_json:
        print_json(_row(made, "workspace"))
        return
    say(f"{made.files:,} files ({megabytes(made.size)}) are restored in {made.path}")
    say("Next:")
    say(f"  ranloop doctor -w {folder}")
    say(f"  ranloop audit -w {folder}")


def _row(made: BackedUp, what: str) -> dict[str, object]:
    return {
        what: str(made.path),
        "files": made.files,
        "bytes": made.size,
        "sha256": made.digest,
    }
