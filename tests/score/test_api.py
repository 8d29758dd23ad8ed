"""Ran Score from a notebook: what goes in, what comes out, what is refused."""

import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import loop.score
from loop.core.errors import DataError, LoopError
from loop.core.paths import bundled
from loop.labels.taxonomy import read_taxonomy
from loop.score.api import check_options, ran_score
from loop.score.extractor import Extractor
from loop.score.plot import plot_ranking
from loop.score.reading.options import ReadingOptions
from loop.score.records import Conventions
from loop.stats.intervals import Estimate

REFERENCES = {
    "a": "Small left pleural effusion. No pneumothorax.",
    "b": "Cardiomegaly with mild pulmonary edema.",
    "c": "Normal chest.",
    "d": "Left lower lobe consolidation and small left pleural effusion.",
}
SYSTEMS = {
    "copy": REFERENCES,
    "half": {**REFERENCES, "a": "Normal chest.", "d": "Left pleural effusion."},
    "normal": dict.fromkeys(REFERENCES, "Normal chest."),
}
LABELS = read_taxonomy(bundled() / "labels").ids


@pytest.fixture(scope="module")
def extractor():
    """Open the shipped extractor once."""
    with Extractor.open(None, "extractor@v7") as opened:
        yield opened


@pytest.fixture(scope="module")
def result(extractor):
    """Score three systems."""
    return ran_score(REFERENCES, SYSTEMS, extractor=extractor, resamples=200)


def table_of(*rows, ids="abc"):
    """Return label columns for cases: each row names what is present."""
    cells = {
        label: [1 if label in row else 0 for row in rows]
        for label in LABELS
        if label != "no_finding"
    }
    return pd.DataFrame(cells, index=list(ids[: len(rows)]))


def test_table_ranks_the_systems(result):
    """By hand: effusion 2/2 in half is 2*1/(2+1), consolidation is missed."""
    assert result.table.index.tolist() == ["copy", "half", "normal"]
    assert result.table["rank"].tolist() == [1, 2, 3]
    assert result.table.loc["copy", "ran_score"] == result.score == 1.0
    half = result.labels.set_index(["system", "label"]).loc["half"]
    assert half.loc["pleural_effusion", "f1"] == pytest.approx(2 / 3)
    assert half.loc["consolidation", "f1"] == 0
    assert half.loc["pleural_effusion", ["tp", "fp", "fn", "tn"]].tolist() == [
        1,
        0,
        1,
        2,
    ]


def test_tables_hold_numbers_and_not_objects(result):
    """A column can be sorted, plotted and averaged."""
    kinds = result.table.drop(columns="signature").dtypes
    assert all(kind.kind in "if" for kind in kinds)
    assert result.labels["f1"].dtype == np.float64
    assert len(result.labels) == 3 * len(LABELS)


def test_cases_name_what_was_missed_and_invented(result):
    """The way from a number to the texts behind it."""
    cases = result.cases.set_index(["system", "case_id"])
    assert cases.loc[("normal", "b"), "missed"] == ("cardiomegaly", "edema")
    assert cases.loc[("normal", "b"), "invented"] == ("no_finding",)
    assert cases.loc[("normal", "c"), "f1"] == 1.0


def test_differences_have_a_row_for_every_pair(result):
    """And the columns even without a pair."""
    pairs = result.differences[["better", "worse"]].apply(tuple, axis=1)
    assert set(pairs) == {("copy", "half"), ("copy", "normal"), ("half", "normal")}
    alone = ran_score(REFERENCES, REFERENCES, resamples=50).differences
    assert alone.empty and list(alone.columns) == list(result.differences.columns)


def test_one_system_needs_no_name(extractor):
    """A mapping of ids is one system, not many."""
    result = ran_score(REFERENCES, REFERENCES, extractor=extractor, resamples=50)
    assert len(result.table) == 1 and result.score == 1.0


