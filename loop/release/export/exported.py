"""Which prompt version is exported: committed, or released and verified first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import Item
from loop.engines.base import DEFAULT_THINKING, find_model, with_thinking
from loop.labels.cohort import (
    CohortRole,
    iter_items,
    read_cohort,
    require_inputs,
)
from loop.labels.importing.importer import open_source
from loop.labels.importing.screening import Screening
from loop.labels.importing.source import ImportOptions
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import list_prompts, read_version
from loop.prompts.stages import given_texts
from loop.prompts.version import PromptVersion
from loop.release.export.records import CaseSource, ExportOrigin, RequestParameters
from loop.release.facts import EngineFacts
from loop.release.folder import RELEASE_NAME
from loop.release.load import load_release
from loop.run.task import check_open


def cohort_cases(
    workspace: WorkspacePaths, name: str, version: PromptVersion
) -> CaseSource:
    """Return the cases of cohort `name`, which `version` is to be asked about.

    Raises
    ------
    DataError
        There is no such cohort, it is a holdout or has not what the version reads, or
        its texts are not here.
    """
    cohort = read_cohort(workspace, name)
    check_open(cohort)
    require_inputs(cohort, version.ref, given_texts(version.inputs))
    return CaseSource(origin=f"cohort {name}", items=iter_items(workspace, cohort))


def file_cases(
    workspace: WorkspacePaths, path: Path, version: PromptVersion
) -> tuple[CaseSource, Screening]:
    """Return the cases of a table, and what counts those that are left out.

    The table is read as an import reads it: the same columns, the same cases left out
    (without a text, or of another region), every id once. Labels in it are not looked
    at.

    Raises
    ------
    DataError
        There is no such file, its header is wrong, or it has not what `version` reads;
        while reading, a row is wrong.
    """
    options = ImportOptions(name="export", role=CohortRole.EXTERNAL)
    source = open_source(path, options, workspace.labels)
    wanted = given_texts(version.inputs)
    if not set(wanted) <= set(source.inputs):
        raise DataError(
            f"{version.ref} reads {', '.join(wanted)}, and {path.name} has "
            f"{', '.join(source.inputs)}. Name a table with these columns."
        )
    screening = Screening(options, read_taxonomy(workspace.labels).region)

    def items() -> Iterator[Item]:
        for case in screening.passed(source.cases):
            yield Item(
                id=case.case_id,
                variables=dict(case.texts),
                language=case.language,
            )

    return CaseSource(origin=f"file {path.name}", items=items()), screening


def find_origin(workspace: WorkspacePaths, name: str, model: str = "") -> ExportOrigin:
    """Return the version that `name` names and how it is to be asked.

    Parameters
    ----------
    name
        Reference of a committed version, such as ``"extractor@v6"``, or the name of a
        release, such as ``"extractor-v6"``, which is verified.
    model
        Name of the model to ask; empty for the one of the release, if it has one.

    Raises
    ------
    DataError
        There is no such version, it is a draft or was edited, or the release does not
        verify.
    """
    if is_release(workspace, name):
        origin = _released(workspace, name)
    else:
        origin = ExportOrigin(
            version=read_version(workspace, name), asking=RequestParameters()
        )
    if origin.version.draft:
        raise DataError(
            f"{origin.version.ref} is a draft: it can still change, so nothing that is "
            "deployed may hold it. Commit it first (`ranloop draft commit`)."
        )
    if not model:
        return origin
    return replace(origin, asking=replace(origin.asking, model=model))


def is_release(workspace: WorkspacePaths, name: str) -> bool:
    """Whether `name` is meant as a release: of its form, and no prompt is called so."""
    return bool(RELEASE_NAME.fullmatch(name)) and name not in list_prompts(workspace)


def _released(workspace: WorkspacePaths, name: str) -> ExportOrigin:
    release = load_release(workspace, name)
    engine = release.facts.engine
    return ExportOrigin(
        version=release.version,
        asking=_asking(engine),
        release=release.name,
        engine=engine.name,
    )


def _asking(engine: EngineFacts) -> RequestParameters:
    """Return how the engine of a release was asked; `engine` is in its facts."""
    named = find_model(engine.name)
    parameters = engine.parameters
    plain = RequestParameters()
    return RequestParameters(
        model=(named.adapter or named.model) if named else "",
        temperature=float(parameters.get("temperature", plain.temperature)),
        max_tokens=int(parameters.get("max_tokens", plain.max_tokens)),
        seed=int(parameters.get("seed", plain.seed)),
        extra=with_thinking(
            engine.identity.get("extra_body") or {},
            str(parameters.get("thinking", DEFAULT_THINKING)),
        ),
    )
