"""The section Label: blind by construction, and nothing silently absent."""

import json
import re
import shutil

import gradio as gr
import pytest

from loop.core.errors import ConflictError, DataError, LoopError
from loop.core.people.users import Right, UserRole
from loop.core.records import Value
from loop.labels.cohort import texts_path
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.review.reading.answers import answer_many, complete_case, read_answers
from loop.review.reading.assignment import (
    CaseOrder,
    PlanRequest,
    assign_cases,
    read_assignment,
    reading_order,
)
from loop.review.reading.publication import publish_readings
from loop.run.store import StoredVerdict
from loop.run.task import run_prompt
from loop.ui.app import build_workbench
from loop.ui.pages.readers import labelling
from tests.review.reading.conftest import CASES, EDITOR, READ_TWICE, import_texts
from tests.ui.conftest import in_a_loop
from tests.ui.visits import opened, visit

HOSTILE = (
    "<script>alert(1)</script> <b>bold</b> **md** {{ 7 * 7 }} ${7 * 7} `x` "
    "\x1b[31mred \u202eabc\x00"
)
NAME = "Dr A"


@pytest.fixture
def desk(workspace, tmp_path):
    """Give the desk of a cohort with four texts and nothing else."""
    import_texts(workspace, tmp_path, {case: f"Made-up text {case}." for case in CASES})
    with opened(workspace) as desk:
        yield desk


def reader(desk, name=NAME, **data):
    """Return the visit of someone who may label and nothing else."""
    return visit(desk, UserRole.READER, right=Right.READ, name=name, **data)


def asked(desk):
    """Return what the readers of the cohort are asked."""
    return read_assignment(desk.workspace, "read")


def order(desk, name=NAME):
    """Return the cases in the order of a reader."""
    return reading_order(asked(desk).cohort, name)


def do(desk, act, case, name=NAME, **data):
    """Act on the sheet of a case; return progress, sheet and status."""
    who = reader(desk, name, act=act, case=case, cohort=asked(desk).key, **data)
    return labelling.act(who, "extractor", "read")


def open_(desk, name=NAME):
    """Open the section; return progress, sheet and status."""
    return labelling.open_(reader(desk, name), "extractor", "read")


def answers_of(desk, name=NAME):
    """Return what is kept of a reader."""
    return read_answers(desk.store, asked(desk), name)


def journey(desk):
    """Go through the whole section as a reader; return everything that was sent."""
    first, second, *rest = order(desk)
    sent = [
        open_(desk),
        do(desk, "answer", first, answers={"edema": "present"}),
        do(desk, "next", first),
        do(desk, "rest", first),
        do(desk, "next", first),
        do(desk, "previous", second),
        do(desk, "defer", second),
    ]
    for case in [*rest, second]:
        sent += [do(desk, "rest", case), do(desk, "next", case)]
    return [[str(part) for part in outputs] for outputs in sent]


@pytest.mark.slow
def test_nothing_but_the_text_and_own_answers_ever_reaches_a_reader(
    workspace, tmp_path, desk
):
    """Votes, a reference, a run, other readers and verdicts change not one byte."""
    texts = {case: f"Made-up text {case}." for case in CASES}
    other = type(workspace)(tmp_path / "other")
    shutil.copytree(workspace.root, other.root)
    with opened(other) as rich:
        assignment = asked(rich)
        for name, value in (("Dr B", Value.PRESENT), ("Dr C", Value.UNCERTAIN)):
            answer_many(
                rich.store,
                assignment,
                name,
                {case: {"edema": value} for case in CASES},
            )
            for case in CASES:
                complete_case(rich.store, assignment, name, case)
        publish_readings(other, rich.store, assignment, READ_TWICE, EDITOR)
        run_prompt(other, "extractor", "read")
        payload = {"cohort": "read"}
        rich.store.add_verdicts(
            [StoredVerdict("v", "2020-01-01T00:00:00Z", "Dr B", payload)]
        )
        known = _timeless(journey(rich))
    bare = _timeless(journey(desk))
    assert known == bare
    said = str(bare)
    assert all(text in said for text in texts.values())


def _timeless(sent):
    """Return what was sent without the time of day in it."""
    return re.sub(r"\d\d:\d\d(:\d\d)?", "TIME", str(sent))


