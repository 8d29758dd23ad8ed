"""What a judge says of one pair, and the verdicts that a clinician gives on it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.records import Entry, ErrorWeight, Span, Status
from loop.core.safe_text import quoted
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.judged import (
    INSIGNIFICANT,
    MATCHED,
    OWN_SCORE,
    SIGNIFICANT,
    error_field,
)
from loop.prompts.version import PromptVersion
from loop.review.verdict import Edits, ErrorVerdict, Judgement, Verdict
from loop.run.store import RunRecord, Store


class ListedError(NamedTuple):
    """One error that a judge lists."""

    category: str
    weight: ErrorWeight
    """`SIGNIFICANT` too where the judge does not weigh errors."""

    words: str
    """Of the judge; empty where it counts more errors than it lists."""

    spans: tuple[Span, ...] = ()
    """Where its words stand in the two texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """What a judge says of one pair."""

    case_id: str
    status: Status
    problem: str
    """Why there is no readable answer; empty where there is one."""

    errors: tuple[ListedError, ...] = ()
    """By category, in the order of the prompt; the significant ones first."""

    matched: tuple[Entry, ...] = ()
    matches: int | None = None
    """Matched findings as counted; None where the answer says nothing of them."""

    own: float | None = None
    """The score that the judge gives itself, 0 to 1."""


def read_judged(
    store: Store, run: RunRecord, version: PromptVersion, case_id: str
) -> JudgedAnswer:
    """Return what a run's judge says of a pair.

    Raises
    ------
    DataError
        The run did not ask the pair.
    StoreError
        The store cannot be read.
    """
    stored = store.find_outcome(run, case_id)
    if stored is None:
        raise DataError(
            f"run {run.id} did not ask pair {quoted(case_id)}. Choose another pair, or "
            "run the judge on the whole cohort."
        )
    outcome = stored.outcome
    fields = outcome.fields
    # What else a judge is asked about, phrases for one, is no category of errors.
    counts = get_contract(version.contract).counts_errors
    errors = [
        one
        for category in (version.labels if counts else ())
        for weight in ("", SIGNIFICANT, INSIGNIFICANT)
        if (found := fields.get(error_field(category, weight))) is not None
        for one in _listed(category, weight, found.value, found.entries)
    ]
    matched, own = fields.get(MATCHED), fields.get(OWN_SCORE)
    return JudgedAnswer(
        case_id=case_id,
        status=outcome.status,
        problem=outcome.problem,
        errors=tuple(errors),
        matched=matched.entries if matched else (),
        matches=int(matched.value) if matched else None,
        own=float(own.value) if own else None,
    )


def _listed(
    category: str, weight: str, count: object, entries: Sequence[Entry]
) -> Iterator[ListedError]:
    known = ErrorWeight(weight or SIGNIFICANT)
    for one in entries:
        yield ListedError(category, known, one.words, one.spans)
    if isinstance(count, int):
        for _ in range(count - len(entries)):
            yield ListedError(category, known, "")


class MissedError(NamedTuple):
    """One error that a judge does not list, and a clinician sees."""

    category: str
    weight: ErrorWeight
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """What a clinician says of a judge's answer about one pair."""

    right: Mapping[int, ErrorWeight] = field(default_factory=dict)
    """How a listed error should be weighed, by its place among `JudgedAnswer.errors`;
    one that is left out is right."""

    missed: tuple[MissedError, ...] = ()
    """Also an error that belongs to another category than the judge says."""

    judgement: Judgement = Judgement.MODEL_WRONG
    """Of every category in which something is wrong."""

    edits: Mapping[str, Edits] = field(default_factory=dict)
    """Wording asked for, by category."""

    comment: str = ""
    anchor: bool = False


def name_verdicts(
    answer: JudgedAnswer,
    said: PairVerdict,
    reviewer: str,
    *,
    earlier: Collection[str] = (),
) -> tuple[Verdict, ...]:
    """Return the verdicts that `said` amounts to: one a category, to be kept together.

    A category in which everything listed is right, or which the reviewer called wrong
    earlier, is recorded as right; one of which neither the judge nor the clinician
    says anything has no verdict. So there is none where the judge rightly lists no
    error.

    Parameters
    ----------
    earlier
        Categories on which the reviewer has open verdicts about this pair.

    Raises
    ------
    DataError
        A place is none of the answer's.
    """
    unknown = [place for place in said.right if not 0 <= place < len(answer.errors)]
    if unknown:
        raise DataError(
            "the judge's answer lists fewer errors than were judged. Open the pair "
            "again."
        )
    by_category = _by_category(answer, said)
    asked = dict.fromkeys((*by_category, *said.edits, *earlier))
    verdicts = tuple(
        _verdict(answer.case_id, name, by_category.get(name, ()), said, reviewer)
        for name in asked
    )
    return verdicts


def _by_category(
    answer: JudgedAnswer, said: PairVerdict
) -> dict[str, tuple[ErrorVerdict, ...]]:
    found: dict[str, list[ErrorVerdict]] = {}
    for place, one in enumerate(answer.errors):
        right = said.right.get(place, one.weight)
        found.setdefault(one.category, []).append(
            ErrorVerdict(words=one.words, said=one.weight, right=right)
        )
    for missed in said.missed:
        found.setdefault(missed.category, []).append(
            ErrorVerdict(
                words=missed.words, said=ErrorWeight.NO_ERROR, right=missed.weight
            )
        )
    return {name: tuple(errors) for name, errors in found.items()}


def _verdict(
    case_id: str,
    category: str,
    errors: Iterable[ErrorVerdict],
    said: PairVerdict,
    reviewer: str,
) -> Verdict:
    listed = tuple(errors)
    edits = said.edits.get(category, Edits())
    wrong = any(one.said is not one.right for one in listed)
    if not (wrong or edits):
        return Verdict(
            label=category,
            judgement=Judgement.ANSWER_RIGHT,
            case_ids=(case_id,),
            reviewer=reviewer,
            comment=said.comment,
        )
    return Verdict(
        label=category,
        judgement=said.judgement,
        case_ids=(case_id,),
        edits=edits,
        errors=listed,
        reviewer=reviewer,
        comment=said.comment,
        anchor=said.anchor,
    )
