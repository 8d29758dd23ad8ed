"""A judge of pairs of reports: a prompt version, an engine, how answers are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_json
from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import PromptTask, Status
from loop.judge.counts import (
    OWN,
    JudgeCounts,
    JudgeScore,
    answer_fields,
    read_counts,
    score_counts,
    scores_of,
)
from loop.judge.radfact import harmonic_of_means, radfact_parts
from loop.prompts.catalog import list_prompts, read_known
from loop.prompts.outputs.base import Contract, choose_parser, get_contract
from loop.prompts.outputs.green_sections import ParserMode
from loop.prompts.outputs.judged import INPUTS
from loop.prompts.render import CONTEXT
from loop.prompts.shot_records import Shots
from loop.prompts.stages import given_texts
from loop.prompts.version import PromptVersion
from loop.run.asking import EngineOptions
from loop.run.execute import Problem, Usage
from loop.run.runner import PromptRunner, RunnerOptions, Watch
from loop.run.task_fields import task_of
from loop.score.experts.error_counts import Empty
from loop.score.metrics.base import (
    Metric,
    MetricInput,
    MetricOptions,
    Scores,
    Unavailable,
    both_texts,
    count_defined,
    mean_scores,
    sign,
)

FOLDER: Final = "judge"
"""Folder of the store of answers, in the private part of a workspace."""


_SYSTEMS: Final = 64
"""Systems whose answers are kept in memory."""


class JudgeAnswers(NamedTuple):
    """What a judge said of some pairs, and how much was asked for it."""

    counts: JudgeCounts
    asked: int
    """Prompts that the engine was asked."""

    cached: int
    """Prompts whose answer was there already."""

    problems: tuple[Problem, ...] = ()
    """Why pairs have no readable answer; the examples name no case."""

    used: Usage = Usage()
    """Tokens of the answers, as far as the engine counted them."""

    seconds: float = 0.0
    """Until each answer came, added up, also of answers that were there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """What two scores of a judge must share."""

    ref: str
    digest: str
    engine: str
    identity: str
    """Digest of the engine's identity and parameters."""

    parser: ParserMode
    shots: Shots | None = None
    """Which examples the judge is shown."""

    @property
    def sign(self) -> tuple[str, ...]:
        """Fields of a signature: ``green@v1:3f2a...``, engine, parser, shots."""
        return (
            f"{self.ref}:{self.digest[:8]}",
            f"{self.engine}:{self.identity[:8]}",
            f"parser:{self.parser}",
            *((self.shots.sign,) if self.shots else ()),
        )


