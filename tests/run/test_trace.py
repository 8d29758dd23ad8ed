"""A trace: what was asked about one case, what came back, and what was made of it."""

import json
from contextlib import ExitStack
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.records import Completion, Entry, Field, Outcome, Span, Status
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.version import CallPlan
from loop.run import trace as module
from loop.run.asking import ChosenEngine, HeldEngine
from loop.run.execute import next_key
from loop.run.manifest import find_run
from loop.run.prune import prune_completions
from loop.run.store import open_store
from loop.run.task import prepare_run, run_prompt, run_task
from loop.run.trace import CallAnswer, read_trace, read_unanswered, trace_data
from loop.workspace import Workspace

HOSTILE = "\x1b[31m<script>alert(1)</script>\u202e\u200f" + " " * 1_000_000
TEXTS = {
    "clear": "Lungs are clear. No pleural effusion.",
    "half": "The server counts what it read, and not what it wrote.",
    "twice": "Small left pleural effusion, first unreadable.",
    "never": "A case that is never answered in a readable way.",
    "dead": "The server fails on this one.",
    "long": "Large right pleural effusion. " + "The heart is normal. " * 47_000,
}


class Scripted:
    """Answers each text from a list, in turn; the last answer stays."""

    retry_unreadable = 2

    def __init__(self, script):
        """Take text ids to answers."""
        self.script, self.asked = script, {}

    def identity(self):
        """Return a name and a fingerprint."""
        return {"engine": "scripted", "server": {"fingerprint": "fp-7"}}

    def complete(self, prompts):
        """Yield an answer for each prompt."""
        for index, prompt in enumerate(prompts):
            name, call = prompt.item.id, prompt.frame.call
            turn = self.asked[name, call] = self.asked.get((name, call), -1) + 1
            plain = json.dumps(dict.fromkeys(prompt.frame.fields, "absent"))
            answers = self.script.get((name, call), self.script.get(name, [plain]))
            answer = answers[min(turn, len(answers) - 1)] or plain
            if not isinstance(answer, Completion):
                answer = Completion(answer, "stop", "", 0.25, 1000, 50, 900)
            yield index, answer


SCRIPT = {
    "twice": [HOSTILE, Completion("", "stop", "", 0.5, 1000, 60, 0), None],
    "half": [Completion('{"edema": "absent"}', "stop", "", 0.5, 1000, None)],
    "never": ["<think>Let me see.</think>I cannot tell."],
    "dead": [Completion("", "error", "the server refused it: 500")],
    "clear": [Completion('{"edema": "absent"}', thinking="Nothing is wrong here.")],
}


@pytest.fixture
def cohort(workspace, tmp_path):
    """Return the name of a small dev cohort, imported."""

    def make(name="small", role="dev"):
        source = tmp_path / f"{name}.jsonl"
        rows = [{"case_id": one, "text": text} for one, text in TEXTS.items()]
        source.write_text("\n".join(map(json.dumps, rows)) + "\n")
        options = ImportOptions(name=name, role=role, source="test", licence="none")
        import_cohort(workspace, source, options, actor=Actor(name="t"))
        return name

    return make


def ask(workspace, cohort, script=SCRIPT, plan=CallPlan.JOINT):
    """Run the extractor past a scripted engine and return the run's id."""
    version = replace(read_version(workspace, "extractor"), plan=plan)
    parameters = {"temperature": 0.0, "max_tokens": 2048, "seed": 0}
    name = "openai:m@http://127.0.0.1:1/v1"
    chosen = ChosenEngine(name, Scripted(script), parameters)
    with ExitStack() as stack:
        task = prepare_run(workspace, version, cohort, engine=HeldEngine(chosen, stack))
        return run_task(workspace, task).run_id


def show(workspace, *words):
    """Return what ``ranloop show`` prints."""
    given = ["show", *words, "--workspace", str(workspace.root)]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_raw_shows_the_messages_as_they_were_sent(workspace, cohort):
    """Both of them whole, and the schema; without it how long they are."""
    run = ask(workspace, cohort())
    (call,) = read_trace(workspace, run, "twice").calls
    sent = call.messages()
    raw, short = (show(workspace, run, "twice", *more) for more in (["--raw"], []))
    for message in sent:
        assert f"  {message.role}:\n" in raw
        assert {*message.content.split()} <= {*raw.split()}
    assert "  schema:\n" in raw
    assert "the same for every case:" in short
    assert not {*sent[0].content.split()} <= {*short.split()}


