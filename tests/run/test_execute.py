"""The runner: one outcome per item, nothing asked twice, nothing guessed."""

import dataclasses
import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from loop.core.digests import canonical_json
from loop.core.errors import DataError, EngineError
from loop.core.records import (
    Completion,
    Field,
    Guide,
    Item,
    Prompt,
    Span,
    Status,
    Value,
)
from loop.prompts.outputs.label_values import LabelValues
from loop.run.execute import (
    MAX_CASES,
    MAX_PROBLEMS,
    KeyMaker,
    Problem,
    ProblemCount,
    RunSummary,
    Usage,
    UsageCount,
    Work,
    ask_aside,
    next_key,
)
from loop.run.store import read_outcomes


def statuses(store, summary):
    """Return the status of each item in order."""
    return [o.status for o in read_outcomes(store, summary.run_id)]


def test_every_item_ends_in_exactly_one_outcome(store, kit):
    """Answered, unparsed, cut off, failed: each is counted as what it is."""
    table = {
        "prose": "I cannot tell.",
        "long": Completion(kit.absent()[:20], "length"),
        "down": Completion("", "error", "connection refused"),
        "odd": Completion(kit.absent(), "content_filter"),
    }
    items = kit.make_items("fine", *table)
    summary = kit.run_items(store, kit.TableEngine(table), items)
    assert (summary.items, summary.answered) == (5, 1)
    assert (summary.unparsed, summary.failed) == (2, 2)
    outcomes = list(read_outcomes(store, summary.run_id))
    assert [o.item_id for o in outcomes] == ["c0", "c1", "c2", "c3", "c4"]
    assert statuses(store, summary) == [
        Status.ANSWERED,
        Status.UNPARSED,
        Status.UNPARSED,
        Status.ENGINE_FAILED,
        Status.ENGINE_FAILED,
    ]
    assert [o.problem for o in outcomes] == [
        "",
        "there is no JSON object in the answer",
        "the answer was cut off: raise max_tokens",
        "connection refused",
        "the engine gave no reason",
    ]
    assert all(not o.fields for o in outcomes[1:])


def test_fields_come_back_as_they_were_read(store, kit):
    """Values are enum members again, spans are spans, repairs are kept."""
    answer = {
        "edema": {"value": "present", "evidence": "Edema", "span": [0, 5]},
        "fracture": {"value": "Absent"},
    }
    engine = kit.TableEngine({"Edema é.": json.dumps(answer)})
    summary = kit.run_items(store, engine, kit.make_items("Edema é."))
    (outcome,) = read_outcomes(store, summary.run_id)
    assert outcome.fields == {
        "edema": Field(Value.PRESENT, (Span(0, 5),)),
        "fracture": Field(Value.ABSENT),
    }
    assert outcome.fields["edema"].value is Value.PRESENT
    assert outcome.fields["edema"].spans[0].end == 5
    assert outcome.repairs == ("fracture: value spelled differently",)


def test_a_second_run_asks_nothing(store, kit, clock):
    """The same question to the same engine has one answer, stored once."""
    engine = kit.TableEngine()
    items = kit.make_items("a", "b", "c")
    first = kit.run_items(store, engine, items, now=clock)
    again = kit.run_items(store, engine, items, now=clock)
    assert (first.asked, first.cached) == (3, 0)
    assert (again.asked, again.cached) == (0, 3)
    assert again.answered == 3
    assert first.run_id != again.run_id
    assert len(engine.asked) == 3


def test_equal_texts_are_asked_once(store, kit):
    """Also while the first answer is still on its way."""
    engine = kit.TableEngine()
    summary = kit.run_items(store, engine, kit.make_items("a", "b", "a", "a"))
    assert (summary.asked, summary.cached, summary.answered) == (2, 2, 4)


def test_equal_texts_far_apart_are_asked_once(store, kit):
    """Whether the first answer is on its way, just here, or in the store already."""
    engine = kit.TableEngine()
    items = kit.make_items(*(f"text {number % 700}" for number in range(2100)))
    summary = kit.run_items(store, engine, items)
    assert (summary.asked, summary.cached, summary.answered) == (700, 1400, 2100)
    assert len(set(engine.asked)) == len(engine.asked) == 700


