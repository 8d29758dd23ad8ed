"""The same prompt with another way to answer."""

from __future__ import annotations

import re
from dataclasses import replace

from loop.core.errors import DataError
from loop.prompts.frozen import frozen_blocks
from loop.prompts.version import PromptVersion

_BLOCK = "answer"
"""Name of the frozen block that tells a model how to answer."""

_OPEN = re.compile(rf"\{{#-?\s*frozen:\s*{_BLOCK}\s*-?#\}}")


def with_contract(version: PromptVersion, name: str, instruction: str) -> PromptVersion:
    """Return `version` with the output contract `name` and its way to answer.

    Parameters
    ----------
    name
        Name of an output contract, for example ``"findings"``.
    instruction
        Jinja source that takes the place of what stands in the frozen block
        ``answer``, in whichever template holds it.

    Raises
    ------
    DataError
        No template has that block, both have, or a block is malformed.
    """
    try:
        system = _replaced(version.system, instruction)
        user = _replaced(version.user, instruction)
    except DataError as error:
        raise DataError(
            f"{version.ref}: {error}. Correct the template first."
        ) from error
    if (system is None) == (user is None):
        found = "no template has" if system is None else "both templates have"
        raise DataError(
            f"{version.ref}: {found} a frozen block {_BLOCK!r}, so its way to answer "
            f"cannot be exchanged. Put {{# frozen: {_BLOCK} #}} before and "
            "{# end frozen #} after the lines that say how to answer, in one template."
        )
    return replace(
        version,
        contract=name,
        system=version.system if system is None else system,
        user=version.user if user is None else user,
    )


def can_exchange(version: PromptVersion) -> bool:
    """Whether exactly one template says in a frozen block how to answer."""
    try:
        system, user = frozen_blocks(version.system), frozen_blocks(version.user)
    except DataError:
        return False
    return (_BLOCK in system) != (_BLOCK in user)


def _replaced(template: str, instruction: str) -> str | None:
    """Return `template` with its block replaced; None if it has no such block."""
    block = frozen_blocks(template).get(_BLOCK)
    mark = _OPEN.search(template)
    if block is None or mark is None:
        return None
    # The mark stands on a line of its own: the block begins with that line's end.
    return (
        f"{template[: mark.end()]}\n{instruction}{template[mark.end() + len(block) :]}"
    )
