"""Runs prompts over items: what is asked, what comes back, one outcome per item.

The runner knows neither labels nor judges. It is given items, a plan that turns an
item into prompts, and an output contract that reads the answers; it adds the cache,
resumption after a kill, and the promise that every item ends in exactly one outcome.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from loop.core.clock import Clock, utc_now
from loop.core.digests import canonical_json, digest_json, framed
from loop.core.errors import ConflictError, DataError, EngineError
from loop.core.files import locked
from loop.core.records import (
    Completion,
    Field,
    Item,
    Outcome,
    Prompt,
    PromptFrame,
    Reading,
    Status,
)
from loop.engines.base import Engine
from loop.prompts.outputs.base import Contract
from loop.prompts.render import PromptPlan
from loop.prompts.stages import write_input
from loop.run.database import FieldEncoder
from loop.run.prune import starting
from loop.run.spec import RunSpec, run_id, spec_data
from loop.run.store import CompletionRow, RunRecord, Store, Writer

if TYPE_CHECKING:
    from hashlib import _Hash


@contextmanager
def begin_run(
    store: Store,
    spec: RunSpec,
    identity: Mapping[str, object],
    now: Clock,
    actor: str | None = None,
) -> Iterator[RunRecord]:
    """Hold the run of `spec` for the length of the block.

    That is the newest unfinished run with the same spec and engine identity that no
    living process works on; else a new one. The lock goes with the process, so a
    killed run can be taken up at once. A run that is taken up stays with whoever
    started it; a new one is `actor`'s.

    Raises
    ------
    StoreError
        The store cannot be read or written.
    WriteError
        The run's folder cannot be made.
    """
    match = digest_json({"spec": spec_data(spec), "engine": dict(identity)})
    unfinished = store.find_runs(finished=False, match=match)
    for known in chain(unfinished, repeat(None)):
        record = known or _add(store, spec, match, now, actor)
        with ExitStack() as stack:
            try:
                folder = store.path.parent / "runs" / record.id
                with starting(store.path.parent):
                    stack.enter_context(locked(folder / "lock", wait=False))
            except ConflictError:
                # A living process works on it: take the next, at last a new one.
                continue
            yield record
            return


def _add(
    store: Store, spec: RunSpec, match: str, now: Clock, actor: str | None
) -> RunRecord:
    created = now().astimezone(UTC)
    stamp = created.isoformat(timespec="seconds")
    return store.add_run(run_id(created, match), stamp, match, spec, actor)


ANSWERED, UNPARSED, FAILED = 0, 1, 2
STATUS = (Status.ANSWERED, Status.UNPARSED, Status.ENGINE_FAILED)
"""Statuses from best to worst: an item takes the worst of its calls."""


class Slot:
    """What the calls of one item have brought so far."""

    __slots__ = (
        "fields",
        "inputs",
        "item",
        "keys",
        "left",
        "order",
        "problems",
        "repairs",
        "seq",
        "status",
    )

    def __init__(self, seq: int, item: Item, prompts: Sequence[Prompt]) -> None:
        self.seq = seq
        self.item = item
        self.expect(prompts)
        self.fields: Mapping[str, Field] = {}
        self.status = ANSWERED
        # Keys of the calls, in the order of the plan.
        self.keys = b""

        self.repairs: tuple[str, ...] = ()
        self.problems: tuple[str, ...] = ()
        # What a first stage found; None once that is asked about, or without stages.
        self.inputs: dict[str, str] | None = None

    def expect(self, prompts: Sequence[Prompt]) -> None:
        """Wait for the answers to `prompts`."""
        self.left = len(prompts)
        self.order: tuple[str, ...] = ()
        if self.left > 1:
            self.order = tuple(name for one in prompts for name in one.frame.fields)

    def spoil(self, status: int, prompt: Prompt, problem: str) -> None:
        """Record that one call did not give fields."""
        self.status = max(self.status, status)
        several = self.order or self.inputs is not None
        where = f"{prompt.frame.call}: " if several else ""
        self.problems = (*self.problems, where + problem)

    def ordered(self) -> Mapping[str, Field]:
        """Return the fields in the order of the plan, however the calls ended."""
        if not self.order:
            return self.fields
        return {name: self.fields[name] for name in self.order if name in self.fields}


MAX_PROBLEMS = 50
"""Different problems told apart; a run with more has one cause, or none to name."""

MAX_CASES = 5
"""Case ids kept as examples of one problem."""

_OTHER = "other problems; see the outcomes"


class Usage(NamedTuple):
    """Tokens of some answers, as the server counted them."""

    answers: int = 0
    """Answers whose tokens are known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """How many of the prompt tokens came from the server's prefix cache."""


