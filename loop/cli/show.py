"""The verb ``show``: what was asked about a case of a run, and what came back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Annotated, Any

import typer

from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    note_part,
    open_workspace,
    print_json,
    say,
    say_marked,
)
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.records import Completion, Field, Span
from loop.core.safe_text import exposed
from loop.engines.rules.engine import RulesExplanation, RulesMention
from loop.run.trace import (
    CallAnswer,
    CallTrace,
    Trace,
    UnansweredCases,
    read_trace,
    read_unanswered,
    trace_data,
)

_WIDTH = 80
_LONG = 4000
"""Characters of a text above which only its ends, or what is marked, are shown."""

_END = 600
"""Characters shown of either end of a long text."""

_AROUND = 160
"""Characters shown on either side of what is marked in a long text."""

_OPEN, _CLOSE = "\ue000", "\ue001"
"""Begin and end of what is marked; `exposed` leaves none of them in a text."""


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("show")(show)


def show(
    run: Annotated[
        str, typer.Argument(help="Run id, its beginning, latest, or latest:PROMPT.")
    ],
    case: Annotated[
        str | None,
        typer.Argument(help="Case id; without one, the cases without an answer."),
    ] = None,
    label: Annotated[
        str, typer.Option("--label", "-l", help="Only this label, by id.")
    ] = "",
    raw: Annotated[
        bool, typer.Option("--raw", help="Whole messages, schemas and answers.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what was asked about a case, and what came back.

    Prints private text: the case and the words of the model. Without CASE, the ids of
    unreadable and failed cases by cause, and no text. Refused for holdout cohorts.
    """
    place = open_workspace(workspace)
    if case is None:
        if label or raw:
            raise DataError("--label and --raw are about one case. Name it after RUN.")
        unanswered = read_unanswered(place, run)
        note_part(place, unanswered.run.id)
        if as_json:
            print_json(unanswered_data(unanswered))
        else:
            _print_unanswered(unanswered)
        return
    trace = read_trace(place, run, case, label=label)
    if as_json:
        print_json(trace_data(trace))
    else:
        _print_trace(trace, label, raw)


def unanswered_data(found: UnansweredCases) -> dict[str, Any]:
    """Return the cases without an answer as JSON data: ids and causes."""
    return {
        "run": found.run.id,
        "cases": found.cases,
        "causes": [
            {
                "status": one.status.value,
                "problem": one.problem,
                "cases": len(one.cases),
                "ids": list(one.cases),
            }
            for one in found.causes
        ],
    }


def _print_unanswered(found: UnansweredCases) -> None:
    run = found.run
    say(f"run {run.id}: {run.spec.prompt} on {run.spec.cohort}, {run.spec.engine}")
    if not found.causes:
        say("every case was answered")
        return
    say(f"{counted(found.cases, 'case')} without an answer:")
    for one in found.causes:
        say()
        say_wrapped(f"{len(one.cases):,} {one.status.value}: {one.problem}", "")
        more = len(one.cases) - 8
        rest = f" and {more:,} more" if more > 0 else ""
        say_wrapped(" ".join(one.cases[:8]) + rest, "  ")
    say()
    example = found.causes[0].cases[0]
    say(f"See one with: ranloop show {run.id} {example}")


def _print_trace(trace: Trace, label: str, raw: bool) -> None:
    run, spec, outcome = trace.run, trace.run.spec, trace.outcome
    say(f"case {trace.item.id}: {outcome.status.value}")
    if outcome.problem:
        say_wrapped(outcome.problem, "  ")
    say()
    draw = f", draw {spec.draw + 1}" if spec.draw else ""
    _fact("run", f"{run.id}{draw}, {run.finished}")
    _fact("prompt", f"{spec.prompt} ({spec.prompt_digest[:12]}), {spec.contract}")
    _fact("engine", spec.engine)
    for name, value in _flat(trace.identity):
        _fact(f"  {name}", value)
    _fact("asked with", ", ".join(f"{n} {v}" for n, v in spec.parameters.items()))
    for remark in trace.remarks:
        _fact("note", remark)
    for call in trace.calls:
        say()
        _print_call(trace, call, raw)
    shown = {
        name: field
        for name, field in outcome.fields.items()
        if not label or name == label
    }
    say()
    texts = trace.item.variables
    _print_fields(shown, texts, outcome.repairs)
    for call in trace.calls:
        if call.rules is not None and "text" in texts:
            _print_why(call.rules, label, texts["text"])
    spans = [span for field in shown.values() for span in field.places]
    for name, text in texts.items():
        say()
        say(f"{'case text' if name == 'text' else name}, evidence in brackets")
        own = [span for span in spans if span.input == name]
        print_text(text, own, whole=raw)


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the entries of nested data, each with the names on the way to it."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name} ")
        else:
            text = str(value)
            digest = len(text) == 64 and text.isalnum()
            yield before + str(name), text[:12] if digest else text


