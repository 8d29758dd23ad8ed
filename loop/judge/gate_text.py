"""A judge's gate in words: a row for each check, and what must be known of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from loop.core.nouns import counted
from loop.documents.numbers import count, percent, share, signed
from loop.evaluate.gates import describe_verdicts
from loop.judge.judge_gates import JudgeAspect, JudgeCheck, JudgeGate


class JudgeGateRow(NamedTuple):
    """One check as text."""

    check: str
    verdict: str
    observed: str
    limit: str
    """One-sided lower limit; empty where none is asked for."""

    wanted: str
    why: str
    """What kept it from passing, and what it needs; empty for `PASS`."""


GATE_HEADER: Final = JudgeGateRow(
    "check", "verdict", "observed", "lower limit", "wanted", "why"
)


def judge_gate_rows(gate: JudgeGate) -> tuple[JudgeGateRow, ...]:
    """Return a row for each check, in the order of the gate."""
    return tuple(map(judge_gate_row, gate.checks))


def judge_gate_row(check: JudgeCheck) -> JudgeGateRow:
    """Return one check as text."""
    return JudgeGateRow(
        check=check.what,
        verdict=check.verdict.value,
        observed=_print(check, check.observed),
        limit="" if check.limit is None else _print(check, check.limit),
        wanted=_wanted(check),
        why=". ".join(part for part in (check.reason, check.needs) if part),
    )


def judge_gate_notes(gate: JudgeGate) -> tuple[str, ...]:
    """Return the verdict, what it rests on, and what is suspicious, as sentences."""
    verdicts = describe_verdicts(one.verdict for one in gate.checks)
    raters = counted(gate.raters, "rater")
    return (
        f"The judge's gate is {gate.verdict}: {verdicts}.",
        f"{count(gate.used)} of {count(gate.pairs)} pairs have a score and a rating; "
        f"they are of {count(gate.units)} units, rated by {raters}.",
        *(f"Suspicious: {words}." for words in gate.suspicious),
    )


def _print(check: JudgeCheck, value: float | None) -> str:
    if value is not None and check.aspect is JudgeAspect.UNITS:
        return count(round(value))
    if check.aspect in (JudgeAspect.ANSWERS, JudgeAspect.COPIES):
        return percent(value)
    return signed(value) if check.aspect is JudgeAspect.PARENT else share(value)


def _wanted(check: JudgeCheck) -> str:
    target = check.threshold or 0.0
    if check.aspect is JudgeAspect.ANSWERS:
        return f"at most {100 * target:g} %"
    if check.aspect is JudgeAspect.COPIES:
        return f"{100 * target:g} %"
    if check.aspect is JudgeAspect.PARENT:
        return f"above \N{MINUS SIGN}{-target:g}"
    return f"at least {target:g}"
