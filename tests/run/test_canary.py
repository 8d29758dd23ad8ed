"""Stored prompts asked again: the same model, another one, and one that wavers."""

import json
import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from loop.core.errors import EngineError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Completion, Item
from loop.engines import base
from loop.prompts.catalog import read_version, write_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.prompts.version import CallPlan
from loop.run import canary
from loop.run.asking import EngineOptions, hold_engine
from loop.run.canary import ALPHA, Canary, _count_odd, _reader, require_same_model
from loop.run.store import open_store
from loop.run.task import prepare_run, run_prompt, run_task
from tests.judge.scenes import rate
from tests.review.revise.conftest import TINY
from tests.review.revise.conftest import setting as setting
from tests.review.revise.conftest import store as store
from tests.review.revise.conftest import wavering as wavering
from tests.review.revise.stepping import Wavering
from tests.run.staged_judge import ENTAILED, StagedAnswers, take_apart


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


@pytest.mark.parametrize(
    ("three", "stored", "new"),
    [
        ("aaa", 0, 0),
        ("abb", 1, 0),
        ("aab", 0, 1),
        ("aba", 0, 1),
        ("abc", 0, 0),
    ],
)
def test_the_odd_one_of_three_answers_is_counted(three, stored, new):
    """Where all three differ nobody is the odd one."""
    answers = [Completion(word) for word in three]
    assert _count_odd([(None, answers)], lambda _, one: one.text) == (stored, new)
    twice = [(None, answers)] * 2
    assert _count_odd(twice, lambda _, one: one.text) == (2 * stored, 2 * new)
    assert _count_odd(twice, lambda *_: "same") == (0, 0)


def test_values_are_compared_and_not_where_they_were_found():
    """Other evidence is other words; what cannot be read is a value of its own."""
    plan = plan_prompts(TINY, lambda fields: {})
    (prompt,) = plan(Item(id="a", variables={"text": "Small effusion, no change."}))
    read = _reader(get_contract("label_values"), plan)

    def said(effusion):
        """Return the values of an answer."""
        answer = {"pleural_effusion": effusion, "cardiomegaly": "absent"}
        return read(prompt, Completion(json.dumps(answer)))

    short, long = (
        said({"value": "present", "evidence": words})
        for words in ("effusion", "Small effusion")
    )
    assert short == long
    assert short == {"pleural_effusion": "present", "cardiomegaly": "absent"}
    assert said("uncertain") not in (short, said("absent"))
    assert read(prompt, Completion("No answer.")) == {}


def test_an_answer_of_a_stage_is_read_as_that_stage_is():
    """What the prompt itself answers has another form."""
    plan = plan_prompts(ENTAILED, lambda fields: {})
    item = Item(id="a", variables={"reference": "cat. dog.", "candidate": "ox."})
    read = _reader(get_contract(ENTAILED.contract), plan)
    for stage in plan.stages:
        prompt = stage.prompt(item)
        one = read(prompt, Completion(take_apart("cat. dog.")))
        assert one and one != read(prompt, Completion(take_apart("cat. bat. dog.")))


def draw_alike(monkeypatch):
    """Let every run draw the same calls, whatever its id."""
    drawing = SimpleNamespace(Random=lambda _: random.Random(0))
    monkeypatch.setattr(canary, "random", drawing)


def test_every_call_about_a_case_may_be_asked_again(setting, store, monkeypatch):
    """Of a prompt of a call a label each is as good as the first."""
    fields = []

    class Noting(Wavering):
        """Notes what each prompt asks for."""

        def redraw(self, draw):
            """Return the engine with another seed."""
            return Noting("", self.settings, draw)

        def complete(self, prompts):
            """Note the labels, and answer."""
            prompts = list(prompts)
            fields.append([one.frame.fields for one in prompts])
            yield from super().complete(prompts)

    monkeypatch.setitem(base._FACTORIES, "wavering", Noting)
    parted = replace(setting.tiny, plan=CallPlan.PER_LABEL, name="parted", parent=None)
    write_version(setting.workspace, parted)
    apart = replace(setting, tiny=parted)
    draw_alike(monkeypatch)
    run_prompt(setting.workspace, "parted", "dev", engine="wavering", draw=1)
    del fields[:]
    assert ask(apart, store).prompts == 20
    first, second = fields
    assert first == second
    assert {*first} == {("pleural_effusion",), ("cardiomegaly",)}


