"""Findings and impression are found under the headings real reports have."""

import pytest

from loop.labels.importing.report_sections import split_sections
from loop.labels.importing.screening import is_chest

WRAPPED = """                                 FINAL REPORT
 EXAMINATION:  CHEST (PA AND LAT)

 INDICATION:  Fever. Rule out pneumonia.

 COMPARISON:  None.

 FINDINGS:

 The lungs are clear. There is
 no effusion.

 IMPRESSION:

 No acute process.
"""


def test_a_usual_report_gives_findings_and_impression() -> None:
    """Indentation goes, words stay, under one spelling of heading."""
    sections = split_sections(WRAPPED)
    assert sections.text == (
        "FINDINGS:\nThe lungs are clear. There is\nno effusion.\n\n"
        "IMPRESSION:\nNo acute process."
    )
    assert sections.exam == "CHEST (PA AND LAT)"


def test_the_question_is_never_read_as_an_answer() -> None:
    """An indication such as a wish to rule something out is no finding."""
    assert "neumonia" not in split_sections(WRAPPED).text


@pytest.mark.parametrize(
    ("report", "findings", "impression"),
    [
        ("FINDINGS: Clear. IMPRESSION: Normal.", "Clear.", "Normal."),
        ("Findings: Clear.\nConclusion: Normal.", "Clear.", "Normal."),
        ("FINDINGS AND IMPRESSION: Clear.", "Clear.", ""),
        ("FINDINGS/IMPRESSION:\nClear.", "Clear.", ""),
        ("FINDINGS & IMPRESSION: Clear.", "Clear.", ""),
        ("IMPRESSION: Normal.", "", "Normal."),
        ("OPINION: Normal.", "", "Normal."),
        ("FINDINGS: Clear.\nFINDINGS: No edema.", "Clear.\n\nNo edema.", ""),
        ("FINDINGS: Clear.\r\n\r\nIMPRESSION: Normal.\r\n", "Clear.", "Normal."),
        (
            "FINDINGS: Clear.\nIMPRESSION: Nodule.\nRECOMMENDATION: CT for mass.",
            "Clear.",
            "Nodule.",
        ),
        ("FINDINGS: Clear.\nADDENDUM: Called.", "Clear.", ""),
        ("影像所见：双肺清晰。\n诊断意见：未见异常。", "双肺清晰。", "未见异常。"),
        ("【影像表现】双肺清晰。\n【印象】正常", "双肺清晰。", "正常"),
        ("临床诊断：肺炎\n检查所见：双肺清晰。\n结论：正常", "双肺清晰。", "正常"),
    ],
)
def test_headings_vary(report: str, findings: str, impression: str) -> None:
    """English and Chinese variants, on one line or several."""
    sections = split_sections(report)
    assert (sections.findings, sections.impression) == (findings, impression)


def test_words_that_look_like_headings_in_prose_stay() -> None:
    """Inside a line only capitals after the end of a sentence are a heading."""
    text = "FINDINGS: The impression: stable. Heart: normal. LUNGS: clear."
    assert split_sections(text).findings == text.removeprefix("FINDINGS: ")


def test_a_view_opens_the_findings() -> None:
    """Older reports name the view instead."""
    report = "FINAL REPORT\n PORTABLE AP CHEST: Tube in place.\n IMPRESSION: Stable."
    sections = split_sections(report)
    assert sections.findings == "Tube in place."
    assert sections.impression == "Stable."


def test_a_report_without_headings_is_its_body() -> None:
    """History ends at the blank line; the body keeps no heading."""
    report = "FINAL REPORT\n HISTORY: Mass seen.\n\n Lungs are clear.\n\n Heart normal."
    sections = split_sections(report)
    assert sections.text == "Lungs are clear.\n\nHeart normal."
    assert not sections.headed


def test_the_body_before_an_impression_is_the_findings() -> None:
    """Many reports head only the impression."""
    report = "HISTORY: Cough.\n\nThere is an effusion.\n\nIMPRESSION: Effusion."
    assert split_sections(report).findings == "There is an effusion."


def test_a_report_with_only_a_question_is_empty() -> None:
    """It is counted as empty, not scored as normal."""
    assert split_sections("INDICATION: Pneumonia?").text == ""


