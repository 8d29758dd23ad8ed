"""A prompt version, a cohort and an engine become one run."""

import json
import re
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, EngineError, UnknownEngineError
from loop.core.ledger import Actor
from loop.core.records import Completion, Item
from loop.engines import base
from loop.evaluate.exemplars import count_exemplars
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.reference import read_reference
from loop.prompts.catalog import read_version
from loop.run import store
from loop.run.asking import ChosenEngine, EngineOptions, HeldEngine
from loop.run.cost import estimate_run
from loop.run.execute import Problem, RunSummary
from loop.run.manifest import find_run, read_manifest
from loop.run.spec import RunSpec, drawn, undrawn
from loop.run.store import open_store, read_outcomes
from loop.run.task import (
    check_open,
    check_way,
    prepare_run,
    require_answers,
    require_language,
    run_draws,
    run_prompt,
    run_task,
)


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


def test_a_protocol_that_cannot_be_read_is_not_taken_for_none(workspace, cohort):
    """A run without it would claim that nothing had been registered."""
    workspace.protocol.unlink()
    workspace.protocol.mkdir()
    with pytest.raises(DataError, match=r"cannot read .*protocol"):
        prepare_run(workspace, "extractor", cohort(), engine="plain")


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


def test_progress_counts_the_items_that_have_an_outcome(workspace, cohort, monkeypatch):
    """An engine that takes all cases before it answers the first has answered none."""
    passed, counts = [], []

    def watch(rows):
        for row in rows:
            yield row
            passed.append(row)

    def complete(self, prompts):
        first, *_ = prompts
        answer = {name: {"value": "absent"} for name in first.frame.fields}
        for index in range(5):
            counts.append(len(passed))
            yield index, Completion(json.dumps(answer))

    monkeypatch.setattr(store, "MAX_AGE_S", 0)
    monkeypatch.setattr(Plain, "complete", complete)
    run_prompt(workspace, "extractor", cohort(), engine="plain", watch=watch)
    assert counts == passed == [0, 1, 2, 3, 4]


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


def test_a_prompt_over_texts_that_the_cases_lack_is_refused(workspace, tmp_path):
    """Before anything is asked, priced or counted; the message says what each has."""
    path = tmp_path / "pairs.csv"
    path.write_text("id,reference,candidate\na,No effusion.,Effusion.\n")
    options = ImportOptions(name="rp", role="dev")
    import_cohort(workspace, path, options, actor=Actor(name="Dr. Example"))
    version = read_version(workspace, "extractor@v1")
    for act in (
        lambda: prepare_run(workspace, "extractor", "rp", engine="plain"),
        lambda: estimate_run(workspace, "extractor", "rp", engine="rules"),
        lambda: count_exemplars(workspace, version, "rp"),
    ):
        with pytest.raises(DataError, match=r"reads text, and .*reference, candidate"):
            act()
    judge = replace(version, inputs=("reference", "candidate"))
    assert count_exemplars(workspace, judge, "rp") == ()


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


class Bound(Plain):
    """Reads English and Chinese."""

    languages = ("zh", "en")


def unread(language, *languages, engine=None):
    """Return what is said of cases in these languages, of a cohort in `language`."""
    chosen = ChosenEngine("bound", engine or Bound(), {})
    cohort = SimpleNamespace(name="dev", language=language)
    items = [Item(id="c", variables={}, language=one) for one in languages]
    return require_language(chosen, cohort, items)


def way(file, several=""):
    """Return what can be done, as it is said."""
    return (
        "Ask a language model with --engine openai:MODEL@URL, write "
        f"labels/cues/{file}.yaml after the example of en.yaml, or import the cohort "
        f"again with the right --language{several}."
    )


READS = "bound reads en, zh (labels/cues/), and"
COLUMN = " or a column `language`"


