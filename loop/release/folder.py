"""The files of a release folder, read once and with suspicion."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from loop.core.errors import DataError
from loop.core.files import write_error
from loop.core.safe_text import printable
from loop.release.facts import FACTS
from loop.release.judge_facts import JUDGE_FORMAT
from loop.release.statement import ENVELOPE

PROMPT = ("prompt.yaml", "guides.yaml", "system.jinja", "user.jinja")
SCHEMA, LEDGER, TABLE = "schema.json", "ledger.jsonl", "evaluation.csv"
ROWS = "rows.csv"
"""What a judge's agreement rests on, in place of a table of labels."""

DOCUMENTS = (
    *("card.md", "card.html", TABLE),
    *("mi-clear-llm.md", "tripod-llm.md", "change-record.md"),
)
JUDGE_DOCUMENTS = ("card.md", "card.html", ROWS, "change-record.md")

_EVERY = {FACTS, SCHEMA, LEDGER, ENVELOPE, *(f"prompt/{name}" for name in PROMPT)}
REQUIRED = frozenset({*_EVERY, *DOCUMENTS})
"""Files every release of an extractor has; those under ``rendered/`` depend on the
prompt."""

JUDGE_REQUIRED = frozenset({*_EVERY, *JUDGE_DOCUMENTS})
"""The same of a judge."""

ENSEMBLES = "ensembles"
"""Folder of the ensembles that a judge is released with."""

_FOLDERS = frozenset({"prompt", "rendered", ENSEMBLES})
_RENDERED = re.compile(r"rendered/(?:[a-z][a-z0-9_-]*\.)?(?:system|user)\.txt")

_ENSEMBLE = re.compile(
    rf"{ENSEMBLES}/[a-z][a-z0-9_-]{{0,63}}-v[1-9][0-9]{{0,8}}\.(?:yaml|csv)"
)

RELEASE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}-v[1-9][0-9]{0,8}")
"""What a release is called: its prompt and its version."""

LARGEST = 64 * 2**20
"""Most bytes of one file; a ledger of 10,000 entries has about ten million."""

IN_ALL = 256 * 2**20
"""Most bytes of all files together."""

MOST = 1_000
"""Most entries of a folder that are looked at."""


class Contents(NamedTuple):
    """What a release folder holds."""

    files: Mapping[str, bytes]
    """Name to bytes, of the files a release may have."""

    problems: tuple[str, ...]
    """What else lies there, or is missing, in words."""


def read_contents(folder: Path) -> Contents:
    """Return the files of a release folder; no link is followed, no device opened.

    Raises
    ------
    DataError
        `folder` is no folder, or a link to one.
    """
    if folder.is_symlink():
        raise DataError(
            f"{folder} is a link, which is not followed, and no release folder. Name "
            "the folder that it leads to."
        )
    if not folder.is_dir():
        raise DataError(
            f"{folder} is not a release folder. Name the folder that holds {ENVELOPE}."
        )
    files: dict[str, bytes] = {}
    problems: list[str] = []
    for name, kind in _walk(folder, problems):
        if not _may_belong(name):
            problems.append(f"{shown(name)} does not belong to a release")
        elif not stat.S_ISREG(kind):
            problems.append(f"{name} is not a regular file")
        else:
            _take(folder, name, files, problems)
    required = JUDGE_REQUIRED if _is_judge(files.get(FACTS, b"")) else REQUIRED
    other = sorted((REQUIRED | JUDGE_REQUIRED) - required)
    if required is REQUIRED:
        other += [name for name in files if _ENSEMBLE.fullmatch(name)]
    problems.extend(
        f"{name} does not belong to a release of this form"
        for name in other
        if files.pop(name, None) is not None
    )
    problems.extend(f"{name} is missing" for name in sorted(required - set(files)))
    return Contents(files, tuple(problems))


def _may_belong(name: str) -> bool:
    """Whether a release of some form may have a file of this name."""
    return (
        name in REQUIRED | JUDGE_REQUIRED
        or _RENDERED.fullmatch(name) is not None
        or _ENSEMBLE.fullmatch(name) is not None
    )


def ensemble_names(ref: str) -> tuple[str, str]:
    """Return the names of the two files of an ensemble: coefficients, and rows.

    Examples
    --------
    >>> ensemble_names("field@v2")
    ('ensembles/field-v2.yaml', 'ensembles/field-v2.csv')
    """
    stem = f"{ENSEMBLES}/{ref.replace('@', '-')}"
    return f"{stem}.yaml", f"{stem}.csv"


class _Form(BaseModel):
    """The part of ``release.json`` that names its form, whatever else it says."""

    format: str


def _is_judge(raw: bytes) -> bool:
    """Whether a ``release.json`` says that it is of a judge."""
    try:
        return _Form.model_validate_json(raw).format == JUDGE_FORMAT
    except ValidationError:
        return False


def shown(name: str) -> str:
    """Return a name from a stranger's folder as it may be printed, 80 characters."""
    text = printable(name.encode("utf-8", "backslashreplace").decode())
    return ascii(text)[1:-1][:80]


def _walk(folder: Path, problems: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the names below `folder` with their modes, one level deep."""
    for name, mode in _entries(folder, problems):
        if name not in _FOLDERS:
            yield name, mode
        elif stat.S_ISDIR(mode):
            for inner, kind in _entries(folder / name, problems):
                yield f"{name}/{inner}", kind
        else:
            problems.append(f"{name} is not a folder")


def _entries(folder: Path, problems: list[str]) -> list[tuple[str, int]]:
    """Return name and mode of what lies in a folder, in the order of the names."""
    found: list[tuple[str, int]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(found) >= MOST:
                    problems.append(f"{folder.name} holds more than {MOST:,} entries")
                    break
                mode = entry.stat(follow_symlinks=False).st_mode
                found.append((entry.name, mode))
    except OSError as error:
        problems.append(f"{folder.name} cannot be read: {error.strerror}")
    return sorted(found)


def _take(
    folder: Path, name: str, files: dict[str, bytes], problems: list[str]
) -> None:
    """Read one file, whatever it has become since its folder was listed."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(folder / name, flags)
        with os.fdopen(handle, "rb") as stream:
            facts = os.fstat(stream.fileno())
            if not stat.S_ISREG(facts.st_mode):
                problems.append(f"{name} is not a regular file")
                return
            limit = min(LARGEST, IN_ALL - sum(map(len, files.values())))
            raw = b"" if facts.st_size > limit else stream.read(limit + 1)
    except OSError as error:
        problems.append(f"{name} cannot be read: {error.strerror}")
        return
    if max(facts.st_size, len(raw)) > limit:
        problems.append(f"{name} is larger than {limit // 2**20} MiB")
        return
    files[name] = raw


@contextmanager
def unpacked(files: Mapping[str, bytes], *names: str) -> Iterator[Path]:
    """Put some of `files` into a private temporary folder for the block.

    What was read once is then what is checked, whatever happens to the release folder
    meanwhile. Files that are missing are left out.

    Raises
    ------
    WriteError
        There is no room for them.
    """
    with TemporaryDirectory(prefix="ranloop-release-") as made:
        for name in names:
            if name in files:
                _put(Path(made, name), files[name])
        yield Path(made)


def _put(target: Path, raw: bytes) -> None:
    try:
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(raw)
    except OSError as error:
        raise write_error(target, error) from error
