"""What a round needs, asked for before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

from loop.core.paths import Workspace
from loop.evaluate.protocol import read_protocol
from loop.labels.cohort import Cohort, CohortRole, iter_items
from loop.labels.reference import locate, read_reference
from loop.prompts.version import PromptVersion
from loop.review.revise.corrections import find_corrections
from loop.review.submit import load_verdicts
from loop.review.verdict import Verdict
from loop.run.store import Store
from loop.run.task import prepare_run


def require_corrigible(
    workspace: Workspace, cohort: Cohort, verdicts: Sequence[Verdict]
) -> None:
    """Refuse corrections of what the reference does not have."""
    pairs = find_corrections(verdicts)
    if pairs:
        reference = read_reference(workspace, cohort.name)
        for case_id, label in pairs:
            locate(reference, case_id, label)


def require_measurable(
    workspace: Workspace, cohort: Cohort, parent: PromptVersion, engine: str
) -> None:
    """Refuse what could not be measured: engine, texts, reference or protocol."""
    prepare_run(workspace, parent.ref, cohort.name, engine=engine)
    next(iter_items(workspace, cohort), None)
    read_reference(workspace, cohort.name)
    read_protocol(workspace)


def read_earlier(
    store: Store, base: PromptVersion, cohort: Cohort
) -> tuple[Verdict, ...]:
    """Return the kept verdicts that the draft `base` names: their cases count still."""
    if not base.draft or not base.verdicts:
        return ()
    return load_verdicts(store, cohort.name, base.verdicts)


def name_forgotten(base: PromptVersion, earlier: Sequence[Verdict]) -> tuple[str, ...]:
    """Name the verdicts of a draft that the store does not have."""
    kept = {verdict.id for verdict in earlier}
    lost = [one for one in base.verdicts if base.draft and one not in kept]
    if not lost:
        return ()
    return (
        f"{base.ref} names verdicts that are not kept here for this cohort: "
        f"{', '.join(lost)}. Their cases are not checked.",
    )


def name_unseen(skipped: Sequence[tuple[str, CohortRole]]) -> tuple[str, ...]:
    """Name the cohorts that were not looked at for copied wording."""
    return tuple(
        f"cohort {name} ({role}) was not looked at for copied wording: its texts are "
        "not on this machine"
        for name, role in skipped
    )


def object_to_unseen(skipped: Sequence[tuple[str, CohortRole]]) -> tuple[str, ...]:
    """Return the objection to a holdout that was not looked at, if there is one."""
    names = [name for name, role in skipped if role is CohortRole.HOLDOUT]
    if not names:
        return ()
    return (
        f"not looked at for copied wording: holdout {', '.join(names)} (bring its "
        "texts to this machine)",
    )
