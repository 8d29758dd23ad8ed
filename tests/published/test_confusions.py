"""Whole-number tables behind printed rates, against counting them all."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, norm
from sklearn.metrics import cohen_kappa_score

from loop.published.confusions import at_size, candidates, solvable, solve
from loop.published.positives import share_of_positives
from loop.published.printed import Number
from loop.published.proportions import METHODS, exact_limits
from loop.stats.intervals import clopper_pearson

N = 14


def every():
    """Yield every confusion table of N cases."""
    for tp in range(N + 1):
        for fp in range(N + 1 - tp):
            for fn in range(N + 1 - tp - fp):
                yield tp, fp, fn


def rates(tp, fp, fn, n=N):
    """Return the rates of a table, without those that have no denominator."""
    tn = n - tp - fp - fn
    parts = {
        "accuracy": (tp + tn, n), "precision": (tp, tp + fp), "recall": (tp, tp + fn),
        "specificity": (tn, tn + fp), "npv": (tn, tn + fn),
        "f1": (2 * tp, 2 * tp + fp + fn),
    }  # fmt: skip
    return {name: k / whole for name, (k, whole) in parts.items() if whole}


def fits(printed, table):
    """Whether a table prints so, a rate without a denominator as 0 or 1."""
    own = rates(*table)
    return all(
        number.low <= own[name] <= number.high
        if name in own
        else number.low <= 0 or number.high >= 1
        for name, number in printed.items()
    )


@given(
    st.sampled_from(list(every())),
    st.sets(st.sampled_from(["recall", "specificity", "npv"]), max_size=2),
    st.sampled_from(["precision", "recall", "f1"]),
)
def test_the_solver_finds_exactly_the_tables_that_fit(table, more, first):
    """Neither more nor fewer than by trying each of 680 tables."""
    names = {"accuracy", first, *more}
    printed = {
        name: Number(round(value, 2), 0.01)
        for name, value in rates(*table).items()
        if name in names
    }
    found = solve(printed, N)
    listed = set(zip(*(counts.tolist() for counts in found), strict=True))
    assert listed == {one for one in every() if fits(printed, one)}
    assert table in listed


@pytest.mark.parametrize(("tp", "fp", "fn"), [(4, 1, 2), (3, 3, 1), (6, 2, 3)])
def test_kappa_leaves_only_the_tables_that_have_it(tp, fp, fn):
    """Against scikit-learn's kappa of each of 680 tables."""
    shown = Number(round(_kappa(tp, fp, fn), 3), 0.001)
    printed = {"recall": Number(tp / (tp + fn), 1e-9), "f1": Number(0.5, 2.0)}
    found = solve(printed | {"kappa": shown}, N)
    expected = [
        table
        for table in every()
        if fits(printed, table) and shown.low <= _kappa(*table) <= shown.high
    ]
    assert set(zip(*map(np.ndarray.tolist, found), strict=True)) == set(expected)
    assert (tp, fp, fn) in expected


def _kappa(tp, fp, fn):
    truth = [1] * tp + [0] * fp + [1] * fn + [0] * (N - tp - fp - fn)
    said = [1] * (tp + fp) + [0] * (N - tp - fp)
    return cohen_kappa_score(truth, said, labels=[0, 1])


def test_a_row_that_no_table_prints_has_no_solution():
    """Precision and recall of 1 leave no error, so accuracy cannot be 0.997."""
    one = Number(1.0, 0.001)
    printed = {"accuracy": Number(0.997, 0.001), "precision": one, "recall": one}
    assert solve(printed, 300).tp.size == 0


def test_a_row_of_very_many_cases_is_not_listed():
    """None, so that nothing is concluded from a part of the solutions."""
    loose = {"accuracy": Number(0.5, 0.1), "f1": Number(0.5, 0.1)}
    assert solve(loose, 20_000) is None


@pytest.mark.parametrize("k", [0, 1, 149, 150])
def test_exact_limits_are_those_of_the_package(k):
    """The vectorised form against the one used everywhere else."""
    low, high = exact_limits(np.array([k]), np.array([150]))
    assert (low[0], high[0]) == pytest.approx(clopper_pearson(k, 150))


def _wald(centre, of):
    half = norm.ppf(0.975) * (centre * (1 - centre) / of) ** 0.5
    return max(centre - half, 0), min(centre + half, 1)


KNOWN = {
    "Clopper-Pearson": lambda k, n: binomtest(k, n).proportion_ci(method="exact"),
    "Wilson": lambda k, n: binomtest(k, n).proportion_ci(method="wilson"),
    "Jeffreys": lambda k, n: beta.interval(0.95, k + 0.5, n - k + 0.5),
    "Agresti-Coull": lambda k, n: _wald(
        (k + norm.ppf(0.975) ** 2 / 2) / (n + norm.ppf(0.975) ** 2),
        n + norm.ppf(0.975) ** 2,
    ),
    "Wald": lambda k, n: _wald(k / n, n),
}


