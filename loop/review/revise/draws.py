"""A draft against its parent over several draws, for engines with chance in them.

Two questions are kept apart. Is there evidence that something got worse: that blocks
a commit. Is it shown that nothing got worse by its margin: that is reported, since few
cases can show it. The unit is the case, with the mean over its draws; the draws of one
case are no further cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from loop.core.records import ValueCode
from loop.documents.numbers import p_value
from loop.evaluate.align import AlignedPairs
from loop.evaluate.compare import PairedAnswers, pair_answers, sort_answers
from loop.evaluate.flips import Flips, count_flips
from loop.evaluate.protocol import Protocol
from loop.stats.intervals import Interval
from loop.stats.paired import (
    find_attainable,
    holm,
    sign_flip_p,
    spend_alpha,
    stratified_interval,
    tango_interval,
)

Pair = tuple[str, str]
"""A case id and a label."""

POWER = 0.8
"""Chance with which a loss is found that the check calls the least it would find."""


class ShareName(StrEnum):
    """Which cases a share of right answers is taken over."""

    ACCURACY = "accuracy"
    """All that the reference decides."""

    SENSITIVITY = "sensitivity"
    """Those whose reference is present."""

    SPECIFICITY = "specificity"
    """Those whose reference is absent."""


class DrawnVerdict(StrEnum):
    """What several draws say of a label."""

    HARM = "worse"
    """There is evidence that it got worse."""

    NOT_WORSE = "not worse"
    """It is shown not to be worse by its margins."""

    NOT_SHOWN = "not shown"
    """Neither, although so many cases could have shown it."""

    INSUFFICIENT = "INSUFFICIENT"
    """Neither, and so few cases could not have shown it."""


class MeanDifference(NamedTuple):
    """After minus before of a share, each case by the mean over its draws."""

    lost: float
    """Sum over the cases that were right less often, in cases."""

    gained: float
    n: int

    @property
    def value(self) -> float | None:
        """(gained - lost) / n; None without cases."""
        return (self.gained - self.lost) / self.n if self.n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmTest:
    """Whether there is evidence that one share got worse."""

    share: ShareName
    difference: MeanDifference
    p: float | None
    """One-sided, corrected over all tests of the check; None where so few cases
    differ that the test could not have found anything."""

    harmed: bool
    """Whether `p` is at most the protocol's alpha."""

    least: float | None
    """About the smallest loss that would have been found with a chance of `POWER`;
    None where losing every case would not have been."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginTest:
    """Whether one share is shown not to be worse by its margin."""

    share: ShareName
    difference: MeanDifference
    bound: float | None
    """One-sided lower limit of the difference; None without cases."""

    margin: float
    reachable: bool
    """Whether so many cases could show it if nothing had changed."""

    @property
    def shown(self) -> bool:
        """Whether the lower limit lies above the margin."""
        return self.bound is not None and self.bound > -self.margin


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLabel:
    """One label, or several rare ones together, over the draws of a check."""

    label: str
    """Its id; empty for the rare labels together."""

    churn: Flips | None
    """How often the parent's own draws differ; None for one draw, and for the rare
    labels together."""

    harm: tuple[HarmTest, ...]
    margins: tuple[MarginTest, ...]

    @property
    def harmed(self) -> tuple[HarmTest, ...]:
        """The shares that got worse by the evidence."""
        return tuple(one for one in self.harm if one.harmed)

    @property
    def verdict(self) -> DrawnVerdict:
        """What the draws say of it."""
        if self.harmed:
            return DrawnVerdict.HARM
        open_ones = [one for one in self.margins if not one.shown]
        if not open_ones:
            return DrawnVerdict.NOT_WORSE
        if all(one.reachable for one in open_ones):
            return DrawnVerdict.NOT_SHOWN
        return DrawnVerdict.INSUFFICIENT


class TargetDraws(NamedTuple):
    """How often one targeted case was right."""

    case_id: str
    label: str
    before: int
    after: int
    draws: int
    """In which both were answered."""


class Surplus(NamedTuple):
    """Targeted cases: how much more often the draft is right than the parent.

    The cases were chosen because the parent had failed on them, so that asking it again
    puts some right by chance alone; only what the draft adds to that counts.
    """

    before: int
    """Right answers of the parent, over cases and draws."""

    after: int
    readings: int
    """Draws of all targeted cases, of either version."""

    interval: Interval
    """Miettinen and Nurminen's interval of the mean difference, a case a stratum."""

    least: float | None
    """Smallest surplus that could be shown; None if there is no room for one."""

    @property
    def value(self) -> float:
        """After minus before, as a share of the readings."""
        return (self.after - self.before) / self.readings

    @property
    def shown(self) -> bool:
        """Whether the interval lies above zero."""
        return self.interval.low > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawEvidence:
    """What several draws of a parent and a draft showed."""

    draws: int
    """Of either version; each in the same session."""

    labels: tuple[DrawnLabel, ...]
    """Those with a case to judge by."""

    unjudged: tuple[str, ...]
    """The labels without one."""

    rare: tuple[str, ...]
    """Labels with too few positives to show their sensitivity alone."""

    together: DrawnLabel | None
    """The sensitivity of the `rare` labels in one; None if there are not two."""

    tests: int
    """Harm tests in the family: each label's sensitivity and specificity, and the
    sensitivity of the rare labels together."""

    tested: int
    """How many of them could have found anything, by Tarone's rule."""

    alpha: float
    """Level of all tests together at this look."""

    confidence: float
    """One-sided level of the limits at this look."""

    look: int
    """Which look at the draft this is, counted from 1: each spends two thirds of what
    was left of the protocol's levels."""

    targets: tuple[TargetDraws, ...]
    surplus: Surplus | None
    """None where no targeted case could be judged."""

    @property
    def churn(self) -> float | None:
        """Share of answers in which two draws of the parent differ, mean over labels.

        None for one draw.
        """
        rates = [
            one.churn.disagreement
            for one in self.labels
            if one.churn and one.churn.disagreement is not None
        ]
        return sum(rates) / len(rates) if rates else None

    def every(self) -> Iterator[DrawnLabel]:
        """Yield the labels, and the rare ones together."""
        yield from self.labels
        if self.together is not None:
            yield self.together

    def describe_harm(self, names: Mapping[str, str] | None = None) -> Iterator[str]:
        """Say of each share that got worse by how much, and how sure that is.

        Labels are called by `names`, else by their ids.
        """
        for one in self.every():
            for test in one.harmed:
                name = (names or {}).get(one.label, one.label)
                name = name or f"the {len(self.rare)} rare labels together"
                yield (
                    f"{name} ({test.share} {100 * (test.difference.value or 0):+.1f} % "
                    f"of {test.difference.n}, p {p_value(test.p or 0)})"
                )


