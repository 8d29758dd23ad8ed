"""A judge's draft against its parent: is it nearer to what experts count.

What is right of a pair and a category is the median count of the experts; where that
is no whole number, they do not decide. A count that is not it is wrong, and of two
wrong ones the nearer is better (`loop.evaluate.distances`). Of several draws the median
counts. In a pair that a verdict targets or pins, what its reviewer counts is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import Status
from loop.evaluate.distances import DistanceTable, Mask, count_distances
from loop.evaluate.protocol import read_protocol
from loop.judge.counts import JudgeCounts
from loop.judge.judge_evaluation import expert_median, expert_table, run_counts
from loop.labels.expert_ratings import ExpertRatings, read_ratings_of
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.judged import error_field
from loop.prompts.version import PromptVersion
from loop.review.revise.changes import CaseChange, Changes, check_labels
from loop.review.revise.check import (
    Check,
    CheckTarget,
    TargetOutcome,
    Unanswered,
    anchors_with,
    compare_distances,
    hold_anchor,
)
from loop.review.submit import Anchor
from loop.review.verdict import Verdict
from loop.run.store import Store
from loop.score.experts.error_tables import SIGNIFICANCES


class JudgeRuns(NamedTuple):
    """The draws of one version, on one cohort."""

    version: PromptVersion
    runs: Sequence[str]


class JudgeMeasured(NamedTuple):
    """What a check of a judge's draft showed."""

    check: Check
    changes: Changes
    ratings: ExpertRatings


def measure_judge(
    workspace: WorkspacePaths,
    store: Store,
    cohort: str,
    before: JudgeRuns,
    after: JudgeRuns,
    verdicts: Sequence[Verdict] = (),
    anchors: Sequence[Anchor] = (),
) -> JudgeMeasured:
    """Return the check of a judge's draft against its parent.

    Parameters
    ----------
    verdicts
        Those that the draft answers: their pairs are its targets.
    anchors
        What must stay right.

    Raises
    ------
    DataError
        Nobody marked errors in the cohort, or the two versions ask for no category in
        common.
    StoreError
        The store cannot be read.
    """
    given = read_ratings_of(workspace, cohort)
    experts = expert_table(workspace, given)
    if experts is None:
        raise DataError(
            f"nobody marked errors in cohort {cohort}, so nothing says which counts "
            "are right. Add them with `ranloop cohort ratings NAME --errors FILE`."
        )
    contracts = [get_contract(one.version.contract) for one in (before, after)]
    for one, contract in zip((before, after), contracts, strict=True):
        if not contract.counts_errors:
            raise DataError(
                f"{one.version.ref} counts no errors by category, so nothing says "
                "which of its answers are right. Revise a judge that does."
            )
    asked = [name for name in before.version.labels if name in after.version.labels]
    if not asked:
        raise DataError(
            f"{after.version.ref} asks for no category that {before.version.ref} asks "
            "for, so the two cannot be compared. Keep one of them."
        )
    plain = not all(one.weighs for one in contracts)
    weights = ("",) if plain else SIGNIFICANCES
    fields = [(name, weight) for weight in weights for name in asked]
    right = np.column_stack([expert_median(experts, *field) for field in fields])
    rows = {case: row for row, case in enumerate(given.case_ids)}
    _overrule(right, rows, fields, verdicts)
    counted = [_median(store, one, fields) for one in (before, after)]
    table = DistanceTable(
        fields=tuple(error_field(*field) for field in fields),
        before=count_distances(right, counted[0]),
        after=count_distances(right, counted[1]),
        positive=np.asarray(right > 0),
        answered=~np.isnan(counted[0]) & ~np.isnan(counted[1]),
    )
    protocol = read_protocol(workspace)
    was, now = (float(np.isinf(one).any(axis=1).mean()) for one in counted)
    counts = _CountTable(
        rows,
        fields,
        right,
        counted[0],
        counted[1],
    )
    fates = [(one, counts.anchor_outcome(one)) for one in anchors]
    check = Check(
        cases=len(right),
        targets=tuple(counts.targets(verdicts)),
        broken_anchors=anchors_with(fates, TargetOutcome.WORSE),
        unanswered_anchors=anchors_with(fates, TargetOutcome.UNANSWERED),
        missing_anchors=anchors_with(fates, TargetOutcome.GONE),
        labels=check_labels(table, protocol),
        unanswered=Unanswered(was, now, protocol.max_unanswered),
    )
    changes = _changes(given.case_ids, table, right, *counted)
    return JudgeMeasured(check, changes, given)


