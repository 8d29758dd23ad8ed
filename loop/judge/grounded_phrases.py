"""RadFact of phrases that are given, with or without boxes in the image.

What a grounded report generator writes is phrases with boxes already, so nothing has to
be taken apart: the judge only says which phrases the other report entails. Where boxes
are given, phrases are held in place, too; see `loop.judge.radfact`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from loop.core.digests import unique_keys
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.numbered_phrases import (
    CANDIDATE_PHRASES,
    REFERENCE_PHRASES,
    SIDES,
    number_phrases,
)
from loop.core.paths import WorkspacePaths
from loop.core.records import Outcome, Status
from loop.core.safe_text import quoted
from loop.judge.judge import FOLDER
from loop.judge.radfact import (
    IN_PLACE,
    PIXELS,
    Box,
    PhraseShares,
    harmonic_of_means,
    has_pixels,
    judged_phrases,
    radfact_parts,
    share_phrases,
)
from loop.labels.language import has_words
from loop.prompts.outputs.report_phrases import MAX_PHRASES
from loop.prompts.version import PromptVersion
from loop.run.asking import EngineOptions
from loop.run.execute import Problem
from loop.run.runner import PromptRunner, RunnerOptions, Watch
from loop.stats.intervals import Estimate
from loop.stats.resampling import bootstrap, to_estimate

MAX_BYTES: Final = 256 * 2**20
"""Largest file of phrases that is read."""

RESAMPLES: Final = 500
"""As published."""

_Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)
]
_Side = Annotated[float, Field(ge=0, le=1)]


class GroundedPhrase(BaseModel):
    """One phrase, and where in the image it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    phrase: _Text
    boxes: tuple[tuple[_Side, _Side, _Side, _Side], ...] = Field((), max_length=50)
    """Left, top, right, bottom as shares of width and height."""


class GroundedPair(BaseModel):
    """The phrases of two reports of one examination."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    language: Annotated[str, StringConstraints(min_length=2, max_length=8)] = "en"
    reference: tuple[GroundedPhrase, ...] = Field(max_length=MAX_PHRASES)
    candidate: tuple[GroundedPhrase, ...] = Field(max_length=MAX_PHRASES)


class PhraseScore(NamedTuple):
    """One of RadFact's numbers over all pairs."""

    name: str
    """``"logical"``, ``"grounding"`` or ``"spatial"``."""

    precision: Estimate
    recall: Estimate
    f1: Estimate
    pairs: tuple[int, int]
    """How many pairs have a precision, and a recall."""


class GroundedScores(NamedTuple):
    """What a judge says of given phrases."""

    judge: str
    """Version with its digest, and engine."""

    pairs: int
    answered: int
    unparsed: int
    failed: int
    not_asked: int
    """Pairs whose phrases have no words."""

    scores: tuple[PhraseScore, ...]
    problems: tuple[Problem, ...] = ()
    """Why pairs have no readable answer; the examples are no ids of pairs."""


