"""A judge's guides are searched by distance from readers, and decided by them."""

import json
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.core.records import ErrorWeight, Exemplar
from loop.engines import base
from loop.judge.count_failures import find_count_failures
from loop.judge.counts import ERRORS
from loop.labels.cohort import read_cohort
from loop.labels.expert_ratings import (
    OVERALL,
    ExpertRating,
    Judgements,
    PointScale,
    RatingsTaking,
    add_ratings,
)
from loop.optimize.gepa_search import search_gepa
from loop.optimize.nested_search import RankedFinder, search_nested
from loop.optimize.objective import Objective, open_objective
from loop.optimize.proposals import ProposalReader
from loop.optimize.reflect import Reflector
from loop.optimize.search import search_prompt
from loop.optimize.search_forecast import forecast_search
from loop.optimize.search_report import Optimizer, SearchRequest
from loop.optimize.splits import split_cases
from loop.prompts.catalog import list_drafts, read_version
from loop.prompts.outputs.base import get_contract
from loop.review.revise.draft_files import DraftOrigin, read_about
from loop.review.submit import save_verdicts
from loop.review.verdict import Edits
from loop.run.asking import hold_engine
from loop.run.store import open_store
from loop.run.task import run_prompt
from loop.score.experts.ratings import Ratings
from tests.optimize.judged_task import (
    CATEGORIES,
    HARMLESS,
    CountingJudge,
    JudgeReflector,
    add_pairs,
    made_pairs,
    make_judge,
)
from tests.optimize.made_task import ACTOR, Notes
from tests.review.scenes import EDITOR, MADE_ON, WHEN, verdict

ENGINE = "counting:x"


@pytest.fixture
def counting(monkeypatch):
    """Register the judge's engine and the one that reflects on it."""
    monkeypatch.setitem(base._FACTORIES, "counting", CountingJudge)
    monkeypatch.setitem(base._FACTORIES, "stub", JudgeReflector)
    monkeypatch.setattr(JudgeReflector, "asked", ())
    monkeypatch.setattr(CountingJudge, "failing", frozenset())
    monkeypatch.setattr(CountingJudge, "unread", frozenset())
    return CountingJudge


@pytest.fixture
def judged(workspace, tmp_path, counting):
    """Return a workspace whose judge counts what readers do not."""
    make_judge(workspace)
    add_pairs(workspace, tmp_path, made_pairs(75), name="dev")
    return workspace


@contextmanager
def opened(workspace):
    """Hold the objective of the judge."""
    with open_objective(workspace, "tally", "dev", engine=ENGINE) as objective:
        yield objective


def request(optimizer=Optimizer.GEPA, **changes):
    """Return a request to search for the judge."""
    fields = {
        "prompt": "tally",
        "cohort": "dev",
        "optimizer": Optimizer(optimizer),
        "engine": ENGINE,
        "reflect": "stub:any" if Optimizer(optimizer).reflects else "",
        "budget": 90,
        "splits": 3,
    }
    return SearchRequest(**(fields | changes))


def approve(workspace):
    """Keep verdicts that ask for an exemplar of each word that is no error."""
    rows = [
        verdict(
            f"p{number:03}",
            label="false_finding",
            edits=Edits(
                exemplars=(
                    Exemplar(
                        text=f"The candidate adds a {word}.",
                        value=ErrorWeight.NO_ERROR,
                        evidence=word,
                    ),
                )
            ),
        )
        for number, word in enumerate(HARMLESS)
    ]
    with open_store(workspace) as store:
        save_verdicts(store, rows, MADE_ON, WHEN)


