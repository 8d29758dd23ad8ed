"""The page Review: which event does what, and how a link opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr

from loop.core.people.users import Right
from loop.ui.header import (
    PageHeader,
    choose_context,
    context_kept,
    keep_page,
    keep_place,
)
from loop.ui.pages.base import Page
from loop.ui.pages.review import events
from loop.ui.pages.review.layout import ReviewComponents, build_parts
from loop.ui.pages.review.state import follow_link
from loop.ui.wiring import EventRegistry, Visit

LONGEST_LINK = 600
"""Characters of an address that are looked at."""

MARKED = "(...values) => [...values.slice(0, -1), window.ranloopSelection()]"
"""Puts the words that are marked in the case text in place of the last value."""

MEANT = """(...values) =>
  [...values.slice(0, -1), window.ranloopSelection() || values.at(-1)]"""
"""Puts the words that are marked, if any, in place of the last value."""

SHOW_PHRASE = """() => {
  window.ranloopUnfold?.();
  document.querySelector('#review-phrases [data-act=fill]')?.focus();
}"""
"""Goes on where the words that were marked can be put into the form."""

LEAVE = "(...values) => { document.activeElement?.blur(); return values; }"
"""Takes the focus out of a text box, so that the next key is a shortcut again."""

PLAIN: Mapping[str, Any] = {"preprocess": False, "postprocess": False}
"""All values of the page are plain texts and marks, and none from a browser is believed
before it was looked at: Gradio would hand each one to another thread and back."""

ASKED = """() => {
  const asked = new URLSearchParams(location.search), kept = new URLSearchParams(asked);
  for (const name of ['case', 'label', 'prompt', 'cohort']) kept.delete(name);
  if (asked.has('case'))
    history.replaceState(null, '', `/${String(kept) ? `?${kept}` : ''}`);
  return [asked.has('case') ? asked.toString() : ''];
}"""
"""Takes a linked pair out of the address: the next reload goes on where one is."""

COUNT = "(...menus) => [window.ranloopCount(menus)]"
"""Counts real changes of the menus: Gradio tells of a clicked option twice, and of a
menu that is merely left."""

SETTLE = "() => window.ranloopSettle()"
"""Brings the open pair into view, with the fields that its form uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPage(Page):
    """The page, and how another one opens it on a label."""

    open_on_label: Callable[..., Any]
    """As in `events.open_on_label`; returns the outputs."""

    place: gr.State
    """Where the visitor is, as `open_on_label` takes it."""


def build(registry: EventRegistry, header: PageHeader) -> ReviewPage:
    """Add the page and connect it."""
    parts = build_parts()
    _connect_moves(registry, parts)
    _connect_trace(registry, parts)
    _connect_form(registry, parts)
    _connect_own(registry, parts)
    return ReviewPage(
        name="review",
        right=Right.SEE,
        tab=parts.tab,
        refresh=events.refresh,
        inputs=(parts.place, *parts.filters),
        outputs=(*parts.filters, *parts.shown),
        open_on_label=events.open_on_label,
        place=parts.place,
    )


def follow(visit: Visit, asked: object) -> None:
    """Have the workbench open on the pair that an address asks for, if it does.

    Parameters
    ----------
    asked
        The query of the address; whatever else a browser sends is ignored.
    """
    query = dict(parse_qsl(asked[:LONGEST_LINK])) if isinstance(asked, str) else {}
    pair = query.get("case", ""), query.get("label", "")
    prompt, cohort = choose_context(visit, context_kept(visit) | query)
    if all(pair) and prompt and cohort:
        keep_place(visit, prompt, cohort)
        keep_page(visit, "review")
        follow_link(visit, prompt, cohort, pair)


def _connect_moves(registry: EventRegistry, parts: ReviewComponents) -> None:
    """Connect what goes through the queue; looking needs no more than that."""
    for menu in parts.menus:
        menu.input(None, parts.menus, parts.count, js=COUNT, queue=False)
    changed = partial(gr.on, [parts.filter_boxes["search"].submit, parts.count.change])
    moves: Sequence[tuple[str, Callable[..., Any], Callable[..., Any]]] = (
        ("review_choose", parts.queue.act, events.choose),
        ("review_turn", parts.case.act, events.turn),
        ("review_narrow", changed, events.narrow),
        ("review_renew", parts.remark.act, events.renew),
    )
    for name, listener, handler in moves:
        moved = registry.on(
            listener,
            handler,
            right=Right.SEE,
            name=name,
            inputs=(parts.place, *parts.filters),
            outputs=parts.shown,
            js=LEAVE,
            trigger_mode="always_last",
            **PLAIN,
        )
        moved.then(None, js=SETTLE, queue=False)


