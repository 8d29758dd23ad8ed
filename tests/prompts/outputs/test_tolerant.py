"""What models write instead of the strict form: read if it has one meaning."""

import json

import pytest

from loop.core.records import Field, Item, Span, Value
from loop.prompts.outputs.label_values import LabelValues
from loop.prompts.outputs.words import fold_name

FIELDS = ("edema", "pleural_effusion")
ITEM = Item(id="c", variables={"text": "No edema. Small pleural effusion."})
PLAIN = '{"edema":{"value":"absent"},"pleural_effusion":{"value":"present"}}'
VALUES = {"edema": Value.ABSENT, "pleural_effusion": Value.PRESENT}


def read(text, fields=FIELDS):
    """Return the reading of `text`."""
    return LabelValues().read(text, fields, ITEM)


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        (f"```json\n{PLAIN}\n```", "code fence removed"),
        (f"```json {PLAIN} ```", "code fence removed"),
        (f"~~~\n{PLAIN}\n~~~\n", "code fence removed"),
        (f"<think>Edema? {{no}}</think>\n{PLAIN}", "thinking removed"),
        (f"<THINKING>\n{{}}\n</THINKING>{PLAIN}", "thinking removed"),
        (f"the prompt opened it</think>{PLAIN}", "thinking removed"),
        (f"{PLAIN}\n<think>was that right", "thinking removed"),
        (f"Here you are:\n{PLAIN}\nAnything else?", "text around the object removed"),
        (f"[{PLAIN}]", "text around the object removed"),
        (f"{PLAIN}\n{PLAIN}", "the same object given more than once"),
        (PLAIN * 50, "the same object given more than once"),
        (PLAIN[:-1] + ",}", "trailing comma removed"),
        (
            PLAIN.replace('"absent"', '"absent", "evidence": "No\nedema"'),
            "control character inside a string",
        ),
        (PLAIN.replace('"', "'"), "single quotes read as double quotes"),
        (
            PLAIN.replace('{"value":"present"}', "True"),
            "Python literals read as JSON",
        ),
        (
            PLAIN.replace('"edema"', '"Edema"'),
            "edema: label spelled differently",
        ),
        (
            PLAIN.replace("pleural_effusion", "Pleural Effusion"),
            "pleural_effusion: label spelled differently",
        ),
        (
            PLAIN.replace("pleural_effusion", "pleural-effusion"),
            "pleural_effusion: label spelled differently",
        ),
        (PLAIN.replace('"value":"absent"', '"Value":"absent"'), None),
        ("\ufeff" + PLAIN, None),
        (
            PLAIN[:-1] + ',"edema":{"value":"absent"}}',
            "edema: given more than once",
        ),
        (
            PLAIN.replace('"absent"}', '"absent","confidence":0.9}'),
            "edema: a key that is not value or evidence ignored",
        ),
    ],
)
def test_one_meaning_is_read_and_the_repair_recorded(text, repair):
    """Every departure from the strict form is visible in the outcome."""
    reading = read(text)
    assert {name: f.value for name, f in reading.fields.items()} == VALUES
    assert repair is None or repair in reading.repairs


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the answer is empty"),
        (" \n", "the answer is empty"),
        ("I cannot determine this.", "there is no JSON object in the answer"),
        (f"<think>I would say {PLAIN}", "there is no answer after thinking"),
        (f"<think>{PLAIN}</think>", "there is no answer after thinking"),
        (f'{PLAIN} or {{"edema": 1}}', "2 different objects in the answer"),
        (PLAIN[:-1], "not readable as JSON at character"),
        (PLAIN[:40], "not readable as JSON at character"),
        (f"{{edema: absent}} {PLAIN}", "not readable as JSON at character 1"),
        ('{"edema": "no", "edema": "yes"}', "two different values for edema"),
        ('{"labels":' + PLAIN + "}", "no answer for edema, pleural_effusion and 1"),
        ('[{"label":"edema","value":1}]', "no answer for edema"),
        ('{"edema":{"evidence":"x"},"pleural_effusion":0}', "no value for edema"),
        ("{}" * 60, "more than 50 objects"),
        (PLAIN * 51, "more than 50 objects in the answer"),
        ("[1, 0]", "there is no JSON object"),
        ("present", "there is no JSON object"),
    ],
)
def test_what_could_mean_two_things_is_unparsed(text, problem):
    """The published parser took the first digit it met; this one never guesses."""
    reading = read(text)
    assert reading.fields is None
    assert problem in reading.problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", Value.PRESENT),
        (" 0.\n", Value.ABSENT),
        ("-1", Value.UNCERTAIN),
        ("**Present**", Value.PRESENT),
        ('"absent"', Value.ABSENT),
        ("<think>10 criteria, 1 met</think>0", Value.ABSENT),
        ("```\nyes\n```", Value.PRESENT),
        ('{"value":"present","evidence":"edema"}', Value.PRESENT),
        ('{"edema":1}', Value.PRESENT),
    ],
)
def test_one_field_may_be_answered_without_its_name(text, value):
    """With one label per call a bare word has one meaning; it is still a repair."""
    reading = read(text, ("edema",))
    assert reading.fields["edema"].value is value
    assert reading.repairs