class Judge:
    """A prompt version and an engine that judge candidates against references.

    Make one with `open`. It holds the engine from the first pair on, until it is
    closed, as a context manager or by `close`.

    Examples
    --------
    >>> with Judge.open(None, "green") as judge:
    ...     said = judge.judge(["Left effusion."], ["Right effusion."], ["en"])
    >>> int(said.counts.significant.sum())
    1
    """

    def __init__(
        self,
        runner: PromptRunner,
        parser: ParserMode = ParserMode.TOLERANT,
        workspace: WorkspacePaths | None = None,
    ) -> None:
        """Prepare to ask; see `open` for what may be wrong."""
        self.version: Final = runner.version
        self.parser: Final = parser
        self.workspace: Final = workspace
        """Where the pool of its shots is; None for what ships."""
        self._runner = runner
        self._said: dict[tuple[tuple[str, ...], ...], JudgeAnswers] = {}

    @classmethod
    def open(
        cls,
        workspace: WorkspacePaths | None,
        version: str | PromptVersion,
        engine: str = "rules",
        asking: EngineOptions | None = None,
        *,
        parser: ParserMode = ParserMode.TOLERANT,
        store: bool = True,
    ) -> Judge:
        """Return a judge whose engine starts with the first pair.

        Parameters
        ----------
        workspace
            Where prompt versions and settings are; None for those shipped with
            ranloop, without a store.
        version
            Reference of a version whose task is to judge, for example ``"green@v1"``:
            of the workspace, or else of what ships with ranloop. Or the version itself.
        engine
            Engine name; ``"rules"`` needs no model and is none.
        asking
            How the engine is asked; None for greedily.
        parser
            How answers in the published four sections are read.
        store
            Whether answers are kept in the workspace: the same pairs are not asked
            twice, and what was killed goes on.

        Raises
        ------
        DataError
            The version is not there, does not judge pairs, or is not answered in
            sections that the published parser reads.
        EngineError
            There is no such engine.
        StoreError
            The store cannot be opened.
        """
        found = find_judge(workspace, version)
        _require_pairs(found)
        contract = choose_parser(get_contract(found.contract), parser)
        options = RunnerOptions(
            folder=FOLDER if store else "",
            fields=answer_fields(found.labels, contract),
            contract=contract,
            about="reference",
        )
        runner = PromptRunner.open(workspace, found, engine, asking, options)
        return cls(runner, parser, workspace)

    @property
    def contract(self) -> Contract:
        """What reads the answers."""
        return self._runner.contract

    @property
    def reads_context(self) -> bool:
        """Whether its prompt has what is known of the patient."""
        return CONTEXT in self.version.inputs

    @property
    def facts(self) -> JudgeFacts:
        """What two scores must share; opens the engine.

        Raises
        ------
        EngineError
            The engine is not available.
        """
        return JudgeFacts(
            ref=self.version.ref,
            digest=self.version.digest,
            engine=self._runner.engine,
            identity=self._runner.identity,
            parser=self.parser,
            shots=self.version.shots,
        )

    def close(self) -> None:
        """Let go of the engine and the store; what was answered stays."""
        self._runner.close()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def judge(
        self,
        references: Sequence[str],
        candidates: Sequence[str],
        languages: Sequence[str],
        watch: Watch | None = None,
        *,
        contexts: Sequence[str] = (),
    ) -> JudgeAnswers:
        """Return what the judge says of pairs, asking about each distinct one once.

        A candidate that says nothing is judged as any other. A pair whose reference
        holds no word is not asked about.

        Parameters
        ----------
        references, candidates, languages
            One of each a pair.
        watch
            Wraps the pairs that are not remembered; None for no progress.
        contexts
            What is known of the patient of each pair, for a judge that reads it; empty
            where nothing is.

        Raises
        ------
        ValueError
            They are not of equal length.
        EngineError
            The engine as a whole failed; what it answered until then is kept.
        StoreError
            The store cannot be read or written.
        """
        known_of = contexts if self.reads_context else ()
        key = tuple(map(tuple, (references, candidates, languages, known_of)))
        known = self._said.get(key)
        if known is None:
            texts = [
                {"reference": reference, "candidate": candidate}
                for reference, candidate in zip(references, candidates, strict=True)
            ]
            if self.reads_context:
                said = contexts or [""] * len(texts)
                texts = [
                    {**one, CONTEXT: context}
                    for one, context in zip(texts, said, strict=True)
                ]
            asked = self._runner.ask(texts, languages, watch)
            known = JudgeAnswers(
                counts=read_counts(asked.answers, self.version.labels, self.contract),
                asked=asked.asked,
                cached=asked.cached,
                problems=asked.problems,
                used=asked.used,
                seconds=asked.waited,
            )
            # All scores of a system ask about the same pairs, one after another.
            if len(self._said) >= _SYSTEMS:
                self._said.clear()
            self._said[key] = known
        return known


def find_judge(
    workspace: WorkspacePaths | None, version: str | PromptVersion
) -> PromptVersion:
    """Return a judge's version: of the workspace, or else of what ships.

    Raises
    ------
    DataError
        The version is not there, or is no judge.
    """
    place = workspace or WorkspacePaths(bundled())
    if isinstance(version, str):
        version = read_known(place, version).version
    if task_of(version) is not PromptTask.JUDGE:
        raise DataError(
            f"{version.ref} judges no pairs: its contract {version.contract} is for "
            "another task. `ranloop judge --list` shows the judges."
        )
    return version


def _require_pairs(version: PromptVersion) -> None:
    """Refuse a judge of anything but a reference and one candidate."""
    if not _judges_pairs(version):
        raise DataError(
            f"{version.ref} judges no pairs: it reads {', '.join(version.inputs)}, and "
            "not a reference with one candidate. `ranloop judge --list` shows which "
            "judges do."
        )


