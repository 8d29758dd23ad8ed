"""What a model writes into reports: checked, looked at, asked again, left out."""

import csv
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
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Completion
from loop.engines import base
from loop.judge import InjectionOptions
from loop.judge.injection.chance import Chance
from loop.judge.injection.inject import inject_by_model
from loop.judge.injection.model_injection import (
    FAILED,
    FEW_SENTENCES,
    IMPLAUSIBLE,
    MOST_ATTEMPTS,
    NOT_VALIDATED,
    PROMPTS,
    READ_OTHERWISE,
    UNREADABLE,
    VALIDATOR,
    ErrorWriter,
    Wanted,
    WrittenVariant,
    list_wanted,
    name_variants,
)
from loop.judge.injection.stated_changes import (
    NO_SENTENCE,
    NOT_THERE,
    OTHER_NUMBER,
    SOMETHING_ELSE,
    TWICE,
)
from loop.judge.injection.text_changes import apply_changes
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.report_changes import REWRITING
from loop.run.prune import prune_completions
from loop.run.task_fields import lint_prompt
from tests.judge.injection.writing_server import change, leave_out, plausible, rewrite
from tests.judge.scenes import call, table

REPORT = (
    "The heart is normal in size. There is a small left pleural effusion. "
    "No pneumothorax. Bony structures are intact."
)
EFFUSION = "There is a small left pleural effusion."
LARGE = change(1, EFFUSION, EFFUSION.replace("small", "large"))
WITH_LARGE = REPORT.replace("small", "large")
FINE = (plausible(),)
SERVER = Path(__file__).with_name("writing_server.py")


class ToldWriter:
    """Answers from a list, the last one for ever; the validator has its own."""

    def __init__(self, answers, looks, asked):
        self.answers, self.looks, self.asked = answers, looks, asked

    def identity(self):
        """Return that all are the same engine."""
        return {"engine": "told"}

    def complete(self, prompts):
        """Yield the answers in order."""
        for index, prompt in enumerate(prompts):
            text = "\n".join(one.content for one in prompt.messages)
            looking = "purpose" in prompt.item.variables
            given = self.looks if looking else self.answers
            place = sum(one is looking for one, _ in self.asked)
            self.asked.append((looking, text))
            said = given(text) if callable(given) else given[min(place, len(given) - 1)]
            yield index, said if isinstance(said, Completion) else Completion(said)


@pytest.fixture
def tell(monkeypatch):
    """Return what registers the engine ``told``, and gives what it is asked."""

    def register(answers, looks=FINE):
        asked = []
        monkeypatch.setitem(
            base._FACTORIES, "told", lambda *_: ToldWriter(answers, looks, asked)
        )
        return asked

    return register


def write(kind="d", number=1, report=REPORT, place=None, harmless=False):
    """Let the told engine write one variant of one report."""
    options = InjectionOptions(errors=kind, numbers=(number,), harmless=harmless)
    with ErrorWriter.open(place, options.written, "told:x") as writer:
        return inject_by_model({"a": report}, writer, options, region="chest")


def test_what_passes_is_a_pair_as_one_without_a_model(tell):
    """Its changes give it exactly, and what was asked has all that is known."""
    asked = tell([rewrite(WITH_LARGE, LARGE)])
    found = write()
    (pair,) = found.pairs
    assert (pair.id, pair.kind, pair.number) == ("a-d1", "severity", 1)
    assert pair.significant and pair.candidate == WITH_LARGE
    assert apply_changes(REPORT, pair.changes) == WITH_LARGE
    assert [(one.before, one.after) for one in pair.changes] == [("small", "large")]
    (_, first), (_, second) = asked
    assert "Modality: chest xray\nRegion of the body: chest" in first
    assert f"1: {EFFUSION}" in first and "Number of changes: 1" in first
    assert '1. "small" became "large"' in second
    assert "meant as: another severity or size of a finding" in second
    model = found.model
    assert (model.attempts, model.accepted) == ({"severity": 1}, {1: 1})
    assert (model.asked, model.cached) == (2, 0)
    facts = model.facts
    assert facts.engine == facts.validator == "told:x"
    assert facts.engine_digest == facts.validator_digest
    assert model.data() == {
        "engine": "told:x",
        "engine_digest": facts.engine_digest,
        "validator": "told:x",
        "validator_digest": facts.validator_digest,
        "prompts": {
            ref: read_version(WorkspacePaths(bundled()), ref).digest
            for ref in ("inject_d@v1", "validate@v1")
        },
        "most_attempts": MOST_ATTEMPTS,
        "attempts": {"severity": 1},
        "accepted_at": {"1": 1},
        "rejected": {},
    }
    assert not found.left_out


