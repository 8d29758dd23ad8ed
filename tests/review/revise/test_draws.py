"""Several draws of a parent and a draft: what is called harm, and what a surplus."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from loop.core.records import Status, Value, ValueCode
from loop.evaluate.align import AlignedPairs
from loop.evaluate.protocol import Protocol
from loop.review.revise.check import TargetOutcome, check_draws
from loop.review.revise.check_record import summarise
from loop.review.revise.draws import (
    DrawnAnswers,
    DrawnVerdict,
    ShareName,
    find_least_loss,
    take_majority,
    weigh_draws,
)
from loop.review.submit import Anchor
from loop.review.verdict import Judgement, Verdict
from loop.stats.paired import stratified_interval

RULE = Protocol()
P, A, U = ValueCode.PRESENT, ValueCode.ABSENT, ValueCode.UNCERTAIN
FAILED, UNPARSED = ValueCode.FAILED, ValueCode.UNPARSED
LABELS = ("common", "second", *(f"rare{n}" for n in range(6)))
SHARES = (0.25, 0.12, *(0.02 + 0.01 * n for n in range(6)))
COUPLINGS = {"borderline": 0.8, "steady": 0.95, "hardly ever": 0.998}


class World(NamedTuple):
    """A made-up model that errs partly by case, partly by the exact prompt."""

    rng: np.random.Generator
    truth: np.ndarray
    cases: np.ndarray
    """What of an error belongs to the case; standard normal."""

    coupling: float
    """Share of the variance that belongs to the case."""

    def error(self) -> np.ndarray:
        """Return the chance of an error in every case."""
        return np.where(self.truth == 1, 0.15, 0.01)

    def answer(self, error=None) -> AlignedPairs:
        """Return what one prompt is answered."""
        by_prompt = self.rng.standard_normal(self.truth.shape)
        hardness = np.sqrt(self.coupling) * self.cases
        hardness = hardness + np.sqrt(1 - self.coupling) * by_prompt
        wrong = ndtr(hardness) < (self.error() if error is None else error)
        return table(self.truth, np.where(wrong, 1 - self.truth, self.truth), LABELS)

    def ask(self, draws=3, error=None) -> tuple[AlignedPairs, ...]:
        """Return the answers of several draws."""
        return tuple(self.answer(error) for _ in range(draws))


def world(seed, coupling=0.8, cases=300):
    """Return a world of its own."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((cases, len(LABELS))) < SHARES).astype(np.int8)
    return World(rng, truth, rng.standard_normal(truth.shape), coupling)


def table(truth, answers, labels=("edema",)):
    """Return the pairs of one run."""
    truth = np.asarray(truth, dtype=np.int8).reshape(-1, len(labels))
    return AlignedPairs(
        case_ids=tuple(f"c{n}" for n in range(len(truth))),
        labels=tuple(labels),
        reference=truth,
        predicted=np.asarray(answers, dtype=np.int8).reshape(truth.shape),
        statuses=dict.fromkeys(Status, 0),
        not_run=0,
    )


def drawn(truth, before, after):
    """Return the draws of one label; each a list of answers."""
    return DrawnAnswers(
        tuple(table(truth, one) for one in before),
        tuple(table(truth, one) for one in after),
    )


def verdict(*cases, **more):
    """Return a verdict that wants these cases right."""
    return Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        case_ids=cases,
        comment="general",
        **more,
    )


def failures(answers, truth):
    """Return the failing pairs of a run with what would be right."""
    return [
        (f"c{row}", LABELS[column])
        for row, column in np.argwhere(answers.predicted != truth)
    ]


def find_harm(evidence):
    """Return the labels that are called worse."""
    return [one.label for one in evidence.every() if one.harmed]


@pytest.mark.parametrize("coupling", COUPLINGS.values(), ids=COUPLINGS)
@pytest.mark.parametrize("repeats", [False, True], ids=["spaced", "answers alike"])
def test_equal_versions_are_called_worse_as_seldom_as_is_said(coupling, repeats):
    """However the draws of one case hang together, at most 5 % of checks."""
    rounds, alarms = 60, 0
    for seed in range(rounds):
        model = world(seed, coupling)
        before, after = (
            (model.answer(),) * 3 if repeats else model.ask() for _ in range(2)
        )
        alarms += bool(find_harm(weigh_draws(DrawnAnswers(before, after), {}, RULE)))
    assert alarms <= binom.ppf(0.999, rounds, RULE.alpha)


