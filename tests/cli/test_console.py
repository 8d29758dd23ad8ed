"""What every command prints: plain text, whatever it is given."""

import io
import platform
import re
import subprocess
import sys
from contextlib import contextmanager
from itertools import pairwise
from threading import Event
from types import SimpleNamespace

import pandas
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from loop.cli import console, export, freeze
from loop.cli.console import (
    ProgressBar,
    _break,
    _fit,
    _width,
    note,
    print_json,
    print_table,
    read_secret,
    reported_errors,
    say,
    say_marked,
    say_wrapped,
)
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


@pytest.mark.parametrize(
    ("lead", "hang", "first", "indent"),
    [("note: ", None, 94, 6), ("", 2, 100, 2), ("", None, 100, 0)],
)
def test_a_sentence_takes_a_hundred_columns(capsys, lead, hang, first, indent):
    """Words stay whole, those with a hyphen, too; later lines are indented."""
    words = ["x" * (first - 4), "abc", "re-run", "y" * (100 - indent)]
    say_wrapped(lead, " ".join(words), hang=hang)
    assert capsys.readouterr().out.splitlines() == [
        f"{lead}{words[0]} abc",
        f"{' ' * indent}re-run",
        f"{' ' * indent}{words[3]}",
    ]


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
    wanted = {"ranloop a": ["agreement", "annotate", "alias", "audit", "audit-tables"]}
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
        while "audit" not in screen.getvalue().rpartition("stays")[2]:
            pass
    shown = screen.getvalue()
    assert re.search(r"(?:^|[\r\n]|\x1b\[2K)a line that stays\n", shown)
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") > 0
    assert shown.rindex("\x1b[2K") > shown.rindex("audit")


def test_the_end_of_a_text_stands_below_a_bar_and_does_nothing(monkeypatch):
    """From its first word on, however long until a bar would be there; and it goes."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(console, "_REDRAW_S", 0.001)
    bar = ProgressBar("asking", after_s=3600)
    with bar.shown():
        bar.below = "gone\n" * 50 + "\x1b[31m[red]left[/red]\n" + "word " * 20 + "base"
        while "base" not in screen.getvalue():
            pass
    shown = screen.getvalue()
    assert "\\x1b[31m[red]left[/red]" in shown and "\x1b[31m[red]" not in shown
    *_, drawn = (one for one in shown.split("asking") if "base" in one)
    frame, _, _ = drawn.partition("base")
    rows = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", frame).splitlines()[1:]
    assert len(rows) == 8 and max(map(len, rows)) <= 40
    assert shown.rindex("\x1b[2K") > shown.rindex("base")


def test_a_text_below_a_bar_is_shown_on_no_other_stream(monkeypatch):
    """It may be private: a log must not hold it."""
    enough, told = wait_for_lines(monkeypatch, 2)
    bar = ProgressBar("asking", after_s=0, every_s=0.001, below="Fluid")
    with bar.shown():
        assert enough.wait(60)
    assert all(line.startswith("asking, ") for line in told)


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
        "inject FILE --out OUT",
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
    origin = SimpleNamespace(version=None)
    monkeypatch.setattr(export, "find_origin", lambda *_: origin)
    place = tmp_path / "own"
    (place / "prompts").mkdir(parents=True)
    (place / "labels").mkdir()
    monkeypatch.chdir(place)
    names = {"FILE": tmp_path / "in", "OUT": tmp_path / "out"}
    names["OUT.csv"] = tmp_path / "out.csv"
    asked = [str(names.get(word, word)) for word in words.split()]
    CliRunner().invoke(app, asked, input="a long passphrase\n")
    assert shown


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=5),
    st.integers(1, 120),
)
def test_columns_become_no_narrower_than_they_must(sizes, room):
    """They fit if they can, and the widest give way first."""
    widths = [max(pair) for pair in sizes]
    least = [min(pair) for pair in sizes]
    narrow = _fit(widths, least, room)
    gaps = 2 * (len(sizes) - 1)
    fewest = max(sum(least) + gaps, min(room, sum(widths) + gaps))
    assert sum(narrow) + gaps == fewest
    assert all(
        word <= now <= before
        for word, now, before in zip(least, narrow, widths, strict=True)
    )
    free = [now for now, word in zip(narrow, least, strict=True) if now > word]
    given_way = [now for now, was in zip(narrow, widths, strict=True) if now < was]
    if free and given_way:
        assert max(free) <= min(given_way) + 1


@given(st.text("ab 肺", max_size=30), st.integers(2, 12))
def test_a_cell_is_broken_between_words_only(text, width):
    """No word is lost or cut, and no line is wider than it must be."""
    lines = _break(text, width)
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())
    for line in lines:
        assert _width(line) <= width or " " not in line
    for line, following in pairwise(lines):
        assert not line or _width(f"{line} {following.split()[0]}") > width


def test_a_table_is_aligned(capsys):
    """First column left, the others right, by what a terminal makes of a character."""
    assert _width("\N{FULLWIDTH LATIN CAPITAL LETTER A}肺é") == 5
    print_table(["case", "n"], [["肺", "1"], ["a", "1,000"]], title="Cases")
    assert capsys.readouterr().out == (
        "Cases\ncase      n\n----  -----\n肺        1\na     1,000\n"
    )


@pytest.mark.parametrize(
    ("terminal", "plain", "shown"),
    [
        (True, False, "a \x1b[1;33m[b]\x1b[0m \\x1b\n"),
        (True, True, "a [b] \\x1b\n"),
        (False, False, "a [b] \\x1b\n"),
    ],
)
def test_what_is_marked_stands_in_brackets(monkeypatch, capsys, terminal, plain, shown):
    """In colour only where it is seen and wanted; the text itself colours nothing."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if plain:
        monkeypatch.setenv("NO_COLOR", "")
    say_marked("a <b> \x1b", "<", ">")
    assert capsys.readouterr().out == shown


def test_an_object_is_json_or_a_fault(capsys):
    """Letters of any script stay readable; what is no number is no JSON."""
    print_json({"肺": [1.5, None]})
    assert capsys.readouterr().out == '{\n  "肺": [\n    1.5,\n    null\n  ]\n}\n'
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON"):
            print_json({"a": value})


@pytest.mark.parametrize(
    ("given_", "secret"),
    [("word\n", "word"), ("word", "word"), (" a b \r\nc\n", " a b "), ("\n", "")],
)
def test_a_secret_is_the_first_line_of_stdin(monkeypatch, given_, secret):
    """With the spaces that belong to it."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(given_))
    assert read_secret("password", True) == secret


@pytest.mark.parametrize(
    ("from_stdin", "said"),
    [
        (True, "stdin held no pass phrase"),
        (False, "first line of stdin, with --pass phrase-stdin"),
    ],
)
def test_where_there_is_no_secret_it_is_said_how_to_give_it(
    monkeypatch, from_stdin, said
):
    """Nobody is asked where nobody can answer."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(DataError, match=said):
        read_secret("pass phrase", from_stdin)


@pytest.mark.parametrize(
    ("done", "total", "told"),
    [
        (None, None, "reading"),
        (None, 5, "reading"),
        (0, 5, "reading: 0 of 5"),
        (1234, 5678, "reading: 1,234 of 5,678"),
        (1234, None, "reading: 1,234"),
        (1, 0, "reading: 1"),
    ],
)
def test_progress_is_told_as_far_as_it_is_known(done, total, told):
    """What is counted, and of how much."""
    bar = ProgressBar("reading", total)
    bar._done = done
    assert bar._told() == told
