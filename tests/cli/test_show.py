"""What the verb ``show`` prints of a case, line by line."""

import pytest

from loop.cli import show
from loop.core.records import Entry, Field, Item, Outcome, Reading, Span, Status
from loop.run.trace import CallAnswer, UnansweredCases, UnansweredCause
from tests.traces import (
    READ,
    RULES,
    TEXT,
    call_trace,
    run_record,
    trace_of,
)

HEAD = """\
case c1: answered

run           20260301-1, 2026-03-01T12:00:09Z
prompt        tiny@v1 (abababababab), label_values/1
engine        openai:m
  model       m
  server build efefefefefef
  server slots 4
asked with    temperature 0.0, seed 7
note          the guide was changed since

"""
CALL = """\
call joint, 4 labels: as it was sent
  the same for every case: system 5, user 6 characters; schema 18 (--raw shows
    them)
  the case's own part, 31 characters:
    | No effusion. Fluid
    | at the base.
  answer 1: stop, 1.500 s, prompt 12,345 tokens, output 6 tokens
    unreadable: no JSON object
    answered, 7 characters:
    | no JSON
  answer 2: length, 0.250 s, prompt 100 tokens (64 cached), output 9 tokens,
    0.012500 USD
    thinking, 15 characters:
    | first a thought
    answered, 23 characters:
    | {"effusion": "present"}

"""
FIELDS = """\
what the reader made of it
  effusion: present, [Fluid ... at the base] at 13-18 19-30
  errors: 2
    [fluid was missed] at reference 13-18
    [another]
  absent, without evidence: edema, fracture
  repaired: code fence removed
"""
END = """\

case text, evidence in brackets
  No effusion. [Fluid]
  [at the base].
"""


def test_a_case_of_a_model_is_printed_whole(capsys):
    """What was asked, every answer to it, what was read, where it stands."""
    show._print_trace(trace_of(), "", raw=False)
    said = capsys.readouterr().out
    assert said.startswith(HEAD)
    assert said.removeprefix(HEAD).startswith(CALL)
    assert said == HEAD + CALL + FIELDS + END


def test_what_a_case_does_not_have_is_not_told(capsys):
    """Draws are counted from 1; a problem stands below the status."""
    outcome = Outcome(
        item_id="c1", status=Status.UNPARSED, problem="no answer was read"
    )
    calls = (call_trace(call="edema", attempts=(), as_sent=False, failure="timeout"),)
    trace = trace_of(calls, outcome=outcome, identity={}, remarks=(), spec={"draw": 2})
    show._print_trace(trace, "", raw=False)
    said = capsys.readouterr().out
    assert said == (
        "case c1: unparsed\n"
        "  no answer was read\n"
        "\n"
        "run           20260301-1, draw 3, 2026-03-01T12:00:09Z\n"
        "prompt        tiny@v1 (abababababab), label_values/1\n"
        "engine        openai:m\n"
        "asked with    temperature 0.0, seed 7\n"
        "\n"
        "call edema: not provably what was sent\n"
        "  the same for every case: system 5, user 6 characters; schema 18 (--raw "
        "shows\n"
        "    them)\n"
        "  the case's own part, 31 characters:\n"
        "    | No effusion. Fluid\n"
        "    | at the base.\n"
        "  no answer, the engine failed: timeout\n"
        "\n"
        "what the reader made of it\n"
        "  nothing\n"
        "\n"
        "case text, evidence in brackets\n"
        "  No effusion. Fluid\n"
        "  at the base.\n"
    )


def test_one_label_is_told_alone(capsys):
    """Its answer, its evidence, and what the rules found of it."""
    trace = trace_of([call_trace(rules=RULES, attempts=())], remarks=())
    show._print_trace(trace, "effusion", raw=False)
    said = capsys.readouterr().out
    assert said.partition("what the reader made of it\n")[2] == (
        "  effusion: present, [Fluid ... at the base] at 13-18 19-30\n"
        "  repaired: code fence removed\n"
        "\n"
        "why rules answers so\n"
        "   effusion: absent, [effusion] at 3-11\n"
        "     term 'effusion'; a cue\n"
        "     cue [No], governs [No effusion.]\n"
        " * effusion: present, [Fluid at the base] at 13-30\n"
        "     term 'Fluid'; no cue\n"
        "  effusion: the impression was believed against the findings\n" + END
    )


