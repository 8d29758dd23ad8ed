"""What is read from the workspace before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.evaluate.align import AlignedPairs, align
from loop.evaluate.protocol import Protocol, protocol_digest, read_protocol
from loop.evaluate.results import CohortFacts, RunFacts
from loop.labels.cohort import Cohort, read_cohort, read_record
from loop.labels.reference import Reference, read_reference, require_random
from loop.labels.sealing import Opening, require_opening
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.labels.value_sample import KeptSample
from loop.run.manifest import find_run, read_manifest
from loop.run.store import RunRecord, open_store, read_outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """One run, joined with the reference of its cohort.

    `pairs` are those of one draw; a model with chance in it may have been asked more.
    """

    run: RunFacts
    cohort: CohortFacts
    pairs: AlignedPairs
    further: tuple[AlignedPairs, ...] = ()
    """The run's further draws on the same cases, in their order."""

    runs: tuple[str, ...] = ()
    """Ids of the runs of all draws; empty for one."""

    sample: KeptSample | None = None
    """Of which the cases were drawn that the reference decides, where it leaves others
    open: each then has its weight."""

    patients: tuple[str, ...]
    """Pseudonym of the patient of each case of the run; empty when unknown."""

    taxonomy: Taxonomy
    not_comparable: Mapping[str, str] = field(default_factory=dict)
    """Label id to why the reference cannot judge it."""

    not_labels: tuple[str, ...] = ()
    """Columns of the reference that are no labels of the taxonomy, so not scored."""

    protocol: Protocol
    protocol_digest: str
    protocol_changed: bool = False
    """Whether another protocol stood in the workspace when the run began."""

    @property
    def judged_pairs(self) -> AlignedPairs:
        """`pairs`, open where the reference cannot judge the label."""
        return self.pairs.leave_open(self.not_comparable)


def read_inputs(
    workspace: WorkspacePaths,
    run_ref: str,
    *,
    reference: int | None = None,
    opening: Opening | None = None,
    sampled: bool = False,
) -> Inputs:
    """Return a run's outcomes beside the reference labels of its cohort.

    Parameters
    ----------
    run_ref
        Run id, unique prefix, ``latest`` or ``latest:<prompt>``.
    reference
        Number of the reference version; None for the newest.
    opening
        What lets the labels of a holdout be read, for the version it was opened for.
    sampled
        Whether whoever calls weights the cases of a value sample.

    Raises
    ------
    SealedError
        The cohort is a holdout, and `opening` does not open it for this run.
    DataError
        The run, its cohort or the reference does not exist, the run did not finish,
        the cohort's cases are no longer those that were asked, or the reference
        decides the cases of a value sample and `sampled` is not set.
    """
    record = find_run(workspace, run_ref)
    cohort = read_cohort(workspace, record.spec.cohort)
    _check_run(record, cohort)
    taxonomy = read_taxonomy(workspace.labels)
    standard = read_reference(workspace, cohort.name, reference, opening=opening)
    if not sampled:
        require_random(standard)
    if opening is not None:
        asked = record.spec.prompt_digest
        known = read_record(workspace, cohort.name)
        require_opening(workspace, known, opening, prompt_digest=asked)
    with open_store(workspace) as store:
        pairs = align(read_outcomes(store, record.id), standard, taxonomy)
    digest = protocol_digest(workspace)
    patients = {case.case_id: case.patient for case in cohort.cases}
    return Inputs(
        run=_run_facts(workspace, record),
        cohort=_cohort_facts(cohort, standard),
        sample=standard.sample,
        pairs=pairs,
        patients=tuple(patients.get(case_id, "") for case_id in pairs.case_ids),
        taxonomy=taxonomy,
        not_comparable=cohort.not_comparable,
        not_labels=tuple(n for n in standard.labels if n not in taxonomy.ids),
        protocol=read_protocol(workspace),
        protocol_digest=digest,
        protocol_changed=record.spec.protocol_digest not in (None, digest),
    )


def _check_run(record: RunRecord, cohort: Cohort) -> None:
    if record.spec.cohort_digest != cohort.digest:
        raise DataError(
            f"cohort {cohort.name} holds other cases (digest {cohort.digest[:12]}) "
            f"than run {record.id} asked ({record.spec.cohort_digest[:12]}). Run the "
            "prompt again on the cohort as it is now."
        )


def _run_facts(workspace: WorkspacePaths, record: RunRecord) -> RunFacts:
    return RunFacts(
        run_id=record.id,
        created=record.created,
        prompt=record.spec.prompt,
        prompt_digest=record.spec.prompt_digest,
        engine=record.spec.engine,
        manifest=read_manifest(workspace, record.id),
    )


def _cohort_facts(cohort: Cohort, reference: Reference) -> CohortFacts:
    return CohortFacts(
        name=cohort.name,
        role=cohort.role.value,
        source=cohort.source,
        licence=cohort.licence,
        language=cohort.language,
        digest=cohort.digest,
        cases=len(cohort.cases),
        reference=reference.number,
        reference_digest=reference.digest,
    )
