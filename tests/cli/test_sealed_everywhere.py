"""No command tells what a sealed holdout says: two that differ only there look alike.

Two workspaces are made that differ in nothing but the labels and votes of the holdout:
what is present in one is absent in the other. Every command is asked in both, and what
it prints and writes must be the same, apart from digests, times and ids.
"""

import csv
import re
import sqlite3
from contextlib import closing

import pytest
import typer
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.evaluate.protocol import protocol_digest, register_protocol
from loop.labels.cohort import read_record
from loop.release.vault import Claimant, open_holdout
from loop.run.task import prepare_run, run_task
from tests.conftest import keep_first_version, shipped_workspace
from tests.review.scenes import add_cohort, add_prompt

pytestmark = pytest.mark.slow

ACTOR = Actor(name="Dr. Approver", role="approver")
TEXTS = [
    ("There is a pleural effusion.", 1, 0),
    ("Cardiomegaly is seen.", 0, 1),
    ("Lungs are clear.", 0, 0),
    ("Effusion and cardiomegaly.", 1, 1),
    ("Normal heart.", 0, 0),
]

ASKED = {
    "agreement": ["{held}", "{held} --pairs", "{held} --against {run}"],
    "run": ["{held} --prompt tiny", "{held} --prompt tiny --dry-run"],
    "evaluate": [
        "{run}",
        "{run} --html {out}/e.html --markdown {out}/e.md --csv {out}/e.csv",
        "{run} --reference 1",
        "{run} --against {dev}",
    ],
    "labels": ["{run} --out {out}/l.csv", "{run} --out {out}/l.parquet --text"],
    "plan": ["{run}", "--cohort {held}", "tiny@v1 --cohort {held} --csv {out}/p.csv"],
    "compare": [
        "{run} {dev}",
        "{dev} {run}",
        "{run} {run}",
        "{run} {run} --label cardiomegaly",
    ],
    "matrix": ["tiny --cohort {held} --engine rules", "tiny --run {run} --run {run}"],
    "score": [
        "--pairs {pairs} --extractor tiny@v1 -m none --resamples 10 --out {out}/s",
        "--pairs {pairs} --extractor tiny@v1 -m none --resamples 10 --bias {dev}",
        "--pairs {pairs} --extractor tiny@v1 -m none --resamples 10 --bias {run}",
        "--pairs {pairs} --extractor tiny@v1 -m none --resamples 10 --bias auto",
    ],
    "failures": ["{run}", "{run} --layout cases --text", "{run} --reference 1"],
    "revise": ["tiny --verdicts {verdicts} --cohort {held} --why test"],
    "history": ["tiny", "tiny --events", "tiny --csv {out}/h.csv"],
    "export": ["tiny@v1 --to openai-batch --out {out}/x --cohort {held}"],
    "show": ["{run}", "{run} h1", "{run} h1 --raw", "{run} h1 --json"],
    "audit": ["", "--export {out}/audit.json"],
    "doctor": [""],
    "cohort check": ["", "{held} dev"],
    "cohort show": ["", "{held}"],
    "cohort seal": ["{held} --why test"],
    "cohort votes": [
        "{held} {votes} --dry-run",
        "{held} {votes} --dry-run --need 2",
        "{held} {votes} --dry-run --need 3",
        "{held} {votes} --replace --dry-run",
        "{held} {votes}",
    ],
    "cohort import": [
        "{cases} --name {held} --role holdout --replace --dry-run",
        "{cases} --name {held} --role dev --replace --dry-run",
        "{cases} --name other --role dev --dry-run --votes {votes}",
    ],
    "reading progress": ["{held}"],
    "reading next": ["{held} --reader A", "{held} --reader Z --case h1"],
    "reading publish": ["{held}"],
    "reading disputes": ["{held}", "{held} --anonymous", "{held} --open"],
    "reading adjudicate": ["{held} {decisions} --why test"],
    "verdict add": ["{verdicts} --cohort {held}", "{verdicts} --run {run} --dry-run"],
    "verdict list": ["--cohort {held}"],
    "verdict export": ["{out}/verdicts.yaml --cohort {held}"],
    "draft begin": ["tiny --cohort {held} --verdicts {verdicts} --why test"],
    "draft check": ["tiny@draft:none --cohort {held}"],
}
"""Verb to the ways in which it could be asked about the holdout."""

