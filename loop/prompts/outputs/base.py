"""What an output contract is: the only place that sees raw completions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from loop.core.errors import DataError
from loop.core.records import Item, PromptTask, Reading
from loop.prompts.outputs.binary import BinaryValues
from loop.prompts.outputs.entailment import Entailment, EntailmentText
from loop.prompts.outputs.error_list import ErrorList, UnweightedErrorList
from loop.prompts.outputs.error_totals import ErrorCounts, ErrorCountsText
from loop.prompts.outputs.findings import Findings
from loop.prompts.outputs.green_scored import (
    GreenFormula,
    GreenFormulaText,
    GreenSectionsScored,
    GreenTextScored,
)
from loop.prompts.outputs.green_sections import (
    GreenSections,
    GreenText,
    OfficialGreenText,
    ParserMode,
)
from loop.prompts.outputs.label_values import LabelValues
from loop.prompts.outputs.line_corrections import LineCorrections
from loop.prompts.outputs.mean_answer import AnswerPart
from loop.prompts.outputs.overall_score import OverallScore, OverallScoreText
from loop.prompts.outputs.plausible import Plausible
from loop.prompts.outputs.report_changes import ReportChanges
from loop.prompts.outputs.report_phrases import ReportPhrases, ReportPhrasesText
from loop.prompts.outputs.rubric_rating import (
    Rating,
    RatingText,
    RubricPreference,
    RubricPreferenceText,
)
from loop.prompts.outputs.weighted_errors import WeightedErrorList


class Contract(Protocol):
    """A JSON schema for the answer and a parser that never guesses."""

    name: str
    """Registered name, for example ``"label_values"``."""

    version: str
    """Raised whenever the parser reads any answer differently."""

    task: PromptTask
    """What the prompts are for that are answered in it."""

    inputs: tuple[str, ...]
    """Names of the texts of an item that the answer is about."""

    summary: str
    """What an answer says, in a few words."""

    counts_errors: bool
    """Whether a judge's answer has a count of errors for each category asked for."""

    weighs: bool
    """Whether it tells significant errors from others."""

    counts_matches: bool
    """Whether it has a count of matched findings."""

    numbers: tuple[str, ...]
    """Names of its other fields that are numbers, such as ``"score"``."""

    instruction: str
    """Jinja source that tells a model how to answer; may use ``fields``."""

    def schema(self, fields: Sequence[str]) -> Mapping[str, object]:
        """Return the JSON schema of an answer with exactly these fields.

        Empty where the answer is free text.
        """
        ...

    def read(self, text: str, fields: Sequence[str], item: Item) -> Reading:
        """Return the fields of one raw answer, or why it cannot be read.

        Raises nothing for any `text`: an unreadable answer is a `Reading` without
        fields.
        """
        ...

    def mean_answer(
        self, fields: Sequence[str], found: Mapping[str, float], negated: float
    ) -> Iterable[AnswerPart]:
        """Yield what the mean answer about `fields` is made of, to count its tokens.

        Parameters
        ----------
        found
            Field to how often an answer has something to say of it, at most once a
            case for a label.
        negated
            Share of the cases in which any one label is negated by name.
        """
        ...


_ALL: tuple[Contract, ...] = (
    *(LabelValues(), Findings(), BinaryValues()),
    *(GreenSections(), GreenText(), ErrorList(), UnweightedErrorList()),
    *(Entailment(), EntailmentText(), ReportPhrases(), ReportPhrasesText()),
    *(GreenSectionsScored(), GreenTextScored(), GreenFormula(), GreenFormulaText()),
    *(OverallScore(), OverallScoreText(), ErrorCounts(), ErrorCountsText()),
    *(LineCorrections(), WeightedErrorList(), Rating(), RatingText()),
    *(RubricPreference(), RubricPreferenceText()),
    *(ReportChanges(), Plausible()),
)

CONTRACTS: Mapping[str, Contract] = MappingProxyType({one.name: one for one in _ALL})
"""Every contract by its name, those of a task in the order they are offered."""


def choose_parser(contract: Contract, parser: ParserMode) -> Contract:
    """Return `contract` with its answers read in another way.

    Raises
    ------
    DataError
        The published parser does not read such answers.
    """
    if parser is ParserMode.TOLERANT:
        return contract
    if contract.name != GreenText.name:
        raise DataError(
            f"the published parser reads the four sections of {GreenText.name} only, "
            f"and the contract is {contract.name}. Leave --parser out, or name a judge "
            f"with that contract, such as {GreenText.name}."
        )
    return OfficialGreenText()


def list_contracts(task: PromptTask) -> tuple[str, ...]:
    """Return the names of the contracts of `task`, the full one first."""
    return tuple(name for name, one in CONTRACTS.items() if one.task is task)


def list_exchangeable(contract: Contract) -> tuple[str, ...]:
    """Return the contracts whose answers say what those of `contract` do.

    A prompt may be answered in any of them, `contract` among them.
    """

    def says(one: Contract) -> tuple[object, ...]:
        return (
            one.task,
            one.inputs,
            one.counts_errors,
            one.weighs,
            one.counts_matches,
            one.numbers,
        )

    return tuple(name for name, one in CONTRACTS.items() if says(one) == says(contract))


def get_contract(name: str, task: PromptTask | None = None) -> Contract:
    """Return the output contract called `name`.

    Parameters
    ----------
    task
        What the prompt is for that is to be answered in it; None: anything.

    Raises
    ------
    DataError
        There is no such contract, or none for such prompts.
    """
    contract = CONTRACTS.get(name)
    if contract is not None and task in (None, contract.task):
        return contract
    known = ", ".join(sorted(CONTRACTS if task is None else list_contracts(task)))
    which = f" for a prompt whose task is {task}" if contract else ""
    raise DataError(
        f"no output contract {name!r}{which} (known: {known}). Name one of these with "
        "--contract, or as `contract` in the version's prompt.yaml."
    )
