"""A draft that is gone: who decided on it, when, and what came of it."""

from loop.review.revise.decide import CommitDecision, commit_checked, discard_draft
from loop.review.revise.draft import find_fate
from tests.review.revise.stepping import FLUID, OTHER, begin, check, now


def test_a_committed_draft_names_its_version(setting, store):
    """Whoever had it open elsewhere is told where it went."""
    draft = begin(setting, store, FLUID).draft
    check(setting, store, draft)
    commit_checked(
        setting.workspace, store, draft.ref, OTHER, CommitDecision("needed"), now=now
    )
    fate = find_fate(setting.workspace, draft.ref)
    assert fate == ("tiny@v2", OTHER.name, "2026-01-07T10:00:00Z", "needed")


def test_a_discarded_draft_names_who_gave_it_up(setting, store):
    """It was measured, so it stands in the ledger."""
    draft = begin(setting, store, FLUID).draft
    check(setting, store, draft)
    discard_draft(setting.workspace, draft.ref, OTHER, "not worth it", now=now)
    fate = find_fate(setting.workspace, draft.ref)
    assert fate is not None
    assert (fate.version, fate.actor, fate.reason) == ("", OTHER.name, "not worth it")


def test_private_work_leaves_no_trace(setting, store):
    """Nothing was measured, so nothing was recorded."""
    draft = begin(setting, store, FLUID).draft
    discard_draft(setting.workspace, draft.ref, OTHER, "a slip", now=now)
    assert find_fate(setting.workspace, draft.ref) is None
