"""Whether a candidate and a holdout are separate: what a release must not rest on.

Text of a holdout in a prompt, or a patient on both sides, would make the final claim a
claim about cases that were seen. So would cases that were looked at before they became
a holdout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from loop.core.errors import DataError, LedgerError
from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import (
    Cohort,
    CohortRole,
    has_texts,
    iter_items,
    list_cohorts,
    read_cohort,
    read_cohort_file,
)
from loop.labels.language import SHINGLE, fold_text, shingles, words
from loop.labels.overlap import (
    PairReport,
    Shared,
    check_cohorts,
    describe_candidates,
    iter_reports,
    near_duplicates,
)
from loop.prompts.version import PromptVersion
from loop.review.revise.copies import (
    REFUSED_RUN,
    Copy,
    NewWording,
    find_copies,
    find_windows,
)

_PATIENTS = "patients:"
"""How `check_cohorts` begins what it says of patients that are not known."""

_SHOWN = 5
"""Case ids named in a sentence."""


class Separation(NamedTuple):
    """What was looked for between a candidate and a holdout, and what was found."""

    checked: tuple[str, ...]
    """What was compared, as sentences."""

    objections: tuple[str, ...]
    """What stands against a release: overlap, and what could not be compared."""

    remarks: tuple[str, ...]
    """What a reader of the release must know: patients that are not known, cohorts
    that are not here any more."""


def measure_separation(
    workspace: WorkspacePaths, version: PromptVersion, holdout: str
) -> Separation:
    """Return whether wording of `version` or cases of other roles stand in `holdout`.

    An exemplar is refused when its text is a near-duplicate of a holdout text, or, as
    any wording, when `REFUSED_RUN` consecutive words of it stand in one. Messages name
    cases and places, never text.

    Raises
    ------
    DataError
        A cohort does not exist or was changed after its import.
    """
    cohort = read_cohort(workspace, holdout)
    wording = list(_wording(version))
    checked = [_describe(version, wording, holdout)]
    objections = list(_once_open(workspace, cohort))
    if has_texts(workspace, holdout):
        objections += _copied(workspace, cohort, wording)
        objections += _alike(workspace, cohort, version)
    else:
        objections.append(
            f"the wording of {version.ref} could not be compared with holdout "
            f"{holdout}: its texts are not on this machine"
        )
    remarks = list(_gone(workspace))
    pairs, unread = _pairs(workspace, cohort)
    objections += unread
    for pair in pairs:
        no_patients = [one for one in pair.not_checked if one.startswith(_PATIENTS)]
        checked.append(
            f"Cases{'' if no_patients else ', patients'} and texts of {holdout} were "
            f"compared with those of {pair.first}; texts are near-duplicates when four "
            f"fifths of their runs of {SHINGLE} words are the same."
        )
        objections += [_shared(pair, one) for one in pair.shared]
        # Without ids: remarks stand on the card.
        remarks += filter(None, [describe_candidates(pair)])
        for reason in pair.not_checked:
            known = remarks if reason in no_patients else objections
            known.append(f"{holdout} and {pair.first} were not compared by {reason}")
    return Separation(tuple(checked), tuple(objections), tuple(remarks))


def _describe(
    version: PromptVersion, wording: Sequence[NewWording], holdout: str
) -> str:
    exemplars = sum(len(guide.exemplars) for guide in version.guides)
    return (
        f"{exemplars} exemplars and {len(wording)} wordings of {version.ref} were "
        f"compared with the texts of {holdout}: no {REFUSED_RUN} consecutive words may "
        "be the same."
    )


def _wording(version: PromptVersion) -> Iterator[NewWording]:
    """Yield whatever of a version may have been copied from a case."""
    for guide in version.guides:
        rules = [rule for one in guide.parts for rule in one.clarifications]
        for where, texts in (
            ("definition", (guide.definition,)),
            ("counts", guide.counts),
            ("does not count", guide.does_not_count),
            ("uncertain when", guide.uncertain_when),
            ("term", [term for one in guide.parts for term in one.terms]),
            ("exclusion", [each for one in guide.parts for each in one.exclusions]),
            ("clarification", [rule.phrase for rule in rules]),
            ("clarification", [rule.note for rule in rules]),
            ("exemplar", [one.text for one in guide.exemplars]),
            ("exemplar", [one.evidence for one in guide.exemplars]),
            ("exemplar", [one.why for one in guide.exemplars]),
        ):
            for text in texts:
                yield NewWording(f"{guide.label}, {where}", text)
    for file, source in (
        ("system.jinja", version.system),
        ("user.jinja", version.user),
    ):
        yield NewWording(file, source)


def _copied(
    workspace: WorkspacePaths, cohort: Cohort, wording: Sequence[NewWording]
) -> Iterator[str]:
    long = [one for one in wording if find_windows(one.text, REFUSED_RUN)]
    texts = (
        (item.id, text)
        for item in iter_items(workspace, cohort)
        for text in item.variables.values()
    )
    for copy in find_copies(long, texts, REFUSED_RUN, cohort.name):
        yield _copy(copy)


def _copy(copy: Copy) -> str:
    return (
        f"{copy.where}: {REFUSED_RUN} or more consecutive words also occur in case "
        f"{copy.case_id} of holdout {copy.cohort}"
    )


def _alike(
    workspace: WorkspacePaths, cohort: Cohort, version: PromptVersion
) -> Iterator[str]:
    """Yield each exemplar whose text is equal to, or nearly, that of a case."""
    texts = {
        f"{guide.label}, exemplar {number}": one.text
        for guide in version.guides
        for number, one in enumerate(guide.exemplars, 1)
        if words(one.text)
    }
    folded = {fold_text(text): where for where, text in texts.items()}
    sets = {where: shingles(text) for where, text in texts.items()}
    equal: list[tuple[str, str]] = []

    def cases() -> Iterator[tuple[str, frozenset[int]]]:
        for case_id, text, _ in iter_reports(workspace, cohort):
            if fold_text(text) in folded:
                equal.append((folded[fold_text(text)], case_id))
            yield case_id, shingles(text)

    found = {*near_duplicates(sets, cases()), *equal}
    for where, case_id in sorted(found):
        yield (
            f"{where}: its text is that of case {case_id} of holdout {cohort.name}, or "
            "nearly so"
        )


def _pairs(
    workspace: WorkspacePaths, cohort: Cohort
) -> tuple[list[PairReport], list[str]]:
    """Return what other roles, each named first, share with it, and what is unread."""
    pairs: list[PairReport] = []
    unread: list[str] = []
    for name in list_cohorts(workspace):
        if name == cohort.name:
            continue
        try:
            pairs += check_cohorts(workspace, [name, cohort.name]).pairs
        except LedgerError:
            raise
        except DataError:
            unread.append(
                f"{cohort.name} and {name} could not be compared: {name} is not as "
                "recorded"
            )
    return pairs, unread


def _gone(workspace: WorkspacePaths) -> Iterator[str]:
    """Yield that cohorts the ledger knows cannot be compared: nobody has them here."""
    here: set[object] = set()
    for name in list_cohorts(workspace):
        with suppress(DataError):
            here.add(read_cohort_file(workspace, name).digest)
    gone = {
        (entry.subject, entry.payload.get("cohort_digest")): entry.seq
        for entry in read_ledger(workspace.ledger)
        if entry.action == "cohort_added"
        and entry.payload.get("cohort_digest") not in here
    }
    if gone:
        names = ", ".join(f"{name} (entry {seq})" for (name, _), seq in gone.items())
        yield f"cases that are not here any more were not compared: {names}"


def _shared(pair: PairReport, shared: Shared) -> str:
    ids = ", ".join(
        " = ".join(dict.fromkeys(both)) for both in shared.examples[:_SHOWN]
    )
    number = counted(shared.number, shared.kind.value)
    return f"{pair.first} and {pair.second} share {number}: {ids}"


def _once_open(workspace: WorkspacePaths, cohort: Cohort) -> Iterator[str]:
    """Yield the entries that say that prompts could be made from these cases.

    An external cohort was measured on and never revised on: `find_earlier_looks` tells
    of it, and whoever approves decides.
    """
    for entry in read_ledger(workspace.ledger):
        role = entry.payload.get("role")
        if was_open(entry, cohort.digest) and role != CohortRole.EXTERNAL:
            yield (
                f"the cases of holdout {cohort.name} were open before: entry "
                f"{entry.seq} of the ledger has them as {entry.subject}, {role}"
            )


def find_earlier_looks(workspace: WorkspacePaths, holdout: str) -> tuple[str, ...]:
    """Return how the cases of a holdout were seen before, as sentences.

    Empty for cases that were never anything but a holdout, as far as the ledger knows:
    it has the digest of every cohort as a whole, and those of its source files.

    Raises
    ------
    DataError
        There is no such cohort.
    LedgerError
        The ledger is broken.
    """
    digest = read_cohort(workspace, holdout).digest
    entries = read_ledger(workspace.ledger)
    return (
        *_same_cases(entries, holdout, digest),
        *_same_source(workspace, entries, holdout),
    )


def was_open(entry: LedgerEntry, digest: str) -> bool:
    """Whether an entry says that the cases with that digest were no holdout then."""
    return entry.payload.get("cohort_digest") == digest and _tells_of_open(entry)


def _tells_of_open(entry: LedgerEntry) -> bool:
    added = (
        entry.action == "cohort_added"
        and entry.payload.get("role") != CohortRole.HOLDOUT
    )
    return added or entry.action == "holdout_retired"


def _same_cases(
    entries: Sequence[LedgerEntry], holdout: str, digest: str
) -> Iterator[str]:
    """Yield that exactly these cases were an open cohort, and how often measured on."""
    added = [entry for entry in entries if was_open(entry, digest)]
    if not added:
        return
    names = {entry.subject for entry in added}
    since = _newest_import(entries, holdout).seq
    looks = sum(
        entry.action in ("evaluated", "judge_evaluated")
        and entry.payload.get("cohort") in names
        and entry.seq < since
        for entry in entries
    )
    where = ", ".join(f"{entry.subject}, entry {entry.seq}" for entry in added)
    times = "once" if looks == 1 else f"{looks} times"
    yield (
        f"the cases of {holdout} are no longer unseen: they were an open cohort before "
        f"({where} of the ledger), and versions were measured on them {times}"
    )


def _same_source(
    workspace: WorkspacePaths, entries: Sequence[LedgerEntry], holdout: str
) -> Iterator[str]:
    """Yield that an open cohort of the same file is gone: some cases may be both's."""
    here = {
        read_cohort_file(workspace, name).digest for name in list_cohorts(workspace)
    }
    files = _files(_newest_import(entries, holdout))
    for entry in entries:
        other = entry.payload.get("cohort_digest")
        if entry.action != "cohort_added" or other in here:
            continue
        if _tells_of_open(entry) and files & _files(entry):
            yield (
                f"{entry.subject} (entry {entry.seq} of the ledger) was an open cohort "
                f"from a source file that {holdout} comes from too; it is not here any "
                "more, so the cases they share are unknown"
            )


def _newest_import(entries: Sequence[LedgerEntry], name: str) -> LedgerEntry:
    ours = [e for e in entries if e.action == "cohort_added" and e.subject == name]
    return ours[-1]


def _files(entry: LedgerEntry) -> set[str]:
    return set(map(str, dict(entry.payload.get("files", {})).values()))
