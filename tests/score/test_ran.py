"""Ran Score against scikit-learn, closed forms and what must not matter."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_recall_fscore_support

from loop.core.errors import DataError
from loop.core.records import ValueCode
from loop.score.counting import GRADED_CODES
from loop.score.ran import average, score
from loop.score.records import Conventions, ExtractorFacts, NoFinding, Uncertain
from loop.stats.confusion import Confusion, average_f1, count_confusions
from loop.stats.resampling import NO_WIDTH
from tests.score.graded_tables import BINARY, VALUES, coverage, graded, systems, tables

GOLDEN = Path(__file__).parents[1] / "golden" / "ran_score_tables.json"
QUICK = {"resamples": 20, "permutations": 20}
EMPTY = {"skip": np.nan, "zero": 0, "one": 1}


def only(table, **conventions):
    """Return the one system's numbers."""
    result = score(table, Conventions(**conventions), resamples=2)
    (system,) = result.systems
    return system


@pytest.mark.slow
@settings(max_examples=1000)
@given(tables(BINARY), st.sampled_from(list(EMPTY)))
def test_a_thousand_tables_agree_with_scikit_learn(pair, policy):
    """Macro and micro, F1, precision and recall, under every zero division."""
    ours = only(graded(*pair), zero_division=policy)
    macro_f1 = f1_score(*pair, average="macro", zero_division=EMPTY[policy])
    check(ours.ran_score.value, macro_f1)
    undefined = {"average": "micro", "zero_division": np.nan}
    precision, recall, f1, _ = precision_recall_fscore_support(*pair, **undefined)
    check(ours.micro_precision, precision)
    check(ours.micro_recall, recall)
    check(ours.micro_f1.value, EMPTY[policy] if math.isnan(f1) else f1)
    precisions, recalls, *_ = precision_recall_fscore_support(*pair, zero_division=0)
    check(ours.macro_precision, macro(precisions, pair, policy))
    check(ours.macro_recall, macro(recalls, pair, policy))
    assert ours.micro_accuracy == pytest.approx((pair[0] == pair[1]).mean())
    assert ours.macro_accuracy == pytest.approx((pair[0] == pair[1]).mean())


def macro(rates, pair, policy):
    """Return the mean of scikit-learn's rates of the labels that occur, then the rest.

    A label that occurs on neither side counts as the policy says.
    """
    occurring = (pair[0] + pair[1]).any(axis=0)
    values = list(rates[occurring])
    if policy != "skip":
        values += [EMPTY[policy]] * int((~occurring).sum())
    return np.mean(values) if values else np.nan


def check(ours, theirs):
    """Assert equality; what they call NaN is None here."""
    if math.isnan(theirs):
        assert ours is None
    else:
        assert ours == pytest.approx(theirs, abs=1e-12)


@given(tables(GRADED_CODES, sides=1), st.sampled_from(list(Uncertain)))
def test_a_copy_of_the_references_scores_one_under_skip(codes, policy):
    """Exactly 1.0 for any table that holds a positive at all."""
    ours = only(graded(codes[0], codes[0]), uncertain=policy)
    assert ours.ran_score.value in (1.0, None)
    assert ours.ran_score.value == ours.perfect == ours.micro_f1.value
    positive = {Uncertain.PRESENT: (1, -1)}.get(policy, (1,))
    assert (ours.ran_score.value == 1.0) == bool(np.isin(codes, positive).any())


def test_three_single_findings_score_a_seventh_under_zero():
    """The published trap: 3 cases, 21 labels, a perfect copy, 0.142857."""
    truth = np.eye(3, 21, dtype=np.int8)
    table = graded(truth, truth)
    zero, skip = only(table, zero_division="zero"), only(table)
    assert zero.ran_score.value == zero.perfect == pytest.approx(3 / 21)
    assert zero.micro_f1.value == 1.0
    assert (skip.ran_score.value, skip.effective_labels) == (1.0, 3)
    assert only(table, zero_division="one").ran_score.value == 1.0
    assert skip.signature.endswith("|zd:skip|L:3/21|n:3")


