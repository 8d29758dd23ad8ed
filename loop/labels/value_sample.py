"""Value samples of a cohort: the cases drawn for readers, each with its known chance.

``labels/cohorts/<name>/samples/v<N>.json`` holds the drawn cases and the chance with
which each was drawn, more where readers probably learn more. The ledger records its
digest, and how many reference versions there were. A later version that leaves cases
open comes of the sample: a rate over its cases is no rate of the cohort unless each
case is weighted with one over its chance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LedgerError, LoopError
from loop.core.files import locked, write_atomic
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import Cohort, CohortRecord, cohort_folder, read_record
from loop.labels.sealing import remove_file


class DrawnCase(BaseModel):
    """One case of a value sample."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    case_id: str
    chance: float = Field(gt=0, le=1)
    """With which it was drawn."""


class ValueSample(BaseModel):
    """Cases drawn with known, unequal chances; the form of a file of ``samples/``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["ranloop-value-sample/1"] = "ranloop-value-sample/1"
    cohort: str
    cohort_digest: str
    population: int
    """Cases of the cohort."""

    seed: int
    even: float
    """Part of the sample that was spread evenly over all cases."""

    run: str
    """Whose answers were looked at."""

    between: tuple[str, ...]
    """Versions whose answers were compared."""

    fitted_on: str
    """Cohort with a reference on which the chances were learned."""

    drawn: tuple[DrawnCase, ...]
    """In the order of the cohort."""

    @property
    def chances(self) -> Mapping[str, float]:
        """Case id to the chance with which it was drawn."""
        return {one.case_id: one.chance for one in self.drawn}


class KeptSample(NamedTuple):
    """A value sample and its number in the cohort, from 1."""

    number: int
    sample: ValueSample


def sample_path(workspace: WorkspacePaths, cohort_name: str, number: int) -> Path:
    """File of one value sample."""
    return cohort_folder(workspace, cohort_name) / "samples" / f"v{number}.json"


def keep_sample(
    workspace: WorkspacePaths,
    cohort: Cohort,
    sample: ValueSample,
    *,
    actor: Actor,
    replace: bool = False,
) -> int:
    """Write a value sample and its ledger entry, both or neither; return its number.

    The same sample once more changes nothing.

    Parameters
    ----------
    replace
        Whether another sample may take the place of one that was drawn before.

    Raises
    ------
    DataError
        The cohort is a holdout, or another sample was drawn of it and `replace` is not
        set; nothing was changed.
    LedgerError, WriteError
        The ledger is broken, or the workspace cannot be written; nothing was changed.
    """
    text = json.dumps(sample.model_dump(mode="json"), ensure_ascii=False, indent=1)
    raw = f"{text}\n".encode()
    with locked(workspace.open_private() / "locks" / f"sample-{cohort.name}.lock"):
        record = read_record(workspace, cohort.name)
        if record.is_holdout:
            raise DataError(
                f"cohort {cohort.name} is a holdout: its gates count cases as drawn at "
                "random. Read all of it, or give cases with `ranloop reading assign`."
            )
        number = max(record.samples, default=0)
        digest = digest_bytes(raw)
        if number and record.samples[number]["digest"] == digest:
            return number
        if number and not replace:
            raise DataError(
                f"value sample {number} of cohort {cohort.name} was drawn before, and "
                "what readers say of it is weighted by its chances. Read that one "
                f"(`ranloop reading assign {cohort.name} --sample --reader NAME`), or "
                "let this one count instead with --replace."
            )
        path = sample_path(workspace, cohort.name, number + 1)
        write_atomic(path, raw)
        event = Event(
            action="sample_drawn",
            subject=f"{cohort.name}:sample{number + 1}",
            reason=f"{len(sample.drawn)} of {sample.population} cases to read, chosen "
            "by what reading them is probably worth",
            payload={
                "cohort": cohort.name,
                "cohort_digest": cohort.digest,
                "number": number + 1,
                "digest": digest,
                "size": len(sample.drawn),
                "seed": sample.seed,
                "run": sample.run,
                "fitted_on": sample.fitted_on,
                "reference": record.newest,
            },
        )
        try:
            append_event(workspace.ledger, event, actor)
        except LoopError:
            remove_file(path)
            raise
    return number + 1


def newest_sample(workspace: WorkspacePaths, cohort_name: str) -> KeptSample | None:
    """Return the value sample of a cohort that was drawn last, or None without any.

    Raises
    ------
    DataError
        The ledger has no entry of the cohort; the file of the sample is gone, was
        edited, or cannot be read.
    LedgerError
        The ledger is broken.
    """
    record = read_record(workspace, cohort_name)
    number = max(record.samples, default=0)
    return _read(workspace, record, number) if number else None


def read_sample(workspace: WorkspacePaths, cohort_name: str, number: int) -> KeptSample:
    """Return one value sample of a cohort.

    Raises
    ------
    DataError
        It was never drawn; or as `newest_sample`.
    LedgerError
        The ledger is broken.
    """
    record = read_record(workspace, cohort_name)
    if number not in record.samples:
        raise DataError(
            f"cohort {cohort_name} has no value sample {number}. Draw one with "
            f"`ranloop sample {cohort_name} --for reading`."
        )
    return _read(workspace, record, number)


def find_sample(
    workspace: WorkspacePaths, record: CohortRecord, reference: int
) -> KeptSample | None:
    """Return the value sample that was drawn last before a reference version was made.

    None for a version of which nothing was drawn, also where it was corrected later.

    Raises
    ------
    DataError
        The file of the sample is gone, was edited, or cannot be read.
    LedgerError
        The ledger does not say when a sample was drawn.
    """
    made, before = record.origin(reference), []
    for number, told in record.samples.items():
        newest = told.get("reference")
        if type(newest) is not int:
            raise LedgerError(
                f"the ledger does not say after which reference {record.name}:sample"
                f"{number} was drawn: no ranloop wrote that. Restore the ledger from "
                "your backup or version control."
            )
        if newest < made:
            before.append(number)
    return _read(workspace, record, max(before)) if before else None


def _read(workspace: WorkspacePaths, record: CohortRecord, number: int) -> KeptSample:
    path = sample_path(workspace, record.name, number)
    restore = "Restore it from version control or a backup."
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read, and without the chances in it nothing can be said "
            f"of the cohort. {restore}"
        ) from error
    recorded = str(record.samples[number]["digest"])
    if digest_bytes(raw) != recorded:
        raise DataError(
            f"{path} was edited: the ledger recorded sha256 {recorded[:12]}. {restore}"
        )
    try:
        return KeptSample(number, ValueSample.model_validate_json(raw))
    except ValidationError as error:
        raise DataError(f"{path} is no value sample. {restore}") from error
