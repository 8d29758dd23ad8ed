"""The queue of one run: built once, then marked with progress and filtered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from loop.core.paths import Workspace
from loop.core.records import Span, Value
from loop.evaluate.failures import ALL_LABELS, Failure, find_failures, open_for_review
from loop.evaluate.pairs import align
from loop.evaluate.protocol import read_protocol
from loop.labels.reference import read_reference
from loop.labels.taxonomy import read_taxonomy
from loop.review.queue.beside import choose_others, count_votes, read_others
from loop.review.queue.records import (
    OtherAnswer,
    QueueFilter,
    QueueItem,
    RunLine,
    Section,
)
from loop.review.queue.texts import CaseTexts, find_sections
from loop.review.queue.value import Worth, arrange
from loop.run.manifest import find_run
from loop.run.store import Store

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The failing pairs of one run, in the order to review them."""

    line: RunLine
    items: tuple[QueueItem, ...]
    texts: CaseTexts
    """Texts of the failing cases, read when first wanted."""

    def filtered(self, wanted: QueueFilter) -> tuple[QueueItem, ...]:
        """Return what `wanted` lets through, in the order of the queue.

        Raises
        ------
        DataError
            A text is looked for and the texts are not on this machine.
        """
        if wanted == QueueFilter():
            return self.items
        cases = self.texts.find(wanted.text) if wanted.text else None
        return tuple(
            item
            for item in self.items
            if (cases is None or item.case_id in cases) and _fits(item, wanted)
        )

    def find(self, case_id: str, label: str) -> QueueItem | None:
        """Return the item of one case and label, or None when it does not fail."""
        wanted = (case_id, label)
        return next((i for i in self.items if (i.case_id, i.label) == wanted), None)


def build_queue(
    workspace: Workspace, store: Store, run_ref: str, *, reference: int | None = None
) -> Queue:
    """Return the failing cases and labels of a run, those worth most first.

    See `loop.review.queue.value` for the order. Progress is not yet marked: see
    `loop.review.queue.progress`.

    Parameters
    ----------
    run_ref
        Run id, unique prefix, ``latest`` or ``latest:<prompt>``.
    reference
        Number of the reference version; None for the newest.

    Raises
    ------
    DataError
        The run does not exist, the votes are not as recorded, or the cohort is a
        holdout: its cases must stay unseen.
    """
    record = find_run(workspace, run_ref)
    cohort = open_for_review(workspace, record.spec.cohort)
    taxonomy = read_taxonomy(workspace.labels)
    standard = read_reference(workspace, cohort.name, reference)
    outcomes = list(store.read_outcomes(record.id))
    failures = list(find_failures(iter(outcomes), standard, taxonomy))
    pairs = {(one.case_id, one.label) for one in failures if one.label != ALL_LABELS}
    others = choose_others(store, record)
    beside = _Beside(
        read_others(store, others, pairs, taxonomy),
        count_votes(workspace, cohort, pairs),
    )
    worth = Worth(align(outcomes, standard, taxonomy), read_protocol(workspace))
    texts = CaseTexts(workspace, cohort.name, {one.case_id for one in failures})
    line = RunLine(
        run_id=record.id,
        cohort=cohort.name,
        prompt=record.spec.prompt,
        reference=standard.number,
        others=tuple(run.id for run in others),
    )
    items = [_item(failure, beside, worth) for failure in failures]
    return Queue(line=line, items=_ordered(line, items, texts), texts=texts)


class _Beside(NamedTuple):
    others: Mapping[Pair, tuple[OtherAnswer, ...]]
    votes: Mapping[Pair, tuple[tuple[Value, int], ...]]


def _item(failure: Failure, beside: _Beside, worth: Worth) -> QueueItem:
    """Return an item that has no place yet."""
    pair = (failure.case_id, failure.label)
    others, votes = beside.others.get(pair, ()), beside.votes.get(pair, ())
    return QueueItem(
        failure=failure,
        place=1,
        reasons=worth.explain(failure, others, votes),
        others=others,
        votes=votes,
    )


def _ordered(
    line: RunLine, items: Sequence[QueueItem], texts: CaseTexts
) -> tuple[QueueItem, ...]:
    """Return the items in their order, with place and sections."""
    failures = [item.failure for item in items]
    sections = _find_sections(failures, texts) if texts.here else {}
    order = arrange(line.run_id, failures, [item.value for item in items])
    return tuple(
        replace(
            items[at],
            place=place,
            audit=audit,
            sections=sections.get((items[at].case_id, items[at].label), ()),
        )
        for place, (at, audit) in enumerate(order, start=1)
    )


def _find_sections(
    failures: Iterable[Failure], texts: CaseTexts
) -> dict[Pair, tuple[Section, ...]]:
    """Return where the evidence of each pair stands; one look at each text."""
    by_case: dict[str, list[tuple[str, Span]]] = {}
    for one in failures:
        by_case.setdefault(one.case_id, []).extend((one.label, s) for s in one.spans)
    found: dict[Pair, dict[Section, None]] = {}
    for case_id, marked in by_case.items():
        if not marked:
            continue
        places = find_sections(texts.read(case_id), [span for _, span in marked])
        for (label, _), section in zip(marked, places, strict=True):
            if section is not None:
                found.setdefault((case_id, label), {})[section] = None
    return {pair: tuple(sections) for pair, sections in found.items()}


def _fits(item: QueueItem, wanted: QueueFilter) -> bool:
    label = item.failure.label
    return (
        (not wanted.labels or label in wanted.labels or label == ALL_LABELS)
        and (not wanted.kinds or item.failure.kind in wanted.kinds)
        and (not wanted.sections or not wanted.sections.isdisjoint(item.sections))
        and (not wanted.reviewers or not wanted.reviewers.isdisjoint(item.reviewers))
        and (not wanted.progress or item.progress in wanted.progress)
        and wanted.reserved in (None, bool(item.reserved_by))
    )
