"""Unreadable answers are asked again: how often, what is kept, what a rerun finds."""

import json
from collections import Counter

import pytest

from loop.core.errors import EngineError
from loop.core.records import Completion, Status
from loop.prompts.outputs.binary import BinaryValues
from loop.prompts.outputs.label_values import LabelValues
from loop.run.execute import Work, execute, next_key
from loop.run.store import read_outcomes

PROSE = "I cannot tell."


class Stutterer:
    """Answers with prose so many times before it answers with JSON."""

    def __init__(self, kit, times):
        """Take how often each text is answered with prose; others never are."""
        self.kit, self.times = kit, times
        self.asked = Counter()
        self.dies_after = None

    def identity(self):
        """Return a name."""
        return {"engine": "stutterer"}

    def complete(self, prompts):
        """Yield answers in order, and stop working where it is told to."""
        for index, prompt in enumerate(prompts):
            if self.dies_after is not None and self.asked.total() >= self.dies_after:
                raise EngineError("the server is gone. Start it again.")
            name = prompt.item.variables["text"], prompt.frame.call
            self.asked[name] += 1
            prose = self.asked[name] <= self.times.get(name[0], 0)
            answer = PROSE if prose else self.kit.absent(prompt.frame.fields)
            yield index, Completion(answer)


@pytest.fixture
def ask(store, kit):
    """Return what runs texts past an engine, with two retries."""

    def run(engine, *texts, plan=kit.JOINT, retries=2, again=False):
        work = Work(
            items=kit.make_items(*texts),
            plan=plan,
            contract=LabelValues(),
            retries=retries,
            again=again,
        )
        summary = execute(kit.make_spec(), work, engine, store)
        return summary, list(read_outcomes(store, summary.run_id))

    return run


def test_an_unreadable_answer_is_asked_for_again(store, kit, ask):
    """As often as is allowed; every attempt is kept and counted."""
    engine = Stutterer(kit, {"once": 1, "twice": 2, "thrice": 3})
    summary, outcomes = ask(engine, "never", "once", "twice", "thrice")
    assert [one.status for one in outcomes] == [Status.ANSWERED] * 3 + [Status.UNPARSED]
    assert [engine.asked[text, "joint"] for text in ("never", "once", "twice")] == [
        1,
        2,
        3,
    ]
    assert outcomes[3].problem == (
        "there is no JSON object in the answer; asked 3 times"
    )
    assert (summary.asked, summary.retried, summary.recovered) == (9, 5, 2)
    assert summary.asked == engine.asked.total() == store.count_completions()


def test_without_retries_one_attempt_is_all(kit, ask):
    """Nothing is asked again, and nothing says that it was."""
    engine = Stutterer(kit, {"once": 1})
    summary, (outcome,) = ask(engine, "once", retries=0)
    assert outcome.problem == "there is no JSON object in the answer"
    assert (summary.asked, summary.retried, summary.recovered) == (1, 0, 0)


@pytest.mark.parametrize(
    ("retries", "said"), [(0, ""), (1, "; asked 2 times"), (2, "; asked 3 times")]
)
def test_a_problem_says_how_often_was_asked(kit, ask, retries, said):
    """Where it was more than once."""
    _, (outcome,) = ask(Stutterer(kit, {"never": 9}), "never", retries=retries)
    assert outcome.problem == f"there is no JSON object in the answer{said}"


def test_a_rerun_finds_every_attempt(kit, ask):
    """The same command asks nothing and says the same."""
    engine = Stutterer(kit, {"twice": 2, "often": 9})
    first, before = ask(engine, "twice", "often")
    second, after = ask(engine, "twice", "often")
    assert (first.asked, second.asked, second.retried) == (6, 0, 0)
    assert second.recovered == 1
    assert after == before


def test_asking_again_goes_on_where_it_ended(kit, ask):
    """`again` asks what is still unreadable; later runs take what it brought."""
    engine = Stutterer(kit, {"fifth": 4, "never": 99})
    ask(engine, "fifth", "never", "fine")
    second, outcomes = ask(engine, "fifth", "never", "fine", again=True)
    assert (second.asked, second.retried, second.recovered) == (4, 4, 1)
    assert [one.status for one in outcomes] == [
        Status.ANSWERED,
        Status.UNPARSED,
        Status.ANSWERED,
    ]
    assert outcomes[1].problem.endswith("; asked 5 times")
    third, found = ask(engine, "fifth", "never", "fine")
    assert (third.asked, found) == (0, outcomes)


def test_asking_again_asks_at_least_once(kit, ask):
    """Also where unreadable answers are not asked for again by themselves."""
    engine = Stutterer(kit, {"once": 1})
    ask(engine, "once", retries=0)
    second, (outcome,) = ask(engine, "once", retries=0, again=True)
    assert (second.asked, outcome.status) == (1, Status.ANSWERED)


@pytest.mark.parametrize("retries", [0, 1])
def test_asking_again_asks_as_often_as_the_retries_and_once_without(kit, ask, retries):
    """Told once, a model that stays unreadable is not asked over and over."""
    engine = Stutterer(kit, {"never": 99})
    ask(engine, "never", retries=retries)
    second, (outcome,) = ask(engine, "never", retries=retries, again=True)
    assert (second.asked, second.retried, second.cached) == (1, 1, 1 + retries)
    assert outcome.problem == (
        f"there is no JSON object in the answer; asked {2 + retries} times"
    )


