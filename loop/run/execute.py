"""Runs prompts over items: what is asked, what comes back, one outcome per item.

The runner knows neither labels nor judges. It is given items, a plan that turns an
item into prompts, and an output contract that reads the answers; it adds the cache,
resumption after a kill, and the promise that every item ends in exactly one outcome.
"""

from __future__ import annotations

import json
import time
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from loop.core.errors import DataError, EngineError
from loop.core.records import Completion, Item, Prompt
from loop.engines.base import Engine
from loop.prompts.outputs.base import Contract
from loop.run.begin import begin_run
from loop.run.encoding import FieldEncoder
from loop.run.keys import KeyMaker
from loop.run.slot import FAILED, STATUS, UNPARSED, Slot
from loop.run.spec import RunSpec
from loop.run.store import RunRecord, Store
from loop.run.tally import Problem, ProblemCount, Usage, UsageCount
from loop.run.writer import Writer

_BLOCK = 256
"""Items planned and looked up in the cache at a time."""

_FRESH = 512
"""Completions kept to be found although they may not be in the store yet."""

_WORDS = tuple(status.value for status in STATUS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a run works on, besides its engine."""

    items: Iterable[Item]
    """Read once, as a stream."""

    plan: Callable[[Item], Sequence[Prompt]]
    """The prompts to ask for one item, at least one."""

    contract: Contract
    """Reads the answers."""


class RunSummary(NamedTuple):
    """What a run did, and how its items ended."""

    run_id: str
    items: int
    asked: int
    """Prompts the engine was asked, failed ones included."""

    cached: int
    """Prompts whose answer was there already."""

    answered: int
    unparsed: int
    failed: int
    seconds: float
    """Wall time of this process, not of a run it continued."""

    spent: Usage = Usage()
    """Tokens of the answers this process asked for."""

    used: Usage = Usage()
    """Tokens of all answers of the run, those from the store included."""

    problems: tuple[Problem, ...] = ()
    """Why items are unparsed or failed, the most frequent reason first."""


def execute(
    spec: RunSpec,
    work: Work,
    engine: Engine,
    store: Store,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    seal: Callable[[RunRecord], None] = lambda record: None,
) -> RunSummary:
    """Ask `engine` what is not stored yet and store one outcome per item.

    An unfinished run with the same spec and engine identity is continued under its
    id: stored answers are read again, only missing ones are asked. The engine must
    draw its prompts in the thread that draws its completions.

    Parameters
    ----------
    seal
        Called with the complete record just before the store calls the run finished:
        what it writes is there for every finished run.

    Raises
    ------
    EngineError
        The engine as a whole failed; what it answered until then is kept.
    StoreError
        The store cannot be read or written.
    DataError
        The plan asks nothing of an item, or `work.items` raised it.
    """
    started = time.monotonic()
    with begin_run(store, spec, engine.identity(), now) as record:
        with Writer(store) as writer:
            runner = _Runner(record.number, work, KeyMaker(spec, engine), writer, store)
            runner.drain(engine)
        summary = runner.summary(record.id, time.monotonic() - started)
        ended = now().astimezone(UTC).isoformat(timespec="seconds")
        record = replace(record, finished=ended, counts=_counts(summary))
        seal(record)
        store.finish_run(record.id, ended, record.counts)
    return summary


def _counts(summary: RunSummary) -> dict[str, int]:
    """Return what a finished run keeps of its summary."""
    kept = {
        name: value for name, value in summary._asdict().items() if type(value) is int
    }
    return {**kept, **summary.used._asdict()} if summary.used.answers else kept


_Call = tuple[Slot, Prompt, bytes]


class _Runner:
    """The state of one run while it goes on."""

    def __init__(
        self, number: int, work: Work, keys: KeyMaker, writer: Writer, store: Store
    ) -> None:
        self._number = number
        self._work = work
        self._keys = keys
        self._writer = writer
        self._store = store
        self._encoder = FieldEncoder()
        self._read = work.contract.read
        self._asked: dict[int, bytes] = {}
        self._waiting: dict[bytes, list[_Call]] = {}
        self._fresh: dict[bytes, Completion] = {}
        self._arrived: list[tuple[bytes, Completion]] = []
        self._ends = [0, 0, 0]
        self._n_asked = 0
        self._n_cached = 0
        self._spent = UsageCount()
        self._used = UsageCount()
        self._problems = ProblemCount()

    def summary(self, run_id: str, seconds: float) -> RunSummary:
        """Return the counts so far."""
        answered, unparsed, failed = self._ends
        return RunSummary(
            run_id=run_id,
            items=sum(self._ends),
            asked=self._n_asked,
            cached=self._n_cached,
            answered=answered,
            unparsed=unparsed,
            failed=failed,
            seconds=seconds,
            spent=self._spent.total,
            used=self._used.total,
            problems=self._problems.total,
        )

    def drain(self, engine: Engine) -> None:
        """Take completions until the engine has answered everything."""
        prompts = self._prompts()
        answers = engine.complete(prompts)
        try:
            for index, completion in answers:
                self._arrive(self._open_key(index), completion)
        finally:
            # Whoever stops the run, the engine must not go on asking.
            if isinstance(answers, Generator):
                answers.close()
        self._settle_arrived()
        # An engine that stops early leaves prompts open or not even drawn: they
        # failed, they are not forgotten.
        self._fail_open()
        for _ in prompts:
            self._fail_open()

    def _open_key(self, index: int) -> bytes:
        """Return the key of the open prompt `index`, which is answered now."""
        key = self._asked.pop(index, None)
        if key is None:
            raise EngineError(
                f"the engine answered prompt {index}, which is not open: asked "
                f"{self._n_asked} so far. The engine is at fault; what it answered "
                "before is kept."
            )
        return key

    def _fail_open(self) -> None:
        """Settle every open prompt as failed."""
        silent = Completion("", "error", "the engine returned nothing")
        self._arrived += [(key, silent) for key in self._waiting]
        self._settle_arrived()

    def _prompts(self) -> Iterator[Prompt]:
        """Yield the prompts whose answers are missing; settle the others."""
        for calls in self._blocks():
            self._settle_arrived()
            if len(self._fresh) >= _FRESH or self._writer.due():
                self._writer.flush()
                self._fresh.clear()
            known = self._store.find_completions([key for _, _, key in calls])
            for call in calls:
                key = call[2]
                completion = known.get(key) or self._fresh.get(key)
                if completion is not None:
                    self._n_cached += 1
                    self._settle(call, completion)
                elif key in self._waiting:
                    self._n_cached += 1
                    self._waiting[key].append(call)
                else:
                    self._waiting[key] = [call]
                    self._asked[self._n_asked] = key
                    self._n_asked += 1
                    yield call[1]

    def _blocks(self) -> Iterator[list[_Call]]:
        """Yield the calls of `_BLOCK` items at a time."""
        plan, make_key = self._work.plan, self._keys.key
        items = enumerate(self._work.items)
        while block := list(islice(items, _BLOCK)):
            calls: list[_Call] = []
            for seq, item in block:
                prompts = plan(item)
                if not prompts:
                    raise DataError(
                        f"the prompt asks nothing of case {item.id}: the version has "
                        "no guides. Add guides to its guides.yaml."
                    )
                slot = Slot(seq, item, prompts)
                keyed = [(slot, prompt, make_key(prompt)) for prompt in prompts]
                slot.keys = b"".join([key for _, _, key in keyed])
                calls += keyed
            yield calls

    def _arrive(self, key: bytes, completion: Completion) -> None:
        """Keep one new completion; outcomes are made from many at a time.

        Reading in batches leaves the processor's caches to the engine in between.
        """
        text, finish, _, latency, n_prompt, n_answer, n_cached = completion
        if not text.isascii():
            # A lone surrogate cannot be stored; read what will be read next time.
            text = text.encode("utf-8", "replace").decode("utf-8")
            completion = completion._replace(text=text)
        if n_prompt is not None or n_answer is not None:
            self._spent.add(completion)
        if finish != "error":
            self._fresh[key] = completion
            self._writer.add_completion(
                (key, text, finish, latency, n_prompt, n_answer, n_cached)
            )
        self._arrived.append((key, completion))
        if self._writer.due():
            self._settle_arrived()
            self._writer.flush()
        elif len(self._arrived) >= _BLOCK:
            self._settle_arrived()

    def _settle_arrived(self) -> None:
        """Settle every call that waited for what has arrived."""
        for key, completion in self._arrived:
            for call in self._waiting.pop(key):
                self._settle(call, completion)
        self._arrived.clear()

    def _settle(self, call: _Call, completion: Completion) -> None:
        """Read one completion into its item's slot; store the item once complete."""
        slot, prompt, _ = call
        if completion.prompt_tokens is not None or completion.completion_tokens:
            self._used.add(completion)
        if completion.finish_reason == "stop":
            fields, repairs, problem = self._read(
                completion.text, prompt.frame.fields, slot.item
            )
            if repairs:
                slot.repairs += repairs
            if fields is None:
                slot.spoil(UNPARSED, prompt, problem)
            else:
                slot.fields = {**slot.fields, **fields} if slot.fields else fields
        elif completion.finish_reason == "length":
            slot.spoil(UNPARSED, prompt, "the answer was cut off: raise max_tokens")
        elif completion.finish_reason == "refusal":
            slot.spoil(UNPARSED, prompt, "the model refused to answer")
        else:
            slot.spoil(FAILED, prompt, completion.error or "the engine gave no reason")
        slot.left -= 1
        if not slot.left:
            self._close(slot)

    def _close(self, slot: Slot) -> None:
        status = slot.status
        self._ends[status] += 1
        problem = "; ".join(slot.problems)
        if status:
            self._problems.add(problem, slot.item.id)
        repairs = json.dumps(slot.repairs, ensure_ascii=False) if slot.repairs else ""
        self._writer.add_outcome(
            (
                self._number,
                slot.seq,
                slot.item.id,
                _WORDS[status],
                self._encoder.encode(slot.ordered()),
                repairs,
                problem,
                slot.keys,
            )
        )
