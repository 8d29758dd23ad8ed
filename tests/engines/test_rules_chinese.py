"""Chinese assertion status on sentences written for this test."""

import pytest

from tests.engines.reading import rule, value_of


@pytest.mark.parametrize(
    ("text", "term", "expected"),
    [
        ("右侧胸腔积液。", "胸腔积液", "present"),
        ("双侧胸腔未见积液，未见气胸。", "气胸", "absent"),
        ("双肺未见明显实变、结节及肿块影。", "结节", "absent"),
        ("未见气胸，左侧胸腔积液。", "胸腔积液", "present"),
        ("右下肺斑片影，肺炎可能。", "肺炎", "uncertain"),
        ("不除外少量胸腔积液。", "胸腔积液", "uncertain"),
        ("肺不张待排。", "肺不张", "uncertain"),
        ("心影增大，主动脉弓钙化。", "钙化", "present"),
        ("原左侧气胸已吸收。", "气胸", "absent"),
        ("左侧胸腔积液较前无明显变化。", "胸腔积液", "present"),
        ("既往肺结核病史，双肺纹理清晰。", "肺结核", "absent"),
        ("病史：肺炎。所见：双肺清晰。", "肺炎", "absent"),
        ("考虑双下肺间质性病变。", "间质性病变", "present"),
        ("无骨折征象。", "骨折", "absent"),
    ],
)
def test_status_of_one_finding(text, term, expected):
    """Each row is one construction of ordinary Chinese reports."""
    assert value_of(text, term) == expected


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("心影增大肺纹理增粗。", "肺纹理增粗", "present"),
        ("心影增大肺纹理增粗。", "大肺纹理增粗", "absent"),
        ("肺纹理增粗心影增大。", "肺纹理增粗", "present"),
        ("肺纹理增粗心影增大。", "肺纹理增粗心", "absent"),
    ],
)
def test_a_clarification_overrules_only_what_it_overlaps(text, phrase, expected):
    """Without spaces, the end of one wording is the start of the next."""
    more = {"clarifications": (rule(phrase, "absent"),)}
    assert value_of(text, "心影增大", **more) == expected


@pytest.mark.parametrize(("characters", "expected"), [(8, "present"), (9, "absent")])
def test_eight_characters_may_stand_in_a_gap(characters, expected):
    """Words are not written apart, so characters are counted."""
    text = f"积液{'在' * characters}底部。"
    assert value_of(text, "积液 ... 底部") == expected


@pytest.mark.parametrize(
    ("denied", "expected"),
    [
        ("未见胸腔积液。", "absent"),
        ("未见左侧胸腔积液。", "present"),
        ("左侧胸腔积液未见。", "present"),
        ("未见左右胸腔积液。", "absent"),
        ("未见双侧胸腔积液。", "absent"),
    ],
)
def test_what_is_denied_of_one_side_may_be_on_the_other(denied, expected):
    """Without a space between the side and the finding."""
    text = f"影像所见：胸腔积液。\n诊断意见：{denied}"
    assert value_of(text, "胸腔积液") == expected