def test_four_labels_against_themselves_score_what_the_released_code_printed():
    """The released evaluation's 0.190476 is 4 of 21 labels."""
    truth = np.tile(np.eye(4, 21, dtype=np.int8), (25, 1))
    table = graded(truth, truth)
    assert only(table, zero_division="zero").ran_score.value == pytest.approx(4 / 21)


@given(tables(GRADED_CODES), st.permutations(range(12)), st.sampled_from(list(EMPTY)))
def test_the_order_of_cases_changes_no_value(pair, order, policy):
    """Counts are sums; only the resamples are drawn by position."""
    rows = [row for row in order if row < pair.shape[1]]
    there = only(graded(*pair), zero_division=policy)
    back = only(graded(*pair[:, rows]), zero_division=policy)
    assert there.ran_score.value == back.ran_score.value
    assert there.labels == back.labels
    assert there.signature == back.signature


@given(tables(GRADED_CODES))
def test_every_pair_is_counted_once(pair):
    """Confusion counts, uncertain and unanswered sum to the pairs of each label."""
    table = graded(*pair)
    paired = int((pair[1] != ValueCode.MISSING).any(axis=1).sum())
    for label in only(table).labels:
        assert label.counts.n + label.uncertain + label.unanswered == paired


def test_uncertain_and_unanswered_are_counted_apart():
    """One of each, and neither is an answer of absent."""
    table = graded([[1], [1], [1], [-1]], [[1], [-1], [ValueCode.UNANSWERED], [0]])
    ours = only(table, uncertain=Uncertain.EXCLUDED)
    (label,) = ours.labels
    assert (label.counts.n, label.uncertain, label.unanswered) == (1, 2, 1)
    assert (ours.n, ours.ran_score.value, ours.micro_accuracy) == (1, 1.0, 1.0)


def test_a_system_that_is_never_answered_has_no_score():
    """None with a reason and the last rank, not 0."""
    truth = np.array([[1, 0], [0, 1]], dtype=np.int8)
    told = np.stack([np.full_like(truth, ValueCode.UNANSWERED), truth])
    result = score(graded(truth, told), Conventions(), **QUICK)
    good, bad = result.systems
    assert (good.system, good.rank, bad.system, bad.rank) == ("B", 1, "A", 2)
    assert bad.ran_score[:3] == (None, None, None)
    assert bad.ran_score.note.startswith("not estimable")
    assert (bad.n, bad.micro_accuracy, bad.macro_recall) == (0, None, None)
    (difference,) = result.differences
    assert (difference.difference.value, difference.p) == (None, None)


def test_systems_come_best_first_and_errors_cost_rank():
    """More and more errors, so the order is known."""
    result = score(systems(4), Conventions(), **QUICK)
    assert [one.system for one in result.systems] == ["A", "B", "C", "D"]
    assert [one.rank for one in result.systems] == [1, 2, 3, 4]
    assert sum(one.best for one in result.systems) == pytest.approx(1)


def test_a_lost_row_shifts_nothing():
    """Every other case keeps its score; the lost one is not scored."""
    whole = score(systems(2), Conventions(), **QUICK)
    lost = score(systems(2, missing=[(1, [7])]), Conventions(), **QUICK)
    gone = ("B", "c0007")
    kept = [case for case in whole.cases if case[:2] != gone]
    assert list(lost.cases) == kept
    numbers = {one.system: one.n for one in lost.systems}
    assert numbers == {"A": 60, "B": 59}
    assert lost.systems[0].ran_score == whole.systems[0].ran_score


def test_coverage_decides_what_is_a_pair():
    """One it calls missing counts nowhere; blanks that it paired are no answer."""
    table = graded([[1, 1], [-1, 0], [0, 1]], [[1, 0], [0, 1], [ValueCode.MISSING] * 2])
    told = [coverage("A", 2, missing=("c0001", "elsewhere"))]
    result = score(table, Conventions(), coverage=told, **QUICK)
    (one,) = result.systems
    assert [case.case_id for case in result.cases] == ["c0000", "c0002"]
    assert [label.counts.n for label in one.labels] == [1, 1]
    assert [label[2:4] for label in one.labels] == [(0, 1), (0, 1)]
    assert one.n == 1


