"""An embedded judge of pairs of reports: matched findings, errors, one score; no model.

It reads every finding of the reference and of the candidate, with what is said of it,
matches them, and calls what is left over a false finding or an omission and what
differs in a matched one an error of location, severity or comparison: the six
categories of GREEN. What findings and errors are worth is data
(``labels/judging.yaml``).

References
----------
Ostmeier S, et al. GREEN. Findings of EMNLP 2024:374-390.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from loop.core.records import ErrorWeight, Span
from loop.engines.rules.attributes import Attributes
from loop.engines.rules.report_findings import (
    FindingReader,
    ReportFinding,
    merge_sides,
)
from loop.engines.rules.rulings import Rulings
from loop.engines.rules.weights import (
    LOWER,
    JudgingData,
    Penalty,
    Worth,
)

_SAME_SIZE = 0.15
"""Share of the larger of two sizes within which they are the same."""

_SAME_MM = 1.5
"""Millimetres up to which two sizes are the same: less is no growth in Lung-RADS."""

_NEAR_SIZE = 0.35
"""The same for sizes that differ a little."""

_MOST_LOST = 0.9
"""Share of its worth that a matched finding can lose: less than one that is missing."""

_ALIKE = 0.5
"""Least share of content words (Dice) at which two unexplained sentences match."""


JUDGING_REVISION = 4
"""Raised whenever the same guides, cues and weights may judge otherwise."""

_NO_RULINGS = Rulings()

_SILENT = "Chest radiograph."
"""What is read in place of a candidate that holds nothing to read."""


class GreenCategory(StrEnum):
    """The categories of GREEN, (a) to (f), by their ids in ``labels/errors.yaml``."""

    FALSE_FINDING = "false_finding"
    OMISSION = "omission"
    LOCATION = "location"
    SEVERITY = "severity"
    COMPARISON = "comparison"
    OMITTED_CHANGE = "omitted_change"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairError:
    """One error of a candidate."""

    category: GreenCategory
    significant: bool
    reference_span: Span | None
    """None where the reference says nothing of it."""

    candidate_span: Span | None
    """None where the candidate says nothing of it."""

    label: str
    """The label it is about; empty where none names it."""

    cost: float
    """What it takes from the score: its weight in the denominator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedFinding:
    """One finding that both reports have, without a significant error."""

    reference_span: Span
    candidate_span: Span
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """What the judge says of one pair."""

    matched: tuple[MatchedFinding, ...]
    errors: tuple[PairError, ...]
    score: float
    """0 to 1; higher is better, 1 without any error, 0 for a candidate that says
    nothing."""

    def count(self, *categories: GreenCategory, significant: bool = True) -> int:
        """Return how many errors of these categories there are."""
        return sum(
            one.category in categories and one.significant is significant
            for one in self.errors
        )


class _Pair(NamedTuple):
    """A finding of the reference and the one of the candidate that it is."""

    wanted: ReportFinding
    given: ReportFinding


class _Difference(NamedTuple):
    """What differs in a matched finding, and the share of its worth that it costs."""

    category: GreenCategory
    penalty: float


