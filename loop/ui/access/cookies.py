"""The cookie that holds a session's token."""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.responses import Response


def cookie_name(connection: HTTPConnection) -> str:
    """Return the cookie's name: browsers do not keep the ports of a host apart.

    Over HTTPS the name itself forbids that another host or plain HTTP sets it.
    """
    server = connection.scope.get("server")
    port = (server[1] if server else None) or 0
    prefix = "__Host-" if _secure(connection) else ""
    return f"{prefix}ranloop-{port}"


def token_of(connection: HTTPConnection) -> str:
    """Return the token that came with a request; empty when there is none."""
    return connection.cookies.get(cookie_name(connection), "")


def give_token(response: Response, connection: HTTPConnection, token: str) -> None:
    """Have the browser keep `token` until it is closed, out of reach of scripts."""
    response.set_cookie(
        cookie_name(connection),
        token,
        path="/",
        secure=_secure(connection),
        httponly=True,
        samesite="strict",
    )


def take_token(response: Response, connection: HTTPConnection) -> None:
    """Have the browser forget its token."""
    response.delete_cookie(
        cookie_name(connection),
        path="/",
        secure=_secure(connection),
        httponly=True,
        samesite="strict",
    )


def _secure(connection: HTTPConnection) -> bool:
    return bool(connection.scope["scheme"] == "https")
