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
from loop.labels.value_sample import DrawnCase, ValueSample, keep_sample
from loop.review.reading.adjudication import adjudicate
from loop.review.reading.answers import answer, answer_many, complete_case, keep_comment
from loop.review.reading.assignment import (
    CaseOrder,
    PlanRequest,
    read_assignment,
    read_plans,
)
from loop.review.reading.publication import publish_readings
from loop.run.task import run_prompt
from loop.ui.pages.readers import (
    adjudication_panel,
    agreement_panel,
    assignment_form,
    publication_form,
)
from loop.ui.pages.readers import page as whole
from loop.ui.pages.readers.base import ReadersPanel
from loop.ui.pages.readers.publication_form import MOST_NEEDED
from tests.review.reading.conftest import CASES, EDITOR, READ_TWICE, import_texts
from tests.ui.conftest import in_a_loop
from tests.ui.visits import opened, until, visit

ANY = ("", "open", False)
"""Filters of the list as the page begins."""


@pytest.fixture
def context(workspace, tmp_path):
    """Give the context of a cohort that two readers read, and differed on twice."""
    import_texts(workspace, tmp_path, {case: f"Made-up text {case}." for case in CASES})
    with opened(workspace) as context:
        say(context, "Dr B", "ppaa")
        say(context, "Dr C", "aaaa")
        yield context


def asked_by(context):
    """Return what the readers of the cohort are asked."""
    return read_assignment(context.workspace, "read")


def say(context, reader, edema):
    """Let a reader complete the cases: edema p or a, all else absent."""
    words = {"p": Value.PRESENT, "a": Value.ABSENT}
    for case, word in zip(CASES, edema, strict=True):
        answer(context.store, asked_by(context), reader, case, {"edema": words[word]})
        complete_case(context.store, asked_by(context), reader, case)


def publish(context, *readers, **options):
    """Make votes of what was read."""
    wanted = replace(READ_TWICE, readers=readers, **options)
    publish_readings(
        context.workspace, context.store, asked_by(context), wanted, EDITOR
    )


def panel_of(context, name="Dr Ann", roles=(UserRole.REVIEWER,), filters=ANY, **data):
    """Act on the disputes, or open them; return the panel's HTML."""
    who = visit(context, *roles, right=Right.ADJUDICATE, name=name, **data)
    handler = adjudication_panel.act if data else adjudication_panel.open_
    return handler(who, "extractor", "read", *filters)[0]


def decide(context, case, mark, **options):
    """Decide one dispute over edema."""
    place = {"case": case, "label": "edema", "act": "decide", "mark": mark}
    return panel_of(context, **place, **options)


def save(context, why, name="Dr Ann"):
    """Save what was decided."""
    who = visit(context, UserRole.REVIEWER, right=Right.ADJUDICATE, name=name)
    return adjudication_panel.save_all(who, "extractor", "read", *ANY, why)


def mark(context, case):
    """Return what the newest reference says of edema."""
    return read_reference(context.workspace, "read").mark(case, "edema")


def test_without_votes_there_is_nothing_to_adjudicate(context):
    """And the way there is said."""
    assert "There is nothing to adjudicate yet" in panel_of(context)


def test_disputes_are_listed_with_votes_and_without_names(context):
    """Whoever decides sees what was said, not who said it."""
    publish(context)
    shown = panel_of(context)
    assert "2 listed" in shown
    assert "1 present" in shown
    assert "no majority" in shown
    assert "Made-up text" in shown
    assert not {"Dr B", "Dr C"} & set(shown.replace("<", ">").split(">"))


def test_names_are_for_whoever_manages_people(context):
    """Asking for them is not enough."""
    publish(context)
    asking = ("", "open", True)
    assert "Dr B" not in panel_of(context, filters=asking)
    manager = (UserRole.REVIEWER, UserRole.ADMIN)
    assert "Dr B" in panel_of(context, roles=manager, filters=asking)
    assert "Dr B" not in panel_of(context, roles=manager)


