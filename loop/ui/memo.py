"""What is dear to work out, kept for as long as its key stays the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

Made = TypeVar("Made")


class Memo:
    """The last results of some functions; threads that want the same one wait for it.

    A key must name everything the result depends on: nothing is ever made stale.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._lock = Lock()
        self._slots: OrderedDict[Hashable, _MemoSlot] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what `make` returned for `key`, calling it at most once.

        An error of `make` is passed on and not kept.
        """
        with self._lock:
            slot = self._slots.setdefault(key, _MemoSlot())
            self._slots.move_to_end(key)
            while len(self._slots) > self._most:
                self._slots.popitem(last=False)
        with slot.lock:
            if not slot.made:
                slot.result = make()
                slot.made = True
        result: Made = slot.result
        return result


class _MemoSlot:
    """Room for one result."""

    __slots__ = ("lock", "made", "result")

    def __init__(self) -> None:
        self.lock = Lock()
        self.made = False
        self.result: Any = None
