"""The verbs ``evaluate``, ``compare`` and ``failures``, over a real small run."""

import csv
import io
import json
import shutil

import pytest
import typer
import yaml
from typer.testing import CliRunner

from loop.cli import compare, evaluate, failures
from loop.core.errors import DataError, WriteError
from loop.core.files import write_atomic
from loop.core.ledger import Actor, read_ledger
from loop.core.records import Guide, Mark
from loop.evaluate.compare import compare_runs
from loop.evaluate.evaluation import find_parent_run
from loop.evaluate.matrix.runs import name_runs
from loop.evaluate.score_history import score_history
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.reference import correct_reference
from loop.prompts.catalog import write_version
from loop.prompts.version import PromptVersion
from loop.release.keys import make_key, read_public_keys, signature_problem
from loop.run.manifest import find_run
from loop.run.task import run_prompt

EDITOR = Actor(name="Dr A. Example")
SECRET = "zebra"
USER = "{% for guide in guides %}{{ guide.name }}\n{% endfor %}\n{{ text }}\n"
LENIENT = "accuracy: 0.5\nkappa: 0.1\nmin_cases: 1\nmin_positives: 1\n" + (
    "min_negatives: 1\n"
)


def write_prompt(workspace, number, *terms, parent=None):
    """Write a version with one guide that reads `terms`; return it."""
    guide = Guide(
        label="pleural_effusion",
        name="Pleural Effusion",
        definition="Fluid in the pleural space.",
        terms=terms,
    )
    version = PromptVersion(
        name="tiny",
        number=number,
        system="Read.\n",
        user=USER,
        guides=(guide,),
        parent=parent.digest if parent else None,
    )
    return write_version(workspace, version)


