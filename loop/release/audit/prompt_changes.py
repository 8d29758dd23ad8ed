"""What happened to one prompt, entry by entry: before, after, and on which evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from loop.core.check_findings import FindingSeverity
from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.evaluate.score_history import read_verdict_roles
from loop.prompts.catalog import parse_ref, read_folder
from loop.prompts.diff import COUNTED, diff_versions
from loop.prompts.version import PromptVersion
from loop.release.audit.audit import LedgerAudit
from loop.release.audit.evaluations import cohort_of
from loop.release.audit.signatures import find_keys
from loop.release.released import name_in

_ACTS = {
    "draft_committed": "Version committed",
    "draft_rejected": "Draft kept back",
    "alias_moved": "Alias moved",
    "searched": "Searched by an optimizer",
    "evaluated": "Evaluated",
    "gate_decided": "Gates decided",
    "discrimination_measured": "Held against injected errors",
    "override": "Decided against objections",
    "holdout_opened": "Holdout opened",
    "frozen": "Released",
    "withdrawn": "Release withdrawn",
    "exported": "Exported",
    "protocol_set": "Protocol registered",
}
_WORDS = {
    "draft_committed": "commit",
    "frozen": "release",
    "withdrawn": "stop",
    "override": "stop",
    "draft_rejected": "kept",
    "holdout_opened": "open",
    "alias_moved": "move",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerChange:
    """One entry of the ledger, told for a reader."""

    entry: LedgerEntry
    act: str
    """What was done, in words."""

    tone: str
    """``commit``, ``release``, ``stop``, ``kept``, ``open``, ``move`` or ``plain``."""

    before: str = ""
    """What stood before; empty where nothing did."""

    after: str = ""
    facts: tuple[str, ...] = ()
    """Evidence: counts, runs, checks; never case text."""

    objections: tuple[str, ...] = ()
    """What stood against it."""

    signed: str = ""
    """Whose key signed the entry; empty if none did."""

    doubts: tuple[str, ...] = ()
    """What the audit found broken about the entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptChanges:
    """The history of one prompt, oldest entry first."""

    prompt: str
    changes: tuple[LedgerChange, ...]
    aliases: Mapping[str, str]
    """Alias to version tag, as the entries leave them."""

    versions: int
    releases: int


def list_audited(audit: LedgerAudit) -> tuple[str, ...]:
    """Return the names of all prompts that the ledger committed a version of."""
    names = {
        entry.subject.partition("@")[0]
        for entry in audit.entries
        if entry.action == "draft_committed"
    }
    return tuple(sorted(names))


def audited_prompt(audit: LedgerAudit, ref: str) -> str:
    """Return the name of the prompt that `ref` names.

    Raises
    ------
    DataError
        It is no name of a prompt, or the ledger never heard of it.
    """
    name, known = parse_ref(ref).name, list_audited(audit)
    if name not in known:
        raise DataError(
            f"the ledger has no version of a prompt {name!r} (known: "
            f"{', '.join(known) or 'none'}). Correct the name."
        )
    return name


def read_changes(
    workspace: WorkspacePaths, audit: LedgerAudit, prompt: str
) -> PromptChanges:
    """Return what the ledger says of `prompt`.

    How two versions differ is read from their folders, where they are still what was
    committed; all else is from the ledger.

    Raises
    ------
    DataError
        `prompt` is no name of a prompt, or the ledger never heard of it.
    """
    name = audited_prompt(audit, prompt)
    teller = _Teller(workspace, audit)
    changes = tuple(teller.tell(e) for e in audit.entries if concerns(e, name))
    actions = [change.entry.action for change in changes]
    return PromptChanges(
        prompt=name,
        changes=changes,
        aliases=teller.aliases(name),
        versions=len(teller.versions_of(name)),
        releases=actions.count("frozen"),
    )


def concerns(entry: LedgerEntry, prompt: str) -> bool:
    """Whether an entry is about `prompt`, its releases, or the protocol of all."""
    if entry.action == "protocol_set":
        return True
    subjects = (entry.subject, str(entry.payload.get("prompt", "")))
    release = name_in(entry) if entry.action in ("frozen", "withdrawn") else ""
    return any(one.partition("@")[0] == prompt for one in subjects) or (
        release.rpartition("-v")[0] == prompt
    )


