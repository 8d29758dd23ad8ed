"""Findings of a check: which hold, and how many problems are told."""

import pytest

from loop.core.check_findings import (
    Finding,
    FindingSeverity,
    broken,
    join_problems,
    note,
    ok,
    warning,
)


@pytest.mark.parametrize(
    ("problems", "told"),
    [
        ("a", "a"),
        ("abcde", "a; b; c; d; e"),
        ("abcdef", "a; b; c; d; e; and 1 more"),
        ("abcdefgh", "a; b; c; d; e; and 3 more"),
    ],
)
def test_five_problems_are_told_and_the_rest_counted(problems, told):
    """Nothing is left out unseen."""
    assert join_problems("chain", [*problems], "whole") == broken("chain", told)


def test_without_a_problem_a_check_holds():
    """It says what was found good."""
    found = join_problems("chain", [], "whole")
    assert found == Finding(check="chain", severity=FindingSeverity.OK, what="whole")


def test_only_what_is_broken_does_not_hold():
    """A remark or a warning is no verdict."""
    found = [one("chain", "x") for one in (ok, note, warning, broken)]
    assert [one.holds for one in found] == [True, True, True, False]


def test_a_finding_has_what_it_was_given_and_nothing_else():
    """Each part in its own field."""
    details = {
        "where": "ledger.jsonl:3",
        "part": "hash",
        "implies": "It was edited.",
        "todo": "Restore it.",
        "seq": 3,
        "numbers": {"lines": 7},
    }
    for make, severity in (
        (warning, FindingSeverity.WARNING),
        (broken, FindingSeverity.BROKEN),
    ):
        found = make("chain", "x", **details)
        assert found == Finding(check="chain", severity=severity, what="x", **details)
    assert note("chain", "x", where="here", todo="look") == Finding(
        check="chain",
        severity=FindingSeverity.NOTE,
        what="x",
        where="here",
        todo="look",
    )
    assert ok("chain", "x") == Finding(
        check="chain", severity=FindingSeverity.OK, what="x"
    )
