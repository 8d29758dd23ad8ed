"""One immutable prompt version: templates, guides, call plan, output contract.

A frozen block, which no optimizer may touch, begins with ``{# frozen: NAME #}`` and
ends with ``{# end frozen #}``, each on a line of its own; both lines render to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.records import Guide
from loop.prompts.shot_records import Shot, Shots, mask_shots

_MARK = re.compile(r"\{#-?\s*(?:frozen:\s*(?P<name>[\w-]+)|end frozen)\s*-?#\}")


def frozen_blocks(template: str) -> dict[str, str]:
    r"""Return the frozen blocks of a template, name to source between the marks.

    Raises
    ------
    DataError
        A block is not closed, closed twice, nested, or named twice.

    Examples
    --------
    >>> frozen_blocks("{# frozen: a #}\nkeep\n{# end frozen #}\n")
    {'a': '\nkeep\n'}
    """
    blocks: dict[str, str] = {}
    name, start = "", 0
    for mark in _MARK.finditer(template):
        line = template.count("\n", 0, mark.start()) + 1
        if bool(mark["name"]) == bool(name) or mark["name"] in blocks:
            raise DataError(
                f"line {line}: frozen blocks must be closed with "
                "{# end frozen #}, not nested, and each needs its own name"
            )
        if name:
            blocks[name] = template[start : mark.start()]
        name, start = mark["name"] or "", mark.end()
    if name:
        raise DataError(f"frozen block {name!r} has no {{# end frozen #}}")
    return blocks


def replace_blocks(template: str, new: Callable[[str, str], str]) -> str:
    r"""Return a template with other text in its frozen blocks; the marks stay.

    Parameters
    ----------
    new
        Name and source of a block to the source that takes its place.

    Raises
    ------
    DataError
        As `frozen_blocks` does.

    Examples
    --------
    >>> replace_blocks("{# frozen: a #}\nold\n{# end frozen #}\n", lambda *_: "\n")
    '{# frozen: a #}\n{# end frozen #}\n'
    """
    frozen_blocks(template)
    parts, name, end = [], "", 0
    for mark in _MARK.finditer(template):
        between = template[end : mark.start()]
        parts += [new(name, between) if name else between, mark[0]]
        name, end = mark["name"] or "", mark.end()
    return "".join((*parts, template[end:]))


NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
"""What a prompt, a draft id and an alias may look like; also safe as a folder name."""


class CallPlan(StrEnum):
    """How many calls one item takes."""

    JOINT = "joint"
    """One call that asks for every label."""

    PER_LABEL = "per_label"
    """One call for each label."""


class NamedVersion(NamedTuple):
    """A version that another one names."""

    ref: str
    """For example ``"extractor@v11"``: where to look for it."""

    digest: str
    """What it must be, whatever it is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptVersion:
    """Templates and clinical content of one prompt, at one version.

    Two versions are the same prompt if and only if their digests are equal. Editing
    means making a new version; nothing here can be changed in place.
    """

    name: str
    """Prompt name, for example ``"extractor"``."""

    number: int
    """Version counter from 1, without gaps; 0 while it is a draft."""

    system: str
    """Jinja source of the system message, UTF-8, LF line ends."""

    user: str
    """Jinja source of the user message; ends with the case text."""

    guides: tuple[Guide, ...]
    """Clinical content, one guide a label, in the order asked."""

    plan: CallPlan = CallPlan.JOINT
    contract: str = "label_values"
    """Name of the output contract that reads the answers."""

    inputs: tuple[str, ...] = ("text",)
    """Item variables the user template inserts, in that order, each exactly once."""

    reads: tuple[NamedVersion, ...] = ()
    """Further versions that answering takes: a judge's extractor, by whose guides an
    engine without a model finds what the two texts say, and the version of each stage
    before this one, see `loop.prompts.stages`."""

    finders: tuple[Guide, ...] = ()
    """Guides of the extractors that it reads, where these were looked up; they are as
    their digests say."""

    stages: tuple[PromptVersion, ...] = ()
    """The versions that it reads which make its inputs, where these were looked up."""

    shots: Shots | None = None
    """Assessed pairs that are shown before the pair to be judged; None for none."""

    shown: tuple[Shot, ...] = ()
    """The pairs themselves, where these were looked up; they are as their digests say.
    Private text."""

    composed: bool = False
    """Whether the shots were added for one call: no file has such a version."""

    parent: str | None = None
    """Digest of the version this one was revised from; None for the first."""

    author: str = ""
    """Who is answerable for it, as in the ledger."""

    time: str = ""
    """When it was written: UTC, ISO 8601 with seconds."""

    why: str = ""
    """Reason for this version, one sentence or more."""

    verdicts: tuple[str, ...] = ()
    """Ids of the clinicians' verdicts it answers."""

    draft: str = ""
    """Draft id while it is a draft; empty once committed."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"prompt name must be snake_case, got {self.name!r}")
        if self.number < 0 or (self.number == 0) != bool(self.draft):
            raise ValueError(
                f"{self.name}: number {self.number} with draft id {self.draft!r}; "
                "a draft has number 0 and an id, a version has a number from 1"
            )
        labels = [guide.label for guide in self.guides]
        if len(set(labels)) != len(labels):
            raise ValueError(f"{self.name}: a label has two guides")
        if self.shown and len(self.shown) != len(self.shots.pins if self.shots else ()):
            raise ValueError(f"{self.name}: other shots are shown than it names")

    @property
    def ref(self) -> str:
        """How the version is named on the command line, ``"extractor@v3"``.

        With shots that were added for one call, ``"green@v1+random:5"``.
        """
        added = f"+{self.shots.short}" if self.composed and self.shots else ""
        return f"{self.name}@{f'draft:{self.draft}' if self.draft else self.tag}{added}"

    @property
    def tag(self) -> str:
        """Folder name of a committed version, ``"v3"``."""
        return f"v{self.number}"

    @property
    def digest(self) -> str:
        """Sha256 over everything that changes behaviour, 64 hex characters.

        Number, parent, author, time, reason and verdicts are not part of it: the same
        wording under another number is the same prompt.
        """
        return _digest(self)

    @property
    def labels(self) -> tuple[str, ...]:
        """Label ids asked for, in order."""
        return tuple(guide.label for guide in self.guides)

    @property
    def read_words(self) -> str:
        """The versions that it reads, each with the start of its digest."""
        return ", ".join(f"{one.ref} ({one.digest[:12]})" for one in self.reads)

    @property
    def shot_words(self) -> str:
        """Its shots in words; empty without any."""
        return self.shots.words if self.shots else ""

    def guide(self, label: str) -> Guide | None:
        """Return the guide of `label`, or None when the prompt does not ask for it."""
        return next((guide for guide in self.guides if guide.label == label), None)


@lru_cache(maxsize=128)
def _digest(version: PromptVersion) -> str:
    """Return the digest, worked out once: a history asks for it at every turn."""
    content: dict[str, object] = {
        "name": version.name,
        "system": version.system,
        "user": version.user,
        "guides": [guide.identity for guide in version.guides],
        "plan": version.plan,
        "contract": version.contract,
        "inputs": version.inputs,
    }
    if version.reads:
        # Versions from before there were judges keep their digests.
        content["reads"] = [one.digest for one in version.reads]
    if version.shots:
        content["shots"] = version.shots.identity
    return digest_json(content)


def with_masked_shots(version: PromptVersion) -> PromptVersion:
    """Return `version` with signs in the place of the texts of its shots.

    For rendering what somebody looks at or a release ships: nothing is asked with it.
    """
    if version.shots is None:
        return version
    return replace(version, shown=mask_shots(version.shots))


_BLOCK = "answer"
"""Name of the frozen block that tells a model how to answer."""


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
    if _BLOCK not in frozen_blocks(template):
        return None
    # The mark stands on a line of its own: the block begins with that line's end.
    return replace_blocks(
        template, lambda name, text: f"\n{instruction}" if name == _BLOCK else text
    )
