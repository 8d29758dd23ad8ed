"""How engines are chosen and held: what is asked of them, once, and of which labels."""

import json
from contextlib import ExitStack
from dataclasses import replace

import pytest

from loop.core.config import read_config
from loop.core.errors import DataError, EngineError, UnknownEngineError
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Guide, Item, Outcome, PromptTask, Status
from loop.engines import base
from loop.engines.base import Settings, ignore_progress
from loop.engines.chexbert import HEADS
from loop.labels.taxonomy import NO_FINDING, read_taxonomy
from loop.prompts.outputs.label_values import LabelValues
from loop.prompts.version import CallPlan, PromptVersion
from loop.run.aside import Heard, ask_version
from loop.run.asking import (
    ChosenEngine,
    EngineOptions,
    HeldEngine,
    check_engine,
    choose_engine,
    count_retries,
    find_thinking,
    has_chance,
    hold_engine,
    labels_of,
    name_no_finding,
    opened,
    plan_calls,
)


class Plain:
    """An engine that does nothing but say who it is."""

    def identity(self):
        """Return a name."""
        return {"engine": "plain"}


class Served(Plain):
    """An engine that is opened, has chance in it, a seed, and data for each task."""

    retry_unreadable = 3

    def __init__(self, seed=0, task=None):
        """Begin closed."""
        self.seed, self.task, self.entered = seed, task, []

    def __enter__(self):
        """Note that it was opened."""
        self.entered.append("open")
        return self

    def __exit__(self, *error):
        """Note that it was closed."""
        self.entered.append("closed")

    def redraw(self, draw):
        """Return it with another seed."""
        return Served(self.seed + draw)

    def for_task(self, task):
        """Return it for a task."""
        return Served(self.seed, task)

    def account(self):
        """Return what it counted."""
        return {"asked": 7}


def held(engine, stack):
    """Return an engine that is held."""
    return HeldEngine(ChosenEngine("me:m", engine, {"seed": 1}), stack)


def test_an_engine_is_opened_by_the_first_that_asks_and_closed_by_its_holder():
    """Once, however many ask; one that nobody asks is never opened."""
    idle, busy = Served(), Served()
    with ExitStack() as stack:
        held(idle, stack)
        one = held(busy, stack)
        assert busy.entered == []
        assert one.identity() == one.identity() == {"engine": "plain"}
        assert one.asker == {
            "name": "me:m",
            "parameters": {"seed": 1},
            "identity": {"engine": "plain"},
        }
        assert busy.entered == ["open"]
    assert (idle.entered, busy.entered) == ([], ["open", "closed"])


def test_an_engine_that_was_stopped_is_not_asked_again():
    """Whether somebody had opened it or not."""
    for begun in (False, True):
        with ExitStack() as stack:
            one = held(Served(), stack)
            if begun:
                one.identity()
            one.stop()
            assert one.inner.entered[-1] == "closed"
            with pytest.raises(EngineError, match="me:m was stopped"):
                one.identity()
            with pytest.raises(EngineError, match="me:m was stopped"):
                one.redraw(1)
    with ExitStack() as stack:
        held(Plain(), stack).stop()


def test_a_draw_has_a_seed_of_its_own_where_there_is_one():
    """An engine without one is asked as it is; either is opened first."""
    with ExitStack() as stack:
        served = held(Served(seed=5), stack)
        assert served.redraw(2).seed == 7
        assert served.inner.entered == ["open"]
        plain = held(Plain(), stack)
        assert plain.redraw(2) is plain


def test_an_engine_that_cannot_do_something_is_as_it_is():
    """No retries, no counts, no chance, and the same for every task."""
    with ExitStack() as stack:
        plain, served = held(Plain(), stack), held(Served(), stack)
        assert (plain.retry_unreadable, served.retry_unreadable) == (0, 3)
        assert (count_retries(Plain()), count_retries(Served())) == (0, 3)
        assert (plain.account(), served.account()) == ({}, {"asked": 7})
        assert (has_chance(plain), has_chance(served)) == (False, True)
        assert (has_chance(Plain()), has_chance(Served())) == (False, True)
        assert plain.for_task(PromptTask.JUDGE) is plain
        judge = served.for_task(PromptTask.JUDGE)
        assert judge.inner.task is PromptTask.JUDGE
        assert (judge.name, judge.parameters) == ("me:m", {"seed": 1})


