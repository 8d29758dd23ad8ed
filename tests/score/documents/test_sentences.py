"""What a system is scored on stands beside its rank, and uneven footing is told."""

from dataclasses import replace

import pytest

from loop.run.execute import Problem
from loop.score.documents.score_files import render_score_html, render_score_markdown
from loop.score.documents.sentences import (
    Cells,
    agreement_line,
    caution_sentences,
    comparison_sentence,
    convention_sentences,
    count_cells,
    coverage_lines,
    extractor_name,
    floor_sentence,
    interval_sentence,
    left_out_line,
    moves_sentence,
    occurring_sentence,
    outcome_line,
    perfect_sentence,
    problem_line,
    range_words,
    rated_line,
    scored_words,
    unequal_coverage_sentence,
    verdict_words,
)
from loop.score.experts.ratings import RaterAgreement
from loop.score.records import Conventions, Coverage, ScoreReading, Uncertain
from loop.score.scoring import Experts
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate
from tests.score.documents.score_scenes import (
    FACTS,
    document_of,
    label_scores,
    metric,
    ran_score,
    under,
)


def hedged(uncertain):
    """Return a ranking whose first system is uncertain in so many cases."""
    score = ran_score(("hedger", "plain"))
    first = replace(score.systems[0], labels=label_scores(3, 2, uncertain))
    return replace(score, systems=(first, *score.systems[1:]))


def test_every_cell_of_every_reference_is_counted_once():
    """300 references of 21 labels: a lost candidate takes its 21 cells along."""
    score = hedged(100)
    cells = count_cells(score.systems[0], score)
    assert cells == Cells(200 * 21, 100 * 21, 0, 0)
    more = replace(score, n_cases=310)
    assert count_cells(more.systems[0], more).unpaired == 10 * 21
    assert scored_words(Cells(1, 1, 1, 1)) == "25.0 % (1 of 4)"
    assert Cells(0, 0, 0, 0).share is None


@pytest.mark.parametrize("render", [render_score_html, render_score_markdown])
def test_who_hedges_is_named_with_the_rank(render):
    """Uncertain findings are not held against a system: it can win by saying little."""
    page = render(document_of("hedger", "plain", score=hedged(100)))
    ranking = page[: page.index("What sets systems apart")]
    assert "hedger is scored on 66.7 % of the cells, plain on 99.3 %" in ranking
    assert "4200 of 6300" in ranking
    even = render(document_of("hedger", "plain", score=hedged(2)))
    assert "99.3 %" in even and "is scored on 99.3 %" not in even


def test_what_would_change_nothing_is_not_advised():
    """Uncertain values count already: only what has no answer is still left out."""
    rules = Conventions(uncertain=Uncertain.EXCLUDED)
    told = unequal_coverage_sentence(replace(hedged(100), conventions=rules))
    assert "Score again with" in told and "hedges" in told
    for policy in (Uncertain.WRONG, Uncertain.ABSENT):
        rules = Conventions(uncertain=policy)
        told = unequal_coverage_sentence(replace(hedged(100), conventions=rules))
        assert "Score again with" not in told and "stays out" in told
        assert "hedges" not in told


def test_how_far_the_readings_lie_apart_is_told():
    """A score that rests on what is uncertain says so, and by whom."""
    score = ran_score(("a", "b"))

    def moved(*values):
        read = tuple(
            ScoreReading(policy, value, 10)
            for policy, value in zip(Uncertain, values, strict=True)
        )
        first = replace(score.systems[0], readings=read)
        rest = [
            replace(one, readings=tuple(r._replace(ran_score=0.5) for r in read))
            for one in score.systems[1:]
        ]
        return moves_sentence(replace(score, systems=(first, *rest)))

    assert "move by up to 0.100, that of a the most" in moved(0.8, 0.9, 0.85, None)
    assert moved(0.8, 0.8, 0.8, 0.8).startswith("Scores are the same")
    silent = [replace(one, readings=()) for one in score.systems]
    told = moves_sentence(replace(score, systems=tuple(silent)))
    assert told.startswith("No score is defined")


