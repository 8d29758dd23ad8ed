"""A plan of cases as tables for a terminal, as JSON data and as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from loop.core.nouns import counted
from loop.documents.numbers import NOT_ESTIMABLE, count, percent, share
from loop.documents.tables import format_rows
from loop.evaluate.plan import (
    POWERS,
    Collect,
    LabelPlan,
    Needed,
    PlanLevel,
    SampleSizePlan,
)
from loop.stats.power import MOST, Bar, Size

POINT_RULE = (
    "the protocol's rule is `point`: it certifies nothing. The sizes are what the rule "
    "`lower` would need with these thresholds."
)
WEIGHT = (
    "chosen positives change how frequent a label is: when accuracy or PPV is "
    "estimated, weight every case by the inverse of its chance of being drawn. "
    "Sensitivity needs no weight."
)


class PlanTable(NamedTuple):
    """A table ready to be printed."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def level_tables(plan: SampleSizePlan) -> tuple[PlanTable, PlanTable]:
    """Return what the claim needs of any label: cases, then positives."""
    powers = " / ".join(f"{100 * power:g} %" for power in POWERS)
    supposed = [f"true {one.accuracy:g}" for one in plan.used.candidates]
    header = ("limit", "no error", *supposed)
    beside = f"at {powers} power: first number with it (from where it never falls)"
    protocol = plan.protocol
    return (
        PlanTable(
            f"cases to certify accuracy {protocol.accuracy:g} {beside}",
            header,
            tuple(
                (_named(level), count(level.flawless_cases), *_cases(level))
                for level in plan.levels
            ),
        ),
        PlanTable(
            f"positives to certify sensitivity {protocol.sensitivity_floor:g} {beside}",
            header,
            tuple(
                (_named(level), count(level.flawless_positives), *_positives(level))
                for level in plan.levels
            ),
        ),
    )


def label_table(plan: SampleSizePlan) -> PlanTable:
    """Return how many random cases each label needs for accuracy and sensitivity."""
    powers = " / ".join(f"{100 * power:g} %" for power in POWERS)
    supposed = [f"true {one.accuracy:g}" for one in plan.used.candidates]
    observed = ("observed", "needs") if plan.run else ()
    return PlanTable(
        f"random cases to certify accuracy and sensitivity together, {powers} power, "
        f"{plan.used.name}",
        ("label", "cases", "positives", "share", *supposed, *observed, "kappa asks"),
        tuple(_label_row(one, plan) for one in plan.labels),
    )


def never_lines(plan: SampleSizePlan) -> tuple[str, ...]:
    """Return the labels that the cohort cannot certify even without an error."""
    return tuple(
        f"{one.counted.name}: {'; '.join(one.obstacles)}. Collect {one.remedy}."
        for one in plan.labels
        if one.obstacles
    )


def collect_lines(plan: SampleSizePlan) -> tuple[str, ...]:
    """Return what to collect for each label so that the first power is reached."""
    told = ((one.counted.name, collect_line(one, plan)) for one in plan.labels)
    return tuple(f"{name}: {line}" for name, line in told if line)


def collect_line(one: LabelPlan, plan: SampleSizePlan) -> str:
    """Return what to collect for one label, in words; empty where it has enough.

    Random cases bring positives as often as the cohort has them. Chosen ones are
    counted so that each limit alone holds with the second power.
    """
    first, add = _too_low(one, plan), one.collect
    if add is None:
        return first or _unknown(one)
    if not add.random:
        return first
    told = (
        f"about {count(add.random)} more random cases{_chosen(add)} (true accuracy "
        f"{share(add.accuracy)}, {100 * POWERS[0]:g} % power)"
    )
    return f"{first}; {told}" if first else told


def _too_low(one: LabelPlan, plan: SampleSizePlan) -> str:
    """Say that the run itself does not reach what is to be certified."""
    seen, goal = one.observed, plan.used.goal
    if seen is None:
        return ""
    pairs = (
        ("accuracy", seen.accuracy, goal.accuracy.threshold),
        ("sensitivity", seen.sensitivity, goal.sensitivity.threshold),
    )
    low = [f"{what} {share(value)}" for what, value, bar in pairs if value <= bar]
    if not low:
        return ""
    return f"no number of cases certifies the observed {' and '.join(low)}"


def _unknown(one: LabelPlan) -> str:
    counted = one.counted
    if counted.positives and counted.negatives:
        return (
            f"none of the supposed accuracies can be certified with {count(MOST)} cases"
        )
    side = "positive" if counted.negatives else "negative"
    if not counted.cases:
        return "no case decides it, so how many it needs is unknown"
    return f"no {side} has been seen, so how many random cases it needs is unknown"


def plan_notes(plan: SampleSizePlan) -> tuple[str, ...]:
    """Return what a reader of the numbers must know, as sentences."""
    protocol = plan.protocol
    notes = [] if plan.certifies else [POINT_RULE]
    notes.append(
        "sizes are exact for independent cases, one for each patient; errors are "
        "supposed to fall on positives and negatives alike, and random cases to bring "
        "positives as often as this cohort does."
    )
    notes.append(
        f"`kappa asks` is the accuracy at which kappa is {protocol.kappa:g} when "
        "misses and false alarms are as many. A label that is truly no better rarely "
        "passes that gate, however many cases there are; the sizes leave kappa out."
    )
    if plan.run:
        notes.append(
            "observed accuracies of a cohort that prompts were revised on are "
            "optimistic."
        )
    notes.extend(
        f"{name} is not planned: the reference cannot judge it ({reason}), so no claim "
        "counts it."
        for name, reason in plan.not_comparable.items()
    )
    return (*notes, WEIGHT)


