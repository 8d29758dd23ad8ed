"""Candidates are scored like runs, and are no runs."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import pytest

from loop.core.errors import DataError, EngineError
from loop.core.records import Completion, UncertainAnswers, ValueCode
from loop.evaluate.evaluation import evaluate_run
from loop.optimize.estimate import estimate_nested
from loop.optimize.objective import open_objective
from loop.optimize.search_labels import FAILING, choose_labels
from loop.optimize.splits import split_cases
from loop.run.asking import ChosenEngine, HeldEngine
from loop.run.store import open_store
from loop.run.task import run_prompt
from tests.optimize.scenes import EFFUSION, LESION, learnable


def guide_with(version, label, *terms):
    """Return the guide of a label with these terms."""
    return {label: replace(version.guide(label), terms=terms)}


def test_scores_are_those_of_a_run(taught):
    """The same counts as an evaluation of the same wording gives."""
    version = taught.version(2, **{EFFUSION: ["collection"]})
    run = run_prompt(taught.workspace, version.ref, "dev").run_id
    known = {one.label: one for one in evaluate_run(taught.workspace, run).labels}
    with open_objective(taught.workspace, "tiny@v1", "dev") as objective:
        guides = guide_with(objective.ground.version, EFFUSION, "collection")
        score = objective.score(objective.answers(objective.candidate(guides)))
    for place, label in enumerate(objective.ground.labels):
        assert score.by_label[place] == known[label].confusion.f1
        assert np.nansum(score.points[:, place]) == known[label].confusion.correct


def test_nothing_asked_is_a_run(taught):
    """No run, no outcome, no latest."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        objective.answers(objective.ground.version)
    with open_store(taught.workspace) as store:
        assert not store.find_runs()


def test_a_case_is_asked_once(taught):
    """Rows asked before are remembered, in any order."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        version = objective.ground.version
        first = objective.answers(version, np.array([4, 2]))
        whole = objective.answers(version)
        assert objective.asked == 60
        assert (first == whole[[4, 2]]).all()


def test_only_the_changed_label_is_asked_where_each_has_a_call(bench):
    """The answers to the other one are the parent's."""
    bench.cohort(learnable())
    bench.version(2, plan="per_label")
    with open_objective(bench.workspace, "tiny@v2", "dev") as objective:
        parent = objective.answers(objective.ground.version)
        asked = []
        complete = objective.engine.inner.complete

        def spy(prompts):
            prompts = list(prompts)
            asked.extend(one.frame.call for one in prompts)
            return complete(prompts)

        objective.engine.inner.complete = spy
        guides = guide_with(objective.ground.version, EFFUSION, "collection")
        changed = objective.answers(objective.candidate(guides))
    assert set(asked) == {EFFUSION}
    column = objective.ground.labels.index(LESION)
    assert (changed[:, column] == parent[:, column]).all()
    assert (changed != parent).any()


class FailingEngine:
    """Fails on some cases, and says "absent" of all others."""

    def __init__(self, bad):
        self.bad = bad
        self.asked = 0

    def identity(self):
        """Say what answers."""
        return {"engine": "failing"}

    def complete(self, prompts):
        """Answer, or fail."""
        for index, prompt in enumerate(prompts):
            self.asked += 1
            if prompt.item.id in self.bad:
                yield index, Completion("", "error", "no answer")
            else:
                told = ",".join(
                    f'"{field}":{{"value":"present","span":[0,1]}}'
                    for field in prompt.frame.fields
                )
                yield index, Completion(f"{{{told}}}")


@contextmanager
def asking(objective, engine):
    """Put another engine into an objective."""
    held = ChosenEngine("failing:x", engine, {})
    objective._engine = HeldEngine(held, ExitStack())
    yield objective


def test_a_failure_is_left_out_on_both_sides_and_asked_again(taught):
    """It is never scored as wrong, and not remembered."""
    engine = FailingEngine({"c001"})
    with (
        open_objective(taught.workspace, "tiny", "dev") as objective,
        asking(objective, engine),
    ):
        version = objective.ground.version
        lost = objective.answers(version)
        assert (lost[1] == ValueCode.FAILED).all()
        engine.bad = set()
        fine = objective.answers(version)
        assert engine.asked == 61
        assert objective.score(fine, beside=lost).cases == 59
        assert objective.score(fine, beside=lost).left_out == 1
        assert objective.score(fine).cases == 60