@pytest.mark.slow
def test_only_a_reader_may_call_what_labels(desk):
    """The right stands with the connection, and the server asks for it."""
    wire = in_a_loop(lambda: build_workbench(desk)).wire
    assert wire.rights["label_act"] is Right.READ
    for name in ("adjudicate_act", "adjudicate_save", "adjudicate_why"):
        assert wire.rights[name] is Right.ADJUDICATE
    assert wire.rights["agreement_wait"] is Right.SEE
    assert wire.rights["publish_readings"] is Right.IMPORT


def test_an_answer_is_kept_at_once_and_said_so(desk):
    """The sheet is left alone, so that the focus stays where it is."""
    first = order(desk)[0]
    progress, sheet, status = do(
        desk, "answer", first, answers={"edema": "present", "fracture": "uncertain"}
    )
    assert answers_of(desk) == {first: {"edema": "present", "fracture": "uncertain"}}
    assert sheet == gr.skip()
    assert "18 of 20 labels open" in status
    assert "1 begun" in progress
    do(desk, "answer", first, answers={"edema": ""})
    assert answers_of(desk) == {first: {"fracture": "uncertain"}}


def test_nothing_is_absent_unless_it_is_said(desk):
    """Going on from a case with open labels is refused; the rest is an act."""
    first, second, *_ = order(desk)
    progress, sheet, status = do(desk, "next", first)
    assert (progress, sheet) == (gr.skip(), gr.skip())
    assert "20 labels are still open" in status
    assert answers_of(desk) == {}
    progress, sheet, status = do(desk, "rest", first)
    assert "complete" in status
    assert sheet.count("checked") == 20
    assert f'data-case="{second}"' in do(desk, "next", first)[1]


def test_earlier_answers_can_be_looked_at_and_changed(desk):
    """Back goes through the reader's own complete cases only."""
    first, second, *_ = order(desk)
    skipped, _, status = do(desk, "previous", first)
    assert skipped == gr.skip()
    assert "none of your complete cases" in status
    do(desk, "rest", first)
    assert f'data-case="{first}"' in do(desk, "previous", second)[1]
    do(desk, "answer", first, answers={"edema": "present"})
    assert answers_of(desk)[first]["edema"] == "present"
    assert f'data-case="{second}"' in do(desk, "next", first)[1]


def test_a_case_put_off_comes_last(desk):
    """And the only case left comes back at once, which is said."""
    first, second, *rest = order(desk)
    _, sheet, status = do(desk, "defer", first)
    assert f'data-case="{second}"' in sheet
    assert "is skipped" in status
    for case in (second, *rest):
        do(desk, "rest", case)
    _, sheet, status = do(desk, "defer", first)
    assert f'data-case="{first}"' in sheet
    assert "only case left" in status


def test_the_end_is_said_and_leads_back(desk):
    """A reader who is done sees no case, and may look at the last one again."""
    for case in order(desk):
        do(desk, "rest", case)
    progress, sheet, _ = open_(desk)
    assert "You have read all 4 cases" in sheet
    assert "<b>4</b> of 4 complete" in progress
    assert f'data-case="{order(desk)[-1]}"' in do(desk, "previous", "")[1]
    assert "You have read all" in do(desk, "next", "")[1]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"act": "answer", "answers": {"edema": "maybe"}}, "present, absent"),
        ({"act": "answer", "answers": {"nose": "present"}}, "no label 'nose'"),
        ({"act": "answer", "answers": {"no_finding": "present"}}, "is not asked"),
        ({"act": "answer", "answers": ["edema"]}, "sent no answer"),
        ({"act": "answer", "answers": {"edema": ["present"]}}, "present, absent"),
        ({"act": "rest", "case": "zz"}, "no case 'zz'"),
        ({"act": "defer", "case": "../../x"}, "no case"),
        ({"act": "drop table"}, "something unknown"),
        ({}, "something unknown"),
    ],
)
def test_whatever_else_a_browser_sends_is_refused(desk, data, words):
    """All of it is looked up, and nothing is saved."""
    who = reader(desk, **{"case": "c1", **data})
    with pytest.raises(LoopError, match=words):
        labelling.act(who, "extractor", "read")
    assert answers_of(desk) == {}


def test_a_sheet_of_texts_that_were_replaced_saves_nothing(desk):
    """The answer would be about another text."""
    who = reader(desk, act="rest", case="c1", cohort="read@0000000000000000")
    with pytest.raises(ConflictError, match="Load the page again"):
        labelling.act(who, "extractor", "read")
    assert answers_of(desk) == {}