def test_hedging_the_errors_only_is_told():
    """Few of all cells, and many of those that hold a finding."""
    score = hedged(5)
    (first, second) = (count_cells(one, score) for one in score.systems)
    assert second.share - first.share < 0.02
    assert (
        "63 cells fewer, where the reference has 600 findings"
        in unequal_coverage_sentence(score)
    )
    assert unequal_coverage_sentence(hedged(4)) == ""


@pytest.mark.parametrize(("last", "told"), [(2, False), (3, True)])
def test_a_tenth_of_the_findings_may_go_unscored_and_no_cell_more(last, told):
    """Three of 300 cases of 20 labels are 60 cells, of 600 findings."""
    score = hedged(5)
    labels = (*score.systems[0].labels[:-1], label_scores(3, 2, last)[-1])
    first = replace(score.systems[0], labels=labels)
    score = replace(score, systems=(first, *score.systems[1:]))
    assert bool(unequal_coverage_sentence(score)) is told


def test_means_over_different_labels_are_told():
    """Under skip a label that one system never meets is not in its mean."""
    score = ran_score(("a", "b"))
    assert occurring_sentence(score) == ""
    first = replace(score.systems[0], effective_labels=15)
    score = replace(score, systems=(first, score.systems[1]))
    assert "over 15 to 20 of 21 labels" in occurring_sentence(score)
    rules = Conventions(zero_division="zero")
    assert occurring_sentence(replace(score, conventions=rules)) == ""


def test_a_single_system_sheds_against_nobody():
    """There is nothing to compare it with; its share stands in the table."""
    assert unequal_coverage_sentence(ran_score(("a",))) == ""


def test_conventions_name_what_averages_are_of():
    """A mean of cases is no macro-F1, and undefined precision is no hole in a mean."""
    told = " ".join(convention_sentences(ran_score(("a",))))
    assert "their mean is not the macro-F1" in told
    assert "a label that a system never reports counts 0" in told


def test_a_move_shows_from_the_third_decimal_on():
    """Half a thousandth is what three decimals can tell; one system is not named."""
    score = ran_score(("a",))

    def moved(by):
        read = tuple(
            ScoreReading(policy, 0.5 + by * (policy is Uncertain.ABSENT), 10)
            for policy in Uncertain
        )
        return moves_sentence(
            replace(score, systems=(replace(score.systems[0], readings=read),))
        )

    assert moved(0.0004).startswith("Scores are the same")
    assert "move by up to 0.001. Compare" in moved(0.0006)


def test_cells_beyond_those_of_the_references_are_none():
    """More labels than cases is another table's fault, and no negative count."""
    score = replace(hedged(100), n_cases=299)
    assert count_cells(score.systems[0], score).unpaired == 0


def test_what_is_left_out_is_counted_by_reason():
    """A lost candidate takes all of its cells along, and is told only where one is."""
    score = hedged(100)
    whole = "4200 of 6300 cells decided on both sides; left out: 2100 uncertain, 0 "
    assert left_out_line(score.systems[0], score) == f"{whole}without a value"
    labels = tuple(
        one._replace(unanswered=1, uncertain=99) for one in score.systems[0].labels
    )
    system = replace(score.systems[0], labels=labels)
    assert left_out_line(system, replace(score, n_cases=1_000)) == (
        "4200 of 21,000 cells decided on both sides; left out: 2079 uncertain, 21 "
        "without a value, 14,700 without a candidate"
    )


