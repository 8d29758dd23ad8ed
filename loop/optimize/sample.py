"""Cases whose reading is probably worth most, drawn with chances that are known.

Of cases without a reference nobody knows which fail; what may tell is in
`loop.optimize.unread`. A logistic regression of it, fitted on a development cohort that
has a reference, gives each case a probability to fail. The chance to be drawn goes with
its square, so that more failing cases are read than in a random sample, and a quarter
of the sample is spread evenly, so that every case can be drawn. With known chances what
readers find is still a share of the whole cohort; see `loop.evaluate.sampled`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import framed
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import UncertainAnswers
from loop.evaluate.inputs import Inputs, read_inputs
from loop.evaluate.measure import Clusters, resampling_units
from loop.evaluate.sampled import failing_rows, judged_labels
from loop.labels.cohort import Cohort, read_cohort, read_record, require_reports
from loop.labels.named_samples import ReviewSample, keep_review_sample
from loop.labels.value_sample import DrawnCase, ValueSample, keep_sample
from loop.optimize.unread import PARTS, choose_runs, label_weights, measure_parts
from loop.review.reading.assignment import (
    PlanRequest,
    ReadingPlan,
    assign_cases,
    plan_cases,
    read_assignment,
)
from loop.run.store import open_store
from loop.stats.weighted import draw_systematic, inclusion_chances

EVEN: Final = 0.25
"""Part of a sample that is spread evenly: no case has less than a quarter of the chance
that it has in a random sample, and no weight is more than four times a random one's."""

LEAST: Final = 5
"""Fewest patients with development cases that fail, and with others, to learn anything
of; a case without a known patient counts as one."""

_SHARPNESS = 2
"""Power of the probability to fail that chances go with. One half gives a share with
the least variance and few failing cases, more gives more of them and wider limits."""

_PENALTY = 1.0
"""Inverse strength of the ridge penalty, of parts with a standard deviation of 1."""

_FOLDS = 5


class SamplePurpose(StrEnum):
    """What a sample is drawn for."""

    READING = "reading"
    """Readers label the cases blind, and the reference keeps their chances."""

    REVIEW = "review"
    """A list of cases to look at with the answers; kept where it gets a name."""


class PartWorth(NamedTuple):
    """What one part of the value was worth on the development cohort."""

    name: str
    """One of `PARTS`."""

    failing: float | None
    """Mean over the cases that fail there; None for a part that is not weighed."""

    others: float | None
    odds_ratio: float | None = None
    """Of failing, for one standard deviation of log(1 + value), with the other parts
    held fixed."""

    alone: float | None = None
    """How many times as many failing cases as at random, drawn by this part alone;
    cross-validated. None as for `WeighedCohort.lift`."""

    without: float | None = None
    """The same of all parts but this one."""

    note: str = ""
    """Why it is not weighed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCase:
    """One drawn case; ids and numbers, no text."""

    case_id: str
    chance: float
    """With which it was drawn, in (0, 1]."""

    fails: float
    """Probability to fail, by the model."""

    parts: Mapping[str, float]
    """What was weighed of it, by the names of `PARTS`."""

    @property
    def weight(self) -> float:
        """For how many cases of the cohort it stands."""
        return 1 / self.chance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeighedCohort:
    """All cases of a cohort by what reading them is probably worth."""

    cohort: Cohort
    size: int
    """Cases that are to be drawn."""

    run: str
    """Run whose answers are to be read or reviewed."""

    prompt: str
    engine: str
    between: tuple[str, ...]
    """Versions whose answers were compared, the one in question last."""

    fitted_on: str
    policy: UncertainAnswers
    """What an uncertain answer counts as: it decides which cases fail there."""

    dev_cases: int
    """Cases of the development cohort with a scored label."""

    dev_failing: int
    lift: float | None
    """How many times as many failing cases as at random a sample of that share of the
    development cohort finds; cross-validated. None where the patients cannot be split
    so that each training part has failing cases and others."""

    parts: tuple[PartWorth, ...]
    """In the order of `PARTS`."""

    fails: NDArray[np.float64]
    """Probability of each case to fail, by the model, in the order of the cohort."""

    chances: NDArray[np.float64]
    """Chance of each case to be drawn, in (0, 1]; they add up to `size`."""

    values: Mapping[str, NDArray[np.float64]]
    """Each part that is weighed, of every case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSample:
    """Cases drawn by what reading them is probably worth."""

    weighed: WeighedCohort
    seed: int
    drawn: tuple[SampledCase, ...]
    """The likeliest to be drawn first, then as in the cohort."""


