"""From aligned codes to label results, averages and their intervals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.core.records import UncertainAnswers, ValueCode
from loop.evaluate.align import AlignedPairs, Codes
from loop.evaluate.gates import (
    GateVerdict,
    Hedges,
    LabelEvidence,
    PatientLimit,
    decide_gate,
)
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import (
    Average,
    Exclusions,
    LabelResult,
    Method,
    OpenAnswers,
    View,
)
from loop.labels.taxonomy import Taxonomy
from loop.stats.bootstrap import Average as Averaging
from loop.stats.bootstrap import bootstrap_accuracy, bootstrap_f1, bootstrap_kappa
from loop.stats.confusion import (
    Confusion,
    average_f1,
    count_confusions,
    effective_labels,
    micro_f1,
)
from loop.stats.intervals import Estimate, clopper_pearson, lower_limit
from loop.stats.kappa import cohen_kappa
from loop.stats.resampling import Bootstrap, DrawResampling

Units = NDArray[np.int64]
Counts = NDArray[np.int64]


def measure_labels(
    pairs: AlignedPairs,
    taxonomy: Taxonomy,
    protocol: Protocol,
    method: Method,
    units: Units,
    draws: int = 1,
    *,
    not_comparable: Mapping[str, str] = MappingProxyType({}),
) -> tuple[LabelResult, ...]:
    """Return the result of every label, in published order.

    Parameters
    ----------
    pairs
        The cases of each draw, one draw after the other, each in the same order.
    units
        Unit of each case, numbered from 0, shape ``(n_cases,)``.
    not_comparable
        Label id to why the reference cannot judge it: measured, and not judged.
    """
    truth, answers = pairs.binary_reference, pairs.answers_as(protocol.policy)
    tables = count_confusions(truth, answers)
    options = resample_draws(protocol, method, units, draws)
    kappas = bootstrap_kappa(truth, answers, **options)
    limits: list[tuple[PatientLimit | None, PatientLimit | None]]
    limits = [(None, None)] * len(pairs.labels)
    if protocol.rule == "lower" and method.units < len(units):
        limits = _patient_limits(pairs, protocol, len(units), options)
    return tuple(
        _label_result(
            taxonomy.find(label).name,
            pairs,
            protocol,
            column,
            _Measured(
                _confusion(tables[column]),
                kappas[column],
                *limits[column],
                draws,
                not_comparable.get(label, ""),
            ),
        )
        for column, label in enumerate(pairs.labels)
    )


def resample_draws(
    protocol: Protocol, method: Method, units: Units, draws: int = 1
) -> DrawResampling:
    """Return how the answers of `draws` draws, one after the other, are resampled.

    Parameters
    ----------
    units
        Unit of each case, shape ``(n_cases,)``.
    """
    options: DrawResampling = {
        "units": np.tile(units, draws),
        "resamples": method.resamples,
        "seed": method.seed,
        "confidence": protocol.confidence,
    }
    if draws > 1:
        options["draws"] = np.repeat(np.arange(draws), len(units))
    return options


def _patient_limits(
    pairs: AlignedPairs, protocol: Protocol, cases: int, options: DrawResampling
) -> list[tuple[PatientLimit | None, PatientLimit | None]]:
    """Return per label the limits of accuracy and sensitivity over patients."""
    truth, answer = pairs.binary_reference, pairs.answers_as(protocol.policy)
    positive = np.where(truth == 1, truth, -1).astype(np.int8)
    accuracy, sensitivity = (
        _limits_over_units(reference, answer, protocol, cases, options)
        for reference in (truth, positive)
    )
    return list(zip(accuracy, sensitivity, strict=True))


def _limits_over_units(
    reference: Codes,
    predicted: Codes,
    protocol: Protocol,
    cases: int,
    options: DrawResampling,
) -> list[PatientLimit | None]:
    """Return the lower limit per label from resampling units.

    Without an error every resample is the same: there the exact limit is taken with
    units in place of cases. None for a label none of whose units repeats.
    """
    two_sided: DrawResampling = {**options, "confidence": 2 * protocol.confidence - 1}
    estimates = bootstrap_accuracy(reference, predicted, **two_sided)
    units = np.asarray(options["units"])
    found: list[PatientLimit | None] = []
    for column, estimate in enumerate(estimates):
        scored = (reference[:, column] >= 0) & (predicted[:, column] >= 0)
        patients = len(np.unique(units[scored]))
        low = estimate.low
        if estimate.value == 1.0:
            low = lower_limit(patients, patients, confidence=protocol.confidence)
        repeats = patients < len(np.unique(np.flatnonzero(scored) % cases))
        found.append(PatientLimit(low, patients) if repeats else None)
    return found


class _Measured(NamedTuple):
    """What was measured over all labels at once, for one of them."""

    counts: Confusion
    kappa_bootstrap: Estimate
    accuracy_by_patient: PatientLimit | None
    sensitivity_by_patient: PatientLimit | None
    draws: int
    not_comparable: str


def _label_result(
    name: str,
    pairs: AlignedPairs,
    protocol: Protocol,
    column: int,
    measured: _Measured,
) -> LabelResult:
    """Return one label, judged."""
    counts, draws = measured.counts, measured.draws
    kappa = cohen_kappa(counts, confidence=protocol.confidence, draws=draws)
    excluded = count_exclusions(pairs, column, protocol.policy)
    hedges = _count_hedges(pairs, column)
    evidence = LabelEvidence(
        confusion=counts,
        kappa=kappa,
        kappa_bootstrap=measured.kappa_bootstrap,
        unanswered=excluded.by_answer - excluded.uncertain_predicted,
        usable=counts.n + excluded.by_answer,
        hedges=hedges if excluded.uncertain_predicted else Hedges(),
        asked=counts.n > 0 or excluded.not_asked == 0,
        accuracy_by_patient=measured.accuracy_by_patient,
        sensitivity_by_patient=measured.sensitivity_by_patient,
        draws=draws,
        not_comparable=measured.not_comparable,
    )
    return LabelResult(
        label=pairs.labels[column],
        name=name,
        confusion=counts,
        accuracy=clopper_pearson(
            counts.correct, counts.n, confidence=protocol.confidence, draws=draws
        ),
        kappa=kappa,
        kappa_bootstrap=measured.kappa_bootstrap,
        excluded=excluded,
        not_coded=_count_not_coded(pairs, column, protocol.policy),
        hedges=hedges,
        open_answers=_count_open(pairs, column),
        gate=decide_gate(evidence, protocol),
        draws=draws,
    )


def count_exclusions(
    pairs: AlignedPairs, column: int, policy: UncertainAnswers
) -> Exclusions:
    """Count why cases of the label in `column` are not scored, each case once."""
    reference, predicted = pairs.reference[:, column], pairs.predicted[:, column]
    usable = pairs.usable[:, column]

    def marked(code: int) -> int:
        return int(np.count_nonzero(reference == code))

    def answered(code: ValueCode) -> int:
        return int(np.count_nonzero(usable & (predicted == code)))

    return Exclusions(
        uncertain_reference=marked(ValueCode.UNCERTAIN),
        no_majority=marked(ValueCode.NO_MAJORITY),
        missing=marked(ValueCode.MISSING),
        uncertain_predicted=(
            answered(ValueCode.UNCERTAIN) if policy is UncertainAnswers.EXCLUDED else 0
        ),
        unparsed=answered(ValueCode.UNPARSED),
        failed=answered(ValueCode.FAILED),
        not_asked=answered(ValueCode.NOT_ASKED),
    )


def _count_not_coded(pairs: AlignedPairs, column: int, policy: UncertainAnswers) -> int:
    not_coded = pairs.reference[:, column] == ValueCode.NOT_CODED
    scored = pairs.answers_as(policy)[:, column] >= 0
    return int(np.count_nonzero(not_coded & scored))


def _count_hedges(pairs: AlignedPairs, column: int) -> Hedges:
    """Count the uncertain answers where the reference decides."""
    truth = pairs.binary_reference[:, column]
    uncertain = pairs.predicted[:, column] == ValueCode.UNCERTAIN
    present, absent = (int((uncertain & (truth == code)).sum()) for code in (1, 0))
    return Hedges(present, absent)


def _count_open(pairs: AlignedPairs, column: int) -> OpenAnswers:
    """Count how the cases are answered that the reference calls uncertain."""
    open_cases = pairs.reference[:, column] == ValueCode.UNCERTAIN
    answers = pairs.predicted[open_cases, column]
    present, absent, uncertain = (
        int((answers == code).sum())
        for code in (ValueCode.PRESENT, ValueCode.ABSENT, ValueCode.UNCERTAIN)
    )
    unanswered = len(answers) - present - absent - uncertain
    return OpenAnswers(present, absent, uncertain, unanswered)


def measure_averages(
    pairs: AlignedPairs,
    protocol: Protocol,
    method: Method,
    units: Units,
    draws: int = 1,
    *,
    not_comparable: Collection[str] = (),
) -> tuple[Average, Average, Average]:
    """Return macro-F1, macro-F1 over supported labels, and micro-F1.

    Parameters
    ----------
    pairs, units
        As for `measure_labels`.
    not_comparable
        Labels that the reference cannot judge; no average counts them.
    """
    reference, predicted = pairs.binary_reference, pairs.answers_as(protocol.policy)
    counts = count_confusions(reference, predicted)
    positives = counts[:, 0] + counts[:, 2]
    every = comparable_labels(pairs.labels, not_comparable)
    enough = every & (positives >= max(protocol.min_positives, 1) * draws)
    options = resample_draws(protocol, method, units, draws)

    def average(name: str, chosen: NDArray[np.bool_], kind: Averaging) -> Average:
        score = measure_f1(
            reference[:, chosen], predicted[:, chosen], average=kind, **options
        )
        return Average(
            name=name, score=score, labels=int(effective_labels(counts[chosen]))
        )

    return (
        average("macro-F1", every, "macro"),
        average("macro-F1, supported labels", enough, "macro"),
        average("micro-F1", every, "micro"),
    )


def comparable_labels(
    labels: Sequence[str], not_comparable: Collection[str]
) -> NDArray[np.bool_]:
    """Return which of `labels` the reference can judge, shape ``(n_labels,)``."""
    return np.array([label not in not_comparable for label in labels], dtype=bool)


def measure_f1(
    reference: Codes,
    predicted: Codes,
    *,
    average: Averaging = "macro",
    weights: NDArray[np.float64] | None = None,
    **resampling: Unpack[DrawResampling],
) -> Bootstrap:
    """Return the F1 over labels as every page and document shows it.

    Parameters
    ----------
    reference, predicted
        Codes 1 present, 0 absent, -1 excluded, shape ``(n_cases, n_labels)``, the cases
        in the order of the run: the draws go by it.
    average
        ``"macro"`` or ``"micro"``.
    weights
        For how many cases each stands; None: for itself.
    **resampling
        As for `bootstrap_f1`; what is not given is as in an evaluation.
    """
    method = Method()
    given: DrawResampling = {
        "resamples": method.resamples,
        "seed": method.seed,
        **resampling,
    }
    if not reference.size:
        return Bootstrap(None, None, None, given["resamples"], 0)
    return bootstrap_f1(reference, predicted, average=average, weights=weights, **given)


def measure_views(
    pairs: AlignedPairs,
    taxonomy: Taxonomy,
    protocol: Protocol,
    method: Method,
    units: Units,
    draws: int = 1,
    *,
    labels: Sequence[LabelResult],
    not_comparable: Mapping[str, str] = MappingProxyType({}),
) -> tuple[View, ...]:
    """Return what every policy for uncertain answers gives, the protocol's first.

    Parameters
    ----------
    pairs, taxonomy, protocol, method, units, draws, not_comparable
        As for `measure_labels`.
    labels
        What it returned.
    """
    chosen = protocol.policy
    others = [policy for policy in UncertainAnswers if policy is not chosen]
    views = [_view(pairs, chosen, labels)]
    for policy in others:
        results = labels
        if any(one.hedges.total for one in labels):
            results = measure_labels(
                pairs,
                taxonomy,
                protocol.under(policy),
                method,
                units,
                draws,
                not_comparable=not_comparable,
            )
        views.append(_view(pairs, policy, results))
    return tuple(views)


def _view(
    pairs: AlignedPairs, policy: UncertainAnswers, labels: Sequence[LabelResult]
) -> View:
    verdicts = tuple(one.gate.verdict for one in labels)
    counts = count_confusions(pairs.binary_reference, pairs.answers_as(policy))
    counts = counts[[one is not GateVerdict.NOT_COMPARABLE for one in verdicts]]
    accuracies = [_confusion(row).accuracy for row in counts]
    known = [share for share in accuracies if share is not None]
    defined = len(counts) > 0 and int(effective_labels(counts)) > 0
    return View(
        policy=policy,
        macro_f1=_number(average_f1(counts, zero_division="skip")) if defined else None,
        micro_f1=_number(micro_f1(counts)) if defined else None,
        accuracy=sum(known) / len(known) if known else None,
        scored=int(counts.sum()),
        verdicts=verdicts,
    )


class Clusters(NamedTuple):
    """What the bootstrap resamples as wholes."""

    unit: str
    """``"patient"`` or ``"case"``."""

    units: Units
    """Unit of each case, numbered from 0."""

    known: int
    """Cases whose patient is known."""

    @property
    def total(self) -> int:
        """Number of units."""
        return len(np.unique(self.units))


def resampling_units(patients: Sequence[str]) -> Clusters:
    """Return the unit of each case: its patient, or itself where that is unknown.

    Units are numbered as they first appear: the pseudonyms of patients differ between
    workspaces, and an interval must not.
    """
    numbers: dict[str | int, int] = {}
    codes = [
        numbers.setdefault(patient or case, len(numbers))
        for case, patient in enumerate(patients)
    ]
    known = sum(map(bool, patients))
    unit = "patient" if known else "case"
    return Clusters(unit, np.array(codes, dtype=np.int64), known)


def _confusion(row: NDArray[np.int64]) -> Confusion:
    return Confusion(*(int(count) for count in row))


def _number(value: object) -> float | None:
    number = float(np.asarray(value, dtype=float))
    return None if np.isnan(number) else number
