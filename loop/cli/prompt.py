"""The verbs ``prompt ...``: begin a prompt, show one, edit one in an editor."""

from __future__ import annotations

from typing import Annotated

import click
import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    RoleOption,
    WorkspaceOption,
    acting,
    note,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.cli.draft import print_drafted, say_prompt, shown_data
from loop.core.errors import DataError, LoopError
from loop.core.files import write_atomic
from loop.core.paths import WorkspacePaths
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import list_prompts, list_versions, read_version
from loop.prompts.instructions import instructions_text
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.draft import find_engine_counter, render_shown
from loop.review.revise.edit import GuideEdit, SettingsEdit, edit_draft, guide_text
from loop.review.start import bring_prompt, guide_template, new_prompt
from loop.run.store import open_store

prompt = typer.Typer(
    name="prompt", no_args_is_help=True, help="Begin, show and edit prompts."
)

RefArgument = Annotated[
    str, typer.Argument(help="Version or draft, e.g. extractor or extractor@v3.")
]


def register(app: typer.Typer) -> None:
    """Add the verbs to `app`."""
    app.add_typer(prompt)


@prompt.command("new")
def new(
    name: Annotated[str, typer.Argument(help="Name of the new prompt.")],
    origin: Annotated[
        str,
        typer.Option(
            "--from", help="Take the wording of PROMPT@vN or shipped:PROMPT@vN."
        ),
    ] = "",
    labels: Annotated[
        str,
        typer.Option("--labels", help="Labels it asks for, by commas; default: all."),
    ] = "",
    why: Annotated[str, typer.Option("--why", help="Reason, for the ledger.")] = "",
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Begin a prompt: its version 1, from another version or for the taxonomy's labels.

    Without --from, guides and instructions are written from labels/taxonomy.yaml.
    """
    place, who = open_workspace(workspace), acting(actor, role)
    if origin and labels:
        raise typer.BadParameter("--from brings its own labels; leave --labels out")
    if origin:
        made = bring_prompt(place, name, origin, who, why=why)
    else:
        asked = [one.strip() for one in labels.split(",") if one.strip()]
        made = new_prompt(place, name, who, labels=asked, why=why)
    if as_json:
        print_json({"version": made.ref, "digest": made.digest})
        return
    say(f"committed {made.ref}: {len(made.labels)} labels, {made.why}")
    say(f"next: ranloop lint {name}")


@prompt.command("list")
def list_(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the prompts of the workspace."""
    place = open_workspace(workspace)
    found = [read_version(place, name) for name in list_prompts(place)]
    if as_json:
        print_json(
            {"prompts": [{"name": one.name, "latest": one.ref} for one in found]}
        )
        return
    print_table(
        ("prompt", "versions", "labels", "contract", "newest version, why"),
        [
            (
                one.name,
                str(len(list_versions(place, one.name))),
                str(len(one.labels)),
                one.contract,
                one.why,
            )
            for one in found
        ],
    )


@prompt.command("show")
def show(
    ref: RefArgument,
    label: Annotated[
        str, typer.Option("--label", help="Print one guide, or a template for one.")
    ] = "",
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Print both templates.")
    ] = False,
    rendered: Annotated[
        bool, typer.Option("--rendered", help="Print the messages a model receives.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a version or a draft says: instructions, guides, how it is answered."""
    place = open_workspace(workspace)
    version = read_version(place, ref)
    if rendered:
        shown = render_shown(version, find_engine_counter(place, "rules"))
        if as_json:
            print_json(shown_data(shown))
        else:
            say_prompt(shown)
        return
    if as_json:
        print_json(_data(version))
    elif label or instructions:
        text = _template(place, version, label)
        say(text.rstrip("\n"))
    else:
        _say_version(version)


def _data(version: PromptVersion) -> dict[str, object]:
    return {
        "version": version.ref,
        "digest": version.digest,
        "parent": version.parent,
        "author": version.author,
        "time": version.time,
        "why": version.why,
        "plan": str(version.plan),
        "contract": version.contract,
        "instructions": instructions_text(version),
        "guides": {guide.label: guide_text(guide) for guide in version.guides},
    }


def _say_version(version: PromptVersion) -> None:
    say(f"{version.ref}  {version.digest[:12]}  {version.time}  {version.author}")
    say(f"  {version.why}")
    calls = "one call a case" if version.plan == "joint" else "one call a label"
    say(f"  contract {version.contract}, {calls}, {len(version.guides)} labels")
    say()
    say(instructions_text(version).rstrip("\n"))
    for guide in version.guides:
        say()
        say(guide_text(guide).rstrip("\n"))


def _template(place: WorkspacePaths, version: PromptVersion, label: str) -> str:
    """Return the instructions, or a label's guide: a template where it has none."""
    if not label:
        return instructions_text(version)
    label = read_taxonomy(place.labels).find(label).id
    guide = version.guide(label)
    if guide is not None:
        return guide_text(guide)
    note(f"{version.ref} has no guide for {label}: this is a template for one")
    return guide_template(place, label)


@prompt.command("edit")
def edit(
    ref: RefArgument,
    cohort: Annotated[
        str, typer.Option("--cohort", "-c", help="Dev cohort to check it on.")
    ],
    label: Annotated[
        str, typer.Option("--label", help="Label whose guide is edited.")
    ] = "",
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Edit both templates.")
    ] = False,
    why: Annotated[str, typer.Option("--why", help="Reason, in your words.")] = "",
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Edit a guide or the instructions in $EDITOR; what is saved becomes a draft.

    A label without a guide begins with a template. A draft is edited in place; of a
    version, a draft is begun. Then: ranloop draft check, draft commit.
    """
    if bool(label) == instructions:
        raise typer.BadParameter("name either --label LABEL or --instructions")
    place, who = open_workspace(workspace), acting(actor, role)
    version = read_version(place, ref)
    before = _template(place, version, label)
    after = click.edit(before, extension=".yaml" if label else ".jinja")
    if after is None or after == before:
        say("nothing was changed")
        return
    seen = before if version.draft and (instructions or version.guide(label)) else ""
    try:
        if not version.draft:
            request = DraftRequest(prompt=ref, cohort=cohort, verdicts=(), why=why)
            with open_store(place) as store:
                version = begin_draft(place, store, request, who).draft
        if label:
            own = read_taxonomy(place.labels).find(label).id
            guide = GuideEdit(label=own, text=after, seen=seen)
            made = edit_draft(place, version.ref, (guide,), who)
        else:
            settings = SettingsEdit(instructions=after, seen=seen)
            made = edit_draft(place, version.ref, (), who, settings=settings)
    except LoopError as error:
        kept = place.open_private() / "unsaved-edit.txt"
        write_atomic(kept, after)
        raise DataError(f"{error}\nYour text is kept in {kept}.") from error
    print_drafted(made, as_json=as_json)
