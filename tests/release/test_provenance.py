"""What a release says of where it comes from: versions tried, readers, cohorts."""

import csv

import pytest

from loop.core.ledger import Event, append_event
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.tried import Attempt, Selection, Tried, WordingStatus
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.reference import correct_reference
from loop.labels.taxonomy import read_taxonomy
from loop.labels.votes import import_votes
from loop.release.provenance import (
    ceiling_facts,
    cohort_facts,
    compute_facts,
    history_facts,
    reading_facts,
    selection_facts,
)
from loop.run.task import run_prompt
from loop.stats.optimism import Optimism
from tests.release.ready import AUTHOR, TINY, Ready


def selected(*unscored: str, rescored: int) -> Selection:
    """Return a selection of which some versions are known by the ledger alone."""
    refs = [f"tiny@v{number}" for number in range(len(unscored) + rescored)]
    attempts = tuple(
        Attempt(digest=ref, ref=ref, standing=WordingStatus.COMMITTED, run=None)
        for ref in refs
    )
    alone = "nothing was selected: one version" if rescored == 1 else ""
    score = Optimism(
        versions=rescored,
        apparent=0.96,
        corrected=0.95,
        low=0.92,
        high=0.97,
        units=300,
        resamples=500,
        note=alone,
    )
    return Selection(
        run="r",
        prompt="tiny@v1",
        tried=Tried(
            prompt="tiny", cohort="dev", engine="rules", attempts=attempts, elsewhere=0
        ),
        rescored=rescored,
        unscored=unscored,
        score=score,
        expected_drop=0.016,
        accuracy=0.95,
        unit="case",
        seed=0,
    )


def test_a_score_is_not_corrected_by_versions_that_cannot_be_scored_again():
    """A number as high as before would say that the choice cost nothing."""
    facts = selection_facts(selected("tiny@v1", "tiny@v2", rescored=1))
    assert facts.tried == 3
    assert (facts.corrected, facts.low, facts.high) == (None, None, None)
    assert facts.note.startswith("not corrected; no run can be scored here of")
    assert "tiny@v2" in facts.note


def test_versions_left_out_of_the_correction_are_named():
    """It is corrected by the others, and says by which not."""
    facts = selection_facts(selected("tiny@v1", rescored=2))
    assert facts.corrected == 0.95
    assert "tiny@v1" in facts.note


def test_one_version_alone_stays_as_it_is():
    """Nothing was chosen."""
    facts = selection_facts(selected(rescored=1))
    assert (facts.corrected, facts.note) == (
        0.95,
        "nothing was selected: one version",
    )


