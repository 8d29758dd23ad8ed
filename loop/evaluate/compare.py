"""Two runs on the same cases: what changed, and whether anything got worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import UncertainAnswers, ValueCode
from loop.evaluate.align import AlignedPairs, Codes, count_uncertain
from loop.evaluate.distances import (
    DistanceTable,
    Mask,
    Transitions,
    value_distances,
)
from loop.evaluate.gates import GateVerdict, combine_verdicts
from loop.evaluate.inputs import Inputs, read_inputs
from loop.evaluate.measure import comparable_labels, resampling_units
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import CohortFacts, Method, RunFacts
from loop.run.spec import read_spec, undrawn
from loop.stats.bootstrap import bootstrap_f1_difference
from loop.stats.confusion import Confusion, average_f1, count_confusions
from loop.stats.intervals import Interval
from loop.stats.paired import can_be_significant, holm, mcnemar_exact, tango_interval
from loop.stats.resampling import Bootstrap


class PairedAnswers(NamedTuple):
    """What two runs said of the same cases, in one order: arrays (cases, labels).

    Which cases count depends on the question, so that there are three masks.
    """

    case_ids: tuple[str, ...]
    labels: tuple[str, ...]
    reference: Codes
    """1, 0, or -1 for excluded."""

    before: Codes
    after: Codes

    def only(self, labels: Mask) -> PairedAnswers:
        """Return the same of some labels, chosen by a mask of shape (labels,)."""
        return self._replace(
            labels=tuple(
                one for one, kept in zip(self.labels, labels, strict=True) if kept
            ),
            reference=self.reference[:, labels],
            before=self.before[:, labels],
            after=self.after[:, labels],
        )

    def counted(self, policy: UncertainAnswers) -> PairedAnswers:
        """Return the same with uncertain answers as `policy` counts them."""
        before, after = (
            np.where(
                answers == ValueCode.UNCERTAIN,
                count_uncertain(answers, self.reference, policy),
                answers,
            ).astype(np.int8)
            for answers in (self.before, self.after)
        )
        return self._replace(before=before, after=after)

    @property
    def distances(self) -> DistanceTable:
        """How far both answers are from the reference."""
        return DistanceTable(
            fields=self.labels,
            before=value_distances(self.reference, self.before),
            after=value_distances(self.reference, self.after),
            positive=np.asarray(self.reference == ValueCode.PRESENT),
            answered=self.answered,
        )

    @property
    def decided(self) -> Mask:
        """Where the reference and both runs decide: what agreement is taken over."""
        both = (self.before >= 0) & (self.after >= 0)
        return np.asarray((self.reference >= 0) & both)

    @property
    def losable(self) -> Mask:
        """Where a right answer can be lost: the reference and the run before decide.

        What a comparison judges. A failed engine gave no answer, right or wrong, so
        its pairs are left out.
        """
        answered = self.after != ValueCode.FAILED
        return np.asarray((self.reference >= 0) & (self.before >= 0) & answered)

    @property
    def judged(self) -> Mask:
        """Where the reference decides and the engine failed in neither run.

        What the check of a draft judges: there an uncertain or unreadable answer
        before is a wrong one too, which the draft may have put right.
        """
        return np.asarray((self.reference >= 0) & self.answered)

    @property
    def answered(self) -> Mask:
        """Where the engine failed in neither run."""
        failed = (self.before == ValueCode.FAILED) | (self.after == ValueCode.FAILED)
        return np.asarray(~failed)


def pair_answers(before: AlignedPairs, after: AlignedPairs) -> PairedAnswers:
    """Return what both runs said of the cases that both hold, in the first's order."""
    where = {case: row for row, case in enumerate(after.case_ids)}
    case_ids = tuple(case for case in before.case_ids if case in where)
    left = np.flatnonzero([case in where for case in before.case_ids])
    right = np.array([where[case] for case in case_ids], dtype=np.int64)
    return PairedAnswers(
        case_ids=case_ids,
        labels=after.labels,
        reference=after.binary_reference[right],
        before=before.predicted[left],
        after=after.predicted[right],
    )


