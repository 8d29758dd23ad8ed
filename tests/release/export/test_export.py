"""An export is whole or not there, keeps texts private, and stands in the ledger."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from loop import __version__
from loop.core.digests import digest_bytes, digest_json, digest_texts
from loop.core.errors import ConflictError, DataError, WriteError
from loop.core.files import folder_beside, move_folder
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Item
from loop.labels.cohort import CohortCase, cases_digest
from loop.labels.shot_pool import SYNTHETIC
from loop.prompts.catalog import read_version
from loop.prompts.shot_records import ShotKind, ShotPin, Shots, ShotScore
from loop.release.export import load_export
from loop.release.export import requests as requests_module
from loop.release.export.export import _refuse_private_shots, build, write_export
from loop.release.export.records import CaseSource, ExportTarget
from loop.release.export.requests import RequestFiles
from tests.release.export.scenes import (
    ACT,
    PER_LABEL,
    SECRET,
    TEXTS,
    VERSION,
    exported,
    origin,
    spec,
)


def mode(path):
    """Return the permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("version", [VERSION, PER_LABEL], ids=["joint", "per_label"])
@pytest.mark.parametrize("target", ["jinja", "openai-batch", "vllm-batch"])
@pytest.mark.parametrize("texts", [None, TEXTS], ids=["none", "cases"])
def test_loading_it_back_gives_the_same_digest(
    workspace, tmp_path, version, target, texts
):
    """For every target, with and without cases."""
    if texts and target == "jinja":
        texts = None
    folder = exported(workspace, tmp_path / "x", target, version=version, texts=texts)
    loaded = load_export(folder)
    assert loaded.prompt_digest == version.digest
    assert loaded.version.guides == version.guides
    assert loaded.target is ExportTarget(target)
    assert loaded.cases == (len(texts) if texts else 0)
    assert loaded.manifest.tool == __version__
    assert str(loaded.manifest.prompt.digest) in (folder / "ranloop.json").read_text()


def test_files_with_texts_are_their_owners_alone(workspace, tmp_path):
    """And git takes none of them along."""
    folder = exported(workspace, tmp_path / "x", "vllm-batch", texts=TEXTS)
    assert mode(folder) == 0o700
    for name in ("requests-0001.jsonl", ".gitignore", "ranloop.json"):
        assert mode(folder / name) == 0o600
    before = os.umask(0o022)
    try:
        open_to_all = exported(workspace, tmp_path / "y", "vllm-batch")
    finally:
        os.umask(before)
    assert mode(open_to_all) == 0o755
    assert mode(open_to_all / "ranloop.json") == 0o644
    assert (folder / ".gitignore").read_text() == "*\n"
    others = [
        path
        for path in folder.rglob("*")
        if path.is_file() and path.name != "requests-0001.jsonl"
    ]
    assert not any(SECRET in path.read_text("utf-8") for path in others)


def test_the_ledger_says_who_exported_what_and_never_a_text(workspace, tmp_path):
    """Texts left the private folder: somebody will ask."""
    folder = exported(workspace, tmp_path / "x", "vllm-batch", texts=TEXTS)
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.action, entry.subject) == ("exported", "tiny@v1")
    assert (entry.actor, entry.reason) == ("Dr A. Example", "for the ward")
    manifest = json.loads((folder / "ranloop.json").read_text())
    assert entry.payload == {
        "target": "vllm-batch",
        "digest": VERSION.digest,
        "export": manifest["digest"],
        "release": "",
        "model": "Some/Model",
        "cases": manifest["cases"],
    }
    assert entry.payload["cases"]["count"] == 3
    assert SECRET not in workspace.ledger.read_text()
    exported(workspace, tmp_path / "y", "jinja", release="tiny-v1", engine="rules")
    payload = read_ledger(workspace.ledger)[-1].payload
    assert [payload[name] for name in ("target", "release", "cases")] == [
        "jinja",
        "tiny-v1",
        None,
    ]


