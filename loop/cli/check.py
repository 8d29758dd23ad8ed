"""What the verbs that check a draft print: lint, copies, and the check itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from loop.cli.console import print_table, say
from loop.core.findings import Finding
from loop.prompts.lint import LEVELS
from loop.review.copied import Copy
from loop.review.revise.check import Check
from loop.review.revise.check import TargetOutcome as Outcome
from loop.review.revise.shares import LabelCheck, ShareCheck, ShareCriterion


def show_lint(findings: Iterable[Finding]) -> None:
    """Print what lint found, one line each."""
    for found in findings:
        say(f"{LEVELS[found.severity]}: {found.where}: {found.what}")


def show_copies(copies: Iterable[Copy]) -> None:
    """Print a warning for each wording that is long and stands in a case."""
    for copy in copies:
        say(
            f"warning: {copy.where}: {copy.words} or more consecutive words also occur "
            f"in case {copy.case_id} of {copy.cohort}; say it in your own words"
        )


def show_check(check: Check) -> None:
    """Print a check: what changed, by which measure, and what became of the targets."""
    say()
    say(f"check on {check.cases} cases, right answers against the parent")
    changed = [
        one
        for one in check.labels
        if any(share.difference[:2] != (0, 0) for _, share in one.shares())
    ]
    if changed:
        print_table(
            ("label", "answers", "lower limit", "positives", "lower limit", "verdict"),
            [_row(one) for one in changed],
        )
    _show_basis(check)
    counts = [
        f"{check.count(p)} {p.replace('_', ' ')}" for p in Outcome if check.count(p)
    ]
    say(f"targeted cases: {', '.join(counts) or 'none named'}")
    for target in check.targets:
        if target.progress not in (
            Outcome.FIXED,
            Outcome.IMPROVED,
            Outcome.ALREADY_RIGHT,
        ):
            say(
                f"  {target.progress}: {target.case_id} {target.label} "
                f"{target.before or 'not asked'} -> {target.after or 'not asked'}, "
                f"should be {target.expected or 'said by the verdict'}"
            )
    for anchor in check.missing_anchors:
        say(
            f"note: anchored case {anchor.case_id} ({anchor.label}) is not in the "
            "cohort any more and was not checked"
        )


def _row(label: LabelCheck) -> tuple[str, ...]:
    """Return the table row of a label: both shares and whether it got worse."""
    cells = [
        cell for _, share in label.shares() for cell in (_change(share), _limit(share))
    ]
    return (label.label, *cells, "ok" if label.passed else "WORSE")


def _change(share: ShareCheck) -> str:
    lost, gained, n = share.difference
    return f"+{gained} -{lost} of {n}"


def _limit(share: ShareCheck) -> str:
    if share.bound is None:
        return "not judged"
    star = " *" if share.basis is ShareCriterion.COUNTS else "  "
    return f"{100 * share.bound:+.1f} %{star}"


def _show_basis(check: Check) -> None:
    """Name every label whose margin could not be used, changed or not."""
    for basis, words in (
        (
            ShareCriterion.COUNTS,
            "* judged by counts: too few cases for the margin, so no more may be lost "
            "than gained",
        ),
        (ShareCriterion.NOTHING, "not judged: no case to judge by"),
    ):
        found = check.judged_by(basis)
        if any(found.values()):
            say(words)
        for name, labels in found.items():
            if labels:
                every = len(labels) == len(check.labels)
                say(f"  {name}: {'every label' if every else ', '.join(labels)}")


def check_data(check: Check) -> dict[str, Any]:
    """Return a check as JSON data."""
    return {
        "passed": check.passed,
        "cases": check.cases,
        "targets": [asdict(target) for target in check.targets],
        "broken_anchors": [anchor._asdict() for anchor in check.broken_anchors],
        "unanswered_anchors": [one._asdict() for one in check.unanswered_anchors],
        "missing_anchors": [one._asdict() for one in check.missing_anchors],
        "unanswered": check.unanswered._asdict(),
        "labels": [
            {
                "label": one.label,
                "passed": one.passed,
                **_share_data(one.accuracy),
                "sensitivity": _share_data(one.sensitivity),
            }
            for one in check.labels
        ],
    }


def _share_data(share: ShareCheck) -> dict[str, Any]:
    return {
        "gained": share.difference.gained,
        "lost": share.difference.lost,
        "n": share.difference.n,
        "bound": share.bound,
        "margin": share.margin,
        "basis": share.basis.value,
    }
