"""The section Label: blind by construction, and nothing silently absent."""

import html
import json
import re
import shutil

import gradio as gr
import pytest

from loop.core.errors import ConflictError, DataError, LoopError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.people.users import Right, UserRole
from loop.core.records import Value
from loop.labels.cohort import texts_path
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import read_version
from loop.review.guideline import VALUES, build_guideline
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
from loop.ui.pages.readers import label_panel
from tests.review.reading.conftest import CASES, EDITOR, READ_TWICE, import_texts
from tests.ui.conftest import in_a_loop
from tests.ui.visits import opened, visit

HOSTILE = (
    "<script>alert(1)</script> <b>bold</b> **md** {{ 7 * 7 }} ${7 * 7} `x` "
    "\x1b[31mred \u202eabc\x00"
)
NAME = "Dr A"


@pytest.fixture
def context(workspace, tmp_path):
    """Give the context of a cohort with four texts and nothing else."""
    import_texts(workspace, tmp_path, {case: f"Made-up text {case}." for case in CASES})
    with opened(workspace) as context:
        yield context


def reader(context, name=NAME, **data):
    """Return the visit of someone who may label and nothing else."""
    return visit(context, UserRole.READER, right=Right.READ, name=name, **data)


def asked(context):
    """Return what the readers of the cohort are asked."""
    return read_assignment(context.workspace, "read")


def order(context, name=NAME):
    """Return the cases in the order of a reader."""
    return reading_order(asked(context).cohort, name)


def do(context, act, case, name=NAME, **data):
    """Act on the sheet of a case; return progress, sheet and status."""
    who = reader(context, name, act=act, case=case, cohort=asked(context).key, **data)
    return label_panel.act(who, "extractor", "read")


def open_(context, name=NAME):
    """Open the section; return progress, sheet and status."""
    return label_panel.open_(reader(context, name), "extractor", "read")


def answers_of(context, name=NAME):
    """Return what is kept of a reader."""
    return read_answers(context.store, asked(context), name)


def journey(context):
    """Go through the whole section as a reader; return everything that was sent."""
    first, second, *rest = order(context)
    sent = [
        open_(context),
        do(context, "answer", first, answers={"edema": "present"}),
        do(context, "next", first),
        do(context, "rest", first),
        do(context, "next", first),
        do(context, "previous", second),
        do(context, "defer", second),
    ]
    for case in [*rest, second]:
        sent += [do(context, "rest", case), do(context, "next", case)]
    return [[str(part) for part in outputs] for outputs in sent]


