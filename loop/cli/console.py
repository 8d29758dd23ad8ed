"""What every command shares: where it works, who acts, how it prints and fails."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar
from unicodedata import east_asian_width

import typer

from loop.core.errors import DataError, LedgerError, LoopError, WorkspaceError
from loop.core.files import write_atomic
from loop.core.ledger import Actor, acting_name
from loop.core.paths import WorkspacePaths, find_workspace
from loop.core.safe_text import exposed, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.progress import Progress

GATE_EXIT = 100
"""Exit code when a gate did not pass."""

INTERRUPTED_EXIT = 130
"""Exit code after Ctrl-C, as shells expect it."""

_WIDEST = 100
"""Columns that a wrapped text fills at most."""

_GAP = "  "
"""Between the columns of a table."""

Row = TypeVar("Row")

_REDRAW_S = 0.2
"""Between two states of a bar."""

_SCREEN = RLock()
"""Held by whoever writes: a bar is drawn by another thread."""

_BELOW_ROWS = 8
"""Most lines of a text that stand below a bar."""

_BARS: list[Live] = []
"""The bars on the terminal."""

_AT_WORK: list[Event] = []
"""What ends each progress that is shown; see `ProgressBar`."""

_OPENED: ContextVar[WorkspacePaths | None] = ContextVar("_OPENED", default=None)
"""The workspace of the command that runs: whoever acts there signs with a key there."""

WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="Workspace folder; default: found upwards."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.")
]
ActorOption = Annotated[
    str | None,
    typer.Option("--actor", help="Who acts; default: $RANLOOP_ACTOR or the login."),
]
RoleOption = Annotated[
    str, typer.Option("--role", help="Role of the actor, as recorded in the ledger.")
]

ReferenceOption = Annotated[
    int | None,
    typer.Option("--reference", min=1, help="Reference version; default: newest."),
]
LanguageOption = Annotated[
    str, typer.Option("--language", help="ISO 639-1 code, or auto.")
]
EncodingOption = Annotated[
    str, typer.Option("--encoding", help="auto (UTF-8, else GBK) or a codec.")
]
IdPrefixOption = Annotated[
    str, typer.Option("--id-prefix", help="Prefix for every case id.")
]
IdColumnOption = Annotated[
    str | None, typer.Option("--id-column", help="Column with the case ids.")
]
TextColumnOption = Annotated[
    str | None, typer.Option("--text-column", help="Column with the whole text.")
]
MaxTokensOption = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        min=1,
        help="Maximum output tokens per answer.",
        show_default="2048",
    ),
]
NumberRowsOption = Annotated[
    bool,
    typer.Option("--number-rows", help="Number the rows: the table has no case ids."),
]
UnconstrainedOption = Annotated[
    bool,
    typer.Option(
        "--allow-unconstrained",
        help="Go on with a server that does not enforce the JSON schema.",
    ),
]


def _read_thinking(words: str) -> str:
    """Return a level of thinking; empty where none is named."""
    # Every command imports this module, also to print its help.
    from loop.engines.base import check_thinking

    try:
        return check_thinking(words) if words else ""
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


ThinkingOption = Annotated[
    str,
    typer.Option(
        "--thinking",
        help="How much a model thinks: none, low, medium, high or tokens.",
        show_default="as the server says",
        callback=_read_thinking,
    ),
]
CheckDryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Only count requests, tokens and cost, and what would show."
    ),
]
DrawsOption = Annotated[
    int | None,
    typer.Option(
        "--draws",
        min=1,
        max=100,
        help="How often to ask parent and draft each, of an engine with chance.",
        show_default="the protocol's, 3",
    ),
]
MaxDrawsOption = Annotated[
    int | None,
    typer.Option(
        "--max-draws",
        min=1,
        max=100,
        help="How often at most, while the check is undecided.",
        show_default="the protocol's, 6",
    ),
]


def open_workspace(explicit: Path | None) -> WorkspacePaths:
    """Return the workspace named or found from the current folder upwards."""
    workspace = find_workspace(Path.cwd(), explicit)
    _OPENED.set(workspace)
    return workspace


def find_place(explicit: Path | None) -> WorkspacePaths | None:
    """Return the workspace named or found; None outside of any.

    Raises
    ------
    WorkspaceError
        The one that was named is none.
    """
    try:
        return open_workspace(explicit)
    except WorkspaceError:
        if explicit is not None:
            raise
        return None


def acting(name: str | None, role: str = "editor") -> Actor:
    """Return who acts: `name`, else ``$RANLOOP_ACTOR``, else the login name.

    With a key of theirs in the workspace that was opened before, they sign.

    Raises
    ------
    DataError
        The name looks like that of somebody else in that workspace.
    """
    who, place = acting_name(name), _OPENED.get()
    if place is not None:
        _require_distinct(place, who)
    if place is None or not place.keys.is_dir():
        return Actor(name=who, role=role)
    from loop.release.keys import signer_for

    return Actor(name=who, role=role, signer=signer_for(place, who))


def _require_distinct(place: WorkspacePaths, who: str) -> None:
    """Refuse to act under a name that looks like another one's."""
    from loop.core.people.roster import require_distinct

    try:
        require_distinct(place, who)
    except LedgerError:
        # What is done with a broken ledger says so itself, or repairs it.
        return


