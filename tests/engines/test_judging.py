"""The embedded judge of pairs: every kind of error, the score, and what it refuses."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import yaml

from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Span
from loop.engines.rules.cues import read_cues
from loop.engines.rules.judging import GreenCategory, JudgedPair, judge_pair
from loop.engines.rules.report_findings import MOST_ALIKE, FindingReader
from loop.engines.rules.weights import read_judging
from loop.labels.error_categories import read_errors
from loop.prompts.catalog import read_version
from tests.bench.measure_judge import candidates, measure
from tests.engines.reading import exemplar, guide


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table beside this file."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


RANKED = rows("judged_pairs.csv")
REWORDED = rows("reworded_pairs.csv")

GUIDES = read_version(WorkspacePaths(bundled()), "extractor@latest").guides
CUES = read_cues(bundled() / "labels")
READER = FindingReader(GUIDES, CUES, read_judging())

SAME = 0.98
"""Least score of what says the same in other words."""


def judge(reference: str, candidate: str) -> JudgedPair:
    """Return what the shipped judge says of a pair."""
    return judge_pair(READER, reference, candidate)


LETTERS = dict(zip(GreenCategory, "abcdef", strict=True))


def errors(reference: str, candidate: str) -> list[tuple[str, bool]]:
    """Return the letter and the significance of every error of a pair."""
    found = judge(reference, candidate).errors
    return [(LETTERS[one.category], one.significant) for one in found]


def test_an_exemplar_of_absent_is_no_exclusion_where_it_is_a_denial() -> None:
    """A "skin fold" is something else than the finding; "no effusion" denies it."""
    denials = exemplar("No effusion", "absent"), exemplar("skin fold", "absent")
    wet = guide("wet", "effusion", "fold", exemplars=denials)
    reader = FindingReader([wet], CUES, read_judging())
    for text, stated, denied in (
        ("No effusion.", [], {"wet"}),
        ("Effusion.", ["wet"], set()),
        ("A fold on the left.", ["wet"], set()),
        ("No fold.", [], {"wet"}),
        ("No skin fold.", [], set()),
    ):
        found = reader.read(text)
        assert [one.key for one in found.findings if one.key == "wet"] == stated
        assert {key for key in found.denied if key == "wet"} == denied, text


def test_the_categories_are_those_of_the_file() -> None:
    """The first six of ``labels/errors.yaml``, in its order: one word for one thing."""
    known = read_errors(bundled() / "labels").categories[:6]
    assert {one.id: one.letter for one in known} == LETTERS


@pytest.mark.parametrize("row", RANKED, ids=lambda row: row["worse"])
def test_the_worse_of_two_statements_scores_lower(row: dict[str, str]) -> None:
    """A side, place, degree, size, change or negation that is wrong costs something."""
    better = judge(row["reference"], row["better"]).score
    assert better > judge(row["reference"], row["worse"]).score + 0.02
    if row["kind"] not in {"weight", "partial", "order"}:
        assert better >= SAME


@pytest.mark.parametrize("row", REWORDED, ids=lambda row: row["candidate"])
def test_other_words_for_the_same_cost_nothing(row: dict[str, str]) -> None:
    """In either direction: no wording is the right one."""
    assert judge(row["reference"], row["candidate"]).score >= SAME
    assert judge(row["candidate"], row["reference"]).score >= SAME


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        ("Clear lungs.", "Left pneumothorax.", ("a", True)),
        ("Clear lungs.", "Surgical clips.", ("a", False)),
        ("Left pneumothorax.", "Clear lungs.", ("b", True)),
        ("Left pneumothorax.", "No pneumothorax.", ("b", True)),
        ("Left pleural effusion.", "Right pleural effusion.", ("c", True)),
        ("Right upper lobe opacity.", "Right lower lobe opacity.", ("c", False)),
        ("Large pleural effusion.", "Small pleural effusion.", ("d", True)),
        ("Large pleural effusion.", "Moderate pleural effusion.", ("d", False)),
        ("8 mm lung nodule.", "3 cm lung nodule.", ("d", True)),
        ("Acute rib fracture.", "Healed rib fracture.", ("d", True)),
        ("Pneumonia.", "Possible pneumonia.", ("d", False)),
        ("Consolidation.", "Lung opacity.", ("d", False)),
        ("Consolidation and lung opacity.", "Lung opacity.", ("d", False)),
        ("Lung opacity.", "Consolidation and lung opacity.", ("d", False)),
        ("Edema.", "Worsened edema.", ("e", False)),
        ("Worsened edema.", "Edema.", ("f", False)),
        ("Worsened edema.", "Improved edema.", ("f", True)),
    ],
)
def test_each_difference_has_its_category(
    reference: str, candidate: str, expected: tuple[str, bool]
) -> None:
    """The six categories of GREEN, and whether a clinician would act."""
    reference = reference.replace("Edema", "Pulmonary edema")
    assert errors(reference, candidate) == [expected]


@pytest.mark.parametrize("pattern", ["{} and {} on the %s.", "%s {} and {}."])
def test_a_side_before_or_after_a_list_is_that_of_all_in_it(pattern: str) -> None:
    """Both are wrong, wherever it stands."""
    listed = pattern.format("consolidation", "pleural effusion")
    sides = (listed % "left", listed % "right")
    assert errors(*sides) == [("c", True), ("c", True)]


def words(text: str, span: Span | None) -> str:
    """Return the words of a text at a place."""
    assert span is not None
    return text[span.start : span.end]


def test_errors_point_at_the_words_of_both_texts() -> None:
    """Evidence: where each text says it, or denies it."""
    reference = "Heart is normal. Large left pneumothorax."
    candidate = "No pneumothorax. The heart is enlarged."
    omission, invented = judge(reference, candidate).errors
    assert omission.category is GreenCategory.OMISSION
    assert omission.label == "pneumothorax"
    assert words(reference, omission.reference_span) == "pneumothorax"
    assert words(candidate, omission.candidate_span) == "pneumothorax"
    assert invented.category is GreenCategory.FALSE_FINDING
    assert invented.label == "cardiomegaly"
    assert invented.reference_span is None
    assert words(candidate, invented.candidate_span) == "heart is enlarged"


def test_matched_findings_are_listed_with_their_places() -> None:
    """One of which something insignificant is left out is matched all the same."""
    reference, candidate = "Left basal pleural effusion.", "An effusion on the left."
    (matched,) = judge(reference, candidate).matched
    assert matched.label == "pleural_effusion"
    assert words(reference, matched.reference_span) == "pleural effusion"
    assert words(candidate, matched.candidate_span) == "effusion"


def test_a_finding_with_a_significant_error_is_not_matched() -> None:
    """As the prompts of judges say: it is the error, with the places in both texts."""
    reference, candidate = "Left pleural effusion.", "An effusion on the right."
    found = judge(reference, candidate)
    assert found.matched == ()
    (error,) = found.errors
    assert (error.category, error.significant) == (GreenCategory.LOCATION, True)
    assert words(reference, error.reference_span) == "pleural effusion"
    assert words(candidate, error.candidate_span) == "effusion"


def test_two_errors_of_one_category_in_a_finding_are_one() -> None:
    """Another size and another degree are one wrong severity."""
    reference = "Large pleural effusion of 5 cm."
    assert errors(reference, "Small pleural effusion of 1 cm.") == [("d", True)]


@pytest.mark.parametrize(
    ("said", "given", "cost"),
    [
        (20, 17, 0.0),
        (17, 20, 0.0),
        (20, 16.9, 0.1),
        (20, 13, 0.1),
        (13, 20, 0.1),
        (20, 12.9, 0.5),
        # Of small ones a millimetre and a half is no growth, whatever its share.
        (4, 2.5, 0.0),
        (2.5, 4, 0.0),
        (4, 2.4, 0.5),
    ],
)
def test_sizes_differ_by_a_share_of_the_larger_one(
    said: float, given: float, cost: float
) -> None:
    """Up to 15 % they are the same, up to 35 % nearly; both ends belong to it."""
    judged = judge(f"Lung nodule of {said} mm.", f"Lung nodule of {given} mm.")
    costs = [one.cost for one in judged.errors]
    # A nodule is actionable: it is worth a half.
    assert costs == ([pytest.approx(cost * 0.5)] if cost else [])
    assert len(judged.matched) == (cost < 0.5)


@pytest.fixture(scope="module")
def differing() -> FindingReader:
    """Return a reader for which what is added costs more than what is left out."""
    data = read_judging()
    changed = {
        name: getattr(data.penalties, name).model_copy(
            update={"unstated": 0.2, "added": 0.25}
        )
        for name in ("side", "place", "degree", "size", "change")
    }
    penalties = data.penalties.model_copy(update=changed)
    data = data.model_copy(update={"penalties": penalties})
    return FindingReader(GUIDES, CUES, data)


@pytest.mark.parametrize(
    ("told", "silent", "letters", "worth"),
    [
        ("Left pleural effusion.", "Pleural effusion.", "cc", 0.5),
        ("Upper lobe opacity.", "Lung opacity.", "cc", 0.5),
        ("Large pleural effusion.", "Pleural effusion.", "dd", 0.5 * 1.25),
        ("Lung nodule of 8 mm.", "Lung nodule.", "dd", 0.5),
        ("Worsened pulmonary edema.", "Pulmonary edema.", "fe", 0.5),
    ],
)
def test_what_is_left_out_and_what_is_added_have_penalties_of_their_own(
    differing: FindingReader, told: str, silent: str, letters: str, worth: float
) -> None:
    """The shipped numbers are alike, and a clinician may make them differ."""
    for pair, letter, cost in (
        ((told, silent), letters[0], worth * 0.2),
        ((silent, told), letters[1], 0.5 * 0.25),
    ):
        (error,) = judge_pair(differing, *pair).errors
        assert LETTERS[error.category] == letter
        assert error.cost == pytest.approx(cost)


@pytest.mark.parametrize(("more", "matched"), [("", True), (" beside", False)])
def test_what_no_wording_explains_is_matched_by_half_of_its_words(
    more: str, matched: bool
) -> None:
    """Two words of four and four are half of both; two of four and five are less."""
    judged = judge(
        "Breast shadow asymmetric after surgery.", f"Breast shadow odd hangs{more}."
    )
    assert len(judged.matched) == matched
    expected = [] if matched else [("b", False), ("a", False)]
    assert [(LETTERS[one.category], one.significant) for one in judged.errors] == (
        expected
    )


def test_every_mention_counts_and_not_one_for_each_label() -> None:
    """Two nodules are two findings, of which one may be missing."""
    both = "8 mm nodule in the left upper lobe. 20 mm nodule in the right lower lobe."
    assert len(READER.read(both).findings) == 2
    assert errors(both, "Left upper lobe nodule of 8 mm.") == [("b", True)]


def test_a_finding_that_is_mentioned_again_is_one_finding() -> None:
    """The impression repeats the findings."""
    twice = "FINDINGS: Small left effusion. IMPRESSION: Left pleural effusion, small."
    assert len(READER.read(twice).findings) == 1
    assert judge(twice, "Small left pleural effusion.").score == 1


def test_the_impression_undoes_what_the_findings_say() -> None:
    """As `rules` reads: where they disagree, the impression decides."""
    text = "FINDINGS: Possible right pneumothorax. IMPRESSION: No pneumothorax."
    assert not READER.read(text).findings


def test_a_possible_explanation_is_part_of_its_finding() -> None:
    """A radiologist who describes an opacity reports one finding."""
    (found,) = READER.read("Left basal opacity, possibly pneumonia.").findings
    assert found.key == "lung_opacity"
    assert found.said.reads == {"pneumonia"}


def test_left_and_right_together_are_bilateral() -> None:
    """Both ways: in the reference or in the candidate."""
    apart = "Small left pleural effusion. Small right pleural effusion."
    assert judge("Small bilateral pleural effusions.", apart).score == 1
    assert judge(apart, "Small bilateral pleural effusions.").score == 1


def test_a_sentence_without_a_known_finding_is_matched_by_its_words() -> None:
    """No list of findings is complete; a silent loss would score as agreement."""
    reference = "Retained shrapnel in the left shoulder."
    assert judge(reference, "Shrapnel is retained in the left shoulder.").score == 1
    assert errors(reference, "The lungs are clear.") == [("b", False)]
    assert errors("The lungs are clear.", reference) == [("a", False)]


@pytest.mark.parametrize(
    "more",
    [
        "No pleural effusion.",
        "Heart size is normal.",
        "The bony structures are intact.",
        "PA and lateral views of the chest.",
        "Comparison is made with the previous study.",
        "Follow-up is recommended in six weeks.",
    ],
)
def test_normal_findings_and_technique_add_nothing(more: str) -> None:
    """A candidate is not better for saying what is normal, nor worse."""
    reference = "Left lower lobe pneumonia."
    assert judge(reference, f"{reference} {more}").score == 1
    assert judge(f"{reference} {more}", reference).score == 1


def test_the_score_is_what_its_formula_says() -> None:
    """(k + M) / (k + M + E), from the data and the errors that are listed."""
    data = READER.data
    judged = judge("Left pneumothorax. Cardiomegaly.", "Left pneumothorax.")
    matched = data.base + data.significance["urgent"]
    (omission,) = judged.errors
    assert omission.cost == data.significance["actionable"]
    assert judged.score == matched / (matched + omission.cost)


@pytest.mark.parametrize(
    ("reference", "candidate", "costs", "matched"),
    [
        # An effusion is worth a half, more if large, and less for its errors.
        ("Left pleural effusion.", "Right pleural effusion.", {"c": 0.35}, 0.15),
        ("Bilateral pleural effusions.", "Left pleural effusion.", {"c": 0.125}, 0.375),
        ("Left pleural effusion.", "Pleural effusion.", {"c": 0.05}, 0.45),
        ("Pleural effusion.", "Left pleural effusion.", {"c": 0.05}, 0.45),
        ("Large pleural effusion.", "Small pleural effusion.", {"d": 0.25}, 0.375),
        ("Large pleural effusion.", "Moderate pleural effusion.", {"d": 0.125}, 0.5),
        ("Clear lungs.", "Tiny left pleural effusion.", {"a": 0.25}, 0),
        # A change that is not said, or "stable" for another one, or the opposite.
        ("Stable pulmonary edema.", "Pulmonary edema.", {"f": 0.025}, 0.475),
        ("Pulmonary edema.", "Stable pulmonary edema.", {"e": 0.025}, 0.475),
        ("Worsened pulmonary edema.", "Pulmonary edema.", {"f": 0.075}, 0.425),
        ("Pulmonary edema.", "Worsened pulmonary edema.", {"e": 0.075}, 0.425),
        ("Stable pulmonary edema.", "Worsened pulmonary edema.", {"f": 0.2}, 0.3),
        ("Worsened pulmonary edema.", "Improved pulmonary edema.", {"f": 0.2}, 0.3),
        # What is possible, or healed, is of the next class below.
        ("Pneumonia.", "Possible pneumonia.", {"d": 0.125}, 0.375),
        ("Possible pneumonia.", "Pneumonia.", {"d": 0.0625}, 0.1875),
        ("Left pneumothorax.", "Possible left pneumothorax.", {"d": 0.25}, 0.75),
        ("Possible pneumothorax.", "Clear lungs.", {"b": 0.5}, 0),
        ("Acute rib fracture.", "Healed rib fracture.", {"d": 0.15}, 0.35),
        ("Rib fracture.", "Healed rib fracture.", {}, 0.5),
        # One step away, and beside one that is there.
        ("Consolidation.", "Lung opacity.", {"d": 0.07}, 0.43),
        ("Consolidation and lung opacity.", "Lung opacity.", {"d": 0.1}, 0.5),
        # Nine tenths at most, shared by 0.7 for the side, 0.4 for each of the others.
        (
            "Large left pleural effusion, worsened.",
            "Small right pleural effusion, improved.",
            {"c": 0.2625, "d": 0.15, "f": 0.15},
            0.0625,
        ),
    ],
)
def test_what_an_error_costs_and_a_finding_is_worth_makes_the_score(
    reference: str, candidate: str, costs: dict[str, float], matched: float
) -> None:
    """Worked out by hand from ``labels/judging.yaml``, in which k is one half."""
    judged = judge(reference, candidate)
    found = {LETTERS[one.category]: one.cost for one in judged.errors}
    assert found == pytest.approx(costs)
    right = 0.5 + matched
    assert judged.score == pytest.approx(right / (right + sum(costs.values())))


def test_each_further_error_lowers_the_score() -> None:
    """Errors are added up, so that more of them are always worse."""
    reference = "Left pneumothorax. Small right pleural effusion. Cardiomegaly."
    steps = [
        "Left pneumothorax. Small right pleural effusion. Cardiomegaly.",
        "Left pneumothorax. Small left pleural effusion. Cardiomegaly.",
        "Left pneumothorax. Cardiomegaly.",
        "Left pneumothorax.",
        "Left pneumothorax. Free air under the diaphragm.",
        "Free air under the diaphragm.",
    ]
    scores = [judge(reference, step).score for step in steps]
    assert scores == sorted(set(scores), reverse=True)


def test_more_findings_of_one_label_than_are_told_apart_are_one() -> None:
    """A text may list ten thousand of them; time stays linear in its length."""
    text = " ".join(f"Nodule of {size} mm." for size in range(1, 4 * MOST_ALIKE))
    assert len(READER.read(text).findings) == MOST_ALIKE
    assert judge(text, text).score == 1


def test_two_normal_reports_agree_fully() -> None:
    """GREEN gives 0 there: it has no matched finding."""
    judged = judge("Normal chest.", "No acute abnormality. The lungs are clear.")
    assert (judged.score, judged.matched, judged.errors) == (1, (), ())


def test_the_memory_of_sentences_changes_nothing() -> None:
    """Sentences are remembered for speed alone."""
    forgetful = FindingReader(GUIDES, CUES, read_judging(), memo=0)
    for row in RANKED:
        pair = row["reference"], row["worse"]
        assert judge_pair(forgetful, *pair) == judge_pair(READER, *pair)


def test_guides_without_any_of_our_labels_are_enough() -> None:
    """Another task's labels are judged too; the data's findings are no labels then."""
    reader = FindingReader((), CUES, read_judging())
    (error,) = judge_pair(reader, "Free air.", "Clear lungs.").errors
    assert (error.category, error.label) == (GreenCategory.OMISSION, "")


def test_another_language_is_refused() -> None:
    """Without its words every finding would be missed in silence."""
    with pytest.raises(EngineError, match=r"language 'zh'.*Choose an engine"):
        FindingReader(GUIDES, CUES, read_judging(), language="zh")


def test_a_text_in_chinese_is_refused() -> None:
    """It would read as a normal report."""
    with pytest.raises(EngineError, match="Chinese"):
        judge("左侧气胸。", "Left pneumothorax.")


@pytest.mark.parametrize("text", ["", "  \n", "INDICATION: Cough."])
def test_a_text_that_holds_nothing_to_read_is_refused(text: str) -> None:
    """Silence is no agreement with a normal report."""
    with pytest.raises(EngineError, match="holds nothing to read"):
        judge("Clear lungs.", text)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("significance", {"urgent": 1.0}, "significance needs"),
        ("device_findings", ["gadget"], "device_findings names"),
        ("by_degree", [1.0], "by_degree needs"),
        ("base", 0, "base"),
    ],
)
def test_data_that_do_not_fit_are_refused(
    tmp_path: Path, field: str, value: object, problem: str
) -> None:
    """What a clinician edits is checked when it is read."""
    shipped = bundled() / "labels" / "judging.yaml"
    data = yaml.safe_load(shipped.read_text(encoding="utf-8"))
    edited = tmp_path / "judging.yaml"
    edited.write_text(yaml.safe_dump(data | {field: value}), encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        read_judging(edited)


def test_data_that_are_not_there_are_named(tmp_path: Path) -> None:
    """The message says which file, and what to do."""
    with pytest.raises(DataError, match=r"absent\.yaml.*Name a file"):
        read_judging(tmp_path / "absent.yaml")


def test_it_agrees_with_radiologists(data_folder: Path) -> None:
    """On the RadPref cases: the rating, the preferred candidate, the kinds of error."""
    people = candidates(data_folder / "radpref")
    measured = measure(people, READER)
    assert measured.tau_b >= 0.62
    assert measured.right >= 38
    assert measured.f1["false finding"] >= 0.76
    assert measured.f1["omission"] >= 0.80
    assert measured.f1["attribute"] >= 0.36


def test_a_report_agrees_fully_with_itself(data_folder: Path) -> None:
    """Whatever is read in real reports is matched with itself."""
    for one in candidates(data_folder / "radpref"):
        assert judge(one.text, one.text).score == 1
