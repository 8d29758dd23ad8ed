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
    item = Item(id="1", variables={"text": text})
    reading = get_contract("label_values").read(raw, fields, item)
    assert reading.repairs == ("effusion: a misspelt word corrected",)
    assert reading.fields["nodule"].value == "present"


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
