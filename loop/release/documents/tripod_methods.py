"""TRIPOD-LLM items 5 to 12: data, analysis, output, annotation, prompts, compute."""

from __future__ import annotations

from loop.release.documents.checklist import ChecklistItem, Filled
from loop.release.documents.recorded import (
    ceiling,
    choice,
    comparison,
    compute,
    dates,
    excluded,
    lineage,
    model,
    positives,
    protocol,
    readers,
    recorded,
    registration,
    settings,
    sources,
    structure,
    told_sources,
    wording,
)
from loop.release.form import ReleaseFacts

_MADE_ON = ("taxonomy", "dev")
"""Roles of cohorts whose cases and labels may shape a prompt."""

_DATA = "Methods: data"
_ANALYSIS = "Methods: analysis"
_OUTPUT = "Methods: output of the model"
_ANNOTATION = "Methods: annotation"
_PROMPTS = "Methods: prompts, tuning, compute"


def data_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    """Return items 5a to 5e."""
    return (
        ChecklistItem(
            "5a",
            _DATA,
            "sources of the data, apart for each use, and why these",
            (sources(facts),),
            "why these data; what the model itself was trained on",
        ),
        ChecklistItem(
            "5b",
            _DATA,
            "description and distribution of the data",
            (positives(facts),),
            "patients, sites, countries",
        ),
        ChecklistItem(
            "5c", _DATA, "dates of the oldest and newest text", author="both dates"
        ),
        ChecklistItem(
            "5d",
            _DATA,
            "preparation and checks of the data",
            (Filled("each cohort is pinned by a digest", "release.json cohorts"),),
            "what was done to the texts before they were imported",
        ),
        ChecklistItem(
            "5e",
            _DATA,
            "missing and unbalanced data, and what was left out",
            (excluded(facts),),
            "reasons for leaving out any data before import",
        ),
    )


def analysis_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    """Return items 6a to 6e."""
    no_weights = "a release is a prompt: ranloop changed no weights"
    contract = recorded("output contract", facts.release.contract, "release.contract")
    policy = "the answer itself decides; no probability, no threshold"
    return (
        ChecklistItem(
            "6a",
            _ANALYSIS,
            "name and version of the model, last date of its training",
            (model(facts),),
            "last date of training",
        ),
        ChecklistItem(
            "6b",
            _ANALYSIS,
            "how the model was developed, tuned and aligned (designs M, D)",
            (Filled(no_weights, "release.json release"),),
            "architecture and training, from the model's developers",
        ),
        ChecklistItem(
            "6c",
            _ANALYSIS,
            "how text was generated: prompts and settings",
            (settings(facts), wording(facts)),
            "how consistent repeated answers are",
        ),
        ChecklistItem(
            "6d",
            _ANALYSIS,
            "output as it came and after processing",
            (contract, Filled("schema of each answer", "schema.json")),
        ),
        ChecklistItem(
            "6e",
            _ANALYSIS,
            "classification, probabilities and thresholds (tasks C, OF)",
            (Filled(policy, "schema.json"),),
            "why these labels and values",
        ),
    )


def output_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    """Return items 7a to 7e."""
    return (
        ChecklistItem(
            "7a",
            _OUTPUT,
            "quality of generated text (tasks QA, IR, DG, SS, MT)",
            (Filled("not asked of a classification", "release.json release.contract"),),
        ),
        ChecklistItem(
            "7b",
            _OUTPUT,
            "relevance of the metrics to the task in use",
            author="relevance to the intended use",
        ),
        ChecklistItem(
            "7c",
            _OUTPUT,
            "outcome, how predictions were made and when, metrics",
            (
                registration(facts),
                protocol(facts),
                dates(facts),
                structure(facts),
            ),
        ),
        ChecklistItem(
            "7d",
            _OUTPUT,
            "who assessed subjective outcomes, and their agreement",
            (readers(facts),),
            "qualifications of the readers and their instructions",
        ),
        ChecklistItem(
            "7e",
            _OUTPUT,
            "comparison with other models, people and standards",
            (ceiling(facts), comparison(facts)),
            "other models and benchmarks",
        ),
    )


def annotation_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    """Return items 8a to 12."""
    return (
        ChecklistItem(
            "8a",
            _ANNOTATION,
            "how texts were labelled, with the guide for it",
            author="the annotation guide with examples",
        ),
        ChecklistItem(
            "8b",
            _ANNOTATION,
            "how many annotators, how much was read twice, agreement",
            (readers(facts),),
        ),
        ChecklistItem(
            "8c",
            _ANNOTATION,
            "background and experience of the annotators",
            author="background and experience",
        ),
        ChecklistItem(
            "9a",
            _PROMPTS,
            "how prompts were designed and chosen",
            (lineage(facts), choice(facts)),
            "the clinical reasons",
        ),
        ChecklistItem(
            "9b",
            _PROMPTS,
            "which data the prompts were developed on",
            (_development(facts),),
        ),
        *_task_items(facts),
    )


def _task_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    nothing = Filled("nothing is summarised", "release.json release.contract")
    return (
        ChecklistItem(
            "10", _PROMPTS, "preparation before summarising (task SS)", (nothing,)
        ),
        ChecklistItem(
            "11",
            _PROMPTS,
            "instruction tuning and alignment (designs M, D)",
            (Filled("ranloop tuned no model", "release.json release"),),
            "whether the model was tuned for this study",
        ),
        ChecklistItem(
            "12",
            _PROMPTS,
            "compute, time and cost",
            (compute(facts),),
            "machines and cost",
        ),
    )


def _development(facts: ReleaseFacts) -> Filled:
    cohorts = [one for one in facts.cohorts if one.role in _MADE_ON]
    return Filled(told_sources(cohorts), "release.json cohorts.role")
