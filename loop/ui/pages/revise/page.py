"""The page Revise: its components, and which event does what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import gradio as gr

from loop.core.people.users import Right
from loop.core.records import Value
from loop.ui import trying
from loop.ui.header import PageHeader
from loop.ui.html import (
    form_panel,
    notice,
    panel,
    proposals_panel,
    show,
    typing_in,
)
from loop.ui.pages.base import Page
from loop.ui.pages.revise import events
from loop.ui.pages.revise.events import KeepInputs, TryInputs
from loop.ui.pages.revise.state import DEFAULT_ENGINE, OpenedDraft
from loop.ui.pages.revise.view import ReviseOutputs
from loop.ui.wiring import EventRegistry, Visit

SEE_DRAFT = """() => requestAnimationFrame(() => {
  const heading = document.querySelector('#revise-draft h3');
  if (heading) { heading.focus(); heading.scrollIntoView({block: 'center'}); }
})"""
"""Brings the draft into view that a button has made, and takes the keyboard there."""

TRY_AGAIN = """() => requestAnimationFrame(() => {
  if (!document.querySelector('#revise-note .is-error')) {
    document.querySelector('#revise-try-turn')?.click();
  }
})"""
"""Presses the button of the try, where the draft was saved."""

EDITOR = (
    "opened",
    "writing",
    "guide",
    "setting",
    "plan",
    "contract",
    "parts",
    "note",
)
"""Names of the outputs that another choice in the editor changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseComponents:
    """The components whose names `ReviseOutputs` has."""

    opened: gr.State
    timer: gr.Timer
    said: gr.HTML
    verdicts: gr.HTML
    drafts: gr.HTML
    draft: gr.HTML
    proposals: gr.HTML
    editing: gr.Column
    label: gr.Dropdown
    writing: gr.Column
    guide: gr.Textbox
    setting: gr.Column
    plan: gr.Radio
    contract: gr.Radio
    parts: gr.HTML
    note: gr.HTML
    trying: gr.Column
    try_engine: gr.Dropdown
    keep_label: gr.Dropdown
    tried: gr.HTML
    heard: gr.HTML
    checking: gr.Column
    asking: gr.Row
    engine: gr.Dropdown
    run: gr.Button
    check: gr.HTML
    decision: gr.HTML
    deciding: gr.Column
    why: gr.Textbox
    override: gr.Checkbox
    commit: gr.Button
    confirm: gr.Row

    @property
    def outputs(self) -> list[Any]:
        """All of them, in the order of `ReviseOutputs`."""
        return [getattr(self, name) for name in ReviseOutputs._fields]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseButtons:
    """What acts and is never changed."""

    save: gr.Button
    undo: gr.Button
    keep: gr.Button
    discard: gr.Button
    really: gr.Button
    spare: gr.Button
    again: gr.Button
    """Saves, and tries again."""

    guide_typed: gr.HTML
    """Says that the guide in the editor has changed."""

    why_typed: gr.HTML


@dataclass(frozen=True, slots=True, kw_only=True)
class TryBoxes:
    """What a try is told, and never changed by the server."""

    draws: gr.Number
    case: gr.Textbox
    on_case: gr.Button
    words: gr.Textbox
    on_words: gr.Button
    value: gr.Radio
    evidence: gr.Textbox
    exemplar: gr.Button
    synthetic: gr.Button
    clock: gr.Timer


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Revise", id="revise", elem_id="tab-revise") as tab:
        parts, buttons, boxes = build_components()
    _connect_steps(registry, header, parts)
    _connect_tries(registry, header, parts, boxes)
    _connect_editor(registry, header, parts, buttons)
    _connect_decision(registry, header, parts, buttons)
    return Page(
        name="revise",
        right=Right.SEE,
        tab=tab,
        refresh=events.refresh,
        outputs=parts.outputs,
        links=(parts.said, parts.verdicts, parts.proposals, parts.check),
    )


