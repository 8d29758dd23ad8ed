"""Ensembles fitted on a rated cohort, and applied to pairs that they have not seen."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.linear_model import LinearRegression

from loop.core.errors import DataError, OverlapError
from loop.core.ledger import Actor, read_ledger
from loop.core.records import Completion
from loop.engines import base
from loop.judge.ensemble import EnsembleMethod
from loop.judge.ensemble_versions import read_ensemble
from loop.labels.cohort import read_cohort
from loop.labels.overlap import ForeignPairs, compare_pairs
from loop.labels.taxonomy import read_taxonomy
from loop.release import ensemble_scoring, graders
from loop.release.ensemble_scoring import (
    EnsembleOptions,
    EnsembleScores,
    JoinedScores,
    SystemScores,
    _refuse,
    _require_pinned,
    ensemble_scores_data,
    fit_cohort_ensemble,
    score_ensemble,
    score_joined,
    write_scores,
)
from loop.release.graders import (
    GradedTexts,
    GraderOptions,
    grade_texts,
    resolve_graders,
)
from loop.run.asking import EngineOptions
from loop.score.joining import join_pairs
from tests.judge.scenes import TEXTS, as_pool, call, errors, rate, table, tell

ANN = Actor(name="Ann")
OTHER = (
    ("Moderate right pleural effusion.", "Moderate right pleural effusion."),
    ("Small apical pneumothorax on the left.", "No pneumothorax."),
    ("Enlarged heart, no edema.", "Enlarged heart, no edema. Fracture of a rib."),
)


@pytest.fixture
def rated(workspace, tmp_path):
    """Return a workspace with eight rated pairs."""
    return rate(workspace, tmp_path)


def texts(pairs=OTHER, prefix="z"):
    """Return pairs of texts to score."""
    return GradedTexts(
        ids=tuple(f"{prefix}{place}" for place in range(len(pairs))),
        references=tuple(reference for reference, _ in pairs),
        candidates=tuple(candidate for _, candidate in pairs),
    )


def fit(workspace, *members, **changes):
    """Fit an ensemble on the rated pairs."""
    chosen = members or ("green", "rouge_1")
    options = EnsembleOptions(**({"folds": 4, "resamples": 50} | changes))
    return fit_cohort_ensemble(workspace, "rp", chosen, ANN, options)


def test_names_are_resolved_to_metrics_judges_and_their_scores(workspace):
    """A metric goes before a judge; a family stands for its metrics."""
    found = resolve_graders(
        workspace, ["green", "rouge_l", "green@v1.errors", "one_pass.all", "reading"]
    )
    told = [(one.metric, one.judge, len(one.scores)) for one in found]
    assert told[:4] == [
        ("", "green", 0),
        ("rouge_l", "", 0),
        ("", "green@v1", 1),
        ("", "one_pass", 5),
    ]
    assert all(one.metric for one in found[4:])
    assert len(found) > 6
    for name, words in (
        ("nothing", "no metric, family or judge is called 'nothing'"),
        ("green.best", "'green.best': this judge has no score 'best'"),
        ("nothing.errors", "is called 'nothing.errors'"),
    ):
        with pytest.raises(DataError, match=words):
            resolve_graders(workspace, [name])


def test_a_fit_is_that_of_its_rows_and_scores_other_pairs(rated):
    """The kept coefficients, by hand, on members that are asked anew."""
    version = fit(rated, "green", "rouge_1", "green.errors")
    values = np.array([row.values for row in version.rows])
    points = np.array([row.points for row in version.rows])
    again = LinearRegression().fit(values, points)
    told = version.ensemble
    assert [one.coefficient for one in told.members] == pytest.approx(again.coef_)
    assert [one.better for one in told.members] == ["higher", "higher", "lower"]
    assert (told.fitted_on.pairs, told.fitted_on.units) == (8, 7)
    assert told.fitted_on.unit == "reference"
    said = score_ensemble(rated, "ensemble", texts())
    members = np.column_stack([said.members[name] for name in told.names])
    assert said.scores == pytest.approx(again.predict(members))
    assert said.not_checked == ("patients: not named for every case of the pairs",)


def test_members_are_pinned_to_the_digest(rated):
    """Prompt, engine, and conventions of each; no number of pairs among them."""
    version = fit(rated, "green", "rouge_1", "ran_errors")
    green, rouge, ran = (one.pin for one in version.ensemble.members)
    assert (green.judge, green.score, green.engine) == ("green@v1", "green", "rules")
    assert len(green.digest) == len(green.identity) == 64
    assert (rouge.metric, rouge.engine, rouge.digest) == ("rouge_1", "", "")
    assert ran.labels_by == "extractor@v1"
    assert len(ran.digest) == len(ran.identity) == 64
    told = "|".join((green.conventions, rouge.conventions, ran.conventions))
    assert not any(field.startswith(("n:", "L:")) for field in told.split("|"))


def test_a_pair_without_a_readable_answer_is_left_out_and_has_no_score(
    rated, monkeypatch
):
    """Never 0, never the mean of the others."""
    said = {text: errors() for _, text in TEXTS}
    said |= {TEXTS[4][1]: Completion("nonsense")}
    said |= {
        TEXTS[place][1]: errors(*[("omission", True)] * place, matched=2)
        for place in (1, 2, 3, 5, 7)
    }
    said |= {OTHER[1][1]: Completion("", finish_reason="error")}
    tell(monkeypatch, said)
    asked = GraderOptions(engine="told:x")
    version = fit(rated, "one_pass.errors", "rouge_1", graders=asked)
    first = version.ensemble.members[0]
    # The unreadable candidate is that of one pair only.
    assert (first.missing, version.ensemble.fitted_on.left_out) == (1, 1)
    assert len(version.rows) == 7
    scored = score_ensemble(rated, "ensemble", texts())
    assert np.isnan(scored.scores).tolist() == [False, True, False]
    assert scored.missing == {"one_pass.errors": 1, "rouge_1": 0}


def test_members_are_asked_of_engines_of_their_own(rated, monkeypatch):
    """As published ensembles are made: judges of several engines."""
    said = {
        text: errors(*[("omission", True)] * (place % 3), matched=2)
        for place, (_, text) in enumerate(TEXTS)
    }
    asked = tell(monkeypatch, said)
    named = "one_pass.errors=told:x"
    version = fit(rated, named, "one_pass.errors", "rouge_l")
    told = {one.name: one.pin for one in version.ensemble.members}
    assert told[named].engine == "told:x"
    assert told["one_pass.errors"].engine == "rules"
    assert told["one_pass.errors"].digest == told[named].digest
    assert told["one_pass.errors"].identity != told[named].identity
    assert len(asked) == len(TEXTS)
    scored = score_ensemble(rated, "ensemble", texts())
    assert np.isfinite(scored.scores).all()
    assert len(asked) == len(TEXTS) + len(OTHER)


def test_another_engine_behind_a_member_is_refused(rated, monkeypatch):
    """The name is the same and the identity is not."""
    said = {
        text: errors(*[("omission", True)] * (place % 3), matched=2)
        for place, (_, text) in enumerate(TEXTS)
    }
    tell(monkeypatch, said)
    fit(rated, "one_pass", "rouge_1", graders=GraderOptions(engine="told:x"))
    score_ensemble(rated, "ensemble", texts())
    monkeypatch.setattr(
        "tests.judge.scenes.ToldJudge.identity",
        lambda self: {"engine": "told", "model": "a newer one"},
    )
    with pytest.raises(DataError) as error:
        score_ensemble(rated, "ensemble", texts())
    assert "member one_pass of ensemble@v1: the identity of the engine" in str(
        error.value
    )
    assert "fit the ensemble again" in str(error.value)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("digest", "the digest of the prompt"),
        ("conventions", "the signature"),
    ],
)
def test_a_member_that_is_another_one_today_is_refused(
    rated, monkeypatch, field, words
):
    """A prompt that was edited, and a metric of another library."""
    fit(rated)
    grade = graders.grade_texts

    def changed(*given):
        columns = grade(*given)
        pins = [one.pin.model_copy(update={field: "f" * 64}) for one in columns]
        return tuple(
            graders.GradedColumn(
                name=one.name,
                title=one.title,
                direction=one.direction,
                values=one.values,
                signature=one.signature,
                pin=pin,
            )
            for one, pin in zip(columns, pins, strict=True)
        )

    monkeypatch.setattr(ensemble_scoring, "grade_texts", changed)
    with pytest.raises(DataError, match=words):
        score_ensemble(rated, "ensemble", texts())


def test_a_newer_version_of_a_member_is_not_asked(rated):
    """The pinned one is, and the newest is another judge."""
    fit(rated, "mine", "rouge_1")
    before = score_ensemble(rated, "ensemble", texts()).scores
    made = call(rated, "prompt", "new", "mine2", "--from", "one_pass@v1")
    assert made.exit_code == 0
    assert read_ensemble(rated, "ensemble").ensemble.members[0].pin.judge == "mine@v1"
    after = score_ensemble(rated, "ensemble", texts()).scores
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("pairs", "prefix", "words"),
    [
        (TEXTS[2:3], "z", r"1 reference of the pairs is among .*\(rp\): z0\. "),
        (
            [("LARGE right   pneumothorax", "Something else.")],
            "z",
            "1 reference of the pairs",
        ),
        (OTHER, "p", r"3 cases of the pairs are among .*: p0, p1, p2"),
    ],
)
def test_pairs_that_it_was_fitted_on_are_refused(rated, pairs, prefix, words):
    """By reference, but for case and signs, and by id; never a word of a text."""
    fit(rated)
    with pytest.raises(OverlapError, match=words) as error:
        score_ensemble(rated, "ensemble", texts(pairs, prefix))
    assert "pneumothorax" not in str(error.value).casefold()


def test_references_are_compared_even_where_the_cohort_is_gone(rated, tmp_path):
    """Their digests are in the version; of the rest it is said that it was not."""
    fit(rated)
    rated.cohorts.rename(tmp_path / "away")
    said = score_ensemble(rated, "ensemble", texts())
    assert said.not_checked == ("cases and patients: cohort rp is not here",)
    with pytest.raises(OverlapError, match="1 reference"):
        score_ensemble(rated, "ensemble", texts(TEXTS[:1]))


def test_a_patient_and_a_nearly_equal_reference_are_an_overlap(workspace, tmp_path):
    """By keyed pseudonym, and by words; a like candidate is none."""
    long = (
        "The heart is mildly enlarged and there is a moderate pleural effusion on "
        "the left with adjacent atelectasis and no pneumothorax is seen today"
    )
    source = table(
        tmp_path / "pairs.csv",
        ("id", "reference", "candidate", "patient"),
        [("a", long, "Normal chest.", "mary"), ("b", "Clear.", "Clear.", "joe")],
    )
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    done = call(workspace, "cohort", "import", source, "--name", "two", *options)
    assert done.exit_code == 0, done.output
    cohort = read_cohort(workspace, "two")
    near = ForeignPairs(("x",), (long.replace("today", "now"),), {})
    found = compare_pairs(workspace, cohort, near)
    assert [(one.kind.value, one.examples) for one in found.shared] == [
        ("near-duplicate text", (("x", "a"),))
    ]
    joe = next(one.patient for one in cohort.cases if one.case_id == "b")
    other = ForeignPairs(("x",), ("Normal chest.",), {"x": joe}, cohort.pseudonym_key)
    found = compare_pairs(workspace, cohort, other)
    assert [(one.kind.value, one.examples) for one in found.shared] == [
        ("patient", (("x", "b"),))
    ]
    assert found.not_checked == ()
    more = ForeignPairs(
        ("x", "y"), ("One.", "Two."), {"x": joe, "y": ""}, cohort.pseudonym_key
    )
    partly = compare_pairs(workspace, cohort, more)
    assert partly.shared == found.shared
    assert partly.not_checked == ("patients: not named for every case of the pairs",)
    foreign = compare_pairs(workspace, cohort, other._replace(pseudonym_key="else"))
    assert foreign.shared == ()
    assert foreign.not_checked == (
        "patients: pseudonymised with another key than here",
    )


@pytest.mark.parametrize("role", ["holdout", "external", "taxonomy"])
def test_only_a_dev_cohort_is_fitted_on(workspace, tmp_path, role):
    """To fit is to revise; a holdout's ratings are not even asked for."""
    source = table(
        tmp_path / "pairs.csv",
        ("id", "reference", "candidate"),
        [(f"q{n}", *pair) for n, pair in enumerate(OTHER)],
    )
    options = ("--role", role, "--source", "made up", "--licence", "none")
    done = call(workspace, "cohort", "import", source, "--name", "q", *options)
    assert done.exit_code == 0, done.output
    before = len(read_ledger(workspace.ledger))
    with pytest.raises(DataError, match=f"'q' is {role}, and to fit is to revise"):
        fit_cohort_ensemble(workspace, "q", ["green", "rouge_1"], ANN)
    assert len(read_ledger(workspace.ledger)) == before


