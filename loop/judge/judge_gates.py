"""The verdict of the protocol on a judge's run: one check for each thing it claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.nouns import counted
from loop.evaluate.gates import GateVerdict, combine_verdicts, show_below
from loop.evaluate.protocol import JudgingRules, ShareFloor
from loop.labels.error_categories import ErrorGroup
from loop.score.experts.ratings import Ratings
from loop.score.metrics.base import Direction
from loop.stats.intervals import Estimate, clustered_interval
from loop.stats.paired import TIE
from loop.stats.planning import cases_for_width
from loop.stats.rated_agreement import (
    AgreementMeasure,
    compare_agreement,
    measure_agreement,
)
from loop.stats.resampling import NO_WIDTH, Bootstrap, Resampling, to_estimate

Points = NDArray[np.float64]
"""One number a pair, NaN where there is none."""

_UNTOLD: Final = "how many more units it needs cannot be told"


class JudgeAspect(StrEnum):
    """What a check of a judge is about."""

    ANSWERS = "answers"
    UNITS = "units"
    AGREEMENT = "agreement"
    F1 = "F1"
    COPIES = "copy test"
    PARENT = "parent"
    DISCRIMINATION = "discrimination"
    ROBUSTNESS = "robustness"


class CopyCounts(NamedTuple):
    """Candidates that were equal to their references, and what became of them."""

    pairs: int
    best: int
    """With the best score."""

    unanswered: int = 0
    """Without a readable answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEvidence:
    """What is known of a judge's run when its gate is decided, one row a pair."""

    scores: Points
    """Shape ``(n_pairs,)``; NaN where it gives none."""

    ratings: Ratings
    """Of the same pairs, row by row, also of those that nobody rated."""

    units: NDArray[Any]
    """Patient of each pair, else its reference text; shape ``(n_pairs,)``."""

    unanswered: float
    """Share of answers that could not be read or did not come, in [0, 1]."""

    direction: Direction = Direction.HIGHER
    """Which way the scores are better."""

    rated: Direction = Direction.HIGHER
    """Which way the ratings are better: counts of errors are so when low."""

    f1: Mapping[ErrorGroup, Estimate] = field(default_factory=dict)
    """F1 against the median count of the raters; empty where no rater counted errors.
    The ends of its interval over units are taken as one-sided limits, as those of a
    two-sided interval at ``2 * confidence - 1`` are."""

    copies: CopyCounts | None = None
    """None where no pair of equal texts was asked."""

    parent: Points | None = None
    """The parent's scores of the same pairs; None for a version without a parent."""

    def __post_init__(self) -> None:
        pairs = (len(self.ratings.ids),)
        for name in ("scores", "units", "parent"):
            given = getattr(self, name)
            if given is not None and np.shape(given) != pairs:
                raise ValueError(
                    f"need {name} of shape {pairs}, one per rated pair, got "
                    f"{np.shape(given)}"
                )
        if not 0 <= self.unanswered <= 1:
            raise ValueError(f"unanswered must be in [0, 1], got {self.unanswered}")
        if Direction.NEITHER in (self.direction, self.rated):
            raise ValueError("a score that does not grade cannot be held to ratings")

    @property
    def undefined(self) -> float:
        """Share of the rated pairs without a score; 0 where no pair is rated."""
        rated = ~np.isnan(self.ratings.consensus)
        return float(np.isnan(self.scores[rated]).mean()) if rated.any() else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck:
    """One check of a judge: its verdict, the numbers behind it, and why."""

    aspect: JudgeAspect
    what: str
    """The number that is checked, in words."""

    verdict: GateVerdict
    observed: float | None = None
    """None where it cannot be estimated."""

    limit: float | None = None
    """One-sided lower limit of `observed` over units; None where none is asked for."""

    threshold: float | None = None
    """What `observed` or `limit` must reach, or, for the answers, may reach."""

    reason: str = ""
    """What kept it from passing; empty for `PASS`."""

    units_needed: int | None = None
    """For `INSUFFICIENT`: about how many more units would decide it; None where that
    cannot be told, or units are not what it lacks."""

    needs: str = ""
    """The same in words, or what else to do."""

    suspicious: str = ""
    """Why a number is too good to be trusted; empty where it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedEvidence:
    """What is known of a judge on marked pairs when its gate is decided."""

    flags: Points
    """1 where the judge calls a candidate wrong, 0 where not, NaN without a readable
    answer; shape ``(n_pairs,)``."""

    significant: NDArray[np.bool_]
    """Which pairs are marked significant; shape ``(n_pairs,)``."""

    units: NDArray[Any]
    """Reference of each pair: its variants stand or fall together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedGate:
    """The verdict on a judge's flags of marked pairs."""

    checks: tuple[JudgeCheck, ...]

    @property
    def verdict(self) -> GateVerdict:
        """``PASS`` only if every check passes; see `combine_verdicts`."""
        return combine_verdicts(one.verdict for one in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeGate:
    """The verdict on a judge's run."""

    checks: tuple[JudgeCheck, ...]
    pairs: int
    """Pairs that were asked."""

    used: int
    """Pairs with a score and a rating."""

    units: int
    """Units that these belong to."""

    raters: int

    @property
    def verdict(self) -> GateVerdict:
        """``PASS`` only if every check passes; see `combine_verdicts`."""
        return combine_verdicts(one.verdict for one in self.checks)

    @property
    def suspicious(self) -> tuple[str, ...]:
        """What is too good to be trusted; empty where nothing is."""
        return tuple(one.suspicious for one in self.checks if one.suspicious)


def decide_judge_gate(
    evidence: JudgeEvidence,
    rules: JudgingRules,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> JudgeGate:
    """Return the verdict of the protocol on a judge's run.

    Every check is there, whatever the others say. Where answers are missing or units
    are few, agreement, F1 and the comparison with the parent are `INSUFFICIENT`,
    whatever they show: neither a pass nor a failure would be worth anything.

    Agreement is with the mean of the raters. A judge that agrees with one rater, in
    the mean, better than two raters do with each other is marked as suspicious: raters
    who know no more than it does set the bound, so it may know their ratings.

    Parameters
    ----------
    rules
        Section ``judging`` of the protocol.
    confidence
        One-sided level of every limit, above one half: that of the protocol.
    resamples, seed
        Of the bootstrap over units.

    Raises
    ------
    ValueError
        `confidence` is not above one half, or a score is infinite.

    References
    ----------
    Units needed: the width of an interval of tau-b falls with the root of their number
    (Bonett DG, Wright TA. Psychometrika 2000;65:23-28); the observed value is supposed
    to continue. Resampling whole units: Field CA, Welsh AH. J R Stat Soc B
    2007;69:369-390. Every check must pass, so none is corrected for: Berger RL.
    Technometrics 1982;24:295-300.
    """
    if confidence <= 0.5:
        raise ValueError(f"confidence must be above one half, got {confidence}")
    judge = _GateWork(
        evidence,
        rules,
        Resampling(
            units=evidence.units,
            resamples=resamples,
            seed=seed,
            # The ends of a two-sided interval at this level are one-sided limits.
            confidence=2 * confidence - 1,
        ),
    )
    usable = ~(np.isnan(evidence.scores) | np.isnan(evidence.ratings.consensus))
    units = len(np.unique(evidence.units[usable]))
    enough = (
        _hold_answers(evidence.unanswered, evidence.undefined, rules),
        _check_units(units, rules, "units"),
    )
    evident = (_check_agreement(judge), *_check_f1(judge, units), *_check_parent(judge))
    short = _shortage(enough)
    if short:
        evident = tuple(_withhold(one, short) for one in evident)
    return JudgeGate(
        checks=(*enough, *evident, *_check_copies(evidence, rules)),
        pairs=len(evidence.scores),
        used=int(usable.sum()),
        units=units,
        raters=len(evidence.ratings.raters),
    )


def decide_marked_gate(
    evidence: MarkedEvidence, rules: JudgingRules, *, confidence: float = 0.95
) -> MarkedGate:
    """Return the verdict of the protocol on a judge's flags of marked pairs.

    Each share that the protocol names must reach its floor with the one-sided lower
    limit, exact for as many pairs as their references are worth. As in
    `decide_judge_gate`, missing answers or too few references leave it undecided; the
    share of missing answers is that of the significant pairs or that of the others,
    whichever is larger.

    Parameters
    ----------
    rules
        Section ``judging`` of the protocol.
    confidence
        One-sided level of every limit, above one half: that of the protocol.

    Raises
    ------
    ValueError
        `confidence` is not above one half, or the columns differ in length.

    References
    ----------
    As `loop.stats.intervals.clustered_interval`.
    """
    if confidence <= 0.5:
        raise ValueError(f"confidence must be above one half, got {confidence}")
    if not len(evidence.flags) == len(evidence.significant) == len(evidence.units):
        raise ValueError("need a flag, a mark and a unit for each pair")
    given = ~np.isnan(evidence.flags)
    # Few missing answers of all may be most of those about one kind of pairs.
    kinds = (given[evidence.significant], given[~evidence.significant])
    missing = max((float(1 - one.mean()) for one in kinds if one.size), default=0.0)
    answers = _hold_answers(missing, 0.0, rules)
    if answers.needs:
        needs = "run the command again: what has no answer is asked again"
        answers = replace(answers, needs=needs)
    enough = (
        answers,
        _check_units(len(np.unique(evidence.units[given])), rules, "references"),
    )
    short = _shortage(enough)
    checks = []
    for aspect, floor, mark in (
        (JudgeAspect.DISCRIMINATION, rules.discrimination, True),
        (JudgeAspect.ROBUSTNESS, rules.robustness, False),
    ):
        if floor is None:
            continue
        own = given & (evidence.significant == mark)
        hits = evidence.flags[own] == (1.0 if mark else 0.0)
        check = _check_share(aspect, hits, evidence.units[own], floor, confidence)
        checks.append(_withhold(check, short) if short else check)
    return MarkedGate(checks=(*enough, *checks))


_SHARES: Final = {
    JudgeAspect.DISCRIMINATION: "D, flagged of the significant pairs",
    JudgeAspect.ROBUSTNESS: "R, unflagged of the others",
}


def _check_share(
    aspect: JudgeAspect,
    hits: NDArray[np.bool_],
    units: NDArray[Any],
    floor: ShareFloor,
    confidence: float,
) -> JudgeCheck:
    check = JudgeCheck(
        aspect=aspect,
        what=_SHARES[aspect],
        verdict=GateVerdict.PASS,
        threshold=floor.lower_limit,
    )
    if not hits.size:
        return _open(check, "there is no such pair with an answer", _UNTOLD)
    _, at, sizes = np.unique(units, return_inverse=True, return_counts=True)
    right = np.bincount(at, weights=hits, minlength=len(sizes)).astype(int)
    low, high = clustered_interval(
        right.tolist(), sizes.tolist(), confidence=2 * confidence - 1
    )
    found = Estimate(float(hits.mean()), low, high)
    return _reach(check, found, len(sizes), by_limit=True)


def _shortage(enough: Iterable[JudgeCheck]) -> str:
    """Return what is lacking before anything can be decided; empty for nothing."""
    words = ("answers are missing", "units are too few")
    return " and ".join(
        one
        for check, one in zip(enough, words, strict=True)
        if check.verdict is not GateVerdict.PASS
    )


def _withhold(check: JudgeCheck, short: str) -> JudgeCheck:
    """Return a check whose numbers are shown and decide nothing."""
    return replace(
        check,
        verdict=GateVerdict.INSUFFICIENT,
        reason=f"not decided, since {short}",
        units_needed=None,
        needs="",
    )


class _GateWork(NamedTuple):
    """What the checks of one judge share: evidence, claim, and how it is resampled."""

    evidence: JudgeEvidence
    rules: JudgingRules
    drawn: Resampling

    @property
    def by_values(self) -> bool:
        return self.rules.measure is AgreementMeasure.ALPHA

    def directed(self, values: Points, direction: Direction) -> Points:
        """Return values of which more is better; alpha takes them as they are."""
        if self.by_values or direction is Direction.HIGHER:
            return values
        return -values

    def score(self, values: Points) -> Points:
        return self.directed(values, self.evidence.direction)

    def rating(self, values: Points) -> Points:
        return self.directed(values, self.evidence.rated)


def _hold_answers(
    unanswered: float, undefined: float, rules: JudgingRules
) -> JudgeCheck:
    most = rules.max_unanswered
    check = JudgeCheck(
        aspect=JudgeAspect.ANSWERS,
        what="share without a readable answer or a score",
        verdict=GateVerdict.PASS,
        observed=max(unanswered, undefined),
        threshold=most,
    )
    reasons = [
        f"{100 * share:.1f} % of the {what} (at most {100 * most:g} % allowed)"
        for share, what in (
            (unanswered, "answers are missing or cannot be read"),
            (undefined, "rated pairs have no score"),
        )
        if share > most
    ]
    if not reasons:
        return check
    return replace(
        check,
        verdict=GateVerdict.INSUFFICIENT,
        reason="; ".join(reasons),
        needs="run the same command with --again unparsed, or look at these pairs",
    )


def _check_units(units: int, rules: JudgingRules, words: str) -> JudgeCheck:
    rated = words == "units"
    check = JudgeCheck(
        aspect=JudgeAspect.UNITS,
        what="units with a score and a rating" if rated else f"{words} with an answer",
        verdict=GateVerdict.PASS,
        observed=units,
        threshold=rules.min_units,
    )
    if units >= rules.min_units:
        return check
    more = rules.min_units - units
    return replace(
        check,
        verdict=GateVerdict.INSUFFICIENT,
        reason=f"{units} of at least {rules.min_units} {words}",
        units_needed=more,
        needs=_needs(more),
    )


def _check_agreement(judge: _GateWork) -> JudgeCheck:
    evidence, rules = judge.evidence, judge.rules
    name, raters = rules.measure.words, len(evidence.ratings.raters)
    what = f"{name} with " + (
        "the rater" if raters == 1 else f"the mean of {raters} raters"
    )
    if judge.by_values and evidence.direction is not evidence.rated:
        return JudgeCheck(
            aspect=JudgeAspect.AGREEMENT,
            what=what,
            verdict=GateVerdict.INSUFFICIENT,
            threshold=rules.threshold,
            reason="alpha compares values, and the score is better the other way round "
            "than the ratings",
            needs="let the protocol measure tau_b, or give the score as the raters do",
        )
    scores = judge.score(evidence.scores)
    consensus = judge.rating(evidence.ratings.consensus)
    found = measure_agreement(rules.measure, scores, consensus, **judge.drawn)
    check = _reach(
        JudgeCheck(
            aspect=JudgeAspect.AGREEMENT,
            what=what,
            verdict=GateVerdict.PASS,
            threshold=rules.threshold,
        ),
        to_estimate(found.value),
        found.n_units,
        by_limit=rules.rule == "lower",
    )
    if check.observed is None and _is_flat(scores) and not _is_flat(consensus):
        check = replace(
            check,
            verdict=GateVerdict.FAIL,
            reason="every pair has the same score, so that it orders none",
            needs="",
        )
    return replace(check, suspicious=_suspect(judge))


def _is_flat(values: Points) -> bool:
    given = values[~np.isnan(values)]
    return bool(given.size > 1 and np.ptp(given) == 0)


def _suspect(judge: _GateWork) -> str:
    """Say that the judge agrees with a rater more than raters with each other."""
    ratings, name = judge.evidence.ratings, judge.rules.measure.words
    columns = [judge.rating(points) for points in ratings.scores.T]
    scores = judge.score(judge.evidence.scores)
    alone = _mean_agreement(judge, [(scores, points) for points in columns])
    among = _mean_agreement(judge, list(combinations(columns, 2)))
    if alone is None or among is None or alone <= among + TIE:
        return ""
    return (
        f"its {name} with one rater, {alone:.3f} in the mean, is above that of two "
        f"raters, {among:.3f}: look whether it has seen the ratings, or whether a "
        "trait of these pairs gives both away"
    )


def _mean_agreement(
    judge: _GateWork, pairs: list[tuple[Points, Points]]
) -> float | None:
    """Return the mean agreement over pairs of columns; None where none is defined."""
    values = [
        measure_agreement(judge.rules.measure, *pair, resamples=1).value.estimate
        for pair in pairs
    ]
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None


_GROUPS: Final = {
    ErrorGroup.FALSE_PREDICTION: "F1 of false predictions",
    ErrorGroup.OMISSION: "F1 of omissions",
    ErrorGroup.ATTRIBUTE: "F1 of wrong attributes",
}


def _check_f1(judge: _GateWork, units: int) -> Iterator[JudgeCheck]:
    for group, floor in judge.rules.f1_floors.items():
        check = JudgeCheck(
            aspect=JudgeAspect.F1,
            what=_GROUPS[group],
            verdict=GateVerdict.PASS,
            threshold=floor,
        )
        found = judge.evidence.f1.get(group)
        if found is not None:
            yield _reach(check, found, units, by_limit=judge.rules.rule == "lower")
            continue
        yield replace(
            check,
            verdict=GateVerdict.INSUFFICIENT,
            reason="no rater counted such errors",
            needs="add the errors that raters found, by category",
        )


def _check_parent(judge: _GateWork) -> Iterator[JudgeCheck]:
    """Yield whether the agreement is below the parent's by less than the margin."""
    evidence, margin = judge.evidence, judge.rules.margin
    if margin is None or evidence.parent is None:
        return
    found = compare_agreement(
        judge.rules.measure,
        judge.score(evidence.scores),
        judge.score(evidence.parent),
        judge.rating(evidence.ratings.consensus),
        **judge.drawn,
    )
    name = judge.rules.measure.words
    check = JudgeCheck(
        aspect=JudgeAspect.PARENT,
        what=f"{name} minus the parent's",
        verdict=GateVerdict.PASS,
        observed=found.value.estimate,
        limit=found.value.low,
        threshold=-margin,
    )
    yield _hold_margin(check, found.value, margin, found.n_units)


def _hold_margin(
    check: JudgeCheck, found: Bootstrap, margin: float, units: int
) -> JudgeCheck:
    value, low, high = found[:3]
    if value is None or low is None or high is None:
        return _open(check, f"{check.what}: not estimable", _UNTOLD)
    if found.has_no_width and abs(value) > TIE:
        # Nothing varies, which is no certainty, unless nothing differs.
        return _open(replace(check, limit=None), f"{check.what}: {NO_WIDTH}", _UNTOLD)
    if low > -margin:
        return check
    if high < -margin:
        return _fail(
            check,
            f"{check.what} is {value:+.3f}, below -{margin:g} "
            f"(upper limit {high:+.3f})",
        )
    reason = f"{check.what}: lower limit {low:+.3f} is not above -{margin:g}"
    return _plan(check, reason, Estimate(value, low, high), units)


def _check_copies(evidence: JudgeEvidence, rules: JudgingRules) -> Iterator[JudgeCheck]:
    if not rules.copy_test:
        return
    check = JudgeCheck(
        aspect=JudgeAspect.COPIES,
        what="share of equal texts with the best score",
        verdict=GateVerdict.PASS,
        threshold=1.0,
    )
    copies = evidence.copies
    if copies is None or not copies.pairs:
        needs = "ask it about references that are their own candidates"
        yield _open(check, "no pair of equal texts was asked", needs)
        return
    check = replace(check, observed=copies.best / copies.pairs)
    wrong = copies.pairs - copies.best - copies.unanswered
    if wrong:
        yield _fail(
            check,
            f"{wrong} of {copies.pairs} pairs of equal texts do not get the best score",
        )
    elif copies.unanswered:
        yield _open(
            check,
            f"{copies.unanswered} of {copies.pairs} pairs of equal texts have no "
            "readable answer",
            "run the same command with --again unparsed",
        )
    else:
        yield check


def _reach(
    check: JudgeCheck, found: Estimate, units: int, *, by_limit: bool
) -> JudgeCheck:
    """Return whether a number, or its lower limit, reaches the check's threshold."""
    target, value = check.threshold or 0.0, found.value
    check = replace(check, observed=value)
    if value is None:
        return _open(check, f"{check.what}: {found.note or 'not estimable'}", _UNTOLD)
    if not by_limit:
        if value >= target:
            return check
        return _fail(check, f"{check.what} {show_below(value, target)} < {target:g}")
    if found.low is None or found.high is None:
        reason = f"{check.what}: {found.note or 'its interval is not estimable'}"
        return _open(check, reason, _UNTOLD)
    check = replace(check, limit=found.low)
    if found.low >= target:
        return check
    if found.high < target:
        limit = show_below(found.high, target)
        return _fail(check, f"{check.what} is below {target:g} (upper limit {limit})")
    limit = show_below(found.low, target)
    reason = f"{check.what}: lower limit {limit} does not reach {target:g}"
    return _plan(check, reason, found, units)


def _plan(check: JudgeCheck, reason: str, found: Estimate, units: int) -> JudgeCheck:
    """Return an undecided check with the units that would decide it.

    That end of the interval which lies beyond the threshold must come up to it.
    """
    value, low, high = (one or 0.0 for one in found[:3])
    target = check.threshold or 0.0
    passing = value > target
    width = value - low if passing else high - value
    more = cases_for_width(units, width=max(width, 0.0), wanted=abs(value - target))
    if more is None:
        return _open(check, reason, _UNTOLD)
    # At the threshold itself an end decides nothing yet.
    more = max(more, 1)
    needs = _needs(more)
    if not passing:
        needs = f"about {more:,} more units would show that it is too low"
    return replace(_open(check, reason, needs), units_needed=more)


def _needs(more: int) -> str:
    return f"needs about {counted(more, 'more unit')}"


def _open(check: JudgeCheck, reason: str, needs: str) -> JudgeCheck:
    return replace(check, verdict=GateVerdict.INSUFFICIENT, reason=reason, needs=needs)


def _fail(check: JudgeCheck, reason: str) -> JudgeCheck:
    return replace(check, verdict=GateVerdict.FAIL, reason=reason)
