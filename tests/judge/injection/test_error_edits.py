"""Each kind of error: what it is, where a report has a place, and where it has none."""

import pytest

from loop.judge import InjectionOptions, inject_errors
from loop.judge.injection.chance import Chance
from loop.judge.injection.error_edits import KINDS, ErrorEditor
from loop.judge.injection.inject import _open_reader
from loop.judge.injection.injection_bank import read_bank
from loop.judge.injection.report_lines import line_report
from loop.judge.injection.text_changes import apply_changes

NORMAL = "The heart is normal in size. The lungs are clear. No pleural effusion."


def variants(text, kind, number=1, **how):
    """Return the candidates of a report with errors of one kind."""
    options = InjectionOptions(errors=kind, numbers=(number,), **how)
    return [one.candidate for one in inject_errors({"a": text}, options).pairs]


def only(text, kind, **how):
    """Return the one candidate, whatever was drawn."""
    (candidate,) = variants(text, kind, **how)
    return candidate


def over_seeds(text, kind, **how):
    """Return what many seeds draw."""
    return {one for seed in range(60) for one in variants(text, kind, seed=seed, **how)}


class TestFalseFindings:
    """What the report denies or does not speak of, and nothing that contradicts it."""

    def test_a_denial_gives_way_to_it(self):
        """No report says that there is none, and that there is one."""
        drawn = over_seeds("No pleural effusion. The lungs are clear.", "a")
        effusions = {one for one in drawn if "pleural effusion" in one}
        assert {
            "There is a moderate left pleural effusion. The lungs are clear.",
            "There is a moderate right pleural effusion. The lungs are clear.",
        } == {one for one in effusions if "No pleural" not in one}

    def test_it_is_taken_out_of_a_list(self):
        """The others of the list stay denied."""
        drawn = over_seeds("No focal consolidation, effusion, or pneumothorax.", "a")
        assert (
            "There is a moderate left pneumothorax. No focal consolidation or effusion."
            in drawn
        )

    def test_no_acute_disease_becomes_what_there_is(self):
        """The impression does not contradict the findings."""
        drawn = over_seeds("No pneumothorax. No acute disease.", "a")
        assert (
            "There is a moderate left pneumothorax. Moderate left pneumothorax."
            in drawn
        )
        assert not any(
            "pneumothorax is" not in one and "moderate" in one and "No acute" in one
            for one in drawn
        )

    def test_what_is_stated_or_possible_is_no_false_finding(self):
        """On whichever side."""
        text = "Small left effusion. Possible right pneumothorax. Cardiomegaly."
        for one in over_seeds(text, "a"):
            assert "moderate left" not in one
            assert "moderate right" not in one
            assert "severely enlarged" not in one

    def test_a_sentence_of_several_topics_is_left_alone(self):
        """Else a normal heart would go with the lungs."""
        text = "The heart and lungs are normal."
        assert all(one.startswith(text) for one in over_seeds(text, "a"))

    def test_it_does_not_stand_before_a_sentence_that_goes_on(self):
        """Else "it" would be another finding."""
        text = "There is a granuloma. It is calcified."
        for one in over_seeds(text, "a"):
            assert "granuloma. It is calcified." in one

    def test_three_are_three(self):
        """Of different findings, in different sentences."""
        (one,) = inject_errors(
            {"a": NORMAL}, InjectionOptions(errors="a", numbers=(3,))
        ).pairs
        assert {change.error for change in one.changes} == {1, 2, 3}


