"""The six items of MI-CLEAR-LLM, as far as a release can fill them in."""

from __future__ import annotations

from loop.release.documents.checklist import Checklist, ChecklistItem
from loop.release.documents.recorded import (
    choice,
    dates,
    lineage,
    model,
    openings,
    protocol,
    recorded,
    registration,
    separation,
    settings,
    sources,
    structure,
    wording,
)
from loop.release.form import ReleaseFacts


def mi_clear(facts: ReleaseFacts) -> Checklist:
    """Return the checklist with what the release says.

    References
    ----------
    Park SH, et al. Minimum reporting items for clear evaluation of accuracy reports of
    large language models in healthcare (MI-CLEAR-LLM). Korean J Radiol
    2024;25:865-868.
    """
    return Checklist(
        name="MI-CLEAR-LLM",
        source="Korean J Radiol 2024;25:865-868, six items",
        notes=("An update with more items was published in 2025.",),
        items=(*_model_items(facts), *_prompt_items(facts), _independence(facts)),
    )


def _model_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    return (
        ChecklistItem(
            "1",
            "Model",
            "which model, which version, and when it was asked",
            (model(facts), dates(facts)),
            "manufacturer, date up to which it was trained, access to the web",
        ),
        ChecklistItem(
            "2",
            "Model",
            "how randomness of the answers was handled",
            (settings(facts),),
            "why these settings, and how often each case was asked",
        ),
    )


def _prompt_items(facts: ReleaseFacts) -> tuple[ChecklistItem, ...]:
    return (
        ChecklistItem(
            "3",
            "Prompt",
            "exact wording and syntax of the prompts",
            (
                wording(facts),
                recorded("language", facts.release.languages, "release.languages"),
            ),
            "why these words",
        ),
        ChecklistItem(
            "4",
            "Prompt",
            "how prompts were structured: alone or chained, one question or many",
            (structure(facts),),
        ),
        ChecklistItem(
            "5",
            "Prompt",
            "how prompts were tested and optimised",
            (
                lineage(facts),
                choice(facts),
                recorded("last change:", facts.release.why, "release.why"),
                registration(facts),
                protocol(facts),
            ),
            "clinical reasons, and when it was decided to stop",
        ),
    )


def _independence(facts: ReleaseFacts) -> ChecklistItem:
    return ChecklistItem(
        "6",
        "Test data",
        "independence of the test data",
        (sources(facts), separation(facts), openings(facts)),
        "origin and public availability of the texts, with an address, and whether "
        "the model may have been trained on them",
    )
