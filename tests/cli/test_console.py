"""What every command prints: plain text, whatever it is given."""

import pytest
import typer
from typer.testing import CliRunner

from loop.cli.console import reported_errors, say
from loop.cli.main import app
from loop.core.safe_text import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\u202egnp.exe", "a\\u202egnp.exe"),
        ("a\x00b\x9bc", "a\\x00b\\x9bc"),
        ("a\tb\nc é 未", "a\tb\nc é 未"),
    ],
)
def test_text_cannot_take_over_a_terminal(text, shown):
    """Escape sequences and direction marks are spelled out."""
    assert printable(text) == shown


def test_say_prints_safely(capsys):
    """The one way to print is the safe one."""
    say("\x1b[2J")
    assert capsys.readouterr().out == "\\x1b[2J\n"


def test_version_is_printed():
    """Bug reports begin with it."""
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.startswith("ranloop ")


def test_an_interrupt_says_how_to_go_on(capsys):
    """Typer takes the exception away and says nothing."""
    single = typer.Typer()

    @single.command()
    def stopped():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended, reported_errors():
        single([])
    assert ended.value.code == 130
    assert "run the same command again" in capsys.readouterr().err


def test_another_exit_code_is_left_alone(capsys):
    """A failed gate is no interrupt."""
    with pytest.raises(SystemExit) as ended, reported_errors():
        raise SystemExit(100)
    assert (ended.value.code, capsys.readouterr().err) == (100, "")
