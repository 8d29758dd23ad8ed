"""A workspace that is broken, closed or full: a clear way out, and nothing is lost."""

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import (
    DataError,
    EditedVersionError,
    LedgerError,
    LoopError,
    StoreError,
    UnknownLabelError,
    WorkspaceError,
    WriteError,
)
from loop.core.paths import WorkspacePaths, bundled
from tests.conftest import keep_first_version, shipped_workspace

Call = Callable[..., LoopError | None]
DEV = bundled() / "labels" / "demo" / "dev.jsonl"
VERDICTS = bundled() / "labels" / "demo" / "verdicts_1.yaml"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a workspace with the demo's dev cohort, its reference, and one run."""
    place = shipped_workspace(tmp_path_factory.mktemp("hostile") / "ws")
    keep_first_version(place)
    demo = bundled() / "labels" / "demo"
    for words in (
        ["cohort", "import", str(DEV), "--name", "demo_dev", "--role", "dev"],
        ["cohort", "votes", "demo_dev", str(demo / "votes_dev.csv")],
        ["run", "extractor", "--cohort", "demo_dev"],
    ):
        result = CliRunner().invoke(app, [*words, "-w", str(place.root)])
        assert result.exit_code == 0, result.output
    return place.root


@pytest.fixture
def ready(made: Path, tmp_path: Path) -> WorkspacePaths:
    """Copy that workspace for one test to break."""
    return WorkspacePaths(Path(shutil.copytree(made, tmp_path / "ws")))


@pytest.fixture
def call(ready: WorkspacePaths) -> Call:
    """Return a function that calls a command and gives back the error it raised."""

    def run(*words: str) -> LoopError | None:
        result = CliRunner().invoke(app, [*words, "-w", str(ready.root)])
        error = result.exception
        assert error is None or isinstance(error, LoopError | SystemExit), repr(error)
        return error if isinstance(error, LoopError) else None

    return run


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below `folder`, lock files aside."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


@contextmanager
def read_only(root: Path) -> Iterator[None]:
    """Take the right to write below `root` from this process, also from root."""
    user = os.geteuid()
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    for path in root.rglob("*"):
        if path.is_file():
            path.chmod(0o444)
    try:
        if user == 0:
            os.seteuid(65534)
        yield
    finally:
        if user == 0:
            os.seteuid(0)
        for folder in folders:
            folder.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["run", "extractor", "--cohort", "demo_dev"],
        ["revise", "extractor", "--cohort", "demo_dev", "--verdicts", VERDICTS.name],
        ["alias", "extractor@v1", "production", "--why", "because"],
        ["evaluate"],
        ["cohort", "import", DEV.name, "--name", "again", "--role", "dev"],
    ],
    ids=lambda words: words[0],
)
def test_read_only_workspace_is_named_and_unchanged(ready, words, monkeypatch):
    """The user learns which place cannot be written; nothing half-happens."""
    with tempfile.TemporaryDirectory(dir="/tmp") as open_to_all:
        os.chmod(open_to_all, 0o755)
        monkeypatch.chdir(open_to_all)
        for source in (DEV, VERDICTS):
            shutil.copyfile(source, source.name)
        place = Path(open_to_all) / "ws"
        shutil.copytree(ready.root, place)
        before = contents(place)
        # Warm imports: the process may not be able to read its own code later.
        CliRunner().invoke(app, [*words, "-w", str(ready.root)])
        with read_only(place):
            result = CliRunner().invoke(app, [*words, "-w", str(place)])
        assert isinstance(result.exception, WriteError | StoreError | WorkspaceError), (
            repr(result.exception)
        )
        assert str(place) in str(result.exception)
        assert contents(place) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["revise", "extractor", "--cohort", "demo_dev", "--verdicts", str(VERDICTS)],
        ["alias", "extractor@v1", "production", "--why", "because"],
        ["evaluate"],
    ],
    ids=lambda words: words[0],
)
def test_full_disk_leaves_versions_and_ledger_as_they_were(
    ready, call, words, monkeypatch
):
    """A write that fails is said to have failed, and the history stays whole."""
    before = contents(ready.prompts)
    real = os.fsync

    def full(handle: int) -> None:
        if "ws/prompts" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    error = call(*words)
    assert isinstance(error, WriteError)
    assert "disk is full" in str(error)
    assert contents(ready.prompts) == before


