"""Whether a request was made by our own pages: a browser tells, and does not lie.

References
----------
W3C, Fetch Metadata Request Headers; OWASP, Cross-Site Request Forgery Prevention Cheat
Sheet: verifying the origin with standard headers.
"""

from __future__ import annotations

from starlette.requests import Request

from loop.ui.access.rules import PAGE, SIGN_IN

_SAFE = frozenset({"GET", "HEAD"})


def from_elsewhere(request: Request) -> bool:
    """Return whether another site's page made `request`, or may have.

    What changes something must say that it comes from here; a program has to as well,
    with an ``Origin`` header. What only reads must not say that it comes from
    elsewhere, unless a link was followed to a page: another port of this machine is
    another site too.
    """
    if request.method in _SAFE:
        return _reads_from_elsewhere(request)
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site not in (None, "same-origin"):
        return True
    if origin in (None, "null"):
        return site is None
    here = f"{request.scope['scheme']}://{request.headers.get('host', '')}"
    return origin.lower() != here.lower()


def _reads_from_elsewhere(request: Request) -> bool:
    site = request.headers.get("sec-fetch-site")
    followed = request.headers.get("sec-fetch-mode") == "navigate"
    page = followed and request.scope["path"] in (PAGE, SIGN_IN)
    return site not in (None, "same-origin", "none") and not page