@pytest.mark.parametrize("change", ["identity", "parameters", "messages", "language"])
def test_whatever_can_change_an_answer_asks_again(store, kit, change):
    """A cache that ignores one of these would answer for something else."""
    engine, spec, plan = kit.TableEngine(), kit.make_spec(), kit.JOINT
    item = Item(id="c0", variables={"text": "a"})
    kit.run_items(store, engine, [item], plan, spec)
    if change == "identity":
        engine.name = "table, revision 2"
    elif change == "parameters":
        spec = kit.make_spec(parameters={"temperature": 1.0})
    elif change == "messages":
        plan = kit.make_plan(kit.make_frame(system="Look twice."))
    else:
        item = Item(id="c0", variables={"text": "a"}, language="zh")
    assert kit.run_items(store, engine, [item], plan, spec).asked == 1


def test_names_do_not_ask_again(store, kit):
    """Another cohort, case id or version number with equal words: the same question."""
    engine = kit.TableEngine()
    kit.run_items(store, engine, kit.make_items("a"))
    spec = kit.make_spec(prompt="extractor@v2", cohort="other", cohort_digest="c" * 64)
    other = Item(id="another", variables={"text": "a"})
    assert kit.run_items(store, engine, [other], spec=spec).asked == 0


def test_failed_prompts_are_asked_again(store, kit):
    """An infrastructure failure is not an answer and is never cached."""
    engine = kit.TableEngine({"a": Completion("", "error", "timeout")})
    assert kit.run_items(store, engine, kit.make_items("a", "b")).failed == 1
    engine.table.clear()
    summary = kit.run_items(store, engine, kit.make_items("a", "b"))
    assert (summary.asked, summary.cached, summary.failed) == (1, 1, 0)


def test_per_label_calls_make_one_outcome(store, kit):
    """An item is as bad as its worst call and keeps what the others answered."""
    table = {("a", "fracture"): "perhaps", ("b", "edema"): Completion("", "error", "x")}
    table["b", "fracture"] = "perhaps"
    engine = kit.TableEngine(table)
    summary = kit.run_items(store, engine, kit.make_items("a", "b", "c"), kit.PER_LABEL)
    assert summary.asked == 6
    first, second, third = read_outcomes(store, summary.run_id)
    assert first.status is Status.UNPARSED
    assert first.fields == {"edema": Field(Value.ABSENT)}
    assert first.problem == "fracture: there is no JSON object in the answer"
    assert second.status is Status.ENGINE_FAILED
    assert second.problem.startswith("edema: x; fracture: ")
    assert not second.fields
    assert third.status is Status.ANSWERED
    assert set(third.fields) == set(kit.LABELS)


def test_answers_may_come_in_any_order(store, kit):
    """Concurrent engines finish when they finish; outcomes keep cohort order."""

    class Backwards(kit.TableEngine):
        """Waits for everything and answers the last first."""

        def complete(self, prompts):
            """Yield in reverse."""
            yield from reversed(list(super().complete(prompts)))

    summary = kit.run_items(store, Backwards(), kit.make_items(*"abcdea"))
    ids = [outcome.item_id for outcome in read_outcomes(store, summary.run_id)]
    assert ids == ["c0", "c1", "c2", "c3", "c4", "c5"]
    assert (summary.asked, summary.cached) == (5, 1)


def test_an_engine_that_stops_early_leaves_failures(store, kit):
    """A missing answer is an outcome, never a missing row."""

    class Lazy(kit.TableEngine):
        """Takes all prompts and answers the first."""

        def complete(self, prompts):
            """Yield one answer."""
            first, *_ = super().complete(prompts)
            yield first

    summary = kit.run_items(store, Lazy(), kit.make_items("a", "b", "c"))
    assert (summary.answered, summary.failed) == (1, 2)
    *_, last = read_outcomes(store, summary.run_id)
    assert last.problem == "the engine returned nothing"


