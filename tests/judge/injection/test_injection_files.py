"""The folder of an injection: each file to the byte, and folders that are refused."""

import csv
import io
import json
import stat

import pytest

from loop import __version__
from loop.core.digests import digest_bytes, digest_text
from loop.core.errors import ConflictError, DataError
from loop.judge import InjectionOptions, inject_errors
from loop.judge.injection.injection_bank import read_bank
from loop.judge.injection.injection_files import (
    InjectionSource,
    check_injection_folder,
    injection_data,
    read_injection_file,
    write_injection,
)
from loop.labels.cohort import CohortCase, cases_digest
from tests.judge.scenes import table

REPORT = "The heart is normal in size. There is a small left pleural effusion."
TEXTS = {"a": REPORT, "b": " "}
SOURCE = InjectionSource(
    {}, {}, {"kind": "file", "name": "x.csv"}, {"empty text": 2, "repeated": 1}
)


@pytest.fixture(scope="module")
def made():
    """Return two kinds of error, of which one is made further off, too."""
    options = InjectionOptions(
        errors="dc", numbers=(2, 1), severities=(2, 1), most=3, seed=5
    )
    return inject_errors(TEXTS, options)


def test_the_data_are_counts_and_digests(made):
    """Of what was made, of what was not, and of all that it rests on."""
    bank = read_bank()
    data = injection_data(made, SOURCE)
    assert data == {
        "format": "ranloop-injection/1",
        "ranloop": __version__,
        "seed": 5,
        "options": {
            "errors": "dc",
            "numbers": [2, 1],
            "severities": [2, 1],
            "harmless": False,
            "negated": False,
            "modality": "chest_xray",
            "most": 3,
        },
        "bank": {
            "version": bank.bank.version,
            "language": "en",
            "sha256": bank.sha256,
        },
        "reader": dict(made.reader),
        "source": {
            "kind": "file",
            "name": "x.csv",
            "cases": 2,
            "digest": cases_digest(
                CohortCase(case, "", digest_text(text)) for case, text in TEXTS.items()
            ),
        },
        "pairs": 3,
        "significant": 3,
        "insignificant": 0,
        "counts": {"location": {"1": 1, "2": 0}, "severity": {"1": 2, "2": 0}},
        "further_off": 1,
        "cases_unused": {"empty text": 2, "repeated": 1, "empty": 1},
        "left_out": [
            {
                "kind": kind,
                "number": 2,
                "reason": "fewer places in the report",
                "variants": 1,
            }
            for kind in ("location", "severity")
        ],
        "places": {
            "location": {"tried": 1, "read_otherwise": 0},
            "severity": {"tried": 1, "read_otherwise": 0},
        },
    }
    assert list(data["counts"]["location"]) == ["1", "2"]
    plain = InjectionOptions(errors="c", harmless=True, reread=False)
    bare = injection_data(inject_errors({"a": REPORT}, plain), SOURCE)
    assert "severities" not in bare["options"] and "further_off" not in bare
    assert bare["options"]["reread"] is False and bare["options"]["harmless"]
    assert (bare["significant"], bare["insignificant"]) == (1, bare["pairs"] - 1)
    assert bare["insignificant"] > 0


