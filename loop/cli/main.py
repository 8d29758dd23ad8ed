"""The command line: assembles the verbs, defines none."""

from __future__ import annotations

from typing import Annotated

import typer

from loop.cli import (
    agreement,
    alias,
    audit,
    audit_tables,
    cohort,
    compare,
    demo,
    diff,
    doctor,
    draft,
    evaluate,
    export,
    failures,
    freeze,
    history,
    init,
    key,
    lint,
    matrix,
    meta_eval,
    plan,
    reading,
    review,
    revise,
    score,
    serve,
    user,
    verdict,
    verify,
)
from loop.cli import run as run_verb
from loop.cli.console import reported_errors, say

VERBS = (
    demo,
    init,
    cohort,
    agreement,
    reading,
    run_verb,
    evaluate,
    plan,
    compare,
    matrix,
    score,
    meta_eval,
    failures,
    verdict,
    review,
    revise,
    draft,
    history,
    diff,
    lint,
    alias,
    freeze,
    verify,
    export,
    audit,
    audit_tables,
    serve,
    user,
    key,
    doctor,
)
"""Modules of the verbs, in the order of their use."""

app = typer.Typer(
    name="ranloop",
    help=(
        "Take a clinical prompt from first draft to a frozen release, "
        "with the clinician in the loop."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from loop import __version__

        say(f"ranloop {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Take options that come before the verb."""


for verb in VERBS:
    verb.register(app)


def run() -> None:
    """Entry point of the ``ranloop`` command."""
    with reported_errors():
        app()