def _fact(name: str, value: str) -> None:
    lines = wrap(exposed(value), _WIDTH - 14) or [""]
    say(f"{exposed(name):<13} {lines[0]}".rstrip())
    for line in lines[1:]:
        say(" " * 14 + line)


def _print_call(trace: Trace, call: CallTrace, raw: bool) -> None:
    fields = len(trace.outcome.fields) if call.call == "joint" else 1
    labels = f", {fields} labels" if fields > 1 else ""
    sent = "as it was sent" if call.as_sent else "not provably what was sent"
    say(f"call {call.call}{labels}: {sent}")
    if raw:
        for message in call.messages():
            say(f"  {message.role}:")
            _print_block(message.content, whole=True)
        say("  schema:")
        schema = json.dumps(call.schema, ensure_ascii=False, indent=1)
        _print_block(schema, whole=True)
    else:
        shared = [f"{one.role} {len(one.content):,}" for one in call.shared]
        schema = json.dumps(call.schema, ensure_ascii=False)
        say_wrapped(
            f"the same for every case: {', '.join(shared)} characters; schema "
            f"{len(schema):,} (--raw shows them)",
            "  ",
        )
        say(f"  the case's own part, {len(call.own):,} characters:")
        _print_block(call.own, whole=False)
    for number, attempt in enumerate(call.attempts, 1):
        _print_attempt(number, attempt, trace.currency, raw)
    if call.failure:
        say_wrapped(f"no answer, the engine failed: {call.failure}", "  ")


def _print_attempt(number: int, attempt: CallAnswer, currency: str, raw: bool) -> None:
    given = attempt.completion
    if given is None:
        say(f"  answer {number}: {attempt.reading.problem}")
        return
    say_wrapped(f"answer {number}: {_measures(given, attempt, currency)}", "  ")
    if attempt.reading.problem:
        say_wrapped(f"unreadable: {attempt.reading.problem}", "    ")
    if attempt.thinking:
        say(f"    thinking, {len(attempt.thinking):,} characters:")
        _print_block(attempt.thinking, whole=raw)
    say(f"    answered, {len(given.text):,} characters:")
    _print_block(given.text, whole=raw)


def _measures(given: Completion, attempt: CallAnswer, currency: str) -> str:
    parts = [given.finish_reason, f"{given.latency_s:.3f} s"]
    if given.prompt_tokens is not None:
        cached = f" ({given.cached_tokens:,} cached)" if given.cached_tokens else ""
        parts.append(f"prompt {given.prompt_tokens:,} tokens{cached}")
    if given.completion_tokens is not None:
        parts.append(f"output {given.completion_tokens:,} tokens")
    if attempt.cost is not None:
        parts.append(f"{attempt.cost:.6f} {currency}")
    return ", ".join(parts)


def _print_fields(
    fields: Mapping[str, Field], texts: Mapping[str, str], repairs: Sequence[str]
) -> None:
    say("what the reader made of it")
    bare: dict[str, list[str]] = {}
    for name, field in fields.items():
        if not (field.spans or field.entries):
            bare.setdefault(str(field.value), []).append(name)
            continue
        if field.entries:
            _print_entries(name, field)
            continue
        places = " ".join(f"{one.start}-{one.end}" for one in field.spans)
        quote = " ... ".join(
            texts[one.input][one.start : one.end] for one in field.spans
        )
        short = exposed(" ".join(quote.split()))[:120]
        say_wrapped(f"{name}: {field.value}, [{short}] at {places}", "  ")
    for value, names in bare.items():
        say_wrapped(f"{value}, without evidence: {', '.join(names)}", "  ")
    if not fields:
        say("  nothing")
    for repair in repairs:
        say_wrapped(f"repaired: {repair}", "  ")


