"""One run scored: read, measured, judged, with the caveats its reader must know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Status, UncertainAnswers
from loop.evaluate.align import AlignedPairs, join_draws
from loop.evaluate.compare import find_engine_changes
from loop.evaluate.flips import Stability
from loop.evaluate.inputs import Inputs
from loop.evaluate.measure import (
    measure_averages,
    measure_labels,
    measure_views,
    resampling_units,
)
from loop.evaluate.protocol import find_registration
from loop.evaluate.results import Evaluation, Method
from loop.evaluate.stability import (
    describe_stability,
    measure_stability,
    read_draws,
)
from loop.labels.sealing import Opening
from loop.prompts.catalog import find_parent, read_version
from loop.run.asking import name_no_finding
from loop.run.manifest import find_run, read_manifest
from loop.run.spec import RunSpec
from loop.run.store import open_store


def find_parent_run(workspace: WorkspacePaths, run_ref: str) -> str | None:
    """Return the id of the newest finished run of the parent version, if there is one.

    It must have asked the same cases with the same engine, so that only the prompt
    differs. A run by another model under the same name is taken only if there is no
    other; a comparison with it says so. None too when the version or its parent is no
    longer among the prompts.

    Raises
    ------
    DataError
        The run itself does not exist or did not finish.
    StoreError
        The store cannot be read.
    """
    record = find_run(workspace, run_ref)
    spec = record.spec
    try:
        parent = find_parent(workspace, read_version(workspace, spec.prompt))
    except DataError:
        return None
    if parent is None:
        return None
    with open_store(workspace) as store:
        finished = store.find_runs(finished=True)
    found = [
        run.id
        for run in finished
        if run.spec.prompt_digest == parent.digest and _same_work(run.spec, spec)
    ]
    manifest = read_manifest(workspace, record.id) if found else {}
    same = (
        run
        for run in found
        if not find_engine_changes(read_manifest(workspace, run), manifest)
    )
    return next(same, next(iter(found), None))


def _same_work(one: RunSpec, other: RunSpec) -> bool:
    """Whether two runs differ in their prompts at most."""
    return (one.cohort_digest, one.engine, dict(one.parameters), one.limit) == (
        other.cohort_digest,
        other.engine,
        dict(other.parameters),
        other.limit,
    )


def evaluate_run(
    workspace: WorkspacePaths,
    run_ref: str = "latest",
    *,
    reference: int | None = None,
    opening: Opening | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Evaluation:
    """Score a run against its cohort's reference under the workspace's protocol.

    Where a model with chance in it was asked several times, every draw counts alike,
    whichever is named. Nothing is recorded; see `loop.evaluate.recording`.

    Parameters
    ----------
    run_ref
        Run id, unique prefix, ``latest`` or ``latest:<prompt>``.
    reference
        Number of the reference version; None for the newest, so that an old run can
        be scored again after a correction.
    opening
        What lets the labels of a holdout be read; see `loop.labels.sealing`.

    Raises
    ------
    SealedError
        The cohort is a holdout, and `opening` does not open it for this run.
    DataError
        The run, its cohort, the reference or the protocol is missing or unfit.
    """
    inputs = read_draws(workspace, run_ref, reference=reference, opening=opening)
    evaluation = evaluate_inputs(inputs, resamples=resamples, seed=seed)
    entry = find_registration(workspace, evaluation.protocol_digest)
    evaluation = replace(evaluation, registered=entry.time if entry else "")
    stability = measure_stability(workspace, inputs)
    return evaluation if stability is None else _with(evaluation, stability)


def _with(evaluation: Evaluation, stability: Stability) -> Evaluation:
    """Return `evaluation` with the flips of every label."""
    pairs = zip(evaluation.labels, stability.labels, strict=True)
    labels = tuple(replace(result, flips=flips) for result, flips in pairs)
    notes = (*evaluation.notes, describe_stability(stability))
    return replace(evaluation, labels=labels, stability=stability, notes=notes)


def evaluate_inputs(
    inputs: Inputs, *, resamples: int = 2000, seed: int = 0
) -> Evaluation:
    """Score a run that has been read, over all its draws."""
    pairs, protocol = join_draws((inputs.pairs, *inputs.further)), inputs.protocol
    draws = 1 + len(inputs.further)
    clusters = resampling_units(inputs.patients)
    units = clusters.units
    method = Method(
        unit=clusters.unit,
        units=clusters.total,
        known=clusters.known,
        resamples=resamples,
        seed=seed,
    )
    without = inputs.not_comparable
    labels = measure_labels(
        pairs,
        inputs.taxonomy,
        protocol,
        method,
        units,
        draws,
        not_comparable=without,
    )
    macro, supported, micro = measure_averages(
        pairs, protocol, method, units, draws, not_comparable=without
    )
    evaluation = Evaluation(
        run=inputs.run,
        cohort=inputs.cohort,
        protocol=protocol,
        protocol_digest=inputs.protocol_digest,
        protocol_changed=inputs.protocol_changed,
        policy=name_no_finding(inputs.taxonomy, inputs.run.engine),
        cases=len(inputs.pairs.case_ids),
        draws=draws,
        runs=inputs.runs,
        statuses=pairs.statuses,
        not_run=_not_run(inputs),
        labels=labels,
        macro=macro,
        supported=supported,
        micro=micro,
        views=measure_views(
            pairs,
            inputs.taxonomy,
            protocol,
            method,
            units,
            draws,
            labels=labels,
            not_comparable=without,
        ),
        method=method,
    )
    notes = _notes(inputs, pairs, evaluation.resting, method)
    return replace(evaluation, notes=notes)


_SPARED = {
    UncertainAnswers.WRONG: "are wrong",
    UncertainAnswers.ABSENT: "count as absent",
    UncertainAnswers.PRESENT: "count as present",
    UncertainAnswers.EXCLUDED: "are left out",
}
"""What keeps labels from failing, by policy; none rests on the first."""


def _notes(
    inputs: Inputs,
    pairs: AlignedPairs,
    resting: tuple[str, ...],
    method: Method,
) -> tuple[str, ...]:
    """Return the caveats, most important first.

    Parameters
    ----------
    pairs
        Those of all draws together.
    resting
        Names of the labels that would not pass if an uncertain answer were wrong.
    """
    protocol = inputs.protocol
    cases = len(inputs.pairs.case_ids)
    not_run = _not_run(inputs)
    unanswered = len(pairs.case_ids) - pairs.statuses[Status.ANSWERED]
    identity = _identity(inputs)
    checks = (
        (not_run > 0, "Not all cases were run: this run lacks "
         f"{counted(not_run, 'case')} of the cohort, so it cannot pass."),
        (protocol.rule == "point", "Point rule: observed values are held against the "
         "thresholds. This is not a certification."),
        (method.units < cases, _clustered(inputs, method)),
        (inputs.cohort.role == "dev", "Development cohort: prompts are revised on "
         "these cases, so these numbers are optimistic."),
        (inputs.pairs.not_coded, "The reference comes from coding. Where nothing was "
         "coded the case counts as absent, although nobody judged it absent."),
        (bool(inputs.not_comparable), "The reference cannot judge "
         f"{_reasons(inputs)}. Shown, and in no gate, average or claim."),
        (not set(inputs.pairs.labels) - set(inputs.not_comparable),
         "The reference can judge no label at all, so nothing passes and nothing is "
         "claimed."),
        (bool(inputs.pairs.unknown), "The reference says nothing of "
         f"{_names(inputs, inputs.pairs.unknown)}: unknown in every case, never "
         "absent. A label that was added to the taxonomy later needs its own marks: "
         "import the cohort again with its column, or add readers' votes on it."),
        (bool(inputs.not_labels), "Not scored: "
         f"{', '.join(inputs.not_labels)}. The reference has these columns, and the "
         "taxonomy has no such labels. After a change of name, import the cohort again "
         "with the new one."),
        (inputs.protocol_changed,
         "The protocol was changed after the run began."),
        (bool(resting), "These labels pass only because uncertain answers "
         f"{_SPARED[protocol.policy]}: {', '.join(resting)}."),
        ("model" in identity and not _names_weights(identity),
         "The engine names its model and not the weights: nothing but a changed "
         "answer would show that others took their place."),
        (identity.get("constrained") is False, "The server did not enforce the JSON "
         "schema: the tolerant parser read the answers, and may have repaired them."),
        ("source" in identity, "The answers were given to run "
         f"{identity.get('run')} and were replayed."),
        (bool(inputs.further), "Counts are of answers over "
         f"all {len(inputs.runs)} draws, shares are means over them; an exact interval "
         "takes the mean of a case as one answer, the bootstrap resamples "
         f"{method.unit}s and draws."),
        (unanswered > 0, f"{unanswered} of "
         f"{len(pairs.case_ids)} {'answers' if inputs.further else 'cases have no'} "
         f"{'cannot be read' if inputs.further else 'readable answer'}. They are left "
         "out and counted, never read as absent."),
    )  # fmt: skip
    return tuple(text for holds, text in checks if holds)


def _reasons(inputs: Inputs) -> str:
    """Return the labels that the reference cannot judge, each with the reason."""
    return "; ".join(
        f"{_names(inputs, (label,))} ({reason})"
        for label, reason in inputs.not_comparable.items()
    )


def _names(inputs: Inputs, labels: Iterable[str]) -> str:
    """Return the published names of labels in one line."""
    names = {label.id: label.name for label in inputs.taxonomy.labels}
    return ", ".join(names.get(label, label) for label in labels)


def _identity(inputs: Inputs) -> Mapping[str, object]:
    """Return what the run's manifest says of its engine."""
    identity = inputs.run.manifest.get("engine_identity")
    return identity if isinstance(identity, Mapping) else {}


def _names_weights(identity: Mapping[str, object]) -> bool:
    """Whether the identity of an engine holds a digest of the model's weights."""
    server = identity.get("server")
    return isinstance(server, Mapping) and bool(server.get("weights"))


def _not_run(inputs: Inputs) -> int:
    """Count the cases that were left out, by a limit for example."""
    fewer = inputs.cohort.cases - len(inputs.pairs.case_ids)
    return max(inputs.pairs.not_run, fewer)


def _clustered(inputs: Inputs, method: Method) -> str:
    """Say what repeated patients do to the exact intervals."""
    text = (
        f"Patients repeat: {len(inputs.pairs.case_ids)} cases are of {method.units} "
        "patients. Exact intervals assume independent cases, so they are too narrow."
    )
    if inputs.protocol.rule == "lower":
        text += " The gates also ask for the limit from resampling patients."
    return text
