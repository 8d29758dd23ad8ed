"""How a prompt's versions scored, as the ledger has it: nothing is measured again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from loop.core.errors import DataError, LedgerError
from loop.core.ledger import GENESIS, LedgerEntry, entry_hash, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import UncertainAnswers
from loop.documents.tables import format_rows
from loop.evaluate.gates import GateVerdict
from loop.evaluate.results import left_out_of
from loop.evaluate.tried import WordingStatus
from loop.prompts.catalog import (
    inspect_version,
    list_drafts,
    list_versions,
    read_aliases,
    read_version,
)
from loop.prompts.version import PromptVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionScore:
    """One version or draft, and its newest score on one cohort by one way to measure.

    That way is the engine, the policy for uncertain answers and the reference: a score
    is shown beside those of another way and never replaces them.
    """

    number: int
    """Version number; 0 for a draft."""

    ref: str
    """For example ``"extractor@v3"``."""

    digest: str
    parent: str | None
    """Digest of the version it was revised from."""

    when: str
    """UTC, ISO 8601 with seconds; empty when nobody recorded it."""

    who: str
    why: str
    verdicts: int
    """Verdicts of clinicians that it addresses."""

    status: WordingStatus
    verdict_roles: Mapping[str, int] = field(default_factory=dict, hash=False)
    """See `read_verdict_roles`."""

    objections: tuple[str, ...] = ()
    """Why a draft was rejected."""

    cohort: str = ""
    macro_f1: float | None = None
    """None when it was not evaluated on the cohort, or has no F1."""

    low: float | None = None
    """Limits of macro-F1; None unless `loop.evaluate.recording` filled them in."""

    high: float | None = None
    labels_passed: int | None = None
    labels_failed: int | None = None
    labels_insufficient: int | None = None
    reference: int | None = None
    """Reference version that the score is against."""

    run: str = ""
    runs: tuple[str, ...] = ()
    """Those of all draws that the score is the mean over; empty for one."""

    signature: str = ""
    engine_digest: str = ""
    """Of a served model's identity; empty for an engine whose name says all."""

    reference_digest: str = ""
    comparable: bool = True
    """Whether it was scored on the same cases, reference and engine as the newest
    score; True without a score."""

    @property
    def engine(self) -> str:
        """Name of the engine that answered; empty without a score."""
        parts = self.signature.split("|")
        ends = [n for n, part in enumerate(parts) if part.startswith("unc:")]
        # Before the policy stands the cohort with its reference.
        return "|".join(parts[2 : ends[-1] - 1]) if ends else ""

    @property
    def policy(self) -> UncertainAnswers:
        """What an uncertain answer counted as."""
        signs = self.signature.split("|")
        return next(
            (one for one in UncertainAnswers if one.sign in signs),
            UncertainAnswers.EXCLUDED,
        )

    @property
    def measured(self) -> str:
        """How it was measured: engine, policy, reference and cases, as it is shown."""
        if not self.run:
            return ""
        served = f" {self.engine_digest[:6]}" if self.engine_digest else ""
        cases = [part[2:] for part in self.signature.split("|") if part[:2] == "n:"]
        reference = "not recorded" if self.reference is None else self.reference
        return (
            f"{self.engine or 'engine not recorded'}{served}, uncertain answers "
            f"{self.policy.value}, reference {reference}"
            + "".join(f", {number} cases" for number in cases)
        )

    @property
    def without(self) -> frozenset[str]:
        """Labels in no average, as the reference cannot judge them."""
        return left_out_of(self.signature)

    @property
    def labels(self) -> int:
        """Labels that a gate decided on; without those that no reference can judge."""
        counts = (self.labels_passed, self.labels_failed, self.labels_insufficient)
        return sum(count or 0 for count in counts)


def score_history(
    workspace: WorkspacePaths, prompt: str, cohort: str
) -> tuple[VersionScore, ...]:
    """Return every version and draft of `prompt` with its newest scores on `cohort`.

    Versions come in order, each followed by the drafts revised from it. A draft that
    was committed unchanged appears as the version only. One that was scored in several
    ways, by engine, policy or reference, appears once for each, the newest last; one
    without a score appears once. Scores are those recorded when `ranloop evaluate`
    ran, to four decimals.

    Raises
    ------
    DataError
        There is no such prompt.
    LedgerError
        The ledger is broken; see `ledger_state`.
    """
    entries = read_ledger(workspace.ledger)
    rows = [
        scored
        for row in read_versions(workspace, prompt)
        for scored in _scored(row, entries, cohort)
    ]
    newest = max(
        (entry for entry in entries if _is_score(entry, prompt, cohort)),
        key=lambda entry: entry.seq,
        default=None,
    )
    if newest is None:
        return tuple(rows)
    wanted = _conventions(newest.payload)
    return tuple(
        replace(
            row,
            comparable=not row.run
            or wanted
            == (row.reference_digest, _measured_as(row.signature), row.engine_digest),
        )
        for row in rows
    )