def test_a_system_without_a_cell_is_compared_with_none():
    """Three are there, and one of them has no share that could be the least."""
    score = ran_score(("a", "b", "c"))
    none = tuple(
        one._replace(counts=Confusion(0, 0, 0, 0), uncertain=0)
        for one in score.systems[0].labels
    )
    blank = replace(score.systems[0], labels=none)
    assert (
        unequal_coverage_sentence(
            replace(score, n_cases=0, systems=(blank, *score.systems[1:]))
        )
        == ""
    )


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (FACTS, "both sides read by the same extractor."),
        (replace(FACTS, digest=""), "as the files give them."),
        (
            replace(FACTS, ref="given+extractor@v7"),
            "some files giving labels and the texts of others read by the extractor.",
        ),
    ],
)
def test_who_read_the_labels_is_among_the_conventions(facts, told):
    """Labels that people gave are not said to be read by anything."""
    first = convention_sentences(replace(ran_score(("a",)), extractor=facts))[0]
    assert first.startswith("Ran Score is the mean F1 over the 21 labels (macro-F1), ")
    assert told in first


def test_no_finding_is_told_only_where_it_is_a_label():
    """One convention less, and it is not said to be included in anything."""
    score = ran_score(("a",))
    short = replace(score, labels=tuple(x for x in score.labels if x != "no_finding"))
    told, less = convention_sentences(score), convention_sentences(short)
    assert len(told) == len(less) + 1
    assert "No Finding” is derived" in " ".join(told)
    assert "No Finding" not in " ".join(less)
    assert "over the 20 labels" in less[0]


def test_what_was_resampled_and_exchanged_is_told():
    """Cases, or patients with all their cases."""
    score = replace(ran_score(("a", "b")), resamples=12_000, seed=7, confidence=0.9)
    assert interval_sentence(score) == (
        "Intervals: 90 % percentile bootstrap, 12,000 resamples of cases, seed 7."
    )
    assert "answers case by case (10,000 random exchanges" in comparison_sentence(score)
    grouped = replace(score, n_patients=41)
    assert "of the 41 patients, each with all their cases," in interval_sentence(
        grouped
    )
    assert "answers patient by patient (" in comparison_sentence(grouped)


def test_all_exchanges_were_counted_only_if_for_every_pair():
    """Of three pairs one sampled is enough to say so; without a pair nothing was."""
    score = ran_score(("a", "b", "c"))
    exact = tuple(one._replace(exact=True) for one in score.differences)
    every = comparison_sentence(replace(score, differences=exact))
    assert "(all exchanges were counted)" in every
    mixed = replace(score, differences=(*exact[1:], score.differences[0]))
    assert "random exchanges, p = (k + 1) / (B + 1)" in comparison_sentence(mixed)
    assert "random exchanges" in comparison_sentence(replace(score, differences=()))


def test_pairs_that_were_not_tested_set_no_floor():
    """Nor do exact ones below the least sampled p; those at it are multiplied too."""
    score = replace(ran_score(("a", "b", "c")), permutations=99)
    sampled = score.differences[0]._replace(p=0.01, exact=False)
    several = tuple([sampled] * 5)
    assert "With 5 pairs and 99 exchanges" in floor_sentence(
        replace(score, differences=several)
    )
    none = sampled._replace(p=None, p_holm=None)
    assert floor_sentence(replace(score, differences=(*several[1:], none))) == ""
    low = sampled._replace(exact=True, p=0.009)
    assert floor_sentence(replace(score, differences=(*several[1:], low))) == ""
    at = sampled._replace(exact=True, p=0.01)
    told = floor_sentence(replace(score, differences=(*several[1:], at)))
    assert told.endswith("Use --permutations 1000, or fewer systems.")
    assert caution_sentences(replace(score, differences=several)) == [
        floor_sentence(replace(score, differences=several))
    ]
    assert caution_sentences(score) == []


def test_a_p_of_the_level_is_no_difference():
    """Below it, at it, and not tested."""
    (one,) = ran_score(("a", "b")).differences
    told = [verdict_words(one._replace(p_holm=p)) for p in (0.0499, 0.05, None)]
    assert told == ["differs", "not distinguishable", "not tested"]


