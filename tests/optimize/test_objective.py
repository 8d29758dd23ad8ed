"""Candidates are scored like runs, and are no runs."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import pytest

from loop.core.errors import DataError, EngineError
from loop.core.records import Completion, ValueCode
from loop.evaluate.evaluation import evaluate_run
from loop.optimize.objective import open_objective
from loop.run.asking import ChosenEngine, HeldEngine
from loop.run.store import open_store
from loop.run.task import run_prompt
from tests.optimize.scenes import EFFUSION, LESION, learnable


def guide_with(version, label, *terms):
    """Return the guide of a label with these terms."""
    return {label: replace(version.guide(label), terms=terms)}


def test_scores_are_those_of_a_run(taught):
    """The same counts as an evaluation of the same wording gives."""
    version = taught.version(2, **{EFFUSION: ["collection"]})
    run = run_prompt(taught.workspace, version.ref, "dev").run_id
    known = {one.label: one for one in evaluate_run(taught.workspace, run).labels}
    with open_objective(taught.workspace, "tiny@v1", "dev") as objective:
        guides = guide_with(objective.ground.version, EFFUSION, "collection")
        score = objective.score(objective.answers(objective.candidate(guides)))
    for place, label in enumerate(objective.ground.labels):
        assert score.by_label[place] == known[label].confusion.f1
        assert np.nansum(score.points[:, place]) == known[label].confusion.correct


def test_nothing_asked_is_a_run(taught):
    """No run, no outcome, no latest."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        objective.answers(objective.ground.version)
    with open_store(taught.workspace) as store:
        assert not store.find_runs()


def test_a_case_is_asked_once(taught):
    """Rows asked before are remembered, in any order."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        version = objective.ground.version
        first = objective.answers(version, np.array([4, 2]))
        whole = objective.answers(version)
        assert objective.asked == 60
        assert (first == whole[[4, 2]]).all()


def test_only_the_changed_label_is_asked_where_each_has_a_call(bench):
    """The answers to the other one are the parent's."""
    bench.cohort(learnable())
    bench.version(2, plan="per_label")
    with open_objective(bench.workspace, "tiny@v2", "dev") as objective:
        parent = objective.answers(objective.ground.version)
        asked = []
        complete = objective.engine.inner.complete

        def spy(prompts):
            prompts = list(prompts)
            asked.extend(one.frame.call for one in prompts)
            return complete(prompts)

        objective.engine.inner.complete = spy
        guides = guide_with(objective.ground.version, EFFUSION, "collection")
        changed = objective.answers(objective.candidate(guides))
    assert set(asked) == {EFFUSION}
    column = objective.ground.labels.index(LESION)
    assert (changed[:, column] == parent[:, column]).all()
    assert (changed != parent).any()


class FailingEngine:
    """Fails on some cases, and says "absent" of all others."""

    def __init__(self, bad):
        self.bad = bad
        self.asked = 0

    def identity(self):
        """Say what answers."""
        return {"engine": "failing"}

    def complete(self, prompts):
        """Answer, or fail."""
        for index, prompt in enumerate(prompts):
            self.asked += 1
            if prompt.item.id in self.bad:
                yield index, Completion("", "error", "no answer")
            else:
                told = ",".join(
                    f'"{field}":{{"value":"present","span":[0,1]}}'
                    for field in prompt.frame.fields
                )
                yield index, Completion(f"{{{told}}}")


@contextmanager
def asking(objective, engine):
    """Put another engine into an objective."""
    held = ChosenEngine("failing:x", engine, {})
    objective._engine = HeldEngine(held, ExitStack())
    yield objective


def test_a_failure_is_left_out_on_both_sides_and_asked_again(taught):
    """It is never scored as wrong, and not remembered."""
    engine = FailingEngine({"c001"})
    with (
        open_objective(taught.workspace, "tiny", "dev") as objective,
        asking(objective, engine),
    ):
        version = objective.ground.version
        lost = objective.answers(version)
        assert (lost[1] == ValueCode.FAILED).all()
        engine.bad = set()
        fine = objective.answers(version)
        assert engine.asked == 61
        assert objective.score(fine, beside=lost).cases == 59
        assert objective.score(fine, beside=lost).left_out == 1
        assert objective.score(fine).cases == 60


def test_too_many_failures_stop_the_search(taught):
    """The message counts them and names cases, never text."""
    engine = FailingEngine({f"c{n:03}" for n in range(4)})
    with (
        open_objective(taught.workspace, "tiny", "dev") as objective,
        asking(objective, engine),
        pytest.raises(
            EngineError,
            match="failed on 4 of 60 answers that were asked, for example on ",
        ),
    ):
        objective.answers(objective.ground.version)


@pytest.mark.parametrize("plan", ["joint", "per_label"])
def test_a_case_that_fails_counts_once_however_often_it_is_asked(bench, plan):
    """Rankings and estimates look at the same cases again and again."""
    bench.cohort(learnable())
    bench.version(2, plan=plan)
    engine = FailingEngine({"c001", "c007"})
    with (
        open_objective(bench.workspace, "tiny@v2", "dev") as objective,
        asking(objective, engine),
    ):
        parent = objective.ground.version
        for word in ("collection", "fluid", "shadow"):
            guides = guide_with(parent, EFFUSION, word)
            made = objective.candidate(guides)
            for _ in range(4):
                lost = objective.ground.lost(objective.answers(made))
                assert np.flatnonzero(lost).tolist() == [1, 7]


def test_what_cannot_be_read_is_wrong(taught):
    """A candidate gains nothing by answers that nobody can read."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        truth = np.array([[1, 0, -1]], np.int8)
        unread = np.full((1, 3), ValueCode.UNPARSED, np.int8)
        assert objective.ground.decided(unread, truth).tolist() == [[0, 1, -1]]


@pytest.mark.parametrize("role", ["external", "taxonomy"])
def test_only_a_dev_cohort_is_searched(bench, role):
    """Cases that something is measured on stay out of reach."""
    bench.cohort(learnable(), name="other", role=role)
    with (
        pytest.raises(DataError, match="on a dev cohort only"),
        open_objective(bench.workspace, "tiny", "other"),
    ):
        pass


def test_a_label_that_is_not_asked_cannot_be_proposed(taught):
    """The label is named."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        guide = replace(objective.ground.version.guides[0], label="edema")
        with pytest.raises(DataError, match="asks for no label 'edema'"):
            objective.candidate({"edema": guide})


def test_candidates_do_not_stay_in_memory(taught):
    """The engine lets go of the compiled guides of a candidate."""
    with open_objective(taught.workspace, "tiny", "dev") as objective:
        for number in range(5):
            guides = guide_with(objective.ground.version, EFFUSION, f"word {number}")
            objective.answers(objective.candidate(guides))
        assert len(objective.engine.inner._readers) <= 1
