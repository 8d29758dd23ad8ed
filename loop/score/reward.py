"""Ran Score as a callable: a reward to train on, and a metric of the usual form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np

from loop.core.paths import Workspace
from loop.labels.texts import has_words
from loop.prompts.version import PromptVersion
from loop.score.api import (
    EXTRACTOR,
    ScoreOptions,
    check_options,
    choose,
    ran_score,
    refuse_place,
)
from loop.score.counting import apply
from loop.score.extractor import Extractor
from loop.score.grading import grade
from loop.score.per_case import case_errors, case_f1
from loop.score.records import Column, Joined, NoFinding, Uncertain

Completion: TypeAlias = str | Sequence[Mapping[str, Any]] | None
"""A text, or the messages of a conversation, of which the last one is taken."""

_VALUES = {"f1": case_f1, "-errors": lambda *codes: -case_errors(*codes)}


class _Reader:
    """An extractor that the first use opens in each process, and that stays open."""

    def __init__(
        self,
        extractor: str | PromptVersion | Extractor,
        engine: str,
        workspace: Workspace | None = None,
    ) -> None:
        self._given = (extractor, engine, workspace)
        self._opened: Extractor | None = None

    def open(self) -> Extractor:
        if self._opened is None:
            extractor, engine, workspace = self._given
            self._opened = (
                extractor
                if isinstance(extractor, Extractor)
                else Extractor.open(workspace, extractor, engine)
            )
        return self._opened

    def __reduce__(self) -> tuple[type[_Reader], tuple[object, ...]]:
        # Trainers send their rewards to other processes, which open their own engine.
        if isinstance(self._given[0], Extractor):
            raise TypeError(
                "an open extractor stays in its process; name the version instead, so "
                "that each process opens its own"
            )
        return _Reader, self._given


class RanScoreReward:
    """Grades each completion against its reference, for a trainer such as TRL's GRPO.

    The engine is opened by the first call and kept; a text that was read before in
    this process, as a repeated reference is, is not read again. A process that is sent
    a pickle of it opens an engine of its own.

    Parameters
    ----------
    extractor
        Version that reads labels out of texts, or an open `Extractor`.
    engine
        Engine that is asked; not used with an open extractor.
    value
        ``"f1"``: F1 over the labels of the case, from 0 to 1, 1 where both texts are
        normal. ``"-errors"``: minus the number of labels missed or invented.
    column
        Column of the data set that holds the references, where the trainer passes
        columns by name and none is called ``references``.
    uncertain
        What an uncertain value counts as: ``"excl"``, ``"pos"`` or ``"neg"``.
    no_finding
        How "No Finding" is derived: ``"ran"`` or ``"chexpert"``.

    Raises
    ------
    ValueError
        An option is none of those above.

    Examples
    --------
    >>> reward = RanScoreReward()
    >>> reference = "Small left pleural effusion. Mild cardiomegaly."
    >>> reward(["Left pleural effusion.", "Normal.", ""], [reference] * 3)
    [0.6666666666666666, 0.0, 0.0]
    """

    def __init__(
        self,
        extractor: str | PromptVersion | Extractor = EXTRACTOR,
        *,
        engine: str = "rules",
        value: Literal["f1", "-errors"] = "f1",
        column: str = "reference",
        uncertain: str = "excl",
        no_finding: str = "ran",
    ) -> None:
        if value not in _VALUES:
            raise ValueError(
                f"value must be one of {', '.join(_VALUES)}, got {value!r}"
            )
        if no_finding == NoFinding.READ:
            raise ValueError(
                "no_finding 'read' needs given labels; use ran or chexpert"
            )
        self.__name__ = "ran_score"
        self._value = value
        self._column = column
        self._uncertain = choose(Uncertain, "uncertain", uncertain)
        self._no_finding = choose(NoFinding, "no_finding", no_finding)
        self._reader = _Reader(extractor, engine)

    def __call__(
        self,
        completions: Sequence[Completion],
        references: Sequence[Completion] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Return the reward of each completion.

        A completion without a word says nothing: its labels are absent. The reward is
        None, never 0, where the reference is missing or without a word, or where no
        label is decided, as when the engine failed.

        Parameters
        ----------
        completions
            Texts, or lists of messages.
        references
            One per completion, in the same order; None: in the column named when this
            was made.
        **columns
            What else a trainer passes, such as prompts; not used.

        Raises
        ------
        ValueError
            There are no references, not one per completion, or something that is
            neither a text nor messages.
        EngineError
            The engine as a whole failed.
        """
        if references is None:
            references = self._find(columns)
        truths = _texts(references, "reference")
        answers = _texts(completions, "completion")
        if len(truths) != len(answers):
            raise ValueError(
                f"need one reference per completion, got {len(truths)} for "
                f"{len(answers)}"
            )
        joined = Joined(
            case_ids=tuple(map(str, range(len(truths)))),
            reference=Column(
                name="reference",
                texts=tuple(one if one and has_words(one) else None for one in truths),
            ),
            systems=(Column(name="completion", texts=tuple(answers)),),
            coverage=(),
        )
        extractor = self._reader.open()
        graded = grade(joined, extractor.taxonomy, extractor, self._no_finding)
        values = _VALUES[self._value](
            apply(graded.reference, self._uncertain),
            apply(graded.candidates[0], self._uncertain),
        )
        return [None if np.isnan(value) else float(value) for value in values]

    def _find(self, columns: Mapping[str, Any]) -> Sequence[Completion]:
        found: Sequence[Completion] | None = columns.get(self._column)
        if found is None:
            raise ValueError(
                f"no references: the data set has no column 'references' or "
                f"{self._column!r} (passed: {', '.join(sorted(columns)) or 'none'})"
            )
        return found