def main_scores(scores: Sequence[VersionScore]) -> dict[str, VersionScore]:
    """Return ref to one score of each version and draft, in the order of `scores`.

    The one that is comparable with the newest score, if there is one: so the versions
    of a prompt are shown side by side, as far as they were measured in one way.
    """
    found: dict[str, VersionScore] = {}
    for one in scores:
        if one.ref not in found or one.comparable or not found[one.ref].comparable:
            found[one.ref] = one
    return found


def read_scores(workspace: WorkspacePaths, prompt: str) -> tuple[VersionScore, ...]:
    """Return the score history of `prompt` on every cohort it was evaluated on.

    Without an evaluation: its versions and drafts once, without scores.

    Raises
    ------
    DataError
        There is no such prompt.
    LedgerError
        The ledger is broken.
    """
    cohorts = dict.fromkeys(
        str(entry.payload.get("cohort"))
        for entry in read_ledger(workspace.ledger)
        if entry.action == "evaluated" and entry.subject.partition("@")[0] == prompt
    )
    if not cohorts:
        return read_versions(workspace, prompt)
    return tuple(
        row for cohort in cohorts for row in score_history(workspace, prompt, cohort)
    )


def read_versions(workspace: WorkspacePaths, prompt: str) -> tuple[VersionScore, ...]:
    """Return versions and drafts without scores, each draft after its parent.

    Raises
    ------
    DataError
        There is no such prompt.
    LedgerError
        The ledger is broken.
    """
    entries = read_ledger(workspace.ledger)
    committed = _committed(workspace, prompt, entries)
    if not committed:
        read_version(workspace, prompt)
    numbers = {row.digest: row.number for row in committed}
    drafts = [
        row for row in _drafts(workspace, prompt, entries) if row.digest not in numbers
    ]
    rows = sorted(
        [*committed, *drafts],
        key=lambda row: (
            (row.number, False, "")
            if row.number
            else (numbers.get(row.parent or "", 0), True, row.when)
        ),
    )
    return tuple(rows)


def _committed(
    workspace: WorkspacePaths, prompt: str, entries: Iterable[LedgerEntry]
) -> list[VersionScore]:
    """Return the committed versions in order, whether or not their files are there."""
    rows: dict[int, VersionScore] = {}
    for entry in entries:
        name, _, tag = entry.subject.partition("@v")
        if entry.action == "draft_committed" and name == prompt and tag.isdecimal():
            rows[int(tag)] = _from_entry(entry, int(tag), WordingStatus.COMMITTED)
    for number in list_versions(workspace, prompt):
        if number not in rows:
            try:
                version, _ = inspect_version(workspace, prompt, number)
            except DataError:
                continue
            rows[number] = _from_version(version, WordingStatus.COMMITTED)
    return [rows[number] for number in sorted(rows)]


def _drafts(
    workspace: WorkspacePaths, prompt: str, entries: Iterable[LedgerEntry]
) -> list[VersionScore]:
    """Return the drafts in the ledger, and those that wait for a decision."""
    rows: dict[str, VersionScore] = {}
    for entry in entries:
        name = entry.subject.partition("@")[0]
        if entry.action == "draft_rejected" and name == prompt:
            objections = entry.payload.get("objections")
            standing = WordingStatus.REJECTED if objections else WordingStatus.DRAFT
            rows[entry.subject] = _from_entry(entry, 0, standing)
    for draft in list_drafts(workspace, prompt):
        ref = f"{prompt}@draft:{draft}"
        if ref not in rows:
            try:
                version = read_version(workspace, ref)
            except DataError:
                continue
            rows[ref] = _from_version(version, WordingStatus.DRAFT)
    return list(rows.values())


def _from_entry(entry: LedgerEntry, number: int, status: WordingStatus) -> VersionScore:
    payload = entry.payload
    parent = payload.get("parent")
    return VersionScore(
        number=number,
        ref=entry.subject,
        digest=str(payload.get("digest", "")),
        parent=None if parent is None else str(parent),
        when=entry.time,
        who=entry.actor,
        why=entry.reason,
        verdicts=len(payload.get("verdicts") or ()),
        status=status,
        verdict_roles=read_verdict_roles(payload),
        objections=tuple(map(str, payload.get("objections") or ())),
    )


