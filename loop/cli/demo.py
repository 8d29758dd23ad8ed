"""The verb ``demo``: the whole loop on a synthetic cohort, in under a minute."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from loop.cli.console import JsonOption, print_json, print_table, say
from loop.core.errors import DataError
from loop.core.files import write_atomic
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths, bundled, init_workspace
from loop.documents.numbers import interval, share
from loop.evaluate.compare import compare_runs
from loop.evaluate.documents import render_html
from loop.evaluate.evaluation import evaluate_run, find_parent_run
from loop.evaluate.evaluation_json import evaluation_data
from loop.evaluate.gates import describe_verdicts
from loop.evaluate.protocol import register_protocol
from loop.evaluate.recording import record_evaluation
from loop.evaluate.results import Evaluation
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.overlap import check_cohorts, require_separate
from loop.labels.taxonomy import read_taxonomy
from loop.labels.votes import import_votes
from loop.prompts.catalog import read_version, write_version
from loop.review.revise.check import TargetOutcome
from loop.review.revise.revision import Revision, RevisionRequest, revise
from loop.run.task import run_prompt

PROMPT = "extractor"

DEV, HOLDOUT = "demo_dev", "demo_holdout"

ROUNDS = (1, 2)

PAGE = "evaluation.html"

_ENGINEER = Actor(name="demo engineer (simulated)", role="editor")

_CLINICIAN = Actor(name="demo clinician (simulated)", role="reviewer")


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("demo")(demo)


def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(help="New folder for the demo; default: a temporary one."),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds",
            min=0,
            max=len(ROUNDS),
            help="Rounds of verdicts to apply; fewer leave cases for `ranloop review`.",
        ),
    ] = len(ROUNDS),
    as_json: JsonOption = False,
) -> None:
    """Run the whole loop on synthetic reports, without a model.

    No model, no network and no patient is needed. A first prompt version fails its
    gates; two rounds of clinicians' verdicts revise it until the gates pass; an
    evaluation page is written at the end.
    """
    tell = _silent if as_json else say
    target = folder or Path(tempfile.mkdtemp(prefix="ranloop-demo-")) / "workspace"
    tell("ranloop demo: all reports, readers and verdicts here are SYNTHETIC.")
    workspace = _prepare(target)
    tell(f"\n1. A workspace: {workspace.root}")
    for line in _import(workspace):
        tell(f"   {line}")
    steps = [_measure(workspace)]
    tell(f"\n2. {steps[0].version}: label names and one-line definitions, no more")
    tell(_summary(steps[0].evaluation))
    for number in ROUNDS[:rounds]:
        revision = _revise(workspace, number)
        tell(f"\n{number + 2}. Round {number} of clinicians' verdicts")
        for line in _story(revision):
            tell(f"   {line}")
        steps.append(_measure(workspace))
        tell(_summary(steps[-1].evaluation))
    page = _write_page(workspace, steps[-1].evaluation)
    if as_json:
        print_json(_data(workspace, steps, page))
        return
    last = steps[-1].evaluation
    say(f"\nHow the gates moved, all on reference version {last.cohort.reference}")
    _print_gates([_rescored(workspace, step) for step in steps])
    say("\nDevelopment numbers are optimistic: the revisions saw these cases.")
    say("The holdout stays closed until a version is frozen for release.")
    say(f"\nEvaluation page: {page}")
    say("Look further:")
    for command in (
        f"history {PROMPT}",
        f"diff {PROMPT}@v1 {steps[-1].version}",
        f"failures --label {_worst(steps[-1].evaluation)} --text evidence",
        "review",
    ):
        say(f"  ranloop {command} --workspace {workspace.root}")


class DemoStep(NamedTuple):
    """One version of the demo's prompt and how it did."""

    version: str
    evaluation: Evaluation


def _silent(_text: str = "") -> None:
    """Say nothing: with --json only the object is printed."""


def _prepare(target: Path) -> WorkspacePaths:
    """Make a workspace with the first version, and the files that the demo imports."""
    if target.exists() and any(target.iterdir()):
        raise DataError(
            f"{target} is not empty. Name a new folder, or none for a temporary one."
        )
    first = read_version(WorkspacePaths(bundled()), f"{PROMPT}@v1")
    workspace = init_workspace(target)
    files = workspace.labels / "demo"
    shutil.copytree(bundled() / "labels" / "demo", files, copy_function=shutil.copyfile)
    version = write_version(workspace, first)
    event = Event(
        action="draft_committed",
        subject=version.ref,
        reason="the shipped first version, as the start of the demo",
        payload={"digest": version.digest},
    )
    append_event(workspace.ledger, event, _ENGINEER)
    return workspace


