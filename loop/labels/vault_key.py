"""The key of the vault: it seals the holdouts of a workspace."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path

from loop.core.errors import DataError
from loop.core.files import locked, make_folder, write_atomic
from loop.core.paths import Workspace

_KEY_BYTES = 32


def vault_key(workspace: Workspace) -> Path:
    """File with the key that seals the holdouts of `workspace`, mode 0600."""
    return workspace.keys / "vault.key"


def open_key(workspace: Workspace) -> bytes:
    """Return the key of the vault; it is made on first use, mode 0600.

    Raises
    ------
    DataError
        The key is damaged, or others may read it.
    WriteError
        It cannot be written.
    """
    workspace.open_private()
    make_folder(workspace.keys, mode=0o700)
    with locked(workspace.private / "locks" / "vault.lock"):
        if not vault_key(workspace).exists():
            text = secrets.token_hex(_KEY_BYTES) + "\n"
            write_atomic(vault_key(workspace), text, mode=0o600)
        return read_key(workspace)


def read_key(workspace: Workspace) -> bytes:
    """Return the key of the vault.

    Raises
    ------
    DataError
        It is not here, is damaged, or others may read it.
    """
    path = vault_key(workspace)
    try:
        _require_private(path)
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except FileNotFoundError as error:
        raise DataError(
            f"{path} is not on this machine: without it no sealed label can be read. "
            "Bring the key from the machine that sealed them, or from a backup; if it "
            "is lost, import the cohort again with its labels."
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a key. Restore it.") from error
    if len(key) != _KEY_BYTES:
        raise DataError(
            f"{path} is damaged: it must hold {2 * _KEY_BYTES} hex characters. Restore "
            "it from your backup."
        )
    return key


def _require_private(path: Path) -> None:
    """Refuse a key that others may read, as the keys of people are refused."""
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise DataError(
            f"{path} may be read by others. Make it yours alone with `chmod 600 "
            f"{path}`; if others had access, they may know what is sealed with it."
        )