def test_every_attempt_is_there_with_its_measures(workspace, cohort):
    """Two unreadable answers before the one that counts, in order, and what it cost."""
    (workspace.private / "config.yaml").write_text(
        "prices: {m: {input: 2.0, output: 8.0, cached_input: 0.5}}\n"
    )
    trace = read_trace(workspace, ask(workspace, cohort()), "twice")
    (call,) = trace.calls
    assert call.as_sent and trace.remarks == ()
    problems = [one.reading.problem for one in call.attempts]
    assert problems == [
        "the answer is longer than 400,000 chars",
        "the answer is empty",
        "",
    ]
    assert [one.completion.cached_tokens for one in call.attempts] == [900, 0, 900]
    costs = [one.cost for one in call.attempts]
    assert costs == pytest.approx([0.00105, 0.00248, 0.00105])
    assert trace.outcome.status is Status.ANSWERED and trace.currency == "USD"
    assert trace.identity["server"] == {"fingerprint": "fp-7"}


def test_half_a_count_of_tokens_is_no_price(workspace, cohort):
    """A server that does not count its answer did not give it for nothing."""
    (workspace.private / "config.yaml").write_text(
        "prices: {m: {input: 2.0, output: 8.0}}\n"
    )
    (call,) = read_trace(workspace, ask(workspace, cohort()), "half").calls
    assert {one.cost for one in call.attempts} == {None}


def test_the_messages_are_proved_by_the_key_of_the_answer(workspace, cohort):
    """The shared part and the case's own part are what the engine was given."""
    run = ask(workspace, cohort())
    one, other = (read_trace(workspace, run, case) for case in ("twice", "never"))
    assert one.calls[0].shared == other.calls[0].shared
    assert TEXTS["twice"] in one.calls[0].own
    assert TEXTS["twice"] not in one.calls[0].shared[-1].content
    assert one.calls[0].messages()[-1].content.endswith(one.calls[0].own)


def test_messages_that_were_not_sent_are_said_to_be_none(workspace, cohort):
    """A prompt version that was edited since cannot pass for what was asked."""
    run = ask(workspace, cohort())
    version = read_version(workspace, "extractor")
    path = workspace.prompts / "extractor" / f"v{version.number}" / "system.jinja"
    path.chmod(0o644)
    path.write_text(path.read_text() + "Also be kind.\n")
    trace = read_trace(workspace, run, "twice")
    assert not any(one.as_sent for one in trace.calls)
    assert trace.remarks
    # What came back is there all the same.
    (last,) = [one.attempts[-1] for one in trace.calls]
    assert last.completion.text.startswith("{")
    assert "not provably" in show(workspace, run, "twice")


def test_thinking_is_kept_apart_whoever_kept_it_apart(workspace, cohort):
    """In the text between tags, or in a field of its own that was dropped before."""
    run = ask(workspace, cohort())
    (tagged,) = read_trace(workspace, run, "never").calls
    assert [one.thinking for one in tagged.attempts] == ["Let me see."] * 3
    (own,) = read_trace(workspace, run, "clear").calls
    assert own.attempts[-1].thinking == "Nothing is wrong here."


def test_a_failed_case_says_why_and_shows_no_answer(workspace, cohort):
    """Nothing came back, so nothing is stored."""
    trace = read_trace(workspace, ask(workspace, cohort()), "dead")
    (call,) = trace.calls
    assert (call.attempts, call.failure) == ((), "the server refused it: 500")
    assert call.as_sent and trace.outcome.status is Status.ENGINE_FAILED


def test_cases_without_an_answer_are_listed_by_cause(workspace, cohort):
    """Unreadable and failed ones, with ids, and no text."""
    run = ask(workspace, cohort())
    found = read_unanswered(workspace, run)
    told = {one.problem: (one.status, one.cases) for one in found.causes}
    assert told["the server refused it: 500"] == (Status.ENGINE_FAILED, ("dead",))
    unreadable = [one.cases for one in found.causes if one.status is Status.UNPARSED]
    assert ("never",) in unreadable
    shown = show(workspace, run)
    assert "engine_failed: the server refused it: 500" in shown and "never" in shown
    assert not any(text[:20] in shown for text in TEXTS.values())
    as_data = json.loads(show(workspace, run, "--json"))
    assert (
        as_data["cases"]
        == found.cases
        == sum(one["cases"] for one in as_data["causes"])
    )


