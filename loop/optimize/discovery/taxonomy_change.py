"""A taxonomy draft as a change of the labels: checked, and taken with an entry.

Taking a draft adds labels and what counts to ``labels/taxonomy.yaml``. It never removes
or renames anything there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loop.core.check_findings import Finding, FindingSeverity, note, warning
from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_text
from loop.core.errors import DataError, LoopError, SealedError, WriteError
from loop.core.files import locked, read_text, write_atomic
from loop.core.git import commit_paths
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import PromptTask
from loop.core.safe_text import quoted
from loop.core.yaml_files import dump_yaml, parse_yaml
from loop.engines.rules.vocabulary import GAP
from loop.labels.cohort import find_record, list_cohorts, read_cohort
from loop.labels.label_list import derive_id
from loop.labels.reference import list_references, read_reference
from loop.labels.taxonomy import (
    NO_FINDING,
    TAXONOMY,
    Taxonomy,
    fold_name,
    parse_taxonomy,
)
from loop.optimize.discovery.discover import require_role
from loop.optimize.discovery.taxonomy_draft import (
    ClusterDecision,
    TaxonomyDraft,
    read_taxonomy_draft,
)
from loop.prompts.catalog import latest_version, list_prompts
from loop.prompts.lint import fold_phrase, lint_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.version import PromptVersion

MOST_COUNTS: Final = 12
"""Phrases of a draft that are listed under what counts, for one label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyChange:
    """What taking a draft would do."""

    draft: TaxonomyDraft
    draft_digest: str
    """Sha256 of the text of the draft."""

    text: str
    """Of ``taxonomy.yaml`` as it would be."""

    digest: str
    """Sha256 of that text."""

    added: Mapping[str, tuple[str, ...]]
    """Id of each new label to the phrases listed under what counts."""

    mapped: Mapping[str, tuple[str, ...]]
    """Id of each label that gets phrases to these; only those it did not list."""

    unlisted: Mapping[str, int]
    """Id of each of these labels to the phrases beyond `MOST_COUNTS`, if there are."""

    decisions: Mapping[ClusterDecision, int]
    """How many clusters have each decision."""

    comments_kept: bool
    """Whether the file keeps its comments and its layout."""

    findings: tuple[Finding, ...]
    """What would break or change: prompts, references, evaluations."""

    @property
    def changes(self) -> bool:
        """Whether anything would be another than it is."""
        return bool(self.added or self.mapped)

    @property
    def breaks(self) -> tuple[Finding, ...]:
        """The findings that somebody must act on."""
        return tuple(
            one for one in self.findings if one.severity is FindingSeverity.WARNING
        )


def check_taxonomy_draft(workspace: WorkspacePaths, path: Path) -> TaxonomyChange:
    """Return what taking a draft would do, and what would break; nothing is changed.

    Raises
    ------
    DataError
        The draft is malformed, contradicts itself, is of another taxonomy or cohort
        than those that are here, or of a cohort that labels may not be designed on.
    """
    draft, digest = read_taxonomy_draft(path)
    target = workspace.labels / TAXONOMY
    before = read_text(target)
    if digest_text(before) != draft.taxonomy_digest:
        taken = _find_taken(workspace, digest)
        raise DataError(
            f"{path}: this draft was taken already (ledger entry {taken})."
            if taken
            else f"{path}: {target} was changed since this draft was made. Make "
            "another draft with `ranloop discover`, and carry your decisions over."
        )
    about = read_cohort(workspace, draft.cohort)
    require_role(about)
    if about.digest != draft.cohort_digest:
        raise DataError(
            f"{path}: cohort {draft.cohort!r} was imported again since this draft was "
            "made. Make another one with `ranloop discover`."
        )
    taxonomy = parse_taxonomy(before, target)
    _check_decisions(draft, taxonomy, path)
    new = _new_labels(draft, taxonomy, path)
    extra = _mapped_counts(draft, taxonomy)
    added = [{**one, "counts": one["counts"][:MOST_COUNTS]} for one in new]
    mapped = {name: phrases[:MOST_COUNTS] for name, phrases in extra.items()}
    text, kept = _revise_text(before, added, mapped, target)
    after = parse_taxonomy(text, target)
    return TaxonomyChange(
        draft=draft,
        draft_digest=digest,
        text=text,
        digest=digest_text(text),
        added={entry["id"]: tuple(entry["counts"]) for entry in added},
        mapped=mapped,
        unlisted={
            name: len(phrases) - MOST_COUNTS
            for name, phrases in (
                *((o["id"], o["counts"]) for o in new),
                *extra.items(),
            )
            if len(phrases) > MOST_COUNTS
        },
        decisions=Counter(one.decision for one in draft.clusters),
        comments_kept=kept,
        findings=tuple(
            (
                *_check_prompts(workspace, taxonomy, after),
                *_check_references(workspace, [entry["id"] for entry in added]),
                *_check_evaluations(workspace, draft.taxonomy_digest),
            )
            if added or mapped
            else ()
        ),
    )


