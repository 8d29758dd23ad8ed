"""The verbs ``freeze`` and ``withdraw``: a release is made, or taken back."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from loop.cli.console import (
    GATE_EXIT,
    ActorOption,
    JsonOption,
    ProgressBar,
    RoleOption,
    ThinkingOption,
    UnconstrainedOption,
    WorkspaceOption,
    acting,
    note,
    open_workspace,
    print_json,
    say,
)
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.documents.templates import template_folder
from loop.engines.base import DEFAULT_THINKING
from loop.release.candidate import FreezeRequest
from loop.release.documents.documents import render_documents
from loop.release.facts import ClaimFacts
from loop.release.freeze import FreezeContext, Frozen, Signing
from loop.release.freeze import freeze as freeze_release
from loop.release.judge_facts import JudgeClaimFacts, JudgeReleaseFacts
from loop.release.keys import (
    PASSPHRASE,
    PublicKey,
    find_key,
    load_private,
    needs_passphrase,
)
from loop.release.released import withdraw_release
from loop.run.asking import EngineOptions
from loop.run.task import Task


def register(app: typer.Typer) -> None:
    """Add the verbs to `app`."""
    app.command("freeze")(freeze)
    app.command("withdraw")(withdraw)


def freeze(
    prompt: Annotated[
        str, typer.Argument(help="Committed version, e.g. extractor@v7.")
    ],
    cohort: Annotated[
        str, typer.Option("--cohort", "-c", help="Dev cohort it is measured on.")
    ],
    why: Annotated[str, typer.Option("--why", help="Reason, kept in the ledger.")],
    holdout: Annotated[
        str,
        typer.Option(
            "--holdout", help="Holdout to open; default: none, development data only."
        ),
    ] = "",
    engine: Annotated[
        str, typer.Option("--engine", "-e", help="Engine it is released with.")
    ] = "rules",
    ensemble: Annotated[
        list[str] | None,
        typer.Option(
            "--ensemble",
            help="Ensemble that a judge is a member of, to be released with it; may be "
            "repeated.",
        ),
    ] = None,
    thinking: ThinkingOption = "",
    allow_unconstrained: UnconstrainedOption = False,
    meaning: Annotated[
        str,
        typer.Option(
            "--meaning",
            help="What your signature means: authorship, review, approval or "
            "responsibility.",
        ),
    ] = "approval",
    sign: Annotated[
        list[str] | None,
        typer.Option(
            "--sign", help="Further signer, as NAME:MEANING; may be repeated."
        ),
    ] = None,
    override: Annotated[
        str,
        typer.Option(
            "--override",
            help="Release despite objections, for this reason; the card shows it.",
        ),
    ] = "",
    actor: ActorOption = None,
    role: RoleOption = "approver",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Freeze a version as a signed release.

    Measures the version on the dev cohort, lists objections, opens the holdout once,
    decides the claim of labels/protocol.yaml and writes reports/releases/NAME-vN with
    the evidence. You sign with your key (see `ranloop key new`).

    A judge is held against the raters of both cohorts, by the section judging of the
    protocol. Its release holds unit, score and mean points of each rated pair, without
    any case, so that `ranloop verify` can measure the agreement again. With --ensemble
    it also holds coefficients and rows of ensembles that the judge is a member of.

    Exits with 100 when a gate stopped it: nothing was released then.
    """
    if not why.strip():
        raise typer.BadParameter("--why needs a reason: the ledger records it")
    place = open_workspace(workspace)
    who = acting(actor, role)
    folder = template_folder(place)
    progress = ProgressBar(f"freeze {prompt}", quiet=as_json)
    desk = FreezeContext(
        workspace=place,
        actor=who,
        signing=_signing(place, [f"{who.name}:{meaning}", *(sign or [])]),
        render=lambda facts, approvals: render_documents(facts, approvals, folder),
        watching=lambda task: progress.part(_title(task), task.total),
    )
    request = FreezeRequest(
        prompt=prompt,
        cohort=cohort,
        holdout=holdout,
        engine=engine,
        asking=EngineOptions(
            thinking=thinking or DEFAULT_THINKING,
            allow_unconstrained=allow_unconstrained,
            tell=note,
        ),
        ensembles=tuple(ensemble or ()),
        why=why,
        meaning=meaning,
        override=override,
    )
    with progress.shown():
        found = freeze_release(desk, request)
    if as_json:
        print_json(_data(found))
    else:
        _show(found, holdout, overridden=bool(override.strip()))
    if found.folder is None:
        raise typer.Exit(GATE_EXIT)


