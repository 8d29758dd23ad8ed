"""General instructions in a real browser: asked for, taken, edited and committed."""

import shutil

import pytest

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.people.roster import users_path
from loop.prompts.catalog import latest_version, list_drafts, read_version
from loop.prompts.instructions import instructions_text, read_rules
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.prompts.version import CallPlan
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.commit import CommitDecision, commit_checked
from loop.review.revise.edit import SettingsEdit, edit_draft
from loop.review.revise.run_check import check_draft_ref
from loop.review.status import VerdictState, read_kept
from loop.run.store import open_store
from tests.ui.conftest import barriers, open_tab, sign_in
from tests.ui.forked import serving

pytestmark = pytest.mark.slow

EDITOR = Actor(name="Dr Editor", role="editor")
RULE = "Where {{ text }} or {% if %} or <b>bold</b> is dictated, it is text."
WORD = "Take your time."


@pytest.fixture(scope="module")
def ruled(demo_root, peopled, tmp_path_factory):
    """Make a demo whose newest version has rules of reading, checked and run."""
    root = tmp_path_factory.mktemp("ruled") / "ws"
    shutil.copytree(demo_root, root)
    workspace = WorkspacePaths(root)
    shutil.copy2(users_path(peopled), users_path(workspace))
    with open_store(workspace) as store:
        request = DraftRequest(prompt="extractor", cohort="demo_dev")
        draft = begin_draft(workspace, store, request, EDITOR).draft
        text = instructions_text(draft).replace(
            "[user.jinja]\n", "[user.jinja]\nRules of reading:\n- Denied is absent.\n\n"
        )
        settings = SettingsEdit(instructions=text)
        edit_draft(workspace, draft.ref, (), EDITOR, settings=settings)
        check_draft_ref(workspace, store, draft.ref, EDITOR)
        decision = CommitDecision(why="rules of reading", override="a start")
        commit_checked(workspace, store, draft.ref, EDITOR, decision)
    return workspace


@pytest.fixture
def workspace(ruled, tmp_path):
    """Return a copy that a test may change."""
    root = tmp_path / "ws"
    shutil.copytree(ruled.root, root)
    return WorkspacePaths(root)


def told(version):
    """Return all that a model is told before the case."""
    plan = plan_prompts(version, get_contract(version.contract).schema)
    return "".join(one.content for one in plan.calls[0].frame.messages)


def open_revise(page, url, name="Dr Editor"):
    """Sign in and open the page."""
    sign_in(page, url, name)
    open_tab(page, "Revise")
    page.wait_for_selector("#revise-drafts .step")


def begin(page):
    """Begin an unchanged draft."""
    page.click("#revise-verdicts [data-do=hand]")
    page.wait_for_selector("#revise-draft h3")


def choose(page, name, shown):
    """Choose what to edit, and wait until that is shown."""
    page.click("#revise-label input")
    page.get_by_role("option", name=name, exact=True).click()
    page.wait_for_selector(f"#revise-parts dt:text-is('{shown}')")


def write(page, old, new):
    """Replace a part of the text in the editor."""
    box = page.locator("#revise-guide textarea")
    text = box.input_value()
    assert old in text
    box.fill(text.replace(old, new))


def ask_for_rule(page, url):
    """Judge the open pair in Review, and ask for a general rule."""
    sign_in(page, url, "Dr Reviewer")
    open_tab(page, "Review")
    page.wait_for_selector("[data-case-text]")
    page.check("#review-judgement input[value=guideline_ambiguous]")
    page.click("#review-more")
    page.check("#review-action input[value=general_rule]")
    assert not page.is_visible("#review-phrase")
    page.fill("#review-rule :is(textarea, input)", RULE)


def test_a_general_rule_goes_from_a_clinician_into_the_next_version(
    workspace, new_page
):
    """Asked for, taken, the instructions edited, compared, checked and committed."""
    with serving(workspace) as url:
        page, other = new_page(), new_page()
        ask_for_rule(other, url)
        said = other.inner_text("#review-actions")
        assert "General rule" in said and "Read by language models." in said
        assert "Exclusion" not in said
        other.click("#review-submit")
        other.wait_for_selector("#review-undo")
        open_revise(page, url)
        wishes = page.locator("#revise-verdicts table:has-text('General instructions')")
        assert RULE in wishes.inner_text()
        assert "language models" in wishes.locator(".read-by").inner_text()
        wishes.locator("[data-all=l-general]").check()
        page.click("#revise-build")
        page.wait_for_selector("#revise-draft .diff ins")
        assert RULE in page.inner_text("#revise-draft .diff ins")
        reads = page.inner_text("#revise-draft .remark")
        assert "rules` reads nothing of what is changed" in reads
        # A draft of nothing but instructions has them in the editor.
        page.wait_for_selector("#revise-parts dt:text-is('instructions')")
        write(page, "Rules of reading:", f"{WORD}\nRules of reading:")
        page.click("#revise-save")
        page.wait_for_selector(f"#revise-draft .lines :text('+{WORD}')")
        page.click("#revise-run")
        page.wait_for_selector("#revise-check .word")
        page.fill("#revise-why textarea", "the rule that was asked for")
        page.check("#revise-override input")
        page.click("#revise-commit")
        page.wait_for_selector("#revise-said .notice")
        assert "is extractor@v3 now" in page.inner_text("#revise-said")
        assert page.complaints == other.complaints == []
    version = latest_version(workspace, "extractor")
    assert f"- {RULE}\n" in told(version)
    assert f"{WORD}\nRules of reading:\n" in told(version)
    assert read_rules(version) == ("Denied is absent.", RULE)
    with open_store(workspace) as store:
        (kept,) = read_kept(store, workspace, "demo_dev")
    assert (kept.state, kept.addressed_by) == (VerdictState.ADDRESSED, version.ref)
    assert version.verdicts == (kept.id,)