def test_a_metric_that_only_describes_is_no_member(rated):
    """The number of words is neither better high nor low."""
    with pytest.raises(DataError, match="describes a candidate and does not grade"):
        fit(rated, "green", "n_words")


def test_the_verb_fits_lists_shows_and_scores(rated, tmp_path):
    """From the first to the last, with files and JSON."""
    members = ("--members", "green,rouge_1", "--out-of-fold", "-k", "4")
    done = call(rated, "ensemble", "fit", "--cohort", "rp", *members)
    assert done.exit_code == 0, done.output
    flat = " ".join(done.stdout.split())
    assert "ensemble@v1: regression of 2 members, fitted on 8 pairs of 7" in flat
    assert "Out of fold, the regression does not beat its best member" in flat
    again = call(rated, "ensemble", "fit", "--cohort", "rp", *members)
    assert "nothing is recorded anew" in again.output
    mean = call(
        rated,
        *("ensemble", "fit", "--cohort", "rp", "--members", "green,rouge_1"),
        *("--method", "mean", "-n", "plain"),
    )
    assert "was not measured. Fit it with --out-of-fold" in " ".join(
        mean.stdout.split()
    )
    listed = json.loads(call(rated, "ensemble", "list", "--json").stdout)
    assert [one["ensemble"] for one in listed["ensembles"]] == [
        "ensemble@v1",
        "plain@v1",
    ]
    shown = json.loads(call(rated, "ensemble", "show", "plain", "--json").stdout)
    assert shown["refitted_the_same"]
    assert shown["method"] == EnsembleMethod.MEAN
    assert "Fitted again on its 8 rows it is the same" in " ".join(
        call(rated, "ensemble", "show", "ensemble").stdout.split()
    )
    path = table(
        tmp_path / "new.csv",
        ("id", "system", "reference", "candidate"),
        [
            ("n1", "one", *OTHER[0]),
            ("n1", "two", OTHER[0][0], "No effusion."),
            ("n2", "one", *OTHER[2]),
        ],
    )
    out = tmp_path / "scores.csv"
    scored = call(
        rated, "ensemble", "score", "plain", "--pairs", path, "--out", out, "--json"
    )
    assert scored.exit_code == 0, scored.output
    data = json.loads(scored.stdout)
    assert [one["scored"] for one in data["systems"]] == [2, 1]
    by_key = {(one["id"], one["system"]): one["score"] for one in data["pairs"]}
    assert by_key["n1", "one"] > by_key["n1", "two"]
    with out.open() as stream:
        rows = list(csv.DictReader(stream))
    assert {(one["id"], one["system"]): float(one["plain"]) for one in rows} == by_key
    audited = call(rated, "audit")
    assert "2 ensembles are as recorded" in audited.stdout
    assert audited.exit_code == 0, audited.output


