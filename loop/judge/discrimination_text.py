"""Discrimination and robustness as a table, as JSON data, and drawn: D against R."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from loop import __version__
from loop.core.nouns import counted
from loop.documents.numbers import interval, share, signed
from loop.documents.svg import Axis, cut, figure, group, ink, line, text, tick_labels
from loop.documents.templates import render_template, shipped_templates
from loop.evaluate.gates import GateVerdict
from loop.judge.discrimination import (
    Discrimination,
    FlaggedShare,
    KindResult,
    MarkedPairs,
    StepCount,
)
from loop.judge.gate_text import GATE_HEADER, judge_gate_row
from loop.judge.judge_gates import MarkedGate
from loop.judge.marked_judges import MarkedAnswers
from loop.stats.intervals import Estimate

CONVENTIONS: Final = (
    "D is the flagged share of the significant pairs, R the unflagged share of the "
    "others, bias D - R, overall (D + R) / 2; public code for these is missing, and "
    "the definitions are reconstructed. Their limits are exact (Clopper-Pearson) over "
    "pairs.",
    "AUC is the chance that a harmless pair scores better than a significant one, ties "
    "one half; paired is the same of two variants of one reference, the mean over "
    "references. Their limits are bootstrapped over references.",
    "rises counts the steps, of one reference and one kind, at which the score rises "
    "although there are more errors, or although the error is worse (worse).",
)
"""What each number is, as sentences."""

_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_LEFT, _TOP, _SIDE, _NAMES = 56.0, 30.0, 320.0, 360.0


class HeldJudge(NamedTuple):
    """A judge on marked pairs, and what the protocol says of it."""

    said: MarkedAnswers
    gate: MarkedGate | None = None
    """None where the protocol claims nothing of marked pairs, or there is none."""

    recorded: bool = False
    """Whether the ledger has the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscriminationDocument:
    """What judges and metrics make of marked pairs."""

    pairs: MarkedPairs
    found: tuple[Discrimination, ...]
    judges: tuple[HeldJudge, ...] = ()
    resamples: int
    seed: int

    @property
    def passes(self) -> bool:
        """Whether every judge passes its gate, or there is none."""
        return all(
            one.gate is None or one.gate.verdict is GateVerdict.PASS
            for one in self.judges
        )


class Marked(NamedTuple):
    """Counts of the pairs that were used."""

    references: int
    significant: int
    harmless: int


def count_pairs(pairs: MarkedPairs) -> Marked:
    """Return how many pairs there are of each group."""
    significant = int(pairs.significant.sum())
    return Marked(
        len(set(pairs.reference_ids)), significant, len(pairs.ids) - significant
    )


def discrimination_rows(found: Sequence[Discrimination]) -> list[tuple[str, ...]]:
    """Return one row for each metric, as `discrimination_header` names the columns."""
    graded = _has_worse_steps(found)
    return [
        (
            one.scores.title,
            _estimate(one.auc),
            _estimate(one.paired),
            _flagged(one.discrimination),
            _flagged(one.robustness),
            signed(one.bias) if one.bias is not None else "-",
            share(one.overall) if one.overall is not None else "-",
            _steps(one.steps),
            *([_steps(one.worse_steps)] if graded else []),
        )
        for one in found
    ]


def discrimination_header(found: Sequence[Discrimination]) -> tuple[str, ...]:
    """Return names of columns; the last one only where errors have severities."""
    names = ("metric", "AUC", "paired", "D", "R", "bias", "overall", "rises")
    return (*names, "worse") if _has_worse_steps(found) else names


def _has_worse_steps(found: Sequence[Discrimination]) -> bool:
    return any(one.worse_steps.steps for one in found)


def _steps(one: StepCount) -> str:
    return f"{one.violated} of {one.steps}" if one.steps else "-"


def kind_rows(found: Sequence[Discrimination]) -> list[tuple[str, ...]]:
    """Return one row for each kind of change: pairs, then a cell for each metric.

    Of a significant kind the AUC against all harmless pairs, with D where there is a
    decision; of a harmless kind R.
    """
    if not found:
        return []
    return [
        (
            row.kind.replace("_", " "),
            "significant" if row.significant else "harmless",
            *(_kind(one.kinds[place]) for one in found),
        )
        for place, row in enumerate(found[0].kinds)
    ]


def _kind(row: KindResult) -> str:
    parts = []
    if row.auc is not None:
        parts.append(share(row.auc.value))
    if row.share is not None:
        name = "D" if row.significant else "R"
        parts.append(f"{name} {share(row.share.value)}")
    return ", ".join(parts) or "-"


