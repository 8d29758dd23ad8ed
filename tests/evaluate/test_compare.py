"""Two runs on the same cases: what is fixed, broken, or only hedged."""

from dataclasses import replace

import pytest
from scipy.stats import norm

from loop.core.errors import DataError
from loop.core.records import Status, UncertainAnswers, ValueCode
from loop.evaluate.compare import (
    LabelChange,
    Regression,
    ShareDifference,
    compare_inputs,
    list_differences,
    measure_losses,
    measure_regression,
    pair_answers,
    share_answers,
)
from loop.evaluate.gates import GateVerdict
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import Method
from loop.stats.confusion import average_f1, count_confusions
from loop.stats.paired import tango_interval
from tests.evaluate.scenes import (
    TAXONOMY,
    inputs,
    outcome,
    random_run,
    reference,
    silent,
)


def compare(before, after, standard):
    """Compare two lists of outcomes with few resamples."""
    return compare_inputs(
        inputs(before, standard),
        inputs(after, standard, run="b", prompt="extractor@v2"),
        resamples=200,
    )


def edema(comparison):
    """Return the change of one label."""
    return next(row for row in comparison.labels if row.label == "edema")


def runs(before, after, truth):
    """Return two runs that answer `before` and `after` for edema, case by case."""
    standard = reference({f"c{i}": {"edema": mark} for i, mark in enumerate(truth)})
    left, right = (
        [
            silent(f"c{i}") if value is None else outcome(f"c{i}", {"edema": value})
            for i, value in enumerate(values)
        ]
        for values in (before, after)
    )
    return compare(left, right, standard)


def test_changes_of_coverage_are_not_fixes():
    """Turning uncertain, becoming decided and losing an answer are listed apart."""
    change = edema(
        runs(
            before=[0, 1, 1, -1, -1, 1, 1, -1, 0, -1, 0],
            after=[1, 0, -1, 1, 0, None, 1, 1, -1, None, None],
            truth=[1, 1, 1, 1, 1, 1, -1, 1, 1, 1, 0],
        )
    )
    assert change.fixed == ("c0",)
    assert change.broken == ("c1",)
    assert change.became_uncertain == ("c2", "c8")
    assert change.became_decided == ("c3", "c4", "c7")
    assert change.decided_right == 2
    assert change.became_unanswered == ("c5", "c9", "c10")


@pytest.mark.parametrize(("gained", "testable"), [(5, False), (6, True)])
def test_too_few_changes_cannot_be_significant(gained, testable):
    """Fewer than six discordant cases never reach 0.05, whatever the split."""
    comparison = runs([0] * gained + [1] * 50, [1] * (gained + 50), [1] * (gained + 50))
    assert edema(comparison).testable is testable


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ((0, 0, 300), "PASS"),
        ((2, 10, 300), "PASS"),
        ((3, 1, 300), "INSUFFICIENT"),
        ((4, 0, 300), "INSUFFICIENT"),
        ((30, 0, 300), "FAIL"),
        ((0, 0, 0), "INSUFFICIENT"),
    ],
)
def test_regression_follows_the_score_interval(counts, verdict):
    """Margin 0.02 against the limits in the domain notes (-0.0089, 0.0087, ...)."""
    assert measure_regression(ShareDifference(*counts), 0.02).verdict.value == verdict


def test_a_limit_exactly_at_the_margin_decides_nothing():
    """Not worse is above the margin, worse is below it; a hair decides."""
    difference = ShareDifference(12, 4, 300)
    low, high = tango_interval(*difference, confidence=0.9)[:2]
    for margin, verdict in (
        (-low, GateVerdict.INSUFFICIENT),
        (-low + 1e-9, GateVerdict.PASS),
        (-high, GateVerdict.INSUFFICIENT),
        (-high - 1e-9, GateVerdict.FAIL),
    ):
        found = measure_regression(difference, margin=margin, confidence=0.95)
        assert found.verdict is verdict, margin
    least = -tango_interval(0, 0, 30, confidence=0.9).low
    for margin, reachable in ((least, False), (least + 1e-9, True)):
        none = measure_regression(ShareDifference(1, 0, 30), margin)
        assert none.reachable is reachable


