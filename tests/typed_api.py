"""What people write with ranloop from Python: mypy reads it, and the tests run it."""

from pathlib import Path
from typing import assert_type

import pandas as pd

from loop import Workspace
from loop.labels.importing.importer import ImportReport
from loop.release.backup import BackedUp
from loop.release.freeze import Frozen
from loop.review.revise.phrases import PhraseTryout
from loop.review.revise.revision import Revision
from loop.review.revise.tryout import PairsTryout, Tryout
from loop.review.start import FirstVersion
from loop.run.execute import RunSummary
from loop.workspace import RunEvaluation


def make_study(folder: Path) -> Workspace:
    """Return a workspace from its cases to a release."""
    study = Workspace.init(folder, actor="Dr B")
    cases = {
        "case_id": [f"{n:03}" for n in range(70)],
        "text": [
            f"Study {n}. {'Normal chest' if n % 5 else 'Wet lungs'}." for n in range(70)
        ],
        "Edema": ["absent" if n % 5 else "present" for n in range(70)],
    }
    assert_type(study.add_cohort(pd.DataFrame(cases), "dev"), ImportReport)
    assert_type(study.run("extractor", "dev"), RunSummary)
    found = study.evaluate()
    assert_type(found, RunEvaluation)
    assert not found.passed
    failing = study.failures(label="edema")
    assert_type(failing, pd.DataFrame)
    verdict = {
        "case": failing["case_id"].iloc[0],
        "label": "edema",
        "judgement": "model_wrong",
        "terms": ["wet lungs"],
    }
    study.add_verdicts([verdict], run="latest")
    revised = study.revise("extractor", "dev", why="a word of the ward")
    assert_type(revised, Revision)
    assert revised.version and revised.version.ref == "extractor@v2"
    assert_type(study.try_prompt("extractor", text="wet lungs"), Tryout)
    assert_type(study.try_pairs("extractor", cohort="dev"), PairsTryout)
    assert_type(
        study.try_phrase("extractor", "wet", label="edema", cohort="dev"), PhraseTryout
    )
    assert_type(study.new_key(), str)
    stopped = study.freeze("extractor", "dev", why="for the ward")
    assert_type(stopped, Frozen)
    assert stopped.folder is None and stopped.objections
    study.freeze("extractor", "dev", why="for the ward", override="a test")
    return study


def keep_study(study: Workspace, folder: Path) -> Workspace:
    """Return a workspace as it comes back from a backup, after some upkeep."""
    second = study.new_prompt("kept", source="extractor@v1", why="to try things")
    assert_type(second, FirstVersion)
    assert_type(study.show_prompt(second.version.ref), str)
    assert_type(study.upgrade(dry_run=True), pd.DataFrame)
    assert_type(study.clean(completions=True), pd.DataFrame)
    made = study.backup(folder / "monday.ranloop", "five quiet wards at night")
    assert_type(made, BackedUp)
    return Workspace.restore(made.path, folder / "again", "five quiet wards at night")