def take_taxonomy_draft(
    workspace: WorkspacePaths,
    path: Path,
    actor: Actor,
    *,
    why: str,
    now: Clock = utc_now,
) -> TaxonomyChange:
    """Write what a draft decides into ``labels/taxonomy.yaml``, and record it.

    The ledger gets an entry ``taxonomy_revised`` first: where the command was killed
    after it, giving it again writes the file and records nothing twice.

    Raises
    ------
    DataError
        As `check_taxonomy_draft`; or the draft decides nothing, or no reason is given.
    LedgerError
        The ledger is broken; nothing was changed.
    WriteError
        A file cannot be written. The same call goes on where it was.
    """
    if not why.strip():
        raise DataError(
            "a change of the labels needs a reason. Give one with --why REASON."
        )
    lock = workspace.open_private() / "locks" / "taxonomy.lock"
    with locked(lock):
        change = check_taxonomy_draft(workspace, path)
        if not change.changes:
            raise DataError(
                f"{path} changes no label: no cluster is new, and none that is mapped "
                "adds to what counts. Decide on some clusters, or leave it."
            )
        if not _find_taken(workspace, change.draft_digest):
            append_event(workspace.ledger, _event(change, why), actor, now=now)
        target = workspace.labels / TAXONOMY
        try:
            write_atomic(target, change.text)
        except WriteError as error:
            raise WriteError(
                f"{error.__cause__ or error}: {target} is as it was, and the ledger "
                f"has the entry that {path} was taken. Make room or set the "
                "permissions, and give the same command again: it goes on there."
            ) from error
        commit_paths(workspace.root, [target, workspace.ledger], why, actor.name)
    return change


def _event(change: TaxonomyChange, why: str) -> Event:
    draft = change.draft
    return Event(
        action="taxonomy_revised",
        subject=f"labels/{TAXONOMY}",
        reason=why.strip(),
        payload={
            "taxonomy_before": draft.taxonomy_digest,
            "taxonomy_digest": change.digest,
            "draft_sha256": change.draft_digest,
            "cohort": draft.cohort,
            "cohort_digest": draft.cohort_digest,
            "prompt": draft.prompt,
            "prompt_digest": draft.prompt_digest,
            "phrases_digest": draft.phrases_digest,
            "added": {name: len(counts) for name, counts in change.added.items()},
            "mapped": {name: len(counts) for name, counts in change.mapped.items()},
            "decisions": {
                one.value: change.decisions.get(one, 0) for one in ClusterDecision
            },
            "warnings": len(change.breaks),
        },
    )


def _find_taken(workspace: WorkspacePaths, draft_digest: str) -> int:
    """Return the number of the entry that took a draft; 0 for none."""
    return next(
        (
            entry.seq
            for entry in reversed(read_ledger(workspace.ledger))
            if entry.action == "taxonomy_revised"
            and entry.payload.get("draft_sha256") == draft_digest
        ),
        0,
    )


