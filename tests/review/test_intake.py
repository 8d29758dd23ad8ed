"""A verdict file is taken whole, on what it was made on, or not at all."""

import pytest

from loop.core.errors import DataError
from loop.review.status import read_kept
from loop.review.submit import VerdictContext
from loop.review.verdict_files import ImportDefaults, dry_run_file, take_file
from loop.run.store import open_store
from loop.run.task import run_prompt
from tests.review.scenes import add_cohort, add_prompt

ROWS = [("a", "Small effusion.", 1, 0), ("b", "Clear lungs.", 0, 0)]

ONE = "verdicts:\n- {case: a, label: pleural effusion, judgement: model_wrong}\n"


@pytest.fixture
def place(workspace, tmp_path):
    """Return a workspace with a cohort, a prompt and a run."""
    add_cohort(workspace, tmp_path, ROWS)
    add_prompt(workspace, 1, "effusion")
    run_prompt(workspace, "tiny@v1", "dev")
    return workspace


def take(place, tmp_path, text, **occasion):
    """Take a file of this text; return what was taken and what is kept."""
    path = tmp_path / "round1.yaml"
    path.write_text(text)
    with open_store(place) as store:
        taken = take_file(place, store, path, ImportDefaults("Ann", **occasion))
        return taken, read_kept(store, place, taken.cohort)


def test_the_run_names_cohort_and_version(place, tmp_path):
    """One option says everything."""
    taken, (kept,) = take(place, tmp_path, ONE, run="latest")
    assert (taken.cohort, taken.ids) == ("dev", (kept.id,))
    made_on = VerdictContext("dev", "tiny@v1", "round1.yaml", taken.run)
    assert kept.circumstances == made_on
    assert (kept.verdict.reviewer, kept.verdict.label) == ("Ann", "pleural_effusion")


def test_the_file_may_say_its_cohort_itself(place, tmp_path):
    """Without a run nothing is claimed about one."""
    taken, (kept,) = take(place, tmp_path, f"cohort: dev\nprompt: tiny@v1\n{ONE}")
    assert (taken.run, kept.circumstances.prompt) == ("", "tiny@v1")


@pytest.mark.parametrize(
    ("text", "occasion", "message"),
    [
        (ONE, {}, "Name it with --cohort or --run"),
        (ONE, {"cohort": "sealed", "run": "latest"}, "Name the right run"),
        (ONE, {"cohort": "sealed"}, "is a holdout"),
        (ONE.replace("case: a", "case: z"), {"cohort": "dev"}, "no case 'z'"),
    ],
)
def test_nothing_is_kept_of_a_wrong_file(place, tmp_path, text, occasion, message):
    """And the message says what to do."""
    add_cohort(
        place, tmp_path, [("h", "Hidden words.", 0, 0)], name="sealed", role="holdout"
    )
    with pytest.raises(DataError, match=message):
        take(place, tmp_path, text, **occasion)
    with open_store(place) as store:
        assert store.list_verdicts() == []


TWO = """reviewer: Dr A
verdicts:
- {case: a, label: pleural effusion, judgement: model_wrong}
- {case: b, label: edema, judgement: guideline_ambiguous, reviewer: Dr B}
"""


@pytest.fixture
def file(tmp_path):
    """Return a file with two verdicts."""
    path = tmp_path / "round1.yaml"
    path.write_text(TWO)
    return path


def test_it_says_who_judges_what_and_keeps_nothing(place, file):
    """The store is as it was before."""
    with open_store(place) as store:
        found = dry_run_file(place, store, file, ImportDefaults("Ann", run="latest"))
        assert read_kept(store, place, "dev") == ()
    assert (found.cohort, found.verdicts, found.known) == ("dev", 2, 0)
    assert found.run
    assert found.reviewers == ("Dr A", "Dr B")
    assert found.judgements == {"model_wrong": 1, "guideline_ambiguous": 1}
    assert found.labels == {"pleural_effusion": 1, "edema": 1}


def test_verdicts_that_are_kept_already_are_counted(place, file):
    """Handing a file in again changes nothing, and that is said before."""
    with open_store(place) as store:
        take_file(place, store, file, ImportDefaults("Ann", cohort="dev"))
        found = dry_run_file(place, store, file, ImportDefaults("Ann", cohort="dev"))
        assert len(read_kept(store, place, "dev")) == 2
    assert (found.verdicts, found.known) == (2, 2)


def test_an_unknown_case_is_refused(place, tmp_path):
    """As it would be when the file is taken."""
    path = tmp_path / "other.yaml"
    path.write_text(TWO.replace("case: b", "case: zz"))
    with (
        open_store(place) as store,
        pytest.raises(DataError, match="verdict 2: the cohort has no case 'zz'"),
    ):
        dry_run_file(place, store, path, ImportDefaults("Ann", cohort="dev"))