@pytest.fixture
def place(workspace, tmp_path):
    """Return a workspace with a cohort of 20 and runs of two prompt versions."""
    with (tmp_path / "dev.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["case_id", "text", "pleural_effusion"])
        for number in range(5):
            writer.writerow([f"e{number}", f"Small effusion, {SECRET} {number}.", 1])
            writer.writerow([f"f{number}", f"Fluid at the base, {SECRET} {number}.", 1])
        for number in range(10):
            writer.writerow([f"n{number}", f"Clear lungs, {SECRET} {number}.", 0])
    options = ImportOptions(name="dev", role="dev", source="Synthetic", licence="-")
    import_cohort(workspace, tmp_path / "dev.csv", options, actor=EDITOR)
    first = write_prompt(workspace, 1, "effusion")
    write_prompt(workspace, 2, "effusion", "fluid", parent=first)
    run_prompt(workspace, "tiny@v1", "dev")
    run_prompt(workspace, "tiny@v2", "dev")
    return workspace


@pytest.fixture
def call(place):
    """Return a function that calls one of the verbs in the workspace."""
    app = typer.Typer()
    for module in (evaluate, compare, failures):
        module.register(app)

    def run(*arguments):
        return CliRunner().invoke(app, [*arguments, "-w", str(place.root)])

    return run


def label_of(data, label="pleural_effusion"):
    """Return one label of a JSON object."""
    return next(row for row in data["labels"] if row["label"] == label)


def test_a_gate_that_is_not_passed_exits_with_100(call):
    """20 cases decide nothing: INSUFFICIENT is not a pass."""
    result = call("evaluate", "latest:tiny@v1")
    assert result.exit_code == 100, result.output
    assert "gate: INSUFFICIENT (0 PASS, 0 FAIL, 21 INSUFFICIENT of 21)" in result.stdout
    assert "20 of at least 59 cases" in result.stdout
    assert "\n20 cases: 20 answered, 0 unparsed" in result.stdout
    assert "synthetic cohort" in result.stdout


def test_json_is_one_object_with_counts(call):
    """v1 finds 5 of 10 effusions; the counts say so."""
    result = call("evaluate", "latest:tiny@v1", "--json")
    data = json.loads(result.stdout)
    row = label_of(data)
    assert (row["tp"], row["fp"], row["fn"], row["tn"]) == (5, 0, 5, 10)
    assert row["accuracy"] == 0.75
    assert data["outcomes"] == {"answered": 20, "unparsed": 0, "engine_failed": 0}
    assert data["run"]["prompt"] == "tiny@v1"


def test_documents_are_written_without_case_text(call, tmp_path):
    """HTML, Markdown and CSV hold ids and counts, never a word of a case."""
    paths = [tmp_path / name for name in ("e.html", "e.md", "e.csv")]
    options = [f"--{path.suffix[1:]}={path}" for path in paths]
    result = call("evaluate", *options, "--against", "latest:tiny@v1")
    assert result.exit_code == 100, result.output
    for path in paths:
        text = path.read_text()
        assert "Pleural Effusion" in text
        assert SECRET not in text
    assert "What changed since tiny@v1" in paths[0].read_text()


def test_the_ledger_keeps_each_evaluation_once(call, place):
    """Protocol, scores and verdict are recorded; doing it again adds nothing."""
    call("evaluate", "--actor", "Dr B")
    call("evaluate", "--json")
    entries = read_ledger(place.ledger)
    actions = [entry.action for entry in entries]
    for action in ("protocol_set", "evaluated", "gate_decided"):
        assert actions.count(action) == 1
    decided = next(entry for entry in entries if entry.action == "gate_decided")
    assert decided.actor == "Dr B"
    assert decided.payload["verdict"] == "INSUFFICIENT"
    assert set(decided.payload["labels"].values()) == {"INSUFFICIENT"}


def test_the_change_against_the_parent_is_shown_by_default(call, tmp_path):
    """Nobody has to remember the earlier run; another or none can be named."""
    page = tmp_path / "e.html"
    call("evaluate", "latest:tiny@v2", "--html", str(page))
    assert "What changed since tiny@v1" in page.read_text()
    markdown = tmp_path / "e.md"
    call("evaluate", "latest:tiny@v2", "--md", str(markdown), "--against", "none")
    assert "What changed" not in markdown.read_text()

    def before(*arguments):
        data = json.loads(call("evaluate", *arguments, "--json").stdout)
        return data["change"] and data["change"]["before"]["prompt"]

    assert before("latest:tiny@v2") == "tiny@v1"
    assert before("latest:tiny@v2", "--against", "latest:tiny@v2") == "tiny@v2"
    assert before("latest:tiny@v2", "--against", "none") is None
    assert before("latest:tiny@v1") is None


def test_the_versions_tried_are_told_everywhere(call, tmp_path):
    """Nobody sees the score of the best version without how many there were."""
    page, text = tmp_path / "e.html", tmp_path / "e.md"
    result = call("evaluate", "latest:tiny@v2", f"--html={page}", f"--md={text}")
    assert "versions tried on this cohort: 2" in result.stdout
    assert "corrected for the choice" in result.stdout
    assert "does not replace the holdout" in " ".join(result.stdout.split())
    for path in (page, text):
        assert "ersions tried on this cohort" in path.read_text()
        assert "It does not replace the holdout." in path.read_text()
    data = json.loads(call("evaluate", "latest:tiny@v2", "--json").stdout)["selection"]
    assert (data["versions_tried"], data["rescored"]) == (2, 2)
    score = data["macro_f1"]
    assert score["drop"] == pytest.approx(score["apparent"] - score["corrected"])
    assert data["expected_drop_of_accuracy"] > 0
    assert [one["version"] for one in data["versions"]] == ["tiny@v1", "tiny@v2"]


def test_the_parent_run_must_be_of_the_same_cases(call, place):
    """A limited run has no parent run until the parent was run on the same cases."""
    assert find_parent_run(place, "latest:tiny@v2") is not None
    part = run_prompt(place, "tiny@v2", "dev", limit=15)
    assert find_parent_run(place, part.run_id) is None
    short = run_prompt(place, "tiny@v1", "dev", limit=15)
    assert find_parent_run(place, part.run_id) == short.run_id


def test_who_has_a_key_signs_what_they_evaluated(call, place):
    """The protocol, the scores and the decision are all theirs."""
    key = make_key(place, EDITOR.name, "editor", EDITOR)
    count = len(read_ledger(place.ledger))
    call("evaluate", "latest:tiny@v1", "--actor", EDITOR.name)
    added = read_ledger(place.ledger)[count:]
    assert [entry.action for entry in added][-2:] == ["evaluated", "gate_decided"]
    assert {entry.keyid for entry in added} == {key.keyid}
    keys = read_public_keys(place)
    assert not any(signature_problem(entry, keys) for entry in added)


def test_an_old_run_is_evaluated_without_its_prompt(call, place):
    """A version that was removed leaves its runs readable, without a change."""
    shutil.rmtree(place.prompts / "tiny" / "v2")
    result = call("evaluate", "latest:tiny@v2", "--json")
    assert json.loads(result.stdout)["change"] is None


def test_a_limited_run_cannot_look_like_a_full_one(call, place):
    """Its documents and its ledger entries say how many cases it left out."""
    run = run_prompt(place, "tiny@v2", "dev", limit=15)
    result = call("evaluate", run.run_id)
    assert "Not all cases were run: this run lacks 5 cases" in result.stdout
    assert result.stdout.rstrip().endswith("not all cases were run")
    call("evaluate", "latest:tiny@v1")
    payloads = [
        entry.payload
        for entry in read_ledger(place.ledger)
        if entry.action in ("evaluated", "gate_decided")
    ]
    assert [(p["cases"], p["not_run"]) for p in payloads] == [(15, 5)] * 2 + [
        (20, 0)
    ] * 2
    digests = [payload["counts_digest"] for payload in payloads]
    assert digests[0] == digests[1] != digests[2] == digests[3]


def test_a_part_of_a_cohort_is_never_the_latest_run_nor_in_a_history(call, place):
    """Twenty cases tried first must not stand for the three hundred."""
    whole = call("evaluate", "latest:tiny@v2", "--json")
    part = run_prompt(place, "tiny@v2", "dev", limit=15)
    again = call("evaluate", "latest:tiny@v2", "--json")
    run = json.loads(whole.stdout)["run"]
    assert json.loads(again.stdout)["run"] == run
    named = call("evaluate", part.run_id)
    assert named.exit_code == 100
    said = f"Run {part.run_id} asked the first 15 cases of dev only"
    assert said in named.stderr and said not in again.stderr
    scores = [one for one in score_history(place, "tiny", "dev") if one.run]
    assert {one.run for one in scores} == {run["run"]}
    assert all(one.comparable for one in scores)
    with pytest.raises(DataError, match=r"asked 20 cases .* asked 15, since --limit"):
        compare_runs(place, "latest:tiny@v1", part.run_id)
    with pytest.raises(DataError, match=f"{said}; .* Leave it out"):
        name_runs(place, ["latest:tiny@v1", part.run_id])


def test_a_limit_beyond_the_cohort_is_the_whole_cohort(place):
    """Nothing was left out."""
    run = run_prompt(place, "tiny@v2", "dev", limit=500)
    assert find_run(place, "latest:tiny@v2").id == run.run_id


def test_without_a_whole_run_the_part_is_named(place):
    """A way on: its id, or the whole cohort."""
    part = run_prompt(place, "extractor@v1", "dev", limit=3)
    with pytest.raises(DataError) as refused:
        find_run(place, "latest:extractor")
    for word in (part.run_id, "first 3 cases only", "without --limit"):
        assert word in str(refused.value)


def test_coding_is_a_property_of_the_reference_not_of_the_cohort(call, place):
    """The caveat stands on the version that is scored, whatever the cohort's origin."""
    marks = {(f"n{i}", "pleural_effusion"): Mark.NOT_CODED for i in range(10)}
    cohort = read_cohort(place, "dev")
    correct_reference(place, cohort, marks, actor=EDITOR, reason="coded, not read")
    for reference, noted in (("1", False), ("2", True)):
        result = call("evaluate", "--reference", reference)
        assert result.exit_code == 100, result.output
        assert ("comes from coding" in result.stdout) is noted


def test_a_protocol_edited_after_the_run_is_noted(call, place):
    """Thresholds lowered to fit the result are visible on the result."""
    write_atomic(place.protocol, LENIENT)
    result = call("evaluate", "latest:tiny@v2", "--json")
    data = json.loads(result.stdout)
    assert label_of(data)["verdict"] == "PASS"
    assert data["protocol_registered_late"]
    assert any("changed after the run" in text for text in data["notes"])


def test_compare_lists_fixed_cases(call):
    """v2 reads "fluid": five cases are fixed and none broken."""
    data = json.loads(call("compare", "latest:tiny@v1", "--json").stdout)
    row = label_of(data)
    assert row["fixed"] == ["f0", "f1", "f2", "f3", "f4"]
    assert row["broken"] == []
    assert not row["can_be_significant"]
    result = call("compare", "latest:tiny@v1")
    assert result.exit_code == 0, result.output
    assert "Pleural Effusion, fixed: f0, f1, f2, f3, f4" in result.stdout
    assert "too few" in result.stdout


def test_compare_lists_the_cases_on_which_two_runs_differ_about_a_label(call):
    """Both answers beside the reference, of every case; of no other label."""
    asked = ("compare", "latest:tiny@v1", "--label", "Pleural Effusion")
    data = json.loads(call(*asked, "--json").stdout)["differences"]
    assert [one["case_id"] for one in data] == ["f0", "f1", "f2", "f3", "f4"]
    assert {(one["before"], one["after"]) for one in data} == {("absent", "present")}
    result = call(*asked)
    assert result.exit_code == 0, result.output
    assert "differ in 5 of 20 cases" in result.stdout
    assert "ranloop show" in result.stdout
    same = call("compare", "latest:tiny@v2", *asked[2:]).stdout
    assert "say the same of all 20 cases" in same
    silent = call("compare", "latest:tiny@v1", "--label", "edema")
    assert "neither run was asked about edema" in str(silent.exception)
    wrong = call("compare", "latest:tiny@v1", "--label", "oedma")
    assert "no label 'oedma'" in str(wrong.exception)


def test_failures_are_filtered_and_hold_no_text(call):
    """Ids, labels and kinds; text only when asked for."""
    result = call("failures", "latest:tiny@v1", "--kind", "false-negative")
    assert result.exit_code == 0, result.output
    assert SECRET not in result.stdout
    assert "5 of 5 rows" in result.stdout
    only = call("failures", "latest:tiny@v1", "-l", "Fracture", "--json")
    assert json.loads(only.stdout)["rows"] == []


def test_failures_show_text_on_demand(call):
    """A reviewer may see the case; spans mark the evidence."""
    result = call(
        "failures", "latest:tiny@v1", "--text", "case", "--limit", "1", "--json"
    )
    data = json.loads(result.stdout)
    assert data["total"] == 5
    assert SECRET in data["rows"][0]["text"]


def test_failures_as_csv(call):
    """One row per failing case and label."""
    result = call("failures", "latest:tiny@v1", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["case_id"] for row in rows] == ["f0", "f1", "f2", "f3", "f4"]
    assert {row["predicted"] for row in rows} == {"absent"}


@pytest.fixture
def unsure(place):
    """Return the workspace after the readers called two cases uncertain."""
    marks = {
        ("e0", "pleural_effusion"): Mark.UNCERTAIN,
        ("f0", "pleural_effusion"): Mark.UNCERTAIN,
    }
    cohort = read_cohort(place, "dev")
    correct_reference(place, cohort, marks, actor=EDITOR, reason="too vague")
    return place


def test_cases_with_an_uncertain_reference_are_listed(call, unsure):
    """They are in no rate, so they must be seen somewhere."""
    result = call("failures", "latest:tiny@v1", "--reference", "uncertain")
    assert result.exit_code == 0, result.output
    assert "cases with an uncertain reference of run" in result.stdout
    assert "2 of 2 rows: 1 present, 1 absent, 0 uncertain" in result.stdout
    assert SECRET not in result.stdout
    data = json.loads(
        call("failures", "latest:tiny@v1", "--reference=uncertain", "--json").stdout
    )
    assert [(row["case_id"], row["predicted"]) for row in data["rows"]] == [
        ("e0", "present"),
        ("f0", "absent"),
    ]
    assert {row["kind"] for row in data["rows"]} == {"reference_uncertain"}
    table = call("failures", "--reference=uncertain", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["reference"] for row in rows] == ["uncertain"] * 2
    only = call("failures", "--reference=uncertain", "-l", "fracture", "--json")
    assert json.loads(only.stdout)["rows"] == []
    shown = call("failures", "--reference=uncertain", "--text", "case")
    assert SECRET in shown.stdout


def test_the_table_of_open_cases_stands_in_the_evaluation(call, unsure):
    """How the extractor answers what the reference leaves open, label by label."""
    result = call("evaluate", "latest:tiny@v1", "--json")
    row = label_of(json.loads(result.stdout))
    assert row["reference_uncertain"] == {
        "present": 1, "absent": 1, "uncertain": 0, "unanswered": 0,
    }  # fmt: skip
    assert row["n"] == 18
    printed = call("evaluate", "latest:tiny@v1").stdout
    assert "answers where the reference is uncertain" in printed


def test_the_terminal_says_the_policy_first_and_the_others_beside_it(call):
    """With engine and reference, so that no number stands alone."""
    printed = call("evaluate", "latest:tiny@v1").stdout
    title = printed.splitlines()[0]
    assert "reference v1, rules, uncertain answers wrong, run" in title
    at = [
        printed.index(words)
        for words in (
            "Uncertain answers are wrong",
            "  if read as absent: macro-F1",
            "  if read as present: macro-F1",
            "  if left out: macro-F1",
        )
    ]
    assert at == sorted(at)
    compared = call("compare", "latest:tiny@v1", "latest:tiny@v2").stdout
    assert "reference v1, rules, uncertain answers wrong" in compared


def test_failures_of_a_holdout_are_refused(call, place, tmp_path):
    """Whoever has read the failing cases of a holdout has used it up."""
    options = ImportOptions(
        name="dev", role="holdout", source="-", licence="-", replace=True
    )
    import_cohort(place, tmp_path / "dev.csv", options, actor=EDITOR)
    result = call("failures", "latest:tiny:dev")
    assert isinstance(result.exception, DataError)
    assert "failing cases stay unseen" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("evaluate", "nothing"), "no run 'nothing'"),
        (("evaluate", "--reference", "9"), "no reference v9"),
        (("compare", "latest:other"), "no finished run of other"),
        (("failures", "--label", "plural effusion"), "Pleural Effusion"),
        (("failures", "--kind", "wrong"), "false_positive"),
        (("failures", "--reference", "0"), "neither the number"),
        (("failures", "--reference", "unsure"), "nor uncertain"),
        (("failures", "--reference", "uncertain", "--kind", "unparsed"), "no kind"),
        (("failures", "--reference", "uncertain", "--order", "value"), "no kind"),
    ],
)
def test_wrong_names_are_explained(call, arguments, names):
    """The message says what there is instead."""
    result = call(*arguments)
    assert isinstance(result.exception, DataError)
    assert names in str(result.exception)