def plan_data(plan: SampleSizePlan) -> dict[str, Any]:
    """Return `plan` as JSON data; a size that does not exist is null."""
    return {
        "cohort": plan.cohort,
        "cohort_digest": plan.cohort_digest,
        "cases": plan.cases,
        "reference": plan.reference,
        "run": plan.run or None,
        "prompt": plan.prompt or None,
        "protocol": plan.protocol.model_dump(mode="json"),
        "certifies": plan.certifies,
        "powers": list(POWERS),
        "largest_size": MOST,
        "levels": [_level_data(level) for level in plan.levels],
        "labels": [_label_data(one, plan) for one in plan.labels],
        "notes": list(plan_notes(plan)),
    }


def render_plan_csv(plan: SampleSizePlan) -> str:
    """Return one row per label and supposed accuracy, safe to open in a spreadsheet."""
    rows = [
        dict(_row(one, needed, source, plan))
        for one in plan.labels
        for needed, source in _supposed(one)
    ]
    return format_rows(rows)


def _named(level: PlanLevel) -> str:
    return f"{level.name} (used)" if level.used else level.name


def _cases(level: PlanLevel) -> Iterator[str]:
    for one in level.candidates:
        yield _sizes(one.cases, one.accuracy > level.goal.accuracy.threshold)


def _positives(level: PlanLevel) -> Iterator[str]:
    for one in level.candidates:
        yield _sizes(one.positives, one.sensitivity > level.goal.sensitivity.threshold)


def _sizes(sizes: Sequence[Size], reachable: bool) -> str:
    """Print first and safe sizes; a dash where no number of cases is enough."""
    if not reachable:
        return NOT_ESTIMABLE
    return " / ".join(
        f"> {count(MOST)}"
        if size.first is None or size.safe is None
        else f"{count(size.first)} ({count(size.safe)})"
        for size in sizes
    )


def _label_row(one: LabelPlan, plan: SampleSizePlan) -> tuple[str, ...]:
    counted = one.counted
    goal = plan.used.goal
    cells = [_both(needed, *goal) for needed in one.candidates]
    if plan.run:
        seen = one.observed
        cells += [share(seen.accuracy if seen else None), _both(seen, *goal)]
    return (
        counted.name,
        count(counted.cases),
        count(counted.positives),
        percent(counted.prevalence),
        *cells,
        share(one.kappa_asks),
    )


def _both(needed: Needed | None, accuracy: Bar, sensitivity: Bar) -> str:
    """Print the safe sizes for both limits."""
    if (
        needed is None
        or needed.accuracy <= accuracy.threshold
        or needed.sensitivity <= sensitivity.threshold
    ):
        return NOT_ESTIMABLE
    return " / ".join(
        f"> {count(MOST)}" if size.safe is None else count(size.safe)
        for size in needed.both
    )


def _chosen(add: Collect) -> str:
    """Print the chosen cases as the other way; empty where positives are enough."""
    if not add.positives:
        return ""
    told = f", or {counted(add.positives, 'chosen positive')}"
    if add.others:
        told += f" and {counted(add.others, 'other case')}"
    return told


def _level_data(level: PlanLevel) -> dict[str, Any]:
    return {
        "name": level.name,
        "used": level.used,
        "accuracy": level.goal.accuracy._asdict(),
        "sensitivity": level.goal.sensitivity._asdict(),
        "flawless_cases": level.flawless_cases,
        "flawless_positives": level.flawless_positives,
        "supposed": [_needed_data(one) for one in level.candidates],
    }


def _label_data(one: LabelPlan, plan: SampleSizePlan) -> dict[str, Any]:
    counted = one.counted
    return {
        "label": counted.label,
        "name": counted.name,
        "cases": counted.cases,
        "positives": counted.positives,
        "prevalence": counted.prevalence,
        "supposed": [_needed_data(needed) for needed in one.candidates],
        "observed": _needed_data(one.observed) if one.observed else None,
        "kappa_asks": one.kappa_asks,
        "possible": not one.obstacles,
        "obstacles": list(one.obstacles),
        "remedy": one.remedy,
        "collect": one.collect._asdict() if one.collect else None,
        "advice": collect_line(one, plan),
    }


def _needed_data(one: Needed) -> dict[str, Any]:
    return {
        "accuracy": one.accuracy,
        "sensitivity": one.sensitivity,
        "cases": [size._asdict() for size in one.cases],
        "positives": [size._asdict() for size in one.positives],
        "both": [size._asdict() for size in one.both],
    }


def _supposed(one: LabelPlan) -> Iterator[tuple[Needed, str]]:
    for needed in one.candidates:
        yield needed, "supposed"
    if one.observed is not None:
        yield one.observed, "observed"


def _row(
    one: LabelPlan, needed: Needed, source: str, plan: SampleSizePlan
) -> Iterator[tuple[str, object]]:
    """Yield the cells of one label under one accuracy, with their column names."""
    counted = one.counted
    yield from (("label", counted.label), ("name", counted.name))
    yield from (("cases", counted.cases), ("positives", counted.positives))
    yield from (("prevalence", counted.prevalence), ("source", source))
    yield from (("accuracy", needed.accuracy), ("sensitivity", needed.sensitivity))
    for what, sizes in needed._asdict().items():
        if what in ("accuracy", "sensitivity"):
            continue
        for power, size in zip(POWERS, sizes, strict=True):
            yield (f"{what}_{100 * power:g}_first", size.first)
            yield (f"{what}_{100 * power:g}", size.safe)
    yield from (("kappa_asks", one.kappa_asks), ("obstacles", "; ".join(one.obstacles)))
    yield from (("remedy", one.remedy), ("collect", collect_line(one, plan)))
