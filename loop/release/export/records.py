"""What is exported, to whom, and how the prompt is to be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from loop.core.records import Item
from loop.prompts.version import PromptVersion


class ExportTarget(StrEnum):
    """Who loads an export."""

    JINJA = "jinja"
    """Anything that renders Jinja templates."""

    OPENAI_BATCH = "openai-batch"
    """The batch interface of OpenAI and of services like it."""

    VLLM_BATCH = "vllm-batch"
    """``vllm run-batch``."""

    DSPY = "dspy"
    """A program that uses DSPy."""

    @property
    def is_batch(self) -> bool:
        """Whether it takes files of requests."""
        return self in (ExportTarget.OPENAI_BATCH, ExportTarget.VLLM_BATCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParameters:
    """How the exported prompt is to be asked."""

    model: str = ""
    """Name of the model as its server knows it; empty: whoever loads it chooses."""

    temperature: float = 0.0
    max_tokens: int = 2048
    """Most output tokens of one answer."""

    seed: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of a request; None takes a field away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOrigin:
    """The version that is exported, and what is known of how it was released."""

    version: PromptVersion
    asking: RequestParameters
    release: str = ""
    """Name of the release it was verified as; empty for a version that is none."""

    engine: str = ""
    """Engine that the release's evidence is of; empty without a release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSource:
    """Cases whose requests are written."""

    origin: str
    """Where they come from, in words: ``"cohort dev"`` or ``"file week12.csv"``."""

    items: Iterable[Item]
    """Read once; with the variable ``text``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSpec:
    """Everything that decides what an export holds."""

    origin: ExportOrigin
    target: ExportTarget
    cases: CaseSource | None = None
    """For batches: the cases to ask about; None for a template of a request."""