def test_an_engine_that_stops_reading_leaves_failures(store, kit):
    """Also items it never drew have their one outcome."""

    class Sated(kit.TableEngine):
        """Draws and answers one prompt of the stream."""

        def complete(self, prompts):
            """Yield one answer."""
            yield next(super().complete(prompts))

    items = kit.make_items(*(f"text {number}" for number in range(600)))
    summary = kit.run_items(store, Sated(), items)
    assert (summary.answered, summary.failed) == (1, 599)


def test_an_engine_that_answers_twice_is_at_fault(store, kit):
    """It would overwrite an outcome; the message says which prompt."""

    class Double(kit.TableEngine):
        """Answers everything twice."""

        def complete(self, prompts):
            """Yield each answer twice."""
            for answer in super().complete(prompts):
                yield answer
                yield answer

    with pytest.raises(EngineError, match="prompt 0, which is not open"):
        kit.run_items(store, Double(), kit.make_items("a", "b"))


def test_a_dead_engine_keeps_what_it_answered(store, kit):
    """Starting the same run again continues it and asks only for the rest."""

    class Dying(kit.TableEngine):
        """Fails as a whole after two answers."""

        def complete(self, prompts):
            """Yield two answers, then raise."""
            for index, answer in super().complete(prompts):
                if index == 2:
                    raise EngineError("the server is gone. Start it again.")
                yield index, answer

    items = kit.make_items(*"abcde")
    with pytest.raises(EngineError, match="server is gone"):
        kit.run_items(store, Dying(), items)
    (begun,) = store.find_runs()
    summary = kit.run_items(store, kit.TableEngine(), items)
    assert (summary.asked, summary.cached, summary.answered) == (3, 2, 5)
    assert summary.run_id == begun.id
    assert [record.finished is None for record in store.find_runs()] == [False]


def test_a_live_run_is_not_taken_over(store, kit):
    """A second process with the same spec gets a run of its own."""

    class Nested(kit.TableEngine):
        """Starts the same run again from inside."""

        inner = None

        def complete(self, prompts):
            """Run the same spec, then answer."""
            self.inner = kit.run_items(store, kit.TableEngine(), kit.make_items("a"))
            yield from super().complete(prompts)

    engine = Nested()
    outer = kit.run_items(store, engine, kit.make_items("a"))
    assert engine.inner.run_id != outer.run_id
    assert outer.answered == engine.inner.answered == 1


def test_what_seal_raises_leaves_the_run_unfinished(store, kit):
    """A finished run always has its manifest."""

    def fail(record):
        """Refuse like a full disk."""
        raise DataError(f"cannot write the manifest of {record.id}")

    with pytest.raises(DataError, match="manifest"):
        kit.run_items(store, kit.TableEngine(), kit.make_items("a"), seal=fail)
    assert store.find_runs(finished=True) == []


def test_the_record_counts_how_items_ended(store, kit):
    """What `find_run` tells later is what the summary told."""
    engine = kit.TableEngine({"b": "?"})
    now = datetime(2026, 11, 21, 22, 33, 1, tzinfo=UTC)
    summary = kit.run_items(store, engine, kit.make_items("a", "b"), now=lambda: now)
    (record,) = store.find_runs()
    assert record.id == summary.run_id
    assert record.id.startswith("20261121-223301-")
    assert record.finished == "2026-11-21T22:33:01+00:00"
    assert record.spec == kit.make_spec()
    assert record.counts == {
        "items": 2,
        "asked": 2,
        "cached": 0,
        "answered": 1,
        "unparsed": 1,
        "failed": 0,
    }


def test_a_plan_that_asks_nothing_is_refused(store, kit):
    """No prompts would mean no outcome for the item."""
    with pytest.raises(DataError, match=r"asks nothing of case c0.*guides\.yaml"):
        kit.run_items(store, kit.TableEngine(), kit.make_items("a"), kit.make_plan())


def test_no_items_make_an_empty_run(store, kit):
    """Zero is a count like any other."""
    summary = kit.run_items(store, kit.TableEngine(), [])
    assert summary.items == summary.asked == 0
    assert list(read_outcomes(store, summary.run_id)) == []


