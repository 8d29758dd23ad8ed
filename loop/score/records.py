"""What is graded: references and candidates joined by id, and both sides as codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.run.execute import Problem
from loop.stats.confusion import ZeroDivision

Codes = NDArray[np.int8]
"""Present, absent, uncertain, unanswered or missing; ``(n_cases, n_labels)``."""


class Uncertain(StrEnum):
    """What an uncertain value counts as, on either side."""

    EXCLUDED = "excl"
    """The pair is left out for that label, and counted."""

    PRESENT = "pos"
    ABSENT = "neg"


class NoFinding(StrEnum):
    """Where the value of "No Finding" comes from."""

    RAN = "ran"
    """Derived: present if and only if all 20 others are absent."""

    CHEXPERT = "chexpert"
    """As `RAN`, but support devices do not matter."""

    READ = "read"
    """As given in a label file; only for given labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """What two scores must share to be comparable, besides extractor and cases."""

    uncertain: Uncertain = Uncertain.EXCLUDED
    zero_division: ZeroDivision = "skip"
    no_finding: NoFinding = NoFinding.RAN
    reading: str = ""
    """Digest of what was said about the files, as what "yes" means; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSide:
    """One side of the pairs: the references, or the candidates of one system."""

    name: str
    """Name of the system; ``"reference"`` for the references."""

    texts: tuple[str | None, ...] | None
    """A text per case; None where the system has none. None as a whole: labels."""

    codes: Codes | None = None
    """Given labels, `PRESENT`, `ABSENT`, `UNCERTAIN` or `MISSING`; None: texts."""


class Coverage(NamedTuple):
    """What became of the rows of one system."""

    system: str
    rows: int
    """Rows of its file, or its rows of the file of all systems."""

    paired: int
    """Cases with a reference and a candidate."""

    missing: tuple[str, ...]
    """Ids of the references that have no candidate; these cases are not scored."""

    extra: tuple[str, ...]
    """Ids of the candidates that have no reference."""

    repeated: tuple[str, ...]
    """Ids that stood more than once, with the same content; used once."""

    empty: tuple[str, ...]
    """Ids of the candidates without a word; scored as saying nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Candidates of all systems and their references, joined by id.

    Cases are sorted by id, so that no number depends on the order of rows.
    """

    case_ids: tuple[str, ...]
    reference: PairSide
    systems: tuple[PairSide, ...]
    coverage: tuple[Coverage, ...]
    """One per system, in the same order."""

    empty_references: tuple[str, ...] = ()
    """Ids of references without a word; they are not among `case_ids`."""

    patients: tuple[str, ...] | None = None
    """Patient of each case; None when not known for every case."""

    languages: tuple[str, ...] = ()
    """Language of each case, as said or found, for example ``"en"``."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and sha256 of each file that was read."""

    repeated_references: tuple[str, ...] = ()
    """Ids of references that stood more than once, with the same content; used once."""

    notes: tuple[str, ...] = ()
    """What a reader of the scores should know of the join, as sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorFacts:
    """What read the labels, as far as two scores must agree on it."""

    ref: str
    """For example ``"extractor@v7"``; ``"given"`` for labels from a file."""

    digest: str
    """Digest of the prompt version, 64 hex characters; empty for given labels."""

    engine: str
    """Engine name, for example ``"rules"``; empty for given labels."""

    identity: str = ""
    """Digest of the engine's identity and parameters; empty for given labels."""

    release: str = ""
    """Name of the verified release it was taken from; may be empty."""

    asked: str = ""
    """What `identity` is the digest of, as JSON; empty for given labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """Both sides of every pair as codes.

    No convention is applied yet, apart from "No Finding" being derived or read.
    """

    case_ids: tuple[str, ...]
    labels: tuple[str, ...]
    """Label ids in published order."""

    systems: tuple[str, ...]
    reference: Codes
    """Shape ``(n_cases, n_labels)``."""

    candidates: Codes
    """Shape ``(n_systems, n_cases, n_labels)``; rows of `MISSING` without one."""

    patients: tuple[str, ...] | None = None
    no_finding: NoFinding = NoFinding.RAN
    extractor: ExtractorFacts = ExtractorFacts(ref="given", digest="", engine="")
    outcomes: Mapping[str, int] | None = None
    """Distinct texts by outcome: answered, unparsed, engine_failed, and those asked
    and those taken from the store; None for given labels."""

    problems: tuple[Problem, ...] = ()
    """Why texts are unparsed or failed; the examples are case ids."""

    @property
    def units(self) -> NDArray[Any] | None:
        """What is resampled as a whole: patients where known, else None for cases."""
        return None if self.patients is None else np.asarray(self.patients)