@pytest.mark.parametrize(
    ("language", "languages", "said"),
    [
        ("mixed", ["en", "zh", "en"], ""),
        (
            "mixed",
            ["en", "de"],
            f"1 of 2 cases are in de (1): these get no answer. {way('de', COLUMN)}",
        ),
        (
            "mixed",
            ["en", "fr", "it", "it", "de"],
            "4 of 5 cases are in it (2), de (1), fr (1): these get no answer. "
            f"{way('LANGUAGE', COLUMN)}",
        ),
        (
            "mixed",
            ["en", "und", "de"],
            "2 of 3 cases are in de (1), a language that was not recognised (1): these "
            f"get no answer. {way('LANGUAGE', COLUMN)}",
        ),
        (
            "mixed",
            ["en", ""],
            "1 of 2 cases are in a language that was not recognised (1): these get no "
            f"answer. {way('LANGUAGE', COLUMN)}",
        ),
        (
            "mixed",
            ["en"] * 1000 + ["de"] * 1000,
            "1,000 of 2,000 cases are in de (1,000): these get no answer. "
            f"{way('de', COLUMN)}",
        ),
    ],
)
def test_cases_that_an_engine_cannot_read_are_told(language, languages, said):
    """How many, in which languages, those of most cases first, and what to do."""
    assert unread(language, *languages) == (f"{READS} {said}" if said else "")


@pytest.mark.parametrize(
    ("language", "languages", "said"),
    [
        ("de", [], f"in de. {way('de')}"),
        ("und", [], f"in a language that was not recognised. {way('LANGUAGE')}"),
        ("mixed", ["de", "fr"], f"in de (1), fr (1). {way('LANGUAGE', COLUMN)}"),
        ("mixed", ["de", "de"], f"in de (2). {way('de', COLUMN)}"),
    ],
)
def test_an_engine_that_can_read_no_case_is_not_asked(language, languages, said):
    """Nor is a case looked at where all are in one language."""
    with pytest.raises(EngineError) as refused:
        unread(language, *languages)
    assert str(refused.value) == f"{READS} the cases of dev are {said}"


@pytest.mark.parametrize("language", ["en", "zh", ""])
def test_an_engine_that_reads_the_language_is_asked(language):
    """Also where nobody said which it is."""
    assert unread(language, "de") == ""


def test_an_engine_of_all_languages_is_asked():
    """One that is held open is what it holds."""
    assert unread("de", engine=Plain()) == ""
    held = [
        HeldEngine(ChosenEngine("held", one, {}), ExitStack())
        for one in (Plain(), Bound())
    ]
    assert unread("de", engine=held[0]) == ""
    with pytest.raises(EngineError, match="the cases of dev are in de"):
        unread("de", engine=held[1])


@pytest.mark.parametrize(
    ("answered", "problems", "said"),
    [
        (1, (), None),
        (0, (), "was answered (no reason was given). There is nothing to score"),
        (0, "abcd", "of run r was answered (a; b; c). There is"),
    ],
)
def test_a_run_without_answers_cannot_be_scored(answered, problems, said):
    """It names three reasons."""
    summary = RunSummary(
        run_id="r",
        items=2,
        asked=2,
        cached=0,
        answered=answered,
        unparsed=0,
        failed=2 - answered,
        seconds=0.0,
        problems=tuple(Problem(text, 1, ()) for text in problems),
    )
    if said is None:
        require_answers(summary)
    else:
        with pytest.raises(EngineError, match=re.escape(said)):
            require_answers(summary)


@pytest.mark.parametrize(
    ("draw", "spaced", "parameters"),
    [
        (0, True, {"seed": 7}),
        (2, True, {"seed": 9, "blank_lines": 2}),
        (2, False, {"seed": 9}),
    ],
)
def test_a_draw_has_its_own_seed_and_spacing(kit, draw, spaced, parameters):
    """The first is asked as it is; what a draw adds can be taken off again."""
    spec = kit.make_spec(parameters={"seed": 7})
    further = drawn(spec, draw, spaced=spaced)
    assert (further.draw, dict(further.parameters)) == (draw, parameters)
    assert undrawn(further) == {"seed": 7}


