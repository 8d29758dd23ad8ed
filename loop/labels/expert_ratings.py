"""What experts say of the candidates of a cohort: points, and the errors they mark.

``labels/cohorts/<name>/experts/v<N>/ratings.csv`` has one row per rater, pair and
dimension, ``errors.csv`` one row per marked error. More ratings make the next version;
nothing is edited, and only files with the digests that the ledger recorded are read.
The words of a marked finding are clinical text: they lie in ``.ranloop/findings/``.
Those of a holdout are sealed, all of them, see `loop.labels.sealing`.
"""

from __future__ import annotations

import csv
import io
import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_json
from loop.core.errors import DataError, LoopError
from loop.core.files import locked, make_folder
from loop.core.ledger import Actor, Event, append_event
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import format_csv, quoted
from loop.labels.cohort import (
    Cohort,
    CohortRecord,
    CohortRole,
    cohort_folder,
    read_cohort,
    read_record,
)
from loop.labels.error_categories import ErrorCategories, read_errors
from loop.labels.sealing import (
    Opening,
    is_digest_of,
    is_stored,
    label_digest,
    read_labels,
    read_stored,
    refuse_plain,
    remove_file,
    require_opening,
    sealed_path,
    write_labels,
)

RATING_COLUMNS: Final = ("case_id", "rater", "dimension", "points", "scale")
ERROR_COLUMNS: Final = ("case_id", "rater", "category", "significance")
MOST_NAME: Final = 200
"""Characters of the name of a rater, or of a dimension."""

OVERALL: Final = "overall"
"""Dimension of points that are of the candidate as a whole."""

_RATINGS, _ERRORS = "ratings.csv", "errors.csv"
_POINTS = r"(-?[0-9]{1,6}(?:\.[0-9]{1,3})?)"
_SCALE = re.compile(rf"{_POINTS}\s*(?:-|–|to)\s*{_POINTS}")


class PointScale(NamedTuple):
    """Least and most points possible."""

    low: float
    high: float
    """Infinite for counts."""

    @property
    def words(self) -> str:
        """How it is written: ``1-5``, or ``counts``."""
        return "counts" if self.high == inf else f"{plain(self.low)}-{plain(self.high)}"


def plain(number: float) -> str:
    """Return a number as it is written in files: exact, and 4 rather than 4.0."""
    given = float(number)
    return str(int(given)) if given.is_integer() else repr(given)


def parse_scale(words: str) -> PointScale:
    """Return the scale that `words` name: ``1-5``, ``0-5``, or ``counts``.

    Raises
    ------
    DataError
        They name none.

    Examples
    --------
    >>> parse_scale("1-5"), parse_scale("counts").words
    (PointScale(low=1.0, high=5.0), 'counts')
    """
    if words.strip().casefold() == "counts":
        return PointScale(0.0, inf)
    found = _SCALE.fullmatch(words.strip())
    if found and float(found[1]) < float(found[2]):
        return PointScale(float(found[1]), float(found[2]))
    raise DataError(
        f"{quoted(words)} is no scale. Write the least and the most points, for "
        "example 1-5, or counts for numbers of errors."
    )


class ExpertRating(NamedTuple):
    """Points of one rater for one candidate."""

    case_id: str
    rater: str
    dimension: str
    points: float
    scale: PointScale


class MarkedError(NamedTuple):
    """One error that a rater marked; or, with all else empty, that there is none."""

    case_id: str
    rater: str
    category: str = ""
    """Id of a category in ``errors.yaml``; empty where the rater found no error."""

    significance: str = ""
    finding: str = ""
    """Words of the finding: clinical text, for the private folder only."""


