"""Judges side by side: prompts by engines, against the same ratings and each other."""

import csv
import io
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.core.errors import DataError, EngineError
from loop.core.ledger import read_ledger
from loop.core.records import Completion, Status
from loop.evaluate.matrix.runs import MatrixRequest
from loop.judge import judge_matrix
from loop.judge.judge_matrix import JudgeColumn, JudgeRun, sweep_thinking
from loop.run.manifest import list_runs
from loop.run.store import open_store
from loop.stats.dependent import compare_metrics
from loop.stats.intervals import Interval
from tests.judge.scenes import POINTS, TEXTS, as_pool, call, errors, rate, tell


@pytest.fixture
def rated(workspace, tmp_path):
    """Return a workspace with eight rated pairs and the judges `mine`, `listed`."""
    rate(workspace, tmp_path)
    call(workspace, "prompt", "new", "listed", "--from", "one_pass@v1")
    return workspace


def data_of(workspace, *arguments):
    """Return the JSON of ``matrix``."""
    done = call(workspace, "matrix", *arguments, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


JUDGED = ("mine,listed", "--cohort", "rp", "-e", "rules")


def test_two_judges_stand_side_by_side(rated):
    """A column each, the same pairs, every score with its interval and its test."""
    data = data_of(rated, *JUDGED)
    assert [one["prompt"] for one in data["columns"]] == ["mine@v1", "listed@v1"]
    assert (data["pairs"], data["raters"], data["unit"]) == (8, 2, "reference")
    for column in data["columns"]:
        assert column["outcomes"]["answered"] == 8
        names = [one["score"] for one in column["scores"]]
        assert names == ["green", "green_f1", "formula", "errors", "own"]
        for one in column["scores"]:
            agreement = one["agreement"]
            assert agreement["tau_b"]["low"] <= agreement["tau_b"]["value"]
            assert agreement["shown"] == (agreement["kendall_p"] < 0.05)
    (compared,) = data["comparisons"]
    assert compared["pairs"] == 8
    # Both are read by the same engine from the same guides.
    assert compared["difference_of_tau_b"] == pytest.approx(0)
    assert compared["p_holm"] == 1


def test_the_numbers_are_those_of_evaluate(rated):
    """Nothing is measured in another way for being shown beside something."""
    (column, _) = data_of(rated, *JUDGED)["columns"]
    alone = json.loads(call(rated, "evaluate", "latest:mine", "--json").stdout)
    tau = {one["score"]: one["tau_b"]["value"] for one in alone["agreement"]}
    assert {
        one["score"]: one["agreement"]["tau_b"]["value"] for one in column["scores"]
    } == tau
    assert column["spread"] == alone["spread"]
    assert column["errors"]["total"] == alone["meta"]["errors"][0]["total"]


def _told(given):
    """Return an answer for each pair that counts so many significant errors."""
    return {
        texts: errors(*[("omission", True)] * number, matched=3)
        for texts, number in zip(TEXTS, given, strict=True)
    }


BEST = [5 - one for one in POINTS]


def test_the_better_judge_is_found_and_its_difference_is_exact(rated, monkeypatch):
    """One counts as many errors as points are missing, the other any number."""
    answers = {"good": _told(BEST), "poor": _told([3, 3, 1, 0, 2, 4, 3, 2])}

    class Named:
        def __init__(self, model, _):
            self.model = model

        def identity(self):
            return {"engine": "named", "model": self.model}

        def complete(self, prompts):
            for index, prompt in enumerate(prompts):
                given = prompt.item.variables
                said = answers[self.model][given["reference"], given["candidate"]]
                yield index, Completion(said, "stop", "", 2.0, 90, 10)

    from loop.engines import base

    monkeypatch.setitem(base._FACTORIES, "named", Named)
    data = data_of(
        rated, "listed", "--cohort", "rp", "-e", "named:poor", "-e", "named:good"
    )
    (compared,) = data["comparisons"]
    assert (compared["higher"], compared["lower"]) == ("B", "A")
    assert compared["exact"]
    poor, good = data["columns"]
    first = {one["score"]: one for one in good["scores"]}
    tau = first["errors"]["agreement"]["tau_b"]["value"]
    mean = [(one + min(5, one + 1)) / 2 for one in POINTS]
    expected = kendalltau(-np.array(BEST), mean)
    assert tau == pytest.approx(expected.statistic)
    assert first["errors"]["agreement"]["kendall_p"] == pytest.approx(expected.pvalue)
    assert first["errors"]["direction"] == "lower"
    (spread,) = [one for one in first.values() if one["score"] == "errors"]
    assert spread["mean"] == pytest.approx(np.mean(BEST))
    cost = poor["cost"]
    assert (cost["seconds_per_pair"], cost["tokens_per_pair"]) == (2.0, 100.0)
    shown = {one["score"]: one["agreement"]["shown"] for one in poor["scores"]}
    assert not any(shown.values())
    done = call(
        rated,
        "matrix",
        "listed",
        "--cohort",
        "rp",
        "-e",
        "named:poor",
        "-e",
        "named:good",
    )
    assert "†" in done.stdout
    assert "Kendall's test" in " ".join(done.stdout.split())


@contextmanager
def garbage():
    """Serve a model whose every answer is nonsense; yield its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            """Say nothing."""

        def _send(self, data):
            raw = json.dumps(data).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_GET(self):
            self._send({"object": "list", "data": [{"id": "tiny", "object": "model"}]})

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            message = {"role": "assistant", "content": "%% ~ lorem zz"}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            usage = {"prompt_tokens": 50, "completion_tokens": 4, "total_tokens": 54}
            self._send({"model": "tiny", "choices": [choice], "usage": usage})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_server_that_answers_nonsense_is_a_column_without_a_number(rated, tmp_path):
    """All unparsed: no score, no agreement, no curve, and no agreement of 0."""
    page, table = tmp_path / "m.html", tmp_path / "m.csv"
    with garbage() as port:
        engine = f"openai:tiny@http://127.0.0.1:{port}/v1"
        done = call(
            rated,
            *("matrix", "mine,listed", "--cohort", "rp", "-e", "rules", "-e", engine),
            *("--allow-unconstrained", "--html", page, "--csv", table, "--json"),
        )
    assert done.exit_code == 0, (done.output, done.exception)
    data = json.loads(done.stdout)
    assert len(data["columns"]) == 4
    for column in data["columns"][1::2]:
        assert column["outcomes"] == {"answered": 0, "unparsed": 8, "engine_failed": 0}
        assert column["scores"] == column["spread"] == []
        assert column["errors"] is column["compared_by"] is None
        assert column["cost"]["tokens_per_pair"] == 54
        assert column["unparsed_limits"][0] == pytest.approx(0.025 ** (1 / 8))
    assert len(data["comparisons"]) == 1
    assert sum("no answer can be read" in note for note in data["notes"]) == 2
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert [row["score"] for row in rows if row["unparsed"] == "8"] == ["", ""]
    assert "nan" not in page.read_text().lower().replace("&nbsp;", "")


def test_an_engine_that_is_not_there_keeps_its_column(rated):
    """With the reason, and the exit code says so."""
    done = call(
        rated, *("matrix", "mine", "--cohort", "rp", "-e"),
        "openai:tiny@http://127.0.0.1:9/v1", "-e", "rules", "--json",
    )  # fmt: skip
    assert done.exit_code == 1
    data = json.loads(done.stdout)
    assert data["columns"][0]["failure"] and data["columns"][0]["run"] is None
    assert data["columns"][1]["outcomes"]["answered"] == 8


def test_documents_hold_no_text_and_every_column(rated, tmp_path):
    """HTML with figures, Markdown, CSV; ids stay out, too."""
    paths = [tmp_path / f"m.{end}" for end in ("html", "md", "csv")]
    named = zip(("--html", "--md", "--csv"), paths, strict=True)
    done = call(rated, "matrix", *JUDGED, *[part for one in named for part in one])
    assert done.exit_code == 0, done.output
    html, markdown, table = (path.read_text() for path in paths)
    for text in (html, markdown):
        assert "mine@v1" in text and "listed@v1" in text
        assert "0.819" in text
    for text in (html, markdown, table, done.stdout):
        assert "effusion" not in text and "p3" not in text and "zebra" not in text
    assert html.count("<svg") == 4
    assert "<script" not in html and "http" not in html.replace(
        "http://www.w3.org/2000/svg", ""
    ).replace("http-equiv", "")
    rows = list(csv.DictReader(io.StringIO(table)))
    assert len(rows) == 10
    assert {row["compared_by"] for row in rows} == {"0", "1"}
    assert [row["score"] for row in rows if row["compared_by"] == "1"] == ["green"] * 2


def test_the_claimed_score_is_what_columns_are_compared_by(rated):
    """Else GREEN: it is fixed before anything is seen."""
    rated.protocol.write_text(
        rated.protocol.read_text()
        + "\njudging:\n  score: own\n  threshold: 0.5\n  min_units: 4\n"
    )
    data = data_of(rated, *JUDGED)
    assert {one["compared_by"] for one in data["columns"]} == {"own"}


def test_stored_answers_are_not_asked_again(rated, monkeypatch):
    """A matrix that was stopped goes on."""
    asked = tell(monkeypatch, {})
    for _ in range(2):
        data_of(rated, "listed", "--cohort", "rp", "-e", "told")
    assert len(asked) == len(TEXTS)


def test_finished_runs_are_taken_by_name(rated):
    """As `matrix` takes those of extractors; and a limit holds for all."""
    for judge in ("mine", "listed"):
        call(rated, "run", judge, "--cohort", "rp")
    data = data_of(rated, "--run", "latest:mine", "--run", "latest:listed")
    assert [one["prompt"] for one in data["columns"]] == ["mine@v1", "listed@v1"]
    part = data_of(rated, *JUDGED, "--limit", "5")
    assert part["pairs"] == 5
    assert part["columns"][0]["outcomes"]["answered"] == 5
    mixed = call(rated, "matrix", *JUDGED, "--limit", "5", "--run", "latest:mine")
    assert "has other pairs" in str(mixed.exception)
    twice = call(rated, "matrix", "--run", "latest:mine", "--run", "latest:mine")
    assert "fills two columns" in str(twice.exception)


def test_runs_that_cannot_stand_side_by_side_are_refused(rated, tmp_path):
    """Of other pairs, of a part of them, of judges beside extractors, or none."""
    call(rated, "run", "mine", "--cohort", "rp")
    call(rated, "run", "mine", "--cohort", "rp", "--limit", "5")
    as_pool(rated, tmp_path, "more", "dev")
    call(rated, "run", "listed", "--cohort", "more")
    texts = tmp_path / "texts.csv"
    texts.write_text("id,report\n1,No effusion.\n")
    call(rated, "cohort", "import", str(texts), "--name", "dev", "--role", "dev")
    call(rated, "run", "extractor", "--cohort", "dev")
    with open_store(rated) as store:
        found = list_runs(rated, store)
    runs = {
        (one.spec.prompt.partition("@")[0], one.part is None): one.id for one in found
    }
    whole, part = runs["mine", True], runs["mine", False]
    more, other = runs["listed", True], runs["extractor", True]
    done = call(rated, "matrix", "--run", whole, "--run", part)
    assert str(done.exception).startswith(
        f"Run {part} asked the first 5 cases of rp only;"
    )
    done = call(rated, "matrix", "--run", whole, "--run", more)
    assert str(done.exception) == (
        f"runs {whole} (rp) and {more} (more) have different pairs. Compare runs of "
        "one cohort, all of it or the same part."
    )
    done = call(rated, "matrix", "--run", whole, "--run", other)
    assert str(done.exception) == (
        "some of the runs are of judges and some of extractors. Compare them "
        "separately."
    )
    missing = [
        JudgeRun(prompt=f"{name}@v1", engine="told", run=None, failure=f"{name} broke")
        for name in ("mine", "listed")
    ]
    with pytest.raises(EngineError) as failed:
        judge_matrix.read_judge_matrix(rated, missing)
    assert str(failed.value) == (
        "no judge has a run. mine@v1, told: mine broke; listed@v1, told: listed broke"
    )


def test_only_the_protocol_goes_into_the_ledger(rated):
    """A matrix decides nothing."""
    before = len(read_ledger(rated.ledger))
    call(rated, "matrix", *JUDGED)
    call(rated, "matrix", *JUDGED)
    added = [one.action for one in read_ledger(rated.ledger)[before:]]
    assert added == ["protocol_set"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mine,extractor", "--cohort", "rp", "-e", "rules"), "is not a judge, and"),
        (("mine,mine@v1", "--cohort", "rp", "-e", "rules"), "mine@v1 is named twice"),
        (("mine,green", "--cohort", "rp", "-e", "rules"), "--from green@v1"),
    ],
)
def test_what_cannot_stand_side_by_side_is_refused(rated, arguments, words):
    """Before anything is asked."""
    done = call(rated, "matrix", *arguments)
    assert words in str(done.exception)
    assert done.exit_code == 1


def test_options_of_extractors_are_refused(rated):
    """And the strata of judges for these."""
    assert call(rated, "matrix", *JUDGED, "--reference", "1").exit_code == 2
    assert call(rated, "matrix", *JUDGED, "-e", "rules").exit_code == 2
    assert call(rated, "matrix", "mine,listed").exit_code == 2


def test_agreement_within_strata(rated, tmp_path):
    """Of eight pairs nothing is estimable within one, and n says why."""
    path = tmp_path / "strata.csv"
    rows = [f"p{n},{'CT' if n < 3 else 'CR'}" for n in range(7)]
    path.write_text("\n".join(["case_id,modality", *rows]))
    data = data_of(rated, *JUDGED, "--strata", str(path))
    found = data["columns"][0]["strata"]
    named = {one["stratum"]: one["n"] for one in found}
    assert named == {"": 1, "CR": 4, "CT": 3}
    assert {one["tau_b"]["value"] for one in found} == {None}
    assert all("not estimable" in one["tau_b"]["note"] for one in found)
    done = call(rated, "matrix", *JUDGED, "--strata", path)
    assert "(not named)" in done.stdout and "not estimable" in done.stdout


def test_compare_of_two_judges_runs(rated):
    """The same, of two runs; one of an extractor is no judge's."""
    for judge in ("mine", "listed"):
        call(rated, "run", judge, "--cohort", "rp")
    done = call(rated, "compare", "latest:mine", "latest:listed", "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    named = ("--run", "latest:mine", "--run", "latest:listed")
    assert json.loads(done.stdout) == data_of(rated, *named)
    shown = call(rated, "compare", "latest:mine", "latest:listed")
    assert "tau-b, difference" in shown.stdout
    assert (
        call(rated, "compare", "latest:mine", "latest:listed", "-l", "x").exit_code == 2
    )


def test_judges_of_other_scores_stand_beside(rated):
    """One scores only, one holds phrases: no error counts, and orders are compared."""
    for name in ("rubric", "radfact"):
        made = call(rated, "prompt", "new", name, "--from", f"{name}@v1")
        assert made.exit_code == 0, made.output
    data = data_of(rated, "mine,rubric,radfact", "--cohort", "rp", "-e", "rules")
    scores = [[one["score"] for one in column["scores"]] for column in data["columns"]]
    assert scores[1:] == [["own"], ["f1", "precision", "recall"]]
    assert [column["errors"] is None for column in data["columns"]] == [
        False,
        True,
        True,
    ]
    assert len(data["comparisons"]) == 3


def test_a_holdout_is_not_looked_at(rated, tmp_path):
    """Its ratings are sealed, and nothing is asked."""
    path = tmp_path / "held.csv"
    path.write_text(
        "id,reference,candidate\nh1,Clear lungs today.,Left effusion now.\n"
    )
    options = ("--role", "holdout", "--source", "made up", "--licence", "none")
    done = call(rated, "cohort", "import", path, "--name", "held", *options)
    assert done.exit_code == 0, (done.output, done.exception)
    refused = call(rated, "matrix", "mine", "--cohort", "held", "-e", "rules")
    assert refused.exit_code == 1
    actions = [one.action for one in read_ledger(rated.ledger)]
    assert "holdout_opened" not in actions and "protocol_set" not in actions


def test_a_cohort_that_nobody_rated_is_refused(rated, tmp_path):
    """Before anything is asked: there is nothing to hold a judge against."""
    path = tmp_path / "bare.csv"
    path.write_text(
        "id,reference,candidate\nb1,Clear lungs today.,Left effusion now.\n"
    )
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    call(rated, "cohort", "import", path, "--name", "bare", *options)
    refused = call(rated, "matrix", "mine", "--cohort", "bare", "-e", "rules")
    assert refused.exit_code == 1
    assert "rat" in str(refused.exception)
    assert call(rated, "matrix", "--run", "latest:mine").exit_code == 1


def test_a_price_is_shown_where_the_settings_have_one(rated):
    """Of tokens that were counted; the engine rules has neither."""
    rated.config.parent.mkdir(exist_ok=True)
    rated.config.write_text(
        "prices:\n  tiny:\n    currency: EUR\n    input: 2\n    output: 8\n"
    )
    with garbage() as port:
        engine = f"openai:tiny@http://127.0.0.1:{port}/v1"
        data = data_of(
            rated, "mine", "--cohort", "rp", "-e", engine, "--allow-unconstrained"
        )
    cost = data["columns"][0]["cost"]
    assert cost["currency"] == "EUR"
    # An answer that cannot be read is asked for twice more, and that is paid, too.
    assert cost["price_per_pair"] == pytest.approx(3 * (50 * 2 + 4 * 8) / 1e6)
    assert cost["tokens_per_pair"] == 54
    assert any("asked for again" in note for note in data["notes"])


def test_names_that_are_markup_stay_text(rated, monkeypatch, tmp_path):
    """Of an engine, in the page, the Markdown and the table."""
    tell(monkeypatch, {})
    paths = [tmp_path / f"m.{end}" for end in ("html", "md", "csv")]
    named = zip(("--html", "--md", "--csv"), paths, strict=True)
    engine = "told:<b>x|y</b>=1+1"
    done = call(
        rated,
        *("matrix", "listed", "--cohort", "rp", "-e", engine, "-e", "rules"),
        *(part for one in named for part in one),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    html, markdown, _ = (path.read_text() for path in paths)
    assert "<b>x" not in html and "&lt;b&gt;x|y" in html
    assert "<b>x" not in markdown and "x&#124;y" in markdown


def column(key, *, chosen="green"):
    """Return a column of which only the key and the chosen score count."""
    return JudgeColumn(
        key=key,
        prompt="j@v1",
        engine="told",
        statuses=dict.fromkeys(Status, 0),
        unparsed=Interval(0, 1),
        chosen=chosen,
    )


def test_every_two_columns_are_compared_the_higher_first():
    """Each p is adjusted over all of them; a column without a score is in none."""
    rng = np.random.default_rng(3)
    consensus = rng.integers(1, 6, 12).astype(float)
    values = np.column_stack(
        [
            rng.random(12),
            np.full(12, np.nan),
            consensus + 0.4 * rng.random(12),
            np.ones(12),
            consensus + 3 * rng.random(12),
        ]
    )
    units = np.arange(12) // 2
    columns = [column(key, chosen="" if key == "B" else "green") for key in "ABCDE"]
    scene = SimpleNamespace(consensus=consensus, units=units)
    found = judge_matrix._compare(columns, values, scene)
    tau = {
        key: kendalltau(values[:, place], consensus).statistic
        for place, key in enumerate("ABCDE")
    }
    pairs = [("A", "C"), ("A", "D"), ("A", "E"), ("C", "D"), ("C", "E"), ("D", "E")]
    decided = [one for one in pairs if "D" not in one]
    tests = compare_metrics(
        values,
        consensus,
        units,
        pairs=[("ABCDE".index(one), "ABCDE".index(other)) for one, other in decided],
        permutations=10_000,
    )
    # Holm: the least of three p times 3, the next times 2, never falling.
    order = np.argsort([one.p for one in tests])
    adjusted, before = {}, 0.0
    for rank, place in enumerate(order):
        before = max(before, min(1.0, (3 - rank) * tests[place].p))
        adjusted[decided[place]] = before
    assert [tuple(sorted((one.first, one.second))) for one in found] == pairs
    for one, pair in zip(found, pairs, strict=True):
        if "D" in pair:
            assert (one.test.difference, one.test.p, one.p_holm) == (None, None, None)
            continue
        assert tau[one.first] >= tau[one.second]
        apart = tau[one.first] - tau[one.second]
        assert one.test.difference == pytest.approx(apart)
        assert one.test.p == tests[decided.index(pair)].p
        assert one.p_holm == pytest.approx(adjusted[pair])
        assert (one.test.n, one.test.n_units) == (12, 6)
    assert judge_matrix._compare(columns[:2], values[:, :2], scene) == ()


def test_columns_have_letters_from_a_to_bz():
    """More would be no table."""
    keys = judge_matrix._keys(78)
    assert (keys[:2], keys[25:28], keys[-1]) == (["A", "B"], ["Z", "AA", "AB"], "BZ")
    assert len(set(keys)) == 78 and judge_matrix._keys(1) == ["A"]
    with pytest.raises(DataError, match="78 columns at most, and 79 were named"):
        judge_matrix._keys(79)


def test_levels_of_thinking_are_asked_of_language_models_only():
    """All are asked as they are first; a level that is named twice is asked once."""
    one = MatrixRequest("green", "rp", ["rules", "vllm:m", "openai:n"])
    other = MatrixRequest("mine", "rp", ["vllm:m"], limit=3)
    found = sweep_thinking([one, other], ["low", "default", "low", "512"])
    models = ["vllm:m", "openai:n"]
    assert [
        (each.prompt, each.engines, each.asking.thinking, each.limit) for each in found
    ] == [
        ("green", ["rules", *models], "default", None),
        ("green", models, "low", None),
        ("green", models, "512", None),
        ("mine", ["vllm:m"], "default", 3),
        ("mine", ["vllm:m"], "low", 3),
        ("mine", ["vllm:m"], "512", 3),
    ]
    with pytest.raises(DataError, match="none is among the engines"):
        sweep_thinking([one, other._replace(engines=["rules"])], ["low"])
    with pytest.raises(DataError, match="and runs were only named"):
        sweep_thinking([], ["low"])


def test_levels_without_effect_are_listed_by_judge_and_engine():
    """Each once, in the order in which they were asked for."""
    asked = [
        JudgeRun("green@v1", "vllm:m", "r1"),
        JudgeRun("green@v1", "vllm:m", None, "", "low", True),
        JudgeRun("mine@v1", "vllm:m", None, "", "low", True),
        JudgeRun("green@v1", "vllm:m", None, "", "high", True),
        JudgeRun("green@v1", "vllm:m", "r2", "", "512"),
    ]
    assert judge_matrix._without_effect(asked) == (
        ("green@v1", "vllm:m", ("low", "high")),
        ("mine@v1", "vllm:m", ("low",)),
    )
    assert [one.asked for one in asked[:2]] == ["vllm:m", "vllm:m, thinking low"]
