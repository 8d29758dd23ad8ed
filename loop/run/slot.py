"""One item on its way to its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loop.core.records import Field, Item, Prompt, Status

ANSWERED, UNPARSED, FAILED = 0, 1, 2
STATUS = (Status.ANSWERED, Status.UNPARSED, Status.ENGINE_FAILED)
"""Statuses from best to worst: an item takes the worst of its calls."""


class Slot:
    """What the calls of one item have brought so far."""

    __slots__ = (
        "fields",
        "item",
        "keys",
        "left",
        "order",
        "problems",
        "repairs",
        "seq",
        "status",
    )

    def __init__(self, seq: int, item: Item, prompts: Sequence[Prompt]) -> None:
        self.seq = seq
        self.item = item
        self.left = len(prompts)
        self.order: tuple[str, ...] = ()
        if self.left > 1:
            self.order = tuple(name for one in prompts for name in one.frame.fields)
        self.fields: Mapping[str, Field] = {}
        self.status = ANSWERED
        # Keys of the calls, in the order of the plan.
        self.keys = b""

        self.repairs: tuple[str, ...] = ()
        self.problems: tuple[str, ...] = ()

    def spoil(self, status: int, prompt: Prompt, problem: str) -> None:
        """Record that one call did not give fields."""
        self.status = max(self.status, status)
        where = f"{prompt.frame.call}: " if self.order else ""
        self.problems = (*self.problems, where + problem)

    def ordered(self) -> Mapping[str, Field]:
        """Return the fields in the order of the plan, however the calls ended."""
        if not self.order:
            return self.fields
        return {name: self.fields[name] for name in self.order if name in self.fields}