LEFT_OUT = {
    "demo": "makes a workspace of its own",
    "init": "makes a workspace of its own",
    "review": "serves the workbench, which has tests of its own",
    "serve": "starts a server of a model",
    "freeze": "is what opens a holdout",
    "cohort retire": "is what gives a holdout up",
}


def leaves(command, path=()):
    """Yield the name of every command."""
    for name, sub in getattr(command, "commands", {}).items():
        if hasattr(sub, "commands"):
            yield from leaves(sub, (*path, name))
        else:
            yield " ".join((*path, name))


class Scene:
    """One workspace with a sealed holdout, a run on it, and files to ask with."""

    def __init__(self, folder, flip):
        self.root = folder
        self.place = WorkspacePaths(shipped_workspace(folder / "ws").root)
        keep_first_version(self.place)
        (folder / "out").mkdir()
        self._fill(flip)
        self.words = {
            "held": "held",
            "out": str(folder / "out"),
            "votes": str(self._write("votes.csv", _ballots("Z", lambda n: n % 2))),
            "cases": str(folder / "cases.csv"),
            "pairs": str(
                self._write(
                    "pairs.csv",
                    [["id", "reference", "candidate"]]
                    + [[f"h{n}", t, TEXTS[0][0]] for n, (t, *_) in enumerate(TEXTS)],
                )
            ),
            "decisions": str(
                self._write(
                    "decisions.csv",
                    [["case_id", "label", "value"], ["h0", "cardiomegaly", "present"]],
                )
            ),
            "verdicts": str(folder / "verdicts.yaml"),
            **self.runs,
        }
        (folder / "verdicts.yaml").write_text(
            "verdicts:\n- label: cardiomegaly\n  judgement: reference_wrong\n"
            "  case_ids: [h0]\n  reviewer: Dr A\n  correct_value: present\n"
        )

    def _fill(self, flip):
        place = self.place
        add_prompt(place, 1, "effusion")
        dev = [(f"d{n}", f"{t} Seen again.", *v) for n, (t, *v) in enumerate(TEXTS)]
        add_cohort(place, self.root, dev, name="dev")
        held = [
            (f"h{n}", t, *(int(x) ^ flip for x in v)) for n, (t, *v) in enumerate(TEXTS)
        ]
        add_cohort(place, self.root, held, name="held", role="holdout")
        (self.root / "held.csv").unlink()
        bare = [["case_id", "text"], *([row[0], row[1]] for row in held)]
        self._write("cases.csv", bare)
        register_protocol(place, ACTOR)
        for reader in "ABC":
            said = _ballots(reader, lambda n: (n % 2) ^ flip)
            path = self._write(f"{reader}.csv", said)
            self.call("cohort votes", "held", str(path))
            path.unlink()
        one = run_task(place, prepare_run(place, "tiny@v1", "dev")).run_id
        opening = open_holdout(place, _candidate(place), ACTOR, "a test")
        two = run_task(place, prepare_run(place, "tiny@v1", opening)).run_id
        self.runs = {"dev": one, "run": two}

    def _write(self, name, rows):
        path = self.root / name
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
        return path

    def call(self, verb, *words):
        """Return exit code and everything printed."""
        line = [*verb.split(), *words, "--workspace", str(self.place.root)]
        result = CliRunner().invoke(app, line)
        assert result.exc_info is None or result.exc_info[0] is not RecursionError
        return result.exit_code, result.output, str(result.exception or "")

    def ask(self, verb, words):
        """Return what a verb says, with everything that must differ taken out."""
        filled = words.format(**self.words).split()
        return [self._same(str(part)) for part in self.call(verb, *filled)]

    def written(self):
        """Return what every file says that is not sealed, and the rows of the store."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            kept = path.is_file() and not path.name.endswith((".sealed", ".lock"))
            if kept and "keys" not in path.parts and "store.db" not in path.name:
                name = self._same(path.relative_to(self.root).as_posix())
                # Runs of one second lie in an order that their digests make.
                said = self._same(path.read_bytes().decode("utf-8", "replace"))
                found[name] = sorted([*found.get(name, []), said])
        with closing(sqlite3.connect(self.place.store)) as database:
            found["store"] = sorted(map(self._same, database.iterdump()))
        return found

    def _same(self, text):
        text = text.replace(str(self.root), "ROOT")
        # Two of one second get a number behind them.
        text = re.sub(r"\d{8}-\d{6}-[0-9a-f]{6}(-\d+)?", "RUN", text)
        text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?", "TIME", text)
        text = re.sub(r"\d{8}T\d{6}Z-\w+", "TIME", text)
        # How long something took may be 2.5, 1e-05 or 9.9e+00.
        number = r"X'[0-9A-F]+'|\d+(\.\d+)?e[-+]\d+|\d+\.\d+|\d+ (ms|s)\b"
        text = re.sub(number, "N", text)
        # YAML quotes a digest that happens to look like a number.
        return re.sub(r"'?\b[0-9a-f]{7,64}\b'?", "HEX", text)


def _ballots(reader, value):
    words = {0: "absent", 1: "present"}
    rows = [
        [reader, f"h{n}", label, words[value(n + at)]]
        for n in range(len(TEXTS))
        for at, label in enumerate(("pleural_effusion", "cardiomegaly"))
    ]
    return [["reader", "case_id", "label", "value"], *rows]


def _candidate(place):
    from loop.prompts.catalog import read_version

    record = read_record(place, "held")
    return Claimant(
        prompt="tiny@v1",
        prompt_digest=read_version(place, "tiny@v1").digest,
        engine_digest="e" * 64,
        protocol_digest=protocol_digest(place),
        cohort="held",
        cohort_digest=str(record.added["cohort_digest"]),
        reference_digest=str(record.newest_digest),
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Make the two workspaces."""
    folder = tmp_path_factory.mktemp("sealed")
    made = []
    for flip, name in enumerate(("one", "two")):
        (folder / name).mkdir()
        made.append(Scene(folder / name, flip))
    return made