def test_every_label_of_the_rules_is_told(capsys):
    """What says nothing of its label, what implies another, what was disputed."""
    show.print_rules(RULES, "", TEXT)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("     ")] == [
        "   effusion: absent, [effusion] at 3-11",
        " * effusion: present, [Fluid at the base] at 13-30",
        "   edema: nothing, [Fluid] at 13-18",
        "  opacity: present, because effusion implies it",
        "  effusion: the impression was believed against the findings",
        "  edema: the impression was believed against the findings",
    ]
    show.print_rules(RULES, "opacity", TEXT)
    assert capsys.readouterr().out == (
        "  opacity: present, because effusion implies it\n"
        "  no wording of the guides is in the text: absent\n"
    )


def test_raw_prints_the_messages_and_the_schema(capsys):
    """Whole, in place of their lengths."""
    show._print_call(trace_of(), call_trace(attempts=()), raw=True)
    assert capsys.readouterr().out == (
        "call joint, 4 labels: as it was sent\n"
        "  system:\n"
        "    | Read.\n"
        "  user:\n"
        "    | Case: No effusion. Fluid\n"
        "    | at the base.\n"
        "  schema:\n"
        "    | {\n"
        '    |  "type": "object"\n'
        "    | }\n"
    )


def test_an_answer_that_is_not_stored_any_more_says_so(capsys):
    """It has no words to print."""
    gone = CallAnswer(None, "", Reading(None, problem="not stored any more"), None)
    show._print_attempt(3, gone, "USD", raw=False)
    assert capsys.readouterr().out == "  answer 3: not stored any more\n"


def test_a_pair_is_printed_text_by_text(capsys):
    """Each with the evidence that stands in it, and no rules."""
    texts = {"reference": "One two.", "candidate": "Two three."}
    outcome = Outcome(
        item_id="c1",
        status=Status.ANSWERED,
        fields={"errors": Field(1, (Span(4, 7, "reference"),))},
    )
    call = call_trace(rules=RULES, attempts=())
    trace = trace_of([call], item=Item(id="c1", variables=texts), outcome=outcome)
    show._print_trace(trace, "", raw=False)
    assert capsys.readouterr().out.partition("what the reader made of it\n")[2] == (
        "  errors: 1, [two] at 4-7\n"
        "\n"
        "reference, evidence in brackets\n"
        "  One [two].\n"
        "\n"
        "candidate, evidence in brackets\n"
        "  Two three.\n"
    )


@pytest.mark.parametrize(
    ("length", "cut"), [(4000, ""), (4001, "(2,801 characters not shown)")]
)
def test_the_middle_of_a_long_text_is_left_out(capsys, length, cut):
    """Unless all of it is asked for."""
    text = "ab" * (length // 2) + "c" * (length % 2)
    show._print_block(text, whole=False)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "not shown" in line] == [f"    | {cut}"] * bool(
        cut
    )
    shown = "".join(line.removeprefix("    | ") for line in lines)
    assert shown.replace(cut, "" if not cut else "|") == (
        f"{text[:600]}|{text[-600:]}" if cut else text
    )
    show._print_block(text, whole=True)
    whole = capsys.readouterr().out.splitlines()
    assert "".join(line.removeprefix("    | ") for line in whole) == text


def test_of_a_long_case_the_beginning_and_the_evidence_are_printed(capsys):
    """With how much is left out before, between and behind."""
    text = "x" * 2000 + "y" * 10 + "x" * 2000
    show.print_text(text, [Span(2000, 2010)], whole=False)
    lines = capsys.readouterr().out.splitlines()
    gaps = [line for line in lines if "not shown" in line]
    # 600 at the beginning; 160 on either side of the evidence.
    assert gaps == [
        "  (1,240 characters not shown)",
        "  (1,840 characters not shown)",
    ]
    shown = "".join(line.strip() for line in lines if line not in gaps)
    assert shown == "x" * 760 + "[" + "y" * 10 + "]" + "x" * 160
    show.print_text(text, [Span(2000, 2010)], whole=True)
    assert "not shown" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spans", "merged"),
    [
        ([Span(5, 7), Span(1, 3)], [Span(1, 3), Span(5, 7)]),
        ([Span(1, 3), Span(3, 5)], [Span(1, 5)]),
        ([Span(1, 9), Span(2, 3)], [Span(1, 9)]),
        ([Span(1, 3), Span(5, 9), Span(6, 7)], [Span(1, 3), Span(5, 9)]),
        ([Span(1, 3), Span(4, 5)], [Span(1, 3), Span(4, 5)]),
        ([], []),
    ],
)
def test_evidence_that_overlaps_is_marked_once(spans, merged):
    """And what touches is one mark, too."""
    assert show._merged(spans) == merged


