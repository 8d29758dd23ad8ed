"""What visitors do on the page Revise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr

from loop.core.errors import ConflictError, DataError, LoopError
from loop.prompts.catalog import list_drafts
from loop.prompts.outputs.base import CONTRACTS
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.commit import CommitDecision, discard_draft, keep_draft
from loop.review.revise.corrections import correct_reference_from
from loop.review.revise.edit import GuideEdit, edit_draft
from loop.review.revise.merge import ConflictChoice, rebase_draft
from loop.ui.pages.revise import work
from loop.ui.pages.revise.checked import show_progress
from loop.ui.pages.revise.draft import show_note
from loop.ui.pages.revise.kept import (
    Opened,
    drop_typed,
    drop_why,
    find_draft_open,
    keep_draft_open,
    keep_ticked,
    keep_typed,
    keep_why,
)
from loop.ui.pages.revise.sheet import (
    NOTHING,
    SAME,
    ReviseOutputs,
    Told,
    praise,
    show_editor,
    show_fate,
    show_sheet,
    typed_now,
    warn,
)
from loop.ui.pages.revise.state import guide_mark, known_engines, look
from loop.ui.pages.revise.verdicts import pick, sort_open
from loop.ui.wiring import Visit

MOST_TICKED = 5_000
PAGES = frozenset({"overview", "review", "versions"})
"""Pages that a link leads to."""


def refresh(visit: Visit, prompt: str | None, cohort: str | None) -> ReviseOutputs:
    """Return the page with the draft that was looked at last."""
    ref = find_draft_open(visit, prompt or "", cohort or "")
    return show_sheet(visit, (prompt, cohort), ref)


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
    scene = look(visit, prompt, cohort, "")
    found = sort_open(scene)
    ids = pick(found.wording, _ticked(visit))
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
    said = warn(
        f"{count} of the ticked verdicts {'is' if count == 1 else 'are'} not open any "
        "more: withdrawn, given again or answered meanwhile. The list is fresh now; "
        "look at it and press the button again.",
        "Nothing was made",
    )
    ref = find_draft_open(visit, prompt, cohort)
    return show_sheet(visit, (prompt, cohort), ref, told=Told(said))


def _begin(
    visit: Visit, prompt: str, cohort: str, ids: tuple[str, ...]
) -> ReviseOutputs:
    desk = visit.desk
    request = DraftRequest(
        prompt=prompt,
        cohort=cohort,
        verdicts=ids,
        contract=_contract(visit),
        engine=known_engines(desk, prompt, cohort)[0],
    )
    made = begin_draft(desk.workspace, desk.store, request, visit.actor, now=desk.now)
    keep_ticked(visit, cohort, ())
    keep_draft_open(visit, prompt, cohort, made.draft.ref)
    return show_sheet(
        visit, (prompt, cohort), made.draft.ref, told=Told(notes=made.notes)
    )


def _contract(visit: Visit) -> str:
    """Return the output contract that was chosen; empty to keep the version's."""
    chosen = visit.data.get("chosen")
    named = chosen.get("contract") if isinstance(chosen, Mapping) else ""
    return named if named in CONTRACTS else ""


def _correct(visit: Visit, prompt: str, cohort: str) -> ReviseOutputs:
    found = sort_open(look(visit, prompt, cohort, ""))
    ids = pick(found.reference, _ticked(visit))
    gone = set(_ticked(visit)) - set(ids) - {one.id for one in found.wording}
    if gone:
        return _tell_gone(visit, prompt, cohort, len(gone))
    if not ids:
        raise DataError("no verdict on the reference is ticked. Tick at least one.")
    desk = visit.desk
    done = correct_reference_from(desk.workspace, desk.store, cohort, ids, visit.actor)
    new = f"{cohort}:ref{done.reference}" if done.reference else "The newest reference"
    plural = "" if done.corrections == 1 else "s"
    said = praise(
        f"{new} says what {done.corrections} judged label{plural} should be. Numbers "
        "are on it from now on, and checks made before have to be made again.",
        "Reference corrected",
    )
    ref = find_draft_open(visit, prompt, cohort)
    return show_sheet(visit, (prompt, cohort), ref, told=Told(said))


def open_draft(visit: Visit, prompt: str, cohort: str) -> ReviseOutputs:
    """Open the draft that was chosen in the list."""
    ref = str(visit.data.get("ref") or "")
    if visit.data.get("act") != "open" or not ref.startswith(f"{prompt}@draft:"):
        return ReviseOutputs()
    keep_draft_open(visit, prompt, cohort, ref)
    return show_sheet(visit, (prompt, cohort), ref)


