"""Verdicts become exactly the edits they ask for."""

from datetime import UTC, datetime

import pytest

from loop.core.errors import DataError
from loop.core.records import Clarification, Exemplar, Value
from loop.review.revise.draft import Authorship, build_draft
from loop.review.verdict import Edits, Judgement, Verdict

BY = Authorship("Dr A. Example", datetime(2026, 1, 6, tzinfo=UTC), "because")


def judge(label="pleural_effusion", **edits):
    """Return a verdict with these edits."""
    return Verdict(
        label=label,
        judgement=Judgement.MODEL_WRONG,
        edits=Edits(**edits),
        comment="general",
    )


def build(setting, *verdicts):
    """Return the effusion guide of the draft."""
    return build_draft(setting.tiny, verdicts, BY).draft.guide("pleural_effusion")


def test_every_kind_of_edit_lands_in_its_list(setting):
    """One verdict may carry several edits of several kinds."""
    rule = Clarification(phrase="blunted angle", value=Value.UNCERTAIN)
    example = Exemplar(text="Fluid is seen.", value=Value.PRESENT, evidence="Fluid")
    guide = build(
        setting,
        judge(
            terms=("layering fluid", "hydrothorax"),
            exclusions=("pericardial effusion",),
            clarifications=(rule,),
            exemplars=(example,),
            implies=("cardiomegaly",),
        ),
    )
    assert guide.terms == ("pleural effusion", "layering fluid", "hydrothorax")
    assert guide.exclusions == ("pericardial effusion",)
    assert guide.clarifications == (rule,)
    assert guide.exemplars == (example,)
    assert guide.implies == ("cardiomegaly",)


def test_templates_and_other_labels_stay_as_they_are(setting):
    """A revision touches the judged label only."""
    draft = build_draft(setting.tiny, [judge(terms=("fluid",))], BY).draft
    assert (draft.system, draft.user) == (setting.tiny.system, setting.tiny.user)
    assert draft.guide("cardiomegaly") == setting.tiny.guide("cardiomegaly")
    assert draft.parent == setting.tiny.digest


def test_a_term_already_there_is_noted_not_repeated(setting):
    """Spelling variants of case and hyphen are the same term."""
    built = build_draft(setting.tiny, [judge(terms=("Pleural-Effusion",))], BY)
    assert built.draft.digest == setting.tiny.digest
    assert "is there already" in built.notes[0]


def test_a_new_rule_for_the_same_phrase_replaces_the_old_one(setting):
    """The later round decides."""
    old = judge(clarifications=(Clarification(phrase="fluid", value=Value.UNCERTAIN),))
    base = build_draft(setting.tiny, [old], BY).draft
    new = Clarification(phrase="Fluid", value=Value.PRESENT)
    draft = build_draft(base, [judge(clarifications=(new,))], BY).draft
    assert draft.guide("pleural_effusion").clarifications == (new,)


def test_a_wording_can_move_from_terms_to_exclusions(setting):
    """Removals come first, so one verdict can do both."""
    verdict = judge(
        remove_terms=("pleural effusion",), exclusions=("pleural effusion",)
    )
    guide = build(setting, verdict)
    assert (guide.terms, guide.exclusions) == ((), ("pleural effusion",))


def test_removing_what_is_not_there_names_the_verdict(setting):
    """A typing error must not pass silently."""
    with pytest.raises(DataError, match=r"verdict 1: .* 'effusoin'"):
        build(setting, judge(remove_terms=("effusoin",)))


def test_two_verdicts_that_contradict_each_other_are_refused(setting):
    """Neither reviewer silently wins."""
    yes = judge(clarifications=(Clarification(phrase="blunt", value=Value.PRESENT),))
    no = judge(clarifications=(Clarification(phrase="Blunt", value=Value.ABSENT),))
    with pytest.raises(DataError, match=r"verdicts 1 and 2 disagree.*Agree on one"):
        build(setting, yes, no)


def test_a_label_without_a_guide_is_refused(setting):
    """The prompt does not ask for it, so there is nothing to edit."""
    with pytest.raises(DataError, match="no guide for edema"):
        build(setting, judge("edema", terms=("oedema",)))


def test_two_drafts_never_share_an_id(setting):
    """Two people may revise in the same second."""
    ids = {build_draft(setting.tiny, [], BY).draft.draft for _ in range(50)}
    assert len(ids) == 50
