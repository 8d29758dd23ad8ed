"""A judge's error counts against experts': F1 of each kind of error, and the bias.

Counts are held against counts, never against points. That two counts agree does not
say that they are of the same errors: two different false findings count as a hit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.core.safe_text import quoted
from loop.labels.error_categories import ErrorGroup, read_errors
from loop.score.experts.error_tables import ErrorTable, not_clinical
from loop.score.experts.ratings import unit_codes
from loop.stats.confusion import divide
from loop.stats.correlation import correlate
from loop.stats.intervals import Estimate
from loop.stats.resampling import Resampling, bootstrap, to_estimate

MOST_ERRORS: Final = 12
"""True errors up to which the bias is told for each number."""


class CategoryGroup(NamedTuple):
    """Categories that are counted together."""

    name: str
    categories: tuple[str, ...]


@cache
def category_groups() -> tuple[CategoryGroup, ...]:
    """Return false predictions, omissions and attributes, by ``labels/errors.yaml``.

    Examples
    --------
    >>> category_groups()[0]
    CategoryGroup(name='false predictions', categories=('false_finding', 'comparison'))
    """
    known = read_errors(bundled() / "labels").categories
    return tuple(
        CategoryGroup(
            f"{group.value.replace('_', ' ')}s",
            tuple(one.id for one in known if one.counts_as is group.counts_as),
        )
        for group in ErrorGroup
    )


class CountF1(NamedTuple):
    """How far two counts of errors agree, over all candidates that have both."""

    true: float
    """Sum of the smaller count of each candidate."""

    found: float
    """Errors that the first side counts."""

    expected: float
    """Errors that the second side counts."""

    precision: float | None
    """``true / found``; None where nothing is found."""

    recall: float | None
    """``true / expected``; None where nothing is expected."""

    f1: Estimate
    """``2 true / (found + expected)``; None where neither side counts an error."""

    n: int
    """Candidates that both sides judged."""


def count_f1(found: NDArray[Any], expected: NDArray[Any], **resampling: Any) -> CountF1:
    """Return precision, recall and F1 of counts, micro over candidates.

    Parameters
    ----------
    found, expected
        Errors of each candidate by the one and by the other side, NaN where not
        judged, shape ``(n_candidates,)``. Which of the two is first does not change
        the F1.
    **resampling
        ``units``, ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    CountF1
        With a bootstrap interval over units. A count of 0 against some errors is an
        F1 of 0; without any error on either side there is none.

    References
    ----------
    Of counts, as in the appendix C of VERT: TP is the sum of the smaller counts, FP of
    what is found beyond, FN of what is expected beyond.

    Examples
    --------
    >>> told = count_f1(np.array([0, 3, 1]), np.array([1, 2, 0]), resamples=9)
    >>> told.precision, round(told.recall, 4), round(told.f1.value, 4)
    (0.5, 0.6667, 0.5714)
    """
    one = np.asarray(found, dtype=np.float64)
    other = np.asarray(expected, dtype=np.float64)
    both = ~np.isnan(one) & ~np.isnan(other)
    columns = np.stack([np.minimum(one, other), one, other], axis=1)
    columns = np.where(both[:, None], columns, 0.0)
    [result] = bootstrap(
        columns,
        lambda sums: divide(2 * sums[:, 0], sums[:, 1] + sums[:, 2]),
        **resampling,
    )
    true, first, second = (float(total) for total in columns.sum(axis=0))
    note = "" if first + second else "not estimable: no error on either side"
    return CountF1(
        true=true,
        found=first,
        expected=second,
        precision=true / first if first else None,
        recall=true / second if second else None,
        f1=to_estimate(result, note),
        n=int(both.sum()),
    )


class BiasBin(NamedTuple):
    """Candidates in which the experts count so many errors."""

    errors: int
    n: int
    difference: Estimate
    """Mean of the judge's count minus the experts'; above 0, the judge counts more."""


def bias_curve(
    found: NDArray[Any],
    expected: NDArray[Any],
    units: NDArray[Any] | None = None,
    *,
    most: int = MOST_ERRORS,
    **resampling: Any,
) -> tuple[BiasBin, ...]:
    """Return how many errors a judge counts too many, by the number of true errors.

    Parameters
    ----------
    found, expected
        The judge's and the experts' errors of each candidate, NaN where not judged,
        shape ``(n_candidates,)``. A half, the median of two raters, is rounded up to
        find its bin; the difference is taken from the half.
    units
        Unit of each candidate; None: each is its own.
    most
        Largest number of true errors that is told.
    **resampling
        ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    tuple[BiasBin, ...]
        One for each number from 1 to `most`, empty ones too. Units within the bin are
        resampled; one unit has no interval.
    """
    difference = np.asarray(found - expected, dtype=np.float64)
    names = np.arange(len(difference)) if units is None else np.asarray(units)
    rounded = np.floor(np.asarray(expected, dtype=np.float64) + 0.5)
    bins = []
    for errors in range(1, most + 1):
        chosen = (rounded == errors) & ~np.isnan(difference)
        mean = mean_difference(difference[chosen], names[chosen], **resampling)
        bins.append(BiasBin(errors, int(chosen.sum()), mean))
    return tuple(bins)


def mean_difference(
    differences: NDArray[np.float64], units: NDArray[Any], **resampling: Any
) -> Estimate:
    """Return the mean of the differences that are not NaN, with an interval over units.

    Parameters
    ----------
    differences
        Shape ``(n_candidates,)``; None comes back without one.
    units
        Unit of each candidate.
    **resampling
        ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).
    """
    there = ~np.isnan(differences)
    if not there.any():
        return Estimate(None, None, None, "not estimable: no candidate")
    kept = differences[there]
    [result] = bootstrap(
        np.stack([kept, np.ones(len(kept))], axis=1),
        lambda sums: divide(sums[:, 0], sums[:, 1]),
        units=units[there],
        **resampling,
    )
    return to_estimate(result)


class GroupAgreement(NamedTuple):
    """One kind of error: the judge against the experts, and these among themselves."""

    group: CategoryGroup
    judge: CountF1
    """Against the median of the raters."""

    each: tuple[CountF1, ...]
    """The judge against each rater alone."""

    pairs: tuple[CountF1, ...]
    """Every two raters; empty for one rater."""

    rest: tuple[CountF1, ...]
    """Each rater against the median of the others; empty for one rater."""

    difference: Estimate
    """Mean of the judge's count minus the experts' median."""

    @property
    def f1_each(self) -> float | None:
        """Mean F1 of the judge with one rater."""
        return _mean(self.each)

    @property
    def f1_pairs(self) -> float | None:
        """Mean F1 of two raters."""
        return _mean(self.pairs)

    @property
    def f1_rest(self) -> float | None:
        """Mean F1 of one rater with the median of the others."""
        return _mean(self.rest)

    @property
    def suspicious(self) -> bool:
        """Whether the judge agrees with one rater more than another rater does."""
        one, two = self.f1_each, self.f1_pairs
        return one is not None and two is not None and one > two


def _mean(found: Sequence[CountF1]) -> float | None:
    values = [one.f1.value for one in found]
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if len(defined) == len(values) > 0 else None


class WordingCount(NamedTuple):
    """Errors of wording or grammar, shown apart."""

    experts: float
    """Sum over candidates of the median of the raters."""

    candidates: int
    """With a median above 0."""

    judge: float | None
    """Sum over all candidates, also those in which the experts count none; None for a
    judge that is not asked for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAgreement:
    """A judge's error counts against experts'."""

    judge: str
    """What counted, for example ``"Embedded judge"``."""

    signature: str
    against: str
    """What it was held against."""

    all_errors: bool
    """Whether insignificant errors are counted, too."""

    groups: tuple[GroupAgreement, ...]
    categories: tuple[GroupAgreement, ...]
    """Each category that somebody counts alone."""

    total: GroupAgreement
    """All clinical categories together."""

    wording: WordingCount | None
    """Errors of the seventh category, which is not clinical and is part of no other
    number; None where the experts count none."""

    tau_b: Estimate
    """Of the judge's number of errors with the experts': errors with errors."""

    bias: tuple[BiasBin, ...]
    without: int
    """Candidates in which the experts count no error; in no bin."""

    above: int
    """Candidates with more true errors than the last bin."""

    candidates: int
    """Candidates that the judge and an expert judged."""

    unanswered: int
    """Candidates with expert counts and none of the judge; in no number."""

    units: int
    """Cases or patients that these candidates belong to."""

    by_patient: bool