BAD = {
    "no change": (rewrite(REPORT), OTHER_NUMBER),
    "two in one sentence": (
        rewrite(
            WITH_LARGE.replace("left", "right"),
            change(1, "small", "large"),
            change(1, "left", "right"),
        ),
        OTHER_NUMBER,
    ),
    "a sentence that is not there": (
        rewrite(WITH_LARGE, {**LARGE, "sentence_index": 9}),
        NO_SENTENCE,
    ),
    "the wrong sentence": (
        rewrite(WITH_LARGE, {**LARGE, "sentence_index": 2}),
        NOT_THERE,
    ),
    "words that are not there": (
        rewrite(WITH_LARGE, change(1, "a tiny left effusion", "a large effusion")),
        NOT_THERE,
    ),
    "a list that does not give the report": (rewrite(REPORT, LARGE), SOMETHING_ELSE),
    "something else besides": (
        rewrite(WITH_LARGE.replace("intact", "normal"), LARGE),
        SOMETHING_ELSE,
    ),
    "another finding besides": (
        rewrite(
            REPORT.replace(EFFUSION, f"{EFFUSION[:-1]} and a right upper lobe mass."),
            change(1, EFFUSION, f"{EFFUSION[:-1]} and a right upper lobe mass."),
        ),
        READ_OTHERWISE,
    ),
    "not JSON": ("The effusion is large now.", UNREADABLE),
    "cut off": (Completion("{", finish_reason="length"), UNREADABLE),
    "no answer": (Completion("", "error", "the server is gone"), FAILED),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_asked_for_again_and_left_out_in_the_end(tell, name):
    """Five times, each time another prompt, and counted by the reason."""
    answer, reason = BAD[name]
    asked = tell([answer])
    found = write()
    assert not found.pairs
    assert [tuple(one) for one in found.left_out] == [("severity", 1, reason, 1)]
    assert found.model.rejected == {reason: MOST_ATTEMPTS}
    assert found.model.accepted == {}
    assert len(asked) == len({text for _, text in asked}) == MOST_ATTEMPTS


def test_two_changes_in_one_sentence_are_refused_where_two_are_wanted(tell):
    """Although their number is right, and they give the report."""
    both = rewrite(
        WITH_LARGE.replace("left", "right"),
        change(1, "small", "large"),
        change(1, "left", "right"),
    )
    tell([both])
    (lost,) = write(number=2).left_out
    assert lost.reason == TWICE


def test_a_later_attempt_counts(tell):
    """What was refused before it is counted, too."""
    tell(["nothing", rewrite(REPORT, LARGE), rewrite(WITH_LARGE, LARGE)])
    found = write()
    assert len(found.pairs) == 1
    assert found.model.accepted == {3: 1}
    assert found.model.rejected == {SOMETHING_ELSE: 1, UNREADABLE: 1}
    assert found.model.attempts == {"severity": 3}


def test_a_report_that_fails_does_not_stop_the_next_one(tell):
    """Each is judged by itself."""
    intact = WITH_LARGE.replace("intact", "whole")
    tell(lambda text: rewrite(intact, LARGE) if "whole" in text else rewrite(REPORT))
    reports = {"a": REPORT, "b": REPORT.replace("intact", "whole"), "c": REPORT}
    options = InjectionOptions(errors="d", numbers=(1,), harmless=False)
    with ErrorWriter.open(None, options.written, "told:x") as writer:
        found = inject_by_model(reports, writer, options, region="chest")
    assert [one.id for one in found.pairs] == ["b-d1"]
    assert found.model.accepted == {1: 1}
    assert found.model.attempts == {"severity": 2 * MOST_ATTEMPTS + 1}


def test_each_kind_of_error_has_its_own_prompt(tell):
    """One engine is asked with each of them."""
    asked = tell([rewrite(WITH_LARGE, LARGE)])
    found = write(kind="cd")
    assert {*found.model.attempts} == {"location", "severity"}
    assert {"inject_c@v1", "inject_d@v1"} <= {*found.model.facts.prompts}
    assert len({text for looking, text in asked if not looking}) == 2


def test_the_validator_refuses_and_is_not_believed_unread(tell):
    """It is shown what passed only."""
    right = [rewrite(WITH_LARGE, LARGE)]
    tell(right, [plausible(False, "not seen on this film"), plausible()])
    other = write()
    assert other.model.rejected == {IMPLAUSIBLE: 1} or not other.pairs
    tell(right, [plausible(False, "outside the region")])
    assert write().left_out[0].reason == IMPLAUSIBLE
    tell(right, [plausible(False, "ok")])
    assert write().left_out[0].reason == NOT_VALIDATED
    tell(right, [Completion("", "error", "gone")])
    assert write().left_out[0].reason == FAILED


def test_a_rewriting_that_changes_the_meaning_is_refused(tell):
    """And one that does not is harmless."""
    for new in ("large left", "small right", "possible small left"):
        said = REPORT.replace("small left", new)
        tell([rewrite(said, change(1, "small left", new))])
        found = write("", harmless=True)
        assert [one.reason for one in found.left_out] == [READ_OTHERWISE], new
    same = REPORT.replace("The heart is normal in size", "Heart size is normal")
    tell(
        [
            rewrite(
                same, change(0, "The heart is normal in size", "Heart size is normal")
            )
        ]
    )
    (pair,) = write("", harmless=True).pairs
    assert (pair.id, pair.kind, pair.significant) == (
        "a-rewriting1",
        "rewriting",
        False,
    )


def test_an_omission_leaves_out_and_a_denial_is_told_apart(tell):
    """A finding that is put in its place refuses it."""
    without = REPORT.replace(f"{EFFUSION} ", "")
    tell([rewrite(without, change(1, EFFUSION, ""))])
    (pair,) = write("b").pairs
    assert pair.candidate == without
    assert [one.tag for one in pair.changes] == ["sentence"]
    denied = "There is no pleural effusion."
    tell([rewrite(REPORT.replace(EFFUSION, denied), change(1, EFFUSION, denied))])
    (pair,) = write("b").pairs
    assert [one.tag for one in pair.changes] == ["omission_by_negation"]
    worse = "There is pulmonary edema."
    tell([rewrite(REPORT.replace(EFFUSION, worse), change(1, EFFUSION, worse))])
    assert write("b").left_out[0].reason == "an omission adds a statement"
    both = "There is no pleural effusion but a lung mass."
    tell([rewrite(REPORT.replace(EFFUSION, both), change(1, EFFUSION, both))])
    assert write("b").left_out[0].reason == READ_OTHERWISE


def test_what_no_reader_knows_may_be_left_out(tell):
    """The reader need not see the error itself: to it, nothing differs."""
    unknown = "A hair clip overlies the neck."
    report = f"{REPORT} {unknown}"
    tell([rewrite(REPORT, change(4, unknown, ""))])
    (pair,) = write("b", report=report).pairs
    assert pair.candidate == REPORT


def test_a_sentence_may_be_added_beside_another(tell):
    """Of a false finding nothing has to go."""
    mass = "There is a 3 cm mass in the right upper lobe."
    for at, said in ((1, f"{EFFUSION} {mass}"), (0, f"{mass} {REPORT[:28]}")):
        old = EFFUSION if at else REPORT[:28]
        tell([rewrite(REPORT.replace(old, said), change(at, "", mass))])
        (pair,) = write("a").pairs
        assert pair.candidate == REPORT.replace(old, said)


def test_a_sentence_of_two_findings_is_no_single_error(tell):
    """Monotonicity is measured by the number of errors."""
    for two in (
        "There is a right upper lobe mass and a rib fracture.",
        "There is a right upper lobe mass. There is a rib fracture.",
    ):
        tell(
            [rewrite(REPORT.replace(EFFUSION, f"{EFFUSION} {two}"), change(1, "", two))]
        )
        assert [one.reason for one in write("a").left_out] == [READ_OTHERWISE]
    both = "There is a small left pleural effusion and a right upper lobe mass."
    report = f"The heart is normal in size. {both} No pneumothorax."
    tell([rewrite(report.replace(f"{both} ", ""), change(1, both, ""))])
    left_out = write("b", report=report).left_out
    assert [one.reason for one in left_out] == [READ_OTHERWISE]


def test_quotes_and_white_space_may_be_written_otherwise(tell):
    """The candidate is made of the report, by the changes alone."""
    report = 'Patient\'s heart is "normal".\nThere is a small left pleural effusion.'
    said = (
        "Patient\N{RIGHT SINGLE QUOTATION MARK}s heart is "
        "\N{LEFT DOUBLE QUOTATION MARK}normal\N{RIGHT DOUBLE QUOTATION MARK}. "
        "There is a large left pleural effusion."
    )
    tell([rewrite(said, change(1, "small", "large"))])
    (pair,) = write(report=report).pairs
    assert pair.candidate == report.replace("small", "large")


def test_a_report_with_fewer_sentences_is_not_asked_about(tell):
    """One error a sentence: there is no room."""
    asked = tell([""])
    found = write(number=9)
    assert [one.reason for one in found.left_out] == [FEW_SENTENCES]
    assert not asked


def test_answers_are_kept_and_removed_on_request(tell, workspace):
    """The second time nothing is asked, whatever became of each answer."""
    asked = tell(["nothing", rewrite(WITH_LARGE, LARGE)])
    first = write(place=workspace)
    assert (len(asked), first.model.asked) == (3, 3)
    again = write(place=workspace)
    assert again.pairs == first.pairs and again.model.asked == 0
    assert again.model.accepted == first.model.accepted
    assert len(asked) == 3
    assert prune_completions(workspace).answers == 3


def test_at_most_so_many_are_asked_for():
    """Drawn by the seed, alike whatever the order of the cases is."""
    cases = [f"c{n}" for n in range(20)]
    wanted = list_wanted(cases, ["omission"], (1, 2), most=5, seed=0)
    assert Counter(one.number for one in wanted) == {1: 5, 2: 5}
    other = list_wanted(cases[::-1], ["omission"], (1, 2), most=5, seed=0)
    assert set(other) == set(wanted)
    assert set(list_wanted(cases, ["omission"], (1, 2), most=5, seed=1)) != set(wanted)


def test_rules_write_nothing():
    """They are no language model, and say what is."""
    with pytest.raises(EngineError, match="not a language model"):
        ErrorWriter.open(None, ["severity"], "rules")
    with pytest.raises(ValueError, match="without a model"):
        inject_by_model({}, None, InjectionOptions(negated=True))


def test_the_prompts_that_ship_are_clean():
    """Each asks for one kind, in the contract that is read."""
    place = WorkspacePaths(bundled())
    for kind, name in {**PROMPTS, "plausible": VALIDATOR}.items():
        version = read_version(place, f"{name}@v1")
        assert version.labels == (kind,)
        assert not lint_prompt(place, version)
        assert set(get_contract(version.contract).inputs) <= set(version.inputs)


def reports(tmp_path, count=6):
    """Write a file of reports."""
    rows = [
        (
            f"r{n}",
            f"There is a {n + 2} mm nodule in the right lung. Small left pleural "
            "effusion. No pneumothorax.",
        )
        for n in range(count)
    ]
    return table(tmp_path / "reports.csv", ("id", "text"), rows)


def test_the_command_writes_the_same_files(tell, workspace, tmp_path):
    """And says by whom, by which prompts, and what was refused."""
    tell(leave_out)
    out = tmp_path / "out"
    done = call(
        workspace,
        *("inject", reports(tmp_path), "--errors", "b", "-k", "1,2,9"),
        *("--engine", "told:x", "--region", "chest", "--out", out),
    )
    assert done.exit_code == 0, done.output
    assert "12 answers for 12 variants, at most 5 each" in done.output
    assert "written by told:x, looked at by told:x" in done.output
    with (out / "pairs.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 12 and {one["kind"] for one in rows} == {"omission"}
    about = json.loads((out / "inject.json").read_text())
    model = about["model"]
    assert model["engine"] == model["validator"] == "told:x"
    assert set(model["prompts"]) == {"inject_b@v1", "validate@v1"}
    assert model["attempts"] == {"omission": 12} and model["accepted_at"] == {"1": 12}
    assert about["counts"] == {"omission": {"1": 6, "2": 6, "9": 0}}
    assert about["left_out"] == [
        {"kind": "omission", "number": 9, "reason": FEW_SENTENCES, "variants": 6}
    ]
    assert "nodule" not in json.dumps(about)
    held = call(workspace, "run", "inject_b", "--cohort", "x")
    assert held.exit_code != 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--validator", "told:x"), "are for --engine"),
        (("--region", "chest"), "are for --engine"),
        (("--engine", "told:x", "--negated"), "without --engine"),
        (("--engine", "rules"), "not a language model"),
        (("--engine", "nothing:x"), "nothing"),
        (("--engine", "openai:m@http://192.0.2.1/v1"), "192.0.2.1"),
    ],
)
def test_what_cannot_be_asked_is_refused(workspace, tmp_path, more, message):
    """Before anything leaves this machine; no folder is made."""
    out = tmp_path / "out"
    done = call(workspace, "inject", reports(tmp_path), *more, "--out", out)
    assert done.exit_code != 0
    assert message in done.output + str(done.exception)
    assert not out.exists()


