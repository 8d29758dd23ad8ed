"""Ran Score as a callable: a reward to train on, and a metric of the usual form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
import pandas as pd

from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.labels.language import has_words
from loop.prompts.version import PromptVersion
from loop.score.api import (
    EXTRACTOR,
    ScoreOptions,
    check_options,
    choose,
    ran_score,
    refuse_place,
)
from loop.score.counting import apply_to_pairs, case_errors, case_f1
from loop.score.extractor import Extractor
from loop.score.grading import grade
from loop.score.records import Joined, NoFinding, PairSide, Uncertain

Completion: TypeAlias = str | Sequence[Mapping[str, Any]] | None
"""A text, or the messages of a conversation, of which the last one is taken."""

# Taken from zero: minus zero would be logged as -0.0.
_VALUES = MappingProxyType(
    {"f1": case_f1, "-errors": lambda *codes: 0.0 - case_errors(*codes)}
)
# Trainers log rewards by name, and average those that share one.
_NAMES = MappingProxyType({"f1": "ran_score", "-errors": "ran_score_errors"})


class _Reader:
    """An extractor that the first use opens in each process, and that stays open."""

    def __init__(
        self,
        extractor: str | PromptVersion | Extractor,
        engine: str,
        workspace: WorkspacePaths | None = None,
    ) -> None:
        self._given = (extractor, engine, workspace)
        self._opened: Extractor | None = None
        self._opening = Lock()

    def open(self) -> Extractor:
        with self._opening:
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
    a pickle of it opens an engine of its own; threads take turns.

    It sees findings and nothing else: a text that names none reads as normal, whatever
    it says, so train with a reward for the language beside it. Cut reasoning off before
    the report: what stands in the text is graded. Trainers log it by its ``__name__``,
    ``ran_score`` or ``ran_score_errors``; set that where you use two of one kind, or
    they are logged as one.

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
        columns by name; None: ``references``, else ``reference``.
    uncertain
        What an uncertain value counts as: ``"wrong"``, ``"pos"``, ``"neg"`` or
        ``"excl"``, as for `ran_score` and with its default. Never train with
        ``"excl"``: a model soon learns that it is never wrong to call every finding
        possible.
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
        column: str | None = None,
        uncertain: str = Uncertain.WRONG,
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
        self.__name__ = _NAMES[value]
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
            was made, which goes before these wherever a trainer passes columns.
        **columns
            What else a trainer passes, such as prompts.

        Raises
        ------
        ValueError
            There are no references, not one per completion, or something that is
            neither a text nor messages.
        EngineError
            The engine as a whole failed.
        """
        named = self._column not in (None, "references")
        if references is None or (columns and named):
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
            reference=PairSide(
                name="reference",
                texts=tuple(one if one and has_words(one) else None for one in truths),
            ),
            systems=(PairSide(name="completion", texts=tuple(answers)),),
            coverage=(),
        )
        extractor = self._reader.open()
        graded = grade(joined, extractor.taxonomy, extractor, self._no_finding)
        values = _VALUES[self._value](
            *apply_to_pairs(graded.reference, graded.candidates[0], self._uncertain)
        )
        return [None if np.isnan(value) else float(value) for value in values]

    def _find(self, columns: Mapping[str, Any]) -> Sequence[Completion]:
        column = self._column or "reference"
        found: Sequence[Completion] | None = columns.get(column)
        if found is None:
            wanted = repr(column) if self._column else "'references' or 'reference'"
            raise ValueError(
                f"no references: the data set has no column {wanted} (passed: "
                f"{', '.join(map(quoted, sorted(columns))) or 'none'}). Name theirs by "
                "`column`"
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
        self._added: list[tuple[str, str]] = []

    def add(self, *, prediction: str, reference: str) -> None:
        """Keep one pair for the next `compute`."""
        self.add_batch(predictions=[prediction], references=[reference])

    def add_batch(
        self, *, predictions: Sequence[str], references: Sequence[str]
    ) -> None:
        """Keep pairs for the next `compute`.

        Raises
        ------
        ValueError
            They are not of one length, or not lists.
        """
        self._added += _pairs(predictions, references)

    def compute(
        self,
        *,
        predictions: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> dict[str, float | int | str | None]:
        """Return the score, its interval, its counts and its signature.

        Parameters
        ----------
        predictions, references
            Texts in the same order, one reference per prediction, after what was added
            before, which is then forgotten. None: only that.

        Returns
        -------
        dict
            ``ran_score`` and ``micro_f1`` are None where no label is decided.

        Raises
        ------
        DataError
            There are none, no reference holds a word, or one is not a text.
        ValueError
            They are not of one length, or not lists.
        """
        told = () if predictions is None else predictions
        truths = () if references is None else references
        pairs = [*self._added, *_pairs(told, truths)]
        result = ran_score(
            [reference for _, reference in pairs],
            [prediction for prediction, _ in pairs],
            extractor=self._reader.open(),
            **self._options,
        )
        self._added = []
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


def _pairs(predictions: object, references: object) -> list[tuple[Any, Any]]:
    """Return predictions with their references; refuse lists of other lengths."""
    told, truths = _listed(predictions, "prediction"), _listed(references, "reference")
    if len(told) != len(truths):
        raise ValueError(
            f"need one reference per prediction, got {len(truths)} for {len(told)}"
        )
    return list(zip(told, truths, strict=True))


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
    if completion is None or completion is pd.NA or completion != completion:
        # NaN and NA are how a table of references writes that there is none.
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
    # A message that only calls a tool holds no content and says nothing, and what the
    # tool answers is not the model's.
    content = "" if last.get("role") == "tool" else last.get("content") or ""
    if isinstance(content, str):
        return content
    # Messages of models that see images hold a list of parts.
    return " ".join(
        part.get("text") or "" for part in content if part.get("type") == "text"
    )