@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer", [one for one in Optimizer if one is not Optimizer.TERMS]
)
def test_a_judge_is_improved_where_it_can_be(judged, optimizer, capfd):
    """The guide learns what readers do not count; pairs not seen say so."""
    approve(judged)
    result = search_prompt(judged, request(optimizer), ACTOR)
    assert result.better
    assert result.findings.labels == ("false_finding",)
    estimate = result.findings.estimate
    assert estimate.score == "negative distance"
    assert estimate.gain.low > 0
    assert estimate.kappa_gain.low > 0
    assert -4 <= estimate.parent.estimate < estimate.found.estimate <= 0
    assert (estimate.agreement.measure, estimate.agreement.score) == ("tau-b", "GREEN")
    assert estimate.agreement.gain.estimate > 0
    draft = read_version(judged, result.drafts[0].ref)
    guide = draft.guide("false_finding")
    learnt = {one.phrase for one in guide.clarifications}
    assert {*learnt, *(one.evidence for one in guide.exemplars)} & set(HARMLESS)
    assert read_about(judged, draft).origin is DraftOrigin.OPTIMIZER
    assert "negative distance +" in draft.why
    (effect,) = result.findings.kept[0].effects
    assert effect.component == "false_finding"
    assert -4 <= effect.before < effect.after <= 0
    assert len(effect.fixed) > len(effect.broken)
    assert {one.objections for one in result.drafts} == {()}
    (entry,) = [one for one in read_ledger(judged.ledger) if one.action == "searched"]
    assert entry.payload["candidates"] == result.findings.candidates > 0
    assert capfd.readouterr() == ("", "")
    json.dumps(result.data)


@pytest.mark.slow
def test_counts_by_chance_are_not_learnt(judged):
    """Readers' counts without any relation to the pairs: at most one "better" in 20.

    A guide that only counts fewer errors is nearer to them, and that is no merit.
    """
    better = nearer = 0
    with opened(judged) as made, hold_engine(judged, "stub:x") as reflecting:
        for seed in range(20):
            objective = _by_chance(judged, made, seed)
            ground = objective.ground

            def propose(cases, seed, objective=objective):
                return search_gepa(
                    objective,
                    ProposalReader(objective.ground.version),
                    Reflector(reflecting, Notes()),
                    cases,
                    labels=CATEGORIES,
                    budget=40,
                    seed=seed,
                )

            splits = split_cases(
                ground.truth, ground.clusters.units, repeats=2, seed=seed
            )
            found = search_nested(
                objective, RankedFinder(objective, propose), splits, seed=seed
            )
            better += found.estimate.better
            nearer += (found.estimate.gain.low or 0) > 0
            assert found.estimate.better == bool(found.conclusion.kept)
    assert better <= 1 < nearer


def _by_chance(workspace, objective, seed):
    """Return an objective with the readers' counts dealt to pairs by chance."""
    ground = objective.ground
    order = np.random.default_rng(seed).permutation(len(ground.items))
    dealt = replace(
        ground,
        counts=ground.counts[order],
        right=ground.right[order],
        truth=ground.truth[order],
    )
    return Objective(workspace, dealt, objective.engine, objective._store)


@pytest.mark.slow
def test_nothing_better_is_no_draft(judged, monkeypatch):
    """The search ends well, stands in the ledger, and is read again."""
    monkeypatch.setattr(JudgeReflector, "complete", JudgeReflector.__base__.complete)
    monkeypatch.setattr(
        JudgeReflector, "said", "```yaml\nfalse_finding:\n  name: False\n```"
    )
    result = search_prompt(judged, request(splits=1, budget=30), ACTOR)
    assert (result.better, result.drafts) == (False, ())
    assert result.words == "no better prompt found"
    assert not list_drafts(judged, "tally")
    again = search_prompt(judged, request(splits=1, budget=30), ACTOR)
    assert again == replace(result, remembered=True)


def test_what_is_asked_shows_pairs_and_what_was_listed(judged):
    """With the counts and what is right; no report of a pair that is right."""
    with opened(judged) as objective, hold_engine(judged, "stub:x") as reflecting:
        ground = objective.ground
        search_gepa(
            objective,
            ProposalReader(ground.version),
            Reflector(reflecting, Notes()),
            split_cases(ground.truth, ground.clusters.units)[0].seen,
            labels=("false_finding",),
            budget=20,
        )
    question = JudgeReflector.asked[0]
    for words in (
        "guide of one category of errors",
        "## Reference\nThere is one",
        "## Candidate\n",
        "significant, 0 insignificant; right is",
        "## Listed as false_finding\nsignificant: ",
        "of 6 pairs",
        "Never copy a sentence of a report",
    ):
        assert words in question, words