class Judgements(NamedTuple):
    """What raters say, as it stands in a source."""

    ratings: tuple[ExpertRating, ...] = ()
    errors: tuple[MarkedError, ...] = ()

    @property
    def raters(self) -> tuple[str, ...]:
        """Everybody who rated or marked, sorted by name."""
        return tuple(sorted({one.rater for one in self.rows}))

    @property
    def rows(self) -> tuple[ExpertRating | MarkedError, ...]:
        """All of both."""
        rows: list[ExpertRating | MarkedError] = [*self.ratings]
        return (*rows, *self.errors)

    def of(self, case_ids: Collection[str], prefix: str = "") -> Judgements:
        """Return those of these cases, whose ids have `prefix` before the source's."""
        known = frozenset(case_ids)
        ratings = (r._replace(case_id=prefix + r.case_id) for r in self.ratings)
        errors = (e._replace(case_id=prefix + e.case_id) for e in self.errors)
        return Judgements(
            tuple(one for one in ratings if one.case_id in known),
            tuple(one for one in errors if one.case_id in known),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterPoints:
    """Points of every rater for every pair, in one dimension."""

    case_ids: tuple[str, ...]
    raters: tuple[str, ...]
    points: NDArray[np.float64]
    """Shape ``(n_cases, n_raters)``; NaN where a rater did not rate."""

    scale: PointScale


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterCounts:
    """Errors that every rater marked in every pair, by category and significance."""

    case_ids: tuple[str, ...]
    raters: tuple[str, ...]
    categories: tuple[str, ...]
    significances: tuple[str, ...]
    counts: NDArray[np.float64]
    """Shape ``(n_cases, n_raters, n_categories, n_significances)``; NaN where a rater
    did not look, and 0 where a rater looked and found none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertRatings:
    """One version of what experts say of a cohort."""

    cohort: str
    number: int
    """Version, from 1."""

    digest: str
    """Over the recorded digests of its files."""

    case_ids: tuple[str, ...]
    """All cases of the cohort, in its order, with or without ratings."""

    given: Judgements
    """Without the words of findings, unless they were asked for."""

    @property
    def ref(self) -> str:
        """How it is named on reports, for example ``"rp:ratings1"``."""
        return f"{self.cohort}:ratings{self.number}"

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Dimensions that were rated, in order of first appearance."""
        return tuple(dict.fromkeys(one.dimension for one in self.given.ratings))

    def points(self, dimension: str = OVERALL) -> RaterPoints:
        """Return the points in one dimension.

        Raises
        ------
        DataError
            Nobody rated it.
        """
        chosen = [one for one in self.given.ratings if one.dimension == dimension]
        if not chosen:
            raise DataError(
                f"{self.ref} has no ratings of {quoted(dimension)} (rated: "
                f"{', '.join(self.dimensions) or 'nothing'}). Name one of these."
            )
        raters = tuple(sorted({one.rater for one in chosen}))
        rows, columns = _places(self.case_ids), _places(raters)
        points = np.full((len(rows), len(columns)), np.nan)
        for one in chosen:
            points[rows[one.case_id], columns[one.rater]] = one.points
        return RaterPoints(
            case_ids=self.case_ids, raters=raters, points=points, scale=chosen[0].scale
        )

    def counts(self, categories: ErrorCategories) -> RaterCounts:
        """Return how many errors each rater marked, by the categories of a file.

        Raises
        ------
        DataError
            Nobody marked errors.
        """
        if not self.given.errors:
            raise DataError(f"{self.ref} has no marked errors. Add a file of errors.")
        raters = tuple(sorted({one.rater for one in self.given.errors}))
        ids = categories.ids
        weights = tuple(one.id for one in categories.significances)
        axes = [_places(names) for names in (self.case_ids, raters, ids, weights)]
        counts = np.full([len(axis) for axis in axes], np.nan)
        for one in self.given.errors:
            cell = counts[axes[0][one.case_id], axes[1][one.rater]]
            if np.isnan(cell).all():
                cell[:] = 0
            if one.category:
                cell[axes[2][one.category], axes[3][one.significance]] += 1
        return RaterCounts(
            case_ids=self.case_ids,
            raters=raters,
            categories=ids,
            significances=weights,
            counts=counts,
        )


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def experts_folder(workspace: WorkspacePaths, cohort_name: str, number: int) -> Path:
    """Folder of one version of the ratings of a cohort."""
    return cohort_folder(workspace, cohort_name) / "experts" / f"v{number}"


def ratings_path(workspace: WorkspacePaths, cohort_name: str, number: int) -> Path:
    """File with the points of a version."""
    return experts_folder(workspace, cohort_name, number) / _RATINGS


def errors_path(workspace: WorkspacePaths, cohort_name: str, number: int) -> Path:
    """File with the marked errors of a version."""
    return experts_folder(workspace, cohort_name, number) / _ERRORS


def findings_path(workspace: WorkspacePaths, payload: Mapping[str, Any]) -> Path | None:
    """File with the words of marked findings, of an entry; None without any."""
    name = payload.get("findings_file")
    return workspace.private / "findings" / Path(str(name)).name if name else None


def findings_files(workspace: WorkspacePaths, cohort_name: str) -> tuple[Path, ...]:
    """Return all files with words of a cohort's findings, in plain or sealed, sorted.

    Among them what a version that was never recorded left.
    """
    named = re.compile(rf"{re.escape(cohort_name)}-[0-9a-f]{{12}}\.jsonl(\.sealed)?")
    found = (workspace.private / "findings").glob(f"{cohort_name}-*")
    return tuple(sorted(path for path in found if named.fullmatch(path.name)))


def expert_files(
    workspace: WorkspacePaths, name: str, payload: Mapping[str, Any]
) -> dict[Path, str]:
    """Return the files of the version that `payload` recorded, with their digests."""
    number = int(payload["number"])
    named = {
        "ratings": ratings_path(workspace, name, number),
        "errors": errors_path(workspace, name, number),
        "findings": findings_path(workspace, payload),
    }
    return {
        path: str(payload[part])
        for part, path in named.items()
        if path is not None and part in payload
    }


def read_ratings_of(
    workspace: WorkspacePaths,
    cohort_name: str,
    number: int | None = None,
    *,
    opening: Opening | None = None,
    findings: bool = False,
) -> ExpertRatings:
    """Return what experts say of a cohort, in version `number`; the newest when None.

    Parameters
    ----------
    opening
        What lets the ratings of a holdout be read; nothing else does.
    findings
        Whether to read the words of marked findings too: clinical text, to be shown
        and never written elsewhere. They stay empty where they are not here.

    Raises
    ------
    SealedError
        The cohort is a holdout, and `opening` does not open it.
    DataError
        There is no such version, or a file of it was edited, or was never recorded.
    LedgerError
        The ledger is broken.
    """
    record = read_record(workspace, cohort_name)
    payload = _choose(record, number)
    for path in expert_files(workspace, cohort_name, payload):
        refuse_plain(path, sealed=record.is_holdout)
    if record.is_holdout:
        digest = str(payload["digest"])
        require_opening(workspace, record, opening, digest=digest)
    cohort = read_cohort(workspace, cohort_name, record=record)
    given = _read_version(workspace, cohort, payload, findings=findings)
    return ExpertRatings(
        cohort=cohort_name,
        number=int(payload["number"]),
        digest=str(payload["digest"]),
        case_ids=cohort.case_ids,
        given=given,
    )


def _choose(record: CohortRecord, number: int | None) -> Mapping[str, Any]:
    """Return what was recorded of a version, or of the newest."""
    if not record.ratings:
        raise DataError(
            f"cohort {record.name!r} has no experts' ratings. Add them with `ranloop "
            f"cohort ratings {record.name} --ratings FILE --errors FILE`."
        )
    wanted = max(record.ratings) if number is None else number
    if wanted not in record.ratings:
        known = ", ".join(f"v{one}" for one in sorted(record.ratings))
        raise DataError(
            f"cohort {record.name!r} has no ratings v{wanted} (recorded: {known}). "
            "Name one of these."
        )
    return record.ratings[wanted]


def _read_version(
    workspace: WorkspacePaths,
    cohort: Cohort,
    payload: Mapping[str, Any],
    *,
    findings: bool,
) -> Judgements:
    """Return a recorded version; whether one may see it is asked before."""
    number = int(payload["number"])
    sealed = cohort.role is CohortRole.HOLDOUT
    ratings: tuple[ExpertRating, ...] = ()
    errors: tuple[MarkedError, ...] = ()
    if "ratings" in payload:
        path = ratings_path(workspace, cohort.name, number)
        raw = _read_recorded(workspace, path, str(payload["ratings"]), sealed=sealed)
        ratings = _parse_ratings(raw, path)
    if "errors" in payload:
        path = errors_path(workspace, cohort.name, number)
        raw = _read_recorded(workspace, path, str(payload["errors"]), sealed=sealed)
        errors = _parse_errors(raw, path)
    place = findings_path(workspace, payload)
    if findings and place is not None and is_stored(place):
        recorded = str(payload["findings"])
        raw = _read_recorded(workspace, place, recorded, sealed=sealed)
        errors = _with_findings(errors, raw, place)
    folder = experts_folder(workspace, cohort.name, number)
    _require_cases(cohort, (*ratings, *errors), folder)
    return Judgements(ratings, errors)


def _read_recorded(
    workspace: WorkspacePaths, path: Path, recorded: str, *, sealed: bool
) -> bytes:
    raw = read_labels(workspace, path, sealed=sealed)
    if not is_digest_of(workspace, recorded, raw):
        raise DataError(
            f"{path} was edited: it is not the file that the ledger recorded with "
            f"{recorded[:12]}. Restore it from version control or a backup, or add "
            "the ratings that shall count with `ranloop cohort ratings` and --replace."
        )
    return raw


def _require_cases(
    cohort: Cohort, rows: Iterable[ExpertRating | MarkedError], path: Path
) -> None:
    known = frozenset(cohort.case_ids)
    if any(row.case_id not in known for row in rows):
        raise DataError(
            f"{path} names cases that cohort {cohort.name!r} does not have. Restore "
            "the folder from version control or a backup."
        )


def _rows(raw: bytes, columns: tuple[str, ...], path: Path) -> list[list[str]]:
    """Return the rows of a file in the one form it is kept in."""
    try:
        rows = list(
            csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), strict=True)
        )
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as CSV. Restore it.") from error
    if not rows or tuple(rows[0]) != columns:
        raise DataError(f"{path}: the columns are not {','.join(columns)}. Restore it.")
    if any(len(row) != len(columns) for row in rows):
        raise DataError(f"{path}: a row has too many or too few cells. Restore it.")
    return rows[1:]