def say(text: str = "") -> None:
    """Print a line to stdout; whatever a case or a file holds stays text.

    Where nobody reads on, as behind ``| head``, the rest is dropped and the command
    goes on to its end: what it does, and its exit code, do not hang on a reader.
    """
    _echo(printable(text), sys.stdout)


def say_marked(text: str, opening: str, closing: str) -> None:
    """Print a line in which two characters enclose what is marked.

    They become brackets, and colour on a terminal that shows it. They must not occur
    in `text` otherwise.
    """
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    begin, end = ("\x1b[1;33m[", "]\x1b[0m") if colour else ("[", "]")
    shown = printable(text).replace(opening, begin).replace(closing, end)
    _echo(shown, sys.stdout)


def say_wrapped(lead: str, text: str, *, hang: int | None = None) -> None:
    """Print `text` in lines of 100 characters, the first of which begins with `lead`.

    The others hang under its first word, or are indented by `hang`.
    """
    for line in textwrap.wrap(
        text,
        _WIDEST,
        initial_indent=lead,
        subsequent_indent=" " * (len(lead) if hang is None else hang),
        break_long_words=False,
        break_on_hyphens=False,
    ):
        say(line)


def write_documents(
    paths: Sequence[Path | None], renders: Sequence[Callable[[], str]]
) -> None:
    """Write the documents whose path is given, and say so on stderr.

    Raises
    ------
    WriteError
        A document cannot be written.
    """
    for path, render in zip(paths, renders, strict=True):
        if path is not None:
            write_atomic(path, render())
            note(f"wrote {path}")


def note(text: str) -> None:
    """Print a line to stderr: progress and remarks, never results."""
    _echo(printable(text), sys.stderr)


def _echo(text: str, stream: TextIO) -> None:
    with _SCREEN, _bars_aside():
        try:
            typer.echo(text, file=stream)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


@contextmanager
def _bars_aside() -> Iterator[None]:
    """Take the bars on the terminal away for a line that stays."""
    bars = list(_BARS)
    for bar in bars:
        bar.stop()
    yield
    for bar in bars:
        bar.start()


def megabytes(count: int) -> str:
    """Return a number of bytes as people read it.

    Examples
    --------
    >>> megabytes(1_500_000), megabytes(0)
    ('1.5 MB', '0.0 MB')
    """
    return f"{count / 1e6:,.1f} MB"


def read_secret(what: str, from_stdin: bool, *, confirm: bool = True) -> str:
    """Return a secret from stdin, or typed on a terminal without echo, twice if new.

    Parameters
    ----------
    what
        Its name, as in the option ``--NAME-stdin``.

    Raises
    ------
    DataError
        There is no terminal to ask on, or stdin is empty.
    """
    if from_stdin:
        line = sys.stdin.readline()
        if not line:
            raise DataError(f"stdin held no {what}. Give it as the first line.")
        return line.rstrip("\r\n")
    if not sys.stdin.isatty():
        raise DataError(
            f"there is no terminal to ask for the {what}. Give it as the first line "
            f"of stdin, with --{what}-stdin."
        )
    asked = typer.prompt(
        what.capitalize(), hide_input=True, confirmation_prompt=confirm, err=True
    )
    return str(asked)


