"""The page Readers in a real browser: by keyboard, for each role, and against hands."""

import json

import httpx
import pytest

from loop.core.ledger import Actor, read_ledger
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.reference import read_reference
from loop.review.reading.answers import complete_case, read_answers, read_comment
from loop.review.reading.assignment import read_assignment, reading_order
from loop.run.store import open_store
from tests.ui.conftest import barriers, open_tab, sign_in
from tests.ui.forked import serving
from tests.ui.visits import choose_cohort, enter, until

pytestmark = pytest.mark.slow

COHORT = "demo_dev"
HOSTILE = (
    "<script>window.hit = 1</script> <img src=x onerror='window.hit = 1'> **md** "
    "{{ 7 * 7 }} ${window.hit = 1} `x` \x1b[31mred \u202eabc\x00"
)


BUSY = """() => setTimeout(() => {
  for (const end = performance.now() + 500; performance.now() < end;);
})"""


def open_part(page, name):
    """Choose a part of the page."""
    page.locator("#readers-part").get_by_text(name, exact=True).click()


def kept(workspace, reader, cohort=COHORT):
    """Return what the store holds of a reader, as another process sees it."""
    assignment = read_assignment(workspace, cohort)
    with open_store(workspace) as store:
        return read_answers(store, assignment, reader)


def order(workspace, reader, cohort=COHORT):
    """Return the cases in the order of a reader."""
    return reading_order(read_assignment(workspace, cohort).cohort, reader)


def given(page):
    """Return the labels with a value on the sheet, as the browser shows them."""
    rows = page.locator("#reading-sheet [data-row].is-given").all()
    return {
        row.get_attribute("data-row"): row.locator("input:checked").get_attribute(
            "value"
        )
        for row in rows
    }


def wait_for_case(page, case):
    """Wait until a case is before the eyes."""
    page.wait_for_selector(f"#reading-sheet [data-case='{case}']")


def label(page):
    """Open the sheet as it is opened."""
    open_tab(page, "Readers")
    page.wait_for_selector("#reading-sheet [data-row]")


def press(page, *keys):
    """Press keys as fast as a hand can; what is faster still is taken for a text."""
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(70)


def test_three_cases_by_keyboard_only_and_faster_than_the_server(
    demo, served, new_page
):
    """What is typed while a case is on its way is meant for that case."""
    page = new_page()
    sign_in(page, served, "Dr Reader")
    label(page)
    first, second, third, *_ = order(demo, "Dr Reader")
    page.locator("#reading-sheet .reading-name").first.click()
    press(page, "p", "ArrowDown", "u", "5", "p", "b")
    # A page that is busy comes late to what was typed, and takes it in its order.
    page.evaluate(BUSY)
    press(page, "j", "ArrowDown", "p", "b", "j", "a")
    wait_for_case(page, third)
    until(lambda: kept(demo, "Dr Reader").get(third))
    found = kept(demo, "Dr Reader")
    marked = {case: _not_absent(values) for case, values in found.items()}
    assert marked == {
        first: {
            "atelectasis": "present",
            "consolidation": "uncertain",
            "pleural_effusion": "present",
        },
        second: {"consolidation": "present"},
        third: {},
    }
    assert [len(found[case]) for case in (first, second, third)] == [20, 20, 1]
    assert page.complaints == []


def _not_absent(values):
    return {name: value for name, value in values.items() if value != "absent"}


def test_back_a_change_and_a_reload(demo, served, new_page):
    """A reload shows what was kept; going back shows one's own answers."""
    page = new_page()
    sign_in(page, served, "Dr Reader")
    label(page)
    first, second, *_ = order(demo, "Dr Reader")
    page.locator("#reading-sheet .reading-name").first.click()
    press(page, "p", "b", "j")
    wait_for_case(page, second)
    press(page, "p", "k")
    wait_for_case(page, first)
    assert given(page)["atelectasis"] == "present"
    page.locator("[data-row=atelectasis] .is-uncertain").click()
    until(lambda: kept(demo, "Dr Reader")[first]["atelectasis"] == "uncertain")
    press(page, "j")
    wait_for_case(page, second)
    assert given(page) == {"atelectasis": "present"}
    page.reload()
    wait_for_case(page, second)
    assert given(page) == {"atelectasis": "present"}
    page.locator("[data-row=atelectasis] [data-take-back]").click()
    until(lambda: not kept(demo, "Dr Reader").get(second))
    page.wait_for_function(
        "document.querySelector('#reading-status').innerText.includes('20 of 20')"
    )


