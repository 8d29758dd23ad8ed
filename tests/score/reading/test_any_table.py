"""Any table at all: every row is accounted for, or the file is refused clearly."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.core.errors import LoopError
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.score.joining import CandidateFile, join_files
from loop.score.records import Coverage, Joined

MANY = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
REFERENCE = b"id,text\n1,Effusion.\n2,Normal.\n3,...\n"
NAMES = st.sampled_from(
    [
        *(
            "id",
            "study_id",
            "text",
            "candidate",
            "system",
            "findings",
            "Edema",
            "edema",
        ),
        *("No Finding", "language", "patient", "labels", "ID", "\ufeffid", "x", ""),
    ]
)
CELLS = st.one_of(
    st.sampled_from(
        ["1", "2", "3", "01", "1.0", "-1", "0", "", " ", "yes", "nan", "en"]
    ),
    st.text(max_size=12),
)
IDS = st.sampled_from(["1", "2", "3", " 2", "01", "x"])
LABELS = st.sampled_from(["1", "0.0", "-1", ""])
VALUES = st.one_of(
    CELLS,
    st.none(),
    st.booleans(),
    st.integers(-2, 4),
    st.floats(),
    st.dictionaries(NAMES, CELLS, max_size=3),
    st.lists(CELLS, max_size=2),
)


@pytest.fixture(scope="module")
def taxonomy(labels_folder: Path) -> Taxonomy:
    """Read the shipped labels once."""
    return read_taxonomy(labels_folder)


def _join(folder: Path, name: str, raw: bytes, taxonomy: Taxonomy) -> Joined | None:
    """Return the join, or None where the file is refused as it should be."""
    (folder / "ref.csv").write_bytes(REFERENCE)
    (folder / name).write_bytes(raw)
    try:
        return join_files(folder / "ref.csv", [CandidateFile(folder / name)], taxonomy)
    except LoopError as error:
        assert len(str(error)) < 1_000
        return None


def _check(joined: Joined | None) -> None:
    """Check that no id is lost or counted twice, and that nothing moved."""
    if joined is None:
        return
    assert joined.case_ids == ("1", "2")
    assert joined.reference.texts == ("Effusion.", "Normal.")
    for coverage, column in zip(joined.coverage, joined.systems, strict=True):
        _check_system(coverage)
        filled = column.texts if column.texts is not None else column.codes
        assert filled is not None
        assert len(filled) == 2


def _check_system(coverage: Coverage) -> None:
    assert coverage.paired + len(coverage.missing) == 2
    assert set(coverage.empty).isdisjoint(coverage.missing)
    assert set(coverage.extra).isdisjoint({"1", "2", "3"})
    kinds = coverage.paired + len(coverage.extra) + len(coverage.repeated)
    assert coverage.rows >= coverage.paired + len(coverage.extra)
    if coverage.repeated == ():
        assert coverage.rows - kinds in (0, 1)


@st.composite
def _tables(
    draw: st.DrawFn, cells: st.SearchStrategy[object]
) -> list[dict[str, object]]:
    """Draw rows whose header is nearly right, so that most are reached."""
    content = draw(st.sampled_from(["text", "Edema", "candidate"]))
    plain = LABELS if content == "Edema" else CELLS
    others = draw(st.lists(NAMES, max_size=2))
    row = st.fixed_dictionaries(
        {"id": IDS, content: st.one_of(plain, plain, plain, cells)}
        | {name: cells for name in others if name not in ("id", content)}
    )
    return draw(st.lists(row, min_size=1, max_size=5))


@pytest.mark.slow
@MANY
@given(rows=_tables(CELLS))
def test_any_csv_is_joined_or_refused(tmp_path, taxonomy, rows):
    """Cells of any text, with labels, systems and languages in odd places."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    raw = stream.getvalue().encode("utf-8", "surrogatepass")
    _check(_join(tmp_path, "m.csv", raw, taxonomy))


@pytest.mark.slow
@MANY
@given(lines=_tables(VALUES))
def test_any_json_lines_are_joined_or_refused(tmp_path, taxonomy, lines):
    """Values of any type in any place, NaN and infinity included."""
    raw = "\n".join(json.dumps(line) for line in lines).encode()
    _check(_join(tmp_path, "m.jsonl", raw, taxonomy))


@pytest.mark.slow
@MANY
@given(raw=st.binary(max_size=80), name=st.sampled_from(["m.csv", "m.jsonl", "m.tsv"]))
def test_any_bytes_are_joined_or_refused(tmp_path, taxonomy, raw, name):
    """Also behind a header that is right."""
    for head in (b"", b"id,text\n", b'{"id": 1, "text": '):
        _check(_join(tmp_path, name, head + raw, taxonomy))
