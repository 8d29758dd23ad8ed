"""Texts and pairs are asked about once each, kept by content, and leave no run."""

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from loop.core.digests import digest_bytes, framed
from loop.core.errors import DataError, EngineError
from loop.core.records import Completion, Item, Status
from loop.engines import base
from loop.prompts.version import CallPlan
from loop.run import runner as module
from loop.run.execute import Problem, Usage
from loop.run.prune import prune_completions
from loop.run.runner import AskedItems, ItemAnswer, PromptRunner, _in_order, _key
from loop.run.store import Store, open_store
from tests.run.judging_pairs import (
    CATEGORIES,
    answer,
    make_judge,
    make_pair,
    omissions,
    open_judge,
)

PAIRS = [make_pair(number) for number in range(40)]
asked = []


class PairEngine:
    """Answers pairs of `make_pair`; remembers what it was asked."""

    def __init__(self, name, settings):
        """Take what a factory is given; the name is part of the identity."""
        self.name = name

    def identity(self):
        """Return the name: engines with one name are the same."""
        return {"engine": "pairs", "name": self.name}

    def complete(self, prompts):
        """Yield the answers in order; ``dies`` breaks after ten."""
        for index, prompt in enumerate(prompts):
            if self.name == "dies" and index == 10:
                raise EngineError("the server died. Start it again.")
            pair = dict(prompt.item.variables)
            asked.append(pair)
            if pair["candidate"] == "broken":
                yield index, Completion("", "error", "HTTP 503 after 7 attempts")
            elif pair["candidate"] == "odd":
                yield index, Completion("I cannot.")
            elif ", " in pair["candidate"]:
                yield index, Completion(answer(pair))
            else:
                yield index, Completion('{"errors": [], "matched_findings": 0}')


@pytest.fixture(autouse=True)
def pair_engine(monkeypatch):
    """Register the engine ``pairs`` for one test."""
    asked.clear()
    monkeypatch.setitem(base._FACTORIES, "pairs", PairEngine)


def ask(runner, pairs, **options):
    """Ask about English pairs."""
    return runner.ask(pairs, ["en"] * len(pairs), **options)


def statuses(found):
    """Return how each pair ended; None where nothing was asked."""
    return [one and one.status for one in found.answers]


def pair(reference, candidate):
    """Return a pair."""
    return {"reference": reference, "candidate": candidate}


def test_each_distinct_pair_is_asked_once_and_has_its_own_answer(workspace):
    """Also across calls, and for a second runner, from the store."""
    with open_judge(workspace, "pairs:a") as runner:
        first = ask(runner, [*PAIRS, PAIRS[1], PAIRS[0]])
        again = ask(runner, [PAIRS[2], make_pair(41)])
    assert omissions(first) == [*(n % 3 for n in range(40)), 1, 0]
    assert (first.asked, first.cached, first.answered) == (40, 0, 40)
    assert omissions(again) == [2, 41 % 3]
    assert (again.asked, again.cached, again.answered) == (1, 1, 2)
    with open_judge(workspace, "pairs:a") as runner:
        found = ask(runner, PAIRS)
    assert (found.asked, found.cached) == (0, 40)
    assert omissions(found) == omissions(first)[:40] and len(asked) == 41


def test_a_pair_is_its_two_texts_each_in_its_place(workspace):
    """Exchanged texts, and words moved from one to the other, are another question."""
    pairs = [pair("A b.", "c"), pair("c", "A b."), pair("A b.c", ""), pair("A", " b.c")]
    with open_judge(workspace, "pairs:a") as runner:
        found = ask(runner, pairs)
    assert len(set(found.keys)) == found.asked == 4
    assert found.keys[0] == _key({"candidate": "c", "reference": "A b."}, "en")
    assert found.keys[0] != _key(pairs[0], "zh")


def test_the_key_of_a_single_text_is_what_it_was():
    """Stores from before there were pairs keep their ids."""
    key = _key({"text": "Normal."}, "en")
    assert key == digest_bytes(framed(("en", "Normal.")))
    assert key == "3ff775e8f1900e5fbbe4423267f3c89a71a0cd695438c663cf328f577648df15"
    assert _key({"report": "Normal."}, "en") != key


def test_one_empty_text_is_asked_about_and_two_are_not(workspace):
    """An empty candidate has every error of omission."""
    pairs = [pair("", "Normal."), pair("Normal.", ""), pair("", " ... ")]
    with open_judge(workspace, "pairs:a") as runner:
        found = ask(runner, pairs)
    assert statuses(found) == [Status.ANSWERED, Status.ANSWERED, None]
    assert omissions(found) == [0, 0, None] and found.keys[2] == ""
    assert (found.asked, found.answered) == (2, 2)


