"""The queue of one run: built once, then marked with progress and filtered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

from loop.core.paths import Workspace
from loop.core.records import Span, Value
from loop.evaluate.failures import ALL_LABELS, Failure, find_failures, open_for_review
from loop.evaluate.pairs import align
from loop.evaluate.protocol import read_protocol
from loop.labels.reference import read_reference
from loop.labels.taxonomy import read_taxonomy
from loop.review.queue.beside import choose_others, count_votes, read_others
from loop.review.queue.derived import find_causes
from loop.review.queue.records import (
    Cause,
    OtherAnswer,
    QueueFilter,
    QueueItem,
    Reasons,
    RightAnswer,
    RunLine,
    TextSection,
)
from loop.review.queue.right import RightDraw, draw_right, spread
from loop.review.queue.texts import CaseTexts, find_sections
from loop.review.queue.value import Worth, arrange
from loop.run.manifest import find_run
from loop.run.store import Store

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The failing pairs of one run, in the order to review them.

    Right answers stand among them where `build_queue` was asked to draw some.
    """

    line: RunLine
    items: tuple[QueueItem, ...]
    texts: CaseTexts
    """Texts of the cases in it, read when first wanted."""

    index: QueueIndex
    """Where each pair stands; the same however far the review is."""

    right_total: int = 0
    """How many right answers those in it were drawn from; 0 where none was drawn."""

    @property
    def failing(self) -> tuple[QueueItem, ...]:
        """The failing pairs alone."""
        if not self.right_total:
            return self.items
        return tuple(item for item in self.items if not item.right)

    def filtered(self, wanted: QueueFilter) -> tuple[QueueItem, ...]:
        """Return what `wanted` lets through, in the order of the queue.

        Raises
        ------
        DataError
            A text is looked for and the texts are not on this machine.
        """
        if wanted == QueueFilter():
            return self.items
        fixed = replace(
            wanted, reviewers=frozenset(), progress=frozenset(), reserved=None
        )
        if fixed == QueueFilter():
            items: Iterable[QueueItem] = self.items
        else:
            places = self.index.fitting(fixed, lambda: self._find_fitting(fixed))
            items = (self.items[at] for at in places)
        if fixed == wanted:
            return tuple(items)
        return tuple(item for item in items if _stands_at(item, wanted))

    def _find_fitting(self, wanted: QueueFilter) -> tuple[int, ...]:
        """Return the indices of what fits whatever was said of it."""
        cases = self.texts.find(wanted.text) if wanted.text else None
        return tuple(
            at
            for at, item in enumerate(self.items)
            if (cases is None or item.case_id in cases) and _fits(item, wanted)
        )

    def find(self, case_id: str, label: str) -> QueueItem | None:
        """Return the item of one case and label, or None when it is not there."""
        at = self.index.pairs.get((case_id, label))
        return None if at is None else self.items[at]


class QueueIndex:
    """What is found by case, and what filters found last; never what was said."""

    _MOST = 32
    """Filters whose pairs are kept."""

    def __init__(self, items: Sequence[QueueItem]) -> None:
        self.pairs: Mapping[Pair, int] = {
            (item.case_id, item.label): at for at, item in enumerate(items)
        }
        self.cases: dict[str, list[int]] = {}
        """Case id to the indices of its pairs."""

        for at, item in enumerate(items):
            self.cases.setdefault(item.case_id, []).append(at)
        self._fitting: OrderedDict[QueueFilter, tuple[int, ...]] = OrderedDict()
        self._lock = Lock()

    def fitting(
        self, wanted: QueueFilter, find: Callable[[], tuple[int, ...]]
    ) -> tuple[int, ...]:
        """Return the indices that `find` found for a filter, now or before."""
        with self._lock:
            known = self._fitting.get(wanted)
        if known is None:
            known = find()
        with self._lock:
            self._fitting[wanted] = known
            self._fitting.move_to_end(wanted)
            while len(self._fitting) > self._MOST:
                self._fitting.popitem(last=False)
        return known


