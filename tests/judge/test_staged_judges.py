"""Judges in stages: RadFact over pairs, two passes, their runs, replays and traces."""

import json

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.core.records import Completion, Item, Outcome, Status
from loop.engines import base
from loop.judge import Judge, judge_pairs
from loop.judge.document import notes
from loop.judge.judge import list_judges
from loop.judge.radfact import (
    PIXELS,
    JudgedPhrase,
    covered_share,
    harmonic_of_means,
    has_pixels,
    judged_phrases,
    pair_f1,
    radfact_parts,
    share_phrases,
)
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.review.pair_verdicts import read_judged
from loop.run.store import open_store
from tests.judge.scenes import CANDIDATES, REFERENCES, call, errors, rate
from tests.run.staged_judge import StagedAnswers, take_apart


class PassingJudge(StagedAnswers):
    """Lists what each candidate leaves out; then weighs it as told."""

    def __init__(self, weighed):
        super().__init__()
        self.weighed, self.lists = weighed, []

    def answer(self, prompt):
        """Answer the first pass with an omission, the second as told."""
        inputs = prompt.item.variables
        if prompt.frame.call == "listed_errors":
            error = {"category": "omission", "why": "left out"}
            error |= {"reference": inputs["reference"], "candidate": ""}
            return json.dumps({"errors": [error], "matched_findings": 1})
        self.lists.append(inputs["listed_errors"])
        return self.weighed.get(inputs["candidate"], errors())


@pytest.fixture
def engine(monkeypatch):
    """Return what registers an engine called ``staged`` for one test."""

    def register(one):
        monkeypatch.setitem(base._FACTORIES, "staged", lambda name, _: one)
        return one

    return register


def test_stages_are_no_judges_of_pairs(workspace):
    """What reads one text is not offered, and not opened."""
    names = {one.name for one in list_judges(None)}
    assert {"radfact", "two_pass"} <= names and "radfact_phrases" not in names
    with pytest.raises(DataError, match="judges no pairs"):
        Judge.open(None, "radfact_phrases")


