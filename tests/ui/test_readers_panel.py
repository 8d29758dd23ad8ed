"""The sections Adjudicate and Agreement, and which part of the page is whose."""

import re
from dataclasses import replace

import gradio as gr
import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.people.users import PermissionRefused, Right, UserRole
from loop.core.records import Mark, Value
from loop.evaluate.protocol import register_protocol
from loop.labels.reference import read_reference
from loop.review.reading.adjudication import adjudicate
from loop.review.reading.answers import answer, answer_many, complete_case, keep_comment
from loop.review.reading.assignment import read_assignment
from loop.review.reading.publication import publish_readings
from loop.run.task import run_prompt
from loop.ui.pages.readers import (
    adjudicating,
    agreeing,
    assigning,
    disputed,
    publishing,
)
from loop.ui.pages.readers import page as whole
from loop.ui.pages.readers.section import ReadersSection
from tests.review.reading.conftest import CASES, EDITOR, READ_TWICE, import_texts
from tests.ui.visits import opened, until, visit

ANY = ("", "open", False)
"""Filters of the list as the page begins."""


@pytest.fixture
def desk(workspace, tmp_path):
    """Give the desk of a cohort that two readers read, and differed on twice."""
    import_texts(workspace, tmp_path, {case: f"Made-up text {case}." for case in CASES})
    with opened(workspace) as desk:
        say(desk, "Dr B", "ppaa")
        say(desk, "Dr C", "aaaa")
        yield desk


def asked_by(desk):
    """Return what the readers of the cohort are asked."""
    return read_assignment(desk.workspace, "read")


def say(desk, reader, edema):
    """Let a reader complete the cases: edema p or a, all else absent."""
    words = {"p": Value.PRESENT, "a": Value.ABSENT}
    for case, word in zip(CASES, edema, strict=True):
        answer(desk.store, asked_by(desk), reader, case, {"edema": words[word]})
        complete_case(desk.store, asked_by(desk), reader, case)


def publish(desk, *readers, **options):
    """Make votes of what was read."""
    wanted = replace(READ_TWICE, readers=readers, **options)
    publish_readings(desk.workspace, desk.store, asked_by(desk), wanted, EDITOR)


def panel_of(desk, name="Dr Ann", roles=(UserRole.REVIEWER,), filters=ANY, **data):
    """Act on the disputes, or open them; return the panel's HTML."""
    who = visit(desk, *roles, right=Right.ADJUDICATE, name=name, **data)
    handler = adjudicating.act if data else adjudicating.open_
    return handler(who, "extractor", "read", *filters)[0]


def decide(desk, case, mark, **options):
    """Decide one dispute over edema."""
    place = {"case": case, "label": "edema", "act": "decide", "mark": mark}
    return panel_of(desk, **place, **options)


def save(desk, why, name="Dr Ann"):
    """Save what was decided."""
    who = visit(desk, UserRole.REVIEWER, right=Right.ADJUDICATE, name=name)
    return adjudicating.save_all(who, "extractor", "read", *ANY, why)


def mark(desk, case):
    """Return what the newest reference says of edema."""
    return read_reference(desk.workspace, "read").mark(case, "edema")


def test_without_votes_there_is_nothing_to_adjudicate(desk):
    """And the way there is said."""
    assert "There is nothing to adjudicate yet" in panel_of(desk)


def test_disputes_are_listed_with_votes_and_without_names(desk):
    """Whoever decides sees what was said, not who said it."""
    publish(desk)
    shown = panel_of(desk)
    assert "2 listed" in shown
    assert "1 present" in shown
    assert "no majority" in shown
    assert "Made-up text" in shown
    assert not {"Dr B", "Dr C"} & set(shown.replace("<", ">").split(">"))


def test_names_are_for_whoever_manages_people(desk):
    """Asking for them is not enough."""
    publish(desk)
    asking = ("", "open", True)
    assert "Dr B" not in panel_of(desk, filters=asking)
    manager = (UserRole.REVIEWER, UserRole.ADMIN)
    assert "Dr B" in panel_of(desk, roles=manager, filters=asking)
    assert "Dr B" not in panel_of(desk, roles=manager)


