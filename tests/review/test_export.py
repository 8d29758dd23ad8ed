"""What is written of kept verdicts is read back as the same verdicts."""

import csv
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.core.records import Clarification, Exemplar, Value
from loop.review.export import verdicts_file, verdicts_table
from loop.review.files import read_verdicts
from loop.review.kept import KeptVerdict, VerdictState
from loop.review.submit import VerdictContext
from loop.review.verdict import Context, Edits, Judgement, Severity, Verdict
from tests.review.scenes import MADE_ON, verdict

NASTY = [
    "=1+1", "'=1", "''=1", "@x", "-2", "a|b", "a\\|b", "x\\", "|", "no", "true", "007",
    "1:30", "~", "a,b;c", '"q"', "# x", "- x", "肺|水", "null", "{}", "'", "[", "1e5",
]  # fmt: skip


def spoken(characters):
    """Return a strategy of verdicts whose texts are of these characters."""
    words = st.text(characters, max_size=12) | st.sampled_from(NASTY)
    words = words.map(str.strip).filter(bool)
    phrases = st.lists(words, max_size=3).map(tuple)
    values = st.sampled_from(Value)
    edits = st.builds(
        Edits,
        terms=phrases,
        exclusions=phrases,
        clarifications=st.lists(
            st.builds(
                Clarification, phrase=words, value=values, note=words | st.just("")
            ),
            max_size=3,
        ).map(tuple),
        exemplars=st.lists(
            st.builds(Exemplar, text=words, value=values, evidence=words, why=words),
            max_size=3,
        ).map(tuple),
        implies=phrases,
        remove_terms=phrases,
        remove_clarifications=phrases,
        remove_exemplars=phrases,
        remove_implies=phrases,
    )
    return st.builds(
        Verdict,
        label=st.sampled_from(["edema", "fracture"]),
        judgement=st.sampled_from(
            [Judgement.MODEL_WRONG, Judgement.GUIDELINE_AMBIGUOUS]
        ),
        severity=st.none() | st.sampled_from(Severity),
        context=st.none() | st.sampled_from(Context),
        case_ids=st.lists(words, min_size=1, max_size=3).map(tuple),
        edits=edits,
        correct_value=st.none() | values,
        reviewer=words,
        comment=words | st.just(""),
        anchor=st.booleans(),
    )


ANYTHING = st.characters(codec="utf-8")
SHOWN = st.characters(codec="utf-8", exclude_categories=["Cc", "Cf"])
"""Without control characters, which a table spells out."""


def keep(*verdicts, made_on=MADE_ON):
    """Return verdicts as the store would give them."""
    return [
        KeptVerdict(
            id=one.id,
            verdict=one,
            circumstances=made_on,
            created="2026-01-05T09:00:00.000000Z",
            state=VerdictState.OPEN,
        )
        for one in verdicts
    ]


def back(tmp_path, text, name):
    """Write `text` and return the file read back."""
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8"))
    return read_verdicts(path, reviewer="nobody")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verdicts=st.lists(spoken(ANYTHING), min_size=1, max_size=3))
def test_yaml_reads_back_equal(tmp_path, verdicts):
    """Whatever was said, in any script, with any punctuation."""
    file = back(tmp_path, verdicts_file(keep(*verdicts), notes=True), "v.yaml")
    assert list(file.verdicts) == verdicts
    assert [one.id for one in file.verdicts] == [one.id for one in verdicts]


@settings(
    max_examples=25,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
    ],
)
@given(verdicts=st.lists(spoken(SHOWN), min_size=1, max_size=3))
def test_a_table_reads_back_equal(tmp_path, verdicts):
    """Several clarifications, bars and formulas included."""
    file = back(tmp_path, verdicts_table(keep(*verdicts), notes=True), "v.csv")
    assert list(file.verdicts) == verdicts


@pytest.mark.parametrize(
    ("write", "name"), [(verdicts_file, "v.yaml"), (verdicts_table, "v.csv")]
)
def test_notes_are_left_out_unless_asked_for(tmp_path, write, name):
    """A note is for the team; only the reason of a verdict on no case stays."""
    on_a_case = verdict(comment="ask her tomorrow")
    on_no_case = verdict(case_ids=(), comment="the guide forgets this")
    text = write(keep(on_a_case, on_no_case))
    assert "tomorrow" not in text
    first, second = back(tmp_path, text, name).verdicts
    assert (first.comment, second) == ("", on_no_case)


@pytest.mark.parametrize(
    ("write", "name"), [(verdicts_file, "v.yaml"), (verdicts_table, "v.csv")]
)
def test_what_nobody_chose_is_not_written(tmp_path, write, name):
    """An empty severity or cause comes back empty, not as the commonest one."""
    text = write(keep(verdict(severity=None, context=None)))
    assert "major" not in text and "other" not in text
    (found,) = back(tmp_path, text, name).verdicts
    assert (found.severity, found.context) == (None, None)


def test_what_all_verdicts_share_stands_at_the_top(tmp_path):
    """So that `revise` and `verdict add` need not be told."""
    file = back(tmp_path, verdicts_file(keep(verdict())), "v.yaml")
    assert (file.cohort, file.prompt, file.run) == ("dev", "tiny@v1", "run-1")
    other = VerdictContext("dev", "tiny@v2", "", "run-2")
    both = [*keep(verdict()), *keep(verdict("b"), made_on=other)]
    file = back(tmp_path, verdicts_file(both), "v.yaml")
    assert (file.cohort, file.prompt, file.run) == ("dev", "", "")


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_no_cell_is_a_formula(start):
    """A comment typed by anyone must not run in somebody's spreadsheet."""
    hostile = f'{start}HYPERLINK("http://x","y")'
    one = verdict(hostile, reviewer=hostile, comment=hostile)
    rows = list(csv.reader(io.StringIO(verdicts_table(keep(one), notes=True))))
    assert sum(hostile in cell for cell in rows[1]) == 3
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in rows[1])


def test_control_characters_are_spelled_out_in_a_table():
    """A terminal or spreadsheet never gets them."""
    table = verdicts_table(keep(verdict(comment="a\x1b[31m\u202eb\x00")), notes=True)
    assert "\\x1b[31m\\u202eb\\x00" in table
    assert "\x1b" not in table


@pytest.mark.parametrize(
    ("write", "name"), [(verdicts_file, "v.yaml"), (verdicts_table, "v.csv")]
)
def test_that_nothing_is_wrong_reads_back_equal(tmp_path, write, name):
    """What was said of right answers is exported like everything else."""
    said = verdict(judgement=Judgement.ANSWER_RIGHT)
    assert list(back(tmp_path, write(keep(said)), name).verdicts) == [said]