def test_radfact_of_a_system_is_the_f1_of_means_and_not_the_mean_of_f1(engine):
    """A pair without phrases in its candidate has no precision, and a recall of 0."""
    engine(StagedAnswers())
    said = judge_pairs(
        {"a": "cat. dog.", "b": "cat.", "c": "cat."},
        {"a": "cat.", "b": "cat. ox. bat.", "c": ""},
        "radfact",
        "staged",
    )
    found = said.table.set_index("score")["value"]
    assert found["radfact_precision"] == pytest.approx((1 + 1 / 3) / 2)
    assert found["radfact_recall"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    p, r = found["radfact_precision"], found["radfact_recall"]
    assert found["radfact_f1"] == pytest.approx(2 * p * r / (p + r))
    per_pair = said.pairs["radfact_f1"]
    assert per_pair[:2].tolist() == pytest.approx([2 / 3, 1 / 2])
    assert np.isnan(per_pair[2])
    ends = said.table.set_index("score")["signature"].str.split("|").str[-2:].to_dict()
    assert ends == {
        "radfact_f1": ["harmonic:means", "n:3"],
        "radfact_precision": ["mean:pairs", "n:2"],
        "radfact_recall": ["mean:pairs", "n:3"],
    }
    told = " ".join(notes(said.document))
    # A pair that has no precision is answered, and is in no mean: that is said.
    assert "RadFact precision of radfact@v1 is not defined for 1 answered pair," in told
    assert "RadFact recall" not in told


def test_a_copy_has_every_phrase_of_its_reference_for_rules():
    """Also of sentences in which it finds nothing, and in which it finds too much."""
    texts = {
        "a": "IMPRESSION:\n1. Calcified granulomas noted.\n2. Clear.",
        "b": "No stable cardiomegaly. PA view.",
        "c": REFERENCES["b"],
    }
    table = judge_pairs(texts, dict(texts), "radfact").table
    assert table["value"].tolist() == [1.0] * 3


def test_two_passes_ask_twice_and_the_second_sees_the_list(engine):
    """Significance is the second pass's to say."""
    judge = engine(PassingJudge({"normal.": errors(("omission", False))}))
    said = judge_pairs(
        {"a": "effusion."}, {"x": {"a": "normal."}}, "two_pass", "staged"
    )
    (counts,) = [one.answers.counts for one in said.document.systems]
    assert counts.triples.tolist() == [[1.0, 0.0, 1.0]]
    assert judge.lists == ['1. omission: effusion. (reference: "effusion.")']


def test_both_passes_of_rules_count_as_one_does():
    """It reads the two reports, and no list."""
    names = list(REFERENCES)
    texts = [[side[name] for name in names] for side in (REFERENCES, CANDIDATES)]
    found = []
    for version in ("one_pass", "two_pass"):
        with Judge.open(None, version) as judge:
            found.append(judge.judge(*texts, ["en"] * len(names)).counts.triples)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("judge", ["radfact", "two_pass"])
def test_a_run_in_stages_is_evaluated_shown_and_replayed(workspace, tmp_path, judge):
    """Every stage is in the trace, and a replay finds the answers of each."""
    rate(workspace, tmp_path)
    made = call(workspace, "prompt", "new", judge, "--from", f"{judge}@v1")
    assert made.exit_code == 0, made.output
    asked = ("run", judge, "--cohort", "rp", "--json")
    first = call(workspace, *asked)
    assert first.exit_code == 0, first.output
    done = json.loads(first.stdout)
    assert done["answered"] == 8
    evaluated = call(workspace, "evaluate", "latest", "--json")
    assert evaluated.exit_code in (0, 100), evaluated.output
    names = [one["score"] for one in json.loads(evaluated.stdout)["agreement"]]
    assert ("f1" if judge == "radfact" else "green") in names
    version = read_version(workspace, judge)
    with open_store(workspace) as store:
        (run,) = store.find_runs(ids=[done["run_id"]])
        said = read_judged(store, run, version, "p1")
    categories = {one.category for one in said.errors}
    assert categories == (set() if judge == "radfact" else {"location"})
    shown = call(workspace, "show", done["run_id"], "p1", "--json")
    assert shown.exit_code == 0, shown.output
    trace = json.loads(shown.stdout)
    calls = [one["call"] for one in trace["calls"]]
    assert (
        calls
        == {
            "radfact": [
                "reference_phrases",
                "candidate_phrases",
                "precision",
                "recall",
            ],
            "two_pass": ["listed_errors", "joint"],
        }[judge]
    )
    assert not trace["remarks"]
    assert all(one["attempts"] and one["as_sent"] for one in trace["calls"])
    assert call(workspace, "show", done["run_id"], "p1").exit_code == 0
    again = call(workspace, *asked, "-e", f"replay:{done['run_id']}")
    assert again.exit_code == 0, again.output
    replayed = json.loads(again.stdout)
    assert (replayed["answered"], replayed["unparsed"]) == (8, 0)
    dry = call(workspace, *asked, "--dry-run")
    assert dry.exit_code == 0, dry.output
    requests = next(
        one["requests"] for one in json.loads(dry.stdout)["layouts"] if one["chosen"]
    )
    assert requests == 8 * len(calls)


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        (Completion(take_apart("a."), "length"), "unparsed"),
        (Completion("I cannot.", "stop"), "unparsed"),
        (Completion("", "error", "no route"), "failed"),
    ],
)
def test_a_trace_ends_where_a_first_stage_has_no_answer(
    workspace, tmp_path, monkeypatch, answer, ended
):
    """One that was cut off may look whole; the run asked nothing about it."""
    cut = StagedAnswers({"reference_phrases": answer})
    monkeypatch.setitem(base._FACTORIES, "cut", lambda *_: cut)
    rate(workspace, tmp_path)
    made = call(workspace, "prompt", "new", "radfact", "--from", "radfact@v1")
    assert made.exit_code == 0, made.output
    done = call(workspace, "run", "radfact", "--cohort", "rp", "-e", "cut", "--json")
    run = json.loads(done.stdout)
    assert run[ended] == 8
    shown = call(workspace, "show", run["run_id"], "p1", "--json")
    trace = json.loads(shown.stdout)
    assert [(one["call"], one["failure"]) for one in trace["calls"]] == [
        ("reference_phrases", "reference_phrases: no route" * (ended == "failed")),
        ("candidate_phrases", ""),
    ]
    assert [len(one["attempts"]) for one in trace["calls"]] == [
        int(ended != "failed"),
        1,
    ]
    assert not trace["remarks"]