def judge_pair(
    reader: FindingReader,
    reference: str,
    candidate: str,
    rulings: Rulings = _NO_RULINGS,
) -> JudgedPair:
    """Return matched findings, errors and the score of a candidate.

    The score is ``(k + M) / (k + M + E)``: M is what the matched findings are worth
    less what they lose, E what all errors cost, and k what a report is worth that has
    nothing to report. So it is 1 exactly where there is no error, falls with every
    error, and is defined for two normal reports; normal findings add nothing to it.

    Parameters
    ----------
    rulings
        What the judge's guides say of wordings. An error that they call none costs
        nothing; one that they weigh otherwise costs what it did.

    Raises
    ------
    EngineError
        A text is not in the reader's language, or holds nothing to read.
    """
    data = reader.data
    said, answered = reader.read(reference), reader.read(candidate)
    wanted = merge_sides(said.findings, answered.findings)
    given = merge_sides(answered.findings, said.findings)
    pairs, missed, invented = _match(data, wanted, given)
    errors: list[PairError] = []
    right: list[_Pair] = []
    credit = data.base
    texts = reference, candidate
    for pair in pairs:
        named = list(_errors_of(data, pair))
        found = [*_ruled(rulings, named, texts)]
        errors += found
        if not any(one.significant for one in found):
            right.append(pair)
        worth = _worth(data, pair.wanted)
        lost = _lost(data, pair)
        if len(found) < len(named):
            counted = {one.category for one in found}
            lost = sum(
                one.penalty
                for one in _differences(data, pair)
                if one.category in counted
            )
        credit += worth * (1 - min(_MOST_LOST, lost))
    alone: list[PairError] = []
    for one in missed:
        kin = _kin_of(data, one, given)
        if kin is not None:
            alone.append(_near_miss(data, one, _Pair(one, kin)))
        else:
            place = answered.denied.get(one.key)
            alone.append(_unmatched(data, one, GreenCategory.OMISSION, one.span, place))
    for one in invented:
        kin = _kin_of(data, one, wanted)
        if kin is not None:
            alone.append(_near_miss(data, one, _Pair(kin, one)))
        else:
            place = said.denied.get(one.key)
            alone.append(
                _unmatched(data, one, GreenCategory.FALSE_FINDING, place, one.span)
            )
    errors += _ruled(rulings, alone, texts)
    matched = tuple(
        MatchedFinding(
            reference_span=wanted.span,
            candidate_span=given.span,
            label=wanted.label or given.label,
        )
        for wanted, given in right
    )
    cost = sum(one.cost for one in errors)
    return JudgedPair(
        matched=matched, errors=tuple(errors), score=credit / (credit + cost)
    )


def _ruled(
    rulings: Rulings, errors: Sequence[PairError], texts: Sequence[str]
) -> Iterator[PairError]:
    """Yield the errors as the judge's guides weigh them, but those they call none."""
    for one in errors:
        spans = one.reference_span, one.candidate_span
        weight = rulings.weigh(one.category, texts, spans) if rulings else None
        if weight is None:
            yield one
        elif weight is not ErrorWeight.NO_ERROR:
            yield replace(one, significant=weight is ErrorWeight.SIGNIFICANT)


def judge_answer(
    reader: FindingReader,
    reference: str,
    candidate: str,
    rulings: Rulings = _NO_RULINGS,
) -> JudgedPair:
    """Return what `judge_pair` does, also for a candidate that holds nothing to read.

    Such a candidate agrees with no report, not with a normal one either: its score is
    0, and it has at least one significant error.

    Raises
    ------
    EngineError
        A text is not in the reader's language, or the reference holds nothing to read.
    """
    if reader.speaks(candidate):
        return judge_pair(reader, reference, candidate, rulings)
    errors = judge_pair(reader, reference, _SILENT, rulings).errors
    if not any(one.significant for one in errors):
        errors += (
            PairError(
                category=GreenCategory.OMISSION,
                significant=True,
                reference_span=None,
                candidate_span=None,
                label="",
                cost=reader.data.base,
            ),
        )
    return JudgedPair(matched=(), errors=errors, score=0.0)


def _match(
    data: JudgingData, wanted: Sequence[ReportFinding], given: Sequence[ReportFinding]
) -> tuple[list[_Pair], list[ReportFinding], list[ReportFinding]]:
    """Return pairs, those that lose least first, and what is left on either side."""
    options = [
        (loss, i, j)
        for i, j in _near(data, wanted, given)
        if (loss := _loss(data, _Pair(wanted[i], given[j]))) is not None
    ]
    used: set[int] = set()
    taken: set[int] = set()
    pairs = []
    for _, i, j in sorted(options):
        if i not in used and j not in taken:
            used.add(i)
            taken.add(j)
            pairs.append(_Pair(wanted[i], given[j]))
    pairs.sort(key=lambda pair: pair.wanted.span)
    return (
        pairs,
        [one for i, one in enumerate(wanted) if i not in used],
        [one for j, one in enumerate(given) if j not in taken],
    )


