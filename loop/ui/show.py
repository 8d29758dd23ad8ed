"""Page fragments from templates: every text is escaped, whatever it holds."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup, escape

from loop.core.safe_text import printable
from loop.documents import numbers

_FOLDER = Path(__file__).parent / "templates"


def show(template: str, **variables: object) -> str:
    """Return the HTML of a template under ``loop/ui/templates``.

    Markup, Markdown and template syntax in `variables` stay text; control and
    text-direction characters are spelled out.
    """
    return printable(_environment().get_template(template).render(**variables))


def notice(text: str, *, kind: str = "empty", title: str = "") -> str:
    """Return a designed empty, waiting or error state.

    Parameters
    ----------
    kind
        ``"empty"``, ``"wait"``, ``"error"`` or ``"good"``.
    """
    return show("notice.html.jinja", text=text, kind=kind, title=title)


def plain(text: str) -> str:
    """Return `text` as HTML that shows exactly it, for messages."""
    return str(escape(printable(text)))


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        share=numbers.share,
        signed=numbers.signed,
        interval=numbers.interval,
        signed_interval=numbers.signed_interval,
        percent=numbers.percent,
        count=numbers.count,
        listed=numbers.listed,
        when=_when,
        local=_local,
        words=_words,
        drawing=Markup,
    )
    return environment


def _when(time: str) -> str:
    """Return an ISO time as ``2026-11-22 04:27``, UTC."""
    return time[:16].replace("T", " ")


def _local(time: str) -> Markup:
    """Return an ISO time as a ``<time>``, which the page shows in the reader's zone."""
    if not time:
        return Markup("")
    stamp = time if time.endswith("Z") else f"{time[:19]}Z"
    return Markup('<time datetime="{}">{} UTC</time>').format(stamp, _when(time))


def _words(name: object) -> str:
    """Return an id such as ``label_boundary`` as words."""
    return str(name).replace("_", " ")
