"""The verb ``review``: the workbench in the browser."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    WorkspaceOption,
    acting,
    open_workspace,
    print_json,
    say,
)
from loop.core.errors import DataError


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("review")(review)


def review(
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", "-p", min=0, max=65535, help="Port; 0: a free one."),
    ] = 7860,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="Host name browsers use, where it is not --host."),
    ] = None,
    sign_in: Annotated[
        bool,
        typer.Option("--sign-in", help="Ask for a password even on this machine."),
    ] = False,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="TLS certificate, PEM.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Private key of the certificate, PEM.")
    ] = None,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the workbench: review failing cases, label blind, revise, compare versions.

    Listens on this machine only unless --host says otherwise; people sign in with the
    names that `ranloop user add` made. With at most one such name, and on this machine
    only, nobody is asked. Stop it with Ctrl-C: everything is saved as it is given.
    """
    from loop.ui.access.access import Access
    from loop.ui.serve import Address, build_app, opened_desk, serve

    if (certificate is None) != (key is None):
        raise typer.BadParameter("--certificate and --key belong together")
    place = open_workspace(workspace)
    access = Access.open(
        place,
        host=host,
        names=tuple(name or ()),
        sign_in=sign_in or None,
        local=acting(actor).name,
    )
    with _listening(host, port) as listener, opened_desk(place, access) as desk:
        app = build_app(desk)
        scheme = "https" if certificate else "http"
        url = f"{scheme}://{_shown(host)}:{listener.getsockname()[1]}/"
        if as_json:
            print_json({"url": url, "workspace": str(place.root)})
        else:
            say(f"workbench of {place.root}: {url}")
            say("stop it with Ctrl-C; everything is saved as it is given")
        serve(app, Address(listener, certificate, key))


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that nobody else can take the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise DataError(
            f"cannot listen on {host}, port {port}: {error.strerror}. Name another "
            "port with --port, or 0 for a free one."
        ) from error


def _shown(host: str) -> str:
    """Return the host as a browser writes it."""
    return f"[{host}]" if ":" in host else host
