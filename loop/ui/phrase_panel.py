"""What marked words could become, as a panel of a page: counts, and their cases."""

from __future__ import annotations

from loop.engines.base import masked
from loop.review.revise.phrases import NOT_KNOWN, PhraseTryout
from loop.ui.html import show

MOST_IDS = 40
"""Cases of one part that are listed; the command line lists all."""


def render_phrase(
    found: PhraseTryout | None, *, turn: str, name: str = "", trouble: str = ""
) -> str:
    """Return the try of a phrase as HTML, or the button that asks for one.

    Parameters
    ----------
    turn
        Id of the button that asks; its events are ``open``, ``fill`` and ``close``.
    name
        Of the label, as published.
    trouble
        Why nothing is shown.
    """
    return show(
        "phrase.html.jinja",
        found=found,
        turn=turn,
        name=name,
        most=MOST_IDS,
        not_known=NOT_KNOWN,
        engine=masked(found.engine) if found else "",
        trouble=trouble,
    )