def test_dr_takes_ensembles_and_scores_of_judges(rated, tmp_path):
    """As any metric; refused on references that it was fitted on."""
    fit(rated)
    rows = [
        ("v1", "n1", *OTHER[0], "order", "no"),
        ("v2", "n1", OTHER[0][0], "Moderate left pleural effusion.", "location", "yes"),
    ]
    header = ("id", "reference_id", "reference", "candidate", "kind", "significant")
    path = table(tmp_path / "marked.csv", header, rows)
    named = ("-m", "ensemble:ensemble", "-m", "green.errors", "-m", "green")
    done = call(rated, "dr", path, *named, "--resamples", "20", "--json")
    assert done.exit_code == 0, done.output
    assert "ensemble@v1" in done.stdout
    bad = [(name, of, TEXTS[2][0], *rest[1:]) for name, of, *rest in rows]
    refused = call(rated, "dr", table(tmp_path / "bad.csv", header, bad), *named)
    assert refused.exit_code == 1
    assert "those that ensemble@v1 was fitted on" in str(refused.exception)


@pytest.mark.external
def test_radpref_for_real(workspace, data_folder):
    """The command of the manual on 50 cases of RadPref, held against scikit-learn."""
    folder = data_folder / "radpref"
    imported = call(workspace, "cohort", "import", folder, "--name", "rp")
    assert imported.exit_code == 0, imported.output
    done = call(
        workspace,
        *("ensemble", "fit", "--cohort", "rp", "--out-of-fold"),
        *("--members", "green,rouge_1,ran_errors"),
    )
    assert done.exit_code == 0, done.output
    version = read_ensemble(workspace, "ensemble")
    told = version.ensemble
    assert (told.fitted_on.pairs, told.fitted_on.unit) == (100, "patient")
    values = np.array([row.values for row in version.rows])
    points = np.array([row.points for row in version.rows])
    out = np.array([row.out_of_fold for row in version.rows])
    units = np.array([row.unit for row in version.rows])
    for fold in set(out[:, 0]):
        own = out[:, 0] == fold
        assert not set(units[own]) & set(units[~own])
        fitted = LinearRegression().fit(values[~own], points[~own])
        assert out[own, 2] == pytest.approx(fitted.predict(values[own]))
    found = told.out_of_fold
    tau = kendalltau(out[:, 2], points)[0]
    assert found.regression.tau_b.value == pytest.approx(tau, abs=1e-9)
    assert found.in_sample.tau_b.value > tau
    assert set(found.chosen) == {"green"}
    green = kendalltau(values[:, 0], points)[0]
    assert found.best.tau_b.value == pytest.approx(green, abs=1e-9)
    assert not any(one.beats for one in found.against)
    assert "regression does not beat its best member" in " ".join(done.stdout.split())