CASES = {
    "origin": "cohort dev",
    "count": 2,
    "digest": cases_digest(
        [
            CohortCase("a", "", digest_texts({"text": "Clear."})),
            CohortCase("b", "", digest_texts({"text": "Edema."})),
        ]
    ),
}
STRICT = (
    "Differs from how ranloop asks: the schema has no maxLength, which strict mode "
    "does not know, and the limit is called max_completion_tokens.",
    "prompt_cache_key holds the prompt's digest. OpenAI takes metadata in a request "
    "only where it may store the texts, so give batch_metadata to the batch itself.",
)


def test_the_manifest_says_all_there_is_to_know(workspace, tmp_path):
    """Whoever loads an export has this file and may not have ranloop."""
    texts = {"a": "Clear.", "b": "Edema."}
    folder = exported(
        workspace, tmp_path / "x", "openai-batch", version=PER_LABEL, texts=texts
    )
    manifest = json.loads((folder / "ranloop.json").read_text())
    digest, files = manifest.pop("digest"), manifest["files"]
    assert digest == digest_json(manifest)
    assert list(files) == [
        ".gitignore",
        "prompt/guides.yaml",
        "prompt/prompt.yaml",
        "prompt/system.jinja",
        "prompt/user.jinja",
        "requests-0001.jsonl",
    ]
    assert manifest == {
        "format": "ranloop-export/1",
        "target": "openai-batch",
        "prompt": {
            "name": "tiny",
            "version": 1,
            "ref": "tiny@v1",
            "digest": PER_LABEL.digest,
        },
        "release": "",
        "engine": "",
        "contract": "label_values/1",
        "plan": "per_label",
        "inputs": ["text"],
        "labels": ["edema", "fracture"],
        "asking": {
            "model": "Some/Model",
            "temperature": 0.0,
            "max_tokens": 300,
            "seed": 7,
            "extra": {},
        },
        "cases": CASES,
        "batch_metadata": {
            "ranloop_prompt": "tiny@v1",
            "ranloop_digest": PER_LABEL.digest,
        },
        "remarks": [
            "tiny@v1 is exported as a version: no evidence goes with it. Name a "
            "release (PROMPT-vN) to export that.",
            "One call a label: each has files of its own.",
            *STRICT,
        ],
        "tool": __version__,
        "files": {
            name: digest_bytes((folder / name).read_bytes()) for name in sorted(files)
        },
    }


@pytest.mark.parametrize(
    ("target", "version", "files"),
    [
        ("jinja", VERSION, ["schema.json", "system.jinja", "user.jinja"]),
        (
            "jinja",
            PER_LABEL,
            [
                *(f"edema.{one}" for one in ("schema.json", "system.jinja")),
                "edema.user.jinja",
                *(f"fracture.{one}" for one in ("schema.json", "system.jinja")),
                "fracture.user.jinja",
            ],
        ),
        ("vllm-batch", VERSION, ["request.jsonl.jinja"]),
        (
            "vllm-batch",
            PER_LABEL,
            ["edema.request.jsonl.jinja", "fracture.request.jsonl.jinja"],
        ),
    ],
)
def test_files_are_named_after_what_is_in_them(
    workspace, tmp_path, target, version, files
):
    """The manual names them; the label stands first where each has a call."""
    folder = exported(workspace, tmp_path / "x", target, version=version)
    loaded = load_export(folder)
    assert [
        name for name in loaded.manifest.files if not name.startswith("prompt/")
    ] == files
    assert loaded.manifest.batch_metadata == {}
    assert loaded.manifest.cases is None


