"""The page Review in a real browser: by keyboard, by two people, by a wrong person."""

import httpx
import pytest

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.review.status import read_kept
from loop.run.store import open_store
from loop.run.task import run_prompt
from tests.review.scenes import add_prompt
from tests.servers.fault_server import LABELS, FaultServer, text_of
from tests.ui.conftest import PASSWORD, barriers, open_tab, press, rest, sign_in
from tests.ui.forked import serving
from tests.ui.visits import until

pytestmark = pytest.mark.slow

MARK = """(words) => {
  const walk = document.createTreeWalker(
    document.querySelector('[data-case-text]'), NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const at = node.data.indexOf(words);
    if (at < 0) continue;
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + words.length);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return true;
  }
  return false;
}"""
EVENTS = (
    *("see_review", "review_choose", "review_turn", "review_narrow", "review_renew"),
    *("review_keep", "review_take", "review_submit", "review_reserve"),
    *("review_change", "review_withdraw", "review_undo", "review_offer"),
    *("review_alike", "review_together", "review_trace", "review_phrase"),
    *("review_try", "review_try_poll"),
)


def open_review(page):
    """Choose the page and wait for its first case, and for its form to be filled."""
    page.wait_for_selector("#bar .who-name")
    open_tab(page, "Review")
    page.wait_for_selector("[data-case-text]")
    rest(page)


def case_of(page):
    """Return which case is open, and where it stands."""
    return page.inner_text(".case-name")


def press_on(page, key):
    """Press a key that opens another pair, and wait for it."""
    before = case_of(page)
    press(page, key)
    page.wait_for_function(
        "before => document.querySelector('.case-name').innerText !== before",
        arg=before,
    )


def wait_for_line(page, words):
    """Wait until the line under the form says so."""
    page.wait_for_function(
        "words => document.querySelector('#review-status').innerText.includes(words)",
        arg=words,
    )


def verdicts(root):
    """Return what was kept, newest last."""
    workspace = WorkspacePaths(root)
    with open_store(workspace) as store:
        return read_kept(store, workspace, "demo_dev")


def test_five_cases_are_judged_by_keyboard_alone(demo, served_alone, new_page):
    """Hours of work need no mouse."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    for number in range(5):
        press(page, "1" if number % 2 else "3")
        for _ in range(2):
            press(page, "m")
        wait_for_line(page, "Kept")
        if number == 0:
            press(page, "w")
            page.keyboard.type("j and k are words here")
            press_on(page, "Control+Enter")
        else:
            press_on(page, "Control+Enter")
        assert page.locator("#review-judgement input:checked").count() == 0
        assert page.evaluate("document.activeElement.tagName") != "TEXTAREA"
    said = [one.verdict for one in verdicts(demo.root)]
    assert len({(one.case_ids, one.label) for one in said}) == 5
    assert {one.severity.value for one in said} == {"minor"}
    assert said[0].comment == "j and k are words here"
    assert page.complaints == []


def test_marked_words_become_an_exemplar(demo, served_alone, new_page):
    """The phrase is taken from the text; the statement is one's own."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    words = " ".join(page.inner_text("[data-case-text]").split(".")[0].split()[:2])
    assert page.evaluate(MARK, words)
    for key in ("1", "e", "g"):
        press(page, key)
    page.wait_for_function(
        "w => document.querySelector('#review-phrase textarea').value === w", arg=words
    )
    press(page, "i")
    page.keyboard.type(f"Today {words} again.")
    wait_for_line(page, "Kept")
    press_on(page, "Control+Enter")
    (example,) = verdicts(demo.root)[-1].verdict.edits.exemplars
    assert (example.evidence, example.text) == (words, f"Today {words} again.")


