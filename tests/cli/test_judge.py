"""The verb ``judge``, end to end on small files, without a model and with one."""

import csv
import json
import re

import pytest
from typer.testing import CliRunner

from loop.cli import judge
from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.core.records import Completion
from loop.documents.svg import as_file
from loop.engines import base
from loop.judge.document import JudgeOptions, judge_systems
from loop.judge.judge import Judge
from loop.judge.surfaces import surfaces_svg
from loop.labels.taxonomy import read_taxonomy
from loop.release.load import RunRequest
from loop.score.experts.error_counts import Empty
from loop.score.joining import join_texts
from loop.score.metrics.registry import METRICS
from loop.score.metrics.score_sheet import MetricResult
from loop.stats.intervals import Estimate
from tests.judge.scenes import (
    CANDIDATES,
    REFERENCES,
    ToldJudge,
    errors,
    rate,
    tell,
)
from tests.judge.scenes import call as run_verb
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


PRINTED = """\
8 pairs, judged by green@v1 with rules

score                                      better                     A      B
-------------------------------  ----------------  --------------------  -----
GREEN of green@v1                higher is better  0.375 [0.000, 0.750]  1.000
GREEN-F1 of green@v1             higher is better  0.417 [0.000, 0.833]  1.000
Formula of green@v1              higher is better  0.333 [0.000, 0.750]  1.000
GREEN-EC of green@v1              lower is better  0.750 [0.250, 1.000]  0.000
own score of green@v1            higher is better  0.601 [0.179, 0.922]  1.000
2M / (2M + 1S + 0I) of green@v1  higher is better  0.417 [0.000, 0.833]  1.000

errors, significant + others      A      B
----------------------------  -----  -----
false_finding                 0 + 0  0 + 0
omission                      2 + 0  0 + 0
location                      1 + 0  0 + 0
severity                      0 + 0  0 + 0
comparison                    0 + 0  0 + 0
omitted_change                0 + 0  0 + 0

note: `rules` is no language model"""
"""Of A: a matches nothing of one error, b one finding of two, c all; d is empty.

So GREEN is (0 + 1/2 + 1 + 0) / 4, the weighted score (0 + 2/3 + 1 + 0) / 4.
"""

OFFICIAL = """\
8 pairs, judged by green_text@v1 with told

score                                better      A  A, published parser      B  B, published parser
-------------------------  ----------------  -----  -------------------  -----  -------------------
GREEN of green_text@v1     higher is better  0.500                1.000  0.500                1.000
GREEN-F1 of green_text@v1  higher is better  0.667                1.000  0.667                1.000
Formula of green_text@v1   higher is better  0.333                1.000  0.333                1.000
GREEN-EC of green_text@v1   lower is better  2.000                0.000  2.000                0.000

errors, significant + others      A      B
----------------------------  -----  -----
false_finding                 0 + 0  0 + 0
omission                      8 + 0  8 + 0
"""  # noqa: E501
"""Two omissions and two matched findings in each answer, four answers a system."""


SCORES_OF_JUDGES = """
vert@v1: errors and matched findings as in green_sections, and an own score

chexprompt: GREEN-EC (lower)
crimson: CRIMSON
finescore: FineRadScore (sum) (lower), FineRadScore (max) (lower), FineRadScore (mean) (lower)
formula, green, green_text, one_pass, two_pass, vert: GREEN, GREEN-F1, Formula, GREEN-EC (lower),
  own score
radfact: RadFact F1, RadFact precision, RadFact recall
rating: rating
rating_pairwise: no score, it compares
rubric: own score
two_pass_list: GREEN, GREEN-F1, GREEN-EC (lower), own score
higher is better, but where it says lower; --weights adds one more of counts
"""  # noqa: E501


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
    assert done.stdout.endswith(SCORES_OF_JUDGES)
    listed = json.loads(call("--list", "--json").stdout)["judges"]
    assert [one["prompt"] for one in listed] == sorted(rows)


def test_pairs_are_judged_without_a_model(pairs):
    """A copy is perfect; the other system's errors are counted by category."""
    weights = ("--weights", 2, 1, 0)
    done = call("green", "--pairs", pairs, "--out", "judged", *weights)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(PRINTED)
    assert done.stdout.count("\nsignature of ") == 1
    assert "\nsignature of GREEN of green@v1, A: green_green|green@v1:" in done.stdout
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
    assert done.stdout.startswith(OFFICIAL)


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
        (("green", "--pairs", "pairs.csv", "--pool", "mine"), "need --shots"),
        (("green", "--pairs", "pairs.csv", "--shots-seed", "1"), "need --shots"),
        (
            ("green", "--pairs", "pairs.csv", "--shots-score", "linear"),
            "need --shots",
        ),
        (("radfact", "--phrases", "x.jsonl", "--out", "y"), "leave out other files"),
        (("radfact", "--phrases", "x.jsonl", "--sample", "2"), "takes no --rubric"),
        (
            ("radfact", "--phrases", "x.jsonl", "--parser", "official"),
            "takes no --rubric",
        ),
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