def test_what_is_wrong_with_instructions_is_said_beside_them(workspace, new_page):
    """In words, with the line; nothing that was typed is lost by it or by a reload."""
    with serving(workspace) as url:
        page = new_page()
        open_revise(page, url)
        begin(page)
        choose(page, "General instructions", "instructions")
        write(page, "{% endfor %}", "{% endfr %}")
        page.click("#revise-save")
        page.wait_for_selector("#revise-note [role=alert]")
        assert "Not saved" in page.inner_text("#revise-note")
        assert "endfr" in page.inner_text("#revise-note")
        page.reload()
        open_tab(page, "Revise")
        page.wait_for_selector("#revise-draft h3")
        choose(page, "General instructions", "instructions")
        assert "{% endfr %}" in page.input_value("#revise-guide textarea")
        write(page, "{% endfr %}", "{% endfor %}\n{{ wish }}")
        page.click("#revise-save")
        page.wait_for_selector("#revise-note .findings :text(\"'wish' is undefined\")")
        assert page.is_disabled("#revise-commit")
        assert page.complaints == []


def test_frozen_blocks_are_shown_and_not_to_be_edited(workspace, new_page):
    """Their words stand outside the box; without their marks nothing is saved."""
    with serving(workspace) as url:
        page = new_page()
        open_revise(page, url)
        begin(page)
        choose(page, "General instructions", "instructions")
        box = page.input_value("#revise-guide textarea")
        frozen = page.locator("#revise-parts .frozen")
        assert frozen.count() == box.count("{# frozen:") > 0
        assert "Frozen, read only: answer" in frozen.first.inner_text()
        words = frozen.first.locator("pre").inner_text()
        assert words.splitlines()[0] not in box
        assert frozen.locator("textarea, input, [contenteditable]").count() == 0
        write(page, "{# frozen: answer #}\n{# end frozen #}\n", "Answer as you like.\n")
        page.click("#revise-save")
        page.wait_for_selector("#revise-note [role=alert]")
        assert "frozen block 'answer'" in page.inner_text("#revise-note")
    (draft,) = list_drafts(workspace, "extractor")
    found = read_version(workspace, f"extractor@draft:{draft}")
    assert found.digest == latest_version(workspace, "extractor").digest


def test_plan_and_contract_are_chosen_on_the_page(workspace, new_page):
    """A choice is kept over a reload, then saved, and is in the difference."""
    with serving(workspace) as url:
        page = new_page()
        open_revise(page, url)
        # Gradio hides the mark of a choice that is not made of its own parts.
        mark = "(radio) => getComputedStyle(radio).appearance"
        assert page.locator(".answers input:checked").evaluate(mark) == "auto"
        begin(page)
        choose(page, "Call plan and contract", "contract")
        assert not page.is_visible("#revise-guide")
        page.check("#revise-plan input[value=per_label]")
        with page.expect_response(
            lambda got: "binary" in (got.request.post_data or "")
        ):
            page.check("#revise-contract input[value=binary]")
        page.reload()
        open_tab(page, "Revise")
        page.wait_for_selector("#revise-draft h3")
        choose(page, "Call plan and contract", "contract")
        assert page.is_checked("#revise-plan input[value=per_label]")
        assert page.is_checked("#revise-contract input[value=binary]")
        page.click("#revise-save")
        page.wait_for_selector("#revise-draft .diff ins:text-is('per_label')")
        page.wait_for_selector("#revise-draft .diff ins:text-is('binary')")
    (draft,) = list_drafts(workspace, "extractor")
    found = read_version(workspace, f"extractor@draft:{draft}")
    assert (found.plan, found.contract) == (CallPlan.PER_LABEL, "binary")


def test_no_serious_barrier(workspace, new_page):
    """With a wish, the instructions and the settings in the editor; and in Review."""
    with serving(workspace) as url:
        page, other = new_page(), new_page()
        ask_for_rule(other, url)
        assert barriers(other) == []
        other.click("#review-submit")
        other.wait_for_selector("#review-undo")
        open_revise(page, url)
        assert barriers(page) == []
        begin(page)
        choose(page, "General instructions", "instructions")
        assert barriers(page) == []
        choose(page, "Call plan and contract", "contract")
        assert barriers(page) == []
