"""Scores of generated reports, by extractors that a version or a release names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, material
from loop.documents.numbers import listed
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.results import Evaluation
from loop.labels.cohort import list_cohorts, read_cohort_file
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.catalog import list_versions, read_aliases, read_known
from loop.release.candidate import engine_facts
from loop.release.facts import EvaluationFacts
from loop.release.judge_facts import JudgeReleaseFacts
from loop.release.load import (
    ENGINE,
    Release,
    RunRequest,
    engine_remark,
    find_request,
    name_engine,
)
from loop.release.released import list_releases
from loop.run.asking import EngineOptions
from loop.run.manifest import find_run, read_manifest
from loop.run.runner import Watch
from loop.run.store import RunRecord, open_store
from loop.score.experts.radpref import RadPref
from loop.score.experts.ratings import Ratings
from loop.score.extractor import Extractor
from loop.score.grading import grade, ungraded
from loop.score.joining import join_texts
from loop.score.metrics.base import MetricOptions
from loop.score.metrics.registry import ALL, find
from loop.score.metrics.score_sheet import ScoreSheet, run_metrics
from loop.score.records import ExtractorFacts, Joined, NoFinding
from loop.score.scoring import Counting, ReadPairs, ScoreDocument, build_document
from loop.stats.confusion import Confusion

AUTO = "auto"
_ROLE = "dev"

PROMPT = "extractor"
"""Prompt whose versions are taken where none is named."""

_ALIAS = "production"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorOptions:
    """What reads labels out of texts, and what is asked besides."""

    version: str | None = None
    """For example ``"extractor@v7"``; at most one of this and `release`. With neither,
    the newest release that was not withdrawn; without one, the alias ``production``,
    else the newest version of the prompt ``extractor``. Versions and releases that the
    workspace does not have are taken from what ships with ranloop."""

    release: str | None = None
    """Name of a release, for example ``"extractor-v7"``; it is verified first."""

    engine: str | None = None
    """Asked instead of the release's; default ``"rules"`` without a release."""

    also: str | None = None
    """A version, or the name of a release: a second extractor to compare with."""

    also_engine: str | None = None
    """Engine of the second one; default its release's, else ``"rules"``."""

    bias: str | None = None
    """``"auto"``, or a run: correct for the extractor's errors, as its release, or its
    newest run on a dev cohort, or that run, measured them."""

    asking: EngineOptions = field(default_factory=EngineOptions)
    """How the engines are asked; parameters of a release take precedence."""


DEFAULTS = ExtractorOptions()
COUNTING = Counting()


def score_reports(
    joined: Joined,
    workspace: WorkspacePaths | None = None,
    *,
    extractor: ExtractorOptions = DEFAULTS,
    counting: Counting = COUNTING,
    ratings: Ratings | None = None,
    watch: Watch | None = None,
) -> ScoreDocument:
    """Return the scores of generated reports: all that the verb ``score`` computes.

    `loop.score.documents.score_files.render_files` makes documents of them.

    Parameters
    ----------
    joined
        References and candidates, as texts or labels; made by `join_files`,
        `join_pairs` or `join_texts` of `loop.score.joining`.
    workspace
        Where versions, releases, runs and stored answers are; default what ships with
        ranloop.
    extractor
        What reads labels out of texts, and whether a second one does.
    counting
        Conventions, metrics and resampling.
    ratings
        Experts' points for some of the candidates.
    watch
        Wraps the texts that are asked about, to show progress.

    Raises
    ------
    DataError
        There is no such extractor, release, metric or measurement; labels are given
        and an extractor was named; or the ratings are of no candidate here.
    EngineError
        An engine is not available or failed as a whole.

    Examples
    --------
    >>> from loop.labels.taxonomy import read_taxonomy
    >>> joined = join_texts(
    ...     {"a": "Small left pleural effusion.", "b": "Cardiomegaly."},
    ...     {"a": "Small left pleural effusion.", "b": "Normal chest."},
    ...     read_taxonomy(material(None).labels),
    ... )
    >>> document = score_reports(
    ...     joined,
    ...     extractor=ExtractorOptions(release="extractor-v11"),
    ...     counting=Counting(metrics=()),
    ... )
    >>> document.score.systems[0].ran_score.value
    0.3333333333333333
    """
    read = read_labels(
        joined, workspace, extractor, counting.conventions.no_finding, watch=watch
    )
    taxonomy = read_taxonomy(material(workspace).labels)
    return build_document(replace(read, ratings=ratings), taxonomy, counting)