@pytest.mark.slow
def test_corrupt_store_says_what_is_and_is_not_lost(ready, call):
    """The user can move the file aside and knows what that costs."""
    raw = bytearray(ready.store.read_bytes())
    raw[:200] = b"\0" * 200
    for extra in ready.private.glob("store.db-*"):
        extra.unlink()
    ready.store.write_bytes(raw)
    error = call("run", "extractor", "--cohort", "demo_dev")
    assert isinstance(error, StoreError)
    assert str(ready.store) in str(error)
    assert ready.store.read_bytes() == bytes(raw)


@pytest.mark.slow
def test_store_of_a_newer_version_is_refused(ready, call):
    """An older ranloop must not write into a newer store."""
    with sqlite3.connect(ready.store) as connection:
        connection.execute("PRAGMA user_version = 9999")
    connection.close()
    error = call("evaluate")
    assert isinstance(error, StoreError)
    assert "newer" in str(error)


@pytest.mark.slow
def test_edited_version_is_refused_by_name(ready, call):
    """A committed version is immutable; the message says how to go on."""
    path = ready.prompts / "extractor" / "v1" / "user.jinja"
    path.write_text(path.read_text("utf-8") + "Be brave.\n", "utf-8")
    error = call("run", "extractor", "--cohort", "demo_dev")
    assert isinstance(error, EditedVersionError)
    assert "v1" in str(error)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["history", "revise", "evaluate"])
def test_broken_ledger_stops_everything_that_would_build_on_it(ready, call, verb):
    """Nothing is appended to a chain that does not hold."""
    more = {
        "history": ["extractor"],
        "revise": ["extractor", "--cohort", "demo_dev", "--verdicts", str(VERDICTS)],
        "evaluate": [],
    }
    raw = ready.ledger.read_text("utf-8").replace("plain", "grand", 1)
    ready.ledger.write_text(raw, "utf-8")
    error = call(verb, *more[verb])
    assert isinstance(error, LedgerError)
    assert "line 1" in str(error)
    assert ready.ledger.read_text("utf-8") == raw


@pytest.mark.slow
def test_edited_text_in_the_private_folder_is_refused_by_case(ready, call):
    """A run over texts that are not the cohort's would be about something else."""
    path = ready.private / "cases" / "demo_dev.jsonl"
    path.write_text(path.read_text("utf-8").replace("lung", "lunge", 1), "utf-8")
    error = call("run", "extractor", "--cohort", "demo_dev", "--limit", "100")
    assert isinstance(error, DataError)
    assert "demo-dev-" in str(error)
    assert "lunge" not in str(error)


@pytest.mark.slow
def test_verdict_on_an_unknown_label_or_case_changes_nothing(ready, call, tmp_path):
    """A typo in a verdict file is found before anything is written."""
    before = contents(ready.prompts)
    for name, text, kind in (
        ("label", "{label: fraktur, case: demo-dev-001, ", UnknownLabelError),
        ("case", "{label: fracture, case: nobody, ", DataError),
    ):
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"verdicts:\n- {text}judgement: model_wrong, terms: [x]}}\n")
        words = ["--cohort", "demo_dev", "--verdicts", str(path)]
        assert isinstance(call("revise", "extractor", *words), kind)
    assert contents(ready.prompts) == before


@pytest.mark.slow
def test_holdout_does_not_open_for_a_version_that_is_not_frozen(ready, call):
    """The last honest number must not leak into development."""
    holdout = bundled() / "labels" / "demo" / "holdout.jsonl"
    call("cohort", "import", str(holdout), "--name", "final", "--role", "holdout")
    error = call("run", "extractor", "--cohort", "final")
    assert isinstance(error, DataError)
    assert "frozen" in str(error)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["prompts/ledger.jsonl", ".ranloop/store.db"])
def test_document_never_overwrites_the_workspace(ready, call, target):
    """A slip in a file name must not cost the history."""
    before = contents(ready.root)
    error = call("evaluate", "--csv", str(ready.root / target))
    assert isinstance(error, DataError)
    assert "Name a file elsewhere" in str(error)
    assert contents(ready.prompts) == {
        name.removeprefix("prompts/"): raw
        for name, raw in before.items()
        if name.startswith("prompts/")
    }


@pytest.mark.slow
def test_alias_without_a_reason_is_a_usage_error(ready):
    """No traceback for an empty --why."""
    words = ["alias", "extractor@v1", "production", "--why", " "]
    result = CliRunner().invoke(app, [*words, "-w", str(ready.root)])
    assert result.exit_code == 2