def test_a_patient_of_the_fitted_pairs_is_refused(workspace, tmp_path):
    """Patients of a file are compared by the workspace's own pseudonyms."""
    source = table(
        tmp_path / "pairs.csv",
        ("id", "reference", "candidate", "patient"),
        [(f"p{n}", *pair, f"pat{n // 2}") for n, pair in enumerate(TEXTS)],
    )
    points = table(
        tmp_path / "ratings.csv",
        ("case_id", "rater", "dimension", "points", "scale"),
        [(f"p{n}", "r1", "overall", n % 5 + 1, "1-5") for n in range(len(TEXTS))],
    )
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    done = call(
        workspace,
        *("cohort", "import", source, "--name", "rp", "--ratings", points, *options),
    )
    assert done.exit_code == 0, done.output
    version = fit(workspace)
    told = version.ensemble.fitted_on
    assert (told.unit, told.units, told.raters) == ("patient", 4, 1)
    header = ("id", "reference", "candidate", "patient")
    for patient, code in (("pat9", 0), ("pat3", 1)):
        rows = [("z1", *OTHER[0], patient), ("z2", *OTHER[1], "pat8")]
        path = table(tmp_path / f"{patient}.csv", header, rows)
        scored = call(workspace, "ensemble", "score", "ensemble", "--pairs", path)
        assert scored.exit_code == code, scored.output
        assert "not compared" not in scored.output
    assert "1 patient of the pairs is among those" in str(scored.exception)