def agree_on_errors(
    judge: ErrorTable,
    experts: ErrorTable,
    *,
    name: str,
    all_errors: bool,
    patients: Mapping[str, str] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> ErrorAgreement:
    """Return how far a judge's error counts agree with experts'.

    Parameters
    ----------
    judge
        Counts of one rater, the judge. Candidates without them are left out and
        counted, never taken for candidates without an error.
    experts
        Counts of one expert or more; what they say together is the median of those
        who judged the candidate.
    name
        What counted.
    all_errors
        Whether insignificant errors count, too.
    patients
        Patient by case id: units of the resampling; None: cases are.
    resamples, seed
        Of the bootstrap.

    Raises
    ------
    DataError
        The two have no candidate in common; names one of each.

    References
    ----------
    The form of the bias curve, candidates with 1 to 12 true errors: the analysis of
    RadEval in VERT, appendix C. Median over readers: Conover WJ. Practical
    Nonparametric Statistics. 3rd ed. 1999.
    """
    answered, asked = _both_said(judge, experts, all_errors)
    kept = answered & asked
    if not kept.any():
        raise DataError(
            "no candidate has error counts of both sides: the judge's are of "
            f"{_shown(judge)}, the experts' of {_shown(experts)}. Give both files the "
            "same ids and systems."
        )
    keys = [key for key, both in zip(experts.keys, kept, strict=True) if both]
    own, theirs = judge.rows(keys), experts.rows(keys)
    units = unit_codes(tuple(case for case, _ in keys), patients)
    drawn = Resampling(units=units, resamples=resamples, seed=seed)

    def agree(group: CategoryGroup) -> GroupAgreement:
        return _agree(group, own, theirs, all_errors, drawn)

    said = [
        one
        for one in theirs.categories
        if one not in not_clinical() and _is_counted(one, own, theirs, all_errors)
    ]
    groups = category_groups()
    whole = CategoryGroup(
        "all categories", tuple(one for each in groups for one in each.categories)
    )
    found, expected = _totals(whole, own, theirs, all_errors)
    rounded = np.floor(expected + 0.5)
    return ErrorAgreement(
        judge=name,
        signature=judge.signature,
        against=_against(theirs, all_errors),
        all_errors=all_errors,
        groups=tuple(agree(group) for group in groups),
        categories=tuple(agree(CategoryGroup(one, (one,))) for one in said),
        total=agree(whole),
        wording=_count_wording(own, theirs, all_errors),
        tau_b=correlate(found, expected, **drawn).tau_b,
        bias=bias_curve(found, expected, units, resamples=resamples, seed=seed),
        without=int((rounded < 1).sum()),
        above=int((rounded > MOST_ERRORS).sum()),
        candidates=len(keys),
        unanswered=int((asked & ~answered).sum()),
        units=len(np.unique(units)),
        by_patient=patients is not None,
    )


def agree_with_and_without(
    judge: ErrorTable,
    experts: ErrorTable,
    *,
    name: str,
    patients: Mapping[str, str] | None,
    resamples: int,
    seed: int,
) -> tuple[ErrorAgreement, ...]:
    """Return what `agree_on_errors` does without, then with insignificant errors.

    Only the first if there is no candidate with insignificant errors of both sides.
    """
    with_all = np.logical_and(*_both_said(judge, experts, all_errors=True)).any()
    return tuple(
        agree_on_errors(
            judge,
            experts,
            name=name,
            all_errors=every,
            patients=patients,
            resamples=resamples,
            seed=seed,
        )
        for every in ((False, True) if with_all else (False,))
    )


def _both_said(
    judge: ErrorTable, experts: ErrorTable, all_errors: bool
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which of the experts' candidates the judge, and an expert, counted."""
    own = judge.rows(experts.keys).totals(judge.categories, all_errors=all_errors)
    theirs = experts.totals(experts.categories, all_errors=all_errors)
    return ~np.isnan(own[:, 0]), np.any(~np.isnan(theirs), axis=1)


def _agree(
    group: CategoryGroup,
    own: ErrorTable,
    theirs: ErrorTable,
    all_errors: bool,
    drawn: Resampling,
) -> GroupAgreement:
    found, expected = _totals(group, own, theirs, all_errors)
    raters = theirs.totals(group.categories, all_errors=all_errors).T
    several = len(raters) > 1
    others = [
        median_given(np.delete(raters, place, axis=0).T)
        for place in range(len(raters) if several else 0)
    ]
    return GroupAgreement(
        group=group,
        judge=count_f1(found, expected, **drawn),
        each=tuple(count_f1(found, one, **drawn) for one in raters),
        pairs=tuple(count_f1(a, b, **drawn) for a, b in combinations(raters, 2)),
        rest=tuple(
            count_f1(one, other, **drawn)
            for one, other in zip(raters, others, strict=False)
        ),
        difference=mean_difference(
            found - expected,
            drawn["units"] if drawn["units"] is not None else np.arange(len(found)),
            resamples=drawn["resamples"],
            seed=drawn["seed"],
        ),
    )


def _totals(
    group: CategoryGroup, own: ErrorTable, theirs: ErrorTable, all_errors: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the judge's and the experts' errors of each candidate."""
    found = own.totals(group.categories, all_errors=all_errors)[:, 0]
    raters = theirs.totals(group.categories, all_errors=all_errors)
    return found, median_given(raters)


def median_given(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of each row over its defined cells; NaN where there is none.

    Examples
    --------
    >>> median_given(np.array([[1.0, np.nan, 4.0], [2, 0, 5], [np.nan] * 3])).tolist()
    [2.5, 2.0, nan]
    """
    medians = np.full(len(counts), np.nan)
    given = (~np.isnan(counts)).any(axis=1)
    if given.any():
        medians[given] = np.nanmedian(counts[given], axis=1)
    return medians


def _count_wording(
    own: ErrorTable, theirs: ErrorTable, all_errors: bool
) -> WordingCount | None:
    group = CategoryGroup("wording", tuple(sorted(not_clinical())))
    found, expected = _totals(group, own, theirs, all_errors)
    if not np.nansum(expected):
        return None
    asked = not_clinical().intersection(own.categories)
    return WordingCount(
        experts=float(np.nansum(expected)),
        candidates=int((expected > 0).sum()),
        judge=float(np.nansum(found)) if asked else None,
    )


def _is_counted(
    category: str, own: ErrorTable, theirs: ErrorTable, all_errors: bool
) -> bool:
    sides = (own, theirs)
    totals = [one.totals((category,), all_errors=all_errors) for one in sides]
    return any(np.nansum(total) > 0 for total in totals)


def _against(theirs: ErrorTable, all_errors: bool) -> str:
    raters = len(theirs.raters)
    kind = "errors of either significance" if all_errors else "significant errors"
    who = "one expert's" if raters == 1 else f"the median of {raters} experts'"
    return f"{who} counts of {kind}"


def _shown(table: ErrorTable) -> str:
    case, system = table.keys[0]
    return f"case {quoted(case)}, system {quoted(system)}"
