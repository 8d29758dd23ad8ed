"""Contracts of judges that count as GREEN does, and score the candidate themselves.

``green_sections_scored`` is ``green_sections`` with one key more, ``"overall_score"``:
a number from 0 to 1, the judge's own. ``green_text_scored`` asks for the published
sections with a fifth, ``[Overall Accuracy Score]:``. The score becomes the field
``score``; it need not agree with the counts.

``green_formula`` and ``green_formula_text`` ask for a number that the judge computes
from its counts, M / (M + 2S + 0.5I), under ``"formula_score"`` in JSON. It is computed
again: a number that is off by more than 0.005 is a repair, and ``score`` is what the
judge wrote. The score from the counts is shown beside it.

An answer without its score, or with one out of range, is unreadable. A percentage is
converted, and is a repair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from loop.core.records import Field
from loop.prompts.outputs.green_sections import GreenSections, GreenText
from loop.prompts.outputs.judged import (
    INSIGNIFICANT,
    MATCHED,
    OWN_SCORE,
    SIGNIFICANT,
    error_field,
    error_fields,
)

_TOLERANCE: Final = 0.005
"""Half of the last digit of two decimals."""

_OF_NOTHING: Final = 1.0
"""What a judge is told to write where all counts are 0."""

_LAST = "What the two texts say to you"
"""How the last sentence of every instruction begins."""

_KEY = """\
"overall_score": a number from 0.00 to 1.00, with two decimals, that says how accurate
the candidate is as a whole: 1 where nothing is wrong, 0 where it misleads.
"""
_HEADING = """\
[Overall Accuracy Score]:
a number from 0.00 to 1.00, with two decimals, that says how accurate the candidate is
as a whole: 1 where nothing is wrong, 0 where it misleads
"""
_FORMULA_KEY = """\
"formula_score": M / (M + 2S + 0.5I) with two decimals, where M is the number of matched
findings, S that of significant and I that of insignificant errors; 1.00 if all are 0.
"""
_FORMULA_HEADING = """\
[Overall Accuracy Score]:
M / (M + 2S + 0.5I) with two decimals, where M is the number of matched findings, S that
of significant and I that of insignificant errors; 1.00 if all are 0
"""


def _asked(instruction: str, more: str) -> str:
    """Return an instruction that asks for one thing more."""
    wanted = instruction.replace("in four sections", "in five sections")
    before, found, after = wanted.partition(_LAST)
    return before.replace("significant error. ", "significant error;\n") + (
        more + found + after
    )


class GreenSectionsScored(GreenSections):
    """Counts by category and significance, and the judge's own score."""

    name = "green_sections_scored"
    summary = "errors and matched findings as in green_sections, and an own score"
    score_key: ClassVar[str] = "overall_score"
    instruction = _asked(GreenSections.instruction, _KEY)


class GreenTextScored(GreenText):
    """The same, asked for in five sections."""

    name = "green_text_scored"
    summary = "the same in five sections, as free text"
    score_key: ClassVar[str] = "overall_score"
    instruction = _asked(GreenText.instruction, _HEADING)


class _ComputedScore:
    """A score that the judge computes from its counts, which is computed again."""

    score_key: ClassVar[str] = "formula_score"

    def check_score(
        self, answered: Mapping[str, Field], fields: Sequence[str], notes: list[str]
    ) -> None:
        """Compute the score again from the counts."""
        if error_field(fields[0], INSIGNIFICANT) not in answered:
            notes.append("score: not computed again, nothing is said of minor errors")
            return
        serious, minor = (
            sum(
                _number(answered[name].value)
                for name in error_fields(tuple(fields), (weight,))
            )
            for weight in (SIGNIFICANT, INSIGNIFICANT)
        )
        wanted = formula_score(_number(answered[MATCHED].value), serious, minor)
        if wanted is None:
            wanted = _OF_NOTHING
        if abs(_number(answered[OWN_SCORE].value) - wanted) > _TOLERANCE + 1e-9:
            notes.append("score: it is not what its counts give")


class GreenFormula(_ComputedScore, GreenSections):
    """Counts by category and significance, and a score computed from them."""

    name = "green_formula"
    summary = (
        "errors and matched findings, and a score that the judge computes from them"
    )
    instruction = _asked(GreenSections.instruction, _FORMULA_KEY)


class GreenFormulaText(_ComputedScore, GreenText):
    """The same, asked for in five sections."""

    name = "green_formula_text"
    summary = "the same in five sections, as free text"
    instruction = _asked(GreenText.instruction, _FORMULA_HEADING)


def formula_score(matched: float, significant: float, minor: float) -> float | None:
    """Return M / (M + 2S + 0.5I); None where there is nothing to divide by.

    Examples
    --------
    >>> formula_score(3, 1, 2), formula_score(0, 0, 0)
    (0.5, None)
    """
    of = matched + 2 * significant + 0.5 * minor
    return matched / of if of else None


def _number(value: str | int | float) -> float:
    return float(value)
