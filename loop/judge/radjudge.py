"""RadJudge: rankings of candidates that a metric should reproduce, test by test.

Each test has a reference, two candidates or more, and a ranking of them: which is
better, and which are worth the same. A metric passes a test where its scores reproduce
the whole ranking.

References
----------
RadJudge is published with CRIMSON: 10 categories of 3 tests.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
)

from loop.core.digests import RepeatedKeyError, unique_keys
from loop.core.errors import DataError
from loop.core.safe_text import quoted
from loop.core.yaml_files import field_name
from loop.judge.discrimination import PairScores
from loop.stats.intervals import Interval, clopper_pearson

TOLERANCE: Final = 0.05
"""Difference up to which the tolerant reading treats two scores as equal."""

MOST_BYTES: Final = 8 * 2**20
"""Largest file that is read: the published tests take some kilobytes."""

_PUBLISHED: Final = (10, 3)
"""Categories, and tests of each."""

_ROUNDING: Final = 1e-12
"""Up to which two scores are equal: the same fraction, computed in another order."""


class RankOrder(NamedTuple):
    """One thing that a ranking says of two candidates."""

    better: str
    other: str
    tied: bool = False
    """Whether the two are worth the same, and none is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingTest:
    """One test: a reference, candidates, and how they rank."""

    id: str
    category: str
    reference: str
    candidates: Mapping[str, str]
    """Text by name, such as ``"C1"``."""

    orders: tuple[RankOrder, ...]
    """All of these must hold; none is repeated."""

    contexts: Mapping[str, str] = field(default_factory=dict)
    """What is known of the patient for whom a candidate is judged, by its name; none
    where nothing is."""

    @property
    def needs_context(self) -> bool:
        """Whether a candidate is judged for a patient who is described beside it."""
        return bool(self.contexts)

    @property
    def ties(self) -> bool:
        """Whether two candidates are worth the same."""
        return any(one.tied for one in self.orders)


@dataclass(frozen=True, slots=True, kw_only=True)
class RadJudge:
    """All tests of a file, in its order."""

    tests: tuple[RankingTest, ...]
    source: str
    """Name of the file."""

    digest: str
    """Sha256 of the file, 64 hex characters."""

    @property
    def categories(self) -> tuple[str, ...]:
        """Every category, in order of first appearance."""
        return tuple(dict.fromkeys(one.category for one in self.tests))

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """``(test id, candidate)`` of every candidate, in the order of the file."""
        return tuple((one.id, name) for one in self.tests for name in one.candidates)

    @property
    def as_published(self) -> bool:
        """Whether it has as many categories and tests of each as RadJudge has."""
        sizes = [
            sum(one.category == name for one in self.tests) for name in self.categories
        ]
        return sizes == [_PUBLISHED[1]] * _PUBLISHED[0]


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


_Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)
]
_Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _RankedText(BaseModel):
    text: _Said
    context: dict[str, Any] | None = None


class _Test(BaseModel):
    id: _Name
    ground_truth: _Said
    candidates: Annotated[dict[_Name, _RankedText], Field(min_length=2)]
    expected_ranking: Annotated[
        list[_Said], Field(min_length=1), BeforeValidator(_listed)
    ]


class _Category(BaseModel):
    category: Annotated[_Name, Field(validation_alias=AliasChoices("category", "name"))]
    tests: Annotated[list[_Test], Field(min_length=1)]


def read_radjudge(path: Path) -> RadJudge:
    """Return the tests of a RadJudge file.

    A JSON list of categories, each an object with ``category`` (or ``name``) and
    ``tests``. A test has ``id``, ``ground_truth``, ``candidates`` by name, each with
    ``text`` and, where it matters, ``context``, and ``expected_ranking``: ``"C1 >
    C2"`` where C1 is better, ``"C1 = C2"`` where both are worth the same, a longer
    chain, or a list of these, all of which must hold. Other fields are ignored, and so
    is a field of a context that is null or blank.

    Raises
    ------
    DataError
        The file cannot be read, is larger than 8 MiB, is not JSON, or lacks a field;
        two tests share an id, or two categories a name; a ranking names a candidate
        that the test does not have, compares one with itself, or contradicts another.
        Names the test.
    """
    raw = _read_bytes(path)
    try:
        data = json.loads(raw, object_pairs_hook=unique_keys)
    except RepeatedKeyError as error:
        raise DataError(
            f"{path}: a name appears twice in one object, for example a candidate. "
            "Keep one of the two."
        ) from error
    except (ValueError, RecursionError) as error:
        # The message of the decoder may quote the file.
        line = getattr(error, "lineno", None)
        where = f"{path}, line {line}" if line else f"{path}"
        raise DataError(f"{where}: not JSON. Correct it, or fetch it again.") from None
    if not isinstance(data, list) or not data:
        raise DataError(
            f"{path}: a list of categories is needed, each with category and tests."
        )
    categories = [_parse(one, path, place) for place, one in enumerate(data, 1)]
    _check_once([one.category for one in categories], path, "category")
    _check_once([one.id for each in categories for one in each.tests], path, "test")
    return RadJudge(
        tests=tuple(
            _test(one, each.category, path) for each in categories for one in each.tests
        ),
        source=path.name,
        digest=hashlib.sha256(raw).hexdigest(),
    )


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}. Check it.") from error
    if len(raw) > MOST_BYTES:
        raise DataError(
            f"{path} is larger than {MOST_BYTES // 2**20} MiB; the published tests "
            "take some kilobytes. Name the file of tests."
        )
    return raw