class DrawnAnswers(NamedTuple):
    """The draws of both versions on the same cases, in the same order of draws."""

    before: tuple[AlignedPairs, ...]
    after: tuple[AlignedPairs, ...]

    def pairs(self) -> Iterator[PairedAnswers]:
        """Yield each draw of the parent with the same draw of the draft."""
        for before, after in zip(self.before, self.after, strict=True):
            yield pair_answers(before, after)


def take_majority(draws: Sequence[AlignedPairs]) -> AlignedPairs:
    """Return the answers that most draws gave.

    A draw that the engine failed on has no say. Where no answer has more draws than
    every other, it is uncertain.
    """
    first = draws[0]
    tables = np.stack([one.predicted for one in draws])
    codes = np.array([code for code in ValueCode if code != ValueCode.FAILED])
    counts = np.stack([(tables == code).sum(axis=0) for code in codes])
    most = counts.max(axis=0)
    chosen = codes[counts.argmax(axis=0)]
    chosen = np.where((counts == most).sum(axis=0) > 1, ValueCode.UNCERTAIN, chosen)
    chosen = np.where(most == 0, ValueCode.FAILED, chosen)
    return replace(first, predicted=chosen.astype(first.predicted.dtype))


def weigh_draws(
    measured: DrawnAnswers,
    expected: Mapping[Pair, ValueCode],
    protocol: Protocol,
    look: int = 1,
) -> DrawEvidence:
    """Return what the draws of both versions show.

    Parameters
    ----------
    expected
        What is right in each targeted case that the cohort holds.
    look
        Which look at this draft it is, counted from 1. With `spend_alpha` of the
        protocol's levels, all looks together keep them.

    Notes
    -----
    Harm: each case's difference is the sum over its draws of right answers, draft minus
    parent. If the draft were no other than the parent, the two could be exchanged in
    each case, however the draws of one case hang together; that is tested by
    `loop.stats.paired.sign_flip_p`, one-sided, for the sensitivity and the specificity
    of each label and the sensitivity of the rare labels together, and corrected by
    Holm over the tests that could find anything by Tarone's rule. Margins: Tango's
    interval over the same means, which is rather too wide for them.
    """
    alpha = spend_alpha(protocol.alpha, look)
    confidence = 1 - spend_alpha(1 - protocol.confidence, look)
    margins = protocol.margins
    table = _count(measured)
    names = measured.before[0].labels
    cases = table.cells(ShareName.ACCURACY).sum(axis=0)
    columns = [one for one in range(len(names)) if cases[one]]
    positives = table.cells(ShareName.SENSITIVITY).sum(axis=0)
    rare = [
        one
        for one in columns
        if positives[one]
        and not _is_reachable(int(positives[one]), margins.sensitivity, confidence)
    ]
    places: list[_Place] = [
        ((column,), share) for column in columns for share in _TESTED
    ]
    pooled = tuple(rare) if len(rare) > 1 else ()
    if pooled:
        places.append((pooled, ShareName.SENSITIVITY))
    tests, tested = _test_harm(table, places, alpha)
    harm: dict[tuple[int, ...], list[HarmTest]] = {}
    for (where, _), test in zip(places, tests, strict=True):
        harm.setdefault(where, []).append(test)

    def label(name: str, where: tuple[int, ...], churn: Flips | None) -> DrawnLabel:
        shares = [(ShareName.SENSITIVITY, margins.sensitivity)]
        if name:
            shares.insert(0, (ShareName.ACCURACY, margins.accuracy))
        shown = (
            _test_margin(table, (where, share), margin, confidence)
            for share, margin in shares
        )
        return DrawnLabel(
            label=name, churn=churn, harm=tuple(harm[where]), margins=tuple(shown)
        )

    flips: Sequence[Flips | None] = [None] * len(names)
    if len(measured.before) > 1:
        before = [one.predicted for one in measured.before]
        flips = count_flips(before, protocol.confidence)
    targets = tuple(count_targets(measured, expected))
    return DrawEvidence(
        draws=len(measured.before),
        labels=tuple(label(names[one], (one,), flips[one]) for one in columns),
        unjudged=tuple(name for name, n in zip(names, cases, strict=True) if not n),
        rare=tuple(names[one] for one in rare),
        together=label("", pooled, None) if pooled else None,
        tests=len(places),
        tested=tested,
        alpha=alpha,
        confidence=confidence,
        look=look,
        targets=targets,
        surplus=_add_up(targets, confidence),
    )