class Problem(NamedTuple):
    """Why some items have no answer."""

    text: str
    """Never case text."""

    cases: int
    examples: tuple[str, ...]
    """Ids of the first cases."""


@dataclass(slots=True)
class UsageCount:
    """Adds up the tokens of completions."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    def add(self, completion: Completion) -> None:
        """Count `completion`, if its engine counted tokens."""
        if completion.prompt_tokens is None and completion.completion_tokens is None:
            return
        self.answers += 1
        self.prompt_tokens += completion.prompt_tokens or 0
        self.completion_tokens += completion.completion_tokens or 0
        self.cached_tokens += completion.cached_tokens or 0

    @property
    def total(self) -> Usage:
        """What was added up so far."""
        return Usage(
            self.answers,
            self.prompt_tokens,
            self.completion_tokens,
            self.cached_tokens,
        )


class ProblemCount:
    """Counts the items of each problem and keeps a few of their ids."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, tuple[str, ...]]] = {}

    def add(self, text: str, item_id: str) -> None:
        """Count one item that ended with the problem `text`."""
        if text not in self._found and len(self._found) >= MAX_PROBLEMS:
            text = _OTHER
        count, examples = self._found.get(text, (0, ()))
        if len(examples) < MAX_CASES:
            examples = (*examples, item_id)
        self._found[text] = (count + 1, examples)

    @property
    def total(self) -> tuple[Problem, ...]:
        """The problems, the most frequent first."""
        problems = [Problem(text, *found) for text, found in self._found.items()]
        return tuple(sorted(problems, key=lambda one: (-one.cases, one.text)))


class KeyMaker:
    """Makes the cache key of prompts: sha256, 32 bytes.

    Digested are the engine's identity, the parameters, the number of the draw, the
    answer's schema and fields, the messages, and for engines that read data instead of
    prose the guides, those by which a judge finds what the texts say, and the language.
    Not digested: ids and names, so equal questions share one answer.

    Everything but the end of the last message is digested once per frame.
    """

    def __init__(self, spec: RunSpec, identity: Mapping[str, object]) -> None:
        asker: tuple[object, ...] = (dict(identity), dict(spec.parameters))
        # Draw 0 has the key it had before there were draws.
        self._asker = (*asker, spec.draw) if spec.draw else asker
        self._prefixes: dict[tuple[int, str], tuple[PromptFrame, _Hash]] = {}

    def key(self, prompt: Prompt) -> bytes:
        """Return the key of `prompt`."""
        frame, item, tail = prompt.frame, prompt.item, prompt.tail
        known = self._prefixes.get((id(frame), item.language))
        if known is None:
            known = self._add(frame, item.language)
        digest = known[1].copy()
        digest.update(tail.encode("utf-8", "surrogatepass"))
        for name, value in item.variables.items():
            # Engines may read the variables; those in the tail are digested already.
            # A search costs far more than a look at the start, where they mostly stand.
            if not tail.startswith(value) and value not in tail:
                digest.update(b"\0" + framed((name, value)))
        return digest.digest()

    def _add(self, frame: PromptFrame, language: str) -> tuple[PromptFrame, _Hash]:
        static = {
            "asker": self._asker,
            "messages": frame.messages,
            "fields": frame.fields,
            "schema": frame.schema,
            "guides": [guide.identity for guide in frame.guides],
            "language": language,
        }
        if frame.reads:
            static["reads"] = [guide.identity for guide in frame.reads]
        # The frame is kept beside its digest: an id is only unique while it lives.
        known = (frame, hashlib.sha256(canonical_json(static) + b"\0"))
        self._prefixes[id(frame), language] = known
        return known


_BLOCK = 256
"""Items planned and looked up in the cache at a time."""

_FRESH = 512
"""Completions kept to be found although they may not be in the store yet."""

_WORDS = tuple(status.value for status in STATUS)

CUT_OFF = {
    "length": "the answer was cut off: raise max_tokens",
    "refusal": "the model refused to answer",
}
"""Why an answer is no answer although the server ended it; asked again only if told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a run works on, besides its engine."""

    items: Iterable[Item]
    """Read once, as a stream."""

    plan: Callable[[Item], Sequence[Prompt]]
    """The prompts to ask for one item, at least one. Of a plan with stages these are
    asked first, and the item is given the inputs that they make; an input that it has
    already is not asked for."""

    contract: Contract
    """Reads the answers."""

    retries: int = 0
    """How often a prompt is asked again whose answer cannot be read."""

    again: bool = False
    """Whether to ask anew, `retries` times or once, what was not readable earlier."""

    ended: Callable[[], object] | None = None
    """Called as soon as an item has its outcome; None to tell nobody."""