class SharedAnswers(NamedTuple):
    """What several runs said of the cases that all of them hold, in one order."""

    case_ids: tuple[str, ...]
    labels: tuple[str, ...]
    reference: Codes
    """Marks as `ValueCode`, shape (cases, labels)."""

    answers: tuple[Codes, ...]
    """Of each run, as `ValueCode`, shape (cases, labels)."""

    @property
    def differing(self) -> Mask:
        """Where not all runs say the same, whatever the reference says."""
        first, *others = self.answers
        different = [one != first for one in others]
        return np.asarray(np.any(different, axis=0), dtype=np.bool_)


def share_answers(runs: Sequence[AlignedPairs]) -> SharedAnswers:
    """Return what all of `runs` said of the cases that each of them holds.

    Raises
    ------
    ValueError
        There are fewer than two runs.
    """
    if len(runs) < 2:
        raise ValueError(f"runs are compared from two on, got {len(runs)}")
    first = runs[0]
    held = [{case: row for row, case in enumerate(one.case_ids)} for one in runs]
    ids = [case for case in first.case_ids if all(case in one for one in held[1:])]
    rows = [np.array([one[case] for case in ids], dtype=np.int64) for one in held]
    return SharedAnswers(
        case_ids=tuple(ids),
        labels=first.labels,
        reference=first.reference[rows[0]],
        answers=tuple(
            one.predicted[place] for one, place in zip(runs, rows, strict=True)
        ),
    )


class AnswerDifference(NamedTuple):
    """What several runs said of one case and label, not all of them the same."""

    case_id: str
    label: str
    reference: ValueCode
    answers: tuple[ValueCode, ...]
    """Of each run, in their order."""


def list_differences(
    shared: SharedAnswers, label: str = "", *, start: int = 0, most: int | None = None
) -> list[AnswerDifference]:
    """Return the cases on which runs differ, in the order of the cases.

    Parameters
    ----------
    label
        Only about this label; empty for every one, each in its own row.
    start, most
        How many to pass over, and how many to return at most; None for all.
    """
    differing = shared.differing
    if label:
        differing = differing & (np.array(shared.labels) == label)[None, :]
    rows, columns = np.nonzero(differing)
    part = slice(start, None if most is None else start + most)
    return [
        AnswerDifference(
            shared.case_ids[row],
            shared.labels[column],
            ValueCode(int(shared.reference[row, column])),
            tuple(ValueCode(int(codes[row, column])) for codes in shared.answers),
        )
        for row, column in zip(rows[part], columns[part], strict=True)
    ]


def sort_answers(answers: PairedAnswers, cases: Mask) -> Transitions:
    """Return what became of the answers that `cases` holds."""
    return answers.distances.sort(cases)


class ShareDifference(NamedTuple):
    """After minus before of a share, over the same cases."""

    lost: int
    """Right before, wrong after."""

    gained: int
    """Wrong before, right after."""

    n: int

    @property
    def value(self) -> float | None:
        """(gained - lost) / n; None without cases."""
        return (self.gained - self.lost) / self.n if self.n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Whether a share got worse by less than its margin."""

    difference: ShareDifference
    interval: Interval | None
    """Tango score interval at the protocol's confidence."""

    bound: float | None
    """One-sided lower limit of the difference at the same confidence."""

    margin: float
    verdict: GateVerdict
    """PASS: not worse by the margin. FAIL: worse by more than it."""

    reachable: bool = True
    """Whether so many cases could pass at all if nothing had changed."""

    @property
    def tolerable(self) -> GateVerdict:
        """`verdict`; over too few cases to pass, PASS if no more was lost than gained.

        For the share that stands beside another: 30 positives can never show that
        sensitivity fell by less than 0.05, but a loss among them must not be passed.
        """
        if self.reachable or self.verdict is GateVerdict.FAIL:
            return self.verdict
        lost, gained, _ = self.difference
        return GateVerdict.PASS if lost <= gained else GateVerdict.INSUFFICIENT


