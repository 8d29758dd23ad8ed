"""What a visitor has begun on the page Revise, kept so that a reload finds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loop.review.working import drop_working, keep_working, read_working
from loop.ui.wiring import Visit


class Opened(NamedTuple):
    """Which draft a browser tab has open, and what of it was shown there: no texts."""

    draft: str = ""
    """Its reference; empty when none is open."""

    digest: str = ""
    """Of the wording that was shown."""

    checked: str = ""
    """Time of the check that was shown; empty without one."""

    label: str = ""
    """Label whose guide is in the editor."""

    guide: str = ""
    """Digest of that guide as it was loaded."""

    running: bool = False
    """Whether a check or a commit of it was under way when it was shown."""


class Typed(NamedTuple):
    """A guide somebody has begun to write."""

    text: str
    guide: str
    """Digest of the guide it was begun from."""

    saved: str
    """UTC, ISO 8601."""


def keep_draft_open(visit: Visit, prompt: str, cohort: str, ref: str) -> None:
    """Remember which draft is looked at; empty for none.

    Other pages call it to have this page open on a draft.
    """
    _keep(visit, f"revise:draft:{prompt}:{cohort}", draft=ref)


def find_draft_open(visit: Visit, prompt: str, cohort: str) -> str:
    """Return the draft looked at last, or nothing."""
    return str(_read(visit, f"revise:draft:{prompt}:{cohort}").get("draft") or "")


def keep_ticked(visit: Visit, cohort: str, ids: Sequence[str]) -> None:
    """Remember which verdicts are ticked."""
    _keep(visit, f"revise:ticked:{cohort}", ids=list(ids))


def find_ticked(visit: Visit, cohort: str) -> frozenset[str]:
    """Return the ids of the verdicts that are ticked."""
    ids = _read(visit, f"revise:ticked:{cohort}").get("ids")
    return frozenset(ids if isinstance(ids, list) else ())


def keep_why(visit: Visit, ref: str, why: str) -> None:
    """Remember the reason typed for a decision on a draft."""
    _keep(visit, f"revise:why:{ref}", why=why)


def find_why(visit: Visit, ref: str) -> str:
    """Return the reason typed so far."""
    return str(_read(visit, f"revise:why:{ref}").get("why") or "")


def keep_typed(visit: Visit, opened: Opened, text: str) -> None:
    """Remember the guide that is being written."""
    _keep(visit, _guide(opened.draft, opened.label), text=text, guide=opened.guide)


def find_typed(visit: Visit, ref: str, label: str) -> Typed | None:
    """Return the guide that was being written, if it was not saved."""
    found = read_working(visit.context.store, visit.actor, _guide(ref, label))
    if found is None:
        return None
    text, guide = found.payload.get("text"), found.payload.get("guide")
    return Typed(str(text or ""), str(guide or ""), found.saved)


def drop_typed(visit: Visit, ref: str, label: str) -> None:
    """Forget the guide that was being written."""
    drop_working(visit.context.store, visit.actor, _guide(ref, label))


def drop_why(visit: Visit, ref: str) -> None:
    """Forget the reason typed for a decision that is made."""
    drop_working(visit.context.store, visit.actor, f"revise:why:{ref}")


def _guide(ref: str, label: str) -> str:
    return f"revise:guide:{ref}:{label}"


def _keep(visit: Visit, subject: str, **payload: object) -> None:
    keep_working(visit.context.store, visit.actor, subject, payload, visit.context.now)


def _read(visit: Visit, subject: str) -> dict[str, object]:
    found = read_working(visit.context.store, visit.actor, subject)
    return dict(found.payload) if found else {}
