"""RadJudge as tables of passes, as JSON data, and the notes that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from loop import __version__
from loop.documents.numbers import NOT_ESTIMABLE, interval, share
from loop.judge.radjudge import (
    PassShare,
    RadJudge,
    RankingCount,
    RankingOutcome,
    RankingResult,
)

FORMAT: Final = "ranloop-radjudge-1"
"""Name of the shape; another number means that readers must look again."""

TOTAL_HEADER: Final = (
    *("metric", "strict", "share", "tolerant", "share", "no score", "n/a"),
)


def total_rows(found: Sequence[RankingResult]) -> list[tuple[str, ...]]:
    """Return a row for each metric: passes of all tests, strict and tolerant."""
    return [
        (
            one.scores.title,
            _of(one.total.strict),
            pass_share(one.total.strict),
            _of(one.total.tolerant),
            pass_share(one.total.tolerant),
            str(one.total.unscored),
            str(one.total.not_applicable),
        )
        for one in found
    ]


def _of(one: PassShare) -> str:
    return f"{one.passed} of {one.tests}" if one.tests else NOT_ESTIMABLE


def pass_share(one: PassShare) -> str:
    """Return a share of passes with its exact limits; a dash without a test."""
    if one.value is None:
        return NOT_ESTIMABLE
    return f"{share(one.value)} {interval(one.limits)}"


def category_rows(found: Sequence[RankingResult]) -> list[tuple[str, ...]]:
    """Return a row for each category: how many of its tests each metric passes.

    As ``2/3``, strict; ``2+1/3`` where one more passes with the tolerance; ``n/a``
    where no test applies.
    """
    names = [one.category for one in found[0].categories] if found else []
    return [
        (name, *(_category(one.categories[place]) for one in found))
        for place, name in enumerate(names)
    ]


def _category(one: RankingCount) -> str:
    if not one.strict.tests:
        return "n/a" if one.not_applicable else NOT_ESTIMABLE
    more = one.tolerant.passed - one.strict.passed
    passed = f"{one.strict.passed}+{more}" if more else f"{one.strict.passed}"
    return f"{passed}/{one.strict.tests}"


def radjudge_conventions(tolerance: float) -> tuple[str, ...]:
    """Return how a test is decided, as sentences."""
    return (
        "A test is passed where the scores reproduce its whole ranking. Strict: what "
        "is better has the better score, and what is worth the same has the same "
        f"score. Tolerant: scores that should be the same may differ by {tolerance:g}, "
        "in the units of the score; what is better must still have the better score.",
        "Limits are exact (Clopper-Pearson, 95 %) over the tests that were decided. "
        "A test in which a candidate has no score is neither passed nor failed.",
    )


def radjudge_notes(given: RadJudge, found: Sequence[RankingResult]) -> list[str]:
    """Return what a reader must know about the counts, as sentences."""
    told = []
    if not given.as_published:
        told.append(
            f"{given.source} has {len(given.tests)} tests in {len(given.categories)} "
            "categories; RadJudge as published has 3 tests in each of 10. Name the "
            "file when you cite the numbers."
        )
    context = sum(one.needs_context for one in given.tests)
    blind = [one.scores.title for one in found if not one.with_context]
    if context and blind:
        told.append(
            f"Tests that depend on the patient ({context}) are not applicable to "
            f"{', '.join(blind)}: these scores were made without that context."
        )
    equal = sum(one.ties for one in given.tests)
    told.append(
        f"{equal} of {len(given.tests)} tests say that two candidates are worth the "
        "same. A metric with few distinct scores passes these more easily than one "
        "with many; compare the strict count with the tolerant one."
    )
    return told


def radjudge_data(
    given: RadJudge, found: Sequence[RankingResult], *, tolerance: float
) -> dict[str, Any]:
    """Return the counts and the outcome of every test as JSON data."""
    return {
        "format": FORMAT,
        "ranloop": __version__,
        "source": {"name": given.source, "sha256": given.digest},
        "tests": len(given.tests),
        "categories": list(given.categories),
        "as_published": given.as_published,
        "tolerance": tolerance,
        "conventions": list(radjudge_conventions(tolerance)),
        "metrics": [
            {
                "metric": one.scores.name,
                "title": one.scores.title,
                "better": "lower" if one.scores.lower else "higher",
                "signature": one.scores.signature,
                "with_context": one.with_context,
                **_count_data(one.total),
                "by_category": [
                    {"category": each.category, **_count_data(each)}
                    for each in one.categories
                ],
                "outcomes": {
                    test.id: outcome.value
                    for test, outcome in zip(given.tests, one.outcomes, strict=True)
                },
            }
            for one in found
        ],
        "notes": radjudge_notes(given, found),
    }


def _count_data(one: RankingCount) -> dict[str, Any]:
    return {
        "strict": _share_data(one.strict),
        "tolerant": _share_data(one.tolerant),
        "without_a_score": one.unscored,
        "not_applicable": one.not_applicable,
    }


def _share_data(one: PassShare) -> dict[str, Any]:
    return {
        "passed": one.passed,
        "tests": one.tests,
        "share": one.value,
        "low": one.limits.low,
        "high": one.limits.high,
    }


def failed_rows(
    given: RadJudge, found: Sequence[RankingResult]
) -> list[tuple[str, ...]]:
    """Return a row for each test that a metric does not pass strictly."""
    rows = []
    for place, test in enumerate(given.tests):
        said = [one.outcomes[place] for one in found]
        if any(one is not RankingOutcome.PASSED for one in said):
            rows.append((test.id, test.category, *(one.value for one in said)))
    return rows
