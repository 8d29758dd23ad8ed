"""What ``optimize`` prints of a search with the optimizer of a library."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from loop.cli.console import print_json, print_table, say, say_wrapped
from loop.core.paths import WorkspacePaths
from loop.optimize.library_search import SearchRequest, SearchResult
from loop.optimize.search_forecast import (
    AskingForecast,
    SearchForecast,
    forecast_search,
)


def show_forecast(
    place: WorkspacePaths, request: SearchRequest, *, as_json: bool
) -> None:
    """Print what a search would ask at most; nothing is asked."""
    found = forecast_search(place, request)
    if as_json:
        print_json(_forecast_data(found))
    else:
        _show_forecast(found)


def show_result(request: SearchRequest, result: SearchResult, *, as_json: bool) -> None:
    """Print what a search found."""
    if as_json:
        print_json(asdict(result))
    else:
        _show(request, result)


def _show(request: SearchRequest, result: SearchResult) -> None:
    say(
        f"{request.prompt} on {request.cohort} with {request.optimizer}: {result.words}"
    )
    if not result.labels:
        return
    say_wrapped("  labels       ", ", ".join(result.labels))
    say(
        f"  tried        {result.candidates:,} wordings, {result.calls:,} cases "
        f"scored, {result.reflections:,} questions answered"
    )
    if result.proposals:
        say(f"  proposals    {result.proposals:,}, refused {_refused(result)}")
    if result.left_out:
        say(f"  left out     {result.left_out:,} cases that the engine failed on")
    say()
    parts = ("search", "select", "estimate")
    rows = [(part, *map(_number, result.parts[part])) for part in parts]
    print_table(("macro-F1, mean of splits", "before", "found"), rows)
    say()
    gain = result.gain
    say(
        f"on the cases that were not seen, pooled: {_number(result.parent.value)} "
        f"before, {_number(result.found.value)} found; gain {_number(gain.value)} "
        f"({_number(gain.low)} to {_number(gain.high)})"
    )
    _show_gains(result)
    if result.stale:
        say(f"  STALE: {result.stale}")
    for ref in result.drafts:
        against = result.objections.get(ref, ())
        say(f"draft {ref}: {'checked, no objections' if not against else 'objections'}")
        for one in against:
            say_wrapped("  - ", one)


def _show_gains(result: SearchResult) -> None:
    open_labels = [name for name in result.labels if not result.gains[name][2]]
    for name in result.labels:
        before, after, estimable = result.gains[name]
        if estimable:
            say(f"  {name}: F1 {_number(before)} before, {_number(after)} found")
    if open_labels:
        say_wrapped("  not estimable: ", ", ".join(open_labels))
    if result.candidates > 1:
        say(
            f"  the best of {result.candidates:,} equally good wordings would be "
            f"overrated by {100 * result.expected_excess:.1f} points where it was "
            "chosen"
        )


def _refused(result: SearchResult) -> str:
    parts = [f"{count} {why}" for why, count in sorted(result.refused.items())]
    return ", ".join(parts) or "none"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _show_forecast(found: SearchForecast) -> None:
    say(f"{found.prompt} on {found.cohort} with {found.optimizer}: NOTHING WAS ASKED")
    say(f"  cases   {found.cases:,}")
    say(f"  labels  {', '.join(found.labels) or 'all'}")
    say()
    rows = [
        (
            part.name,
            str(len(part.cases)),
            _range(min(part.cases), max(part.cases)),
            _range(*part.positives),
        )
        for part in found.parts
    ]
    print_table(("part", "splits", "cases", "positives of a label"), rows)
    say()
    asked = [("answers", found.answering)]
    if found.reflecting is not None:
        asked.append(("proposes", found.reflecting))
    header = ("at most", "engine", "requests", "prompt tokens", "output tokens", "cost")
    print_table(header, [(what, *_asking(one)) for what, one in asked])
    if not found.exact:
        say("tokens are estimated: the model's tokenizer is not on this machine")


def _asking(one: AskingForecast) -> tuple[str, ...]:
    cost = "-" if one.cost is None else f"{one.cost:,.2f} {one.currency}"
    counts = (one.requests, one.prompt_tokens, one.output_tokens)
    return (one.engine, *(f"{count:,}" for count in counts), cost)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _forecast_data(found: SearchForecast) -> dict[str, Any]:
    data = found._asdict()
    data["parts"] = [part._asdict() for part in found.parts]
    data["answering"] = found.answering._asdict()
    data["reflecting"] = found.reflecting._asdict() if found.reflecting else None
    return data