@pytest.mark.parametrize("name", ["replay", "replay:20260101-000000-abcdef"])
def test_a_replay_is_not_held(tmp_path, name):
    """It belongs to one run."""
    with (
        pytest.raises(EngineError, match="gives the answers of one run again"),
        hold_engine(WorkspacePaths(tmp_path), name),
    ):
        pass


@pytest.mark.parametrize(
    ("engine", "asked", "found"),
    [
        ("rules", "default", "default"),
        ("openai:m", " Low ", "low"),
        ("vllm:m", "2048", "2048"),
    ],
)
def test_only_a_language_model_thinks(engine, asked, found):
    """Another engine is asked without; a level that is none is refused of all."""
    assert find_thinking(engine, EngineOptions(thinking=asked)) == found
    with pytest.raises(EngineError, match="rules is no language model"):
        find_thinking("rules", EngineOptions(thinking="low"))
    with pytest.raises(EngineError, match="Correct it"):
        find_thinking(engine, EngineOptions(thinking="much"))


def test_thinking_is_a_parameter_only_where_it_is_asked_for(workspace):
    """Runs from before there was any have none, and their answers are found again."""
    usual = {"temperature": 0.0, "max_tokens": 2048, "seed": 0}
    asked = choose_engine(workspace, "openai:m", EngineOptions())
    assert (asked.name, asked.parameters) == ("openai:m", usual)
    options = EngineOptions(temperature=0.5, max_tokens=9, seed=3, thinking="low")
    told = {"temperature": 0.5, "max_tokens": 9, "seed": 3, "thinking": "low"}
    assert choose_engine(workspace, "openai:m", options).parameters == told


VERSION = PromptVersion(
    name="tiny",
    number=1,
    system="Read.\n",
    user="{% for one in guides %}{{ one.label }} {% endfor %}{{ text }}",
    guides=tuple(
        Guide(label=name, name=name, definition="x")
        for name in ("edema", "fracture", "mass")
    ),
    plan=CallPlan.PER_LABEL,
)


@pytest.mark.parametrize(
    ("labels", "calls"),
    [
        ((), [("edema",), ("fracture",), ("mass",)]),
        (("mass", "edema", "other"), [("edema", "mass")]),
        (("mass", NO_FINDING), [("mass", NO_FINDING)]),
    ],
)
def test_an_engine_is_asked_about_what_it_knows_in_one_call(labels, calls):
    """In the order of the version, "No Finding" last; all of it where it is asked."""
    plan = plan_calls(VERSION, LabelValues(), labels)
    assert [call.frame.fields for call in plan.calls] == calls
    for call in plan.calls:
        assert call.frame.schema == LabelValues().schema(call.frame.fields)


def test_a_version_of_other_labels_is_refused():
    """Every case would be answered with nothing."""
    with pytest.raises(DataError, match="asks for no label that the engine knows"):
        plan_calls(VERSION, LabelValues(), ("other", NO_FINDING))


def test_an_engine_is_made_with_all_that_was_asked_for(workspace, monkeypatch):
    """Each setting under its own name; what is left out is the usual."""
    made = []

    def make(name, settings):
        made.append((name, settings))
        return Served()

    monkeypatch.setitem(base._FACTORIES, "openai", make)
    archive, told = object(), []
    options = EngineOptions(
        temperature=0.5,
        max_tokens=9,
        seed=3,
        thinking="low",
        allow_unconstrained=True,
        batch=True,
        tell=told.append,
    )
    chosen = choose_engine(workspace, "openai:m", options, archive, PromptTask.JUDGE)
    assert chosen.engine.task is PromptTask.JUDGE
    choose_engine(workspace, "openai:n", EngineOptions())
    place = {
        "labels": workspace.labels,
        "private": workspace.private,
        "config": read_config(workspace),
    }
    assert made == [
        (
            "m",
            Settings(
                **place,
                temperature=0.5,
                max_tokens=9,
                seed=3,
                thinking="low",
                allow_unconstrained=True,
                batch=True,
                archive=archive,
                tell=told.append,
            ),
        ),
        ("n", Settings(**place, tell=ignore_progress)),
    ]