class TestOmissions:
    """A stated finding goes with all that is said of it, and leaves no trace."""

    def test_a_sentence_goes(self):
        """And what is normal stays."""
        assert only(f"Cardiomegaly. {NORMAL[29:]}", "b") == NORMAL[29:]

    def test_it_goes_wherever_it_is_said(self):
        """Else nothing would be omitted."""
        text = (
            "Clear left lung. Right lower lobe consolidation. No effusion. "
            "Consolidation in the right lower lobe."
        )
        assert only(text, "b") == "Clear left lung. No effusion."

    def test_what_goes_on_about_it_goes_too(self):
        """No orphan, and no advice about nothing."""
        text = (
            "There is a 2 cm nodule in the left upper lobe. It has smooth margins. "
            "Recommend CT. The heart is normal."
        )
        assert only(text, "b") == "The heart is normal."

    def test_advice_elsewhere_keeps_it(self):
        """It would still say that there is something."""
        text = (
            "Left upper lobe nodule. The heart is normal. No effusion. "
            "No pneumothorax. CT is recommended."
        )
        assert variants(text, "b") == []

    def test_a_clause_goes(self):
        """The finding before it stays as it was."""
        text = "Large right pneumothorax with small pleural effusion. Normal heart."
        drawn = over_seeds(text, "b")
        assert "Large right pneumothorax. Normal heart." in drawn

    def test_a_list_is_numbered_anew(self):
        """No number is left over."""
        text = "1. Cardiomegaly. 2. No effusion. 3. No pneumothorax."
        assert only(text, "b") == "1. No effusion. 2. No pneumothorax."

    def test_an_empty_heading_is_no_place(self):
        """It would show where something was."""
        assert variants("FINDINGS: Clear lungs.\nIMPRESSION: Cardiomegaly.", "b") == []

    @pytest.mark.parametrize(
        "text",
        [
            NORMAL,
            "Calcified granuloma in the right lung.",
            "Minimal left basilar atelectasis.",
            "Possible right pneumothorax.",
            "There is an opacity. Otherwise, the lungs are clear.",
            "Cardiomegaly.",
        ],
    )
    def test_there_is_no_place(self, text):
        """Normal, benign, slight, unsure, referred to, or all that there is."""
        assert variants(text, "b") == []

    def test_a_denial_has_its_own_tag(self):
        """It is a positive statement, and is only made when asked for."""
        text = "The heart is normal. Small left pleural effusion."
        (one,) = inject_errors(
            {"a": text}, InjectionOptions(errors="b", negated=True)
        ).pairs
        assert one.candidate == "The heart is normal. There is no pleural effusion."
        assert [change.tag for change in one.changes] == ["omission_by_negation"]


class TestLocations:
    """The other side, all through, where one side is said and could be the other."""

    def test_every_word_of_the_side_changes(self):
        """In the sentence, and where the finding is said again."""
        text = "Left-sided pleural effusion at the LEFT base. Small left effusion."
        assert only(text, "c") == (
            "Right-sided pleural effusion at the RIGHT base. Small right effusion."
        )

    def test_a_finding_on_both_sides_keeps_no_other_from_its_change(self):
        """It has no place for the error itself."""
        text = "Right effusion. Left effusion. Small left pneumothorax."
        assert only(text, "c") == text.replace("Small left", "Small right")

    def test_an_abbreviation_changes(self):
        """RLL is a word for a side."""
        assert only("RLL consolidation.", "c") == "LLL consolidation."

    @pytest.mark.parametrize(
        "text",
        [
            "Right middle lobe consolidation.",
            "Right pleural effusion greater than left.",
            "Bilateral pleural effusions.",
            "Right pneumothorax. The left lung is clear.",
            "Right effusion. Left effusion.",
            "Pleural effusion.",
            "Calcified granuloma in the right lung.",
        ],
    )
    def test_there_is_no_place(self, text):
        """No such lobe, two sides, no side, a contradiction, or of no matter."""
        assert variants(text, "c") == []


class TestSeverities:
    """Two steps at least."""

    @pytest.mark.parametrize(
        ("text", "candidate"),
        [
            ("Small left pleural effusion.", "Large left pleural effusion."),
            ("There is mild cardiomegaly.", "There is severe cardiomegaly."),
            ("The heart is mildly enlarged.", "The heart is markedly enlarged."),
            ("A moderate right pneumothorax.", "A minimal right pneumothorax."),
            ("There is an extensive opacity.", "There is a minimal opacity."),
            ("8 mm nodule in the left lung.", "24 mm nodule in the left lung."),
            (
                "A 3.0 x 2.4 cm nodule in the left lung.",
                "A 1.0 x 0.8 cm nodule in the left lung.",
            ),
            ("An 8 mm nodule.", "A 24 mm nodule."),
            ("A 6 mm nodule.", "An 18 mm nodule."),
            ("A 24.6 cm mass.", "An 8.2 cm mass."),
            ("An 11 x 9 mm nodule.", "A 33 x 27 mm nodule."),
            ("A 330 mm mass.", "A 110 mm mass."),
        ],
    )
    def test_the_degree_or_size_changes(self, text, candidate):
        """And its article."""
        assert only(text, "d") == candidate

    def test_it_changes_wherever_it_is_said(self):
        """A report does not contradict itself."""
        text = "Mild cardiomegaly. Clear lungs. Mild cardiomegaly."
        assert only(text, "d") == text.replace("Mild", "Severe")

    @pytest.mark.parametrize(
        "text",
        [
            "Small to moderate left pleural effusion.",
            "Mild degenerative changes of the spine.",
            "Small calcified granuloma.",
            "Small left pneumothorax measuring 3 mm.",
            "No large pleural effusion.",
        ],
    )
    def test_there_is_no_place(self, text):
        """Two degrees, of no matter, or a size that would contradict it."""
        assert variants(text, "d") == []