def test_series_mappings_and_lists_are_the_same(result, extractor):
    """However the texts are held."""
    series = ran_score(
        pd.Series(REFERENCES),
        {name: pd.Series(texts) for name, texts in SYSTEMS.items()},
        extractor=extractor,
        resamples=200,
    )
    pd.testing.assert_frame_equal(series.table, result.table)
    lists = ran_score(
        [*REFERENCES.values()],
        {name: [*texts.values()] for name, texts in SYSTEMS.items()},
        extractor=extractor,
        resamples=200,
    )
    pd.testing.assert_frame_equal(lists.table, result.table)
    assert "joined by position" in repr(lists)


def test_the_order_of_cases_changes_nothing(result, extractor):
    """Scores, intervals and p values to the last bit."""
    turned = ran_score(
        dict(reversed(REFERENCES.items())),
        {name: dict(reversed(texts.items())) for name, texts in SYSTEMS.items()},
        extractor=extractor,
        resamples=200,
    )
    pd.testing.assert_frame_equal(turned.table, result.table)
    pd.testing.assert_frame_equal(turned.differences, result.differences)


def test_lists_of_different_length_are_refused(extractor):
    """One lost row would shift all others."""
    with pytest.raises(ValueError, match="equally long"):
        ran_score(["Edema.", "Normal."], ["Edema."], extractor=extractor)


def test_a_lost_row_is_said_and_not_shifted(extractor):
    """The other cases keep their score."""
    some = {name: text for name, text in REFERENCES.items() if name != "b"}
    result = ran_score(REFERENCES, {"s": some}, extractor=extractor, resamples=50)
    assert result.score == 1.0
    assert result.table.loc["s", ["n", "missing"]].tolist() == [3, 1]
    assert "s: 1 case without a candidate, not scored: b." in result.notes


@pytest.mark.parametrize(
    ("lost", "said"),
    [(2, "2 cases without a candidate, not scored: c0, c1."),
     (3, "3 cases without a candidate, not scored: c0, c1, c2."),
     (4, "4 cases without a candidate, not scored: c0, c1, c2, ...")],
)  # fmt: skip
def test_at_most_three_lost_rows_are_named(extractor, lost, said):
    """Dots stand for the others, and only where there are others."""
    texts = {f"c{number}": "Edema." for number in range(6)}
    some = {name: text for name, text in texts.items() if int(name[1]) >= lost}
    result = ran_score(texts, {"s": some}, extractor=extractor, resamples=50)
    assert [note for note in result.notes if note.startswith(f"s: {said}")]


def test_labels_score_without_an_engine():
    """Labels of readers, or of another extractor: nothing is asked, and it is said."""
    truth = table_of({"edema"}, {"fracture"}, set())
    result = ran_score(truth, {"same": truth}, extractor="no_such@v1", resamples=50)
    assert result.score == 1.0
    assert result.signature == "ran|given|unc:wrong|zd:skip|nf:ran|L:3/21|n:3"


def test_words_in_label_cells_need_a_policy():
    """Refused unless said what they mean."""
    truth = table_of({"edema"}, set()).astype(object)
    truth.loc["b", "edema"] = "yes"
    with pytest.raises(DataError, match="yes"):
        ran_score(truth, truth)
    reading = ReadingOptions(values={"yes": "present"})
    found = ran_score(truth, truth, reading=reading, resamples=50)
    edema = found.labels.set_index("label").loc["edema"]
    assert edema["tp"] == 2
    other = ReadingOptions(values={"yes": "absent"})
    again = ran_score(truth, truth, reading=other, resamples=50)
    assert (
        len(
            {
                found.signature,
                again.signature,
                ran_score(
                    truth.replace("yes", 1), truth.replace("yes", 1), resamples=50
                ).signature,
            }
        )
        == 3
    )
    assert "'yes' means present" in repr(found)


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        (
            pd.DataFrame({"edema": ["yes"]}, index=["a"]),
            "values={'yes': 'present'} (of",
        ),
        (pd.DataFrame({"note": ["-"]}, index=["a"]), "text_column (of loop.score.Read"),
        (pd.DataFrame({"text": [7]}, index=["a"]), "text with text_column (of"),
        (pd.Series(["x", "y"], index=["a", "a"]), "duplicates='first' or 'last' (of"),
        ({"z": "Edema."}, "and id_column (of loop.score.ReadingOptions)"),
    ],
)
def test_what_to_do_is_said_in_python(candidate, said):
    """Not with options of a command line that a notebook does not have."""
    with pytest.raises(DataError) as caught:
        ran_score(REFERENCES, candidate)
    assert said in str(caught.value)
    assert "--" not in str(caught.value)


