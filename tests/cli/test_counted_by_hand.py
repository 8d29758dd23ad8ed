"""What verbs print of twelve cases and two versions that are counted by hand."""

import json
import re

import pytest

from tests.optimize.scenes import LESION
from tests.two_rounds import make_rounds

BOTH = ("latest:tiny@v1", "latest:tiny@v2")


@pytest.fixture(scope="module")
def verb(first_version, tmp_path_factory):
    """Return a function that calls a verb after both rounds."""
    return make_rounds(first_version, tmp_path_factory.mktemp("rounds"))[1]


def lines(done):
    """Return what was printed, without the spaces that only align it, and run ids."""
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    return [re.sub(r"\d{8}-\d{6}-[0-9a-f]{6}", "RUN", line) for line in said]


def between(said, first, last):
    """Return the lines from the one that begins with `first` to that with `last`."""
    begins = [
        next(n for n, x in enumerate(said) if x.startswith(y)) for y in (first, last)
    ]
    return said[begins[0] : begins[1] + 1]


NEEDS = (
    "11 of at least 59 cases; 4 of at least 10 positives; 7 of at least 10 negatives; "
    "needs about 48 more cases (6 positives)"
)


@pytest.mark.parametrize(
    ("run", "lesion", "effusion", "sums"),
    [
        (
            "latest:tiny@v1",
            "11 4 1 0 3 7 0.727 [0.390, 0.940] 1.000 0.250 0.400 0.298 [−0.18, 0.78] 1 "
            "0 0 0 0",
            "11 4 3 1 1 6 0.818 [0.482, 0.977] 0.750 0.750 0.750 0.607 [0.12, 1.00] 0 "
            "1 0 0 0",
            (
                "macro-F1 0.575 [0.125, 0.900] over 2 labels with a defined F1",
                "macro-F1 – – over 0 labels with 10+ positives",
                "micro-F1 0.615 [0.200, 0.875] over 2 labels, all cells together",
                "Uncertain answers are wrong: where the reference decides, a false "
                "negative or a false positive. 0 of 21 labels pass",
                "if read as absent: macro-F1 0.575, micro-F1 0.615, mean accuracy "
                "0.773, 0 of 21 labels pass",
                "if read as present: macro-F1 0.575, micro-F1 0.615, mean accuracy "
                "0.773, 0 of 21 labels pass",
                "if left out: macro-F1 0.575, micro-F1 0.615, mean accuracy 0.773, 0 "
                "of 21 labels pass",
            ),
        ),
        (
            "latest:tiny@v2",
            "11 4 2 0 2 7 0.818 [0.482, 0.977] 1.000 0.500 0.667 0.560 [0.06, 1.00] 1 "
            "0 1 0 0",
            "11 4 4 1 0 6 0.909 [0.587, 0.998] 0.800 1.000 0.889 0.814 [0.47, 1.00] 0 "
            "1 0 0 0",
            (
                "macro-F1 0.778 [0.250, 1.000] over 2 labels with a defined F1",
                "macro-F1 – – over 0 labels with 10+ positives",
                "micro-F1 0.800 [0.333, 1.000] over 2 labels, all cells together",
                "Uncertain answers are wrong: where the reference decides, a false "
                "negative or a false positive. 0 of 21 labels pass",
                "if read as absent: macro-F1 0.778, micro-F1 0.800, mean accuracy "
                "0.864, 0 of 21 labels pass",
                "if read as present: macro-F1 0.873, micro-F1 0.875, mean accuracy "
                "0.909, 0 of 21 labels pass",
                "if left out: macro-F1 0.844, micro-F1 0.857, mean accuracy 0.905, 0 "
                "of 21 labels pass",
            ),
        ),
    ],
)
def test_an_evaluation_counts_every_answer_once(verb, run, lesion, effusion, sums):
    """Wrong ones, unsure ones, and those of which the reference decides nothing."""
    done = verb("evaluate", run)
    assert done.exit_code == 100
    said = lines(done)
    assert said[:2] == [
        f"{run.partition(':')[2]} on dev, reference v1, rules, uncertain answers "
        "wrong, run RUN",
        "label gate n pos TP FP FN TN accuracy precision recall F1 kappa unc ref no "
        "ref unc ans unp fail",
    ]
    rows = [line for line in said if line.startswith(("Lung Les", "Pleural Eff"))]
    assert rows == [
        f"Lung Lesion INSUFFICIENT {lesion}",
        f"Pleural Effusion INSUFFICIENT {effusion}",
        "Lung Lesion 1 0 1 0 0",
    ]
    assert f"INSUFFICIENT Lung Lesion: {NEEDS}" in said
    assert f"INSUFFICIENT Pleural Effusion: {NEEDS}" in said
    assert said.count("INSUFFICIENT Edema: no case has a usable reference label") == 1
    assert between(said, "macro-F1", "12 cases") == [
        *sums,
        "12 cases: 12 answered, 0 unparsed, 0 engine failed; intervals resample 6 "
        "patients (patient known for 12 of 12 cases) 2000 times",
    ]
    assert said[-1] == "gate: INSUFFICIENT (0 PASS, 0 FAIL, 21 INSUFFICIENT of 21)"
    since = (
        "macro-F1 0.575 -> 0.778 since tiny@v1, difference +0.203 [−0.455, +0.638] on "
        "12 shared cases; uncertain answers wrong"
    )
    assert (since in said) is (run == BOTH[1])