def test_decisions_wait_until_all_are_saved_at_once(desk):
    """One reference version for a sitting, with its reason in the ledger."""
    publish(desk)
    assert 'aria-pressed="true"' in decide(desk, "c1", "present")
    decide(desk, "c2", "absent")
    assert "2 decided and kept" in panel_of(desk)
    assert "decided and kept" not in panel_of(desk, name="Dr Ben")
    assert mark(desk, "c1") is Mark.NO_MAJORITY
    with pytest.raises(DataError, match="needs a reason"):
        save(desk, "  ")
    shown = save(desk, "read together")[0]
    assert "Reference version 2: 2 decisions" in shown
    assert "numbers are on version 2" in shown
    assert (mark(desk, "c1"), mark(desk, "c2")) == (Mark.PRESENT, Mark.ABSENT)
    last = read_ledger(desk.workspace.ledger)[-1]
    assert (last.actor, last.role, last.reason) == (
        "Dr Ann",
        "reviewer",
        "read together",
    )
    with pytest.raises(DataError, match="Decide first"):
        save(desk, "again")


def test_the_same_decision_once_more_takes_it_back(desk):
    """A slip of the finger needs no other way out."""
    publish(desk)
    decide(desk, "c1", "present")
    assert 'aria-pressed="true"' not in decide(desk, "c1", "present")


def test_what_somebody_else_decided_meanwhile_is_not_run_over(desk):
    """The page shows it and asks for another decision."""
    publish(desk)
    decide(desk, "c1", "present")
    pair = {("c1", "edema"): Mark.ABSENT}
    adjudicate(
        desk.workspace, asked_by(desk), pair, actor=Actor(name="Dr Ben"), why="alone"
    )
    with pytest.raises(ConflictError, match="1 of these disputes"):
        save(desk, "read together")
    assert mark(desk, "c1") is Mark.ABSENT
    assert "decided meanwhile" in panel_of(desk)
    decide(desk, "c1", "present")
    save(desk, "read together")
    assert mark(desk, "c1") is Mark.PRESENT


def test_the_reason_is_kept_while_it_is_written(desk):
    """A reload loses neither decisions nor reason."""
    publish(desk)
    who = visit(desk, UserRole.REVIEWER, right=Right.ADJUDICATE, name="Dr Ann")
    decide(desk, "c1", "present")
    adjudicating.keep_why(who, "extractor", "read", "because we")
    outputs = adjudicating.open_(who, "extractor", "read", *ANY)
    assert outputs[3].value == "because we"
    assert outputs[4].value == "Save 1 decision"


def test_the_list_is_narrowed_and_turned(desk, monkeypatch):
    """By label, by state, page by page, one by one."""
    publish(desk)
    monkeypatch.setattr(disputed, "PER_PAGE", 1)
    monkeypatch.setattr(adjudicating, "PER_PAGE", 1)
    first = panel_of(desk)
    assert "page 1 of 2" in first
    assert "2 of 2" in panel_of(desk, act="page", to="1")
    at = {"label": "edema", "case": "c1"}
    assert "case c2" in panel_of(desk, act="after", **at)
    assert "case c1" in panel_of(desk, act="before", **at)
    assert "None of the disputes is listed" in panel_of(
        desk, filters=("fracture", "open", False)
    )
    assert "None of" in panel_of(desk, filters=("", "decided", False))
    assert "None of" in panel_of(desk, filters=("", disputed.WAITING, False))
    decide(desk, "c2", "absent")
    assert "1 listed" in panel_of(desk, filters=("", disputed.WAITING, False))
    assert "2 listed" in panel_of(desk, filters=("", "all", False))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"act": "decide", "case": "zz", "label": "edema"}, "no longer in dispute"),
        ({"act": "decide", "case": ["c1"], "label": {}}, "no longer in dispute"),
        (
            {"act": "decide", "case": "c1", "label": "edema", "mark": "missing"},
            "nobody can decide",
        ),
        ({"act": "x"}, "something unknown"),
    ],
)
def test_whatever_else_a_browser_sends_is_refused(desk, data, words):
    """All of it is looked up, and nothing is kept."""
    publish(desk)
    with pytest.raises(DataError, match=words):
        panel_of(desk, **data)
    assert "decided and kept" not in panel_of(desk)
    assert "page 1" not in panel_of(desk, act="page", to="-7e9")


