"""The entries of the registry in CheXpert's terms: F1 of 14 or 5 observations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

from loop.score.metric import (
    Direction,
    Metric,
    MetricInput,
    MetricOptions,
    Scores,
    Unavailable,
)
from loop.score.metrics.labels import conventions_of, f1_scores, pick
from loop.score.records import Uncertain

TOP_FIVE = (
    "cardiomegaly",
    "edema",
    "consolidation",
    "atelectasis",
    "pleural_effusion",
)
"""Label ids of CheXpert's five competition observations."""

_POLICIES = {
    Uncertain.PRESENT: "uncertain counts as present",
    Uncertain.ABSENT: "uncertain counts as absent",
    Uncertain.EXCLUDED: "uncertain is left out",
}


def _chexpert(
    side: MetricInput,
    options: MetricOptions,
    *,
    name: str,
    size: int,
    micro: bool,
    uncertain: Uncertain,
) -> Scores | Unavailable:
    labels = side.comparable if size > len(TOP_FIVE) else TOP_FIVE
    lacking = [label for label in labels if label not in side.labels]
    if lacking or len(labels) != size:
        return Unavailable(
            name,
            f"the taxonomy has {len(labels) - len(lacking)} of the {size} labels. Give "
            "its labels their CheXpert names in taxonomy.yaml.",
        )
    conventions = replace(conventions_of(side, options), uncertain=uncertain)
    return f1_scores(
        side, pick(side, labels, uncertain), name, conventions, micro=micro
    )


def _entry(size: int, average: str, uncertain: Uncertain) -> Metric:
    name = f"chexpert{size}_{average}_{uncertain.value}"
    which = "14 observations" if size > len(TOP_FIVE) else "5 competition observations"
    return Metric(
        name=name,
        title=f"CheXpert-{size} {average} F1 ({uncertain.value})",
        direction=Direction.HIGHER,
        low=0.0,
        high=1.0,
        needs="labels, read from the texts or given",
        about=f"{average.capitalize()} F1 of CheXpert's {which} from our labels; "
        f"{_POLICIES[uncertain]}, and not mentioned is absent.",
        reference="Irvin J et al. AAAI 2019;33:590-597",
        score=partial(
            _chexpert,
            name=name,
            size=size,
            micro=average == "micro",
            uncertain=uncertain,
        ),
        family="labels",
    )


CHEXPERT: tuple[Metric, ...] = tuple(
    _entry(size, average, uncertain)
    for size, average, uncertain in product((14, 5), ("macro", "micro"), _POLICIES)
)