def test_a_perfect_copy_is_judged_on_the_cases_of_the_system():
    """The only fracture is in a case that this system lacks."""
    truth = np.array([[1, 0], [0, 1]], dtype=np.int8)
    lacking = np.array([[1, 0], [ValueCode.MISSING, ValueCode.MISSING]], dtype=np.int8)
    table = graded(truth, [truth, lacking])
    result = score(table, Conventions(zero_division="zero"), **QUICK)
    assert {one.system: one.perfect for one in result.systems} == {"A": 1.0, "B": 0.5}


def test_the_same_label_scores_in_another_order_share_a_rank():
    """A sum in floating point depends on the order of its terms."""
    truth = np.ones((10, 3), dtype=np.int8)
    told = np.zeros((2, 10, 3), dtype=np.int8)
    for system, found in enumerate([(1, 2, 3), (1, 3, 2)]):
        for label, n in enumerate(found):
            told[system, :n, label] = 1
    result = score(graded(truth, told), Conventions(), **QUICK)
    assert [one.rank for one in result.systems] == [1, 1]


def test_a_case_counts_when_any_label_is_decided():
    """And the pairs left out are those of the system they are printed with."""
    truth = np.array([[1, 0], [1, 1]], dtype=np.int8)
    told = [truth, [[-1, 0], [1, ValueCode.UNANSWERED]]]
    rules = Conventions(uncertain=Uncertain.EXCLUDED)
    result = score(graded(truth, told), rules, **QUICK)
    left = {one.system: [label[2:4] for label in one.labels] for one in result.systems}
    assert left == {"A": [(0, 0), (0, 0)], "B": [(1, 0), (0, 1)]}
    assert [one.n for one in result.systems] == [2, 2]


def test_a_lower_confidence_gives_a_narrower_interval():
    """Of the score, and of every difference."""
    wide, narrow = (
        score(systems(2), Conventions(), confidence=level, resamples=500)
        for level in (0.95, 0.5)
    )
    for one, other in (
        (wide.systems[1].ran_score, narrow.systems[1].ran_score),
        (wide.systems[1].micro_f1, narrow.systems[1].micro_f1),
        (wide.differences[0].difference, narrow.differences[0].difference),
    ):
        assert one.low < other.low < other.high < one.high


def test_patients_are_resampled_as_a_whole():
    """Copies of every case under one patient say no more than the case itself."""
    table = systems(2)
    twice = graded(
        np.repeat(table.reference, 3, axis=0),
        np.repeat(table.candidates, 3, axis=1),
        patients=tuple(f"p{row // 3:03d}" for row in range(180)),
    )
    one = score(table, Conventions(), **QUICK)
    three = score(twice, Conventions(), **QUICK)
    assert (one.n_patients, three.n_patients, three.n_cases) == (None, 60, 180)
    for a, b in zip(one.systems, three.systems, strict=True):
        assert a.ran_score[:3] == pytest.approx(b.ran_score[:3], abs=1e-12)
        assert a.micro_f1[:3] == pytest.approx(b.micro_f1[:3], abs=1e-12)
    assert one.differences[0].p == three.differences[0].p


def test_an_interval_over_rare_labels_says_that_it_lies_low():
    """At 95 % it holds the true score in 4 of 5 samples of 100 such cases."""
    truth = np.zeros((60, 3), dtype=np.int8)
    truth[:20, 0] = truth[:9, 1] = 1
    result = score(graded(truth, truth), Conventions(), **QUICK)
    (one,) = result.systems
    assert one.ran_score.note.startswith("1 of 2 labels have fewer than 10 positives")
    truth[:10, 1] = 1
    enough = score(graded(truth, truth), Conventions(), **QUICK)
    assert "fewer than" not in enough.systems[0].ran_score.note


def test_a_label_that_is_only_invented_counts_among_the_rare():
    """Its F1 of 0 is in the mean, so that it is one of two labels, not one of one."""
    truth = np.zeros((60, 2), dtype=np.int8)
    truth[:20, 0] = 1
    told = truth.copy()
    told[0, 1] = 1
    result = score(graded(truth, told), Conventions(), **QUICK)
    note = result.systems[0].ran_score.note
    assert note.startswith("1 of 2 labels have fewer than 10 positives")