def note_part(workspace: WorkspacePaths, run: str) -> None:
    """Say that a run asked a part of its cohort, if it did."""
    from loop.run.manifest import find_run, say_part

    told = say_part(find_run(workspace, run))
    if told:
        note(told)


def own_output(path: Path, workspace: WorkspacePaths) -> None:
    """Refuse to write a document over the workspace's own files.

    Raises
    ------
    DataError
        It lies in ``prompts/``, ``labels/``, ``reports/releases/`` or ``.ranloop/``.
    """
    workspace.require_outside(path)


def print_json(data: Mapping[str, Any]) -> None:
    """Print `data` as the one JSON object of ``--json``.

    Raises
    ------
    ValueError
        It holds NaN or an infinity, which are no JSON; a bug of whoever made it.
    """
    text = json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)
    _echo(text, sys.stdout)


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = ""
) -> None:
    """Print an aligned plain-text table: first column left, the others right.

    Plain text on purpose: it survives a pipe, a log and an e-mail. On a terminal
    that is narrower than the table, cells are broken between words, and left.
    """
    table = [list(header), *(list(map(str, row)) for row in rows)]
    columns = list(zip(*table, strict=True))
    whole = widths = [max(map(_width, column)) for column in columns]
    if sys.stdout.isatty():
        least = [max(map(_longest_word, column)) for column in columns]
        widths = _fit(whole, least, shutil.get_terminal_size().columns)
    left = [not n or widths[n] < whole[n] for n in range(len(widths))]
    if title:
        say(title)
    for number, row in enumerate(table):
        broken = [_break(cell, width) for cell, width in zip(row, widths, strict=True)]
        for cells in zip_longest(*broken, fillvalue=""):
            padded = map(_pad, cells, widths, left)
            say(_GAP.join(padded).rstrip())
        if not number:
            say(_GAP.join("-" * width for width in widths))


