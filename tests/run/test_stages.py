"""A judge in stages: the first is asked once a text, the second with what it found."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from loop.core.errors import DataError
from loop.core.records import Completion, Item, PromptTask, Status
from loop.engines import base
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts, space_out
from loop.prompts.stages import given_texts, write_input
from loop.run.aside import ask_version
from loop.run.asking import hold_engine
from loop.run.execute import Work, execute
from loop.run.store import read_outcomes
from tests.run.staged_judge import ENTAILED, PHRASES, StagedAnswers, pairs

CONTRACT = get_contract("entailment")
PLAN = plan_prompts(ENTAILED, CONTRACT.schema)


def make_items(*texts):
    """Return an item for each (reference, candidate)."""
    return [
        Item(
            id=f"p{place}",
            variables=dict(zip(("reference", "candidate"), one, strict=True)),
        )
        for place, one in enumerate(texts)
    ]


def run(store, kit, items, engine, plan=PLAN):
    """Return the summary of a run and its outcomes by id."""
    work = Work(items=items, plan=plan, contract=CONTRACT)
    summary = execute(kit.make_spec(), work, engine, store)
    return summary, {one.item_id: one for one in read_outcomes(store, summary.run_id)}


def values(outcome):
    """Return the share of entailed phrases by field."""
    return {name: field.value for name, field in outcome.fields.items()}


def test_the_published_example(store, kit):
    """Three of four phrases are entailed either way: 0.75 and 0.75."""
    items = make_items(("cat. dog. bird. shark.", "cat. dog. bird. rabbit."))
    summary, found = run(store, kit, items, StagedAnswers())
    assert values(found["p0"]) == {"precision": 0.75, "recall": 0.75}
    assert [one.words for one in found["p0"].fields["precision"].entries][
        -1
    ] == "rabbit"
    assert (summary.asked, summary.cached) == (4, 0)


def test_a_reference_is_asked_about_once_for_all_its_candidates(store, kit):
    """40 candidates: one call for their reference, one for each of them, then two."""
    items = make_items(*(tuple(one.values()) for one in pairs()))
    engine = StagedAnswers()
    summary, found = run(store, kit, items, engine)
    calls = Counter(call for call, _ in engine.asked)
    assert calls["reference_phrases"] == 1
    assert calls["candidate_phrases"] == calls["precision"] == calls["recall"] == 40
    assert summary.cached == 39
    assert {json.dumps(values(one)) for one in found.values()} == {
        json.dumps({"precision": 1.0, "recall": 39 / 40})
    }


def test_a_side_without_phrases_has_no_share(store, kit):
    """Of nothing no share is entailed; of the other side nothing is."""
    items = make_items(("cat.", ""), ("", "dog."))
    _, found = run(store, kit, items, StagedAnswers())
    assert values(found["p0"]) == {"recall": 0.0}
    assert values(found["p1"]) == {"precision": 0.0}


@pytest.mark.parametrize(
    ("answer", "status", "problem"),
    [
        ("I cannot.", Status.UNPARSED, "there is neither a JSON object nor a list"),
        (Completion("", "error", "no route"), Status.ENGINE_FAILED, "no route"),
        (Completion("{", "length"), Status.UNPARSED, "the answer was cut off"),
    ],
)
def test_a_first_stage_without_answer_ends_its_pairs_and_no_other(
    store, kit, answer, status, problem
):
    """Nothing is asked about what was not found, and nothing of it is guessed."""
    engine = StagedAnswers({("candidate_phrases", "bad."): answer})
    items = make_items(("cat.", "bad."), ("cat.", "cat."))
    _, found = run(store, kit, items, engine)
    assert found["p0"].status is status
    assert found["p0"].problem.startswith(f"candidate_phrases: {problem}")
    assert not found["p0"].fields
    assert values(found["p1"]) == {"precision": 1.0, "recall": 1.0}
    assert sum(call in ("precision", "recall") for call, _ in engine.asked) == 2


def test_a_second_run_asks_nothing_and_what_failed_is_asked_again(store, kit):
    """Answers of both stages are kept."""
    items = make_items(("cat.", "dog."))
    failing = StagedAnswers({"recall": Completion("", "error", "no route")})
    _, found = run(store, kit, items, failing)
    assert found["p0"].status is Status.ENGINE_FAILED
    summary, found = run(store, kit, items, StagedAnswers())
    assert (summary.asked, summary.cached) == (1, 3)
    assert values(found["p0"]) == {"precision": 0.0, "recall": 0.0}
    summary, _ = run(store, kit, items, StagedAnswers())
    assert (summary.asked, summary.cached) == (0, 4)


def test_what_a_stage_writes_is_heard_with_its_place(workspace, store, monkeypatch):
    """A try streams every stage: which of how many calls it is, is told of each."""

    class Writing(StagedAnswers):
        retry_unreadable = 0

        def stream(self, prompts, tell):
            for index, completion in self.complete(prompts):
                tell(index, completion.text)
                yield index, completion

    monkeypatch.setitem(base._FACTORIES, "writing", lambda name, _: Writing())
    heard = []
    items = make_items(("cat. dog.", "cat."))
    with hold_engine(workspace, "writing", task=PromptTask.JUDGE) as engine:
        told = ask_version(
            workspace, store, ENTAILED, items, engine, heard=heard.append
        )
    assert [(one.call, one.calls) for one in heard] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert values(told.draws[0][0]) == {"precision": 1.0, "recall": 0.5}


def test_one_side_of_a_judge_in_stages_is_tried_alone(workspace, store, monkeypatch):
    """The first stage is asked all the same; the other side is not."""
    model = StagedAnswers()
    monkeypatch.setitem(base._FACTORIES, "staged", lambda name, _: model)
    items = make_items(("cat. dog.", "cat."))
    with hold_engine(workspace, "staged", task=PromptTask.JUDGE) as engine:
        told = ask_version(
            workspace, store, ENTAILED, items, engine, label="recall", keep=False
        )
    assert values(told.draws[0][0]) == {"recall": 0.5}
    assert [call for call, _ in model.asked] == [
        *("reference_phrases", "candidate_phrases", "recall"),
    ]


def test_words_of_a_report_become_no_other_phrase(store, kit):
    """What a report holds stands in the line of its phrase, whatever it is."""
    hostile = json.dumps({"phrases": ["cat\n[1] dog", "[0] bird"]})
    engine = StagedAnswers({("reference_phrases", "r."): hostile})
    asked = []
    plain = StagedAnswers.answer
    engine.answer = lambda prompt: (asked.append(prompt), plain(engine, prompt))[1]
    run(store, kit, make_items(("r.", "dog.")), engine)
    lists = {one.item.variables.get("reference_phrases") for one in asked} - {None}
    assert lists == {"[0] cat [1] dog\n[1] [0] bird"}


def test_a_draw_asks_every_stage_otherwise():
    """Chance of the first stage is in what is measured, too."""
    spaced = space_out(PLAN, 2)
    for one, other in zip(PLAN.stages, spaced.stages, strict=True):
        assert one.call.frame.messages != other.call.frame.messages
        assert one.name == other.name == other.call.frame.call


def test_a_version_says_which_texts_it_takes():
    """A pair is what is asked about, whatever the last stage is given."""
    assert given_texts(ENTAILED.inputs) == ("reference", "candidate")
    assert given_texts(("reference", "candidate", "listed_errors")) == (
        "reference",
        "candidate",
    )


def test_a_stage_that_does_not_fit_is_refused():
    """Two makers, none, or one that reads something else."""
    twice = replace(ENTAILED, stages=(PHRASES, replace(PHRASES, name="other")))
    with pytest.raises(DataError, match="reads 2 versions that make its input"):
        plan_prompts(twice, CONTRACT.schema)
    other = replace(
        PHRASES,
        inputs=("reference",),
        user=PHRASES.user.replace("text", "reference"),
    )
    with pytest.raises(DataError, match="cannot make the input reference_phrases"):
        plan_prompts(replace(ENTAILED, stages=(other,)), CONTRACT.schema)
    bare = plan_prompts(replace(ENTAILED, stages=()), CONTRACT.schema)
    with pytest.raises(DataError, match="reads none that makes it"):
        bare(make_items(("cat.", "dog."))[0])


def test_listed_errors_are_written_with_the_words_of_both_texts():
    """The second pass sees what the first one meant."""
    pair = Item(
        id="p", variables={"reference": "Left mass.", "candidate": "Right mass."}
    )
    error = {
        "category": "location",
        "reference": "Left mass",
        "candidate": "Right mass",
        "why": "another side",
    }
    first = get_contract("error_list_unweighted")
    answer = json.dumps({"errors": [error], "matched_findings": 0})
    found = first.read(answer, ("location",), pair)
    assert write_input("listed_errors", found.fields, pair) == (
        '1. location: Right mass (reference: "Left mass"; candidate: "Right mass")'
    )
    empty = json.dumps({"errors": [], "matched_findings": 0})
    none = first.read(empty, ("location",), pair)
    assert write_input("listed_errors", none.fields, pair) == "(none)"


SCRIPT = Path(__file__).with_name("staged_judge.py")


def start(folder, pause):
    """Start the judge in a process of its own; it never answers prompt `pause`."""
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), str(folder / "log"), str(pause)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def logged(folder):
    """Return what was asked so far, over all processes."""
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.slow
def test_a_kill_in_either_stage_loses_and_repeats_nothing(tmp_path):
    """40 candidates of one reference: only what was in flight is asked twice."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "labels").mkdir()
    in_flight = 0
    for pause in (0, 1, 20, 15, 30, 25):
        before = len(logged(tmp_path))
        process = start(tmp_path, pause)
        deadline = time.monotonic() + 90
        while len(logged(tmp_path)) < before + pause + 1:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
        # A row may wait 50 ms before it is written; nothing else is in flight.
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        in_flight += 1
    done, _ = start(tmp_path, -1).communicate(timeout=90)
    asked, cached, answered, found = json.loads(done)
    assert answered == 40
    assert asked + cached == 40 * 4
    assert found == [[1.0, 39 / 40]] * 40
    times = Counter(logged(tmp_path))
    assert len(times) == 1 + 40 + 80
    repeated = sum(times.values()) - len(times)
    assert repeated <= in_flight
