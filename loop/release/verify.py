"""Whether a release folder is what was signed, and says what its own counts say."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from loop.core.check_findings import Finding, broken, join_problems, ok
from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LedgerError
from loop.core.ledger import LedgerEntry, read_ledger, signed_bytes
from loop.core.signing import Envelope, is_signed, key_id, parse_envelope
from loop.evaluate.gates import GateVerdict
from loop.evaluate.score_history import read_verdict_roles
from loop.judge.ensemble_versions import list_recorded
from loop.labels.cohort import find_record
from loop.labels.sealing import list_openings
from loop.release.consistency import (
    check_agreement,
    check_claim,
    check_facts,
    check_numbers,
    check_prompt,
    check_table,
    not_comparable_in,
)
from loop.release.facts import FACTS, EvaluationFacts, ProtocolFacts, ReleaseFacts
from loop.release.folder import (
    LEDGER,
    PROMPT,
    RELEASE_NAME,
    ROWS,
    TABLE,
    Contents,
    read_contents,
    shown,
    unpacked,
)
from loop.release.judge_consistency import (
    check_ensembles,
    check_judge_claim,
    check_judge_numbers,
    check_rows,
)
from loop.release.judge_facts import JudgeReleaseFacts
from loop.release.keys import PublicKey
from loop.release.release_json import AnyFacts, parse_facts
from loop.release.statement import ENVELOPE, Approval, Statement, parse_statement


class Signed(NamedTuple):
    """What the envelope of a release holds, as far as it can be read."""

    envelope: Envelope | None
    statement: Statement | None


def read_signed(files: Mapping[str, bytes]) -> tuple[Signed, list[Finding]]:
    """Return envelope and statement, and whether each is spelled as it must be."""
    if ENVELOPE not in files:
        return Signed(None, None), [
            broken("envelope", f"{ENVELOPE} is missing: nothing is signed")
        ]
    try:
        envelope = parse_envelope(files[ENVELOPE], ENVELOPE)
    except DataError as error:
        return Signed(None, None), [broken("envelope", str(error))]
    good = ok("envelope", f"signatures: {len(envelope.signatures)}")
    try:
        statement = parse_statement(envelope)
    except DataError as error:
        return Signed(envelope, None), [
            good,
            broken("statement", str(error)),
        ]
    named = f"names {len(statement.subjects)} files"
    return Signed(envelope, statement), [good, ok("statement", named)]


def check_signatures(
    signed: Signed, trusted: Mapping[str, PublicKey]
) -> tuple[Finding, ...]:
    """Return whether the signatures are those listed, and each by a trusted key.

    Parameters
    ----------
    trusted
        Key id to public key: who the reader believes, and nobody else.
    """
    envelope, statement = signed
    if envelope is None or statement is None:
        return (
            broken("signatures", "not checked: there is no statement"),
            broken("vouched for", "by nobody"),
        )
    listed = [approval.keyid for approval in statement.approvals]
    found = [signature.keyid for signature in envelope.signatures]
    problems = []
    if found != listed:
        problems.append("they are not those of the approvals, in their order")
    return (
        join_problems("signatures", problems, f"{len(found)}, each listed"),
        _check_vouched(listed, trusted),
        *(_check_approval(one, envelope, trusted) for one in statement.approvals),
    )


def _check_vouched(listed: list[str], trusted: Mapping[str, PublicKey]) -> Finding:
    """Return whether the reader trusts any of those who are said to have signed."""
    known = [keyid for keyid in listed if keyid in trusted]
    if known:
        return ok("vouched for", f"{len(known)} of {len(listed)} keys are trusted")
    ids = ", ".join(keyid[:16] for keyid in listed)
    detail = f"by nobody you trust; name a public key with --key (it says {ids})"
    return broken("vouched for", detail)


def _check_approval(
    approval: Approval, envelope: Envelope, trusted: Mapping[str, PublicKey]
) -> Finding:
    """Return whether the person listed signed, with a key that was good then."""
    check = f"approval {shown(approval.keyid[:16])}"
    key = trusted.get(approval.keyid)
    who = f"{shown(approval.name)} ({shown(approval.role)})"
    if key is None:
        detail = f"{who}: the key {approval.keyid[:16]} is not one that you trust"
        return broken(check, detail)
    signatures = [one.sig for one in envelope.signatures if one.keyid == approval.keyid]
    problems = _key_problems(key, approval)
    if not any(is_signed(key.public, envelope.signed, sig) for sig in signatures):
        problems.append("the signature is missing or was not made with the key")
    problems = [f"{who}: {problem}" for problem in problems]
    good = f"{who}, {shown(approval.meaning)}, {approval.time}"
    if age := _age(key.created, approval.time):
        good += f", with a key made {age} before"
    return join_problems(check, problems, good)


_UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))


def _age(created: str, signed: str) -> str:
    """Return how old a key was when it signed; empty where a time is none.

    Who trusts a key because it was known before learns here whether it could be.

    Examples
    --------
    >>> _age("2026-11-22T09:17:09Z", "2026-11-22T09:17:22Z")
    '13 seconds'
    >>> _age("2026-11-20T09:17:09Z", "2026-11-22T09:17:22Z")
    '2 days'
    """
    try:
        made, used = map(datetime.fromisoformat, (created, signed))
        seconds = int((used - made).total_seconds())
    except (ValueError, TypeError):
        return ""
    size, unit = next((one for one in _UNITS if seconds >= 2 * one[0]), _UNITS[-1])
    return f"{seconds // size} {unit}"


def _key_problems(key: PublicKey, approval: Approval) -> list[str]:
    """Return why a trusted key does not vouch for what the approval says."""
    problems = []
    if key_id(key.public) != approval.keyid:
        problems.append("the trusted key has another id than it is listed under")
    if (key.name, key.role) != (approval.name, approval.role):
        problems.append(f"the key is that of {shown(key.name)} ({shown(key.role)})")
    if key.revoked:
        problems.append(
            f"the key was revoked, at {shown(key.revoked)}; whether the release is "
            "older, only the ledger of its workspace can tell"
        )
    if approval.time < key.created:
        problems.append(f"the key was made after it, at {shown(key.created)}")
    if key.valid_to and approval.time >= key.valid_to:
        problems.append(f"the key had run out, at {shown(key.valid_to)}")
    return problems


def check_files(statement: Statement | None, files: Mapping[str, bytes]) -> Finding:
    """Return whether the files are those of the statement, byte by byte."""
    if statement is None:
        return broken("files", "not checked: there is no statement to go by")
    present = {name: raw for name, raw in files.items() if name != ENVELOPE}
    problems = [
        f"{shown(name)} is named in the statement and missing"
        for name in sorted(set(statement.subjects) - set(present))
    ]
    for name, raw in sorted(present.items()):
        if name not in statement.subjects:
            problems.append(f"{name} is not named in the statement")
        elif digest_bytes(raw) != statement.subjects[name]:
            ends = digest_bytes(raw.replace(b"\r\n", b"\n"))
            only = (
                ", but only its line ends" if ends == statement.subjects[name] else ""
            )
            problems.append(f"{name} was changed after it was signed{only}")
    return join_problems("files", problems, f"{len(present)} files have their digests")


def check_chain(
    files: Mapping[str, bytes], facts: AnyFacts, trusted: Mapping[str, PublicKey]
) -> tuple[Finding, ...]:
    """Return whether the chain is unbroken up to the head named, and what it holds.

    Entries that name a trusted key must carry its signature.
    """
    raw = files.get(LEDGER, b"")
    unsure = broken("history", "not checked: the ledger cannot be read")
    try:
        with unpacked(files, LEDGER) as folder:
            entries = _read(folder)
    except LedgerError as error:
        return broken("ledger", str(error)), unsure
    problems = []
    if not entries or not raw.endswith(b"\n"):
        problems.append("it is missing, empty or cut off")
    head, named = entries[-1] if entries else None, facts.ledger
    if head and (head.seq, head.hash) != (named.seq, named.head):
        problems.append(
            f"it ends with entry {head.seq} ({head.hash[:12]}), the release names "
            f"entry {named.seq} ({named.head[:12]})"
        )
    problems.extend(_unsigned(entries, trusted))
    good = f"{len(entries)} entries, unbroken up to the head named"
    history = list(_history_problems(entries, facts, files))
    return (
        join_problems("ledger", problems, good),
        join_problems(
            "history", history, "the ledger holds what release.json says of it"
        ),
    )


def _read(folder: Path) -> tuple[LedgerEntry, ...]:
    """Read the ledger of an unpacked release; errors name it without the folder."""
    try:
        return read_ledger(folder / LEDGER)
    except LedgerError as error:
        raise LedgerError(str(error).replace(f"{folder}/", "")) from error


def _unsigned(
    entries: Sequence[LedgerEntry], trusted: Mapping[str, PublicKey]
) -> Iterator[str]:
    """Say which entries were not signed with the key they name."""
    for entry in entries:
        if entry.keyid in trusted:
            signature = base64.b64decode(entry.signature)
            public = trusted[entry.keyid].public
            if not is_signed(public, signed_bytes(entry.hash), signature):
                yield f"entry {entry.seq} was not signed with the key it names"


def _history_problems(
    entries: Sequence[LedgerEntry], facts: AnyFacts, files: Mapping[str, bytes]
) -> Iterator[str]:
    yield from _protocol_problems(entries, facts.protocol)
    yield from _commit_problems(entries, facts, files)
    if isinstance(facts, JudgeReleaseFacts):
        yield from _judge_problems(entries, facts)
    else:
        yield from _evaluation_problems(entries, facts)
    yield from _opening_problems(entries, facts)
    older = facts.supersedes
    known = {
        entry.payload.get("statement_sha256")
        for entry in entries
        if entry.action == "frozen"
    }
    if older and older.statement_sha256 not in known:
        yield "the release it supersedes is not in the ledger"


def _protocol_problems(
    entries: Sequence[LedgerEntry], protocol: ProtocolFacts
) -> Iterator[str]:
    """Compare when and with what the protocol was registered."""
    first = next(
        (
            entry
            for entry in entries
            if entry.action == "protocol_set"
            and entry.payload.get("digest") == protocol.digest
        ),
        None,
    )
    if first is None:
        yield "the protocol is not registered in the ledger"
        return
    if first.time != protocol.registered:
        yield f"the protocol was registered at {first.time}, not when it is said to be"
    content = protocol.content
    if first.payload.get("uncertain_answers") != content.get("uncertain_answers"):
        yield "the ledger registers another policy for uncertain answers"
    rules = content.get("judging")
    said = rules if isinstance(rules, Mapping) else {}
    words = f"{said.get('measure')} {said.get('threshold')} ({said.get('rule')})"
    if "judging" in first.payload and first.payload["judging"] != words:
        yield "the protocol was registered with another claim of judges"
    for name in ("rule", "accuracy", "kappa", "no_finding"):
        if name in first.payload and first.payload[name] != str(content.get(name)):
            yield f"the protocol was registered with another {name}"


def _commit_problems(
    entries: Sequence[LedgerEntry], facts: AnyFacts, files: Mapping[str, bytes]
) -> Iterator[str]:
    """Compare what was committed with what is released, and with the history told."""
    commits = {
        entry.subject: entry for entry in entries if entry.action == "draft_committed"
    }
    release = facts.release
    commit = commits.get(release.ref)
    if commit is None or commit.payload.get("digest") != release.digest:
        yield f"{release.ref} was not committed with this digest"
    recorded = commit.payload.get("files", {}) if commit else {}
    for name in PROMPT:
        raw = files.get(f"prompt/{name}", b"")
        if name in recorded and recorded[name] != digest_bytes(raw):
            yield f"prompt/{name} is not the file that was committed"
    for past in facts.history:
        entry = commits.get(past.ref)
        if entry and entry.payload.get("digest") != past.digest:
            yield f"{shown(past.ref)} was committed with another digest"
        recorded_roles = read_verdict_roles(entry.payload) if entry else {}
        if past.verdict_roles and past.verdict_roles != recorded_roles:
            yield (
                f"the roles of those who gave the verdicts of {shown(past.ref)} are "
                "not those in the ledger"
            )


def _evaluation_problems(
    entries: Sequence[LedgerEntry], facts: ReleaseFacts
) -> Iterator[str]:
    """Compare each evaluation with the gate the ledger recorded for its run."""
    for one in facts.evaluations:
        gates = [
            entry.payload
            for entry in entries
            if entry.action == "gate_decided" and entry.payload.get("run") == one.run
        ]
        where = f"the evaluation on {shown(one.cohort)}"
        if not gates:
            yield f"{where} is not in the ledger"
        elif not any(
            gate.get("counts_digest") == one.counts_digest
            and gate.get("verdict") == one.verdict
            for gate in gates
        ):
            yield f"{where} has other counts or another verdict in the ledger"
        elif not _left_out_as_recorded(entries, facts, one):
            yield f"{where} leaves out other labels than its cohort was imported with"


def _judge_problems(
    entries: Sequence[LedgerEntry], facts: JudgeReleaseFacts
) -> Iterator[str]:
    """Compare each evaluation of a judge with what the ledger recorded of its run."""
    ratings = {one.name: one.ratings_digest for one in facts.cohorts}
    for one in facts.evaluations:
        recorded = [
            entry.payload
            for entry in entries
            if entry.action == "judge_evaluated" and entry.payload.get("run") == one.run
        ]
        where = f"the evaluation on {shown(one.cohort)}"
        if not recorded:
            yield f"{where} is not in the ledger"
            continue
        wanted = {
            "cohort": one.cohort,
            "ratings_digest": ratings.get(one.cohort),
            "rows_digest": one.rows_digest,
            "counts_digest": one.counts_digest,
            "score": facts.score.name,
            "verdict": one.verdict.value,
        }
        if not any(wanted.items() <= payload.items() for payload in recorded):
            yield f"{where} has other rows, counts or another verdict in the ledger"
    fitted = {
        (entry.payload.get("name"), entry.payload.get("number")): entry
        for entry in list_recorded(entries)
    }
    for told in facts.ensembles:
        name, _, number = told.ref.partition("@v")
        entry = fitted.get((name, int(number) if number.isdecimal() else None))
        if entry is None or entry.payload.get("digest") != told.digest:
            yield f"the ensemble {shown(told.ref)} is not in the ledger"


def _left_out_as_recorded(
    entries: Sequence[LedgerEntry], facts: ReleaseFacts, evaluation: EvaluationFacts
) -> bool:
    """Whether what the reference cannot judge was recorded before its gate decided.

    A release that says nothing of it leaves no label out: an early one, or of a
    reference that can judge them all.
    """
    reasons = not_comparable_in(facts, evaluation)
    if not reasons:
        return True
    left_out = {one.label for one in evaluation.labels if not one.comparable}
    for at, entry in enumerate(entries):
        if entry.action != "gate_decided" or entry.payload.get("run") != evaluation.run:
            continue
        record = find_record(entries[:at], evaluation.cohort)
        labels = entry.payload.get("labels")
        verdicts = labels if isinstance(labels, Mapping) else {}
        judged = {
            label
            for label, verdict in verdicts.items()
            if verdict != GateVerdict.NOT_COMPARABLE
        }
        if record and record.gave_reasons(reasons) and judged.isdisjoint(left_out):
            return True
    return False


def _opening_problems(entries: Sequence[LedgerEntry], facts: AnyFacts) -> Iterator[str]:
    """Compare the openings listed with those of the holdouts in the ledger."""
    told = ("number", "budget", "prompt")
    recorded = [
        {
            **{name: entry.payload.get(name) for name in told},
            "time": entry.time,
            "actor": entry.actor,
            "why": entry.reason,
        }
        for cohort in facts.cohorts
        if cohort.role == "holdout"
        for entry in list_openings(tuple(entries), cohort.name, cohort.digest)
    ]
    listed = [one.model_dump() for one in facts.openings]
    if recorded != listed:
        yield (
            "the openings of the holdout are not those of the ledger "
            f"({len(listed)} listed, {len(recorded)} recorded)"
        )


_OF_FACTS = ("agreement", "prompt", "rendered", "ledger", "history", "numbers")
"""Checks that need a readable ``release.json``; so does that of the table."""


class Verification(NamedTuple):
    """What was checked of a release folder, and how it came out."""

    findings: tuple[Finding, ...]
    approvals: tuple[Approval, ...]
    """As listed; trust only those whose finding holds."""

    statement: Statement | None
    facts: AnyFacts | None
    """Content of ``release.json``; None when it cannot be read."""

    files: Mapping[str, bytes]
    """The files that were checked, as they were when they were read."""

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return bool(self.findings) and all(one.holds for one in self.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The findings that do not hold."""
        return tuple(one for one in self.findings if not one.holds)


