"""How many requests may be under way: as many as make the server faster, not more."""

from __future__ import annotations

from loop.core.config import ServingSettings

_START = 16
"""Requests under way at the beginning."""

_WORTH = 1.1
"""Doubling must make the server this much faster, or the doubling ends."""

_FEWEST = 16
"""Answers from which a rate is worth comparing."""

_HOLDS = (1, 64)
"""Rounds to stay at a limit before trying more: at first, and after many failures."""


class ConcurrencyLimit:
    """The limit of requests under way; it learns from answers and push-backs.

    It doubles while that makes the server faster (slow start), then tries an eighth
    more from time to time and keeps it only where the rate rises in proportion; each
    success doubles the next step. A push-back (429, 503 or a timeout) halves it, at
    most once per round trip; after calm it doubles again up to half of where the
    trouble began. A fixed limit never changes.

    All times are seconds of one monotonic clock, given by the caller.
    """

    def __init__(self, serving: ServingSettings) -> None:
        fixed = serving.concurrency
        self.limit = (
            min(_START, serving.max_concurrency) if fixed == "adaptive" else fixed
        )
        self.highest = self.limit
        self._adaptive = fixed == "adaptive"
        self._most = serving.max_concurrency
        self._doubling = True
        self._trying_from = 0
        self._best = 0.0
        self._step = 0
        self._hold, self._held = _HOLDS[0], 0
        self._halved_at = float("-inf")
        self._calm = True
        self._double_to = serving.max_concurrency
        self._skip = self._done = 0
        self._since: float | None = None
        self._restart()

    def answered(self, now: float) -> None:
        """Learn that an answer came; grow at the end of a round if that pays."""
        if not self._adaptive:
            return
        if self._skip:
            # These were sent under the limit before.
            self._skip -= 1
            self._since = now
            return
        self._done += 1
        if self._done >= max(_FEWEST, 2 * self.limit):
            self._end_round(now)

    def pushed_back(self, sent: float, now: float) -> None:
        """Halve the limit, if the request was `sent` after it was last halved."""
        if not self._adaptive or sent < self._halved_at:
            return
        self._halved_at = now
        if self._calm:
            self._double_to = self.limit // 2
        self._calm = self._doubling = False
        self._trying_from = 0
        self._step = 0
        self._hold, self._held = _HOLDS[0], 0
        self._set(max(1, self.limit // 2))

    def starved(self) -> None:
        """Learn that there was nothing to send: the rate says nothing of the server."""
        if self._adaptive:
            self._restart()

    def _end_round(self, now: float) -> None:
        since = now if self._since is None else self._since
        rate = self._done / max(now - since, 1e-9)
        self._calm = True
        if self._doubling:
            self._end_doubling(rate)
        elif self._trying_from:
            self._end_trial(rate)
        else:
            self._best = rate
            self._held += 1
            if self.limit < self._double_to:
                self._double(rate)
            elif self._held >= self._hold:
                self._try_more()
        self._restart()

    def _double(self, rate: float) -> None:
        self._doubling = True
        self._best = rate
        self._trying_from = self.limit
        self._set(min(2 * self.limit, self._double_to))

    def _end_doubling(self, rate: float) -> None:
        pays = rate > self._best * _WORTH
        if pays and self.limit < self._double_to:
            self._double(rate)
            return
        if not pays and self._trying_from:
            self._set(self._trying_from)
        self._doubling = False
        self._double_to = self.limit
        self._trying_from = 0

    def _end_trial(self, rate: float) -> None:
        """Keep the larger limit if it brought at least half of its share."""
        before = self._trying_from
        self._trying_from = 0
        if rate > self._best * (1 + (self.limit / before - 1) / 2):
            self._best = rate
            self._hold = _HOLDS[0]
            self._step = min(2 * self._step, self.limit)
            self._try_more()
        else:
            self._step = 0
            self._hold = min(2 * self._hold, _HOLDS[1])
            self._held = 0
            self._set(before)

    def _try_more(self) -> None:
        self._held = 0
        if self.limit < self._most:
            self._trying_from = self.limit
            self._step = max(1, self._step, self.limit // 8)
            self._set(self.limit + self._step)

    def _set(self, limit: int) -> None:
        self.limit = min(limit, self._most)
        self.highest = max(self.highest, self.limit)
        self._restart()

    def _restart(self) -> None:
        """Begin a round: first what is under way must come in."""
        self._skip = self.limit
        self._done = 0
        self._since = None
