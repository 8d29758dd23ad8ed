"""A search is measured where it did not look, and ends with a Pareto set."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from loop.core.records import ValueCode
from loop.optimize.estimate import NestedEstimate, PartScores, SplitScores
from loop.optimize.nested_search import (
    RankedFinder,
    find_effects,
    find_pareto,
    put_back,
    rank_candidates,
    search_nested,
)
from loop.optimize.objective import open_objective
from loop.optimize.proposals import INSTRUCTIONS, Objection, Proposed
from loop.optimize.splits import SeenCases, split_cases
from loop.stats.resampling import Bootstrap
from tests.optimize.made_task import SYNONYMS, TINY, improvable_cases

EFFUSION = "pleural_effusion"


def knows(*terms, heart=("cardiomegaly",)):
    """Return the prompt with more terms of an effusion."""
    effusion, other = TINY.guides
    guides = (
        replace(effusion, terms=(*effusion.terms, *terms)),
        replace(other, terms=heart),
    )
    return replace(TINY, guides=guides)


@pytest.fixture
def objective(improvable):
    """Open the objective of the made task."""
    with open_objective(improvable, "tiny", "dev") as made:
        yield made


def splits_of(objective):
    """Return the nested splits."""
    return split_cases(objective.ground.truth, objective.ground.clusters.units)


def test_an_optimizer_never_sees_what_it_is_estimated_on(objective):
    """In no split, and the last search leaves only its selecting cases out."""
    splits, seen = splits_of(objective), []

    def propose(cases, seed):
        seen.append((cases, seed))
        return Proposed((knows(*SYNONYMS),), 1)

    finder = RankedFinder(objective, propose)
    found = search_nested(objective, finder, splits, seed=10)
    for split, (cases, _) in zip(splits, seen, strict=False):
        used = np.union1d(cases.search, cases.select)
        assert not np.intersect1d(used, split.estimate).size
    assert [seed for _, seed in seen] == [10, 11, 12, 13, 14, 15]
    last, _ = seen[-1]
    everything = np.union1d(last.search, last.select)
    assert len(everything) == len(objective.ground.items)
    assert found.conclusion.kept == (knows(*SYNONYMS),)
    assert finder.effort.calls == 6


def measured(ground, before, after):
    """Return the estimate of two wordings with these answers."""
    rows, none = np.arange(len(ground.items)), Bootstrap(None, None, None, 200, 0)
    units = ground.clusters.units
    pooled = ground.pool(
        before, after, rows, np.arange(2), units=units, resamples=200, seed=0
    )
    given = {"splits": (), "labels": (), "cases": 0, "left_out": 0, "unit": "case"}
    sides = {"parent": none, "found": none} | {
        name: getattr(pooled, name) for name in ("parent", "found")
    }
    gains = {name: getattr(pooled, name) for name in ("gain", "kappa_gain")}
    return NestedEstimate(**given, **sides, **gains)


def test_who_only_says_present_is_not_better_where_the_gain_has_no_width(objective):
    """Nor is it where everything is positive; who tells them apart is."""
    ground = objective.ground
    absent, present = (np.full_like(ground.truth, value) for value in (0, 1))
    positive = replace(ground, truth=present)
    blind = measured(positive, absent, present)
    assert (blind.gain.estimate, blind.gain.low) == (1.0, None)
    assert not blind.better
    seeing = measured(ground, absent, ground.truth)
    assert (seeing.gain.estimate, seeing.gain.low) == (1.0, None)
    assert seeing.better


def test_no_last_search_where_nothing_is_better(objective):
    """What is not better is not searched for again."""
    finder = RankedFinder(objective, lambda cases, seed: Proposed((), 1))
    found = search_nested(objective, finder, splits_of(objective))
    assert (found.conclusion.kept, finder.effort.calls) == ((), 5)
    assert not found.estimate.better


def test_the_best_on_the_selecting_cases_comes_first(objective):
    """One that is worse there than the parent is not among them."""
    seen = splits_of(objective)[0].seen
    one, all_, worse = knows(SYNONYMS[0]), knows(*SYNONYMS), knows("clear lungs")
    ranked = rank_candidates(objective, [worse, one, all_, one], seen)
    assert ranked == (all_, one)


def test_a_pareto_set_holds_what_nothing_beats_everywhere(objective):
    """Each is best on another label; one that is beaten or equalled is left out."""
    rows = np.arange(len(objective.ground.items))
    effusion = knows(*SYNONYMS, heart=("scar",))
    less = knows(SYNONYMS[0], heart=("scar",))
    heart = knows()
    twin = knows("quokka")
    kept = find_pareto(objective, [less, effusion, heart, twin], rows)
    assert kept == (effusion, heart)


def test_a_pareto_set_is_found_on_cases_that_all_answered(objective, monkeypatch):
    """Who loses a case to the engine is not better than who answers it wrongly."""
    rows = np.arange(len(objective.ground.items))
    less, more = knows(SYNONYMS[0]), knows(*SYNONYMS)
    known = objective.answers(less)
    wrong = objective.ground.wrong(known, rows).any(axis=1)
    assert wrong.any()

    def answers(candidate, rows):
        """Return what `less` answers; "more" fails where that is wrong."""
        told = known[rows].copy()
        if candidate == more:
            told[wrong[rows]] = ValueCode.FAILED
        return told

    monkeypatch.setattr(objective, "answers", answers)
    assert find_pareto(objective, [less, more], rows) == (less,)


def test_a_guide_by_which_its_label_loses_is_put_back(objective):
    """What helps elsewhere stays; a check would object to the rest."""
    rows = np.arange(len(objective.ground.items))
    mixed = knows(*SYNONYMS, heart=("scar",))
    assert put_back(objective, mixed, rows) == knows(*SYNONYMS)
    assert put_back(objective, knows("clear lungs"), rows) == TINY
    assert put_back(objective, knows(*SYNONYMS), rows) == knows(*SYNONYMS)


@pytest.mark.parametrize(
    ("points", "kept"),
    [
        ({"a": [0.5, 0.5], "b": [0.6, 0.4], "c": [0.4, 0.4]}, ("a", "b")),
        ({"a": [0.5, 0.5], "b": [0.5, 0.5]}, ("a",)),
        # Nothing to find: who finds something there is worse than who finds nothing.
        ({"a": [0.5, 0.0], "b": [0.5, np.nan]}, ("b",)),
    ],
)
def test_a_wording_stays_unless_another_one_is_as_good_everywhere(points, kept):
    """Of equals the first."""
    objective = SimpleNamespace(
        ground=SimpleNamespace(
            scored=np.array([True, True]),
            best=1.0,
            lost=lambda told: np.zeros(len(told), dtype=bool),
        ),
        answers=lambda one, rows: np.full(len(rows), one),
        score=lambda told, rows: SimpleNamespace(by_label=np.array(points[told[0]])),
    )
    assert find_pareto(objective, tuple(points), np.arange(3)) == kept


def estimated(gain, kappa, found=(None, None), parent=(None, None)):
    """Return an estimate with these limits."""

    def limits(low, high):
        return Bootstrap(0.5, low, high, 200, 0)

    return NestedEstimate(
        splits=(),
        parent=limits(*parent),
        found=limits(*found),
        gain=limits(gain, None if gain is None else 1.0),
        kappa_gain=limits(kappa, None if kappa is None else 1.0),
        labels=(),
        cases=0,
        left_out=0,
        unit="case",
    )


@pytest.mark.parametrize(
    ("gain", "kappa", "better"),
    [
        (0.1, 0.1, True),
        (0.0, 0.1, False),
        (0.1, 0.0, False),
        (0.1, None, False),
        (-0.1, 0.1, False),
        (0.1, -0.1, False),
    ],
)
def test_both_gains_are_above_zero_for_a_better_wording(gain, kappa, better):
    """A limit of 0 leaves it open; so does a kappa that has none."""
    assert estimated(gain, kappa).better is better


@pytest.mark.parametrize(
    ("found", "parent", "better"),
    [
        ((0.6, 0.9), (0.2, 0.5), True),
        ((0.5, 0.9), (0.2, 0.5), False),
        ((0.4, 0.9), (0.2, 0.5), False),
        ((None, None), (0.2, 0.5), False),
        ((0.6, 0.9), (None, None), False),
    ],
)
def test_without_limits_of_the_gain_those_of_the_scores_must_be_apart(
    found, parent, better
):
    """Touching is not apart, and a kappa must gain all the same."""
    assert estimated(None, 0.1, found, parent).better is better
    assert estimated(None, 0.0, found, parent).better is False


def test_the_mean_over_splits_is_of_those_with_both_scores():
    """Of one side alone no difference could be taken."""
    scores = [PartScores(0.2, 0.4), PartScores(None, 1.0), PartScores(1.0, None)]
    scores.append(PartScores(0.4, 0.8))
    splits = tuple(
        SplitScores(one, PartScores(0.0, 0.0), PartScores(None, 1.0)) for one in scores
    )
    found = replace(estimated(0.1, 0.1), splits=splits)
    assert found.mean("search") == pytest.approx((0.3, 0.6))
    assert found.mean("select") == (0.0, 0.0)
    assert found.mean("estimate") == (None, None)


def rows_where(objective, wanted):
    """Return the places of the cases whose text is as wanted."""
    texts = [item.variables["text"] for item in objective.ground.items]
    return np.array([row for row, text in enumerate(texts) if wanted(text)])


def test_of_wordings_that_select_alike_the_one_that_searches_better_is_first(objective):
    """Only the first name stands in the selecting cases; of equals the order stays."""
    first, second, _ = SYNONYMS
    select = rows_where(
        objective, lambda text: second not in text and SYNONYMS[2] not in text
    )
    search = np.setdiff1d(np.arange(len(objective.ground.items)), select)
    cases = SeenCases(search, select)
    one, both, every = knows(first), knows(first, second), knows(*SYNONYMS)
    same = knows(first, "quokka")
    ranked = rank_candidates(objective, [one, same, both, every], cases)
    assert ranked == (every, both, one, same)
    worse = knows(second, heart=("scar",))
    assert rank_candidates(objective, [worse, TINY], cases) == ()


def test_what_a_changed_guide_puts_right_and_wrong_is_told(objective):
    """Case by case from the texts, with the F1 of its label before and after."""
    rows = improvable_cases(100)
    mixed = knows(*SYNONYMS, heart=("scar",))
    ids = [item.id for item in objective.ground.items]
    text = {case: words for case, words, _, _ in rows}
    wet = {case for case, _, one, _ in rows if one}
    big = {case for case, _, _, one in rows if one}
    named = {case for case in ids if "pleural effusion" in text[case]}
    scar = {case for case in ids if "scar" in text[case]}
    effects = {one.component: one for one in find_effects(objective, mixed)}
    assert set(effects) == {EFFUSION, "cardiomegaly"}
    right, wrong, before, after = effects[EFFUSION][1:]
    assert right == tuple(case for case in ids if case in wet - named)
    assert (wrong, after) == ((), 1.0)
    assert before == pytest.approx(2 * len(named) / (len(named) + len(wet)))
    right, wrong, before, after = effects["cardiomegaly"][1:]
    assert right == ()
    # The name of the guide is one of its wordings.
    assert wrong == tuple(case for case in ids if case in scar - big)
    assert before == 1.0
    assert after == pytest.approx(2 * len(big) / (len(big) + len(big | scar)))
    assert find_effects(objective, TINY) == ()


def test_a_case_that_the_engine_failed_on_is_neither_put_right_nor_wrong(
    objective, monkeypatch
):
    """On either side; it is in no score of the other side."""
    mixed = knows(*SYNONYMS, heart=("scar",))
    before, after = (objective.answers(one).copy() for one in (TINY, mixed))
    effects = {one.component: one for one in find_effects(objective, mixed)}
    right, wrong = effects[EFFUSION].fixed, effects["cardiomegaly"].broken
    ids = [item.id for item in objective.ground.items]
    after[ids.index(right[0])] = ValueCode.FAILED
    before[ids.index(right[1])] = ValueCode.FAILED
    before[ids.index(wrong[0])] = ValueCode.FAILED
    after[ids.index(wrong[1])] = ValueCode.FAILED

    def answers(candidate, rows=None):
        """Return the answers with the failures put in."""
        return before if candidate == TINY else after

    monkeypatch.setattr(objective, "answers", answers)
    lost = {*right[:2], *wrong[:2]}
    named = sum("pleural effusion" in words for _, words, _, _ in improvable_cases(100))
    wet = {case for case, _, one, _ in improvable_cases(100) if one} - lost
    found = {one.component: one for one in find_effects(objective, mixed)}
    assert found[EFFUSION] == (
        EFFUSION,
        right[2:],
        (),
        pytest.approx(2 * named / (named + len(wet))),
        1.0,
    )
    assert found["cardiomegaly"].fixed == ()
    assert found["cardiomegaly"].broken == wrong[2:]
    assert found["cardiomegaly"].before == 1.0


def test_instructions_have_the_effects_on_labels_whose_guide_stays(objective):
    """The others tell their own; by rules nothing changes, and scores are means."""
    system = replace(knows(*SYNONYMS), system="Read it.\n")
    effects = {one.component: one for one in find_effects(objective, system)}
    assert set(effects) == {EFFUSION, INSTRUCTIONS}
    assert effects[INSTRUCTIONS][1:] == ((), (), 1.0, 1.0)
    (alone,) = find_effects(objective, replace(TINY, system="Read it.\n"))
    f1 = objective.score(objective.answers(TINY)).by_label
    assert alone == (
        INSTRUCTIONS,
        (),
        (),
        pytest.approx(f1.mean()),
        pytest.approx(f1.mean()),
    )


def test_the_effort_of_a_search_is_added_up_over_its_rounds(objective):
    """What was scored, proposed and refused, by name; each search is told once done."""
    rounds = iter(range(1, 10))

    def propose(cases, seed):
        number = next(rounds)
        refused = {Objection.LONG: number, Objection.EMPTY: 1}
        return Proposed((), 10 * number, number, refused)

    finder, told = RankedFinder(objective, propose), []
    found = search_nested(objective, finder, splits_of(objective)[:2], tell=told.append)
    assert told == [1, 2, 3]
    assert finder.effort == (
        0,
        30,
        3,
        ((Objection.EMPTY.value, 2), (Objection.LONG.value, 3)),
        0,
    )
    assert finder.reflecting is None
    assert finder.draw_curve((), ()) == ()
    assert found.estimate.cases < len(objective.ground.items)
    assert found.estimate.gain.estimate == 0