@pytest.mark.parametrize("method", KNOWN)
@pytest.mark.parametrize(("k", "n"), [(4, 40), (1, 9), (298, 300)])
def test_each_method_gives_the_limits_of_scipy_or_of_its_closed_form(method, k, n):
    """Inside the ends where conventions differ."""
    low, high = METHODS[method](np.array([k]), np.array([n]), 0.95)
    expected = KNOWN[method](k, n)
    assert (low[0], high[0]) == pytest.approx(tuple(expected), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_no_interval_leaves_zero_and_one(method):
    """Without a success it begins at 0, without a failure it ends at 1."""
    low, high = METHODS[method](np.array([0, 7]), np.array([7, 7]), 0.95)
    assert low[0] == 0
    assert high[1] == 1
    assert low[1] == pytest.approx(1 - high[0])


def test_share_of_positives_inverts_the_rates():
    """From 60 hits, 20 false alarms, 40 misses of 1,000: 100 are positive."""
    assert share_of_positives(0.94, 60 / 80, 60 / 100) == pytest.approx(0.1)


def printed_rates(table, names, n):
    """Return what is printed of a table, 0 where a rate has no denominator."""
    tp, fp, fn = table
    tn = n - tp - fp - fn
    counts = {"tp": tp, "fp": fp, "fn": fn, "tn": tn, "positives": tp + fn}
    own = {"prevalence": (tp + fn) / n, **rates(*table, n)}
    return {
        name: Number(counts[name], 1)
        if name in counts
        else Number(round(own.get(name, 0.0), 2), 0.01)
        for name in names
    }


def prints(printed, table, n):
    """Whether a table prints so; an F1 that follows from its rates says nothing new."""
    tp, fp, fn = table
    tn = n - tp - fp - fn
    counts = {"tp": tp, "fp": fp, "fn": fn, "tn": tn, "positives": tp + fn}
    own = {"prevalence": (tp + fn) / n, **rates(*table, n)}
    checked = dict(printed)
    if {"precision", "recall", "f1"} <= set(printed):
        p, r = printed["precision"].value, printed["recall"].value
        f1 = printed["f1"]
        if p + r > 0 and f1.low <= 2 * p * r / (p + r) <= f1.high:
            del checked["f1"]
    return tn >= 0 and all(
        counts[name] == number.value
        if name in counts
        else number.low <= own[name] <= number.high
        if name in own
        else number.low <= 0 or number.high >= 1
        for name, number in checked.items()
    )


@pytest.mark.parametrize("seed", range(40))
def test_every_count_and_rate_leaves_the_tables_that_print_so(seed):
    """Any of them together, for tables with empty cells, too; at 14 cases and fewer."""
    rng = np.random.default_rng(seed)
    table = (
        (0, 0, 0)
        if seed == 0
        else tuple(rng.multinomial(N, rng.dirichlet([0.5] * 4))[:3])
    )
    every_name = [
        "accuracy", "precision", "recall", "f1", "specificity", "npv", "prevalence",
        "tp", "fp", "fn", "tn", "positives",
    ]  # fmt: skip
    names = rng.choice(every_name, size=rng.integers(1, 6), replace=False).tolist()
    printed = printed_rates(table, names, N)
    found = candidates(printed, N, 10)
    for n in range(10, N + 1):
        expected = {one for one in every() if prints(printed, one, n)}
        for some in (at_size(found, printed, n), solve(printed, n)):
            listed = list(zip(*(counts.tolist() for counts in some), strict=True))
            assert set(listed) == expected
            assert len(listed) == len(expected)
            assert some.positives.tolist() == [tp + fn for tp, _, fn in listed]
    assert table in {one for one in every() if prints(printed, one, N)}


@pytest.mark.parametrize(
    ("names", "enough"),
    [
        ({"accuracy", "precision"}, True),
        ({"precision", "recall"}, True),
        ({"specificity", "f1"}, True),
        ({"accuracy", "specificity"}, False),
        ({"precision"}, False),
        ({"precision", "kappa", "tp"}, False),
        (set(), False),
    ],
)
def test_two_rates_with_hits_among_them_are_enough_to_look(names, enough):
    """Of accuracy and specificity alone the hits are not told."""
    assert solvable(dict.fromkeys(names, Number(0.5, 0.01))) == enough


def test_kappa_without_a_denominator_fits_every_table():
    """Where both sides say one thing only, programs differ."""
    printed = {"kappa": Number(0.5, 0.01), "accuracy": Number(1.0, 0.01)}
    found = solve({**printed, "recall": Number(1.0, 0.01)}, 5)
    assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == [
        (0, 0, 0),
        (5, 0, 0),
    ]


def test_a_million_candidates_are_listed_and_not_one_more(monkeypatch):
    """Of hits and misses, and of false alarms with them."""
    # Recall of 0.5 to 6 positives: none, 1 of 2, 2 of 4, 3 of 6; 0 false alarms.
    recall = {"recall": Number(0.5, 0.01), "fp": Number(0, 1)}
    monkeypatch.setattr("loop.published.confusions._MOST", 3)
    assert candidates(recall, 6).tp.tolist() == [1, 2, 3]
    monkeypatch.setattr("loop.published.confusions._MOST", 2)
    assert candidates(recall, 6) is None
    # With any number of false alarms 5 + 3 + 1 are left of six cases.
    del recall["fp"]
    monkeypatch.setattr("loop.published.confusions._MOST", 9)
    assert candidates(recall, 6).tp.size == 9
    monkeypatch.setattr("loop.published.confusions._MOST", 8)
    assert candidates(recall, 6) is None


@pytest.mark.parametrize(
    "table", [(14, 0, 0), (7, 0, 0), (1, 0, 0), (0, 14, 0), (0, 0, 14), (0, 3, 4)]
)
def test_rates_of_nought_and_one_leave_the_tables_that_print_so(table):
    """Each two of them, from tables without an error or without a hit."""
    for names in combinations(("accuracy", "precision", "recall", "f1", "npv"), 2):
        printed = printed_rates(table, names, N)
        found = solve(printed, N)
        listed = list(zip(*(counts.tolist() for counts in found), strict=True))
        assert set(listed) == {one for one in every() if prints(printed, one, N)}
        assert table in listed and len(listed) == len(set(listed))
