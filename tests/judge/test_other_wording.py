"""The embedded judge on wording that none of its files has: what it cannot see.

The pairs are made up. What differs in them is said in words that stand neither in the
judge's files nor in the extractor's; changed order apart, which has no words.
"""

import csv
import re
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest

from loop.core.paths import bundled
from loop.judge import Judge
from loop.judge.discrimination import measure_discrimination, read_marked_pairs
from loop.judge.marked_judges import judge_marked_pairs

TABLE = Path(__file__).with_name("other_wording.csv")
# Without what errors are injected with: no judge reads that.
FILES = (
    *(bundled() / "labels").glob("[!i]*.yaml"),
    *(bundled() / "labels" / "cues").glob("*.yaml"),
    *(bundled() / "prompts" / "extractor").glob("v*/guides.yaml"),
)
_WORD = re.compile(r"[\w']+")


def words(text):
    """Return the words of a text, in lower case."""
    return _WORD.findall(text.lower())


def rows():
    """Return the rows of the table."""
    with TABLE.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def changed(row):
    """Yield each run of words that one text has and the other has not."""
    before, after = words(row["reference"]), words(row["candidate"])
    for tag, *places in SequenceMatcher(None, before, after, False).get_opcodes():
        if tag != "equal":
            yield before[places[0] : places[1]]
            yield after[places[2] : places[3]]


def test_twelve_pairs_of_each_error_and_sixty_that_say_the_same():
    """One change each, of another report each."""
    table = rows()
    kinds = Counter(row["kind"] for row in table if row["significant"] == "yes")
    assert set(kinds.values()) == {12} and len(kinds) == 6
    assert sum(row["significant"] == "no" for row in table) == 60
    assert len({row["id"] for row in table}) == len(table)
    assert len({(row["reference"], row["candidate"]) for row in table}) == len(table)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_what_differs_is_said_in_no_file_of_the_judge(row):
    """Of what one text has and the other has not, at least one run of words."""
    if row["kind"] == "order":
        assert Counter(words(row["reference"])) == Counter(words(row["candidate"]))
        return
    runs = [" ".join(run) for run in changed(row) if run]
    text = " ".join(" ".join(words(path.read_text("utf-8"))) for path in FILES)
    assert any(f" {run} " not in f" {text} " for run in runs), runs


def test_the_numbers_of_the_manual():
    """At chance where it has no words, and quiet: errors are missed, not invented."""
    pairs = read_marked_pairs(TABLE)
    with Judge.open(None, "green") as judge:
        green, own = judge_marked_pairs(pairs, judge).scores
    said = [measure_discrimination(pairs, one, resamples=200) for one in (green, own)]
    page = (Path(__file__).parents[2] / "docs/explanation/rules.md").read_text("utf-8")
    for one in said:
        assert f"{one.auc.value:.3f}" in page
    flags = green.flags
    assert np.nansum(flags[pairs.significant]) == 2
    assert np.nansum(flags[~pairs.significant]) == 3
