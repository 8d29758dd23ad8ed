"""How two runs are compared in print: every row and line, whole."""

from dataclasses import replace

import pytest

from loop.cli import compare
from loop.core.errors import DataError
from loop.evaluate.compare import compare_inputs, list_differences, share_answers
from tests.evaluate.scenes import inputs, outcome, reference, silent

TRUTH = [1, 1, 1, 1, 1, 1, -1, 1, 1, 1, 0]
BEFORE = [0, 1, 1, -1, -1, 1, 1, -1, 0, -1, 0]
AFTER = [1, 0, -1, 1, 0, None, 1, 1, -1, None, None]


def run(values, standard, **about):
    """Return a run that answers so for edema, case by case; None is no answer."""
    outcomes = [
        silent(f"c{i}") if value is None else outcome(f"c{i}", {"edema": value})
        for i, value in enumerate(values)
    ]
    return inputs(outcomes, standard, **about)


STANDARD = reference({f"c{i}": {"edema": mark} for i, mark in enumerate(TRUTH)})
LEFT = run(BEFORE, STANDARD)
RIGHT = run(AFTER, STANDARD, run="b", prompt="extractor@v2")
COMPARED = compare_inputs(LEFT, RIGHT, resamples=200)
ROW = "–      –    −0.273  [−0.566, +0.057]          FAIL      0       0       0"


@pytest.fixture
def shown(capsys):
    """Return a function that prints a comparison and returns its lines."""

    def lines(comparison):
        compare.show_comparison(comparison)
        return capsys.readouterr().out.splitlines()

    return lines


def of_edema(comparison, **parts):
    """Return a comparison in which the row of edema has other parts."""
    rows = [
        replace(row, **parts) if row.label == "edema" else row
        for row in comparison.labels
    ]
    return replace(comparison, labels=tuple(rows))


def test_a_comparison_is_printed_whole(shown):
    """Each kind of change in its column, then the verdict and the cases by name.

    Edema: c0 is gained, c1, c5 and c10 are lost of the four decided before; No Finding
    follows from it.
    """
    title, header, rule, *rest = shown(COMPARED)
    assert title == (
        "extractor@v1 (20260105-090000-aaaaaa) -> extractor@v2 (b) on made_up, "
        "reference v1, rules, uncertain answers excluded"
    )
    assert header.split("  ")[0] == "label"
    assert header.split()[1:] == [
        *("F1", "before", "after", "accuracy", "interval", "not", "worse", "fixed"),
        *("broken", "to", "unc", "decided", "no", "ans", "McNemar", "p", "Holm"),
    ]
    table, lines = rest[: len(COMPARED.labels)], rest[len(COMPARED.labels) :]
    assert set(rule) == {"-", " "}
    cells = {row[:32].strip(): row[32:].split() for row in table}
    assert cells["Edema"] == [
        *("0.667", "0.667", "−0.500", "[−0.857,", "+0.221]", "INSUFFICIENT"),
        *("1", "1", "2", "3", "3", "too", "few", "–"),
    ]
    assert cells["No Finding"] == [
        *("0.000", "0.000", "−0.182", "[−0.553,", "+0.259]", "INSUFFICIENT"),
        *("2", "2", "0", "0", "3", "too", "few", "–"),
    ]
    others = [name for name in cells if name not in ("Edema", "No Finding")]
    assert len(others) == 19
    for name in others:
        assert cells[name] == [*ROW.split(), "0", "3", "–", "–"]
    assert lines[:5] == [
        "",
        "macro-F1  0.333 -> 0.333 since extractor@v1, difference 0.000 – on 11 shared "
        "cases; uncertain answers excluded",
        "no label worse by 0.02 accuracy or 0.05 sensitivity: INSUFFICIENT",
        "cannot be compared: the run after left 30.0 % of a label's answers unparsed "
        "or failed (at most 1 % allowed)",
        "sensitivity fell: Edema lost 3 and gained 1 of 5 positives",
    ]
    named = [line for line in lines[5:] if "Edema" in line or "No Finding" in line]
    assert named == [
        "  Edema, fixed: c0",
        "  Edema, broken: c1",
        "  Edema, became uncertain: c2, c8",
        "  Edema, became decided: c3, c4, c7",
        "  Edema, lost its answer: c5, c9, c10",
        "  No Finding, fixed: c0, c8",
        "  No Finding, broken: c1, c4",
        "  No Finding, lost its answer: c5, c9, c10",
    ]
    assert len(lines[5:]) == len(named) + len(others)