@pytest.mark.parametrize(
    "name", ["rules", "openai:m", "vllm:m", "replay:x", "chexbert"]
)
def test_every_shipped_engine_is_known_without_being_imported(name):
    """And another one is not."""
    check_engine(name)
    with pytest.raises(UnknownEngineError, match="no engine 'nothing'"):
        check_engine(f"nothing:{name}")


def test_an_engine_of_a_few_labels_names_them(workspace):
    """It reads "No Finding" where it knows the label; else a policy derives it."""
    taxonomy = read_taxonomy(workspace.labels)
    assert labels_of("chexbert") == labels_of("chexbert:/weights") == HEADS
    assert labels_of("rules") == labels_of("openai:chexbert") == ()
    assert name_no_finding(taxonomy, "chexbert") == "read"
    assert name_no_finding(taxonomy, "rules") == taxonomy.no_finding_policy.value
    without = replace(
        taxonomy, labels=tuple(one for one in taxonomy.labels if one.id != NO_FINDING)
    )
    assert name_no_finding(without, "chexbert") == ""


def test_an_engine_is_open_for_the_length_of_a_block():
    """Also where the block ends with an error; one that holds nothing is as it is."""
    served = Served()
    with pytest.raises(ValueError, match="stop"), opened(served) as engine:
        assert engine is served and served.entered == ["open"]
        raise ValueError("stop")
    assert served.entered == ["open", "closed"]
    plain = Plain()
    with opened(plain) as engine:
        assert engine is plain


def test_an_engine_that_cannot_stream_answers_at_once():
    """One that can is given whom to tell."""

    class Written(Served):
        def complete(self, prompts):
            return iter([(0, Completion("whole"))])

    class Writing(Written):
        def stream(self, prompts, tell):
            tell(0, "wh")
            return self.complete(prompts)

    for engine, heard in ((Written(), []), (Writing(), [(0, "wh")])):
        told = []

        def tell(*said, told=told):
            told.append(said)

        with ExitStack() as stack:
            one = held(engine, stack)
            wanted = [(0, Completion("whole"))]
            assert [*one.complete(())] == wanted
            assert [*one.stream((), tell)] == wanted
        assert told == heard


def test_a_held_engine_is_of_its_name_and_its_task(workspace, monkeypatch):
    """And is closed with the block."""
    made = []

    def make(name, settings):
        made.append(Served())
        return made[-1]

    monkeypatch.setitem(base._FACTORIES, "openai", make)
    options = EngineOptions(seed=4)
    with hold_engine(workspace, "openai:m", options, PromptTask.JUDGE) as one:
        assert (one.name, one.inner.task) == ("openai:m", PromptTask.JUDGE)
        assert one.parameters == {"temperature": 0.0, "max_tokens": 2048, "seed": 4}
        one.identity()
        assert one.inner.entered == ["open"]
    assert one.inner.entered == ["open", "closed"]
    with hold_engine(workspace, "openai:m") as one:
        assert one.parameters["seed"] == 0
        assert one.inner.task is PromptTask.EXTRACT


class Thoughtful(Served):
    """Says what it was asked, in its own draw."""

    def __init__(self, seed=0, task=None):
        """Begin with nothing asked."""
        super().__init__(seed, task)
        self.asked = []

    def for_task(self, task):
        """Return itself."""
        return self

    def redraw(self, draw):
        """Note the draw."""
        self.asked.append(("draw", draw))
        return self

    def complete(self, prompts):
        """Answer absent to everything."""
        for index, prompt in enumerate(prompts):
            self.asked.append((prompt.item.id, prompt.messages[-1].content))
            said = {name: {"value": "absent"} for name in prompt.frame.fields}
            yield index, Completion(json.dumps(said))


SPACED = replace(VERSION, user="{{ guides[0].name }}\n\n{{ text }}")