def read_grounded(path: Path) -> tuple[GroundedPair, ...]:
    """Return the pairs of a file with a JSON object in each line.

    ``{"id": "a", "reference": [{"phrase": "left effusion", "boxes": [[0, 0.5, 0.4,
    1]]}], "candidate": []}``; boxes may be left out.

    Raises
    ------
    DataError
        The file cannot be read, a line is no such object, a phrase has no letter or
        digit, a box covers no pixel, an id appears twice, or there is no pair.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise DataError(
                f"{path} has {size:,} bytes, more than {MAX_BYTES:,}. Split it."
            )
        # JSON text may hold the other characters that end a line for `splitlines`.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8. Save it as UTF-8.") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    found: dict[str, GroundedPair] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        pair = _read_line(line, f"{path}, line {number}")
        if pair.id in found:
            raise DataError(
                f"{path}, line {number}: the id {quoted(pair.id)} appears twice. Give "
                "each pair its own."
            )
        found[pair.id] = pair
    if not found:
        raise DataError(f"{path} holds no pair. Write one JSON object a line.")
    return tuple(found.values())


def _read_line(line: str, where: str) -> GroundedPair:
    try:
        pair = GroundedPair.model_validate(
            json.loads(line, object_pairs_hook=unique_keys)
        )
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the object"
        raise DataError(f"{where}: {place}: {first['msg']}. Correct it.") from None
    except (ValueError, RecursionError):
        raise DataError(
            f"{where}: no JSON object, or one with a key twice. Write one object a "
            "line."
        ) from None
    for side, phrases in (("reference", pair.reference), ("candidate", pair.candidate)):
        for count, one in enumerate(phrases):
            place = f"{where}: {side}.{count}"
            if not has_words(one.phrase):
                raise DataError(f"{place}.phrase has no letter or digit. Leave it out.")
            if not all(map(has_pixels, one.boxes)):
                raise DataError(
                    f"{place} has a box without area: it covers none of {PIXELS} x "
                    f"{PIXELS} pixels. Give left, top, right and bottom as shares of "
                    "width and height, the smaller first."
                )
    return pair


def judge_phrases(
    pairs: Sequence[GroundedPair],
    judge: str | PromptVersion = "radfact",
    engine: str = "rules",
    *,
    workspace: WorkspacePaths | None = None,
    asking: EngineOptions | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    watch: Watch | None = None,
) -> GroundedScores:
    """Return RadFact of pairs whose phrases are given.

    Pairs without a readable answer are left out and counted. Answers are kept in the
    workspace: the same phrases are not asked about twice.

    Parameters
    ----------
    judge
        A version in the contract ``entailment``.
    watch
        Wraps the pairs that have to be asked, to show progress.

    Raises
    ------
    DataError
        There is no such judge, or it says nothing of phrases.
    EngineError
        The engine is not available, or failed as a whole.
    StoreError
        The store cannot be read or written.

    Examples
    --------
    >>> pair = GroundedPair.model_validate(
    ...     {
    ...         "id": "a",
    ...         "reference": [{"phrase": "Left pleural effusion"}],
    ...         "candidate": [
    ...             {"phrase": "Left pleural effusion"},
    ...             {"phrase": "Rib fracture"},
    ...         ],
    ...     }
    ... )
    >>> logical = judge_phrases([pair]).scores[0]
    >>> logical.precision.value, logical.recall.value
    (0.5, 1.0)
    """
    inputs = [_inputs(one) for one in pairs]
    languages = [one.language for one in pairs]
    with ExitStack() as stack:
        options = RunnerOptions(folder=FOLDER, fields=tuple(SIDES))
        runner = stack.enter_context(
            PromptRunner.open(workspace, judge, engine, asking, options)
        )
        if set(runner.version.inputs) != {REFERENCE_PHRASES, CANDIDATE_PHRASES}:
            raise DataError(
                f"{runner.version.ref} does not read phrases, and phrases are given. "
                "Name a judge of phrases, such as radfact."
            )
        asked = runner.ask(inputs, languages, watch)
        outcomes = runner.outcomes(inputs, languages)
        facts = f"{runner.version.ref} ({runner.version.digest[:8]}) with {engine}"
    statuses = [one.status if one else None for one in asked.answers]
    kept = [
        (pair, texts, one)
        for pair, texts, one in zip(pairs, inputs, outcomes, strict=True)
        if one is not None and one.status is Status.ANSWERED
    ]
    return GroundedScores(
        judge=facts,
        pairs=len(pairs),
        answered=len(kept),
        unparsed=statuses.count(Status.UNPARSED),
        failed=statuses.count(Status.ENGINE_FAILED),
        not_asked=statuses.count(None),
        scores=_measure(kept, resamples, seed),
        problems=asked.problems,
    )


def grounded_data(found: GroundedScores) -> dict[str, Any]:
    """Return the scores as JSON data."""
    return {
        "format": 1,
        "judge": found.judge,
        "pairs": found.pairs,
        "answered": found.answered,
        "unparsed": found.unparsed,
        "engine_failed": found.failed,
        "not_asked": found.not_asked,
        "scores": [
            {
                "name": one.name,
                "precision": one.precision._asdict(),
                "recall": one.recall._asdict(),
                "f1": one.f1._asdict(),
                "pairs": {"precision": one.pairs[0], "recall": one.pairs[1]},
            }
            for one in found.scores
        ],
        "problems": [{"text": one.text, "pairs": one.cases} for one in found.problems],
    }


def grounded_notes(found: GroundedScores) -> list[str]:
    """Return what to know of the scores, a sentence or two each."""
    notes = [
        f"{found.answered:,} of {found.pairs:,} pairs have a readable answer; the "
        f"others are left out: {found.unparsed:,} unreadable, {found.failed:,} failed, "
        f"{found.not_asked:,} without a word to ask about.",
        "Precision and recall are means over the pairs that have them, F1 is the "
        "harmonic mean of the two. Intervals of 95 %, by bootstrap over pairs.",
        "Grounding: of the entailed phrases with boxes, those entailed in place; "
        f"spatial: of all with boxes. In place: more than {IN_PLACE:g} of the boxes' "
        f"pixels lie in those of the evidence, on {PIXELS} x {PIXELS} pixels.",
    ]
    return notes + [
        f"{counted(one.cases, 'pair')}: {one.text}" for one in found.problems
    ]


def _inputs(pair: GroundedPair) -> dict[str, str]:
    sides = {REFERENCE_PHRASES: pair.reference, CANDIDATE_PHRASES: pair.candidate}
    return {
        name: number_phrases([" ".join(one.phrase.split()) for one in side])
        for name, side in sides.items()
    }


def _measure(
    kept: Sequence[tuple[GroundedPair, Mapping[str, str], Outcome]],
    resamples: int,
    seed: int,
) -> tuple[PhraseScore, ...]:
    """Return the three kinds of shares over pairs, each with intervals."""
    nothing = PhraseShares(*[float("nan")] * 3)
    rows = []
    for pair, texts, outcome in kept:
        boxes: dict[str, list[tuple[Box, ...]]] = {
            REFERENCE_PHRASES: [one.boxes for one in pair.reference],
            CANDIDATE_PHRASES: [one.boxes for one in pair.candidate],
        }
        said = judged_phrases(outcome, texts, boxes)
        rows.append(
            [share_phrases(said[one]) if one in said else nothing for one in SIDES]
        )
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(SIDES), 3)
    return tuple(
        _score(name, table[:, 0, place], table[:, 1, place], resamples, seed)
        for place, name in enumerate(PhraseShares._fields)
    )


def _score(
    name: str,
    precision: NDArray[np.float64],
    recall: NDArray[np.float64],
    resamples: int,
    seed: int,
) -> PhraseScore:
    parts = radfact_parts(precision, recall)

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            means = [sums[:, 0] / sums[:, 1], sums[:, 2] / sums[:, 3]]
        return np.column_stack([*means, harmonic_of_means(sums)])

    sizes = int(parts[:, 1].sum()), int(parts[:, 3].sum())
    if not any(sizes):
        none = Estimate(None, None, None)
        return PhraseScore(name, none, none, none, sizes)
    found = bootstrap(parts, statistic, resamples=resamples, seed=seed)
    p, r, f1 = map(to_estimate, found)
    return PhraseScore(name, p, r, f1, sizes)