def test_marked_words_show_whom_they_would_change_and_fill_the_form(
    demo, served_alone, new_page
):
    """By keyboard alone once they are marked; other words are asked about at once."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    press(page, "b")
    page.wait_for_selector("#review-phrases [role=status]")
    text = page.inner_text("[data-case-text]").split(".")[0].split()
    first, second = " ".join(text[:2]), " ".join(text[:3])
    assert page.evaluate(MARK, first)
    press(page, "b")
    page.wait_for_selector("#review-phrases [data-part=term]:focus")
    assert first in page.inner_text("#review-phrases h3")
    press(page, "B")
    assert page.get_attribute("#review-phrases details", "open") is not None
    assert page.evaluate(MARK, second)
    page.wait_for_function(
        "w => document.querySelector('#review-phrases h3').innerText.includes(w)",
        arg=second,
    )
    page.wait_for_selector("#review-phrases [data-part=term]:focus")
    press(page, "Enter")
    wait_for_line(page, "Filled in, not submitted")
    assert page.is_checked("#review-action input[value=term]")
    assert page.input_value("#review-phrase textarea") == second
    press_on(page, "Control+Enter")
    assert verdicts(demo.root)[-1].verdict.edits.terms == (second,)
    assert page.complaints == []


@pytest.fixture
def asked(workspace, tmp_path):
    """Review the answers of a server; return it and the address of the workbench."""
    file = tmp_path / "dev.csv"
    file.write_text(f"case_id,text,edema,fracture\nf1,{text_of(1)},1,1\n")
    options = ImportOptions(name="dev", role="dev", source="synthetic", licence="-")
    import_cohort(workspace, file, options, actor=Actor(name="Dr A. Example"))
    guides = [Guide(label=one, name=one, definition="Any.") for one in LABELS]
    version = add_prompt(workspace, 1, guides=tuple(guides))
    with FaultServer() as server:
        run_prompt(workspace, version.ref, "dev", engine=f"openai:tiny@{server.url}")
        with serving(workspace) as url:
            yield server, url


def test_a_try_of_a_silent_server_is_stopped_and_made_again(asked, new_page):
    """Nothing hangs: the page goes on while the server is asked, and afterwards."""
    server, url = asked
    page = new_page()
    page.goto(url)
    open_review(page)
    press(page, "T")
    page.get_by_text("Still missing: what is wrong").wait_for()
    for key in ("1", "t", "f"):
        press(page, key)
    page.keyboard.type("quokka")
    wait_for_line(page, "Kept")
    press(page, "Escape")
    rest(page)
    server.plan = lambda number: ("hang",) * 99
    press(page, "T")
    page.get_by_text("Asking openai:tiny").wait_for()
    until(lambda: server.now)
    press(page, "m")
    assert page.is_checked("#review-severity input[value=major]")
    press(page, "T")
    page.get_by_text("Stopped.").wait_for()
    until(lambda: not server.now)
    server.plan = lambda number: ()
    press(page, "T")
    page.wait_for_selector("#review-tried section")
    told = page.inner_text("#review-tried")
    assert "tiny@draft:unsaved on case f1" in told and "right is present" in told
    assert page.complaints == []


def test_a_reload_in_the_middle_of_a_form_loses_nothing(served_alone, new_page):
    """Case and form come back as they were."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    press_on(page, "j")
    press_on(page, "j")
    before = case_of(page)
    press(page, "2")
    press(page, "u")
    press(page, "w")
    with page.expect_response(lambda r: "half a sen" in (r.request.post_data or "")):
        page.keyboard.type("half a sen")
    page.reload()
    page.wait_for_selector("[data-case-text]")
    page.wait_for_function(
        "document.querySelector('#review-comment textarea').value === 'half a sen'"
    )
    assert case_of(page) == before
    assert page.is_checked("#review-judgement input[value=reference_wrong]")
    assert page.is_checked("#review-value input[value=uncertain]")
    assert page.evaluate("[...Object.keys(localStorage)]") == []


def test_a_key_undoes_the_last_submission(demo, served_alone, new_page):
    """A slip is put right where it happened; no bare letter submits."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    first = case_of(page)
    press(page, "1")
    press(page, "w")
    page.keyboard.type("on purpose")
    page.keyboard.press("Escape")
    wait_for_line(page, "Kept")
    press(page, "s")
    # A letter that is no key is taken for the begin of a text.
    page.wait_for_timeout(1000)
    press_on(page, "Control+Enter")
    wait_for_line(page, "Saved")
    assert len(verdicts(demo.root)) == 1
    press_on(page, "z")
    wait_for_line(page, "Undone")
    assert case_of(page) == first
    assert page.is_checked("#review-judgement input[value=model_wrong]")
    assert page.input_value("#review-comment textarea") == "on purpose"
    assert [one.state.value for one in verdicts(demo.root)] == ["withdrawn"]


def test_the_likely_correction_is_filled_in_by_one_key(demo, served_alone, new_page):
    """And submitted by another, after a look."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    press(page, "y")
    wait_for_line(page, "not submitted")
    assert page.is_checked("#review-judgement input[value=model_wrong]")
    assert not page.is_visible("#review-suggested")
    assert verdicts(demo.root) == ()
    press_on(page, "Control+Enter")
    (said,) = [one.verdict for one in verdicts(demo.root)]
    assert said.correct_value is not None
    assert (said.severity, said.context) == (None, None)