def withdraw(
    release: Annotated[str, typer.Argument(help="Release, e.g. extractor-v7.")],
    why: Annotated[str, typer.Option("--why", help="Reason, kept in the ledger.")],
    actor: ActorOption = None,
    role: RoleOption = "approver",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Withdraw a release, so that nothing loads it any more.

    Its folder stays as it is.
    """
    place = open_workspace(workspace)
    entry = withdraw_release(place, release, acting(actor, role), why)
    if as_json:
        print_json({"release": release, "seq": entry.seq, "time": entry.time})
        return
    say(f"{release} is withdrawn: ledger entry {entry.seq}. Tell whoever has a copy.")


def _signing(place: WorkspacePaths, wanted: list[str]) -> list[Signing]:
    """Return the keys of everyone who signs, asking for a passphrase where needed."""
    found = []
    for one in wanted:
        name, _, meaning = one.rpartition(":")
        if not name:
            raise typer.BadParameter(f"--sign {one!r} is not NAME:MEANING")
        key = find_key(place, name)
        secret = _passphrase(place, key)
        private = load_private(place, key.keyid, secret)
        found.append(Signing(key=key, private=private, meaning=meaning))
    return found


def _passphrase(place: WorkspacePaths, key: PublicKey) -> str:
    """Return the passphrase of a protected key: from the environment, or asked for."""
    if not needs_passphrase(place, key.keyid) or PASSPHRASE in os.environ:
        return os.environ.get(PASSPHRASE, "")
    if not sys.stdin.isatty():
        raise DataError(
            f"the key of {key.name} has a passphrase, and there is no terminal to ask "
            f"for it. Set {PASSPHRASE}."
        )
    return str(typer.prompt(f"Passphrase of {key.name}", hide_input=True, err=True))


def _title(task: Task) -> str:
    """Return what a run of the freeze is called while it is shown."""
    return f"{task.spec.prompt} on {task.spec.cohort}"


def _claimed(claim: ClaimFacts | JudgeClaimFacts) -> str:
    """Return the verdict on a claim, and for how many labels one on some is shown."""
    if isinstance(claim, JudgeClaimFacts) or claim.kind == "all":
        return claim.verdict.value
    labels = claim.labels
    certified = sum(bool(one.certified) for one in labels)
    return f"{claim.verdict}, {certified} of {len(labels)} labels certified"


def _show(found: Frozen, holdout: str, *, overridden: bool) -> None:
    for objection in found.objections:
        say(f"objection: {objection}")
    claim = found.claim
    say(f"claim ({claim.kind}) on {claim.cohort}: {_claimed(claim)}")
    if found.folder is None or found.facts is None:
        say()
        if claim.cohort == holdout:
            say(
                f"{holdout} has been opened for {found.name}, and that counts. What it "
                "showed is kept: the same command does not open it again."
            )
        if overridden:
            say(
                f"{found.name} was not released yet: an override answers what is "
                "known, and what the holdout showed is news. Improve the version, or "
                "give the same command again: its reason then stays on the card."
            )
            return
        say(
            f"{found.name} was not released. Improve the version, or release it "
            "against this by the same command with --override REASON, which stays on "
            "its card."
        )
        return
    facts = found.facts
    for one in facts.openings:
        say(
            f"holdout opening {one.number} of {one.budget}: {one.time}, "
            f"{one.actor}, for {one.prompt}"
        )
    if isinstance(facts, JudgeReleaseFacts) and not facts.development_only:
        rows = facts.evaluations[-1].rows
        say(
            f"left the vault: {rows} rows of unit, score and points of {holdout}, "
            "without any case"
        )
    if facts.development_only:
        say("DEVELOPMENT DATA ONLY: no holdout was opened")
    if facts.frozen.override:
        say(f"override: {facts.frozen.override}")
    done = "completed" if found.completed else "released"
    say()
    say(f"{done} {facts.release.ref} as {found.name}: {found.folder}")
    say(f"check it anywhere: ranloop verify {found.folder} --key PUBLIC_KEY")


def _data(found: Frozen) -> dict[str, Any]:
    return {
        "release": found.name,
        "released": found.folder is not None,
        "folder": str(found.folder) if found.folder else None,
        "objections": list(found.objections),
        "claim": found.claim.model_dump(),
        "seq": found.entry.seq if found.entry else None,
        "completed": found.completed,
        "facts": found.facts.model_dump() if found.facts else None,
    }
