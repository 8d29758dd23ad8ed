"""Who may do what: roles, the rights they grant, and users."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from loop.core.errors import LoopError
from loop.core.ledger import Actor


class PermissionRefused(LoopError):
    """Whoever asks may not do that; says which role may, or to sign in again."""


class SignInRequired(PermissionRefused):
    """Nobody is signed in: never was, for too long, or not any more."""


class Right(StrEnum):
    """What a person may do in the workbench."""

    READ = "read"
    """Label cases blind: text only."""

    SEE = "see"
    """See results, the review queue, versions."""

    JUDGE = "judge"
    """Give verdicts."""

    ADJUDICATE = "adjudicate"
    """Settle what readers disagree on."""

    REVISE = "revise"
    """Make, check and commit drafts."""

    IMPORT = "import"
    """Bring in cohorts and votes."""

    EXPORT = "export"
    """Take out tables, documents, verdicts."""

    APPROVE = "approve"
    """Answer for a release."""

    MANAGE = "manage"
    """Add users and set their roles."""


class UserRole(StrEnum):
    """What a person is here; one may be several."""

    READER = "reader"
    REVIEWER = "reviewer"
    EDITOR = "editor"
    APPROVER = "approver"
    ADMIN = "admin"


_REVIEWING = frozenset({Right.SEE, Right.JUDGE, Right.ADJUDICATE, Right.EXPORT})

GRANTS = {
    # Nothing else: who labels blind must not reach a model's answers.
    UserRole.READER: frozenset({Right.READ}),
    UserRole.REVIEWER: _REVIEWING,
    UserRole.EDITOR: _REVIEWING | {Right.REVISE, Right.IMPORT},
    UserRole.APPROVER: frozenset({Right.SEE, Right.EXPORT, Right.APPROVE}),
    UserRole.ADMIN: frozenset({Right.SEE, Right.EXPORT, Right.IMPORT, Right.MANAGE}),
}
"""The rights that each role grants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person who may sign in, or the one person at this machine."""

    name: str
    """As it stands in the history, for example ``"Dr. Ayşe Kaya"``."""

    roles: tuple[UserRole, ...]
    """At least one, each once, in the order of `UserRole`."""

    password_hash: str = field(default="", repr=False)
    """``scrypt$...``; empty for the person at this machine, who cannot sign in."""

    disabled: bool = False
    """A disabled user cannot sign in and stays in the file, for the history."""

    created: str = ""
    """UTC, ISO 8601 with seconds."""

    def __post_init__(self) -> None:
        if not self.roles:
            raise ValueError(f"user {self.name!r} needs a role")
        object.__setattr__(
            self, "roles", tuple(role for role in UserRole if role in self.roles)
        )

    def may(self, right: Right) -> bool:
        """Return whether one of the roles grants `right`."""
        return any(right in GRANTS[role] for role in self.roles)

    def actor(self, right: Right) -> Actor:
        """Return how an act under `right` stands in the ledger.

        Its role is the first one of the user's that grants the right.

        Raises
        ------
        PermissionRefused
            None does.
        """
        for role in self.roles:
            if right in GRANTS[role]:
                return Actor(name=self.name, role=role.value)
        able = " or ".join(role.value for role in UserRole if right in GRANTS[role])
        have = ", ".join(self.roles)
        raise PermissionRefused(
            f"{self.name} may not do this: it takes the role {able}, and theirs is "
            f"{have}. Ask whoever runs ranloop here for `ranloop user roles`."
        )


def local_person(name: str) -> User:
    """Return the person who works alone at this machine: every role, no password."""
    return User(name=name, roles=tuple(UserRole))
