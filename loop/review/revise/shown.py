"""A prompt version as a model receives it, and how many tokens that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from loop.core.config import read_config
from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.core.records import Item, Message
from loop.engines.base import split_name
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.prompts.version import PromptVersion
from loop.run.tokens import TokenCounter, find_counter

PLACEHOLDER = "[{name} of the case]"
"""What stands where an input of the case goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """One call of a version, with a placeholder where the case goes."""

    name: str
    """``"joint"`` or a label id."""

    messages: tuple[Message, ...]
    tokens: int
    """Of the static text: without the case and the marks of a chat template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Every call of a version as it is sent."""

    ref: str
    calls: tuple[ShownCall, ...]
    exact: bool
    """Whether the tokens were counted with the model's own tokenizer."""

    remark: str
    """How they were counted, in words."""

    @property
    def tokens(self) -> int:
        """Static tokens of all calls of one case."""
        return sum(call.tokens for call in self.calls)


class TokenChange(NamedTuple):
    """Static tokens of all calls of one case, before and after."""

    before: int
    after: int
    exact: bool
    """Whether counted with the model's own tokenizer; else estimated."""

    remark: str


def find_engine_counter(workspace: Workspace, engine: str) -> TokenCounter:
    """Return the best way to count the tokens of what `engine` is asked.

    Raises
    ------
    DataError
        The settings of this machine are malformed.
    """
    scheme, _, rest = engine.partition(":")
    if scheme not in ("openai", "vllm"):
        return find_counter(None)
    engines = read_config(workspace).engines
    serving = engines.vllm if scheme == "vllm" else engines.openai
    return find_counter(split_name(rest).model, serving.revision)


def render_shown(version: PromptVersion, counter: TokenCounter | None = None) -> Shown:
    """Return the messages of `version` for a case that is not there.

    Parameters
    ----------
    counter
        How tokens are counted; None for an estimate.

    Raises
    ------
    DataError
        A template cannot be rendered, or the version asks for nothing.
    """
    counter = counter or find_counter(None)
    plan = plan_prompts(version, get_contract(version.contract).schema)
    marks = {name: PLACEHOLDER.format(name=name) for name in version.inputs}
    item = Item(id="placeholder", variables=marks)
    calls = tuple(
        ShownCall(
            name=call.frame.call,
            messages=call.prompt(item).messages,
            tokens=sum(counter.count(one.content) for one in call.frame.messages)
            + sum(counter.count(after) for _, after in call.pieces),
        )
        for call in plan.calls
    )
    return Shown(
        ref=version.ref, calls=calls, exact=counter.exact, remark=counter.remark
    )


def count_change(
    before: PromptVersion, after: PromptVersion, counter: TokenCounter | None = None
) -> TokenChange | None:
    """Return how many static tokens each takes; None where one cannot be rendered."""
    try:
        old, new = render_shown(before, counter), render_shown(after, counter)
    except DataError:
        return None
    return TokenChange(old.tokens, new.tokens, old.exact, old.remark)
