"""One thread for matrix products: on a busy machine several wait for each other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which matrix products run in the calling thread alone.

    The products of a bootstrap are many and small. Where other processes want the
    processor too, the threads of each product wait for the one that is held up, and
    all of it takes ten times as long; on an idle machine one thread loses a fifth.
    The setting is the process's, and is put back at the end.
    """
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits


@cache
def _controller() -> ThreadpoolController:
    """Return what sets the threads of the libraries that are loaded by now."""
    return ThreadpoolController()
