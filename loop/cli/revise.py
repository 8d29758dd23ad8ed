"""The verb ``revise``: clinicians' verdicts to the next prompt version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loop.cli.console import (
    GATE_EXIT,
    ActorOption,
    JsonOption,
    Progress,
    RoleOption,
    UnconstrainedOption,
    WorkspaceOption,
    acting,
    open_workspace,
    print_json,
    print_table,
    say,
)

if TYPE_CHECKING:
    from loop.revise.check import Check
    from loop.revise.revision import Revision
    from loop.revise.shares import LabelCheck, ShareCheck


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("revise")(revise)


def revise(
    prompt: Annotated[str, typer.Argument(help="Prompt or draft, e.g. extractor.")],
    verdicts: Annotated[
        Path | None, typer.Option("--verdicts", "-v", help="YAML or CSV file.")
    ] = None,
    cohort: Annotated[
        str,
        typer.Option("--cohort", "-c", help="Dev cohort; default: the file's."),
    ] = "",
    engine: Annotated[
        str, typer.Option("--engine", "-e", help="Engine for the check.")
    ] = "rules",
    contract: Annotated[
        str,
        typer.Option("--contract", help="Answer in another contract, e.g. findings."),
    ] = "",
    allow_unconstrained: UnconstrainedOption = False,
    why: Annotated[
        str, typer.Option("--why", help="Reason for the version, or for an override.")
    ] = "",
    override: Annotated[
        bool, typer.Option("--override", help="Commit against objections; needs --why.")
    ] = False,
    keep_draft: Annotated[
        bool, typer.Option("--keep-draft", help="Check, but do not commit.")
    ] = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build a draft from verdicts, check it against its parent, commit it if it holds.

    With --contract the draft is answered in another output contract; that needs no
    verdicts and may be combined with some.

    Exits with 100 when the result stayed a draft.
    """
    from loop.revise.revision import Request
    from loop.revise.revision import revise as revise_prompt

    if override and not why.strip():
        raise typer.BadParameter("--override needs --why: it stands in the ledger")
    request = Request(
        prompt=prompt,
        cohort=cohort,
        verdicts=verdicts,
        engine=engine,
        contract=contract,
        why=why.strip(),
        override=why.strip() if override else "",
        keep_draft=keep_draft,
    )
    progress = Progress("revise", quiet=as_json)
    revision = revise_prompt(
        open_workspace(workspace), request, acting(actor, role), watch=progress.track
    )
    if as_json:
        print_json(_data(revision))
    else:
        _show(revision, kept=keep_draft)
    if not revision.done:
        raise typer.Exit(GATE_EXIT)


def _show(revision: Revision, *, kept: bool) -> None:
    """Print a round in the order it happened."""
    from loop.prompts.diff import format_diff

    plural = "" if len(revision.verdicts) == 1 else "s"
    say(f"{len(revision.verdicts)} verdict{plural} on {revision.parent.ref}")
    if revision.corrections:
        _show_reference(revision)
    for line in format_diff(revision.diff) if revision.diff else ():
        say(line)
    for found in revision.lint:
        say(f"{found.level}: {found.where}: {found.message}")
    for text in revision.notes:
        say(f"note: {text}")
    for copy in revision.copies:
        say(
            f"warning: {copy.where}: {copy.words} or more consecutive words also stand "
            f"in case {copy.case_id} of {copy.cohort}; say it in your own words"
        )
    if revision.check:
        _show_check(revision.check)
    _show_result(revision, kept=kept)


def _show_reference(revision: Revision) -> None:
    if revision.reference is None:
        say("reference: already corrected as judged")
        return
    say(
        f"reference: {revision.corrections} labels corrected, now "
        f"{revision.cohort}:ref{revision.reference}; earlier runs can be evaluated "
        "against it"
    )


