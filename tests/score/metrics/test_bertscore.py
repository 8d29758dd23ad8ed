"""BERTScore is that of its authors, with an encoder from a folder and no network."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from loop.score.metrics.base import MetricOptions
from loop.score.metrics.registry import METRICS
from tests.score.metrics.scenes import make_side
from tests.torch_process import run_with_torch

MAKER = Path(__file__).with_name("bertscore_parity.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return what the process with torch says."""
    return run_with_torch(MAKER, tmp_path_factory.mktemp("m"))


@pytest.mark.external
@pytest.mark.slow
def test_the_numbers_are_those_of_the_authors_package(found):
    """Precision, recall and F of 60 pairs, some cut, in every layer."""
    assert found["apart"] < 1e-6


@pytest.mark.external
@pytest.mark.slow
def test_a_copy_scores_one_and_silence_zero(found):
    """The third candidate is full stops: no word."""
    copy, empty, stops, other = found["per_case"]
    assert copy == pytest.approx(1)
    assert (empty, stops) == (0, 0)
    assert found["value"] == pytest.approx((copy + other) / 4)


@pytest.mark.external
@pytest.mark.slow
def test_what_else_is_scored_changes_no_number(found):
    """Padding of a batch must not be seen."""
    assert found["alone"][0] == pytest.approx(found["per_case"][3], abs=1e-6)


@pytest.mark.external
@pytest.mark.slow
def test_the_signature_names_model_and_layer_and_what_was_not_done(found):
    """Rescaled and plain values look alike and mean different things."""
    parts = found["signature"].split("|")
    assert parts[:2] == ["bertscore", "F"]
    assert parts[3:6] == ["layer:3/3", "idf:no", "rescale:no"]
    assert parts[2].startswith("model:")
    assert parts[-1] == "n:4"


@pytest.mark.external
@pytest.mark.slow
def test_a_text_beyond_the_encoder_is_cut_and_counted(found):
    """Also where the tokenizer says no limit, at which the authors' package fails."""
    values, notes = found["long"]
    assert 0 < values[0] < 1
    assert notes == [
        "1 of 1 cases have a text of 62 tokens or more: the rest of it is not read"
    ]


@pytest.mark.external
@pytest.mark.slow
def test_what_is_no_encoder_is_refused_with_the_way_out(found):
    """The metric says so and the others go on."""
    assert found["unnamed"].startswith("no encoder is named. Give the folder")
    assert found["empty"].startswith("DIR has no config.json. Name the folder")
    assert found["unavailable"] == found["empty"]
    assert found["layer"] == "DIR has layers 0 to 3, not 4. Name one."


def test_without_its_extra_or_an_encoder_it_says_what_to_do():
    """Nothing is installed or downloaded on its own."""
    told = METRICS["bertscore"].score(make_side(["a"], ["a"]), MetricOptions())
    assert told.metric == "bertscore"
    if find_spec("torch") is None:
        assert "[bertscore]'" in told.reason
    else:
        assert "Give the folder" in told.reason or "[bertscore]" in told.reason