def test_no_change_passes_only_with_enough_cases():
    """With 100 unchanged cases the limit is -0.026: a margin of 0.02 is undecided."""
    small = measure_regression(ShareDifference(0, 0, 100), 0.02)
    assert small.verdict is GateVerdict.INSUFFICIENT
    assert small.bound == pytest.approx(-0.0263, abs=5e-4)


def test_both_versions_are_scored_on_the_same_pairs():
    """Macro-F1 before and after use only pairs that both runs decide."""
    before, standard = random_run(80, noise=2.0)
    after, _ = random_run(80, noise=0.5)
    left, right = inputs(before, standard), inputs(after, standard)
    comparison = compare(before, after, standard)
    truth = left.pairs.binary_reference.copy()
    one, two = (
        side.pairs.answers_as(UncertainAnswers.EXCLUDED) for side in (left, right)
    )
    truth[(one < 0) | (two < 0)] = -1
    expected = float(average_f1(count_confusions(truth, two)))
    assert comparison.macro_after == pytest.approx(expected)
    difference = comparison.macro_after - comparison.macro_before
    assert comparison.macro.estimate == pytest.approx(difference)


def test_only_shared_cases_are_compared():
    """A limited run is compared on what both asked; the rest is counted."""
    outcomes, standard = random_run(20)
    comparison = compare(outcomes[:15], outcomes[5:][::-1], standard)
    counts = (comparison.cases, comparison.only_before, comparison.only_after)
    assert counts == (10, 5, 5)
    assert not any(row.fixed or row.broken for row in comparison.labels)


def test_runs_without_a_shared_case_are_refused():
    """There is nothing to compare, and no zero is invented."""
    outcomes, standard = random_run(20)
    with pytest.raises(DataError, match="no case in common"):
        compare(outcomes[:5], outcomes[5:], standard)


def test_runs_on_different_cohorts_are_refused():
    """Equal ids in two cohorts are not the same cases."""
    outcomes, standard = random_run(10)
    other = inputs(outcomes, standard, digest="d" * 64, name="other")
    with pytest.raises(DataError, match="same cohort"):
        compare_inputs(inputs(outcomes, standard), other)


def test_lost_sensitivity_does_not_hide_behind_accuracy():
    """Two of 20 positives lost among 1,000 cases pass on accuracy alone."""
    truth = [1] * 20 + [0] * 980
    comparison = runs(truth, [0, 0] + [1] * 18 + [0] * 980, truth)
    assert edema(comparison).accuracy.verdict is GateVerdict.PASS
    assert edema(comparison).verdict is GateVerdict.INSUFFICIENT
    assert [row.label for row in comparison.less_sensitive] == ["edema"]


TRUTH = [1] * 40 + [0] * 260


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (TRUTH, "PASS"),
        ([-1] * 300, "FAIL"),
        ([-1] * 40 + [0] * 260, "FAIL"),
        ([1] * 40 + [-1] * 260, "FAIL"),
        ([None] * 150 + TRUTH[150:], "INSUFFICIENT"),
        ([*TRUTH[:-150], *[None] * 150], "INSUFFICIENT"),
        ([None] * 300, "INSUFFICIENT"),
    ],
)
def test_a_version_that_no_longer_answers_does_not_pass(after, verdict):
    """Hedging or losing right answers is getting worse, not a change of coverage."""
    assert runs(TRUTH, after, TRUTH).verdict.value == verdict


def test_five_hedged_positives_of_many_cases_do_not_pass():
    """Too few positives for a limit, too few losses for accuracy: still not passed."""
    truth = [1] * 5 + [0] * 995
    comparison = runs(truth, [-1] * 5 + [0] * 995, truth)
    assert edema(comparison).accuracy.verdict is GateVerdict.PASS
    assert comparison.verdict is not GateVerdict.PASS
    assert comparison.less_sensitive == (edema(comparison),)


