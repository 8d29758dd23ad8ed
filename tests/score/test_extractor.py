"""Texts become codes: each asked once, nothing guessed, nothing left behind."""

import gc
import json
import random
import tempfile
import threading

import numpy as np
import pytest

from loop.core.errors import DataError, EngineError, UnknownEngineError
from loop.core.records import Completion, Guide, ValueCode
from loop.engines import base
from loop.prompts.version import CallPlan, PromptVersion
from loop.run import runner as module
from loop.run.store import open_store
from loop.score.extractor import Extractor

TEXTS = [f"Small left pleural effusion, finding {number}." for number in range(40)]
asked = []


class TableEngine:
    """Answers "edema" by the words of a text; remembers what it was asked."""

    def __init__(self, name, settings):
        """Take what a factory is given; the name is part of the identity."""
        self.name = name

    def identity(self):
        """Return the name: tables with one name are the same engine."""
        return {"engine": "table", "name": self.name}

    def complete(self, prompts):
        """Yield the answers in order; ``dies`` breaks after ten."""
        for index, prompt in enumerate(prompts):
            if self.name == "dies" and index == 10:
                raise EngineError("the server died. Start it again.")
            text = prompt.item.variables["text"]
            asked.append(text)
            if text == "broken":
                yield index, Completion("", "error", "HTTP 503 after 7 attempts")
                continue
            value = {"wet": "present", "maybe": "uncertain"}.get(text, "absent")
            answer = {name: {"value": value} for name in prompt.frame.fields}
            yield index, Completion("I cannot" if text == "odd" else json.dumps(answer))


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """Register the engine ``table`` for one test."""
    asked.clear()
    monkeypatch.setitem(base._FACTORIES, "table", TableEngine)


def make_version(*labels, **changes):
    """Return a version that asks for `labels`."""
    values = {
        "name": "tiny",
        "number": 1,
        "system": "Read.\n",
        "user": "Text: {{ text }}\n",
        "guides": tuple(
            Guide(label=label, name=label, definition="What it means.", terms=(label,))
            for label in labels
        ),
    }
    return PromptVersion(**{**values, **changes})


def read(extractor, *texts):
    """Read English texts."""
    return extractor.read(texts, ["en"] * len(texts))


def test_every_value_has_its_own_code(workspace):
    """Present, absent, uncertain, unreadable and failed are five different things."""
    version = make_version("edema")
    with Extractor.open(workspace, version, "table:a") as extractor:
        found = read(extractor, "wet", "dry", "maybe", "odd", "broken", " .\n")
    column = extractor.labels.index("edema")
    wanted = [
        ValueCode.PRESENT,
        ValueCode.ABSENT,
        ValueCode.UNCERTAIN,
        ValueCode.UNANSWERED,
        ValueCode.UNANSWERED,
        ValueCode.MISSING,
    ]
    assert found.codes[:, column].tolist() == wanted
    assert (found.answered, found.unparsed, found.failed) == (3, 1, 1)


def test_labels_that_nobody_asked_for_are_missing(workspace):
    """A version of one label says nothing of the other twenty, not even absent."""
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        found = read(extractor, "wet", "broken")
    others = [place for place, name in enumerate(extractor.labels) if name != "edema"]
    assert (found.codes[:, others] == ValueCode.MISSING).all()


def test_a_text_without_a_word_is_not_asked(workspace):
    """There is nothing to ask about; what it counts as is a convention of scoring."""
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        found = read(extractor, "", "  \n", "...", "_ -- !")
    assert (found.codes == ValueCode.MISSING).all() and not asked
    assert found.keys == ("", "", "", "")


def test_each_distinct_text_is_asked_once(workspace):
    """A template that a generator repeats costs one question, here and for the next."""
    version = make_version("edema")
    with Extractor.open(workspace, version, "table:a") as extractor:
        first = read(extractor, "wet", "dry", "wet", "wet")
        again = read(extractor, "dry", "wet", "new")
    assert sorted(asked) == ["dry", "new", "wet"]
    assert (first.asked, first.cached, first.answered) == (2, 0, 2)
    assert (again.asked, again.cached, again.answered) == (1, 2, 3)


def test_a_remembered_text_saves_each_of_its_questions(workspace):
    """A version that asks for each label apart asks two questions of a text."""
    version = make_version("edema", "fracture", plan=CallPlan.PER_LABEL)
    with Extractor.open(workspace, version, "table:a") as extractor:
        first = read(extractor, "wet")
        again = read(extractor, "wet", "new")
    assert (first.asked, first.cached, first.answered) == (2, 0, 1)
    assert (again.asked, again.cached, again.answered) == (2, 2, 2)


def test_the_same_text_in_another_language_is_another_question(workspace):
    """Language decides which cues an engine reads with."""
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        found = extractor.read(["wet", "wet"], ["en", "zh"])
    assert found.asked == 2 and len(set(found.keys)) == 2


