"""Cohorts of different roles are refused when they share a case, patient or text."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop.core.errors import OverlapError
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import Cohort, texts_path
from loop.labels.language import fold_text, shingles, words
from loop.labels.overlap import (
    OverlapKind,
    _compare,
    check_cohorts,
    near_duplicates,
    require_separate,
)

LONG = (
    "the heart is normal in size and the lungs are clear without focal change or fluid "
    "and the bones of the chest are intact with mild wear of the spine seen on the side"
)

Maker = Callable[..., Cohort]


def _kinds(workspace: WorkspacePaths) -> dict[OverlapKind, int]:
    report = check_cohorts(workspace)
    return {s.kind: s.number for pair in report.pairs for s in pair.shared}


def test_separate_cohorts_pass(workspace: WorkspacePaths, make_cohort: Maker) -> None:
    """Different cases, patients and texts."""
    make_cohort([("a1", "Lungs are clear.", "P1")], "one", role="dev")
    make_cohort([("b1", "There is an effusion.", "P2")], "two", role="holdout")
    report = check_cohorts(workspace)
    assert report.separate
    assert report.pairs[0].not_checked == ()
    require_separate(report)


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (("a1", "Something else entirely.", "P9"), OverlapKind.CASE),
        (("b1", "Something else entirely.", "P1"), OverlapKind.PATIENT),
        (("b1", "LUNGS ARE -- clear", "P9"), OverlapKind.TEXT),
    ],
)
def test_sharing_is_refused_and_named(
    workspace: WorkspacePaths,
    make_cohort: Maker,
    row: tuple[str, ...],
    kind: OverlapKind,
) -> None:
    """Ids are named, texts never are."""
    make_cohort([("a1", "Lungs are clear.", "P1")], "one", role="dev")
    make_cohort([row], "two", role="holdout")
    assert _kinds(workspace) == {kind: 1}
    with pytest.raises(
        OverlapError, match=r"one \(dev\) and two \(holdout\)"
    ) as caught:
        require_separate(check_cohorts(workspace))
    assert "a1" in str(caught.value)
    assert "clear" not in str(caught.value).casefold()


def test_a_near_duplicate_text_is_refused(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """A changed last word in 35 leaves 5-word shingles almost the same."""
    make_cohort([("a1", LONG)], "one", role="dev")
    make_cohort([("b1", LONG[:-4] + "film")], "two", role="external")
    assert _kinds(workspace) == {OverlapKind.NEAR_TEXT: 1}


def test_a_merely_similar_text_passes(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Standard phrases recur in all reports: sharing some is no duplicate."""
    make_cohort([("a1", LONG)], "one", role="dev")
    make_cohort(
        [("b1", LONG[:80] + " there is a new large effusion on the left side")],
        "two",
        role="external",
    )
    assert _kinds(workspace) == {}


@pytest.mark.parametrize(
    ("shared", "said"),
    [
        (1, "share 1 text: a0 = b0\n"),
        (2, "share 2 texts: a0 = b0, a1 = b1\n"),
        (5, ", a4 = b4\n"),
        (6, ", a4 = b4 ...\n"),
    ],
)
def test_five_of_what_is_shared_are_named(
    workspace: WorkspacePaths, make_cohort: Maker, shared: int, said: str
) -> None:
    """More would fill a screen; that there are more is said."""
    texts = [f"Report {number}." for number in range(shared)]
    for letter, role in (("a", "dev"), ("b", "holdout")):
        rows = [(f"{letter}{number}", text) for number, text in enumerate(texts)]
        make_cohort(rows, letter, role=role)
    with pytest.raises(OverlapError) as caught:
        require_separate(check_cohorts(workspace))
    assert said in str(caught.value)


