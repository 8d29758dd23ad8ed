"""What is refused is said beside the control that was pressed, on every page.

Gradio's front end says nothing of an error of an event that passes no queue.
"""

import shutil

import pytest

from loop.core.paths import WorkspacePaths, bundled
from loop.core.people.roster import set_roles
from loop.core.people.users import UserRole
from loop.review.verdict_files import ImportDefaults, take_file
from loop.run.store import open_store
from tests.ui.conftest import open_tab, rest, sign_in
from tests.ui.forked import serving

pytestmark = pytest.mark.slow

WHERE = """([control, message]) => {
  const pressed = document.querySelector(control).getBoundingClientRect();
  const told = document.querySelector(message).getBoundingClientRect();
  const apart = Math.max(told.top - pressed.bottom, pressed.top - told.bottom, 0);
  const seen = told.bottom <= innerHeight + 1 && told.top >= -1 && told.width > 0;
  return [apart, seen];
}"""
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
NEAR_PX = 160
"""A label, a box and its frame may lie between a control and what is said of it."""


@pytest.fixture(scope="module")
def judged(peopled, tmp_path_factory):
    """Return a demo with users and open verdicts, on the wording and the reference."""
    root = tmp_path_factory.mktemp("refusals") / "ws"
    shutil.copytree(peopled.root, root)
    workspace = WorkspacePaths(root)
    with open_store(workspace) as store:
        for number in (1, 2):
            given = bundled() / "labels" / "demo" / f"verdicts_{number}.yaml"
            take_file(
                workspace, store, given, ImportDefaults("Dr Reviewer", "demo_dev")
            )
    return workspace


@pytest.fixture(scope="module")
def url(judged):
    """Serve it for all tests that change nothing."""
    with serving(judged) as url:
        yield url


@pytest.fixture
def copied(judged, tmp_path):
    """Return a copy of its own for a test that changes something."""
    root = tmp_path / "ws"
    shutil.copytree(judged.root, root)
    return WorkspacePaths(root)


def refused(page, control, words, *, focus=True):
    """Press a control, and hold what is said, where, and where the focus is."""
    page.locator(control).first.scroll_into_view_if_needed()
    page.click(control)
    page.wait_for_selector(f".refusal:has-text({words!r})")
    assert page.locator(".refusal").count() == 1
    assert page.get_attribute(".refusal", "role") == "alert"
    # The page may still be moving towards it.
    rest(page, 300)
    apart, seen = page.evaluate(WHERE, [control, ".refusal"])
    assert apart <= NEAR_PX, f"{control}: said {apart} pixels away"
    assert seen, f"{control}: said out of sight"
    if focus:
        assert page.evaluate("document.activeElement.className") == "refusal"
        page.keyboard.press("Escape")
        assert page.locator(".refusal").count() == 0


def open_page(new_page, url, name, person="Dr Editor"):
    """Return a page of the workbench, opened by a person."""
    page = new_page()
    sign_in(page, url, person)
    open_tab(page, name)
    return page


def test_revise_says_what_is_missing(url, new_page):
    """Nothing ticked, no reason: and what was typed stays."""
    page = open_page(new_page, url, "Revise")
    page.wait_for_selector("#revise-build")
    refused(page, "#revise-build", "no verdict is ticked")
    refused(page, "#revise-correct", "no verdict on the reference is ticked")
    page.click("#revise-hand")
    page.wait_for_selector("#revise-draft h3")
    refused(page, "#revise-keep", "give a reason first")
    page.click("#revise-discard")
    refused(page, "#revise-really", "give a reason first")
    page.fill("#revise-guide textarea", "terms: [unfinished")
    page.click("#revise-save")
    page.wait_for_selector("#revise-note [role=alert]")
    assert page.input_value("#revise-guide textarea") == "terms: [unfinished"


def test_versions_says_what_is_missing(url, new_page):
    """An alias takes a name and a reason; what was typed stays."""
    page = open_page(new_page, url, "Versions", "Dr Approver")
    page.wait_for_selector("#alias-move")
    page.fill("#alias-name input, #alias-name textarea", "production")
    refused(page, "#alias-move", "a reason is missing")
    kept = page.input_value("#alias-name input, #alias-name textarea")
    assert kept == "production"


def test_files_says_what_is_missing(url, new_page):
    """A file, first of all."""
    page = open_page(new_page, url, "Files")
    for kind in ("Cohort", "Votes", "Verdicts"):
        page.get_by_role("tab", name=kind, exact=True).click()
        refused(page, f"#{kind.lower()}-check", "no file is chosen")


