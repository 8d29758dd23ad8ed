"""Do scores fall for errors, and only for errors: D, R, AUC, paired, by kind, rises."""

import json

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.judge.discrimination import (
    FlaggedShare,
    MarkedPairs,
    PairScores,
    choose_threshold,
    measure_discrimination,
    read_marked_pairs,
    read_pair_scores,
    require_apart,
)
from loop.judge.discrimination_text import (
    discrimination_header,
    discrimination_rows,
    discrimination_svg,
    kind_rows,
)
from loop.stats.intervals import clopper_pearson
from tests.judge.scenes import call, table

HEADER = (
    *("id", "reference_id", "reference", "candidate"),
    *("kind", "significant", "number"),
)
ROWS = (
    ("a1", "a", "Left effusion.", "Right effusion.", "location", "yes", "1"),
    ("a2", "a", "Left effusion.", "Right mass.", "location", "yes", "2"),
    ("a3", "a", "Left effusion.", "Effusion on the left.", "order", "no", "1"),
    ("b1", "b", "Large mass.", "The lungs are clear.", "omission", "yes", "1"),
    ("b2", "b", "Large mass.", "There is a large mass.", "style", "no", ""),
)


def pairs(rows=ROWS):
    """Return marked pairs without a file."""
    columns = list(zip(*rows, strict=True))
    return MarkedPairs(
        ids=columns[0],
        reference_ids=columns[1],
        references=columns[2],
        candidates=columns[3],
        kinds=columns[4],
        significant=np.array([one == "yes" for one in columns[5]]),
        numbers=np.array([int(one or 1) for one in columns[6]]),
        severities=np.array([int(row[7]) if len(row) > 7 else 1 for row in rows]),
    )


def scores(values, flags=None, *, lower=False):
    """Return what a metric says of the pairs."""
    return PairScores(
        name="m",
        title="M",
        lower=lower,
        values=np.array(values, dtype=float),
        signature="m|x",
        flags=None if flags is None else np.array(flags, dtype=float),
    )


def write(tmp_path, rows=ROWS, header=HEADER, name="pairs.csv"):
    """Return a file of marked pairs."""
    return table(tmp_path / name, header, rows)


def test_the_numbers_are_those_counted_by_hand():
    """Three significant pairs against two harmless ones."""
    found = measure_discrimination(
        pairs(), scores([0.2, 0.3, 0.9, 0.5, 0.5], [1, 0, 0, 1, 1]), resamples=10
    )
    assert found.auc.value == pytest.approx(5.5 / 6)
    assert found.paired.value == pytest.approx((1 + 0.5) / 2)
    assert found.paired_references == 2
    assert (found.discrimination.hits, found.discrimination.pairs) == (2, 3)
    assert (found.robustness.hits, found.robustness.pairs) == (1, 2)
    assert found.bias == pytest.approx(2 / 3 - 1 / 2)
    assert found.overall == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert (found.steps.violated, found.steps.steps) == (1, 1)
    kinds = {one.kind: one for one in found.kinds}
    assert kinds["location"].auc.value == 1.0
    assert kinds["omission"].auc.value == pytest.approx(0.75)
    assert kinds["order"].share.value == 1.0 and kinds["style"].share.value == 0.0
    assert kinds["order"].auc is None


def test_every_kind_is_a_row_of_its_own_pairs():
    """The same word for an error and for a rewording is two kinds."""
    rows = (*ROWS, ("c1", "c", "Cough.", "Cough!", "style", "yes", "1"))
    found = measure_discrimination(
        pairs(rows),
        scores([0.2, np.nan, 0.9, 0.5, 0.5, 0.7], [1, np.nan, 0, 1, 1, 0]),
        resamples=5,
        confidence=0.9,
    )

    def share(hits, of):
        return FlaggedShare(hits, of, clopper_pearson(hits, of, confidence=0.9))

    assert [(one[:3], one.share) for one in found.kinds] == [
        (("location", True, 1), share(1, 1)),
        (("omission", True, 1), share(1, 1)),
        (("style", True, 1), share(0, 1)),
        (("order", False, 1), share(1, 1)),
        (("style", False, 1), share(0, 1)),
    ]
    areas = [None if one.auc is None else one.auc.value for one in found.kinds]
    assert areas == [1.0, 0.75, 0.5, None, None]
    assert (found.discrimination, found.robustness) == (share(2, 3), share(1, 2))
    assert found.steps == (0, 0, clopper_pearson(0, 0, confidence=0.9))
    assert found.undefined == 1