def test_two_runs_are_compared_case_by_case(verb):
    """What got right, what got wrong, and what became unsure: each is named."""
    said = lines(verb("compare", *BOTH))
    empty = "– – – – – 0 0 0 0 0 – –"
    assert sum(line.endswith(empty) for line in said) == 19
    assert [line for line in said if not line.endswith(empty)][2:] == [
        " ".join(["-" * 32, "-" * 9, "-----", "-" * 8, "-" * 16, "-" * 12])
        + " ----- ------ ------ ------- ------ --------- ----",
        "Lung Lesion 0.400 0.667 +0.091 [−0.261, +0.424] INSUFFICIENT 2 1 1 0 0 too "
        "few –",
        "Pleural Effusion 0.750 0.889 +0.091 [−0.191, +0.377] INSUFFICIENT 1 0 0 0 0 "
        "too few –",
        "",
        "macro-F1 0.575 -> 0.778 since tiny@v1, difference +0.203 [−0.455, +0.638] on "
        "12 shared cases; uncertain answers wrong",
        "no label worse by 0.02 accuracy or 0.05 sensitivity: INSUFFICIENT",
        "Lung Lesion, fixed: c4, c5",
        "Lung Lesion, broken: c6",
        "Lung Lesion, became uncertain: c10",
        "Pleural Effusion, fixed: c3",
    ]


def test_two_runs_are_compared_on_one_label(verb):
    """Also where both are wrong and differ."""
    done = verb("compare", *BOTH, "--label", LESION)
    table = lines(done)[3:-2]
    assert lines(done)[0] == f"{LESION}: RUN and RUN differ in 4 of 12 cases"
    assert table == [
        "c4 present absent present",
        "c5 present absent present",
        "c6 present present absent",
        "c10 present absent uncertain",
    ]
    assert lines(done)[-1] == "See one with: ranloop show RUN c4"


def test_failing_cases_are_listed_with_their_evidence(verb):
    """By label and case, and summed up by what is wrong."""
    assert lines(verb("failures", "latest"))[3:] == [
        "c6 lung_lesion false_negative absent present",
        "c10 lung_lesion uncertain uncertain present 9-15",
        "c7 pleural_effusion false_positive present absent 6-16",
        "",
        "3 of 3 rows: 1 false_positive, 1 false_negative, 1 uncertain, 0 unparsed, 0 "
        "engine_failed",
    ]
    (row,) = json.loads(
        verb(
            "failures", BOTH[0], "--label", "pleural_effusion", "--limit", "1", "--json"
        ).stdout
    )["rows"]
    assert (row["case_id"], row["kind"]) == ("c3", "false_negative")


def test_the_history_has_the_score_of_each_version(verb):
    """And what was changed in it."""
    said = [
        line
        for line in lines(verb("history", "tiny"))
        if "macro" in line or "+" in line
    ]
    assert said == [
        "macro-F1: dev 0.5750 (rules, uncertain answers wrong, reference 1, 12 cases; "
        "0 of 21 labels pass)",
        "+2 terms -1 term",
        "macro-F1: dev 0.7778 (rules, uncertain answers wrong, reference 1, 12 cases; "
        "0 of 21 labels pass)",
    ]


def test_a_case_is_shown_with_all_that_was_made_of_it(verb):
    """What was sent, what came back, what was read, and why."""
    said = lines(verb("show", "latest", "c10"))
    assert said[:3] == ["case c10: answered", "", said[2]]
    assert said[said.index("call joint, 2 labels: as it was sent") :] == [
        "call joint, 2 labels: as it was sent",
        "the same for every case: system 6, user 29 characters; schema 705 (--raw",
        "shows them)",
        "the case's own part, 26 characters:",
        "| Possible nodule. Film 10.",
        "answer 1: stop, 0.000 s",
        "answered, 79 characters:",
        '| {"pleural_effusion":"absent","lung_lesion":{"value":"uncertain","span":[',
        "| 9,15]}}",
        "",
        "what the reader made of it",
        "lung_lesion: uncertain, [nodule] at 9-15",
        "absent, without evidence: pleural_effusion",
        "",
        "why rules answers so",
        "* lung_lesion: uncertain, [nodule] at 9-15",
        "term 'nodule'; uncertain",
        "cue [Possible], governs [nodule]",
        "",
        "case text, evidence in brackets",
        "Possible [nodule]. Film 10.",
    ]


def test_a_cohort_is_shown_with_its_marks(verb):
    """Values that are there, and those that are not."""
    assert lines(verb("cohort", "show", "dev"))[-4:] == [
        "reference v1 present absent uncertain missing",
        "---------------- ------- ------ --------- -------",
        "lung_lesion 4 7 1 0",
        "pleural_effusion 4 7 0 1",
    ]
