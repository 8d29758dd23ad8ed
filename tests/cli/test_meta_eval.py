"""The verb ``meta-eval``: from files to tables, documents and exit codes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError
from loop.score.experts.documents import meta_data
from loop.score.experts.meta import evaluate_metrics
from loop.score.experts.metric_scores import read_metric_scores, tabulate
from loop.score.experts.ratings import read_ratings
from loop.score.extractor import Extractor
from tests.score.documents.score_scenes import sheet_of
from tests.score.experts.radpref_folder import candidate, case, write_folder

RATINGS = "id,system,rater,score\n" + "".join(
    f"{case},{system},{rater},{1 + (at * step + extra) % 5}\n"
    for at, case in enumerate("abcdefgh")
    for system, step in (("x", 1), ("y", 3))
    for rater, extra in (("ann", 0), ("ben", at % 2))
)
SCORES = "id,system,f1,ran_errors,n_words\n" + "".join(
    f"{case},{system},{(at * step) % 5 / 5},{5 - (at * step) % 4},{at}\n"
    for at, case in enumerate("abcdefgh")
    for system, step in (("x", 1), ("y", 3))
)
QUICK = ["--resamples", "50", "--permutations", "100"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with ratings and scores; no workspace is above it."""
    (tmp_path / "ratings.csv").write_text(RATINGS)
    (tmp_path / "scores.csv").write_text(SCORES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def meta_eval(*args):
    """Run the verb."""
    return CliRunner().invoke(app, ["meta-eval", *args])


def plain(*args):
    """Run the verb on the plain files."""
    return meta_eval("scores.csv", "--ratings", "ratings.csv", *QUICK, *args)


def test_scores_and_ratings_become_a_table(folder):
    """Without a workspace, from two plain files."""
    result = plain()
    assert result.exit_code == 0, result.output
    assert "16 candidates for 8 cases, 2 systems, 2 raters" in result.output
    assert "Ran errors: lower is better, negated" in result.output
    assert "ann and ben" in result.output
    assert "n_words" in result.output.split("describe and do not grade")[1]


COUNTED = """\
ratings.csv: 6 candidates for 3 cases, 2 systems, 2 raters, points 1 to 5

agreement with the mean of the raters, 95 % intervals over cases; right columns: tau-b with each rater
metric  n                  tau-b  Spearman  Pearson  rater ann  rater ben
------  -  ---------------------  --------  -------  ---------  ---------
wer     6   0.931 [0.832, 0.991]     0.971    0.953      0.966      0.690
f1      6  0.788 [−0.719, 0.961]     0.883    0.919      0.966      0.552
  wer: lower is better, negated; lower by --lower; suspicious: mean tau-b 0.828 with one rater is
  above the 0.643 of two raters; check whether it was trained on these ratings
  f1: not in the registry: taken as higher is better; † tau-b is not shown to differ from 0:
  Kendall's test p 0.032, interval [−0.719, 0.961]; suspicious: mean tau-b 0.759 with one rater is
  above the 0.643 of two raters; check whether it was trained on these ratings

which of two candidates is better: 3 pairs by the raters' mean, less those it ties and those without a value, then the 1 that all raters decide alike
metric  right  wrong  tied              accuracy  right  tied  of
------  -----  -----  ----  --------------------  -----  ----  --
wer         2      0     0               1.000 –      1     0   1
f1          1      1     0  0.500 [0.000, 1.000]      1     0   1

raters among themselves
raters              n                  tau-b  Spearman  Pearson   same
------------------  -  ---------------------  --------  -------  -----
ann and ben         6  0.643 [−0.707, 0.846]     0.809    0.850  0.333
ann and the others  6  0.643 [−0.707, 0.846]     0.809    0.850
ben and the others  6  0.643 [−0.707, 0.846]     0.809    0.850
Krippendorff's alpha ordinal 0.825"""  # noqa: E501
"""The correlations by scipy; of case a the raters' means are equal."""


def test_few_candidates_are_counted_pair_by_pair(folder):
    """A word error rate that ranks all pairs, and an F1 that turns one round."""
    points = {"ann": (1, 2, 3, 4, 5, 5), "ben": (2, 1, 3, 5, 5, 4)}
    names = [f"{case},{system}" for case in "abc" for system in "xy"]
    (folder / "ratings.csv").write_text(
        "id,system,rater,score\n"
        + "".join(
            f"{name},{rater},{point}\n"
            for rater, given in points.items()
            for name, point in zip(names, given, strict=True)
        )
    )
    scores = zip(names, range(1, 7), (6, 5, 4, 3, 1, 2), strict=True)
    (folder / "scores.csv").write_text(
        "id,system,f1,wer\n"
        + "".join(f"{name},{f1 / 10},{wer}\n" for name, f1, wer in scores)
    )
    told = plain("--lower", "wer").stdout
    assert told.startswith(COUNTED)
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert "f1 +0.143 1.000 1.000 +0.034 0.599 0.599" in lines
    assert "with 0.643. A metric cannot be expected" in told


def test_json_is_one_object(folder):
    """And nothing else on stdout."""
    result = plain("--json")
    data = json.loads(result.stdout)
    assert {one["metric"] for one in data["metrics"]} == {"f1", "ran_errors"}
    assert data["candidates"] == 16


def test_a_named_metric_is_shown_though_it_only_describes(folder):
    """Who names it wants to see it."""
    data = json.loads(plain("--metric", "n_words", "--json").stdout)
    [one] = data["metrics"]
    assert (one["metric"], one["negated"]) == ("n_words", False)
    assert "does not grade" in one["note"]


def test_the_direction_of_an_unknown_metric_can_be_said(folder):
    """Nobody can know it from the name."""
    plainly = json.loads(plain("--metric", "f1", "--json").stdout)["metrics"][0]
    turned = json.loads(plain("--metric", "f1", "--lower", "f1", "--json").stdout)
    [one] = turned["metrics"]
    assert one["negated"]
    before, after = (each["consensus"]["tau_b"]["value"] for each in (plainly, one))
    assert after == pytest.approx(-before)


def test_documents_are_written(folder):
    """HTML, Markdown and the figure alone."""
    out = ["--html", "m.html", "--md", "m.md", "--svg", "m.svg"]
    result = plain(*out)
    assert result.exit_code == 0, result.output
    for name, start in (("m.html", "<!DOCTYPE"), ("m.md", "# Met"), ("m.svg", "<?xml")):
        assert (folder / name).read_text().lstrip().startswith(start)
    assert "wrote m.html" in result.output


def test_several_files_of_scores_are_one(folder):
    """As arguments, or by option."""
    (folder / "more.csv").write_text("id,system,late\na,x,1\nb,x,2\nc,x,3\nd,x,3\n")
    data = json.loads(plain("--scores", "more.csv", "--json").stdout)
    assert {one["metric"] for one in data["metrics"]} == {"f1", "ran_errors", "late"}


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["scores.csv"],
        ["--ratings", "ratings.csv"],
        ["scores.csv", "--ratings", "ratings.csv", "--radpref", "."],
        ["scores.csv", "--ratings", "ratings.csv", "--per-case", "out.csv"],
        ["scores.csv", "--ratings", "ratings.csv", "--extractor", "extractor@v1"],
        ["--radpref", ".", "--scale", "1", "5"],
        ["--radpref", ".", "--errors", "errors.csv"],
        ["--errors", "errors.csv"],
        ["scores.csv", "--ratings", "ratings.csv", "--counts", "counts.csv"],
        ["scores.csv", "--errors", "errors.csv", "--dimension", "quality"],
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(folder, args):
    """Exit code 2, before anything is read."""
    assert meta_eval(*args).exit_code == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["absent.csv", "--ratings", "ratings.csv"], "absent.csv"),
        (["scores.csv", "--ratings", "scores.csv"], "no column rater"),
        (
            ["scores.csv", "--ratings", "ratings.csv", "-m", "rouge"],
            "no column 'rou",
        ),
        (["--radpref", "."], "not a RadPref folder"),
        (
            ["scores.csv", "--ratings", "ratings.csv", "--lower", "f2"],
            "--lower f2: there is no such metric",
        ),
        (
            ["scores.csv", "--ratings", "ratings.csv", "--lower", "ran_errors"],
            "ranloop knows that lower is better",
        ),
        (["scores.csv", "--ratings", "ratings.csv", "--scale", "1", "3"], "off the sc"),
    ],
)
def test_a_wrong_file_is_an_error_that_says_what_to_do(folder, args, said):
    """The command line prints it without a traceback, with exit code 1."""
    result = meta_eval(*args)
    assert isinstance(result.exception, DataError)
    assert said in str(result.exception)


