"""How long answers will be: made up in a contract's form and counted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loop.core.paths import Workspace
from loop.core.records import Mark
from loop.labels.cohort import CohortRole, read_cohort_file
from loop.labels.reference import Reference, list_references, read_reference
from loop.run.tokens import Count

EVIDENCE = "mild prominence of the right hilum"
"""What an answer is taken to quote for one label: six words."""

_FOUND = 2.1
"""Labels of a case that are not absent, without a reference: `rules` on Open-i."""

_NEGATED = 2.6
"""Labels of a case that its text negates by name: `rules` on Open-i."""

_END = 1
"""Tokens that end an answer."""


class Expectation(NamedTuple):
    """How often each label will be answered with something to say."""

    found: Mapping[str, float]
    """Label to the share of cases in which it is present or uncertain."""

    negated: float
    """Share of cases in which any one label is negated by name."""

    basis: str
    """Where this comes from, in words."""


def expect_findings(
    workspace: Workspace, cohort: str, labels: Sequence[str]
) -> Expectation:
    """Return what the newest reference of `cohort` lets expect, else an assumption.

    How often a label occurs in a holdout is not asked: its reference is sealed.
    """
    negated = _NEGATED / len(labels)
    assumed = f"{len(EVIDENCE.split())} words of evidence, {_NEGATED} negated labels"
    sealed = read_cohort_file(workspace, cohort).role is CohortRole.HOLDOUT
    if not sealed and list_references(workspace, cohort):
        reference = read_reference(workspace, cohort)
        found = {
            label: _share(reference, label)
            for label in labels
            if label in reference.labels
        }
        if found:
            basis = f"prevalences of {reference.ref}; assumed: {assumed}"
            rest = sum(found.values()) / len(found)
            shares = {label: found.get(label, rest) for label in labels}
            return Expectation(shares, negated, basis)
    basis = f"no reference; assumed: {_FOUND} labels found, {assumed}"
    return Expectation(dict.fromkeys(labels, _FOUND / len(labels)), negated, basis)


def _share(reference: Reference, label: str) -> float:
    """Share of the cases somebody looked at in which a label is not absent."""
    counts = reference.counts(label)
    looked = sum(counts.values()) - counts[Mark.MISSING]
    found = counts[Mark.PRESENT] + counts[Mark.UNCERTAIN]
    return found / looked if looked else 0.0


def count_answer(
    contract: str, labels: Sequence[str], expected: Expectation, count: Count
) -> float:
    """Return the tokens of the mean answer about `labels` in `contract`.

    Raises
    ------
    ValueError
        Nobody has said here what an answer in that contract looks like.
    """
    if contract == "findings":
        return _END + _count_list(labels, expected, count)
    if contract == "label_values":
        return _END + _count_values(labels, expected, count)
    raise ValueError(f"contract must be label_values or findings, got {contract!r}")


def _count_values(labels: Sequence[str], expected: Expectation, count: Count) -> float:
    entry = {"value": "present", "evidence": EVIDENCE}
    longer = count(json.dumps(entry)) - count('"absent"')
    plain = count(json.dumps(dict.fromkeys(labels, "absent")))
    often = sum(expected.found[label] + expected.negated for label in labels)
    return plain + often * longer


def _count_list(labels: Sequence[str], expected: Expectation, count: Count) -> float:
    entries = (
        expected.found[label]
        * count(
            json.dumps({"label": label, "value": "present", "evidence": EVIDENCE}) + ","
        )
        for label in labels
    )
    return count(json.dumps({"findings": []})) + sum(entries)