def test_no_finding_offers_only_what_is_accepted(served_alone, new_page):
    """What the server would refuse is not on the screen; one key leads to the label."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    page.click("#review-label input")
    page.get_by_role("option", name="No Finding").click()
    page.wait_for_selector("[data-derived]")
    shown = "[...document.querySelectorAll('#review-judgement input')].filter((one) => "
    shown += "one.getClientRects().length).map((one) => one.value)"
    assert page.evaluate(shown) == ["reference_wrong", "source_text_defect"]
    press(page, "1")
    assert page.locator("#review-judgement input:checked").count() == 0
    press_on(page, "v")
    assert "No Finding" not in case_of(page)
    assert len(page.evaluate(shown)) == 4


def wait_for_other(page, where, text):
    """Wait until something says something else."""
    page.wait_for_function(
        "([where, text]) => document.querySelector(where).innerText !== text",
        arg=[where, text],
    )


def test_a_filter_is_one_request(served_alone, new_page):
    """By mouse, by keyboard, and none when a menu is merely left."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)

    def asked():
        rest(page)
        found = [url for url in page.asked if "/gradio_api/run/" in url]
        page.asked.clear()
        return len(found)

    asked()
    head = ".queue-head b"
    every = page.inner_text(head)
    page.click("#review-kind input")
    page.get_by_role("option", name="False positive").click()
    wait_for_other(page, head, every)
    assert asked() == 1
    some = page.inner_text(head)
    press(page, "l")
    page.keyboard.type("Emphysema")
    page.keyboard.press("Enter")
    wait_for_other(page, head, some)
    assert asked() == 1
    page.focus("#review-label input")
    for _ in range(4):
        page.keyboard.press("Tab")
    assert asked() == 0


def test_tab_goes_through_the_page_in_the_order_in_which_it_is_read(
    served_alone, new_page
):
    """Filters, list, case, form; each question of the form is one stop."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    page.focus("#review-search input, #review-search textarea")
    stops = ("review-filters", "review-list", "review-middle", "review-right")
    where = (
        "(stops) => stops.find((id) => document.activeElement.closest('#' + id)) || ''"
    )
    seen, fields = [], []
    for _ in range(80):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(where, list(stops)))
        fields.append(
            page.evaluate("document.activeElement.closest('fieldset')?.id || ''")
        )
        if page.evaluate("document.activeElement.id") == "review-submit":
            break
    order = [stop for stop in seen if stop]
    assert order == sorted(order, key=stops.index)
    assert set(order) == set(stops)
    assert [one for one in fields if one] == ["review-judgement", "review-value"]


def test_a_link_opens_its_pair_after_signing_in(served, new_page):
    """A colleague gets an address and is there; a reload goes on from there."""
    page = new_page()
    address = "/?case=demo-dev-015&label=no_finding&prompt=extractor&cohort=demo_dev"
    page.goto(f"{served}{address}")
    page.fill("input[name=name]", "Dr Reviewer")
    page.fill("input[name=password]", PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_selector("[data-case-text]")
    assert "demo-dev-015" in case_of(page) and "No Finding" in case_of(page)
    assert "case=" not in page.url
    press_on(page, "j")
    before = case_of(page)
    page.reload()
    page.wait_for_selector("[data-case-text]")
    assert case_of(page) == before


def test_one_verdict_is_given_on_ticked_pairs(demo, served_alone, new_page):
    """The list shows each phrase in its sentence; what is not ticked is left out."""
    page = new_page()
    page.goto(f"{served_alone}/?case=demo-dev-042&label=emphysema")
    page.wait_for_selector("#review-alike-list")
    press(page, "1")
    press(page, "a")
    page.click("#review-alike-list")
    page.wait_for_selector("[data-together]")
    page.locator("[data-together] input").first.uncheck()
    page.click("#review-together")
    wait_for_line(page, "and 1 more case.")
    (one,) = verdicts(demo.root)
    assert len(one.verdict.case_ids) == 2
    press(page, "z")
    wait_for_line(page, "Undone on 2 cases")


def test_the_page_holds_at_the_width_of_a_telephone(served_alone, new_page):
    """Nothing scrolls sideways and nothing lies over the form."""
    page = new_page({"width": 400, "height": 850})
    page.goto(served_alone)
    open_review(page)
    press(page, "e")
    page.wait_for_selector("#review-paraphrase textarea")
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    covered = """() => [
      ...document.querySelectorAll('#review-right :is(label, button)')
    ].filter((one) => one.getClientRects().length)
      .filter((one) => {
        one.scrollIntoView({block: 'center'});
        const box = one.getBoundingClientRect();
        const top = document.elementFromPoint(
          box.x + box.width / 2, box.y + box.height / 2);
        return top && !one.contains(top) && !top.contains(one);
      }).map((one) => one.innerText)"""
    assert page.evaluate(covered) == []


def test_hidden_fields_follow_the_choice(served_alone, new_page):
    """Only what matters is on the screen, at once and without the server."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    assert not page.is_visible("#review-phrase")
    assert not page.is_visible("#review-action")
    assert page.get_attribute("#review-more", "aria-expanded") == "false"
    press(page, "c")
    assert page.get_attribute("#review-more", "aria-expanded") == "true"
    assert page.is_visible("#review-phrase") and page.is_visible("#review-rule")
    assert not page.is_visible("#review-paraphrase")
    press(page, "E")
    assert page.is_visible("#review-paraphrase")
    press(page, "2")
    assert not page.is_visible("#review-action")
    press(page, "0")