def measure_regression(
    difference: ShareDifference, margin: float, confidence: float = 0.95
) -> Regression:
    """Return whether a share got worse by less than `margin`.

    The one-sided lower limit of the difference must lie above ``-margin``. That limit
    is the lower end of the two-sided interval at twice the error. A test that finds
    no difference would not show that nothing got worse.

    References
    ----------
    Tango T. Stat Med 1998;17:891-908.
    """
    if not difference.n:
        return Regression(
            difference=difference,
            interval=None,
            bound=None,
            margin=margin,
            verdict=GateVerdict.INSUFFICIENT,
            reachable=False,
        )
    lost, gained, n = difference
    level = 2 * confidence - 1
    one_sided = tango_interval(lost, gained, n, confidence=level)
    verdict = GateVerdict.INSUFFICIENT
    if one_sided.low > -margin:
        verdict = GateVerdict.PASS
    elif one_sided.high < -margin:
        verdict = GateVerdict.FAIL
    return Regression(
        difference=difference,
        interval=tango_interval(lost, gained, n, confidence=confidence),
        bound=one_sided.low,
        margin=margin,
        verdict=verdict,
        reachable=tango_interval(0, 0, n, confidence=level).low > -margin,
    )


class LabelLosses(NamedTuple):
    """Whether one label, or one field of a judge, got worse."""

    accuracy: Regression
    sensitivity: Regression
    """Over the positives alone."""


def measure_losses(
    answers: PairedAnswers, cases: Mask, protocol: Protocol
) -> tuple[LabelLosses, ...]:
    """Return of each label whether it got worse by the protocol's margins.

    Parameters
    ----------
    cases
        Which of the answers count: `PairedAnswers.losable` or `PairedAnswers.judged`.
    """
    return measure_field_losses(answers.distances, cases, protocol)


def measure_field_losses(
    table: DistanceTable, cases: Mask, protocol: Protocol
) -> tuple[LabelLosses, ...]:
    """Return of each field whether it got worse by the protocol's margins.

    An answer is lost that was right and is not any more, whether it became a little
    wrong or very much so.

    Parameters
    ----------
    cases
        Which of the answers count, for example `DistanceTable.judged`.
    """
    margins, confidence = protocol.margins, protocol.confidence
    return tuple(
        LabelLosses(
            measure_regression(overall, margins.accuracy, confidence),
            measure_regression(among_positives, margins.sensitivity, confidence),
        )
        for overall, among_positives in zip(
            _count_differences(table, cases),
            _count_differences(table, cases & table.positive),
            strict=True,
        )
    )


