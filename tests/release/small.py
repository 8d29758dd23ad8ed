"""A release of a tiny prompt, small enough to change every byte of."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loop.core.digests import digest_bytes, digest_json, digest_text
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.signing import key_id, public_of
from loop.core.yaml_files import check_model
from loop.prompts.catalog import file_digests, write_folder
from loop.release.documents.spreadsheet import evaluation_table
from loop.release.facts import FACTS, ReleaseFacts
from loop.release.keys import PublicKey, load_private, make_key
from loop.release.release_json import format_facts, predicate_of
from loop.release.released import frozen_payload
from loop.release.rendering import render_files
from loop.release.statement import ENVELOPE, Approval, sign_release
from loop.stats.paired import holm
from loop.stats.power import exact_p
from tests.release.small_numbers import COUNTS as COUNTS
from tests.release.small_numbers import ENGINE, PROTOCOL_DIGEST, cohort
from tests.release.small_numbers import PROTOCOL as PROTOCOL
from tests.release.small_numbers import VERSION as VERSION
from tests.release.small_numbers import evaluation as evaluation

NAME = "tiny-v1"

Person = tuple[Approval, Ed25519PrivateKey]


class Small(NamedTuple):
    """A release folder and who signed it."""

    folder: Path
    signers: tuple[Person, ...]
    trusted: Mapping[str, PublicKey]
    facts: Mapping[str, Any]


def at(hour: int) -> datetime:
    """Return a time on the day of the release."""
    return datetime(2026, 3, 1, hour, tzinfo=UTC)


def person(number: int, name: str, role: str, meaning: str) -> Person:
    """Return somebody who signs, with a key that is always the same."""
    private = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    keyid = key_id(public_of(private))
    return Approval(keyid, name, role, meaning, "2026-03-01T12:00:00Z"), private


AUTHOR = person(1, "A. Author", "author", "authorship")
APPROVER = person(2, "B. Approver", "approver", "approval")


def typed(facts: Mapping[str, Any] | ReleaseFacts) -> ReleaseFacts:
    """Return JSON data as the content of ``release.json``, or refuse it."""
    if isinstance(facts, ReleaseFacts):
        return facts
    return check_model(facts, ReleaseFacts, FACTS)


def public_key(one: Person) -> PublicKey:
    """Return the public key of somebody who signs."""
    approval, private = one
    return PublicKey(
        keyid=approval.keyid,
        name=approval.name,
        role=approval.role,
        public=public_of(private),
        created="2026-01-01T00:00:00Z",
    )


def make_small(
    folder: Path, signers: Sequence[Person] = (AUTHOR, APPROVER), **parts: Any
) -> Small:
    """Make the release as `folder`/tiny-v1, its ledger beside it.

    Parameters
    ----------
    **parts
        Parts of ``release.json`` to put in place of the honest ones.
    """
    ledger = folder / "ledger.jsonl"
    made = make_facts(folder / VERSION.name / VERSION.tag, ledger) | parts
    files = make_files(made, folder / VERSION.name / VERSION.tag, ledger)
    sign(folder / NAME, files, made, signers)
    trusted = {one[0].keyid: public_key(one) for one in signers}
    return Small(folder / NAME, tuple(signers), trusted, made)


def freeze_small(workspace: WorkspacePaths, **parts: Any) -> Small:
    """Make the release in a workspace, with keys of its own and its ledger entry.

    Parameters
    ----------
    **parts
        Parts of ``release.json`` to put in place of the honest ones.
    """
    keys = [
        make_key(workspace, name, role, Actor(name=name), now=lambda: at(8))
        for name, role in (("A. Author", "author"), ("B. Approver", "approver"))
    ]
    meanings = ("authorship", "approval")
    signers = tuple(
        (
            Approval(key.keyid, key.name, key.role, meaning, "2026-03-01T12:00:00Z"),
            load_private(workspace, key.keyid),
        )
        for key, meaning in zip(keys, meanings, strict=True)
    )
    version = workspace.prompts / VERSION.name / VERSION.tag
    facts = make_facts(version, workspace.ledger) | parts
    folder = workspace.releases / NAME
    sign(folder, make_files(facts, version, workspace.ledger), facts, signers)
    statement = digest_bytes((folder / ENVELOPE).read_bytes())
    event = Event(
        action="frozen",
        subject=VERSION.ref,
        reason="a small release",
        meaning="approval",
        payload=frozen_payload(typed(facts), statement),
    )
    append_event(workspace.ledger, event, Actor(name="B. Approver"), now=lambda: at(13))
    return Small(folder, signers, {key.keyid: key for key in keys}, facts)


def sign(
    folder: Path,
    files: Mapping[str, bytes],
    facts: Mapping[str, Any],
    signers: Sequence[Person],
) -> None:
    """Write the files of a release and the envelope over them."""
    envelope = sign_release(files, predicate_of(typed(facts)), signers)
    for name, raw in {**files, ENVELOPE: envelope}.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(raw)


def read_files(folder: Path) -> dict[str, bytes]:
    """Return every file of a release but its envelope, name to bytes."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    names = {path: path.relative_to(folder).as_posix() for path in found}
    return {name: path.read_bytes() for path, name in names.items() if name != ENVELOPE}


