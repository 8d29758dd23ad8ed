"""A release says how many versions were tried, and never corrects by none of them."""

from loop.evaluate.tried import Attempt, Selection, Tried, WordingStatus
from loop.release.provenance import selection_facts
from loop.stats.optimism import Optimism


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