AGREEMENT = """\
score                better  n                 tau-b  Spearman  Pearson
---------  ----------------  -  --------------------  --------  -------
own score  higher is better  8  0.936 [0.802, 1.000]     0.975    0.968
GREEN      higher is better  8  0.819 [0.574, 1.000]     0.883    0.875
GREEN-F1   higher is better  8  0.819 [0.574, 1.000]     0.883    0.834
Formula    higher is better  8  0.819 [0.574, 1.000]     0.883    0.893
GREEN-EC    lower is better  8  0.808 [0.577, 1.000]     0.877    0.863
"""
"""By scipy, of GREEN 1, 0, 0, 1/2, 1, 1/2, 1, 0 with the mean points of two raters."""

GATE = """
check verdict observed lower limit wanted why
share without a readable answer or a score PASS 0.0 % at most 1 %
units with a score and a rating INSUFFICIENT 7 at least 20 7 of at least 20 units. \
needs about 13 more units
tau-b with the mean of 2 raters INSUFFICIENT 0.819 at least 0.99 not decided, since \
units are too few
share of equal texts with the best score PASS 100.0 % 100 %
"""


def test_a_run_of_a_judge_is_held_against_raters(workspace, tmp_path):
    """Score by score, then error by error; where it claims something, its gate."""
    rate(workspace, tmp_path)
    assert run_verb(workspace, "run", "mine", "--cohort", "rp").exit_code == 0
    done = run_verb(workspace, "evaluate", "latest")
    assert done.exit_code == 0, done.output
    first, _, rest = done.stdout.partition("\n\n")
    assert first.startswith("mine@v1 on rp with rules, against rp:ratings1, run 20")
    title, _, rest = rest.partition("\n")
    assert title == (
        "agreement with the mean of the raters, 95 % intervals over references; turned "
        "so that more is better"
    )
    assert rest.startswith(AGREEMENT)
    assert rest.count("\nall categories         5        5  1.000 –") == 2
    assert "\nnote: mine@v1: 8 of 8 pairs have a score." in rest
    assert "INSUFFICIENT" not in rest
    text = workspace.protocol.read_text()
    workspace.protocol.write_text(f"{text}\njudging: {{threshold: 0.99}}\n")
    done = run_verb(workspace, "evaluate", "latest")
    assert done.exit_code == 100
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    start = said.index("check verdict observed lower limit wanted why")
    assert [said[start], *said[start + 2 : start + 6]] == GATE.strip().splitlines()


DIFFERING = [
    "errors that run RUN counts differently from rp:ratings1",
    "case category judge readers",
    "---- -------------- ----- -------",
    "p2 (all) unparsed",
    "p1 severity 0 + 1 0 + 0",
    "p3 false_finding 0 + 0 1 + 0",
    "p5 false_finding 0 + 0 1 + 0",
    "p7 omission 0 + 0 1 + 0",
    "",
]


def test_where_a_judge_counts_otherwise_than_readers_is_listed(
    workspace, tmp_path, monkeypatch
):
    """An unreadable answer first; the errors of both, category by category."""
    rate(workspace, tmp_path)
    run_verb(workspace, "prompt", "new", "listed", "--from", "one_pass@v1")
    wrong = errors(("location", True), ("severity", False))
    said = {"Small right pleural effusion.": wrong, "No pneumothorax.": "no JSON"}
    tell(monkeypatch, said)
    run_verb(workspace, "run", "listed", "--cohort", "rp", "--engine", "told")

    def listed(*words):
        done = run_verb(workspace, "failures", "latest", *words)
        lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
        return [re.sub(r"\d{8}-\d{6}-\w{6}", "RUN", line) for line in lines]

    counts = "pairs; significant + insignificant errors, the readers' median"
    assert listed() == [*DIFFERING, f"5 of 5 rows, in 5 of 8 {counts}"]
    assert listed("--limit", "2") == [
        *(*DIFFERING[:5], ""),
        f"2 of 5 rows, in 2 of 8 {counts}",
    ]
    assert listed("--label", "omission") == [
        *(*DIFFERING[:4], *DIFFERING[7:]),
        f"2 of 2 rows, in 2 of 8 {counts}",
    ]
    assert listed("--format", "csv") == [
        *("case_id,category,judge,readers", "p2,,,", "p1,severity,0 + 1,0 + 0"),
        *("p3,false_finding,0 + 0,1 + 0", "p5,false_finding,0 + 0,1 + 0"),
        "p7,omission,0 + 0,1 + 0",
    ]
    # Of the seven that it could be read of: four errors by readers, one by it.
    said = " ".join(run_verb(workspace, "evaluate", "latest").stdout.split())
    assert "all categories 1 4 0.400 [0.000, 0.857] 0.400 1.000 1.000 −0.43" in said
    assert "all categories 2 4 0.333 [0.000, 0.600] 0.333 1.000 1.000 −0.29" in said
    assert "GREEN higher is better 7 0.099 –† 0.107 0.068" in said
    assert "1 rated pair has no score and is left out." in said


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