def _connect_trace(registry: EventRegistry, parts: ReviewComponents) -> None:
    """Connect the trace of the open case: whoever sees the case may see it."""
    registry.on(
        parts.trace.act,
        events.turn_trace,
        right=Right.SEE,
        name="review_trace",
        inputs=(parts.place,),
        outputs=[parts.trace],
        js=LEAVE,
        trigger_mode="always_last",
        **PLAIN,
    )


def _connect_form(registry: EventRegistry, parts: ReviewComponents) -> None:
    """Connect the form: every change is kept at once."""
    own = (parts.place, parts.token)
    chosen = [one.input for one in parts.fields if not isinstance(one, gr.Textbox)]
    for listener, name in (
        (partial(gr.on, chosen), "review_keep"),
        (parts.typed.typed, "review_typed"),
    ):
        registry.on(
            listener,
            events.keep_form,
            right=Right.JUDGE,
            name=name,
            inputs=(*own, *parts.fields),
            outputs=[parts.status],
            trigger_mode="always_last",
            **PLAIN,
        )
    phrase = parts.form_boxes["phrase"]
    registry.on(
        parts.take.click,
        events.take_text,
        right=Right.JUDGE,
        name="review_take",
        inputs=(*own, *parts.fields, phrase),
        outputs=[phrase, parts.status],
        js=MARKED,
        **PLAIN,
    )
    registry.on(
        parts.phrases.act,
        events.turn_phrase,
        right=Right.JUDGE,
        name="review_phrase",
        inputs=(*own, *parts.fields, phrase),
        outputs=[parts.phrases, parts.status, *parts.fields],
        js=MEANT,
        trigger_mode="always_last",
        **PLAIN,
    ).then(None, js=SHOW_PHRASE, queue=False)
    registry.on(
        parts.tried.act,
        events.turn_try,
        right=Right.JUDGE,
        name="review_try",
        inputs=(*own, *parts.fields),
        outputs=[parts.tried, parts.heard, parts.clock],
        js=LEAVE,
        trigger_mode="always_last",
        preprocess=False,
    )
    registry.on(
        parts.clock.tick,
        events.poll_try,
        right=Right.JUDGE,
        name="review_try_poll",
        inputs=(parts.place,),
        outputs=[parts.tried, parts.heard, parts.clock],
    )
    answers: Sequence[tuple[str, Callable[..., Any], Callable[..., Any], Right]] = (
        ("review_submit", parts.submit.click, events.hand_in, Right.JUDGE),
        ("review_together", parts.together.act, events.hand_in_together, Right.JUDGE),
        ("review_offer", parts.offer.act, events.take_offer, Right.SEE),
    )
    for name, listener, handler, right in answers:
        registry.on(
            listener,
            handler,
            right=right,
            name=name,
            inputs=(*own, *parts.filters, *parts.fields),
            outputs=parts.shown,
            js=LEAVE,
            **PLAIN,
        ).then(None, js=SETTLE, queue=False)
    registry.on(
        parts.alike.act,
        events.list_alike,
        right=Right.JUDGE,
        name="review_alike",
        inputs=(parts.place,),
        outputs=[parts.together],
        **PLAIN,
    )
    leave = "() => document.activeElement?.blur()"
    parts.form_boxes["cause"].select(None, js=leave, queue=False)


def _connect_own(registry: EventRegistry, parts: ReviewComponents) -> None:
    """Connect reserving a case, and changing what one has said."""
    inputs = (parts.place, *parts.filters)
    registry.on(
        parts.reserve.click,
        events.toggle_reserve,
        right=Right.JUDGE,
        name="review_reserve",
        inputs=inputs,
        outputs=parts.panels,
        **PLAIN,
    )
    registry.on(
        parts.status.act,
        events.undo,
        right=Right.JUDGE,
        name="review_undo",
        inputs=inputs,
        outputs=parts.shown,
        js=LEAVE,
        **PLAIN,
    ).then(None, js=SETTLE, queue=False)
    registry.on(
        parts.said.act,
        events.change,
        right=Right.JUDGE,
        name="review_change",
        inputs=inputs,
        outputs=[parts.status, *parts.fields],
        **PLAIN,
    ).then(None, js=SETTLE, queue=False)
    registry.on(
        parts.withdraw.click,
        events.take_back,
        right=Right.JUDGE,
        name="review_withdraw",
        inputs=(parts.place, parts.reason, *parts.filters),
        outputs=[parts.reason, *parts.panels],
        **PLAIN,
    )