def test_a_folder_that_holds_something_is_never_written_over(workspace, tmp_path):
    """Nor is the ledger told; an empty folder is taken."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine.txt").write_text("mine")
    before = workspace.ledger.read_bytes()
    with pytest.raises(ConflictError, match="Name another folder"):
        exported(workspace, tmp_path / "x", "jinja")
    assert workspace.ledger.read_bytes() == before
    (tmp_path / "empty").mkdir()
    assert load_export(exported(workspace, tmp_path / "empty", "jinja"))


def test_a_link_is_not_followed(workspace, tmp_path):
    """It could lead anywhere."""
    (tmp_path / "real").mkdir()
    (tmp_path / "x").symlink_to(tmp_path / "real")
    (tmp_path / "y").symlink_to(tmp_path / "nowhere")
    for name in ("x", "y"):
        with pytest.raises(ConflictError, match=f"/{name} exists already"):
            exported(workspace, tmp_path / name, "jinja")


@pytest.mark.parametrize("place", ["prompts", "labels", ".ranloop", "reports/releases"])
def test_the_workspaces_own_folders_are_refused(workspace, place):
    """An export there would be taken for a version or a release."""
    with pytest.raises(DataError, match="own files"):
        exported(workspace, workspace.root / place / "x", "jinja")


def test_cases_that_break_off_leave_nothing_behind(workspace, tmp_path):
    """No half of an export, no text, no entry."""

    def broken():
        yield Item(id="a", variables={"text": SECRET})
        raise DataError("row 2 is wrong. Correct it.")

    before = workspace.ledger.read_bytes()
    wanted = replace(
        spec("vllm-batch"), cases=CaseSource(origin="file x.csv", items=broken())
    )
    with pytest.raises(DataError, match="row 2"):
        write_export(workspace, wanted, tmp_path / "out" / "x", ACT)
    assert list((tmp_path / "out").iterdir()) == []
    assert workspace.ledger.read_bytes() == before


KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from loop.core.paths import WorkspacePaths
from loop.release.export.records import CaseSource
from loop.release.export.export import write_export
from tests.release.export.scenes import ACT, TEXTS, items, spec

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def dying():
    yield from items()[:2]
    die()

wanted = spec("vllm-batch", texts=TEXTS)
if sys.argv[3] == "requests":
    wanted = replace(wanted, cases=CaseSource(origin="cohort dev", items=dying()))
write_export(WorkspacePaths(Path(sys.argv[1])), wanted, Path(sys.argv[2]), ACT, now=die)
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["requests", "ledger"])
def test_what_a_killed_export_left_is_removed_by_the_next(workspace, tmp_path, step):
    """It holds texts; what is being written at the same time is left alone."""
    out = tmp_path / "out" / "x"
    before = workspace.ledger.read_bytes()
    command = [sys.executable, "-c", KILLED, str(workspace.root), str(out), step]
    done = subprocess.run(command, check=False, cwd=Path(__file__).parents[3])
    assert done.returncode == -signal.SIGKILL
    assert [path.name[:10] for path in out.parent.iterdir()] == [".x.export-"]
    assert workspace.ledger.read_bytes() == before
    with folder_beside(out, "export") as other:
        exported(workspace, out, "vllm-batch", texts=TEXTS)
        assert set(out.parent.iterdir()) == {out, other}
    assert load_export(out).cases == 3


def test_two_at_once_make_one_export(workspace, tmp_path):
    """Whoever comes second is told, and nothing is mixed."""
    with folder_beside(tmp_path / "x") as folder:
        (folder / "mine").write_text("")
        exported(workspace, tmp_path / "x", "jinja")
        with pytest.raises(ConflictError, match="appeared while"):
            move_folder(folder, tmp_path / "x", taken="appeared while")
    assert load_export(tmp_path / "x").prompt_digest == VERSION.digest


def test_no_cases_are_refused(workspace, tmp_path):
    """An empty batch is a mistake."""
    wanted = replace(
        spec("vllm-batch"), cases=CaseSource(origin="file x.csv", items=[])
    )
    with pytest.raises(DataError, match=r"file x\.csv has no cases"):
        write_export(workspace, wanted, tmp_path / "x", ACT)


def test_cases_for_a_target_that_holds_none_are_refused(workspace, tmp_path):
    """Templates are for any case."""
    with pytest.raises(DataError, match="openai-batch or vllm-batch"):
        exported(workspace, tmp_path / "x", "jinja", texts=TEXTS)


def test_a_batch_without_a_model_is_refused(workspace, tmp_path):
    """Every request names one."""
    wanted = spec("openai-batch")
    asking = replace(wanted.origin.asking, model="")
    wanted = replace(wanted, origin=replace(wanted.origin, asking=asking))
    with pytest.raises(DataError, match=r"^every request of a batch.*--model"):
        write_export(workspace, wanted, tmp_path / "x", ACT)


def test_what_openai_takes_in_one_file_is_not_exceeded(
    workspace, tmp_path, monkeypatch
):
    """More goes into the next; vLLM takes any number."""
    monkeypatch.setattr(requests_module, "MAX_REQUESTS", 2)
    texts = {f"c{number}": f"text {number}" for number in range(5)}
    folder = exported(workspace, tmp_path / "o", "openai-batch", texts=texts)
    parts = sorted(folder.glob("requests-*.jsonl"))
    assert [len(path.read_bytes().splitlines()) for path in parts] == [2, 2, 1]
    assert load_export(folder).cases == 5
    folder = exported(workspace, tmp_path / "v", "vllm-batch", texts=texts)
    assert len(list(folder.glob("requests-*.jsonl"))) == 1


def test_a_file_of_requests_has_a_largest_size(workspace, tmp_path, monkeypatch):
    """Bytes count as well; a larger request has a file of its own."""
    assert (requests_module.MAX_REQUESTS, requests_module.MAX_BYTES) == (50_000, 10**8)
    texts = {name: f"Text {name}." for name in "abcd"}
    folder = exported(workspace, tmp_path / "x", "openai-batch", texts=texts)
    lines = (folder / "requests-0001.jsonl").read_bytes().splitlines(keepends=True)
    (size,) = {len(line) for line in lines}
    for limit, counts in ((2 * size, [2, 2]), (2 * size - 1, [1] * 4), (10, [1] * 4)):
        monkeypatch.setattr(requests_module, "MAX_BYTES", limit)
        folder = exported(workspace, tmp_path / f"{limit}", "openai-batch", texts=texts)
        found = [path.read_bytes() for path in sorted(folder.glob("requests-*.jsonl"))]
        assert [part.count(b"\n") for part in found] == counts
        assert b"".join(found) == b"".join(lines)
        assert load_export(folder).cases == 4


@pytest.mark.parametrize("count", [200_000, 11], ids=["writing", "closing"])
def test_requests_that_a_full_disk_cuts_are_a_write_error(tmp_path, count):
    """Half a batch must not look like one; a folder that is not there says so too."""
    free = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, free[1]))
    try:
        with (
            pytest.raises(WriteError, match=r"requests-0001\.jsonl"),
            RequestFiles(tmp_path, bounded=False) as files,
        ):
            files.write(b"x" * count)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, free)
    with (
        pytest.raises(WriteError, match=r"requests-0001\.jsonl"),
        RequestFiles(tmp_path / "nowhere", bounded=False),
    ):
        pass


def test_a_place_that_cannot_be_written_says_so(workspace, tmp_path):
    """Nothing was changed."""
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="Nothing was changed"):
        exported(workspace, tmp_path / "file" / "x", "jinja")


def test_a_label_that_leads_elsewhere_is_refused(workspace, tmp_path):
    """Labels become names of files."""
    guide = replace(VERSION.guides[0], label="../../x")
    odd = replace(PER_LABEL, guides=(guide,))
    with pytest.raises(DataError, match="cannot be part of a file's name"):
        exported(workspace, tmp_path / "x", "jinja", version=odd)
    assert os.listdir(tmp_path) == ["ws"]


@pytest.mark.parametrize(
    ("engine", "asked"),
    [
        ("rules", "; this asks Some/Model"),
        ("vllm:Some/Model#chest", ""),
        ("vllm:Some/Mode", "; this asks Some/Model"),
    ],
)
def test_the_evidence_of_a_release_is_not_lent_to_another_model(
    workspace, tmp_path, engine, asked
):
    """The export says what was measured, and that nothing was without a release."""
    released = {"release": "tiny-v1", "engine": engine}
    folder = exported(workspace, tmp_path / "x", "vllm-batch", **released)
    loaded = load_export(folder)
    assert (loaded.release, loaded.manifest.engine) == ("tiny-v1", engine)
    assert loaded.manifest.remarks == [
        f"The evidence of tiny-v1 is of the engine {engine}{asked}. It says nothing of "
        "another model or other settings.",
        "Start the runner as ranloop does: vllm run-batch --structured-outputs-config "
        '\'{"backend":"xgrammar","disable_any_whitespace":true}\'',
    ]
    folder = exported(workspace, tmp_path / "y", "jinja")
    assert load_export(folder).manifest.remarks == [
        "tiny@v1 is exported as a version: no evidence goes with it. Name a release "
        "(PROMPT-vN) to export that.",
        "Render with autoescape off: a prompt is no HTML. Ask for an answer that "
        "follows schema.json.",
    ]


def test_a_release_without_a_model_of_its_own_asks_for_none(workspace, tmp_path):
    """A template leaves the model to whoever loads it, and says so of the engine."""
    wanted = spec("jinja", release="tiny-v1", engine="rules")
    asking = replace(wanted.origin.asking, model="")
    wanted = replace(wanted, origin=replace(wanted.origin, asking=asking))
    manifest = write_export(workspace, wanted, tmp_path / "x", ACT)
    assert manifest.remarks[0].startswith(
        "The evidence of tiny-v1 is of the engine rules. It says"
    )
    batch = replace(wanted, target=ExportTarget.VLLM_BATCH)
    with pytest.raises(DataError) as refused:
        write_export(workspace, batch, tmp_path / "y", ACT)
    assert str(refused.value) == (
        "tiny-v1 was released with rules, and every request of a batch names the model "
        "to ask. Name it with --model."
    )


@pytest.mark.parametrize(
    ("pool", "kind", "refused"),
    [
        (SYNTHETIC, ShotKind.RANDOM, False),
        (SYNTHETIC, ShotKind.INJECTED, True),
        ("ours", ShotKind.RANDOM, True),
    ],
)
def test_examples_that_are_texts_of_the_workspace_stay_there(pool, kind, refused):
    """Of the pool that ships, injected ones are made from texts of a run."""
    shots = Shots(
        pool=pool,
        kind=kind,
        n=1,
        seed=0,
        score=ShotScore.LINEAR,
        pins=(ShotPin("a", "0" * 64),),
    )
    version = replace(VERSION, shots=shots)
    if not refused:
        _refuse_private_shots(version)
        return
    with pytest.raises(DataError) as caught:
        build(origin(version), ExportTarget.JINJA, with_cases=False)
    assert str(caught.value) == (
        f"tiny@v1 shows examples of the pool '{pool}' to the model, and an export "
        "would carry their texts out of the private part of the workspace. Export a "
        "version without them (`ranloop prompt shots tiny none`) or with those of the "
        "pool synthetic, or ask by `ranloop run`."
    )


def test_what_is_asked_in_stages_is_exported_as_templates_alone():
    """Its last question holds answers that nobody has yet."""
    version = read_version(WorkspacePaths(bundled()), "two_pass@v1")
    staged = origin(version)
    made = build(staged, ExportTarget.JINJA, with_cases=False)
    assert made.form is None
    assert sorted(made.files) == ["schema.json", "system.jinja", "user.jinja"]
    for target in (ExportTarget.VLLM_BATCH, ExportTarget.DSPY):
        with pytest.raises(DataError) as refused:
            build(staged, target, with_cases=False)
        first = version.stages[0].ref
        assert str(refused.value) == (
            "two_pass@v1 asks in stages: what is asked last holds what was answered "
            "first (listed_errors), so its requests cannot be written beforehand. "
            f"Export it to jinja, and {first} too."
        )