def _show_check(check: Check) -> None:
    from loop.revise.check import Progress as Outcome

    say()
    say(f"check on {check.cases} cases, right answers against the parent")
    changed = [
        one
        for one in check.labels
        if any(share.difference[:2] != (0, 0) for _, share in one.shares())
    ]
    if changed:
        print_table(
            ("label", "answers", "lower limit", "positives", "lower limit", "verdict"),
            [_row(one) for one in changed],
        )
    _show_basis(check)
    counts = [
        f"{check.count(p)} {p.replace('_', ' ')}" for p in Outcome if check.count(p)
    ]
    say(f"targeted cases: {', '.join(counts) or 'none named'}")
    for target in check.targets:
        if target.progress not in (
            Outcome.FIXED,
            Outcome.IMPROVED,
            Outcome.ALREADY_RIGHT,
        ):
            say(
                f"  {target.progress}: {target.case_id} {target.label} "
                f"{target.before or 'not asked'} -> {target.after or 'not asked'}, "
                f"should be {target.expected or 'said by the verdict'}"
            )
    for anchor in check.missing_anchors:
        say(
            f"note: anchored case {anchor.case_id} ({anchor.label}) is not in the "
            "cohort any more and was not checked"
        )


def _row(label: LabelCheck) -> tuple[str, ...]:
    """Return the table row of a label: both shares and whether it got worse."""
    cells = [
        cell for _, share in label.shares() for cell in (_change(share), _limit(share))
    ]
    return (label.label, *cells, "ok" if label.passed else "WORSE")


def _change(share: ShareCheck) -> str:
    lost, gained, n = share.difference
    return f"+{gained} -{lost} of {n}"


def _limit(share: ShareCheck) -> str:
    from loop.revise.shares import Basis

    if share.bound is None:
        return "not judged"
    star = " *" if share.basis is Basis.COUNTS else "  "
    return f"{100 * share.bound:+.1f} %{star}"


def _show_basis(check: Check) -> None:
    """Name every label whose margin could not be used, changed or not."""
    from loop.revise.shares import Basis

    for basis, words in (
        (
            Basis.COUNTS,
            "* judged by counts: too few cases for the margin, so no more may be lost "
            "than gained",
        ),
        (Basis.NOTHING, "not judged: no case to judge by"),
    ):
        found = check.judged_by(basis)
        if any(found.values()):
            say(words)
        for name, labels in found.items():
            if labels:
                every = len(labels) == len(check.labels)
                say(f"  {name}: {'every label' if every else ', '.join(labels)}")


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
    from loop.prompts.diff import diff_data

    return {
        "parent": revision.parent.ref,
        "draft": revision.draft.ref if revision.draft else None,
        "version": revision.version.ref if revision.version else None,
        "committed": revision.version is not None,
        "verdicts": [verdict.id for verdict in revision.verdicts],
        "reference": revision.reference,
        "corrections": revision.corrections,
        "diff": diff_data(revision.diff) if revision.diff else None,
        "lint": [found._asdict() for found in revision.lint],
        "copies": [copy._asdict() for copy in revision.copies],
        "not_searched_for_copies": [name for name, _ in revision.skipped],
        "notes": list(revision.notes),
        "check": _check_data(revision.check) if revision.check else None,
        "runs": list(revision.runs),
        "objections": list(revision.objections),
    }


def _check_data(check: Check) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "passed": check.passed,
        "cases": check.cases,
        "targets": [asdict(target) for target in check.targets],
        "broken_anchors": [anchor._asdict() for anchor in check.broken_anchors],
        "unanswered_anchors": [one._asdict() for one in check.unanswered_anchors],
        "missing_anchors": [one._asdict() for one in check.missing_anchors],
        "unanswered": check.unanswered._asdict(),
        "labels": [
            {
                "label": one.label,
                "passed": one.passed,
                **_share_data(one.accuracy),
                "sensitivity": _share_data(one.sensitivity),
            }
            for one in check.labels
        ],
    }


def _share_data(share: ShareCheck) -> dict[str, Any]:
    return {
        "gained": share.difference.gained,
        "lost": share.difference.lost,
        "n": share.difference.n,
        "bound": share.bound,
        "margin": share.margin,
        "basis": share.basis.value,
    }
