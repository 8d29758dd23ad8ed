"""Thousands of damaged answers of judges: none crashes a reader, none is guessed at."""

import json
import random
from collections import Counter

import pytest

from loop.core.records import Reading
from loop.judge.counts import scores_of
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.green_sections import ParserMode, read_sections
from loop.prompts.outputs.line_corrections import SEVERITIES
from loop.prompts.outputs.weighted_errors import (
    WEIGHTS,
    WeightedFinding,
    crimson_score,
)
from tests.prompts.outputs.judging import CATEGORIES, PAIR, answer, counts_of, lines

ANSWERS = 4_000
KEY = "attribute_errors"
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


def scrawled(text, draw, junk=JUNK):
    """Return a text with up to six pieces of junk in it, some in place of its words."""
    for _ in range(draw.randint(0, 6)):
        at = draw.randrange(len(text) + 1)
        end = min(at + draw.choice((0, 0, 1, 5, 40)), len(text))
        text = text[:at] + draw.choice(junk) + text[end:]
    return text


def read_damaged(form, make, said, *, seed, least):
    """Yield each damaged answer that is read, with what was said and what is read.

    Of all answers a share of `least` has to be read, and the same not to be.
    """
    contract, draw, ends = get_contract(form), random.Random(seed), Counter()
    for _ in range(ANSWERS):
        whole, truth = make(draw)
        assert said(contract.read(whole, CATEGORIES, PAIR).fields) == truth
        text = damaged(whole, draw)
        fields = contract.read(text, CATEGORIES, PAIR).fields
        ends[fields is not None] += 1
        if fields is not None:
            yield text, truth, fields
    assert min(ends[True], ends[False]) >= ANSWERS * least


def scored(draw):
    """Return an answer in five sections, and what it says."""
    text, truth = sections(draw)
    score = f"0.{draw.randint(10, 99)}"
    return f"{text}\n[Overall Accuracy Score]:\n{score}\n", (*truth, float(score))


def scored_objects(draw):
    """Return an answer of `green_sections_scored` in JSON, and what it says."""
    text, truth = objects(draw)
    score = draw.randint(10, 99) / 100
    return text[:-1] + f', "overall_score": {score}}}', (*truth, score)


def alone(draw):
    """Return an answer of `overall_score` in JSON, and its score."""
    score = draw.randint(10, 99) / 100
    return json.dumps({"explanation": "They differ.", "overall_score": score}), score


def alone_text(draw):
    """Return the same in sections."""
    score = f"0.{draw.randint(10, 99)}"
    text = f"[Explanation]:\nThey differ.\n\n[Overall Accuracy Score]:\n{score}\n"
    return text, float(score)


def totals(draw):
    """Return an answer of `error_counts` in JSON, and its counts."""
    data = {
        key: {name: draw.choice((0, 0, 1, 2, 13)) for name in CATEGORIES}
        for key in ("significant_counts", "insignificant_counts")
    }
    return json.dumps(data), tuple(n for each in data.values() for n in each.values())


def total_lines(draw):
    """Return the same in the two published lines."""
    said, lines_ = [], []
    for weight in ("significant", "insignificant"):
        counts = [draw.choice((0, 0, 1, 2, 13)) for _ in CATEGORIES]
        pairs = ", ".join(
            f"({letter}, {n})" for letter, n in zip("ABCDEF", counts, strict=True)
        )
        lines_.append(f"Number of clinically {weight} errors by type: [{pairs}]")
        said += counts
    return "\n".join(lines_), tuple(said)


def corrections(draw):
    """Return an answer of `line_corrections`, and the sum of its severities."""
    pairs, total = [], 0
    for key in ("0", "1", "2", "None", "None"):
        if draw.random() < 0.5:
            severity = draw.choice([*SEVERITIES])
            total += SEVERITIES[severity]
            value = {
                "corrections": "Small left effusion",
                "clinical severity": severity,
                "comments": "The side",
                "error category": ["location"],
            }
            pairs.append(f'"{key}": {json.dumps(value)}')
    return "{" + ", ".join(pairs) + "}", total


def weighed(draw):
    """Return an answer of `error_list_weighted`, and its score."""

    def findings(start, *, matched=False):
        listed = []
        for number in range(draw.randint(0, 3)):
            one = {
                "finding": f"f{chr(start + number)}",
                "weight": draw.choice([*WEIGHTS]),
            }
            if matched:
                severity = draw.choice(["significant", "negligible"])
                error = {"type": "location", "severity": severity}
                one[KEY] = [error] if draw.random() < 0.5 else []
            listed.append(one)
        return listed

    data = {
        "matched_findings": findings(97, matched=True),
        "missed_findings": findings(105),
        "false_findings": findings(113),
    }
    lists = [
        [
            WeightedFinding(
                one["finding"],
                one["weight"],
                tuple((e["type"], e["severity"]) for e in one.get(KEY, ())),
            )
            for one in each
        ]
        for each in data.values()
    ]
    return json.dumps(data), crimson_score(*lists)


def rated(draw):
    """Return an answer of `rating` in JSON, and its points."""
    points = draw.randint(1, 5)
    return json.dumps({"feedback": "They differ.", "rating": points}), points


