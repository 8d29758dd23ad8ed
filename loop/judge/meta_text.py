"""The meta-evaluation of a judge's run as JSON data and as sentences."""

from __future__ import annotations

from typing import Any, Final

from loop import __version__
from loop.core.nouns import counted
from loop.documents.numbers import (
    count,
    interval,
    listed,
    share,
    signed,
    signed_interval,
)
from loop.judge.meta_evaluation import (
    JudgeCost,
    JudgeMetaEvaluation,
    RatingAgreement,
    ScoreBias,
    mean_tau_b,
)
from loop.judge.repeats import CopyTest, SelfConsistency
from loop.score.experts.documents import correlation_data, error_data, errors_said

FORMAT: Final = "ranloop-judge-meta-1"
"""Name of the shape; another number means that readers must look again."""

_LISTED: Final = 5
"""Positions that are named before the others are only counted."""


def judge_meta_data(found: JudgeMetaEvaluation) -> dict[str, Any]:
    """Return the meta-evaluation as JSON data; a number without a meaning is null."""
    return {
        "format": FORMAT,
        "ranloop": __version__,
        "judge": found.judge,
        "signature": found.signature,
        "pairs": found.pairs,
        "unanswered": found.unanswered,
        "unit": found.unit,
        "units": found.units,
        "errors": [error_data(one) for one in found.errors],
        "ratings": None if found.ratings is None else _ratings(found.ratings),
        "bias": [_bias(one) for one in (found.length, found.position)],
        "consistency": (
            None if found.consistency is None else _repeats(found.consistency)
        ),
        "copies": {**found.copies._asdict(), "passed": found.copies.passed},
        "cost": None if found.cost is None else _cost(found.cost),
    }


def _ratings(found: RatingAgreement) -> dict[str, Any]:
    return {
        "against": found.against,
        "consensus": correlation_data(found.consensus),
        "raters": [correlation_data(one) for one in found.each],
        "pairs_of_raters": [correlation_data(one) for one in found.pairs],
        "mean_tau_b_with_one_rater": mean_tau_b(found.each),
        "mean_tau_b_of_two_raters": mean_tau_b(found.pairs),
        "suspicious": found.suspicious,
        "unanswered": found.unanswered,
    }


def _bias(found: ScoreBias) -> dict[str, Any]:
    beside = found.beside
    return {
        "by": found.by,
        "scores": correlation_data(found.scores),
        "held_constant": found.against or None,
        "beside_ratings": None
        if beside is None
        else {
            "scores_tau_b": beside.scores._asdict(),
            "ratings_tau_b": beside.ratings._asdict(),
            "difference": beside.difference._asdict(),
            "partial": beside.partial._asdict(),
            "candidates": beside.n,
            "units": beside.n_units,
        },
    }


def _repeats(found: SelfConsistency) -> dict[str, Any]:
    return {
        "draws": found.draws,
        "pairs": found.pairs,
        "incomplete": found.incomplete,
        "mean_sd": found.sd._asdict(),
        "identical_counts": found.identical._asdict(),
        "krippendorff_alpha_interval": found.alpha._asdict(),
        "icc_2_1": found.icc._asdict(),
    }


def _cost(found: JudgeCost) -> dict[str, Any]:
    return {
        "pairs": found.pairs,
        "calls": found.calls,
        "seconds": found.seconds,
        "tokens": found.tokens,
        "price": found.price,
        "currency": found.currency or None,
        "seconds_per_pair": found.seconds_per_pair,
        "tokens_per_pair": found.tokens_per_pair,
        "price_per_pair": found.price_per_pair,
    }


