"""Pairs rated blind in the workbench: points and marked errors, and their publication.

A rating is appended to the private store, as a reader's answers are, and the last one
of a rater and pair counts until the rater is shown what a judge says of that pair: then
it stays as it is. Those on a holdout are sealed one by one. Published, they are a
version of the cohort's expert ratings (`loop.labels.expert_ratings`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import ConflictError, DataError, StoreError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.people.roster import require_distinct
from loop.core.safe_text import quoted
from loop.labels.cohort import Cohort, CohortRole, read_cohort, read_record
from loop.labels.error_categories import ErrorCategories, read_errors
from loop.labels.expert_ratings import (
    OVERALL,
    ExpertRating,
    Judgements,
    MarkedError,
    PointScale,
    RatingsReport,
    RatingsTaking,
    add_ratings,
    check_judgements,
    parse_scale,
    read_ratings_of,
)
from loop.labels.sealing import WordSeal, open_words
from loop.review.reading.answers import LATEST
from loop.review.reading.assignment import check_reader, reading_order
from loop.run.store import Store

LONGEST_WORDS: Final = 500
"""Characters of the words of one marked error."""

MOST_ERRORS: Final = 60
"""Errors that one rater may mark in one pair."""

_RATING, _SHOWN, _AGREED = "rating", "shown", "agreed"
"""Names under which the store keeps a rating, that a judge's answer was shown, and
that one without an error was found right."""

_BLOCK = 256
"""Sealed ratings are filled up to a multiple of this, in bytes: nothing is told by
their length."""

_USUAL = parse_scale("1-5")


class RatedError(NamedTuple):
    """One error that a rater marks in a candidate."""

    category: str
    """Id of a category in ``errors.yaml``."""

    significance: str
    words: str
    """What it is about, in the rater's words: clinical text, may be empty."""


class PairRating(NamedTuple):
    """What one rater says of one pair."""

    points: float
    errors: tuple[RatedError, ...]
    """Empty where the rater found none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingTask:
    """A cohort of pairs, and what its raters are asked."""

    cohort: Cohort
    categories: ErrorCategories
    scale: PointScale
    """Of the points for the candidate as a whole."""

    words: WordSeal | None = None
    """What seals the ratings in the store; None where they need no seal."""

    @property
    def key(self) -> str:
        """What ratings are kept under: the name and digest of the cohort."""
        return f"{self.cohort.name}@{self.cohort.digest[:16]}"

    def order(self, rater: str) -> tuple[str, ...]:
        """Return the case ids in the order in which `rater` sees the pairs."""
        return reading_order(self.cohort, rater)


def read_rating_task(workspace: WorkspacePaths, cohort_name: str) -> RatingTask:
    """Return what raters of a cohort are asked.

    Points are on the scale of the ratings that the cohort has; without any, or where
    these are sealed, from 1 to 5.

    Raises
    ------
    DataError
        There is no such cohort, it holds single reports, or a file is not as recorded.
    """
    record = read_record(workspace, cohort_name)
    sealed = record.is_holdout or record.retired
    cohort = read_cohort(workspace, cohort_name, record=record)
    if not cohort.holds_pairs:
        raise DataError(
            f"cohort {cohort.name!r} holds single reports; what is rated are the "
            "candidates of pairs. Choose a cohort of pairs."
        )
    scale = _USUAL
    if record.ratings and not sealed:
        given = read_ratings_of(workspace, cohort_name)
        if OVERALL in given.dimensions:
            scale = given.points().scale
    return RatingTask(
        cohort=cohort,
        categories=read_errors(workspace.labels),
        scale=scale,
        words=open_words(workspace) if sealed else None,
    )


def keep_rating(
    store: Store,
    task: RatingTask,
    rater: str,
    case_id: str,
    rating: PairRating,
    now: Clock = utc_now,
) -> None:
    """Keep what `rater` says of a pair, in place of what they said before.

    Raises
    ------
    DataError
        The pair or a category is unknown, points are off the scale, or there is more
        to it than is kept; nothing was kept.
    ConflictError
        The rater was shown what a judge says of the pair; nothing was kept.
    StoreError
        The store cannot be written; nothing was kept.
    """
    who = check_reader(rater)
    _check(task, who, case_id, rating)
    data = {"points": rating.points, "errors": [list(one) for one in rating.errors]}
    text = json.dumps(data, ensure_ascii=False)
    with store.writing() as connection:
        if connection.execute(
            "SELECT 1 FROM readings WHERE cohort = ? AND reader = ? AND case_id = ? "
            "AND label = ?",
            [task.key, who, case_id, _SHOWN],
        ).fetchone():
            raise ConflictError(
                f"{who} was shown what a judge says of pair {quoted(case_id)}, so a "
                "rating of it would not be blind any more. Nothing was kept; go on "
                "with the next pair."
            )
        connection.execute(
            _INSERT, _row(task, (who, case_id, _RATING), text, format_time(now()))
        )


def _check(task: RatingTask, rater: str, case_id: str, rating: PairRating) -> None:
    if len(rating.errors) > MOST_ERRORS:
        raise DataError(
            f"{len(rating.errors)} errors are marked in one pair, at most "
            f"{MOST_ERRORS} are kept. Put those of one finding together."
        )
    longest = max((len(one.words) for one in rating.errors), default=0)
    if longest > LONGEST_WORDS:
        raise DataError(
            f"the words of an error have {longest:,} characters, and may have "
            f"{LONGEST_WORDS}. Name the finding."
        )
    given = _judgements(task, rater, {case_id: rating})
    check_judgements(task.cohort, given, task.categories)


_INSERT = (
    "INSERT INTO readings (cohort, reader, case_id, label, value, created, guideline) "
    "VALUES (?,?,?,?,?,?,?)"
)


def _row(
    task: RatingTask, place: tuple[str, str, str], text: str, created: str
) -> tuple[str, ...]:
    """Return the row of something said; `place` is rater, case and what it is."""
    if task.words is not None:
        filled = text + " " * (-len(text.encode("utf-8")) % _BLOCK)
        text = task.words.close(filled, (task.key, *place))
    return task.key, *place, text, created, task.categories.digest[:12]


def mark_shown(
    store: Store, task: RatingTask, rater: str, case_id: str, now: Clock = utc_now
) -> None:
    """Keep that `rater` is shown what a judge says of a pair: it is rated no more.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    _mark(store, task, (check_reader(rater), case_id, _SHOWN), "yes", now)


