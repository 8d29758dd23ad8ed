"""Every event passes here: who asks, whether they may, and what went wrong."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gradio as gr

from loop.core.errors import LoopError
from loop.core.ledger import Actor
from loop.people.users import Right, User
from loop.release.keys import signer_for
from loop.ui.desk import Desk
from loop.ui.faults import place_of
from loop.ui.show import plain

_LOG = logging.getLogger("loop.ui")

Handler = Callable[..., Any]

_UNFIT = (
    "a value or a kind of file came that this page does not offer, or not any more. "
    "Nothing was saved. Choose another one, or load the page again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Who asks for something, and on whose desk."""

    desk: Desk
    user: User
    actor: Actor
    """How the act stands in the ledger: the role is the one that permits it."""

    data: Mapping[str, Any]
    """What the browser says of the event. Untrusted, as are all values."""


@dataclass(slots=True)
class Wire:
    """Connects components with functions; each connection names the right it takes."""

    desk: Desk
    rights: dict[str, Right | None] = field(default_factory=dict)
    """Name of each connection to the right it asks for."""

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
            guard(self.desk, handler, right),
            inputs=list(inputs),
            outputs=list(outputs),
            api_name=name,
            api_visibility="undocumented",
            queue=False,
            **({"show_progress": "hidden"} | options),
        )


class QuietBlocks(gr.Blocks):
    """Gradio's front end, except that its log never gets what a visitor sent.

    Before and after a handler Gradio checks values itself. When one does not fit, it
    would print it, with a traceback: words of a search, or of a case.
    """

    async def preprocess_data(
        self, block_fn: Any, inputs: list[Any], *more: Any, **options: Any
    ) -> list[Any]:
        """Return the values of an event as its handler takes them.

        Raises
        ------
        gr.Error
            A file is named by its address elsewhere: Gradio would go and fetch it,
            before anything asks who wants it.
        """
        if _is_elsewhere(inputs):
            raise refused(_UNFIT)
        found: list[Any] = await super().preprocess_data(
            block_fn, inputs, *more, **options
        )
        return found

    async def process_api(self, *args: Any, **options: Any) -> dict[str, Any]:
        """Return what an event answers.

        Raises
        ------
        gr.Error
            Whatever went wrong; nothing is printed of it.
        """
        try:
            return await super().process_api(*args, **options)
        except gr.Error as error:
            if not error.print_exception:
                raise
            raise refused(_UNFIT) from None
        except Exception as error:  # noqa: BLE001  the boundary to the browser
            raise refused(_report(error), title="A fault in ranloop") from None


def _is_elsewhere(value: Any) -> bool:
    """Return whether `value` names a file that lies on another machine, anywhere."""
    if isinstance(value, list):
        return any(map(_is_elsewhere, value))
    if not isinstance(value, dict):
        return False
    path = str(value.get("path", "")).strip().lower()
    return path.startswith(("http:", "https:")) or _is_elsewhere(list(value.values()))


def guard(desk: Desk, handler: Handler, right: Right | None) -> Handler:
    """Return `handler` as Gradio calls it, refusing whoever lacks `right`.

    What goes wrong is told to the visitor in the words of the error. Of a bug they are
    told that there is one, and the log gets its place, never its values: those may be
    clinical text.
    """

    def guarded(request: gr.Request, event: gr.EventData, *values: Any) -> Any:
        try:
            return handler(_visit(desk, request, event, right), *values)
        except LoopError as error:
            raise refused(str(error)) from error
        except gr.Error:
            raise
        except Exception as error:  # noqa: BLE001  the boundary to the browser
            raise refused(_report(error), title="A fault in ranloop") from None

    return guarded


def _visit(
    desk: Desk, request: gr.Request, event: gr.EventData, right: Right | None
) -> Visit:
    """Return who asks, after checking that they may."""
    if right is None:
        user = desk.access.user_of(request)
        actor = Actor(name=user.name, role=user.roles[0].value)
    else:
        user = desk.access.require(request, right)
        signer = signer_for(desk.workspace, user.name)
        actor = replace(user.actor(right), signer=signer)
    data = getattr(event, "_data", None)
    known = data if isinstance(data, dict) else {}
    return Visit(desk=desk, user=user, actor=actor, data=known)


def refused(text: str, *, title: str = "Not done") -> gr.Error:
    """Return the message that a browser shows."""
    return gr.Error(plain(text), title=title, duration=20, print_exception=False)


def _report(error: Exception) -> str:
    """Log where a bug is, and return what the visitor is told."""
    _LOG.error("%s at %s", type(error).__name__, place_of(error))
    last = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"{type(error).__name__} in {last.name}, line {last.lineno}. What was saved "
        "before is safe. Try again; if it comes back, send this message to whoever "
        "runs ranloop here."
    )