def test_the_caller_may_name_the_text_that_must_have_words(workspace):
    """Without a reference there is nothing that a candidate could be held against."""
    pairs = [pair("", "Normal."), pair("Normal.", "")]
    with open_judge(workspace, "pairs:a", about="reference") as runner:
        found = ask(runner, pairs)
        assert runner.outcomes(pairs, ["en"] * 2)[0] is None
    assert omissions(found) == [None, 0] and asked == [pairs[1]]


def test_every_item_ends_in_one_outcome(workspace):
    """What failed or cannot be read has no score, and says why without its words."""
    pairs = [PAIRS[1], pair("Words of A.", "broken"), pair("Words of B.", "odd")]
    with open_judge(workspace, "pairs:a") as runner:
        found = ask(runner, pairs)
        again = ask(runner, pairs)
    ends = [Status.ANSWERED, Status.ENGINE_FAILED, Status.UNPARSED]
    assert statuses(found) == ends and omissions(found) == [1, None, None]
    assert (found.answered, found.unparsed, found.failed) == (1, 1, 1)
    examples = {one.examples for one in found.problems}
    assert examples == {(found.keys[1],), (found.keys[2],)}
    assert "Words" not in str(found.problems)
    # A failure is no answer to keep; what was unreadable stays so.
    assert Counter(one["candidate"] for one in asked)["broken"] == 2
    assert again.asked == 1 and again.answers == found.answers


def test_pairs_of_one_reference_follow_one_another(workspace):
    """Whatever their order was: a server has the beginning of the prompt already."""
    pairs = [
        pair(f"Reference {number % 4}.", f"Candidate {number}.") for number in range(24)
    ]
    orders = []
    for order in (pairs, pairs[::-1]):
        asked.clear()
        with open_judge(None, "pairs:a") as runner:
            ask(runner, order)
        orders.append(asked.copy())
    assert orders[0] == orders[1]
    references = [one["reference"] for one in orders[0]]
    assert references == sorted(references)


def test_an_engine_that_died_goes_on_where_it_was(workspace):
    """What was answered is kept, and not asked again."""
    for _ in range(3):
        with open_judge(workspace, "pairs:dies") as runner, pytest.raises(EngineError):
            ask(runner, PAIRS)
    with open_judge(workspace, "pairs:dies") as runner:
        found = ask(runner, PAIRS)
    assert found.answered == len(asked) == 40


def test_full_answers_come_from_the_store_and_ask_nothing(workspace):
    """With the words and where they stand, in the order given."""
    pairs = [PAIRS[1], pair("A.", "odd"), pair("A.", "broken"), PAIRS[1]]
    with open_judge(workspace, "pairs:a") as runner:
        ask(runner, pairs)
        asked.clear()
        first, odd, failed, again = runner.outcomes(pairs, ["en"] * 4)
        unknown = runner.outcomes([PAIRS[5]], ["en"])
    (entry,) = first.fields["significant.omission"].entries
    assert entry.category == "omission" and entry.weight == "significant"
    assert [span.data for span in entry.spans] == [[0, 14, "reference"]]
    assert first.item_id == _key(PAIRS[1], "en") and first == again
    assert odd.status is Status.UNPARSED and odd.fields == {} and odd.problem
    assert failed is None and unknown == (None,)
    assert asked == []
    # Nor did reading them leave anything that would count as an answer later.
    with open_judge(workspace, "pairs:a") as runner:
        assert ask(runner, [PAIRS[5]]).asked == 1
        assert runner.outcomes([PAIRS[1]], ["en"]) == (first,)


def test_full_answers_of_several_calls_are_there_only_together(workspace):
    """Half of what a version asks would be shown as if the rest had no error."""
    calls = []

    class Half(PairEngine):
        def complete(self, prompts):
            for index, prompt in enumerate(prompts):
                calls.append(prompt.frame.call)
                empty = Completion('{"errors": [], "matched_findings": 0}')
                dead = Completion("", "error", "HTTP 503")
                yield index, dead if prompt.frame.call == "location" else empty

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(base._FACTORIES, "half", Half)
        with open_judge(
            workspace, "half:a", version=make_judge(plan=CallPlan.PER_LABEL)
        ) as runner:
            found = ask(runner, PAIRS[:1])
            assert runner.outcomes(PAIRS[:1], ["en"]) == (None,)
    assert sorted(calls) == sorted(CATEGORIES)
    assert found.failed == 1 and found.asked == 3


