"""Pools of shots: assessed pairs that prompts may show as examples.

A pool is a cohort of pairs with the role ``shots`` and experts' ratings. One synthetic
pool ships with ranloop, in ``labels/shots.yaml``; its texts are of nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.safe_text import quoted
from loop.core.yaml_files import read_model
from loop.labels.cohort import (
    PAIR_INPUTS,
    Cohort,
    CohortRole,
    iter_items,
    read_cohort,
    read_cohort_file,
    read_record,
)
from loop.labels.error_categories import ErrorCategories, read_errors
from loop.labels.expert_ratings import OVERALL, ExpertRatings, read_ratings_of

SYNTHETIC: Final = "synthetic"
"""Name of the pool that ships; no cohort is looked for under it."""

SHOTS: Final = "shots.yaml"
_WEIGHTS: Final = ("significant", "insignificant")


class MarkedCounts(NamedTuple):
    """How many errors somebody found in a candidate, by category."""

    significant: Mapping[str, int]
    """Every category of the file, with 0 where there is none."""

    insignificant: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPair:
    """One pair of a pool, as it was assessed."""

    id: str
    reference: str
    candidate: str
    reference_id: str
    """Pairs of one reference have the same; never empty."""

    patient: str = ""
    """Keyed pseudonym, as in a cohort; empty when unknown."""

    counts: MarkedCounts | None = None
    """Median over the raters, a half rounded up; None where nobody counted."""

    rating: float | None = None
    """Mean of the raters' points, from 0 to 1; None where nobody rated."""

    assessed: MarkedCounts | None = None
    """What one rater found: the first by name who looked; None without any."""

    assessed_rating: float | None = None
    """The same rater's points, from 0 to 1; None without any."""

    explanation: str = ""
    """The same rater's words; empty without any, or where they are not here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShotPool:
    """Pairs to choose examples from."""

    name: str
    digest: str
    """Of the cohort, or over all of the file."""

    pairs: tuple[PoolPair, ...]
    pseudonym_key: str = ""
    """Fingerprint of the key of the patients' pseudonyms; may be empty."""

    language: str = "en"

    @property
    def shipped(self) -> bool:
        """Whether it is the synthetic one that ships."""
        return self.name == SYNTHETIC


def read_pool(workspace: WorkspacePaths | None, name: str) -> ShotPool:
    """Return the pool `name`.

    Parameters
    ----------
    workspace
        Where its cohort is; not needed for the one that ships.

    Raises
    ------
    DataError
        There is no such pool, its role is another, it holds no pairs, or its texts or
        ratings are not here, or not as recorded.
    """
    if name == SYNTHETIC:
        return _read_shipped()
    if workspace is None:
        raise DataError(
            f"the pool {quoted(name)} is a cohort, and there is no workspace here. Run "
            f"this in the workspace that has it, or take the pool {SYNTHETIC}."
        )
    role = read_cohort_file(workspace, name).role
    if role is not CohortRole.SHOTS:
        sealed = role is CohortRole.HOLDOUT
        why = "its pairs stay unseen" if sealed else "its pairs are measured on"
        raise DataError(
            f"cohort {name} has the role {role}: {why}, so they cannot be examples. "
            "Import other pairs with --role shots, for example one --part of the "
            "source, and name that cohort."
        )
    cohort = read_cohort(workspace, name)
    if not cohort.holds_pairs:
        raise DataError(
            f"cohort {name} holds single reports; examples are pairs of a reference "
            "and a candidate. Name a pool of pairs."
        )
    return ShotPool(
        name=name,
        digest=cohort.digest,
        pairs=_read_pairs(workspace, cohort),
        pseudonym_key=cohort.pseudonym_key,
        language=cohort.language,
    )


def _read_pairs(workspace: WorkspacePaths, cohort: Cohort) -> tuple[PoolPair, ...]:
    """Return the pairs of a cohort with what its newest ratings say of them."""
    said = _no_assessments(len(cohort.cases))
    if read_record(workspace, cohort.name).ratings:
        experts = read_ratings_of(workspace, cohort.name, findings=True)
        said = _assess(experts, read_errors(workspace.labels))
    reference, candidate = PAIR_INPUTS
    return tuple(
        PoolPair(
            id=case.case_id,
            reference=item.variables[reference],
            candidate=item.variables[candidate],
            reference_id=case.reference_id or case.case_id,
            patient=case.patient,
            counts=one.counts,
            rating=one.rating,
            assessed=one.assessed,
            assessed_rating=one.assessed_rating,
            explanation=one.explanation,
        )
        for case, item, one in zip(
            cohort.cases, iter_items(workspace, cohort), said, strict=True
        )
    )


