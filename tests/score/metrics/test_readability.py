"""Flesch reading ease: the published formula, and counts by the stated rules."""

from dataclasses import replace

import numpy as np
import pytest

from loop.score.metrics.readability import (
    TextCounts,
    count_syllables,
    count_text,
    reading_ease,
)
from loop.score.metrics.registry import METRICS
from tests.score.metrics.scenes import ALONE, make_side


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (TextCounts(words=5, sentences=1, syllables=8), 66.40),
        (TextCounts(words=5, sentences=1, syllables=9), 49.48),
        (TextCounts(words=11, sentences=1, syllables=27), -11.984545454545412),
        (TextCounts(words=10, sentences=1, syllables=26), -23.275),
    ],
)
def test_the_review_notes_sentences_have_their_correct_values(counts, expected):
    """One syllable more or less in five words is 17 points: the counter decides."""
    assert reading_ease(counts) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("word", "syllables"),
    [("pneumonia", 3), ("the", 1), ("effusion", 3), ("PLEURAL", 2), ("x-ray", 2)],
)
def test_a_words_syllables_are_its_hyphenation(word, syllables):
    """Pyphen's dictionary, so that anyone can count again."""
    assert count_syllables(word) == syllables


@pytest.mark.parametrize(
    ("text", "words", "sentences"),
    [
        ("Nodule of 3.5 cm. No effusion.", 5, 2),
        ("FINDINGS:\nClear lungs\n\nIMPRESSION:\nNormal", 5, 2),
        ("1. Normal heart.\n2. Clear lungs.", 4, 2),
        ("Patient's x-ray? Yes!", 3, 2),
        ("___ ... 12", 0, 0),
    ],
)
def test_words_and_sentences_follow_the_stated_rules(text, words, sentences):
    """Measures, numbered lists and headings are what cases are full of."""
    assert count_text(text)[:2] == (words, sentences)


def test_a_text_without_a_word_has_no_reading_ease():
    """0 would be a text that reads badly."""
    assert reading_ease(count_text("...")) is None


def test_other_languages_are_undefined_and_counted():
    """The formula and the syllables are of English."""
    side = make_side(["Herz normal."] * 2, ["Herz normal."] * 2, language="de")
    told = METRICS["flesch"].score(side, ALONE)
    assert np.isnan(told.per_case).all()
    assert told.value is None
    assert told.notes == ("undefined for 2 of 2 cases: not known to be in English",)


def test_why_a_reading_ease_is_undefined_is_counted_apart():
    """Another language, and no word; where no language is said, all are read."""
    side = make_side(["a"] * 3, ["No effusion.", "Kein Erguss.", "..."])
    mixed = replace(side, languages=("en", "de", "en"))
    told = METRICS["flesch"].score(mixed, ALONE)
    assert np.isnan(told.per_case).tolist() == [False, True, True]
    # Two words of one and three syllables in one sentence.
    assert told.value == pytest.approx(206.835 - 1.015 * 2 - 84.6 * 2)
    assert told.notes == (
        "undefined for 1 of 3 cases: not known to be in English",
        "undefined for 1 of 3 cases: without a word",
    )
    assert told.signature.startswith("flesch|sent:.!?|words:letters|syl:en_US|mean:")
    assert told.signature.endswith("|n:1")
    unsaid = METRICS["flesch"].score(replace(side, languages=()), ALONE)
    assert np.isnan(unsaid.per_case).tolist() == [False, False, True]
    assert unsaid.notes == told.notes[1:]


def test_lengths_are_in_words_and_nothing_is_divided_by_zero():
    """An empty candidate has no words; a reference without any has no ratio."""
    side = make_side(["a b c d", "a b", "___"], ["a b", "", "a"])
    told = {n: METRICS[n].score(side, ALONE).per_case for n in METRICS if "len" in n}
    assert METRICS["n_words"].score(side, ALONE).per_case.tolist() == [2, 0, 1]
    assert told["length_difference"].tolist() == [2, 2, 1]
    assert told["length_ratio"] == pytest.approx([0.5, 0, np.nan], nan_ok=True)
