"""Rewards for training, in the forms that trainers call."""

import math
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from loop.core.errors import DataError
from loop.run.execute import execute
from loop.score.api import ran_score
from loop.score.extractor import Extractor
from loop.score.reward import (
    RanScoreMetric,
    RanScoreReward,
)

REFERENCE = "Small left pleural effusion. Mild cardiomegaly."


@pytest.fixture(scope="module")
def extractor():
    """Open the shipped extractor once."""
    with Extractor.open(None, "extractor@v7") as opened:
        yield opened


def test_reward_is_the_f1_of_the_case(extractor):
    """Both found 1; one of two 2*1/(2+1); normal instead, and nothing, 0."""
    reward = RanScoreReward(extractor)
    completions = [REFERENCE, "Left pleural effusion.", "Normal chest.", ""]
    found = reward(completions, [REFERENCE] * 4)
    assert found == [1.0, pytest.approx(2 / 3), 0.0, 0.0]


def test_normal_against_normal_is_perfect(extractor):
    """Most studies are normal; a reward of 0 for them would teach inventing."""
    assert RanScoreReward(extractor)(["Normal."], ["No acute findings."]) == [1.0]


def test_errors_count_down(extractor):
    """One missed; two missed and "No Finding" invented."""
    reward = RanScoreReward(extractor, value="-errors")
    completions = [REFERENCE, "Left pleural effusion.", "Normal chest."]
    assert reward(completions, [REFERENCE] * 3) == [0.0, -1.0, -3.0]


def test_conversations_are_graded_by_their_last_message(extractor):
    """Trainers pass messages where the prompts are conversations."""
    parts = [{"type": "text", "text": REFERENCE}, {"type": "image", "image": None}]
    completions = [
        [{"role": "assistant", "content": REFERENCE}],
        [{"role": "assistant", "content": parts}],
        [
            {"role": "assistant", "content": "Normal chest."},
            {"role": "tool", "content": "-"},
            {"role": "assistant", "content": REFERENCE},
        ],
        [{"role": "assistant", "content": None}],
        [],
    ]
    found = RanScoreReward(extractor)(completions, [REFERENCE] * 5)
    assert found == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_references_may_be_a_column_of_the_data_set(extractor):
    """TRL passes every column by its name, and prompts and more besides."""
    columns = {"prompts": ["-"], "completion_ids": [[1]], "trainer_state": None}
    reward = RanScoreReward(extractor, column="findings")
    assert reward([REFERENCE], findings=[REFERENCE], **columns) == [1.0]
    usual = RanScoreReward(extractor)
    assert usual(completions=[REFERENCE], references=[REFERENCE], **columns) == [1.0]
    assert usual(completions=[REFERENCE], reference=[REFERENCE], **columns) == [1.0]


def test_missing_references_are_said(extractor):
    """With the columns that were passed."""
    with pytest.raises(ValueError, match=r"'reference' \(passed: 'prompts'\)"):
        RanScoreReward(extractor)([REFERENCE], prompts=["-"])


def test_what_is_undecided_has_no_reward(extractor):
    """None leaves it out of the advantage; 0 would punish what nobody could read."""
    german = "Kein Erguss und kein Infiltrat, das Herz ist nicht groß."
    reward = RanScoreReward(extractor)
    found = reward([german, REFERENCE, REFERENCE], [REFERENCE, None, " . "])
    assert found == [None, None, None]


def test_one_reference_per_completion_is_needed(extractor):
    """Rows may not be shifted against each other."""
    with pytest.raises(ValueError, match="got 1 for 2"):
        RanScoreReward(extractor)(["a", "b"], [REFERENCE])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"value": "bleu"}, "value must be one of f1, -errors"),
        ({"no_finding": "read"}, "needs given labels"),
        ({"uncertain": "maybe"}, "uncertain must be one of"),
    ],
)
def test_wrong_options_are_refused(option, message):
    """When it is made, not after an hour of training."""
    with pytest.raises(ValueError, match=message):
        RanScoreReward(**option)


def test_a_trainer_can_log_it_by_name():
    """TRL names rewards by ``__name__``."""
    assert RanScoreReward().__name__ == "ran_score"


def test_an_empty_batch_has_no_rewards(extractor):
    """The last batch of a data set may be."""
    assert RanScoreReward(extractor)([], []) == []


def test_each_text_is_read_once_in_a_process(extractor):
    """References and repeated completions cost nothing from the second time on."""
    texts = ["A chest tube on the left.", "Left pleural effusion with a chest tube."]
    RanScoreReward(extractor)([texts[0]] * 8, [texts[1]] * 8)
    again = extractor.read(texts, ["en", "en"])
    assert (again.asked, again.cached, again.answered) == (0, 2, 2)


def test_metric_has_the_usual_form(extractor):
    """Predictions and references by name, a dict back."""
    metric = RanScoreMetric(extractor, resamples=100)
    texts = [REFERENCE, "Normal chest.", "Pneumothorax."]
    found = metric.compute(predictions=texts, references=texts)
    assert found["ran_score"] == found["micro_f1"] == 1.0
    assert (found["n"], found["effective_labels"]) == (3, 4)
    assert found["signature"].startswith("ran|extractor@v7:")