def test_scores_that_differ_in_the_fifth_decimal_are_no_tie():
    """One error more in 20,000 cases: F1 of 39,994/39,997 and 39,992/39,996."""
    truth = np.ones((20_000, 1), dtype=np.int8)
    told = np.stack([truth, truth])
    told[0, :3] = told[1, :4] = 0
    result = score(graded(truth, told), Conventions(), resamples=2, permutations=2)
    assert [(one.system, one.rank) for one in result.systems] == [("A", 1), ("B", 2)]


@pytest.mark.parametrize(("policy", "gap"), [("skip", 0.5), ("zero", 0.25)])
def test_a_difference_is_that_of_the_scores_under_the_same_convention(policy, gap):
    """Two labels, of which one never occurs: it halves each score under zero."""
    truth = np.array([[1, 0], [1, 0], [1, 0]], dtype=np.int8)
    told = np.array([truth, [[1, 0], [0, 0], [0, 0]]], dtype=np.int8)
    rules = Conventions(zero_division=policy)
    result = score(graded(truth, told), rules, **QUICK)
    first, second = result.systems
    (pair,) = result.differences
    assert pair.difference.value == pytest.approx(gap)
    assert first.ran_score.value - second.ran_score.value == pytest.approx(gap)


def test_every_reading_is_of_the_pairs_that_joining_found():
    """A row that joining calls missing counts under no policy, whatever it holds."""
    table = graded([[1, 1], [0, 1], [1, 1]], [[1, -1], [1, 0], [1, 1]])
    told = [coverage("A", 2, missing=("c0001",))]
    (one,) = score(table, Conventions(), coverage=told, **QUICK).systems
    found = {each.uncertain: (each.ran_score, each.cells) for each in one.readings}
    assert found == {
        Uncertain.WRONG: (pytest.approx((1 + 2 / 3) / 2), 4),
        Uncertain.ABSENT: (pytest.approx((1 + 2 / 3) / 2), 4),
        Uncertain.PRESENT: (1.0, 4),
        Uncertain.EXCLUDED: (1.0, 3),
    }


def test_one_patient_gives_a_score_and_no_interval():
    """Sixty cases of one patient do not show how patients differ."""
    table = replace(systems(2), patients=("p",) * 60)
    result = score(table, Conventions(), **QUICK)
    for one in result.systems:
        assert one.ran_score.value is not None
        assert one.ran_score[1:3] == one.micro_f1[1:3] == (None, None)
        assert one.ran_score.note.startswith("interval not estimable")
    assert result.n_patients == 1


def test_an_uncertain_answer_is_scored_by_the_policy():
    """The reference is positive; the answer is uncertain."""
    table = graded([[1], [1]], [[1], [-1]])
    values = {p.value: only(table, uncertain=p).ran_score.value for p in Uncertain}
    assert values == {"wrong": 2 / 3, "excl": 1.0, "pos": 1.0, "neg": 2 / 3}
    assert {p.value: only(table, uncertain=p).n for p in Uncertain} == {
        "wrong": 2,
        "excl": 1,
        "pos": 2,
        "neg": 2,
    }


def test_every_reading_is_told_the_chosen_first_and_each_as_scored_by_itself():
    """So a document can say how far a score moves between them."""
    table = graded(
        [[1, 0, -1], [1, 1, 0], [0, 1, 1]],
        [[[1, -1, 1], [-1, 1, 0], [-1, 1, -1]], [[1, 0, 0], [1, 1, 0], [0, 1, 1]]],
    )
    for policy in Uncertain:
        result = score(table, Conventions(uncertain=policy), **QUICK)
        for one in result.systems:
            assert one.readings[0].uncertain is policy
            assert one.readings[0].ran_score == pytest.approx(one.ran_score.value)
            assert one.readings[0].cells == sum(each.counts.n for each in one.labels)
            assert {read.uncertain for read in one.readings} == set(Uncertain)


