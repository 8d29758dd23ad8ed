"""The verb ``revise``: clinicians' verdicts to the next prompt version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.check import check_data, show_check, show_copies, show_forecast, show_lint
from loop.cli.console import (
    GATE_EXIT,
    ActorOption,
    CheckDryRunOption,
    DrawsOption,
    JsonOption,
    MaxDrawsOption,
    ProgressBar,
    RoleOption,
    UnconstrainedOption,
    WorkspaceOption,
    acting,
    open_workspace,
    print_json,
    say,
)
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.prompts.diff import diff_data, format_diff
from loop.prompts.lint import lint_data
from loop.review.revise.forecast import forecast_check
from loop.review.revise.revision import Revision, RevisionRequest
from loop.review.revise.revision import revise as revise_prompt
from loop.review.revise.run_check import Examination
from loop.review.status import find_open
from loop.run.asking import EngineOptions
from loop.run.store import open_store

VerdictsOption = Annotated[
    Path | None, typer.Option("--verdicts", "-v", help="YAML or CSV file.")
]
KeptOption = Annotated[
    bool, typer.Option("--kept", help="Apply every open verdict kept here.")
]
VerdictOption = Annotated[
    list[str] | None,
    typer.Option("--verdict", help="Apply this kept verdict; may be repeated."),
]
ContractOption = Annotated[
    str,
    typer.Option(
        "--contract",
        help="Answer in another contract: label_values, findings or binary.",
    ),
]

SkipBlockedOption = Annotated[
    bool,
    typer.Option(
        "--skip-blocked",
        help="Leave out verdicts that cannot be applied, and name them.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("revise")(revise)


def revise(
    prompt: Annotated[str, typer.Argument(help="Prompt or draft, e.g. extractor.")],
    verdicts: VerdictsOption = None,
    kept: KeptOption = False,
    verdict: VerdictOption = None,
    cohort: Annotated[
        str,
        typer.Option("--cohort", "-c", help="Dev cohort; default: the file's."),
    ] = "",
    engine: Annotated[
        str, typer.Option("--engine", "-e", help="Engine for the check.")
    ] = "rules",
    draws: DrawsOption = None,
    max_draws: MaxDrawsOption = None,
    contract: ContractOption = "",
    allow_unconstrained: UnconstrainedOption = False,
    skip_blocked: SkipBlockedOption = False,
    why: Annotated[
        str, typer.Option("--why", help="Reason for the version, or for an override.")
    ] = "",
    override: Annotated[
        bool, typer.Option("--override", help="Commit against objections; needs --why.")
    ] = False,
    dry_run: CheckDryRunOption = False,
    keep_draft: Annotated[
        bool, typer.Option("--keep-draft", help="Check, but do not commit.")
    ] = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build a draft from verdicts, check it and commit it.

    The draft is committed if it holds against its parent version. With --contract it
    uses another output contract; that needs no verdicts, and may be combined with
    some. With --kept or --verdict, the verdicts are those given in the workbench or
    with `ranloop verdict add`.

    Exits with 100 when the result stayed a draft.
    """
    if override and not why.strip():
        raise typer.BadParameter("--override needs --why: the ledger records it")
    place = open_workspace(workspace)
    if dry_run:
        how = Examination(
            engine=engine,
            asking=EngineOptions(allow_unconstrained=allow_unconstrained),
            draws=draws,
            max_draws=max_draws,
            cohort=cohort,
        )
        show_forecast(forecast_check(place, prompt, how), as_json=as_json)
        return
    request = RevisionRequest(
        prompt=prompt,
        cohort=cohort,
        verdicts=verdicts,
        kept=named_verdicts(place, prompt, cohort, verdict or (), every=kept),
        engine=engine,
        asking=EngineOptions(allow_unconstrained=allow_unconstrained),
        draws=draws,
        max_draws=max_draws,
        contract=contract,
        skip_blocked=skip_blocked,
        why=why.strip(),
        override=why.strip() if override else "",
        keep_draft=keep_draft,
    )
    progress = ProgressBar("revise", quiet=as_json)
    who = acting(actor, role)
    with progress.shown():
        revision = revise_prompt(place, request, who, watch=progress.track)
    if as_json:
        print_json(_data(revision))
    else:
        _show(revision, kept=keep_draft)
    if not revision.done:
        raise typer.Exit(GATE_EXIT)


def named_verdicts(
    place: WorkspacePaths,
    prompt: str,
    cohort: str,
    named: Sequence[str],
    *,
    every: bool,
) -> tuple[str, ...]:
    """Return the ids of the kept verdicts that --kept and --verdict ask for."""
    if not every:
        return tuple(named)
    if not cohort:
        raise typer.BadParameter("--kept needs --cohort: verdicts belong to one")
    with open_store(place) as store:
        found = find_open(place, store, prompt, cohort)
    if not found:
        raise DataError(
            f"no verdict on {prompt} is open for cohort {cohort}. See `ranloop verdict "
            "list`, or name a file with --verdicts."
        )
    return tuple(dict.fromkeys((*(one.id for one in found), *named)))


def _show(revision: Revision, *, kept: bool) -> None:
    """Print a round in the order it happened."""
    say(f"{counted(len(revision.verdicts), 'verdict')} on {revision.parent.ref}")
    if revision.corrections:
        _show_reference(revision)
    for line in format_diff(revision.diff) if revision.diff else ():
        say(line)
    show_lint(revision.lint)
    for text in revision.notes:
        say(f"note: {text}")
    show_copies(revision.copies)
    if revision.check:
        show_check(revision.check)
    _show_result(revision, kept=kept)


def _show_reference(revision: Revision) -> None:
    if revision.reference is None:
        say("reference: already corrected as judged")
        return
    say(
        f"reference: {counted(revision.corrections, 'label')} corrected, now "
        f"{revision.cohort}:ref{revision.reference}; earlier runs can be evaluated "
        "against it"
    )


def _show_result(revision: Revision, *, kept: bool) -> None:
    say()
    if revision.version:
        against = " against objections" if revision.objections else ""
        say(f"committed {revision.version.ref}{against}")
    elif revision.draft is None:
        say("no wording changed: no new version")
        return
    else:
        say(f"NOT committed; kept as {revision.draft.ref}")
    for objection in revision.objections:
        say(f"  - {objection}")
    if not revision.version and kept and not revision.objections:
        say("  - kept as a draft because of --keep-draft; the check passed")


def _data(revision: Revision) -> dict[str, Any]:
    return {
        "parent": revision.parent.ref,
        "draft": revision.draft.ref if revision.draft else None,
        "version": revision.version.ref if revision.version else None,
        "committed": revision.version is not None,
        "verdicts": [verdict.id for verdict in revision.verdicts],
        "reference": revision.reference,
        "corrections": revision.corrections,
        "diff": diff_data(revision.diff) if revision.diff else None,
        "lint": lint_data(revision.lint),
        "copies": [copy._asdict() for copy in revision.copies],
        "not_searched_for_copies": [name for name, _ in revision.skipped],
        "notes": list(revision.notes),
        "check": check_data(revision.check) if revision.check else None,
        "runs": list(revision.runs),
        "objections": list(revision.objections),
    }