@pytest.fixture
def thoughtful(monkeypatch):
    """Return an engine with chance in it, registered for one test."""
    engine = Thoughtful()
    monkeypatch.setitem(base._FACTORIES, "openai", lambda name, settings: engine)
    return engine


def items(*texts):
    """Return a case for each text."""
    return [Item(id=f"c{n}", variables={"text": one}) for n, one in enumerate(texts)]


def test_a_version_is_asked_aside_in_draws_that_no_run_has(
    workspace, store, thoughtful
):
    """Once as a run's draw 0; more often with seeds and blanks of their own."""
    with hold_engine(workspace, "openai:m") as engine:
        once = ask_version(workspace, store, SPACED, items("a", "b"), engine)
        again = ask_version(workspace, store, SPACED, items("a"), engine, draws=1)
        assert len(thoughtful.asked) == 6
        thoughtful.asked.clear()
        twice = ask_version(
            workspace, store, SPACED, items("a"), engine, label="mass", draws=2
        )
    assert [[one.item_id for one in draw] for draw in once.draws] == [["c0", "c1"]]
    assert len(again.draws) == 1 and len(twice.draws) == 2
    assert again.draws[0][0] == once.draws[0][0]
    assert [*once.draws[0][0].fields] == ["edema", "fracture", "mass"]
    assert [*twice.draws[0][0].fields] == ["mass"]
    assert thoughtful.asked == [
        ("draw", 1_000_001),
        ("c0", "mass\n\n \na"),
        ("draw", 1_000_002),
        ("c0", "mass\n\n \n \na"),
    ]
    assert once.rules == twice.rules == {}
    assert store.find_runs() == []


def test_a_version_that_does_not_ask_about_a_label_answers_nothing_of_it(
    workspace, store, thoughtful
):
    """Nobody is asked, and nothing failed."""
    with hold_engine(workspace, "openai:m") as engine:
        found = ask_version(
            workspace, store, SPACED, items("a", "b"), engine, label="other", draws=2
        )
    silent = tuple(Outcome(item_id=f"c{n}", status=Status.ANSWERED) for n in range(2))
    assert found.draws == (silent, silent)
    assert thoughtful.asked == []


def test_an_engine_that_repeats_itself_is_not_asked_in_draws(workspace, store):
    """They would show nothing; once it explains itself."""
    version = replace(SPACED, plan=CallPlan.JOINT)
    cases = items("No edema. Rib fracture.", "Edema.")
    with hold_engine(workspace, "rules") as engine:
        with pytest.raises(
            EngineError, match="rules answers the same prompt in the sa"
        ):
            ask_version(workspace, store, version, cases, engine, draws=2)
        found = ask_version(workspace, store, version, cases, engine, keep=False)
        none = ask_version(workspace, store, version, [], engine)
    assert set(found.rules) == {"edema", "fracture", "mass"}
    assert (none.draws, none.rules) == (((),), {})
    assert store.count_completions() == 0


class Writing(Thoughtful):
    """Writes its answers bit by bit, as a server sends them; the last prompt first."""

    bits = ("<", "<think", "<think>hm</think>", "so", "so", "sofa", "s", "")

    def stream(self, prompts, tell):
        """Tell the bits of every answer, then answer."""
        asked = [*prompts]
        for index in reversed(range(len(asked))):
            for bit in self.bits:
                tell(index, bit)
        yield from self.complete(asked)


def test_what_is_written_aside_is_heard_with_the_call_that_it_answers(
    workspace, store, monkeypatch
):
    """Of every case and label; what is thought, or was told just now, is not told."""
    engine = Writing()
    monkeypatch.setitem(base._FACTORIES, "openai", lambda name, settings: engine)
    heard = []
    with hold_engine(workspace, "openai:m") as held_engine:
        ask_version(
            workspace,
            store,
            SPACED,
            items("a", "b"),
            held_engine,
            draws=2,
            heard=heard.append,
        )
    assert heard == [
        Heard("tiny@v1", draw, call, 6, text)
        for draw in (1, 2)
        for call in (6, 5, 4, 3, 2, 1)
        for text in ("so", "sofa", "s", "")
    ]
