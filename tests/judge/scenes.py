"""Judges that answer as they are told, and pairs for them."""

import csv
import json

from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.records import Completion
from loop.engines import base

REFERENCES = {
    "a": "Small left pleural effusion. No pneumothorax.",
    "b": "Cardiomegaly with mild pulmonary edema.",
    "c": "The lungs are clear. Normal heart.",
    "d": "Right upper lobe mass.",
}
CANDIDATES = {
    "a": "Small right pleural effusion. No pneumothorax.",
    "b": "Cardiomegaly.",
    "c": "The lungs are clear. Normal heart.",
    "d": "",
}


def errors(*said, matched=1, **more):
    """Return an answer of the contract ``error_list``; what is said is a category."""
    listed = [
        {
            "category": name,
            "significant": significant,
            "reference": "",
            "candidate": "",
            "why": f"error {number}",
        }
        for number, (name, significant) in enumerate(said)
    ]
    return json.dumps({"errors": listed, "matched_findings": matched, **more})


class ToldJudge:
    """Answers by the candidate's text; remembers what it was asked."""

    def __init__(self, answers, asked, model=""):
        self.answers, self.asked, self.model = answers, asked, model

    def identity(self):
        """Return the model: two with one name are the same engine."""
        return {"engine": "told", "model": self.model}

    def complete(self, prompts):
        """Yield the answers in order."""
        for index, prompt in enumerate(prompts):
            candidate = prompt.item.variables["candidate"]
            self.asked.append(candidate)
            answer = self.answers.get(candidate, errors())
            known = isinstance(answer, Completion)
            yield index, answer if known else Completion(answer)


def tell(monkeypatch, answers):
    """Register the engine ``told`` for one test, and return what it is asked."""
    asked = []
    monkeypatch.setitem(
        base._FACTORIES, "told", lambda model, _: ToldJudge(answers, asked, model)
    )
    return asked


TEXTS = (
    ("Small left pleural effusion.", "Small left pleural effusion."),
    ("Small left pleural effusion.", "Small right pleural effusion."),
    ("Large right pneumothorax.", "No pneumothorax."),
    ("Cardiomegaly.", "Cardiomegaly. Right pneumothorax."),
    ("The lungs are clear.", "The lungs are clear."),
    ("Mild pulmonary edema.", "Mild pulmonary edema. Cardiomegaly."),
    ("Left lower lobe consolidation.", "Left lower lobe consolidation."),
    ("Right upper lobe mass.", "The lungs are clear."),
)
POINTS = (5, 3, 1, 2, 5, 3, 5, 1)
MARKED = {
    1: ("location",),
    2: ("omission",),
    3: ("false_finding",),
    5: ("false_finding",),
    7: ("omission",),
}


def table(path, header, rows):
    """Write a table and return its path."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


def call(workspace, *arguments):
    """Run a verb in the workspace."""
    return CliRunner().invoke(
        app, [*map(str, arguments), "--workspace", str(workspace.root)]
    )


def rate(workspace, tmp_path):
    """Give a workspace eight pairs, two raters, marked errors, and a judge."""
    ids = [f"p{n}" for n in range(len(TEXTS))]
    pairs = table(
        tmp_path / "pairs.csv",
        ("id", "reference", "candidate"),
        [(name, *texts) for name, texts in zip(ids, TEXTS, strict=True)],
    )
    points = table(
        tmp_path / "ratings.csv",
        ("case_id", "rater", "dimension", "points", "scale"),
        [
            (name, rater, "overall", min(5, score + step), "1-5")
            for rater, step in (("r1", 0), ("r2", 1))
            for name, score in zip(ids, POINTS, strict=True)
        ],
    )
    marked = table(
        tmp_path / "errors.csv",
        ("case_id", "rater", "category", "significance", "finding"),
        [
            (ids[n], rater, category, "significant" if category else "", "zebra")
            if category
            else (ids[n], rater, "", "", "")
            for rater in ("r1", "r2")
            for n in range(len(ids))
            for category in MARKED.get(n, ("",))
        ],
    )
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    done = call(
        workspace,
        *("cohort", "import", pairs, "--name", "rp", *options),
        *("--ratings", points, "--errors", marked),
    )
    assert done.exit_code == 0, done.output
    made = call(workspace, "prompt", "new", "mine", "--from", "green@v1")
    assert made.exit_code == 0, made.output
    return workspace


def as_pool(workspace, tmp_path, name="pool", role="shots", marks=True):
    """Import other rated pairs with the role shots; return what was said.

    The word zebra is in all of their texts and in nothing else.
    """
    pairs = table(
        tmp_path / f"{name}.csv",
        ("id", "reference", "candidate", "patient"),
        [
            ("q1", "Zebra nodule on the left.", "Zebra nodule on the right.", "x1"),
            ("q2", "Zebra nodule on the left.", "No nodule.", "x1"),
            ("q3", "The zebra view is normal.", "The zebra view is normal.", "x2"),
        ],
    )
    points = table(
        tmp_path / f"{name}-ratings.csv",
        ("case_id", "rater", "dimension", "points", "scale"),
        [
            (case, rater, "overall", given, "1-5")
            for case, both in (("q1", (2, 3)), ("q2", (1, 1)), ("q3", (5, 5)))
            for rater, given in zip(("r1", "r2"), both, strict=True)
        ],
    )
    marked = table(
        tmp_path / f"{name}-errors.csv",
        ("case_id", "rater", "category", "significance", "finding"),
        [
            ("q1", "r1", "location", "significant", "zebra side"),
            ("q1", "r2", "location", "significant", "zebra side"),
            ("q1", "r2", "severity", "insignificant", "zebra size"),
            ("q2", "r1", "omission", "significant", "zebra nodule"),
            ("q3", "r1", "", "", ""),
        ],
    )
    more = ("--errors", marked) if marks else ()
    return call(
        workspace,
        *("cohort", "import", pairs, "--name", name, "--role", role),
        *("--source", "made up", "--licence", "none", "--ratings", points, *more),
    )
