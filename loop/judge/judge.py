"""A judge of pairs of reports: a prompt version, an engine, how answers are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import PromptTask, Status
from loop.judge.counts import (
    OWN,
    SCORES,
    JudgeCounts,
    JudgeScore,
    answer_fields,
    read_counts,
    score_counts,
    weighs_errors,
)
from loop.prompts.catalog import list_prompts, read_known
from loop.prompts.outputs.base import choose_parser, get_contract
from loop.prompts.outputs.green_sections import ParserMode
from loop.prompts.version import PromptVersion
from loop.run.asking import EngineOptions
from loop.run.execute import Problem, Usage
from loop.run.runner import PromptRunner, RunnerOptions, Watch
from loop.run.task_fields import task_of
from loop.score.experts.error_counts import Empty
from loop.score.metrics.base import (
    Direction,
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
"""Systems whose answers are at hand."""


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

    @property
    def sign(self) -> tuple[str, ...]:
        """Fields of a signature: ``green@v1:3f2a...``, engine, parser."""
        return (
            f"{self.ref}:{self.digest[:8]}",
            f"{self.engine}:{self.identity[:8]}",
            f"parser:{self.parser}",
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
        self, runner: PromptRunner, parser: ParserMode = ParserMode.TOLERANT
    ) -> None:
        """Prepare to ask; see `open` for what may be wrong."""
        self.version: Final = runner.version
        self.parser: Final = parser
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
        place = workspace or WorkspacePaths(bundled())
        found = (
            read_known(place, version).version if isinstance(version, str) else version
        )
        _require_judge(found)
        contract = choose_parser(get_contract(found.contract), parser)
        options = RunnerOptions(
            folder=FOLDER if store else "",
            fields=answer_fields(found.labels, contract),
            contract=contract,
            about="reference",
        )
        runner = PromptRunner.open(workspace, found, engine, asking, options)
        return cls(runner, parser)

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

        Raises
        ------
        ValueError
            The three are not of equal length.
        EngineError
            The engine as a whole failed; what it answered until then is kept.
        StoreError
            The store cannot be read or written.
        """
        key = (tuple(references), tuple(candidates), tuple(languages))
        known = self._said.get(key)
        if known is None:
            texts = [
                {"reference": reference, "candidate": candidate}
                for reference, candidate in zip(references, candidates, strict=True)
            ]
            asked = self._runner.ask(texts, languages, watch)
            known = JudgeAnswers(
                counts=read_counts(
                    asked.answers,
                    self.version.labels,
                    weighs=weighs_errors(self._runner.contract),
                ),
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


def _require_judge(version: PromptVersion) -> None:
    """Refuse a version that does not judge pairs of reports."""
    if task_of(version) is not PromptTask.JUDGE:
        raise DataError(
            f"{version.ref} judges no pairs: its contract {version.contract} is for "
            "another task. `ranloop judge --list` shows the judges."
        )


def list_judges(workspace: WorkspacePaths | None) -> tuple[PromptVersion, ...]:
    """Return the newest version of each judge, the workspace's before those shipped.

    A prompt that cannot be read is left out: naming it says why.
    """
    shipped = WorkspacePaths(bundled())
    found: dict[str, PromptVersion] = {}
    for place in (workspace, shipped) if workspace else (shipped,):
        for name in list_prompts(place):
            if name not in found:
                version = read_known(place, name).version
                if task_of(version) is PromptTask.JUDGE:
                    found[name] = version
    return tuple(found.values())


def judge_metrics(
    judge: Judge,
    scores: Sequence[JudgeScore] = SCORES,
    empty: Empty = Empty.ONE,
    watch: Watch | None = None,
) -> tuple[Metric, ...]:
    """Return the scores of an open judge as metrics of the family ``judge``.

    Parameters
    ----------
    scores
        Which of them.
    empty
        What a pair without matches and errors scores where the form has weights.
    watch
        As for `Judge.judge`.
    """
    return tuple(_metric(judge, one, empty, watch) for one in scores)


def _metric(
    judge: Judge, score: JudgeScore, empty: Empty, watch: Watch | None
) -> Metric:
    name = f"{judge.version.name}_{score.name}"
    return Metric(
        name=name,
        title=f"{score.title} of {judge.version.ref}",
        direction=score.direction,
        low=0.0,
        high=1.0 if score.direction is Direction.HIGHER else None,
        needs="texts",
        about=score.about,
        reference="Ostmeier S et al. Findings of EMNLP 2024:374-390",
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
        said = judge.judge(*texts, side.languages, watch)
    except EngineError as error:
        return Unavailable(name, str(error))
    values = score_counts(said.counts, of, empty)
    if of is OWN and not count_defined(values):
        return Unavailable(name, "the judge gives itself no score")
    fields = [*judge.facts.sign]
    if of.weights is not None:
        fields.append(f"empty:{empty}")
    fields += [
        f"{status}:{count}"
        for status in (Status.UNPARSED, Status.ENGINE_FAILED)
        if (count := said.counts.count(status))
    ]
    signature = sign(name, *fields, "mean:pairs", n=count_defined(values))
    return mean_scores(values, signature)
