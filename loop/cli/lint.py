"""The verb ``lint``: what is wrong with a prompt version before it is run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from loop.cli.check import show_lint
from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.evaluate.exemplars import ExemplarCoverage, count_exemplars, lint_exemplars
from loop.prompts.catalog import find_parent, read_version
from loop.prompts.lint import has_errors, lint_data
from loop.prompts.version import PromptVersion
from loop.review.revise.draft import comparable_parent
from loop.run.task_fields import lint_prompt


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("lint")(lint)


def lint(
    prompt: Annotated[
        str, typer.Argument(help="Prompt version or draft, e.g. extractor@draft.")
    ],
    cohort: Annotated[
        str,
        typer.Option("--cohort", help="Show exemplars beside its positives and gates."),
    ] = "",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a prompt version or a draft for mistakes.

    Exits with 1 if there are errors.
    """
    place = open_workspace(workspace)
    version = read_version(place, prompt)
    found = lint_prompt(place, version, _parent(place, version))
    covered = count_exemplars(place, version, cohort) if cohort else ()
    found += lint_exemplars(covered, cohort)
    if as_json:
        data: dict[str, Any] = {"prompt": version.ref, "findings": lint_data(found)}
        if cohort:
            data["exemplars"] = [_coverage_data(one) for one in covered]
        print_json(data)
    else:
        if covered:
            _show_coverage(covered, cohort)
        show_lint(found)
        say(f"{version.ref}: {counted(len(found), 'finding') if found else 'ok'}")
    if has_errors(found):
        raise typer.Exit(1)


def _show_coverage(covered: tuple[ExemplarCoverage, ...], cohort: str) -> None:
    """Print the labels from the rarest to the most frequent one."""
    print_table(
        ("label", "present", "looks like it", "positives", "share", "gate lacks"),
        [
            (
                one.counted.label,
                str(one.present),
                str(one.alike),
                f"{one.counted.positives:,} of {one.counted.cases:,}",
                f"{100 * (one.counted.prevalence or 0):.1f} %",
                one.lacking,
            )
            for one in sorted(covered, key=lambda one: one.counted.positives)
        ],
        title=f"exemplars, and positives of {cohort}",
    )


def _coverage_data(one: ExemplarCoverage) -> dict[str, Any]:
    return {
        "label": one.counted.label,
        "present": one.present,
        "alike": one.alike,
        "positives": one.counted.positives,
        "cases": one.counted.cases,
        "gate_lacks": one.lacking,
    }


def _parent(place: WorkspacePaths, version: PromptVersion) -> PromptVersion | None:
    parent = find_parent(place, version)
    return parent and comparable_parent(parent, version)