CAUSES = (
    UnansweredCause(
        Status.UNPARSED, "no JSON object", tuple(f"c{n}" for n in range(9))
    ),
    UnansweredCause(Status.ENGINE_FAILED, "timeout", ("d1", "d2")),
)


def test_cases_without_an_answer_are_listed_by_cause(capsys):
    """Eight ids each, and the command that shows the first."""
    found = UnansweredCases(run_record(), CAUSES)
    show._print_unanswered(found)
    assert capsys.readouterr().out == (
        "run 20260301-1: tiny@v1 on dev, openai:m\n"
        "11 cases without an answer:\n"
        "\n"
        "9 unparsed: no JSON object\n"
        "  c0 c1 c2 c3 c4 c5 c6 c7 and 1 more\n"
        "\n"
        "2 engine_failed: timeout\n"
        "  d1 d2\n"
        "\n"
        "See one with: ranloop show 20260301-1 c0\n"
    )
    assert show.unanswered_data(found) == {
        "run": "20260301-1",
        "cases": 11,
        "causes": [
            {
                "status": "unparsed",
                "problem": "no JSON object",
                "cases": 9,
                "ids": [f"c{n}" for n in range(9)],
            },
            {
                "status": "engine_failed",
                "problem": "timeout",
                "cases": 2,
                "ids": ["d1", "d2"],
            },
        ],
    }
    eight = found._replace(causes=(CAUSES[0]._replace(cases=CAUSES[0].cases[:8]),))
    show._print_unanswered(eight)
    assert "  c0 c1 c2 c3 c4 c5 c6 c7\n" in capsys.readouterr().out
    show._print_unanswered(found._replace(causes=()))
    assert capsys.readouterr().out == (
        "run 20260301-1: tiny@v1 on dev, openai:m\nevery case was answered\n"
    )


def test_a_long_fact_goes_on_below_itself(capsys):
    """Within 80 columns; a digest is cut to what tells it apart."""
    show._fact("note", "word " * 20)
    assert capsys.readouterr().out == (
        f"note          {' '.join(['word'] * 13)}\n"
        f"              {' '.join(['word'] * 7)}\n"
    )
    show._fact("empty", "")
    assert capsys.readouterr().out == "empty\n"
    data = {"a": {"b": "0" * 64, "c": "0" * 63}, "d": "-" + "0" * 63}
    assert list(show._flat(data)) == [
        ("a b", "0" * 12),
        ("a c", "0" * 63),
        ("d", "-" + "0" * 63),
    ]


@pytest.mark.parametrize("length", [120, 121])
def test_a_quote_is_one_line_of_at_most_120_characters(capsys, length):
    """A long one is cut; its place tells where it ends."""
    text = "x" * length + "\n  y"
    assert show.quote_span(text, Span(0, length)) == "x" * 120
    assert show.quote_span(text, Span(length - 1, len(text))) == "x y"
    fields = {"a": Field("present", (Span(0, length),))}
    show._print_fields(fields, {"text": text}, ())
    told = "".join(line.strip() for line in capsys.readouterr().out.splitlines())
    assert f"[{'x' * 120}]at 0-{length}" in told.replace("] at", "]at")
    show._print_entries("a", Field(1, entries=(Entry("w" * length),)))
    told = "".join(line.strip() for line in capsys.readouterr().out.splitlines())
    assert told == f"a: 1[{'w' * 120}]"


def test_the_own_part_of_a_long_call_is_cut_unless_all_is_asked_for(capsys):
    """As is each answer, and what was thought before it."""
    long = call_trace(own="x" * 5000, attempts=())
    show._print_call(trace_of(), long, raw=False)
    assert "(3,800 characters not shown)" in capsys.readouterr().out
    show._print_call(trace_of(), long, raw=True)
    assert "not shown" not in capsys.readouterr().out
    completion = READ.completion._replace(text="y" * 5000)
    answer = READ._replace(completion=completion, thinking="z" * 6000)
    show._print_attempt(1, answer, "USD", raw=False)
    said = capsys.readouterr().out
    assert "(3,800 characters not shown)" in said
    assert "(4,800 characters not shown)" in said
    show._print_attempt(1, answer, "USD", raw=True)
    assert "not shown" not in capsys.readouterr().out