class TestComparisons:
    """Where the report does not compare."""

    def test_a_comparison_is_added(self):
        """At the end of the sentence."""
        drawn = over_seeds("The heart is normal. Left lower lobe consolidation.", "e")
        assert (
            "The heart is normal. Left lower lobe consolidation, "
            "new since the prior examination." in drawn
        )
        assert len(drawn) > 1

    @pytest.mark.parametrize(
        "text",
        [
            "Stable left lower lobe consolidation.",
            "Left lower lobe consolidation. Unchanged chest.",
            "Left lower lobe consolidation. No prior examination.",
            "Left lower lobe opacity may represent consolidation.",
            NORMAL,
        ],
    )
    def test_there_is_no_place(self, text):
        """It compares, cannot compare, or has nothing that could be compared."""
        assert variants(text, "e") == []


class TestOmittedChanges:
    """Only what changed: not to say that something is stable is no error."""

    @pytest.mark.parametrize(
        ("text", "candidate"),
        [
            ("There is a new left effusion.", "There is a left effusion."),
            ("There is an increasing opacity.", "There is an opacity."),
            ("Worsening pulmonary edema.", "Pulmonary edema."),
            ("Interval increase in the left effusion.", "Left effusion."),
            (
                "The left effusion has increased in size.",
                "The left effusion is noted.",
            ),
            (
                "Left effusion, larger than on the prior examination.",
                "Left effusion.",
            ),
        ],
    )
    def test_the_change_goes(self, text, candidate):
        """And the finding stays."""
        assert only(text, "f") == candidate

    @pytest.mark.parametrize(
        "text",
        [
            "Stable left effusion.",
            "Left effusion.",
            "Improved lung volumes with left effusion.",
            "New left effusion. This has increased since yesterday.",
        ],
    )
    def test_there_is_no_place(self, text):
        """No change, one of something else, or one that is told elsewhere, too."""
        assert variants(text, "f") == []


SMALL = "Small left pleural effusion."


