"""RadFact of many pairs: precision, recall and F1 of phrases, and of their places.

Of each pair precision is the share of the candidate's phrases that the reference
entails, and recall the share of the reference's phrases that the candidate entails; a
side without phrases has none. Over pairs each is the mean of those that are there, and
F1 the harmonic mean of the two means, which is not the mean of the F1 of pairs.

Where phrases have boxes, one that is entailed is entailed in place, too, if more than
half of the pixels of its boxes lie in the boxes of its evidence. *Grounding* is the
share of phrases entailed in place among the entailed ones that have boxes, *spatial*
the share among all that have boxes.

References
----------
Bannur S, et al. MAIRA-2: grounded radiology report generation. arXiv:2406.04449 (2024).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.numbered_phrases import SIDES
from loop.core.records import Outcome
from loop.prompts.outputs.entailment import ENTAILED

PIXELS: Final = 224
"""Width and height of the mask on which boxes are held against each other."""

IN_PLACE: Final = 0.5
"""A phrase is entailed in place if more than this share of its boxes is covered."""

Box = tuple[float, float, float, float]
"""Left, top, right and bottom as shares of width and height, 0 to 1."""


class JudgedPhrase(NamedTuple):
    """One phrase, and whether the other report entails it."""

    entailed: bool
    evidence: tuple[int, ...]
    """Numbers of the phrases of the other report that decide."""

    boxes: tuple[Box, ...] = ()
    evidence_boxes: tuple[Box, ...] = ()
    """Those of its evidence."""


class PhraseShares(NamedTuple):
    """Shares of the phrases of one side of one pair; NaN where there is none."""

    logical: float
    grounding: float
    spatial: float


def judged_phrases(
    outcome: Outcome,
    inputs: Mapping[str, str],
    boxes: Mapping[str, Sequence[Sequence[Box]]] | None = None,
) -> dict[str, tuple[JudgedPhrase, ...]]:
    """Return what an answer says of the phrases of each side.

    Parameters
    ----------
    outcome
        That of a judge of phrases; a side of which it says nothing is left out.
    inputs
        Both lists of phrases as they were asked about, by the name of the input.
    boxes
        Those of each phrase, by the name of the input; None without any.

    Returns
    -------
    dict
        ``"precision"`` to the candidate's phrases, ``"recall"`` to the reference's.
    """
    found: dict[str, tuple[JudgedPhrase, ...]] = {}
    for field, (held, against) in SIDES.items():
        answer = outcome.fields.get(field)
        if answer is None:
            continue
        own, other = ((boxes or {}).get(name, ()) for name in (held, against))
        said = []
        for place, entry in enumerate(answer.entries):
            evidence = tuple(
                inputs[against].count("\n", 0, span.start) for span in entry.spans
            )
            said.append(
                JudgedPhrase(
                    entailed=entry.category == ENTAILED,
                    evidence=evidence,
                    boxes=tuple(own[place]) if place < len(own) else (),
                    evidence_boxes=tuple(
                        box for n in evidence if n < len(other) for box in other[n]
                    ),
                )
            )
        found[field] = tuple(said)
    return found


def share_phrases(phrases: Sequence[JudgedPhrase]) -> PhraseShares:
    """Return the shares of one side of one pair.

    Examples
    --------
    >>> left, right = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)
    >>> share_phrases(
    ...     [
    ...         JudgedPhrase(True, (0,), (left,), (left,)),
    ...         JudgedPhrase(True, (1,), (left,), (right,)),
    ...         JudgedPhrase(False, (), (left,)),
    ...         JudgedPhrase(True, (2,)),
    ...     ]
    ... )
    PhraseShares(logical=0.75, grounding=0.5, spatial=0.3333333333333333)
    """
    boxed = [one for one in phrases if one.boxes]
    placed = sum(
        one.entailed and covered_share(one.boxes, one.evidence_boxes) > IN_PLACE
        for one in boxed
    )
    entailed = sum(one.entailed for one in boxed)
    return PhraseShares(
        logical=_share(sum(one.entailed for one in phrases), len(phrases)),
        grounding=_share(placed, entailed),
        spatial=_share(placed, len(boxed)),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def covered_share(boxes: Sequence[Box], cover: Sequence[Box]) -> float:
    """Return the share of the pixels of `boxes` that lie in one of `cover`.

    0 for boxes without a pixel: nothing of them lies anywhere.

    Examples
    --------
    >>> covered_share([(0.0, 0.0, 0.5, 1.0)], [(0.25, 0.0, 1.0, 1.0)])
    0.5
    """
    own = _mask(boxes)
    area = int(own.sum())
    return int((own & _mask(cover)).sum()) / area if area else 0.0


def has_pixels(box: Box) -> bool:
    """Whether a box covers a pixel of the mask.

    Examples
    --------
    >>> has_pixels((0.5, 0.5, 0.6, 0.6)), has_pixels((0.5, 0.5, 0.501, 0.6))
    (True, False)
    """
    left, top, right, bottom = _pixels(box)
    return left < right and top < bottom


def _pixels(box: Box) -> tuple[int, int, int, int]:
    left, top, right, bottom = (round(side * PIXELS) for side in box)
    return left, top, right, bottom


def _mask(boxes: Sequence[Box]) -> NDArray[np.bool_]:
    """Return the pixels whose centres lie in a box, shape ``(PIXELS, PIXELS)``."""
    mask = np.zeros((PIXELS, PIXELS), dtype=bool)
    for box in boxes:
        left, top, right, bottom = _pixels(box)
        mask[max(top, 0) : bottom, max(left, 0) : right] = True
    return mask


def harmonic_of_means(
    sums: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return RadFact's F1 from summed shares and their numbers.

    Parameters
    ----------
    sums
        Shape ``(n, 4)``: sum of the precisions, how many there are, sum of the recalls,
        how many there are; see `radfact_parts`.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n,)``; NaN where a side has no share at all, 0 where both are 0.

    Examples
    --------
    >>> harmonic_of_means(np.array([[1.5, 2.0, 0.5, 1.0], [0.0, 1.0, 0.0, 1.0]]))
    array([0.6, 0. ])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = sums[:, 0] / sums[:, 1], sums[:, 2] / sums[:, 3]
        total = precision + recall
        made = 2 * precision * recall / total
    values: NDArray[np.float64] = np.where(total == 0, 0.0, made)
    return values


def radfact_parts(
    precision: NDArray[np.float64], recall: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what is summed over pairs to make F1, shape ``(n_pairs, 4)``.

    Parameters
    ----------
    precision, recall
        Of each pair, shape ``(n_pairs,)``; NaN where there is none.
    """
    return np.column_stack(
        [
            np.nan_to_num(precision),
            ~np.isnan(precision),
            np.nan_to_num(recall),
            ~np.isnan(recall),
        ]
    ).astype(np.float64)


def pair_f1(
    precision: NDArray[np.float64], recall: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return F1 of each pair, for correlations; NaN where a side has no phrases."""
    return harmonic_of_means(
        np.column_stack(
            [precision, np.ones_like(precision), recall, np.ones_like(recall)]
        )
    )
