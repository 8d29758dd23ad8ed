"""What prompts of each task may ask for, and which of them no run could score."""

from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Guide, PromptTask
from loop.labels.error_categories import read_errors
from loop.labels.taxonomy import NO_FINDING, read_taxonomy
from loop.prompts.version import PromptVersion
from loop.run.task_fields import (
    is_judge_run,
    lint_prompt,
    read_task_fields,
    require_fields,
    task_of,
)
from tests.run.test_cost import a_run

SHIPPED = WorkspacePaths(bundled())
VERSION = PromptVersion(
    name="tiny", number=1, system="Read.\n", user="{{ text }}", guides=()
)


def asking(contract, *labels):
    """Return a version in a contract that asks for some labels."""
    guides = tuple(Guide(label=one, name=one, definition="x") for one in labels)
    return replace(VERSION, contract=contract, guides=guides)


@pytest.mark.parametrize(
    ("contract", "task", "judges"),
    [
        ("label_values", PromptTask.EXTRACT, False),
        ("green_sections", PromptTask.JUDGE, True),
        ("changes", PromptTask.REWRITE, False),
        ("unknown", PromptTask.EXTRACT, False),
    ],
)
def test_a_contract_says_what_a_version_and_a_run_are_for(contract, task, judges):
    """One that nobody knows extracts, and is no judge's."""
    assert task_of(asking(contract)) is task
    run = a_run(1, "2026-01-05T00:00:00Z")
    run = replace(run, spec=replace(run.spec, contract=f"{contract}/2"))
    assert is_judge_run(run) is judges


def test_each_task_has_fields_of_its_own():
    """Labels but "No Finding", categories of errors, or these and two more."""
    taxonomy, errors = read_taxonomy(SHIPPED.labels), read_errors(SHIPPED.labels)
    extract = read_task_fields(SHIPPED, PromptTask.EXTRACT)
    assert extract.ids == taxonomy.extracted and NO_FINDING not in extract.ids
    assert {*extract.meanings} == {*taxonomy.ids}
    assert extract.reading == taxonomy.reading
    judge = read_task_fields(SHIPPED, PromptTask.JUDGE)
    assert (judge.ids, judge.reading) == (errors.ids, ())
    assert {*judge.meanings} == {*errors.ids}
    rewrite = read_task_fields(SHIPPED, PromptTask.REWRITE)
    assert rewrite.ids == (*errors.ids, "rewriting", "plausible")
    assert not rewrite.meanings


@pytest.mark.parametrize(
    ("contract", "anything"),
    [("", False), ("unknown", False), ("green_sections", False), ("entailment", True)],
)
def test_a_judge_that_counts_no_errors_may_ask_for_anything(contract, anything):
    """Its criterion is no category; of an unknown contract nothing is assumed."""
    assert read_task_fields(SHIPPED, PromptTask.JUDGE, contract).any_id is anything


@pytest.mark.parametrize(
    ("contract", "labels"),
    [
        ("label_values", ("edema",)),
        ("label_values", ("strange", "edema")),
        ("label_values", ()),
        ("green_sections", ("omission",)),
        ("entailment", ("strange",)),
    ],
)
def test_a_version_that_asks_for_one_known_thing_can_be_scored(contract, labels):
    """The others are for lint to name."""
    require_fields(SHIPPED, asking(contract, *labels))


@pytest.mark.parametrize(
    ("contract", "labels", "said"),
    [
        ("label_values", ("strange",), "asks for no label of labels/taxonomy.yaml"),
        ("label_values", (NO_FINDING,), "asks for no label of labels/taxonomy.yaml"),
        ("label_values", ("omission",), "asks for no label of labels/taxonomy.yaml"),
        ("green_sections", ("edema",), "asks for no category of labels/errors.yaml"),
        ("changes", ("omission",), "`ranloop inject --engine ENGINE` asks it"),
        ("plausible", (), "`ranloop inject --engine ENGINE` asks it"),
    ],
)
def test_a_version_of_which_nothing_could_be_scored_is_refused(contract, labels, said):
    """Before a model is asked, and paid."""
    with pytest.raises(DataError, match=said):
        require_fields(SHIPPED, asking(contract, *labels))


def test_lint_holds_a_version_against_the_files_of_its_workspace():
    """What labels mean there, how reports are read, and its own frozen blocks."""
    rules = len(read_taxonomy(SHIPPED.labels).reading)
    version = asking("label_values", "edema")
    frozen = "{# frozen: kept #}\nKeep.\n{# end frozen #}\n"
    parent = replace(version, system=version.system + frozen)
    found = {
        one.what.partition(": ")[0] for one in lint_prompt(SHIPPED, version, parent)
    }
    assert found >= {
        "the taxonomy defines otherwise",
        f"leaves out {rules} of the {rules} rules of reading of the taxonomy",
        "frozen block 'kept' was removed; restore it from the parent",
    }
