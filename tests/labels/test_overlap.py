"""Cohorts of different roles are refused when they share a case, patient or text."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop.core.errors import OverlapError
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import Cohort, read_cohort, texts_path
from loop.labels.importing.importer import ImportReport
from loop.labels.language import fold_text, shingles, words
from loop.labels.overlap import (
    ForeignPairs,
    OverlapKind,
    PairOverlap,
    Shared,
    _compare,
    check_cohorts,
    compare_pairs,
    near_duplicates,
    require_separate,
)

LONG = (
    "the heart is normal in size and the lungs are clear without focal change or fluid "
    "and the bones of the chest are intact with mild wear of the spine seen on the side"
)

Maker = Callable[..., Cohort]
Importer = Callable[..., ImportReport]


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


def test_all_that_any_two_cohorts_share_is_told_in_one_message(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Each kind of each pair of roles; a patient once, whatever their cases."""
    near = LONG[:-4] + "film"
    rows = {
        "dev": [("a, 1", "One.", "P1"), ("a2", LONG, "P1"), ("a3", "Two.", "P2")],
        "holdout": [("b1", near, "P1"), ("b2", "TWO!", "P3"), ("a, 1", "Three.", "P4")],
        "external": [("c1", "Four.", "P4"), ("c2", "Three", "P5")],
    }
    for role, cases in rows.items():
        make_cohort(cases, role[0], role=role)
    make_cohort([("d9", "Five.", "P9")], "z", role="external")
    report = check_cohorts(workspace)
    assert [(one.first, one.second) for one in report.pairs] == [
        ("d", "e"), ("d", "h"), ("d", "z"), ("e", "h"), ("h", "z"),
    ]  # fmt: skip
    with pytest.raises(OverlapError) as caught:
        require_separate(report)
    assert str(caught.value) == (
        "cohorts of different roles must be separate:\n"
        "  d (dev) and h (holdout) share 1 case: 'a, 1'\n"
        "  d (dev) and h (holdout) share 1 patient: 'a, 1' = b1\n"
        "  d (dev) and h (holdout) share 1 text: a3 = b2\n"
        "  d (dev) and h (holdout) share 1 near-duplicate text: a2 = b1\n"
        "  e (external) and h (holdout) share 1 patient: c1 = 'a, 1'\n"
        "  e (external) and h (holdout) share 1 text: c2 = 'a, 1'\n"
        "Import one of the two again with --replace and --exclude CASE for each of "
        "these; if two sources only number their cases alike, use --id-prefix."
    )
    require_separate(check_cohorts(workspace, ["d", "e", "z"]))


