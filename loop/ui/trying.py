"""Tries that ask a server: in the background, heard meanwhile, stopped by a person."""

from __future__ import annotations

import time
from collections.abc import Callable

import gradio as gr

from loop.run.aside import Heard
from loop.run.asking import EngineOptions, HeldEngine, hold_engine
from loop.ui.background import Job, JobProgress
from loop.ui.tryout_panel import Found
from loop.ui.wiring import Visit

MOST_DRAWS = 20
"""Draws of one try in the workbench; the command line takes more."""

_STOPPING_S = 3
"""Seconds that a new try waits for the one before it, which was stopped, to end."""

CLOCK_S = 1
"""Seconds between two looks at what a server has answered."""


Listener = Callable[[Heard], None]

Ask = Callable[[HeldEngine, Listener], Found]
"""Tries something with an engine that is held; told what a server writes meanwhile."""


def start_try(visit: Visit, token: str, engine: str, ask: Ask, *, free: bool) -> None:
    """Try in the background, so that nobody waits and the person can stop it.

    Parameters
    ----------
    token
        Of what is tried, within the browser session.
    free
        Whether the engine may answer without a schema.

    Raises
    ------
    ConflictError
        The same is being tried in this session, and does not stop at once.
    """
    context, key = visit.context, try_key(visit, token)
    until = time.monotonic() + _STOPPING_S
    while (before := context.jobs.progress_of(key)) and not before.finished:
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    asking = EngineOptions(allow_unconstrained=free)

    def work(job: Job) -> Found:
        with hold_engine(context.workspace, engine, asking) as held:
            job.on_stop = held.stop
            return ask(held, job.hear)

    context.jobs.start(key, visit.actor.name, work)


def take_try(visit: Visit, token: str) -> JobProgress | None:
    """Return how far a try is; one that has ended is forgotten."""
    jobs, key = visit.context.jobs, try_key(visit, token)
    progress = jobs.progress_of(key)
    if progress and progress.finished:
        jobs.forget(key)
    return progress


def stop_tries(visit: Visit, token: str) -> None:
    """Stop the tries of a browser session, and forget what one of them has shown."""
    jobs = visit.context.jobs
    jobs.stop(try_key(visit, ""))
    jobs.forget(try_key(visit, token))


def try_key(visit: Visit, token: str) -> str:
    """Return the key of a try, or the beginning of those of one browser session."""
    return f"try {visit.session} {visit.actor.name} {token}"


def clock(*, active: bool) -> gr.Timer:
    """Return the clock that asks how far a try is, going or standing."""
    return gr.Timer(CLOCK_S, active=active)
