"""What a batch must show before any of its answers is taken."""

from pathlib import Path
from random import Random

import pytest

from loop.core.config import VllmSettings
from loop.core.errors import EngineError
from loop.core.records import Completion
from loop.engines.base import Settings
from loop.engines.openai.client import Endpoint
from loop.engines.openai.probe import Contradiction
from loop.engines.vllm.batch import BatchChecks, BatchResponse

ENDPOINT = Endpoint(url="http://127.0.0.1/v1", model="m", serving=VllmSettings())


@pytest.fixture
def checks():
    """Return checks whose lines were handed over."""
    made = BatchChecks(ENDPOINT, Settings(labels=Path("labels")), Random(7))
    for line in made.lines():
        made.await_line(line)
    return made


def result(name, text, finish="stop"):
    """Return one answer of the runner."""
    return BatchResponse(f"check-{name}", Completion(text, finish), 200)


def allowed():
    """Return the one answer that the schema of these checks allows."""
    (name, value), *_ = (
        (key, one["enum"][0])
        for key, one in Contradiction(Random(7)).schema["properties"].items()
    )
    return f'{{"{name}":"{value}"}}'


def test_a_batch_that_enforces_the_schema_passes(checks):
    """Both checks are there and the schema won."""
    checks.settle([result("yes", "Yes"), result("schema", allowed())])


@pytest.mark.parametrize("left", ["yes", "schema"])
def test_a_check_that_does_not_come_back_stops_the_batch(checks, left):
    """Its answers might have been made without any schema."""
    with pytest.raises(EngineError, match=f"nothing for check-(?!{left})"):
        checks.settle([result(left, allowed())])


@pytest.mark.parametrize(
    ("text", "finish"),
    [('{"answer":"x"}', "stop"), ("", "length"), ("<think>hm", "length")],
)
def test_an_answer_that_shows_nothing_is_no_proof(checks, text, finish):
    """Nothing at all begins every valid answer, and proves none."""
    with pytest.raises(EngineError, match="does not enforce"):
        checks.settle([result("yes", "Yes"), result("schema", text, finish)])


def test_a_later_chunk_awaits_no_probe(checks):
    """The probe goes before the first chunk only."""
    checks.settle([result("yes", "Yes"), result("schema", allowed())])
    checks.settle([])
