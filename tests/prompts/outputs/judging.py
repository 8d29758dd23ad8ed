"""A pair to judge, answers about it as models write them, and the score they say."""

import numpy as np

from loop.core.records import Item, Reading
from loop.score.experts.error_counts import share_matched

CATEGORIES = (
    *("false_finding", "omission", "location", "severity", "comparison"),
    "omitted_change",
)
PAIR = Item(
    id="p1",
    variables={
        "reference": "Small left effusion. No pneumothorax. Normal heart.",
        "candidate": "Small right effusion. Rib fracture. Normal heart.",
    },
)
TYPES = (
    "False report of a finding",
    "Missing finding",
    "Wrong place or side",
    "Wrong severity",
    "Comparison that is not there",
    "Missing change",
)


def lines(counts, marks="abcdef"):
    """Return the lines of a section that have errors, each with so many listed."""
    return "\n".join(
        f"({mark}) {name}: {count}. " + "; ".join(f"error {n}" for n in range(count))
        for mark, name, count in zip(marks, TYPES, counts, strict=False)
        if count
    )


def answer(
    significant, matched, insignificant="No errors.", explanation="They differ."
):
    """Return an answer in the four published sections."""
    return (
        f"[Explanation]:\n{explanation}\n\n"
        f"[Clinically Significant Errors]:\n{significant}\n\n"
        f"[Clinically Insignificant Errors]:\n{insignificant}\n\n"
        f"[Matched Findings]:\n{matched}\n"
    )


def matches(count):
    """Return a section of matched findings as published."""
    return f"{count}. " + "; ".join(f"finding {n}" for n in range(count))


def counts_of(fields):
    """Return matched findings, significant errors and insignificant ones, if said."""
    found = [fields["matched"].value]
    for weight in ("significant", "insignificant"):
        values = [
            f.value for name, f in fields.items() if name.startswith(f"{weight}.")
        ]
        found.append(sum(values) if values else None)
    return tuple(found)


def green(reading: Reading, empty=None):
    """Return GREEN of a reading; `empty` without matches and significant errors."""
    if reading.fields is None:
        return None
    matched, significant, _ = counts_of(reading.fields)
    if matched + significant == 0:
        return empty
    return float(share_matched(np.array([matched, significant, 0.0])))
