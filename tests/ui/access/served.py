"""A gate on a real server, and requests of which every byte can be chosen."""

from contextlib import contextmanager
from http.client import HTTPConnection
from socket import create_connection, create_server
from threading import Thread
from typing import NamedTuple
from urllib.parse import urlencode

import uvicorn

from loop.ui.access.http_protocol import server_config

GOOD = "correct horse battery"


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict
    text: str


class Client:
    """Asks one server, with the cookie it was given."""

    def __init__(self, port):
        self.port = port
        self.origin = f"http://127.0.0.1:{port}"
        self.cookie = ""

    def ask(self, method, path, body=None, headers=None):
        """Send a request as it is and return the answer; never follows."""
        with self.asked(method, path, body, headers) as came:
            found = {name.lower(): value for name, value in came.getheaders()}
            return Answer(came.status, found, came.read().decode())

    @contextmanager
    def asked(self, method, path, body=None, headers=None):
        """Send a request and yield the response before it is read."""
        given = {"Cookie": self.cookie} if self.cookie else {}
        if method != "GET":
            given["Origin"] = self.origin
        given |= headers or {}
        if body is not None and "Transfer-Encoding" not in given:
            given["Content-Length"] = str(len(body))
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host="Host" in given)
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            with connection.getresponse() as came:
                yield came
        finally:
            connection.close()

    @contextmanager
    def sent(self, head, body=b""):
        """Send the first bytes of a request and yield the connection, which is open.

        The headers that every request needs are added to those in `head`.
        """
        lines = [head, f"Host: 127.0.0.1:{self.port}", f"Origin: {self.origin}"]
        if self.cookie:
            lines.append(f"Cookie: {self.cookie}")
        with create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall("\r\n".join([*lines, "\r\n"]).encode() + body)
            yield connection

    def listen(self, path):
        """Ask for a stream."""
        return self.asked("GET", path)

    def get(self, path, **headers):
        """Ask for a page."""
        return self.ask("GET", path, headers=headers)

    def post(self, path, body=b"{}", **headers):
        """Send an event as our own page does."""
        return self.ask("POST", path, body, headers)

    def sign_in(self, name, password=GOOD, **more):
        """Hand in the form and keep the cookie it gives."""
        form = {"name": name, "password": password} | more
        answer = self.post("/sign-in", urlencode(form, errors="replace").encode())
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer


@contextmanager
def serving(app, **options):
    """Serve an ASGI application as ranloop does, on a free port, and yield the port.

    What the server logs, pytest's `caplog` has.
    """
    listener = create_server(("127.0.0.1", 0))
    settings = {"log_config": None, "timeout_graceful_shutdown": 1} | options
    server = uvicorn.Server(server_config(app, **settings))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
