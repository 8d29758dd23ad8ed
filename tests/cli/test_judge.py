"""The verb ``judge``, end to end on small files, without a model and with one."""

import csv
import json

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.records import Completion
from loop.engines import base
from tests.judge.scenes import CANDIDATES, REFERENCES, ToldJudge, tell
from tests.score.experts.radpref_folder import candidate, case, write_folder


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    """Work in an empty folder outside any workspace, with a file of pairs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pairs.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["id", "reference", "candidate", "system"])
        for system in ("A", "B"):
            for name, text in REFERENCES.items():
                said = CANDIDATES[name] if system == "A" else text
                table.writerow([name, text, said, system])
    return path


def call(*arguments):
    """Run the verb."""
    return CliRunner().invoke(app, ["judge", *map(str, arguments)])


def test_every_judge_is_listed():
    """With its contract, whether `rules` answers it, and what it reads."""
    done = call("--list")
    assert done.exit_code == 0
    table = done.stdout.partition("\n\n")[0].splitlines()[2:]
    rows = {line.split()[0]: line.split() for line in table}
    assert rows["green@v1"][1:] == ["green_sections", "yes", "6", "extractor@v11"]
    assert rows["green_text@v1"][2] == "no"
    assert rows["rubric@v1"][2:4] == ["yes", "-"]
    assert rows["rating@v1"][2:] == ["no", "-", "-"]
    assert "chexprompt: GREEN-EC (lower)" in done.stdout
    listed = json.loads(call("--list", "--json").stdout)["judges"]
    assert [one["prompt"] for one in listed] == sorted(rows)


def test_pairs_are_judged_without_a_model(pairs):
    """A copy is perfect; the other system's errors are counted by category."""
    done = call("green", "--pairs", pairs, "--out", "judged")
    assert done.exit_code == 0, done.output
    assert "8 pairs, judged by green@v1 with rules" in done.stdout
    assert "`rules` is no language model" in done.stdout
    assert "location                      1 + 0  0 + 0" in done.stdout
    data = json.loads((pairs.parent / "judged" / "judge.json").read_text())
    values = {(one["metric"], one["system"]): one for one in data["scores"]}
    assert values["green_green", "B"]["value"] == 1
    assert values["green_green", "A"]["value"] == 0.375
    assert values["green_errors", "A"]["direction"] == "lower"
    assert values["green_errors", "A"]["value"] == 0.75
    text = (pairs.parent / "judged" / "counts.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    (first,) = (one for one in rows if (one["id"], one["system"]) == ("a", "A"))
    assert (first["matched"], first["significant.location"]) == ("0", "1")
    again = call("green", "--pairs", pairs, "--out", "judged")
    assert again.exit_code == 0


def test_files_are_joined_as_for_score(pairs, tmp_path):
    """References and candidates by id; an id of one side is no pair."""
    for name, texts in (("ref", REFERENCES), ("cand", CANDIDATES)):
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows([("id", "text"), *texts.items()])
    done = call("one_pass", "A=cand.csv", "--reference", "ref.csv", "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["systems"][0]["system"] == "A"
    assert data["systems"][0]["answered"] == 4


def test_two_parsers_stand_side_by_side(pairs, monkeypatch):
    """The published one finds no error where a full stop is missing."""
    answer = (
        "[Explanation]: x\n\n[Clinically Significant Errors]:\n(b) Omitted: 2\n\n"
        "[Clinically Insignificant Errors]:\nNone\n\n[Matched Findings]:\n2. a; b"
    )
    tell(
        monkeypatch, dict.fromkeys([*CANDIDATES.values(), *REFERENCES.values()], answer)
    )
    done = call("green_text", "--pairs", pairs, "-e", "told", "--parser", "official")
    assert done.exit_code == 0, done.output
    assert "A, published parser" in done.stdout
    (line,) = (one for one in done.stdout.splitlines() if one.startswith("GREEN of"))
    assert "0.500" in line and "1.000" in line


def test_a_judge_that_reads_context_is_told_of_the_patients_of_radpref(
    tmp_path, monkeypatch
):
    """Age, sex and indication reach the prompt; a sample keeps them with their case."""
    monkeypatch.chdir(tmp_path)
    cases = [
        {**case(name, 1), "PatientAge": age, "PatientSex": "F", "Indication": "Cough"}
        for name, age in (("one", "072Y"), ("two", "031Y"), ("three", "005Y"))
    ]
    rated = {one["id"]: {"C1": candidate(5), "C2": candidate(2)} for one in cases}
    write_folder(tmp_path / "radpref", cases, {1: rated})
    seen = {}

    class Seeing(ToldJudge):
        def complete(self, prompts):
            for index, prompt in enumerate(prompts):
                texts = prompt.item.variables
                seen[texts["reference"]] = texts["context"]
                lists = ("matched_findings", "missed_findings", "false_findings")
                yield index, Completion(json.dumps({name: [] for name in lists}))

    monkeypatch.setitem(base._FACTORIES, "seeing", lambda *_: Seeing({}, []))
    done = call("crimson", "--radpref", "radpref", "-e", "seeing")
    assert done.exit_code == 0, done.output
    assert "judged without context" not in done.stdout
    assert {name: known.splitlines()[0] for name, known in seen.items()} == {
        "Reference one.": "Age: 72 years",
        "Reference two.": "Age: 31 years",
        "Reference three.": "Age: 5 years",
    }
    everyone = dict(seen)
    seen.clear()
    done = call("crimson", "--radpref", "radpref", "-e", "seeing", "--sample", "2")
    assert done.exit_code == 0, done.output
    assert len(seen) == 2 and seen.items() <= everyone.items()


def test_what_cannot_be_judged_is_no_success(pairs):
    """Free text for `rules`: exit code 1, and the reason."""
    done = call("green_text", "--pairs", pairs)
    assert done.exit_code == 1
    assert "no pair was judged" in done.output
    assert "free text" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a judge"),
        (("green",), "give candidates and their references"),
        (("green", "--pairs", "pairs.csv", "--weights", "0", "1", "1"), "--weights"),
    ],
)
def test_a_wrong_use_is_told(pairs, arguments, said):
    """Exit code 2, before anything is asked."""
    done = call(*arguments)
    assert done.exit_code == 2
    assert said in done.output