def test_unusual_characters_survive(store, kit):
    """Chinese, NUL, and half a surrogate pair left by a broken decoder."""
    table = {"双肺": '{"edema":"否"}', "nul": "a\x00b", "half": "\ud800 x"}
    items = kit.make_items(*table, "lone \udc80 text")
    engine = kit.TableEngine(table)
    first = kit.run_items(store, engine, items)
    assert (first.items, first.unparsed, first.answered) == (4, 3, 1)
    again = kit.run_items(store, engine, items)
    assert (again.cached, again.unparsed) == (4, 3)


def test_items_are_streamed(store, kit):
    """Asking begins before the cohort has been read, and memory stays flat."""
    drawn = []

    def items():
        """Yield many items, noting how far the run has drawn."""
        for number in range(2000):
            drawn.append(number)
            yield Item(id=f"c{number}", variables={"text": f"text {number}"})

    class Watching(kit.TableEngine):
        """Notes how many items had been read at the first answer."""

        first = None

        def complete(self, prompts):
            """Yield answers."""
            for answer in super().complete(prompts):
                self.first = self.first or len(drawn)
                yield answer

    engine = Watching()
    assert kit.run_items(store, engine, items()).answered == 2000
    assert engine.first < 1000


def test_the_prompt_tokens_of_an_empty_answer_are_used(store, kit):
    """The server read the prompt and bills it, although nothing came back."""
    empty = Completion("", prompt_tokens=60, completion_tokens=0)
    unknown = Completion(kit.absent())
    engine = kit.TableEngine({"empty": empty, "unknown": unknown})
    summary = kit.run_items(store, engine, kit.make_items("empty", "unknown"))
    assert summary.spent == summary.used == (1, 60, 0, 0)
    (record,) = store.find_runs()
    assert (record.counts["answers"], record.counts["prompt_tokens"]) == (1, 60)


def test_a_run_keeps_how_many_calls_failed_without_a_count_of_tokens(store, kit):
    """Every call of an item may fail; without any, nothing is kept."""
    broken = Completion("", "error", "timeout")
    counted = Completion("", "error", "broken", prompt_tokens=60)
    table = {("a", "edema"): broken, ("a", "fracture"): counted, "b": broken}
    engine = kit.TableEngine(table)
    summary = kit.run_items(store, engine, kit.make_items("a", "b"), kit.PER_LABEL)
    assert summary.unanswered == 1 + len(kit.LABELS)
    spec = kit.make_spec(draw=1)
    kit.run_items(store, kit.TableEngine(), kit.make_items("c"), spec=spec)
    kept = {run.spec.draw: run.counts for run in store.find_runs()}
    assert kept[0]["unanswered"] == summary.unanswered
    assert "unanswered" not in kept[1]


def key(kit, prompt, engine=None, **spec):
    """Return the key of one prompt from a fresh maker."""
    return KeyMaker(
        kit.make_spec(**spec), (engine or kit.TableEngine()).identity()
    ).key(prompt)


def prompt(frame, text, tail=None, **variables):
    """Return a prompt of one item."""
    item = Item(id="c", variables={"text": text, **variables})
    return Prompt(frame=frame, tail=text if tail is None else tail, item=item)


def test_keys_are_sha256_digests(kit):
    """32 bytes, the same on every machine and in every process."""
    made = key(kit, prompt(kit.make_frame(), "a"))
    assert len(made) == hashlib.sha256().digest_size
    assert made == key(kit, prompt(kit.make_frame(), "a"))


def test_guides_count_although_messages_are_equal(kit):
    """The rules engine reads guides, which a template may not render."""
    frame = kit.make_frame()
    guide = Guide(label="edema", name="Edema", definition="Fluid.", terms=("edema",))
    other = dataclasses.replace(frame, guides=(guide,))
    assert key(kit, prompt(frame, "a")) != key(kit, prompt(other, "a"))


def test_variables_that_are_not_in_the_tail_count(kit):
    """An engine that reads variables must not get another case's answer."""
    frame = kit.make_frame()
    one = prompt(frame, "a", tail="same", note="x")
    two = prompt(frame, "b", tail="same", note="x")
    assert key(kit, one) != key(kit, two)


