"""Misspelt words: corrected towards the words of the guides, and never further."""

import json

import pytest

from loop.core.records import Item
from loop.engines.rules.cues import Spelling
from loop.engines.rules.engine import ReportReader
from loop.prompts.outputs.base import get_contract
from tests.engines.reading import CUES, answers, guide, rule, value_of

FINDINGS = [
    guide("effusion", "effusion", clarifications=(rule("spinal fusion", "absent"),)),
    guide("atelectasis", "atelecta*"),
    guide("nodule", "nodule"),
]


@pytest.mark.parametrize(
    "word", ["efusion", "effussion", "effusoin", "effuxion", "Effusiom", "effusionns"]
)
def test_one_edit_is_corrected(word):
    """A letter too few, too many, swapped or changed."""
    assert value_of(f"Small {word}.", "effusion") == "present"
    assert value_of(f"No {word}.", "effusion") == "absent"


@pytest.mark.parametrize("word", ["efusoin", "lesson", "fusion", "confusion", "effus"])
def test_other_words_are_left_alone(word):
    """Two edits, a word that there is, or a short one."""
    assert value_of(f"Some {word}.", "effusion", "lesion") == "absent"


def test_the_beginning_of_a_word_is_corrected_too():
    """A term may name the beginning only."""
    assert value_of("Bibasilar atelactasis.", "atelecta*") == "present"
    assert value_of("Basilar atelectatic bands.", "atelecta*") == "present"


def test_a_word_near_two_findings_is_left_alone():
    """Nobody knows which one was meant."""
    found = answers("A bundle.", [guide("a", "bungle"), guide("b", "bunyle")])
    assert {one["value"] for one in found.values()} == {"absent"}


def test_a_correction_is_a_repair_and_its_evidence_the_word_as_written():
    """Whoever looks at the answer sees what it rests on."""
    text = "Small  efusion with nodules."
    fields = [one.label for one in FINDINGS]
    raw = ReportReader(FINDINGS, fields, CUES).answer(text)
    entry = json.loads(raw)["effusion"]
    start, end = entry["span"]
    assert text[start:end] == "efusion"
    reading = read_one(raw, text, *fields)
    assert reading.repairs == ("effusion: a misspelt word corrected",)
    assert reading.fields["nodule"].value == "present"


def test_an_explanation_names_the_word_as_written_and_as_it_was_read():
    """Beside each mention that rests on it, and on no other."""
    reader = ReportReader(FINDINGS, [one.label for one in FINDINGS], CUES)
    found = reader.explain(
        "Small  EFUSION  and a nodule. Bibasilar atelactasis."
    ).mentions
    assert {one.label: one.why for one in found} == {
        "effusion": "stated; 'EFUSION' read as 'effusion'",
        "nodule": "stated",
        "atelectasis": "stated; 'atelactasis' read as 'atelectasis'",
    }


@pytest.mark.parametrize(
    ("word", "meant"), [("nodulez", "nodules"), ("nodulr", "nodule")]
)
def test_of_two_forms_of_a_word_the_one_of_its_length_is_read(word, meant):
    """Which one is told to whoever asks why."""
    reader = ReportReader([guide("n", "nodule", "nodules")], ["n"], CUES)
    found = reader.explain(f"A {word}.").mentions
    assert {one.why for one in found} == {f"stated; '{word}' read as '{meant}'"}


@pytest.mark.parametrize("pair", [one for cues in CUES for one in cues.spellings])
def test_a_wording_is_found_in_both_spellings(pair):
    """Whichever of the two the guide has."""
    for written, meant in (pair, pair[::-1]):
        assert value_of(f"A walrus{meant}body.", f"walrus{written}body") == "present"


def read_one(raw, text, *fields):
    """Return an answer as its contract reads it."""
    item = Item(id="1", variables={"text": text})
    return get_contract("label_values").read(raw, fields, item)


def test_it_can_be_switched_off():
    """A site may want its reports read as they are written."""
    off = [replace_spelling(one) for one in CUES]
    reader = ReportReader(FINDINGS, ["effusion"], off)
    assert json.loads(reader.answer("Small efusion.")) == {"effusion": "absent"}
    assert CUES[0].spelling.correct and off[0].digest != CUES[0].digest


def replace_spelling(cues):
    """Return cues that correct nothing."""
    return cues.model_copy(update={"spelling": Spelling(correct=False)})


def test_words_of_any_length_take_linear_time():
    """A text without spaces is not compared with anything."""
    text = "efusion" * 100_000
    assert value_of(text, "effusion") == "absent"


@pytest.mark.parametrize("word", ["atelecta", "atelectasis", "Atelectatic"])
def test_a_word_that_begins_like_a_wording_is_no_misspelling(word):
    """It is read as it is written, and no repair is told of it."""
    raw = ReportReader(FINDINGS, ["atelectasis"], CUES).answer(f"Basilar {word}.")
    reading = read_one(raw, f"Basilar {word}.", "atelectasis")
    assert (reading.fields["atelectasis"].value, reading.repairs) == ("present", ())


@pytest.mark.parametrize(("letters", "value"), [(32, "present"), (33, "absent")])
def test_a_word_of_more_than_32_letters_is_no_misspelling(letters, value):
    """What is longer is no word, though one letter too many is all that is wrong."""
    term = ("abcdefghij" * 4)[: letters - 1]
    word = term[:9] + term[8:]
    assert len(word) == letters
    assert value_of(f"Some {word}.", term) == value
    assert value_of(f"Some {term}.", term) == "present"
    assert value_of(f"Some {word}{'q' * 33}.", term) == "absent"


@pytest.mark.parametrize(
    ("word", "value"),
    [("nodyle", "present"), ("noddule", "present"), ("nodue", "absent")],
)
def test_a_word_of_six_letters_is_the_shortest_that_is_corrected(word, value):
    """With five letters too many words are near."""
    assert value_of(f"A {word}.", "nodule") == value


@pytest.mark.parametrize("word", ["atelctasis", "atelektasis", "atellectasis"])
def test_the_beginning_of_a_word_may_lack_a_letter_or_have_one_too_many(word):
    """What follows it is kept as it is written."""
    assert value_of(f"Bibasilar {word}.", "atelecta*") == "present"
    assert value_of(f"Bibasilar x{word}.", "atelecta*") == "absent"


def test_a_word_near_two_beginnings_is_corrected_where_they_begin_one_word():
    """That is, where their first five letters are the same."""
    assert value_of("A pleurxl rub.", "pleura*", "pleuri*") == "present"
    found = answers("A bundles.", [guide("a", "bungle*"), guide("b", "bunyle*")])
    assert {one["value"] for one in found.values()} == {"absent"}


def test_two_words_are_one_up_to_their_last_two_letters():
    """One may have meant metastasis or metastases; it makes no difference."""
    assert value_of("A metastasys.", "metastasis", "metastases") == "present"
    assert value_of("A bunzlexx.", "bungzlexx", "bunyzlexx") == "absent"


def test_a_word_within_a_wording_is_corrected_from_seven_letters_on():
    """By itself a wording is looked for from six."""
    assert value_of("Pluural fluid.", "pleural fluid") == "present"
    assert value_of("Cystyc mass.", "cystic mass") == "absent"
    assert value_of("Cystyc.", "cystic") == "present"


def test_nothing_is_corrected_towards_a_word_that_a_cue_file_lists():
    """What is near it is a word of the language more often than a slip."""
    listed = next(one for one in CUES[0].spelling.known if len(one) > 8)
    assert value_of(f"Some {listed}.", listed) == "present"
    assert value_of(f"Some {listed[:4]}{listed[3:]}.", listed) == "absent"
