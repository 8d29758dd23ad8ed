"""Questions to a reflecting engine: answers are remembered, failures are counted."""

import pytest

from loop.core.errors import EngineError
from loop.core.records import Completion
from loop.optimize.reflect import Reflector, is_on_this_machine, require_language_model
from loop.run.asking import hold_engine
from loop.run.execute import Usage
from tests.optimize.made_task import Notes

NO_ANSWER = Completion("", "error", "HTTP 503")
COUNTED = {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4}


@pytest.fixture
def engine(workspace, stub):
    """Hold the stub that reflects, which answers in one word."""
    stub.said = "yes"
    with hold_engine(workspace, "stub:x") as held:
        yield held


def answer(stub, completion):
    """Let the stub answer with this."""
    stub.broken = completion


def test_what_was_answered_is_used_with_its_tokens(engine, stub):
    """Stored answers count their tokens too, and nothing is asked for them."""
    notes = Notes()
    reflector = Reflector(engine, notes)
    answer(stub, Completion(" yes ", **COUNTED))
    assert reflector.ask("why?") == " yes "
    assert reflector.use == ("stub:x", 1, 0, 0, Usage(1, 10, 2, 4))
    answer(stub, Completion("\ud800 no"))
    assert reflector.ask("how?") == "? no"
    assert reflector.use == ("stub:x", 2, 0, 0, Usage(1, 10, 2, 4))
    assert stub.asked == ("why?", "how?")
    again = Reflector(engine, notes)
    assert [again.ask("why?"), again.ask("how?")] == [" yes ", "? no"]
    assert again.use == ("stub:x", 0, 2, 0, Usage(1, 10, 2, 4))
    assert (again.answered, len(stub.asked)) == (2, 2)


def test_an_answer_of_an_earlier_version_has_no_tokens(engine, stub):
    """It kept the text alone."""
    notes = Notes()
    Reflector(engine, notes).ask("why?")
    ((key, _),) = notes.kept.items()
    notes.kept[key] = "as it was kept"
    reflector = Reflector(engine, notes)
    assert reflector.ask("why?") == "as it was kept"
    assert reflector.use == ("stub:x", 0, 1, 0, Usage())


@pytest.mark.parametrize(
    ("completion", "reason", "unanswered"),
    [
        (NO_ANSWER, "HTTP 503", 1),
        (NO_ANSWER._replace(**COUNTED), "HTTP 503", 0),
        (
            Completion("cut", "length"),
            "the answer was cut off: allow it more tokens",
            0,
        ),
        (Completion("no", "refusal"), "the model refused to answer", 0),
        (Completion(" \n"), "empty answer", 0),
        (Completion("odd", "other"), "empty answer", 0),
    ],
)
def test_a_question_without_an_answer_is_counted_by_its_reason(
    engine, stub, completion, reason, unanswered
):
    """It is not remembered, so that it is asked again."""
    notes = Notes()
    reflector = Reflector(engine, notes)
    answer(stub, completion)
    assert reflector.ask("why?") is None
    assert dict(reflector.failures) == {reason: 1}
    assert (reflector.answered, notes.kept) == (0, {})
    assert (reflector.use.asked, reflector.use.unanswered) == (1, unanswered)
    answer(stub, None)
    assert Reflector(engine, notes).ask("why?") == "yes"


@pytest.mark.parametrize(("answered", "failed"), [(0, 4), (3, 4), (4, 5)])
def test_more_than_half_without_an_answer_ends_the_search(
    engine, stub, answered, failed
):
    """From four on; half of them are not more than half."""
    reflector = Reflector(engine, Notes())
    for number in range(answered):
        assert reflector.ask(f"good {number}") == "yes"
    answer(stub, NO_ANSWER)
    for number in range(failed - 1):
        assert reflector.ask(f"bad {number}") is None
    with pytest.raises(EngineError) as told:
        reflector.ask("the last one")
    assert str(told.value).startswith(
        f"stub:x gave no answer to {failed} of {answered + failed} questions (HTTP 503)"
    )
    assert reflector.failures.total() == failed


def test_answers_that_were_remembered_count_as_answers(engine, stub):
    """A search that goes on is not ended by four questions of eight."""
    notes = Notes()
    first = Reflector(engine, notes)
    for number in range(4):
        first.ask(f"good {number}")
    reflector = Reflector(engine, notes)
    for number in range(4):
        reflector.ask(f"good {number}")
    answer(stub, NO_ANSWER)
    assert [reflector.ask(f"bad {number}") for number in range(4)] == [None] * 4
    with pytest.raises(EngineError, match="5 of 9 questions"):
        reflector.ask("bad 4")


def test_the_same_question_again_is_another_draw(engine, stub):
    """Each is remembered apart; one without an answer is a draw as well."""
    notes = Notes()
    reflector = Reflector(engine, notes)
    answer(stub, NO_ANSWER)
    assert reflector.ask("why?") is None
    answer(stub, None)
    stub.said = "second"
    assert reflector.ask("why?") == "second"
    again = Reflector(engine, notes)
    stub.said = "first"
    assert [again.ask("why?"), again.ask("why?")] == ["first", "second"]
    assert again.use[1:3] == (1, 1)


def test_an_engine_that_returns_nothing_has_no_answer(engine, monkeypatch):
    """Not even a failure of its own."""
    monkeypatch.setattr(type(engine.inner), "complete", lambda *_: iter(()))
    reflector = Reflector(engine, Notes())
    assert reflector.ask("why?") is None
    assert dict(reflector.failures) == {"the engine returned nothing": 1}


@pytest.mark.parametrize("engine", ["", "rules", "chexbert", "replay:latest:x"])
def test_what_writes_no_text_cannot_reflect(engine):
    """The optimizer, why, and those that work without one are named."""
    why = f"{engine} cannot reflect" if engine else "none was named"
    with pytest.raises(EngineError) as told:
        require_language_model(engine, asked_by="gepa", others=["terms", "nearest"])
    assert str(told.value).startswith(
        f"gepa needs a language model that proposes texts, and {why}."
    )
    assert str(told.value).endswith("or choose terms, nearest, which work without one.")


@pytest.mark.parametrize("engine", ["openai:m", "vllm:m", "stub:x"])
def test_what_writes_texts_may_reflect(engine):
    """Whatever model it is."""
    require_language_model(engine, asked_by="gepa", others=["terms"])


@pytest.mark.parametrize(
    ("engine", "here"),
    [
        ("rules", True),
        ("vllm:m", True),
        ("openai:m@http://127.9.9.9:8000/v1", True),
        ("openai:m@http://localhost.example:8000/v1", False),
        ("openai:m@http://8.8.8.8/v1", False),
    ],
)
def test_only_an_address_of_this_machine_stays_on_it(workspace, engine, here):
    """A name that begins like one of it may be any machine."""
    assert is_on_this_machine(workspace, engine) is here
