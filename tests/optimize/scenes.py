"""A small cohort on which a better wording can be found, or on which there is none."""

import csv
import random
from dataclasses import dataclass
from pathlib import Path

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import write_version
from loop.prompts.version import PromptVersion

SEARCHER = Actor(name="Dr A. Example")
USER = "{% for guide in guides %}{{ guide.name }}\n{% endfor %}\n{{ text }}\n"
EFFUSION = "pleural_effusion"
LESION = "lung_lesion"

FILLERS = (
    "Heart size is normal.",
    "The bones are intact.",
    "Mediastinal contours are stable.",
    "The airways are clear.",
    "Spine is straight.",
)


@dataclass(frozen=True)
class Bench:
    """A workspace with the prompt ``tiny`` and a cohort ``dev``."""

    workspace: WorkspacePaths
    folder: Path

    def version(self, number=1, *, parent=None, plan="joint", **terms):
        """Write a version of two labels with these terms; return it."""
        guides = tuple(
            Guide(
                label=label,
                name=name,
                definition=definition,
                terms=tuple(terms.get(label, ())),
            )
            for label, name, definition in (
                (EFFUSION, "Pleural Effusion", "Fluid in the pleural space."),
                (LESION, "Lung Lesion", "A nodule, mass or tumor of the lung."),
            )
        )
        made = PromptVersion(
            name="tiny",
            number=number,
            system="Read.\n",
            user=USER,
            guides=guides,
            plan=plan,
            parent=parent,
            author="Dr B. Example",
            time=f"2026-01-05T09:0{number}:00Z",
            why="a reason",
        )
        return write_version(self.workspace, made)

    def cohort(self, rows, *, name="dev", role="dev", replace=False):
        """Import rows of case id, patient, text, effusion and lesion."""
        path = self.folder / f"{name}.csv"
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["case_id", "patient_id", "text", EFFUSION, LESION])
            writer.writerows(rows)
        options = ImportOptions(
            name=name, role=role, source="Synthetic", licence="-", replace=replace
        )
        import_cohort(self.workspace, path, options, actor=SEARCHER)


def learnable(cases=60):
    """Return rows in which "collection" means an effusion and "nodule" a lesion."""
    rows = []
    for number in range(cases):
        effusion, lesion = number % 3 == 0, number % 4 == 1
        said = [
            "Small collection." if effusion else "No collection is seen.",
            "A nodule is there." if lesion else "The base is imaged.",
            FILLERS[number % len(FILLERS)],
            f"Film number {number}.",
        ]
        text = " ".join(one for one in said if one)
        rows.append([f"c{number:03}", f"p{number // 2}", text, +effusion, +lesion])
    return rows


def hopeless(seed, cases=60):
    """Return rows whose labels have nothing to do with the text."""
    rng = random.Random(seed)
    words = "shadow streak patch haze line spot edge curve band notch"
    nouns, rows = words.split(), []
    for number in range(cases):
        said = [f"A {rng.choice(nouns)} is at the {rng.choice(nouns)}."]
        said += [f"There is a {one} here." for one in rng.sample(nouns, 3)]
        text = " ".join([*said, f"Film number {number}."])
        labels = [+(rng.random() < 0.3), +(rng.random() < 0.3)]
        rows.append([f"c{number:03}", f"p{number}", text, *labels])
    return rows
