"""The verb ``score``, end to end on small files, with the shipped extractor."""

import csv
import hashlib
import io
import json
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import score
from loop.cli.main import app
from loop.core.errors import DataError, WorkspaceError
from loop.core.paths import bundled
from loop.engines.rules.engine import RulesEngine
from loop.labels.taxonomy import read_taxonomy
from loop.run.execute import Problem
from loop.score.bias import PanelRow, SensitivityPanel
from loop.score.experts.ratings import RaterAgreement
from loop.score.joining import CandidateFile, join_texts
from loop.score.scoring import Experts, MetricAgainstExperts
from loop.stats.correlation import Correlations
from loop.stats.intervals import Estimate
from tests.score.documents.score_scenes import FACTS, document_of, ran_score

SECRET = "zebra"
FINDINGS = (
    "Small left pleural effusion.",
    "Cardiomegaly with mild pulmonary edema.",
    "Right lower lobe consolidation.",
    "No acute cardiopulmonary abnormality.",
    "Large right pneumothorax.",
)
NORMAL = "The lungs are clear. No pleural effusion or pneumothorax."
QUICK = ("--resamples", "50", "--permutations", "50", "--metric", "none")
NEWEST = "extractor-v11"
"""The newest release that ships."""

TAXONOMY = read_taxonomy(bundled() / "labels")


def write(path, rows, header=("id", "text")):
    """Write a table and return its path."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder outside any workspace, with references and systems."""
    monkeypatch.chdir(tmp_path)
    rows = [(f"c{n:02}", f"{FINDINGS[n % 5]} {SECRET} {n}.") for n in range(20)]
    write(tmp_path / "ref.csv", rows)
    write(tmp_path / "copy.csv", rows)
    write(tmp_path / "normal.csv", [(name, NORMAL) for name, _ in rows])
    return tmp_path


