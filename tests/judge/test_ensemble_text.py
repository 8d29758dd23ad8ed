"""An ensemble in words and data: every number in its place, whatever is missing."""

import pytest

from loop import __version__
from loop.judge.ensemble import EnsembleMethod
from loop.judge.ensemble_text import (
    ensemble_data,
    ensemble_notes,
    ensemble_title,
    fold_rows,
    member_rows,
    verdict,
)
from loop.judge.ensemble_versions import (
    Ensemble,
    EnsembleMember,
    EnsembleVersion,
    FitRow,
    FittedOn,
    FoldResults,
    KeptAgreement,
    KeptComparison,
    KeptEstimate,
    KeptGroup,
    MemberPin,
)

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
MEAN, REGRESSION = EnsembleMethod.MEAN, EnsembleMethod.REGRESSION


def estimate(value, width=0.1):
    """Return an estimate with limits so far from it."""
    if value is None:
        return KeptEstimate(value=None, low=None, high=None)
    low, high = round(value - width, 3), round(value + width, 3)
    return KeptEstimate(value=value, low=low, high=high)


def agreement(tau_b, spearman=None, pearson=None):
    """Return three coefficients, 0.01 apart where they are not named."""
    return KeptAgreement(
        tau_b=estimate(tau_b),
        spearman=estimate(round(tau_b + 0.01, 3) if spearman is None else spearman),
        pearson=estimate(round(tau_b + 0.02, 3) if pearson is None else pearson),
    )


def beside(method, difference, p, *, beats, exact=False):
    """Return an ensemble beside its best member."""
    return KeptComparison(
        method=method, difference=estimate(difference), p=p, exact=exact, beats=beats
    )


def folded(**changed):
    """Return what two members and their ensembles are worth out of fold."""
    fields = {
        "folds": 4,
        "seed": 3,
        "resamples": 2000,
        "members": (agreement(0.5), agreement(0.3)),
        "mean": agreement(0.45),
        "regression": agreement(0.6),
        "best": agreement(0.48),
        "chosen": ("bad", "green.green", "green.green", "green.green"),
        "in_sample": agreement(0.66),
        "against": (
            beside(MEAN, -0.03, 0.4, beats=False),
            beside(REGRESSION, 0.12, 0.0004, beats=True),
        ),
        "groups": (
            KeptGroup(
                score="green",
                members=("a.green", "b.green"),
                mean=agreement(0.51),
                regression=agreement(0.52),
            ),
        ),
    }
    return FoldResults(**{**fields, **changed})


def ensemble(told=None, **changed):
    """Return a regression of two members, one of which has the wrong sign."""
    fitted_on = {
        "cohort": "rp",
        "cohort_digest": "c" * 64,
        "ratings": "rp:ratings2",
        "ratings_digest": "d" * 64,
        "raters": 3,
        "scale": "1-5",
        "rated": 21,
        "pairs": 19,
        "units": 12,
        "unit": "patient",
        **changed.pop("on", {}),
    }
    fields = {
        "method": REGRESSION,
        "intercept": 3.0,
        "members": (
            EnsembleMember(
                name="green.green", title="GREEN of green@v1", better="higher",
                centre=0.5, scale=0.25, weight=1.0, missing=2, distinct=7,
                pin=MemberPin(judge="green@v1", conventions="x"),
            ),
            EnsembleMember(
                name="bad", title="bad", better="lower",
                centre=2.0, scale=4.0, weight=0.8, missing=0, distinct=3,
                pin=MemberPin(metric="bad", conventions="y"),
            ),
        ),
        "fitted_on": FittedOn(**fitted_on),
        "out_of_fold": told,
        "rows": "f" * 64,
        "references": ("e" * 64,),
    }  # fmt: skip
    return Ensemble(**{**fields, **changed})


def test_members_are_rows_with_what_they_add():
    """The intercept is of values as they are: 3 - 4 x 0.5 - 0.2 x 2."""
    blank = (DASH,) * 4
    plain = [
        ("GREEN of green@v1 (green.green)", "higher", "+4.0000", "+1.000"),
        ("bad", "lower", "+0.2000", "+0.800"),
    ]
    zero = ("intercept", DASH, "+0.6000", DASH, *blank)
    assert member_rows(ensemble()) == [*((*one, *blank) for one in plain), zero]
    known = [
        ("0.500", "[0.400, 0.600]", "0.510", "0.520"),
        ("0.300", "[0.200, 0.400]", "0.310", "0.320"),
    ]
    rows = [(*one, *two) for one, two in zip(plain, known, strict=True)]
    assert member_rows(ensemble(folded())) == [*rows, zero]
    assert member_rows(ensemble(folded(), method=MEAN)) == rows