def _mark(
    store: Store, task: RatingTask, place: tuple[str, str, str], word: str, now: Clock
) -> None:
    """Keep a mark that is not kept yet; `place` is rater, case and what it is."""
    found = store.read(
        "SELECT value FROM readings WHERE cohort = ? AND reader = ? AND case_id = ? "
        "AND label = ? ORDER BY number DESC LIMIT 1",
        [task.key, *place],
    )
    if not found or (task.words is None and found[0][0] != word):
        with store.writing() as connection:
            connection.execute(_INSERT, _row(task, place, word, format_time(now())))


def mark_agreed(
    store: Store,
    task: RatingTask,
    rater: str,
    case_id: str,
    run: str,
    now: Clock = utc_now,
) -> None:
    """Keep that `rater` finds a run's answer right that lists no error of a pair.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    _mark(store, task, (check_reader(rater), case_id, _AGREED), run, now)


def agreed_pairs(
    store: Store, task: RatingTask, rater: str, run: str
) -> frozenset[str]:
    """Return the pairs whose answer without an error `rater` found right.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    where = LATEST.format(where="AND reader = ? AND label = ?")
    rows = store.read(where, [task.key, check_reader(rater), _AGREED])
    return frozenset(case_id for _, case_id, _, value, *_ in rows if value == run)


