"""What the columns of a published table mean, read from their headers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

SHARES = (
    "accuracy", "precision", "recall", "f1", "specificity", "npv", "prevalence",
    "share",
)  # fmt: skip
"""Measures in [0, 1]; ``share`` is a proportion that the table does not name."""

RATES = (*SHARES, "kappa")

_PHRASES = (
    (r"positive predictive value", "ppv"),
    (r"negative predictive value", "npv"),
    (r"true positives?", "tp"),
    (r"false positives?(?! rate)", "fp"),
    (r"false negatives?", "fn"),
    (r"true negatives?", "tn"),
    (r"(?:true positive rate|tpr)", "recall"),
    (r"confidence intervals?", "ci"),
    (r"p[ -]?values?", "pvalue"),
    (r"(?:no\.?|number) of (?:cases|reports|patients|images|samples)", "n"),
    (r"(?:no\.?|number) of positives?", "positives"),
    (r"(?:ran|macro)[ -]score", "f1 macro"),
)
_MEASURES = {
    "accuracy": r"acc(?:uracy|uracies)?",
    "precision": r"precision|prec|ppv",
    "recall": r"recall|rec|sensitivity|sens|se",
    "f1": r"f-?1(?:-?scores?)?|dice|f-scores?|f-measure",
    "specificity": r"specificity|spec|tnr|sp",
    "npv": r"npv",
    "kappa": r"kappa|κ",
    "prevalence": r"prevalence",
    "tp": r"tps?", "fp": r"fps?", "fn": r"fns?", "tn": r"tns?",
    "n": r"n|cases|total_n",
    "positives": r"positives?|pos|support",
    "other": r"pvalue|p|auc|auroc|auprc|bleu\S*|rouge\S*|flips?|time|tokens?|seed",
}  # fmt: skip
_PARTS = {
    "low": r"low|lower|lcl|ci_low|lo",
    "high": r"high|upper|ucl|ci_high|hi|up",
    "limits": r"ci|cis|interval|intervals",
}
_TIMES = {
    "before": r"pre|before|pre-?\w*opt\w*|baseline|initial|original|unoptimi[sz]ed",
    "after": r"post|after|post-?\w*opt\w*|optimi[sz]ed|final|revised",
}
_AVERAGES = {"macro": r"macro", "micro": r"micro", "weighted": r"weighted"}
_DELTA = r"delta|δ|∆|Δ|change|difference|diff|gain|gains|improvement|gap"
_MEAN = r"mean|average|avg"
_FILLER = (
    r"of|the|to|vs\.?|versus|over|in|and|for|score|scores|prompt|optimi[sz]ation|"
    r"limit|bound|percent|%|-|–|=|points?|against|(?:90|95|99)(?:\.0)?%?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """One column of numbers."""

    index: int
    header: str
    measure: str
    """Name of a measure, a count (``tp``), ``n``, ``other``, or empty: not named."""

    part: str = ""
    """``"low"``, ``"high"`` or ``"limits"`` of an interval; empty for the value."""

    system: str = ""
    """What the header says beside the measure: usually a model."""

    time: str = ""
    """``"before"``, ``"after"`` or empty."""

    average: str = ""
    """``"micro"``, ``"macro"``, ``"weighted"`` or empty."""

    delta: bool = False
    """Whether the column is a difference of two others."""

    mean: bool = False
    """Whether the column is a mean over others."""

    percent: bool = False
    n: int | None = None
    """Cases the header states: ``(n = 300)``."""

    @property
    def group(self) -> tuple[str, str, str]:
        """What the columns of one set of results share."""
        return (self.system.casefold(), self.time, self.average)

    @property
    def is_value(self) -> bool:
        """Whether it holds a measure itself, not a limit, a difference or a mean."""
        return not (self.part or self.delta or self.mean)


def read_columns(header: Sequence[str], keys: int) -> tuple[TableColumn, ...]:
    """Return the meaning of the columns after the first `keys` ones.

    An interval column without a measure belongs to the value column to its left.

    Examples
    --------
    >>> read_columns(["Label", "F1 (post)"], 1)[0].time
    'after'
    """
    columns: list[TableColumn] = []
    for index in range(keys, len(header)):
        column = _read(header[index], index)
        left = next((c for c in reversed(columns) if c.is_value), None)
        if column.part and not column.measure and left is not None:
            bare = not (column.system or column.time)
            source = left if bare else column
            column = TableColumn(
                index=index, header=column.header, measure=left.measure,
                part=column.part, system=source.system, time=source.time,
                average=source.average, percent=column.percent or left.percent,
                n=column.n or left.n,
            )  # fmt: skip
        columns.append(column)
    return tuple(columns)


def measure_in(text: str) -> str:
    """Return the one measure a caption names, else an empty string."""
    found = {_match(_MEASURES, token) for token in _tokens(text)} & set(RATES)
    return found.pop() if len(found) == 1 else ""


def stated_n(text: str) -> int | None:
    """Return the cases a caption or header states as ``n = 300``, else None."""
    found = re.search(r"\bn\s*=\s*(\d{1,3}(?:,\d{3})+|\d{1,9})\b", text, re.IGNORECASE)
    return int(found[1].replace(",", "")) or None if found else None


def _read(header: str, index: int) -> TableColumn:
    n = stated_n(header)
    rest = re.sub(r"\bn\s*=\s*[\d,]+", " ", header, flags=re.IGNORECASE)
    measure = part = time = average = ""
    delta = mean = False
    words: list[str] = []
    for token in _tokens(rest):
        low = token.casefold()
        if not measure and (found := _match(_MEASURES, token)):
            measure = found
        elif found := _match(_PARTS, token):
            part = found if part in ("", "limits") else part
        elif not time and (found := _match(_TIMES, token)):
            time = found
        elif not average and (found := _match(_AVERAGES, token)):
            average = found
        elif re.fullmatch(_DELTA, low):
            delta = True
        elif re.fullmatch(_MEAN, low):
            mean = True
        elif not re.fullmatch(_FILLER, low):
            words.append(token)
    value_too = part == "limits" and measure and not _only_limits(rest)
    return TableColumn(
        index=index, header=header, measure=measure, part="" if value_too else part,
        system=" ".join(words), time=time, average=average, delta=delta,
        mean=mean and not words, percent="%" in re.sub(r"\d+\s?%", "", rest), n=n,
    )  # fmt: skip


def _only_limits(header: str) -> bool:
    """Whether an interval is all a header promises: ``95% CI of accuracy``."""
    return bool(re.match(r"\s*(?:\d\d\s?%\s*)?(?:ci|confidence)\b", header, re.I))


def _tokens(text: str) -> list[str]:
    plain = text.replace("_", " ")
    for pattern, word in _PHRASES:
        plain = re.sub(rf"\b{pattern}\b", word, plain, flags=re.IGNORECASE)
    plain = re.sub(r"([Δ∆δ])", r" \1 ", plain)
    return [token for token in re.split(r"[\s,;:()\[\]/|→]+", plain) if token]


def _match(patterns: dict[str, str], token: str) -> str:
    low = token.casefold().strip("-.")
    return next((n for n, rx in patterns.items() if re.fullmatch(rx, low)), "")