def read_verdict_roles(payload: Mapping[str, Any]) -> dict[str, int]:
    """Return roles to the verdicts of a commit that people in these roles gave.

    Empty where the ledger has none, as before roles were recorded, or counts that
    cannot be meant: more than there are verdicts.
    """
    roles, verdicts = payload.get("verdict_roles"), payload.get("verdicts")
    if not isinstance(roles, Mapping) or not isinstance(verdicts, list):
        return {}
    counts = list(roles.values())
    if not all(type(count) is int and count > 0 for count in counts):
        return {}
    return dict(roles) if sum(counts) <= len(verdicts) else {}


def _from_version(version: PromptVersion, status: WordingStatus) -> VersionScore:
    return VersionScore(
        number=version.number,
        ref=version.ref,
        digest=version.digest,
        parent=version.parent,
        when=version.time,
        who=version.author,
        why=version.why,
        verdicts=len(version.verdicts),
        status=status,
    )


def _scored(
    row: VersionScore, entries: Sequence[LedgerEntry], cohort: str
) -> list[VersionScore]:
    """Return `row` with what the ledger last said of it on `cohort`, way by way."""
    scores: dict[tuple[object, ...], LedgerEntry] = {}
    gates: dict[tuple[object, ...], LedgerEntry] = {}
    for entry in entries:
        payload = entry.payload
        # A draft that became a version was scored under its draft's name.
        known = payload.get("prompt_digest") == row.digest
        # A part of the cohort is no score on it; the ledger keeps it all the same.
        if not known or payload.get("cohort") != cohort or payload.get("not_run"):
            continue
        if entry.action == "evaluated":
            way = _conventions(payload)
            scores.pop(way, None)
            scores[way] = entry
        elif entry.action == "gate_decided":
            gates[_judged(payload)] = entry
    if not scores:
        return [replace(row, cohort=cohort)]
    return [
        _with_score(row, cohort, entry.payload, gates.get(_judged(entry.payload)))
        for entry in scores.values()
    ]


def _judged(payload: Mapping[str, object]) -> tuple[object, ...]:
    """Return what a score and its gate have in common."""
    names = ("run", "reference_digest", "protocol_digest", "counts_digest")
    return tuple(payload.get(name) for name in names)


def _with_score(
    row: VersionScore,
    cohort: str,
    payload: Mapping[str, Any],
    gate: LedgerEntry | None,
) -> VersionScore:
    passed, failed, insufficient = _tally(gate.payload if gate else {})
    return replace(
        row,
        cohort=cohort,
        macro_f1=_number(payload.get("macro_f1")),
        labels_passed=passed,
        labels_failed=failed,
        labels_insufficient=insufficient,
        reference=payload.get("reference"),
        reference_digest=str(payload.get("reference_digest", "")),
        run=str(payload.get("run", "")),
        runs=tuple(map(str, payload.get("runs") or ())),
        signature=str(payload.get("signature", "")),
        engine_digest=str(payload.get("engine_digest", "")),
    )


_DECIDED = (GateVerdict.PASS, GateVerdict.FAIL, GateVerdict.INSUFFICIENT)


def _tally(gate: Mapping[str, object]) -> list[int | None]:
    """Return how many labels passed, failed and lack evidence, where it is known."""
    labels = gate.get("labels")
    if not isinstance(labels, Mapping):
        return [None] * len(_DECIDED)
    verdicts = Counter(labels.values())
    return [verdicts[verdict.value] for verdict in _DECIDED]


def _is_score(entry: LedgerEntry, prompt: str, cohort: str) -> bool:
    return (
        entry.action == "evaluated"
        and entry.subject.partition("@")[0] == prompt
        and entry.payload.get("cohort") == cohort
        and not entry.payload.get("not_run")
    )


def _conventions(payload: Mapping[str, object]) -> tuple[str, tuple[str, ...], str]:
    """Return what two scores must share to be compared."""
    signature = str(payload.get("signature", ""))
    digest, engine = payload.get("reference_digest", ""), payload.get("engine_digest")
    return str(digest), _measured_as(signature), str(engine or "")


def _measured_as(signature: str) -> tuple[str, ...]:
    """Return a signature without the version, and without what follows from it."""
    parts = signature.split("|")
    return tuple(
        part
        for place, part in enumerate(parts)
        if place != 1 and not part.startswith(("L:", "draws:"))
    )


