"""Finds the repeats of a run and lays their answers beside each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

import numpy as np

from loop.core.paths import WorkspacePaths
from loop.core.records import ValueCode
from loop.evaluate.align import Codes, read_answers
from loop.evaluate.flips import Stability, count_flips
from loop.evaluate.inputs import Inputs, read_inputs
from loop.labels.sealing import Opening
from loop.run.manifest import find_run, read_manifest
from loop.run.spec import BLANK_LINES, RunSpec, undrawn
from loop.run.store import RunRecord, Store, open_store, read_outcomes, split_keys

_PAGE = 256
"""Cases whose answers are read at a time."""


def count_same_words(store: Store, records: Sequence[RunRecord]) -> int:
    """Return the number of cases answered to the letter alike in all `records`.

    A case without a stored answer in some run is not alike. Answers that never differ
    although chance was asked for show a server that ignores the seed, or a model that
    is certain; only who runs the server can tell which.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    first, *others = records
    alike = dict(_digests(store, first.id))
    for record in others:
        found = _digests(store, record.id)
        alike = {case: words for case, words in found if alike.get(case) == words}
    return len(alike)


def _digests(store: Store, run: str) -> Iterator[tuple[str, bytes]]:
    """Yield case id and the digest of its raw answers, for cases that have them all."""
    rows = store.read_keys(run)
    while page := list(islice(rows, _PAGE)):
        calls = {case: split_keys(keys) for case, keys in page}
        found = store.find_completions([key for keys in calls.values() for key in keys])
        for case, keys in calls.items():
            if all(key in found for key in keys):
                words = "\0".join(found[key].text for key in keys)
                yield (
                    case,
                    hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest(),
                )


_LATER = ("reference", "reference_digest", "protocol_digest", "draw", "parameters")
"""Fields of a spec that may differ between draws of one run."""


def measure_stability(workspace: WorkspacePaths, inputs: Inputs) -> Stability | None:
    """Return how stable the answers of a run and its repeats are.

    Repeats are finished runs of the same prompt, contract, cases, engine identity and
    parameters with another number of the draw. None when there are none.

    Raises
    ------
    DataError
        A manifest cannot be read.
    StoreError
        The store cannot be read.
    """
    records = find_draws(workspace, find_run(workspace, inputs.run.run_id))
    if len(records) < 2:
        return None
    tables = _shared_tables(workspace, inputs, records)
    answered = np.stack([table >= ValueCode.UNCERTAIN for table in tables])
    some = answered.any(axis=2)
    with open_store(workspace) as store:
        same_words = count_same_words(store, records)
    return Stability(
        runs=tuple(record.id for record in records),
        labels=count_flips(tables, inputs.protocol.confidence),
        partly=int((some.any(axis=0) & ~some.all(axis=0)).sum()),
        same_words=same_words,
        temperature=float(records[0].spec.parameters.get("temperature", 0.0)),
        chance=_leaves_to_chance(records[0].spec),
        spaced=any(BLANK_LINES in record.spec.parameters for record in records),
    )


def read_draws(
    workspace: WorkspacePaths,
    run_ref: str,
    *,
    reference: int | None = None,
    opening: Opening | None = None,
    sampled: bool = False,
) -> Inputs:
    """Return a run with all its finished draws beside the reference of its cohort.

    Whichever of them is named, the first stands for all: none can be chosen for what
    it shows.

    Parameters
    ----------
    run_ref, reference, opening, sampled
        As for `loop.evaluate.inputs.read_inputs`.

    Raises
    ------
    SealedError, DataError
        As there.
    """
    records = find_draws(workspace, find_run(workspace, run_ref))
    first, *others = (
        read_inputs(
            workspace, one.id, reference=reference, opening=opening, sampled=sampled
        )
        for one in records
    )
    if not others:
        return first
    return replace(
        first,
        further=tuple(one.pairs for one in others),
        runs=tuple(one.id for one in records),
    )


def describe_stability(stability: Stability) -> str:
    """Return what the flips of a run mean, and what they do not."""
    parts = [
        f"Asked {stability.draws} times at temperature {stability.temperature:g}, each "
        f"with a seed of its own: runs {', '.join(stability.runs)}. A flip is a case "
        "whose answers are not all the same."
    ]
    if stability.partly:
        parts.append(
            f"{stability.partly} cases were answered in some of the runs only and are "
            "not counted."
        )
    if stability.spaced:
        parts.append(
            "Each further draw asked the same words with one more blank line between "
            "paragraphs, so flips show how far an answer hangs on chance and on the "
            "form of the prompt."
        )
    elif not stability.chance:
        parts.append(
            "Nothing was left to chance (temperature 0, or an engine without chance): "
            "flips show what the server does not repeat, not how sure the model is."
        )
    if stability.chance and stability.same_words:
        parts.append(
            f"{stability.same_words} cases were answered in the same words every time; "
            "if that is nearly all, the server may ignore the seed, and the absence of "
            "flips shows nothing."
        )
    return " ".join(parts)


def _leaves_to_chance(spec: RunSpec) -> bool:
    """Whether another seed may give another answer; the rules have no use for one."""
    return spec.engine != "rules" and bool(spec.parameters.get("temperature"))


def find_draws(workspace: WorkspacePaths, record: RunRecord) -> list[RunRecord]:
    """Return the finished draws of the run `record`, itself included, by number."""
    with open_store(workspace) as store:
        finished = store.find_runs(finished=True)
    wanted = _question(record.spec)
    identity = _identity(workspace, record)
    draws: dict[int, RunRecord] = {}
    for other in finished:
        if other.spec.draw in draws or _question(other.spec) != wanted:
            continue
        if _identity(workspace, other) == identity:
            draws[other.spec.draw] = other
    draws[record.spec.draw] = record
    return [draws[number] for number in sorted(draws)]


def _question(spec: RunSpec) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return what the draws of one run have in common."""
    fields = {name: value for name, value in asdict(spec).items() if name not in _LATER}
    return fields, undrawn(spec)


def _identity(workspace: WorkspacePaths, record: RunRecord) -> object:
    return read_manifest(workspace, record.id).get("engine_identity")


def _shared_tables(
    workspace: WorkspacePaths, inputs: Inputs, records: Sequence[RunRecord]
) -> list[Codes]:
    """Return the answers of each draw to the cases that all of them hold."""
    with open_store(workspace) as store:
        read = [
            read_answers(read_outcomes(store, record.id), inputs.taxonomy)
            for record in records
        ]
    shared = set.intersection(*(set(codes) for codes in read))
    ids = [case for case in inputs.pairs.case_ids if case in shared]
    size = (len(ids), len(inputs.pairs.labels))
    return [
        np.array([codes[case] for case in ids], dtype=np.int8).reshape(size)
        for codes in read
    ]