def test_metric_refuses_lists_of_different_length(extractor):
    """They are joined by position."""
    with pytest.raises(ValueError, match="one reference per prediction"):
        RanScoreMetric(extractor).compute(predictions=["a"], references=["a", "b"])


def test_metric_opens_its_engine_once(workspace):
    """And takes it from its options, as `ran_score` does."""
    metric = RanScoreMetric(
        "extractor@v1", engine="rules", workspace=workspace, resamples=50
    )
    first = metric.compute(predictions=[REFERENCE], references=[REFERENCE])
    assert first == metric.compute(predictions=[REFERENCE], references=[REFERENCE])
    assert first["signature"].startswith("ran|extractor@v1:")


@pytest.mark.parametrize(
    ("completions", "references", "message"),
    [
        ("abc", ["a", "b", "c"], "completions: expected a list, got str"),
        (["a", "b", "c"], "abc", "references: expected a list, got str"),
        (["a"], [["b", "c"]], "reference 0: expected a text or a list of messages"),
        (["a", 5], ["b", "c"], "completion 1: expected a text .* got int"),
        ([{"content": "a"}], ["b"], "completion 0: expected a text .* got dict"),
    ],
)
def test_what_is_no_row_of_texts_is_refused(
    extractor, completions, references, message
):
    """A text is a sequence of texts too: each letter was graded on its own."""
    with pytest.raises(ValueError, match=message):
        RanScoreReward(extractor)(completions, references)


def test_what_is_not_there_says_nothing(extractor):
    """A call of a tool has no content, a table writes NaN, a stream is read once."""
    reward = RanScoreReward(extractor)
    calls = [{"role": "assistant", "tool_calls": []}]
    part = [{"role": "assistant", "content": [{"type": "text"}]}]
    assert reward([calls, part], [REFERENCE] * 2) == [0.0, 0.0]
    for missing in (None, float("nan"), pd.NA, pd.NaT):
        assert reward([REFERENCE], [missing]) == [None]
    assert reward(iter([REFERENCE]), iter([REFERENCE])) == [1.0]


def test_hedging_on_everything_does_not_pay(extractor):
    """It is wrong by default, as in Ran Score; under excl doubt is never wrong."""
    hedge = "Cannot exclude pneumothorax, pneumonia, edema, or a pleural effusion."
    copy, hedged = RanScoreReward(extractor)([REFERENCE, hedge], [REFERENCE] * 2)
    assert copy == 1 and hedged < 0.5
    assert RanScoreReward(extractor)([hedge], ["Small pleural effusion."]) == [0.0]
    lenient = RanScoreReward(extractor, uncertain="excl")
    assert lenient([hedge], ["Small pleural effusion."]) == [1.0]


def test_a_reward_is_the_score_of_its_case(extractor):
    """By the same reading of doubt, unless another is named."""
    texts = [REFERENCE, "Possible pneumonia. Small left pleural effusion."]
    for given in ({}, {"uncertain": "pos"}, {"uncertain": "neg"}):
        (reward,) = RanScoreReward(extractor, **given)(texts[1:], texts[:1])
        options = {"extractor": extractor, "resamples": 10, **given}
        result = ran_score(texts[:1], texts[1:], **options)
        assert reward == pytest.approx(result.cases["f1"].iloc[0])


def test_rewards_have_names_of_their_own(extractor):
    """Trainers log by name, and average what shares one."""
    names = [
        RanScoreReward(extractor, **options).__name__
        for options in ({}, {"value": "-errors"})
    ]
    assert names == ["ran_score", "ran_score_errors"]


def test_no_error_is_not_minus_zero(extractor):
    """Which a log would show."""
    (found,) = RanScoreReward(extractor, value="-errors")([REFERENCE], [REFERENCE])
    assert math.copysign(1, found) == 1


def test_a_named_column_goes_before_one_of_the_usual_name(extractor):
    """A data set may have both; a wrong name is an error, not another column."""
    reward = RanScoreReward(extractor, column="findings")
    columns = {"references": ["Pneumothorax."], "prompts": ["Report:"]}
    assert reward([REFERENCE], findings=[REFERENCE], **columns) == [1.0]
    with pytest.raises(ValueError, match="no column 'findings'"):
        reward([REFERENCE], **columns)
    assert reward([REFERENCE], [REFERENCE]) == [1.0]
    usual = RanScoreReward(extractor, column="references")
    assert usual([REFERENCE], prompts=["-"], references=[REFERENCE]) == [1.0]


def test_threads_that_ask_one_reward_take_turns(monkeypatch):
    """Asynchronous trainers do, for the same completions; each is read once."""
    asked = []

    def slow(*given):
        asked.append(given)
        time.sleep(0.1)
        return execute(*given)

    monkeypatch.setattr("loop.run.runner.execute", slow)
    reward = RanScoreReward("extractor@v1")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: reward([REFERENCE], [REFERENCE]), range(4)))
    assert found == [[1.0]] * 4
    assert len(asked) == 1


