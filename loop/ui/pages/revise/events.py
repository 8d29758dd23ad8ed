"""What visitors do on the page Revise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import ConflictError, DataError, LoopError
from loop.core.nouns import counted
from loop.core.people.users import Right
from loop.core.records import Exemplar, Value
from loop.optimize.decisions import (
    DraftSearch,
    accept_guide,
    accept_proposal,
    find_search,
    refuse_found,
    refuse_guide,
)
from loop.prompts.catalog import list_drafts, read_version
from loop.prompts.outputs.base import CONTRACTS
from loop.prompts.version import CallPlan, PromptVersion
from loop.review.job_work import start_job
from loop.review.revise.begin import DraftRequest, begin_draft, blocked_of
from loop.review.revise.blocked import Blocked
from loop.review.revise.commit import (
    CommitDecision,
    commit_checked,
    discard_draft,
    keep_draft,
)
from loop.review.revise.corrections import correct_reference_from
from loop.review.revise.draft_files import read_about
from loop.review.revise.edit import (
    GuideEdit,
    SettingsEdit,
    edit_draft,
    restore_tried,
)
from loop.review.revise.merge import ConflictChoice, rebase_draft
from loop.review.revise.pasted import keep_case, keep_exemplar
from loop.review.revise.tries import list_tries
from loop.review.revise.tryout import TryRequest, try_case, try_pairs, try_text
from loop.run.asking import HeldEngine, hold_engine
from loop.run.jobs import JobKind, JobRequest
from loop.ui import trying
from loop.ui.background import Job
from loop.ui.pages.base import SAME
from loop.ui.pages.revise.state import (
    DEFAULT_ENGINE,
    INSTRUCTIONS,
    SETTINGS,
    OpenedDraft,
    UnsavedGuide,
    answered_freely,
    check_progress,
    commit_key,
    drop_typed,
    drop_why,
    find_check,
    find_draft_open,
    find_running,
    find_ticked,
    find_typed,
    guide_mark,
    guide_of,
    is_running,
    keep_draft_open,
    keep_known,
    keep_ticked,
    keep_typed,
    keep_why,
    known_engines,
    read_open_verdicts,
    read_state,
)
from loop.ui.pages.revise.view import (
    NO_MESSAGE,
    TRY_TURN,
    ReviseMessage,
    ReviseOutputs,
    blocked_message,
    error_message,
    show_editor,
    show_fate,
    show_note,
    show_page,
    show_progress,
    show_proposals,
    show_try_button,
    show_verdicts,
    success_message,
)
from loop.ui.tryout_panel import DRAWS, Found, render_heard, render_tryout
from loop.ui.wiring import Visit

MOST_TICKED = 5_000

PAGES = frozenset({"overview", "review", "versions"})
"""Pages that a link leads to."""


class TryInputs(NamedTuple):
    """What the boxes beside a try say."""

    engine: str = DEFAULT_ENGINE
    draws: Any = 1
    words: str = ""


BY_DEFAULT = TryInputs()


class KeepInputs(NamedTuple):
    """What pasted words are to be kept as."""

    words: str
    label: str
    value: str
    evidence: str = ""
    as_case: bool = False


def refresh(visit: Visit, prompt: str | None, cohort: str | None) -> ReviseOutputs:
    """Return the page with the draft that was looked at last."""
    ref = find_draft_open(visit, prompt or "", cohort or "")
    return show_page(visit, prompt, cohort, ref)


def tick(visit: Visit, prompt: str | None, cohort: str | None) -> None:
    """Keep which verdicts are ticked."""
    if cohort:
        keep_ticked(visit, cohort, _ticked(visit))


def act_on_verdicts(visit: Visit, prompt: str, cohort: str) -> ReviseOutputs:
    """Build a draft from verdicts, begin an unchanged one, or correct the reference."""
    match visit.data.get("do"):
        case "build":
            return _build(visit, prompt, cohort)
        case "hand":
            return _begin(visit, prompt, cohort, ())
        case "correct":
            return _correct(visit, prompt, cohort)
    return ReviseOutputs()


def _build(visit: Visit, prompt: str, cohort: str) -> ReviseOutputs:
    keep_ticked(visit, cohort, _ticked(visit))
    state = read_state(visit, prompt, cohort, "")
    found = read_open_verdicts(state)
    ids = keep_known(found.wording, _ticked(visit))
    gone = set(_ticked(visit)) - set(ids) - {one.id for one in found.reference}
    if gone:
        return _tell_gone(visit, prompt, cohort, len(gone))
    if not ids:
        raise DataError(
            "no verdict is ticked. Tick those the draft is to answer, or begin an "
            "unchanged draft to edit by hand."
        )
    return _begin(visit, prompt, cohort, ids)


def _tell_gone(visit: Visit, prompt: str, cohort: str, count: int) -> ReviseOutputs:
    """Show the list afresh: nothing is built from what is not there any more."""
    said = error_message(
        f"{count} of the ticked verdicts {'is' if count == 1 else 'are'} not open any "
        "more: withdrawn, given again or answered meanwhile. The list is fresh now; "
        "look at it and press the button again.",
        "Nothing was made",
    )
    ref = find_draft_open(visit, prompt, cohort)
    return show_page(visit, prompt, cohort, ref, message=ReviseMessage(said))


def _tell_blocked(
    visit: Visit, request: DraftRequest, blocked: Sequence[Blocked]
) -> ReviseOutputs:
    """Say beside each what keeps it from being applied; leave the others ticked."""
    prompt, cohort = request.prompt, request.cohort
    stuck = {one.id for one in blocked}
    rest = [one for one in _ticked(visit) if one not in stuck]
    keep_ticked(visit, cohort, rest)
    said = blocked_message(len(stuck), len(request.verdicts) - len(stuck))
    ref = find_draft_open(visit, prompt, cohort)
    message = ReviseMessage(said, blocked=tuple(blocked))
    return show_page(visit, prompt, cohort, ref, message=message)


def _begin(
    visit: Visit, prompt: str, cohort: str, ids: tuple[str, ...]
) -> ReviseOutputs:
    context = visit.context
    request = DraftRequest(
        prompt=prompt,
        cohort=cohort,
        verdicts=ids,
        contract=_contract(visit),
        engine=known_engines(context, prompt, cohort)[0],
    )
    try:
        made = begin_draft(
            context.workspace, context.store, request, visit.actor, now=context.now
        )
    except DataError:
        blocked = blocked_of(context.workspace, context.store, request)
        if not blocked:
            raise
        return _tell_blocked(visit, request, blocked)
    keep_ticked(visit, cohort, ())
    keep_draft_open(visit, prompt, cohort, made.draft.ref)
    return show_page(
        visit, prompt, cohort, made.draft.ref, message=ReviseMessage(notes=made.notes)
    )


def _contract(visit: Visit) -> str:
    """Return the output contract that was chosen; empty to keep the version's."""
    chosen = visit.data.get("chosen")
    named = chosen.get("contract") if isinstance(chosen, Mapping) else ""
    return named if isinstance(named, str) and named in CONTRACTS else ""