def verify_folder(
    folder: Path, trusted: Mapping[str, PublicKey], *, expect: str | None = None
) -> Verification:
    """Return every check of a release folder; needs no workspace and no network.

    A check that fails does not keep the others from being made.

    Parameters
    ----------
    trusted
        Key id to public key: who the reader believes. Without one that signed, all
        else is checked and nothing vouches for it.
    expect
        Name of the release that the folder must hold, whatever the folder is called.
        Without it a folder that is called like a release must hold that release.

    Raises
    ------
    DataError
        `folder` is not a folder.
    """
    found = verify_contents(read_contents(folder), trusted)
    name = check_name(found.facts, expect, folder.resolve().name)
    return found._replace(findings=(*found.findings, name))


def check_name(facts: AnyFacts | None, expect: str | None, folder: str) -> Finding:
    """Return whether the release is the one that the reader asked for.

    A genuine release in the folder of another would else hold.

    Parameters
    ----------
    folder
        What the folder is called; held against the name only without `expect`.
    """
    if facts is None:
        return broken("name", "not checked: release.json cannot be read")
    name = shown(facts.release.name)
    if expect is not None:
        return join_problems(
            "name",
            []
            if expect == facts.release.name
            else [f"it is {name}, not the {expect} expected"],
            f"it is {name}, as expected",
        )
    # Some file systems take a folder by its name in other letters, too.
    if RELEASE_NAME.fullmatch(folder.lower()) is None:
        return ok("name", f"it is {name}; the folder is called otherwise")
    problem = (
        f"it is {name}, in a folder called {folder}. Ask whoever gave it to you for "
        f"{folder}; if it is {name} that you want, say --expect {name}"
    )
    return join_problems(
        "name",
        [] if folder.lower() == facts.release.name else [problem],
        f"it is {name}, as its folder is called",
    )


