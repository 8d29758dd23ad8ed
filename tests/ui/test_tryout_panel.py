"""How a try is shown: both answers, their evidence, and what a server writes."""

import re
from dataclasses import replace

import pytest

from loop.core.records import Field, Item, Outcome, Span, Status, Value
from loop.engines.rules.engine import RulesExplanation
from loop.review.revise.check import CheckTarget, TargetOutcome
from loop.review.revise.draws import TargetDraws
from loop.review.revise.tries import NotedTry
from loop.review.revise.tryout import PairsTryout, TriedLabel, TriedSide, Tryout
from loop.run.aside import Heard
from loop.ui import tryout_panel
from loop.ui.tryout_panel import ShownAnswer, ShownLabel, TryTurn
from tests.traces import RULES, TEXT, mention

TURN = TryTurn("turn-1")


def outcome(*spans, problem=""):
    """Return an answer about effusion with its evidence."""
    return Outcome(
        item_id="c1",
        status=Status.UNPARSED if problem else Status.ANSWERED,
        fields={} if problem else {"effusion": Field("present", spans)},
        problem=problem,
    )


BEFORE = TriedSide(
    "tiny@v1",
    (
        outcome(Span(13, 18), Span(19, 30)),
        outcome(Span(13, 18)),
        outcome(problem="no JSON"),
        outcome(problem="no JSON"),
        outcome(problem="cut off"),
    ),
    {},
)
AFTER = TriedSide("tiny@draft", (outcome(),), {"effusion": RULES})
LABEL = TriedLabel("effusion", "present", ("absent",) * 2 + ("present",), ("present",))


def tried(**changes):
    """Return a try on one case."""
    return Tryout(
        **{
            "engine": "rules",
            "chance": False,
            "cohort": "dev",
            "item": Item(id="c1", variables={"text": TEXT}),
            "before": BEFORE,
            "after": AFTER,
            "labels": (LABEL,),
            **changes,
        }
    )


def test_both_answers_stand_with_their_evidence_and_problems():
    """Each quote and each problem once, the parent first."""
    shown = tryout_panel._shown(tried(), LABEL)
    own = tuple(one for one in RULES.mentions if one.label == "effusion")
    assert shown == ShownLabel(
        LABEL,
        (
            ShownAnswer(
                "tiny@v1",
                "2 absent, 1 present",
                ("Fluid", "at the base"),
                (),
                "no JSON; cut off",
            ),
            ShownAnswer("tiny@draft", "present", (), own, ""),
        ),
    )
    assert len(own) == 2
    first = tryout_panel._shown(tried(before=None), LABEL)
    assert [one.ref for one in first.answers] == ["tiny@draft"]
    other = LABEL._replace(label="edema")
    assert tryout_panel._shown(tried(), other).answers[0].quotes == ()


def test_a_mention_of_another_label_is_none_of_this_one():
    """The explanation of a label may tell of what implies it."""
    rules = RulesExplanation(
        mentions=(mention("edema", 13, 18, Value.PRESENT, decides=True),),
        implied={},
        disputed=(),
    )
    side = TriedSide("tiny@v1", (), {"effusion": rules})
    assert tryout_panel._mentions(side, "effusion") == ()
    assert tryout_panel._mentions(side, "edema") == ()


@pytest.mark.parametrize(
    ("draw", "calls", "place"),
    [
        (0, 1, ""),
        (2, 1, "draw 2"),
        (0, 3, "call 1 of 3"),
        (2, 3, "draw 2, call 1 of 3"),
    ],
)
def test_what_is_written_is_told_by_its_place(draw, calls, place):
    """Only where there are several."""
    assert tryout_panel._place(Heard("tiny@v1", draw, 1, calls, "x")) == place


def test_the_end_of_what_is_written_is_shown():
    """Of all versions, in their order; nothing where nothing was heard."""
    assert tryout_panel.render_heard([]) == ""
    long = "a" * 5 + "b" * tryout_panel._LONGEST
    html = tryout_panel.render_heard(
        [Heard("tiny@v1", 0, 1, 1, "<b>"), Heard("tiny@draft", 1, 1, 1, long)]
    )
    assert html.index("tiny@v1") < html.index("tiny@draft")
    assert "&lt;b&gt;" in html and "<b>" not in html
    assert f"<pre>{'b' * tryout_panel._LONGEST}</pre>" in html
    assert html.count("draw 1") == 1