def run(*args, code=0):
    """Run the verb and return what it says."""
    done = CliRunner().invoke(app, ["score", *map(str, args)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done


def patch_as_released(patch):
    """Let `rules` be the engine that the shipped release was measured with."""
    path = bundled() / "reports" / "releases" / NEWEST / "release.json"
    identity = json.loads(path.read_text("utf-8"))["engine"]["identity"]
    patch.setattr(RulesEngine, "identity", lambda self: identity)


def data_of(*args):
    """Return the JSON of the verb."""
    return json.loads(run(*args, *QUICK, "--json").stdout)


@pytest.mark.slow
def test_systems_are_ranked_and_every_number_is_signed(folder):
    """A copy scores 1, a template that is always normal loses every finding."""
    data = data_of("copy.csv", "normal.csv", "-r", "ref.csv")
    first, second = data["systems"]
    assert (first["system"], first["ran_score"]["value"]) == ("copy", 1.0)
    assert second["system"] == "normal" and second["ran_score"]["value"] < 0.5
    assert first["signature"].startswith("ran|extractor@v11:")
    assert "unc:wrong|zd:skip|nf:ran" in first["signature"]
    assert first["perfect_copy"] == 1.0
    assert data["differences"][0]["better"] == "copy"
    assert data["extractor"]["release"] == NEWEST
    assert any("newest release" in text for text in data["remarks"])


COUNTED = """\
2 systems on 10 cases; labels as given

system  rank             Ran Score  cells  labels  best in              micro-F1  macro P  macro R   n  perfect
------  ----  --------------------  -----  ------  -------  --------------------  -------  -------  --  -------
A A        1  0.875 [0.674, 1.000]  8.6 %    2/21     98 %  0.857 [0.627, 1.000]    0.875    0.875  10    1.000
B B        2  0.533 [0.250, 0.826]  8.1 %    2/21      2 %  0.500 [0.237, 0.800]    1.000    0.375   9    1.000

pair                   difference      p  Holm p  exchanges              at 0.05
--------  -----------------------  -----  ------  ---------  -------------------
A over B  +0.342 [−0.010, +0.644]  0.250   0.250        all  not distinguishable

metric                                           A                     B
----------------------------  --------------------  --------------------
ran_score (higher is better)  0.875 [0.674, 1.000]  0.533 [0.250, 0.826]
ran_errors (lower is better)  0.200 [0.000, 0.400]  0.444 [0.222, 0.753]

note: A perfect copy of the references scores 1.000: under zero_division skip, a label that neither
      side has is left out of the mean.
note: B is scored on 8.1 % of the cells, A on 8.6 %: 1 cell fewer, where the reference has 7
      findings. What a system does not answer or leaves out is not held against it, neither in its
      rank nor in the differences: it may owe its score to that. What has no answer stays out under
      every option.
note: A: 18 of 210 cells decided on both sides; left out: 1 uncertain, 191 without a value
note: B: 17 of 210 cells decided on both sides; left out: 1 uncertain, 171 without a value, 21
      without a candidate
note: Between the readings of uncertain values scores move by up to 0.086, that of B the most.
      Compare scores under one reading only.
note: A: uncertain wrong 0.875, left out 0.875, present 0.900, absent 0.833
note: B: uncertain wrong 0.533, left out 0.583, present 0.619, absent 0.533
note: Intervals: 95 % percentile bootstrap, 50 resamples of cases, seed 0.
"""  # noqa: E501
"""Edema: A finds 3 of 4 and invents one, B finds 1 and is unsure of another.

Fracture: A finds all 3, B finds 1 of the 2 that it is asked about.
"""


def test_every_cell_is_counted_once_where_labels_are_given(tmp_path, monkeypatch):
    """Under each reading of what is uncertain, on either side."""
    monkeypatch.chdir(tmp_path)
    head = ("id", "edema", "fracture")
    cases = [f"c{n}" for n in range(10)]
    for name, edema, fracture in (
        ("ref", (1, 1, 1, 1, 0, 0, 0, 0, -1, ""), (1, 0, 0, 0, 0, 1, 0, 0, 0, 1)),
        ("A", (1, 1, 1, 0, 0, 0, 1, 0, 1, 0), (1, 0, 0, 0, 0, 1, 0, 0, 0, 1)),
        ("B", (-1, 1, 0, 0, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 0, 0, 0, 0)),
    ):
        rows = list(zip(cases, edema, fracture, strict=False))
        write(tmp_path / f"{name}.csv", rows, header=head)
    told = run("A.csv", "B.csv", "-r", "ref.csv", *QUICK).stdout
    assert told.startswith(COUNTED)
    alone = run("A.csv", "-r", "ref.csv", *QUICK).stdout
    assert alone.startswith("A on 10 cases; labels as given\n")
    assert (
        "note: every system: 18 of 210 cells decided on both sides; left out: 1 "
        "uncertain, 191 without a\n      value\n"
    ) in alone
    assert "pair  " not in alone


@pytest.mark.slow
def test_a_table_of_metrics_has_three_systems_at_most(folder):
    """A fourth one would not fit on a line; it has a table after the first."""
    rows = [(f"c{n:02}", NORMAL) for n in range(20)]
    for name in ("third", "fourth"):
        write(folder / f"{name}.csv", rows)
    files = ("copy.csv", "normal.csv", "third.csv", "fourth.csv")
    quick = ("--resamples", "20", "--permutations", "20", "--metric", "bleu_4")
    told = run(*files, "-r", "ref.csv", *quick).stdout
    heads = [line.split() for line in told.splitlines() if line.startswith("metric ")]
    assert [len(head) for head in heads] == [4, 2]


@pytest.mark.slow
def test_the_order_of_rows_changes_nothing(folder):
    """Rows are joined by id: reversed and shuffled files give the same numbers."""
    before = data_of("copy.csv", "normal.csv", "-r", "ref.csv")
    for name in ("copy.csv", "ref.csv"):
        head, *rows = Path(name).read_text("utf-8").splitlines()
        random.Random(4).shuffle(rows)
        Path(name).write_text("\n".join([head, *rows]) + "\n", "utf-8")
    after = data_of("copy.csv", "normal.csv", "-r", "ref.csv")
    assert before.pop("files") != after.pop("files")
    assert before == after


@pytest.mark.slow
def test_a_lost_row_is_told_by_its_id_and_shifts_nothing(folder):
    """One candidate fewer: it is missing, and the others still score 1."""
    lines = Path("copy.csv").read_text("utf-8").splitlines()
    Path("copy.csv").write_text("\n".join(lines[:3] + lines[4:]) + "\n", "utf-8")
    done = run("copy.csv", "-r", "ref.csv", *QUICK)
    said = " ".join(done.stdout.split())
    assert "copy: 1 references without a candidate, not scored: c02" in said
    data = data_of("copy.csv", "-r", "ref.csv")
    assert data["systems"][0]["ran_score"]["value"] == 1.0
    assert data["coverage"][0]["missing"] == ["c02"]


@pytest.mark.slow
def test_all_documents_are_written_and_hold_no_text(folder):
    """Counts and ids leave the private part, never what a case says."""
    out = folder / "out"
    args = ("a=copy.csv", "b=normal.csv", "-r", "ref.csv", "--out", out, *QUICK[:4])
    run(*args, "-m", "rouge_l", "-m", "n_words")
    names = {path.name for path in out.iterdir()}
    assert names == {
        *("score.html", "score.md", "scores.json", "per_case.csv", "errors.csv"),
        "figures",
    }
    for path in out.rglob("*.*"):
        text = path.read_text("utf-8")
        assert SECRET not in text and str(folder) not in text, path.name
        assert "The lungs are clear" not in text
    rows = list(csv.DictReader(io.StringIO((out / "per_case.csv").read_text("utf-8"))))
    assert len(rows) == 40
    assert set(rows[0]) == {
        *("id", "system", "ran_score", "ran_errors", "rouge_l", "n_words")
    }
    assert {row["ran_score"] for row in rows if row["system"] == "a"} == {"1"}
    errors = list(csv.DictReader(io.StringIO((out / "errors.csv").read_text("utf-8"))))
    assert errors and {row["system"] for row in errors} == {"b"}
    data = json.loads((out / "scores.json").read_text("utf-8"))
    assert [one["system"] for one in data["systems"]] == ["a", "b"]


@pytest.mark.slow
def test_json_is_the_only_thing_on_stdout(folder):
    """Progress and remarks go to stderr; the object on stdout is that of the file."""
    args = ("copy.csv", "-r", "ref.csv", "--out", "out", *QUICK, "--json")
    data = json.loads(run(*args).stdout)
    written = json.loads((folder / "out" / "scores.json").read_text("utf-8"))
    assert written.pop("written_beside")
    assert data == written


def label_rows(cases=12):
    """Return labels of every kind, and their header."""
    rng = random.Random(1)
    rows = [
        [f"c{n}", *(rng.choice(["0", "1"]) for _ in TAXONOMY.ids)] for n in range(cases)
    ]
    return rows, ("id", *TAXONOMY.ids)


def test_given_labels_need_no_extractor(folder):
    """Self-scoring of a label file is exactly 1.0 under skip, and signed as given."""
    rows, header = label_rows()
    write(folder / "labels.csv", rows, header)
    data = data_of("labels.csv", "-r", "labels.csv", "--no-finding", "read")
    assert data["systems"][0]["ran_score"]["value"] == 1.0
    assert data["systems"][0]["signature"].startswith("ran|given|")
    assert data["extractor"]["digest"] == "" and data["extractor"]["outcomes"] is None


def test_an_option_that_would_do_nothing_is_refused(folder):
    """Labels are given, so no extractor reads anything."""
    rows, header = label_rows()
    write(folder / "labels.csv", rows, header)
    with pytest.raises(DataError, match=r"--bias: all files give labels.*Leave it out"):
        run("labels.csv", "-r", "labels.csv", "--bias", "auto", *QUICK)


def test_words_in_label_cells_need_a_policy(folder):
    """`yes` is refused, or means what the policy says; it is never 0 in silence."""
    rows, header = label_rows()
    yes = [[name, *("yes" if v == "1" else v for v in v_s)] for name, *v_s in rows]
    write(folder / "yes.csv", yes, header)
    write(folder / "ref.csv", rows, header)
    with pytest.raises(DataError, match="yes"):
        run("yes.csv", "-r", "ref.csv", *QUICK)
    args = ("--value", "yes=present", "--no-finding", "read")
    data = data_of("yes.csv", "-r", "ref.csv", *args)
    assert data["systems"][0]["ran_score"]["value"] == 1.0
    said = data["conventions"]["reading"]
    assert f"|read:{said[:6]}|" in data["systems"][0]["signature"]
    assert "As the cases were read: 'yes' means present." in data["remarks"]


@pytest.mark.slow
def test_files_of_the_chexpert_labeler_are_read_as_they_are_meant(folder):
    """A blank is absent there; without the word it is nobody's answer, as elsewhere."""
    names = ("id", "Cardiomegaly", "Edema", "Pneumothorax", "Pleural Effusion")
    truth = [("a", "1.0", "", "0.0", "1.0"), ("b", "", "-1.0", "", "1.0")]
    said = [("a", "1.0", "", "", ""), ("b", "", "", "1.0", "1.0")]
    files = (
        *("--reference", write(folder / "truth.csv", truth, names)),
        *("--candidate", f"m={write(folder / 'said.csv', said, names)}"),
    )
    plain, meant = (
        json.loads(run(*files, *more, *QUICK, "--json").stdout)["systems"][0]
        for more in ((), ("--value", "chexpert"))
    )
    assert plain["cells"]["decided"] == 2
    assert plain["ran_score"]["value"] == 1.0
    # Cardiomegaly right, Pneumothorax wrong, Pleural Effusion found once of twice.
    assert meant["cells"]["decided"] == 7
    assert meant["cells"]["uncertain"] == 1
    labels = {one["label"]: one["f1"] for one in meant["labels"]}
    assert labels["cardiomegaly"] == 1.0
    assert labels["pneumothorax"] == 0.0
    assert labels["pleural_effusion"] == pytest.approx(2 / 3)
    assert "write WORD=VALUE" in run(*files, "--value", "chexbert", code=2).output


def test_pairs_in_one_file_with_a_system_column(folder):
    """One row holds reference and candidate."""
    header = ("id", "reference", "candidate", "system")
    rows = [
        (
            f"c{n}",
            FINDINGS[n % 5],
            FINDINGS[n % 5] if system == "copy" else NORMAL,
            system,
        )
        for n in range(10)
        for system in ("copy", "normal")
    ]
    write(folder / "pairs.csv", rows, header)
    data = data_of("--pairs", "pairs.csv")
    assert [one["system"] for one in data["systems"]] == ["copy", "normal"]
    assert data["systems"][0]["ran_score"]["value"] == 1.0


@pytest.mark.slow
def test_ratings_are_joined_and_told(folder):
    """Experts' points by id and system: mean, agreement, and tau with the metrics."""
    rows = [
        (f"c{n:02}", system, rater, points + n % 2)
        for n in range(20)
        for system, points in (("copy", 4), ("normal", 1))
        for rater in ("r1", "r2")
    ]
    write(folder / "points.csv", rows, ("id", "system", "rater", "score"))
    args = ("copy.csv", "normal.csv", "-r", "ref.csv", "--ratings", "points.csv")
    experts = data_of(*args)["experts"]
    assert experts["rated"] == 40
    means = {one["system"]: one["mean"] for one in experts["mean_points"]}
    assert means == {"copy": 4.5, "normal": 1.5}
    said = " ".join(run(*args, *QUICK).stdout.split())
    assert "tau-b with experts" in said and "Krippendorff's alpha" in said


@pytest.mark.slow
def test_under_zero_a_perfect_copy_cannot_reach_one_and_it_is_said(folder):
    """Labels that never occur count 0: the table and a note show what that does."""
    args = ("copy.csv", "-r", "ref.csv", "--zero-division", "zero", *QUICK)
    done = run(*args)
    score = json.loads(run(*args, "--json").stdout)["systems"][0]
    assert score["ran_score"]["value"] == score["perfect_copy"] < 1
    said = " ".join(done.stdout.split())
    assert f"would score only {score['perfect_copy']:.3f}, not 1" in said
    assert "zd:zero" in said


@pytest.mark.slow
def test_a_metric_that_cannot_run_says_why_and_the_rest_goes_on(folder):
    """BERTScore without a model is a line, not the end."""
    done = run(
        *("copy.csv", "-r", "ref.csv", "-m", "bertscore", "-m", "n_words"),
        *QUICK[:4],
    )
    said = " ".join(done.stdout.split())
    assert "bertscore did not run:" in said and "n_words" in said


def test_an_unknown_metric_is_refused_before_anything_is_read(folder):
    """The suggestion is the way out."""
    with pytest.raises(DataError, match="Did you mean 'rouge_l'"):
        run("missing.csv", "-r", "nowhere.csv", "-m", "rouge-L")


def test_wrong_ratings_are_refused_before_anything_is_asked(folder):
    """Minutes of extraction are not lost to a column that is called otherwise."""
    with pytest.raises(DataError, match="no column rater, score"):
        args = ("copy.csv", "-r", "ref.csv", "--ratings", "ref.csv", *QUICK)
        run(*args, "--engine", "openai:never-asked@http://127.0.0.1:9/v1")


def test_the_registry_is_listed(folder):
    """Name, direction, range and needs, as a table and as data."""
    said = run("--list").stdout
    assert "rouge_l" in said and "lower is better" in said
    entries = json.loads(run("--list", "--json").stdout)["metrics"]
    assert entries[0]["name"] == "ran_score" and entries[0]["direction"] == "higher"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "give candidates and their references"),
        (("copy.csv",), "name the references with --reference"),
        (("-r", "ref.csv"), "name at least one file of candidates"),
        (("copy.csv", "-r", "ref.csv", "--pairs", "x"), "one of the three"),
        (("--radpref", "x", "--ratings", "y"), "leave --ratings out"),
        (("copy.csv", "-r", "ref.csv", "--value", "yes"), "write WORD=VALUE"),
        (
            (
                "copy.csv",
                "-r",
                "ref.csv",
                "--value",
                "y=present",
                "--value",
                "y=absent",
            ),
            "given two meanings",
        ),
        (("copy.csv", "-r", "ref.csv", "-m", "none", "-m", "chrf"), "be combined"),
        (
            ("copy.csv", "-r", "ref.csv", "--extractor", "a@v1", "--release", "b-v1"),
            "not both",
        ),
        (("copy.csv", "-r", "ref.csv", "--uncertain", "maybe"), "maybe"),
        (("copy.csv", "-r", "ref.csv", "--resamples", "0"), "resamples"),
    ],
)
def test_wrong_usage_says_what_to_write(folder, args, told):
    """Exit code 2, and the way out."""
    done = run(*args, code=2)
    assert told in " ".join(done.output.replace("│", " ").split())


