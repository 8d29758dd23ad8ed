"""Discover in a real browser: clusters are decided from the keyboard, and taken."""

import pytest

from loop.core.ledger import read_ledger
from loop.labels.taxonomy import read_taxonomy
from loop.optimize.discovery.discover import discover_findings
from loop.optimize.discovery.kept_draft import keep_discovery, read_kept_draft
from tests.ui.conftest import barriers, open_tab, press, sign_in
from tests.ui.forked import serving

pytestmark = pytest.mark.slow

CURRENT = "#discover-clusters .proposal.is-current"


def told(page, words):
    """Wait until the line above the list says what was decided."""
    page.wait_for_selector(f"#discover-clusters .proposal-said:has-text('{words}')")


def fill(page, key, *texts):
    """Open a form of the current cluster with its key, and fill its boxes."""
    press(page, key)
    page.wait_for_selector(f"{CURRENT} form:visible")
    for number, text in enumerate(texts):
        if number:
            page.keyboard.press("Tab")
        page.keyboard.type(text)


def test_clusters_are_decided_from_the_keyboard_and_taken(demo, people, new_page):
    """Named, merged, mapped and dropped; a browser that is closed loses no letter."""
    keep_discovery(demo, discover_findings(demo, "demo_dev", prompt="extractor@v1"))
    with serving(demo) as url:
        page = new_page()
        sign_in(page, url, "Dr Editor")
        open_tab(page, "Discover")
        page.click("[data-show=unnamed]")
        page.wait_for_selector("[data-show=unnamed][aria-pressed=true]")
        page.wait_for_selector(CURRENT)
        fill(page, "n", "Lobar Collapse", "A whole lobe has lost its air.")
        with page.expect_response(
            lambda one: "Or more." in (one.request.post_data or "")
        ):
            page.keyboard.type(" Or more.")
        page.reload()
        page.wait_for_selector(f"{CURRENT} form:visible")
        assert page.input_value(f"{CURRENT} [name=definition]").endswith(" Or more.")
        assert barriers(page) == []
        page.keyboard.press("Control+Enter")
        told(page, "Part of a new label")
        fill(page, "g", "Lobar Collapse")
        page.keyboard.press("Enter")
        told(page, "Merged")
        fill(page, "m", "Support Devices")
        page.keyboard.press("Enter")
        told(page, "Mapped")
        press(page, "d")
        told(page, "Dropped")
        page.wait_for_selector("#discover-change:has-text('does not ask for')")
        press(page, "W")
        page.keyboard.type("the readers asked")
        page.click("#discover-take")
        page.wait_for_selector("#discover-said:has-text('Taken into')")
        assert page.complaints == []
    draft = read_kept_draft(demo, "demo_dev").draft
    decided = [one.decision.value for one in draft.clusters if one.by]
    assert sorted(decided) == ["drop", "map", "new", "new"]
    assert read_taxonomy(demo.labels).knows("Lobar Collapse")
    entry = read_ledger(demo.ledger)[-1]
    assert (entry.action, entry.actor) == ("taxonomy_revised", "Dr Editor")
