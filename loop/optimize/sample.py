"""Cases whose reading is probably worth most, drawn with chances that are known.

Of cases without a reference nobody knows which fail; what may tell is in `PARTS`. A
logistic regression of these parts, fitted on a development cohort that has a reference,
gives each case a probability to fail. The chance to be drawn goes with its square, so
that more failing cases are read than in a random sample, and a quarter of the sample is
spread evenly, so that every case can be drawn. With known chances what readers find is
still a share of the whole cohort; see `loop.evaluate.sampled`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import framed
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import UncertainAnswers, ValueCode
from loop.evaluate.align import Codes, in_order, read_codes
from loop.evaluate.inputs import Inputs, read_inputs
from loop.evaluate.measure import resampling_units
from loop.evaluate.plan import positives_wanted
from loop.evaluate.sampled import failing_rows, judged_labels
from loop.labels.cohort import (
    Cohort,
    CohortRole,
    has_texts,
    iter_items,
    list_cohorts,
    read_cohort,
    read_cohort_file,
    read_record,
    require_reports,
    single_report,
)
from loop.labels.taxonomy import Taxonomy
from loop.labels.value_sample import DrawnCase, ValueSample, keep_sample
from loop.prompts.catalog import read_version
from loop.review.queue.value import measure_nearness
from loop.review.reading.assignment import (
    PlanRequest,
    ReadingPlan,
    assign_cases,
    plan_cases,
    read_assignment,
)
from loop.run.store import RunRecord, Store, open_store
from loop.stats.confusion import Confusion, count_confusions
from loop.stats.weighted import draw_systematic, inclusion_chances

EVEN: Final = 0.25
"""Part of a sample that is spread evenly: no case has less than a quarter of the chance
that it has in a random sample, and no weight is more than four times a random one's."""

LEAST: Final = 5
"""Fewest development cases that fail, and that do not, to learn anything of."""

_SHARPNESS = 2
"""Power of the probability to fail that chances go with. One half gives a share with
the least variance and few failing cases, more gives more of them and wider limits."""

_PENALTY = 1.0
"""Inverse strength of the ridge penalty, of parts with a standard deviation of 1."""

_FOLDS = 5
_RULES = "rules"

PARTS: Final[Mapping[str, str]] = {
    "findings": "labels answered present",
    "hedged": "labels answered uncertain",
    "unanswered": "no readable answer",
    "length": "words of the text",
    "versions": "labels on which prompt versions differ",
    "engines": "labels on which models differ",
    "rules": "labels on which `rules` and a model differ",
    "repeats": "labels on which repeats of the run differ",
    "lacking": "labels answered present or uncertain that lack positives for the "
    "protocol, each by the share that is missing on the development cohort",
    "near": "labels answered present or uncertain that are near their gate there, each "
    "by one over the number of answers that decide it",
}
"""What can be known of a case without a reference, by name."""


class SamplePurpose(StrEnum):
    """What a sample is drawn for."""

    READING = "reading"
    """Readers label the cases blind, and the reference keeps their chances."""

    REVIEW = "review"
    """A list of cases to look at with the answers; nothing is kept."""


