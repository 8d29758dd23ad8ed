"""A judge with shots: examples chosen from a pool, and kept apart from what is judged.

More examples are not better by themselves, and examples of one data set may help on
that one only: so pool, kind, number and seed stand in every signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import PromptTask
from loop.judge.injection.chance import Chance
from loop.labels.pseudonyms import open_pseudonyms
from loop.labels.shot_pool import SYNTHETIC, MarkedCounts, PoolPair, ShotPool, read_pool
from loop.prompts.outputs.judged import INPUTS
from loop.prompts.shot_records import (
    MOST_SHOTS,
    CategoryCount,
    Shot,
    ShotKind,
    ShotPin,
    Shots,
    ShotScore,
    parse_shots,
    score_errors,
)
from loop.prompts.version import PromptVersion
from loop.run.pool_shots import (
    NOTHING_SHARED,
    PairToJudge,
    SharedPairs,
    find_shared,
    make_shot,
)
from loop.run.task_fields import task_of
from loop.score.joining import pick_cases
from loop.score.records import Joined

if TYPE_CHECKING:
    from loop.judge.injection.inject import InjectedPair

_INJECTED: Final = {"a": "false_finding", "b": "omission"}
"""Letter of an injected error to its category."""

_USUAL: Final = {ShotKind.INJECTED: 4, ShotKind.ASSESSED: 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShotRequest:
    """Which examples are asked for."""

    kind: ShotKind
    n: int | None = None
    """None for the usual number: of `PER_ERROR` one for each category, of `INJECTED`
    4, of `ASSESSED` 10 beside one for each category; `RANDOM` needs one."""

    pool: str = SYNTHETIC
    seed: int = 0
    score: ShotScore | None = None
    """None for the raters' points where the kind shows an overall score and the pool
    has points, else `LINEAR`."""

    def __post_init__(self) -> None:
        if self.n is not None and not 1 <= self.n <= MOST_SHOTS:
            raise ValueError(f"n must be from 1 to {MOST_SHOTS}, got {self.n}")
        if self.seed < 0:
            raise ValueError(f"seed must be >= 0, got {self.seed}")


def request_shots(
    words: str,
    pool: str = "",
    seed: int = 0,
    score: ShotScore | None = None,
) -> ShotRequest:
    """Return what ``random:5`` asks for of a pool; empty: the one that ships.

    Raises
    ------
    DataError
        The words ask for nothing, or for random ones without a number.
    """
    asked = parse_shots(words)
    return ShotRequest(
        kind=asked.kind, n=asked.n, pool=pool or SYNTHETIC, seed=seed, score=score
    )


def add_shots(
    workspace: WorkspacePaths | None, version: PromptVersion, request: ShotRequest
) -> PromptVersion:
    """Return `version` with examples for one call; nothing is written.

    They take the place of those that it has. Its reference shows them,
    ``green@v1+random:5``, and its digest is another. What is chosen depends on the
    pool, the seed and the categories asked for, and not on the machine.

    Parameters
    ----------
    workspace
        Where the pool is; None for the one that ships.

    Raises
    ------
    DataError
        The version judges no pairs, or the pool cannot give such examples.

    Examples
    --------
    >>> from loop.prompts.catalog import read_known
    >>> from loop.core.paths import bundled
    >>> green = read_known(WorkspacePaths(bundled()), "green@v1").version
    >>> made = add_shots(None, green, request_shots("per_error"))
    >>> made.ref, [shot.score for shot in made.shown]
    ('green@v1+per_error:6', [0.85, 0.85, 0.85, 0.85, 0.85, 0.85])
    """
    if task_of(version) is not PromptTask.JUDGE:
        raise DataError(
            f"{version.ref} judges no pairs, and shots are judged pairs. Name a judge; "
            "`ranloop judge --list` shows them."
        )
    if INPUTS[0] not in version.inputs:
        raise DataError(
            f"{version.ref} reads {', '.join(version.inputs)}, and shots are whole "
            "reports beside each other. Name a judge that reads whole reports."
        )
    pool = read_pool(workspace, request.pool)
    chosen = _choose(pool, request, version.labels)
    shots = Shots(
        pool=pool.name,
        kind=request.kind,
        n=chosen.n,
        seed=request.seed,
        score=chosen.score,
        pins=tuple(ShotPin(one.id, one.shot.digest) for one in chosen.shots),
    )
    return replace(
        version,
        shots=shots,
        shown=tuple(one.shot for one in chosen.shots),
        composed=True,
    )


class _NamedShot(NamedTuple):
    id: str
    shot: Shot


class _Chosen(NamedTuple):
    n: int
    score: ShotScore
    shots: list[_NamedShot]


def _choose(pool: ShotPool, request: ShotRequest, categories: Sequence[str]) -> _Chosen:
    kind = request.kind
    score = request.score or _usual_score(pool, kind)
    chance = Chance("shots", str(request.seed))
    n = _number(request, categories)
    if kind is ShotKind.INJECTED:
        if score is ShotScore.RATING:
            raise DataError(
                "nobody rated the injected errors: score them by their number, with "
                "linear or inverse."
            )
        return _Chosen(n, score, _inject(pool, n, request.seed, score, categories))
    usable = _usable(pool, kind, score)
    if kind is ShotKind.RANDOM:
        pairs = _draw(pool, usable, n, chance)
    else:
        single = kind is ShotKind.ASSESSED
        pairs = _one_each(pool, usable, categories, chance, single=single)
        if single:
            taken = {one.reference_id for one in pairs}
            rest = [one for one in usable if one.reference_id not in taken]
            pairs += _draw(pool, rest, n, chance, beside=len(pairs))
    named = [
        _NamedShot(one.id, make_shot(one, kind, score, categories)) for one in pairs
    ]
    return _Chosen(n, score, named)


def _usual_score(pool: ShotPool, kind: ShotKind) -> ShotScore:
    overall = kind in (ShotKind.RANDOM, ShotKind.ASSESSED)
    rated = any(_rating(pair, kind) is not None for pair in pool.pairs)
    return ShotScore.RATING if overall and rated else ShotScore.LINEAR


def _rating(pair: PoolPair, kind: ShotKind) -> float | None:
    return pair.assessed_rating if kind is ShotKind.ASSESSED else pair.rating


def _number(request: ShotRequest, categories: Sequence[str]) -> int:
    if request.kind is ShotKind.PER_ERROR:
        if request.n not in (None, len(categories)):
            raise DataError(
                f"shots {request.kind} are one for each category that the judge asks "
                f"for, {len(categories)} in all, and not {request.n}. Leave the number "
                "out."
            )
        return len(categories)
    n = request.n or _USUAL.get(request.kind)
    if n is None:
        raise DataError(
            f"shots {request.kind} need a number: write {request.kind}:5, for example."
        )
    return n


def _usable(pool: ShotPool, kind: ShotKind, score: ShotScore) -> list[PoolPair]:
    """Return the pairs that have all that is shown of them."""
    rated, counted = score is ShotScore.RATING, kind is not ShotKind.RANDOM
    counted = counted or not rated

    def holds(pair: PoolPair) -> bool:
        counts = pair.assessed if kind is ShotKind.ASSESSED else pair.counts
        unrated = _rating(pair, kind) is None
        return not (rated and unrated) and not (counted and counts is None)

    found = [pair for pair in pool.pairs if holds(pair)]
    if not found:
        what = "ratings" if rated and not counted else "error counts"
        if rated and counted:
            what = "error counts with ratings"
        raise DataError(
            f"the pool {pool.name} has no {what}, which shots {kind} with score "
            f"{score} need. Add them with `ranloop cohort ratings {pool.name} ...`, or "
            "ask for another kind or score."
        )
    return found


def _draw(
    pool: ShotPool,
    pairs: Sequence[PoolPair],
    n: int,
    chance: Chance,
    *,
    beside: int = 0,
) -> list[PoolPair]:
    """Return `n` pairs of `n` references, drawn by chance."""
    ranked = sorted(pairs, key=lambda one: chance.rank(f"any|{one.id}"))
    first: dict[str, PoolPair] = {}
    for one in ranked:
        first.setdefault(one.reference_id, one)
    if len(first) < n:
        more = f" beside the {beside} of the categories" if beside else ""
        raise DataError(
            f"the pool {pool.name} gives {len(first)} such pairs of different "
            f"references{more}, and {n} are asked for. Ask for fewer, or import a "
            "larger pool."
        )
    return list(first.values())[:n]


def _one_each(
    pool: ShotPool,
    pairs: Sequence[PoolPair],
    categories: Sequence[str],
    chance: Chance,
    *,
    single: bool,
) -> list[PoolPair]:
    """Return one pair for each category, with a significant error if there is one.

    Of those, one with as few errors of other categories as there are.
    """
    known = {name for pair in pairs for table in pair.counts or () for name in table}
    if not known & {*categories}:
        raise DataError(
            "the judge asks for no category of errors, so there is no pair to choose "
            "for each. Ask for random shots."
        )
    chosen: list[PoolPair] = []
    for category in categories:
        taken = {one.reference_id for one in chosen}

        def place(pair: PoolPair, category: str = category) -> tuple[bool, int, bytes]:
            counts = pair.assessed if single else pair.counts
            light = counts is None or not counts.significant.get(category)
            others = sum(
                number
                for table in counts or ()
                for name, number in table.items()
                if name != category
            )
            return light, others, chance.rank(f"{category}|{pair.id}")

        fitting = [
            pair
            for pair in pairs
            if pair.reference_id not in taken
            and _has(pair.assessed if single else pair.counts, category)
        ]
        if not fitting:
            raise DataError(_lacks(pool, category, len(chosen)))
        chosen.append(min(fitting, key=place))
    return chosen


def _lacks(pool: ShotPool, category: str, chosen: int) -> str:
    """Return that a pool has no pair for a category."""
    beside = " beside those of the categories before it" if chosen else ""
    return (
        f"the pool {pool.name} has no pair with an error of the category "
        f"{category}{beside}, each of another reference. Ask for random shots, or take "
        "a pool that has one."
    )


def _has(counts: MarkedCounts | None, category: str) -> bool:
    return any(table.get(category) for table in counts or ())


def _inject(
    pool: ShotPool,
    n: int,
    seed: int,
    score: ShotScore,
    categories: Sequence[str],
) -> list[_NamedShot]:
    """Return references with one error each, false findings and omissions in turn."""
    # Slow to import, and most who revise a prompt have no such shots.
    from loop.judge.injection.inject import InjectionOptions, inject_errors

    missing = [name for name in _INJECTED.values() if name not in categories]
    if missing:
        raise DataError(
            f"the judge does not ask for {' and '.join(missing)}, which injected shots "
            "have. Ask for another kind."
        )
    # An id may hold anything; a pin's is that of the pair and what was put in.
    texts = {pair.id: pair.reference for pair in _references(pool)}
    options = InjectionOptions(errors="".join(_INJECTED), numbers=(1,), seed=seed)
    languages = (
        None if pool.language == "mixed" else dict.fromkeys(texts, pool.language)
    )
    made = inject_errors(texts, options, languages=languages)
    chance = Chance("shots", str(seed))
    ranked = sorted(made.pairs, key=lambda one: chance.rank(f"injected|{one.id}"))
    by_kind = {
        kind: [one for one in ranked if one.kind == kind] for kind in _INJECTED.values()
    }
    named = [_named_injection(one, score) for one in _alternate(by_kind, n)]
    if len(named) < n:
        raise DataError(
            f"the pool {pool.name} has references for {len(named)} injected shots, and "
            f"{n} are asked for. Ask for fewer, or import a larger pool."
        )
    return named


def _references(pool: ShotPool) -> Iterator[PoolPair]:
    """Yield the first pair of each reference."""
    first: dict[str, PoolPair] = {}
    for pair in pool.pairs:
        first.setdefault(pair.reference_id, pair)
    yield from first.values()


def _alternate(
    by_kind: dict[str, list[InjectedPair]], n: int
) -> Iterator[InjectedPair]:
    """Yield up to `n` variants, of each kind in turn, each of another reference."""
    taken: set[str] = set()
    for kind in islice(cycle(by_kind), n):
        free = (one for one in by_kind[kind] if one.reference_id not in taken)
        found = next(free, None)
        if found is None:
            return
        taken.add(found.reference_id)
        yield found


def _named_injection(one: InjectedPair, score: ShotScore) -> _NamedShot:
    letter = next(key for key, kind in _INJECTED.items() if kind == one.kind)
    if one.kind == "omission":
        said = " ".join(change.before.strip() for change in one.changes).strip()
        why = f"The candidate leaves out: {said}"
    else:
        said = " ".join(change.after.strip() for change in one.changes).strip()
        why = f"The candidate adds what the reference does not say: {said}"
    shot = Shot(
        reference=one.reference,
        candidate=one.candidate,
        score=round(score_errors(1, score), 4),
        significant=(CategoryCount(one.kind, 1),),
        insignificant=(),
        explanation=why,
    )
    return _NamedShot(f"{one.reference_id}-{letter}1", shot)


def find_shared_pairs(
    workspace: WorkspacePaths | None, version: PromptVersion, joined: Joined
) -> SharedPairs:
    """Return which cases share an id, a patient or a reference with the shots.

    Patients are compared as far as both sides name them: those of `joined` under the
    key of the workspace.

    Raises
    ------
    DataError
        The pool or the shots of `version` are not here.
    """
    texts = joined.reference.texts
    if version.shots is None or texts is None:
        return NOTHING_SHARED
    hide: Callable[[str], str] = str
    key = ""
    if workspace is not None and joined.named_patients:
        pseudonyms = open_pseudonyms(workspace)
        hide, key = pseudonyms.of, pseudonyms.fingerprint
    patients = joined.named_patients or ("",) * len(joined.case_ids)
    pairs = [
        PairToJudge(case, text or "", hide(patient) if patient else "")
        for case, text, patient in zip(joined.case_ids, texts, patients, strict=True)
    ]
    return find_shared(workspace, version, pairs, pseudonym_key=key)


class Sampled(NamedTuple):
    """Cases that are left to judge."""

    joined: Joined
    taken_out: int
    """Cases that share something with the shots."""


def sample_cases(
    joined: Joined, number: int, seed: int, shared: SharedPairs
) -> Sampled:
    """Return so many cases drawn by chance, after those of the shots are taken out.

    Who is drawn depends on the seed and the ids only. All systems keep the same cases.

    Raises
    ------
    DataError
        Fewer are left than are asked for.
    """
    left = [case for case in joined.case_ids if case not in shared.ids]
    out = len(joined.case_ids) - len(left)
    if number > len(left):
        shots = f"; {out} share something with the shots" if out else ""
        raise DataError(
            f"{number} cases are to be drawn, and there are {len(left)} to draw from"
            f"{shots}. Give a smaller --sample, or more pairs."
        )
    chance = Chance("sample", str(seed))
    drawn = frozenset(sorted(left, key=chance.rank)[:number])
    note = f"{number:,} of {len(joined.case_ids):,} cases, drawn with seed {seed}" + (
        f" after {out:,} were taken out that share something with the shots "
        f"({shared.words})."
        if out
        else "."
    )
    picked = pick_cases(joined, drawn)
    return Sampled(replace(picked, notes=(*picked.notes, note)), out)


def shot_notes(shots: Shots, engine: str) -> list[str]:
    """Return what a reader of a judge's numbers must know of its examples."""
    told = [f"Examples in the prompt: {shots.words}."]
    if engine == "rules":
        told.append("`rules` does not read shots: its answers are the same as without.")
    return told


def shots_data(shots: Shots) -> dict[str, Any]:
    """Return which examples were shown: ids and digests."""
    return {
        "pool": shots.pool,
        "kind": shots.kind.value,
        "n": shots.n,
        "seed": shots.seed,
        "score": shots.score.value,
        "digest": shots.digest,
        "examples": [pin._asdict() for pin in shots.pins],
    }