class _CountTable(NamedTuple):
    """Counts of both versions and what is right, looked up by pair and category."""

    rows: Mapping[str, int]
    """Case id to row."""

    fields: Sequence[tuple[str, str]]
    """Category and weight of each column; the weight is empty where errors are not
    weighed."""

    right: NDArray[np.float64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]

    def targets(self, verdicts: Sequence[Verdict]) -> Iterator[CheckTarget]:
        """Yield what became of each targeted pair and category."""
        wanted: dict[tuple[str, str], tuple[int, int] | None] = {}
        for verdict in verdicts:
            for pair in verdict.targets:
                wanted[pair] = verdict.correct_counts or wanted.get(pair)
        for (case_id, category), counts in wanted.items():
            yield self._target(case_id, category, counts)

    def anchor_outcome(self, anchor: Anchor) -> TargetOutcome:
        """Return `WORSE` for a pinned pair that was right and is not any more."""
        found = self._find(anchor.case_id, anchor.label, anchor.counts)
        if found is None:
            return TargetOutcome.GONE
        return hold_anchor(found.was, found.now, answered=found.answered)

    def _find(
        self, case_id: str, category: str, counts: tuple[int, int] | None
    ) -> _CountedCategory | None:
        """Return the counts of a pair and category; None where one is not here."""
        row = self.rows.get(case_id)
        columns = [n for n, (name, _) in enumerate(self.fields) if name == category]
        if row is None or not columns:
            return None
        right = self.right[row, columns]
        if counts is not None:
            right = np.array(counts if len(columns) > 1 else [sum(counts)], dtype=float)
        before, after = self.before[row, columns], self.after[row, columns]
        return _CountedCategory(
            [self.fields[n][1] for n in columns], right, before, after
        )

    def _target(
        self, case_id: str, category: str, counts: tuple[int, int] | None
    ) -> CheckTarget:
        found = self._find(case_id, category, counts)
        if found is None:
            return CheckTarget(
                case_id=case_id,
                label=category,
                expected="",
                before="",
                after="",
                progress=TargetOutcome.GONE,
            )
        return CheckTarget(
            case_id=case_id,
            label=category,
            expected=found.words(found.right),
            before=found.words(found.before),
            after=found.words(found.after),
            progress=compare_distances(found.was, found.now, answered=found.answered),
        )


class _CountedCategory(NamedTuple):
    """One pair and category, by weight."""

    weights: Sequence[str]
    right: NDArray[np.float64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]

    @property
    def was(self) -> float:
        """How far the parent's counts are from right; NaN where nothing says that."""
        return float(count_distances(self.right, self.before).sum())

    @property
    def now(self) -> float:
        """The same of the draft's."""
        return float(count_distances(self.right, self.after).sum())

    @property
    def answered(self) -> bool:
        """Whether the engine failed neither time."""
        return not np.isnan([self.before, self.after]).any()

    def words(self, counts: NDArray[np.float64]) -> str:
        """Return counts as people read them; empty where they are not known."""
        if np.isnan(counts).any():
            return ""
        if np.isinf(counts).any():
            return "unparsed"
        said = zip(counts, self.weights, strict=True)
        return ", ".join(f"{int(count)} {weight}".rstrip() for count, weight in said)


def _overrule(
    right: NDArray[np.float64],
    rows: Mapping[str, int],
    fields: Sequence[tuple[str, str]],
    verdicts: Sequence[Verdict],
) -> None:
    """Put what verdicts count in place of what the experts do, where they say so.

    Nobody corrects what raters say, so that a reviewer who is right against them could
    never put a judge right otherwise.
    """
    for verdict in verdicts:
        counts = verdict.correct_counts
        for case_id, category in verdict.targets if counts is not None else ():
            columns = [n for n, (name, _) in enumerate(fields) if name == category]
            if case_id in rows and columns and counts is not None:
                wanted = counts if len(columns) > 1 else (sum(counts),)
                right[rows[case_id], columns] = wanted


def _median(
    store: Store, judged: JudgeRuns, fields: Sequence[tuple[str, str]]
) -> NDArray[np.float64]:
    """Return the counts of a version, the median over its draws.

    Infinite where most draws are not readable; NaN where the engine failed in one.
    """
    draws = [
        _counts(run_counts(store, run, judged.version), fields)
        for run in store.find_runs(ids=judged.runs)
    ]
    found: NDArray[np.float64] = np.quantile(
        np.stack(draws), 0.5, axis=0, method="higher"
    )
    return found


def _counts(
    counts: JudgeCounts, fields: Sequence[tuple[str, str]]
) -> NDArray[np.float64]:
    sides = {
        SIGNIFICANCES[0]: counts.significant,
        SIGNIFICANCES[1]: counts.insignificant,
        "": counts.by_weight.sum(axis=-1),
    }
    columns = [
        sides[weight][:, counts.categories.index(name)] for name, weight in fields
    ]
    table = np.column_stack(columns)
    read = np.array([one is Status.ANSWERED for one in counts.statuses])
    failed = np.array([one is Status.ENGINE_FAILED for one in counts.statuses])
    table[~read & ~failed] = np.inf
    # An answer that says nothing of a field says nothing that is right of it.
    table[read] = np.nan_to_num(table[read], nan=np.inf)
    return table


def _changes(
    case_ids: Sequence[str],
    table: DistanceTable,
    right: NDArray[np.float64],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
) -> Changes:
    found = table.sort(table.judged)
    moved = np.asarray(before != after)

    def rows(where: Mask) -> Iterator[CaseChange]:
        for row, column in np.argwhere(where):
            yield CaseChange(
                case_id=case_ids[row],
                label=table.fields[column],
                expected=_words(right[row, column]),
                before=_words(before[row, column]),
                after=_words(after[row, column]),
            )

    return Changes(
        fixed=tuple(rows(found.fixed)),
        broken=tuple(rows(found.broken)),
        unchanged=tuple(rows(found.still_wrong)),
        unjudged=tuple(rows(table.answered & np.isnan(right) & moved)),
        kept=int(found.still_right.sum()),
        unanswered=int((~table.answered).sum()),
    )


def _words(count: float) -> str:
    if np.isnan(count):
        return ""
    return "unparsed" if np.isinf(count) else str(int(count))
