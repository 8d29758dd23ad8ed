"""Versions of ensembles: kept, recorded in the ledger, read back only as recorded.

``labels/ensembles/<name>/v<N>/ensemble.yaml`` says how members become one number, and
what each member was: digests of prompts, identities of engines, conventions.
``rows.csv`` beside it has what it was fitted on, without ids and texts, so that anyone
can fit it again. A version is never edited; the next fit makes the next one.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LoopError
from loop.core.files import (
    folder_beside,
    locked,
    make_folder,
    replace_folder,
    write_atomic,
)
from loop.core.ledger import Actor, Event, LedgerEntry, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import format_csv, quoted
from loop.core.yaml_files import dump_yaml, parse_model
from loop.judge.ensemble import (
    EnsembleFit,
    EnsembleMethod,
    LinearEnsemble,
    OutOfFold,
    fit_linear,
)
from loop.judge.rated_rows import number_units
from loop.stats.correlation import Correlations, tie_equal
from loop.stats.intervals import Estimate

PREFIX: Final = "ensemble:"
"""Before the name of an ensemble where judges and metrics are named, too."""

_FITTED: Final = "ensemble_fitted"
_FILE, _ROWS = "ensemble.yaml", "rows.csv"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_CLOSE: Final = 1e-9
"""How far a coefficient that is fitted again may be off, in points."""


class _EnsemblePart(BaseModel):
    """What every part of the file has: no other fields, no NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class MemberPin(_EnsemblePart):
    """What a member was: it must be the same wherever the ensemble is applied."""

    judge: str = ""
    """Version of a judge, for example ``green@v2``; empty for a metric."""

    score: str = ""
    """Which of its scores."""

    metric: str = ""
    """Metric by its name; empty for a judge."""

    labels_by: str = ""
    """Version that reads labels, for a metric of labels."""

    release: str = ""
    """Release that this version was taken from; may be empty."""

    digest: str = ""
    """Of the prompt: the judge's, or the one that reads labels."""

    engine: str = ""
    identity: str = ""
    """Digest of the engine's identity and parameters."""

    conventions: str
    """Signature without what depends on the pairs."""


class EnsembleMember(_EnsemblePart):
    """One member, and what becomes of its values."""

    name: str
    title: str
    better: Literal["higher", "lower"]
    centre: float
    """Mean over the pairs it was fitted on."""

    scale: float = Field(gt=0)
    """Standard deviation there."""

    weight: float
    """What one standard deviation adds."""

    missing: int = Field(ge=0)
    """Rated pairs of which it says nothing."""

    distinct: int = Field(ge=2)
    """Different values that it takes on the pairs used."""

    pin: MemberPin

    @property
    def coefficient(self) -> float:
        """What one unit of the member's own scale adds."""
        return self.weight / self.scale

    @property
    def lower(self) -> bool:
        """Whether lower is better."""
        return self.better == "lower"

    @property
    def against_direction(self) -> bool:
        """Whether its weight has the sign that its direction does not."""
        return self.weight * (-1 if self.lower else 1) < 0


class FittedOn(_EnsemblePart):
    """What an ensemble was fitted on."""

    cohort: str
    cohort_digest: str
    ratings: str
    """For example ``rp:ratings1``."""

    ratings_digest: str
    raters: int
    scale: str
    """Of the points, for example ``1-5``."""

    rated: int
    """Pairs with points."""

    pairs: int
    """Pairs used: those of which every member says something."""

    units: int
    unit: Literal["patient", "reference"]

    @property
    def left_out(self) -> int:
        """Rated pairs that a member says nothing of."""
        return self.rated - self.pairs