def _near(
    data: JudgingData, wanted: Sequence[ReportFinding], given: Sequence[ReportFinding]
) -> Iterator[tuple[int, int]]:
    """Yield which findings of the two reports may be the same."""
    by_key: dict[str, list[int]] = defaultdict(list)
    by_word: dict[str, list[int]] = defaultdict(list)
    for j, other in enumerate(given):
        by_key[other.key].append(j)
        for word in other.words:
            by_word[word].append(j)
    for i, one in enumerate(wanted):
        if one.key:
            for key, places in by_key.items():
                if key == one.key or data.are_kin(one.key, key):
                    yield from ((i, j) for j in places)
        else:
            yield from ((i, j) for j in {j for w in one.words for j in by_word[w]})


def _loss(data: JudgingData, pair: _Pair) -> float | None:
    """Return what a pair would lose; None where the two are different things."""
    one, other = pair
    if not one.key:
        shared = len(one.words & other.words)
        alike = 2 * shared / (len(one.words) + len(other.words))
        return 1 - alike if alike >= _ALIKE else None
    if one.key == other.key:
        return _lost(data, pair)
    # A finding by its own name goes before one that is only akin.
    return None if _other_side(one, other) else 1 + _lost(data, pair)


def _other_side(one: ReportFinding, other: ReportFinding) -> bool:
    sides = one.said.side, other.said.side
    return all(sides) and not sides[0] & sides[1]


def _kin_of(
    data: JudgingData, one: ReportFinding, others: Sequence[ReportFinding]
) -> ReportFinding | None:
    """Return a finding of the other report that says nearly the same as `one`."""
    for other in others:
        if data.are_kin(one.key, other.key) and not _other_side(one, other):
            return other
    return None


def _lost(data: JudgingData, pair: _Pair) -> float:
    return sum(one.penalty for one in _differences(data, pair))


def _errors_of(data: JudgingData, pair: _Pair) -> Iterator[PairError]:
    """Yield what is wrong in a matched finding."""
    wanted, given = pair
    penalties: dict[GreenCategory, list[float]] = defaultdict(list)
    for category, penalty in _differences(data, pair):
        if penalty:
            penalties[category].append(penalty)
    total = sum(map(sum, penalties.values()))
    worth = _lowered(data, wanted, data.class_of_error(wanted.key))
    least = min(1.0, _MOST_LOST / total) if total else 1.0
    for category, found in penalties.items():
        # Another size and another degree are one wrong severity.
        yield PairError(
            category=category,
            significant=max(found) >= data.serious and worth in data.significant,
            reference_span=wanted.span,
            candidate_span=given.span,
            label=wanted.label or given.label,
            cost=data.worth(worth, wanted.said.degree) * sum(found) * least,
        )


def _near_miss(data: JudgingData, one: ReportFinding, pair: _Pair) -> PairError:
    """Return the error of a finding that the other report calls something akin."""
    return PairError(
        category=GreenCategory.SEVERITY,
        significant=False,
        reference_span=pair.wanted.span,
        candidate_span=pair.given.span,
        label=pair.wanted.label or pair.given.label,
        cost=_worth(data, one) * data.penalties.kin.partial,
    )


def _unmatched(
    data: JudgingData,
    one: ReportFinding,
    category: GreenCategory,
    reference_span: Span | None,
    candidate_span: Span | None,
) -> PairError:
    """Return the error of a finding that only one of the reports has."""
    return PairError(
        category=category,
        significant=_lowered(data, one, data.class_of(one.key)) in data.significant,
        reference_span=reference_span,
        candidate_span=candidate_span,
        label=one.label,
        cost=_worth(data, one),
    )


def _worth(data: JudgingData, one: ReportFinding) -> float:
    return data.worth(_lowered(data, one, data.class_of(one.key)), one.said.degree)


def _lowered(data: JudgingData, one: ReportFinding, worth: Worth) -> Worth:
    """Return the class of a finding: one lower if open, healed or the least degree."""
    least = 0 < one.said.degree <= 1
    healed = any(trait in data.lowering for _, trait in one.said.characters)
    return worth if one.certain and not least and not healed else LOWER[worth]


