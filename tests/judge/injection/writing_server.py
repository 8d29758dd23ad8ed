"""A model that writes errors as told, and a server of it that counts: LOG PAUSE PORT.

Every request is logged before it is answered; what comes after PAUSE others is not.
"""

import json
import re
import sys
import time
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from tests.servers.answers import completion, to_schema

_SENTENCES = re.compile(r"<sentences>\n(.*?)\n</sentences>", re.DOTALL)
_REPORT = re.compile(r"<report>\n(.*?)\n</report>", re.DOTALL)
_NUMBER = re.compile(r"Number of changes: (\d)")


def change(sentence, original, modified, **more):
    """Return one stated change."""
    said = {"explanation": "It is told.", "severity": "", "harm_potential": ""}
    return {
        "sentence_index": sentence,
        "original": original,
        "modified": modified,
        **said,
        **more,
    }


def rewrite(report, *changes):
    """Return an answer."""
    return json.dumps({"modified_report": report, "changes_detail": changes})


def plausible(said=True, reason="ok"):
    """Return an answer of a validator."""
    return json.dumps({"plausible": said, "reason": reason})


def leave_out(prompt):
    """Return a right answer to the prompt of an omission: the first sentences go."""
    (report,), (listed,) = _REPORT.findall(prompt), _SENTENCES.findall(prompt)
    number = int(_NUMBER.search(prompt)[1])
    lines = [one.partition(": ")[2] for one in listed.splitlines()]
    said = [change(n, one, "") for n, one in enumerate(lines[:number])]
    for one in lines[:number]:
        report = report.replace(f"{one} ", "", 1)
    return rewrite(report, *said)


def answer(prompt):
    """Return a right answer, of the writer or of the validator."""
    return plausible() if "<changes>" in prompt else leave_out(prompt)


class Handler(BaseHTTPRequestHandler):
    """Answers chat requests, one thread a connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """List the one model."""
        data = {"object": "list", "data": [{"id": "tiny", "object": "model"}]}
        self._send(data)

    def do_POST(self):
        """Answer, unless this is the request to be held."""
        size = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(size))
        prompt = "\n".join(one["content"] for one in request["messages"])
        server = self.server
        if "<report>" not in prompt:
            schema = request.get("response_format", {}).get("json_schema", {})
            text = json.dumps(to_schema(schema.get("schema", {"type": "object"})))
            self._send(completion(text))
            return
        with server.turn:
            server.count += 1
            held = server.count > server.pause >= 0
            with server.log.open("a") as log:
                log.write(sha256(prompt.encode()).hexdigest() + "\n")
        if held:
            time.sleep(60)
        self._send(completion(answer(prompt)))

    def _send(self, data):
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Keep quiet."""


def main():
    """Serve on the port, 0 for any free one, and print which."""
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[3])), Handler)
    server.log, server.pause = Path(sys.argv[1]), int(sys.argv[2])
    server.count, server.turn = 0, Lock()
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
