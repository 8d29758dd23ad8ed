"""Who is best on one label, and who is not shown to be worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from loop.evaluate.matrix.records import EngineRank, MatrixCell, Paired
from loop.evaluate.pairs import Codes
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import LabelResult
from loop.stats.paired import holm, mcnemar_exact


def rank_label(
    results: Sequence[LabelResult | None],
    truth: Codes,
    answers: Sequence[Codes | None],
    protocol: Protocol,
) -> tuple[MatrixCell | None, ...]:
    """Return one cell per engine with its standing on the label.

    Only engines with the protocol's minimum evidence are ranked, and only against
    another one. The highest observed accuracy is the best, ties included. Every other
    engine is tested against the best on the cases that both decide, by McNemar's exact
    test at the protocol's ``alpha``, corrected by Holm over the engines of the label;
    with several best, against the one it differs from least.

    Parameters
    ----------
    results
        One per engine; None for an engine without a run.
    truth
        Reference codes 1, 0, or -1 for excluded, shape ``(n_cases,)``.
    answers
        Per engine the codes of `loop.evaluate.pairs.Answer`, same shape and order.
    """
    able = {
        place: result
        for place, result in enumerate(results)
        if result is not None and has_enough(result, protocol)
    }
    best = _highest({place: _share(result) for place, result in able.items()})
    firm = _highest({place: _firm_share(result) for place, result in able.items()})
    tests = _test_others(truth, answers, best, [i for i in able if i not in best])

    def cell(place: int, result: LabelResult) -> MatrixCell:
        paired = tests.get(place)
        standing = _standing(paired, place in best, protocol.alpha)
        if len(able) < 2:
            standing = EngineRank.UNRANKED
        return MatrixCell(
            result=result,
            enough=place in able,
            standing=standing,
            paired=paired,
            rests_on_uncertain=standing is EngineRank.BEST and place not in firm,
        )

    return tuple(
        None if result is None else cell(place, result)
        for place, result in enumerate(results)
    )


def has_enough(result: LabelResult, protocol: Protocol) -> bool:
    """Whether a label of one engine has the protocol's minimum evidence.

    That is enough cases, positives and negatives, and few enough unreadable answers;
    without these the gate is ``INSUFFICIENT`` whatever the accuracy.
    """
    counts, excluded = result.confusion, result.excluded
    unanswered = excluded.by_answer - excluded.uncertain_predicted
    usable = counts.n + excluded.by_answer
    return (
        counts.n >= protocol.min_cases
        and counts.positives >= protocol.min_positives
        and counts.negatives >= protocol.min_negatives
        and unanswered <= protocol.max_unanswered * usable
    )


def _standing(paired: Paired | None, best: bool, alpha: float) -> EngineRank:
    if best:
        return EngineRank.BEST
    if paired is None:
        return EngineRank.UNRANKED
    shown = paired.p_holm <= alpha and paired.lost > paired.gained
    return EngineRank.WORSE if shown else EngineRank.LEVEL


def _share(result: LabelResult) -> Fraction:
    """Return the accuracy exactly: a tie must not hang on rounding."""
    return Fraction(result.confusion.correct, result.confusion.n)


def _firm_share(result: LabelResult) -> Fraction:
    """Return the accuracy with every uncertain answer counted as wrong."""
    counts, uncertain = result.confusion, result.excluded.uncertain_predicted
    return Fraction(counts.correct, counts.n + uncertain)


def _highest(shares: Mapping[int, Fraction]) -> frozenset[int]:
    top = max(shares.values(), default=None)
    return frozenset(place for place, share in shares.items() if share == top)


def _test_others(
    truth: Codes,
    answers: Sequence[Codes | None],
    best: frozenset[int],
    others: Sequence[int],
) -> dict[int, Paired]:
    """Test each of `others` against the nearest of the best."""
    nearest = [
        max(
            (_discordant(truth, answers[one], answers[other]) for one in sorted(best)),
            key=lambda counts: (counts[0] <= counts[1], mcnemar_exact(*counts)),
        )
        for other in others
    ]
    p_values = [mcnemar_exact(*counts) for counts in nearest]
    return {
        other: Paired(*counts, p, p_holm)
        for other, counts, p, p_holm in zip(
            others, nearest, p_values, holm(p_values), strict=True
        )
    }


def _discordant(
    truth: Codes, best: Codes | None, other: Codes | None
) -> tuple[int, int]:
    """Count the decided cases that only the best, and only the other, has right."""
    if best is None or other is None:
        return 0, 0
    decided = (truth >= 0) & (best >= 0) & (other >= 0)
    lost = decided & (best == truth) & (other != truth)
    gained = decided & (best != truth) & (other == truth)
    return int(np.count_nonzero(lost)), int(np.count_nonzero(gained))
