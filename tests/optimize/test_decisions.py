"""What an optimizer proposed is decided by people, one by one, and stays decided."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from loop.core.clock import format_time
from loop.core.digests import digest_text
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor
from loop.optimize.decisions import (
    DecisionKind,
    GuideProposal,
    _list_changes,
    accept_guide,
    accept_proposal,
    find_search,
    read_decisions,
    refuse_found,
    refuse_guide,
)
from loop.optimize.estimate import PartScores
from loop.optimize.nested_search import GuideEffect
from loop.optimize.proposals import INSTRUCTIONS, Objection, name_proposal
from loop.optimize.refusals import read_refusals, refuse_proposal
from loop.optimize.search import search_prompt
from loop.optimize.search_report import Optimizer, SearchRequest
from loop.optimize.terms import apply_proposals
from loop.prompts.catalog import read_version, write_version
from loop.prompts.diff import PromptChange
from loop.prompts.instructions import instructions_text
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.draft_files import (
    DraftMetadata,
    DraftOrigin,
    read_about,
    write_draft,
)
from loop.review.revise.edit import guide_text
from loop.review.revise.merge import rebase_draft
from loop.review.status import VerdictState, read_kept
from loop.review.submit import VerdictContext, submit_verdict, withdraw_verdict
from loop.run.store import open_store
from tests.optimize.made_task import ACTOR, SYNONYMS, TINY
from tests.optimize.scenes import EFFUSION, LESION, SEARCHER
from tests.optimize.test_search import approve, request

TERM, OTHER = f"{EFFUSION}:term:collection", f"{LESION}:term:nodule"
CLINICIAN = Actor(name="Dr C. Example", role="reviewer")


@pytest.fixture
def report(taught):
    """Search on the cohort."""
    return search_terms(taught.workspace)


def search_terms(workspace, prompt="tiny", **options):
    """Search for terms."""
    asked = SearchRequest(prompt=prompt, cohort="dev", **options)
    return search_prompt(workspace, asked, SEARCHER)


@pytest.fixture
def search(taught, report):
    """Return the search as it is found from its draft."""
    return find_search(
        taught.workspace, read_version(taught.workspace, report.drafts[0].ref)
    )


@pytest.fixture
def store(taught):
    """Open the store."""
    with open_store(taught.workspace) as opened:
        yield opened


def decisions(taught, store, search):
    """Return what was decided."""
    kept = read_kept(store, taught.workspace, "dev")
    return read_decisions(taught.workspace, kept, search)


def test_a_draft_leads_to_its_search(report, search):
    """With the three scores, what was tried, and the proposals in their order."""
    assert search.key == report.spec.key
    assert search.proposals == report.findings.proposals
    assert search.gain.value == report.findings.estimate.gain.estimate
    assert search.candidates == report.findings.candidates
    assert search.parts["estimate"] == report.findings.estimate.mean("estimate")


@pytest.mark.parametrize(
    ("searched", "honest", "excess"),
    [(0.75, 0.5, 0.25), (0.5, 0.75, -0.25), (None, 0.5, None), (0.5, None, None)],
)
def test_what_was_searched_is_above_the_rest_by_the_wording_found(
    search, searched, honest, excess
):
    """Whatever the parent scores, or the cases that select."""
    parts = {
        "search": PartScores(0.125, searched),
        "select": PartScores(0.0, 1.0),
        "estimate": PartScores(0.25, honest),
    }
    assert replace(search, parts=parts).excess == excess


def test_of_several_searches_the_one_is_found_that_wrote_the_draft(taught):
    """Others before and after it find other things; a study writes no draft."""
    workspace = taught.workspace
    search_terms(workspace, "tiny@v1", seed=2, study=True)
    report = search_terms(workspace)
    search_terms(workspace, "tiny@v1", labels=(LESION,), seed=3, study=True)
    draft = read_version(workspace, report.drafts[0].ref)
    assert find_search(workspace, draft).key == report.spec.key


def test_a_draft_that_names_no_search_is_of_the_one_whose_proposals_it_says(taught):
    """All of them; of several such the last one before it was begun."""
    workspace = taught.workspace
    one = search_terms(workspace, "tiny@v1", labels=(LESION,), study=True)
    both = search_terms(workspace, "tiny@v1", seed=2, study=True)
    search_terms(workspace, "tiny@v1", labels=(EFFUSION,), study=True)
    assert [len(made.findings.proposals) for made in (one, both)] == [1, 2]
    parent = read_version(workspace, "tiny@v1")
    begun = datetime.now(UTC) + timedelta(minutes=1)
    about = DraftMetadata(
        cohort="dev",
        origin=DraftOrigin.OPTIMIZER,
        begun_by=SEARCHER.name,
        begun=format_time(begun),
    )
    for terms, wanted in (
        ((EFFUSION, LESION), both),
        ((LESION,), one),
    ):
        said = [made for made in both.findings.proposals if made.label in terms]
        guides = parent.guides
        made = apply_proposals(parent, said)
        draft = replace(
            parent,
            number=0,
            draft=f"of-{len(terms)}",
            parent=parent.digest,
            guides=tuple(made.get(guide.label, guide) for guide in guides),
        )
        write_draft(workspace, draft, about)
        found = find_search(workspace, draft)
        assert (found.key, found.draft) == (wanted.spec.key, draft.ref)
    earlier = replace(about, begun="2025-01-02T00:00:00Z")
    old = replace(draft, draft="old")
    write_draft(workspace, old, earlier)
    assert find_search(workspace, old) is None
    other = replace(draft, draft="other")
    write_draft(workspace, other, replace(about, cohort="other"))
    assert find_search(workspace, other) is None


def test_a_draft_of_a_person_has_no_search(taught, store):
    """Whatever was searched before it."""
    request = DraftRequest(prompt="tiny", cohort="dev")
    made = begin_draft(taught.workspace, store, request, SEARCHER)
    assert find_search(taught.workspace, made.draft) is None


def test_a_result_that_was_changed_by_hand_is_refused(taught, report):
    """A wording in it would be accepted under a clinician's name."""
    (path,) = taught.workspace.private.glob("optimize/*/result.json")
    data = json.loads(path.read_text("utf-8"))
    data["result"]["proposals"][0]["wording"] = "nothing"
    path.write_text(json.dumps(data), "utf-8")
    draft = read_version(taught.workspace, report.drafts[0].ref)
    with pytest.raises(DataError, match="changed by something other"):
        find_search(taught.workspace, draft)


