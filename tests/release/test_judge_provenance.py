"""A judge's release says what was measured, on what, and how often."""

from types import SimpleNamespace

import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.evaluate.gates import GateVerdict
from loop.evaluate.protocol import protocol_digest
from loop.judge.counts import JudgeScore
from loop.judge.judge_comparison import JudgeComparison, NumberChange
from loop.judge.judge_evaluation import evaluate_judge_run
from loop.judge.meta_evaluation import ScoreBias
from loop.judge.rated_rows import RatedRow
from loop.labels.error_categories import read_errors
from loop.prompts.catalog import find_parent, read_version
from loop.release.change import Base
from loop.release.judge_consistency import parse_rows
from loop.release.judge_facts import (
    AgreementFacts,
    BiasFacts,
    ChangedScoreFacts,
    ErrorFacts,
    EstimateFacts,
    RepeatFacts,
    RowFacts,
    ScoreFacts,
    agreement_facts,
    estimate_facts,
)
from loop.release.judge_provenance import (
    _bias,
    _error,
    _repeats,
    is_late,
    judge_change_facts,
    judge_evaluation_facts,
    judge_history_facts,
    judge_protocol_facts,
    row_facts,
    score_facts,
)
from loop.score.experts.error_agreement import CategoryGroup, CountF1, GroupAgreement
from loop.score.metrics.base import Direction
from loop.stats.correlation import Correlations
from loop.stats.intervals import Estimate
from tests.judge.scenes import POINTS, TEXTS
from tests.release.small_numbers import VERSION

WHO = Actor(name="Dr. Example", role="reviewer")
HALF = Estimate(0.5, 0.25, 0.75, "a note")


def told(estimate):
    """Return an estimate as a release carries it."""
    return EstimateFacts(
        value=estimate.value, low=estimate.low, high=estimate.high, note=estimate.note
    )


def test_the_agreement_is_what_the_rows_and_the_raters_give(judge_release):
    """By scipy, from the table that is shipped and the points as they were given."""
    _, found = judge_release
    evaluation = found.facts.evaluations[0]
    rows = parse_rows((found.folder / "rows.csv").read_bytes())["rp"]
    scores, points = [one.score for one in rows], [one.points for one in rows]
    first, second = POINTS, [min(5, one + 1) for one in POINTS]
    mean = [(one + two) / 2 for one, two in zip(first, second, strict=True)]
    assert sorted(points) == sorted(mean)
    agreement = evaluation.agreement
    expected = {
        "tau_b": kendalltau(scores, points).statistic,
        "spearman": spearmanr(scores, points).statistic,
        "pearson": pearsonr(scores, points).statistic,
    }
    for name, value in expected.items():
        assert getattr(agreement, name).value == pytest.approx(value), name
    assert (agreement.n, agreement.units) == (8, 7)
    # Each point of a mean is one pair of points: a half, or the most there is.
    given = {
        (one + two) / 2: (one, two) for one, two in zip(first, second, strict=True)
    }
    alone = [
        kendalltau(scores, [given[one][rater] for one in points]).statistic
        for rater in (0, 1)
    ]
    assert agreement.one_rater == pytest.approx(sum(alone) / 2)
    assert agreement.two_raters == pytest.approx(kendalltau(first, second).statistic)
    words = [len(candidate.split()) for _, candidate in TEXTS]
    length, position = evaluation.bias
    assert (length.by, position.by) == ("length", "position")
    assert length.ratings == pytest.approx(kendalltau(mean, words).statistic)
    assert position.ratings == pytest.approx(kendalltau(mean, range(8)).statistic)
    for one in evaluation.bias:
        assert one.difference.value == pytest.approx(one.scores.value - one.ratings)


