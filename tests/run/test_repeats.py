"""Repeats are fresh draws, replays are old answers, and neither is the other."""

import json
from dataclasses import replace

import pytest

from loop.core.errors import DataError, EngineError
from loop.core.ledger import Actor
from loop.core.records import Completion
from loop.engines import base
from loop.evaluate.documents import render_csv, render_html, render_markdown
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.evaluation_json import evaluation_data
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import read_version, write_version
from loop.run.asking import EngineOptions, hold_engine
from loop.run.manifest import find_run, read_manifest
from loop.run.spec import undrawn
from loop.run.store import Store, open_store, read_outcomes
from loop.run.task import prepare_run, run_draws, run_prompt
from tests.conftest import shipped_workspace

CASES = 6


class Fickle:
    """Says present for edema where the case number is below the seed."""

    def __init__(self, name="", settings=None, asked=None, draw=0):
        """Take what a factory is given; remember every seed asked with."""
        self.settings = settings
        self.seed = settings.seed + draw
        self.asked = [] if asked is None else asked
        self.entered = 0

    def __enter__(self):
        """Count how often it is opened."""
        self.entered += 1
        return self

    def __exit__(self, *error):
        """Hold nothing open."""

    def identity(self):
        """Return a name; not the seed, which is a parameter."""
        return {"engine": "fickle", "model": "m"}

    def redraw(self, draw):
        """Return the engine with another seed."""
        return Fickle("", self.settings, self.asked, draw)

    def account(self):
        """Return what was asked so far."""
        return {"requests": len(self.asked)}

    def complete(self, prompts):
        """Yield an answer that depends on the seed; the last case always fails."""
        for index, prompt in enumerate(prompts):
            self.asked.append(self.seed)
            number = int(prompt.item.id[1:])
            if number == CASES - 1 and self.seed == 2:
                yield index, Completion("", "error", "HTTP 500 after 7 attempts")
                continue
            answer = dict.fromkeys(prompt.frame.fields, "absent")
            if number < self.seed:
                answer["edema"] = {"value": "present"}
            yield index, Completion(json.dumps(answer), "stop", "", 0.1, 100, 20, 90)


@pytest.fixture(autouse=True)
def fickle(monkeypatch):
    """Register the engine ``fickle`` for one test."""
    monkeypatch.setitem(base._FACTORIES, "fickle", Fickle)


@pytest.fixture
def cohort(workspace, tmp_path):
    """Import a small cohort with a reference."""
    return make_cohort(workspace, tmp_path, "small")


def make_cohort(workspace, folder, name):
    """Import a cohort called `name` and return its name."""
    source = folder / f"{name}.csv"
    rows = [f"c{n},Radiograph {n} of {name}: clear lungs.,0" for n in range(CASES)]
    source.write_text("\n".join(["case_id,text,edema", *rows]) + "\n")
    options = ImportOptions(name=name, role="dev", source="test", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="t"))
    return name


def draws(workspace, cohort, count, **asking):
    """Run `count` draws and return their summaries and the engine."""
    task = prepare_run(
        workspace,
        "extractor",
        cohort,
        engine="fickle:m",
        asking=EngineOptions(**asking),
    )
    return list(run_draws(workspace, task, range(count))), task.engine


def test_each_draw_is_asked_anew_with_its_own_seed(workspace, cohort):
    """An answer from the cache would hide exactly what a repeat is to show."""
    summaries, engine = draws(workspace, cohort, 3)
    assert [summary.asked for summary in summaries] == [CASES] * 3
    assert engine.asked == [0] * CASES + [1] * CASES + [2] * CASES
    specs = [read_manifest(workspace, one.run_id)["spec"] for one in summaries]
    assert [spec["draw"] for spec in specs] == [0, 1, 2]
    assert [spec["parameters"]["seed"] for spec in specs] == [0, 1, 2]


def test_draws_that_exist_are_not_asked_again(workspace, cohort):
    """The same command goes on: only the two new draws, and the failed case."""
    draws(workspace, cohort, 3)
    again, engine = draws(workspace, cohort, 5)
    assert [summary.asked for summary in again] == [0, 0, 1, CASES, CASES]
    assert set(engine.asked) == {2, 3, 4}


def test_all_draws_share_one_opened_engine(workspace, cohort):
    """A server takes minutes to start."""
    _, engine = draws(workspace, cohort, 3)
    assert engine.entered == 1


