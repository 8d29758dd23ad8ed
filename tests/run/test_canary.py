"""Stored prompts asked again: the same model, another one, and one that wavers."""

import random

import pytest

from loop.core.errors import EngineError
from loop.core.ledger import read_ledger
from loop.run.asking import hold_engine
from loop.run.canary import ALPHA, Canary, require_same_model
from loop.run.task import run_prompt
from tests.review.revise.conftest import setting as setting
from tests.review.revise.conftest import store as store
from tests.review.revise.conftest import wavering as wavering


def ask(setting, store, draws=(1,), engine="wavering"):
    """Ask the canary of the prompt ``tiny``."""
    with hold_engine(setting.workspace, engine) as held:
        return require_same_model(
            setting.workspace, store, setting.tiny, "dev", held, draws, setting.editor
        )


def test_where_nothing_is_stored_nothing_is_asked(setting, store, wavering):
    """Nor where only another draw is."""
    assert ask(setting, store) is None
    run_prompt(setting.workspace, "tiny", "dev", engine="wavering", draw=2)
    before = len(wavering.asked)
    assert ask(setting, store) is None
    assert len(wavering.asked) == before


def test_the_same_model_is_let_through(setting, store, wavering):
    """Twenty prompts of the stored draw, twice each, and nothing is stored."""
    run = run_prompt(setting.workspace, "tiny", "dev", engine="wavering", draw=3)
    before = len(wavering.asked), store.find_runs()
    found = ask(setting, store, draws=(1, 3))
    assert found == Canary(run.run_id, 20, words=(0, 0), values=(0, 0))
    assert [seed for seed, _ in wavering.asked[before[0] :]] == [3, 3]
    assert store.find_runs() == before[1]


def test_another_model_by_the_same_name_is_refused(
    setting, store, wavering, monkeypatch
):
    """It says which run, how many prompts, and what to do."""
    run = run_prompt(setting.workspace, "tiny", "dev", engine="wavering", draw=1)
    monkeypatch.setattr(wavering, "weights", "others")
    with pytest.raises(
        EngineError, match="the model behind wavering has changed"
    ) as at:
        ask(setting, store)
    assert f"of 20 prompts of run {run.run_id} that were asked twice" in str(at.value)
    assert "`revision` in .ranloop/config.yaml" in str(at.value)
    # What is said to be another model has no stored answers.
    monkeypatch.setattr(wavering, "revision", "2026-11-24")
    assert ask(setting, store) is None


@pytest.mark.parametrize(
    ("stored", "new", "changed"),
    [(0, 0, False), (3, 0, False), (4, 0, True), (5, 1, True), (5, 3, False)],
)
def test_the_stored_answer_is_the_odd_one_by_chance_in_a_third(stored, new, changed):
    """Words and values are tested, each at its level."""
    assert Canary("r", 20, (stored, new), (0, 0)).changed is changed
    assert Canary("r", 20, (0, 0), (stored, new)).changed is changed


def test_a_model_that_wavers_is_seldom_taken_for_another():
    """However often its answers differ from one time to the next."""
    rng, alarms, rounds = random.Random(3), 0, 400
    for _ in range(rounds):
        odd = [rng.randrange(3) for _ in range(rng.randrange(21))]
        counts = odd.count(0), len(odd) - odd.count(0)
        alarms += Canary("r", 20, counts, (0, 0)).changed
    assert alarms / rounds <= ALPHA


def test_an_answer_that_failed_is_no_sign(setting, store, wavering, monkeypatch):
    """A prompt without all three answers is left out."""
    run_prompt(setting.workspace, "tiny", "dev", engine="wavering", draw=1)
    whole = wavering.complete

    def fail(self, prompts):
        for index, answer in whole(self, prompts):
            if index:
                yield index, answer

    monkeypatch.setattr(wavering, "complete", fail)
    assert ask(setting, store).prompts == 19


def test_that_the_model_changed_is_recorded_once(setting, store, wavering, monkeypatch):
    """With counts, and without a case; asking again adds nothing."""
    run = run_prompt(setting.workspace, "tiny", "dev", engine="wavering", draw=1)
    monkeypatch.setattr(wavering, "weights", "other")
    monkeypatch.setattr(wavering, "errors", 128)
    for _ in range(2):
        with pytest.raises(EngineError, match="has changed"):
            ask(setting, store)
    (entry,) = [
        one
        for one in read_ledger(setting.workspace.ledger)
        if one.action == "model_changed"
    ]
    assert (entry.subject, entry.actor) == ("wavering", setting.editor.name)
    assert entry.payload["run"] == run.run_id
    assert entry.payload["prompts"] == 20
    assert entry.payload["other_values"] > 0
    assert not {"e0", "f0", "n0"} & set(map(str, entry.payload.values()))
