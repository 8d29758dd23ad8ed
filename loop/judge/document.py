"""What a judge says of every system: as tables, Markdown, JSON and CSV.

What a judge writes quotes the reports, so none of it is here: ids and numbers only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from loop import __version__
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.records import Status
from loop.core.safe_text import format_csv, shielded
from loop.documents.templates import render_template, shipped_templates
from loop.judge.counts import (
    JudgeScore,
    OwnAgainstCounts,
    compare_own,
    scores_of,
    weighted_score,
)
from loop.judge.judge import Judge, JudgeAnswers, JudgeFacts, judge_metrics
from loop.judge.score_bins import ScoreBin, bins_data, score_bins
from loop.judge.shots import find_shared_pairs, shot_notes, shots_data
from loop.prompts.outputs.base import Contract
from loop.run.pool_shots import UNKNOWN_PATIENTS, require_apart
from loop.run.runner import Watch
from loop.score.documents.sentences import WAYS
from loop.score.experts.error_counts import Empty
from loop.score.metrics.base import MetricInput
from loop.score.metrics.score_sheet import (
    MetricResult,
    ScoreSheet,
    format_per_case,
    measure_texts,
    text_sides,
)
from loop.score.records import Joined
from loop.score.scoring import Sources, describe_sources
from loop.stats.resampling import Resampling

FILES: Final = ("judge.md", "judge.json", "per_pair.csv", "counts.csv")
"""Files of the folder of documents."""


class JudgedSystem(NamedTuple):
    """What the judge says of one system's candidates."""

    system: str
    case_ids: tuple[str, ...]
    answers: JudgeAnswers
    own: OwnAgainstCounts
    """How far the score that it gives itself is from GREEN of its counts."""

    @property
    def answered(self) -> int:
        """Pairs with a readable answer."""
        return self.answers.counts.count(Status.ANSWERED)

    @property
    def unasked(self) -> int:
        """Pairs that nothing was asked about."""
        return sum(one is None for one in self.answers.counts.statuses)

    def total(self, category: str, *, significant: bool) -> int | None:
        """Return how many errors of a category there are, over the pairs that say so.

        None where no answer says anything of them.
        """
        counts = self.answers.counts
        table = counts.significant if significant else counts.insignificant
        said = table[:, counts.categories.index(category)]
        said = said[~np.isnan(said)]
        return int(said.sum()) if said.size else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDocument:
    """Scores and counts of every system, with what they rest on."""

    facts: JudgeFacts
    contract: str
    categories: tuple[str, ...]
    """Of errors that are counted; none where the judge counts none."""

    systems: tuple[JudgedSystem, ...]
    sheet: ScoreSheet
    """Each score of each system, with its interval."""

    empty: Empty
    sources: Sources
    confidence: float
    units: str
    """What was resampled as a whole: ``"patients"`` or ``"references"``."""

    official: ScoreSheet | None = None
    """The same answers as the published parser reads them."""

    matches: bool = True
    """Whether the judge counts matched findings."""

    without_context: int = 0
    """Pairs of which a judge that reads what is known of the patient was told nothing;
    0 for one that does not read it."""

    patients_compared: bool = True
    """Whether the patients of the pairs could be compared with those of the shots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """How a judge's counts become scores."""

    empty: Empty = Empty.ONE
    """What a pair without matches and errors scores."""

    weights: tuple[float, float, float] | None = None
    """Of one more score ``aM / (aM + bS + cI)``; None for none."""

    resamples: int = 2_000
    seed: int = 0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.weights is not None:
            weighted_score(self.weights)

    def scores_for(self, contract: Contract) -> tuple[JudgeScore, ...]:
        """Return the scores that are shown of answers in a contract.

        Raises
        ------
        DataError
            There are weights, and such answers do not count what they weigh.
        """
        scores = scores_of(contract)
        if self.weights is None:
            return scores
        if not (contract.counts_errors and contract.counts_matches):
            raise DataError(
                "weights make a score of matched findings and errors, and answers in "
                f"the contract {contract.name} do not count both. Leave --weights out."
            )
        return (*scores, weighted_score(self.weights))

    @property
    def resampling(self) -> Resampling:
        """Options of the bootstrap."""
        return {
            "resamples": self.resamples,
            "seed": self.seed,
            "confidence": self.confidence,
        }


_APART: Final = (
    "Draw a sample, which leaves them out (--sample N), choose other shots "
    "(--shots-seed), or take another pool (--pool)."
)


