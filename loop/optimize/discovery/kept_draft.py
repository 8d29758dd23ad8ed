"""The taxonomy draft of a cohort that people decide on together, on the page Discover.

``.ranloop/discovery/<cohort>.yaml`` is a draft as `ranloop discover --draft` writes it.
Every decision writes the whole file, with who decided and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import digest_json
from loop.core.errors import ConflictError, DataError
from loop.core.files import locked, read_text, write_atomic
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.labels.cohort import check_name, read_cohort
from loop.labels.label_list import GROUP, derive_id
from loop.labels.taxonomy import (
    NO_FINDING,
    SHORTEST,
    Taxonomy,
    fold_name,
    read_taxonomy,
    taxonomy_digest,
)
from loop.optimize.discovery.discover import Discovery, name_cluster
from loop.optimize.discovery.taxonomy_change import (
    TaxonomyChange,
    take_taxonomy_draft,
)
from loop.optimize.discovery.taxonomy_draft import (
    ClusterDecision,
    ClusterFound,
    DraftCluster,
    DraftLabel,
    PhraseCounts,
    TaxonomyDraft,
    digest_phrases,
    dump_taxonomy_draft,
    make_taxonomy_draft,
    read_taxonomy_draft,
)

_OPEN: Final = ClusterDecision.UNDECIDED

KEY: Final = 16
"""Digits of a digest that tell one cluster from another."""

Counts = TypeVar("Counts", bound=BaseModel)

ClusterEdit = Callable[[TaxonomyDraft, Taxonomy], TaxonomyDraft]
"""What a decision makes of a draft, with the labels there are."""


class KeptDraft(NamedTuple):
    """The draft of a cohort as it is kept."""

    draft: TaxonomyDraft
    digest: str
    """Sha256 of its text."""


def kept_draft_path(workspace: WorkspacePaths, cohort: str) -> Path:
    """Return where the draft of a cohort is kept, whether there is one or not."""
    return workspace.private / "discovery" / f"{check_name(cohort)}.yaml"


def read_kept_draft(workspace: WorkspacePaths, cohort: str) -> KeptDraft | None:
    """Return the draft that is kept of a cohort; None where nothing was discovered.

    Raises
    ------
    DataError
        The file does not have the expected form.
    """
    path = kept_draft_path(workspace, cohort)
    return KeptDraft(*read_taxonomy_draft(path)) if path.is_file() else None


class CarriedDecisions(NamedTuple):
    """What became of the decisions of the draft that was there before."""

    kept: int
    """Clusters that are decided as they were."""

    lost: int
    """Decided clusters that are not there any more."""

    reset: int
    """Clusters that are there and undecided, since their label no longer exists."""


def keep_discovery(workspace: WorkspacePaths, found: Discovery) -> CarriedDecisions:
    """Keep what was discovered of a cohort as its draft, with decisions made before.

    Where the same phrases were found with the same cut, every cluster stays as it was
    put together. Otherwise the clusters are those that were found, and a cluster of the
    same phrases stays decided. A new label that is in the taxonomy by now is one that
    its clusters are mapped to. A file in which anything was decided stays in the folder
    ``before``, under a name with its digest.

    Raises
    ------
    DataError
        The draft that was kept before does not have the expected form.
    WriteError
        The workspace cannot be written.
    """
    path = kept_draft_path(workspace, found.cohort)
    made = make_taxonomy_draft(workspace, found)
    carried = CarriedDecisions(0, 0, 0)
    workspace.open_private()
    with locked(path.with_suffix(".lock")):
        before = read_kept_draft(workspace, found.cohort)
        if before is not None:
            made, carried = _carry_over(before.draft, made, found.taxonomy)
            if any(
                one.by or one.decision is not _OPEN for one in before.draft.clusters
            ):
                old = path.parent / "before" / f"{path.stem}-{before.digest[:12]}.yaml"
                write_atomic(old, read_text(path), mode=0o600)
        write_atomic(path, dump_taxonomy_draft(made), mode=0o600)
    return carried


def _carry_over(
    before: TaxonomyDraft, made: TaxonomyDraft, taxonomy: Taxonomy
) -> tuple[TaxonomyDraft, CarriedDecisions]:
    same = before.phrases_digest == made.phrases_digest
    if same and before.made_with.get("cut") == made.made_with["cut"]:
        found = {one.found["phrases_digest"]: one.found for one in made.clusters}
        clusters = [
            one.model_copy(
                update={"found": found.get(str(one.found.get("phrases_digest")), {})}
            )
            for one in before.clusters
        ]
    else:
        old = {cluster_key(one): one for one in before.clusters}
        clusters = [
            old.get(cluster_key(one), one).model_copy(update={"found": one.found})
            for one in made.clusters
        ]
    described = {fold_name(one.name) for one in before.labels}
    settled = [_settle(one, described, taxonomy) for one in clusters]
    was, there, kept = map(_count_decided, (before.clusters, clusters, settled))
    draft = made.model_copy(
        update={"clusters": tuple(settled), "labels": before.labels}
    )
    return _without_idle(draft), CarriedDecisions(kept, was - there, there - kept)


def _count_decided(clusters: Iterable[DraftCluster]) -> int:
    return sum(one.decision is not _OPEN for one in clusters)


def _settle(
    cluster: DraftCluster, described: set[str], taxonomy: Taxonomy
) -> DraftCluster:
    """Return a cluster as the taxonomy of now has it."""
    if cluster.decision is ClusterDecision.NEW and taxonomy.knows(cluster.label):
        name = taxonomy.find(cluster.label).name
        return cluster.model_copy(
            update={"decision": ClusterDecision.MAP, "label": name}
        )
    fits = {
        ClusterDecision.NEW: fold_name(cluster.label) in described,
        ClusterDecision.MAP: taxonomy.knows(cluster.label),
    }
    return cluster if fits.get(cluster.decision, True) else _undecided(cluster)


def find_stale(workspace: WorkspacePaths, draft: TaxonomyDraft) -> str:
    """Return why nothing can be decided on a draft any more; empty where it can.

    Raises
    ------
    DataError
        There is no taxonomy or no such cohort, or it was edited.
    """
    if taxonomy_digest(workspace.labels) != draft.taxonomy_digest:
        return "labels/taxonomy.yaml changed after these clusters were compared with it"
    if read_cohort(workspace, draft.cohort).digest != draft.cohort_digest:
        return f"cohort {draft.cohort!r} was imported again after it was discovered"
    return ""


def edit_kept_draft(
    workspace: WorkspacePaths,
    cohort: str,
    key: str,
    edit: ClusterEdit,
    actor: Actor,
    *,
    seen: str = "",
    now: Clock = utc_now,
) -> TaxonomyDraft:
    """Change one cluster of the draft that is kept of a cohort, and return the draft.

    Parameters
    ----------
    key
        Of the cluster, see `cluster_key`.
    edit
        What is decided; one of the functions below makes it.
    seen
        What the cluster was when it was shown, see `cluster_mark`; empty to decide
        whatever it is now.

    Raises
    ------
    ConflictError
        Somebody decided on the cluster or put it together otherwise meanwhile, or the
        taxonomy or the cohort was changed since the clusters were discovered.
    DataError
        Nothing was discovered, or the decision cannot be made; nothing was changed.
    WriteError
        The workspace cannot be written.
    """
    path = kept_draft_path(workspace, cohort)
    workspace.open_private()
    with locked(path.with_suffix(".lock")):
        kept = read_kept_draft(workspace, cohort)
        if kept is None:
            raise DataError(
                f"nothing was discovered in cohort {cohort!r} yet. Discover first."
            )
        before = kept.draft
        taxonomy = read_taxonomy(workspace.labels)
        if stale := find_stale(workspace, before):
            raise ConflictError(f"{stale}. Discover again: what was decided stays.")
        cluster = next((o for o in before.clusters if cluster_key(o) == key), None)
        if cluster is None:
            raise ConflictError(
                "somebody split or merged this cluster meanwhile. Look at the list "
                "again, and decide then."
            )
        if seen and cluster_mark(before, cluster) != seen:
            raise ConflictError(
                "somebody decided on this cluster meanwhile. Look at it again, and "
                "decide then."
            )
        after = _without_idle(edit(before, taxonomy))
        known = {_mark(one) for one in before.clusters}
        stamp = {"by": actor.name, "time": format_time(now())}
        after = after.model_copy(
            update={
                "clusters": tuple(
                    one if _mark(one) in known else one.model_copy(update=stamp)
                    for one in after.clusters
                )
            }
        )
        write_atomic(path, dump_taxonomy_draft(after), mode=0o600)
    return after


def take_kept_draft(
    workspace: WorkspacePaths,
    cohort: str,
    seen: str,
    actor: Actor,
    *,
    why: str,
    now: Clock = utc_now,
) -> TaxonomyChange:
    """Take the draft that is kept of a cohort, as `take_taxonomy_draft` does.

    Parameters
    ----------
    seen
        Sha256 of the draft that whoever takes it has looked at.

    Raises
    ------
    ConflictError
        Somebody decided something since; nothing was taken.
    DataError, LedgerError, WriteError
        As `take_taxonomy_draft`.
    """
    path = kept_draft_path(workspace, cohort)
    workspace.open_private()
    with locked(path.with_suffix(".lock")):
        kept = read_kept_draft(workspace, cohort)
        if kept is None or kept.digest != seen:
            raise ConflictError(
                "somebody decided something since the changes were shown here. Look "
                "at them again, and take them then."
            )
        return take_taxonomy_draft(workspace, path, actor, why=why, now=now)


def cluster_key(cluster: DraftCluster) -> str:
    """Return what tells a cluster from the others: its phrases, in any order."""
    return digest_phrases(cluster.phrases)[:KEY]


def cluster_mark(draft: TaxonomyDraft, cluster: DraftCluster) -> str:
    """Return what tells whether a cluster is as it was: its decision, and its label."""
    label = described_label(draft, cluster.label)
    described = label.model_dump() if label else None
    return digest_json([*_mark(cluster), described])[:KEY]


def cluster_name(draft: TaxonomyDraft, cluster: DraftCluster) -> str:
    """Return what a cluster is called, as it is put together now."""
    counts = [count_phrase(draft, one) for one in cluster.phrases]
    asserted = [one.asserted if one else 0 for one in counts]
    return name_cluster(list(zip(cluster.phrases, asserted, strict=True)))


def described_label(draft: TaxonomyDraft, name: str) -> DraftLabel | None:
    """Return the new label of a draft that has this name, in whatever case."""
    wanted = fold_name(name)
    return next((one for one in draft.labels if fold_name(one.name) == wanted), None)


def count_phrase(draft: TaxonomyDraft, phrase: str) -> PhraseCounts | None:
    """Return what reports say of a phrase; None where the file does not tell."""
    return _read(draft.counted.get(phrase), PhraseCounts)


def read_found(cluster: DraftCluster) -> ClusterFound | None:
    """Return what was found of a cluster; None where the file does not tell.

    It holds for the cluster as it was discovered, see `is_whole`.
    """
    return _read(cluster.found, ClusterFound)


def is_whole(cluster: DraftCluster) -> bool:
    """Return whether a cluster has just the phrases it was discovered with."""
    return cluster.found.get("phrases_digest") == digest_phrases(cluster.phrases)


def _read(data: object, model: type[Counts]) -> Counts | None:
    """Return what may be edited by hand, and is not needed to take a draft."""
    try:
        return model.model_validate(data)
    except ValidationError:
        return None


def leave_cluster(key: str) -> ClusterEdit:
    """Return the decision to decide nothing, in place of what was decided."""
    return lambda draft, taxonomy: _put(draft, key, _undecided)


def drop_cluster(key: str) -> ClusterEdit:
    """Return the decision that a cluster is no finding, or shall be no label."""
    return lambda draft, taxonomy: _decide(draft, key, ClusterDecision.DROP)


def map_cluster(key: str, label: str) -> ClusterEdit:
    """Return the decision that a cluster belongs to a label of the taxonomy.

    Parameters
    ----------
    label
        Its name, id or alias. What names no label is refused with the closest one.
    """

    def edit(draft: TaxonomyDraft, taxonomy: Taxonomy) -> TaxonomyDraft:
        found = taxonomy.find(_required(label, "name the label it belongs to."))
        if found.id == NO_FINDING:
            raise DataError(
                f"nothing can be mapped to {found.name}, which follows from the other "
                "labels. Name another label, or drop the cluster."
            )
        return _decide(draft, key, ClusterDecision.MAP, found.name)

    return edit


def rename_cluster(
    key: str, name: str, definition: str, group: str = ""
) -> ClusterEdit:
    """Return the decision that a cluster becomes a new label, or a part of it.

    Where the draft already has a label of that name, it gets the new description; the
    case of its letters changes only with a cluster that is part of it already.

    Parameters
    ----------
    definition
        20 characters or more; empty to leave that of a label that the draft has.
    group
        Where the label belongs; empty for the usual one.
    """

    def edit(draft: TaxonomyDraft, taxonomy: Taxonomy) -> TaxonomyDraft:
        wanted = _required(name, "give the new label a name.")
        if taxonomy.knows(wanted):
            raise DataError(
                f"{quoted(wanted)} is a label already. Map the cluster to it, or "
                "choose another name."
            )
        old = described_label(draft, wanted)
        part = {cluster_key(o) for o in draft.clusters if _is_named(o, wanted)}
        if old and key not in part:
            wanted = old.name
        said = " ".join(definition.split()) or (old.definition if old else "")
        if len(said) < SHORTEST:
            raise DataError(
                f"the definition has fewer than {SHORTEST} characters. Say in a "
                "sentence what the label means."
            )
        made = DraftLabel(
            name=wanted,
            definition=said,
            group=" ".join(group.split()) or (old.group if old else GROUP),
            id=old.id if old else "",
        )
        others = [one for one in draft.labels if one is not old]
        _require_id(made, others, taxonomy)
        labels = tuple(made if one is old else one for one in draft.labels)
        renamed = {"label": made.name}
        clusters = tuple(
            one.model_copy(update=renamed) if _is_named(one, wanted) else one
            for one in draft.clusters
        )
        draft = draft.model_copy(
            update={
                "clusters": clusters,
                "labels": labels if old else (*draft.labels, made),
            }
        )
        return _decide(draft, key, ClusterDecision.NEW, made.name)

    return edit


def merge_cluster(key: str, other: str) -> ClusterEdit:
    """Return the decision that a cluster is one with another.

    Where the other is decided, this one gets its decision. Where it is undecided, the
    phrases are moved there, and a decision of this one with them.

    Parameters
    ----------
    other
        A phrase of the other cluster, or the name of a new label of the draft.
    """

    def edit(draft: TaxonomyDraft, taxonomy: Taxonomy) -> TaxonomyDraft:
        wanted = _required(other, "name the cluster to merge it with.")
        label = described_label(draft, wanted)
        if label is not None:
            return _decide(draft, key, ClusterDecision.NEW, label.name)
        said = " ".join(wanted.casefold().split())
        into = next(
            (one for one in draft.clusters if said in map(str.casefold, one.phrases)),
            None,
        )
        if into is None:
            raise DataError(
                "no cluster has that phrase and no new label has that name. Choose one "
                "from the list."
            )
        if cluster_key(into) == key:
            raise DataError("that is the cluster itself. Choose another one.")
        if into.decision is not _OPEN:
            return _decide(draft, key, into.decision, into.label)
        moved = next(one for one in draft.clusters if cluster_key(one) == key)
        joined = into.model_copy(
            update={
                "phrases": (*into.phrases, *moved.phrases),
                "decision": moved.decision,
                "label": moved.label,
            }
        )
        clusters = (
            joined if o is into else o for o in draft.clusters if o is not moved
        )
        return draft.model_copy(update={"clusters": tuple(clusters)})

    return edit


def split_cluster(key: str, phrases: Sequence[str]) -> ClusterEdit:
    """Return the decision that some phrases become a separate cluster, undecided."""

    def edit(draft: TaxonomyDraft, taxonomy: Taxonomy) -> TaxonomyDraft:
        clusters: list[DraftCluster] = []
        for one in draft.clusters:
            if cluster_key(one) != key:
                clusters.append(one)
                continue
            own = tuple(p for p in one.phrases if p in phrases)
            rest = tuple(p for p in one.phrases if p not in phrases)
            if not own or not rest:
                raise DataError("tick the phrases to split off: at least one, not all.")
            clusters.append(one.model_copy(update={"phrases": rest}))
            part = DraftCluster(phrases=own, found=dict(one.found))
            clusters.append(part)
        return draft.model_copy(update={"clusters": tuple(clusters)})

    return edit


def _required(text: str, otherwise: str) -> str:
    said = " ".join(text.split())
    if not said:
        raise DataError(otherwise)
    return said


def _require_id(
    label: DraftLabel, others: Sequence[DraftLabel], taxonomy: Taxonomy
) -> None:
    made = label.id or derive_id(label.name)
    if not made:
        raise DataError(
            "no id can be made of that name. Give a name with Latin letters or digits."
        )
    if made in (*taxonomy.ids, *(one.id or derive_id(one.name) for one in others)):
        raise DataError(f"a label has the id {made!r} already. Choose another name.")


def _decide(
    draft: TaxonomyDraft, key: str, decision: ClusterDecision, label: str = ""
) -> TaxonomyDraft:
    made = {"decision": decision, "label": label}
    return _put(draft, key, lambda one: one.model_copy(update=made))


def _is_named(cluster: DraftCluster, name: str) -> bool:
    return fold_name(cluster.label) == fold_name(name)


def _undecided(cluster: DraftCluster) -> DraftCluster:
    made = {"decision": _OPEN, "label": ""}
    return cluster.model_copy(update=made)


def _put(
    draft: TaxonomyDraft, key: str, change: Callable[[DraftCluster], DraftCluster]
) -> TaxonomyDraft:
    clusters = (
        change(one) if cluster_key(one) == key else one for one in draft.clusters
    )
    return draft.model_copy(update={"clusters": tuple(clusters)})


def _without_idle(draft: TaxonomyDraft) -> TaxonomyDraft:
    """Return a draft without descriptions of labels that no cluster is part of."""
    used = {
        fold_name(one.label)
        for one in draft.clusters
        if one.decision is ClusterDecision.NEW
    }
    labels = tuple(one for one in draft.labels if fold_name(one.name) in used)
    return draft.model_copy(update={"labels": labels})


def _mark(cluster: DraftCluster) -> tuple[str, str, tuple[str, ...]]:
    return cluster.decision.value, fold_name(cluster.label), cluster.phrases