def test_each_kind_of_row_that_is_off_is_named_and_no_other():
    """References first, then systems, then what else was remarkable."""
    found = Coverage("s", 9, 5, ("m",), (), tuple("abcdefg"), ("e1", "e2"))
    score = replace(ran_score(("s",)), coverage=(found,))
    document = document_of("s", score=score)
    sources = document.sources._replace(
        empty_references=(), repeated_references=("r",), notes=("Ids differ.",)
    )
    assert coverage_lines(replace(document, sources=sources)) == (
        "references: 1 repeated with the same content, used once: r",
        "s: 1 references without a candidate, not scored: m",
        "s: 7 repeated with the same content, used once: a, b, c, d, e and 2 more",
        "s: 2 candidates without a word, scored as saying nothing: e1, e2",
        "Ids differ.",
    )


def test_examples_that_are_all_of_them_have_no_dots():
    """Two of two, and two of three."""
    problem = Problem("HTTP 503", 2, ("c1", "c2"))
    assert problem_line(problem) == "no answer for 2 distinct texts: HTTP 503 (c1, c2)"
    more = problem._replace(cases=3)
    assert problem_line(more).endswith("3 distinct texts: HTTP 503 (c1, c2, ...)")
    assert outcome_line({"answered": 10_000, "engine_failed": 0}) == (
        "10,000 answered, 0 engine failed"
    )


def test_a_release_stands_beside_its_extractor():
    """Whoever verified it can be asked."""
    named = replace(FACTS, release="2026-01")
    assert extractor_name(named) == "extractor@v7, release 2026-01, engine rules"


def test_what_experts_agree_on_is_one_line_of_numbers():
    """Who, on which scale, how many, and how well, each with its interval."""
    nothing = Estimate(None, None, None, "none")
    agreement = RaterAgreement(
        pairs=(),
        rest=(),
        ordinal=Estimate(0.7, 0.6, 0.8),
        interval=nothing,
        icc=Estimate(0.65, 0.5, 0.75),
        candidates=40,
        complete=37,
        missing=3,
    )
    experts = Experts(
        points=(),
        agreement=agreement,
        metrics=(),
        raters=("r1", "r2"),
        scale=(1.0, 5.0),
        rated=38,
        unrated=12,
        unscored=2,
    )
    assert agreement_line(experts) == (
        "2 raters, 1 to 5 points, 40 candidates rated, 3 ratings missing. "
        "Krippendorff's alpha, ordinal: 0.700 [0.600, 0.800]; ICC(2,1): 0.650 [0.500, "
        "0.750] on 37 candidates that all rated; tau-b of two raters, mean: –"
    )
    assert rated_line(experts) == (
        "38 scored candidates are rated, 12 are not; 2 rated ones have no score"
    )


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0.0, 1.0, "0 to 1"),
        (-1.0, 1.0, "\N{MINUS SIGN}1 to 1"),
        (None, None, "\N{MINUS SIGN}\N{INFINITY} to \N{INFINITY}"),
        (0.0, None, "0 to \N{INFINITY}"),
    ],
)
def test_the_range_of_a_metric_is_told(low, high, told):
    """Without a bound it is infinite, on that side alone."""
    assert range_words(metric("m", "M", low=low, high=high)) == told


@pytest.mark.parametrize(
    ("rule", "perfect", "told"),
    [
        (
            "skip",
            1.0,
            "A perfect copy of the references scores 1.000: under zero_division skip, "
            "a label that neither side has is left out of the mean.",
        ),
        (
            "zero",
            1.0,
            "A perfect copy of the references scores 1.000: under zero_division zero, "
            "a label that neither side has counts 0 in the mean.",
        ),
        (
            "one",
            1.0,
            "A perfect copy of the references scores 1.000: under zero_division one, a "
            "label that neither side has counts 1 in the mean; that raises every "
            "score.",
        ),
        (
            "skip",
            None,
            "A perfect copy of the references has no score here: under zero_division "
            "skip, a label that neither side has is left out of the mean, and no "
            "decided cell of the references has a finding.",
        ),
    ],
)
def test_what_raises_every_score_is_told_only_where_it_does(rule, perfect, told):
    """Under the one convention that counts what nobody has as found."""
    document = under(rule, perfect, "a")
    (system,) = document.score.systems
    assert perfect_sentence(system, document.score) == told