def _estimate(one: Estimate) -> str:
    if one.value is None:
        return "-"
    return (
        f"{share(one.value)} {interval(one)}"
        if one.low is not None
        else share(one.value)
    )


def _flagged(one: FlaggedShare | None) -> str:
    if one is None or one.value is None:
        return "-"
    return f"{share(one.value)} {interval(one.limits)}"


COST_HEADER: Final = (
    *("judge", "D", "R", "overall", "pairs"),
    *("calls a pair", "s a pair", "tokens a pair"),
)


def cost_rows(document: DiscriminationDocument) -> list[tuple[str, ...]]:
    """Return one row for each judge: how good its flags are, and what they took."""
    by_title = {one.scores.title: one for one in document.found}
    rows: list[tuple[str, ...]] = []
    for one in document.judges:
        cost, found = one.said.cost, by_title[one.said.scores[0].title]
        seconds, tokens = cost.seconds_per_pair, cost.tokens_per_pair
        rows.append(
            (
                one.said.facts.ref,
                share(_value(found.discrimination)),
                share(_value(found.robustness)),
                share(found.overall),
                f"{cost.pairs:,}",
                f"{cost.calls / cost.pairs:.2f}" if cost.pairs else "-",
                "-" if seconds is None else f"{seconds:.4f}",
                "-" if tokens is None else f"{tokens:,.0f}",
            )
        )
    return rows


def _value(one: FlaggedShare | None) -> float | None:
    return None if one is None else one.value


def render_discrimination(document: DiscriminationDocument) -> str:
    """Return the document as Markdown; no text of a case is in it."""
    return render_template(
        shipped_templates(),
        "discrimination.md.jinja",
        {
            "counts": count_pairs(document.pairs),
            "source": document.pairs.source,
            "conventions": CONVENTIONS,
            "header": discrimination_header(document.found),
            "rows": discrimination_rows(document.found),
            "kinds": kind_rows(document.found),
            "found": list(document.found),
            "cost_header": COST_HEADER,
            "costs": cost_rows(document),
            "gate_header": GATE_HEADER,
            "gates": [
                {
                    "judge": one.said.facts.ref,
                    "verdict": one.gate.verdict.value,
                    "rows": [*map(judge_gate_row, one.gate.checks)],
                }
                for one in document.judges
                if one.gate is not None
            ],
            "notes": discrimination_notes(document),
            "resamples": document.resamples,
            "seed": document.seed,
            "version": __version__,
        },
    )


def discrimination_notes(document: DiscriminationDocument) -> list[str]:
    """Return what a reader must know beside the numbers, as sentences."""
    told = []
    for judge in document.judges:
        if judge.gate is None:
            continue
        ref = judge.said.facts.ref
        told.append(
            f"The gate of {ref} is {judge.gate.verdict}. Its limits are one-sided, and "
            "exact for as many pairs as their references are worth."
        )
        if not judge.recorded:
            told.append(
                f"The verdict on {ref} is not in the ledger: the workspace has no such "
                "committed version."
            )
    for one in document.found:
        if one.undefined:
            told.append(
                f"{one.scores.title}: "
                f"{counted(one.undefined, 'pair has', 'pairs have')} no score, left "
                "out of every number."
            )
        if one.scores.decision:
            told.append(f"{one.scores.title}: {one.scores.decision}.")
        elif one.discrimination is None:
            told.append(
                f"{one.scores.title} makes no decision, so it has no D and R; name a "
                "threshold for it with --threshold."
            )
    return told


def discrimination_data(document: DiscriminationDocument) -> dict[str, Any]:
    """Return everything as JSON data: ids of metrics and kinds, numbers, no text."""
    counts = count_pairs(document.pairs)
    return {
        "source": document.pairs.source,
        **counts._asdict(),
        "resamples": document.resamples,
        "seed": document.seed,
        "conventions": list(CONVENTIONS),
        "metrics": [_metric(one) for one in document.found],
        "judges": [_judge(one) for one in document.judges],
        "notes": discrimination_notes(document),
        "tool": f"ranloop {__version__}",
    }


def _judge(one: HeldJudge) -> dict[str, Any]:
    cost = one.said.cost
    gate = None
    if one.gate is not None:
        gate = {
            "verdict": one.gate.verdict.value,
            "recorded": one.recorded,
            "checks": [
                {
                    "aspect": check.aspect.value,
                    "verdict": check.verdict.value,
                    "observed": check.observed,
                    "limit": check.limit,
                    "threshold": check.threshold,
                    "reason": check.reason,
                    "needs": check.needs,
                }
                for check in one.gate.checks
            ],
        }
    return {
        "judge": one.said.facts.ref,
        "prompt_digest": one.said.facts.digest,
        "engine": one.said.facts.engine,
        "pairs": cost.pairs,
        "calls": cost.calls,
        "seconds_per_pair": cost.seconds_per_pair,
        "tokens_per_pair": cost.tokens_per_pair,
        "gate": gate,
    }


