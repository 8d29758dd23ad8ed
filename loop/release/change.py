"""What a release changes against what is in use: wording, and answers that got worse.

The words are those of a predetermined change control plan: what was modified, of which
class, and what it did to every label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.evaluate.changes import Comparison, LabelChange
from loop.evaluate.compare import compare_runs
from loop.prompts.catalog import find_parent, read_version
from loop.prompts.diff import Change, VersionDiff, diff_data, diff_versions
from loop.prompts.version import PromptVersion
from loop.release.released import Released, current_release
from loop.run.manifest import find_run
from loop.run.spec import RunSpec
from loop.run.store import open_store

_CLASSES: Mapping[str, str] = {
    "term": "R1",
    "exclusion": "R1",
    "definition": "R2",
    "clarification": "R2",
    "implies": "R2",
    "name": "R2",
    "order": "R2",
    "exemplar": "R3",
}


class Base(NamedTuple):
    """What a candidate is held against: the release in use, else its parent."""

    release: Released | None
    version: PromptVersion | None
    """None for the first version of a prompt."""


def find_base(workspace: Workspace, version: PromptVersion) -> Base:
    """Return the release of the prompt in use, else the parent of `version`.

    Raises
    ------
    DataError
        The release in use is of a version that is no longer here.
    """
    release = current_release(workspace, version.name)
    if release is not None and release.digest != version.digest:
        return Base(release, read_version(workspace, release.ref))
    return Base(None, find_parent(workspace, version))


def change_facts(
    workspace: Workspace, version: PromptVersion, base: Base, run_id: str
) -> dict[str, Any]:
    """Return what `version` changes against `base`, in words and in answers.

    The answers are compared on the dev cohort of run `run_id`, where the version it is
    held against was asked the same with the same engine; else nothing is listed.
    """
    diff = diff_versions(base.version, version) if base.version else None
    effect = _effect(_compare(workspace, base.version, run_id))
    return {
        "previous": base.release.name if base.release else "",
        "from_ref": base.version.ref if base.version else "",
        "classes": list(_classes(diff)) if diff else [],
        "labels": _labels(diff) if diff else [],
        "diff_digest": digest_json(diff_data(diff)) if diff else "",
        **effect,
        "rollback": _rollback(base),
    }


def _rollback(base: Base) -> str:
    if base.release:
        return base.release.name
    return base.version.ref if base.version else ""


def _classes(diff: VersionDiff) -> Iterable[str]:
    kinds = {change.kind for guide in diff.guides for change in guide.changes}
    yield from sorted({_CLASSES.get(kind, "R2") for kind in kinds})
    if diff.templates:
        yield "template"
    if diff.settings:
        yield "plan"


def _labels(diff: VersionDiff) -> list[dict[str, Any]]:
    return [
        {
            "label": guide.label,
            "added": _signed(guide.changes, "+"),
            "removed": _signed(guide.changes, "-"),
            "changed": 0,
        }
        for guide in diff.guides
    ]


def _signed(changes: Sequence[Change], sign: str) -> list[str]:
    return [f"{one.kind}: {one.text}" for one in changes if one.sign == sign]


def _compare(
    workspace: Workspace, before: PromptVersion | None, run_id: str
) -> Comparison | None:
    """Compare with the newest run of `before` that asked the same, if there is one."""
    if before is None:
        return None
    wanted = find_run(workspace, run_id).spec
    with open_store(workspace) as store:
        finished = store.find_runs("finished IS NOT NULL")
    found = next(
        (
            run.id
            for run in finished
            if run.spec.prompt_digest == before.digest and _same(run.spec, wanted)
        ),
        None,
    )
    if found is None:
        return None
    try:
        return compare_runs(workspace, found, run_id)
    except DataError:
        # An old run may lack what a comparison needs; the release does not need it.
        return None


def _same(one: RunSpec, other: RunSpec) -> bool:
    return (
        one.cohort_digest == other.cohort_digest
        and one.engine == other.engine
        and one.parameters == other.parameters
        and one.limit == other.limit
        and one.draw == other.draw
    )


def _effect(comparison: Comparison | None) -> dict[str, Any]:
    rows = comparison.labels if comparison else ()
    judged = [row for row in rows if row.judged]
    return {
        "improved": [row.label for row in judged if _balance(row) > 0],
        "unchanged": [row.label for row in judged if _balance(row) == 0],
        "worse": [_worse(row) for row in judged if _balance(row) < 0],
    }


def _balance(row: LabelChange) -> int:
    return row.accuracy.difference.gained - row.accuracy.difference.lost


def _worse(row: LabelChange) -> dict[str, Any]:
    interval = row.accuracy.interval
    return {
        "label": row.label,
        "before": row.f1_before,
        "after": row.f1_after,
        "lost": row.accuracy.difference.lost,
        "gained": row.accuracy.difference.gained,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
    }
