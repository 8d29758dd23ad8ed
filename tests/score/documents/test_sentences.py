"""What a system is scored on stands beside its rank, and uneven footing is told."""

from dataclasses import replace

import pytest

from loop.score.documents.score_files import render_score_html, render_score_markdown
from loop.score.documents.sentences import (
    Cells,
    convention_sentences,
    count_cells,
    moves_sentence,
    occurring_sentence,
    scored_words,
    unequal_coverage_sentence,
)
from loop.score.records import Conventions, ScoreReading, Uncertain
from tests.score.documents.score_scenes import document_of, label_scores, ran_score


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
