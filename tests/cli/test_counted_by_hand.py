"""What verbs print of twelve cases and two versions that are counted by hand."""

import json
import re

import pytest

from loop.prompts.catalog import list_drafts
from tests.optimize.scenes import LESION
from tests.two_rounds import let_fail, make_rounds

BOTH = ("latest:tiny@v1", "latest:tiny@v2")


@pytest.fixture(scope="module")
def verb(first_version, tmp_path_factory):
    """Return a function that calls a verb after both rounds."""
    return make_rounds(first_version, tmp_path_factory.mktemp("rounds"))[1]


def lines(done):
    """Return what was printed, without the spaces that only align it, and run ids."""
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    # Which pair the audit drew depends on the engine's revision.
    said = [line.removesuffix("; random audit") for line in said]
    return [re.sub(r"\d{8}-\d{6}-[0-9a-f]{6}(-\d+)?", "RUN", line) for line in said]


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
    told = lines(verb("show", "latest", "c10"))
    said = [re.sub(r"\d+\.\d{3} s$", "SECONDS", line) for line in told]
    assert said[:2] == ["case c10: answered", ""]
    assert said[said.index("call joint, 2 labels: as it was sent") :] == [
        "call joint, 2 labels: as it was sent",
        "the same for every case: system 6, user 29 characters; schema 705 (--raw",
        "shows them)",
        "the case's own part, 26 characters:",
        "| Possible nodule. Film 10.",
        "answer 1: stop, SECONDS",
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


def test_the_order_of_worth_says_why_each_case_stands_there(verb):
    """What its answer would decide; without a text, and with the evidence alone."""
    rare = "rare: 4 of at least 10 positives; fails by"
    assert lines(verb("failures", "latest", "--order", "value"))[2:] == [
        "1 c10, lung_lesion, uncertain",
        "predicted uncertain, reference present, evidence at 9-15",
        f"{rare} 2 answers; 2 runs of the prompt disagree; answered uncertain",
        *("unreviewed", ""),
        "2 c6, lung_lesion, false_negative",
        "predicted absent, reference present",
        f"{rare} 2 answers; 2 runs of the prompt disagree",
        *("unreviewed", ""),
        "3 c7, pleural_effusion, false_positive",
        "predicted present, reference absent, evidence at 6-16",
        f"{rare} 1 answer",
        *("unreviewed", ""),
        "3 of 3 rows: 1 false_positive, 1 false_negative, 1 uncertain, 0 unparsed, 0 "
        "engine_failed",
    ]
    assert lines(verb("failures", "latest", "--text", "evidence"))[6:-2] == [
        *("", "c10, lung_lesion, uncertain:", "Possible [nodule]. Film 10."),
        *("", "c7, pleural_effusion, false_positive:", "Small [collection]. Film 7."),
    ]
    said = lines(verb("failures", "latest", "--reference", "uncertain"))
    assert said[0] == "cases with an uncertain reference of run RUN on dev"
    assert said[3:] == [
        "c11 lung_lesion reference_uncertain absent uncertain",
        "",
        "1 of 1 row: 0 present, 1 absent, 0 uncertain, 0 unanswered",
    ]


def test_what_words_could_become_is_counted_for_each_part(verb):
    """The one case that holds them becomes right, or hedged, or stays."""
    words = ("--phrase", "mass", "--label", LESION, "--cohort", "dev")
    said = lines(verb("try", "tiny@v2", *words))
    assert " ".join(said[:2]) == (
        "'mass' in the guide of lung_lesion: tiny@v2, rules on dev; the words stand in "
        "1 of 12 cases"
    )
    assert said[3] == "as changed become right become wrong other labels"
    assert said[5:] == [
        *("term 1 1 0 0", "exclusion 0 0 0 0", "clarification: present 1 1 0 0"),
        *("clarification: absent 0 0 0 0", "clarification: uncertain 1 0 0 0"),
        *("exemplar: present 1 1 0 0", "exemplar: absent 0 0 0 0"),
        *("", "term: 1 absent -> present", "c6"),
        *("", "clarification: present: 1 absent -> present", "c6"),
        *("", "clarification: uncertain: 1 absent -> uncertain", "c6"),
        *("", "exemplar: present: 1 absent -> present", "c6"),
    ]


@pytest.mark.parametrize(
    ("case", "row", "why", "text"),
    [
        (
            "c4",
            "lung_lesion present absent present fixed",
            (
                "lung_lesion, v2: present, [nodule] at 2-8",
                "* lung_lesion: present, [nodule] at 2-8",
                "term 'nodule'; stated",
            ),
            "A [nodule] is there. Film 4.",
        ),
        (
            "c10",
            "lung_lesion present absent uncertain still wrong",
            (
                "lung_lesion, v2: uncertain, [nodule] at 9-15",
                "* lung_lesion: uncertain, [nodule] at 9-15",
                "term 'nodule'; uncertain",
                "cue [Possible], governs [nodule]",
            ),
            "Possible [nodule]. Film 10.",
        ),
    ],
)
def test_a_case_is_tried_beside_the_parent(verb, case, row, why, text):
    """What each version says of it, and by which words."""
    said = lines(verb("try", "tiny@v2", "--case", case, "--cohort", "dev"))
    assert said[:3] == [
        f"case {case} of dev: tiny@v2, beside tiny@v1, rules",
        "",
        "label right is v1 v2",
    ]
    assert said[4:] == [
        row,
        "",
        "lung_lesion, v1: absent, without evidence",
        "no wording of the guides is in the text: absent",
        *why,
        *("", "alike", "absent: pleural_effusion"),
        *("", "the text, evidence of both in brackets", text),
    ]


def test_tokens_are_counted_beside_the_parents(verb):
    """By section and by label; a term that models do not read costs nothing."""
    assert lines(verb("prompt", "show", "tiny", "--tokens")) == [
        "tiny@v2, against tiny@v1",
        "tokens of all calls about one case, without the case; estimated, +-5 % for "
        "English (the engine has no tokenizer)",
        "",
        "section tokens parent change",
        "names and definitions 5 5 +0",
        "the rest of the instructions 5 5 +0",
        "all 10 10 +0",
        "",
        "label tokens parent change",
        "pleural_effusion 3 3 +0",
        "lung_lesion 3 3 +0",
        "",
        "Each is what the prompt would be shorter by without it.",
    ]


def test_what_a_cohort_lacks_stands_beside_each_guide(verb):
    """Exemplars, positives, and what the gate asks for."""
    lacks = "4 of 10 positives, 7 of 10 negatives, 11 of 59 cases"
    said = lines(verb("lint", "tiny", "--cohort", "dev"))
    assert said[:2] == [
        "exemplars, and positives of dev",
        "label present looks like it positives share gate lacks",
    ]
    assert said[3:5] == [
        f"pleural_effusion 0 0 4 of 11 36.4 % {lacks}",
        f"lung_lesion 0 0 4 of 11 36.4 % {lacks}",
    ]
    assert said[-3:] == [
        f"warning: guide pleural_effusion: 0 exemplars, 3 wanted: dev has {lacks}",
        f"warning: guide lung_lesion: 0 exemplars, 3 wanted: dev has {lacks}",
        "tiny@v2: 6 findings",
    ]


def test_a_plan_says_what_this_cohort_can_never_certify(verb):
    """With few cases, even without an error; and what to collect."""
    said = lines(verb("plan", "latest"))
    assert said[:2] == [
        "dev: 12 cases, reference v1, tiny@v2 in run RUN",
        "claim: all, rule point",
    ]
    shares = "124 / 181 286 / 361 694 / 900"
    assert f"Lung Lesion 11 4 36.4 % {shares} 0.818 – 0.907" in said
    assert f"Pleural Effusion 11 4 36.4 % {shares} 0.909 – 0.907" in said
    missing = (
        "11 of at least 59 cases; 4 of at least 14 positives; 7 of at least 10 "
        "negatives. Collect 10 chosen positives, 3 chosen negatives and 35 other "
        "cases, or about 48 more random cases."
    )
    assert f"Lung Lesion: {missing}" in said
    assert f"Pleural Effusion: {missing}" in said
    more = "about 275 more random cases (true accuracy 0.980, 80 % power)"
    assert (
        "Lung Lesion: no number of cases certifies the observed accuracy 0.818 and "
        f"sensitivity 0.500; {more}"
    ) in said
    assert (
        "Pleural Effusion: no number of cases certifies the observed accuracy 0.909; "
        f"{more}"
    ) in said


def test_engines_stand_side_by_side_by_label_and_in_sum(verb):
    """One engine is ranked against none; each reading of what is uncertain."""
    said = lines(verb("matrix", "--run", "latest"))
    assert said[:2] == ["tiny@v2 on dev, 12 cases, reference v1", "A rules RUN"]
    assert "Lung Lesion 4 ?0.818 .482-.977" in said
    assert "Pleural Effusion 4 ?0.909 .587-.998" in said
    assert between(said, "answered", "unc. left out") == [
        *("answered 12 of 12", "unparsed 0", "engine failed 0", "uncertain answers 1"),
        *("labels at 0.95 0", "on thin evidence 0", "pass/fail/insuff. 0/0/21"),
        *("best or tied 0", "macro-F1 0.778 .250-1.00", "mean accuracy 0.864"),
        *("unc. read as absent 0.864", "unc. read as present 0.909"),
        "unc. left out 0.905",
    ]
    nothing = (
        "Mean accuracy hides prevalence: an engine that finds nothing in any case "
    )
    assert f"{nothing}would have 0.636, and 0 of 21 labels at 0.95." in " ".join(said)


VERDICTS = """\
reviewer: Dr C
verdicts:
- {case: c6, label: lung_lesion, judgement: model_wrong, terms: [mass]}
- {case: c10, label: lung_lesion, judgement: guideline_ambiguous, comment: see}
"""
TERM = ["lung_lesion", "+ term: mass"]
CHECKED = [
    "check on 12 cases, right answers against the parent",
    "label answers lower limit positives lower limit verdict",
    "----------- ----------- ----------- ---------- ----------- -------",
    "lung_lesion +1 -0 of 11 -12.4 % * +1 -0 of 4 -25.4 % * ok",
    "* judged by counts: too few cases for the margin, so no more may be lost than "
    "gained",
    "accuracy: lung_lesion, pleural_effusion",
    "sensitivity: lung_lesion, pleural_effusion",
]
TARGETED = [
    "targeted cases: 1 fixed, 1 unchanged",
    "unchanged: c10 lung_lesion uncertain -> uncertain, should be present",
]
OBJECTION = "- targeted cases did not change: c10 lung_lesion"


def test_a_check_counts_what_verdicts_asked_for(first_version, tmp_path):
    """Of two verdicts one is answered: it objects, and nothing is committed."""
    place, call = make_rounds(first_version, tmp_path)
    (tmp_path / "v.yaml").write_text(VERDICTS)
    added = lines(call("verdict", "add", str(tmp_path / "v.yaml"), "--run", "latest"))
    assert added[0] == "kept 2 verdicts on dev on run RUN:"
    listed = lines(call("verdict", "list", "--cohort", "dev"))
    assert listed[0] == "dev:" and listed[-1] == "2 verdicts: 2 open"
    assert sorted(
        line.partition("  ")[0].split(" ", 1)[1] for line in listed[1:5:2]
    ) == [
        "guideline_ambiguous, lung_lesion in c10",
        "model_wrong, lung_lesion in c6",
    ]
    begun = lines(call("draft", "begin", "tiny", "-c", "dev", "--kept"))
    assert begun[0] == "tiny@draft:dRUN, made from tiny@v2"
    assert begun[3:5] == TERM
    assert begun[-1].startswith("tokens before the case: 10 -> 10 (estimated")
    (draft,) = list_drafts(place, "tiny")
    ref = f"tiny@draft:{draft}"
    assert lines(call("draft", "list", "tiny"))[2].endswith(
        " tiny@v2 never verdicts 1 verdict on lung_lesion"
    )
    assert lines(call("try", ref, "--pairs"))[:-2] == [
        "tiny@draft:dRUN, beside tiny@v2, rules on dev",
        *(
            "",
            "pairs of its verdicts: 2, right in 1",
            "case label right is parent draft",
        ),
        "---- ----------- -------- --------- ---------",
        "c10 lung_lesion present uncertain uncertain",
        *("", "pinned pairs: 0, 0 broken", ""),
    ]
    done = call("draft", "check", ref)
    assert done.exit_code == 100
    checked = lines(done)
    assert between(checked, "check on", "sensitivity") == CHECKED
    assert between(checked, "targeted", "unchanged") == TARGETED
    assert between(checked, "fixed", "still wrong") == [
        *("fixed: 1", "c6 lung_lesion: absent -> present", "broken: 0"),
        "still wrong: 2, still right: 19",
    ]
    assert checked[-1] == OBJECTION
    refused = call("draft", "commit", ref, "--why", "x").exception
    assert "stays a draft: targeted cases did not change: c10" in str(refused)
    revised = call("revise", "tiny", "--kept", "-c", "dev")
    assert revised.exit_code == 100
    said = lines(revised)
    assert said[0] == "2 verdicts on tiny@v2" and said[3:5] == TERM
    assert between(said, "check on", "sensitivity") == CHECKED
    assert said[-5:] == [
        *TARGETED,
        *("", "NOT committed; kept as tiny@draft:dRUN", OBJECTION),
    ]
    assert "drafts tried: 2 (1 draft, 1 rejected)" in lines(call("history", "tiny"))


def test_what_has_no_readable_answer_is_in_no_share_and_in_every_count(
    first_version, tmp_path, monkeypatch
):
    """Of twelve cases ten are answered; of the labels of the others nothing is said."""
    _, call = make_rounds(first_version, tmp_path)
    ran = lines(call(*let_fail(monkeypatch)))
    assert between(ran, "cases", "asked") == [
        *("cases 12", "answered 10", "unparsed 1", "engine failed 1"),
        *("1 × there is no JSON object in the answer (c0)", "1 × timed out (c1)"),
        "asked 12 (from the store: 0)",
    ]
    said = lines(call("evaluate", "latest"))
    rows = [line for line in said if line.startswith(("Lung Les", "Pleural Eff"))]
    assert rows == [
        "Lung Lesion INSUFFICIENT 9 4 3 0 1 5 0.889 [0.518, 0.997] 1.000 0.750 0.857 "
        "0.769 [0.35, 1.00] 1 0 0 1 1",
        "Pleural Effusion INSUFFICIENT 9 2 2 1 0 6 0.889 [0.518, 0.997] 0.667 1.000 "
        "0.800 0.727 [0.24, 1.00] 0 1 0 1 1",
        "Lung Lesion 1 0 1 0 0",
    ]
    for label in ("Lung Lesion", "Pleural Effusion"):
        assert (
            f"INSUFFICIENT {label}: 2 of 11 cases have no readable answer (at most 1 % "
            "allowed); run the same command with --again unparsed, or look at these "
            "cases"
        ) in said
    assert "micro-F1 0.833 [0.667, 1.000] over 2 labels, all cells together" in said
    assert (
        "note: 2 of 12 cases have no readable answer. They are left out and counted, "
        "never read as absent."
    ) in said
    assert lines(call("failures", "latest"))[3:] == [
        "c0 (all) unparsed there is no JSON object in the answer",
        "c1 (all) engine_failed timed out",
        "c4 lung_lesion false_negative absent present",
        "c7 pleural_effusion false_positive present absent 6-16",
        "",
        "4 of 4 rows: 1 false_positive, 1 false_negative, 0 uncertain, 1 unparsed, 1 "
        "engine_failed",
    ]
    worth = lines(call("failures", "latest", "--order", "value"))
    silent = "2 cases have no readable answer; the gates allow 0"
    assert between(worth, "3 c0", "4 c1") == [
        "3 c0, (all), unparsed",
        "predicted nothing; there is no JSON object in the answer",
        *(silent, "unreviewed", "", "4 c1, (all), engine_failed"),
    ]
    shown = lines(call("show", "latest"))
    assert shown[1:] == [
        *("2 cases without an answer:", ""),
        *("1 unparsed: there is no JSON object in the answer", "c0", ""),
        *("1 engine_failed: timed out", "c1", ""),
        "See one with: ranloop show RUN c0",
    ]
    compared = lines(call("compare", BOTH[0], "latest"))
    assert (
        "Lung Lesion 0.400 0.857 +0.100 [−0.280, +0.454] INSUFFICIENT 2 0 0 0 2 too "
        "few –"
    ) in compared
    assert (
        "Pleural Effusion 0.500 0.800 0.000 [−0.342, +0.342] INSUFFICIENT 1 0 0 0 2 "
        "too few –"
    ) in compared
    assert compared[-5:] == [
        "cannot be compared: the run after left 18.2 % of a label's answers unparsed "
        "or failed (at most 1 % allowed)",
        "Lung Lesion, fixed: c5, c10",
        "Lung Lesion, lost its answer: c0, c1",
        "Pleural Effusion, fixed: c3",
        "Pleural Effusion, lost its answer: c0, c1",
    ]