OTHER = (
    "#review-queue [data-label]:not([data-label=no_finding]):not([aria-current=true])"
)


def test_review_says_what_is_missing(copied, new_page):
    """Beside the control that was pressed, and what was typed stays."""
    with serving(copied) as url:
        page = open_page(new_page, url, "Review", "Dr Other Reviewer")
        page.wait_for_selector("[data-case-text]")
        other = page.locator(OTHER).first
        case, label = (other.get_attribute(f"data-{one}") for one in ("case", "label"))
        pair = f"#review-queue [data-case='{case}'][data-label='{label}']"
        page.click(pair)
        page.wait_for_selector(f"{pair}[aria-current=true]")
        rest(page)
        page.fill("#review-comment :is(textarea, input)", "seen before")
        page.click("#review-submit")
        page.wait_for_selector("#review-status .is-trouble:has-text('still missing')")
        focused = "document.activeElement.classList.contains('is-trouble')"
        page.wait_for_function(focused)
        assert page.input_value("#review-comment :is(textarea, input)") == "seen before"
        page.locator("#review-judgement input:visible").first.check()
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("#review-status:has-text('Saved')")
        rest(page)
        page.click(pair)
        page.wait_for_selector("#review-withdraw")
        refused(page, "#review-withdraw", "reason")


def test_readers_says_what_is_missing(copied, new_page):
    """A reason for what a panel decided; who publishes says whose cases, and why."""
    with serving(copied) as url:
        page = open_page(new_page, url, "Readers", "Dr Reviewer")
        page.get_by_text("Adjudicate", exact=True).click()
        page.wait_for_selector("#disputes [data-mark=present]")
        page.click("#disputes [data-mark=present]")
        page.wait_for_selector("#adjudicate-save:has-text('Save 1')")
        refused(page, "#adjudicate-save", "needs a reason")


ACTING = {
    "Review": ("#review-submit", "#review-reserve", "#review-next"),
    "Revise": ("#revise-build", "#revise-hand", "#revise-correct"),
    "Versions": ("#alias-move",),
    "Runs": ("#runs-ask", "#runs-start"),
    "Files": ("#cohort-check",),
}


def test_a_right_that_was_taken_away_is_told_at_the_control(copied, new_page):
    """Roles change while a page is open, whichever it is."""
    person, all_rights = "Dr Editor", [UserRole.EDITOR, UserRole.APPROVER]
    set_roles(copied, person, all_rights)
    with serving(copied) as url:
        page = new_page()
        sign_in(page, url, person)
        for name, controls in ACTING.items():
            open_tab(page, name)
            for control in controls:
                page.wait_for_selector(control, state="attached")
            page.evaluate(UNFOLD)
            set_roles(copied, person, [UserRole.READER])
            for control in controls:
                refused(page, control, "takes the role")
            set_roles(copied, person, all_rights)


def test_a_server_that_is_gone_is_told_and_the_form_stays(copied, new_page):
    """What was typed is still there when it comes back."""
    with serving(copied) as url:
        page = open_page(new_page, url, "Versions", "Dr Approver")
        page.wait_for_selector("#alias-move")
        page.fill("#alias-why input, #alias-why textarea", "passed on dev")
    refused(page, "#alias-move", "does not answer")
    kept = page.input_value("#alias-why input, #alias-why textarea")
    assert kept == "passed on dev"


def test_a_message_goes_with_the_next_thing_that_is_done(url, new_page):
    """An old refusal beside a new success would be believed."""
    page = open_page(new_page, url, "Versions", "Dr Approver")
    page.wait_for_selector("#alias-move")
    page.click("#alias-move")
    page.wait_for_selector(".refusal")
    page.click("#ledger-subject :is(input, textarea)")
    page.keyboard.press("Enter")
    page.wait_for_selector(".refusal", state="detached")


LATE = """const real = window.setTimeout;
window.setTimeout = (work, ms, ...more) => real(work, ms === 100 ? 2000 : ms, ...more);
"""


def test_a_message_does_not_take_the_focus_back(url, new_page):
    """On a busy page it is late, and somebody types elsewhere by then."""
    page = new_page()
    page.add_init_script(LATE)
    sign_in(page, url, "Dr Approver")
    open_tab(page, "Versions")
    page.wait_for_selector("#alias-move")
    page.click("#alias-move")
    page.wait_for_selector(".refusal")
    page.click("#ledger-subject :is(input, textarea)")
    page.wait_for_timeout(2500)
    page.keyboard.type("tiny")
    assert page.input_value("#ledger-subject :is(input, textarea)") == "tiny"