def test_a_folder_holds_every_pair_and_change(made, tmp_path):
    """Only its owner reads it, and its digests are those of the files."""
    folder = tmp_path / "made"
    about = write_injection(folder, made, SOURCE)
    files = {one.name: one.read_bytes() for one in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}
    assert (
        json.loads(files.pop("inject.json"))
        == about
        == {
            **injection_data(made, SOURCE),
            "files": {name: digest_bytes(raw) for name, raw in files.items()},
        }
    )
    changed = REPORT.replace("left", "right")
    large = REPORT.replace("small", "large")
    huge = REPORT.replace("small", "very large")
    assert [*csv.reader(io.StringIO(files["pairs.csv"].decode()))] == [
        [
            *("id", "reference_id", "reference", "candidate"),
            *("kind", "significant", "number", "severity"),
        ],
        ["a-c1", "a", REPORT, changed, "location", "yes", "1", "1"],
        ["a-d1", "a", REPORT, large, "severity", "yes", "1", "1"],
        ["a-d1s2", "a", REPORT, huge, "severity", "yes", "1", "2"],
    ]
    side = {"kind": "location", "tag": "side", "error": 1, "start": 46, "end": 50}
    size = {"kind": "severity", "tag": "degree", "error": 1, "start": 40, "end": 45}
    assert [*map(json.loads, files["changes.jsonl"].decode().splitlines())] == [
        {
            "id": name,
            "reference_id": "a",
            "changes": [{**place, "before": before, "after": after}],
        }
        for name, place, before, after in (
            ("a-c1", side, "left", "right"),
            ("a-d1", size, "small", "large"),
            ("a-d1s2", size, "small", "very large"),
        )
    ]
    assert made.table.to_dict("records")[2] == {
        "id": "a-d1s2",
        "reference_id": "a",
        "reference": REPORT,
        "candidate": huge,
        "kind": "severity",
        "significant": True,
        "number": 1,
        "severity": 2,
    }
    with pytest.raises(ConflictError, match="already exists and was left as it is"):
        write_injection(folder, made, SOURCE)


def test_without_a_variant_nothing_is_written(tmp_path):
    """Why is told by counts, of what was read and of what was left out before."""
    none = inject_errors({"a": " ", "b": ""}, InjectionOptions(errors="c"))
    with pytest.raises(DataError) as refused:
        write_injection(tmp_path / "made", none, SOURCE)
    assert str(refused.value) == (
        "no variant could be made: 2 empty, 2 empty text, 1 repeated. Name other "
        "errors, or other reports."
    )
    bare = inject_errors({}, InjectionOptions(errors="c"))
    with pytest.raises(DataError, match="made: no report has a place for one"):
        write_injection(tmp_path / "made", bare, SOURCE._replace(left_out={}))
    assert not (tmp_path / "made").exists()


def test_folders_that_are_taken_are_refused(workspace, tmp_path):
    """An empty one is not taken; a file, a link to nowhere and one with a file are."""
    empty, full, file = (tmp_path / name for name in ("empty", "full", "file"))
    empty.mkdir()
    full.mkdir()
    (full / "mine.txt").touch()
    file.touch()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for free in (empty, tmp_path / "new"):
        check_injection_folder(free, None)
        check_injection_folder(free, workspace)
    for taken in (full, file, link):
        with pytest.raises(DataError, match=f"{taken} already exists"):
            check_injection_folder(taken, None)
    with pytest.raises(DataError, match="workspace's own files"):
        check_injection_folder(workspace.labels / "new", workspace)


def test_reports_of_a_file_are_read_in_its_order(tmp_path):
    """With their languages; what is empty or there twice is counted."""
    path = table(
        tmp_path / "reports.csv",
        ("id", "text"),
        [("z", REPORT), ("e", " "), ("b", "Normal chest without change.")],
    )
    found = read_injection_file(path, None, language="en")
    assert found.texts == {"z": REPORT, "b": "Normal chest without change."}
    assert list(found.texts) == ["z", "b"]
    assert found.languages == {"z": "en", "b": "en"}
    assert found.about == {"kind": "file", "name": "reports.csv"}
    assert sum(found.left_out.values()) == 1
    nothing = table(tmp_path / "none.csv", ("id", "text"), [("a", " ")])
    with pytest.raises(DataError, match=r"none.csv: no report to inject into \("):
        read_injection_file(nothing, None)
    pairs = table(
        tmp_path / "pairs.csv", ("id", "reference", "candidate"), [("a", "b", "c")]
    )
    with pytest.raises(DataError, match="holds pairs of reports, and errors are inj"):
        read_injection_file(pairs, None)
