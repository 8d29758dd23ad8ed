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
    note,
    open_workspace,
    print_json,
    say,
)
from loop.core.errors import DataError, LoopError


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
    proxy: Annotated[
        list[str] | None,
        typer.Option("--proxy", help="Trusted TLS proxy: IP address or network."),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Serve other machines without TLS."),
    ] = False,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the workbench in a browser.

    Review failing cases, read blind, revise prompts and compare versions. The server
    listens on this machine only, unless --host says otherwise. People sign in with
    the names made by `ranloop user add`; with at most one such name, and on this
    machine only, nobody is asked to. Stop it with Ctrl-C: everything is saved at once.

    Other machines need TLS: give --certificate and --key, or name the proxy that
    provides it with --proxy (repeatable). X-Forwarded-For and X-Forwarded-Proto are
    believed from named proxies only. With --insecure there is no TLS: passwords and
    case texts then travel unencrypted.
    """
    from loop.ui.access.access import Access
    from loop.ui.access.hosts import is_loopback
    from loop.ui.access.proxies import Proxies
    from loop.ui.serve import Address, build_app, opened_context, serve

    if (certificate is None) != (key is None):
        raise typer.BadParameter("--certificate and --key belong together")
    try:
        proxies = Proxies.parse(proxy or ())
    except ValueError as error:
        raise typer.BadParameter(f"--proxy: {error}") from error
    place = open_workspace(workspace)
    access = Access.open(
        place,
        host=host,
        names=tuple(name or ()),
        proxies=proxies,
        sign_in=sign_in or None,
        local=acting(actor).name,
    )
    if not (certificate or proxies or is_loopback(host)):
        _without_tls(host, insecure=insecure)
    with _listening(host, port) as listener, opened_context(place, access) as context:
        app = build_app(context)
        scheme = "https" if certificate else "http"
        url = f"{scheme}://{_shown(host)}:{listener.getsockname()[1]}/"

        def announce() -> None:
            if as_json:
                print_json({"url": url, "workspace": str(place.root)})
            else:
                say(f"workbench of {place.root}: {url}")
                say("stop it with Ctrl-C; everything is saved as it is given")

        serve(app, Address(listener, certificate, key), announce)


def _without_tls(host: str, *, insecure: bool) -> None:
    """Refuse to serve other machines unencrypted; warn where it was asked for.

    Raises
    ------
    LoopError
        It was not.
    """
    if insecure:
        note(
            f"warning: other machines can reach {host or 'this server'} and there is "
            "no TLS: passwords and case texts travel unencrypted"
        )
        return
    raise LoopError(
        f"other machines can reach {host or 'this server'}, and without TLS passwords "
        "and case texts would travel unencrypted. Give --certificate and --key, name "
        "the proxy that does TLS with --proxy, or accept it with --insecure."
    )


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
