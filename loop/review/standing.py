"""Which of several verdicts on the same case and label still stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from loop.review.record import VerdictContext
from loop.review.verdict import Verdict

Pair = tuple[str, str]
"""Case id and label."""


class SubmittedVerdict(NamedTuple):
    """One verdict as it was given."""

    id: str
    created: str
    """UTC, ISO 8601."""

    verdict: Verdict
    circumstances: VerdictContext

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """What it judges; empty for a verdict on the guide as such."""
        return tuple((case_id, self.verdict.label) for case_id in self.verdict.case_ids)

    @property
    def batch(self) -> tuple[str, str]:
        """What it was handed in with: verdicts of one file stand beside each other."""
        return self.created, self.circumstances.source


class RemainingPairs(NamedTuple):
    """What is left of a verdict after the later ones of the same reviewer."""

    pairs: tuple[Pair, ...]
    """What it still speaks for."""

    superseded_by: str
    """Id of the verdict that took its last pair; empty while it stands."""


def find_standing(
    given: Sequence[SubmittedVerdict], withdrawn: Collection[str]
) -> Mapping[str, RemainingPairs]:
    """Return what each verdict still speaks for, by id.

    A later verdict of the same reviewer on a pair takes it over, unless both came in
    one batch: a file may correct the reference and the wording of one case. A
    withdrawn verdict takes nothing over, so withdrawing gives back what it had taken.
    A verdict without cases is never superseded.

    Parameters
    ----------
    given
        Verdicts of one cohort, oldest first.
    withdrawn
        Ids of those that were withdrawn.
    """
    latest: dict[tuple[str, Pair], SubmittedVerdict] = {}
    found: dict[str, RemainingPairs] = {}
    for one in reversed(given):
        reviewer, left, by = one.verdict.reviewer, [], ""
        for pair in one.pairs:
            later = latest.get((reviewer, pair))
            if later is None or later.batch == one.batch:
                left.append(pair)
            else:
                by = later.id
        found[one.id] = RemainingPairs(tuple(left), "" if left else by)
        if one.id not in withdrawn:
            for pair in left:
                latest.setdefault((reviewer, pair), one)
    return found


def find_conflicts(
    open_: Sequence[tuple[SubmittedVerdict, RemainingPairs]],
) -> Mapping[str, tuple[str, ...]]:
    """Return the ids of verdicts of other reviewers that disagree with each, by id.

    Two verdicts on one pair disagree when their judgements differ, or both name a
    correct value and the values differ.
    """
    by_pair: dict[Pair, list[SubmittedVerdict]] = defaultdict(list)
    for one, standing in open_:
        for pair in standing.pairs:
            by_pair[pair].append(one)
    against: dict[str, dict[str, None]] = defaultdict(dict)
    for together in by_pair.values():
        for one in together if len(together) > 1 else ():
            others = (o.id for o in together if _disagree(one.verdict, o.verdict))
            against[one.id].update(dict.fromkeys(others))
    return {key: tuple(others) for key, others in against.items() if others}


def _disagree(one: Verdict, other: Verdict) -> bool:
    if one.reviewer == other.reviewer:
        return False
    values = {one.correct_value, other.correct_value} - {None}
    return one.judgement is not other.judgement or len(values) > 1