_TESTED = (ShareName.SENSITIVITY, ShareName.SPECIFICITY)
_Place = tuple[tuple[int, ...], ShareName]
"""Columns of labels, taken together, and the share of them."""


class _RightAnswers(NamedTuple):
    """Right answers of both versions, over the draws in which both were answered."""

    truth: NDArray[np.int8]
    """Shape (cases, labels)."""

    difference: NDArray[np.int64]
    """Right answers of the draft minus those of the parent; shape (cases, labels)."""

    draws: NDArray[np.int64]
    """In which both were answered; shape (cases, labels)."""

    def cells(self, share: ShareName) -> NDArray[np.bool_]:
        """Return which cases count for each label, shape (cases, labels)."""
        wanted = {ShareName.SENSITIVITY: (1,), ShareName.SPECIFICITY: (0,)}
        decided = np.isin(self.truth, wanted.get(share, (0, 1)))
        return np.asarray(decided & (self.draws > 0))

    def by_case(self, place: _Place) -> NDArray[np.int64]:
        """Return each case's difference over the columns of `place`, in answers."""
        columns, share = list(place[0]), place[1]
        counted = np.where(self.cells(share), self.difference, 0)
        return np.asarray(counted[:, columns].sum(axis=1))

    def mean(self, place: _Place) -> MeanDifference:
        """Return what was lost and gained, each case and label by its mean."""
        columns, share = list(place[0]), place[1]
        cells = self.cells(share)[:, columns]
        means = self.difference[:, columns][cells] / self.draws[:, columns][cells]
        return MeanDifference(
            lost=float(-means[means < 0].sum()),
            gained=float(means[means > 0].sum()),
            n=means.size,
        )


def _count(measured: DrawnAnswers) -> _RightAnswers:
    truth = measured.before[0].binary_reference
    difference = np.zeros(truth.shape, dtype=np.int64)
    draws = np.zeros(truth.shape, dtype=np.int64)
    for pair in measured.pairs():
        asked = (pair.before != ValueCode.NOT_ASKED) | (
            pair.after != ValueCode.NOT_ASKED
        )
        changes = sort_answers(pair, pair.judged & asked)
        difference += changes.fixed.astype(np.int64) - changes.broken
        draws += pair.answered & asked
    return _RightAnswers(truth, difference, draws)


