"""What headers, rows and cells of a printed table mean."""

import pytest

from loop.published.printed import Number, read_cell
from loop.published.result_table import (
    TableColumn,
    counts_of,
    group_name,
    is_system_header,
    measure_in,
    read_columns,
    stated_n,
)
from tests.published.tables import audited, only, table_of


@pytest.mark.parametrize(
    ("header", "meaning"),
    [
        ("Accuracy (%)", {"measure": "accuracy", "percent": True}),
        ("Acc.", {"measure": "accuracy"}),
        ("Accuracy 100%", {"measure": "accuracy", "system": "100%"}),
        ("95% CI", {"measure": "", "part": "limits"}),
        # A value with its interval, and an interval alone.
        ("Accuracy (95% CI)", {"measure": "accuracy"}),
        ("95% CI of accuracy", {"measure": "accuracy", "part": "limits"}),
        ("CI lower", {"measure": "", "part": "low"}),
        ("Upper limit CI", {"measure": "", "part": "high"}),
        ("lower upper", {"measure": "", "part": "low"}),
        ("Sensitivity post-optimisation", {"measure": "recall", "time": "after"}),
        ("Baseline F1-score", {"measure": "f1", "time": "before"}),
        ("Recall pre post", {"measure": "recall", "time": "before", "system": "post"}),
        ("macro F1", {"measure": "f1", "average": "macro"}),
        ("RaN score", {"measure": "f1", "average": "macro"}),
        ("micro macro F1", {"measure": "f1", "average": "micro", "system": "macro"}),
        ("Weighted recall", {"measure": "recall", "average": "weighted"}),
        ("No. of cases", {"measure": "n"}),
        ("Number of positives", {"measure": "positives"}),
        ("Positive predictive value", {"measure": "precision"}),
        ("Negative predictive value", {"measure": "npv"}),
        ("True positives", {"measure": "tp"}),
        ("False positive", {"measure": "fp"}),
        ("False negatives", {"measure": "fn"}),
        ("True negative", {"measure": "tn"}),
        # A rate is no count, though its name begins with one.
        ("True positive rate", {"measure": "recall"}),
        ("TPR", {"measure": "recall"}),
        ("True negative rate", {"measure": "specificity"}),
        ("TNR", {"measure": "specificity"}),
        ("False positive rate", {"measure": "other"}),
        ("FNR", {"measure": "other"}),
        ("\N{GREEK CAPITAL LETTER DELTA}F1", {"measure": "f1", "delta": True}),
        ("Delta to GPT-4", {"measure": "", "system": "GPT-4", "delta": True}),
        ("Mean F1", {"measure": "f1", "mean": True}),
        # A mean of one system is its value.
        ("Mean of GPT", {"measure": "", "system": "GPT"}),
        ("p-value", {"measure": "other"}),
        ("GPT-4 accuracy (n = 1,200)", {
            "measure": "accuracy", "system": "GPT-4", "n": 1200,
        }),
        ("F1 (n = 0)", {"measure": "f1"}),
        ("precision recall", {"measure": "precision", "system": "recall"}),
    ],
)  # fmt: skip
def test_a_header_is_read_word_by_word(header, meaning):
    """The first measure, time and average count; what is left names the system."""
    (column,) = read_columns(["Label", header], 1)
    assert column == TableColumn(index=1, header=header, **meaning)


def test_a_rate_is_not_held_against_counts():
    """0.9 of 10 positives are no one true positive."""
    rows = [["Label", "n", "Precision", "True positive rate", "False positive rate"]]
    rows += [["a", "20", "0.900", "0.900", "0.100"]]
    found = only(audited(rows), "confusion tables")
    assert found.numbers["solutions"]["a"]["tp_fp_fn"] == [[9, 1, 1]]


def test_an_interval_belongs_to_the_value_to_its_left():
    """With all that the value's header says, unless it names a system or a time."""
    header = ["Label", "95% CI", "A macro F1 post (n = 9)", "95% CI (%)", "B lower"]
    columns = read_columns([*header, "upper (n = 8)", "Delta F1", "Mean F1", "CI"], 1)
    value = {"measure": "f1", "system": "A", "time": "after", "average": "macro"}
    assert columns[0] == TableColumn(
        index=1, header="95% CI", measure="", part="limits"
    )
    assert columns[2] == TableColumn(
        index=3, header="95% CI (%)", part="limits", percent=True, n=9, **value
    )
    assert columns[3] == TableColumn(
        index=4, header="B lower", measure="f1", part="low", system="B", n=9
    )
    assert columns[4] == TableColumn(
        index=5, header="upper (n = 8)", part="high", n=8, **value
    )
    # Differences and means are no values.
    assert columns[7] == TableColumn(index=8, header="CI", part="limits", n=9, **value)


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("Accuracy (n = 300)", 300),
        ("N=1,234,567 cases", 1_234_567),
        ("n = 999999999", 999_999_999),
        ("n = 0", None),
        ("n of 300", None),
        ("mean = 300", None),
        ("", None),
    ],
)
def test_a_number_of_cases_is_stated_as_n(text, n):
    """Nought cases are none that are stated."""
    assert stated_n(text) == n


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("Table 2. Accuracy of five models", "accuracy"),
        ("Accuracy, and accuracies by label", "accuracy"),
        ("Accuracy and recall", ""),
        ("AUC of five models", ""),
        ("TP of five models", ""),
        ("", ""),
    ],
)
def test_a_caption_names_one_measure_or_none(text, measure):
    """Of two it is not clear which, and a count is no measure of a column."""
    assert measure_in(text) == measure