def test_later_looks_show_what_the_first_could_not():
    """A correction of a third of the errors, of few verdicts."""
    shown = {3: 0, 6: 0, 9: 0}
    for seed in range(40):
        answers, expected = choose_targets(seed, 0.8, share=0.5, count=12, draws=9)
        for look, draws in enumerate(shown, 1):
            part = DrawnAnswers(*(side[:draws] for side in answers))
            surplus = weigh_draws(part, expected, RULE, look).surplus
            shown[draws] += surplus.shown
    assert shown[3] + 3 < shown[6] < shown[9]


@pytest.mark.parametrize("coupling", COUPLINGS.values(), ids=COUPLINGS)
def test_a_common_label_ten_points_worse_is_found_and_named(coupling):
    """At least 19 of 20, and no other label with it in more than 1 of 20."""
    found = others = 0
    for seed in range(40):
        model = world(seed, coupling)
        worse = model.error()
        worse[:, 0] += 0.1
        answers = DrawnAnswers(model.ask(), model.ask(error=worse))
        named = set(find_harm(weigh_draws(answers, {}, RULE))) - {""}
        found += "common" in named
        others += bool(named - {"common"})
    assert found >= 38
    assert others <= 2


@pytest.mark.parametrize("coupling", COUPLINGS.values(), ids=COUPLINGS)
def test_a_rare_label_that_lost_sensitivity_is_never_shown_not_worse(coupling):
    """Twenty points of a few cases: found, or too few cases to tell."""
    for seed in range(40):
        model = world(seed, coupling)
        worse = model.error()
        worse[:, 2] += np.where(model.truth[:, 2] == 1, 0.2, 0)
        evidence = weigh_draws(
            DrawnAnswers(model.ask(), model.ask(error=worse)), {}, RULE
        )
        assert "rare0" in evidence.rare
        assert evidence.labels[2].verdict in (
            DrawnVerdict.HARM,
            DrawnVerdict.INSUFFICIENT,
        )


def choose_targets(seed, coupling, share=1.0, count=26, draws=3):
    """Return draws, and cases that were chosen because a first draw failed.

    The draft errs on them with this share of the parent's chance.
    """
    model = world(seed, coupling)
    wrong = failures(model.answer(), model.truth)
    model.rng.shuffle(wrong)
    column = {label: number for number, label in enumerate(LABELS)}
    expected = {
        (case, label): ValueCode(int(model.truth[int(case[1:]), column[label]]))
        for case, label in wrong[:count]
    }
    error = model.error()
    for case, label in expected:
        error[int(case[1:]), column[label]] *= share
    answers = DrawnAnswers(model.ask(draws), model.ask(draws, error=error))
    return answers, expected


def targeted(seed, coupling, share=1.0):
    """Return the evidence on them."""
    return weigh_draws(*choose_targets(seed, coupling, share), RULE)


@pytest.mark.parametrize("coupling", COUPLINGS.values(), ids=COUPLINGS)
def test_nonsense_has_no_surplus_although_it_fixes_many(coupling):
    """What failed once is right the next time by itself; that is not the draft's."""
    found = [targeted(seed, coupling).surplus for seed in range(50)]
    covered = sum(one.interval.low <= 0 <= one.interval.high for one in found)
    assert covered >= 46
    if coupling == min(COUPLINGS.values()):
        assert np.mean([one.after / one.readings for one in found]) > 0.3


def test_a_true_correction_has_a_surplus_at_three_draws():
    """At least 17 of 20 drafts of 26 verdicts."""
    shown = sum(targeted(seed, 0.8, 1 / 3).surplus.shown for seed in range(40))
    assert shown >= 34


def test_with_the_draws_what_can_be_shown_gets_smaller():
    """Three targeted cases: nothing in one draw, one of them in three."""
    truth = [P] * 3 + [A] * 60
    right, wrong = [P] * 3 + [A] * 60, [A] * 63
    expected = {(f"c{n}", "edema"): P for n in range(3)}

    def least(draws):
        answers = drawn(truth, [wrong] * draws, [right] * draws)
        return weigh_draws(answers, expected, RULE).surplus.least

    assert [least(one) for one in (1, 2, 3)] == [None, 2 / 3, 1 / 3]


