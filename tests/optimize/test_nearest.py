"""Exemplars that clinicians approved, chosen once by the cases that go wrong."""

from dataclasses import replace

import pytest

from loop.core.records import Exemplar, Value
from loop.optimize.dspy_search import search_bootstrap
from loop.optimize.nearest import (
    MOST_EXEMPLARS,
    list_approved,
    rank_nearest,
    search_nearest,
)
from loop.optimize.objective import open_objective
from loop.optimize.proposals import Objection, ProposalReader, name_proposal
from loop.optimize.splits import split_cases
from loop.prompts.catalog import write_version
from loop.review.status import read_kept
from loop.review.submit import save_verdicts
from loop.review.verdict import Edits, Judgement
from loop.run.store import open_store
from tests.optimize.made_task import TINY
from tests.review.scenes import MADE_ON, WHEN, verdict

EFFUSION = "pleural_effusion"


def exemplar(phrase, value=Value.PRESENT):
    """Return an exemplar of a few words."""
    return Exemplar(text=f"A {phrase} is seen today.", value=value, evidence=phrase)


def test_the_nearest_come_first():
    """By words and pairs of words, in any language; equals keep their order."""
    rows = [exemplar("rib fracture"), exemplar("meniscus sign"), exemplar("scar")]
    texts = ["There is a meniscus sign on the left.", "Large meniscus sign."]
    assert rank_nearest(rows, texts)[0] == rows[1]
    assert rank_nearest(rows, []) == tuple(rows)
    assert rank_nearest(rows, ["0 1 2"]) == tuple(rows)
    chinese = [
        Exemplar(text=one, value=Value.PRESENT, evidence=one)
        for one in ("心影增大", "左侧胸腔积液")
    ]
    assert rank_nearest(chinese, ["右侧胸腔少量积液"])[0] == chinese[1]


def test_approved_are_exemplars_of_versions_and_of_verdicts(improvable):
    """One that a verdict takes out is not; a verdict taken back approves nothing."""
    shown = replace(TINY.guides[0], exemplars=(exemplar("old sign"),))
    second = replace(TINY, number=2, parent=TINY.digest, guides=(shown, TINY.guides[1]))
    write_version(improvable, second)
    asks = verdict(
        "c1", label=EFFUSION, edits=Edits(exemplars=(exemplar("hydrothorax"),))
    )
    with open_store(improvable) as store:
        save_verdicts(store, [asks], MADE_ON, WHEN)
        kept = read_kept(store, improvable, "dev")
        found = list_approved(improvable, TINY, kept)
        assert [one.evidence for one in found[EFFUSION]] == ["old sign", "hydrothorax"]
        takes = verdict(
            "c2",
            label=EFFUSION,
            judgement=Judgement.GUIDELINE_AMBIGUOUS,
            edits=Edits(remove_exemplars=(exemplar("old sign").text,)),
        )
        save_verdicts(store, [takes], MADE_ON, WHEN)
        kept = read_kept(store, improvable, "dev")
    found = list_approved(improvable, TINY, kept)
    assert [one.evidence for one in found[EFFUSION]] == ["hydrothorax"]
    assert found["cardiomegaly"] == ()


@pytest.mark.parametrize("optimizer", ["nearest", "bootstrap"])
def test_exemplars_are_written_into_the_guide_once(improvable, optimizer):
    """At most a few, those that are there stay, and no case text is among them."""
    rows = [exemplar(f"{word} hydrothorax") for word in ("vast", "mild", "thin", "old")]
    more = {EFFUSION: (*rows, exemplar("meniscus sign")), "cardiomegaly": ()}
    with open_objective(improvable, "tiny", "dev") as objective:
        ground = objective.ground
        reader = ProposalReader(ground.version)
        split = split_cases(ground.truth, ground.clusters.units)[0]
        if optimizer == "nearest":
            found = search_nearest(
                objective, reader, more, search=split.search, labels=ground.labels
            )
        else:
            found = search_bootstrap(objective, reader, more, labels=ground.labels)
    (candidate,) = found.candidates
    chosen = candidate.guide(EFFUSION).exemplars
    assert 0 < len(chosen) <= MOST_EXEMPLARS
    assert set(chosen) <= set(more[EFFUSION])
    assert candidate.guide("cardiomegaly") == TINY.guides[1]