class ExtractorChoice(NamedTuple):
    """An extractor, and why it is that one."""

    request: RunRequest
    why: str
    """Empty where it was named."""


def read_labels(
    joined: Joined,
    workspace: WorkspacePaths | None = None,
    options: ExtractorOptions = DEFAULTS,
    no_finding: NoFinding = NoFinding.RAN,
    *,
    watch: Watch | None = None,
) -> ReadPairs:
    """Return both sides as labels; parameters and errors as of `score_reports`."""
    taxonomy = read_taxonomy(material(workspace).labels)
    if all(side.texts is None for side in (joined.reference, *joined.systems)):
        _refuse_options(options)
        graded = grade(joined, taxonomy, None, no_finding)
        return ReadPairs(joined=joined, graded=graded)
    if options.bias is not None:
        _refuse_one_sided(joined)
    choice, asking = choose_extractor(workspace, options), options.asking
    remarks = [choice.why] if choice.why else []
    errors = second = None
    # All that was named is looked up before a text is read; engines start with the
    # first text, so that two of them never run at once.
    other = None if options.also is None else _find_second(workspace, options)
    with _open_second(workspace, other, asking) as again:
        with open_extractor(workspace, choice.request, asking) as first:
            facts = first.facts
            if options.bias is not None:
                found = read_errors(workspace, choice.request, facts, options.bias)
                errors = found.by_label
            asking.tell(f"labels read by {facts.ref}, engine {facts.engine}")
            graded = grade(joined, taxonomy, first, no_finding, watch=watch)
            remarks += engine_remarks(choice.request, first)
        if errors is not None:
            remarks.append(found.source)
        if again is not None and other is not None:
            asking.tell(f"read again by {again.facts.ref}, engine {again.facts.engine}")
            second = grade(joined, taxonomy, again, no_finding, watch=watch)
            remarks += engine_remarks(other, again)
    return ReadPairs(
        joined=joined,
        graded=graded,
        second=second,
        errors=errors,
        remarks=tuple(remarks),
    )


def choose_extractor(
    workspace: WorkspacePaths | None, options: ExtractorOptions
) -> ExtractorChoice:
    """Return the extractor that was named, else the newest release, else an alias.

    Raises
    ------
    DataError
        There is none, both are named, or the release does not hold.
    """
    version, release = options.version, options.release
    if version is not None and release is not None:
        raise DataError("name a version or a release, not both")
    here, engine = material(workspace), options.engine
    if version is not None or release is not None:
        return ExtractorChoice(find_request(here, version, release, engine=engine), "")
    held = [
        one
        for one in list_releases(here)
        if one.ref.partition("@")[0] == PROMPT and one.withdrawal is None
    ]
    if held:
        name = held[-1].name
        why = f"Extractor: {name}, the newest release that was not withdrawn."
        return ExtractorChoice(find_request(here, release=name, engine=engine), why)
    aliased = read_aliases(here, PROMPT).get(_ALIAS)
    if aliased is None and not list_versions(here, PROMPT):
        shipped = read_known(here, f"{PROMPT}@latest").version
        why = f"Extractor: {shipped.ref} as it ships with ranloop; there is none here."
        return ExtractorChoice(RunRequest(shipped, engine or ENGINE, {}), why)
    ref = f"{PROMPT}@{aliased or 'latest'}"
    what = f"the alias {_ALIAS}" if aliased else "the newest version"
    why = f"Extractor: {what} of {PROMPT}; there is no release of it here."
    return ExtractorChoice(find_request(here, ref, engine=engine), why)


def open_extractor(
    workspace: WorkspacePaths | None, request: RunRequest, asking: EngineOptions
) -> Extractor:
    """Return the extractor of `request`; its own parameters go before `asking`'s."""
    return Extractor.open(
        workspace,
        request.prompt,
        request.engine,
        replace(asking, **request.parameters),
        release=request.release.name if request.release else "",
    )


@contextmanager
def _open_second(
    workspace: WorkspacePaths | None, request: RunRequest | None, asking: EngineOptions
) -> Iterator[Extractor | None]:
    """Open an extractor where there is one to open."""
    if request is None:
        yield None
        return
    with open_extractor(workspace, request, asking) as extractor:
        yield extractor


