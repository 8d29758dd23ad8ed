"""The verb ``verify``: does a release hold, and who vouches for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.console import (
    GATE_EXIT,
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    find_place,
    print_json,
    say,
)
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.paths import bundled, material
from loop.release.documents.card_sections import left_out_sentences
from loop.release.documents.parts import rate, told
from loop.release.folder import RELEASE_NAME, ROWS, shown
from loop.release.judge_facts import JudgeReleaseFacts
from loop.release.keys import PublicKey, read_public_key
from loop.release.load import find_holder, verify_release
from loop.release.release_json import AnyFacts
from loop.release.statement import ENVELOPE
from loop.release.verify import Verification, verify_folder


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("verify")(verify)


def verify(
    release: Annotated[
        str,
        typer.Argument(
            help="Release folder, or name of one of the workspace or one that ships "
            "with ranloop."
        ),
    ],
    key: Annotated[
        list[Path] | None,
        typer.Option(
            "--key", help="Public key file of somebody you trust; may be repeated."
        ),
    ] = None,
    keys: Annotated[
        Path | None, typer.Option("--keys", help="Folder of such files.")
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option("--expect", help="Name of the release that the folder must hold."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the signatures, digests and numbers of a release.

    The first line says which release it is. A folder is checked offline, with the keys
    that you give; one that is called like a release must hold that release, or the one
    that you expect. A name is looked up in the workspace, with the keys, the entry and
    any withdrawal in its ledger; one that it does not have is looked up among the
    releases that ship with ranloop, with the keys that ship. The exit code is 0 only
    if everything holds and somebody you trust signed it; otherwise 100.
    """
    if expect is not None and RELEASE_NAME.fullmatch(expect) is None:
        raise typer.BadParameter(
            f"--expect takes the name of a release, such as extractor-v7, not "
            f"{shown(expect)}"
        )
    trusted = _read_keys(key or [], keys)
    with ProgressBar(f"verify {release}", quiet=as_json).shown():
        place = None
        if _is_name(release):
            _check_named(release, trusted, expect)
            place = find_holder(material(find_place(workspace)), release)
            found = verify_release(place, release)
        else:
            found = verify_folder(Path(release), trusted, expect=expect)
    shipped = place is not None and place.root == bundled()
    if as_json:
        print_json({**_data(release, found), "shipped": shipped})
    else:
        _show(release, found)
        if shipped:
            say("  from     ranloop, by the keys that it ships")
    if not found.holds:
        raise typer.Exit(GATE_EXIT)


def _is_name(release: str) -> bool:
    """Whether `release` names one of the workspace: a folder comes first."""
    named = RELEASE_NAME.fullmatch(release) is not None
    return named and not Path(release).exists()


def _read_keys(files: list[Path], folder: Path | None) -> dict[str, PublicKey]:
    """Return the keys given, by id."""
    if folder is not None:
        if not folder.is_dir():
            raise DataError(f"{folder} is not a folder. Name one of public key files.")
        files = [*files, *sorted(folder.glob("*.json"))]
    return {one.keyid: one for one in map(read_public_key, files)}


def _check_named(name: str, trusted: dict[str, PublicKey], expect: str | None) -> None:
    """Refuse options that only the check of a folder has."""
    if expect not in (None, name):
        raise typer.BadParameter(
            f"you name {name} and expect {expect}; a name says already which release "
            "it must be"
        )
    if trusted:
        raise typer.BadParameter(
            "a name is checked with the keys that the workspace recorded; name the "
            "folder to check it with keys of your own"
        )


def _show(release: str, found: Verification) -> None:
    say(_identity(found))
    for one in found.findings:
        say(f"{'holds ' if one.holds else 'BROKEN'}  {one.check}: {one.what}")
    say()
    say(f"{release}: {_verdict(found)}")
    facts = found.facts
    if found.holds and facts is not None:
        for line in _remarks(facts):
            say(f"  {line}")


def _identity(found: Verification) -> str:
    """Return which release was verified: what it says, and is signed only if it holds.

    The digest is that of the signed file, which the ledger of its workspace names.
    """
    facts = found.facts
    if facts is None:
        return "release unknown: release.json cannot be read"
    release, statement = facts.release, digest_bytes(found.files.get(ENVELOPE, b""))
    says = "release" if found.holds else "says that it is release"
    return (
        f"{says} {shown(release.name)}: {shown(release.ref)}, frozen "
        f"{facts.frozen.time}, {ENVELOPE} sha256 {statement}"
    )


def _verdict(found: Verification) -> str:
    broken = len(found.broken)
    if not broken:
        return f"holds, {len(found.findings)} checks"
    if is_only_unvouched(found):
        return "not vouched for: all else holds, and no key that you trust signed it"
    are = "is" if broken == 1 else "are"
    return f"DOES NOT HOLD: {broken} of {len(found.findings)} checks {are} broken"


def is_only_unvouched(found: Verification) -> bool:
    """Whether nothing is wrong but that the reader trusts none of those who signed."""
    broken = {one.check.partition(" ")[0] for one in found.broken}
    return broken == {"vouched", "approval"}


def _remarks(facts: AnyFacts) -> list[str]:
    """Return what a reader must know of a release that holds."""
    release, claim = facts.release, facts.claim
    lines = [
        f"prompt   {release.ref}, digest {release.digest}",
        f"engine   {facts.engine.name}",
        f"claim    {claim.kind} on {claim.cohort}: {claim.verdict}",
    ]
    if isinstance(facts, JudgeReleaseFacts):
        lines.extend(_agreements(facts))
    else:
        lines.extend(left_out_sentences(facts))
    if facts.development_only:
        lines.append("DEVELOPMENT DATA ONLY: no holdout was evaluated")
    if facts.frozen.override:
        lines.append(f"OVERRIDE: {facts.frozen.override}")
    return lines


def _agreements(facts: JudgeReleaseFacts) -> list[str]:
    """Return what was found of a judge, and what of a holdout the folder holds."""
    lines = [
        f"tau-b    {told(one.cohort)}: {rate(one.agreement.tau_b)} on "
        f"{counted(one.agreement.n, 'pair')} of "
        f"{counted(one.agreement.units, one.unit)}"
        for one in facts.evaluations
    ]
    held = [one for one in facts.evaluations if one.role == "holdout"]
    lines.extend(
        f"rows     {counted(one.rows, 'row')} of unit, score and points of holdout "
        f"{told(one.cohort)} are in {ROWS}"
        for one in held
    )
    return lines


def _data(release: str, found: Verification) -> dict[str, Any]:
    facts = found.facts
    return {
        "release": release,
        "holds": found.holds,
        "not_vouched_for": is_only_unvouched(found),
        "findings": [
            {"check": one.check, "holds": one.holds, "detail": one.what}
            for one in found.findings
        ],
        "approvals": [one._asdict() for one in found.approvals],
        "name": facts and facts.release.name,
        "frozen": facts and facts.frozen.time,
        "statement_sha256": digest_bytes(found.files.get(ENVELOPE, b"")),
        "prompt": facts and facts.release.ref,
        "prompt_digest": facts and facts.release.digest,
        "claim": facts and facts.claim.verdict.value,
        "development_only": facts and facts.development_only,
        "override": facts and facts.frozen.override,
        "ledger": facts and {"head": facts.ledger.head, "seq": facts.ledger.seq},
    }
