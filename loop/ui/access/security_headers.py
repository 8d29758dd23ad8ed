"""Headers of every answer: what a browser may do with it, and that it keeps nothing.

References
----------
W3C, Content Security Policy Level 3; OWASP, HTTP Security Response Headers Cheat Sheet.
"""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

# Gradio's page has inline scripts with changing content, and its HTML component makes
# functions from strings: without 'unsafe-inline' and 'unsafe-eval' it stays empty.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)

_ALWAYS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not "no-referrer": with that, browsers hide the origin of our own forms as well.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": (
        "camera=(), microphone=(), geolocation=(), display-capture=(), usb=(), "
        "payment=()"
    ),
}

_HASHED = "/assets/"
"""Files whose name changes with their content."""


def with_security_headers(path: str, send: Send) -> Send:
    """Return `send` such that every answer carries the headers it must.

    Gradio's permissions for other origins are taken away: there are none.
    """

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name in [n for n in headers if n.startswith("access-control-")]:
                del headers[name]
            for name, value in _ALWAYS.items():
                headers[name] = value
            headers.setdefault("content-security-policy", POLICY)
            headers["cache-control"] = _keep(path, int(message["status"]))
        await send(message)

    return sending


def _keep(path: str, status: int) -> str:
    """Return how long a browser may keep an answer: program files only."""
    if status in (200, 304) and path.startswith(_HASHED):
        return "public, max-age=31536000, immutable"
    if status in (200, 304) and path.startswith("/static/"):
        return "public, max-age=3600"
    return "no-store"