def _correct(visit: Visit, prompt: str, cohort: str) -> ReviseOutputs:
    found = read_open_verdicts(read_state(visit, prompt, cohort, ""))
    ids = keep_known(found.reference, _ticked(visit))
    gone = set(_ticked(visit)) - set(ids) - {one.id for one in found.wording}
    if gone:
        return _tell_gone(visit, prompt, cohort, len(gone))
    if not ids:
        raise DataError("no verdict on the reference is ticked. Tick at least one.")
    context = visit.context
    done = correct_reference_from(
        context.workspace, context.store, cohort, ids, visit.actor
    )
    new = f"{cohort}:ref{done.reference}" if done.reference else "The newest reference"
    said = success_message(
        f"{new} says what {counted(done.corrections, 'judged label')} should be. "
        "Numbers are on it from now on, and earlier checks must be run again.",
        "Reference corrected",
    )
    ref = find_draft_open(visit, prompt, cohort)
    return show_page(visit, prompt, cohort, ref, message=ReviseMessage(said))


def open_draft(visit: Visit, prompt: str, cohort: str) -> ReviseOutputs:
    """Open the draft that was chosen in the list."""
    ref = str(visit.data.get("ref") or "")
    if visit.data.get("act") != "open" or not ref.startswith(f"{prompt}@draft:"):
        return ReviseOutputs()
    keep_draft_open(visit, prompt, cohort, ref)
    return show_page(visit, prompt, cohort, ref)


