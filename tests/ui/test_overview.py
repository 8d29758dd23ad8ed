"""Overview: the gates of the newest version, in a real browser and without one."""

import re
from dataclasses import replace

import httpx
import pytest

from loop.evaluate import inputs, tried
from loop.labels import cohort as cohorts
from loop.ui.pages import overview
from loop.ui.pages.versions.view import render_versions
from tests.ui.conftest import PASSWORD, barriers, open_tab, press, rest, sign_in
from tests.ui.visits import opened, visit

pytestmark = pytest.mark.slow


def open_overview(page, url):
    """Open the workbench and choose the page: it comes back to where one was."""
    page.goto(url)
    page.wait_for_selector("#bar .who-name")
    open_tab(page, "Overview")
    page.wait_for_selector("table.gates tbody tr")


def test_one_person_on_this_machine_needs_no_sign_in(shared_alone, new_page):
    """A radiologist who tries the demo sees the gates at once."""
    page = new_page()
    open_overview(page, shared_alone)
    assert page.locator("table.gates tbody tr").count() == 21
    assert "this machine only" in page.inner_text("#who")
    assert page.complaints == []


def test_a_value_left_of_the_axis_has_an_arrow_and_is_told_in_words(demo):
    """The demo's worst label: its mark at the edge would be read as the edge."""
    with opened(demo) as context:
        page = overview.refresh(visit(context), "extractor", "demo_dev")
    rows = re.findall(r'<svg class="plot".*?</g>', page, re.DOTALL)
    off = [row for row in rows if 'class="beyond"' in row]
    assert off
    for row in off:
        told = re.search(r"accuracy (0\.\d{3})", row)[1]
        assert f">{told}</text>" in row and 'class="mark"' not in row
    for row in rows:
        arrow, words = 'class="beyond-arrow"' in row, "left of the axis" in row
        assert (
            arrow == words == ("left of the axis" in re.search("<title>(.*)<", row)[1])
        )


def test_no_score_stands_without_engine_policy_and_reference(demo):
    """And what the other policies for uncertain answers would give is beside it."""
    with opened(demo) as context:
        page = overview.refresh(visit(context), "extractor", "demo_dev")
        versions_page = render_versions(context, "extractor", "demo_dev")
    figure = page[page.index("<dt>macro-F1</dt>") : page.index("Versions tried here")]
    assert "rules, uncertain answers wrong, reference 1" in figure
    assert "Uncertain answers are wrong" in page
    for words in ("read as absent", "read as present", "left out"):
        assert re.search(rf"if {words}: \d+, 0\.\d{{3}}", page)
    assert "rules, uncertain answers wrong, reference 1" in versions_page


def test_a_label_that_the_reference_cannot_judge_is_shown_and_not_counted(
    demo, monkeypatch
):
    """With the reason beside it, and what the words mean."""
    plain = cohorts.read_cohort

    def marked(*args, **kwargs):
        told = {"no_finding": "scoliosis is coded normal"}
        return replace(plain(*args, **kwargs), not_comparable=told)

    for module in (inputs, tried):
        monkeypatch.setattr(module, "read_cohort", marked)
    with opened(demo) as context:
        page = overview.refresh(visit(context), "extractor", "demo_dev")
    assert page.count('<tr class="v-') == 21
    assert '<tr class="v-NOT COMPARABLE">' in page
    assert "scoliosis is coded normal" in page
    assert re.search(r"\d+ of 20 labels pass", page)
    assert "<b>1</b> not comparable" in page
    assert "<dt>NOT COMPARABLE</dt>" in page
    with opened(demo) as context:
        monkeypatch.undo()
        page = overview.refresh(visit(context), "extractor", "demo_dev")
    assert "NOT COMPARABLE" not in page


def test_the_page_asks_nobody_else_and_keeps_nothing(shared_alone, new_page):
    """It works with the network unplugged, and a shared computer remembers nothing."""
    page = new_page()
    open_overview(page, shared_alone)
    assert [url for url in page.asked if not url.startswith(shared_alone)] == []
    kept = page.evaluate("[Object.keys(localStorage), Object.keys(sessionStorage)]")
    assert kept == [[], []]


def test_no_serious_barrier(shared_alone, new_page):
    """Readable for everyone, in both themes and sizes."""
    page = new_page()
    open_overview(page, shared_alone)
    assert barriers(page) == []


def test_a_reviewer_signs_in_and_out(shared, new_page):
    """The name in the corner is the session's, and signing out ends it."""
    page = new_page()
    page.goto(shared)
    assert page.url.split("?")[0].endswith("/sign-in")
    sign_in(page, shared, "Dr Reviewer")
    assert page.inner_text(".who-name") == "Dr Reviewer"
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_selector("input[name=password]")
    page.goto(shared)
    assert page.locator("input[name=password]").count() == 1


def test_a_mere_reader_never_gets_the_gates(shared, new_page):
    """Who labels blind must not reach a model's answers, by hand either."""
    page = new_page()
    sign_in(page, shared, "Dr Reader")
    assert page.locator("table.gates").count() == 0
    assert page.get_by_role("tab", name="Overview").count() == 0
    jar = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    with httpx.Client(cookies=jar, headers={"origin": shared}) as by_hand:
        session = {"session_hash": "byhand"}
        by_hand.post(f"{shared}/gradio_api/run/open", json={"data": [], **session})
        answer = by_hand.post(
            f"{shared}/gradio_api/run/see_overview",
            json={"data": ["extractor", "demo_dev"], **session},
        )
    assert answer.status_code == 500
    assert "takes the role" in answer.text
    assert "Cardiomegaly" not in answer.text


def test_the_sheet_of_keys_opens_with_a_question_mark(shared_alone, new_page):
    """The keyboard is explained where it is used."""
    page = new_page()
    open_overview(page, shared_alone)
    press(page, "?")
    assert (
        page.locator("dialog#keys[open] h2").inner_text() == "Keys on the page Overview"
    )
    page.keyboard.press("Escape")
    assert page.locator("dialog#keys[open]").count() == 0


def test_a_password_is_never_in_the_address(shared, new_page):
    """Addresses end up in logs and histories."""
    page = new_page()
    sign_in(page, shared, "Dr Editor")
    assert not any(PASSWORD.split()[0] in url for url in page.asked)


def test_opening_the_workbench_fills_the_page_one_was_on_and_no_other(shared, new_page):
    """Two answers for one page would differ, and the later one show an old state."""
    page = new_page()
    sign_in(page, shared, "Dr Editor")
    asked = []
    page.on("request", lambda one: asked.append(one) if "/run/" in one.url else None)
    for name in ("Review", "Files", "Overview"):
        with page.expect_response("**/run/**"):
            open_tab(page, name)
        asked.clear()
        page.reload()
        page.wait_for_selector(f"[role=tab][aria-selected=true]:has-text('{name}')")
        # What is not asked for cannot be waited for.
        rest(page, 1500)
        assert (name, len(asked)) == (name, 3)
        assert all(one.response().ok for one in asked)
