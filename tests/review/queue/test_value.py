"""The order of the queue: worth first, and an honest random share."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop.core.digests import framed
from loop.core.records import Field, Status, Value
from loop.evaluate.align import align
from loop.evaluate.failures import Failure, FailureKind, find_failures
from loop.evaluate.protocol import Protocol
from loop.review.queue.records import OtherAnswer, Reasons
from loop.review.queue.value import Worth, arrange, chance_to_differ
from tests.evaluate.scenes import TAXONOMY, outcome, reference, silent

PRESENT, ABSENT, UNCERTAIN = Value.PRESENT, Value.ABSENT, Value.UNCERTAIN


def failure(number, label="edema"):
    """Return a failing pair."""
    return Failure(
        f"c{number}", label, FailureKind.FALSE_POSITIVE, PRESENT, None, (), ""
    )


def explained(outcomes, rows, *, others=(), votes=(), protocol=None):
    """Return the reasons of the first failure of a run."""
    standard = reference(rows)
    worth = Worth(align(outcomes, standard, TAXONOMY), protocol or Protocol())
    first = next(find_failures(iter(outcomes), standard, TAXONOMY))
    return worth.explain(first, others, votes)


def said(*values):
    """Return what other runs answered."""
    return [OtherAnswer(f"r{n}", "tiny@v1", 0, v) for n, v in enumerate(values)]


RARE = ([outcome("a", {"edema": 1})], {"a": {"no_finding": 2}})


def test_a_label_without_its_positives_is_rare():
    """0 of 10 is as rare as can be; the words give both numbers."""
    reasons = explained(*RARE)
    assert reasons.rare == 1.0
    assert "rare: 0 of at least 10 positives" in reasons.words


def test_disagreement_is_the_chance_that_two_answers_differ():
    """With two other runs: one of three pairs of answers agrees."""
    reasons = explained(*RARE, others=said(ABSENT, PRESENT))
    assert reasons.split == pytest.approx(2 / 3)
    assert "3 runs of the prompt disagree" in reasons.words
    # Other versions are no draws of this one.
    assert (reasons.fails, reasons.draws) == (1, 1)


def repeated(*values):
    """Return what further draws of the same version answered."""
    return [OtherAnswer(f"d{n}", "tiny@v1", n, v) for n, v in enumerate(values, 1)]


def test_draws_of_one_version_are_no_disagreement_of_versions():
    """They say how lasting the failure is, and that comes before the value."""
    rows = {"a": {"edema": 0, "no_finding": 2}}
    lasting = explained(RARE[0], rows, others=repeated(PRESENT, UNCERTAIN, None))
    assert (lasting.fails, lasting.draws, lasting.split) == (3, 3, 0)
    assert "fails in all 3 draws" in lasting.words
    flips = explained(RARE[0], rows, others=repeated(ABSENT, PRESENT, ABSENT))
    assert (flips.fails, flips.draws, flips.split) == (2, 4, 0)
    assert "fails in 2 of 4 draws: is the guide ambiguous?" in flips.words
    assert lasting.rank > flips._replace(unsure=1.0, near=1.0).rank
    assert (lasting._replace(rare=0.5).rank > lasting.rank) is (lasting.rare < 0.5)
    once = explained(RARE[0], rows)
    assert (once.fails, once.draws) == (1, 1)
    assert not any("draws" in words for words in once.words)


def test_what_fails_in_every_draw_comes_first():
    """However much the rest is worth."""
    ranks = [(0.5, 3.0), (1.0, 0.1), (0.25, 3.5), (1.0, 0.2)]
    order = arrange("run", [failure(n) for n in range(4)], ranks)
    assert [one.at for one in order] == [3, 1, 0, 2]


def test_a_missing_answer_disagrees_with_nothing():
    """An unparsed answer is no value."""
    assert explained(*RARE, others=said(None, PRESENT)).split == 0


def test_split_votes_count_like_split_answers():
    """Three against three: nine of fifteen pairs differ."""
    reasons = explained(*RARE, votes=((PRESENT, 3), (ABSENT, 3)))
    assert reasons.split == pytest.approx(9 / 15)
    assert "the readers disagree" in reasons.words


def test_an_uncertain_answer_is_worth_half_a_point():
    """It hedges where the reference decides."""
    hedged = [outcome("a", {"edema": -1})], RARE[1]
    plain, unsure = explained(*RARE), explained(*hedged)
    assert unsure.unsure == 1
    assert "answered uncertain" in unsure.words
    assert (plain.unsure, plain._replace(unsure=1.0).value - plain.value) == (0, 0.5)


def test_a_label_near_its_gate_says_how_near():
    """100 cases bear 5 errors: with 6 one right answer decides."""
    outcomes = [outcome(f"c{n}", {"edema": int(n < 36)}) for n in range(100)]
    rows = {f"c{n}": {"edema": int(6 <= n < 36), "no_finding": 2} for n in range(100)}
    reasons = explained(outcomes, rows)
    assert reasons.near == 1.0
    assert "fails by 1 answer" in reasons.words


def test_cases_without_an_answer_are_worth_what_blocks_the_gates():
    """1 % may be missing; of 100 cases two are, so one decides."""
    outcomes = [silent("c0"), silent("c1", Status.ENGINE_FAILED)]
    outcomes += [outcome(f"c{n}", {}) for n in range(2, 100)]
    rows = {f"c{n}": {"no_finding": 1} for n in range(100)}
    reasons = explained(outcomes, rows)
    assert reasons == Reasons(
        near=1.0, words=("2 cases have no readable answer; the gates allow 1",)
    )
    few = [silent("c0"), *[outcome(f"c{n}", {}) for n in range(1, 100)]]
    assert explained(few, rows).value == 0


@pytest.mark.parametrize(
    ("share", "cases", "borne"), [(0.29, 100, 29), (0.57, 100, 57), (0.01, 150, 1)]
)
def test_the_gates_bear_a_share_of_the_cases_and_no_part_of_one(share, cases, borne):
    """As a gate counts them: one case more blocks it."""
    rows = {f"c{n}": {"no_finding": 1} for n in range(cases)}
    found = []
    for silence in (borne, borne + 1):
        assert (silence / cases <= share) is (silence == borne)
        outcomes = [silent(f"c{n}") for n in range(silence)]
        outcomes += [outcome(f"c{n}", {}) for n in range(silence, cases)]
        protocol = Protocol(max_unanswered=share)
        found.append(explained(outcomes, rows, protocol=protocol))
    assert (found[0].value, found[1].near) == (0, 1.0)


def test_uncertain_on_the_only_label_asked_is_an_answer():
    """Of 100 cases one may be silent: a hedged one beside it blocks no gate."""
    hedged = replace(outcome("c1", {}), fields={"edema": Field(UNCERTAIN)})
    others = [outcome(f"c{n}", {}) for n in range(2, 100)]
    rows = {f"c{n}": {"no_finding": 1} for n in range(100)}
    assert explained([silent("c0"), hedged, *others], rows) == Reasons()
    assert explained([silent("c0"), silent("c1"), *others], rows).near == 1.0


@pytest.mark.parametrize(
    ("counts", "chance"),
    [({}, 0), ({PRESENT: 1}, 0), ({PRESENT: 5}, 0), ({PRESENT: 1, ABSENT: 1}, 1)],
)
def test_chance_to_differ_has_closed_forms(counts, chance):
    """One answer cannot disagree; two different ones always do."""
    assert chance_to_differ(counts) == chance


@given(values=st.lists(st.floats(0, 3.5), max_size=60))
def test_everything_has_one_place(values):
    """Nothing is lost and nothing comes twice."""
    order = arrange("run", [failure(n) for n in range(len(values))], values)
    assert sorted(one.at for one in order) == list(range(len(values)))


@settings(max_examples=40)
@given(values=st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=20, max_size=80))
def test_the_first_places_hold_the_first_of_the_draw(values):
    """So that a queue worked off in part still gives a random sample."""
    failures = [failure(n) for n in range(len(values))]
    placed = arrange("run", failures, values)
    draw = _draw(failures)
    assert {one.at for one in placed if one.audit} == set(draw[: -(-len(values) // 10)])
    for n in range(10, len(values) + 1, 10):
        assert set(draw[: n // 10]) <= {one.at for one in placed[:n]}


def _draw(failures):
    """Return all indices in the order of the draw, as the module describes it."""
    keys = [
        hashlib.sha256(framed(("run", one.case_id, one.label))).digest()
        for one in failures
    ]
    return sorted(range(len(failures)), key=keys.__getitem__)


def test_between_draws_the_worthiest_come_first_and_ties_keep_their_order():
    """Value decides, then cohort and taxonomy."""
    values = [0.5, 2.0, 2.0, 1.0]
    order = arrange("run", [failure(n) for n in range(4)], values)
    assert [one.at for one in order] == [1, 2, 3, 0]


def test_the_draw_is_random_over_runs():
    """Over many runs every pair is drawn about equally often, whatever its worth."""
    failures, hits = [failure(n) for n in range(50)], np.zeros(50)
    for run in range(600):
        for one in arrange(f"run-{run}", failures, list(range(50))):
            hits[one.at] += one.audit
    assert hits.sum() == 600 * 5
    assert hits.min() > 30
    assert hits.max() < 95


@pytest.mark.parametrize(("away", "near"), [(1, 1.0), (2, 0.5), (10, 0.1)])
def test_a_label_is_worth_less_the_farther_it_is_from_its_gate(away, near):
    """Of 100 cases 5 may be wrong: with so many more, that many answers decide."""
    wrong = 5 + away
    outcomes = [outcome(f"c{n}", {"edema": int(n < wrong + 30)}) for n in range(100)]
    rows = {
        f"c{n}": {"edema": int(wrong <= n < wrong + 30), "no_finding": 2}
        for n in range(100)
    }
    reasons = explained(outcomes, rows)
    assert (reasons.near, reasons.value) == (near, near)
    assert reasons.gate == f"fails by {away}"


@pytest.mark.parametrize(("silence", "near"), [(2, 1.0), (3, 0.5), (6, 0.2)])
def test_silent_cases_are_worth_less_the_more_there_are_too_many(silence, near):
    """Of 100 one may be silent: each further one must be answered."""
    rows = {f"c{n}": {"no_finding": 1} for n in range(100)}
    outcomes = [silent(f"c{n}") for n in range(silence)]
    outcomes += [outcome(f"c{n}", {}) for n in range(silence, 100)]
    words = f"{silence} cases have no readable answer; the gates allow 1"
    assert explained(outcomes, rows) == Reasons(near=near, words=(words,))


def test_one_silent_case_of_few_blocks_every_gate():
    """Of ten cases none may be silent."""
    rows = {f"c{n}": {"no_finding": 1} for n in range(10)}
    outcomes = [silent("c0"), *[outcome(f"c{n}", {}) for n in range(1, 10)]]
    words = "1 case has no readable answer; the gates allow 0"
    assert explained(outcomes, rows) == Reasons(near=1.0, words=(words,))


def test_a_label_that_the_reference_cannot_judge_is_worth_what_is_said_of_it():
    """No gate is near, and no positives are missing; a split of readers still is."""
    standard = reference(RARE[1])
    worth = Worth(align(RARE[0], standard, TAXONOMY), Protocol(), {"edema"})
    first = next(find_failures(iter(RARE[0]), standard, TAXONOMY))
    assert worth.explain(first, (), ((PRESENT, 1), (ABSENT, 1))) == Reasons(
        split=1.0,
        words=("the reference cannot judge the label", "the readers disagree"),
    )