def test_harm_is_said_with_what_was_tested():
    """Two hundred negatives, a tenth of them lost in every draw."""
    truth = [P] * 20 + [A] * 200
    lost = [P] * 40 + [A] * 180
    check = check_draws(drawn(truth, [truth] * 3, [lost] * 3), (), (), RULE)
    (label,), evidence = check.over_draws.labels, check.over_draws
    sensitivity, specificity = label.harm
    assert (sensitivity.p, sensitivity.harmed) == (None, False)
    assert specificity.harmed
    assert specificity.p == pytest.approx(0.5**20)
    assert specificity.difference == (20, 0, 200)
    # A rare label alone is no group of its own.
    assert (evidence.rare, evidence.together) == (("edema",), None)
    assert (evidence.tests, evidence.tested) == (2, 1)
    assert label.verdict is DrawnVerdict.HARM
    assert check.reasons == (
        "evidence of harm: edema (specificity -10.0 % of 200, p < 0.001)",
    )
    assert not check.passed


def test_a_loss_that_a_gain_makes_up_for_is_none():
    """Ten lost and ten gained cannot be told from chance."""
    truth = [P] * 100
    before, after = [A] * 10 + [P] * 90, [P] * 90 + [A] * 10
    check = check_draws(drawn(truth, [before] * 3, [after] * 3), (), (), RULE)
    assert check.passed
    assert check.over_draws.labels[0].harm[0].p > 0.5


def test_the_parents_churn_is_of_its_own_draws():
    """What the draft does has no part in it."""
    truth = [A] * 10
    flipping = [[A] * 10, [P] + [A] * 9, [A] * 10]
    evidence = weigh_draws(drawn(truth, flipping, [[P] * 10] * 3), {}, RULE)
    (label,) = evidence.labels
    assert (label.churn.flipped, label.churn.n) == (1, 10)
    assert evidence.churn == pytest.approx(2 / 3 / 10)


def test_one_draw_shows_no_churn():
    """There is nothing to compare it with."""
    evidence = weigh_draws(drawn([A] * 9, [[A] * 9], [[A] * 9]), {}, RULE)
    assert evidence.churn is None
    assert evidence.labels[0].churn is None


def test_a_margin_is_shown_where_the_cases_can_show_it():
    """And where they cannot, no verdict hides it."""
    many, few = [P] * 100 + [A] * 200, [P] * 20 + [A] * 280

    def label(truth, after):
        answers = drawn(truth, [truth] * 3, [after] * 3)
        return weigh_draws(answers, {}, RULE).labels[0]

    same = label(many, many)
    assert same.verdict is DrawnVerdict.NOT_WORSE
    assert [one.share for one in same.margins] == ["accuracy", "sensitivity"]
    assert all(one.shown for one in same.margins)
    rare = label(few, few)
    assert rare.verdict is DrawnVerdict.INSUFFICIENT
    assert [one.shown for one in rare.margins] == [True, False]
    lost = [A] * 3 + [P] * 97 + [A] * 200
    assert label(many, lost).verdict is DrawnVerdict.NOT_SHOWN


def test_a_mean_over_draws_counts_parts_of_cases():
    """Lost in one draw of three is a third of a case."""
    truth = [P] * 60
    once = [[A] + [P] * 59, truth, truth]
    evidence = weigh_draws(drawn(truth, [truth] * 3, once), {}, RULE)
    assert evidence.labels[0].harm[0].difference == (pytest.approx(1 / 3), 0, 60)


def test_rare_labels_have_one_test_together():
    """Five labels with a few positives each show what none shows alone."""
    names = tuple(f"l{n}" for n in range(5))
    truth = np.zeros((100, 5), dtype=np.int8)
    for column in range(5):
        truth[column * 20 : column * 20 + 6, column] = 1
    lost = truth.copy()
    for column in range(5):
        lost[column * 20 : column * 20 + 2, column] = 0
    answers = DrawnAnswers(
        (table(truth, truth, names),) * 3, (table(truth, lost, names),) * 3
    )
    evidence = weigh_draws(answers, {}, RULE)
    assert evidence.rare == names
    assert find_harm(evidence) == [""]
    (test,) = evidence.together.harm
    assert test.share is ShareName.SENSITIVITY
    assert test.difference == (10, 0, 30)
    assert list(evidence.describe_harm()) == [
        "the 5 rare labels together (sensitivity -33.3 % of 30, p < 0.001)"
    ]