def test_an_answer_that_was_not_kept_is_not_shown_as_given(demo, served, new_page):
    """A reader must not go on believing that something was saved."""
    page = new_page()
    sign_in(page, served, "Dr Reader")
    label(page)
    page.route("**/gradio_api/**", lambda route: route.abort())
    page.locator("[data-row=edema] .is-present").click()
    page.wait_for_selector("[data-row=edema][data-state=failed]")
    assert given(page) == {}
    # Another tab: Gradio itself loads this one again as soon as there is a server.
    page.close()
    page = page.context.new_page()
    page.goto(served)
    label(page)
    assert given(page) == {}
    page.locator("[data-row=edema] .is-present").click()
    until(lambda: kept(demo, "Dr Reader"))


def test_two_readers_do_not_see_each_other(demo, served, new_page):
    """Each has an order of their own, and their answers stay apart."""
    pages = {}
    for name in ("Dr Reader", "Dr Second Reader"):
        pages[name] = new_page()
        sign_in(pages[name], served, name)
        label(pages[name])
        pages[name].locator("[data-row=edema] .is-present").click()
    for name, page in pages.items():
        until(lambda name=name: kept(demo, name))
        assert list(kept(demo, name)) == [order(demo, name)[0]]
        assert page.locator("#readers-part:visible").count() == 0


def test_hostile_text_is_shown_as_text(tmp_path, demo, people, new_page):
    """Also what Gradio itself would take for a template."""
    source = tmp_path / "hostile.jsonl"
    source.write_text(json.dumps({"case_id": "c1", "text": HOSTILE}))
    options = ImportOptions(name="aaa", role="dev")
    import_cohort(demo, source, options, actor=Actor(name="Dr E"))
    with serving(demo) as url:
        page = new_page()
        sign_in(page, url, "Dr Reader")
        choose_cohort(page, "aaa")
        label(page)
        wait_for_case(page, "c1")
        shown = page.inner_text("#reading-sheet [data-case-text]")
        assert "<script>window.hit = 1</script>" in shown
        assert "{{ 7 * 7 }} ${window.hit = 1} `x`" in shown
        assert not {"\x1b", "\u202e", "\x00"} & set(shown)
        assert page.evaluate("window.hit") is None
        assert page.complaints == []


def test_a_reader_who_calls_by_hand_gets_nothing(demo, served, new_page):
    """Every event of the page, with whatever a browser could send."""
    page = new_page()
    sign_in(page, served, "Dr Reader")
    jar = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}

    def call(name, *values, **data):
        return httpx.post(
            f"{served}/gradio_api/run/{name}",
            json={"data": [None, COHORT, *values], "event_data": data},
            cookies=jar,
            headers={"origin": served},
        )

    for name, values in {
        "adjudicate_act": ("", "open", False),
        "adjudicate_by_label": ("", "open", False),
        "adjudicate_by_state": ("", "open", False),
        "adjudicate_by_names": ("", "open", True),
        "adjudicate_why": ("because",),
        "adjudicate_why_left": ("because",),
        "adjudicate_save": ("", "open", False, "because"),
        "agreement_by_label": ("all",),
        "agreement_wait": ("all",),
        "agreement_again": ("all",),
        "assign_cases": (["Dr Reader"], "1", "", "random", "", ""),
        "assign_every_case": (["Dr Reader"], "", "", "random", "", ""),
        "publish_preview": ([], "as recorded", False, False),
        "publish_readings": ("all", [], "as recorded", False, False, "x", None),
    }.items():
        answer = call(name, *values)
        assert answer.status_code == 500, name
        assert "r1" not in answer.text
        assert "majority" not in answer.text
    for part in ("adjudicate", "agreement"):
        answer = call("readers_part", part, "", "open", False, "all")
        assert answer.status_code == 500, part
        assert "majority" not in answer.text
    assert kept(demo, "Dr Reader") == {}


