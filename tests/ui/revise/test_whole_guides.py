"""Whole guides that an optimizer proposed, decided on one by one on the page Revise."""

import re

import pytest

from loop.core.errors import ConflictError
from loop.core.people.users import PermissionRefused, Right, UserRole
from loop.core.records import Exemplar, Value
from loop.optimize.search import search_prompt
from loop.optimize.search_report import Optimizer, SearchRequest
from loop.prompts.catalog import read_version
from loop.review.submit import save_verdicts
from loop.review.verdict import Edits
from loop.run.store import open_store
from loop.ui.pages.base import SAME
from loop.ui.pages.revise import events
from loop.ui.pages.revise.state import find_typed, guide_of
from loop.ui.pages.revise.view import show_page
from tests.optimize.scenes import EFFUSION, LESION, SEARCHER, Bench, learnable
from tests.review.scenes import MADE_ON, WHEN, verdict
from tests.ui.visits import opened, visit


def approved(label, word, case):
    """Return a verdict that asks for an exemplar."""
    text = f"A {word} is seen there."
    shown = Exemplar(text=text, value=Value.PRESENT, evidence=word)
    return verdict(case, label=label, edits=Edits(exemplars=(shown,)))


@pytest.fixture
def proposed(workspace, tmp_path):
    """Return a workspace and a draft in which two guides have an exemplar more."""
    bench = Bench(workspace, tmp_path)
    bench.version()
    bench.cohort(learnable())
    with open_store(workspace) as store:
        rows = (
            approved(EFFUSION, "collection", "c000"),
            approved(LESION, "nodule", "c001"),
        )
        save_verdicts(store, rows, MADE_ON, WHEN)
    asked = SearchRequest(
        prompt="tiny", cohort="dev", optimizer=Optimizer.NEAREST, labels=()
    )
    found = search_prompt(workspace, asked, SEARCHER).drafts
    made = [read_version(workspace, one.ref) for one in found]
    (both,) = (one for one in made if all(guide.exemplars for guide in one.guides))
    return workspace, both.ref


@pytest.mark.slow
def test_the_draft_is_made_of_the_guides_that_are_accepted(proposed):
    """Each with its change and its effect; what is refused goes out, and says why."""
    workspace, ref = proposed
    with opened(workspace) as context:
        editor = visit(context, UserRole.EDITOR, right=Right.JUDGE)
        shown = show_page(editor, "tiny", "dev", ref)
        page = shown.proposals
        first, second = re.findall(r'data-id="([^"]+)" data-seen="(\w+)"', page)
        names = {one[0].partition(":")[0]: one for one in (first, second)}
        assert names.keys() == {EFFUSION, LESION}
        assert "0 of 2 decided" in page
        assert "20 cases put right, 0 made wrong" in page
        assert "nodule" in page

        def press(how, label, text="", *roles):
            proposal, seen = names[label]
            data = {"decide": how, "id": proposal, "seen": seen, "text": text}
            who = visit(
                context, *(roles or (UserRole.EDITOR,)), right=Right.JUDGE, **data
            )
            return events.decide(
                who, "tiny", "dev", shown.opened._replace(label=LESION)
            )

        with pytest.raises(PermissionRefused, match="takes the role"):
            press("accept", LESION, "", UserRole.REVIEWER)
        press("accept", LESION)
        # A browser tells once more what it holds, after that was saved.
        edited = shown.opened._replace(label=EFFUSION)
        saved = guide_of(read_version(workspace, ref), EFFUSION)
        events.type_guide(visit(context, UserRole.EDITOR), edited, saved)
        refused = press("refuse", EFFUSION, "of one ward <only>")
        assert find_typed(editor, ref, EFFUSION) is None
        assert refused.keep_label == refused.tried == refused.heard == SAME
        page = refused.proposals
        assert "2 of 2 decided" in page
        assert re.search("Refused</b> by Dr A.*of one ward &lt;only&gt;", page)
        draft = read_version(workspace, ref)
        assert [len(draft.guide(one).exemplars) for one in (EFFUSION, LESION)] == [0, 1]
        with pytest.raises(ConflictError, match="changed since it was shown here"):
            press("accept", EFFUSION)
