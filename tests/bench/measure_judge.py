"""The embedded judge against three radiologists on the RadPref cases.

Run: ``python -m tests.bench.measure_judge``; needs RANLOOP_DATA. Prints tau-b with the
mean rating, how many pairs of candidates are ordered as by the mean rating, and the F1
of each kind of error against the readers' median count of significant errors (VERT,
appendix C: true positives are the sum of the smaller counts).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from loop.core.paths import WorkspacePaths, bundled
from loop.engines.rules.cues import read_cues
from loop.engines.rules.judging import GreenCategory, judge_pair
from loop.engines.rules.report_findings import FindingReader
from loop.engines.rules.weights import read_judging
from loop.labels.importing.radpref_files import (
    SLOTS,
    Case,
    Judged,
    find_cases,
    find_raters,
    read_cases,
    read_rater,
)
from loop.prompts.catalog import read_version
from loop.stats.correlation import correlate, preference_accuracy

SERIOUS = {"urgent", "actionable_not_urgent"}
KINDS = {
    "false finding": (GreenCategory.FALSE_FINDING,),
    "omission": (GreenCategory.OMISSION,),
    "attribute": (
        GreenCategory.LOCATION,
        GreenCategory.SEVERITY,
        GreenCategory.COMPARISON,
        GreenCategory.OMITTED_CHANGE,
    ),
}


class Candidate(NamedTuple):
    """One candidate, as judged by people and by the judge."""

    case: Case
    text: str
    rating: float
    counts: tuple[float, ...]
    """Median over the readers of significant errors of each kind."""


def count_of(judged: Judged) -> tuple[int, int, int]:
    """Return the significant false, missing and attribute errors of one reader."""
    errors = judged.finding_errors.values()
    return (
        sum(
            one.error_type == "false" and one.clinical_significance in SERIOUS
            for one in errors
        ),
        sum(
            one.clinical_significance in SERIOUS
            for one in judged.missing_findings.values()
        ),
        sum("significant" in one.attributes.values() for one in errors),
    )


def candidates(folder: Path) -> list[Candidate]:
    """Return the candidates that every reader judged, two for each case."""
    raters = [read_rater(path) for path in find_raters(folder)]
    found = []
    for case in read_cases(find_cases(folder)):
        for slot in SLOTS:
            said = [getattr(one.annotations[case.id], slot) for one in raters]
            counts = [count_of(one) for one in said]
            found.append(
                Candidate(
                    case,
                    case.text(slot),
                    sum(one.rating for one in said) / len(said),
                    tuple(median(column) for column in zip(*counts, strict=True)),
                )
            )
    return found


def make_reader(memo: int = 50_000) -> FindingReader:
    """Return a reader of the newest shipped extractor."""
    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    cues = read_cues(bundled() / "labels")
    return FindingReader(version.guides, cues, read_judging(), memo=memo)


def f1(human: Sequence[float], judge: Sequence[float]) -> float:
    """Return micro F1 of counts."""
    true = sum(map(min, human, judge))
    total = sum(human) + sum(judge)
    return 2 * true / total if total else 0.0


class Measured(NamedTuple):
    """How well the judge agrees with people."""

    tau_b: float | None
    right: int
    wrong: int
    tied: int
    f1: Mapping[str, float]
    """By kind of error."""


def measure(people: Sequence[Candidate], reader: FindingReader) -> Measured:
    """Return how well a reader's judgements agree with people's."""
    said = [
        judge_pair(reader, one.case.ground_truth_report, one.text) for one in people
    ]
    ratings = np.array([one.rating for one in people])
    scores = np.array([one.score for one in said])
    tau = correlate(scores, ratings).tau_b.value
    # The two candidates of a case follow each other.
    order = preference_accuracy(scores.reshape(-1, 2), ratings.reshape(-1, 2))
    kinds = {
        kind: f1(
            [one.counts[place] for one in people],
            [one.count(*categories) for one in said],
        )
        for place, (kind, categories) in enumerate(KINDS.items())
    }
    return Measured(tau, order.right, order.wrong, order.tied, kinds)


def main() -> None:
    """Print the measurement."""
    data = os.environ.get("RANLOOP_DATA")
    if not data:
        raise SystemExit("set RANLOOP_DATA to a folder that holds RadPref as radpref")
    people = candidates(Path(data) / "radpref")
    found = measure(people, make_reader())
    print(
        f"{len(people)} candidates: tau-b {found.tau_b:.4f}; pairs "
        f"{found.right} right, {found.wrong} wrong, {found.tied} tied; F1 "
        + ", ".join(f"{kind} {value:.3f}" for kind, value in found.f1.items())
    )


if __name__ == "__main__":
    main()
