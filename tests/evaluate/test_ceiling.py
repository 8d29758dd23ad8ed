"""The human ceiling against hand counts, scikit-learn and symmetries."""

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

from loop.core.errors import DataError
from loop.core.records import UncertainAnswers, ValueCode
from loop.evaluate.align import AlignedPairs
from loop.evaluate.ceiling import POOLED, ReaderModelMeasure, measure_ceiling
from loop.labels.ballots import Votes
from loop.labels.reader_agreement import measure_agreement
from loop.stats.intervals import Estimate
from tests.calls import count_calls
from tests.evaluate.scenes import TAXONOMY

POLICY = UncertainAnswers.EXCLUDED
FEW = {"resamples": 100, "policy": POLICY}
UNSURE, SILENT = ValueCode.UNCERTAIN, ValueCode.NOT_VOTED
LABELS = TAXONOMY.ids

SURE, OPEN = Estimate(0.1, 0.01, 0.2), Estimate(0.1, 0.0, 0.2)


def votes_of(values, labels=("edema",)):
    """Return votes from codes ``(cases, labels, readers)``."""
    table = np.asarray(values, dtype=np.int8)
    return Votes(
        readers=tuple(f"R{n}" for n in range(table.shape[2])),
        case_ids=tuple(f"c{n}" for n in range(len(table))),
        labels=tuple(labels),
        values=table,
    )


def run_of(values, labels=("edema",)):
    """Return the answers of a model, ``(cases, labels)`` codes."""
    table = np.asarray(values, dtype=np.int8)
    predicted = np.full((len(table), len(LABELS)), ValueCode.NOT_ASKED, dtype=np.int8)
    for column, label in enumerate(labels):
        predicted[:, LABELS.index(label)] = table[:, column]
    return AlignedPairs(
        case_ids=tuple(f"c{n}" for n in range(len(table))),
        labels=LABELS,
        reference=np.zeros_like(predicted),
        predicted=predicted,
        statuses={},
        not_run=0,
    )


