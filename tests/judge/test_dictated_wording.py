"""The embedded judge on dictated wording that none of its files has.

The pairs are made up: short reports, each with one error or one harmless rewording.
They were written, held against the rule of words below, and only then measured.

The rule: a term is any text of the files, read as the engine reads it (case, hyphens
and slashes do not count, its last word may be a plural, ``*`` ends an open word,
``...`` stands for up to five words, a word in angle brackets for any of its slot). Of
the words that differ, what the error is said in must have a word of content that no
term in it covers, and none of the terms by which the judge knows errors of its kind: a
finding for false findings and omissions, a side or place for locations, a degree or
character for severities, a change for comparisons. Of a harmless rewording the first
half of that holds, and for the candidate only: what it reworded may be known. Changed
order has no words of its own.
"""

import csv
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml

from loop.core.paths import bundled
from loop.judge import Judge
from loop.judge.discrimination import measure_discrimination, read_marked_pairs
from loop.judge.marked_judges import judge_marked_pairs

TABLE = Path(__file__).with_name("dictated_wording.csv")
LABELS = bundled() / "labels"
FILES = (
    LABELS / "judging.yaml",
    LABELS / "injection.yaml",
    LABELS / "errors.yaml",
    *sorted((LABELS / "cues").glob("*.yaml")),
    *sorted((bundled() / "prompts" / "extractor").glob("v*/guides.yaml")),
)
KINDS = (
    "false_finding",
    "omission",
    "location",
    "severity",
    "comparison",
    "omitted_change",
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
# One may stand in any sentence, and says nothing of a finding.
FUNCTION = frozenset(
    _WORD.findall(
        "a an the of in on at to by for from with and or is are was were be been has "
        "have had it its that this there which as than so no not none nor either both "
        "one"
    )
)


def words(text):
    """Return the words of a text in lower case; a hyphen or slash parts them."""
    return _WORD.findall(text.lower())


def rows():
    """Return the rows of the table."""
    with TABLE.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def leaves(node):
    """Yield every text of a file, keys apart."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        for one in node:
            yield from leaves(one)
    elif isinstance(node, str):
        yield node


def parsed(path):
    """Return a YAML file."""
    return yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)


@cache
def slots():
    """Return what a word in angle brackets stands for."""
    found = {}
    for path in (LABELS / "cues").glob("*.yaml"):
        for name, fillers in (parsed(path).get("slots") or {}).items():
            found.setdefault(name, []).extend(leaves(fillers))
    return found


def pattern(term):
    """Return a term as an expression over words that one blank parts."""
    parts = []
    for piece in re.findall(r"<\w+>|\.\.\.|[^\W_]+(?:'[^\W_]+)*\*?", term.lower()):
        if piece == "...":
            parts.append(r"(?:[^ ]+ ){0,5}")
        elif piece.startswith("<"):
            fillers = slots().get(piece[1:-1], [])
            parts.append(f"(?:{'|'.join(pattern(one) for one in fillers)})")
        elif piece.endswith("*"):
            parts.append(re.escape(piece[:-1]) + "[^ ]* ")
        else:
            parts.append(re.escape(piece) + " ")
    if parts and re.fullmatch(r"[^(\[]+ ", parts[-1]):
        stem = parts[-1][:-1]
        plural = stem[:-1] + "ies" if stem.endswith("y") else stem + "s"
        parts[-1] = f"(?:{stem}|{stem}es|{plural}) "
    return "".join(parts)


@cache
def vocabulary():
    """Return all terms as expressions, each with how its first word begins."""
    found = {}
    for text in {text for path in FILES for text in leaves(parsed(path))}:
        if words(text):
            first = words(re.sub(r"<\w+>", " ", text))[:1]
            found[pattern(text)] = (
                first[0][: min(3, len(first[0]) - 1)] if first else ""
            )
    return found


@cache
def known(kind):
    """Return the terms by which the judge knows an error of a kind."""
    judging = parsed(LABELS / "judging.yaml")
    if kind == "location":
        texts = [*leaves(judging["sides"]), *leaves(judging["places"])]
    elif kind == "severity":
        texts = [*leaves(judging["degrees"]), *leaves(judging["characters"])]
    elif kind in {"comparison", "omitted_change"}:
        texts = [
            word
            for name, group in judging["changes"].items()
            if name != "comparing"
            for word in leaves(group)
        ]
    else:
        texts = [text for one in judging["findings"] for text in one["terms"]]
        newest = max(
            (bundled() / "prompts" / "extractor").glob("v*/guides.yaml"),
            key=lambda path: int(path.parent.name[1:]),
        )
        for guide in parsed(newest).values():
            texts += guide.get("terms", [])
            texts += guide.get("lexicon", {}).get("en", {}).get("terms", [])
    found = [pattern(text) for text in texts]
    return [re.compile(f"(?<= ){one}") for one in found if one]


def changed(row):
    """Return the words that each text has between what both begin and end with."""
    before, after = words(row["reference"]), words(row["candidate"])
    shortest = min(len(before), len(after))
    start = 0
    while start < shortest and before[start] == after[start]:
        start += 1
    end = 0
    while end < shortest - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end], after[start : len(after) - end]


def uncovered(run):
    """Return the words of content that no term in a run of words covers."""
    text = " " + " ".join(run) + " "
    covered = set()
    for term, begin in vocabulary().items():
        if f" {begin}" in text:
            for found in re.finditer(f"(?<= )(?=({term}))", text):
                covered.update(range(*found.span(1)))
    places = ((found.start(), found[0]) for found in re.finditer(r"[^ ]+", text))
    return [
        word for place, word in places if place not in covered and word not in FUNCTION
    ]


def runs(row):
    """Return the runs of words that the rule is for."""
    before, after = changed(row)
    said = [after] if row["significant"] == "no" else [before, after]
    return [run for run in said if any(word not in FUNCTION for word in run)]


def test_twelve_pairs_of_each_error_and_sixty_that_say_the_same():
    """Each with an id and one change, and all variants of a report under its id."""
    table = rows()
    kinds = Counter(row["kind"] for row in table if row["significant"] == "yes")
    assert set(kinds) == set(KINDS) and min(kinds.values()) >= 12
    assert sum(row["significant"] == "no" for row in table) >= 60
    assert len({row["id"] for row in table}) == len(table)
    assert {row["number"] for row in table} == {"1"}
    assert len({(row["reference"], row["candidate"]) for row in table}) == len(table)
    reports = {(row["reference_id"], row["reference"]) for row in table}
    assert len(reports) == len({one for one, _ in reports})
    assert len(reports) == len({text for _, text in reports})


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_one_sentence_differs(row):
    """One error, or one rewording; changed order moves whole sentences."""
    before, after = (
        Counter(re.split(r"(?<=\.) (?=[A-Z])", row[side]))
        for side in ("reference", "candidate")
    )
    assert 2 <= before.total() <= 4
    if row["kind"] == "order":
        assert before == after and row["reference"] != row["candidate"]
    else:
        assert (before - after).total() <= 1 and (after - before).total() <= 1


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_what_differs_is_said_in_no_file_of_the_judge(row):
    """By the rule above."""
    if row["kind"] == "order":
        return
    assert runs(row)
    for run in runs(row):
        assert uncovered(run), run
        if row["significant"] == "yes":
            text = " " + " ".join(run) + " "
            found = [one.pattern for one in known(row["kind"]) if one.search(text)]
            assert not found, (run, found)


def test_the_rule_refuses_what_the_files_say():
    """Words that each kind of error is usually made of."""
    assert not uncovered(words("a large left pleural effusion"))
    assert not uncovered(words("unchanged since the prior radiograph"))
    assert uncovered(words("knitting as one would hope"))
    for kind, said in [
        ("false_finding", "bilateral pleural effusions"),
        ("omission", "collapse of the whole left upper lobe"),
        ("location", "right"),
        ("severity", "moderate-sized"),
        ("comparison", "has improved"),
    ]:
        text = " " + " ".join(words(said)) + " "
        assert any(one.search(text) for one in known(kind)), kind


def measured():
    """Return what the table says of GREEN and of the own score of the judge."""
    pairs = read_marked_pairs(TABLE)
    with Judge.open(None, "green") as judge:
        scores = judge_marked_pairs(pairs, judge).scores
    return [measure_discrimination(pairs, one) for one in scores]


def test_the_judge_is_no_worse_than_was_measured():
    """A little under what it reached when the pairs were written: not its goals."""
    green, own = measured()
    assert green.undefined == own.undefined == 0
    assert green.auc.value >= 0.42 and own.auc.value >= 0.31
    floors = (0.48, 0.58, 0.15, 0.20, 0.20, 0.20)
    areas = {one.kind: one.auc.value for one in own.kinds if one.significant}
    for kind, floor in zip(KINDS, floors, strict=True):
        assert areas[kind] >= floor, kind
    assert green.discrimination.hits >= 2
    assert green.robustness.hits >= 48


def test_the_manual_has_its_numbers():
    """Each area under the curve with its interval, and R, as `dr` prints them."""
    page = (Path(__file__).parents[2] / "docs/explanation/rules.md").read_text("utf-8")
    lines = [line for line in page.splitlines() if line.startswith("|")]
    green, own = measured()
    both = zip(green.kinds[: len(KINDS)], own.kinds[: len(KINDS)], strict=True)
    for areas in [(green.auc, own.auc), *((one.auc, two.auc) for one, two in both)]:
        said = [f"{a.value:.3f} [{a.low:.3f}, {a.high:.3f}]" for a in areas]
        assert any(f"| {said[0]} | {said[1]} |" in line for line in lines), said
    right = green.robustness
    low, high = right.limits
    assert f"{right.value:.3f} [{low:.3f}, {high:.3f}]" in page
