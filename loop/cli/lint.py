"""The verb ``lint``: what is wrong with a prompt version before it is run."""

from __future__ import annotations

from typing import Annotated

import typer

from loop.cli.check import show_lint
from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    open_workspace,
    print_json,
    say,
)
from loop.core.paths import Workspace
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import find_parent, read_version
from loop.prompts.lint import has_errors, lint_data, lint_version
from loop.prompts.version import PromptVersion
from loop.review.revise.draft import comparable_parent


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("lint")(lint)


def lint(
    prompt: Annotated[
        str, typer.Argument(help="Prompt version or draft, e.g. extractor@draft.")
    ],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a prompt version or a draft for mistakes.

    Exits with 1 if there are errors.
    """
    place = open_workspace(workspace)
    version = read_version(place, prompt)
    taxonomy = read_taxonomy(place.labels)
    found = lint_version(
        version,
        labels=taxonomy.extracted,
        meanings={label.id: label for label in taxonomy.labels},
        reading=taxonomy.reading,
        parent=_parent(place, version),
    )
    if as_json:
        findings = lint_data(found)
        print_json({"prompt": version.ref, "findings": findings})
    else:
        show_lint(found)
        say(f"{version.ref}: {len(found)} findings" if found else f"{version.ref}: ok")
    if has_errors(found):
        raise typer.Exit(1)


def _parent(place: Workspace, version: PromptVersion) -> PromptVersion | None:
    parent = find_parent(place, version)
    return parent and comparable_parent(parent, version)
