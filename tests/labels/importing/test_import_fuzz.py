"""Any bytes at all: a cohort that reads back as it was, or a clear refusal."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.core.errors import LoopError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import iter_items, list_cohorts, read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.report_sections import split_sections
from loop.labels.importing.source import ImportOptions
from loop.labels.language import fold_text
from tests.conftest import shipped_workspace

FEW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
TEXT = st.text(max_size=60)
CLEAN = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=60)
PIECES = st.sampled_from(
    ["FINDINGS:", "IMPRESSION:", "印象:", "\n", "\n\n", " ", ".", "HISTORY:", "CHEST:"]
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkspacePaths]:
    """Make one workspace for all examples."""
    yield shipped_workspace(tmp_path_factory.mktemp("fuzz") / "ws")


def _try(place: WorkspacePaths, path: Path) -> list[tuple[str, str]] | None:
    """Import `path`; return ids and texts, or None when it was refused."""
    before = list_cohorts(place)
    options = ImportOptions(name="fuzz", role="dev", replace=True)
    try:
        report = import_cohort(place, path, options, actor=Actor(name="fuzz"))
    except LoopError as error:
        assert str(error)
        assert list_cohorts(place) == before
        return None
    items = list(iter_items(place, read_cohort(place, "fuzz")))
    assert len(items) == report.cases
    return [(item.id, item.variables["text"]) for item in items]


@FEW
@given(raw=st.binary(max_size=300), suffix=st.sampled_from(["csv", "jsonl", "parquet"]))
def test_random_bytes_never_crash_an_importer(
    place: WorkspacePaths, tmp_path: Path, raw: bytes, suffix: str
) -> None:
    """No input raises anything but a `LoopError`."""
    path = tmp_path / f"source.{suffix}"
    path.write_bytes(raw)
    _try(place, path)


@FEW
@given(raw=st.binary(max_size=200))
def test_random_bytes_after_a_good_header_never_crash(
    place: WorkspacePaths, tmp_path: Path, raw: bytes
) -> None:
    """The rows are the more dangerous part."""
    path = tmp_path / "source.csv"
    path.write_bytes(b"case_id,text,edema\n" + raw)
    _try(place, path)


@FEW
@given(texts=st.lists(CLEAN, min_size=1, max_size=5))
def test_csv_texts_come_back_unchanged(
    place: WorkspacePaths, tmp_path: Path, texts: list[str]
) -> None:
    """Whatever a text holds, quotes and separators included; only its ends are bare."""
    stream = io.StringIO(newline="")
    rows = [["case_id", "text"], *([f"c{i}", text] for i, text in enumerate(texts))]
    csv.writer(stream).writerows(rows)
    path = tmp_path / "source.csv"
    path.write_text(stream.getvalue(), encoding="utf-8", newline="")
    expected = [
        (f"c{i}", text.strip()) for i, text in enumerate(texts) if fold_text(text)
    ]
    assert _try(place, path) == (expected or None)


@FEW
@given(rows=st.lists(st.dictionaries(TEXT, st.none() | TEXT | st.floats()), max_size=4))
def test_any_json_objects_never_crash(
    place: WorkspacePaths, tmp_path: Path, rows: list[dict[str, object]]
) -> None:
    """Odd keys, missing keys, unpaired surrogates, not a number."""
    path = tmp_path / "source.jsonl"
    lines = [json.dumps({"id": i, "text": "a", **row}) for i, row in enumerate(rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    _try(place, path)


@FEW
@given(
    cells=st.lists(st.one_of(CLEAN, st.none(), st.just("0")), min_size=1, max_size=4)
)
def test_parquet_cells_never_crash(
    place: WorkspacePaths, tmp_path: Path, cells: list[str | None]
) -> None:
    """Missing ids and texts are refused or counted."""
    path = tmp_path / "source.parquet"
    pq.write_table(
        pa.table(
            {"id": pa.array(cells, pa.string()), "text": pa.array(cells, pa.string())}
        ),
        path,
    )
    _try(place, path)


@settings(deadline=None)
@given(report=st.lists(st.one_of(PIECES, TEXT)).map("".join))
def test_sections_invent_nothing(report: str) -> None:
    """Every word of the result stands in the report."""
    sections = split_sections(report)
    for part in (sections.findings, sections.impression, sections.exam):
        assert set(part.split()) <= set(report.split()) | _fragments(part, report)


def _fragments(part: str, report: str) -> set[str]:
    """Words of `part` that are pieces of words of `report`: a heading was cut off."""
    return {word for word in part.split() if word in report}
