"""English assertion status: what the cues must make of ordinary report sentences."""

import pytest

from loop.engines.rules.engine import ReportReader
from loop.engines.rules.sentence import Stance
from tests.engines.reading import CUES, answers, exemplar, guide, rule, value_of

EFFUSION = "pleural effusion"
FINDINGS = [
    guide("effusion", "effusion"),
    guide("pneumothorax", "pneumothorax"),
    guide("consolidation", "consolidation"),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("There is a small pleural effusion.", "present"),
        ("No pleural effusion.", "absent"),
        ("Without evidence of pleural effusion.", "absent"),
        ("The lungs are free of pleural effusion.", "absent"),
        ("Pleural effusion is not seen.", "absent"),
        ("Pleural effusion has resolved.", "absent"),
        ("The pleural effusion is no longer seen.", "absent"),
        ("No change in the pleural effusion.", "present"),
        ("Pleural effusion, not significantly changed.", "present"),
        ("The pleural effusion has not resolved.", "present"),
        ("Possible pleural effusion.", "uncertain"),
        ("This may represent pleural effusion.", "uncertain"),
        ("Pleural effusion cannot be excluded.", "uncertain"),
        ("Cannot exclude a pleural effusion.", "uncertain"),
        ("Findings consistent with pleural effusion.", "present"),
        ("Pleural effusion is unlikely.", "absent"),
        ("History of pleural effusion.", "absent"),
        ("CT to exclude pleural effusion.", "absent"),
        ("Evaluate for pleural effusion.", "absent"),
        ("No large pleural effusion.", "absent"),
        ("Stable pleural effusion.", "present"),
        ("Residual pleural-effusion on the left.", "present"),
        ("Pleural effusions bilaterally.", "present"),
        ("No pneumothorax, small pleural effusion.", "present"),
        ("No pneumothorax; pleural effusion is unchanged.", "present"),
        ("No pneumothorax but a pleural effusion persists.", "present"),
        ("No pneumothorax, pleural effusion or edema.", "absent"),
        ("No pneumothorax, large pleural effusion, or edema.", "absent"),
        ("Neither pneumothorax nor pleural effusion.", "absent"),
    ],
)
def test_status_of_one_finding(text, expected):
    """Each row is a pattern of the negation and uncertainty table."""
    assert value_of(text, EFFUSION) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No acute infarct.", "absent"),
        ("There is no acute ischemic infarct.", "absent"),
        ("No evidence of acute infarct.", "absent"),
        ("No hemorrhage or acute infarct.", "absent"),
        ("No hemorrhage, but an acute infarct.", "present"),
        ("Acute infarct.", "present"),
        ("No acute hemorrhage. Acute infarct on the left.", "present"),
        ("Less likely acute infarct.", "absent"),
        ("Cannot exclude acute infarct.", "uncertain"),
    ],
)
def test_degree_in_the_wording_is_denied_with_it(text, expected):
    """A cue "no acute" takes the first word of the wording "acute infarct"."""
    assert value_of(text, "acute infarct", "acute ... infarct") == expected


def test_what_denies_a_degree_denies_a_wording_that_has_it():
    """Elsewhere "no acute" leaves the thing itself open, and the rest of a report."""
    name, text = "acute infarct", "Acute infarct is possible.\nIMPRESSION: No {}."
    assert value_of(text.format("acute infarct"), name) == "absent"
    assert value_of(text.format("acute infarct"), "infarct") == "uncertain"
    said = "No definite nodule. Definite nodule is not seen."
    assert value_of(said, "definite nodule") == "absent"
    got = answers("No acute infarct or bleed.", [guide("i", name), guide("b", "bleed")])
    assert [got[one]["value"] for one in "ib"] == ["absent", "absent"]


def test_coordinated_negation_reaches_every_member():
    """A list after "no" is absent to its end."""
    got = answers("No effusion, pneumothorax or consolidation.", FINDINGS)
    assert {name: one["value"] for name, one in got.items()} == {
        "effusion": "absent",
        "pneumothorax": "absent",
        "consolidation": "absent",
    }


