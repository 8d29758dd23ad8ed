"""From aligned codes to label results, averages and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.evaluate.gates import Evidence, judge_label
from loop.evaluate.pairs import Answer, Codes, Pairs
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import Average, Exclusions, LabelResult, Method, View
from loop.labels.reference import MISSING, NO_MAJORITY, NOT_CODED, UNCERTAIN
from loop.labels.taxonomy import Taxonomy
from loop.stats.agreement import cohen_kappa
from loop.stats.bootstrap import Bootstrap, bootstrap_f1, bootstrap_kappa
from loop.stats.confusion import (
    Confusion,
    average_f1,
    count_confusions,
    effective_labels,
    micro_f1,
)
from loop.stats.intervals import Estimate, clopper_pearson

Units = NDArray[np.int64]
Counts = NDArray[np.int64]


def measure_labels(
    pairs: Pairs, taxonomy: Taxonomy, protocol: Protocol, method: Method, units: Units
) -> tuple[LabelResult, ...]:
    """Return the result of every label, in published order."""
    tables = _tables(pairs)
    kappas = bootstrap_kappa(
        pairs.binary_reference,
        pairs.binary_predicted,
        units=units,
        resamples=method.resamples,
        seed=method.seed,
        confidence=protocol.confidence,
    )
    return tuple(
        _label_result(
            taxonomy.find(label).name, pairs, protocol, column, (tables, kappas[column])
        )
        for column, label in enumerate(pairs.labels)
    )


class _Tables(NamedTuple):
    """Counts per label under each reading of uncertain answers."""

    scored: Counts
    as_absent: Counts
    as_present: Counts


def _tables(pairs: Pairs) -> _Tables:
    reference = pairs.binary_reference
    return _Tables(
        count_confusions(reference, pairs.binary_predicted),
        count_confusions(reference, pairs.read_uncertain_as(Answer.ABSENT)),
        count_confusions(reference, pairs.read_uncertain_as(Answer.PRESENT)),
    )


def _label_result(
    name: str,
    pairs: Pairs,
    protocol: Protocol,
    column: int,
    measured: tuple[_Tables, Estimate],
) -> LabelResult:
    """Return one label: `measured` are the count tables and its bootstrapped kappa."""
    tables, kappa_bootstrap = measured
    counts = _confusion(tables.scored[column])
    kappa = cohen_kappa(counts, confidence=protocol.confidence)
    excluded = count_exclusions(pairs, column)
    evidence = Evidence(
        confusion=counts,
        kappa=kappa,
        kappa_bootstrap=kappa_bootstrap,
        unanswered=excluded.by_answer - excluded.uncertain_predicted,
        usable=counts.n + excluded.by_answer,
        asked=counts.n > 0 or excluded.not_asked == 0,
    )
    return LabelResult(
        label=pairs.labels[column],
        name=name,
        confusion=counts,
        accuracy=clopper_pearson(
            counts.correct, counts.n, confidence=protocol.confidence
        ),
        kappa=kappa,
        kappa_bootstrap=kappa_bootstrap,
        excluded=excluded,
        not_coded=_count_not_coded(pairs, column),
        as_absent=_confusion(tables.as_absent[column]),
        as_present=_confusion(tables.as_present[column]),
        gate=judge_label(evidence, protocol),
    )


def count_exclusions(pairs: Pairs, column: int) -> Exclusions:
    """Count why cases of the label in `column` are not scored, each case once."""
    reference, predicted = pairs.reference[:, column], pairs.predicted[:, column]
    usable = pairs.usable[:, column]

    def marked(code: int) -> int:
        return int(np.count_nonzero(reference == code))

    def answered(code: Answer) -> int:
        return int(np.count_nonzero(usable & (predicted == code)))

    return Exclusions(
        uncertain_reference=marked(UNCERTAIN),
        no_majority=marked(NO_MAJORITY),
        missing=marked(MISSING),
        uncertain_predicted=answered(Answer.UNCERTAIN),
        unparsed=answered(Answer.UNPARSED),
        failed=answered(Answer.FAILED),
        not_asked=answered(Answer.NOT_ASKED),
    )


def _count_not_coded(pairs: Pairs, column: int) -> int:
    not_coded = pairs.reference[:, column] == NOT_CODED
    return int(np.count_nonzero(not_coded & (pairs.predicted[:, column] >= 0)))


def measure_averages(
    pairs: Pairs, protocol: Protocol, method: Method, units: Units
) -> tuple[Average, Average, Average]:
    """Return macro-F1, macro-F1 over supported labels, and micro-F1."""
    reference, predicted = pairs.binary_reference, pairs.binary_predicted
    counts = count_confusions(reference, predicted)
    positives = counts[:, 0] + counts[:, 2]
    enough = positives >= max(protocol.min_positives, 1)

    def average(name: str, kind: str, chosen: NDArray[np.bool_]) -> Average:
        score = _bootstrap(reference[:, chosen], predicted[:, chosen], kind)
        return Average(
            name=name, score=score, labels=int(effective_labels(counts[chosen]))
        )

    def _bootstrap(left: Codes, right: Codes, kind: str) -> Bootstrap:
        if not left.size:
            return Bootstrap(None, None, None, method.resamples, 0)
        return bootstrap_f1(
            left,
            right,
            units=units,
            resamples=method.resamples,
            seed=method.seed,
            average="macro" if kind == "macro" else "micro",
            confidence=protocol.confidence,
        )

    every = np.ones(len(pairs.labels), dtype=bool)
    return (
        average("macro-F1", "macro", every),
        average("macro-F1, supported labels", "macro", enough),
        average("micro-F1", "micro", every),
    )


def measure_views(pairs: Pairs) -> tuple[View, ...]:
    """Return the averages with uncertain answers left out, read as absent, as present.

    A prompt can hide its errors behind "uncertain"; it cannot in all three.
    """
    tables = _tables(pairs)
    return (
        _view("excluded", tables.scored),
        _view("absent", tables.as_absent),
        _view("present", tables.as_present),
    )


def _view(reading: str, counts: Counts) -> View:
    accuracies = [_confusion(row).accuracy for row in counts]
    known = [share for share in accuracies if share is not None]
    defined = int(effective_labels(counts)) > 0
    return View(
        reading=reading,
        macro_f1=_number(average_f1(counts, zero_division="skip")) if defined else None,
        micro_f1=_number(micro_f1(counts)) if defined else None,
        accuracy=sum(known) / len(known) if known else None,
        scored=int(counts.sum()),
    )


def resampling_units(patients: Sequence[str]) -> tuple[str, Units]:
    """Return what to resample and the unit of each case.

    Patients when every case has one, else cases. Patients are numbered as they first
    appear: their pseudonyms differ between workspaces, and an interval must not.
    """
    if patients and all(patients):
        numbers: dict[str, int] = {}
        codes = [numbers.setdefault(one, len(numbers)) for one in patients]
        return "patient", np.array(codes, dtype=np.int64)
    return "case", np.arange(len(patients), dtype=np.int64)


def _confusion(row: NDArray[np.int64]) -> Confusion:
    return Confusion(*(int(count) for count in row))


def _number(value: object) -> float | None:
    number = float(np.asarray(value, dtype=float))
    return None if np.isnan(number) else number
