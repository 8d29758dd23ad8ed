"""Reads labels out of texts with one prompt version and one engine, each text once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from loop.core.errors import DataError, LoopError
from loop.core.paths import WorkspacePaths
from loop.core.records import Status, Value, ValueCode
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.version import PromptVersion
from loop.run.asking import EngineOptions
from loop.run.execute import Problem
from loop.run.runner import ItemAnswer, PromptRunner, RunnerOptions, Watch
from loop.score.records import Codes, ExtractorFacts

FOLDER: Final = "score"
"""Folder of the store of answers, in the private part of a workspace."""

_CODES: Mapping[object, int] = {
    Value.PRESENT.value: ValueCode.PRESENT,
    Value.ABSENT.value: ValueCode.ABSENT,
    Value.UNCERTAIN.value: ValueCode.UNCERTAIN,
}


class Extracted(NamedTuple):
    """What was read out of some texts."""

    codes: Codes
    """Shape ``(n_texts, n_labels)``, the labels of the taxonomy. Missing where
    nothing was asked: an empty text, a label that the version does not ask for or the
    engine does not know, and "No Finding", which is derived unless the engine answers
    it."""

    keys: tuple[str, ...]
    """What names each text in `problems`; empty for an empty text."""

    statuses: tuple[Status | None, ...]
    """How each text ended; None for an empty one, which nothing was asked about."""

    asked: int = 0
    """Prompts the engine was asked."""

    cached: int = 0
    """Prompts whose answer was there already, in the store or in memory."""

    answered: int = 0
    """Distinct texts by outcome; together they are all distinct texts with a word."""

    unparsed: int = 0
    failed: int = 0
    problems: tuple[Problem, ...] = ()
    """Why texts are unparsed or failed; the examples are `keys`."""


class Extractor:
    """A prompt version and an engine that read labels out of texts.

    Make one with `open`. It holds the engine from the first text on, until it is
    closed, as a context manager or by `close`.

    Examples
    --------
    >>> with Extractor.open(None, "extractor@v7") as extractor:
    ...     found = extractor.read(["Small left pleural effusion."], ["en"])
    >>> place = extractor.labels.index("pleural_effusion")
    >>> int(found.codes[0, place]), found.answered
    (1, 1)
    """

    def __init__(
        self, runner: PromptRunner, taxonomy: Taxonomy, *, release: str = ""
    ) -> None:
        """Prepare to ask; see `open` for what may be wrong."""
        check_extractor(runner.version, taxonomy)
        self.version = runner.version
        self.taxonomy = taxonomy
        self.release = release
        self._runner = runner
        asked = [label for label in taxonomy.ids if label in runner.fields]
        self._columns = [
            (taxonomy.ids.index(label), runner.fields.index(label)) for label in asked
        ]
        self._blank: list[int] = [
            ValueCode.UNANSWERED if label in asked else ValueCode.MISSING
            for label in taxonomy.ids
        ]

    @classmethod
    def open(
        cls,
        workspace: WorkspacePaths | None,
        version: str | PromptVersion,
        engine: str = "rules",
        asking: EngineOptions | None = None,
        *,
        release: str = "",
        store: bool = True,
    ) -> Extractor:
        """Return an extractor whose engine starts with the first text.

        Parameters
        ----------
        workspace
            Where prompt versions, cues and settings are; None for those shipped with
            ranloop, without a store.
        version
            Reference of a version, for example ``"extractor@v7"``: of the workspace,
            or else of what ships with ranloop. Or the version itself, as a release
            ships it.
        engine
            Engine name, for example ``"rules"``; a replay cannot answer new texts.
        asking
            How the engine is asked; None for greedily.
        release
            Name of the verified release that `version` was taken from.
        store
            Whether answers are kept in the workspace, beside its runs and never among
            them: the same texts are not asked twice, and a killed scoring goes on.

        Raises
        ------
        DataError
            The version is not there, does not read one text, or asks for a label that
            the taxonomy does not have.
        EngineError
            There is no such engine.
        StoreError
            The store cannot be opened.
        """
        if not isinstance(version, str | PromptVersion):
            raise ValueError(
                "extractor must be the reference of a version, as 'extractor@v7', a "
                f"PromptVersion or an open Extractor, got {type(version).__name__}"
            )
        options = RunnerOptions(folder=FOLDER if store else "")
        runner = PromptRunner.open(workspace, version, engine, asking, options)
        try:
            taxonomy = read_taxonomy(runner.material.labels)
            return cls(runner, taxonomy, release=release)
        except LoopError:
            runner.close()
            raise

    @property
    def labels(self) -> tuple[str, ...]:
        """Label ids of the codes, in published order."""
        return self.taxonomy.ids

    @cached_property
    def facts(self) -> ExtractorFacts:
        """What two scores must share; opens the engine.

        Raises
        ------
        EngineError
            The engine is not available.
        """
        return ExtractorFacts(
            ref=self.version.ref,
            digest=self.version.digest,
            engine=self._runner.engine,
            identity=self._runner.identity,
            asked=self._runner.asker,
            release=self.release,
        )

    def close(self) -> None:
        """Let go of the engine and the store; what was answered stays."""
        self._runner.close()

    def __enter__(self) -> Extractor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def read(
        self, texts: Sequence[str], languages: Sequence[str], watch: Watch | None = None
    ) -> Extracted:
        """Return the codes of `texts`, asking about each distinct one once.

        The order of texts changes nothing. What could not be answered is unanswered
        and is asked again next time. Threads that call it take turns.

        Parameters
        ----------
        texts, languages
            One language per text, for example ``"en"``.
        watch
            Wraps the texts that are not remembered; None for no progress.

        Raises
        ------
        ValueError
            There is not one language per text, or the extractor was closed.
        EngineError
            The engine as a whole failed; what it answered until then is kept.
        StoreError
            The store cannot be read or written.
        """
        asked = self._runner.ask([{"text": text} for text in texts], languages, watch)
        codes = np.array([self._row(one) for one in asked.answers], dtype=np.int8)
        return Extracted(
            codes.reshape(len(texts), len(self.labels)),
            asked.keys,
            tuple(None if one is None else one.status for one in asked.answers),
            asked.asked,
            asked.cached,
            asked.answered,
            asked.unparsed,
            asked.failed,
            asked.problems,
        )

    def _row(self, answer: ItemAnswer | None) -> list[int]:
        """Return the codes of one text."""
        if answer is None:
            return [ValueCode.MISSING] * len(self._blank)
        row = self._blank.copy()
        values = answer.values
        for place, column in self._columns:
            value = values[column]
            if value is not None:
                row[place] = _CODES[value]
        return row


def check_extractor(version: PromptVersion, taxonomy: Taxonomy) -> None:
    """Refuse a version that does not read the taxonomy's labels out of one text.

    Raises
    ------
    DataError
        It reads other texts, or asks for a label that the taxonomy does not have.
    """
    if version.inputs != ("text",):
        raise DataError(
            f"{version.ref} reads {' and '.join(version.inputs)}, and an extractor "
            "reads one text. Name a version of an extractor."
        )
    unknown = [label for label in version.labels if label not in taxonomy.ids]
    if unknown:
        raise DataError(
            f"{version.ref} asks for {', '.join(unknown)}, which labels/taxonomy.yaml "
            "does not have. Name a version that asks for its labels."
        )