def _check_decisions(draft: TaxonomyDraft, taxonomy: Taxonomy, path: Path) -> None:
    """Refuse a cluster whose decision and label do not fit together."""
    named = {fold_name(one.name) for one in draft.labels}
    used: set[str] = set()
    for number, one in enumerate(draft.clusters, 1):
        where = f"{path}, cluster {number}"
        given = one.label.strip()
        if one.decision in (ClusterDecision.UNDECIDED, ClusterDecision.DROP):
            if given:
                raise DataError(
                    f"{where}: names a label and is {one.decision.value}. Write "
                    "`decision: map` or `decision: new`, or remove the label."
                )
            continue
        if not given:
            raise DataError(
                f"{where}: is {one.decision.value} and names no label. Name one."
            )
        if one.decision is ClusterDecision.MAP:
            if taxonomy.find(given).id == NO_FINDING:
                raise DataError(
                    f"{where}: nothing can be mapped to No Finding, which follows from "
                    "the other labels. Name another label, or drop it."
                )
        elif taxonomy.knows(given):
            raise DataError(
                f"{where}: {quoted(given)} is a label already. Write `decision: map`, "
                "or another name."
            )
        elif fold_name(given) not in named:
            raise DataError(
                f"{where}: the new label {quoted(given)} is not described. Write its "
                "name and definition under `labels`."
            )
        else:
            used.add(fold_name(given))
    idle = [one.name for one in draft.labels if fold_name(one.name) not in used]
    if idle:
        raise DataError(
            f"{path}: no cluster is part of the new label {quoted(idle[0])}. Name it "
            "in a cluster with `decision: new`, or remove it from `labels`."
        )


def _new_labels(
    draft: TaxonomyDraft, taxonomy: Taxonomy, path: Path
) -> list[dict[str, Any]]:
    """Return the entries of the new labels, each with every phrase that counts."""
    entries: list[dict[str, Any]] = []
    for one in draft.labels:
        made = one.id or derive_id(one.name)
        if not made:
            raise DataError(
                f"{path}: no id can be made of the name of a new label. Give it an "
                "`id` of lower-case letters, digits and _."
            )
        if made in (*taxonomy.ids, *(entry["id"] for entry in entries)):
            raise DataError(
                f"{path}: the id {made!r} of a new label is taken. Give it another one."
            )
        phrases = [
            phrase
            for cluster in draft.clusters
            if cluster.decision is ClusterDecision.NEW
            and fold_name(cluster.label) == fold_name(one.name)
            for phrase in cluster.phrases
        ]
        entries.append(
            {
                "id": made,
                "name": one.name,
                "group": one.group,
                "chexpert": None,
                "definition": " ".join(one.definition.split()),
                "counts": list(_shortest(phrases)),
            }
        )
    return entries


def _mapped_counts(
    draft: TaxonomyDraft, taxonomy: Taxonomy
) -> dict[str, tuple[str, ...]]:
    """Return every phrase that labels do not list yet, by label."""
    mapped: dict[str, list[str]] = {}
    for cluster in draft.clusters:
        if cluster.decision is ClusterDecision.MAP:
            label = taxonomy.find(cluster.label)
            mapped.setdefault(label.id, []).extend(cluster.phrases)
    found = {}
    for name, phrases in mapped.items():
        label = taxonomy.find(name)
        listed = [*label.counts, label.name, *label.aliases]
        said = {fold_phrase(one) for one in listed}
        new = [p for p in _shortest(phrases) if fold_phrase(p) not in said]
        if new:
            found[name] = tuple(new)
    return found


def _shortest(phrases: Sequence[str]) -> tuple[str, ...]:
    """Return the phrases for what counts: those that hold none of the others."""
    plain = [" ".join(one.replace(GAP, " ").split()) for one in phrases]
    words = {one: frozenset(one.split()) for one in plain}
    kept = [
        one for one in words if not any(words[other] < words[one] for other in words)
    ]
    return tuple(kept)


def _revise_text(
    before: str,
    added: Sequence[Mapping[str, Any]],
    mapped: Mapping[str, Sequence[str]],
    path: Path,
) -> tuple[str, bool]:
    """Return the text of the revised taxonomy, and whether it keeps its comments."""
    wanted: Any = parse_yaml(before, path)
    if not (added or mapped):
        return before, True
    wanted["version"] += 1
    for entry in wanted["labels"]:
        if entry["id"] in mapped:
            entry["counts"] = [*entry.get("counts", ()), *mapped[entry["id"]]]
    wanted["labels"] += [dict(entry) for entry in added]
    text = re.sub(
        r"^version:.*$", f"version: {wanted['version']}", before, count=1, flags=re.M
    )
    for name, phrases in mapped.items():
        text = _insert_counts(text, name, phrases)
    for entry in added:
        text = text.rstrip("\n") + "\n\n" + dump_yaml([dict(entry)])
    try:
        if parse_yaml(text, path) == wanted:
            return text, True
    except DataError:
        pass
    return dump_yaml(wanted), False


