"""A run on the cases of a value sample: every share worked out by hand."""

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.core.records import ValueCode
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import Method
from loop.evaluate.sampled import (
    NO_GATE,
    _measure,
    evaluate_sample,
    failing_rows,
    is_sampled,
    judged_labels,
    render_sampled_csv,
    sampled_data,
)
from loop.labels.cohort import read_cohort
from loop.labels.reference import write_reference
from loop.labels.value_sample import DrawnCase, KeptSample, ValueSample, keep_sample
from tests.evaluate.scenes import TAXONOMY, inputs, outcome, reference, silent
from tests.evaluate.tried_scenes import EDITOR

CHANCES = {
    "e0": 0.5,
    "e1": 0.25,
    "f0": 0.5,
    "f1": 0.2,
    "n0": 0.25,
    "n1": 0.1,
    "n2": 0.1,
}
"""Of the drawn cases. A term finds ``e``, ``f`` are missed and ``n`` have nothing."""

READ = ("e0", "e1", "f0", "f1", "n0", "n1")


def read_cases(trials, *case_ids):
    """Make a reference version that decides these cases alone."""
    cohort = read_cohort(trials.workspace, "dev")
    marks = np.full((len(cohort.cases), 1), ValueCode.MISSING, dtype=np.int8)
    for row, case in enumerate(cohort.case_ids):
        if case in case_ids:
            marks[row, 0] = int(case[0] in "ef")
    write_reference(
        trials.workspace,
        cohort,
        ("pleural_effusion",),
        marks,
        actor=EDITOR,
        reason="readers",
    )


@pytest.fixture
def sampled(trials):
    """Return a workspace whose newest reference decides some drawn cases, and a run."""
    path = trials.workspace.protocol
    text = re.sub("min_positives: .*", "min_positives: 4", path.read_text("utf-8"))
    path.write_text(text, "utf-8")
    trials.version(1, "effusion")
    run = trials.run("tiny@v1")
    cohort = read_cohort(trials.workspace, "dev")
    sample = ValueSample(
        cohort="dev",
        cohort_digest=cohort.digest,
        population=20,
        seed=7,
        even=0.25,
        run=run,
        between=("tiny@v1",),
        fitted_on="dev",
        drawn=tuple(
            DrawnCase(case_id=case, chance=CHANCES[case])
            for case in cohort.case_ids
            if case in CHANCES
        ),
    )
    keep_sample(trials.workspace, cohort, sample, actor=EDITOR)
    return trials, run


def test_each_case_counts_one_over_its_chance(sampled):
    """Weights 2, 4 found; 2, 5 missed; 4, 10 rightly absent: 27 in all."""
    trials, run = sampled
    read_cases(trials, *READ, "n9")
    assert is_sampled(trials.workspace, run)
    assert not is_sampled(trials.workspace, run, reference=1)
    found = evaluate_sample(trials.workspace, run, resamples=50, seed=3)
    assert (found.read, found.outside, found.unanswered) == (6, 1, 0)
    assert found.effective == pytest.approx(27**2 / (4 + 16 + 4 + 25 + 16 + 100))
    assert found.fails.value == pytest.approx(7 / 27)
    assert found.unweighted == pytest.approx(2 / 6)
    one = next(row for row in found.labels if row.label == "pleural_effusion")
    assert (one.name, one.comparable) == ("Pleural Effusion", True)
    assert (one.cases, one.positives) == (6, 4)
    shares = {
        "accuracy": 20 / 27,
        "sensitivity": 6 / 13,
        "precision": 1.0,
        "prevalence": 13 / 27,
        "f1": 12 / 19,
    }
    for name, value in shares.items():
        estimate = getattr(one, name)
        assert estimate.value == pytest.approx(value), name
        assert estimate.low < value <= estimate.high, name
    assert found.macro.estimate == pytest.approx(12 / 19)
    assert (found.supported, found.draws, found.runs) == (1, 1, ())
    assert (found.method.unit, found.method.units) == ("case", 6)
    assert (found.method.resamples, found.method.seed) == (50, 3)
    assert found.signature == (
        f"weighted acc+f1|tiny@v1:{found.run.prompt_digest[:6]}|rules|dev:ref2|"
        "sample1:hajek|unc:wrong|nc:absent|zd:skip|n:6|n_eff:4.4|L:1"
    )
    others = [row for row in found.labels if row is not one]
    assert {(row.cases, row.positives) for row in others} == {(0, 0)}
    assert {row.f1.note for row in others} == {"fewer than 4 positives read"}
    assert found.notes == (
        "The reference decides cases of value sample 1, drawn with unequal chances: "
        "more of those that probably fail. Every share and F1 weights each case with "
        "one over its chance, so that it is one of the cohort's 20 cases. Unweighted, "
        "33.3 % of the cases read fail, which is no rate of the cohort.",
        "Effective sample size: 6 read, as good as 4 drawn at random (Kish).",
        NO_GATE,
        "Drawn, but without a reference yet or not run: 1 of 7 cases. Shares hold if "
        "they are like those read.",
        "With a reference, but not drawn in this sample: 1 case. Nobody knows with "
        "which chance they were read, so they count nowhere.",
        "F1 is given where at least 4 positives were read: with fewer, that of a "
        "sample is far from the cohort's.",
        "Development cohort: prompts are revised on these cases, so these numbers are "
        "optimistic.",
    )