def test_versus_makes_both_sides_uncertain():
    """A differential commits to neither diagnosis."""
    got = answers("Effusion versus consolidation at the left base.", FINDINGS)
    assert got["effusion"]["value"] == got["consolidation"]["value"] == "uncertain"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No effusion versus pneumothorax.", ["absent", "absent"]),
        ("Possible effusion is not seen.", ["absent", "absent"]),
        ("No pneumothorax, possible effusion.", ["uncertain", "absent"]),
        ("Possible effusion, no pneumothorax.", ["uncertain", "absent"]),
    ],
)
def test_of_several_cues_one_decides(text, expected):
    """What is said after a finding, else the nearest before it, else "versus"."""
    got = answers(text, FINDINGS[:2])
    assert [got[name]["value"] for name in ("effusion", "pneumothorax")] == expected


def test_of_several_words_for_a_differential_the_first_is_told():
    """All of them say the same; whoever asks why sees one."""
    reader = ReportReader(FINDINGS, ["consolidation"], CUES)
    text = "Effusion versus pneumothorax versus consolidation."
    (told,) = (m for m in reader.explain(text).mentions if m.label == "consolidation")
    assert (told.why, told.cue.data) == ("uncertain", [9, 15])


@pytest.mark.parametrize(
    ("said", "effusion"),
    [
        ("is not seen", "present"),
        ("has resolved", "present"),
        ("are not seen", "absent"),
        ("have resolved", "absent"),
    ],
)
def test_one_thing_is_the_nearest_thing(said, effusion):
    """A verb in the singular leaves alone what stands before the "and"."""
    got = answers(f"Effusion and pneumothorax {said}.", FINDINGS[:2])
    values = {name: one["value"] for name, one in got.items()}
    assert values == {"effusion": effusion, "pneumothorax": "absent"}


@pytest.mark.parametrize(
    ("text", "term", "expected"),
    [
        ("The heart is mildly enlarged.", "heart ... enlarged", "present"),
        ("The heart is not enlarged.", "heart ... enlarged", "absent"),
        ("The heart is normal, aorta enlarged.", "heart ... enlarged", "absent"),
        ("Heart normal. Liver enlarged.", "heart ... enlarged", "absent"),
        (
            "Enlargement of the cardiac silhouette.",
            "enlargement of the cardiac silhouette",
            "present",
        ),
        ("Atelectatic bands.", "atelecta*", "present"),
        ("Several opacities.", "opacity", "present"),
        ("Bilateral pneumothoraces.", "pneumothorax", "present"),
        ("Pulmonary oedema.", "pulmonary edema", "present"),
        ("Massive improvement.", "mass", "absent"),
        ("Follow-up of air-space disease.", "air space disease", "present"),
        ("Air  space\ndisease on the right.", "air space disease", "present"),
    ],
)
def test_terms_inflect_hyphenate_and_bridge_small_gaps(text, term, expected):
    """A wording matches as a clinician means it, and whole words only."""
    assert value_of(text, term) == expected


@pytest.mark.parametrize(("words", "expected"), [(5, "present"), (6, "absent")])
def test_five_words_may_stand_in_a_gap(words, expected):
    """More of them belong to another thought."""
    text = f"Fluid {'x ' * words}base."
    assert value_of(text, "fluid ... base") == expected