def verify_contents(
    contents: Contents, trusted: Mapping[str, PublicKey]
) -> Verification:
    """Return every check of the files of a release; see `verify_folder`."""
    files = contents.files
    names = join_problems(
        "names", list(contents.problems), f"{len(files)} files, no other"
    )
    signed, findings = read_signed(files)
    findings = [
        names,
        *findings,
        *check_signatures(signed, trusted),
        check_files(signed.statement, files),
    ]
    facts, more = _check_content(
        files,
        signed.statement,
        trusted,
        vouched=all(one.holds for one in findings),
    )
    return Verification(
        findings=(*findings, *more),
        approvals=signed.statement.approvals if signed.statement else (),
        statement=signed.statement,
        facts=facts,
        files=files,
    )


def _check_content(
    files: Mapping[str, bytes],
    statement: Statement | None,
    trusted: Mapping[str, PublicKey],
    *,
    vouched: bool,
) -> tuple[AnyFacts | None, tuple[Finding, ...]]:
    """Return the facts and every check that rests on them."""
    try:
        facts = parse_facts(files.get(FACTS, b""))
    except DataError as error:
        unsure = "not checked: release.json cannot be read"
        table = ROWS if ROWS in files else TABLE
        rest = (broken(check, unsure) for check in (*_OF_FACTS, table))
        return None, (broken(FACTS, str(error)), *rest)
    return facts, (
        check_facts(facts),
        check_agreement(statement, facts),
        *check_prompt(files, facts, vouched=vouched),
        *check_chain(files, facts, trusted),
        *_check_evidence(files, facts),
    )


def _check_evidence(files: Mapping[str, bytes], facts: AnyFacts) -> tuple[Finding, ...]:
    """Return whether numbers, claim and table follow from what is shipped."""
    if isinstance(facts, JudgeReleaseFacts):
        rows = files.get(ROWS)
        return (
            *check_judge_numbers(facts, rows),
            check_judge_claim(facts),
            check_rows(rows, facts),
            *check_ensembles(files, facts),
        )
    return (
        *check_numbers(facts),
        check_claim(facts),
        check_table(files.get(TABLE), facts),
    )