def test_without_severities_every_change_is_as_bad_as_the_others():
    """Which makes no pair another one."""
    given = pairs()
    bare = MarkedPairs(
        ids=given.ids,
        reference_ids=given.reference_ids,
        references=given.references,
        candidates=given.candidates,
        kinds=given.kinds,
        significant=given.significant,
        numbers=given.numbers,
    )
    assert bare.severities.tolist() == [1] * 5 and not bare.has_severities
    assert bare.digest == given.digest


def test_a_score_is_needed_for_each_pair():
    """Rows that do not belong together would show anything."""
    with pytest.raises(ValueError, match=r"one score for each of 5 pairs, got \(4,\)"):
        measure_discrimination(pairs(), scores([1, 2, 3, 4]))


@pytest.mark.parametrize("column", range(8))
def test_the_digest_covers_every_column(column):
    """A difference in any column makes other pairs, and so does another order."""
    rows = [(*row[:6], row[6] or "1", "2") for row in ROWS]
    known = pairs(rows).digest
    other = [list(row) for row in rows]
    other[2][column] = {5: "yes", 6: "2", 7: "3"}.get(column, "z")
    assert pairs(other).digest != known != pairs(rows[::-1]).digest


def test_steps_to_more_errors_and_to_worse_ones_are_counted_apart():
    """A step is of one number, or of one severity, and never of both."""
    rows = (
        ("a1", "a", "x", "y1", "severity", "yes", "1", "1"),
        ("a2", "a", "x", "y2", "severity", "yes", "1", "2"),
        ("a3", "a", "x", "y3", "severity", "yes", "1", "3"),
        ("a4", "a", "x", "y4", "severity", "yes", "2", "1"),
        ("a5", "a", "x", "y5", "order", "no", "1", "1"),
    )
    found = measure_discrimination(
        pairs(rows), scores([0.5, 0.6, 0.2, 0.4, 1.0]), resamples=5
    )
    assert (found.worse_steps.violated, found.worse_steps.steps) == (1, 2)
    assert (found.steps.violated, found.steps.steps) == (0, 1)
    assert discrimination_header([found])[-1] == "worse"
    assert discrimination_rows([found])[0][-2:] == ("0 of 1", "1 of 2")
    low, high = found.worse_steps.limits
    assert (low, high) == pytest.approx((0.0126, 0.9874), abs=1e-4)
    assert pairs(rows).digest != pairs([row[:7] for row in rows]).digest


def test_where_lower_is_better_the_scores_are_turned():
    """A count of errors rises with errors."""
    found = measure_discrimination(
        pairs(), scores([1, 2, 0, 1, 0], lower=True), resamples=10
    )
    assert found.auc.value == 1.0
    assert (found.steps.violated, found.discrimination, found.bias) == (0, None, None)


def test_a_missing_answer_is_neither_flagged_nor_not():
    """It is counted, and in no number."""
    found = measure_discrimination(
        pairs(),
        scores([np.nan, 0.3, 0.9, 0.5, np.nan], [np.nan, 1, 0, 1, np.nan]),
        resamples=10,
    )
    assert found.undefined == 2
    assert (found.discrimination.hits, found.discrimination.pairs) == (2, 2)
    assert (found.robustness.hits, found.robustness.pairs) == (1, 1)


def test_a_threshold_is_chosen_on_other_pairs():
    """Where it parts them best, in the metric's own direction."""
    one = scores([0.2, 0.3, 0.9, 0.4, 0.8])
    limit = choose_threshold(pairs(), one)
    assert 0.4 < limit < 0.8
    assert one.flagged_below(limit, "x").flags.tolist() == [1, 1, 0, 1, 0]
    less = scores([5, 4, 1, 3, 2], lower=True)
    limit = choose_threshold(pairs(), less)
    assert 2 < limit < 3
    assert less.flagged_below(limit, "x").flags.tolist() == [1, 1, 0, 1, 0]
    for values in ([np.nan, np.nan, 0.9, np.nan, 0.8], [1, 1, np.nan, 1, np.nan]):
        with pytest.raises(DataError, match="M has no value for any pair of one group"):
            choose_threshold(pairs(), scores(values))