def test_points_are_distances_from_the_readers(judged):
    """The mean over readers; what cannot be read is further than any of theirs."""
    with opened(judged) as objective:
        ground = objective.ground
        counts = np.zeros((3, 2, 2, 2))
        counts[0, :, 0, 0] = 1, 3  # two readers, one and three significant errors
        counts[1, 0] = np.nan  # one reader did not look
        counts[2] = np.nan  # nobody did
        ground = replace(
            ground, items=ground.items[:3], counts=counts, truth=ground.truth[:3]
        )
        assert ground.worst == -4.0
        rows = np.arange(3)
        told = np.zeros((3, 5))
        told[:, 0] = 2
        points = ground.points(told, rows)
        assert points.tolist()[:2] == [[-1.0, 0.0], [-2.0, 0.0]]
        assert np.isnan(points[2]).all()
        # Significant and other errors are apart.
        told[:, 0], told[:, 1] = 0, 3
        assert ground.points(told, rows)[1].tolist() == [-3.0, 0.0]
        unread = np.full((3, 5), np.inf)
        assert ground.points(unread, rows)[0].tolist() == [-4.0, -4.0]
        assert ground.points(told + 90, rows)[0].tolist() == [-4.0, -4.0]
        lost = np.full((3, 5), np.nan)
        assert ground.lost(lost).all()
        assert np.isnan(ground.points(lost, rows)).all()


def by_hand(ground, *, raters=("r1",)):
    """Return a ground of four pairs, of which one reader looked at three only.

    They count 1, 0, 2 and 0 significant false findings; no omission in two pairs, one
    that is not significant, and one that is.
    """
    both = [[[1, 0], [0, 0]], [[0, 0], [0, 0]], [[2, 0], [0, 1]], [[0, 0], [1, 0]]]
    right = np.array(both, dtype=float)
    counts = np.stack([right, right], axis=1)
    counts[3, 0] = np.nan
    ids = ground.case_ids[:4]
    return replace(
        ground,
        items=ground.items[:4],
        counts=counts,
        right=right,
        truth=np.array([[1, 0], [0, 0], [1, 1], [0, 1]], dtype=np.int8),
        clusters=ground.clusters._replace(units=np.arange(4)),
        protocol=ground.protocol.model_copy(update={"min_positives": 2}),
        ratings=Ratings(
            ids=ids,
            systems=("",) * 4,
            raters=raters,
            scores=np.tile(np.arange(1.0, 5.0)[:, None], len(raters)),
            scale=(1.0, 5.0),
        ),
    )


BEFORE = np.zeros((4, 5))
BEFORE[:, 4] = 0.9, 0.8, 0.7, 0.6
AFTER = np.array(
    [[1, 0, 0, 0, 0.3], [0, 0, 0, 0, 0.9], [2, 0, 0, 1, 0.1], [0, 0, 0, 0, 0.5]]
)


def test_two_judges_of_four_pairs_are_scored_by_hand(judged):
    """Distances and their kappa, before and after."""
    rows, shown = np.arange(4), np.arange(2)
    resampling = {"units": rows, "resamples": 50, "seed": 1}
    with opened(judged) as objective:
        ground = by_hand(objective.ground)
    assert ground.worst == -3.0
    for answers, by_label in ((BEFORE, [-0.75, -0.5]), (AFTER, [0.0, -0.25])):
        value, labels = ground.total(answers, rows)
        assert value == pytest.approx(np.mean(by_label))
        assert labels == pytest.approx(by_label)
    assert ground.total(AFTER[2:], rows[2:]).by_label.tolist() == [0.0, -0.5]
    rare = ground.truth.copy()
    rare[3, 1] = 0
    assert replace(ground, truth=rare).total(BEFORE, rows).value == -0.75
    nothing = replace(ground, truth=0 * rare)
    assert nothing.total(BEFORE, rows).value is None
    found = ground.pool(BEFORE, AFTER, rows, shown, **resampling)
    assert [one.estimate for one in found[:3]] == pytest.approx([-0.625, -0.125, 0.5])
    # Of omissions a quarter is apart by one, and by chance 0.75 / 2 + 0.25 of them.
    assert found.kappa_gain.estimate == pytest.approx((1 + 1 - 0.25 / 0.625) / 2)
    alone = ground.pool(BEFORE, AFTER, rows, shown[:1], **resampling)
    assert alone.gain.estimate == 0.75
    assert alone.kappa_gain.estimate == 1.0
    assert ground.failing(BEFORE) == (True, True)
    assert ground.failing(AFTER) == (False, True)


