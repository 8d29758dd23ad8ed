"""How agreement is printed: every table, whole, with what cannot be estimated."""

from loop.cli import agreement
from loop.core.records import UncertainAnswers
from loop.evaluate.ceiling import Ceiling, CeilingRow, ReaderModelMeasure
from loop.labels.reader_agreement import AgreementReport, LabelAgreement
from loop.stats.intervals import Estimate
from loop.stats.kappa import LeaveOneOut, PairAgreement, ReaderAgreement

NONE = Estimate(None, None, None)
BARE = Estimate(0.5, None, None)
HIGH = Estimate(0.8, 0.7, 0.9)
LOW = Estimate(0.25, -0.125, 0.5)


def label(name, votes, *, estimated):
    """Return the agreement on a label of which all is known, or nothing."""
    kappas = (HIGH, LOW, NONE) if estimated else (NONE, NONE, NONE)
    pairs = tuple(
        PairAgreement(first, second, kappa, 9)
        for (first, second), kappa in zip(((0, 1), (0, 2), (1, 2)), kappas, strict=True)
    )
    readers = tuple(
        ReaderAgreement(number, 8 - number, number, HIGH if estimated else NONE, kappa)
        for number, kappa in enumerate(kappas)
    )
    return LabelAgreement(
        label=name.lower(),
        name=name,
        votes=votes,
        present=4,
        uncertain=1,
        raw=0.75 if estimated else None,
        pairs=pairs,
        mean_kappa=BARE if estimated else NONE,
        fleiss=HIGH if estimated else NONE,
        alpha=LOW if estimated else NONE,
        ceiling=LeaveOneOut(
            readers=readers,
            accuracy=HIGH if estimated else NONE,
            kappa=BARE if estimated else NONE,
        ),
    )


REPORT = AgreementReport(
    cohort="dev",
    cases=9,
    readers=("Ann", "Ben", "Cai"),
    uncertain_is_category=False,
    resamples=500,
    pooled=label("All", 54, estimated=True),
    labels=(label("Edema", 27, estimated=True), label("Mass", 27, estimated=False)),
)

NOTE = (
    "In brackets: 95 % intervals (pairs and readers asymptotic or exact, the rest "
    "bootstrap over cases, 500 resamples). -- : not estimable.\n"
)