@pytest.fixture
def counted(folder):
    """Return the folder with experts' error counts and a judge's."""
    told, judged = [], []
    for at, name in enumerate("abcdefgh"):
        for system in "xy":
            told += [
                f"{name},{system},{rater},omission,significant,{(at + extra) % 3}"
                for rater, extra in (("ann", 0), ("ben", at % 2))
            ]
            judged.append(f"{name},{system},{at % 3},0")
    header = "id,system,rater,category,significance,count"
    (folder / "errors.csv").write_text("\n".join([header, *told]))
    header = "id,system,significant.omission,insignificant.omission"
    (folder / "counts.csv").write_text("\n".join([header, *judged]))
    return folder


def test_error_counts_of_a_judge_are_held_against_experts(counted):
    """F1 by kind of error and bias, in the table and as data."""
    args = ["--errors", "errors.csv", "--counts", "counts.csv"]
    result = plain(*args)
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert (
        "counts.csv against the median of 2 experts' counts of significant errors"
        in told
    )
    assert re.search(r"omissions +14 ", told) and "true errors 1 2" in told
    [serious, _] = json.loads(plain(*args, "--json").stdout)["judge_errors"]
    assert serious["judge"] == "counts.csv" and serious["candidates"] == 16


def test_without_points_metrics_are_held_against_the_errors(counted):
    """Fewer errors are better, and the table says what it was held against."""
    result = meta_eval("scores.csv", "--errors", "errors.csv", *QUICK)
    assert result.exit_code == 0, result.output
    assert "2 raters, significant errors, negated" in result.output
    data = json.loads(
        meta_eval("scores.csv", "--errors", "errors.csv", *QUICK, "--json").stdout
    )
    assert data["against"] == "significant errors, negated"
    assert data["source"] == "errors.csv" and data["judge_errors"] == []