def test_what_a_tool_answers_is_not_the_models(extractor):
    """A conversation that ends there says nothing."""
    ended = [
        {"role": "assistant", "tool_calls": []},
        {"role": "tool", "content": REFERENCE},
    ]
    assert RanScoreReward(extractor)([ended], [REFERENCE]) == [0.0]


def test_metric_takes_pairs_as_they_come(extractor):
    """As evaluate's do; computing forgets them."""
    metric = RanScoreMetric(extractor, resamples=50)
    texts = [REFERENCE, "Normal chest.", "Pneumothorax."]
    whole = metric.compute(predictions=texts, references=texts[::-1])
    metric.add(prediction=texts[0], reference=texts[2])
    metric.add_batch(predictions=np.array(texts[1:2]), references=texts[1:2])
    assert metric.compute(predictions=texts[2:], references=texts[:1]) == whole
    with pytest.raises(DataError):
        metric.compute()
    metric.add(prediction="", reference="")
    with pytest.raises(DataError, match="no reference holds a word"):
        metric.compute()
    # Nothing that was added is lost to a failure.
    found = metric.compute(predictions=texts, references=texts[::-1])
    assert found["ran_score"] == whole["ran_score"]
    with pytest.raises(ValueError, match="got 2 for 1"):
        metric.add_batch(predictions=["a"], references=["b", "c"])


def test_a_used_reward_is_sent_to_another_process(extractor):
    """It opens its own engine there; an engine that is open here stays here."""
    reward = RanScoreReward("extractor@v1")
    metric = RanScoreMetric("extractor@v1", resamples=50)
    texts = [REFERENCE, "Pneumothorax."]
    scores = reward(texts, texts[::-1])
    found = metric.compute(predictions=texts, references=texts)
    reward, metric = pickle.loads(pickle.dumps((reward, metric)))
    assert reward(texts, texts[::-1]) == scores
    assert metric.compute(predictions=texts, references=texts) == found
    with pytest.raises(TypeError, match="name the version instead"):
        pickle.dumps(RanScoreReward(extractor))


def test_a_metric_refuses_at_once_what_it_cannot_compute(extractor):
    """Options when it is made; a single text, whose letters would be rows."""
    with pytest.raises(ValueError, match="uncertain must be one of"):
        RanScoreMetric(extractor, uncertain="maybe")
    with pytest.raises(ValueError, match="predictions: expected a list, got str"):
        RanScoreMetric(extractor).compute(predictions="abc", references=["a"])


def test_without_any_column_that_is_said(extractor):
    """Both usual names, or the one that was named."""
    with pytest.raises(ValueError, match=r"'references' or 'reference' \(passed: none"):
        RanScoreReward(extractor)([REFERENCE])
    named = RanScoreReward(extractor, column="findings")
    with pytest.raises(ValueError, match=r"'findings' \(passed: 'a', 'prompts'\)"):
        named([REFERENCE], prompts=["-"], a=[1])


def test_devices_decide_no_finding_by_the_policy(extractor):
    """A tube alone: normal but for it under chexpert, and not normal under ran."""
    tube = "Endotracheal tube in place."
    pair = ["Normal chest."], [tube]
    assert RanScoreReward(extractor)(*pair) == [0.0]
    lenient = RanScoreReward(extractor, no_finding="chexpert")
    assert lenient(*pair) == [pytest.approx(2 / 3)]


def test_a_metric_of_nothing_decided_has_no_number(extractor):
    """None, and no case; the signature says so."""
    german = "Kein Erguss und kein Infiltrat, das Herz ist nicht groß."
    metric = RanScoreMetric(extractor, resamples=20)
    found = metric.compute(predictions=[german], references=[REFERENCE])
    assert [found[name] for name in ("ran_score", "ran_score_low", "micro_f1")] == [
        None
    ] * 3
    assert (found["n"], found["effective_labels"]) == (0, 0)
    assert found["signature"].endswith("|L:0/21|n:0")


def test_a_metric_with_an_open_extractor_has_its_engine_already(extractor):
    """Another one beside it would be left aside in silence."""
    for option in ({"engine": "rules"}, {"workspace": None}):
        with pytest.raises(ValueError, match="was chosen when the extractor"):
            RanScoreMetric(extractor, **option)


def test_parts_of_a_message_are_joined_and_others_left_out(extractor):
    """Texts in their order; a message without content says nothing."""
    parts = [
        {"type": "text", "text": "Left pleural effusion."},
        {"type": "image", "text": "Pneumothorax."},
        {"type": "text", "text": "Cardiomegaly."},
    ]
    answers = [
        [{"role": "assistant", "content": parts}],
        ({"role": "assistant", "content": REFERENCE},),
        [{"role": "assistant", "content": ""}],
    ]
    found = RanScoreReward(extractor)(answers, [REFERENCE] * 3)
    assert found == [1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match=r"completion 1: .*got list\. Give each"):
        RanScoreReward(extractor)([REFERENCE, [{}, "x"]], [REFERENCE] * 2)
