"""The verb ``discover``: what reports assert, and a taxonomy draft of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    acting,
    open_workspace,
    own_output,
    print_json,
    print_table,
    say,
    say_wrapped,
    write_documents,
)
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.documents.templates import template_folder
from loop.optimize.discovery.clusters import CUT
from loop.optimize.discovery.discover import (
    LONGEST,
    MIN_REPORTS,
    Discovery,
    discover_findings,
)
from loop.optimize.discovery.documents import (
    TABLE,
    cluster_rows,
    discovery_data,
    discovery_notes,
    render_discovery_csv,
    render_discovery_html,
)
from loop.optimize.discovery.kept_draft import CarriedDecisions, keep_discovery
from loop.optimize.discovery.taxonomy_change import (
    TaxonomyChange,
    check_taxonomy_draft,
    take_taxonomy_draft,
)
from loop.optimize.discovery.taxonomy_draft import format_taxonomy_draft

_SHOWN = 20
"""Clusters that are printed of each kind; the documents have all of them."""


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("discover")(discover)


def discover(
    cohort: Annotated[
        str | None,
        typer.Argument(help="Cohort of the role taxonomy or dev."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the clusters as a page.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write one row per phrase as CSV.")
    ] = None,
    draft: Annotated[
        Path | None,
        typer.Option("--draft", help="Write a taxonomy draft (YAML) to edit."),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the clusters for the page Discover of the workbench."
        ),
    ] = False,
    take: Annotated[
        Path | None,
        typer.Option("--take", help="Take an edited draft into labels/taxonomy.yaml."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="With --take: only say what would change and break."
        ),
    ] = False,
    why: Annotated[
        str, typer.Option("--why", help="With --take: reason, kept in the ledger.")
    ] = "",
    prompt: Annotated[
        str,
        typer.Option(
            "--prompt",
            help="Prompt version to compare the clusters with; default: the newest.",
        ),
    ] = "",
    min_reports: Annotated[
        int,
        typer.Option(
            "--min-cases",
            min=MIN_REPORTS,
            help="Fewest cases, of different patients, that must assert a phrase.",
        ),
    ] = MIN_REPORTS,
    longest: Annotated[
        int, typer.Option("--words", min=1, max=6, help="Longest phrase, in words.")
    ] = LONGEST,
    cut: Annotated[
        float,
        typer.Option(
            "--cut",
            help="Distance at which clusters stay separate, 0 to 1; higher gives fewer "
            "clusters.",
        ),
    ] = CUT,
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find what reports assert and no label names.

    Phrases of a cohort, in clusters, with the cases that assert, hedge and deny them,
    and the labels that name them or are found in the same cases. It uses no model and
    no labels. Phrases of few patients, digits and dates are never shown. Words that
    look like names are left out; read the draft before you pass it on.

    --draft writes the clusters as a file in which you drop, merge, split and name
    them; --take adds what you decided to labels/taxonomy.yaml and records it in the
    ledger. With --dry-run it says which prompts and references would no longer fit.
    The page Discover of the workbench does the same for several people: --keep gives it
    the clusters, and what was decided there stays.
    """
    if (cohort is None) == (take is None):
        raise typer.BadParameter("name a cohort, or a draft with --take")
    place = open_workspace(workspace)
    if take is not None:
        given = (html, csv, draft, prompt or None, keep or None)
        if any(given) or (min_reports, longest, cut) != (MIN_REPORTS, LONGEST, CUT):
            raise typer.BadParameter(
                "--html, --csv, --draft, --keep, --prompt, --min-cases, --words and "
                "--cut go with a cohort"
            )
        _take(place, take, dry_run=dry_run, why=why, actor=actor, as_json=as_json)
        return
    if dry_run or why:
        raise typer.BadParameter("--dry-run and --why go with --take")
    if not 0 < cut < 1:
        raise typer.BadParameter(f"--cut is between 0 and 1, got {cut:g}")
    outputs = (html, csv, draft)
    for path in outputs:
        if path is not None:
            own_output(path, place)
    with ProgressBar(f"discover {cohort}", quiet=as_json).shown():
        found = discover_findings(
            place,
            cohort or "",
            prompt=prompt,
            min_reports=min_reports,
            longest=longest,
            cut=cut,
        )
    folder = template_folder(place)
    write_documents(
        outputs,
        (
            lambda: render_discovery_html(found, templates=folder),
            lambda: render_discovery_csv(found),
            lambda: format_taxonomy_draft(place, found),
        ),
    )
    carried = keep_discovery(place, found) if keep else None
    if as_json:
        decisions = {"decisions": carried._asdict()} if carried else {}
        print_json({**discovery_data(found), **decisions})
        return
    show_discovery(found)
    if carried is not None:
        _say_kept(carried)