def test_audit_finds_an_ensemble_that_was_edited(rated):
    """With its entry, and without the words of the file."""
    version = fit(rated)
    path = rated.labels / "ensembles" / "ensemble" / "v1" / "rows.csv"
    kept = path.read_text()
    path.write_text(kept.replace("\n", "\n\n", 1))
    done = call(rated, "audit")
    assert done.exit_code != 0
    flat = " ".join(done.stdout.split())
    assert "ensemble:ensemble@v1 is not as recorded" in flat
    path.write_text(kept)
    assert call(rated, "audit").exit_code == 0
    assert read_ensemble(rated, "ensemble").digest == version.digest


@pytest.fixture
def told_of(monkeypatch):
    """Register the engine ``knows``; return what it is told of each patient."""
    found = []

    class Knows:
        def identity(self):
            return {"engine": "knows"}

        def complete(self, prompts):
            for index, prompt in enumerate(prompts):
                texts = prompt.item.variables
                found.append(texts["context"])
                listed = [
                    {"finding": f"{n}", "weight": "urgent"}
                    for n in range(len(texts["candidate"]) % 5)
                ]
                said = {"matched_findings": [], "missed_findings": []}
                said = json.dumps({**said, "false_findings": listed})
                yield index, Completion(said)

    monkeypatch.setitem(base._FACTORIES, "knows", lambda *_: Knows())
    return found


