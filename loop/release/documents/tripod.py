"""The items of TRIPOD-LLM, as far as a release can fill them in."""

from __future__ import annotations

from loop.release.documents.checklist import Checklist, ChecklistItem, Filled
from loop.release.documents.tripod_methods import (
    analysis_items,
    annotation_items,
    data_items,
    output_items,
)
from loop.release.documents.tripod_results import (
    discussion_items,
    openness_items,
    participant_items,
    performance_items,
)
from loop.release.form import ReleaseFacts


def tripod_llm(facts: ReleaseFacts) -> Checklist:
    """Return the checklist with what the release says.

    References
    ----------
    Gallifant J, et al. The TRIPOD-LLM reporting guideline for studies using large
    language models. Nat Med 2025;31:60-69.
    """
    return Checklist(
        name="TRIPOD-LLM",
        source="Nat Med 2025;31:60-69, 19 main items",
        notes=(
            "Numbered as in the published table, whose 19 main items have 49 numbered "
            "entries; the text of the publication speaks of 50 sub-items. Item 2 "
            "has a checklist of its own for abstracts, which is not filled in here.",
            "The study design taken for granted is the evaluation of a model (E) that "
            "classifies (C); say so, or correct it.",
        ),
        items=(
            *_front_items(facts),
            *data_items(facts),
            *analysis_items(facts),
            *output_items(facts),
            *annotation_items(facts),
            *openness_items(facts),
            *participant_items(facts),
            *performance_items(facts),
            *discussion_items(facts),
        ),
    )


def _front_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    release = facts.release
    number = len(release.labels)
    task = f"values of {number} labels from clinical texts" if number else ""
    labels = Filled(task, "release.json release.labels")
    intro = "Introduction"
    return (
        ChecklistItem(
            "1",
            "Title and abstract",
            "title: design, task, target population, outcome",
            (labels,),
            "the title",
        ),
        ChecklistItem(
            "2",
            "Title and abstract",
            "abstract, by its own checklist (2a to 2l)",
            author="the abstract",
        ),
        ChecklistItem(
            "3a",
            intro,
            "context in care, and why the model is used or tested",
            author="context, rationale, other work",
        ),
        ChecklistItem(
            "3b",
            intro,
            "target population, intended use and users",
            author="population, use and users",
        ),
        ChecklistItem(
            "4",
            intro,
            "objectives, and the stage of the work",
            (labels,),
            "the objectives",
        ),
    )