def test_a_threshold_is_never_chosen_on_what_is_tested():
    """Neither the same reference by its id nor by its text."""
    tested = pairs()
    with pytest.raises(DataError, match="2 references of the tested pairs"):
        require_apart(tested, tested)
    renamed = [(f"z{n}", f"z{row[1]}", *row[2:]) for n, row in enumerate(ROWS)]
    with pytest.raises(DataError, match="would be too good"):
        require_apart(tested, pairs(renamed))
    other = [
        (f"z{n}", f"z{row[1]}", f"Other {row[2]}", *row[3:])
        for n, row in enumerate(ROWS)
    ]
    require_apart(tested, pairs(other))


def test_a_file_or_a_folder_of_pairs_is_read(tmp_path):
    """With or without how many changes there are."""
    file = write(tmp_path)
    assert read_marked_pairs(file).ids == read_marked_pairs(tmp_path).ids
    found = read_marked_pairs(write(tmp_path, [row[:-1] for row in ROWS], HEADER[:-1]))
    assert found.numbers.tolist() == [1] * 5
    assert found.kinds_of(significant=False) == ("order", "style")


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        (ROWS, ("id", *HEADER[2:], "x"), "no column reference_id"),
        ([*ROWS, ("a1", *ROWS[3][1:])], HEADER, "'a1' appears twice"),
        (ROWS[:2], HEADER, "all of its pairs are of one group"),
        ([(*ROWS[0][:5], "maybe", "1"), ROWS[2]], HEADER, "line 2: significant is"),
        ([(*ROWS[0][:6], "-1"), ROWS[2]], HEADER, "line 2: number is not a whole"),
        ([(*ROWS[0][:6], "9" * 5000), ROWS[2]], HEADER, "line 2: number is not"),
        ([ROWS[0][:-1], ROWS[2]], HEADER, "line 2: 6 columns"),
        ([("", *ROWS[0][1:]), ROWS[2]], HEADER, "a row has no id"),
        ([("a1", " ", *ROWS[0][2:]), ROWS[2]], HEADER, "or no reference_id"),
        ([ROWS[2], ROWS[4]], HEADER, "all of its pairs are of one group"),
        ((), HEADER[3:5], "line 1: no column id, reference_id, reference, significant"),
    ],
)
def test_a_file_that_says_too_little_is_refused(tmp_path, rows, header, message):
    """By line, without a word of a report."""
    with pytest.raises(DataError, match=message) as refused:
        read_marked_pairs(write(tmp_path, rows, header))
    assert "effusion" not in str(refused.value)


def test_a_mark_is_one_of_these_words(tmp_path):
    """In any case, with spaces; names are read without them, texts as they are."""
    words = ("Yes", " true ", "1", "SIGNIFICANT", "no", "False", "0", " insignificant")
    rows = [
        (f" p{place} ", f" r{place}", " x ", "y ", " k ", word, "")
        for place, word in enumerate(words)
    ]
    found = read_marked_pairs(write(tmp_path, rows, name="mine.csv"))
    assert found.significant.tolist() == [True] * 4 + [False] * 4
    assert (found.ids[0], found.reference_ids[0], found.kinds[0]) == ("p0", "r0", "k")
    assert (found.references[0], found.candidates[0]) == (" x ", "y ")
    assert (found.source, found.has_severities) == ("mine.csv", False)


def test_no_file_is_told_what_makes_one(tmp_path):
    """The command, or the columns."""
    with pytest.raises(DataError, match="ranloop inject"):
        read_marked_pairs(tmp_path)