@pytest.mark.parametrize("name", ["Dr Reviewer", "Admin"])
def test_whoever_sees_the_model_does_not_label(demo, served, new_page, name):
    """Not even by hand."""
    page = new_page()
    sign_in(page, served, name)
    jar = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    answer = httpx.post(
        f"{served}/gradio_api/run/label_act",
        json={"data": [None, COHORT], "event_data": {"act": "rest", "case": "x"}},
        cookies=jar,
        headers={"origin": served},
    )
    assert answer.status_code == 500
    assert kept(demo, name) == {}


def test_a_panel_adjudicates_by_keyboard(demo, served, new_page):
    """Two decisions, a reload in the middle, one reference version."""
    page = new_page()
    sign_in(page, served, "Dr Reviewer")
    open_tab(page, "Readers")
    page.wait_for_selector("#disputes .disputes-list li")
    press(page, "p", "j", "u")
    page.wait_for_selector("#disputes :text('2 decided and kept')")
    page.locator("#adjudicate-why textarea").press_sequentially("read together")
    until(lambda: _reason(demo) == "read together")
    page.reload()
    page.wait_for_selector("#disputes :text('2 decided and kept')")
    assert page.input_value("#adjudicate-why textarea") == "read together"
    page.get_by_role("button", name="Save 2 decisions").click()
    page.wait_for_selector("#disputes :text('Reference version 2: 2 decisions')")
    assert read_reference(demo, COHORT).number == 2
    assert page.complaints == []


def _reason(workspace):
    with open_store(workspace) as store:
        rows = store.read(
            "SELECT json_extract(payload, '$.why') FROM working "
            "WHERE subject LIKE 'adjudicate-why:%'"
        )
    return rows[0][0] if rows else None


def test_readings_are_published_by_an_editor(demo, served, new_page):
    """The numbers follow, and the reader is told."""
    with open_store(demo) as store:
        assignment = read_assignment(demo, COHORT)
        complete_case(store, assignment, "Dr Reader", "demo-dev-001")
    page = new_page()
    sign_in(page, served, "Dr Editor")
    open_tab(page, "Readers")
    open_part(page, "Agreement")
    page.wait_for_selector("#agreement table.agreement-all")
    assert page.locator("#agreement svg").count() > 0
    page.get_by_role("button", name="Show which marks would change").click()
    page.wait_for_selector("#publish-preview :text('mark would change')")
    page.locator("#publish-why textarea").fill("the seventh reader is done")
    page.get_by_role("button", name="Publish").click()
    page.wait_for_selector("#readings :text('votes of 7 readers')")
    assert read_ledger(demo.ledger)[-1].reason == "the seventh reader is done"
    page.wait_for_selector("#agreement th:text('Dr Reader')")
    assert page.complaints == []


def test_no_serious_barrier(shared_alone, new_page):
    """Each part of the page, in both themes and sizes, without sideways scrolling."""
    page = new_page()
    enter(page, shared_alone, "Readers")
    for name, wanted in {
        "Label": "#reading-sheet [data-row]",
        "Adjudicate": "#disputes .disputes-list li",
        "Agreement": "#agreement table.agreement-all",
    }.items():
        page.wait_for_selector("#readers-part")
        open_part(page, name)
        page.wait_for_selector(wanted)
        assert barriers(page) == [], name


def let_read(workspace):
    """Let readers label No Finding."""
    said = workspace.protocol.read_text(encoding="utf-8")
    workspace.protocol.write_text(f"{said}\nno_finding: read\n", encoding="utf-8")


