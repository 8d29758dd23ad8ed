"""Ensembles of judges and metrics on texts: fitted on a cohort, applied to pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_text
from loop.core.errors import DataError, OverlapError
from loop.core.files import write_atomic
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import format_csv, quoted, shielded
from loop.judge.counts import find_score
from loop.judge.ensemble import (
    EnsembleMethod,
    MemberScores,
    evaluate_out_of_fold,
    fit_ensemble,
)
from loop.judge.ensemble_versions import (
    Ensemble,
    EnsembleVersion,
    FittedOn,
    Folded,
    MemberPin,
    apply_ensemble,
    fit_order,
    keep_ensemble,
    make_ensemble,
    read_ensemble,
)
from loop.judge.judge_evaluation import rated_points
from loop.labels.cohort import (
    CONTEXT,
    Cohort,
    CohortRole,
    iter_items,
    list_cohorts,
    read_cohort,
)
from loop.labels.expert_ratings import read_ratings_of
from loop.labels.language import fold_text
from loop.labels.overlap import EXAMPLES, ForeignPairs, compare_pairs, quote_id
from loop.labels.pseudonyms import open_pseudonyms
from loop.release.graders import (
    GradedColumn,
    GradedTexts,
    Grader,
    GraderOptions,
    grade_texts,
    resolve_graders,
)
from loop.run.asking import EngineOptions
from loop.run.runner import Watch
from loop.score.metrics.base import Direction
from loop.score.records import Joined


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleOptions:
    """How an ensemble is fitted."""

    name: str = "ensemble"
    method: EnsembleMethod = EnsembleMethod.REGRESSION
    out_of_fold: bool = True
    """Whether to measure what it is worth on pairs that it was not fitted on."""

    folds: int = 5
    seed: int = 0
    resamples: int = 2000
    graders: GraderOptions = field(default_factory=GraderOptions)


def fit_cohort_ensemble(
    workspace: WorkspacePaths,
    cohort_name: str,
    members: Sequence[str],
    actor: Actor,
    options: EnsembleOptions | None = None,
    *,
    watch: Watch | None = None,
) -> EnsembleVersion:
    """Fit an ensemble on what raters say of a cohort; keep and record it.

    Parameters
    ----------
    cohort_name
        Cohort of pairs with experts' points, of role ``dev``.
    members
        As for `loop.release.graders.resolve_graders`.
    options
        None for the defaults.
    watch
        Wraps the pairs that judges are asked about.

    Raises
    ------
    DataError
        The cohort is of another role, has no pairs or no points, its texts are not
        here; or the members are no ensemble, see `loop.judge.ensemble.fit_ensemble`.
    EngineError
        An engine failed as a whole.
    """
    how = options or EnsembleOptions()
    cohort = read_cohort(workspace, cohort_name)
    if cohort.role is not CohortRole.DEV:
        raise DataError(
            f"cohort {cohort.name!r} is {cohort.role.value}, and to fit is to revise. "
            "Fit on a cohort of role dev, and measure the ensemble on this one."
        )
    given = read_ratings_of(workspace, cohort.name)
    points = rated_points(given)
    graders = resolve_graders(workspace, members)
    texts = _cohort_texts(workspace, cohort)
    columns = grade_texts(texts, workspace, graders, how.graders, watch)
    scores = _as_members(columns, points.consensus)
    names = np.array([one.patient or one.reference_id for one in cohort.cases])
    values = np.column_stack([one.values for one in scores])
    units, order = fit_order(names, points.consensus, values)
    fit = fit_ensemble(
        [_reordered(one, order) for one in scores],
        points.consensus[order],
        units[order],
        how.method,
    )
    results = None
    if how.out_of_fold:
        results = evaluate_out_of_fold(
            fit, folds=how.folds, seed=how.seed, resamples=how.resamples
        )
    rated = ~np.isnan(points.consensus)
    fitted_on = FittedOn(
        cohort=cohort.name,
        cohort_digest=cohort.digest,
        ratings=given.ref,
        ratings_digest=given.digest,
        raters=len(points.raters),
        scale=given.points().scale.words,
        rated=int(rated.sum()),
        pairs=int(fit.used.sum()),
        units=fit.n_units,
        unit="patient" if cohort.patients_known else "reference",
    )
    ensemble, rows = make_ensemble(
        Folded(fit, results),
        [one.pin for one in columns],
        fitted_on,
        [_text_digest(one) for one in texts.references],
    )
    return keep_ensemble(workspace, how.name, ensemble, rows, actor)


def _cohort_texts(workspace: WorkspacePaths, cohort: Cohort) -> GradedTexts:
    if not cohort.holds_pairs:
        raise DataError(
            f"cohort {cohort.name!r} holds single reports, and an ensemble is fitted "
            "on pairs that experts rated. Name a cohort of pairs; `ranloop cohort "
            "show` lists what cohorts hold."
        )
    items = tuple(iter_items(workspace, cohort))
    return GradedTexts(
        ids=cohort.case_ids,
        references=tuple(one.variables["reference"] for one in items),
        candidates=tuple(one.variables["candidate"] for one in items),
        languages=tuple(one.language for one in items),
        contexts=tuple(one.variables.get(CONTEXT, "") for one in items),
        patients=tuple(one.patient for one in cohort.cases),
        pseudonym_key=cohort.pseudonym_key,
    )


def _as_members(
    columns: Sequence[GradedColumn], ratings: NDArray[np.float64]
) -> list[MemberScores]:
    found = []
    for one in columns:
        if one.direction is Direction.NEITHER:
            raise DataError(
                f"{one.title} ({one.name}) describes a candidate and does not grade "
                "it. Leave it out of --members."
            )
        if len(one.values) != len(ratings):
            raise ValueError(f"need {len(ratings)} values of {one.name}")
        found.append(
            MemberScores(
                name=one.name,
                title=one.title,
                lower=one.direction is Direction.LOWER,
                values=one.values,
                score=one.pin.score,
            )
        )
    return found


def _reordered(one: MemberScores, order: NDArray[np.intp]) -> MemberScores:
    return MemberScores(
        name=one.name,
        title=one.title,
        lower=one.lower,
        values=one.values[order],
        score=one.score,
    )


def _text_digest(text: str) -> str:
    return digest_text(fold_text(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleScores:
    """What an ensemble says of pairs."""

    version: EnsembleVersion
    ids: tuple[str, ...]
    scores: NDArray[np.float64]
    """Shape ``(n_pairs,)``; NaN where a member has no readable answer."""

    members: Mapping[str, NDArray[np.float64]]
    """What each member says, in its own direction."""

    not_checked: tuple[str, ...] = ()
    """What of the overlap with the pairs it was fitted on could not be compared."""

    @property
    def missing(self) -> dict[str, int]:
        """Pairs of which each member says nothing."""
        return {name: int(np.isnan(one).sum()) for name, one in self.members.items()}


def score_ensemble(
    workspace: WorkspacePaths,
    ref: str,
    texts: GradedTexts,
    *,
    patients: Mapping[str, str] | None = None,
    asking: EngineOptions | None = None,
    watch: Watch | None = None,
) -> EnsembleScores:
    """Return what an ensemble says of pairs that it was not fitted on.

    Parameters
    ----------
    ref
        As for `loop.judge.ensemble_versions.read_ensemble`.
    patients
        Patient by id of the case, where known.
    asking
        How engines are asked; which ones, the version says.

    Raises
    ------
    OverlapError
        The pairs share a case, a patient or a reference with those it was fitted on.
    DataError
        There is no such ensemble, or a member is not today what it was.
    EngineError
        An engine failed as a whole.
    """
    version = read_ensemble(workspace, ref)
    skipped = _require_apart(workspace, version, texts, patients or {})
    if patients:
        keys = open_pseudonyms(workspace)
        owners = [patients.get(case, "") for case in texts.cases or texts.ids]
        texts = replace(
            texts,
            patients=tuple(keys.of(one) if one else "" for one in owners),
            pseudonym_key=keys.fingerprint,
        )
    columns = _ask_members(workspace, version, texts, asking or EngineOptions(), watch)
    _require_pinned(version, columns)
    members = {name: one.values for name, one in columns.items()}
    return EnsembleScores(
        version=version,
        ids=texts.ids,
        scores=apply_ensemble(version.ensemble, members),
        members=members,
        not_checked=skipped,
    )


def _ask_members(
    workspace: WorkspacePaths,
    version: EnsembleVersion,
    texts: GradedTexts,
    asking: EngineOptions,
    watch: Watch | None,
) -> dict[str, GradedColumn]:
    """Return what each member says, each asked as it was pinned."""
    found: dict[str, GradedColumn] = {}
    by_reader: dict[_LabelReader, list[str]] = {}
    pins = {one.name: one.pin for one in version.ensemble.members}
    for name, pin in pins.items():
        reader = _LabelReader(None, None, None)
        if pin.labels_by:
            version_named = None if pin.release else pin.labels_by
            reader = _LabelReader(version_named, pin.release or None, pin.engine)
        by_reader.setdefault(reader, []).append(name)
    for reader, names in by_reader.items():
        options = GraderOptions(
            asking=asking,
            labels_by=reader.version,
            labels_release=reader.release,
            labels_engine=reader.engine,
        )
        graders = [_grader(name, pins[name]) for name in names]
        columns = grade_texts(texts, workspace, graders, options, watch)
        found |= dict(zip(names, columns, strict=True))
    return {name: found[name] for name in pins}


class _LabelReader(NamedTuple):
    """What reads labels for some members; None where they need none."""

    version: str | None
    release: str | None
    engine: str | None


def _grader(name: str, pin: MemberPin) -> Grader:
    if pin.metric:
        return Grader(name, metric=pin.metric)
    return Grader(
        name, judge=pin.judge, scores=(find_score(pin.score),), engine=pin.engine
    )


def _require_pinned(
    version: EnsembleVersion, columns: Mapping[str, GradedColumn]
) -> None:
    """Refuse a member that is another one today."""
    for one in version.ensemble.members:
        now, then = columns[one.name].pin, one.pin
        for what, words in _PINNED.items():
            was, is_now = str(getattr(then, what)), str(getattr(now, what))
            if was != is_now:
                raise DataError(
                    f"member {one.name} of {version.ref}: {words} is "
                    f"{_shown(is_now)} now and was {_shown(was)} when the ensemble was "
                    "fitted, so that its coefficient is of another member. Restore "
                    "what it was, or fit the ensemble again."
                )


_PINNED: Mapping[str, str] = {
    "judge": "the version",
    "score": "the score",
    "metric": "the metric",
    "labels_by": "the version that reads labels",
    "digest": "the digest of the prompt",
    "engine": "the engine",
    "identity": "the identity of the engine, with its parameters,",
    "conventions": "the signature",
}


def _shown(value: str) -> str:
    short = value[:12] if len(value) == 64 else value
    return quoted(short) if short else "nothing"


def _require_apart(
    workspace: WorkspacePaths,
    version: EnsembleVersion,
    texts: GradedTexts,
    patients: Mapping[str, str],
) -> tuple[str, ...]:
    """Refuse pairs that the ensemble was fitted on; return what was not compared."""
    told: Ensemble = version.ensemble
    known = set(told.references)
    cases = texts.cases or texts.ids
    same = {
        name: None
        for name, text in zip(cases, texts.references, strict=True)
        if _text_digest(text) in known
    }
    if same:
        _refuse(version, len(same), "reference", map(quote_id, same))
    cohort_name = told.fitted_on.cohort
    if cohort_name not in list_cohorts(workspace):
        return (f"cases and patients: cohort {cohort_name} is not here",)
    cohort = read_cohort(workspace, cohort_name)
    if cohort.digest != told.fitted_on.cohort_digest:
        return (f"cases and patients: cohort {cohort_name} is another one by now",)
    keys = open_pseudonyms(workspace) if patients else None
    found = compare_pairs(
        workspace,
        cohort,
        ForeignPairs(
            cases,
            texts.references,
            {name: keys.of(one) for name, one in patients.items() if one}
            if keys
            else {},
            keys.fingerprint if keys else "",
        ),
    )
    for one in found.shared:
        shown = (" = ".join(map(quote_id, dict.fromkeys(ids))) for ids in one.examples)
        _refuse(version, one.number, one.kind.value, shown)
    return found.not_checked


def _refuse(
    version: EnsembleVersion, number: int, what: str, examples: Iterable[str]
) -> None:
    cohort = version.ensemble.fitted_on.cohort
    shown = list(islice(examples, EXAMPLES))
    raise OverlapError(
        f"{number} {what}{' ' if number == 1 else 's '}of the pairs "
        f"{'is' if number == 1 else 'are'} among those that {version.ref} was fitted "
        f"on ({cohort}): {', '.join(shown)}{' ...' if number > len(shown) else ''}. "
        "Its scores would be too good there. Score other pairs; where two sources only "
        "number their cases alike, give these other ids."
    )


class SystemScores(NamedTuple):
    """What an ensemble says of one system."""

    system: str
    pairs: int
    scored: int
    mean: float | None
    """Over the scored pairs; None without one."""

    least: float | None
    most: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedScores:
    """What an ensemble says of joined pairs."""

    scores: EnsembleScores
    keys: tuple[tuple[str, str], ...]
    """Case id and system of each pair."""

    @property
    def systems(self) -> tuple[SystemScores, ...]:
        """Each system, in the order of the pairs."""
        names = np.array([system for _, system in self.keys])
        found = []
        for name in dict.fromkeys(names.tolist()):
            own = self.scores.scores[names == name]
            given = own[~np.isnan(own)]
            numbers = (given.mean(), given.min(), given.max()) if given.size else ()
            found.append(
                SystemScores(
                    name,
                    len(own),
                    len(given),
                    *(map(float, numbers) if numbers else (None, None, None)),
                )
            )
        return tuple(found)


def score_joined(
    workspace: WorkspacePaths,
    ref: str,
    joined: Joined,
    *,
    asking: EngineOptions | None = None,
    watch: Watch | None = None,
) -> JoinedScores:
    """Return what an ensemble says of every pair of joined texts.

    Parameters
    ----------
    joined
        From `loop.score.joining.join_pairs`, for example.

    Raises
    ------
    DataError, EngineError, OverlapError
        As for `score_ensemble`; or labels were given instead of texts.
    """
    keys, references, candidates, languages, contexts = [], [], [], [], []
    for side in joined.systems:
        if side.texts is None or joined.reference.texts is None:
            raise DataError(
                "an ensemble scores texts, and labels were given. Give a file with "
                "columns id, reference and candidate."
            )
        for place, text in enumerate(side.texts):
            if text is None:
                continue
            keys.append((joined.case_ids[place], side.name))
            references.append(joined.reference.texts[place] or "")
            candidates.append(text)
            languages.append(joined.languages[place] if joined.languages else "en")
            contexts.append(joined.contexts[place] if joined.contexts else "")
    owners = dict(zip(joined.case_ids, joined.named_patients, strict=False))
    # Pairs of several systems share the id of their case.
    scores = score_ensemble(
        workspace,
        ref,
        GradedTexts(
            ids=tuple(map(str, range(len(keys)))),
            references=tuple(references),
            candidates=tuple(candidates),
            languages=tuple(languages),
            contexts=tuple(contexts),
            cases=tuple(case for case, _ in keys),
        ),
        patients=owners,
        asking=asking,
        watch=watch,
    )
    return JoinedScores(scores=scores, keys=tuple(keys))


def ensemble_scores_data(found: JoinedScores) -> dict[str, Any]:
    """Return the scores as JSON data; a pair without one has null."""
    said = found.scores
    return {
        "ensemble": said.version.ref,
        "digest": said.version.digest,
        "signature": said.version.signature,
        "unit": said.version.ensemble.unit,
        "systems": [one._asdict() for one in found.systems],
        "missing": said.missing,
        "not_checked": list(said.not_checked),
        "pairs": [
            {
                "id": case,
                "system": system,
                "score": _or_none(said.scores[row]),
                "members": {
                    name: _or_none(values[row]) for name, values in said.members.items()
                },
            }
            for row, (case, system) in enumerate(found.keys)
        ],
    }


def write_scores(found: JoinedScores, path: Path) -> None:
    """Write the score and the members of each pair as CSV; empty where there is none.

    Raises
    ------
    WriteError
        The file cannot be written; what was there before is unchanged.
    """
    said = found.scores
    rows = [
        [
            *map(shielded, key),
            *(
                "" if np.isnan(column[row]) else repr(float(column[row]))
                for column in (said.scores, *said.members.values())
            ),
        ]
        for row, key in enumerate(found.keys)
    ]
    header = ["id", "system", said.version.name, *said.members]
    write_atomic(path, format_csv(header, rows).encode("utf-8"))


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
