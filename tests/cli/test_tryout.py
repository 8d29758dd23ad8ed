"""The verb try: side by side in 80 columns, inert, private, and stopped by a person."""

import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from loop.cli.console import INTERRUPTED_EXIT
from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.records import Completion
from loop.engines import base
from loop.prompts.catalog import read_version
from loop.review.revise.edit import guide_text
from loop.review.revise.pasted import find_synthetic
from tests.engines.scripted import Scripted, events, serving
from tests.review.revise.conftest import setting as setting
from tests.review.revise.conftest import store as store
from tests.review.revise.conftest import wavering as wavering
from tests.review.revise.stepping import FLUID, USELESS, begin
from tests.servers.answers import plain_answer
from tests.servers.process import ROOT


@pytest.fixture
def call(setting):
    """Return a function that runs the verb and gives back what it printed."""

    def run(*words, **options):
        place = ["-w", str(setting.workspace.root)]
        done = CliRunner().invoke(app, ["try", *words, *place], **options)
        if isinstance(done.exception, Exception):
            raise done.exception
        return done

    return run


@pytest.fixture
def draft(setting, store):
    """Begin a draft that fixes four cases."""
    return begin(setting, store, FLUID).draft.ref


def test_a_case_is_shown_side_by_side(call, draft):
    """What is right, what both answer, what the draft changes, and why."""
    told = call(draft, "--case", "f2").stdout
    assert "pleural_effusion   present  absent  present  fixed" in told
    assert "pleural_effusion, parent: absent, without evidence" in told
    assert (
        "pleural_effusion, draft: present, [Fluid layers at the left base] at 0-29"
        in told
    )
    assert "term 'fluid ... base'; stated" in told
    assert "alike\n  absent: cardiomegaly\n" in told
    assert "[Fluid layers at the left base], study 2." in told
    assert max(map(len, told.splitlines())) <= 80


def test_a_version_without_a_parent_says_what_it_finds_and_why(call):
    """There is nothing to hold it against, so what is not absent comes first."""
    told = call("tiny@v1", "--text", "-", input="Cardiomegaly. Clear lungs.").stdout
    assert "label          right is       v1\n" in told
    assert "cardiomegaly  not known  present\n" in told
    assert "cardiomegaly, v1: present, [Cardiomegaly] at 0-12" in told
    assert "otherwise\n  absent: pleural_effusion\n" in told
    told = call("tiny@v1", "--text", "-", input="Clear lungs.").stdout
    assert "\nnothing is found in it\n" in told
    words = ("tiny@v1", "--text", "-", "--label", "cardiomegaly")
    told = call(*words, input="Clear lungs.").stdout
    assert "cardiomegaly  not known  absent\n" in told
    assert "nothing is found in it" not in told


def test_json_is_one_object_with_the_text(call, draft):
    """A program gets everything, nothing cut."""
    data = json.loads(call(draft, "--case", "f2", "--json").stdout)
    assert data["labels"][0] == {
        "label": "pleural_effusion",
        "expected": "present",
        "before": ["absent"],
        "after": ["present"],
        "differs": True,
    }
    assert data["text"] == "Fluid layers at the left base, study 2."
    field = data["answers"]["after"][0]["fields"]["pleural_effusion"]
    assert field == {"value": "present", "spans": [[0, 29]]}


def test_pasted_words_do_nothing_to_the_terminal(call, draft, setting):
    """Control characters and text directions are spelled out, and no case is named."""
    words = "Fluid \x1b[31mat the\u202e base. <b>No</b> cardiomegaly.\n"
    told = call(draft, "--text", "-", input=words).stdout
    assert "\\x1b[31m" in told and "\\u202e" in told
    assert "\x1b" not in told and "\u202e" not in told
    assert told.startswith("pasted words: ")
    file = setting.folder / "words.txt"
    file.write_text(words, encoding="utf-8")
    assert call(draft, "--text", str(file)).stdout == told


@pytest.mark.parametrize(
    ("words", "why"), [(b"\xff\xfe", "not UTF-8"), (b"  \n", "the text is empty")]
)
def test_what_is_no_text_is_refused(call, draft, words, why):
    """Said plainly; nothing of it is printed."""
    with pytest.raises(DataError, match=why):
        call(draft, "--text", "-", input=words)