def test_what_is_asked_is_known_before_it_is(workspace, cohort):
    """Every field of the spec, and how many cases that makes."""
    name = cohort()
    version = read_version(workspace, "extractor")
    reference = read_reference(workspace, name)
    asking = EngineOptions(temperature=0.5, max_tokens=9, seed=3)
    for limit, total in ((None, 5), (1, 1), (5, 5), (6, 5)):
        task = prepare_run(
            workspace, "extractor", name, engine="plain", limit=limit, asking=asking
        )
        assert task.spec == RunSpec(
            prompt=version.ref,
            prompt_digest=version.digest,
            contract="label_values/1",
            cohort=name,
            cohort_digest=read_cohort(workspace, name).digest,
            engine="plain",
            parameters={"temperature": 0.5, "max_tokens": 9, "seed": 3},
            reference=1,
            reference_digest=reference.digest,
            protocol_digest=digest_bytes(workspace.protocol.read_bytes()),
            limit=limit,
        )
        assert (task.total, task.unread) == (total, "")
        assert len([*task.work.items]) == len([*task.work.items]) == total
        assert (task.work.retries, task.work.again) == (0, False)
        assert task.plan is task.work.plan


def test_what_is_not_there_is_no_part_of_a_run(workspace, tmp_path):
    """A workspace without a protocol, a cohort without a reference."""
    source = tmp_path / "bare.csv"
    source.write_text("case_id,text\na,The lungs are clear.\n")
    options = ImportOptions(name="bare", role="dev", source="test", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="t"))
    workspace.protocol.unlink()
    spec = prepare_run(workspace, "extractor", "bare", engine="plain").spec
    assert (spec.reference, spec.reference_digest, spec.protocol_digest) == (
        *(None, None),
        None,
    )


@pytest.mark.parametrize(
    ("engine", "options", "said"),
    [
        ("rules", {}, None),
        ("openai:m", {"repeats": 3}, None),
        ("replay:x", {}, None),
        ("vllm:m", {"batch": True, "repeats": 2}, None),
        ("rules", {"repeats": 0}, "repeats must be >= 1, got 0"),
        ("replay:x", {"repeats": 2}, "a replay gives the same answers each time"),
        ("openai:m", {"batch": True}, "a batch needs an engine vllm:MODEL, got 'open"),
    ],
)
def test_what_would_only_look_like_what_was_asked_for_is_refused(engine, options, said):
    """Draws that are none, and a batch that nobody takes."""
    if said is None:
        check_way(engine, **options)
        return
    with pytest.raises(ValueError, match=said):
        check_way(engine, **options)


def test_a_cohort_without_a_case_is_refused():
    """A run of it would end with nothing, and look like a result."""
    empty = SimpleNamespace(name="dev", role="dev", cases=())
    with pytest.raises(DataError, match="cohort dev has no cases"):
        check_open(empty)
    check_open(SimpleNamespace(name="dev", role="dev", cases=(1,)))


def test_who_starts_a_run_and_what_its_engine_counted_are_kept(
    workspace, cohort, monkeypatch
):
    """In the store and in the manifest; of each draw its own."""
    counted = []

    def account(self):
        counted.append(1)
        return {"batches": len(counted)}

    monkeypatch.setattr(Plain, "account", account, raising=False)
    monkeypatch.setattr(Plain, "redraw", lambda self, draw: self, raising=False)
    task = prepare_run(workspace, "extractor", cohort(), engine="plain")
    done = [*run_draws(workspace, task, (0, 2), actor="Dr A")]
    runs = [find_run(workspace, one.run_id) for one in done]
    assert [(one.actor, one.spec.draw) for one in runs] == [("Dr A", 0), ("Dr A", 2)]
    kept = [read_manifest(workspace, one.run_id) for one in done]
    assert [one["engine_account"] for one in kept] == [{"batches": 1}, {"batches": 2}]
    assert [one["engine_identity"] for one in kept] == [{"engine": "plain"}] * 2
    assert [one["spec"]["parameters"]["seed"] for one in kept] == [0, 2]
    monkeypatch.setattr(Plain, "account", lambda self: {})
    silent = run_task(workspace, replace(task, spec=replace(task.spec, draw=3)))
    assert read_manifest(workspace, silent.run_id)["engine_account"] is None