def test_too_many_failures_stop_the_search(taught):
    """The message counts them and names cases, never text."""
    engine = FailingEngine({f"c{n:03}" for n in range(4)})
    with (
        open_objective(taught.workspace, "tiny", "dev") as objective,
        asking(objective, engine),
        pytest.raises(
            EngineError,
            match="failed on 4 of 60 answers that were asked, for example on ",
        ),
    ):
        objective.answers(objective.ground.version)


def test_a_twentieth_may_fail(taught):
    """Three of sixty are no reason to stop; four are, see above."""
    engine = FailingEngine({f"c{n:03}" for n in range(3)})
    with (
        open_objective(taught.workspace, "tiny", "dev") as objective,
        asking(objective, engine),
    ):
        answers = objective.answers(objective.ground.version)
        assert objective.ground.lost(answers).tolist() == [True] * 3 + [False] * 57


@pytest.mark.parametrize("plan", ["joint", "per_label"])
def test_a_case_that_fails_counts_once_however_often_it_is_asked(bench, plan):
    """Rankings and estimates look at the same cases again and again."""
    bench.cohort(learnable())
    bench.version(2, plan=plan)
    engine = FailingEngine({"c001", "c007"})
    with (
        open_objective(bench.workspace, "tiny@v2", "dev") as objective,
        asking(objective, engine),
    ):
        parent = objective.ground.version
        for word in ("collection", "fluid", "shadow"):
            guides = guide_with(parent, EFFUSION, word)
            made = objective.candidate(guides)
            for _ in range(4):
                lost = objective.ground.lost(objective.answers(made))
                assert np.flatnonzero(lost).tolist() == [1, 7]


def test_what_cannot_be_read_is_wrong(taught):
    """A candidate gains nothing by answers that nobody can read."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        truth = np.array([[1, 0, -1]], np.int8)
        unread = np.full((1, 3), ValueCode.UNPARSED, np.int8)
        assert objective.ground.decided(unread, truth).tolist() == [[0, 1, -1]]


@pytest.mark.parametrize("role", ["external", "taxonomy"])
def test_only_a_dev_cohort_is_searched(bench, role):
    """Cases that something is measured on stay out of reach."""
    bench.cohort(learnable(), name="other", role=role)
    with (
        pytest.raises(DataError, match="on a dev cohort only"),
        open_objective(bench.workspace, "tiny", "other"),
    ):
        pass


def test_a_label_that_is_not_asked_cannot_be_proposed(taught):
    """The label is named."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        guide = replace(objective.ground.version.guides[0], label="edema")
        with pytest.raises(DataError, match="asks for no label 'edema'"):
            objective.candidate({"edema": guide})