def test_what_two_cohorts_cannot_be_compared_by_is_said_of_each(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """One whose patients or texts are not known, or both."""
    make_cohort([("a1", "One.")], "one", role="dev")
    make_cohort([("b1", "Two.", "P1")], "two", role="holdout")
    unnamed = "patients: not named for every case of one"

    def told() -> tuple[str, ...]:
        (pair,) = check_cohorts(workspace).pairs
        assert pair.shared == ()
        return pair.not_checked

    assert told() == (unnamed,)
    for name, names in (("one", "one"), ("two", "one and two")):
        texts_path(workspace, name).unlink()
        assert told() == (
            unnamed,
            f"similar texts: the texts of {names} are not on this machine (equal ones "
            "were compared by digest)",
        )


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


def test_a_longer_text_has_a_shingle_of_each_five_words_in_a_row() -> None:
    """Six words are two; five of them alone are one that both texts have."""
    said = "no focal consolidation or effusion seen"
    assert len(shingles(said)) == 2
    assert shingles("focal consolidation or effusion seen") < shingles(said)


PAIRS = [
    ["id", "reference", "candidate", "reference_id", "patient"],
    ["p1", "Small effusion on the left.", "No effusion.", "r1", "P1"],
    ["p2", "Small effusion on the left.", "Left effusion.", "r1", "P1"],
    ["p3", LONG, "Normal.", "r2", "P2"],
]


def _pairs(
    references: Mapping[str, str], patients: Mapping[str, str], key: str
) -> ForeignPairs:
    """Return pairs of another source, by id."""
    return ForeignPairs(tuple(references), tuple(references.values()), patients, key)


def test_pairs_of_elsewhere_share_cases_patients_and_references(
    workspace: WorkspacePaths, take: Importer, write_csv: Callable[..., Path]
) -> None:
    """Each is told with its ids, the foreign one first; candidates may be alike."""
    take(write_csv(PAIRS, "pairs.csv"), "rp")
    cohort = read_cohort(workspace, "rp")
    patient = cohort.cases[2].patient
    foreign = _pairs(
        {
            "x1": "SMALL effusion -- on the left",
            "r2": "Something else entirely.",
            "p1": LONG[:-4] + "film",
            "x4": "Normal.",
        },
        {"x1": "Q1", "r2": "Q2", "p1": "Q3", "x4": patient},
        cohort.pseudonym_key,
    )
    assert compare_pairs(workspace, cohort, foreign) == PairOverlap(
        shared=(
            Shared(OverlapKind.CASE, 2, (("r2", "p3"), ("p1", "p1"))),
            Shared(OverlapKind.PATIENT, 1, (("x4", "p3"),)),
            Shared(OverlapKind.TEXT, 1, (("x1", "p1"),)),
            Shared(OverlapKind.NEAR_TEXT, 1, (("p1", "p3"),)),
        ),
        not_checked=(),
    )
    apart = _pairs({"x": "Something else entirely."}, {"x": "Q"}, cohort.pseudonym_key)
    assert compare_pairs(workspace, cohort, apart) == PairOverlap((), ())


def test_what_pairs_cannot_be_compared_by_is_said(
    workspace: WorkspacePaths, take: Importer, write_csv: Callable[..., Path]
) -> None:
    """Patients that are not named or under another key; texts that are not here."""
    take(write_csv(PAIRS, "pairs.csv"), "rp")
    unnamed = [[*row[:4], ""] if row[0] == "p3" else row for row in PAIRS]
    take(write_csv(unnamed, "unnamed.csv"), "half")
    cohort, half = (read_cohort(workspace, name) for name in ("rp", "half"))
    key = cohort.pseudonym_key
    text = {"x": "Something else entirely."}

    def told(of: Cohort, patients: Mapping[str, str], used: str) -> tuple[str, ...]:
        return compare_pairs(workspace, of, _pairs(text, patients, used)).not_checked

    not_named = "patients: not named for every case of "
    assert told(cohort, {"x": "Q"}, key) == ()
    assert told(cohort, {}, key) == (f"{not_named}the pairs",)
    assert told(half, {}, key) == (f"{not_named}the pairs",)
    assert told(half, {"x": "Q"}, key) == (f"{not_named}half",)
    other = ("patients: pseudonymised with another key than here",)
    assert told(cohort, {"x": cohort.cases[0].patient}, "other") == other
    texts_path(workspace, "rp").unlink()
    assert told(cohort, {"x": "Q"}, key) == (
        "similar references: the texts of rp are not on this machine",
    )


def test_references_that_repeat_are_told_once(
    workspace: WorkspacePaths, take: Importer, write_csv: Callable[..., Path]
) -> None:
    """Five of them are named; an equal one is not told as similar as well."""
    rows = [[f"p{n}", f"{LONG} {n}", "Normal.", f"r{n}", "P"] for n in range(7)]
    take(write_csv([PAIRS[0], *rows], "pairs.csv"), "rp")
    cohort = read_cohort(workspace, "rp")
    foreign = _pairs(
        {f"x{n}": f"{LONG} {n}" for n in range(6)} | {"again": f"{LONG} 0"},
        {},
        "",
    )
    found = compare_pairs(workspace, cohort, foreign).shared
    assert [one.kind for one in found] == [OverlapKind.TEXT, OverlapKind.NEAR_TEXT]
    assert found[0].number == 6
    # The last of equal references stands for them.
    assert set(found[0].examples) == {
        ("again", "p0"), *((f"x{n}", f"p{n}") for n in range(1, 5)),
    }  # fmt: skip
    assert found[1].number == 6 * 7 - 6
    assert len(found[1].examples) == 5


@pytest.mark.parametrize(
    ("common", "own", "other", "near"),
    [(9, 1, 0, True), (8, 1, 1, True), (79, 10, 11, False), (80, 10, 10, True),
     (7, 2, 0, False), (4, 1, 0, True), (0, 5, 5, False), (1, 0, 0, True)],
)  # fmt: skip
def test_near_is_four_fifths_of_all_shingles_in_common(common, own, other, near):
    """Exactly so many are near; one less is not."""
    first = frozenset(range(common + own))
    second = frozenset([*range(common), *range(1000, 1000 + other)])
    found = [*near_duplicates({"a": first, "none": frozenset()}, [("b", second)])]
    assert found == ([("a", "b")] if near else [])
    assert [*near_duplicates({"a": first}, [("b", frozenset())])] == []