def _parse(data: object, path: Path, place: int) -> _Category:
    try:
        return _Category.model_validate(data)
    except ValidationError as error:
        # Not what the field holds, which may be a clinical text.
        first = error.errors(include_input=False, include_url=False)[0]
        raise DataError(
            f"{path}, category {place}: field {field_name(first['loc'])} is missing or "
            f"not what it should be ({first['type']}). Correct it."
        ) from None


def _check_once(names: Sequence[str], path: Path, what: str) -> None:
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise DataError(
            f"{path}: {what} {quoted(twice)} appears twice. Keep one of the two, or "
            "rename one."
        )


def _test(given: _Test, category: str, path: Path) -> RankingTest:
    orders: dict[RankOrder, None] = {}
    for said in given.expected_ranking:
        parts = re.split(r"([>=])", said)
        names = [name.strip() for name in parts[::2]]
        if len(names) < 2 or "" in names:
            raise _refuse(
                given,
                path,
                "a ranking does not compare candidates. Write C1 > C2 or C1 = C2",
            )
        unknown = [name for name in names if name not in given.candidates]
        if unknown:
            raise _refuse(
                given,
                path,
                f"a ranking names {quoted(unknown[0])}, and its candidates are "
                f"{', '.join(map(quoted, given.candidates))}. Correct the ranking",
            )
        for (one, other), sign in zip(pairwise(names), parts[1::2], strict=True):
            if one == other:
                raise _refuse(
                    given,
                    path,
                    f"a ranking compares {quoted(one)} with itself. Correct it",
                )
            tied = sign == "="
            if tied and other < one:
                one, other = other, one
            orders[RankOrder(one, other, tied)] = None
    if not _is_consistent(list(orders)):
        raise _refuse(
            given, path, "its rankings contradict each other. Correct one of them"
        )
    return RankingTest(
        id=given.id,
        category=category,
        reference=given.ground_truth,
        candidates={name: one.text for name, one in given.candidates.items()},
        orders=tuple(orders),
        contexts={
            name: said
            for name, one in given.candidates.items()
            if (said := _context(one.context or {}))
        },
    )


def _context(given: Mapping[str, Any]) -> str:
    """Return what is known of a patient; a field without a value says nothing."""
    known = {key: "" if value is None else str(value) for key, value in given.items()}
    return "; ".join(f"{key}: {value}" for key, value in known.items() if value.strip())


def _refuse(given: _Test, path: Path, why: str) -> DataError:
    return DataError(f"{path}, test {quoted(given.id)}: {why}.")


def _is_consistent(orders: Sequence[RankOrder]) -> bool:
    """Whether some ranking says all of it: no candidate is better than itself."""
    group = _tied_groups(orders)
    below: dict[str, set[str]] = {}
    for one in orders:
        if not one.tied:
            below.setdefault(group[one.better], set()).add(group[one.other])
    try:
        TopologicalSorter(below).prepare()
    except CycleError:
        return False
    return True


def _tied_groups(orders: Sequence[RankOrder]) -> dict[str, str]:
    """Return each ranked candidate with one that stands for all tied with it."""
    alike: dict[str, str] = {}

    def first(name: str) -> str:
        while (before := alike.get(name, name)) != name:
            name = before
        return name

    for one in orders:
        if one.tied and first(one.better) != first(one.other):
            alike[first(one.other)] = first(one.better)
    return {name: first(name) for one in orders for name in (one.better, one.other)}


class RankingOutcome(StrEnum):
    """How one metric ends in one test."""

    PASSED = "passed"
    """Its scores reproduce the whole ranking."""

    TOLERATED = "passed with tolerance"
    """It passes only where scores within the tolerance of each other count as equal."""

    FAILED = "failed"
    UNSCORED = "without a score"
    """A candidate of the ranking has no score: neither right nor wrong."""

    NOT_APPLICABLE = "not applicable"
    """The ranking depends on the patient, of which the metric sees nothing."""


class PassShare(NamedTuple):
    """How many of the tests that were decided are passed."""

    passed: int
    tests: int
    limits: Interval
    """Exact (Clopper-Pearson), 95 %, two-sided, over tests."""

    @property
    def value(self) -> float | None:
        """Share of the tests; None without one."""
        return self.passed / self.tests if self.tests else None