def draw_cases(
    workspace: WorkspacePaths,
    cohort: str,
    *,
    size: int,
    between: Sequence[str] = (),
    fit_on: str = "",
    seed: int = 1,
) -> CaseSample:
    """Draw cases of a cohort by what reading them is probably worth; keep nothing.

    The same as `draw_weighed` of `weigh_cases`, with their parameters and errors.
    """
    weighed = weigh_cases(workspace, cohort, size=size, between=between, fit_on=fit_on)
    return draw_weighed(weighed, seed=seed)


def draw_weighed(weighed: WeighedCohort, *, seed: int) -> CaseSample:
    """Draw cases of a weighed cohort.

    The draw is a randomised systematic sample of fixed size: each case is in it with
    exactly the chance that it carries. Cohort, chances and seed decide it.
    """
    chances, ids = weighed.chances, weighed.cohort.case_ids
    places = draw_systematic(chances, *_random(weighed.cohort, seed))
    return CaseSample(
        weighed=weighed,
        seed=seed,
        drawn=tuple(
            SampledCase(
                case_id=ids[place],
                chance=float(chances[place]),
                fails=float(weighed.fails[place]),
                parts={n: float(column[place]) for n, column in weighed.values.items()},
            )
            for place in sorted(places.tolist(), key=lambda one: (-chances[one], one))
        ),
    )


def weigh_cases(
    workspace: WorkspacePaths,
    cohort: str,
    *,
    size: int,
    between: Sequence[str] = (),
    fit_on: str = "",
) -> WeighedCohort:
    """Return with which chance each case of a cohort is to be drawn, and why.

    Parameters
    ----------
    cohort
        No holdout. A reference is neither needed nor looked at.
    size
        From 1 to the cases of the cohort.
    between
        Prompt versions whose answers are compared, the one in question last; empty:
        that of the newest run on the cohort. Each has a run on both cohorts.
    fit_on
        Development cohort with a reference; empty: the only one with such runs.

    Raises
    ------
    DataError
        The cohort is a holdout or holds pairs, `size` does not fit it, a run is
        missing, there is no development cohort to learn from, or its failing cases are
        of too few patients.
    LedgerError, StoreError
        The ledger is broken, or the store cannot be read.
    """
    target = _open(workspace, cohort, size)
    with open_store(workspace) as store:
        here, dev = choose_runs(
            workspace, store, target, between=between, fit_on=fit_on
        )
        inputs = read_inputs(workspace, dev.subject.id)
        judged = judged_labels(inputs)
        weights = label_weights(inputs, judged)
        learned, wanted = (
            measure_parts(workspace, store, one, ids, inputs.taxonomy, judged, weights)
            for one, ids in ((dev, inputs.pairs.case_ids), (here, target.case_ids))
        )
    truth = inputs.pairs.binary_reference
    answers = inputs.pairs.answers_as(inputs.protocol.policy)
    failing, scored = failing_rows(truth, answers, judged)
    units = resampling_units(inputs.patients)
    _require_failing(failing, scored, units, inputs)
    known = {name: column[scored] for name, column in learned.items()}
    found = _learn(
        known,
        wanted,
        failing[scored],
        units.units[scored],
        share=size / len(target.cases),
    )
    return WeighedCohort(
        cohort=target,
        size=size,
        run=here.subject.id,
        prompt=here.subject.spec.prompt,
        engine=here.subject.spec.engine,
        between=tuple(r.spec.prompt for r in (*here.versions, here.subject)),
        fitted_on=dev.cohort.name,
        policy=inputs.protocol.policy,
        dev_cases=int(scored.sum()),
        dev_failing=int(failing.sum()),
        lift=found.lift,
        parts=found.parts,
        fails=found.fails,
        chances=inclusion_chances(found.fails**_SHARPNESS, size, even=EVEN),
        values={one.name: wanted[one.name] for one in found.parts if not one.note},
    )


