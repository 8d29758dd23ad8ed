"""The language of a text: a wrong guess would be read with the wrong cues."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.labels.language import _WORD, SAMPLE, guess_language, has_words, words


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Lungs are clear.", "en"),
        ("No pneumothorax.", "en"),
        ("ET tube and LA line. Op bed, AM film.", "en"),
        ("LA enlargement. ET tube above carina.", "en"),
        ("Status post CABG, de novo opacity en face.", "en"),
        ("Größe normal.", "en"),
        ("Clear, 5 µm, β-blocker, 3 cm².", "en"),
        ("双肺纹理清晰，PICC 置管在位。", "zh"),
        ("Lungs are clear in this rather long English text 肺.", "en"),
        ("", "en"),
        ("1.5 x 2", "en"),
    ],
)
def test_english_and_chinese_stay_what_they_are(text: str, language: str) -> None:
    """Latin abbreviations in a Chinese report do not make it English, nor a β Greek."""
    assert guess_language(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "Лёгкие без очаговых изменений. PICC в норме.",
        "لا يوجد استرواح صدري",
        "Χωρίς πνευμοθώρακα.",
        "기흉 없음. 심비대 소견.",
        "ไม่พบภาวะลมในช่องเยื่อหุ้มปอด",
        "फेफड़े साफ़ हैं",
        "אין חזה אוויר",
        "Թոքերը մաքուր են",
        "ფილტვები სუფთაა",
        "நுரையீரல் தெளிவாக உள்ளது",
    ],
)
def test_no_other_script_is_english(text: str) -> None:
    """English cues find nothing in it, and nothing found would count as absent."""
    assert guess_language(text) == "und"


@pytest.mark.parametrize(
    "text",
    [
        "両側肺野に異常陰影を認めず。",
        "胸水なし。",
        "ｷﾖｳｽｲ あり",
        "カテーテル先端は右房 (CVC)",
    ],
)
def test_kana_is_japanese(text: str) -> None:
    """Kanji alone would be read as Chinese."""
    assert guess_language(text) == "ja"


def test_one_kana_in_a_chinese_text_does_not_make_it_japanese() -> None:
    """A stray sign is a slip of the input method."""
    assert guess_language("双肺纹理清晰，心影不大，膈面光滑，肋膈角锐利の。") == "zh"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Kein Pneumothorax.", "de"),
        ("Das Herz ist normal groß, keine Stauung und kein Erguss.", "de"),
        ("Pas d'épanchement pleural. Les poumons sont clairs.", "fr"),
        ("No se observa derrame pleural. Corazón de tamaño normal.", "es"),
        ("Non versamento pleurico. Cuore nei limiti, polmoni espansi.", "it"),
        ("Não há derrame pleural. Coração de dimensões normais.", "pt"),
        ("Geen pneumothorax. Het hart is niet vergroot.", "nl"),
    ],
)
def test_other_latin_languages_are_not_english(text: str, language: str) -> None:
    """Their negations are no English cues: "kein" would leave the finding present."""
    assert guess_language(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "Không thấy tổn thương nhu mô phổi.",
        "Płuca bez zmian ogniskowych, serce niepowiększone, kąty wolne, łuk ciągły.",
        "Derrame pulmonares.",
    ],
)
def test_what_is_neither_english_nor_known_is_undetermined(text: str) -> None:
    """Accents all over, or words of two languages alike: no language is made up."""
    assert guess_language(text) == "und"


def test_only_the_beginning_of_a_text_is_looked_at() -> None:
    """A million characters cost as much as a report."""
    assert guess_language("clear " * SAMPLE + "肺" * 100 * SAMPLE) == "en"


def test_the_shipped_demo_is_english(labels_folder: Path) -> None:
    """Short, telegraphic reports in every style that the demo knows."""
    found: Counter[str] = Counter()
    for path in (labels_folder / "demo").glob("*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            found[guess_language(json.loads(line)["text"])] += 1
    assert set(found) == {"en"}


@pytest.mark.parametrize(
    ("text", "language"),
    [("\u0444" * 2 + "x" * 8, "und"), ("\u0444" * 2 + "x" * 9, "en")],
)
def test_a_fifth_of_another_script_is_too_much(text: str, language: str) -> None:
    """Two letters of ten; two of eleven are a name or a sign."""
    assert guess_language(text) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("肺" + "x" * 4, "zh"),
        ("肺" + "x" * 5, "en"),
        ("の" + "肺" * 9, "ja"),
        ("の" + "肺" * 10, "zh"),
        # One stop word of four, two of many, and as many English ones.
        ("kein aaa bbb ccc", "de"),
        ("kein aaa bbb ccc ddd", "en"),
        ("kein keine" + " aaa" * 10, "de"),
        ("kein of", "en"),
        ("kein keine of", "de"),
        # Three accents and one in twenty letters, without an English word.
        ("ąęó" + "x" * 57, "und"),
        ("ąęó" + "x" * 58, "en"),
        ("ąę" + "x" * 10, "en"),
        ("ąęó the", "en"),
    ],
)
def test_where_one_language_ends_and_another_begins(text: str, language: str) -> None:
    """A share is reached exactly, and a letter less is too few."""
    assert guess_language(text) == language


@pytest.mark.parametrize("text", ["7", "é", "肺", "a.", "Лёгкие"])
def test_one_letter_or_digit_is_a_word(text):
    """Of any script."""
    assert has_words(text)


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_words_of_plain_ascii_are_those_of_any_text(text):
    """They are found in another way, which is faster."""
    assert words(text) == _WORD.findall(text.casefold())


def test_words_of_other_texts_lose_their_marks_and_their_case_too():
    """A Chinese character is one, wide letters are plain, umlauts are letters."""
    said = "Kein Erguß, ÜBERBLÄHUNG; 双肺清晰。\uff23\uff34"
    assert words(said) == ["kein", "erguss", "überblähung", *"双肺清晰", "ct"]