def test_pairs_are_counted_and_those_that_fail_are_named(call, setting, store, draft):
    """From a few cases, before the whole cohort is asked."""
    told = call(draft, "--pairs").stdout
    assert "pairs of its verdicts: 2, right in 2" in told
    assert "pinned pairs: 0, 0 broken" in told
    assert f"ranloop draft check {draft}" in told
    useless = begin(setting, store, USELESS).draft.ref
    told = call(useless, "--pairs").stdout
    assert "pairs of its verdicts: 2, right in 0" in told
    assert "f1    pleural_effusion   present  absent  absent" in told
    data = json.loads(call(useless, "--pairs", "--json").stdout)
    assert (data["failing"], data["broken"]) == (2, 0)


def test_draws_show_the_spread(call, draft, wavering):
    """An engine with chance says so, and how its answers spread."""
    once = call(draft, "--case", "f2", "-e", "wavering").stdout
    assert "asked once; this engine may answer otherwise another time" in once
    words = ("--draws", "9", "-e", "wavering", "--json")
    data = json.loads(call(draft, "--case", "f2", *words).stdout)
    assert data["draws"] == len(data["labels"][0]["after"]) == 9
    told = call(draft, "--pairs", "--draws", "3", "-e", "wavering").stdout
    assert "3 draws of each" in " ".join(told.split())


class Babbling:
    """A model that answers with what no reader can read."""

    def __init__(self, name, settings):
        """Take what a factory is given."""

    def identity(self):
        """Return a name."""
        return {"engine": "babbling"}

    def complete(self, prompts):
        """Yield a page of white space, tags and control characters."""
        for index, _ in enumerate(prompts):
            yield index, Completion("<i>\x1b[2J\u202e" + " " * 1_000_000, "stop")


def test_an_unreadable_answer_is_none(call, draft, monkeypatch):
    """It is shown as such for both, never as absent, and does nothing here."""
    monkeypatch.setitem(base._FACTORIES, "babbling", Babbling)
    told = call(draft, "--case", "f2", "-e", "babbling").stdout
    assert "pleural_effusion   present  unparsed  unparsed  still wrong" in told
    assert f"{draft}: no whole answer: " in " ".join(told.split())
    assert len(told) < 4000 and "\x1b" not in told


def test_one_thing_is_tried_at_a_time(call, draft):
    """A case, a text or the pairs."""
    for words in ((), ("--case", "f2", "--pairs")):
        assert call(draft, *words).exit_code == 2