@pytest.mark.parametrize(
    ("letter", "text", "ways"),
    [
        # A sentence goes, wherever it stands, and lists are renumbered.
        ("b", f"{SMALL} The heart is normal.", [("The heart is normal.", 0)]),
        ("b", f"The heart is normal. {SMALL}", [("The heart is normal.", 1)]),
        ("b", f"Normal heart.\n{SMALL}\n\nNo mass.",
         [("Normal heart.\n\nNo mass.", 1)]),
        ("b", f"1. {SMALL} 2. No mass. 3. Clear.", [("1. No mass. 2. Clear.", 0)]),
        ("b", f"1. No mass. 2. {SMALL} 3. Clear.", [("1. No mass. 2. Clear.", 1)]),
        ("b", f"1. No mass. 3. {SMALL} 4. Clear.", [("1. No mass. 3. Clear.", 1)]),
        ("b", f"{SMALL} Left effusion. Normal heart.", [("Normal heart.", 0, 1)]),
        ("b", f"{SMALL} Recommend CT. Normal heart.", [("Normal heart.", 0, 1)]),
        ("b", f"{SMALL} Normal heart. Recommend CT.", []),
        ("b", f"{SMALL} Normal heart. It is calcified.", []),
        ("b", f"FINDINGS: {SMALL}\nNormal heart.", []),
        ("b", SMALL, []),
        (
            "b",
            "Large left effusion and right pneumothorax. Normal heart.",
            [("Large left effusion. Normal heart.", 0)],
        ),
        # Every mention goes to the other side, if nothing is said of that one.
        (
            "c",
            f"{SMALL} Effusion on the left.",
            [("Small right pleural effusion. Effusion on the right.", 0, 1)],
        ),
        ("c", "Bilateral effusions.", []),
        ("c", f"{SMALL} The right lung is clear.", []),
        ("c", f"{SMALL} Right pleural effusion.", []),
        ("c", "Left upper lobe mass and left pleural effusion.", []),
        ("d", "Small to moderate left effusion.", []),
        ("d", "SMALL LEFT EFFUSION.", [("LARGE LEFT EFFUSION.", 0)]),
        (
            "d",
            "Small left effusion. Small left pleural effusion.",
            [("Large left effusion. Large left pleural effusion.", 0, 1)],
        ),
        ("d", "A 6 cm mass.", [("A 2 cm mass.", 0)]),
        ("d", "A 2 cm nodule with consolidation.", []),
        ("d", "A nodule 8 mm from the pleura.", []),
        ("c", "Left upper lobe mass. There is an abnormality on the left.", []),
        ("b", "1. Clear. 2. Small left effusion. It is layering. 3. No mass.",
         [("1. Clear. 2. No mass.", 1, 2)]),
        ("b", f"1. No mass. 2. {SMALL}", [("1. No mass.", 1)]),
        ("b", f"1. {SMALL} The heart is normal. 2. No mass.",
         [("1. The heart is normal. 2. No mass.", 0)]),
        ("b", "Large left effusion with right pneumothorax seen. Normal heart.", []),
        ("b", "Cardiomegaly and effusion. Normal heart.", []),
        ("b", "Large cardiomegaly and effusion. Normal heart.",
         [("Large cardiomegaly. Normal heart.", 0)]),
        ("b", "Large left effusions and right pneumothorax. Normal heart.",
         [("Large left effusions. Normal heart.", 0)]),
        ("b", "Large left effusion and right pneumothorax. It is new. Clear.", []),
        ("b", "Large left effusion with mass and right pneumothorax. Normal heart.",
         [("Large left effusion with mass. Normal heart.", 0)]),
        ("f", "Left effusion. New right pneumothorax.",
         [("Left effusion. Right pneumothorax.", 1)]),
        ("f", "New right upper lobe mass. New left effusion.",
         [("Right upper lobe mass. New left effusion.", 0),
          ("New right upper lobe mass. Left effusion.", 1)]),
        ("e", f"{SMALL} Unchanged.", []),
        ("e", "Left effusion and mass.", []),
        ("e", "New left effusion.", []),
        ("e", "Left lower lobe consolidation", []),
        ("e", "Left lower lobe consolidation and clear right lung.", []),
        ("e", "Recommend CT for left lower lobe consolidation.", []),
        ("e", "Left lower lobe consolidation, as above.", []),
        ("e", "New left effusion. Left pleural effusion.", []),
        ("e", "Consolidation (left lower lobe).", []),
        ("f", "New left pleural effusion.", [("Left pleural effusion.", 0)]),
        ("f", "There is a new left effusion.", [("There is a left effusion.", 0)]),
        ("f", "Left effusion has increased.", [("Left effusion is noted.", 0)]),
        ("f", "Left effusion is unchanged.", []),
        # What gives no place first keeps the next one from nothing.
        ("b", f"Cardiomegaly with clear lungs. {SMALL} No mass.",
         [("Cardiomegaly with clear lungs. No mass.", 1)]),
        ("c", "Bilateral effusions. Left upper lobe mass.",
         [("Bilateral effusions. Right upper lobe mass.", 1)]),
        ("c", "Left effusion. Right effusion. Left upper lobe mass.",
         [("Left effusion. Right effusion. Right upper lobe mass.", 2)]),
        ("d", f"Cardiomegaly. {SMALL}",
         [("Cardiomegaly. Large left pleural effusion.", 1)]),
        ("d", "Small to moderate left effusion. A 2 cm nodule.",
         [("Small to moderate left effusion. A 6 cm nodule.", 1)]),
        ("f", "Right upper lobe mass. New left pleural effusion.",
         [("Right upper lobe mass. Left pleural effusion.", 1)]),
        ("f", "Unchanged cardiomegaly. New left pleural effusion.",
         [("Unchanged cardiomegaly. Left pleural effusion.", 1)]),
        ("b", "Trace effusion. Large right pneumothorax. Normal heart.",
         [("Trace effusion. Normal heart.", 1)]),
        ("b", f"{SMALL} Left effusion and large mass. Clear.",
         [(f"{SMALL} Left effusion. Clear.", 1)]),
        ("b", "Hiatal hernia and large effusion. Normal heart.",
         [("Hiatal hernia. Normal heart.", 0)]),
        ("b", "Right mass and large left effusion. Old right mass. Clear.",
         [("Right mass. Old right mass. Clear.", 0)]),
        ("b", "Left effusion and large mass. Trace left effusion. Clear.",
         [("Left effusion. Trace left effusion. Clear.", 0)]),
        ("b", f"***. {SMALL} Clear.", [("***. Clear.", 0)]),
        ("b", "Possible right pneumothorax. Normal heart.", []),
        ("b", "Hiatal hernia. Normal heart.", []),
        # Lists: a number alone in its line, one with a bracket, bullets, a glued one.
        ("b", f"1.\nNo mass.\n2.\n{SMALL}\n3.\nClear.",
         [("1.\nNo mass.\n2.\nClear.", 1)]),
        ("b", f"1) Clear. 2) {SMALL} 3) No mass.", [("1) Clear. 2) No mass.", 1)]),
        ("b", f"- Clear.\n- {SMALL}\n- No mass.", [("- Clear.\n- No mass.", 1)]),
        ("b", f"* {SMALL}\n* No mass.", [("* No mass.", 0)]),
        ("b", f"{SMALL[:-1]} 2. Normal heart.", []),
        ("b", f"1. {SMALL} 3. No mass.", []),
        ("b", f"1. {SMALL} 2. No mass. Normal heart. 3. Clear.",
         [("1. No mass. Normal heart. 2. Clear.", 0)]),
        ("b", f"1. {SMALL} 2. No mass. 1. Clear. 2. Mass.",
         [("1. No mass. 1. Clear. 2. Mass.", 0),
          (f"1. {SMALL} 2. No mass. 1. Clear.", 3)]),
        # A clause, wherever its sentence stands, and what hinders it.
        ("b", "Clear. Large left effusion and right pneumothorax. Normal heart.",
         [("Clear. Large left effusion. Normal heart.", 1)]),
        ("b", "There are effusion with right pneumothorax. Clear.",
         [("There are effusion. Clear.", 0)]),
        ("b", "There are effusion and right pneumothorax. Clear.", []),
        ("b", "Large effusion, mild edema and right pneumothorax. Clear.", []),
        ("b", "Large left effusion in the and right pneumothorax. Clear.", []),
        ("b", "Large left effusion and right pneumothorax, large. Clear.", []),
        ("b", "Large left effusion and clear right pneumothorax. Clear.", []),
        ("b", "Large left effusion and right pneumothorax. Recommend CT.", []),
        # What goes on, up to what would be a trace.
        ("b", "Left effusion. It is a left effusion. Clear. Left pleural effusion. "
         "Normal heart.", [("Clear. Normal heart.", 0, 1, 3)]),
        ("b", f"1. Clear. {SMALL} Recommend CT. 2. Mass.",
         [("1. Clear. 2. Mass.", 1, 2)]),
        ("b", f"Clear. {SMALL} It has normal size. Clear.", []),
        ("b", f"{SMALL} With a large mass. Clear.", []),
        ("b", f"{SMALL} Clear. Mass. Clear. It is stable.",
         [("Clear. Mass. Clear. It is stable.", 0)]),
        ("b", "Lower lobe opacity. Consolidation. Large right pneumothorax. Clear.",
         [("Lower lobe opacity. Consolidation. Clear.", 2)]),
        ("b", f"Clear. {SMALL} Recommend CT 2. Clear.", []),
        ("b", f"Clear. {SMALL} Normal heart. Other things.", []),
        ("b", f"Clear. {SMALL} Normal heart. Clear lungs. Other things.",
         [("Clear. Normal heart. Clear lungs. Other things.", 1)]),
        # What is said again under another name, in another place or on another side.
        ("b", "Left effusion. Large cardiomegaly and effusion. Normal heart.",
         [("Large cardiomegaly. Normal heart.", 0, 1)]),
        ("f", "Cardiomegaly and new effusion. Mass and new pleural effusion.",
         [("Cardiomegaly and effusion. Mass and pleural effusion.", 0, 1)]),
        ("b", "Opacity and consolidation. Normal heart.", [("Normal heart.", 0)]),
        ("b", "Lower lobe opacity. Consolidation. Normal heart.", []),
        ("c", "Left lower lobe opacity. Left lower lobe consolidation.",
         [("Right lower lobe opacity. Right lower lobe consolidation.", 0, 1)]),
        ("d", "Small left effusion. Small right effusion.",
         [("Large left effusion. Small right effusion.", 0),
          ("Small left effusion. Large right effusion.", 1)]),
        ("d", "Small left upper lobe opacity. Small left lower lobe opacity.",
         [("Large left upper lobe opacity. Small left lower lobe opacity.", 0),
          ("Small left upper lobe opacity. Large left lower lobe opacity.", 1)]),
        ("c", "Left pleural effusion. Effusion. Left-sided effusion.",
         [("Right pleural effusion. Effusion. Right-sided effusion.", 0, 1, 2)]),
        # One that is tied to its side, or beside another, keeps no other from its own.
        ("c", "Left effusion behind the heart. Right mass.",
         [("Left effusion behind the heart. Left mass.", 1)]),
        ("c", "Left effusion. Left effusion behind the heart. Right mass.",
         [("Left effusion. Left effusion behind the heart. Left mass.", 2)]),
        ("c", "Left effusion and left mass. Right pneumothorax.",
         [("Left effusion and left mass. Left pneumothorax.", 1)]),
        ("c", "Right effusion of 2 cm. Recommend CT of the right apex of 2 cm. "
         "Right mass.",
         [("Right effusion of 2 cm. Recommend CT of the right apex of 2 cm. "
           "Left mass.", 2)]),
        ("c", "Left mass. No right mass.", []),
        ("c", "Left upper lobe mass. Abnormal right density.", []),
        ("c", "Left upper lobe mass. Abnormal density.",
         [("Right upper lobe mass. Abnormal density.", 0)]),
        ("d", "Small effusion. Mild effusion. A 2 cm mass.",
         [("Small effusion. Mild effusion. A 6 cm mass.", 2)]),
        ("f", "Increased left effusion. New right mass.",
         [("Increased left effusion. Right mass.", 1)]),
        ("f", "Left effusion, possibly new. New right mass.",
         [("Left effusion, possibly new. Right mass.", 1)]),
        ("f", "New left effusion. Left effusion. New left effusion.",
         [("Left effusion. Left effusion. Left effusion.", 0, 2)]),
        ("f", "New left effusion. It is new. New right mass.", []),
        ("f", "New left effusion. Increased left effusion. Clear.", []),
        ("f", "New left effusion. It has a larger mass. Clear.", []),
        ("f", "Improved left effusion. Worse aeration.", []),
        ("f", "Improved left effusion. Worse edema.",
         [("Left effusion. Worse edema.", 0)]),
        # What may be the same without its name: by its size, or by three words.
        ("b", "A 2 cm mass. Abnormal 2 cm density. Normal heart.", []),
        ("b", "A 2 cm mass. Abnormal 3 cm density. Normal heart.",
         [("Abnormal 3 cm density. Normal heart.", 0)]),
        ("b", "Posterior lateral costal effusion. Abnormal posterior lateral costal. "
         "Clear.", []),
        ("b", "Posterior lateral costal effusion. Abnormal posterior lateral. Clear.",
         [("Abnormal posterior lateral. Clear.", 0)]),
        ("b", "Posterior lateral costal effusion. Posterior lateral costal clear.",
         [("Posterior lateral costal clear.", 0)]),
        # Two words go on about what was said, unless they deny something.
        ("b", "Left effusion. Seen there. Clear.", [("Clear.", 0, 1)]),
        ("b", "Left effusion. Edema excluded. Clear.", [("Edema excluded. Clear.", 0)]),
        # A change is a comparison, wherever it is told.
        ("e", "Left lower lobe consolidation has grown.", []),
        ("e", "Consolidation on the left. Left consolidation has grown.", []),
        ("e", "Lower lobe opacity. Stable consolidation.", []),
        # Words beside a degree with which it is part of a name, or of two degrees.
        ("d", "Small airway opacity.", []),
        ("d", "Very mild edema.", []),
        ("d", "Edema is mild.", []),
        ("d", "Mild edema accentuated by technique.", []),
        ("d", "Mild edema and mild cardiomegaly.", []),
        ("d", "Mild edema and huge cardiomegaly.", []),
        ("d", "Small left effusion. Mild left effusion.", []),
        ("d", "Small left effusion. Left effusion.",
         [("Large left effusion. Left effusion.", 0)]),
        ("d", "A 2 cm consolidation.", []),
        ("d", "A 20 mm mass.", [("A 60 mm mass.", 0)]),
        ("d", "A 21 mm mass.", [("A 7 mm mass.", 0)]),
        ("d", "A 2 cm by 3 nodule.", [("A 6 cm by 9 nodule.", 0)]),
        ("d", "A 2.1 x 1 cm nodule.", [("A 0.7 x 1 cm nodule.", 0)]),
    ],
)  # fmt: skip
def test_every_place_for_an_error_is_offered_and_no_other(letter, text, ways):
    """With the sentences that it changes."""
    assert {one[:-1] for one in offered(letter, text)} == set(ways)


