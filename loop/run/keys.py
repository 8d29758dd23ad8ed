"""Cache keys: the digest of what is asked of which engine."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import TYPE_CHECKING

from loop.core.digests import canonical_json, framed
from loop.core.records import Prompt, PromptFrame
from loop.engines.base import Engine
from loop.run.spec import RunSpec

if TYPE_CHECKING:
    from hashlib import _Hash


class KeyMaker:
    """Makes the cache key of prompts: sha256, 32 bytes.

    Digested are the engine's identity, the parameters, the number of the draw, the
    answer's schema and fields, the messages, and for engines that read data instead of
    prose the guides and the language. Not digested: ids and names, so equal questions
    share one answer.

    Everything but the end of the last message is digested once per frame.
    """

    def __init__(self, spec: RunSpec, engine: Engine) -> None:
        asker: tuple[object, ...] = (dict(engine.identity()), dict(spec.parameters))
        # Draw 0 has the key it had before there were draws.
        self._asker = (*asker, spec.draw) if spec.draw else asker
        self._prefixes: dict[tuple[int, str], tuple[PromptFrame, _Hash]] = {}

    def key(self, prompt: Prompt) -> bytes:
        """Return the key of `prompt`."""
        frame, item, tail = prompt.frame, prompt.item, prompt.tail
        known = self._prefixes.get((id(frame), item.language))
        if known is None:
            known = self._add(frame, item.language)
        digest = known[1].copy()
        digest.update(tail.encode("utf-8", "surrogatepass"))
        for name, value in item.variables.items():
            # Engines may read the variables; those in the tail are digested already.
            # A search costs far more than a look at the start, where they mostly stand.
            if not tail.startswith(value) and value not in tail:
                digest.update(b"\0" + framed((name, value)))
        return digest.digest()

    def _add(self, frame: PromptFrame, language: str) -> tuple[PromptFrame, _Hash]:
        static = {
            "asker": self._asker,
            "messages": frame.messages,
            "fields": frame.fields,
            "schema": frame.schema,
            "guides": [asdict(guide) for guide in frame.guides],
            "language": language,
        }
        # The frame is kept beside its digest: an id is only unique while it lives.
        known = (frame, hashlib.sha256(canonical_json(static) + b"\0"))
        self._prefixes[id(frame), language] = known
        return known
