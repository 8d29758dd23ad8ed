"""Glues a prompt version, a cohort and an engine into one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any

from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_bytes
from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Item, Prompt
from loop.engines.base import (
    Accounting,
    Engine,
    LanguageBound,
    Redrawing,
    ignore_progress,
)
from loop.labels.cohort import (
    Cohort,
    CohortRole,
    iter_items,
    read_cohort,
    read_record,
    require_inputs,
)
from loop.labels.language import UNKNOWN
from loop.labels.reference import list_references, read_reference
from loop.labels.sealing import Opening, require_opening
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import PromptPlan, space_out
from loop.prompts.stages import STAGES, given_texts
from loop.prompts.version import CallPlan, PromptVersion
from loop.run.asking import (
    ChosenEngine,
    EngineOptions,
    HeldEngine,
    choose_engine,
    count_retries,
    has_chance,
    labels_of,
    opened,
    plan_calls,
)
from loop.run.execute import RunSummary, Work, execute
from loop.run.manifest import (
    Environment,
    find_run,
    read_environment,
    read_manifest,
    write_manifest,
)
from loop.run.pool_shots import (
    UNKNOWN_PATIENTS,
    PairToJudge,
    find_shared,
    require_apart,
    with_shots,
)
from loop.run.spec import RunSpec, drawn
from loop.run.store import KEY_BYTES, RunRecord, open_store
from loop.run.task_fields import require_fields, task_of


class StoredRun:
    """The answers of one run; a context manager that holds the store open.

    Prompts are best looked for in cohort order: the answers are read as one stream,
    however long the run, and of a judge in stages from its beginning again for one
    that went by.
    """

    def __init__(
        self, workspace: WorkspacePaths, run_id: str, calls: Sequence[str]
    ) -> None:
        """Prepare to read `run_id`, whose items took the `calls` of their plan.

        Raises
        ------
        DataError
            The run's manifest is missing or was changed.
        """
        self.run_id = run_id
        self._workspace = workspace
        self._place = {call: number for number, call in enumerate(calls)}
        self._in_stages = any(call in STAGES for call in calls)
        manifest = read_manifest(workspace, run_id)
        try:
            self.parameters: Mapping[str, Any] = dict(manifest["spec"]["parameters"])
            self._identity: Mapping[str, object] = dict(manifest["engine_identity"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"the manifest of run {run_id} does not say which engine answered; "
                "something other than ranloop changed it. Run the same `ranloop run` "
                "again for a new one."
            ) from error
        self._open = ExitStack()

    def identity(self) -> Mapping[str, object]:
        """Return the identity of the engine that answered, through other replays."""
        identity = self._identity
        while isinstance(source := identity.get("source"), Mapping):
            identity = source
        return identity

    def __enter__(self) -> StoredRun:
        self._store = self._open.enter_context(open_store(self._workspace))
        self._rows = self._store.read_keys(self.run_id)
        self._item, self._keys = "", b""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def find(self, prompts: Sequence[Prompt]) -> list[Completion | None]:
        """Return what was answered to each prompt; None where nothing is stored."""
        keys = [self._key(prompt) for prompt in prompts]
        found = self._store.find_completions([key for key in keys if key])
        return [found.get(key) for key in keys]

    def _key(self, prompt: Prompt) -> bytes:
        """Return the key under which a prompt's answer is stored, or nothing."""
        wanted = prompt.item.id
        found = wanted == self._item or self._advance(self._rows, wanted)
        if not found and self._in_stages:
            # What a later stage asks comes after the first stage of other items.
            self._rows = self._store.read_keys(self.run_id)
            self._advance(self._rows, wanted)
        start = self._place[prompt.frame.call] * KEY_BYTES
        return self._keys[start : start + KEY_BYTES]

    def _advance(self, rows: Iterator[tuple[str, bytes]], wanted: str) -> bool:
        """Read on to the item `wanted`, and say whether it is there."""
        self._item, self._keys = wanted, b""
        for item, keys in rows:
            if item == wanted:
                self._keys = keys
                return True
        return False