class KeptEstimate(_EnsemblePart):
    """A value with its interval, as kept."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, found: Estimate) -> KeptEstimate:
        """Return an estimate without its note."""
        return cls(value=found.value, low=found.low, high=found.high)


class KeptAgreement(_EnsemblePart):
    """How far scores go with the mean of the raters."""

    tau_b: KeptEstimate
    spearman: KeptEstimate
    pearson: KeptEstimate

    @classmethod
    def of(cls, found: Correlations) -> KeptAgreement:
        """Return the three coefficients."""
        return cls(
            tau_b=KeptEstimate.of(found.tau_b),
            spearman=KeptEstimate.of(found.spearman),
            pearson=KeptEstimate.of(found.pearson),
        )


class KeptComparison(_EnsemblePart):
    """An ensemble beside its best member."""

    method: EnsembleMethod
    difference: KeptEstimate
    p: float | None
    exact: bool
    beats: bool


class KeptGroup(_EnsemblePart):
    """Ensembles of one score of several judges."""

    score: str
    members: tuple[str, ...]
    mean: KeptAgreement
    regression: KeptAgreement


class FoldResults(_EnsemblePart):
    """What it was worth out of fold."""

    folds: int
    seed: int
    resamples: int
    members: tuple[KeptAgreement, ...]
    mean: KeptAgreement
    regression: KeptAgreement
    best: KeptAgreement
    chosen: tuple[str, ...]
    in_sample: KeptAgreement
    against: tuple[KeptComparison, ...]
    groups: tuple[KeptGroup, ...] = ()

    def of(self, method: EnsembleMethod) -> KeptAgreement:
        """Return how far the ensemble made so goes with the raters."""
        return self.mean if method is EnsembleMethod.MEAN else self.regression

    def beside(self, method: EnsembleMethod) -> KeptComparison:
        """Return the ensemble made so beside its best member."""
        return next(one for one in self.against if one.method is method)


class Ensemble(_EnsemblePart):
    """The form of ``ensemble.yaml``."""

    method: EnsembleMethod
    intercept: float
    members: tuple[EnsembleMember, ...] = Field(min_length=2)
    fitted_on: FittedOn
    out_of_fold: FoldResults | None = None
    rows: str
    """Sha256 of ``rows.csv``."""

    references: tuple[str, ...]
    """Sha256 of each reference it was fitted on, folded, sorted: no pair with one of
    them is scored."""

    @model_validator(mode="after")
    def _one_of_each(self) -> Ensemble:
        names = self.names
        if len(set(names)) < len(names):
            raise ValueError("a member stands twice")
        told = self.out_of_fold
        if told and (
            len(told.members) != len(names)
            or {one.method for one in told.against} != set(EnsembleMethod)
            or not set(told.chosen) <= set(names)
        ):
            raise ValueError("out_of_fold is not of these members")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Members, in the order of the weights."""
        return tuple(one.name for one in self.members)

    @property
    def linear(self) -> LinearEnsemble:
        """How members become one number."""
        return LinearEnsemble(
            np.array([one.centre for one in self.members]),
            np.array([one.scale for one in self.members]),
            np.array([one.weight for one in self.members]),
            self.intercept,
        )

    @property
    def unit(self) -> str:
        """Unit of its scores."""
        if self.method is EnsembleMethod.MEAN:
            return "standard deviations"
        return f"points, {self.fitted_on.scale}"


class FitRow(NamedTuple):
    """One pair that an ensemble was fitted on."""

    unit: int
    """Number of its patient, else of its reference, from 1."""

    points: float
    """Mean of the raters."""

    values: tuple[float, ...]
    """Of each member."""

    out_of_fold: tuple[float, ...] = ()
    """Fold from 1, and what mean, regression and best member say out of fold."""


_FOLD_COLUMNS: Final = ("fold", "mean", "regression", "best_member")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleVersion:
    """An ensemble as it is recorded."""

    name: str
    number: int
    digest: str
    """Sha256 of ``ensemble.yaml``, which covers everything else."""

    ensemble: Ensemble
    rows: tuple[FitRow, ...]
    made: bool = False
    """Whether it was made just now, and is not an earlier one of the same content."""

    @property
    def ref(self) -> str:
        """For example ``"ensemble@v1"``."""
        return f"{self.name}@v{self.number}"

    @property
    def signature(self) -> str:
        """Every convention of its scores, as one line."""
        told = self.ensemble
        return "|".join(
            (
                f"{PREFIX}{self.ref}:{self.digest[:8]}",
                str(told.method),
                *(f"{one.name}:{one.pin.conventions}" for one in told.members),
                f"fit:{told.fitted_on.cohort}:{told.fitted_on.cohort_digest[:8]}",
            )
        )


def ensembles_folder(workspace: WorkspacePaths) -> Path:
    """Folder of all ensembles."""
    return workspace.labels / "ensembles"


