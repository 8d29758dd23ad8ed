"""Discrimination and robustness: do scores fall for errors, and only for errors.

Pairs of a reference and a changed copy of it are marked significant, where the change
is an error that matters, or not, where it is a harmless rewording. A metric should
score the first lower than the second, and a judge flag the first and not the second.
Public code for the published quantities is missing: these are reconstructions, and each
number says how it is made.

References
----------
After ReEvalMed (definitions reconstructed): D is the flagged share of the significant
pairs, R the unflagged share of the others, bias D - R.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import fsum
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_json, digest_text
from loop.core.errors import DataError
from loop.core.safe_text import quoted
from loop.labels.importing.encodings import find_encoding
from loop.labels.importing.table_files import csv_rows
from loop.stats.auc import grouped_auc, within_units
from loop.stats.intervals import Estimate, Interval, clopper_pearson
from loop.stats.resampling import to_estimate

PAIRS_FILE: Final = "pairs.csv"
"""Name of the file in a folder of injected errors."""

COLUMNS: Final = ("id", "reference_id", "reference", "candidate", "kind", "significant")
"""Columns that a file of marked pairs has; it may have ``number`` and ``severity``."""

_MOST_DIGITS: Final = 20
"""Of a count: Python refuses to read thousands of them."""

_ROUNDING: Final = 1e-12
"""Up to which two scores are equal."""

_YES = frozenset({"yes", "true", "1", "significant"})
_NO = frozenset({"no", "false", "0", "insignificant"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedPairs:
    """Pairs that are marked significant or not, in the order of their file."""

    ids: tuple[str, ...]
    reference_ids: tuple[str, ...]
    """What is resampled: all variants of one reference stand or fall together."""

    references: tuple[str, ...]
    candidates: tuple[str, ...]
    kinds: tuple[str, ...]
    significant: NDArray[np.bool_]
    numbers: NDArray[np.int64]
    """How many changes each candidate has, at least 1."""

    severities: NDArray[np.int64] = field(default_factory=lambda: np.ones(0, int))
    """How bad each change is among those of its kind and reference, at least 1: more
    is worse. All 1 where nothing is said of it."""

    source: str = ""

    def __post_init__(self) -> None:
        if not len(self.severities):
            severities = np.ones(len(self.ids), dtype=np.int64)
            object.__setattr__(self, "severities", severities)

    @property
    def digest(self) -> str:
        """Sha256 over every pair: ids, texts and marks, in their order."""
        texts = (self.references, self.candidates)
        columns = (
            *(self.ids, self.reference_ids, self.kinds),
            *([digest_text(one) for one in column] for column in texts),
            *(self.significant.tolist(), self.numbers.tolist()),
            *([self.severities.tolist()] if self.has_severities else []),
        )
        return digest_json([[*row] for row in zip(*columns, strict=True)])

    @property
    def has_severities(self) -> bool:
        """Whether some changes are worse than others of their kind."""
        return bool((self.severities > 1).any())

    def kinds_of(self, *, significant: bool) -> tuple[str, ...]:
        """Return the kinds of one group, in order of first appearance."""
        return tuple(
            dict.fromkeys(
                kind
                for kind, one in zip(self.kinds, self.significant, strict=True)
                if bool(one) is significant
            )
        )


def read_marked_pairs(path: Path) -> MarkedPairs:
    """Return the pairs of a CSV file, or of the ``pairs.csv`` of a folder.

    Raises
    ------
    DataError
        The file cannot be read, lacks a column, a row says neither yes nor no, an id
        appears twice, or only one of the two groups is there.
    """
    file = path / PAIRS_FILE if path.is_dir() else path
    if not file.is_file():
        raise DataError(
            f"{file} does not exist. Name a folder that `ranloop inject` made, or a "
            f"CSV file with the columns {', '.join(COLUMNS)}."
        )
    rows: list[tuple[int, dict[str, str]]] = []
    with csv_rows(file, find_encoding(file).name) as lines:
        header = [name.strip() for name in next(lines, (1, []))[1]]
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            raise DataError(
                f"{file}, line 1: no column {', '.join(missing)}. It takes the columns "
                f"{', '.join(COLUMNS)}, and may have number and severity."
            )
        for line, cells in lines:
            if len(cells) != len(header):
                raise DataError(
                    f"{file}, line {line}: {len(cells)} columns where the header has "
                    f"{len(header)}. Put texts with commas in quotes."
                )
            rows.append((line, dict(zip(header, cells, strict=True))))
    found = MarkedPairs(
        ids=tuple(row["id"].strip() for _, row in rows),
        reference_ids=tuple(row["reference_id"].strip() for _, row in rows),
        references=tuple(row["reference"] for _, row in rows),
        candidates=tuple(row["candidate"] for _, row in rows),
        kinds=tuple(row["kind"].strip() for _, row in rows),
        significant=np.array(
            [_read_mark(row["significant"], file, line) for line, row in rows],
            dtype=bool,
        ),
        numbers=_read_counts("number", rows, file),
        severities=_read_counts("severity", rows, file),
        source=file.name,
    )
    twice = [name for name, times in Counter(found.ids).items() if times > 1]
    if twice:
        raise DataError(
            f"{file}: the id {quoted(twice[0])} appears twice. Give every pair its own."
        )
    if "" in found.ids or "" in found.reference_ids:
        raise DataError(
            f"{file}: a row has no id, or no reference_id. Give every pair both."
        )
    if found.significant.all() or not found.significant.any():
        raise DataError(
            f"{file}: both significant and insignificant pairs are needed, and all of "
            "its pairs are of one group. Add harmless rewordings (`ranloop inject "
            "--harmless`), or errors."
        )
    return found


def _read_mark(cell: str, file: Path, line: int) -> bool:
    word = cell.strip().casefold()
    if word not in _YES | _NO:
        raise DataError(
            f"{file}, line {line}: significant is neither yes nor no. Write one."
        )
    return word in _YES


def _read_counts(
    name: str, rows: Sequence[tuple[int, Mapping[str, str]]], file: Path
) -> NDArray[np.int64]:
    """Return a column of counts from 1; an empty cell is a 1."""
    found = []
    for line, row in rows:
        word = row.get(name, "").strip() or "1"
        whole = word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS
        if not (whole and 0 < int(word) < 1000):
            raise DataError(
                f"{file}, line {line}: {name} is not a whole number from 1 to 999. "
                "Correct it, or leave it empty for 1."
            )
        found.append(int(word))
    return np.array(found, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairScores:
    """What one metric or judge says of marked pairs."""

    name: str
    title: str
    lower: bool
    """Whether lower is better."""

    values: NDArray[np.float64]
    """One a pair; NaN where there is none."""

    signature: str
    flags: NDArray[np.float64] | None = None
    """1 where a judge calls a candidate wrong, 0 where not, NaN without a readable
    answer; None of a metric without a decision."""

    decision: str = ""
    """How flags are made, in words."""

    def flagged_below(self, threshold: float, chosen: str) -> PairScores:
        """Return the same with every pair flagged that scores worse than `threshold`.

        Parameters
        ----------
        chosen
            Where the threshold is from, in words.
        """
        good = -self.values if self.lower else self.values
        limit = -threshold if self.lower else threshold
        flags = np.where(np.isnan(good), np.nan, good < limit)
        side = "above" if self.lower else "below"
        decision = f"flagged {side} {threshold:.4g}, {chosen}"
        if np.isinf(limit):
            decision = f"every pair is flagged, {chosen}: no threshold parts them"
        return replace(self, flags=flags, decision=decision)


class FlaggedShare(NamedTuple):
    """A share of pairs with its exact limits."""

    hits: int
    pairs: int
    limits: Interval
    """Clopper-Pearson over pairs: rather too narrow, where several are of one report.
    """

    @property
    def value(self) -> float | None:
        """The share; None without a pair."""
        return self.hits / self.pairs if self.pairs else None


class KindResult(NamedTuple):
    """One kind of change."""

    kind: str
    significant: bool
    pairs: int
    """With a score."""

    auc: Estimate | None
    """Chance that a harmless pair scores better; None of a harmless kind."""

    share: FlaggedShare | None
    """Flagged of a significant kind, unflagged of a harmless one; None without a
    decision."""


class StepCount(NamedTuple):
    """How often a score rises where it should fall, or stay."""

    violated: int
    steps: int
    limits: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrimination:
    """What one metric or judge makes of marked pairs."""

    scores: PairScores
    undefined: int
    """Pairs without a score, in no number."""

    auc: Estimate
    """Chance that a harmless pair scores better than a significant one."""

    paired: Estimate
    """The same of two variants of one reference, the mean over references."""

    paired_references: int
    discrimination: FlaggedShare | None
    """D: the flagged share of the significant pairs; None without a decision."""

    robustness: FlaggedShare | None
    """R: the unflagged share of the others."""

    steps: StepCount
    """To more errors of the same kind, report and severity."""

    worse_steps: StepCount
    """To a worse error of the same kind, report and number."""

    kinds: tuple[KindResult, ...]

    @property
    def bias(self) -> float | None:
        """D - R: above 0 for whoever flags harmless rewordings, too."""
        shares = self._shares()
        return None if shares is None else shares[0] - shares[1]

    @property
    def overall(self) -> float | None:
        """(D + R) / 2."""
        shares = self._shares()
        return None if shares is None else sum(shares) / 2

    def _shares(self) -> tuple[float, float] | None:
        if self.discrimination is None or self.robustness is None:
            return None
        both = self.discrimination.value, self.robustness.value
        return None if None in both else (float(both[0] or 0), float(both[1] or 0))


def measure_discrimination(
    pairs: MarkedPairs,
    scores: PairScores,
    *,
    resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Discrimination:
    """Return what one metric or judge makes of marked pairs.

    Parameters
    ----------
    resamples, seed, confidence
        Of the bootstrap over references, and of the exact limits.

    Raises
    ------
    ValueError
        There is not one score a pair.
    """
    if scores.values.shape != (len(pairs.ids),):
        raise ValueError(
            f"need one score for each of {len(pairs.ids)} pairs, got "
            f"{scores.values.shape}"
        )
    good = -scores.values if scores.lower else scores.values
    kinds = pairs.kinds_of(significant=True)
    places = {kind: place for place, kind in enumerate(kinds)}
    groups = np.array(
        [
            places[kind] if one else -1
            for kind, one in zip(pairs.kinds, pairs.significant, strict=True)
        ]
    )
    units = np.array(pairs.reference_ids)
    found = grouped_auc(
        good,
        groups,
        units,
        len(kinds),
        resamples=resamples,
        seed=seed,
        confidence=confidence,
    )
    within, references = within_units(
        good,
        pairs.significant,
        units,
        resamples=resamples,
        seed=seed,
        confidence=confidence,
    )
    wrong, right = _shares(pairs, scores, confidence)
    areas = dict(zip(kinds, map(to_estimate, found.groups), strict=True))
    return Discrimination(
        scores=scores,
        undefined=int(np.isnan(scores.values).sum()),
        auc=to_estimate(found.whole),
        paired=to_estimate(within),
        paired_references=references,
        discrimination=wrong,
        robustness=right,
        steps=_count_steps(pairs, good, pairs.severities, pairs.numbers, confidence),
        worse_steps=_count_steps(
            pairs, good, pairs.numbers, pairs.severities, confidence
        ),
        kinds=tuple(_by_kind(pairs, scores, areas, confidence)),
    )


def _share(
    flags: NDArray[np.float64], wanted: float, confidence: float
) -> FlaggedShare:
    given = flags[~np.isnan(flags)]
    hits = int((given == wanted).sum())
    limits = clopper_pearson(hits, len(given), confidence=confidence)
    return FlaggedShare(hits, len(given), limits)


def _shares(
    pairs: MarkedPairs, scores: PairScores, confidence: float
) -> tuple[FlaggedShare | None, FlaggedShare | None]:
    if scores.flags is None:
        return None, None
    return (
        _share(scores.flags[pairs.significant], 1.0, confidence),
        _share(scores.flags[~pairs.significant], 0.0, confidence),
    )


def _by_kind(
    pairs: MarkedPairs,
    scores: PairScores,
    areas: Mapping[str, Estimate],
    confidence: float,
) -> list[KindResult]:
    named = np.array(pairs.kinds)
    given = ~np.isnan(scores.values)
    rows = []
    for significant in (True, False):
        for kind in pairs.kinds_of(significant=significant):
            own = (named == kind) & (pairs.significant == significant)
            share = None
            if scores.flags is not None:
                wanted = 1.0 if significant else 0.0
                share = _share(scores.flags[own], wanted, confidence)
            area = areas[kind] if significant else None
            rows.append(
                KindResult(kind, significant, int((own & given).sum()), area, share)
            )
    return rows


def _count_steps(
    pairs: MarkedPairs,
    good: NDArray[np.float64],
    fixed: NDArray[np.int64],
    growing: NDArray[np.int64],
    confidence: float,
) -> StepCount:
    """Count the steps to the next value of `growing`.

    Each is of one reference and kind, and one value of `fixed`. One is violated where
    the score rises; equal scores are no rise.
    """
    lines: dict[tuple[str, str, int], dict[int, list[float]]] = {}
    for place in np.flatnonzero(pairs.significant & ~np.isnan(good)):
        key = pairs.reference_ids[place], pairs.kinds[place], int(fixed[place])
        by_value = lines.setdefault(key, {})
        by_value.setdefault(int(growing[place]), []).append(float(good[place]))
    violated = steps = 0
    for by_value in lines.values():
        for less, more in pairwise(sorted(by_value)):
            rise = _mean(by_value[more]) - _mean(by_value[less])
            steps += 1
            violated += rise > _ROUNDING
    limits = clopper_pearson(int(violated), steps, confidence=confidence)
    return StepCount(int(violated), steps, limits)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def choose_threshold(pairs: MarkedPairs, scores: PairScores) -> float:
    """Return the threshold with the largest (D + R) / 2 on some pairs.

    Between the two scores that part the pairs best; of several the middle one.

    Raises
    ------
    DataError
        No pair of one group has a score.
    """
    good = -scores.values if scores.lower else scores.values
    given = ~np.isnan(good)
    wrong = np.sort(good[given & pairs.significant])
    right = np.sort(good[given & ~pairs.significant])
    if not len(wrong) or not len(right):
        raise DataError(
            f"{scores.title} has no value for any pair of one group, so no threshold "
            "can be chosen on them. Name one with --threshold."
        )
    levels = np.unique(np.concatenate([wrong, right]))
    edges = np.concatenate([levels[:1], (levels[1:] + levels[:-1]) / 2, [np.inf]])
    flagged = np.searchsorted(wrong, edges) / len(wrong)
    kept = 1 - np.searchsorted(right, edges) / len(right)
    best = np.flatnonzero(np.isclose(flagged + kept, (flagged + kept).max()))
    chosen = float(edges[best[len(best) // 2]])
    return -chosen if scores.lower else chosen


def require_apart(tested: MarkedPairs, chosen_on: MarkedPairs) -> None:
    """Refuse thresholds that are chosen on the pairs, or references, that are tested.

    Raises
    ------
    DataError
        The two share a reference, by its id or by its text.
    """
    ids = set(tested.reference_ids) & set(chosen_on.reference_ids)
    texts = set(tested.references) & set(chosen_on.references)
    if ids or texts:
        number = max(len(ids), len(texts))
        raise DataError(
            f"{number} reference{' ' if number == 1 else 's '}of the tested pairs "
            f"{'is' if number == 1 else 'are'} among those that thresholds would be "
            "chosen on, so that the numbers would be too good. Choose them on variants "
            "of other reports."
        )


def read_pair_scores(
    path: Path, pairs: MarkedPairs, lower: Sequence[str] = ()
) -> tuple[PairScores, ...]:
    """Return the scores of a CSV file: a column ``id`` and one for each metric.

    An empty cell is a pair without a score, and so is a pair that the file lacks.

    Parameters
    ----------
    lower
        Columns in which lower is better; others are left aside.

    Raises
    ------
    DataError
        The file cannot be read, has no column of scores, an id or a column twice, an
        id that is none of the pairs', or a cell that is no number.
    """
    places = {name: place for place, name in enumerate(pairs.ids)}
    with csv_rows(path, find_encoding(path).name) as lines:
        header = [name.strip() for name in next(lines, (1, []))[1]]
        names = [name for name in header if name != "id"]
        if "id" not in header or not names:
            raise DataError(
                f"{path}, line 1: a column id and one for each metric are needed."
            )
        if len(set(header)) < len(header):
            raise DataError(f"{path}, line 1: a column appears twice. Keep one.")
        table = np.full((len(places), len(names)), np.nan)
        seen: set[str] = set()
        for line, cells in lines:
            if len(cells) != len(header):
                raise DataError(
                    f"{path}, line {line}: {len(cells)} columns where the header has "
                    f"{len(header)}. Correct the line."
                )
            row = dict(zip(header, cells, strict=True))
            if row["id"].strip() in seen:
                raise DataError(
                    f"{path}, line {line}: its id appears twice. Keep one of the two."
                )
            seen.add(row["id"].strip())
            place = places.get(row.get("id", "").strip())
            if place is None:
                raise DataError(
                    f"{path}, line {line}: the id is none of {pairs.source}. Correct "
                    "it, or remove the line."
                )
            table[place] = [_number(row.get(name, ""), path, line) for name in names]
    return tuple(
        PairScores(
            name=name,
            title=name,
            lower=name in lower,
            values=table[:, column],
            signature=f"{name}|from:{path.name}",
        )
        for column, name in enumerate(names)
    )


def _number(cell: str, path: Path, line: int) -> float:
    try:
        value = float(cell) if cell.strip() else np.nan
    except ValueError:
        value = np.inf
    if np.isinf(value):
        raise DataError(
            f"{path}, line {line}: a score is no number. Correct it, or leave it empty."
        )
    return float(value)