def agreement(desk, label="all", **options):
    """Return the outputs of the section, once they are worked out."""
    who = visit(desk, *options.get("roles", (UserRole.EDITOR,)), right=Right.SEE)

    def done():
        outputs = agreeing.open_(who, "extractor", "read", label)
        return None if "Working it out" in outputs[0] else outputs

    return until(done, 60)


def test_without_two_readers_there_is_no_agreement(desk):
    """Each empty state says what is missing."""
    assert "nobody has voted" in agreement(desk)[0]
    publish(desk, "Dr B")
    assert "one reader only" in agreement(desk)[0]


@pytest.mark.slow
def test_agreement_is_shown_for_all_labels_and_for_one(desk):
    """Without a run the model's columns are not there."""
    publish(desk)
    page, picker, timer, *_ = agreement(desk)
    assert "Cohen's kappa of each pair" in page
    assert "no finished run of extractor" in page
    assert "model minus reader" not in page
    assert timer.active is False
    assert ("Edema", "edema") in picker.choices
    page, picker, *_ = agreement(desk, "edema")
    assert picker.value == "edema"
    assert '<span class="soft">Edema</span>' in page
    assert agreement(desk, "<script>")[1].value == "all"


@pytest.mark.slow
def test_a_run_is_held_against_the_same_panels(desk):
    """The human ceiling, on the same comparisons."""
    publish(desk)
    register_protocol(desk.workspace, EDITOR)
    run = run_prompt(desk.workspace, "extractor", "read")
    page = agreement(desk)[0]
    assert "model minus reader" in page
    assert run.run_id in page


@pytest.mark.slow
def test_an_error_of_the_work_is_shown_and_can_be_tried_again(desk):
    """A job that failed does not fail for ever."""
    publish(desk)
    register_protocol(desk.workspace, EDITOR)
    run_prompt(desk.workspace, "extractor", "read")
    taken = next(desk.workspace.root.rglob("protocol.yaml"))
    kept = taken.read_bytes()
    taken.unlink()
    page, *_ = agreement(desk)
    assert "could not be worked out" in page
    taken.write_bytes(kept)
    agreeing.look_again(
        visit(desk, UserRole.EDITOR, act="again"), "extractor", "read", "all"
    )
    assert "model minus reader" in agreement(desk)[0]


def publishable(desk, *roles):
    """Return the outputs of the form."""
    return publishing.show_publishable(visit(desk, *roles, right=Right.SEE), "read")


def test_what_publishing_would_do_is_shown_before(desk):
    """New, replaced and lost cases of each reader; the form is for editors."""
    table, form, readers, lose, *_ = publishable(desk, UserRole.EDITOR)
    assert "would be replaced" in table
    assert form.visible is True
    assert readers.value == ["Dr B", "Dr C"]
    assert lose.visible is False
    assert publishable(desk, UserRole.REVIEWER)[1].visible is False
    publish(desk)
    answer(desk.store, asked_by(desk), "Dr B", "c1", {"edema": None})
    assert publishable(desk, UserRole.EDITOR)[3].visible is True


def test_nobody_has_labelled_yet(workspace, tmp_path):
    """The empty state says where labelling happens."""
    import_texts(workspace, tmp_path, {"c1": "Made-up."})
    with opened(workspace) as desk:
        table, form, *_ = publishable(desk, UserRole.EDITOR)
    assert "Nobody has labelled" in table
    assert form.visible is False


