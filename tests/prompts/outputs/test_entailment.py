"""Phrases of a report, and which of them follow from those of another one."""

import json
import random
from collections import Counter

import pytest

from loop.core.numbered_phrases import number_phrases, split_phrases
from loop.core.records import Entry, Field, Item, Reading
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.report_phrases import MAX_PHRASES
from tests.prompts.outputs.test_judge_fuzz import ANSWERS, damaged, scrawled

PHRASES, ENTAILED = get_contract("phrases"), get_contract("entailment")
REPORT = Item(id="p", variables={"text": "Small left effusion. No pneumothorax."})
PAIR = Item(
    id="p",
    variables={
        "reference_phrases": number_phrases(["small left effusion", "normal heart"]),
        "candidate_phrases": number_phrases(["left effusion", "enlarged heart", "x"]),
    },
)


def phrases(text, item=REPORT, contract=PHRASES):
    """Return the phrases of an answer, or why there are none."""
    reading = contract.read(text, ("phrases",), item)
    if reading.fields is None:
        return reading.problem
    field = reading.fields["phrases"]
    assert field.value == len(field.entries)
    return [one.words for one in field.entries]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"phrases": ["Small left effusion", "a"]}', ["Small left effusion", "a"]),
        ('{"phrases": []}', []),
        ('```json\n{"phrases": ["a"]}\n```', ["a"]),
        ('<think>{"phrases": ["draft"]}</think>{"phrases": ["a"]}', ["a"]),
        ('{"Phrases": ["a\\n b"]}', ["a b"]),
        ('{"phrases": ["a", "A"]}', ["a"]),
        (
            '{"sentence_list": [{"orig": "A and b.", "new": ["a", "b"]}, '
            '{"orig": "C.", "new": []}]}',
            ["a", "b"],
        ),
        ("- a\n- b", ["a", "b"]),
        ("1. a\n2) b", ["a", "b"]),
        ("none", []),
        ("- None.", []),
    ],
)
def test_phrases_are_read_as_they_are_meant(text, found):
    """In JSON, as RadFact is published, and as lines."""
    assert phrases(text) == found
    assert phrases(text, contract=get_contract("phrases_text")) == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no answer"),
        ("The report states an effusion.", "neither a JSON object nor a list"),
        ("- a\nand more", "neither a JSON object nor a list"),
        ("- a\n- none", '"none" is listed as a phrase'),
        ("[]", "neither a JSON object nor a list"),
        ("{}", "phrases is missing"),
        ('{"phrases": "a"}', "phrases is not a list"),
        ('{"phrases": [""]}', "a phrase has no words"),
        ('{"phrases": ["a", "\u200b"]}', "a phrase has no words"),
        ("- a\n- ...", "a phrase has no words"),
        ('{"phrases": ["none"]}', '"none" is listed as a phrase'),
        ('{"phrases": ["None."]} ', '"none" is listed as a phrase'),
        ('{"sentence_list": [{"new": ["none"]}]}', '"none" is listed as a phrase'),
        ('{"phrases": [1]}', "a phrase has no words"),
        ('{"phrases": ["a"], "phrases": []}', "given twice"),
        ('{"phrases": ["a"], "sentence_list": []}', "given twice"),
        ('{"phrases": ["a"], "more": []}', "a key that was not asked for"),
        ('{"phrases": ["a"]', "not readable as JSON"),
        ('{"phrases": ["a"]} and a rib fracture', "there are words beside the answer"),
        ('{"sentence_list": ["a"]}', "a sentence is not an object"),
        ('{"sentence_list": [{"orig": "a"}]}', "has no list of phrases"),
        (json.dumps({"phrases": ["a" * 700]}), "longer than a sentence"),
        (
            json.dumps({"phrases": [f"p{n}" for n in range(MAX_PHRASES + 1)]}),
            "more than 60 phrases",
        ),
    ],
)
def test_what_may_be_no_list_of_phrases_is_not_read(text, problem):
    """A report of which phrases are lost would be agreed with."""
    assert problem in phrases(text)


def test_a_phrase_has_its_place_where_its_words_stand():
    """A page marks it; one in other words has none."""
    answer = json.dumps({"phrases": ["left effusion", "no pneumothorax"]})
    field = PHRASES.read(answer, ("phrases",), REPORT).fields["phrases"]
    first, second = field.entries
    ((start, end, name),) = first.spans
    assert REPORT.variables[name][start:end] == "left effusion"
    assert second.spans == ()


def judged(*entailed, evidence=(0,)):
    """Return an answer in JSON; of those entailed with that evidence."""
    said = [
        {"phrase": n, "entailed": one, "evidence": list(evidence) if one else []}
        for n, one in enumerate(entailed)
    ]
    return json.dumps({"phrases": said})


