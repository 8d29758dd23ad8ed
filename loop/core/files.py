"""Atomic files, locks and strict YAML: nothing half-written, nothing guessed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from loop.core.errors import ConflictError, DataError, WriteError

Model = TypeVar("Model", bound=BaseModel)

_HINTS = {
    errno.ENOSPC: "The disk is full: free some space and run the command again.",
    errno.EDQUOT: "The disk quota is used up: free some space and run it again.",
    errno.EROFS: "The file system is read-only: use a workspace you can write.",
    errno.EACCES: "Permission denied: use a workspace you can write, or chmod it.",
    errno.EPERM: "Operation not permitted: use a workspace you can write.",
}


def write_error(path: Path, cause: OSError) -> WriteError:
    """Return a `WriteError` that says what to do about `cause`."""
    hint = _HINTS.get(cause.errno or 0, "Check the path and run the command again.")
    reason = cause.strerror or type(cause).__name__
    return WriteError(f"cannot write {path}: {reason}. {hint} Nothing was changed.")


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file with its line ends as they are.

    Raises
    ------
    DataError
        The file is missing, unreadable or not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist. Check the name.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 (byte {error.start}). Convert it to UTF-8."
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


def write_atomic(path: Path, data: bytes | str, *, mode: int | None = None) -> None:
    """Write `data` to `path` so that a crash leaves the old file or the new one.

    Temporary file in the same folder, fsync, rename, fsync of the folder.

    Raises
    ------
    WriteError
        The disk is full, read-only, or permission is missing.
    """
    raw = data.encode("utf-8") if isinstance(data, str) else data
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode if mode is not None else 0o644 & ~_umask())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        raise write_error(path, error) from error


def make_folder(path: Path, *, mode: int = 0o755) -> None:
    """Create `path` and its parents, with `mode` on the last one.

    Raises
    ------
    WriteError
        It cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as error:
        raise write_error(path, error) from error


def sync_folder(path: Path) -> None:
    """Make renames inside `path` survive a power loss."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the exclusive lock file `path` for the length of the block.

    Raises
    ------
    ConflictError
        `wait` is false and another process holds the lock.
    WriteError
        The lock file cannot be created.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise write_error(path, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise ConflictError(
                f"{path.name} is held by another ranloop process. "
                "Wait for it to finish and run the command again."
            ) from error
        yield
    finally:
        os.close(handle)


class _StrictLoader(yaml.CSafeLoader):
    """YAML without the surprises: ``no`` is a word, a date is text, keys are unique."""


_PLAIN = ("null", "int", "float")
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, rx) for tag, rx in pairs if tag.rsplit(":", 1)[1] in _PLAIN]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}

_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool",
    re.compile(r"^(?:true|false)$"),
    list("tf"),
)


def _unique_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> object:
    seen = set()
    for key, _ in node.value:
        if key.value in seen:
            line = key.start_mark.line + 1
            raise DataError(f"line {line}: key {key.value!r} occurs twice")
        seen.add(key.value)
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _unique_mapping)


def parse_yaml(text: str, source: Path | str) -> object:
    """Return the data of a YAML text; ``no`` stays a word and keys are unique.

    Raises
    ------
    DataError
        The text is not YAML, or a key occurs twice; names `source` and the line.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except DataError as error:
        raise DataError(f"{source}, {error}. Keep one of the two.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        raise DataError(
            f"{source}{where}: not valid YAML ({problem}). Correct that line."
        ) from error
    except RecursionError as error:
        raise DataError(f"{source}: nested too deeply. Flatten it.") from error


def read_model(path: Path, model: type[Model]) -> Model:
    """Return the YAML file `path` as `model`.

    Raises
    ------
    DataError
        The file is missing, not YAML, or does not fit; names each wrong field.
    """
    return check_model(parse_yaml(read_text(path), path), model, path)


def check_model(data: object, model: type[Model], source: Path | str) -> Model:
    """Return `data` validated as `model`; the error lists each wrong field.

    Raises
    ------
    DataError
        The data does not fit.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = [
            f"  {'.'.join(str(part) for part in problem['loc']) or '(file)'}: "
            f"{problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)[:10]
        ]
        detail = "\n".join(lines)
        raise DataError(
            f"{source} does not have the expected form:\n{detail}\n"
            "Correct these fields and run the command again."
        ) from error


class _Dumper(yaml.CSafeDumper):
    """Block style, keys in order, readable strings."""


def dump_yaml(data: object) -> str:
    """Return `data` as block-style YAML, keys in the order given, width 88."""
    text = yaml.dump(
        data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=88
    )
    return str(text)


def _umask() -> int:
    """Return the umask of the process, which can only be read by setting it."""
    current = os.umask(0)
    os.umask(current)
    return current
