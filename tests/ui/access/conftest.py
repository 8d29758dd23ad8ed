"""A workspace with users, a clock, and an application behind the gate."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from loop.core.people import passwords
from loop.core.people.passwords import Cost
from loop.core.people.roster import add_user
from loop.core.people.users import UserRole
from loop.ui.access.access import Access
from loop.ui.access.gate import Sizes, build_gate
from loop.ui.access.hosts import Hosts
from tests.clock import Clock
from tests.ui.access.served import GOOD, Client, serving


@pytest.fixture
def time():
    """Return a clock to move by hand."""
    return Clock()


@pytest.fixture
def users(workspace, monkeypatch):
    """Add a user of each role, named after it, whose hashes are quick to make."""
    monkeypatch.setattr(passwords, "COST", Cost(n=2**4, r=1, p=1))
    passwords._nobody.cache_clear()
    for role in UserRole:
        add_user(workspace, role.value, (role,), GOOD)
    yield workspace
    passwords._nobody.cache_clear()


@pytest.fixture
def access(users, time):
    """Return the access to the workspace with users."""
    return Access(users, Hosts(bound="127.0.0.1"), now=time)


@pytest.fixture
def client(access):
    """Return a client of a served application behind the gate."""
    gate = build_gate(Behind(access), access, sizes=Sizes(call=1000, upload=5000))
    with serving(gate) as port:
        yield Client(port)


class Behind:
    """An application that answers everything, and says who asks."""

    def __init__(self, access):
        self.access = access
        self.app = Starlette(
            routes=[
                Route("/gradio_api/heartbeat/{page}", self.stream),
                Route("/{rest:path}", self.answer, methods=["GET", "POST", "OPTIONS"]),
            ]
        )

    async def __call__(self, scope, receive, send):
        """Serve a request."""
        await self.app(scope, receive, send)

    async def answer(self, request):
        """Say what was asked, by whom, with how long a body."""
        body = await request.body()
        seen = {
            "path": request.url.path,
            "who": self.access.who(request),
            "length": len(body),
            "hearsay": request.headers.get("x-forwarded-host"),
        }
        allow = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public"}
        return JSONResponse(seen, headers=allow)

    async def stream(self, request):
        """Send an event, wait for one more question, send on and on."""

        async def events():
            while True:
                yield "data: here\n\n"
                await asyncio.sleep(0.01)

        return StreamingResponse(events(), media_type="text/event-stream")