def test_one_decision_is_told_as_one(context):
    """Its mark, and No Finding that follows from it; and what is left to decide."""
    publish(context)
    decide(context, "c1", "present")
    shown = save(context, "read together")[0]
    assert "Reference version 2: 1 decision, 2 marks changed" in shown
    assert "1 dispute is open." in shown


def test_decisions_wait_until_all_are_saved_at_once(context):
    """One reference version for a sitting, with its reason in the ledger."""
    publish(context)
    assert 'aria-pressed="true"' in decide(context, "c1", "present")
    decide(context, "c2", "absent")
    assert "2 decided and kept" in panel_of(context)
    assert "decided and kept" not in panel_of(context, name="Dr Ben")
    assert mark(context, "c1") is Mark.NO_MAJORITY
    with pytest.raises(DataError, match="needs a reason"):
        save(context, "  ")
    shown = save(context, "read together")[0]
    assert "Reference version 2: 2 decisions, 4 marks changed" in shown
    assert "0 disputes are open." in shown
    assert "numbers are on version 2" in shown
    assert (mark(context, "c1"), mark(context, "c2")) == (Mark.PRESENT, Mark.ABSENT)
    last = read_ledger(context.workspace.ledger)[-1]
    assert (last.actor, last.role, last.reason) == (
        "Dr Ann",
        "reviewer",
        "read together",
    )
    with pytest.raises(DataError, match="Decide first"):
        save(context, "again")


def test_the_same_decision_once_more_takes_it_back(context):
    """A slip of the finger needs no other way out."""
    publish(context)
    decide(context, "c1", "present")
    assert 'aria-pressed="true"' not in decide(context, "c1", "present")


def test_what_somebody_else_decided_meanwhile_is_not_run_over(context):
    """The page shows it and asks for another decision."""
    publish(context)
    decide(context, "c1", "present")
    pair = {("c1", "edema"): Mark.ABSENT}
    adjudicate(
        context.workspace,
        asked_by(context),
        pair,
        actor=Actor(name="Dr Ben"),
        why="alone",
    )
    with pytest.raises(ConflictError, match="1 of these disputes"):
        save(context, "read together")
    assert mark(context, "c1") is Mark.ABSENT
    assert "decided meanwhile" in panel_of(context)
    decide(context, "c1", "present")
    save(context, "read together")
    assert mark(context, "c1") is Mark.PRESENT


def test_the_reason_is_kept_while_it_is_written(context):
    """A reload loses neither decisions nor reason."""
    publish(context)
    who = visit(context, UserRole.REVIEWER, right=Right.ADJUDICATE, name="Dr Ann")
    decide(context, "c1", "present")
    adjudication_panel.keep_why(who, "extractor", "read", "because we")
    outputs = adjudication_panel.open_(who, "extractor", "read", *ANY)
    assert outputs[3].value == "because we"
    assert outputs[4].value == "Save 1 decision"


def test_the_list_is_narrowed_and_turned(context, monkeypatch):
    """By label, by state, page by page, one by one."""
    publish(context)
    monkeypatch.setattr(adjudication_panel, "PER_PAGE", 1)
    first = panel_of(context)
    assert "page 1 of 2" in first
    assert "2 of 2" in panel_of(context, act="page", to="1")
    at = {"label": "edema", "case": "c1"}
    assert "case c2" in panel_of(context, act="after", **at)
    assert "case c1" in panel_of(context, act="before", **at)
    assert "None of the disputes is listed" in panel_of(
        context, filters=("fracture", "open", False)
    )
    assert "None of" in panel_of(context, filters=("", "decided", False))
    assert "None of" in panel_of(
        context, filters=("", adjudication_panel.WAITING, False)
    )
    decide(context, "c2", "absent")
    assert "1 listed" in panel_of(
        context, filters=("", adjudication_panel.WAITING, False)
    )
    assert "2 listed" in panel_of(context, filters=("", "all", False))


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
def test_whatever_else_a_browser_sends_is_refused(context, data, words):
    """All of it is looked up, and nothing is kept."""
    publish(context)
    with pytest.raises(DataError, match=words):
        panel_of(context, **data)
    assert "decided and kept" not in panel_of(context)
    assert "page 1" not in panel_of(context, act="page", to="-7e9")