def test_a_dimension_is_chosen(counted):
    """Of several in one file."""
    rows = RATINGS.splitlines()
    both = [f"{row},{name}" for row in rows[1:] for name in ("quality", "style")]
    (counted / "two.csv").write_text("\n".join([rows[0] + ",dimension", *both]))
    args = ["scores.csv", "--ratings", "two.csv", *QUICK]
    assert "several dimensions" in str(meta_eval(*args).exception)
    assert meta_eval(*args, "--dimension", "style").exit_code == 0


@pytest.fixture
def radpref(folder):
    """Return a made-up folder in the form of RadPref, with texts about chests."""
    texts = {
        "ground_truth_report": "Small left pleural effusion. No pneumothorax.",
        "C1_report": "Left pleural effusion.",
        "C2_report": "The lungs are clear. Cardiomegaly.",
    }
    cases = [{**case(name, 1), **texts} for name in ("one", "two", "three")]
    points = {"one": (5, 1), "two": (4, 2), "three": (5, 3)}
    rated = {
        name: {
            "C1": candidate(good),
            "C2": candidate(bad, missing={0: "urgent"}),
        }
        for name, (good, bad) in points.items()
    }
    return write_folder(folder / "radpref", cases, {"1": rated, "2": rated})


@pytest.mark.slow
def test_texts_of_radpref_are_scored_and_kept(radpref, folder):
    """Without scores the metrics run on the texts; the scores can be used again."""
    names = ["--metric", "ran_errors", "--metric", "rouge_l"]
    args = ["--radpref", "radpref", *names, *QUICK, "--json"]
    result = meta_eval(*args, "--per-case", "per_case.csv")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert {one["metric"] for one in data["metrics"]} == {"ran_errors", "rouge_l"}
    assert data["metrics"][0]["consensus"]["tau_b"]["value"] > 0.7
    assert data["format"] == "ranloop-meta-eval-1" and data["ranloop"]
    assert {one["name"] for one in data["own_counts"]} >= {"GREEN", "Formula"}
    again = meta_eval(*args, "--scores", "per_case.csv")
    found = json.loads(again.stdout)
    for one, two in zip(data["metrics"], found["metrics"], strict=True):
        assert one["consensus"] == two["consensus"]
    assert "effusion" not in result.output + (folder / "per_case.csv").read_text()


