"""A rubric from a file, for the judges that rate or compare by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from loop.core.errors import DataError
from loop.core.records import Guide
from loop.core.yaml_files import read_model
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.rubric_rating import POINTS, Rating
from loop.prompts.version import PromptVersion

_LABEL: Final = "rubric"

_Words = Annotated[str, Field(min_length=1, max_length=2_000)]


class Rubric(BaseModel):
    """The content of a rubric file: one criterion, and what 1 to 5 points mean.

    All of it is data: Jinja in it reaches the model as it is written.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    name: _Words = "Rubric"
    criterion: _Words
    descriptions: dict[int, _Words]
    """By points: each of 1 to 5."""

    @model_validator(mode="after")
    def _describe_each(self) -> Rubric:
        if sorted(self.descriptions) != list(POINTS):
            raise ValueError(
                "descriptions must say what each of 1, 2, 3, 4 and 5 points means, and "
                "nothing else"
            )
        return self

    @property
    def guide(self) -> Guide:
        """The rubric as the guide of a version, most points first."""
        return Guide(
            label=_LABEL,
            name=self.name,
            definition=self.criterion,
            counts=tuple(f"{n}: {self.descriptions[n]}" for n in reversed(POINTS)),
        )


def read_rubric(path: Path) -> Rubric:
    """Return the rubric of a YAML file.

    Raises
    ------
    DataError
        The file is missing, not YAML, or lacks the criterion or a description.
    """
    return read_model(path, Rubric)


def with_rubric(version: PromptVersion, rubric: Rubric) -> PromptVersion:
    """Return a judge's version with another rubric in place of its own.

    It has another digest, is asked without being committed, and is not part of a
    workspace.

    Raises
    ------
    DataError
        The judge does not use a rubric.
    """
    if not isinstance(get_contract(version.contract), Rating):
        raise DataError(
            f"{version.ref} does not rate by a rubric: its contract is "
            f"{version.contract}. Leave --rubric out, or name rating or "
            "rating_pairwise."
        )
    return replace(version, guides=(rubric.guide,))