def test_a_lost_answer_counts_only_if_it_was_right():
    """A wrong answer that turns uncertain is neither lost nor gained."""
    change = edema(runs([1, 1, 0, 0, -1], [-1, None, -1, 1, 1], [1, 1, 1, 1, 1]))
    assert change.accuracy.difference == (2, 1, 4)
    assert change.sensitivity.difference == (2, 1, 4)


@pytest.mark.parametrize("swap", [False, True])
def test_a_failed_engine_is_no_wrong_answer(swap):
    """Its pairs are left out on either side, but too many leave nothing to say."""
    standard = reference({f"c{i}": {"edema": mark} for i, mark in enumerate(TRUTH)})
    good = [outcome(f"c{i}", {"edema": mark}) for i, mark in enumerate(TRUTH)]
    for failed, verdict in ((3, "PASS"), (4, "INSUFFICIENT")):
        down = [silent(f"c{i}", Status.ENGINE_FAILED) for i in range(failed)]
        pair = (good, [*down, *good[failed:]])
        comparison = compare(*(pair[::-1] if swap else pair), standard)
        assert edema(comparison).accuracy.difference == (0, 0, 300 - failed)
        assert comparison.verdict.value == verdict
        assert bool(comparison.reasons) is (verdict == "INSUFFICIENT")


def without(outcomes, label):
    """Return outcomes of a prompt that does not ask for `label`."""
    return [
        replace(
            one, fields={name: f for name, f in one.fields.items() if name != label}
        )
        for one in outcomes
    ]


def test_a_label_is_skipped_only_if_nobody_asks_or_the_reference_is_open():
    """Asked before or after is asked: a dropped label fails, a new one is open."""
    rows = {f"c{i}": {"edema": mark} for i, mark in enumerate(TRUTH)}
    standard = reference(rows, labels=["edema", "fracture"])
    full = [outcome(f"c{i}", {"edema": mark}) for i, mark in enumerate(TRUTH)]
    none = without(full, "edema")
    found = {
        (one, other): edema(compare(left, right, standard))
        for one, left in (("asks", full), ("not", none))
        for other, right in (("asks", full), ("not", none))
    }
    assert {pair: change.judged for pair, change in found.items()} == {
        ("asks", "asks"): True,
        ("asks", "not"): True,
        ("not", "asks"): True,
        ("not", "not"): False,
    }
    assert found["asks", "not"].verdict is GateVerdict.FAIL
    assert found["not", "asks"].verdict is GateVerdict.INSUFFICIENT
    comparison = compare(full, full, standard)
    assert {row.label for row in comparison.labels if row.judged} == {
        "edema",
        "fracture",
    }
    assert comparison.verdict is GateVerdict.PASS
    assert compare(full, none, standard).verdict is GateVerdict.FAIL


def test_a_hedged_answer_put_right_counts_in_a_check_and_not_in_a_comparison():
    """A check asks whether a draft is right more often; a comparison what was lost."""
    standard = reference({f"c{i}": {"edema": 1} for i in range(2)})
    before, after = (
        inputs(
            [outcome(f"c{i}", {"edema": one}) for i, one in enumerate(values)], standard
        )
        for values in ([-1, 1], [1, 1])
    )
    pair = pair_answers(before.pairs, after.pairs)
    at = pair.labels.index("edema")
    counts = [
        measure_losses(pair, cases, after.protocol)[at].accuracy.difference
        for cases in (pair.judged, pair.losable)
    ]
    assert counts == [(0, 1, 2), (0, 0, 1)]