def test_formulas_on_the_raters_own_counts_are_shown_with_their_pairs(folder):
    """Of four pairs they order two rightly and one wrongly, and tie one."""
    texts = {"ground_truth_report": "a b", "C1_report": "a b", "C2_report": "b"}
    names = ("one", "two", "three", "four")
    cases = [{**case(name, n), **texts} for n, name in enumerate(names, 1)]
    points = {"one": (5, 1), "two": (4, 2), "three": (1, 5), "four": (5, 3)}
    rated = {
        name: {
            "C1": candidate(first),
            "C2": candidate(second, missing={} if name == "four" else {0: "urgent"}),
        }
        for name, (first, second) in points.items()
    }
    write_folder(folder / "radpref", cases, {"1": rated, "2": rated})
    done = meta_eval("--radpref", "radpref", "--metric", "rouge_l", *QUICK)
    assert done.exit_code == 0, done.output
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    begin = said.index(
        "from the raters' own counts: tau-b with the same rater's points; right and "
        "tied of the 4 unanimous pairs"
    )
    # tau-b by scipy; the second rater says what the first does.
    green, errors = "0.337 n 8 0.337 n 8 0.337 2 1", "0.211 n 8 0.211 n 8 0.211 2 1"
    ways = (
        *(f"GREEN: M / (M + S) {empty} {green}" for empty in ("0", "1", "skip")),
        *(
            f"Formula: M / (M + 2S + 0.5I) {empty} {green}"
            for empty in ("0", "1", "skip")
        ),
        f"significant errors: -S {errors}",
        f"all errors: -(S + I) {errors}",
        f"weighted errors: -(S + 0.5I) {errors}",
    )
    assert said[begin + 1] == "formula empty rater 1 rater 2 mean right tied"
    assert said[begin + 3 : begin + 13] == [*ways, ""]


def test_the_first_of_few_candidates_shows_where_it_loses(folder):
    """A metric that is blank where it would be wrong is first and worse at once."""
    rated, scored = ["id,system,rater,score"], ["id,system,whole,blank"]
    for at in range(16):
        rated.append(f"c{at},x,ann,{at}")
        # Of what both define, `whole` is right; `blank` takes two for equal.
        scored.append(
            f"c{at},x,{-at}," if at % 2 else f"c{at},x,{at + 20},{max(at, 2)}"
        )
    (folder / "points.csv").write_text("\n".join(rated))
    (folder / "blank.csv").write_text("\n".join(scored))
    told = meta_eval("blank.csv", "--ratings", "points.csv", *QUICK).output
    told = " ".join(told.split())
    assert "has the highest tau-b" in told and "none for 8 of 16 candidates" in told
    (loss,) = re.findall(r"best against .*? whole (\S+)", told)
    assert loss == "\N{MINUS SIGN}0.018"


