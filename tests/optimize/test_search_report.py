"""A report says how a search ended, in words, as data and as figures."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from loop.core.errors import EngineError
from loop.optimize.documents import draw_curve, part_rows, render_search
from loop.optimize.estimate import LabelGain, NestedEstimate, PartScores, SplitScores
from loop.optimize.ground import AgreementGain
from loop.optimize.nested_search import AcceptedScore, SearchEffort
from loop.optimize.search_record import SearchSpec
from loop.optimize.search_report import (
    CASES,
    PROPOSALS,
    AskedEngine,
    FoundDraft,
    KeptWording,
    Optimizer,
    SearchFindings,
    SearchReport,
    SearchRequest,
    price_engines,
)
from loop.optimize.terms import ProposalKind, TermProposal
from loop.run.cost import EngineUse, RunCost
from loop.run.execute import Usage
from loop.stats.resampling import Bootstrap

SVG = "{http://www.w3.org/2000/svg}"
MODEL = "openai:me/big@http://127.0.0.1:9/v1"


def interval(value, low=None, high=None):
    """Return a statistic with its limits."""
    return Bootstrap(value, low, high, 200, 0)


ESTIMATE = NestedEstimate(
    splits=(
        SplitScores(PartScores(0.5, 0.9), PartScores(0.5, 0.8), PartScores(0.4, 0.6)),
        SplitScores(PartScores(0.7, 0.9), PartScores(None, 0.8), PartScores(0.6, 0.8)),
    ),
    parent=interval(0.5, 0.4, 0.6),
    found=interval(0.7, 0.6, 0.8),
    gain=interval(0.2, 0.1, 0.3),
    kappa_gain=interval(0.1, 0.05, 0.15),
    labels=(
        LabelGain("edema", 12, True, 0.5, 0.7),
        LabelGain("mass", 2, False, None, 1.0),
    ),
    cases=98,
    left_out=2,
    unit="case",
)
TERM = TermProposal(
    label="edema",
    kind=ProposalKind.TERM,
    wording="fluid",
    support=("a", "b"),
    against=("c",),
    fixed=1,
    gain=0.1,
    p=0.5,
)
CURVE = (AcceptedScore(0, 0.5, 0.4), AcceptedScore(2, 0.9, 0.6))
SPEC = SearchSpec(
    prompt="tiny@v1",
    prompt_digest="0" * 64,
    cohort="dev",
    cohort_digest="1" * 64,
    reference=1,
    reference_digest="2" * 64,
    protocol_digest="3" * 64,
    splits="4" * 64,
    engine="rules",
    asker="5" * 64,
    optimizer="terms",
    seed=7,
    budget=60,
)


def report_of(*, estimate=ESTIMATE, spec=SPEC, drafts=(), **findings):
    """Return a report of a search for terms; by default something better was kept."""
    fields = {
        "labels": ("edema",),
        "estimate": estimate,
        "kept": (KeptWording((), None),),
        "proposals": (TERM,),
        "curve": CURVE,
        "scored": 3,
        "effort": SearchEffort(tested=40, calls=5, refused=(("known", 2),)),
    }
    return SearchReport(
        spec=spec,
        findings=SearchFindings(**(fields | findings)),
        engines=(AskedEngine("answers", EngineUse("rules", asked=4, cached=3), None),),
        not_estimable=("mass",),
        found=(),
        expected_excess=0.02,
        remembered=False,
        stale=("the reference changed",),
        drafts=drafts,
    )


WORSE = replace(ESTIMATE, gain=interval(0.2, 0.0, 0.3))
JUDGED = replace(ESTIMATE, score="negative distance")
ALL_RIGHT = "nothing to search for: no label that can be estimated is wrong"
NO_FAIL = (
    "nothing to search for: no label that can be estimated fails its gate; try "
    "--labels all"
)


def asked_for(labels, optimizer="terms"):
    """Return what a search was told of labels."""
    return replace(SPEC, settings={"labels": labels}, optimizer=optimizer)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, "a better prompt was found; no draft: this is a study"),
        ({"drafts": (FoundDraft("tiny@draft:a", ()),)}, "1 draft"),
        ({"drafts": (FoundDraft("a", ()), FoundDraft("b", ()))}, "2 drafts"),
        ({"labels": ()}, ALL_RIGHT),
        ({"labels": (), "spec": asked_for(["failing"])}, NO_FAIL),
        ({"labels": (), "spec": asked_for(["edema"])}, ALL_RIGHT),
        ({"labels": (), "spec": asked_for("failing")}, ALL_RIGHT),
        (
            {"labels": (), "spec": asked_for(["failing"]), "estimate": JUDGED},
            ALL_RIGHT,
        ),
        (
            {"kept": ()},
            "the search gains on unseen cases, but its last run, over all cases, found "
            "nothing better: no draft",
        ),
        ({"kept": (), "estimate": WORSE}, "no better prompt found"),
        (
            {"kept": (), "estimate": WORSE, "scored": 0},
            "no better prompt found",
        ),
        (
            {
                "kept": (),
                "estimate": WORSE,
                "scored": 0,
                "spec": asked_for([], "nearest"),
            },
            "no better prompt found: no exemplar is approved for these labels",
        ),
        (
            {
                "kept": (),
                "estimate": WORSE,
                "scored": 0,
                "spec": asked_for([], "bootstrap"),
                "effort": SearchEffort(proposed=1),
            },
            "no better prompt found: no approved exemplar could be added",
        ),
        (
            {"kept": (), "estimate": WORSE, "spec": asked_for([], "bootstrap")},
            "no better prompt found",
        ),
    ],
)
def test_how_it_ended_is_one_line(found, words):
    """What was found, or why nothing was."""
    report = report_of(**found)
    assert report.words == words
    assert report.better is bool(report.findings.kept)


def test_the_data_are_the_whole_report():
    """Scores by part, the estimate, each label, the curve, proposals and drafts."""
    drafts = (FoundDraft("tiny@draft:a", ("worse",), ("note",)),)
    limits = {"resamples": 200, "redrawn": 0}
    assert report_of(drafts=drafts).data == {
        "prompt": "tiny@v1",
        "cohort": "dev",
        "engine": "rules",
        "optimizer": "terms",
        "seed": 7,
        "search": SPEC.key,
        "better": True,
        "remembered": False,
        "stale": ["the reference changed"],
        "labels": ["edema"],
        "not_estimable": ["mass"],
        "candidates": 43,
        "expected_excess": 0.02,
        "effort": {
            "tested": 40,
            "calls": 5,
            "proposed": 0,
            "refused": {"known": 2},
            "reflections": 0,
        },
        "asked": {
            "answers": {
                "engine": "rules",
                "requests": 7,
                "stored": 3,
                "unanswered": 0,
                "prompt_tokens": None,
                "output_tokens": None,
                "cost": None,
                "currency": "",
            }
        },
        "parts": {
            "search": {"parent": pytest.approx(0.6), "found": pytest.approx(0.9)},
            "select": {"parent": 0.5, "found": 0.8},
            "estimate": {"parent": pytest.approx(0.5), "found": pytest.approx(0.7)},
        },
        "score": "macro-F1",
        "estimate": {
            "parent": {"estimate": 0.5, "low": 0.4, "high": 0.6, **limits},
            "found": {"estimate": 0.7, "low": 0.6, "high": 0.8, **limits},
            "gain": {"estimate": 0.2, "low": 0.1, "high": 0.3, **limits},
            "kappa_gain": {"estimate": 0.1, "low": 0.05, "high": 0.15, **limits},
            "cases": 98,
            "left_out": 2,
        },
        "agreement": None,
        "per_label": [
            {
                "label": "edema",
                "positives": 12,
                "estimable": True,
                "parent": 0.5,
                "found": 0.7,
            },
            {
                "label": "mass",
                "positives": 2,
                "estimable": False,
                "parent": None,
                "found": 1.0,
            },
        ],
        "curve": [
            {"accepted": 0, "search": 0.5, "estimate": 0.4},
            {"accepted": 2, "search": 0.9, "estimate": 0.6},
        ],
        "proposals": [
            {
                "label": "edema",
                "kind": ProposalKind.TERM,
                "wording": "fluid",
                "value": "",
                "support": ("a", "b"),
                "against": ("c",),
                "fixed": 1,
                "gain": 0.1,
                "p": 0.5,
                "id": "edema:term:fluid",
                "rare": True,
            }
        ],
        "drafts": [{"ref": "tiny@draft:a", "objections": ["worse"], "notes": ["note"]}],
    }


def test_agreement_of_a_judge_is_among_the_data():
    """With its three numbers, each with limits."""
    tau = interval(0.5, 0.4, 0.6)
    gain = AgreementGain("tau-b", "GREEN", "one rater's points", tau, tau, tau, 75)
    data = report_of(estimate=replace(JUDGED, agreement=gain)).data
    assert data["score"] == "negative distance"
    assert data["agreement"] == {
        "measure": "tau-b",
        "score": "GREEN",
        "against": "one rater's points",
        "parent": tau._asdict(),
        "found": tau._asdict(),
        "gain": tau._asdict(),
        "cases": 75,
    }


def test_what_an_engine_was_asked_is_told_with_its_cost():
    """Without a price, or with answers whose tokens nobody counted, it is unknown."""
    used = Usage(answers=4, prompt_tokens=1_000, completion_tokens=50)
    use = EngineUse(MODEL, asked=4, cached=0, used=used)
    priced = AskedEngine("proposes", use, RunCost(1_234.5, "EUR"))
    assert priced.cost_words == "1,234.5000 EUR"
    assert priced.tokens == (1_000, 50)
    assert priced.data == {
        "engine": MODEL,
        "requests": 4,
        "stored": 0,
        "unanswered": 0,
        "prompt_tokens": 1_000,
        "output_tokens": 50,
        "cost": 1_234.5,
        "currency": "EUR",
    }
    assert priced._replace(cost=None).cost_words == "unknown"
    lost = AskedEngine("answers", use._replace(asked=5), None)
    assert (lost.tokens, lost.is_model) == (None, True)
    rules = AskedEngine("answers", EngineUse("rules", asked=4, used=used), None)
    assert (rules.cost_words, rules.tokens, rules.is_model) == ("–", None, False)


def test_the_first_engine_answers_and_the_second_proposes(workspace):
    """By the prices of today, where there are any."""
    used = Usage(answers=1, prompt_tokens=1_000_000, completion_tokens=100_000)
    uses = (EngineUse("rules", asked=1), EngineUse(MODEL, asked=1, used=used))
    assert [one.cost for one in price_engines(workspace, uses)] == [None, None]
    workspace.open_private()
    workspace.config.write_text(
        "prices:\n  me/big: {input: 2.0, output: 10.0, currency: EUR}\n"
    )
    found = price_engines(workspace, uses)
    assert [(one.what, one.use, one.cost) for one in found] == [
        ("answers", uses[0], None),
        ("proposes", uses[1], RunCost(3.0, "EUR")),
    ]
    assert [one.what for one in price_engines(workspace, uses[:1])] == ["answers"]


def test_a_request_has_defaults_by_its_optimizer():
    """Terms look at all labels, others at those that fail; limits differ, too."""
    terms = SearchRequest(prompt="p", cohort="c")
    gepa = replace(terms, optimizer=Optimizer.GEPA)
    assert (terms.limit, terms.wanted) == (PROPOSALS, ())
    assert (gepa.limit, gepa.wanted) == (CASES, ("failing",))
    for one in (terms, gepa):
        assert replace(one, budget=1).limit == 1
        assert replace(one, labels=("edema",)).wanted == ("edema",)
        assert replace(one, labels=()).wanted == ()
        for name in ("budget", "splits"):
            with pytest.raises(ValueError, match=f"{name} must be >= 1, got 0"):
                replace(one, **{name: 0})
        assert replace(one, splits=1).splits == 1


@pytest.mark.parametrize("optimizer", list(Optimizer))
def test_only_what_reflects_needs_a_language_model(optimizer):
    """And says which optimizers need none."""
    reflects = optimizer in (Optimizer.GEPA, Optimizer.MIPRO)
    assert optimizer.reflects is reflects
    if reflects:
        with pytest.raises(EngineError, match=r"terms.*bootstrap.*nearest"):
            optimizer.check_reflects("rules")
    else:
        optimizer.check_reflects("rules")
    assert ("dspy" in optimizer.libraries) is (optimizer is not Optimizer.TERMS)


def test_scores_of_parts_are_held_against_the_estimate():
    """By how much each is too high; unknown where one of both is."""
    rows = part_rows(report_of())
    assert [row.part for row in rows] == ["search", "select", "estimate"]
    assert [row.excess for row in rows] == [pytest.approx(0.2), pytest.approx(0.1), 0.0]
    nothing = PartScores(None, None)
    splits = (SplitScores(PartScores(0.5, 0.9), nothing, PartScores(0.4, 0.6)),)
    rows = part_rows(report_of(estimate=replace(ESTIMATE, splits=splits)))
    assert [row.excess for row in rows] == [pytest.approx(0.3), None, 0.0]
    splits = (SplitScores(PartScores(0.5, 0.9), nothing, nothing),)
    rows = part_rows(report_of(estimate=replace(ESTIMATE, splits=splits)))
    assert [row.excess for row in rows] == [None, None, None]


def drawn(*points):
    """Return the figure of a curve as a tree."""
    return ElementTree.fromstring(draw_curve(points))


def test_the_curve_goes_through_its_points():
    """From 46 to 566 pixels across and from 226 up, on an axis from 0.4 to 0.9."""
    root = drawn(*CURVE)
    searched, other = (one.get("d") for one in root.findall(f"{SVG}path"))
    assert searched == "M46 186L566 26"
    assert other == "M46 226L566 146"
    assert root.find(f"{SVG}desc").text == (
        "0: 0.500 searched, 0.400 not. 2: 0.900 searched, 0.600 not"
    )
    texts = {
        one.text: (one.get("x"), one.get("y")) for one in root.findall(f"{SVG}text")
    }
    assert texts["on the cases searched"] == ("574", "30")
    assert texts["on cases not searched"] == ("574", "150")
    assert texts["proposals"] == ("306", "260")
    assert (texts["0"], texts["2"]) == (("46", "243"), ("566", "243"))
    assert (texts["0.4"], texts["0.9"]) == (("40", "230"), ("40", "30"))
    lines = [
        tuple(one.get(name) for name in ("x1", "y1", "x2", "y2"))
        for one in root.findall(f"{SVG}line")
    ]
    assert lines[0] == ("46", "226", "566", "226")
    assert lines[-1] == ("46", "26", "566", "26")


def test_a_point_without_a_score_is_left_out_of_its_line():
    """The other line goes on; words name only points that have both."""
    root = drawn(*CURVE, AcceptedScore(4, 0.9, None))
    searched, other = (one.get("d") for one in root.findall(f"{SVG}path"))
    assert (searched.count("L"), other.count("L")) == (2, 1)
    assert "4:" not in root.find(f"{SVG}desc").text
    one_line = drawn(AcceptedScore(0, 0.5, None), AcceptedScore(1, 0.6, None))
    assert len(one_line.findall(f"{SVG}path")) == 1


@pytest.mark.parametrize(
    "points",
    [(), CURVE[:1], (AcceptedScore(0, None, None), AcceptedScore(1, None, None))],
)
def test_without_two_points_there_is_no_curve(points):
    """It says so in the place of a figure."""
    root = drawn(*points)
    assert root.find(f"{SVG}desc").text == "There is no curve."
    assert [one.text for one in root.findall(f"{SVG}text")] == ["nothing was found"]


def test_the_page_holds_the_terms_only_of_a_search_for_terms():
    """With the three scores side by side."""
    page = render_search(report_of())
    assert "fluid" in page and "Search, select, estimate" in page
    other = render_search(
        report_of(spec=replace(SPEC, optimizer="gepa"), proposals=(), curve=())
    )
    assert "fluid" not in other