def make_files(
    facts: Mapping[str, Any], version: Path, ledger: Path
) -> dict[str, bytes]:
    """Return every file of the release but its envelope."""
    documents = ("card.md", "card.html", "mi-clear-llm.md", "tripod-llm.md")
    return {
        FACTS: format_facts(typed(facts)),
        "ledger.jsonl": ledger.read_bytes(),
        "evaluation.csv": evaluation_table(typed(facts)),
        **{f"prompt/{path.name}": path.read_bytes() for path in version.iterdir()},
        **render_files(VERSION),
        **{name: b"a document\n" for name in (*documents, "change-record.md")},
    }


def make_facts(version: Path, ledger: Path) -> dict[str, Any]:
    """Commit the version, record its evaluations, and return the facts of them."""
    write_folder(version, VERSION)
    evaluations = [evaluation("dev", "dev"), evaluation("locked", "holdout")]
    _record(version, ledger, evaluations)
    entries = read_ledger(ledger)
    opened = next(entry for entry in entries if entry.action == "holdout_opened")
    registered = next(entry for entry in entries if entry.action == "protocol_set")
    return {
        "format": "ranloop-release/1",
        "release": _release(),
        "frozen": {
            "time": "2026-03-01T12:00:00Z",
            "actor": "B. Approver",
            "role": "approver",
            "meaning": "approval",
            "why": "a small release",
            "objections": [],
            "override": "",
        },
        "engine": ENGINE | {"digest": digest_json(ENGINE)},
        "protocol": {
            "digest": PROTOCOL_DIGEST,
            "registered": registered.time,
            "late": False,
            "content": PROTOCOL.model_dump(mode="json"),
        },
        "cohorts": [cohort("dev", "dev"), cohort("locked", "holdout")],
        "evaluations": evaluations,
        "claim": _claim(evaluations[1]),
        "openings": [
            {
                "number": 1,
                "budget": 3,
                "time": opened.time,
                "actor": opened.actor,
                "why": opened.reason,
                "prompt": VERSION.ref,
            }
        ],
        "development_only": False,
        "separation": {"checked": [], "remarks": []},
        "change": {
            **dict.fromkeys(("previous", "from_ref", "diff_digest", "rollback"), ""),
            "classes": [],
            "labels": [],
            "improved": [],
            "unchanged": [],
            "worse": [],
        },
        "history": [],
        "compute": {
            "seconds": None,
            "tokens": None,
            "platform": "",
            "python": "",
            "packages": {},
        },
        "ledger": {"seq": entries[-1].seq, "head": entries[-1].hash},
        "tool": {"ranloop": "0.1"},
        **dict.fromkeys(("supersedes", "selection", "ceiling", "reading")),
    }


def _release() -> dict[str, Any]:
    return {
        "name": NAME,
        "prompt": VERSION.name,
        "version": VERSION.number,
        "ref": VERSION.ref,
        "digest": VERSION.digest,
        "parent": None,
        "parent_ref": "",
        "author": VERSION.author,
        "time": VERSION.time,
        "why": VERSION.why,
        "contract": "label_values/1",
        "plan": "joint",
        "labels": list(VERSION.labels),
        "languages": ["en"],
    }


def _claim(tested: Mapping[str, Any]) -> dict[str, Any]:
    p_values = [exact_p(one.correct, one.n, PROTOCOL.accuracy) for one in COUNTS]
    return {
        "kind": "all",
        "alpha": PROTOCOL.alpha,
        "verdict": tested["verdict"],
        "cohort": tested["cohort"],
        "labels": [
            {"label": label, "p": p, "p_holm": p_holm, "certified": False}
            for label, p, p_holm in zip(
                VERSION.labels, p_values, holm(p_values), strict=True
            )
        ],
    }


def _record(
    version: Path, ledger: Path, evaluations: Sequence[Mapping[str, Any]]
) -> None:
    """Write into the ledger what a real history would hold."""
    actor = Actor(name="A. Author")
    gates = [
        Event(
            action="gate_decided",
            subject=VERSION.ref,
            reason=f"run {one['run']}",
            payload={key: one[key] for key in ("run", "counts_digest", "verdict")},
        )
        for one in evaluations
    ]
    commit = {"digest": VERSION.digest, "files": file_digests(version)}
    opening = {
        "cohort": "locked",
        "cohort_digest": digest_text("locked"),
        "prompt": VERSION.ref,
        "number": 1,
        "budget": 3,
    }
    events = (
        Event(
            action="protocol_set",
            subject="labels/protocol.yaml",
            reason="first use",
            payload={"digest": PROTOCOL_DIGEST, "rule": PROTOCOL.rule},
        ),
        Event(
            action="draft_committed",
            subject=VERSION.ref,
            reason="first",
            payload=commit,
        ),
        gates[0],
        Event(
            action="holdout_opened",
            subject="locked",
            reason="a small release",
            payload=opening,
        ),
        gates[1],
    )
    for event in events:
        append_event(ledger, event, actor, now=lambda: at(9))