def test_everything_else_of_an_evaluation_is_told(judge_release):
    """On what, how often, by which conventions, and which errors were counted."""
    ready, found = judge_release
    facts = found.facts
    dev, held = facts.evaluations
    errors = {one.name: one for one in dev.errors}
    # Both raters marked the same five errors, and the judge found them all.
    assert list(errors)[:4] == [
        *("all categories", "false predictions", "omissions", "attributes")
    ]
    assert [(one.n, one.tp, one.fp, one.fn) for one in list(errors.values())[:4]] == [
        (8, 5, 0, 0),
        (8, 2, 0, 0),
        (8, 2, 0, 0),
        (8, 1, 0, 0),
    ]
    assert errors["omissions"].categories == ["omission", "omitted_change"]
    assert {one.two_raters for one in list(errors.values())[:4]} == {1.0}
    assert {name for name in errors if "_" in name} == set()
    version = read_version(ready.workspace, "mine@v1")
    categories = read_errors(ready.workspace.labels)
    cohort, sealed = facts.cohorts
    for one, about in ((dev, cohort), (held, sealed)):
        assert one.signature == (
            f"judge:own|prompt:mine@v1:{version.digest[:12]}|engine:rules|ratings:"
            f"{one.cohort}:ratings1:{about.ratings_digest[:12]}|dim:overall|raters:"
            f"mean-of-2|empty:1|errors:v1:{categories.digest[:12]}:median|unit:patient|"
            "boot:2000:seed0|n:8"
        )
        assert (one.unit, one.resamples, one.seed, one.rows) == ("patient", 2000, 0, 8)
        assert (one.draws, one.runs, one.cases) == (1, [], 8)
        assert one.statuses == {"answered": 8, "unparsed": 0, "engine_failed": 0}
        assert (one.verdict, one.registered_late) == (GateVerdict.PASS, False)
        assert one.copies.model_dump() == {"pairs": 3, "best": 3, "unanswered": 0}
        assert (one.repeats, one.suspicious) == (None, [])
        assert [each.group for each in one.floors] == ["omission"]
        assert one.floors[0].f1.value == 1.0
        assert [each.aspect for each in one.gate] == [
            *("answers", "units", "agreement", "F1", "copy test")
        ]
    assert [(one.cohort, one.role) for one in facts.evaluations] == [
        ("rp", "dev"),
        ("rp_test", "holdout"),
    ]
    run = read_ledger(ready.workspace.ledger)
    recorded = [one.payload for one in run if one.action == "judge_evaluated"]
    for one, payload in zip(facts.evaluations, recorded, strict=True):
        names = ("run", "cohort", "rows_digest", "counts_digest")
        assert {name: payload[name] for name in names} == {
            name: getattr(one, name) for name in names
        }


def test_a_cohort_of_pairs_is_named_with_its_raters(judge_release):
    """How many pairs and references, and by whom it was rated."""
    _, found = judge_release
    for one, name, role in zip(
        found.facts.cohorts, ("rp", "rp_test"), ("dev", "holdout"), strict=True
    ):
        said = one.model_dump(exclude={"digest", "ratings_digest"})
        assert said == {
            "name": name,
            "role": role,
            "source": "made up",
            "licence": "-",
            "citation": "",
            "language": "en",
            "cases": 8,
            "references": 7,
            "synthetic": False,
            "patients_known": True,
            "ratings": 1,
            "raters": 2,
            "dimension": "overall",
            "scale": "1-5",
        }


def test_claim_score_reading_and_history_are_told(judge_release):
    """What is claimed, by which score, and which versions led there."""
    ready, found = judge_release
    facts = found.facts
    assert facts.claim.model_dump() == {
        "kind": "judging",
        "verdict": GateVerdict.PASS,
        "cohort": "rp_test",
    }
    assert facts.score.model_dump() == {
        "name": "own",
        "title": "own score",
        "about": "The score that the judge gives itself, 0 to 1.",
        "weights": None,
        "better": "higher",
    }
    reads = read_version(ready.workspace, "mine@v1").reads
    assert [(one.ref, one.digest) for one in facts.reads] == [
        tuple(one) for one in reads
    ]
    (past,) = facts.history
    observed = facts.evaluations[0].agreement.tau_b.value
    assert (past.ref, past.status, past.author) == ("mine@v1", "committed", "Dr Author")
    assert (past.observed, past.measured) == (
        float(f"{observed:.4f}"),
        "own, rules, rp:ratings1",
    )
    assert (past.verdicts, past.verdict_roles) == (0, {})
    protocol = facts.protocol
    (entry,) = (
        one
        for one in read_ledger(ready.workspace.ledger)
        if one.action == "protocol_set" and one.payload["digest"] == protocol.digest
    )
    assert (protocol.registered, protocol.late) == (entry.time, False)
    assert protocol.content["judging"]["threshold"] == 0.5
    assert protocol.digest == protocol_digest(ready.workspace)


