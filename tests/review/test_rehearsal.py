"""A verdict file tried out is read whole, and nothing of it is kept."""

import pytest

from loop.core.errors import DataError
from loop.review.kept import read_kept
from loop.review.submit import ImportDefaults, dry_run_file, take_file
from loop.run.store import open_store
from loop.run.task import run_prompt
from tests.review.scenes import add_cohort, add_prompt

ROWS = [("a", "Small effusion.", 1, 0), ("b", "Clear lungs.", 0, 0)]
TWO = """reviewer: Dr A
verdicts:
- {case: a, label: pleural effusion, judgement: model_wrong}
- {case: b, label: edema, judgement: guideline_ambiguous, reviewer: Dr B}
"""


@pytest.fixture
def place(workspace, tmp_path):
    """Return a workspace with a cohort, a prompt and a run."""
    add_cohort(workspace, tmp_path, ROWS)
    add_prompt(workspace, 1, "effusion")
    run_prompt(workspace, "tiny@v1", "dev")
    return workspace


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
