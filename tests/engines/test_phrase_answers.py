"""`rules` takes a report apart, and says which phrases the other report entails."""

import pytest

from loop.core.errors import EngineError
from loop.engines.rules.phrase_answers import entail_phrases, list_phrases
from tests.engines.test_judging import READER


def test_a_report_becomes_its_sentences():
    """What is read of it: an indication is no finding."""
    text = "INDICATION: Cough.\nFINDINGS: Small left effusion. No pneumothorax."
    assert list_phrases(READER, text) == ["Small left effusion", "No pneumothorax"]
    assert list_phrases(READER, "") == []


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
    ],
)
def test_a_phrase_is_entailed_by_what_states_it(phrase, against, evidence):
    """And by nothing that only might: a side, a degree, a change must be there."""
    (said,) = entail_phrases(READER, [phrase], against)
    assert said == {"phrase": 0, "entailed": bool(evidence), "evidence": evidence}


def test_another_language_is_refused():
    """Nothing is entailed by what cannot be read, and nothing is denied."""
    with pytest.raises(EngineError, match="Chinese"):
        list_phrases(READER, "双肺清晰。")
    with pytest.raises(EngineError, match="Chinese"):
        entail_phrases(READER, ["双肺清晰"], ["Clear lungs"])