def agreement(context, label="all", **options):
    """Return the outputs of the section, once they are worked out."""
    who = visit(context, *options.get("roles", (UserRole.EDITOR,)), right=Right.SEE)

    def done():
        outputs = agreement_panel.open_(who, "extractor", "read", label)
        return None if "Working it out" in outputs[0] else outputs

    return until(done, 60)


def test_without_two_readers_there_is_no_agreement(context):
    """Each empty state says what is missing."""
    assert "nobody has voted" in agreement(context)[0]
    publish(context, "Dr B")
    assert "one reader only" in agreement(context)[0]


@pytest.mark.slow
def test_agreement_is_shown_for_all_labels_and_for_one(context):
    """Without a run the model's columns are not there."""
    publish(context)
    page, picker, timer, *_ = agreement(context)
    assert "Cohen's kappa of each pair" in page
    assert "no finished run of extractor" in page
    assert "model minus reader" not in page
    assert timer.active is False
    assert ("Edema", "edema") in picker.choices
    page, picker, *_ = agreement(context, "edema")
    assert picker.value == "edema"
    assert '<span class="soft">Edema</span>' in page
    assert agreement(context, "<script>")[1].value == "all"


@pytest.mark.slow
def test_a_run_is_held_against_the_same_panels(context):
    """The human ceiling, on the same comparisons."""
    publish(context)
    register_protocol(context.workspace, EDITOR)
    run = run_prompt(context.workspace, "extractor", "read")
    page = agreement(context)[0]
    assert "model minus reader" in page
    assert run.run_id in page


@pytest.mark.slow
def test_an_error_of_the_work_is_shown_and_can_be_tried_again(context):
    """A job that failed does not fail for ever."""
    publish(context)
    register_protocol(context.workspace, EDITOR)
    run_prompt(context.workspace, "extractor", "read")
    taken = next(context.workspace.root.rglob("protocol.yaml"))
    kept = taken.read_bytes()
    taken.unlink()
    page, *_ = agreement(context)
    assert "could not be worked out" in page
    taken.write_bytes(kept)
    agreement_panel.measure_again(
        visit(context, UserRole.EDITOR, act="again"), "extractor", "read", "all"
    )
    assert "model minus reader" in agreement(context)[0]


def publishable(context, *roles):
    """Return the outputs of the form."""
    return publication_form.show_publishable(
        visit(context, *roles, right=Right.SEE), "read"
    )


def test_what_publishing_would_do_is_shown_before(context):
    """New, replaced and lost cases of each reader; the form is for editors."""
    table, form, readers, lose, *_ = publishable(context, UserRole.EDITOR)
    assert "would be replaced" in table
    assert form.visible is True
    assert readers.value == ["Dr B", "Dr C"]
    assert lose.visible is False
    assert publishable(context, UserRole.REVIEWER)[1].visible is False
    publish(context)
    answer(context.store, asked_by(context), "Dr B", "c1", {"edema": None})
    assert publishable(context, UserRole.EDITOR)[3].visible is True


def test_nobody_has_labelled_yet(workspace, tmp_path):
    """The empty state says where labelling happens."""
    import_texts(workspace, tmp_path, {"c1": "Made-up."})
    with opened(workspace) as context:
        table, form, *_ = publishable(context, UserRole.EDITOR)
    assert "Nobody has labelled" in table
    assert form.visible is False


