"""A taxonomy draft: clusters as a file in which a clinician decides what they are.

The file has every phrase once. Whoever edits it says of each cluster whether it is
dropped, belongs to a label, or becomes a new one; clusters with the same label are
merged, and phrases moved to an entry of their own split one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from loop.core.digests import digest_json, digest_text
from loop.core.errors import DataError
from loop.core.files import read_text
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.core.yaml_files import check_model, dump_yaml, parse_yaml
from loop.labels.label_list import GROUP
from loop.labels.taxonomy import SHORTEST, taxonomy_digest
from loop.optimize.discovery.discover import Discovery
from loop.optimize.discovery.documents import EXAMPLES, FOUND, discovery_notes

LARGEST: Final = 5_000_000
"""Characters of a draft at most."""

_HOW: Final = """\
# A draft of labels, made by `ranloop discover`. Of each cluster say in `decision`:
#   undecided   nothing is done with it
#   drop        it is no finding, or none that shall be a label
#   map         it belongs to the label of the taxonomy named in `label`
#   new         it becomes the new label named in `label`, or a part of it
# Merge clusters by giving them the same `label`. Split one by moving phrases to an
# entry of their own. Every phrase stays somewhere, once. Under `labels` describe each
# new label: name and definition, and if you like id and group. `--take` ignores `found`
# and `counted`. Check the file with `ranloop discover --take FILE --dry-run`, and take
# it without --dry-run.
"""

_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class ClusterDecision(StrEnum):
    """What becomes of a cluster."""

    UNDECIDED = "undecided"
    DROP = "drop"
    MAP = "map"
    NEW = "new"


class DraftCluster(BaseModel):
    """One cluster of a draft, and what a person decided of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    decision: ClusterDecision = ClusterDecision.UNDECIDED
    label: str = ""
    by: str = ""
    """Who decided it on the page Discover; empty for what was decided in a file."""

    time: str = ""
    """When they did, UTC, ISO 8601."""

    phrases: Annotated[tuple[_Words, ...], Field(min_length=1)]
    found: Mapping[str, Any] = {}
    """What was found of the cluster as it was discovered, see `ClusterFound`."""


class PhraseCounts(BaseModel):
    """What reports say of one phrase, and which labels have a wording for it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    asserted: int = Field(ge=0)
    """Cases."""

    hedged: int = Field(ge=0)
    denied: int = Field(ge=0)
    labels: tuple[str, ...] = ()
    """Ids of the labels that it makes present."""

    uncertain: tuple[str, ...] = ()
    """Ids of the labels that it leaves uncertain."""


class ClusterFound(BaseModel):
    """What was found of a cluster as it was discovered; the form of ``found``."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    phrases_digest: str = ""
    """Of the phrases that were in it."""

    asserted: int = Field(ge=0)
    """Cases."""

    hedged: int = Field(ge=0)
    denied: int = Field(ge=0)
    where: Mapping[str, int]
    near: str = ""
    """Name of the cluster that is most like it."""

    labels_found: Mapping[str, int]
    no_label_found: int = Field(ge=0)
    examples: tuple[str, ...]
    """Ids of cases."""


class DraftLabel(BaseModel):
    """A new label of a draft."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: _Words
    definition: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=SHORTEST)
    ]
    group: _Words = GROUP
    id: Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9_]*)?$")] = ""


class TaxonomyDraft(BaseModel):
    """The file; its head says how it is edited."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cohort: str
    cohort_digest: str
    taxonomy_digest: str
    prompt: str
    prompt_digest: str
    made_with: Mapping[str, Any]
    cases: int = 0
    """Cases that were read; 0 in a draft of before this was kept."""

    notes: tuple[str, ...] = ()
    """What a reader must know of the numbers."""

    phrases: int
    phrases_digest: str
    labels: tuple[DraftLabel, ...] = ()
    clusters: tuple[DraftCluster, ...]
    counted: Mapping[str, Any] = {}
    """Each phrase with its `PhraseCounts`."""


