"""Keys: of this page only, to be switched off, and nothing to a text that strays."""

import pytest
from playwright.sync_api import expect

from loop.ui.shortcuts import SHORTCUTS
from tests.ui.conftest import open_tab, press, rest, sign_in
from tests.ui.visits import enter, until

pytestmark = pytest.mark.slow

SHEET = "dialog#keys[open]"
SWITCH = f"{SHEET} input[type=checkbox]"
BUSY = """() => { setTimeout(() => {
  for (const end = performance.now() + 400; performance.now() < end;);
}, 5); }"""


def open_sheet(page):
    """Open the list of keys."""
    page.click("[data-help]")
    page.wait_for_selector(SHEET)


def asked(page):
    """Return the events that the page has sent since it was last asked."""
    sent = [url for url in page.asked if "/run/" in url]
    page.asked.clear()
    return sent


@pytest.mark.parametrize("name", ["Review", "Revise"])
def test_the_sheet_lists_the_keys_of_this_page_and_fits(shared_alone, new_page, name):
    """Those of other pages do nothing here."""
    page = new_page()
    enter(page, shared_alone, name)
    open_sheet(page)
    listed = set(page.locator(f"{SHEET} dd").all_inner_texts())
    wanted = {one.what for one in SHORTCUTS if one.group in (name, "Everywhere")}
    assert wanted <= listed
    assert not listed & {one.what for one in SHORTCUTS if one.what not in wanted}
    box = page.locator(SHEET).bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 800
    inside = "(one) => one.scrollHeight <= one.clientHeight + 1"
    assert page.locator(SHEET).evaluate(inside)


def test_letters_are_no_keys_for_whoever_switched_them_off(served, new_page):
    """For this person, on every page, also after a reload (WCAG 2.1.4)."""
    page = new_page()
    sign_in(page, served, "Dr Editor")
    open_tab(page, "Versions")
    open_sheet(page)
    assert page.is_checked(SWITCH)
    page.uncheck(SWITCH)
    page.wait_for_selector("[data-keys=off]")
    page.keyboard.press("Escape")
    press(page, "]")
    page.reload()
    page.wait_for_selector("#bar .who-name")
    page.wait_for_selector("[data-keys=off]")
    selected = '[role=tab][aria-selected=true]:has-text("Versions")'
    page.wait_for_selector(selected)
    press(page, "]")
    page.wait_for_timeout(300)
    assert page.locator(selected).count()
    other = new_page()
    sign_in(other, served, "Dr Reviewer")
    other.wait_for_selector("[data-keys=on]")


def test_a_busy_page_loses_no_letter_of_what_follows_a_key(served_alone, new_page):
    """The key for a text box was pressed in time; what comes after it is the text."""
    page = new_page()
    enter(page, served_alone, "Review")
    page.wait_for_selector("[data-case-text]")
    press(page, "1", "p", "t")
    for _ in range(5):
        page.evaluate("document.activeElement.blur()")
        page.fill("#review-phrase textarea, #review-phrase input", "")
        page.evaluate("document.activeElement.blur()")
        rest(page)
        page.keyboard.press("f")
        page.evaluate(BUSY)
        page.wait_for_timeout(120)
        page.keyboard.type("enlarged heart")
        typed = page.locator("#review-phrase textarea, #review-phrase input")
        assert typed.input_value() == "enlarged heart"
        assert page.is_checked("#review-action input[value=term]")


@pytest.mark.parametrize(
    "text", ["2 patchy shadowing at the base", "small left effusion", "[[]] pau 1 a"]
)
def test_a_text_dictated_into_the_page_does_nothing(shared_alone, new_page, text):
    """Dictation software types into whatever has the focus, faster than a hand."""
    page = new_page()
    enter(page, shared_alone, "Review")
    page.wait_for_selector("[data-case-text]")
    page.evaluate("document.activeElement.blur()")
    rest(page)
    before = page.inner_html("#tab-review")
    asked(page)
    page.keyboard.type(text, delay=5)
    page.wait_for_selector("#told:has-text('no text box is selected')")
    rest(page)
    assert asked(page) == []
    assert page.inner_html("#tab-review") == before
    checked = "document.querySelectorAll('#review-form input[type=radio]:checked')"
    assert not page.evaluate(f"[...{checked}].some(one => one.name === 'x')")


def test_no_bare_letter_submits_anything():
    """Letters stray; what is final takes Ctrl+Enter, or a button."""
    final = ("submit", "save", "publish", "commit", "-run", "start", "prune")
    letters = [one for one in SHORTCUTS if "+" not in one.key and one.key.isalnum()]
    assert [one for one in letters if any(word in one.target for word in final)] == []


def test_an_open_menu_closes_when_it_is_left_with_tab(shared_alone, new_page):
    """It would lie over what comes next."""
    page = new_page()
    enter(page, shared_alone, "Versions")
    page.wait_for_selector("#diff-before input")
    page.focus("#diff-before input")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("ul[role=listbox], .options")
    page.keyboard.press("Tab")
    until(lambda: not page.locator("#diff-before ul[role=listbox]").count())
    assert page.evaluate("document.activeElement.closest('#diff-after') !== null")


def test_the_choices_of_one_question_are_one_group_with_a_name(shared_alone, new_page):
    """One stop for Tab, arrow keys between them, and a screen reader says of what."""
    page = new_page()
    enter(page, shared_alone, "Review")
    page.wait_for_selector("[data-case-text]")
    page.wait_for_selector("#review-judgement[role=radiogroup]")
    rest(page)
    group = page.get_by_role("radiogroup", name="What is wrong")
    radios = group.get_by_role("radio")
    assert len({one.get_attribute("name") for one in radios.all()}) == 1
    radios.nth(0).check()
    rest(page)
    page.keyboard.press("ArrowRight")
    expect(radios.nth(1)).to_be_checked()
    assert not radios.nth(0).is_checked()


def test_the_first_tab_stop_leads_past_the_header(shared_alone, new_page):
    """A skip link (WCAG 2.4.1)."""
    page = new_page()
    enter(page, shared_alone, "Overview")
    page.wait_for_selector("table.gates")
    rest(page)
    page.evaluate("document.activeElement.blur()")
    for _ in range(6):
        press(page, "Tab")
        if page.evaluate("document.activeElement.classList.contains('skip')"):
            break
    press(page, "Enter", "Tab")
    assert page.evaluate("document.activeElement.closest('#pages') !== null")