def test_publishing_makes_votes_and_a_reference(context):
    """Votes that would be lost are refused until that is allowed."""
    who = visit(context, UserRole.EDITOR, right=Right.IMPORT, name="Dr Ed")

    def run(*values, why="both are done"):
        asked = publication_form.PublicationForm(*values)
        shown = publication_form.show_preview(who, "read", asked)
        return publication_form.publish(who, "read", asked, why=why, digest=shown[3])

    with pytest.raises(DataError, match="needs a reason"):
        run(["Dr B", "Dr C"], "as recorded", False, False, why=" ")
    made = run(["Dr B", "Dr C"], "as recorded", False, False)
    assert made.votes.reference == 1
    assert mark(context, "c3") is Mark.ABSENT
    answer(context.store, asked_by(context), "Dr B", "c1", {"edema": None})
    with pytest.raises(DataError, match="would be lost"):
        run(["Dr B"], "as recorded", False, False)
    made = run(["Dr B"], "2", False, True)
    assert (made.votes.reference, made.votes.rule.need) == (2, 2)
    table = publication_form.show_publishable(who, "read", made)[0]
    assert "Reference version 2" in table
    assert "20 lost" in table or "21 lost" in table
    with pytest.raises(DataError, match="no reader is chosen"):
        run([], "as recorded", False, False)
    with pytest.raises(DataError, match="number of equal votes is not valid"):
        run(["Dr B"], "0", False, False)
    last = read_ledger(context.workspace.ledger)[-1]
    assert (last.actor, last.role) == ("Dr Ed", "editor")
    assert last.reason == "both are done"


def test_nothing_is_published_that_nobody_looked_at(context):
    """Neither without a preview nor after an answer that came since."""
    who = visit(context, UserRole.EDITOR, right=Right.IMPORT, name="Dr Ed")
    asked = publication_form.PublicationForm(
        ["Dr B", "Dr C"], "as recorded", False, False
    )
    shown, confirm, _, digest, button = publication_form.show_preview(
        who, "read", asked
    )
    assert confirm.visible is True
    assert "marks would change" in shown
    assert f"change {4 * 21} marks" in button.value
    assert "over half of the readers who voted" in shown
    with pytest.raises(DataError, match="nobody looked"):
        publication_form.publish(who, "read", asked, why="done", digest=None)
    answer(context.store, asked_by(context), "Dr B", "c1", {"edema": Value.ABSENT})
    with pytest.raises(ConflictError, match="nothing was published"):
        publication_form.publish(who, "read", asked, why="done", digest=digest)
    with pytest.raises(DataError, match="no reference yet"):
        mark(context, "c1")


def test_a_preview_lists_what_becomes_undecided_first(context):
    """Case ids and labels; the list is bounded, and the rest is counted."""
    publish(context, "Dr C")
    who = visit(context, UserRole.EDITOR, right=Right.IMPORT, name="Dr Ed")
    asked = publication_form.PublicationForm(["Dr B"], "as recorded", False, False)
    shown = publication_form.show_preview(who, "read", asked)[0]
    assert "4 marks would change" in shown
    assert "4 of them become undecided" in shown
    assert shown.index("absent") < shown.index("no majority")
    assert shown.count('<th scope="row">c1</th>') == 2
    assert "Made-up text" not in shown


def test_a_holdout_is_for_whoever_reads_it(workspace, tmp_path):
    """Neither disputes nor numbers are shown: once they are votes, they are sealed."""
    import_texts(workspace, tmp_path, {"c1": "Made-up.", "c2": "Too."}, role="holdout")
    with opened(workspace) as context:
        assignment = asked_by(context)
        for name, value in (("Dr B", Value.PRESENT), ("Dr C", Value.ABSENT)):
            said = {case: {"edema": value} for case in ("c1", "c2")}
            answer_many(context.store, assignment, name, said)
            for case in said:
                complete_case(context.store, assignment, name, case)
        publish(context)
        assert "is a holdout" in panel_of(context)
        assert "is a holdout" in agreement(context)[0]
        both = (UserRole.READER, UserRole.REVIEWER)
        assert "votes are sealed" in panel_of(context, roles=both)
        assert "votes are sealed" in agreement(context, roles=both)[0]


