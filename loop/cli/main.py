"""The command line: lists the verbs, defines none, loads the one that is asked for."""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from loop import __version__
from loop.cli.console import reported_errors, say

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "Run the whole loop on synthetic reports, without a model.",
        "init": "Make a workspace of your own, with a first prompt.",
        "doctor": "Check the workspace, its settings and the engines.",
    },
    "Data": {
        "cohort": "Import, check and list cohorts of cases.",
        "guideline": "Write the annotation guideline for readers.",
        "reading": "Read cases blind, publish the votes, settle disputes.",
        "agreement": "Measure how well readers agree, label by label.",
        "discover": "Find what reports assert and no label names.",
    },
    "Run and measure": {
        "serve": "Start a vLLM server and keep it running until Ctrl-C.",
        "run": "Ask an engine one prompt version over one cohort.",
        "jobs": "Start work that goes on by itself, watch and stop it.",
        "labels": "Write the labels of a run as a table, one row a case.",
        "annotate": "Read labels out of a whole corpus, into Parquet shards.",
        "evaluate": "Score a run against the reference and judge its gates.",
        "failures": "List the failing cases of a run.",
        "show": "Show what was asked about a case, and what came back.",
        "compare": "Compare two runs on the same cases.",
        "matrix": "Compare engines on one prompt version, or judges side by side.",
        "plan": "Compute how many cases each label needs to pass.",
    },
    "Review and revise": {
        "prompt": "Begin, read and edit prompts.",
        "review": "Open the workbench in a browser.",
        "sample": "Draw the cases whose reading is probably worth most.",
        "verdict": "Submit, list, withdraw and export clinicians' verdicts.",
        "try": "Try a draft on a case, pasted words, its pairs or a phrase.",
        "revise": "Build a draft from verdicts, check it and commit it.",
        "draft": "Revise a prompt in steps.",
        "optimize": "Search for a better wording, and draft what holds.",
        "history": "Show the versions of a prompt, their reasons and scores.",
        "diff": "Show what changed between two prompt versions.",
        "lint": "Check a prompt version or a draft for mistakes.",
        "alias": "Point an alias, such as production, at a version.",
    },
    "Release and audit": {
        "freeze": "Freeze a version as a signed release.",
        "verify": "Check the signatures, digests and numbers of a release.",
        "withdraw": "Withdraw a release, so that nothing loads it any more.",
        "export": "Write a prompt in a form that other systems load.",
        "audit": "Print the ledger and check everything it refers to.",
        "audit-tables": "Check the numbers of published tables.",
    },
    "Score": {
        "score": "Score generated reports: Ran Score and text metrics.",
        "judge": "Judge generated reports: errors by category and scores.",
        "inject": "Put known errors into reports, to test judges and metrics.",
        "dr": "Measure whether scores fall for errors, and only for errors.",
        "meta-eval": "Measure how well each metric agrees with experts.",
        "ensemble": "Make one score of several judges and metrics.",
    },
    "People and keys": {
        "user": "Manage who may sign in to the workbench.",
        "key": "Manage the keys that sign releases and ledger entries.",
    },
    "Upkeep": {
        "backup": "Write the whole workspace to one encrypted file.",
        "restore": "Make a workspace of a backup.",
        "clean": "Show what may go, and remove it with --yes.",
        "upgrade": "Take the labels, cues and crosswalks of the installed ranloop.",
    },
}
"""What ``ranloop --help`` shows; a verb's own help starts with the same sentence."""

_MODULES = {"restore": "backup", "try": "tryout", "withdraw": "freeze"}
"""Verbs that stand in the module of another one, or cannot name one in Python."""


class _Verbs(UserDict[str, Any]):
    """The commands by name; the module of a verb is imported when it is asked for."""

    def __init__(self) -> None:
        super().__init__({name: None for part in SECTIONS.values() for name in part})

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            module = _MODULES.get(name, name.replace("-", "_"))
            alone = typer.Typer(rich_markup_mode=None)
            import_module(f"loop.cli.{module}").register(alone)
            self.data.update(typer.main.get_group(alone).commands)
        return self.data[name]


class _VerbGroup(TyperGroup):
    """Verbs in sections, listed without importing any of them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Verbs()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the verbs that begin so, and options; no verb is imported for it."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super(TyperGroup, self).shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=text)
            for part in SECTIONS.values()
            for name, text in part.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{n:{width}}", verbs[n]) for n in verbs])


app = typer.Typer(
    name="ranloop",
    cls=_VerbGroup,
    help=(
        "Take a clinical prompt from first draft to a frozen release, "
        "with the clinician in the loop."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(context: typer.Context, wanted: bool) -> None:
    if not wanted:
        return
    say(f"ranloop {__version__}")
    if context.params["verbose"]:
        for what, value in _surroundings():
            say(f"  {what:<12} {value}")
    raise typer.Exit


def _surroundings() -> Iterator[tuple[str, str]]:
    """Yield what a report of a problem should say: what runs here, and from where."""
    import platform
    from importlib.metadata import version

    from loop.core.paths import bundled

    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "system", platform.platform()
    yield "package", str(Path(__file__).parents[1])
    yield "material", str(bundled())
    for package in ("dspy", "gradio", "pandas", "scikit-learn", "statsmodels"):
        yield package, version(package)


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, help="Show the version; with -v, more."
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", is_eager=True, hidden=True, help="With --version.")
    ] = False,
) -> None:
    """Take options that come before the verb."""
    if verbose:
        raise typer.BadParameter("-v says more with --version: ranloop --version -v")


def run() -> None:
    """Entry point of the ``ranloop`` command."""
    with reported_errors():
        app()
