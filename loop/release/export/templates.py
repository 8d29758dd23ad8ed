r"""Rendered prompts as Jinja templates that need nothing but the case.

Everything of ours is rendered already. What is left of Jinja's syntax in it, and what
Jinja would change (a carriage return, the line end at the end of a file), is written as
an expression, so that an environment with any white space settings gives the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from loop.prompts.render import Call

_SPECIAL = re.compile(r"\{(?=[{%#\r]|\n?\Z)|\r")


def call_files(call: Call, prefix: str) -> dict[str, bytes]:
    """Return the templates and the answer's schema of one call, by file name.

    Parameters
    ----------
    prefix
        Put before each file name: empty where there is one call.
    """
    system, user = call.frame.messages
    parts = [(None, user.content), *call.pieces]
    sources = {
        "system.jinja": template([(None, system.content)]),
        "user.jinja": template(
            [(name and f"{{{{ {name} }}}}", text) for name, text in parts]
        ),
        "schema.json": readable_json(call.frame.schema),
    }
    return {f"{prefix}{name}": text.encode("utf-8") for name, text in sources.items()}


def template(parts: Iterable[tuple[str | None, str]]) -> str:
    """Return a template from (expression before it, static text) pairs."""
    made = "".join((before or "") + escape(text) for before, text in parts)
    # Jinja drops a line end at the end of a file unless it is told to keep it.
    return made[:-1] + '{{ "\\n" }}' if made.endswith("\n") else made


def escape(text: str) -> str:
    """Return static text as template source that renders to it.

    Examples
    --------
    >>> escape("a {{ b }} {c}")
    'a {{ "{" }}{ b }} {c}'
    """
    return _SPECIAL.sub(lambda found: f"{{{{ {json.dumps(found[0])} }}}}", text)


def readable_json(value: object) -> str:
    """Return `value` as indented JSON, keys in their order: models answer in it."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