def _count_differences(table: DistanceTable, cases: Mask) -> Iterator[ShareDifference]:
    """Yield the right answers of each field that were lost and gained in `cases`."""
    changes = table.sort(cases)
    for column in range(len(table.fields)):
        yield ShareDifference(
            lost=int(changes.broken[:, column].sum()),
            gained=int(changes.fixed[:, column].sum()),
            n=int(cases[:, column].sum()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChange:
    """What changed for one label.

    Fixed and broken count cases decided by the reference and by both runs. Answers
    that turned uncertain or back are listed apart: they are changes of coverage. Only
    `accuracy` and `sensitivity` take a right answer that is no longer given as lost.
    """

    label: str
    name: str
    fixed: tuple[str, ...]
    """Ids of cases wrong before and right after."""

    broken: tuple[str, ...]
    """Ids of cases right before and wrong after."""

    became_uncertain: tuple[str, ...]
    became_decided: tuple[str, ...]
    decided_right: int
    """How many of `became_decided` agree with the reference."""

    became_unanswered: tuple[str, ...]
    """Ids of cases with an answer before and none after."""

    f1_before: float | None
    f1_after: float | None
    p: float
    """Exact McNemar."""

    p_holm: float
    """Corrected over all labels with cases in common that the reference can judge; 1
    for any other."""

    testable: bool
    """Whether so few discordant cases could reach the protocol's alpha at all."""

    accuracy: Regression
    """Over the cases that the reference and the run before decide."""

    sensitivity: Regression
    """The same over the positives among them."""

    judged: bool = True
    """False when the reference leaves the label open or cannot judge it, or neither run
    asks for it."""

    same_engine: bool = True
    """Whether one engine gave both answers."""

    comparable: bool = True
    """Whether the reference can judge the label."""

    @property
    def verdict(self) -> GateVerdict:
        """Whether neither accuracy nor sensitivity got worse by its margin.

        ``INSUFFICIENT`` where another engine answered: that says nothing of the prompt.
        """
        if not self.same_engine:
            return GateVerdict.INSUFFICIENT
        return combine_verdicts((self.accuracy.verdict, self.sensitivity.tolerable))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Run `after` against run `before` on the cases they share."""

    before: RunFacts
    after: RunFacts
    cohort: CohortFacts
    protocol: Protocol
    cases: int
    """Cases in both runs."""

    only_before: int
    only_after: int
    labels: tuple[LabelChange, ...]
    macro_before: float | None
    macro_after: float | None
    macro: Bootstrap
    """Paired bootstrap of macro-F1, after minus before, over the labels that the
    reference can judge."""

    method: Method
    unanswered_before: float = 0.0
    """Largest share, over the labels, of unparsed and failed answers."""

    unanswered_after: float = 0.0
    engine_changes: tuple[str, ...] = ()
    """What differs between the engines of the two runs; empty for one engine."""

    @property
    def warning(self) -> str:
        """What to say before anything else; empty for one engine."""
        if not self.engine_changes:
            return ""
        return (
            "the two runs asked different engines, so that a change may be the "
            f"engine's and not the prompt's: {'; '.join(self.engine_changes)}"
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the two runs cannot be compared, whatever the labels say."""
        engines = (self.warning,) if self.warning else ()
        shares = (("before", self.unanswered_before), ("after", self.unanswered_after))
        return engines + tuple(
            f"the run {which} left {100 * share:.1f} % of a label's answers unparsed "
            f"or failed (at most {100 * self.protocol.max_unanswered:g} % allowed)"
            for which, share in shares
            if share > self.protocol.max_unanswered
        )

    @property
    def verdict(self) -> GateVerdict:
        """Whether no label's accuracy or sensitivity got worse by its margin.

        A label is left out only if the reference leaves it open or cannot judge it, or
        neither run asks for it. ``INSUFFICIENT`` when too many answers are missing on
        either side, or when the two runs asked different engines.
        """
        if self.reasons:
            return GateVerdict.INSUFFICIENT
        return combine_verdicts(
            change.verdict for change in self.labels if change.judged
        )

    @property
    def less_sensitive(self) -> tuple[LabelChange, ...]:
        """Labels that lost more sensitivity than its margin, as observed."""
        return tuple(
            change
            for change in self.labels
            if change.comparable
            and (change.sensitivity.difference.value or 0.0)
            < -change.sensitivity.margin
        )


def compare_runs(
    workspace: WorkspacePaths,
    before: str,
    after: str,
    *,
    reference: int | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Compare two runs on the same cohort against one reference version.

    Raises
    ------
    DataError
        A run does not exist, or the two asked different cohorts.
    """
    left = read_inputs(workspace, before, reference=reference)
    right = read_inputs(workspace, after, reference=reference)
    return compare_inputs(left, right, resamples=resamples, seed=seed)


def _require_same_part(before: Inputs, after: Inputs) -> None:
    """Refuse a run over the first cases beside one over others or all."""
    counts = [len(one.pairs.case_ids) for one in (before, after)]
    limits = [one.run.limit for one in (before, after)]
    if limits[0] != limits[1] and counts[0] != counts[1]:
        raise DataError(
            f"run {before.run.run_id} asked {counts[0]} cases of {before.cohort.name} "
            f"and run {after.run.run_id} asked {counts[1]}, since --limit left cases "
            "out. Run both on the same cases."
        )


def compare_inputs(
    before: Inputs, after: Inputs, *, resamples: int = 2000, seed: int = 0
) -> Comparison:
    """Compare two runs that have been read.

    Raises
    ------
    DataError
        The two asked different cohorts, one of them a part of it, or share no case.
    """
    if before.cohort.digest != after.cohort.digest:
        raise DataError(
            f"run {before.run.run_id} asked cohort {before.cohort.name} and run "
            f"{after.run.run_id} asked {after.cohort.name}. Compare two runs on the "
            "same cohort."
        )
    _require_same_part(before, after)
    shared = pair_answers(before.pairs, after.pairs)
    if not shared.case_ids:
        raise DataError(
            f"runs {before.run.run_id} and {after.run.run_id} have no case in common. "
            "Run both on the same cases."
        )
    patients = dict(zip(before.pairs.case_ids, before.patients, strict=True))
    clusters = resampling_units([patients[case] for case in shared.case_ids])
    names = [after.taxonomy.find(label).name for label in shared.labels]
    engine_changes = find_engine_changes(before.run.manifest, after.run.manifest)
    comparable = comparable_labels(shared.labels, after.not_comparable)
    labels = _changes(shared, names, after.protocol, comparable)
    counted = shared.only(comparable).counted(after.protocol.policy)
    if engine_changes:
        labels = tuple(replace(one, same_engine=False) for one in labels)
    return Comparison(
        before=before.run,
        after=after.run,
        cohort=after.cohort,
        protocol=after.protocol,
        cases=len(shared.case_ids),
        only_before=len(before.pairs.case_ids) - len(shared.case_ids),
        only_after=len(after.pairs.case_ids) - len(shared.case_ids),
        labels=labels,
        macro_before=_macro_f1(counted, counted.before),
        macro_after=_macro_f1(counted, counted.after),
        macro=bootstrap_f1_difference(
            _scored(counted, counted.reference),
            _scored(counted, counted.before),
            _scored(counted, counted.after),
            units=clusters.units,
            resamples=resamples,
            seed=seed,
            confidence=after.protocol.confidence,
        ),
        method=Method(
            unit=clusters.unit,
            units=clusters.total,
            known=clusters.known,
            resamples=resamples,
            seed=seed,
        ),
        unanswered_before=_unanswered(shared, shared.before),
        unanswered_after=_unanswered(shared, shared.after),
        engine_changes=engine_changes,
    )


def find_engine_changes(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return what differs between the engines of two runs, by their manifests.

    Compared are the identity of the engine that answered, also through replays, and
    the parameters it was asked with; the seed and spacing of a further draw are no
    difference. Of two kinds of engine only kind, model and parameters are named: the
    rest has no like. A server that does not tell which weights it holds may have
    changed them unseen.
    """
    then, now = _flatten(_asked(before)), _flatten(_asked(after))
    other_kind = then.get("engine") != now.get("engine")
    return tuple(
        f"{name}: {then.get(name, 'not told')}, then {now.get(name, 'not told')}"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
        if not other_kind or name in _OF_ANY_KIND or name.startswith("parameters.")
    )


_OF_ANY_KIND = frozenset({"engine", "model"})


def _asked(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return who answered, and how they were asked."""
    identity = manifest.get("engine_identity", {})
    while isinstance(source := identity.get("source"), Mapping):
        identity = source
    spec = manifest.get("spec")
    return {**identity, "parameters": undrawn(read_spec(spec)) if spec else {}}


def _flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested data with dotted names."""
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _changes(
    shared: PairedAnswers, names: list[str], protocol: Protocol, comparable: Mask
) -> tuple[LabelChange, ...]:
    """Return the change of every label, Holm-corrected over those that can be judged.

    These are the comparable ones with cases.
    """
    counted = shared.counted(protocol.policy)
    decided = sort_answers(counted, counted.decided)
    counts = zip(decided.broken.sum(axis=0), decided.fixed.sum(axis=0), strict=True)
    tests = [mcnemar_exact(int(lost), int(gained)) for lost, gained in counts]
    with_cases = np.flatnonzero(counted.decided.any(axis=0) & comparable)
    corrected = dict(
        zip(with_cases.tolist(), holm([tests[i] for i in with_cases]), strict=True)
    )
    losses = measure_losses(counted, counted.losable, protocol)
    changes = []
    for column, (label, name) in enumerate(zip(shared.labels, names, strict=True)):
        broken, fixed = decided.broken[:, column], decided.fixed[:, column]
        before, after = shared.before[:, column], shared.after[:, column]
        usable = shared.reference[:, column] >= 0
        to_decided = usable & (before == ValueCode.UNCERTAIN) & (after >= 0)
        right = to_decided & (after == shared.reference[:, column])
        no_more = (before >= ValueCode.UNCERTAIN) & (after < ValueCode.UNCERTAIN)
        changed = int(broken.sum() + fixed.sum())
        changes.append(
            LabelChange(
                label=label,
                name=name,
                fixed=_ids(shared, fixed),
                broken=_ids(shared, broken),
                became_uncertain=_ids(
                    shared, usable & (before >= 0) & (after == ValueCode.UNCERTAIN)
                ),
                became_decided=_ids(shared, to_decided),
                decided_right=int(right.sum()),
                became_unanswered=_ids(shared, usable & no_more),
                f1_before=_f1(counted, counted.before, column),
                f1_after=_f1(counted, counted.after, column),
                p=tests[column],
                p_holm=corrected.get(column, 1.0),
                testable=can_be_significant(changed, protocol.alpha),
                accuracy=losses[column].accuracy,
                sensitivity=losses[column].sensitivity,
                judged=bool(comparable[column])
                and bool(usable.any())
                and (_asks(before) or _asks(after)),
                comparable=bool(comparable[column]),
            )
        )
    return tuple(changes)


def _asks(codes: Codes) -> bool:
    """Whether a run asks for the label of these codes."""
    return bool(
        (codes >= ValueCode.UNCERTAIN).any() or (codes != ValueCode.NOT_ASKED).all()
    )


def _scored(shared: PairedAnswers, codes: Codes) -> Codes:
    """Return `codes` with everything but the pairs decided by all three excluded."""
    return np.where(shared.decided, codes, -1).astype(np.int8)


def _unanswered(shared: PairedAnswers, codes: Codes) -> float:
    """Return the largest share, over the labels, of unparsed and failed answers.

    Of the pairs that the reference decides; a check counts cases instead, in which
    any label lacks an answer.
    """
    usable = shared.reference >= 0
    silent = usable & np.isin(codes, (ValueCode.UNPARSED, ValueCode.FAILED))
    shares = silent.sum(axis=0) / np.maximum(usable.sum(axis=0), 1)
    return float(shares.max(initial=0.0))


def _ids(shared: PairedAnswers, mask: Mask) -> tuple[str, ...]:
    return tuple(shared.case_ids[row] for row in np.flatnonzero(mask))


def _f1(shared: PairedAnswers, codes: Codes, column: int) -> float | None:
    counts = count_confusions(_scored(shared, shared.reference), _scored(shared, codes))
    return Confusion(*(int(count) for count in counts[column])).f1


def _macro_f1(shared: PairedAnswers, codes: Codes) -> float | None:
    counts = count_confusions(_scored(shared, shared.reference), _scored(shared, codes))
    score = float(average_f1(counts, zero_division="skip"))
    return None if np.isnan(score) else score