def _connect_steps(
    registry: EventRegistry, header: PageHeader, parts: ReviseComponents
) -> None:
    place, every = header.selection, parts.outputs
    here = (*place, parts.opened)
    registry.on(
        parts.verdicts.tick,
        events.tick,
        right=Right.REVISE,
        name="revise_tick",
        inputs=place,
        trigger_mode="always_last",
    )
    made = registry.on(
        parts.verdicts.do,
        events.act_on_verdicts,
        right=Right.REVISE,
        name="revise_begin",
        inputs=place,
        outputs=every,
    )
    opened = registry.on(
        parts.drafts.act,
        events.open_draft,
        right=Right.SEE,
        name="revise_open",
        inputs=place,
        outputs=every,
    )
    rebased = registry.on(
        parts.draft.do,
        events.rebase,
        right=Right.REVISE,
        name="revise_rebase",
        inputs=here,
        outputs=every,
    )
    for done in (made, opened, rebased):
        done.success(None, js=SEE_DRAFT, queue=False)
    registry.on(
        parts.run.click,
        events.run_check,
        right=Right.REVISE,
        name="revise_check",
        inputs=(*here, parts.engine),
        outputs=every,
    )
    registry.on(
        parts.timer.tick,
        events.poll,
        right=Right.SEE,
        name="revise_poll",
        inputs=here,
        outputs=every,
    )
    registry.on(
        parts.proposals.decide,
        events.decide,
        right=Right.JUDGE,
        name="revise_decide",
        inputs=here,
        outputs=every,
    )
    for where in (parts.said, parts.verdicts, parts.proposals, parts.check):
        registry.on(
            where.act,
            events.follow,
            right=Right.SEE,
            name=f"follow_{where.elem_id}".replace("-", "_"),
            outputs=[header.tabs],
        )


def _connect_tries(
    registry: EventRegistry,
    header: PageHeader,
    parts: ReviseComponents,
    boxes: TryBoxes,
) -> None:
    here = (*header.selection, parts.opened)
    shown = [parts.tried, parts.heard, boxes.clock]
    told = (parts.try_engine, boxes.draws, boxes.words)

    def press(visit: Visit, *given: Any) -> Any:
        prompt, cohort, opened, engine, draws, words, _ = given
        how = TryInputs(str(engine or ""), draws, str(words or ""))
        return events.turn_try(visit, prompt, cohort, opened, how)

    def on_case(visit: Visit, *given: Any) -> Any:
        case = str(given[6] or "").strip()
        return press(replace(visit, data={"act": "one", "case": case}), *given)

    def on_words(visit: Visit, *given: Any) -> Any:
        return press(replace(visit, data={"act": "text"}), *given)

    for listener, handler, name in (
        (parts.tried.act, press, "revise_try"),
        (boxes.on_case.click, on_case, "revise_try_case"),
        (boxes.on_words.click, on_words, "revise_try_words"),
    ):
        registry.on(
            listener,
            handler,
            right=Right.REVISE,
            name=name,
            inputs=(*here, *told, boxes.case),
            outputs=shown,
            trigger_mode="always_last",
        )
    registry.on(
        boxes.clock.tick,
        events.poll_try,
        right=Right.REVISE,
        name="revise_try_poll",
        inputs=(parts.opened,),
        outputs=shown,
    )
    registry.on(
        parts.tried.do,
        events.take_back,
        right=Right.REVISE,
        name="revise_take_back",
        inputs=here,
        outputs=parts.outputs,
    )
    kept = (boxes.words, parts.keep_label, boxes.value, boxes.evidence)
    for button, as_case in ((boxes.exemplar, False), (boxes.synthetic, True)):
        registry.on(
            button.click,
            _keeper(as_case),
            right=Right.REVISE,
            name="revise_keep_case" if as_case else "revise_keep_exemplar",
            inputs=(*here, *kept),
            outputs=parts.outputs,
        )


def _keeper(as_case: bool) -> Any:
    def keep(visit: Visit, *given: Any) -> ReviseOutputs:
        prompt, cohort, opened, *boxes = given
        words, label, value, evidence = (str(one or "") for one in boxes)
        kept = KeepInputs(words, label, value, evidence, as_case)
        return events.keep_words(visit, prompt, cohort, opened, kept)

    return keep


def _connect_editor(
    registry: EventRegistry,
    header: PageHeader,
    parts: ReviseComponents,
    buttons: ReviseButtons,
) -> None:
    here = (*header.selection, parts.opened)
    editor = [getattr(parts, name) for name in EDITOR]

    def in_editor(outputs: ReviseOutputs) -> tuple[Any, ...]:
        return tuple(getattr(outputs, name) for name in EDITOR)

    registry.on(
        parts.label.input,
        lambda *given: in_editor(events.choose_label(*given)),
        right=Right.REVISE,
        name="revise_label",
        inputs=(*here, parts.label),
        outputs=editor,
    )
    registry.on(
        buttons.guide_typed.typed,
        events.type_guide,
        right=Right.REVISE,
        name="revise_typing",
        inputs=(parts.opened, parts.guide),
        trigger_mode="always_last",
    )
    registry.on(
        partial(gr.on, [parts.plan.input, parts.contract.input]),
        events.choose_setting,
        right=Right.REVISE,
        name="revise_setting",
        inputs=(parts.opened, parts.plan, parts.contract),
        trigger_mode="always_last",
    )
    registry.on(
        buttons.undo.click,
        lambda *given: in_editor(events.undo_guide(*given)),
        right=Right.REVISE,
        name="revise_undo",
        inputs=here,
        outputs=editor,
    )
    for button, name in (
        (buttons.save, "revise_save"),
        (buttons.again, "revise_again"),
    ):
        saved = registry.on(
            button.click,
            events.save_guide,
            right=Right.REVISE,
            name=name,
            inputs=(*here, parts.guide, parts.plan, parts.contract),
            outputs=parts.outputs,
        )
    saved.success(None, js=TRY_AGAIN, queue=False)