def _insert_counts(text: str, name: str, phrases: Sequence[str]) -> str:
    """Return `text` with lines added to what counts for a label, if it has a list."""
    entry = re.search(rf"^- id: {re.escape(name)}$(?:\n(?!- ).*)*", text, re.M)
    if entry is None:
        return text
    counts = re.search(r"^  counts:\n(?:  - .*\n|    .*\n)+", entry[0] + "\n", re.M)
    if counts is None:
        return text
    lines = "".join(
        f"  {line}\n" for one in phrases for line in dump_yaml([one]).splitlines()
    )
    place = entry.start() + counts.end()
    return text[:place] + lines + text[place:]


def _extractors(workspace: WorkspacePaths) -> Iterator[PromptVersion]:
    """Yield the newest version of every prompt that asks for labels."""
    for name in list_prompts(workspace):
        version = latest_version(workspace, name)
        if get_contract(version.contract).task is PromptTask.EXTRACT:
            yield version


def _check_prompts(
    workspace: WorkspacePaths, before: Taxonomy, after: Taxonomy
) -> Iterator[Finding]:
    """Yield what the newest version of each prompt no longer does or says."""
    for version in _extractors(workspace):
        asked = set(version.labels)
        new = [one for one in after.ids if one not in before.ids]
        if not asked & set(before.extracted):
            continue
        missing = [one for one in new if one not in asked]
        if missing:
            yield warning(
                "prompts",
                f"{version.ref} does not ask for {', '.join(missing)}"
                + (
                    ", and No Finding no longer follows from its answers"
                    if after.derives and set(before.extracted) <= asked
                    else ""
                ),
                where=version.ref,
                todo="Add a guide to each in a draft, and commit it.",
            )
        known = set(_lint(version, before))
        for said in _lint(version, after):
            if said not in known:
                yield warning(
                    "prompts",
                    f"{version.ref}, {said[0]}: {said[1]}",
                    where=version.ref,
                    todo="Add what counts to the guide in a draft, and commit it.",
                )


def _lint(version: PromptVersion, taxonomy: Taxonomy) -> list[tuple[str, str]]:
    found = lint_version(
        version,
        labels=taxonomy.extracted,
        meanings={one.id: one for one in taxonomy.labels},
        reading=taxonomy.reading,
    )
    return [(one.where, one.what) for one in found]


def _check_references(
    workspace: WorkspacePaths, new: Sequence[str]
) -> Iterator[Finding]:
    """Yield which references say nothing of new labels."""
    entries = read_ledger(workspace.ledger)
    for name in list_cohorts(workspace) if new else ():
        record = find_record(entries, name)
        recorded = record.references if record else {}
        if not (recorded or list_references(workspace, name)):
            continue
        try:
            reference = read_reference(workspace, name)
        except SealedError:
            yield note(
                "references",
                f"the newest reference of {name} is sealed, so whether it covers the "
                "new labels is unknown",
                where=name,
            )
            continue
        except LoopError as error:
            yield warning(
                "references",
                f"the newest reference of {name} cannot be read: {error}",
                where=name,
            )
            continue
        missing = [one for one in new if one not in reference.labels]
        if missing:
            yield warning(
                "references",
                f"{reference.ref} says nothing of {', '.join(missing)}: nothing can "
                f"be scored there on {name}",
                where=name,
                todo="Have the cases read for the new labels.",
            )


def _check_evaluations(workspace: WorkspacePaths, digest: str) -> Iterator[Finding]:
    """Yield how many evaluations rest on the labels as they are."""
    resting = sum(
        entry.action == "evaluated" and entry.payload.get("taxonomy_digest") == digest
        for entry in read_ledger(workspace.ledger)
    )
    if resting:
        yield warning(
            "evaluations",
            f"evaluations that rest on the taxonomy as it is: {resting}; `ranloop "
            "audit` will say that it was changed since",
            todo="Evaluate again what you claim.",
        )