def find_archive(
    workspace: WorkspacePaths, ref: str, version: PromptVersion, cohort: Cohort
) -> StoredRun:
    """Return the stored answers of the run `ref`, if it asked the same questions.

    Raises
    ------
    DataError
        There is no such finished run.
    EngineError
        It asked another prompt version, other cases, or an engine of a few labels.
    """
    if not ref:
        raise EngineError(
            "a replay needs a run: write replay:RUN, with an id that `ranloop run` "
            "gave, or replay:latest."
        )
    record = find_run(workspace, ref)
    if record.spec.prompt_digest != version.digest:
        raise EngineError(
            f"run {record.id} asked {record.spec.prompt} "
            f"({record.spec.prompt_digest[:12]}), not {version.ref} "
            f"({version.digest[:12]}). A replay gives an earlier run's answers to the "
            "same prompt; ask an engine for another one."
        )
    if labels_of(record.spec.engine):
        raise EngineError(
            f"run {record.id} asked {record.spec.engine}, which is not asked about "
            "every label, and a replay is. Name that engine again: its answers are "
            "stored, and nothing is asked twice."
        )
    if record.spec.cohort_digest != cohort.digest:
        raise EngineError(
            f"run {record.id} asked the cases of {record.spec.cohort} "
            f"({record.spec.cohort_digest[:12]}), not those {cohort.name} holds now "
            f"({cohort.digest[:12]}). Ask an engine for these cases."
        )
    return StoredRun(workspace, record.id, _calls(version))


def _calls(version: PromptVersion) -> tuple[str, ...]:
    """Return the names of the calls of one item, as the plan orders them."""
    stages = tuple(name for name in version.inputs if name in STAGES)
    own = ("joint",) if version.plan is CallPlan.JOINT else version.labels
    return (*stages, *own)