def show_discovery(found: Discovery) -> None:
    """Print the largest clusters of both kinds, and what they do not say."""
    say(
        f"{found.cohort}: {counted(found.cases, 'case')}, "
        f"{counted(found.phrases, 'phrase')} in "
        f"{counted(len(found.clusters), 'cluster')}"
    )
    named = [one for one in found.clusters if one.covered]
    for title, clusters in (
        (f"no label names these {len(found.lacking)}", found.lacking),
        (f"labels name these {len(named)}", named),
    ):
        say()
        print_table(TABLE, cluster_rows(clusters[:_SHOWN]), title=title)
        if len(clusters) > _SHOWN:
            say(f"and {len(clusters) - _SHOWN} more: --html, --csv and --json have all")
    say()
    for one in discovery_notes(found):
        say_wrapped("note: ", one)


def _say_kept(carried: CarriedDecisions) -> None:
    say(
        f"kept for the page Discover; clusters decided as they were: {carried.kept}, "
        f"decided and gone: {carried.lost}"
    )
    if carried.reset:
        say(f"reset to undecided, since their label no longer exists: {carried.reset}")


def _take(
    place: WorkspacePaths,
    path: Path,
    *,
    dry_run: bool,
    why: str,
    actor: str | None,
    as_json: bool,
) -> None:
    if dry_run:
        change = check_taxonomy_draft(place, path)
    else:
        change = take_taxonomy_draft(place, path, acting(actor), why=why)
    if as_json:
        print_json(_change_data(change, dry_run=dry_run))
        return
    counts = ", ".join(
        f"{n} {one.value}" for one, n in sorted(change.decisions.items())
    )
    say(f"clusters: {counts}")
    for what, found in (("new label", change.added), ("counts as", change.mapped)):
        for name, phrases in found.items():
            left = change.unlisted.get(name, 0)
            more = f", and {left} more that are not listed" if left else ""
            say_wrapped(f"{what} {name}: ", ", ".join(phrases) + more)
    if change.findings:
        say("what would no longer fit:" if dry_run else "what no longer fits:")
    for one in change.findings:
        say_wrapped(f"  {one.severity.value:<8} ", one.what)
    if not change.changes:
        say("no label changes")
    elif dry_run:
        say("dry run: nothing was changed. Take it with --why REASON")
    else:
        say(f"labels/taxonomy.yaml was revised ({change.digest[:12]}) and recorded")
    if change.changes and not change.comments_kept:
        say("the comments of labels/taxonomy.yaml cannot be kept")


def _change_data(change: TaxonomyChange, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "taxonomy_digest": change.digest,
        "draft_sha256": change.draft_digest,
        "decisions": {one.value: n for one, n in sorted(change.decisions.items())},
        "added": {name: list(one) for name, one in change.added.items()},
        "mapped": {name: list(one) for name, one in change.mapped.items()},
        "unlisted": dict(change.unlisted),
        "comments_kept": change.comments_kept,
        "findings": [
            {
                "check": one.check,
                "severity": one.severity.value,
                "where": one.where,
                "what": one.what,
                "todo": one.todo,
            }
            for one in change.findings
        ],
    }