def rebase(
    visit: Visit, prompt: str, cohort: str, opened: Opened | None
) -> ReviseOutputs:
    """Bring the open draft to the newest version, with what was chosen."""
    opened = _require_open(opened)
    ref = opened.draft
    if _is_gone(visit, prompt, opened):
        return show_sheet(visit, (prompt, cohort), ref)
    chosen = visit.data.get("chosen")
    resolve = {
        str(name): ConflictChoice(side)
        for name, side in (chosen.items() if isinstance(chosen, Mapping) else ())
        if side in tuple(ConflictChoice)
    }
    desk = visit.desk
    done = rebase_draft(desk.workspace, ref, visit.actor, resolve, now=desk.now)
    if done.draft is None:
        count = len(done.conflicts)
        raise ConflictError(
            f"{count} conflict{' is' if count == 1 else 's are'} undecided. Choose "
            "one side in every row; nothing was changed."
        )
    keep_draft_open(visit, prompt, cohort, done.draft.ref)
    notes = (f"brought to {done.newest}; the draft has a new id, {done.draft.ref}",)
    return show_sheet(visit, (prompt, cohort), done.draft.ref, told=Told(notes=notes))


def choose_label(
    visit: Visit, prompt: str, cohort: str, opened: Opened | None, label: str
) -> ReviseOutputs:
    """Put the guide of another label into the editor."""
    scene = look(visit, prompt, cohort, _require_open(opened).draft, label)
    return show_editor(ReviseOutputs(opened=scene.opened), scene)


def type_guide(visit: Visit, opened: Opened | None, text: str) -> None:
    """Keep the guide as far as it is written."""
    if opened and opened.label:
        keep_typed(visit, opened, text)


def undo_guide(
    visit: Visit, prompt: str, cohort: str, opened: Opened | None
) -> ReviseOutputs:
    """Put the draft's own guide back into the editor."""
    opened = _require_open(opened)
    drop_typed(visit, opened.draft, opened.label)
    return choose_label(visit, prompt, cohort, opened, opened.label)


def save_guide(
    visit: Visit, prompt: str, cohort: str, opened: Opened | None, text: str
) -> ReviseOutputs:
    """Write the guide into the draft, or say below the editor why it was not."""
    opened = _require_open(opened)
    scene = look(visit, prompt, cohort, opened.draft, opened.label)
    if scene.info is None:
        return ReviseOutputs(
            note=show_fate(visit, opened.draft, kept="Your text stays here.")
        )
    # The editor was opened on what has this mark; anything else is a conflict.
    known = guide_mark(scene.guide) == opened.guide
    seen = scene.guide if known else opened.guide
    edit = GuideEdit(label=opened.label, text=text, seen=seen)
    desk = visit.desk
    try:
        made = edit_draft(
            desk.workspace, opened.draft, (edit,), visit.actor, now=desk.now
        )
    except LoopError as error:
        note = show_note(scene, typed_now(text, opened), str(error))
        # What others wrote is shown with the error: saving again goes over it.
        now_seen = scene.opened._replace(digest=opened.digest, checked=opened.checked)
        keep_typed(visit, now_seen, text)
        return ReviseOutputs(opened=now_seen, note=note)
    drop_typed(visit, opened.draft, opened.label)
    desk.jobs.forget(work.check_key(opened.draft))
    told = Told(notes=(f"saved the guide of {opened.label}", *made.notes))
    return show_sheet(visit, (prompt, cohort), opened.draft, opened.label, told)


def run_check(
    visit: Visit, prompt: str, cohort: str, opened: Opened | None, engine: str
) -> ReviseOutputs:
    """Start the check of the open draft."""
    opened = _require_open(opened)
    scene = look(visit, prompt, cohort, opened.draft, opened.label)
    if scene.info is None:
        return show_sheet(visit, (prompt, cohort), opened.draft)
    if engine not in scene.engines:
        raise DataError(
            f"no run here was made with the engine {engine!r}. Choose one of "
            f"{', '.join(scene.engines)}, or make a first run with `ranloop run`."
        )
    wanted = work.CheckRequest(
        draft=opened.draft, cohort=scene.info.cohort or cohort, engine=engine
    )
    work.start_check(visit, wanted)
    return _beside_editor(visit, prompt, cohort, opened)


def poll(
    visit: Visit, prompt: str, cohort: str, opened: Opened | None
) -> ReviseOutputs:
    """Show how far the work on the open draft is, or what it came to."""
    if not opened or not opened.draft:
        return ReviseOutputs(timer=gr.Timer(active=False))
    desk, ref = visit.desk, opened.draft
    if running := work.find_running(desk, work.check_key(ref)):
        return ReviseOutputs(check=show_progress(running, "Checking"))
    if running := work.find_running(desk, work.commit_key(ref)):
        return ReviseOutputs(decision=show_progress(running, "Committing"))
    if not opened.running:
        # The end was shown: a late answer must not stop the clock of what began since.
        return ReviseOutputs()
    return _beside_editor(visit, prompt, cohort, opened)


