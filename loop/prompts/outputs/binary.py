"""The contract ``binary``: one present or absent per label; nothing in between.

The answer is a JSON object keyed by label id, as in ``label_values``::

    {"edema": {"value": "present", "evidence": "pulmonary edema"},
     "fracture": "absent"}

What the text does not state, or not unequivocally, is absent: uncertainty is for the
reference, where it excludes a case, and not for an answer. An answer that says
"uncertain" all the same, or any word for it, is unreadable and ends as unparsed. It is
never read as either value.
"""

from __future__ import annotations

from collections.abc import Sequence

from loop.core.records import Item, Reading, Value
from loop.prompts.outputs.label_values import LabelValues


class BinaryValues(LabelValues):
    """Reads answers of the form above; see `loop.prompts.outputs.base.Contract`."""

    name = "binary"
    version = "1"
    summary = "present or absent for every label, never uncertain"
    instruction = """\
Answer with one JSON object and nothing else. It has exactly these keys:
{{ fields | join(", ") }}.
Each key holds "absent" if the report does not mention the finding, else an object with
"value" (present or absent) and "evidence": the words of the report that decide, copied
exactly. A finding is present if the report states it or gives unequivocal evidence of
it. It is absent otherwise: there is no third value.
"""
    values = (Value.PRESENT, Value.ABSENT)

    def read(self, text: str, fields: Sequence[str], item: Item) -> Reading:
        """Return the value of each label, or why the answer cannot be read.

        Never raises and never guesses; "uncertain" is no value here.
        """
        reading = super().read(text, fields, item)
        # Looked up once: a member of an enumeration costs more than to compare it.
        uncertain = Value.UNCERTAIN
        unsure = [
            name
            for name, field in (reading.fields or {}).items()
            if field.value == uncertain
        ]
        if not unsure:
            return reading
        problem = f"uncertain for {', '.join(unsure)}: only present or absent is asked"
        return Reading(None, reading.repairs, problem)
