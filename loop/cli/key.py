"""The verb ``key``: keys with which people sign releases and ledger entries."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    WorkspaceOption,
    acting,
    note,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.release.keys import (
    PublicKey,
    find_key,
    format_public_key,
    key_file,
    make_key,
    private_key_path,
    public_key_path,
    read_public_keys,
    revoke_key,
)

_VARIABLE = "RANLOOP_KEY_PASSPHRASE"

KeyArgument = Annotated[
    str, typer.Argument(help="Key id, at least 8 characters of it, or a name.")
]


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    verb = typer.Typer(
        help="Manage the keys that sign releases and ledger entries.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    verb.command("new")(new)
    verb.command("list")(list_keys)
    verb.command("show")(show)
    verb.command("revoke")(revoke)
    app.add_typer(verb, name="key")


def new(
    name: Annotated[str, typer.Argument(help="Whose key, as in the ledger.")],
    role: Annotated[
        str, typer.Option("--role", help="Role in which they sign, e.g. approver.")
    ],
    passphrase_prompt: Annotated[
        bool,
        typer.Option(
            "--passphrase-prompt",
            help=f"Ask for a passphrase that protects the key; or set {_VARIABLE}.",
        ),
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Revoke their present key; needs --why.")
    ] = False,
    why: Annotated[
        str, typer.Option("--why", help="Why the key is replaced, for the ledger.")
    ] = "",
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key pair. The private key stays on this machine, readable by you alone.

    Without a passphrase it also signs everything its owner does here from now on, entry
    by entry. With one it signs only what its owner is asked for.
    """
    if replace != bool(why.strip()):
        raise typer.BadParameter("--replace and --why belong together")
    place = open_workspace(workspace)
    secret = _new_passphrase() if passphrase_prompt else os.environ.get(_VARIABLE, "")
    if replace:
        _revoke_current(place, name, actor, why)
    key = make_key(place, name, role, acting(actor, "admin"), passphrase=secret)
    path = public_key_path(place, key)
    if as_json:
        print_json(_row(key) | {"file": str(path), "passphrase": bool(secret)})
        return
    say(f"key {key.keyid[:16]} of {key.name} as {key.role}")
    say(f"public key to hand out: {path}")
    if not secret:
        note(f"from now on, what {key.name} does here is signed in the ledger")


def list_keys(
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the keys that the ledger recorded, and where each private key is."""
    place = open_workspace(workspace)
    rows = [
        (key, private_key_path(place, key.keyid).is_file())
        for key in read_public_keys(place).values()
    ]
    if as_json:
        print_json({"keys": [_row(key) | {"here": here} for key, here in rows]})
        return
    if not rows:
        say("no keys. Make the first with `ranloop key new NAME --role approver`.")
        return
    print_table(
        ("key", "name", "role", "since", "state", "private key"),
        (
            (
                key.keyid[:16],
                key.name,
                key.role,
                key.created[:10],
                f"revoked {key.revoked[:10]}" if key.revoked else "valid",
                "here" if here else "elsewhere",
            )
            for key, here in rows
        ),
    )


def show(
    key: KeyArgument,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the file of a public key, for `ranloop verify --key` on another machine.

    What is printed is the file: `ranloop key show NAME > name.json`.
    """
    found = find_key(open_workspace(workspace), key)
    if as_json:
        print_json(_row(found))
        return
    say(format_public_key(found).decode("utf-8").rstrip("\n"))


def revoke(
    key: KeyArgument,
    why: Annotated[str, typer.Option("--why", help="Reason, kept in the ledger.")],
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that a key must not be trusted from now on; what it signed before stays."""
    if not why.strip():
        raise typer.BadParameter("--why needs a reason: the ledger records it")
    place = open_workspace(workspace)
    keyid = find_key(place, key).keyid
    entry = revoke_key(place, keyid, acting(actor, "admin"), why)
    found = find_key(place, keyid)
    if as_json:
        print_json(_row(found) | {"seq": entry.seq})
        return
    say(f"key {keyid[:16]} of {found.name} is revoked from {found.revoked} on")
    note(
        f"hand out {public_key_path(place, found)} again: everyone who verifies "
        "releases elsewhere learns of it only from there"
    )


def _revoke_current(
    place: WorkspacePaths, name: str, actor: str | None, why: str
) -> None:
    """Revoke the key that `name` has."""
    key = find_key(place, name)
    if key.name != name or key.revoked:
        raise DataError(
            f"{name} has no valid key to replace. Leave out --replace and --why."
        )
    revoke_key(place, key.keyid, acting(actor, "admin"), why)


def _new_passphrase() -> str:
    """Return a passphrase typed twice on a terminal, without echo."""
    if not sys.stdin.isatty():
        raise DataError(
            f"there is no terminal to ask for the passphrase. Set {_VARIABLE} instead."
        )
    typed = typer.prompt(
        "Passphrase", hide_input=True, confirmation_prompt=True, err=True
    )
    return str(typed)


def _row(key: PublicKey) -> dict[str, Any]:
    return key_file(key)
