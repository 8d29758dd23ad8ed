"""RadFact of given phrases: nothing is taken apart, boxes decide on places."""

import json
import re

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.engines import base
from loop.judge import grounded_phrases
from loop.judge.grounded_phrases import (
    GroundedPair,
    GroundedScores,
    PhraseScore,
    grounded_data,
    grounded_notes,
    judge_phrases,
    read_grounded,
)
from loop.judge.radfact import harmonic_of_means, radfact_parts
from loop.run.execute import Problem
from loop.stats.intervals import Estimate
from loop.stats.resampling import bootstrap, to_estimate
from tests.judge.scenes import call
from tests.run.staged_judge import StagedAnswers

LEFT, RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)


def side(*phrases):
    """Return phrases, each with its box or without one."""
    return [{"phrase": words, "boxes": [box] if box else []} for words, box in phrases]


def pair(name, reference, candidate):
    """Return one pair of phrases."""
    data = {"id": name, "reference": side(*reference), "candidate": side(*candidate)}
    return GroundedPair.model_validate(data)


@pytest.fixture
def staged(monkeypatch):
    """Register the engine ``staged`` and return it: same words entail each other."""
    engine = StagedAnswers()
    monkeypatch.setitem(base._FACTORIES, "staged", lambda name, _: engine)
    return engine


def values(scores):
    """Return each kind of share: precision, recall, F1."""
    return {
        one.name: tuple(each.value for each in (one.precision, one.recall, one.f1))
        for one in scores.scores
    }


def test_phrases_are_held_by_words_and_in_place(staged):
    """One at its place, one on the other side, one without a box, one invented."""
    one = pair(
        "a",
        [("effusion", LEFT), ("mass", LEFT), ("normal heart", None)],
        [("effusion", LEFT), ("mass", RIGHT), ("normal heart", None), ("ox", LEFT)],
    )
    found = judge_phrases([one], "radfact", "staged")
    assert (found.pairs, found.answered) == (1, 1)
    said = values(found)
    assert said["logical"] == pytest.approx((3 / 4, 1.0, 6 / 7))
    assert said["grounding"] == (1 / 2, 1 / 2, 1 / 2)
    assert said["spatial"] == pytest.approx((1 / 3, 1 / 2, 2 / 5))
    assert {call for call, _ in staged.asked} == {"precision", "recall"}


def test_means_are_over_the_pairs_that_have_a_share(staged):
    """A pair without boxes is in no share of places, one without phrases in none."""
    pairs = [
        pair("a", [("x", LEFT)], [("x", LEFT)]),
        pair("b", [("x", None)], [("y", None)]),
        pair("c", [("x", None)], []),
    ]
    found = judge_phrases(pairs, "radfact", "staged", seed=1)
    assert found.scores[0].pairs == (2, 3)
    assert values(found)["logical"] == pytest.approx((1 / 2, 1 / 3, 2 / 5))
    assert found.scores[1].pairs == (1, 1)
    assert values(found)["grounding"] == (1.0, 1.0, 1.0)


def test_no_candidate_with_phrases_has_a_recall_and_no_precision(staged):
    """What cannot be estimated is no number."""
    found = judge_phrases([pair("a", [("x", None)], [])] * 3, "radfact", "staged")
    logical = found.scores[0]
    assert (logical.precision.value, logical.f1.value) == (None, None)
    assert logical.recall.value == 0.0


def test_an_unreadable_pair_is_left_out_and_counted(staged):
    """Officially it scores as not entailed, which is no measurement."""
    staged.table = {"recall": "I cannot say."}
    found = judge_phrases(
        [pair("a", [("x", None)], [("x", None)])], "radfact", "staged"
    )
    assert (found.answered, found.unparsed) == (0, 1)
    assert values(found)["logical"] == (None, None, None)
    assert found.problems


def test_a_pair_without_a_word_is_counted_as_not_asked(staged):
    """Nothing is asked about it, and it is in no share: neither is kept quiet."""
    found = judge_phrases(
        [pair("a", [], []), pair("b", [("x", None)], [("x", None)])],
        "radfact",
        "staged",
    )
    assert (found.pairs, found.answered, found.not_asked) == (2, 1, 1)
    assert found.answered + found.unparsed + found.failed + found.not_asked == 2
    assert "1 without a word" in grounded_notes(found)[0]


def test_another_judge_reads_no_phrases():
    """It would be asked without its texts."""
    one = pair("a", [("x", None)], [])
    with pytest.raises(DataError, match="does not read phrases"):
        judge_phrases([one], "green")


