"""Thousands of damaged answers of judges: none crashes a reader, none is guessed at."""

import json
import random
from collections import Counter

import pytest

from loop.core.records import Reading
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.green_sections import ParserMode, read_sections
from tests.prompts.outputs.judging import CATEGORIES, PAIR, answer, counts_of, lines

ANSWERS = 10_000
MARKS = '.:;()[]*#- \n"{},'
"""What is put in; digits are neither put in nor taken out: they are what is said."""

JUNK = (
    *("<think>", "</think>", "```", "```json\n", "\n\n", "\ud800", "\x00", "（", "。"),
    *("[Matched Findings]: 9.", "\n[Matched Findings]: 9.\n", '"matched_findings": 9'),
    *("[Explanation]:", "None", "no errors", "score this 1.0", "\u202e", "٣", "²", "{"),
    *(
        "[Clinically Significant Errors]: None\n",
        "(a) Type: 0.",
        "一",
        "}",
        "[",
        "null",
    ),
)


def sections(draw):
    """Return an answer in sections, and what it says."""
    counts = [draw.choice((0, 0, 1, 2, 3)) for _ in CATEGORIES]
    fewer = [draw.choice((0, 0, 0, 1)) for _ in CATEGORIES]
    matched = draw.randint(1, 9)
    findings = "; ".join(f"finding {chr(97 + n)}" for n in range(matched))
    text = answer(
        written(counts), f"{matched}. {findings}", written(fewer), "They differ."
    )
    return text, (matched, sum(counts), sum(fewer))


def written(counts):
    """Return the lines of a section, or that there are no errors."""
    text = lines(counts)
    for number in range(3):
        text = text.replace(f"error {number}", f"error {chr(120 + number)}")
    return text or "No errors."


def listed(draw):
    """Return an answer of `error_list`, and what it says."""
    errors = [
        {
            "category": draw.choice(CATEGORIES),
            "significant": draw.random() < 0.7,
            "reference": f"effusion {chr(97 + number)}",
            "candidate": "",
            "why": "It is missed.",
        }
        for number in range(draw.randint(0, 5))
    ]
    matched = draw.randint(0, 9)
    serious = sum(one["significant"] for one in errors)
    data = {"errors": errors, "matched_findings": matched}
    return json.dumps(data), (matched, serious, len(errors) - serious)


def objects(draw):
    """Return an answer of `green_sections` in JSON, and what it says."""

    def errors():
        return {
            name: [f"error {chr(97 + n)}" for n in range(draw.choice((0, 0, 1, 2)))]
            for name in CATEGORIES
        }

    serious, minor, matched = errors(), errors(), draw.randint(0, 9)
    data = {
        "explanation": "They differ.",
        "significant_errors": serious,
        "insignificant_errors": minor,
        "matched_findings": [f"finding {chr(97 + n)}" for n in range(matched)],
    }
    sums = [sum(map(len, each.values())) for each in (serious, minor)]
    return json.dumps(data), (matched, *sums)


def damaged(text, draw):
    """Return a text with one or two places damaged; its digits stay as they are."""
    for _ in range(draw.choice((1, 1, 2))):
        at = draw.randrange(len(text) + 1)
        kind = draw.randrange(4)
        if kind == 0 and at < len(text) and not text[at].isdigit():
            text = text[:at] + text[at + 1 :]
        elif kind == 1:
            text = text[:at] + draw.choice(MARKS) + text[at:]
        elif kind == 2:
            parts = text.split("\n")
            place = draw.randrange(len(parts))
            text = "\n".join((*parts[: place + 1], *parts[place:]))
        elif kind == 3:
            text = text[:at]
    return text


FORMS = {
    "sections": ("green_sections", sections),
    "objects": ("green_sections", objects),
    "listed": ("error_list", listed),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_a_damaged_answer_says_what_it_said_or_nothing(name):
    """Whatever a stray mark or a cut does to it, no error is lost from the score."""
    contract, make = get_contract(FORMS[name][0]), FORMS[name][1]
    draw = random.Random(20261125)
    ends = Counter()
    for _ in range(ANSWERS):
        whole, truth = make(draw)
        assert counts_of(contract.read(whole, CATEGORIES, PAIR).fields) == truth
        text = damaged(whole, draw)
        fields = contract.read(text, CATEGORIES, PAIR).fields
        ends[fields is not None] += 1
        if fields is None:
            continue
        matched, serious, minor = counts_of(fields)
        assert (matched, serious) == truth[:2], text
        assert minor in (truth[2], None), text
    assert ends[True] >= ANSWERS / 10 and ends[False] >= ANSWERS / 10


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["green_sections", "error_list", "error_list_unweighted"]
)
def test_nothing_that_is_written_raises(name):
    """A model may write anything; each end is fields or a problem."""
    contract = get_contract(name)
    draw = random.Random(7)
    makers = [make for _, make in FORMS.values()]
    for _ in range(ANSWERS):
        text, _ = draw.choice(makers)(draw)
        for _ in range(draw.randint(0, 6)):
            at = draw.randrange(len(text) + 1)
            end = min(at + draw.choice((0, 0, 1, 5, 40)), len(text))
            text = text[:at] + draw.choice(JUNK) + text[end:]
        reading = contract.read(text, CATEGORIES, PAIR)
        assert isinstance(reading, Reading)
        assert (reading.fields is None) is bool(reading.problem)
        official = read_sections(text, CATEGORIES, PAIR, ParserMode.OFFICIAL).reading
        assert len(official.fields) == 2 * len(CATEGORIES) + 1


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 400_000, "(a)" * 130_000, "\n" * 400_000, '"' * 400_000, "#" * 400_000),
        *("(a) " + "x: " * 130_000, "- " * 200_000, "*" * 400_000, "1. " * 130_000),
        "[Clinically Significant Errors]:\n(a) T: 1. x\n" + "more words\n" * 30_000,
        "[Clinically Significant Errors]:\n" * 10_000,
        answer("(a) T: 1. " + "x; " * 100_000, "3. a"),
        answer("No " * 100_000, "none " * 10_000),
        answer("(a) T " + "(" * 100_000, "1. " + "a " * 100_000),
        "<think>" * 50_000,
        "<think></think>" * 20_000,
        '{"errors": [' + "{}," * 100_000,
    ],
    ids=lambda text: text[:12].strip(),
)
def test_an_answer_of_any_kind_is_read_in_time_that_grows_with_it(text):
    """A model that repeats itself must not hold up a run: else this takes hours."""
    for name in ("green_sections", "error_list"):
        reading = get_contract(name).read(text, CATEGORIES, PAIR)
        assert reading.fields is None or counts_of(reading.fields)[1]
    read_sections(text, CATEGORIES, PAIR, ParserMode.OFFICIAL)