class _Assessment(NamedTuple):
    counts: MarkedCounts | None = None
    rating: float | None = None
    assessed: MarkedCounts | None = None
    assessed_rating: float | None = None
    explanation: str = ""


def _no_assessments(number: int) -> list[_Assessment]:
    return [_Assessment()] * number


def _assess(experts: ExpertRatings, categories: ErrorCategories) -> list[_Assessment]:
    """Return what experts say of each pair, in the order of the cohort."""
    found = _no_assessments(len(experts.case_ids))
    by_rater: dict[str, NDArray[np.float64]] = {}
    if OVERALL in experts.dimensions:
        points = experts.points()
        low, high = points.scale
        if isfinite(high):
            shares = (points.points - low) / (high - low)
            by_rater = dict(zip(points.raters, shares.T, strict=True))
            for place, row in enumerate(shares):
                given = row[~np.isnan(row)]
                if given.size:
                    mean = round(float(given.mean()), 6)
                    found[place] = found[place]._replace(rating=mean)
    if not experts.given.errors:
        return found
    counted = experts.counts(categories)
    words = _words(experts)
    for place, case in enumerate(experts.case_ids):
        cells = counted.counts[place]
        looked = [n for n in range(len(cells)) if not np.isnan(cells[n]).all()]
        if looked:
            first = looked[0]
            rater = counted.raters[first]
            own = by_rater[rater][place] if rater in by_rater else np.nan
            median = np.floor(np.median(cells[looked], axis=0) + 0.5)
            found[place] = found[place]._replace(
                counts=_counts(median, counted.categories, counted.significances),
                assessed=_counts(
                    cells[first], counted.categories, counted.significances
                ),
                assessed_rating=None if np.isnan(own) else round(float(own), 6),
                explanation=words.get((case, rater), ""),
            )
    return found


def _counts(
    cells: NDArray[np.float64], categories: Sequence[str], weights: Sequence[str]
) -> MarkedCounts:
    """Return counts of shape ``(n_categories, n_significances)`` by category."""
    tables = [
        dict(zip(categories, map(int, cells[:, weights.index(weight)]), strict=True))
        for weight in _WEIGHTS
    ]
    return MarkedCounts(*tables)


def _words(experts: ExpertRatings) -> dict[tuple[str, str], str]:
    """Return the words of each rater's marks by case and rater, one mark a line."""
    lines: dict[tuple[str, str], list[str]] = {}
    for one in experts.given.errors:
        if one.category and one.finding:
            said = f"{one.category}, {one.significance}: {one.finding}"
            lines.setdefault((one.case_id, one.rater), []).append(said)
    return {key: "\n".join(said) for key, said in lines.items()}


_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _PairEntry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    reference: _Text
    candidate: _Text
    significant: dict[str, Annotated[int, Field(ge=1)]] = {}
    insignificant: dict[str, Annotated[int, Field(ge=1)]] = {}
    score: Annotated[float, Field(ge=0, le=1)]
    explanation: _Text


class _PoolFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: int
    source: _Text
    language: str
    pairs: Annotated[list[_PairEntry], Field(min_length=1)]


def _read_shipped() -> ShotPool:
    """Return the synthetic pool; its author is its one rater."""
    path = bundled() / "labels" / SHOTS
    file = read_model(path, _PoolFile)
    categories = read_errors(bundled() / "labels").ids
    ids = [one.id for one in file.pairs]
    if len(set(ids)) < len(ids):
        raise DataError(f"{path}: a pair is listed twice. Give each its own id.")
    pairs = []
    for one in file.pairs:
        unknown = {*one.significant, *one.insignificant} - {*categories}
        if unknown:
            raise DataError(
                f"{path}, {one.id}: errors.yaml has no category "
                f"{', '.join(sorted(unknown))}. Correct it."
            )
        counts = MarkedCounts(
            *(
                {name: table.get(name, 0) for name in categories}
                for table in (one.significant, one.insignificant)
            )
        )
        pairs.append(
            PoolPair(
                id=one.id,
                reference=one.reference,
                candidate=one.candidate,
                reference_id=one.id,
                counts=counts,
                rating=one.score,
                assessed=counts,
                assessed_rating=one.score,
                explanation=one.explanation,
            )
        )
    return ShotPool(
        name=SYNTHETIC,
        digest=digest_json(file.model_dump(mode="json")),
        pairs=tuple(pairs),
        language=file.language,
    )