def test_every_draw_reads_all_cases_while_watched(workspace, cohort):
    """A progress bar is a stream that ends: the second draw needs its own."""
    task = prepare_run(workspace, "extractor", cohort, engine="fickle:m")
    summaries = run_draws(
        workspace, task, range(3), watch=lambda items: (i for i in items)
    )
    assert [summary.items for summary in summaries] == [CASES] * 3


def test_a_draw_is_not_another_run_with_that_seed(workspace, cohort):
    """Seed 1 asked on purpose and draw 1 of seed 0 are two questions."""
    draws(workspace, cohort, 2)
    (other,), _ = draws(workspace, cohort, 1, seed=1)
    assert other.asked == CASES


def test_latest_means_the_first_draw(workspace, cohort):
    """A repeat is no newer result than what it repeats."""
    summaries, _ = draws(workspace, cohort, 3)
    assert find_run(workspace).id == summaries[0].run_id
    assert find_run(workspace, summaries[2].run_id).spec.draw == 2


def test_flips_are_counted_per_label_over_cases_answered_in_every_draw(
    workspace, cohort
):
    """Seeds 0, 1, 2 say present for 0, 1, 2 cases: two of five flip, one failed."""
    summaries, _ = draws(workspace, cohort, 3)
    evaluation = evaluate_run(workspace, summaries[0].run_id)
    flips = {result.label: result.flips for result in evaluation.labels}
    assert (flips["edema"].flipped, flips["edema"].n) == (2, CASES - 1)
    assert (flips["fracture"].flipped, flips["fracture"].n) == (0, CASES - 1)
    # The derived label is read from the answers of each draw.
    assert flips["no_finding"].flipped == 2
    assert evaluation.stability.partly == 1
    assert evaluation.stability.runs == tuple(one.run_id for one in summaries)


def test_every_document_has_the_stability_column(workspace, cohort):
    """And none has it for a run that was not repeated."""
    summaries, _ = draws(workspace, cohort, 3)
    evaluation = evaluate_run(workspace, summaries[0].run_id)
    assert "2 of 5" in render_html(evaluation)
    assert "| Flips in 3 draws |" in render_markdown(evaluation)
    assert "| 2 of 5 [0.053, 0.853] |" in render_markdown(evaluation)
    assert ",3,2,5,0.0527" in render_csv(evaluation)
    data = evaluation_data(evaluation)
    edema = next(one for one in data["labels"] if one["label"] == "edema")
    assert edema["flips"]["rate"] == pytest.approx(0.4)
    assert len(data["repeats"]["runs"]) == 3


def note_of(workspace, summaries):
    """Return what an evaluation says of the repeats."""
    notes = evaluate_run(workspace, summaries[0].run_id).notes
    return next(note for note in notes if note.startswith("Asked "))


def test_flips_without_chance_are_said_to_be_the_servers(workspace, cohort):
    """At temperature 0 a seed changes nothing: no flip is no sign of certainty."""
    greedy, _ = draws(workspace, cohort, 2)
    assert "Nothing was left to chance" in note_of(workspace, greedy)
    drawn, _ = draws(workspace, cohort, 2, temperature=0.8)
    note = note_of(workspace, drawn)
    assert "Nothing was left to chance" not in note and "at temperature 0.8" in note


def test_the_rules_leave_nothing_to_chance(workspace, cohort):
    """Whatever temperature they are asked with."""
    asking = EngineOptions(temperature=1.0)
    task = prepare_run(workspace, "extractor", cohort, asking=asking)
    repeated = list(run_draws(workspace, task, range(2)))
    assert "Nothing was left to chance" in note_of(workspace, repeated)


def test_answers_in_the_same_words_are_counted(workspace, cohort):
    """A server that ignores the seed would look perfectly stable."""
    summaries, _ = draws(workspace, cohort, 3, temperature=0.8)
    # Seeds 0 to 2: cases 0 and 1 change, case 5 has no answer in the last draw.
    stability = evaluate_run(workspace, summaries[0].run_id).stability
    assert (stability.same_words, stability.chance) == (CASES - 3, True)
    assert "3 cases were answered in the same words" in note_of(workspace, summaries)


def test_a_single_run_has_no_stability_column(workspace, cohort):
    """One draw shows nothing of stability, so nothing is said of it."""
    (only,), _ = draws(workspace, cohort, 1)
    evaluation = evaluate_run(workspace, only.run_id)
    assert evaluation.stability is None
    assert "Flips" not in render_html(evaluation) + render_markdown(evaluation)


