"""What will be claimed, fixed before it is measured."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_text
from loop.core.files import read_text
from loop.core.ledger import Actor, Event, LedgerEntry, append_event, read_ledger
from loop.core.paths import Workspace
from loop.core.yaml_files import read_model

Share = Annotated[float, Field(ge=0, le=1)]
Level = Annotated[float, Field(gt=0, lt=1)]
OneSided = Annotated[float, Field(gt=0.5, lt=1)]
Count = Annotated[int, Field(ge=0)]
Minimum = Annotated[int, Field(ge=1)]

_LOWER_MIN_POSITIVES = 14


class Margins(BaseModel):
    """How much worse than its parent a version may be, per label."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    accuracy: Level = 0.02
    sensitivity: Level = 0.05


class Protocol(BaseModel):
    """The content of ``labels/protocol.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    accuracy: Level = 0.95
    """Accuracy every label must reach."""

    kappa: Level = 0.80
    """Cohen's kappa, model against reference, every label must reach."""

    rule: Literal["point", "lower"] = "point"
    """Whether the observed value or its lower limit must reach the threshold."""

    confidence: OneSided = 0.95
    """Level of every interval and one-sided limit; at one half a limit is no limit."""

    kappa_floor: Share = 0.60
    """With rule ``lower``: what the bootstrap lower limit of kappa must reach."""

    sensitivity_floor: Level = 0.80
    """With rule ``lower``: what the lower limit of sensitivity must reach."""

    min_cases: Minimum = 59
    """Fewest scored cases of a label."""

    min_positives: Minimum = 10
    """Fewest scored cases of a label whose reference is present."""

    min_negatives: Minimum = 10
    """Fewest scored cases of a label whose reference is absent."""

    minimum_readers: Minimum = 1
    """Fewest readers who voted on a case and label for it to have a majority."""

    max_unanswered: Share = 0.01
    """Largest share of cases without a readable answer."""

    margins: Margins = Margins()
    """Non-inferiority margins against the parent version."""

    draws: Minimum = 3
    """How often a check asks an engine with chance each version, at first."""

    max_draws: Minimum = 6
    """How often at most, where the first draws leave a check undecided."""

    not_worse: bool = False
    """Whether a release by an engine with chance must be shown not to be worse than
    what it replaces, on every label, by the margins."""

    every_target: bool = False
    """Whether a check over several draws stops at a targeted case that stays wrong."""

    claim: Literal["all", "subset"] = "all"
    """What is claimed: every label passes (an intersection-union test), or some do
    (Holm over all labels)."""

    alpha: Level = 0.05
    """Family-wise level of a claim on a subset and of tests between two versions."""

    holdout_openings: Count = 3
    """How often a holdout cohort may be opened."""

    @model_validator(mode="after")
    def _enough_for_a_limit(self) -> Protocol:
        if self.rule == "lower" and self.min_positives < _LOWER_MIN_POSITIVES:
            raise ValueError(
                f"rule `lower` needs min_positives of {_LOWER_MIN_POSITIVES} or more: "
                "fewer cannot show a sensitivity above 0.80"
            )
        return self


def read_protocol(workspace: Workspace) -> Protocol:
    """Return the protocol of `workspace`.

    Raises
    ------
    DataError
        The file is missing or a field is wrong; names each.
    """
    return read_model(workspace.protocol, Protocol)


def protocol_digest(workspace: Workspace) -> str:
    """Sha256 of the protocol file as it stands, as runs and the ledger record it.

    Raises
    ------
    DataError
        The file is missing or cannot be read.
    """
    return digest_text(read_text(workspace.protocol))


def find_registration(workspace: Workspace, digest: str) -> LedgerEntry | None:
    """Return the ledger entry that first set the protocol `digest`, if any.

    Raises
    ------
    LedgerError
        The ledger's chain is broken.
    """
    for entry in read_ledger(workspace.ledger):
        if entry.action == "protocol_set" and entry.payload.get("digest") == digest:
            return entry
    return None


def register_protocol(
    workspace: Workspace,
    actor: Actor,
    *,
    now: Clock = utc_now,
) -> LedgerEntry:
    """Write the protocol into the ledger on its first use; return its entry.

    Raises
    ------
    DataError
        The protocol is missing or a field is wrong.
    LedgerError
        The ledger's chain is broken.
    WriteError
        The ledger cannot be written.
    """
    protocol, digest = read_protocol(workspace), protocol_digest(workspace)
    known = find_registration(workspace, digest)
    if known is not None:
        return known
    event = Event(
        action="protocol_set",
        subject="labels/protocol.yaml",
        reason="first use of this protocol",
        payload={
            "digest": digest,
            "rule": protocol.rule,
            "accuracy": str(protocol.accuracy),
            "kappa": str(protocol.kappa),
        },
    )
    return append_event(workspace.ledger, event, actor, now=now)
