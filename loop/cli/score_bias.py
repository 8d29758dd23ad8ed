"""The extractor's own errors, as they were measured on a dev cohort."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.stats.confusion import Confusion

if TYPE_CHECKING:
    from loop.cli.run_release import RunRequest
    from loop.release.load import Release
    from loop.run.store import RunRecord
    from loop.score.records import ExtractorFacts

AUTO = "auto"
_ROLE = "dev"


class Errors(NamedTuple):
    """Confusion counts of every label, and where they come from."""

    by_label: Mapping[str, Confusion]
    source: str
    """As a sentence."""


def read_errors(
    place: Workspace | None, wanted: RunRequest, facts: ExtractorFacts, bias: str
) -> Errors:
    """Return what the extractor got wrong on its dev cohort.

    Parameters
    ----------
    place
        Workspace with runs; None where there is none.
    wanted
        The extractor that was asked; a release brings its own measurement.
    facts
        Its digest and engine, which a run must share.
    bias
        ``"auto"``: as the release says, else the newest run on a dev cohort; or a run.

    Raises
    ------
    DataError
        There is no such measurement, or it is of another extractor or cohort.
    """
    found = _measured(place, wanted, facts, bias)
    # A reference that was made anew gives the same run other counts.
    counts = digest_json({label: [*one] for label, one in found.by_label.items()})
    return found._replace(source=f"{found.source} Digest of the counts: {counts}.")


def _measured(
    place: Workspace | None, wanted: RunRequest, facts: ExtractorFacts, bias: str
) -> Errors:
    """Return the errors that the release, or a run, has."""
    if bias == AUTO and wanted.release is not None:
        return _of_release(wanted.release, facts)
    if place is None:
        raise DataError(
            "--bias: the extractor's errors were measured nowhere, as there is no "
            "workspace here. Name a --release, or work in a workspace with a run of it."
        )
    return _of_run(place, facts, _newest(place, facts) if bias == AUTO else bias)


def _of_release(release: Release, facts: ExtractorFacts) -> Errors:
    """Return the counts that the release was frozen with."""
    engine = release.facts["engine"]
    if engine["digest"] != facts.identity:
        raise DataError(
            f"{release.name} was measured with {engine['name']}, and labels are read "
            f"by {facts.engine}: its errors are others, or its settings are. Name a "
            "run of this one with --bias RUN."
        )
    for evaluation in release.facts["evaluations"]:
        if evaluation["role"] == _ROLE:
            counts = {
                one["label"]: Confusion(one["tp"], one["fp"], one["fn"], one["tn"])
                for one in evaluation["labels"]
            }
            return Errors(
                counts,
                f"The extractor's errors are those of {release.name} on "
                f"{evaluation['cohort']}, {evaluation['cases']} cases.",
            )
    raise DataError(
        f"{release.name} was not measured on a dev cohort. Name a run of it with "
        "--bias RUN."
    )


def _newest(place: Workspace, facts: ExtractorFacts) -> str:
    """Return the newest finished run of the extractor on a dev cohort."""
    from loop.run.store import open_store

    with open_store(place) as store:
        runs = store.find_runs("finished IS NOT NULL")
    for run in runs:
        if _is_of(place, run, facts) and _is_dev(place, run.spec.cohort):
            return run.id
    raise DataError(
        f"there is no run of {facts.ref} with {facts.engine} on a dev cohort. Make "
        f"one with `ranloop run {facts.ref} --cohort NAME --engine {facts.engine}`, or "
        "name a run with --bias RUN."
    )


def _of_run(place: Workspace, facts: ExtractorFacts, ref: str) -> Errors:
    from loop.evaluate.evaluation import evaluate_run
    from loop.run.manifest import find_run

    run = find_run(place, ref)
    if not _is_of(place, run, facts):
        raise DataError(
            f"run {run.id} asked {run.spec.prompt} of {run.spec.engine}, and labels "
            f"are read by {facts.ref} with {facts.engine}: not the same, or not with "
            "the same settings. Name a run of that one."
        )
    if not _is_dev(place, run.spec.cohort):
        raise DataError(
            f"run {run.id} is on {run.spec.cohort}, which is not a dev cohort. Name a "
            "run on one."
        )
    found = evaluate_run(place, run.id)
    return Errors(
        {one.label: one.confusion for one in found.labels},
        f"The extractor's errors are those of run {run.id} on {found.cohort.name}, "
        f"{found.cases} cases.",
    )


def _is_of(place: Workspace, run: RunRecord, facts: ExtractorFacts) -> bool:
    """Whether a run asked the very extractor, its engine and settings included."""
    from loop.release.candidate import engine_facts
    from loop.run.manifest import read_manifest

    if (run.spec.prompt_digest, run.spec.engine) != (facts.digest, facts.engine):
        return False
    return bool(engine_facts(read_manifest(place, run.id))["digest"] == facts.identity)


def _is_dev(place: Workspace, cohort: str) -> bool:
    from loop.labels.cohort import list_cohorts, read_cohort_file

    known = cohort in list_cohorts(place)
    return known and read_cohort_file(place, cohort).role == _ROLE
