"""The verb ``evaluate``: score a run, judge it by the protocol, write documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    GATE_EXIT,
    ActorOption,
    JsonOption,
    ProgressBar,
    ReferenceOption,
    RoleOption,
    WorkspaceOption,
    acting,
    note,
    note_part,
    open_workspace,
    own_output,
    print_json,
    print_table,
    say,
    write_documents,
)
from loop.cli.judge import evaluate_judge
from loop.core.files import write_atomic
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Status
from loop.documents.numbers import (
    count,
    interval,
    resampled,
    share,
    signed,
    signed_interval,
)
from loop.documents.templates import template_folder
from loop.evaluate.compare import Comparison, compare_runs
from loop.evaluate.documents import (
    Exclusion,
    open_labels,
    render_csv,
    render_html,
    render_markdown,
    shown_exclusions,
)
from loop.evaluate.evaluation import evaluate_run, find_parent_run
from loop.evaluate.evaluation_json import claim_lines, comparison_data, evaluation_data
from loop.evaluate.gates import GateVerdict, describe_verdicts
from loop.evaluate.recording import record_evaluation
from loop.evaluate.results import Evaluation, LabelResult, certify_evaluation
from loop.evaluate.sampled import (
    SampledEvaluation,
    evaluate_sample,
    is_sampled,
    render_sampled_csv,
    render_sampled_html,
    sampled_data,
)
from loop.evaluate.tried import Selection, correct_optimism
from loop.evaluate.tried_text import selection_lines, selection_note
from loop.run.manifest import find_run
from loop.run.store import open_store
from loop.run.task_fields import is_judge_run
from loop.stats.intervals import Estimate
from loop.stats.resampling import Bootstrap

HtmlOption = Annotated[
    Path | None, typer.Option("--html", help="Write the document as one HTML page.")
]
MarkdownOption = Annotated[
    Path | None, typer.Option("--md", help="Write the document as Markdown.")
]
CsvOption = Annotated[
    Path | None, typer.Option("--csv", help="Write one row per label as CSV.")
]


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("evaluate")(evaluate)


def evaluate(
    run: Annotated[
        str,
        typer.Argument(help="Run id, its beginning, latest, or latest:PROMPT."),
    ] = "latest",
    reference: ReferenceOption = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="Earlier run to compare with, or none; default: the parent version's.",
        ),
    ] = None,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    csv: CsvOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
) -> None:
    """Score a run against the reference and judge its gates.

    The gates are those of labels/protocol.yaml, and so is what an uncertain answer
    counts as (uncertain_answers: wrong, absent, present or excluded); what each of
    the others would give is shown beside it. Also shows what changed since the
    newest run of the parent version on the same cases, how many versions were tried
    on them, and the score corrected for that selection. Exits with 100 unless the
    protocol's claim passes: every label or, for a claim on a subset, any label that
    Holm's test certifies. A label that the cohort's reference cannot judge is NOT
    COMPARABLE: it is shown, and no average, test or claim counts it. The result is
    recorded in the ledger.

    Where the reference decides the cases of a value sample (`ranloop sample`), every
    share weights them with the chances of the draw and has the effective sample size
    beside it; no gate is decided, nothing is recorded, and the exit code is 100.

    The run of a judge is held against the newest ratings of its cohort, and against
    the section judging of the protocol; without that section there is no gate.
    """
    place = open_workspace(workspace)
    progress = ProgressBar(f"evaluate {run}", quiet=as_json)
    with progress.shown():
        judges = is_judge_run(find_run(place, run))
    if judges:
        _refuse_documents(html, markdown, csv, reference, against)
        evaluate_judge(place, run, acting(actor, role), as_json=as_json)
        return
    for path in (html, markdown, csv):
        if path is not None:
            own_output(path, place)
    if is_sampled(place, run, reference=reference):
        if markdown is not None or against not in (None, "none"):
            raise typer.BadParameter(
                "--md and --against are for references of cases drawn at random; the "
                "evaluation of a value sample is printed, or written with --html, "
                "--csv or --json"
            )
        with progress.shown():
            weighted = evaluate_sample(place, run, reference=reference)
            note_part(place, weighted.run.run_id)
        write_documents(
            (html, csv),
            (
                lambda: render_sampled_html(weighted),
                lambda: render_sampled_csv(weighted),
            ),
        )
        if as_json:
            print_json(sampled_data(weighted))
        else:
            show_sampled(weighted)
        raise typer.Exit(GATE_EXIT)
    with progress.shown():
        result = evaluate_run(place, run, reference=reference)
        note_part(place, result.run.run_id)
        change = _compare(place, result, against, reference)
        result = record_evaluation(place, result, acting(actor, role))
        chosen = _correct(place, result)
        folder = template_folder(place)
        _write(
            html,
            lambda: render_html(result, change, selection=chosen, templates=folder),
        )
        _write(
            markdown,
            lambda: render_markdown(result, change, selection=chosen, templates=folder),
        )
        _write(csv, lambda: render_csv(result))
    if as_json:
        data = evaluation_data(result, chosen)
        with_cases = result.cohort.role != "holdout"
        data["change"] = (
            comparison_data(change, with_cases=with_cases) if change else None
        )
        print_json(data)
    else:
        show_evaluation(result, change, chosen)
    if certify_evaluation(result).verdict is not GateVerdict.PASS:
        raise typer.Exit(GATE_EXIT)


def show_sampled(found: SampledEvaluation) -> None:
    """Print the evaluation of a value sample: weighted shares, and what to know."""
    print_table(
        ("label", "n", "pos", "accuracy", "sensitivity", "precision", "F1"),
        [
            (
                one.name,
                count(one.cases),
                count(one.positives),
                _limited(one.accuracy),
                _limited(one.sensitivity),
                _limited(one.precision),
                _limited(one.f1),
            )
            for one in found.labels
        ],
        title=(
            f"{found.run.prompt} on {found.cohort.name}, reference "
            f"v{found.cohort.reference}, {found.run.engine}, WEIGHTED by value sample "
            f"{found.kept.number}, run {found.run.run_id}"
        ),
    )
    say()
    say(
        f"cases that fail  {_limited(found.fails)}  of the cohort's "
        f"{count(found.kept.sample.population)}"
    )
    say(
        f"macro-F1  {_limited(found.macro)}  over {found.supported} labels with "
        f"{found.protocol.min_positives}+ positives read"
    )
    say(
        f"{count(found.read)} of {count(len(found.kept.sample.drawn))} drawn cases "
        f"read; effective sample size {found.effective:.1f} (Kish)"
    )
    say()
    for text in found.notes:
        say(f"note: {text}")
    say(f"signature: {found.signature}")
    say()
    say(f"gate: {GateVerdict.INSUFFICIENT.value} (a value sample decides none)")


def _limited(number: Estimate | Bootstrap) -> str:
    """Return a number with its limits, where it has any."""
    limits = "" if number.low is None else f" {interval(number)}"
    return share(number[0]) + limits


def _refuse_documents(*given: object) -> None:
    """Refuse options that the evaluation of a judge does not have."""
    if any(one is not None for one in given):
        raise typer.BadParameter(
            "--html, --md, --csv, --reference and --against are for extractors; the "
            "evaluation of a judge is printed, or written with --json, and its page is "
            "made by `ranloop matrix --run RUN --html FILE`"
        )


def _compare(
    workspace: WorkspacePaths,
    result: Evaluation,
    against: str | None,
    reference: int | None,
) -> Comparison | None:
    """Compare with the run named, with the parent version's, or with none."""
    run = result.run.run_id
    before = find_parent_run(workspace, run) if against is None else against
    if before is None or against == "none":
        return None
    return compare_runs(workspace, before, run, reference=reference)


