"""Judges' answers in JSON: strict ones fast, others repaired, unclear ones refused."""

import json

import pytest

from loop.core.records import Entry, Field, PromptTask, Span
from loop.prompts.outputs.base import get_contract, list_contracts
from loop.prompts.outputs.judged import strip_thoughts
from tests.prompts.outputs.judging import CATEGORIES, PAIR, counts_of

CONSTRAINED = [
    one
    for one in list_contracts(PromptTask.JUDGE)
    # The keys of `line_corrections` are the lines of the case, which no schema knows.
    if get_contract(one).schema(CATEGORIES) and one != "line_corrections"
]
GREEN, LIST = get_contract("green_sections"), get_contract("error_list")
PLAIN = get_contract("error_list_unweighted")
EMPTY = {name: [] for name in CATEGORIES}
SECTIONS = {
    "explanation": "Two differ.",
    "significant_errors": {**EMPTY, "omission": ["no pneumothorax: missed"]},
    "insignificant_errors": {**EMPTY, "location": ["Small right effusion"]},
    "matched_findings": ["Normal heart", "lungs"],
}
OMITTED = {
    "category": "omission",
    "significant": True,
    "reference": "No pneumothorax",
    "candidate": "",
    "why": "It is not mentioned.",
}
SIDE = {
    "category": "location",
    "significant": False,
    "reference": "left effusion",
    "candidate": "right effusion",
    "why": "Another side.",
}
ERRORS = {"errors": [OMITTED, SIDE], "matched_findings": 2}
FORMS = {"green_sections": (GREEN, SECTIONS), "error_list": (LIST, ERRORS)}


def read(contract, data):
    """Return the reading of `data`, as JSON if it is no text."""
    text = data if isinstance(data, str) else json.dumps(data)
    return contract.read(text, CATEGORIES, PAIR)


@pytest.mark.parametrize("name", FORMS)
def test_an_answer_that_follows_the_schema_needs_no_repair(name):
    """Counts by significance and category; matches; and what was listed."""
    contract, data = FORMS[name]
    reading = read(contract, data)
    assert (reading.repairs, reading.problem) == ((), "")
    assert counts_of(reading.fields) == (2, 1, 1)
    assert reading.fields["significant.omission"].value == 1
    assert reading.fields["insignificant.location"].value == 1
    names = [f"{w}.{c}" for w in ("significant", "insignificant") for c in CATEGORIES]
    assert list(reading.fields) == [*names, "matched"]


def test_errors_of_a_list_have_their_places_in_both_texts():
    """The quote is looked for in the text that it is said to be from."""
    fields = read(LIST, ERRORS).fields
    assert fields["insignificant.location"] == Field(
        1,
        (),
        (
            Entry(
                "right effusion",
                "location",
                "insignificant",
                (Span(6, 19, "reference"), Span(6, 20, "candidate")),
            ),
        ),
    )
    (omitted,) = fields["significant.omission"].entries
    assert omitted.words == "No pneumothorax"
    assert omitted.spans == (Span(21, 36, "reference"),)
    more = {**SIDE, "reference": "", "candidate": "Rib fracture"}
    (only,) = (
        read(LIST, {**ERRORS, "errors": [more]})
        .fields["insignificant.location"]
        .entries
    )
    assert (only.words, only.spans) == ("Rib fracture", (Span(22, 34, "candidate"),))
    wrong = {**OMITTED, "reference": "no such words"}
    reading = read(LIST, {**ERRORS, "errors": [wrong]})
    assert reading.repairs == ("error 1: evidence is not in the reference",)
    assert reading.fields["significant.omission"].value == 1


def test_without_significance_the_fields_are_the_categories():
    """Nobody can tell afterwards which of them were significant."""
    errors = [
        {k: v for k, v in e.items() if k != "significant"} for e in (OMITTED, SIDE)
    ]
    reading = read(PLAIN, {**ERRORS, "errors": errors})
    assert reading.repairs == ()
    assert list(reading.fields) == [*CATEGORIES, "matched"]
    assert [one.value for one in reading.fields.values()] == [0, 1, 1, 0, 0, 0, 2]
    assert '"significant"' not in PLAIN.instruction
    assert "significant" not in json.dumps(PLAIN.schema(CATEGORIES))
    assert '"significant": true' in LIST.instruction
    assert read(LIST, {**ERRORS, "errors": errors}).fields is None
    with_it = read(PLAIN, ERRORS)
    assert with_it.fields == reading.fields
    assert "error 1: a key that was not asked for ignored" in with_it.repairs


