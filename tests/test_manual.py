"""Every command of the manual is run, and prints what its page says.

A page of ``docs/``, and the README, is run from top to bottom in a new folder:

- A block ``console`` holds commands after ``$ `` and what each prints. A line with
  nothing but ``…`` stands for any number of lines. A command must exit with 0 unless
  ``$ echo $?`` follows it.
- A block with ``:caption: NAME`` is a file of that name in the folder; its text is
  written there before the next command.
- A block ``pycon`` is run as a doctest, in the same folder.
- A block ``bash`` is not run: it needs a model, a server or another machine. Its
  options must exist.

A page with ``goes_on_from: PAGE`` in its front matter begins with what that page left.
``golden/verbs.yaml`` has commands that go on from a page, too. What they print, JSON
and tables of many rows, is kept in ``golden/verbs``.

``python -m tests.test_manual [PAGE ...]`` rewrites the outputs; read them in the diff.
"""

import contextvars
import difflib
import doctest
import io
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout, suppress
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

import pytest
import typer
import yaml

from loop import __version__
from loop.cli.console import ProgressBar, reported_errors
from loop.cli.main import SECTIONS, app
from tests.test_renderings import compact, kept_form

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"

HOME = "/home/you"
"""What the pages write for the folder in which they are run."""

MASKS = (
    (r"\bd?\d{8}-\d{6}-[0-9a-f]{6}(-\d+)?\b", "RUN"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "TIME"),
    (r"\b\d{4}-\d\d-\d\d\b", "DATE"),
    (r"\b\d\d:\d\d UTC\b", "TIME"),
    # One of digits only has quotes in YAML; numbers are no digests.
    (
        r"(?<![.,\d])'?\b(?=[a-f]*\d)"
        r"(?:(?=\d*[a-f])[\da-f]{6,}|\d{8}|\d{12}|\d{64})\b'?",
        "DIGEST",
    ),
    (r"[A-Za-z0-9+/]{40,}=+", "KEY"),
    # Before a time the number of a ledger entry stands, and "s" for "signed".
    (r"\b\d+(\.\d+)? (ms|s|seconds)\b(?! +(TIME|DATE))", "DURATION"),
    (r'"latency_s":[^,}]+', '"latency_s":DURATION'),
    (r"\b[\d,]+ cases/s\b", "RATE"),
    (re.escape(__version__), "VERSION"),
)
"""What differs from one day, machine or key to another: all that is not compared."""

BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)


def front_matter(page):
    """Return the fields at the top of a page."""
    found = re.match(r"---\n(.*?)\n---\n", page.read_text("utf-8"), re.S)
    lines = found[1].splitlines() if found else ()
    return dict(line.split(": ", 1) for line in lines)


def commands(block):
    """Return the commands of a console block, each with the lines shown below it."""
    steps = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif steps[-1][0].endswith("\\"):
            steps[-1] = (f"{steps[-1][0][:-1]}\n{line}", [])
        else:
            steps[-1][1].append(line)
    return [(command, shown) for command, shown in steps]


def masked(line):
    """Return a line without what differs from day to day."""
    for pattern, word in MASKS:
        line = re.sub(pattern, word, line)
    # Of two runs in one second the second has a longer name: so has its column.
    return re.sub(r"RUN {2,}", "RUN  ", line).rstrip()


