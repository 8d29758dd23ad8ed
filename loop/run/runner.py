"""Asks one prompt version and one engine about texts, each distinct one once."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from loop.core.digests import canonical_json, digest_bytes, digest_json, framed
from loop.core.files import write_error
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Completion, Item, Outcome, Prompt, Status
from loop.labels.language import has_words
from loop.prompts.catalog import read_known
from loop.prompts.outputs.base import Contract, get_contract
from loop.prompts.render import space_out
from loop.prompts.stages import given_texts
from loop.prompts.version import PromptVersion
from loop.run.asking import (
    EngineOptions,
    HeldEngine,
    hold_engine,
    labels_of,
    plan_calls,
)
from loop.run.execute import Problem, RunSummary, Usage, Work, ask_aside, execute
from loop.run.pool_shots import with_shots
from loop.run.prune import ANSWER_FOLDERS
from loop.run.spec import RunSpec, drawn
from loop.run.store import RunRecord, Store, read_values
from loop.run.task_fields import task_of

Watch = Callable[[Iterable[Item]], Iterable[Item]]
"""Wraps the items that are asked about, to show progress."""

REMEMBERED: Final = 65_536
"""Items whose answers a runner keeps in memory."""

_MATERIAL: Final = ("prompts", "labels")


class ItemAnswer(NamedTuple):
    """How one item ended, and what was answered."""

    status: Status
    values: tuple[object, ...]
    """In the order of the runner's fields; None for a field that was not answered."""


class AskedItems(NamedTuple):
    """What came back about some items."""

    answers: tuple[ItemAnswer | None, ...]
    """One an item; None where nothing was asked."""

    keys: tuple[str, ...]
    """What names each item in `problems`; empty where nothing was asked."""

    asked: int = 0
    """Prompts the engine was asked."""

    cached: int = 0
    """Prompts whose answer was there already, in the store or in memory."""

    answered: int = 0
    """Distinct items by outcome; together they are all that were asked about."""

    unparsed: int = 0
    failed: int = 0
    problems: tuple[Problem, ...] = ()
    """Why items are unparsed or failed; the examples are `keys`."""

    used: Usage = Usage()
    """Tokens of the answers that are not only remembered, those from the store
    included, as far as the engine counted them."""

    waited: float = 0.0
    """Seconds until each of these answers came, added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions:
    """What a runner asks about, what it keeps, and where."""

    folder: str = ""
    """Folder of the store in the private part of the workspace, beside its runs and
    never among them: the same items are not asked twice, and what was killed goes on.
    One of `loop.run.prune.ANSWER_FOLDERS`, whose answers `ranloop clean` removes on
    request; empty for a store that goes afterwards."""

    fields: tuple[str, ...] = ()
    """Fields of an answer that are given back; none for what the version asks for."""

    contract: Contract | None = None
    """Reads the answers; None for the version's own."""

    about: str = ""
    """Text of an item without whose words nothing is asked; empty for any of them."""

    retries: int | None = None
    """How often a prompt is asked again whose answer cannot be read; None for as often
    as the engine's settings say."""

    def __post_init__(self) -> None:
        if self.folder and self.folder not in ANSWER_FOLDERS:
            raise ValueError(
                f"folder must be empty or one of {', '.join(ANSWER_FOLDERS)}, got "
                f"{self.folder!r}"
            )