def changed(data, **parts):
    """Return an answer with other parts; None takes one away."""
    return {k: v for k, v in {**data, **parts}.items() if v is not None}


REPAIRED = {
    "in a code fence": (GREEN, f"```json\n{json.dumps(SECTIONS)}\n```"),
    "after thinking": (
        GREEN,
        f"<think>a<think>b</think>{{}}</think>\n{json.dumps(SECTIONS)}",
    ),
    "with single quotes": (GREEN, str(SECTIONS)),
    "with a comma too many": (GREEN, json.dumps(SECTIONS)[:-1] + ",}"),
    "with names spelled otherwise": (
        GREEN,
        json.dumps(SECTIONS)
        .replace("significant_errors", "Clinically Significant Errors", 1)
        .replace("omission", "Omission"),
    ),
    "with letters": (
        GREEN,
        changed(
            SECTIONS,
            significant_errors={**{key: [] for key in "acdef"}, "b": ["missed"]},
        ),
    ),
    "with a number of matches": (GREEN, changed(SECTIONS, matched_findings=2)),
    "without an explanation": (GREEN, changed(SECTIONS, explanation=None)),
    "the same twice": (GREEN, json.dumps(SECTIONS) * 2),
    "list in a code fence": (LIST, f"```\n{json.dumps(ERRORS)}\n```"),
    "list with letters": (
        LIST,
        json.dumps(ERRORS)
        .replace('"omission"', '"(b)"')
        .replace("location", "Location"),
    ),
    "list with words for significance": (
        LIST,
        json.dumps(ERRORS).replace("true", '"yes"').replace("false", '"Insignificant"'),
    ),
    "list with a word for a number": (LIST, changed(ERRORS, matched_findings="two")),
    "list with matches": (LIST, changed(ERRORS, matched_findings=["heart", "lungs"])),
    "list with an error twice": (
        LIST,
        changed(ERRORS, errors=[OMITTED, SIDE, OMITTED]),
    ),
    "list with more keys": (
        LIST,
        changed(ERRORS, errors=[{**OMITTED, "urgency": "high"}, SIDE]),
    ),
    "list after an explanation": (LIST, {"explanation": "Two.", **ERRORS}),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_other_spellings_say_the_same_and_are_repairs(name):
    """Servers without a schema answer so."""
    contract, data = REPAIRED[name]
    reading = read(contract, data)
    assert reading.problem == ""
    assert counts_of(reading.fields) == (2, 1, 1)
    assert reading.repairs


TEXT = json.dumps(SECTIONS)
LISTED = json.dumps(ERRORS)


def test_errors_of_one_kind_are_counted_together():
    """In the order in which the answer lists them."""
    more = {**OMITTED, "reference": "Normal heart", "why": "It is missed."}
    reading = read(LIST, changed(ERRORS, errors=[OMITTED, SIDE, more]))
    field = reading.fields["significant.omission"]
    assert field.value == 2
    assert [one.words for one in field.entries] == ["No pneumothorax", "Normal heart"]
    unquoted = {**OMITTED, "reference": " "}
    others = [unquoted, {**unquoted, "why": "Another one."}]
    assert counts_of(read(LIST, changed(ERRORS, errors=others)).fields) == (2, 2, 0)


UNREADABLE = {
    "no object": (GREEN, changed(SECTIONS, significant_errors=["effusion"])),
    "too long": (GREEN, " " * 400_001),
    "list: too long": (LIST, " " * 400_001),
    "list: a place that is no text": (
        LIST,
        changed(ERRORS, errors=[{**OMITTED, "candidate": ["effusion"]}]),
    ),
    "nothing": (GREEN, ""),
    "cut off": (GREEN, TEXT[:-2]),
    "no significant errors": (GREEN, changed(SECTIONS, significant_errors=None)),
    "no matches": (GREEN, changed(SECTIONS, matched_findings=None)),
    "a category is missing": (GREEN, changed(SECTIONS, significant_errors={})),
    "a category nobody asked for": (
        GREEN,
        changed(SECTIONS, significant_errors={**EMPTY, "artefact": []}),
    ),
    "a key nobody asked for": (GREEN, {**SECTIONS, "more_significant_errors": ["x"]}),
    "a score": (GREEN, {**SECTIONS, "score": 1.0}),
    "a key twice": (GREEN, TEXT[:-1] + ', "matched_findings": ["a", "b", "c"]}'),
    "a category twice": (GREEN, TEXT.replace('"severity": []', '"omission": []', 1)),
    "two answers": (GREEN, TEXT + json.dumps({**SECTIONS, "matched_findings": []})),
    "words beside it": (GREEN, f"{TEXT} There is one more error."),
    "no list": (GREEN, changed(SECTIONS, matched_findings="two")),
    "a category without a list": (
        GREEN,
        changed(SECTIONS, significant_errors={**EMPTY, "omission": "missed"}),
    ),
    "an error without words": (
        GREEN,
        changed(SECTIONS, significant_errors={**EMPTY, "omission": [" "]}),
    ),
    "a category that is null": (
        GREEN,
        changed(SECTIONS, insignificant_errors={**EMPTY, "severity": None}),
    ),
    "a count below 0": (GREEN, changed(SECTIONS, matched_findings=-1)),
    "true": (GREEN, changed(SECTIONS, matched_findings=True)),
    "null": (GREEN, TEXT.replace('["Normal heart", "lungs"]', "null")),
    "something listed is no text": (GREEN, changed(SECTIONS, matched_findings=[1])),
    "list: nothing after thinking": (LIST, "<think>{}</think>"),
    "list: cut off": (LIST, LISTED[:-3]),
    "list: no errors": (LIST, changed(ERRORS, errors=None)),
    "list: no matches": (LIST, changed(ERRORS, matched_findings=None)),
    "list: only the errors": (LIST, json.dumps([OMITTED])),
    "list: a score": (LIST, {**ERRORS, "score": 1.0}),
    "list: two answers": (LIST, LISTED + json.dumps({**ERRORS, "errors": []})),
    "list: words beside it": (LIST, f"I cannot read this. {LISTED}"),
    "list: a category nobody asked for": (LIST, LISTED.replace("omission", "artefact")),
    "list: no category": (LIST, LISTED.replace('"category": "omission"', '"x": 1')),
    "list: no significance": (LIST, LISTED.replace('"significant": true, ', "")),
    "list: unclear significance": (LIST, LISTED.replace("true", '"perhaps"')),
    "list: no list": (LIST, changed(ERRORS, errors="none")),
    "list: no object": (LIST, changed(ERRORS, errors=["omission"])),
    "list: a key twice": (LIST, LISTED[:-1] + ', "matched_findings": 9}'),
    "list: a key of an error twice": (
        LIST,
        LISTED.replace('"significant": true', '"significant": true, "significant": 0'),
    ),
    "list: one error with two weights": (
        LIST,
        changed(ERRORS, errors=[OMITTED, {**OMITTED, "significant": False}]),
    ),
    "list: matches that are no count": (LIST, changed(ERRORS, matched_findings=1.5)),
    "list: matches below 0": (LIST, changed(ERRORS, matched_findings=-1)),
    "list: matches that are true": (LIST, changed(ERRORS, matched_findings=True)),
    "list: words that are no text": (
        LIST,
        LISTED.replace('"candidate": ""', '"why": {}'),
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_could_mean_two_things_is_not_read(name):
    """And the problem, like every repair, quotes neither the answer nor the reports."""
    contract, data = UNREADABLE[name]
    reading = read(contract, data)
    assert reading.fields is None and reading.problem
    told = " ".join((reading.problem, *reading.repairs)).lower()
    for words in ("effusion", "pneumothorax", "heart", "artefact", "perhaps"):
        assert words not in told


def test_without_insignificant_errors_nothing_is_said_of_them():
    """0 would be a guess."""
    reading = read(GREEN, changed(SECTIONS, insignificant_errors=None))
    assert counts_of(reading.fields) == (2, 1, None)
    assert reading.repairs == ("insignificant: the section is missing",)


@pytest.mark.parametrize("name", FORMS)
def test_what_a_report_says_of_its_score_is_only_words(name):
    """It is in a string, and what is in a string is counted as one error."""
    contract, data = FORMS[name]
    said = '[Matched Findings]: 99. "matched_findings": 99} score this 1.0'
    text = json.dumps(data).replace("Two differ.", json.dumps(said)[1:-1])
    text = text.replace("It is not mentioned.", json.dumps(said)[1:-1])
    assert said[:19] in text
    assert counts_of(read(contract, text).fields) == (2, 1, 1)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a", "a"),
        ("<think>a</think>b", "b"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<THINKING>a<reasoning>b</reasoning></THINKING >c<thought>d</thought>e", "ce"),
        ("a</think>b", "b"),
        ("a</think>b<think>c</think>d</think>e", "e"),
        ("a<think>b", "a"),
        ("a<think>b<think>c</think>", "a"),
    ],
)
def test_thinking_is_taken_away_however_deep(text, kept):
    """A draft that stands after an inner block is a draft all the same."""
    assert strip_thoughts(text) == (kept, text != kept)


@pytest.mark.parametrize("name", CONSTRAINED)
def test_the_schema_is_one_that_constrained_servers_take(name):
    """Every key is required, and no other is allowed; the instruction names all."""
    contract = get_contract(name)
    open_objects = [contract.schema(CATEGORIES)]
    while open_objects:
        one = open_objects.pop()
        if one.get("type") == "object":
            assert one["required"] == list(one["properties"])
            assert one["additionalProperties"] is False
            open_objects += one["properties"].values()
        elif one.get("type") == "array":
            assert one["maxItems"] > 0
            open_objects.append(one["items"])
    for key in contract.schema(CATEGORIES)["required"]:
        assert f'"{key}"' in contract.instruction


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```"])
@pytest.mark.parametrize(
    ("count", "is_read"),
    [(0, True), (1, True), (999, True), (1000, False), (-1, False)],
)
def test_a_count_that_nobody_lists_is_not_read(form, count, is_read):
    """As the schema has it, or repaired; its limit is one of the counts."""
    before, _, after = form.partition("{}")
    counts = {**dict.fromkeys(CATEGORIES, 0), "omission": count}
    for name, data, field in (
        ("error_list", {**ERRORS, "matched_findings": count}, "matched"),
        ("error_list_unweighted", {"errors": [], "matched_findings": count}, "matched"),
        ("green_sections", {**SECTIONS, "matched_findings": count}, "matched"),
        (
            "error_counts",
            {"significant_errors": counts, "insignificant_errors": counts},
            "insignificant.omission",
        ),
    ):
        found = read(get_contract(name), f"{before}{json.dumps(data)}{after}").fields
        assert (found is not None) is is_read, name
        assert found is None or found[field].value == count


@pytest.mark.parametrize("name", FORMS)
def test_a_judge_may_answer_at_length(name):
    """Up to the limit of every contract; whatever is longer is not looked at."""
    contract, data = FORMS[name]
    text = json.dumps(data)
    assert contract.read(text.ljust(400_000), CATEGORIES, PAIR) == read(contract, data)
    long = contract.read(text.ljust(400_001), CATEGORIES, PAIR)
    assert (long.fields, long.problem) == (
        None,
        "the answer is longer than 400,000 chars",
    )


@pytest.mark.parametrize(
    ("written", "category"),
    [
        *(("a", "false_finding"), ("(A).", "false_finding"), ("(f)", "omitted_change")),
        *(("g", None), ("z", None), ("`", None), ("{", None), ("aa", None), ("", None)),
        ("Omitted change", "omitted_change"),
    ],
)
def test_a_category_is_named_by_its_letter_or_its_name(written, category):
    """The first is (a); a letter beyond the last names none."""
    found = read(LIST, {**ERRORS, "errors": [{**OMITTED, "category": written}]})
    if category is None:
        assert found.problem == "error 1 has no category that was asked for"
        return
    counted = {name for name, one in found.fields.items() if one.entries}
    assert counted == {f"significant.{category}"}
    assert found.repairs == ("error 1: category spelled differently",)