AIR, AIR_NOW = "There is a moderate pneumothorax.", "Moderate pneumothorax."


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        # A denial of it, and of nothing else, gives way; it may have eight words.
        ("No pneumothorax. Normal heart.", (f"{AIR} Normal heart.", 0)),
        ("Clear. Negative for pneumothorax.", (f"Clear. {AIR}", 1)),
        ("Clear. It is stable. No pneumothorax. Normal heart.",
         (f"Clear. It is stable. {AIR} Normal heart.", 2)),
        ("No pneumothorax on either side of the chest.", (AIR, 0)),
        ("No pneumothorax on either side of the whole chest.", ()),
        ("No pneumothorax: clear.", ()),
        ("No pneumothorax and no mass.", ()),
        ("No pneumothorax as described above.", ()),
        ("No pneumothorax. It is as before.", ()),
        ("No pneumothorax; Normal heart.", ()),
        ("No pneumothorax 2. Normal heart.", ()),
        ("No pneumothorax. No pneumothorax.", ()),
        ("Normal chest.", ()),
        # A list of what is not there loses it, and keeps its words around the others.
        ("No edema or pneumothorax.", (f"{AIR} No edema.", 0)),
        ("No edema, mass, or pneumothorax.", (f"{AIR} No edema or mass.", 0)),
        ("No edema, pneumothorax, mass, or nodule.",
         (f"{AIR} No edema, mass, or nodule.", 0)),
        ("There is no evidence of pneumothorax or mass.",
         (f"{AIR} There is no evidence of mass.", 0)),
        ("No large mass or large pneumothorax is seen.",
         (f"{AIR} No large mass.", 0)),
        ("No pneumothorax or pneumothorax.", ()),
        ("No pneumothorax or spurs.", ()),
        ("No right pneumothorax or mass.", ()),
        ("No mass or pneumothorax 2. Normal heart.", ()),
        ("Edema without mass or pneumothorax.", ()),
        # "No acute disease" becomes what there is, once.
        ("No pneumothorax. No acute disease.", (f"{AIR} {AIR_NOW}", 0, 1)),
        ("No active process. No mass or pneumothorax.",
         (f"{AIR_NOW} {AIR} No mass.", 0, 1)),
        ("No active process. Normal heart.", (f"{AIR_NOW} {AIR} Normal heart.", 0)),
        ("No acute process. No pneumothorax. No acute disease.", ()),
        ("No acute disease and clear lungs.", ()),
        # Else it is added: after the first sentence near it, or the first of all.
        ("Normal heart. Clear left lung. Clear right lung.",
         (f"Normal heart. Clear left lung. {AIR} Clear right lung.", 1)),
        ("Normal heart. Clear bones.", (f"Normal heart. {AIR} Clear bones.", 0)),
        ("Clear lung. This is stable. Normal heart.",
         (f"Clear lung. This is stable. {AIR} Normal heart.", 1)),
        ("Normal heart! Clear bones.", (f"Normal heart! Clear bones. {AIR}", 1)),
        ("Recommend CT. Normal heart.", (f"Recommend CT. Normal heart. {AIR}", 1)),
        ("Clear lung 2. Normal heart.", (f"Clear lung 2. Normal heart. {AIR}", 1)),
        ("Normal heart. 1. Clear lungs.", (f"Normal heart. {AIR} 1. Clear lungs.", 0)),
        ("1.\nNormal heart. Clear lungs.", ()),
        ("1) Normal heart. Clear lungs.", ()),
        ("- Normal heart.\n- Clear lungs.", ()),
        ("Normal heart", ()),
        # Where it is stated or left open there is no room.
        ("Left pneumothorax. Normal heart.", ()),
        ("Possible pneumothorax. Normal heart.", ()),
    ],
)  # fmt: skip
def test_a_false_finding_contradicts_nothing_that_the_report_says(text, ways):
    """It stands where the report denied it, or where there is room for it."""
    found = offered("a", text, bank=bank_of("pneumothorax"))
    assert found == ({(*ways, "")} if ways else set())


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("No pneumothorax.", ["instead_of_normal"]),
        ("No mass or pneumothorax. No acute disease.", ["out_of_list", "summary"]),
        ("Normal heart.", ["added"]),
        ("No acute disease.", ["summary", "added"]),
    ],
)
def test_a_false_finding_says_how_it_was_made(text, tags):
    """Beside each change, in the order of the text."""
    bank = bank_of("pneumothorax")
    editor = ErrorEditor(bank, bank.modality("chest_xray"))
    report = line_report(_open_reader().reader, bank, text)
    ((changes, *_),) = editor.options(KINDS["a"], report, Chance("0"))
    assert {one.kind for one in changes} == {KINDS["a"]}
    assert [one.tag for one in sorted(changes, key=lambda one: one.start)] == tags


