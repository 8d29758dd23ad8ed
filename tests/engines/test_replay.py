"""The engine ``replay``: an earlier run's answers, in order, and nothing else."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from loop.core.errors import EngineError
from loop.core.records import Completion
from loop.engines.base import Settings
from loop.engines.replay import ReplayEngine, make_replay


class Answers:
    """The stored answers of a run: those to even numbers."""

    run_id = "r7"

    def __init__(self, **facts):
        self.facts, self.asked = facts, []

    def identity(self):
        """Return what answered then."""
        return {"engine": "told", **self.facts}

    def find(self, prompts):
        """Return what was answered; None for odd numbers."""
        self.asked.append(list(prompts))
        return [None if one % 2 else Completion(f"answer {one}") for one in prompts]


class OpenAnswers(Answers, AbstractContextManager):
    """The same, where they have to be opened."""

    opened = 0

    def __enter__(self):
        self.opened += 1
        return self

    def __exit__(self, *error):
        self.opened -= 1


def test_answers_come_in_order_and_what_is_not_stored_fails_again():
    """In blocks, however many there are: each prompt is looked up once."""
    answers = Answers()
    found = list(ReplayEngine(answers).complete(iter(range(600))))
    missing = Completion("", "error", "run r7 has no stored answer")
    assert found == [
        (number, missing if number % 2 else Completion(f"answer {number}"))
        for number in range(600)
    ]
    assert [one for block in answers.asked for one in block] == list(range(600))
    assert max(map(len, answers.asked)) <= 256
    assert list(ReplayEngine(answers).complete([])) == []


@pytest.mark.parametrize("facts", [{}, {"constrained": False}, {"constrained": True}])
def test_it_is_the_engine_that_answered_then(facts):
    """Whether answers had to follow the schema holds for these answers, too."""
    assert ReplayEngine(Answers(**facts)).identity() == {
        "engine": "replay",
        "run": "r7",
        "source": {"engine": "told", **facts},
        **facts,
    }


def test_what_has_to_be_opened_is_opened_while_it_is_asked():
    """And what has not, is not."""
    answers = OpenAnswers()
    with ReplayEngine(answers) as engine:
        assert answers.opened == 1
        assert next(engine.complete([0])) == (0, Completion("answer 0"))
    assert answers.opened == 0
    with ReplayEngine(Answers()) as engine:
        assert next(engine.complete([2])) == (0, Completion("answer 2"))


def test_only_a_run_can_make_it():
    """Which finds the stored answers of the one that is named."""
    settings = Settings(labels=Path("labels"))
    with pytest.raises(EngineError) as refused:
        make_replay("r7", settings)
    assert str(refused.value) == (
        "replay:r7 has no stored run to read. Use it with `ranloop run`."
    )
    answers = Answers()
    engine = make_replay("r7", Settings(labels=Path("labels"), archive=answers))
    assert engine.identity()["run"] == "r7"