def test_one_call_a_label(workspace, cohort):
    """Each call has its own answers; one of them failed, and says so alone."""
    script = {
        ("clear", "edema"): [Completion("", "error", "gone")],
        ("clear", "fracture"): ["what?", None],
    }
    version = replace(read_version(workspace, "extractor"), plan=CallPlan.PER_LABEL)
    from loop.prompts.catalog import latest_version, renumbered, write_version

    number = latest_version(workspace, "extractor").number + 1
    write_version(workspace, renumbered(version, number))
    run = ask(workspace, cohort(), script, plan=CallPlan.PER_LABEL)
    trace = read_trace(workspace, run, "clear")
    calls = {one.call: one for one in trace.calls}
    assert len(calls) == len(version.labels) > 15
    assert all(one.as_sent for one in trace.calls) and trace.remarks == ()
    assert "gone" in calls["edema"].failure and not calls["edema"].attempts
    assert len(calls["fracture"].attempts) == 2
    assert len(calls["pneumonia"].attempts) == 1 and not calls["pneumonia"].failure
    alone = read_trace(workspace, run, "clear", label="fracture")
    assert [one.call for one in alone.calls] == ["fracture"] and alone.remarks == ()
    with pytest.raises(DataError, match="asks nothing about"):
        read_trace(workspace, run, "clear", label="nothing")


def test_answers_that_were_removed_are_said_to_be(workspace, cohort):
    """`clean` lets go of earlier attempts; the answer that counts stays."""
    run = ask(workspace, cohort())
    prune_completions(workspace)
    (call,) = read_trace(workspace, run, "twice").calls
    assert [one.completion is None for one in call.attempts] == [True, True, False]
    assert "`ranloop clean` removed it" in show(workspace, run, "twice")


def test_a_replay_shows_whose_answers_it_gives(workspace, cohort):
    """The key of a replay is its own, and the engine behind it is named."""
    name = cohort()
    first = run_prompt(workspace, "extractor", name).run_id
    again = run_prompt(workspace, "extractor", name, engine=f"replay:{first}").run_id
    trace = read_trace(workspace, again, "clear")
    assert trace.identity["source"]["engine"] == "rules"
    assert trace.calls[0].as_sent and trace.calls[0].rules is not None
    assert "source engine rules" in show(workspace, again, "clear")


def test_a_holdout_is_refused_to_everybody(workspace, cohort, monkeypatch):
    """Also the list of its unanswered cases, and as the role stands in the ledger."""
    run = ask(workspace, cohort())
    path = workspace.cohorts / "small" / "cohort.yaml"
    path.write_text(path.read_text().replace("role: dev", "role: holdout"))
    for read in (
        lambda: read_trace(workspace, run, "clear"),
        lambda: read_unanswered(workspace, run),
    ):
        with pytest.raises(DataError):
            read()


def test_a_case_that_was_not_asked_is_refused(workspace, cohort):
    """The message holds no text that was given as an id."""
    run = ask(workspace, cohort())
    with pytest.raises(DataError, match="not shown") as caught:
        read_trace(workspace, run, "Small effusion of Mrs X")
    assert "Mrs X" not in str(caught.value)


def test_a_hostile_answer_is_inert_on_a_terminal(workspace, cohort):
    """ANSI and bidirectional marks are spelled out; a megabyte of blanks is cut."""
    shown = show(workspace, ask(workspace, cohort()), "twice")
    assert "\x1b" not in shown and "\u202e" not in shown and "\u200f" not in shown
    assert "\\x1b[31m" in shown and "\\u200f" in shown
    assert "(1,000,000" in shown
    assert len(shown) < 20_000
    assert max(map(len, shown.splitlines())) <= 80