def _differences(data: JudgingData, pair: _Pair) -> Iterator[_Difference]:
    """Yield what differs in a matched finding."""
    one, other = pair
    penalties = data.penalties
    if one.key != other.key:
        away = penalties.kin.conflict * data.steps(one.key, other.key)
        yield _Difference(GreenCategory.SEVERITY, away)
    if one.certain != other.certain:
        yield _Difference(GreenCategory.SEVERITY, penalties.certainty.conflict)
    if one.said == other.said:
        return
    said, given = one.said, other.said
    yield _Difference(GreenCategory.LOCATION, _side_loss(penalties.side, said, given))
    yield _Difference(GreenCategory.LOCATION, _place_loss(penalties.place, said, given))
    degree = _degree_loss(penalties.degree, said.degree, given.degree)
    yield _Difference(GreenCategory.SEVERITY, degree)
    size = _size_loss(penalties.size, said.size_mm, given.size_mm)
    yield _Difference(GreenCategory.SEVERITY, size)
    wanted = dict(said.characters)
    if any(wanted.get(line, trait) != trait for line, trait in given.characters):
        yield _Difference(GreenCategory.SEVERITY, penalties.character.conflict)
    if said.reads and given.reads and said.reads != given.reads:
        yield _Difference(GreenCategory.SEVERITY, penalties.kin.partial)
    yield from _change_loss(penalties.change, said, given)


def _side_loss(penalty: Penalty, said: Attributes, given: Attributes) -> float:
    if said.side == given.side:
        return 0.0
    if said.side and given.side:
        return penalty.partial if said.side & given.side else penalty.conflict
    return _unsaid(penalty, said if said.side else given, wanted=bool(said.side))


def _place_loss(penalty: Penalty, said: Attributes, given: Attributes) -> float:
    """Return the penalty of the axis of places that loses most."""
    if said.places == given.places:
        return 0.0
    losses = []
    for axis in {axis for axis, _ in said.places | given.places}:
        wanted, told = said.on(axis), given.on(axis)
        if wanted and told and wanted != told:
            losses.append(penalty.partial if wanted & told else penalty.conflict)
        elif wanted != told:
            losses.append(
                _unsaid(penalty, said if wanted else given, wanted=bool(wanted))
            )
    return max(losses, default=0.0)


def _unsaid(penalty: Penalty, teller: Attributes, *, wanted: bool) -> float:
    """Return the penalty where one says nothing, and the other not of itself."""
    if teller.borrowed:
        return 0.0
    return penalty.unstated if wanted else penalty.added


def _degree_loss(penalty: Penalty, said: float, given: float) -> float:
    if said and given:
        return penalty.conflict * abs(said - given)
    return penalty.unstated if said else penalty.added if given else 0.0


def _size_loss(penalty: Penalty, said: float, given: float) -> float:
    if not said or not given:
        return penalty.unstated if said else penalty.added if given else 0.0
    apart = abs(said - given) / max(said, given)
    if apart <= _SAME_SIZE or abs(said - given) <= _SAME_MM:
        return 0.0
    return penalty.partial if apart <= _NEAR_SIZE else penalty.conflict


def _change_loss(
    penalty: Penalty, said: Attributes, given: Attributes
) -> Iterator[_Difference]:
    """Yield an omitted or invented comparison; an opposite change is one omitted."""
    if said.change == given.change:
        return
    if said.change and given.change:
        # "Increased markings" may be no change, and then goes with "stable".
        if "same" not in (said.change, given.change) or not (said.weak or given.weak):
            yield _Difference(GreenCategory.OMITTED_CHANGE, penalty.conflict)
    elif said.change and not said.weak:
        loss = penalty.partial if said.change == "same" else penalty.unstated
        yield _Difference(GreenCategory.OMITTED_CHANGE, loss)
    elif given.change and not given.weak:
        loss = penalty.partial if given.change == "same" else penalty.added
        yield _Difference(GreenCategory.COMPARISON, loss)