def rebase(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft | None
) -> ReviseOutputs:
    """Bring the open draft to the newest version, with what was chosen."""
    opened = _require_open(opened)
    ref = opened.draft
    if _is_gone(visit, prompt, opened):
        return show_page(visit, prompt, cohort, ref)
    chosen = visit.data.get("chosen")
    resolve = {
        str(name): ConflictChoice(side)
        for name, side in (chosen.items() if isinstance(chosen, Mapping) else ())
        if side in tuple(ConflictChoice)
    }
    context = visit.context
    done = rebase_draft(context.workspace, ref, visit.actor, resolve, now=context.now)
    if done.draft is None:
        count = len(done.conflicts)
        raise ConflictError(
            f"{count} conflict{' is' if count == 1 else 's are'} undecided. Choose "
            "one side in every row; nothing was changed."
        )
    keep_draft_open(visit, prompt, cohort, done.draft.ref)
    notes = (f"brought to {done.newest}; the draft has a new id, {done.draft.ref}",)
    return show_page(
        visit, prompt, cohort, done.draft.ref, message=ReviseMessage(notes=notes)
    )


def decide(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft | None
) -> ReviseOutputs:
    """Accept a proposal of the open draft, in other words or as it is, or refuse it.

    A term becomes a verdict; a whole guide stays in the draft or goes out of it, which
    takes the right to edit drafts.
    """
    opened, context, data = _require_open(opened), visit.context, visit.data
    state = read_state(visit, prompt, cohort, opened.draft, opened.label)
    if state.info is None or state.drafted is None:
        return show_page(visit, prompt, cohort, opened.draft)
    search = find_search(context.workspace, state.drafted.draft)
    if search is None:
        raise DataError("this draft has no proposals to decide on. Open it again.")
    how, name, text = (str(data.get(key) or "") for key in ("decide", "id", "text"))
    if search.guides:
        return _decide_guide(visit, prompt, cohort, opened, search)
    what = context.workspace, context.store, search, name
    if how == "refuse":
        refuse_found(*what, text, visit.actor, now=context.now)
        said = "Refused. It is not proposed again."
    elif how in ("accept", "edit"):
        wording = text if how == "edit" else None
        key = accept_proposal(*what, visit.actor, wording=wording, now=context.now)
        ticked = find_ticked(visit, search.cohort)
        keep_ticked(visit, search.cohort, (*ticked, key))
        said = f"Accepted as verdict {key}, under the name {visit.actor.name}."
    else:
        return ReviseOutputs()
    return ReviseOutputs(
        verdicts=show_verdicts(state), proposals=show_proposals(state, said)
    )


def _decide_guide(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft, search: DraftSearch
) -> ReviseOutputs:
    context, data = visit.context, visit.data
    actor = visit.user.actor(Right.REVISE)
    how, name, text = (str(data.get(key) or "") for key in ("decide", "id", "text"))
    one = search.guide(name)
    if data.get("seen") not in (None, "", one.mark):
        raise ConflictError(
            f"what {search.draft} says of {one.label} was changed since it was shown "
            "here. Open the draft again, look at it, and decide then."
        )
    draft = read_version(context.workspace, opened.draft)
    edited = one.label if one.label in draft.labels else INSTRUCTIONS
    _drop_saved(visit, draft, edited)
    what = context.workspace, search, name
    if how == "refuse":
        refuse_guide(*what, text, actor, now=context.now)
        said = "Refused. The draft says it no longer; it is not proposed again."
    elif how in ("accept", "edit"):
        wanted = text if how == "edit" else None
        accept_guide(*what, actor, text=wanted, now=context.now)
        said = f"Accepted, under the name {actor.name}."
    else:
        return ReviseOutputs()
    shown = show_page(visit, prompt, cohort, opened.draft, label=opened.label)
    state = read_state(visit, prompt, cohort, opened.draft, opened.label)
    # What was tried, and chosen beside it, stays as it does when a guide is saved.
    return shown._replace(
        proposals=show_proposals(state, said), keep_label=SAME, tried=SAME, heard=SAME
    )


def choose_label(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft | None, label: str
) -> ReviseOutputs:
    """Put the guide of another label, or the instructions, into the editor.

    A menu tells of its choice again when it is left: what is typed by then stays.
    """
    if _require_open(opened).label == label:
        return ReviseOutputs()
    return _edit(visit, prompt, cohort, opened, label)


def _edit(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft | None, label: str
) -> ReviseOutputs:
    state = read_state(visit, prompt, cohort, _require_open(opened).draft, label)
    return show_editor(ReviseOutputs(opened=state.opened), state)


