"""Counts what a run did: how its items ended and why, and the tokens it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from loop.core.records import Completion

MAX_PROBLEMS = 50
"""Different problems told apart; a run with more has one cause, or none to name."""

MAX_CASES = 5
"""Case ids kept as examples of one problem."""

_OTHER = "other problems; see the outcomes"


class Usage(NamedTuple):
    """Tokens of some answers, as the server counted them."""

    answers: int = 0
    """Answers whose tokens are known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """How many of the prompt tokens came from the server's prefix cache."""


class Problem(NamedTuple):
    """Why some items have no answer."""

    text: str
    """Never case text."""

    cases: int
    examples: tuple[str, ...]
    """Ids of the first cases."""


@dataclass(slots=True)
class UsageCount:
    """Adds up the tokens of completions."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    def add(self, completion: Completion) -> None:
        """Count `completion`, if its engine counted tokens."""
        if completion.prompt_tokens is None and completion.completion_tokens is None:
            return
        self.answers += 1
        self.prompt_tokens += completion.prompt_tokens or 0
        self.completion_tokens += completion.completion_tokens or 0
        self.cached_tokens += completion.cached_tokens or 0

    @property
    def total(self) -> Usage:
        """What was added up so far."""
        return Usage(
            self.answers,
            self.prompt_tokens,
            self.completion_tokens,
            self.cached_tokens,
        )


class ProblemCount:
    """Counts the items of each problem and keeps a few of their ids."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, tuple[str, ...]]] = {}

    def add(self, text: str, item_id: str) -> None:
        """Count one item that ended with the problem `text`."""
        if text not in self._found and len(self._found) >= MAX_PROBLEMS:
            text = _OTHER
        count, examples = self._found.get(text, (0, ()))
        if len(examples) < MAX_CASES:
            examples = (*examples, item_id)
        self._found[text] = (count + 1, examples)

    @property
    def total(self) -> tuple[Problem, ...]:
        """The problems, the most frequent first."""
        problems = [Problem(text, *found) for text, found in self._found.items()]
        return tuple(sorted(problems, key=lambda one: (-one.cases, one.text)))
