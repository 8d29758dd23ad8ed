"""Whether ``evaluation.csv`` says what ``release.json`` says."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from loop.core.printable import printable
from loop.release.finding import ReleaseCheck, judged
from loop.release.folder import TABLE, shown
from loop.release.recompute import differs

Facts = Mapping[str, Any]

_RATES = ("accuracy", "sensitivity", "specificity", "kappa", "kappa_bootstrap")
_OF_EVALUATION = ("cohort", "role", "run", "created", "signature", "counts_digest")
_OF_LABEL = ("label", "name", "n", "tp", "fp", "fn", "tn", "f1", "not_coded")


def check_table(raw: bytes | None, facts: Facts) -> ReleaseCheck:
    """Return whether each cell of the table equals the fact it is named after."""
    if raw is None:
        return ReleaseCheck(TABLE, False, "not checked: it is missing")
    try:
        rows = list(csv.reader(io.StringIO(raw.decode("utf-8"), newline="")))
    except (UnicodeDecodeError, csv.Error):
        return ReleaseCheck(TABLE, False, "it is not a table in UTF-8")
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    expected = list(_expected(facts))
    problems = [f"the column {name} is missing" for name in ("cohort", "label")]
    problems = [one for one in problems if one.split()[2] not in header]
    if len(set(header)) != len(header):
        problems.append("a column stands there twice")
    if len(body) != len(expected):
        problems.append(f"it has {len(body)} rows, release.json has {len(expected)}")
    for number, (row, wanted) in enumerate(zip(body, expected, strict=False), 2):
        problems.extend(_row_problems(number, header, row, wanted))
    return judged(TABLE, problems, f"{len(body)} rows as in release.json")


def _row_problems(
    number: int, header: list[str], row: list[str], wanted: Facts
) -> Iterator[str]:
    if len(row) != len(header):
        yield f"line {number} has {len(row)} cells, the header {len(header)}"
        return
    for name, cell in zip(header, row, strict=True):
        if name not in wanted:
            yield f"line {number}: nothing is known of a column {shown(name)}"
        elif not _says(cell, wanted[name]):
            yield f"line {number}: {name} is not as in release.json"


def _says(cell: str, value: object) -> bool:
    """Whether a cell means `value`; text may stand behind a protecting apostrophe."""
    if value is None:
        return cell == ""
    if isinstance(value, str):
        text = printable(value)
        return cell in (text, f"'{text}")
    try:
        number = float(cell)
    except ValueError:
        return False
    return isinstance(value, int | float) and not differs(number, value)


def _expected(facts: Facts) -> Iterator[Facts]:
    """Yield the cells of each row, evaluations and labels in their order."""
    for evaluation in facts["evaluations"]:
        for label in evaluation["labels"]:
            yield {
                **{name: evaluation[name] for name in _OF_EVALUATION},
                **{name: label[name] for name in _OF_LABEL},
                **label["excluded"],
                **dict(_rates(label)),
                "kappa_note": label["kappa"]["note"],
                "verdict": label["gate"]["verdict"],
                "needs": label["gate"]["needs"],
                "reasons": "; ".join(label["gate"]["reasons"]),
                **_claimed(facts["claim"], evaluation, label),
            }


def _rates(label: Facts) -> Iterator[tuple[str, float | None]]:
    for rate in _RATES:
        yield rate, label[rate]["value"]
        yield f"{rate}_low", label[rate]["low"]
        yield f"{rate}_high", label[rate]["high"]


def _claimed(claim: Facts, evaluation: Facts, label: Facts) -> Facts:
    """Return what the claim says of a label; empty cells where it says nothing."""
    nothing: Facts = {"p": None, "p_holm": None, "certified": None}
    if claim["cohort"] != evaluation["cohort"]:
        return nothing
    for one in claim["labels"]:
        if one["label"] == label["label"]:
            certified = {True: "yes", False: "no"}.get(one["certified"])
            return {"p": one["p"], "p_holm": one["p_holm"], "certified": certified}
    return nothing
