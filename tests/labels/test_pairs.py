"""Cohorts of pairs: a case is a reference and a candidate, and both are pinned."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from loop.core.digests import digest_text, digest_texts, framed
from loop.core.errors import DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Item
from loop.labels.cohort import (
    CASE_COLUMNS,
    PAIR_COLUMNS,
    Cohort,
    cohort_folder,
    find_item,
    iter_items,
    read_cohort,
    require_inputs,
    require_reports,
    single_report,
    texts_path,
)
from loop.labels.importing.importer import ImportReport
from loop.labels.overlap import OverlapKind, check_cohorts, describe_candidates
from loop.labels.reference import read_reference
from loop.labels.taxonomy import Taxonomy
from loop.labels.votes import import_votes

Importer = Callable[..., ImportReport]
Writer = Callable[..., Path]

EFFUSION = "Small left pleural effusion, new since the last examination of the chest."
NODULE = "A nodule of 8 mm in the right upper lobe that was not there two years ago."
PNEUMONIA = "Consolidation in the left lower lobe, most likely a bacterial pneumonia."
HEADER = ["id", "reference", "candidate", "system"]
ROWS = [
    ["a", EFFUSION, "No effusion.", "one"],
    ["b", EFFUSION, "Effusion on the left.", "two"],
    ["c", NODULE, "", "one"],
]


@pytest.fixture
def pairs(workspace: WorkspacePaths, take: Importer, write_csv: Writer) -> Cohort:
    """Import three pairs of two references."""
    take(write_csv([HEADER, *ROWS], "pairs.csv"), "rp")
    return read_cohort(workspace, "rp")


def test_a_table_with_reference_and_candidate_is_a_cohort_of_pairs(
    workspace: WorkspacePaths, pairs: Cohort
) -> None:
    """Both texts reach a prompt by their names, and nothing is called ``text``."""
    assert pairs.inputs == ("reference", "candidate")
    assert pairs.holds_pairs
    items = list(iter_items(workspace, pairs))
    assert [dict(one.variables) for one in items] == [
        {"reference": row[1], "candidate": row[2]} for row in ROWS
    ]
    assert find_item(workspace, "rp", "b") == items[1]


def test_cases_of_a_pair_name_system_and_reference(
    workspace: WorkspacePaths, pairs: Cohort
) -> None:
    """Candidates of one reference are known to be that without their texts."""
    assert [case.system for case in pairs.cases] == ["one", "two", "one"]
    first, second, third = (case.reference_id for case in pairs.cases)
    assert first == second != third
    head = (cohort_folder(workspace, "rp") / "cases.csv").read_text().split("\n")[0]
    assert head == ",".join(PAIR_COLUMNS)


def test_a_cohort_of_reports_is_written_as_before(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """Neither its files nor its ledger entry speak of inputs: digests stay."""
    take(write_csv([["id", "text"], ["a", EFFUSION]]), "reports")
    folder = cohort_folder(workspace, "reports")
    assert "inputs" not in (folder / "cohort.yaml").read_text()
    assert (folder / "cases.csv").read_text() == (
        f"{','.join(CASE_COLUMNS)}\na,,{digest_text(EFFUSION)}\n"
    )
    assert "inputs" not in read_ledger(workspace.ledger)[-1].payload
    line = texts_path(workspace, "reports").read_text()
    assert json.loads(line) == {"case_id": "a", "text": EFFUSION, "language": "en"}


def test_inputs_are_recorded_and_believed_only_as_recorded(
    workspace: WorkspacePaths, pairs: Cohort
) -> None:
    """Whoever edits them would have prompts read texts under other names."""
    assert read_ledger(workspace.ledger)[-1].payload["inputs"] == "reference candidate"
    path = cohort_folder(workspace, "rp") / "cohort.yaml"
    before = path.read_text()
    for other in ("", "inputs:\n- reference\n- candidate\n- context\n"):
        path.write_text(before.replace("inputs:\n- reference\n- candidate\n", other))
        with pytest.raises(DataError, match=r"columns are not|inputs: is"):
            read_cohort(workspace, "rp")
    path.write_text(before.replace("- candidate", "- text"))
    with pytest.raises(DataError, match="inputs"):
        read_cohort(workspace, "rp")


@pytest.mark.parametrize("column", [3, 4])
def test_system_and_reference_id_cannot_be_edited(
    workspace: WorkspacePaths, pairs: Cohort, column: int
) -> None:
    """Another system or reference would move a pair to another row of a table."""
    path = cohort_folder(workspace, "rp") / "cases.csv"
    lines = path.read_text().splitlines()
    cells = lines[1].split(",")
    cells[column] = "other"
    path.write_text("\n".join([lines[0], ",".join(cells), *lines[2:], ""]))
    with pytest.raises(DataError, match="cases_sha256"):
        read_cohort(workspace, "rp")


@pytest.mark.parametrize("name", ["reference", "candidate"])
def test_a_changed_text_of_a_pair_is_noticed(
    workspace: WorkspacePaths, pairs: Cohort, name: str
) -> None:
    """The digest covers both texts, and which is which."""
    path = texts_path(workspace, "rp")
    data = [json.loads(line) for line in path.read_text().splitlines()]
    data[1]["texts"][name] += "x"
    path.write_text("".join(json.dumps(one) + "\n" for one in data))
    with pytest.raises(DataError, match="line 2: not the text of case 'b'"):
        list(iter_items(workspace, pairs))
    with pytest.raises(DataError, match="case 'b'"):
        find_item(workspace, "rp", "b")


def test_swapped_texts_of_a_pair_are_noticed(
    workspace: WorkspacePaths, pairs: Cohort
) -> None:
    """A candidate that stands for its reference would turn every error around."""
    path = texts_path(workspace, "rp")
    first, *rest = path.read_text().splitlines()
    data = json.loads(first)
    reference, candidate = data["texts"]["reference"], data["texts"]["candidate"]
    data["texts"] = {"reference": candidate, "candidate": reference}
    path.write_text("\n".join([json.dumps(data), *rest, ""]))
    with pytest.raises(DataError, match="line 1"):
        list(iter_items(workspace, pairs))


def test_the_digest_of_several_texts_frames_names_and_texts() -> None:
    """It is written down, so that a later version gives the same one."""
    texts = {"reference": "ab", "candidate": "c"}
    expected = digest_text(framed(["candidate", "c", "reference", "ab"]).decode())
    assert digest_texts(texts) == expected
    assert digest_texts({"reference": "a", "candidate": "bc"}) != expected


_TEXTS = st.dictionaries(st.text(max_size=9), st.text(max_size=9), min_size=1)


@given(one=_TEXTS, other=_TEXTS)
def test_only_equal_texts_under_equal_names_have_one_digest(
    one: dict[str, str], other: dict[str, str]
) -> None:
    """Whatever a text holds, and in whatever order they come."""
    assert (digest_texts(one) == digest_texts(other)) == (one == other)
    assert digest_texts(dict(reversed(one.items()))) == digest_texts(one)


def _write_jsonl(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    lines = (json.dumps(dict(zip(HEADER, row, strict=True))) for row in rows)
    path.with_suffix(".jsonl").write_text("\n".join(lines))
    return path.with_suffix(".jsonl")


def _write_excel(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    book = Workbook()
    for row in (HEADER, *rows):
        book.active.append(row)
    book.save(path.with_suffix(".xlsx"))
    return path.with_suffix(".xlsx")


def _write_parquet(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(rows, columns=HEADER).to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize("write", [_write_jsonl, _write_excel, _write_parquet])
def test_every_format_gives_the_same_cohort(
    workspace: WorkspacePaths,
    take: Importer,
    tmp_path: Path,
    pairs: Cohort,
    write: Callable[[Path, Sequence[Sequence[str]]], Path],
) -> None:
    """The same pairs have the same digest, whatever file they came in."""
    report = take(write(tmp_path / "same", ROWS), "same")
    assert report.digest == pairs.digest
    assert read_cohort(workspace, "same").cases == pairs.cases


def test_columns_can_be_named(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """Also where the table has its own text, which is then not used."""
    header = ["nr", "text", "truth", "made", "by", "about", "ref"]
    row = ["1", "Another text.", NODULE, "No nodule.", "m", "Age: 70", "r1"]
    named = {"case_id": "nr", "reference": "truth", "candidate": "made"}
    named |= {"system": "by", "context": "about", "reference_id": "ref"}
    report = take(write_csv([header, row]), "named", columns=named)
    assert report.unused == ("text",)
    cohort = read_cohort(workspace, "named")
    assert cohort.cases[0][3:] == ("m", "r1")
    (item,) = iter_items(workspace, cohort)
    assert item.variables == {
        "reference": NODULE, "candidate": "No nodule.", "context": "Age: 70",
    }  # fmt: skip


def test_context_is_made_of_age_sex_and_indication(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """A cell that is empty says nothing, and a pair without any has no context."""
    header = ["id", "reference", "candidate", "age", "sex", "indication"]
    rows = [["a", NODULE, "x", "70", "", "Cough."], ["b", NODULE, "y", "", "", ""]]
    take(write_csv([header, *rows]), "rp")
    items = iter_items(workspace, read_cohort(workspace, "rp"))
    found = [item.variables["context"] for item in items]
    assert found == ["Age: 70\nIndication: Cough.", ""]


def test_a_text_beside_reference_and_candidate_stays_the_text(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """What an import made of a table before pairs were known, it makes today."""
    rows = [["id", "text", "reference", "candidate"], ["a", EFFUSION, "x", "y"]]
    assert take(write_csv(rows), "mine").unused == ("reference", "candidate")
    assert not read_cohort(workspace, "mine").holds_pairs


@pytest.mark.parametrize(
    ("header", "named", "problem"),
    [
        (["id", "reference"], {"reference": "reference"}, "the candidate of a pair"),
        (["id", "made"], {"candidate": "made"}, "the reference of a pair"),
        (["id", "x"], {"reference": "x", "candidate": "x"}, "Name two columns"),
        (["id", "x"], {"candidate": "y"}, "Correct --candidate-column"),
        (["id", "reference"], {}, "for pairs of reports, reference and candidate"),
    ],
)
def test_a_table_of_half_pairs_is_refused(
    take: Importer,
    write_csv: Writer,
    header: list[str],
    named: dict[str, str],
    problem: str,
) -> None:
    """The message names the option that helps."""
    row = [EFFUSION] * len(header)
    row[0] = "a"
    with pytest.raises(DataError, match=problem):
        take(write_csv([header, row]), "rp", columns=named)


def test_text_and_pair_columns_exclude_each_other(
    take: Importer, write_csv: Writer
) -> None:
    """A cohort is of reports or of pairs, never both."""
    named = {"text": "reference", "candidate": "candidate"}
    with pytest.raises(DataError, match="either --text-column"):
        take(write_csv([HEADER, *ROWS]), "rp", columns=named)


def test_an_empty_candidate_is_kept_and_counted(
    take: Importer, write_csv: Writer
) -> None:
    """A system that said nothing has missed every finding; it is no missing case."""
    report = take(write_csv([HEADER, *ROWS]), "rp")
    assert (report.cases, report.silent, report.empty) == (3, 1, 0)
    assert report.systems == {"one": 2, "two": 1}


def test_an_empty_reference_is_refused_with_its_row(
    take: Importer, write_csv: Writer
) -> None:
    """Against nothing, every finding would be false; the way out is in the message."""
    path = write_csv([HEADER, ROWS[0], ["d", " .", "Effusion.", "one"]], "p.csv")
    with pytest.raises(DataError, match=r"p\.csv, line 3: the reference.*--exclude"):
        take(path, "rp")
    assert take(path, "rp", exclude=("d",)).cases == 1


def test_two_texts_under_one_reference_id_are_refused(
    take: Importer, write_csv: Writer
) -> None:
    """Candidates of one reference are held against one text."""
    rows = [["id", "reference", "candidate", "reference_id"],
            ["a", EFFUSION, "x", "r"], ["b", NODULE, "y", "r"]]  # fmt: skip
    with pytest.raises(DataError, match="line 3: reference 'r' has another text"):
        take(write_csv(rows), "rp")


def test_a_repeated_id_is_refused(take: Importer, write_csv: Writer) -> None:
    """Also where reference and system differ: answers are stored by the id."""
    rows = [HEADER, ROWS[0], ["a", NODULE, "", "two"]]
    with pytest.raises(DataError, match="'a' already appears"):
        take(write_csv(rows), "rp")


def test_rows_are_numbered_where_ids_repeat(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """The repeated id may then name the reference."""
    rows = [HEADER, ROWS[0], ["a", EFFUSION, "", "two"]]
    named = {"reference_id": "id"}
    take(write_csv(rows), "rp", number_rows=True, columns=named)
    cases = read_cohort(workspace, "rp").cases
    assert [(one.case_id, one.reference_id) for one in cases] == [
        ("row-000001", "a"), ("row-000002", "a"),
    ]  # fmt: skip


def test_a_candidate_of_a_megabyte_is_read(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """A generator that did not stop is judged; a reference so long is a mistake."""
    long = "Effusion. " * 200_000
    take(write_csv([HEADER, ["a", EFFUSION, long, "one"]]), "rp")
    (item,) = iter_items(workspace, read_cohort(workspace, "rp"))
    assert item.variables["candidate"] == long.strip()
    with pytest.raises(DataError, match="a text of"):
        take(write_csv([HEADER, ["a", long, EFFUSION, "one"]]), "other")


def test_forty_candidates_of_one_reference_are_one_unit(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """They are drawn together, by patient where that is known."""
    rows = [[f"c{n}", EFFUSION, f"Text {n}.", f"s{n}"] for n in range(40)]
    report = take(write_csv([HEADER, *rows]), "rp")
    assert (report.cases, report.references, len(report.systems)) == (40, 1, 40)
    assert len({case.unit for case in read_cohort(workspace, "rp").cases}) == 1
    known = [[*row, f"p{n % 2}"] for n, row in enumerate(rows)]
    take(write_csv([[*HEADER, "patient"], *known]), "known")
    assert len({case.unit for case in read_cohort(workspace, "known").cases}) == 2


def test_a_pair_twice_is_a_duplicate_and_one_reference_twice_is_not(
    take: Importer, write_csv: Writer
) -> None:
    """Both texts must be alike."""
    again = ["d", EFFUSION, "no effusion", "three"]
    report = take(write_csv([HEADER, *ROWS, again]), "rp")
    assert report.duplicates == 1
    assert report.examples["duplicate text"] == ("d",)


@pytest.mark.parametrize("place", [1, 2])
def test_equal_and_similar_reports_of_pairs_are_shared(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer, place: int
) -> None:
    """Of a pair and a report either place counts; of two pairs, the references do."""
    rows = [["a", "One reference.", "One candidate.", ""]]
    rows[0][place] = PNEUMONIA
    take(write_csv([HEADER, *rows]), "dev")
    other = [["z", f"{PNEUMONIA} {NODULE}", "", ""], ["y", PNEUMONIA, "", ""]]
    take(write_csv([HEADER, *other]), "held", role="external")
    take(write_csv([["id", "text"], ["x", PNEUMONIA]]), "reports", role="taxonomy")
    found = {
        (pair.first, pair.second): {one.kind: one.examples for one in pair.shared}
        for pair in check_cohorts(workspace).pairs
    }
    shared = {OverlapKind.TEXT: (("a", "y"),)} if place == 1 else {}
    assert found["dev", "held"] == shared
    assert ("dev", "reports") in found
    assert found["dev", "reports"][OverlapKind.TEXT] == (("a", "x"),)


def test_a_candidate_alone_is_no_overlap_and_is_told(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """Models write one normal report for many; the pair, or its reference, is one."""
    normal = f"{PNEUMONIA} {EFFUSION} {NODULE}"
    near = normal.replace("Consolidation", "Opacity")
    mine = [["a", EFFUSION, normal, ""], ["b", "Clear.", NODULE, ""]]
    held = [["x", NODULE, normal, ""], ["y", "Mass.", near, ""], ["z", "X.", "", ""]]
    take(write_csv([HEADER, mine[0]]), "dev")
    take(write_csv([HEADER, *held]), "held", role="holdout")
    report = check_cohorts(workspace)
    (pair,) = report.pairs
    assert report.separate
    assert pair.candidates is not None
    assert (pair.candidates.number, set(pair.candidates.examples)) == (
        2,
        {("a", "x"), ("a", "y")},
    )
    assert describe_candidates(pair).startswith("2 candidates stand in both dev and")
    # So does one that is a reference there.
    take(write_csv([HEADER, *mine]), "both")
    pair = next(one for one in check_cohorts(workspace).pairs if one.first == "both")
    assert pair.candidates is not None
    assert not pair.shared
    # The whole pair is an overlap, and no candidate by itself.
    take(write_csv([HEADER, ["a", *held[0][1:]]]), "again")
    pair = next(one for one in check_cohorts(workspace).pairs if one.first == "again")
    assert [(one.kind, one.examples) for one in pair.shared] == [
        (OverlapKind.TEXT, (("a", "x"),))
    ]
    assert pair.candidates is not None
    assert pair.candidates.examples == (("a", "y"),)


def test_empty_candidates_and_contexts_are_not_shared(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """Nothing, and what is known of a patient, are alike everywhere."""
    header = ["id", "reference", "candidate", "context"]
    same = "Age: 70, Sex: F, Indication: cough and fever for three days."
    take(write_csv([header, ["a", EFFUSION, "", same]]), "one")
    take(write_csv([header, ["b", NODULE, "", same]]), "two", role="external")
    assert check_cohorts(workspace).separate


def test_what_works_on_reports_refuses_pairs(
    workspace: WorkspacePaths, taxonomy: Taxonomy, pairs: Cohort, tmp_path: Path
) -> None:
    """Each says what the cohort holds, and none ends in a missing key."""
    (item, *_) = iter_items(workspace, pairs)
    with pytest.raises(DataError, match=r"case 'a' is a pair.*single reports"):
        single_report(item)
    assert single_report(Item(id="a", variables={"text": "x"})) == "x"
    with pytest.raises(DataError, match=r"holds pairs of reports.*a queue works"):
        require_reports(pairs, "a queue")
    with pytest.raises(DataError, match="reference labels are of single reports"):
        read_reference(workspace, "rp")
    votes = tmp_path / "votes.csv"
    votes.write_text("reader,case_id,label,value\nr1,a,pneumothorax,absent\n")
    with pytest.raises(DataError, match="a vote on labels works on single reports"):
        import_votes(
            workspace, pairs, votes, taxonomy, need=None, actor=Actor(name="Dr. A")
        )


def test_a_prompt_with_other_inputs_is_refused_and_both_are_named(
    pairs: Cohort,
) -> None:
    """A prompt may read less than there is, and never more; context is optional."""
    require_inputs(pairs, "green@v1", ("reference", "candidate"))
    with pytest.raises(DataError, match=r"extractor@v1 reads text, and.*reference, ca"):
        require_inputs(pairs, "extractor@v1", ("text",))
    require_inputs(pairs, "crimson@v1", ("reference", "candidate", "context"))
    with pytest.raises(DataError, match="reads reference, candidate, sketch"):
        require_inputs(pairs, "green@v1", ("reference", "candidate", "sketch"))
