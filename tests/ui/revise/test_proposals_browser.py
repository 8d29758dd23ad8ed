"""Revise in a real browser: what an optimizer proposed, decided from the keyboard."""

import shutil
from dataclasses import replace

import pytest

from loop.core.paths import WorkspacePaths
from loop.core.people.roster import users_path
from loop.documents.numbers import share
from loop.optimize.decisions import DraftSearch, Gain
from loop.optimize.estimate import PARTS, PartScores
from loop.optimize.refusals import read_refusals
from loop.optimize.search import search_prompt
from loop.optimize.search_report import SearchRequest
from loop.optimize.terms import ProposalKind, TermProposal
from loop.review.status import read_kept
from loop.run.store import open_store
from loop.ui.html import show
from loop.ui.pages.revise.view import ProposalRow
from tests.optimize.scenes import LESION, SEARCHER, Bench
from tests.ui.conftest import barriers, open_tab, press, sign_in
from tests.ui.forked import serving
from tests.ui.revise.test_revise_browser import HOSTILE, call

pytestmark = pytest.mark.slow

CURRENT = "#revise-proposals .proposal.is-current"


def rows():
    """Return cases in which two words mean an effusion, and two a lesion."""
    made = []
    for number in range(96):
        effusion, lesion = number % 3 == 0, number % 4 == 1
        wet = ("collection", "pleurisy")[number // 3 % 2]
        mass = ("nodule", "tumour")[number // 4 % 2]
        said = [
            f"Small {wet}." if effusion else f"No {wet} is seen.",
            f"A {mass} is there." if lesion else f"No {mass} is there.",
            f"Film number {number}.",
        ]
        text = " ".join(said)
        made.append([f"c{number:03}", f"p{number // 2}", text, +effusion, +lesion])
    return made


@pytest.fixture(scope="module")
def searched(first_version, peopled, tmp_path_factory):
    """Make a workspace with a draft of terms, and people."""
    root = tmp_path_factory.mktemp("searched").resolve() / "ws"
    shutil.copytree(first_version.root, root)
    workspace = WorkspacePaths(root)
    bench = Bench(workspace, root.parent)
    bench.version()
    bench.cohort(rows())
    report = search_prompt(
        workspace, SearchRequest(prompt="tiny", cohort="dev"), SEARCHER
    )
    assert len(report.findings.proposals) >= 4
    shutil.copy2(users_path(peopled), users_path(workspace))
    return workspace


@pytest.fixture
def workspace(searched, tmp_path):
    """Return a copy that a test may change."""
    root = tmp_path.resolve() / "ws"
    shutil.copytree(searched.root, root)
    return WorkspacePaths(root)


def open_proposals(page, url, name="Dr Editor"):
    """Sign in, open the page and the draft."""
    sign_in(page, url, name)
    open_draft(page)


def open_draft(page):
    """Open the page, and the draft on it."""
    open_tab(page, "Revise")
    page.wait_for_selector("#revise-drafts [data-act=open]")
    if not page.locator("#revise-proposals .proposal").count():
        page.click("#revise-drafts [data-act=open]")
    page.wait_for_selector(CURRENT)


def current(page):
    """Return the id of the proposal that keys are for."""
    return page.get_attribute(CURRENT, "data-id")


def decided(page, number):
    """Wait until so many are decided."""
    page.wait_for_selector(
        f"#revise-proposals h3:has-text('Proposals {number} of')", state="attached"
    )


def test_proposals_are_decided_from_the_keyboard(workspace, new_page):
    """One accepted, one in other words, one refused: for everybody, after a reload."""
    with serving(workspace) as url:
        page = new_page()
        open_proposals(page, url)
        ids = page.eval_on_selector_all(
            "#revise-proposals .proposal", "all => all.map(one => one.dataset.id)"
        )
        press(page, "j", "j", "k", "k")
        assert current(page) == ids[0]
        press(page, "a")
        decided(page, 1)
        page.wait_for_function(f"() => document.querySelector('{CURRENT}')?.dataset.id")
        assert current(page) == ids[1]
        press(page, "e")
        page.wait_for_selector(f"{CURRENT} [data-form=edit]:visible")
        # Keys are letters while a box has the focus.
        page.keyboard.press("End")
        page.keyboard.type("jar")
        assert current(page) == ids[1]
        page.keyboard.press("Enter")
        decided(page, 2)
        assert current(page) == ids[2]
        press(page, "r")
        page.wait_for_selector(f"{CURRENT} [data-form=refuse]:visible")
        page.keyboard.type(f"too wide {HOSTILE}")
        page.keyboard.press("Enter")
        decided(page, 3)
        assert "Build a draft from 2 ticked" in page.text_content("#revise-build")
        page.reload()
        open_draft(page)
        assert current(page) == ids[3]
        other = new_page()
        open_proposals(other, url, "Dr Other Reviewer")
        for seen in (page, other):
            shown = seen.inner_text("#revise-proposals")
            assert "3 of" in shown
            assert "Accepted by Dr Editor" in shown
            assert "Refused by Dr Editor" in shown
            assert "<img src=x onerror=alert(1)><script>alert(2)</script>" in shown
            assert "{{7*7}} {{#each x}} ${alert(3)} `tick`" in shown
        assert page.complaints == other.complaints == []
    refusals = read_refusals(workspace, "tiny")
    assert list(refusals) == [ids[2]]
    assert refusals[ids[2]].by == "Dr Editor"
    assert refusals[ids[2]].reason.startswith("too wide <img")
    with open_store(workspace) as store:
        kept = read_kept(store, workspace, "dev")
    asked = [
        f"{one.verdict.label}:term:{word}"
        for one in kept
        for word in one.verdict.edits.terms
    ]
    assert asked == [ids[0], f"{ids[1]}jar"]
    assert {one.verdict.reviewer for one in kept} == {"Dr Editor"}


def test_the_mouse_does_the_same_and_a_wrong_wording_stays_in_its_box(
    workspace, new_page
):
    """What cannot be applied is said beside the button, and nothing is kept."""
    with serving(workspace) as url:
        page = new_page()
        open_proposals(page, url, "Dr Reviewer")
        first = current(page)
        page.click("#revise-proposals [data-move=next]")
        page.click("#revise-proposals [data-move=previous]")
        assert current(page) == first
        page.click(f"{CURRENT} [data-open=edit]")
        page.fill(f"{CURRENT} [data-form=edit] input", "*")
        page.click(f"{CURRENT} [data-form=edit] [type=submit]")
        page.wait_for_selector(".refusal")
        assert page.input_value(f"{CURRENT} [data-form=edit] input") == "*"
        page.click(f"{CURRENT} [data-form=edit] [data-close]")
        page.click(f"{CURRENT} [data-decide=accept]")
        decided(page, 1)
        page.click("#revise-proposals [data-case] >> nth=0")
        page.wait_for_selector("#tab-review", state="visible")
        assert page.complaints == []


def test_whoever_may_not_judge_sees_and_decides_nothing(workspace, new_page):
    """An approver has no buttons, and the server asks for the right by itself."""
    with serving(workspace) as url:
        page = new_page()
        open_proposals(page, url, "Dr Approver")
        assert page.locator("#revise-proposals [data-decide]").count() == 0
        assert page.locator("#revise-proposals form").count() == 0
        press(page, "a", "r")
        jar = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
        answer = call(url, "revise_decide", [None, None, None], jar)
        assert "takes the role" in answer.text
    assert not read_refusals(workspace, "tiny")


def test_no_serious_barrier(workspace, new_page):
    """With a form open, and one of each decision."""
    with serving(workspace) as url:
        page = new_page()
        open_proposals(page, url)
        press(page, "a")
        decided(page, 1)
        press(page, "r")
        page.keyboard.type("too wide")
        page.keyboard.press("Enter")
        decided(page, 2)
        assert page.evaluate("document.activeElement.className").startswith("proposal")
        press(page, "e")
        page.wait_for_selector(f"{CURRENT} [data-form=edit]:visible")
        assert barriers(page) == []
        page.keyboard.press("Escape")
        assert page.locator(f"{CURRENT} [data-form=edit]:visible").count() == 0
        assert page.evaluate("document.activeElement.className").startswith("proposal")


SEARCH = DraftSearch(
    key="0" * 64,
    optimizer="terms",
    parent="tiny@v1",
    cohort="dev",
    engine="rules",
    seed=0,
    candidates=1,
    engines=(),
    calls=None,
    parts=dict.fromkeys(PARTS, PartScores(None, None)),
    score="macro-F1",
    gain=Gain(None, None, None),
    proposals=(),
)


def shown_search(search, *proposals):
    """Return what the page shows of a search."""
    return show(
        "revise_proposals.html.jinja",
        search=search,
        parts=PARTS,
        rows=[ProposalRow(one, "<u>Lung Lesion</u>", None) for one in proposals],
        most=5,
        changed=1,
        said="",
        may=True,
    )


def test_scores_of_a_judge_have_the_name_of_their_measure():
    """A distance is no F1, and has a sign."""
    parts = dict.fromkeys(PARTS, PartScores(-1.25, None))
    shown = shown_search(replace(SEARCH, score="negative distance", parts=parts))
    assert "<caption>Negative distance, mean of the splits</caption>" in shown
    assert "macro-f1" not in shown.lower()
    assert shown.count(f">{share(-1.25)}<") == len(PARTS)


def test_a_hostile_wording_is_text():
    """In a heading, in an attribute and in the box of an edit."""
    one = TermProposal(
        label=LESION,
        kind=ProposalKind.TERM,
        wording=f'"><b>x</b>{HOSTILE}',
        support=('"><i>c1</i>',),
        against=(),
        fixed=1,
        gain=0.5,
        p=0.01,
    )
    shown = shown_search(replace(SEARCH, proposals=(one,)), one)
    assert "<caption>Macro-F1, mean of the splits</caption>" in shown
    for tag in ("<img", "<script", "<b>x", "<i>", "<u>"):
        assert tag not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert "rare" in shown
    assert "not estimable" in shown