def keep_reading_sample(
    workspace: WorkspacePaths,
    found: CaseSample,
    *,
    actor: Actor,
    readers: Sequence[str] = (),
    overlap: int | None = None,
    replace: bool = False,
) -> tuple[int, tuple[ReadingPlan, ...]]:
    """Record a drawn sample for reading, and give its cases to readers.

    Return its number in the cohort and the plans. From now on a reference that decides
    these cases, and not all of the cohort, is one of this sample.

    Parameters
    ----------
    readers
        Who reads them; empty: nobody yet, see `ranloop reading assign --sample`.
    overlap
        How many of the cases all of them share, the others are dealt out; what cannot
        be dealt out evenly is shared as well. None: all.
    replace
        Whether it may take the place of another sample that was recorded.

    Raises
    ------
    DataError
        The cohort changed since, another sample was recorded and `replace` is not set,
        or the cases cannot be dealt out so; nothing was changed.
    LedgerError, StoreError, WriteError
        The ledger is broken, or the workspace cannot be written.
    """
    weighed = found.weighed
    assignment = read_assignment(workspace, weighed.cohort.name)
    if assignment.cohort.digest != weighed.cohort.digest:
        raise DataError(
            f"cohort {weighed.cohort.name} holds other cases than were drawn from. "
            "Draw again."
        )
    chances = {one.case_id: one.chance for one in found.drawn}
    sample = ValueSample(
        cohort=weighed.cohort.name,
        cohort_digest=weighed.cohort.digest,
        population=len(weighed.cohort.cases),
        seed=found.seed,
        even=EVEN,
        run=weighed.run,
        between=weighed.between,
        fitted_on=weighed.fitted_on,
        drawn=tuple(
            DrawnCase(case_id=case_id, chance=chances[case_id])
            for case_id in assignment.cohort.case_ids
            if case_id in chances
        ),
    )
    wanted = _deal(readers, overlap, sample)
    if readers:
        # Before anything is kept: what cannot be dealt out is refused here.
        plan_cases(assignment, wanted)
    number = keep_sample(
        workspace, assignment.cohort, sample, actor=actor, replace=replace
    )
    if not readers:
        return number, ()
    with open_store(workspace) as store:
        return number, assign_cases(store, assignment, wanted, actor)


def keep_drawn_list(
    workspace: WorkspacePaths, found: CaseSample, name: str, *, actor: Actor
) -> None:
    """Keep a drawn sample for review under a name, as a filter of the page Review.

    Raises
    ------
    DataError
        The name cannot be used, or other cases of the cohort have it.
    WriteError
        The workspace cannot be written.
    """
    cohort = found.weighed.cohort
    sample = ReviewSample(
        name=name,
        cohort=cohort.name,
        cohort_digest=cohort.digest,
        run=found.weighed.run,
        seed=found.seed,
        by=actor.name,
        case_ids=tuple(one.case_id for one in found.drawn),
    )
    keep_review_sample(workspace, sample)


def _deal(
    readers: Sequence[str], overlap: int | None, sample: ValueSample
) -> PlanRequest:
    cases, shared = len(sample.drawn), overlap
    if overlap is not None and 0 <= overlap <= cases and readers:
        own, rest = divmod(cases - overlap, len(readers))
        shared = overlap + rest
        cases = shared + own
    return PlanRequest(
        readers=tuple(readers),
        cases=cases,
        overlap=shared,
        among=tuple(sample.chances),
        chances=tuple(sample.chances.values()),
    )


class _Learned(NamedTuple):
    fails: NDArray[np.float64]
    """Probability of each case of the cohort to fail."""

    lift: float | None
    parts: tuple[PartWorth, ...]


def _open(workspace: WorkspacePaths, name: str, size: int) -> Cohort:
    """Return the cohort, if so many of its cases may be drawn."""
    if read_record(workspace, name).is_holdout:
        raise DataError(
            f"cohort {name} is a holdout: its labels decide a release, and gates count "
            "cases as drawn at random, not as chosen by the answers of a version. Read "
            "all of it, or give cases at random with `ranloop reading assign`."
        )
    cohort = read_cohort(workspace, name)
    require_reports(cohort, "a value sample")
    if not 1 <= size <= len(cohort.cases):
        raise DataError(
            f"{size} cases cannot be drawn: cohort {name} has {len(cohort.cases)}. Ask "
            f"for 1 to {len(cohort.cases)}."
        )
    return cohort


def _require_failing(
    failing: NDArray[np.bool_],
    scored: NDArray[np.bool_],
    units: Clusters,
    inputs: Inputs,
) -> None:
    fails, rest = (
        len(np.unique(units.units[rows])) for rows in (failing, scored & ~failing)
    )
    if min(fails, rest) >= LEAST:
        return
    found = f"{fails} cases fail with {inputs.run.prompt} and {rest} do not"
    if units.known:
        found = (
            f"cases of {counted(fails, 'patient')} fail with {inputs.run.prompt} and "
            f"cases of {rest} do not"
        )
    raise DataError(
        f"of cohort {inputs.cohort.name}, {found}: at least {LEAST} of each are "
        "needed to learn which do. Name another development cohort with --fit-on, "
        "or give cases at random with `ranloop reading assign --cases N`."
    )