def test_a_long_case_shows_its_evidence_and_says_what_is_left_out(workspace, cohort):
    """A megabyte of text, and the twenty characters that decide."""
    run = run_prompt(workspace, "extractor", cohort()).run_id
    shown = show(workspace, run, "long", "--label", "pleural_effusion")
    assert "[pleural effusion]" in shown.partition("case text")[2]
    assert "characters not shown)" in shown and len(shown) < 20_000
    whole = json.loads(show(workspace, run, "long", "--json"))
    assert whole["text"] == TEXTS["long"].strip()


def test_data_of_a_trace_is_json(workspace, cohort):
    """Also of `rules`, whose explanation is in it."""
    run = run_prompt(workspace, "extractor", cohort()).run_id
    data = json.loads(json.dumps(trace_data(read_trace(workspace, run, "clear"))))
    (call,) = data["calls"]
    one = next(m for m in call["rules"]["mentions"] if m["label"] == "pleural_effusion")
    assert one["value"] == "absent" and one["decides"]
    start, end = one["cue"]
    assert data["text"][start:end] == "No"


def test_a_trace_reads_one_case_and_does_not_walk_the_run(workspace, cohort):
    """Its outcome is found by an index, whatever the length of the run."""
    run = run_prompt(workspace, "extractor", cohort()).run_id
    asked = []
    with open_store(workspace) as store:
        read = store.read

        def listen(query, values=()):
            asked.append((query, values))
            return read(query, values)

        store.read = listen
        read_trace(workspace, run, "clear", store=store)
        plans = {
            row[3]
            for query, values in asked
            for row in read(f"EXPLAIN QUERY PLAN {query}", values)
            if "outcomes" in query
        }
    assert plans == {
        "SEARCH outcomes USING INDEX outcomes_by_item (run=? AND item_id=?)"
    }


def test_a_trace_in_a_notebook_shows_no_text_unless_asked(workspace, cohort):
    """What is put into a notebook travels with it."""
    run = ask(workspace, cohort())
    found = Workspace(workspace.root).trace(run, "never")
    shown = found._repr_html_() + repr(found)
    assert "unparsed" in shown and len(found.table) == 3
    assert TEXTS["never"] not in shown and "see" not in shown
    assert found.data["text"] == TEXTS["never"]


def change(workspace, words, *values):
    """Change a table of the store as something other than ranloop would."""
    with open_store(workspace) as store, store.writing() as connection:
        connection.execute(words, values)


def test_the_chain_of_answers_leads_from_the_first_to_the_last():
    """A hundred of them are looked for; an answer to another question is in none."""
    keys = [b"k" * 32]
    while len(keys) < 101:
        keys.append(next_key(keys[-1]))
    for number in (1, 2, 100):
        assert module._chain(keys[0], keys[number - 1]) == keys[:number]
    assert module._chain(keys[0], keys[100]) == []
    assert module._chain(keys[1], keys[0]) == []


@pytest.mark.parametrize(
    ("status", "call", "said"),
    [
        (Status.UNPARSED, "", ""),
        (Status.ANSWERED, "a", ""),
        (Status.ENGINE_FAILED, "", "a: gone; b: no; a: twice; ab: x"),
        (Status.ENGINE_FAILED, "a", "a: gone; a: twice"),
        (Status.ENGINE_FAILED, "b", "b: no"),
        (Status.ENGINE_FAILED, "c", ""),
    ],
)
def test_a_failure_is_told_by_its_call(status, call, said):
    """Where there is one call, all of it; what could not be read is no failure."""
    problem = "a: gone; b: no; a: twice; ab: x"
    outcome = Outcome(item_id="c", status=status, problem=problem)
    assert module._failure(outcome, call) == said


def test_a_field_is_told_with_all_that_it_lists():
    """A judge's; one of a label has no entries, and says nothing of them."""
    listed = Entry("no edema", "omission", "significant", (Span(4, 9, "reference"),))
    plain = Field("present", (Span(0, 5), Span(7, 9)))
    assert module._field(plain) == {"value": "present", "spans": [[0, 5], [7, 9]]}
    assert module._field(Field(1, (Span(1, 2),), (listed,))) == {
        "value": 1,
        "spans": [[1, 2]],
        "entries": [
            {
                "words": "no edema",
                "category": "omission",
                "weight": "significant",
                "spans": [[4, 9, "reference"]],
            }
        ],
    }