def test_the_numbers_of_a_sample_are_the_same_as_data_and_as_a_table(sampled):
    """Every field by its name; limits stand beside their share."""
    trials, run = sampled
    read_cases(trials, *READ, "n2")
    found = evaluate_sample(trials.workspace, run, resamples=50)
    assert not [note for note in found.notes if "no reference yet" in note]
    data = sampled_data(found)
    labels = data.pop("labels")
    assert data == {
        "run": run,
        "runs": [],
        "prompt": "tiny@v1",
        "engine": "rules",
        "cohort": "dev",
        "reference": 2,
        "protocol_digest": found.protocol_digest,
        "uncertain_answers": "wrong",
        "sample": {
            "number": 1,
            "drawn": 7,
            "population": 20,
            "seed": 7,
            "read": 7,
            "outside": 0,
            "unanswered": 0,
            "effective": round(37**2 / 265, 3),
        },
        "fails": found.fails._asdict(),
        "fails_unweighted": pytest.approx(2 / 7),
        "macro_f1": {**found.macro._asdict(), "labels": 1},
        "verdict": "INSUFFICIENT",
        "method": {
            "unit": "case",
            "units": 7,
            "known": 0,
            "resamples": 50,
            "seed": 0,
        },
        "notes": list(found.notes),
        "signature": found.signature,
    }
    rows = list(csv.DictReader(io.StringIO(render_sampled_csv(found))))
    assert [row["label"] for row in rows] == [row["label"] for row in labels]
    at = list(TAXONOMY.ids).index("pleural_effusion")
    one = found.labels[at]
    assert labels[at] == {
        "label": "pleural_effusion",
        "name": "Pleural Effusion",
        "comparable": True,
        "cases": 7,
        "positives": 4,
        **{
            name: getattr(one, name)._asdict()
            for name in ("prevalence", "accuracy", "sensitivity", "precision", "f1")
        },
    }
    assert rows[at]["accuracy"] == f"{30 / 37:.6g}"
    assert rows[at]["accuracy_low"] == f"{one.accuracy.low:.6g}"
    assert rows[at]["f1_high"] == f"{one.f1.high:.6g}"
    assert (rows[at]["run"], rows[at]["comparable"]) == (run, "True")


def test_a_sample_that_nobody_has_read_has_no_share(sampled):
    """What was read otherwise is no part of it; the command to go on is named."""
    trials, run = sampled
    with pytest.raises(DataError, match=r"dev:ref1 is of no value sample"):
        evaluate_sample(trials.workspace, run)
    read_cases(trials, "n9")
    with pytest.raises(DataError) as told:
        evaluate_sample(trials.workspace, run)
    assert str(told.value) == (
        f"dev:ref2 decides none of the 7 cases of value sample 1 that run {run} was "
        "asked. Publish what readers say of them: `ranloop reading publish dev --why "
        "REASON`."
    )


def test_a_case_fails_where_one_label_is_wrong_and_counts_where_one_is_scored():
    """Open marks and missing answers are neither; labels that are left out too."""
    truth = np.array([[1, 0, 1], [1, 0, 1], [-1, 0, 1], [-1, 1, 0], [1, 1, 1]])
    answers = np.array([[1, 0, 1], [0, 0, 0], [1, -1, 0], [0, -1, 0], [1, 1, 0]])
    kept = np.array([True, True, False])
    failing, scored = failing_rows(truth, answers, kept)
    assert failing.tolist() == [False, True, False, False, False]
    assert scored.tolist() == [True, True, False, False, True]


def test_a_case_fails_by_the_labels_that_can_be_judged():
    """No Finding follows from the others, and is not counted twice."""
    given = inputs([outcome("a", {})], reference({"a": {}}))
    every = judged_labels(given)
    assert [
        label for label, kept in zip(TAXONOMY.ids, every, strict=True) if not kept
    ] == ["no_finding"]
    some = judged_labels(replace(given, not_comparable={"edema": "nobody read it"}))
    assert (every & ~some).tolist() == [label == "edema" for label in TAXONOMY.ids]


def drawn_twice():
    """Return two draws over four cases of a second sample that drew five.

    Each case stands for 2, 4, 2 and 5; the third has no answer in the second draw.
    """
    marks = {"a": 1, "b": 1, "c": 0, "d": ValueCode.NOT_CODED}
    standard = reference(
        {case: {"edema": one} for case, one in marks.items()}, ["edema"]
    )
    draws = [
        [outcome(case, {"edema": one}) for case, one in zip(marks, said, strict=True)]
        for said in ((1, 0, 0, 1), (1, 1, 0, 0))
    ]
    draws[1][2] = silent("c")
    rules = Protocol(min_positives=2, uncertain_answers="wrong")
    first, second = (
        inputs(
            draw, standard, protocol=rules, role="external", patients=("p", "p", "", "")
        )
        for draw in draws
    )
    chances = {"a": 0.5, "b": 0.25, "c": 0.5, "d": 0.2, "e": 0.5}
    sample = ValueSample(
        cohort="made_up",
        cohort_digest="c" * 64,
        population=13,
        seed=0,
        even=0.25,
        run="r1",
        between=(),
        fitted_on="dev",
        drawn=tuple(DrawnCase(case_id=one, chance=p) for one, p in chances.items()),
    )
    given = replace(
        first,
        further=(second.pairs,),
        runs=("r1", "r2"),
        not_comparable={"fracture": "nobody read it"},
        protocol_changed=True,
    )
    return given, KeptSample(2, sample), np.array(list(chances.values())[:4])


