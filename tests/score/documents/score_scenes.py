"""Scores made up for documents: records by hand, numbers that add up."""

from dataclasses import replace

import numpy as np

from loop.core.paths import bundled
from loop.labels.taxonomy import read_taxonomy
from loop.score.counting import Confused
from loop.score.metrics.base import Direction, Metric, Unavailable
from loop.score.metrics.score_sheet import MetricCorrelations, MetricResult, ScoreSheet
from loop.score.records import (
    CaseScore,
    Conventions,
    Coverage,
    ExtractorFacts,
    LabelScore,
    RanScore,
    ScoreReading,
    SystemDifference,
    SystemScore,
    Uncertain,
)
from loop.score.scoring import ScoreDocument, Sources
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate

CASES = 300
DIGEST = "3f2a" * 16
NAMES = {one.id: one.name for one in read_taxonomy(bundled() / "labels").labels}
LABELS = tuple(NAMES)
FACTS = ExtractorFacts(
    ref="extractor@v7", digest=DIGEST, engine="rules", identity="ab" * 32
)


def label_scores(missed, invented, uncertain=2):
    """Return 21 labels with 30 positives each; the last one has none at all."""
    n = CASES - uncertain
    scores = []
    for place, label in enumerate(LABELS):
        lost, made = min(missed + place, 30), invented + place // 4
        counts = Confusion(30 - lost, made, lost, n - 30 - made)
        if place == len(LABELS) - 1:
            counts = Confusion(0, 0, 0, n)
        scores.append(LabelScore(label, counts, uncertain, 0, counts.f1))
    return tuple(scores)


def system_score(name, rank, value, labels, *, perfect=1.0, conventions=None):
    """Return one system whose averages are near `value`."""
    rules = conventions or Conventions()
    return SystemScore(
        system=name,
        n=CASES,
        ran_score=Estimate(value, value - 0.04, value + 0.04),
        effective_labels=20,
        micro_f1=Estimate(value + 0.02, value - 0.01, value + 0.05),
        micro_precision=value,
        micro_recall=value,
        micro_accuracy=0.93,
        macro_precision=value,
        macro_recall=None,
        macro_accuracy=0.93,
        labels=labels,
        rank=rank,
        best=max(0.9 - 0.4 * (rank - 1), 0.0),
        perfect=perfect,
        readings=tuple(
            ScoreReading(policy, value + 0.01 * (2 * rank - 1) * place, 6258)
            for place, policy in enumerate(Uncertain)
        ),
        signature=(
            f"ran|extractor@v7:3f2a3f|rules:ababab|unc:{rules.uncertain.value}"
            f"|zd:{rules.zero_division}|nf:{rules.no_finding.value}|L:20/21|n:{CASES}"
        ),
    )


def ran_score(names, **others):
    """Return a ranking of the systems in the order of `names`."""
    systems = tuple(
        system_score(name, n + 1, 0.8 - 0.11 * n, label_scores(3 + 4 * n, 2 + 3 * n))
        for n, name in enumerate(names)
    )
    differences = tuple(
        SystemDifference(
            names[a],
            names[b],
            Estimate(0.11 * (b - a), 0.02, 0.11 * (b - a) + 0.09),
            0.0004,
            0.03,
            False,
        )
        for a in range(len(names))
        for b in range(a + 1, len(names))
    )
    cases = tuple(
        CaseScore(name, f"c{n:03}", 0.5, 2, (LABELS[n % 20],), (LABELS[5],), 21)
        for name in names
        for n in range(8)
    )
    fields = {
        "systems": systems,
        "differences": differences,
        "cases": cases,
        "conventions": Conventions(),
        "extractor": FACTS,
        "labels": LABELS,
        "n_cases": CASES,
        "n_patients": None,
        "resamples": 10_000,
        "permutations": 10_000,
        "seed": 0,
        "confidence": 0.95,
        "coverage": tuple(
            Coverage(name, CASES + 1, CASES - 2, ("c1", "c2"), ("x9",), (), ("c3",))
            for name in names
        ),
    }
    return RanScore(**{**fields, **others})


def metric(name, title, direction=Direction.HIGHER, low=0.0, high=1.0):
    """Return an entry of the registry that is never run."""
    return Metric(
        name=name,
        title=title,
        direction=direction,
        low=low,
        high=high,
        needs="",
        about="It measures something.",
        reference="Somebody. 2001.",
        score=lambda side, options: Unavailable(name, "never"),
    )


def sheet_of(names):
    """Return two metrics of three cases each and one that did not run."""
    metrics = (
        metric("ran_score", "Ran Score of the case"),
        metric("ran_errors", "Label errors", Direction.LOWER, 0.0, None),
    )
    results = tuple(
        MetricResult(
            one,
            name,
            Estimate(0.5, 0.4, 0.6),
            3,
            int(place),
            np.array([0.25, 0.5, np.nan]),
            f"{one.name}|v1",
            (),
        )
        for place, one in enumerate(metrics)
        for name in names
    )
    return ScoreSheet(
        systems=tuple(names),
        case_ids={name: ("c1", "c2", "c3") for name in names},
        results=results,
        unavailable=(Unavailable("bertscore", "no model: name one with --bert."),),
    )


def document_of(*names, score=None, **others):
    """Return the document of a few systems."""
    fields = {
        "score": score or ran_score(names),
        "names": NAMES,
        "sheet": sheet_of(names),
        "sources": Sources(
            (("ref.csv", DIGEST), ("a.csv", DIGEST)), ("c7",), {"en": 290, "zh": 10}
        ),
        "confused": tuple(
            Confused(name, LABELS[0], LABELS[5], 4, 7, 9, ("c000", "c020"))
            for name in names
        ),
        "correlations": MetricCorrelations(
            ("ran_score", "ran_errors"),
            np.array([[1.0, -0.9], [-0.9, 1.0]]),
            np.array([[6, 6], [6, 6]]),
        ),
        "outcomes": {"answered": 590, "unparsed": 1, "asked": 591},
    }
    return ScoreDocument(**{**fields, **others})


def under(rule, perfect, *names):
    """Return a document whose score has another zero division."""
    score = ran_score(names)
    systems = tuple(replace(one, perfect=perfect) for one in score.systems)
    rules = Conventions(zero_division=rule)
    return document_of(*names, score=replace(score, systems=systems, conventions=rules))
