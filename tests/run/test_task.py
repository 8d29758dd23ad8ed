"""A prompt version, a cohort and an engine become one run."""

import json

import pytest

from loop.core.errors import DataError, EngineError, UnknownEngineError
from loop.core.ledger import Actor
from loop.core.records import Completion
from loop.engines import base
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.run.manifest import find_run, read_manifest
from loop.run.store import open_store, read_outcomes
from loop.run.task import prepare_run, run_prompt


class Plain:
    """Answers absent to everything."""

    def __init__(self, name="", settings=None):
        """Take what a factory is given."""
        self.settings = settings

    def identity(self):
        """Return a name."""
        return {"engine": "plain"}

    def complete(self, prompts):
        """Yield the same answer for each prompt."""
        for index, prompt in enumerate(prompts):
            answer = {name: {"value": "absent"} for name in prompt.frame.fields}
            yield index, Completion(json.dumps(answer))


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """Register the engine ``plain`` for one test."""
    monkeypatch.setitem(base._FACTORIES, "plain", Plain)


@pytest.fixture
def cohort(workspace, tmp_path):
    """Return a function that imports a small cohort with a reference."""

    def make(role="dev", name="small"):
        source = tmp_path / f"{name}.csv"
        rows = [
            f"{name}{n},Chest radiograph number {n} of {name}: the lungs are clear.,0"
            for n in range(5)
        ]
        source.write_text("\n".join(["case_id,text,edema", *rows]) + "\n")
        options = ImportOptions(name=name, role=role, source="test", licence="none")
        import_cohort(workspace, source, options, actor=Actor(name="t"))
        return name

    return make


def test_a_run_leaves_outcomes_and_a_manifest(workspace, cohort):
    """One call from names to numbers."""
    summary = run_prompt(workspace, "extractor", cohort(), engine="plain")
    assert (summary.items, summary.asked, summary.answered) == (5, 5, 5)
    record = find_run(workspace)
    assert record.id == summary.run_id
    with open_store(workspace) as store:
        ids = [outcome.item_id for outcome in read_outcomes(store, record.id)]
    assert ids == [f"small{n}" for n in range(5)]
    manifest = read_manifest(workspace, record.id)
    assert manifest["finished"] == record.finished
    assert manifest["spec"]["reference"] == 1
    assert len(manifest["spec"]["reference_digest"]) == 64
    assert len(manifest["spec"]["protocol_digest"]) == 64


def test_the_spec_names_the_resolved_version(workspace, cohort):
    """``extractor`` may mean another version tomorrow; the run must not."""
    task = prepare_run(workspace, "extractor", cohort(), engine="plain")
    name, _, number = task.spec.prompt.partition("@v")
    assert name == "extractor" and int(number) >= 1
    assert task.spec.contract == "label_values/1"
    assert task.total == 5


def test_a_limit_takes_the_first_cases(workspace, cohort):
    """And is part of the spec, so a full run is another run."""
    summary = run_prompt(workspace, "extractor", cohort(), engine="plain", limit=2)
    assert summary.items == 2
    assert find_run(workspace, summary.run_id).spec.limit == 2
    full = run_prompt(workspace, "extractor", "small", engine="plain")
    assert (full.items, full.cached, full.asked) == (5, 2, 3)


def test_progress_sees_every_item(workspace, cohort):
    """The bar wraps the items; the runner knows nothing of it."""
    seen = []

    def watch(items):
        """Pass items on and note them."""
        for item in items:
            seen.append(item.id)
            yield item

    run_prompt(workspace, "extractor", cohort(), engine="plain", watch=watch)
    assert len(seen) == 5


def test_a_holdout_stays_closed(workspace, cohort):
    """It opens once, for a frozen version, and not by a slip."""
    name = cohort("holdout")
    with pytest.raises(DataError, match="open only for a frozen version"):
        run_prompt(workspace, "extractor", name, engine="plain")
    assert not workspace.store.exists()


def test_an_external_cohort_may_be_run(workspace, cohort):
    """Another site is measured, not revised on."""
    assert run_prompt(workspace, "extractor", cohort("external"), engine="plain").items


@pytest.mark.parametrize(
    ("prompt", "name", "error"),
    [("nobody", "small", DataError), ("extractor", "nowhere", DataError)],
)
def test_unknown_names_are_refused(workspace, cohort, prompt, name, error):
    """Before anything is asked or stored."""
    cohort()
    with pytest.raises(error):
        prepare_run(workspace, prompt, name, engine="plain")


def test_an_unknown_engine_is_refused(workspace, cohort):
    """The message lists the engines there are."""
    with pytest.raises(UnknownEngineError, match="plain"):
        prepare_run(workspace, "extractor", cohort(), engine="nope:model")


def test_the_embedded_engine_is_loaded_by_name(workspace, cohort):
    """Nothing has to import it first."""
    summary = run_prompt(workspace, "extractor", cohort(), engine="rules")
    assert summary.answered == 5


def test_a_version_of_the_other_call_plan_runs_too(workspace, cohort):
    """One call per label, one outcome per case."""
    from dataclasses import replace

    from loop.prompts.catalog import read_version, write_version
    from loop.prompts.version import CallPlan

    version = read_version(workspace, "extractor@v1")
    write_version(
        workspace, replace(version, name="single", plan=CallPlan.PER_LABEL, parent=None)
    )
    summary = run_prompt(workspace, "single", cohort(), engine="rules")
    assert summary.items == summary.answered == 5
    assert summary.asked == 5 * len(version.guides)


@pytest.mark.parametrize("engine", ["rules", "plain"])
def test_an_engine_that_repeats_itself_is_not_asked_again(workspace, cohort, engine):
    """The answer would be the same; the error says what to do instead."""
    name = cohort()
    with pytest.raises(EngineError, match="asking again changes nothing"):
        prepare_run(workspace, "extractor", name, engine=engine, again=True)


def test_the_setting_says_how_often_a_server_is_asked_again(workspace, cohort):
    """Two times unless the configuration says otherwise; never without chance."""
    name, server = cohort(), "openai:m@http://127.0.0.1:9/v1"
    assert prepare_run(workspace, "extractor", name, engine=server).work.retries == 2
    assert prepare_run(workspace, "extractor", name, engine="rules").work.retries == 0
    config = workspace.private / "config.yaml"
    config.write_text("engines: {openai: {retry_unreadable: 5}}\n")
    task = prepare_run(workspace, "extractor", name, engine=server, again=True)
    assert (task.work.retries, task.work.again) == (5, True)
