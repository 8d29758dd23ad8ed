"""What of a source enters a cohort, what stays out and is counted, what is refused."""

import pytest

from loop.core.errors import DataError
from loop.core.records import Mark
from loop.labels.importing import screening
from loop.labels.importing.screening import Screening
from loop.labels.importing.source import ImportOptions, SourceCase, parse_part

PAIR = {"reference": "Left effusion.", "candidate": "No effusion."}


def screen(*cases: SourceCase, **options: object) -> tuple[list[str], Screening]:
    """Return the ids that entered, and what was counted."""
    given = {"name": "mine", "role": "dev", "language": "en", **options}
    made = Screening(ImportOptions(**given))  # type: ignore[arg-type]
    return [case.case_id for case in made.passed(cases)], made


def case(case_id: str = "a", text: str = "Clear.", **more: object) -> SourceCase:
    """Return one report of a source."""
    return SourceCase(where="x.csv, line 2", case_id=case_id, text=text, **more)  # type: ignore[arg-type]


def pair(case_id: str = "a", **more: object) -> SourceCase:
    """Return one pair of a source."""
    given = {"pair": PAIR, **more}
    return SourceCase(where="x.csv, line 2", case_id=case_id, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "case_id",
    ["a" * 200, "a b c d", "é" * 40, f"{'a ' * 3}{'a' * 194}", "检查-7"],
)
def test_an_id_at_its_limits_is_taken(case_id: str) -> None:
    """Of 200 characters, four words, or 40 characters in another script."""
    assert screen(case(case_id))[0] == [case_id]


@pytest.mark.parametrize(
    ("case_id", "said"),
    [
        ("", "no case id"),
        ("a" * 201, "longer than 200 characters"),
        ("a\tb", "control character"),
        ("a b c d e", "is a text of 9 characters"),
        ("é" * 41, "is a text of 41 characters"),
    ],
)
def test_an_id_beyond_its_limits_is_refused(case_id: str, said: str) -> None:
    """It may be a report: its length is told, and no word of it."""
    with pytest.raises(DataError, match=f"x.csv, line 2: .*{said}"):
        screen(case(case_id))


def test_a_prefix_counts_as_part_of_an_id() -> None:
    """The id is what the cohort will have."""
    assert screen(case("a" * 198), id_prefix="p-")[0] == ["p-" + "a" * 198]
    with pytest.raises(DataError, match="longer than 200"):
        screen(case("a" * 199), id_prefix="p-")