def type_guide(visit: Visit, opened: OpenedDraft | None, text: str) -> None:
    """Keep what is in the editor as far as it is written."""
    if opened and opened.label:
        keep_typed(visit, opened, text)


def choose_setting(
    visit: Visit, opened: OpenedDraft | None, plan: str, contract: str
) -> None:
    """Keep the call plan and the contract that are chosen, and not saved."""
    if opened and opened.label == SETTINGS:
        keep_typed(visit, opened, f"plan: {plan}\ncontract: {contract}\n")


def undo_guide(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft | None
) -> ReviseOutputs:
    """Put what the draft says back into the editor."""
    opened = _require_open(opened)
    drop_typed(visit, opened.draft, opened.label)
    return _edit(visit, prompt, cohort, opened, opened.label)


def save_guide(
    visit: Visit,
    prompt: str,
    cohort: str,
    opened: OpenedDraft | None,
    text: str,
    plan: str = "",
    contract: str = "",
) -> ReviseOutputs:
    """Write what was edited into the draft, or say below the editor why it was not."""
    opened = _require_open(opened)
    state = read_state(visit, prompt, cohort, opened.draft, opened.label)
    if state.info is None:
        return ReviseOutputs(
            note=show_fate(visit, opened.draft, kept="Your text stays here.")
        )
    # The editor was opened on what has this mark; anything else is a conflict.
    known = guide_mark(state.guide) == opened.guide
    seen = state.guide if known else opened.guide
    guides: tuple[GuideEdit, ...] = ()
    settings = SettingsEdit()
    if opened.label == INSTRUCTIONS:
        settings = SettingsEdit(instructions=text, seen=seen)
    elif opened.label == SETTINGS:
        text = f"plan: {plan}\ncontract: {contract}\n"
        settings = SettingsEdit(
            plan=CallPlan(plan) if plan in tuple(CallPlan) else None,
            contract=contract if contract in tuple(CONTRACTS) else "",
            seen=seen,
        )
    else:
        guides = (GuideEdit(label=opened.label, text=text, seen=seen),)
    context = visit.context
    try:
        made = edit_draft(
            context.workspace,
            opened.draft,
            guides,
            visit.actor,
            settings=settings,
            now=context.now,
        )
    except LoopError as error:
        said = str(error)
        # What others wrote is shown with the error: saving again goes over it.
        now_seen = state.opened._replace(digest=opened.digest, checked=opened.checked)
        try:
            keep_typed(visit, now_seen, text)
        except DataError as too_long:
            said = f"{said}\n{too_long}"
        note = show_note(state, UnsavedGuide(text, opened.guide, ""), said)
        return ReviseOutputs(opened=now_seen, note=note)
    drop_typed(visit, opened.draft, opened.label)
    message = ReviseMessage(notes=(f"saved {state.editing}", *made.notes))
    shown = show_page(
        visit, prompt, cohort, opened.draft, label=opened.label, message=message
    )
    # What was tried stays beside the editor, to be tried again.
    return shown._replace(keep_label=SAME, tried=SAME, heard=SAME)


def run_check(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft | None, engine: str
) -> ReviseOutputs:
    """Start the check of the open draft."""
    opened = _require_open(opened)
    state = read_state(visit, prompt, cohort, opened.draft, opened.label)
    if state.info is None:
        return show_page(visit, prompt, cohort, opened.draft)
    if engine not in state.engines:
        raise DataError(
            f"no run here was made with the engine {engine!r}. Choose one of "
            f"{', '.join(state.engines)}, or make a first run with `ranloop run`."
        )
    start_check(visit, opened.draft, state.info.cohort or cohort, engine)
    return _show_around_editor(visit, prompt, cohort, opened)