def test_text_cannot_move_between_tail_and_frame(kit):
    """The static part is closed before the case text begins."""
    maker = KeyMaker(kit.make_spec(), kit.TableEngine().identity())
    keys = {maker.key(prompt(kit.make_frame(), text)) for text in ("a", "ab", "", "\0")}
    assert len(keys) == 4


def test_frames_that_died_do_not_lend_their_id(kit):
    """Frames are told apart by identity, and ids are reused by Python."""
    maker = KeyMaker(kit.make_spec(), kit.TableEngine().identity())
    systems = [f"system {number}" for number in range(50)]
    keys = {maker.key(prompt(kit.make_frame(system=system), "a")) for system in systems}
    assert len(keys) == 50


def test_problems_are_told_apart_up_to_a_number():
    """So many have one cause, or none to name; those known are counted further."""
    count = ProblemCount()
    for number in range(MAX_PROBLEMS + 2):
        count.add(f"problem {number:02}", f"c{number}")
    for number in range(MAX_CASES):
        count.add("problem 01", f"d{number}")
    first, *rest = count.total
    assert first == Problem("problem 01", 6, ("c1", "d0", "d1", "d2", "d3"))
    other = ("c50", "c51")
    assert rest[0] == Problem("other problems; see the outcomes", 2, other)
    assert len(count.total) == MAX_PROBLEMS + 1
    assert [one.text for one in rest[1:3]] == ["problem 00", "problem 02"]


def test_equally_frequent_problems_stand_in_the_order_of_their_words():
    """Not in that of the cases, which comes by chance."""
    count = ProblemCount()
    for text in ("timeout", "no JSON", "cut off", "timeout"):
        count.add(text, "c1")
    assert [one.text for one in count.total] == ["timeout", "cut off", "no JSON"]


@pytest.mark.parametrize(
    ("counts", "total"),
    [
        ((None, None, None), (0, 0, 0, 0)),
        ((None, None, 7), (0, 0, 0, 0)),
        ((5, None, None), (1, 5, 0, 0)),
        ((None, 3, None), (1, 0, 3, 0)),
        ((5, 3, 2), (1, 5, 3, 2)),
        ((0, 0, 0), (1, 0, 0, 0)),
    ],
)
def test_tokens_are_added_as_far_as_a_server_counted_them(counts, total):
    """Half a count is one; what was only cached is none."""
    prompt, answer, cached = counts
    usage = UsageCount()
    assert usage.total == Usage() == (0, 0, 0, 0)
    usage.add(
        Completion(
            "", prompt_tokens=prompt, completion_tokens=answer, cached_tokens=cached
        )
    )
    assert usage.total == total


def test_fields_keep_the_order_of_the_plan(store, kit):
    """Whatever order the calls end in; repairs of all of them are kept."""

    class Backwards(kit.TableEngine):
        """Answers the last prompt first."""

        def complete(self, prompts):
            """Yield in reverse."""
            yield from reversed(list(super().complete(prompts)))

    table = {
        ("a", name): json.dumps({name: {"value": "Absent"}}) for name in kit.LABELS
    }
    engine = Backwards(table)
    summary = kit.run_items(store, engine, kit.make_items("a"), kit.PER_LABEL)
    (outcome,) = read_outcomes(store, summary.run_id)
    assert tuple(outcome.fields) == kit.LABELS
    spelled = "value spelled differently"
    assert sorted(outcome.repairs) == [f"{name}: {spelled}" for name in kit.LABELS]


def test_a_problem_names_its_call_only_where_there_are_several(store, kit):
    """In a single call there is nothing to tell apart."""
    engine = kit.TableEngine({"a": "perhaps"})
    for plan, start in ((kit.JOINT, "there is"), (kit.PER_LABEL, "edema: there is")):
        summary = kit.run_items(store, engine, kit.make_items("a"), plan)
        (outcome,) = read_outcomes(store, summary.run_id)
        assert outcome.problem.startswith(start)


