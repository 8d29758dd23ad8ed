"""TRIPOD-LLM items 13 to 19: ethics, openness, participants, results, discussion."""

from __future__ import annotations

from loop.release.documents.checklist import ChecklistItem, Filled
from loop.release.documents.phrases import objections, told
from loop.release.documents.recorded import (
    flow,
    performance,
    positives,
    recorded,
    registration,
    sources,
    updating,
)
from loop.release.form import ReleaseFacts

_OPEN = "Ethics and open science"
_PARTICIPANTS = "Results: participants"
_RESULTS = "Results: performance and updating"
_DISCUSSION = "Discussion"


def openness_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    """Return items 13 to 15."""
    return (
        ChecklistItem(
            "13", _OPEN, "ethics approval and consent", author="approval, consent"
        ),
        ChecklistItem("14a", _OPEN, "funding and its role", author="funding"),
        ChecklistItem(
            "14b", _OPEN, "conflicts of interest", author="conflicts of interest"
        ),
        ChecklistItem(
            "14c",
            _OPEN,
            "where the protocol can be had",
            (registration(facts),),
            "where it can be read",
        ),
        ChecklistItem(
            "14d", _OPEN, "registration of the study", author="register and number"
        ),
        ChecklistItem(
            "14e",
            _OPEN,
            "availability of the data",
            (_licences(facts),),
            "where the data can be had, or why not",
        ),
        ChecklistItem(
            "14f",
            _OPEN,
            "availability of the code",
            (_tool(facts), recorded("ledger up to", facts.ledger.head, "ledger.head")),
            "where this folder can be had",
        ),
        ChecklistItem(
            "15", _OPEN, "involvement of patients and the public", author="involvement"
        ),
    )


def _licences(facts: ReleaseFacts) -> Filled:
    texts = [
        f"{told(one.name)}: {told(one.licence)}" for one in facts.cohorts if one.licence
    ]
    return Filled("; ".join(texts), "release.json cohorts.licence")


def _tool(facts: ReleaseFacts) -> Filled:
    return Filled(f"ranloop {told(facts.tool.ranloop)}", "release.json tool")


def participant_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    """Return items 16a to 16d."""
    return (
        ChecklistItem(
            "16a",
            _PARTICIPANTS,
            "flow of texts and patients, with and without the outcome",
            (flow(facts), positives(facts)),
            "cases before import",
        ),
        ChecklistItem(
            "16b",
            _PARTICIPANTS,
            "characteristics for each source and split, key dates",
            (sources(facts),),
            "characteristics and dates",
        ),
        ChecklistItem(
            "16c",
            _PARTICIPANTS,
            "development and evaluation data compared",
            author="clinical variables of both",
        ),
        ChecklistItem(
            "16d",
            _PARTICIPANTS,
            "participants and outcomes in each analysis",
            (positives(facts),),
            "patients, where they are known",
        ),
    )


def performance_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    """Return items 17 and 18."""
    return (
        ChecklistItem(
            "17",
            _RESULTS,
            "performance by the metrics fixed before",
            (
                performance(facts),
                recorded("claim", facts.claim.verdict, "claim.verdict"),
            ),
        ),
        ChecklistItem("18", _RESULTS, "results of updating", (updating(facts),)),
    )


def discussion_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    """Return items 19a to 19g."""
    return (
        ChecklistItem("19a", _DISCUSSION, "interpretation and fairness", author="both"),
        ChecklistItem(
            "19b",
            _DISCUSSION,
            "limitations: bias, uncertainty, generalisability",
            (_limits(facts),),
            "bias and generalisability",
        ),
        ChecklistItem(
            "19c",
            _DISCUSSION,
            "known challenges of the data: representation, missing data, bias",
            author="known challenges",
        ),
        ChecklistItem(
            "19d",
            _DISCUSSION,
            "intended use: input, end user, human oversight",
            author="intended use and oversight",
        ),
        ChecklistItem(
            "19e",
            _DISCUSSION,
            "poor or missing input in use",
            author="how such input is recognised and handled",
        ),
        ChecklistItem(
            "19f",
            _DISCUSSION,
            "what users must do and know",
            author="tasks and expertise of users",
        ),
        ChecklistItem("19g", _DISCUSSION, "next steps", author="next steps"),
    )


def _limits(facts: ReleaseFacts) -> Filled:
    texts = []
    if facts.development_only:
        texts.append("DEVELOPMENT DATA ONLY")
    for one in facts.evaluations:
        open_labels = len(list(objections(one)))
        if open_labels:
            texts.append(f"{open_labels} labels without a pass on {told(one.cohort)}")
    return Filled("; ".join(texts), "release.json evaluations.labels.gate")