def test_a_folder_of_someone_else_is_refused_before_anything_is_asked(folder):
    """Minutes of extraction are not lost to a name that was mistyped."""
    (folder / "out").mkdir()
    (folder / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"thesis\.tex"):
        run("missing.csv", "-r", "nowhere.csv", "--out", "out")


def test_documents_never_lie_in_the_workspaces_own_folders(folder, workspace):
    """`labels/` holds what was agreed, not what was scored."""
    out = workspace.labels / "scores"
    with pytest.raises(DataError, match="labels/, which holds the workspace's own"):
        run("copy.csv", "-r", "ref.csv", "-o", out, "-w", workspace.root)


def test_a_workspace_that_is_named_must_be_one(folder):
    """A mistyped workspace does not silently become the shipped extractor."""
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        run("copy.csv", "-r", "ref.csv", "-w", folder)


@pytest.mark.slow
def test_a_candidate_file_may_have_an_equals_sign_in_its_name(folder):
    """A file that exists is a file, whatever it is called."""
    os.rename("copy.csv", "t=0.7.csv")
    data = data_of("t=0.7.csv", "x=normal.csv", "-r", "ref.csv")
    assert [one["system"] for one in data["systems"]] == ["t=0.7", "x"]


@pytest.mark.slow
def test_hostile_names_and_ids_stay_text(folder):
    """Names come from a command line, ids from a file; a page runs neither."""
    nasty = '"><script>alert(1)</script>|{{ 7*7 }}'
    write(folder / "ref.csv", [(nasty, FINDINGS[0]), ("c1", FINDINGS[1])])
    write(folder / "cand.csv", [(nasty, NORMAL), ("c1", FINDINGS[1])])
    run(f"{nasty}=cand.csv", "-r", "ref.csv", "--out", "out", *QUICK)
    for name in ("score.html", "score.md"):
        text = (folder / "out" / name).read_text("utf-8")
        assert "<script" not in text and "{{ 7" in text