def test_an_engine_is_stopped_with_the_run(store, kit):
    """Else it would go on asking, for nobody."""
    closed = []

    class Noticing(kit.TableEngine):
        """Notes that it was closed."""

        def complete(self, prompts):
            """Yield answers until closed."""
            try:
                yield from super().complete(prompts)
            finally:
                closed.append(True)

    class Broken(LabelValues):
        """Reads nothing."""

        def read(self, text, fields, item):
            """Fail at the first answer."""
            raise DataError("nothing can be read")

    many = kit.make_items(*(f"text {number}" for number in range(600)))
    work = Work(items=many, plan=kit.JOINT, contract=Broken())
    engine = Noticing()
    with pytest.raises(DataError, match="nothing can be read") as failed:
        ask_aside(kit.make_spec(), work, engine, store, keep=False)
    # While the error is kept, so is all that it went through.
    assert failed.value.__traceback__
    assert closed == [True]
    assert len(engine.asked) < len(many)


@pytest.mark.parametrize("keep", [True, False])
def test_items_asked_aside_leave_no_run(store, kit, keep):
    """Only their answers, where they are to be kept; outcomes in the items' order."""

    class Backwards(kit.TableEngine):
        """Answers the last prompt first."""

        def complete(self, prompts):
            """Yield in reverse."""
            yield from reversed(list(super().complete(prompts)))

    spelled = {name: {"value": "Absent"} for name in kit.LABELS}
    engine = Backwards({"b": "perhaps", "c": json.dumps(spelled)})
    work = Work(items=kit.make_items(*"abc"), plan=kit.JOINT, contract=LabelValues())
    found = ask_aside(kit.make_spec(), work, engine, store, keep=keep)
    assert [one.item_id for one in found] == ["c0", "c1", "c2"]
    first, second, third = found
    assert (first.status, tuple(first.fields)) == (Status.ANSWERED, kit.LABELS)
    assert (first.repairs, first.problem) == ((), "")
    assert second.status is Status.UNPARSED
    assert second.problem == "there is no JSON object in the answer"
    assert third.repairs[0] == "edema: value spelled differently"
    assert store.find_runs() == []
    assert store.count_completions() == (3 if keep else 0)
    assert ask_aside(kit.make_spec(), work, engine, store, keep=keep) == found
    assert len(engine.asked) == (3 if keep else 6)


def test_the_run_knows_who_started_it(store, kit):
    """Also when somebody else takes it up after it was cut short."""

    class Dying(kit.TableEngine):
        """Fails as a whole."""

        def complete(self, prompts):
            """Raise."""
            raise EngineError("the server is gone. Start it again.")

    items = kit.make_items("a")
    with pytest.raises(EngineError):
        kit.run_items(store, Dying(), items, actor="first")
    kit.run_items(store, kit.TableEngine(), items, actor="second")
    kit.run_items(store, kit.TableEngine(), items, actor="third")
    assert [one.actor for one in store.find_runs()] == ["third", "first"]


def test_what_a_model_thought_is_stored(store, kit):
    """Half a surrogate pair in it as well, and nothing where it thought nothing."""
    thought = Completion(kit.absent(), thinking="Perhaps \udc80.")
    engine = kit.TableEngine({"a": thought, "b": Completion(kit.absent())})
    kit.run_items(store, engine, kit.make_items("a", "b"))
    rows = store.read("SELECT thinking FROM completions ORDER BY thinking")
    assert [row[0] for row in rows] == [None, "Perhaps ?."]


@pytest.mark.parametrize("change", ["fields", "schema", "identity", "draw"])
def test_each_part_of_a_question_counts_alone(kit, change):
    """Also those that mostly change together."""
    frame, text = kit.make_frame(), prompt(kit.make_frame(), "a")
    other, changes, engine = frame, {}, kit.TableEngine()
    if change == "fields":
        other = dataclasses.replace(frame, fields=("edema",))
    elif change == "schema":
        other = dataclasses.replace(frame, schema={})
    elif change == "identity":
        engine.name = "another"
    else:
        changes = {"draw": 1}
    assert key(kit, text) != key(kit, prompt(other, "a"), engine, **changes)


