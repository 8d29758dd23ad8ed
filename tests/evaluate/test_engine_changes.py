"""Two runs of different engines are never compared without saying so."""

import pytest

from loop.cli.compare import show_comparison
from loop.cli.evaluate import show_evaluation
from loop.core.errors import DataError
from loop.evaluate.compare import compare_runs, find_engine_changes
from loop.evaluate.documents import render_html, render_markdown
from loop.evaluate.evaluation import evaluate_run, find_parent_run
from loop.evaluate.evaluation_json import comparison_data
from loop.evaluate.gates import GateVerdict
from loop.labels.cohort import read_cohort
from loop.run.manifest import read_manifest
from tests.evaluate.conftest import trials as trials
from tests.review.revise.conftest import wavering as wavering


def manifest(spec=None, **identity):
    """Return what find_engine_changes reads of a manifest."""
    spec = spec or {"draw": 0, "parameters": {"seed": 0, "temperature": 0.0}}
    fixed = ("prompt", "prompt_digest", "contract", "cohort", "cohort_digest", "engine")
    return {"engine_identity": identity, "spec": dict.fromkeys(fixed, "") | spec}


@pytest.fixture
def versions(trials, wavering):
    """Write two versions."""
    first = trials.version(1, "effusion")
    trials.version(2, "effusion", "fluid", parent=first)
    return trials


def compare(trials, before, after):
    """Compare two runs."""
    return compare_runs(trials.workspace, before, after, resamples=20)


def test_one_engine_needs_no_word(versions):
    """Nor do a replay of its answers, and another draw of them."""
    before, after = versions.run("tiny@v1"), versions.run("tiny@v2")
    comparison = compare(versions, before, after)
    assert (comparison.warning, comparison.engine_changes) == ("", ())
    replayed = versions.run("tiny@v2", engine=f"replay:{after}")
    assert compare(versions, before, replayed).warning == ""
    drawn = [versions.run("tiny@v1", engine="wavering", draw=draw) for draw in (0, 1)]
    assert compare(versions, *drawn).warning == ""


def test_two_engines_are_named_and_nothing_is_concluded(versions, capsys):
    """First of all, in every document; and no label is called not worse."""
    before = versions.run("tiny@v1")
    after = versions.run("tiny@v2", engine="wavering")
    comparison = compare(versions, before, after)
    assert "engine: rules, then wavering" in comparison.engine_changes
    assert comparison.reasons[0] == comparison.warning
    assert comparison.verdict is GateVerdict.INSUFFICIENT
    assert {one.verdict for one in comparison.labels} == {GateVerdict.INSUFFICIENT}
    show_comparison(comparison)
    said = "warning: the two runs asked different engines, so that a change may be"
    shown = capsys.readouterr().out
    assert shown.startswith(said)
    assert shown.count("asked different engines") == 1
    evaluation = evaluate_run(versions.workspace, after, resamples=20)
    show_evaluation(evaluation, comparison)
    assert capsys.readouterr().out.startswith(said)
    data = comparison_data(comparison)
    assert data["engine_changes"] == list(comparison.engine_changes)
    for render in (render_html, render_markdown):
        page = render(evaluation, comparison=comparison)
        assert page.count("asked different engines") == 1


def test_whatever_an_identity_holds_is_compared():
    """Nested fields by name, and parameters too; what only one tells is said."""
    then = manifest(engine="openai", server={"url": "a", "version": "1"}, revision=None)
    now = manifest(
        {"draw": 0, "parameters": {"seed": 0, "temperature": 0.7}},
        engine="openai",
        server={"url": "a"},
        revision="2026",
    )
    assert find_engine_changes(then, now) == (
        "parameters.temperature: 0.0, then 0.7",
        "revision: None, then 2026",
        "server.version: 1, then not told",
    )
    assert find_engine_changes(then, then) == ()


def test_two_kinds_of_engine_are_told_apart_by_name():
    """Digests of cues and the address of a server have nothing to be held against."""
    then = manifest(engine="rules", revision="5", cues={"en": "ab", "zh": "cd"})
    now = manifest(engine="openai", model="m", revision=None, server={"url": "u"})
    assert find_engine_changes(then, now) == (
        "engine: rules, then openai",
        "model: not told, then m",
    )
    again = manifest(engine="rules", revision="5", cues={"en": "ab", "zh": "ef"})
    assert find_engine_changes(then, again) == ("cues.zh: cd, then ef",)


def test_the_seed_and_spacing_of_a_draw_are_no_difference():
    """They are what makes it a draw; another first seed is one."""
    third = {"seed": 2, "temperature": 0.0, "blank_lines": 2}
    first, other = manifest(engine="m"), manifest({"draw": 2, "parameters": third})
    other["engine_identity"] = {"engine": "m"}
    assert find_engine_changes(first, other) == ()
    shifted = {"seed": 5, "temperature": 0.0}
    other = manifest({"draw": 0, "parameters": shifted}, engine="m")
    assert find_engine_changes(first, other) == ("parameters.seed: 0, then 5",)


def test_the_parents_run_by_the_same_model_is_preferred(
    versions, wavering, monkeypatch
):
    """A newer one by another model under the same name stands back."""
    same = versions.run("tiny@v1", engine="wavering")
    after = versions.run("tiny@v2", engine="wavering")
    assert find_parent_run(versions.workspace, after) == same
    monkeypatch.setattr(wavering, "revision", "2026-11-24")
    other = versions.run("tiny@v1", engine="wavering")
    identity = read_manifest(versions.workspace, other)["engine_identity"]
    assert identity["revision"] == "2026-11-24"
    assert find_parent_run(versions.workspace, after) == same
    newest = versions.run("tiny@v2", engine="wavering")
    assert find_parent_run(versions.workspace, newest) == other
    monkeypatch.setattr(wavering, "revision", "later")
    alone = versions.run("tiny@v2", engine="wavering")
    assert find_parent_run(versions.workspace, alone) == other
    assert compare(versions, other, alone).engine_changes == (
        "revision: 2026-11-24, then later",
    )


def test_a_run_of_the_parent_asked_the_same_cases_with_the_same_engine(versions):
    """The newest one; none without a parent, and none where a version is gone."""
    workspace = versions.workspace
    first = versions.run("tiny@v1")
    after = versions.run("tiny@v2")
    assert find_parent_run(workspace, first) is None
    assert find_parent_run(workspace, after) == first
    versions.run("tiny@v1", limit=5)
    versions.run("tiny@v1", engine="wavering")
    assert find_parent_run(workspace, after) == first
    part = versions.run("tiny@v2", limit=4)
    assert find_parent_run(workspace, part) is None
    newest = versions.run("tiny@v1")
    assert find_parent_run(workspace, after) == newest
    (workspace.prompts / "tiny" / "v2" / "prompt.yaml").write_text("no: version")
    assert find_parent_run(workspace, after) is None


def test_an_evaluation_of_other_cases_than_were_asked_is_refused(versions):
    """Both digests are named, and what to do."""
    run = versions.run("tiny@v1")
    asked = read_manifest(versions.workspace, run)["spec"]["cohort_digest"]
    versions.cohort(replace=True, cases=24)
    now = read_cohort(versions.workspace, "dev").digest
    with pytest.raises(DataError) as told:
        evaluate_run(versions.workspace, run)
    assert str(told.value) == (
        f"cohort dev holds other cases (digest {now[:12]}) than run {run} asked "
        f"({asked[:12]}). Run the prompt again on the cohort as it is now."
    )