def build_queue(
    workspace: Workspace,
    store: Store,
    run_ref: str,
    *,
    reference: int | None = None,
    right_every: int = 0,
) -> Queue:
    """Return the failing cases and labels of a run, those worth most first.

    See `loop.review.queue.value` for the order, `loop.review.queue.right` for the right
    answers that may stand among them. Progress is not yet marked: see
    `loop.review.queue.progress`.

    Parameters
    ----------
    run_ref
        Run id, unique prefix, ``latest`` or ``latest:<prompt>``.
    reference
        Number of the reference version; None for the newest.
    right_every
        Failing pairs for each right answer among them; 0 for failing pairs alone.

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
    aligned = align(outcomes, standard, taxonomy)
    drawn = RightDraw((), 0)
    if right_every:
        drawn = draw_right(
            record.spec.digest,
            aligned,
            outcomes,
            failing=len(failures),
            every=right_every,
        )
    shown: list[Failure | RightAnswer] = [*failures, *drawn.answers]
    pairs = {(one.case_id, one.label) for one in shown if one.label != ALL_LABELS}
    others = choose_others(store, record)
    beside = _Beside(
        read_others(store, others, pairs, taxonomy),
        count_votes(workspace, cohort, pairs),
    )
    worth = Worth(aligned, read_protocol(workspace))
    texts = CaseTexts(workspace, cohort.name, {one.case_id for one in shown})
    line = RunLine(
        run_id=record.id,
        cohort=cohort.name,
        prompt=record.spec.prompt,
        reference=standard.number,
        others=tuple(run.id for run in others),
    )
    causes = find_causes(outcomes, failures, standard, taxonomy)
    failing = [
        _item(one, beside, worth, causes.get((one.case_id, one.label), ()))
        for one in failures
    ]
    reasons = _explain_draw(drawn.total, right_every)
    right = [_right_item(one, beside, reasons) for one in drawn.answers]
    items = _placed(spread(_ordered(record.spec.digest, failing), right), texts)
    return Queue(
        line=line,
        items=items,
        texts=texts,
        index=QueueIndex(items),
        right_total=drawn.total if right else 0,
    )


class _Beside(NamedTuple):
    others: Mapping[Pair, tuple[OtherAnswer, ...]]
    votes: Mapping[Pair, tuple[tuple[Value, int], ...]]


def _item(
    failure: Failure, beside: _Beside, worth: Worth, causes: tuple[Cause, ...]
) -> QueueItem:
    """Return an item that has no place yet."""
    pair = (failure.case_id, failure.label)
    others, votes = beside.others.get(pair, ()), beside.votes.get(pair, ())
    return QueueItem(
        failure=failure,
        place=1,
        reasons=worth.explain(failure, others, votes),
        others=others,
        votes=votes,
        causes=causes,
    )


def _explain_draw(total: int, every: int) -> Reasons:
    """Return why a right answer is there: nothing but chance, and the share of it."""
    share = f"1 for every {every} errors"
    return Reasons(words=(f"drawn at random among {total:,} right answers ({share})",))


def _right_item(answer: RightAnswer, beside: _Beside, reasons: Reasons) -> QueueItem:
    """Return an item that has no place yet."""
    pair = (answer.case_id, answer.label)
    return QueueItem(
        failure=answer,
        place=1,
        reasons=reasons,
        others=beside.others.get(pair, ()),
        votes=beside.votes.get(pair, ()),
    )


def _ordered(seed: str, items: Sequence[QueueItem]) -> list[QueueItem]:
    """Return failing items in their order, with what belongs to the random share."""
    order = arrange(seed, items, [item.value for item in items])
    return [replace(items[at], audit=audit) for at, audit in order]


def _placed(items: Sequence[QueueItem], texts: CaseTexts) -> tuple[QueueItem, ...]:
    """Return the items, in their order, with place and sections."""
    found = [item.failure for item in items]
    sections = _find_sections(found, texts) if texts.here else {}
    return tuple(
        replace(
            item,
            place=place,
            sections=sections.get((item.case_id, item.label), ()),
        )
        for place, item in enumerate(items, start=1)
    )


def _find_sections(
    failures: Iterable[Failure | RightAnswer], texts: CaseTexts
) -> dict[Pair, tuple[TextSection, ...]]:
    """Return where the evidence of each pair stands; one look at each text."""
    by_case: dict[str, list[tuple[str, Span]]] = {}
    for one in failures:
        by_case.setdefault(one.case_id, []).extend((one.label, s) for s in one.spans)
    found: dict[Pair, dict[TextSection, None]] = {}
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
    )


def _stands_at(item: QueueItem, wanted: QueueFilter) -> bool:
    return (
        (not wanted.reviewers or not wanted.reviewers.isdisjoint(item.reviewers))
        and (not wanted.progress or item.progress in wanted.progress)
        and wanted.reserved in (None, bool(item.reserved_by))
    )
