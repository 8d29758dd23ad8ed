"""The verbs ``prompt ...``: begin a prompt, read what it says, edit it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import click
import typer

from loop.cli.check import show_lint
from loop.cli.console import (
    ActorOption,
    JsonOption,
    WorkspaceOption,
    acting,
    find_place,
    note,
    open_workspace,
    print_json,
    say,
)
from loop.core.digests import digest_text
from loop.core.errors import DataError, LoopError
from loop.core.files import read_text, write_atomic
from loop.core.ledger import Actor
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths, material
from loop.core.records import PromptTask
from loop.core.safe_text import quoted
from loop.judge.shots import request_shots
from loop.labels.label_list import pick_listed
from loop.labels.shot_pool import SYNTHETIC
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import read_known, read_version
from loop.prompts.guides import dump_guides
from loop.prompts.instructions import (
    edit_instructions,
    instructions_text,
    version_facts,
    version_text,
)
from loop.prompts.lint import lint_data
from loop.prompts.shot_records import ShotScore
from loop.prompts.version import PromptVersion
from loop.review.blame import LineOrigin, group_origins, name_origin
from loop.review.prompt_page import (
    PromptPage,
    PromptTokens,
    TokenShare,
    open_prompt_page,
)
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.commit import discard_draft
from loop.review.revise.draft import Drafted, render_shown
from loop.review.revise.edit import (
    GuideEdit,
    SettingsEdit,
    edit_draft,
    find_guide_text,
    parse_guide_text,
)
from loop.review.start import SHIPPED_PROMPT, FirstVersion, JudgeOutline, new_prompt
from loop.run.store import open_store
from loop.run.task_fields import task_of

prompt = typer.Typer(
    name="prompt", no_args_is_help=True, help="Begin, read and edit prompts."
)


def register(app: typer.Typer) -> None:
    """Add the verbs to `app`."""
    app.add_typer(prompt)


@prompt.command("new")
def new(
    name: Annotated[str, typer.Argument(help="Name of the new prompt.")],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="Version to begin with, of the workspace or else shipped, for "
            "example extractor@v11.",
        ),
    ] = "",
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="Ask only for the labels that this .csv, .xlsx or .yaml lists.",
        ),
    ] = None,
    contract: Annotated[
        str,
        typer.Option(
            "--contract",
            help="Begin a judge of pairs of reports that is answered in this contract, "
            "for example green_sections.",
        ),
    ] = "",
    reads: Annotated[
        str,
        typer.Option(
            "--reads",
            help="With --contract: extractor by which `rules` finds what texts say.",
        ),
    ] = SHIPPED_PROMPT,
    shots: Annotated[
        str,
        typer.Option(
            "--shots", help="Examples that a judge shows, as for `prompt shots`."
        ),
    ] = "",
    pool: Annotated[
        str, typer.Option("--pool", help="With --shots: cohort to choose them from.")
    ] = SYNTHETIC,
    why: Annotated[str, typer.Option("--why", help="Reason, in your words.")] = "",
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the first version of another prompt, by default from the taxonomy.

    With --contract it is a judge, made from the categories of labels/errors.yaml.
    """
    if pool != SYNTHETIC and not shots:
        raise DataError("--pool is for --shots. Give both.")
    if source and contract:
        raise DataError(
            "a version that is named with --from brings its contract. Leave one out."
        )
    examples = request_shots(shots, pool) if shots else None
    place = open_workspace(workspace)
    taxonomy = read_taxonomy(place.labels)
    made = new_prompt(
        place,
        name,
        acting(actor),
        source=source,
        labels=pick_listed(labels, taxonomy) if labels else (),
        judge=JudgeOutline(contract, reads, examples) if contract or shots else None,
        why=why,
    )
    if as_json:
        print_json(first_data(made))
        return
    say_first(made)
    say(f"Next: ranloop run {name} --cohort NAME")