def test_a_second_scoring_asks_nothing_again(workspace):
    """Answers are kept in the workspace, by content."""
    version = make_version("edema")
    with Extractor.open(workspace, version, "table:a") as extractor:
        first = read(extractor, *TEXTS)
    with Extractor.open(workspace, version, "table:a") as extractor:
        second = read(extractor, *TEXTS)
    assert (second.asked, second.cached) == (0, len(TEXTS))
    assert (second.codes == first.codes).all()


def test_a_killed_scoring_goes_on_where_it_was(workspace):
    """What was answered before the engine died is not asked again."""
    version = make_version("edema")
    with (
        Extractor.open(workspace, version, "table:dies") as extractor,
        pytest.raises(EngineError, match="Start it again"),
    ):
        read(extractor, *TEXTS)
    before = len(asked)
    for _ in range(2):
        with (
            Extractor.open(workspace, version, "table:dies") as extractor,
            pytest.raises(EngineError),
        ):
            read(extractor, *TEXTS)
    with Extractor.open(workspace, version, "table:dies") as extractor:
        found = read(extractor, *TEXTS)
    assert before == 10 and len(asked) == len(set(asked)) == len(TEXTS)
    assert found.answered == len(TEXTS)


def test_what_failed_is_asked_again(workspace):
    """A failure of the infrastructure is no answer to keep."""
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        read(extractor, "broken", "odd")
        found = read(extractor, "broken", "odd")
    assert asked.count("broken") == 2
    # What was unreadable is unreadable again: the same question has one answer.
    assert asked.count("odd") == 1 and found.unparsed == 1


def test_problems_name_texts_by_key_and_never_quote_them(workspace):
    """A reason may be shown and logged; a text may not."""
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        found = read(extractor, "wet", "broken")
    (problem,) = found.problems
    assert problem.cases == 1 and problem.examples == (found.keys[1],)
    assert "broken" not in str(found.problems)


def test_the_order_of_texts_changes_nothing(workspace):
    """An engine even sees them in the same order."""
    version, order = make_version("edema"), [*TEXTS, "wet", "maybe"]
    with Extractor.open(None, version, "table:a") as extractor:
        first = read(extractor, *order)
    seen, shuffled = asked.copy(), order.copy()
    asked.clear()
    random.Random(1).shuffle(shuffled)
    with Extractor.open(None, version, "table:a") as extractor:
        second = read(extractor, *shuffled)
    assert asked == seen
    place = [shuffled.index(text) for text in order]
    assert (second.codes[place] == first.codes).all()


def test_runs_of_the_workspace_do_not_see_it(workspace):
    """`latest` stays the newest run, and an audit finds no run without a manifest."""
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        read(extractor, "wet")
    with open_store(workspace) as store:
        assert not store.find_runs() and not store.count_completions()
    assert not (workspace.private / "runs").exists()


def test_only_the_answers_stay_in_its_own_store(workspace):
    """Outcomes of a scoring that was read would grow with every repetition."""
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        read(extractor, "wet", "dry")
        assert extractor._runner._store.count_completions() == 2
        assert not extractor._runner._store.find_runs()
        assert not extractor._runner._store.read("SELECT * FROM outcomes")
    folder = workspace.private / "score"
    assert not list((folder / "runs").iterdir())
    assert folder.stat().st_mode & 0o777 == 0o700


def test_without_a_store_a_workspace_is_left_as_it_is(workspace):
    """For trying out, and for rewards."""
    version = make_version("edema")
    with Extractor.open(workspace, version, "table:a", store=False) as extractor:
        read(extractor, "wet")
    assert not (workspace.private / "score").exists()


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return the folder that temporary folders are made in."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_nothing_is_left_behind_once_closed(temporary):
    """The shipped material is linked, never written into."""
    with Extractor.open(None, make_version("edema"), "table:a") as extractor:
        read(extractor, "wet")
        assert list(temporary.iterdir())
    assert not list(temporary.iterdir())


def test_one_that_nobody_closes_lets_go_by_itself(temporary):
    """A notebook makes a new one in every cell that is run again."""
    extractor = Extractor.open(None, make_version("edema"), "table:a")
    read(extractor, "wet")
    del extractor
    gc.collect()
    assert not list(temporary.iterdir())


def test_closing_twice_is_harmless(workspace):
    """A context manager around one that was closed by hand."""
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        extractor.close()


def test_memory_is_bounded(workspace, monkeypatch):
    """Training sees millions of texts; the oldest are forgotten, not the answers."""
    monkeypatch.setattr(module, "REMEMBERED", 4)
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        found = read(extractor, *TEXTS)
        assert found.answered == len(TEXTS) and len(extractor._runner._known) == 4
        again = read(extractor, *TEXTS)
    assert (again.codes == found.codes).all() and again.asked == 0