@pytest.mark.slow
def test_nothing_but_the_text_and_own_answers_ever_reaches_a_reader(
    workspace, tmp_path, context
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
    bare = _timeless(journey(context))
    assert known == bare
    said = str(bare)
    assert all(text in said for text in texts.values())


def _timeless(sent):
    """Return what was sent without the time of day in it."""
    return re.sub(r"\d\d:\d\d(:\d\d)?", "TIME", str(sent))


@pytest.mark.slow
def test_only_a_reader_may_call_what_labels(context):
    """The right stands with the connection, and the server asks for it."""
    registry = in_a_loop(lambda: build_workbench(context)).registry
    assert registry.rights["label_act"] is Right.READ
    for name in ("adjudicate_act", "adjudicate_save", "adjudicate_why"):
        assert registry.rights[name] is Right.ADJUDICATE
    assert registry.rights["agreement_wait"] is Right.SEE
    assert registry.rights["publish_readings"] is Right.IMPORT


def test_the_guideline_is_beside_the_case_with_its_digest(context):
    """The same words as in the document, of every label that is asked, and no other."""
    assignment = asked(context)
    sheet = html.unescape(open_(context)[1])
    written = build_guideline(assignment.taxonomy)
    assert f'data-guideline="{assignment.guideline}"' in sheet
    assert all(source in sheet for source in written.sources)
    assert all(rule in sheet for rule in written.reading)
    assert all(meaning in sheet for meaning in VALUES.values())
    for label, entry in zip(assignment.taxonomy.ids, written.entries, strict=True):
        assert (f'data-meaning="{label}"' in sheet) is (label in assignment.labels)
        if label not in assignment.labels:
            continue
        part = sheet.split(f'data-meaning="{label}"')[1].split("</details>")[0]
        said = [entry.definition, *(item for _, items in entry.lists for item in items)]
        assert all(words in part for words in said), label
        assert all(heading in part for heading, _ in entry.lists)


def test_nothing_that_a_prompt_was_taught_is_in_the_guideline_of_readers(context):
    """They label for the reference: a prompt's examples would lead them."""
    sheet = open_(context)[1]
    version = read_version(WorkspacePaths(bundled()), "extractor@v7")
    sheet = html.unescape(sheet)
    assert version.digest[:12] not in sheet
    examples = [one.text for guide in version.guides for one in guide.exemplars]
    assert examples
    assert not any(text in sheet for text in examples)


def rewrite(context, old, new):
    """Edit the taxonomy in the middle of a reading."""
    path = context.workspace.labels / "taxonomy.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_words_of_a_taxonomy_are_shown_as_text(context):
    """Whoever edits it writes no page; a very long text is shown whole."""
    hostile = json.dumps(HOSTILE.replace("\x00", "") + " x" * 5000)
    rewrite(context, "  - volume loss alone", f"  - {hostile}")
    rewrite(context, "- A text that is not", f"- {hostile}\n- A text that is not")
    rewrite(context, "name: Edema", 'name: "<b onclick=alert(1)>Edema"')
    sheet = open_(context)[1]
    assert "<script>" not in sheet
    assert "<b>bold" not in sheet
    assert "<b onclick" not in sheet
    assert not {"\x1b", "\u202e"} & set(sheet)
    assert sheet.count(" x" * 5000) == 2


def test_a_guideline_that_changed_while_a_case_was_open_saves_nothing(context):
    """The digest kept with an answer is that of the words the reader saw."""
    first = order(context)[0]
    before = asked(context).guideline
    do(context, "answer", first, answers={"edema": "present"}, guideline=before)
    rewrite(context, "volume loss alone", "volume loss by itself")
    for act in ("answer", "comment", "rest", "next", "previous", "defer"):
        with pytest.raises(ConflictError, match=r"guideline .* was changed"):
            do(context, act, first, answers={}, comment="", guideline=before)
    assert answers_of(context) == {first: {"edema": "present"}}
    sheet = open_(context)[1]
    now = asked(context).guideline
    assert f'data-guideline="{now}"' in sheet
    assert "volume loss by itself" in sheet
    do(context, "rest", first, guideline=now)
    assert len(answers_of(context)[first]) == 20


def test_a_reader_is_told_of_a_guideline_that_changed(context):
    """After the cases were given, or after some were answered; not before."""
    wanted = PlanRequest(readers=(NAME,))
    assign_cases(context.store, asked(context), wanted, EDITOR)
    before = asked(context).guideline
    do(context, "rest", order(context)[0])
    assert "guideline was changed" not in open_(context)[1]
    assert "another guideline" not in open_(context)[1]
    rewrite(context, "volume loss alone", "volume loss by itself")
    sheet = open_(context)[1]
    now = asked(context).guideline
    assert f"given to you (then digest {before}, now {now})" in sheet
    assert "1 of your cases has answers that you gave by another guideline" in sheet
    other = open_(context, "Dr Z")[1]
    assert "guideline was changed" not in other
    assert "another guideline" not in other


@pytest.fixture
def no_finding_read(context):
    """Let readers label No Finding."""
    path = context.workspace.protocol
    path.write_text(path.read_text(encoding="utf-8") + "\nno_finding: read\n")


def test_no_finding_is_asked_last_where_readers_label_it(context, no_finding_read):
    """It sums the others up, and its words say that it is not derived here."""
    sheet = open_(context)[1]
    rows = re.findall(r'data-row="(\w+)"', sheet)
    assert (len(rows), rows[-1]) == (21, "no_finding")
    assert "label it yourself" in sheet


def test_a_protocol_that_changes_is_followed_by_an_open_page(context):
    """Nothing is asked by a protocol that was read before."""
    assert 'data-row="no_finding"' not in open_(context)[1]
    path = context.workspace.protocol
    said = path.read_text(encoding="utf-8")
    path.write_text(f"{said}\nno_finding: read\n", encoding="utf-8")
    assert 'data-row="no_finding"' in open_(context)[1]
    path.write_text(said, encoding="utf-8")
    assert 'data-row="no_finding"' not in open_(context)[1]


def test_no_finding_is_none_of_the_rest(context, no_finding_read):
    """And what is open then is said by its name."""
    first, second, *_ = order(context)
    assert "No Finding is open" in do(context, "rest", first)[2]
    assert "No Finding is still open" in do(context, "next", first)[2]
    status = do(context, "answer", first, answers={"no_finding": "present"})[2]
    assert "kept, complete" in status
    assert f'data-case="{second}"' in do(context, "next", first)[1]


def test_what_contradicts_no_finding_is_said_until_it_is_gone(context, no_finding_read):
    """With every answer, and once more on leaving the case; nothing is refused."""
    first, second, *_ = order(context)
    both = {"no_finding": "present", "edema": "uncertain"}
    against = "No Finding contradicts Edema (uncertain)"
    assert f"kept, but {against}" in do(context, "answer", first, answers=both)[2]
    assert against in do(context, "rest", first)[2]
    _, sheet, status = do(context, "next", first)
    assert f'data-case="{second}"' in sheet
    assert f"{first} was left as it is: {against}" in status
    do(context, "previous", second)
    status = do(context, "answer", first, answers={"edema": "absent"})[2]
    assert "kept, complete" in status
    assert do(context, "next", first)[2] == ""


def test_an_answer_is_kept_at_once_and_said_so(context):
    """The sheet is left alone, so that the focus stays where it is."""
    first = order(context)[0]
    progress, sheet, status = do(
        context, "answer", first, answers={"edema": "present", "fracture": "uncertain"}
    )
    assert answers_of(context) == {first: {"edema": "present", "fracture": "uncertain"}}
    assert sheet == gr.skip()
    assert "18 of 20 labels open" in status
    assert "1 begun" in progress
    do(context, "answer", first, answers={"edema": ""})
    assert answers_of(context) == {first: {"fracture": "uncertain"}}


def test_nothing_is_absent_unless_it_is_said(context):
    """Going on from a case with open labels is refused; the rest is an act."""
    first, second, *_ = order(context)
    progress, sheet, status = do(context, "next", first)
    assert (progress, sheet) == (gr.skip(), gr.skip())
    assert "20 labels are still open" in status
    assert answers_of(context) == {}
    progress, sheet, status = do(context, "rest", first)
    assert "complete" in status
    assert sheet.count("checked") == 20
    assert f'data-case="{second}"' in do(context, "next", first)[1]


def test_earlier_answers_can_be_looked_at_and_changed(context):
    """Back goes through the reader's own complete cases only."""
    first, second, *_ = order(context)
    skipped, _, status = do(context, "previous", first)
    assert skipped == gr.skip()
    assert "none of your complete cases" in status
    do(context, "rest", first)
    assert f'data-case="{first}"' in do(context, "previous", second)[1]
    do(context, "answer", first, answers={"edema": "present"})
    assert answers_of(context)[first]["edema"] == "present"
    assert f'data-case="{second}"' in do(context, "next", first)[1]


def test_a_case_put_off_comes_last(context):
    """And the only case left comes back at once, which is said."""
    first, second, *rest = order(context)
    _, sheet, status = do(context, "defer", first)
    assert f'data-case="{second}"' in sheet
    assert "is skipped" in status
    for case in (second, *rest):
        do(context, "rest", case)
    _, sheet, status = do(context, "defer", first)
    assert f'data-case="{first}"' in sheet
    assert "only case left" in status


def test_the_end_is_said_and_leads_back(context):
    """A reader who is done sees no case, and may look at the last one again."""
    for case in order(context):
        do(context, "rest", case)
    progress, sheet, _ = open_(context)
    assert "You have read all 4 cases" in sheet
    assert "<b>4</b> of 4 complete" in progress
    assert f'data-case="{order(context)[-1]}"' in do(context, "previous", "")[1]
    assert "You have read all" in do(context, "next", "")[1]


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
def test_whatever_else_a_browser_sends_is_refused(context, data, words):
    """All of it is looked up, and nothing is saved."""
    who = reader(context, **{"case": "c1", **data})
    with pytest.raises(LoopError, match=words):
        label_panel.act(who, "extractor", "read")
    assert answers_of(context) == {}


def test_a_sheet_of_texts_that_were_replaced_saves_nothing(context):
    """The answer would be about another text."""
    who = reader(context, act="rest", case="c1", cohort="read@0000000000000000")
    with pytest.raises(ConflictError, match="Load the page again"):
        label_panel.act(who, "extractor", "read")
    assert answers_of(context) == {}


def test_the_text_of_a_case_is_shown_as_text(workspace, tmp_path):
    """Markup, templates and control characters of a text do nothing."""
    source = tmp_path / "hostile.jsonl"
    source.write_text(json.dumps({"case_id": "c1", "text": HOSTILE}))
    options = ImportOptions(name="read", role="dev")
    import_cohort(workspace, source, options, actor=EDITOR)
    with opened(workspace) as context:
        sheet = open_(context)[1]
    assert "<script>" not in sheet
    assert "<b>bold" not in sheet
    assert "{{ 7 * 7 }} ${7 * 7}" in sheet
    assert not {"\x1b", "\u202e", "\x00"} & set(sheet)


def test_texts_that_are_elsewhere_are_said_to_be(context):
    """A cohort without its texts cannot be read here."""
    texts_path(context.workspace, "read").unlink()
    progress, sheet, _ = open_(context)
    assert progress == ""
    assert "are not on this machine" in sheet


def test_a_holdout_can_be_read_blind(workspace, tmp_path):
    """Its reference is made this way; nobody else may open it here."""
    import_texts(workspace, tmp_path, {"c1": "Made-up."}, role="holdout")
    with opened(workspace) as context:
        assert "Made-up." in open_(context)[1]
        other = visit(context, UserRole.REVIEWER, right=Right.SEE)
        sheet = label_panel.open_(other, "extractor", "read")[1]
        assert "only whoever reads it blind" in sheet
        assert "Made-up." not in sheet


def test_published_answers_are_said_to_be_votes(context):
    """What is changed then counts only once it is published again."""
    assignment = asked(context)
    complete_case(context.store, assignment, NAME, "c1")
    assert "votes already" not in open_(context)[0]
    publish_readings(context.workspace, context.store, assignment, READ_TWICE, EDITOR)
    assert "votes already" in open_(context)[0]
    complete_case(context.store, assignment, "Dr B", "c1")
    assert "votes already" not in open_(context, "Dr B")[0]


def test_no_cohort_is_no_fault(context):
    """A new workspace has none."""
    sheet = label_panel.open_(reader(context), None, None)[1]
    assert "no cohort is chosen" in sheet
    for name in ("nowhere", "../read", "READ"):
        outputs = label_panel.open_(reader(context), None, name)
        assert "Made-up" not in str(outputs)


def test_an_unknown_cohort_raises_for_an_act(context):
    """An act, unlike a look, is refused aloud."""
    with pytest.raises(DataError):
        label_panel.act(reader(context, act="rest", case="c1"), None, "nowhere")


def test_a_reader_gets_the_cases_given_and_no_other(context):
    """Nor by a request made by hand; answers to other cases stay."""
    first, *_ = order(context)
    do(context, "answer", first, answers={"edema": "present"})
    given = tuple(case for case in CASES if case != first)[:2]
    wanted = PlanRequest(readers=(NAME,), among=given, order=CaseOrder.LISTED)
    assign_cases(context.store, asked(context), wanted, EDITOR)
    progress, sheet, _ = open_(context)
    assert "of 2 complete" in progress
    assert f'data-case="{given[0]}"' in sheet
    for act in ("answer", "rest", "next", "previous", "defer", "comment"):
        with pytest.raises(DataError, match="not among the cases"):
            do(context, act, first, answers={"edema": "absent"}, comment="x")
    assert answers_of(context)[first]["edema"] is Value.PRESENT
    for case in given:
        do(context, "rest", case)
    assert "all 2 cases given to you" in open_(context)[1]


def test_a_comment_is_kept_and_shown_to_its_reader_again(context):
    """As text, whatever it holds, and to nobody else who labels."""
    first, *_ = order(context)
    said = do(context, "comment", first, comment=f"{HOSTILE} </textarea><b>")
    assert "comment kept" in said[2]
    sheet = open_(context)[1]
    assert "&lt;/textarea&gt;&lt;b&gt;" in sheet
    assert "<script>" not in sheet
    other = order(context, "Dr Z")[0]
    assert "textarea&gt;" not in do(context, "rest", other, name="Dr Z")[1]
    for wrong in (None, 7, ["x"]):
        with pytest.raises(DataError, match="no comment"):
            do(context, "comment", first, comment=wrong)
    with pytest.raises(DataError, match="at most 1,000"):
        do(context, "comment", first, comment="x" * 1001)
