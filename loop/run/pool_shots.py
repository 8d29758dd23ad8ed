"""Shots looked up in their pool, and what they share with the pairs to be judged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from loop.core.errors import DataError, OverlapError
from loop.core.files import make_folder, write_atomic
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.labels.language import fold_text, shingles
from loop.labels.overlap import near_duplicates
from loop.labels.shot_pool import MarkedCounts, PoolPair, ShotPool, read_pool
from loop.prompts.shot_records import (
    CategoryCount,
    Shot,
    ShotKind,
    Shots,
    ShotScore,
    score_errors,
)
from loop.prompts.version import PromptVersion

_FOLDER = "shots"


def make_shot(
    pair: PoolPair, kind: ShotKind, score: ShotScore, categories: Sequence[str]
) -> Shot:
    """Return a pair of a pool as it is shown.

    Parameters
    ----------
    categories
        Those that the version asks for; errors of others are not shown, and do not
        count. Of a version that asks for none, every error counts.

    Raises
    ------
    DataError
        The pair has no counts, or no rating, and these are shown; names no case.
    """
    single = kind is ShotKind.ASSESSED
    counts = pair.assessed if single else pair.counts
    rating = pair.assessed_rating if single else pair.rating
    if counts is None and (kind is not ShotKind.RANDOM or score is not _RATING):
        raise DataError(
            f"a pair of the pool has no error counts, which shots {kind} with score "
            f"{score} need."
        )
    if score is _RATING:
        if rating is None:
            raise DataError("a pair of the pool has no rating, which the score needs.")
        value = rating
    else:
        value = score_errors(_significant(counts, categories), score)
    shown = counts is not None and kind is not ShotKind.RANDOM
    return Shot(
        reference=pair.reference,
        candidate=pair.candidate,
        score=round(value, 4),
        significant=_told(counts.significant, categories) if counts and shown else None,
        insignificant=(
            _told(counts.insignificant, categories) if counts and shown else None
        ),
        explanation=pair.explanation if single else "",
    )


_RATING = ShotScore.RATING


def _significant(counts: MarkedCounts | None, categories: Sequence[str]) -> int:
    if counts is None:
        return 0
    found = counts.significant
    # The guides of a rubric, for example, are no categories: that none of them has an
    # error says nothing of the candidate.
    asked = [name for name in categories if name in found] or found
    return sum(found[name] for name in asked)


def _told(
    counts: Mapping[str, int], categories: Sequence[str]
) -> tuple[CategoryCount, ...]:
    return tuple(
        CategoryCount(name, counts[name]) for name in categories if counts.get(name)
    )


def source_id(kind: ShotKind, pin_id: str) -> str:
    """Return the id of the pair of the pool that an example was made of.

    Examples
    --------
    >>> source_id(ShotKind.INJECTED, "case-7-a1"), source_id(ShotKind.RANDOM, "x-a1")
    ('case-7', 'x-a1')
    """
    return pin_id.rpartition("-")[0] if kind is ShotKind.INJECTED else pin_id


def with_shots(
    workspace: WorkspacePaths | None, version: PromptVersion
) -> PromptVersion:
    """Return `version` with the texts of its shots; itself where it has none.

    Those that errors were put into lie in the private part of the workspace, all
    others are in the pool. Each is known by the digest that the version pins.

    Raises
    ------
    DataError
        The pool is not here or has another role, or an example is gone or was edited;
        says what to do, and holds no text.
    """
    shots = version.shots
    if shots is None or version.shown:
        return version
    if shots.kind is ShotKind.INJECTED:
        found = _read_injected(workspace, version, shots)
    else:
        found = _read_from_pool(workspace, version, shots)
    shown = []
    for number, (pin, shot) in enumerate(zip(shots.pins, found, strict=True), 1):
        if shot is None or shot.digest != pin.digest:
            why = (
                "is gone"
                if shot is None
                else "was edited or is rated differently, or the version asks for "
                "other categories than when it was chosen"
            )
            raise DataError(
                f"{version.ref}: shot {number} of {len(shots.pins)}, from the pool "
                f"{shots.pool}, {why}: the version pins it with the digest "
                f"{pin.digest[:12]}. Restore the pool and its ratings as they were, "
                "including the words of findings, or choose shots again: "
                f"{_again(version, shots)}."
            )
        shown.append(shot)
    return replace(version, shown=tuple(shown))


def _again(version: PromptVersion, shots: Shots) -> str:
    return (
        f"`ranloop prompt shots {version.name} {shots.short} --pool {shots.pool} "
        f"--seed {shots.seed}`"
    )


def _read_from_pool(
    workspace: WorkspacePaths | None, version: PromptVersion, shots: Shots
) -> list[Shot | None]:
    try:
        pool = read_pool(workspace, shots.pool)
    except DataError as error:
        raise DataError(
            f"{version.ref} shows examples of the pool {quoted(shots.pool)}, which "
            f"cannot be used here: {error}"
        ) from error
    known = {pair.id: pair for pair in pool.pairs}

    def look(pair: PoolPair | None) -> Shot | None:
        if pair is None:
            return None
        try:
            return make_shot(pair, shots.kind, shots.score, version.labels)
        except DataError:
            return None

    return [look(known.get(pin.id)) for pin in shots.pins]


def injected_path(workspace: WorkspacePaths, shots: Shots) -> Path:
    """File with the texts of examples that errors were put into: private."""
    return workspace.private / _FOLDER / f"{shots.digest[:16]}.jsonl"


def keep_injected(workspace: WorkspacePaths, version: PromptVersion) -> None:
    """Write the texts of shots with injected errors to the private part.

    Nothing is written of other shots: they stay in their pool.

    Raises
    ------
    WriteError
        It cannot be written.
    """
    shots = version.shots
    if shots is None or shots.kind is not ShotKind.INJECTED or not version.shown:
        return
    workspace.open_private()
    path = injected_path(workspace, shots)
    make_folder(path.parent, mode=0o700)
    lines = [json.dumps(asdict(one), ensure_ascii=True) for one in version.shown]
    write_atomic(path, "\n".join(lines) + "\n", mode=0o600)


def _read_injected(
    workspace: WorkspacePaths | None, version: PromptVersion, shots: Shots
) -> Sequence[Shot | None]:
    path = injected_path(workspace, shots) if workspace else None
    if path is None or not path.is_file():
        raise DataError(
            f"{version.ref} shows examples of the pool {shots.pool} with injected "
            "errors, and their texts are not on this machine: they are private and do "
            "not travel with a version. Make the same ones again from that pool: "
            f"{_again(version, shots)}; the draft can be discarded."
        )
    try:
        lines = path.read_text(encoding="ascii").splitlines()
        found = [_parse_shot(line) for line in lines]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{path} cannot be read. Remove it, and make the shots again: "
            f"{_again(version, shots)}."
        ) from error
    if len(found) != len(shots.pins):
        return [None] * len(shots.pins)
    return found


def _parse_shot(line: str) -> Shot:
    data = json.loads(line)
    for name in ("significant", "insignificant"):
        if data[name] is not None:
            data[name] = tuple(CategoryCount(*one) for one in data[name])
    return Shot(**data)


class PairToJudge(NamedTuple):
    """What is known of a pair that is to be judged."""

    id: str
    reference: str
    patient: str = ""
    """Pseudonym by the key of the workspace; empty when unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPairs:
    """Pairs that share something with the shots of a version."""

    cases: frozenset[str]
    """Ids of pairs with the id of a shot."""

    patients: frozenset[str]
    references: frozenset[str]
    """Equal references, or nearly so: see `loop.labels.overlap.NEAR`."""

    patients_compared: bool = True
    """False where patients are not named for all pairs and shots, or have pseudonyms
    of different keys."""

    @property
    def ids(self) -> frozenset[str]:
        """Ids of all of them."""
        return self.cases | self.patients | self.references

    @property
    def words(self) -> str:
        """Counts by what is shared; no id."""
        kinds = (
            (self.references, "by the reference"),
            (self.patients, "by the patient"),
            (self.cases, "by the id"),
        )
        return ", ".join(f"{len(ids)} {what}" for ids, what in kinds if ids)