def rows(printed):
    """Return the cells of printed tables; two spaces stand between them."""
    lines = [line for line in printed.splitlines() if not line.startswith("--")]
    return [
        [cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines
    ]


def test_agreement_is_printed_label_by_label_and_for_all(capsys):
    """Among readers, of each against the others, and by reader."""
    agreement._print(REPORT, pairs=False)
    said = capsys.readouterr().out
    assert said.startswith("dev: 9 cases, 3 readers; uncertain votes are left out\n")
    assert said.endswith("\n" + NOTE)
    known = ["4", "1", "0.75", "0.50", "0.25 to 0.80", "0.80 (0.70-0.90)"]
    known.append("0.25 (-0.12-0.50)")
    nothing = ["4", "1", *["--"] * 5]
    assert rows(said)[1:-2] == [
        [
            *("among readers", "votes", "present", "uncertain", "same"),
            *("Cohen, mean", "its range", "Fleiss", "Krippendorff"),
        ],
        ["Edema", "27", *known],
        ["Mass", "27", *nothing],
        ["All", "54", *known],
        [],
        [
            "one reader against the others",
            *("accuracy, mean", "kappa, mean", "its range"),
        ],
        ["Edema", "0.80 (0.70-0.90)", "0.50", "0.25 to 0.80"],
        ["Mass", "--", "--", "--"],
        ["All", "0.80 (0.70-0.90)", "0.50", "0.25 to 0.80"],
        [],
        ["all labels, by reader", "pairs", "no majority", "accuracy", "kappa"],
        ["Ann", "8", "0", "0.80 (0.70-0.90)", "0.80 (0.70-0.90)"],
        ["Ben", "7", "1", "0.80 (0.70-0.90)", "0.25 (-0.12-0.50)"],
        ["Cai", "6", "2", "0.80 (0.70-0.90)", "--"],
    ]


def test_pairs_of_readers_are_printed_where_they_are_asked_for(capsys):
    """Under both names; uncertain votes may be a category."""
    agreement._print(REPORT, pairs=True)
    said = rows(capsys.readouterr().out)
    start = said.index(["Cohen's kappa", "Ann-Ben", "Ann-Cai", "Ben-Cai"])
    assert said[start + 1 : start + 4] == [
        ["Edema", "0.80", "0.25", "--"],
        ["Mass", "--", "--", "--"],
        ["All", "0.80", "0.25", "--"],
    ]
    agreement._print_pairs(REPORT)
    assert rows(capsys.readouterr().out) == said[start : start + 4]


def test_it_is_said_how_uncertain_votes_enter(capsys):
    """In the first line, with the numbers of cases and readers."""
    changed = {"uncertain_is_category": True, "cases": 1, "readers": ("Ann",) * 3}
    report = AgreementReport(
        **{one: getattr(REPORT, one) for one in AgreementReport.__slots__} | changed
    )
    agreement._print(report, pairs=False)
    assert capsys.readouterr().out.splitlines()[0] == (
        "dev: 1 case, 3 readers; uncertain votes are a third category for Fleiss and "
        "Krippendorff, left out elsewhere"
    )


def test_agreement_is_whole_as_json():
    """Readers by their names; what cannot be estimated is null."""
    data = agreement._as_data(REPORT)
    pooled, labels = data.pop("pooled"), data.pop("labels")
    assert data == {
        "cohort": "dev",
        "cases": 9,
        "readers": ["Ann", "Ben", "Cai"],
        "uncertain_is_category": False,
        "resamples": 500,
    }
    assert [one["label"] for one in labels] == ["edema", "mass"]
    high, low, none = (one._asdict() for one in (HIGH, LOW, NONE))
    assert pooled == {
        "label": "all",
        "votes": 54,
        "present": 4,
        "uncertain": 1,
        "raw": 0.75,
        "pairs": [
            {"first": "Ann", "second": "Ben", "kappa": high, "n": 9},
            {"first": "Ann", "second": "Cai", "kappa": low, "n": 9},
            {"first": "Ben", "second": "Cai", "kappa": none, "n": 9},
        ],
        "mean_kappa": BARE._asdict(),
        "fleiss": high,
        "krippendorff": low,
        "ceiling": {
            "accuracy": high,
            "kappa": BARE._asdict(),
            "readers": [
                {
                    "reader": name,
                    "n": 8 - number,
                    "no_majority": number,
                    "accuracy": high,
                    "kappa": kappa,
                }
                for number, (name, kappa) in enumerate(
                    zip(("Ann", "Ben", "Cai"), (high, low, none), strict=True)
                )
            ],
        },
    }


ABOVE = ReaderModelMeasure(reader=BARE, model=HIGH, difference=Estimate(0.3, 0.1, 0.5))
BELOW = ReaderModelMeasure(
    reader=HIGH, model=LOW, difference=Estimate(-0.55, None, None)
)
UNKNOWN = ReaderModelMeasure(reader=NONE, model=NONE, difference=NONE)


def beside(name, accuracy, kappa):
    """Return a row of the ceiling."""
    return CeilingRow(
        label=name.lower(),
        name=name,
        comparisons=30,
        ties=2,
        unanswered=1,
        accuracy=accuracy,
        kappa=kappa,
    )


CEILING = Ceiling(
    readers=("Ann", "Ben"),
    cases=9,
    policy=UncertainAnswers.WRONG,
    unit="patient",
    units=7,
    resamples=500,
    seed=1,
    pooled=beside("All", ABOVE, BELOW),
    labels=(beside("Edema", BELOW, UNKNOWN),),
    run="run-1",
)


def test_a_run_is_printed_beside_the_readers(capsys):
    """A model that is above them is marked, and that is a warning."""
    agreement._print_ceiling(CEILING)
    said = capsys.readouterr().out
    header, *table, _, words, first, second = rows(said)
    assert header == [
        *("run run-1", "n", "ties", "no answer", "accuracy: reader", "model"),
        *("difference", "kappa: reader", "model", "difference"),
    ]
    assert table == [
        ["Edema", "30", "2", "1", "0.800", "0.250", "-0.550", "--", "--", "--"],
        [
            *("All", "30", "2", "1", "0.500", "0.800", "!+0.300 (+0.100 to +0.500)"),
            *("0.800", "0.250", "-0.550"),
        ],
    ]
    assert words == [
        "Each reader, and the model, against the strict majority of the other readers, "
        "on the same comparisons; uncertain answers and votes are "
        f"{CEILING.policy.words}; 500 resamples of 7 patients. ! : the model is above "
        "the mean reader."
    ]
    assert [first, second] == [[f"note: {text}"] for text in CEILING.warnings]


def test_a_run_beside_the_readers_is_whole_as_json():
    """With what was left out, and whether the model is above."""
    data = agreement._ceiling_data(CEILING)
    pooled, (label_data,) = data.pop("pooled"), data.pop("labels")
    assert data == {
        "readers": ("Ann", "Ben"),
        "cases": 9,
        "policy": "wrong",
        "unit": "patient",
        "units": 7,
        "resamples": 500,
        "seed": 1,
        "run": "run-1",
        "warnings": list(CEILING.warnings),
    }
    assert pooled == {
        "label": "all",
        "comparisons": 30,
        "no_majority": 2,
        "unanswered": 1,
        "above": True,
        "accuracy": {
            "mean_reader": BARE._asdict(),
            "model": HIGH._asdict(),
            "difference": ABOVE.difference._asdict(),
        },
        "kappa": {
            "mean_reader": HIGH._asdict(),
            "model": LOW._asdict(),
            "difference": BELOW.difference._asdict(),
        },
    }
    assert label_data["label"] == "edema" and label_data["above"] is False
