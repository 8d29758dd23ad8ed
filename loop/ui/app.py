"""The workbench: assembles its pages, defines none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import LoopError
from loop.core.people.users import Right
from loop.ui.context import AppContext
from loop.ui.header import (
    PageHeader,
    build_header,
    connect_header,
    keep_page,
    open_header,
    page_kept,
)
from loop.ui.html import show
from loop.ui.loading import SlimBlocks
from loop.ui.pages import overview
from loop.ui.pages.base import SAME, Page
from loop.ui.pages.discover import page as discover
from loop.ui.pages.files import page as files
from loop.ui.pages.judges import page as judges
from loop.ui.pages.judges.events import holds_pairs, open_on_case
from loop.ui.pages.readers import page as readers
from loop.ui.pages.review import page as review
from loop.ui.pages.revise import page as revise
from loop.ui.pages.runs import page as runs
from loop.ui.pages.runs.state import (
    NEWS_SHOWN,
    find_news,
    follow_run,
    take_news,
)
from loop.ui.pages.versions import page as versions
from loop.ui.wiring import EventRegistry, Visit

BUILDERS: tuple[Callable[[EventRegistry, PageHeader], Page], ...] = (
    overview.build,
    review.build,
    readers.build,
    judges.build,
    discover.build,
    revise.build,
    versions.build,
    runs.build,
    files.build,
)
"""What makes each page, in the order of their use."""

NOWHERE = "nowhere"
"""The page that is chosen at first, and is none: whichever is chosen then is a change,
which Gradio tells of."""


class Workbench(NamedTuple):
    """The whole front end."""

    blocks: SlimBlocks
    registry: EventRegistry


def build_workbench(context: AppContext) -> Workbench:
    """Return the front end of a workspace."""
    registry = EventRegistry(context)
    with SlimBlocks(
        registry, title="ranloop", analytics_enabled=False, fill_width=True
    ) as blocks:
        prompt, cohort, ended, who = build_header()
        with gr.Tabs(elem_id="pages", selected=NOWHERE) as tabs:
            header = PageHeader(
                prompt=prompt, cohort=cohort, ended=ended, who=who, tabs=tabs
            )
            pages = [build(registry, header) for build in BUILDERS]
        for page in pages:
            # Gradio shows a hidden tab when it is told to, and never hides one again.
            page.tab.visible = False
        connect_header(registry, header)
        for page in pages:
            _connect_page(registry, header, page)
        _connect_links(registry, header, pages)
        _connect_opening(registry, blocks, header, pages)
    return Workbench(blocks, registry)


def _connect_page(registry: EventRegistry, header: PageHeader, page: Page) -> None:
    """Show a page afresh whenever it is chosen, and remember that it was."""

    def see(visit: Visit, *values: Any) -> Any:
        keep_page(visit, page.name)
        shown = page.refresh(visit, *values)
        shown = shown if isinstance(shown, list | tuple) else [shown]
        return [_show_ended(visit, page), *shown]

    registry.on(
        page.tab.select,
        see,
        right=page.right,
        name=f"see_{page.name}",
        inputs=(*header.selection, *page.inputs),
        outputs=(header.ended, *page.outputs),
    )


def _show_ended(visit: Visit, page: Page) -> str:
    """Return how many jobs ended since the visitor last looked at the page Runs."""
    if page.name == "runs" or not visit.user.may(Right.SEE):
        return ""
    try:
        news = find_news(visit)
        if not news.known:
            take_news(visit)
    except LoopError:
        # The page Runs says why; this one is not about jobs.
        return show("ended.html.jinja", count=None, most=NEWS_SHOWN)
    return show("ended.html.jinja", count=len(news.ended), most=NEWS_SHOWN)


def _connect_links(
    registry: EventRegistry, header: PageHeader, pages: Sequence[Page]
) -> None:
    """Let what one page names be opened on another: a label, a case, a page."""
    queue = next(page for page in pages if isinstance(page, review.ReviewPage))
    names = {page.name for page in pages}

    def go(visit: Visit, prompt: str, cohort: str, place: Any) -> list[Any]:
        wanted, label, case = (
            str(visit.data.get(key, "")) for key in ("page", "label", "case")
        )
        if label and case and holds_pairs(visit, cohort):
            open_on_case(visit, cohort, case)
            return [gr.Tabs(selected="judges"), *(SAME for _ in queue.outputs)]
        if label and wanted in ("", queue.name):
            shown = queue.open_on_label(visit, prompt, cohort, label, place, case)
            return [gr.Tabs(selected=queue.name), *shown]
        if visit.data.get("act") == "unanswered":
            follow_run(visit, visit.context.latest_run(prompt, cohort).id)
        chosen = gr.Tabs(selected=wanted) if wanted in names else SAME
        return [chosen, *(SAME for _ in queue.outputs)]

    for panel in (header.ended, *(one for page in pages for one in page.links)):
        registry.on(
            panel.act,
            go,
            right=Right.SEE,
            name=f"go_from_{panel.elem_id}".replace("-", "_"),
            inputs=(*header.selection, queue.place),
            outputs=(header.tabs, *queue.outputs),
        )


def _connect_opening(
    registry: EventRegistry,
    blocks: gr.Blocks,
    header: PageHeader,
    pages: Sequence[Page],
) -> None:
    """Fill the header when the workbench is opened, and choose the page one was on.

    That page fills itself, as it does whenever it is chosen. It is the only one shown
    at first: of several, Gradio chooses the foremost before the one it is told to, and
    two pages would be filled.
    """
    tabs = [page.tab for page in pages]

    def seen_by(visit: Visit) -> list[Page]:
        return [page for page in pages if page.open_to(visit.user)]

    def open_first(visit: Visit, asked: Any) -> list[Any]:
        seen = seen_by(visit)
        if any(isinstance(page, review.ReviewPage) for page in seen):
            review.follow(visit, asked)
        kept = page_kept(visit)
        first = next((one for one in seen if one.name == kept), next(iter(seen), None))
        return [
            *open_header(visit),
            *(gr.Tab(visible=page is first) for page in pages),
            gr.Tabs(selected=first.name if first else None),
        ]

    def open_others(visit: Visit) -> list[Any]:
        seen = seen_by(visit)
        return [gr.Tab(visible=page in seen) for page in pages]

    asked = gr.Textbox(visible=False, label="Address", elem_id="asked")
    opened = registry.on(
        blocks.load,
        open_first,
        right=None,
        name="open",
        inputs=[asked],
        js=review.ASKED,
        outputs=[*header.filled, *tabs, header.tabs],
    )
    registry.on(opened.then, open_others, right=None, name="open_others", outputs=tabs)