def apply_ensemble(
    ensemble: Ensemble, values: Mapping[str, NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return the score of each pair, NaN where a member says nothing of it.

    Parameters
    ----------
    values
        What each member says of the pairs, in its own direction, by name. That a
        member is the pinned one is for who asks it, see
        `loop.release.ensemble_scoring.score_ensemble`.

    Raises
    ------
    ValueError
        A member is missing.
    """
    lacking = [name for name in ensemble.names if name not in values]
    if lacking:
        raise ValueError(f"no values of the member {lacking[0]!r}")
    return ensemble.linear.score(
        np.column_stack([values[name] for name in ensemble.names])
    )


class Folded(NamedTuple):
    """An ensemble that was fitted, and what it is worth."""

    fit: EnsembleFit
    results: OutOfFold | None = None


def make_ensemble(
    found: Folded,
    pins: Sequence[MemberPin],
    fitted_on: FittedOn,
    references: Sequence[str],
) -> tuple[Ensemble, tuple[FitRow, ...]]:
    """Return the record of a fit and its rows, in the order in which they are written.

    Parameters
    ----------
    pins
        What each member was.
    references
        Sha256 of each folded reference.
    """
    fit, results = found
    linear = fit.linear
    rows = _make_rows(fit, results)
    members = tuple(
        EnsembleMember(
            name=one.name,
            title=one.title,
            better="lower" if one.lower else "higher",
            centre=float(linear.centre[place]),
            scale=float(linear.scale[place]),
            weight=float(linear.weights[place]),
            missing=one.missing,
            distinct=len(np.unique(tie_equal(fit.values[:, place]))),
            pin=pins[place],
        )
        for place, one in enumerate(fit.members)
    )
    names = [one.name for one in fit.members]
    ensemble = Ensemble(
        method=fit.method,
        intercept=linear.intercept,
        members=members,
        fitted_on=fitted_on,
        out_of_fold=None if results is None else _keep(results),
        rows=digest_bytes(_format_rows(rows, names)),
        references=tuple(sorted(set(references))),
    )
    return ensemble, rows


def _keep(found: OutOfFold) -> FoldResults:
    return FoldResults(
        folds=found.folds,
        seed=found.seed,
        resamples=found.resamples,
        members=tuple(map(KeptAgreement.of, found.members)),
        mean=KeptAgreement.of(found.mean),
        regression=KeptAgreement.of(found.regression),
        best=KeptAgreement.of(found.best),
        chosen=found.chosen,
        in_sample=KeptAgreement.of(found.in_sample),
        against=tuple(
            KeptComparison(
                method=one.method,
                difference=KeptEstimate.of(one.difference),
                p=one.p,
                exact=one.exact,
                beats=one.beats,
            )
            for one in found.against
        ),
        groups=tuple(
            KeptGroup(
                score=one.score,
                members=one.members,
                mean=KeptAgreement.of(one.mean),
                regression=KeptAgreement.of(one.regression),
            )
            for one in found.groups
        ),
    )


def fit_order(
    units: NDArray[Any], points: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the number of each pair's unit, and the order in which pairs are fitted.

    Both come from the values alone, so that who has the rows gets the same folds and
    the same resamples, and ids cannot be read from either.

    Parameters
    ----------
    values
        Of the members, NaN where missing, shape ``(n_pairs, n_members)``.
    """
    numbers = number_units(units, points, *values.T)
    keys = np.column_stack([values[:, ::-1], points, numbers])
    return numbers, np.lexsort(np.where(np.isnan(keys), -np.inf, keys).T)


def _make_rows(fit: EnsembleFit, results: OutOfFold | None) -> tuple[FitRow, ...]:
    used = fit.used
    rows = []
    for place, (unit, points, values) in enumerate(
        zip(fit.units[used], fit.ratings[used], fit.values, strict=True)
    ):
        told: tuple[float, ...] = ()
        if results is not None:
            scores = results.scores
            told = (
                float(scores.fold[place] + 1),
                float(scores.mean[place]),
                float(scores.regression[place]),
                float(scores.best[place]),
            )
        rows.append(
            FitRow(int(unit) + 1, float(points), tuple(map(float, values)), told)
        )
    return tuple(rows)


def _format_rows(rows: Sequence[FitRow], names: Sequence[str]) -> bytes:
    more = _FOLD_COLUMNS if rows and rows[0].out_of_fold else ()
    lines = (
        [row.unit, repr(row.points), *map(repr, row.values), *_fold_cells(row)]
        for row in rows
    )
    return format_csv(["unit", "points", *names, *more], lines, end="\n").encode()


def _fold_cells(row: FitRow) -> list[str]:
    if not row.out_of_fold:
        return []
    fold, *scores = row.out_of_fold
    return [str(int(fold)), *map(repr, scores)]


def _parse_rows(raw: bytes, names: Sequence[str], path: Path) -> tuple[FitRow, ...]:
    width = 2 + len(names)
    plain = ["unit", "points", *names]
    try:
        header, *lines = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""))
        if header not in (plain, [*plain, *_FOLD_COLUMNS]):
            raise ValueError("other columns")
        rows = tuple(
            FitRow(
                int(line[0]),
                float(line[1]),
                tuple(map(float, line[2:width])),
                tuple(map(float, line[width:])),
            )
            for line in lines
        )
        if not all(isfinite(one) for row in rows for one in (row.points, *row.values)):
            raise ValueError("no number")
        return rows
    except (ValueError, IndexError, csv.Error) as error:
        raise DataError(f"{path} cannot be read. Restore it.") from error


