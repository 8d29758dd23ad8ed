"""A prompt and a schema that cannot both be obeyed: who wins shows what is enforced."""

from __future__ import annotations

import json
from random import Random


class Contradiction:
    """A prompt that asks for one answer and a schema that allows only another."""

    def __init__(self, rng: Random) -> None:
        self._name, self._value, self._other = (
            f"{rng.getrandbits(32):08x}" for _ in range(3)
        )

    @property
    def message(self) -> tuple[str, str]:
        """Role and content of the prompt."""
        wanted = json.dumps({"answer": self._other}, separators=(",", ":"))
        return "user", f"Answer with exactly this JSON and nothing else: {wanted}"

    @property
    def schema(self) -> dict[str, object]:
        """The schema, which allows one answer."""
        return {
            "type": "object",
            "properties": {self._name: {"type": "string", "enum": [self._value]}},
            "required": [self._name],
            "additionalProperties": False,
        }

    def schema_won(self, text: str, finish: str) -> bool:
        """Whether an answer is the only one allowed, or begins it and was cut off."""
        valid = json.dumps({self._name: self._value}, separators=(",", ":"))
        answer = after_thinking(text)
        begun = bool(answer) and finish == "length" and valid.startswith(answer)
        return answer == valid or begun


def after_thinking(text: str) -> str:
    """Return an answer without thinking and without white space."""
    if text.startswith("<think>") and "</think>" not in text:
        return ""
    return "".join(text.rpartition("</think>")[2].split())