@pytest.mark.slow
def test_an_empty_candidate_says_nothing_and_is_counted(folder):
    """No word: every label absent, No Finding too; it is named, not dropped."""
    write(folder / "empty.csv", [(f"c{n:02}", "") for n in range(20)])
    data = data_of("empty.csv", "-r", "ref.csv")
    assert data["systems"][0]["ran_score"]["value"] == 0.0
    assert len(data["coverage"][0]["empty"]) == 20


def test_a_scoring_of_nothing_is_a_failure(folder):
    """No cues for German: a table of dashes and exit code 0 would pass in a script."""
    done = run("copy.csv", "-r", "ref.csv", "--language", "de", *QUICK, code=1)
    assert "nothing was scored" in done.output
    assert "0 of 420 cells decided" in done.output


def given(**changes):
    """Return files to score: references and one file of candidates."""
    told = {
        "reference": Path("r.csv"),
        "candidates": ("c.csv",),
        **dict.fromkeys(("pairs", "radpref", "ratings")),
    }
    return score.ScoreInputs(**{**told, **changes})


PAIRS = {"reference": None, "candidates": (), "pairs": Path("p.csv")}
RADPREF = {"reference": None, "candidates": (), "radpref": Path("d")}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ratings": Path("e.csv")},
        PAIRS,
        PAIRS | {"ratings": Path("e.csv")},
        RADPREF,
    ],
)
def test_one_way_to_name_the_rows_is_taken(changes):
    """Ratings may come with files and with pairs."""
    assert score.check_given(given(**changes)) is None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pairs": Path("p.csv")}, "one of the three"),
        ({"radpref": Path("d")}, "one of the three"),
        (PAIRS | {"radpref": Path("d")}, "one of the three"),
        (PAIRS | {"candidates": ("c.csv",)}, "one of the three"),
        ({"reference": None, "candidates": ()}, "give candidates and their references"),
        ({"reference": None}, "name the references with --reference"),
        ({"candidates": ()}, "name at least one file of candidates"),
        (RADPREF | {"ratings": Path("e.csv")}, "leave --ratings out"),
    ],
)
def test_two_ways_or_half_of_one_are_refused(changes, told):
    """Before a file is opened."""
    with pytest.raises(typer.BadParameter, match=told):
        score.check_given(given(**changes))


