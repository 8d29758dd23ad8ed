"""Who may do what: users and their names, roles, and the rights they grant."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from loop.core.errors import LoopError
from loop.core.ledger import Actor

LONGEST = 64
"""Longest name, characters."""

_SIGNS = frozenset(".-_@ ")

_UNSEEN = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0))
) | frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Letters and marks that show nothing: with one of these, two names look the same."""


def check_name(name: str) -> str:
    """Return `name` composed (NFC) and without spaces around it.

    Letters of any script, digits, ``. - _ @`` and single spaces: nothing that a
    terminal, a page or a log could take for anything but a name.

    Raises
    ------
    ValueError
        It is empty, longer than 64 characters, or holds something else.

    Examples
    --------
    >>> check_name(" Zoë Müller ")
    'Zoë Müller'
    """
    # Split at the space only: str.strip would swallow control characters as well.
    composed = unicodedata.normalize("NFC", name).strip(" ")
    if not composed or len(composed) > LONGEST:
        raise ValueError(f"a name has 1 to {LONGEST} characters, not {len(composed)}")
    wrong = next((char for char in composed if not _allowed(char)), None)
    if wrong is not None:
        raise ValueError(
            f"a name may not hold the character U+{ord(wrong):04X}; "
            "use letters, digits, spaces and . - _ @"
        )
    if "  " in composed:
        raise ValueError("a name may not hold two spaces in a row")
    if not any(char.isalnum() for char in composed):
        raise ValueError("a name needs a letter or a digit")
    return composed


def name_key(name: str) -> str:
    """Return what two spellings of one name have in common.

    Capitals, composition and width do not make another person.

    Examples
    --------
    >>> name_key("DR. ZOË") == name_key("dr. zoe\u0308")
    True
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded).strip(" ")


_ALIKE = {
    "CYRILLIC CAPITAL LETTER": "A=A VE=B IE=E DZE=S BYELORUSSIAN-UKRAINIAN_I=l JE=J "
    "KA=K EM=M EN=H O=O ER=P ES=C TE=T HA=X U=Y QA=Q WE=W KOMI_SJE=G",
    "GREEK CAPITAL LETTER": "ALPHA=A BETA=B EPSILON=E ZETA=Z ETA=H IOTA=l KAPPA=K MU=M "
    "NU=N OMICRON=O RHO=P TAU=T UPSILON=Y CHI=X",
    "CYRILLIC SMALL LETTER": "A=a IE=e DZE=s BYELORUSSIAN-UKRAINIAN_I=i JE=j O=o ER=p "
    "ES=c HA=x U=y SHHA=h KOMI_DE=d QA=q WE=w PALOCHKA=l",
    "GREEK SMALL LETTER": "ALPHA=a OMICRON=o RHO=p NU=v UPSILON=u KAPPA=k GAMMA=y "
    "IOTA=i",
    "LATIN SMALL LETTER": "DOTLESS_I=i ALPHA=a SCRIPT_G=g",
    "LATIN CAPITAL LETTER": "I=l",
    "DIGIT": "ZERO=O ONE=l",
}
"""Letters and digits that look like a Latin letter, by their names in Unicode."""


def _table(kinds: Container[str]) -> Mapping[int, str]:
    """Return for `str.translate` what the letters of some `kinds` look like."""
    pairs = [
        (kind, *one.split("="))
        for kind, letters in _ALIKE.items()
        if kind in kinds
        for one in letters.split()
    ]
    return {
        ord(unicodedata.lookup(f"{kind} {name.replace('_', ' ')}")): latin
        for kind, name, latin in pairs
    }


_SMALL = _table({kind for kind in _ALIKE if "SMALL" in kind})
_OTHERS = _table({kind for kind in _ALIKE if "SMALL" not in kind})


def look_key(name: str) -> str:
    """Return what two names have in common that a reader takes for one.

    Capitals, spaces, width, letters that show nothing, and letters of another script
    that look alike do not count. Only two names are compared with it; it is no name.

    References
    ----------
    Unicode Technical Standard 39, Unicode Security Mechanisms, section 4; a part of
    its table, for the scripts whose letters look like Latin ones.

    Examples
    --------
    >>> look_key("Anna Cole") == look_key("ann\u0430 C\u03bfle")
    True
    """
    plain = unicodedata.normalize("NFKC", name).translate(_OTHERS)
    folded = unicodedata.normalize("NFKC", plain.casefold()).translate(_SMALL)
    return "".join(char for char in folded if not _hidden(char))


def _hidden(char: str) -> bool:
    return char in _UNSEEN or unicodedata.category(char)[0] in "ZC"


def find_look_alike(name: str, known: Iterable[str]) -> str | None:
    """Return the one of `known` that `name` looks like; None if it is one of them.

    Examples
    --------
    >>> find_look_alike("ann", ["Bob", "Ann"])
    'Ann'
    """
    names = tuple(known)
    if name in names:
        return None
    keys = {look_key(name), name_key(name)}
    same = (one for one in names if {look_key(one), name_key(one)} & keys)
    return next(same, None)


def _allowed(char: str) -> bool:
    """Letters, the marks that are part of them, decimal digits, a few signs."""
    if char in _UNSEEN or char >= "\U000e0000":
        return False
    return char in _SIGNS or unicodedata.category(char)[0] in "LM" or char.isdecimal()


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