def _beside_editor(
    visit: Visit, prompt: str, cohort: str, opened: Opened, told: Told = NOTHING
) -> ReviseOutputs:
    """Return the page afresh, except for what the visitor may be typing."""
    sheet = show_sheet(visit, (prompt, cohort), opened.draft, opened.label, told)
    if sheet.opened.draft != opened.draft:
        return sheet
    return sheet._replace(
        opened=sheet.opened._replace(label=opened.label, guide=opened.guide),
        label=SAME,
        guide=SAME,
        note=SAME,
        why=SAME,
    )


def commit(
    visit: Visit,
    prompt: str,
    cohort: str,
    opened: Opened | None,
    why: str,
    override: bool,
) -> ReviseOutputs:
    """Commit the open draft as it was shown, with the check that was shown."""
    opened = _require_open(opened)
    why = _require_why(why)
    scene = look(visit, prompt, cohort, opened.draft, opened.label)
    if scene.info is not None:
        _require_shown(scene.opened, opened)
        if work.is_running(visit.desk, opened.draft):
            raise ConflictError(
                f"{opened.draft} is being checked or committed. Wait for it to finish."
            )
        decision = CommitDecision(why, why if override else "")
        work.start_commit(visit, opened.draft, decision)
        return _while_committing(visit, opened)
    return _beside_editor(visit, prompt, cohort, opened)


def _while_committing(visit: Visit, opened: Opened) -> ReviseOutputs:
    """Show that the draft is being committed; it is being moved, so it is not read."""
    progress = visit.desk.jobs.look(work.commit_key(opened.draft))
    return ReviseOutputs(
        opened=opened._replace(running=True),
        timer=gr.Timer(active=True),
        decision=show_progress(progress, "Committing") if progress else SAME,
        commit=gr.Button(interactive=False),
    )


def _require_shown(now: Opened, opened: Opened) -> None:
    """Refuse to commit a wording or a check that the visitor has not seen."""
    if (now.digest, now.checked) != (opened.digest, opened.checked):
        raise ConflictError(
            f"{opened.draft} was edited or checked again since it was shown here. Open "
            "it again from the list, look at it, and decide then."
        )


def keep(
    visit: Visit, prompt: str, cohort: str, opened: Opened | None, why: str
) -> ReviseOutputs:
    """Record that the open draft stays a draft."""
    opened, why = _require_open(opened), _require_why(why)
    if _is_gone(visit, prompt, opened):
        return show_sheet(visit, (prompt, cohort), opened.draft)
    desk = visit.desk
    entry = keep_draft(desk.workspace, opened.draft, visit.actor, why, now=desk.now)
    said = f"{opened.draft} stays a draft, and the ledger says why (entry {entry.seq})."
    return _beside_editor(visit, prompt, cohort, opened, Told(praise(said)))


def discard(
    visit: Visit, prompt: str, cohort: str, opened: Opened | None, why: str
) -> ReviseOutputs:
    """Remove the open draft."""
    opened, why = _require_open(opened), _require_why(why)
    if _is_gone(visit, prompt, opened):
        return show_sheet(visit, (prompt, cohort), opened.draft)
    desk = visit.desk
    entry = discard_draft(desk.workspace, opened.draft, visit.actor, why, now=desk.now)
    left = f"Ledger entry {entry.seq} says why." if entry else "It left no trace."
    drop_why(visit, opened.draft)
    keep_draft_open(visit, prompt, cohort, "")
    told = Told(praise(f"{opened.draft} is discarded. {left}"))
    return show_sheet(visit, (prompt, cohort), "", told=told)


def type_why(visit: Visit, opened: Opened | None, why: str) -> None:
    """Keep the reason as far as it is written."""
    if opened and opened.draft:
        keep_why(visit, opened.draft, why)


def follow(visit: Visit) -> Any:
    """Go to another page."""
    page = visit.data.get("page")
    return gr.Tabs(selected=page) if page in PAGES else gr.skip()


def _ticked(visit: Visit) -> tuple[str, ...]:
    ids = visit.data.get("ticked")
    if not isinstance(ids, list) or len(ids) > MOST_TICKED:
        return ()
    return tuple(one for one in ids if isinstance(one, str))


def _require_open(opened: Opened | None) -> Opened:
    if not isinstance(opened, Opened) or not opened.draft:
        raise DataError("no draft is open here. Choose one from the list of drafts.")
    return opened


def _is_gone(visit: Visit, prompt: str, opened: Opened) -> bool:
    """Return whether somebody committed or discarded the draft meanwhile."""
    name, _, draft = opened.draft.partition("@draft:")
    return name != prompt or draft not in list_drafts(visit.desk.workspace, name)


def _require_why(why: str | None) -> str:
    if not (why or "").strip():
        raise DataError("give a reason first: the ledger keeps it for ever.")
    return str(why).strip()