def test_a_variable_that_stands_in_the_tail_counts_once(kit):
    """At its start or further on; equal prompts share one answer."""
    frame = kit.make_frame()
    plain = Prompt(frame=frame, tail="Seen: a. End", item=Item(id="c", variables={}))
    middle = prompt(frame, "a", tail="Seen: a. End")
    start = prompt(frame, "Seen", tail="Seen: a. End")
    assert key(kit, plain) == key(kit, middle) == key(kit, start)


def test_variables_are_told_apart_by_name(kit):
    """The same value under another name is another case to who reads variables."""
    frame = kit.make_frame()
    keys = {
        key(kit, Prompt(frame=frame, tail="t", item=Item(id="c", variables=given)))
        for given in ({"x": "v"}, {"y": "v"}, {"x": "v", "y": "v"}, {"x": "vy"})
    }
    assert len(keys) == 4


def test_the_key_of_a_question_is_the_same_for_ever(kit):
    """By hand: with another one, whatever was ever answered would be paid for again."""
    frame = kit.make_frame()
    asker = [{"engine": "table"}, {"temperature": 0.0}]
    static = {
        "asker": asker,
        "messages": [list(one) for one in frame.messages],
        "fields": list(frame.fields),
        "schema": frame.schema,
        "guides": [],
        "language": "en",
    }

    def digest(*more, **changes):
        raw = canonical_json({**static, **changes}) + b"\0" + b"".join(more)
        return hashlib.sha256(raw).digest()

    assert key(kit, prompt(frame, "é")) == digest("é".encode())
    assert key(kit, prompt(frame, "a\ud800")) == digest(b"a\xed\xa0\x80")
    beside = prompt(frame, "a", note="xyz")
    assert key(kit, beside) == digest(b"a", b"\0", b"4:note3:xyz")
    assert key(kit, prompt(frame, "a"), draw=2) == digest(b"a", asker=[*asker, 2])
    guide = Guide(label="edema", name="Edema", definition="Fluid.")
    read = dataclasses.replace(frame, reads=(guide,), guides=(guide, guide))
    told = json.loads(json.dumps(guide.identity))
    assert key(kit, prompt(read, "a")) == digest(b"a", guides=[told] * 2, reads=[told])
    assert next_key(b"k" * 32) == hashlib.sha256(b"k" * 32 + b"asked again").digest()


def test_the_summary_counts_all_that_was_asked_and_all_that_was_used(store, kit):
    """New answers, those from the store, equal texts, and calls that failed."""
    known = Completion(kit.absent(), "stop", "", 0.5, 10, 2, 4)
    table = {
        "known": known,
        "new": Completion(kit.absent(), "stop", "", 0.25, 20, 3, 5),
        "odd": Completion("perhaps", "stop", "", 1.0, 30, 4, None),
        "dead": Completion("", "error", "timeout", 2.0),
        "half": Completion("", "error", "broken", 4.0, None, 7),
        "none": Completion("", "error", "gone", 8.0, None, 0),
    }
    engine = kit.TableEngine(table)
    kit.run_items(store, engine, kit.make_items("known"))
    told = []
    work = Work(
        items=kit.make_items(*table, "known", "new"),
        plan=kit.JOINT,
        contract=LabelValues(),
        ended=lambda: told.append(1),
    )
    summaries = []
    ask_aside(kit.make_spec(), work, engine, store, keep=True, count=summaries.append)
    (found,) = summaries
    assert found.seconds >= 0
    assert found == RunSummary(
        run_id="",
        items=8,
        asked=5,
        cached=3,
        answered=4,
        unparsed=1,
        failed=3,
        seconds=found.seconds,
        spent=Usage(4, 50, 14, 5),
        used=Usage(6, 90, 21, 18),
        problems=(
            Problem("broken", 1, ("c4",)),
            Problem("gone", 1, ("c5",)),
            Problem("there is no JSON object in the answer", 1, ("c2",)),
            Problem("timeout", 1, ("c3",)),
        ),
        unanswered=2,
        waited=2 * 0.5 + 2 * 0.25 + 1.0 + 2.0 + 4.0 + 8.0,
    )
    assert len(told) == 8


