"""Small made-up runs: outcomes and references built directly, no engine needed."""

from collections.abc import Mapping, Sequence

import numpy as np

from loop.core.paths import bundled
from loop.core.records import Field, Outcome, Span, Status, Value
from loop.evaluate.align import align
from loop.evaluate.inputs import Inputs
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import CohortFacts, RunFacts
from loop.labels.reference import Reference
from loop.labels.taxonomy import Taxonomy, read_taxonomy

TAXONOMY: Taxonomy = read_taxonomy(bundled() / "labels")
WORDS = {1: Value.PRESENT, 0: Value.ABSENT, -1: Value.UNCERTAIN}


def outcome(
    case_id: str, answers: Mapping[str, int | Value], **others: object
) -> Outcome:
    """Return an answered outcome: absent except for `answers`."""
    values = {label: Value.ABSENT for label in TAXONOMY.extracted}
    values |= {label: WORDS.get(v, v) for label, v in answers.items()}
    fields = {
        label: Field(value, (Span(0, 4),) if value is Value.PRESENT else ())
        for label, value in values.items()
    }
    return Outcome(
        item_id=case_id,
        status=Status(str(others.get("status", "answered"))),
        fields=fields,
    )


def silent(case_id: str, status: Status = Status.UNPARSED) -> Outcome:
    """Return an outcome without any answer."""
    return Outcome(item_id=case_id, status=status, problem="no JSON object found")


def reference(
    rows: Mapping[str, Mapping[str, int]], labels: Sequence[str] | None = None
) -> Reference:
    """Return a reference: absent except for `rows` (case id to label to code)."""
    columns = tuple(labels or TAXONOMY.ids)
    marks = [[row.get(label, 0) for label in columns] for row in rows.values()]
    return Reference(
        cohort="made_up",
        number=1,
        digest="r" * 64,
        case_ids=tuple(rows),
        labels=columns,
        marks=np.array(marks, dtype=np.int8).reshape(len(rows), len(columns)),
    )


def inputs(
    outcomes: Sequence[Outcome],
    standard: Reference,
    *,
    protocol: Protocol | None = None,
    run: str = "20260105-090000-aaaaaa",
    prompt: str = "extractor@v1",
    **cohort: object,
) -> Inputs:
    """Return what an evaluation reads, for `outcomes` against `standard`."""
    facts = {
        "name": "made_up",
        "role": "dev",
        "source": "written for these tests",
        "licence": "none",
        "language": "en",
        "digest": "c" * 64,
        "cases": len(standard.case_ids),
        "reference": standard.number,
        "reference_digest": standard.digest,
    }
    patients = cohort.pop("patients", ("",) * len(outcomes))
    return Inputs(
        run=RunFacts(
            run_id=run,
            created="2026-01-05T09:00:00Z",
            prompt=prompt,
            prompt_digest="3f2a1b" + "0" * 58,
            engine="rules",
            manifest={"run_id": run, "python": "3.11"},
        ),
        cohort=CohortFacts(**{**facts, **cohort}),
        pairs=align(outcomes, standard, TAXONOMY),
        patients=tuple(patients),
        taxonomy=TAXONOMY,
        protocol=protocol or Protocol(),
        protocol_digest="p" * 64,
    )


def random_run(
    n: int = 300, *, seed: int = 0, noise: float = 1.0
) -> tuple[list[Outcome], Reference]:
    """Return a plausible run: the same reference for the same seed.

    `noise` scales how often answers are wrong, so that two calls with the same seed
    make two runs of different quality on the same cases.
    """
    rng = np.random.default_rng(seed)
    labels = TAXONOMY.extracted
    prevalence = rng.beta(0.8, 6.0, len(labels))
    error = rng.uniform(0.005, 0.12, len(labels))
    truth = (rng.random((n, len(labels))) < prevalence).astype(int)
    flip = rng.random((n, len(labels))) < error * noise
    answers = np.where(flip, 1 - truth, truth)
    hedged = rng.random((n, len(labels))) < 0.015
    answers = np.where(hedged, -1, answers)
    open_marks = rng.random((n, len(labels))) < 0.02
    marks = np.where(open_marks, -1, truth)
    ids = [f"case-{number:04d}" for number in range(1, n + 1)]
    outcomes = [
        outcome(case_id, dict(zip(labels, map(int, row), strict=True)))
        for case_id, row in zip(ids, answers, strict=True)
    ]
    rows = {
        case_id: dict(zip(labels, map(int, row), strict=True))
        for case_id, row in zip(ids, marks, strict=True)
    }
    for row in rows.values():
        row["no_finding"] = int(not any(row.values()))
    outcomes[7] = silent(ids[7])
    return outcomes, reference(rows)