def test_an_evaluation_without_a_gate_is_no_part_of_a_release(judge_release):
    """It claims nothing."""
    ready, _ = judge_release
    found = SimpleNamespace(gate=None, run=SimpleNamespace(id="r7"))
    with pytest.raises(ValueError, match="the evaluation of run r7 has no gate"):
        judge_evaluation_facts(ready.workspace, found)


def test_an_evaluation_made_again_is_told_alike(judge_release):
    """From the store, without the opening of a holdout."""
    ready, found = judge_release
    dev = found.facts.evaluations[0]
    again = evaluate_judge_run(ready.workspace, dev.run)
    assert judge_evaluation_facts(ready.workspace, again) == dev
    assert judge_protocol_facts(ready.workspace, again) == found.facts.protocol


def test_errors_are_told_as_hits_and_as_misses_of_each_side():
    """Halves stay halves; what a rater says of the other is a number apart."""
    counts = CountF1(2.5, 4.0, 6.0, 0.625, 2.5 / 6, HALF, 9)
    pairs = tuple(counts._replace(f1=Estimate(one, None, None)) for one in (0.25, 0.75))
    found = GroupAgreement(
        group=CategoryGroup("false_finding_s", ("a", "b")),
        judge=counts,
        each=(),
        pairs=pairs,
        rest=(),
        difference=HALF,
    )
    assert _error(found) == ErrorFacts(
        name="false finding s",
        categories=["a", "b"],
        n=9,
        tp=2.5,
        fp=1.5,
        fn=3.5,
        f1=told(HALF),
        two_raters=0.5,
    )
    assert _error(found).counted == (["a", "b"], 2.5, 4.0, 6.0)


def correlations(value):
    """Return three coefficients, each its own."""
    return Correlations(
        Estimate(value, 0.1, 0.2, "t"),
        Estimate(value / 2, 0.3, 0.4, "s"),
        Estimate(value / 4, 0.5, 0.6, "p"),
        7,
        5,
    )


def test_an_agreement_is_told_with_all_its_coefficients():
    """Or that there is none, which is no zero."""
    found = agreement_facts(correlations(0.8), one_rater=0.6, two_raters=None)
    assert found == AgreementFacts(
        n=7,
        units=5,
        tau_b=told(Estimate(0.8, 0.1, 0.2, "t")),
        spearman=told(Estimate(0.4, 0.3, 0.4, "s")),
        pearson=told(Estimate(0.2, 0.5, 0.6, "p")),
        one_rater=0.6,
        two_raters=None,
    )
    none = told(
        Estimate(None, None, None, "not estimable: fewer than two pairs have both")
    )
    assert agreement_facts(None, one_rater=None, two_raters=0.5) == AgreementFacts(
        n=0,
        units=0,
        tau_b=none,
        spearman=none,
        pearson=none,
        one_rater=None,
        two_raters=0.5,
    )
    assert estimate_facts(HALF).estimate == HALF


@pytest.mark.parametrize("by", ["length", "position"])
@pytest.mark.parametrize("rated", [True, False])
def test_what_should_not_matter_is_told_beside_the_ratings(by, rated):
    """Where there are some; else of the scores alone."""
    beside = SimpleNamespace(ratings=Estimate(0.25, 0, 1), difference=HALF)
    found = ScoreBias(by, "rp", correlations(0.8), beside if rated else None)
    assert _bias(found) == BiasFacts(
        by=by,
        scores=told(Estimate(0.8, 0.1, 0.2, "t")),
        ratings=0.25 if rated else None,
        difference=told(HALF) if rated else None,
    )


