"""Plans read a cohort's prevalences and a run's rates, and never a holdout's."""

import pytest

from loop.core.errors import DataError
from loop.core.files import write_atomic
from loop.core.ledger import Actor, read_ledger
from loop.evaluate.plan import (
    Counted,
    find_planned_run,
    plan_cohort,
    plan_labels,
    plan_levels,
)
from loop.evaluate.protocol import Protocol, read_protocol
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.history import move_alias

LOWER = Protocol(rule="lower", min_positives=14)
EDITOR = Actor(name="Dr A. Example")


def import_as(trials, name, role):
    """Import ten cases of their own under another role."""
    path = trials.folder / f"{name}.csv"
    rows = [
        f"{name}{n},Other words about case {n} of {name}.,{n % 2}" for n in range(10)
    ]
    path.write_text("\n".join(["case_id,text,pleural_effusion", *rows]))
    options = ImportOptions(name=name, role=role, source="Synthetic", licence="-")
    import_cohort(trials.workspace, path, options, actor=EDITOR)


def effusion(plan):
    """Return the label the small cohort is about."""
    return next(one for one in plan.labels if one.counted.label == "pleural_effusion")


def test_prevalences_are_of_the_reference_and_rates_of_the_run(trials):
    """Half the positives say fluid and not effusion: v1 finds half of them."""
    trials.version(1, "effusion")
    run = find_planned_run(trials.workspace, trials.run("tiny@v1"))
    plan = plan_cohort(trials.workspace, "dev", run)
    label = effusion(plan)
    assert (label.counted.cases, label.counted.positives) == (20, 10)
    assert label.counted.observed == (5, 0, 5, 10)
    assert (label.observed.accuracy, label.observed.sensitivity) == (0.75, 0.5)
    assert (plan.run, plan.prompt) == (run.id, "tiny@v1")


def test_without_a_run_nothing_is_observed(trials):
    """The cohort and the protocol are enough to plan."""
    plan = plan_cohort(trials.workspace, "dev")
    assert plan.run == "" and effusion(plan).observed is None
    assert effusion(plan).candidates[0].accuracy == 0.99


def test_a_run_is_found_by_prompt_version_alias_or_id(trials):
    """Also when the newest run is of another version."""
    first = trials.version(1, "effusion")
    trials.version(2, "fluid", parent=first)
    old, new = trials.run("tiny@v1"), trials.run("tiny@v2")
    move_alias(trials.workspace, "tiny@v1", "best", actor=EDITOR, reason="a reason")
    found = {
        wanted: find_planned_run(trials.workspace, wanted, "dev").id
        for wanted in ("tiny", "tiny@v1", "tiny@best", old, "latest:tiny@v2")
    }
    assert list(found.values()) == [new, old, old, old, new]


def test_a_holdout_is_not_planned_on(trials):
    """How frequent its labels are is part of what stays sealed."""
    import_as(trials, "sealed", "holdout")
    with pytest.raises(DataError, match=r"holdout.*Plan with a development cohort"):
        plan_cohort(trials.workspace, "sealed")


def test_a_run_of_other_cases_is_refused(trials):
    """Its rates are not those of the cohort that was named."""
    import_as(trials, "other", "dev")
    trials.version(1, "effusion")
    run = find_planned_run(trials.workspace, trials.run("tiny@v1"))
    with pytest.raises(DataError, match="asked other cases than cohort other"):
        plan_cohort(trials.workspace, "other", run)


def test_planning_leaves_no_trace(trials):
    """It decides nothing: the protocol is not registered by it."""
    before = len(read_ledger(trials.workspace.ledger))
    plan_cohort(trials.workspace, "dev")
    assert len(read_ledger(trials.workspace.ledger)) == before


@pytest.mark.parametrize(("claim", "used"), [("all", 0), ("subset", 2)])
def test_the_claim_decides_which_level_is_used(claim, used):
    """Every label at its own level, or each of 21 at a 21st of it."""
    levels = plan_levels(LOWER.model_copy(update={"claim": claim}), 21, (0.99,))
    assert [level.used for level in levels] == [place == used for place in range(3)]
    assert [level.flawless_cases for level in levels] == [59, 72, 118]
    assert [level.flawless_positives for level in levels] == [14, 17, 14]
    safe = [level.candidates[0].cases[0].safe for level in levels]
    assert safe == [124, 173, 268]