def test_a_perfect_copy_below_one_is_explained(extractor):
    """Three cases with one finding each: 3/21 under zero, 1 under skip."""
    texts = {
        "a": "Left pleural effusion.",
        "b": "Pneumothorax.",
        "c": "Rib fracture.",
    }
    zero = ran_score(
        texts, texts, extractor=extractor, zero_division="zero", resamples=50
    )
    assert zero.score == pytest.approx(3 / 21)
    assert any("a perfect copy of the references scores 0.143" in n for n in zero.notes)
    assert ran_score(texts, texts, extractor=extractor, resamples=50).score == 1.0


def test_an_undefined_score_is_none_and_not_zero(extractor):
    """The engine reads no German, so no label counts."""
    texts = {"a": "Kein Erguss und kein Infiltrat, das Herz ist nicht groß."}
    result = ran_score({"a": "Edema."}, {"s": texts}, extractor=extractor, resamples=50)
    assert result.score is None and np.isnan(result.table.loc["s", "ran_score"])
    assert "s: undefined" in repr(result)
    assert any("no cues for language 'de'" in note for note in result.notes)
    assert result.table["ran_score"].dtype == np.float64


def test_patients_are_resampled_as_a_whole(extractor):
    """All cases of one patient: one unit, so no interval."""
    patients = dict.fromkeys(REFERENCES, "p1")
    result = ran_score(
        REFERENCES, SYSTEMS, extractor=extractor, patients=patients, resamples=50
    )
    assert result.ranking.n_patients == 1
    assert np.isnan(result.table.loc["half", "low"])


def test_seed_and_resamples_are_the_users(extractor):
    """The same seed gives the same interval."""
    first, same, other = (
        ran_score(
            REFERENCES, SYSTEMS, extractor=extractor, resamples=97, seed=seed
        ).table.loc["half", ["low", "high", "best"]]
        for seed in (1, 1, 2)
    )
    assert first.equals(same) and not first.equals(other)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"uncertain": "maybe"}, "uncertain must be one of wrong, excl, pos, neg"),
        ({"no_finding": "own"}, "no_finding must be one of ran, chexpert, read"),
        ({"zero_division": 0}, "zero_division must be skip, zero or one, got 0"),
        ({"resamples": 0}, "resamples must be whole and >= 1"),
        ({"permutations": 10.5}, "permutations must be whole and >= 1"),
        ({"permutations": 0}, "permutations must be whole and >= 1, got 0"),
        ({"seed": None}, "seed must be whole and >= 0, got None"),
        ({"seed": -1}, "seed must be whole and >= 0, got -1"),
        ({"workspace": "."}, "workspace must be WorkspacePaths.*got str"),
        ({"reading": {"values": {}}}, "reading must be ReadingOptions, got dict"),
        ({"confidence": 95}, "confidence must be in"),
        ({"nonsense": 1}, "no option 'nonsense'; there are confidence, engine"),
    ],
)
def test_wrong_options_are_refused(option, message):
    """With what they may be, and before an engine is asked for hours."""
    with pytest.raises((ValueError, TypeError), match=message):
        ran_score(REFERENCES, REFERENCES, extractor="extractor@v99", **option)


def test_the_least_of_every_option_is_allowed():
    """One resample, one permutation and seed 0; numbers of numpy are numbers."""
    for least in (1, np.int64(1)):
        options = {"resamples": least, "permutations": least, "seed": least - 1}
        chosen = check_options(options)
        assert (chosen.resamples, chosen.permutations, chosen.seed) == (1, 1, 0)
    assert check_options({}).conventions == Conventions()


@pytest.mark.parametrize("option", [{"engine": "rules"}, {"workspace": None}])
def test_an_open_extractor_keeps_its_engine(extractor, option):
    """Another one beside it would be left aside in silence."""
    with pytest.raises(ValueError, match=f"{next(iter(option))} was chosen when"):
        ran_score(REFERENCES, REFERENCES, extractor=extractor, **option)