def test_runs_with_other_parameters_are_no_repeats(workspace, cohort):
    """Another temperature is another experiment."""
    (first,), _ = draws(workspace, cohort, 1)
    draws(workspace, cohort, 2, temperature=0.7)
    assert evaluate_run(workspace, first.run_id).stability is None


def test_tokens_are_summed_over_new_and_over_all_answers(workspace, cohort):
    """What this process spent, and what the run's answers took."""
    (first,), _ = draws(workspace, cohort, 1)
    assert first.spent == first.used == (CASES, 600, 120, 540)
    (again,), _ = draws(workspace, cohort, 1)
    assert again.spent.answers == 0 and again.used.prompt_tokens == 600
    manifest = read_manifest(workspace, again.run_id)
    assert manifest["counts"]["cached_tokens"] == 540
    assert manifest["engine_account"] == {"requests": 0}


def test_problems_name_the_cases(workspace, cohort):
    """Which case failed, and why, without opening the store."""
    summaries, _ = draws(workspace, cohort, 3)
    assert summaries[0].problems == ()
    assert summaries[2].problems == (("HTTP 500 after 7 attempts", 1, ("c5",)),)


def test_a_replay_gives_the_same_outcomes_without_the_engine(
    workspace, cohort, monkeypatch
):
    """A parser or a gate can change when the model is long gone."""
    (first,), _ = draws(workspace, cohort, 1, seed=3)
    monkeypatch.delitem(base._FACTORIES, "fickle")
    replayed = run_prompt(workspace, "extractor", cohort, engine="replay:latest")
    assert replayed.run_id != first.run_id
    with open_store(workspace) as store:
        assert list(read_outcomes(store, replayed.run_id)) == list(
            read_outcomes(store, first.run_id)
        )
    manifest = read_manifest(workspace, replayed.run_id)
    assert manifest["spec"]["engine"] == f"replay:{first.run_id}"
    assert manifest["spec"]["parameters"]["seed"] == 3
    assert manifest["engine_identity"]["source"] == {"engine": "fickle", "model": "m"}
    notes = " ".join(evaluate_run(workspace, replayed.run_id).notes)
    assert first.run_id in notes


def test_a_replay_of_a_replay_names_the_first_engine(workspace, cohort):
    """However often it is replayed, a model said it once."""
    draws(workspace, cohort, 1)
    once = run_prompt(workspace, "extractor", cohort, engine="replay:latest")
    twice = run_prompt(workspace, "extractor", cohort, engine=f"replay:{once.run_id}")
    identity = read_manifest(workspace, twice.run_id)["engine_identity"]
    assert identity["source"]["engine"] == "fickle"


def test_what_failed_then_fails_in_the_replay(workspace, cohort):
    """A missing answer never turns into one."""
    (failed,), _ = draws(workspace, cohort, 1, seed=2)
    replayed = run_prompt(
        workspace, "extractor", cohort, engine=f"replay:{failed.run_id}"
    )
    assert (replayed.answered, replayed.failed) == (CASES - 1, 1)
    assert "has no stored answer" in replayed.problems[0].text


def test_a_replay_over_more_cases_than_were_asked_fails_the_others(
    workspace, cohort, monkeypatch
):
    """Never asked, they have no answer; the run is not read again for each of them."""
    run = run_prompt(workspace, "extractor", cohort, engine="fickle:m", limit=2)
    reads, read_keys = [], Store.read_keys
    monkeypatch.setattr(
        Store, "read_keys", lambda self, run: reads.append(run) or read_keys(self, run)
    )
    replayed = run_prompt(workspace, "extractor", cohort, engine=f"replay:{run.run_id}")
    assert (replayed.answered, replayed.failed) == (2, CASES - 2)
    assert reads == [run.run_id]


@pytest.mark.parametrize("missing", ["engine_identity", "spec"])
def test_a_replay_of_a_run_with_a_changed_manifest_says_so(workspace, cohort, missing):
    """It would not know whose answers it gives."""
    run = run_prompt(workspace, "extractor", cohort, engine="fickle:m")
    path = workspace.private / "runs" / run.run_id / "manifest.json"
    data = json.loads(path.read_text())
    data[missing] = None
    path.write_text(json.dumps(data))
    with pytest.raises(DataError, match=r"changed it\. Run the same `ranloop run`"):
        run_prompt(workspace, "extractor", cohort, engine="replay:latest")


