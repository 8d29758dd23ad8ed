"""What a check rests on, and what of it has changed since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.evaluate.protocol import protocol_digest
from loop.labels.cohort import read_cohort
from loop.labels.reference import read_reference
from loop.prompts.catalog import find_parent, latest_version, read_version
from loop.prompts.version import PromptVersion
from loop.review.revise.commit import find_commit, overtaken
from loop.review.submit import Anchor, read_anchors
from loop.run.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInputs:
    """Everything that decides the outcome of a check, besides the engine."""

    draft_digest: str
    parent_digest: str
    cohort: str
    cohort_digest: str
    reference: int
    """Number of the reference version scored against."""

    reference_digest: str
    protocol_digest: str
    verdicts: tuple[str, ...]
    """Ids of the verdicts whose cases are targeted."""

    anchors_digest: str
    """Over the pinned cases of the cohort."""


def read_ground(
    workspace: Workspace, store: Store, draft: PromptVersion, cohort: str
) -> CheckInputs:
    """Return what a check of `draft` on `cohort` would rest on now.

    Raises
    ------
    DataError
        The cohort, its reference or the protocol cannot be used.
    StoreError
        The store cannot be read.
    """
    reference = read_reference(workspace, cohort)
    return CheckInputs(
        draft_digest=draft.digest,
        parent_digest=draft.parent or "",
        cohort=cohort,
        cohort_digest=read_cohort(workspace, cohort).digest,
        reference=reference.number,
        reference_digest=reference.digest,
        protocol_digest=protocol_digest(workspace),
        verdicts=draft.verdicts,
        anchors_digest=digest_anchors(read_anchors(store, cohort)),
    )


def digest_anchors(anchors: tuple[Anchor, ...]) -> str:
    """Sha256 over pinned cases, whatever their order."""
    return digest_json(sorted((a.case_id, a.label, a.value or "") for a in anchors))


def name_changes(then: CheckInputs, now: CheckInputs) -> Iterator[str]:
    """Yield what has changed since a check, in words; nothing while it holds."""
    if then.draft_digest != now.draft_digest:
        yield "the draft was edited since"
    if then.parent_digest != now.parent_digest:
        yield "the draft has another parent now"
    if then.cohort_digest != now.cohort_digest:
        yield f"cohort {now.cohort} holds other cases now"
    if then.reference_digest != now.reference_digest:
        yield (
            f"it was scored against {then.cohort}:ref{then.reference}, and "
            f"{now.cohort}:ref{now.reference} is the newest reference"
        )
    if then.protocol_digest != now.protocol_digest:
        yield "the protocol was changed since"
    if then.verdicts != now.verdicts:
        yield "the draft names other verdicts now"
    if then.anchors_digest != now.anchors_digest:
        yield "other cases are pinned now"


class DraftLineage(NamedTuple):
    """A draft and the versions around it."""

    draft: PromptVersion
    parent: PromptVersion
    """The version it was made from."""

    newest: PromptVersion
    """The newest committed version; the parent unless someone was faster."""

    @property
    def behind(self) -> bool:
        """Whether another version was committed since the draft was made."""
        return self.parent.digest != self.newest.digest


def read_line(workspace: Workspace, ref: str) -> DraftLineage:
    """Return the draft that `ref` names, its parent and the newest version.

    A version that a killed commit made of this very draft does not count as newer.

    Raises
    ------
    DataError
        `ref` names no draft, or its parent is not among the versions.
    """
    draft = read_version(workspace, ref)
    if not draft.draft:
        raise DataError(
            f"{draft.ref} is a committed version and stays as it is. Begin a draft of "
            f"it with `ranloop draft begin {draft.name}`."
        )
    parent = find_parent(workspace, draft)
    if parent is None:
        raise DataError(
            f"{draft.ref} was made from a version ({(draft.parent or 'none')[:12]}) "
            f"that {draft.name} does not have. Restore it from version control, or "
            f"discard the draft with `ranloop draft discard {draft.ref}`."
        )
    if find_commit(workspace, draft) is not None:
        return DraftLineage(draft, parent, parent)
    return DraftLineage(draft, parent, latest_version(workspace, draft.name))


def require_current(line: DraftLineage) -> None:
    """Refuse a draft whose parent is not the newest version any more.

    Raises
    ------
    ConflictError
        Another version was committed meanwhile; says whose, and what to do.
    """
    if line.behind:
        raise overtaken(line.draft, line.newest)
