"""Proposals that a clinician refused, with the reason: they are not proposed again."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import DataError
from loop.core.files import locked, read_text, write_atomic
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.optimize.proposals import INSTRUCTIONS
from loop.optimize.terms import ProposalKind
from loop.prompts.catalog import latest_version


class Refusal(NamedTuple):
    """One proposal that was refused."""

    reason: str
    by: str
    time: str
    """UTC, ISO 8601."""


_REFUSALS: TypeAdapter[dict[str, Refusal]] = TypeAdapter(dict[str, Refusal])


def read_refusals(workspace: WorkspacePaths, prompt: str) -> dict[str, Refusal]:
    """Return id of a proposal to its refusal, for one prompt by name.

    Raises
    ------
    DataError
        The file was damaged.
    """
    path = _path(workspace, prompt)
    if not path.exists():
        return {}
    try:
        return _REFUSALS.validate_json(read_text(path))
    except ValidationError as error:
        raise DataError(
            f"{path} is damaged: something other than ranloop changed it. Remove it to "
            "have everything proposed again."
        ) from error


def refuse_proposal(
    workspace: WorkspacePaths,
    prompt: str,
    proposal: str,
    reason: str,
    actor: Actor,
    *,
    now: Clock = utc_now,
) -> Refusal:
    """Remember that a proposal was refused, in place of an earlier refusal of it.

    Parameters
    ----------
    prompt
        Prompt by name, for example ``"extractor"``.
    proposal
        Id of the proposal, for example ``"edema:term:fluid"``.

    Raises
    ------
    DataError
        There is no such prompt, label or kind, no reason, or the file was damaged.
    WriteError
        The workspace cannot be written.
    """
    label, kind, wording = (*proposal.split(":", 2), "", "")[:3]
    if kind not in set(ProposalKind) or not wording.strip():
        raise DataError(
            f"{quoted(proposal)} names no proposal. Write LABEL:KIND:WORDING as the "
            f"search lists it, for example edema:term:fluid; a kind is one of "
            f"{', '.join(ProposalKind)}."
        )
    labels = [guide.label for guide in latest_version(workspace, prompt).guides]
    if label not in (*labels, INSTRUCTIONS):
        raise DataError(
            f"{prompt} has no guide for the label {quoted(label)}, so nothing is "
            f"proposed for it. Name one of {', '.join(labels)}."
        )
    if not reason.strip():
        raise DataError(f"why is {proposal} refused? Give a reason with --why.")
    path = _path(workspace, prompt)
    workspace.open_private()
    with locked(path.with_suffix(".lock")):
        known = read_refusals(workspace, prompt)
        made = Refusal(reason.strip(), actor.name, format_time(now()))
        known[proposal] = made
        write_atomic(path, _REFUSALS.dump_json(known, indent=2), mode=0o600)
    return made


def allow_proposal(workspace: WorkspacePaths, prompt: str, proposal: str) -> bool:
    """Forget that a proposal was refused; return whether it had been.

    Raises
    ------
    DataError
        The file was damaged.
    WriteError
        The workspace cannot be written.
    """
    path = _path(workspace, prompt)
    workspace.open_private()
    with locked(path.with_suffix(".lock")):
        known = read_refusals(workspace, prompt)
        if known.pop(proposal, None) is None:
            return False
        write_atomic(path, _REFUSALS.dump_json(known, indent=2), mode=0o600)
    return True


def _path(workspace: WorkspacePaths, prompt: str) -> Path:
    return workspace.private / "optimize" / f"{prompt}.refused.json"
