"""Whether a release folder is what was signed, and says what its own counts say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loop.core.errors import DataError
from loop.release.agreement import check_agreement, check_facts, check_prompt
from loop.release.chain import check_chain
from loop.release.claims import check_claim
from loop.release.finding import ReleaseCheck as ReleaseCheck
from loop.release.finding import judged
from loop.release.folder import TABLE, Contents, read_contents
from loop.release.form import FACTS, parse_facts
from loop.release.recompute import check_numbers
from loop.release.signatures import check_files, check_signatures, read_signed
from loop.release.statement import Approval, Statement
from loop.release.table import check_table

if TYPE_CHECKING:
    from loop.release.keys import PublicKey

_OF_FACTS = ("agreement", "prompt", "rendered", "ledger", "history", "numbers", TABLE)
"""Checks that need a readable ``release.json``."""


class Verification(NamedTuple):
    """What was checked of a release folder, and how it came out."""

    findings: tuple[ReleaseCheck, ...]
    approvals: tuple[Approval, ...]
    """As listed; trust only those whose finding holds."""

    statement: Statement | None
    facts: Mapping[str, Any] | None
    """Content of ``release.json``; None when it cannot be read."""

    files: Mapping[str, bytes]
    """The files that were checked, as they were when they were read."""

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return bool(self.findings) and all(one.holds for one in self.findings)

    @property
    def broken(self) -> tuple[ReleaseCheck, ...]:
        """The findings that do not hold."""
        return tuple(one for one in self.findings if not one.holds)


def verify_folder(folder: Path, trusted: Mapping[str, PublicKey]) -> Verification:
    """Return every check of a release folder; needs no workspace and no network.

    A check that fails does not keep the others from being made.

    Parameters
    ----------
    trusted
        Key id to public key: who the reader believes. Without one that signed, all
        else is checked and nothing vouches for it.

    Raises
    ------
    DataError
        `folder` is not a folder.
    """
    return verify_contents(read_contents(folder), trusted)


def verify_contents(
    contents: Contents, trusted: Mapping[str, PublicKey]
) -> Verification:
    """Return every check of the files of a release; see `verify_folder`."""
    files = contents.files
    names = judged("names", list(contents.problems), f"{len(files)} files, no other")
    signed, findings = read_signed(files)
    findings = [
        names,
        *findings,
        *check_signatures(signed, trusted),
        check_files(signed.statement, files),
    ]
    facts, more = _check_content(
        files,
        signed.statement,
        trusted,
        vouched=all(one.holds for one in findings),
    )
    return Verification(
        findings=(*findings, *more),
        approvals=signed.statement.approvals if signed.statement else (),
        statement=signed.statement,
        facts=facts,
        files=files,
    )


def _check_content(
    files: Mapping[str, bytes],
    statement: Statement | None,
    trusted: Mapping[str, PublicKey],
    *,
    vouched: bool,
) -> tuple[Mapping[str, Any] | None, tuple[ReleaseCheck, ...]]:
    """Return the facts and every check that rests on them."""
    try:
        facts = parse_facts(files.get(FACTS, b""))
    except DataError as error:
        unsure = "not checked: release.json cannot be read"
        rest = (ReleaseCheck(check, False, unsure) for check in _OF_FACTS)
        return None, (ReleaseCheck(FACTS, False, str(error)), *rest)
    return facts, (
        check_facts(facts),
        check_agreement(statement, facts),
        *check_prompt(files, facts, vouched=vouched),
        *check_chain(files, facts, trusted),
        *check_numbers(facts),
        check_claim(facts),
        check_table(files.get(TABLE), facts),
    )
