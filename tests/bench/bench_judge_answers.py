"""How many answers of judges are read in a second, in each form, on one core.

Run: ``python tests/bench/bench_judge_answers.py``. The answers are made up, of the
length that models write: an explanation, some errors, some matched findings. All forms
take turns, and the median over the rounds is printed, so that a machine whose speed
drifts changes no ratio. "regular expressions" are those of the published parser of
GREEN and nothing else: no counts, no fields, no errors found. It is processor time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import median

from loop.core.numbered_phrases import number_phrases
from loop.core.records import Item, Reading
from loop.prompts.outputs import green_official
from loop.prompts.outputs.base import Contract, get_contract

ANSWERS = 200
ROUNDS = 25
CATEGORIES = (
    *("false_finding", "omission", "location", "severity", "comparison"),
    "omitted_change",
)
PAIR = Item(
    id="p1",
    variables={
        "reference": " ".join(f"Small left effusion {n}. Normal." for n in range(20)),
        "candidate": " ".join(f"There is no effusion {n}. Large." for n in range(20)),
    },
)
SEEN = "The candidate differs from the reference in several ways, as listed below. " * 3
ERROR = "the candidate reports a small effusion on the left, number {}"
FINDING = "the heart is of normal size in both, number {}"


def listed(words: str, count: int) -> list[str]:
    """Return `count` texts."""
    return [words.format(number) for number in range(count)]


def counts(number: int) -> list[int]:
    """Return how many errors of each category an answer has."""
    return [(number * step) % 3 for step in (1, 2, 3, 5, 7, 11)]


def in_sections(number: int) -> str:
    """Return an answer as published."""
    lines = [
        f"({letter}) The kind of error that this is: {count}. "
        + "; ".join(listed(ERROR, count))
        for letter, count in zip("abcdef", counts(number), strict=True)
    ]
    none = [f"({letter}) The kind of error that this is: 0." for letter in "abcdef"]
    matched = number % 5 + 1
    return (
        f"[Explanation]:\n{SEEN}\n\n"
        + "[Clinically Significant Errors]:\n{}\n\n".format("\n".join(lines))
        + "[Clinically Insignificant Errors]:\n{}\n\n".format("\n".join(none))
        + f"[Matched Findings]:\n{matched}. {'; '.join(listed(FINDING, matched))}"
    )


def repaired(number: int) -> str:
    """Return the same with other headings and letters, and bullets."""
    text = in_sections(number).replace("]:", ":**").replace("[", "**")
    return text.replace("(a)", "a)").replace("; ", "\n- ")


def in_json(number: int) -> str:
    """Return an answer that follows the schema of `green_sections`."""
    errors = zip(CATEGORIES, counts(number), strict=True)
    return json.dumps(
        {
            "explanation": SEEN,
            "significant_errors": {name: listed(ERROR, n) for name, n in errors},
            "insignificant_errors": {name: [] for name in CATEGORIES},
            "matched_findings": listed(FINDING, number % 5 + 1),
        }
    )


def as_list(number: int) -> str:
    """Return an answer that follows the schema of `error_list`."""
    errors = [
        {
            "category": name,
            "significant": bool(place % 2),
            "reference": f"left effusion {3 * kind + place}.",
            "candidate": f"no effusion {3 * kind + place}.",
            "why": ERROR.format(place),
        }
        for kind, name in enumerate(CATEGORIES)
        for place in range(counts(number)[kind])
    ]
    return json.dumps({"errors": errors, "matched_findings": number % 5 + 1})


def scored(key: str, number: int) -> str:
    """Return the answer in JSON with a score, which for a formula is the right one."""
    matched, errors = number % 5 + 1, sum(counts(number))
    score = round(matched / (matched + 2 * errors), 2)
    return json.dumps({**json.loads(in_json(number)), key: score})


def as_counts(number: int) -> str:
    """Return an answer of `error_counts`."""
    said = dict(zip(CATEGORIES, counts(number), strict=True))
    return json.dumps({"significant_counts": said, "insignificant_counts": said})


def as_lines(number: int) -> str:
    """Return the two published lines of counts."""
    pairs = zip("ABCDEF", counts(number), strict=True)
    said = ", ".join(f"({letter}, {count})" for letter, count in pairs)
    return "\n".join(
        f"Number of clinically {weight} errors by type: [{said}]"
        for weight in ("significant", "insignificant")
    )


def corrected(number: int) -> str:
    """Return an answer of `line_corrections`: a line for each error."""
    one = {
        "corrections": ERROR.format(number),
        "clinical severity": "Urgent error",
        "comments": ERROR.format(number),
        "error category": ["location"],
    }
    return json.dumps({str(line): one for line in range(sum(counts(number)))})


def weighed(number: int) -> str:
    """Return an answer of `error_list_weighted`."""

    def findings(start: int, size: int) -> list[dict[str, object]]:
        return [
            {"finding": f"left effusion {start + n}.", "weight": "urgent"}
            for n in range(size)
        ]

    wrong = [{"type": "location", "severity": "significant"}]
    matched = [
        {**one, "attribute_errors": wrong if place % 2 else []}
        for place, one in enumerate(findings(0, number % 5 + 1))
    ]
    return json.dumps(
        {
            "matched_findings": matched,
            "missed_findings": findings(6, counts(number)[0]),
            "false_findings": findings(10, counts(number)[1]),
        }
    )


PHRASES = [f"left effusion {n}" for n in range(8)]
PAIR = replace(
    PAIR,
    variables={
        **PAIR.variables,
        "text": PAIR.variables["reference"],
        "reference_phrases": number_phrases(PHRASES),
        "candidate_phrases": number_phrases(PHRASES),
    },
)


def entailed(number: int) -> str:
    """Return an answer of `entailment` about eight phrases."""
    said = [
        {
            "phrase": place,
            "entailed": bool((place + number) % 3),
            "evidence": [place] if (place + number) % 3 else [],
        }
        for place in range(len(PHRASES))
    ]
    return json.dumps({"phrases": said})


def entailed_lines(number: int) -> str:
    """Return the same as lines of text."""
    return "\n".join(
        f"[{place}] entailed by [{place}]"
        if (place + number) % 3
        else f"[{place}] not entailed"
        for place in range(len(PHRASES))
    )


SCORE = "\n\n[Overall Accuracy Score]:\n0.85"
OTHERS: dict[str, tuple[str, Callable[[int], str]]] = {
    "scored, JSON": ("green_sections_scored", partial(scored, "overall_score")),
    "scored, text": ("green_text_scored", lambda number: in_sections(number) + SCORE),
    "formula, JSON": ("green_formula", partial(scored, "formula_score")),
    "score, JSON": (
        "overall_score",
        lambda _: json.dumps({"explanation": SEEN, "overall_score": 0.85}),
    ),
    "score, text": ("overall_score_text", lambda _: f"[Explanation]:\n{SEEN}{SCORE}"),
    "counts, JSON": ("error_counts", as_counts),
    "counts, text": ("error_counts_text", as_lines),
    "corrections, JSON": ("line_corrections", corrected),
    "weights, JSON": ("error_list_weighted", weighed),
    "rating, JSON": (
        "rating",
        lambda number: json.dumps({"feedback": SEEN, "rating": number % 5 + 1}),
    ),
    "rating, text": ("rating_text", lambda number: f"{SEEN}[RESULT] {number % 5 + 1}"),
    "preference, text": ("preference_text", lambda _: f"{SEEN}[RESULT] A"),
    "phrases, JSON": ("phrases", lambda _: json.dumps({"phrases": PHRASES})),
    "phrases, text": (
        "phrases_text",
        lambda _: "\n".join(f"- {one}" for one in PHRASES),
    ),
    "entailment, JSON": ("entailment", entailed),
    "entailment, text": ("entailment_text", entailed_lines),
}
"""The other contracts, each with a writer of its answers."""


def read_in(contract: Contract, text: str) -> Reading:
    """Return the reading of an answer, which must be readable and need no repair."""
    fields = ("precision",) if contract.name.startswith("entail") else CATEGORIES
    reading = contract.read(text, fields, PAIR)
    if reading.fields is None or (reading.repairs and contract.schema(fields)):
        raise ValueError(f"{contract.name}: {reading.problem or reading.repairs}")
    return reading


def search_only(text: str) -> None:
    """Apply the regular expressions of the published parser."""
    for section in (green_official._SIGNIFICANT, green_official._INSIGNIFICANT):
        found = section.search(text)
        if found and not found[1].startswith("No"):
            lines = green_official._LETTERS.findall(found[1])
            for line in sorted(lines or green_official._DIGITS.findall(found[1])):
                green_official._COUNT.findall(line)
    found = green_official._MATCHED.search(text)
    if found:
        green_official._MATCHES.findall(found[1])


def timed(read: Callable[[str], object], texts: Sequence[str]) -> float:
    """Return microseconds for one answer."""
    began = time.process_time()
    for text in texts:
        read(text)
    return 1e6 * (time.process_time() - began) / len(texts)


def main() -> None:
    """Print the table."""
    sections, errors = get_contract("green_sections"), get_contract("error_list")

    def read(text: str) -> Reading:
        return sections.read(text, CATEGORIES, PAIR)

    def read_list(text: str) -> Reading:
        return errors.read(text, CATEGORIES, PAIR)

    forms: dict[str, tuple[Callable[[str], object], Callable[[int], str]]] = {
        "regular expressions": (search_only, in_sections),
        "as published": (read, in_sections),
        "repaired": (read, repaired),
        "JSON": (read, in_json),
        "JSON, a list": (read_list, as_list),
    }
    for name, (contract, write) in OTHERS.items():
        forms[name] = (partial(read_in, get_contract(contract)), write)
    texts = {
        name: [write(number) for number in range(ANSWERS)]
        for name, (_, write) in forms.items()
    }
    unread = sum(read(text).fields is None for text in texts["repaired"])
    if unread:
        print(f"repaired: {unread} of {ANSWERS} answers were not read")
    rounds = [
        {name: timed(how, texts[name]) for name, (how, _) in forms.items()}
        for _ in range(ROUNDS)
    ]
    print(f"{'form':22}{'answers/s':>12}{'us':>8}{'ratio':>8}")
    for name in forms:
        once = median(one[name] for one in rounds)
        ratio = median(one[name] / one["regular expressions"] for one in rounds)
        print(f"{name:22}{1e6 / once:12,.0f}{once:8.1f}{ratio:8.2f}")


if __name__ == "__main__":
    main()