def _test_harm(
    table: _RightAnswers, places: Sequence[_Place], alpha: float
) -> tuple[list[HarmTest], int]:
    """Return the test of each place, and how many could have found anything."""
    differences = [table.by_case(place) for place in places]
    changed = [int(np.count_nonzero(one)) for one in differences]
    able = find_attainable([0.5**count for count in changed], alpha)
    tested = [one for one, can in enumerate(able) if can]
    corrected = holm([sign_flip_p(differences[one]) for one in tested])
    p_values = dict(zip(tested, corrected, strict=True))
    level = alpha / max(1, len(tested))
    most = int(table.draws.max(initial=0))
    tests = []
    for number, place in enumerate(places):
        mean, p = table.mean(place), p_values.get(number)
        squares = float(np.square(differences[number]).sum()) / max(1, most) ** 2
        tests.append(
            HarmTest(
                share=place[1],
                difference=mean,
                p=p,
                harmed=p is not None and p <= alpha,
                least=find_least_loss(squares, mean.n, level),
            )
        )
    return tests, len(tested)


def find_least_loss(squares: float, n: int, level: float) -> float | None:
    """Return about the smallest loss of `n` cases that a sign-flip test would find.

    With j cases lost in every draw beside differences whose squares sum to `squares`,
    the sum of differences is taken as normal; and 0.5 ** j must reach the level.
    """
    z_level, z_power = float(ndtri(1 - level)), float(ndtri(POWER))
    for lost in range(1, n + 1):
        noise = z_level * sqrt(squares + lost) + z_power * sqrt(squares)
        if lost >= noise and 0.5**lost <= level:
            return lost / n
    return None


def _is_reachable(positives: int, margin: float, confidence: float) -> bool:
    """Whether so many positives could show that no margin was lost."""
    level = 2 * confidence - 1
    return tango_interval(0, 0, positives, confidence=level).low > -margin


def _test_margin(
    table: _RightAnswers, place: _Place, margin: float, confidence: float
) -> MarginTest:
    mean, level = table.mean(place), 2 * confidence - 1
    lost, gained, n = mean
    unchanged = tango_interval(0, 0, n, confidence=level)
    return MarginTest(
        share=place[1],
        difference=mean,
        bound=tango_interval(lost, gained, n, confidence=level).low if n else None,
        margin=margin,
        reachable=unchanged.low > -margin,
    )


def count_targets(
    measured: DrawnAnswers, expected: Mapping[Pair, ValueCode]
) -> Iterator[TargetDraws]:
    """Yield of each pair in how many draws the parent and the draft are right."""
    first = measured.before[0]
    rows = {case: row for row, case in enumerate(first.case_ids)}
    columns = {label: column for column, label in enumerate(first.labels)}
    for (case_id, label), right in expected.items():
        at = rows[case_id], columns[label]
        answers = [
            (int(pair.before[at]), int(pair.after[at])) for pair in measured.pairs()
        ]
        both = [pair for pair in answers if ValueCode.FAILED not in pair]
        yield TargetDraws(
            case_id,
            label,
            before=sum(before == right for before, _ in both),
            after=sum(after == right for _, after in both),
            draws=len(both),
        )


def _add_up(targets: Sequence[TargetDraws], confidence: float) -> Surplus | None:
    readings = sum(one.draws for one in targets)
    if not readings:
        return None
    before = [one.before for one in targets]
    trials = [one.draws for one in targets]

    def interval(after: Sequence[int]) -> Interval:
        return stratified_interval(before, after, trials, confidence=confidence)

    after = [one.after for one in targets]
    return Surplus(
        before=sum(before),
        after=sum(after),
        readings=readings,
        interval=interval(after),
        least=_least_surplus(before, trials, interval),
    )


def _least_surplus(
    before: Sequence[int],
    trials: Sequence[int],
    interval: Callable[[Sequence[int]], Interval],
) -> float | None:
    """Return the surplus of as few cases put right in every draw as show one."""
    after = list(before)
    for number in sorted(range(len(before)), key=before.__getitem__):
        after[number] = trials[number]
        if interval(after).low > 0:
            return (sum(after) - sum(before)) / sum(trials)
    return None