def test_the_text_of_a_pair_is_shown_whole_up_to_its_limit():
    """Both of its texts, with a line between them."""
    pair = Item(id="c1", variables={"reference": "One.", "candidate": "Two."})
    assert tryout_panel._whole(tried(item=pair)) == "One.\n\nTwo."
    long = Item(id="c1", variables={"text": "x" * 30_000})
    assert tryout_panel._whole(tried(item=long)) == "x" * 20_000
    spans = (Span(0, 3, "candidate"), Span(0, 3, "reference"))
    assert [tryout_panel._quote(tried(item=pair), one) for one in spans] == [
        "Two",
        "One",
    ]


def test_the_label_looked_at_comes_first_and_what_tells_nothing_is_left_out():
    """The others in their order."""
    same = ("absent",), ("absent",)
    labels = (
        TriedLabel("edema", "", *same),
        TriedLabel("mass", "", ("absent",), ("present",)),
        TriedLabel("hernia", "", *same),
        LABEL,
    )
    found = tryout_panel.Found(case=tried(labels=labels), label="hernia")
    html = tryout_panel.render_tryout(found, turn=TURN)
    places = [html.find(name) for name in ("hernia", "mass", "effusion")]
    assert -1 not in places and places == sorted(places)
    assert "edema" not in html


def test_without_a_try_there_is_its_button():
    """With why there is nothing to show, and what it will do."""
    html = tryout_panel.render_tryout(turn=TURN, said="not now <b>")
    assert 'id="turn-1"' in html and TURN.ask in html
    assert "not now &lt;b&gt;" in html
    busy = tryout_panel.render_tryout(turn=TURN, asking="openai:m@http://u:pw@h/v1")
    assert re.search(r'data-act="stop"', busy) and "pw@" not in busy


def test_a_pair_without_a_decision_has_no_counts():
    """How often it was right is known of the others."""
    pair = CheckTarget(
        case_id="c1",
        label="edema",
        expected="",
        before="absent",
        after="absent",
        progress=next(iter(TargetOutcome)),
    )

    known = TargetDraws("c1", "edema", before=1, after=3, draws=5)
    pairs = PairsTryout(
        prompt="tiny@draft",
        parent="tiny@v1",
        engine="rules",
        cohort="dev",
        draws=5,
        chance=True,
        targets=(pair,),
        anchors=(),
        counts=(known._replace(case_id="c2"), known),
    )
    assert tryout_panel._with_counts(pairs, pair) == (pair, "1 to 3 of 5")
    other = replace(pair, label="mass")
    assert tryout_panel._with_counts(pairs, other) == (other, "")


def noted(number, *cases, label=""):
    """Return an earlier try."""
    return NotedTry(
        digest=f"{number:08d}" + "0" * 56,
        engine="rules",
        by=f"Dr {number}",
        time="2026-03-01T12:00:00Z",
        cases=cases,
        label=label,
    )


def test_the_last_tries_are_listed_newest_first():
    """Twenty of them; wordings and cases are counted over all."""
    tries = [noted(number, "c1", f"x{number}") for number in range(1, 22)]
    found, now = tryout_panel.Found(case=tried()), tries[-1].digest
    html = tryout_panel.render_tryout(found, turn=TURN, tries=tries, now=now)
    (rows,) = re.findall(r'<ul class="trace-rules">(<li>.*?)</ul>', html, re.S)
    assert re.findall(r"Dr (\d+),", rows) == [str(n) for n in range(21, 1, -1)]
    assert rows.count("as it is now") == 1
    assert "21 wordings" in html and "22 cases" in html
    assert "Tried so far" not in tryout_panel.render_tryout(found, turn=TURN)


def test_the_words_that_decide_are_quoted():
    """As they stand in the case."""
    found = tryout_panel.Found(case=tried())
    html = tryout_panel.render_tryout(found, turn=TURN)
    assert "<q>Fluid at the base</q>" in html
