"""How a trace is shown in a page: what stands first, what is cut, what is inert."""

import re

import pytest

from loop.core.records import Span
from loop.ui import trace_panel
from tests.traces import RULES, call_trace, trace_of


def texts(html):
    """Return the texts of a fragment of HTML, one a line, without white space."""
    parts = re.sub(r"<[^>]*>", "\n", html).splitlines()
    return [part.strip() for part in parts if part.strip()]


def facts(html):
    """Return the first list of facts: what the reader made of the answer."""
    (found, *_) = re.findall(r'<dl class="facts">(.*?)</dl>', html, re.S)
    return texts(found)


def test_without_a_trace_there_is_a_button(capsys):
    """That asks for one."""
    html = trace_panel.render_trace(None, turn="t1")
    assert 'id="t1" data-act="open"' in html
    assert texts(html) == ["What was asked, and what came back"]


def test_the_label_that_is_looked_at_stands_first():
    """Then what has evidence; then what has none, by value."""
    html = trace_panel.render_trace(trace_of(), turn="t1", label="fracture")
    assert 'id="t1" data-act="close"' in html
    assert facts(html) == [
        *("fracture", "absent"),
        *("effusion", "present", "Fluid", "13&ndash;18", "at the base", "19&ndash;30"),
        *("errors", "2", "fluid was missed", "reference 13&ndash;18", "another"),
        *("absent", "edema"),
        *("repaired", "code fence removed"),
    ]
    html = trace_panel.render_trace(trace_of(), turn="t1")
    assert facts(html)[-4:-2] == ["absent", "edema, fracture"]


def test_every_answer_is_told_with_what_it_took():
    """Tokens, cost and what made it unreadable."""
    said = texts(trace_panel.render_trace(trace_of(), turn="t1"))
    assert "Answer 1 of 2" in said and "Answer 2 of 2" in said
    assert "stop, 1.500 s, prompt 12,345 tokens, output 6" in said
    assert "Unreadable: no JSON object" in said
    assert (
        "length, 0.250 s, prompt 100 tokens (64 cached), output 9, 0.012500 USD" in said
    )
    assert "Thinking, 15 characters" in said
    assert "as it was sent" in said and "the guide was changed since" in said
    identity = said[said.index("Engine and parameters") + 1 :]
    assert identity == [
        *("model", "m", "server build", "ef" * 32, "server slots", "4"),
        *("temperature", "0.0", "seed", "7"),
    ]


def test_several_calls_are_named_and_a_failure_is_told():
    """And what was not provably sent."""
    calls = [
        call_trace(call="edema", attempts=(), as_sent=False, failure="timeout"),
        call_trace(call="effusion"),
    ]
    said = texts(trace_panel.render_trace(trace_of(calls), turn="t1"))
    assert "Question about edema" in said and "Question about effusion" in said
    assert "not provably what was sent" in said
    assert "No answer, the engine failed: timeout" in said


@pytest.mark.parametrize(
    ("label", "mentions", "implied"),
    [("", 3, {"opacity": "effusion"}), ("effusion", 2, {}), ("edema", 1, {})],
)
def test_the_rules_are_told_for_the_label_alone(label, mentions, implied):
    """What they found, and what follows from another label."""
    shown = trace_panel._shown(call_trace(rules=RULES), label)
    assert len(shown.mentions) == mentions
    assert all(label in ("", one.label) for one in shown.mentions)
    assert shown.implied == implied
    assert trace_panel._shown(call_trace(rules=RULES), "opacity").implied == {
        "opacity": "effusion"
    }
    nothing = trace_panel._shown(call_trace(), label)
    assert (nothing.mentions, nothing.implied) == ((), {})


def test_why_the_rules_answer_so_stands_below(capsys):
    """Which words decide, by which line of the guide, and what a cue governs."""
    trace = trace_of([call_trace(rules=RULES, attempts=())])
    html = trace_panel.render_trace(trace, turn="t1", label="effusion")
    (rules,) = re.findall(r'<ul class="trace-rules">(.*?)</ul>', html, re.S)
    rows = [" ".join(texts(row)) for row in re.findall(r"<li.*?</li>", rules, re.S)]
    assert rows == [
        "effusion absent , a cue. term effusion ; cue No , governs No effusion.",
        "decides Fluid at the base present , no cue. term Fluid",
        "effusion: the impression was believed against the findings.",
    ]
    html = trace_panel.render_trace(trace, turn="t1", label="fracture")
    (rules,) = re.findall(r'<ul class="trace-rules">(.*?)</ul>', html, re.S)
    assert texts(rules) == ["No wording of the guide is in the text: absent."]


@pytest.mark.parametrize(
    ("length", "cut"), [(20_000, 0), (20_001, 1), (30_000, 10_000)]
)
def test_the_middle_of_a_long_text_is_not_shown(length, cut):
    """And how much that is, is said."""
    text = "a" * 10_000 + "b" * (length - 20_000) + "c" * 10_000
    said = f"\n({cut:,} characters not shown)\n" if cut else ""
    assert trace_panel._cut(text) == "a" * 10_000 + said + "c" * 10_000


def test_a_quote_is_one_line_of_at_most_200_characters():
    """And what has no shape is spelled out."""
    assert trace_panel._quote("a b\n  c\u200b d", Span(2, 8)) == "b c\\u200b"
    assert trace_panel._quote("x" * 500, Span(0, 300)) == "x" * 200
