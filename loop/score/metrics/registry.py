"""The registry: every metric by name, in the order in which they are shown."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from loop.core.errors import DataError
from loop.score.metrics.base import Metric
from loop.score.metrics.bertscore import BERTSCORE
from loop.score.metrics.clinical import CHEXPERT, LABELS
from loop.score.metrics.embedded_judge import JUDGE
from loop.score.metrics.lexical import OVERLAP
from loop.score.metrics.readability import READING

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (*LABELS, *CHEXPERT, *JUDGE, *OVERLAP, BERTSCORE, *READING)
    }
)
"""Every metric by name: labels, errors, texts, and what only describes."""

ALL = "all"
FAMILIES = tuple(dict.fromkeys(metric.family for metric in METRICS.values()))


def find(names: Sequence[str]) -> tuple[Metric, ...]:
    """Return metrics by name, by family or all of them, in the registry's order.

    Parameters
    ----------
    names
        Names of metrics, of families (``labels``, ``judge``, ``text``, ``reading``), or
        ``all``; each metric comes once.

    Raises
    ------
    DataError
        Nothing is called so; names the closest one.

    Examples
    --------
    >>> [metric.name for metric in find(["rouge_l", "bleu_2", "rouge_l"])]
    ['bleu_2', 'rouge_l']
    """
    for name in names:
        _check(name)
    wanted = set(names)
    return tuple(
        metric
        for metric in METRICS.values()
        if wanted & {ALL, metric.name, metric.family}
    )


def _check(name: str) -> None:
    known = (*METRICS, *FAMILIES, ALL)
    if name in known:
        return
    near = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise DataError(
        f"no metric is called {name!r}. {hint}`ranloop score --list` shows all; "
        f"{', '.join(FAMILIES)} and {ALL} name several."
    )
