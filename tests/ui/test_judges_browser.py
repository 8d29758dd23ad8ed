"""From a judge's errors to its next version, in a browser, as the manual says it."""

import shutil

import pytest

from loop.core.paths import WorkspacePaths
from loop.core.people.roster import users_path
from loop.prompts.catalog import latest_version
from tests.judge.scenes import call, table
from tests.ui.conftest import barriers, open_tab, press, rest, sign_in
from tests.ui.forked import serving

pytestmark = pytest.mark.slow

PAIRS = (
    ("p0", "Small left pleural effusion.", "Large left pleural effusion."),
    ("p1", "Small left pleural effusion.", "Small right pleural effusion."),
    ("p2", "Large right pneumothorax.", "No pneumothorax."),
    ("p3", "Small right pleural effusion.", "Large right pleural effusion."),
)
MARKED = ("severity", "location", "omission", "severity")


@pytest.fixture
def judged(first_version, peopled, tmp_path):
    """Return a workspace with users, rated pairs, and a judge's run on them."""
    workspace = WorkspacePaths(tmp_path / "ws")
    shutil.copytree(first_version.root, workspace.root)
    workspace.open_private()
    shutil.copy2(users_path(peopled), users_path(workspace))
    pairs = table(tmp_path / "pairs.csv", ("id", "reference", "candidate"), PAIRS)
    errors = table(
        tmp_path / "errors.csv",
        ("case_id", "rater", "category", "significance", "finding"),
        [
            (pair[0], "r1", kind, weight, "")
            for pair, kind in zip(PAIRS, MARKED, strict=True)
            for weight in ["insignificant" if kind == "severity" else "significant"]
        ],
    )
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    for step in (
        ("cohort", "import", pairs, "--name", "rp", *options, "--errors", errors),
        ("prompt", "new", "mine", "--from", "green@v1"),
        ("run", "mine", "--cohort", "rp"),
    ):
        done = call(workspace, *step)
        assert done.exit_code == 0, done.output
    return workspace


@pytest.fixture
def url(judged):
    """Serve that workspace."""
    with serving(judged) as served:
        yield served


def on_pair(page):
    """Return the id of the open pair."""
    return page.get_attribute("[data-pair]", "data-case")


def test_verdicts_on_a_judge_make_its_next_version(judged, url, new_page):
    """Rated blind, judged, built, checked and committed, mostly by keyboard."""
    page = new_page()
    sign_in(page, url, "Dr Editor")
    open_tab(page, "Judges")
    page.wait_for_selector("[data-pair]")
    rest(page)
    assert barriers(page) == []
    first = on_pair(page)
    rate_by_hand(page)
    judge_by_hand(page, first)
    commit_by_hand(page)
    version = latest_version(judged, "mine")
    (rule,) = version.guide("severity").clarifications
    assert (version.number, rule.phrase) == (2, "large for small")
    assert call(judged, "audit").exit_code == 0
    assert page.complaints == []


def rate_by_hand(page):
    """Rate the open pair: begun, left, gone on with and handed in."""
    press(page, "4", "e")
    page.select_option("[name='marked.0.category']", "severity")
    page.select_option("[name='marked.0.weight']", "insignificant")
    page.fill("[name='marked.0.words']", "a size up")
    page.wait_for_function(
        "document.querySelector('.judges-said').textContent.includes('saved')"
    )
    page.reload()
    page.wait_for_selector("[name='marked.0.words']")
    rest(page)
    assert page.input_value("[name='marked.0.words']") == "a size up"
    assert page.is_checked("[name=points][value='4']")
    assert page.locator("[data-pair] mark").count() == 0
    page.click("[data-add=marked]")
    assert page.locator("[data-row]").count() == 2
    page.locator("[data-remove]").last.click()
    assert page.locator("[data-row]").count() == 1
    page.click("#judges-rate")
    page.wait_for_selector("#judges-judge")
    rest(page)
    assert page.locator("[data-pair] mark.own").count() == 2
    assert barriers(page) == []


