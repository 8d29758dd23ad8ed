"""The verbs ``draft ...``: a revision in steps, each of which can be looked at."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
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
    print_table,
    say,
)
from loop.cli.revise import (
    ContractOption,
    KeptOption,
    SkipBlockedOption,
    VerdictOption,
    VerdictsOption,
    named_verdicts,
)
from loop.core.files import read_text
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.prompts.diff import diff_data, format_diff
from loop.prompts.instructions import instructions_text
from loop.prompts.lint import lint_data
from loop.prompts.version import CallPlan
from loop.release.export.changed_programs import begin_from_program
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.changes import CaseChange, Changes
from loop.review.revise.check_record import Checked, recall_check
from loop.review.revise.commit import (
    CommitDecision,
    commit_checked,
    discard_draft,
    keep_draft,
)
from loop.review.revise.draft import (
    Drafted,
    DraftInfo,
    Shown,
    find_engine_counter,
    list_open_drafts,
    render_shown,
    show_draft,
)
from loop.review.revise.edit import (
    GuideEdit,
    SettingsEdit,
    edit_draft,
    find_guide_text,
    restore_tried,
)
from loop.review.revise.forecast import forecast_check
from loop.review.revise.merge import Conflict, ConflictChoice, rebase_draft
from loop.review.revise.run_check import CheckStep, Examination, check_draft_ref
from loop.review.revise.tries import NotedTry, list_tries
from loop.review.verdict_files import read_verdicts
from loop.run.asking import EngineOptions
from loop.run.store import open_store
from loop.run.task import Watch

_MOST = 20
"""Cases of one kind that are listed on a terminal; the others are counted."""

_REASON = 60
"""Characters of a reason in a list; `draft show` has all of it."""

draft = typer.Typer(
    name="draft", no_args_is_help=True, help="Revise a prompt in steps."
)

DraftArgument = Annotated[
    str, typer.Argument(help="Draft, e.g. extractor@draft:ID or extractor@draft.")
]

WhyOption = Annotated[str, typer.Option("--why", help="Reason, in your words.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to `app`."""
    app.add_typer(draft)


