"""Whether the draws of a run were answered in the same words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice

from loop.run.store import RunRecord, Store

_KEY = 32
"""Bytes of one completion key."""

_PAGE = 256
"""Cases whose answers are read at a time."""


def count_same_words(store: Store, records: Sequence[RunRecord]) -> int:
    """Return the number of cases answered to the letter alike in all `records`.

    A case without a stored answer in some run is not alike. Answers that never differ
    although chance was asked for show a server that ignores the seed, or a model that
    is certain; only who runs the server can tell which.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    first, *others = records
    alike = dict(_digests(store, first.id))
    for record in others:
        found = _digests(store, record.id)
        alike = {case: words for case, words in found if alike.get(case) == words}
    return len(alike)


def _digests(store: Store, run: str) -> Iterator[tuple[str, bytes]]:
    """Yield case id and the digest of its raw answers, for cases that have them all."""
    rows = store.read_keys(run)
    while page := list(islice(rows, _PAGE)):
        calls = {case: _split(keys) for case, keys in page}
        found = store.find_completions([key for keys in calls.values() for key in keys])
        for case, keys in calls.items():
            if all(key in found for key in keys):
                words = "\0".join(found[key].text for key in keys)
                yield (
                    case,
                    hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest(),
                )


def _split(keys: bytes) -> list[bytes]:
    return [keys[start : start + _KEY] for start in range(0, len(keys), _KEY)]