def test_ensembles_out_of_fold_are_rows_beside_the_best_member():
    """Each score that several judges share has two more."""
    assert fold_rows(ensemble()) == []
    unknown = beside(MEAN, None, None, beats=False)
    rows = [
        ("best member", "0.480", "[0.380, 0.580]", "0.490", "0.500", *[DASH] * 3),
        (
            *("mean of all members", "0.450", "[0.350, 0.550]", "0.460", "0.470"),
            *(f"{MINUS}0.030", f"[{MINUS}0.130, +0.070]", "0.400"),
        ),
        (
            *("regression of all members", "0.600", "[0.500, 0.700]", "0.610"),
            *("0.620", "+0.120", "[+0.020, +0.220]", "< 0.001"),
        ),
        (
            *("mean of 2 members' green", "0.510", "[0.410, 0.610]", "0.520"),
            *("0.530", *[DASH] * 3),
        ),
        (
            *("regression of 2 members' green", "0.520", "[0.420, 0.620]", "0.530"),
            *("0.540", *[DASH] * 3),
        ),
    ]
    assert fold_rows(ensemble(folded())) == rows
    against = (unknown, folded().against[1])
    assert fold_rows(ensemble(folded(against=against)))[1][5:] == (DASH,) * 3


WINS = (
    "Out of fold, the regression beats its best member: tau-b 0.600 against 0.480, "
    "difference +0.120 [+0.020, +0.220], p < 0.001."
)
FAILS = WINS.replace("beats its", "does not beat its")


@pytest.mark.parametrize(
    ("mean", "regression", "words"),
    [
        (False, True, f"{WINS} The mean does not beat it: "),
        (True, True, f"{WINS} The mean beats it, too: "),
        (False, False, f"{FAILS} The mean does not beat it, either: "),
        (True, False, f"{FAILS} The mean beats it: "),
    ],
)
def test_the_verdict_is_of_the_method_then_of_the_other(mean, regression, words):
    """Too and either where both end alike."""
    against = (
        beside(MEAN, -0.03, 0.4, beats=mean),
        beside(REGRESSION, 0.12, 0.0004, beats=regression),
    )
    rest = f"tau-b 0.450, difference {MINUS}0.030 [{MINUS}0.130, +0.070], p 0.400."
    assert verdict(ensemble(folded(against=against))) == words + rest


def test_a_verdict_without_a_test_is_unknown():
    """Of the method itself it is said, of the other one nothing."""
    tested = folded().against
    for lacking in (beside(MEAN, None, 0.1, beats=False),
                    beside(MEAN, 0.1, None, beats=False)):  # fmt: skip
        told = folded(against=(lacking, tested[1]))
        assert verdict(ensemble(told)) == WINS
        assert verdict(ensemble(told, method=MEAN)) == (
            "Whether the mean beats its best member is unknown: a tau-b is undefined. "
            "The regression beats it: tau-b 0.600, difference +0.120 [+0.020, +0.220], "
            "p < 0.001."
        )
    assert verdict(ensemble()) == (
        "Whether it is better than its best member was not measured. Fit it with "
        "--out-of-fold."
    )


def test_every_note_that_applies_is_there_once():
    """In order: method, what is left out, signs, size, and what is out of fold."""
    first = [
        "The score is the intercept plus the sum of coefficient x value: least squares "
        "on the mean of 3 raters (1-5), not cut off at the ends of that scale. Per SD: "
        "what one standard deviation of a member adds.",
        "2 of 21 rated pairs are left out, because a member has no readable answer for "
        "them: green.green 2.",
        "Lower is better for bad: values keep their sign, so the coefficient should be "
        "below 0.",
        "The coefficient of bad has the wrong sign: lower is better, so it should be "
        "below 0. The member adds little to the others, or corrects them; the "
        "coefficient does not say how good it is.",
        "19 pairs are fewer than 10 for each of 2 members: coefficients are uncertain.",
    ]
    assert ensemble_notes(ensemble()) == first
    assert ensemble_notes(ensemble(folded())) == [
        *first,
        "Out of fold: 4 folds of 12 patients (seed 3); centres, scales and "
        "coefficients come from the other folds. The best member is chosen on the "
        "other folds, too: green.green in 3, bad in 1 of 4.",
        "In hindsight, the best member is green.green, tau-b 0.500; that choice uses "
        "the pairs that are scored, so it looks better than it is.",
        "On the very pairs it was fitted on, the regression has a tau-b of 0.660, "
        "which is optimistic and no evidence.",
        "tau-b is with the mean of 3 raters (rp:ratings2). Intervals are of 95 %, by "
        "bootstrap: 2,000 resamples of patients, with the folds kept. p is from "
        "10,000 exchanges of the two scores, unit by unit. An ensemble beats its best "
        "member if p is below 0.05 and the interval of the difference is above 0.",
    ]