@pytest.mark.parametrize("n", [7, 30, 300])
def test_counts_of_a_share_are_those_that_print_so(n):
    """From 0 to n, against trying each."""
    for value in (0.0, 0.33, 0.5, 0.98, 1.0):
        number = Number(value, 0.01)
        counted = [k for k in range(n + 1) if number.low <= k / n <= number.high]
        assert list(counts_of(number, n)) == counted


@pytest.mark.parametrize(
    ("cells", "percent"),
    [
        (["98.7", "100"], True),
        (["98.7 (90.0-99.9)", "-"], True),
        (["0.987", "1.5"], False),
        (["0.987", "1.6"], True),
        (["98.7", "100.1"], False),
        (["-", "-"], False),
    ],
)
def test_rates_from_above_one_to_a_hundred_are_percentages(cells, percent):
    """In every cell of the column; one beyond a hundred, and it is none."""
    rows = [
        ["Label", "F1", "AUC"],
        *([f"L{k}", one, one] for k, one in enumerate(cells)),
    ]
    table = table_of(rows)
    f1, other = table.columns
    assert (f1.percent, other.percent) == (percent, False)
    for row, text in zip(table.rows, cells, strict=True):
        plain, scaled = read_cell(text), row.cells[1]
        assert row.cells[2] == plain
        if plain.value is None:
            assert scaled == plain
            continue
        factor = 0.01 if percent else 1
        assert scaled.value == pytest.approx(plain.value.scaled(factor))
        if plain.limits:
            expected = [one.scaled(factor) for one in plain.limits]
            assert list(scaled.limits) == [pytest.approx(one) for one in expected]


def test_a_cell_with_a_percent_sign_is_scaled_once():
    """It is a share already, and so are kappas that are printed as shares."""
    table = table_of(
        [["Label", "F1 (%)", "Kappa"], ["a", "98.7%", "90"], ["b", "50", "-20"]]
    )
    values = [[cell.value.value for cell in row.cells[1:]] for row in table.rows]
    assert values == [pytest.approx([0.987, 0.9]), pytest.approx([0.5, -0.2])]


@pytest.mark.parametrize(
    ("cells", "measure"),
    [
        (["0.9 (0.8-1.0)", "0.5"], "share"),
        (["0.9", "0.5"], ""),
        (["90 (80-100)", "50"], ""),
    ],
)
def test_a_column_of_intervals_without_a_name_is_one_of_shares(cells, measure):
    """Up to 1.5; numbers alone may be anything."""
    rows = [["Label", "X"], *([f"L{k}", one] for k, one in enumerate(cells))]
    assert table_of(rows).columns[0].measure == measure
    assert table_of(rows, "Recall").columns[0].measure == "recall"
    assert table_of(rows, "Recall", measure="f1").columns[0].measure == "f1"


def test_only_columns_of_numbers_without_a_name_take_that_of_the_caption():
    """Not words, nor differences or means of the others."""
    header = ["Label", "X", "Words", "Delta", "Mean", "AUC"]
    table = table_of([header, ["a", "0.5", "good", "0.1", "0.3", "0.7"]], "Recall")
    assert [one.measure for one in table.columns] == ["recall", "", "", "", "other"]


@pytest.mark.parametrize(
    ("caption", "header", "level"),
    [
        ("Accuracy (90% CI)", "F1", 0.9),
        ("Accuracy", "F1 (99 % confidence interval)", 0.99),
        ("Accuracy, 99.9%CI", "F1", 0.999),
        ("50% CI", "F1", 0.5),
        ("49% CI", "F1", 0.95),
        ("Accuracy of 90%", "F1", 0.95),
    ],
)
def test_a_caption_or_header_states_the_level_of_intervals(caption, header, level):
    """From one half on; else it is 95 %."""
    table = table_of([["Label", header], ["a", "0.5"]], caption)
    assert table.level == pytest.approx(level)


