"""Searches that reflect through llama.cpp's own server, with a tiny random model."""

import pytest

from loop.core.errors import EngineError
from loop.optimize import search
from loop.optimize.search import search_prompt
from loop.optimize.search_report import Optimizer
from loop.prompts.catalog import list_drafts
from tests.optimize.made_task import ACTOR, SYNONYMS
from tests.optimize.test_search import approve, request, searched
from tests.servers.process import serving

ENABLE = "`pip install 'ranloop[dev]'` enables the tests with llama.cpp"
pytest.importorskip("xllamacpp", reason=ENABLE)
pytest.importorskip("gguf", reason=ENABLE)
pytest.importorskip("tokenizers", reason=ENABLE)

pytestmark = [pytest.mark.external, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Run the server once; return its URL."""
    from tests.servers.tiny_gguf import write_model

    model = write_model(tmp_path_factory.mktemp("model") / "tiny.gguf")
    with serving("tests.servers.llama_server", model) as url:
        yield url


@pytest.mark.parametrize("optimizer", [Optimizer.GEPA, Optimizer.MIPRO])
def test_a_model_that_knows_nothing_finds_nothing(
    improvable, server, monkeypatch, optimizer
):
    """What it writes is refused or cut off, and nothing is called better."""
    monkeypatch.setattr(search, "REFLECTION_TOKENS", 48)
    asked = request(optimizer, reflect=f"openai:tiny@{server}", budget=60, splits=1)
    try:
        result = search_prompt(improvable, asked, ACTOR)
    except EngineError as error:
        assert "gave no answer" in str(error)
        assert not searched(improvable)
    else:
        assert not result.better
        effort = result.findings.effort
        assert sum(dict(effort.refused).values()) == effort.proposed
    assert not list_drafts(improvable, "tiny")


@pytest.mark.parametrize("optimizer", [Optimizer.NEAREST, Optimizer.BOOTSTRAP])
def test_a_model_that_answers_by_chance_is_improved_by_nothing(
    improvable, server, optimizer
):
    """Exemplars are tried with it as with `rules`; the search is read again after."""
    approve(improvable, *SYNONYMS)
    engine = f"openai:tiny@{server}"
    asked = request(optimizer, engine=engine, labels=(), splits=1, study=True)
    result = search_prompt(improvable, asked, ACTOR)
    assert result.findings.candidates > 0
    assert not result.better
    assert search_prompt(improvable, asked, ACTOR).words == result.words