def judge_meta_said(found: JudgeMetaEvaluation) -> tuple[str, ...]:
    """Return the meta-evaluation as sentences; each says what was held against what."""
    answered = found.pairs - found.unanswered
    said = [
        f"{found.judge}: {count(answered)} of {count(found.pairs)} pairs have a score. "
        f"Intervals are of 95 %, over {count(found.units)} {found.unit}s."
    ]
    for one in found.errors:
        said += errors_said(one)
    if found.ratings is not None:
        said += _ratings_said(found.ratings)
    said += [_bias_said(one) for one in (found.length, found.position)]
    if found.consistency is not None:
        said.append(_repeats_said(found.consistency))
    said.append(_copies_said(found.copies))
    if found.cost is not None:
        said.append(_cost_said(found.cost))
    return tuple(said)


def _ratings_said(found: RatingAgreement) -> list[str]:
    tau_b = found.consensus.tau_b
    said = [
        f"Scores against the mean {found.against}: tau-b {share(tau_b.value)} "
        f"{interval(tau_b)} on {counted(found.consensus.n, 'pair')}; mean tau-b with "
        f"one rater {share(mean_tau_b(found.each))}, of two raters "
        f"{share(mean_tau_b(found.pairs))}."
    ]
    if found.unanswered:
        one = "rated pair has no score and is left out"
        many = "rated pairs have no score and are left out"
        said.append(f"{counted(found.unanswered, one, many)}.")
    if found.suspicious:
        said.append(
            "Suspicious: the scores agree with one rater more than another rater does. "
            "That is no merit: check whether the judge was made with these ratings."
        )
    return said


_BY: Final = {
    "length": "the candidate's length in words",
    "position": "the pair's position in the file",
}


def _bias_said(found: ScoreBias) -> str:
    tau_b = found.scores.tau_b
    said = (
        f"Scores and {_BY[found.by]}: tau-b {signed(tau_b.value)} "
        f"{signed_interval(tau_b)}."
    )
    if found.beside is None:
        return f"{said} Without ratings it is unknown how much of this is quality."
    one = found.beside
    return (
        f"{said} On the {count(one.n)} rated pairs {signed(one.scores.value)}, the "
        f"{found.against} {signed(one.ratings.value)}, difference "
        f"{signed(one.difference.value)} {signed_interval(one.difference)}; with the "
        f"ratings held constant {signed(one.partial.value)} "
        f"{signed_interval(one.partial)}."
    )


def _repeats_said(found: SelfConsistency) -> str:
    return (
        f"Asked {found.draws} times: the scores of a pair have a mean standard "
        f"deviation of {share(found.sd.value)} {interval(found.sd)}; error counts are "
        f"identical in {share(found.identical.value)} {interval(found.identical)} of "
        f"{counted(found.pairs, 'pair')}; ICC(2,1) {share(found.icc.value)} "
        f"{interval(found.icc)}, Krippendorff's alpha {share(found.alpha.value)} "
        f"{interval(found.alpha)}. {count(found.incomplete)} pairs were answered in "
        "some draws only and are left out."
    )


def _copies_said(found: CopyTest) -> str:
    if not found.copies:
        return "No candidate is a copy of its reference, so there was no copy test."
    said = (
        f"Copy test: {count(found.copies - len(found.wrong) - found.unanswered)} of "
        f"{count(found.copies)} copies of the reference have the best score"
    )
    if found.unanswered:
        said += f", {count(found.unanswered)} have none"
    if found.wrong:
        places = listed((str(place + 1) for place in found.wrong), _LISTED)
        said += f"; not pair {places}"
    return f"{said}."


def _cost_said(found: JudgeCost) -> str:
    parts = [f"{counted(found.calls, 'call')} for {counted(found.pairs, 'pair')}"]
    if found.seconds_per_pair is not None:
        parts.append(f"{found.seconds_per_pair:.2f} s a pair")
    if found.tokens_per_pair is not None:
        parts.append(f"{found.tokens_per_pair:,.0f} tokens a pair")
    if found.price_per_pair is not None:
        price = f"{found.price_per_pair:.4f} {found.currency}".rstrip()
        parts.append(f"{price} a pair")
    return f"Cost: {', '.join(parts)}."