def test_the_shares_of_phrases_in_place():
    """Boxes are held on 224 x 224 pixels; what has no box is in no share."""
    inputs = {
        "reference_phrases": "[0] left effusion\n[1] mass",
        "candidate_phrases": "[0] effusion\n[1] nodule",
    }
    answer = json.dumps(
        {
            "phrases": [
                {"phrase": 0, "entailed": True, "evidence": [0]},
                {"phrase": 1, "entailed": True, "evidence": [1, 0]},
            ]
        }
    )
    item = Item(id="a", variables=inputs)
    fields = get_contract("entailment").read(answer, ("precision",), item).fields
    outcome = Outcome(item_id="a", status=Status.ANSWERED, fields=fields)
    left, right = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)
    boxes = {
        "candidate_phrases": [[left], [right]],
        "reference_phrases": [[left], [left]],
    }
    found = judged_phrases(outcome, inputs, boxes)
    assert [one.evidence for one in found["precision"]] == [(0,), (1, 0)]
    assert share_phrases(found["precision"]) == (1.0, 0.5, 0.5)
    bare = share_phrases(judged_phrases(outcome, inputs)["precision"])
    assert bare.logical == 1.0
    assert np.isnan([bare.grounding, bare.spatial]).all()
    assert "recall" not in found


@pytest.mark.parametrize(
    ("boxes", "cover", "share"),
    [
        ([(0, 0, 0.5, 1)], [(0, 0, 0.25, 1), (0.125, 0, 0.5, 1)], 1.0),
        ([(0, 0, 1, 1), (0, 0, 0.5, 0.5)], [(0, 0, 0.5, 1)], 0.5),
        ([], [(0, 0, 1, 1)], 0.0),
        ([(0.2, 0.2, 0.2, 0.4)], [(0, 0, 1, 1)], 0.0),
        ([(-1, 0, 0.5, 2)], [(0, 0, 0.5, 1)], 1.0),
    ],
)
def test_pixels_that_lie_twice_in_boxes_count_once(boxes, cover, share):
    """Precision of pixels in the union; outside the image there is nothing."""
    assert covered_share(boxes, cover) == share


def test_f1_of_means_leaves_out_what_is_not_there():
    """A side without any phrase in any pair has no F1; nothing entailed is 0."""
    p, r = np.array([1.0, np.nan, 0.5]), np.array([0.5, 1.0, np.nan])
    parts = radfact_parts(p, r).sum(axis=0, keepdims=True)
    assert harmonic_of_means(parts).tolist() == [0.75]
    assert np.isnan(pair_f1(p, r)).tolist() == [False, True, True]
    empty = radfact_parts(np.array([np.nan]), np.array([1.0]))
    assert np.isnan(harmonic_of_means(empty)).all()
    assert pair_f1(np.zeros(1), np.zeros(1)).tolist() == [0.0]


@pytest.mark.parametrize(("right", "placed"), [(112, 0), (111, 1), (113, 0)])
def test_a_phrase_is_in_place_with_more_than_half_of_its_boxes(right, placed):
    """With 112 of 224 columns covered it is not; one more column decides."""
    whole, cover = (0.0, 0.0, 1.0, 1.0), (right / PIXELS, 0.0, 1.0, 1.0)
    found = share_phrases([JudgedPhrase(True, (0,), (whole,), (cover,))])
    assert found == (1.0, placed, placed)


def test_a_phrase_in_place_that_is_not_entailed_is_in_no_share_of_places():
    """Where nothing with boxes is entailed, there is no grounding, and spatial is 0."""
    box = (0.0, 0.0, 0.5, 0.5)
    found = share_phrases([JudgedPhrase(False, (0,), (box,), (box,))])
    assert (found.logical, found.spatial) == (0.0, 0.0)
    assert np.isnan(found.grounding)
    assert np.isnan(share_phrases([])).all()


@pytest.mark.parametrize(
    ("box", "covers"),
    [
        ((0.0, 0.0, 1 / 224, 1 / 224), True),
        ((0.0, 0.0, 0.0, 1.0), False),
        ((0.0, 0.0, 1.0, 0.0), False),
        # Sides in the wrong order cover nothing.
        ((0.5, 0.0, 0.25, 1.0), False),
        ((0.0, 0.5, 1.0, 0.25), False),
    ],
)
def test_a_box_covers_a_pixel_only_with_width_and_height(box, covers):
    """Either of the two alone is a line."""
    assert has_pixels(box) == covers
    assert (covered_share([box], [(0.0, 0.0, 1.0, 1.0)]) > 0) == covers
