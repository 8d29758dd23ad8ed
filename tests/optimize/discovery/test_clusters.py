"""Phrases that are said alike are put together, others are not."""

import pytest

from loop.optimize.discovery.clusters import cluster_phrases
from loop.optimize.discovery.noun_phrases import AssertedPhrase


def phrase(wording, asserted, context):
    """Return a phrase whose words all carry meaning."""
    return AssertedPhrase(
        words=tuple(wording.split()),
        wording=wording,
        asserted=frozenset(asserted),
        hedged=frozenset(),
        denied=frozenset(),
        context=dict.fromkeys(context.split(), 1),
        located={},
        meaning=wording,
    )


CALCIFIED = phrase("calcified", range(10), "calcified aorta")
CALCIFICATION = phrase("calcification", range(2, 11), "calcification aorta")
FRACTURE = phrase("fracture", range(20, 30), "rib fracture")


def test_same_stem_same_place_same_reports_are_one_cluster():
    """And the phrase of most reports comes first, whatever the order given."""
    for order in ((0, 1, 2), (2, 1, 0)):
        given = [(CALCIFIED, CALCIFICATION, FRACTURE)[at] for at in order]
        groups = cluster_phrases(given)
        found = {tuple(given[at].wording for at in one.places) for one in groups}
        assert found == {("calcified", "calcification"), ("fracture",)}


def test_a_higher_cut_never_makes_more_clusters():
    """Average linkage has no inversions."""
    given = [CALCIFIED, CALCIFICATION, FRACTURE]
    counts = [len(cluster_phrases(given, cut=cut)) for cut in (0.01, 0.5, 0.999)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 3


def test_what_has_nothing_in_common_is_near_to_nothing():
    """No word, no letters, no report."""
    assert [one.near for one in cluster_phrases([CALCIFIED, FRACTURE])] == [None, None]


def test_near_names_the_cluster_that_is_most_like_it():
    """Both ways, where there are two."""
    groups = cluster_phrases([CALCIFIED, CALCIFICATION, FRACTURE], cut=0.01)
    assert [one.near for one in groups] == [1, 0, None]


@pytest.mark.parametrize(
    ("wording", "asserted", "context"),
    [
        ("calcified", range(50, 60), "nowhere"),
        ("stone", range(10), "nowhere"),
        ("stone", range(50, 60), "calcified aorta"),
    ],
)
def test_wording_reports_and_context_each_bring_phrases_together(
    wording, asserted, context
):
    """One of the three in common is enough to be near, and not to be one."""
    other = phrase(wording, asserted, context)
    groups = cluster_phrases([CALCIFIED, other, FRACTURE])
    assert [one.near for one in groups] == [1, 0, None]


def test_none_and_one_phrase_are_clustered_too():
    """The smallest cohorts."""
    assert cluster_phrases([]) == ()
    assert [one.places for one in cluster_phrases([FRACTURE])] == [(0,)]