def test_a_trace_is_told_whole(workspace, cohort):
    """Every part under its name, nothing cut; twice asked, both answers."""
    (workspace.private / "config.yaml").write_text(
        "prices: {m: {input: 2.0, output: 8.0, currency: EUR}}\n"
    )
    first = Completion("perhaps", "stop", "", 0.5, 1000, 60, 0)
    labels = read_version(workspace, "extractor").labels
    said = json.dumps({**dict.fromkeys(labels, "absent"), "edema": "present"})
    second = Completion(said, "stop", "", 0.25, 1000, 50, None)
    run = ask(workspace, cohort(), {"clear": [first, second]})
    found = read_trace(workspace, run, "clear")
    (call,) = found.calls
    version = read_version(workspace, "extractor")
    contract = get_contract(version.contract)
    reads = f"{contract.name}/{contract.version}"
    problem = contract.read("perhaps", version.labels, found.item).problem
    told = contract.read(second.text, version.labels, found.item)
    assert trace_data(found) == {
        "run": run,
        "case": "clear",
        "language": "en",
        "text": TEXTS["clear"],
        "status": found.outcome.status.value,
        "problem": found.outcome.problem,
        "fields": {
            name: {"value": one.value, "spans": []}
            for name, one in (told.fields or {}).items()
        },
        "repairs": list(told.repairs),
        "prompt": version.ref,
        "cohort": "small",
        "draw": 0,
        "engine": "openai:m@http://127.0.0.1:1/v1",
        "engine_identity": {"engine": "scripted", "server": {"fingerprint": "fp-7"}},
        "parameters": {"temperature": 0.0, "max_tokens": 2048, "seed": 0},
        "contract": reads,
        "currency": "EUR",
        "remarks": [],
        "calls": [
            {
                "call": "joint",
                "as_sent": True,
                "messages": [
                    {"role": one.role, "content": one.content}
                    for one in call.messages()
                ],
                "schema": dict(contract.schema(version.labels)),
                "failure": "",
                "attempts": [
                    {
                        "text": "perhaps",
                        "finish_reason": "stop",
                        "latency_s": 0.5,
                        "prompt_tokens": 1000,
                        "completion_tokens": 60,
                        "cached_tokens": 0,
                        "thinking": "",
                        "stored": True,
                        "cost": 0.00248,
                        "problem": problem,
                        "repairs": [],
                        "fields": None,
                    },
                    {
                        "text": second.text,
                        "finish_reason": "stop",
                        "latency_s": 0.25,
                        "prompt_tokens": 1000,
                        "completion_tokens": 50,
                        "cached_tokens": None,
                        "thinking": "",
                        "stored": True,
                        "cost": 0.0024,
                        "problem": told.problem,
                        "repairs": list(told.repairs),
                        "fields": told.fields
                        and {
                            name: {"value": one.value, "spans": []}
                            for name, one in told.fields.items()
                        },
                    },
                ],
                "rules": None,
            }
        ],
    }
    assert trace_data(found)["fields"]["edema"]["value"] == "present"


def test_an_answer_that_is_gone_is_told_as_gone():
    """No measure of it is known."""
    reading = module.Reading(None, (), "not stored any more")
    assert module._attempt_data(CallAnswer(None, "", reading, None)) == {
        "stored": False,
        "thinking": "",
        "cost": None,
        "problem": "not stored any more",
        "repairs": [],
        "fields": None,
    }


def test_a_run_whose_prompt_is_gone_still_shows_what_came_back(workspace, cohort):
    """Neither messages nor values; a failure says why, and it is said why so little."""
    run = ask(workspace, cohort())
    version = read_version(workspace, "extractor")
    folder = workspace.prompts / "extractor" / f"v{version.number}"
    folder.rename(workspace.root / "elsewhere")
    found = read_trace(workspace, run, "clear")
    (remark,) = found.remarks
    assert remark.startswith(
        f"{version.ref} cannot be read any more, so the messages are not shown: "
    )
    (call,) = found.calls
    assert (call.call, call.shared, call.own) == ("1", (("", ""),), "")
    assert (call.schema, call.as_sent, call.failure) == ({}, False, "")
    assert call.rules is None
    (attempt,) = call.attempts
    assert attempt.completion.text == '{"edema": "absent"}'
    assert attempt.thinking == "Nothing is wrong here."
    assert attempt.reading == (None, (), "not read again: its prompt is gone")
    assert attempt.cost is None
    (dead,) = read_trace(workspace, run, "dead").calls
    assert (dead.attempts, dead.failure) == ((), "the server refused it: 500")