def judge_systems(
    joined: Joined,
    judge: Judge,
    options: JudgeOptions | None = None,
    official: Judge | None = None,
    *,
    watch: Watch | None = None,
) -> JudgeDocument:
    """Return what `judge` says of every system.

    Parameters
    ----------
    joined
        References and candidates, as texts.
    official
        The same judge with the published parser: it reads the same stored answers.
    watch
        Wraps the pairs that have to be asked, to show progress.

    Raises
    ------
    DataError
        A side is labels and not texts, or the weights have nothing to weigh.
    OverlapError
        A pair shares its id, its patient or its reference with a shot of the judge.
    EngineError
        The engine is not available, or failed as a whole; what it answered until then
        is kept.
    StoreError
        The store cannot be read or written.
    """
    options = options or JudgeOptions()
    scores = options.scores_for(judge.contract)
    shared = find_shared_pairs(judge.workspace, judge.version, joined)
    require_apart(judge.version, shared, _APART)
    sides = text_sides(joined)
    systems = tuple(_judge_side(judge, one.side, options, watch) for one in sides)
    metrics = judge_metrics(judge, scores, options.empty)
    unknown = 0
    if judge.reads_context:
        unknown = sum(
            len(one.side.case_ids) - sum(map(bool, one.side.contexts)) for one in sides
        )
    published = None
    if official is not None:
        for one in sides:
            _judge_side(official, one.side, options, watch)
        theirs = judge_metrics(official, scores, options.empty)
        published = measure_texts(joined, theirs, **options.resampling)
    return JudgeDocument(
        facts=judge.facts,
        contract=judge.version.contract,
        categories=judge.version.labels if judge.contract.counts_errors else (),
        matches=judge.contract.counts_matches,
        systems=systems,
        sheet=measure_texts(joined, metrics, **options.resampling),
        empty=options.empty,
        sources=describe_sources(joined),
        confidence=options.confidence,
        units="references" if joined.patients is None else "patients",
        official=published,
        without_context=unknown,
        patients_compared=shared.patients_compared,
    )


def _judge_side(
    judge: Judge, side: MetricInput, options: JudgeOptions, watch: Watch | None
) -> JudgedSystem:
    if side.references is None or side.candidates is None:
        raise DataError(
            f"{side.system}: a judge compares texts, and labels were given. Give files "
            "with a text column."
        )
    answers = judge.judge(
        side.references,
        side.candidates,
        side.languages,
        watch,
        contexts=side.contexts,
    )
    return JudgedSystem(
        side.system,
        side.case_ids,
        answers,
        compare_own(answers.counts, judge.contract, options.empty),
    )


def judge_data(document: JudgeDocument) -> dict[str, Any]:
    """Return the document as JSON data."""
    facts = document.facts
    return {
        "format": 1,
        "ranloop": __version__,
        "judge": {
            "prompt": facts.ref,
            "digest": facts.digest,
            "contract": document.contract,
            "engine": facts.engine,
            "identity": facts.identity,
            "parser": facts.parser.value,
            "empty": document.empty.value,
            **({"shots": shots_data(facts.shots)} if facts.shots else {}),
        },
        "sources": document.sources._asdict(),
        "resampled": document.units,
        "confidence": document.confidence,
        "systems": [
            {
                "system": one.system,
                "pairs": len(one.case_ids),
                "answered": one.answered,
                "unparsed": one.answers.counts.count(Status.UNPARSED),
                "engine_failed": one.answers.counts.count(Status.ENGINE_FAILED),
                "not_asked": one.unasked,
                "asked": one.answers.asked,
                "cached": one.answers.cached,
                "own_against_counts": one.own.data,
                "errors": {
                    name: {
                        "significant": one.total(name, significant=True),
                        "insignificant": one.total(name, significant=False),
                    }
                    for name in document.categories
                },
                "problems": [
                    {"text": each.text, "pairs": each.cases}
                    for each in one.answers.problems
                ],
            }
            for one in document.systems
        ],
        "scores": [_score_data(one) for one in document.sheet.results],
        "official": [
            _score_data(one) for one in (document.official or _NOTHING).results
        ],
        "unavailable": [one._asdict() for one in document.sheet.unavailable],
    }


_NOTHING: Final = ScoreSheet(systems=(), case_ids={}, results=())


def _score_data(one: MetricResult) -> dict[str, Any]:
    return {
        "metric": one.metric.name,
        "title": one.metric.title,
        "direction": one.metric.direction.value,
        "system": one.system,
        "value": one.estimate.value,
        "low": one.estimate.low,
        "high": one.estimate.high,
        "n": one.n,
        "undefined": one.undefined,
        "signature": one.signature,
        "spread": bins_data(_bins(one)),
    }


def _bins(one: MetricResult) -> tuple[ScoreBin, ...]:
    return score_bins(one.per_case, one.metric.low or 0.0, one.metric.high)


class ScoreLine(NamedTuple):
    """One score as it is shown, system by system."""

    title: str
    way: str
    """Which way is better, in words."""

    results: tuple[MetricResult | None, ...]
    official: tuple[MetricResult | None, ...]
    """As the published parser reads the same answers; empty where that was not asked
    for."""


def score_lines(document: JudgeDocument) -> tuple[ScoreLine, ...]:
    """Return every score that at least one system has."""
    other = document.official
    return tuple(
        ScoreLine(
            metric.title,
            WAYS[metric.direction],
            _of(document.sheet, metric.name),
            () if other is None else _of(other, metric.name),
        )
        for metric in document.sheet.metrics
    )


