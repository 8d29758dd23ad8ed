"""What every command prints: plain text, whatever it is given."""

import io
import platform
import re
import subprocess
import sys
from contextlib import contextmanager
from threading import Event

import pandas
import pytest
import typer
from typer.testing import CliRunner

from loop.cli import console, export, freeze
from loop.cli.console import ProgressBar, note, print_table, reported_errors, say
from loop.cli.main import app
from loop.core.errors import DataError
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
    """Yield the words that ask what is in a group of verbs, with its verbs."""
    if hasattr(command, "commands"):
        words = [*path, *(["--help"] if command.invoke_without_command else [])]
        verbs = {name for name, one in command.commands.items() if not one.hidden}
        yield pytest.param(words, verbs, id=" ".join(path))
        for name, sub in command.commands.items():
            yield from groups(sub, (*path, name))


GROUPS = [*groups(typer.main.get_command(app))]


@pytest.mark.parametrize(("words", "verbs"), GROUPS)
def test_a_group_without_a_verb_lists_its_verbs(words, verbs):
    """Who does not know them asks like this; where that lists things, with --help."""
    told = CliRunner().invoke(app, words).output
    assert verbs <= {line.split()[0] for line in told.splitlines() if line[:2] == "  "}


def wait_for_lines(monkeypatch, count):
    """Return what waits until so many lines of progress were written, and the lines."""
    told, enough = [], Event()

    def note(line):
        told.append(line)
        if len(told) >= count:
            enough.set()

    monkeypatch.setattr(console, "note", note)
    return enough, told


def test_progress_tells_what_is_done_how_much_of_it_and_for_how_long(monkeypatch):
    """Where there is no terminal: a line now and then, and no row is lost."""
    enough, told = wait_for_lines(monkeypatch, 2)
    bar = ProgressBar("reading", total=1200, after_s=0, every_s=0.001)

    def rows():
        yield "a"
        assert enough.wait(60)
        yield "b"

    assert list(bar.track(rows())) == ["a", "b"]
    assert all(re.fullmatch(r"reading: [012] of 1,200, \d+ s", one) for one in told)


def test_work_without_rows_is_told_too_and_a_part_under_its_own_name(monkeypatch):
    """As a bootstrap is: one call that says nothing while it computes."""
    enough, told = wait_for_lines(monkeypatch, 1)
    bar = ProgressBar("agreement dev", after_s=0, every_s=0.001)
    with bar.shown():
        assert enough.wait(60)
        enough.clear()
        told.clear()
        for _ in bar.part("texts", 3)([1]):
            while not any(line.startswith("texts: 0 of 3") for line in list(told)):
                assert enough.wait(60)
        assert bar.label == "agreement dev"


@pytest.mark.parametrize("how", [{"quiet": True, "after_s": 0}, {}])
def test_progress_of_what_is_quiet_or_soon_over_is_not_shown(monkeypatch, how):
    """With --json nothing at all; and no flicker for a command that is done at once."""
    _, told = wait_for_lines(monkeypatch, 1)
    monkeypatch.setattr(ProgressBar, "_bar", lambda *_: told.append("bar"))
    assert list(ProgressBar("reading", **how).track("ab")) == ["a", "b"]
    assert told == []


def test_a_bar_makes_room_for_lines_and_is_gone_at_the_end(monkeypatch):
    """A line that is printed meanwhile is whole, and the cursor is shown again."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(console, "_REDRAW_S", 0.001)
    with ProgressBar("audit", after_s=0).shown():
        while "audit" not in screen.getvalue():
            pass
        note("a line that stays")
    shown = screen.getvalue()
    assert re.search(r"(?:^|[\r\n]|\x1b\[2K)a line that stays\n", shown)
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") > 0
    assert shown.rindex("\x1b[2K") > shown.rindex("audit")


def test_an_error_ends_what_was_shown(monkeypatch, capsys):
    """What counts rows is not closed when a reader of them fails: nothing draws on."""
    enough, _ = wait_for_lines(monkeypatch, 1)
    rows = ProgressBar("reading", after_s=0, every_s=0.001).track("ab")
    with pytest.raises(SystemExit), reported_errors():
        next(rows)
        assert enough.wait(60)
        raise DataError("row 1 is wrong.")
    assert all(over.is_set() for over in console._AT_WORK)
    rows.close()
    assert not console._AT_WORK


@pytest.mark.parametrize(
    "words",
    [
        "evaluate", "compare a b", "failures", "plan -c dev", "agreement dev",
        "audit", "verify extractor-v1", "history extractor", "cohort check",
        "cohort votes dev FILE", "cohort import FILE -n dev",
        "cohort import FILE -n dev --dry-run", "matrix extractor@v1 -c dev -e rules",
        "score --pairs FILE", "meta-eval FILE --ratings FILE", "labels --out OUT.csv",
        "run extractor@v1 -c dev", "run extractor@v1 -c dev --dry-run",
        "freeze extractor -c dev --holdout h --why x",
        "export extractor@v1 --to jinja --out OUT",
        "backup OUT --passphrase-stdin",
        "restore FILE OUT --passphrase-stdin",
    ],
)  # fmt: skip
def test_what_may_take_long_shows_progress(monkeypatch, tmp_path, words):
    """All of them take more than two seconds on large cohorts or long histories."""
    shown = []

    @contextmanager
    def record(bar):
        shown.append(bar.label)
        yield

    monkeypatch.setattr(ProgressBar, "shown", record)
    monkeypatch.setattr(freeze, "_signing", lambda *_: [])
    monkeypatch.setattr(export, "find_origin", lambda *_: None)
    place = tmp_path / "own"
    (place / "prompts").mkdir(parents=True)
    (place / "labels").mkdir()
    monkeypatch.chdir(place)
    names = {"FILE": tmp_path / "in", "OUT": tmp_path / "out"}
    names["OUT.csv"] = tmp_path / "out.csv"
    asked = [str(names.get(word, word)) for word in words.split()]
    CliRunner().invoke(app, asked, input="a long passphrase\n")
    assert shown