HEART = "The heart is severely enlarged."


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        # Stated; said three times; referred to: each of them, and then the other.
        ("Left pneumothorax. Clear.", [f"Left pneumothorax. {HEART} Clear."]),
        ("Cardiomegaly. Clear.", [f"Cardiomegaly. {AIR} Clear."]),
        ("No pneumothorax. No pneumothorax. No pneumothorax. Clear.",
         [f"No pneumothorax. {HEART} No pneumothorax. No pneumothorax. Clear."]),
        ("Normal heart. Heart size normal. Heart normal. Clear.",
         [f"Normal heart. {AIR} Heart size normal. Heart normal. Clear."]),
        ("No pneumothorax as described above. Clear.",
         [f"No pneumothorax as described above. {HEART} Clear."]),
        ("Heart and bones are normal. Clear.",
         [f"Heart and bones are normal. {AIR} Clear."]),
        ("Normal bones.", [f"Normal bones. {AIR}", f"Normal bones. {HEART}"]),
    ],
)  # fmt: skip
def test_a_false_finding_without_room_keeps_no_other_from_its_own(text, ways):
    """Whichever of the two is drawn first."""
    found = offered("a", text, bank=bank_of("pneumothorax", "cardiomegaly"))
    assert {one[0] for one in found} == {*ways}


