"""The metrics that compare labels: Ran Score, clinical rates, CheXpert's F1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.labels.taxonomy import NO_FINDING
from loop.score import signature
from loop.score.counting import apply_to_pairs, case_errors, case_f1
from loop.score.metrics.base import (
    Direction,
    Metric,
    MetricInput,
    MetricOptions,
    Scores,
    Unavailable,
    mean_scores,
)
from loop.score.records import Conventions, Uncertain
from loop.stats.confusion import (
    ABSENT,
    EXCLUDED,
    PRESENT,
    ZeroDivision,
    divide,
    f1_columns,
    mean_f1,
)


class Binary(NamedTuple):
    """Codes 1, 0, -1 of some labels of a side."""

    reference: NDArray[np.int8]
    candidate: NDArray[np.int8]

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Which cells both sides decide."""
        both = np.minimum(self.reference, self.candidate)
        return np.asarray(both != EXCLUDED)

    @property
    def n(self) -> int:
        """Cases with at least one decided label."""
        return int(self.decided.any(axis=1).sum())


def pick(side: MetricInput, labels: tuple[str, ...], uncertain: Uncertain) -> Binary:
    """Return the codes of some labels with the policy for uncertain values applied."""
    columns = [side.labels.index(label) for label in labels]
    return Binary(
        *apply_to_pairs(
            side.reference_codes[:, columns],
            side.candidate_codes[:, columns],
            uncertain,
        )
    )


def sign_labels(
    side: MetricInput,
    name: str,
    conventions: Conventions,
    *,
    effective: int,
    n: int,
    of: int,
) -> str:
    """Return the signature of a metric of labels: Ran Score's, under another name."""
    whole = signature.sign(
        side.extractor,
        conventions,
        effective_labels=effective,
        labels=of,
        n=n,
        derived=NO_FINDING in side.labels,
    )
    return name + whole.removeprefix("ran")


def f1_scores(
    side: MetricInput, pair: Binary, name: str, conventions: Conventions, *, micro: bool
) -> Scores:
    """Return macro or micro F1 of the labels, with the F1 over labels of each case."""
    parts = f1_columns(*pair)
    n_labels = parts.shape[1] // 2
    occurring = parts[:, n_labels:].any(axis=0)
    if micro:
        parts = parts.reshape(len(parts), 2, n_labels).sum(axis=2, dtype=np.int16)
    combine = partial(_f1_of, zero_division=conventions.zero_division)
    return Scores(
        per_case=case_f1(*pair),
        value=_value(parts, combine),
        signature=sign_labels(
            side,
            name,
            conventions,
            effective=int(occurring.sum()),
            n=pair.n,
            of=n_labels,
        ),
        parts=parts,
        combine=combine,
    )


def conventions_of(side: MetricInput, options: MetricOptions) -> Conventions:
    """Return what is decided about the labels of a side."""
    return Conventions(
        uncertain=options.uncertain,
        zero_division=options.zero_division,
        no_finding=side.no_finding,
        reading=options.reading,
    )


def _ran_score(side: MetricInput, options: MetricOptions) -> Scores | Unavailable:
    pair = pick(side, side.labels, options.uncertain)
    return f1_scores(side, pair, "ran", conventions_of(side, options), micro=False)


def _ran_errors(side: MetricInput, options: MetricOptions) -> Scores | Unavailable:
    pair = pick(side, side.labels, options.uncertain)
    signed = sign_labels(
        side,
        "ran_errors",
        conventions_of(side, options),
        effective=len(side.labels),
        n=pair.n,
        of=len(side.labels),
    )
    return mean_scores(case_errors(*pair), signed)