def test_an_unwritable_document_is_an_error_of_ours(call, tmp_path):
    """The path is named; nothing half-written is left."""
    (tmp_path / "file").write_text("x")
    result = call("evaluate", "--html", str(tmp_path / "file" / "e.html"))
    assert isinstance(result.exception, WriteError)


def test_a_cohort_that_changed_is_refused(call, place):
    """A run is scored on the cases it asked, or not at all."""
    for name in ("cases.csv", "cohort.yaml"):
        path = place.cohorts / "dev" / name
        write_atomic(path, path.read_text().replace("e0,", "x0,"))
    result = call("evaluate")
    assert isinstance(result.exception, DataError)
    assert "changed" in str(result.exception)


def test_a_taxonomy_edited_after_the_run_invents_no_answer(call, place):
    """A label that nobody asked for lacks evidence; one that is gone is not scored."""
    before = json.loads(call("evaluate", "latest:tiny@v1", "--json").stdout)
    path = place.labels / "taxonomy.yaml"
    entries = yaml.safe_load(path.read_text("utf-8"))
    entries["labels"] = [one for one in entries["labels"] if one["id"] != "fracture"]
    added = {**entries["labels"][0], "id": "scoliosis", "name": "Scoliosis"}
    entries["labels"].append({**added, "chexpert": None})
    path.write_text(yaml.safe_dump(entries, sort_keys=False), "utf-8")
    after = json.loads(call("evaluate", "latest:tiny@v1", "--json").stdout)
    new = label_of(after, "scoliosis")
    assert (new["n"], new["verdict"]) == (0, "INSUFFICIENT")
    assert new["reasons"] == ["no case has a usable reference label"]
    assert set(new["verdict_if_uncertain"].values()) == {"INSUFFICIENT"}
    assert "fracture" not in {one["label"] for one in after["labels"]}
    assert label_of(after) == label_of(before)