def _metric(one: Discrimination) -> dict[str, Any]:
    return {
        "metric": one.scores.name,
        "title": one.scores.title,
        "better": "lower" if one.scores.lower else "higher",
        "signature": one.scores.signature,
        "decision": one.scores.decision,
        "undefined": one.undefined,
        "auc": _limits(one.auc),
        "paired": _limits(one.paired) | {"references": one.paired_references},
        "D": _share_data(one.discrimination),
        "R": _share_data(one.robustness),
        "bias": one.bias,
        "overall": one.overall,
        "rises": _steps_data(one.steps),
        "rises_when_worse": _steps_data(one.worse_steps),
        "kinds": [
            {
                "kind": row.kind,
                "significant": row.significant,
                "pairs": row.pairs,
                "auc": None if row.auc is None else _limits(row.auc),
                "share": _share_data(row.share),
            }
            for row in one.kinds
        ],
    }


def _steps_data(one: StepCount) -> dict[str, Any]:
    low, high = one.limits
    return {"violated": one.violated, "steps": one.steps, "low": low, "high": high}


def _limits(one: Estimate) -> dict[str, Any]:
    return {"value": one.value, "low": one.low, "high": one.high, "note": one.note}


def _share_data(one: FlaggedShare | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {
        "value": one.value,
        "low": one.limits.low,
        "high": one.limits.high,
        "hits": one.hits,
        "pairs": one.pairs,
    }


def discrimination_svg(found: Sequence[Discrimination]) -> str:
    """Return D against R, a cross of limits for each metric that makes decisions."""
    drawn = [one for one in found if one.bias is not None]
    across = Axis(0.0, 1.0, _TICKS, _LEFT, _SIDE)
    bottom = _TOP + _SIDE
    labels = tick_labels(_TICKS)

    def height(value: float) -> float:
        return bottom - _SIDE * min(max(value, 0.0), 1.0)

    parts = []
    for tick, label in zip(_TICKS, labels, strict=True):
        x, y = across.x(tick), height(tick)
        parts += [
            line((x, _TOP), (x, bottom), colour="grid"),
            line((_LEFT, y), (_LEFT + _SIDE, y), colour="grid"),
            text(x, bottom + 16, label, anchor="middle", colour="soft"),
            text(_LEFT - 8, y + 4, label, anchor="end", colour="soft"),
        ]
    parts += [
        line((_LEFT, bottom), (_LEFT + _SIDE, _TOP), colour="line", dashes="4 3"),
        text(_LEFT, _TOP - 12, "D, flagged of the significant pairs", colour="soft"),
        text(
            _LEFT + _SIDE,
            bottom + 34,
            "R, unflagged of the harmless pairs",
            anchor="end",
            colour="soft",
        ),
    ]
    said = []
    for place, one in enumerate(drawn, 1):
        wrong, right = one.discrimination, one.robustness
        if wrong is None or right is None or wrong.value is None or right.value is None:
            continue
        x, y = across.x(right.value), height(wrong.value)
        both = f"D {share(wrong.value)}, R {share(right.value)}"
        words = f"{place} {one.scores.title}: {both}"
        said.append(words)
        low, high = right.limits
        parts.append(
            group(
                words,
                line(
                    (across.x(low), y), (across.x(high), y), colour="accent", width=1.5
                ),
                line(
                    (x, height(wrong.limits.low)),
                    (x, height(wrong.limits.high)),
                    colour="accent",
                    width=1.5,
                ),
                f'<circle cx="{x:g}" cy="{y:g}" r="8" fill="{ink("accent")}" '
                f'stroke="{ink("paper")}"/>',
                f'<text x="{x:g}" y="{y + 4:g}" fill="{ink("paper")}" '
                f'text-anchor="middle" font-size="11">{place}</text>',
            )
        )
        parts.append(text(_LEFT + _SIDE + 24, _TOP + 20 * place, cut(words, _NAMES)))
    if not said:
        parts.append(
            text(_LEFT + 12, _TOP + 24, "No metric makes decisions.", colour="soft")
        )
    return figure(
        (_LEFT + _SIDE + 24 + _NAMES, bottom + 44),
        "Discrimination against robustness",
        ". ".join(said) or "No metric makes decisions.",
        *parts,
    )
