"""How far readers agree, and how well one reader meets the consensus of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.records import ValueCode
from loop.documents.tables import format_rows
from loop.labels.ballots import Votes
from loop.labels.taxonomy import Taxonomy
from loop.stats.intervals import Estimate
from loop.stats.kappa import (
    LeaveOneOut,
    PairAgreement,
    leave_one_out,
    mean_pairwise_kappa,
    pairwise_kappas,
)
from loop.stats.reliability import UNRATED, fleiss_kappa, krippendorff_alpha

POOLED = "all"
"""Id of the row that takes all labels together."""

_UNSURE = 2
"""Uncertain votes as a category of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAgreement:
    """Agreement of the readers on one label."""

    label: str
    """Label id, or `POOLED`."""

    name: str
    votes: int
    """Votes on this label, uncertain ones included."""

    present: int
    """Votes for present."""

    uncertain: int
    """Votes for uncertain."""

    raw: float | None
    """Share of reader pairs that say the same; None without a pair."""

    pairs: tuple[PairAgreement, ...]
    """Cohen's kappa of every pair of readers."""

    mean_kappa: Estimate
    """Mean of Cohen's kappa over the pairs, with a bootstrap interval over cases."""

    fleiss: Estimate
    alpha: Estimate
    """Krippendorff's alpha, nominal."""

    ceiling: LeaveOneOut
    """Each reader against the majority of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementReport:
    """Agreement of the readers of one cohort, label by label."""

    cohort: str
    cases: int
    readers: tuple[str, ...]
    uncertain_is_category: bool
    """Whether uncertain votes entered Fleiss and Krippendorff as a third category."""

    resamples: int
    pooled: LabelAgreement
    """All labels together, cases resampled as wholes."""

    labels: tuple[LabelAgreement, ...]


def measure_agreement(
    votes: Votes,
    taxonomy: Taxonomy,
    *,
    cohort: str,
    uncertain_is_category: bool = False,
    resamples: int = 2000,
) -> AgreementReport:
    """Return the agreement of readers on every label and on all together.

    Uncertain votes are left out pair by pair; with `uncertain_is_category` they are a
    third category for Fleiss and Krippendorff. Cohen's kappas and the comparison with
    the other readers always look at decided votes only.

    Raises
    ------
    DataError
        There is only one reader.
    """
    if len(votes.readers) < 2:
        raise DataError(
            f"cohort {cohort!r} has votes of one reader only. Agreement needs two: add "
            f"the votes of another with `ranloop cohort votes {cohort} FILE`."
        )
    cases = np.arange(len(votes.case_ids))

    def measure(label: str, name: str, units: NDArray[np.intp]) -> LabelAgreement:
        rated = _ratings(votes, label)
        return _measure(
            label,
            name,
            rated,
            rated if uncertain_is_category else _decided(rated),
            units=units,
            resamples=resamples,
        )

    pooled_units = np.tile(cases, len(votes.labels))
    return AgreementReport(
        cohort=cohort,
        cases=len(votes.case_ids),
        readers=votes.readers,
        uncertain_is_category=uncertain_is_category,
        resamples=resamples,
        pooled=measure(POOLED, "All labels", pooled_units),
        labels=tuple(
            measure(label, taxonomy.find(label).name, cases) for label in votes.labels
        ),
    )


def _ratings(votes: Votes, label: str) -> NDArray[np.int8]:
    """Return the ratings of one label, or of all, label after label."""
    labels = votes.labels if label == POOLED else (label,)
    return np.concatenate([votes.ratings(each, uncertain=_UNSURE) for each in labels])


def _decided(rated: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the ratings with uncertain ones left out."""
    return np.where(rated == _UNSURE, UNRATED, rated).astype(np.int8)


def _measure(
    label: str,
    name: str,
    rated: NDArray[np.int8],
    entered: NDArray[np.int8],
    *,
    units: NDArray[np.intp],
    resamples: int,
) -> LabelAgreement:
    """Return the agreement on a label; `entered` goes into Fleiss and Krippendorff."""
    decided = _decided(rated)
    return LabelAgreement(
        label=label,
        name=name,
        votes=int((rated != UNRATED).sum()),
        present=int((rated == ValueCode.PRESENT).sum()),
        uncertain=int((rated == _UNSURE).sum()),
        raw=_raw_agreement(decided),
        pairs=tuple(pairwise_kappas(decided)),
        mean_kappa=mean_pairwise_kappa(decided, units=units, resamples=resamples),
        fleiss=fleiss_kappa(entered, units=units, resamples=resamples),
        alpha=krippendorff_alpha(entered, units=units, resamples=resamples),
        ceiling=leave_one_out(decided, units=units, resamples=resamples),
    )


def _raw_agreement(decided: NDArray[np.int8]) -> float | None:
    """Return agreeing pairs of votes over all pairs of votes on the same case."""
    said = [(decided == code).sum(axis=1) for code in (1, 0)]
    agreeing = sum(int((n * (n - 1)).sum()) for n in said)
    given = said[0] + said[1]
    pairs = int((given * (given - 1)).sum())
    return agreeing / pairs if pairs else None


def agreement_table(report: AgreementReport) -> str:
    """Return one row per label and one for all together, as CSV.

    The last columns are Cohen's kappa of every pair of readers. An estimate that has
    no meaning is an empty cell, with its reason beside.
    """
    labels = (*report.labels, report.pooled)
    return format_rows([dict(_agreement(report, one)) for one in labels])


def _agreement(
    report: AgreementReport, one: LabelAgreement
) -> Iterator[tuple[str, object]]:
    yield from (("label", one.label), ("name", one.name), ("cohort", report.cohort))
    yield from (("votes", one.votes), ("present", one.present))
    yield from (("uncertain", one.uncertain), ("same", one.raw))
    yield from _estimate("cohen_mean", one.mean_kappa)
    yield from _estimate("fleiss", one.fleiss)
    yield from _estimate("krippendorff", one.alpha)
    yield from _estimate("reader_accuracy_mean", one.ceiling.accuracy)
    yield from _estimate("reader_kappa_mean", one.ceiling.kappa)
    for reader in one.ceiling.readers:
        yield f"kappa {report.readers[reader.reader]} / others", reader.kappa.value
    for pair in one.pairs:
        first, second = report.readers[pair.first], report.readers[pair.second]
        yield f"kappa {first} / {second}", pair.kappa.value


def _estimate(name: str, estimate: Estimate) -> Iterator[tuple[str, object]]:
    yield from ((name, estimate.value), (f"{name}_low", estimate.low))
    yield from ((f"{name}_high", estimate.high), (f"{name}_note", estimate.note))