def _connect_decision(
    registry: EventRegistry,
    header: PageHeader,
    parts: ReviseComponents,
    buttons: ReviseButtons,
) -> None:
    deciding = (*header.selection, parts.opened, parts.why)
    registry.on(
        buttons.why_typed.typed,
        events.type_why,
        right=Right.REVISE,
        name="revise_why",
        inputs=(parts.opened, parts.why),
        trigger_mode="always_last",
    )
    for button, handler, name, more in (
        (parts.commit, events.commit, "revise_commit", (parts.override,)),
        (buttons.keep, events.keep, "revise_keep", ()),
        (buttons.really, events.discard, "revise_discard", ()),
    ):
        registry.on(
            button.click,
            handler,
            right=Right.REVISE,
            name=name,
            inputs=(*deciding, *more),
            outputs=parts.outputs,
        )
    for button, shown in ((buttons.discard, True), (buttons.spare, False)):
        registry.on(
            button.click,
            _shower(shown),
            right=Right.REVISE,
            name="revise_ask" if shown else "revise_spare",
            outputs=[parts.confirm],
        )


def _shower(shown: bool) -> Any:
    return lambda visit: gr.Row(visible=shown)


def build_components() -> tuple[ReviseComponents, ReviseButtons, TryBoxes]:
    """Add the components to the tab that is open."""
    waiting = notice("Reading the verdicts.", kind="wait")
    found: dict[str, Any] = {
        "opened": gr.State(OpenedDraft()),
        "timer": gr.Timer(1, active=False),
        "said": panel(elem_id="revise-said", focused=True),
        "verdicts": form_panel(waiting, elem_id="revise-verdicts"),
        "drafts": panel(elem_id="revise-drafts"),
    }
    with gr.Row(elem_id="revise-work"):
        with gr.Column(scale=3, min_width=440):
            found["draft"] = form_panel(elem_id="revise-draft")
        with gr.Column(
            scale=2, min_width=360, visible=False, elem_id="revise-editing"
        ) as found["editing"]:
            save, again, undo = _lay_out_editor(found)
    found["proposals"] = proposals_panel(elem_id="revise-proposals")
    with gr.Column(visible=False, elem_id="revise-trying") as found["trying"]:
        boxes = _lay_out_tries(found)
    with gr.Column(visible=False, elem_id="revise-checking") as found["checking"]:
        panel(show("revise_step.html.jinja", number=3, name="Check"), elem_id="step-3")
        _lay_out_check(found)
    found["decision"] = panel(elem_id="revise-decision")
    with gr.Column(visible=False, elem_id="revise-deciding") as found["deciding"]:
        keep, discard, really, spare = _lay_out_decision(found)
    buttons = ReviseButtons(
        save=save,
        again=again,
        undo=undo,
        keep=keep,
        discard=discard,
        really=really,
        spare=spare,
        guide_typed=typing_in("#revise-guide", elem_id="revise-guide-typed"),
        why_typed=typing_in("#revise-why", elem_id="revise-why-typed"),
    )
    return ReviseComponents(**found), buttons, boxes


