"""Tables for a spreadsheet: readers' agreement, failing cases, versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from loop.core.safe_text import format_csv
from loop.evaluate.failures import Failures
from loop.evaluate.history import VersionScore
from loop.labels.agreement import AgreementReport, LabelAgreement
from loop.report.evaluation_text import neutralise
from loop.stats.intervals import Estimate

_FAILURES = (
    *("case_id", "label", "kind", "predicted", "reference", "spans", "problem"),
    *("on_run", "on_cohort"),
)
"""As in a table of verdicts: it can be filled in and sent back as one."""


def agreement_table(report: AgreementReport) -> str:
    """Return one row per label and one for all together, as CSV.

    The last columns are Cohen's kappa of every pair of readers. An estimate that has
    no meaning is an empty cell, with its reason beside.
    """
    labels = (*report.labels, report.pooled)
    return _written([dict(_agreement(report, one)) for one in labels])


def failures_table(
    found: Failures,
    beside: Mapping[tuple[str, str], Mapping[str, object]] = MappingProxyType({}),
) -> str:
    """Return one row per failing case and label as CSV; ids and places, no text.

    Parameters
    ----------
    beside
        Case and label to further cells, the same of every row: why it is worth a look,
        or the private text that was asked for.
    """
    rows = [
        {
            "case_id": row.case_id,
            "label": row.label,
            "kind": row.kind.value,
            "predicted": row.predicted.value if row.predicted else "",
            "reference": row.reference.value if row.reference else "",
            "spans": " ".join(f"{start}-{end}" for start, end in row.spans),
            "problem": row.problem,
            "on_run": found.run_id,
            "on_cohort": found.cohort,
            **beside.get((row.case_id, row.label), {}),
        }
        for row in found.rows
    ]
    return _written(rows, (*_FAILURES, *next(iter(beside.values()), ())))


def history_table(scores: Sequence[VersionScore]) -> str:
    """Return one row per version or draft and cohort as CSV, as they are given."""
    return _written([_version(one) for one in scores])


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


def _version(one: VersionScore) -> dict[str, object]:
    return {
        "ref": one.ref,
        "status": one.status.value,
        "digest": one.digest,
        "parent": one.parent,
        "when": one.when,
        "who": one.who,
        "why": one.why,
        "verdicts": one.verdicts,
        "objections": "; ".join(one.objections),
        "cohort": one.cohort,
        "reference": one.reference,
        "run": one.run,
        "macro_f1": one.macro_f1,
        "labels_passed": one.labels_passed,
        "labels_failed": one.labels_failed,
        "labels_insufficient": one.labels_insufficient,
        "comparable": "yes" if one.comparable else "no",
        "signature": one.signature,
    }


def _written(rows: Sequence[Mapping[str, object]], names: Sequence[str] = ()) -> str:
    """Return rows as CSV that no spreadsheet runs; the header stands in any case."""
    header = names or list(dict.fromkeys(name for row in rows for name in row))
    return format_csv(
        [neutralise(name) for name in header],
        ([neutralise(row.get(name)) for name in header] for row in rows),
    )
