"""Cohorts of different roles must not share a case, a patient or a text.

Between cohorts of pairs, a candidate that also stands in the other one, beside another
reference or as one, is no overlap: models write the normal reports of a hospital, and
what raters say is of a pair. It is said all the same.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple

from loop.core.errors import OverlapError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import (
    CANDIDATE,
    CONTEXT,
    Cohort,
    has_texts,
    iter_items,
    list_cohorts,
    read_cohort,
    report_texts,
)
from loop.labels.language import fold_text, shingles

EXAMPLES = 5
_NUMERATOR, _DENOMINATOR = 4, 5
NEAR = _NUMERATOR / _DENOMINATOR
"""Jaccard similarity of 5-word shingles from which texts are near-duplicates."""


class OverlapKind(StrEnum):
    """What two cohorts share."""

    CASE = "case"
    """The same case id."""

    PATIENT = "patient"
    """The same patient."""

    TEXT = "text"
    """The same text, apart from case, spaces and punctuation."""

    NEAR_TEXT = "near-duplicate text"
    """Texts whose 5-word shingles have a Jaccard similarity of at least `NEAR`."""

    CANDIDATE = "candidate"
    """A candidate that is equal, or nearly so, to a text of another pair, while their
    references differ."""


class Shared(NamedTuple):
    """One thing that two cohorts share."""

    kind: OverlapKind
    number: int
    """Pairs of cases that share it; for patients, patients."""

    examples: tuple[tuple[str, str], ...]
    """Up to five pairs of case ids, the first cohort's first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairReport:
    """What two cohorts of different roles share."""

    first: str
    second: str
    shared: tuple[Shared, ...]
    """Empty when they are separate."""

    not_checked: tuple[str, ...]
    """What could not be compared, and why."""

    candidates: Shared | None = None
    """Candidates that also stand in the other cohort, which is no overlap: what was
    said of one, beside its own reference, tells nothing there. None without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapReport:
    """The comparison of all cohorts of different roles."""

    cohorts: Mapping[str, str]
    """Name to role."""

    pairs: tuple[PairReport, ...]

    @property
    def separate(self) -> bool:
        """Whether nothing is shared."""
        return not any(pair.shared for pair in self.pairs)


def check_cohorts(
    workspace: WorkspacePaths, names: Sequence[str] | None = None
) -> OverlapReport:
    """Compare all cohorts of different roles, or those called `names`.

    Raises
    ------
    DataError
        A cohort does not exist or was changed after its import.
    """
    cohorts = [read_cohort(workspace, n) for n in names or list_cohorts(workspace)]
    pairs = [(a, b) for a, b in combinations(cohorts, 2) if a.role is not b.role]
    return OverlapReport(
        cohorts={cohort.name: cohort.role.value for cohort in cohorts},
        pairs=tuple(_compare(workspace, a, b) for a, b in pairs),
    )


def require_separate(report: OverlapReport) -> None:
    """Refuse cohorts that share something.

    Raises
    ------
    OverlapError
        Two cohorts of different roles share a case, a patient or a text; names the
        cohorts and up to five case ids, never text.
    """
    if report.separate:
        return
    lines = [
        f"  {pair.first} ({report.cohorts[pair.first]}) and {pair.second} "
        f"({report.cohorts[pair.second]}) share "
        f"{counted(shared.number, shared.kind.value)}: "
        + ", ".join(
            " = ".join(map(quote_id, dict.fromkeys(ids))) for ids in shared.examples
        )
        + (" ..." if shared.number > len(shared.examples) else "")
        for pair in report.pairs
        for shared in pair.shared
    ]
    raise OverlapError(
        "cohorts of different roles must be separate:\n" + "\n".join(lines) + "\n"
        "Import one of the two again with --replace and --exclude CASE for each of "
        "these; if two sources only number their cases alike, use --id-prefix."
    )


class ForeignPairs(NamedTuple):
    """Pairs that are no cohort, as far as they can overlap with one."""

    case_ids: Sequence[str]
    references: Sequence[str]
    """Text of the reference of each."""

    patients: Mapping[str, str]
    """Patient by case id, as given or as pseudonyms; empty where not known."""

    pseudonym_key: str = ""
    """Fingerprint of the key that made pseudonyms of the patients."""


class PairOverlap(NamedTuple):
    """What pairs share with a cohort."""

    shared: tuple[Shared, ...]
    """Examples name the pair first, then the case of the cohort."""

    not_checked: tuple[str, ...]
    """What could not be compared, and why."""


def compare_pairs(
    workspace: WorkspacePaths, cohort: Cohort, pairs: ForeignPairs
) -> PairOverlap:
    """Return what pairs share with a cohort of pairs: cases, patients, references.

    Patients are compared as far as both sides name them. Candidates may be alike, as
    between cohorts.

    Raises
    ------
    DataError
        The texts of the cohort are not the pinned ones.
    """
    cases: dict[Hashable, str] = {one.case_id: one.case_id for one in cohort.cases}
    cases |= {one.reference_id: one.case_id for one in reversed(cohort.cases)}
    cases.pop("", None)
    found = [_share(OverlapKind.CASE, {one: one for one in pairs.case_ids}, cases)]
    key = pairs.pseudonym_key
    own: dict[Hashable, str] = {
        (key, patient): case for case, patient in pairs.patients.items() if patient
    }
    found.append(_share(OverlapKind.PATIENT, own, _by_patient(cohort)))
    skipped = []
    named = all(pairs.patients.get(case) for case in pairs.case_ids)
    if not named or not cohort.patients_known:
        unknown = cohort.name if named else "the pairs"
        skipped.append(f"patients: not named for every case of {unknown}")
    elif key != cohort.pseudonym_key:
        skipped.append("patients: pseudonymised with another key than here")
    if has_texts(workspace, cohort.name):
        found.extend(_share_references(workspace, cohort, pairs))
    else:
        skipped.append(
            f"similar references: the texts of {cohort.name} are not on this machine"
        )
    return PairOverlap(tuple(one for one in found if one.number), tuple(skipped))


def _share_references(
    workspace: WorkspacePaths, cohort: Cohort, pairs: ForeignPairs
) -> tuple[Shared, Shared]:
    """Return equal and near-equal references."""
    own = dict(zip(pairs.references, pairs.case_ids, strict=True))
    texts = list(own)
    folded = {fold_text(text): own[text] for text in texts}
    sets = {str(place): shingles(text) for place, text in enumerate(texts)}
    theirs = [one for one in iter_reports(workspace, cohort) if not one.candidate]
    same = {
        (folded[fold_text(one.text)], one.case_id): None
        for one in theirs
        if fold_text(one.text) in folded
    }
    others = ((str(place), shingles(one.text)) for place, one in enumerate(theirs))
    near = {
        (own[texts[int(one)]], theirs[int(two)].case_id): None
        for one, two in near_duplicates(sets, others)
    }
    alike = [ids for ids in near if ids not in same]
    return (
        Shared(OverlapKind.TEXT, len(same), tuple(same)[:EXAMPLES]),
        Shared(OverlapKind.NEAR_TEXT, len(alike), tuple(alike)[:EXAMPLES]),
    )


def describe_candidates(pair: PairReport) -> str:
    """Return what candidates two cohorts share, and why that is no overlap.

    Empty where they share none.
    """
    if pair.candidates is None:
        return ""
    number = pair.candidates.number
    one = number == 1
    return (
        f"{number} candidate{' stands' if one else 's stand'} in both {pair.first} and "
        f"{pair.second}, beside other references or as one: no overlap, since models "
        "write the same normal report for many, and what raters say is of a pair"
    )


def quote_id(case_id: str) -> str:
    """Return a case id as it can stand in a list, and be pasted into a command line.

    Examples
    --------
    >>> quote_id("s50414267"), quote_id("a, b"), quote_id("检查-7")
    ('s50414267', "'a, b'", '检查-7')
    """
    if re.fullmatch(r"\w[\w.:/+@-]*", case_id):
        return case_id
    return "'" + case_id.replace("'", "'\"'\"'") + "'"


def near_duplicates(
    first: Mapping[str, frozenset[int]],
    second: Iterable[tuple[str, frozenset[int]]],
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of ids whose shingles have a Jaccard similarity >= `NEAR`.

    Exact, not sampled: two such sets must share one of the rarest shingles of each
    (the first ``size - ceil(NEAR * size) + 1`` in a common order), so only those are
    indexed and looked up. `second` is read as a stream.

    References
    ----------
    Prefix filtering: Chaudhuri S, Ganti V, Kaushik R. ICDE 2006.
    """
    frequency = Counter(shingle for found in first.values() for shingle in found)

    def prefix(found: frozenset[int]) -> list[int]:
        kept = len(found) - -(-_NUMERATOR * len(found) // _DENOMINATOR) + 1
        return sorted(found, key=lambda s: (frequency.get(s, 0), s))[:kept]

    index: defaultdict[int, list[str]] = defaultdict(list)
    for name, found in first.items():
        if found:
            for shingle in prefix(found):
                index[shingle].append(name)
    for other, found in second:
        candidates = (
            {n for s in prefix(found) for n in index.get(s, ())} if found else ()
        )
        for name in sorted(candidates):
            common = len(first[name] & found)
            union = len(first[name]) + len(found) - common
            if _DENOMINATOR * common >= _NUMERATOR * union:
                yield name, other


def _compare(workspace: WorkspacePaths, first: Cohort, second: Cohort) -> PairReport:
    found = [
        _share(OverlapKind.CASE, _by_case(first), _by_case(second)),
        _share(OverlapKind.PATIENT, _by_patient(first), _by_patient(second)),
    ]
    alike = None
    skipped = list(_unknown_patients(first, second))
    absent = [c.name for c in (first, second) if not has_texts(workspace, c.name)]
    if absent:
        # Digests still tell equal texts without having them.
        found.append(_share(OverlapKind.TEXT, _by_digest(first), _by_digest(second)))
        skipped.append(
            f"similar texts: the texts of {' and '.join(absent)} are not on this "
            "machine (equal ones were compared by digest)"
        )
    else:
        *texts, alike = _compare_texts(workspace, first, second)
        found.extend(texts)
    return PairReport(
        first=first.name,
        second=second.name,
        shared=tuple(shared for shared in found if shared.number),
        not_checked=tuple(skipped),
        candidates=alike if alike and alike.number else None,
    )


def _by_case(cohort: Cohort) -> dict[Hashable, str]:
    return {case.case_id: case.case_id for case in cohort.cases}


def _by_patient(cohort: Cohort) -> dict[Hashable, str]:
    key = cohort.pseudonym_key
    cases = reversed(cohort.cases)
    return {(key, case.patient): case.case_id for case in cases if case.patient}


def _by_digest(cohort: Cohort) -> dict[Hashable, str]:
    return {case.sha256: case.case_id for case in reversed(cohort.cases)}


def _share(
    kind: OverlapKind, first: Mapping[Hashable, str], second: Mapping[Hashable, str]
) -> Shared:
    both = [(first[key], second[key]) for key in first if key in second]
    return Shared(kind, len(both), tuple(both[:EXAMPLES]))


def _unknown_patients(first: Cohort, second: Cohort) -> Iterator[str]:
    unknown = [c.name for c in (first, second) if not c.patients_known]
    if unknown:
        yield f"patients: not named for every case of {' and '.join(unknown)}"
    elif first.pseudonym_key != second.pseudonym_key:
        yield "patients: the cohorts were pseudonymised with different keys"


def _compare_texts(
    workspace: WorkspacePaths, first: Cohort, second: Cohort
) -> tuple[Shared, Shared, Shared]:
    """Return equal and near-equal texts, and candidates that stand in both.

    The smaller cohort is kept in memory.
    """
    pairs = first.holds_pairs and second.holds_pairs
    swapped = len(first.cases) > len(second.cases)
    small, large = (second, first) if swapped else (first, second)
    folded: dict[str, list[ReportText]] = {}
    kept: list[ReportText] = []
    sets: dict[str, frozenset[int]] = {}
    for one in iter_reports(workspace, small):
        folded.setdefault(fold_text(one.text), []).append(one)
        sets[str(len(kept))] = shingles(one.text)
        kept.append(one)
    equal: list[tuple[ReportText, ReportText]] = []
    others: list[ReportText] = []

    def different() -> Iterator[tuple[str, frozenset[int]]]:
        for one in iter_reports(workspace, large):
            twins = folded.get(fold_text(one.text), [])
            equal.extend((twin, one._replace(text="")) for twin in twins)
            others.append(one._replace(text=""))
            yield str(len(others) - 1), shingles(one.text)

    found = near_duplicates(sets, different())
    near = [(kept[int(one)], others[int(two)]) for one, two in found]
    same: list[tuple[str, str]] = []
    alike: set[tuple[str, str]] = set()
    by_candidate: set[tuple[str, str]] = set()
    for number, (one, other) in enumerate([*equal, *near]):
        ids = (one.case_id, other.case_id)
        if pairs and (one.candidate or other.candidate):
            by_candidate.add(ids)
        elif number < len(equal):
            same.append(ids)
        else:
            alike.add(ids)
    return (
        _ordered(OverlapKind.TEXT, same, swapped),
        _ordered(OverlapKind.NEAR_TEXT, sorted(alike - {*same}), swapped),
        # Pairs whose references are alike, too, are told as such.
        _ordered(
            OverlapKind.CANDIDATE, sorted(by_candidate - {*same, *alike}), swapped
        ),
    )


class ReportText(NamedTuple):
    """One report of a cohort."""

    case_id: str
    text: str
    candidate: bool = False
    """Whether it is the candidate of a pair, and no reference or single report."""


def iter_reports(workspace: WorkspacePaths, cohort: Cohort) -> Iterator[ReportText]:
    """Yield every report; of pairs each text once in either place, none empty.

    The candidates of one reference share it: it is compared once. What is known of the
    patient is no report, and alike for many.

    Raises
    ------
    DataError
        The texts are not on this machine, or are not the pinned ones.
    """
    seen: set[tuple[bool, int]] = set()
    for item in iter_items(workspace, cohort):
        if not cohort.holds_pairs:
            for text in report_texts(item):
                yield ReportText(item.id, text)
            continue
        for name, text in item.variables.items():
            place = (name == CANDIDATE, hash(text))
            if name != CONTEXT and text and place not in seen:
                seen.add(place)
                yield ReportText(item.id, text, candidate=place[0])


def _ordered(
    kind: OverlapKind, pairs: Sequence[tuple[str, str]], swapped: bool
) -> Shared:
    examples = [pair[::-1] if swapped else pair for pair in pairs[:EXAMPLES]]
    return Shared(kind, len(pairs), tuple((a, b) for a, b in examples))
