"""What was asked about one case of a run, what came back, and what was made of it.

The messages are not stored: they are rendered again from the prompt version and the
case, and held against the key under which the answer is stored. Where the two agree,
what is shown is what was sent, character by character.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from loop.core.config import ModelPrice, read_config
from loop.core.digests import digest_json
from loop.core.errors import DataError, LoopError
from loop.core.paths import WorkspacePaths
from loop.core.records import (
    Completion,
    Field,
    Item,
    Message,
    Outcome,
    Prompt,
    Reading,
    Status,
)
from loop.core.safe_text import quoted
from loop.engines.rules.engine import RulesEngine, RulesExplanation, RulesMention
from loop.labels.cohort import (
    CohortRole,
    cohort_folder,
    find_item,
    read_cohort_file,
    read_record,
    require_recorded,
)
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import Contract, get_contract
from loop.prompts.outputs.tolerant import strip_thinking
from loop.prompts.render import PromptPlan
from loop.prompts.stages import write_input
from loop.prompts.version import PromptVersion
from loop.run.aside import plan_version, rules_for
from loop.run.asking import EngineOptions, choose_engine, labels_of
from loop.run.cost import asked_model
from loop.run.execute import CUT_OFF, KeyMaker, next_key
from loop.run.manifest import find_run, read_manifest
from loop.run.pool_shots import with_shots
from loop.run.spec import BLANK_LINES
from loop.run.store import KEY_BYTES, RunRecord, Store, open_store
from loop.run.task_fields import task_of

_ATTEMPTS = 100
"""Most answers to one question that are looked for."""


class CallAnswer(NamedTuple):
    """One answer to one question, and what its contract reads in it."""

    completion: Completion | None
    """As it is stored, its thinking included; None where it is not stored any more."""

    thinking: str
    """What the model thought before it answered, whoever kept it apart."""

    reading: Reading
    cost: float | None
    """In the currency of `Trace.currency`; None without a price or a count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTrace:
    """One call about the case: what was asked, and every answer to it."""

    call: str
    """``"joint"``, or the label that it asks about."""

    shared: tuple[Message, ...]
    """The messages up to the case: the same for every case of the run."""

    own: str
    """How the last message goes on: the case, and what follows it."""

    schema: Mapping[str, object]
    as_sent: bool
    """Whether these are provably the messages that were answered."""

    attempts: tuple[CallAnswer, ...]
    """In order; the last one is the answer."""

    failure: str
    """Why there is no answer, where the engine failed; never case text."""

    rules: RulesExplanation | None
    """Why `rules` answers so; None of other engines."""

    def messages(self) -> tuple[Message, ...]:
        """Return the messages whole."""
        *head, last = self.shared
        return (*head, Message(last.role, last.content + self.own))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One case of one run, from the question to the outcome."""

    run: RunRecord
    item: Item
    outcome: Outcome
    identity: Mapping[str, Any]
    """What the engine said of itself: model, server, fingerprint."""

    calls: tuple[CallTrace, ...]
    currency: str
    remarks: tuple[str, ...]
    """What is not as it was when the case was asked."""


class UnansweredCause(NamedTuple):
    """Why some cases of a run have no answer."""

    status: Status
    problem: str
    """Never case text."""

    cases: tuple[str, ...]
    """Their ids, in the order of the cohort."""


class UnansweredCases(NamedTuple):
    """The unreadable and failed cases of a run, by cause."""

    run: RunRecord
    causes: tuple[UnansweredCause, ...]
    """The most frequent first."""

    @property
    def cases(self) -> int:
        """How many there are."""
        return sum(len(one.cases) for one in self.causes)


def read_unanswered(
    workspace: WorkspacePaths, run: str, store: Store | None = None
) -> UnansweredCases:
    """Return the unreadable and failed cases of `run`, by cause; ids and no text.

    Raises
    ------
    DataError
        There is no such finished run, or its cohort is a holdout.
    StoreError
        The store cannot be read.
    """
    record = find_run(workspace, run)
    require_open(workspace, record)
    found: dict[tuple[Status, str], list[str]] = {}
    if store is None:
        with open_store(workspace) as own:
            rows = own.list_unanswered(record)
    else:
        rows = store.list_unanswered(record)
    for item_id, status, problem in rows:
        found.setdefault((status, problem), []).append(item_id)
    causes = [UnansweredCause(*key, tuple(ids)) for key, ids in found.items()]
    causes.sort(key=lambda one: (-len(one.cases), one.problem))
    return UnansweredCases(record, tuple(causes))


def require_open(workspace: WorkspacePaths, run: RunRecord) -> None:
    """Refuse a run over a holdout: nobody sees its cases, in no form.

    Raises
    ------
    DataError
        Its cohort is a holdout, is not here, or is not the recorded one.
    """
    name = run.spec.cohort
    about, record = read_cohort_file(workspace, name), read_record(workspace, name)
    path = cohort_folder(workspace, name) / "cohort.yaml"
    require_recorded(about, path, record)
    if about.role is CohortRole.HOLDOUT or record.is_holdout:
        raise DataError(
            f"cohort {name} is a holdout: what was asked about its cases, and what was "
            "answered, stays unseen, or it can no longer decide anything. Show a run "
            "over a dev cohort."
        )


def read_trace(
    workspace: WorkspacePaths,
    run: str,
    case_id: str,
    *,
    label: str = "",
    store: Store | None = None,
) -> Trace:
    """Return everything that is known of one case of a run.

    Only for whoever may read the case: its text and the model's words are in it.

    Parameters
    ----------
    run
        As in `loop.run.manifest.find_run`.
    label
        Only the call that asks about this label; empty for all.
    store
        The workspace's store, where the caller holds it open.

    Raises
    ------
    DataError
        There is no such finished run or case, its text is not here, or the cohort is
        a holdout.
    StoreError
        The store cannot be read.
    """
    record = find_run(workspace, run)
    require_open(workspace, record)
    if store is None:
        with open_store(workspace) as own:
            return _read(workspace, own, record, case_id, label)
    return _read(workspace, store, record, case_id, label)


def _read(
    workspace: WorkspacePaths, store: Store, run: RunRecord, case_id: str, label: str
) -> Trace:
    stored = store.find_outcome(run, case_id)
    if stored is None:
        raise DataError(
            f"run {run.id} asked no case {quoted(case_id)}. `ranloop show {run.id}` "
            "lists the cases without an answer, `ranloop failures` those that fail."
        )
    item = find_item(workspace, run.spec.cohort, case_id)
    manifest = read_manifest(workspace, run.id)
    identity = manifest.get("engine_identity")
    tracer = _Tracer(workspace, store, run, identity if type(identity) is dict else {})
    calls = tuple(tracer.calls(item, stored.keys, stored.outcome, label))
    if label and not calls:
        raise DataError(
            f"{run.spec.prompt} asks nothing about {quoted(label)}. Name one of its "
            "labels by id, or leave --label out."
        )
    tracer.compare(calls, stored.outcome, label)
    return Trace(
        run=run,
        item=item,
        outcome=stored.outcome,
        identity=tracer.identity,
        calls=calls,
        currency=tracer.price.currency if tracer.price else "",
        remarks=tuple(tracer.remarks),
    )


class _Tracer:
    """What the calls of one case have in common."""

    def __init__(
        self,
        workspace: WorkspacePaths,
        store: Store,
        run: RunRecord,
        identity: Mapping[str, Any],
    ) -> None:
        self._workspace = workspace
        self._store = store
        self._run = run
        self.identity = identity
        self.remarks: list[str] = []
        prices = read_config(workspace).prices
        model = asked_model(run.spec.engine)
        self.price: ModelPrice | None = prices.get(model) if model else None
        self._contract: Contract | None = None
        self._version: PromptVersion | None = None
        self._plan = self._prepare()
        self._rules = self._find_rules()

    def _prepare(self) -> PromptPlan | None:
        """Return what the run asked, as its prompt version stands today."""
        spec = self._run.spec
        try:
            found = read_version(self._workspace, spec.prompt)
            version = with_shots(self._workspace, found)
            contract = get_contract(version.contract)
            plan = plan_version(
                version, spec.parameters.get(BLANK_LINES, 0), labels_of(spec.engine)
            )
        except LoopError as error:
            self.remarks.append(
                f"{spec.prompt} cannot be read any more, so the messages are not "
                f"shown: {error}"
            )
            return None
        self._contract = contract
        if version.digest != spec.prompt_digest:
            self.remarks.append(
                f"{spec.prompt} was changed since the run: the messages below are "
                "those of today, not those that were sent."
            )
        read_by = f"{contract.name}/{contract.version}"
        if read_by != spec.contract:
            self.remarks.append(
                f"the answers were read by {spec.contract}; below is what {read_by} "
                "reads in them."
            )
        self._version = version
        return plan

    def _find_rules(self) -> RulesEngine | None:
        """Return `rules` as it is today, if `rules` answered."""
        answered = self.identity
        while isinstance(source := answered.get("source"), Mapping):
            answered = source
        if answered.get("engine") != "rules" or self._version is None:
            return None
        task = task_of(self._version)
        chosen = choose_engine(self._workspace, "rules", EngineOptions(), task=task)
        engine = chosen.engine
        explains = isinstance(engine, RulesEngine)
        if dict(engine.identity()) != dict(answered):
            today = "the explanation is what they make of the case today"
            self.remarks.append(
                "`rules` or its cues changed since the run: "
                + (f"{today}." if explains else "it may answer otherwise today.")
            )
        if not isinstance(engine, RulesEngine):
            return None
        cues = digest_json(dict(engine.identity()))
        return rules_for(self._workspace, self._version, cues)

    def calls(
        self, item: Item, keys: bytes, outcome: Outcome, label: str
    ) -> Iterator[CallTrace]:
        """Yield the calls of the case, in the order of the plan."""
        stored = [keys[n : n + KEY_BYTES] for n in range(0, len(keys), KEY_BYTES)]
        if self._plan is None:
            for number, key in enumerate(stored):
                yield self._bare(str(number + 1), key, outcome)
            return
        make_key = KeyMaker(self._run.spec, self.identity).key
        prompts = self._prompts(self._plan, item, stored)
        if len(prompts) != len(stored):
            self.remarks.append(
                f"the run made {len(stored)} calls about the case, and its prompt "
                f"makes {len(prompts)} today; what has no answer is shown without."
            )
        for prompt, key in zip(prompts, stored, strict=False):
            if not label or label in prompt.frame.fields:
                several = len(stored) > 1 or bool(self._plan.stages)
                yield self._call(prompt, (make_key(prompt), key), outcome, several)

    def _prompts(
        self, plan: PromptPlan, item: Item, stored: Sequence[bytes]
    ) -> Sequence[Prompt]:
        """Return what was asked about the case, later stages as far as they came."""
        if not plan.stages:
            return plan(item)
        asked = [stage.prompt(item) for stage in plan.stages]
        keys = stored[: len(asked)]
        answers = self._store.find_completions(keys)
        inputs = dict(item.variables)
        for stage, prompt, key in zip(plan.stages, asked, keys, strict=False):
            answer = answers.get(key)
            if answer is None or answer.finish_reason != "stop":
                return asked
            found = stage.read(answer.text, prompt.item).fields
            if found is None:
                return asked
            inputs[stage.name] = write_input(stage.name, found, prompt.item)
        if len(keys) < len(asked):
            return asked
        whole = Item(id=item.id, variables=inputs, language=item.language)
        return (*asked, *plan(whole))

    def _call(
        self, prompt: Prompt, keys: tuple[bytes, bytes], outcome: Outcome, several: bool
    ) -> CallTrace:
        first, last = keys
        chain = _chain(first, last)
        sent = bool(chain)
        found = self._store.find_completions(chain or [last])
        failure = _failure(outcome, prompt.frame.call if several else "")
        failed = last not in found and bool(failure)
        if chain and last not in found and failed:
            chain = chain[:-1]
        attempts = tuple(
            self._attempt(found.get(key), prompt)
            for key in (chain if sent else [last] if not failed else [])
        )
        return CallTrace(
            call=prompt.frame.call,
            shared=prompt.frame.messages,
            own=prompt.tail,
            schema=prompt.frame.schema,
            as_sent=sent,
            attempts=attempts,
            failure=failure if failed else "",
            rules=self._rules.explain(prompt) if self._rules else None,
        )

    def _bare(self, name: str, key: bytes, outcome: Outcome) -> CallTrace:
        """Return a call of which only the answer is left."""
        found = self._store.find_completions([key]).get(key)
        problem = "" if found else outcome.problem
        reading = Reading(None, (), "not read again: its prompt is gone")
        attempt = CallAnswer(found, found.thinking if found else "", reading, None)
        return CallTrace(
            call=name,
            shared=(Message("", ""),),
            own="",
            schema={},
            as_sent=False,
            attempts=() if problem else (attempt,),
            failure=problem,
            rules=None,
        )

    def _attempt(self, completion: Completion | None, prompt: Prompt) -> CallAnswer:
        if completion is None:
            gone = "not stored any more: `ranloop clean` removed it"
            return CallAnswer(None, "", Reading(None, (), gone), None)
        reading, thinking = self._read(completion, prompt), completion.thinking
        if not thinking and (reading.fields is None or reading.repairs):
            thinking = strip_thinking(completion.text).thinking
        return CallAnswer(completion, thinking, reading, self._cost(completion))

    def _read(self, completion: Completion, prompt: Prompt) -> Reading:
        if completion.finish_reason in CUT_OFF:
            return Reading(None, (), CUT_OFF[completion.finish_reason])
        if self._contract is None or self._plan is None:
            return Reading(None)
        for stage in self._plan.stages:
            if stage.name == prompt.frame.call:
                return stage.read(completion.text, prompt.item)
        return self._contract.read(completion.text, prompt.frame.fields, prompt.item)

    def _cost(self, completion: Completion) -> float | None:
        asked, given = completion.prompt_tokens, completion.completion_tokens
        if self.price is None or asked is None or given is None:
            return None
        return self.price.cost(asked, given, completion.cached_tokens or 0)

    def compare(self, calls: Sequence[CallTrace], outcome: Outcome, label: str) -> None:
        """Remark where what is shown is not what the run kept."""
        if self._plan is None:
            return
        unlike = [one.call for one in calls if not one.as_sent]
        if unlike:
            self.remarks.append(
                "what was answered was not asked with the messages below "
                f"({', '.join(unlike)}): the key of the stored answer is another one. "
                "The prompt, the case or a setting was changed since."
            )
        # What a first stage found is asked about, and no part of the outcome.
        stages = {one.name for one in self._plan.stages}
        last = [
            one.attempts[-1] for one in calls if one.attempts and one.call not in stages
        ]
        if any(one.completion is None for one in last):
            return
        read: dict[str, Field] = {}
        for one in last:
            read.update(one.reading.fields or {})
        kept = {
            name: field
            for name, field in outcome.fields.items()
            if not label or name in read
        }
        if read != kept:
            self.remarks.append(
                "the stored outcome is not what the reader makes of the answer today: "
                "another version of it read the run."
            )


def _chain(first: bytes, last: bytes) -> list[bytes]:
    """Return the keys of the answers from the first to the last; none if they part."""
    keys = [first]
    while keys[-1] != last:
        if len(keys) == _ATTEMPTS:
            return []
        keys.append(next_key(keys[-1]))
    return keys


def _failure(outcome: Outcome, call: str) -> str:
    """Return why a call has no answer, as the outcome says it."""
    if outcome.status is not Status.ENGINE_FAILED:
        return ""
    if not call:
        return outcome.problem
    said = [one for one in outcome.problem.split("; ") if one.startswith(f"{call}: ")]
    return "; ".join(said)


def texts_data(item: Item) -> dict[str, Any]:
    """Return the text of a case as JSON data; of a pair all of them, as ``texts``."""
    texts = dict(item.variables)
    return texts if texts.keys() == {"text"} else {"texts": texts}


def trace_data(trace: Trace) -> dict[str, Any]:
    """Return a trace as JSON data, nothing cut; the case's text is in it."""
    run = trace.run
    return {
        "run": run.id,
        "case": trace.item.id,
        "language": trace.item.language,
        **texts_data(trace.item),
        "status": trace.outcome.status.value,
        "problem": trace.outcome.problem,
        "fields": {name: _field(one) for name, one in trace.outcome.fields.items()},
        "repairs": list(trace.outcome.repairs),
        "prompt": run.spec.prompt,
        "cohort": run.spec.cohort,
        "draw": run.spec.draw,
        "engine": run.spec.engine,
        "engine_identity": dict(trace.identity),
        "parameters": dict(run.spec.parameters),
        "contract": run.spec.contract,
        "currency": trace.currency,
        "remarks": list(trace.remarks),
        "calls": [_call_data(one) for one in trace.calls],
    }


