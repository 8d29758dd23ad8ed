"""What ``ranloop run --dry-run`` prints: what would be asked, and nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loop.cli.console import print_json, print_table, say
from loop.core.paths import Workspace

if TYPE_CHECKING:
    from loop.run.cost import DryRun, Shape

_HEADER = (
    "layout",
    "answer",
    "requests",
    "prompt tokens",
    "per case",
    "in prefix",
    "uncached/case",
    "fewer",
    "output/case",
)


def show_dry_run(
    place: Workspace,
    prompt: str,
    cohort: str,
    *,
    engine: str,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print what a run would ask and cost; the engine is not opened.

    Raises
    ------
    LoopError
        As `loop.run.cost.estimate_run` does.
    """
    from loop.run.cost import estimate_run

    found = estimate_run(place, prompt, cohort, engine=engine, limit=limit)
    if as_json:
        print_json(_data(found))
    else:
        _show(found)


def _show(found: DryRun) -> None:
    length = found.characters / found.cases
    say(f"{found.prompt} on {found.cohort} with {found.engine}: NOTHING WAS SENT")
    say(f"  cases    {found.cases:,}, {length:,.0f} characters in the mean")
    say(f"  tokens   {found.counter.remark}")
    say(f"  output   expected from {found.expectation.basis}")
    say()
    header = (*_HEADER, f"cost {found.price.currency}") if found.price else _HEADER
    print_table(header, [_row(one, found) for one in found.shapes])
    say("* how the prompt version asks")
    say()
    for line in _comparison(found):
        say(line)


def _row(shape: Shape, found: DryRun) -> tuple[str, ...]:
    cases = found.cases
    cells = (
        f"{shape.layout} *" if shape.chosen else shape.layout.value,
        shape.contract,
        f"{shape.requests:,}",
        f"{shape.prompt_tokens:,}",
        f"{shape.prompt_tokens / cases:,.0f}",
        f"{100 * shape.prefix_share:.1f} %",
        f"{shape.uncached_tokens / cases:,.1f}",
        f"{found.times_fewer(shape):,.0f} x",
        f"{shape.output_tokens / cases:,.1f}",
    )
    if shape.cost is None:
        return cells
    return (*cells, f"{shape.cost:,.{2 if shape.cost >= 1 else 4}f}")


def _comparison(found: DryRun) -> list[str]:
    """Return the lines that say what the columns compare, and with what."""
    from loop.run.published import FIGURE, SOURCE

    return [
        "requests    at most: what is stored already, or asked twice, is not sent",
        "in prefix   prompt tokens before the case text, the same in every case",
        "uncached    read anew if a server keeps that prefix: it is counted once;",
        "            with blocks of 16 tokens up to 15 more a request are read anew,",
        "            and llama.cpp reads the prefix once in each of its slots",
        "fewer       uncached tokens than the layout 'reference': the same guides,",
        f"            asked as the {SOURCE} does,",
        "            one call a label, the case before the guidance",
        f"published   {FIGURE.requests} requests and about {FIGURE.prompt_tokens:,} "
        f"prompt tokens for a case of {FIGURE.characters} characters",
        f"            (source: {SOURCE})",
    ]


def _data(found: DryRun) -> dict[str, Any]:
    from loop.run.published import FIGURE, SOURCE

    return {
        "sent": 0,
        "prompt": found.prompt,
        "cohort": found.cohort,
        "engine": found.engine,
        "cases": found.cases,
        "characters": found.characters,
        "tokens": {"exact": found.counter.exact, "remark": found.counter.remark},
        "output": found.expectation.basis,
        "currency": found.price.currency if found.price else None,
        "layouts": [_shape_data(one, found) for one in found.shapes],
        "published": {"source": SOURCE, **FIGURE._asdict()},
    }


def _shape_data(shape: Shape, found: DryRun) -> dict[str, Any]:
    return {
        "layout": shape.layout.value,
        "contract": shape.contract,
        "chosen": shape.chosen,
        "requests": shape.requests,
        "prompt_tokens": shape.prompt_tokens,
        "prefix_tokens": shape.prefix_tokens,
        "prefix_share": shape.prefix_share,
        "uncached_tokens": shape.uncached_tokens,
        "output_tokens": shape.output_tokens,
        "cost": shape.cost,
        "times_fewer_uncached": found.times_fewer(shape),
    }