def _parse_ratings(raw: bytes, path: Path) -> tuple[ExpertRating, ...]:
    rows = _rows(raw, RATING_COLUMNS, path)
    try:
        return tuple(
            ExpertRating(case, rater, what, float(points), parse_scale(scale))
            for case, rater, what, points, scale in rows
        )
    except ValueError as error:
        raise DataError(f"{path}: points that are no number. Restore it.") from error


def _parse_errors(raw: bytes, path: Path) -> tuple[MarkedError, ...]:
    return tuple(MarkedError(*row) for row in _rows(raw, ERROR_COLUMNS, path))


def _with_findings(
    errors: tuple[MarkedError, ...], raw: bytes, path: Path
) -> tuple[MarkedError, ...]:
    """Return `errors` with the words of each, which stand line by line in a file."""
    # Not `splitlines`, which also parts at signs that may stand in a text.
    words = [json.loads(line) for line in raw.decode("ascii").split("\n")[:-1]]
    if len(words) != len(errors):
        raise DataError(f"{path} is not of these errors. Restore it from a backup.")
    return tuple(
        one._replace(finding=said) for one, said in zip(errors, words, strict=True)
    )


class _ExpertFiles(NamedTuple):
    """The files of a version, as bytes; None for one that is not needed."""

    ratings: bytes | None
    errors: bytes | None
    findings: bytes | None


