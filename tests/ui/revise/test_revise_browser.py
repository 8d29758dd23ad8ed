"""Revise in a real browser: from open verdicts to a committed version."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest
import yaml

from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.core.people.roster import users_path
from loop.prompts.catalog import latest_version, list_drafts, read_version
from loop.review.revise.pasted import find_synthetic
from loop.review.status import find_open
from loop.review.submit import VerdictContext, save_verdicts
from loop.review.verdict import Edits
from loop.review.verdict_files import ImportDefaults, take_file
from loop.run.store import open_store
from tests.ui.conftest import barriers, open_tab, sign_in
from tests.ui.forked import serving

pytestmark = pytest.mark.slow

UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script> {{7*7}} {{#each x}} "
    "${alert(3)} `tick` \\u202egnp.exe \\u001b[31mred"
)


@pytest.fixture(scope="module")
def judged(demo_root, peopled, tmp_path_factory):
    """Make a demo on which two readers gave verdicts, and some of them hostile."""
    root = tmp_path_factory.mktemp("judged") / "ws"
    shutil.copytree(demo_root, root)
    workspace = WorkspacePaths(root)
    shutil.copy2(users_path(peopled), users_path(workspace))
    hostile = root.parent / "hostile.yaml"
    verdict = {"cases": ["demo-dev-001"], "label": "edema", "severity": "minor"}
    verdict |= {"judgement": "model_wrong", "terms": ["zzz"], "comment": "@"}
    text = yaml.safe_dump({"cohort": "demo_dev", "verdicts": [verdict]})
    hostile.write_text(text.replace("'@'", f'"{HOSTILE}"'), encoding="utf-8")
    with open_store(workspace) as store:
        for path in (bundled() / "labels" / "demo" / "verdicts_1.yaml", hostile):
            take_file(workspace, store, path, ImportDefaults("Dr Reviewer", "demo_dev"))
    return workspace


@pytest.fixture
def workspace(judged, tmp_path):
    """Return a copy that a test may change."""
    root = tmp_path / "ws"
    shutil.copytree(judged.root, root)
    return WorkspacePaths(root)


def open_revise(page, url, name="Dr Editor"):
    """Sign in and open the page."""
    sign_in(page, url, name)
    open_tab(page, "Revise")
    page.wait_for_selector("#revise-drafts .step")


def build_draft(page):
    """Tick all verdicts and build a draft of them."""
    page.locator("[data-all=wording]").check()
    page.click("#revise-build")
    page.wait_for_selector("#revise-draft .diff")


def save_blocked(workspace):
    """Keep a verdict that asks for what no draft can do."""
    with open_store(workspace) as store:
        known = find_open(workspace, store, "extractor", "demo_dev")[0].verdict
        asked = Edits(remove_terms=("no such term",))
        gone = replace(known, reviewer="Dr Other", edits=asked)
        circumstances = VerdictContext("demo_dev", "extractor@v1", "")
        save_verdicts(store, (gone,), circumstances, datetime.now(UTC))


def build_all_but_blocked(page):
    """Try to build a draft of all, which unticks one, and build it of the others."""
    page.locator("[data-all=wording]").check()
    page.click("#revise-build")
    page.wait_for_selector("#revise-said .is-error")
    # A box that was clicked keeps its tick when its row is drawn anew: not this one.
    page.wait_for_function("!document.querySelector('input[data-off]').checked")
    assert page.inner_text("#revise-build") == "Build a draft from 35 ticked"
    page.click("#revise-build")
    page.wait_for_selector("#revise-draft .diff")


def test_from_verdicts_to_the_next_version(workspace, new_page):
    """Build, check, commit; a second person sees the same; the gates change.

    A verdict that cannot be applied is unticked, and holds no other up.
    """
    save_blocked(workspace)
    with serving(workspace) as url:
        page, other = new_page(), new_page()
        open_revise(page, url)
        build_all_but_blocked(page)
        page.click("#revise-run")
        page.wait_for_selector("#revise-check .word")
        assert "MAY BE COMMITTED" in page.inner_text("#revise-check .word").upper()
        open_revise(other, url, "Dr Reviewer")
        other.click("#revise-drafts [data-act=open]")
        other.wait_for_selector("#revise-check .word")
        assert other.locator("#revise-commit").count() == 0
        page.fill("#revise-why textarea", "round one")
        page.click("#revise-commit")
        page.wait_for_selector("#revise-said .notice")
        assert "is extractor@v2 now" in page.inner_text("#revise-said")
        page.click("#revise-said [data-page=overview]")
        page.wait_for_selector("#overview .eyebrow:has-text('extractor@v2')")
        other.click("#revise-drafts [data-act=open]")
        other.wait_for_selector("#revise-said .notice")
        assert "Committed by Dr Editor" in other.inner_text("#revise-said")
        assert page.complaints == other.complaints == []
    entry = [e for e in read_ledger(workspace.ledger) if e.action == "draft_committed"]
    assert (entry[-1].actor, entry[-1].role) == ("Dr Editor", "editor")
    assert entry[-1].reason == "round one"
    assert latest_version(workspace, "extractor").number == 2


def test_a_reload_loses_nothing_that_was_typed(workspace, new_page):
    """Ticks, the open draft, an unsaved guide and the reason are all kept."""
    with serving(workspace) as url:
        page = new_page()
        open_revise(page, url)
        build_draft(page)
        with page.expect_response(lambda got: sent(got, "# mine")):
            page.locator("#revise-guide textarea").press_sequentially("# mine")
        with page.expect_response(lambda got: sent(got, "because")):
            page.locator("#revise-why textarea").press_sequentially("because")
        page.reload()
        open_tab(page, "Revise")
        page.wait_for_selector("#revise-note .remark")
        assert "# mine" in page.input_value("#revise-guide textarea")
        assert page.input_value("#revise-why textarea") == "because"
        keys = page.evaluate("[Object.keys(localStorage), Object.keys(sessionStorage)]")
        assert keys == [[], []]


def test_a_draft_is_tried_changed_tried_again_and_kept(workspace, new_page):
    """Pasted words, the guide beside them, one key for both; words kept on request."""
    with serving(workspace) as url:
        page = new_page()
        open_revise(page, url)
        page.click("#revise-hand")
        page.wait_for_selector("#revise-try-more")
        page.click("#revise-try-more > button")
        page.fill("#revise-words textarea", "Quokka sign on the left.")
        page.click("#revise-on-words")
        page.wait_for_selector("#revise-tried section")
        assert "on pasted words" in page.inner_text("#revise-tried")
        assert "Both answer alike." in page.inner_text("#revise-tried")
        choose(page, "#revise-label input", "Edema")
        guide = page.locator("#revise-guide textarea")
        page.wait_for_function(
            "document.querySelector('#revise-guide textarea').value"
            ".startsWith('edema:')"
        )
        guide.fill(f"{guide.input_value().rstrip()}\n  terms: [quokka sign]\n")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("#revise-tried h4:has-text('edema')")
        told = page.inner_text("#revise-tried")
        assert "Quokka sign" in told and "present" in told
        choose(page, "#revise-keep-label input", "Edema")
        page.check("#revise-keep-value input[value=present]")
        page.click("#revise-keep-case")
        page.wait_for_selector("#revise-said .notice")
        assert "synthetic-1" in page.inner_text("#revise-said")
        page.click("#revise-keep-exemplar")
        page.wait_for_selector("#revise-draft :text('the words are an exemplar now')")
        assert page.input_value("#revise-words textarea") == "Quokka sign on the left."
        page.locator("#revise-draft").press("t")
        page.wait_for_selector("#revise-tried section")
        assert page.complaints == []
    (kept,) = find_synthetic(workspace, "extractor").parent.iterdir()
    assert kept.read_text("utf-8").splitlines()[1].startswith("synthetic-1,en,Quokka")
    (draft,) = list_drafts(workspace, "extractor")
    guide = read_version(workspace, f"extractor@draft:{draft}").guide("edema")
    assert "quokka sign" in guide.terms
    assert guide.exemplars[-1].text == "Quokka sign on the left."


def choose(page, box, words):
    """Choose from a list by its words."""
    page.click(box)
    page.fill(box, words)
    page.locator(f"[role=option]:has-text('{words}')").first.click()


def test_discarding_is_asked_twice(workspace, new_page):
    """One slip of the mouse does not lose a draft."""
    with serving(workspace) as url:
        page = new_page()
        open_revise(page, url)
        page.click("#revise-hand")
        page.wait_for_selector("#revise-discard")
        page.fill("#revise-why textarea", "a slip")
        page.click("#revise-discard")
        page.click("#revise-spare")
        page.wait_for_selector("#revise-really", state="detached")
        page.click("#revise-discard")
        page.click("#revise-really")
        page.wait_for_selector("#revise-said .notice")
        assert "is discarded" in page.inner_text("#revise-said")


def test_hostile_text_is_text(workspace, new_page):
    """Neither markup nor what a template language would run."""
    with serving(workspace) as url:
        page = new_page()
        open_revise(page, url)
        shown = page.inner_text("#revise-verdicts")
        assert "<img src=x onerror=alert(1)><script>alert(2)</script>" in shown
        assert "{{7*7}} {{#each x}} ${alert(3)} `tick`" in shown
        assert "\u202e" not in shown
        assert page.complaints == []


def test_no_serious_barrier(workspace, new_page):
    """With verdicts, a draft, a check and the decision on the page."""
    with serving(workspace) as url:
        page = new_page()
        open_revise(page, url)
        assert barriers(page) == []
        build_draft(page)
        page.click("#revise-run")
        page.wait_for_selector("#revise-check .word")
        page.evaluate(
            "document.querySelectorAll('details').forEach(d => d.open = true)"
        )
        assert barriers(page) == []


def test_only_the_right_role_gets_through_by_hand(workspace, new_page):
    """Every function asks for itself, whatever the page shows."""
    with serving(workspace) as url:
        page = new_page()
        sign_in(page, url, "Dr Reviewer")
        jar = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
        reader = new_page()
        sign_in(reader, url, "Dr Reader")
        blind = {one["name"]: one["value"] for one in reader.context.cookies()}
        place = [None, None]
        acts = {
            "tick": place,
            "begin": place,
            "rebase": [*place, None],
            "check": [*place, None, None],
            "label": [*place, None, None],
            "typing": [None, "x"],
            "undo": [*place, None],
            "save": [*place, None, "x"],
            "why": [None, "x"],
            "commit": [*place, None, "x", True],
            "keep": [*place, None, "x"],
            "discard": [*place, None, "x"],
        }
        for name, data in acts.items():
            answer = call(url, f"revise_{name}", data, jar)
            assert "takes the role editor" in answer.text, name
        for name in ("see_revise", "revise_open", "revise_poll"):
            answer = call(
                url, name, [*place, None][: 3 if "poll" in name else 2], blind
            )
            assert "takes the role" in answer.text, name
            assert "edema" not in answer.text


def sent(response, text):
    """Whether `response` answers what carried `text`."""
    return response.ok and text in (response.request.post_data or "")


def call(url, name, data, cookies):
    """Call a function of the page by its name."""
    return httpx.post(
        f"{url}/gradio_api/run/{name}",
        json={"data": data},
        cookies=cookies,
        headers={"origin": url},
    )