def test_answers_of_several_draws_are_weighed_by_their_case():
    """Found 2 + 2 and 4, missed 4; wrongly found 5, rightly absent 2 and 5."""
    given, kept, chances = drawn_twice()
    found = _measure(given, kept, np.arange(4), chances, outside=1, resampling=(20, 1))
    one = next(row for row in found.labels if row.label == "edema")
    assert (one.cases, one.positives, one.comparable) == (4, 2, True)
    assert found.fails.value == pytest.approx(9 / 24)
    assert found.unweighted == pytest.approx(2 / 7)
    assert {
        name: getattr(one, name).value
        for name in ("accuracy", "sensitivity", "precision", "prevalence", "f1")
    } == {
        "accuracy": pytest.approx(15 / 24),
        "sensitivity": pytest.approx(8 / 12),
        "precision": pytest.approx(8 / 13),
        "prevalence": pytest.approx(6 / 13),
        "f1": pytest.approx(16 / 25),
    }
    assert found.macro.estimate == pytest.approx(16 / 25)
    assert (found.supported, found.draws, found.runs) == (1, 2, ("r1", "r2"))
    assert (found.read, found.outside, found.unanswered) == (4, 1, 1)
    assert found.effective == pytest.approx(13**2 / (4 + 16 + 4 + 25))
    assert found.method == Method(
        unit="patient", units=3, known=2, resamples=20, seed=1
    )
    assert found.signature == (
        "weighted acc+f1|extractor@v1:3f2a1b|rules|made_up:ref1|sample2:hajek|"
        "unc:wrong|nc:absent|zd:skip|without:fracture|n:4|n_eff:3.4|L:1|draws:2"
    )
    assert [row.label for row in found.labels if not row.comparable] == ["fracture"]


def test_a_second_sample_tells_what_its_weights_do_not_know():
    """Every caveat that holds of it, the most important first."""
    given, kept, chances = drawn_twice()
    found = _measure(given, kept, np.arange(4), chances, outside=2, resampling=(20, 1))
    assert found.notes[0].startswith("The reference decides cases of value sample 2")
    assert found.notes[1:] == (
        "Effective sample size: 4 read, as good as 3 drawn at random (Kish).",
        NO_GATE,
        "Drawn, but without a reference yet or not run: 1 of 5 cases. Shares hold if "
        "they are like those read.",
        "Sample 2 took the place of 1 before it. Cases that were read because an "
        "earlier one drew them are likelier to be read than their chance says, and the "
        "weights are wrong: read all that this one drew.",
        "With a reference, but not drawn in this sample: 2 cases. Nobody knows with "
        "which chance they were read, so they count nowhere.",
        "Read, but without a readable answer: 1 case. They are left out and counted, "
        "never read as absent.",
        "F1 is given where at least 2 positives were read: with fewer, that of a "
        "sample is far from the cohort's.",
        "The reference comes from coding. Where nothing was coded the case counts as "
        "absent, although nobody judged it absent.",
        "The reference cannot judge Fracture: shown, and in no average.",
        "The protocol was changed after the run began.",
        "Patients repeat: 4 cases are of 3 patients, and limits are between patients.",
    )
    all_read = KeptSample(
        2, kept.sample.model_copy(update={"drawn": kept.sample.drawn[:4]})
    )
    alone = replace(given, patients=("p", "q", "", ""))
    found = _measure(
        alone, all_read, np.arange(4), chances, outside=0, resampling=(20, 1)
    )
    assert not [note for note in found.notes if note.startswith(("Sample", "Drawn"))]
    assert not [note for note in found.notes if note.startswith(("With a", "Patients"))]


def test_a_case_that_some_draws_leave_open_counts_in_the_others():
    """Two of the five are missed or wrong; one that no draw answers is left out."""
    given, kept, chances = drawn_twice()
    (second,) = given.further
    once, never = given.pairs.predicted.copy(), second.predicted.copy()
    once[2] = never[1] = ValueCode.UNPARSED
    given = replace(
        given,
        pairs=replace(given.pairs, predicted=once),
        further=(replace(second, predicted=never),),
    )
    found = _measure(given, kept, np.arange(4), chances, outside=0, resampling=(20, 1))
    one = next(row for row in found.labels if row.label == "edema")
    assert (one.cases, one.positives) == (3, 2)
    assert one.f1.value == pytest.approx(8 / 17)
    assert found.unweighted == pytest.approx(2 / 5)
