"""A corpus annotated on a Ray cluster: the same shards, whatever of it is killed."""

import csv
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from loop.core.errors import EngineError
from loop.core.paths import material
from loop.release import ray_makers
from loop.release.annotation import AnnotationOptions, annotate_corpus
from loop.release.load import find_request
from loop.run.shards import compare_annotations, read_manifest_of, shard_name
from tests.engines.scripted import Scripted, chat, serving

RELEASE = "extractor-v11"
FINDINGS = (
    "Small left pleural effusion. No pneumothorax.",
    "The heart is enlarged. Lungs are clear.",
    "Possible pneumonia in the right lower lobe.",
    "No acute cardiopulmonary abnormality.",
)
PLANTED = "Quillfeather"
"""A word of every text."""

pytestmark = [
    pytest.mark.external,
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path(sys.prefix, "bin", "ray").exists(), reason="Ray is not installed"
    ),
]


def write(path, number):
    """Write so many reports and return the path."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        made = csv.writer(stream)
        made.writerow(["id", "text"])
        for place in range(number):
            text = f"{FINDINGS[place % 4]} {PLANTED} {place}."
            made.writerow([f"c{place}", "" if place % 10 == 4 else text])
    return path


def command(*arguments):
    """Return a command of ranloop."""
    return [sys.executable, "-m", "loop", *map(str, arguments)]


def annotate(source, out, *more, expect=0):
    """Annotate in shards of a hundred rows; return what is told and said."""
    ended = subprocess.run(
        command("annotate", source, "--out", out, "--rows", 100, "--json", *more),
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ended.returncode == expect, ended.stderr
    return (json.loads(ended.stdout) if ended.stdout else {}), ended.stderr


def shards(out):
    """Return the numbers of the shards that are there."""
    return sorted(int(one.stem[-5:]) for one in Path(out).glob("part-*.parquet"))


def same(one, two):
    """Whether two annotations have the same bytes in every shard."""
    first, second = read_manifest_of(one), read_manifest_of(two)
    return [part.sha256 for part in first.shards] == [
        part.sha256 for part in second.shards
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Give 2,000 reports, and their annotation by one process without Ray."""
    folder = tmp_path_factory.mktemp("corpus")
    source, out = write(folder / "reports.csv", 2_000), folder / "plain"
    annotate(source, out, "--release", RELEASE)
    return source, out


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Node:
    """A node of a cluster on this machine, in a new process group."""

    def __init__(self, *arguments):
        """Start it; a node asks for the token of its cluster where it is told to."""
        self.process = subprocess.Popen(
            [
                *(Path(sys.prefix, "bin", "ray"), "start", "--block", "--num-cpus=1"),
                *("--disable-usage-stats", "--node-ip-address=127.0.0.1"),
                *("--object-store-memory=100000000", *arguments),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {"RAY_AUTH_MODE": "token"},
        )

    def kill(self):
        """Kill all of its processes at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def two_nodes(monkeypatch):
    """Give the address of a cluster with a head and another node, and that node."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="rl-", ignore_cleanup_errors=True) as own:
        nodes = [
            Node(
                *("--head", f"--port={port}", "--include-dashboard=false"),
                f"--temp-dir={own}",
            )
        ]
        try:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.2)
            nodes.append(Node(f"--address=127.0.0.1:{port}"))
            yield f"127.0.0.1:{port}", nodes[1]
        finally:
            for node in reversed(nodes):
                if node.process.poll() is None:
                    node.kill()


def clusters():
    """Return the folders of clusters; those of long names lie in /tmp."""
    bases = (Path(tempfile.gettempdir()), Path("/tmp"))
    return {one for base in bases for one in base.glob(f"{ray_makers._FOLDER}*")}


