"""A draft may be edited by hand; what holds for verdicts holds for the edits."""

from dataclasses import replace

import pytest

from loop.core.errors import OverlapError
from loop.prompts.catalog import write_version
from loop.review.revise.check import TargetOutcome
from loop.review.revise.revision import RevisionRequest, revise

FLUID = """
judgement: guideline_ambiguous
verdicts:
- {cases: [f0, f1], label: pleural_effusion, terms: [fluid ... base]}
"""


def keep(setting):
    """Run one round that stops before the commit and return it."""
    request = RevisionRequest(
        prompt="tiny",
        cohort="dev",
        verdicts=setting.verdicts(FLUID),
        keep_draft=True,
    )
    return revise(setting.workspace, request, setting.editor)


def test_a_kept_draft_can_be_edited_by_hand_and_committed(setting):
    """Templates change through a draft too, with the same check."""
    kept = keep(setting)
    assert kept.version is None
    assert not kept.objections
    edited = replace(kept.draft, system="Read it with care.\n", draft="edited")
    write_version(setting.workspace, edited)
    request = RevisionRequest(prompt="tiny@draft:edited", cohort="dev", why="more care")
    revision = revise(setting.workspace, request, setting.editor)
    assert revision.version.system == "Read it with care.\n"
    assert revision.version.verdicts == kept.draft.verdicts
    assert revision.version.parent == setting.tiny.digest


def test_the_cases_of_a_kept_draft_count_when_it_is_edited(setting):
    """Editing a draft by hand must not lose what its verdicts asked for."""
    kept = keep(setting)
    spoiled = replace(
        kept.draft, guides=setting.tiny.guides, system="Read well.\n", draft="spoiled"
    )
    write_version(setting.workspace, spoiled)
    request = RevisionRequest(prompt="tiny@draft:spoiled", cohort="dev", why="less")
    revision = revise(setting.workspace, request, setting.editor)
    assert revision.version is None
    assert revision.check.count(TargetOutcome.UNCHANGED) == 2
    assert any("f0 pleural_effusion" in one for one in revision.objections)


def test_verdicts_that_are_not_kept_here_are_named(setting):
    """Their cases cannot be checked, and that is said."""
    draft = replace(
        setting.tiny,
        number=0,
        draft="foreign",
        parent=setting.tiny.digest,
        system="Read well.\n",
        verdicts=("0123456789ab",),
    )
    write_version(setting.workspace, draft)
    request = RevisionRequest(prompt="tiny@draft:foreign", cohort="dev")
    revision = revise(setting.workspace, request, setting.editor)
    assert any("0123456789ab" in note for note in revision.notes)


@pytest.mark.parametrize("place", ["definition", "template"])
def test_text_of_a_holdout_case_is_refused_in_a_hand_edited_draft(setting, place):
    """The verdicts of this round are not the only way into a prompt."""
    text = "There is a meniscus of fluid along the left wall today."
    setting.add_cohort("held", "holdout", [("h1", text, 1, 0)])
    kept = keep(setting)
    first, second = kept.draft.guides
    change = (
        {"guides": (replace(first, definition=text), second)}
        if place == "definition"
        else {"system": f"Read the report.\n{text}\n"}
    )
    write_version(setting.workspace, replace(kept.draft, draft="edited", **change))
    before = setting.state()
    request = RevisionRequest(
        prompt="tiny@draft:edited", cohort="dev", override="anyway"
    )
    with pytest.raises(OverlapError, match=r"h1 of cohort held.*your own words"):
        revise(setting.workspace, request, setting.editor)
    assert setting.state() == before