def test_metrics_are_taken_as_they_are_named():
    """None are none; and ``none`` stands alone."""
    assert score.read_metrics(("rouge_l", "bleu_2")) == ("rouge_l", "bleu_2")
    assert score.read_metrics(("none",)) == ()
    with pytest.raises(typer.BadParameter, match="cannot be combined"):
        score.read_metrics(("rouge_l", "none"))
    with pytest.raises(DataError):
        score.read_metrics(("no such metric",))


@pytest.mark.parametrize(
    ("value", "low", "high", "told"),
    [
        (None, None, None, "\N{EN DASH}"),
        (0.5, None, None, "0.500"),
        (0.5, 0.25, 0.75, "0.500 [0.250, 0.750]"),
    ],
)
def test_a_number_is_told_with_the_limits_that_it_has(value, low, high, told):
    """A dash is none at all."""
    assert score._estimate(Estimate(value, low, high)) == told
    assert score._estimate(None) == score._p(None) == "\N{EN DASH}"


def test_a_candidate_is_a_file_or_a_name_and_a_file(tmp_path, monkeypatch):
    """A file whose own name has the sign comes first."""
    monkeypatch.chdir(tmp_path)
    assert score._candidate("c.csv") == CandidateFile(Path("c.csv"))
    assert score._candidate("ours=c.csv") == CandidateFile(Path("c.csv"), "ours")
    (tmp_path / "ours=c.csv").touch()
    assert score._candidate("ours=c.csv") == CandidateFile(Path("ours=c.csv"))