def judge_pins(version: EnsembleVersion, digest: str) -> list[MemberPin]:
    """Return what the members are that are the judge of this digest; often none."""
    pins = (one.pin for one in version.ensemble.members)
    return [one for one in pins if one.judge and one.digest == digest]


def refit(version: EnsembleVersion) -> bool:
    """Whether the kept rows give the kept centres, scales, weights and intercept."""
    told = version.ensemble
    values = np.array([row.values for row in version.rows])
    points = np.array([row.points for row in version.rows])
    lower = np.array([one.lower for one in told.members])
    # Rows of a release may be anybody's: numbers too large to reckon give others.
    with np.errstate(all="ignore"):
        again, kept = fit_linear(values, points, lower, told.method), told.linear
    return bool(
        np.allclose(
            np.hstack(again),
            np.hstack(kept),
            rtol=_CLOSE,
            atol=_CLOSE,
        )
    )


def keep_ensemble(
    workspace: WorkspacePaths,
    name: str,
    ensemble: Ensemble,
    rows: Sequence[FitRow],
    actor: Actor,
) -> EnsembleVersion:
    """Keep an ensemble as the next version of `name`, and record it.

    The same once more makes nothing: the newest version is returned, its files put back
    if they were edited or lost. A version that was killed before it was recorded is
    none, and gives way.

    Raises
    ------
    DataError
        The name cannot be one.
    LedgerError
        The ledger is broken, and nothing is recorded.
    WriteError
        The workspace cannot be written, and nothing is recorded.
    """
    check_ensemble_name(name)
    text = _format_ensemble(ensemble)
    digest = digest_bytes(text)
    with locked(workspace.open_private() / "locks" / f"ensemble-{name}.lock"):
        recorded = _recorded(workspace, name)
        newest = max(recorded, default=0)
        same = bool(newest) and recorded[newest].payload.get("digest") == digest
        number = newest if same else newest + 1
        target = ensembles_folder(workspace) / name / f"v{number}"
        raw = _format_rows(rows, ensemble.names)
        # Of a version whose files were edited or lost, the recorded ones come back.
        if not same or not _holds(target, {_FILE: text, _ROWS: raw}):
            make_folder(target.parent)
            with folder_beside(target) as folder:
                write_atomic(folder / _FILE, text)
                write_atomic(folder / _ROWS, raw)
                folder.chmod(0o755)
                replace_folder(folder, target)
        if same:
            return read_ensemble(workspace, f"{name}@v{number}")
        told = ensemble.fitted_on
        event = Event(
            action=_FITTED,
            subject=f"{PREFIX}{name}@v{number}",
            reason=f"{ensemble.method} of {len(ensemble.members)} members on "
            f"{told.cohort}",
            payload={
                "name": name,
                "number": number,
                "digest": digest,
                "method": str(ensemble.method),
                "members": list(ensemble.names),
                "cohort": told.cohort,
                "cohort_digest": told.cohort_digest,
                "ratings": told.ratings,
                "ratings_digest": told.ratings_digest,
                "pairs": told.pairs,
            },
        )
        try:
            append_event(workspace.ledger, event, actor)
        except LoopError:
            shutil.rmtree(target, ignore_errors=True)
            raise
    return EnsembleVersion(
        name=name,
        number=number,
        digest=digest,
        ensemble=ensemble,
        rows=tuple(rows),
        made=True,
    )


def _holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Whether a folder has these files, to the byte."""
    try:
        return all((folder / name).read_bytes() == raw for name, raw in files.items())
    except OSError:
        return False


def check_ensemble_name(name: str) -> str:
    """Return `name` if it can be an ensemble's.

    Raises
    ------
    DataError
        It cannot.
    """
    if _NAME.fullmatch(name) is None:
        raise DataError(
            f"{quoted(name)} cannot be the name of an ensemble. Use 1 to 64 lower-case "
            "letters, digits, '-' or '_', beginning with a letter."
        )
    return name


def list_recorded(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Return the entries of versions of ensembles, passing over those made by hand."""
    return [
        one
        for one in entries
        if one.action == _FITTED
        and type(one.payload.get("number")) is int
        and _NAME.fullmatch(str(one.payload.get("name")))
    ]