UNKNOWN_PATIENTS: Final = (
    "Whether these pairs share a patient with the shots is not known: patients are not "
    "named for all of both, or have pseudonyms of different keys. References and ids "
    "were compared."
)
"""What to say where `SharedPairs.patients_compared` is false."""

NOTHING_SHARED: Final = SharedPairs(
    cases=frozenset(), patients=frozenset(), references=frozenset()
)


def find_shared(
    workspace: WorkspacePaths | None,
    version: PromptVersion,
    pairs: Iterable[PairToJudge],
    *,
    pseudonym_key: str = "",
) -> SharedPairs:
    """Return which pairs share a case, a patient or a reference with the shots.

    References are compared as between cohorts of different roles: equal apart from
    case, spaces and punctuation, or near-duplicates.

    Parameters
    ----------
    pseudonym_key
        Fingerprint of the key of the patients' pseudonyms: other keys' patients cannot
        be compared.

    Raises
    ------
    DataError
        The pool or the shots are not here, or the pool has other pairs by now than the
        shots were made of.
    """
    shots = version.shots
    if shots is None:
        return NOTHING_SHARED
    version = with_shots(workspace, version)
    pool = read_pool(workspace, shots.pool)
    sources = _find_sources(pool, version, shots)
    wanted = {pair.id for pair in sources}
    told = list(pairs)
    texts = {fold_text(pair.reference) for pair in sources}
    equal = {one.id for one in told if fold_text(one.reference) in texts}
    by_shot = {str(n): shingles(pair.reference) for n, pair in enumerate(sources)}
    rest = ((one.id, shingles(one.reference)) for one in told if one.id not in equal)
    near = {other for _, other in near_duplicates(by_shot, rest)}
    same_key = pool.pseudonym_key == pseudonym_key
    known = {pair.patient for pair in sources if pair.patient} if same_key else set()
    named = all(pair.patient for pair in sources) and all(one.patient for one in told)
    return SharedPairs(
        cases=frozenset(one.id for one in told if one.id in wanted),
        patients=frozenset(one.id for one in told if one.patient in known),
        references=frozenset(equal | near),
        patients_compared=pool.shipped or (same_key and named),
    )