def turn_try(
    visit: Visit,
    prompt: str,
    cohort: str,
    opened: OpenedDraft | None,
    how: TryInputs = BY_DEFAULT,
) -> Any:
    """Try the open draft: on the pairs of its verdicts, one case, or pasted words.

    `rules` answers at once; another engine is asked while `poll_try` waits.

    Raises
    ------
    DataError
        No draft is open, there is no such case, or the engine is none that ran here.
    ConflictError
        The visitor has a try of this draft under way.
    """
    act, off = visit.data.get("act"), trying.clock(active=False)
    ref = opened.draft if opened else ""
    trying.stop_tries(visit, ref)
    if not ref:
        raise DataError("no draft is open. Open one of the list, and try it then.")
    context, draft = visit.context, read_version(visit.context.workspace, ref)
    if act in ("stop", "close"):
        said = "Stopped." if act == "stop" else ""
        return [show_try_button(draft, said), "", off]
    if how.engine not in known_engines(context, prompt, cohort):
        raise DataError(
            "no run here was made with that engine. Choose one of the list."
        )
    about = read_about(context.workspace, draft).cohort or cohort
    request = TryRequest(prompt=ref, cohort=about, draws=_draws(visit, how))
    if how.engine == DEFAULT_ENGINE:
        with hold_engine(context.workspace, DEFAULT_ENGINE) as held:
            found = _try(visit, replace(request, draws=None), how.words, held)
        return [_show_found(visit, draft, found), "", off]
    free = answered_freely(context, how.engine, about)
    trying.start_try(
        visit,
        ref,
        how.engine,
        lambda held, heard: _try(visit, request, how.words, held, heard),
        free=free,
    )
    asking = render_tryout(turn=TRY_TURN, asking=how.engine)
    return [asking, "", trying.clock(active=True)]


def _draws(visit: Visit, how: TryInputs) -> int | None:
    if visit.data.get("draws"):
        return DRAWS
    many = how.draws if type(how.draws) is int else 1
    return min(max(many, 1), trying.MOST_DRAWS)


def _try(
    visit: Visit,
    request: TryRequest,
    words: str,
    held: HeldEngine,
    heard: trying.Listener | None = None,
) -> Found:
    """Ask what was pressed for; a case with a name is shown beside the pairs."""
    context, data = visit.context, visit.data
    what, who, now = (context.workspace, context.store), visit.actor, context.now
    act, label = str(data.get("act")), str(data.get("label", ""))
    if act == "text":
        text = try_text(*what, request, words, engine=held, heard=heard)
        return Found(None, text, label, act)
    pairs = case = None
    if act != "one":
        pairs = try_pairs(*what, request, who, engine=held, now=now, heard=heard)
    if name := str(data.get("case", "")):
        case = try_case(*what, request, name, who, engine=held, now=now, heard=heard)
    elif act == "one":
        raise DataError("name the case by its id.")
    return Found(pairs, case, label, act)


def _show_found(visit: Visit, draft: PromptVersion, found: Found) -> str:
    tries = list_tries(visit.context.workspace, draft)
    return render_tryout(found, turn=TRY_TURN, tries=tries, now=draft.digest)


def poll_try(visit: Visit, opened: OpenedDraft | None) -> Any:
    """Show what the engine has answered about the open draft, or written so far."""
    ref, off = opened.draft if opened else "", trying.clock(active=False)
    progress = trying.take_try(visit, ref)
    if progress is None:
        trying.stop_tries(visit, ref)
        return [SAME, "", off]
    if not progress.finished:
        return [SAME, render_heard(progress.heard), SAME]
    draft = read_version(visit.context.workspace, ref)
    if progress.error:
        return [show_try_button(draft, progress.error), "", off]
    return [_show_found(visit, draft, progress.result), "", off]


def take_back(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft | None
) -> ReviseOutputs:
    """Put the wording of an earlier try in the place of the open draft's."""
    opened = _require_open(opened)
    if visit.data.get("do") != "back":
        return ReviseOutputs()
    context, digest = visit.context, str(visit.data.get("wording", ""))
    draft = read_version(context.workspace, opened.draft)
    _drop_saved(visit, draft, *draft.labels, INSTRUCTIONS, SETTINGS)
    made = restore_tried(
        context.workspace, opened.draft, digest, visit.actor, now=context.now
    )
    notes = (f"the draft says again what was tried as {digest[:8]}", *made.notes)
    message = ReviseMessage(notes=notes)
    shown = show_page(
        visit, prompt, cohort, opened.draft, label=opened.label, message=message
    )
    return shown._replace(keep_label=SAME)


def _drop_saved(visit: Visit, draft: PromptVersion, *labels: str) -> None:
    """Forget the texts that were typed for `labels` where the draft says just that.

    A text is kept once more after it was saved, and would pass for a change when the
    draft changes without the editor.
    """
    for label in labels:
        typed = find_typed(visit, draft.ref, label)
        if typed and typed.text == guide_of(draft, label):
            drop_typed(visit, draft.ref, label)