def parts(*rights):
    """Return made-up sections that say who opened them."""
    return [
        ReadersPanel(
            name=right.value,
            title=right.value,
            right=right,
            box=None,
            show=lambda visit, *values, right=right: [f"{right} of {values[1]}"],
            outputs=[None],
        )
        for right in rights
    ]


def test_each_visitor_has_the_parts_of_their_roles(context):
    """A reader gets one, and no way to choose another."""
    refresh = whole._refresh(parts(Right.READ, Right.ADJUDICATE, Right.SEE))
    reader = visit(context, UserRole.READER, right=Right.READ)
    part, *boxes, first, second, third = refresh(reader, "extractor", "read")
    assert part.visible is False
    assert [box.visible for box in boxes] == [True, False, False]
    assert (first, second, third) == ("read of read", gr.skip(), gr.skip())
    admin = visit(context, UserRole.ADMIN, right=Right.SEE)
    *_, third = refresh(admin, "extractor", "read")
    assert third == "see of read"


def test_the_part_chosen_last_is_opened_again(context):
    """Also after a reload; a part that is not theirs is refused."""
    sections = parts(Right.READ, Right.ADJUDICATE, Right.SEE)
    choose, refresh = whole._choose(sections), whole._refresh(sections)
    reviewer = visit(context, UserRole.REVIEWER)
    assert choose(reviewer, "extractor", "read", "see")[-1] == "see of read"
    assert refresh(reviewer, "extractor", "read")[-1] == "see of read"
    for name in ("read", "adjudicate"):
        with pytest.raises(PermissionRefused):
            choose(visit(context, UserRole.ADMIN), "extractor", "read", name)
    with pytest.raises(DataError, match="no such part"):
        choose(reviewer, "extractor", "read", "<b>")


def assign(context, *form, act=assignment_form.give, roles=(UserRole.EDITOR,)):
    """Do what the form that gives cases says."""
    who = visit(context, *roles, right=Right.IMPORT, name="Dr Ed")
    act(who, "read", assignment_form.PlanForm(*form))


def draw(context, *cases):
    """Record a value sample of these cases."""
    cohort = asked_by(context).cohort
    sample = ValueSample(
        cohort=cohort.name,
        cohort_digest=cohort.digest,
        population=len(cohort.cases),
        seed=1,
        even=0.25,
        run="r1",
        between=("tiny@v1",),
        fitted_on="dev",
        drawn=tuple(DrawnCase(case_id=one, chance=0.5) for one in cases),
    )
    return keep_sample(context.workspace, cohort, sample, actor=EDITOR, replace=True)


def test_an_assignment_draws_from_the_value_sample_that_counts(context):
    """With its chances; one that was replaced since the page was opened is none."""
    draw(context, "c1", "c3")
    _, _, sample = assignment_form.show_assigning(
        visit(context, UserRole.EDITOR), "read"
    )
    assert [value for _, value in sample.choices] == ["", "1"]
    assign(context, ["Dr B"], "", "", "random", "", "", "1")
    plan = read_plans(context.store, asked_by(context))["Dr B"]
    assert set(plan.case_ids) == {"c1", "c3"}
    assert plan.chances == (0.5, 0.5)
    with pytest.raises(DataError, match="no value sample"):
        assign(context, ["Dr B"], "", "", "random", "", "c2", "1")
    draw(context, "c2", "c3")
    with pytest.raises(DataError, match="another value sample was drawn"):
        assign(context, ["Dr B"], "", "", "random", "", "", "1")