Watch = Callable[[Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A run that is ready to start."""

    spec: RunSpec
    work: Work
    plan: PromptPlan
    """That of `work`."""

    engine: Engine
    total: int
    """Number of items."""

    unread: str = ""
    """That the engine cannot read some of the items, and what to do; else empty."""


@dataclass(frozen=True, slots=True)
class _CohortItems:
    """The first items of a cohort; opens its texts only when they are read."""

    workspace: WorkspacePaths
    cohort: Cohort
    limit: int | None

    def __iter__(self) -> Iterator[Item]:
        return islice(iter_items(self.workspace, self.cohort), self.limit)


def prepare_run(
    workspace: WorkspacePaths,
    prompt: str | PromptVersion,
    cohort: str | Opening,
    *,
    engine: str | HeldEngine = "rules",
    limit: int | None = None,
    asking: EngineOptions | None = None,
    again: bool = False,
) -> Task:
    """Return the run of prompt version `prompt` over `cohort`, not yet started.

    Parameters
    ----------
    prompt
        Reference of a version, for example ``"extractor"`` or ``"extractor@v3"``, or
        the version itself, as a release ships it.
    cohort
        Name of an imported cohort; a holdout is named by what opens it for this very
        version, see `loop.labels.sealing`.
    engine
        Engine name, for example ``"rules"``, or an engine that is held open.
    limit
        Only the first so many cases; None for all.
    asking
        How the engine is asked, None for greedily; an engine that is held open has its
        own way.
    again
        Whether to ask anew what an earlier run could not read, beyond the attempts
        that it made.

    Raises
    ------
    SealedError
        An opening does not open its holdout for this version.
    DataError
        The version, the cohort or its contract cannot be used, the version reads
        what the cases do not have, asks for no label of the taxonomy, or its shots are
        not to be found.
    OverlapError
        A pair of the cohort shares its reference, patient or id with a shot.
    EngineError
        There is no such engine, it is not available, or it does not read the language
        of the cohort.
    """
    version = read_version(workspace, prompt) if isinstance(prompt, str) else prompt
    version = with_shots(workspace, version)
    members = _find_cohort(workspace, cohort, version)
    require_inputs(members, version.ref, given_texts(version.inputs))
    contract = get_contract(version.contract)
    require_fields(workspace, version)
    chosen = _choose(workspace, engine, asking or EngineOptions(), version, members)
    items = _CohortItems(workspace, members, limit)
    tell = (asking or EngineOptions()).tell
    require_unseen(workspace, version, members, items, tell=tell)
    unread = require_language(chosen, members, items)
    if again and not has_chance(chosen.engine):
        raise EngineError(
            f"{chosen.name} answers the same prompt in the same way each time, so "
            "asking again changes nothing. See with `ranloop failures` which answers "
            "cannot be read, and correct the prompt."
        )
    reference, reference_digest = _newest_reference(workspace, members.name)
    spec = RunSpec(
        prompt=version.ref,
        prompt_digest=version.digest,
        contract=f"{contract.name}/{contract.version}",
        cohort=members.name,
        cohort_digest=members.digest,
        reference=reference,
        reference_digest=reference_digest,
        protocol_digest=_protocol_digest(workspace),
        engine=chosen.name,
        parameters=chosen.parameters,
        limit=limit,
    )
    plan = plan_calls(version, contract, labels_of(chosen.name))
    work = Work(
        items=items,
        plan=plan,
        contract=contract,
        retries=count_retries(chosen.engine),
        again=again,
    )
    size = len(members.cases)
    return Task(
        spec=spec,
        work=work,
        plan=plan,
        engine=chosen.engine,
        total=size if limit is None else min(size, limit),
        unread=unread,
    )


def run_task(
    workspace: WorkspacePaths,
    task: Task,
    *,
    watch: Watch | None = None,
    now: Clock = utc_now,
    actor: str | None = None,
) -> RunSummary:
    """Run `task`, write its manifest, and return what happened.

    Parameters
    ----------
    watch
        Wraps rows, of which one passes for each item that has its outcome; None to
        show no progress.
    actor
        Who starts it; None where nobody is to be named.

    Raises
    ------
    LoopError
        As `execute` does; what was answered until then is kept.
    """
    (summary,) = run_draws(workspace, task, (0,), watch=watch, now=now, actor=actor)
    return summary


def run_draws(
    workspace: WorkspacePaths,
    task: Task,
    draws: Iterable[int],
    *,
    watch: Watch | None = None,
    now: Clock = utc_now,
    actor: str | None = None,
) -> Iterator[RunSummary]:
    """Run the `draws` of `task`, by number, yielding what happened after each.

    Watch and actor are as for `run_task`.

    Every draw is a run of its own with its own seed and its own answers: none is taken
    from another draw. A draw that was answered before is not asked again. The engine
    is opened once. An engine with chance gets the prompt of draw N with N more blank
    lines between its paragraphs, see `loop.prompts.render.space_out`: at temperature 0
    the same prompt would only show what the server does not repeat.

    Raises
    ------
    LoopError
        As `execute` does; what was answered until then is kept.
    """
    environment = read_environment(workspace.root)
    spaced = has_chance(task.engine)
    with opened(task.engine) as engine, open_store(workspace) as store:
        for draw in draws:
            asked = engine if draw == 0 else _redraw(engine, draw)
            seal = _sealer(workspace, asked, environment)
            spec = drawn(task.spec, draw, spaced=spaced)
            work = task.work
            if draw and spaced:
                work = replace(work, plan=space_out(task.plan, draw))
            with _watched(work, task.total, watch) as told:
                done = execute(
                    spec, told, asked, store, now=now, seal=seal, actor=actor
                )
            yield done


@contextmanager
def _watched(work: Work, total: int, watch: Watch | None) -> Iterator[Work]:
    """Have `watch` count the items that have their outcome, while `work` is done.

    What is asked for is no measure of how far a run is: a slow engine has taken all
    cases of a small cohort before it answers the first.
    """
    if watch is None:
        yield work
        return
    ended = iter(watch(iter(range(total))))
    # A row has passed once the next one is asked for.
    next(ended, None)
    try:
        yield replace(work, ended=partial(next, ended, None))
    finally:
        if isinstance(ended, Generator):
            ended.close()


def _redraw(engine: Engine, draw: int) -> Engine:
    """Return the open `engine` with the seed of `draw`; one without seeds as it is."""
    return engine.redraw(draw) if isinstance(engine, Redrawing) else engine


def _sealer(
    workspace: WorkspacePaths, engine: Engine, environment: Environment
) -> Callable[[RunRecord], None]:
    """Return what writes the manifest of a run once its outcomes are there."""
    identity = engine.identity()

    def seal(record: RunRecord) -> None:
        account = engine.account() if isinstance(engine, Accounting) else {}
        write_manifest(workspace, record, identity, environment, account or None)

    return seal


def run_prompt(
    workspace: WorkspacePaths,
    prompt: str,
    cohort: str,
    *,
    engine: str | HeldEngine = "rules",
    limit: int | None = None,
    draw: int = 0,
    watch: Watch | None = None,
    actor: str | None = None,
) -> RunSummary:
    """Prepare and run one draw in one step; see `prepare_run` and `run_draws`."""
    task = prepare_run(workspace, prompt, cohort, engine=engine, limit=limit)
    (summary,) = run_draws(workspace, task, (draw,), watch=watch, actor=actor)
    return summary


def require_language(
    chosen: ChosenEngine, cohort: Cohort, items: Iterable[Item]
) -> str:
    """Refuse an engine that can read none of the cases, before it is asked.

    Parameters
    ----------
    items
        The cases to ask; gone through only where they are in several languages.

    Returns
    -------
    str
        How many cases the engine cannot read, by language, and what to do; empty where
        it reads all.

    Raises
    ------
    DataError
        The texts have to be gone through, and are not here or not the pinned ones.
    EngineError
        The engine reads the language of no case.
    """
    asked = chosen.engine
    asked = asked.inner if isinstance(asked, HeldEngine) else asked
    if not isinstance(asked, LanguageBound) or not cohort.language:
        return ""
    mixed = cohort.language == "mixed"
    found = Counter(one.language for one in items) if mixed else {cohort.language: 0}
    unread = {code: n for code, n in found.items() if code not in asked.languages}
    if not unread:
        return ""
    cued = not labels_of(chosen.name)
    reads = f"{chosen.name} reads {', '.join(sorted(asked.languages))}"
    reads += " (labels/cues/)" if cued else ""
    said, way = _name_languages(unread), _way_to_read(unread, cued=cued)
    if len(unread) == len(found):
        raise EngineError(
            f"{reads}, and the cases of {cohort.name} are in {said}. {way}"
        )
    return (
        f"{reads}, and {sum(unread.values()):,} of {sum(found.values()):,} cases are "
        f"in {said}: these get no answer. {way}"
    )


def _name_languages(cases: Mapping[str, int]) -> str:
    """Return languages, those of most cases first; a cohort's only one uncounted."""
    return ", ".join(
        (code if _known(code) else "a language that was not recognised")
        + (f" ({cases[code]:,})" if cases[code] else "")
        for code in sorted(cases, key=lambda code: (-cases[code], code))
    )


def _way_to_read(cases: Mapping[str, int], *, cued: bool) -> str:
    codes = [*cases]
    file = codes[0] if len(codes) == 1 and _known(codes[0]) else "LANGUAGE"
    several = " or a column `language`" if any(cases.values()) else ""
    cues = (
        f" write labels/cues/{file}.yaml after the example of en.yaml," if cued else ""
    )
    return (
        f"Ask a language model with --engine openai:MODEL@URL,{cues} or import the "
        f"cohort again with the right --language{several}."
    )


def _known(language: str) -> bool:
    return language not in ("", UNKNOWN)


def check_way(engine: str, *, repeats: int = 1, batch: bool = False) -> None:
    """Refuse what would only look like what was asked for.

    Raises
    ------
    ValueError
        There are no `repeats`, or the engine cannot repeat itself or take a batch.
    """
    scheme = engine.partition(":")[0]
    if repeats < 1:
        raise ValueError(f"repeats must be >= 1, got {repeats}")
    if repeats > 1 and scheme == "replay":
        raise ValueError(
            "a replay gives the same answers each time: repeats need an engine that "
            "gives new answers"
        )
    if batch and scheme != "vllm":
        raise ValueError(f"a batch needs an engine vllm:MODEL, got {scheme!r}")


def require_answers(summary: RunSummary) -> None:
    """Refuse a run in which no case was answered.

    Raises
    ------
    EngineError
        There is none; says why.
    """
    if summary.answered:
        return
    why = "; ".join(one.text for one in summary.problems[:3]) or "no reason was given"
    raise EngineError(
        f"no case of run {summary.run_id} was answered ({why}). There is nothing to "
        "score. Correct the engine or the prompt and run it again; `--again unparsed` "
        "asks a model once more for what could not be read."
    )


def check_open(cohort: Cohort) -> None:
    """Refuse a cohort that no prompt version may be asked about.

    Raises
    ------
    DataError
        It is a holdout, or holds no cases.
    """
    if cohort.role is CohortRole.HOLDOUT:
        raise DataError(
            f"cohort {cohort.name} has the role holdout, and holdout cohorts open only "
            "for a frozen version. Use a dev or external cohort."
        )
    if not cohort.cases:
        raise DataError(
            f"cohort {cohort.name} has no cases. Import some with "
            "`ranloop cohort import`."
        )


def require_unseen(
    workspace: WorkspacePaths,
    version: PromptVersion,
    members: Cohort,
    items: Iterable[Item],
    *,
    tell: Callable[[str], None] = ignore_progress,
) -> None:
    """Refuse pairs of a cohort that share something with the shots of a version.

    Parameters
    ----------
    tell
        Told where it cannot be known whether they share a patient.

    Raises
    ------
    DataError
        The pool or the shots are not here.
    OverlapError
        A pair shares its id, its patient or its reference with a shot.
    """
    if version.shots is None:
        return
    patients = {case.case_id: case.patient for case in members.cases}
    pairs = (
        PairToJudge(one.id, one.variables.get("reference", ""), patients[one.id])
        for one in items
    )
    shared = find_shared(workspace, version, pairs, pseudonym_key=members.pseudonym_key)
    way = (
        f"Import {members.name} again without them (--exclude, or another --part), or "
        "choose shots of another pool."
    )
    if members.name == version.shots.pool:
        way = "This cohort is the pool itself: name the cohort to measure on."
    require_apart(version, shared, way)
    if not shared.patients_compared:
        tell(f"{version.ref}: {UNKNOWN_PATIENTS}")


def _find_cohort(
    workspace: WorkspacePaths, cohort: str | Opening, version: PromptVersion
) -> Cohort:
    """Return the cohort to ask about: any but a holdout, or the one that is opened."""
    if isinstance(cohort, str):
        members = read_cohort(workspace, cohort)
        check_open(members)
        return members
    record = read_record(workspace, cohort.cohort)
    require_opening(workspace, record, cohort, prompt_digest=version.digest)
    return read_cohort(workspace, cohort.cohort, record=record)


def _newest_reference(
    workspace: WorkspacePaths, cohort: str
) -> tuple[int | None, str | None]:
    """Return number and digest of the newest reference version, if there is one."""
    record = read_record(workspace, cohort)
    if record.is_holdout:
        # Known without a look: the labels are sealed until the run is scored.
        return record.newest or None, record.newest_digest
    if not list_references(workspace, cohort):
        return None, None
    reference = read_reference(workspace, cohort)
    return reference.number, reference.digest


def _protocol_digest(workspace: WorkspacePaths) -> str | None:
    try:
        return digest_bytes(workspace.protocol.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(
            f"cannot read {workspace.protocol}: {error.strerror}. Check the file."
        ) from error


def _choose(
    workspace: WorkspacePaths,
    engine: str | HeldEngine,
    asking: EngineOptions,
    version: PromptVersion,
    cohort: Cohort,
) -> ChosenEngine:
    """Return the engine to ask; a replay with what its run was asked with."""
    task = task_of(version)
    if isinstance(engine, HeldEngine):
        held = engine.for_task(task)
        return ChosenEngine(held.name, held, held.parameters)
    scheme, _, rest = engine.partition(":")
    if scheme != "replay":
        return choose_engine(workspace, engine, asking, task=task)
    archive = find_archive(workspace, rest, version, cohort)
    name = f"replay:{archive.run_id}"
    chosen = choose_engine(workspace, name, asking, archive)
    return chosen._replace(parameters=archive.parameters)