def test_members_are_told_what_is_known_of_the_patient(rated, told_of, tmp_path):
    """From the cohort and from a file; scores without are those of another member."""
    header = ("id", "reference", "candidate", "context")
    known = table(
        tmp_path / "known.csv",
        header,
        [(f"p{n}", *both, f"Age: {30 + n}") for n, both in enumerate(TEXTS)],
    )
    options = ("--role", "dev", "--replace", "--why", "context", "--ratings")
    points = tmp_path / "ratings.csv"
    done = call(rated, "cohort", "import", known, "--name", "rp", *options, points)
    assert done.exit_code == 0, done.output
    version = fit(rated, "crimson=knows:m", "rouge_1")
    assert sorted(told_of) == [f"Age: {30 + n}" for n in range(len(TEXTS))]
    conventions = version.ensemble.members[0].pin.conventions
    assert "|context" in conventions

    told_of.clear()
    rows = [(f"z{n}", *both, f"Sex: {n}") for n, both in enumerate(OTHER)]
    more = table(tmp_path / "more.csv", header, rows)
    taxonomy = read_taxonomy(rated.labels)
    score_joined(rated, "ensemble", join_pairs(more, taxonomy))
    assert sorted(told_of) == ["Sex: 0", "Sex: 1", "Sex: 2"]
    bare = table(tmp_path / "bare.csv", header[:3], [one[:3] for one in rows])
    with pytest.raises(DataError, match=r"the signature is .* now and was"):
        score_joined(rated, "ensemble", join_pairs(bare, taxonomy))


def test_pairs_that_a_judge_shows_as_examples_are_not_graded(rated, tmp_path):
    """As `judge` and `run` refuse them: in `dr`, in ensembles, and in rankings."""
    assert as_pool(rated, tmp_path).exit_code == 0
    made = call(
        rated,
        *("prompt", "new", "shown", "--from", "green@v1"),
        *("--shots", "random:2", "--pool", "pool"),
    )
    assert made.exit_code == 0, made.output
    asked = resolve_graders(rated, ["shown"])
    seen = texts((*OTHER, ("Zebra nodule on the left.", "A nodule.")))
    with pytest.raises(OverlapError, match="1 of the pairs to judge shares"):
        grade_texts(seen, rated, asked, GraderOptions())
    told = []
    options = GraderOptions(asking=EngineOptions(tell=told.append))
    (column,) = grade_texts(texts(), rated, asked, options)
    assert "shots:pool:random:2" in column.signature
    assert [one.split(":")[0] for one in told] == ["shown@v1"]
    assert "share a patient with the shots is not known" in told[0]


def test_a_patient_of_the_shots_is_in_no_ensemble(rated, tmp_path):
    """By pseudonym, neither where it is fitted nor where it scores."""
    assert as_pool(rated, tmp_path).exit_code == 0
    new = ("prompt", "new", "shown", "--from", "green@v1", "--shots", "random:2")
    assert call(rated, *new, "--pool", "pool").exit_code == 0
    fit(rated, "shown", "rouge_1")
    header = ("id", "reference", "candidate", "patient")
    owners = ("x7", "x1", "x8")
    rows = [
        (f"z{n}", *both, owner)
        for n, (both, owner) in enumerate(zip(OTHER, owners, strict=True))
    ]
    path = table(tmp_path / "owned.csv", header, rows)
    joined = join_pairs(path, read_taxonomy(rated.labels))
    with pytest.raises(OverlapError, match="1 by the patient") as said:
        score_joined(rated, "ensemble", joined)
    assert "x1" not in str(said.value)
    points = table(
        tmp_path / "owned-points.csv",
        ("case_id", "rater", "dimension", "points", "scale"),
        [(one[0], "r1", "overall", 3, "1-5") for one in rows],
    )
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    named = ("--name", "owned", "--ratings", points)
    done = call(rated, "cohort", "import", path, *named, *options)
    assert done.exit_code == 0, done.output
    with pytest.raises(OverlapError, match="1 by the patient"):
        fit_cohort_ensemble(rated, "owned", ("shown", "rouge_1"), ANN)


def joined_scores():
    """Return scores of four pairs of two systems, with a member that says little."""
    nan = float("nan")
    version = SimpleNamespace(
        ref="both@v1",
        name="both",
        digest="d",
        signature="s",
        ensemble=SimpleNamespace(unit="points"),
    )
    members = {"a": np.array([1.0, nan, 3.0, 4.0]), "b": np.array([nan, nan, 0.5, 2.0])}
    scores = np.array([nan, nan, 2.5, 0.25])
    found = EnsembleScores(
        version=version,
        ids=("0", "1", "2", "3"),
        scores=scores,
        members=members,
        not_checked=("patients: x",),
    )
    keys = (("c1", "one"), ("c2", "two"), ("c1", "two"), ("=c3", "two"))
    return JoinedScores(scores=found, keys=keys)