@pytest.mark.slow
def test_of_a_judge_in_stages_the_first_stage_is_asked_again(
    workspace, tmp_path, monkeypatch
):
    """What it asks later depends on that answer."""
    engine = StagedAnswers()
    monkeypatch.setitem(base._FACTORIES, "staged", lambda name, settings: engine)
    draw_alike(monkeypatch)
    rate(workspace, tmp_path)
    shipped = read_version(WorkspacePaths(bundled()), "radfact@v1")
    radfact = replace(shipped, name="mine", number=2, parent=None)
    write_version(workspace, radfact)
    run = run_prompt(workspace, "mine@v2", "rp", engine="staged")
    del engine.asked[:]
    with (
        open_store(workspace) as opened,
        hold_engine(workspace, "staged") as held,
    ):
        found = require_same_model(
            workspace, opened, radfact, "rp", held, (0,), Actor(name="t")
        )
    assert found == Canary(run.run_id, 8, words=(0, 0), values=(0, 0))
    again = [call for call, _ in engine.asked]
    assert len(again) == 16 and again[:8] == again[8:]
    assert {*again} == {"reference_phrases", "candidate_phrases"}


@pytest.mark.parametrize(
    ("words", "values", "odd"), [((7, 0), (5, 0), 7), ((1, 3), (6, 1), 6)]
)
def test_the_refusal_tells_the_larger_number(
    setting, store, wavering, monkeypatch, words, values, odd
):
    """And the record both; what another run shows is recorded too."""
    monkeypatch.setattr(
        canary, "_ask", lambda *given: Canary(given[-1].id, 20, words, values)
    )
    runs = []
    for draw in (1, 2):
        run = run_prompt(setting.workspace, "tiny", "dev", engine="wavering", draw=draw)
        runs.append(run.run_id)
        said = f"of run {run.run_id} that were asked twice more, {odd} are"
        with pytest.raises(EngineError, match=said):
            ask(setting, store, draws=(1, 2))
    payloads = [
        one.payload
        for one in read_ledger(setting.workspace.ledger)
        if one.action == "model_changed"
    ]
    assert [one["run"] for one in payloads] == runs
    kept = {"cohort": "dev", "prompts": 20, "other_words": words[0]}
    for payload in payloads:
        assert payload.items() >= {**kept, "other_values": values[0]}.items()


def test_only_cases_that_a_run_asked_are_asked_again(setting, store, wavering):
    """Those of its limit; the newest run counts, and fewer than twenty are enough."""
    run_prompt(setting.workspace, "tiny", "dev", engine="wavering", draw=1)
    run = run_prompt(setting.workspace, "tiny", "dev", engine="wavering", limit=5)
    before = len(wavering.asked)
    assert ask(setting, store, draws=(0, 1)) == Canary(run.run_id, 5, (0, 0), (0, 0))
    assert len(wavering.asked) == before + 2
    assert [seed for seed, _ in wavering.asked[before:]] == [0, 0]


def test_an_answer_of_another_question_is_not_asked_about(setting, store, wavering):
    """Another prompt, cohort or engine, and a run that did not end."""
    setting.add_cohort("second", "dev", [("x1", "A study of another cohort.", 0, 0)])
    other = replace(setting.tiny, name="other", parent=None)
    write_version(setting.workspace, replace(other, system="Read it twice.\n"))
    run_prompt(setting.workspace, "tiny", "second", engine="wavering", draw=1)
    run_prompt(setting.workspace, "other", "dev", engine="wavering", draw=1)
    run_prompt(setting.workspace, "tiny", "dev", engine="rules")
    heated = prepare_run(
        setting.workspace,
        "tiny",
        "dev",
        engine="wavering",
        asking=EngineOptions(temperature=0.5),
    )
    run_task(setting.workspace, heated)
    plain = prepare_run(setting.workspace, "tiny", "dev", engine="wavering")
    store.add_run("20270101-000000-abcdef", "2027", "m", plain.spec)
    assert ask(setting, store, draws=(0, 1)) is None


def test_the_same_prompts_of_a_run_are_asked_each_time(
    setting, store, wavering, monkeypatch
):
    """Which ones depends on its id alone: whoever asks later looks at the same."""
    run_prompt(setting.workspace, "tiny", "dev", engine="wavering", draw=1)
    whole, asked = wavering.complete, []

    def note(self, prompts):
        """Note which cases are asked about."""
        asked.append([one.item.id for one in prompts])
        yield from whole(self, prompts)

    monkeypatch.setattr(wavering, "complete", note)
    for _ in range(2):
        ask(setting, store)
    assert asked == [asked[0]] * 4
    assert len(set(asked[0])) == 20


def test_an_answer_that_is_an_error_is_no_sign(setting, store, wavering, monkeypatch):
    """As one that never came."""
    run_prompt(setting.workspace, "tiny", "dev", engine="wavering", draw=1)
    whole = wavering.complete

    def fail(self, prompts):
        """Answer the first with an error."""
        for index, answer in whole(self, prompts):
            yield index, answer if index else Completion("", "error", "timeout")

    monkeypatch.setattr(wavering, "complete", fail)
    assert ask(setting, store).prompts == 19
