"""The colours of figures, as CSS custom properties with values for light and dark.

Hues are those of Okabe and Ito, which people with every kind of colour vision tell
apart; for light paper they are darkened until small text in them can be read. A
figure never says anything by colour alone.

References
----------
Okabe M, Ito K. Color universal design. 2008 (the eight-colour set).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LIGHT: Mapping[str, str] = MappingProxyType(
    {
        "paper": "#ffffff",
        "ink": "#17212b",
        "soft": "#55616e",
        "line": "#868f98",
        "grid": "#dfe4e9",
        "pass": "#00745a",
        "fail": "#b84700",
        "unsure": "#7d5a00",
        "accent": "#0072b2",
    }
)
"""Name to colour on light paper."""

DARK: Mapping[str, str] = MappingProxyType(
    {
        "paper": "#12181f",
        "ink": "#e8edf2",
        "soft": "#a9b4bf",
        "line": "#73808d",
        "grid": "#2b343e",
        "pass": "#2fc39a",
        "fail": "#f58a4b",
        "unsure": "#e6b23c",
        "accent": "#56b4e9",
    }
)
"""The same on dark paper."""

TEXT = ("ink", "soft", "pass", "fail", "unsure", "accent")
"""Colours that text is set in: contrast 4.5 to 1 at least."""

GRAPHICS = ("line",)
"""Colours of lines that carry meaning: contrast 3 to 1 at least."""


def ink(name: str) -> str:
    """Return the CSS of a colour: the page's own, or else the one for light paper.

    Raises
    ------
    KeyError
        There is no such colour.

    Examples
    --------
    >>> ink("pass")
    'var(--pass,#00745a)'
    """
    return f"var(--{name},{LIGHT[name]})"