VERBS = sorted(set(leaves(typer.main.get_command(app))) - set(LEFT_OUT))


def test_the_cases_of_a_label_are_refused_on_a_holdout_with_the_reason(both):
    """They are not left out of an answer without a word."""
    run = both[0].words["run"]
    code, told, why = both[0].call("compare", run, run, "--label", "cardiomegaly")
    assert (code, told) == (1, "")
    assert "is a holdout: its labels and votes are sealed" in why


@pytest.mark.parametrize("verb", VERBS)
def test_no_command_tells_one_holdout_from_the_other(both, verb):
    """Also in JSON; a verb that is not listed is asked about the holdout by name."""
    for words in ASKED.get(verb, ["{held}"]):
        for more in ("", " --json") if verb in ASKED else ("",):
            one, two = (scene.ask(verb, words + more) for scene in both)
            assert one == two, words


def test_no_file_tells_one_holdout_from_the_other(both):
    """After all that was asked: nothing written, no row of the store."""
    one, two = (scene.written() for scene in both)
    assert one.keys() == two.keys()
    assert {
        name: {*one[name]} ^ {*two[name]} for name in one if one[name] != two[name]
    } == {}


def test_the_two_do_differ_where_it_is_allowed(both):
    """The comparison is of two holdouts that say the opposite."""
    from loop.labels.reference import reference_path
    from loop.labels.sealing import unseal

    one, two = (
        unseal(scene.place, reference_path(scene.place, "held", 1)) for scene in both
    )
    assert one != two
