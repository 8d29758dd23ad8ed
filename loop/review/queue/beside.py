"""What stands beside a failing pair: answers of other runs, and readers' votes."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.core.records import Outcome, Status, Value
from loop.labels.cohort import Cohort
from loop.labels.recorded import read_record
from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.labels.votes import votes_path
from loop.review.queue.records import OtherAnswer
from loop.run.store import RunRecord, Store

Pair = tuple[str, str]

OTHERS = 4
"""Runs that are read besides the one under review."""


def choose_others(store: Store, record: RunRecord) -> tuple[RunRecord, ...]:
    """Return the finished runs to compare with: at most `OTHERS`.

    Same prompt name, cases and engine. First the repeats of the same version, then
    the newest run of each other version or draft, newest first.
    """
    spec = record.spec
    name = spec.prompt.partition("@")[0]
    repeats: dict[int, RunRecord] = {}
    versions: dict[str, RunRecord] = {}
    for run in store.find_runs("finished IS NOT NULL"):
        other = run.spec
        same = (spec.cohort, spec.cohort_digest, spec.engine, spec.limit)
        if (other.cohort, other.cohort_digest, other.engine, other.limit) != same:
            continue
        if other.prompt_digest == spec.prompt_digest:
            if other.draw != spec.draw:
                repeats.setdefault(other.draw, run)
        elif other.prompt.partition("@")[0] == name and not other.draw:
            versions.setdefault(other.prompt_digest, run)
    by_draw = [repeats[draw] for draw in sorted(repeats)]
    return (*by_draw, *versions.values())[:OTHERS]


def read_others(
    store: Store, runs: Sequence[RunRecord], pairs: Collection[Pair], taxonomy: Taxonomy
) -> Mapping[Pair, tuple[OtherAnswer, ...]]:
    """Return what each of the runs said of each pair, in the order of `runs`."""
    wanted: dict[str, list[str]] = {}
    for case_id, label in pairs:
        wanted.setdefault(case_id, []).append(label)
    found: dict[Pair, list[OtherAnswer]] = {}
    for run in runs:
        facts = (run.id, run.spec.prompt, run.spec.draw)
        for outcome in store.read_outcomes(run.id):
            for label in wanted.get(outcome.item_id, ()):
                answer = OtherAnswer(*facts, _said(outcome, label, taxonomy))
                found.setdefault((outcome.item_id, label), []).append(answer)
    return {pair: tuple(answers) for pair, answers in found.items()}


def _said(outcome: Outcome, label: str, taxonomy: Taxonomy) -> Value | None:
    if outcome.status is not Status.ANSWERED:
        return None
    if label == NO_FINDING:
        values = {key: Value(str(one.value)) for key, one in outcome.fields.items()}
        return taxonomy.derive_no_finding(values)
    answer = outcome.fields.get(label)
    return None if answer is None else Value(str(answer.value))


def count_votes(
    workspace: Workspace, cohort: Cohort, pairs: Collection[Pair]
) -> Mapping[Pair, tuple[tuple[Value, int], ...]]:
    """Return how many readers said what of each pair; empty for a cohort without.

    The file is believed only as the ledger recorded it, so it has the one form that
    ranloop writes.

    Raises
    ------
    DataError
        The votes were changed or removed.
    """
    path, recorded = (
        votes_path(workspace, cohort.name),
        read_record(workspace, cohort.name).votes,
    )
    if recorded is None:
        return {}
    raw = path.read_bytes() if path.is_file() else b""
    if digest_bytes(raw) != recorded:
        raise DataError(
            f"{path} is not what the ledger recorded ({recorded[:12]}). Restore it "
            "from version control or a backup."
        )
    rows = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""))
    next(rows, None)
    wanted = frozenset(pairs)
    counts: dict[Pair, Counter[str]] = {}
    for _, case_id, label, value in rows:
        if (case_id, label) in wanted:
            counts.setdefault((case_id, label), Counter())[value] += 1
    return {pair: _in_order(said) for pair, said in counts.items()}


def _in_order(said: Mapping[str, int]) -> tuple[tuple[Value, int], ...]:
    return tuple((value, said[value.value]) for value in Value if value.value in said)
