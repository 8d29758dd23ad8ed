"""A version as a model receives it: what its tokens are counted with."""

from dataclasses import replace

from loop.core.paths import Workspace
from loop.review.revise.shown import count_change, find_engine_counter
from tests.review.revise.conftest import TINY


def test_tokens_are_counted_for_the_model_of_the_engine(tmp_path):
    """The remark names it where its tokenizer is not there; rules have none."""
    workspace = Workspace(tmp_path)
    named = [
        find_engine_counter(workspace, engine).remark
        for engine in ("openai:made-up@http://x/v1", "vllm:made-up", "rules")
    ]
    assert [("made-up" in remark) for remark in named] == [True, True, False]


def test_a_draft_that_cannot_be_rendered_has_no_tokens():
    """The change is not told; a 0 would read as a shorter prompt."""
    longer = replace(TINY, system=TINY.system + "Read with care.\n")
    found = count_change(TINY, longer)
    assert found.after > found.before > 0 and not found.exact
    assert count_change(TINY, replace(TINY, user="{{ nothing }}{{ text }}")) is None
    assert count_change(replace(TINY, user="{{ nothing }}{{ text }}"), TINY) is None