@pytest.mark.parametrize(
    ("exam", "chest"),
    [
        ("CHEST (PA AND LAT)", True),
        ("Chest and abdomen, portable", True),
        ("LEFT RIBS", True),
        ("胸部正位", True),
        ("", True),
        ("PORTABLE AP", True),
        ("ABDOMEN (SUPINE)", False),
        ("RIGHT KNEE, TWO VIEWS", False),
        ("THORACIC SPINE", False),
        ("T-spine", False),
        ("腹部平片", False),
    ],
)
def test_other_regions_are_told_from_the_chest(exam: str, chest: bool) -> None:
    """An unclear text never excludes a case; a named other region does."""
    assert is_chest(exam) is chest


@pytest.mark.parametrize(
    ("report", "exam"),
    [
        ("EXAMINATION: Left knee\n\nFINDINGS: Clear.", "Left knee"),
        ("EXAM: Chest\nSTUDY: Portable\nFINDINGS: Clear.", "Chest\n\nPortable"),
        ("CHEST, TWO VIEWS\nmore words\nFINDINGS: Clear.", "CHEST, TWO VIEWS"),
        ("Chest, two views\nFINDINGS: Clear.", ""),
        ("\n  KNEE, LEFT  \nFINDINGS: Clear.", "KNEE, LEFT"),
        (f"{'K' * 80}\nFINDINGS: Clear.", "K" * 80),
        (f"{'K' * 81}\nFINDINGS: Clear.", ""),
        ("KNEE\nEXAM: Chest\nFINDINGS: Clear.", "Chest"),
        ("检查部位：胸部\n影像所见：清晰。", "胸部"),
    ],
)
def test_what_was_examined_is_named_by_a_heading_or_a_title(
    report: str, exam: str
) -> None:
    """A title is a first line in capitals, and not too long for one."""
    assert split_sections(report).exam == exam


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ("Clear lungs.\r\rNo effusion.", "Clear lungs.\n\nNo effusion."),
        ("HISTORY: Cough.\nFever.", ""),
        ("HISTORY:\n\nCough.\n\nClear.\n \t\nNormal.", "Clear.\n\nNormal."),
        ("EXAM: Chest\n\nClear.\nHISTORY: Cough.\n\nNormal.", "Clear.\n\nNormal."),
        ("Clear. IMPRESSION: Normal.", "FINDINGS:\nClear.\n\nIMPRESSION:\nNormal."),
        ("FINDINGS:\n\nIMPRESSION: Normal.", "IMPRESSION:\nNormal."),
        ("IMPRESSION: One.\nOPINION: Two.", "IMPRESSION:\nOne.\n\nTwo."),
        ("Clear;IMPRESSION : Normal.", "FINDINGS:\nClear;\n\nIMPRESSION:\nNormal."),
        ("Clear, IMPRESSION: Normal.", "Clear, IMPRESSION: Normal."),
        ("Clear. Impression: Normal.", "Clear. Impression: Normal."),
        ("[findings] Clear.", "FINDINGS:\nClear."),
        ("FINDINGS Clear.", "FINDINGS Clear."),
        ("wet read version #3\n\nClear.", "Clear."),
    ],
)
def test_what_is_read_is_told_whole(report: str, text: str) -> None:
    """Body, findings and impression, and nothing of a question."""
    assert split_sections(report).text == text


@pytest.mark.parametrize(
    ("report", "findings"),
    [
        # A heading of findings is what opens them; a view then is words of theirs.
        ("FINDINGS: Clear.\nAP CHEST: Tube.", "Clear.\nAP CHEST: Tube."),
        ("AP CHEST: Tube.\nHISTORY: Cough.\nPA CHEST: Line.", "Tube.\n\nLine."),
        ("EXAM: AP CHEST: Tube.", ""),
        ("ap chest: Tube.", "ap chest: Tube."),
        (f"{'A' * 82} CHEST: Tube.", f"{'A' * 82} CHEST: Tube."),
        (f"{'A' * 79} CHEST: Tube.", "Tube."),
    ],
)
def test_a_view_is_a_heading_where_no_other_opens_the_findings(
    report: str, findings: str
) -> None:
    """In capitals, at the beginning of a line, and short."""
    assert split_sections(report).findings == findings


@pytest.mark.slow
@pytest.mark.parametrize(
    "report",
    [
        "CHEST " * 150_000,
        "A" * 900_000,
        "FINDINGS:" * 100_000,
        ". " * 450_000,
        "\n \t" * 300_000,
        "CHEST RADIOGRAPH, " * 50_000 + ":",
    ],
)
def test_a_huge_report_takes_linear_time(report: str) -> None:
    """No heading pattern backtracks over the whole text."""
    split_sections(report)
