"""What is known of cases that nobody has read: the answers of runs, and the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import ValueCode
from loop.evaluate.align import Codes, in_order, read_codes
from loop.evaluate.inputs import Inputs
from loop.evaluate.plan import positives_wanted
from loop.labels.cohort import (
    Cohort,
    CohortRole,
    has_texts,
    iter_items,
    list_cohorts,
    read_cohort,
    read_cohort_file,
    read_record,
    single_report,
)
from loop.labels.taxonomy import Taxonomy
from loop.prompts.catalog import read_version
from loop.review.queue.value import measure_nearness
from loop.run.store import RunRecord, Store
from loop.stats.confusion import Confusion, count_confusions

_RULES = "rules"

PARTS: Final[Mapping[str, str]] = {
    "findings": "labels answered present",
    "hedged": "labels answered uncertain",
    "unanswered": "no readable answer",
    "length": "words of the text",
    "versions": "labels on which prompt versions differ",
    "engines": "labels on which models differ",
    "rules": "labels on which rules and a model differ",
    "repeats": "labels on which repeats of the run differ",
    "lacking": "labels answered present or uncertain that lack positives for the "
    "protocol, each by the share that is missing on the development cohort",
    "near": "labels answered present or uncertain that are near their gate there, each "
    "by one over the number of answers that decide it",
}
"""What can be known of a case without a reference, by name."""


class RunsBeside(NamedTuple):
    """A run on one cohort, and the runs that it is held against."""

    cohort: Cohort
    subject: RunRecord
    versions: tuple[RunRecord, ...]
    models: tuple[RunRecord, ...]
    """Of the same version by another model, where the subject is by a model."""

    rules: tuple[RunRecord, ...]
    """Of the same version, where one of both is by `rules`."""

    repeats: tuple[RunRecord, ...]


def choose_runs(
    workspace: WorkspacePaths,
    store: Store,
    cohort: Cohort,
    *,
    between: Sequence[str] = (),
    fit_on: str = "",
) -> tuple[RunsBeside, RunsBeside]:
    """Return the runs that are compared on a cohort, and the same on another one.

    Engines and draws that were asked on one of both alone are left out.

    Parameters
    ----------
    between
        Prompt versions, the one in question last; empty: that of the newest run.
    fit_on
        Development cohort with a reference; empty: the only one with such runs.

    Raises
    ------
    DataError
        A version or a run is missing, or there is no such development cohort.
    """
    runs = store.find_runs(finished=True)
    subject, versions = _choose_versions(workspace, runs, cohort, between)
    dev = _choose_dev(workspace, runs, subject, versions, cohort, fit_on)
    return _in_common(_find_others(runs, subject, versions, cohort), dev)


def _on(
    runs: Sequence[RunRecord], cohort: Cohort, **spec: object
) -> Iterator[RunRecord]:
    """Yield the runs on all cases of a cohort with such a spec, newest first."""
    wanted = {"cohort": cohort.name, "cohort_digest": cohort.digest, **spec}
    for run in runs:
        fits = (getattr(run.spec, name) == value for name, value in wanted.items())
        if run.part is None and all(fits):
            yield run


def _choose_versions(
    workspace: WorkspacePaths,
    runs: Sequence[RunRecord],
    cohort: Cohort,
    between: Sequence[str],
) -> tuple[RunRecord, tuple[RunRecord, ...]]:
    """Return the run in question on a cohort, and those of the other versions."""
    if not between:
        newest = next(_on(runs, cohort, draw=0), None)
        if newest is None:
            raise DataError(
                f"no finished run asked all cases of cohort {cohort.name}: nothing is "
                "known of them. Run the version in question there with `ranloop run`."
            )
        return newest, ()
    digests = [read_version(workspace, ref).digest for ref in between]
    if len(set(digests)) < len(digests):
        raise DataError("a version is named twice. Name each version once.")
    subject = _require_run(runs, cohort, between[-1], digests[-1])
    engine = subject.spec.engine
    return subject, tuple(
        _require_run(runs, cohort, ref, digest, engine)
        for ref, digest in zip(between[:-1], digests[:-1], strict=True)
    )


def _require_run(
    runs: Sequence[RunRecord], cohort: Cohort, ref: str, digest: str, engine: str = ""
) -> RunRecord:
    only = {"engine": engine} if engine else {}
    found = next(_on(runs, cohort, prompt_digest=digest, draw=0, **only), None)
    if found is None:
        by = f" by {engine}" if engine else ""
        raise DataError(
            f"no finished run{by} of {ref} on all cases of cohort {cohort.name}. Make "
            f"one with `ranloop run {ref} --cohort {cohort.name}`."
        )
    return found


def _choose_dev(
    workspace: WorkspacePaths,
    runs: Sequence[RunRecord],
    subject: RunRecord,
    versions: Sequence[RunRecord],
    target: Cohort,
    named: str,
) -> RunsBeside:
    """Return the development cohort to learn from, with the same runs on it."""
    if named == target.name:
        raise DataError(
            f"cohort {named} cannot tell how much its own cases are worth. Name "
            "another development cohort with --fit-on."
        )
    names = [named] if named else _list_dev(workspace, runs, subject, target)
    if len(names) != 1:
        found = f" ({', '.join(names)})" if names else ""
        raise DataError(
            f"besides {target.name}, {len(names)} cohorts with role dev, a reference "
            f"and a run of {subject.spec.prompt} by {subject.spec.engine} can tell "
            f"which cases fail{found}. Name one with --fit-on, or make such a run with "
            "`ranloop run`."
        )
    (name,) = names
    if read_cohort_file(workspace, name).role is not CohortRole.DEV:
        raise DataError(
            f"cohort {name} has not the role dev: prompts, and what is learned of "
            "them, rest on development cohorts only. Name one with --fit-on."
        )
    cohort = read_cohort(workspace, name)
    spec = subject.spec
    own = _require_run(runs, cohort, spec.prompt, spec.prompt_digest, spec.engine)
    others = [
        _require_run(runs, cohort, one.spec.prompt, one.spec.prompt_digest, spec.engine)
        for one in versions
    ]
    return _find_others(runs, own, others, cohort)


def _list_dev(
    workspace: WorkspacePaths,
    runs: Sequence[RunRecord],
    subject: RunRecord,
    target: Cohort,
) -> list[str]:
    """Return the other development cohorts with a reference and a run as `subject`.

    On all of its cases as they are now, like the run that is to be learned from.
    """
    same = {"prompt_digest": subject.spec.prompt_digest, "engine": subject.spec.engine}
    names = {run.spec.cohort for run in runs} - {target.name}
    return [
        name
        for name in list_cohorts(workspace)
        if name in names
        and read_cohort_file(workspace, name).role is CohortRole.DEV
        and read_record(workspace, name).references
        and any(_on(runs, read_cohort(workspace, name), draw=0, **same))
    ]


def _find_others(
    runs: Sequence[RunRecord],
    subject: RunRecord,
    versions: Sequence[RunRecord],
    cohort: Cohort,
) -> RunsBeside:
    spec = subject.spec
    by_engine: dict[str, RunRecord] = {}
    for run in _on(runs, cohort, prompt_digest=spec.prompt_digest, draw=0):
        if not run.spec.engine.startswith("replay:"):
            by_engine.setdefault(run.spec.engine, run)
    others = [run for name, run in sorted(by_engine.items()) if name != spec.engine]
    against = [(spec.engine == _RULES) != (run.spec.engine == _RULES) for run in others]
    repeats: dict[int, RunRecord] = {}
    same = {"prompt_digest": spec.prompt_digest, "engine": spec.engine}
    for run in _on(runs, cohort, **same):
        if run.spec.draw != spec.draw:
            repeats.setdefault(run.spec.draw, run)
    return RunsBeside(
        cohort=cohort,
        subject=subject,
        versions=tuple(versions),
        models=tuple(r for r, odd in zip(others, against, strict=True) if not odd),
        rules=tuple(r for r, odd in zip(others, against, strict=True) if odd),
        repeats=tuple(repeats[draw] for draw in sorted(repeats)),
    )


def _in_common(here: RunsBeside, dev: RunsBeside) -> tuple[RunsBeside, RunsBeside]:
    """Return both with the engines and draws that were asked on both cohorts."""

    def kept(one: RunsBeside, other: RunsBeside) -> RunsBeside:
        models, rules = (
            tuple(r for r in mine if r.spec.engine in {t.spec.engine for t in theirs})
            for mine, theirs in ((one.models, other.models), (one.rules, other.rules))
        )
        draws = {run.spec.draw for run in other.repeats}
        repeats = tuple(run for run in one.repeats if run.spec.draw in draws)
        return one._replace(models=models, rules=rules, repeats=repeats)

    return kept(here, dev), kept(dev, here)


def label_weights(
    inputs: Inputs, judged: NDArray[np.bool_]
) -> Mapping[str, NDArray[np.float64]]:
    """Return for each judged label what it lacks, and how near its gate it is."""
    protocol = inputs.protocol
    tables = count_confusions(
        inputs.pairs.binary_reference, inputs.pairs.answers_as(protocol.policy)
    )[judged]
    counts = [Confusion(*map(int, row)) for row in tables]
    wanted = positives_wanted(protocol, len(counts))
    gates = [measure_nearness(one, protocol) for one in counts]
    return {
        "lacking": np.array([max(wanted - c.positives, 0) / wanted for c in counts]),
        "near": np.array([1 / gate.answers if gate else 0.0 for gate in gates]),
    }


def measure_parts(
    workspace: WorkspacePaths,
    store: Store,
    compared: RunsBeside,
    case_ids: tuple[str, ...],
    taxonomy: Taxonomy,
    judged: NDArray[np.bool_],
    weights: Mapping[str, NDArray[np.float64]],
) -> dict[str, NDArray[np.float64]]:
    """Return the parts that can be known of each case; the others are missing."""

    def read(runs: Sequence[RunRecord]) -> list[Codes]:
        return [
            in_order(read_codes(store, run, taxonomy), case_ids)[:, judged]
            for run in runs
        ]

    (own,) = read([compared.subject])
    named = np.isin(own, (ValueCode.PRESENT, ValueCode.UNCERTAIN))
    parts: dict[str, NDArray[Any]] = {
        "findings": (own == ValueCode.PRESENT).sum(axis=1),
        "hedged": (own == ValueCode.UNCERTAIN).sum(axis=1),
        "unanswered": np.all(own < ValueCode.UNCERTAIN, axis=1).astype(int),
    }
    if has_texts(workspace, compared.cohort.name):
        words = {
            item.id: len(single_report(item).split())
            for item in iter_items(workspace, compared.cohort)
        }
        parts["length"] = np.array([words[case_id] for case_id in case_ids])
    for name, runs in (
        ("versions", compared.versions),
        ("engines", compared.models),
        ("rules", compared.rules),
        ("repeats", compared.repeats),
    ):
        if runs:
            others = np.stack(read(runs))
            answered = np.minimum(others, own) >= ValueCode.UNCERTAIN
            parts[name] = (answered & (others != own)).any(axis=0).sum(axis=1)
    for name, worth in weights.items():
        parts[name] = named @ worth
    return {name: np.asarray(column, dtype=float) for name, column in parts.items()}