GOOD = '{"id": "a", "reference": [{"phrase": "x"}], "candidate": []}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no pair"),
        (f"{GOOD}\n{GOOD}", "line 2: the id 'a' appears twice"),
        ("[]", "line 1: the object"),
        ("{", "line 1: no JSON object"),
        (GOOD.replace('"candidate": []', '"candidate": [], "id": "b"'), "a key twice"),
        (GOOD.replace('"candidate": []', '"more": 1'), "line 1: candidate"),
        (GOOD.replace('"x"', '""'), "line 1: reference.0.phrase"),
        (GOOD.replace('"x"', '" "'), "line 1: reference.0.phrase"),
        (GOOD.replace('"x"', '"x", "boxes": [[0, 0, 2, 1]]'), "reference.0.boxes.0.2"),
        (
            GOOD.replace('"x"', '"x", "boxes": [[0.5, 0, 0.5, 1]]'),
            r"line 1: reference\.0 has a box without area",
        ),
        (
            GOOD.replace('"x"', '"x", "boxes": [[0.5, 0, 0.501, 1]]'),
            "none of 224 x 224",
        ),
        (GOOD.replace('"x"', '"\u200b"'), r"reference\.0\.phrase has no letter"),
        (GOOD.replace('"x"', '"x", "boxes": [[0, 0, 1]]'), "reference.0.boxes.0"),
        ("[" * 100_000, "no JSON object"),
    ],
)
def test_a_file_of_phrases_says_where_it_is_wrong(tmp_path, text, problem):
    """Line and place; never the words of a phrase."""
    path = tmp_path / "phrases.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=problem):
        read_grounded(path)


def test_a_file_of_phrases(tmp_path):
    """A byte order mark and blank lines are no pairs."""
    path = tmp_path / "phrases.jsonl"
    path.write_text(
        "\ufeff" + GOOD + "\n\n" + json.dumps({**json.loads(GOOD), "id": "b"})
    )
    assert [one.id for one in read_grounded(path)] == ["a", "b"]
    path.write_text(GOOD.replace("x", "left\u2028effusion"), encoding="utf-8")
    assert len(read_grounded(path)) == 1
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        read_grounded(path)
    with pytest.raises(DataError, match="cannot read"):
        read_grounded(tmp_path / "none.jsonl")


def test_the_verb_judges_phrases(workspace, tmp_path):
    """As a table and as JSON; no word of a phrase is in either."""
    path = tmp_path / "phrases.jsonl"
    one = pair("a", [("left pleural effusion", LEFT)], [("left effusion", LEFT)])
    path.write_text(one.model_dump_json())
    said = call(workspace, "judge", "radfact", "--phrases", path)
    assert said.exit_code == 0, said.output
    assert "grounding" in said.output and "effusion" not in said.output
    asked = call(workspace, "judge", "radfact", "--phrases", path, "--json")
    scores = {one["name"]: one for one in json.loads(asked.stdout)["scores"]}
    assert scores["spatial"]["f1"]["value"] == 1.0
    for more in (("--pairs", path), ("--shots", "random:3"), ("--sample", 1)):
        both = call(workspace, "judge", "radfact", "--phrases", path, *more)
        assert both.exit_code == 2


def test_the_verb_says_which_pairs_each_share_rests_on(workspace, staged, tmp_path):
    """Of three pairs one has no candidate, one has no word; without any it fails."""
    path = tmp_path / "phrases.jsonl"
    two = [("effusion", LEFT), ("mass", LEFT)]
    pairs = [
        pair("a", two, [two[0], ("mass", RIGHT)]),
        pair("b", [("x", None)], []),
        pair("c", [], []),
    ]
    path.write_text("\n".join(one.model_dump_json() for one in pairs))
    arguments = ("judge", "radfact", "--phrases", path, "-e", "staged")
    done = call(workspace, *arguments)
    assert done.exit_code == 0, done.output
    head, _, notes = done.stdout.partition("\nnote: ")
    assert re.fullmatch(
        r"3 pairs of phrases, judged by radfact@v1 \([0-9a-f]{8}\) with staged",
        head.splitlines()[0],
    )
    assert head.splitlines()[2:] == [
        "share of phrases  precision                recall     F1  pairs",
        "----------------  ---------  --------------------  -----  -----",
        "logical               1.000  0.500 [0.000, 1.000]  0.667  1 + 2",
        "grounding             0.500                 0.500  0.500  1 + 1",
        "spatial               0.500                 0.500  0.500  1 + 1",
    ]
    assert notes.startswith("2 of 3 pairs have a readable answer")
    staged.table = {"precision": "I cannot say.", "recall": "I cannot say."}
    path.write_text(pair("d", [("y", None)], [("y", None)]).model_dump_json())
    failed = call(workspace, *arguments)
    assert failed.exit_code == 1 and "no pair was judged" in failed.stderr
    assert "logical                   –       –   –  0 + 0" in failed.stdout