def test_scores_of_ones_own_are_read_by_id(tmp_path):
    """A pair that the file lacks has no score."""
    path = table(tmp_path / "own.csv", ("id", "x", "y"), [("a1", 1, ""), ("b2", 0, 2)])
    x, y = read_pair_scores(path, pairs(), ["y"])
    assert x.values[0] == 1 and np.isnan(x.values[1]) and not x.lower
    assert y.lower and np.isnan(y.values[0])
    np.testing.assert_array_equal(x.values, [1, np.nan, np.nan, np.nan, 0])
    assert (x.name, x.title, x.signature) == ("x", "x", "x|from:own.csv")
    assert (y.signature, y.flags, y.decision) == ("y|from:own.csv", None, "")
    for header, rows, message in (
        (("id",), [("a1",)], "a column id and one for each metric"),
        (("id", "x"), [("zz", 1)], "line 2: the id is none of"),
        (("id", "x"), [("a1", "high")], "line 2: a score is no number"),
        (("x", "y"), [("a1", 1)], "a column id and one for each metric"),
        (("id", "x"), [("b1", 1), ("a1", "-inf")], "line 3: a score is no number"),
    ):
        with pytest.raises(DataError, match=message):
            read_pair_scores(table(path, header, rows), pairs())
    for header, rows, message in (
        (("id", "x"), [("a1", 1), ("a1", 2)], "line 3: its id appears twice"),
        (("id", "x", "x"), [("a1", 1, 2)], "a column appears twice"),
        (("id", "x"), [("a1",)], "line 2: 1 columns where the header has 2"),
    ):
        with pytest.raises(DataError, match=message):
            read_pair_scores(table(path, header, rows), pairs())


def test_columns_of_ones_own_are_held_beside_metrics(workspace, tmp_path):
    """From several files; lower where it is said; with a threshold of one's own."""
    write(tmp_path)
    one = table(tmp_path / "one.csv", ("id", "x"), [("a1", 1), ("b2", 0)])
    two = table(tmp_path / "two.csv", ("id", "y"), [("a1", 1), ("b2", 3)])
    files = ("-s", one, "-s", two, "--resamples", 20)
    done = run(workspace, tmp_path, *files, "--lower", "x", "--threshold", "y=2")
    assert done.exit_code == 0, done.output
    assert "flagged below 2, as named" in done.output
    unknown = run(workspace, tmp_path, *files, "--lower", "z")
    assert "--scores have no column 'z'" in str(unknown.exception)
    other = tmp_path / "other"
    other.mkdir()
    rows = [
        (f"z{n}", f"z{row[1]}", f"Cough. {row[2]}", *row[3:])
        for n, row in enumerate(ROWS)
    ]
    write(other, rows)
    chosen = run(workspace, tmp_path, *files, "--choose-on", other)
    assert "'x' comes from a file of scores" in str(chosen.exception)


def test_rounding_is_no_rise():
    """The mean of three equal scores may differ from one of them in the last digit."""
    rows = [ROWS[0], *((f"c{n}", *ROWS[1][1:]) for n in range(3)), *ROWS[2:]]
    found = measure_discrimination(
        pairs(rows), scores([0.1, 0.1, 0.1, 0.1, 0.5, 0.1, 0.5]), resamples=5
    )
    assert (found.steps.violated, found.steps.steps) == (0, 1)


def test_a_threshold_that_parts_nothing_says_so():
    """Instead of infinity."""
    one = scores([0.5] * 5)
    said = one.flagged_below(float("inf"), "chosen on other pairs")
    assert said.decision == (
        "every pair is flagged, chosen on other pairs: no threshold parts them"
    )
    assert said.flags.tolist() == [1] * 5
    low = scores([0.5] * 5, lower=True).flagged_below(float("-inf"), "x")
    assert low.decision.startswith("every pair is flagged, x")
    assert low.flags.tolist() == [1] * 5


def test_the_figure_says_what_it_shows():
    """D against R, with limits; and that there is nothing to show."""
    flagged = measure_discrimination(
        pairs(), scores([0.2, 0.3, 0.9, 0.5, 0.5], [1, 0, 0, 1, 1]), resamples=10
    )
    drawn = discrimination_svg([flagged])
    assert "1 M: D 0.667, R 0.500" in drawn
    bare = measure_discrimination(pairs(), scores([1, 2, 3, 4, 5]), resamples=10)
    assert "No metric makes decisions" in discrimination_svg([bare])
    assert kind_rows([]) == []


def run(workspace, *arguments):
    """Run the verb in a workspace."""
    return call(workspace, "dr", *arguments)