def test_notes_leave_out_what_does_not_apply():
    """Nothing missing, nothing lower, right signs, ten pairs for each member."""
    member = ensemble().members[0].model_copy(update={"missing": 0})
    other = member.model_copy(update={"name": "other", "weight": -0.5})
    third = member.model_copy(update={"name": "third", "better": "lower"})
    on = {"rated": 20, "pairs": 20}
    assert len(ensemble_notes(ensemble(members=(member, other), on=on))) == 2
    told = ensemble_notes(ensemble(members=(member, other), on=on))[1]
    assert told.startswith(
        "The coefficient of other has the wrong sign: higher is better, so it should "
        "be above 0."
    )
    low = [one.model_copy(update={"better": "lower", "weight": -1.0})
           for one in (member, other, third)]  # fmt: skip
    notes = ensemble_notes(ensemble(members=tuple(low), on={"rated": 30, "pairs": 30}))
    assert notes[1:] == [
        "Lower is better for green.green, other, third: values keep their sign, so the "
        "coefficients should be below 0."
    ]
    (mean,) = ensemble_notes(ensemble(method=MEAN, members=(member, member.model_copy(
        update={"name": "other"})), on=on))  # fmt: skip
    assert mean == (
        "The score is the mean of the members in standard deviations of the fitted "
        "pairs (per SD), each turned so that more is better: 0 is an average pair. "
        "Ratings are not used."
    )


def test_the_best_in_hindsight_is_named_only_where_it_is_better():
    """As good as the chosen one is not better; nor is what is undefined."""
    for best, members, named in (
        (0.48, (0.3, 0.5), "bad, tau-b 0.500"),
        (0.5, (0.5, 0.3), None),
        (0.48, (None, 0.49), "bad, tau-b 0.490"),
    ):
        none = KeptAgreement(**dict.fromkeys(
            ("tau_b", "spearman", "pearson"), estimate(None)))  # fmt: skip
        told = folded(
            best=agreement(best),
            members=tuple(none if one is None else agreement(one) for one in members),
        )
        notes = [one for one in ensemble_notes(ensemble(told)) if "hindsight" in one]
        assert len(notes) == (named is not None)
        assert named is None or f"best member is {named};" in notes[0]


def test_other_coefficients_that_say_the_opposite_are_named():
    """Each that orders ensemble and best member the other way round, and no other."""
    few = (
        "but they were not tested. tau-b, which decides, favours a score with few "
        "values where raters tie (green.green has 7 values on 19 pairs)."
    )
    begin = "Other coefficients order the two the other way round"
    for spearman, pearson, named in (
        (0.4, 0.7, "Spearman 0.400 against 0.490"),
        (0.7, 0.4, "Pearson 0.400 against 0.500"),
        (0.4, 0.3, "Spearman 0.400 against 0.490, Pearson 0.300 against 0.500"),
        (0.49, 0.5, None),
    ):
        told = folded(regression=agreement(0.6, spearman, pearson))
        notes = [one for one in ensemble_notes(ensemble(told)) if "Other" in one]
        assert notes == ([] if named is None else [f"{begin} ({named}), {few}"])
    against = (folded().against[0], beside(REGRESSION, None, 0.1, beats=False))
    even = (folded().against[0], beside(REGRESSION, 0.0, 0.1, beats=False))
    for one in (against, even):
        told = folded(regression=agreement(0.6, 0.4, 0.4), against=one)
        assert not any("Other" in note for note in ensemble_notes(ensemble(told)))


def test_an_exact_test_is_said_to_be_one():
    """Of the method that the ensemble is made by."""
    exact = beside(REGRESSION, 0.12, 0.01, beats=True, exact=True)
    told = folded(against=(folded().against[0], exact))
    words = "p is from all exchanges of the two scores, unit by unit."
    assert words in ensemble_notes(ensemble(told))[-1]
    assert words not in ensemble_notes(ensemble(told, method=MEAN))[-1]


def test_the_data_hold_everything_to_fit_it_again():
    """Rows with what was said out of fold, or without."""
    given = ensemble(folded())
    version = EnsembleVersion(
        name="mix",
        number=2,
        digest="a" * 64,
        ensemble=given,
        rows=(
            FitRow(1, 3.5, (0.75, 2.0), (1.0, 0.1, 3.4, 0.8)),
            FitRow(2, 4.0, (1.0, 0.0)),
        ),
    )
    assert ensemble_title(version) == (
        "mix@v2: regression of 2 members, fitted on 19 pairs of 12 patients of rp"
    )
    assert version.signature == (
        "ensemble:mix@v2:aaaaaaaa|regression|green.green:x|bad:y|fit:rp:cccccccc"
    )
    assert ensemble_data(version) == {
        "format": "ranloop-ensemble-1",
        "ranloop": __version__,
        "ensemble": "mix@v2",
        "digest": "a" * 64,
        "signature": version.signature,
        "unit": "points, 1-5",
        **given.model_dump(mode="json"),
        "coefficients": {"green.green": 4.0, "bad": 0.2},
        "verdict": verdict(given),
        "notes": ensemble_notes(given),
        "fitted_rows": [
            {
                "unit": 1,
                "points": 3.5,
                "values": {"green.green": 0.75, "bad": 2.0},
                "fold": 1.0,
                "mean": 0.1,
                "regression": 3.4,
                "best_member": 0.8,
            },
            {"unit": 2, "points": 4.0, "values": {"green.green": 1.0, "bad": 0.0}},
        ],
    }
    assert ensemble(method=MEAN).unit == "standard deviations"
