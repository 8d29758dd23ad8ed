"""What is graded and what scoring returns: joined pairs, codes, scores of systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.run.execute import Problem
from loop.stats.confusion import Confusion, ZeroDivision
from loop.stats.intervals import Estimate

Codes = NDArray[np.int8]
"""Present, absent, uncertain, unanswered or missing; ``(n_cases, n_labels)``."""


class Uncertain(StrEnum):
    """What an uncertain value counts as."""

    WRONG = "wrong"
    """A candidate that is uncertain where the reference decides misses or invents the
    label. Where the reference is uncertain the pair is left out, and counted."""

    EXCLUDED = "excl"
    """On either side: the pair is left out for that label, and counted."""

    PRESENT = "pos"
    """On either side."""

    ABSENT = "neg"
    """On either side."""


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

    uncertain: Uncertain = Uncertain.WRONG
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

    named_patients: tuple[str, ...] = ()
    """Patient of each case where known, else empty; empty as a whole without any."""

    languages: tuple[str, ...] = ()
    """Language of each case, as said or found, for example ``"en"``."""

    contexts: tuple[str, ...] = ()
    """What is known of the patient of each case beside the texts, for judges that read
    it; empty where no file says."""

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


class LabelScore(NamedTuple):
    """One label of one system."""

    label: str
    """Label id."""

    counts: Confusion
    """Over the cases where both sides are decided; rates are its properties."""

    uncertain: int
    """Pairs left out because a side is uncertain."""

    unanswered: int
    """Pairs left out because an engine gave no value, or a label cell is blank."""

    f1: float | None
    """None without a positive on either side."""


class ScoreReading(NamedTuple):
    """The score of one system under one policy for uncertain values."""

    uncertain: Uncertain
    ran_score: float | None
    cells: int
    """Cells (one label of one case) that are scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemScore:
    """All numbers of one system."""

    system: str
    n: int
    """Cases with at least one decided label."""

    ran_score: Estimate
    """Macro-F1 over the labels, with its bootstrap interval."""

    effective_labels: int
    """Labels whose F1 is defined: the mean is over these under ``skip``."""

    micro_f1: Estimate
    micro_precision: float | None
    micro_recall: float | None
    micro_accuracy: float | None
    """Share of decided cells that agree."""

    macro_precision: float | None
    """Mean over the same labels as the macro-F1; an undefined one counts 0."""

    macro_recall: float | None
    macro_accuracy: float | None
    """Mean over the labels with a decided pair."""

    labels: tuple[LabelScore, ...]
    rank: int
    """1 is best; systems with equal scores share a rank."""

    best: float
    """Share of resamples in which it is the best, ties shared."""

    perfect: float | None
    """What a perfect copy of the references scores under the same conventions: below
    1 under ``zero`` when labels never occur, None under ``skip`` when none does."""

    readings: tuple[ScoreReading, ...] = ()
    """Under every policy for uncertain values, the one of the conventions first."""

    corrected: Estimate | None = None
    """Ran Score with the extractor's own errors taken out; None if not asked for."""

    signature: str = ""
    """Every convention of `ran_score`, for example
    ``"ran|extractor@v7:3f2a|rules|unc:wrong|zd:skip|nf:ran|L:19/21|n:3000"``."""


class SystemDifference(NamedTuple):
    """Two systems on the cells that both and the reference decide."""

    better: str
    """The one with the higher score on these cells; of equal ones the first."""

    worse: str
    difference: Estimate
    """Ran Score of `better` minus that of `worse`, with its paired interval."""

    p: float | None
    """Two-sided, from exchanging the two systems' answers case by case."""

    p_holm: float | None
    """The same, adjusted for all pairs of systems."""

    exact: bool
    """Whether every exchange was counted, not a sample of them."""


class CaseScore(NamedTuple):
    """One candidate against its reference."""

    system: str
    case_id: str
    f1: float | None
    """F1 over the labels of this case; 1 when nothing is positive on both sides; None
    when no label is decided."""

    errors: int
    """Labels invented plus labels missed."""

    missed: tuple[str, ...]
    """Label ids that only the reference has."""

    invented: tuple[str, ...]
    """Label ids that only the candidate has."""

    decided: int
    """Labels that both sides decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RanScore:
    """The result of `loop.score.ran.score`: a ranking with everything behind it."""

    systems: tuple[SystemScore, ...]
    """Best first."""

    differences: tuple[SystemDifference, ...]
    """Every pair of systems; empty for one system."""

    cases: tuple[CaseScore, ...]
    """Every pair of texts, systems in the order given, cases by id."""

    conventions: Conventions
    extractor: ExtractorFacts
    labels: tuple[str, ...]
    n_cases: int
    n_patients: int | None
    resamples: int
    permutations: int
    seed: int
    confidence: float
    coverage: tuple[Coverage, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What `SystemScore.corrected` assumes, as sentences."""
