"""A model writes errors: code decides what counts, a validator looks, five attempts."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from loop.core.errors import DataError, EngineError
from loop.core.records import Completion
from loop.engines import base
from loop.judge import InjectionOptions
from loop.judge.injection.inject import inject_by_model
from loop.judge.injection.model_injection import (
    FAILED,
    FEW_SENTENCES,
    IMPLAUSIBLE,
    READ_OTHERWISE,
    UNREADABLE,
    ErrorWriter,
)
from loop.judge.injection.stated_changes import (
    NO_SENTENCE,
    NOT_THERE,
    OTHER_NUMBER,
    SOMETHING_ELSE,
    TWICE,
)
from loop.judge.injection.text_changes import NEGATED, apply_changes
from tests.judge.injection.writing_model import (
    REPORTS,
    WritingModel,
    answer,
    omit,
    sentences,
)
from tests.judge.scenes import call

A = {"a": REPORTS["a"]}
ONE = InjectionOptions(errors="b", numbers=(1,))


@pytest.fixture
def engine(monkeypatch):
    """Return what registers a model as the engine ``writing`` for one test."""

    def register(model):
        monkeypatch.setitem(base._FACTORIES, "writing", lambda name, _: model)
        return model

    return register


def inject(texts, options=ONE, workspace=None):
    """Return what the engine ``writing`` makes of reports."""
    with ErrorWriter.open(workspace, options.written, "writing") as writer:
        return inject_by_model(texts, writer, options)


def test_what_passes_is_made_by_the_stated_changes_alone(engine):
    """Each sentence that is left out is a change; the report is otherwise whole."""
    engine(WritingModel())
    made = inject(REPORTS, InjectionOptions(errors="b", numbers=(1, 2)))
    assert len(made.pairs) == 6
    for one in made.pairs:
        assert one.significant and one.kind == "omission"
        assert len(one.changes) == one.number
        assert apply_changes(one.reference, one.changes) == one.candidate
    facts = made.model.data()
    assert facts["engine"] == facts["validator"] == "writing"
    assert set(facts["prompts"]) == {"inject_b@v1", "validate@v1"}
    assert facts["accepted_at"] == {"1": 6}
    assert not facts["rejected"]
    assert REPORTS["a"] not in json.dumps(facts)


TEXT = REPORTS["a"]
SMALL = "There is a small left pleural effusion."
LARGE = "There is a large left pleural effusion."
REFUSED = {
    UNREADABLE: "There you are: the report without its effusion.",
    OTHER_NUMBER: omit(TEXT, 2),
    NO_SENTENCE: answer(TEXT, (9, SMALL, ""), report=TEXT.replace(SMALL + " ", "")),
    NOT_THERE: answer(TEXT, (0, SMALL, ""), report=TEXT.replace(SMALL + " ", "")),
    SOMETHING_ELSE: answer(TEXT, (1, SMALL, ""), report=TEXT.upper()),
    "an omission adds a statement": answer(
        TEXT, (1, SMALL, "There is a right pneumothorax.")
    ),
    FAILED: Completion("", "error", "no route"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_does_not_agree_is_refused_five_times_and_counted(engine, reason):
    """By code, whatever the model says of itself; nothing of it becomes a pair."""
    model = engine(WritingModel(lambda *asked: REFUSED[reason]))
    made = inject(A)
    assert made.pairs == ()
    (left_out,) = made.left_out
    assert (left_out.reason, left_out.variants) == (reason, 1)
    assert made.model.rejected == {reason: 5}
    assert sum(model.asked.values()) == 5


def test_a_false_finding_that_takes_another_away_is_refused(engine):
    """The reader of findings looks at what should have stayed."""
    said = answer(TEXT, (1, SMALL, "There is a right pneumothorax."))
    engine(WritingModel(lambda *asked: said))
    made = inject(A, InjectionOptions(errors="a", numbers=(1,)))
    assert made.pairs == () and made.model.rejected == {READ_OTHERWISE: 5}


def test_two_changes_in_one_sentence_are_refused(engine):
    """One error a sentence: else two of them might be one."""
    said = answer(TEXT, (1, "small", "large"), (1, "left", "right"))
    engine(WritingModel(lambda *asked: said))
    made = inject(A, InjectionOptions(errors="d", numbers=(2,)))
    assert made.pairs == () and made.model.rejected == {TWICE: 5}


def test_a_later_attempt_may_pass(engine):
    """It is another draw; the first ones are counted."""
    engine(
        WritingModel(
            lambda text, kind, number, attempt: (
                omit(text, number) if attempt == 3 else "No."
            )
        )
    )
    made = inject(A)
    assert len(made.pairs) == 1
    assert made.model.accepted == {3: 1}
    assert made.model.rejected == {UNREADABLE: 2}


def test_what_the_validator_refuses_is_no_pair(engine):
    """It sees the report and the changes, and may be another model."""
    seen = []

    def look(inputs, attempt):
        seen.append(inputs)
        return False

    engine(WritingModel(plausible=look))
    made = inject(A)
    assert made.pairs == () and made.model.rejected == {IMPLAUSIBLE: 5}
    assert seen[0]["text"] == TEXT
    assert seen[0]["changes"] == f'1. "{SMALL}" became nothing'


def test_an_omission_that_denies_has_its_own_tag(engine):
    """It is a false negation, and no plain omission; one that states more is none."""
    said = answer(TEXT, (1, SMALL, "There is no left pleural effusion."))
    engine(WritingModel(lambda *asked: said))
    (one,) = inject(A).pairs
    assert [each.tag for each in one.changes] == [NEGATED]


def test_a_rewriting_that_changes_what_is_said_is_refused(engine):
    """Other words pass, another degree does not."""
    reworded = answer(TEXT, (1, "There is a small", "A small"), report=TEXT)
    same = answer(TEXT, (2, "No pneumothorax.", "There is no pneumothorax."))
    options = InjectionOptions(errors="", numbers=(1,), harmless=True)
    engine(WritingModel(lambda *asked: same))
    (one,) = inject(A, options).pairs
    assert not one.significant and "There is no pneumothorax." in one.candidate
    for wrong in (answer(TEXT, (1, SMALL, LARGE)), reworded):
        engine(WritingModel(lambda *asked, wrong=wrong: wrong))
        assert inject(A, options).pairs == ()


def test_a_report_with_too_few_sentences_is_not_asked_about(engine):
    """There is no third sentence to put a third error into."""
    model = engine(WritingModel())
    made = inject({"a": "Cardiomegaly."}, InjectionOptions(errors="b", numbers=(2,)))
    assert made.pairs == () and not model.asked
    assert [one.reason for one in made.left_out] == [FEW_SENTENCES]


def test_stored_answers_are_not_asked_for_again(engine, workspace):
    """Also those that were refused: each attempt is kept as its own."""

    def write(text, kind, number, attempt):
        return omit(text, number) if text != TEXT else "No."

    engine(WritingModel(write))
    first = inject(REPORTS, workspace=workspace)
    again = engine(WritingModel(write))
    second = inject(REPORTS, workspace=workspace)
    assert not again.asked and second.model.asked == 0
    assert second.pairs == first.pairs
    assert second.model.rejected == first.model.rejected == {UNREADABLE: 5}


def test_rules_write_nothing(workspace):
    """Injection by rules is without --engine."""
    with pytest.raises(EngineError, match="no language model and changes no text"):
        ErrorWriter.open(workspace, ["omission"], "rules")


def test_a_prompt_of_another_contract_is_refused(workspace):
    """One's own prompt of that name is read as it says."""
    made = call(workspace, "prompt", "new", "inject_b", "--from", "green@v1")
    assert made.exit_code == 0, made.output
    with pytest.raises(DataError, match="answered in green_sections, and injection"):
        ErrorWriter.open(workspace, ["omission"], "rules")


