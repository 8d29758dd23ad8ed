"""Models on this machine: where one lies, and a digest of its weights."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from loop.core.digests import framed
from loop.core.errors import EngineError

_WHOLE = 16 * 2**20
"""Files up to this size are hashed whole, bytes."""

_END = 2**20
"""Of bigger ones the first and the last so many bytes are."""


def digest_model(place: Path) -> str:
    """Return a digest of the model in the folder, or the file, `place`.

    64 hex characters.

    Covers every file's path and size, the whole content of files up to 16 MiB and
    the first and last MiB of bigger ones: reading all of a large model would take
    longer than most runs. Hidden files and folders do not count.

    Raises
    ------
    EngineError
        A file cannot be read.
    """
    total = hashlib.sha256()
    try:
        for path in _files(place):
            size = path.stat().st_size
            total.update(framed((path.relative_to(place).as_posix(), str(size))))
            with path.open("rb") as stream:
                for part in _parts(stream, size):
                    total.update(part)
    except OSError as error:
        raise EngineError(
            f"cannot read the model in {place}: {error.strerror}. Check that it is "
            "there and that you may read it."
        ) from error
    return total.hexdigest()


def find_snapshot(
    model: str, revision: str | None, environ: Mapping[str, str] = os.environ
) -> str | None:
    """Return the commit of a downloaded model of the Hugging Face hub.

    None where the hub's cache on this machine does not know the model.

    Parameters
    ----------
    model
        Name on the hub, for example ``"Qwen/Qwen3-14B"``.
    revision
        Branch, tag or commit; None for ``main``.
    """
    repository = _hub_cache(environ) / ("models--" + model.replace("/", "--"))
    try:
        commit = (repository / "refs" / (revision or "main")).read_text("ascii").strip()
    except (OSError, ValueError):
        commit = revision or ""
    there = bool(commit) and os.path.isdir(repository / "snapshots" / commit)
    return commit if there else None


def _hub_cache(environ: Mapping[str, str]) -> Path:
    """Return the folder in which the hub's client keeps what it downloaded."""
    home = environ.get("HF_HOME") or "~/.cache/huggingface"
    cache = environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    return Path(cache).expanduser()


def _files(place: Path) -> Iterator[Path]:
    """Yield the files under `place` in one order; links to files are files."""
    if place.is_file():
        yield place
    for path in sorted(place.rglob("*")):
        inside = path.relative_to(place).parts
        if path.is_file() and not any(part.startswith(".") for part in inside):
            yield path


def _parts(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file that count."""
    if size <= _WHOLE:
        yield stream.read()
    else:
        yield stream.read(_END)
        stream.seek(-_END, os.SEEK_END)
        yield stream.read(_END)


def model_location(model: str) -> str:
    """Return the absolute path of `model` if it is one, else its name as it is.

    Raises
    ------
    EngineError
        vLLM would take it for an option.
    """
    if model.startswith("-"):
        raise EngineError(
            f"{model} cannot be a model: vLLM takes what begins with a dash for an "
            f"option. Give a folder of that name as ./{model}."
        )
    # Unlike those of `Path`, these two take any text for what it is: a name.
    path = os.path.expanduser(model)
    return os.path.realpath(path) if os.path.exists(path) else model
