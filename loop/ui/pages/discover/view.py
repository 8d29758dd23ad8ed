"""What the page Discover shows, component by component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gradio as gr

from loop.core.check_findings import FindingSeverity
from loop.core.errors import DataError, LoopError
from loop.core.people.users import Right
from loop.labels.taxonomy import NO_FINDING
from loop.optimize.discovery.discover import MentionShares
from loop.optimize.discovery.kept_draft import (
    cluster_key,
    cluster_mark,
    cluster_name,
    count_phrase,
    described_label,
    is_whole,
    kept_draft_path,
    read_found,
)
from loop.optimize.discovery.taxonomy_change import TaxonomyChange
from loop.optimize.discovery.taxonomy_draft import (
    ClusterDecision,
    ClusterFound,
    DraftCluster,
    DraftLabel,
    TaxonomyDraft,
)
from loop.ui.html import notice, show
from loop.ui.pages.base import SAME
from loop.ui.pages.discover.state import (
    PAGE_SIZE,
    ClusterFilter,
    ClusterForm,
    DiscoverState,
    find_why,
    read_change,
    read_state,
)
from loop.ui.wiring import Visit

FILTERS: Mapping[ClusterFilter, str] = {
    ClusterFilter.ALL: "All",
    ClusterFilter.UNDECIDED: "Undecided",
    ClusterFilter.UNNAMED: "No label names it",
    ClusterFilter.DECIDED: "Decided",
}


DECISIONS: Mapping[ClusterDecision, str] = {
    ClusterDecision.UNDECIDED: "undecided",
    ClusterDecision.DROP: "dropped",
    ClusterDecision.MAP: "mapped",
    ClusterDecision.NEW: "new",
}
"""Each decision in a word."""


class DiscoverOutputs(NamedTuple):
    """An update for each component of this name in `DiscoverComponents`."""

    opened: Any = SAME
    timer: Any = SAME
    said: Any = SAME
    head: Any = SAME
    clusters: Any = SAME
    change: Any = SAME
    deciding: Any = SAME
    why: Any = SAME


class PhraseRow(NamedTuple):
    """One phrase of a cluster."""

    text: str
    asserted: int | None
    """Cases; None where the draft does not tell."""

    shares: MentionShares | None
    """None where no case is known that says something of it."""

    labels: tuple[str, ...]
    """Names of the labels that it makes present."""


class ClusterRow(NamedTuple):
    """One cluster of the list."""

    key: str
    mark: str
    """What it is now, see `cluster_mark`."""

    name: str
    cluster: DraftCluster
    phrases: tuple[PhraseRow, ...]
    found: ClusterFound | None
    """Of the cluster as it was discovered."""

    whole: bool
    """Whether it is still put together as it was discovered."""

    asserted: int
    """Cases that assert it; at least so many where that is not exactly known."""

    exact: bool
    """Whether it is known: not of several phrases that were put together here."""

    shares: MentionShares | None
    """None where that is not known."""

    named_by: tuple[str, ...]
    uncertain: tuple[str, ...]
    met: tuple[tuple[str, int], ...]
    """Names of labels that the prompt finds in its cases, with their number."""

    described: DraftLabel | None
    """The new label that it is part of."""

    begun: ClusterForm | None
    """The form of it that the visitor began."""


def show_page(visit: Visit, cohort: str | None, said: str = "") -> DiscoverOutputs:
    """Return the whole page for a cohort.

    Parameters
    ----------
    said
        HTML, above everything.
    """
    if not cohort:
        empty = "Add a cohort under Files, or with `ranloop cohort import`."
        return _closed(notice(empty, title="No cohort yet"))
    try:
        state = read_state(visit, cohort)
    except LoopError as error:
        text = visit.context.without_root(str(error))
        return _closed(notice(text, title=f"Cohort {cohort}"))
    return show_state(state)._replace(said=said)


def show_state(state: DiscoverState, told: str = "") -> DiscoverOutputs:
    """Return everything but what is said above it.

    Parameters
    ----------
    told
        What was just decided, in words.
    """
    running = state.running is not None and not state.running.finished
    outputs = DiscoverOutputs(
        opened=state.kept.digest if state.kept else "",
        timer=gr.Timer(active=running),
        head=show_head(state),
        clusters=show_clusters(state, told),
    )
    return _with_change(outputs, state)


def _with_change(outputs: DiscoverOutputs, state: DiscoverState) -> DiscoverOutputs:
    """Return `outputs` with what taking the draft would do, and its button."""
    change: TaxonomyChange | None = None
    trouble = ""
    if state.kept is not None and not state.stale:
        try:
            change = read_change(state)
        except DataError as error:
            trouble = str(error)
    may = state.visit.user.may(Right.REVISE)
    ready = change is not None and change.changes
    return outputs._replace(
        change=_show_change(state, change, trouble),
        deciding=gr.Column(visible=may and ready),
        why=find_why(state.visit, state.cohort),
    )


def _closed(said: str) -> DiscoverOutputs:
    return DiscoverOutputs(
        opened="",
        timer=gr.Timer(active=False),
        said=said,
        head="",
        clusters="",
        change="",
        deciding=gr.Column(visible=False),
    )


def show_head(state: DiscoverState) -> str:
    """Return what was discovered, and what goes on, as HTML."""
    draft = state.kept.draft if state.kept else None
    decided = draft.clusters if draft else ()
    path = kept_draft_path(state.context.workspace, state.cohort)
    return show(
        "discover_head.html.jinja",
        cohort=state.cohort,
        draft=draft,
        stale=state.stale,
        unnamed=sum(not state.named_by(one) for one in decided),
        decided=sum(o.decision is not ClusterDecision.UNDECIDED for o in decided),
        file=str(path.relative_to(state.context.workspace.root)),
        progress=state.running,
        may=state.visit.user.may(Right.REVISE),
    )


def show_clusters(state: DiscoverState, told: str = "") -> str:
    """Return one page of the list of clusters, with the forms to decide, as HTML."""
    if state.kept is None:
        return ""
    draft = state.kept.draft
    listed = state.clusters
    last = max(len(listed) - 1, 0)
    start = min(max(state.start, 0), last) // PAGE_SIZE * PAGE_SIZE
    others = [(cluster_name(draft, one), one) for one in draft.clusters]
    return show(
        "discover_clusters.html.jinja",
        rows=[_row(state, draft, one) for one in listed[start : start + PAGE_SIZE]],
        filters=FILTERS,
        listed=state.listed,
        start=start,
        size=PAGE_SIZE,
        total=len(listed),
        every=len(draft.clusters),
        prompt=draft.prompt or "the names of the labels",
        labels=[o.name for o in state.taxonomy.labels if o.id != NO_FINDING],
        groups=_groups(state, draft),
        drafted=draft.labels,
        others=others,
        told=told,
        may=state.may_decide,
    )


def _groups(state: DiscoverState, draft: TaxonomyDraft) -> Sequence[str]:
    used = [one.group for one in state.taxonomy.labels]
    return list(dict.fromkeys((*used, *(one.group for one in draft.labels))))


def _row(
    state: DiscoverState, draft: TaxonomyDraft, cluster: DraftCluster
) -> ClusterRow:
    phrases = tuple(_phrase(state, draft, one) for one in cluster.phrases)
    found, whole, key = read_found(cluster), is_whole(cluster), cluster_key(cluster)
    asserted = max(one.asserted or 0 for one in phrases)
    shares = phrases[0].shares if len(phrases) == 1 else None
    if found and whole:
        asserted = found.asserted
        shares = MentionShares.of(found.asserted, found.hedged, found.denied)
    met = found.labels_found.items() if found else ()
    return ClusterRow(
        key=key,
        mark=cluster_mark(draft, cluster),
        name=cluster_name(draft, cluster),
        cluster=cluster,
        phrases=phrases,
        found=found,
        whole=whole,
        asserted=asserted,
        exact=shares is not None,
        shares=shares,
        named_by=tuple(map(state.label_name, state.named_by(cluster))),
        uncertain=tuple(map(state.label_name, state.left_uncertain(cluster))),
        met=tuple((state.label_name(one), number) for one, number in met),
        described=described_label(draft, cluster.label),
        begun=state.begun if state.begun.cluster == key else None,
    )


def _phrase(state: DiscoverState, draft: TaxonomyDraft, text: str) -> PhraseRow:
    counts = count_phrase(draft, text)
    if counts is None:
        return PhraseRow(text, None, None, ())
    shares = MentionShares.of(counts.asserted, counts.hedged, counts.denied)
    labels = tuple(map(state.label_name, counts.labels))
    return PhraseRow(text, counts.asserted, shares, labels)


def _show_change(
    state: DiscoverState, change: TaxonomyChange | None, trouble: str
) -> str:
    if state.kept is None or state.stale:
        return ""
    draft = state.kept.draft
    user = state.visit.user
    may = user.may(Right.REVISE)
    return show(
        "discover_change.html.jinja",
        change=change,
        trouble=state.context.without_root(trouble),
        decisions=[
            (change.decisions[one], word)
            for one, word in DECISIONS.items()
            if change and change.decisions.get(one)
        ],
        added=[
            (label, *found)
            for label, found in zip(draft.labels, change.added.items(), strict=True)
        ]
        if change
        else [],
        without_root=state.context.without_root,
        label_name=state.label_name,
        warning=FindingSeverity.WARNING,
        may=may,
        actor=user.actor(Right.REVISE) if may else None,
    )
