"""What will be claimed, fixed before it is measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_text
from loop.core.files import read_text
from loop.core.ledger import Actor, Event, LedgerEntry, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import UncertainAnswers
from loop.core.yaml_files import read_model
from loop.labels.error_categories import ErrorGroup
from loop.stats.rated_agreement import AgreementMeasure

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


class F1Floors(BaseModel):
    """What F1 a judge must reach in finding the errors that the raters found."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    false_prediction: Level | None = None
    """Over the errors in which the candidate says what the reference does not."""

    omission: Level | None = None
    """Over those in which it leaves out what the reference says."""

    attribute: Level | None = None
    """Over those in which it says something else of the same finding."""

    def items(self) -> Iterator[tuple[ErrorGroup, float]]:
        """Yield each group that has a floor, and the floor."""
        for group in ErrorGroup:
            floor: float | None = getattr(self, group.value)
            if floor is not None:
                yield group, floor


class ShareFloor(BaseModel):
    """What a share must reach with its one-sided lower limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lower_limit: Level


class JudgingRules(BaseModel):
    """What a judge must reach against raters; a judge has no other gates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    score: Literal[
        "green",
        "green_f1",
        "formula",
        "errors",
        "own",
        "line_sum",
        "line_max",
        "line_mean",
        "crimson",
        "rating",
        "f1",
        "precision",
        "recall",
    ] = "green"
    """Which of the judge's scores is held against the raters."""

    measure: AgreementMeasure = AgreementMeasure.TAU_B
    """How agreement with the mean of the raters is measured."""

    threshold: Level
    """Agreement that the judge must reach."""

    rule: Literal["point", "lower"] = "point"
    """Whether the observed values, or their lower limits over units, must reach the
    threshold and the floors. A unit is a patient, else a reference text."""

    min_units: Minimum = 20
    """Fewest units with a score and a rating."""

    max_unanswered: Share = 0.01
    """Largest share of pairs without a readable answer, and of rated pairs without a
    score."""

    f1_floors: F1Floors = F1Floors()
    """Least F1 against the median count of the raters, by group of errors."""

    copy_test: bool = True
    """Whether a candidate equal to its reference must get the best score, always."""

    margin: Level | None = None
    """How far below that of its parent a version's agreement may be; none: it is not
    held against its parent."""

    discrimination: ShareFloor | None = None
    """Of pairs that are marked significant: what the share that the judge flags must
    reach; none: `ranloop dr` holds it to nothing."""

    robustness: ShareFloor | None = None
    """Of the other marked pairs: what the share that it does not flag must reach."""

    @model_serializer(mode="wrap")
    def _leave_out_later_keys(self, write: SerializerFunctionWrapHandler) -> Any:
        """Write a claim from before these keys existed as it was written then."""
        written = write(self)
        for name in ("discrimination", "robustness"):
            if getattr(self, name) is None:
                written.pop(name, None)
        return written

    @property
    def holds_marked_pairs(self) -> bool:
        """Whether it claims anything about pairs that are marked significant or not."""
        return self.discrimination is not None or self.robustness is not None


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

    no_finding: Literal["derived", "read"] = "derived"
    """How readers' "No Finding" is had: it follows from their other labels, or they
    label it themselves. A model's is derived either way."""

    max_unanswered: Share = 0.01
    """Largest share of cases without a readable answer."""

    uncertain_answers: UncertainAnswers | None = None
    """What an uncertain answer counts as where the reference decides. None for a
    protocol written before this was asked: `EXCLUDED`, however many there are."""

    max_uncertain: Share = 0.05
    """With ``uncertain_answers: excluded``: largest share of uncertain answers, among
    the cases that the reference decides and among its positives."""

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

    judging: JudgingRules | None = None
    """What a prompt that judges must reach; none: nothing is claimed of judges."""

    @model_validator(mode="after")
    def _enough_for_a_limit(self) -> Protocol:
        if self.rule == "lower" and self.min_positives < _LOWER_MIN_POSITIVES:
            raise ValueError(
                f"rule `lower` needs min_positives of {_LOWER_MIN_POSITIVES} or more: "
                "fewer cannot show a sensitivity above 0.80"
            )
        return self

    @field_validator("uncertain_answers", mode="before")
    @classmethod
    def _say_it(cls, value: object) -> object:
        if value is None:
            raise ValueError(f"must be one of {', '.join(UncertainAnswers)}")
        return value

    @field_validator("judging", mode="before")
    @classmethod
    def _say_what_is_claimed(cls, value: object) -> object:
        if value is None:
            raise ValueError(
                "is empty: give at least its threshold, or remove the section"
            )
        return value

    @model_validator(mode="after")
    def _limit_what_is_excluded(self) -> Protocol:
        if "max_uncertain" in self.model_fields_set and self.uncertain_answers is None:
            raise ValueError(
                "max_uncertain needs uncertain_answers: without it uncertain answers "
                "are left out, however many there are"
            )
        return self

    @model_serializer(mode="wrap")
    def _leave_out_what_was_not_said(self, write: SerializerFunctionWrapHandler) -> Any:
        written = write(self)
        if self.uncertain_answers is None:
            for name in ("uncertain_answers", "max_uncertain"):
                written.pop(name, None)
        if self.no_finding == "derived":
            written.pop("no_finding", None)
        if self.judging is None:
            written.pop("judging", None)
        return written

    @property
    def policy(self) -> UncertainAnswers:
        """What an uncertain answer counts as."""
        return self.uncertain_answers or UncertainAnswers.EXCLUDED

    @property
    def limits_uncertain(self) -> bool:
        """Whether too many uncertain answers make a gate fail by themselves."""
        return self.uncertain_answers is UncertainAnswers.EXCLUDED

    def under(self, policy: UncertainAnswers) -> Protocol:
        """Return the same protocol with another policy, to show what it would give."""
        if policy is self.policy:
            return self
        return self.model_copy(update={"uncertain_answers": policy})

    @property
    def uncertain_words(self) -> str:
        """What an uncertain answer counts as, in one sentence for a reader."""
        meaning = {
            UncertainAnswers.WRONG: "are wrong: where the reference decides, a false "
            "negative or a false positive",
            UncertainAnswers.ABSENT: "count as absent",
            UncertainAnswers.PRESENT: "count as present",
            UncertainAnswers.EXCLUDED: "are left out of every rate, and counted",
        }[self.policy]
        if self.limits_uncertain:
            meaning += (
                f"; more than {100 * self.max_uncertain:g} % of the decided cases or "
                "of the positives fail a label"
            )
        elif self.uncertain_answers is None:
            meaning += (
                ", however many there are: the protocol was written before it could "
                "say otherwise (uncertain_answers)"
            )
        return f"Uncertain answers {meaning}."