def test_several_runs_share_the_cases_of_all_and_differ_whatever_the_reference_says():
    """By id, never by position; an open reference and a lost answer count too."""
    standard = reference({"a": {"edema": 1}, "b": {"edema": -1}, "c": {"edema": 0}})
    given = (
        [outcome("a", {"edema": 1}), outcome("b", {"edema": 1}), silent("c")],
        [outcome("b", {"edema": 0}), outcome("a", {"edema": 1}), outcome("x", {})],
        [outcome("b", {"edema": 1}), outcome("a", {"edema": 1})],
    )
    pairs = [inputs(one, standard).pairs for one in given]
    shared = share_answers(pairs)
    column = shared.labels.index("edema")
    assert shared.case_ids == ("a", "b")
    assert [one[:, column].tolist() for one in shared.answers] == [
        [1, 1],
        [1, 0],
        [1, 1],
    ]
    assert shared.differing[:, column].tolist() == [False, True]
    (found,) = list_differences(shared, "edema")
    assert found == ("b", "edema", ValueCode.UNCERTAIN, (1, 0, 1))
    assert list_differences(shared, "edema", start=1) == []
    assert list_differences(shared, "fracture") == []
    assert [one.label for one in list_differences(shared, most=1)] == ["edema"]
    with pytest.raises(ValueError, match="from two on, got 1"):
        share_answers(pairs[:1])


@pytest.mark.parametrize(("lost", "named"), [(1, False), (2, True)])
def test_sensitivity_that_fell_by_exactly_its_margin_is_not_less(lost, named):
    """One of 20 is 0.05, which the margin allows; what was gained counts against it."""
    truth = [1] * 20 + [0] * 280
    after = [0] * lost + truth[lost:]
    assert bool(runs(truth, after, truth).less_sensitive) is named
    before = [*truth[:19], 0, *truth[20:]]
    assert bool(runs(before, after, truth).less_sensitive) is False


@pytest.mark.parametrize(
    ("counts", "verdict", "tolerable"),
    [
        ((0, 0, 30), "INSUFFICIENT", "PASS"),
        ((1, 1, 30), "INSUFFICIENT", "PASS"),
        ((1, 0, 30), "INSUFFICIENT", "INSUFFICIENT"),
        ((2, 1, 30), "INSUFFICIENT", "INSUFFICIENT"),
        ((12, 0, 30), "FAIL", "FAIL"),
        ((0, 0, 0), "INSUFFICIENT", "PASS"),
        ((1, 1, 60), "INSUFFICIENT", "INSUFFICIENT"),
        ((0, 0, 60), "PASS", "PASS"),
    ],
)
def test_too_few_positives_tolerate_no_loss(counts, verdict, tolerable):
    """30 without a change have the limit -0.083 and cannot pass, 60 have -0.043.

    Where so many could pass, an open verdict stays open.
    """
    found = measure_regression(ShareDifference(*counts), 0.05)
    assert found.reachable is (counts[2] == 60)
    assert (found.verdict.value, found.tolerable.value) == (verdict, tolerable)


def test_only_labels_that_can_be_judged_are_corrected_for():
    """Eight lost and none gained: 2 / 2^8, times the two labels of the reference."""
    rows = {f"c{i}": {"edema": 1} for i in range(50)}
    standard = reference(rows, labels=["edema", "fracture"])
    before = [outcome(case, row) for case, row in rows.items()]
    after = [outcome(case, {"edema": int(i >= 8)}) for i, case in enumerate(rows)]
    found = compare(before, after, standard)
    assert edema(found).p == pytest.approx(2 / 2**8)
    assert edema(found).p_holm == pytest.approx(4 / 2**8)
    others = [one for one in found.labels if one.label != "edema"]
    assert {one.p_holm for one in others} == {1.0}
    given = [inputs(one, standard) for one in (before, after)]
    open_label = {"not_comparable": {"fracture": "nobody read it"}}
    alone = compare_inputs(*(replace(one, **open_label) for one in given), resamples=50)
    assert edema(alone).p_holm == pytest.approx(2 / 2**8)


@pytest.mark.parametrize(
    ("limits", "counts", "refused"),
    [
        ((None, 10), (20, 10), True),
        ((10, 5), (10, 5), True),
        ((None, None), (20, 10), False),
        ((None, 20), (20, 20), False),
    ],
)
def test_a_part_of_a_cohort_is_not_compared_with_all_of_it(limits, counts, refused):
    """A limit leaves cases out on purpose; a run that broke off did not mean to."""
    outcomes, standard = random_run(20)
    names = ("prompt", "prompt_digest", "contract", "cohort", "cohort_digest", "engine")
    spec = {**dict.fromkeys(names, ""), "draw": 0, "parameters": {}}
    pair = []
    for limit, count in zip(limits, counts, strict=True):
        one = inputs(outcomes[:count], standard)
        manifest = {"spec": {**spec, "limit": limit}}
        pair.append(replace(one, run=replace(one.run, manifest=manifest)))
    if refused:
        with pytest.raises(DataError, match="since --limit left cases out"):
            compare_inputs(*pair, resamples=50)
    else:
        assert compare_inputs(*pair, resamples=50).cases == min(counts)