FOUR = """\
4 systems on 300 cases; extractor@v7, engine rules

system  rank             Ran Score   cells  labels  best in              micro-F1  macro P  macro R    n  perfect             corrected
------  ----  --------------------  ------  ------  -------  --------------------  -------  -------  ---  -------  --------------------
A a        1  0.800 [0.760, 0.840]  99.3 %   20/21     90 %  0.820 [0.790, 0.850]    0.800        –  300    1.000  0.900 [0.800, 0.950]
B b        2  0.690 [0.650, 0.730]  99.3 %   20/21     50 %  0.710 [0.680, 0.740]    0.690        –  300    1.000  0.850 [0.800, 0.950]
C c        3  0.580 [0.540, 0.620]  99.3 %   20/21     10 %  0.600 [0.570, 0.630]    0.580        –  300    1.000  0.800 [0.800, 0.950]
D d        4                     –  99.3 %   20/21      0 %  0.490 [0.460, 0.520]    0.470        –  300    1.000                     –

pair                   difference        p  Holm p  exchanges     at 0.05
--------  -----------------------  -------  ------  ---------  ----------
A over B  +0.110 [+0.020, +0.200]  < 0.001   0.030    sampled     differs
A over C  +0.220 [+0.020, +0.310]  < 0.001   0.030    sampled     differs
A over D  +0.330 [+0.020, +0.420]  < 0.001   0.030    sampled     differs
B over C  +0.110 [+0.020, +0.200]  < 0.001   0.030    sampled     differs
B over D  +0.220 [+0.020, +0.310]  < 0.001   0.030    sampled     differs
C over D  +0.110 [+0.020, +0.200]        –       –        all  not tested

metric                                           A                     B                     C    tau-b with experts
----------------------------  --------------------  --------------------  --------------------  --------------------
ran_score (higher is better)  0.500 [0.400, 0.600]  0.500 [0.400, 0.600]  0.500 [0.400, 0.600]                     –
ran_errors (lower is better)  0.500 [0.400, 0.600]  0.500 [0.400, 0.600]  0.500 [0.400, 0.600]  0.250 [0.125, 0.375]

metric                                           D
----------------------------  --------------------
ran_score (higher is better)  0.700 [0.600, 0.800]
ran_errors (lower is better)  0.700 [0.600, 0.800]

note: The release is a day old.
"""  # noqa: E501
"""As records say it: nothing of it is computed here."""