class PromptRunner:
    """A prompt version and an engine, held from the first item on until it is closed.

    Make one with `open`.
    """

    def __init__(
        self,
        version: PromptVersion,
        material: WorkspacePaths,
        engine: HeldEngine,
        store: Store,
        options: RunnerOptions,
    ) -> None:
        """Prepare to ask; `open` says what each is."""
        self.version: Final = version
        self.material: Final = material
        self.contract: Final = options.contract or get_contract(version.contract)
        self._texts = given_texts(version.inputs)
        self._about = options.about
        self._engine = engine
        self._store = store
        self._retries = options.retries
        known = labels_of(engine.name)
        self._plan = plan_calls(version, self.contract, known)
        asked = self._plan.frames[0].fields if known else version.labels
        self.fields: Final = options.fields or asked
        self._draw = 0
        self._known: dict[str, tuple[object, ...]] = {}
        self._turn = Lock()
        self._closing = ExitStack().close
        self._closed = False

    @classmethod
    def open(
        cls,
        workspace: WorkspacePaths | None,
        version: str | PromptVersion,
        engine: str = "rules",
        asking: EngineOptions | None = None,
        options: RunnerOptions | None = None,
    ) -> PromptRunner:
        """Return a runner whose engine starts with the first item.

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
        options
            What it keeps, and where; None for the defaults.

        Raises
        ------
        DataError
            The version or its shots are not there, or its contract cannot be used.
        EngineError
            There is no such engine.
        StoreError
            The store cannot be opened.
        """
        chosen = options or RunnerOptions()
        with ExitStack() as stack:
            place = workspace or WorkspacePaths(
                stack.enter_context(_shipped_material())
            )
            found = (
                read_known(place, version).version
                if isinstance(version, str)
                else version
            )
            found = with_shots(workspace, found)
            kept = chosen.folder if workspace is not None else ""
            folder = stack.enter_context(_store_folder(place, kept))
            store = Store(folder / "store.db")
            stack.callback(store.close)
            held = stack.enter_context(
                hold_engine(place, engine, asking, task_of(found))
            )
            runner = cls(found, place, held, store, chosen)
            # A notebook or a trainer may never close it.
            runner._closing = weakref.finalize(runner, stack.pop_all().close)
        return runner

    def beside(
        self,
        version: PromptVersion,
        options: RunnerOptions | None = None,
        *,
        draw: int = 0,
        store: Store | None = None,
    ) -> PromptRunner:
        """Return a runner with this one's engine and store, which closing it leaves.

        Parameters
        ----------
        version
            What it asks: this one's version or another of the same task.
        options
            What it asks about and gives back; the folder stays this one's.
        draw
            Number of the draw: the same question another time, with that much added to
            the seed and so many more blank lines, see `loop.prompts.render.space_out`.
        store
            Where its answers are kept, for whoever opened it to close; None for this
            one's store.
        """
        chosen = options or RunnerOptions()
        kept = self._store if store is None else store
        made = PromptRunner(version, self.material, self._engine, kept, chosen)
        made._draw = draw
        if draw:
            made._plan = space_out(made._plan, draw)
        return made

    @property
    def engine(self) -> str:
        """Full name of the engine."""
        return self._engine.name

    @cached_property
    def asker(self) -> str:
        """Name, parameters and identity of the engine as JSON; opens the engine.

        Raises
        ------
        EngineError
            The engine is not available.
        """
        return canonical_json(self._engine.asker).decode("utf-8")

    @property
    def identity(self) -> str:
        """Sha256 of `asker`, for signatures; opens the engine."""
        return digest_bytes(self.asker.encode("utf-8"))

    def close(self) -> None:
        """Let go of the engine and the store; what was answered stays."""
        self._closed = True
        self._closing()

    def __enter__(self) -> PromptRunner:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(
        self,
        texts: Sequence[Mapping[str, str]],
        languages: Sequence[str],
        watch: Watch | None = None,
    ) -> AskedItems:
        """Return what comes back about each item, asking about each distinct one once.

        The order of items changes nothing. What could not be answered is asked again
        next time. Threads that call it take turns.

        Parameters
        ----------
        texts
            Texts of each item by the name of the input, for example ``{"text": ...}``:
            those that the version reads, and no other. Of a version in stages the texts
            that the first stage reads, or in their place all inputs of the last one.
        languages
            One per item, for example ``"en"``.
        watch
            Wraps the items that are not remembered; None for no progress.

        Raises
        ------
        ValueError
            There is not one language per item, an item has other texts, or the runner
            was closed.
        EngineError
            The engine as a whole failed; what it answered until then is kept.
        StoreError
            The store cannot be read or written.
        """
        keys, asked = self._items(texts, languages)
        with self._turn:
            known = {key: self._known[key] for key in asked if key in self._known}
            new = _in_order(asked[key] for key in asked if key not in known)
            found = {
                key: ItemAnswer(Status.ANSWERED, values)
                for key, values in known.items()
            }
            summary = self._ask(new, found, watch) if new else None
        remembered = len(asked) - len(new)
        done = AskedItems(
            tuple(found[key] if key else None for key in keys),
            tuple(keys),
            answered=remembered,
            cached=remembered * len(self._plan.names),
        )
        if summary is None:
            return done
        return done._replace(
            asked=summary.asked,
            cached=done.cached + summary.cached,
            answered=done.answered + summary.answered,
            unparsed=summary.unparsed,
            failed=summary.failed,
            problems=summary.problems,
            used=summary.used,
            waited=summary.waited,
        )

    def outcomes(
        self, texts: Sequence[Mapping[str, str]], languages: Sequence[str]
    ) -> tuple[Outcome | None, ...]:
        """Return all that was answered about each item, with entries and evidence.

        Read from the stored answers: nothing is asked. Takes turns with `ask`.

        Parameters
        ----------
        texts, languages
            As for `ask`.

        Returns
        -------
        tuple of Outcome or None
            One an item, with the item's key as its id; None where nothing was asked,
            or where not every answer is stored, as after a failure of the engine.

        Raises
        ------
        ValueError
            As for `ask`.
        EngineError
            The engine is not available, so that its answers cannot be told from others.
        StoreError
            The store cannot be read.
        """
        keys, items = self._items(texts, languages)
        found: dict[str, Outcome] = {}
        if items:
            with self._turn:
                stored = _StoredAnswers(self._engine.identity())
                spec, work = self._spec(items), self._work(items.values())
                told = ask_aside(spec, work, stored, self._store, keep=False)
            found = {
                one.item_id: one for one in told if one.item_id not in stored.missing
            }
        return tuple(found.get(key) for key in keys)

    def ask_block(
        self,
        items: Sequence[Item],
        *,
        keep: bool,
        count: Callable[[RunSummary], object] = lambda summary: None,
    ) -> tuple[Outcome, ...]:
        """Return the outcome of each item of a block, in their order.

        The same as a run of these items would store, evidence, repairs and problems
        included; there is no run, and nothing is remembered.

        Parameters
        ----------
        items
            With the texts that the version reads; their ids need not differ.
        keep
            Whether new answers are stored, so that a block that was killed goes on.
        count
            Told what was asked about the block.

        Raises
        ------
        EngineError
            The engine as a whole failed; what it answered until then is stored with
            `keep`.
        StoreError
            The store cannot be read or written.
        """
        spec, work = self._spec(()), self._work(items)
        return ask_aside(spec, work, self._engine, self._store, keep=keep, count=count)

    def _items(
        self, texts: Sequence[Mapping[str, str]], languages: Sequence[str]
    ) -> tuple[list[str], dict[str, Item]]:
        """Return the key of each item, and the distinct items with something to ask."""
        if self._closed:
            raise ValueError(f"{self.version.ref} is closed here. Open it again")
        keys: list[str] = []
        items: dict[str, Item] = {}
        for given, language in zip(texts, languages, strict=True):
            storable = self._storable(given)
            key = _key(storable, language) if self._speaks(storable) else ""
            keys.append(key)
            if key and key not in items:
                items[key] = Item(id=key, variables=storable, language=language)
        return keys, items

    def _storable(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the texts of one item in the order in which the version reads them."""
        given = texts.keys() == set(self.version.inputs)
        inputs = self.version.inputs if given else self._texts
        if texts.keys() != set(inputs):
            raise ValueError(
                f"{self.version.ref} reads {' and '.join(inputs)}, and an item has "
                f"{' and '.join(texts) or 'no text'}. Give each item the texts that "
                "are read"
            )
        return {name: _storable(texts[name]) for name in inputs}

    def _speaks(self, texts: Mapping[str, str]) -> bool:
        """Whether there is anything to ask about an item."""
        if self._about:
            return has_words(texts[self._about])
        return any(map(has_words, texts.values()))

    def _ask(
        self,
        items: list[Item],
        found: dict[str, ItemAnswer],
        watch: Watch | None,
    ) -> RunSummary:
        """Ask about `items`, and add what came back about each to `found`."""
        spec = self._spec(item.id for item in items)
        work = self._work(items if watch is None else watch(items))
        engine = self._engine.redraw(self._draw) if self._draw else self._engine
        summary = execute(spec, work, engine, self._store)
        (run,) = self._store.find_runs(ids=[summary.run_id])
        for one in read_values(self._store, run):
            values = tuple([one.values.get(name) for name in self.fields])
            found[one.item_id] = ItemAnswer(one.status, values)
            if one.status is Status.ANSWERED:
                self._known[one.item_id] = values
        for oldest in list(islice(self._known, max(0, len(self._known) - REMEMBERED))):
            self._known.pop(oldest, None)
        _forget(self._store, run)
        return summary

    def _spec(self, keys: Iterable[str]) -> RunSpec:
        spec = RunSpec(
            prompt=self.version.ref,
            prompt_digest=self.version.digest,
            contract=f"{self.contract.name}/{self.contract.version}",
            cohort="texts",
            cohort_digest=digest_json([*keys]),
            engine=self._engine.name,
            parameters=self._engine.parameters,
        )
        return drawn(spec, self._draw, spaced=True)

    def _work(self, items: Iterable[Item]) -> Work:
        return Work(
            items=items,
            plan=self._plan,
            contract=self.contract,
            retries=self._engine.retry_unreadable
            if self._retries is None
            else self._retries,
        )


class _StoredAnswers:
    """Stands in for an engine whose stored answers are read: it asks nothing."""

    def __init__(self, identity: Mapping[str, object]) -> None:
        self._identity = identity
        self.missing: set[str] = set()
        """Ids of the items of which not every answer is stored."""

    def identity(self) -> Mapping[str, object]:
        """Return the identity of the engine that gave the answers."""
        return self._identity

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Note what is not stored."""
        for index, prompt in enumerate(prompts):
            self.missing.add(prompt.item.id)
            yield index, Completion("", "error", "no answer is stored")


def _in_order(items: Iterable[Item]) -> list[Item]:
    """Sort `items`, so that an engine sees the same whatever the order of rows was.

    Items that differ only in their last text follow one another: candidates of one
    reference share the beginning of their prompts, which a server keeps in its prefix
    cache.
    """

    def place(item: Item) -> list[str]:
        *head, _ = item.variables.values()
        return [*head, item.id]

    return sorted(items, key=place)


def _forget(store: Store, run: RunRecord) -> None:
    """Remove the outcomes of a run that was read: its completions are what is kept."""
    # First the folder: while the run is there, no other one takes its name.
    shutil.rmtree(store.path.parent / "runs" / run.id, ignore_errors=True)
    with store.writing() as connection:
        connection.execute("DELETE FROM outcomes WHERE run = ?", [run.number])
        connection.execute("DELETE FROM runs WHERE number = ?", [run.number])


@contextmanager
def _shipped_material() -> Iterator[Path]:
    """Give a workspace of the shipped material that nothing is kept in."""
    with tempfile.TemporaryDirectory(prefix="ranloop-") as folder:
        try:
            for part in _MATERIAL:
                os.symlink(bundled() / part, Path(folder) / part)
        except OSError as error:
            raise write_error(Path(folder), error) from error
        yield Path(folder)


@contextmanager
def _store_folder(workspace: WorkspacePaths, name: str) -> Iterator[Path]:
    """Give the folder of the store: in the workspace, or one that goes afterwards."""
    if name:
        yield workspace.open_private() / name
        return
    with tempfile.TemporaryDirectory(prefix="ranloop-") as folder:
        yield Path(folder)


def _storable(text: str) -> str:
    """Return `text` with a question mark for an unpaired surrogate.

    A model in training writes anything, and no engine takes that.
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def _key(texts: Mapping[str, str], language: str) -> str:
    """Return what names an item in the store: nothing of it can be read back."""
    if texts.keys() == {"text"}:
        return digest_bytes(framed((language, texts["text"])))
    named = [part for pair in sorted(texts.items()) for part in pair]
    return digest_bytes(framed((language, *named)))
