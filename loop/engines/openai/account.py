"""The account of what was sent: every request ends in exactly one of its columns."""

from __future__ import annotations

from collections import Counter

from loop.core.records import Completion


class Account:
    """Counts requests: each is answered, sent again, or the last of a failed prompt.

    ``requests == answered + sum(retried) + sum(failed)`` whenever none is under way.
    The probe's requests are not counted.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.answered = 0
        self.retried: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._cached_tokens = 0

    def add_answer(self, completion: Completion) -> None:
        """Count one answer and the tokens the server says it took."""
        self.answered += 1
        self._prompt_tokens += completion.prompt_tokens or 0
        self._completion_tokens += completion.completion_tokens or 0
        self._cached_tokens += completion.cached_tokens or 0

    def settle(self) -> None:
        """Count what was under way when everything stopped."""
        ended = self.answered + self.retried.total() + self.failed.total()
        if self.requests > ended:
            self.failed["stopped"] += self.requests - ended

    def as_data(self) -> dict[str, object]:
        """Return the counts as JSON data."""
        return {
            "requests": self.requests,
            "answered": self.answered,
            "retried": dict(sorted(self.retried.items())),
            "failed": dict(sorted(self.failed.items())),
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._completion_tokens,
            "cached_tokens": self._cached_tokens,
        }