def test_every_system_keeps_its_signature():
    """Labels that count may differ between them; each signature stands once."""
    sheet = sheet_of(("a", "b", "c"))
    results = [
        one._replace(signature=f"{one.metric.name}|L:{1 + (one.system == 'b')}")
        for one in sheet.results
    ]
    table = tabulate(replace(sheet, results=tuple(results)))
    assert table.metrics[0].signature == "ran_score|L:1 and ran_score|L:2"


def test_the_embedded_judge_counts_errors_of_radpref_by_itself(radpref):
    """Where one of its metrics is shown; elsewhere nobody asked for it."""
    args = ["--radpref", "radpref", *QUICK, "--json"]
    result = meta_eval(*args, "--metric", "judge")
    assert result.exit_code == 0, result.output
    [serious, every] = json.loads(result.stdout)["judge_errors"]
    assert serious["judge"] == "Embedded judge"
    assert serious["signature"].startswith("judge_errors|rules:")
    omissions = serious["groups"][1]
    # The effusion is missing in three candidates, as both raters say.
    assert omissions["judge"]["true"] == omissions["judge"]["expected"] == 3
    assert omissions["two_raters"]["mean_f1"] == 1
    assert every["candidates"] == 6
    other = meta_eval(*args, "--metric", "rouge_l")
    assert json.loads(other.stdout)["judge_errors"] == []


def test_no_engine_is_asked_where_no_metric_needs_labels(radpref, monkeypatch):
    """Reading labels may take a model hours; what would do nothing is refused."""
    monkeypatch.setattr(Extractor, "open", None)
    texts = ["--radpref", "radpref", "--metric", "rouge_l", *QUICK, "--json"]
    result = meta_eval(*texts)
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)["metrics"]
    assert (one["metric"], one["consensus"]["candidates"]) == ("rouge_l", 6)
    assert "labels read" not in result.stderr
    refused = meta_eval(*texts, "--engine", "rules")
    assert refused.exit_code == 2
    assert "no metric named" in " ".join(refused.stderr.split())


def test_no_document_is_written_over_the_workspace(radpref, workspace, folder):
    """Its own files are not for documents."""
    target = workspace.prompts / "m.html"
    result = plain("--html", str(target), "--workspace", str(workspace.root))
    assert isinstance(result.exception, DataError)
    assert not target.exists()


@pytest.mark.slow
@pytest.mark.data
def test_ran_score_agrees_with_radiologists_more_than_any_lexical_metric(data_folder):
    """The aim on RadPref, with the shipped extractor and the engine `rules`."""
    names = [
        "ran_score", "ran_errors", "rouge_1", "rouge_2", "rouge_l", "bleu_1", "bleu_2",
        "bleu_4", "meteor", "chrf",
    ]  # fmt: skip
    chosen = [word for name in names for word in ("--metric", name)]
    args = ["--radpref", str(data_folder / "radpref"), *chosen, *QUICK, "--json"]
    result = meta_eval(*args)
    assert result.exit_code == 0, result.output
    tau = {
        one["metric"]: one["consensus"]["tau_b"]["value"]
        for one in json.loads(result.stdout)["metrics"]
    }
    ours = {tau.pop("ran_score"), tau.pop("ran_errors")}
    assert min(ours) > max(tau.values())


@pytest.mark.parametrize("given", ["ratings.csv", "./scores.csv"])
def test_no_document_is_written_over_what_is_read(folder, given):
    """Points of radiologists are work of weeks; a slip of the keyboard loses none."""
    for option in ("--html", "--md", "--svg"):
        result = plain(option, given)
        assert isinstance(result.exception, DataError)
        assert "is not overwritten" in str(result.exception)
    assert (folder / "ratings.csv").read_text() == RATINGS
    assert (folder / "scores.csv").read_text() == SCORES