def test_a_prompt_of_another_contract_is_refused(workspace, monkeypatch):
    """Its answers would say something else."""
    monkeypatch.setitem(PROMPTS, "severity", "extractor")
    with pytest.raises(DataError, match="is answered in"):
        ErrorWriter.open(workspace, ["severity"], "rules")


def serve(log, pause, port=0):
    """Start the server; return it and its port, which names the engine."""
    server = subprocess.Popen(
        [sys.executable, str(SERVER), str(log), str(pause), str(port)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    return server, server.stdout.readline().strip()


def start(workspace, source, port, out):
    """Begin to inject in a process of its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "loop", "inject", str(source), "--errors", "b"),
            *("-k", "1,2", "--out", str(out)),
            *("--engine", f"openai:tiny@http://127.0.0.1:{port}/v1"),
            *("--workspace", str(workspace.root), "--json"),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("pause", [30, 80, 100])
def test_what_is_killed_goes_on_and_asks_nothing_twice(workspace, tmp_path, pause):
    """While errors are written, between, and while they are looked at."""
    log, source, out = tmp_path / "log", reports(tmp_path, 40), tmp_path / "out"
    server, port = serve(log, pause)
    try:
        process = start(workspace, source, port, out)
        deadline = time.monotonic() + 60
        while not log.exists() or len(log.read_text().split()) <= pause:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        # What was answered is written within a moment.
        time.sleep(0.5)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        flown = len(log.read_text().split())
    finally:
        server.kill()
        server.communicate()
    assert not out.exists()
    server, port = serve(log, -1, port)
    try:
        done, _ = start(workspace, source, port, out).communicate(timeout=90)
        about = json.loads(done)
    finally:
        server.kill()
        server.communicate()
    assert about["pairs"] == 80 and not about["left_out"]
    times = Counter(log.read_text().split())
    # 80 variants, and 80 looks; again only what had no answer when it was killed.
    assert len(times) == 160
    assert sum(times.values()) - 160 == flown - pause
    assert set(times.values()) <= {1, 2}


def test_wanted_variants_stand_in_the_order_of_the_cases():
    """Then of the kinds, then of the numbers; each drawn by itself."""
    cases, kinds = ["z", "a"], ["severity", "rewrite"]
    every = [
        (case, kind, number) for case in cases for kind in kinds for number in (1, 2)
    ]
    assert list_wanted(cases, kinds, (2, 1), most=None, seed=0) == every
    assert list_wanted(cases, kinds, (1, 2), most=2, seed=0) == every
    chance = Chance("7")
    names = [f"c{number}" for number in range(12)]
    drawn = {
        (kind, number): sorted(
            names, key=lambda one: chance.rank(f"{one}-{kind}{number}")
        )[:3]
        for kind in kinds
        for number in (1, 2)
    }
    assert list_wanted(iter(names), kinds, (1, 2), most=3, seed=7) == [
        (case, kind, number)
        for case in names
        for kind in kinds
        for number in (1, 2)
        if case in drawn[kind, number]
    ]


def test_variants_are_named_as_those_that_no_model_wrote():
    """By the letter of an error, or the kind of rewriting."""
    made = [
        WrittenVariant(Wanted("a-b", "severity", 2), "x", (), 1),
        WrittenVariant(Wanted("c", REWRITING, 1), "y", (), 3),
    ]
    assert list(name_variants(made)) == [
        ("a-b-d2", made[0]),
        (f"c-{REWRITING}1", made[1]),
    ]


def test_the_validator_is_shown_each_change_in_a_line(tell):
    """What is only added became of nothing, and what goes became nothing."""
    added = "There is a large right pneumothorax."
    report = REPORT.replace(EFFUSION, f"{EFFUSION} {added}")
    asked = tell([rewrite(report, change(1, "", added))])
    write(kind="a")
    shown = [text for looking, text in asked if looking]
    assert f'1. nothing became "{added}"' in shown[0]
    gone = "Bony structures are intact."
    asked = tell([rewrite(REPORT.replace(f" {EFFUSION}", ""), change(1, EFFUSION, ""))])
    write(kind="b", report=REPORT)
    shown = [text for looking, text in asked if looking]
    assert f'1. "{EFFUSION}" became nothing' in shown[0] and gone in shown[0]