@pytest.mark.parametrize(
    "text",
    [
        "label 2 of 3: 1",
        "check the 10 criteria",
        "I cannot determine",
        "1 0",
        "10",
        "yes and no",
        "not present",
        "<think>1",
        '{"value":"present"} {"value":"absent"}',
        '{"pneumonia":{"value":"present"},',
        '{"value":"present","certainty":1}',
        '{"evidence":"edema"}',
    ],
)
def test_one_field_is_not_guessed_from_prose(text):
    """Each of these gave a value in the released parser."""
    assert read(text, ("edema",)).fields is None


@pytest.mark.parametrize(
    ("evidence", "span", "spans", "repair"),
    [
        ("No edema", None, (Span(0, 8),), ""),
        ("No edema", [0, 8], (Span(0, 8),), ""),
        (None, [0, 8], (Span(0, 8),), ""),
        ("", None, (), ""),
        ("No edema", [1, 9], (Span(0, 8),), "span corrected from the quote"),
        ("no  EDEMA", None, (Span(0, 8),), "evidence differs in case or space"),
        ("e", None, (Span(3, 4),), "evidence occurs more than once, first taken"),
        ("gross oedema", None, (), "evidence is not in the text"),
        ("gross oedema", [0, 8], (), "evidence is not in the text"),
        (["No edema"], None, (), "evidence is not a text"),
        (None, [0, 99], (), "span is not inside the text"),
        (None, [8, 0], (), "span is not inside the text"),
        (None, [-3, 2], (), "span is not inside the text"),
        (None, [True, 2], (), "span is not inside the text"),
        (None, [0.0, 8.0], (), "span is not inside the text"),
        (None, "0-8", (), "span is not inside the text"),
        (None, [1, 2, 3], (), "span is not inside the text"),
    ],
)
def test_evidence_is_located_never_believed(evidence, span, spans, repair):
    """A wrong quote costs the span and is recorded; the value stands."""
    given = {"value": "absent", "evidence": evidence, "span": span}
    given = {key: value for key, value in given.items() if value is not None}
    answer = {"edema": given, "pleural_effusion": {"value": "present"}}
    for text in (json.dumps(answer), f"Answer: {json.dumps(answer)}"):
        reading = read(text)
        assert reading.fields["edema"] == Field(Value.ABSENT, spans)
        assert [r for r in reading.repairs if r.startswith("edema")] == (
            [f"edema: {repair}"] if repair else []
        )


def test_a_label_that_is_called_like_a_key_is_a_label():
    """What stands under its name is its value, and not an answer without a name."""
    assert read('{"value":"present"}', ("value",)) == (
        {"value": Field(Value.PRESENT)},
        ("value: bare value",),
        "",
    )


def test_escapes_in_loose_strings_are_resolved():
    """Python and JSON escapes, and characters escaped as two halves."""
    text = "A\tB \u00e9 \U0001f600 'q'"
    item = Item(id="c", variables={"text": text})
    answer = r"{'edema': {'value': 'present', 'evidence': 'A\tB \u00e9 "
    answer += r"\ud83d\ude00 \'q\''}}"
    reading = LabelValues().read(answer, ("edema",), item)
    assert reading.fields["edema"].spans == (Span(0, len(text)),)


@pytest.mark.parametrize(
    ("published", "label"),
    [
        ("No Finding", "no_finding"),
        ("Trachea and Bronchus", "trachea_bronchus"),
        ("cavity and cyst", "cavity_cyst"),
        ("Calcification (Lung/Mediastinal)", "calcification"),
        ("calcification(lung and mediastinal)", "calcification"),
        ("Pulmonary Vascular Abnormal(ity)", "pulmonary_vascular_abnormal"),
        ("Pulmonary Vascular Abnormality", "pulmonary_vascular_abnormal"),
        ("Enlarged  Cardiomediastinum", "enlarged_cardiomediastinum"),
    ],
)
def test_published_spellings_fold_to_the_label_id(published, label):
    """Every spelling of the published tables finds its label."""
    assert fold_name(published) == fold_name(label)