def test_what_is_accepted_is_a_verdict_that_a_draft_is_built_from(
    taught, store, search
):
    """Under the clinician's name, with their own words where they gave some."""
    accept_proposal(taught.workspace, store, search, TERM, CLINICIAN)
    accept_proposal(
        taught.workspace, store, search, OTHER, CLINICIAN, wording=" nodules "
    )
    found = decisions(taught, store, search)
    assert found[TERM].kind is DecisionKind.ACCEPTED
    assert (found[OTHER].kind, found[OTHER].said) == (DecisionKind.EDITED, "nodules")
    kept = read_kept(store, taught.workspace, "dev")
    assert {one.verdict.reviewer for one in kept} == {CLINICIAN.name}
    assert [one.circumstances for one in kept] == [
        VerdictContext("dev", "tiny@v1", f"terms {search.key[:16]}: {one}")
        for one in (TERM, OTHER)
    ]
    ids = tuple(one.id for one in kept)
    request = DraftRequest(prompt="tiny", cohort="dev", verdicts=ids)
    draft = begin_draft(taught.workspace, store, request, CLINICIAN).draft
    assert draft.guide(EFFUSION).terms == ("collection",)
    assert draft.guide(LESION).terms == ("nodules",)


def test_the_second_of_two_for_the_same_cases_leaves_the_first_standing(
    taught, store, search
):
    """A later verdict of one reviewer would take the pairs of the earlier one."""
    first = search.proposal(TERM)
    twin = replace(first, wording="small collection")
    both = replace(search, proposals=(first, twin))
    accept_proposal(taught.workspace, store, both, TERM, CLINICIAN)
    accept_proposal(taught.workspace, store, both, twin.id, CLINICIAN)
    kept = read_kept(store, taught.workspace, "dev")
    assert [one.state for one in kept] == [VerdictState.OPEN] * 2
    assert [len(one.pairs) for one in kept] == [len(first.support), 0]
    third, fourth = (replace(first, wording=f"{word} fluid") for word in ("old", "new"))
    more = replace(search, proposals=(third, fourth))
    accept_proposal(taught.workspace, store, more, third.id, SEARCHER)
    withdraw_verdict(store, kept[0].id, CLINICIAN, "a slip")
    accept_proposal(taught.workspace, store, more, fourth.id, CLINICIAN)
    kept = read_kept(store, taught.workspace, "dev")
    assert [len(one.pairs) for one in kept[2:]] == [len(first.support)] * 2