def keep_words(
    visit: Visit,
    prompt: str,
    cohort: str,
    opened: OpenedDraft | None,
    kept: KeepInputs,
) -> ReviseOutputs:
    """Keep pasted words, as an exemplar of the open draft or as a synthetic case."""
    opened, context = _require_open(opened), visit.context
    if kept.value not in tuple(Value):
        raise DataError("say first what is right about the label in these words.")
    value, what = Value(kept.value), (context.workspace, opened.draft, kept.label)
    if kept.as_case:
        case = keep_case(*what, kept.words, value)
        said = success_message(
            f"It is {case.case_id} in {case.path.relative_to(context.workspace.root)} "
            "of the workspace. `ranloop cohort import` makes a cohort of that table.",
            "Kept as a synthetic case" if case.added else "The label was added",
        )
        return ReviseOutputs(said=said)
    draft = read_version(context.workspace, opened.draft)
    _drop_saved(visit, draft, kept.label)
    example = Exemplar(text=kept.words, value=value, evidence=kept.evidence)
    made = keep_exemplar(*what, example, visit.actor, now=context.now)
    message = ReviseMessage(notes=("the words are an exemplar now", *made.notes))
    return show_page(
        *(visit, prompt, cohort, opened.draft), label=kept.label, message=message
    )._replace(tried=SAME, heard=SAME)


def poll(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft | None
) -> ReviseOutputs:
    """Show how far the work on the open draft is, or what it came to."""
    if not opened or not opened.draft:
        return ReviseOutputs(timer=gr.Timer(active=False))
    context, ref = visit.context, opened.draft
    job = find_check(context, ref)
    checking = check_progress(job) if job else None
    if checking and not checking.finished:
        return ReviseOutputs(check=show_progress(checking, "Checking"))
    if running := find_running(context, commit_key(ref)):
        return ReviseOutputs(decision=show_progress(running, "Committing"))
    if not opened.running:
        # The end was shown: a late answer must not stop the clock of what began since.
        return ReviseOutputs()
    return _show_around_editor(visit, prompt, cohort, opened)


def _show_around_editor(
    visit: Visit,
    prompt: str,
    cohort: str,
    opened: OpenedDraft,
    message: ReviseMessage = NO_MESSAGE,
) -> ReviseOutputs:
    """Return the page afresh, except for what the visitor types, chooses and tries."""
    outputs = show_page(
        visit, prompt, cohort, opened.draft, label=opened.label, message=message
    )
    if outputs.opened.draft != opened.draft:
        return outputs
    return outputs._replace(
        opened=outputs.opened._replace(label=opened.label, guide=opened.guide),
        label=SAME,
        writing=SAME,
        guide=SAME,
        setting=SAME,
        plan=SAME,
        contract=SAME,
        parts=SAME,
        note=SAME,
        keep_label=SAME,
        tried=SAME,
        heard=SAME,
        why=SAME,
    )


def commit(
    visit: Visit,
    prompt: str,
    cohort: str,
    opened: OpenedDraft | None,
    why: str,
    override: bool,
) -> ReviseOutputs:
    """Commit the open draft as it was shown, with the check that was shown."""
    opened = _require_open(opened)
    why = _require_why(why)
    state = read_state(visit, prompt, cohort, opened.draft, opened.label)
    if state.info is not None:
        _require_shown(state.opened, opened)
        if is_running(visit.context, opened.draft):
            raise ConflictError(
                f"{opened.draft} is being checked or committed. Wait for it to finish."
            )
        decision = CommitDecision(why, why if override else "")
        start_commit(visit, opened.draft, decision)
        return _while_committing(visit, opened)
    return _show_around_editor(visit, prompt, cohort, opened)


def _while_committing(visit: Visit, opened: OpenedDraft) -> ReviseOutputs:
    """Show that the draft is being committed; it is being moved, so it is not read."""
    progress = visit.context.jobs.progress_of(commit_key(opened.draft))
    return ReviseOutputs(
        opened=opened._replace(running=True),
        timer=gr.Timer(active=True),
        decision=show_progress(progress, "Committing") if progress else SAME,
        commit=gr.Button(interactive=False),
    )


def _require_shown(now: OpenedDraft, opened: OpenedDraft) -> None:
    """Refuse to decide on a wording or a check that the visitor has not seen."""
    if (now.digest, now.checked) != (opened.digest, opened.checked):
        raise ConflictError(
            f"{opened.draft} was edited or checked again since it was shown here. Open "
            "it again from the list, look at it, and decide then."
        )