def test_publishing_makes_votes_and_a_reference(desk):
    """Votes that would be lost are refused until that is allowed."""
    who = visit(desk, UserRole.EDITOR, right=Right.IMPORT, name="Dr Ed")

    def run(*values, why="both are done"):
        asked = publishing.PublicationForm(*values)
        shown = publishing.show_preview(who, "read", asked)
        return publishing.publish(who, "read", asked, why=why, digest=shown[3])

    with pytest.raises(DataError, match="needs a reason"):
        run(["Dr B", "Dr C"], "as recorded", False, False, why=" ")
    made = run(["Dr B", "Dr C"], "as recorded", False, False)
    assert made.votes.reference == 1
    assert mark(desk, "c3") is Mark.ABSENT
    answer(desk.store, asked_by(desk), "Dr B", "c1", {"edema": None})
    with pytest.raises(DataError, match="would be lost"):
        run(["Dr B"], "as recorded", False, False)
    made = run(["Dr B"], "2", False, True)
    assert (made.votes.reference, made.votes.rule.need) == (2, 2)
    table = publishing.show_publishable(who, "read", made)[0]
    assert "Reference version 2" in table
    assert "20 lost" in table or "21 lost" in table
    with pytest.raises(DataError, match="no reader is chosen"):
        run([], "as recorded", False, False)
    with pytest.raises(DataError, match="number of equal votes is not valid"):
        run(["Dr B"], "0", False, False)
    last = read_ledger(desk.workspace.ledger)[-1]
    assert (last.actor, last.role) == ("Dr Ed", "editor")
    assert last.reason == "both are done"


def test_nothing_is_published_that_nobody_looked_at(desk):
    """Neither without a preview nor after an answer that came since."""
    who = visit(desk, UserRole.EDITOR, right=Right.IMPORT, name="Dr Ed")
    asked = publishing.PublicationForm(["Dr B", "Dr C"], "as recorded", False, False)
    shown, confirm, _, digest, button = publishing.show_preview(who, "read", asked)
    assert confirm.visible is True
    assert "marks would change" in shown
    assert f"change {4 * 21} marks" in button.value
    assert "over half of the readers who voted" in shown
    with pytest.raises(DataError, match="nobody looked"):
        publishing.publish(who, "read", asked, why="done", digest=None)
    answer(desk.store, asked_by(desk), "Dr B", "c1", {"edema": Value.ABSENT})
    with pytest.raises(ConflictError, match="nothing was published"):
        publishing.publish(who, "read", asked, why="done", digest=digest)
    with pytest.raises(DataError, match="no reference yet"):
        mark(desk, "c1")


def test_a_preview_lists_what_becomes_undecided_first(desk):
    """Case ids and labels; the list is bounded, and the rest is counted."""
    publish(desk, "Dr C")
    who = visit(desk, UserRole.EDITOR, right=Right.IMPORT, name="Dr Ed")
    asked = publishing.PublicationForm(["Dr B"], "as recorded", False, False)
    shown = publishing.show_preview(who, "read", asked)[0]
    assert "4 marks would change" in shown
    assert "4 of them become undecided" in shown
    assert shown.index("absent") < shown.index("no majority")
    assert shown.count('<th scope="row">c1</th>') == 2
    assert "Made-up text" not in shown


def test_a_holdout_is_for_whoever_reads_it(workspace, tmp_path):
    """Neither disputes nor numbers are shown: once they are votes, they are sealed."""
    import_texts(workspace, tmp_path, {"c1": "Made-up.", "c2": "Too."}, role="holdout")
    with opened(workspace) as desk:
        assignment = asked_by(desk)
        for name, value in (("Dr B", Value.PRESENT), ("Dr C", Value.ABSENT)):
            said = {case: {"edema": value} for case in ("c1", "c2")}
            answer_many(desk.store, assignment, name, said)
            for case in said:
                complete_case(desk.store, assignment, name, case)
        publish(desk)
        assert "is a holdout" in panel_of(desk)
        assert "is a holdout" in agreement(desk)[0]
        both = (UserRole.READER, UserRole.REVIEWER)
        assert "votes are sealed" in panel_of(desk, roles=both)
        assert "votes are sealed" in agreement(desk, roles=both)[0]


def parts(*rights):
    """Return made-up sections that say who opened them."""
    return [
        ReadersSection(
            name=right.value,
            title=right.value,
            right=right,
            box=None,
            show=lambda visit, *values, right=right: [f"{right} of {values[1]}"],
            outputs=[None],
        )
        for right in rights
    ]