def shown_pairs(store: Store, task: RatingTask, rater: str) -> frozenset[str]:
    """Return the pairs of which `rater` was shown what a judge says.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    rows = store.read(
        "SELECT DISTINCT case_id FROM readings WHERE cohort = ? AND reader = ? "
        "AND label = ?",
        [task.key, check_reader(rater), _SHOWN],
    )
    return frozenset(case_id for (case_id,) in rows)


def read_own_ratings(
    store: Store, task: RatingTask, rater: str
) -> dict[str, PairRating]:
    """Return what `rater` says of each pair so far.

    Raises
    ------
    StoreError
        The store cannot be read, or a row was changed by something else.
    """
    return read_all_ratings(store, task, rater).get(check_reader(rater), {})


def read_all_ratings(
    store: Store, task: RatingTask, rater: str = ""
) -> dict[str, dict[str, PairRating]]:
    """Return what each rater says of each pair; of one rater if named.

    Raises
    ------
    StoreError
        The store cannot be read, or a row was changed by something else.
    """
    where, values = "AND label = ?", [task.key, _RATING]
    if rater:
        where, values = f"{where} AND reader = ?", [*values, check_reader(rater)]
    found: dict[str, dict[str, PairRating]] = {}
    for name, case_id, _, kept, *_ in store.read(LATEST.format(where=where), values):
        found.setdefault(name, {})[case_id] = _read(task, (name, case_id), kept)
    return found


def _read(task: RatingTask, place: tuple[str, str], kept: str) -> PairRating:
    text = kept
    if task.words is not None:
        text = task.words.open(kept, (task.key, *place, _RATING))
    try:
        data = json.loads(text)
        errors = tuple(RatedError(*map(str, one)) for one in data["errors"])
        return PairRating(float(data["points"]), errors)
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"a rating of pair {quoted(place[1])} cannot be read; something other than "
            "ranloop changed the store. Restore it from a backup."
        ) from error


def _judgements(
    task: RatingTask, rater: str, ratings: dict[str, PairRating]
) -> Judgements:
    """Return ratings as they are published."""
    points = [
        ExpertRating(case_id, rater, OVERALL, one.points, task.scale)
        for case_id, one in ratings.items()
    ]
    errors = [
        MarkedError(case_id, rater, *marked)
        for case_id, one in ratings.items()
        for marked in one.errors or ((),)
    ]
    return Judgements(tuple(points), tuple(errors))


class RatingsPublication(NamedTuple):
    """Whose ratings are published, and why."""

    raters: tuple[str, ...] = ()
    """Names; empty: everyone with a rating."""

    reason: str = ""
    """For the ledger; nothing is published without."""

    replace: bool = False
    """Whether raters may lose what they said earlier, of other pairs or in a file."""


def publish_ratings(
    workspace: WorkspacePaths,
    store: Store,
    task: RatingTask,
    wanted: RatingsPublication,
    actor: Actor,
) -> RatingsReport:
    """Make a version of the cohort's ratings of what raters say in the workbench.

    Whoever was published before has their newer ratings taken in place of the earlier
    ones, as long as no pair that they rated is lost.

    Raises
    ------
    DataError
        There is no reason, nothing to publish, or a rater would lose what they said
        and `wanted` does not allow it; nothing was changed.
    StoreError
        The store cannot be read.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    if not wanted.reason.strip():
        raise DataError(
            "a publication needs a reason: the ledger records it. Say why these "
            "ratings become part of the cohort now."
        )
    found = read_all_ratings(store, task)
    record = read_record(workspace, task.cohort.name)
    others: tuple[str, ...] = ()
    if record.ratings and task.cohort.role is not CohortRole.HOLDOUT:
        others = read_ratings_of(workspace, task.cohort.name).given.raters
    names = [check_reader(name) for name in wanted.raters] or sorted(found)
    nobody = [name for name in names if name not in found]
    if nobody or not names:
        who = ", ".join(map(quoted, nobody[:5])) or "anybody"
        raise DataError(
            f"cohort {task.cohort.name!r}: no rating of {who} to publish. Pairs are "
            "rated on the page Judges of the workbench (`ranloop review`)."
        )
    require_distinct(workspace, *sorted(found), others=others)
    if not wanted.replace:
        _refuse_loss(workspace, store, task, {name: found[name] for name in names})
    parts = [_judgements(task, name, found[name]) for name in sorted(set(names))]
    given = Judgements(
        tuple(one for part in parts for one in part.ratings),
        tuple(one for part in parts for one in part.errors),
    )
    how = RatingsTaking(actor=actor, replace=True, reason=wanted.reason)
    return add_ratings(workspace, task.cohort, given, how)


def _refuse_loss(
    workspace: WorkspacePaths,
    store: Store,
    task: RatingTask,
    found: dict[str, dict[str, PairRating]],
) -> None:
    """Refuse to take away what raters said elsewhere than in the workbench.

    What is sealed is not looked at: of a holdout nobody is published twice unasked.
    """
    record = read_record(workspace, task.cohort.name)
    if not record.ratings:
        return
    if task.cohort.role is CohortRole.HOLDOUT:
        raise DataError(
            f"holdout {task.cohort.name!r} has ratings, which are sealed: whether one "
            "would be lost cannot be seen. If all that these raters say is in the "
            f"workbench, publish with `ranloop cohort ratings {task.cohort.name} "
            "--collected --replace --why REASON`."
        )
    kept = read_ratings_of(workspace, task.cohort.name).given
    said = _ever_said(store, task)
    lost = {
        one.rater
        for one in kept.ratings
        if one.rater in found
        and one.points not in said.get((one.rater, one.case_id), ())
    }
    lost |= {
        one.rater
        for one in kept.errors
        if one.rater in found and (one.rater, one.case_id) not in said
    }
    if lost:
        raise DataError(
            f"{_listed(sorted(lost))} rated pairs before, in a file, and these ratings "
            "would be lost. Leave these raters out, let them rate under another name, "
            f"or replace theirs with `ranloop cohort ratings {task.cohort.name} "
            "--collected --replace --why REASON`."
        )


def _ever_said(store: Store, task: RatingTask) -> dict[tuple[str, str], set[float]]:
    """Return every rater's points of every pair, those that were replaced too."""
    rows = store.read(
        "SELECT reader, case_id, value FROM readings WHERE cohort = ? AND label = ?",
        [task.key, _RATING],
    )
    said: dict[tuple[str, str], set[float]] = {}
    for rater, case_id, kept in rows:
        points = _read(task, (rater, case_id), kept).points
        said.setdefault((rater, case_id), set()).add(points)
    return said


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names[:5]))
