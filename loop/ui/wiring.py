"""Every event passes here: who asks, whether they may, and what went wrong."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import gradio as gr

from loop.core.errors import DataError, LoopError
from loop.core.ledger import Actor
from loop.core.people.users import Right, User
from loop.release.keys import signer_for
from loop.ui.context import AppContext
from loop.ui.error_log import log_bug
from loop.ui.html import plain

_LOG = logging.getLogger("loop.ui")

Handler = Callable[..., Any]

_SCALARS = (str, bool, int, float)
_UNCHANGED = gr.skip()
"""What a handler returns for an output that stays as it is."""

_UNFIT = (
    "a value or a kind of file came that this page does not offer, or not any more. "
    "Nothing was saved. Choose another one, or load the page again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Who asks for something, and in which workbench."""

    context: AppContext
    user: User
    actor: Actor
    """How the act stands in the ledger: the role is the one that permits it."""

    data: Mapping[str, Any]
    """What the browser says of the event. Untrusted, as are all values."""

    session: str = ""
    """Id of the session, as `Access.session_id` has it: uploads belong to it."""


@dataclass(slots=True)
class EventRegistry:
    """Connects components with functions; each connection names the right it takes."""

    context: AppContext
    rights: dict[str, Right | None] = field(default_factory=dict)
    """Name of each connection to the right it asks for."""

    def admit(self, name: object, request: Any) -> None:
        """Let an event pass if its sender may send it, before its values are touched.

        Parameters
        ----------
        name
            Of the connection; one that was not made with `on` is open to nobody.

        Raises
        ------
        PermissionRefused
            None of their roles grants the right, or nobody is signed in.
        DataError
            There is no such connection.
        """
        if not isinstance(name, str) or name not in self.rights:
            raise DataError("there is no such function. Load the page again.")
        right, access = self.rights[name], self.context.access
        if right is None:
            access.user_of(request)
        else:
            access.require(request, right)

    def on(
        self,
        listener: Callable[..., Any],
        handler: Handler,
        *,
        right: Right | None,
        name: str,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        **options: Any,
    ) -> Any:
        """Call ``handler(visit, *inputs)`` on an event, if the visitor has `right`.

        Without a `right` it is open to everyone who is signed in.

        Parameters
        ----------
        options
            Further options of Gradio's listener, for example `js`.

        Returns
        -------
        Any
            Gradio's dependency, for ``.then`` and ``.success``.

        Raises
        ------
        ValueError
            Another connection has this name.
        """
        if name in self.rights:
            raise ValueError(f"two connections are called {name!r}")
        self.rights[name] = right
        return listener(
            guard(self.context, handler, right),
            inputs=list(inputs),
            outputs=list(outputs),
            api_name=name,
            api_visibility="undocumented",
            queue=False,
            **({"show_progress": "hidden"} | options),
        )


