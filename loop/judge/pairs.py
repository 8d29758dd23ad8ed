"""Judging in one call, for a notebook: texts in, tables out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.judge.document import JudgeDocument, JudgeOptions, judge_systems
from loop.judge.judge import Judge
from loop.judge.shots import ShotRequest, add_shots, request_shots
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import read_known
from loop.prompts.version import PromptVersion
from loop.score.joining import join_texts
from loop.score.reading.options import in_python

if TYPE_CHECKING:
    from loop.score.reading.memory import Candidates, Patients, Texts


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgeResult:
    """What a judge says of every system, as tables.

    In tables, what is undefined is NaN.
    """

    document: JudgeDocument
    """The same as records."""

    @property
    def signature(self) -> str:
        """Every convention of the first score of the first system."""
        return self.document.sheet.results[0].signature

    @property
    def table(self) -> pd.DataFrame:
        """One row per score and system: value, interval, direction, signature."""
        return pd.DataFrame(
            [
                {
                    "system": one.system,
                    "score": one.metric.name,
                    "value": one.estimate.value,
                    "low": one.estimate.low,
                    "high": one.estimate.high,
                    "direction": one.metric.direction.value,
                    "n": one.n,
                    "signature": one.signature,
                }
                for one in self.document.sheet.results
            ]
        )

    @property
    def pairs(self) -> pd.DataFrame:
        """One row per pair: how it ended, its scores, matches and errors by category.

        Errors are in columns such as ``significant.omission``.
        """
        frames = []
        for place, one in enumerate(self.document.systems):
            counts = one.answers.counts
            scores = {
                metric.name: result.per_case
                for metric in self.document.sheet.metrics
                for result in self.document.sheet.results
                if result.metric is metric
                and result.system == self.document.sheet.systems[place]
            }
            named = [
                (f"{weight}.{name}", table[:, column])
                for weight, table in (
                    ("significant", counts.significant),
                    ("insignificant", counts.insignificant),
                )
                for column, name in enumerate(counts.categories)
                if not np.isnan(table[:, column]).all()
            ]
            frames.append(
                pd.DataFrame(
                    {
                        "id": one.case_ids,
                        "system": one.system,
                        "status": [
                            "not_asked" if status is None else status.value
                            for status in counts.statuses
                        ],
                        **scores,
                        "matched": counts.matched,
                        **dict(named),
                    }
                )
            )
        return pd.concat(frames, ignore_index=True)

    def _repr_html_(self) -> str:
        """Return the table of scores, for a notebook."""
        return str(self.table.drop(columns="signature").to_html(index=False))


def judge_pairs(
    references: Texts,
    candidates: Candidates,
    judge: str | PromptVersion = "green",
    engine: str = "rules",
    *,
    patients: Patients | None = None,
    workspace: WorkspacePaths | None = None,
    options: JudgeOptions | None = None,
    shots: ShotRequest | str | None = None,
) -> JudgeResult:
    """Judge candidate reports against their references.

    Parameters
    ----------
    references
        Case id to text; a pandas Series is one, too.
    candidates
        The same of one system, or a mapping of system to texts.
    judge
        Version that judges pairs, for example ``"green@v1"``.
    engine
        Engine that is asked; ``"rules"`` needs no model, and is none.
    patients
        Case id to patient, who is resampled as a whole; None: each case is.
    workspace
        Where versions and stored answers are; None for what ships with ranloop.
    options
        How counts become scores; None for the defaults.
    shots
        Examples to show the judge, for example ``"random:5"`` of the pool that ships.

    Raises
    ------
    DataError
        Ids or texts cannot be joined, there is no such judge, or no such shots.
    OverlapError
        A pair shares its id, its patient or its reference with a shot.
    EngineError
        The engine is not available.

    Examples
    --------
    >>> said = judge_pairs(
    ...     {"a": "Small left pleural effusion."},
    ...     {"copy": {"a": "Small left pleural effusion."}, "normal": {"a": "Normal."}},
    ... )
    >>> said.table.set_index(["score", "system"])["value"]["green_green"].to_dict()
    {'copy': 1.0, 'normal': 0.0}
    """
    labels = workspace.labels if workspace else bundled() / "labels"
    try:
        joined = join_texts(
            references, candidates, read_taxonomy(labels), patients=patients
        )
    except DataError as error:
        raise type(error)(in_python(str(error))) from None
    if shots is not None:
        asked = request_shots(shots) if isinstance(shots, str) else shots
        place = workspace or WorkspacePaths(bundled())
        found = read_known(place, judge).version if isinstance(judge, str) else judge
        judge = add_shots(workspace, found, asked)
    with Judge.open(workspace, judge, engine) as opened:
        return JudgeResult(document=judge_systems(joined, opened, options))
