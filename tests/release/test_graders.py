"""Judges and metrics are named in one way, and their numbers say what they are of."""

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.core.records import Status
from loop.judge.counts import ERRORS, GREEN, OWN, JudgeCounts
from loop.judge.discrimination import PairScores
from loop.judge.ensemble_versions import MemberPin
from loop.judge.judge import JudgeAnswers, JudgeFacts
from loop.prompts.outputs.green_sections import ParserMode
from loop.release.graders import (
    GradedColumn,
    GradedTexts,
    Grader,
    GraderOptions,
    JudgeReading,
    _find_named,
    grade_texts,
    resolve_graders,
)
from loop.score.metrics.base import Direction

NAN = float("nan")


@pytest.mark.parametrize(
    ("score", "found"),
    [("green", [GREEN]), ("errors", [ERRORS]), ("all", [GREEN, ERRORS])],
)
def test_a_score_of_a_judge_is_named_or_all_are(score, found):
    """In the judge's order."""
    assert _find_named("x", score, (GREEN, ERRORS)) == tuple(found)


def test_a_score_that_a_judge_has_not_is_refused():
    """With those it has."""
    said = r"'a\.b': this judge has no score 'b'\. Name one of green, errors, or all\."
    with pytest.raises(DataError, match=said):
        _find_named("a.b", "b", (GREEN, ERRORS))


def test_names_stand_for_metrics_judges_and_engines():
    """Each once, in the order in which they were named first."""
    found = resolve_graders(
        None, ["green", "rouge_l", "green@v1", "green", "green=openai:m", "rouge_l"]
    )
    assert found == (
        Grader("green", judge="green"),
        Grader("rouge_l", metric="rouge_l"),
        Grader("green@v1", judge="green@v1"),
        Grader("green=openai:m", judge="green", engine="openai:m"),
    )
    (one,) = resolve_graders(None, ["green.green"])
    assert (one.judge, [each.name for each in one.scores]) == ("green", ["green"])
    (every,) = resolve_graders(None, ["green.all=rules"])
    assert (every.judge, every.engine) == ("green", "rules")
    assert every.scores[0] == GREEN
    assert len(every.scores) > 2
    family = resolve_graders(None, ["text"])
    assert len(family) > 1 and all(one.metric and not one.judge for one in family)
    with pytest.raises(DataError, match="no metric, family or judge is called 'zebra'"):
        resolve_graders(None, ["rouge_l", "zebra"])


def reading(*scores, engine="", context=False, own=(0.5, NAN)):
    """Return what a judge says of two pairs, one of them without an answer."""
    counts = JudgeCounts(
        categories=("omission",),
        significant=np.array([[1.0], [NAN]]),
        insignificant=np.array([[0.0], [NAN]]),
        matched=np.array([3.0, NAN]),
        statuses=(Status.ANSWERED, Status.UNPARSED),
        numbers={"score": np.array(own)},
    )
    return JudgeReading(
        grader=Grader("named", judge="green@v1", scores=scores, engine=engine),
        name="green",
        ref="green@v1",
        facts=JudgeFacts(
            ref="green@v1",
            digest="d" * 64,
            engine="rules",
            identity="e" * 64,
            parser=ParserMode.TOLERANT,
        ),
        answers=JudgeAnswers(counts, 2, 0),
        scores=(GREEN, ERRORS),
        with_context=context,
    )


def test_a_judge_named_alone_gives_its_main_score():
    """Under the name that it was given, with all that it rests on."""
    (column,) = reading().columns
    parser = ParserMode.TOLERANT
    signature = (
        f"green_green|green@v1:dddddddd|rules:eeeeeeee|parser:{parser}"
        f"{'|empty:1' if GREEN.weights is not None else ''}"
    )
    assert (column.name, column.title) == ("named", "GREEN of green@v1")
    assert column.direction is Direction.HIGHER
    # Three matched findings, of these and one significant error.
    assert column.values[0] == pytest.approx(3 / 4)
    assert np.isnan(column.values[1])
    assert column.signature == signature
    assert column.pin == MemberPin(
        judge="green@v1",
        score="green",
        digest="d" * 64,
        engine="rules",
        identity="e" * 64,
        conventions=signature,
    )
    assert column.with_context is False


def test_scores_that_are_named_stand_behind_the_judge():
    """With its engine, where one was named; told of the patient, they say so."""
    found = reading(GREEN, ERRORS, engine="openai:m", context=True).columns
    assert [(one.name, one.title) for one in found] == [
        ("green@v1.green=openai:m", "GREEN of green@v1, openai:m"),
        ("green@v1.errors=openai:m", "GREEN-EC of green@v1, openai:m"),
    ]
    assert all("|context" in one.signature for one in found)
    assert all(one.with_context for one in found)
    assert found[1].direction is Direction.LOWER
    assert found[1].signature.startswith("green_errors|green@v1:")
    (alone,) = reading(ERRORS).columns
    assert alone.name == "green@v1.errors"
    assert "context" not in alone.signature


def test_an_own_score_that_was_never_given_is_none_of_all():
    """Named alone it stands there, without a number."""
    none = (NAN, NAN)
    names = [one.name for one in reading(GREEN, OWN, own=none).columns]
    assert names == ["green@v1.green"]
    names = [one.name for one in reading(GREEN, OWN).columns]
    assert names == ["green@v1.green", "green@v1.own"]
    (alone,) = reading(OWN, own=none).columns
    assert np.isnan(alone.values).all()


@pytest.mark.parametrize(
    ("direction", "lower"), [(Direction.LOWER, True), (Direction.HIGHER, False)]
)
def test_a_column_is_scores_of_pairs(direction, lower):
    """Without what it was, and without flags."""
    values = np.array([1.0, 2.0])
    column = GradedColumn(
        name="a",
        title="A",
        direction=direction,
        values=values,
        signature="s",
        pin=MemberPin(metric="a", conventions="s"),
    )
    assert column.pair_scores == PairScores(
        name="a", title="A", lower=lower, values=values, signature="s"
    )


def test_numbers_stand_in_the_order_of_the_names_and_of_the_pairs():
    """Whatever was asked first; a metric of texts rests on no reader of labels."""
    texts = GradedTexts(
        ids=("b", "a"),
        references=("Small effusion.", "No pneumothorax."),
        candidates=("Small effusion.", "Rib fracture."),
    )
    graders = resolve_graders(None, ["rouge_l", "green@v1.errors", "rouge_1"])
    found = grade_texts(texts, None, graders, GraderOptions())
    assert [one.name for one in found] == ["rouge_l", "green@v1.errors", "rouge_1"]
    assert [one.values[0] for one in found] == [1.0, 0.0, 1.0]
    other = [one.values[1] for one in found]
    assert (other[0], other[2]) == (0.0, 0.0)
    assert other[1] >= 1
    pin = found[0].pin
    assert (pin.metric, pin.judge, pin.labels_by, pin.digest) == ("rouge_l", "", "", "")
    fields = pin.conventions.split("|")
    assert not [one for one in fields if one.startswith(("n:", "L:", "unparsed:"))]
    assert set(fields) < set(found[0].signature.split("|"))
