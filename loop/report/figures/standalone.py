"""A figure as a file of its own: colours of light paper, and the paper itself."""

from __future__ import annotations

import re

from loop.report.figures.palette import LIGHT

_PROPERTY = re.compile(r"var\(--[a-z]+,(#[0-9a-f]{6})\)")
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="[^"]*"')

_MARGIN = 16
"""Pixels of paper around the figure."""


def as_file(figure: str) -> str:
    """Return a figure of this package as the content of an ``.svg`` file.

    Programs for documents know no CSS properties, so every colour is spelled out;
    and they show a figure on whatever paper they have, so it brings its own.

    Raises
    ------
    ValueError
        It is not a figure of this package.
    """
    plain = _PROPERTY.sub(r"\1", figure)
    size = _SIZE.search(plain)
    if size is None:
        raise ValueError("this is not a figure: it has no size in pixels")
    wide, high = (float(one) + 2 * _MARGIN for one in size.groups())
    box = (
        f'width="{wide:g}" height="{high:g}" '
        f'viewBox="{-_MARGIN} {-_MARGIN} {wide:g} {high:g}"'
    )
    paper = (
        f'<rect x="{-_MARGIN}" y="{-_MARGIN}" width="{wide:g}" height="{high:g}" '
        f'fill="{LIGHT["paper"]}"/>'
    )
    plain = plain.replace(size[0], box, 1).replace("</desc>", f"</desc>{paper}", 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{plain}\n'