def _of(sheet: ScoreSheet, name: str) -> tuple[MetricResult | None, ...]:
    found = {one.system: one for one in sheet.results if one.metric.name == name}
    return tuple(found.get(system) for system in sheet.systems)


class ScoreSpread(NamedTuple):
    """How one score of one system is spread over its pairs."""

    title: str
    system: str
    bins: tuple[ScoreBin, ...]
    """Those that hold a pair."""


def score_spreads(document: JudgeDocument) -> tuple[ScoreSpread, ...]:
    """Return how every score of every system is spread."""
    return tuple(
        ScoreSpread(
            one.metric.title,
            one.system,
            tuple(each for each in _bins(one) if each.n),
        )
        for one in document.sheet.results
    )


def notes(document: JudgeDocument) -> list[str]:
    """Return what a reader must know beside the numbers, as sentences."""
    told = []
    if document.facts.engine == "rules":
        told.append(
            "`rules` is no language model: it finds findings by the guides of an "
            "extractor and compares them by the weights of labels/judging.yaml. It "
            "reads English only."
        )
    if document.without_context:
        told.append(
            f"{document.facts.ref} reads what is known of the patient, and "
            f"{document.without_context:,} pairs were judged without context: give a "
            "column context."
        )
    if document.facts.shots is not None:
        told += shot_notes(document.facts.shots, document.facts.engine)
        if not document.patients_compared:
            told.append(UNKNOWN_PATIENTS)
    for one in document.systems:
        counts = one.answers.counts
        unread, failed = (
            counts.count(status) for status in (Status.UNPARSED, Status.ENGINE_FAILED)
        )
        if unread or failed or one.unasked:
            told.append(
                f"{one.system}: of {len(one.case_ids):,} pairs {unread:,} have an "
                f"unreadable answer, {failed:,} have none, and {one.unasked:,} were "
                "not asked about; they are in no number."
            )
        told += [
            f"{one.system}: {each.text} ({counted(each.cases, 'pair')})"
            for each in one.answers.problems[:3]
        ]
        told += _undefined(document, one)
        if one.own.words:
            told.append(
                f"{one.system}: the judge's {one.own.words} "
                f"({counted(one.own.pairs, 'pair')})."
            )
    told += [f"{one.metric}: {one.reason}" for one in document.sheet.unavailable]
    told += document.sources.notes
    return list(dict.fromkeys(told))


def _undefined(document: JudgeDocument, system: JudgedSystem) -> Iterator[str]:
    """Yield in how many answered pairs a score is not defined."""
    name = document.sheet.systems[document.systems.index(system)]
    missing = len(system.case_ids) - system.answered
    for one in document.sheet.results:
        more = one.undefined - missing
        if one.system == name and one.n and more > 0:
            yield (
                f"{system.system}: {one.metric.title} is not defined for "
                f"{counted(more, 'answered pair')}, left out of it."
            )


def render_files(
    document: JudgeDocument, templates: Path | None = None
) -> dict[str, bytes]:
    """Return the documents by file name; see `FILES`.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    variables = {
        "document": document,
        "lines": score_lines(document),
        "spread": score_spreads(document),
        "notes": notes(document),
        "version": __version__,
    }
    folder = templates or shipped_templates()
    page = render_template(folder, "judge.md.jinja", variables)
    data = json.dumps(judge_data(document), ensure_ascii=False, indent=2) + "\n"
    return {
        "judge.md": page.encode("utf-8"),
        "judge.json": data.encode("utf-8"),
        "per_pair.csv": format_per_case(document.sheet),
        "counts.csv": _format_counts(document).encode("utf-8"),
    }


def _format_counts(document: JudgeDocument) -> str:
    """Return the counts of every pair: ids and numbers, empty where unanswered."""
    header = ["id", "system", "status", *(["matched"] if document.matches else [])]
    header += [f"significant.{name}" for name in document.categories]
    header += [f"insignificant.{name}" for name in document.categories]
    rows = (
        row for one in document.systems for row in _rows(one, matches=document.matches)
    )
    return format_csv(header, rows)


def _rows(one: JudgedSystem, *, matches: bool) -> list[Sequence[object]]:
    counts = one.answers.counts
    errors = [counts.significant, counts.insignificant]
    numbers = np.column_stack([counts.matched, *errors] if matches else errors)
    return [
        [
            shielded(case),
            shielded(one.system),
            "not_asked" if status is None else status.value,
            *("" if np.isnan(number) else int(number) for number in row),
        ]
        for case, status, row in zip(
            one.case_ids, counts.statuses, numbers, strict=True
        )
    ]


def judges_data(judges: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return judges' versions as JSON data, for a list of them."""
    return [
        {
            "prompt": one.ref,
            "digest": one.digest,
            "contract": one.contract,
            "categories": list(one.labels),
            "reads": [each.ref for each in one.reads],
            "why": one.why,
        }
        for one in judges
    ]
