"""A trace in the workbench: everything of one case of a run, as a panel of a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from loop.core.records import Span
from loop.core.safe_text import exposed
from loop.engines.rules.engine import RulesMention
from loop.run.trace import CallTrace, Trace
from loop.ui.html import show

_LONGEST = 20_000
"""Characters of one text that are shown; the command line shows all of it."""


class TracedCall(NamedTuple):
    """One call with its texts as they are shown."""

    call: CallTrace
    schema: str
    mentions: tuple[RulesMention, ...]
    implied: Mapping[str, str]


def render_trace(trace: Trace | None, *, turn: str, label: str = "") -> str:
    """Return a trace as HTML, or the button that asks for one.

    All of a model's and a case's words are inert: escaped, with characters that act or
    have no shape spelled out.

    Parameters
    ----------
    turn
        Id of the button that opens and folds it; its events are ``open`` and ``close``.
    label
        The label to tell of first, with the mentions that `rules` found of it; empty
        for all.
    """
    calls = [] if trace is None else [_shown(one, label) for one in trace.calls]
    fields = {} if trace is None else trace.outcome.fields
    first = {name: one for name, one in fields.items() if name == label}
    rest = {name: one for name, one in fields.items() if name != label}
    bare: dict[str, list[str]] = {}
    for name, one in rest.items():
        if not (one.spans or one.entries):
            bare.setdefault(str(one.value), []).append(name)
    told = {name: one for name, one in rest.items() if one.spans or one.entries}
    said = {**first, **told}
    return show(
        "trace.html.jinja",
        trace=trace,
        turn=turn,
        label=label,
        calls=calls,
        said=said,
        bare=bare,
        quote=_quote,
        cut=_cut,
        identity=_flat({} if trace is None else trace.identity),
    )


def _shown(call: CallTrace, label: str) -> TracedCall:
    schema = json.dumps(call.schema, ensure_ascii=False, indent=1)
    rules = call.rules
    if rules is None:
        return TracedCall(call, schema, (), {})
    known = [one for one in rules.mentions if label in ("", one.label)]
    implied = {to: by for to, by in rules.implied.items() if label in ("", to)}
    return TracedCall(call, schema, tuple(known), implied)


def _flat(data: Mapping[str, object], before: str = "") -> list[tuple[str, str]]:
    """Return the entries of nested data, each with the names on the way to it."""
    entries: list[tuple[str, str]] = []
    for name, value in data.items():
        if isinstance(value, Mapping):
            entries += _flat(value, f"{before}{name} ")
        else:
            entries.append((f"{before}{name}", exposed(str(value))))
    return entries


def _cut(text: str) -> str:
    """Return a text as it is shown: safe, and its middle left out where it is long."""
    seen = exposed(text)
    if len(seen) <= _LONGEST:
        return seen
    half = _LONGEST // 2
    left_out = len(seen) - 2 * half
    return f"{seen[:half]}\n({left_out:,} characters not shown)\n{seen[-half:]}"


def _quote(text: str, span: Span) -> str:
    return exposed(" ".join(text[span.start : span.end].split()))[:200]
