"""What stands before the whole application and lets through what may pass."""

from __future__ import annotations

import json
import logging
import re
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loop.core.errors import DataError, LoopError
from loop.core.people.users import PermissionRefused, SignInRequired, User
from loop.ui.access.access import Access
from loop.ui.access.bodies import BODY_LIMITS, Arrival, Body, BodyLimits
from loop.ui.access.cookies import token_of
from loop.ui.access.origin import from_elsewhere
from loop.ui.access.rules import (
    DOWNLOAD,
    HEARTBEAT,
    PAGE,
    RUN,
    SIGN_IN,
    SIGN_OUT,
    UPLOAD,
    AccessRule,
    Need,
    find_rule,
)
from loop.ui.access.security_headers import with_security_headers
from loop.ui.access.sign_in import UNREADABLE, Door, Notice, to_sign_in
from loop.ui.error_log import log_bug

_LOG = logging.getLogger("loop.ui.access")

_SAFE = frozenset({"GET", "HEAD"})
_LENGTH = re.compile(r"[0-9]{1,15}", re.ASCII)
_TAB = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FORWARDED = (b"forwarded", b"x-forwarded-", b"x-gradio-server")
"""Headers that the front end would believe about where it is; the server knows."""

_BYPASSED = (
    "This server is used through its proxy, which encrypts. Use the proxy's address; "
    "other proxies are named with ranloop review --proxy."
)
_ANOTHER = "this tab was opened by another person. Load the page again."
_ELSEWHERE = "this did not come from a page of ranloop"
_FAULT = "a fault in ranloop; its place is in the log"


class Sizes(NamedTuple):
    """Longest request bodies, bytes."""

    form: int = 8 * 1024
    """The sign-in form."""

    call: int = 2 * 1024 * 1024
    """The values of an event."""

    upload: int = 200 * 1024 * 1024
    """An uploaded file with what is around it."""


SIZES = Sizes()


