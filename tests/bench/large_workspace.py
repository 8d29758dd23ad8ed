"""A synthetic workspace of any size: the demo's cases, many times over."""

import csv
import json
import shutil
import zlib
from pathlib import Path

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths, bundled
from loop.evaluate.protocol import register_protocol
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.taxonomy import read_taxonomy
from loop.labels.votes import import_votes
from loop.run.task import run_prompt
from tests.conftest import shipped_workspace

COHORT = "large"
TURNED = 30
"""One case and label in so many has readers who all say the opposite."""

_OPPOSITE = {"present": "absent", "absent": "present"}
_ACTOR = Actor(name="bench", role="editor")


def make_large(root: Path, cases: int) -> WorkspacePaths:
    """Return a workspace with `cases` cases, six readers' votes and a run of v1.

    With 3,000 cases more than 5,000 pairs of case and label fail.
    """
    workspace = shipped_workspace(root)
    for folder in (workspace.prompts / "extractor").iterdir():
        if folder.name != "v1":
            shutil.rmtree(folder)
    first = workspace.ledger.read_bytes().splitlines(keepends=True)[0]
    workspace.ledger.write_bytes(first)
    texts, votes = root / "cases.jsonl", root / "votes.csv"
    copies = _write_cases(texts, cases)
    _write_votes(votes, copies)
    options = ImportOptions(
        name=COHORT,
        role="dev",
        source="synthetic, the demo's cases many times over",
        licence="Apache-2.0",
        reason="bench",
    )
    import_cohort(workspace, texts, options, actor=_ACTOR)
    import_votes(
        workspace,
        read_cohort(workspace, COHORT),
        votes,
        read_taxonomy(workspace.labels),
        need=4,
        actor=_ACTOR,
    )
    register_protocol(workspace, _ACTOR)
    run_prompt(workspace, "extractor", COHORT)
    return workspace


def _write_cases(path: Path, cases: int) -> dict[str, list[str]]:
    """Write the cases and return which ids each case of the demo became."""
    source = bundled() / "labels" / "demo" / "dev.jsonl"
    rows = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    copies: dict[str, list[str]] = {}
    with path.open("w", encoding="utf-8") as stream:
        for number in range(cases):
            row = dict(rows[number % len(rows)])
            name = row["case_id"]
            row["case_id"] = f"{name}-{number // len(rows):03d}"
            row["text"] += f"\nSerial number {number}."
            if row.get("patient"):
                row["patient"] = f"{row['patient']}-{number // len(rows):03d}"
            copies.setdefault(name, []).append(row["case_id"])
            stream.write(json.dumps(row) + "\n")
    return copies


def _write_votes(path: Path, copies: dict[str, list[str]]) -> None:
    source = bundled() / "labels" / "demo" / "votes_dev.csv"
    with (
        source.open(encoding="utf-8", newline="") as given,
        path.open("w", encoding="utf-8", newline="") as taken,
    ):
        reader = csv.DictReader(given)
        writer = csv.DictWriter(taken, reader.fieldnames)
        writer.writeheader()
        for row in reader:
            for copy in copies.get(row["case_id"], ()):
                value = _turn(copy, row["label"], row["value"])
                writer.writerow(row | {"case_id": copy, "value": value})


def _turn(case_id: str, label: str, value: str) -> str:
    """Return the vote, or its opposite: the same for all readers of a pair."""
    drawn = zlib.crc32(f"{case_id} {label}".encode()) % TURNED == 0
    return _OPPOSITE.get(value, value) if drawn else value
