"""How many cases a claim needs, and how many errors it can bear."""

from __future__ import annotations

from math import ceil

from scipy.special import bdtr, betaincinv

from loop.stats.intervals import check_confidence, lower_limit

_MOST = 10_000_000
"""A plan beyond this many cases is no plan."""


def max_errors(n: int, threshold: float, confidence: float = 0.95) -> int | None:
    """Return the most errors in `n` cases that still certify `threshold`.

    Parameters
    ----------
    n
        Number of cases.
    threshold
        Accuracy in (0, 1) that the exact one-sided lower limit must reach.
    confidence
        One-sided level; 0.975 gives the two-sided 95 % interval.

    Returns
    -------
    int or None
        None when even a perfect result cannot certify it.

    Raises
    ------
    ValueError
        `n` is negative, or a level is outside (0, 1).

    References
    ----------
    Clopper CJ, Pearson ES. Biometrika 1934;26:404-413, inverted over the count.

    Examples
    --------
    >>> max_errors(300, 0.95), max_errors(58, 0.95)
    (8, None)
    """
    _check_levels(threshold, confidence)
    if lower_limit(n, n, confidence=confidence) < threshold:
        return None
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if lower_limit(n - middle, n, confidence=confidence) >= threshold:
            low = middle
        else:
            high = middle
    return low


def cases_needed(
    errors: int, n: int, *, threshold: float, confidence: float
) -> int | None:
    """Return about how many more cases the accuracy gate needs.

    The answer supposes that the observed accuracy continues. It is a planning number:
    the certifying count is saw-toothed in the number of cases.

    Parameters
    ----------
    errors
        Wrong cases so far.
    n
        Cases so far.
    threshold
        Accuracy in (0, 1) to reach.
    confidence
        One-sided level of the exact lower limit that must reach it.

    Returns
    -------
    int or None
        More cases, 0 when the gate is met already. None when the observed accuracy
        does not lie above the threshold, so that no number of cases is enough, or
        when ten million would not be.

    Raises
    ------
    ValueError
        The counts are impossible, or a level is outside (0, 1).

    References
    ----------
    Clopper CJ, Pearson ES. Biometrika 1934;26:404-413, with the expected instead of
    an integer count.

    Examples
    --------
    >>> cases_needed(0, 30, threshold=0.95, confidence=0.95)
    29
    """
    _check_levels(threshold, confidence)
    if not 0 <= errors <= n:
        raise ValueError(f"need 0 <= errors <= n, got {errors} of {n}")
    rate = errors / n if n else 0.0
    if 1 - rate <= threshold:
        return None
    return _search(rate, n, threshold, confidence)


def cases_for_width(n: int, *, width: float, wanted: float) -> int | None:
    """Return about how many more cases narrow an interval to a half-width.

    Parameters
    ----------
    n
        Cases so far.
    width
        Half-width of the interval over them, >= 0.
    wanted
        Half-width that is wanted.

    Returns
    -------
    int or None
        More cases, 0 when the interval is narrow enough. None when `wanted` is not
        above 0, or when ten million would not be enough.

    Raises
    ------
    ValueError
        `n` or `width` is negative.

    References
    ----------
    The standard error falls with the root of the cases: ``n (width / wanted)^2``.

    Examples
    --------
    >>> cases_for_width(100, width=0.3, wanted=0.15)
    300
    """
    if n < 0 or width < 0:
        raise ValueError(f"need n and width >= 0, got {n} and {width}")
    if wanted <= 0:
        return None
    more = n * (width / wanted) ** 2 - n
    return max(ceil(more - 1e-9), 0) if more <= _MOST else None


def positives_needed(
    target: float, *, confidence: float = 0.95, misses: int = 0
) -> int:
    """Return the positives needed to certify a sensitivity with so many misses.

    Parameters
    ----------
    target
        Sensitivity in (0, 1) that the exact one-sided lower limit must reach.
    confidence
        One-sided level; 0.975 gives the two-sided 95 % interval.
    misses
        Positives that may be missed.

    Returns
    -------
    int
        The smallest sufficient number of positives.

    Raises
    ------
    ValueError
        `misses` is negative, or a level is outside (0, 1).

    References
    ----------
    Clopper CJ, Pearson ES. Biometrika 1934;26:404-413, inverted over the trials.

    Examples
    --------
    >>> positives_needed(0.80), positives_needed(0.80, confidence=0.975)
    (14, 17)
    """
    _check_levels(target, confidence)
    if misses < 0:
        raise ValueError(f"misses must be >= 0, got {misses}")
    positives = misses + 1
    while lower_limit(positives - misses, positives, confidence=confidence) < target:
        positives += 1
    return positives


def cases_for_positives(more: int, positives: int, n: int) -> int | None:
    """Return about how many more random cases bring so many more positives.

    Parameters
    ----------
    more
        Positives still missing.
    positives
        Positives among the `n` cases so far.
    n
        Cases so far.

    Returns
    -------
    int or None
        The number expected at the observed prevalence; None when no positive has
        been seen, so that the prevalence is unknown.

    References
    ----------
    The mean of the negative binomial distribution, ``more / prevalence``.

    Examples
    --------
    >>> cases_for_positives(29, 6, 300)
    1450
    """
    if more <= 0:
        return 0
    return ceil(more * n / positives) if positives else None


def certification_power(
    n: int, *, accuracy: float, threshold: float, confidence: float = 0.95
) -> float:
    """Return the chance that `n` cases certify `threshold` if `accuracy` is true.

    Parameters
    ----------
    n
        Number of cases.
    accuracy
        Supposed true accuracy in [0, 1].
    threshold
        Accuracy that the exact one-sided lower limit must reach.
    confidence
        One-sided level; 0.975 gives the two-sided 95 % interval.

    Returns
    -------
    float
        Power in [0, 1]; saw-toothed in `n`.

    Raises
    ------
    ValueError
        `n` is negative, `accuracy` is outside [0, 1], or a level outside (0, 1).

    References
    ----------
    Chernick MR, Liu CY. Am Stat 2002;56:149-155 (the saw-tooth).

    Examples
    --------
    >>> round(certification_power(124, accuracy=0.99, threshold=0.95), 3)
    0.872
    """
    if not 0 <= accuracy <= 1:
        raise ValueError(f"accuracy must be in [0, 1], got {accuracy}")
    bearable = max_errors(n, threshold, confidence)
    return 0.0 if bearable is None else float(bdtr(bearable, n, 1 - accuracy))


def _search(rate: float, n: int, threshold: float, confidence: float) -> int | None:
    """Return how many more cases bring the expected lower limit to `threshold`."""

    def certifies(total: int) -> bool:
        errors = rate * total
        limit = betaincinv(total - errors, errors + 1, 1 - confidence)
        return bool(limit >= threshold)

    low, high = n, max(n, 1)
    while not certifies(high):
        low, high = high, 2 * high
        if low > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if certifies(middle) else (middle, high)
    return high - n


def _check_levels(threshold: float, confidence: float) -> None:
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must be in (0, 1), got {threshold}")
    check_confidence(confidence)