class RankingCount(NamedTuple):
    """How many tests of one category, or of all, a metric passes."""

    category: str
    """Empty for all."""

    strict: PassShare
    tolerant: PassShare
    unscored: int
    not_applicable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingResult:
    """How one metric ends in all tests."""

    scores: PairScores
    with_context: bool
    """Whether it was told about the patient."""

    outcomes: tuple[RankingOutcome, ...]
    """One a test."""

    total: RankingCount
    categories: tuple[RankingCount, ...]


def grade_rankings(
    given: RadJudge,
    scores: PairScores,
    *,
    tolerance: float = TOLERANCE,
    with_context: bool = False,
) -> RankingResult:
    """Return which tests the scores of a metric pass.

    Strict: for ``C1 > C2`` the score of C1 is better, for ``C1 = C2`` both are equal.
    Tolerant: the same, but candidates that the ranking ties may differ by `tolerance`.
    What follows from a ranking must hold, too: for ``C1 > C2 = C3``, C1 is better than
    C3, with and without the tolerance.

    Parameters
    ----------
    scores
        One value a candidate, in the order of ``given.keys``; NaN where there is none.
    tolerance
        In the units of the score, 0 or more.
    with_context
        Whether the metric was told about the patient. If not, tests that depend on the
        patient are not applicable.

    Raises
    ------
    ValueError
        The scores are not one a candidate, or the tolerance is negative or not finite.

    Examples
    --------
    >>> test = RankingTest(
    ...     id="1a",
    ...     category="ties",
    ...     reference="Effusion.",
    ...     candidates={"C1": "Effusion.", "C2": "An effusion."},
    ...     orders=(RankOrder("C1", "C2", tied=True),),
    ... )
    >>> given = RadJudge(tests=(test,), source="x.json", digest="")
    >>> said = PairScores(
    ...     name="m", title="M", lower=False, values=np.array([1.0, 0.97]), signature=""
    ... )
    >>> found = grade_rankings(given, said)
    >>> found.total.strict.passed, found.total.tolerant.passed
    (0, 1)
    """
    keys = given.keys
    if scores.values.shape != (len(keys),):
        raise ValueError(
            f"need one score for each of {len(keys)} candidates, got "
            f"{scores.values.shape}"
        )
    if not 0 <= tolerance < np.inf:
        raise ValueError(f"the tolerance must be 0 or more and finite, got {tolerance}")
    directed: NDArray[np.float64] = -scores.values if scores.lower else scores.values
    values = dict(zip(keys, directed.tolist(), strict=True))
    outcomes = tuple(
        RankingOutcome.NOT_APPLICABLE
        if one.needs_context and not with_context
        else _decide(one, values, tolerance)
        for one in given.tests
    )
    named = [
        (one.category, how) for one, how in zip(given.tests, outcomes, strict=True)
    ]
    return RankingResult(
        scores=scores,
        with_context=with_context,
        outcomes=outcomes,
        total=_count("", outcomes),
        categories=tuple(
            _count(name, [how for each, how in named if each == name])
            for name in given.categories
        ),
    )


def _decide(
    test: RankingTest, values: Mapping[tuple[str, str], float], tolerance: float
) -> RankingOutcome:
    group = _tied_groups(test.orders)
    tied: dict[str, list[float]] = {}
    for name, place in group.items():
        tied.setdefault(place, []).append(values[test.id, name])
    if np.isnan([value for each in tied.values() for value in each]).any():
        return RankingOutcome.UNSCORED
    # All of a group that is better are better than all of the other.
    if any(
        min(tied[group[one.better]]) - max(tied[group[one.other]]) <= _ROUNDING
        for one in test.orders
        if not one.tied
    ):
        return RankingOutcome.FAILED
    widest = max(max(each) - min(each) for each in tied.values())
    if widest <= _ROUNDING:
        return RankingOutcome.PASSED
    within = widest <= tolerance + _ROUNDING
    return RankingOutcome.TOLERATED if within else RankingOutcome.FAILED


def _count(category: str, outcomes: Sequence[RankingOutcome]) -> RankingCount:
    def total(*wanted: RankingOutcome) -> int:
        return sum(one in wanted for one in outcomes)

    passed, tolerated = RankingOutcome.PASSED, RankingOutcome.TOLERATED
    decided = total(passed, tolerated, RankingOutcome.FAILED)

    def among(hits: int) -> PassShare:
        return PassShare(hits, decided, clopper_pearson(hits, decided))

    return RankingCount(
        category=category,
        strict=among(total(passed)),
        tolerant=among(total(passed, tolerated)),
        unscored=total(RankingOutcome.UNSCORED),
        not_applicable=total(RankingOutcome.NOT_APPLICABLE),
    )
