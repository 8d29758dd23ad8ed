"""The result of scoring as tables: systems, labels, cases, differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from loop.core.errors import LoopError
from loop.core.nouns import counted
from loop.core.paths import install_command
from loop.score.records import (
    Coverage,
    Graded,
    Joined,
    LabelScore,
    RanScore,
    SystemScore,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 3
"""Ids named in a note."""

_SHOWN = ("rank", "ran_score", "low", "high", "best", "micro_f1", "n", "missing")

_DIFFERENCE = (
    "better",
    "worse",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "exact",
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RanScoreResult:
    """Ran Score of every system, with its tables and its figure.

    In tables, what is undefined is NaN; in `ranking` it is None.
    """

    ranking: RanScore
    """The same as records."""

    graded: Graded
    """Both sides as codes."""

    joined: Joined
    """What was scored."""

    @property
    def score(self) -> float | None:
        """Ran Score of the only system, or of the best; None where undefined."""
        return self.ranking.systems[0].ran_score.value

    @property
    def signature(self) -> str:
        """Every convention of `score`; over the same cases, equal ones compare."""
        return self.ranking.systems[0].signature

    @property
    def table(self) -> pd.DataFrame:
        """One row per system, best first; the system is the index."""
        coverage = {one.system: one for one in self.ranking.coverage}
        rows = [
            _system_row(one, coverage.get(one.system)) for one in self.ranking.systems
        ]
        return _frame(rows).set_index("system")

    @property
    def labels(self) -> pd.DataFrame:
        """One row per system and label, systems best first, labels as published."""
        return _frame(
            [
                {"system": system.system, **_label_row(label)}
                for system in self.ranking.systems
                for label in system.labels
            ]
        )

    @property
    def cases(self) -> pd.DataFrame:
        """One row per candidate, with the labels it missed and invented."""
        return _frame([one._asdict() for one in self.ranking.cases])

    @property
    def differences(self) -> pd.DataFrame:
        """One row per pair of systems; no row for a single one."""
        rows = [
            {
                **one._asdict(),
                "difference": one.difference.value,
                "low": one.difference.low,
                "high": one.difference.high,
            }
            for one in self.ranking.differences
        ]
        return _frame(rows, list(_DIFFERENCE))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the scores should know, as sentences."""
        return (*self.joined.notes, *self._gaps(), *self._limits())

    def plot(self) -> Figure:
        """Return the ranking with its intervals, as a figure.

        Raises
        ------
        LoopError
            matplotlib, the extra ``plot``, is not installed.
        """
        try:
            from loop.score.plot import plot_ranking
        except ModuleNotFoundError as error:
            raise LoopError(
                f"{error.name} is not installed. Add it with "
                f"`{install_command('plot')}`."
            ) from error
        return plot_ranking(self.ranking)

    def __repr__(self) -> str:
        lines = [f"Ran Score of {counted(len(self.ranking.systems), 'system')}"]
        lines += [_line(one) for one in self.ranking.systems]
        return "\n".join([*lines, self.signature, *self.notes])

    def _repr_html_(self) -> str:
        table = self.table[list(_SHOWN)].rename_axis(None)
        shown = table.to_html(float_format="{:.3f}".format)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"{shown}<p><code>{escape(self.signature)}</code></p><ul>{notes}</ul>"

    def _gaps(self) -> Iterator[str]:
        """Say which rows are not scored."""
        if self.joined.empty_references:
            yield _name(self.joined.empty_references, "reference", "without a word")
        for one in self.ranking.coverage:
            for ids, what in (
                (one.missing, "without a candidate, not scored"),
                (one.extra, "without a reference, not scored"),
                (one.empty, "without a word, scored as saying nothing"),
            ):
                if ids:
                    yield f"{one.system}: {_name(ids, 'case', what)}"

    def _limits(self) -> Iterator[str]:
        """Say which values are missing, and what a perfect copy scores."""
        for problem in self.graded.problems:
            texts = counted(problem.cases, "text")
            yield f"{texts} without an answer ({problem.text})."
        for one in self.ranking.systems:
            if one.perfect is not None and one.perfect < 1:
                policy = self.ranking.conventions.zero_division
                yield (
                    f"{one.system}: a perfect copy of the references scores "
                    f"{one.perfect:.3f} under zero_division {policy!r}, because labels "
                    "that never occur count."
                )


def _system_row(one: SystemScore, coverage: Coverage | None) -> dict[str, Any]:
    return {
        "system": one.system,
        "rank": one.rank,
        "ran_score": one.ran_score.value,
        "low": one.ran_score.low,
        "high": one.ran_score.high,
        "best": one.best,
        "effective_labels": one.effective_labels,
        "micro_f1": one.micro_f1.value,
        "micro_f1_low": one.micro_f1.low,
        "micro_f1_high": one.micro_f1.high,
        "micro_precision": one.micro_precision,
        "micro_recall": one.micro_recall,
        "micro_accuracy": one.micro_accuracy,
        "macro_precision": one.macro_precision,
        "macro_recall": one.macro_recall,
        "macro_accuracy": one.macro_accuracy,
        "perfect": one.perfect,
        "n": one.n,
        "missing": 0 if coverage is None else len(coverage.missing),
        "extra": 0 if coverage is None else len(coverage.extra),
        "empty": 0 if coverage is None else len(coverage.empty),
        "signature": one.signature,
    }


def _label_row(one: LabelScore) -> dict[str, Any]:
    counts = one.counts
    return {
        "label": one.label,
        "f1": one.f1,
        "precision": counts.precision,
        "recall": counts.recall,
        "specificity": counts.specificity,
        "accuracy": counts.accuracy,
        "tp": counts.tp,
        "fp": counts.fp,
        "fn": counts.fn,
        "tn": counts.tn,
        "uncertain": one.uncertain,
        "unanswered": one.unanswered,
    }


def _frame(
    rows: list[dict[str, Any]], columns: list[str] | None = None
) -> pd.DataFrame:
    """Return rows as a table; a column of numbers with None is one of floats."""
    table = pd.DataFrame(rows, columns=columns)
    for name in table.columns:
        if table[name].isna().all():
            table[name] = table[name].astype("float64")
    return table


def _line(one: SystemScore) -> str:
    """Return one line of the ranking."""
    value, low, high, _ = one.ran_score
    if value is None:
        return f"{one.rank}. {one.system}: undefined, no label counts"
    limits = "" if low is None else f" ({low:.3f} to {high:.3f})"
    return f"{one.rank}. {one.system}: {value:.3f}{limits}, {counted(one.n, 'case')}"


def _name(ids: tuple[str, ...], noun: str, what: str) -> str:
    """Return how many there are of something and the first of their ids."""
    more = ", ..." if len(ids) > _NAMED else ""
    return f"{counted(len(ids), noun)} {what}: {', '.join(ids[:_NAMED])}{more}."