def test_nothing_approved_is_nothing_proposed(improvable):
    """Case text is never taken in its place."""
    with open_objective(improvable, "tiny", "dev") as objective:
        ground = objective.ground
        reader = ProposalReader(ground.version)
        split = split_cases(ground.truth, ground.clusters.units)[0]
        nearest = search_nearest(
            objective, reader, {}, search=split.search, labels=ground.labels
        )
        bootstrap = search_bootstrap(objective, reader, {}, labels=ground.labels)
    assert nearest.candidates == bootstrap.candidates == ()


def proposed(workspace, version, more, labels=(EFFUSION, "cardiomegaly"), refused=()):
    """Return what is proposed for a version with these approved exemplars."""
    with open_objective(workspace, version, "dev") as objective:
        ground = objective.ground
        reader = ProposalReader(ground.version, refused=refused)
        split = split_cases(ground.truth, ground.clusters.units)[0]
        found = search_nearest(
            objective, reader, more, search=split.search, labels=labels
        )
    assert found.calls == len(split.search)
    return found


def knowing(count, **guides):
    """Return the version with so many exemplars in its first guide."""
    shown = tuple(exemplar(f"sign no. {letter}") for letter in "abcde"[:count])
    first = replace(TINY.guides[0], exemplars=shown)
    second = replace(TINY.guides[1], **guides)
    return replace(TINY, guides=(first, second))


@pytest.mark.parametrize(("count", "added"), [(2, 2), (3, 1), (4, 0)])
def test_a_guide_is_filled_up_to_four_exemplars(improvable, count, added):
    """Those that it has stay in front."""
    version = knowing(count)
    rows = [
        exemplar(f"{w} hydrothorax") for w in ("vast", "mild", "thin", "old", "new")
    ]
    found = proposed(improvable, version, {EFFUSION: rows})
    assert found.proposals == (added > 0)
    assert len(found.candidates) == (added > 0)
    for one in found.candidates:
        exemplars = one.guide(EFFUSION).exemplars
        assert exemplars[:count] == version.guides[0].exemplars
        assert len(exemplars) == count + added == 4


def test_what_a_guide_says_already_is_not_added_again(improvable):
    """In whichever case it is written; then there is nothing to propose."""
    version = knowing(1)
    (known,) = version.guides[0].exemplars
    shouted = replace(known, text=known.text.upper(), evidence=known.evidence.upper())
    found = proposed(improvable, version, {EFFUSION: [known, shouted]})
    assert (found.candidates, found.proposals) == ((), 0)


def test_each_label_alone_and_all_together_are_proposed(improvable):
    """Of labels that fail and have an exemplar; of a single one there is no third."""
    version = knowing(0, name="Oak", terms=("oak",))
    more = {
        EFFUSION: [exemplar("blunted angle")],
        "cardiomegaly": [exemplar("cardiomegaly")],
    }
    found = proposed(improvable, version, more)
    changed = [
        [guide.label for guide in one.guides if guide.exemplars]
        for one in found.candidates
    ]
    assert changed == [[EFFUSION], ["cardiomegaly"], [EFFUSION, "cardiomegaly"]]
    assert (found.proposals, found.refused) == (2, {})
    # A label that makes no mistake needs no example.
    found = proposed(improvable, TINY, more)
    assert [one.guides[1] for one in found.candidates] == [TINY.guides[1]]
    # One that was not asked for gets none.
    found = proposed(improvable, version, more, labels=("cardiomegaly",))
    assert [one.guides[0] for one in found.candidates] == [TINY.guides[0]]


def test_a_guide_that_was_refused_is_counted_and_not_proposed(improvable):
    """The other label is proposed all the same."""
    version = knowing(0, name="Oak", terms=("oak",))
    more = {
        EFFUSION: [exemplar("blunted angle")],
        "cardiomegaly": [exemplar("cardiomegaly")],
    }
    first, *_ = proposed(improvable, version, more).candidates
    name = name_proposal(EFFUSION, first.guide(EFFUSION))
    found = proposed(improvable, version, more, refused=[name])
    assert found.refused == {Objection.REFUSED: 1}
    assert found.proposals == 2
    assert [one.guide(EFFUSION).exemplars for one in found.candidates] == [()]
