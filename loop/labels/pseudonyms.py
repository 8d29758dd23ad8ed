"""Patient ids become keyed pseudonyms before they leave the private store."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from loop.core.errors import DataError
from loop.core.files import locked, make_folder, write_atomic
from loop.core.paths import WorkspacePaths


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Turns patient ids into pseudonyms with the key of one workspace."""

    key: bytes

    @property
    def fingerprint(self) -> str:
        """Eight hex characters that tell two keys apart and give neither away."""
        return hashlib.sha256(b"ranloop pseudonym key" + self.key).hexdigest()[:8]

    def of(self, patient: str) -> str:
        """Return the pseudonym of `patient`, 16 hex characters; empty stays empty."""
        known = patient.strip()
        if not known:
            return ""
        mac = hmac.new(self.key, known.encode("utf-8", "surrogatepass"), "sha256")
        return mac.hexdigest()[:16]


def open_pseudonyms(workspace: WorkspacePaths) -> Pseudonyms:
    """Return the workspace's pseudonyms; the key is made on first use, mode 0600.

    Raises
    ------
    DataError
        The key file is damaged.
    WriteError
        The key cannot be written.
    """
    workspace.open_private()
    make_folder(workspace.keys, mode=0o700)
    path = workspace.keys / "pseudonym"
    with locked(workspace.private / "locks" / "pseudonym.lock"):
        if not path.exists():
            write_atomic(path, secrets.token_hex(32) + "\n", mode=0o600)
        try:
            key = bytes.fromhex(path.read_text(encoding="ascii").strip())
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read. Restore it.") from error
    if len(key) != 32:
        raise DataError(
            f"{path} is damaged: it must hold 64 hex characters. Restore it from your "
            "backup; with a new key, patients of older cohorts cannot be compared."
        )
    return Pseudonyms(key)
