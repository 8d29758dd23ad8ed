"""A plan in words, as JSON and as CSV."""

import csv
import io
import json
from dataclasses import replace

import pytest

from loop.evaluate.plan import (
    Collect,
    Counted,
    LabelPlan,
    Needed,
    SampleSizePlan,
    plan_labels,
    plan_levels,
)
from loop.evaluate.plan_text import (
    POINT_RULE,
    WEIGHT,
    collect_line,
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


def advised(cases, positives, *, seen=None, collect=None):
    """Return what to collect where a label was planned like this."""
    made = LabelPlan(
        counted=label(cases, positives),
        candidates=(),
        observed=seen and Needed(*seen, (), ()),
        kappa_asks=None,
        obstacles=(),
        remedy="",
        collect=collect,
    )
    return collect_line(made, plan(COMMON))


RANDOM = "about 120 more random cases{} (true accuracy 0.980, 80 % power)"
LOW = "no number of cases certifies the observed {}"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"cases": 9, "positives": 4},
            "none of the supposed accuracies can be certified with 100,000 cases",
        ),
        (
            {"cases": 9, "positives": 0},
            "no positive has been seen, so how many random cases it needs is unknown",
        ),
        (
            {"cases": 9, "positives": 9},
            "no negative has been seen, so how many random cases it needs is unknown",
        ),
        (
            {"cases": 0, "positives": 0},
            "no case decides it, so how many it needs is unknown",
        ),
        ({"collect": Collect(0.98, 0, 0, 0)}, ""),
        ({"collect": Collect(0.98, 120, 0, 7)}, RANDOM.format("")),
        (
            {"collect": Collect(0.98, 120, 1, 0)},
            RANDOM.format(", or 1 chosen positive"),
        ),
        (
            {"collect": Collect(0.98, 120, 30, 1)},
            RANDOM.format(", or 30 chosen positives and 1 other case"),
        ),
        ({"seen": (0.95, 0.9)}, LOW.format("accuracy 0.950")),
        ({"seen": (0.951, 0.8)}, LOW.format("sensitivity 0.800")),
        (
            {"seen": (0.9, 0.5), "collect": Collect(0.98, 120, 0, 0)},
            LOW.format("accuracy 0.900 and sensitivity 0.500; ") + RANDOM.format(""),
        ),
        ({"seen": (0.9, 0.9), "collect": Collect(0.98, 0, 0, 0)},
         LOW.format("accuracy 0.900")),
        ({"seen": (0.951, 0.801), "collect": Collect(0.98, 0, 0, 0)}, ""),
    ],
)  # fmt: skip
def test_what_to_collect_is_one_line(given, told):
    """What is missing, what is too low, or how much more of what."""
    assert advised(**{"cases": 9, "positives": 4, **given}) == told


def test_a_row_of_a_label_is_the_plan_of_it():
    """Counts, the safe sizes for both limits, what was observed, what kappa asks."""
    made = plan(COMMON, UNSEEN)
    common, unseen = label_table(made).rows
    row = plan_data(made)["labels"][0]
    sizes = [
        " / ".join(str(size["safe"]) for size in needed["both"])
        for needed in (*row["supposed"], row["observed"])
    ]
    assert common == (
        "Made", "300", "60", "20.0 %", *sizes[:3], "0.990", sizes[3],
        f"{row['kappa_asks']:.3f}",
    )  # fmt: skip
    assert len({*sizes}) == 4
    # Misses and false alarms as many: kappa is 0.8 at 1 - 2 x 0.2 x 0.8 x 0.2.
    assert row["kappa_asks"] == pytest.approx(0.936)
    never = "> 100,000 / > 100,000"
    assert unseen == ("Unseen", "300", "0", "0.0 %", *[never] * 3, *["–"] * 3)


def test_the_table_of_a_plan_is_whole():
    """Every size of each power by its name, as the data have it."""
    made = plan(COMMON, POOR)
    rows = list(csv.DictReader(io.StringIO(render_plan_csv(made))))
    labels = plan_data(made)["labels"]
    wanted = []
    for one in labels:
        supposed = [(needed, "supposed") for needed in one["supposed"]]
        for needed, source in (*supposed, (one["observed"], "observed")):
            row = {name: one[name] for name in ("label", "name", "cases", "positives")}
            row |= {"prevalence": one["prevalence"], "source": source}
            row |= {name: needed[name] for name in ("accuracy", "sensitivity")}
            for what in ("cases", "positives", "both"):
                for power, size in zip(("80", "90"), needed[what], strict=True):
                    row[f"{what}_{power}_first"] = size["first"]
                    row[f"{what}_{power}"] = size["safe"]
            row |= {"kappa_asks": one["kappa_asks"], "obstacles": ""}
            row |= {"remedy": one["remedy"], "collect": one["advice"]}
            wanted.append(
                {
                    name: ""
                    if value is None
                    else f"{value:.6g}"
                    if isinstance(value, float)
                    else str(value)
                    for name, value in row.items()
                }
            )
    assert rows == wanted


def test_a_label_with_enough_cases_is_not_in_the_list():
    """The list is of work that is left."""
    assert collect_lines(plan(label(3000, 600, 599, 5, 1, 2395))) == ()


def test_the_notes_say_what_the_sizes_leave_out():
    """Rule, independence, kappa, optimism and weights."""
    notes = plan_notes(plan(COMMON, protocol=Protocol()))
    assert notes[0] == POINT_RULE and notes[-1] == WEIGHT
    assert any("kappa" in text for text in notes)
    assert any("optimistic" in text for text in notes)
    without = plan_notes(plan(COMMON, run=""))
    assert POINT_RULE not in without
    assert not any("optimistic" in text for text in without)
    left_out = replace(plan(COMMON, run=""), not_comparable={"Edema": "nobody read it"})
    assert plan_notes(left_out) == (
        *without[:-1],
        "Edema is not planned: the reference cannot judge it (nobody read it), so no "
        "claim counts it.",
        WEIGHT,
    )


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