@pytest.mark.parametrize(("letters", "expected"), [(35, "uncertain"), (36, "present")])
def test_or_joins_two_findings_that_are_near(letters, expected):
    """From the end of the one to the begin of the other there are 40 characters."""
    text = f"Edema or {'e' * letters} pneumonia."
    got = answers(text, [guide("x", "edema"), guide("y", "pneumonia")])
    assert [got[name]["value"] for name in "xy"] == [expected] * 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Effusion or consolidation.", ["uncertain", "absent", "uncertain"]),
        # It joins what is not changed, unless something else begins before it.
        ("No change in effusion or consolidation.", ["present", "absent", "present"]),
        (
            "Effusion without change in pneumothorax or consolidation.",
            ["present"] * 3,
        ),
        (
            "No change in the pneumothorax, but effusion or consolidation.",
            ["uncertain", "present", "uncertain"],
        ),
        (
            "No change in the pneumothorax; effusion or consolidation.",
            ["uncertain", "present", "uncertain"],
        ),
        # What is denied after it denies nothing before.
        (
            "Effusion or consolidation, no pneumothorax.",
            ["uncertain", "absent", "uncertain"],
        ),
        # Only the two beside it are its alternatives.
        (
            "Pneumothorax, effusion or consolidation.",
            ["uncertain", "present", "uncertain"],
        ),
        ("Effusion, or consolidation.", ["present", "absent", "present"]),
        ("Effusion and, or consolidation.", ["present", "absent", "present"]),
        ("Effusion (or consolidation).", ["present", "absent", "present"]),
        # A side between them is no statement, and "with" begins another one.
        ("Effusion or left consolidation.", ["uncertain", "absent", "uncertain"]),
        (
            "Effusion on the left or consolidation.",
            ["uncertain", "absent", "uncertain"],
        ),
        (
            "Effusion with atelectasis or consolidation.",
            ["present", "absent", "present"],
        ),
        # Two words for one finding are no choice.
        ("Effusion or small effusion.", ["present", "absent", "absent"]),
    ],
)
def test_or_leaves_open_what_stands_beside_it(text, expected):
    """Two findings as alternatives; each of what is said to be unchanged is there."""
    got = answers(text, FINDINGS)
    names = ("effusion", "pneumothorax", "consolidation")
    assert [got[name]["value"] for name in names] == expected


@pytest.mark.parametrize(
    "first",
    [
        "Effusion, or nodule",
        "Effusion with or without nodule",
        "No change in effusion or nodule",
        f"Effusion or {'e' * 40} nodule",
    ],
)
def test_an_or_that_joins_nothing_leaves_the_next_one_open(first):
    """Whatever keeps that "or" from joining two findings, the next one does."""
    names = ("effusion", "nodule", "pneumothorax", "consolidation")
    guides = [guide(name, name) for name in names]
    got = answers(f"{first}, but pneumothorax or consolidation.", guides)
    values = [got[name]["value"] for name in names]
    assert values == ["present", "present", "uncertain", "uncertain"]


@pytest.mark.parametrize(
    ("text", "nodule"),
    [
        ("No effusion Nodule on the left.", "present"),
        ("No effusion nodule on the left.", "absent"),
        ("No effusion There is a nodule.", "present"),
        ("No effusion Small nodule.", "present"),
        # The capital begins no sentence, or follows a word that needs another.
        ("No effusion Smith saw a nodule.", "absent"),
        ("No effusion or Nodule.", "absent"),
        ("No effusion Kerley nodule.", "absent"),
        ("Nodule No effusion.", "present"),
    ],
)
def test_a_capital_may_begin_a_sentence_whose_full_stop_is_lost(text, nodule):
    """A denial ends where the new sentence begins."""
    guides = [guide("e", "effusion"), guide("n", "nodule")]
    got = answers(text, guides)
    assert (got["e"]["value"], got["n"]["value"]) == ("absent", nodule)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No Pleural Effusion.", "absent"),
        ("No New Large Effusion.", "absent"),
        ("No Nodule or Pleural Effusion.", "absent"),
        ("No focal Effusion.", "absent"),
        ("Lungs are clear without Effusion.", "absent"),
        ("No calcified Nodule or loculated Effusion.", "absent"),
        ("The lungs are dense Effusion on the left.", "present"),
        # What was denied is something else, or nothing is denied any more.
        ("No Acute Process. Pleural Effusion.", "present"),
        ("No Nodule, but Pleural Effusion.", "present"),
        ("No nodule Effusion on the left.", "present"),
        ("No Nodule Large effusion.", "present"),
        ("No acute process Large effusion.", "present"),
        # What nobody knows may be a finding of its own.
        ("No acute abnormality Effusion on the left.", "present"),
        ("No focal infiltrates Effusion on the left.", "present"),
        ("Pleural Effusion.", "present"),
    ],
)
def test_a_capital_of_a_title_begins_no_sentence(text, expected):
    """Some reports give every finding a capital: a denial reaches it all the same."""
    got = answers(text, [guide("e", "effusion"), guide("n", "nodule")])
    assert got["e"]["value"] == expected