def test_equal_texts_are_asked_again_once(kit, ask):
    """One answer serves them all, at every attempt."""
    engine = Stutterer(kit, {"same": 1})
    summary, outcomes = ask(engine, "same", "same", "other", "same")
    assert engine.asked["same", "joint"] == 2
    assert (summary.asked, summary.retried, summary.answered) == (3, 1, 4)
    assert {one.status for one in outcomes} == {Status.ANSWERED}


def test_many_are_asked_again_while_others_are_asked_first(kit, ask):
    """What is under way, in the store or at the end: each exactly as often as due."""
    texts = [f"text {number}" for number in range(2_000)]
    times = {text: number % 5 for number, text in enumerate(texts)}
    engine = Stutterer(kit, times)
    summary, outcomes = ask(engine, *texts)
    assert all(engine.asked[text, "joint"] == min(times[text], 2) + 1 for text in texts)
    assert summary.answered == 1_200 == summary.recovered + 400
    assert [one.status for one in outcomes] == [
        Status.ANSWERED if times[text] <= 2 else Status.UNPARSED for text in texts
    ]


@pytest.mark.parametrize("died_at", range(1, 9))
def test_a_run_that_died_between_attempts_goes_on(kit, ask, died_at):
    """No attempt is made twice, and none is left out."""
    texts = ("once", "never", "thrice", "twice")
    engine = Stutterer(kit, {"once": 1, "twice": 2, "thrice": 3})
    engine.dies_after = died_at
    with pytest.raises(EngineError):
        ask(engine, *texts)
    engine.dies_after = None
    summary, outcomes = ask(engine, *texts)
    assert engine.asked.total() == 9
    assert [one.status for one in outcomes] == [
        Status.ANSWERED,
        Status.ANSWERED,
        Status.UNPARSED,
        Status.ANSWERED,
    ]
    assert summary.recovered == 2


def test_an_outcome_names_the_answers_it_was_read_from(store, kit, ask):
    """One key a call, in the order of the plan: a replay must find these answers."""
    engine = Stutterer(kit, {"once": 1, "often": 9})
    summary, _ = ask(engine, "once", "often", plan=kit.PER_LABEL)
    rows = dict(store.read_keys(summary.run_id))
    for item, readable in (("c0", True), ("c1", False)):
        keys = [rows[item][at : at + 32] for at in (0, 32)]
        found = store.find_completions(keys)
        assert [found[key].text != PROSE for key in keys] == [readable] * 2
    once, _ = ask(Stutterer(kit, {}), "once", plan=kit.PER_LABEL)
    assert dict(store.read_keys(once.run_id))["c0"] == rows["c0"]


@pytest.mark.parametrize("finish", ["length", "refusal"])
def test_an_answer_that_the_server_ended_is_asked_for_again_only_if_told(
    store, kit, ask, finish
):
    """It would end it again: the remedy is another setting or another prompt."""
    engine = kit.TableEngine({"a": Completion("{", finish)})
    assert ask(engine, "a")[0].asked == 1
    summary, (outcome,) = ask(engine, "a", again=True)
    assert (summary.asked, outcome.status) == (2, Status.UNPARSED)
    assert outcome.problem.endswith("; asked 3 times")


def test_a_failure_at_a_later_attempt_is_a_failure(kit, ask):
    """Nothing is known of the case but that the engine was away; a rerun asks it."""
    engine = Stutterer(kit, {"once": 1})
    complete = engine.complete

    def fail(prompts):
        for index, completion in complete(prompts):
            down = engine.asked.total() > 1
            yield index, Completion("", "error", "timeout") if down else completion

    engine.complete = fail
    _, (outcome,) = ask(engine, "once")
    assert (outcome.status, outcome.problem) == (Status.ENGINE_FAILED, "timeout")
    engine.complete = complete
    summary, (outcome,) = ask(engine, "once")
    assert (summary.asked, summary.retried, outcome.status) == (1, 1, Status.ANSWERED)


def test_each_attempt_has_a_key_of_its_own():
    """And a chain of them does not come back to where it was."""
    keys = [bytes(32)]
    for _ in range(50):
        keys.append(next_key(keys[-1]))
    assert len(set(keys)) == 51
    assert {len(key) for key in keys} == {32}


class Hedger:
    """Answers uncertain to every label, in a readable form."""

    def identity(self):
        """Return a name."""
        return {"engine": "hedger"}

    def complete(self, prompts):
        """Yield answers in order."""
        for index, prompt in enumerate(prompts):
            answer = dict.fromkeys(prompt.frame.fields, "uncertain")
            yield index, Completion(json.dumps(answer))


@pytest.mark.parametrize(
    ("contract", "status"),
    [(LabelValues(), Status.ANSWERED), (BinaryValues(), Status.UNPARSED)],
)
def test_a_model_that_is_only_uncertain_is_unparsed_where_that_is_no_value(
    store, kit, contract, status
):
    """Under the contract `binary` it has no answer at all, and no absent one."""
    work = Work(items=kit.make_items("one"), plan=kit.JOINT, contract=contract)
    summary = execute(kit.make_spec(), work, Hedger(), store)
    (outcome,) = read_outcomes(store, summary.run_id)
    assert outcome.status is status
    assert bool(outcome.fields) is (status is Status.ANSWERED)
