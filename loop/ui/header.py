"""What stands above every page: whose session it is, which prompt and which cohort."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from loop.core.errors import DataError
from loop.core.people.users import Right
from loop.labels.cohort import CohortRole, list_cohorts, read_cohort
from loop.prompts.catalog import list_prompts
from loop.review.working import keep_working, read_working
from loop.run.store import RunRecord
from loop.ui.context import AppContext
from loop.ui.html import panel, show
from loop.ui.wiring import EventRegistry, Visit

PLACE = "place"
"""Subject under which a person's prompt, cohort and page are kept."""

_KEYS = "keys"
"""Subject under which is kept whether a person uses letters as keys."""

_RELOAD = """() => {
  if (window.ranloopLeaving) return;
  window.ranloopLeaving = true;
  window.location.reload();
}"""
"""Once: a second reload would abort the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageHeader:
    """The components that every page may read or set."""

    prompt: gr.Dropdown
    cohort: gr.Dropdown
    ended: gr.HTML
    """How many jobs ended since a person last looked, where there are any."""

    who: gr.HTML
    tabs: gr.Tabs

    @property
    def filled(self) -> tuple[gr.Dropdown, gr.Dropdown, gr.HTML]:
        """Outputs of `open_header`."""
        return self.prompt, self.cohort, self.who

    @property
    def selection(self) -> tuple[gr.Dropdown, gr.Dropdown]:
        """Inputs of whatever depends on what is looked at."""
        return self.prompt, self.cohort


def build_header() -> tuple[gr.Dropdown, gr.Dropdown, gr.HTML, gr.HTML]:
    """Return the selectors, the place of news, and who is signed in."""
    with gr.Row(elem_id="bar", equal_height=True):
        panel(show("brand.html.jinja"), elem_id="brand")
        prompt = gr.Dropdown(
            [], label="Prompt", elem_id="prompt", min_width=150, scale=1
        )
        cohort = gr.Dropdown(
            [], label="Cohort", elem_id="cohort", min_width=150, scale=1
        )
        ended = panel(elem_id="jobs-ended")
        who = panel(elem_id="who")
    return prompt, cohort, ended, who


def open_header(visit: Visit) -> list[Any]:
    """Return what the header shows at first: choices, selection, who is signed in."""
    prompts = list_prompts(visit.context.workspace)
    cohorts = visible_cohorts(visit)
    prompt, cohort = choose_context(visit, _kept(visit))
    return [
        gr.Dropdown(choices=list(prompts), value=prompt),
        gr.Dropdown(choices=list(cohorts), value=cohort),
        show_who(visit),
    ]


def show_who(visit: Visit) -> str:
    """Return who is signed in, and whether letters are keys for them, as HTML."""
    kept = read_working(visit.context.store, visit.actor, _KEYS)
    return show(
        "who.html.jinja",
        user=visit.user,
        signed=visit.context.access.sign_in,
        keys=kept is None or bool(kept.payload.get("on")),
    )


def switch_keys(visit: Visit) -> str:
    """Switch the keys of one letter on or off, for this person (WCAG 2.1.4)."""
    payload = {"on": visit.data.get("on") == "on"}
    keep_working(visit.context.store, visit.actor, _KEYS, payload, visit.context.now)
    return show_who(visit)


def choose_context(
    visit: Visit, wanted: Mapping[str, Any]
) -> tuple[str | None, str | None]:
    """Return the prompt and the cohort to look at: those wanted, if they may be."""
    prompts = list_prompts(visit.context.workspace)
    return _chosen(visit.context, wanted, prompts, visible_cohorts(visit))


def visible_cohorts(visit: Visit) -> tuple[str, ...]:
    """Return the cohorts a visitor may choose: a holdout only to read it blind."""
    names = list_cohorts(visit.context.workspace)
    if visit.user.may(Right.READ):
        return names
    return tuple(name for name in names if not _is_holdout(visit.context, name))


def _is_holdout(context: AppContext, name: str) -> bool:
    try:
        return read_cohort(context.workspace, name).role is CohortRole.HOLDOUT
    except DataError:
        return False


def _chosen(
    context: AppContext,
    place: Mapping[str, Any],
    prompts: tuple[str, ...],
    cohorts: tuple[str, ...],
) -> tuple[str | None, str | None]:
    """Return what was looked at last, else where the newest run is, else the first."""
    newest = _newest(context)
    ran = newest.spec if newest else None
    wanted = (place.get("prompt"), ran.prompt.partition("@")[0] if ran else None)
    prompt = next((one for one in wanted if one in prompts), next(iter(prompts), None))
    wanted = (place.get("cohort"), ran.cohort if ran else None)
    cohort = next((one for one in wanted if one in cohorts), next(iter(cohorts), None))
    return prompt, cohort


def _newest(context: AppContext) -> RunRecord | None:
    runs = context.store.find_runs(finished=True)
    return runs[0] if runs else None


def keep_place(visit: Visit, prompt: str | None, cohort: str | None) -> None:
    """Remember which prompt and cohort a visitor looks at, for the next visit."""
    _keep(visit, prompt=prompt, cohort=cohort)


def context_kept(visit: Visit) -> dict[str, Any]:
    """Return which prompt and cohort a visitor looked at last, as far as is known."""
    kept = _kept(visit)
    return {key: kept[key] for key in ("prompt", "cohort") if key in kept}


def page_kept(visit: Visit) -> str:
    """Return the name of the page a visitor was on last, or nothing."""
    return str(_kept(visit).get("page") or "")


def _kept(visit: Visit) -> Mapping[str, Any]:
    kept = read_working(visit.context.store, visit.actor, PLACE)
    return kept.payload if kept else {}


def _keep(visit: Visit, **changes: str | None) -> None:
    payload = {**_kept(visit), **changes}
    keep_working(visit.context.store, visit.actor, PLACE, payload, visit.context.now)


def connect_header(registry: EventRegistry, header: PageHeader) -> None:
    """Keep a changed selection, and load the page again with it."""
    for component in header.selection:
        registry.on(
            component.input,
            keep_place,
            right=None,
            name=f"keep_{component.elem_id}",
            inputs=header.selection,
        ).then(None, js=_RELOAD, queue=False)
    registry.on(
        header.who.act,
        switch_keys,
        right=None,
        name="switch_keys",
        outputs=[header.who],
    )


def keep_page(visit: Visit, name: str) -> None:
    """Remember which page a visitor is on, for the next visit."""
    if page_kept(visit) != name:
        _keep(visit, page=name)
