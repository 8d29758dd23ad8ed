"""The components of the page Review and where they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from loop.evaluate.failures import FailureKind
from loop.review.queue.records import Persistence, ReviewStatus, RightKind, TextSection
from loop.review.revise.draft import READ_BY
from loop.ui import trying
from loop.ui.html import notice, panel, show, typing_in
from loop.ui.pages.review.state import RESERVED, Filters, Place
from loop.ui.pages.review.verdict_form import (
    ACTION_PARTS,
    ACTIONS,
    CAUSES,
    JUDGEMENTS,
    SEVERITIES,
    VALUES,
    ReviewForm,
)
from loop.ui.pages.review.view import ALL, KIND_MARKS, ReviewOutputs

KINDS = (
    ALL,
    *((KIND_MARKS[kind][1].capitalize(), kind.value) for kind in FailureKind),
    ("Right answers", RightKind.RIGHT.value),
)

SECTIONS = (ALL, *((one.value.capitalize(), one.value) for one in TextSection))

STATUSES = (
    ALL,
    *((one.value.capitalize(), one.value) for one in ReviewStatus),
    ("Reserved", RESERVED),
    ("Fails in every draw", Persistence.EVERY_DRAW.value),
    ("Flips between draws", Persistence.FLIPS.value),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewComponents:
    """Every component that an event reads or sets."""

    tab: gr.Tab
    place: gr.State
    token: gr.Textbox
    """Which opened pair the form on the screen belongs to."""

    remark: gr.HTML
    filter_boxes: Mapping[str, Any]
    """A component for each field of `Filters`, by its name."""

    count: gr.Textbox
    """Changes of the menus so far; never shown."""

    queue: gr.HTML
    case: gr.HTML
    trace: gr.HTML
    """What was asked about the open case and what came back, once asked for."""

    phrases: gr.HTML
    """What marked words could become, once asked for."""

    tried: gr.HTML
    """What the verdict being written would make of the open case, once asked for."""

    heard: gr.HTML
    """What a server has written of it so far."""

    clock: gr.Timer
    """Runs while a server is asked for that."""

    offer: gr.HTML
    """The likely correction, or where to judge instead; hides a form of no use."""

    form_boxes: Mapping[str, Any]
    """A component for each field of `ReviewForm`, by its name."""

    typed: gr.HTML
    """Says that a text box of the form has changed."""

    take: gr.Button
    submit: gr.Button
    reserve: gr.Button
    status: gr.HTML
    alike: gr.HTML
    """How many pairs are like the open one."""

    together: gr.HTML
    """Those pairs, to be ticked."""

    said: gr.HTML
    reason: gr.Textbox
    withdraw: gr.Button

    @property
    def filters(self) -> list[Any]:
        """The filters, in the order of `Filters`."""
        return [self.filter_boxes[name] for name in Filters._fields]

    @property
    def menus(self) -> list[Any]:
        """The filters that are chosen, not typed."""
        return [one for one in self.filters if one is not self.filter_boxes["search"]]

    @property
    def fields(self) -> list[Any]:
        """The fields of the form, in the order of `ReviewForm`."""
        return [self.form_boxes[name] for name in ReviewForm._fields]

    @property
    def panels(self) -> list[Any]:
        """The components that `ReviewOutputs` has values for."""
        return [getattr(self, name) for name in ReviewOutputs._fields]

    @property
    def shown(self) -> list[Any]:
        """What every move through the queue sets; see `show_pair`."""
        return [*self.panels, *self.fields]


def build_parts() -> ReviewComponents:
    """Return the page's components, laid out."""
    with gr.Tab("Review", id="review", elem_id="tab-review") as tab:
        place = gr.State(Place())
        token = gr.Textbox(visible=False, label="Form", elem_id="review-token")
        remark = panel(elem_id="review-remark")
        filter_boxes = _build_filters()
        count = gr.Textbox("0", label="Changes", elem_id="review-count", min_width=0)
        with gr.Row(elem_id="review-columns"):
            queue = _column("review-list", "review-queue")
            with gr.Column(elem_id="review-middle", min_width=0):
                case = panel(elem_id="review-case")
                phrases = panel(elem_id="review-phrases")
                tried = panel(elem_id="review-tried")
                heard = panel(elem_id="review-heard")
                clock = trying.clock(active=False)
                trace = panel(elem_id="review-trace")
            with gr.Column(elem_id="review-right", min_width=0):
                offer = panel(elem_id="review-offer")
                with gr.Column(elem_id="review-form", min_width=0):
                    typed = typing_in("#review-form", elem_id="review-typed")
                    form_boxes, take = _build_fields()
                with gr.Column(elem_id="review-foot", min_width=0):
                    submit, reserve = _build_buttons()
                    status = panel(elem_id="review-status", focused=True)
                alike = panel(elem_id="review-alike")
                together = panel(elem_id="review-together-list")
                said = panel(elem_id="review-said")
                reason, withdraw = _build_withdrawal()
    return ReviewComponents(
        tab=tab,
        place=place,
        token=token,
        remark=remark,
        filter_boxes=filter_boxes,
        count=count,
        queue=queue,
        case=case,
        trace=trace,
        phrases=phrases,
        tried=tried,
        heard=heard,
        clock=clock,
        offer=offer,
        form_boxes=form_boxes,
        typed=typed,
        take=take,
        submit=submit,
        reserve=reserve,
        status=status,
        alike=alike,
        together=together,
        said=said,
        reason=reason,
        withdraw=withdraw,
    )