FOUR_NOTES = """
note: Intervals: 95 % percentile bootstrap, 10,000 resamples of cases, seed 0.
note: d: no label is decided
note: references: 1 without a word, left out: c7
note: a: 2 references without a candidate, not scored: c1, c2
"""

FOUR_LAST = """
note: d: 1 candidates without a word, scored as saying nothing: c3
note: distinct texts: 590 answered, 1 unparsed, 591 asked
note: no answer for 2 distinct texts: no JSON (c7, c8)
note: 2 raters, 1 to 5 points, 3 candidates rated, 1 ratings missing. Krippendorff's alpha, ordinal:
      0.500 [0.400, 0.600]; ICC(2,1): 0.550 [0.400, 0.600] on 2 candidates that all rated; tau-b of
      two raters, mean: –
note: 3 scored candidates are rated, 4 are not; 5 rated ones have no score
note: read by extractor@v7 with rules, and by other@v1 with vllm:m: a 0.800 and –; b 0.690 and
      0.750; pairs of systems that change places: 2
note: bertscore did not run: no model: name one with --bert.
signature of a: ran|extractor@v7:3f2a3f|rules:ababab|unc:wrong|zd:skip|nf:ran|L:20/21|n:300
signature of b: ran|extractor@v7:3f2a3f|rules:ababab|unc:wrong|zd:skip|nf:ran|L:20/21|n:300
signature of c: ran|extractor@v7:3f2a3f|rules:ababab|unc:wrong|zd:skip|nf:ran|L:20/21|n:300
signature of d: ran|extractor@v7:3f2a3f|rules:ababab|unc:wrong|zd:skip|nf:ran|L:20/21|n:300
"""  # noqa: E501