def test_patients_under_different_keys_are_not_compared(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """The same pseudonym stands for another person there."""
    first = make_cohort([("a1", "Lungs are clear.", "P1")], "one", role="dev")
    second = make_cohort([("b1", "There is an effusion.", "P1")], "two", role="holdout")
    assert [one.kind for one in _compare(workspace, first, second).shared] == [
        "patient"
    ]
    found = _compare(workspace, first, replace(second, pseudonym_key="other"))
    assert found.shared == ()
    assert found.not_checked == (
        "patients: the cohorts were pseudonymised with different keys",
    )


@pytest.mark.parametrize("larger", ["one", "two"])
def test_shared_texts_are_named_in_the_order_of_the_cohorts(
    workspace: WorkspacePaths, make_cohort: Maker, larger: str
) -> None:
    """The smaller one is held in memory, whichever it is."""
    rows = {"one": [("a1", LONG)], "two": [("b1", LONG)]}
    rows[larger].append(("other", "Something else entirely."))
    make_cohort(rows["one"], "one", role="dev")
    make_cohort(rows["two"], "two", role="holdout")
    (pair,) = check_cohorts(workspace).pairs
    assert [one.examples for one in pair.shared] == [(("a1", "b1"),)]


def test_cohorts_of_one_role_are_not_compared(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Two development cohorts may share what they like."""
    make_cohort([("a1", LONG)], "one")
    make_cohort([("a1", LONG)], "two")
    assert check_cohorts(workspace).pairs == ()


def test_unknown_patients_are_said_to_be_unchecked(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Nobody may read "nothing shared" where nothing could be compared."""
    make_cohort([("a1", "Lungs are clear.")], "one", role="dev")
    make_cohort([("b1", "There is an effusion.")], "two", role="holdout")
    (pair,) = check_cohorts(workspace).pairs
    assert "patients: not named for every case of one and two" in pair.not_checked[0]


def test_equal_texts_are_found_without_having_them(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Digests travel with the cohort, texts do not."""
    make_cohort([("a1", LONG)], "one", role="dev")
    make_cohort([("b1", LONG)], "two", role="holdout")
    texts_path(workspace, "two").unlink()
    assert _kinds(workspace) == {OverlapKind.TEXT: 1}
    (pair,) = check_cohorts(workspace).pairs
    assert any("texts of two are not on this machine" in n for n in pair.not_checked)


_SETS = st.lists(st.frozensets(st.integers(0, 12), max_size=12), max_size=6)


@settings(deadline=None)
@given(first=_SETS, second=_SETS)
def test_the_prefix_filter_finds_what_comparing_all_pairs_finds(
    first: list[frozenset[int]], second: list[frozenset[int]]
) -> None:
    """The index is exact, not a sketch: brute force agrees on every pair."""
    left = {f"a{i}": found for i, found in enumerate(first)}
    right = [(f"b{i}", found) for i, found in enumerate(second)]
    expected = {
        (a, b)
        for a, x in left.items()
        for b, y in right
        if x and y and 5 * len(x & y) >= 4 * len(x | y)
    }
    assert set(near_duplicates(left, right)) == expected


@pytest.mark.slow
def test_a_large_cohort_takes_seconds() -> None:
    """300 against 3,000 reports, with a planted near-duplicate each ten cases."""
    rng = random.Random(0)
    lexicon = [f"w{i}" for i in range(400)]
    texts = [" ".join(rng.choices(lexicon, k=40)) for _ in range(3000)]
    first = {str(i): shingles(texts[i * 10] + " end") for i in range(300)}
    second = ((str(i), shingles(text)) for i, text in enumerate(texts))
    assert len(list(near_duplicates(first, second))) == 300


def test_words_fold_case_width_and_punctuation() -> None:
    """A Chinese character is a word; full-width forms are plain ones."""
    assert words("PICC-line, \uff23\uff34 0.5") == ["picc", "line", "ct", "0", "5"]
    assert fold_text("双肺，清晰。") == "双 肺 清 晰"
    assert fold_text(" ... ") == ""


def test_short_texts_are_one_shingle() -> None:
    """Equal short texts are near-duplicates, empty ones are nothing."""
    assert len(shingles("lungs clear")) == 1
    assert shingles("Lungs, clear") == shingles("lungs clear")
    assert shingles("") == frozenset()