@pytest.mark.parametrize(
    ("denied", "expected"),
    [
        ("No effusion.", "absent"),
        ("No left effusion.", "present"),
        ("No effusion on the left.", "present"),
        ("Left effusion is not seen.", "present"),
        ("No bilateral effusion.", "absent"),
        # A side or a form is that of the finding it stands with.
        ("No left effusion or nodule.", "present"),
        ("No left nodule or effusion.", "absent"),
        ("No nodule, left effusion or consolidation.", "present"),
        ("No effusion or left nodule.", "absent"),
        ("No effusion but a left nodule.", "absent"),
        ("Nodule on the left and effusion are not seen.", "absent"),
        ("No loculated effusion.", "present"),
        ("No loculated nodule or effusion.", "absent"),
        ("No effusion, loculated or not.", "absent"),
    ],
)
def test_what_is_denied_of_one_side_may_be_on_the_other(denied, expected):
    """The conclusion outranks the description only where it denies the finding."""
    text = f"FINDINGS: Small effusion.\nIMPRESSION: {denied}"
    terms = {"exclusions": ("nodule", "consolidation")}
    assert value_of(text, "effusion", **terms) == expected
    assert value_of(denied, "effusion", **terms) == "absent"


@pytest.mark.parametrize(
    ("form", "denied"),
    [
        # An answer is for all that was asked since the last one.
        ("Effusion: no.", "e"),
        ("Effusion, pneumothorax: no.", "ep"),
        ("Effusion pneumothorax no.", "ep"),
        ("Effusion: small, pneumothorax: no.", "p"),
        ("Effusion: small; pneumothorax: no.", "p"),
        ("Effusion small, pneumothorax no.", "p"),
        ("Nodule, effusion: small, pneumothorax: no.", "p"),
        ("Effusion: no, pneumothorax: yes, nodule: no.", "en"),
        ("Effusion (pneumothorax: no).", "p"),
        ("Effusion, but pneumothorax no.", "p"),
        ("Effusion none, nodule = none", "en"),
        # Of boxes, an empty one is: before what it stands for, or behind it.
        ("[ ] Effusion [x] pneumothorax [ ] nodule", "en"),
        ("[ ] Effusion, pneumothorax [x] nodule", "ep"),
        ("Effusion [ ] pneumothorax [x] nodule [ ]", "en"),
        ("Effusion, pneumothorax [ ] nodule [x]", "ep"),
        # A ticked one before "no" is an answer, too.
        ("Effusion: [ ] yes [x] no", "e"),
        ("Effusion: [x] yes [ ] no", ""),
        ("Effusion [x] no", "e"),
        ("[x] no effusion", "e"),
    ],
)
def test_a_filled_form_denies_what_it_asks_for(form, denied):
    """Nothing else: the description says that all three are there."""
    guides = [guide(n[0], n) for n in ("effusion", "pneumothorax", "nodule")]
    text = f"FINDINGS: Effusion. Pneumothorax. Nodule.\nIMPRESSION: {form}"
    got = answers(text, guides)
    assert "".join(n for n in "epn" if got[n]["value"] == "absent") == denied


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("and this is questionable", "uncertain"),
        ("and air is questionable", "present"),
        ("and this effusion is questionable", "present"),
        ("and the effusion here is questionable", "present"),
        # Only a doubt looks so far back.
        ("and this is unlikely", "present"),
    ],
)
def test_a_pronoun_stands_for_what_was_said_before(said, expected):
    """Unless another finding stands beside it."""
    guides = [guide("c", "consolidation"), guide("e", "effusion")]
    got = answers(f"Consolidation is seen at the base, {said}.", guides)
    assert got["c"]["value"] == expected


