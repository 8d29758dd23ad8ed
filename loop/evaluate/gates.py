"""The verdict of the protocol on one label, and on all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from loop.core.nouns import counted
from loop.evaluate.protocol import Protocol
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate, clopper_pearson, lower_limit
from loop.stats.planning import (
    cases_for_positives,
    cases_for_width,
    cases_needed,
)

_NOT_BY_MORE = "more cases alone will not do: the observed {} is too low"
"""For a lower-limit gate that the observed share itself does not reach."""

_UNTOLD = "how many more cases it needs cannot be told"
"""Where the evidence does not say how wide the interval is."""

_PATIENTS = "needs more patients; how many cannot be told from repeated cases"


class GateVerdict(StrEnum):
    """What a gate says."""

    PASS = "PASS"
    FAIL = "FAIL"
    INSUFFICIENT = "INSUFFICIENT"
    """The evidence decides neither way; more cases are needed, not another prompt."""

    NOT_COMPARABLE = "NOT COMPARABLE"
    """The reference cannot judge the label: it is shown and in no claim."""


class PatientLimit(NamedTuple):
    """The one-sided lower limit of a share when patients repeat among its cases."""

    low: float | None
    """From resampling patients; None when it is not estimable."""

    patients: int
    """Patients among the cases of the share."""


class Hedges(NamedTuple):
    """Uncertain answers to cases that the reference decides."""

    positives: int = 0
    negatives: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.positives + self.negatives


NO_HEDGES = Hedges()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelEvidence:
    """What is known of one label when its gate is decided."""

    confusion: Confusion
    """Counts over the scored cases."""

    kappa: Estimate
    """Cohen's kappa with its asymptotic interval."""

    kappa_bootstrap: Estimate
    """Cohen's kappa with its bootstrap interval."""

    unanswered: int
    """Cases with a usable reference label and no readable answer."""

    usable: int
    """Cases with a usable reference label."""

    hedges: Hedges = NO_HEDGES
    """Uncertain answers, which the counts leave out; none where they count."""

    asked: bool = True
    """False when nobody was asked for the label."""

    accuracy_by_patient: PatientLimit | None = None
    """None when every scored case is of another patient, or the rule is ``point``."""

    sensitivity_by_patient: PatientLimit | None = None
    """The same over the positives."""

    draws: int = 1
    """Answers of each case that the counts hold; limits take a case once."""

    not_comparable: str = ""
    """Why the reference cannot judge the label; empty where it can."""

    @property
    def per_case(self) -> Confusion:
        """The counts over cases, rounded, for how many more are needed."""
        return Confusion(*(round(count / self.draws) for count in self.confusion))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The verdict on one label, and why."""

    verdict: GateVerdict
    reasons: tuple[str, ...] = ()
    """What kept the label from passing; empty for `PASS`."""

    needs: str = ""
    """For `INSUFFICIENT`: how many more cases, as far as it can be said."""


def decide_gate(evidence: LabelEvidence, protocol: Protocol) -> Gate:
    """Return the verdict on one label.

    ``NOT COMPARABLE``, whatever the counts, where the reference cannot judge it. Else
    in this order: readable answers, uncertain ones where they are left out, minimum
    evidence, then accuracy, kappa and, with the rule ``lower``, sensitivity. The first
    and the third can only give ``INSUFFICIENT``, the second only ``FAIL``: more cases
    would not help a model that does not answer.
    With that rule a share whose cases repeat patients must also reach its threshold by
    the limit over patients: the exact limit takes every case as independent.
    """
    if evidence.not_comparable:
        return Gate(
            verdict=GateVerdict.NOT_COMPARABLE,
            reasons=(f"the reference cannot judge it: {evidence.not_comparable}",),
        )
    early = (
        _check_outcomes(evidence, protocol)
        or _check_hedges(evidence, protocol)
        or _check_amount(evidence, protocol)
    )
    if early is not None:
        return early
    parts = [_check_accuracy(evidence, protocol), _check_kappa(evidence, protocol)]
    if protocol.rule == "lower":
        parts.append(_check_sensitivity(evidence, protocol))
    verdict = combine_verdicts(part.verdict for part in parts)
    return Gate(
        verdict=verdict,
        reasons=tuple(reason for part in parts for reason in part.reasons),
        needs=_join(part.needs for part in parts)
        if verdict is GateVerdict.INSUFFICIENT
        else "",
    )


def combine_verdicts(verdicts: Iterable[GateVerdict]) -> GateVerdict:
    """Return the verdict of the claim that every part passes.

    An intersection-union test: no correction for the number of parts is needed.
    ``FAIL`` if any part fails, ``PASS`` only if all pass. What is ``NOT COMPARABLE`` is
    no part; nothing to judge is ``INSUFFICIENT``.

    References
    ----------
    Berger RL. Technometrics 1982;24:295-300.
    """
    found = set(verdicts) - {GateVerdict.NOT_COMPARABLE}
    if GateVerdict.FAIL in found:
        return GateVerdict.FAIL
    return GateVerdict.PASS if found == {GateVerdict.PASS} else GateVerdict.INSUFFICIENT


def count_verdicts(verdicts: Iterable[GateVerdict]) -> dict[GateVerdict, int]:
    """Return how many labels have each verdict, in the order of `GateVerdict`.

    ``NOT COMPARABLE`` is left out where no label has it.

    Examples
    --------
    >>> count_verdicts([GateVerdict.FAIL])[GateVerdict.PASS]
    0
    >>> len(count_verdicts([])), len(count_verdicts([GateVerdict.NOT_COMPARABLE]))
    (3, 4)
    """
    found = Counter(verdicts)
    return {
        one: found[one]
        for one in GateVerdict
        if found[one] or one is not GateVerdict.NOT_COMPARABLE
    }


def describe_verdicts(verdicts: Iterable[GateVerdict]) -> str:
    """Return how many labels have each verdict, in words; see `count_verdicts`.

    Examples
    --------
    >>> describe_verdicts([GateVerdict.PASS, GateVerdict.PASS, GateVerdict.FAIL])
    '2 PASS, 1 FAIL, 0 INSUFFICIENT'
    """
    counts = count_verdicts(verdicts)
    return ", ".join(f"{number} {verdict}" for verdict, number in counts.items())


def _check_outcomes(evidence: LabelEvidence, protocol: Protocol) -> Gate | None:
    if not evidence.asked:
        return _insufficient(
            "not asked for: the prompt version lacks it, or the engine does not know it"
        )
    if not evidence.usable:
        return _insufficient("no case has a usable reference label")
    share = evidence.unanswered / evidence.usable
    if share <= protocol.max_unanswered:
        return None
    one = evidence.draws == 1
    return _insufficient(
        f"{evidence.unanswered} of {evidence.usable} "
        f"{'cases have no readable answer' if one else 'answers cannot be read'} "
        f"(at most {_percent(protocol.max_unanswered)} allowed)",
        "run the same command with --again unparsed, or look at these cases",
    )


def _check_hedges(evidence: LabelEvidence, protocol: Protocol) -> Gate | None:
    """Check the share of uncertain answers, where cases enough could be answered."""
    if not protocol.limits_uncertain:
        return None
    counts, hedges, draws = evidence.confusion, evidence.hedges, evidence.draws
    reasons = [
        f"{part} of {whole} {what} are answered uncertain "
        f"(at most {_percent(protocol.max_uncertain)} allowed)"
        for what, part, whole, least in (
            ("decided cases", hedges.total, counts.n + hedges.total,
             protocol.min_cases),
            ("positives", hedges.positives, counts.positives + hedges.positives,
             protocol.min_positives),
        )
        if whole >= least * draws and part > protocol.max_uncertain * whole
    ]  # fmt: skip
    if not reasons:
        return None
    return Gate(verdict=GateVerdict.FAIL, reasons=tuple(reasons))


def _check_amount(evidence: LabelEvidence, protocol: Protocol) -> Gate | None:
    counts = evidence.confusion
    short = {
        "cases": (counts.n / evidence.draws, protocol.min_cases),
        "positives": (counts.positives / evidence.draws, protocol.min_positives),
        "negatives": (counts.negatives / evidence.draws, protocol.min_negatives),
    }
    reasons = [
        f"{have:.4g} of at least {want} {what}"
        for what, (have, want) in short.items()
        if have < want
    ]
    if not reasons:
        return None
    needed = _amount_needed(evidence.per_case, protocol)
    return _insufficient("; ".join(reasons), needed)


def _amount_needed(counts: Confusion, protocol: Protocol) -> str:
    """Say how many more cases bring the minimum evidence at the present prevalence."""
    positives = max(protocol.min_positives - counts.positives, 0)
    negatives = max(protocol.min_negatives - counts.negatives, 0)
    if positives and not counts.positives:
        return f"needs {positives} positives; none has been seen, so add such cases"
    if negatives and not counts.negatives:
        return f"needs {negatives} negatives; none has been seen, so add such cases"
    cases = max(
        protocol.min_cases - counts.n,
        cases_for_positives(positives, counts.positives, counts.n) or 0,
        cases_for_positives(negatives, counts.negatives, counts.n) or 0,
    )
    return _needs(cases, positives or _expected_positives(cases, counts))


def _check_accuracy(evidence: LabelEvidence, protocol: Protocol) -> Gate:
    counts, target = evidence.confusion, protocol.accuracy
    if protocol.rule == "point":
        share = counts.correct / counts.n
        return _reached("accuracy", share, target)
    level, draws = protocol.confidence, evidence.draws
    low = lower_limit(counts.correct, counts.n, confidence=level, draws=draws)
    if low >= target:
        return _by_patient("accuracy", evidence.accuracy_by_patient, target)
    limits = clopper_pearson(counts.correct, counts.n, confidence=level, draws=draws)
    if limits.high < target:
        return _failed(f"accuracy is below {target:g} (upper limit {limits.high:.3f})")
    counts = evidence.per_case
    more = cases_needed(
        counts.n - counts.correct,
        counts.n,
        threshold=target,
        confidence=level,
    )
    reason = f"accuracy: lower limit {low:.3f} does not reach {target:g}"
    return _insufficient(reason, _more_cases(more, counts))


def _check_kappa(evidence: LabelEvidence, protocol: Protocol) -> Gate:
    kappa, target = evidence.kappa.value, protocol.kappa
    if kappa is None:
        return _insufficient(f"kappa {evidence.kappa.note or 'not estimable'}", _UNTOLD)
    if protocol.rule == "point":
        return _reached("kappa", kappa, target)
    low, high = evidence.kappa_bootstrap.low, evidence.kappa_bootstrap.high
    if low is None or high is None:
        return _insufficient("kappa: its bootstrap interval is not estimable", _UNTOLD)
    if kappa >= target and low >= protocol.kappa_floor:
        return Gate(verdict=GateVerdict.PASS)
    if high < target:
        return _failed(f"kappa is below {target:g} (upper limit {high:.3f})")
    return _insufficient(
        f"kappa {kappa:.3f} with lower limit {low:.3f}; wanted {target:g} with "
        f"{protocol.kappa_floor:g}",
        _kappa_needed(evidence, low, protocol),
    )


def _kappa_needed(evidence: LabelEvidence, low: float, protocol: Protocol) -> str:
    """Say how many more cases bring kappa's lower limit to its floor.

    Supposes that the observed kappa continues and that the distance to its lower limit
    shrinks with the root of the cases.
    """
    counts, kappa = evidence.per_case, evidence.kappa.value or 0.0
    if kappa < protocol.kappa:
        return _NOT_BY_MORE.format("kappa")
    more = cases_for_width(
        counts.n, width=max(kappa - low, 0.0), wanted=kappa - protocol.kappa_floor
    )
    if more is None:
        return _UNTOLD
    return _needs(more, _expected_positives(more, counts))


def _check_sensitivity(evidence: LabelEvidence, protocol: Protocol) -> Gate:
    counts, floor = evidence.confusion, protocol.sensitivity_floor
    level, draws = protocol.confidence, evidence.draws
    low = lower_limit(counts.tp, counts.positives, confidence=level, draws=draws)
    if low >= floor:
        return _by_patient("sensitivity", evidence.sensitivity_by_patient, floor)
    limits = clopper_pearson(counts.tp, counts.positives, confidence=level, draws=draws)
    if limits.high < floor:
        return _failed(
            f"sensitivity is below {floor:g} (upper limit {limits.high:.3f})"
        )
    counts = evidence.per_case
    more = cases_needed(counts.fn, counts.positives, threshold=floor, confidence=level)
    reason = f"sensitivity: lower limit {low:.3f} does not reach {floor:g}"
    if more is None:
        return _insufficient(reason, _NOT_BY_MORE.format("sensitivity"))
    cases = cases_for_positives(more, counts.positives, counts.n)
    return _insufficient(reason, _needs(cases or more, more))


def _by_patient(what: str, limit: PatientLimit | None, target: float) -> Gate:
    """Check a share that has reached `target` by the limit over patients as well."""
    if limit is None or (limit.low is not None and limit.low >= target):
        return Gate(verdict=GateVerdict.PASS)
    over = counted(limit.patients, "patient")
    if limit.low is None:
        return _insufficient(
            f"{what}: its limit over {over} is not estimable", _PATIENTS
        )
    return _insufficient(
        f"{what}: lower limit {show_below(limit.low, target)} over {over} does not "
        f"reach {target:g}",
        _PATIENTS,
    )


def _reached(what: str, value: float, target: float) -> Gate:
    if value >= target:
        return Gate(verdict=GateVerdict.PASS)
    return _failed(f"{what} {show_below(value, target)} < {target:g}")


def show_below(value: float, target: float) -> str:
    """Return `value` with enough digits to read as smaller than `target`.

    Examples
    --------
    >>> show_below(0.94999, 0.95), show_below(0.5, 0.95)
    ('0.94999', '0.500')
    """
    for digits in range(3, 8):
        shown = f"{value:.{digits}f}"
        if float(shown) < target:
            return shown
    return repr(value)


def _more_cases(more: int | None, counts: Confusion) -> str:
    if more is None:
        return _NOT_BY_MORE.format("accuracy")
    return _needs(more, _expected_positives(more, counts))


def _expected_positives(cases: int, counts: Confusion) -> int:
    return round(cases * counts.positives / counts.n) if counts.n else 0


def _needs(cases: int, positives: int) -> str:
    more = counted(cases, "more case")
    return f"needs about {more} ({counted(positives, 'positive')})"


def _insufficient(reason: str, needs: str = "") -> Gate:
    return Gate(verdict=GateVerdict.INSUFFICIENT, reasons=(reason,), needs=needs)


def _failed(reason: str) -> Gate:
    return Gate(verdict=GateVerdict.FAIL, reasons=(reason,))


def _join(parts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(part for part in parts if part))


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