def test_each_thing_that_changed_since_the_run_is_said(workspace, cohort):
    """The version and what reads it, in whole sentences and in that order."""
    run = ask(workspace, cohort())
    version = read_version(workspace, "extractor")
    contract = get_contract(version.contract)
    reads = f"{contract.name}/{contract.version}"
    change(
        workspace,
        "UPDATE runs SET spec = json_set(spec, '$.contract', 'label_values/0')",
    )
    other = (
        f"the answers were read by label_values/0; below is what {reads} reads in them."
    )
    assert read_trace(workspace, run, "clear").remarks == (other,)
    change(
        workspace,
        "UPDATE runs SET spec = json_set(spec, '$.prompt_digest', 'another')",
    )
    edited = (
        f"{version.ref} was changed since the run: the messages below are those of "
        "today, not those that were sent."
    )
    assert read_trace(workspace, run, "clear").remarks == (edited, other)
    change(workspace, "UPDATE runs SET spec = json_set(spec, '$.parameters.seed', 9)")
    assert read_trace(workspace, run, "clear").remarks == (
        edited,
        other,
        "what was answered was not asked with the messages below (joint): the key of "
        "the stored answer is another one. The prompt, the case or a setting was "
        "changed since.",
    )


def test_an_outcome_that_its_answer_does_not_say_is_said(workspace, cohort):
    """Somebody edited it, or another reader read it; the answer itself is shown."""
    run = ask(workspace, cohort(), {})
    assert read_trace(workspace, run, "clear").remarks == ()
    change(
        workspace,
        "UPDATE outcomes SET fields = json_set(fields, '$.edema', 'present') "
        "WHERE item_id = 'clear'",
    )
    assert read_trace(workspace, run, "clear").remarks == (
        "the stored outcome is not what the reader makes of the answer today: another "
        "version of it read the run.",
    )
    assert read_trace(workspace, run, "long").remarks == ()


def test_a_case_with_more_answers_than_calls_says_so(workspace, cohort):
    """As after a change of the call plan; what has no place is left out."""
    run = ask(workspace, cohort(), {})
    change(workspace, "UPDATE outcomes SET keys = CAST(keys || keys AS BLOB)")
    found = read_trace(workspace, run, "clear")
    assert found.remarks == (
        "the run made 2 calls about the case, and its prompt makes 1 today; what has "
        "no answer is shown without.",
    )
    assert [one.call for one in found.calls] == ["joint"]


def test_rules_that_changed_since_explain_what_they_make_of_it_today(workspace, cohort):
    """That is said; with the cues of then there is nothing to say."""
    run = run_prompt(workspace, "extractor", cohort()).run_id
    assert read_trace(workspace, run, "clear").remarks == ()
    path = workspace.labels / "cues" / "en.yaml"
    path.chmod(0o644)
    text = path.read_text("utf-8")
    path.write_text(text.replace("be: [is, are,", "be: [is, zebra, are,"), "utf-8")
    found = read_trace(workspace, run, "clear")
    assert found.remarks[0] == (
        "`rules` or its cues changed since the run: the explanation is what they make "
        "of the case today."
    )
    assert found.calls[0].rules is not None


def test_causes_are_listed_by_how_many_cases_they_have(workspace, cohort):
    """Then by their words; the cases of each in the order of the cohort."""
    script = {
        "clear": [Completion("", "error", "zebra")],
        "half": [Completion("", "error", "gone")],
        "twice": [Completion("", "error", "timeout")],
        "dead": [Completion("", "error", "timeout")],
        "never": ["what?"],
    }
    run = ask(workspace, cohort(), script)
    with open_store(workspace) as store:
        found = read_unanswered(workspace, run, store)
    unread = next(one.problem for one in found.causes if one.cases == ("never",))
    rest = sorted(
        [
            (unread, Status.UNPARSED, ("never",)),
            ("gone", Status.ENGINE_FAILED, ("half",)),
            ("zebra", Status.ENGINE_FAILED, ("clear",)),
        ]
    )
    assert [(one.problem, one.status, one.cases) for one in found.causes] == [
        ("timeout", Status.ENGINE_FAILED, ("twice", "dead")),
        *rest,
    ]
    assert (found.run.id, found.cases) == (run, 5)
    assert read_unanswered(workspace, run) == found