def _rate(
    side: MetricInput,
    options: MetricOptions,
    *,
    name: str,
    counted: Counted,
    micro: bool,
) -> Scores | Unavailable:
    findings = tuple(label for label in side.labels if label != NO_FINDING)
    pair = pick(side, findings, options.uncertain)
    part, whole = counted(pair)
    effective = int((whole.sum(axis=0) > 0).sum())
    per_case = divide(part.sum(axis=1), whole.sum(axis=1))
    if micro:
        part, whole = part.sum(axis=1)[:, None], whole.sum(axis=1)[:, None]
    parts = np.hstack([part, whole])
    # A rate over labels without a case to rate has no value that could be agreed on.
    conventions = replace(conventions_of(side, options), zero_division="skip")
    signed = sign_labels(
        side, name, conventions, effective=effective, n=pair.n, of=len(findings)
    )
    return Scores(
        per_case=per_case,
        value=_value(parts, _f1_of),
        signature=signed.replace(f"nf:{side.no_finding.value}", "nf:out"),
        parts=parts,
        combine=_f1_of,
    )


def _sensitivity(pair: Binary) -> Parts:
    positive = pair.decided & (pair.reference == PRESENT)
    return _integers(positive & (pair.candidate == PRESENT), positive)


def _specificity(pair: Binary) -> Parts:
    negative = pair.decided & (pair.reference == ABSENT)
    return _integers(negative & (pair.candidate == ABSENT), negative)


def _f1(pair: Binary) -> Parts:
    found, weight = np.split(f1_columns(*pair).astype(np.int16), 2, axis=1)
    return found, weight


def _integers(*indicators: NDArray[np.bool_]) -> Parts:
    part, whole = (indicator.astype(np.int16) for indicator in indicators)
    return part, whole


def _f1_of(
    sums: NDArray[np.float64], zero_division: ZeroDivision = "skip"
) -> NDArray[np.float64]:
    found, weight = np.split(sums, 2, axis=1)
    return mean_f1(found, weight, zero_division=zero_division)


def _value(parts: NDArray[Any], combine: Combine) -> float | None:
    value = combine(parts.sum(axis=0, dtype=np.float64)[None])[0]
    return None if np.isnan(value) else float(value)


Parts = tuple[NDArray[np.int16], NDArray[np.int16]]
Counted = Callable[[Binary], Parts]
Combine = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_PAPER = "Bossuyt PM et al. STARD 2015. Radiology 2015;277:826-832"
_RATES: tuple[tuple[str, str, Counted, str], ...] = (
    ("sensitivity", "Clinical sensitivity", _sensitivity, "present findings found"),
    ("specificity", "Clinical specificity", _specificity, "absent findings left out"),
    ("f1", "Clinical F1", _f1, "findings, by 2 TP / (2 TP + FP + FN)"),
)


def _rate_entry(
    name: str, title: str, counted: Counted, what: str, micro: bool
) -> Metric:
    whole = f"clinical_{name}" if micro else f"clinical_{name}_macro"
    over = "over all cells" if micro else "the mean over labels"
    return Metric(
        name=whole,
        title=title if micro else f"{title}, macro",
        direction=Direction.HIGHER,
        low=0.0,
        high=1.0,
        needs="labels, read from the texts or given",
        about=f"Share of {what}, {over}; No Finding is left out. It sees only labels.",
        reference=_PAPER,
        score=partial(_rate, name=whole, counted=counted, micro=micro),
        family="labels",
    )


LABELS: tuple[Metric, ...] = (
    Metric(
        name="ran_score",
        title="Ran Score",
        direction=Direction.HIGHER,
        low=0.0,
        high=1.0,
        needs="labels, read from the texts or given",
        about="Macro F1 over the labels; of a case, F1 over its labels. It sees "
        "neither place nor degree of a finding.",
        reference="Macro F1: Opitz J, Burst S. arXiv:1911.03347",
        score=_ran_score,
        family="labels",
    ),
    Metric(
        name="ran_errors",
        title="Ran errors",
        direction=Direction.LOWER,
        low=0.0,
        high=None,
        needs="labels, read from the texts or given",
        about="Labels missed and invented per case, all weighing the same.",
        reference="Counts of false negatives and false positives",
        score=_ran_errors,
        family="labels",
    ),
    *(_rate_entry(*rate, micro=True) for rate in _RATES),
    *(_rate_entry(*rate, micro=False) for rate in _RATES),
)


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


def _chexpert_entry(size: int, average: str, uncertain: Uncertain) -> Metric:
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
    _chexpert_entry(size, average, uncertain)
    for size, average, uncertain in product((14, 5), ("macro", "micro"), _POLICIES)
)