def test_a_replay_on_other_cases_is_refused(workspace, cohort, tmp_path):
    """The answers to other questions are no answers to these."""
    draws(workspace, cohort, 1)
    make_cohort(workspace, tmp_path, "other")
    with pytest.raises(EngineError, match="Ask an engine for these cases"):
        run_prompt(workspace, "extractor", "other", engine="replay:latest")


def test_a_replay_of_another_version_is_refused(tmp_path):
    """The message names both versions."""
    whole = shipped_workspace(tmp_path / "whole")
    make_cohort(whole, tmp_path, "small")
    run_prompt(whole, "extractor@v1", "small", engine="fickle:m")
    with pytest.raises(EngineError, match=r"extractor@v1 .* not extractor@v2"):
        run_prompt(whole, "extractor@v2", "small", engine="replay:latest")


def test_a_replay_of_an_unknown_run_is_refused(workspace, cohort):
    """As every reference to a run is."""
    with pytest.raises(DataError, match="no run 'nowhere'"):
        run_prompt(workspace, "extractor", cohort, engine="replay:nowhere")


def test_a_replay_needs_a_run(workspace, cohort):
    """The message says where to find one."""
    with pytest.raises(EngineError, match="replay:RUN"):
        run_prompt(workspace, "extractor", cohort, engine="replay:")


def test_a_held_engine_is_opened_once_for_several_runs(workspace, cohort):
    """And not at all when nothing is run after all."""
    with hold_engine(workspace, "fickle:m", EngineOptions(seed=4)) as held:
        inner = held.inner
        assert inner.entered == 0
        first = run_prompt(workspace, "extractor", cohort, engine=held)
        second = run_prompt(workspace, "extractor", cohort, engine=held)
    assert (first.asked, second.cached, inner.entered) == (CASES, CASES, 1)
    manifest = read_manifest(workspace, first.run_id)
    assert manifest["spec"]["engine"] == "fickle:m"
    assert manifest["spec"]["parameters"]["seed"] == 4


def test_a_replay_cannot_be_held(workspace, cohort):
    """It answers the prompt of one run, and a revision asks two."""
    with (
        pytest.raises(EngineError, match="gives new answers"),
        hold_engine(workspace, "replay:latest"),
    ):
        pass


class Unsteady(Fickle):
    """One that may answer the same prompt otherwise."""

    retry_unreadable = 0


def test_a_draw_of_an_engine_with_chance_is_spaced_otherwise(
    workspace, cohort, monkeypatch
):
    """And says so in its run, and in what an evaluation says of the draws."""
    monkeypatch.setitem(base._FACTORIES, "fickle", Unsteady)
    summaries, _ = draws(workspace, cohort, 3)
    specs = [find_run(workspace, one.run_id).spec for one in summaries]
    spaced = [spec.parameters.get("blank_lines") for spec in specs]
    assert spaced == [None, 1, 2]
    assert [undrawn(spec) for spec in specs] == [specs[0].parameters] * 3
    note = note_of(workspace, summaries)
    assert "one more blank line between paragraphs" in note
    assert "Nothing was left to chance" not in note


def test_an_engine_that_repeats_itself_gets_the_same_prompt(workspace, cohort):
    """Its draws differ by their seed alone."""
    summaries, _ = draws(workspace, cohort, 2)
    spec = find_run(workspace, summaries[1].run_id).spec
    assert "blank_lines" not in spec.parameters


def test_the_newest_run_of_a_draft_may_be_a_later_draw(workspace, cohort):
    """A version's is always the first; a draft that was checked has no other."""
    summaries, _ = draws(workspace, cohort, 2)
    assert find_run(workspace, "latest").id == summaries[0].run_id
    version = read_version(workspace, "extractor")
    draft = replace(version, draft="d1", number=0, system="Read.\n")
    write_version(workspace, draft)
    with pytest.raises(DataError, match="no finished run"):
        find_run(workspace, f"latest:{draft.ref}")
    task = prepare_run(workspace, draft.ref, cohort, engine="fickle:m")
    (first,) = run_draws(workspace, task, (2,))
    assert find_run(workspace, f"latest:{draft.ref}").id == first.run_id
    assert find_run(workspace, "latest").id == summaries[0].run_id
