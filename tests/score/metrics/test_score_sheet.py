"""Running metrics, and their sheet: paired cases only, shared resamples, no order."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.score.metrics import word_counts
from loop.score.metrics.base import MetricOptions
from loop.score.metrics.registry import METRICS, find
from loop.score.metrics.score_sheet import (
    correlation_matrix,
    format_per_case,
    measure_texts,
    run_metrics,
    text_sides,
    write_per_case,
)
from loop.score.records import PairSide
from loop.stats.resampling import bootstrap
from tests.score.metrics.scenes import ALONE, TAXONOMY, make_pairs

FEW = {"resamples": 50, "seed": 3}


def run(joined, graded, names=("all",), options=ALONE, **resampling):
    """Return the sheet of some metrics."""
    return run_metrics(joined, graded, TAXONOMY, names, options, **FEW | resampling)


def test_a_case_without_a_candidate_is_not_scored():
    """It is reported as missing; a 0 would be an answer nobody gave."""
    sheet = run(*make_pairs())
    assert len(sheet.case_ids["good"]) == 29
    assert "c000" not in sheet.case_ids["good"]
    for result in sheet.results:
        assert result.n + result.undefined == len(sheet.case_ids[result.system])


def test_metrics_come_in_the_registrys_order_and_systems_in_theirs():
    """A table must not be shuffled by what happened to run first."""
    sheet = run(*make_pairs(), names=("rouge_l", "bleu_1", "ran_score"))
    found = [(result.metric.name, result.system) for result in sheet.results]
    names = ["ran_score", "bleu_1", "rouge_l"]
    assert found == [(name, each) for name in names for each in ("good", "poor")]


def test_what_cannot_run_says_why_and_the_rest_goes_on():
    """Given labels have no words, and no encoder is named."""
    joined, graded = make_pairs(texts=False)
    sheet = run(joined, graded)
    why = dict(sheet.unavailable)
    assert "are labels, not texts" in why["bleu_4"]
    assert set(why) | {m.name for m in sheet.metrics} == set(METRICS)
    assert {m.family for m in sheet.metrics} == {"labels"}
    assert len(sheet.unavailable) == len(why)


def test_where_nothing_can_run_there_is_a_sheet_that_says_why():
    """For each system, and with the cases that would have been scored."""
    sheet = run(*make_pairs(texts=False), names=("bleu_4",))
    assert sheet.results == sheet.metrics == ()
    assert {one.metric for one in sheet.unavailable} == {"bleu_4"}
    assert [len(sheet.case_ids[name]) for name in ("good", "poor")] == [29, 30]
    assert np.isnan(sheet.column("bleu_4")).tolist() == [True] * 59


def test_references_of_labels_leave_what_looks_at_pairs_of_texts_out():
    """Reading ease needs both too, so that one sheet is about one set of pairs."""
    joined, graded = make_pairs()
    labels = PairSide(name="reference", texts=None, codes=graded.reference)
    sheet = run(replace(joined, reference=labels), graded, ("rouge_1", "ran_score"))
    assert [one.metric for one in sheet.unavailable] == ["rouge_1"]
    assert "the references of this system are labels" in sheet.unavailable[0].reason


def test_an_empty_candidate_scores_zero_in_every_comparison_of_words():
    """By convention; it says nothing, which has no reading ease."""
    joined, graded = make_pairs(5, ("silent",))
    silent = PairSide(name="silent", texts=(None, "", "", "", ""))
    sheet = run(replace(joined, systems=(silent,)), graded)
    values = {r.metric.name: r.estimate.value for r in sheet.results}
    assert [values[m.name] for m in find(["text"]) if m.name in values] == [0] * 10
    assert values["flesch"] is None


def test_a_copy_of_the_references_has_the_highest_value():
    """Whatever is bounded above reaches its bound; METEOR ends just below."""
    joined, graded = make_pairs(20, ("copy",))
    texts = (None, *joined.reference.texts[1:])
    graded = replace(graded, candidates=graded.reference[None])
    sheet = run(replace(joined, systems=(PairSide(name="copy", texts=texts),)), graded)
    for result in sheet.results:
        if result.metric.high is not None:
            expected = pytest.approx(result.metric.high, abs=0.001)
            assert result.estimate.value == expected, result.metric.name
    assert {r.metric.name: r.estimate.value for r in sheet.results}["ran_errors"] == 0


def test_the_interval_is_that_of_the_metric_resampled_on_its_own():
    """Sharing resamples between metrics must change no number."""
    joined, graded = make_pairs()
    units = np.repeat(np.arange(10), 3)
    graded = replace(graded, patients=tuple(map(str, units)))
    sheet = run(joined, graded, ("rouge_l", "bleu_2", "ran_score"), resamples=200)
    result = next(r for r in sheet.results if r.metric.name == "rouge_l")
    columns = np.column_stack([result.per_case, np.ones(29)])
    alone = bootstrap(
        columns,
        lambda sums: sums[:, 0] / sums[:, 1],
        units=units[1:],
        resamples=200,
        seed=3,
    )[0]
    assert result.estimate[:3] == pytest.approx(alone[:3])


@pytest.mark.parametrize("kinds", [(3,), (3, 4)])
def test_the_interval_holds_the_value_and_is_none_where_all_cases_are_alike(kinds):
    """A value made apart from its counts could drift from its interval unseen."""
    joined, graded = make_pairs(12, ("same",))
    rows = [kinds[row % len(kinds)] for row in range(12)]
    told = tuple(joined.reference.texts[row] for row in rows)
    answered = tuple(joined.systems[0].texts[row] for row in rows[1:])
    graded = replace(
        graded, reference=graded.reference[rows], candidates=graded.candidates[:, rows]
    )
    joined = replace(
        joined,
        reference=PairSide(name="reference", texts=told),
        systems=(PairSide(name="same", texts=(None, *answered)),),
    )
    estimates = {r.metric.name: r.estimate for r in run(joined, graded).results}
    assert len(estimates) == len(METRICS) - 1
    for name, (value, low, high, note) in estimates.items():
        if low is not None:
            assert low - 1e-9 <= value <= high + 1e-9, name
        elif value is not None:
            assert "every resample gives the same value" in note, name
    assert all(one.low is None for one in estimates.values()) == (len(kinds) == 1)
    assert sum(one.value is not None for one in estimates.values()) > 20


def test_the_order_of_systems_changes_no_number():
    """Distinct pairs of texts are counted once, for all systems together."""
    joined, graded = make_pairs()
    back = slice(None, None, -1)
    turned = run(
        replace(joined, systems=joined.systems[back], coverage=joined.coverage[back]),
        replace(
            graded, systems=graded.systems[back], candidates=graded.candidates[back]
        ),
    )
    plain = {(r.metric.name, r.system): r.estimate for r in run(joined, graded).results}
    assert plain == {(r.metric.name, r.system): r.estimate for r in turned.results}


def test_texts_and_codes_of_different_cases_are_refused():
    """Scores of other people's labels would look like any other score."""
    joined, graded = make_pairs()
    with pytest.raises(ValueError, match="of the same cases and systems"):
        run(joined, replace(graded, case_ids=graded.case_ids[::-1]))