def test_without_a_summary_no_acute_disease_cannot_give_way():
    """The impression would deny what the findings have."""
    bank = bank_of("pneumothorax", summary="")
    assert offered("a", "No pneumothorax. No acute disease.", bank=bank) == set()
    assert offered("a", "No pneumothorax.", bank=bank) == {(AIR, 0, "")}


def bank_of(*keys, **changes):
    """Return the bank with these false findings, without anything to be drawn."""
    bank = read_bank().bank
    chest = bank.modality("chest_xray")
    said = {"pneumothorax": {"sentence": AIR, "summary": AIR_NOW[:-1].lower()}}
    made = tuple(
        next(one for one in chest.false_findings if key in one.keys).model_copy(
            update={**said.get(key, {}), **changes}
        )
        for key in keys
    )
    chest = chest.model_copy(update={"false_findings": made})
    return bank.model_copy(update={"modalities": {"chest_xray": chest}})


def test_a_comparison_is_added_beside_what_has_one_already():
    """In whichever order the two are; the words for it are drawn."""
    new, mass = "New left pleural effusion.", "Right upper lobe mass"
    ((candidate, *lines, _),) = offered("e", f"{new} {mass}.")
    assert candidate.startswith(f"{new} {mass}, ") and lines == [1]
    ((candidate, *lines, _),) = offered("e", f"{mass}. {new}")
    assert candidate.startswith(f"{mass}, ") and candidate.endswith(f". {new}")
    assert lines == [0]