class PartWorth(NamedTuple):
    """What one part of the value was worth on the development cohort."""

    name: str
    """One of `PARTS`."""

    failing: float | None
    """Mean over the cases that fail there; None for a part that is not weighed."""

    others: float | None
    odds: float | None = None
    """Odds to fail for one standard deviation more, all other parts alike."""

    alone: float | None = None
    """How many times as many failing cases as at random, drawn by this part alone;
    cross-validated."""

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
    lift: float
    """How many times as many failing cases as at random a sample of that share of the
    development cohort finds; cross-validated."""

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
    chances = weighed.chances
    places = draw_systematic(chances, *_random(weighed.cohort, seed))
    return CaseSample(
        weighed=weighed,
        seed=seed,
        drawn=tuple(
            SampledCase(
                case_id=weighed.cohort.case_ids[place],
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
        missing, there is no development cohort to learn from, or too few of its cases
        fail.
    LedgerError, StoreError
        The ledger is broken, or the store cannot be read.
    """
    target = _open(workspace, cohort, size)
    with open_store(workspace) as store:
        runs = store.find_runs(finished=True)
        subject, versions = _choose_versions(workspace, runs, target, between)
        dev = _choose_dev(workspace, runs, subject, versions, target, fit_on)
        inputs = read_inputs(workspace, dev.subject.id)
        dev, here = _in_common(dev, _find_others(runs, subject, versions, target))
        taxonomy = inputs.taxonomy
        judged = judged_labels(inputs)
        weights = _label_weights(inputs, judged)
        learned = _measure(
            workspace, store, dev, inputs.pairs.case_ids, taxonomy, judged, weights
        )
        wanted = _measure(
            workspace, store, here, target.case_ids, taxonomy, judged, weights
        )
    truth = inputs.pairs.binary_reference
    answers = inputs.pairs.answers_as(inputs.protocol.policy)
    failing, scored = failing_rows(truth, answers, judged)
    _require_failing(failing, scored, inputs)
    known = {name: column[scored] for name, column in learned.items()}
    found = _learn(
        known,
        wanted,
        failing[scored],
        resampling_units(inputs.patients).units[scored],
        share=size / len(target.cases),
    )
    return WeighedCohort(
        cohort=target,
        size=size,
        run=subject.id,
        prompt=subject.spec.prompt,
        engine=subject.spec.engine,
        between=(*(one.spec.prompt for one in versions), subject.spec.prompt),
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


class _ComparedRuns(NamedTuple):
    """A run on one cohort, and the runs that it is held against."""

    cohort: Cohort
    subject: RunRecord
    versions: tuple[RunRecord, ...]
    models: tuple[RunRecord, ...]
    """Of the same version by another model, where the subject is by a model."""

    rules: tuple[RunRecord, ...]
    """Of the same version, where one of both is by `rules`."""

    repeats: tuple[RunRecord, ...]


class _Learned(NamedTuple):
    fails: NDArray[np.float64]
    """Probability of each case of the cohort to fail."""

    lift: float
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


def _on(
    runs: Sequence[RunRecord], cohort: Cohort, **spec: object
) -> Iterator[RunRecord]:
    """Yield the runs on all cases of a cohort with such a spec, newest first."""
    wanted = {"cohort": cohort.name, "cohort_digest": cohort.digest, **spec}
    for run in runs:
        fits = (getattr(run.spec, name) == value for name, value in wanted.items())
        if run.part is None and all(fits):
            yield run


def _choose_versions(
    workspace: WorkspacePaths,
    runs: Sequence[RunRecord],
    cohort: Cohort,
    between: Sequence[str],
) -> tuple[RunRecord, tuple[RunRecord, ...]]:
    """Return the run in question on a cohort, and those of the other versions."""
    if not between:
        newest = next(_on(runs, cohort, draw=0), None)
        if newest is None:
            raise DataError(
                f"no finished run asked all cases of cohort {cohort.name}: nothing is "
                "known of them. Run the version in question there with `ranloop run`."
            )
        return newest, ()
    digests = [read_version(workspace, ref).digest for ref in between]
    if len(set(digests)) < len(digests):
        raise DataError("a version is named twice. Name each version once.")
    subject = _require_run(runs, cohort, between[-1], digests[-1])
    engine = subject.spec.engine
    return subject, tuple(
        _require_run(runs, cohort, ref, digest, engine)
        for ref, digest in zip(between[:-1], digests[:-1], strict=True)
    )


def _require_run(
    runs: Sequence[RunRecord], cohort: Cohort, ref: str, digest: str, engine: str = ""
) -> RunRecord:
    only = {"engine": engine} if engine else {}
    found = next(_on(runs, cohort, prompt_digest=digest, draw=0, **only), None)
    if found is None:
        by = f" by {engine}" if engine else ""
        raise DataError(
            f"no finished run{by} of {ref} on all cases of cohort {cohort.name}. Make "
            f"one with `ranloop run {ref} --cohort {cohort.name}`."
        )
    return found


def _choose_dev(
    workspace: WorkspacePaths,
    runs: Sequence[RunRecord],
    subject: RunRecord,
    versions: Sequence[RunRecord],
    target: Cohort,
    named: str,
) -> _ComparedRuns:
    """Return the development cohort to learn from, with the same runs on it."""
    if named == target.name:
        raise DataError(
            f"cohort {named} cannot tell how much its own cases are worth. Name "
            "another development cohort with --fit-on."
        )
    names = [named] if named else _list_dev(workspace, runs, subject, target)
    if len(names) != 1:
        found = f" ({', '.join(names)})" if names else ""
        raise DataError(
            f"{len(names)} cohorts with role dev, a reference and a run of "
            f"{subject.spec.prompt} by {subject.spec.engine} can tell which cases "
            f"fail{found}. Name one with --fit-on, or make such a run with "
            "`ranloop run`."
        )
    (name,) = names
    if read_cohort_file(workspace, name).role is not CohortRole.DEV:
        raise DataError(
            f"cohort {name} has not the role dev: prompts, and what is learned of "
            "them, rest on development cohorts only. Name one with --fit-on."
        )
    cohort = read_cohort(workspace, name)
    spec = subject.spec
    own = _require_run(runs, cohort, spec.prompt, spec.prompt_digest, spec.engine)
    others = [
        _require_run(runs, cohort, one.spec.prompt, one.spec.prompt_digest, spec.engine)
        for one in versions
    ]
    return _find_others(runs, own, others, cohort)


def _list_dev(
    workspace: WorkspacePaths,
    runs: Sequence[RunRecord],
    subject: RunRecord,
    target: Cohort,
) -> list[str]:
    """Return the other development cohorts with a reference and a run as `subject`."""
    asked = {
        run.spec.cohort
        for run in runs
        if (run.spec.prompt_digest, run.spec.engine)
        == (subject.spec.prompt_digest, subject.spec.engine)
    }
    return [
        name
        for name in list_cohorts(workspace)
        if name in asked - {target.name}
        and read_cohort_file(workspace, name).role is CohortRole.DEV
        and read_record(workspace, name).references
    ]


def _find_others(
    runs: Sequence[RunRecord],
    subject: RunRecord,
    versions: Sequence[RunRecord],
    cohort: Cohort,
) -> _ComparedRuns:
    spec = subject.spec
    by_engine: dict[str, RunRecord] = {}
    for run in _on(runs, cohort, prompt_digest=spec.prompt_digest, draw=0):
        if not run.spec.engine.startswith("replay:"):
            by_engine.setdefault(run.spec.engine, run)
    others = [run for name, run in sorted(by_engine.items()) if name != spec.engine]
    against = [(spec.engine == _RULES) != (run.spec.engine == _RULES) for run in others]
    repeats: dict[int, RunRecord] = {}
    same = {"prompt_digest": spec.prompt_digest, "engine": spec.engine}
    for run in _on(runs, cohort, **same):
        if run.spec.draw != spec.draw:
            repeats.setdefault(run.spec.draw, run)
    return _ComparedRuns(
        cohort=cohort,
        subject=subject,
        versions=tuple(versions),
        models=tuple(r for r, odd in zip(others, against, strict=True) if not odd),
        rules=tuple(r for r, odd in zip(others, against, strict=True) if odd),
        repeats=tuple(repeats[draw] for draw in sorted(repeats)),
    )


def _in_common(
    dev: _ComparedRuns, here: _ComparedRuns
) -> tuple[_ComparedRuns, _ComparedRuns]:
    """Return both with the engines and draws that were asked on both cohorts."""

    def kept(one: _ComparedRuns, other: _ComparedRuns) -> _ComparedRuns:
        models, rules = (
            tuple(r for r in mine if r.spec.engine in {t.spec.engine for t in theirs})
            for mine, theirs in ((one.models, other.models), (one.rules, other.rules))
        )
        draws = {run.spec.draw for run in other.repeats}
        repeats = tuple(run for run in one.repeats if run.spec.draw in draws)
        return one._replace(models=models, rules=rules, repeats=repeats)

    return kept(dev, here), kept(here, dev)


def _label_weights(
    inputs: Inputs, judged: NDArray[np.bool_]
) -> Mapping[str, NDArray[np.float64]]:
    """Return for each judged label what it lacks, and how near its gate it is."""
    protocol = inputs.protocol
    tables = count_confusions(
        inputs.pairs.binary_reference, inputs.pairs.answers_as(protocol.policy)
    )[judged]
    counts = [Confusion(*map(int, row)) for row in tables]
    wanted = positives_wanted(protocol, len(counts))
    gates = [measure_nearness(one, protocol) for one in counts]
    return {
        "lacking": np.array([max(wanted - c.positives, 0) / wanted for c in counts]),
        "near": np.array([1 / gate.answers if gate else 0.0 for gate in gates]),
    }


def _measure(
    workspace: WorkspacePaths,
    store: Store,
    compared: _ComparedRuns,
    case_ids: tuple[str, ...],
    taxonomy: Taxonomy,
    judged: NDArray[np.bool_],
    weights: Mapping[str, NDArray[np.float64]],
) -> dict[str, NDArray[np.float64]]:
    """Return the parts that can be known of each case; the others are missing."""

    def read(runs: Sequence[RunRecord]) -> list[Codes]:
        return [
            in_order(read_codes(store, run, taxonomy), case_ids)[:, judged]
            for run in runs
        ]

    (own,) = read([compared.subject])
    named = np.isin(own, (ValueCode.PRESENT, ValueCode.UNCERTAIN))
    parts: dict[str, NDArray[Any]] = {
        "findings": (own == ValueCode.PRESENT).sum(axis=1),
        "hedged": (own == ValueCode.UNCERTAIN).sum(axis=1),
        "unanswered": np.all(own < ValueCode.UNCERTAIN, axis=1).astype(int),
    }
    if has_texts(workspace, compared.cohort.name):
        words = {
            item.id: len(single_report(item).split())
            for item in iter_items(workspace, compared.cohort)
        }
        parts["length"] = np.array([words[case_id] for case_id in case_ids])
    for name, runs in (
        ("versions", compared.versions),
        ("engines", compared.models),
        ("rules", compared.rules),
        ("repeats", compared.repeats),
    ):
        if runs:
            others = np.stack(read(runs))
            answered = np.minimum(others, own) >= ValueCode.UNCERTAIN
            parts[name] = (answered & (others != own)).any(axis=0).sum(axis=1)
    for name, worth in weights.items():
        parts[name] = named @ worth
    return {name: np.asarray(column, dtype=float) for name, column in parts.items()}


def _require_failing(
    failing: NDArray[np.bool_], scored: NDArray[np.bool_], inputs: Inputs
) -> None:
    fails, rest = int(failing.sum()), int((scored & ~failing).sum())
    if min(fails, rest) < LEAST:
        raise DataError(
            f"of cohort {inputs.cohort.name}, {fails} cases fail with "
            f"{inputs.run.prompt} and {rest} do not: at least {LEAST} of each are "
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

    def lift(columns: Sequence[int]) -> float:
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
            odds=float(np.exp(model.coef_[0, place])),
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