def write_csv(path, header, rows):
    """Write a table and return its path."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


def measured(place, readers):
    """Return an evaluation on ten cases; reader A misses one of five effusions."""
    found = {f"c{n}": n < 5 for n in range(10)}
    texts = [
        (case, f"{'Small pleural effusion' if wet else 'Clear lungs'} in case {case}.")
        for case, wet in found.items()
    ]
    options = ImportOptions(name="dev", role="dev", source="synthetic", licence="-")
    path = write_csv(place.folder / "dev.csv", ["case_id", "text"], texts)
    import_cohort(place.workspace, path, options, actor=AUTHOR)
    votes = [
        (reader, case, label, "present" if present else "absent")
        for reader in readers
        for case, wet in found.items()
        for label, present in (
            ("pleural_effusion", wet and (reader, case) != ("A", "c0")),
            ("cardiomegaly", False),
        )
    ]
    header = ["reader", "case_id", "label", "value"]
    path = write_csv(place.folder / "votes.csv", header, votes)
    cohort = read_cohort(place.workspace, "dev")
    taxonomy = read_taxonomy(place.workspace.labels)
    import_votes(place.workspace, cohort, path, taxonomy, need=None, actor=AUTHOR)
    run = run_prompt(place.workspace, "tiny", "dev", engine="rules")
    return evaluate_run(place.workspace, run.run_id)


@pytest.fixture
def place(workspace, tmp_path):
    """Return a workspace with one version and no cohort."""
    made = Ready(workspace, tmp_path)
    made.commit(TINY)
    return made


def test_the_roles_of_those_who_gave_verdicts_are_told_from_the_ledger(place):
    """And nothing is written of a version before they were recorded."""
    payload = {"digest": "f" * 64, "verdicts": ["x", "y", "z"]}
    payload["verdict_roles"] = {"reviewer": 2}
    event = Event(
        action="draft_committed", subject="tiny@v2", reason="-", payload=payload
    )
    append_event(place.workspace.ledger, event, AUTHOR)
    before, after = history_facts(place.workspace, "tiny", "dev")
    assert "verdict_roles" not in before.model_dump()
    assert after.model_dump()["verdict_roles"] == {"reviewer": 2}


def test_a_reading_is_told_with_its_readers_and_their_agreement(place):
    """Each against the others: A is right in 9 of 10, B and C where these agree."""
    evaluation = measured(place, "ABC")
    reading = reading_facts(place.workspace, evaluation.cohort)
    assert reading.model_dump() == {
        "readers": 3,
        "blind": 3,
        "votes": None,
        "kappa": None,
    }
    ceiling = ceiling_facts(place.workspace, evaluation)
    assert ceiling.readers == 3
    rows = {row.label: row for row in ceiling.labels}
    row = rows["pleural_effusion"]
    assert row.readers == pytest.approx((9 / 10 + 9 / 9 + 9 / 9) / 3)
    assert row.model == 1
    assert row.difference == pytest.approx(row.model - row.readers)
    assert row.low <= row.difference <= row.high
    assert rows["cardiomegaly"].readers == rows["cardiomegaly"].model == 1


def test_a_corrected_reference_is_still_that_of_its_readers(place):
    """One mark was changed, and nobody read the cases anew."""
    evaluation = measured(place, "ABC")
    cohort = read_cohort(place.workspace, "dev")
    marks = {("c9", "cardiomegaly"): "present"}
    correct_reference(place.workspace, cohort, marks, actor=AUTHOR, reason="read again")
    later = evaluate_run(place.workspace, evaluation.run.run_id)
    assert later.cohort.reference == evaluation.cohort.reference + 1
    for facts in (evaluation.cohort, later.cohort):
        assert reading_facts(place.workspace, facts).readers == 3
        assert cohort_facts(place.workspace, facts).readers == 3


def test_labels_that_nobody_voted_on_have_no_readers_and_no_ceiling(place):
    """Neither none of them nor a perfect agreement."""
    rows = [(f"c{n}", f"Pleural effusion {n}.", n % 2, 0) for n in range(4)]
    place.add_cohort("dev", "dev", rows)
    run = run_prompt(place.workspace, "tiny", "dev", engine="rules")
    evaluation = evaluate_run(place.workspace, run.run_id)
    assert reading_facts(place.workspace, evaluation.cohort) is None
    assert ceiling_facts(place.workspace, evaluation) is None
    assert cohort_facts(place.workspace, evaluation.cohort).readers is None


def test_one_reader_is_no_ceiling(place):
    """There is nobody to hold them against."""
    evaluation = measured(place, "A")
    assert reading_facts(place.workspace, evaluation.cohort).readers == 1
    assert ceiling_facts(place.workspace, evaluation) is None


@pytest.mark.parametrize(
    ("account", "tokens"),
    [
        ({"prompt_tokens": 1200, "completion_tokens": 34}, 1234),
        ({"prompt_tokens": 1200}, 1200),
        ({"prompt_tokens": None, "completion_tokens": 34}, 34),
        ({"prompt_tokens": None}, None),
        ({}, None),
        (None, None),
    ],
)
def test_tokens_that_nobody_counted_are_not_none_of_them(account, tokens):
    """An engine without tokens took no 0 of them; what is known is added up."""
    manifest = {
        "engine_account": account,
        "packages": {"scipy": "1.16", "torch": None},
        "platform": "Linux",
        "python": "3.12",
        "created": "2026-03-01T10:00:00+00:00",
        "finished": "2026-03-01T10:01:30.5+00:00",
    }
    found = compute_facts(manifest)
    assert found.tokens == tokens
    assert (found.seconds, found.packages) == (90.5, {"scipy": "1.16"})
    assert compute_facts(manifest | {"finished": None}).seconds is None