def test_only_answers_stay_and_only_in_the_folder_of_the_caller(workspace):
    """No run of the workspace, no outcome, nothing among the answers of `score`."""
    with open_judge(workspace, "pairs:a") as runner:
        ask(runner, PAIRS)
        assert runner._store.count_completions() == 40
        assert not runner._store.find_runs()
        assert not runner._store.read("SELECT * FROM outcomes")
    with open_store(workspace) as store:
        assert not store.find_runs() and not store.count_completions()
    assert (workspace.private / "judge" / "store.db").exists()
    assert not (workspace.private / "score").exists()
    assert not (workspace.private / "runs").exists()
    assert list((workspace.private / "judge" / "runs").iterdir()) == []
    assert prune_completions(workspace).answers == 40
    with open_judge(workspace, "pairs:a") as runner:
        assert ask(runner, PAIRS).asked == 40


def test_without_a_folder_nothing_is_kept(workspace):
    """For trying out."""
    with open_judge(workspace, "pairs:a", folder="") as runner:
        ask(runner, PAIRS)
        assert ask(runner, PAIRS).asked == 0
    assert not (workspace.private / "judge").exists()
    with open_judge(workspace, "pairs:a", folder="") as runner:
        assert ask(runner, PAIRS).asked == 40


def test_a_folder_that_nothing_else_knows_is_refused(workspace):
    """Its answers would be told of nowhere and never removed."""
    with pytest.raises(ValueError, match="one of score, judge, inject, got 'runs'"):
        open_judge(workspace, "pairs:a", folder="runs")


def test_memory_keeps_only_what_the_caller_keeps_of_the_newest(workspace, monkeypatch):
    """The others come from the store again."""
    monkeypatch.setattr(module, "REMEMBERED", 4)
    with open_judge(workspace, "pairs:a") as runner:
        first = ask(runner, PAIRS)
        assert len(runner._known) == 4
        assert {*runner._known.values()} <= {(0,), (1,), (2,)}
        again = ask(runner, PAIRS)
    assert again.answers == first.answers and again.asked == 0
    assert again.cached == 40


