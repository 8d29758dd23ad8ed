"""Claims of the notes: all that is said of them, and how they name their table."""

import pytest
from pydantic import ValidationError

from loop.core.errors import DataError
from loop.published.claims import Notes, beside, read_notes
from tests.published.tables import audited, only, whole

ROWS = [
    ["Label", "Ours F1", "Theirs F1", "Ours recall"],
    ["a", "0.950", "0.900", "0.500"],
    ["b", "0.990", "0.995", "0.600"],
    ["c", "0.949", "0.949", "-"],
    ["d", "-", "0.970", "0.700"],
]


def claimed(table, **claim):
    """Return the one finding about a claim of table T."""
    notes = Notes.model_validate({"claims": [{"table": "t", **claim}]})
    return only(audited(table, notes=notes), "claim")


def test_a_count_is_told_with_what_the_column_has():
    """Two of three reach 0.95, whatever is claimed."""
    found = claimed(ROWS, kind="count", column="ours f1", at_least=0.95, count=3, of=4)
    assert whole(found) == (
        "Ours F1: 3 of 4 at or above 0.95",
        "broken",
        "2 of 3 are; the least is 0.949.",
        {"claimed": 3, "reached": 2, "of": 3, "least": 0.949},
    )
    found = claimed(ROWS, kind="count", column="Ours F1", at_least=0.99, count=1)
    assert (found.part, found.severity.value) == ("Ours F1: 1 at or above 0.99", "ok")


def test_a_count_of_a_column_without_a_number_is_of_none():
    """Nothing reached, and there is no least."""
    rows = [["Label", "A F1", "B F1"], ["a", "0.5", "-"]]
    found = claimed(rows, kind="count", column="B F1", at_least=0.95, count=0, of=0)
    assert whole(found)[1:] == (
        "ok",
        "0 of 0 are; the least is 0.",
        {"claimed": 0, "reached": 0, "of": 0, "least": None},
    )


def test_the_highest_is_told_with_every_rival():
    """Theirs is higher in one row and on average of four; ours in one of three."""
    found = claimed(ROWS, kind="highest", column="Ours F1")
    assert whole(found) == (
        "Ours F1 is the highest",
        "ok",
        "Of 4 rows: Ours F1: mean 0.9630, 2 at or above 0.95, best or tied in 2; "
        "Theirs F1: mean 0.9535, 2 at or above 0.95, best or tied in 3.",
        {
            "means": {"Ours F1": 0.963, "Theirs F1": 0.9535},
            "reached": {"Ours F1": 2, "Theirs F1": 2},
            "best_or_tied": {"Ours F1": 2, "Theirs F1": 3},
            "higher": [],
        },
    )
    found = claimed(ROWS, kind="highest", column="Theirs F1", at_least=0.9)
    assert whole(found)[:3] == (
        "Theirs F1 is the highest",
        "broken",
        "Of 4 rows: Ours F1: mean 0.9630, 3 at or above 0.9, best or tied in 2; Theirs "
        "F1: mean 0.9535, 4 at or above 0.9, best or tied in 3. Higher on average: "
        "Ours F1.",
    )


def test_an_order_is_told_with_the_whole_ranking():
    """Best first; a row without a number is in no ranking."""
    found = claimed(ROWS, kind="order", column="Theirs F1", rows=["B", "A"])
    assert whole(found) == (
        "b then a by Theirs F1",
        "broken",
        "By Theirs F1: b 0.995, d 0.97, c 0.949, a 0.9. Left out: d 0.97, c 0.949.",
        {"ranking": ["b", "d", "c", "a"], "skipped": ["d 0.97", "c 0.949"]},
    )
    found = claimed(ROWS, kind="order", column="Theirs F1", rows=["d", "c", "a"])
    assert whole(found) == (
        "d then c then a by Theirs F1",
        "ok",
        "By Theirs F1: b 0.995, d 0.97, c 0.949, a 0.9.",
        {"ranking": ["b", "d", "c", "a"], "skipped": []},
    )