def test_agreement_with_raters_is_worked_out_by_hand(judged):
    """All four in the opposite order, then three of six pairs of pairs in theirs."""
    rows, shown = np.arange(4), np.arange(2)
    resampling = {"units": rows, "resamples": 50, "seed": 1}

    def told(ground, after=AFTER):
        return ground.pool(BEFORE, after, rows, shown, **resampling).agreement

    with opened(judged) as objective:
        ground = by_hand(objective.ground)
        several = by_hand(objective.ground, raters=("r1", "r2"))
    found = told(ground)
    assert (found.measure, found.score, found.cases) == ("tau-b", "GREEN", 4)
    assert found.against == "one rater's points"
    assert told(several).against == "2 raters' points"
    values = [one.estimate for one in (found.parent, found.found, found.gain)]
    assert values == pytest.approx([-1, 0, 1])
    # Of errors fewer are better, so that agreement has the other sign.
    fewer = told(replace(ground, score=ERRORS))
    values = [one.estimate for one in (fewer.parent, fewer.found, fewer.gain)]
    assert values == pytest.approx([1, 0, -1])
    silent = AFTER.copy()
    silent[1:3, 4] = np.nan
    assert told(ground, silent).cases == 2
    silent[0, 4] = np.nan
    assert told(ground, silent) is None


def test_what_a_judge_says_is_told_beside_what_is_right(judged):
    """By significance where it weighs errors; unread where it says nothing."""
    with opened(judged) as objective:
        ground = by_hand(objective.ground)
    unread = np.full(5, np.inf)
    assert [ground.tell(AFTER[2], 2, place) for place in (0, 1)] == [
        "2 significant, 0 insignificant; right is 2 significant, 0 insignificant",
        "0 significant, 1 insignificant; right is 0 significant, 1 insignificant",
    ]
    right = "right is 1 significant, 0 insignificant"
    assert ground.tell(unread, 3, 1) == f"unparsed; {right}"
    plain = replace(ground, contract=get_contract("error_list_unweighted"))
    assert plain.tell(BEFORE[0], 0, 0) == "0 errors; right is 1 error"
    item = ground.items[0]
    assert ground.texts(0) == {
        "Reference": item.variables["reference"],
        "Candidate": item.variables["candidate"],
    }


def test_wrong_is_what_failing_pairs_lists(judged):
    """A search and `ranloop failures` say the same of the same counts."""
    run = run_prompt(judged, "tally", "dev", engine=ENGINE).run_id
    with open_store(judged) as store:
        listed = find_count_failures(judged, store, run).rows
    with opened(judged) as objective:
        ground = objective.ground
        answers = objective.answers(ground.version)
        wrong = ground.wrong(answers, np.arange(75))
        mean = np.mean([one.apart for one in listed if one.category == "false_finding"])
    found = {
        (ground.case_ids[row], ground.labels[column])
        for row, column in np.argwhere(wrong)
    }
    assert found == {(one.case_id, one.category) for one in listed}
    # Both readers agree here, so that the mean distance is that from their median.
    share = wrong[:, 0].mean()
    assert objective.score(answers).by_label[0] == pytest.approx(-mean * share)