def scene(n=300, readers=6, wrong=0.08, model=0.08, labels=3, seed=0):
    """Return votes and a run around a common truth, with gaps on both sides."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, labels)) < 0.3
    votes = (truth[..., None] ^ (rng.random((n, labels, readers)) < wrong)).astype(int)
    votes[rng.random(votes.shape) < 0.03] = UNSURE
    votes[rng.random(votes.shape) < 0.03] = SILENT
    answers = (truth ^ (rng.random((n, labels)) < model)).astype(int)
    answers[rng.random(answers.shape) < 0.03] = ValueCode.UNCERTAIN
    answers[rng.random(answers.shape) < 0.02] = ValueCode.UNPARSED
    names = TAXONOMY.extracted[:labels]
    return votes_of(votes, names), run_of(answers, names)


def values(beside):
    """Return reader, model and difference."""
    return beside.reader.value, beside.model.value, beside.difference.value


def test_a_small_table_counted_by_hand():
    """Three readers; with a panel of two both must agree, or it is a tie.

    Case 0: all say 1, the model 1. Case 1: all 0, the model 1. Case 2: 1, 0, 0: only
    the panel of reader 0 (0, 0) agrees; reader 0 is wrong there and the model right.
    So reader 0 has 2 of 3, the others 2 of 2; the model 2 of 3, 1 of 2, 1 of 2.
    """
    votes = votes_of([[[1, 1, 1]], [[0, 0, 0]], [[1, 0, 0]]])
    found = measure_ceiling(run_of([[1], [1], [0]]), votes, TAXONOMY, **FEW)
    (row,) = found.labels
    assert (row.comparisons, row.ties, row.unanswered) == (7, 2, 0)
    reader, model = (2 / 3 + 1 + 1) / 3, (2 / 3 + 1 / 2 + 1 / 2) / 3
    assert values(row.accuracy) == pytest.approx((reader, model, model - reader))


def test_the_published_kappa_of_two_readers_comes_out():
    """TP 6, FP 2, FN 2, TN 290: kappa 0.7432; a model that says all the same has it."""
    cells = [(1, 1)] * 6 + [(0, 1)] * 2 + [(1, 0)] * 2 + [(0, 0)] * 290
    votes = votes_of([[list(cell)] for cell in cells])
    model = run_of([[second] for _, second in cells])
    (row,) = measure_ceiling(model, votes, TAXONOMY, **FEW).labels
    assert row.kappa.reader.value == pytest.approx(0.7432, abs=5e-5)
    # Against reader 0 the model is reader 1; against reader 1 it is perfect.
    assert row.kappa.model.value == pytest.approx((0.7432 + 1) / 2, abs=5e-5)


def test_readers_and_model_agree_with_scikit_learn():
    """Every panel by a loop over the cases, scored by another implementation."""
    votes, run = scene()
    found = measure_ceiling(run, votes, TAXONOMY, **FEW)
    for at, row in enumerate(found.labels):
        answers = run.predicted[:, LABELS.index(row.label)]
        scores = {"reader": [], "model": []}
        for reader in range(6):
            used = []
            for case, ballots in enumerate(votes.values[:, at, :].tolist()):
                others = [v for n, v in enumerate(ballots) if n != reader]
                panel = [v for v in (0, 1) if others.count(v) >= 3]
                if panel and ballots[reader] in (0, 1) and answers[case] in (0, 1):
                    used.append((panel[0], ballots[reader], answers[case]))
            panel, own, model = np.array(used).T
            for side, said in (("reader", own), ("model", model)):
                scores[side].append(
                    (accuracy_score(panel, said), cohen_kappa_score(panel, said))
                )
        for side in ("reader", "model"):
            accuracy, kappa = np.mean(scores[side], axis=0)
            assert getattr(row.accuracy, side).value == pytest.approx(accuracy)
            assert getattr(row.kappa, side).value == pytest.approx(kappa)


def test_with_a_model_that_always_answers_it_is_the_readers_own_ceiling():
    """The mean reader is then that of the agreement among readers."""
    votes, run = scene()
    full = dataclasses.replace(run, predicted=np.abs(run.predicted) % 2)
    found = measure_ceiling(full, votes, TAXONOMY, **FEW)
    own = measure_agreement(votes, TAXONOMY, cohort="x", resamples=100)
    for row, label in zip(
        (found.pooled, *found.labels), (own.pooled, *own.labels), strict=True
    ):
        assert row.accuracy.reader.value == pytest.approx(label.ceiling.accuracy.value)
        assert row.kappa.reader.value == pytest.approx(label.ceiling.kappa.value)
        assert row.ties == sum(one.ties for one in label.ceiling.readers)
        assert row.unanswered == 0


def test_the_order_of_readers_does_not_matter():
    """The mean over readers is symmetric in them, intervals included."""
    votes, run = scene()
    turned = dataclasses.replace(votes, values=votes.values[:, :, ::-1])
    one, other = (
        measure_ceiling(run, each, TAXONOMY, **FEW) for each in (votes, turned)
    )
    assert one.pooled.accuracy.difference[:3] == pytest.approx(
        other.pooled.accuracy.difference[:3]
    )
    assert one.pooled.ties == other.pooled.ties


def test_exchanging_present_and_absent_changes_nothing():
    """Accuracy and kappa do not know which value is which."""
    votes, run = scene()
    swap = np.where(votes.values == 1, 0, np.where(votes.values == 0, 1, votes.values))
    said = run.predicted
    turned = np.where(said == 1, 0, np.where(said == 0, 1, said)).astype(np.int8)
    one = measure_ceiling(run, votes, TAXONOMY, **FEW)
    other = measure_ceiling(
        dataclasses.replace(run, predicted=turned),
        dataclasses.replace(votes, values=swap.astype(np.int8)),
        TAXONOMY,
        **FEW,
    )
    for row, twin in zip(one.labels, other.labels, strict=True):
        assert values(row.accuracy) == pytest.approx(values(twin.accuracy))
        assert values(row.kappa) == pytest.approx(values(twin.kappa))


def test_cases_are_joined_by_id():
    """A run in another order, or of fewer cases, is the same comparison."""
    votes, run = scene()
    order = np.random.default_rng(1).permutation(300)[:200]
    shuffled = dataclasses.replace(
        run,
        case_ids=tuple(run.case_ids[n] for n in order),
        predicted=run.predicted[order],
    )
    kept = np.sort(order)
    same = dataclasses.replace(
        run,
        case_ids=tuple(run.case_ids[n] for n in kept),
        predicted=run.predicted[kept],
    )
    one, other = (measure_ceiling(r, votes, TAXONOMY, **FEW) for r in (shuffled, same))
    assert one.cases == other.cases == 200
    assert values(one.pooled.kappa) == pytest.approx(values(other.pooled.kappa))


def test_what_is_left_out_is_counted():
    """Uncertain, unparsed and tied: none becomes absent."""
    ballots = [[[1, 1, 1]], [[1, 1, 1]], [[1, 1, UNSURE]], [[1, SILENT, 0]]]
    answers = [[ValueCode.UNPARSED], [ValueCode.UNCERTAIN], [1], [1]]
    (row,) = measure_ceiling(run_of(answers), votes_of(ballots), TAXONOMY, **FEW).labels
    # Case 2: the uncertain reader is no comparison, its panel mates lack a majority.
    assert (row.unanswered, row.ties, row.comparisons) == (6, 4, 0)
    assert row.accuracy.reader.value is None
    assert row.accuracy.difference.note.startswith("not estimable")


@pytest.mark.parametrize(
    ("policy", "right"),
    [
        (UncertainAnswers.WRONG, 0.0),
        (UncertainAnswers.ABSENT, 0.0),
        (UncertainAnswers.PRESENT, 1.0),
    ],
)
def test_whoever_hedges_is_judged_by_the_policy_reader_and_model_alike(policy, right):
    """A reader who is uncertain where the others decide is no better than a model."""
    ballots = [[[1, 1, UNSURE, 1, 1]]] * 4
    answers = [[ValueCode.UNCERTAIN]] * 4
    found = measure_ceiling(
        run_of(answers), votes_of(ballots), TAXONOMY, policy=policy, resamples=20
    )
    (row,) = found.labels
    assert found.policy is policy
    assert (row.comparisons, row.ties, row.unanswered) == (20, 0, 0)
    reader, model, _ = values(row.accuracy)
    assert reader == pytest.approx((4 + right) / 5)
    assert model == right


@pytest.mark.parametrize("policy", list(UncertainAnswers))
def test_an_uncertain_vote_decides_no_panel(policy):
    """Whatever hedges count as, a majority is of those who decided."""
    ballots = [[[1, UNSURE, UNSURE]]] * 3
    found = measure_ceiling(
        run_of([[1]] * 3), votes_of(ballots), TAXONOMY, policy=policy, resamples=20
    )
    (row,) = found.labels
    assert row.comparisons == 0
    assert row.ties == (3 if policy is UncertainAnswers.EXCLUDED else 9)


@pytest.mark.parametrize("policy", list(UncertainAnswers))
def test_without_a_hedge_the_policy_changes_nothing(policy):
    """It says what hedges count as, and nothing else."""
    rng = np.random.default_rng(3)
    table = rng.integers(0, 2, (60, 1, 4))
    table[rng.random(table.shape) < 0.1] = SILENT
    votes, run = votes_of(table), run_of(rng.integers(0, 2, (60, 1)))
    found = measure_ceiling(run, votes, TAXONOMY, policy=policy, resamples=20)
    assert (
        found.labels
        == measure_ceiling(run, votes, TAXONOMY, policy=POLICY, resamples=20).labels
    )


def test_a_model_like_the_readers_is_not_above_them():
    """The interval of the difference holds 0 when model and readers err alike."""
    votes, run = scene(n=600)
    found = measure_ceiling(run, votes, TAXONOMY, policy=POLICY, resamples=500)
    low, high = found.pooled.accuracy.difference[1:3]
    assert low < 0 < high
    assert not found.pooled.above
    assert found.warnings == ()


def test_a_model_above_the_readers_is_a_warning():
    """A model that copied the majority beats every single reader: said as a warning."""
    votes, run = scene(wrong=0.15, model=0.0)
    found = measure_ceiling(run, votes, TAXONOMY, **FEW)
    assert found.pooled.above
    assert found.pooled.accuracy.difference.low > 0
    names = [row.name for row in found.labels if row.above]
    assert found.warnings == (
        f"Above the mean reader: {', '.join(['All labels', *names])}. That is a "
        "warning sign, not a success: look for a leak of the reference into the "
        "prompt, or readers who had seen the model's answers.",
    )
    one, other = (
        ReaderModelMeasure(reader=SURE, model=SURE, difference=difference)
        for difference in (SURE, OPEN)
    )
    for accuracy, kappa in ((one, other), (other, one)):
        row = dataclasses.replace(found.pooled, accuracy=accuracy, kappa=kappa)
        assert row.above
    assert not dataclasses.replace(found.pooled, accuracy=other, kappa=other).above


def test_a_reader_without_comparisons_is_in_no_mean():
    """The mean is over the three who voted, and says so."""
    ballots = [[[1, 1, 1, SILENT]]] * 2 + [[[0, 0, 0, SILENT]], [[0, 1, 0, SILENT]]]
    found = measure_ceiling(
        run_of([[1], [1], [0], [0]]), votes_of(ballots), TAXONOMY, **FEW
    )
    (row,) = found.labels
    # Of three readers, each judged by the two others; in case 3 only the panel of the
    # second has a majority.
    assert (row.comparisons, row.ties) == (10, 2)
    assert values(row.accuracy) == pytest.approx((11 / 12, 1.0, 1 / 12))
    assert values(row.kappa) == pytest.approx((2.5 / 3, 1.0, 0.5 / 3))
    assert row.accuracy.reader.note == "1 of 4 readers not estimable"
    assert row.kappa.reader.note.endswith("; 1 of 4 readers not estimable")
    assert (found.readers, found.cases, found.unit, found.units) == (
        ("R0", "R1", "R2", "R3"), 4, "case", 4,
    )  # fmt: skip
    assert (found.resamples, found.seed, found.run) == (100, 0, "")
    assert (found.pooled.label, found.pooled.name) == (POOLED, "All labels")
    assert values(found.pooled.kappa) == values(row.kappa)


def test_a_model_below_the_readers_shows_it():
    """Model minus mean reader is negative, and no warning is needed."""
    votes, run = scene(wrong=0.02, model=0.2)
    found = measure_ceiling(run, votes, TAXONOMY, **FEW)
    assert found.pooled.accuracy.difference.high < 0
    assert not found.pooled.above


def test_patients_are_resampled_together():
    """Every case twice under one patient: the interval is that of half the cases."""
    votes, run = scene(n=150)
    twice = dataclasses.replace(
        votes,
        case_ids=(*votes.case_ids, *(f"{c} again" for c in votes.case_ids)),
        values=np.concatenate([votes.values] * 2),
    )
    doubled = dataclasses.replace(
        run, case_ids=twice.case_ids, predicted=np.concatenate([run.predicted] * 2)
    )
    patients = [f"p{n}" for n in range(150)] * 2
    once = measure_ceiling(run, votes, TAXONOMY, **FEW)
    found = measure_ceiling(doubled, twice, TAXONOMY, patients=patients, **FEW)
    assert (found.unit, found.units, once.unit) == ("patient", 150, "case")
    assert found.pooled.accuracy.difference[:3] == pytest.approx(
        once.pooled.accuracy.difference[:3]
    )


def test_one_reader_or_no_common_case_is_refused():
    """The message says what to bring."""
    votes, run = scene(readers=2)
    alone = dataclasses.replace(votes, readers=("R0",), values=votes.values[:, :, :1])
    with pytest.raises(DataError, match=r"one reader only.*cohort votes"):
        measure_ceiling(run, alone, TAXONOMY, **FEW)
    strangers = tuple(f"x{n}" for n in range(300))
    with pytest.raises(DataError, match="none of the cases"):
        measure_ceiling(
            dataclasses.replace(run, case_ids=strangers), votes, TAXONOMY, **FEW
        )
    assert "two readers" in measure_ceiling(run, votes, TAXONOMY, **FEW).warnings[-1]


def test_more_resamples_are_no_more_work_for_every_label_and_reader():
    """A page measures 1,000 of 20 labels and 6 readers: each is one row of a table."""
    votes, run = scene(labels=20)

    def work(number):
        return count_calls(
            lambda: measure_ceiling(
                run, votes, TAXONOMY, policy=POLICY, resamples=number
            )
        )

    work(10)
    assert work(1000) < work(100) + 10 * 900
