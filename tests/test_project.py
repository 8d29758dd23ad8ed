"""The promises the project makes about itself."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import loop
from loop.cli.main import app

PACKAGE = Path(loop.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
README = Path(__file__).parents[1] / "README.md"
COMMANDS = sorted(typer.main.get_command(app).commands)


def test_every_module_says_what_it_is_for():
    """Each module opens with a sentence."""
    silent = [
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert silent == []


def test_help_imports_nothing_heavy():
    """`ranloop --help` must answer at once."""
    heavy = ("numpy", "pandas", "scipy", "statsmodels", "jinja2", "pydantic", "sqlite3")
    code = (
        f"import sys, loop.cli.main; print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_help_and_is_in_the_readme(name):
    """A verb that nobody can find does not exist."""
    command = typer.main.get_command(app).commands[name]
    assert command.help
    assert re.search(rf"ranloop {name}\b", README.read_text("utf-8"))
