"""A label that the reference cannot judge is shown, and in no claim."""

import re
from contextlib import closing
from dataclasses import replace

import pytest

from loop.cli.compare import show_comparison
from loop.cli.evaluate import average_lines, verdict_line
from loop.evaluate.compare import compare_inputs
from loop.evaluate.documents import render_csv, render_html, render_markdown
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.evaluation_json import comparison_data, evaluation_data
from loop.evaluate.gates import (
    GateVerdict,
    LabelEvidence,
    combine_verdicts,
    count_verdicts,
    decide_gate,
)
from loop.evaluate.matrix.documents import (
    floor_sentence,
    render_matrix_html,
    render_matrix_markdown,
    tally,
)
from loop.evaluate.matrix.matrix import MatrixEntry, build_matrix
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import certify, certify_evaluation, left_out_of
from loop.review.queue.value import Worth
from loop.review.revise.changes import ShareCriterion
from loop.review.revise.run_check import measure_draft
from loop.run.store import Store
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate
from tests.evaluate.scenes import TAXONOMY, inputs, random_run

OUT = GateVerdict.NOT_COMPARABLE
REASON = "scoliosis is coded normal"
SOME = ("no_finding", "edema", "fracture")
SUBSET = Protocol(rule="lower", claim="subset", min_positives=14)


def read(labels=("no_finding",), *, noise=1.0, n=120, **others):
    """Return a run on a reference that cannot judge `labels`."""
    outcomes, standard = random_run(n, noise=noise)
    found = inputs(outcomes, standard, **others)
    return replace(found, not_comparable=dict.fromkeys(labels, REASON))


def evaluate(labels=("no_finding",), **others):
    """Evaluate such a run with few resamples."""
    return evaluate_inputs(read(labels, **others), resamples=50)


def row(evaluation, label="no_finding"):
    """Return one label of an evaluation."""
    return next(one for one in evaluation.labels if one.label == label)


@pytest.mark.parametrize("counts", [(60, 0, 0, 240), (0, 150, 150, 0), (0, 0, 0, 0)])
def test_its_gate_says_so_whatever_the_counts(counts):
    """It neither passes nor fails, and no more cases are asked for."""
    evidence = LabelEvidence(
        confusion=Confusion(*counts),
        kappa=Estimate(1.0, 1.0, 1.0),
        kappa_bootstrap=Estimate(1.0, 1.0, 1.0),
        unanswered=0,
        usable=300,
        not_comparable=REASON,
    )
    gate = decide_gate(evidence, Protocol())
    assert gate.verdict is OUT
    assert gate.needs == ""
    assert REASON in gate.reasons[0]


@pytest.mark.parametrize("verdict", ["PASS", "FAIL", "INSUFFICIENT"])
def test_the_decision_is_that_of_the_other_labels(verdict):
    """It takes no claim back, and brings none about."""
    other = GateVerdict(verdict)
    assert combine_verdicts([other, OUT, OUT]) is other
    assert combine_verdicts([OUT, OUT]) is GateVerdict.INSUFFICIENT


def test_its_numbers_are_shown_and_as_before():
    """Whoever wants to see them can."""
    with_it, without = evaluate(()), evaluate()
    assert row(without).confusion == row(with_it).confusion
    assert row(without).kappa == row(with_it).kappa
    assert row(without).confusion.n > 0
    assert [one.label for one in without.labels] == list(TAXONOMY.ids)


def test_no_average_counts_it():
    """Macro- and micro-F1 are those of a taxonomy without the label."""
    every, found = evaluate(()), evaluate()
    scores = [one.confusion.f1 for one in every.labels if one.label != "no_finding"]
    known = [one for one in scores if one is not None]
    assert found.macro.score.estimate == pytest.approx(sum(known) / len(known))
    assert found.macro.labels == len(known) == every.macro.labels - 1
    cells = [one.confusion for one in every.labels if one.label != "no_finding"]
    tp = sum(one.tp for one in cells)
    errors = sum(one.fp + one.fn for one in cells)
    assert found.micro.score.estimate == pytest.approx(2 * tp / (2 * tp + errors))
    for view, whole in zip(found.views, every.views, strict=True):
        assert view.scored < whole.scored
        assert view.verdicts.count(OUT) == 1
    chosen = found.views[0]
    assert chosen.macro_f1 == pytest.approx(found.macro.score.estimate)
    shares = [one.accuracy for one in cells if one.accuracy is not None]
    assert chosen.accuracy == pytest.approx(sum(shares) / len(shares))