def _column(column: str, inside: str) -> gr.HTML:
    with gr.Column(elem_id=column, min_width=0):
        return panel(notice("Opening the queue.", kind="wait"), elem_id=inside)


def _build_filters() -> dict[str, Any]:
    with gr.Row(elem_id="review-filters"):
        search = gr.Textbox(
            label="Search texts and case ids",
            placeholder="words or an id, then Enter",
            elem_id="review-search",
            max_lines=1,
            min_width=0,
        )
        return {
            "search": search,
            "label": _menu("Label", [ALL], "review-label"),
            "kind": _menu("Error", KINDS, "review-kind"),
            "section": _menu("Section", SECTIONS, "review-section"),
            "status": _menu("Status", STATUSES, "review-progress"),
            "reviewer": _menu("Reviewer", [ALL], "review-reviewer"),
            "sample": _menu("Sample", [ALL], "review-sample", visible=False),
        }


def _menu(
    label: str,
    choices: Sequence[tuple[str, str]],
    elem_id: str,
    *,
    visible: bool = True,
) -> gr.Dropdown:
    return gr.Dropdown(
        list(choices),
        value="",
        label=label,
        elem_id=elem_id,
        min_width=0,
        visible=visible,
    )


def _build_fields() -> tuple[dict[str, Any], gr.Button]:
    judgement = _radio("What is wrong", JUDGEMENTS, "review-judgement")
    value = _radio("Right value", VALUES, "review-value")
    comment = gr.Textbox(
        label="Note for the team",
        info="Seen by everyone who can open this workspace's review; never in a "
        "prompt.",
        elem_id="review-comment",
        max_lines=5,
        min_width=0,
    )
    # Gradio's own accordion makes its fields only when it is opened: no key finds them.
    panel(show("review_more.html.jinja"), elem_id="review-unfold")
    with gr.Column(elem_id="review-expert", min_width=0):
        action = _radio("Suggested change", ACTIONS, "review-action", value="none")
        rows = [
            (name, part, meaning, READ_BY[part])
            for name, (part, meaning) in ACTION_PARTS.items()
        ]
        panel(show("review_actions.html.jinja", rows=rows), elem_id="review-actions")
        with gr.Row(elem_id="review-wording"):
            phrase = _box("Phrase", "review-phrase", "mark words, then take them")
            take = gr.Button("Take selected text", elem_id="review-take", min_width=0)
        rule = _box(
            "Rule in words",
            "review-rule",
            "a sentence of your own; language models read it",
        )
        paraphrase = _box(
            "Statement in your own words",
            "review-paraphrase",
            "holds the phrase; never copied from a case",
            lines=2,
        )
        with gr.Row(elem_id="review-weight"):
            severity = _radio("Severity", SEVERITIES, "review-severity")
            cause = gr.Dropdown(
                list(CAUSES),
                value=None,
                label="Cause",
                elem_id="review-cause",
                min_width=0,
            )
        anchor = gr.Checkbox(
            label="Regression case: must stay right in every later version",
            elem_id="review-anchor",
            min_width=0,
        )
    boxes = {
        "judgement": judgement,
        "value": value,
        "severity": severity,
        "cause": cause,
        "action": action,
        "phrase": phrase,
        "rule": rule,
        "paraphrase": paraphrase,
        "comment": comment,
        "anchor": anchor,
    }
    return boxes, take


def _radio(
    label: str,
    choices: Sequence[tuple[str, str]],
    elem_id: str,
    value: str | None = None,
    info: str | None = None,
) -> gr.Radio:
    return gr.Radio(
        list(choices),
        value=value,
        label=label,
        info=info,
        elem_id=elem_id,
        min_width=0,
    )


def _box(label: str, elem_id: str, placeholder: str, lines: int = 1) -> gr.Textbox:
    return gr.Textbox(
        label=label,
        elem_id=elem_id,
        placeholder=placeholder,
        lines=lines,
        max_lines=5,
        min_width=0,
    )


def _build_buttons() -> tuple[gr.Button, gr.Button]:
    with gr.Row(elem_id="review-buttons"):
        submit = gr.Button(
            "Submit and next", variant="primary", elem_id="review-submit", min_width=0
        )
        reserve = gr.Button("Reserve", elem_id="review-reserve", min_width=0)
    return submit, reserve


def _build_withdrawal() -> tuple[gr.Textbox, gr.Button]:
    with gr.Column(elem_id="review-taking-back", min_width=0):
        reason = _box("Withdraw your verdict: why", "review-reason", "one sentence")
        withdraw = gr.Button("Withdraw", elem_id="review-withdraw", size="sm")
    return reason, withdraw
