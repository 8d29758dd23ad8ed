"""What an optimizer proposed is decided by people, one by one, and stays decided."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor
from loop.optimize.decisions import (
    DecisionKind,
    accept_guide,
    accept_proposal,
    find_search,
    read_decisions,
    refuse_found,
    refuse_guide,
)
from loop.optimize.proposals import Objection, name_proposal
from loop.optimize.refusals import read_refusals, refuse_proposal
from loop.optimize.search import search_prompt
from loop.optimize.search_report import Optimizer, SearchRequest
from loop.prompts.catalog import read_version
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.status import VerdictState, read_kept
from loop.review.submit import submit_verdict, withdraw_verdict
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


def test_of_two_searches_the_one_is_found_that_wrote_the_draft(taught, report):
    """Another seed finds other things; a study writes no draft."""
    search_terms(taught.workspace, "tiny@v1", labels=(LESION,), seed=3, study=True)
    draft = read_version(taught.workspace, report.drafts[0].ref)
    assert find_search(taught.workspace, draft).key == report.spec.key


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
