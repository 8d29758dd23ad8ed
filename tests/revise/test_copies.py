"""Wording copied from cases is found; one's own words are not."""

import pytest

from loop.core.records import Exemplar, Value
from loop.labels.cohort import read_cohort
from loop.review.verdict import Edits, Judgement, Verdict
from loop.revise.copies import LONG_RUN, Wording, check_copies, find_copies

CASE = ("c1", "FINDINGS: The heart, which is large,\nhas grown since the last film.")
ZH = ("z1", "两肺纹理增粗,右侧肋膈角变钝,考虑少量胸腔积液。")


def copies(text, run, case=CASE):
    """Return whether `text` counts as copied from the case."""
    return bool(find_copies([Wording("here", text)], [case], run, "dev"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the heart which is LARGE has grown", True),
        ("the heart which is large", False),
        ("My heart, which is large, has grown", True),
        ("a heart that is big and grew", False),
        ("the heart which is largely has grown", False),
    ],
)
def test_six_equal_words_in_a_row_are_a_copy(text, found):
    """Case, punctuation and line breaks do not hide a copy; whole words count."""
    assert copies(text, 6) is found


def test_a_chinese_character_counts_as_half_a_word():
    """Common terms of four to eight characters must stay usable."""
    assert not copies("少量胸腔积液", 6, ZH)
    assert copies("右侧肋膈角变钝,考虑少量胸腔积液", 6, ZH)


def test_a_copy_names_place_and_case_but_not_the_text():
    """The report of a copy must not be one."""
    (copy,) = find_copies(
        [Wording("verdict 1, term", CASE[1])], [CASE], LONG_RUN, "dev"
    )
    assert copy == ("verdict 1, term", "dev", "c1", LONG_RUN)


def test_a_long_copy_from_the_own_cohort_is_a_warning(setting):
    """Patients' words should not end up in a public prompt; the clinician decides."""
    text = "A skin fold resembles cardiomegaly on this film."
    example = Exemplar(text=text, value=Value.ABSENT, evidence="skin fold")
    verdict = Verdict(
        label="cardiomegaly",
        judgement=Judgement.MODEL_WRONG,
        case_ids=("s1",),
        edits=Edits(exemplars=(example,)),
    )
    cohort = read_cohort(setting.workspace, "dev")
    (copy,) = check_copies(setting.workspace, [verdict], cohort)
    assert (copy.where, copy.case_id) == ("verdict 1, exemplar", "s1")
