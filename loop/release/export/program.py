"""The prompt of this folder as a DSPy program that sends exactly its messages.

It needs DSPy 3.4 and nothing else::

    import dspy
    from program import load

    dspy.configure(lm=dspy.LM(...))
    answer = load()(text="...").answer

``answer`` is the model's text: one JSON object that follows ``schema.json``.
With ``PYTHONDONTWRITEBYTECODE=1`` Python adds nothing to this folder, so that it still
loads back as it was exported.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import dspy


class ExactMessages(dspy.Adapter):  # type: ignore[misc]
    """Sends the exported messages; DSPy's own adapters would add words of theirs."""

    def __init__(self, exported: dict[str, Any]) -> None:
        super().__init__()
        self.exported = exported

    def format(
        self, signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the messages of one case.

        Raises
        ------
        ValueError
            The program was changed, by an optimizer for example: it is not the prompt
            that was exported any more.
        """
        if demos or signature.instructions != self.exported["instructions"]:
            raise ValueError(
                "this program is not the exported prompt any more: its instructions "
                "were changed or it has demos. Export the new wording instead."
            )
        pieces = (str(inputs[name]) + after for name, after in self.exported["inputs"])
        content = self.exported["before"] + "".join(pieces)
        return [
            {"role": "system", "content": self.exported["system"]},
            {"role": "user", "content": content},
        ]

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        """Return the answer as it came: the prompt's own contract reads it."""
        return {"answer": completion}


class ExportedPrompt(dspy.Module):  # type: ignore[misc]
    """One call of the exported prompt."""

    def __init__(self, exported: dict[str, Any]) -> None:
        super().__init__()
        self.exported = exported
        self.predict = dspy.Predict(make_signature(exported), **exported["asking"])

    def forward(self, **inputs: str) -> Any:
        """Return the prediction for one case; its ``answer`` is the model's text."""
        with dspy.context(adapter=ExactMessages(self.exported)):
            return self.predict(**inputs)


def make_signature(exported: dict[str, Any]) -> Any:
    """Return the signature of one call: its inputs, and the answer as text."""
    fields: dict[str, Any] = {
        name: (str, dspy.InputField(desc=f"the {name} of the case"))
        for name, _ in exported["inputs"]
    }
    answer = dspy.OutputField(desc="one JSON object that follows the schema")
    return dspy.Signature(fields | {"answer": (str, answer)}, exported["instructions"])


def load(folder: str | Path = Path(__file__).parent, call: str = "") -> ExportedPrompt:
    """Return the program in `folder`.

    Parameters
    ----------
    call
        Label to ask about, for a prompt with one call a label.

    Raises
    ------
    ValueError
        The saved program is not the file that was exported.
    """
    name = f"{call}.program.json" if call else "program.json"
    path = Path(folder) / name
    data = path.read_bytes()
    manifest = json.loads((Path(folder) / "ranloop.json").read_bytes())
    if hashlib.sha256(data).hexdigest() != manifest["files"][name]:
        raise ValueError(f"{path} was changed after it was exported. Export it again.")
    program = ExportedPrompt(json.loads(data)["metadata"]["ranloop"])
    program.predict.load(str(path))
    return program
