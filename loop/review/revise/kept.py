"""Kept verdicts as the material of a revision: found by id, or all that are open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.review.kept import KeptVerdict, VerdictState, read_kept
from loop.review.record import load_verdicts
from loop.review.verdict import Verdict
from loop.run.store import Store


def find_kept(store: Store, cohort: str, ids: Sequence[str]) -> tuple[Verdict, ...]:
    """Return the kept verdicts on `cohort` with these ids, oldest first.

    Raises
    ------
    DataError
        The store does not have one of them for this cohort.
    StoreError
        The store cannot be read.
    """
    bare = dict.fromkeys(one.removeprefix(f"{cohort}:") for one in ids)
    if not bare:
        return ()
    found = load_verdicts(store, cohort, tuple(bare))
    known = {verdict.id for verdict in found}
    # A verdict that was given again has its own id, counted on from the first one's.
    lost = [one for one in bare if one.partition("-")[0] not in known]
    if lost:
        raise DataError(
            f"no verdict {', '.join(name[:40] for name in lost)} is kept for cohort "
            f"{cohort or '(none named)'}. See `ranloop verdict list`, or name the "
            "cohort with --cohort."
        )
    return found


def find_open(
    workspace: Workspace, store: Store, prompt: str, cohort: str
) -> tuple[KeptVerdict, ...]:
    """Return the open verdicts on a prompt and cohort, oldest first.

    Parameters
    ----------
    prompt
        Name of the prompt, or a reference to any of its versions.

    Raises
    ------
    StoreError
        A verdict cannot be read.
    LedgerError
        The ledger is broken.
    """
    names = ("", prompt.partition("@")[0])
    return tuple(
        one
        for one in read_kept(store, workspace, cohort)
        if one.state is VerdictState.OPEN
        and one.circumstances.prompt.partition("@")[0] in names
    )


def group_by_label(
    verdicts: Iterable[KeptVerdict],
) -> dict[str, tuple[KeptVerdict, ...]]:
    """Return the verdicts of each label, the label with most of them first."""
    groups: dict[str, list[KeptVerdict]] = {}
    for one in verdicts:
        groups.setdefault(one.verdict.label, []).append(one)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return {label: tuple(group) for label, group in ordered}