def test_the_text_of_a_case_is_shown_as_text(workspace, tmp_path):
    """Markup, templates and control characters of a text do nothing."""
    source = tmp_path / "hostile.jsonl"
    source.write_text(json.dumps({"case_id": "c1", "text": HOSTILE}))
    options = ImportOptions(name="read", role="dev")
    import_cohort(workspace, source, options, actor=EDITOR)
    with opened(workspace) as desk:
        sheet = open_(desk)[1]
    assert "<script>" not in sheet
    assert "<b>bold" not in sheet
    assert "{{ 7 * 7 }} ${7 * 7}" in sheet
    assert not {"\x1b", "\u202e", "\x00"} & set(sheet)


def test_texts_that_are_elsewhere_are_said_to_be(desk):
    """A cohort without its texts cannot be read here."""
    texts_path(desk.workspace, "read").unlink()
    progress, sheet, _ = open_(desk)
    assert progress == ""
    assert "are not on this machine" in sheet


def test_a_holdout_can_be_read_blind(workspace, tmp_path):
    """Its reference is made this way; nobody else may open it here."""
    import_texts(workspace, tmp_path, {"c1": "Made-up."}, role="holdout")
    with opened(workspace) as desk:
        assert "Made-up." in open_(desk)[1]
        other = visit(desk, UserRole.REVIEWER, right=Right.SEE)
        sheet = labelling.open_(other, "extractor", "read")[1]
        assert "only whoever reads it blind" in sheet
        assert "Made-up." not in sheet


def test_published_answers_are_said_to_be_votes(desk):
    """What is changed then counts only once it is published again."""
    assignment = asked(desk)
    complete_case(desk.store, assignment, NAME, "c1")
    assert "votes already" not in open_(desk)[0]
    publish_readings(desk.workspace, desk.store, assignment, READ_TWICE, EDITOR)
    assert "votes already" in open_(desk)[0]
    complete_case(desk.store, assignment, "Dr B", "c1")
    assert "votes already" not in open_(desk, "Dr B")[0]


def test_no_cohort_is_no_fault(desk):
    """A new workspace has none."""
    sheet = labelling.open_(reader(desk), None, None)[1]
    assert "no cohort is chosen" in sheet
    for name in ("nowhere", "../read", "READ"):
        outputs = labelling.open_(reader(desk), None, name)
        assert "Made-up" not in str(outputs)


def test_an_unknown_cohort_raises_for_an_act(desk):
    """An act, unlike a look, is refused aloud."""
    with pytest.raises(DataError):
        labelling.act(reader(desk, act="rest", case="c1"), None, "nowhere")


def test_a_reader_gets_the_cases_given_and_no_other(desk):
    """Nor by a request made by hand; answers to other cases stay."""
    first, *_ = order(desk)
    do(desk, "answer", first, answers={"edema": "present"})
    given = tuple(case for case in CASES if case != first)[:2]
    wanted = PlanRequest(readers=(NAME,), among=given, order=CaseOrder.LISTED)
    assign_cases(desk.store, asked(desk), wanted, EDITOR)
    progress, sheet, _ = open_(desk)
    assert "of 2 complete" in progress
    assert f'data-case="{given[0]}"' in sheet
    for act in ("answer", "rest", "next", "previous", "defer", "comment"):
        with pytest.raises(DataError, match="not among the cases"):
            do(desk, act, first, answers={"edema": "absent"}, comment="x")
    assert answers_of(desk)[first]["edema"] is Value.PRESENT
    for case in given:
        do(desk, "rest", case)
    assert "all 2 cases given to you" in open_(desk)[1]


def test_a_comment_is_kept_and_shown_to_its_reader_again(desk):
    """As text, whatever it holds, and to nobody else who labels."""
    first, *_ = order(desk)
    said = do(desk, "comment", first, comment=f"{HOSTILE} </textarea><b>")
    assert "comment kept" in said[2]
    sheet = open_(desk)[1]
    assert "&lt;/textarea&gt;&lt;b&gt;" in sheet
    assert "<script>" not in sheet
    other = order(desk, "Dr Z")[0]
    assert "textarea&gt;" not in do(desk, "rest", other, name="Dr Z")[1]
    for wrong in (None, 7, ["x"]):
        with pytest.raises(DataError, match="no comment"):
            do(desk, "comment", first, comment=wrong)
    with pytest.raises(DataError, match="at most 1,000"):
        do(desk, "comment", first, comment="x" * 1001)
