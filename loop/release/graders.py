"""Judges and metrics by their names, and what they say of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled, material
from loop.core.records import Status
from loop.core.safe_text import quoted
from loop.judge.counts import (
    OWN,
    JudgeCounts,
    JudgeScore,
    score_counts,
    scores_of,
)
from loop.judge.discrimination import PairScores
from loop.judge.ensemble_versions import MemberPin
from loop.judge.judge import Judge, JudgeAnswers, JudgeFacts, list_judges
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import read_known
from loop.prompts.outputs.base import get_contract
from loop.prompts.version import PromptVersion
from loop.release.extractors import (
    ExtractorOptions,
    reads_labels,
    score_texts,
)
from loop.run.asking import EngineOptions
from loop.run.pool_shots import (
    UNKNOWN_PATIENTS,
    PairToJudge,
    find_shared,
    require_apart,
)
from loop.run.runner import Watch
from loop.score.experts.error_counts import Empty
from loop.score.joining import join_texts
from loop.score.metrics.base import Direction
from loop.score.metrics.registry import FAMILIES, METRICS, find

ALL_SCORES: Final = "all"
"""Behind the name of a judge: every score that it has."""

_SYSTEM: Final = "candidate"
_COUNTED: Final = ("n:", "L:", f"{Status.UNPARSED}:", f"{Status.ENGINE_FAILED}:")
"""Fields of a signature that depend on the pairs, and are no convention."""


class Grader(NamedTuple):
    """A metric, or a judge with some of its scores."""

    name: str
    """As named."""

    metric: str = ""
    """Of the registry; empty for a judge."""

    judge: str = ""
    """Version of a judge, by name, for example ``"green"`` or ``"green@v1"``."""

    scores: tuple[JudgeScore, ...] = ()
    """Of a judge: the named ones; empty where the judge was named alone."""

    engine: str = ""
    """Of a judge, where named; empty for that of all others."""


def resolve_graders(
    place: WorkspacePaths | None, names: Sequence[str]
) -> tuple[Grader, ...]:
    """Return what `names` name, each once, in their order.

    Parameters
    ----------
    place
        Workspace with judges of its own; None for those shipped with ranloop.
    names
        Metrics (``rouge_l``), families of metrics (``text``), judges (``green``,
        ``green@v1``), one score of a judge (``green.errors``) or all of them
        (``green.all``). A metric goes before a judge of the same name. Behind a judge
        may stand its engine: ``green=openai:MODEL@URL``.

    Raises
    ------
    DataError
        Nothing is called so, or a judge has no such score.
    """
    judges = {one.name for one in list_judges(place)}
    found: list[Grader] = []
    for name in dict.fromkeys(names):
        asked, _, engine = name.partition("=")
        judge, _, score = asked.rpartition(".") if "." in asked else (asked, "", "")
        if name in METRICS or name in FAMILIES:
            found += [Grader(one.name, metric=one.name) for one in find([name])]
        elif judge.partition("@")[0] not in judges:
            raise DataError(
                f"no metric, family or judge is called {quoted(name)}. Judges: "
                f"{', '.join(sorted(judges))}; metrics: {', '.join(METRICS)}."
            )
        else:
            scores: tuple[JudgeScore, ...] = ()
            if score:
                own = scores_of(get_contract(_judge_version(place, judge).contract))
                scores = _find_named(name, score, own)
            found.append(Grader(name, judge=judge, scores=scores, engine=engine))
    return tuple(dict.fromkeys(found))


def _judge_version(place: WorkspacePaths | None, judge: str) -> PromptVersion:
    return read_known(place or WorkspacePaths(bundled()), judge).version


def _find_named(
    name: str, score: str, scores: Sequence[JudgeScore]
) -> tuple[JudgeScore, ...]:
    """Return the one of `scores` called `score`, or all of them."""
    known = {one.name: one for one in scores}
    if score == ALL_SCORES:
        return tuple(scores)
    if score not in known:
        raise DataError(
            f"{quoted(name)}: this judge has no score {quoted(score)}. Name one of "
            f"{', '.join(known)}, or {ALL_SCORES}."
        )
    return (known[score],)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedTexts:
    """Pairs of texts that are graded."""

    ids: tuple[str, ...]
    """Each once."""

    references: tuple[str, ...]
    candidates: tuple[str, ...]
    languages: tuple[str, ...] = ()
    """Of each pair; English where nothing is said."""

    contexts: tuple[str, ...] = ()
    """What is known of the patient of each pair, for judges that read it; empty where
    nothing is."""

    cases: tuple[str, ...] = ()
    """Id of the case of each pair, which several share; empty where the ids are."""

    patients: tuple[str, ...] = ()
    """Pseudonym of the patient of each pair; empty where none is known."""

    pseudonym_key: str = ""
    """Fingerprint of the key of these pseudonyms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderOptions:
    """What graders ask, and how."""

    engine: str = "rules"
    """Of every judge that is named without one."""

    asking: EngineOptions = field(default_factory=EngineOptions)
    labels_by: str | None = None
    """Version that reads labels, for metrics of labels; None as of
    `loop.release.extractors.choose_extractor`."""

    labels_release: str | None = None
    """Name of the release instead, at most one of the two."""

    labels_engine: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedColumn:
    """One number of a metric or a judge for every pair."""

    name: str
    """``rouge_l``, ``green`` for a judge's main score, or ``green.errors``."""

    title: str
    direction: Direction
    values: NDArray[np.float64]
    """Shape ``(n_pairs,)``; NaN where there is no readable answer."""

    signature: str
    pin: MemberPin
    """What it was, so that it can be asked for again."""

    with_context: bool = False
    """Whether a judge was told what is known of the patients."""

    @property
    def pair_scores(self) -> PairScores:
        """The same without what it was, and without flags."""
        return PairScores(
            name=self.name,
            title=self.title,
            lower=self.direction is Direction.LOWER,
            values=self.values,
            signature=self.signature,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReading:
    """What a judge counts in pairs."""

    grader: Grader
    name: str
    """Of the judge, without its version."""

    ref: str
    facts: JudgeFacts
    answers: JudgeAnswers
    scores: tuple[JudgeScore, ...]
    """All that its answers can have, the main one first."""

    with_context: bool = False

    @property
    def counts(self) -> JudgeCounts:
        """What it counts, and its numbers."""
        return self.answers.counts

    def column(self, score: JudgeScore, name: str) -> GradedColumn:
        """Return one of its scores, under `name`."""
        fields = [f"{self.name}_{score.name}", *self.facts.sign]
        if self.with_context:
            fields.append("context")
        if score.weights is not None:
            fields.append(f"empty:{Empty.ONE}")
        signature = "|".join(fields)
        asked = f", {self.grader.engine}" if self.grader.engine else ""
        return GradedColumn(
            name=name,
            title=f"{score.title} of {self.ref}{asked}",
            direction=score.direction,
            values=score_counts(self.counts, score, Empty.ONE),
            signature=signature,
            with_context=self.with_context,
            pin=MemberPin(
                judge=self.ref,
                score=score.name,
                digest=self.facts.digest,
                engine=self.facts.engine,
                identity=self.facts.identity,
                conventions=signature,
            ),
        )

    @property
    def columns(self) -> tuple[GradedColumn, ...]:
        """The scores that were named; the main one where the judge was named alone.

        Of all its scores, an own one that it gives to no pair is none.
        """
        if not self.grader.scores:
            return (self.column(self.scores[0], self.grader.name),)
        named = len(self.grader.scores) == 1
        prefix, engine = self.grader.judge, self.grader.engine
        asked = f"={engine}" if engine else ""
        return tuple(
            self.column(one, f"{prefix}.{one.name}{asked}")
            for one in self.grader.scores
            if named or not (one is OWN and np.isnan(self.counts.own).all())
        )


def judge_texts(
    texts: GradedTexts,
    place: WorkspacePaths | None,
    graders: Sequence[Grader],
    options: GraderOptions,
    watch: Watch | None = None,
) -> Iterator[JudgeReading]:
    """Yield what each judge among `graders` says of the pairs.

    Raises
    ------
    DataError
        A version is not there.
    OverlapError
        A pair shares its case, its patient or its reference with a shot of a judge.
    EngineError
        The engine failed as a whole.
    """
    languages = texts.languages or ("en",) * len(texts.ids)
    opened: dict[tuple[str, str], Judge] = {}
    with ExitStack() as stack:
        for one in graders:
            if not one.judge:
                continue
            key = one.judge, one.engine or options.engine
            if key not in opened:
                opened[key] = stack.enter_context(
                    Judge.open(place, *key, options.asking)
                )
                _require_unseen(place, opened[key].version, texts, options)
            # What it was asked before it still knows.
            judge = opened[key]
            said = judge.judge(
                texts.references,
                texts.candidates,
                languages,
                watch,
                contexts=texts.contexts,
            )
            yield JudgeReading(
                grader=one,
                name=judge.version.name,
                ref=judge.version.ref,
                facts=judge.facts,
                answers=said,
                scores=scores_of(judge.contract),
                with_context=judge.reads_context and any(texts.contexts),
            )


def _require_unseen(
    place: WorkspacePaths | None,
    version: PromptVersion,
    texts: GradedTexts,
    options: GraderOptions,
) -> None:
    """Refuse pairs that share something with the shots of a judge."""
    names = texts.cases or texts.ids
    patients = texts.patients or ("",) * len(names)
    pairs = map(PairToJudge, names, texts.references, patients)
    shared = find_shared(place, version, pairs, pseudonym_key=texts.pseudonym_key)
    require_apart(version, shared, "Leave these pairs out, or choose other shots.")
    if not shared.patients_compared:
        options.asking.tell(f"{version.ref}: {UNKNOWN_PATIENTS}")


def measure_metrics(
    texts: GradedTexts,
    place: WorkspacePaths | None,
    metrics: Sequence[str],
    options: GraderOptions,
) -> tuple[GradedColumn, ...]:
    """Return what each metric says of the pairs, in the registry's order.

    Raises
    ------
    DataError
        A metric cannot run here, or there is no extractor for a metric of labels.
    EngineError
        The extractor's engine failed as a whole.
    """
    if not metrics:
        return ()
    taxonomy = read_taxonomy(material(place).labels)
    joined = join_texts(
        dict(zip(texts.ids, texts.references, strict=True)),
        {_SYSTEM: dict(zip(texts.ids, texts.candidates, strict=True))},
        taxonomy,
    )
    with_labels = reads_labels(metrics)
    extractor = ExtractorOptions(asking=options.asking)
    if with_labels:
        extractor = ExtractorOptions(
            version=options.labels_by,
            release=options.labels_release,
            engine=options.labels_engine,
            asking=options.asking,
        )
    scored = score_texts(
        joined, taxonomy, place, metrics=tuple(metrics), extractor=extractor
    )
    for unavailable in scored.sheet.unavailable:
        raise DataError(f"{unavailable.metric}: {unavailable.reason}")
    rows = {name: row for row, name in enumerate(texts.ids)}
    found = []
    for result in scored.sheet.results:
        values = np.full(len(rows), np.nan)
        ids = scored.sheet.case_ids[result.system]
        values[[rows[name] for name in ids]] = result.per_case
        reader = scored.extractor if result.metric.family == "labels" else None
        found.append(
            GradedColumn(
                name=result.metric.name,
                title=result.metric.title,
                direction=result.metric.direction,
                values=values,
                signature=result.signature,
                pin=MemberPin(
                    metric=result.metric.name,
                    labels_by=reader.ref if reader else "",
                    release=reader.release if reader else "",
                    digest=reader.digest if reader else "",
                    engine=reader.engine if reader else "",
                    identity=reader.identity if reader else "",
                    conventions="|".join(
                        one
                        for one in result.signature.split("|")
                        if not one.startswith(_COUNTED)
                    ),
                ),
            )
        )
    return tuple(found)


def grade_texts(
    texts: GradedTexts,
    place: WorkspacePaths | None,
    graders: Sequence[Grader],
    options: GraderOptions,
    watch: Watch | None = None,
) -> tuple[GradedColumn, ...]:
    """Return every number of `graders` for every pair, in their order.

    Raises
    ------
    DataError, OverlapError, EngineError
        As for `judge_texts` and `measure_metrics`.
    """
    by_judge = {
        one.grader: one.columns
        for one in judge_texts(texts, place, graders, options, watch)
    }
    metrics = [one.metric for one in graders if one.metric]
    measured = {
        one.name: one for one in measure_metrics(texts, place, metrics, options)
    }
    return tuple(
        column
        for one in graders
        for column in (by_judge[one] if one.judge else (measured[one.metric],))
    )