def test_candidates_do_not_stay_in_memory(taught):
    """The engine lets go of the compiled guides of a candidate."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        for number in range(5):
            guides = guide_with(objective.ground.version, EFFUSION, f"word {number}")
            objective.answers(objective.candidate(guides))
        assert len(objective.engine.inner._readers) <= 1


CODES = (
    ValueCode.PRESENT,
    ValueCode.ABSENT,
    ValueCode.UNCERTAIN,
    ValueCode.UNPARSED,
    ValueCode.NOT_ASKED,
    ValueCode.FAILED,
)


def ground_with(objective, truth, policy="wrong"):
    """Return the ground with another reference of its cases, and every answer to it."""
    protocol = objective.ground.protocol.model_copy(
        update={"uncertain_answers": UncertainAnswers(policy)}
    )
    return replace(
        objective.ground, truth=np.array(truth, dtype=np.int8), protocol=protocol
    )


@pytest.mark.parametrize(
    ("policy", "hedged"),
    [
        ("wrong", [0, 0]),
        ("present", [1, 0]),
        ("absent", [0, 1]),
        ("excluded", [np.nan, np.nan]),
    ],
)
def test_an_answer_is_right_wrong_or_nothing(taught, policy, hedged):
    """Six answers to a present, an absent and an open case, by each policy."""
    truth = [[one] * 2 for one in (1, 0, -1) for _ in CODES]
    answers = np.array([[int(code)] * 2 for _ in range(3) for code in CODES])
    answers[:, 1] = ValueCode.ABSENT
    rows = np.arange(len(answers))
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        ground = ground_with(objective, truth, policy)
    nan = np.nan
    expected = [
        *[1, 0, hedged[0], 0, 0, nan],
        *[0, 1, hedged[1], 0, 0, nan],
        *[nan] * 6,
    ]
    points = ground.points(answers, rows)
    np.testing.assert_array_equal(points[:, 0], expected)
    np.testing.assert_array_equal(points[:, 1], [0] * 6 + [1] * 6 + [nan] * 6)
    wrong = [
        one == 0 or (policy == "excluded" and n % 6 == 2 and n < 12)
        for n, one in enumerate(expected)
    ]
    assert ground.wrong(answers, rows)[:, 0].tolist() == wrong
    assert (
        ground.lost(answers).tolist()
        == [code is ValueCode.FAILED for code in CODES] * 3
    )
    some = np.array([7, 0])
    np.testing.assert_array_equal(ground.points(answers[some], some)[:, 0], [1, 1])
    told = [ground.tell(answers[row], row, 0) for row in (0, 2, 7)]
    assert [one.rpartition("; ")[2] for one in told] == [
        "right is present",
        "right is present",
        "right is absent",
    ]


def test_the_score_is_the_mean_over_labels_with_enough_positives(taught):
    """By hand: 9 of 10 found and one invented; a label of nine positives is in none."""
    truth = np.zeros((60, 2), dtype=np.int8)
    truth[:10, 0] = truth[:9, 1] = 1
    answers = truth.copy()
    answers[9, 0], answers[59, 0] = 0, 1
    rows = np.arange(60)
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        ground = ground_with(objective, truth)
    assert ground.protocol.min_positives == 10
    assert ground.positives.tolist() == [10, 9]
    assert ground.scored.tolist() == [True, False]
    score = ground.total(answers, rows)
    assert score.value == pytest.approx(18 / 20)
    assert score.by_label.tolist() == [pytest.approx(0.9), 1.0]
    none = ground.total(answers[20:30], rows[20:30])
    assert none.value is None and np.isnan(none.by_label).all()


def test_two_wordings_are_pooled_by_hand(taught):
    """Macro-F1 and mean kappa of the labels shown, in the rows as they are given."""
    truth = np.zeros((60, 2), dtype=np.int8)
    truth[:4, 0] = truth[:5, 1] = 1
    before, after = np.zeros((10, 2), dtype=np.int8), truth[:10].copy()
    before[:, 1] = truth[:10, 1]
    after[4, 1], after[5, 1] = 0, 1
    rows = np.arange(10)
    resampling = {"units": rows, "resamples": 100, "seed": 1}
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        ground = ground_with(objective, truth)
    # Nothing found, F1 and kappa 0, then all; and all, then 4 of 5 with one invented.
    for shown, scores, kappa in (
        ([0, 1], (0.5, 0.9), (1 + 0.6) / 2 - (0 + 1) / 2),
        ([0], (0.0, 1.0), 1.0),
        ([1], (1.0, 0.8), 0.6 - 1.0),
    ):
        found = ground.pool(before, after, rows, np.array(shown), **resampling)
        parent, later, gain, kappa_gain, agreement = found
        assert (parent.estimate, later.estimate) == pytest.approx(scores)
        assert gain.estimate == pytest.approx(scores[1] - scores[0])
        assert kappa_gain.estimate == pytest.approx(kappa)
        assert agreement is None
    turned = rows[::-1].copy()
    other = ground.pool(
        before[turned], after[turned], turned, np.arange(2), **resampling
    )
    assert other.gain.estimate == pytest.approx(0.4)


def test_an_estimate_is_pooled_over_splits_by_hand(bench, monkeypatch):
    """What was found in three of five; a case that fails in two rounds is one case."""
    rows = learnable()
    for row in [row for row in rows if row[4]][9:]:
        row[4] = 0
    bench.cohort(rows)
    with open_objective(bench.workspace, "tiny", "dev") as objective:
        ground = objective.ground
        made = objective.candidate(guide_with(ground.version, EFFUSION, "collection"))
        splits = split_cases(ground.truth, ground.clusters.units, repeats=10)
        found = [made, made, made, ground.version, ground.version] * 2
        wet = ground.truth[:, ground.labels.index(EFFUSION)] == 1
        later = np.concatenate([one.estimate for one in splits[5:8]])
        ask = objective.answers
        bad = next(int(row) for row in splits[0].estimate if row in later)

        def answers(candidate, rows=None):
            """Return what is answered; the candidate fails on one case."""
            told = ask(candidate, rows).copy()
            told[(rows == bad) & (candidate == made)] = ValueCode.FAILED
            return told

        monkeypatch.setattr(objective, "answers", answers)
        got = estimate_nested(objective, splits, found, resamples=100, seed=3)
    pooled = np.concatenate([one.estimate for one in splits])
    seen = np.concatenate(
        [np.full(len(one.estimate), place % 5 < 3) for place, one in enumerate(splits)]
    )
    lost = (pooled == bad) & seen
    assert lost.sum() == 2
    kept = ~lost
    right = int((wet[pooled] & seen & kept).sum())
    missed = int((wet[pooled] & kept).sum()) - right
    f1 = 2 * right / (2 * right + missed)
    assert (got.left_out, got.cases, got.unit) == (1, 59, "patient")
    assert (got.parent.estimate, got.found.estimate) == (0.0, pytest.approx(f1))
    assert got.gain.estimate == pytest.approx(f1)
    assert got.gain.resamples == 100
    assert got.better
    labels = {one.label: one for one in got.labels}
    positives = int(wet.sum()) - bool(wet[bad])
    assert labels[EFFUSION] == (EFFUSION, positives, True, 0.0, pytest.approx(f1))
    lesions = 9 - bool(rows[bad][4])
    assert labels[LESION] == (LESION, lesions, False, 0.0, 0.0)
    # Of each split alone: nothing, or all that is there.
    for place, one in enumerate(got.splits):
        assert {part.parent for part in one} == {0.0}
        assert {part.found for part in one} == {float(place % 5 < 3)}


def test_a_candidate_is_the_parent_with_other_guides_in_place(taught):
    """A label that it does not have, or a guide in the wrong place, is a mistake."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        parent = objective.ground.version
        guides = guide_with(parent, EFFUSION, "collection")
        assert objective.candidate({}) == parent
        made = objective.candidate(guides, system="See.\n")
        assert made == replace(
            parent, system="See.\n", guides=(guides[EFFUSION], parent.guides[1])
        )
        with pytest.raises(DataError, match="tiny@v1 asks for no label 'edema'"):
            objective.candidate({"edema": guides[EFFUSION]})
        with pytest.raises(ValueError, match=LESION):
            objective.candidate({LESION: guides[EFFUSION]})
        assert (objective.candidates, objective.asked) == (0, 0)
        objective.answers(made, np.array([3]))
        objective.answers(parent, np.array([3, 5]))
        assert (objective.candidates, objective.asked) == (2, 3)
        assert (objective.use.asked, objective.use.engine) == (3, "rules")
        assert objective.answers(made, np.array([], dtype=int)).shape == (0, 2)


