"""What makes "No Finding" so: the labels it follows from, case by case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loop.core.records import Mark, Outcome, Value
from loop.evaluate.failures import Failure
from loop.labels.reference import MARKS, Reference
from loop.labels.taxonomy import NO_FINDING, SUPPORT_DEVICES, NoFindingPolicy, Taxonomy
from loop.review.queue.records import Cause

Pair = tuple[str, str]


def find_causes(
    outcomes: Iterable[Outcome],
    failures: Sequence[Failure],
    reference: Reference,
    taxonomy: Taxonomy,
) -> Mapping[Pair, tuple[Cause, ...]]:
    """Return what decides each failing "No Finding": those that fail first.

    A label decides it where the answer is present or uncertain, or the reference is
    present: each of them makes "No Finding" absent on its side. In the order of the
    taxonomy; empty where neither side names any.

    Parameters
    ----------
    outcomes
        Of the run that failed.
    failures
        All failing pairs of the run.
    """
    failing = {(one.case_id, one.label) for one in failures}
    wanted = {case_id for case_id, label in failing if label == NO_FINDING}
    rows = {case_id: row for row, case_id in enumerate(reference.case_ids)}
    columns = {label: column for column, label in enumerate(reference.labels)}
    ignored = {NO_FINDING}
    if taxonomy.no_finding_policy is NoFindingPolicy.CHEXPERT:
        ignored.add(SUPPORT_DEVICES)
    found: dict[Pair, tuple[Cause, ...]] = {}
    for outcome in outcomes:
        case_id = outcome.item_id
        if case_id not in wanted:
            continue
        marks = reference.marks[rows[case_id]].tolist()
        causes = []
        for label in taxonomy.ids:
            if label in ignored:
                continue
            answer = outcome.fields.get(label)
            said = Value(str(answer.value)) if answer else None
            mark = MARKS[marks[columns[label]]] if label in columns else None
            if said in (Value.PRESENT, Value.UNCERTAIN) or mark is Mark.PRESENT:
                causes.append(Cause(label, said, mark, (case_id, label) in failing))
        causes.sort(key=lambda cause: not cause.fails)
        found[case_id, NO_FINDING] = tuple(causes)
    return found