def test_the_command_holds_judges_and_metrics_against_pairs(workspace, tmp_path):
    """With a threshold, documents, and no word of a report in any of them."""
    write(tmp_path)
    page, figure = tmp_path / "o.md", tmp_path / "o.svg"
    done = run(
        workspace,
        *(tmp_path, "-m", "green", "-m", "rouge_l", "--threshold", "rouge_l=0.6"),
        *("--md", page, "--svg", figure, "--resamples", 50),
    )
    assert done.exit_code == 0, done.output
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert said[0] == "3 significant and 2 harmless pairs of 2 references"
    assert [one for one in said[2:12] if "GREEN" in one or "ROUGE" in one] == [
        "GREEN of green@v1 1.000 1.000 1.000 [0.292, 1.000] 1.000 [0.158, 1.000] 0.000 "
        "1.000 0 of 1",
        "ROUGE-L 0.833 [0.500, 1.000] 0.750 [0.500, 1.000] 1.000 [0.292, 1.000] 0.000 "
        "[0.000, 0.842] +1.000 0.500 0 of 1",
        "kind group GREEN of green@v1 own score of green@v1 ROUGE-L",
    ]
    for row in (
        "location significant 1.000, D 1.000 1.000 0.750, D 1.000",
        "omission significant 1.000, D 1.000 1.000 1.000, D 1.000",
        "order harmless R 1.000 - R 0.000",
        "style harmless R 1.000 - R 0.000",
        "note: GREEN of green@v1: flagged where it counts a significant error.",
        "note: ROUGE-L: flagged below 0.6, as named.",
    ):
        assert row in said
    assert "| green@v1 | 1.000 | 1.000 |" in page.read_text()
    for text in (page.read_text(), figure.read_text(), done.output):
        assert "ffusion" not in text and "mass" not in text
    data = json.loads(
        run(workspace, tmp_path, "-m", "green", "--resamples", 20, "--json").stdout
    )
    green, own = data["metrics"]
    assert green["D"]["value"] == 1.0 and green["R"]["value"] == 1.0
    assert own["D"] is None and own["auc"]["value"] == 1.0
    assert "rules" in green["signature"]


def test_thresholds_may_come_from_other_pairs(workspace, tmp_path):
    """Never from those that are tested."""
    write(tmp_path)
    folder = tmp_path / "other"
    folder.mkdir()
    rows = [
        (f"z{n}", f"z{row[1]}", f"Cough. {row[2]}", f"Cough. {row[3]}", *row[4:])
        for n, row in enumerate(ROWS)
    ]
    write(folder, rows)
    more = ("-m", "rouge_l", "--resamples", 20, "--choose-on")
    done = run(workspace, tmp_path, *more, folder)
    assert done.exit_code == 0, done.output
    assert "chosen on other pairs" in done.output
    refused = run(workspace, tmp_path, *more, tmp_path)
    assert "are among those that thresholds" in str(refused.exception)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "name a metric or a judge"),
        (("-m", "nothing"), "no metric, family or judge is called 'nothing'"),
        (("-m", "rouge_l", "--threshold", "rouge_l"), "write METRIC=VALUE"),
        (("-m", "rouge_l", "--threshold", "rouge_l=nan"), "write METRIC=VALUE"),
        (("-m", "rouge_l", "--threshold", "bleu=1"), "is not measured here"),
    ],
)
def test_what_cannot_be_measured_is_refused(workspace, tmp_path, more, message):
    """With what can be."""
    write(tmp_path)
    refused = run(workspace, tmp_path, *more)
    assert refused.exit_code != 0
    assert message in refused.output + str(refused.exception)


@pytest.mark.parametrize("lower", [False, True])
def test_a_score_at_the_threshold_is_not_flagged(lower):
    """Only a worse one is; without a score there is no flag."""
    values = [0.4, 0.5, 0.6, np.nan, 0.5]
    said = scores(values, lower=lower).flagged_below(0.5, "as named")
    worse = [0, 0, 1] if lower else [1, 0, 0]
    np.testing.assert_array_equal(said.flags, [*worse, np.nan, 0])
    assert said.decision == f"flagged {'above' if lower else 'below'} 0.5, as named"