def test_not_even_where_it_has_positives_enough():
    """Neither does the average over supported labels count it."""
    every = evaluate(())
    common = max(every.labels, key=lambda one: one.confusion.positives).label
    assert evaluate((common,)).supported.labels == every.supported.labels - 1


def test_the_family_of_a_claim_on_some_labels_is_smaller_by_it():
    """Holm corrects for the labels that are claimed, and for no other."""
    every, found = (
        certify_evaluation(evaluate(x, protocol=SUBSET)) for x in ((), SOME)
    )
    assert len(found.labels) == len(every.labels) - len(SOME)
    assert not {one.label for one in found.labels} & set(SOME)
    smallest = min(found.labels, key=lambda one: one.p)
    assert smallest.p_holm == pytest.approx(min(1, smallest.p * len(found.labels)))


def test_a_failing_label_alone_does_not_fail_the_others():
    """What fails by its reference only is no objection to the prompt."""
    kept = "pleural_effusion"
    others = tuple(label for label in TAXONOMY.ids if label != kept)
    found = evaluate(others, noise=0.0, protocol=Protocol(min_positives=1))
    assert row(found, kept).gate.verdict is GateVerdict.PASS
    assert found.verdict is GateVerdict.PASS
    assert certify_evaluation(found).verdict is GateVerdict.PASS


@pytest.mark.parametrize("claim", ["all", "subset"])
def test_a_reference_that_can_judge_nothing_passes_nothing(claim):
    """Taking every label out is no way to a claim."""
    protocol = SUBSET.model_copy(update={"claim": claim})
    found = evaluate(TAXONOMY.ids, noise=0.0, protocol=protocol)
    assert found.verdict is GateVerdict.INSUFFICIENT
    made = certify_evaluation(found)
    assert made.verdict is GateVerdict.INSUFFICIENT
    assert made.labels == made.certified == ()
    assert found.macro.score.estimate is None
    assert any("can judge no label at all" in one for one in found.notes)
    for text in (render_html(found), render_markdown(found), render_csv(found)):
        assert text
    assert not any("no label at all" in one for one in evaluate().notes)


def test_the_signature_names_it_and_only_it():
    """Two macro-F1 over other labels are not compared."""
    plain, found = evaluate(()), evaluate(("edema", "no_finding"))
    assert left_out_of(plain.signature) == frozenset()
    assert left_out_of(found.signature) == {"edema", "no_finding"}
    assert "without:edema,no_finding" in found.signature.split("|")
    assert "without" not in plain.signature


def test_every_document_shows_it_with_the_reason_and_out_of_the_count():
    """20 of 20 labels, and one that is shown."""
    found = evaluate()
    html, markdown = render_html(found), render_markdown(found)
    for text in (html, markdown):
        assert "NOT COMPARABLE" in text
        assert REASON in text
        assert re.search(r"\d+ of 20\b", text)
        assert not re.search(r"\d+ of 21\b", text)
    assert "every label that the reference can judge reaches" in html
    assert "NOT COMPARABLE" in render_csv(found)
    data = evaluation_data(found)
    shown = next(one for one in data["labels"] if one["label"] == "no_finding")
    assert shown["verdict"] == "NOT COMPARABLE"
    assert REASON in shown["reasons"][0]
    assert shown["n"] > 0
    assert set(shown["verdict_if_uncertain"].values()) == {"NOT COMPARABLE"}
    assert "no_finding" not in {one["label"] for one in data["claim"]["labels"]}
    assert "of 20; 1 NOT COMPARABLE)" in verdict_line(found)
    assert all("of 21" not in line for line in average_lines(found))


def test_without_such_a_label_nothing_speaks_of_it():
    """What was written before is written in the same words."""
    found = evaluate(())
    for text in (render_html(found), render_markdown(found), render_csv(found)):
        assert "NOT COMPARABLE" not in text
    assert "not comparable" not in render_html(found).split("</style>")[1]
    assert verdict_line(found).endswith("of 21)")
    assert list(count_verdicts(one.gate.verdict for one in found.labels)) == [
        GateVerdict.PASS,
        GateVerdict.FAIL,
        GateVerdict.INSUFFICIENT,
    ]


def test_a_comparison_shows_the_change_and_judges_it_not():
    """Answers that the reference cannot judge got neither better nor worse."""
    before, after = read(noise=0.2), read(noise=3.0)
    found = compare_inputs(before, after, resamples=50)
    plain = compare_inputs(*(read((), noise=x) for x in (0.2, 3.0)), resamples=50)
    change, was = (
        next(one for one in x.labels if one.label == "no_finding")
        for x in (found, plain)
    )
    assert was.judged
    assert not change.judged
    assert change.accuracy == was.accuracy
    assert change.p_holm == 1.0
    assert change not in found.less_sensitive
    assert found.macro_after != plain.macro_after
    scores = [one.f1_after for one in found.labels if one is not change]
    known = [one for one in scores if one is not None]
    assert found.macro_after == pytest.approx(sum(known) / len(known))
    assert comparison_data(found)["macro_f1_after"] == found.macro_after


