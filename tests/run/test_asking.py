"""How engines are chosen and held: what is asked of them, once, and of which labels."""

from contextlib import ExitStack

import pytest

from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide, PromptTask
from loop.labels.taxonomy import NO_FINDING
from loop.prompts.outputs.label_values import LabelValues
from loop.prompts.version import CallPlan, PromptVersion
from loop.run.asking import (
    ChosenEngine,
    EngineOptions,
    HeldEngine,
    choose_engine,
    count_retries,
    find_thinking,
    has_chance,
    hold_engine,
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
    for opened in (False, True):
        with ExitStack() as stack:
            one = held(Served(), stack)
            if opened:
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