def _print_entries(name: str, field: Field) -> None:
    """Print a count and what is listed for it, with its places in the texts."""
    say(f"  {name}: {field.value}")
    for one in field.entries:
        places = ", ".join(f"{at.input} {at.start}-{at.end}" for at in one.spans)
        words = exposed(" ".join(one.words.split()))[:120]
        say_wrapped(f"[{words}]{f' at {places}' if places else ''}", "    ")


def _print_why(rules: RulesExplanation, label: str, text: str) -> None:
    say()
    say("why rules answers so")
    print_rules(rules, label, text)


def print_rules(rules: RulesExplanation, label: str, text: str) -> None:
    """Print what `rules` found of a label, or of all, and what decided."""
    shown = [one for one in rules.mentions if not label or one.label == label]
    for one in shown:
        _print_mention(one, text)
    for name, by in rules.implied.items():
        if not label or label == name:
            say(f"  {name}: present, because {by} implies it")
    for name in rules.disputed:
        if not label or label == name:
            say(f"  {name}: the impression was believed against the findings")
    if not shown:
        say("  no wording of the guides is in the text: absent")


def _print_mention(one: RulesMention, text: str) -> None:
    value = one.value.value if one.value else "nothing"
    mark = "*" if one.decides else " "
    say_wrapped(
        f"{mark} {one.label}: {value}, [{quote_span(text, one.span)}] at "
        f"{one.span.start}-{one.span.end}",
        " ",
    )
    say_wrapped(f"{one.part} {one.wording!r}; {one.why}", "     ")
    if one.cue is not None and one.scope is not None:
        governed = quote_span(text, one.scope)
        say_wrapped(f"cue [{quote_span(text, one.cue)}], governs [{governed}]", "     ")


def quote_span(text: str, span: Span) -> str:
    """Return the words of a span on one line, safe to print."""
    return exposed(" ".join(text[span.start : span.end].split()))[:120]


def say_wrapped(text: str, before: str) -> None:
    """Print a text of unknown origin in 80 columns, indented after the first line."""
    for number, line in enumerate(wrap(exposed(text), _WIDTH - len(before) - 2)):
        say(f"{before}{'  ' * bool(number)}{line}")


def _print_block(text: str, *, whole: bool) -> None:
    """Print a text of unknown origin: indented, wrapped, its middle cut if long."""
    seen = exposed(text)
    if not whole and len(seen) > _LONG:
        cut = len(seen) - 2 * _END
        seen = f"{seen[:_END]}\n({cut:,} characters not shown)\n{seen[-_END:]}"
    for line in _wrapped(seen.splitlines()):
        say(f"    | {line}".rstrip())


def print_text(text: str, spans: Iterable[Span], *, whole: bool) -> None:
    """Print the case with its evidence marked; of a long one, what is around it."""
    merged = _merged(spans)
    ranges = [Span(0, len(text))]
    if not whole and len(text) > _LONG:
        around = (
            Span(max(one.start - _AROUND, 0), min(one.end + _AROUND, len(text)))
            for one in merged
        )
        ranges = _merged([Span(0, min(_END, len(text))), *around])
    at = 0
    for start, end, _ in ranges:
        if start > at:
            say(f"  ({start - at:,} characters not shown)")
        inside = [
            Span(max(a, start), min(b, end))
            for a, b, _ in merged
            if a < end and b > start
        ]
        for line in _marked(text, start, end, inside):
            say_marked(f"  {line}".rstrip(), _OPEN, _CLOSE)
        at = end
    if at < len(text):
        say(f"  ({len(text) - at:,} characters not shown)")


def _marked(text: str, start: int, end: int, spans: Sequence[Span]) -> list[str]:
    """Return a stretch of text as lines, every marked part closed at a line's end."""
    pieces, at = [], start
    for low, high, _ in spans:
        pieces += [exposed(text[at:low]), _OPEN, exposed(text[low:high]), _CLOSE]
        at = high
    pieces.append(exposed(text[at:end]))
    lines, inside = [], False
    for line in _wrapped("".join(pieces).splitlines()):
        opened = (_OPEN if inside else "") + line
        inside = opened.rfind(_OPEN) > opened.rfind(_CLOSE)
        lines.append(opened + (_CLOSE if inside else ""))
    return lines


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from wrap(line, _WIDTH - 8) or [""]


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that overlap as one."""
    merged: list[Span] = []
    for start, end, _ in sorted(spans):
        if merged and start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(end, merged[-1].end))
        else:
            merged.append(Span(start, end))
    return merged
