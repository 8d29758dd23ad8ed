"""What a document about a score is made of: records only, never a text of a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import NamedTuple

from loop.run.execute import Problem
from loop.score.confused import Confused
from loop.score.documents.experts import Experts
from loop.score.metric import Metric
from loop.score.metrics.sheet import MetricCorrelations, MetricResult, ScoreSheet
from loop.score.panel import SensitivityPanel
from loop.score.records import Joined
from loop.score.result import CaseScore, RanScore, SystemDifference, SystemScore

WORST = 5
"""Most cases named as examples of one system."""


class Sources(NamedTuple):
    """Where the pairs come from."""

    files: tuple[tuple[str, str], ...]
    """Name and sha256 of each file."""

    empty_references: tuple[str, ...]
    languages: Mapping[str, int]
    """Cases by language, the commonest first."""

    repeated_references: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was remarkable when they were joined, as sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreDocument:
    """A score with everything that is told beside it."""

    score: RanScore
    names: Mapping[str, str]
    """Published name of every label id."""

    sheet: ScoreSheet
    sources: Sources
    confused: tuple[Confused, ...] = ()
    """Most common confusions of each system."""

    correlations: MetricCorrelations | None = None
    """Between metrics of `sheet`; None for fewer than two different ones."""

    twins: Mapping[str, str] = field(default_factory=dict)
    """Metrics that are not among `correlations`: every candidate has the same value
    of the one they are mapped to."""

    outcomes: Mapping[str, int] | None = None
    """What became of the distinct texts; None for given labels."""

    panel: SensitivityPanel | None = None
    """The same pairs read by a second extractor."""

    experts: Experts | None = None
    """Ratings of some of the candidates."""

    problems: tuple[Problem, ...] = ()
    """Why texts have no answer; the examples are case ids."""

    remarks: tuple[str, ...] = ()
    """What a reader must know besides, as sentences."""

    @property
    def keys(self) -> Mapping[str, str]:
        """A letter for every system, best first."""
        return {one.system: key(n) for n, one in enumerate(self.score.systems)}

    @property
    def differences(self) -> tuple[SystemDifference, ...]:
        """Every pair of systems, in the order of the ranking."""
        place = {one.system: n for n, one in enumerate(self.score.systems)}
        pairs = self.score.differences
        return tuple(sorted(pairs, key=lambda d: (place[d.better], place[d.worse])))


def describe_sources(joined: Joined) -> Sources:
    """Return where `joined` comes from, without its texts."""
    return Sources(
        joined.files,
        joined.empty_references,
        dict(Counter(joined.languages).most_common()),
        joined.repeated_references,
        joined.notes,
    )


def key(number: int) -> str:
    """Return the letter of system `number`, from 0: A to Z, then A2 to Z2.

    Examples
    --------
    >>> key(0), key(25), key(26)
    ('A', 'Z', 'A2')
    """
    turn, letter = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[letter] + (str(turn + 1) if turn else "")


def worst_cases(score: RanScore, system: SystemScore) -> tuple[CaseScore, ...]:
    """Return the cases of one system with the most errors; none without an error."""
    wrong = [
        case for case in score.cases if case.system == system.system and case.errors
    ]
    wrong.sort(key=lambda case: (-case.errors, case.f1 or 0.0, case.case_id))
    return tuple(wrong[:WORST])


def metric_rows(
    document: ScoreDocument,
) -> Iterator[tuple[Metric, tuple[MetricResult | None, ...]]]:
    """Yield every metric with its result for each system, best system first."""
    sheet = document.sheet
    found = {(one.metric.name, one.system): one for one in sheet.results}
    metrics = {one.metric.name: one.metric for one in sheet.results}
    for name, metric in metrics.items():
        yield (
            metric,
            tuple(found.get((name, one.system)) for one in document.score.systems),
        )