def test_an_unknown_judge_is_refused_by_name(pairs):
    """With the ones that there are."""
    done = call("gren", "--pairs", pairs)
    assert isinstance(done.exception, DataError)
    assert "green" in str(done.exception)


def test_what_it_writes_is_held_against_experts(pairs, tmp_path):
    """Scores by their direction, counts against counts."""
    assert call("green", "--pairs", pairs, "--out", "judged").exit_code == 0
    rated = ["id,system,rater,score"]
    counted = ["id,system,rater,category,significance,count"]
    for system, points, missed in (("A", "1121", "1111"), ("B", "5555", "0000")):
        for name, score, count in zip("abcd", points, missed, strict=True):
            rated += [f"{name},{system},r{n},{score}" for n in (1, 2)]
            counted += [f"{name},{system},r1,omission,significant,{count}"]
    (tmp_path / "ratings.csv").write_text("\n".join(rated))
    (tmp_path / "errors.csv").write_text("\n".join(counted))
    done = CliRunner().invoke(
        app,
        [
            *("meta-eval", "judged/per_pair.csv", "--ratings", "ratings.csv"),
            *("--errors", "errors.csv", "--counts", "judged/counts.csv", "--json"),
        ],
    )
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    tau = {one["metric"]: one["consensus"]["tau_b"]["value"] for one in data["metrics"]}
    assert tau["green_errors"] > 0.5 and tau["green_green"] > 0.5
    # Of significant errors, and of errors of either significance.
    assert len(data["judge_errors"]) == 2
