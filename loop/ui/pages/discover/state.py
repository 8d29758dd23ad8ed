"""What the page Discover rests on: the kept draft of a cohort, and what was begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.core.people.users import Right
from loop.core.safe_text import quoted
from loop.labels.cohort import read_cohort, require_reports
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.optimize.discovery.discover import require_role
from loop.optimize.discovery.kept_draft import (
    KeptDraft,
    count_phrase,
    find_stale,
    kept_draft_path,
    read_kept_draft,
)
from loop.optimize.discovery.taxonomy_change import (
    TaxonomyChange,
    check_taxonomy_draft,
)
from loop.optimize.discovery.taxonomy_draft import ClusterDecision, DraftCluster
from loop.review.working import drop_working, keep_working, read_working
from loop.ui.background import JobProgress
from loop.ui.context import AppContext
from loop.ui.wiring import Visit

PAGE_SIZE = 25
"""Clusters that are listed at once."""

FORMS = frozenset({"name", "map", "merge", "split"})
"""What a form of a cluster decides."""

LONGEST_FIELD = 2_000
"""Characters of one field of a form at most."""

MOST_VALUES = 500
"""Values of one field at most: phrases that are ticked."""


class ClusterFilter(StrEnum):
    """Which clusters are listed."""

    ALL = "all"
    UNDECIDED = "undecided"
    UNNAMED = "unnamed"
    """Those of which no phrase makes a label present."""

    DECIDED = "decided"


class ClusterForm(NamedTuple):
    """A form of a cluster as the browser sent it, or as it was begun. Untrusted."""

    cluster: str
    """Key of the cluster; empty where no form was begun."""

    form: str
    fields: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, data: Mapping[str, Any], form: object) -> ClusterForm:
        """Return what was sent.

        Raises
        ------
        DataError
            A field is longer, or has more values, than a form holds.
        """
        sent = data.get("fields")
        fields = {
            str(name): tuple(map(str, values))
            for name, values in (sent.items() if isinstance(sent, Mapping) else ())
            if isinstance(values, list)
        }
        for name, values in fields.items():
            longest = max(map(len, values), default=0)
            if longest > LONGEST_FIELD:
                raise DataError(
                    f"{quoted(name)} has {longest:,} characters; at most "
                    f"{LONGEST_FIELD:,} are kept. Shorten it."
                )
            if len(values) > MOST_VALUES:
                raise DataError(
                    f"{len(values):,} phrases are ticked; at most {MOST_VALUES} can be "
                    "split off at once. Split the cluster in several steps."
                )
        return cls(str(data.get("id", "")), str(form or ""), fields)

    def text(self, name: str) -> str:
        """Return the text of one field; empty where there is none."""
        return next(iter(self.fields.get(name, ())), "")


NO_FORM = ClusterForm("", "", {})


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverState:
    """What is there of a cohort, for one visitor."""

    visit: Visit
    cohort: str
    taxonomy: Taxonomy
    kept: KeptDraft | None
    stale: str
    """Why nothing can be decided on it, see `find_stale`; empty where it can."""

    running: JobProgress | None = None
    """Discovering that goes on, or came to nothing."""

    listed: ClusterFilter = ClusterFilter.ALL
    start: int = 0
    """Place of the first cluster that is listed, among those that are let through."""

    begun: ClusterForm = NO_FORM

    @property
    def context(self) -> AppContext:
        """Where everything is."""
        return self.visit.context

    @property
    def may_decide(self) -> bool:
        """Whether the visitor may decide on clusters now."""
        return self.visit.user.may(Right.JUDGE) and not self.stale

    @property
    def clusters(self) -> Sequence[DraftCluster]:
        """Those that the filter lets through, in the order of the draft."""
        if self.kept is None:
            return ()
        every = self.kept.draft.clusters
        return [one for one in every if self._lets_through(one)]

    def _lets_through(self, cluster: DraftCluster) -> bool:
        undecided = cluster.decision is ClusterDecision.UNDECIDED
        match self.listed:
            case ClusterFilter.UNDECIDED:
                return undecided
            case ClusterFilter.DECIDED:
                return not undecided
            case ClusterFilter.UNNAMED:
                return not self.named_by(cluster)
        return True

    def named_by(self, cluster: DraftCluster) -> tuple[str, ...]:
        """Return ids of the labels that a phrase of a cluster makes present."""
        return self._labels(cluster, "labels")

    def left_uncertain(self, cluster: DraftCluster) -> tuple[str, ...]:
        """Return ids of the labels that its phrases only leave uncertain."""
        named = self.named_by(cluster)
        return tuple(
            one for one in self._labels(cluster, "uncertain") if one not in named
        )

    def _labels(self, cluster: DraftCluster, which: str) -> tuple[str, ...]:
        if self.kept is None:
            return ()
        counts = (count_phrase(self.kept.draft, one) for one in cluster.phrases)
        found = (label for one in counts if one for label in getattr(one, which))
        return tuple(dict.fromkeys(found))

    def label_name(self, label: str) -> str:
        """Return the published name of a label; its id where there is none now."""
        return next((o.name for o in self.taxonomy.labels if o.id == label), label)


def open_cohort(visit: Visit, cohort: str) -> None:
    """Refuse a cohort on which labels may not be designed.

    Raises
    ------
    DataError
        There is no such cohort, it holds pairs, or is of another role.
    """
    about = read_cohort(visit.context.workspace, cohort)
    require_reports(about, "discover")
    require_role(about)


def read_state(visit: Visit, cohort: str) -> DiscoverState:
    """Return what is there of a cohort.

    Raises
    ------
    LoopError
        Labels may not be designed on the cohort, or its draft cannot be read.
    """
    open_cohort(visit, cohort)
    context = visit.context
    place = read_working(context.store, visit.actor, _place(cohort))
    chosen = place.payload if place else {}
    listed = next(
        (one for one in ClusterFilter if one == chosen.get("listed")), ClusterFilter.ALL
    )
    start = chosen.get("start")
    form = read_working(context.store, visit.actor, _form(cohort))
    kept = read_kept_draft(context.workspace, cohort)
    begun = ClusterForm.of(form.payload, form.payload.get("form")) if form else NO_FORM
    return DiscoverState(
        visit=visit,
        cohort=cohort,
        taxonomy=read_taxonomy(context.workspace.labels),
        kept=kept,
        stale=find_stale(context.workspace, kept.draft) if kept else "",
        running=context.jobs.progress_of(discover_key(cohort)),
        listed=listed,
        start=start if isinstance(start, int) else 0,
        begun=begun,
    )


def read_change(state: DiscoverState) -> TaxonomyChange:
    """Return what taking the draft would do, and what would break.

    Raises
    ------
    DataError
        The draft cannot be taken, or there is none.
    """
    if state.kept is None:
        raise DataError("nothing was discovered yet.")
    workspace = state.context.workspace
    key = (
        *("taxonomy change", state.cohort, state.kept.digest),
        len(read_ledger(workspace.ledger)),
    )
    path = kept_draft_path(workspace, state.cohort)
    return state.context.cache.get(key, lambda: check_taxonomy_draft(workspace, path))


def discover_key(cohort: str) -> str:
    """Return the name under which a cohort is read."""
    return f"discover {cohort}"


def keep_listed(visit: Visit, cohort: str, listed: str, start: int) -> None:
    """Remember which clusters a visitor looks at."""
    payload = {"listed": listed, "start": start}
    context = visit.context
    keep_working(context.store, visit.actor, _place(cohort), payload, context.now)


def keep_form(visit: Visit, cohort: str, begun: ClusterForm) -> None:
    """Remember a form as far as it is filled, in place of any that was begun before."""
    context = visit.context
    payload = {
        "id": begun.cluster,
        "form": begun.form,
        "fields": {name: list(values) for name, values in begun.fields.items()},
    }
    keep_working(context.store, visit.actor, _form(cohort), payload, context.now)


def drop_form(visit: Visit, cohort: str) -> None:
    """Forget the form that was begun."""
    drop_working(visit.context.store, visit.actor, _form(cohort))


def keep_why(visit: Visit, cohort: str, why: str) -> None:
    """Remember the reason typed for taking the draft."""
    context = visit.context
    keep_working(context.store, visit.actor, _why(cohort), {"why": why}, context.now)


def find_why(visit: Visit, cohort: str) -> str:
    """Return the reason typed so far."""
    kept = read_working(visit.context.store, visit.actor, _why(cohort))
    return str(kept.payload.get("why") or "") if kept else ""


def drop_why(visit: Visit, cohort: str) -> None:
    """Forget the reason of what was taken."""
    drop_working(visit.context.store, visit.actor, _why(cohort))


def _place(cohort: str) -> str:
    return f"discover:place:{cohort}"


def _form(cohort: str) -> str:
    return f"discover:form:{cohort}"


def _why(cohort: str) -> str:
    return f"discover:why:{cohort}"