@pytest.mark.parametrize(
    ("text", "once", "further"),
    [
        (SMALL, "Large left pleural effusion.", "Very large left pleural effusion."),
        ("A small left effusion.", "A large left effusion.",
         "A very large left effusion."),
        ("SMALL LEFT EFFUSION.", "LARGE LEFT EFFUSION.", "VERY LARGE LEFT EFFUSION."),
        ("A 2 cm nodule.", "A 6 cm nodule.", "A 12 cm nodule."),
        ("A 6 cm mass.", "A 2 cm mass.", "A 1 cm mass."),
    ],
)  # fmt: skip
def test_a_severity_goes_further_in_the_same_direction(text, once, further):
    """At the same place; what is too large to grow shrinks."""
    assert offered("d", text) == {(once, 0, further)}


def test_a_size_goes_no_further_where_the_bank_has_no_such_size():
    """A bank may say how far a wrong size is, and leave it at that."""
    bank = read_bank().bank
    severity = bank.severity.model_copy(update={"further_times": None})
    bank = bank.model_copy(update={"severity": severity})
    assert offered("d", "A 2 cm nodule.", bank=bank) == {("A 6 cm nodule.", 0, "")}


@pytest.mark.parametrize(
    ("before", "more", "denied"),
    [
        ("", " The heart is normal.", True),
        ("Clear. It is stable. ", "", True),
        ("", " Left effusion.", False),
        ("", " Small right effusion.", False),
        ("", " It is calcified.", False),
        ("", " Clear. Recommend CT.", False),
        ("Clear. It has a ", " Clear.", False),
        ("Cardiomegaly and a ", " Clear.", False),
    ],
)
def test_a_denial_takes_the_place_of_its_only_sentence(before, more, denied):
    """Nothing else in the report may speak of it, and the sentence of nothing else."""
    found = offered("b", f"{before}{SMALL}{more}", negated=True)
    # Cardiomegaly can be denied, too, but shares its sentence with the effusion.
    place = before.count(".")
    wanted = {(f"{before}There is no pleural effusion.{more}", place, "")}
    assert found == (wanted if denied else set())


def test_what_the_bank_has_no_denial_of_is_not_denied():
    """A cavity is left out, and that there is none is never written."""
    text = "Left upper lobe cavity. Clear."
    assert offered("b", text) == {("Clear.", 0, "")}
    assert offered("b", text, negated=True) == set()


def offered(letter, text, *, negated=False, bank=None):
    """Return each error that a report has a place for, with its sentences."""
    bank = bank or read_bank().bank
    editor = ErrorEditor(bank, bank.modality("chest_xray"), negated=negated)
    report = line_report(_open_reader().reader, bank, text)
    found = [
        (
            apply_changes(text, one.changes),
            *sorted(one.lines),
            apply_changes(text, one.worse) if one.worse else "",
        )
        for one in editor.options(KINDS[letter], report, Chance("0"))
    ]
    # What is offered twice would be drawn twice as often.
    assert len({*found}) == len(found)
    return {*found}
