"""A plan in words, as JSON and as CSV."""

import csv
import io
import json

import pytest

from loop.evaluate.plan import Counted, SampleSizePlan, plan_labels, plan_levels
from loop.evaluate.plan_text import (
    POINT_RULE,
    WEIGHT,
    collect_lines,
    label_table,
    level_tables,
    never_lines,
    plan_data,
    plan_notes,
    render_plan_csv,
)
from loop.evaluate.protocol import Protocol
from loop.stats.confusion import Confusion

LOWER = Protocol(rule="lower", min_positives=14)


def plan(*labels, protocol=LOWER, run="r", candidates=(0.99, 0.98, 0.97), family=21):
    """Return a plan of made-up labels."""
    levels = plan_levels(protocol, family, candidates)
    goal = next(level.goal for level in levels if level.used)
    return SampleSizePlan(
        cohort="dev",
        cohort_digest="c" * 64,
        cases=300,
        reference=1,
        run=run,
        prompt="made@v1" if run else "",
        protocol=protocol,
        levels=levels,
        labels=plan_labels(labels, protocol, goal, candidates),
    )


def label(cases, positives, *counts, name="Made"):
    """Return a label with what a run observed."""
    seen = Confusion(*counts) if counts else None
    return Counted(name.lower(), name, cases, positives, seen)


COMMON = label(300, 60, 59, 2, 1, 238)
RARE = label(300, 6, 6, 0, 0, 294, name="Rare")
POOR = label(300, 60, 40, 20, 20, 220, name="Poor")
UNSEEN = label(300, 0, 0, 3, 0, 297, name="Unseen")


def test_the_first_table_is_the_one_of_the_domain_notes():
    """First size and, in brackets, the one to plan with."""
    cases, positives = level_tables(plan(COMMON))
    assert cases.rows[0] == (
        "one-sided 95 % (used)",
        "59",
        "124 (124) / 153 (181)",
        "234 (286) / 311 (361)",
        "601 (694) / 832 (900)",
    )
    assert [row[1] for row in cases.rows] == ["59", "72", "118"]
    assert [row[1] for row in positives.rows] == ["14", "17", "14"]


def test_an_accuracy_that_cannot_be_certified_has_a_dash():
    """At the threshold no number of cases is enough; just above it, too many."""
    made = plan(COMMON, candidates=(0.95, 0.9501))
    assert level_tables(made)[0].rows[0][2:] == ("–", "> 100,000 / > 100,000")
    assert label_table(made).rows[0][4:6] == ("–", "> 100,000 / > 100,000")


def test_each_label_has_a_row_with_what_was_observed():
    """Without a run the observed columns are not there."""
    with_run = label_table(plan(COMMON, RARE))
    assert len(with_run.header) == len(with_run.rows[0]) == 10
    assert with_run.rows[0][7] == "0.990"
    without = label_table(plan(COMMON, RARE, run=""))
    assert len(without.header) == len(without.rows[0]) == 8


def test_what_can_never_pass_says_what_is_short_and_what_to_collect():
    """6 of 14 positives: 8 chosen ones, or 400 cases at 2 %."""
    assert never_lines(plan(COMMON, RARE)) == (
        "Rare: 6 of at least 14 positives. Collect 8 chosen positives, or about 400 "
        "more random cases.",
    )


def test_what_to_collect_names_the_observed_value_that_is_too_low():
    """More cases alone will not do; the prompt must be better first."""
    (line,) = collect_lines(plan(POOR))
    assert line.startswith(
        "Poor: no number of cases certifies the observed accuracy 0.867 and "
        "sensitivity 0.667"
    )
    (unseen,) = collect_lines(plan(UNSEEN))
    assert "no positive has been seen" in unseen


def test_a_label_with_enough_cases_is_not_in_the_list():
    """The list is of work that is left."""
    assert collect_lines(plan(label(3000, 600, 599, 5, 1, 2395))) == ()


def test_the_notes_say_what_the_sizes_leave_out():
    """Rule, independence, kappa, optimism and weights."""
    notes = plan_notes(plan(COMMON, protocol=Protocol()))
    assert notes[0] == POINT_RULE and notes[-1] == WEIGHT
    assert any("kappa" in text for text in notes)
    assert any("optimistic" in text for text in notes)
    assert POINT_RULE not in plan_notes(plan(COMMON, run=""))


def test_the_json_is_whole_and_without_nan():
    """A size that does not exist is null."""
    text = json.dumps(plan_data(plan(COMMON, RARE, POOR, UNSEEN)), allow_nan=False)
    data = json.loads(text)
    by_name = {one["name"]: one for one in data["labels"]}
    assert by_name["Rare"]["possible"] is False
    assert by_name["Poor"]["observed"]["cases"][0] == {"first": None, "safe": None}
    assert by_name["Unseen"]["collect"] is None
    assert data["levels"][0]["used"] and data["powers"] == [0.8, 0.9]


def test_the_csv_has_a_row_per_label_and_accuracy_and_runs_no_formula():
    """Names come from outside; a spreadsheet must not run them."""
    text = render_plan_csv(plan(label(300, 60, 59, 2, 1, 238, name="=1+1")))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["source"] for row in rows] == ["supposed"] * 3 + ["observed"]
    assert rows[0]["name"] == "'=1+1"
    assert (rows[0]["cases_80_first"], rows[0]["cases_80"]) == ("124", "124")


@pytest.mark.parametrize("counted", [label(0, 0), label(1, 1), label(1, 0)])
def test_labels_without_evidence_break_nothing(counted):
    """An empty cohort is a plan of what is missing."""
    made = plan(counted, run="")
    assert never_lines(made) and collect_lines(made)
    assert label_table(made).rows and render_plan_csv(made)
    json.dumps(plan_data(made), allow_nan=False)