def list_judges(workspace: WorkspacePaths | None) -> tuple[PromptVersion, ...]:
    """Return the newest version of each judge, the workspace's before those shipped.

    Raises
    ------
    DataError
        A prompt cannot be read.
    """
    shipped = WorkspacePaths(bundled())
    found: dict[str, PromptVersion] = {}
    for place in (workspace, shipped) if workspace else (shipped,):
        for name in list_prompts(place):
            if name not in found:
                version = read_known(place, name).version
                judges = task_of(version) is PromptTask.JUDGE
                # A first stage that reads one text judges nothing by itself.
                if judges and "reference" in given_texts(version.inputs):
                    found[name] = version
    return tuple(found.values())


def _judges_pairs(version: PromptVersion) -> bool:
    """Whether a version judges a reference and one candidate."""
    judges = task_of(version) is PromptTask.JUDGE
    return judges and set(INPUTS) <= set(given_texts(version.inputs))


def counts_errors(version: PromptVersion) -> bool:
    """Whether a judge counts errors by category."""
    return get_contract(version.contract).counts_errors


def is_answered_by_rules(version: PromptVersion) -> bool:
    """Whether `rules` answers a judge: in JSON, by the guides of an extractor."""
    return bool(version.reads and get_contract(version.contract).schema(version.labels))


def judge_metrics(
    judge: Judge,
    scores: Sequence[JudgeScore] | None = None,
    empty: Empty = Empty.ONE,
    watch: Watch | None = None,
) -> tuple[Metric, ...]:
    """Return the scores of an open judge as metrics of the family ``judge``.

    Parameters
    ----------
    scores
        Which of them; None for all that its answers can have.
    empty
        What a pair without matches and errors scores where the form has weights.
    watch
        As for `Judge.judge`.
    """
    wanted = scores_of(judge.contract) if scores is None else scores
    return tuple(_metric(judge, one, empty, watch) for one in wanted)


def _metric(
    judge: Judge, score: JudgeScore, empty: Empty, watch: Watch | None
) -> Metric:
    name = f"{judge.version.name}_{score.name}"
    return Metric(
        name=name,
        title=f"{score.title} of {judge.version.ref}",
        direction=score.direction,
        low=score.low,
        high=score.high,
        needs="texts",
        about=score.about,
        reference=score.source,
        score=partial(
            _measure, name=name, judge=judge, of=score, empty=empty, watch=watch
        ),
        family="judge",
    )


def _measure(
    side: MetricInput,
    options: MetricOptions,
    *,
    name: str,
    judge: Judge,
    of: JudgeScore,
    empty: Empty,
    watch: Watch | None,
) -> Scores | Unavailable:
    texts = both_texts(side, name)
    if isinstance(texts, Unavailable):
        return texts
    try:
        said = judge.judge(*texts, side.languages, watch, contexts=side.contexts)
    except EngineError as error:
        return Unavailable(name, str(error))
    values = score_counts(said.counts, of, empty)
    if of is OWN and not count_defined(values):
        return Unavailable(name, "the judge gives itself no score")
    fields = [*judge.facts.sign]
    if judge.reads_context:
        fields.append(f"context:{sum(map(bool, side.contexts))}")
    if judge.version.shots is not None:
        fields.append(f"pairs:{digest_json([*zip(*texts, strict=True)])[:8]}")
    if of.weights is not None:
        fields.append(f"empty:{empty}")
    fields += [
        f"{status}:{count}"
        for status in (Status.UNPARSED, Status.ENGINE_FAILED)
        if (count := said.counts.count(status))
    ]
    if of.means is not None:
        return _score_of_means(said.counts, of, values, (name, *fields))
    signature = sign(name, *fields, "mean:pairs", n=count_defined(values))
    return mean_scores(values, signature)


def _score_of_means(
    counts: JudgeCounts,
    of: JudgeScore,
    values: NDArray[np.float64],
    signed: tuple[str, ...],
) -> Scores:
    """Return a score of which the system's value is no mean over its pairs."""
    precision, recall = map(counts.number, of.means or ())
    parts = radfact_parts(precision, recall)
    (value,) = harmonic_of_means(parts.sum(axis=0, keepdims=True))
    n = int((~np.isnan(precision) | ~np.isnan(recall)).sum())
    return Scores(
        per_case=values,
        value=None if np.isnan(value) else float(value),
        signature=sign(*signed, "harmonic:means", n=n),
        parts=parts,
        combine=harmonic_of_means,
    )
