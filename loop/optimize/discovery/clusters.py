"""Phrases that name one finding, put together by wording, context and reports.

No model: two phrases are as alike as the mean of three cosines of TF-IDF vectors. The
wording: letters of the words that are no places, three to five in a row, so that
"calcified" and "calcification" are alike. The context: words of the sentences that
assert the phrase, places among them. The reports: which ones assert it. Phrases are
joined while the mean distance between two groups is below the cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.optimize.discovery.noun_phrases import AssertedPhrase

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CUT: Final = 0.55
"""Mean distance, 1 - likeness, from which on two groups of phrases stay apart.

Chosen without labels: of the cuts from 0.3 to 0.8 the one at which two random halves of
1,648 chest X-ray reports agree best on what belongs together (adjusted Rand index, mean
of ten splits). ``tests/bench/bench_discover.py`` prints it for every cut.
"""

LETTERS: Final = (3, 5)
"""Letters in a row that make a wording."""

NEAR: Final = 0.2
"""Likeness from which on another cluster is named as near."""


class PhraseGroup(NamedTuple):
    """The phrases of one cluster."""

    places: tuple[int, ...]
    """Places in what was given; the phrase that most reports assert comes first."""

    near: int | None
    """The group that is most like it; None where none is like it at all."""


def cluster_phrases(
    phrases: Sequence[AssertedPhrase], *, cut: float = CUT
) -> tuple[PhraseGroup, ...]:
    """Return which phrases belong together, in the order of their first phrases.

    Parameters
    ----------
    phrases
        What is put together.
    cut
        In (0, 1): the greater, the fewer groups.

    References
    ----------
    Average linkage: Sokal RR, Michener CD. Univ Kans Sci Bull 1958;38:1409-1438. As
    implemented by scikit-learn.
    """
    if not phrases:
        return ()
    alike = _likeness(phrases)
    numbers = _group(1 - alike, cut)
    members: dict[int, list[int]] = {}
    for place, number in enumerate(numbers):
        members.setdefault(number, []).append(place)
    for found in members.values():
        found.sort(key=lambda at: (-len(phrases[at].asserted), phrases[at].words))
    groups = list(members.values())
    nearest = _nearest(alike, groups)
    return tuple(
        PhraseGroup(tuple(found), near)
        for found, near in zip(groups, nearest, strict=True)
    )


def _likeness(phrases: Sequence[AssertedPhrase]) -> NDArray[np.float64]:
    """Return the mean of the three cosines, shape ``(n_phrases, n_phrases)``."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    wording = TfidfVectorizer(
        analyzer="char_wb", ngram_range=LETTERS, sublinear_tf=True
    ).fit_transform([one.meaning for one in phrases])
    context = _weigh([one.context for one in phrases])
    reports = _weigh([dict.fromkeys(sorted(one.asserted), 1) for one in phrases])
    total = np.zeros((len(phrases), len(phrases)))
    for one in (wording, context, reports):
        total += (one @ one.T).toarray()
    alike = np.clip(total / 3, 0, 1)
    np.fill_diagonal(alike, 1)
    return alike


def _weigh(counts: Sequence[Mapping[Any, int]]) -> csr_matrix:
    """Return TF-IDF rows of length 1 of counts."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.feature_extraction.text import TfidfTransformer

    named = [{str(key): count for key, count in one.items()} for one in counts]
    table = DictVectorizer().fit_transform(named)
    weighed: csr_matrix = TfidfTransformer(sublinear_tf=True).fit_transform(table)
    return weighed


def _group(distances: NDArray[np.float64], cut: float) -> Sequence[int]:
    """Return the number of the group of each phrase."""
    from sklearn.cluster import AgglomerativeClustering

    if len(distances) == 1:
        return [0]
    found = AgglomerativeClustering(
        n_clusters=None, metric="precomputed", linkage="average", distance_threshold=cut
    ).fit_predict(distances)
    return [int(one) for one in found]


def _nearest(
    alike: NDArray[np.float64], groups: Sequence[Sequence[int]]
) -> list[int | None]:
    """Return the group that is most like each one, by the mean over their phrases."""
    belongs = np.zeros((len(groups), len(alike)))
    for row, found in enumerate(groups):
        belongs[row, list(found)] = 1 / len(found)
    means = np.round(belongs @ alike @ belongs.T, 9)
    np.fill_diagonal(means, -1)
    best = means.argmax(axis=1)
    return [int(at) if means[row, at] >= NEAR else None for row, at in enumerate(best)]
