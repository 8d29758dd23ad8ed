"""Single words sealed one by one: what readers said so far of a holdout's cases."""

from __future__ import annotations

import base64
import binascii
import secrets
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from loop.core.digests import framed
from loop.core.errors import StoreError
from loop.core.paths import Workspace
from loop.labels.vault_key import open_key

_MARK = "sealed:"
_NONCE_BYTES = 12
_WIDTH = 16
"""Every word is filled up to this, so that its length does not tell which it is."""


@dataclass(frozen=True, slots=True)
class WordSeal:
    """Seals words for one place each, with the key of the vault."""

    key: bytes = field(repr=False)

    def close(self, word: str, place: tuple[str, ...]) -> str:
        """Return `word` sealed for `place`; nothing stays nothing."""
        if not word:
            return ""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        padded = word.encode("utf-8").ljust(_WIDTH)
        text = AESGCM(self.key).encrypt(nonce, padded, framed(place))
        return _MARK + base64.b64encode(nonce + text).decode("ascii")

    def open(self, kept: str, place: tuple[str, ...]) -> str:
        """Return the word sealed for `place`; one kept in plain is as it is.

        Raises
        ------
        StoreError
            It was sealed for another place, with another key, or was changed.
        """
        if not kept.startswith(_MARK):
            return kept
        try:
            data = base64.b64decode(kept.removeprefix(_MARK), validate=True)
            nonce, text = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
            padded = AESGCM(self.key).decrypt(nonce, text, framed(place))
        except (binascii.Error, InvalidTag, ValueError) as error:
            raise StoreError(
                "an answer on a holdout cannot be opened: it was changed, or sealed "
                "with another key. Restore the store or .ranloop/keys/vault.key from a "
                "backup."
            ) from error
        return padded.decode("utf-8").rstrip()


def open_words(workspace: Workspace) -> WordSeal:
    """Return what seals words in `workspace`; its key is made on first use.

    Raises
    ------
    DataError
        The key is damaged.
    WriteError
        It cannot be written.
    """
    return WordSeal(open_key(workspace))