def format_taxonomy_draft(workspace: WorkspacePaths, found: Discovery) -> str:
    """Return the draft of what was discovered as a file, with no cluster decided.

    It holds phrases, counts and ids, and no other text of a case.
    """
    return dump_taxonomy_draft(make_taxonomy_draft(workspace, found))


def make_taxonomy_draft(workspace: WorkspacePaths, found: Discovery) -> TaxonomyDraft:
    """Return the draft of what was discovered, with every cluster undecided."""
    names = {one.id: one.name for one in found.clusters}
    phrases = [phrase for one in found.clusters for phrase in one.phrases]
    return TaxonomyDraft(
        cohort=found.cohort,
        cohort_digest=found.cohort_digest,
        taxonomy_digest=taxonomy_digest(workspace.labels),
        prompt=found.prompt,
        prompt_digest=found.prompt_digest,
        made_with={
            "min_reports": found.min_reports,
            "longest": found.longest,
            "cut": found.cut,
            "words": found.words_digest,
            "cues": dict(found.cues),
        },
        cases=found.cases,
        notes=tuple(discovery_notes(found)),
        phrases=len(phrases),
        phrases_digest=digest_phrases(one.text for one in phrases),
        clusters=tuple(
            DraftCluster(
                phrases=tuple(phrase.text for phrase in one.phrases),
                found={
                    "phrases_digest": digest_phrases(p.text for p in one.phrases),
                    "asserted": len(one.asserted),
                    "hedged": one.hedged,
                    "denied": one.denied,
                    "where": dict(one.places),
                    "near": names.get(one.near, ""),
                    "labels_present": list(one.covered),
                    "labels_uncertain": list(one.unsettled),
                    "labels_found": dict(one.found[:FOUND]),
                    "no_label_found": one.unlabelled,
                    "examples": list(one.asserted[:EXAMPLES]),
                },
            )
            for one in found.clusters
        ),
        counted={
            one.text: {
                "asserted": one.asserted,
                "hedged": one.hedged,
                "denied": one.denied,
                **({"labels": list(one.labels)} if one.labels else {}),
                **({"uncertain": list(one.unsettled)} if one.unsettled else {}),
            }
            for one in phrases
        },
    )


def dump_taxonomy_draft(draft: TaxonomyDraft) -> str:
    """Return a draft as a file that `read_taxonomy_draft` reads."""
    data = draft.model_dump(mode="json")
    for cluster in data["clusters"]:
        for name in ("by", "time"):
            if not cluster[name]:
                del cluster[name]
    return _HOW + dump_yaml(data)


def read_taxonomy_draft(path: Path) -> tuple[TaxonomyDraft, str]:
    """Return a draft and the sha256 of its text.

    Raises
    ------
    DataError
        There is no such file, it does not have the expected form, or a phrase is not
        there exactly once.
    """
    text = read_text(path)
    return _parse_draft(text, path), digest_text(text)


@lru_cache(maxsize=4)
def _parse_draft(text: str, path: Path) -> TaxonomyDraft:
    """Return a draft; kept, since a page reads it again and again."""
    if len(text) > LARGEST:
        raise DataError(
            f"{path} has more than {LARGEST:,} characters, so it is no draft of "
            "`ranloop discover`. Name the file that --draft wrote."
        )
    draft = check_model(parse_yaml(text, path), TaxonomyDraft, path)
    phrases = [phrase for one in draft.clusters for phrase in one.phrases]
    twice = [phrase for phrase, count in Counter(phrases).items() if count > 1]
    if twice:
        raise DataError(
            f"{path}: the phrase {quoted(twice[0])} stands more than once. Keep every "
            "phrase in one cluster."
        )
    if digest_phrases(phrases) != draft.phrases_digest:
        raise DataError(
            f"{path}: has {len(phrases)} phrases, and not exactly the {draft.phrases} "
            "that were discovered. Put each one back as it was written: a phrase may "
            "move, and is dropped by `decision: drop`."
        )
    return draft


def digest_phrases(phrases: Iterable[str]) -> str:
    """Return the sha256 of a set of phrases, in whatever order they come."""
    return digest_json(sorted(phrases))
