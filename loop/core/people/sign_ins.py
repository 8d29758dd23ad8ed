"""The private log of who signed in, or tried: ``.ranloop/sign-ins.jsonl``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from loop.core.files import locked, write_error
from loop.core.paths import Workspace

Clock = Callable[[], datetime]

LONGEST = 2**20
"""Size at which the log becomes ``sign-ins.jsonl.1`` and a new one begins, bytes."""


class SignInResult(StrEnum):
    """How a try to sign in ended."""

    SIGNED_IN = "signed in"
    WRONG = "wrong"
    LOCKED = "locked"
    SIGNED_OUT = "signed out"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One try to sign in."""

    name: str
    """Name of a known user; empty for others: what was typed may be a password."""

    address: str
    """Where it came from."""

    result: SignInResult


def sign_ins_path(workspace: Workspace) -> Path:
    """Return where the log of `workspace` is."""
    return workspace.private / "sign-ins.jsonl"


def record_sign_in(
    workspace: Workspace,
    sign_in: SignIn,
    *,
    now: Clock = lambda: datetime.now(UTC),
    longest: int = LONGEST,
) -> None:
    """Append one line; the log and the one before it together stay under 2 MiB.

    Raises
    ------
    WriteError
        The log cannot be written.
    """
    path = sign_ins_path(workspace)
    time = now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    line = json.dumps({"time": time, **asdict(sign_in)}, ensure_ascii=False) + "\n"
    raw = line.encode("utf-8", "backslashreplace")
    with locked(workspace.open_private() / ".sign-ins.lock"):
        try:
            _append(path, raw, longest)
        except OSError as error:
            raise write_error(path, error) from error


def _append(path: Path, line: bytes, longest: int) -> None:
    if path.exists() and path.stat().st_size + len(line) > longest:
        os.replace(path, path.with_name(f"{path.name}.1"))
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)