def share(text, field="precision", item=PAIR):
    """Return the share of an answer, or why there is none."""
    reading = ENTAILED.read(text, (field,), item)
    return reading.problem or reading.fields[field].value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (judged(True, False, False), 1 / 3),
        (judged(True, True, True), 1.0),
        (f"```\n{judged(False, False, False)}\n```", 0.0),
        (judged(False, False, True).replace('"phrase": 2', '"phrase": "002"'), 1 / 3),
        ("[0] entailed by [0]\n[1] not entailed\n[2] not entailed.", 1 / 3),
        ("2: not_entailment\n0. entailment: 0, 1\n1 not entailed", 1 / 3),
        (
            '{"phrases": [{"phrase": "Left effusion.", "status": "entailment", '
            '"evidence": ["small left effusion"]}, {"phrase": "enlarged heart", '
            '"evidence": ["normal heart"], "status": "not_entailment"}, '
            '{"phrase": "[2]", "status": "not_entailment", "evidence": []}]}',
            1 / 3,
        ),
    ],
)
def test_the_share_of_entailed_phrases(text, value):
    """By number or in their words, in JSON or as lines."""
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "phrases is missing, or no list"),
        (
            f"{judged(True, True, True)} but not [0]",
            "there are words beside the answer",
        ),
        ('{"phrases": {}}', "phrases is missing, or no list"),
        ('{"phrases": ["x"]}', "entry 1 is not an object"),
        (judged(False, False, False).replace("[]", '"x"'), "evidence is not a list"),
        (judged(False, False, False).replace("2", '"0x"'), "entry 3 judges a phrase"),
        (judged(False, False, False).replace("2", '"0002"'), "entry 3 judges a phr"),
        (judged(False, False, False).replace("2", "null"), "entry 3 judges a phrase"),
        (judged(False, False, False).replace("false", "0"), "1 does not say whether"),
        (
            judged(False, False, False).replace('"entailed": false', '"status": 1'),
            "entry 1 does not say whether it is entailed",
        ),
        (judged(True, False), "leaves out a phrase"),
        (judged(True, True, True, True), "a phrase that is not there"),
        (judged(True, False, False, evidence=()), "entailed without evidence"),
        (judged(True, False, False, evidence=(2,)), "cites a phrase that is not there"),
        (judged(True, False, False, evidence=(-1,)), "cites a phrase that is not"),
        (judged(True, False, False, evidence=("ox",)), "cites a phrase that is not"),
        (judged(True, False, False).replace('"phrase": 2', '"phrase": 1'), "twice"),
        (judged(True, False, False).replace("true", '"maybe"'), "whether it is"),
        (
            judged(True, False, False).replace(
                '"entailed": true', '"entailed": true, "status": "entailment"'
            ),
            "does not say exactly once",
        ),
        (
            judged(True, False, False).replace(
                '"entailed": true', '"entailed": false, "entailed": true'
            ),
            "a key occurs twice",
        ),
        ("[0] entailed\n[1] not entailed\n[2] not entailed", "without evidence"),
        ("[0] entailed by [0]\n[1] not entailed", "leaves out a phrase"),
        (
            judged(True, False, False).replace(
                '"entailed": true', '"status": "entailment (not of the side)"'
            ),
            "does not say whether",
        ),
        ("All are entailed.", "neither a JSON object nor a line"),
        ("[0] entailed by [7]\n[1] not entailed\n[2] not entailed", "cites a phrase"),
        (
            "[0] neither\n[1] not entailed\n[2] not entailed",
            "nor a line for each phrase",
        ),
    ],
)
def test_evidence_must_be_there_and_no_phrase_is_left_out(text, problem):
    """An entailment that cites what does not exist is no entailment."""
    assert problem in share(text)


def test_recall_holds_the_reference_and_an_empty_side_has_no_share():
    """The other way round; of no phrase nothing can be said, whatever the answer."""
    assert share(judged(True, False), "recall") == 0.5
    empty = Item(id="p", variables={**PAIR.variables, "candidate_phrases": ""})
    assert ENTAILED.read("anything", ("precision",), empty) == Reading({})
    assert share(judged(False, False), "recall", empty) == 0.0
    assert "cites a phrase" in share(judged(True, False), "recall", empty)


def test_evidence_is_found_in_the_phrases_of_the_other_report():
    """What decided is shown beside what it decided."""
    answer = judged(True, False, True, evidence=(1, 0))
    field = ENTAILED.read(answer, ("precision",), PAIR).fields["precision"]
    words = [
        [PAIR.variables[span.input][span.start : span.end] for span in one.spans]
        for one in field.entries
    ]
    both = ["normal heart", "small left effusion"]
    assert words == [both, [], both]