def folded(page, name, *, is_open):
    """Wait until a part of the guideline is open, or closed."""
    page.wait_for_function(
        "([name, open]) => document.querySelector("
        "`#reading-sheet [data-fold=${name}]`).open === open",
        arg=[name, is_open],
    )


def test_what_a_label_means_stands_beside_the_case_and_the_rest_is_a_key_away(
    demo, served, new_page
):
    """The words of the current label, without a click; what is opened stays open."""
    page = new_page()
    sign_in(page, served, "Dr Reader")
    label(page)
    taxonomy = read_assignment(demo, COHORT).taxonomy
    _, second, *_ = order(demo, "Dr Reader")
    about = page.locator("#reading-sheet [data-about]")
    page.locator("#reading-sheet .reading-name").first.click()
    for name in ("atelectasis", "consolidation"):
        meant = taxonomy.find(name)
        page.wait_for_selector(f"[data-about]:has-text('{meant.definition}')")
        shown = about.inner_text()
        said = (*meant.counts, *meant.does_not_count, *meant.uncertain_when)
        assert all(words in shown for words in said)
        press(page, "ArrowDown")
    folded(page, "guideline", is_open=False)
    assert taxonomy.digest[:12] in page.inner_text(".reading-guideline > summary")
    press(page, "g")
    folded(page, "guideline", is_open=True)
    assert page.locator(f"li:has-text('{taxonomy.reading[0][:40]}')").is_visible()
    assert page.locator("[data-meaning=edema]").is_hidden()
    page.locator("[data-fold=edema] > summary").focus()
    page.keyboard.press("Enter")
    folded(page, "edema", is_open=True)
    assert taxonomy.find("edema").counts[0] in page.inner_text("[data-meaning=edema]")
    press(page, "b", "j")
    wait_for_case(page, second)
    folded(page, "edema", is_open=True)
    press(page, "g")
    folded(page, "guideline", is_open=False)
    assert page.complaints == []


def test_a_normal_case_by_keyboard_where_readers_label_no_finding(
    demo, people, new_page
):
    """The rest is absent, then the label that is left is the current one."""
    let_read(demo)
    with serving(demo) as url:
        page = new_page()
        sign_in(page, url, "Dr Reader")
        label(page)
        first, second, *_ = order(demo, "Dr Reader")
        press(page, "b")
        page.wait_for_selector("[data-row=no_finding].is-current")
        press(page, "p")
        until(lambda: len(kept(demo, "Dr Reader").get(first, {})) == 21)
        assert _not_absent(kept(demo, "Dr Reader")[first]) == {"no_finding": "present"}
        page.locator("[data-row=edema] .is-present").click()
        page.wait_for_selector(
            "#reading-status .is-hot:has-text('No Finding contradicts Edema')"
        )
        press(page, "j")
        wait_for_case(page, second)
        assert "was left as it is" in page.inner_text("#reading-status")
        assert page.complaints == []


def test_no_serious_barrier_in_a_long_guideline(demo, people, new_page):
    """Open, with No Finding asked, and with words that somebody wrote too long."""
    let_read(demo)
    path = demo.labels / "taxonomy.yaml"
    long = "volumelossalone" * 40 + " and so on" * 200
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("volume loss alone", long), encoding="utf-8")
    with serving(demo) as url:
        page = new_page()
        sign_in(page, url, "Dr Reader")
        label(page)
        press(page, "g")
        folded(page, "guideline", is_open=True)
        page.locator("[data-fold=atelectasis] > summary").click()
        folded(page, "atelectasis", is_open=True)
        assert barriers(page) == []
        heights = page.evaluate(BOXES, "#reading-sheet [data-about]")
        assert heights[0][3] - heights[0][1] < 250


BOXES = """(selector) => [...document.querySelectorAll(selector)].map((one) => {
  const box = one.getBoundingClientRect();
  return [box.left, box.top, box.right, box.bottom];
})"""


