"""A small prompt of two labels and a small dev cohort to revise it on."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.engines import base
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import write_version
from loop.prompts.version import PromptVersion
from loop.run.store import Store, open_store
from tests.review.revise.stepping import Wavering

EDITOR = Actor(name="Dr A. Example")
WHEN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

TINY = PromptVersion(
    name="tiny",
    number=1,
    system="Read the report.\n",
    user=(
        "{% for guide in guides %}\n{{ guide.label }}: {{ guide.definition }}\n"
        "{% endfor %}\n{{ text }}\n"
    ),
    guides=(
        Guide(
            label="pleural_effusion",
            name="Pleural Effusion",
            definition="Fluid in the pleural space.",
            terms=("pleural effusion",),
        ),
        Guide(
            label="cardiomegaly",
            name="Cardiomegaly",
            definition="The heart is enlarged.",
            terms=("cardiomegaly",),
        ),
    ),
    author=EDITOR.name,
    time="2026-01-05T09:00:00Z",
    why="a start",
)

CASES = (
    *((f"e{n}", f"Small pleural effusion, study {n}.", 1, 0) for n in range(6)),
    *((f"f{n}", f"Fluid layers at the left base, study {n}.", 1, 0) for n in range(4)),
    *((f"c{n}", f"Cardiomegaly, study {n}.", 0, 1) for n in range(6)),
    *((f"n{n}", f"Clear lungs, study number {n}.", 0, 0) for n in range(8)),
    ("s1", "A skin fold resembles cardiomegaly on this film.", 0, 0),
)


@dataclass(frozen=True)
class Setting:
    """A workspace with the prompt ``tiny`` and the cohort ``dev``."""

    workspace: WorkspacePaths
    folder: Path
    editor: Actor = EDITOR
    tiny: PromptVersion = TINY

    def verdicts(self, text: str, name: str = "verdicts.yaml") -> Path:
        """Write a verdict file and return its path."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def kept_ids(self) -> list[str]:
        """Return the ids of the kept verdicts, as prompts and ledger name them."""
        with open_store(self.workspace) as store:
            return [row.id.partition(":")[2] for row in store.list_verdicts()]

    def state(self) -> tuple[dict[str, bytes], list[str]]:
        """Return everything that a round may write, apart from locks and runs."""
        root = self.workspace.root
        kinds = (".yaml", ".jinja", ".csv", ".jsonl")
        files = [path for path in root.rglob("*") if path.suffix in kinds]
        return {str(path): path.read_bytes() for path in files}, self.kept_ids()

    def add_cohort(self, name: str, role: str, rows) -> None:
        """Import `rows` of (id, text, effusion, cardiomegaly)."""
        path = self.folder / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["case_id", "text", "pleural_effusion", "cardiomegaly"])
            writer.writerows(rows)
        options = ImportOptions(name=name, role=role, source="synthetic", licence="-")
        import_cohort(self.workspace, path, options, actor=EDITOR)


@pytest.fixture
def setting(workspace: WorkspacePaths, tmp_path: Path) -> Setting:
    """Make the workspace, the prompt and the cohort."""
    write_version(workspace, TINY)
    event = Event(
        action="draft_committed",
        subject=TINY.ref,
        reason="a start",
        payload={"digest": TINY.digest},
    )
    append_event(workspace.ledger, event, EDITOR, now=lambda: WHEN)
    made = Setting(workspace, tmp_path)
    made.add_cohort("dev", "dev", CASES)
    return made


@pytest.fixture
def wavering(monkeypatch):
    """Register the engine ``wavering`` for one test, and return what it was asked."""
    monkeypatch.setitem(base._FACTORIES, "wavering", Wavering)
    monkeypatch.setattr(Wavering, "asked", ())
    return Wavering


@pytest.fixture
def store(setting: Setting) -> Iterator[Store]:
    """Open the store of the setting, as a server holds it open."""
    with open_store(setting.workspace) as opened:
        yield opened
