"""What stands above every page: what may be chosen, and what is remembered."""

import shutil

import pytest

from loop.core.people.users import UserRole
from loop.run.task import run_prompt
from loop.ui import header
from tests.review.scenes import add_cohort, add_prompt
from tests.ui.visits import opened, visit

ROWS = [("e1", "Small effusion.", 1, 0), ("n1", "Clear lungs.", 0, 0)]


@pytest.fixture
def context(workspace, tmp_path):
    """Give a context with two prompts and three cohorts, one of them a holdout."""
    add_prompt(workspace, 1, "effusion")
    for name, role in (("dev", "dev"), ("held", "holdout"), ("more", "dev")):
        rows = [
            (f"{name}-{case}", f"{text} {name}", *rest) for case, text, *rest in ROWS
        ]
        add_cohort(workspace, tmp_path, rows, name=name, role=role)
    with opened(workspace) as made:
        yield made


@pytest.mark.parametrize(
    ("roles", "cohorts"),
    [
        ((UserRole.READER,), ("dev", "held", "more")),
        ((UserRole.REVIEWER,), ("dev", "more")),
        ((UserRole.REVIEWER, UserRole.READER), ("dev", "held", "more")),
    ],
)
def test_a_holdout_may_be_chosen_only_by_who_reads_it(context, roles, cohorts):
    """Whoever sees what a model answers must not look at it."""
    right = header.Right.READ if UserRole.READER in roles else header.Right.SEE
    assert header.visible_cohorts(visit(context, *roles, right=right)) == cohorts


def test_a_cohort_that_cannot_be_read_is_no_holdout(context):
    """It is listed, so that whoever chooses it is told what is wrong."""
    (context.workspace.cohorts / "more.jsonl").write_text("{")
    names = header.visible_cohorts(visit(context, UserRole.REVIEWER))
    assert names == ("dev", "more")


def test_what_was_looked_at_last_comes_before_the_newest_run(context):
    """Then what was run last, then the first; what is not there is not chosen."""
    ann = visit(context, UserRole.REVIEWER)
    assert header.choose_context(ann, {}) == ("extractor", "dev")
    run_prompt(context.workspace, "tiny@v1", "more")
    assert header.choose_context(ann, {}) == ("tiny", "more")
    wanted = {"prompt": "extractor", "cohort": "dev"}
    assert header.choose_context(ann, wanted) == ("extractor", "dev")
    assert header.choose_context(ann, {"prompt": "extractor"}) == ("extractor", "more")
    gone = {"prompt": "gone", "cohort": "held"}
    assert header.choose_context(ann, gone) == ("tiny", "more")


def test_where_there_is_nothing_nothing_is_chosen(context):
    """Neither prompt nor cohort."""
    for folder in (context.workspace.prompts, context.workspace.cohorts):
        shutil.rmtree(folder)
        folder.mkdir()
    assert header.choose_context(visit(context), {}) == (None, None)


def test_prompt_cohort_and_page_are_remembered_for_each_person(context):
    """A change of one keeps the others."""
    ann, ben = visit(context, name="Ann"), visit(context, name="Ben")
    assert header.context_kept(ann) == {} and header.page_kept(ann) == ""
    header.keep_page(ann, "Runs")
    assert header.context_kept(ann) == {}
    header.keep_place(ann, "tiny", "more")
    assert header.page_kept(ann) == "Runs"
    assert header.context_kept(ann) == {"prompt": "tiny", "cohort": "more"}
    header.keep_page(ann, "Files")
    header.keep_page(ann, "Files")
    assert header.page_kept(ann) == "Files"
    assert header.context_kept(ann) == {"prompt": "tiny", "cohort": "more"}
    assert header.context_kept(ben) == {} and header.page_kept(ben) == ""


def test_the_header_opens_with_what_was_chosen_last(context):
    """All choices, the selection, and who is signed in."""
    ann = visit(context, UserRole.REVIEWER, name="Ann")
    header.keep_place(ann, "tiny", "more")
    prompt, cohort, who = header.open_header(ann)
    assert (prompt.choices, prompt.value) == (
        [(one, one) for one in ("extractor", "tiny")],
        "tiny",
    )
    assert (cohort.choices, cohort.value) == (
        [(one, one) for one in ("dev", "more")],
        "more",
    )
    assert who == header.show_who(ann)
    assert '<span class="who-name">Ann</span>' in who


def test_who_works_alone_has_no_way_out(context):
    """There is nobody to sign out; the roles say nothing then."""
    said = header.show_who(visit(context, UserRole.REVIEWER))
    assert "this machine only, no sign-in" in said
    assert "Sign out" not in said


def test_letters_are_keys_until_they_are_switched_off(context):
    """For this person, and until they are switched on again."""
    ann, ben = visit(context, name="Ann"), visit(context, name="Ben")
    assert 'data-keys="on"' in header.show_who(ann)
    off = header.switch_keys(visit(context, name="Ann", on="off"))
    assert 'data-keys="off"' in off and off == header.show_who(ann)
    assert 'data-keys="on"' in header.show_who(ben)
    assert 'data-keys="on"' in header.switch_keys(visit(context, name="Ann", on="on"))
    assert 'data-keys="on"' in header.show_who(ann)
    assert 'data-keys="off"' in header.switch_keys(visit(context, name="Ann"))
