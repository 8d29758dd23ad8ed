"""A made-up workspace in which cases with many findings fail more often."""

import csv

import numpy as np

from loop.core.ledger import Actor
from loop.core.records import Guide
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import write_version
from loop.prompts.version import PromptVersion
from loop.run.task import run_prompt

EDITOR = Actor(name="Dr. Editor")
WORDS = {
    "pleural_effusion": "effusion",
    "edema": "edema",
    "pneumonia": "pneumonia",
    "atelectasis": "atelectasis",
}
USER = "{% for guide in guides %}{{ guide.name }}\n{% endfor %}\n{{ text }}\n"


def write_tiny(workspace, number, words):
    """Write a version that finds these words, one a label."""
    guides = tuple(
        Guide(label=label, name=word, definition="A finding.", terms=(word,))
        for label, word in words.items()
    )
    made = PromptVersion(
        name="tiny",
        number=number,
        system="Read.\n",
        user=USER,
        guides=guides,
        parent=None,
        author="Dr B. Example",
        time=f"2026-01-05T09:0{number}:00Z",
        why="a reason",
    )
    return write_version(workspace, made)


def make_texts(cases, seed):
    """Return case id to text, and case id to what is right of each label.

    Up to four findings are named; what is said of pneumonia is wrong the more often the
    more there are.
    """
    rng = np.random.default_rng(seed)
    texts, right = {}, {}
    for number in range(cases):
        named = rng.random(len(WORDS)) < rng.choice([0.05, 0.5])
        words = np.array(list(WORDS.values()))[named]
        said = [f"Small {word}." for word in words]
        case_id = f"s{seed}-{number}"
        texts[case_id] = " ".join([f"Report no. {number}.", *said, "Clear otherwise."])
        marks = dict(zip(WORDS, named.tolist(), strict=True))
        marks["pneumonia"] ^= bool(rng.random() < 0.02 + 0.13 * named.sum())
        right[case_id] = marks
    return texts, right


def add_cohort(workspace, folder, name, cases, seed, *, labels=True, role="dev"):
    """Import made-up cases, with their reference or without; return what is right."""
    texts, right = make_texts(cases, seed)
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["case_id", "text", *(WORDS if labels else ())])
        for case_id, text in texts.items():
            marks = right[case_id].values() if labels else ()
            table.writerow([case_id, text, *map(int, marks)])
    options = ImportOptions(name=name, role=role, source="Synthetic", licence="-")
    import_cohort(workspace, path, options, actor=EDITOR)
    return right


def add_patients(workspace, folder, name, patients):
    """Import a development cohort with a reference, and run ``tiny@v2`` on it.

    For each patient, ``patients`` says how many cases are answered correctly, and
    how many are not.
    """
    cases = [
        (f"p{number}", place < wrong)
        for number, (right, wrong) in enumerate(patients)
        for place in range(right + wrong)
    ]
    texts, _ = make_texts(len(cases), 9)
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["case_id", "patient", "text", *WORDS])
        for (patient, fails), (case_id, text) in zip(cases, texts.items(), strict=True):
            marks = {label: word in text for label, word in WORDS.items()}
            marks["pneumonia"] ^= fails
            table.writerow([case_id, patient, text, *map(int, marks.values())])
    options = ImportOptions(name=name, role="dev", source="Synthetic", licence="-")
    import_cohort(workspace, path, options, actor=EDITOR)
    run(workspace, "tiny@v2", name)


def run(workspace, ref, cohort, **options):
    """Run a version over a cohort; return the run's id."""
    return run_prompt(workspace, ref, cohort, **options).run_id
