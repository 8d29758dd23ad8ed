"""Sides, joined and graded pairs as small as a test of a metric needs."""

import numpy as np

from loop.core.paths import bundled
from loop.core.records import ValueCode
from loop.labels.taxonomy import read_taxonomy
from loop.score.metrics.base import MetricInput, MetricOptions
from loop.score.records import Coverage, Graded, Joined, PairSide

TAXONOMY = read_taxonomy(bundled() / "labels")
ALONE = MetricOptions(workers=1)

REFERENCE = (
    "The chest x-ray shows evidence of pneumonia. No pleural effusion is present."
)
CANDIDATE = "The lungs show infection, and a small pleural effusion is visible."
CODES = (
    ValueCode.PRESENT,
    ValueCode.ABSENT,
    ValueCode.UNCERTAIN,
    ValueCode.UNANSWERED,
    ValueCode.MISSING,
)


def make_side(references, candidates, *, language="en", codes=None):
    """Return a side of texts, with codes that say nothing unless given."""
    n = len(candidates)
    blank = np.zeros((n, len(TAXONOMY.ids)), np.int8)
    reference_codes, candidate_codes = codes or (blank, blank)
    return MetricInput(
        system="model",
        case_ids=tuple(f"c{place}" for place in range(n)),
        references=tuple(references),
        candidates=tuple(candidates),
        languages=(language,) * n,
        labels=TAXONOMY.ids,
        reference_codes=reference_codes,
        candidate_codes=candidate_codes,
        comparable=TAXONOMY.comparable,
    )


def make_codes(n_cases, seed, codes=CODES, shares=(3, 8, 1, 1, 1)):
    """Return random codes of all labels."""
    rng = np.random.default_rng(seed)
    chances = np.array(shares) / sum(shares)
    size = (n_cases, len(TAXONOMY.ids))
    return rng.choice(np.array(codes, np.int8), size=size, p=chances)


def make_pairs(n_cases=30, systems=("good", "poor"), *, texts=True, seed=0):
    """Return joined and graded cases.

    The first system lacks the first case; the second case has no finding.
    """
    rng = np.random.default_rng(seed)
    ids = tuple(f"c{place:03d}" for place in range(n_cases))
    vocabulary = (REFERENCE + " " + CANDIDATE).split()
    told = [" ".join(rng.choice(vocabulary, 12)) for _ in ids]
    reference = make_codes(n_cases, seed)
    reference[1:2] = 0
    candidates = np.stack(
        [make_codes(n_cases, seed + k + 1) for k in range(len(systems))]
    )
    candidates[0, 0] = -3
    columns = []
    for number, system in enumerate(systems):
        said = [" ".join(rng.choice(vocabulary, 9)) for _ in ids]
        if number == 0:
            said[0] = None
        columns.append(
            PairSide(
                name=system,
                texts=tuple(said) if texts else None,
                codes=None if texts else candidates[number],
            )
        )
    coverage = tuple(
        Coverage(system, n_cases, n_cases, ids[:1] if number == 0 else (), (), (), ())
        for number, system in enumerate(systems)
    )
    joined = Joined(
        case_ids=ids,
        reference=PairSide(
            name="reference",
            texts=tuple(told) if texts else None,
            codes=None if texts else reference,
        ),
        systems=tuple(columns),
        coverage=coverage,
        languages=("en",) * n_cases if texts else (),
    )
    graded = Graded(
        case_ids=ids,
        labels=TAXONOMY.ids,
        systems=systems,
        reference=reference,
        candidates=candidates,
    )
    return joined, graded