def test_the_seed_decides_the_interval_and_nothing_else():
    """The same seed gives the same document."""
    options = {"resamples": 100, "permutations": 50}
    table = systems(3)
    first = score(table, Conventions(), seed=1, **options)
    assert first == score(table, Conventions(), seed=1, **options)
    other = score(table, Conventions(), seed=2, **options)
    for a, b in zip(first.systems, other.systems, strict=True):
        assert (a.ran_score.value, a.labels) == (b.ran_score.value, b.labels)
    assert any(
        a.ran_score.low != b.ran_score.low
        for a, b in zip(first.systems, other.systems, strict=True)
    )


def test_the_order_of_systems_changes_no_number():
    """Only who is named first among equals."""
    table = systems(3)
    turned = replace(
        table, candidates=table.candidates[::-1], systems=table.systems[::-1]
    )
    one = score(table, Conventions(), **QUICK)
    two = score(turned, Conventions(), **QUICK)
    assert one.systems == two.systems
    assert set(one.cases) == set(two.cases)


def test_what_was_done_is_in_the_result():
    """A number without its conventions is no number; of no label nothing is said."""
    facts = ExtractorFacts(ref="extractor@v7", digest="ab" * 32, engine="rules")
    table = replace(systems(2), extractor=facts, no_finding=NoFinding.CHEXPERT)
    told = [coverage("A", 60), coverage("B", 60)]
    conventions = Conventions(no_finding=NoFinding.CHEXPERT)
    result = score(table, conventions, coverage=told, seed=5, confidence=0.9, **QUICK)
    assert (result.seed, result.confidence, result.resamples) == (5, 0.9, 20)
    assert (result.extractor, result.conventions) == (facts, conventions)
    assert (result.coverage, result.assumptions) == (tuple(told), ())
    assert result.systems[0].signature == (
        "ran|extractor@v7:ababab|rules|unc:wrong|zd:skip|L:6/6|n:60"
    )


def test_conventions_that_contradict_the_codes_are_refused():
    """The signature would say what was not done."""
    with pytest.raises(ValueError, match="'No Finding' was made by 'ran'"):
        score(systems(1), Conventions(no_finding=NoFinding.READ))


def test_a_system_named_twice_is_refused():
    """A ranking could not tell them apart."""
    table = replace(systems(2), systems=("A", "A"))
    with pytest.raises(ValueError, match="named twice"):
        score(table, Conventions())


def test_codes_of_another_shape_are_refused():
    """By the shapes, before any number is made."""
    table = replace(systems(2), systems=("A",))
    with pytest.raises(ValueError, match="need codes of shapes"):
        score(table, Conventions())


@pytest.mark.parametrize(
    "option", [{"resamples": 0}, {"permutations": 0}, {"confidence": 1.0}]
)
def test_impossible_options_are_refused(option):
    """With the name of the option."""
    with pytest.raises(ValueError, match=next(iter(option))):
        score(systems(2), Conventions(), **option)


def test_nothing_to_score_says_what_to_give():
    """No case, or no system, is the input's fault."""
    empty = np.zeros((0, 3), dtype=np.int8)
    with pytest.raises(DataError, match="Give references and at least one system"):
        score(graded(empty, empty), Conventions())


def test_more_systems_than_can_be_compared_are_refused_before_memory_is():
    """1,500 systems are a million pairs: 70 GB and a traceback, seen once."""
    copy = np.eye(3, dtype=np.int8)
    with pytest.raises(DataError, match="101 systems are more than the 100"):
        score(
            graded(copy, [copy] * 101, systems=tuple(map(str, range(101)))),
            Conventions(),
            **QUICK,
        )


def test_as_many_systems_as_can_be_compared_are_scored(monkeypatch):
    """The limit itself is allowed; a hundred would take two seconds here."""
    monkeypatch.setattr("loop.score.ran.MOST_SYSTEMS", 2)
    assert len(score(systems(2), Conventions(), **QUICK).systems) == 2
    with pytest.raises(DataError, match="3 systems are more than the 2"):
        score(systems(3), Conventions(), **QUICK)


