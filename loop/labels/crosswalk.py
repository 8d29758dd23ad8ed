"""The CheXpert observations and the labels they compare with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from loop.core.errors import DataError
from loop.core.records import Mark
from loop.core.yaml_files import read_model
from loop.labels.taxonomy import Taxonomy, fold_name


class Observation(BaseModel):
    """One CheXpert observation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    """Label id of the taxonomy."""

    names: tuple[str, ...]
    """Published spellings, the usual one first."""

    parent: str | None
    """Label id of the parent in CheXpert's hierarchy."""


class _ChexpertFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: int
    observations: tuple[Observation, ...]
    values: dict[str, Mark]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChexpertCrosswalk:
    """CheXpert's 14 observations, in its published order.

    References
    ----------
    Irvin J et al. CheXpert: a large chest radiograph dataset with uncertainty labels
    and expert comparison. AAAI 2019;33:590-597.
    """

    observations: tuple[Observation, ...]
    values: Mapping[str, Mark]
    """Cell of a CheXpert label file to mark; a blank is `Mark.MISSING`."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The comparable label ids."""
        return tuple(observation.id for observation in self.observations)

    def label(self, name: str) -> str | None:
        """Return the label id of a CheXpert name, or None when it has none."""
        wanted = fold_name(name)
        for observation in self.observations:
            if wanted in map(fold_name, observation.names):
                return observation.id
        return None

    def ancestors(self, label: str) -> tuple[str, ...]:
        """Return the parents of `label` in CheXpert's hierarchy, nearest first."""
        parents = {each.id: each.parent for each in self.observations}
        found: list[str] = []
        above = parents.get(label)
        while above is not None and above not in found:
            found.append(above)
            above = parents.get(above)
        return tuple(found)


def read_chexpert(labels_folder: Path, taxonomy: Taxonomy) -> ChexpertCrosswalk:
    """Return the CheXpert crosswalk of a ``labels/`` folder.

    Raises
    ------
    DataError
        The file is missing or malformed, or contradicts the taxonomy.
    """
    path = labels_folder / "crosswalks" / "chexpert.yaml"
    model = read_model(path, _ChexpertFile)
    here = {each.id: each.names[0] for each in model.observations}
    there = {label.id: label.chexpert for label in taxonomy.labels if label.chexpert}
    if here != there:
        differing = sorted(
            k for k in here.keys() | there.keys() if here.get(k) != there.get(k)
        )
        raise DataError(
            f"{path} and taxonomy.yaml disagree on {', '.join(differing)}. Give both "
            "the same CheXpert name, or null."
        )
    return ChexpertCrosswalk(observations=model.observations, values=model.values)
