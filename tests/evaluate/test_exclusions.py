"""Every document shows why cases were not scored: n and the columns add up."""

import csv
import io
import re
from dataclasses import replace

import pytest

from loop.cli.evaluate import show_evaluation
from loop.core.records import Status, ValueCode
from loop.evaluate.documents import (
    EXCLUSIONS,
    render_csv,
    render_html,
    render_markdown,
    shown_exclusions,
)
from loop.evaluate.evaluation import evaluate_inputs
from tests.evaluate.scenes import inputs, outcome, reference, silent

CODES = (
    ValueCode.PRESENT,
    ValueCode.UNCERTAIN,
    ValueCode.NO_MAJORITY,
    ValueCode.MISSING,
)


def without(one, label):
    """Return an outcome that was not asked for `label`."""
    fields = {name: field for name, field in one.fields.items() if name != label}
    return replace(one, fields=fields)


def evaluated(*, everything=True):
    """Evaluate a run with every reason for exclusion, or with none."""
    rows = {f"c{i}": {"edema": ValueCode.PRESENT} for i in range(20)}
    outcomes = [outcome(case_id, {"edema": 1}) for case_id in rows]
    if everything:
        for number, code in enumerate(CODES):
            rows[f"c{number}"] = {"edema": code, "fracture": code}
        outcomes[10] = outcome("c10", {"edema": -1})
        outcomes[11] = silent("c11")
        outcomes[12] = silent("c12", Status.ENGINE_FAILED)
        outcomes[13:] = [without(one, "edema") for one in outcomes[13:]]
    return evaluate_inputs(inputs(outcomes, reference(rows)), resamples=20)


def markdown_rows(evaluation):
    """Return the cells of the first table, one mapping per label."""
    text = render_markdown(evaluation)
    table = re.search(r"(?:^\|.*\n)+", text, flags=re.MULTILINE).group()
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
    ]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def html_rows(evaluation):
    """Return the cells of the table of counts, one mapping per label."""
    page = render_html(evaluation).split('id="counts"')[1].split("</table>")[0]
    head, body = page.split("<tbody>")
    names = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', head)
    return [
        dict(zip(names, re.findall(r"<t[hd].*?>([^<]*)<", row), strict=False))
        for row in [
            re.sub(r'<div class="bar">.*?</div>', "", row, flags=re.DOTALL)
            for row in body.split("<tr>")[1:]
        ]
    ]


def terminal_rows(evaluation, capsys):
    """Return the cells of the gate table, one mapping per label."""
    show_evaluation(evaluation)
    lines = capsys.readouterr().out.splitlines()
    edges = [match.span() for match in re.finditer(r"-+", lines[2])]
    cells = [
        [line[start:end].strip() for start, end in edges]
        for line in (lines[1], *lines[3:24])
    ]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]


def check(rows, names, evaluation):
    """Check that n and the exclusions of every row add up to the cases."""
    assert len(rows) == 21
    for row in rows:
        assert int(row["n"]) + sum(int(row[name]) for name in names) == 20
    for one, name in zip(shown_exclusions(evaluation), names, strict=True):
        shown = [int(row[name]) for row in rows]
        assert shown == [one.of(result) for result in evaluation.labels]


def test_the_scene_has_every_reason():
    """Otherwise the tests below would prove little."""
    assert shown_exclusions(evaluated()) == EXCLUSIONS


@pytest.mark.parametrize("everything", [True, False])
def test_markdown_adds_up(everything):
    """Every reason that occurs has a column."""
    evaluation = evaluated(everything=everything)
    names = [one.heading for one in shown_exclusions(evaluation)]
    check(markdown_rows(evaluation), names, evaluation)


@pytest.mark.parametrize("everything", [True, False])
def test_the_page_adds_up(everything):
    """Every reason that occurs has a column."""
    evaluation = evaluated(everything=everything)
    names = [one.heading.lower() for one in shown_exclusions(evaluation)]
    check(html_rows(evaluation), names, evaluation)


@pytest.mark.parametrize("everything", [True, False])
def test_the_terminal_adds_up(everything, capsys):
    """Every reason that occurs has a column of its own."""
    evaluation = evaluated(everything=everything)
    names = [one.short for one in shown_exclusions(evaluation)]
    check(terminal_rows(evaluation, capsys), names, evaluation)


@pytest.mark.parametrize("everything", [True, False])
def test_the_csv_adds_up(everything):
    """The CSV always has every column."""
    evaluation = evaluated(everything=everything)
    rows = list(csv.DictReader(io.StringIO(render_csv(evaluation))))
    names = [one.field for one in EXCLUSIONS]
    for row in rows:
        assert int(row["n"]) + sum(int(row[name]) for name in names) == 20


def test_a_reason_that_never_occurs_takes_no_room():
    """Four columns are always there; the others only when they are not all zero."""
    shown = {one.field for one in shown_exclusions(evaluated(everything=False))}
    assert shown == {"uncertain_reference", "uncertain_predicted", "unparsed", "failed"}


@pytest.mark.parametrize("known", [0, 15, 20])
def test_documents_say_how_many_patients_are_known(known, capsys):
    """A reader must see what the intervals take for independent."""
    rows = {f"c{i}": {"edema": i % 2} for i in range(20)}
    outcomes = [outcome(case_id, row) for case_id, row in rows.items()]
    patients = [f"p{i // 2}" if i < known else "" for i in range(20)]
    evaluation = evaluate_inputs(
        inputs(outcomes, reference(rows), patients=patients), resamples=20
    )
    show_evaluation(evaluation)
    for text in (
        capsys.readouterr().out,
        render_markdown(evaluation),
        render_html(evaluation),
    ):
        assert f"patient known for {known} of 20 cases" in text