@given(tables(GRADED_CODES, sides=3))
def test_any_table_of_codes_gives_numbers_or_none(codes):
    """No warning, no NaN, no crash, whatever is undefined."""
    result = score(graded(codes[0], codes[1:]), Conventions(), **QUICK)
    for one in result.systems:
        numbers = (*one.ran_score[:3], *one.micro_f1[:3], one.best, one.perfect)
        assert not any(n is not None and math.isnan(n) for n in numbers)
    for pair in result.differences:
        assert pair.p is None or 0 < pair.p <= 1


@pytest.mark.parametrize("name", ["resamples", "permutations"])
def test_nothing_is_drawn_never(name):
    """Zero draws would look like certainty."""
    with pytest.raises(ValueError, match=f"{name} must be >= 1, got 0"):
        score(systems(2), Conventions(), **{**QUICK, name: 0})


def test_the_published_averages_are_found():
    """Table 4 before optimisation: 0.969, 0.794, 0.757 and an F1 of 0.753."""
    rows = json.loads(GOLDEN.read_text("utf-8"))["table4"]
    del rows["Average"]
    cells = ("tp", "fp", "fn", "tn")
    counts = np.array(
        [
            [row["confusion_pre_n300"][0][cell] for cell in cells]
            for row in rows.values()
        ]
    )
    rates = average(counts)
    assert rates.macro_accuracy == pytest.approx(0.969, abs=0.0005)
    assert rates.macro_precision == pytest.approx(0.794, abs=0.0005)
    assert rates.macro_recall == pytest.approx(0.757, abs=0.0005)
    assert float(average_f1(counts)) == pytest.approx(0.753, abs=0.0005)


@given(tables(VALUES))
def test_swapping_the_sides_swaps_precision_and_recall(pair):
    """Under every policy, micro and macro."""
    there, back = count_confusions(*pair), count_confusions(*pair[::-1])
    for policy in ("skip", "zero", "one"):
        one = average(there, zero_division=policy)
        other = average(back, zero_division=policy)
        assert one.micro_precision == other.micro_recall
        assert one.macro_precision == other.macro_recall
        assert one.macro_accuracy == other.macro_accuracy


def test_nothing_decided_gives_no_rate():
    """None, and no warning about dividing by 0."""
    assert set(average(np.zeros((3, 4), dtype=np.int64))) == {None}


def test_a_label_never_predicted_has_precision_zero_in_the_mean():
    """Leaving it out would reward silence: the F1 of that label is 0 as well."""
    counts = np.array([[5, 0, 0, 5], [0, 0, 3, 7]])
    for policy in ("skip", "zero", "one"):
        assert average(counts, zero_division=policy).macro_precision == 0.5


def test_equal_systems_share_their_rank():
    """Two copies are first together; the next one is third."""
    table = systems(2)
    told = np.stack([table.candidates[1], table.candidates[0], table.candidates[0]])
    result = score(graded(table.reference, told), Conventions(), **QUICK)
    assert [(one.system, one.rank) for one in result.systems] == [
        ("B", 1),
        ("C", 1),
        ("A", 3),
    ]
    tied = next(d for d in result.differences if {d.better, d.worse} == {"B", "C"})
    assert (tied.better, tied.difference.value, tied.p) == ("B", 0.0, 1.0)


def test_differences_are_seen_from_the_better_system():
    """The value is never negative, and lies in its interval."""
    table = systems(4)
    table = replace(table, candidates=table.candidates[::-1])
    result = score(table, Conventions(), resamples=500, permutations=200)
    place = {one.system: one.rank for one in result.systems}
    assert len(result.differences) == 6
    for one in result.differences:
        low, high = one.difference.low, one.difference.high
        assert place[one.better] < place[one.worse]
        assert one.difference.value > 0
        assert low <= one.difference.value <= high
        assert 0 < one.p <= one.p_holm <= 1


def test_one_system_has_no_differences():
    """There is nothing to compare it with."""
    result = score(systems(1), Conventions(), **QUICK)
    assert result.differences == ()
    assert result.systems[0].best == 1.0


