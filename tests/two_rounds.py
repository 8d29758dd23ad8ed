"""Twelve cases and two versions of a prompt, few enough to count by hand.

Of an effusion the first version finds c0 to c2 and misses c3, the second finds all;
both invent c7, and the reference says nothing of c11. Of a lesion the first finds c6
and misses c4, c5 and c10; the second finds c4 and c5, misses c6 and is unsure of c10;
the reference is unsure of c11.
"""

import shutil

from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.paths import WorkspacePaths
from tests.optimize.scenes import EFFUSION, LESION, Bench

TEXTS = (
    *(("Small collection.", 1, 0),) * 3,
    ("Free fluid.", 1, 0),
    *(("A nodule is there.", 0, 1),) * 2,
    ("A mass is there.", 0, 1),
    ("Small collection.", 0, 0),
    *(("The lungs are clear.", 0, 0),) * 2,
    ("Possible nodule.", 0, 1),
    ("The lungs are clear.", "", -1),
)
"""Of each case c0, c1 and so on: what it says, and its reference for both labels."""


def make_rounds(first_version, folder):
    """Return a function that calls a verb where both versions were run and evaluated.

    Two cases are of one patient. Each call is made once, and its result kept.
    """
    place = WorkspacePaths(folder / "ws")
    shutil.copytree(first_version.root, place.root)
    made = Bench(place, folder)
    known = {}

    def call(*words):
        if words not in known:
            where = ("--workspace", str(place.root))
            known[words] = CliRunner().invoke(app, [*words, *where])
        return known[words]

    first = made.version(**{EFFUSION: ["collection"], LESION: ["mass"]})
    made.cohort(
        (f"c{n}", f"p{n // 2}", f"{text} Film {n}.", effusion, lesion)
        for n, (text, effusion, lesion) in enumerate(TEXTS)
    )
    call("run", "tiny@v1", "--cohort", "dev")
    call("evaluate", "latest:tiny@v1")
    terms = {EFFUSION: ["collection", "fluid"], LESION: ["nodule"]}
    made.version(2, parent=first.digest, **terms)
    call("run", "tiny@v2", "--cohort", "dev")
    call("evaluate", "latest:tiny@v2")
    return place, call
