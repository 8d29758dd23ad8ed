"""What happens on the page Versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import ConflictError, DataError, LedgerError, LoopError
from loop.core.ledger import LedgerEntry
from loop.core.people.users import Right
from loop.documents.numbers import interval, share
from loop.evaluate.gates import GateVerdict
from loop.evaluate.recording import record_evaluation
from loop.evaluate.results import Evaluation
from loop.evaluate.score_history import LedgerState, ledger_state, score_history
from loop.prompts.catalog import list_drafts, list_versions, read_version
from loop.prompts.diff import diff_versions
from loop.prompts.history import move_alias
from loop.ui.context import AppContext
from loop.ui.html import notice, show
from loop.ui.pages.versions.state import find_unscored
from loop.ui.pages.versions.view import (
    ComparisonOutputs,
    LedgerQuery,
    PromptPageOutputs,
    VersionsOutputs,
    action_choices,
    render_ledger,
    render_prompt_page,
    render_unscored,
    render_versions,
)
from loop.ui.wiring import Visit


class AliasMove(NamedTuple):
    """What the form for an alias says."""

    ref: str | None
    alias: str
    why: str
    seen: int
    """Ledger entries there were when the page was opened."""


def refresh(visit: Visit, prompt: str | None, cohort: str | None) -> VersionsOutputs:
    """Return the whole page: what each of its outputs shows."""
    context = visit.context
    state = ledger_state(context.workspace)
    versions = _versions(context, prompt)
    tables = _tables(context, prompt, cohort)
    compared = _compared(context, prompt, versions)
    return VersionsOutputs(
        tables=tables,
        before=compared.before,
        after=compared.after,
        difference=compared.difference,
        reading=gr.Dropdown(choices=_refs(context, prompt), value=None),
        prompt_page="",
        aliasing=gr.Column(visible=visit.user.may(Right.APPROVE) and bool(versions)),
        version=gr.Dropdown(choices=versions, value=versions[-1] if versions else None),
        action=gr.Dropdown(choices=action_choices(state), value=""),
        subject="",
        ledger=render_ledger(context, LedgerQuery()),
        seen=len(state.entries),
        stale="",
        unscored=render_unscored(visit, prompt, cohort),
    )


def _tables(context: AppContext, prompt: str | None, cohort: str | None) -> str:
    if not prompt:
        return notice(
            "A workspace begins with one: make it with `ranloop init`.",
            title="No prompt yet",
        )
    try:
        return render_versions(context, prompt, cohort or "")
    except LedgerError:
        return notice(
            "The ledger says where versions come from, and its chain is broken: see "
            "below.",
            kind="error",
            title="The versions cannot be told",
        )


def _versions(context: AppContext, prompt: str | None) -> list[str]:
    numbers = list_versions(context.workspace, prompt) if prompt else ()
    return [f"{prompt}@v{number}" for number in numbers]


def _refs(context: AppContext, prompt: str | None) -> list[str]:
    """Return the versions of a prompt, then its drafts."""
    drafts = list_drafts(context.workspace, prompt) if prompt else ()
    return [
        *_versions(context, prompt),
        *(f"{prompt}@draft:{one}" for one in drafts),
    ]


def _compared(
    context: AppContext, prompt: str | None, versions: Sequence[str]
) -> ComparisonOutputs:
    """Return the two choices and the difference of the two newest versions."""
    refs = _refs(context, prompt)
    after = versions[-1] if versions else None
    before = versions[-2] if len(versions) > 1 else after
    return ComparisonOutputs(
        before=gr.Dropdown(choices=refs, value=before),
        after=gr.Dropdown(choices=refs, value=after),
        difference=_difference(context, before, after),
    )


def _difference(context: AppContext, before: str | None, after: str | None) -> str:
    """Return the difference, or why there is none to show."""
    if not before or not after:
        return notice("Choose two versions.")
    try:
        old, new = (read_version(context.workspace, ref) for ref in (before, after))
    except LoopError as error:
        return notice(str(error), kind="error", title="Cannot be compared")
    return show("diff.html.jinja", diff=diff_versions(old, new))


def compare(
    visit: Visit, before: str | None, after: str | None, seen: int
) -> list[str]:
    """Return what `after` changes, and whether the page is still as it was."""
    return [_difference(visit.context, before, after), _remark(visit.context, seen)]


def act(visit: Visit, prompt: str | None, cohort: str | None) -> list[Any]:
    """Answer a click inside the tables: show what a version changed, or reads like."""
    ref, unchanged = f"{prompt}@{visit.data.get('tag')}", gr.skip()
    if ref not in _refs(visit.context, prompt):
        raise DataError("that version is not there any more. Open the page again.")
    if visit.data.get("act") == "read":
        shown = render_prompt_page(visit.context, ref, arrived=True)
        compared = ComparisonOutputs(unchanged, unchanged, unchanged)
        return [*compared, *PromptPageOutputs(ref, shown)]
    versions = _versions(visit.context, prompt)
    before = versions[max(versions.index(ref) - 1, 0)] if ref in versions else None
    compared = ComparisonOutputs(before, ref, _difference(visit.context, before, ref))
    return [*compared, *PromptPageOutputs(unchanged, unchanged)]


def read(visit: Visit, ref: str | None) -> str:
    """Return the page of the version or draft that was chosen."""
    return render_prompt_page(visit.context, ref) if ref else ""


def evaluate(visit: Visit, prompt: str | None, cohort: str | None) -> VersionsOutputs:
    """Evaluate the run of the version that was clicked, and refresh the page."""
    made = evaluate_version(visit, prompt, cohort)
    said = (
        f"{made.run.prompt} was evaluated on {made.cohort.name}: macro-F1 "
        f"{share(made.macro.score.estimate)} {interval(made.macro.score)} "
        f"({made.run.engine}, uncertain answers {made.protocol.policy.value}, "
        f"reference {made.cohort.reference}), "
        f"{made.count(GateVerdict.PASS)} of {len(made.comparable)} labels passed. "
        "The ledger records it."
    )
    outputs = refresh(visit, prompt, cohort)
    return outputs._replace(unscored=render_unscored(visit, prompt, cohort, said))


def evaluate_version(
    visit: Visit, prompt: str | None, cohort: str | None
) -> Evaluation:
    """Evaluate the run of the version that was clicked, and record it as the CLI does.

    Raises
    ------
    DataError
        Nothing of that version waits for an evaluation, or it cannot be evaluated.
    """
    context, wanted = visit.context, str(visit.data.get("number", ""))
    scores = score_history(context.workspace, prompt or "", cohort or "")
    for one in find_unscored(context, scores, cohort or ""):
        if str(one.score.number) == wanted:
            evaluation = context.evaluation(one.run)
            return record_evaluation(context.workspace, evaluation, visit.actor)
    raise DataError(
        "that version has no run here that waits for an evaluation: somebody may have "
        "evaluated it meanwhile. Open the page again."
    )


def point(
    visit: Visit, prompt: str | None, cohort: str | None, *typed: Any
) -> list[Any]:
    """Point an alias at a version, and show the page as it is then."""
    move = AliasMove(*typed)
    if not move.ref:
        raise DataError("no version is chosen. Choose the one that the alias names.")
    if not move.why.strip():
        raise DataError("a reason is missing: the ledger records it. Write why.")
    workspace, name = visit.context.workspace, move.alias.strip()
    _refuse_moved(ledger_state(workspace), prompt, name, move.seen)
    entry = move_alias(
        workspace,
        move.ref,
        name,
        actor=visit.actor,
        reason=move.why.strip(),
        now=visit.context.now,
    )
    return [*refresh(visit, prompt, cohort), "", "", _moved(entry)]


def _refuse_moved(
    state: LedgerState, prompt: str | None, alias: str, seen: int
) -> None:
    """Refuse to move an alias that someone else moved since the page was opened."""
    for entry in reversed(state.entries[seen:]):
        name, _, tag = entry.subject.partition("@")
        moved = entry.action == "alias_moved" and name == prompt
        if moved and entry.payload.get("alias") == alias:
            raise ConflictError(
                f"{entry.actor} pointed {alias} at {tag} after you opened this page. "
                "Nothing of yours was done: open Versions again, and move it if you "
                "still want to."
            )


def _moved(entry: LedgerEntry) -> str:
    name, _, tag = entry.subject.partition("@")
    before = entry.payload.get("before")
    was = f" It was {before} before." if before else ""
    return notice(
        f"{name}@{entry.payload['alias']} is now {tag}.{was} Entry {entry.seq} of the "
        "ledger.",
        kind="good",
    )


def read_ledger_page(visit: Visit, action: str | None, subject: str, seen: int) -> Any:
    """Return the ledger as filtered; the page that a click asks for, else the first."""
    page = str(visit.data.get("page", "1"))
    query = LedgerQuery(action or "", subject, int(page) if page.isdecimal() else 1)
    return [render_ledger(visit.context, query), _remark(visit.context, seen)]


def _remark(context: AppContext, seen: int) -> str:
    """Say that the ledger went on since the page was opened, if it did."""
    new = len(ledger_state(context.workspace).entries) - seen
    return show("versions_stale.html.jinja", new=new) if new > 0 else ""