def test_repeats_are_told_where_there_are_some():
    """Each of the three numbers with its own interval."""
    three = [Estimate(one, None, None, f"{one}") for one in (0.1, 0.2, 0.3)]
    names = ("sd", "identical", "icc")
    said = dict(zip(names, three, strict=True))
    consistency = SimpleNamespace(pairs=8, incomplete=2, **said)
    found = SimpleNamespace(meta=SimpleNamespace(consistency=consistency))
    assert _repeats(found) == RepeatFacts(
        pairs=8, incomplete=2, **{name: told(one) for name, one in said.items()}
    )
    none = SimpleNamespace(meta=SimpleNamespace(consistency=None))
    assert _repeats(none) is None


def test_rows_are_kept_as_they_were_measured():
    """What is missing stays missing."""
    rows = [RatedRow(1, 0.5, 3.0), RatedRow(2, None, 1.5, 0.25)]
    assert row_facts(rows) == [
        RowFacts(unit=1, score=0.5, points=3.0, parent=None),
        RowFacts(unit=2, score=None, points=1.5, parent=0.25),
    ]
    assert [one.row for one in row_facts(rows)] == rows


@pytest.mark.parametrize(
    ("direction", "better"),
    [(Direction.HIGHER, "higher"), (Direction.LOWER, "lower")],
)
@pytest.mark.parametrize("weights", [None, (1.0, 2.0, 0.5)])
def test_a_score_says_which_way_it_is_better(direction, better, weights):
    """And what errors weigh in it, where they do."""
    score = JudgeScore("a", "A", "About a.", weights=weights, direction=direction)
    assert score_facts(score) == ScoreFacts(
        name="a",
        title="A",
        about="About a.",
        weights=None if weights is None else [1.0, 2.0, 0.5],
        better=better,
    )


def test_a_change_is_told_in_numbers_where_something_was_compared():
    """Of the agreement, its difference, and each kind of error."""
    compared = JudgeComparison(
        agreement=NumberChange("tau-b", 0.5, 0.6),
        difference=HALF,
        f1=(NumberChange("omissions", None, 0.7), NumberChange("attributes", 0.1, 0.2)),
    )
    found = judge_change_facts(VERSION, Base(None, VERSION), compared)
    assert found.agreement == ChangedScoreFacts(name="tau-b", before=0.5, after=0.6)
    assert found.difference == told(HALF)
    assert found.f1 == [
        ChangedScoreFacts(name="omissions", before=None, after=0.7),
        ChangedScoreFacts(name="attributes", before=0.1, after=0.2),
    ]
    assert (found.from_ref, found.rollback) == ("tiny@v1", "tiny@v1")
    none = judge_change_facts(VERSION, Base(None, None), None)
    assert (none.agreement, none.difference, none.f1) == (None, None, [])
    assert (none.from_ref, none.rollback, none.labels) == ("", "", [])


def test_the_newest_agreement_of_each_version_stands_in_the_history(workspace):
    """On that cohort alone; one that could not be estimated is no agreement."""
    version = read_version(workspace, "extractor@v1")
    assert find_parent(workspace, version) is None

    def judged(observed, action="judge_evaluated", **more):
        payload = {
            "cohort": "rp",
            "prompt_digest": version.digest,
            "observed": observed,
            "score": "own",
            "engine": "rules",
            "ratings": "rp:ratings1",
        }
        event = Event(
            action=action, subject=version.ref, reason="-", payload=payload | more
        )
        append_event(workspace.ledger, event, WHO)

    def newest():
        (found,) = judge_history_facts(workspace, "extractor", "rp")
        assert (found.ref, found.digest) == (version.ref, version.digest)
        return (found.observed, found.measured)

    assert newest() == (None, "")
    judged("0.9", cohort="other")
    judged("0.8", prompt_digest="f" * 64)
    judged("0.7", action="evaluated")
    assert newest() == (None, "")
    judged("0.5")
    judged("0.6", ratings="rp:ratings2", engine="model")
    judged("", score="green")
    judged("0.9", cohort="other")
    assert newest() == (0.6, "own, model, rp:ratings2")


def test_a_claim_that_was_never_registered_is_late():
    """Whatever the time of the run."""
    run = SimpleNamespace(created="2026-03-01T10:00:00+00:00")
    assert is_late("", SimpleNamespace(run=run)) is True
    assert is_late("2026-03-01T10:00:00Z", SimpleNamespace(run=run)) is False
