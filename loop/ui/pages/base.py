"""What every page gives to the workbench that assembles them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from loop.core.people.users import Right, User

SAME: Any = gr.skip()
"""Leaves a component as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page: its tab, and how it is shown afresh."""

    name: str
    """Id of its tab, ``"overview"``."""

    right: Right | None
    """What a visitor needs to see it at all; None is open to all who signed in."""

    tab: gr.Tab
    refresh: Callable[..., Any]
    """Called as ``refresh(visit, prompt, cohort, *inputs)``; returns the outputs."""

    inputs: Sequence[Any] = ()
    """Components it reads besides prompt and cohort."""

    outputs: Sequence[Any] = ()
    links: Sequence[gr.HTML] = ()
    """Panels whose acts name a page, and with it perhaps a label and a case."""

    def open_to(self, user: User) -> bool:
        """Return whether `user` sees the page."""
        return self.right is None or user.may(self.right)
