"""A workspace of the version before opens, goes on and says what it said.

``golden/workspace_before.tar.xz`` was written by ranloop at commit c9ebe2e, as
``made_by.py`` in it says: a cohort with votes, runs of two engines, one killed
half-way, verdicts, a form that was begun, a draft, a reader's answers, a user, two
sealed holdouts, a release, and in ``asked.json`` what that version answered. All texts
are synthetic.
"""

import json
import shutil
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.people.passwords import fits
from loop.core.people.roster import find_user, read_users
from loop.labels.reference import reference_path
from loop.labels.sealing import unseal
from loop.review.working import read_working
from loop.run.jobs import list_jobs
from loop.run.store import open_store
from loop.ui.pages.review.verdict_form import ReviewForm

ARCHIVE = Path(__file__).parent / "golden" / "workspace_before.tar.xz"

WANTED = {
    "seconds": "measured",
    "time": "the clock",
    "run_id": "the second in which it was made",
    "draws": "the same",
    "macro_f1_difference": "no limits where no resample differs",
    "kappa_bootstrap": "exact limits where no resample differs",
    "uncertain_read_as": "`wrong` stands beside the others, and how many labels pass",
    "findings": "lint holds guides against the taxonomy, and looks for examples",
    "cached": "`rules` reads more since revision 4, so it is asked anew",
    "asked": "the same",
    ".counts.note": "`audit` says what entries of before leave unchecked",
    "why": "which side of the gate is said, and the random audit follows what is asked",
}
"""Keys, or places, whose values may differ from what the version before said, and
why."""

REWORDED = {
    "made again from their counts": "recomputed from their counts",
    "chosen positives and ": "chosen positives, ",
}
"""What is said in plainer words since."""


def unpack(folder):
    """Return the archive's folder, unpacked."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="tar")
    return folder


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Unpack the archive once."""
    return unpack(tmp_path_factory.mktemp("before"))


@pytest.fixture
def before(unpacked, tmp_path, monkeypatch):
    """Return a copy of the old workspace, on a machine that has not seen it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(unpacked / "ws", tmp_path / "ws")
    return WorkspacePaths(tmp_path / "ws")


def about(folder):
    """Return what is known of the archive."""
    return json.loads((folder / "asked.json").read_text("utf-8"))


def said(workspace, line):
    """Return what a command says in JSON."""
    out = workspace.root.parent / "out"
    words = line.replace("OUT", str(out)).split()
    done = CliRunner().invoke(app, [*words, "--json", "-w", str(workspace.root)])
    assert done.exit_code == 0, done.output
    text = done.stdout.replace(str(workspace.root), "WORKSPACE")
    return json.loads(text.replace(str(out), "OUT"))


def compared(old, at):
    """Return the keys of `old` whose values must be said again."""
    return [key for key in old if not {key, f"{at}.{key}"} & WANTED.keys()]


def lost(old, new, at=""):
    """Yield what `old` says and `new` does not; more may be said now."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in compared(old, at):
            yield from lost(old[key], new.get(key, "nothing"), f"{at}.{key}")
    elif at.endswith(".notes"):
        yield from ((at, one, new) for one in old if reworded(one) not in new)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for n, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from lost(one, other, f"{at}[{n}]")
    elif isinstance(old, float) and isinstance(new, float):
        if new != pytest.approx(old, abs=1e-9):
            yield at, old, new
    elif isinstance(old, str) and new == reworded(old):
        return
    elif old != new:
        yield at, old, new


def reworded(text):
    """Return what is said now in place of `text`."""
    for before, now in REWORDED.items():
        text = text.replace(before, now)
    return text


def lines():
    """Return what was asked of the version before."""
    with tarfile.open(ARCHIVE) as archive:
        return sorted(json.load(archive.extractfile("asked.json"))["asked"])


@pytest.mark.parametrize("line", lines())
def test_every_question_gets_the_answer_of_before(before, unpacked, line):
    """What was measured, recorded and signed still says the same."""
    assert list(lost(about(unpacked)["asked"][line], said(before, line))) == []


def test_a_run_that_was_killed_is_finished_by_the_engine_of_now(before):
    """It is asked anew: what the engine of then answered is another engine's answer."""
    run = said(before, "run tiny@draft --cohort dev")
    assert (run["answered"], run["cached"], run["asked"]) == (180, 0, 180)
    again = said(before, "run tiny@draft --cohort dev")
    assert (again["cached"], again["asked"]) == (180, 0)


def test_a_run_of_before_names_nobody_and_there_are_no_jobs(before):
    """Who started it was not kept then."""
    with open_store(before) as store:
        assert {run.actor for run in store.find_runs()} == {None}
        assert list_jobs(store) == []


def test_a_form_that_was_begun_is_still_there(before, unpacked):
    """Nobody types anything twice."""
    subject = f"form:{about(unpacked)['first']}:deve2:pleural_effusion"
    with open_store(before) as store:
        kept = read_working(store, Actor(name="Dr Author", role="reviewer"), subject)
    form = ReviewForm.of(kept.payload)
    assert form.judgement == "model_wrong"
    assert form.value == "present"
    assert form.comment == "begun before the update"


def test_a_draft_is_checked_and_committed(before):
    """The verdicts of before make the next version; the history holds as one."""
    assert said(before, "draft check tiny@draft")["passed"]
    said(before, "draft commit tiny@draft")
    assert said(before, "history tiny")["versions"][-1]["number"] == 2
    assert said(before, "audit")["holds"]


def test_the_release_of_before_is_asked_by_its_name(before):
    """What was released stays in use; that its engine is another one is said."""
    run = said(before, "run --release tiny-v1 --cohort dev")
    assert run["answered"] == 180
    assert run["released_engine"] is False


def test_a_holdout_sealed_before_is_opened_by_its_key(before):
    """Sealed labels are readable for whoever has the machine's key, and equal."""
    labels = unseal(before, reference_path(before, "shut", 1)).decode()
    assert labels.splitlines()[1:3] == ["shut0,absent,absent", "shut1,present,absent"]


def test_a_password_of_before_still_signs_in(before):
    """Nobody has to be invited again."""
    user = find_user(read_users(before), "Dr Author")
    assert fits("an old password, long enough", user.password_hash)