def test_ray_makes_the_same_shards_and_leaves_nothing(corpus, tmp_path):
    """Byte for byte; its folder is private, has no word of a report, and goes."""
    source, plain = corpus
    seen = {}
    before = clusters()
    process = subprocess.Popen(
        command(
            *("annotate", source, "--out", tmp_path / "out", "--rows", 100),
            *("--release", RELEASE, "--ray", "local", "--workers", 2),
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None:
        for folder in clusters() - before:
            seen |= look_into(folder)
        time.sleep(0.2)
    said = "".join(process.communicate())
    assert process.returncode == 0, said
    assert same(tmp_path / "out", plain)
    assert compare_annotations(plain, tmp_path / "out").differing == 0
    assert seen["mode"] == 0o700 and seen["files"] > 10
    assert not seen["planted"] and PLANTED not in said
    assert "DeprecationWarning" not in said
    assert clusters() <= before
    told, _ = annotate(source, tmp_path / "out", "--release", RELEASE, "--ray", "local")
    assert told["shards_made"] == 0


def look_into(folder):
    """Return mode and number of files of a folder, and those with the planted word."""
    try:
        mode = folder.stat().st_mode & 0o777
    except FileNotFoundError:
        return {}
    files, planted = 0, []
    for path in (Path(at, name) for at, _, names in os.walk(folder) for name in names):
        with suppress(OSError):
            if path.is_file():
                files += 1
                if PLANTED.encode() in path.read_bytes():
                    planted.append(path.name)
    return {"mode": mode, "files": files, "planted": planted} if files > 10 else {}


def test_a_node_that_is_lost_costs_nothing(two_nodes, corpus, tmp_path):
    """One of two is killed: the same shards, one outcome a row; then the driver is."""
    source, plain = corpus
    out = tmp_path / "out"
    address, second = two_nodes
    given = ("annotate", source, "--out", out, "--rows", 100, "--release", RELEASE)
    process = subprocess.Popen(
        command(*given, "--ray", address, "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(shards(out)) >= 2, process)
    second.kill()
    told, said = process.communicate(timeout=180)
    assert process.returncode == 0, said
    assert json.loads(told)["rows"] == 2_000 and PLANTED not in said
    assert same(out, plain)
    # A driver that is killed leaves whole shards, and the next one goes on.
    (out / shard_name(3)).unlink()
    (out / shard_name(17)).unlink()
    process = subprocess.Popen(command(*given, "--ray", address))
    wait_for(lambda: 3 in shards(out), process)
    process.kill()
    process.wait()
    told, _ = annotate(source, out, "--release", RELEASE, "--ray", address)
    assert told["shards_made"] <= 1
    assert same(out, plain)
    # Ray's own client is somewhere else, and cannot read the source.
    _, said = annotate(
        source, out, "--release", RELEASE, "--ray", f"ray://{address}", expect=1
    )
    assert "Give the command on a node of the cluster" in said


def wait_for(condition, process):
    """Wait until something is so while a process works."""
    end = time.monotonic() + 600
    while not condition():
        assert process.poll() is None, "it ended before"
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_driver_that_ray_ends_has_last_words(corpus, tmp_path):
    """Ray ends it without an exception once its node is killed; what is made stays."""
    source, plain = corpus
    out = tmp_path / "out"
    given = ("annotate", source, "--out", out, "--rows", 50, "--release", RELEASE)
    process = subprocess.Popen(
        command(*given, "--ray", "local", "--workers", 1),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(shards(out)) >= 1, process)
    for child in map(int, children(process.pid)):
        name = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0]
        if name.endswith(b"/raylet"):
            os.kill(child, signal.SIGKILL)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 1 and PLANTED not in said
    # Of a node that died Ray tells the driver, or ends it: whichever is first.
    ended = "this process ended before its work" in said
    assert ended or "nodes or workers were lost" in " ".join(said.split())
    made = len(shards(out))
    told, _ = annotate(source, out, "--release", RELEASE, "--rows", 50)
    assert told["rows"] == 2_000 and told["shards_made"] == 40 - made
    assert compare_annotations(plain, out).differing == 0


def children(pid):
    """Return the ids of the processes that one has started."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return " ".join(Path(one, "children").read_text() for one in threads).split()


TWICE = """
import json, sys
from pathlib import Path
from loop.core.paths import material
from loop.release.annotation import AnnotationOptions, annotate_corpus
from loop.release.load import find_request
from loop.run.asking import EngineOptions
source, out, engine = sys.argv[1:]
request = find_request(material(None), prompt="extractor@v11", engine=engine)
options = AnnotationOptions(
    ray="local", workers=1, rows=100, asking=EngineOptions(allow_unconstrained=True)
)
for _ in range(2):
    done = annotate_corpus(Path(source), Path(out), request, options=options)
    print(json.dumps(done.manifest.statuses), flush=True)
    sys.stdin.readline()
"""


def test_only_rows_without_an_answer_are_asked_again(tmp_path):
    """A shard is made anew of its earlier outcomes, and of what is answered now.

    Both times in one process: a cluster is started in it twice.
    """
    source, out = write(tmp_path / "reports.csv", 30), tmp_path / "out"
    labels = find_request(material(None), release=RELEASE).prompt.labels
    down = {f"{PLANTED} 3.", f"{PLANTED} 21."}

    def case(body):
        if any(word in json.dumps(body) for word in down):
            return 400, {"error": {"message": "no"}}
        return chat(json.dumps(dict.fromkeys(labels, "absent")))

    script = Scripted(case=case, other=case)
    with serving(script) as url:
        process = subprocess.Popen(
            [sys.executable, "-c", TWICE, source, out, f"openai:m@{url}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        told = json.loads(process.stdout.readline())
        assert told == {"answered": 25, "engine_failed": 2, "no_text": 3}
        first = count_cases(script)
        down.clear()
        rest, _ = process.communicate("\n\n", timeout=180)
        assert json.loads(rest) == {"answered": 27, "no_text": 3}
        assert count_cases(script) == first + 2


def count_cases(script):
    """Return how many requests held a report."""
    return sum(PLANTED in json.dumps(body) for _, body in script.seen)


POISONED = """
import os, sys
from loop.cli.main import run
from loop.release import ray_makers
base = ray_makers._ShardActor
def poisoned():
    class Poisoned(base):
        def _begin(self, task):
            super()._begin(task)
            if task.number == 1:
                os._exit(1)
    return Poisoned
ray_makers._ShardActor = poisoned()
run()
"""


def test_a_shard_that_kills_its_worker_is_not_tried_for_ever(tmp_path):
    """The others stay, and the error says what to do."""
    source = write(tmp_path / "reports.csv", 300)
    ended = subprocess.run(
        [
            *(sys.executable, "-c", POISONED, "annotate", str(source), "--rows", "100"),
            *("--release", RELEASE, "--ray", "local", "--out", str(tmp_path / "out")),
        ],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ended.returncode == 1 and ended.stdout == ""
    assert "part-00001.parquet ended its worker 4 times" in ended.stderr
    assert PLANTED not in ended.stderr and "Traceback" not in ended.stderr
    assert 1 not in shards(tmp_path / "out")


def test_a_workspace_is_sent_to_the_actors(workspace, corpus, tmp_path):
    """Its labels and settings are; no file of it needs to be on their nodes."""
    lexicon = workspace.labels / "cues"
    assert any(lexicon.iterdir())
    sent = ray_makers._pack(make_request(workspace), "127.0.0.1")
    assert {"labels/taxonomy.yaml", *cue_names(workspace)} <= sent.files.keys()
    assert not any(name.startswith("labels/cohorts") for name in sent.files)
    with sent.opened() as request:
        assert request.workspace != workspace
        with request.open() as runner:
            plan = request.plan(runner)
    with make_request(None).open() as runner:
        assert plan == make_request(None).plan(runner)
    old = sent._replace(ranloop="0.0.1")
    refused = pytest.raises(EngineError, match="Install the same on every node")
    with refused, old.opened():
        pass


def cue_names(workspace):
    """Return the names of its files of cues."""
    return {
        str(one.relative_to(workspace.root))
        for one in (workspace.labels / "cues").rglob("*")
        if one.is_file()
    }


def make_request(workspace):
    """Return what is asked about every row."""
    found = find_request(material(workspace), release=RELEASE)
    return ray_makers.AnnotationRequest(
        version=found.prompt,
        release=RELEASE,
        engine="rules",
        asking=AnnotationOptions().asking,
        workspace=workspace,
        text=False,
        rows=100,
    )


def test_a_node_that_is_another_machine_must_be_allowed():
    """By address or name, as a server must be; the driver's own machine is."""
    node = {"NodeManagerAddress": "10.1.2.3", "NodeManagerHostname": "GPU-7"}
    refused = pytest.raises(EngineError, match=r"(?s)case text stays.*- 10\.1\.2\.3")
    with refused:
        ray_makers._require_allowed(node, "10.1.2.2", ())
    with refused:
        ray_makers._require_allowed(node, "127.0.0.1", ("gpu-8", "10.1.2.4"))
    for hosts in (("10.1.2.3",), ("gpu-7",)):
        ray_makers._require_allowed(node, "10.1.2.2", hosts)
    ray_makers._require_allowed(node, "10.1.2.3", ())


def test_without_ray_or_a_cluster_it_is_said_what_lacks(monkeypatch, tmp_path):
    """Before anything is made."""
    source = write(tmp_path / "reports.csv", 3)
    request = find_request(material(None), release=RELEASE)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.data", None)
    options = AnnotationOptions(ray="local")
    with pytest.raises(EngineError, match=r"not installed\. .*pip install.*\[ray\]"):
        annotate_corpus(source, tmp_path / "out", request, options=options)
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    port = free_port()
    _, said = annotate(
        *(source, tmp_path / "out", "--release", RELEASE),
        *("--ray", f"127.0.0.1:{port}"),
        expect=1,
    )
    assert f"there is no Ray cluster at 127.0.0.1:{port}" in said
    assert "Traceback" not in said