def overlap(one, other):
    """Return whether two boxes share more than an edge."""
    return (
        min(one[2], other[2]) - max(one[0], other[0]) > 0.5
        and min(one[3], other[3]) - max(one[1], other[1]) > 0.5
    )


@pytest.mark.parametrize("width", [320, 400, 500])
def test_on_a_phone_no_choice_covers_a_label(shared_alone, new_page, width):
    """Twenty labels are answered by thumb, and nothing lies over anything else."""
    page = new_page({"width": width, "height": 800})
    enter(page, shared_alone, "Readers")
    page.wait_for_selector("#readers-part")
    open_part(page, "Label")
    page.wait_for_selector("#reading-sheet [data-row]")
    names = page.evaluate(BOXES, "#reading-sheet .reading-name")
    choices = page.evaluate(BOXES, "#reading-sheet .reading-choice span")
    backs = page.evaluate(BOXES, "#reading-sheet .take-back")
    assert (len(names), len(choices)) == (20, 60)
    everything = [*names, *choices, *backs]
    for at, one in enumerate(everything):
        assert not any(overlap(one, other) for other in everything[at + 1 :])
    assert all(box[0] >= 0 and box[2] <= width for box in everything)
    assert all(box[3] - box[1] >= 32 for box in choices)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_no_part_scrolls_sideways(served_alone, demo, new_page):
    """Wide tables scroll inside themselves; controls do not lie over each other."""
    with open_store(demo) as store:
        assignment = read_assignment(demo, COHORT)
        complete_case(store, assignment, "Dr Reader", "demo-dev-001")
    page = new_page({"width": 400, "height": 800})
    enter(page, served_alone, "Readers")
    for name, wanted, controls in (
        ("Adjudicate", "#disputes .disputes-list li", "#part-adjudicate .deed"),
        ("Agreement", "#agreement table.agreement-all", "#publish-form label"),
    ):
        page.wait_for_selector("#readers-part")
        open_part(page, name)
        page.wait_for_selector(wanted)
        if name == "Agreement":
            page.get_by_role("button", name="Show which marks").click()
            page.wait_for_selector("#publish-preview h3")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        boxes = [b for b in page.evaluate(BOXES, controls) if b[2] > b[0]]
        assert boxes
        assert all(b[0] >= 0 and b[2] <= 400 for b in boxes), name
        for at, one in enumerate(boxes):
            assert not any(overlap(one, other) for other in boxes[at + 1 :]), name


def noted(workspace, reader, case):
    """Return the comment that the store holds, as another process sees it."""
    assignment = read_assignment(workspace, COHORT)
    with open_store(workspace) as store:
        return read_comment(store, assignment, reader, case)


def test_a_comment_is_kept_however_it_came_into_the_box(demo, served, new_page):
    """Pasted, dictated or typed; before going on, and there again after a reload."""
    page = new_page()
    sign_in(page, served, "Dr Reader")
    label(page)
    first, second, *_ = order(demo, "Dr Reader")
    box = page.locator("#reading-sheet [data-comment]")
    box.focus()
    # As dictation and paste put words in: an input event, no key.
    page.keyboard.insert_text("pasted words 12pb")
    until(lambda: noted(demo, "Dr Reader", first) == "pasted words 12pb")
    assert given(page) == {}
    box.press_sequentially(" and typed")
    page.locator("#reading-sheet [data-act=rest]").click()
    until(lambda: len(kept(demo, "Dr Reader").get(first, {})) == 20)
    assert noted(demo, "Dr Reader", first) == "pasted words 12pb and typed"
    page.locator("#reading-sheet [data-act=next]").click()
    wait_for_case(page, second)
    assert box.input_value() == ""
    box.fill("left at once")
    page.locator("#reading-sheet [data-act=previous]").click()
    wait_for_case(page, first)
    assert box.input_value() == "pasted words 12pb and typed"
    until(lambda: noted(demo, "Dr Reader", second) == "left at once")
    page.reload()
    wait_for_case(page, second)
    assert box.input_value() == "left at once"
    assert page.complaints == []
