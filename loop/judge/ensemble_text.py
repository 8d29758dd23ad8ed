"""An ensemble as rows, as sentences and as JSON data."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from loop import __version__
from loop.core.nouns import counted
from loop.documents.numbers import (
    NOT_ESTIMABLE,
    count,
    interval,
    listed,
    p_value,
    share,
    signed,
    signed_interval,
)
from loop.judge.ensemble import EnsembleMethod
from loop.judge.ensemble_versions import (
    Ensemble,
    EnsembleMember,
    EnsembleVersion,
    FoldResults,
    KeptAgreement,
    KeptComparison,
)

FORMAT: Final = "ranloop-ensemble-1"
"""Name of the shape; another number means that readers must look again."""

_AGREEMENT: Final = ("tau-b", "95 %", "Spearman", "Pearson")
MEMBER_HEADER: Final = ("member", "better", "coefficient", "per SD", *_AGREEMENT)
FOLD_HEADER: Final = ("out of fold", *_AGREEMENT, "tau-b minus best", "95 %", "p")

_FEW: Final = 10
"""Pairs per member below which coefficients are said to be uncertain."""


def ensemble_title(version: EnsembleVersion) -> str:
    """Return what an ensemble is, in one line."""
    told = version.ensemble
    on = told.fitted_on
    return (
        f"{version.ref}: {told.method} of {len(told.members)} members, fitted on "
        f"{counted(on.pairs, 'pair')} of {count(on.units)} {on.unit}s of {on.cohort}"
    )


def member_rows(ensemble: Ensemble) -> list[tuple[str, ...]]:
    """Return a row for each member, and one for the intercept of a regression."""
    told = ensemble.out_of_fold
    rows: list[tuple[str, ...]] = [
        (
            one.title if one.title == one.name else f"{one.title} ({one.name})",
            one.better,
            signed(one.coefficient, 4),
            signed(one.weight),
            *_agreement(told.members[place] if told else None),
        )
        for place, one in enumerate(ensemble.members)
    ]
    if ensemble.method is EnsembleMethod.MEAN:
        return rows
    zero = ensemble.intercept - sum(
        one.coefficient * one.centre for one in ensemble.members
    )
    blank = NOT_ESTIMABLE
    return [*rows, ("intercept", blank, signed(zero, 4), *[blank] * 5)]


def _agreement(found: KeptAgreement | None) -> tuple[str, ...]:
    if found is None:
        return (NOT_ESTIMABLE,) * 4
    return (
        share(found.tau_b.value),
        interval(found.tau_b),
        share(found.spearman.value),
        share(found.pearson.value),
    )


def fold_rows(ensemble: Ensemble) -> list[tuple[str, ...]]:
    """Return a row for the best member and for each ensemble; none if not measured."""
    told = ensemble.out_of_fold
    if told is None:
        return []
    nothing = (NOT_ESTIMABLE,) * 3
    rows: list[tuple[str, ...]] = [("best member", *_agreement(told.best), *nothing)]
    for one in told.against:
        rows.append(
            (
                _of_all(one.method),
                *_agreement(told.of(one.method)),
                signed(one.difference.value),
                signed_interval(one.difference),
                NOT_ESTIMABLE if one.p is None else p_value(one.p),
            )
        )
    for group in told.groups:
        of = f"{len(group.members)} members' {group.score}"
        rows.append((f"mean of {of}", *_agreement(group.mean), *nothing))
        rows.append((f"regression of {of}", *_agreement(group.regression), *nothing))
    return rows


def _of_all(method: EnsembleMethod) -> str:
    return f"{method} of all members"


def verdict(ensemble: Ensemble) -> str:
    """Return, in a sentence or two, whether an ensemble beats its best member."""
    told = ensemble.out_of_fold
    if told is None:
        return (
            "Whether it is better than its best member was not measured. Fit it with "
            "--out-of-fold."
        )
    own = told.beside(ensemble.method)
    (other,) = [one for one in told.against if one.method is not ensemble.method]
    return f"{_says(told, own)} {_says_other(told, other, own)}".rstrip()


def _says(told: FoldResults, one: KeptComparison) -> str:
    does = "beats" if one.beats else "does not beat"
    if one.difference.value is None or one.p is None:
        return (
            f"Whether the {one.method} beats its best member is unknown: a tau-b is "
            "undefined."
        )
    own, best = told.of(one.method).tau_b.value, told.best.tau_b.value
    return (
        f"Out of fold, the {one.method} {does} its best member: tau-b {share(own)} "
        f"against {share(best)}, "
        f"difference {signed(one.difference.value)} "
        f"{signed_interval(one.difference)}, p {p_value(one.p)}."
    )


def _says_other(told: FoldResults, other: KeptComparison, own: KeptComparison) -> str:
    if other.difference.value is None or other.p is None:
        return ""
    does = "beats it" if other.beats else "does not beat it"
    too = ", too" if other.beats and own.beats else ""
    too = ", either" if not other.beats and not own.beats else too
    tau = told.of(other.method).tau_b.value
    return (
        f"The {other.method} {does}{too}: tau-b {share(tau)}, "
        f"difference {signed(other.difference.value)} "
        f"{signed_interval(other.difference)}, p {p_value(other.p)}."
    )


def ensemble_notes(ensemble: Ensemble) -> list[str]:
    """Return what a reader of the numbers must know, as sentences."""
    on = ensemble.fitted_on
    found = [_method_said(ensemble)]
    if on.left_out:
        by_member = listed(
            [f"{one.name} {one.missing}" for one in ensemble.members if one.missing]
        )
        found.append(
            f"{on.left_out} of {on.rated} rated pairs are left out, because a member "
            f"has no readable answer for them: {by_member}."
        )
    lower = [one.name for one in ensemble.members if one.lower]
    if lower:
        found.append(
            f"Lower is better for {listed(lower)}: values keep their sign, so the "
            f"coefficient{'' if len(lower) == 1 else 's'} should be below 0."
        )
    found += [_against_said(one) for one in ensemble.members if one.against_direction]
    if on.pairs < _FEW * len(ensemble.members):
        found.append(
            f"{on.pairs} pairs are fewer than {_FEW} for each of "
            f"{counted(len(ensemble.members), 'member')}: coefficients are uncertain."
        )
    if ensemble.out_of_fold is not None:
        found += _fold_notes(ensemble, ensemble.out_of_fold)
    return found


def _method_said(ensemble: Ensemble) -> str:
    on = ensemble.fitted_on
    if ensemble.method is EnsembleMethod.MEAN:
        return (
            "The score is the mean of the members in standard deviations of the fitted "
            "pairs (per SD), each turned so that more is better: 0 is an average pair. "
            "Ratings are not used."
        )
    return (
        "The score is the intercept plus the sum of coefficient x value: least squares "
        f"on the mean of {counted(on.raters, 'rater')} ({on.scale}), not cut off at "
        "the ends of that scale. Per SD: what one standard deviation of a member adds."
    )


def _against_said(one: EnsembleMember) -> str:
    should = "below" if one.lower else "above"
    return (
        f"The coefficient of {one.name} has the wrong sign: {one.better} is better, so "
        f"it should be {should} 0. The member adds little to the others, or corrects "
        "them; the coefficient does not say how good it is."
    )


def _fold_notes(ensemble: Ensemble, told: FoldResults) -> list[str]:
    on = ensemble.fitted_on
    times = Counter(told.chosen)
    named = listed([f"{name} in {n}" for name, n in times.most_common()])
    values = [one.tau_b.value for one in told.members]
    defined = [value for value in values if value is not None]
    found = [
        f"Out of fold: {told.folds} folds of {on.units} {on.unit}s (seed {told.seed}); "
        "centres, scales and coefficients come from the other folds. The best member "
        f"is chosen on the other folds, too: {named} of {told.folds}."
    ]
    chosen = told.best.tau_b.value
    if defined and chosen is not None and max(defined) > chosen:
        place = values.index(max(defined))
        found.append(
            f"In hindsight, the best member is {ensemble.names[place]}, tau-b "
            f"{share(max(defined))}; that choice uses the pairs that are scored, so it "
            "looks better than it is."
        )
    found += _measures_said(ensemble, told)
    found.append(
        "On the very pairs it was fitted on, the regression has a tau-b of "
        f"{share(told.in_sample.tau_b.value)}, which is optimistic and no evidence."
    )
    found.append(
        f"tau-b is with the mean of {counted(on.raters, 'rater')} ({on.ratings}). "
        f"Intervals are of 95 %, by bootstrap: {told.resamples:,} resamples of "
        f"{on.unit}s, with the folds kept. p is from "
        f"{_test_said(told, ensemble.method)}. An ensemble beats its best member if p "
        "is below 0.05 and the interval of the difference is above 0."
    )
    return found


def _measures_said(ensemble: Ensemble, told: FoldResults) -> list[str]:
    """Say where other coefficients order ensemble and best member differently."""
    own, best = told.of(ensemble.method), told.best
    differ = []
    for name in ("spearman", "pearson"):
        one, other = getattr(own, name).value, getattr(best, name).value
        tau = told.beside(ensemble.method).difference.value
        if None not in (one, other, tau) and (one - other) * tau < 0:
            differ.append(f"{name.title()} {share(one)} against {share(other)}")
    if not differ:
        return []
    ((most, _),) = Counter(told.chosen).most_common(1)
    few = next(one for one in ensemble.members if one.name == most)
    return [
        f"Other coefficients order the two the other way round ({', '.join(differ)}), "
        "but they were not tested. tau-b, which decides, favours a score with few "
        f"values where raters tie ({few.name} has {few.distinct} values on "
        f"{counted(ensemble.fitted_on.pairs, 'pair')})."
    ]


def _test_said(told: FoldResults, method: EnsembleMethod) -> str:
    if told.beside(method).exact:
        return "all exchanges of the two scores, unit by unit"
    return f"{5 * told.resamples:,} exchanges of the two scores, unit by unit"


def ensemble_data(version: EnsembleVersion) -> dict[str, Any]:
    """Return an ensemble as JSON data, with everything needed to fit it again."""
    told = version.ensemble
    return {
        "format": FORMAT,
        "ranloop": __version__,
        "ensemble": version.ref,
        "digest": version.digest,
        "signature": version.signature,
        "unit": told.unit,
        **told.model_dump(mode="json"),
        "coefficients": {one.name: one.coefficient for one in told.members},
        "verdict": verdict(told),
        "notes": ensemble_notes(told),
        "fitted_rows": [
            {
                "unit": row.unit,
                "points": row.points,
                "values": dict(zip(told.names, row.values, strict=True)),
                **(
                    dict(
                        zip(
                            ("fold", "mean", "regression", "best_member"),
                            row.out_of_fold,
                            strict=True,
                        )
                    )
                    if row.out_of_fold
                    else {}
                ),
            }
            for row in version.rows
        ],
    }
