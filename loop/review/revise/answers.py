"""How a prompt is to be answered: another contract is a revision like any other."""

from __future__ import annotations

from loop.prompts.outputs.base import get_contract
from loop.prompts.version import PromptVersion, can_exchange, with_contract


def answered_in(version: PromptVersion, contract: str) -> PromptVersion:
    """Return `version` answered in `contract`; itself if it is, or if that is empty.

    Raises
    ------
    DataError
        There is no such contract, or the version does not mark how to answer.
    """
    if contract in ("", version.contract):
        return version
    return with_contract(version, contract, get_contract(contract).instruction)


def comparable_parent(parent: PromptVersion, draft: PromptVersion) -> PromptVersion:
    """Return `parent` as it would be in the draft's contract.

    Frozen blocks are compared with it: a draft in another contract must tell a model to
    answer in that contract's words, and change no other frozen block.
    """
    if not can_exchange(parent):
        return parent
    return answered_in(parent, draft.contract)