class RanScoreMetric:
    """Ran Score of predictions, called as metrics of Hugging Face's evaluate are.

    Parameters
    ----------
    extractor
        Version that reads labels out of texts, or an open `Extractor`.
    **options
        As for `loop.score.ran_score`.

    Examples
    --------
    >>> metric = RanScoreMetric(resamples=200)
    >>> texts = ["Small left pleural effusion.", "Cardiomegaly."]
    >>> found = metric.compute(predictions=texts, references=texts)
    >>> found["ran_score"], found["effective_labels"], found["n"]
    (1.0, 2, 2)
    """

    name = "ran_score"

    def __init__(
        self,
        extractor: str | PromptVersion | Extractor = EXTRACTOR,
        **options: Unpack[ScoreOptions],
    ) -> None:
        check_options(options)
        if isinstance(extractor, Extractor):
            refuse_place(options)
        place, engine = options.pop("workspace", None), options.pop("engine", "rules")
        self._reader = _Reader(extractor, engine, place)
        self._options = options

    def compute(
        self, *, predictions: Sequence[str], references: Sequence[str]
    ) -> dict[str, float | int | str | None]:
        """Return the score, its interval, its counts and its signature.

        Parameters
        ----------
        predictions, references
            Texts in the same order, one reference per prediction.

        Raises
        ------
        DataError
            There are none, or no reference holds a word.
        ValueError
            They are not of one length, or not texts.
        """
        result = ran_score(
            _listed(references, "reference"),
            _listed(predictions, "prediction"),
            extractor=self._reader.open(),
            **self._options,
        )
        (one,) = result.ranking.systems
        return {
            "ran_score": one.ran_score.value,
            "ran_score_low": one.ran_score.low,
            "ran_score_high": one.ran_score.high,
            "micro_f1": one.micro_f1.value,
            "effective_labels": one.effective_labels,
            "n": one.n,
            "signature": one.signature,
        }


def _listed(given: object, what: str) -> list[Any]:
    """Return what was given for all rows as a list; refuse a single text."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise ValueError(f"{what}s: expected a list, got {type(given).__name__}")
    return list(given)


def _texts(given: object, what: str) -> list[str | None]:
    return [
        _text(one, f"{what} {place}") for place, one in enumerate(_listed(given, what))
    ]


def _text(completion: object, where: str) -> str | None:
    """Return the text of a completion: itself, or the content of its last message."""
    if completion is None or completion != completion:
        # NaN is how a table of references writes that there is none.
        return None
    if isinstance(completion, str):
        return completion
    messages = completion if isinstance(completion, Sequence) else [None]
    last = messages[-1] if len(messages) else {}
    if not isinstance(last, Mapping):
        raise ValueError(
            f"{where}: expected a text or a list of messages, got "
            f"{type(completion).__name__}. Give each completion one reference"
        )
    # A message that only calls a tool holds no content and says nothing.
    content = last.get("content") or ""
    if isinstance(content, str):
        return content
    # Messages of models that see images hold a list of parts.
    return " ".join(
        part.get("text") or "" for part in content if part.get("type") == "text"
    )
