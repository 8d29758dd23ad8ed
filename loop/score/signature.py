"""The conventions of a Ran Score as one line, so that two numbers can be compared."""

from __future__ import annotations

from loop.labels.taxonomy import NO_FINDING
from loop.run.asking import labels_of
from loop.score.records import Conventions, ExtractorFacts

_SHOWN = 6
"""Hex characters of a digest, as in the signatures of evaluations."""


def sign(
    extractor: ExtractorFacts,
    conventions: Conventions,
    *,
    effective_labels: int,
    labels: int,
    n: int,
    derived: bool = True,
) -> str:
    """Return the signature of a Ran Score: comparable only where these are equal.

    And the cases are the same, of which it has but the number.

    Parameters
    ----------
    extractor
        What read the labels.
    conventions
        What was decided about uncertain values, empty labels and "No Finding".
    effective_labels
        Labels whose F1 is defined.
    labels
        All labels.
    n
        Cases scored.
    derived
        Whether "No Finding" is one of the labels; else nothing is said of it.

    Returns
    -------
    str
        Fields between vertical bars: measure, extractor and the first characters of
        its digest, engine and those of its identity (both left out for given labels),
        uncertain policy, zero division, "No Finding" policy, what was said about the
        files (left out where nothing was), labels, cases.

    Examples
    --------
    >>> facts = ExtractorFacts(ref="extractor@v7", digest="3f2a91" * 8, engine="rules")
    >>> sign(facts, Conventions(), effective_labels=19, labels=21, n=3000)
    'ran|extractor@v7:3f2a91|rules|unc:wrong|zd:skip|nf:ran|L:19/21|n:3000'
    >>> given = ExtractorFacts(ref="given", digest="", engine="")
    >>> sign(given, Conventions(), effective_labels=3, labels=21, n=3)
    'ran|given|unc:wrong|zd:skip|nf:ran|L:3/21|n:3'
    """
    fields = [
        "ran",
        _with_digest(extractor.ref, extractor.digest),
        _with_digest(extractor.engine, extractor.identity),
        f"unc:{conventions.uncertain.value}",
        f"zd:{conventions.zero_division}",
        f"nf:{_no_finding(extractor, conventions)}" if derived else "",
        _with_digest("read", conventions.reading) if conventions.reading else "",
        f"L:{effective_labels}/{labels}",
        f"n:{n}",
    ]
    return "|".join(field for field in fields if field)


def _no_finding(extractor: ExtractorFacts, conventions: Conventions) -> str:
    """Return how "No Finding" comes about, on both sides if not alike."""
    derived = conventions.no_finding.value
    if NO_FINDING not in labels_of(extractor.engine):
        return derived
    return f"{derived}+read" if extractor.ref.startswith("given+") else "read"


def _with_digest(name: str, digest: str) -> str:
    return f"{name}:{digest[:_SHOWN]}" if digest else name
