"""The table of a release for a spreadsheet: one row per cohort and label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop.core.safe_text import format_csv
from loop.documents.tables import neutralise

_RATES = ("accuracy", "sensitivity", "specificity", "kappa", "kappa_bootstrap")
_EXCLUDED = (
    *("uncertain_reference", "no_majority", "missing", "uncertain_predicted"),
    *("unparsed", "failed", "not_asked"),
)
COLUMNS = (
    *("cohort", "role", "run", "created", "label", "name", "verdict"),
    *("n", "tp", "fp", "fn", "tn"),
    *(f"{rate}{end}" for rate in _RATES for end in ("", "_low", "_high")),
    *("kappa_note", "f1", *_EXCLUDED, "not_coded", "reasons", "needs"),
    *("p", "p_holm", "certified", "signature", "counts_digest"),
)
"""Header of the table; a number without meaning is an empty cell."""


def evaluation_table(facts: Mapping[str, Any]) -> str:
    """Return every label of every evaluation as CSV that no spreadsheet runs.

    Shares keep all their digits, so that they equal those of ``release.json``.
    The columns of the claim are filled on the cohort the claim is about.
    """
    rows = []
    for evaluation in facts["evaluations"] or ():
        for label in evaluation["labels"] or ():
            row = {
                **dict(_counted(evaluation, label)),
                **_claimed(facts["claim"], evaluation, label),
            }
            rows.append([_cell(row.get(name)) for name in COLUMNS])
    return format_csv(COLUMNS, rows)


def _counted(
    evaluation: Mapping[str, Any], label: Mapping[str, Any]
) -> Iterator[tuple[str, object]]:
    for name in ("cohort", "role", "run", "created", "signature", "counts_digest"):
        yield name, evaluation[name]
    for name in ("label", "name", "n", "tp", "fp", "fn", "tn", "f1", "not_coded"):
        yield name, label[name]
    for rate in _RATES:
        yield rate, label[rate]["value"]
        yield f"{rate}_low", label[rate]["low"]
        yield f"{rate}_high", label[rate]["high"]
    yield "kappa_note", label["kappa"].get("note")
    yield from ((name, label["excluded"][name]) for name in _EXCLUDED)
    gate = label["gate"]
    yield from (("verdict", gate["verdict"]), ("needs", gate["needs"]))
    yield "reasons", "; ".join(gate["reasons"] or ())


def _claimed(
    claim: Mapping[str, Any],
    evaluation: Mapping[str, Any],
    label: Mapping[str, Any],
) -> dict[str, object]:
    """Return what the claim says of a label; nothing where it is not about it."""
    if claim["cohort"] != evaluation["cohort"]:
        return {}
    for one in claim["labels"] or ():
        if one["label"] == label["label"]:
            certified = {True: "yes", False: "no"}.get(one["certified"])
            return {"p": one["p"], "p_holm": one["p_holm"], "certified": certified}
    return {}


def _cell(value: object) -> str:
    return repr(value) if isinstance(value, float) else neutralise(value)