class _Teller:
    """Tells entries in order, each against what stood before it."""

    def __init__(self, workspace: WorkspacePaths, audit: LedgerAudit) -> None:
        """Note what was found broken, and where the versions are."""
        self.workspace = workspace
        self.keys = find_keys(audit.entries)
        self.doubts: dict[int, list[str]] = {}
        for one in audit.findings:
            if one.severity is FindingSeverity.BROKEN and one.seq:
                self.doubts.setdefault(one.seq, []).append(one.what)
        self.commits = {
            e.subject: e for e in audit.entries if e.action == "draft_committed"
        }
        self.moved: dict[str, dict[str, str]] = {}
        self.scores: dict[str, LedgerEntry] = {}
        self.gates: dict[str, LedgerEntry] = {}

    def aliases(self, prompt: str) -> Mapping[str, str]:
        """Return the aliases of `prompt` as the entries told so far leave them."""
        return self.moved.get(prompt, {})

    def versions_of(self, prompt: str) -> list[str]:
        """Return the refs of the committed versions of `prompt`."""
        return [ref for ref in self.commits if ref.partition("@")[0] == prompt]

    def tell(self, entry: LedgerEntry) -> LedgerChange:
        """Return an entry with what it changed."""
        before, after, facts = self._told(entry)
        held = self.keys.get(entry.keyid)
        return LedgerChange(
            entry=entry,
            act=_ACTS.get(entry.action, entry.action),
            tone=_WORDS.get(entry.action, "plain"),
            before=before,
            after=after,
            facts=tuple(one for one in facts if one and not _says(entry.reason, one)),
            objections=_objections(entry),
            signed=held.name if held else "",
            doubts=tuple(self.doubts.get(entry.seq, ())),
        )

    def _told(self, entry: LedgerEntry) -> tuple[str, str, list[str]]:
        """Return what stood before, what stands after, and the evidence."""
        payload = entry.payload
        if entry.action == "draft_committed":
            return self._committed(entry)
        if entry.action == "draft_rejected":
            parent = str(payload.get("parent_ref", ""))
            return parent, entry.subject, [*_checked(payload)]
        if entry.action == "alias_moved":
            return self._moved(entry)
        if entry.action == "evaluated":
            return self._evaluated(entry)
        if entry.action == "gate_decided":
            return self._gated(entry)
        return "", entry.subject, [*_plain(entry)]

    def _committed(self, entry: LedgerEntry) -> tuple[str, str, list[str]]:
        digest = entry.payload.get("parent")
        parents = [
            ref
            for ref in self.versions_of(entry.subject.partition("@")[0])
            if self.commits[ref].payload.get("digest") == digest
            and self.commits[ref].seq < entry.seq
        ]
        parent = parents[-1] if parents else ""
        facts = [self._diff(parent, entry.subject) if parent else "first version"]
        return (
            parent,
            entry.subject,
            [*facts, *_verdicts(entry), *_checked(entry.payload)],
        )

    def _diff(self, before: str, after: str) -> str:
        """Return what differs: ``"contract binary, +12 terms, -1 exclusion"``."""
        old, new = self._read(before), self._read(after)
        if old is None or new is None:
            return "how they differ is not shown: a folder is not what was committed"
        diff = diff_versions(old, new)
        set_to = [
            f"{kind} {to}"
            for sign, kind, to in diff.settings
            if sign == "+" and kind in ("plan", "contract")
        ]
        counted = [_counted(key, n) for key, n in diff.counts().items()]
        shown = ", ".join((*set_to, *counted))
        return shown or "the same wording"

    def _read(self, ref: str) -> PromptVersion | None:
        folder = self.workspace.prompts / ref.replace("@", "/")
        try:
            version, _ = read_folder(folder)
        except (DataError, OSError):
            return None
        recorded = self.commits[ref].payload.get("digest")
        return version if version.digest == recorded else None

    def _moved(self, entry: LedgerEntry) -> tuple[str, str, list[str]]:
        prompt, _, tag = entry.subject.partition("@")
        alias = str(entry.payload.get("alias", ""))
        aliases = self.moved.setdefault(prompt, {})
        before, aliases[alias] = aliases.get(alias, ""), tag
        return before, tag, [f"alias {alias}"]

    def _evaluated(self, entry: LedgerEntry) -> tuple[str, str, list[str]]:
        payload, cohort = entry.payload, str(entry.payload.get("cohort"))
        last, self.scores[cohort] = self.scores.get(cohort), entry
        before = _score(last) if last else ""
        facts = [
            f"{cohort}, {payload.get('cases')} cases, reference "
            f"v{payload.get('reference')}",
            f"run {payload.get('run')}",
            f"before: {last.subject}" if last else "",
        ]
        return before, _score(entry), facts

    def _gated(self, entry: LedgerEntry) -> tuple[str, str, list[str]]:
        cohort, now = str(entry.payload.get("cohort")), _gates(entry)
        last, self.gates[cohort] = self.gates.get(cohort), entry
        then = _gates(last) if last else {}
        moves: dict[str, list[str]] = {}
        for label, verdict in now.items():
            if label in then and then[label] != verdict:
                moves.setdefault(f"{then[label]} to {verdict}", []).append(label)
        facts = [f"{how}: {', '.join(labels)}" for how, labels in moves.items()]
        before = _tally(then) if last else ""
        return (
            before,
            _tally(now),
            [f"{entry.payload.get('verdict')} on {cohort}", *facts],
        )