def _call_data(call: CallTrace) -> dict[str, Any]:
    return {
        "call": call.call,
        "as_sent": call.as_sent,
        "messages": [one._asdict() for one in call.messages()],
        "schema": dict(call.schema),
        "failure": call.failure,
        "attempts": [_attempt_data(one) for one in call.attempts],
        "rules": _rules_data(call.rules),
    }


def _attempt_data(attempt: CallAnswer) -> dict[str, Any]:
    given, reading = attempt.completion, attempt.reading
    measured = given._asdict() if given else {}
    measured.pop("error", None)
    return {
        **measured,
        "stored": given is not None,
        "thinking": attempt.thinking,
        "cost": attempt.cost,
        "problem": reading.problem,
        "repairs": list(reading.repairs),
        "fields": None
        if reading.fields is None
        else {name: _field(one) for name, one in reading.fields.items()},
    }


def _rules_data(rules: RulesExplanation | None) -> dict[str, Any] | None:
    if rules is None:
        return None
    return {
        "mentions": [_mention_data(one) for one in rules.mentions],
        "implied": dict(rules.implied),
        "disputed": list(rules.disputed),
    }


def _mention_data(mention: RulesMention) -> dict[str, Any]:
    places = (("span", mention.span), ("cue", mention.cue), ("scope", mention.scope))
    return {
        **mention._asdict(),
        **{name: place and place.data for name, place in places},
    }


def _field(field: Field) -> dict[str, Any]:
    data = {"value": field.value, "spans": [span.data for span in field.spans]}
    if not field.entries:
        return data
    return {
        **data,
        "entries": [
            {**one._asdict(), "spans": [span.data for span in one.spans]}
            for one in field.entries
        ],
    }
