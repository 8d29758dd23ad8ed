"""A bank and other words for it: what is looked for stays, what is written changes."""

import pytest
from pydantic import ValidationError

from loop.core.errors import DataError
from loop.judge.injection.injection_bank import (
    BankWording,
    InjectionBank,
    Rewrite,
    SeverityWords,
    phrase_pattern,
    read_bank,
)

CHEST = "chest_xray"


def fields(model):
    """Return the fields of a record as they are."""
    return {name: getattr(model, name) for name in type(model).model_fields}


def changed_parts(**said):
    """Return a bank in other words, and which of its parts are not as before."""
    bank = read_bank().bank
    worded = BankWording(version=1, **said).word(bank)
    before, after = fields(bank), fields(worded)
    return worded, {name for name in before if before[name] != after[name]}


def test_without_other_words_the_bank_stays_as_it_is():
    """A part that is left out is the bank's."""
    assert changed_parts()[1] == set()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("synonyms", (("mass", "lump"),)),
        ("abbreviations", (("chest", "CH"),)),
        ("style", (Rewrite(pattern="a", becomes="b"),)),
        ("numbers", (Rewrite(pattern="1", becomes="one"),)),
    ],
)
def test_other_words_take_the_place_of_a_whole_part(name, given):
    """And of no other part."""
    worded, changed = changed_parts(**{name: given})
    assert changed == {name}
    assert getattr(worded, name) == given


def test_degrees_and_comparisons_are_exchanged_within_their_parts():
    """What is looked for beside them stays; comparisons of one finding go."""
    bank = read_bank().bank
    degree = {"from": "small", "to": "voluminous", "before": ["effusion"]}
    worded, changed = changed_parts(degrees=[degree], comparisons=[", newer"])
    assert changed == {"severity", "comparisons"}
    (shift,) = worded.severity.degrees
    assert (shift.begins, shift.to, shift.further) == ("small", "voluminous", "")
    assert worded.severity.found.pattern == phrase_pattern(["small"]).pattern
    assert worded.comparisons.phrases == (", newer",) and worded.comparisons.of == {}
    for part, names in (("severity", {"degrees"}), ("comparisons", {"phrases", "of"})):
        before, after = fields(getattr(bank, part)), fields(getattr(worded, part))
        assert {name for name in before if before[name] != after[name]} == names


def test_sentences_are_given_to_the_findings_of_the_bank_in_turn():
    """Those without other words are not written; another modality is as it was."""
    bank = read_bank().bank
    told = {
        "lung_lesion": [{"sentence": "A lump.", "summary": "lump"}, {"sentence": "B."}],
        "fracture": [{"sentence": "A {rib} rib is broken."}],
    }
    worded, changed = changed_parts(sentences={CHEST: told})
    assert changed == {"modalities"}
    made = worded.modality(CHEST)
    assert [
        (one.keys[0], one.sentence, one.summary) for one in made.false_findings
    ] == [
        ("lung_lesion", "A lump.", "lump"),
        ("lung_lesion", "B.", ""),
        ("fracture", "A {rib} rib is broken.", ""),
        ("fracture", "A {rib} rib is broken.", ""),
    ]
    before = [
        one
        for one in bank.modality(CHEST).false_findings
        if one.keys[0] in ("lung_lesion", "fracture")
    ]
    for one, other in zip(made.false_findings, before, strict=True):
        differs = {
            name for name, value in fields(one).items() if value != fields(other)[name]
        }
        assert differs <= {"sentence", "summary"}
    assert made.slots == bank.modality(CHEST).slots
    assert made.false_findings[2].slots == ("rib",)
    other, unchanged = changed_parts(sentences={"chest_ct": told})
    assert unchanged == set() and other == bank


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"matters": {}}, "matters needs omission, location, severity, comparison, om"),
        ({"topics": {}}, "no topic 'lungs'"),
        ({"modalities": {}}, "modalities"),
        ({"color": "red"}, "color"),
    ],
)
def test_a_bank_with_a_part_missing_is_refused(change, message):
    """Else an error of that kind would never be made, or contradict the report."""
    with pytest.raises(ValidationError, match=message):
        InjectionBank.model_validate({**fields(read_bank().bank), **change})


def test_a_size_further_off_is_further_off():
    """As many times as the first would be the same error."""
    severity = fields(read_bank().bank.severity)
    assert SeverityWords(**{**severity, "further_times": 4}).further_times == 4
    for times in (3, 2):
        with pytest.raises(ValidationError):
            SeverityWords(**{**severity, "further_times": times})
    with pytest.raises(ValidationError, match="further_times is not above times"):
        SeverityWords(**{**severity, "times": 5, "further_times": 5})


@pytest.mark.parametrize(
    ("phrases", "text", "found"),
    [
        (
            ["left", "left lower"],
            "Left\n lower, not cleft or left-sided",
            ["Left\n lower"],
        ),
        (
            ["left-sided"],
            "left-sided LEFT-SIDED aleft-sided",
            ["left-sided", "LEFT-SIDED"],
        ),
        (["a.b"], "a.b axb", ["a.b"]),
        ([], "anything", []),
    ],
)
def test_phrases_are_found_as_whole_words(phrases, text, found):
    """The longest first, in any case, with any white space; nothing finds nothing."""
    assert phrase_pattern(phrases).findall(text) == found


def test_a_rewriting_by_words_leaves_others_alone():
    """By what the first group found, folded; else with what the groups found."""
    by_word = Rewrite(pattern=r"\b(one|two)\b", becomes={"one": "1"})
    assert [by_word.write(one) for one in by_word.found.finditer("One two")] == [
        "1",
        None,
    ]
    plain = Rewrite(pattern=r"(\d) ?mm", becomes=r"\1 millimetres")
    assert [plain.write(one) for one in plain.found.finditer("3 MM")] == [
        "3 millimetres"
    ]


def test_a_modality_that_is_not_there_names_those_that_are():
    """In order, with what to do."""
    bank = read_bank().bank
    chest = bank.modality(CHEST)
    two = bank.model_copy(update={"modalities": {"mr": chest, "ct": chest}})
    assert two.modality("ct") is chest
    with pytest.raises(DataError, match=r"no modality 'us', only ct, mr\. Choose"):
        two.modality("us")