@pytest.mark.slow
def test_two_processes_count_what_one_counts(monkeypatch):
    """To the last bit, whichever of them a pair went to."""
    monkeypatch.setattr(word_counts, "_WORTH", 1)
    joined, graded = make_pairs()
    alone = run(joined, graded, ("text",))
    two = run(joined, graded, ("text",), MetricOptions(workers=2))
    for one, other in zip(alone.results, two.results, strict=True):
        assert np.array_equal(one.per_case, other.per_case)
        assert one.estimate == other.estimate


NAMES = ("ran_score", "clinical_sensitivity", "rouge_l", "length_difference")


@pytest.fixture(scope="module")
def sheet():
    """Return four metrics of two systems."""
    return run_metrics(*make_pairs(), TAXONOMY, NAMES, ALONE, resamples=10)


def test_every_candidate_has_a_row_with_numbers_that_read_back(sheet):
    """The file is what metrics are later compared with experts by."""
    rows = list(csv.DictReader(io.StringIO(format_per_case(sheet).decode("utf-8"))))
    assert list(rows[0]) == ["id", "system", *NAMES]
    assert len(rows) == 29 + 30
    assert [row["id"] for row in rows[:29]] == list(sheet.case_ids["good"])
    for name in NAMES:
        read = [float(row[name] or "nan") for row in rows]
        assert np.array_equal(read, sheet.column(name), equal_nan=True)


def test_undefined_is_an_empty_cell(sheet):
    """A 0 would be a score, and "nan" is a word some readers take for text."""
    text = format_per_case(sheet).decode("utf-8")
    assert np.isnan(sheet.column("clinical_sensitivity")).any()
    assert "nan" not in text
    assert ",," in text


def test_an_id_that_a_spreadsheet_would_run_starts_with_an_apostrophe():
    """Ids come from files of others."""
    joined, graded = make_pairs(2, ("=cmd()", "b"))
    found = run_metrics(joined, graded, TAXONOMY, ["ran_score"], ALONE, resamples=10)
    assert b"c001,'=cmd()," in format_per_case(found)


def test_the_file_is_written_whole(sheet, tmp_path):
    """The bytes are those of `format_per_case`."""
    path = tmp_path / "per_case.csv"
    write_per_case(sheet, path)
    assert path.read_bytes() == format_per_case(sheet)


