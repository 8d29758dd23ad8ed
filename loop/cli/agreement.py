"""The verb ``agreement``: how far readers agree, and the human ceiling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    note,
    note_part,
    open_workspace,
    own_output,
    print_json,
    print_table,
    say,
)
from loop.core.files import write_atomic
from loop.core.nouns import counted
from loop.evaluate.ceiling import (
    Ceiling,
    CeilingRow,
    ReaderModelMeasure,
    read_ceiling,
)
from loop.labels.ballots import read_cohort_votes
from loop.labels.cohort import read_cohort, read_record
from loop.labels.reader_agreement import (
    AgreementReport,
    LabelAgreement,
    agreement_table,
    measure_agreement,
)
from loop.labels.reference import read_reference
from loop.labels.taxonomy import read_taxonomy
from loop.stats.intervals import Estimate


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("agreement")(agreement)


def agreement(
    cohort: Annotated[str, typer.Argument(help="Cohort with readers' votes.")],
    uncertain: Annotated[
        str,
        typer.Option("--uncertain", help="Uncertain votes: leave-out or category."),
    ] = "leave-out",
    resamples: Annotated[
        int, typer.Option("--resamples", min=100, help="Bootstrap resamples.")
    ] = 2000,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Also print every pair of readers.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Run to compare with the readers, e.g. latest."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", help="Write the readers' agreement, one row per label."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well readers agree, label by label.

    Reports Cohen's kappa between readers, Fleiss' kappa, Krippendorff's alpha, and
    each reader against the majority of the others, with 95 % intervals. With
    --against, a run is compared with the same majorities on the same cases.
    """
    if uncertain not in ("leave-out", "category"):
        raise typer.BadParameter("use leave-out or category", param_hint="--uncertain")
    place = open_workspace(workspace)
    if csv is not None:
        own_output(csv, place)
    with ProgressBar(f"agreement {cohort}", quiet=as_json).shown():
        taxonomy = read_taxonomy(place.labels)
        votes = read_cohort_votes(place, read_cohort(place, cohort), taxonomy)
        report = measure_agreement(
            votes,
            taxonomy,
            cohort=cohort,
            uncertain_is_category=uncertain == "category",
            resamples=resamples,
        )
        if csv is not None:
            write_atomic(csv, agreement_table(report))
            note(f"wrote {csv}")
        ceiling = read_ceiling(place, cohort, against) if against else None
    if ceiling:
        note_part(place, ceiling.run)
    if read_record(place, cohort).samples:
        kept = read_reference(place, cohort).sample
        if kept is not None:
            note(
                f"The cases read are those of value sample {kept.number}, drawn "
                "because they may fail: agreement on them is not weighted, and none of "
                "the cohort."
            )
    if as_json:
        data = _as_data(report)
        print_json({**data, "against": _ceiling_data(ceiling)} if ceiling else data)
        return
    _print(report, pairs=pairs)
    if ceiling:
        say()
        _print_ceiling(ceiling)


def _print_ceiling(ceiling: Ceiling) -> None:
    """Print the mean reader, the model and the difference, label by label."""
    print_table(
        [
            f"run {ceiling.run}",
            "n",
            "ties",
            "no answer",
            "accuracy: reader",
            "model",
            "difference",
            "kappa: reader",
            "model",
            "difference",
        ],
        [_cells(row) for row in (*ceiling.labels, ceiling.pooled)],
    )
    say()
    say(
        "Each reader, and the model, against the strict majority of the other readers, "
        "on the same comparisons; uncertain answers and votes are "
        f"{ceiling.policy.words}; {ceiling.resamples} resamples of {ceiling.units} "
        f"{ceiling.unit}s. ! : the model is above the mean reader."
    )
    for text in ceiling.warnings:
        say(f"note: {text}")


def _cells(row: CeilingRow) -> list[str]:
    counts = [str(n) for n in (row.comparisons, row.ties, row.unanswered)]
    return [row.name, *counts, *_beside(row.accuracy), *_beside(row.kappa)]


def _beside(measure: ReaderModelMeasure) -> list[str]:
    sign = "!" if measure.above else ""
    return [
        _measure(measure.reader.value),
        _measure(measure.model.value),
        sign + _signed(measure.difference),
    ]


def _measure(value: float | None) -> str:
    return "--" if value is None else f"{value:.3f}"


def _signed(estimate: Estimate) -> str:
    if estimate.value is None:
        return "--"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:+.3f}"
    return f"{estimate.value:+.3f} ({estimate.low:+.3f} to {estimate.high:+.3f})"


def _ceiling_data(ceiling: Ceiling) -> dict[str, Any]:
    """Return `ceiling` for ``--json``."""
    return {
        **asdict(ceiling),
        "pooled": _row_data(ceiling.pooled),
        "labels": [_row_data(row) for row in ceiling.labels],
        "warnings": list(ceiling.warnings),
    }