def _fit(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return narrower columns, the widest first, until they fit into `room`.

    None becomes narrower than its longest word; a table that still does not fit is
    left to the terminal.

    Examples
    --------
    >>> _fit([20, 30, 5], [8, 10, 5], 40)
    [15, 16, 5]
    """
    narrow = list(widths)
    excess = sum(narrow) + len(_GAP) * (len(narrow) - 1) - room
    for _ in range(max(excess, 0)):
        can = [index for index, width in enumerate(narrow) if width > least[index]]
        if not can:
            break
        narrow[max(can, key=lambda index: narrow[index])] -= 1
    return narrow


def _longest_word(text: str) -> int:
    return max(map(_width, text.split()), default=0)


def _break(text: str, width: int) -> list[str]:
    """Return `text` as lines of at most `width` columns, broken between words."""
    if _width(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if _width(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def _width(text: str) -> int:
    """Columns `text` takes on a terminal: a Chinese character takes two."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _pad(text: str, width: int, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text


@dataclass(slots=True)
class ProgressBar:
    """What takes a while: a bar on a terminal; elsewhere a line every few seconds.

    Nothing of what is over soon, and nothing with --json. The bar goes when the work
    is done, or when the command fails.
    """

    label: str
    total: int | None = None
    quiet: bool = False
    after_s: float = 2.0
    """Before this, nothing is shown."""

    every_s: float = 5.0
    """Between two lines."""

    below: str = ""
    """A text whose end stands below the bar, on a terminal and from its first word on;
    it may be private, so it is shown nowhere else."""

    _done: int | None = None
    """Rows that have passed; None while nothing is counted."""

    _over: Event | None = None
    """Set when the work is done; None while nothing is shown."""

    def track(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield `rows` while showing how many have passed."""
        self._done = 0
        try:
            with self.shown():
                for row in rows:
                    yield row
                    self._done += 1
        finally:
            self._done = None

    def count(self, done: int, total: int) -> None:
        """Show how many parts of the work are done, where `track` counts none."""
        self._done, self.total = done, total

    def part(
        self, label: str, total: int | None = None
    ) -> Callable[[Iterable[Row]], Iterator[Row]]:
        """Return what tracks the rows of a part of the work under its own label."""

        def track(rows: Iterable[Row]) -> Iterator[Row]:
            before = self.label, self.total
            self.label, self.total = label, total
            try:
                yield from self.track(rows)
            finally:
                self.label, self.total = before

        return track

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show for how long the block has been at work, and what `track` counts in it.

        The block asks nothing of the person at the terminal.
        """
        if self.quiet or self._over is not None:
            yield
            return
        self._over = over = Event()
        thread = Thread(target=self._tick, args=(over,), daemon=True)
        thread.start()
        _AT_WORK.append(over)
        try:
            yield
        finally:
            _AT_WORK.remove(over)
            over.set()
            thread.join()
            self._over = None

    def _tick(self, over: Event) -> None:
        begun = time.monotonic()
        on_terminal = sys.stderr.isatty()
        until = begun + self.after_s
        while (left := until - time.monotonic()) > 0:
            if over.wait(min(left, _REDRAW_S)):
                return
            if self.below and on_terminal:
                break
        if on_terminal:
            self._bar(over, begun)
            return
        while True:
            note(f"{self._told()}, {time.monotonic() - begun:,.0f} s")
            if over.wait(self.every_s):
                return

    def _told(self) -> str:
        if self._done is None:
            return self.label
        of = f" of {self.total:,}" if self.total else ""
        return f"{self.label}: {self._done:,}{of}"

    def _bar(self, over: Event, begun: float) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.markup import escape
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console(stderr=True)
        bar = Progress(TextColumn("{task.description}"), BarColumn(), console=console)
        task = bar.add_task("", total=None)
        screen = Live(
            get_renderable=lambda: self._drawn(bar, console.width),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with _SCREEN:
            _BARS.append(screen)
            screen.start()
        try:
            while not over.wait(_REDRAW_S):
                told = f"{self._told()}, {time.monotonic() - begun:,.0f} s"
                done, counted = self._done, self._done is not None
                with _SCREEN:
                    bar.update(
                        task,
                        description=escape(printable(told)),
                        total=self.total if counted else None,
                        completed=done or 0,
                    )
                    screen.refresh()
        finally:
            with _SCREEN:
                screen.stop()
                if screen in _BARS:
                    _BARS.remove(screen)

    def _drawn(self, bar: Progress, width: int) -> RenderableType:
        """Return the bar, and the last lines of what stands below it."""
        from rich.console import Group
        from rich.text import Text

        # More than fits in: a line has at most one character a column.
        end = exposed(self.below[-_BELOW_ROWS * width :])
        rows = [
            row
            for line in end.splitlines()
            for row in textwrap.wrap(line, width, drop_whitespace=False) or [""]
        ]
        return Group(bar, *map(Text, rows[-_BELOW_ROWS:]))


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turn a `LoopError` into its message and exit code 1, without a traceback.

    An interrupt, which Typer turns into exit code 130 without a word, gets one.
    """
    try:
        yield
    except LoopError as error:
        _end_progress()
        note(f"error: {error}")
        raise SystemExit(1) from error
    except (KeyboardInterrupt, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code != INTERRUPTED_EXIT:
            raise
        _end_progress()
        note("stopped; run the same command again to go on where it was")
        raise SystemExit(INTERRUPTED_EXIT) from error


def _end_progress() -> None:
    """Show no progress any more: what was tracked last may not have been closed."""
    for over in _AT_WORK:
        over.set()
    with _SCREEN:
        for bar in _BARS:
            bar.stop()
        _BARS.clear()


def read_policy(words: Sequence[str]) -> dict[str, str]:
    """Return what words of label cells mean, from ``WORD=VALUE`` each.

    Raises
    ------
    typer.BadParameter
        There is no ``=``, or a word appears twice.
    """
    from loop.labels.importing.source import parse_meanings

    try:
        return parse_meanings(words)
    except DataError as error:
        raise typer.BadParameter(f"--value {error}") from error
