"""A small workspace in which versions and drafts of one prompt were really run."""

import csv
from dataclasses import dataclass
from pathlib import Path

from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.recording import record_evaluation
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import write_version
from loop.prompts.version import PromptVersion
from loop.run.task import run_prompt

EDITOR = Actor(name="Dr A. Example")
USER = "{% for guide in guides %}{{ guide.name }}\n{% endfor %}\n{{ text }}\n"


@dataclass(frozen=True)
class Trials:
    """A workspace with a cohort ``dev`` of 20 cases, and ways to try wordings."""

    workspace: WorkspacePaths
    folder: Path

    def version(self, number, *terms, parent=None, draft=""):
        """Write a version, or a draft, that reads `terms`; return it."""
        guide = Guide(
            label="pleural_effusion",
            name="Pleural Effusion",
            definition="Fluid in the pleural space.",
            terms=terms,
        )
        made = PromptVersion(
            name="tiny",
            number=0 if draft else number,
            draft=draft,
            system="Read.\n",
            user=USER,
            guides=(guide,),
            parent=parent.digest if parent else None,
            author="Dr B. Example",
            time=f"2026-01-05T09:0{number}:00Z",
            why="a reason",
        )
        return write_version(self.workspace, made)

    def run(self, ref, **options):
        """Run a version over the cohort; return the run's id."""
        return run_prompt(self.workspace, ref, "dev", **options).run_id

    def evaluate(self, run):
        """Score a run into the ledger."""
        evaluation = evaluate_run(self.workspace, run, resamples=20)
        record_evaluation(self.workspace, evaluation, EDITOR)

    def commit(self, version, *, check=None):
        """Record a version as committed."""
        payload = {"digest": version.digest, "parent": version.parent}
        payload |= {"verdicts": ["a", "b"], "check": check or {}}
        self._record("draft_committed", version.ref, payload)

    def reject(self, draft, *objections, check=None):
        """Record a draft as checked and kept."""
        payload = {"digest": draft.digest, "parent": draft.parent}
        payload |= {"parent_ref": "tiny@v1", "objections": list(objections)}
        payload |= {"verdicts": ["c"], "check": check or {}}
        self._record("draft_rejected", draft.ref, payload)

    def _record(self, action, subject, payload):
        event = Event(action=action, subject=subject, reason="why", payload=payload)
        append_event(self.workspace.ledger, event, EDITOR)

    def cohort(self, *, replace=False, cases=20):
        """Import the cohort."""
        path = self.folder / "dev.csv"
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["case_id", "text", "pleural_effusion"])
            for number in range(cases // 4):
                writer.writerow([f"e{number}", f"Small effusion, no. {number}.", 1])
                writer.writerow([f"f{number}", f"Fluid at the base, no. {number}.", 1])
            for number in range(cases // 2):
                writer.writerow([f"n{number}", f"Clear lungs, no. {number}.", 0])
        options = ImportOptions(
            name="dev", role="dev", source="Synthetic", licence="-", replace=replace
        )
        import_cohort(self.workspace, path, options, actor=EDITOR)


def tried_check(*runs, cohort="dev", engine="rules"):
    """Return what a ledger entry keeps of a check that ran."""
    return {"cohort": cohort, "engine": engine, "runs": list(runs)}
