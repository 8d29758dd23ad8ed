"""Everything the page Revise shows of one prompt and cohort, read afresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loop.core.digests import digest_text
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.people.users import Right
from loop.labels.cohort import CohortRole, read_cohort
from loop.labels.taxonomy import read_taxonomy
from loop.review.revise.check_record import Checked, Recalled, recall_check
from loop.review.revise.draft import Drafted, DraftInfo, list_open_drafts, show_draft
from loop.review.revise.edit import guide_text
from loop.ui.desk import Desk
from loop.ui.pages.revise.kept import Opened
from loop.ui.wiring import Visit

DEFAULT_ENGINE = "rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseState:
    """What is there, for one visitor."""

    visit: Visit
    prompt: str
    cohort: str
    names: Mapping[str, str]
    """Label id to its published name."""

    engines: tuple[str, ...]
    """Engines a draft may be checked with, the one of the newest run first."""

    infos: tuple[DraftInfo, ...]
    info: DraftInfo | None = None
    """The draft that is open."""

    drafted: Drafted | None = None
    """It as it stands; None when it cannot be read."""

    recalled: Recalled | None = None
    """Its last check."""

    label: str = ""
    """Label whose guide is in the editor."""

    running: bool = False
    """Whether the draft was being checked or committed when this was read."""

    @property
    def desk(self) -> Desk:
        """Where everything is."""
        return self.visit.desk

    @property
    def may(self) -> bool:
        """Whether the visitor may make, check and commit drafts."""
        return self.visit.user.may(Right.REVISE)

    @property
    def actor(self) -> Actor:
        """How a decision of the visitor's would stand in the ledger."""
        user = self.visit.user
        return user.actor(Right.REVISE) if self.may else self.visit.actor

    @property
    def checked(self) -> Checked | None:
        """The check of the open draft that holds now."""
        recalled = self.recalled
        return recalled.checked if recalled and not recalled.stale else None

    @property
    def opened(self) -> Opened:
        """What a browser tab that shows this has seen."""
        if self.info is None:
            return Opened()
        return Opened(
            draft=self.info.ref,
            digest=self.drafted.draft.digest if self.drafted else "",
            checked=self.checked.time if self.checked else "",
            label=self.label,
            guide=guide_mark(self.guide),
            running=self.running,
        )

    @property
    def guide(self) -> str:
        """The guide of the label in the editor, as it stands in the draft."""
        return guide_of(self.drafted, self.label)


def guide_of(drafted: Drafted | None, label: str) -> str:
    """Return the guide of `label` as text; empty where there is none."""
    guide = drafted.draft.guide(label) if drafted and label else None
    return guide_text(guide) if guide else ""


def guide_mark(text: str) -> str:
    """Return what tells one text of a guide from another; empty for none."""
    return digest_text(text)[:16] if text else ""


def look(
    visit: Visit, prompt: str, cohort: str, ref: str, label: str = ""
) -> ReviseState:
    """Return the page as it stands, with the draft `ref` open if it is there.

    Parameters
    ----------
    label
        Label to edit; one that the draft changes when empty.

    Raises
    ------
    LoopError
        The ledger, the store or the settings cannot be read.
    """
    desk = visit.desk
    infos = list_open_drafts(desk.workspace, desk.store, prompt)
    info = next((one for one in infos if one.ref == ref), None)
    engines = known_engines(desk, prompt, cohort)
    drafted = _describe(desk, info, engines[0])
    return ReviseState(
        visit=visit,
        prompt=prompt,
        cohort=cohort,
        names={one.id: one.name for one in read_taxonomy(desk.workspace.labels).labels},
        engines=engines,
        infos=infos,
        info=info,
        drafted=drafted,
        recalled=(
            recall_check(desk.workspace, desk.store, ref) if info and drafted else None
        ),
        label=_label(drafted, label),
    )


def _describe(desk: Desk, info: DraftInfo | None, engine: str) -> Drafted | None:
    if info is None or info.problem:
        return None
    try:
        return show_draft(desk.workspace, info.ref, engine)
    except DataError:
        # Removed or damaged since it was listed; the list says so next time.
        return None


def _label(drafted: Drafted | None, wanted: str) -> str:
    if drafted is None or wanted in drafted.draft.labels:
        return wanted if drafted else ""
    changed = (one.label for one in drafted.diff.guides)
    known = (one for one in changed if one in drafted.draft.labels)
    return next(known, next(iter(drafted.draft.labels), ""))


def known_engines(desk: Desk, prompt: str, cohort: str) -> tuple[str, ...]:
    """Return the engines that finished a run here; those of this cohort come first.

    Only these: a name typed into a browser could send case texts to any address.
    """
    runs = desk.store.find_runs(finished=True)
    own = f"{prompt}@"
    runs.sort(key=lambda r: not (r.spec.cohort == cohort and own in r.spec.prompt))
    names = dict.fromkeys(run.spec.engine for run in runs)
    usable = [name for name in names if name.partition(":")[0] != "replay"]
    return tuple(dict.fromkeys((*usable, DEFAULT_ENGINE)))


def is_dev(desk: Desk, cohort: str) -> bool:
    """Return whether prompts may be revised on `cohort`."""
    try:
        return read_cohort(desk.workspace, cohort).role is CohortRole.DEV
    except DataError:
        return False
