"""One immutable prompt version: templates, guides, call plan, output contract."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum

from loop.core.digests import digest_json
from loop.core.records import Guide

NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
"""What a prompt, a draft id and an alias may look like; also safe as a folder name."""


class CallPlan(StrEnum):
    """How many calls one item takes."""

    JOINT = "joint"
    """One call that asks for every label."""

    PER_LABEL = "per_label"
    """One call for each label."""


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

    @property
    def ref(self) -> str:
        """How the version is named on the command line, ``"extractor@v3"``."""
        return f"{self.name}@{f'draft:{self.draft}' if self.draft else self.tag}"

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
        return digest_json(
            {
                "name": self.name,
                "system": self.system,
                "user": self.user,
                "guides": [asdict(guide) for guide in self.guides],
                "plan": self.plan,
                "contract": self.contract,
                "inputs": self.inputs,
            }
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """Label ids asked for, in order."""
        return tuple(guide.label for guide in self.guides)

    def guide(self, label: str) -> Guide | None:
        """Return the guide of `label`, or None when the prompt does not ask for it."""
        return next((guide for guide in self.guides if guide.label == label), None)