def test_an_engine_that_failed_says_nothing():
    """A draw that failed in one version counts in neither."""
    truth = [P] * 4
    before = [[FAILED, P, P, P], [P] * 4, [P] * 4]
    after = [[A, P, P, P], [A, P, P, P], [FAILED, P, P, P]]
    check = check_draws(drawn(truth, before, after), [verdict("c0", "c1")], (), RULE)
    first, second = check.over_draws.targets
    assert first == ("c0", "edema", 1, 0, 1)
    assert second == ("c1", "edema", 3, 3, 3)


def test_targets_are_judged_by_what_most_draws_say():
    """One that stays wrong is listed, and does not stop the commit."""
    truth = [P] * 6
    before = [[A] * 6] * 3
    after = [[P] * 5 + [A], [P] * 5 + [A], [A] + [P] * 4 + [A]]
    check = check_draws(
        drawn(truth, before, after),
        [verdict(*(f"c{n}" for n in range(6)))],
        (),
        RULE,
    )
    assert check.count(TargetOutcome.FIXED) == 5
    assert check.count(TargetOutcome.UNCHANGED) == 1
    assert check.passed
    surplus = check.over_draws.surplus
    assert (surplus.before, surplus.after, surplus.readings) == (0, 14, 18)
    assert surplus.shown


def test_a_draft_without_a_surplus_is_refused_for_want_of_power():
    """The reason says what was found and what could be, not that it did harm."""
    truth = [P] * 4
    before = [[A, A, P, A], [A, P, A, A], [P, A, A, A]]
    after = [[P, A, A, A], [A, A, P, A], [A, P, A, A]]
    targets = [verdict("c0", "c1", "c2", "c3")]
    check = check_draws(drawn(truth, before, after), targets, (), RULE)
    (reason,) = check.reasons
    assert reason.startswith(
        "the draft is not shown to put targeted cases right: right in 3 of 12 "
        "readings, the parent asked again in 3 (surplus +0 %, "
    )
    assert reason.endswith("can show +58 % or more, and more draws (--draws) less")
    everywhere = check_draws(drawn(truth, [truth] * 3, [truth] * 3), targets, (), RULE)
    assert "the parent leaves no room" in everywhere.reasons[0]


def test_what_is_right_must_be_known_of_a_target():
    """A case that nobody decides is named."""
    check = check_draws(drawn([U], [[A]] * 3, [[P]] * 3), [verdict("c0")], (), RULE)
    assert check.reasons == (
        "no targeted case could be judged in any draw",
        "nothing says what is right in targeted cases (give correct_value): c0 edema",
    )
    said = [verdict("c0", correct_value=Value.PRESENT)]
    gone = check_draws(drawn([P], [[P]] * 3, [[P]] * 3), [verdict("c9")], (), RULE)
    assert gone.reasons == ("no targeted case could be judged in any draw",)
    failing = drawn([P], [[A], [FAILED]], [[FAILED], [P]])
    apart = check_draws(failing, [verdict("c0")], (), RULE)
    assert "no targeted case could be judged in any draw" in apart.reasons
    assert check_draws(drawn([U], [[A]] * 3, [[P]] * 3), said, (), RULE).passed


def test_an_anchor_holds_by_most_draws():
    """One draw of three breaks nothing; two do."""
    truth = [P] * 50
    anchors = [Anchor("c0", "edema", None)]
    once = [[A, *truth[1:]], truth, truth]
    twice = [[A, *truth[1:]], [A, *truth[1:]], truth]
    held = check_draws(drawn(truth, [truth] * 3, once), (), anchors, RULE)
    broke = check_draws(drawn(truth, [truth] * 3, twice), (), anchors, RULE)
    assert held.passed
    assert broke.reasons == ("anchored cases broke: c0 edema",)


def test_unreadable_answers_count_by_the_mean_over_draws():
    """Three of a hundred cases in one draw of three are one in a hundred."""
    truth = [A] * 100
    some = [UNPARSED] * 3 + [A] * 97
    check = check_draws(drawn(truth, [truth] * 3, [some, truth, truth]), (), (), RULE)
    assert check.unanswered[:2] == (0, pytest.approx(0.01))
    assert check.passed
    worse = check_draws(drawn(truth, [truth] * 3, [some] * 3), (), (), RULE)
    assert "3.0% from the draft" in worse.reasons[-1]


@pytest.mark.parametrize(
    ("answers", "most"),
    [
        ((P, P, A), P),
        ((P, A, U), U),
        ((P, A), U),
        ((P, FAILED), P),
        ((FAILED, FAILED), FAILED),
        ((UNPARSED, UNPARSED, P), UNPARSED),
        ((A,), A),
    ],
)
def test_the_answer_of_most_draws(answers, most):
    """No draw that failed has a say, and a tie is uncertain."""
    found = take_majority([table([P], [one]) for one in answers])
    assert found.predicted.tolist() == [[most]]


