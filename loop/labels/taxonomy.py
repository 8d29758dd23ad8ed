"""The labels of a task: their names, their meaning, how "No Finding" is derived."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from loop.core.digests import digest_json, digest_text
from loop.core.errors import DataError, UnknownLabelError
from loop.core.files import read_text
from loop.core.records import Value
from loop.core.safe_text import quoted
from loop.core.yaml_files import parse_model

NO_FINDING = "no_finding"
SUPPORT_DEVICES = "support_devices"

CHEST, ANY_REGION = "chest", "any"


TAXONOMY = "taxonomy.yaml"

SHORTEST: Final = 20
"""Characters of a definition at least: fewer say nothing that the name does not."""


class NoFindingPolicy(StrEnum):
    """How "No Finding" follows from the other predictions."""

    RAN = "ran"
    """Present if and only if all other labels are absent, support devices included:
    any present or uncertain one makes it absent."""

    CHEXPERT = "chexpert"
    """As `RAN`, but support devices do not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One finding of the taxonomy."""

    id: str
    """snake_case, for example ``"pleural_effusion"``."""

    name: str
    """Name as published, for example ``"Pleural Effusion"``."""

    group: str
    """Where it belongs, for example ``"pleura"``."""

    definition: str
    """What the label means, one sentence or a few."""

    counts: tuple[str, ...] = ()
    """What counts, in a few words each."""

    does_not_count: tuple[str, ...] = ()
    """What looks like the finding and does not count, in a few words each."""

    uncertain_when: tuple[str, ...] = ()
    """What neither states the finding nor rules it out, in a few words each."""

    chexpert: str | None = None
    """The comparable CheXpert label, or None."""

    aliases: tuple[str, ...] = ()
    """Other published spellings, accepted when files are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxonomy:
    """All labels in published order, and the "No Finding" policy."""

    labels: tuple[Label, ...]
    no_finding_policy: NoFindingPolicy
    version: int
    digest: str
    """Sha256 over everything in the file."""

    reading: tuple[str, ...] = ()
    """How a report is read, whichever label is asked about: one rule each."""

    region: str = CHEST
    """What the reports are of: an import leaves out studies of other regions only
    where this is ``"chest"``."""

    _names: Mapping[str, Label] = field(init=False, repr=False, compare=False)
    _ids: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _deciders: Mapping[NoFindingPolicy, tuple[str, ...]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_names", _name_table(self.labels))
        object.__setattr__(self, "_ids", tuple(one.id for one in self.labels))
        others = tuple(name for name in self.ids if name != NO_FINDING)
        findings = tuple(name for name in others if name != SUPPORT_DEVICES)
        deciders = dict.fromkeys(NoFindingPolicy, others)
        deciders[NoFindingPolicy.CHEXPERT] = findings
        object.__setattr__(self, "_deciders", deciders)

    @property
    def ids(self) -> tuple[str, ...]:
        """Label ids in published order."""
        return self._ids

    @property
    def extracted(self) -> tuple[str, ...]:
        """Label ids that are asked of an engine: all but ``no_finding``."""
        return tuple(label.id for label in self.labels if label.id != NO_FINDING)

    @property
    def derives(self) -> bool:
        """Whether there is a label "No Finding", which follows from the others."""
        return NO_FINDING in self.ids

    @property
    def comparable(self) -> tuple[str, ...]:
        """Label ids with a CheXpert counterpart."""
        return tuple(label.id for label in self.labels if label.chexpert)

    def find(self, name: str) -> Label:
        """Return the label called `name`: id, published name or alias.

        Case, spaces, hyphens, underscores and brackets do not matter.

        Raises
        ------
        UnknownLabelError
            No label is called so; names the closest ones.
        """
        label = self._names.get(fold_name(name))
        if label is not None:
            return label
        near = self.suggest(name)
        hint = f"Did you mean {near!r}?" if near else f"Known: {', '.join(self.ids)}."
        raise UnknownLabelError(
            f"no label {quoted(name)} in the taxonomy. {hint} "
            "Correct the name, or remove it."
        )

    def knows(self, name: str) -> bool:
        """Whether `find` would return a label."""
        return fold_name(name) in self._names

    def suggest(self, name: str, *, cutoff: float = 0.75) -> str | None:
        """Return the published name closest to `name`, or None if none is near."""
        near = difflib.get_close_matches(
            fold_name(name)[:100], list(self._names), n=1, cutoff=cutoff
        )
        return self._names[near[0]].name if near else None

    def derive_no_finding(
        self, values: Mapping[str, Value], policy: NoFindingPolicy | None = None
    ) -> Value | None:
        """Return what the other labels' values say of "No Finding".

        Present if every label the policy looks at is absent, absent if any is present
        or uncertain; never uncertain itself.

        Parameters
        ----------
        values
            Label id to value; a value of ``no_finding`` itself is ignored.
        policy
            Default: the policy of the taxonomy.

        Returns
        -------
        Value | None
            None when a label the policy looks at has no value: nothing is derived
            from an incomplete answer. None too where the taxonomy has no label "No
            Finding".

        References
        ----------
        ``chexpert``: Irvin J et al. CheXpert. AAAI 2019;33:590-597.
        """
        if not self.derives:
            return None
        policy = NoFindingPolicy(policy or self.no_finding_policy)
        others = list(map(values.get, self._deciders[policy]))
        if None in others:
            return None
        clear = others.count(Value.ABSENT) == len(others)
        return Value.PRESENT if clear else Value.ABSENT

    def find_no_finding(self, values: Mapping[str, Value]) -> Value | None:
        """Return what an answer says of "No Finding": read, or else derived.

        Only an engine that knows the label is asked for it, such as CheXbert; see
        `loop.run.asking.labels_of`.
        """
        return values.get(NO_FINDING) or self.derive_no_finding(values)

    def contradict_no_finding(self, values: Mapping[str, Value]) -> tuple[str, ...]:
        """Return the labels that a "No Finding" said to be present leaves no room for.

        Those that the policy looks at and that are present or uncertain, in published
        order. Empty where "No Finding" is not said to be present. One that is absent
        while every other label is too is no contradiction: the report may show what no
        label names.

        Parameters
        ----------
        values
            Label id to value; labels may be missing.
        """
        if values.get(NO_FINDING) is not Value.PRESENT:
            return ()
        return tuple(
            name
            for name in self.deciding
            if values.get(name) in (Value.PRESENT, Value.UNCERTAIN)
        )

    @property
    def deciding(self) -> tuple[str, ...]:
        """Ids of the labels that decide "No Finding" under the taxonomy's policy."""
        return self._deciders[self.no_finding_policy]


def fold_name(name: str) -> str:
    """Return `name` with case, separators and brackets folded away.

    Examples
    --------
    >>> fold_name("Trachea & Bronchus") == fold_name("trachea_and-bronchus")
    True
    """
    plain = unicodedata.normalize("NFKC", name).casefold().replace("&", "and")
    return re.sub(r"[\W_]+", "", plain)


def taxonomy_digest(labels_folder: Path) -> str:
    """Return the sha256 of the text of ``taxonomy.yaml`` in a ``labels/`` folder.

    Raises
    ------
    DataError
        There is none, or it cannot be read.
    """
    return digest_text(read_text(labels_folder / "taxonomy.yaml"))


def read_taxonomy(labels_folder: Path) -> Taxonomy:
    """Return the taxonomy of a ``labels/`` folder.

    Raises
    ------
    DataError
        The file is missing, malformed, or gives two labels the same name.
    """
    path = labels_folder / TAXONOMY
    return parse_taxonomy(read_text(path), path)


def parse_taxonomy(text: str, path: Path | str) -> Taxonomy:
    """Return the taxonomy that the text of a ``taxonomy.yaml`` holds.

    Raises
    ------
    DataError
        It is malformed, or gives two labels the same name; names `path`.
    """
    model = parse_model(text, _TaxonomyFile, path)
    try:
        return model.taxonomy
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _name_table(labels: tuple[Label, ...]) -> dict[str, Label]:
    """Map every folded name to its label, refusing a name two labels share."""
    table: dict[str, Label] = {}
    seen: set[str] = set()
    for label in labels:
        if label.id in seen:
            raise DataError(f"label {label.id!r} appears twice. Remove one of the two.")
        seen.add(label.id)
        for name in (label.id, label.name, *label.aliases):
            other = table.setdefault(fold_name(name), label)
            if other is not label:
                raise DataError(
                    f"labels {other.id!r} and {label.id!r} are both called "
                    f"{quoted(name)}. Give one of them another name or alias."
                )
    return table


_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _LabelEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    name: Annotated[str, StringConstraints(min_length=1)]
    group: str = ""
    definition: Annotated[str, StringConstraints(min_length=SHORTEST)]
    counts: tuple[_Words, ...] = ()
    does_not_count: tuple[_Words, ...] = ()
    uncertain_when: tuple[_Words, ...] = ()
    chexpert: str | None = None
    aliases: tuple[str, ...] = ()


class _TaxonomyFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int
    no_finding_policy: NoFindingPolicy = NoFindingPolicy.RAN
    region: Literal["chest", "any"] = "chest"
    reading: tuple[_Words, ...] = ()
    labels: Annotated[tuple[_LabelEntry, ...], Field(min_length=1)]

    @cached_property
    def taxonomy(self) -> Taxonomy:
        return Taxonomy(
            labels=tuple(Label(**entry.model_dump()) for entry in self.labels),
            no_finding_policy=self.no_finding_policy,
            version=self.version,
            digest=digest_json(_identity(self)),
            reading=self.reading,
            region=self.region,
        )


def _identity(model: _TaxonomyFile) -> dict[str, Any]:
    """Return what the digest is made of: of the later lists, those that are there."""
    data = model.model_dump(mode="json")
    if not data["reading"]:
        del data["reading"]
    if data["region"] == CHEST:
        del data["region"]
    for label in data["labels"]:
        for name in ("counts", "does_not_count", "uncertain_when"):
            if not label[name]:
                del label[name]
    return data