def test_threads_take_turns(workspace):
    """Each gets the answers to its own pairs, and none is asked about twice."""
    results = {}
    with open_judge(workspace, "pairs:a") as runner:

        def work(start):
            results[start] = ask(runner, [make_pair(start + n) for n in range(30)])

        threads = [threading.Thread(target=work, args=(n,)) for n in (0, 10, 20, 30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for start, found in results.items():
        assert omissions(found) == [(start + n) % 3 for n in range(30)]
    assert len(asked) == 60


def test_progress_sees_each_pair_that_is_asked_about(workspace):
    """What is remembered takes no time."""
    seen = []

    def watch(items):
        for item in items:
            seen.append(item.id)
            yield item

    with open_judge(workspace, "pairs:a") as runner:
        ask(runner, PAIRS[:1])
        found = ask(runner, PAIRS[:2], watch=watch)
    assert seen == [found.keys[1]]


def test_identity_covers_engine_and_parameters(workspace):
    """And can be read as what it is made of."""
    with (
        open_judge(workspace, "pairs:a") as runner,
        open_judge(workspace, "pairs:b") as other,
    ):
        said = json.loads(runner.asker)
        assert runner.engine == said["name"] == "pairs:a"
        assert said["identity"] == {"engine": "pairs", "name": "a"}
        assert runner.identity == digest_bytes(runner.asker.encode())
        assert runner.identity != other.identity


@pytest.mark.parametrize(
    "texts", [{"text": "a"}, {"reference": "a"}, {**pair("a", "b"), "context": "c"}, {}]
)
def test_items_have_the_texts_that_are_read(workspace, texts):
    """A text too many would be no part of the question; names only are shown."""
    with (
        open_judge(workspace, "pairs:a") as runner,
        pytest.raises(ValueError, match="reads reference and candidate, and an item"),
    ):
        ask(runner, [texts])


def test_a_lone_surrogate_is_read_as_a_question_mark(workspace):
    """In either text."""
    with open_judge(workspace, "pairs:a") as runner:
        found = ask(runner, [pair("A\ud800", "B\udfff"), pair("A?", "B?")])
    assert found.asked == 1 and omissions(found) == [0, 0]


def test_one_language_per_item_is_needed(workspace):
    """A forgotten one must not cut the pairs short."""
    with (
        open_judge(workspace, "pairs:a") as runner,
        pytest.raises(ValueError, match="shorter"),
    ):
        runner.ask(PAIRS[:2], ["en"])


def test_a_closed_runner_says_so(workspace):
    """Its store is gone, which would be told as trouble with the disk."""
    with open_judge(workspace, "pairs:a") as runner:
        runner.close()
    for method in (runner.ask, runner.outcomes):
        with pytest.raises(ValueError, match="is closed"):
            method([], [])


def test_a_version_is_found_by_its_name():
    """That of the workspace, or else of what is shipped; no version is no runner."""
    with PromptRunner.open(None, "extractor@v7") as runner:
        assert runner.version.ref == "extractor@v7"
        assert runner.fields == runner.version.labels
    with pytest.raises(DataError, match="has no version v99"):
        PromptRunner.open(None, "extractor@v99")


def test_one_that_nobody_closes_lets_go_by_itself(tmp_path, monkeypatch):
    """Also of the temporary folder that its store was in."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    runner = open_judge(None, "pairs:a")
    ask(runner, PAIRS[:1])
    assert list(tmp_path.iterdir())
    del runner
    gc.collect()
    assert not list(tmp_path.iterdir())


MANY = 10_000
JUDGE = Path(__file__).with_name("judging_pairs.py")


def start(workspace, log, pause=-1):
    """Begin to judge `MANY` pairs in a process of its own."""
    arguments = [str(JUDGE), str(workspace.root), str(log), str(MANY), str(pause)]
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_until(process, holds):
    """Return as soon as `holds()`, while the process lives."""
    deadline = time.monotonic() + 90
    while not holds():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)


def kill(process):
    """End it as a machine that runs out of memory does."""
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_a_judge_of_ten_thousand_pairs_that_is_killed_goes_on(workspace, tmp_path):
    """Once in full flow, once while the engine thinks; no answer is asked for twice."""
    log = tmp_path / "log"
    path = workspace.private / "judge" / "store.db"

    def logged():
        # A line is a key of 64 characters.
        return log.stat().st_size // 65 if log.exists() else 0

    def stored():
        store = Store(path)
        try:
            return store.count_completions()
        finally:
            store.close()

    # In full flow: what was answered in the last instants was not written yet.
    first = start(workspace, log)
    wait_until(first, lambda: logged() >= 3_000)
    kill(first)
    flown, kept = logged(), stored()
    assert 0 < kept <= flown < MANY

    # While it thinks: everything but the pair it thinks about has been written.
    second = start(workspace, log, pause=4_000)
    wait_until(second, lambda: logged() == flown + 4_001)
    wait_until(second, lambda: stored() == kept + 4_000)
    kill(second)

    done, _ = start(workspace, log).communicate(timeout=90)
    asked_last, cached, answered, values = json.loads(done)
    assert values == [number % 3 for number in range(MANY)]
    assert answered == MANY and cached == kept + 4_000
    assert asked_last == MANY - cached
    times = Counter(log.read_text().split())
    # Twice only: what was in flight at the first kill, and the one pair at the second.
    assert len(times) == MANY and times.total() == MANY + (flown - kept) + 1
    assert stored() == MANY
    store = Store(path)
    assert not store.find_runs() and not store.read("SELECT * FROM outcomes")
    store.close()


def test_all_that_came_back_is_told(workspace, monkeypatch):
    """Each item in its place; what was asked, found, used and waited for."""

    class Counting(PairEngine):
        def complete(self, prompts):
            for index, completion in super().complete(prompts):
                counted = {"latency_s": 0.5, "prompt_tokens": 10, "cached_tokens": 4}
                yield index, completion._replace(**counted, completion_tokens=2)

    monkeypatch.setitem(base._FACTORIES, "pairs", Counting)
    pairs = [
        PAIRS[1],
        pair(" ", "..."),
        PAIRS[1],
        pair("A.", "odd"),
        pair("A.", "broken"),
    ]
    one, odd, broken = (_key(pairs[n], "en") for n in (0, 3, 4))
    answered = ItemAnswer(Status.ANSWERED, (1,))
    with open_judge(workspace, "pairs:a") as runner:
        first, again = ask(runner, pairs), ask(runner, pairs)
    assert first == AskedItems(
        answers=(
            answered,
            None,
            answered,
            ItemAnswer(Status.UNPARSED, (None,)),
            ItemAnswer(Status.ENGINE_FAILED, (None,)),
        ),
        keys=(one, "", one, odd, broken),
        asked=3,
        cached=0,
        answered=1,
        unparsed=1,
        failed=1,
        problems=(
            Problem("HTTP 503 after 7 attempts", 1, (broken,)),
            Problem("there is no JSON object in the answer", 1, (odd,)),
        ),
        used=Usage(3, 30, 6, 12),
        waited=1.5,
    )
    # What was answered is remembered, what could not be read is stored.
    assert again == first._replace(
        asked=1, cached=2, used=Usage(2, 20, 4, 8), waited=1.0
    )


def test_items_are_asked_about_by_their_texts_and_then_by_their_ids():
    """Whatever order they came in; the last text decides nothing."""
    items = [
        Item(id=name, variables={"reference": reference, "candidate": candidate})
        for name, reference, candidate in (
            *(("c", "B", "1"), ("b", "A", "3"), ("d", "A", "1"), ("a", "B", "2")),
        )
    ]
    assert [one.id for one in _in_order(items)] == ["b", "d", "a", "c"]
    alone = [Item(id=name, variables={"text": text}) for name, text in ("bx", "ay")]
    assert [one.id for one in _in_order(alone)] == ["a", "b"]


def test_the_key_of_an_item_is_the_same_for_ever():
    """By hand; texts of a pair by their names."""
    assert _key({"text": "é"}, "en") == digest_bytes(b"2:en2:\xc3\xa9")
    assert _key({"text": "a", "b": "c"}, "en") == (digest_bytes(b"2:en1:b1:c4:text1:a"))


def test_a_block_has_its_outcomes_and_leaves_nothing_behind(workspace):
    """In the order given; stored only where that is asked, and never remembered."""
    items = [
        Item(id=name, variables=texts)
        for name, texts in (("b", PAIRS[1]), ("a", PAIRS[2]), ("b", PAIRS[0]))
    ]
    with open_judge(workspace, "pairs:a") as runner:
        counts = []
        for keep, stored in ((False, 0), (True, 3)):
            found = runner.ask_block(items, keep=keep, count=counts.append)
            assert [one.item_id for one in found] == ["b", "a", "b"]
            assert [one.fields["significant.omission"].value for one in found] == [
                *(1, 2, 0)
            ]
            assert runner._store.count_completions() == stored
            assert runner._known == {} and not runner._store.find_runs()
        runner.ask_block(items, keep=True, count=counts.append)
    assert [(one.asked, one.cached) for one in counts] == [(3, 0), (3, 0), (0, 3)]


def test_a_runner_beside_another_asks_the_same_engine(workspace):
    """About its own version, in its own draw, into whichever store it is given."""
    other = make_judge(system="You compare two reports.\n")
    with open_judge(workspace, "pairs:a") as runner:
        ask(runner, PAIRS[:2])
        beside = runner.beside(runner.version)
        assert (ask(beside, PAIRS[:2]).asked, beside.fields) == (
            0,
            runner.version.labels,
        )
        assert ask(runner.beside(other), PAIRS[:2]).asked == 2
        drawn = runner.beside(runner.version, draw=1)
        assert ask(drawn, PAIRS[:2]).asked == 2
        assert ask(runner.beside(runner.version, draw=1), PAIRS[:2]).asked == 0
        store = Store(workspace.private / "elsewhere" / "store.db")
        kept = runner.beside(runner.version, store=store)
        assert ask(kept, PAIRS[:3]).asked == 3
        assert store.count_completions() == 3
        store.close()
        beside.close()
        assert ask(runner, PAIRS[:2]).asked == 0
        assert beside.engine == runner.engine == "pairs:a"


def test_every_call_of_a_remembered_item_was_there_already(workspace):
    """Three calls a pair: what is told adds up over what is remembered and new."""
    version = make_judge(plan=CallPlan.PER_LABEL)
    with open_judge(workspace, "pairs:a", version=version) as runner:
        first = ask(runner, [pair("A.", "b"), pair("A.", "c")])
        again = ask(runner, [pair("A.", "b"), pair("A.", "c"), pair("A.", "d")])
        whole = ask(runner, [pair("A.", "d"), pair("A.", "b")])
    assert [(one.asked, one.cached, one.answered) for one in (first, again, whole)] == [
        *((6, 0, 2), (3, 6, 3), (0, 6, 2)),
    ]


@pytest.mark.parametrize(("retries", "asks"), [(None, 3), (0, 1), (1, 2)])
def test_an_unreadable_answer_is_asked_for_again_as_often_as_is_said(
    workspace, monkeypatch, retries, asks
):
    """By who opens the runner, else by the engine's settings."""

    class Stubborn(PairEngine):
        retry_unreadable = 2

    monkeypatch.setitem(base._FACTORIES, "pairs", Stubborn)
    with open_judge(workspace, "pairs:a", retries=retries) as runner:
        found = ask(runner, [pair("A.", "odd")])
    assert (found.asked, found.unparsed) == (asks, 1)
