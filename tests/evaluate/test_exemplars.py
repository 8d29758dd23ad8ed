"""Exemplars stand beside what a cohort has of each label, and its gate's minima."""

from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.core.records import Exemplar, Guide
from loop.evaluate.exemplars import ExemplarCoverage, count_exemplars, lint_exemplars
from loop.evaluate.plan import Counted
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.version import PromptVersion
from tests.evaluate.test_plan import EDITOR, import_as

PRESENT = Exemplar(text="A pleural effusion.", value="present", evidence="effusion")
ALIKE = Exemplar(text="No effusion.", value="absent", evidence="No effusion")
GUIDE = Guide(
    label="pleural_effusion",
    name="Pleural Effusion",
    definition="Fluid",
    exemplars=(PRESENT, ALIKE),
)
VERSION = PromptVersion(
    name="tiny", number=1, system="Read.\n", user="{{ text }}\n", guides=(GUIDE,)
)


def import_effusions(trials, cases, positives):
    """Import a cohort of which so many cases have an effusion."""
    path = trials.folder / "more.csv"
    rows = [f"m{n},Other words of case {n}.,{int(n < positives)}" for n in range(cases)]
    path.write_text("\n".join(["case_id,text,pleural_effusion", *rows]))
    options = ImportOptions(name="more", role="dev", source="Synthetic", licence="-")
    import_cohort(trials.workspace, path, options, actor=EDITOR)


def test_a_label_that_its_gate_can_judge_needs_one_exemplar_of_each_kind(trials):
    """Its errors come to light on the cohort."""
    import_effusions(trials, 70, 10)
    (row,) = count_exemplars(trials.workspace, VERSION, "more")
    assert (row.counted.positives, row.counted.cases) == (10, 70)
    assert (row.present, row.alike, row.lacking) == (1, 1, "")
    assert lint_exemplars((row,), "more") == []
    lone = replace(VERSION, guides=(replace(GUIDE, exemplars=(ALIKE,)),))
    (found,) = lint_exemplars(count_exemplars(trials.workspace, lone, "more"), "more")
    assert found.what.startswith("1 exemplar, 2 wanted")
    assert found.holds and found.where == "guide pleural_effusion"


@pytest.mark.parametrize(
    ("cases", "positives", "lacking"),
    [
        (70, 9, "9 of 10 positives"),
        (70, 61, "9 of 10 negatives"),
        (58, 12, "58 of 59 cases"),
        (12, 6, "6 of 10 positives, 6 of 10 negatives, 12 of 59 cases"),
    ],
)
def test_a_label_that_lacks_cases_wants_one_more(trials, cases, positives, lacking):
    """What the gate lacks is said, in the protocol's numbers."""
    import_effusions(trials, cases, positives)
    (row,) = count_exemplars(trials.workspace, VERSION, "more")
    assert row.lacking == lacking
    (found,) = lint_exemplars((row,), "more")
    assert found.what == f"2 exemplars, 3 wanted: more has {lacking}"
    third = replace(VERSION, guides=(replace(GUIDE, exemplars=(PRESENT, ALIKE) * 2),))
    rows = count_exemplars(trials.workspace, third, "more")
    assert lint_exemplars(rows, "more") == []


def test_a_holdout_stays_sealed(trials):
    """How frequent its labels are is what nobody may know before it is opened."""
    import_as(trials, "kept", "holdout")
    with pytest.raises(DataError, match="holdout"):
        count_exemplars(trials.workspace, VERSION, "kept")


def test_a_label_with_many_exemplars_of_one_kind_still_lacks_the_other():
    """Two that are present teach nothing about what only looks like it."""
    counted = Counted("edema", "Edema", cases=100, positives=50)
    row = ExemplarCoverage(counted, present=3, alike=0, lacking="")
    (found,) = lint_exemplars((row,), "dev")
    assert found.what == "3 exemplars, none that only looks like it"
    row = row._replace(present=0, alike=3)
    (found,) = lint_exemplars((row,), "dev")
    assert found.what == "3 exemplars, none that is present"