def test_the_change_of_a_label_is_whole():
    """Every list, share, limit and p-value of ten cases told by hand."""
    truth = [1, 1, 1, 1, 0, 0, 0, 0, 1, -1]
    before = [1, 0, 1, -1, 0, 1, 0, -1, None, 1]
    after = [0, 1, 1, 1, 0, 0, -1, 1, 1, None]
    comparison = runs(before, after, truth)
    accuracy, sensitivity = ShareDifference(2, 2, 6), ShareDifference(1, 1, 3)
    assert edema(comparison) == LabelChange(
        label="edema",
        name="Edema",
        fixed=("c1", "c5"),
        broken=("c0",),
        became_uncertain=("c6",),
        became_decided=("c3", "c7"),
        decided_right=1,
        became_unanswered=(),
        # Over the five cases that all three decide: TP 2, FP 1, FN 1; then 2, 0, 1.
        f1_before=4 / 6,
        f1_after=0.8,
        p=1.0,
        p_holm=1.0,
        testable=False,
        accuracy=measure_regression(accuracy, 0.02),
        sensitivity=measure_regression(sensitivity, 0.05),
    )
    assert (comparison.cases, comparison.only_before, comparison.only_after) == (
        10, 0, 0,
    )  # fmt: skip
    assert comparison.unanswered_before == pytest.approx(1 / 9)
    # The last case decides that there is a finding, and has no answer after.
    assert comparison.unanswered_after == pytest.approx(1 / 10)
    assert comparison.reasons == tuple(
        f"the run {which} % of a label's answers unparsed or failed (at most 1 % "
        "allowed)"
        for which in ("before left 11.1", "after left 10.0")
    )


def test_an_uncertain_answer_counts_as_the_protocol_says_on_both_sides():
    """Wrong: a hedge is an error before and after; the lists of coverage stay."""
    truth = [1, 1, 1, 0, 0, 1]
    before, after = [-1, 1, -1, -1, 0, 1], [1, -1, -1, 0, -1, 1]
    standard = reference({f"c{i}": {"edema": mark} for i, mark in enumerate(truth)})
    protocol = Protocol(uncertain_answers="wrong")
    left, right = (
        inputs(
            [outcome(f"c{i}", {"edema": one}) for i, one in enumerate(values)],
            standard,
            protocol=protocol,
        )
        for values in (before, after)
    )
    found = edema(compare_inputs(left, right, resamples=20))
    assert (found.fixed, found.broken) == (("c0", "c3"), ("c1", "c4"))
    assert found.became_uncertain == ("c1", "c4")
    assert found.became_decided == ("c0", "c3") and found.decided_right == 2
    assert found.accuracy.difference == (2, 2, 6)
    assert found.sensitivity.difference == (1, 1, 4)
    # TP 2, FP 1, FN 2 on either side.
    assert (found.f1_before, found.f1_after) == (pytest.approx(4 / 7),) * 2


@pytest.mark.parametrize(("n", "reachable"), [(132, False), (133, True)])
def test_so_many_cases_without_a_change_can_show_a_margin(n, reachable):
    """The limit is then -z^2 / (n + z^2): -0.0201 of 132 cases, -0.0199 of 133."""
    found = measure_regression(ShareDifference(0, 0, n), 0.02)
    z2 = norm.ppf(0.95) ** 2
    assert found.bound == pytest.approx(-z2 / (n + z2))
    two_sided = norm.ppf(0.975) ** 2
    assert found.interval.low == pytest.approx(-two_sided / (n + two_sided))
    assert found.reachable is reachable
    assert (found.verdict is GateVerdict.PASS) is reachable
    assert found.margin == 0.02