def test_a_difference_is_taken_on_the_cells_of_both():
    """A case that one of them lacks is no advantage for the other."""
    table = systems(2, missing=[(1, [3, 4])])
    kept = [row for row in range(60) if row not in (3, 4)]
    smaller = graded(table.reference[kept], table.candidates[:, kept])
    one = score(table, Conventions(), **QUICK).differences[0]
    two = score(smaller, Conventions(), **QUICK).differences[0]
    assert one.difference.value == pytest.approx(two.difference.value, abs=1e-12)


def test_five_cases_cannot_show_a_difference():
    """All better in all five: 2 of 32 exchanges, and every one was counted."""
    truth = np.ones((5, 2), dtype=np.int8)
    told = np.zeros((2, 5, 2), dtype=np.int8)
    told[0], told[1, :, 0] = 1, 1
    (one,) = score(graded(truth, told), Conventions(), resamples=20).differences
    assert (one.better, one.worse, one.exact) == ("A", "B", True)
    assert one.difference.value == 0.5
    assert one.p == one.p_holm == 2 / 32


def test_two_systems_without_a_common_cell_have_no_difference():
    """None with a reason; nothing is flipped or tested."""
    truth = np.ones((4, 2), dtype=np.int8)
    told = np.full((2, 4, 2), ValueCode.UNANSWERED, dtype=np.int8)
    told[0, :2], told[1, 2:] = 1, 1
    (one,) = score(graded(truth, told), Conventions(), **QUICK).differences
    assert (one.better, one.worse) == ("A", "B")
    assert one.difference[:3] == (None, None, None)
    assert (one.p, one.p_holm) == (None, None)
    assert one.difference.note


def test_every_number_of_two_systems_by_hand():
    """Four cases, three labels: one never occurs, one is hedged, one is unanswered."""
    truth = [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, -1, 0]]
    first = [[1, 0, 0], [0, 1, 0], [1, ValueCode.UNANSWERED, 0], [0, 1, 0]]
    copy = [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0]]
    result = score(graded(truth, [first, copy]), Conventions(), **QUICK)
    best, other = result.systems
    assert (best.system, other.system) == ("B", "A")
    assert [one.counts for one in other.labels] == [
        (1, 1, 1, 1),
        (1, 0, 0, 1),
        (0, 0, 0, 4),
    ]
    assert [one.counts for one in best.labels] == [
        (2, 0, 0, 2),
        (2, 0, 0, 1),
        (0, 0, 0, 4),
    ]
    assert [(one.uncertain, one.unanswered) for one in other.labels] == [
        (0, 0),
        (1, 1),
        (0, 0),
    ]
    assert [one.f1 for one in other.labels] == [0.5, 1.0, None]
    assert [one.label for one in other.labels] == ["label_0", "label_1", "label_2"]
    assert other.ran_score.value == 0.75
    assert other.micro_f1.value == pytest.approx(4 / 6)
    assert (other.micro_precision, other.micro_recall) == (2 / 3, 2 / 3)
    assert other.micro_accuracy == 8 / 10
    assert (other.macro_precision, other.macro_recall) == (0.75, 0.75)
    assert other.macro_accuracy == pytest.approx((0.5 + 1 + 1) / 3)
    assert (other.n, other.effective_labels, other.perfect) == (4, 2, 1.0)
    assert (best.rank, other.rank) == (1, 2)
    assert best.best + other.best == pytest.approx(1)
    assert other.signature == "ran|given|unc:wrong|zd:skip|L:2/3|n:4"
    # On the cells that both decide: the second label without the third case.
    (pair,) = result.differences
    assert (pair.better, pair.worse) == ("B", "A")
    assert pair.difference.value == pytest.approx(1 - (0.5 + 1) / 2)
    assert (result.n_cases, result.labels) == (4, ("label_0", "label_1", "label_2"))


@pytest.mark.parametrize(
    ("policy", "precision", "recall"),
    [("skip", 0.25, 0.5), ("zero", 1 / 6, 1 / 3), ("one", 1 / 2, 2 / 3)],
)
def test_averages_count_an_empty_label_as_the_policy_says(policy, precision, recall):
    """One label half right, one never predicted or always missed, one empty."""
    counts = np.array([[1, 1, 0, 2], [0, 0, 2, 2], [0, 0, 0, 4]])
    found = average(counts, zero_division=policy)
    assert found.macro_precision == pytest.approx(precision)
    assert found.macro_recall == pytest.approx(recall)
    assert found.micro_precision == 0.5
    assert found.micro_recall == pytest.approx(1 / 3)
    assert found.micro_accuracy == 9 / 12
    assert found.macro_accuracy == pytest.approx((3 / 4 + 2 / 4 + 1) / 3)