@pytest.mark.parametrize("extreme", [{"alpha": 1e-300}, {"confidence": 1 - 2**-53}])
def test_an_absurd_level_is_planned_and_not_a_crash(extreme):
    """One minus it rounds to certainty, which no number of cases gives."""
    levels = plan_levels(LOWER.model_copy(update=extreme), 21, (0.99,))
    assert levels[2].flawless_cases > 118 or levels[1].flawless_cases > 72


def test_the_point_rule_is_planned_as_if_it_certified(trials):
    """And the plan says that it does not."""
    plan = plan_cohort(trials.workspace, "dev")
    assert not plan.certifies
    write_atomic(trials.workspace.protocol, "rule: lower\nmin_positives: 14\n")
    again = plan_cohort(trials.workspace, "dev")
    assert again.certifies and again.levels == plan.levels


def test_a_missing_cohort_or_run_is_named(trials):
    """With the way out."""
    with pytest.raises(DataError, match=r"no cohort 'nowhere'.*Correct the name"):
        plan_cohort(trials.workspace, "nowhere")
    with pytest.raises(DataError, match="there is no run 'nothing'"):
        find_planned_run(trials.workspace, "nothing")
    trials.version(1, "effusion")
    with pytest.raises(DataError, match=r"no finished run of tiny@v1 on dev"):
        find_planned_run(trials.workspace, "tiny@v1", "dev")


@pytest.mark.parametrize(("positives", "more"), [(95, 1900), (90, 900), (50, 100)])
def test_a_label_that_is_nearly_always_there_needs_its_negatives(positives, more):
    """A hundred negatives of one case in twenty are two thousand random cases."""
    protocol = Protocol(rule="lower", min_positives=14, min_negatives=100)
    (level,) = [one for one in plan_levels(protocol, 1, (0.999,)) if one.used]
    counted = Counted("edema", "Edema", cases=100, positives=positives)
    (plan,) = plan_labels([counted], protocol, level.goal, (0.999,))
    assert plan.collect.random == more


@pytest.mark.parametrize(
    ("candidates", "said"),
    [((), "none"), ((0.0,), "0"), ((1.01,), "1.01"), ((0.99, -0.5), "0.99, -0.5")],
)
def test_supposed_accuracies_are_shares_above_nothing(trials, candidates, said):
    """At least one; certainty is a share, too."""
    with pytest.raises(ValueError, match=f"are shares above 0, got {said}$"):
        plan_cohort(trials.workspace, "dev", candidates=candidates)
    assert plan_cohort(trials.workspace, "dev", candidates=(1,)).levels


def test_a_plan_names_what_it_rests_on(trials):
    """Cohort, reference, run and protocol; every label of the taxonomy is in it."""
    trials.version(1, "effusion")
    run = find_planned_run(trials.workspace, trials.run("tiny@v1"))
    plan = plan_cohort(trials.workspace, "dev", run, candidates=(0.98,))
    cohort = read_cohort(trials.workspace, "dev")
    assert (plan.cohort, plan.cohort_digest) == ("dev", cohort.digest)
    assert (plan.cases, plan.reference) == (20, 1)
    assert plan.protocol == read_protocol(trials.workspace)
    assert plan.levels == plan_levels(plan.protocol, 21, (0.98,))
    assert plan.used == plan.levels[0]
    assert (len(plan.labels), dict(plan.not_comparable)) == (21, {})
    # The cohort has a reference for one label, and the prompt knows one.
    others = [one for one in plan.labels if one is not effusion(plan)]
    assert {(one.counted.cases, one.counted.observed) for one in others} == {
        (0, (0, 0, 0, 0))
    }


def test_a_run_on_a_part_of_the_cases_is_counted_on_those(trials):
    """The prevalence is of the whole cohort all the same."""
    trials.version(1, "effusion", "fluid")
    run = find_planned_run(trials.workspace, trials.run("tiny@v1", limit=3))
    label = effusion(plan_cohort(trials.workspace, "dev", run))
    assert (label.counted.cases, label.counted.positives) == (20, 10)
    assert label.counted.observed == (3, 0, 0, 0)
    assert label.observed is None
