"""From a failing case to the next version, in a browser, as the manual promises it."""

import re

import httpx
import pytest
import yaml
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.paths import bundled
from loop.core.people.roster import disable_user
from loop.labels.cohort import iter_items, read_cohort
from loop.ui.app import BUILDERS
from tests.ui.conftest import PASSWORD, open_tab, press, sign_in
from tests.ui.test_review_browser import case_of, press_on, verdicts

pytestmark = pytest.mark.slow

LABEL = "Cardiomegaly"


def known_terms():
    """Return what the demo's reviewers asked for: case to terms of the label."""
    source = bundled() / "labels" / "demo" / "verdicts_1.yaml"
    terms = {}
    for one in yaml.safe_load(source.read_text("utf-8"))["verdicts"]:
        if one["label"] == LABEL.lower():
            for case in one.get("cases", ()):
                terms.setdefault(case, []).extend(one.get("terms", ()))
    return terms


def standing_in(term, text):
    """Whether the words of a term stand in a text in their order, near each other."""
    words = (re.escape(word) for word in term.replace("...", " ").split())
    return re.search(r"\b[\s\w]{0,20}".join(words), text, re.IGNORECASE)


def gate_row(page):
    """Return the row of the label in the gate table, as one line."""
    row = page.locator("table.gates tbody tr", has_text=LABEL)
    return " ".join(row.inner_text().split())


def test_a_clinician_makes_the_next_version_by_keyboard(demo, served, new_page):
    """Sign in, judge five cases, build, check, commit: gate and ledger have moved.

    Every step is a key; the mouse is not there.
    """
    page = new_page()
    sign_in_by_keyboard(page, served)
    before = gate_row(page)
    assert "FAIL" in before
    judge_five(page, demo)
    kept = [one.verdict for one in verdicts(demo.root)]
    assert [one.label for one in kept] == ["cardiomegaly"] * 5
    assert {one.reviewer for one in kept} == {"Dr Editor"}
    commit_by_keyboard(page)
    turn_to(page, "Overview", "[")
    page.wait_for_selector("#overview .eyebrow:has-text('extractor@v2')")
    after = gate_row(page)
    assert after != before
    assert "PASS" in after
    assert page.complaints == []
    history = CliRunner().invoke(
        app, ["history", "extractor", "--workspace", str(demo.root)]
    )
    assert "Dr Editor" in history.output
    assert "enlarged hearts were missed" in history.output


def sign_in_by_keyboard(page, url):
    """Sign an editor in and wait for the gates."""
    page.goto(f"{url}/sign-in")
    page.focus("input[name=name]")
    page.keyboard.type("Dr Editor")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("table.gates")


def judge_five(page, workspace):
    """Go to Review, take one label, and ask for a term in five of its cases."""
    cohort = read_cohort(workspace, "demo_dev")
    texts = {one.id: one.variables["text"] for one in iter_items(workspace, cohort)}
    terms, keys = known_terms(), page.keyboard
    press(page, "]")
    page.wait_for_selector("[data-case-text]")
    press(page, "l")
    keys.type(LABEL)
    keys.press("Enter")
    page.wait_for_function(
        "label => document.querySelector('#review-case h2').innerText.includes(label)",
        arg=LABEL,
    )
    keys.press("Escape")
    judged = 0
    while judged < 5:
        case = re.search(r"demo-dev-\d+", page.inner_text("#review-case"))[0]
        fitting = [t for t in terms.get(case, ()) if standing_in(t, texts[case])]
        if not fitting:
            press_on(page, "j")
            continue
        press(page, "1", "p", "t", "f")
        keys.type(fitting[0])
        press_on(page, "Control+Enter")
        judged += 1


def commit_by_keyboard(page):
    """Go to Revise, make a draft of all verdicts, check and commit it."""
    keys = page.keyboard
    turn_to(page, "Revise", "]")
    page.wait_for_selector("[data-all=wording]")
    tab_to(page, "[data-all=wording]")
    keys.press("Space")
    tab_to(page, "#revise-build")
    keys.press("Enter")
    page.wait_for_selector("#revise-draft .diff")
    tab_to(page, "#revise-run")
    keys.press("Enter")
    page.wait_for_selector("#revise-check .word")
    assert "MAY BE COMMITTED" in page.inner_text("#revise-check .word").upper()
    press(page, "W")
    keys.type("enlarged hearts were missed")
    tab_to(page, "#revise-commit")
    keys.press("Enter")
    page.wait_for_selector("#revise-said .notice")
    assert "is extractor@v2 now" in page.inner_text("#revise-said")


def turn_to(page, name, key):
    """Press the key for the page before or after until the page `name` is open."""
    opened = page.locator('#pages [role="tab"][aria-selected="true"]').first
    for _ in BUILDERS:
        if opened.inner_text() == name:
            return
        press(page, key)
    assert opened.inner_text() == name


def tab_to(page, selector):
    """Press Tab until `selector` has the focus, as somebody without a mouse does."""
    for _ in range(150):
        if page.evaluate(
            "selector => document.activeElement.closest(selector) !== null", selector
        ):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no way to {selector} by keyboard")


def test_an_ended_session_is_said_and_loses_nothing(demo, served, new_page):
    """The form that was begun is there after signing in again."""
    page = new_page()
    sign_in(page, served, "Dr Reviewer")
    open_tab(page, "Review")
    page.wait_for_selector("[data-case-text]")
    case = case_of(page)
    press(page, "1")
    press(page, "w")
    words = "seen before the session ended"
    with page.expect_response(lambda one: words in (one.request.post_data or "")):
        page.keyboard.type(words)
    page.context.clear_cookies()
    page.keyboard.press("Escape")
    press(page, "j")
    page.wait_for_selector("dialog#ended[open]")
    assert "is kept" in page.inner_text("dialog#ended")
    sign_in(page, served, "Dr Reviewer")
    page.wait_for_selector("[data-case-text]")
    assert case_of(page) == case
    note = page.locator("#review-comment textarea, #review-comment input")
    assert note.input_value() == words


def test_somebody_who_was_disabled_gets_no_further(demo, served, new_page):
    """A person who leaves the team leaves at once, not at the next sign-in."""
    page = new_page()
    sign_in(page, served, "Dr Reviewer")
    page.wait_for_selector("table.gates")
    disable_user(demo, "Dr Reviewer")
    jar = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    answer = httpx.post(
        f"{served}/gradio_api/run/open",
        json={"data": []},
        cookies=jar,
        headers={"origin": served},
    )
    assert answer.status_code == 401


def test_a_reload_comes_back_to_the_same_page(shared, new_page):
    """Nobody looks for where they were."""
    page = new_page()
    sign_in(page, shared, "Dr Approver")
    open_tab(page, "Versions")
    page.wait_for_selector("svg:has-text('macro-F1')")
    page.reload()
    page.wait_for_selector("[role=tab][aria-selected=true]:has-text('Versions')")
    page.wait_for_selector("svg:has-text('macro-F1')")
    assert page.complaints == []
