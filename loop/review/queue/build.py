"""The queue of one run: built once, then marked with progress and filtered."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark, Outcome, Span, Status, Value
from loop.core.safe_text import quoted
from loop.evaluate.align import align
from loop.evaluate.failures import ALL_LABELS, Failure, find_failures, open_for_review
from loop.evaluate.protocol import read_protocol
from loop.labels.ballots import votes_path
from loop.labels.cohort import (
    Cohort,
    has_texts,
    iter_items,
    read_cohort,
    read_record,
    single_report,
)
from loop.labels.importing.report_sections import split_sections
from loop.labels.reference import MARKS, Reference, read_reference
from loop.labels.taxonomy import (
    NO_FINDING,
    SUPPORT_DEVICES,
    NoFindingPolicy,
    Taxonomy,
    read_taxonomy,
)
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
from loop.review.queue.value import RightDraw, Worth, arrange, draw_right, spread
from loop.run.manifest import find_run
from loop.run.store import RunRecord, Store

Pair = tuple[str, str]

OTHERS = 4
"""Runs that are read besides the one under review."""


def choose_others(store: Store, record: RunRecord) -> tuple[RunRecord, ...]:
    """Return the finished runs to compare with: at most `OTHERS`.

    Same prompt name, cases and engine. First the repeats of the same version, then
    the newest run of each other version or draft, newest first.
    """
    spec = record.spec
    name = spec.prompt.partition("@")[0]
    repeats: dict[int, RunRecord] = {}
    versions: dict[str, RunRecord] = {}
    for run in store.find_runs(finished=True):
        other = run.spec
        same = (spec.cohort, spec.cohort_digest, spec.engine, spec.limit)
        if (other.cohort, other.cohort_digest, other.engine, other.limit) != same:
            continue
        if other.prompt_digest == spec.prompt_digest:
            if other.draw != spec.draw:
                repeats.setdefault(other.draw, run)
        elif other.prompt.partition("@")[0] == name and not other.draw:
            versions.setdefault(other.prompt_digest, run)
    by_draw = [repeats[draw] for draw in sorted(repeats)]
    return (*by_draw, *versions.values())[:OTHERS]


def read_others(
    store: Store, runs: Sequence[RunRecord], pairs: Collection[Pair], taxonomy: Taxonomy
) -> Mapping[Pair, tuple[OtherAnswer, ...]]:
    """Return what each of the runs said of each pair, in the order of `runs`."""
    wanted: dict[str, list[str]] = {}
    for case_id, label in pairs:
        wanted.setdefault(case_id, []).append(label)
    found: dict[Pair, list[OtherAnswer]] = {}
    for run in runs:
        facts = (run.id, run.spec.prompt, run.spec.draw)
        for outcome in store.read_outcomes(run.id):
            for label in wanted.get(outcome.item_id, ()):
                answer = OtherAnswer(*facts, _said(outcome, label, taxonomy))
                found.setdefault((outcome.item_id, label), []).append(answer)
    return {pair: tuple(answers) for pair, answers in found.items()}


def _said(outcome: Outcome, label: str, taxonomy: Taxonomy) -> Value | None:
    if outcome.status is not Status.ANSWERED:
        return None
    if label == NO_FINDING:
        values = {key: Value(str(one.value)) for key, one in outcome.fields.items()}
        return taxonomy.derive_no_finding(values)
    answer = outcome.fields.get(label)
    return None if answer is None else Value(str(answer.value))


def count_votes(
    workspace: WorkspacePaths, cohort: Cohort, pairs: Collection[Pair]
) -> Mapping[Pair, tuple[tuple[Value, int], ...]]:
    """Return how many readers said what of each pair; empty for a cohort without.

    The file is believed only as the ledger recorded it, so it has the one form that
    ranloop writes.

    Raises
    ------
    DataError
        The votes were changed or removed.
    """
    path, recorded = (
        votes_path(workspace, cohort.name),
        read_record(workspace, cohort.name).votes,
    )
    if recorded is None:
        return {}
    raw = path.read_bytes() if path.is_file() else b""
    if digest_bytes(raw) != recorded:
        raise DataError(
            f"{path} is not what the ledger recorded ({recorded[:12]}). Restore it "
            "from version control or a backup."
        )
    rows = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""))
    next(rows, None)
    wanted = frozenset(pairs)
    counts: dict[Pair, Counter[str]] = {}
    for _, case_id, label, value in rows:
        if (case_id, label) in wanted:
            counts.setdefault((case_id, label), Counter())[value] += 1
    return {pair: _in_order(said) for pair, said in counts.items()}


def _in_order(said: Mapping[str, int]) -> tuple[tuple[Value, int], ...]:
    return tuple((value, said[value.value]) for value in Value if value.value in said)


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


_MARKER = 0xF0000
"""First of the private-use characters that mark a place in a text."""


class CaseTexts:
    """The texts of some cases of a cohort; may be asked from any thread."""

    def __init__(
        self, workspace: WorkspacePaths, cohort: str, case_ids: Collection[str]
    ) -> None:
        self._workspace = workspace
        self._cohort = cohort
        self._wanted = frozenset(case_ids)
        self._lock = Lock()
        self._texts: Mapping[str, str] | None = None
        self._folded: Mapping[str, str] | None = None

    @property
    def here(self) -> bool:
        """Whether the texts of the cohort are on this machine."""
        return has_texts(self._workspace, self._cohort)

    def read(self, case_id: str) -> str:
        """Return the text of one of the cases, for display only.

        Raises
        ------
        DataError
            It is not one of these cases, or the texts are not on this machine.
        """
        text = self._read().get(case_id)
        if text is None:
            raise DataError(
                f"case {quoted(case_id)} is not among the failing cases of cohort "
                f"{self._cohort}. Choose one of the queue."
            )
        return text

    def find(self, words: str) -> frozenset[str]:
        """Return the cases whose text or id holds `words`, in any case.

        The words are no pattern: each character stands for itself, after both sides
        are composed (NFC).

        Raises
        ------
        DataError
            No id holds them, and the texts are not on this machine.
        """
        wanted = _fold(words)
        named = frozenset(key for key in self._wanted if wanted in _fold(key))
        if named and not self.here:
            return named
        texts = self._read()
        with self._lock:
            if self._folded is None:
                self._folded = {key: _fold(text) for key, text in texts.items()}
        return named | {key for key, text in self._folded.items() if wanted in text}

    def _read(self) -> Mapping[str, str]:
        with self._lock:
            if self._texts is None:
                cohort = read_cohort(self._workspace, self._cohort)
                self._texts = {
                    item.id: single_report(item)
                    for item in iter_items(self._workspace, cohort)
                    if item.id in self._wanted
                }
            return self._texts


def find_sections(text: str, spans: Sequence[Span]) -> list[TextSection | None]:
    """Return the section that each span begins in; None in a text without headings.

    Each place is marked in the text before it is taken apart, so that the same words
    in two sections are told from each other.
    """
    marked, end = [], len(text)
    for number, span in sorted(
        enumerate(spans), key=lambda row: row[1].start, reverse=True
    ):
        start = min(span.start, end)
        marked += [text[start:end], chr(_MARKER + number)]
        end = start
    parts = split_sections("".join(reversed([*marked, text[:end]])))
    if not parts.headed:
        return [None] * len(spans)
    return [_section(parts.findings, parts.impression, n) for n in range(len(spans))]


def _section(findings: str, impression: str, number: int) -> TextSection:
    marker = chr(_MARKER + number)
    if marker in impression:
        return TextSection.IMPRESSION
    return TextSection.FINDINGS if marker in findings else TextSection.OTHER


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


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
    workspace: WorkspacePaths,
    store: Store,
    run_ref: str,
    *,
    reference: int | None = None,
    right_every: int = 0,
) -> Queue:
    """Return the failing cases and labels of a run, those worth most first.

    See `loop.review.queue.value` for the order, `loop.review.queue.value` for the right
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
    worth = Worth(aligned, read_protocol(workspace), cohort.not_comparable)
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
    order = arrange(seed, items, [item.reasons.rank for item in items])
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
        and wanted.draws in (None, item.reasons.persistence)
        and (not wanted.cases or item.case_id in wanted.cases)
    )


def _stands_at(item: QueueItem, wanted: QueueFilter) -> bool:
    return (
        (not wanted.reviewers or not wanted.reviewers.isdisjoint(item.reviewers))
        and (not wanted.progress or item.progress in wanted.progress)
        and wanted.reserved in (None, bool(item.reserved_by))
    )