def test_fields_that_are_no_direction_are_not_read():
    """A version that asks for both at once would be read as one of them."""
    for fields in (("precision", "recall"), ("precision", "precision"), ("x",), ()):
        assert ENTAILED.read(judged(True, True, True), fields, PAIR) == Reading(
            None, (), "the version does not ask for precision and recall one by one"
        )


def test_a_phrase_in_words_is_the_only_one_of_these_words():
    """But for case, spaces and a full stop; of two that are alike it is neither."""
    said = '{"phrases": [{"phrase": "Enlarged  HEART.", "entailed": false}]}'
    alone = {**PAIR.variables, "candidate_phrases": "[0] enlarged heart"}
    item = Item(id="p", variables=alone)
    assert ENTAILED.read(said, ("precision",), item) == Reading(
        {"precision": Field(0.0, (), (Entry("enlarged heart", "not_entailed"),))}
    )
    alike = Item(
        id="p",
        variables={
            **alone,
            "candidate_phrases": "[0] enlarged heart\n[1] Enlarged heart.",
        },
    )
    twice = "entry 1 judges a phrase that occurs more than once"
    assert share(said, item=alike) == twice


def make_phrases(draw):
    """Return an answer with phrases in JSON, and what it says."""
    said = [f"finding {chr(97 + n)}" for n in range(draw.randint(0, 6))]
    return json.dumps({"phrases": said}), said


def make_judged(draw):
    """Return an answer on three phrases, in JSON or as lines, and the share."""
    said = [draw.random() < 0.5 for _ in range(3)]
    if draw.random() < 0.5:
        return judged(*said, evidence=(draw.randint(0, 1),)), sum(said) / 3
    lines = [
        f"[{n}] entailed by [{draw.randint(0, 1)}]" if one else f"[{n}] not entailed"
        for n, one in enumerate(said)
    ]
    return "\n".join(lines), sum(said) / 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "read", "least"), [(make_phrases, phrases, 0.1), (make_judged, share, 0.1)]
)
def test_a_damaged_answer_about_phrases_says_what_it_said_or_nothing(make, read, least):
    """Whatever a stray mark or a cut does to it."""
    draw = random.Random(20261126)
    ends = Counter()
    for _ in range(ANSWERS):
        whole, truth = make(draw)
        assert read(whole) == (pytest.approx(truth) if make is make_judged else truth)
        text = damaged(whole, draw)
        found = read(text)
        ends[isinstance(found, str)] += 1
        if isinstance(found, list):
            # A stray mark may stand in the words of a phrase; none is lost or made.
            assert len(found) == len(truth), text
        elif not isinstance(found, str):
            assert found == pytest.approx(truth), text
    assert min(ends.values()) >= ANSWERS * least


@pytest.mark.slow
@pytest.mark.parametrize("name", ["phrases", "entailment"])
def test_nothing_that_is_written_about_phrases_raises(name):
    """A model may write anything; each end is fields or a problem."""
    contract = get_contract(name)
    field, item = ("phrases", REPORT) if name == "phrases" else ("precision", PAIR)
    draw = random.Random(7)
    for _ in range(ANSWERS):
        text = scrawled(draw.choice((make_phrases, make_judged))(draw)[0], draw)
        reading = contract.read(text, (field,), item)
        assert (reading.fields is None) is bool(reading.problem)


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 400_000, "- " * 200_000, "\n" * 400_000, "- a\n" * 100_000),
        *("[0] entailed by " + "[0], " * 80_000, "[0] not entailed\n" * 20_000),
        *("[0] entailed by " + "1" * 100_000, "0 entailed by " + "1" * 60 + "x"),
        *(
            "[0] entailed by" + " " * 100_000 + "x",
            "[0] entailed, " + " " * 90_000 + "x",
        ),
        *("0 entailed" + " and" * 100_000, '{"phrases": [' + "{}," * 100_000),
    ],
    ids=lambda text: text[:12].strip(),
)
def test_a_long_answer_about_phrases_is_read_in_time_that_grows_with_it(text):
    """A model that repeats itself must not hold up a run."""
    assert isinstance(phrases(text), str | list)
    assert isinstance(share(text), str | float)


def test_what_is_numbered_is_split_again():
    """Also where a phrase looks like a number itself."""
    said = ("left effusion", "[3] no edema", "")
    assert split_phrases(number_phrases(said)) == said
    assert split_phrases("") == ()


def test_a_list_of_phrases_at_its_limits_is_read():
    """Sixty phrases, and one of two sentences' length; no more."""
    most = [f"phrase {number}" for number in range(MAX_PHRASES)]
    assert phrases(json.dumps({"phrases": most})) == most
    assert phrases(json.dumps({"phrases": ["a" * 600]})) == ["a" * 600]
    assert "longer than a sentence" in phrases(json.dumps({"phrases": ["a" * 601]}))
    twice = [*most, "Phrase 0"]
    assert "more than 60 phrases" in phrases(json.dumps({"phrases": twice}))