def _learn(
    known: Mapping[str, NDArray[np.float64]],
    wanted: Mapping[str, NDArray[np.float64]],
    failing: NDArray[np.bool_],
    units: NDArray[np.int64],
    *,
    share: float,
) -> _Learned:
    """Fit the model on `known`, and say what each of its parts is worth there.

    Parameters
    ----------
    known, wanted
        Parts of the development cases, and of those to draw from.
    units
        Unit of each development case: none is in two folds.
    share
        Of the cohort that is drawn.
    """
    notes = {name: _why_not(name, known, wanted) for name in PARTS}
    weighed = [name for name in PARTS if not notes[name]]
    if not weighed:
        raise DataError("no part of the value differs between the development cases.")
    design = np.column_stack([np.log1p(known[name]) for name in weighed])
    drawn = np.column_stack([np.log1p(wanted[name]) for name in weighed])
    center, scale = design.mean(axis=0), design.std(axis=0)
    design, drawn = (design - center) / scale, (drawn - center) / scale
    folds = _split(failing, units)
    # Failing cases of few patients can meet in one fold: the others teach nothing.
    taught = all(np.unique(failing[folds != one]).size > 1 for one in np.unique(folds))

    def lift(columns: Sequence[int]) -> float | None:
        if not taught:
            return None
        chosen = design[:, columns]
        guess = np.empty(len(failing))
        for fold in np.unique(folds):
            out = folds == fold
            guess[out] = _fit(chosen[~out], failing[~out]).predict_proba(chosen[out])[
                :, 1
            ]
        size = max(1, round(share * len(failing)))
        chances = inclusion_chances(guess**_SHARPNESS, size, even=EVEN)
        return float(chances[failing].sum() / (size * failing.mean()))

    every = list(range(len(weighed)))
    model = _fit(design, failing)
    worth = {}
    for place, name in enumerate(weighed):
        rest = [other for other in every if other != place]
        worth[name] = PartWorth(
            name=name,
            failing=float(known[name][failing].mean()),
            others=float(known[name][~failing].mean()),
            odds_ratio=float(np.exp(model.coef_[0, place])),
            alone=lift([place]),
            without=lift(rest) if rest else None,
        )
    return _Learned(
        fails=model.predict_proba(drawn)[:, 1],
        lift=lift(every),
        parts=tuple(
            worth.get(name) or PartWorth(name, None, None, note=notes[name])
            for name in PARTS
        ),
    )


def _why_not(
    name: str,
    known: Mapping[str, NDArray[np.float64]],
    wanted: Mapping[str, NDArray[np.float64]],
) -> str:
    """Return why a part is not weighed; empty for one that is."""
    if name not in known and name not in wanted:
        return "nothing to compare with"
    if name not in known or name not in wanted:
        side = "the development cohort" if name not in known else "the cohort"
        return f"not known of {side}"
    if np.ptp(known[name]) == 0:
        return "the same in every development case"
    return ""


def _split(failing: NDArray[np.bool_], units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fold of each case: failing ones spread, no unit in two folds."""
    from sklearn.model_selection import StratifiedGroupKFold

    folds = np.zeros(len(failing), dtype=np.int64)
    cut = StratifiedGroupKFold(n_splits=_FOLDS, shuffle=True, random_state=0)
    for number, (_, out) in enumerate(cut.split(folds, failing, units)):
        folds[out] = number
    return folds


def _fit(design: NDArray[np.float64], failing: NDArray[np.bool_]) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=_PENALTY, solver="newton-cholesky").fit(design, failing)


def _random(cohort: Cohort, seed: int) -> tuple[NDArray[np.int64], float]:
    """Return a random order of the cases and a number in [0, 1); the same anywhere."""
    begin = framed(["value sample", cohort.digest, str(seed)])

    def draw(words: str) -> bytes:
        return hashlib.sha256(begin + framed([words])).digest()

    keys = [draw(f"case {case_id}") for case_id in cohort.case_ids]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
    # 53 bits: more would round up to 1.
    return order, (int.from_bytes(draw("start")[:8], "big") >> 11) / 2**53