@prompt.command("show")
def show(
    ref: Annotated[
        str, typer.Argument(help="Version or draft, e.g. extractor or extractor@v1.")
    ],
    rendered: Annotated[
        bool, typer.Option("--rendered", help="Print the messages a model receives.")
    ] = False,
    changes: Annotated[
        bool, typer.Option("--changes", help="The same, marked against the parent's.")
    ] = False,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Count tokens by section and by label.")
    ] = False,
    blame: Annotated[
        bool,
        typer.Option(
            "--blame", help="Who each line is from: version, person, verdict."
        ),
    ] = False,
    label: Annotated[
        str, typer.Option("--label", "-l", help="With --blame: only this label, by id.")
    ] = "",
    engine: Annotated[
        str, typer.Option("--engine", "-e", help="Engine whose tokens are counted.")
    ] = "rules",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a prompt version says: its instructions, its guides, its contract."""
    from loop.cli.draft import say_prompt, shown_data

    if rendered + changes + tokens + blame > 1:
        raise DataError(
            "--rendered, --changes, --tokens and --blame each show something else. "
            "Give one of them."
        )
    if label and not blame:
        raise DataError("--label is for --blame. Give both.")
    place = material(find_place(workspace))
    if changes or tokens or blame:
        page = open_prompt_page(place, ref, engine)
        shows = "changes" if changes else "tokens" if tokens else "blame"
        _require_told(page, shows)
        if as_json:
            print_json(page_data(page, shows, label))
        else:
            _print_page(page, shows, label)
        return
    version = read_known(place, ref).version
    if rendered:
        shown = render_shown(version)
        if as_json:
            print_json(shown_data(shown))
        else:
            say_prompt(shown)
        return
    if as_json:
        print_json(version_data(version))
        return
    say(version_text(version))


@prompt.command("edit")
def edit(
    ref: Annotated[
        str, typer.Argument(help="Prompt or draft, e.g. extractor or extractor@draft.")
    ],
    label: Annotated[
        str,
        typer.Option(
            "--label", help="Edit the guide of this label; default: the instructions."
        ),
    ] = "",
    cohort: Annotated[
        str, typer.Option("--cohort", "-c", help="Dev cohort of a new draft.")
    ] = "",
    why: Annotated[str, typer.Option("--why", help="Reason, in your words.")] = "",
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the instructions, or the guide of a label, in your editor, as a draft.

    The editor is $EDITOR. A label without a guide begins with a template. What cannot
    be read as a guide or a template is kept in a file, and nothing else is changed.
    """
    from loop.cli.draft import print_drafted

    place, who = open_workspace(workspace), acting(actor)
    version = read_version(place, ref)
    before = (
        find_guide_text(place, version, label) if label else instructions_text(version)
    )
    suffix = "yaml" if label else "txt"
    mine = f"{version.name}-{label}-{digest_text(who.name)[:8]}.{suffix}"
    path = place.open_private() / "editing" / mine
    after = _edited(path, before)
    if after == before:
        path.unlink(missing_ok=True)
        raise DataError("the text is as it was, so there is nothing to save.")
    try:
        if version.draft:
            made = _save(place, version, who, label, after, seen=before)
        else:
            _check(version, label, after)
            request = DraftRequest(prompt=ref, cohort=cohort, why=why)
            with open_store(place) as store:
                begun = begin_draft(place, store, request, who).draft
            try:
                made = _save(place, begun, who, label, after, seen="")
            except LoopError:
                discard_draft(place, begun.ref, who, "could not be edited")
                raise
    except LoopError as error:
        raise type(error)(
            f"{error}\nYour text is in {path}. Give the command again: it opens "
            "that text."
        ) from error
    path.unlink(missing_ok=True)
    print_drafted(made, as_json=as_json)