def _import(workspace: WorkspacePaths) -> list[str]:
    """Import both synthetic cohorts with their readers' votes; return what was done."""
    taxonomy = read_taxonomy(workspace.labels)
    demo_files = bundled() / "labels" / "demo"
    lines = []
    for name, role in ((DEV, "dev"), (HOLDOUT, "holdout")):
        options = ImportOptions(
            name=name,
            role=role,
            source="synthetic reports written for ranloop; no real patient",
            licence="Apache-2.0",
            reason="demo",
        )
        stem = name.removeprefix("demo_")
        report = import_cohort(
            workspace, demo_files / f"{stem}.jsonl", options, actor=_ENGINEER
        )
        votes = import_votes(
            workspace,
            read_cohort(workspace, name),
            demo_files / f"votes_{stem}.csv",
            taxonomy,
            need=4,
            actor=_ENGINEER,
        )
        lines.append(
            f"{name}: {report.cases} reports, {votes.votes:,} votes of "
            f"{len(votes.readers)} simulated readers, reference by 4 of 6"
        )
    require_separate(check_cohorts(workspace))
    lines.append("the two share no case, patient or text; the holdout stays closed")
    return lines


def _measure(workspace: WorkspacePaths) -> DemoStep:
    """Run the newest version on the dev cohort and hold it against the gates."""
    register_protocol(workspace, _ENGINEER)
    run = run_prompt(workspace, PROMPT, DEV, actor=_ENGINEER.name)
    evaluation = evaluate_run(workspace, run.run_id)
    return DemoStep(
        evaluation.run.prompt, record_evaluation(workspace, evaluation, _ENGINEER)
    )


def _rescored(workspace: WorkspacePaths, step: DemoStep) -> DemoStep:
    """Score an earlier run on the newest reference, so that versions compare."""
    return DemoStep(step.version, evaluate_run(workspace, step.evaluation.run.run_id))


def _revise(workspace: WorkspacePaths, number: int) -> Revision:
    verdicts = bundled() / "labels" / "demo" / f"verdicts_{number}.yaml"
    request = RevisionRequest(
        prompt=PROMPT, cohort=DEV, verdicts=verdicts, why=f"demo, round {number}"
    )
    return revise(workspace, request, _CLINICIAN)


def _story(revision: Revision) -> list[str]:
    """Return what a round did, in a few lines."""
    edits = sum(verdict.edits.count for verdict in revision.verdicts)
    lines = [f"{len(revision.verdicts)} verdicts ask for {edits} changes of wording"]
    if revision.corrections:
        lines.append(
            f"{revision.corrections} say the reference is wrong: corrected in "
            f"reference version {revision.reference}, not in the prompt"
        )
    check = revision.check
    if check is not None:
        good = sum(
            target.progress in (TargetOutcome.FIXED, TargetOutcome.IMPROVED)
            for target in check.targets
        )
        lines.append(
            f"checked against {revision.parent.ref} on {check.cases} cases: "
            f"{good} of {len(check.targets)} judged answers fixed or improved"
        )
    if revision.version is not None:
        lines.append(
            f"no label got worse than agreed: committed {revision.version.ref}"
        )
    for objection in revision.objections:
        lines.append(f"stays a draft: {objection}")
    return lines


def _summary(evaluation: Evaluation) -> str:
    """Return the verdict on one version in one line."""
    counts = describe_verdicts(one.gate.verdict for one in evaluation.labels)
    macro = evaluation.macro.score
    return (
        f"   gates: {counts} of {len(evaluation.labels)} labels -> "
        f"{evaluation.verdict.value}\n"
        f"   macro-F1 {share(macro.estimate)} {interval(macro)}"
    )


def _print_gates(steps: list[DemoStep]) -> None:
    """Print accuracy and gate of every label for each version."""
    header = ["accuracy and gate", "positives"]
    header += [step.version.split("@")[1] for step in steps]
    rows = []
    for results in zip(*(step.evaluation.labels for step in steps), strict=True):
        row = [results[-1].name, str(results[-1].confusion.positives)]
        for result in results:
            accuracy = share(result.confusion.accuracy)
            row.append(f"{accuracy} {result.gate.verdict.value:12}")
        rows.append(row)
    print_table(header, rows)


def _worst(evaluation: Evaluation) -> str:
    """Return the label with the lowest F1: where to look next."""
    return min(
        evaluation.labels,
        key=lambda one: 1.0 if one.confusion.f1 is None else one.confusion.f1,
    ).label


def _write_page(workspace: WorkspacePaths, evaluation: Evaluation) -> Path:
    """Write the page of the last version, compared with the version before it."""
    run = evaluation.run.run_id
    before = find_parent_run(workspace, run)
    comparison = compare_runs(workspace, before, run) if before else None
    page = workspace.root / "reports" / PAGE
    write_atomic(page, render_html(evaluation, comparison))
    return page


def _data(
    workspace: WorkspacePaths, steps: list[DemoStep], page: Path
) -> dict[str, Any]:
    return {
        "synthetic": True,
        "workspace": str(workspace.root),
        "page": str(page),
        "versions": [evaluation_data(step.evaluation) for step in steps],
    }