def test_what_is_accepted_is_decided_until_it_is_withdrawn(taught, store, search):
    """Neither accepted again by somebody else nor refused meanwhile."""
    key = accept_proposal(taught.workspace, store, search, TERM, CLINICIAN)
    with pytest.raises(ConflictError, match="once that verdict is withdrawn"):
        accept_proposal(taught.workspace, store, search, TERM, SEARCHER)
    with pytest.raises(ConflictError, match=CLINICIAN.name):
        refuse_found(taught.workspace, store, search, TERM, "no", SEARCHER)
    withdraw_verdict(store, key, CLINICIAN, "a slip")
    assert decisions(taught, store, search) == {}
    accept_proposal(taught.workspace, store, search, TERM, SEARCHER)


def test_a_refusal_is_remembered_until_somebody_accepts(taught, store, search):
    """A search in between does not propose it."""
    refuse_found(taught.workspace, store, search, TERM, " too wide ", CLINICIAN)
    assert decisions(taught, store, search)[TERM][:2] == (
        DecisionKind.REFUSED,
        CLINICIAN.name,
    )
    again = search_terms(taught.workspace)
    assert TERM not in [one.id for one in again.findings.proposals]
    accept_proposal(taught.workspace, store, search, TERM, CLINICIAN)
    assert read_refusals(taught.workspace, "tiny") == {}


def test_a_refusal_after_an_acceptance_counts(taught, store, search):
    """`optimize --refuse` looks at no verdict: the last word counts."""
    begun = datetime(2026, 3, 1, 9, tzinfo=UTC)
    first, second, third = (
        lambda after=after: begun + timedelta(seconds=after) for after in (1, 2, 3)
    )
    accept_proposal(taught.workspace, store, search, TERM, CLINICIAN, now=second)
    refuse_proposal(taught.workspace, "tiny", TERM, "no", SEARCHER, now=first)
    assert decisions(taught, store, search)[TERM].kind is DecisionKind.ACCEPTED
    refuse_proposal(taught.workspace, "tiny", TERM, "too wide", SEARCHER, now=third)
    assert decisions(taught, store, search)[TERM][:4] == (
        DecisionKind.REFUSED,
        SEARCHER.name,
        "2026-03-01T09:00:03Z",
        "too wide",
    )


@pytest.mark.parametrize(
    ("proposal", "wording", "told"),
    [
        ("edema:term:fluid", None, "is no proposal of this search"),
        (TERM, "  ", "nothing is written in place of"),
        (TERM, "*", "pattern|wording|word"),
    ],
)
def test_what_no_draft_could_be_made_of_is_not_kept(
    taught, store, search, proposal, wording, told
):
    """The reason says what to do."""
    with pytest.raises(DataError, match=told):
        accept_proposal(
            taught.workspace, store, search, proposal, CLINICIAN, wording=wording
        )
    assert not read_kept(store, taught.workspace, "dev")