def test_an_editor_gives_readers_their_cases(context):
    """Progress against them is shown to whoever publishes, without an answer."""
    both = ["Dr B", "Dr C"]
    assign(context, both, "3", "2", "random", "", "")
    table = publishable(context, UserRole.REVIEWER)[0]
    assert table.count("3 of 3") == 2
    assert "(2 shared)" in table
    assign(context, both, "", "", "listed", "7", "c2\nc1\n")
    assert "2 of 2" in publishable(context, UserRole.ADMIN)[0]
    assign(context, both, "", "", "", "", "", act=assignment_form.clear)
    assert "shared" not in publishable(context, UserRole.EDITOR)[0]
    box, readers, sample = assignment_form.show_assigning(
        visit(context, UserRole.EDITOR), "read"
    )
    assert box.visible is True
    assert sample.visible is False
    assert {name for name, _ in readers.choices} == set(both)
    assert assignment_form.show_assigning(visit(context, UserRole.REVIEWER), "read")[
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
def test_whatever_else_the_form_says_gives_nobody_cases(context, form, words):
    """Each refusal says what to correct."""
    with pytest.raises(DataError, match=words):
        assign(context, *form)
    assert "shared" not in publishable(context, UserRole.EDITOR)[0]


def test_comments_stand_beside_a_dispute_under_the_letter_of_the_votes(context):
    """Of readers who voted; names are for whoever manages people."""
    asked = asked_by(context)
    keep_comment(context.store, asked, "Dr B", "c1", "cannot be decided <b>")
    keep_comment(context.store, asked, "Dr Z", "c1", "has not voted")
    publish(context)
    shown = panel_of(context)
    assert "cannot be decided &lt;b&gt;" in shown
    assert "Dr B" not in shown
    assert "has not voted" not in shown
    letter = re.search(r'voter">(\w)</span> cannot', shown)[1]
    votes = shown[shown.index('<th scope="row">present') :]
    assert votes.index(f'voter">{letter}<') < votes.index('<th scope="row">absent')
    manager = (UserRole.REVIEWER, UserRole.ADMIN)
    named = panel_of(context, roles=manager, filters=("", "open", True))
    assert 'voter">Dr B</span> cannot' in named


def test_every_number_of_equal_votes_can_be_asked_for():
    """Over half, or so many at the least, or as it was before."""

    def build():
        with gr.Blocks():
            return publication_form.build().need

    need = in_a_loop(build)
    numbers = [str(number) for number in range(1, MOST_NEEDED + 1)]
    assert [value for _, value in need.choices][1:] == numbers
    assert need.value == need.choices[0][1]


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        (None, None),
        ("", None),
        ("  ", None),
        ("0", 0),
        (" 7 ", 7),
        ("999999999", 999_999_999),
    ],
)
def test_a_number_may_be_typed_or_left_out(typed, number):
    """Nothing is no 0."""
    form = assignment_form.PlanForm(None, typed, typed, None, typed, None)
    assert form.wanted == PlanRequest(
        readers=(), cases=number, overlap=number, seed=1 if number is None else number
    )


@pytest.mark.parametrize("typed", ["1000000000", "-1", "1.0", "x", "٣", "²"])
@pytest.mark.parametrize(
    ("field", "what"),
    [(1, "cases of each reader"), (2, "shared cases"), (4, "seed")],
)
def test_what_is_no_number_is_refused_by_its_field(typed, field, what):
    """And nothing is drawn by half of it."""
    values = [["Dr B"], *[None] * 5]
    values[field] = typed
    with pytest.raises(DataError, match=f"^{what}: not a number"):
        _ = assignment_form.PlanForm(*values).wanted


def test_a_form_is_what_is_to_be_drawn():
    """Every field of it."""
    form = assignment_form.PlanForm(["Dr B", "Dr C"], "4", "2", "listed", "0", "c1\nc2")
    assert form.wanted == PlanRequest(
        readers=("Dr B", "Dr C"),
        cases=4,
        overlap=2,
        order=CaseOrder.LISTED,
        seed=0,
        among=("c1", "c2"),
    )