def test_a_label_without_a_decided_pair_has_no_accuracy():
    """It is in no mean of accuracies, whatever counts in that of precision."""
    counts = np.array([[1, 1, 1, 1], [0, 0, 0, 0]])
    for policy in EMPTY:
        assert average(counts, zero_division=policy).macro_accuracy == 0.5
    nothing = average(counts[1:], zero_division="one")
    assert nothing == (None, None, None, 1.0, 1.0, None)


def test_only_invented_findings_have_a_precision_and_no_recall():
    """What nobody has cannot be found; what is said of it is wrong."""
    found = average(np.array([[0, 2, 0, 3]]))
    assert found == (0.0, None, 0.6, 0.0, 0.0, 0.6)
    missed = average(np.array([[0, 0, 2, 3]]))
    assert missed == (None, 0.0, 0.6, 0.0, 0.0, 0.6)


def test_corrected_scores_stand_beside_their_own_systems():
    """Whatever their ranks; scored alone each has the same."""
    table = systems(3)
    turned = replace(
        table, candidates=table.candidates[::-1], systems=table.systems[::-1]
    )
    errors = {"label_0": Confusion(90, 10, 10, 90)}
    result = score(turned, Conventions(), errors=errors, **QUICK)
    assert result.assumptions
    for one in result.systems:
        place = turned.systems.index(one.system)
        alone = replace(
            turned,
            systems=(one.system,),
            candidates=turned.candidates[place : place + 1],
        )
        (other,) = score(alone, Conventions(), errors=errors, **QUICK).systems
        assert one.corrected == other.corrected
        assert (one.corrected.value == one.ran_score.value) == (one.rank == 1)


def test_an_interval_without_width_is_none_and_says_why():
    """A copy of its references never errs, whichever cases are drawn."""
    truth = np.zeros((40, 2), dtype=np.int8)
    truth[:20, 0] = truth[20:, 1] = 1
    (copy,) = score(graded(truth, truth), Conventions(), **QUICK).systems
    assert copy.ran_score == (1.0, None, None, NO_WIDTH)
    truth[:, 1] = 0
    truth[:9, 1] = 1
    (rare,) = score(graded(truth, truth), Conventions(), **QUICK).systems
    assert rare.ran_score[:3] == (1.0, None, None)
    assert rare.ran_score.note.endswith(f"too low; {NO_WIDTH}")
    told = truth.copy()
    told[:5, 0] = 0
    (plain,) = score(graded(truth[:, :1], told[:, :1]), Conventions(), **QUICK).systems
    assert plain.ran_score.note == "" and plain.ran_score.low < plain.ran_score.high


@pytest.mark.parametrize(
    ("side", "shape"), [("reference", (3, 1)), ("candidates", (1, 2, 2))]
)
def test_codes_of_one_side_of_another_shape_are_refused(side, shape):
    """Either of the two, with what was needed and what was given."""
    table = graded([[1, 0]] * 3, [[1, 0]] * 3)
    wrong = replace(table, **{side: np.zeros(shape, dtype=np.int8)})
    with pytest.raises(ValueError, match=r"need codes of shapes \(3, 2\) and \(1, 3,"):
        score(wrong, Conventions())


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ((0, 3, 2), "0 systems, 3 cases, 2 labels"),
        ((1, 0, 2), "1 systems, 0 cases, 2 labels"),
        ((1, 3, 0), "1 systems, 3 cases, 0 labels"),
    ],
)
def test_whatever_is_lacking_is_told(shape, told):
    """Systems, cases or labels."""
    candidates = np.zeros(shape, dtype=np.int8)
    table = graded(np.zeros(shape[1:], dtype=np.int8), candidates)
    with pytest.raises(DataError, match=f"nothing to score: {told}"):
        score(table, Conventions())