def test_two_reviewers_at_once_keep_both_verdicts(demo, served, new_page):
    """Two browsers, one pair: nobody overwrites anybody."""
    pages = [new_page(), new_page()]
    for page, name in zip(pages, ("Dr Reviewer", "Dr Other Reviewer"), strict=True):
        sign_in(page, served, name)
        open_review(page)
    first, second = pages
    assert case_of(first) == case_of(second)
    press(first, "r")
    wait_for_line(first, "Reserved by you")
    press(first, "1")
    press(second, "3")
    press_on(first, "Control+Enter")
    press_on(second, "Control+Enter")
    kept = verdicts(demo.root)
    assert len(kept) == 2
    assert len({one.verdict.case_ids for one in kept}) == 1
    assert {one.verdict.reviewer for one in kept} == {
        "Dr Reviewer",
        "Dr Other Reviewer",
    }


def test_a_search_is_never_in_an_address(served_alone, new_page):
    """What is looked for may be clinical text."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    every = page.inner_text(".queue-head b")
    press(page, "/")
    page.keyboard.type("pneumothorax")
    page.keyboard.press("Enter")
    wait_for_other(page, ".queue-head b", every)
    assert "pneumothorax" in page.inner_text("[data-case-text]").casefold()
    assert not any("pneumothorax" in url for url in page.asked)
    assert not any(
        url for url in page.asked if not url.startswith((served_alone, "data:"))
    )


def test_a_key_opens_the_trace_of_the_open_case_and_folds_it_up(shared_alone, new_page):
    """Nothing of it is in the address, and a press too many asks for nothing."""
    page = new_page()
    page.goto(shared_alone)
    open_review(page)
    rest(page)
    address = page.url
    press(page, "s")
    page.wait_for_selector("section.trace")
    said = page.inner_text("section.trace")
    assert "as it was sent" in said and "What the reader made of it" in said
    assert page.inner_text("[data-case-text]").split("\n")[-1] in said
    assert page.url == address
    press(page, "s")
    page.wait_for_selector("section.trace", state="detached")
    assert page.complaints == []


def test_the_key_of_a_trace_does_nothing_for_a_mere_reader(shared, new_page):
    """Who labels blind has no page with a model's answers, and asks for none."""
    page = new_page()
    sign_in(page, shared, "Dr Reader")
    rest(page)
    press(page, "s", "t", "u")
    rest(page)
    assert not any("review_trace" in one for one in page.asked)
    assert page.locator(".trace").count() == 0


@pytest.mark.parametrize("name", EVENTS)
def test_a_mere_reader_reaches_no_event_of_the_page(shared, new_page, name):
    """Who labels blind gets neither case nor answer, by hand either."""
    page = new_page()
    sign_in(page, shared, "Dr Reader")
    jar = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    answer = httpx.post(
        f"{shared}/gradio_api/run/{name}",
        json={"data": [None] * 24, "session_hash": "x"},
        cookies=jar,
        headers={"origin": shared},
    )
    assert answer.status_code == 500
    assert "takes the role" in answer.text
    assert "demo-dev" not in answer.text


def test_no_serious_barrier(served_alone, new_page):
    """Readable for everyone, in both themes and sizes, with the whole form open."""
    page = new_page()
    page.goto(served_alone)
    open_review(page)
    press(page, "o")
    press(page, "e")
    page.wait_for_selector("#review-wide[aria-pressed=true]")
    assert page.evaluate(MARK, page.inner_text("[data-case-text]").split()[0])
    press(page, "b")
    page.click("#review-phrase-cases")
    assert barriers(page) == []
