"""A text is kept however it came into its box, and is there again after a reload."""

import json

import pytest

from tests.ui.conftest import open_tab, rest, sign_in

pytestmark = pytest.mark.slow

WORDS = "Small left effusion, as on the lateral view"
WAYS = {
    "typed": "",
    "dictated": """(box, text) => {
      box.focus();
      document.execCommand('insertText', false, text);
    }""",
    "pasted": """(box, text) => {
      box.focus();
      const data = new DataTransfer();
      data.setData('text/plain', text);
      const options = {clipboardData: data, bubbles: true, cancelable: true};
      if (box.dispatchEvent(new ClipboardEvent('paste', options)))
        document.execCommand('insertText', false, text);
    }""",
    "dropped": """(box, text) => {
      box.value = text;
      const options = {inputType: 'insertFromDrop', bubbles: true};
      box.dispatchEvent(new InputEvent('input', options));
    }""",
    "filled in": """(box, text) => {
      box.value = text;
      for (const kind of ['input', 'change'])
        box.dispatchEvent(new Event(kind, {bubbles: true}));
    }""",
}


def bring(page, selector, way):
    """Bring the words into a box, and wait until the server has them."""
    box = page.locator(selector)
    box.scroll_into_view_if_needed()
    # What is typed goes to the server in pieces; the last one is whole.
    with page.expect_response(_carries_the_words) as answer:
        if way == "typed":
            box.focus()
            page.keyboard.type(WORDS)
        else:
            box.evaluate(WAYS[way], WORDS)
    assert answer.value.ok


def _carries_the_words(answer):
    sent = answer.request.post_data or ""
    return "/gradio_api/run/" in answer.url and json.dumps(WORDS) in sent


def open_review(page, *, again=False):
    """Open the page Review with a judgement chosen, so that the note is shown."""
    page.wait_for_selector("[data-case-text]")
    page.wait_for_selector("#review-comment textarea, #review-comment input")


def open_guide(page, *, again=False):
    """Open an unchanged draft on the page Revise; once begun, it is there by itself."""
    if not again:
        page.click("[data-do=hand]")
    page.wait_for_selector("#revise-draft h3")


def open_instructions(page, *, again=False):
    """Open the general instructions of an unchanged draft."""
    open_guide(page, again=again)
    page.click("#revise-label input")
    page.get_by_role("option", name="General instructions", exact=True).click()
    page.wait_for_selector("#revise-parts .frozen")


def open_dispute(page, *, again=False):
    """Open the part of the panel, with a decision to give a reason for."""
    page.get_by_text("Adjudicate", exact=True).click()
    page.wait_for_selector("#disputes [data-mark=present]")


BOXES = {
    "a note": ("Review", open_review, "#review-comment :is(textarea, input)"),
    "a guide": ("Revise", open_guide, "#revise-guide textarea"),
    "instructions": ("Revise", open_instructions, "#revise-guide textarea"),
    "a reason": ("Revise", open_guide, "#revise-why textarea"),
    "a panel's reason": ("Readers", open_dispute, "#adjudicate-why textarea"),
}


SOME_WAYS = {
    "a guide": ("typed", "pasted"),
    "instructions": ("dictated",),
    "a reason": ("filled in",),
    "a panel's reason": ("dropped",),
}
"""Ways that a box is asked about; of others every one. One listener serves all."""


@pytest.mark.parametrize("box", BOXES)
def test_a_text_is_kept_however_it_came(served, new_page, box):
    """Typed, pasted, dropped, dictated, filled in by the browser."""
    tab, prepare, selector = BOXES[box]
    ways = SOME_WAYS.get(box, tuple(WAYS))
    page = new_page()
    sign_in(page, served, "Dr Editor")
    for turn, way in enumerate(ways):
        open_tab(page, tab)
        prepare(page, again=turn > 0)
        page.wait_for_selector(selector)
        rest(page)
        if page.input_value(selector):
            page.locator(selector).evaluate("(box) => box.select()")
        bring(page, selector, way)
        page.reload()
        page.wait_for_selector("#bar .who-name")
        open_tab(page, tab)
        prepare(page, again=True)
        page.wait_for_function(
            "([selector, words]) => document.querySelector(selector)?.value === words",
            arg=[selector, WORDS],
        )
        # Empty for the next way.
        page.locator(selector).evaluate("(box) => { box.focus(); box.select(); }")
        with page.expect_response("**/gradio_api/run/**"):
            page.keyboard.press("Delete")
        rest(page)


def test_a_box_that_is_left_at_once_is_kept(served, new_page):
    """On blur, without a pause."""
    page = new_page()
    sign_in(page, served, "Dr Editor")
    open_tab(page, "Revise")
    open_guide(page)
    box = page.locator("#revise-why textarea")
    box.focus()
    with page.expect_response("**/gradio_api/run/**"):
        page.keyboard.insert_text(WORDS)
        box.evaluate("(box) => box.blur()")
    page.reload()
    page.wait_for_function(
        "words => document.querySelector('#revise-why textarea')?.value === words",
        arg=WORDS,
    )
