"""Every function of a served workbench, asked by every role with values of an attacker.

Run ``python -m tests.ui.hostile`` for the table of what came back.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import httpx
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.paths import WorkspacePaths
from tests.bench.workbench_client import config_in
from tests.ui.conftest import PASSWORD, PEOPLE, add_people
from tests.ui.forked import serving

MARK = "planted-7f3a"
"""Stands in every file that nobody may reach, and in no other."""

LIMIT_S = 20.0
"""What is not answered by then hangs."""


class Trap(NamedTuple):
    """A value that names something on the server's own disk or another machine."""

    name: str
    value: object


class Asked(NamedTuple):
    """One request and what came of it."""

    who: str
    function: str
    trap: str
    status: int
    """0 where no answer came in time."""

    spent_s: float
    text: str


def set_traps(workspace: WorkspacePaths, outside: Path) -> list[Trap]:
    """Plant files inside and outside a workspace; return values that name them."""
    secret = outside / "secret.csv"
    secret.write_text(f"case_id,text\n1,{MARK}\n", encoding="utf-8")
    secret.chmod(0o600)
    pipe = outside / "pipe.csv"
    os.mkfifo(pipe)
    inbox = workspace.private / "uploads"
    inbox.mkdir(exist_ok=True)
    link = inbox / "link.csv"
    link.symlink_to(secret)
    other = inbox / ("f" * 32) / ("e" * 32) / "other.csv"
    other.parent.mkdir(parents=True)
    other.write_text(f"case_id,text\n1,{MARK}\n", encoding="utf-8")
    texts = next((workspace.private / "cases").glob("*.jsonl"))
    paths = {
        "a file outside": secret,
        "case texts": texts,
        "the store": workspace.private / "store.db",
        "a link in the inbox": link,
        "another session's upload": other,
        "a pipe": pipe,
        "an endless device": Path("/dev/zero"),
        "another machine": "http://127.0.0.1:9/x.csv",
    }
    return [Trap(name, _file(str(path))) for name, path in paths.items()]


def _file(path: str) -> dict[str, object]:
    """Return what Gradio takes for a file."""
    return {"path": path, "meta": {"_type": "gradio.FileData"}, "orig_name": "a.csv"}


def functions_of(client: httpx.Client) -> dict[str, int]:
    """Return the number of values that each function takes, by name."""
    config = config_in(client.get("/").text)
    return {
        one["api_name"]: len(one["inputs"])
        for one in config["dependencies"]
        if one["backend_fn"]
    }


def sign_in(url: str, name: str) -> httpx.Client:
    """Return a client in which `name` has signed in."""
    client = httpx.Client(base_url=url, headers={"Origin": url}, timeout=LIMIT_S)
    client.post("/sign-in", data={"name": name, "password": PASSWORD})
    return client


def ask(
    client: httpx.Client, who: str, function: str, values: int, trap: Trap
) -> Asked:
    """Send a trap in place of every value, alone, in lists, and as the event's data."""
    shapes = (trap.value, [trap.value], {"value": trap.value})
    data = [shapes[number % len(shapes)] for number in range(max(values, 1))]
    body = {"data": data, "event_data": trap.value, "session_hash": tab_of(who)}
    start = time.perf_counter()
    try:
        answer = client.post(f"/gradio_api/run/{function}", json=body)
        status, text = answer.status_code, answer.text
    except httpx.HTTPError as error:
        status, text = 0, type(error).__name__
    return Asked(who, function, trap.name, status, time.perf_counter() - start, text)


def tab_of(who: str) -> str:
    """Return the name that a browser tab of `who` gives itself."""
    return f"tab-of-{who}".replace(" ", "-")


def ask_all(url: str, traps: list[Trap], people: tuple[str, ...]) -> list[Asked]:
    """Ask every function, as each of `people`, with every trap."""
    found = []
    for name in people:
        with closing(sign_in(url, name)) as client:
            for function, values in functions_of(client).items():
                found += [ask(client, name, function, values, t) for t in traps]
    return found


def copies_of(workspace: WorkspacePaths, planted: set[Path]) -> list[Path]:
    """Return the files below a workspace that hold what was planted, but are not it."""
    return [
        path
        for path in workspace.root.rglob("*")
        if path.is_file() and path not in planted and _holds_mark(path)
    ]


def _holds_mark(path: Path) -> bool:
    return MARK.encode() in path.read_bytes()


def planted_in(workspace: WorkspacePaths) -> set[Path]:
    """Return where `set_traps` left the mark inside a workspace."""
    return {
        path
        for path in (workspace.private / "uploads").rglob("*")
        if path.is_file() and _holds_mark(path)
    }


def main() -> None:
    """Print, for each role and trap, how many functions answered what, and how fast."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", nargs="*", default=(), help="traps to leave out")
    left_out = parser.parse_args().without
    with tempfile.TemporaryDirectory() as scratch:
        root, outside = Path(scratch) / "ws", Path(scratch) / "outside"
        outside.mkdir()
        CliRunner().invoke(app, ["demo", str(root), "--rounds", "0", "--json"])
        workspace = WorkspacePaths(root)
        add_people(workspace)
        with serving(workspace) as url:
            traps = set_traps(workspace, outside)
            planted = planted_in(workspace)
            traps = [one for one in traps if one.name not in left_out]
            found = ask_all(url, traps, tuple(PEOPLE))
            copies = copies_of(workspace, planted)
    print(f"{len({a.function for a in found})} functions x {len(PEOPLE)} people")
    for trap in traps:
        mine = [one for one in found if one.trap == trap.name]
        statuses = Counter(one.status for one in mine)
        slowest = max(one.spent_s for one in mine)
        print(f"{trap.name:26}{json.dumps(statuses):30}slowest {slowest:6.2f} s")
    print(f"copies of what nobody may reach: {len(copies)}")


if __name__ == "__main__":
    main()