def test_what_is_tested_has_its_p_values(shown):
    """And Holm's only where the reference can judge the label."""

    def cells(comparison):
        (row,) = (line for line in shown(comparison) if line.startswith("Edema "))
        return row.split()[7:]

    tested = of_edema(COMPARED, testable=True, p=0.03125, p_holm=0.625)
    assert cells(tested)[-2:] == ["0.031", "0.625"]
    apart = of_edema(COMPARED, testable=True, p=0.03125, comparable=False)
    assert cells(apart)[-2:] == ["0.031", "–"]
    same = of_edema(COMPARED, fixed=(), broken=())
    assert cells(same) == ["0", "0", "2", "3", "3", "–", "–"]
    one = of_edema(COMPARED, fixed=())
    assert cells(one)[-3:] == ["too", "few", "–"]
    (row,) = (
        line
        for line in shown(of_edema(COMPARED, judged=False))
        if line.startswith("Edema ")
    )
    assert row.split()[6:9] == ["–", "1", "1"]


def test_what_is_left_out_of_a_comparison_is_told(shown):
    """Labels that the reference cannot judge, and cases of one run only."""
    lines = shown(of_edema(replace(COMPARED, only_before=2), comparable=False))
    assert "not judged, as the reference cannot judge it: Edema" in lines
    told = "2 cases only in the first run and 0 only in the second are left out"
    assert told in lines
    lines = shown(replace(COMPARED, only_after=3))
    told = "0 cases only in the first run and 3 only in the second are left out"
    assert told in lines
    assert not any("cannot judge" in line for line in lines)
    assert not any("left out" in line for line in shown(COMPARED))


def test_two_engines_are_both_named(shown):
    """One that both runs asked is named once."""
    after = replace(COMPARED.after, engine="vllm:m")
    title = shown(replace(COMPARED, after=after))
    assert any("reference v1, rules -> vllm:m, uncertain" in line for line in title)


def test_cases_on_which_two_runs_differ_are_listed(capsys):
    """With what the reference says; no answer is an answer that differs."""
    shared = share_answers([LEFT.pairs, RIGHT.pairs])
    found = list_differences(shared, "edema")
    compare._show_differences(found, COMPARED, "Edema")
    title, header, _, *rows, blank, last = capsys.readouterr().out.splitlines()
    assert title == ("Edema: 20260105-090000-aaaaaa and b differ in 10 of 11 cases")
    assert header.split() == ["case", "reference", "before", "after"]
    assert [row.split()[:3] for row in rows[:4]] == [
        ["c0", "present", "absent"],
        ["c1", "present", "present"],
        ["c2", "present", "present"],
        ["c3", "present", "uncertain"],
    ]
    assert rows[0].split()[3:] == ["present"]
    assert "c6" not in {row.split()[0] for row in rows}
    assert (blank, last) == ("", "See one with: ranloop show b c0")


def test_runs_that_say_the_same_say_so(capsys):
    """In one line, with how many cases they have in common."""
    compare._show_differences((), COMPARED, "Edema")
    assert capsys.readouterr().out == (
        "Edema: 20260105-090000-aaaaaa and b say the same of all 11 cases\n"
    )


def test_a_label_that_neither_run_was_asked_about_is_refused():
    """With those that one of them was asked about."""
    shared = share_answers([LEFT.pairs, RIGHT.pairs])
    compare._require_asked(shared, "edema")
    with pytest.raises(DataError, match="neither run was asked about mass"):
        compare._require_asked(shared, "mass")