def _format(given: Judgements, case_ids: Sequence[str]) -> _ExpertFiles:
    """Return the files of `given`: by case in cohort order, then by rater."""
    places = _places(case_ids)
    ratings = sorted(
        given.ratings, key=lambda r: (places[r.case_id], r.rater, r.dimension)
    )
    errors = sorted(given.errors, key=lambda e: (places[e.case_id], *e[1:]))
    rows = ((*r[:3], plain(r.points), r.scale.words) for r in ratings)
    told = any(one.finding for one in errors)
    lines = "".join(json.dumps(one.finding) + "\n" for one in errors)
    return _ExpertFiles(
        _csv(RATING_COLUMNS, rows) if ratings else None,
        _csv(ERROR_COLUMNS, (one[:4] for one in errors)) if errors else None,
        lines.encode("ascii") if told else None,
    )


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    return format_csv(columns, rows, end="\n").encode("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsReport:
    """What became of ratings that were added."""

    cohort: str
    number: int
    """Version that was made, or the newest, if nothing is new."""

    raters: tuple[str, ...] = ()
    """All raters of the cohort, sorted by name; of a holdout nothing is said."""

    rated: int | None = None
    """Pairs with points or marks; None for a holdout, whose ratings are sealed."""

    ratings: int | None = None
    """Ratings of all raters; likewise."""

    errors: int | None = None
    """Marked errors; likewise."""

    dimensions: tuple[str, ...] = ()
    """Dimension and scale, ``overall 1-5``."""


def report_of(number: int, given: Judgements, cohort: Cohort) -> RatingsReport:
    """Return what may be shown of a version: of a holdout, only its number."""
    if cohort.role is CohortRole.HOLDOUT:
        return RatingsReport(cohort=cohort.name, number=number)
    dimensions = (f"{one.dimension} {one.scale.words}" for one in given.ratings)
    return RatingsReport(
        cohort=cohort.name,
        number=number,
        raters=given.raters,
        rated=len({one.case_id for one in given.rows}),
        ratings=len(given.ratings),
        errors=sum(bool(one.category) for one in given.errors),
        dimensions=tuple(dict.fromkeys(dimensions)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsTaking:
    """How ratings are added to those of a cohort."""

    actor: Actor
    replace: bool = False
    """Whether a rater's ratings take the place of all earlier ones."""

    reason: str = ""
    """Why, for the ledger; empty: whose they are."""


def ratings_lock(workspace: WorkspacePaths, cohort_name: str) -> Path:
    """Lock file that whoever adds ratings to a cohort holds."""
    return workspace.open_private() / "locks" / f"ratings-{cohort_name}.lock"


def add_ratings(
    workspace: WorkspacePaths, cohort: Cohort, new: Judgements, how: RatingsTaking
) -> RatingsReport:
    """Add `new` to what experts say of `cohort`, as the next version, and record it.

    Raters who are not in `new` keep what they said; points and marks are taken apart,
    so that whoever only rates keeps earlier marks. The same once more changes nothing.

    Raises
    ------
    DataError
        The cohort is none of pairs, a rater said otherwise before (of a holdout:
        anything), and `how` does not replace it, on another scale, or what is kept is
        not as recorded; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    check_judgements(cohort, new, read_errors(workspace.labels))
    with locked(ratings_lock(workspace, cohort.name)):
        record = read_record(workspace, cohort.name)
        newest = max(record.ratings, default=0)
        kept = Judgements()
        if newest:
            payload = record.ratings[newest]
            kept = _read_version(workspace, cohort, payload, findings=True)
        merged = _merge(kept, new, how, sealed=record.is_holdout)
        _check_ratings(merged.ratings)
        same = _format(merged, cohort.case_ids) == _format(kept, cohort.case_ids)
        # Of a holdout that would tell whether somebody guessed what is sealed.
        if same and not record.is_holdout:
            return report_of(newest, kept, cohort)
        version = stage_ratings(workspace, cohort, merged, newest + 1)
        event = ratings_event(cohort, version, how.reason.strip() or _whose(new))
        try:
            append_event(workspace.ledger, event, how.actor)
        except LoopError:
            version.remove()
            raise
    return report_of(newest + 1, merged, cohort)


def _whose(given: Judgements) -> str:
    raters = len(given.raters)
    return f"what {counted(raters, 'rater')} said"


def _merge(
    kept: Judgements, new: Judgements, how: RatingsTaking, *, sealed: bool
) -> Judgements:
    """Return `kept` with the ratings and the marks of every rater of `new`."""
    parts: list[tuple[Any, ...]] = []
    for old, young in ((kept.ratings, new.ratings), (kept.errors, new.errors)):
        raters = {one.rater for one in young}
        again = sorted(raters & {one.rater for one in old})
        changed = [
            name
            for name in again
            if sealed or _by_rater(old, name) != _by_rater(young, name)
        ]
        if changed and not how.replace:
            raise DataError(
                f"rater {', '.join(map(quoted, changed[:5]))} already has ratings"
                f"{'' if sealed else ', and others than in this file'}. Leave these "
                "raters out (those of all others are kept), or give all of theirs "
                "and replace the earlier ones with --replace."
            )
        parts.append((*(one for one in old if one.rater not in raters), *young))
    return Judgements(*parts)


def _by_rater(
    rows: Iterable[ExpertRating | MarkedError], rater: str
) -> list[tuple[Any, ...]]:
    return sorted(tuple(one) for one in rows if one.rater == rater)


def check_judgements(
    cohort: Cohort, given: Judgements, categories: ErrorCategories
) -> None:
    """Refuse ratings that cannot stand: of no pairs, off the scale, or twice.

    Raises
    ------
    DataError
        Says which rater, case and dimension; never what was marked.
    """
    if not cohort.holds_pairs:
        raise DataError(
            f"cohort {cohort.name!r} holds single reports; experts rate the candidates "
            "of pairs. Name a cohort of pairs; `ranloop cohort show` lists what "
            "cohorts hold."
        )
    if not given.ratings and not given.errors:
        raise DataError("there is no rating and no marked error. Give at least one.")
    known = frozenset(cohort.case_ids)
    for one in given.rows:
        if one.case_id not in known:
            raise DataError(
                f"cohort {cohort.name!r} has no pair {quoted(one.case_id)}, which "
                f"rater {quoted(one.rater)} judged. Correct the id."
            )
        if not one.rater or len(one.rater) > MOST_NAME or not one.rater.isprintable():
            raise DataError(
                f"case {quoted(one.case_id)}: the name of a rater is empty, has more "
                f"than {MOST_NAME} characters, or holds a control character. Use a "
                "short name, or a number."
            )
    _check_ratings(given.ratings)
    _check_errors(given.errors, categories)


def _check_ratings(ratings: Iterable[ExpertRating]) -> None:
    scales: dict[str, PointScale] = {}
    seen: set[tuple[str, str, str]] = set()
    for one in ratings:
        who = f"rater {quoted(one.rater)}, case {quoted(one.case_id)}"
        low, high = one.scale
        if not isfinite(one.points) or not low <= one.points <= high:
            raise DataError(
                f"{who}: {one.points:g} points in {quoted(one.dimension)} are off the "
                f"scale {one.scale.words}. Correct them, or name the right scale."
            )
        if scales.setdefault(one.dimension, one.scale) != one.scale:
            raise DataError(
                f"{who}: {quoted(one.dimension)} is rated on {one.scale.words} here "
                f"and on {scales[one.dimension].words} before. A dimension has one "
                "scale: give them two names."
            )
        if one[:3] in seen:
            raise DataError(
                f"{who}: rated twice in {quoted(one.dimension)}. Keep one of the two."
            )
        seen.add(one[:3])


def _check_errors(errors: Sequence[MarkedError], categories: ErrorCategories) -> None:
    weights = tuple(one.id for one in categories.significances)
    none: set[tuple[str, str]] = set()
    for one in errors:
        who = f"rater {quoted(one.rater)}, case {quoted(one.case_id)}"
        if not one.category and not one.significance:
            none.add(one[:2])
            continue
        for what, word, known in (
            ("category", one.category, categories.ids),
            ("significance", one.significance, weights),
        ):
            if word not in known:
                raise DataError(
                    f"{who}: {what} {quoted(word)} is none of {', '.join(known)}. "
                    "Correct it; both are empty where the rater found no error."
                )
    both = next((one for one in errors if one.category and one[:2] in none), None)
    if both is not None:
        raise DataError(
            f"rater {quoted(both.rater)}, case {quoted(both.case_id)}: one row says "
            "that there is no error, another has one. Keep what is right."
        )


class StagedRatings(NamedTuple):
    """The files of a version that were written, and not recorded yet."""

    number: int
    digests: Mapping[str, str]
    """``ratings``, ``errors`` and ``findings`` to what the ledger records of them."""

    findings_file: str
    remove: Callable[[], None]
    """Takes the files away again."""


def stage_ratings(
    workspace: WorkspacePaths, cohort: Cohort, given: Judgements, number: int
) -> StagedRatings:
    """Write the files of a version, sealed for a holdout; whoever calls records it.

    Raises
    ------
    WriteError
        The workspace cannot be written; no file is left.
    """
    sealed = cohort.role is CohortRole.HOLDOUT
    files = _format(given, cohort.case_ids)
    name = f"{cohort.name}-{secrets.token_hex(6)}.jsonl" if files.findings else ""
    places = {
        "ratings": ratings_path(workspace, cohort.name, number),
        "errors": errors_path(workspace, cohort.name, number),
        "findings": workspace.private / "findings" / (name or "none"),
    }
    written = {part: raw for part, raw in files._asdict().items() if raw is not None}

    def remove() -> None:
        for part in written:
            remove_file(sealed_path(places[part]) if sealed else places[part])

    try:
        make_folder(experts_folder(workspace, cohort.name, number))
        make_folder(places["findings"].parent, mode=0o700)
        for part, raw in written.items():
            mode = 0o600 if part == "findings" else None
            write_labels(workspace, places[part], raw, sealed=sealed, mode=mode)
        digests = {
            part: label_digest(workspace, raw, sealed=sealed)
            for part, raw in written.items()
        }
    except LoopError:
        remove()
        raise
    return StagedRatings(number, digests, name, remove)


def ratings_event(cohort: Cohort, staged: StagedRatings, reason: str) -> Event:
    """Return what the ledger records of a version."""
    return Event(
        action="ratings_added",
        subject=f"{cohort.name}:ratings{staged.number}",
        reason=reason,
        payload={
            "cohort": cohort.name,
            "cohort_digest": cohort.digest,
            "number": staged.number,
            "digest": digest_json(dict(staged.digests)),
            **staged.digests,
            **({"findings_file": staged.findings_file} if staged.findings_file else {}),
        },
    )


def edited_ratings(workspace: WorkspacePaths, cohort_name: str) -> tuple[str, ...]:
    """Return which files of ratings are not as recorded, or gone; sealed ones too.

    Words of findings that are not on this machine are none of them: they are private
    and do not travel.

    Raises
    ------
    DataError
        A sealed file cannot be unsealed.
    """
    record = read_record(workspace, cohort_name)
    found = []
    for payload in record.ratings.values():
        for path, recorded in expert_files(workspace, cohort_name, payload).items():
            raw = read_stored(workspace, path, sealed=record.is_holdout)
            if raw is None and path.is_relative_to(workspace.private):
                continue
            if raw is None or not is_digest_of(workspace, recorded, raw):
                found.append(path.relative_to(workspace.root).as_posix())
    return tuple(found)
