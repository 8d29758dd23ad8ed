"""One traced case, put together by hand: a model's two answers, or the rules' words."""

from loop.core.records import (
    Completion,
    Entry,
    Field,
    Item,
    Message,
    Outcome,
    Reading,
    Span,
    Status,
    Value,
)
from loop.engines.rules.engine import RulesExplanation, RulesMention
from loop.run.spec import RunSpec
from loop.run.store import RunRecord
from loop.run.trace import CallAnswer, CallTrace, Trace

TEXT = "No effusion. Fluid\nat the base."

SPEC = {
    "prompt": "tiny@v1",
    "prompt_digest": "ab" * 32,
    "contract": "label_values/1",
    "cohort": "dev",
    "cohort_digest": "cd" * 32,
    "engine": "openai:m",
    "parameters": {"temperature": 0.0, "seed": 7},
}


def run_record(**changes):
    """Return the record of a finished run."""
    return RunRecord(
        number=1,
        id="20260301-1",
        created="2026-03-01T12:00:00Z",
        finished="2026-03-01T12:00:09Z",
        spec=RunSpec(**SPEC | changes),
        counts={"items": 3},
    )


def mention(label, start, end, value, *, decides, cue=None, scope=None):
    """Return what the rules found of a label."""
    return RulesMention(
        *(label, "term", TEXT[start:end].split()[0], Span(start, end), value),
        *("a cue" if cue else "no cue", cue, scope, decides),
    )


RULES = RulesExplanation(
    mentions=(
        mention(
            *("effusion", 3, 11, Value.ABSENT),
            decides=False,
            cue=Span(0, 2),
            scope=Span(0, 12),
        ),
        mention("effusion", 13, 30, Value.PRESENT, decides=True),
        mention("edema", 13, 18, None, decides=False),
    ),
    implied={"opacity": "effusion"},
    disputed=("effusion", "edema"),
)

UNREADABLE = CallAnswer(
    completion=Completion(
        text="no JSON", latency_s=1.5, prompt_tokens=12_345, completion_tokens=6
    ),
    thinking="",
    reading=Reading(None, problem="no JSON object"),
    cost=None,
)
READ = CallAnswer(
    completion=Completion(
        text='{"effusion": "present"}',
        finish_reason="length",
        latency_s=0.25,
        prompt_tokens=100,
        cached_tokens=64,
        completion_tokens=9,
    ),
    thinking="first a thought",
    reading=Reading({}),
    cost=0.0125,
)


def call_trace(**changes):
    """Return one call with two answers, of which the first was unreadable."""
    return CallTrace(
        **{
            "call": "joint",
            "shared": (Message("system", "Read."), Message("user", "Case: ")),
            "own": TEXT,
            "schema": {"type": "object"},
            "as_sent": True,
            "attempts": (UNREADABLE, READ),
            "failure": "",
            "rules": None,
            **changes,
        }
    )


FIELDS = {
    "edema": Field("absent"),
    "effusion": Field("present", (Span(13, 18), Span(19, 30))),
    "fracture": Field("absent"),
    "errors": Field(
        2,
        entries=(
            Entry("fluid was missed", spans=(Span(13, 18, "reference"),)),
            Entry("another"),
        ),
    ),
}


def trace_of(calls=None, *, spec=None, **changes):
    """Return a trace of case c1 with everything that a trace can tell."""
    outcome = Outcome(
        item_id="c1",
        status=Status.ANSWERED,
        fields=FIELDS,
        repairs=("code fence removed",),
        problem="",
    )
    return Trace(
        **{
            "run": run_record(**spec or {}),
            "item": Item(id="c1", variables={"text": TEXT}),
            "outcome": outcome,
            "identity": {"model": "m", "server": {"build": "ef" * 32, "slots": 4}},
            "calls": (call_trace(),) if calls is None else tuple(calls),
            "currency": "USD",
            "remarks": ("the guide was changed since",),
            **changes,
        }
    )
