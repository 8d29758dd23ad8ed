"""A workspace that is broken, closed or full: a clear way out, and nothing is lost."""

import errno
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
from loop.score import ran_score
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


TEXT = "Zebra quokka effusion, unchanged since Numbat"
"""Words that stand in no message of ours; where a text may be taken for something."""

WORDS = ("zebra", "quokka", "numbat")
OPENI = "uid,MeSH,Problems,image,indication,comparison,findings,impression\n"
ROW = f'P-Zebra-1,"{TEXT}"'


def _json_lines(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


PLANTED: dict[str, tuple[dict[str, str], list[str]]] = {
    f"import {name}": ({name: content}, ["cohort", "import", name, "-n", "new", *more])
    for name, content, more in (
        ("headerless.csv", f'{ROW}\nP-Zebra-2,"{TEXT}"\n', ()),
        ("headerless.tsv", f"P-Zebra-1\t{TEXT}\nP-Zebra-2\t{TEXT}\n", ()),
        ("named.csv", f'{ROW}\nP-Zebra-2,"{TEXT}"\n', ("--id-column", "study")),
        ("wrong.csv", f"case_id,report\n{ROW}\n", ("--id-column", TEXT)),
        ("format.csv", f"case_id,report\n{ROW}\n", ("--format", TEXT)),
        ("role.csv", f"case_id,report\n{ROW}\n", ("--role", TEXT)),
        ("language.csv", f"case_id,report\n{ROW}\n", ("--encoding", TEXT)),
        ("exclude.csv", f"case_id,report\n{ROW}\n", ("--exclude", TEXT)),
        ("twice.csv", f'"{TEXT}","{TEXT}"\n1,2\n', ()),
        ("ids.csv", f'case_id,report\n"{TEXT}","{TEXT}"\n', ()),
        ("same.csv", 'case_id,report\n"Zebra quokka",a b\n"Zebra quokka",c d\n', ()),
        ("mark.csv", f'case_id,report,edema\na1,b,"{TEXT}"\n', ()),
        ("tongue.csv", f'case_id,report,language\na1,b,"{TEXT}"\n', ()),
        ("cells.csv", f'case_id,report\na1,"b","{TEXT}"\n', ()),
        ("quote.csv", f'case_id,report\na1,"{TEXT}\n', ()),
        ("keys.jsonl", _json_lines({TEXT: 1, "Zebra": TEXT}), ()),
        (
            "new.jsonl",
            _json_lines({"id": "a", "text": "b"}, {"id": "b", TEXT: "c"}),
            (),
        ),
        ("list.jsonl", _json_lines({"id": "a", "text": [TEXT]}), ()),
        ("array.jsonl", json.dumps([{"id": "a", "text": "b"}, TEXT]) + "\n", ()),
        ("broken.jsonl", '{"id": "a", "text": "' + TEXT + "\n", ()),
        ("again.jsonl", f'{{"id": "a", "{TEXT}": 1, "{TEXT}": 2}}\n', ()),
        ("text.xlsx", TEXT, ()),
        ("text.parquet", TEXT, ()),
    )
} | {
    "votes without header": (
        {"v.csv": f'ann,P-Zebra-1,"{TEXT}",present\n'},
        ["cohort", "votes", "demo_dev", "v.csv"],
    ),
    **{
        f"votes {column}": (
            {
                "v.csv": "reader,case_id,label,value\n"
                + ",".join(
                    f'"{TEXT}"' if each == column else cell
                    for each, cell in (
                        ("reader", "ann"),
                        ("case_id", "none-there"),
                        ("label", "edema"),
                        ("value", "present"),
                    )
                )
                + "\n"
            },
            ["cohort", "votes", "demo_dev", "v.csv"],
        )
        for column in ("reader", "case_id", "label", "value")
    },
    "score without header": (
        {"r.csv": f"{ROW}\n", "c.csv": f"{ROW}\n"},
        ["score", "-r", "r.csv", "-c", "c.csv"],
    ),
    "score without common ids": (
        {
            "r.csv": 'id,text\n"Zebra quokka",clear\n',
            "c.csv": 'id,text\n"Quokka numbat",clear\n',
        },
        ["score", "-r", "r.csv", "-c", "c.csv"],
    ),
    "score with texts as ids": (
        {"r.csv": f'id,text\n"{TEXT}",clear\n', "c.csv": f"id,text\n{ROW}\n"},
        ["score", "-r", "r.csv", "-c", "c.csv"],
    ),
    "score with a text as label": (
        {"r.csv": f'id,edema\na,"{TEXT}"\n', "c.csv": "id,edema\na,1\n"},
        ["score", "-r", "r.csv", "-c", "c.csv"],
    ),
    "score with two contents": (
        {
            "r.csv": 'id,text\n"Zebra 1",a\n"Zebra 1",b\n',
            "c.csv": "id,text\na,b\n",
        },
        ["score", "-r", "r.csv", "-c", "c.csv"],
    ),
    "score a column": (
        {"r.csv": f"id,text\n{ROW}\n", "c.csv": f"id,text\n{ROW}\n"},
        ["score", "-r", "r.csv", "-c", "c.csv", "--text-column", TEXT],
    ),
    "ratings without header": (
        {"s.csv": "id,system,f1\na,b,1\n", "t.csv": f"{ROW},ann,1\n"},
        ["meta-eval", "s.csv", "-r", "t.csv"],
    ),
    "a rating": (
        {
            "s.csv": "id,system,f1\na,b,1\n",
            "t.csv": f'id,system,rater,score\na,b,ann,"{TEXT}"\n',
        },
        ["meta-eval", "s.csv", "-r", "t.csv"],
    ),
    "two ratings": (
        {
            "s.csv": "id,system,f1\na,b,1\n",
            "t.csv": "id,system,rater,score\n"
            + "".join(f'"Zebra 1",b,"Quokka 2",{n}\n' for n in (1, 2)),
        },
        ["meta-eval", "s.csv", "-r", "t.csv"],
    ),
    "a score": (
        {
            "s.csv": f'id,system,f1\na,b,"{TEXT}"\n',
            "t.csv": "id,system,rater,score\na,b,ann,1\n",
        },
        ["meta-eval", "s.csv", "-r", "t.csv"],
    ),
    "no shared scores": (
        {
            "s.csv": 'id,system,f1\n"Zebra 1","Quokka 1",1\n',
            "t.csv": 'id,system,rater,score\n"Numbat 1",b,ann,1\n',
        },
        ["meta-eval", "s.csv", "-r", "t.csv"],
    ),
    **{
        f"verdicts {place}": (
            {"w.yaml": content},
            ["verdict", "add", "w.yaml", "--run", "latest", "--dry-run"],
        )
        for place, content in (
            ("as text", TEXT),
            ("broken", f"verdicts: [{TEXT}: *{WORDS[0]} quokka\n"),
            ("with another key", f"verdicts:\n- {{case: a, '{TEXT}': b}}\n"),
            (
                "of another case",
                f"verdicts:\n- case: {TEXT}\n  label: edema\n  judgement: model_wrong",
            ),
            (
                "of another label",
                f"verdicts:\n- {{case: a, label: '{TEXT}', judgement: model_wrong}}\n",
            ),
            (
                "with another judgement",
                f"verdicts:\n- {{case: a, label: edema, judgement: '{TEXT}'}}\n",
            ),
            ("with a key twice", f"verdicts:\n- {{'{TEXT}': a, '{TEXT}': b}}\n"),
        )
    },
    **{
        f"verdict table {place}": (
            {"w.csv": content},
            ["verdict", "add", "w.csv", "--run", "latest", "--dry-run"],
        )
        for place, content in (
            ("without header", f"{ROW},model_wrong\n" * 2),
            ("with a column twice", f'case,"{TEXT}","{TEXT}"\n1,2,3\n'),
            (
                "with an anchor",
                f'case,label,judgement,anchor\na,edema,model_wrong,"{TEXT}"\n',
            ),
        )
    },
    **{
        f"answers {place}": (
            {"a.csv": content},
            ["reading", "answer", "demo_dev", "a.csv", "--reader", "ann"],
        )
        for place, content in (
            ("without header", f"{ROW},present\n"),
            ("of a text", f'case_id,label,value\n"{TEXT}",edema,present\n'),
            (
                "of another label",
                f'case_id,label,value\ndemo-dev-001,"{TEXT}",present\n',
            ),
        )
    },
    **{
        f"{file} {place}": ({f"ws/{file}": content, "r.csv": OPENI}, words)
        for file, words in (
            ("labels/taxonomy.yaml", ["lint", "extractor"]),
            ("labels/protocol.yaml", ["evaluate", "latest"]),
            (
                "labels/crosswalks/openi_mesh.yaml",
                ["cohort", "import", "r.csv", "-n", "new"],
            ),
            ("labels/cues/en.yaml", ["run", "extractor", "-c", "demo_dev"]),
            (".ranloop/config.yaml", ["doctor"]),
            ("prompts/extractor/v1/guides.yaml", ["lint", "extractor@v1"]),
            ("prompts/extractor/v1/prompt.yaml", ["lint", "extractor@v1"]),
        )
        for place, content in (
            ("as text", TEXT),
            ("with another key", f"'{TEXT}': [1]\n"),
            ("with another value", f"version: '{TEXT}'\nlabels: '{TEXT}'\n"),
            ("with a key twice", f"'{TEXT}': 1\n'{TEXT}': 2\n"),
            ("with an alias", "a: *ZebraQuokkaNumbat\n"),
            ("not YAML", f"{TEXT}: [\n"),
        )
    },
    "published table": ({"t.csv": f"{ROW},0.5\n"}, ["audit-tables", "t.csv"]),
    "notes of a table": (
        {
            "t.csv": "Label,Precision,Recall,F1\nA,0.500,1.000,0.667\n",
            "n.yaml": f"'{TEXT}': 1\n",
        },
        ["audit-tables", "t.csv", "--notes", "n.yaml"],
    ),
    "a broken release": ({"rel/release.json": TEXT}, ["verify", "rel"]),
    "an envelope": ({"rel/statement.dsse.json": f'{{"{TEXT}": 1}}'}, ["verify", "rel"]),
}


@pytest.fixture(scope="module")
def apart(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy that workspace once for all inputs that hold words."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copytree(made, folder / "ws")
    return folder


@pytest.mark.parametrize("name", PLANTED)
def test_no_message_and_no_state_holds_words_of_an_input(
    name: str,
    apart: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Patients and reports may stand in any cell, header, key or id of a file."""
    files, words = PLANTED[name]
    monkeypatch.chdir(apart)
    before = {file: _read(apart / file) for file in files}
    known = contents(apart / "ws")
    try:
        for file, content in files.items():
            (apart / file).parent.mkdir(parents=True, exist_ok=True)
            (apart / file).write_text(content, "utf-8")
        inside = [] if words[0] in _ANYWHERE else ["-w", "ws"]
        result = CliRunner().invoke(app, [*words, *inside])
    finally:
        for file, old in before.items():
            (apart / file).unlink() if old is None else (apart / file).write_bytes(old)
    said = f"{result.output}{result.exception or ''}{caplog.text}".casefold()
    assert said.strip()
    assert result.exception is None or isinstance(
        result.exception, LoopError | SystemExit
    ), repr(result.exception)
    assert [word for word in WORDS if word in said] == []
    now = contents(apart / "ws")
    for file in now.keys() - known.keys() | {f for f in now if now[f] != known.get(f)}:
        assert not any(word.encode() in now[file].lower() for word in WORDS), file


_ANYWHERE = ("verify", "audit-tables")


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


@pytest.mark.parametrize(
    ("references", "candidates", "options"),
    [
        ({TEXT: "clear"}, ["clear"], {}),
        ({TEXT: "a"}, {TEXT: "b"}, {}),
        (["a"], {TEXT: ["b"], "": ["c"]}, {}),
        (["a"], {TEXT: ["b", "c"]}, {}),
        ({"a": "x"}, {"s": {"Zebra quokka": "y"}}, {}),
        ([[TEXT]], ["a"], {}),
        (["a"], ["a"], {"zero_division": TEXT}),
        (["a"], ["a"], {"seed": TEXT}),
        (["a"], ["a"], {"extractor": TEXT}),
        (["a"], ["a"], {TEXT: 1}),
    ],
)
def test_no_error_in_python_holds_words_of_an_argument(
    references: Any, candidates: Any, options: Any
) -> None:
    """A notebook keeps its errors, and is sent to colleagues."""
    with pytest.raises((LoopError, ValueError, TypeError)) as refused:
        ran_score(references, candidates, **options)
    said = str(refused.value).casefold()
    assert said and not [word for word in WORDS if word in said]