def _find_sources(
    pool: ShotPool, version: PromptVersion, shots: Shots
) -> list[PoolPair]:
    """Return the pairs of the pool that the examples of a version were made of."""
    known = {pair.id: pair for pair in pool.pairs}
    found = []
    for pin, shot in zip(shots.pins, version.shown, strict=True):
        pair = known.get(source_id(shots.kind, pin.id))
        # Texts with injected errors are kept apart, and outlive the pair of the pool.
        if pair is None or pair.reference != shot.reference:
            raise DataError(
                f"{version.ref}: the pool {shots.pool} has other pairs by now than its "
                "shots were made of, so nothing says which patients these are of. "
                "Restore the pool as it was, or choose shots again: "
                f"{_again(version, shots)}."
            )
        found.append(pair)
    return found


def require_apart(version: PromptVersion, shared: SharedPairs, way: str) -> None:
    """Refuse to judge pairs that share something with what the prompt shows.

    Parameters
    ----------
    way
        What to do where pairs are judged, as a sentence.

    Raises
    ------
    OverlapError
        There are such pairs; says how many, and no id.
    """
    if not shared.ids or version.shots is None:
        return
    number = len(shared.ids)
    one = number == 1
    raise OverlapError(
        f"{number} of the pairs to judge {'shares' if one else 'share'} something with "
        f"the shots of {version.ref} (pool {version.shots.pool}): {shared.words}. "
        f"{'It was' if one else 'They were'} seen in the prompt. {way}"
    )