def rated_text(draw):
    """Return the same as published."""
    points = draw.randint(1, 5)
    return f"They differ in one place.\n[RESULT] {points}", points


def preferred(draw):
    """Return an answer of `preference` in JSON, and its side."""
    side = draw.choice("AB")
    return json.dumps({"feedback": "They differ.", "preference": side}), side


def preferred_text(draw):
    """Return the same as published."""
    side = draw.choice("AB")
    return f"They differ in one place.\n[RESULT] {side}", side


def five(fields):
    """Return counts and the own score."""
    return (*counts_of(fields), fields["score"].value)


def one_of(name):
    """Return what reads the value of a field."""
    return lambda fields: fields[name].value


def all_counts(fields):
    """Return the counts of `error_counts`, significant ones first."""
    weights = ("significant", "insignificant")
    return tuple(fields[f"{w}.{name}"].value for w in weights for name in CATEGORIES)


SCORED = {
    "scored sections": ("green_text_scored", scored, five),
    "scored objects": ("green_sections_scored", scored_objects, five),
    "score": ("overall_score", alone, one_of("score")),
    "score in sections": ("overall_score_text", alone_text, one_of("score")),
    "counts": ("error_counts", totals, all_counts),
    "lines of counts": ("error_counts_text", total_lines, all_counts),
    "corrections": ("line_corrections", corrections, one_of("line_sum")),
    "weights": ("error_list_weighted", weighed, one_of("crimson")),
    "rating": ("rating", rated, one_of("rating")),
    "rating as published": ("rating_text", rated_text, one_of("rating")),
    "preference": ("preference", preferred, one_of("preference")),
    "preference as published": (
        "preference_text",
        preferred_text,
        one_of("preference"),
    ),
}
"""The other contracts: an answer with what it says, and what is read of it."""

FORMS = {
    "sections": ("green_sections", sections),
    "objects": ("green_sections", objects),
    "listed": ("error_list", listed),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_a_damaged_answer_says_what_it_said_or_nothing(name):
    """Whatever a stray mark or a cut does to it, no error is lost from the score."""
    answers = read_damaged(*FORMS[name], counts_of, seed=20261125, least=0.1)
    for text, truth, fields in answers:
        matched, serious, minor = counts_of(fields)
        assert (matched, serious) == truth[:2], text
        assert minor in (truth[2], None), text


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORED)
def test_a_damaged_score_is_the_score_it_was_or_none(name):
    """A cut or a stray mark never makes an answer better, and never another number.

    Only the last digit of a score that ends the text may be cut off.
    """
    form, make, said = SCORED[name]
    answers = read_damaged(form, make, said, seed=20261126, least=0.05)
    for text, truth, fields in answers:
        found = said(fields)
        if found != truth and "text" in form and "score" in fields:
            *counts, score = found if isinstance(found, tuple) else (found,)
            *wanted, right = truth if isinstance(truth, tuple) else (truth,)
            same = zip(counts, wanted, strict=True)
            assert all(one in (two, None) for one, two in same), text
            assert score in (right, int(right * 10) / 10), text
        elif found != truth and isinstance(truth, tuple) and len(truth) == 4:
            assert (*found[:2], found[3]) == (*truth[:2], truth[3]), text
            assert found[2] is None, text
        else:
            assert found == truth, text


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORED)
def test_whatever_is_written_ends_as_a_reading(name):
    """Fields or a problem, never both; each number within its range."""
    form, make, said = SCORED[name]
    contract = get_contract(form)
    draw = random.Random(11)
    for _ in range(ANSWERS):
        text = scrawled(make(draw)[0], draw)
        reading = contract.read(text, CATEGORIES, PAIR)
        assert (reading.fields is None) is bool(reading.problem)
        if reading.fields is not None:
            assert all(one in reading.fields for one in contract.numbers)
            assert said(reading.fields) is not None
            for one in scores_of(contract):
                if one.number:
                    value = reading.fields[one.number].value
                    assert one.low <= value <= (one.high or 10_000), text


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
        text = scrawled(draw.choice(makers)(draw)[0], draw)
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
        answer("(a) T: 1. " + "x; " * 40_000, "3. a"),
        answer("No " * 100_000, "none " * 10_000),
        answer("(a) T " + "(" * 100_000, "1. " + "a " * 100_000),
        "<think>" * 50_000,
        "<think></think>" * 20_000,
        '{"errors": [' + "{}," * 25_000,
        *("[RESULT]" + " " * 100_000 + "x", "[RESULT]: (" + "\n" * 100_000 + "4 x"),
        *("[RESULT] 4" + "\n" * 100_000 + "x", "[RESULT] A" + " " * 100_000 + "x"),
    ],
    ids=lambda text: text[:12].strip(),
)
def test_an_answer_of_any_kind_is_read_in_time_that_grows_with_it(text):
    """A model that repeats itself must not hold up a run: else this takes hours."""
    for name in ("green_sections", "error_list"):
        reading = get_contract(name).read(text, CATEGORIES, PAIR)
        assert reading.fields is None or counts_of(reading.fields)[1]
    for name, _, _ in SCORED.values():
        assert get_contract(name).read(text, CATEGORIES, PAIR).fields is None
    read_sections(text, CATEGORIES, PAIR, ParserMode.OFFICIAL)
