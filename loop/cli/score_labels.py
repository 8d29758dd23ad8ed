"""How ``score`` reads labels: by which extractor, and what that one gets wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import typer

from loop.cli.console import ProgressBar, material, note
from loop.cli.run_release import RunRequest, find_wanted
from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.documents.numbers import listed
from loop.evaluate.evaluation import evaluate_run
from loop.labels.cohort import list_cohorts, read_cohort_file
from loop.labels.taxonomy import Taxonomy
from loop.prompts.catalog import list_versions, read_aliases
from loop.release.candidate import engine_facts
from loop.release.load import Release
from loop.release.released import list_releases
from loop.run.asking import EngineOptions
from loop.run.manifest import find_run, read_manifest
from loop.run.store import RunRecord, open_store
from loop.score.extractor import Extractor
from loop.score.grading import grade
from loop.score.records import ExtractorFacts, Joined, NoFinding
from loop.score.scoring import Read
from loop.stats.confusion import Confusion

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
    engine = release.facts.engine
    if engine.digest != facts.identity:
        raise DataError(
            f"{release.name} was measured with {engine.name}, and labels are read "
            f"by {facts.engine}: its errors are others, or its settings are. Name a "
            "run of this one with --bias RUN."
        )
    for evaluation in release.facts.evaluations:
        if evaluation.role == _ROLE:
            counts = {one.label: one.confusion for one in evaluation.labels}
            return Errors(
                counts,
                f"The extractor's errors are those of {release.name} on "
                f"{evaluation.cohort}, {evaluation.cases} cases.",
            )
    raise DataError(
        f"{release.name} was not measured on a dev cohort. Name a run of it with "
        "--bias RUN."
    )


def _newest(place: Workspace, facts: ExtractorFacts) -> str:
    """Return the newest finished run of the extractor on a dev cohort."""
    with open_store(place) as store:
        runs = store.find_runs(finished=True)
    for run in runs:
        if _is_of(place, run, facts) and _is_dev(place, run.spec.cohort):
            return run.id
    raise DataError(
        f"there is no run of {facts.ref} with {facts.engine} on a dev cohort. Make "
        f"one with `ranloop run {facts.ref} --cohort NAME --engine {facts.engine}`, or "
        "name a run with --bias RUN."
    )


def _of_run(place: Workspace, facts: ExtractorFacts, ref: str) -> Errors:
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
    if (run.spec.prompt_digest, run.spec.engine) != (facts.digest, facts.engine):
        return False
    return engine_facts(read_manifest(place, run.id)).digest == facts.identity


def _is_dev(place: Workspace, cohort: str) -> bool:
    known = cohort in list_cohorts(place)
    return known and read_cohort_file(place, cohort).role == _ROLE


PROMPT = "extractor"
"""Prompt whose versions are taken where none is named."""

_ALIAS = "production"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorOptions:
    """What the command line says of extractors."""

    version: str | None
    release: str | None
    engine: str | None
    also: str | None
    """A version, or the name of a release."""

    also_engine: str | None
    bias: str | None
    asking: EngineOptions


class ExtractorChoice(NamedTuple):
    """An extractor, and why it is that one."""

    wanted: RunRequest
    why: str
    """Empty where it was named."""


def read_labels(
    place: Workspace | None,
    joined: Joined,
    taxonomy: Taxonomy,
    wish: ExtractorOptions,
    no_finding: NoFinding,
    *,
    quiet: bool,
) -> Read:
    """Return both sides as labels, with all that was asked about extractors.

    Raises
    ------
    DataError
        There is no such extractor, or labels are given and an extractor was named.
    EngineError
        An engine is not available or failed as a whole.
    """
    if all(side.texts is None for side in (joined.reference, *joined.systems)):
        _refuse_extractors(wish)
        return Read(joined=joined, graded=grade(joined, taxonomy, None, no_finding))
    if wish.bias is not None:
        _refuse_one_sided(joined)
    choice = choose(place, wish)
    asking = replace(wish.asking, **choice.wanted.parameters)
    remarks = [choice.why] if choice.why else []
    errors = second = None
    # All that was named is looked up before a text is read; engines start with the
    # first text, so that two of them never run at once.
    also = None if wish.also is None else _find_second(place, wish.also, wish)
    with _opened(place, also, wish.asking) as other:
        with _open(place, choice.wanted, asking) as extractor:
            if wish.bias is not None:
                found = read_errors(place, choice.wanted, extractor.facts, wish.bias)
                errors = found.by_label
            note(
                f"labels read by {extractor.facts.ref}, engine {extractor.facts.engine}"
            )
            track = ProgressBar("texts", quiet=quiet).track
            graded = grade(joined, taxonomy, extractor, no_finding, watch=track)
            remarks += engine_remarks(choice.wanted, extractor)
        if errors is not None:
            remarks.append(found.source)
        if other is not None and also is not None:
            note(f"read again by {other.facts.ref}, engine {other.facts.engine}")
            track = ProgressBar("texts", quiet=quiet).track
            second = grade(joined, taxonomy, other, no_finding, watch=track)
            remarks += engine_remarks(also, other)
    return Read(
        joined=joined,
        graded=graded,
        second=second,
        errors=errors,
        remarks=tuple(remarks),
    )


def choose(place: Workspace | None, wish: ExtractorOptions) -> ExtractorChoice:
    """Return the extractor that was named, else the newest release, else an alias.

    Raises
    ------
    DataError
        There is none, or the release does not hold.
    typer.BadParameter
        A version and a release were named.
    """
    if wish.version is not None and wish.release is not None:
        raise typer.BadParameter("name a version or a release, not both")
    here = material(place)
    given: Mapping[str, Any] = {}
    if wish.version is not None or wish.release is not None:
        return ExtractorChoice(
            find_wanted(here, wish.version, wish.release, wish.engine, given), ""
        )
    held = [
        one
        for one in list_releases(here)
        if one.ref.partition("@")[0] == PROMPT and one.withdrawal is None
    ]
    if held:
        name = held[-1].name
        why = f"Extractor: {name}, the newest release that was not withdrawn."
        return ExtractorChoice(find_wanted(here, None, name, wish.engine, given), why)
    aliased = read_aliases(here, PROMPT).get(_ALIAS)
    if aliased is None and not list_versions(here, PROMPT):
        raise DataError(
            f"there is no prompt {PROMPT!r} in {here.root}. Name an extractor with "
            "--extractor VERSION or --release NAME, or give labels."
        )
    ref = f"{PROMPT}@{aliased or 'latest'}"
    what = f"the alias {_ALIAS}" if aliased else "the newest version"
    why = f"Extractor: {what} of {PROMPT}; there is no release of it here."
    return ExtractorChoice(find_wanted(here, ref, None, wish.engine, given), why)


def _open(
    place: Workspace | None, wanted: RunRequest, asking: EngineOptions
) -> Extractor:
    release = wanted.release.name if wanted.release else ""
    return Extractor.open(place, wanted.prompt, wanted.engine, asking, release=release)


def _refuse_extractors(wish: ExtractorOptions) -> None:
    """Refuse options that would do nothing: labels are given."""
    named = {
        "--extractor": wish.version,
        "--release": wish.release,
        "--engine": wish.engine,
        "--also": wish.also,
        "--bias": wish.bias,
    }
    for option, value in named.items():
        if value is not None:
            raise DataError(
                f"{option}: all files give labels, so nothing is read by an extractor. "
                "Leave it out, or give texts."
            )


def _refuse_one_sided(joined: Joined) -> None:
    """Refuse to correct a reading that one side did not go through."""
    sides = (joined.reference, *joined.systems)
    given = [one.name for one in sides if one.texts is None]
    if given:
        raise DataError(
            f"--bias: {listed(given, 3)} gives labels, and the correction is for an "
            "extractor that read both sides. Leave it out, or give texts."
        )


def engine_remarks(wanted: RunRequest, extractor: Extractor) -> list[str]:
    """Return what a reader must know of the engine that was asked.

    That it was not held to the schema, or is not the one of the release.
    """
    told = []
    if json.loads(extractor.facts.asked)["identity"].get("constrained") is False:
        told.append(
            f"{extractor.facts.engine} was not held to the JSON schema of an answer "
            "(--allow-unconstrained)."
        )
    release = wanted.release
    if release is None or extractor.facts.identity == release.facts.engine.digest:
        return told
    return [
        *told,
        f"This is not the engine that {release.name} was released with "
        f"({release.facts.engine.name}, or its settings): what the release says "
        "of its answers does not hold for these.",
    ]


def _find_second(
    place: Workspace | None, named: str, wish: ExtractorOptions
) -> RunRequest:
    """Return the second extractor: a release by its name, else a version."""
    here = material(place)
    released = named in [one.name for one in list_releases(here)]
    version, release = (None, named) if released else (named, None)
    return find_wanted(here, version, release, wish.also_engine, {})


@contextmanager
def _opened(
    place: Workspace | None, wanted: RunRequest | None, asking: EngineOptions
) -> Iterator[Extractor | None]:
    """Open an extractor where there is one to open."""
    if wanted is None:
        yield None
        return
    with _open(place, wanted, replace(asking, **wanted.parameters)) as extractor:
        yield extractor
