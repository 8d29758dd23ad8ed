"""What the page Revise shows, component by component."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import gradio as gr

from loop.prompts.catalog import list_prompts
from loop.review.revise.draft import find_fate
from loop.ui.html import notice, show
from loop.ui.pages.revise import work
from loop.ui.pages.revise.checked import show_checked, show_failed, show_progress
from loop.ui.pages.revise.draft import show_draft_panel, show_drafts, show_note
from loop.ui.pages.revise.kept import (
    Opened,
    Typed,
    find_typed,
    find_why,
    keep_draft_open,
)
from loop.ui.pages.revise.state import ReviseState, look
from loop.ui.pages.revise.verdicts import show_verdicts
from loop.ui.wiring import Visit

SAME: Any = gr.skip()
"""Leaves a component as it is."""


class ReviseOutputs(NamedTuple):
    """An update for each component, in the order in which they are outputs."""

    opened: Any = SAME
    timer: Any = SAME
    said: Any = SAME
    verdicts: Any = SAME
    drafts: Any = SAME
    draft: Any = SAME
    editing: Any = SAME
    label: Any = SAME
    guide: Any = SAME
    note: Any = SAME
    checking: Any = SAME
    asking: Any = SAME
    engine: Any = SAME
    run: Any = SAME
    check: Any = SAME
    decision: Any = SAME
    deciding: Any = SAME
    why: Any = SAME
    override: Any = SAME
    commit: Any = SAME
    confirm: Any = SAME


class Told(NamedTuple):
    """What there is to say of what was just done."""

    said: str = ""
    """HTML, above everything."""

    notes: tuple[str, ...] = ()
    """Remarks on the draft."""


NOTHING = Told()


def show_sheet(
    visit: Visit,
    place: tuple[str | None, str | None],
    ref: str,
    label: str = "",
    told: Told = NOTHING,
) -> ReviseOutputs:
    """Return the whole page for a prompt and cohort, with the draft `ref` open.

    Where the draft is gone, the page says what became of it.

    Raises
    ------
    LoopError
        Something cannot be read; the page stays as it was.
    """
    prompt, cohort = place
    if not prompt or not cohort or prompt not in list_prompts(visit.context.workspace):
        return _nothing()
    # Asked first: what ends while the rest is read is shown at the next look.
    running = bool(ref) and work.is_running(visit.context, ref)
    scene = replace(look(visit, prompt, cohort, ref, label), running=running)
    said = told.said
    if ref and scene.info is None:
        keep_draft_open(visit, prompt, cohort, "")
        said += show_fate(visit, ref)
    return _fill(scene, Told(said, told.notes))


def _nothing() -> ReviseOutputs:
    hidden = gr.Column(visible=False)
    empty = notice(
        "Add a cohort under Files, or with `ranloop cohort import`.",
        title="No cohort yet",
    )
    return ReviseOutputs(
        opened=Opened(),
        timer=gr.Timer(active=False),
        said=empty,
        verdicts="",
        drafts="",
        draft="",
        editing=hidden,
        checking=hidden,
        deciding=hidden,
        decision="",
    )


def _fill(scene: ReviseState, told: Told) -> ReviseOutputs:
    verdicts = show_verdicts(scene)
    sheet = ReviseOutputs(
        opened=scene.opened,
        timer=gr.Timer(active=scene.running),
        said=told.said,
        verdicts=verdicts,
        drafts=show_drafts(scene),
        draft=show_draft_panel(scene, told.notes),
        confirm=gr.Row(visible=False),
    )
    return _with_decision(_with_check(_with_editor(sheet, scene), scene), scene)


def _with_editor(sheet: ReviseOutputs, scene: ReviseState) -> ReviseOutputs:
    shown = scene.may and scene.drafted is not None
    if not shown or scene.drafted is None:
        return sheet._replace(editing=gr.Column(visible=False))
    labels = scene.drafted.draft.labels
    return show_editor(
        sheet._replace(
            editing=gr.Column(visible=True),
            label=gr.Dropdown(
                choices=[(scene.names.get(one, one), one) for one in labels],
                value=scene.label,
            ),
        ),
        scene,
    )


def show_editor(sheet: ReviseOutputs, scene: ReviseState) -> ReviseOutputs:
    """Return `sheet` with the guide of the label in the editor, or what was begun."""
    typed = find_typed(scene.visit, scene.opened.draft, scene.label)
    return sheet._replace(
        guide=typed.text if typed else scene.guide, note=show_note(scene, typed)
    )


def _with_check(sheet: ReviseOutputs, scene: ReviseState) -> ReviseOutputs:
    if scene.info is None or scene.drafted is None:
        return sheet._replace(checking=gr.Column(visible=False))
    changed = not scene.drafted.diff.empty
    ready = changed and not scene.info.behind and not scene.running
    checked = scene.recalled.checked if scene.recalled else None
    engine = checked.engine if checked else scene.engines[0]
    choices = list(dict.fromkeys((engine, *scene.engines)))
    return sheet._replace(
        checking=gr.Column(visible=True),
        asking=gr.Row(visible=scene.may),
        engine=gr.Dropdown(choices=choices, value=engine),
        run=gr.Button(interactive=ready),
        check=show_check_panel(scene),
    )


def show_check_panel(scene: ReviseState) -> str:
    """Return the running check, why the last one failed, or what it found."""
    if scene.info is None:
        return ""
    key = work.check_key(scene.info.ref)
    running = work.find_running(scene.context, key)
    if running:
        return show_progress(running, "Checking")
    failed = work.find_failed(scene.context, key)
    said = show_failed(failed, "The check was not finished") if failed else ""
    return said + show_checked(scene)


def _with_decision(sheet: ReviseOutputs, scene: ReviseState) -> ReviseOutputs:
    if scene.info is None:
        return sheet._replace(deciding=gr.Column(visible=False), decision="")
    checked = scene.checked
    objects = bool(checked and checked.check and checked.objections)
    open_to = checked is not None and checked.check is not None
    return sheet._replace(
        decision=show_decision(scene),
        deciding=gr.Column(visible=scene.may),
        why=find_why(scene.visit, scene.info.ref),
        override=gr.Checkbox(value=False, visible=objects),
        commit=gr.Button(
            value="Commit" if scene.info.behind else f"Commit as {next_version(scene)}",
            interactive=open_to and not scene.running,
        ),
    )


def next_version(scene: ReviseState) -> str:
    """Return the reference the open draft would be committed as."""
    if scene.drafted is None:
        return "a version"
    parent = scene.drafted.parent
    return f"{parent.name}@v{parent.number + 1}"


def show_decision(scene: ReviseState) -> str:
    """Return what a commit would mean just now, as HTML."""
    if scene.info is None:
        return ""
    key = work.commit_key(scene.info.ref)
    running = work.find_running(scene.context, key)
    if running:
        return show_progress(running, f"Committing {next_version(scene)}")
    failed = work.find_failed(scene.context, key)
    said = show_failed(failed, "Not committed") if failed else ""
    return said + show(
        "revise_decision.html.jinja",
        info=scene.info,
        version=next_version(scene),
        recalled=scene.recalled,
        checked=scene.checked,
        empty=scene.drafted is None or scene.drafted.diff.empty,
        actor=scene.actor,
        may=scene.may,
    )


def show_fate(visit: Visit, ref: str, kept: str = "") -> str:
    """Return what became of a draft that is not there any more, as HTML."""
    fate = find_fate(visit.context.workspace, ref)
    return show("revise_fate.html.jinja", ref=ref, fate=fate, kept=kept)


def warn(text: str, title: str) -> str:
    """Return what somebody has to know before they try again, as HTML."""
    return notice(text, kind="error", title=title)


def praise(text: str, title: str = "") -> str:
    """Return what was done, as HTML."""
    return notice(text, kind="good", title=title)


def typed_now(text: str, opened: Opened) -> Typed:
    """Return the text in the editor, which is not saved."""
    return Typed(text, opened.guide, "")