def test_a_server_that_never_answers_is_stopped_by_a_person(setting, draft):
    """Ctrl-C ends it with 130; nothing hangs and nothing is kept."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        engine = f"openai:tiny@http://127.0.0.1:{silent.getsockname()[1]}/v1"
        words = ["try", draft, "--case", "f2", "-e", engine]
        process = subprocess.Popen(
            [sys.executable, "-m", "loop", *words, "-w", str(setting.workspace.root)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            told, said = process.communicate(timeout=60)
    assert (process.returncode, told) == (INTERRUPTED_EXIT, "")
    assert "Traceback" not in said and "Fluid" not in said


@contextlib.contextmanager
def try_on_a_server(setting, draft, script, stderr):
    """Start ``try`` on a case with a server that answers by `script`; yield both."""
    with serving(Scripted(other=script)) as url:
        words = ["try", draft, "--case", "f2", "-e", f"openai:m@{url}"]
        with subprocess.Popen(
            [sys.executable, "-m", "loop", *words, "-w", str(setting.workspace.root)],
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process:
            yield process


@pytest.mark.slow
def test_an_answer_is_shown_on_a_terminal_while_it_is_written(setting, draft):
    """The server goes on once its words stand there; in the end the result stands."""
    seen = {b"tiny@v1": threading.Event(), draft.encode(): threading.Event()}
    waiting, late = iter(seen.values()), []

    def wait():
        if not next(waiting).wait(60):
            late.append("not shown")

    def answer(body):
        data = plain_answer(body)
        if not body.get("stream"):
            return data
        first, *rest = events(data, size=20)
        return [first, rest[0], wait, *rest[1:]]

    ours, theirs = pty.openpty()
    with try_on_a_server(setting, draft, answer, theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):
            # The other end is closed with the process.
            while piece := os.read(ours, 4096):
                shown += piece
                for version, event in seen.items():
                    if b"pleural_effus" in shown.partition(b"asking " + version)[2]:
                        event.set()
        os.close(ours)
        told = process.stdout.read()
    assert late == [] and process.returncode == 0
    assert shown.rindex(b"\x1b[2K") > shown.rindex(b"pleural_effus")
    assert told.startswith("case f2 of dev: ") and "\x1b" not in told


@pytest.mark.slow
def test_without_a_terminal_nothing_is_streamed_or_shown(setting, draft):
    """Nobody reads along: a log would only hold clinical text."""
    asked = []

    def answer(body):
        asked.append(body)
        return plain_answer(body)

    with try_on_a_server(setting, draft, answer, subprocess.PIPE) as process:
        told, said = process.communicate(timeout=60)
    assert process.returncode == 0 and told.startswith("case f2 of dev: ")
    assert not any("stream" in body for body in asked)
    assert "pleural" not in said


def test_what_a_phrase_could_become_is_told_with_the_cases(call):
    """Which part, how many cases, which way, and their ids; in 80 columns."""
    words = ("tiny", "--cohort", "dev", "--label", "pleural_effusion")
    told = call(*words, "--phrase", "fluid  layers").stdout
    assert told.startswith("'fluid layers' in the guide of pleural_effusion: tiny@v1")
    rows = [line.split("  ") for line in told.splitlines()]
    numbers = {row[0]: [one.strip() for one in row[1:] if one] for row in rows}
    assert numbers["term"] == ["4", "4", "0", "0"]
    assert numbers["clarification: uncertain"] == ["4", "0", "0", "0"]
    assert "\nterm: 4 absent -> present\n  f0, f1, f2, f3\n" in told
    assert "\nclarification: uncertain: 4 absent -> uncertain\n" in told
    assert "\nexclusion: " not in told
    assert max(map(len, told.splitlines())) <= 80
    known = call(*words, "--phrase", "pleural effusion").stdout
    assert "\nterm: is there already\n" in known
    data = json.loads(call(*words, "--phrase", "fluid layers", "--json").stdout)
    assert [one["part"] for one in data["parts"]].count("clarification") == 3
    assert data["parts"][0]["gained"] == 4
    estimate = call(*words, "--phrase", "fluid\x1b[1m", "--engine", "openai:x")
    assert "of which none is known without a run of" in " ".join(
        estimate.stdout.split()
    )
    assert "\x1b" not in estimate.stdout
    estimate = call(*words, "--phrase", "fluid layers", "--engine", "openai:x").stdout
    rows = [line.split("  ") for line in estimate.splitlines()]
    numbers = {row[0]: [one.strip() for one in row[1:] if one] for row in rows}
    assert numbers["term"] == ["4", "not known", "not known", "0"]
    assert max(map(len, estimate.splitlines())) <= 80


@pytest.mark.parametrize(
    ("cases", "rest"), [(20, ""), (21, " and 1 more (--json lists all)")]
)
def test_of_many_cases_that_change_twenty_are_listed(setting, call, cases, rest):
    """And how many more there are, where there are more."""
    rows = [(f"m{number:02}", "Fluid layers.", 1, 0) for number in range(cases)]
    setting.add_cohort("many", "dev", rows)
    words = ("tiny", "--cohort", "many", "--label", "pleural_effusion")
    told = " ".join(call(*words, "--phrase", "fluid layers").stdout.split())
    assert f"term: {cases} absent -> present m00, m01, " in told
    assert f" m18, m19{rest} clarification" in told


def test_a_phrase_says_of_how_many_changes_nobody_knows_enough(setting, call):
    """The reference leaves a case open: it is neither right nor wrong."""
    rows = [("o1", "Fluid layers at the base.", 1, 0), ("o2", "Fluid layers.", "", 0)]
    setting.add_cohort("unsure", "dev", rows)
    words = ("tiny", "--cohort", "unsure", "--label", "pleural_effusion")
    told = call(*words, "--phrase", "fluid layers").stdout
    assert "term: 2 absent -> present\n  of 1 it is not known whether" in told


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--phrase", "fluid"), "--label"),
        (("--phrase", "fluid", "--case", "f2"), "--phrase"),
        (("--phrase", "fluid", "--label", "edema", "--draws", "3"), "--draws"),
    ],
)
def test_a_phrase_needs_a_label_and_nothing_else(call, words, why):
    """What it would mean otherwise, nobody could say."""
    done = call("tiny", *words)
    assert done.exit_code == 2
    assert why in done.stderr


def test_pasted_words_are_kept_as_an_exemplar_of_the_draft(call, draft, setting):
    """After the try, and only on request."""
    words = ("--text", "-", "--label", "pleural_effusion")
    kept = ("--keep", "exemplar", "--value", "present", "--evidence", "left angle")
    told = call(draft, *words, *kept, input="Blunted left angle.").stdout
    assert told.endswith(f"kept as an exemplar of pleural_effusion in {draft}\n")
    (example,) = (
        read_version(setting.workspace, draft).guide("pleural_effusion").exemplars
    )
    assert (example.text, example.evidence) == ("Blunted left angle.", "left angle")
    told = call(
        *(draft, *words, *kept, "--json"),
        input="Fluid layers at the left base, study 2. The left angle",
    )
    data = json.loads(told.stdout)["kept"]
    assert data["as"] == "exemplar"
    assert data["copies"][0]["case_id"] == "f2"


def test_pasted_words_are_kept_as_a_case_for_an_import(call, draft, setting):
    """The version may be committed: a case is none of its wording."""
    words = ("--text", "-", "--label", "pleural_effusion")
    kept = ("--keep", "case", "--value", "absent")
    told = call("tiny@v1", *words, *kept, input="Clear angles.").stdout
    path = find_synthetic(setting.workspace, "tiny")
    line = " ".join(told.rpartition("kept as ")[2].split())
    assert line.startswith("synthetic-1 in ")
    assert "`ranloop cohort import`" in line
    assert (
        path.read_text("utf-8").splitlines()[1] == "synthetic-1,en,Clear angles.,absent"
    )
    again = call(
        *(draft, "--text", "-", "-l", "cardiomegaly", *kept, "--json"),
        input="Clear angles.",
    )
    assert json.loads(again.stdout)["kept"] == {
        "as": "case",
        "case_id": "synthetic-1",
        "path": str(path),
        "added": False,
    }
    plain = call(draft, *words, "--json", input="Clear.")
    assert json.loads(plain.stdout)["kept"] is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--text", "-", "--keep", "case"), "--keep takes --text, --label and"),
        (
            ("--case", "f2", "-l", "edema", "--keep", "case", "--value", "absent"),
            "takes",
        ),
        (("--text", "-", "-l", "edema", "--value", "absent"), "are for --keep"),
        (("--text", "-", "-l", "edema", "--evidence", "x"), "are for --keep"),
    ],
)
def test_what_is_kept_is_said_whole(call, draft, words, why):
    """Nothing is tried before."""
    done = call(draft, *words, input="Clear.")
    assert done.exit_code == 2
    assert why in done.stderr


def test_a_wording_that_was_tried_is_named_and_taken_back(call, draft, setting):
    """As `draft show` lists it."""
    call(draft, "--case", "f2")
    place = ["-w", str(setting.workspace.root)]
    made = read_version(setting.workspace, draft)
    file = setting.folder / "guide.yaml"
    file.write_text(guide_text(replace(made.guide("cardiomegaly"), definition="Big.")))
    run = CliRunner().invoke
    run(app, ["draft", "edit", draft, "cardiomegaly", str(file), *place])
    call(draft, "--case", "f3")
    told = run(app, ["draft", "show", draft, *place]).stdout
    now, before = told.splitlines()[-2:]
    assert now.split()[1:7] == ["as", "it", "is", "now", "rules", "1"]
    assert before.split()[:3] == [made.digest[:8], "rules", "1"]
    back = ["draft", "edit", draft, "--as-tried", made.digest[:8], *place]
    assert run(app, back).exit_code == 0
    assert read_version(setting.workspace, draft).digest == made.digest
    shown = json.loads(run(app, ["draft", "show", draft, *place, "--json"]).stdout)
    assert [one["wording"] for one in shown["tries"]] == [True, True]
    both = run(app, [*back, "--plan", "joint"])
    assert both.exit_code == 2
    assert "--as-tried alone" in both.stderr