@pytest.mark.parametrize(
    ("header", "row", "options", "n"),
    [
        (["Label", "A F1"], ["a", "0.5"], {}, None),
        (["Label", "A F1"], ["a", "0.5"], {"n": 7}, 7),
        (["Label", "A F1 (n = 8)"], ["a", "0.5"], {"n": 7}, 8),
        # A column of cases stands before a header and the table, its own before all.
        (["Label", "A F1 (n = 8)", "n"], ["a", "0.5", "9"], {"n": 7}, 9),
        (["Label", "A F1 (n = 8)", "n", "A n"], ["a", "0.5", "9", "10"], {}, 10),
        (["Label", "A F1 (n = 8)", "B n"], ["a", "0.5", "9"], {}, 8),
        (["Label", "A F1 (n = 8)", "n"], ["a", "0.5", "-"], {}, 8),
        (["Label", "A F1 (n = 8)", "n"], ["a", "0.5", "0"], {}, 8),
        (["Label", "A F1 (n = 8)", "n"], ["a", "0.5", "1"], {}, 1),
        (["Label", "A F1 (n = 8)", "n"], ["a", "0.5", "1000000000"], {}, 8),
        (["Label", "A F1", "n"], ["a", "0.5", "999999999"], {}, 999_999_999),
        (["Label", "A F1", "Mean n"], ["a", "0.5", "9"], {"n": 7}, 7),
    ],
)
def test_the_cases_of_a_cell_are_those_stated_nearest_to_it(header, row, options, n):
    """By a column of the same results, one for all, its header, or the table."""
    table = table_of([header, row], **options)
    assert table.cases(table.rows[0], table.columns[0]) == n


def test_columns_of_one_system_time_and_average_are_one_set_of_results():
    """The first of each measure; limits, differences and unnamed ones are left out."""
    header = ["Label", "A F1", "a recall", "A F1 again", "A F1 post", "A macro F1"]
    header += ["X", "Delta A F1", "A AUC", "A lower"]
    table = table_of([header, ["a", *["0.5"] * 9]])
    found = {
        group: {name: column.index for name, column in columns.items()}
        for group, columns in table.groups().items()
    }
    assert found == {
        ("a", "", ""): {"f1": 1, "recall": 2},
        ("a again", "", ""): {"f1": 3},
        ("a", "after", ""): {"f1": 4},
        ("a", "", "macro"): {"f1": 5},
    }
    names = [group_name(one, columns) for one, columns in table.groups().items()]
    assert names == ["A", "A again", "A after", "macro A"]


@pytest.mark.parametrize(
    ("rows", "turned"),
    [
        ([["Recall", "0.5"], ["F1", "0.6"]], True),
        ([["Recall", "0.5"], ["F1", "0.6"], ["x", "1"], ["y", "2"]], True),
        ([["Recall", "0.5"], ["F1", "0.6"], ["x", "1"], ["y", "2"], ["z", "3"]], False),
        ([["Recall", "0.5"], ["x", "1"]], False),
    ],
)
def test_a_table_is_turned_where_half_of_its_rows_are_measures(rows, turned):
    """Two of them at least; what stands over their names is none of them."""
    for corner in ("Label", "F1"):
        table = table_of([[corner, "Model A"], *rows])
        names = ["Model A"] if turned else [row[0] for row in rows]
        assert [row.name for row in table.rows] == names


@pytest.mark.parametrize(
    ("rows", "keys"),
    [
        ([["a", "x", "0.5"], ["b", "y", "0.6"]], 2),
        # Half of the filled cells are numbers: no names.
        ([["a", "x", "0.5"], ["b", "1", "0.6"]], 1),
        ([["a", "x", "0.5"], ["b", "", "0.6"], ["c", "1", "1"]], 1),
        ([["a", "x", "0.5"], ["b", "y", "0.6"], ["c", "1", "1"]], 2),
        # The first column names its rows even if its names are numbers.
        ([["1", "0.5", "0.5"], ["2", "0.6", "0.5"]], 1),
        ([["a", "x", "p"], ["b", "y", "q"]], 1),
    ],
)
def test_leading_columns_of_words_are_names(rows, keys):
    """At least the first; a table of words alone has values, too."""
    table = table_of([["K", "L", "M"], *rows])
    assert table.key_headers == ("K", "L", "M")[:keys]
    names = [" / ".join(cell for cell in row[:keys] if cell) for row in rows]
    assert [row.name for row in table.rows] == names
    assert [column.index for column in table.columns] == list(range(keys, 3))
    assert [row.keys for row in table.rows] == [tuple(row[:keys]) for row in rows]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a", ""),
        ("Average", "mean"),
        ("The macro average", "mean"),
        ("Mean over all labels", "mean"),
        ("Mean of the first", "pooled"),
        ("Micro average", "pooled"),
        ("Total", "pooled"),
        ("Totally", ""),
        ("All findings", "pooled"),
        ("Allergy", ""),
        ("SD", "pooled"),
    ],
)
def test_a_summary_is_told_from_a_result_by_its_name(name, kind):
    """Only a plain mean of all rows can be checked as one."""
    table = table_of([["Label", "F1"], ["b", "0.5"], [name, "0.5"]])
    assert [row.kind for row in table.rows] == ["", kind]
    assert len(table.results) == 1 + (not kind)


@pytest.mark.parametrize(
    ("header", "system"),
    [("Model", True), ("LLMs", True), ("By reader", True), ("Label", False),
     ("Remodelled", False)],
)  # fmt: skip
def test_rows_are_systems_where_a_header_of_names_says_so(header, system):
    """Any of them."""
    assert is_system_header(header) == system
    table = table_of([["Label", header, "F1"], ["a", "x", "0.5"]])
    assert table.rows_are_systems == system