def test_a_version_that_is_not_there_says_so():
    """Before anything is read."""
    with pytest.raises(DataError, match="has no version v99"):
        ran_score(REFERENCES, REFERENCES, extractor="extractor@v99")


def test_answers_are_kept_in_a_workspace(workspace):
    """A notebook that is run again asks nothing again."""
    options = {"extractor": "extractor@v1", "workspace": workspace, "resamples": 50}
    first = ran_score(REFERENCES, SYSTEMS, **options)
    again = ran_score(REFERENCES, SYSTEMS, **options)
    assert first.graded.outcomes["asked"] == 5
    assert again.graded.outcomes["asked"] == 0
    pd.testing.assert_frame_equal(first.table, again.table)


def test_plot_is_a_figure_of_its_own(result):
    """Nothing is added to pyplot's open figures, and a notebook can show it."""
    figure = result.plot()
    assert isinstance(figure, Figure) and not pyplot.get_fignums()
    assert figure._repr_png_().startswith(b"\x89PNG")
    names = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert names == ["1. copy", "2. half", "3. normal"]


def test_names_are_shown_as_they_are(extractor):
    """Neither a formula nor markup, in the figure and in the table."""
    name = "m_1 $x_{$ <script>alert(1)</script>"
    result = ran_score(
        REFERENCES, {name: REFERENCES}, extractor=extractor, resamples=50
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result.plot()._repr_png_()
    assert "<script>" not in result._repr_html_()
    assert name in repr(result)


def test_what_is_shown_holds_no_case_text(result):
    """A notebook is saved and sent around."""
    shown = repr(result) + result._repr_html_() + result.cases.to_csv()
    assert not any(text in shown for text in REFERENCES.values())


@pytest.mark.slow
def test_records_load_without_tables_and_figures():
    """`ranloop --help` must not wait for pandas."""
    code = (
        "import sys, loop.score.records; "
        "sys.exit(any(name in sys.modules for name in ('pandas', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_are_there_and_sorted():
    """Each can be imported, and no other one."""
    assert loop.score.__all__ == sorted(loop.score.__all__)
    assert all(hasattr(loop.score, name) for name in loop.score.__all__)
    assert set(loop.score.__all__) <= set(dir(loop.score))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        loop.score.nonsense  # noqa: B018


def test_without_matplotlib_the_scores_are_there_and_the_figure_says_what_to_do(
    monkeypatch,
):
    """Figures for a notebook are an extra."""
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    monkeypatch.delitem(sys.modules, "loop.score.plot", raising=False)
    result = ran_score({"a": "Cardiomegaly."}, {"a": "Enlarged heart."})
    assert result.score == 1.0
    with pytest.raises(LoopError, match=r"not installed. Add it with .*\[plot\]"):
        result.plot()


def test_tables_hold_what_the_records_hold(extractor):
    """Every column, in its order, of a system that lacks a case and adds one."""
    some = {"a": REFERENCES["a"], "b": "", "c": REFERENCES["c"], "x": "Edema."}
    result = ran_score(REFERENCES, {"s": some}, extractor=extractor, resamples=50)
    (one,) = result.ranking.systems
    assert result.table.loc["s"].to_dict() == {
        "rank": 1,
        "ran_score": one.ran_score.value,
        "low": one.ran_score.low,
        "high": one.ran_score.high,
        "best": 1.0,
        "effective_labels": 4,
        "micro_f1": one.micro_f1.value,
        "micro_f1_low": one.micro_f1.low,
        "micro_f1_high": one.micro_f1.high,
        "micro_precision": 1.0,
        "micro_recall": 0.5,
        "micro_accuracy": pytest.approx(61 / 63),
        "macro_precision": 0.5,
        "macro_recall": 0.5,
        "macro_accuracy": pytest.approx(61 / 63),
        "perfect": 1.0,
        "n": 3,
        "missing": 1,
        "extra": 1,
        "empty": 1,
        "signature": one.signature,
    }
    place = LABELS.index("cardiomegaly")
    assert result.labels.iloc[place].to_dict() == {
        "system": "s",
        "label": "cardiomegaly",
        "f1": 0.0,
        "precision": pytest.approx(np.nan, nan_ok=True),
        "recall": 0.0,
        "specificity": 1.0,
        "accuracy": pytest.approx(2 / 3),
        "tp": 0,
        "fp": 0,
        "fn": 1,
        "tn": 2,
        "uncertain": 0,
        "unanswered": 0,
    }
    assert result.notes == (
        "s: 1 case without a candidate, not scored: d.",
        "s: 1 case without a reference, not scored: x.",
        "s: 1 case without a word, scored as saying nothing: b.",
    )
    uncovered = replace(result, ranking=replace(result.ranking, coverage=()))
    gaps = uncovered.table.loc["s", ["missing", "extra", "empty"]]
    assert gaps.tolist() == [0, 0, 0]


def test_what_is_printed_is_the_ranking_with_its_limits(result):
    """Number, name, score, interval if there is one, cases; then the conventions."""
    first, second, third, signature = repr(result).splitlines()[1:5]
    assert repr(result).startswith("Ran Score of 3 systems\n")
    half = result.table.loc["half"]
    assert first == "1. copy: 1.000, 4 cases"
    assert second == (
        f"2. half: {half['ran_score']:.3f} ({half['low']:.3f} to {half['high']:.3f}), "
        "4 cases"
    )
    assert third.startswith("3. normal: ")
    assert signature == result.signature
    shown = result._repr_html_()
    assert shown.count("<tr") == 4
    assert f"<p><code>{result.signature}</code></p>" in shown


def test_references_without_a_word_are_noted(extractor):
    """They are in no score."""
    texts = {**REFERENCES, "e": " . "}
    result = ran_score(texts, {"s": texts}, extractor=extractor, resamples=50)
    assert result.notes == ("1 reference without a word: e.",)


def test_differences_are_numbers_in_columns(result):
    """The same as the records, the interval apart."""
    (first, *_) = result.ranking.differences
    assert result.differences.iloc[0].to_dict() == {
        "better": first.better,
        "worse": first.worse,
        "difference": first.difference.value,
        "low": first.difference.low,
        "high": first.difference.high,
        "p": first.p,
        "p_holm": first.p_holm,
        "exact": True,
    }


def test_the_figure_draws_scores_limits_and_who_has_none(result):
    """Points at their scores, lines where there is an interval, rows from the top."""
    ranking = result.ranking
    first, second, third = ranking.systems
    none = replace(third, ran_score=Estimate(None, None, None, "none"))
    known = replace(second, system="n" * 41, ran_score=Estimate(0.5, 0.25, 0.75, ""))
    shown = replace(ranking, systems=(replace(first, system="n" * 40), known, none))
    axes = plot_ranking(shown).axes[0]
    lines = [(list(one.get_xdata()), list(one.get_ydata())) for one in axes.lines]
    assert lines == [([1.0], [0]), ([0.25, 0.75], [1, 1]), ([0.5], [1])]
    said = [one.get_text() for one in axes.texts]
    assert said == ["1.000", "0.500", "undefined: no label counts"]
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == [f"1. {'n' * 40}", f"2. {'n' * 37}...", "3. normal"]
    assert axes.get_ylim() == (2.5, -0.6)
    assert axes.get_xlabel() == (
        "Ran Score (macro-F1), with 95% interval\n(200 resamples of cases)"
    )
    patients = plot_ranking(replace(ranking, n_patients=3, resamples=2_000))
    assert "(2,000 resamples of patients)" in patients.axes[0].get_xlabel()


def test_a_taxonomy_of_a_workspace_names_its_labels(workspace):
    """Labels in memory are read by the words of the workspace that was named."""
    truth = table_of({"edema"}, set())
    (workspace.labels / "taxonomy.yaml").write_text("not: a taxonomy")
    with pytest.raises(DataError):
        ran_score(truth, truth, workspace=workspace, resamples=10)
    assert ran_score(truth, truth, resamples=10).score == 1.0