def test_a_text_may_be_as_long_as_a_report_and_a_candidate_far_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A model may have written without end, and that is its answer."""
    million = "a" * 1_000_000
    assert screen(case(text=million))[0] == ["a"]
    with pytest.raises(DataError, match="a text of 1,000,001 characters"):
        screen(case(text=million + "a"))
    for name in ("reference", "context"):
        with pytest.raises(DataError, match="a text of 1,000,001 characters"):
            screen(pair(pair={**PAIR, name: million + "a"}))
    assert screen(pair(pair={**PAIR, "candidate": million + "a"}))[0] == ["a"]
    monkeypatch.setattr(screening, "MAX_GENERATED", 20)
    assert screen(pair(pair={**PAIR, "candidate": "a" * 20}))[0] == ["a"]
    with pytest.raises(DataError, match="a candidate of 21 characters; at most 20"):
        screen(pair(pair={**PAIR, "candidate": "a" * 21}))


@pytest.mark.parametrize(
    ("field", "what"), [("reference_id", "reference"), ("system", "system")]
)
def test_the_names_of_a_pair_are_short_and_on_one_line(field: str, what: str) -> None:
    """They stand in tables and in the open; a report in their place is refused."""
    for name in ("", "a" * 200, "a b c d e"):
        assert screen(pair(**{field: name}))[0] == ["a"]
    for name in ("a" * 201, "a\nb"):
        with pytest.raises(DataError, match=f"the name of the {what} is longer than"):
            screen(pair(**{field: name}))


def test_a_reference_has_one_text_and_is_not_empty() -> None:
    """Else nothing could be said of its candidates; equal ones need no name."""
    other = {**PAIR, "reference": "Right effusion."}
    assert screen(pair(reference_id="r"), pair("b", reference_id="r"))[0] == ["a", "b"]
    assert screen(pair(reference_id="r"), pair("b", reference_id="s", pair=other))[0]
    assert screen(pair(), pair("b", pair=other))[0] == ["a", "b"]
    with pytest.raises(DataError, match="'r' has another text in an earlier row"):
        screen(pair(reference_id="r"), pair("b", reference_id="r", pair=other))
    for text in ("", " ... "):
        empty = {**PAIR, "reference": text}
        with pytest.raises(DataError, match="the reference of the pair is empty"):
            screen(pair(pair=empty))
        assert screen(pair(pair=empty), exclude=("a",))[0] == []
    # A candidate that says nothing is an answer.
    assert screen(pair(pair={**PAIR, "candidate": ""}))[0] == ["a"]


def test_only_what_is_the_same_in_everything_is_an_exact_duplicate() -> None:
    """Under another id too; and under one id twice it is no error then."""
    marks = {"edema": Mark.PRESENT}
    cases = (
        *(case("a", marks=marks), case("a", marks=marks), case("b", marks=marks)),
        case("c", marks={"edema": Mark.ABSENT}),
        *(case("d", patient="p", marks=marks), case("e", "Clear!", marks=marks)),
        case("f", language="zh", marks=marks),
    )
    entered, found = screen(*cases, drop_duplicates=True)
    assert entered == ["a", "c", "d", "e", "f"]
    assert found.excluded == {"exact duplicate": 2}
    assert found.examples["exact duplicate"] == ["a", "b"]
    assert found.seen == 7
    # Alike but for case and marks are all but the first; they enter, and are counted.
    assert found.duplicates == 4
    assert found.examples["duplicate text"] == ["c", "d", "e", "f"]
    with pytest.raises(DataError, match="case id 'a' already appears"):
        screen(*cases)


def test_a_duplicate_of_what_stayed_out_is_none() -> None:
    """What nobody took is not there twice."""
    entered, found = screen(case("a"), case("b"), drop_duplicates=True, exclude=("a",))
    assert entered == ["b"]
    assert found.excluded == {"on request": 1}


def test_ids_to_leave_out_are_those_of_the_source() -> None:
    """A typing error would leave a case in; the prefix is not part of them."""
    entered, found = screen(case("a"), case("b"), exclude=("a",), id_prefix="p-")
    assert entered == ["p-b"]
    found.require_excluded()
    _, found = screen(case("a"), exclude=("a", "p-a"), id_prefix="p-")
    with pytest.raises(DataError, match="no case 'p-a' to leave out"):
        found.require_excluded()


def test_parts_share_no_patient_and_miss_nobody() -> None:
    """By patient, else by reference, else by case; the same on every machine."""
    spaced = [f" p{n} " for n in range(20)] + [f"p{n}" for n in range(20)]
    reports = [case(f"a{n}", patient=one) for n, one in enumerate(spaced)]
    plain = [case(f"b{n}") for n in range(20)]
    pairs = [pair(f"c{n}", reference_id=f"r{n % 10}") for n in range(20)]
    texts = [{**PAIR, "reference": f"Nodule of {n % 10} mm."} for n in range(20)]
    unnamed = [pair(f"d{n}", pair=text) for n, text in enumerate(texts)]
    parts = [
        set(screen(*reports, *plain, *pairs, *unnamed, part=f"{number}/3")[0])
        for number in (1, 2, 3)
    ]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 100
    for kind in "abcd":
        assert all(any(one.startswith(kind) for one in part) for part in parts)
    for part in parts:
        for one in reports:
            twin = f"a{(int(one.case_id[1:]) + 20) % 40}"
            assert (one.case_id in part) == (twin in part)
        for n in range(10):
            assert (f"c{n}" in part) == (f"c{n + 10}" in part)
            assert (f"d{n}" in part) == (f"d{n + 10}" in part)
    _, found = screen(*reports, part="1/3")
    # Of what is in another part no example is kept: there is nothing to look into.
    assert found.excluded.total() and found.examples.keys() <= {"duplicate text"}


@pytest.mark.parametrize("words", ["1/1", " 2/3 ", "999/999"])
def test_a_part_may_be_the_last(words: str) -> None:
    """The number of a part is at most how many there are."""
    first, _, last = words.strip().partition("/")
    assert parse_part(words) == (int(first), int(last))


@pytest.mark.parametrize("words", ["", "1", "0/2", "3/2", "1/0", "1/1000", "-1/2", "½"])
def test_what_is_no_part_is_refused(words: str) -> None:
    """None is before the first or after the last."""
    with pytest.raises(DataError, match="is no part"):
        parse_part(words)


def test_ten_examples_of_each_reason_are_kept() -> None:
    """All are counted."""
    _, found = screen(*(case(f"a{n}", " - ") for n in range(12)))
    assert found.excluded == {"empty": 12}
    assert found.examples == {"empty": [f"a{n}" for n in range(10)]}
    assert found.summary() == "12 empty"
    _, found = screen(case(unusable="no image"), case("b", exam="knee"))
    assert found.summary() == "1 no image, 1 non-chest"
    assert screen(case())[1].summary() == "it holds none"
