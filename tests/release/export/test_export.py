"""An export is whole or not there, keeps texts private, and stands in the ledger."""

import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from loop import __version__
from loop.core.errors import ConflictError, DataError, WriteError
from loop.core.files import folder_beside, move_folder
from loop.core.ledger import read_ledger
from loop.core.records import Item
from loop.release.export import load_export
from loop.release.export import requests as requests_module
from loop.release.export.export import write_export
from loop.release.export.records import CaseSource, ExportTarget
from tests.release.export.scenes import (
    ACT,
    PER_LABEL,
    SECRET,
    TEXTS,
    VERSION,
    exported,
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
    assert mode(folder / "requests-0001.jsonl") == 0o600
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
    assert entry.payload["export"] == manifest["digest"]
    assert entry.payload["digest"] == VERSION.digest
    assert entry.payload["cases"]["count"] == 3
    assert SECRET not in workspace.ledger.read_text()


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
    with pytest.raises(ConflictError):
        exported(workspace, tmp_path / "x", "jinja")


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
    with pytest.raises(DataError, match="--model"):
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
    monkeypatch.setattr(requests_module, "MAX_BYTES", 10)
    folder = exported(workspace, tmp_path / "o", "openai-batch", texts=TEXTS)
    assert len(list(folder.glob("requests-*.jsonl"))) == len(TEXTS)


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


def test_the_evidence_of_a_release_is_not_lent_to_another_model(workspace, tmp_path):
    """The export says what was measured, and that nothing was without a release."""
    released = {"release": "tiny-v1", "engine": "rules"}
    write_export(workspace, spec("vllm-batch", **released), tmp_path / "x", ACT)
    remarks = load_export(tmp_path / "x").manifest.remarks
    assert "is of the engine rules; this asks Some/Model" in remarks[0]
    folder = exported(workspace, tmp_path / "y", "jinja")
    assert "is exported as a version" in load_export(folder).manifest.remarks[0]