def test_exclusion_removes_the_term_it_contains():
    """Subcutaneous emphysema is not emphysema."""
    more = {"exclusions": ("subcutaneous emphysema",)}
    assert value_of("Subcutaneous emphysema.", "emphysema", **more) == "absent"
    assert value_of("Severe emphysema.", "emphysema", **more) == "present"


@pytest.mark.parametrize(
    ("text", "nodule", "effusion"),
    [
        ("Nodule less likely but an effusion is seen.", "absent", "present"),
        ("Nodule ruled out there is an effusion.", "absent", "present"),
        ("A nodule, less likely an effusion.", "present", "absent"),
    ],
)
def test_a_cue_of_both_ways_looks_back_where_its_statement_ends(text, nodule, effusion):
    """A word such as "but" begins another; else it speaks of what follows."""
    got = answers(text, [guide("n", "nodule"), guide("e", "effusion")])
    assert (got["n"]["value"], got["e"]["value"]) == (nodule, effusion)


def test_of_clarifications_that_overlap_the_longer_decides():
    """Equal ones both count, and present outranks uncertain."""
    for phrase, expected in (("line thin", "present"), ("line thin film", "uncertain")):
        rules = (rule("thin line", "present"), rule(phrase, "uncertain"))
        assert value_of("A thin line thin film.", clarifications=rules) == expected


def test_clarification_outranks_the_term_inside_it():
    """A rule for a longer wording decides over the plain term."""
    more = {"clarifications": (rule("borderline heart size", "uncertain"),)}
    assert value_of("Borderline heart size.", "heart size", **more) == "uncertain"


def test_clarified_wording_can_still_be_negated():
    """Negation applies to clarified phrases as to any other."""
    more = {"clarifications": (rule("costophrenic ... blunt*", "uncertain"),)}
    text = "No costophrenic angle blunting."
    assert value_of(text, EFFUSION, **more) == "absent"


@pytest.mark.parametrize("value", ["present", "absent", "uncertain"])
def test_exemplar_evidence_decides(value):
    """The evidence phrase of an exemplar acts with the exemplar's value."""
    more = {"exemplars": (exemplar("lucent rim", value),)}
    assert value_of("A lucent rim at the apex.", "zzz", **more) == value


def test_implied_label_becomes_present_with_the_same_evidence():
    """An implication is followed, also over two steps."""
    guides = [
        guide("a", "alpha", implies=("b",)),
        guide("b", "beta", implies=("c",)),
        guide("c", "gamma"),
    ]
    got = answers("Alpha seen. No gamma.", guides)
    assert got["b"] == {"value": "present", "span": [0, 5]}
    assert got["c"]["value"] == "present"


def test_stances_say_what_an_answer_cannot():
    """What is denied, and what is not mentioned or only asked about, are told apart."""
    guides = [
        guide("a", "alpha", implies=("b",)),
        guide("b", "beta"),
        guide("c", "gamma"),
        guide("d", "delta"),
        guide("e", "epsilon"),
    ]
    read = ReportReader(guides, [one.label for one in guides], CUES)
    text = "Alpha seen. No gamma. Possible delta. CT to exclude epsilon."
    assert read.stances(read.split(text)) == {
        "a": Stance.PRESENT,
        "b": Stance.PRESENT,
        "c": Stance.NEGATED,
        "d": Stance.UNCERTAIN,
    }
    (hit,) = read.read_sentence("No gamma.")
    assert (read.labels[hit.target], hit.stance) == ("c", Stance.NEGATED)


