"""`rules` takes a report apart, and says which phrases the other report entails."""

import pytest

from loop.core.errors import EngineError
from loop.engines.rules.phrase_answers import entail_phrases, list_phrases
from tests.engines.test_judging import READER


def test_a_report_becomes_its_sentences():
    """What is read of it: an indication is no finding."""
    text = "INDICATION: Cough.\nFINDINGS: Small left effusion. No pneumothorax."
    assert list_phrases(READER, text) == ["Small left effusion", "No pneumothorax"]
    assert list_phrases(READER, "") == list_phrases(READER, " ... ") == []
    numbered = "IMPRESSION:\n1. Left effusion.\n2. Right nodule of 5 mm."
    assert list_phrases(READER, numbered) == ["Left effusion", "Right nodule of 5 mm"]


@pytest.mark.parametrize("text", ["INDICATION: Cough.", "FINDINGS:", "1. 2.", "42"])
def test_a_report_of_which_nothing_is_read_has_no_empty_list_of_phrases(text):
    """An empty list says that the report states nothing."""
    with pytest.raises(EngineError, match=r"a text h.*Leave the pair out"):
        list_phrases(READER, text)


@pytest.mark.parametrize(
    ("phrase", "against", "evidence"),
    [
        ("Left pleural effusion", ["Normal heart", "Small left pleural effusion"], [1]),
        ("Right pleural effusion", ["Small left pleural effusion"], []),
        ("Pleural effusion", ["Small left pleural effusion"], [0]),
        ("Large pleural effusion", ["Small pleural effusion"], []),
        ("Cardiomegaly and left effusion", ["Left effusion", "Cardiomegaly"], [0, 1]),
        ("Left effusion", ["Cardiomegaly", "Left effusion", "Mass"], [1]),
        ("Cardiomegaly and left effusion", ["Cardiomegaly"], []),
        ("No pneumothorax", ["No pleural effusion or pneumothorax."], [0]),
        ("No pneumothorax", ["Pneumothorax"], []),
        ("Pneumothorax", ["No pneumothorax"], []),
        ("No pneumothorax", ["The heart is normal"], []),
        ("The heart is normal", ["Heart size within normal limits"], [0]),
        ("The heart is normal", ["Cardiomegaly. Enlarged heart"], []),
        ("The lungs are clear", ["The heart is normal"], []),
        ("Stable cardiomegaly", ["Cardiomegaly"], []),
        ("Cardiomegaly", [], []),
        ("Worsened cardiomegaly", ["Improved cardiomegaly"], []),
        ("Stable cardiomegaly", ["Worsened cardiomegaly"], []),
        ("Cardiomegaly", ["Worsened cardiomegaly"], [0]),
        ("Pneumonia", ["Possible pneumonia"], []),
        ("Possible pneumonia", ["Pneumonia"], [0]),
        ("Nodule", ["Nodule of 5 mm"], [0]),
        ("Small nodule", ["Small nodule of 5 mm"], [0]),
        ("Nodule of 5 mm", ["Nodule"], []),
        ("Nodule of 5 mm", ["Nodule of 30 mm"], []),
        ("Effusion", ["Moderate effusion"], [0]),
        ("Moderate effusion", ["Effusion"], []),
        ("Left lung opacity", ["Left upper lobe opacity"], [0]),
        ("Left upper lobe opacity", ["Left lung opacity"], []),
        ("Right lung opacity", ["Left upper lobe opacity"], []),
        ("Acute rib fracture", ["Healed rib fracture"], []),
    ],
)
def test_a_phrase_is_entailed_by_what_states_it(phrase, against, evidence):
    """And by nothing that only might: a side, a degree, a change must be there."""
    (said,) = entail_phrases(READER, [phrase], against)
    assert said == {"phrase": 0, "entailed": bool(evidence), "evidence": evidence}


@pytest.mark.parametrize(
    "phrase",
    [
        *("PA", "Normal", "1", "Calcified granulomas noted", "History: asthma"),
        *("No stable cardiomegaly", "Hyperinflation, consistent with emphysema"),
        *("Correlate clinically", "There is ill-defined haziness on the left"),
    ],
)
def test_a_phrase_is_entailed_by_its_own_words(phrase):
    """Whatever the rules make of them: a copy of a report says what the report says."""
    (said,) = entail_phrases(READER, [phrase], ["Cardiomegaly", f"{phrase.upper()}."])
    assert said == {"phrase": 0, "entailed": True, "evidence": [1]}


def test_what_a_phrase_denies_must_be_denied_beside_what_it_states():
    """Silence on the pneumothorax does not entail that there is none."""
    phrase = "Left effusion without pneumothorax"
    for against, evidence in (
        (["Small left effusion"], []),
        (["Small left effusion", "Pneumothorax"], []),
        (["Small left effusion", "No pneumothorax"], [0, 1]),
    ):
        (said,) = entail_phrases(READER, [phrase], against)
        assert said["evidence"] == evidence


def test_a_phrase_that_begins_like_a_section_hides_no_other_phrase():
    """An indication is not read, up to the end of its paragraph."""
    against = ["Cardiomegaly", "INDICATION: cough", "Small left effusion"]
    (said,) = entail_phrases(READER, ["Left effusion"], against)
    assert said["evidence"] == [2]


def test_a_phrase_that_is_not_read_is_not_called_unsupported():
    """The judge says that it cannot read it, and not that it is wrong."""
    with pytest.raises(EngineError, match="nothing to read"):
        entail_phrases(READER, ["Technique: PA view"], ["Left effusion"])


def test_another_language_is_refused():
    """Nothing is entailed by what cannot be read, and nothing is denied."""
    with pytest.raises(EngineError, match="Chinese"):
        list_phrases(READER, "双肺清晰。")
    with pytest.raises(EngineError, match="Chinese"):
        entail_phrases(READER, ["双肺清晰"], ["Clear lungs"])