def test_silence_and_failures_are_no_gain(judged, counting):
    """What cannot be read is worse than any count; what failed is left out."""
    counting.unread = frozenset({HARMLESS[0]})
    with opened(judged) as objective:
        answers = objective.answers(objective.ground.version)
        unread = np.isinf(answers).any(axis=1)
        assert 0 < unread.sum() < 75
        score = objective.score(answers)
        assert score.left_out == 0
        assert (score.points[unread] == objective.ground.worst).sum() > unread.sum()
    counting.unread = frozenset()
    with opened(judged) as objective:
        answers = objective.answers(objective.ground.version)
        lost = answers.copy()
        lost[3] = np.nan
        score = objective.score(answers, beside=lost)
        assert (score.left_out, score.cases) == (1, 74)


def test_patients_and_references_stay_together(judged):
    """Candidates of one reference are in one part of a split."""
    with opened(judged) as objective:
        clusters = objective.ground.clusters
    assert (clusters.unit, clusters.total) == ("patient", 25)


def test_agreement_is_with_points_where_there_are_some(judged):
    """Else with the errors themselves; new ratings make a finished search stale."""
    members = read_cohort(judged, "dev")
    with opened(judged) as objective:
        assert objective.ground.ratings.against == "significant errors, negated"
    scale = PointScale(1.0, 5.0)
    given = [
        ExpertRating(case, "r1", OVERALL, 1.0 + place % 5, scale)
        for place, case in enumerate(members.case_ids)
    ]

    def rate(done, total):
        if done == 1:
            new, how = Judgements(ratings=tuple(given)), RatingsTaking(actor=EDITOR)
            add_ratings(judged, members, new, how)

    asked = request(Optimizer.NEAREST, splits=5)
    result = search_prompt(judged, asked, ACTOR, tell=rate)
    assert result.stale == ("the ratings of dev were revised to version 2",)
    again = search_prompt(judged, asked, ACTOR).findings.estimate.agreement
    assert again.against == "one rater's points"


def test_terms_are_not_mined_for_a_judge(judged):
    """Not in a dry run either; the message names what works."""
    asked = request(Optimizer.TERMS)
    for search in (
        lambda: search_prompt(judged, asked, ACTOR),
        lambda: forecast_search(judged, asked),
    ):
        with pytest.raises(DataError, match="gepa, mipro, bootstrap or nearest"):
            search()


def test_a_judge_without_counts_or_readers_is_refused(judged, tmp_path):
    """Each says what is missing."""
    add_pairs(judged, tmp_path, made_pairs(10), name="bare", marked=False)
    with (
        pytest.raises(DataError, match="has no experts' ratings"),
        open_objective(judged, "tally", "bare", engine=ENGINE),
    ):
        pass
    add_pairs(judged, tmp_path, made_pairs(10), name="held", role="external")
    with (
        pytest.raises(DataError, match="on a dev cohort only"),
        open_objective(judged, "tally", "held", engine=ENGINE),
    ):
        pass
    rating = replace(read_version(judged, "tally"), contract="rating")
    with (
        pytest.raises(DataError, match="counts no errors of a candidate by category"),
        open_objective(judged, rating, "dev", engine=ENGINE),
    ):
        pass


def test_the_command_says_distance_and_agreement(judged, tmp_path):
    """In the terminal, as JSON and on the page; the dry run asks nothing."""
    runner = CliRunner()
    page = tmp_path / "search.html"
    words = (
        *("optimize", "tally", "--cohort", "dev", "--with", "nearest", "--study"),
        *("--engine", ENGINE, "--workspace", str(judged.root)),
    )
    dry = runner.invoke(app, [*words, "--dry-run"])
    assert dry.exit_code == 0, dry.output
    assert "NOTHING WAS ASKED" in dry.stdout
    done = runner.invoke(app, [*words, "--html", str(page)])
    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    assert "75 cases: negative distance −" in told
    assert "with 2 raters' significant errors, negated; it does not influence" in told
    assert "no better prompt found" in told
    text = page.read_text("utf-8")
    for said in ("negative distance", "tau-b of GREEN", "kappa weighted by distance"):
        assert said in text
    data = json.loads(runner.invoke(app, [*words, "--json"]).stdout)
    assert data["score"] == "negative distance"
    assert data["agreement"]["cases"] == 75
    assert data["estimate"]["parent"]["estimate"] < 0