def test_the_ledger_names_the_procedure():
    """A second form: counts and names, no case."""
    truth = [P] * 20 + [A] * 200
    lost = [P] * 40 + [A] * 180
    answers = drawn(truth, [truth] * 3, [lost] * 3)
    found = summarise(check_draws(answers, [verdict("c0")], (), RULE))
    assert found["form"] == 2
    assert found["procedure"].startswith("harm: sign-flip test, Tarone, Holm;")
    assert (found["draws"], found["tests"], found["tested"]) == (3, 2, 1)
    assert found["look"] == 1
    assert found["harmed"] == ["edema specificity"]
    assert found["not_shown"] == {"accuracy": ["edema"], "sensitivity": ["edema"]}
    assert found["surplus"]["readings"] == 3
    assert "c0" not in str(found)


def test_a_label_that_neither_version_asks_for_is_not_judged():
    """It would count as wrong in both, and water down the rare labels."""
    asked = ValueCode.NOT_ASKED
    truth = [P] * 10 + [A] * 10
    none = drawn(truth, [[asked] * 20] * 2, [[asked] * 20] * 2)
    evidence = weigh_draws(none, {}, RULE)
    assert (evidence.labels, evidence.unjudged) == ((), ("edema",))
    assert evidence.tests == 0
    dropped = drawn(truth, [truth] * 2, [[asked] * 20] * 2)
    (label,) = weigh_draws(dropped, {}, RULE).labels
    assert [one.harmed for one in label.harm] == [True, True]


@pytest.mark.parametrize(
    ("lost", "p", "harmed"), [(3, None, False), (4, 0.0625, True), (5, 0.03125, True)]
)
def test_a_p_of_exactly_the_level_is_harm(lost, p, harmed):
    """Four lost in every draw are 1 / 16; a first look has two thirds of the level."""
    truth = [P] * 40
    after = [A] * lost + [P] * (40 - lost)
    evidence = weigh_draws(
        drawn(truth, [truth] * 3, [after] * 3), {}, Protocol(alpha=3 / 32)
    )
    sensitivity = evidence.labels[0].harm[0]
    assert (sensitivity.p, sensitivity.harmed) == (p, harmed)


@pytest.mark.parametrize(
    ("n", "level", "least"),
    [
        (20, 0.05, 5 / 20),
        (20, 0.01, 7 / 20),
        (5, 0.05, 1.0),
        (4, 0.05, None),
    ],
)
def test_what_a_test_of_harm_could_find_is_the_closed_form(n, level, least):
    """Without other differences, j lost of n need only 1 / 2 ** j under the level."""
    assert find_least_loss(0.0, n, level) == least
    assert find_least_loss(100.0, 20, level) is None


def test_one_lost_case_can_be_the_least():
    """Where one draw in two may be wrong, one half is enough."""
    assert find_least_loss(0.0, 2, 0.5) == 0.5


@pytest.mark.parametrize(("positives", "reachable"), [(63, False), (64, True)])
@pytest.mark.parametrize("look", [1, 2])
def test_what_a_margin_rests_on_is_the_closed_form(positives, reachable, look):
    """Without a changed case Tango's lower limit of n is -z2 / (n + z2).

    A first look spends two thirds of the 5 %, a second two ninths.
    """
    truth = [P] * positives + [A] * 400
    same = drawn(truth, [truth] * 2, [truth] * 2)
    evidence = weigh_draws(same, {}, RULE, look)
    spent = 0.05 * 2 / 3**look
    assert evidence.alpha == pytest.approx(spent)
    assert evidence.confidence == pytest.approx(1 - spent)
    square = ndtri(1 - spent) ** 2
    (label,) = evidence.labels
    assert [(one.share, one.margin, one.bound) for one in label.margins] == [
        (share, margin, pytest.approx(-square / (n + square)))
        for share, margin, n in (
            ("accuracy", 0.02, positives + 400),
            ("sensitivity", 0.05, positives),
        )
    ]
    assert label.margins[1].reachable is (reachable and look == 1)
    assert bool(evidence.rare) is not label.margins[1].reachable