def test_a_call_that_failed_at_a_later_attempt_shows_the_earlier_ones(
    workspace, cohort
):
    """What came back before is there; what never came is no answer that was removed."""
    gone = Completion("", "error", "gone")
    run = ask(workspace, cohort(), {"clear": ["what?", gone], "half": [gone]})
    (call,) = read_trace(workspace, run, "clear").calls
    assert [one.completion.text for one in call.attempts] == ["what?"]
    assert (call.failure, call.as_sent) == ("gone", True)
    # Where the messages are not those that were sent, all the same.
    change(workspace, "UPDATE runs SET spec = json_set(spec, '$.parameters.seed', 9)")
    (call,) = read_trace(workspace, run, "half").calls
    assert (call.attempts, call.failure, call.as_sent) == ((), "gone", False)


def test_an_answer_that_is_gone_is_held_against_nothing(workspace, cohort):
    """Not stored any more, it says nothing of the outcome that is."""
    run = ask(workspace, cohort(), {})
    change(workspace, "DELETE FROM completions")
    found = read_trace(workspace, run, "clear")
    (call,) = found.calls
    gone = "not stored any more: `ranloop clean` removed it"
    assert [*call.attempts] == [CallAnswer(None, "", (None, (), gone), None)]
    assert (call.failure, found.remarks) == ("", ())


def test_a_run_over_a_holdout_is_shown_to_nobody(workspace, cohort):
    """Its cases are as they were recorded, and that is why."""
    record = find_run(workspace, ask(workspace, cohort()))
    module.require_open(workspace, record)
    spec = replace(record.spec, cohort=cohort("held", "holdout"))
    with pytest.raises(DataError, match="cohort held is a holdout: what was asked abo"):
        module.require_open(workspace, replace(record, spec=spec))


def test_rules_explain_nothing_without_their_prompt(workspace, cohort):
    """Nor is it said that they changed."""
    run = run_prompt(workspace, "extractor", cohort()).run_id
    version = read_version(workspace, "extractor")
    folder = workspace.prompts / "extractor" / f"v{version.number}"
    folder.rename(workspace.root / "elsewhere")
    found = read_trace(workspace, run, "clear")
    (call,), (remark,) = found.calls, found.remarks
    assert call.rules is None and remark.startswith(f"{version.ref} cannot be read any")


@pytest.mark.parametrize(
    ("answer", "thinking", "problem"),
    [
        (
            Completion("<think>Hm.</think>{}", "length"),
            "Hm.",
            "the answer was cut off: raise max_tokens",
        ),
        (
            Completion("<think>Hm.</think>{}", "refusal", thinking="Own."),
            "Own.",
            "the model refused to answer",
        ),
    ],
)
def test_an_answer_that_the_server_ended_is_not_read(
    workspace, cohort, answer, thinking, problem
):
    """Whatever it looks like; what the model thought is told."""
    run = ask(workspace, cohort(), {"clear": [answer]})
    (call,) = read_trace(workspace, run, "clear").calls
    (attempt,) = call.attempts
    assert (attempt.thinking, attempt.reading) == (thinking, (None, (), problem))


def test_what_was_thought_before_a_readable_answer_is_told(workspace, cohort):
    """It was taken out of the answer, which is a repair of it."""
    plain = json.dumps(
        dict.fromkeys(read_version(workspace, "extractor").labels, "absent")
    )
    run = ask(workspace, cohort(), {"clear": [f"<think>Easy.</think>{plain}"]})
    found = read_trace(workspace, run, "clear")
    (attempt,) = found.calls[0].attempts
    assert (attempt.thinking, attempt.reading.repairs) == (
        "Easy.",
        ("thinking removed",),
    )
    assert found.outcome.status is Status.ANSWERED and found.remarks == ()