def test_facts_depend_on_version_engine_and_parameters(workspace):
    """Two scores are comparable only where all three are the same."""

    def facts(labels, engine):
        version = make_version(*labels)
        with Extractor.open(workspace, version, engine, release="r") as extractor:
            return extractor.facts

    first = facts(["edema"], "table:a")
    assert (first.ref, first.engine, first.release) == ("tiny@v1", "table:a", "r")
    assert facts(["edema"], "table:a") == first
    assert facts(["fracture"], "table:a").digest != first.digest
    assert facts(["edema"], "table:b").identity != first.identity


def test_progress_sees_every_text_that_is_asked_about(workspace):
    """What is remembered takes no time, so it is not watched."""
    seen = []

    def watch(items):
        for item in items:
            seen.append(item.id)
            yield item

    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        read(extractor, "wet")
        found = extractor.read(["wet", "dry"], ["en", "en"], watch)
    assert seen == [found.keys[1]]


def test_two_threads_may_ask_at_once(workspace):
    """A trainer may grade in threads; each gets the answers to its own texts."""
    results = {}
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:

        def work(name):
            texts = [f"{name} {number}" for number in range(30)] + ["wet"]
            results[name] = read(extractor, *texts)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    column = extractor.labels.index("edema")
    for found in results.values():
        assert found.codes[:, column].tolist() == [ValueCode.ABSENT] * 30 + [
            ValueCode.PRESENT
        ]


def test_a_version_that_reads_pairs_is_refused(workspace):
    """A judge's prompt is no extractor."""
    version = make_version(
        "edema",
        user="A: {{ reference }} B: {{ candidate }}\n",
        inputs=("reference", "candidate"),
    )
    with pytest.raises(DataError, match=r"reads reference and candidate.*one text"):
        Extractor.open(workspace, version, "table:a")


def test_a_version_that_asks_for_other_labels_is_refused(workspace):
    """Their answers would have no place."""
    with pytest.raises(DataError, match="asks for rib_count, which labels/taxonomy"):
        Extractor.open(workspace, make_version("rib_count"), "table:a")


def test_a_version_that_does_not_exist_says_how_to_name_one(workspace):
    """The message of the catalogue comes through."""
    with pytest.raises(DataError, match="has no version v99"):
        Extractor.open(workspace, "extractor@v99")


def test_engines_that_cannot_answer_new_texts_are_refused(workspace):
    """A replay knows the texts of one run; an unknown engine knows none."""
    with pytest.raises(EngineError, match="Name an engine that gives new answers"):
        Extractor.open(workspace, "extractor@v1", "replay:latest")
    with pytest.raises(UnknownEngineError, match="no engine 'guess'"):
        Extractor.open(workspace, "extractor@v1", "guess")


def test_one_language_per_text_is_needed(workspace):
    """A forgotten language must not cut the texts short."""
    with (
        Extractor.open(workspace, make_version("edema"), "table:a") as extractor,
        pytest.raises(ValueError, match="shorter"),
    ):
        extractor.read(["wet", "dry"], ["en"])


def test_no_texts_give_an_empty_table(workspace):
    """Of the right width."""
    with Extractor.open(workspace, make_version("edema"), "table:a") as extractor:
        assert read(extractor).codes.shape == (0, 21)


def test_shipped_version_reads_long_and_mixed_texts():
    """A text of 1 MB, English, Chinese, and a language there are no cues for."""
    long = "Small left pleural effusion. No pneumothorax. " * 22_000
    texts = ["No pneumothorax.", long, "左侧胸腔积液。", "Kein Pneumothorax."]
    with Extractor.open(None, "extractor@v7") as extractor:
        found = extractor.read(texts, ["en", "en", "zh", "de"])
    column = extractor.labels.index("pleural_effusion")
    assert found.codes[:, column].tolist() == [
        ValueCode.ABSENT,
        ValueCode.PRESENT,
        ValueCode.PRESENT,
        ValueCode.UNANSWERED,
    ]
    assert (found.answered, found.failed) == (3, 1)
    assert "no cues for language 'de'" in found.problems[0].text
    assert np.unique(found.codes[3]).tolist() == [
        ValueCode.UNANSWERED,
        ValueCode.MISSING,
    ]


def test_half_of_a_character_pair_is_read_as_a_question_mark():
    """What a model writes while it learns must not end its training."""
    with Extractor.open(None, "extractor@v7") as extractor:
        found = read(extractor, "Edema. \ud800", "Edema. ?")
    assert found.answered == 1
    assert (found.codes[0] == found.codes[1]).all()


def test_a_closed_extractor_says_so():
    """Its store is gone, which would be told as trouble with the disk."""
    with Extractor.open(None, "extractor@v7") as extractor:
        pass
    with pytest.raises(ValueError, match="extractor@v7 is closed"):
        read(extractor, "Edema.")


def test_an_extractor_is_a_version_or_its_name():
    """A number fails before an engine is opened, with what it may be."""
    with pytest.raises(ValueError, match=r"extractor must be .* got int"):
        Extractor.open(None, 7)