@pytest.mark.parametrize("rows", [["b", "d"], ["d", "b"]])
def test_an_order_with_a_row_that_has_no_number_does_not_hold(rows):
    """There is no F1 of ours for d."""
    found = claimed(ROWS, kind="order", column="Ours F1", rows=rows)
    assert found.severity.value == "broken"
    assert found.numbers == {"ranking": ["b", "a", "c"], "skipped": []}


def test_a_gain_is_told_with_what_the_table_gives():
    """And with the column that it repeats, if it is one."""
    ends = {"row": "B", "start": "Ours recall", "to": "Ours F1"}
    assert whole(claimed(ROWS, kind="gain", gain="39.0%", **ends)) == (
        "b: Ours F1 - Ours recall is 39.0%",
        "ok",
        "The table gives 0.39 (0.990 - 0.600).",
        {"claimed": pytest.approx(0.39), "difference": 0.39, "equal_to": []},
    )
    assert whole(claimed(ROWS, kind="gain", gain="60.0%", **ends)) == (
        "b: Ours F1 - Ours recall is 60.0%",
        "broken",
        "The table gives 0.39 (0.990 - 0.600). 60.0% is Ours recall itself.",
        {
            "claimed": pytest.approx(0.6),
            "difference": 0.39,
            "equal_to": ["Ours recall"],
        },
    )
    assert whole(claimed(ROWS, kind="gain", gain="0.601", **ends))[2:] == (
        "The table gives 0.39 (0.990 - 0.600).",
        {"claimed": 0.601, "difference": 0.39, "equal_to": []},
    )


@pytest.mark.parametrize(
    ("row", "gain"), [("c", "0.100"), ("d", "0.100"), ("b", "most")]
)
def test_a_gain_without_one_of_its_numbers_is_not_decided(row, gain):
    """The start, the end, or the gain itself."""
    ends = {"row": row, "start": "Ours recall", "to": "Ours F1"}
    assert whole(claimed(ROWS, kind="gain", gain=gain, **ends))[1:] == (
        "note",
        "A number is missing.",
        {},
    )


def test_a_claim_of_significance_takes_the_place_of_the_note_about_it():
    """It is checked once, at the level of the claim."""
    rows = [["Label", "Accuracy pre", "Accuracy post"], ["A", "0.50", "0.55"]]
    found = only(audited(rows, n=100), "attainable significance")
    assert (found.severity.value, found.numbers["alpha"]) == ("note", 0.05)
    claim = {"kind": "significant", "table": "t", "alpha": 0.1}
    notes = Notes.model_validate({"claims": [claim]})
    found = only(audited(rows, n=100, notes=notes), "attainable significance")
    # Five net cases give 0.0625.
    assert (found.severity.value, found.numbers["alpha"]) == ("note", 0.1)
    assert found.numbers["cannot"] == []
    notes = Notes.model_validate({"claims": [{**claim, "alpha": 0.05}]})
    found = only(audited(rows, n=100, notes=notes), "attainable significance")
    assert (found.severity.value, found.numbers["cannot"]) == ("broken", ["A"])


def test_every_claim_is_checked_in_its_order():
    """A claim of significance ends nothing."""
    claims = [
        {"kind": "significant", "table": "T"},
        {
            "kind": "count",
            "table": "T",
            "column": "Ours F1",
            "at_least": 0.9,
            "count": 3,
        },
        {"kind": "highest", "table": "T", "column": "Ours F1"},
    ]
    notes = Notes.model_validate({"claims": claims})
    assert [one.part for one in audited(ROWS, notes=notes).about("claim")] == [
        "Ours F1: 3 at or above 0.9",
        "Ours F1 is the highest",
    ]


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (
            {"kind": "highest", "table": "U", "column": "Ours F1"},
            "notes: there is no table 'U'. There are: 'T'. Correct the claim.",
        ),
        (
            {"kind": "highest", "table": "T", "column": "F2"},
            "notes: there is no T: column 'F2'. There are: 'Ours F1', 'Theirs F1', "
            "'Ours recall'. Correct the claim.",
        ),
        (
            {"kind": "order", "table": "T", "column": "Ours F1", "rows": ["a", "z"]},
            "notes: there is no T: row 'z'. There are: 'a', 'b', 'c', 'd'. Correct the "
            "claim.",
        ),
    ],
)
def test_a_claim_about_what_is_not_there_is_refused_with_what_is(claim, message):
    """A misspelt name must not pass as a claim that was checked."""
    notes = Notes.model_validate({"claims": [claim]})
    with pytest.raises(DataError) as caught:
        audited(ROWS, notes=notes)
    assert str(caught.value) == message