class AccessGate:
    """An ASGI application before another one: nothing passes that is not allowed."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        sizes: Sizes,
        limits: BodyLimits = BODY_LIMITS,
    ) -> None:
        self._app = app
        self._access = access
        self._door = Door(access)
        self._sizes = sizes
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have the application answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            # Nothing here speaks over a WebSocket.
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = self._body(scope, receive)
        established = self._access.hosts.proxies.established(scope)
        request = Request(established, body.receive)
        send = with_security_headers(scope["path"], send)
        answer: Response | None
        if self._access.hosts.bypassed(*_connection(scope)):
            answer = PlainTextResponse(_BYPASSED, status_code=403)
        else:
            answer = await self._answer(request, body)
        if answer is not None:
            await answer(request.scope, receive, send)
        elif body.arrival is not Arrival.CUT:
            await self._pass(request, body, self._watched(request, send))

    def _body(self, scope: Scope, receive: Receive) -> Body:
        if scope["method"] in _SAFE:
            return Body(receive)
        uploaded = scope["path"] == UPLOAD
        rate = self._limits.upload_rate if uploaded else 0.0
        return Body(receive, self._limits.whole_s, rate)

    async def _answer(self, request: Request, body: Body) -> Response | None:
        """Return the gate's own answer; None when the application shall answer."""
        rule = self._rule(request)
        if isinstance(rule, Response):
            return rule
        if rule.need is Need.OWN:
            return await self._own(request, body)
        if rule.need is Need.NOTHING:
            return None
        try:
            user = self._user(request, rule)
        except LoopError as error:
            return self._refused(request, error)
        if rule.use:
            self._access.touch(token_of(request))
        return await self._claimed(request, body, user)

    async def _pass(self, request: Request, body: Body, send: Send) -> None:
        """Have the application answer; what breaks it is logged by its place only.

        The server would print the error, and with it what was sent: clinical text.
        """
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            if body.arrival is Arrival.LATE and not begun:
                # Whatever it makes of half a body: the answer is that it was late.
                return
            begun = True
            await send(message)

        scope = _strip_forwarded_headers(request.scope)
        try:
            await self._app(scope, request.receive, sending)
        except Exception as error:  # noqa: BLE001  the boundary to the browser
            if body.arrival not in (Arrival.LATE, Arrival.CUT):
                log_bug(_LOG, error)
                if not begun:
                    answer = self._said(request, 500, _FAULT)
                    await answer(request.scope, request.receive, send)
        if body.arrival is Arrival.LATE and not begun:
            await _late()(request.scope, request.receive, send)

    def _rule(self, request: Request) -> AccessRule | Response:
        """Return the rule for a well-formed request of our own, or the refusal."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._access.hosts.knows(hosts[0]):
            return PlainTextResponse(
                "This server does not go by that name. Use the address that ranloop "
                "review printed, or start it with --name.",
                status_code=400,
            )
        rule = find_rule(request.method, request.scope["path"], request.query_params)
        if rule is None:
            return PlainTextResponse("There is nothing here.", status_code=404)
        if from_elsewhere(request):
            return self._said(request, 403, _ELSEWHERE + self._unnamed_proxy(request))
        return self._oversized(request, rule) or rule

    def _unnamed_proxy(self, request: Request) -> str:
        """Return what to do if a proxy was not believed; nothing when none is there."""
        forwarded = "x-forwarded-proto" in request.headers
        hint = "; name a proxy that stands before it with ranloop review --proxy"
        return hint if forwarded and not self._access.hosts.proxies else ""

    def _oversized(self, request: Request, rule: AccessRule) -> Response | None:
        """Return the refusal of a body that is too long, or does not say how long."""
        if request.method in _SAFE:
            return None
        length = request.headers.get("content-length", "")
        if "transfer-encoding" in request.headers or not _LENGTH.fullmatch(length):
            return _refusal(411, "say how long the content is")
        most = self._sizes.form if rule.need is Need.OWN else self._sizes.call
        if request.scope["path"] == UPLOAD:
            most = self._sizes.upload
        if int(length) > most:
            return _refusal(413, f"longer than {most} bytes")
        return None

    def _user(self, request: Request, rule: AccessRule) -> User:
        if rule.right is None:
            return self._access.user_of(request)
        return self._access.require(request, rule.right)

    def _refused(self, request: Request, error: LoopError) -> Response:
        """Return what somebody is told who may not do what they ask for."""
        if isinstance(error, SignInRequired):
            if _is_seen(request):
                return to_sign_in(request, begun=self._access.no_longer_alone)
            return _refusal(401, "sign in again")
        if isinstance(error, PermissionRefused):
            return self._said(request, 403, str(error))
        _LOG.error("nobody is let in: %s", error)
        if _is_seen(request):
            return self._door.say(UNREADABLE)
        return _refusal(503, "the list of users cannot be read just now")

    def _said(self, request: Request, status: int, text: str) -> Response:
        """Return a refusal: a page for a person, JSON for a script."""
        if _is_seen(request):
            return self._door.say(Notice(f"{text[0].upper()}{text[1:]}", status=status))
        return _refusal(status, text)

    async def _claimed(
        self, request: Request, body: Body, user: User
    ) -> Response | None:
        """Return the refusal of a browser tab that is not the user's, or malformed.

        An event's body is read for it, and given to the application afterwards.
        """
        path = request.scope["path"]
        tabs: list[object] = []
        if path.startswith(HEARTBEAT):
            tabs = [path.removeprefix(HEARTBEAT)]
        elif path.startswith(RUN):
            raw = await body.read()
            if body.arrival is not Arrival.WHOLE:
                return _late() if body.arrival is Arrival.LATE else None
            try:
                tabs = _tabs_of(raw)
            except ValueError:
                return _refusal(400, "this is no event of a page of ranloop")
        for tab in tabs:
            if not isinstance(tab, str) or not _TAB.fullmatch(tab):
                return _refusal(400, "this is no tab with a page of ranloop")
            if not self._access.claim(tab, user):
                return _refusal(403, _ANOTHER)
        return None

    async def _own(self, request: Request, body: Body) -> Response | None:
        """Return a page of the gate itself; None when nobody is there any more."""
        if request.scope["path"] == SIGN_OUT:
            return await self._door.leave(request)
        if request.method in _SAFE:
            return await self._door.show(request)
        form = await body.read()
        if body.arrival is Arrival.WHOLE:
            return await self._door.take(request, form)
        return _late() if body.arrival is Arrival.LATE else None

    def _watched(self, request: Request, send: Send) -> Send:
        """Return `send` such that an answer without end ends with its session."""
        endless, cut = False, False

        async def sending(message: Message) -> None:
            nonlocal endless, cut
            if cut:
                return
            if message["type"] == "http.response.start":
                endless = "text/event-stream" in Headers(scope=message).get(
                    "content-type", ""
                )
            elif endless and not self._open(request):
                cut = True
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        return sending

    def _open(self, request: Request) -> bool:
        try:
            self._access.user_of(request)
        except (SignInRequired, DataError):
            return False
        return True


def build_gate(
    app: ASGIApp,
    access: Access,
    *,
    sizes: Sizes = SIZES,
    limits: BodyLimits = BODY_LIMITS,
) -> ASGIApp:
    """Return `app` behind the gate: deny by default, sign-in, same origin, headers."""
    return AccessGate(app, access, sizes, limits)


def _connection(scope: Scope) -> tuple[str, str]:
    """Return the other end of a connection and its scheme, whatever a proxy says."""
    client = scope.get("client")
    return (client[0] if client else "", scope["scheme"])


def _is_seen(request: Request) -> bool:
    """Return whether a person asks for a page, and not a page's own script."""
    path = request.scope["path"]
    followed = path == PAGE or path.startswith(DOWNLOAD)
    return path == SIGN_IN or (request.method in _SAFE and followed)


def _tabs_of(event: bytes) -> list[object]:
    """Return the browser tab that an event says it is from; scripts have none.

    Raises
    ------
    ValueError
        The event is no JSON object.
    """
    try:
        said = json.loads(event)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(said, dict):
        raise ValueError("no object")
    tab = said.get("session_hash")
    return [] if tab is None else [tab]


def _refusal(status: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, status_code=status)


def _late() -> Response:
    """Return what is said of a body that did not arrive, which ends the connection."""
    answer = _refusal(408, "the content did not arrive in time. Try again")
    answer.headers["connection"] = "close"
    return answer


def _strip_forwarded_headers(scope: Scope) -> Scope:
    kept = [pair for pair in scope["headers"] if not pair[0].startswith(_FORWARDED)]
    return {**scope, "headers": kept}
