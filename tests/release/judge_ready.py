"""A workspace in which a judge is ready to be released: rated pairs in two cohorts."""

from __future__ import annotations

from dataclasses import dataclass

from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.release.keys import make_key
from tests.judge.scenes import POINTS, TEXTS, call, table
from tests.release.ready import APPROVER, AUTHOR, Ready

RULES = """
judging:
  score: own
  threshold: 0.5
  min_units: 4
  f1_floors: {omission: 0.4}
"""

HELD = (
    ("Moderate right pleural effusion.", "Moderate right pleural effusion."),
    ("Moderate right pleural effusion.", "Moderate left pleural effusion."),
    ("Small left pneumothorax.", "There is no pneumothorax."),
    ("Enlarged cardiac silhouette.", "Enlarged cardiac silhouette. Rib fracture."),
    ("No consolidation or effusion.", "No consolidation or effusion."),
    ("Bilateral atelectasis.", "Bilateral atelectasis. Left pneumothorax."),
    ("Right lower lobe pneumonia.", "Right lower lobe pneumonia."),
    ("Left upper lobe nodule.", "Both lungs are well aerated."),
)
"""Pairs like those of `TEXTS`, error by error, of other patients."""

ERRORS = {
    1: "location",
    2: "omission",
    3: "false_finding",
    5: "false_finding",
    7: "omission",
}


@dataclass
class JudgeReady(Ready):
    """The workspace, and how its approver freezes a judge there."""

    def request(self, **changes):
        """Return the wish to release the judge on the holdout."""
        wish = {"prompt": "mine@v1", "cohort": "rp", "holdout": "rp_test"}
        return super().request(**(wish | changes))

    def add_pairs(self, name, role, texts, points=POINTS, prefix="p", second=None):
        """Import rated pairs; two pairs of one reference are of one patient.

        The second rater gives `second`, or a point more than the first.
        """
        ids = [f"{prefix}{n}" for n in range(len(texts))]
        references = [reference for reference, _ in texts]
        path = table(
            self.folder / f"{name}.csv",
            ("id", "reference", "candidate", "patient"),
            [
                (one, *pair, f"{prefix}-pat{references.index(pair[0])}")
                for one, pair in zip(ids, texts, strict=True)
            ],
        )
        options = ImportOptions(name=name, role=role, source="made up", licence="-")
        import_cohort(self.workspace, path, options, actor=AUTHOR)
        if points is None:
            return
        ratings = table(
            self.folder / f"{name}-ratings.csv",
            ("case_id", "rater", "dimension", "points", "scale"),
            [
                (one, rater, "overall", score, "1-5")
                for rater, given in (
                    ("r1", points),
                    ("r2", second or [min(5, score + 1) for score in points]),
                )
                for one, score in zip(ids, given, strict=True)
            ],
        )
        marked = table(
            self.folder / f"{name}-errors.csv",
            ("case_id", "rater", "category", "significance", "finding"),
            [
                (one, rater, ERRORS[n], "significant", "zebra")
                if n in ERRORS
                else (one, rater, "", "", "")
                for rater in ("r1", "r2")
                for n, one in enumerate(ids)
            ],
        )
        done = call(
            self.workspace,
            *("cohort", "ratings", name, "--ratings", ratings, "--errors", marked),
        )
        assert done.exit_code == 0, done.output


def make_judge_ready(
    workspace, folder, *, held=POINTS, judge="green@v1", rules=RULES, shots=()
) -> JudgeReady:
    """Make it; `held` are the points on the holdout, None for none.

    `shots` are options of the first version.
    """
    made = JudgeReady(workspace, folder)
    text = workspace.protocol.read_text()
    workspace.protocol.write_text(text + rules)
    begun = call(
        workspace,
        *("prompt", "new", "mine", "--from", judge, "--actor", AUTHOR.name),
        *shots,
    )
    assert begun.exit_code == 0, begun.output
    made.add_pairs("rp", "dev", TEXTS)
    made.add_pairs("rp_test", "holdout", HELD, held, prefix="h")
    made.key = make_key(workspace, APPROVER.name, APPROVER.role, AUTHOR)
    return made