def test_a_refusal_needs_a_reason(taught, store, search):
    """Whoever searches again will want to know it."""
    with pytest.raises(DataError, match="give a reason"):
        refuse_found(taught.workspace, store, search, TERM, " ", CLINICIAN)


def test_a_verdict_made_by_hand_decides_no_proposal(taught, store, search):
    """Even if it asks for the same."""
    accept_proposal(taught.workspace, store, search, TERM, CLINICIAN)
    (kept,) = read_kept(store, taught.workspace, "dev")
    withdraw_verdict(store, kept.id, CLINICIAN, "a slip")
    by_hand = kept.circumstances._replace(source="")
    submit_verdict(store, kept.verdict, by_hand)
    assert decisions(taught, store, search) == {}


def test_changes_are_told_by_guide_and_by_line_of_the_instructions():
    """Nothing of what stays, nor the heads of a difference."""
    base = replace(TINY, system="Read.\nDecide.\n")
    effusion, heart = base.guides
    guides = (replace(effusion, terms=("pleural effusion", "fluid")), heart)
    made = replace(base, system="Read all.\nDecide.\n++ So.\n", guides=guides)
    line = "instruction line"
    assert _list_changes(base, made) == {
        effusion.label: (PromptChange("+", "term", "fluid"),),
        INSTRUCTIONS: (
            PromptChange("-", line, "Read."),
            PromptChange("+", line, "Read all."),
            PromptChange("+", line, "++ So."),
        ),
    }
    assert _list_changes(base, replace(made, system=base.system)).keys() == {
        effusion.label
    }


def test_proposed_instructions_are_said_otherwise_and_taken_out(taught, search):
    """They are no guide of a label, but are decided like one."""
    draft = read_version(taught.workspace, search.draft)
    text = instructions_text(draft)
    old, better = (text.replace("Read.", one) for one in ("See.", "Read all."))
    one = GuideProposal(
        id=f"{INSTRUCTIONS}:guide:0",
        label=INSTRUCTIONS,
        text=text,
        said=text,
        old=old,
        changes=(),
        effect=GuideEffect(INSTRUCTIONS, (), (), None, None),
        accepted=None,
    )
    search = replace(search, guides=(one,))
    assert (one.inside, replace(one, said=old).inside) == (True, False)
    assert one.mark == digest_text(text)
    accept_guide(taught.workspace, search, one.id, CLINICIAN, text=better)
    draft = read_version(taught.workspace, search.draft)
    assert (draft.system, draft.author) == ("Read all.\n", CLINICIAN.name)
    accepted = read_about(taught.workspace, draft).accepted
    assert {name: one.by for name, one in accepted.items()} == {one.id: CLINICIAN.name}
    with pytest.raises(ConflictError):
        refuse_guide(taught.workspace, search, one.id, "no", CLINICIAN)
    search = replace(search, guides=(replace(one, said=better),))
    refuse_guide(taught.workspace, search, one.id, "too much", CLINICIAN)
    draft = read_version(taught.workspace, search.draft)
    assert draft.system == "See.\n"
    assert read_about(taught.workspace, draft).accepted == {}
    with pytest.raises(DataError, match="is no proposal of this search"):
        accept_guide(taught.workspace, search, TERM, CLINICIAN)


@pytest.fixture
def whole(improvable):
    """Return a workspace and a draft that changes a whole guide."""
    approve(improvable, *SYNONYMS)
    result = search_prompt(improvable, request(Optimizer.NEAREST), ACTOR)
    return improvable, result.drafts[0].ref, result


def look(workspace, ref):
    """Return the search of a draft, its one guide and what was decided on it."""
    search = find_search(workspace, read_version(workspace, ref))
    with open_store(workspace) as store:
        kept = read_kept(store, workspace, "dev")
    (guide,) = search.guides
    return search, guide, read_decisions(workspace, kept, search).get(guide.id)