def test_each_system_is_summed_up_over_the_pairs_that_have_a_score():
    """In the order of the pairs; without a score there is no mean."""
    assert joined_scores().systems == (
        SystemScores("one", 1, 0, None, None, None),
        SystemScores("two", 3, 2, 1.375, 0.25, 2.5),
    )
    assert joined_scores().scores.missing == {"a": 1, "b": 2}


def test_scores_are_told_with_their_members(tmp_path):
    """As data and as a table: nothing stands where there is no number."""
    found = joined_scores()
    assert ensemble_scores_data(found) == {
        "ensemble": "both@v1",
        "digest": "d",
        "signature": "s",
        "unit": "points",
        "systems": [one._asdict() for one in found.systems],
        "missing": {"a": 1, "b": 2},
        "not_checked": ["patients: x"],
        "pairs": [
            {
                "id": "c1",
                "system": "one",
                "score": None,
                "members": {"a": 1.0, "b": None},
            },
            {
                "id": "c2",
                "system": "two",
                "score": None,
                "members": {"a": None, "b": None},
            },
            {
                "id": "c1",
                "system": "two",
                "score": 2.5,
                "members": {"a": 3.0, "b": 0.5},
            },
            {
                "id": "=c3",
                "system": "two",
                "score": 0.25,
                "members": {"a": 4.0, "b": 2.0},
            },
        ],
    }
    write_scores(found, tmp_path / "scores.csv")
    # A cell that begins like a formula is written as text.
    assert (tmp_path / "scores.csv").read_text("utf-8").splitlines() == [
        "id,system,both,a,b",
        "c1,one,,1.0,",
        "c2,two,,,",
        "c1,two,2.5,3.0,0.5",
        "'=c3,two,0.25,4.0,2.0",
    ]


@pytest.mark.parametrize(
    ("number", "examples", "said"),
    [
        (1, ["c1"], "1 case of the pairs is among those that both@v1 was fitted on"),
        (2, ["c1", "c2"], "2 cases of the pairs are among those that both@v1 was fit"),
        (5, list("abcde"), r"\(rp\): a, b, c, d, e\. Its scores would be too good"),
        (6, list("abcdef"), r"\(rp\): a, b, c, d, e \.\.\.\. Its scores would be too"),
    ],
)
def test_an_overlap_is_refused_with_five_examples(number, examples, said):
    """And how many there are."""
    about = SimpleNamespace(fitted_on=SimpleNamespace(cohort="rp"))
    version = SimpleNamespace(ref="both@v1", ensemble=about)
    with pytest.raises(OverlapError, match=said):
        _refuse(version, number, "case", iter(examples))


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("judge", "the version is 'x' now and was 'judge'"),
        ("score", "the score is 'x' now and was 'score'"),
        ("metric", "the metric is 'x' now and was 'metric'"),
        ("labels_by", "the version that reads labels is 'x' now and was 'labels_by'"),
        ("digest", "the digest of the prompt is 'x' now and was 'dddddddddddd'"),
        ("engine", "the engine is 'x' now and was 'engine'"),
        ("identity", "with its parameters, is 'x' now and was nothing"),
        ("conventions", "the signature is 'x' now and was 'conventions'"),
    ],
)
def test_a_member_is_today_what_it_was(what, words):
    """In all that its coefficient rests on; the last is held like the first."""
    names = ("judge", "score", "metric", "labels_by", "engine", "conventions")
    pin = {name: name for name in names} | {"digest": "d" * 64, "identity": ""}
    members = [
        SimpleNamespace(name=name, pin=SimpleNamespace(**pin)) for name in ("a", "b")
    ]
    version = SimpleNamespace(ref="both@v1", ensemble=SimpleNamespace(members=members))
    same = SimpleNamespace(pin=SimpleNamespace(**pin))
    _require_pinned(version, {"a": same, "b": same})
    other = SimpleNamespace(pin=SimpleNamespace(**pin | {what: "x"}))
    with pytest.raises(DataError, match=f"member b of both@v1: .*{words} when the"):
        _require_pinned(version, {"a": same, "b": other})
