"""Twelve cases and two versions of a prompt, few enough to count by hand.

Of an effusion the first version finds c0 to c2 and misses c3, the second finds all;
both invent c7, and the reference says nothing of c11. Of a lesion the first finds c6
and misses c4, c5 and c10; the second finds c4 and c5, misses c6 and is unsure of c10;
the reference is unsure of c11.
"""

import json
import shutil

from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion
from loop.engines import base
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

WHO = {"RANLOOP_ACTOR": "Dr Runner"}
"""Who calls the verbs, whatever the name of the user of this machine."""


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
            known[words] = CliRunner(env=WHO).invoke(app, [*words, *where])
        return known[words]

    first = made.version(**{EFFUSION: ["collection"], LESION: ["mass"]})
    made.cohort(
        (f"c{n}", f"p{n // 2}", f"{text} Film {n}.", effusion, lesion)
        for n, (text, effusion, lesion) in enumerate(TEXTS)
    )
    assert call("run", "tiny@v1", "--cohort", "dev").exit_code == 0
    call("evaluate", "latest:tiny@v1")
    terms = {EFFUSION: ["collection", "fluid"], LESION: ["nodule"]}
    made.version(2, parent=first.digest, **terms)
    assert call("run", "tiny@v2", "--cohort", "dev").exit_code == 0
    call("evaluate", "latest:tiny@v2")
    return place, call


class Failing:
    """Says nothing readable of c0, fails on c1, misses c4 and invents c7."""

    def identity(self):
        """Return the one model there is."""
        return {"engine": "failing"}

    def complete(self, prompts):
        """Yield the answers in order."""
        for index, prompt in enumerate(prompts):
            yield index, _answer(prompt.item.id)


def _answer(case_id):
    if case_id == "c0":
        return Completion("no JSON")
    if case_id == "c1":
        return Completion("", "error", "timed out")
    found = {"c2": "collection", "c7": "collection", "c3": "fluid"}
    lesions = {"c5": "nodule", "c6": "mass", "c10": "nodule"}
    answers = {
        label: {"value": "present", "evidence": words[case_id]}
        if case_id in words
        else "absent"
        for label, words in ((EFFUSION, found), (LESION, lesions))
    }
    return Completion(json.dumps(answers))


def let_fail(monkeypatch):
    """Register that engine for one test."""
    monkeypatch.setitem(base._FACTORIES, "failing", lambda *_: Failing())
    return ("run", "tiny@v2", "--cohort", "dev", "--engine", "failing")