def _number(text: object) -> float | None:
    """Return a score of the ledger; None for ``"not estimable"``."""
    try:
        return float(str(text))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One version or draft in the lineage of a prompt."""

    ref: str
    """For example ``"extractor@v3"``."""

    number: int
    """Version number; 0 for a draft."""

    status: WordingStatus
    when: str
    """UTC, ISO 8601 with seconds."""

    who: str
    why: str
    aliases: tuple[str, ...] = ()

    @property
    def tag(self) -> str:
        """Short name: ``"v3"``, or ``"draft"``."""
        return f"v{self.number}" if self.number else "draft"


class Edge(NamedTuple):
    """One revision: from a version to what was made of it."""

    parent: str
    child: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """All versions and drafts of one prompt."""

    prompt: str
    nodes: tuple[Node, ...]
    """Versions in order, each followed by the drafts revised from it."""

    edges: tuple[Edge, ...]
    """One for every node whose parent is known; never from a later version."""


def lineage_graph(workspace: WorkspacePaths, prompt: str) -> Lineage:
    """Return who made what of which version of `prompt`.

    Raises
    ------
    DataError
        There is no such prompt.
    LedgerError
        The ledger is broken; see `ledger_state`.
    """
    rows = read_versions(workspace, prompt)
    tags: dict[str, list[str]] = {}
    for alias, tag in read_aliases(workspace, prompt).items():
        tags.setdefault(tag, []).append(alias)
    nodes = tuple(
        Node(
            ref=row.ref,
            number=row.number,
            status=row.status,
            when=row.when,
            who=row.who,
            why=row.why,
            aliases=tuple(tags.get(f"v{row.number}", ())),
        )
        for row in rows
    )
    edges = (_edge(row, rows) for row in rows)
    return Lineage(
        prompt=prompt, nodes=nodes, edges=tuple(edge for edge in edges if edge)
    )


def _edge(row: VersionScore, rows: Sequence[VersionScore]) -> Edge | None:
    """Return the edge to `row`; the nearest version where two have the same wording."""
    parents = [
        one
        for one in rows
        if one.number
        and one.digest == row.parent
        and (not row.number or one.number < row.number)
    ]
    return Edge(parents[-1].ref, row.ref) if parents else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """The ledger as it stands, broken or not."""

    entries: tuple[LedgerEntry, ...]
    """All entries, or those before the break."""

    intact: bool
    problem: str
    """What is wrong, where, and what to do; empty when the chain holds."""

    head: str
    """Hash of the last entry; 64 zeros for an empty ledger."""

    counts: Mapping[str, int]
    """Action to number of entries, in order of first appearance."""


def ledger_state(workspace: WorkspacePaths) -> LedgerState:
    """Return what the ledger holds and whether its chain is whole; never raises for it.

    A chain that holds does not show that its end was cut off: compare `head` with the
    one that a signed release names.
    """
    path = workspace.ledger
    problem = ""
    try:
        entries = read_ledger(path)
    except LedgerError as error:
        problem = str(error)
        entries = _before_the_break(workspace)
    return LedgerState(
        entries=entries,
        intact=not problem,
        problem=problem,
        head=entries[-1].hash if entries else GENESIS,
        counts=Counter(entry.action for entry in entries),
    )


def _before_the_break(workspace: WorkspacePaths) -> tuple[LedgerEntry, ...]:
    """Return the longest beginning of the ledger whose chain holds."""
    try:
        lines = workspace.ledger.read_bytes().splitlines()
    except OSError:
        return ()
    entries: list[LedgerEntry] = []
    head = GENESIS
    for line in lines:
        try:
            data = json.loads(line)
            entry = LedgerEntry(**data)
            expected = entry_hash(data)
        except (ValueError, TypeError):
            break
        if (entry.seq, entry.prev, entry.hash) != (len(entries) + 1, head, expected):
            break
        entries.append(entry)
        head = entry.hash
    return tuple(entries)


def history_table(scores: Sequence[VersionScore]) -> str:
    """Return one row per version or draft, cohort and way to measure as CSV."""
    return format_rows([_version(one) for one in scores])


def _version(one: VersionScore) -> dict[str, object]:
    return {
        "ref": one.ref,
        "status": one.status.value,
        "digest": one.digest,
        "parent": one.parent,
        "when": one.when,
        "who": one.who,
        "why": one.why,
        "verdicts": one.verdicts,
        "objections": "; ".join(one.objections),
        "cohort": one.cohort,
        "reference": one.reference,
        "run": one.run,
        "engine": one.engine,
        "uncertain_answers": one.policy.value if one.run else "",
        "macro_f1": one.macro_f1,
        "labels_passed": one.labels_passed,
        "labels_failed": one.labels_failed,
        "labels_insufficient": one.labels_insufficient,
        "comparable": "yes" if one.comparable else "no",
        "signature": one.signature,
    }
