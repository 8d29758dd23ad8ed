"""The verb ``export``: write a prompt version in the form production systems load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    ProgressBar,
    RoleOption,
    WorkspaceOption,
    acting,
    open_workspace,
    print_json,
    say,
)
from loop.core.paths import WorkspacePaths
from loop.labels.importing.screening import Screening
from loop.prompts.version import PromptVersion
from loop.release.export.contents import Manifest
from loop.release.export.export import Act, write_export
from loop.release.export.exported import cohort_cases, file_cases, find_origin
from loop.release.export.records import CaseSource, ExportSpec, ExportTarget


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("export")(export)


def export(
    prompt: Annotated[
        str,
        typer.Argument(help="Version or release: extractor@v6 or extractor-v6."),
    ],
    to: Annotated[
        str, typer.Option("--to", help="jinja, openai-batch, vllm-batch or dspy.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="New folder; nothing is written over.")
    ],
    cohort: Annotated[
        str | None,
        typer.Option("--cohort", "-c", help="For a batch: ask about these cases."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--input", "-i", help="For a batch: ask about the cases of this table."
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option("--model", "-m", help="Model to ask; default: the release's."),
    ] = "",
    why: Annotated[
        str, typer.Option("--why", help="Reason, kept in the ledger.")
    ] = "to be loaded by another system",
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a prompt in a form that other systems load.

    The export holds the prompt's digest; loading the folder gives the same digest
    again. With --cohort or --input, the texts of those cases are written to the folder
    given with --out: single reports for an extractor, pairs for a judge.
    """
    target = _target(to, [target.value for target in ExportTarget])
    _check(cohort, source, is_batch=ExportTarget(target).is_batch, why=why)
    place = open_workspace(workspace)
    origin = find_origin(place, prompt, model)
    progress = ProgressBar(f"export {prompt}", quiet=as_json)
    cases, screening = _cases(place, origin.version, cohort, source, progress)
    spec = ExportSpec(origin=origin, target=ExportTarget(target), cases=cases)
    with progress.shown():
        manifest = write_export(place, spec, out, Act(acting(actor, role), why))
    left_out = dict(screening.excluded) if screening else {}
    if as_json:
        data = {"folder": str(out), **manifest.model_dump(mode="json")}
        print_json(data | {"left_out": left_out})
    else:
        _show(manifest, out, left_out)


def _target(name: str, known: list[str]) -> str:
    if name not in known:
        raise typer.BadParameter(f"--to takes one of {', '.join(known)}")
    return name


def _check(
    cohort: str | None, source: Path | None, *, is_batch: bool, why: str
) -> None:
    """Refuse options that do not go together."""
    if cohort and source:
        raise typer.BadParameter("name either --cohort or --input")
    if (cohort or source) and not is_batch:
        raise typer.BadParameter(
            "--cohort and --input are for openai-batch and vllm-batch: the others "
            "hold no cases"
        )
    if not why.strip():
        raise typer.BadParameter("--why needs a reason: the ledger records it")


def _cases(
    place: WorkspacePaths,
    version: PromptVersion,
    cohort: str | None,
    source: Path | None,
    progress: ProgressBar,
) -> tuple[CaseSource | None, Screening | None]:
    """Return the cases to ask about and, for a file, what counts those left out."""
    found: CaseSource
    screening = None
    if cohort:
        found = cohort_cases(place, cohort, version)
    elif source:
        found, screening = file_cases(place, source, version)
    else:
        return None, None
    watch = progress.part(f"export {found.origin}")
    return replace(found, items=watch(found.items)), screening


def _show(manifest: Manifest, out: Path, left_out: dict[str, Any]) -> None:
    released = f", released as {manifest.release}" if manifest.release else ""
    say(f"{manifest.prompt.ref}{released}, exported to {manifest.target}: {out}")
    say(f"  prompt digest  {manifest.prompt.digest}")
    say(f"  contract       {manifest.contract}")
    if manifest.asking.model:
        say(f"  model          {manifest.asking.model}")
    for name in manifest.files:
        say(f"  file           {name}")
    if manifest.cases:
        say(f"  cases          {manifest.cases.count:,} of {manifest.cases.origin}")
        for reason, count in left_out.items():
            say(f"  left out       {count:,} {reason}")
        say(
            "  THE REQUESTS HOLD THE TEXTS OF THESE CASES: only you may read them "
            "(0600), and git ignores the folder"
        )
    for remark in manifest.remarks:
        say(f"  note           {remark}")