def estimate(value):
    """Return an estimate with limits 0.1 from it."""
    return Estimate(value, value - 0.1, value + 0.1)


def test_the_data_and_notes_hold_every_number_once():
    """Of pairs, of each kind of share, and of why pairs have no answer."""
    found = GroundedScores(
        judge="radfact@v1 (abcdef12) with told",
        pairs=12_000,
        answered=11_990,
        unparsed=4,
        failed=3,
        not_asked=2,
        scores=(
            PhraseScore("logical", *map(estimate, (0.7, 0.6, 0.65)), (10, 9)),
            PhraseScore("spatial", *map(estimate, (0.4, 0.3, 0.35)), (5, 4)),
        ),
        problems=(Problem("no JSON", 1_234, ()), Problem("lost", 1, ())),
    )
    assert grounded_data(found) == {
        "format": 1,
        "judge": "radfact@v1 (abcdef12) with told",
        "pairs": 12_000,
        "answered": 11_990,
        "unparsed": 4,
        "engine_failed": 3,
        "not_asked": 2,
        "scores": [
            {
                "name": name,
                "precision": estimate(precision)._asdict(),
                "recall": estimate(recall)._asdict(),
                "f1": estimate(f1)._asdict(),
                "pairs": {"precision": one, "recall": other},
            }
            for name, precision, recall, f1, one, other in (
                ("logical", 0.7, 0.6, 0.65, 10, 9),
                ("spatial", 0.4, 0.3, 0.35, 5, 4),
            )
        ],
        "problems": [
            {"text": "no JSON", "pairs": 1_234},
            {"text": "lost", "pairs": 1},
        ],
    }
    notes = grounded_notes(found)
    assert notes[0] == (
        "11,990 of 12,000 pairs have a readable answer; the others are left out: 4 "
        "unreadable, 3 failed, 2 without a word to ask about."
    )
    assert notes[2].endswith(
        "In place: more than 0.5 of the boxes' pixels lie in those of the evidence, on "
        "224 x 224 pixels."
    )
    assert notes[3:] == ["1,234 pairs: no JSON", "1 pair: lost"]


def test_intervals_are_of_shares_drawn_pair_by_pair(staged):
    """Of the same draws: precision 1 in two of three pairs, recall 1 in one of two."""
    found = judge_phrases(
        [
            pair("a", [("x", None)], [("x", None)]),
            pair("b", [("x", None), ("z", None)], [("x", None)]),
            pair("c", [], [("y", None)]),
        ],
        "radfact",
        "staged",
        resamples=400,
        seed=2,
    )
    logical = found.scores[0]
    parts = radfact_parts(np.array([1, 1, 0.0]), np.array([1, 0.5, np.nan]))
    (f1,) = bootstrap(parts, harmonic_of_means, resamples=400, seed=2)
    assert logical.f1 == to_estimate(f1)
    assert logical.f1.value == pytest.approx(2 * (2 / 3) * 0.75 / (2 / 3 + 0.75))
    assert (logical.precision.low, logical.precision.high) == (0, 1)
    assert logical.recall.low == 0.5 and logical.recall.value == 0.75
    assert logical.pairs == (3, 2)


@pytest.mark.parametrize("extra", [0, 1])
def test_the_largest_file_of_phrases_is_read_and_none_larger(
    tmp_path, monkeypatch, extra
):
    """By its bytes, before any is read."""
    path = tmp_path / "phrases.jsonl"
    path.write_text(GOOD)
    monkeypatch.setattr(grounded_phrases, "MAX_BYTES", len(GOOD) - extra)
    if extra:
        with pytest.raises(DataError) as refused:
            read_grounded(path)
        size = len(GOOD)
        assert str(refused.value) == (
            f"{path} has {size} bytes, more than {size - 1}. Split it."
        )
        return
    assert [one.id for one in read_grounded(path)] == ["a"]