def test_the_verb_says_who_wrote_and_how_often(engine, workspace, tmp_path):
    """The folder has the form of injection without a model, and no text in its JSON."""
    engine(WritingModel())
    source = tmp_path / "reports.csv"
    rows = "".join(f'{name},"{text}"\n' for name, text in REPORTS.items())
    source.write_text("id,text\n" + rows)
    out = tmp_path / "made"
    told = call(
        workspace, "inject", source, "--errors", "b", "-e", "writing", "--out", out
    )
    assert told.exit_code == 0, told.output
    data = json.loads((out / "inject.json").read_text())
    assert data["model"]["engine"] == "writing"
    assert data["model"]["accepted_at"] == {"1": 3}
    words = (out / "inject.json").read_text() + told.output
    assert not any(one in words for text in REPORTS.values() for one in sentences(text))
    refused = call(
        workspace,
        *("inject", source, "--errors", "b", "-e", "rules", "--out", tmp_path / "no"),
    )
    assert refused.exit_code == 1
    assert not (tmp_path / "no").exists()


SCRIPT = Path(__file__).with_name("writing_model.py")


def start(folder, pause):
    """Start the injection in a process of its own; it never answers prompt `pause`."""
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), str(folder / "log"), str(pause)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def logged(folder):
    """Return what was asked so far, over all processes."""
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.slow
def test_a_killed_injection_goes_on_and_asks_nothing_twice(tmp_path):
    """In the first attempt, at the validator, and in the second attempt."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "labels").mkdir()
    kills = (0, 2, 3, 2)
    for pause in kills:
        before = len(logged(tmp_path))
        process = start(tmp_path, pause)
        deadline = time.monotonic() + 90
        while len(logged(tmp_path)) < before + pause + 1:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
        # A row may wait 50 ms before it is written; nothing else is in flight.
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done, _ = start(tmp_path, -1).communicate(timeout=90)
    asked, cached, told = json.loads(done)
    assert len(told) == 6
    times = Counter(logged(tmp_path))
    repeated = sum(times.values()) - len(times)
    assert repeated <= len(kills)
    # Six variants, two of them twice, and six looks at what was written.
    assert asked + cached == len(times) == 6 + 2 + 6