def test_at_most_forty_names_are_told():
    """A table may have a thousand rows."""
    rows = [["Label", "F1"], *([f"L{k}", "0.5"] for k in range(41))]
    claim = {"kind": "order", "column": "F1", "rows": ["a", "L0"]}
    with pytest.raises(DataError) as caught:
        claimed(rows, **claim)
    assert str(caught.value).endswith("'L38', 'L39'. Correct the claim.")


def test_notes_are_found_by_the_name_of_their_table_in_any_case(tmp_path):
    """A table without notes has none of its facts."""
    path = beside(tmp_path / "article.csv")
    assert path == tmp_path / "article.notes.yaml"
    path.write_text("tables: {Table 2: {n: 300, comparable: [A]}}", "utf-8")
    notes = read_notes(path)
    assert notes.of("TABLE 2").n == 300
    assert notes.of("table 2").comparable == ("A",)
    assert (notes.of("Table 3").n, notes.of("Table 3").shared_reference) == (None, True)


COUNT = {"kind": "count", "table": "T", "column": "c", "at_least": 0.9, "count": 1}


@pytest.mark.parametrize(
    ("taken", "refused"),
    [
        (
            [{"tables": {"T": {"n": n}}} for n in (1, 1_000_000_000)],
            [{"tables": {"T": {"n": n}}} for n in (0, 1_000_000_001)],
        ),
        (
            [{"tables": {"T": {"measure": "kappa"}}}],
            [{"tables": {"T": {"measure": "npv"}}}],
        ),
        (
            [{"tables": {"T": {"comparable": ["a" * 500]}}}],
            [{"tables": {"T": {"comparable": [one]}}} for one in ("", "a" * 501)],
        ),
        (
            [{"claims": [{"kind": "significant", "table": "T", "alpha": 0.01}]}],
            [
                {"claims": [{"kind": "significant", "table": "T", "alpha": alpha}]}
                for alpha in (0, 1)
            ],
        ),
        (
            [{"claims": [{"kind": "order", "table": "T", "column": "c",
                          "rows": ["a", "b"]}]}],
            [{"claims": [{"kind": "order", "table": "T", "column": "c",
                          "rows": ["a"]}]}],
        ),
        (
            [{"claims": [COUNT]}, {"claims": [{**COUNT, "of": 3}]}, {}],
            [
                {"claims": [{**COUNT, "what": 1}]},
                {"claims": [{**COUNT, "kind": "guess"}]},
                {"tables": {"T": {"cases": 3}}},
                {"notes": 1},
            ],
        ),
    ],
)  # fmt: skip
def test_notes_are_taken_or_refused_at_their_limits(taken, refused):
    """A field that notes do not have is a slip of the hand."""
    for one in taken:
        Notes.model_validate(one)
    for one in refused:
        with pytest.raises(ValidationError):
            Notes.model_validate(one)


def test_claims_have_the_usual_limits_where_they_state_none():
    """0.95 for an accuracy, 0.05 for a p-value."""
    highest, level = Notes.model_validate(
        {
            "claims": [
                {"kind": "highest", "table": "T", "column": "c"},
                {"kind": "significant", "table": "T"},
            ]
        }
    ).claims
    assert (highest.at_least, level.alpha) == (0.95, 0.05)
    with pytest.raises(ValidationError):
        highest.at_least = 0.9