def test_two_documents_do_not_share_a_file(folder):
    """The second would silently replace the first."""
    result = plain("--html", "m", "--md", "./m")
    assert "named for two documents" in str(result.exception)


def test_the_figure_alone_needs_no_page(folder):
    """Programs for documents know no CSS properties, and no paper but their own."""
    assert plain("--svg", "m.svg").exit_code == 0
    text = (folder / "m.svg").read_text()
    assert "var(--" not in text and "<rect" in text


def test_a_workspace_with_templates_of_its_own_from_before_gets_the_shipped(
    workspace, folder
):
    """A page that its templates do not know is no reason to fail after the work."""
    own = workspace.root / "reports" / "templates"
    own.mkdir(parents=True, exist_ok=True)
    (own / "meta_eval.html.jinja").unlink(missing_ok=True)
    result = plain("--html", "m.html", "--workspace", str(workspace.root))
    assert result.exit_code == 0, result.output


def test_a_function_does_whatever_the_verb_does(folder):
    """A notebook gets the same object from the same files."""
    table = read_metric_scores([Path("scores.csv")], ["f1", "n_words"], ["f1"])
    found = evaluate_metrics(
        table,
        read_ratings(Path("ratings.csv")),
        metrics=["n_words"],
        source="ratings.csv",
        files=[Path("ratings.csv"), Path("scores.csv")],
        resamples=50,
        permutations=100,
    )
    told = plain("--metric", "f1", "--metric", "n_words", "--lower", "f1", "--json")
    assert json.loads(json.dumps(meta_data(found))) == json.loads(told.stdout)


def test_the_tables_say_over_what_and_against_which(folder):
    """Cases, where no patients are known; and the metric that stands first."""
    told = " ".join(plain().output.split())
    assert "intervals over cases; right columns" in told
    assert re.search(r"-- f1 16 .* Ran errors 16 ", told)
    assert " f1 against the others; p:" in told


def test_agreement_within_strata_of_a_file(folder):
    """In table, page, Markdown and JSON; small strata have their n only."""
    rows = [f"{case},{'MR' if case in 'abcdefg' else 'CT'}" for case in "abcdefgh"]
    (folder / "strata.csv").write_text("\n".join(["id,modality", *rows]))
    named = ("--strata", "strata.csv", "--html", "m.html", "--md", "m.md")
    done = plain(*named)
    assert done.exit_code == 0, done.output
    assert "modality" in done.stdout and "not estimable" in done.stdout
    data = json.loads(plain("--strata", "strata.csv", "--json").stdout)
    found = {(one["metric"], one["stratum"]): one for one in data["strata"]}
    assert len(found) == 4
    assert found["f1", "MR"]["n"] == 14 and found["f1", "MR"]["n_units"] == 7
    assert found["f1", "CT"]["tau_b"]["value"] is None
    assert "strata.csv" in {one["name"] for one in data["files"]}
    for name in ("m.html", "m.md"):
        assert "modality" in (folder / name).read_text()
    wrong = plain("--strata", "ratings.csv")
    assert "another row with other strata" in str(wrong.exception)


def test_a_tau_that_is_not_shown_is_marked_with_its_test(folder):
    """Kendall's p and the interval stand beside it, and in the JSON."""
    data = json.loads(plain("--json").stdout)
    marked = {one["metric"]: one["shown"] for one in data["metrics"]}
    assert not all(marked.values())
    for one in data["metrics"]:
        tau, low = one["consensus"]["tau_b"], one["consensus"]["tau_b"]["low"]
        inside = low <= 0 <= tau["high"]
        assert one["shown"] is (one["kendall_p"] < 0.05 and not inside)
    text = " ".join(plain().stdout.split())
    assert text.count("† tau-b is not shown to differ from 0: Kendall's test p") == sum(
        not shown for shown in marked.values()
    )