def keep(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft | None, why: str
) -> ReviseOutputs:
    """Record that the open draft stays a draft."""
    opened, why = _require_open(opened), _require_why(why)
    if _is_gone(visit, prompt, opened):
        return show_page(visit, prompt, cohort, opened.draft)
    state = read_state(visit, prompt, cohort, opened.draft, opened.label)
    _require_shown(state.opened, opened)
    context = visit.context
    entry = keep_draft(
        context.workspace, opened.draft, visit.actor, why, now=context.now
    )
    said = f"{opened.draft} stays a draft, and the ledger says why (entry {entry.seq})."
    return _show_around_editor(
        visit, prompt, cohort, opened, ReviseMessage(success_message(said))
    )


def discard(
    visit: Visit, prompt: str, cohort: str, opened: OpenedDraft | None, why: str
) -> ReviseOutputs:
    """Remove the open draft."""
    opened, why = _require_open(opened), _require_why(why)
    if _is_gone(visit, prompt, opened):
        return show_page(visit, prompt, cohort, opened.draft)
    state = read_state(visit, prompt, cohort, opened.draft, opened.label)
    _require_shown(state.opened, opened)
    context = visit.context
    entry = discard_draft(
        context.workspace, opened.draft, visit.actor, why, now=context.now
    )
    left = f"Ledger entry {entry.seq} says why." if entry else "It left no trace."
    drop_why(visit, opened.draft)
    keep_draft_open(visit, prompt, cohort, "")
    message = ReviseMessage(success_message(f"{opened.draft} is discarded. {left}"))
    return show_page(visit, prompt, cohort, "", message=message)


def type_why(visit: Visit, opened: OpenedDraft | None, why: str) -> None:
    """Keep the reason as far as it is written."""
    if opened and opened.draft:
        keep_why(visit, opened.draft, why)


def follow(visit: Visit) -> Any:
    """Go to another page."""
    page = visit.data.get("page")
    return gr.Tabs(selected=page) if page in PAGES else SAME


def _ticked(visit: Visit) -> tuple[str, ...]:
    ids = visit.data.get("ticked")
    if not isinstance(ids, list) or len(ids) > MOST_TICKED:
        return ()
    return tuple(one for one in ids if isinstance(one, str))


def _require_open(opened: OpenedDraft | None) -> OpenedDraft:
    if not isinstance(opened, OpenedDraft) or not opened.draft:
        raise DataError("no draft is open here. Choose one from the list of drafts.")
    return opened


def _is_gone(visit: Visit, prompt: str, opened: OpenedDraft) -> bool:
    """Return whether somebody committed or discarded the draft meanwhile."""
    name, _, draft = opened.draft.partition("@draft:")
    return name != prompt or draft not in list_drafts(visit.context.workspace, name)


def _require_why(why: str | None) -> str:
    if not (why or "").strip():
        raise DataError("give a reason first: the ledger keeps it for ever.")
    return str(why).strip()


def start_check(visit: Visit, draft: str, cohort: str, engine: str) -> None:
    """Start the job that checks a draft; the result is kept beside it.

    Raises
    ------
    ConflictError
        It is being checked already; says by whom.
    DataError
        The draft or the cohort cannot be used.
    """
    context, actor = visit.context, visit.actor
    before = find_check(context, draft)
    if before is not None and before.state.open:
        raise ConflictError(
            f"{draft} is being checked already: job {before.number}, started by "
            f"{before.actor}. Wait for it to finish, or stop it on the page Runs."
        )
    context.jobs.forget(commit_key(draft))
    request = JobRequest(
        kind=JobKind.CHECK,
        draft=draft,
        cohort=cohort,
        engines=(engine,),
        allow_unconstrained=answered_freely(context, engine, cohort),
    )
    start_job(context.queue, request, actor.name, actor.role)


def start_commit(visit: Visit, draft: str, decision: CommitDecision) -> None:
    """Commit a checked draft in the background, and run the version it becomes.

    Raises
    ------
    ConflictError
        It is being committed already; says by whom.
    """
    context, actor = visit.context, visit.actor

    def work(job: Job) -> str:
        job.step("committing, then running the new version")
        committed = commit_checked(
            context.workspace, context.store, draft, actor, decision, now=context.now
        )
        return committed.version.ref

    context.jobs.start(commit_key(draft), actor.name, work)
