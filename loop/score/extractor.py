"""Reads labels out of texts with one prompt version and one engine, each text once."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Final, NamedTuple

import numpy as np

from loop.core.digests import canonical_json, digest_bytes, digest_json, framed
from loop.core.errors import DataError
from loop.core.files import write_error
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Item, Status, Value, ValueCode
from loop.labels.language import has_words
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.catalog import read_known
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.prompts.version import PromptVersion
from loop.run.asking import EngineOptions, HeldEngine, hold_engine
from loop.run.execute import Problem, RunSummary, Work, execute
from loop.run.spec import RunSpec
from loop.run.store import RunRecord, Store, Values, read_values
from loop.score.records import Codes, ExtractorFacts

_MATERIAL: Final = ("prompts", "labels")


def forget_run(store: Store, run: RunRecord) -> None:
    """Remove the outcomes of a run that was read: its completions are what is kept."""
    # First the folder: while the run is there, no other one takes its name.
    shutil.rmtree(store.path.parent / "runs" / run.id, ignore_errors=True)
    with store.writing() as connection:
        connection.execute("DELETE FROM outcomes WHERE run = ?", [run.number])
        connection.execute("DELETE FROM runs WHERE number = ?", [run.number])


@contextmanager
def shipped_material() -> Iterator[Path]:
    """Give a workspace of the shipped material that nothing is kept in."""
    with tempfile.TemporaryDirectory(prefix="ranloop-") as folder:
        try:
            for part in _MATERIAL:
                os.symlink(bundled() / part, Path(folder) / part)
        except OSError as error:
            raise write_error(Path(folder), error) from error
        yield Path(folder)


@contextmanager
def place_of_store(workspace: WorkspacePaths | None) -> Iterator[Path]:
    """Give the folder of the store: in the workspace, or one that goes afterwards."""
    if workspace is not None:
        yield workspace.open_private() / "score"
        return
    with tempfile.TemporaryDirectory(prefix="ranloop-") as folder:
        yield Path(folder)


Watch = Callable[[Iterable[Item]], Iterable[Item]]
"""Wraps the texts that are asked about, to show progress."""

REMEMBERED: Final = 65_536
"""Texts whose answers an extractor keeps in memory, about 10 MB."""

_CODES: Mapping[object, int] = {
    Value.PRESENT.value: ValueCode.PRESENT,
    Value.ABSENT.value: ValueCode.ABSENT,
    Value.UNCERTAIN.value: ValueCode.UNCERTAIN,
}


class Extracted(NamedTuple):
    """What was read out of some texts."""

    codes: Codes
    """Shape ``(n_texts, n_labels)``, the labels of the taxonomy. Missing where
    nothing was asked: an empty text, a label the version does not ask for, and
    "No Finding", which is derived and never asked."""

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


class _Read(NamedTuple):
    """What was read of one text."""

    status: Status | None
    row: list[int]


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
        self,
        version: PromptVersion,
        taxonomy: Taxonomy,
        engine: HeldEngine,
        store: Store,
        *,
        release: str = "",
    ) -> None:
        """Prepare to ask; see `open` for what may be wrong."""
        _check(version, taxonomy)
        self.version = version
        self.taxonomy = taxonomy
        self.release = release
        self._engine = engine
        self._store = store
        self._contract = get_contract(version.contract)
        self._plan = plan_prompts(version, self._contract.schema)
        self._asked = [
            (taxonomy.ids.index(label), label)
            for label in taxonomy.extracted
            if label in version.labels
        ]
        self._blank: list[int] = [
            ValueCode.UNANSWERED
            if label in dict(self._asked).values()
            else ValueCode.MISSING
            for label in taxonomy.ids
        ]
        self._known: dict[str, list[int]] = {}
        self._reading = Lock()
        self._closing = ExitStack().close
        self._closed = False

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
        with ExitStack() as stack:
            place = workspace or WorkspacePaths(stack.enter_context(shipped_material()))
            found = (
                read_known(place, version).version
                if isinstance(version, str)
                else version
            )
            folder = stack.enter_context(place_of_store(place if store else None))
            kept = Store(folder / "store.db")
            stack.callback(kept.close)
            held = stack.enter_context(hold_engine(place, engine, asking))
            taxonomy = read_taxonomy(place.labels)
            extractor = cls(found, taxonomy, held, kept, release=release)
            # A notebook or a trainer may never close it.
            extractor._closing = weakref.finalize(extractor, stack.pop_all().close)
        return extractor

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
        asker = {
            "name": self._engine.name,
            "parameters": dict(self._engine.parameters),
            "identity": dict(self._engine.identity()),
        }
        return ExtractorFacts(
            ref=self.version.ref,
            digest=self.version.digest,
            engine=self._engine.name,
            identity=digest_json(asker),
            asked=canonical_json(asker).decode("utf-8"),
            release=self.release,
        )

    def close(self) -> None:
        """Let go of the engine and the store; what was answered stays."""
        self._closed = True
        self._closing()

    def __enter__(self) -> Extractor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        if self._closed:
            raise ValueError("this extractor is closed. Open another one")
        texts = [_storable(text) for text in texts]
        keys = [
            _key(text, language) if has_words(text) else ""
            for text, language in zip(texts, languages, strict=True)
        ]
        asked = {
            key: Item(id=key, variables={"text": text}, language=language)
            for key, text, language in zip(keys, texts, languages, strict=True)
            if key
        }
        with self._reading:
            known = {key: self._known[key] for key in asked if key in self._known}
            # Sorted, so that an engine sees the same whatever the order of rows was.
            new = [asked[key] for key in sorted(asked) if key not in known]
            found = {key: _Read(Status.ANSWERED, row) for key, row in known.items()}
            summary = self._ask(new, found, watch) if new else None
        found[""] = _Read(None, [ValueCode.MISSING] * len(self.labels))
        codes = np.array([found[key].row for key in keys], dtype=np.int8)
        return _counted(
            Extracted(
                codes.reshape(len(keys), len(self.labels)),
                tuple(keys),
                tuple(found[key].status for key in keys),
            ),
            summary,
            remembered=len(asked) - len(new),
            calls=len(self._plan.calls),
        )

    def _ask(
        self, items: list[Item], found: dict[str, _Read], watch: Watch | None
    ) -> RunSummary:
        """Ask about `items`, and add what was read of each to `found`."""
        spec = RunSpec(
            prompt=self.version.ref,
            prompt_digest=self.version.digest,
            contract=f"{self._contract.name}/{self._contract.version}",
            cohort="texts",
            cohort_digest=digest_json([item.id for item in items]),
            engine=self._engine.name,
            parameters=self._engine.parameters,
        )
        work = Work(
            items=items if watch is None else watch(items),
            plan=self._plan,
            contract=self._contract,
            retries=self._engine.retry_unreadable,
        )
        summary = execute(spec, work, self._engine, self._store)
        (run,) = self._store.find_runs(ids=[summary.run_id])
        for one in read_values(self._store, run):
            row = self._row(one)
            found[one.item_id] = _Read(one.status, row)
            if one.status is Status.ANSWERED:
                self._known[one.item_id] = row
        for oldest in list(islice(self._known, max(0, len(self._known) - REMEMBERED))):
            self._known.pop(oldest, None)
        forget_run(self._store, run)
        return summary

    def _row(self, one: Values) -> list[int]:
        """Return the codes of one text."""
        row = self._blank.copy()
        for place, label in self._asked:
            if label in one.values:
                row[place] = _CODES[one.values[label]]
        return row


def _storable(text: str) -> str:
    """Return `text` with a question mark for an unpaired surrogate.

    A model in training writes anything, and no engine takes that.
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def _key(text: str, language: str) -> str:
    """Return what names a text in the store: nothing of it can be read back."""
    return digest_bytes(framed((language, text)))


def _check(version: PromptVersion, taxonomy: Taxonomy) -> None:
    """Refuse a version that does not read the taxonomy's labels out of one text."""
    if not isinstance(version, PromptVersion):
        raise ValueError(
            "extractor must be the reference of a version, as 'extractor@v7', a "
            f"PromptVersion or an open Extractor, got {type(version).__name__}"
        )
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


def _counted(
    found: Extracted, summary: RunSummary | None, *, remembered: int, calls: int
) -> Extracted:
    """Return `found` with the counts of a run and of what was in memory."""
    found = found._replace(answered=remembered, cached=remembered * calls)
    if summary is None:
        return found
    return found._replace(
        asked=summary.asked,
        cached=found.cached + summary.cached,
        answered=found.answered + summary.answered,
        unparsed=summary.unparsed,
        failed=summary.failed,
        problems=summary.problems,
    )