def test_each_visitor_has_the_parts_of_their_roles(desk):
    """A reader gets one, and no way to choose another."""
    refresh = whole._refresh(parts(Right.READ, Right.ADJUDICATE, Right.SEE))
    reader = visit(desk, UserRole.READER, right=Right.READ)
    part, *boxes, first, second, third = refresh(reader, "extractor", "read")
    assert part.visible is False
    assert [box.visible for box in boxes] == [True, False, False]
    assert (first, second, third) == ("read of read", gr.skip(), gr.skip())
    admin = visit(desk, UserRole.ADMIN, right=Right.SEE)
    *_, third = refresh(admin, "extractor", "read")
    assert third == "see of read"


def test_the_part_chosen_last_is_opened_again(desk):
    """Also after a reload; a part that is not theirs is refused."""
    sections = parts(Right.READ, Right.ADJUDICATE, Right.SEE)
    choose, refresh = whole._choose(sections), whole._refresh(sections)
    reviewer = visit(desk, UserRole.REVIEWER)
    assert choose(reviewer, "extractor", "read", "see")[-1] == "see of read"
    assert refresh(reviewer, "extractor", "read")[-1] == "see of read"
    for name in ("read", "adjudicate"):
        with pytest.raises(PermissionRefused):
            choose(visit(desk, UserRole.ADMIN), "extractor", "read", name)
    with pytest.raises(DataError, match="no such part"):
        choose(reviewer, "extractor", "read", "<b>")


def assign(desk, *form, act=assigning.give, roles=(UserRole.EDITOR,)):
    """Do what the form that gives cases says."""
    who = visit(desk, *roles, right=Right.IMPORT, name="Dr Ed")
    act(who, "read", assigning.PlanForm(*form))


def test_an_editor_gives_readers_their_cases(desk):
    """Progress against them is shown to whoever publishes, without an answer."""
    both = ["Dr B", "Dr C"]
    assign(desk, both, "3", "2", "random", "", "")
    table = publishable(desk, UserRole.REVIEWER)[0]
    assert table.count("3 of 3") == 2
    assert "(2 shared)" in table
    assign(desk, both, "", "", "listed", "7", "c2\nc1\n")
    assert "2 of 2" in publishable(desk, UserRole.ADMIN)[0]
    assign(desk, both, "", "", "", "", "", act=assigning.clear)
    assert "shared" not in publishable(desk, UserRole.EDITOR)[0]
    box, readers = assigning.show_assigning(visit(desk, UserRole.EDITOR), "read")
    assert box.visible is True
    assert {name for name, _ in readers.choices} == set(both)
    assert assigning.show_assigning(visit(desk, UserRole.REVIEWER), "read")[
        0
    ].visible is (False)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (([], "1", "", "random", "", ""), "no reader is chosen"),
        ((None, "1", "", "random", "", ""), "no reader is chosen"),
        ((["Dr B"], "x", "", "random", "", ""), "cases of each reader: not a number"),
        ((["Dr B"], "1", "-1", "random", "", ""), "shared cases: not a number"),
        ((["Dr B"], "1", "", "<b>", "", ""), "no order"),
        ((["Dr B"], "1", "", "random", "", "zz"), "has no case"),
        ((["Nobody"], "1", "", "random", "", ""), "may not read here"),
    ],
)
def test_whatever_else_the_form_says_gives_nobody_cases(desk, form, words):
    """Each refusal says what to correct."""
    with pytest.raises(DataError, match=words):
        assign(desk, *form)
    assert "shared" not in publishable(desk, UserRole.EDITOR)[0]


def test_comments_stand_beside_a_dispute_under_the_letter_of_the_votes(desk):
    """Of readers who voted; names are for whoever manages people."""
    asked = asked_by(desk)
    keep_comment(desk.store, asked, "Dr B", "c1", "cannot be decided <b>")
    keep_comment(desk.store, asked, "Dr Z", "c1", "has not voted")
    publish(desk)
    shown = panel_of(desk)
    assert "cannot be decided &lt;b&gt;" in shown
    assert "Dr B" not in shown
    assert "has not voted" not in shown
    letter = re.search(r'voter">(\w)</span> cannot', shown)[1]
    votes = shown[shown.index('<th scope="row">present') :]
    assert votes.index(f'voter">{letter}<') < votes.index('<th scope="row">absent')
    manager = (UserRole.REVIEWER, UserRole.ADMIN)
    named = panel_of(desk, roles=manager, filters=("", "open", True))
    assert 'voter">Dr B</span> cannot' in named
