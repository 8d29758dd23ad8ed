"""What the verbs that check a draft print: lint, copies, and the check itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from loop.cli.console import print_json, print_table, say
from loop.core.check_findings import Finding
from loop.core.nouns import counted
from loop.prompts.lint import LEVELS
from loop.review.revise.changes import LabelCheck, ShareCheck, ShareCriterion
from loop.review.revise.check import Check
from loop.review.revise.check import TargetOutcome as Outcome
from loop.review.revise.copies import Copy
from loop.review.revise.draws import (
    POWER,
    DrawEvidence,
    DrawnLabel,
    HarmTest,
    MarginTest,
    ShareName,
)
from loop.review.revise.forecast import Forecast


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
    if check.over_draws is None:
        _show_once(check)
    else:
        _show_draws(check, check.over_draws)
    _show_targets(check)


def show_forecast(found: Forecast, *, as_json: bool) -> None:
    """Print what a check would ask and cost, and what it could find."""
    if as_json:
        losses = [one._asdict() for one in found.losses]
        print_json({"sent": 0, **asdict(found), "losses": losses})
        return
    made = found.draft if found.draft != found.parent else "a draft as long"
    say(f"check of {made} against {found.parent} on {found.cohort} with {found.engine}")
    say("NOTHING WAS SENT")
    more = f" (up to {found.max_draws} while undecided)"
    say(
        f"  draws     {found.draws} of each, {counted(found.cases, 'case')}"
        f"{more if found.max_draws > found.draws else ''}"
    )
    say(f"  requests  {found.requests:,} at most: what is stored already is not sent")
    say(
        f"  tokens    {found.prompt_tokens:,} prompt, {found.output_tokens:,} output "
        f"({found.counted})"
    )
    if found.cost is not None:
        say(f"  cost      {found.cost:,.2f} {found.currency}")
    if not found.losses:
        say("  finds     every answer that changed: this engine repeats itself")
        return
    say(f"  churn     {found.churn}")
    shares = (ShareName.SENSITIVITY, ShareName.SPECIFICITY)
    rows: dict[str, dict[ShareName, str]] = {}
    for one in found.losses:
        least = "not even all" if one.least is None else f"{100 * one.least:.0f} %"
        rows.setdefault(one.label, {})[one.share] = f"{least} of {one.n}"
    print_table(
        ("label", *shares),
        [
            (label, *(cells.get(one, "") for one in shares))
            for label, cells in rows.items()
        ],
        title=f"least loss that would be found with a chance of {100 * POWER:.0f} %",
    )


def _show_once(check: Check) -> None:
    say(f"check on {counted(check.cases, 'case')}, right answers against the parent")
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


def _show_targets(check: Check) -> None:
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


def _show_draws(check: Check, evidence: DrawEvidence) -> None:
    """Print the parent's own churn first, then what the draft adds to it."""
    say(
        f"check on {counted(check.cases, 'case')}, {counted(evidence.draws, 'draw')} "
        "of the parent and of the draft, asked in turns"
    )
    if evidence.churn is not None:
        say(
            f"the parent against itself: {100 * evidence.churn:.1f} % of answers "
            "differ between two draws"
        )
    print_table(
        ("label", "parent flips", *_HARM, *_MARGINS, "verdict"),
        [_drawn_row(one, len(evidence.rare)) for one in evidence.every()],
    )
    say("* too few cases to show that no margin was lost")
    if evidence.unjudged:
        names = ", ".join(evidence.unjudged)
        say(f"not judged, no case that the reference can judge: {names}")
    least = [
        f"{one.label} {100 * test.least:.0f} %"
        for one in evidence.labels
        for test in one.harm
        if test.share is ShareName.SENSITIVITY and test.least is not None
    ]
    harmed = list(evidence.describe_harm())
    say(f"evidence of harm: {'; '.join(harmed) or 'none'}")
    say(
        f"  {evidence.tests} tests, {evidence.tested} of which could find anything, at "
        f"{100 * evidence.alpha:.2g} % for all together at look {evidence.look}; least "
        f"loss of sensitivity found with a chance of {100 * POWER:.0f} %: "
        f"{', '.join(least) or 'none'}"
    )
    surplus = evidence.surplus
    if surplus is not None:
        low, high = surplus.interval
        say(
            f"targeted cases: right in {surplus.after} of {surplus.readings} readings, "
            f"the parent asked again in {surplus.before}: surplus "
            f"{100 * surplus.value:+.0f} % ({100 * low:+.0f} to {100 * high:+.0f} %), "
            f"{'shown' if surplus.shown else 'not shown'}"
        )


_HARM = ("sensitivity", "specificity")
_MARGINS = ("accuracy, lower limit", "sensitivity, lower limit")


def _drawn_row(label: DrawnLabel, rare: int) -> tuple[str, ...]:
    """Return the table row of a label over several draws."""
    harm = {test.share: test for test in label.harm}
    margins = {test.share: test for test in label.margins}
    return (
        label.label or f"{rare} rare labels",
        f"{label.churn.flipped} of {label.churn.n}" if label.churn else "",
        _drawn_change(harm.get(ShareName.SENSITIVITY)),
        _drawn_change(harm.get(ShareName.SPECIFICITY)),
        _drawn_limit(margins.get(ShareName.ACCURACY)),
        _drawn_limit(margins.get(ShareName.SENSITIVITY)),
        label.verdict.value.upper() if label.harmed else label.verdict.value,
    )


def _drawn_change(test: HarmTest | None) -> str:
    if test is None or test.difference.value is None:
        return ""
    return f"{100 * test.difference.value:+.1f} % of {test.difference.n}"


def _drawn_limit(test: MarginTest | None) -> str:
    if test is None or test.bound is None:
        return ""
    star = "  " if test.reachable or test.shown else " *"
    return f"{100 * test.bound:+.1f} %{star}"


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
        (ShareCriterion.NOTHING, "not judged: no case that the reference can judge"),
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
    data = _once_data(check)
    if check.over_draws is not None:
        del data["labels"]
        data["over_draws"] = _draws_data(check.over_draws)
    return data


def _draws_data(evidence: DrawEvidence) -> dict[str, Any]:
    """Return what several draws showed, in the words of the records."""
    surplus = evidence.surplus
    return {
        **asdict(evidence),
        "labels": [_label_data(one) for one in evidence.labels],
        "together": evidence.together and _label_data(evidence.together),
        "targets": [one._asdict() for one in evidence.targets],
        "surplus": surplus and {**surplus._asdict(), "shown": surplus.shown},
    }


def _label_data(label: DrawnLabel) -> dict[str, Any]:
    return {
        "label": label.label,
        "verdict": label.verdict.value,
        "churn": label.churn and label.churn._asdict(),
        "harm": [_test_data(one) for one in label.harm],
        "margins": [{**_test_data(one), "shown": one.shown} for one in label.margins],
    }


def _test_data(test: HarmTest | MarginTest) -> dict[str, Any]:
    return {**asdict(test), "difference": test.difference._asdict()}


def _once_data(check: Check) -> dict[str, Any]:
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