def test_correlations_are_scipys_over_candidates_where_both_are_defined(sheet):
    """Each pair of metrics says how many candidates it rests on."""
    found = correlation_matrix(sheet)
    assert found.metrics == NAMES
    one, other = sheet.column(NAMES[1]), sheet.column(NAMES[2])
    both = ~np.isnan(one) & ~np.isnan(other)
    # Equal fractions may differ in their last digit, which is no order.
    plain = kendalltau(one[both].round(12), other[both].round(12))
    assert found.tau_b[1, 2] == pytest.approx(plain.statistic, abs=1e-12)
    assert found.n[1, 2] == both.sum() < found.n[2, 3] == 59
    assert np.array_equal(found.tau_b, found.tau_b.T)
    assert np.diag(found.tau_b) == pytest.approx(1)


def test_a_constant_metric_correlates_with_nothing():
    """Without two different values there is no order to agree with."""
    joined, graded = make_pairs(1, ("only",))
    found = run_metrics(joined, graded, TAXONOMY, ["rouge_l"], ALONE, resamples=10)
    assert np.isnan(correlation_matrix(found).tau_b).all()


def test_texts_alone_are_sides_of_the_cases_that_have_a_candidate():
    """With the language and context of each case, where they are known."""
    joined, _ = make_pairs(4)
    joined = replace(
        joined,
        languages=("en", "de", "fr", "es"),
        contexts=("k0", "k1", "k2", "k3"),
    )
    good, poor = text_sides(joined)
    assert good.rows.tolist() == [1, 2, 3] and poor.rows.tolist() == [0, 1, 2, 3]
    side = good.side
    assert side.system == "good"
    assert side.case_ids == ("c001", "c002", "c003")
    assert side.references == joined.reference.texts[1:]
    assert side.candidates == joined.systems[0].texts[1:]
    assert (side.languages, side.contexts) == (("de", "fr", "es"), ("k1", "k2", "k3"))
    assert (side.labels, side.comparable) == ((), ())
    bare = replace(joined, languages=(), contexts=())
    assert (text_sides(bare)[1].side.languages, text_sides(bare)[1].side.contexts) == (
        (),
        (),
    )


def test_metrics_of_texts_need_no_labels():
    """The same numbers as beside labels; patients are resampled where known."""
    joined, graded = make_pairs(12)
    rouge = find(["rouge_1"])
    options = {"resamples": 50, "seed": 3}
    plain = measure_texts(joined, rouge, ALONE, **options)
    beside = run(joined, graded, ("rouge_1",))
    assert [one.estimate for one in plain.results] == [
        one.estimate for one in beside.results
    ]
    patients = tuple(f"p{n // 3}" for n in range(12))
    grouped = measure_texts(replace(joined, patients=patients), rouge, ALONE, **options)
    again = run(joined, replace(graded, patients=patients), ("rouge_1",))
    assert [one.estimate for one in grouped.results] == [
        one.estimate for one in again.results
    ]
    assert grouped.results[1].estimate[1:3] != plain.results[1].estimate[1:3]
    units = np.array(patients)
    told = measure_texts(joined, rouge, ALONE, units=units, **options)
    assert [one.estimate for one in told.results] == [
        one.estimate for one in grouped.results
    ]


def test_a_metric_that_did_not_run_for_a_system_has_no_scores_there():
    """Its column has a place for every candidate all the same."""
    joined, graded = make_pairs(4)
    sheet = run(joined, graded, ("rouge_1", "ran_score"))
    kept = tuple(one for one in sheet.results if one.system == "poor")
    part = replace(sheet, results=kept)
    column = part.column("rouge_1")
    assert np.isnan(column).tolist() == [True] * 3 + [False] * 4
    assert np.isnan(part.column("nothing")).all() and len(part.column("x")) == 7
    assert [one.name for one in part.metrics] == ["ran_score", "rouge_1"]
    nothing = replace(sheet, systems=(), results=())
    assert nothing.column("rouge_1").shape == (0,)


def test_metrics_of_chexperts_labels_need_a_taxonomy_that_has_them():
    """Named they say what is lacking; otherwise they are left out."""
    joined, graded = make_pairs(4)
    bare = replace(
        TAXONOMY, labels=tuple(replace(one, chexpert=None) for one in TAXONOMY.labels)
    )
    assert bare.comparable == ()
    every = run_metrics(joined, graded, bare, ("labels",), ALONE, **FEW)
    names = {one.name for one in every.metrics} | {
        one.metric for one in every.unavailable
    }
    assert not [name for name in names if name.startswith("chexpert")]
    one = run_metrics(
        joined, graded, bare, ("chexpert14_macro_pos", "ran_score"), ALONE, **FEW
    )
    assert [each.metric for each in one.unavailable] == ["chexpert14_macro_pos"]
    assert [each.name for each in one.metrics] == ["ran_score"]
