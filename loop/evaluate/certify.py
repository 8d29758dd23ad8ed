"""What an evaluation certifies: all labels together, or those that Holm's test keeps.

Certifying is more than passing. The rule ``point`` compares observed values with the
thresholds and certifies nothing. A claim on all labels needs no correction, since one
label that fails takes it back; picking the labels that passed does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from loop.evaluate.gates import GateVerdict, judge_all
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import Evaluation, LabelResult
from loop.stats.paired import holm
from loop.stats.power import exact_p

POINT_RULE = (
    "Nothing is certified: the protocol's rule is `point`, which compares observed "
    "values with the thresholds. The rule `lower` certifies."
)
NOT_ALL_RUN = "Nothing is certified: not all cases of the cohort were run."
REPEATED = (
    "The p-values take every case as independent, and patients repeat: they are too "
    "small."
)


class LabelClaim(NamedTuple):
    """One label of a claim."""

    label: str
    name: str
    p: float
    """Exact one-sided p-value against an accuracy of at most the threshold."""

    p_holm: float
    """The same adjusted for the number of labels; decides a claim on a subset."""

    certified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the protocol lets an evaluation claim."""

    kind: str
    """``"all"`` or ``"subset"``."""

    alpha: float
    """Chance of a false claim that is accepted: per label for ``"all"``, for any label
    of the family for ``"subset"``."""

    verdict: GateVerdict
    """Of ``"all"``: every label passes. Of ``"subset"``: some label is certified."""

    labels: tuple[LabelClaim, ...]
    """The family: every label, in published order."""

    note: str = ""
    """Why nothing is certified, or what weakens it; empty where there is nothing."""

    @property
    def certified(self) -> tuple[LabelClaim, ...]:
        """Labels that are certified."""
        return tuple(one for one in self.labels if one.certified)


class ClaimDecision(NamedTuple):
    """How a claim is decided from gates and p-values."""

    verdict: GateVerdict
    p_holm: tuple[float, ...]
    """Adjusted p-values, in the order of the labels."""

    certified: tuple[bool, ...]


def decide_claim(
    gates: Sequence[GateVerdict],
    p_values: Sequence[float],
    protocol: Protocol,
    *,
    whole: bool = True,
) -> ClaimDecision:
    """Return what labels certify whose gates and exact p-values are known.

    A claim on all labels is an intersection-union test: every label is judged at
    ``1 - confidence``, and either all are certified or none. A claim on a subset takes
    the exact binomial p-value of every label, adjusts it over all of them, scored or
    not, and certifies a label when that is at most ``alpha`` and its gate passes as
    well.

    Parameters
    ----------
    whole
        False where cases of the cohort were not run: then no label is certified and
        the claim does not pass.

    References
    ----------
    Berger RL. Technometrics 1982;24:295-300. Holm S. Scand J Stat 1979;6:65-70.
    """
    adjusted, certifies = holm(p_values), whole and protocol.rule == "lower"
    if protocol.claim == "subset":
        kept = [
            certifies and gate is GateVerdict.PASS and p <= protocol.alpha
            for gate, p in zip(gates, adjusted, strict=True)
        ]
        verdict = _any_kept(kept, gates)
    else:
        verdict = judge_all(gates)
        kept = [certifies and verdict is GateVerdict.PASS] * len(gates)
    if verdict is GateVerdict.PASS and not whole:
        verdict = GateVerdict.INSUFFICIENT
    return ClaimDecision(verdict, tuple(adjusted), tuple(kept))


def certify(
    labels: Sequence[LabelResult], protocol: Protocol, *, whole: bool = True
) -> Claim:
    """Return what `labels` certify under `protocol`; see `decide_claim`."""
    p_values = [_p_value(result, protocol) for result in labels]
    gates = [result.gate.verdict for result in labels]
    decided = decide_claim(gates, p_values, protocol, whole=whole)
    rows = zip(labels, p_values, decided.p_holm, decided.certified, strict=True)
    return Claim(
        kind=protocol.claim,
        alpha=claim_level(protocol),
        verdict=decided.verdict,
        labels=tuple(
            LabelClaim(result.label, result.name, p, adjusted, certified)
            for result, p, adjusted, certified in rows
        ),
        note=POINT_RULE if protocol.rule == "point" else "",
    )


def certify_evaluation(evaluation: Evaluation) -> Claim:
    """Return what an evaluation certifies: as `certify`, and nothing of a part.

    Where cases of the cohort were not run, no label is certified and the claim does
    not pass.
    """
    whole = not evaluation.not_run
    claim = certify(evaluation.labels, evaluation.protocol, whole=whole)
    repeated = evaluation.method.units < evaluation.cases
    weakness = REPEATED if repeated else ""
    return replace(claim, note=claim.note or (weakness if whole else NOT_ALL_RUN))


def _p_value(result: LabelResult, protocol: Protocol) -> float:
    counts = result.confusion
    return exact_p(counts.correct, counts.n, protocol.accuracy)


def _any_kept(kept: Sequence[bool], gates: Sequence[GateVerdict]) -> GateVerdict:
    """Return the verdict on a subset: it fails only where every label does."""
    if any(kept):
        return GateVerdict.PASS
    return (
        GateVerdict.FAIL
        if set(gates) == {GateVerdict.FAIL}
        else GateVerdict.INSUFFICIENT
    )


def claim_level(protocol: Protocol) -> float:
    """Return the level of the protocol's claim: alpha, or that of every gate.

    As written: one minus 0.95 is not 0.05 in binary.
    """
    if protocol.claim == "subset":
        return protocol.alpha
    return round(1 - protocol.confidence, 12)