class RunSummary(NamedTuple):
    """What a run did, and how its items ended."""

    run_id: str
    items: int
    asked: int
    """Prompts the engine was asked, those that failed and `retried` included."""

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

    retried: int = 0
    """Prompts asked once more because the answer before could not be read."""

    recovered: int = 0
    """Calls whose answer could be read after others that could not."""

    unanswered: int = 0
    """Calls that failed, and of whose tokens nothing is known."""

    waited: float = 0.0
    """Seconds until each answer came, added up, those from the store included."""


def execute(
    spec: RunSpec,
    work: Work,
    engine: Engine,
    store: Store,
    *,
    now: Clock = utc_now,
    seal: Callable[[RunRecord], None] = lambda record: None,
    actor: str | None = None,
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
    actor
        Who starts it; None where nobody is to be named.

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
    with begin_run(store, spec, engine.identity(), now, actor) as record:
        with Writer(store) as writer:
            runner = _Runner(
                record.number, work, KeyMaker(spec, engine.identity()), writer, store
            )
            runner.run(engine)
        summary = runner.summary(record.id, time.monotonic() - started)
        ended = now().astimezone(UTC).isoformat(timespec="seconds")
        record = replace(record, finished=ended, counts=_counts(summary))
        seal(record)
        store.finish_run(record.id, ended, record.counts)
    return summary


class _Aside(Writer):
    """Stores answers only where told."""

    def __init__(self, store: Store, *, keep: bool) -> None:
        super().__init__(store)
        self._keep = keep

    def add_completion(self, row: CompletionRow) -> None:
        if self._keep:
            super().add_completion(row)


def ask_aside(
    spec: RunSpec,
    work: Work,
    engine: Engine,
    store: Store,
    *,
    keep: bool,
    count: Callable[[RunSummary], object] = lambda summary: None,
) -> tuple[Outcome, ...]:
    """Return how each item of `work` would end in a run; there is no run of it.

    Asked, asked again, read and found among stored answers is as in `execute`.

    Parameters
    ----------
    keep
        Whether new answers are stored for the next who asks the same.
    count
        Told what was asked, also where the engine as a whole failed.

    Raises
    ------
    EngineError
        The engine as a whole failed; what it answered until then is stored with `keep`.
    StoreError
        The store cannot be read or written.
    """
    started = time.monotonic()
    with _Aside(store, keep=keep) as writer:
        keys = KeyMaker(spec, engine.identity())
        runner = _AsideRunner(0, work, keys, writer, store)
        try:
            runner.run(engine)
        finally:
            count(runner.summary("", time.monotonic() - started))
    return tuple(outcome for _, outcome in sorted(runner.ended, key=itemgetter(0)))


_ONLY_IF_ANY = frozenset({"retried", "recovered", "unanswered"})
"""Counts that a run keeps only where there is something to count."""


def _counts(summary: RunSummary) -> dict[str, int]:
    """Return what a finished run keeps of its summary."""
    kept = {
        name: value
        for name, value in summary._asdict().items()
        if type(value) is int and (value or name not in _ONLY_IF_ANY)
    }
    return {**kept, **summary.used._asdict()} if summary.used.answers else kept


_Call = tuple[Slot, Prompt, bytes]


class _Asked(NamedTuple):
    """A call that is made once more; found by the key of its next answer."""

    number: int
    """How many answers there were before."""

    asked: int
    """How many of them this run asked for."""

    before: bytes
    """Key of the answer before."""

    problem: str
    """Why that one cannot be read."""


def next_key(key: bytes) -> bytes:
    """Return the key of the answer after the one with `key`, to the same question.

    Every attempt is stored under its own, so that none is lost and a run that is
    repeated finds them all.
    """
    return hashlib.sha256(key + b"asked again").digest()


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
        plan = work.plan
        stages = plan.stages if isinstance(plan, PromptPlan) else ()
        self._stages = {one.name: one for one in stages}
        self._attempts: dict[bytes, _Asked] = {}
        self._unread: list[_Call] = []
        self._first = 0
        self._n_retried = self._n_recovered = self._n_unanswered = 0
        self._asked: dict[int, bytes] = {}
        self._waiting: dict[bytes, list[_Call]] = {}
        self._fresh: dict[bytes, Completion] = {}
        self._arrived: list[tuple[bytes, Completion]] = []
        self._ends = [0, 0, 0]
        self._n_asked = 0
        self._n_cached = 0
        self._spent = UsageCount()
        self._used = UsageCount()
        self._waited = 0.0
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
            retried=self._n_retried,
            recovered=self._n_recovered,
            unanswered=self._n_unanswered,
            waited=self._waited,
        )

    def run(self, engine: Engine) -> None:
        """Ask everything, then again what could not be read at the end."""
        self._drain(engine, self._prompts())
        while self._unread:
            self._drain(engine, self._again())

    def _drain(self, engine: Engine, prompts: Iterator[Prompt]) -> None:
        """Take completions until the engine has answered every prompt."""
        self._first = self._n_asked
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
        key = self._asked.pop(self._first + index, None)
        if key is None:
            raise EngineError(
                f"the engine answered prompt {index}, which is not open: asked "
                f"{self._n_asked - self._first} so far. The engine is at fault; what "
                "it answered before is kept."
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
            yield from self._ask(calls)
            yield from self._again()

    def _again(self) -> Iterator[Prompt]:
        """Yield the prompts to ask once more, as far as they are known by now."""
        while self._unread:
            calls, self._unread = self._unread, []
            yield from self._ask(calls)

    def _ask(self, calls: Sequence[_Call]) -> Iterator[Prompt]:
        """Yield the prompts of `calls` without an answer; settle the others."""
        if len(self._fresh) >= _FRESH or self._writer.due():
            self._writer.flush()
            self._fresh.clear()
        known = self._store.find_completions([key for _, _, key in calls])
        for call in calls:
            key = call[2]
            attempt = self._attempts.get(key)
            completion = known.get(key) or self._fresh.get(key)
            if completion is not None:
                self._n_cached += 1
                self._settle(call, completion)
            elif key in self._waiting:
                self._n_cached += 1
                self._waiting[key].append(call)
            elif attempt is not None and not self._may_retry(attempt):
                self._give_up(call)
            else:
                self._waiting[key] = [call]
                self._asked[self._n_asked] = key
                self._n_asked += 1
                if attempt is not None:
                    self._attempts[key] = attempt._replace(asked=attempt.asked + 1)
                    self._n_retried += 1
                yield call[1]

    def _blocks(self) -> Iterator[list[_Call]]:
        """Yield the calls of `_BLOCK` items at a time."""
        plan, make_key, stages = self._work.plan, self._keys.key, self._stages
        items = enumerate(self._work.items)
        while block := list(islice(items, _BLOCK)):
            calls: list[_Call] = []
            for seq, item in block:
                given = item.variables
                first = [one for name, one in stages.items() if name not in given]
                prompts = [one.prompt(item) for one in first] or plan(item)
                if not prompts:
                    raise DataError(
                        f"the prompt asks nothing of case {item.id}: the version has "
                        "no guides. Add guides to its guides.yaml."
                    )
                slot = Slot(seq, item, prompts)
                if first:
                    slot.inputs = {}
                keyed = [(slot, prompt, make_key(prompt)) for prompt in prompts]
                slot.keys = b"".join([key for _, _, key in keyed])
                calls += keyed
            yield calls

    def _next_stage(self, slot: Slot) -> None:
        """Ask about an item with the inputs that its first stage made."""
        old = slot.item
        variables = {**old.variables, **(slot.inputs or {})}
        slot.item = Item(id=old.id, variables=variables, language=old.language)
        slot.inputs = None
        prompts = self._work.plan(slot.item)
        slot.expect(prompts)
        keyed = [(slot, prompt, self._keys.key(prompt)) for prompt in prompts]
        slot.keys += b"".join([key for _, _, key in keyed])
        self._unread += keyed

    def _arrive(self, key: bytes, completion: Completion) -> None:
        """Keep one new completion; outcomes are made from many at a time.

        Reading in batches leaves the processor's caches to the engine in between.
        """
        text, finish, _, latency, n_prompt, n_answer, n_cached, thinking = completion
        if not (text.isascii() and thinking.isascii()):
            # A lone surrogate cannot be stored; read what will be read next time.
            text = text.encode("utf-8", "replace").decode("utf-8")
            thinking = thinking.encode("utf-8", "replace").decode("utf-8")
            completion = completion._replace(text=text, thinking=thinking)
        self._spent.add(completion)
        if finish != "error":
            self._fresh[key] = completion
            self._writer.add_completion(
                (
                    key,
                    text,
                    finish,
                    latency,
                    n_prompt,
                    n_answer,
                    n_cached,
                    thinking or None,
                )
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
        self._waited += completion.latency_s
        if completion.prompt_tokens is not None or completion.completion_tokens:
            self._used.add(completion)
        elif completion.finish_reason == "error":
            self._n_unanswered += 1
        if completion.finish_reason == "stop":
            if slot.inputs is not None:
                fields, repairs, problem = self._read_stage(prompt, completion.text)
            else:
                fields, repairs, problem = self._read(
                    completion.text, prompt.frame.fields, slot.item
                )
            if fields is None:
                self._unreadable(call, problem)
                return
            if repairs:
                slot.repairs += repairs
            if slot.inputs is not None:
                made = write_input(prompt.frame.call, fields, prompt.item)
                slot.inputs[prompt.frame.call] = made
            else:
                slot.fields = {**slot.fields, **fields} if slot.fields else fields
            self._n_recovered += call[2] in self._attempts
        elif completion.finish_reason in CUT_OFF:
            problem = CUT_OFF[completion.finish_reason]
            if self._work.again:
                self._unreadable(call, problem)
                return
            slot.spoil(UNPARSED, prompt, problem)
        else:
            slot.spoil(FAILED, prompt, completion.error or "the engine gave no reason")
        self._settled(slot)

    def _read_stage(self, prompt: Prompt, text: str) -> Reading:
        """Return what the answer of a first stage says."""
        return self._stages[prompt.frame.call].read(text, prompt.item)

    def _unreadable(self, call: _Call, problem: str) -> None:
        """Note a call to be made once more; whether it is, its key decides."""
        slot, prompt, key = call
        if not (self._work.retries or self._work.again):
            slot.spoil(UNPARSED, prompt, problem)
            self._settled(slot)
            return
        before = self._attempts.get(key)
        following = next_key(key)
        # A duplicate of this case may have brought it to the same point.
        self._attempts.setdefault(
            following,
            _Asked(
                number=before.number + 1 if before else 1,
                asked=before.asked if before else 0,
                before=key,
                problem=problem,
            ),
        )
        slot.keys = slot.keys.replace(key, following)
        self._unread.append((slot, prompt, following))

    def _may_retry(self, attempt: _Asked) -> bool:
        if self._work.again:
            return attempt.asked < max(1, self._work.retries)
        return attempt.number <= self._work.retries

    def _give_up(self, call: _Call) -> None:
        """Leave a call as unreadable as its last answer is."""
        slot, prompt, key = call
        last = self._attempts[key]
        slot.keys = slot.keys.replace(key, last.before)
        times = f"; asked {last.number} times" if last.number > 1 else ""
        slot.spoil(UNPARSED, prompt, last.problem + times)
        self._settled(slot)

    def _settled(self, slot: Slot) -> None:
        """Count one call of `slot` as made; store the item once all are."""
        slot.left -= 1
        if slot.left:
            return
        if slot.inputs is None or slot.status:
            self._close(slot)
        else:
            self._next_stage(slot)

    def _close(self, slot: Slot) -> None:
        status = slot.status
        self._ends[status] += 1
        if self._work.ended is not None:
            self._work.ended()
        problem = "; ".join(slot.problems)
        if status:
            self._problems.add(problem, slot.item.id)
        self._keep(slot, problem)

    def _keep(self, slot: Slot, problem: str) -> None:
        """Store the outcome of an item."""
        repairs = json.dumps(slot.repairs, ensure_ascii=False) if slot.repairs else ""
        self._writer.add_outcome(
            (
                self._number,
                slot.seq,
                slot.item.id,
                _WORDS[slot.status],
                self._encoder.encode(slot.ordered()),
                repairs,
                problem,
                slot.keys,
            )
        )


class _AsideRunner(_Runner):
    """Hands outcomes back instead of storing them."""

    def __init__(
        self, number: int, work: Work, keys: KeyMaker, writer: Writer, store: Store
    ) -> None:
        super().__init__(number, work, keys, writer, store)
        self.ended: list[tuple[int, Outcome]] = []
        """Place of each item, and its outcome."""

    def _keep(self, slot: Slot, problem: str) -> None:
        outcome = Outcome(
            item_id=slot.item.id,
            status=STATUS[slot.status],
            fields=dict(slot.ordered()),
            repairs=tuple(slot.repairs),
            problem=problem,
        )
        self.ended.append((slot.seq, outcome))