def judge_by_hand(page, first):
    """Call the judge's error insignificant, with a rule that says so."""
    press(page, "Control+Enter")
    page.wait_for_selector(".refusal")
    assert "error 1 of the judge has no verdict" in page.inner_text(".refusal")
    page.select_option("[name='listed.0.right']", "insignificant")
    page.click(".judged-rule summary")
    page.select_option("[name='rule.category']", "severity")
    page.fill("[name='rule.phrase']", "large for small")
    page.select_option("[name='rule.value']", "insignificant")
    press(page, "Control+Enter")
    page.wait_for_function(
        "first => document.querySelector('[data-pair]').dataset.case !== first",
        arg=first,
    )
    assert f"Kept on {first}: 1 of 1" in page.inner_text(".judges-said")


def commit_by_hand(page):
    """Make a draft of all verdicts, check and commit it."""
    open_tab(page, "Revise")
    page.wait_for_selector("[data-all=wording]")
    page.click("[data-all=wording]")
    page.click("#revise-build")
    page.wait_for_selector("#revise-draft .diff")
    page.click("#revise-run")
    page.wait_for_selector("#revise-check .word")
    assert "MAY BE COMMITTED" in page.inner_text("#revise-check .word").upper()
    page.fill("#revise-why textarea", "a size up is no other treatment")
    page.click("#revise-commit")
    page.wait_for_selector("#revise-said .notice")
    assert "is mine@v2 now" in page.inner_text("#revise-said")


def test_a_reader_rates_all_pairs_and_an_editor_publishes_them(judged, url, new_page):
    """The reader never meets the judge; the version is in the ledger."""
    reader = new_page()
    sign_in(reader, url, "Dr Reader")
    open_tab(reader, "Judges")
    for _ in PAIRS:
        reader.wait_for_selector("[data-send=rate]")
        rest(reader)
        before = on_pair(reader)
        press(reader, "5")
        reader.check("[name=none]")
        press(reader, "Control+Enter")
        reader.wait_for_function(
            "before => document.querySelector('.judges-said').textContent"
            ".includes(`rating of ${before}`)",
            arg=before,
        )
    assert "No pair waits for you any more" in reader.inner_text(".judges-said")
    assert "mine@v1" not in reader.inner_text("#tab-judges")
    editor = new_page()
    sign_in(editor, url, "Dr Editor")
    open_tab(editor, "Judges")
    editor.wait_for_selector("#judges-publication table")
    editor.fill("#judges-why textarea", "the reader is done")
    editor.click("#judges-publish-now")
    editor.wait_for_selector("#judges-publication .notice")
    assert "Ratings version 2 of rp" in editor.inner_text("#judges-publication")
    assert reader.complaints == editor.complaints == []


def test_a_link_from_a_verdict_opens_its_pair_here(judged, url, new_page):
    """Not the page Review, which holds failing labels."""
    page = new_page()
    sign_in(page, url, "Dr Editor")
    open_tab(page, "Judges")
    page.wait_for_selector("[data-case=p1][data-act=open]")
    rest(page)
    page.click("[data-case=p1][data-act=open]")
    page.wait_for_selector("[data-pair][data-case=p1]")
    page.click("#judges-reveal")
    page.wait_for_selector("#judges-judge")
    rest(page)
    page.select_option("[name='listed.0.right']", "no_error")
    page.fill("[name=comment]", "the side is not said")
    page.click("#judges-judge")
    page.wait_for_selector("[data-pair]:not([data-case=p1])")
    open_tab(page, "Revise")
    page.locator("#revise-verdicts summary").first.wait_for()
    for one in page.locator("#revise-verdicts summary").all():
        if not one.evaluate("one => one.parentElement.open"):
            one.click()
    page.locator("#revise-verdicts").get_by_text("p1", exact=True).click()
    page.wait_for_selector("[data-pair][data-case=p1]")
    assert page.locator(".judged-said").is_visible()
    assert page.complaints == []