def _find_second(
    workspace: WorkspacePaths | None, options: ExtractorOptions
) -> RunRequest:
    """Return the second extractor: a release by its name, else a version."""
    here, engine, named = material(workspace), options.also_engine, options.also
    held = (*list_releases(here), *list_releases(material(None)))
    if named in [one.name for one in held]:
        return find_request(here, release=named, engine=engine)
    return find_request(here, named, engine=engine)


def _refuse_options(options: ExtractorOptions) -> None:
    """Refuse options that would do nothing: labels are given."""
    named = {
        "--extractor": options.version,
        "--release": options.release,
        "--engine": options.engine,
        "--also": options.also,
        "--bias": options.bias,
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


def engine_remarks(request: RunRequest, extractor: Extractor) -> list[str]:
    """Return what a reader must know of the engine that was asked.

    That it was not held to the schema, or is not the one of the release.
    """
    told = []
    if json.loads(extractor.facts.asked)["identity"].get("constrained") is False:
        told.append(
            f"{extractor.facts.engine} was not held to the JSON schema of an answer "
            "(--allow-unconstrained)."
        )
    release = request.release
    if release is None or extractor.facts.identity == release.facts.engine.digest:
        return told
    return [*told, engine_remark(release)]


class MeasuredErrors(NamedTuple):
    """Confusion counts of every label, and where they come from."""

    by_label: Mapping[str, Confusion]
    source: str
    """As a sentence."""


def read_errors(
    place: WorkspacePaths | None, request: RunRequest, facts: ExtractorFacts, bias: str
) -> MeasuredErrors:
    """Return what the extractor got wrong on its dev cohort.

    Parameters
    ----------
    place
        Paths of the workspace with runs; None where there is none.
    request
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
    found = _measured(place, request, facts, bias)
    # A reference that was made anew gives the same run other counts.
    counts = digest_json({label: [*one] for label, one in found.by_label.items()})
    return found._replace(source=f"{found.source} Digest of the counts: {counts}.")


def _measured(
    place: WorkspacePaths | None, request: RunRequest, facts: ExtractorFacts, bias: str
) -> MeasuredErrors:
    """Return the errors that the release, or a run, has."""
    if bias == AUTO and request.release is not None:
        return _of_release(request.release, facts)
    if place is None:
        raise DataError(
            "--bias: the extractor's errors were measured nowhere, as there is no "
            "workspace here. Name a --release, or work in a workspace with a run of it."
        )
    return _of_run(place, facts, _newest(place, facts) if bias == AUTO else bias)


def _of_release(release: Release, facts: ExtractorFacts) -> MeasuredErrors:
    """Return the counts that the release was frozen with."""
    if isinstance(release.facts, JudgeReleaseFacts):
        raise DataError(
            f"{release.name} is a judge and reads no labels. Name the release of an "
            "extractor."
        )
    engine = release.facts.engine
    if engine.digest != facts.identity:
        asked = json.loads(facts.asked or "{}").get("identity", {})
        raise DataError(
            f"{release.name} was measured with "
            f"{name_engine(engine.name, engine.identity)}, and labels are read by "
            f"{name_engine(facts.engine, asked)}: its errors are others, or its "
            "settings are. Name a run of this one with --bias RUN."
        )
    for evaluation in release.facts.evaluations:
        if evaluation.role == _ROLE:
            return _measured_on(
                evaluation,
                f"The extractor's errors are those of {release.name} on "
                f"{evaluation.cohort}, {evaluation.cases} cases.",
            )
    raise DataError(
        f"{release.name} was not measured on a dev cohort. Name a run of it with "
        "--bias RUN."
    )


def _measured_on(found: EvaluationFacts | Evaluation, source: str) -> MeasuredErrors:
    """Return the counts of the labels whose errors the reference can tell."""
    without = [one.name for one in found.labels if not one.comparable]
    if without:
        names = ", ".join(without)
        source += f" Not known for {names}: the reference there cannot judge it."
    counts = {one.label: one.confusion for one in found.comparable}
    return MeasuredErrors(counts, source)


def _newest(place: WorkspacePaths, facts: ExtractorFacts) -> str:
    """Return the newest finished run of the extractor on a dev cohort."""
    with open_store(place) as store:
        runs = store.find_runs(finished=True)
    for run in runs:
        if run.part is not None:
            continue
        if _is_of(place, run, facts) and _is_dev(place, run.spec.cohort):
            return run.id
    raise DataError(
        f"there is no run of {facts.ref} with {facts.engine} on a dev cohort. Make "
        f"one with `ranloop run {facts.ref} --cohort NAME --engine {facts.engine}`, or "
        "name a run with --bias RUN."
    )


def _of_run(place: WorkspacePaths, facts: ExtractorFacts, ref: str) -> MeasuredErrors:
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
    return _measured_on(
        found,
        f"The extractor's errors are those of run {run.id} on {found.cohort.name}, "
        f"{found.cases} cases.",
    )


def _is_of(place: WorkspacePaths, run: RunRecord, facts: ExtractorFacts) -> bool:
    """Whether a run asked the very extractor, its engine and settings included."""
    if (run.spec.prompt_digest, run.spec.engine) != (facts.digest, facts.engine):
        return False
    return engine_facts(read_manifest(place, run.id)).digest == facts.identity


def _is_dev(place: WorkspacePaths, cohort: str) -> bool:
    known = cohort in list_cohorts(place)
    return known and read_cohort_file(place, cohort).role == _ROLE


class ScoredTexts(NamedTuple):
    """What the metrics say of candidates."""

    sheet: ScoreSheet
    notes: tuple[str, ...]
    extractor: ExtractorFacts | None = None
    """What read labels; None where no metric needs them."""


def score_radpref(
    rated: RadPref,
    workspace: WorkspacePaths | None = None,
    *,
    metrics: tuple[str, ...] = (),
    extractor: ExtractorOptions = DEFAULTS,
    bertscore_model: Path | None = None,
    watch: Watch | None = None,
) -> ScoredTexts:
    """Return every metric's value of every candidate of RadPref; see `score_texts`."""
    taxonomy = read_taxonomy(material(workspace).labels)
    joined = join_texts(
        rated.references, rated.candidates, taxonomy, patients=rated.patients
    )
    return score_texts(
        joined,
        taxonomy,
        workspace,
        metrics=metrics,
        extractor=extractor,
        bertscore_model=bertscore_model,
        watch=watch,
    )


def score_texts(
    joined: Joined,
    taxonomy: Taxonomy,
    workspace: WorkspacePaths | None = None,
    *,
    metrics: tuple[str, ...] = (),
    extractor: ExtractorOptions = DEFAULTS,
    bertscore_model: Path | None = None,
    watch: Watch | None = None,
) -> ScoredTexts:
    """Return every metric's value of every candidate.

    Labels are read, which may ask a model for hours, only for metrics of labels.

    Parameters
    ----------
    joined
        The texts of both sides.
    metrics
        Names or families; default all.
    extractor, watch
        As of `score_reports`.
    bertscore_model
        Folder of a local encoder.

    Raises
    ------
    DataError
        There is no such metric or extractor, or one is named and no metric needs it.
    EngineError
        The engine cannot read the texts.
    """
    names = metrics or (ALL,)
    remarks: tuple[str, ...] = ()
    facts = None
    if reads_labels(metrics):
        read = read_labels(joined, workspace, extractor, watch=watch)
        graded, remarks = read.graded, read.remarks
        facts = graded.extractor
    elif (extractor.version, extractor.release, extractor.engine) != (None,) * 3:
        raise DataError(
            "--extractor, --release and --engine read labels, which no metric named "
            "here needs: leave them out, or name a metric of labels"
        )
    else:
        graded = ungraded(joined, taxonomy)
    extractor.asking.tell("scoring the texts")
    options = MetricOptions(bertscore_model=bertscore_model)
    # The sheet's own intervals are of systems; here only the values per case count.
    sheet = run_metrics(joined, graded, taxonomy, names, options, resamples=1)
    notes = (*joined.notes, *remarks)
    left = len(joined.empty_references)
    if left:
        notes += (f"{left} references without a word are left out.",)
    return ScoredTexts(sheet, notes, facts)


def reads_labels(metrics: Sequence[str]) -> bool:
    """Whether one of `metrics`, default all, needs labels.

    Raises
    ------
    DataError
        There is no such metric or family.
    """
    return any(one.family == "labels" for one in find(metrics or (ALL,)))