def read_protocol(workspace: WorkspacePaths) -> Protocol:
    """Return the protocol of `workspace`.

    Raises
    ------
    DataError
        The file is missing or a field is wrong; names each.
    """
    return read_model(workspace.protocol, Protocol)


def protocol_digest(workspace: WorkspacePaths) -> str:
    """Sha256 of the protocol file as it stands, as runs and the ledger record it.

    Raises
    ------
    DataError
        The file is missing or cannot be read.
    """
    return digest_text(read_text(workspace.protocol))


def find_registration(workspace: WorkspacePaths, digest: str) -> LedgerEntry | None:
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


def list_policies(workspace: WorkspacePaths) -> dict[str, UncertainAnswers]:
    """Return what uncertain answers count as by each protocol that was ever used.

    By the digest that runs record. A protocol whose entry cannot be understood is
    left out.

    Raises
    ------
    LedgerError
        The ledger's chain is broken.
    """
    found: dict[str, UncertainAnswers] = {}
    for entry in read_ledger(workspace.ledger):
        if entry.action == "protocol_set":
            said = entry.payload.get("uncertain_answers", UncertainAnswers.EXCLUDED)
            if said in tuple(UncertainAnswers):
                found[str(entry.payload.get("digest"))] = UncertainAnswers(str(said))
    return found


def register_protocol(
    workspace: WorkspacePaths,
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
            **(
                {"uncertain_answers": protocol.uncertain_answers.value}
                if protocol.uncertain_answers
                else {}
            ),
            **({"no_finding": "read"} if protocol.no_finding == "read" else {}),
            **({"judging": _claim_words(protocol.judging)} if protocol.judging else {}),
        },
    )
    return append_event(workspace.ledger, event, actor, now=now)


def _claim_words(rules: JudgingRules) -> str:
    """Return what is claimed of judges, for the ledger."""
    parts = [f"{rules.measure} {rules.threshold} ({rules.rule})"]
    for name, floor in (("D", rules.discrimination), ("R", rules.robustness)):
        if floor is not None:
            parts.append(f"{name} {floor.lower_limit} (lower limit)")
    return ", ".join(parts)