def _correct(workspace: WorkspacePaths, result: Evaluation) -> Selection:
    """Correct the run's macro-F1 for the versions tried on its cohort."""
    run, number = result.run.run_id, result.cohort.reference
    with open_store(workspace) as store:
        return correct_optimism(workspace, store, run, reference=number)


def _write(path: Path | None, render: Callable[[], str]) -> None:
    """Write a document when it is wanted, and say so."""
    if path is not None:
        write_atomic(path, render())
        note(f"wrote {path}")


def show_evaluation(
    evaluation: Evaluation,
    comparison: Comparison | None = None,
    selection: Selection | None = None,
) -> None:
    """Print the gate table, what is missing, the averages and the caveats."""
    if comparison is not None and comparison.warning:
        say(f"warning: {comparison.warning}")
    show_gates(evaluation)
    say()
    for line in average_lines(evaluation):
        say(line)
    show_open(evaluation)
    if comparison is not None:
        say(macro_line(comparison))
    if selection is not None:
        show_selection(selection)
    say()
    for text in caveats(evaluation):
        say(f"note: {text}")
    say(f"signature: {evaluation.signature}")
    say()
    say(verdict_line(evaluation))
    if evaluation.protocol.claim == "subset":
        show_claim(evaluation)


def show_open(evaluation: Evaluation) -> None:
    """Print how the cases are answered that the reference calls uncertain."""
    found = open_labels(evaluation)
    if not found:
        return
    say()
    print_table(
        ("label", "cases", "present", "absent", "uncertain", "unanswered"),
        [
            (one.name, *map(count, (sum(one.open_answers), *one.open_answers)))
            for one in found
        ],
        title="answers where the reference is uncertain; none of these is scored",
    )


def show_claim(evaluation: Evaluation) -> None:
    """Print which labels a claim on a subset certifies, and by what test."""
    for line in claim_lines(certify_evaluation(evaluation)):
        say(line)


def show_selection(selection: Selection) -> None:
    """Print how many versions were tried, and the score corrected for the choice."""
    first, *more = selection_lines(selection)
    say()
    say(first)
    for line in more:
        say(f"  {line}")
    if note_text := selection_note(selection):
        say(f"  {note_text}")


