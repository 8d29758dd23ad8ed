"""What every command prints: plain text, whatever it is given."""

import io
import platform
import subprocess
import sys

import pandas
import pytest
import typer
from typer.testing import CliRunner

from loop.cli.console import ProgressBar, print_table, reported_errors, say
from loop.cli.main import app
from loop.core.paths import bundled
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


def test_version_says_more_when_asked_to():
    """What a report of a problem should hold: interpreter, system, packages."""
    for arguments in (["--version", "-v"], ["-v", "--version"]):
        shown = CliRunner().invoke(app, arguments).output
        assert f"python       {platform.python_version()} " in shown
        assert f"pandas       {pandas.__version__}" in shown
    alone = CliRunner().invoke(app, ["-v", "history"])
    assert (alone.exit_code, "ranloop --version -v" in alone.output) == (2, True)


@pytest.mark.parametrize("words", ["ranloop a", "ranloop evaluate --ht"])
def test_a_shell_completes_verbs_and_options(words):
    """As the line that a shell sources asks for it."""
    asked = {"_RANLOOP_COMPLETE": "complete_bash", "COMP_WORDS": words}
    count = str(len(words.split()) - 1)
    found = CliRunner().invoke(
        app, prog_name="ranloop", env=asked | {"COMP_CWORD": count}
    )
    wanted = {"ranloop a": ["agreement", "alias", "audit", "audit-tables"]}
    assert found.output.split() == wanted.get(words, ["--html"])


def test_a_reader_who_stops_reading_is_no_error():
    """``| head`` ends neither the command nor its exit code."""
    command = [sys.executable, "-m", "loop", "history", "extractor"]
    command += ["-w", str(bundled())]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    running.stdout.close()
    assert (running.stderr.read(), running.wait()) == (b"", 0)
    running.stderr.close()


class Terminal(io.StringIO):
    """Something that is written to and says that it is a terminal."""

    def isatty(self):
        """Return that it is."""
        return True


HEADER = ["label", "what it means to a reader", "n"]
ROWS = [["Edema", "fluid in the interstitium or the alveoli", "12"]]


def test_a_table_fits_a_narrow_terminal(monkeypatch):
    """Broken between words, the widest column first; nothing is lost or cut."""
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "32")
    print_table(HEADER, ROWS)
    assert sys.stdout.getvalue().splitlines() == [
        "label  what it means to a      n",
        "       reader",
        "-----  ---------------------  --",
        "Edema  fluid in the           12",
        "       interstitium or the",
        "       alveoli",
    ]


def test_a_table_elsewhere_is_never_broken(monkeypatch, capsys):
    """A pipe, a file and a log take a row as one line."""
    monkeypatch.setenv("COLUMNS", "20")
    print_table(HEADER, ROWS)
    assert len(capsys.readouterr().out.splitlines()) == 3


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


def groups(command, path=()):
    """Yield the words of every group of verbs, with its verbs."""
    if hasattr(command, "commands"):
        yield pytest.param(path, set(command.commands), id=" ".join(path))
        for name, sub in command.commands.items():
            yield from groups(sub, (*path, name))


GROUPS = [*groups(typer.main.get_command(app))]


@pytest.mark.parametrize(("words", "verbs"), GROUPS)
def test_a_group_without_a_verb_lists_its_verbs(words, verbs):
    """Who does not know them asks like this."""
    told = CliRunner().invoke(app, words).output
    assert verbs <= {line.split()[0] for line in told.splitlines() if line[:2] == "  "}


@pytest.mark.parametrize(("quiet", "lines"), [(False, 2), (True, 0)])
def test_progress_goes_to_stderr_unless_it_is_quiet(capsys, quiet, lines):
    """A bar is drawn on a terminal only; no row is lost on the way."""
    bar = ProgressBar(
        "reading", total=2, every_s=0, **({"quiet": True} if quiet else {})
    )
    assert list(bar.track("ab")) == ["a", "b"]
    told = capsys.readouterr()
    assert (told.out, len(told.err.splitlines())) == ("", lines)
