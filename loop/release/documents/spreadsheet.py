"""The table of a release for a spreadsheet: one row per cohort and label."""

from __future__ import annotations

from collections.abc import Iterator

from loop.core.safe_text import format_csv
from loop.documents.tables import neutralise
from loop.release.facts import (
    FORMAT,
    ClaimedFacts,
    ClaimFacts,
    EvaluationFacts,
    KappaFacts,
    LabelFacts,
    RateFacts,
    ReleaseFacts,
)


def evaluation_table(facts: ReleaseFacts) -> bytes:
    """Return every label of every evaluation as CSV that no spreadsheet runs.

    Shares keep all their digits, so that they equal those of ``release.json``.
    The columns of the claim are filled on the cohort the claim is about; a number
    without meaning is an empty cell. A table once written must come out again byte for
    byte, as `verify` compares it: another column takes another format of releases.
    """
    rows = [
        dict(_row(facts.claim, evaluation, label))
        for evaluation in facts.evaluations
        for label in evaluation.labels
    ]
    columns = COLUMNS if facts.format == FORMAT else (*COLUMNS, "draws")
    if any(
        one.answered_uncertain
        for evaluation in facts.evaluations
        for one in evaluation.labels
    ):
        columns = (*columns, *_HEDGES)
    cells = [[_cell(row[name]) for name in columns] for row in rows]
    # A lone surrogate cannot be written in UTF-8; it is spelled out.
    return format_csv(columns, cells).encode("utf-8", "backslashreplace")


_RATES = ("accuracy", "sensitivity", "specificity", "kappa", "kappa_bootstrap")
COLUMNS = (
    *("cohort", "role", "run", "created", "label", "name", "verdict"),
    *("n", "tp", "fp", "fn", "tn"),
    *(f"{rate}{end}" for rate in _RATES for end in ("", "_low", "_high")),
    *("kappa_note", "f1"),
    *("uncertain_reference", "no_majority", "missing", "uncertain_predicted"),
    *("unparsed", "failed", "not_asked", "not_coded", "reasons", "needs"),
    *("p", "p_holm", "certified", "signature", "counts_digest"),
)
"""Header of the table; with ``draws``, over which counts are added up, in the format
of releases over several draws."""

_HEDGES = ("uncertain_of_positives", "uncertain_of_negatives")
"""Further columns under a protocol that says what an uncertain answer counts as."""


def _row(
    claim: ClaimFacts, evaluation: EvaluationFacts, label: LabelFacts
) -> Iterator[tuple[str, object]]:
    """Yield the name and value of every cell."""
    of_cohort = {"cohort", "role", "run", "created", "signature", "counts_digest"}
    yield "draws", evaluation.draws
    yield from evaluation.model_dump(include=of_cohort).items()
    counted = {"label", "name", "n", "tp", "fp", "fn", "tn", "f1", "not_coded"}
    yield from label.model_dump(include=counted).items()
    rates: tuple[RateFacts | KappaFacts, ...] = (
        *(label.accuracy, label.sensitivity, label.specificity),
        *(label.kappa, label.kappa_bootstrap),
    )
    for name, rate in zip(_RATES, rates, strict=True):
        yield from ((name, rate.value), (f"{name}_low", rate.low))
        yield f"{name}_high", rate.high
    yield "kappa_note", label.kappa.note
    yield from label.excluded.model_dump().items()
    yield from zip(_HEDGES, label.hedges, strict=True)
    yield from (("verdict", label.gate.verdict), ("needs", label.gate.needs))
    yield "reasons", "; ".join(label.gate.reasons)
    said = _find_claimed(claim, evaluation, label)
    certified = {True: "yes", False: "no"}
    yield "p", said.p if said else None
    yield "p_holm", said.p_holm if said else None
    decided = said.certified if said else None
    yield "certified", None if decided is None else certified[decided]


def _find_claimed(
    claim: ClaimFacts, evaluation: EvaluationFacts, label: LabelFacts
) -> ClaimedFacts | None:
    """Return what the claim says of a label; None where it is not about it."""
    if claim.cohort != evaluation.cohort:
        return None
    return next((one for one in claim.labels if one.label == label.label), None)


def _cell(value: object) -> str:
    return repr(value) if isinstance(value, float) else neutralise(value)