def show_gates(evaluation: Evaluation) -> None:
    """Print one row per label, and under it why labels did not pass."""
    excluded = shown_exclusions(evaluation)
    print_table(
        (
            "label", "gate", "n", "pos", "TP", "FP", "FN", "TN", "accuracy",
            "precision", "recall", "F1", "kappa",
            *(["flips"] if evaluation.stability else []),
            *(one.short for one in excluded),
        ),
        [_cells(result, excluded) for result in evaluation.labels],
        title=(
            f"{evaluation.run.prompt} on {evaluation.cohort.name}, "
            f"reference v{evaluation.cohort.reference}, {evaluation.run.engine}, "
            f"uncertain answers {evaluation.protocol.policy.value}, "
            f"run {evaluation.run.run_id}"
            + (f", {evaluation.draws} draws" if evaluation.draws > 1 else "")
        ),
    )  # fmt: skip
    missed = [
        result
        for result in evaluation.labels
        if result.gate.verdict is not GateVerdict.PASS
    ]
    if missed:
        say()
    width = max((len(one.gate.verdict) for one in missed), default=0)
    for result in missed:
        parts = (*result.gate.reasons, result.gate.needs)
        why = "; ".join(part for part in parts if part)
        say(f"  {result.gate.verdict.value:<{max(width, 12)}}  {result.name}: {why}")


def _cells(result: LabelResult, excluded: Sequence[Exclusion]) -> tuple[str, ...]:
    counts = result.confusion
    numbers = (counts.n, counts.positives, counts.tp, counts.fp, counts.fn, counts.tn)
    accuracy = share(counts.accuracy)
    if counts.n:
        accuracy += f" {interval(result.accuracy)}"
    kappa = share(result.kappa.value)
    if result.kappa_interval.low is not None:
        kappa += f" {interval(result.kappa_interval, 2)}"
    return (
        result.name,
        result.gate.verdict.value,
        *map(count, numbers),
        accuracy,
        share(counts.precision),
        share(counts.recall),
        share(counts.f1),
        kappa,
        *([f"{result.flips.flipped}/{result.flips.n}"] if result.flips else []),
        *(count(one.of(result)) for one in excluded),
    )


def average_lines(evaluation: Evaluation) -> list[str]:
    """Return the averages, and what they would be if uncertain answers counted."""
    positives = evaluation.protocol.min_positives
    rows = (
        ("macro-F1", evaluation.macro, "labels with a defined F1"),
        ("macro-F1", evaluation.supported, f"labels with {positives}+ positives"),
        ("micro-F1", evaluation.micro, "labels, all cells together"),
    )
    lines = [
        f"{name}  {share(average.score.estimate)} {interval(average.score)}  "
        f"over {average.labels} {what}"
        for name, average, what in rows
    ]
    chosen, *others = evaluation.views
    whole = len(evaluation.comparable)
    lines.append(
        f"{evaluation.protocol.uncertain_words} {chosen.passed} of {whole} labels pass"
    )
    lines += [
        f"  if {view.words}: macro-F1 {share(view.macro_f1)}, "
        f"micro-F1 {share(view.micro_f1)}, mean accuracy {share(view.accuracy)}, "
        f"{view.passed} of {whole} labels pass"
        for view in others
    ]
    status = evaluation.statuses
    drawn = f" x {evaluation.draws} draws" if evaluation.draws > 1 else ""
    lines.append(
        f"{counted(evaluation.cases, 'case')}{drawn}: "
        f"{status[Status.ANSWERED]} answered, {status[Status.UNPARSED]} unparsed, "
        f"{status[Status.ENGINE_FAILED]} engine failed; "
        f"intervals resample {resampled(evaluation.method, evaluation.cases)} "
        f"{f'and {evaluation.draws} draws ' if drawn else ''}"
        f"{evaluation.method.resamples} times"
    )
    return lines


def macro_line(comparison: Comparison) -> str:
    """Return the change of macro-F1 on one line."""
    return (
        f"macro-F1  {share(comparison.macro_before)} -> "
        f"{share(comparison.macro_after)} since {comparison.before.prompt}, "
        f"difference {signed(comparison.macro.estimate)} "
        f"{signed_interval(comparison.macro)} on {comparison.cases} shared cases; "
        f"uncertain answers {comparison.protocol.policy.value}"
    )


def caveats(evaluation: Evaluation) -> list[str]:
    """Return what a reader must know beside the numbers, as sentences."""
    first = []
    if evaluation.cohort.synthetic:
        first.append("synthetic cohort: these numbers say nothing about real reports.")
    if evaluation.registered_late:
        first.append("the protocol was registered after the run began.")
    return [*first, *evaluation.notes]


def verdict_line(evaluation: Evaluation) -> str:
    """Return the overall verdict with how many labels stand where."""
    judged = [one.gate.verdict for one in evaluation.comparable]
    tally = f"{describe_verdicts(judged)} of {len(judged)}"
    if left_out := evaluation.not_comparable:
        tally += f"; {len(left_out)} {GateVerdict.NOT_COMPARABLE}"
    line = f"gate: {evaluation.verdict.value} ({tally})"
    return f"{line}; not all cases were run" if evaluation.not_run else line