@pytest.mark.parametrize("keep", [True, False])
def test_what_was_asked_aside_is_counted_where_the_engine_died(store, kit, keep):
    """It was paid for; what was answered is stored if it was to be."""

    class Dying(kit.TableEngine):
        """Fails as a whole after two answers."""

        def complete(self, prompts):
            """Yield two answers, then raise."""
            for index, answer in super().complete(prompts):
                if index == 2:
                    raise EngineError("the server is gone. Start it again.")
                yield index, answer

    work = Work(items=kit.make_items(*"abcd"), plan=kit.JOINT, contract=LabelValues())
    counted = []
    with pytest.raises(EngineError, match="server is gone"):
        ask_aside(
            kit.make_spec(), work, Dying(), store, keep=keep, count=counted.append
        )
    (found,) = counted
    assert (found.asked, found.cached, found.items) == (3, 0, 0)
    assert store.count_completions() == (2 if keep else 0)


def test_a_run_is_named_and_dated_in_utc(store, kit):
    """Wherever the clock stands; it ends when it ended."""
    there = timezone(timedelta(hours=2))
    times = iter(
        datetime(2026, 1, 2, 1, 30, second, 999_999, there) for second in (5, 9)
    )
    spec = kit.make_spec()
    engine, items = kit.TableEngine(), kit.make_items("a")
    summary = kit.run_items(store, engine, items, now=lambda: next(times), spec=spec)
    (record,) = store.find_runs()
    assert record.id == summary.run_id
    assert record.id.startswith("20260101-233005-")
    assert record.created == "2026-01-01T23:30:05+00:00"
    assert record.finished == "2026-01-01T23:30:09+00:00"


def test_what_is_sealed_is_the_finished_record(store, kit):
    """With its end and its counts, as the store has it afterwards."""
    sealed = []
    engine = kit.TableEngine({"b": Completion(kit.absent(), "stop", "", 0, 5, 3, 1)})
    items = kit.make_items("a", "b")
    kit.run_items(store, engine, items, seal=sealed.append, actor="Dr A")
    assert sealed == store.find_runs(finished=True)
    assert sealed[0].actor == "Dr A"
    assert dict(sealed[0].counts) == {
        "items": 2,
        "asked": 2,
        "cached": 0,
        "answered": 2,
        "unparsed": 0,
        "failed": 0,
        "answers": 1,
        "prompt_tokens": 5,
        "completion_tokens": 3,
        "cached_tokens": 1,
    }


def test_the_engine_is_told_which_answer_it_gave_twice(store, kit):
    """And how many it was asked for, in this round."""

    class Odd(kit.TableEngine):
        """Answers a prompt that nobody asked."""

        def complete(self, prompts):
            """Yield the second of one."""
            list(super().complete(prompts))
            yield 2, Completion("")

    with pytest.raises(EngineError) as refused:
        kit.run_items(store, Odd(), kit.make_items("a", "b"))
    assert str(refused.value) == (
        "the engine answered prompt 2, which is not open: asked 2 so far. The engine "
        "is at fault; what it answered before is kept."
    )


def test_a_second_round_counts_its_prompts_from_zero(store, kit):
    """Prompts of the first round are not counted as asked in the second."""

    class Odd(kit.TableEngine):
        """Answers with prose; then a prompt that nobody asked."""

        rounds = 0

        def complete(self, prompts):
            """Yield prose to each, in the second round the fourth of three."""
            self.rounds += 1
            asked = list(super().complete(prompts))
            yield from [(3, Completion(""))] if self.rounds > 1 else asked

    work = Work(
        items=kit.make_items(*"abc"), plan=kit.JOINT, contract=LabelValues(), retries=1
    )
    engine = Odd(dict.fromkeys("abc", "perhaps"))
    with pytest.raises(EngineError, match="prompt 3, which is not open: asked 3 so"):
        ask_aside(kit.make_spec(), work, engine, store, keep=False)