def test_negated_label_implies_nothing():
    """Only a present finding carries over."""
    guides = [guide("a", "alpha", implies=("b",)), guide("b", "beta")]
    assert answers("No alpha.", guides)["b"] == {"value": "absent"}


@pytest.mark.parametrize("mask", ["XXXX", "____"])
def test_mask_is_missing_information_not_negation(mask):
    """A de-identification mask neither negates nor joins words."""
    assert value_of(f"There is {mask} pleural effusion.", EFFUSION) == "present"
    assert value_of(f"Pleural {mask} effusion.", EFFUSION) == "absent"


def test_indication_and_comparison_are_not_read():
    """Questions and old films are not findings of this one."""
    text = "INDICATION: pneumonia?\nCOMPARISON: pneumonia then.\nFINDINGS: Clear lungs."
    assert value_of(text, "pneumonia") == "absent"


@pytest.mark.parametrize(
    "text",
    [
        "COMPARISON: None.\nSmall pleural effusion.",
        "EXAM: Portable chest.\nTECHNIQUE: One view.\nSmall pleural effusion.",
        "INDICATION: Cough.\n\nSmall pleural effusion.",
        "Reason for exam: cough. Small pleural effusion.",
        "EXAM: Chest. HISTORY: Fall.\nSmall pleural effusion.",
    ],
)
def test_findings_without_a_heading_are_read_after_an_unread_section(text):
    """A short section must not swallow the report and make it normal."""
    assert value_of(text, EFFUSION) == "present"


def test_impression_wins_where_sections_disagree():
    """The radiologist's conclusion outranks the description."""
    text = "FINDINGS: Possible pneumonia.\nIMPRESSION: No pneumonia."
    assert value_of(text, "pneumonia") == "absent"
    text = "FINDINGS: Small effusion.\nIMPRESSION: No large effusion."
    assert value_of(text, "effusion") == "present"


def test_wrapped_line_that_ends_in_a_heading_word_is_not_a_heading():
    """A word like "findings" at a line end does not open a section."""
    text = "No acute history\nof pneumonia. There is pneumonia."
    assert value_of(text, "pneumonia") == "present"


def test_present_wins_over_uncertain_over_negated():
    """Several mentions: the strongest decides."""
    assert value_of("No effusion. Possible effusion.", "effusion") == "uncertain"
    assert value_of("Possible effusion. Effusion noted.", "effusion") == "present"


@pytest.mark.parametrize(
    "text",
    ["Left effusion.", "İ  left   effusion .", "\n\n- No effusion\n- b", "é effusion"],
)
def test_span_is_the_evidence(text):
    """Offsets point at the term in the original text, and are all the evidence."""
    got = answers(text, [guide("x", "effusion")])["x"]
    start, end = got["span"]
    assert text[start:end] == "effusion"
    assert set(got) == {"value", "span"}


@pytest.mark.parametrize(("length", "expected"), [(50, "present"), (51, "absent")])
def test_a_line_of_fifty_characters_may_be_an_item_of_a_list(length, expected):
    """What is longer was wrapped, and its negation goes on in the next line."""
    line = "No pneumothorax in the left".ljust(length, "x")
    assert value_of(f"{line}\nEffusion.", "effusion") == expected


def test_unmentioned_label_has_no_evidence():
    """Absent by silence and absent by negation stay apart."""
    assert answers("Clear.", [guide("x", "effusion")])["x"] == {"value": "absent"}
    assert "span" in answers("No effusion.", [guide("x", "effusion")])["x"]


def test_of_equal_mentions_the_first_is_the_evidence():
    """Whoever checks an answer begins reading at the top."""
    text = "Left effusion. Right effusion. No effusion."
    assert answers(text, [guide("x", "effusion")])["x"]["span"] == [5, 13]
