"""Which labels a search may change: those that fail their gate, or those named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from loop.core.errors import DataError
from loop.optimize.ground import SearchGround
from loop.optimize.objective import Objective

FAILING: Final = "failing"
"""In place of labels: those that fail their gate now."""


def require_labels(ground: SearchGround, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that are named among `wanted`, which may hold `FAILING`.

    Raises
    ------
    DataError
        A label is not asked for, or the reference does not judge it.
    """
    named = tuple(one for one in wanted if one != FAILING)
    unknown = [one for one in named if one not in ground.labels]
    if unknown:
        raise DataError(
            f"{ground.version.ref} on cohort {ground.cohort.name} has no label "
            f"{', '.join(unknown)} to search for. Name some of "
            f"{', '.join(ground.labels)}, or {FAILING}."
        )
    return named


def choose_labels(objective: Objective, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the labels to search for, those that fail their gate first.

    A label that the version answers rightly everywhere, or that has fewer positives
    than the protocol's minimum, is left out unless it is named.

    Parameters
    ----------
    wanted
        Names of labels; `FAILING`, alone or among them, for those that fail their gate;
        empty for all.

    Raises
    ------
    DataError
        As `require_labels` raises it.
    """
    ground = objective.ground
    named = require_labels(ground, wanted)
    answers = objective.answers(ground.version)
    everything = np.arange(len(ground.items))
    wrong = ground.wrong(answers, everything).sum(axis=0)
    fails = ground.failing(answers)
    order = sorted(
        range(len(ground.labels)), key=lambda one: (not fails[one], -int(wrong[one]))
    )
    usable = (wrong > 0) & ground.scored
    if FAILING in wanted:
        usable &= np.array(fails, dtype=bool)
    elif wanted:
        usable[:] = False
    return tuple(
        ground.labels[one]
        for one in order
        if usable[one] or ground.labels[one] in named
    )