def four_systems():
    """Return four systems with all that can be known of them beside their numbers."""
    names, tau = ("a", "b", "c", "d"), Estimate(0.5, 0.4, 0.6)
    none = Estimate(None, None, None, "none")
    made = ran_score(names)
    *others, last = (
        replace(one, corrected=Estimate(0.95 - 0.05 * one.rank, 0.8, 0.95))
        for one in made.systems
    )
    last = replace(
        last,
        corrected=None,
        ran_score=Estimate(None, None, None, "no label is decided"),
        readings=last.readings[:1] * len(last.readings),
    )
    *first, end = made.differences
    end = end._replace(p=None, p_holm=None, exact=True)
    made = replace(
        made,
        systems=(*others, last),
        differences=(*first, end),
        assumptions=("It errs.",),
    )
    experts = Experts(
        points=(),
        agreement=RaterAgreement(
            pairs=(),
            rest=(),
            ordinal=tau,
            interval=none,
            icc=tau._replace(value=0.55),
            candidates=3,
            complete=2,
            missing=1,
        ),
        metrics=(
            MetricAgainstExperts(
                "ran_errors",
                "Ran errors",
                True,
                Correlations(Estimate(0.25, 0.125, 0.375), none, none, 3, 2),
            ),
        ),
        raters=("r1", "r2"),
        scale=(1.0, 5.0),
        rated=3,
        unrated=4,
        unscored=5,
    )
    panel = SensitivityPanel(
        first=FACTS,
        second=replace(FACTS, ref="other@v1", engine="vllm:m"),
        systems=(
            PanelRow("a", Estimate(0.8, 0.7, 0.9), none, 1, 2, 9, 0.5, 0.1, None),
            PanelRow(
                "b",
                Estimate(0.69, 0.6, 0.8),
                Estimate(0.75, None, None),
                2,
                1,
                9,
                0,
                0,
                0,
            ),
        ),
        tau=0.25,
        swapped=(("a", "b"), ("a", "c")),
    )
    document = document_of(
        *names,
        score=made,
        experts=experts,
        panel=panel,
        remarks=("The release is a day old.",),
        problems=(Problem("no JSON", 2, ("c7", "c8")),),
    )
    results = tuple(
        one._replace(estimate=Estimate(0.7, 0.6, 0.8)) if one.system == "d" else one
        for one in document.sheet.results
    )
    return replace(document, sheet=replace(document.sheet, results=results))


def test_all_that_is_known_of_four_systems_is_printed(capsys):
    """Experts stand beside the first three; a number that is not there is a dash."""
    score.show_score(four_systems())
    told = capsys.readouterr().out
    assert told.startswith(FOUR)
    assert FOUR_NOTES in told
    assert "note: c: uncertain wrong 0.580, left out 0.630, present" in told
    assert "note: d: uncertain" not in told
    assert told.endswith(FOUR_LAST)


def test_documents_are_made_with_the_workspaces_templates_if_it_has_this_one(
    tmp_path, workspace, capsys
):
    """An older workspace has a folder of its own, without the page of a score."""
    own = workspace.root / "reports" / "templates"
    own.mkdir(parents=True)
    document = document_of("a")
    score.write_documents(document, tmp_path / "one", workspace)
    score.write_documents(document, tmp_path / "two", None)
    pages = [(tmp_path / one / "score.html").read_text() for one in ("one", "two")]
    assert pages[0] == pages[1]
    count = sum(path.is_file() for path in (tmp_path / "one").rglob("*"))
    assert capsys.readouterr().err.splitlines()[0] == (
        f"wrote {count} files to {tmp_path / 'one'}, first of all "
        f"{tmp_path / 'one' / 'score.html'}"
    )
    shutil.copytree(bundled() / "reports" / "templates", own, dirs_exist_ok=True)
    (own / "score.html.jinja").write_text("ours: {{ title }}")
    score.write_documents(document, tmp_path / "three", workspace)
    assert (tmp_path / "three" / "score.html").read_text().startswith("ours: ")


def test_what_is_read_is_among_the_files(tmp_path):
    """Points that experts gave, too, with the digest of what was read."""
    joined = join_texts({"a": "x"}, {"s": {"a": "y"}}, TAXONOMY)
    joined = replace(joined, files=(("ref.csv", "1" * 64),))
    assert score.add_rated_file(joined, given()) is joined
    points = write(tmp_path / "points.csv", [("a", "s", "r1", 3)], POINTS)
    digest = hashlib.sha256(points.read_bytes()).hexdigest()
    rated = score.add_rated_file(joined, given(ratings=points))
    assert rated.files == (("ref.csv", "1" * 64), ("points.csv", digest))
    assert score.read_points(given()) is None
    assert score.read_points(given(ratings=points)).raters == ("r1",)


POINTS = ("id", "system", "rater", "score")