@draft.command("begin")
def begin(
    prompt: Annotated[str, typer.Argument(help="Prompt or draft, e.g. extractor.")],
    cohort: Annotated[str, typer.Option("--cohort", "-c", help="Dev cohort.")],
    verdicts: VerdictsOption = None,
    kept: KeptOption = False,
    verdict: VerdictOption = None,
    contract: ContractOption = "",
    skip_blocked: SkipBlockedOption = False,
    program: Annotated[
        Path | None,
        typer.Option(
            "--program", help="From an exported DSPy program, changed and saved."
        ),
    ] = None,
    why: WhyOption = "",
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Begin a draft from verdicts, or an unchanged one to edit by hand.

    Nothing is run and nothing is recorded: a draft is private until it is decided. With
    --program a DSPy program comes back: what was changed of it becomes a draft, or is
    refused with what could not be mapped.
    """
    place, who = open_workspace(workspace), acting(actor, role)
    if program is not None:
        if verdicts or kept or verdict or contract:
            raise typer.BadParameter("--program takes no verdicts and no contract")
        with open_store(place) as store:
            read = begin_from_program(
                place, store, prompt, cohort, program, who, why=why
            )
        if read.draft:
            print_drafted(show_draft(place, read.draft), as_json=as_json)
        elif as_json:
            print_json(
                {
                    "draft": "",
                    "version": read.version.ref,
                    "digest": read.version.digest,
                    "stated": read.stated,
                }
            )
        elif read.stated:
            say(f"{program} is {read.version.ref}, unchanged: {read.version.digest}")
        else:
            say(
                f"{program} changes nothing of {read.version.ref}; it does not say "
                "which version it was exported from"
            )
        return
    named = named_verdicts(place, prompt, cohort, verdict or (), every=kept)
    file = read_verdicts(verdicts, reviewer=who.name).verdicts if verdicts else ()
    request = DraftRequest(
        prompt=prompt,
        cohort=cohort,
        verdicts=(*named, *file),
        contract=contract,
        why=why,
        skip_blocked=skip_blocked,
    )
    with open_store(place) as store:
        made = begin_draft(place, store, request, who)
    print_drafted(made, as_json=as_json)


@draft.command("list")
def list_drafts(
    prompt: Annotated[str, typer.Argument(help="Prompt, e.g. extractor.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the open drafts of a prompt, oldest first."""
    place = open_workspace(workspace)
    with open_store(place) as store:
        found = list_open_drafts(place, store, prompt)
    if as_json:
        print_json({"prompt": prompt, "drafts": [info_data(one) for one in found]})
        return
    if not found:
        say(f"{prompt} has no open draft")
        return
    print_table(
        ("draft", "by", "parent", "check", "from", "why"),
        [
            (
                one.ref,
                one.author,
                one.parent_ref + (" (behind)" if one.behind else ""),
                one.checked,
                one.origin,
                shorten(one.problem or one.why, _REASON, placeholder=" …"),
            )
            for one in found
        ],
    )


@draft.command("show")
def show(
    ref: DraftArgument,
    label: Annotated[
        str,
        typer.Option(
            "--label",
            help="Print one guide, to be edited; a template where there is none.",
        ),
    ] = "",
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the messages a model receives.")
    ] = False,
    instructions: Annotated[
        bool,
        typer.Option("--instructions", help="Print both templates, to be edited."),
    ] = False,
    engine: Annotated[
        str, typer.Option("--engine", "-e", help="Engine whose tokens are counted.")
    ] = "rules",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a draft: its changes, lint, tokens and the check that was made of it."""
    place = open_workspace(workspace)
    made = show_draft(place, ref, engine)
    if label:
        _show_guide(place, made, label, as_json=as_json)
    elif instructions:
        _show_instructions(made, as_json=as_json)
    elif prompt:
        _show_prompt(place, made, engine, as_json=as_json)
    else:
        _show_all(place, made, as_json=as_json)


@draft.command("edit")
def edit(
    ref: DraftArgument,
    label: Annotated[str, typer.Argument(help="Label id, e.g. edema.")] = "",
    file: Annotated[
        Path | None,
        typer.Argument(help="YAML as `draft show --label` prints it; - for stdin."),
    ] = None,
    instructions: Annotated[
        Path | None,
        typer.Option(
            "--instructions",
            help="Templates as `draft show --instructions` prints them; - for stdin.",
        ),
    ] = None,
    plan: Annotated[
        CallPlan | None, typer.Option("--plan", help="How many calls a case takes.")
    ] = None,
    contract: ContractOption = "",
    as_tried: Annotated[
        str,
        typer.Option(
            "--as-tried", help="Wording of an earlier try, as `draft show` names it."
        ),
    ] = "",
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replace a guide of a draft, its instructions, its call plan or its contract.

    Blocks that are marked as frozen stay as they are; they may be left empty. With
    --as-tried all of it is again as it was when `ranloop try` was called.
    """
    if bool(label) != (file is not None):
        raise typer.BadParameter("a guide takes a label and a file")
    edits = bool(file or instructions or plan or contract)
    if edits == bool(as_tried):
        raise typer.BadParameter(
            "name a label and a file, --instructions, --plan or --contract; or "
            "--as-tried alone"
        )
    place, who = open_workspace(workspace), acting(actor, role)
    if as_tried:
        print_drafted(restore_tried(place, ref, as_tried, who), as_json=as_json)
        return
    made = edit_draft(
        place,
        ref,
        (GuideEdit(label=label, text=_read(file)),) if file else (),
        who,
        settings=SettingsEdit(
            instructions=_read(instructions) if instructions else "",
            plan=plan,
            contract=contract,
        ),
    )
    print_drafted(made, as_json=as_json)


def _read(file: Path) -> str:
    return sys.stdin.read() if str(file) == "-" else read_text(file)


@draft.command("check")
def check(
    ref: DraftArgument,
    engine: Annotated[
        str, typer.Option("--engine", "-e", help="Engine for the check.")
    ] = "rules",
    cohort: Annotated[
        str, typer.Option("--cohort", "-c", help="Dev cohort; default: the draft's.")
    ] = "",
    draws: DrawsOption = None,
    max_draws: MaxDrawsOption = None,
    allow_unconstrained: UnconstrainedOption = False,
    dry_run: CheckDryRunOption = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a draft against its parent; exits with 100 when something stands against it.

    Interrupted and started again, it asks only for what is missing.
    """
    place = open_workspace(workspace)
    how = Examination(
        engine=engine,
        asking=EngineOptions(allow_unconstrained=allow_unconstrained),
        draws=draws,
        max_draws=max_draws,
        watch=_watch(quiet=as_json),
        cohort=cohort,
    )
    if dry_run:
        show_forecast(forecast_check(place, ref, how), as_json=as_json)
        return
    with open_store(place) as store:
        checked = check_draft_ref(place, store, ref, acting(actor, role), how)
    if as_json:
        print_json(checked_data(checked))
    else:
        say_checked(checked)
    if not checked.passed:
        raise typer.Exit(GATE_EXIT)


@draft.command("commit")
def commit(
    ref: DraftArgument,
    why: WhyOption = "",
    override: Annotated[
        bool, typer.Option("--override", help="Commit against objections; needs --why.")
    ] = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Commit a checked draft as the next version."""
    if override and not why.strip():
        raise typer.BadParameter("--override needs --why: the ledger records it")
    place = open_workspace(workspace)
    decision = CommitDecision(why, why if override else "")
    with open_store(place) as store:
        version, _ = commit_checked(place, store, ref, acting(actor, role), decision)
    if as_json:
        print_json({"version": version.ref, "digest": version.digest})
    else:
        say(f"committed {version.ref}")


@draft.command("keep")
def keep(
    ref: DraftArgument,
    why: Annotated[str, typer.Option("--why", help="Why it stays a draft.")],
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record in the ledger that a draft stays a draft for now."""
    entry = keep_draft(open_workspace(workspace), ref, acting(actor, role), why)
    if as_json:
        print_json({"draft": entry.subject, "entry": entry.seq})
    else:
        say(f"kept {entry.subject} as a draft, ledger entry {entry.seq}")


@draft.command("rebase")
def rebase(
    ref: DraftArgument,
    resolve: Annotated[
        list[str] | None,
        typer.Option("--resolve", help="CONFLICT=ours or =theirs; may be repeated."),
    ] = None,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring a draft to the newest version; exits with 100 while conflicts are open."""
    choices = dict(map(_choice, resolve or ()))
    done = rebase_draft(open_workspace(workspace), ref, acting(actor, role), choices)
    if as_json:
        print_json(
            {
                "draft": done.draft.ref if done.draft else None,
                "newest": done.newest,
                "conflicts": [one._asdict() for one in done.conflicts],
            }
        )
    elif done.drafted:
        say_drafted(done.drafted)
    if not as_json:
        say_conflicts(done.conflicts)
    if done.conflicts:
        raise typer.Exit(GATE_EXIT)


@draft.command("discard")
def discard(
    ref: DraftArgument,
    why: Annotated[str, typer.Option("--why", help="Why it is given up.")],
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a draft; one that was checked leaves an entry in the ledger."""
    entry = discard_draft(open_workspace(workspace), ref, acting(actor, role), why)
    if as_json:
        print_json({"draft": ref, "entry": entry.seq if entry else None})
    else:
        say(f"discarded {ref}" + (f", ledger entry {entry.seq}" if entry else ""))


def _show_instructions(made: Drafted, *, as_json: bool) -> None:
    text = instructions_text(made.draft)
    if as_json:
        print_json({"draft": made.draft.ref, "instructions": text})
    else:
        say(text.removesuffix("\n"))


def print_drafted(made: Drafted, *, as_json: bool) -> None:
    """Print a draft for people, or as the one JSON object."""
    if as_json:
        print_json(drafted_data(made))
    else:
        say_drafted(made)


def say_drafted(made: Drafted) -> None:
    """Print what a draft changes, what lint says and what it costs."""
    say(f"{made.draft.ref}, made from {made.parent.ref}")
    for line in format_diff(made.diff):
        say(line)
    show_lint(made.lint)
    show_copies(made.copies)
    for text in made.notes:
        say(f"note: {text}")
    if made.behind:
        say(f"another version was committed: ranloop draft rebase {made.draft.ref}")
    if made.tokens:
        before, after, _, remark = made.tokens
        say(f"tokens before the case: {before} -> {after} ({remark})")


def say_checked(checked: Checked, *, stale: bool = False) -> None:
    """Print a check: lint, the labels, the cases, objections, and what to do next.

    One that is `stale` is of an earlier state of the draft.
    """
    show_lint(checked.lint)
    if checked.check:
        show_check(checked.check)
        _say_changes(checked.changes)
    if checked.tried:
        wordings, cases = checked.tried
        say(
            f"tried before: {counted(wordings, 'wording')} of this draft, "
            f"on {counted(cases, 'dev case')}"
        )
    for objection in checked.objections:
        say(f"  - {objection}")
    if stale:
        say(f"check it again: ranloop draft check {checked.draft}")
    elif checked.passed:
        say(f"no objections: ranloop draft commit {checked.draft} --why ...")


def _say_changes(changes: Changes) -> None:
    for name, found in (("fixed", changes.fixed), ("broken", changes.broken)):
        say(f"{name}: {len(found)}")
        for one in found[:_MOST]:
            say(f"  {one.case_id} {one.label}: {one.before} -> {one.after}")
        if len(found) > _MOST:
            say(f"  and {len(found) - _MOST} more; see --json")
    say(f"still wrong: {len(changes.unchanged)}, still right: {changes.kept}")


def say_conflicts(conflicts: Iterable[Conflict]) -> None:
    """Print what somebody has to decide, and how."""
    found = tuple(conflicts)
    for one in found:
        say(f"conflict {one.id}: {' '.join(filter(None, one[1:4]))}")
        say(f"  ours:   {one.ours or '(taken out)'}")
        say(f"  theirs: {one.theirs or '(taken out)'}")
    if found:
        say("nothing was written; decide each with --resolve CONFLICT=ours or =theirs")


def say_prompt(shown: Shown) -> None:
    """Print the messages of every call."""
    say(shown.text)


def drafted_data(made: Drafted) -> dict[str, Any]:
    """Return a draft as JSON data."""
    return {
        "draft": made.draft.ref,
        "parent": made.parent.ref,
        "behind": made.behind,
        "sound": made.sound,
        "verdicts": list(made.draft.verdicts),
        "why": made.draft.why,
        "diff": diff_data(made.diff),
        "lint": lint_data(made.lint),
        "copies": [copy._asdict() for copy in made.copies],
        "not_searched_for_copies": [name for name, _ in made.skipped],
        "notes": list(made.notes),
        "tokens": made.tokens._asdict() if made.tokens else None,
    }


def checked_data(checked: Checked) -> dict[str, Any]:
    """Return a check and what it rests on as JSON data."""
    return {
        "draft": checked.draft,
        "parent": checked.parent,
        "passed": checked.passed,
        "objections": list(checked.objections),
        "engine": checked.engine,
        "ground": asdict(checked.ground),
        "lint": lint_data(checked.lint),
        "check": check_data(checked.check) if checked.check else None,
        "changes": _changes_data(checked.changes),
        "runs": list(checked.runs),
        "tried": checked.tried and checked.tried._asdict(),
        "by": checked.by,
        "time": checked.time,
    }


def _changes_data(changes: Changes) -> dict[str, Any]:
    return {
        "fixed": _rows(changes.fixed),
        "broken": _rows(changes.broken),
        "unchanged": _rows(changes.unchanged),
        "unjudged": _rows(changes.unjudged),
        "kept": changes.kept,
        "unanswered": changes.unanswered,
    }


def _rows(found: Iterable[CaseChange]) -> list[dict[str, str]]:
    return [one._asdict() for one in found]


def info_data(info: DraftInfo) -> dict[str, Any]:
    """Return one line of the list of drafts as JSON data."""
    return asdict(info)


def shown_data(shown: Shown) -> dict[str, Any]:
    """Return a rendered prompt as JSON data."""
    return {
        "prompt": shown.ref,
        "tokens": shown.tokens,
        "exact": shown.exact,
        "remark": shown.remark,
        "calls": [
            {
                "name": call.name,
                "tokens": call.tokens,
                "messages": [message._asdict() for message in call.messages],
            }
            for call in shown.calls
        ],
    }


def _show_guide(
    place: WorkspacePaths, made: Drafted, label: str, *, as_json: bool
) -> None:
    text = find_guide_text(place, made.draft, label)
    if as_json:
        print_json({"draft": made.draft.ref, "label": label, "guide": text})
    else:
        say(text.rstrip("\n"))


def _show_prompt(
    place: WorkspacePaths, made: Drafted, engine: str, *, as_json: bool
) -> None:
    shown = render_shown(made.draft, find_engine_counter(place, engine))
    if as_json:
        print_json(shown_data(shown))
    else:
        say_prompt(shown)


def _show_all(place: WorkspacePaths, made: Drafted, *, as_json: bool) -> None:
    with open_store(place) as store:
        recalled = recall_check(place, store, made.draft.ref)
    tries = list_tries(place, made.draft)
    if as_json:
        checked = checked_data(recalled.checked) if recalled else None
        stale = list(recalled.stale) if recalled else []
        tried = [{**asdict(one), "wording": bool(one.wording)} for one in tries]
        more = {"checked": checked, "stale": stale, "tries": tried}
        print_json({**drafted_data(made), **more})
        return
    say_drafted(made)
    _say_tries(tries, made.draft.digest)
    if recalled:
        for reason in recalled.stale:
            say(f"the check does not hold any more: {reason}")
        say_checked(recalled.checked, stale=bool(recalled.stale))


def _say_tries(tries: Sequence[NotedTry], now: str) -> None:
    """Print which wordings were tried, the last one first."""
    if not tries:
        return
    say()
    say("tried; `draft edit --as-tried WORDING` takes an earlier wording back")
    rows = [
        (
            one.digest[:8],
            "as it is now" if one.digest == now else "" if one.wording else "not kept",
            one.engine,
            f"{len(one.cases):,}",
            one.by,
            one.time,
        )
        for one in reversed(tries)
    ]
    print_table(("wording", "", "engine", "cases", "by", "at"), rows[:_MOST])
    if len(rows) > _MOST:
        say(f"and {len(rows) - _MOST} more (--json lists all)")


def _watch(*, quiet: bool) -> Callable[[CheckStep], Watch]:
    def watch(step: CheckStep) -> Watch:
        where = f"check {step.number} of {step.of}, {step.side}"
        return ProgressBar(where, quiet=quiet).track

    return watch


def _choice(word: str) -> tuple[str, ConflictChoice]:
    name, _, side = word.rpartition("=")
    if side not in tuple(ConflictChoice) or not name:
        raise typer.BadParameter("write --resolve CONFLICT=ours or CONFLICT=theirs")
    return name, ConflictChoice(side)