def test_nothing_in_common_is_no_difference_and_cannot_pass():
    """A share of no case has no value and no limits."""
    none = ShareDifference(0, 0, 0)
    assert none.value is None
    assert ShareDifference(1, 4, 10).value == pytest.approx(0.3)
    assert measure_regression(none, 0.05) == Regression(
        difference=none,
        interval=None,
        bound=None,
        margin=0.05,
        verdict=GateVerdict.INSUFFICIENT,
        reachable=False,
    )


def test_patients_are_resampled_as_the_first_run_holds_them():
    """Whatever the order of the second run; a case without one is its own unit."""
    outcomes, standard = random_run(20)
    patients = [f"p{i // 2}" for i in range(18)] + ["", ""]
    before = inputs(outcomes, standard, patients=patients)
    after = inputs(outcomes[::-1], standard, patients=[""] * 20)
    found = compare_inputs(before, after, resamples=30, seed=4)
    assert found.method == Method(
        unit="patient", units=11, known=18, resamples=30, seed=4
    )
    assert found.macro_before == found.macro_after
    assert found.macro.estimate == 0


@pytest.mark.parametrize(
    ("silent_cases", "said"),
    [((1, 0), ()), ((0, 1), ()), ((2, 0), ("before",)), ((2, 3), ("before", "after"))],
)
def test_answers_may_be_missing_as_far_as_the_protocol_says(silent_cases, said):
    """1 of 100 is the most; each run is told apart, and the reference's own gaps not.

    Failed and unparsed count alike.
    """
    rows = {f"c{i}": {"edema": int(i < 40)} for i in range(100)}
    rows["open"] = {"edema": -1}
    standard = reference(rows, ["edema"])
    pair = []
    for many in silent_cases:
        answers = [outcome(case, {"edema": int(i < 40)}) for i, case in enumerate(rows)]
        for at in range(many):
            status = Status.UNPARSED if at else Status.ENGINE_FAILED
            answers[at] = silent(f"c{at}", status)
        answers[-1] = silent("open")
        pair.append(answers)
    found = compare(*pair, standard)
    assert (found.unanswered_before, found.unanswered_after) == tuple(
        many / 100 for many in silent_cases
    )
    assert [reason.split()[2] for reason in found.reasons] == list(said)


def test_runs_that_cannot_be_compared_say_which_and_what_to_do():
    """By id, cohort and number of cases."""
    outcomes, standard = random_run(20)
    one = inputs(outcomes, standard, run="a")
    other = inputs(outcomes, standard, run="b", digest="d" * 64, name="elsewhere")
    with pytest.raises(DataError) as told:
        compare_inputs(one, other)
    assert str(told.value) == (
        "run a asked cohort made_up and run b asked elsewhere. Compare two runs on the "
        "same cohort."
    )
    apart = inputs([outcome("z", {})], standard, run="b")
    with pytest.raises(DataError) as told:
        compare_inputs(one, apart)
    assert str(told.value) == (
        "runs a and b have no case in common. Run both on the same cases."
    )


def test_differences_of_several_runs_are_given_in_parts():
    """So many after so many, in the order of cases and labels."""
    rows = {f"c{i}": {"edema": 1, "fracture": 0} for i in range(3)}
    standard = reference(rows)
    given = [
        inputs(
            [outcome(case, {"edema": one, "fracture": one}) for case in rows], standard
        ).pairs
        for one in (1, 0)
    ]
    shared = share_answers(given)
    every = [(one.case_id, one.label) for one in list_differences(shared)]
    changed = {"edema", "fracture", "no_finding"}
    names = [label for label in TAXONOMY.ids if label in changed]
    assert every == [(case, label) for case in rows for label in names]
    part = list_differences(shared, start=1, most=4)
    assert [(one.case_id, one.label) for one in part] == every[1:5]
    assert list_differences(shared, start=2) == list_differences(shared)[2:]
    last = list_differences(shared, "fracture", start=1, most=5)
    assert [one.case_id for one in last] == ["c1", "c2"]
