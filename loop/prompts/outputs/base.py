"""What an output contract is: the only place that sees raw completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from loop.core.errors import DataError
from loop.core.records import Item, Reading
from loop.prompts.outputs.binary import BinaryValues
from loop.prompts.outputs.findings import Findings
from loop.prompts.outputs.label_values import LabelValues


class Contract(Protocol):
    """A JSON schema for the answer and a parser that never guesses."""

    name: str
    """Registered name, for example ``"label_values"``."""

    version: str
    """Raised whenever the parser reads any answer differently."""

    instruction: str
    """Jinja source that tells a model how to answer; may use ``fields``."""

    def schema(self, fields: Sequence[str]) -> Mapping[str, object]:
        """Return the JSON schema of an answer with exactly these fields."""
        ...

    def read(self, text: str, fields: Sequence[str], item: Item) -> Reading:
        """Return the fields of one raw answer, or why it cannot be read.

        Raises nothing for any `text`: an unreadable answer is a `Reading` without
        fields.
        """
        ...


CONTRACTS = (LabelValues.name, Findings.name, BinaryValues.name)
"""Names of all contracts, the full one first."""


def get_contract(name: str) -> Contract:
    """Return the output contract called `name`.

    Raises
    ------
    DataError
        There is no such contract.
    """
    contracts: dict[str, Contract] = {
        LabelValues.name: LabelValues(),
        Findings.name: Findings(),
        BinaryValues.name: BinaryValues(),
    }
    if name not in contracts:
        known = ", ".join(sorted(contracts))
        raise DataError(
            f"no output contract {name!r} (known: {known}). Name one of these with "
            "--contract, or as `contract` in the version's prompt.yaml."
        )
    return contracts[name]