@prompt.command("shots")
def shots(
    ref: Annotated[
        str, typer.Argument(help="Judge or draft, e.g. green or green@draft.")
    ],
    kind: Annotated[
        str,
        typer.Argument(
            help="random:N, per_error, injected:N or assessed:N; none to show none."
        ),
    ],
    pool: Annotated[
        str,
        typer.Option(
            "--pool", "-p", help="Cohort with the role shots to choose them from."
        ),
    ] = SYNTHETIC,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    score: Annotated[
        ShotScore | None,
        typer.Option(
            "--score",
            help="linear is 1 - 0.15 S, inverse 1/(1 + S), rating the raters' points.",
            show_default="rating where there is one, else linear",
        ),
    ] = None,
    cohort: Annotated[
        str, typer.Option("--cohort", "-c", help="Dev cohort of the draft.")
    ] = "",
    why: Annotated[str, typer.Option("--why", help="Reason, in your words.")] = "",
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose examples that a judge shows, as a draft.

    The version pins them by id and digest; their texts stay private. The draft is
    checked and committed as any other. For one call, see --shots of `ranloop judge`.
    """
    from loop.cli.draft import print_drafted

    place, who = open_workspace(workspace), acting(actor)
    request = DraftRequest(
        prompt=ref,
        cohort=cohort,
        shots=None if kind == "none" else request_shots(kind, pool, seed, score),
        drop_shots=kind == "none",
        why=why,
    )
    with open_store(place) as store:
        made = begin_draft(place, store, request, who)
    print_drafted(made, as_json=as_json)
    if not as_json:
        say(f"Next: ranloop draft check {made.draft.ref}")


def _check(version: PromptVersion, label: str, text: str) -> None:
    """Refuse what cannot be read, before a draft is begun."""
    if label:
        parse_guide_text(text, label)
    else:
        edit_instructions(version, text)


def _save(
    place: WorkspacePaths,
    draft: PromptVersion,
    who: Actor,
    label: str,
    text: str,
    *,
    seen: str,
) -> Drafted:
    """Return the draft with the guide of a label, or the instructions, as edited."""
    if not label:
        settings = SettingsEdit(instructions=text, seen=seen)
        return edit_draft(place, draft.ref, (), who, settings=settings)
    known = seen if draft.guide(label) else ""
    edit = GuideEdit(label=label, text=text, seen=known)
    return edit_draft(place, draft.ref, (edit,), who)


def _edited(path: Path, text: str) -> str:
    """Return what somebody makes of a text in their editor.

    A text of theirs that could not be saved is opened again.
    """
    if path.is_file():
        note(f"this is your text that could not be saved before: {path}")
    else:
        write_atomic(path, text, mode=0o600)
    try:
        click.edit(filename=str(path))
    except click.ClickException as error:
        raise DataError(
            f"{error.format_message()}. Name an editor in $EDITOR, or give a file to "
            "`ranloop draft edit`."
        ) from error
    return read_text(path)


def page_data(page: PromptPage, shows: str, label: str = "") -> dict[str, Any]:
    """Return one part of a prompt's page as JSON data.

    Parameters
    ----------
    shows
        ``"changes"``, ``"tokens"`` or ``"blame"``.
    label
        Only lines of this label; empty for all.
    """
    data: dict[str, Any] = {
        "prompt": page.version.ref,
        "parent": page.parent.ref if page.parent else None,
        "problems": list(page.problems),
    }
    if shows == "changes":
        return {**data, "gone": list(page.gone), "calls": _calls_data(page)}
    if shows == "tokens":
        return {**data, "tokens": page.tokens and _tokens_data(page.tokens)}
    return {**data, "lines": [*map(_line_data, _lines_of(page, label))]}


def _require_told(page: PromptPage, shows: str) -> None:
    """Refuse to print nothing, and note what else cannot be told."""
    parts = {"changes": page.calls, "tokens": page.tokens, "blame": page.lines}
    if not parts[shows]:
        raise DataError(" ".join(page.problems))
    for problem in page.problems:
        note(problem)


def _calls_data(page: PromptPage) -> list[dict[str, Any]]:
    return [
        {
            "name": call.name,
            "tokens": call.tokens,
            "changes": call.changes,
            "messages": [
                {
                    "role": one.role,
                    "lines": [
                        {"sign": line.sign, "text": line.text} for line in one.lines
                    ],
                }
                for one in call.messages
            ],
        }
        for call in page.calls
    ]


def _tokens_data(tokens: PromptTokens) -> dict[str, Any]:
    return {
        "total": tokens.total._asdict(),
        "labels": [one._asdict() for one in tokens.labels],
        "sections": [one._asdict() for one in tokens.sections],
        "exact": tokens.exact,
        "remark": tokens.remark,
    }


def _line_data(one: LineOrigin) -> dict[str, Any]:
    return {
        **one.line._asdict(),
        "version": one.version.ref,
        "author": one.version.author,
        "drafted_by": one.drafted_by or one.version.author,
        "time": one.version.time,
        "verdicts": [verdict._asdict() for verdict in one.verdicts],
        "unknown_verdicts": list(one.unknown),
    }


def _lines_of(page: PromptPage, label: str) -> Sequence[LineOrigin]:
    if label and page.version.guide(label) is None:
        raise DataError(
            f"{page.version.ref} has no guide for {quoted(label)}. Name one of "
            f"{', '.join(page.version.labels)}."
        )
    return [one for one in page.lines if label in ("", one.line.label)]


def _print_page(page: PromptPage, shows: str, label: str) -> None:
    against = "the first version"
    if page.version.parent:
        against = f"against {page.parent.ref}" if page.parent else "its parent is gone"
    say(f"{page.version.ref}, {against}")
    if shows == "tokens" and page.tokens:
        _print_tokens(page.tokens)
    elif shows == "changes":
        _print_changes(page)
    elif shows == "blame":
        _print_blame(_lines_of(page, label))


def _print_changes(page: PromptPage) -> None:
    for call in page.calls:
        say()
        say(f"# call {call.name}: {counted(call.changes, 'line')} changed")
        for message in call.messages:
            say(f"## {message.role}")
            for line in message.lines:
                say(f"{line.sign or ' '} {line.text}".rstrip())
    if page.gone:
        say()
        say(f"calls that are made no more: {', '.join(page.gone)}")


def _print_tokens(tokens: PromptTokens) -> None:
    say(f"tokens of all calls about one case, without the case; {tokens.remark}")
    for name, shares in (("section", tokens.sections), ("label", tokens.labels)):
        say()
        say(f"{name:<38} {'tokens':>8} {'parent':>8} {'change':>8}")
        for one in (*shares, tokens.total) if name == "section" else shares:
            tokens_of = "not told" if one.tokens is None else f"{one.tokens:,}"
            say(f"{one.part:<38} {tokens_of:>8} {_before(one)}".rstrip())
    say()
    say("Each is what the prompt would be shorter by without it.")


def _before(one: TokenShare) -> str:
    if one.before is None:
        return ""
    change = "" if one.tokens is None else f"{one.tokens - one.before:>+8,}"
    return f"{one.before:>8,} {change}"


def _print_blame(lines: Sequence[LineOrigin]) -> None:
    for label, groups in group_origins(lines).items():
        say()
        say(label or "instructions and settings")
        for group in groups:
            say(f"  {name_origin(group.origin)}")
            for line in group.lines:
                say(f"    {line.kind}: {line.text}")


def say_first(made: FirstVersion) -> None:
    """Print a first version, where it comes from, and what is to be looked at."""
    version = made.version
    say(f"{version.ref}: {version.why}")
    asked = "labels" if task_of(version) is PromptTask.EXTRACT else "categories"
    say(f"  {len(version.guides)} {asked}, contract {version.contract}")
    for one in version.reads:
        say(f"  reads {one.ref} ({one.digest[:12]})")
    if version.shots:
        say(f"  shows {version.shots.words}")
    show_lint(made.lint)


def first_data(made: FirstVersion) -> dict[str, Any]:
    """Return a first version as JSON data."""
    origin = made.origin
    return {
        "prompt": made.version.ref,
        "digest": made.version.digest,
        "labels": list(made.version.labels),
        "origin": origin
        and {
            "version": origin.ref,
            "digest": origin.digest,
            "shipped": origin.shipped,
            "release": origin.release,
        },
        "lint": lint_data(made.lint),
    }


def version_data(version: PromptVersion) -> dict[str, Any]:
    """Return what a version says as JSON data."""
    return {
        **version_facts(version),
        "verdicts": list(version.verdicts),
        "labels": list(version.labels),
        "instructions": instructions_text(version),
        "guides": dump_guides(version.guides),
    }