def test_a_label_that_nobody_has_is_no_rare_one():
    """There is no sensitivity that more cases of the cohort could show."""
    truth = np.array([[1, 0, 1]] * 5 + [[0, 0, 0]] * 5)
    answers = (table(truth, truth, ("a", "b", "c")),) * 2
    evidence = weigh_draws(DrawnAnswers(answers, answers), {}, RULE)
    assert [one.label for one in evidence.labels] == ["a", "b", "c"]
    assert evidence.rare == ("a", "c")
    assert [one.label for one in evidence.every()] == ["a", "b", "c", ""]
    assert (evidence.tests, evidence.tested) == (7, 0)
    (margin,) = evidence.together.margins
    assert (margin.share, margin.difference) == (ShareName.SENSITIVITY, (0, 0, 10))


@pytest.mark.parametrize("draws", [1, 3])
def test_the_least_loss_is_told_in_cases_whatever_the_number_of_draws(draws):
    """Of 40, beside one that is lost: by hand from z 1.834 of the level and 0.842.

    Six lost are as many as 1.834 * sqrt(1 + 6) + 0.842 = 5.69; five are not.
    """
    truth = [P] * 40
    once = [A] + [P] * 39
    evidence = weigh_draws(drawn(truth, [truth] * draws, [once] * draws), {}, RULE)
    sensitivity, specificity = evidence.labels[0].harm
    assert (sensitivity.p, sensitivity.least) == (None, 6 / 40)
    assert (specificity.p, specificity.least) == (None, None)
    assert find_least_loss(1.0, 40, 1 / 30) == 6 / 40


def test_the_least_loss_is_held_to_the_level_of_all_that_is_tested():
    """Ten of 40 lost on both sides: 13 are as many as 2.128 * sqrt(23) + 2.661.

    Of one test alone, at twice that level, 12 would be.
    """
    truth = [P] * 40 + [A] * 40
    lost = [A] * 10 + [P] * 30 + [P] * 10 + [A] * 30
    evidence = weigh_draws(drawn(truth, [truth] * 2, [lost] * 2), {}, RULE)
    assert (evidence.tests, evidence.tested) == (2, 2)
    assert [one.least for one in evidence.labels[0].harm] == [13 / 40] * 2
    assert find_least_loss(10.0, 40, 1 / 30) == 12 / 40
    assert list(evidence.describe_harm({"edema": "Oedema"})) == [
        f"Oedema ({share} -25.0 % of 40, p 0.002)"
        for share in ("sensitivity", "specificity")
    ]


def test_a_surplus_is_of_all_targets_and_the_least_of_those_seldom_right():
    """Right in 2, 0 and 1 of 3 draws before, in 3, 3 and 2 after.

    The least that would show is the second and the third put right in every draw:
    (2 + 3 + 3 - 3) / 9.
    """
    before = [[P, A, P], [P, A, A], [A, A, A]]
    after = [[P, P, P], [P, P, P], [P, P, A]]
    expected = {(f"c{n}", "edema"): P for n in range(3)}
    evidence = weigh_draws(drawn([P] * 3, before, after), expected, RULE)
    assert evidence.targets == (
        ("c0", "edema", 2, 3, 3),
        ("c1", "edema", 0, 3, 3),
        ("c2", "edema", 1, 2, 3),
    )
    surplus = evidence.surplus
    assert surplus.interval == stratified_interval(
        [2, 0, 1], [3, 3, 2], [3, 3, 3], confidence=1 - 0.05 * 2 / 3
    )
    assert (surplus.before, surplus.after, surplus.readings) == (3, 8, 9)
    assert (surplus.value, surplus.least) == (5 / 9, 5 / 9)
    assert surplus.shown
    nothing = weigh_draws(drawn([P] * 3, before, before), expected, RULE).surplus
    assert (nothing.value, nothing.shown, nothing.least) == (0, False, 5 / 9)


def test_the_parents_churn_is_the_mean_over_labels():
    """One of ten cases flips of the first label, two of the second."""
    truth = np.zeros((10, 2), dtype=np.int8)
    other = truth.copy()
    other[0, 0] = other[:2, 1] = 1
    before = (table(truth, truth, ("a", "b")), table(truth, other, ("a", "b")))
    evidence = weigh_draws(DrawnAnswers(before, before[:1] * 2), {}, RULE)
    assert [one.churn.disagreement for one in evidence.labels] == [0.1, 0.2]
    assert evidence.churn == pytest.approx(0.15)
    assert evidence.draws == 2
