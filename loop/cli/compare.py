"""The verb ``compare``: what changed between two runs on the same cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    ReferenceOption,
    WorkspaceOption,
    note_part,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.cli.evaluate import macro_line
from loop.cli.judge_matrix import compare_judges
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.records import ValueCode
from loop.documents.numbers import (
    NOT_ESTIMABLE,
    listed,
    p_value,
    share,
    signed,
    signed_interval,
)
from loop.evaluate.compare import (
    AnswerDifference,
    Comparison,
    LabelChange,
    SharedAnswers,
    compare_inputs,
    list_differences,
    share_answers,
)
from loop.evaluate.evaluation_json import comparison_data
from loop.evaluate.inputs import read_inputs
from loop.evaluate.matrix.runs import EngineRun
from loop.judge.judge_matrix import are_judge_runs, as_judge_runs
from loop.run.manifest import find_run


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("compare")(compare)


def compare(
    before: Annotated[
        str, typer.Argument(help="Earlier run: id, its beginning, or latest:PROMPT.")
    ],
    after: Annotated[str, typer.Argument(help="Later run; default: latest.")] = (
        "latest"
    ),
    label: Annotated[
        str,
        typer.Option(
            "--label", "-l", help="List each case on which they differ about it, by id."
        ),
    ] = "",
    reference: ReferenceOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs on the same cases.

    Shows which answers were fixed, which were broken, and whether the later run is
    not worse by a margin. Two runs of judges are compared with the newest ratings of
    their cohort, and tested for which agrees better.
    """
    place = open_workspace(workspace)
    progress = ProgressBar(f"compare {before} and {after}", quiet=as_json)
    with progress.shown():
        records = [find_run(place, one) for one in (before, after)]
        runs = [EngineRun(one.spec.engine, one.id) for one in records]
        judged = are_judge_runs(place, runs)
    if judged:
        if label or reference is not None:
            raise typer.BadParameter(
                "--label and --reference are for extractors; runs of judges are "
                "compared with the newest ratings: leave them out"
            )
        judges = as_judge_runs(place, (), (), runs)
        compare_judges(place, judges, (None,) * 3, progress, as_json=as_json)
        return
    with progress.shown():
        left, right = (
            read_inputs(place, one, reference=reference) for one in (before, after)
        )
        result = compare_inputs(left, right)
    note_part(place, result.after.run_id)
    differences = None
    if label:
        shared = share_answers([left.pairs, right.pairs])
        known = right.taxonomy.find(label).id
        _require_asked(shared, known)
        differences = list_differences(shared, known)
    if as_json:
        data = comparison_data(result)
        if differences is not None:
            data["differences"] = [_difference_data(one) for one in differences]
        print_json(data)
    elif differences is not None:
        _show_differences(differences, result, label)
    else:
        show_comparison(result)


def _require_asked(shared: SharedAnswers, label: str) -> None:
    """Refuse a label of which both runs say the same because neither was asked."""
    asked = [
        known
        for column, known in enumerate(shared.labels)
        if any(
            (codes[:, column] != ValueCode.NOT_ASKED).any() for codes in shared.answers
        )
    ]
    if label not in asked:
        raise DataError(
            f"neither run was asked about {label}. Name one of {', '.join(asked)}."
        )


def _difference_data(one: AnswerDifference) -> dict[str, str]:
    before, after = one.answers
    return {
        "case_id": one.case_id,
        "reference": one.reference.words,
        "before": before.words,
        "after": after.words,
    }


def _show_differences(
    found: Sequence[AnswerDifference], comparison: Comparison, label: str
) -> None:
    """Print what each of two runs said of the cases on which they differ."""
    if comparison.warning:
        say(f"warning: {comparison.warning}")
    runs = f"{comparison.before.run_id} and {comparison.after.run_id}"
    if not found:
        say(f"{label}: {runs} say the same of all {comparison.cases:,} cases")
        return
    print_table(
        ("case", "reference", "before", "after"),
        [tuple(_difference_data(one).values()) for one in found],
        title=f"{label}: {runs} differ in {len(found):,} of {comparison.cases:,} cases",
    )
    say()
    say(f"See one with: ranloop show {comparison.after.run_id} {found[0].case_id}")


def show_comparison(comparison: Comparison) -> None:
    """Print one row per label, the change of macro-F1 and the cases that changed."""
    if comparison.warning:
        say(f"warning: {comparison.warning}")
    print_table(
        (
            "label", "F1 before", "after", "accuracy", "interval", "not worse",
            "fixed", "broken", "to unc", "decided", "no ans", "McNemar p", "Holm",
        ),
        [_cells(change) for change in comparison.labels],
        title=(
            f"{comparison.before.prompt} ({comparison.before.run_id}) -> "
            f"{comparison.after.prompt} ({comparison.after.run_id}) on "
            f"{comparison.cohort.name}, reference v{comparison.cohort.reference}, "
            f"{_engines(comparison)}, uncertain answers "
            f"{comparison.protocol.policy.value}"
        ),
    )  # fmt: skip
    say()
    say(macro_line(comparison))
    margins = comparison.protocol.margins
    say(
        f"no label worse by {margins.accuracy:g} accuracy or {margins.sensitivity:g} "
        f"sensitivity: {comparison.verdict.value}"
    )
    left_out = [one.name for one in comparison.labels if not one.comparable]
    if left_out:
        say(f"not judged, as the reference cannot judge it: {', '.join(left_out)}")
    for reason in comparison.reasons:
        if reason != comparison.warning:
            say(f"cannot be compared: {reason}")
    for change in comparison.less_sensitive:
        fell = change.sensitivity.difference
        say(
            f"sensitivity fell: {change.name} lost {fell.lost} and gained "
            f"{fell.gained} of {fell.n} positives"
        )
    if comparison.only_before or comparison.only_after:
        say(
            f"{counted(comparison.only_before, 'case')} only in the first run and "
            f"{comparison.only_after} only in the second are left out"
        )
    _show_cases(comparison)


def _engines(comparison: Comparison) -> str:
    """Return the engine of both runs, once where it is the same."""
    before, after = comparison.before.engine, comparison.after.engine
    return after if before == after else f"{before} -> {after}"


def _cells(change: LabelChange) -> tuple[str, ...]:
    accuracy = change.accuracy
    discordant = len(change.fixed) + len(change.broken)
    holm = p_value(change.p_holm) if change.comparable else NOT_ESTIMABLE
    p = (p_value(change.p), holm)
    if not change.testable:
        p = ("too few" if discordant else NOT_ESTIMABLE, NOT_ESTIMABLE)
    return (
        change.name,
        share(change.f1_before),
        share(change.f1_after),
        signed(accuracy.difference.value),
        signed_interval(accuracy.interval),
        change.verdict.value if change.judged else NOT_ESTIMABLE,
        str(len(change.fixed)),
        str(len(change.broken)),
        str(len(change.became_uncertain)),
        str(len(change.became_decided)),
        str(len(change.became_unanswered)),
        *p,
    )


def _show_cases(comparison: Comparison) -> None:
    for change in comparison.labels:
        rows = (
            ("fixed", change.fixed),
            ("broken", change.broken),
            ("became uncertain", change.became_uncertain),
            ("became decided", change.became_decided),
            ("lost its answer", change.became_unanswered),
        )
        for word, ids in rows:
            if ids:
                say(f"  {change.name}, {word}: {listed(ids, 12)}")