def _lay_out_tries(found: dict[str, Any]) -> TryBoxes:
    found["tried"] = form_panel(elem_id="revise-tried")
    found["heard"] = panel(elem_id="revise-heard")
    clock = trying.clock(active=False)
    with gr.Accordion(
        "Try it on pasted words or another case; with another engine or draws",
        open=False,
        elem_id="revise-try-more",
    ):
        with gr.Row(equal_height=True):
            found["try_engine"] = gr.Dropdown(
                [DEFAULT_ENGINE],
                value=DEFAULT_ENGINE,
                label="Engine of tries",
                elem_id="revise-try-engine",
                min_width=220,
            )
            draws = gr.Number(
                1,
                label="Draws of each, if it has chance",
                minimum=1,
                maximum=trying.MOST_DRAWS,
                precision=0,
                elem_id="revise-try-draws",
                min_width=120,
            )
            case = gr.Textbox(
                label="Case id", elem_id="revise-try-case", max_lines=1, min_width=160
            )
            on_case = gr.Button(
                "Try this case", elem_id="revise-on-case", min_width=120
            )
        words = gr.Textbox(
            label="Words (kept nowhere unless you keep them)",
            lines=3,
            max_lines=12,
            elem_id="revise-words",
        )
        on_words = gr.Button("Try these words", elem_id="revise-on-words")
        with gr.Row():
            found["keep_label"] = gr.Dropdown(
                [], label="Label", elem_id="revise-keep-label", min_width=180
            )
            value = gr.Radio(
                [one.value for one in Value],
                label="Right about it in these words",
                elem_id="revise-keep-value",
                min_width=240,
            )
            evidence = gr.Textbox(
                label="Words that decide; empty for all",
                elem_id="revise-keep-evidence",
                max_lines=1,
                min_width=180,
            )
        with gr.Row():
            exemplar = gr.Button(
                "Keep as an exemplar of the draft", elem_id="revise-keep-exemplar"
            )
            synthetic = gr.Button(
                "Keep as a synthetic case", elem_id="revise-keep-case"
            )
    return TryBoxes(
        draws=draws,
        case=case,
        on_case=on_case,
        words=words,
        on_words=on_words,
        value=value,
        evidence=evidence,
        exemplar=exemplar,
        synthetic=synthetic,
        clock=clock,
    )


def _lay_out_editor(
    found: dict[str, Any],
) -> tuple[gr.Button, gr.Button, gr.Button]:
    found["label"] = gr.Dropdown([], label="Edit by hand", elem_id="revise-label")
    with gr.Column(elem_id="revise-writing") as found["writing"]:
        found["guide"] = gr.Textbox(
            label="Guide, as YAML, or instructions, as templates",
            lines=18,
            max_lines=18,
            elem_id="revise-guide",
            html_attributes=gr.InputHTMLAttributes(
                spellcheck=False, autocomplete="off"
            ),
        )
    with gr.Column(visible=False, elem_id="revise-setting") as found["setting"]:
        found["plan"] = gr.Radio([], label="Call plan", elem_id="revise-plan")
        found["contract"] = gr.Radio([], label="Contract", elem_id="revise-contract")
    found["note"] = panel(elem_id="revise-note")
    with gr.Row():
        save = gr.Button("Save into the draft", elem_id="revise-save", min_width=120)
        again = gr.Button("Save and try", elem_id="revise-again", min_width=120)
        undo = gr.Button("Undo my text", elem_id="revise-undo", min_width=120)
    found["parts"] = panel(elem_id="revise-parts")
    return save, again, undo


def _lay_out_check(found: dict[str, Any]) -> None:
    with gr.Row(elem_id="revise-asking", equal_height=True) as found["asking"]:
        found["engine"] = gr.Dropdown(
            [], label="Engine", elem_id="revise-engine", min_width=220
        )
        found["run"] = gr.Button(
            "Run the check", variant="primary", elem_id="revise-run", min_width=140
        )
    found["check"] = panel(elem_id="revise-check")


def _lay_out_decision(
    found: dict[str, Any],
) -> tuple[gr.Button, gr.Button, gr.Button, gr.Button]:
    found["why"] = gr.Textbox(
        label="Reason (the ledger keeps it for ever; never quote a case)",
        lines=2,
        elem_id="revise-why",
        placeholder="What this version is for, in your words",
    )
    found["override"] = gr.Checkbox(
        label="Override the check: commit although it objects, for this reason and "
        "under my name",
        elem_id="revise-override",
        visible=False,
    )
    with gr.Row():
        found["commit"] = gr.Button(
            "Commit", variant="primary", elem_id="revise-commit", min_width=160
        )
        keep = gr.Button("Keep as a draft", elem_id="revise-keep", min_width=140)
        discard = gr.Button("Discard ...", elem_id="revise-discard", min_width=120)
    with gr.Row(visible=False, elem_id="revise-confirm") as found["confirm"]:
        really = gr.Button(
            "Yes, discard this draft for good", variant="stop", elem_id="revise-really"
        )
        spare = gr.Button("No, leave it", elem_id="revise-spare")
    return keep, discard, really, spare