def _says(reason: str, fact: str) -> bool:
    """Whether a reason holds a fact, as whole words: "dev" is not in "developed"."""
    return re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", reason) is not None


def _counted(key: str, count: int) -> str:
    """Return ``"+12 terms"`` for 12 changes of kind ``"+term"``."""
    plural = "s" if count != 1 and key[1:] in COUNTED else ""
    return f"{key[0]}{count} {key[1:]}{plural}"


def _objections(entry: LedgerEntry) -> tuple[str, ...]:
    override = entry.payload.get("override")
    named = override.get("overridden") if isinstance(override, Mapping) else None
    found = named or entry.payload.get("objections") or entry.payload.get("overridden")
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _verdicts(entry: LedgerEntry) -> Iterator[str]:
    verdicts = entry.payload.get("verdicts")
    if isinstance(verdicts, list) and verdicts:
        by = (f"{role} {n}" for role, n in read_verdict_roles(entry.payload).items())
        roles = ", ".join(by)
        yield (counted(len(verdicts), "verdict") + (f" ({roles})" if roles else ""))


def _checked(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the check of a draft against its parent found."""
    check = payload.get("check")
    if not isinstance(check, Mapping) or not check.get("runs"):
        return
    where = f"checked on {check.get('cohort')}, {check.get('cases')} cases"
    if check.get("form") == 2:
        yield f"{where}, {check.get('draws')} draws: {_drawn(check)}"
    else:
        yield f"{where}: {check.get('gained')} gained, {check.get('lost')} lost"
    yield f"runs {', '.join(map(str, check['runs']))}"


def _drawn(check: Mapping[str, Any]) -> str:
    """Return what a check over several draws found, as the ledger keeps it."""
    harmed = check.get("harmed")
    named = ", ".join(map(str, harmed)) if isinstance(harmed, list) else ""
    found = f"evidence of harm: {named or 'none'}"
    surplus = check.get("surplus")
    if not isinstance(surplus, Mapping):
        return found
    return (
        f"targeted cases right in {surplus.get('after')} of {surplus.get('readings')} "
        f"readings, with the parent in {surplus.get('before')}; {found}"
    )


def _score(entry: LedgerEntry) -> str:
    return f"macro-F1 {entry.payload.get('macro_f1', 'not recorded')}"


def _gates(entry: LedgerEntry) -> Mapping[str, str]:
    labels = entry.payload.get("labels")
    return {str(k): str(labels[k]) for k in labels} if isinstance(labels, dict) else {}


def _tally(gates: Mapping[str, str]) -> str:
    """Return ``"13 of 21 pass"``."""
    passed = sum(verdict == "PASS" for verdict in gates.values())
    return f"{passed} of {len(gates)} pass"


def _plain(entry: LedgerEntry) -> Iterator[str]:
    """Yield the facts of an entry that changes no wording and no score."""
    payload = entry.payload
    if entry.action == "holdout_opened":
        number, budget = payload.get("number"), payload.get("budget")
        count = f", opening {number} of {budget}" if number and budget else ""
        yield f"{cohort_of(entry)}{count}"
    elif entry.action in ("frozen", "withdrawn"):
        yield f"release {name_in(entry)}"
    elif entry.action == "protocol_set":
        named = ("rule", "accuracy", "kappa", "uncertain_answers", "no_finding")
        yield ", ".join(f"{key} {payload[key]}" for key in named if key in payload)
    elif entry.action == "exported":
        yield ", ".join(f"{k}: {v}" for k, v in payload.items() if isinstance(v, str))