def _row_data(row: CeilingRow) -> dict[str, Any]:
    return {
        "label": row.label,
        "comparisons": row.comparisons,
        "no_majority": row.ties,
        "unanswered": row.unanswered,
        "above": row.above,
        "accuracy": _beside_data(row.accuracy),
        "kappa": _beside_data(row.kappa),
    }


def _beside_data(measure: ReaderModelMeasure) -> dict[str, Any]:
    return {
        "mean_reader": measure.reader._asdict(),
        "model": measure.model._asdict(),
        "difference": measure.difference._asdict(),
    }


def _print(report: AgreementReport, *, pairs: bool) -> None:
    entered = (
        "a third category for Fleiss and Krippendorff, left out elsewhere"
        if report.uncertain_is_category
        else "left out"
    )
    say(
        f"{report.cohort}: {counted(report.cases, 'case')}, "
        f"{counted(len(report.readers), 'reader')}; "
        f"uncertain votes are {entered}"
    )
    labels = (*report.labels, report.pooled)
    header = ["among readers", "votes", "present", "uncertain", "same", "Cohen, mean"]
    header += ["its range", "Fleiss", "Krippendorff"]
    print_table(header, [_among(label) for label in labels])
    say()
    print_table(
        ["one reader against the others", "accuracy, mean", "kappa, mean", "its range"],
        [_against(label) for label in labels],
    )
    say()
    print_table(
        ["all labels, by reader", "pairs", "no majority", "accuracy", "kappa"],
        [
            [
                report.readers[one.reader],
                str(one.n),
                str(one.ties),
                _estimate(one.accuracy),
                _estimate(one.kappa),
            ]
            for one in report.pooled.ceiling.readers
        ],
    )
    if pairs:
        say()
        _print_pairs(report)
    say()
    say(
        "In brackets: 95 % intervals (pairs and readers asymptotic or exact, the rest "
        f"bootstrap over cases, {report.resamples} resamples). -- : not estimable."
    )


def _print_pairs(report: AgreementReport) -> None:
    names = report.readers
    labels = (*report.labels, report.pooled)
    print_table(
        [
            "Cohen's kappa",
            *(f"{names[p.first]}-{names[p.second]}" for p in labels[0].pairs),
        ],
        [
            [label.name, *(_number(pair.kappa.value) for pair in label.pairs)]
            for label in labels
        ],
    )


def _among(label: LabelAgreement) -> list[str]:
    return [
        label.name,
        str(label.votes),
        str(label.present),
        str(label.uncertain),
        _number(label.raw),
        _estimate(label.mean_kappa),
        _range(pair.kappa for pair in label.pairs),
        _estimate(label.fleiss),
        _estimate(label.alpha),
    ]


def _against(label: LabelAgreement) -> list[str]:
    ceiling = label.ceiling
    return [
        label.name,
        _estimate(ceiling.accuracy),
        _estimate(ceiling.kappa),
        _range(one.kappa for one in ceiling.readers),
    ]


def _range(estimates: Iterable[Estimate]) -> str:
    known = [each.value for each in estimates if each.value is not None]
    return f"{min(known):.2f} to {max(known):.2f}" if known else "--"


def _number(value: float | None) -> str:
    return "--" if value is None else f"{value:.2f}"


def _estimate(estimate: Estimate) -> str:
    if estimate.value is None:
        return "--"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} ({estimate.low:.2f}-{estimate.high:.2f})"


def _as_data(report: AgreementReport) -> dict[str, Any]:
    return {
        "cohort": report.cohort,
        "cases": report.cases,
        "readers": list(report.readers),
        "uncertain_is_category": report.uncertain_is_category,
        "resamples": report.resamples,
        "pooled": _label_data(report.pooled, report.readers),
        "labels": [_label_data(label, report.readers) for label in report.labels],
    }


def _label_data(label: LabelAgreement, readers: tuple[str, ...]) -> dict[str, Any]:
    ceiling = label.ceiling
    return {
        "label": label.label,
        "votes": label.votes,
        "present": label.present,
        "uncertain": label.uncertain,
        "raw": label.raw,
        "pairs": [
            {
                "first": readers[pair.first],
                "second": readers[pair.second],
                "kappa": pair.kappa._asdict(),
                "n": pair.n,
            }
            for pair in label.pairs
        ],
        "mean_kappa": label.mean_kappa._asdict(),
        "fleiss": label.fleiss._asdict(),
        "krippendorff": label.alpha._asdict(),
        "ceiling": {
            "accuracy": ceiling.accuracy._asdict(),
            "kappa": ceiling.kappa._asdict(),
            "readers": [
                {
                    "reader": readers[one.reader],
                    "n": one.n,
                    "no_majority": one.ties,
                    "accuracy": one.accuracy._asdict(),
                    "kappa": one.kappa._asdict(),
                }
                for one in ceiling.readers
            ],
        },
    }