def test_a_comparison_says_why_it_is_not_judged(capsys):
    """A dash alone would leave it open."""
    before, after = read(noise=0.2), read(noise=3.0)
    found = compare_inputs(before, after, resamples=50)
    show_comparison(found)
    assert "the reference cannot judge it: No Finding" in capsys.readouterr().out
    evaluation = evaluate()
    assert "| not comparable |" in render_markdown(evaluation, found)
    assert '<span class="dim">not comparable</span>' in render_html(evaluation, found)


def test_only_it_got_worse_and_nothing_did():
    """A release is not stopped by a loss that nobody can judge."""
    kept = {"pneumonia"}
    others = tuple(label for label in TAXONOMY.ids if label not in kept)
    found = compare_inputs(read(others), read(others), resamples=50)
    assert [one.label for one in found.labels if one.judged] == ["pneumonia"]


def test_a_matrix_ranks_no_engine_on_it():
    """It counts for no engine, nor for the one that finds nothing."""
    runs = [
        read(run=f"20260105-09000{n}-aaaaaa", noise=noise)
        for n, noise in enumerate((0.2, 2.0))
    ]
    found = build_matrix(
        [MatrixEntry(f"engine {n}", one) for n, one in enumerate(runs)], resamples=20
    )
    one = next(row for row in found.rows if row.label == "no_finding")
    assert not one.comparable
    assert not one.ranked
    assert len(found.comparable) == len(found.rows) - 1
    assert f"of {len(found.comparable)} labels" in floor_sentence(found)
    floors = [row.floor for row in found.comparable]
    assert found.floor.accuracy == pytest.approx(sum(floors) / len(floors))
    for column in found.columns:
        assert sum(map(int, tally(found, column).split("/"))) == 20
        assert found.verdicts(column)[OUT] == 1
        assert found.at_threshold(column) <= 20
    assert "not comparable" in render_matrix_html(found)
    assert "of 20" in render_matrix_markdown(found)
    assert "the reference cannot judge" in render_matrix_markdown(found)


def test_its_failing_cases_decide_no_gate_in_the_queue():
    """Nobody is sent to them because the label is about to pass."""
    pairs = read().pairs
    plain = Worth(pairs, Protocol())._labels["no_finding"]
    found = Worth(pairs, Protocol(), {"no_finding": REASON})._labels["no_finding"]
    assert plain.words != found.words == ("the reference cannot judge the label",)
    assert found.gate is None
    assert found.rare == 0


def test_a_check_of_a_draft_judges_it_only_by_verdicts():
    """The reference says nothing of what is right there."""
    found = read()
    column = found.pairs.labels.index("no_finding")
    assert (found.pairs.binary_reference[:, column] >= 0).any()
    judged = found.judged_pairs
    assert not (judged.binary_reference[:, column] >= 0).any()
    others = [n for n in range(len(TAXONOMY.ids)) if n != column]
    assert (judged.reference[:, others] == found.pairs.reference[:, others]).all()
    plain = read(())
    assert plain.judged_pairs is plain.pairs


@pytest.mark.parametrize("look", [None, 1])
def test_a_draft_is_not_stopped_by_what_the_reference_cannot_judge(tmp_path, look):
    """Neither where it is asked once nor over draws."""

    def check(labels):
        before, after = (read(labels, noise=noise) for noise in (0.0, 4.0))
        with closing(Store(tmp_path / "store.db")) as store:
            return measure_draft(store, [before], [after], [], look=look)

    plain = " ".join(check(()).reasons)
    assert "may be worse" in plain or "evidence of harm" in plain
    found = check(TAXONOMY.ids)
    assert "worse" not in " ".join(found.reasons)
    assert "harm" not in " ".join(found.reasons)
    if look is None:
        judged = found.judged_by(ShareCriterion.NOTHING)["accuracy"]
    else:
        judged = found.over_draws.unjudged
    assert list(judged) == list(TAXONOMY.ids)


def test_a_family_that_is_empty_certifies_nothing():
    """Neither by an intersection over nothing nor by any of nothing."""
    nothing = [replace(one) for one in evaluate(TAXONOMY.ids).labels]
    assert certify(nothing, Protocol(rule="lower", min_positives=14)).verdict is (
        GateVerdict.INSUFFICIENT
    )