@pytest.mark.parametrize(
    ("wrong", "right", "limit"),
    [
        ([1, 2], [3, 4], 2.5),
        # 1.5, 3.5 and 5.5 part them equally well.
        ([1, 3, 5], [2, 4, 6], 3.5),
        ([1, 1, 9], [2], 1.5),
        # Halfway between the two scores beside it.
        ([0], [10], 5),
    ],
)
@pytest.mark.parametrize("lower", [False, True])
def test_a_threshold_is_halfway_between_the_scores_that_it_parts(
    wrong, right, limit, lower
):
    """Of several that part the pairs equally well it is the middle one."""
    rows = [
        (f"p{place}", "r", "x", "y", "kind", "yes" if place < len(wrong) else "no", "1")
        for place in range(len(wrong) + len(right))
    ]
    sign = -1 if lower else 1
    said = scores([sign * one for one in (*wrong, *right)], lower=lower)
    assert choose_threshold(pairs(rows), said) == sign * limit


def test_steps_skip_what_is_not_there_and_leave_harmless_pairs_out():
    """From one error to three is one step; a kind and a reference stand alone."""
    rows = (
        ("a1", "a", "x", "y1", "location", "yes", "1"),
        ("a3", "a", "x", "y2", "location", "yes", "3"),
        # Another kind, another reference, and two rewordings.
        ("b2", "a", "x", "y3", "omission", "yes", "2"),
        ("c2", "b", "z", "y4", "location", "yes", "2"),
        ("d1", "a", "x", "y5", "order", "no", "1"),
        ("d2", "a", "x", "y6", "order", "no", "2"),
    )
    for last, violated in ((0.4, 0), (0.3, 0), (0.5, 1)):
        found = measure_discrimination(
            pairs(rows), scores([0.4, last, 0.9, 0.9, 0.1, 0.9]), resamples=2
        )
        assert (found.steps.violated, found.steps.steps) == (violated, 1)


@pytest.mark.parametrize(
    "flags", [[1, 0, np.nan, 1, np.nan], [np.nan, np.nan, 1, np.nan, 0]]
)
def test_without_a_decision_in_one_group_there_is_no_bias(flags):
    """A share of no pair is none, and no 0."""
    found = measure_discrimination(pairs(), scores([1, 1, 1, 1, 1], flags), resamples=2)
    assert (found.bias, found.overall) == (None, None)


@pytest.mark.parametrize("name", ["number", "severity"])
@pytest.mark.parametrize(
    ("cell", "count"),
    [
        ("", 1),
        (" 1 ", 1),
        ("999", 999),
        ("0", None),
        ("1000", None),
        ("1.5", None),
        ("\N{SUPERSCRIPT TWO}", None),
        ("\N{ARABIC-INDIC DIGIT THREE}", None),
    ],
)
def test_counts_of_changes_go_from_1_to_999(tmp_path, name, cell, count):
    """An empty cell is a 1; 0 changes would be a copy."""
    rows = [(*row[:6], cell if row is ROWS[0] else "1") for row in ROWS]
    file = write(tmp_path, rows, (*HEADER[:6], name))
    if count is None:
        with pytest.raises(DataError, match=f"line 2: {name} is not a whole number"):
            read_marked_pairs(file)
        return
    found = read_marked_pairs(file)
    counts = {"number": found.numbers, "severity": found.severities}
    assert counts.pop(name).tolist() == [count, 1, 1, 1, 1]
    assert [one.tolist() for one in counts.values()] == [[1] * 5]
    assert found.has_severities == (name == "severity" and count > 1)


@pytest.mark.parametrize(
    ("same", "words"),
    [
        ({0: "a1"}, None),
        ({1: "a"}, "1 reference of the tested pairs is among"),
        ({2: "Left effusion."}, "1 reference of the tested pairs is among"),
        ({1: "a", 2: "Left effusion."}, "1 reference of the tested pairs is among"),
        ({3: "Right effusion."}, None),
    ],
)
def test_either_the_id_or_the_text_of_a_reference_is_shared(same, words):
    """The id of a pair, or its candidate, makes no two references one."""
    row = ["z1", "z", "Clear.", "Clear lungs.", "order", "yes", "1"]
    for place, value in same.items():
        row[place] = value
    if words is None:
        require_apart(pairs(), pairs([tuple(row)]))
        return
    with pytest.raises(DataError, match=words):
        require_apart(pairs(), pairs([tuple(row)]))