class GuardedBlocks(gr.Blocks):
    """Gradio's front end, which asks for the right before it looks at a value.

    By itself Gradio prepares the values of an event before it calls the handler: a
    value in the form of a file is copied from the server's own disk, or fetched from
    another machine, whoever sent it. And what does not fit it prints, with a
    traceback: words of a search, or of a case.
    """

    def __init__(self, registry: EventRegistry, **options: Any) -> None:
        super().__init__(**options)
        self._registry = registry
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def process_api(
        self,
        block_fn: Any,
        inputs: list[Any],
        state: Any = None,
        request: Any = None,
        iterator: Any = None,
        session_hash: str | None = None,
        *rest: Any,
        **options: Any,
    ) -> dict[str, Any]:
        """Return what an event answers.

        Raises
        ------
        gr.Error
            Whoever asks lacks the right, a value is none that a form of ours sends, or
            whatever else went wrong; nothing is printed of it.
        """
        function = self.fns.get(block_fn) if isinstance(block_fn, int) else block_fn
        try:
            self._registry.admit(getattr(function, "api_name", None), request)
            if not all(map(_is_plain, inputs)):
                raise refused(_UNFIT)
            async with self._turn(function, session_hash):
                answer: dict[str, Any] = await super().process_api(
                    block_fn,
                    inputs,
                    state,
                    request,
                    iterator,
                    session_hash,
                    *rest,
                    **options,
                )
            return answer | {"data": self._told(function, answer["data"])}
        except LoopError as error:
            raise refused(str(error)) from None
        except gr.Error as error:
            if not error.print_exception:
                raise
            raise refused(_UNFIT) from None
        except Exception as error:  # noqa: BLE001  the boundary to the browser
            raise refused(_report(error), title="A fault in ranloop") from None

    def _turn(
        self, function: Any, tab: str | None
    ) -> AbstractAsyncContextManager[None]:
        """Return what an event waits for: those of its tab that read the same state.

        Two that both begin where the tab is would each lead on from there, and the
        tab would show the one and hold the other.
        """
        if tab is None or not any(one.stateful for one in function.inputs):
            return nullcontext()
        return self._turns[tab]

    def _told(self, function: Any, shown: list[Any]) -> list[Any]:
        """Return what each output shows, without where the workspace lies.

        Errors name files, in panels of HTML. What people type is left as it is.
        """
        return [
            _without_root(self._registry.context, value)
            if isinstance(one, gr.HTML)
            else value
            for one, value in zip(function.outputs, shown, strict=True)
        ]

    def forget(self, tab: str) -> None:
        """Drop what is kept for a browser tab, as Gradio's copy of every component."""
        self._turns.pop(tab, None)
        self.state_holder.session_data.pop(tab, None)

    async def postprocess_data(
        self, block_fn: Any, predictions: Any, state: Any
    ) -> list[Any]:
        """Return what each output shows.

        An output that stays as it is costs nothing: Gradio would rebuild the component,
        which on a page with many of them takes longer than the handler.
        """
        outputs = block_fn.outputs
        whole = isinstance(predictions, list | tuple) and len(predictions) == len(
            outputs
        )
        if not whole or len(outputs) < 2:
            made: list[Any] = await super().postprocess_data(
                block_fn, predictions, state
            )
            return made
        changed = [
            number
            for number, (block, value) in enumerate(
                zip(outputs, predictions, strict=True)
            )
            if block.stateful or not (isinstance(value, dict) and value == _UNCHANGED)
        ]
        shown: list[Any] = [dict(_UNCHANGED) for _ in outputs]
        if changed:
            part = copy(block_fn)
            part.outputs = [outputs[number] for number in changed]
            values = [predictions[number] for number in changed]
            # Gradio takes the value of a single output bare.
            given = values[0] if len(values) == 1 else values
            made = await super().postprocess_data(part, given, state)
            for number, value in zip(changed, made, strict=True):
                shown[number] = value
        return shown


def _without_root(context: AppContext, shown: Any) -> Any:
    """Return a text, or an update that has one, with paths from the workspace on."""
    if isinstance(shown, dict):
        return {key: _without_root(context, value) for key, value in shown.items()}
    return context.without_root(shown) if isinstance(shown, str) else shown


def _is_plain(value: Any) -> bool:
    """Return whether a form of ours sends it: a text, a number, or a list of them.

    A file is none: files have a way in of their own, see `loop.ui.uploads`.
    """
    if isinstance(value, list):
        return all(one is None or isinstance(one, _SCALARS) for one in value)
    return value is None or isinstance(value, _SCALARS)


def guard(context: AppContext, handler: Handler, right: Right | None) -> Handler:
    """Return `handler` as Gradio calls it, refusing whoever lacks `right`.

    What goes wrong is told to the visitor in the words of the error. Of a bug they are
    told that there is one, and the log gets its place, never its values: those may be
    clinical text.
    """

    def guarded(request: gr.Request, event: gr.EventData, *values: Any) -> Any:
        try:
            return handler(_visit(context, request, event, right), *values)
        except LoopError as error:
            raise refused(context.without_root(str(error))) from error
        except gr.Error:
            raise
        except Exception as error:  # noqa: BLE001  the boundary to the browser
            raise refused(_report(error), title="A fault in ranloop") from None

    return guarded


def _visit(
    context: AppContext, request: gr.Request, event: gr.EventData, right: Right | None
) -> Visit:
    """Return who asks, after checking that they may."""
    if right is None:
        user = context.access.user_of(request)
        actor = Actor(name=user.name, role=user.roles[0].value)
    else:
        user = context.access.require(request, right)
        signer = signer_for(context.workspace, user.name)
        actor = replace(user.actor(right), signer=signer)
    data = getattr(event, "_data", None)
    known = data if isinstance(data, dict) else {}
    session = context.access.session_id(request)
    return Visit(context=context, user=user, actor=actor, data=known, session=session)


def refused(text: str, *, title: str = "Not done") -> gr.Error:
    """Return the message that a browser shows."""
    return gr.Error(plain(text), title=title, duration=20, print_exception=False)


def _report(error: Exception) -> str:
    """Log where a bug is, and return what the visitor is told."""
    log_bug(_LOG, error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"{type(error).__name__} in {last.name}, line {last.lineno}. What was saved "
        "before is safe. Try again; if it comes back, send this message to whoever "
        "runs ranloop here."
    )