@pytest.mark.parametrize(
    ("value", "low", "high", "told"),
    [
        (None, None, None, "\N{EN DASH}"),
        (0.5, None, None, "0.500"),
        (0.5, 0.25, 0.75, "0.500 [0.250, 0.750]"),
    ],
)
def test_a_number_of_a_judge_is_told_with_the_limits_that_it_has(
    value, low, high, told
):
    """A dash is none at all, as of a system that was not judged."""
    found = Estimate(value, low, high)
    assert judge._interval(found) == told
    result = MetricResult(METRICS["ran_score"], "a", found, 3, 0, [], "", ())
    assert judge._estimate(result) == told
    assert judge._estimate(None) == "\N{EN DASH}"


def test_what_a_score_makes_of_counts_is_drawn_and_nothing_else_is_done(
    workspace, tmp_path
):
    """No judge need be named; the figure is that of the empty cell asked for."""
    path = tmp_path / "surfaces.svg"
    asked = ("judge", "--surfaces", path)
    assert run_verb(workspace, *asked).stderr == f"wrote {path}\n"
    drawn = path.read_text("utf-8")
    assert drawn == as_file(surfaces_svg(Empty.ONE))
    assert run_verb(workspace, *asked, "--empty", "0").exit_code == 0
    assert path.read_text("utf-8") == as_file(surfaces_svg(Empty.ZERO)) != drawn
    done = run_verb(workspace, "judge", "--surfaces", workspace.labels / "x.svg")
    assert "which holds the workspace's own" in str(done.exception)


def test_a_name_like_a_release_may_be_that_of_a_prompt(workspace):
    """What is no release, or outside a workspace, is asked as a version of a judge."""
    assert judge._request(None, "green-v2", None) == RunRequest("green-v2", "rules", {})
    assert judge._request(workspace, "green@v1", "told") == RunRequest(
        "green@v1", "told", {}
    )
    with pytest.raises(DataError, match="green-v2"):
        judge._request(workspace, "green-v2", None)
    made = run_verb(workspace, "prompt", "new", "green-v2", "--from", "green@v1")
    assert made.exit_code == 0, made.output
    assert judge._request(workspace, "green-v2", None) == RunRequest(
        "green-v2", "rules", {}
    )


@pytest.mark.slow
def test_documents_are_made_with_the_workspaces_templates_if_it_has_this_one(
    workspace, tmp_path, capsys
):
    """An older workspace has a folder of its own, without this document."""
    own = workspace.root / "reports" / "templates"
    own.mkdir(parents=True)
    taxonomy = read_taxonomy(bundled() / "labels")
    joined = join_texts(REFERENCES, {"A": CANDIDATES}, taxonomy)
    with Judge.open(None, "green", "rules") as ours:
        document = judge_systems(joined, ours, JudgeOptions(resamples=10))
    for folder, place in (("one", workspace), ("two", None)):
        judge._write(document, tmp_path / folder, place)
    first, second = (
        (tmp_path / one / "judge.md").read_text() for one in ("one", "two")
    )
    assert first == second
    out = tmp_path / "one"
    assert capsys.readouterr().err.splitlines()[0] == (
        f"wrote 4 files to {out}, first of all {out / 'judge.md'}"
    )
    (own / "judge.md.jinja").write_text("ours: {{ document.facts.ref }}")
    judge._write(document, tmp_path / "three", workspace)
    assert (tmp_path / "three" / "judge.md").read_text() == "ours: green@v1"