def shows(shown, printed):
    """Return whether the lines shown are those printed, save those left out."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(masked(line)) + r"\n"
        for line in shown
    )
    return bool(re.fullmatch(pattern, "".join(f"{masked(one)}\n" for one in printed)))


def shortened(shown, printed):
    """Return the lines printed, left out where those like them were left out."""
    if all(line.strip() != "…" for line in shown):
        return printed
    kept, start = set(), 0
    for line in shown:
        alike = [
            difflib.SequenceMatcher(None, masked(line), masked(one)).ratio()
            for one in printed[start:]
        ]
        if line.strip() and max(alike, default=0) >= 0.6:
            start += alike.index(max(alike)) + 1
            kept.add(start - 1)
    lines = []
    for stays, group in groupby(enumerate(printed), lambda one: one[0] in kept):
        part = [line for _, line in group]
        if not stays and any(map(str.strip, part)):
            edges = [[] if line.strip() else [""] for line in (part[0], part[-1])]
            part = [*edges[0], "…", *edges[1]]
        lines += part
    return lines


class Shell:
    """A folder in which a page's commands run, with what a shell remembers."""

    def __init__(self, home):
        self.home = home
        self.folder = home
        self.environment = {
            "RANLOOP_ACTOR": "you",
            "COLUMNS": "100",
            "XDG_STATE_HOME": str(home.parent / "state"),
        }
        self.code = 0
        self.names = {}

    def run(self, command):
        """Return the lines that a command prints."""
        words = shlex.split(command.replace("\\\n", " "))
        if words[0] == "cd":
            self.folder = (self.folder / words[1]).resolve()
            return []
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            if "$" in value:
                self.code, told = self._outside(f'{command}; printf %s "${name}"')
                value = told.strip()
            self.environment[name] = value
            return []
        if words == ["echo", "$?"]:
            code, self.code = self.code, 0
            return [str(code)]
        plain = not re.search(r"[|<>;&*]", re.sub(r"'[^']*'|\"[^\"]*\"", "", command))
        if words[0] == "ranloop" and plain:
            self.code, text = self._inside([self._named(word) for word in words[1:]])
        else:
            self.code, text = self._outside(command)
        return text.replace(str(self.home), HOME).splitlines()

    def _named(self, word):
        """Return what a word is; that of `$NAME` is in the environment."""
        return self.environment[word[1:]] if word.startswith("$") else word

    def _inside(self, words):
        """Run the tool in this process, which is faster than a new one.

        Progress, of which a busy machine shows more, is not shown.
        """
        told = io.StringIO()

        def act():
            with reported_errors():
                app(words, prog_name="ranloop")

        quiet = patch.object(ProgressBar, "_tick", lambda *_: None)
        with ExitStack() as around:
            around.enter_context(chdir(self.folder))
            around.enter_context(patch.dict(os.environ, self.environment))
            around.enter_context(redirect_stdout(told))
            around.enter_context(redirect_stderr(told))
            around.enter_context(quiet)
            try:
                contextvars.copy_context().run(act)
                code = 0
            except SystemExit as stopped:
                code = stopped.code or 0
        return code, told.getvalue()

    def _outside(self, command):
        """Run what is not the tool alone, with the tool on the path."""
        with tempfile.TemporaryDirectory() as folder:
            tool = Path(folder, "ranloop")
            tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m loop "$@"\n')
            tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
            path = f"{folder}:{os.environ['PATH']}"
            places = [str(ROOT), os.environ.get("PYTHONPATH", "")]
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env={
                    **os.environ,
                    **self.environment,
                    "PATH": path,
                    "PYTHONPATH": ":".join(places),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        return done.returncode, done.stdout

    def check_python(self, text, page):
        """Run a doctest; names stay known for the page's next one."""
        test = doctest.DocTestParser().get_doctest(text, self.names, page, page, 0)
        told = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        with chdir(self.folder), patch.dict(os.environ, self.environment):
            runner.run(test, out=told.write, clear_globs=False)
        self.names = test.globs
        assert not runner.failures, told.getvalue()


class Manual:
    """Pages as they were run: each once, in a folder that others may go on from."""

    def __init__(self, folder):
        self.folder = folder
        self.left = {}
        self.failed = []
        """Commands that ended as their page does not say."""

    def left_by(self, page):
        """Return the shell that a page left, having run the page if need be."""
        if page not in self.left:
            self.run(page)
        return self.left[page]

    def begin(self, page):
        """Return the shell with which a page begins."""
        if before := front_matter(page).get("goes_on_from"):
            return self.after((page.parent / before).resolve())
        home = self._make_home()
        home.mkdir()
        return Shell(home)

    def after(self, page):
        """Return a shell in a copy of what a page left."""
        left, home = self.left_by(page), self._make_home()
        shutil.copytree(left.home.parent, home.parent, dirs_exist_ok=True)
        shell = Shell(home)
        shell.folder = home / left.folder.relative_to(left.home)
        state = shell.environment["XDG_STATE_HOME"]
        shell.environment = left.environment | {"XDG_STATE_HOME": state}
        return shell

    def _make_home(self):
        return Path(tempfile.mkdtemp(dir=self.folder), "home")

    def printed_after(self, page):
        """Return where it is kept what commands print after a page, and what it is."""
        shell, told = self.after(DOCS / page), []
        for command in VERBS[page].splitlines():
            lines = shell.run(command)
            with suppress(ValueError):
                lines = [compact(json.loads("\n".join(lines)))]
            # Before what differs is masked: digits of a number look like a digest.
            lines = kept_form("", "\n".join(lines)).splitlines()
            told += [f"$ {command}", *map(masked, lines)]
            told += [f"exit code {shell.code}"] * bool(shell.code)
        path = KEPT / f"{Path(page).stem}.txt"
        return path, "\n".join(told)

    def run(self, page):
        """Return the page with what its commands print now."""
        shell = self.begin(page)
        text = BLOCK.sub(
            lambda block: self._run_block(shell, page, block), page.read_text("utf-8")
        )
        self.left[page] = shell
        return text

    def _run_block(self, shell, page, block):
        kind, text = block["kind"], block["text"]
        if caption := re.match(r":caption: (.+)\n\n?", text):
            path = shell.folder / caption[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text[caption.end() :], "utf-8")
        elif kind == "pycon":
            shell.check_python(text, page.name)
        elif kind == "console":
            return f"```console\n{self._run_commands(shell, page, text)}```"
        return block[0]

    def _run_commands(self, shell, page, text):
        lines, steps = [], commands(text)
        for (command, shown), after in zip(steps, [*steps[1:], ("", [])], strict=True):
            printed = [line.rstrip() for line in shell.run(command)]
            if shell.code and after[0] != "echo $?":
                self.failed.append((page.name, command, shell.code, *printed))
            lines += [f"$ {command}".replace("\n", "\\\n")]
            lines += shown if shows(shown, printed) else shortened(shown, printed)
        return "".join(f"{line}\n" for line in lines)


PAGES = [
    page
    for page in (README, *sorted(DOCS.rglob("*.md")))
    if re.search(r"^```(console|pycon)$", page.read_text("utf-8"), re.M)
]

KEPT = ROOT / "tests" / "golden" / "verbs"
VERBS = yaml.safe_load(KEPT.with_suffix(".yaml").read_text("utf-8"))
"""Page, under `DOCS`, to the commands that go on from it."""


def named(page):
    """Return a page's name within the manual."""
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    """Return the manual, whose pages may go on from each other."""
    return Manual(tmp_path_factory.mktemp("manual"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_shows_what_its_commands_print(manual, page):
    """A manual that is wrong is worse than none.

    What is wanted is written with ``python -m tests.test_manual PAGE``.
    """
    told, now = page.read_text("utf-8").splitlines(), manual.run(page).splitlines()
    changed = list(difflib.unified_diff(told, now, "the page", "now", n=1, lineterm=""))
    assert not changed, "\n".join(changed[:40])
    assert [one for one in manual.failed if one[0] == page.name] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", VERBS)
def test_verbs_print_what_they_printed(manual, page):
    """Whole tables and JSON, of which the manual shows some lines only."""
    path, now = manual.printed_after(page)
    assert now == path.read_text("utf-8")


def shown_commands(path):
    """Return every command of the tool in a page, run or not, as its words."""
    found = []
    for block in BLOCK.finditer(path.read_text("utf-8")):
        text = block["text"].replace("\\\n", " ")
        if block["kind"] == "console":
            text = "\n".join(re.findall(r"^\$ (.*)", text, re.M))
        elif block["kind"] != "bash":
            continue
        for line in text.splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            parts = [[]]
            for word in lexer:
                if set(word) <= set("|&;<>()"):
                    parts.append([])
                else:
                    parts[-1].append(word)
            found += [words[1:] for words in parts if words[:1] == ["ranloop"]]
    return found


@pytest.mark.parametrize("page", [README, *sorted(DOCS.rglob("*.md"))], ids=named)
def test_every_command_that_is_shown_has_arguments_that_exist(page):
    """Also of those that cannot be run here: options are renamed, pages forgotten."""
    for words in shown_commands(page):
        verb = typer.main.get_command(app)
        while words and words[0] in getattr(verb, "commands", {}):
            verb, words = verb.commands[words[0]], words[1:]
        verb.make_context(verb.name, words)


def test_the_manual_shows_every_verb():
    """A verb that nobody can find does not exist."""
    shown = {words[0] for page in DOCS.rglob("*.md") for words in shown_commands(page)}
    assert {name for verbs in SECTIONS.values() for name in verbs} - shown == set()


def test_what_is_compared_is_all_but_the_masks_and_what_is_left_out():
    """A test that compares nothing would hold any manual."""
    assert shows(
        ["a 1", "…", "run 20261125-082719-afea04"],
        ["a 1", "b", "run 20270101-000000-000000"],
    )
    assert shows(["…"], [])
    assert not shows(["a 1"], ["a 2"])
    assert not shows(["a"], ["a", "b"])
    assert not shows([], ["a"])
    assert shows(["v1 f9ed79188699"], ["v1 '102030405060'"])
    for one, other in (
        ("macro-F1 0.445", "macro-F1 0.446"),
        ("p 0.123456", "p 0.654321"),
        ("1234567 reports", "7654321 reports"),
        ("11 s 2026-11-25", "12 s 2026-11-25"),
    ):
        assert not shows([one], [other]), one


def test_what_was_left_out_stays_left_out_when_outputs_are_rewritten():
    """Nobody shortens a page by hand twice."""
    shown = ["total 12 cases", "…", "", "gate: PASS"]
    printed = ["total 13 cases", "edema 4", "fracture 9", "", "gate: FAIL"]
    assert shortened(shown, printed) == ["total 13 cases", "…", "", "gate: FAIL"]
    assert shortened(["total 12 cases"], printed) == printed


if __name__ == "__main__":
    asked = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    with tempfile.TemporaryDirectory() as made:
        whole = Manual(Path(made))
        for one in asked:
            one.write_text(whole.run(one), "utf-8")
            if DOCS in one.parents and one.relative_to(DOCS).as_posix() in VERBS:
                kept, text = whole.printed_after(one.relative_to(DOCS).as_posix())
                kept.write_text(text, "utf-8")
        for one in whole.failed:
            print(*one, sep="\n")
        sys.exit(bool(whole.failed))