def test_labels_to_search_for_are_those_that_fail_first(bench):
    """Then those with more errors; a right one only where it is named."""
    rows = learnable(120)
    bench.cohort(rows)
    bench.version(2, **{EFFUSION: ["collection"]})
    bench.version(3, **{EFFUSION: ["collection"], LESION: ["nodul*"]})

    def chosen(prompt, *wanted):
        with open_objective(bench.workspace, prompt, "dev") as objective:
            return choose_labels(objective, wanted)

    assert chosen("tiny@v1") == (EFFUSION, LESION)
    assert chosen("tiny@v1", FAILING) == (EFFUSION, LESION)
    assert chosen("tiny@v1", LESION) == (LESION,)
    assert chosen("tiny@v2") == chosen("tiny@v2", FAILING) == (LESION,)
    assert chosen("tiny@v2", EFFUSION) == (EFFUSION,)
    assert chosen("tiny@v2", EFFUSION, FAILING) == (LESION, EFFUSION)
    assert chosen("tiny@v3") == chosen("tiny@v3", FAILING) == ()
    # Of labels alike the order of the taxonomy stays.
    assert chosen("tiny@v3", EFFUSION, LESION) == (LESION, EFFUSION)
    with pytest.raises(DataError, match=r"no label edema, mass to search for"):
        chosen("tiny@v1", "edema", LESION, "mass")


def test_a_label_of_few_positives_is_searched_for_only_by_name(bench):
    """Nine are below the protocol's minimum: nothing could be claimed of it."""
    rows = learnable()
    lesions = [row for row in rows if row[4]]
    for row in lesions[9:]:
        row[4] = 0
    bench.cohort(rows)
    with open_objective(bench.workspace, "tiny", "dev") as objective:
        assert choose_labels(objective, ()) == (EFFUSION,)
        assert choose_labels(objective, (FAILING, LESION)) == (EFFUSION, LESION)