@pytest.mark.slow
def test_a_draft_of_whole_guides_leads_to_its_search_too(whole):
    """With the figures, and each guide with what it changes and what it does."""
    workspace, ref, result = whole
    search, guide, decided = look(workspace, ref)
    assert (search.optimizer, search.proposals) == ("nearest", ())
    assert search.key == result.spec.key
    assert search.candidates == result.findings.candidates
    assert search.calls == result.findings.effort.calls > 0
    assert search.gain.low == result.findings.estimate.gain.low > 0
    assert search.parts["select"] == result.findings.estimate.mean("select")
    assert (guide.label, decided) == ("pleural_effusion", None)
    assert {one.kind for one in guide.changes} == {"exemplar"}
    assert guide.inside
    assert guide.effect.after > guide.effect.before
    assert guide.effect.fixed
    assert guide.effect.broken == ()


@pytest.mark.slow
def test_a_whole_guide_is_refused_put_back_and_said_otherwise(whole):
    """The draft says what was accepted; a refused guide is not proposed again."""
    workspace, ref, result = whole
    search, guide, _ = look(workspace, ref)
    with pytest.raises(DataError, match="give a reason"):
        refuse_guide(workspace, search, guide.id, " ", CLINICIAN)
    refuse_guide(workspace, search, guide.id, "one ward only", CLINICIAN)
    draft = read_version(workspace, ref)
    assert draft.digest == TINY.digest
    search, gone, decided = look(workspace, ref)
    assert (search.key, gone.inside) == (result.spec.key, False)
    assert decided[:2] == (DecisionKind.REFUSED, CLINICIAN.name)
    again = search_prompt(workspace, request(Optimizer.NEAREST, study=True), ACTOR)
    assert dict(again.findings.effort.refused).keys() == {Objection.REFUSED.value}
    assert again.words == (
        "no better prompt found: no approved exemplar could be added"
    )
    assert guide.id not in [
        name_proposal(one.label, one)
        for kept in again.findings.kept
        for one in kept.guides
    ]

    accept_guide(workspace, search, guide.id, SEARCHER)
    assert read_version(workspace, ref).digest == result.found[0].digest
    assert read_refusals(workspace, "tiny") == {}
    search, back, decided = look(workspace, ref)
    assert decided[:2] == (DecisionKind.ACCEPTED, SEARCHER.name)

    words = back.said.replace("today", "now")
    accept_guide(workspace, search, guide.id, CLINICIAN, text=words)
    _, _, decided = look(workspace, ref)
    assert decided[:2] == (DecisionKind.EDITED, CLINICIAN.name)
    assert read_version(workspace, ref).author == CLINICIAN.name
    with pytest.raises(ConflictError, match="edited the guide"):
        accept_guide(workspace, search, guide.id, SEARCHER, text=guide.text)


@pytest.mark.slow
def test_after_a_rebase_a_refused_guide_is_the_new_parents(whole):
    """The draft was rebased after the search, onto a version with another guide."""
    workspace, ref, result = whole
    _, before, _ = look(workspace, ref)
    effusion, heart = TINY.guides
    newer = replace(effusion, definition="Fluid between lung and chest wall.")
    write_version(
        workspace,
        replace(TINY, number=2, parent=TINY.digest, guides=(newer, heart)),
    )
    rebased = rebase_draft(workspace, ref, CLINICIAN).draft
    search, guide, decided = look(workspace, rebased.ref)
    assert (search.key, search.parent, decided) == (result.spec.key, "tiny@v1", None)
    assert (before.old, guide.old) == (guide_text(effusion), guide_text(newer))
    assert (guide.text, guide.changes) == (before.text, before.changes)
    assert guide.said == before.said.replace(effusion.definition, newer.definition)
    refuse_guide(workspace, search, guide.id, "no", CLINICIAN)
    assert read_version(workspace, rebased.ref).guides[0] == newer
