"""The verb ``audit``: print the ledger, and say what of it holds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    GATE_EXIT,
    ActorOption,
    JsonOption,
    ProgressBar,
    RoleOption,
    WorkspaceOption,
    acting,
    note,
    open_workspace,
    own_output,
    print_json,
    say,
)
from loop.core.check_findings import Finding, FindingSeverity
from loop.core.errors import DataError, LedgerError
from loop.core.files import write_atomic
from loop.core.ledger import LedgerEntry, quarantine_torn_line, record_wrong_clock
from loop.core.paths import WorkspacePaths
from loop.documents.templates import template_folder
from loop.release.audit.audit import LedgerAudit, audit_workspace
from loop.release.audit.documents import audit_data, render_audit_csv, render_audit_html
from loop.release.audit.known_heads import parse_head
from loop.release.audit.prompt_changes import (
    audited_prompt,
    concerns,
    list_audited,
    read_changes,
)

_FORMS = (".csv", ".json", ".html")


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("audit")(audit)


def audit(
    export: Annotated[
        list[Path] | None,
        typer.Option(
            "--export",
            help="Write it as .csv, .json, or .html for a change history.",
        ),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="Show the entries of this prompt.")
    ] = None,
    release: Annotated[
        list[Path] | None,
        typer.Option(
            "--release", help="Release folder whose ledger head must be here."
        ),
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option("--head", help="SEQ:HASH written down elsewhere."),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="First move a torn last line to its own file, and record a clock "
            "that was ahead.",
        ),
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
) -> None:
    """Print the ledger and check everything it refers to.

    The check goes on after a broken link and names the first one, with what it means.
    Exits with 100 if anything is broken.
    """
    place = open_workspace(workspace)
    _check_outputs(export or (), place)
    heads = [parse_head(text) for text in head or ()]
    if repair:
        _repair(place, actor, role)
    with ProgressBar("audit", quiet=as_json).shown():
        found = audit_workspace(place, releases=release or (), heads=heads)
        name = audited_prompt(found, prompt) if prompt else None
        _export(export or (), place, found, name)
    if as_json:
        print_json(audit_data(found))
    else:
        _show(found, name)
    if not found.holds:
        raise typer.Exit(GATE_EXIT)


def _check_outputs(paths: Sequence[Path], workspace: WorkspacePaths) -> None:
    """Refuse what cannot be written before anything is done."""
    for path in paths:
        if path.suffix.lower() not in _FORMS:
            raise typer.BadParameter(
                f"{path.name}: --export writes {', '.join(_FORMS)}; name such a file"
            )
        own_output(path, workspace)
        if path.resolve().is_relative_to(workspace.releases.resolve()):
            raise DataError(
                f"{path} lies among the releases, which never change. Name a file "
                "elsewhere."
            )


def _repair(workspace: WorkspacePaths, actor: str | None, role: str) -> None:
    """Move a torn last line aside, record a clock that was ahead, and say so."""
    who = acting(actor, role)
    try:
        entry = quarantine_torn_line(workspace.ledger, who)
        clock = record_wrong_clock(workspace.ledger, who)
    except LedgerError as error:
        note(f"nothing was moved: {error}")
        return
    if entry is not None:
        note(f"moved a torn last line aside; entry {entry.seq} records it")
    if clock is not None:
        note(f"entry {clock.seq} records that {clock.reason}")
    if entry is None and clock is None:
        note("the last line is whole: nothing to repair")


def _export(
    paths: Sequence[Path],
    workspace: WorkspacePaths,
    found: LedgerAudit,
    prompt: str | None,
) -> None:
    """Write the audit in every form asked for."""
    forms: Mapping[str, Callable[[], str]] = {
        ".csv": lambda: _csv(found),
        ".json": lambda: _json(found),
        ".html": lambda: _html(workspace, found, prompt),
    }
    for path in paths:
        write_atomic(path, forms[path.suffix.lower()]())
        note(f"wrote {path}")


def _csv(found: LedgerAudit) -> str:
    return render_audit_csv(found)


def _json(found: LedgerAudit) -> str:
    return json.dumps(audit_data(found), ensure_ascii=False, indent=2) + "\n"


def _html(workspace: WorkspacePaths, found: LedgerAudit, prompt: str | None) -> str:
    names = (prompt,) if prompt else list_audited(found)
    histories = [read_changes(workspace, found, name) for name in names]
    folder = template_folder(workspace)
    own = (folder / "audit.html.jinja").is_file()
    return render_audit_html(found, histories, templates=folder if own else None)


def _show(found: LedgerAudit, prompt: str | None) -> None:
    """Print the entries, then what was checked, then the result."""
    doubted = {
        one.seq
        for one in found.findings
        if one.severity is FindingSeverity.BROKEN and one.seq
    }
    before = None
    for entry in found.entries:
        if prompt is None or concerns(entry, prompt):
            say(_entry_line(entry, before, doubted=entry.seq in doubted))
            before = entry
    say()
    for one in found.findings:
        for line in _finding_lines(one):
            say(line)
    say()
    for line in _result(found):
        say(line)


def _entry_line(
    entry: LedgerEntry, before: LedgerEntry | None, *, doubted: bool
) -> str:
    """Return an entry on one line; ``!`` marks one that something is broken about.

    Whoever overrides often does so for the reason that the line before has: it is not
    printed again.
    """
    mark = "!" if doubted else "s" if entry.keyid else " "
    meaning = f" [{entry.meaning}]" if entry.meaning else ""
    reason = " ".join(entry.reason.split())
    if entry.action == "override" and before and before.reason == entry.reason:
        reason = f"for the reason of entry {before.seq}"
    return (
        f"{entry.seq:>5} {mark} {entry.time[:16].replace('T', ' ')}  {entry.actor} "
        f"({entry.role})  {entry.action}  {entry.subject}{meaning}: {reason}"
    )


def _finding_lines(one: Finding) -> Iterator[str]:
    """Yield a finding, and where it is, what it implies and what to do if so."""
    words = one.where.split(", ")
    said = all(
        re.search(rf"(?<!\w){re.escape(word)}(?!\w)", one.what) for word in words
    )
    where = f"  ({one.where})" if one.where and not said else ""
    yield f"{one.severity.value:<8} {one.check:<12} {one.what}{where}"
    for text in (one.implies, one.todo):
        if text:
            yield f"{'':21} {text}"


def _result(found: LedgerAudit) -> Iterator[str]:
    first = found.first_break
    if first is not None:
        yield f"first broken link: {first.what}"
        yield f"  {first.implies}"
    tally = ", ".join(f"{count} {name.value}" for name, count in found.counts.items())
    yield f"head: {found.head}"
    result = "nothing checked is broken" if found.holds else "BROKEN"
    yield f"audit: {result} ({tally})"
    if found.entries and not found.signed:
        yield (
            "nobody signed any entry: who acted is as written, and whoever can write "
            "this folder could rewrite its history without a trace; compare the head "
            "with one that was written down elsewhere (--head), and make keys with "
            "`ranloop key new NAME`"
        )