def _recorded(workspace: WorkspacePaths, name: str) -> dict[int, LedgerEntry]:
    """Return the entries of an ensemble's versions by number."""
    return {
        int(one.payload["number"]): one
        for one in list_recorded(read_ledger(workspace.ledger))
        if one.payload["name"] == name
    }


def list_ensembles(workspace: WorkspacePaths) -> tuple[EnsembleVersion, ...]:
    """Return the newest version of each ensemble, by name.

    Raises
    ------
    DataError
        One is not as recorded.
    LedgerError
        The ledger is broken.
    """
    entries = list_recorded(read_ledger(workspace.ledger))
    names = {str(one.payload["name"]) for one in entries}
    return tuple(read_ensemble(workspace, name) for name in sorted(names))


def read_ensemble(workspace: WorkspacePaths, ref: str) -> EnsembleVersion:
    """Return a version of an ensemble, as the ledger recorded it.

    Parameters
    ----------
    ref
        ``"NAME"`` for the newest version, or ``"NAME@v2"``; ``"ensemble:"`` may stand
        before it.

    Raises
    ------
    DataError
        There is none, a file of it was edited or does not have the expected form, or
        it was never recorded.
    LedgerError
        The ledger is broken.
    """
    name, _, version = ref.removeprefix(PREFIX).partition("@")
    check_ensemble_name(name)
    recorded = _recorded(workspace, name)
    if not recorded:
        entries = list_recorded(read_ledger(workspace.ledger))
        known = sorted({str(one.payload["name"]) for one in entries})
        raise DataError(
            f"no ensemble {quoted(name)} is recorded here (recorded: "
            f"{', '.join(known) or 'none'}). Fit one with `ranloop "
            f"ensemble fit --name {name} --cohort COHORT --members A,B`."
        )
    wanted = version or f"v{max(recorded)}"
    entry = next((recorded[one] for one in recorded if f"v{one}" == wanted), None)
    if entry is None:
        numbers = ", ".join(f"v{one}" for one in sorted(recorded))
        raise DataError(
            f"ensemble {name!r} has no version {quoted(wanted)} (recorded: {numbers}). "
            "Name one of these."
        )
    return read_recorded(workspace, entry)


def read_recorded(workspace: WorkspacePaths, entry: LedgerEntry) -> EnsembleVersion:
    """Return the version that an entry recorded; errors as of `read_ensemble`."""
    name, number = str(entry.payload["name"]), int(entry.payload["number"])
    folder = ensembles_folder(workspace) / name / f"v{number}"
    raw = _read(folder / _FILE, str(entry.payload.get("digest")))
    ensemble = _parse_ensemble(raw, folder / _FILE)
    rows = _read(folder / _ROWS, ensemble.rows)
    return EnsembleVersion(
        name=name,
        number=number,
        digest=digest_bytes(raw),
        ensemble=ensemble,
        rows=_parse_rows(rows, ensemble.names, folder / _ROWS),
    )


def _parse_ensemble(raw: bytes, path: Path) -> Ensemble:
    return parse_model(raw.decode("utf-8", "replace"), Ensemble, path)


def parse_ensemble(
    name: str, number: int, raw: bytes, rows: bytes, path: Path
) -> EnsembleVersion:
    """Return a version from the bytes of its two files, as a release carries them.

    Parameters
    ----------
    raw, rows
        Of ``ensemble.yaml`` and ``rows.csv``.
    path
        Where they are from, for errors.

    Raises
    ------
    DataError
        A file does not have the expected form, or the rows are not the recorded ones.
    """
    ensemble = _parse_ensemble(raw, path)
    if digest_bytes(rows) != ensemble.rows:
        raise DataError(f"{path}: its rows are not those that it was fitted on.")
    return EnsembleVersion(
        name=name,
        number=number,
        digest=digest_bytes(raw),
        ensemble=ensemble,
        rows=_parse_rows(rows, ensemble.names, path),
    )


def ensemble_files(version: EnsembleVersion) -> tuple[bytes, bytes]:
    """Return ``ensemble.yaml`` and ``rows.csv`` of a version, to the byte."""
    return _format_ensemble(version.ensemble), _format_rows(
        version.rows, version.ensemble.names
    )


def _format_ensemble(ensemble: Ensemble) -> bytes:
    return dump_yaml(ensemble.model_dump(mode="json")).encode("utf-8")


def _read(path: Path, recorded: str) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror}. Restore it from version control or "
            "a backup."
        ) from error
    if digest_bytes(raw) != recorded:
        raise DataError(
            f"{path} was edited: it is not the file that was recorded with "
            f"{recorded[:12]}. Restore it from version control or a backup, or fit the "
            "ensemble again."
        )
    return raw
