"""What is kept of a search: its journal, its result, and its entry in the ledger.

A search has its own folder under ``.ranloop/optimize/``, named by the digest of all
that its result depends on. What was proposed and decided goes into a journal, so that a
killed search can resume; repeating a finished one returns its result and asks nothing.
Journal and result are chained to the ledger by digests: a folder that was
changed by hand is refused. There is no run of anything that a search asked.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from io import BufferedRandom
from pathlib import Path
from typing import Any, Final

from loop.core.clock import Clock, utc_now
from loop.core.digests import canonical_json, digest_json
from loop.core.errors import ConflictError, DataError
from loop.core.files import locked, make_folder, read_text, write_atomic, write_error
from loop.core.ledger import (
    Actor,
    Event,
    LedgerEntry,
    append_event,
    read_ledger,
)
from loop.core.paths import WorkspacePaths

_KEY_SHOWN: Final = 16
"""Characters of a key that name its folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpec:
    """All that the result of a search depends on."""

    prompt: str
    """The version it began with, for example ``"extractor@v7"``."""

    prompt_digest: str
    cohort: str
    cohort_digest: str
    reference: int
    reference_digest: str
    protocol_digest: str
    splits: str
    """Digest of which case is in which part, see `digest_splits`."""

    engine: str
    asker: str
    """Digest of the engine's identity and parameters."""

    optimizer: str
    """For example ``"terms"``."""

    seed: int
    budget: int | None
    """Most candidates or calls that it may ask, as the optimizer counts them; None for
    its own end."""

    settings: Mapping[str, object] = field(default_factory=dict)
    """Everything else that the optimizer was told: JSON data, never case text."""

    libraries: Mapping[str, str] = field(default_factory=dict)
    """Name to version of the packages that propose; see `library_versions`."""

    @property
    def key(self) -> str:
        """Sha256 of all of it, 64 hex characters."""
        return digest_json(asdict(self))


def library_versions(*names: str) -> dict[str, str]:
    """Return name to version of installed packages; those that are not are left out."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class SearchFolder:
    """The folder of one search, held by this process; made by `open_search`."""

    def __init__(
        self, workspace: WorkspacePaths, spec: SearchSpec, path: Path, actor: Actor
    ) -> None:
        self.spec: Final = spec
        self.path: Final = path
        self._workspace = workspace
        self._actor = actor
        self._journal: dict[tuple[str, str], Any] = {}
        self._head = spec.key
        self._stream: BufferedRandom | None = None
        self._result: Mapping[str, Any] | None = None
        self._engines: Sequence[object] = ()

    @property
    def result(self) -> Mapping[str, Any] | None:
        """What `finish` was given; None while the search is not finished."""
        return self._result

    @property
    def engines(self) -> Sequence[object]:
        """What `finish` was given of the engines; an earlier version kept nothing."""
        return self._engines

    def recall(self, kind: str, key: str) -> Any | None:
        """Return what was remembered under a kind and key; None for nothing."""
        return self._journal.get((kind, key))

    def remember(self, kind: str, key: str, value: object) -> None:
        """Keep JSON data under a kind and key, so that a killed search goes on.

        Raises
        ------
        ConflictError
            Something else is remembered there, or the search is finished.
        WriteError
            The journal cannot be written.
        """
        if self._result is not None:
            raise ConflictError(f"search {self.spec.key[:12]} is finished.")
        if (kind, key) in self._journal:
            if self._journal[kind, key] != value:
                raise ConflictError(
                    f"search {self.spec.key[:12]} remembers another {kind} {key}: it "
                    "does not repeat itself. Remove its folder and search again."
                )
            return
        self._head = digest_json([self._head, kind, key, value])
        line = canonical_json([kind, key, value, self._head])
        try:
            stream = self._stream or _open_journal(self.path)
            self._stream = stream
            stream.write(line + b"\n")
            stream.flush()
        except OSError as error:
            raise write_error(self.path / _JOURNAL, error) from error
        self._journal[kind, key] = value

    def finish(
        self,
        result: Mapping[str, Any],
        *,
        candidates: int,
        asked: int,
        engines: Sequence[object] = (),
        now: Clock = utc_now,
    ) -> LedgerEntry:
        """Keep the result, tell the ledger, and return the entry.

        Parameters
        ----------
        result
            JSON data; it is private and may name wordings, never text of a case.
        candidates
            Wordings that were scored, the parent not counted: what the search tried.
        asked
            Answers that scoring them took.
        engines
            What was asked of each engine, the answering one first: no part of the
            result, since it depends on what was stored before.

        Raises
        ------
        WriteError
            It cannot be written.
        LedgerError
            The ledger is broken.
        """
        data = {
            "spec": asdict(self.spec),
            "candidates": candidates,
            "asked": asked,
            "engines": list(engines),
            "journal": self._head,
            "result": dict(result),
        }
        text = canonical_json({"digest": digest_json(data), **data})
        write_atomic(self.path / _RESULT, text + b"\n", mode=0o600)
        kept = json.loads(text)
        self._result, self._engines = kept["result"], kept["engines"]
        return self._record(data, now)

    def close(self) -> None:
        """Close the journal."""
        if self._stream is not None:
            self._stream.close()

    def read(self, now: Clock) -> None:
        """Read what is there of the search; see `open_search`."""
        self._read_spec()
        self._read_journal()
        try:
            text = read_text(self.path / _RESULT)
        except DataError:
            if (self.path / _RESULT).exists():
                raise
            return
        data = _parse(text, self.path / _RESULT)
        told = data.pop("digest", None)
        sound = told == digest_json(data) and data.get("spec") == _plain(self.spec)
        if not sound or data.get("journal") != self._head:
            raise _changed(self.path / _RESULT)
        entries = _entries(self._workspace, self.spec.key)
        if entries and told not in [one.payload.get("result") for one in entries]:
            raise _changed(self.path / _RESULT)
        self._result, self._engines = data["result"], data.get("engines", ())
        # A kill may come between the result and its entry.
        self._record(data, now)

    def _record(self, data: Mapping[str, Any], now: Clock) -> LedgerEntry:
        told, spec = digest_json(data), self.spec
        for entry in _entries(self._workspace, spec.key):
            if entry.payload.get("result") == told:
                return entry
        event = Event(
            action="searched",
            subject=spec.prompt,
            reason=(
                f"{spec.optimizer} scored {data['candidates']:,} "
                f"{'candidate' if data['candidates'] == 1 else 'candidates'} on "
                f"{spec.cohort}"
            ),
            payload={
                "key": spec.key,
                "result": told,
                "prompt_digest": spec.prompt_digest,
                "cohort": spec.cohort,
                "cohort_digest": spec.cohort_digest,
                "reference": spec.reference,
                "reference_digest": spec.reference_digest,
                "engine": spec.engine,
                "asker": spec.asker,
                "optimizer": spec.optimizer,
                "settings": digest_json(dict(spec.settings)),
                "libraries": dict(spec.libraries),
                "budget": spec.budget,
                "splits": spec.splits,
                "seed": spec.seed,
                "candidates": data["candidates"],
                "asked": data["asked"],
            },
        )
        return append_event(self._workspace.ledger, event, self._actor, now=now)

    def _read_spec(self) -> None:
        path = self.path / _SPEC
        if not path.exists():
            write_atomic(path, canonical_json(asdict(self.spec)) + b"\n", mode=0o600)
        elif _parse(read_text(path), path) != _plain(self.spec):
            raise _changed(path)

    def _read_journal(self) -> None:
        """Read the journal; what a kill left of its last line is cut off."""
        path = self.path / _JOURNAL
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}.") from error
        whole = raw.rfind(b"\n") + 1
        for line in raw[:whole].splitlines():
            try:
                kind, key, value, head = json.loads(line)
                follows = head == digest_json([self._head, kind, key, value])
            except (ValueError, TypeError) as error:
                raise _changed(path) from error
            if not follows:
                raise _changed(path)
            self._journal[kind, key], self._head = value, head
        if whole < len(raw):
            os.truncate(path, whole)


_SPEC, _JOURNAL, _RESULT = "search.json", "journal.jsonl", "result.json"


@contextmanager
def open_search(
    workspace: WorkspacePaths,
    spec: SearchSpec,
    actor: Actor,
    *,
    restart: bool = False,
    now: Clock = utc_now,
) -> Iterator[SearchFolder]:
    """Hold the folder of a search for the length of the block.

    Parameters
    ----------
    actor
        Who searches, as the ledger shall name them.
    restart
        Whether what an unfinished search left is removed first; a finished one stays.

    Raises
    ------
    ConflictError
        Another process holds the same search.
    DataError
        The folder was changed by hand.
    WriteError
        It cannot be written.
    LedgerError
        The ledger is broken.
    """
    read_ledger(workspace.ledger)
    place = workspace.open_private() / "optimize"
    make_folder(place, mode=0o700)
    name = spec.key[:_KEY_SHOWN]
    path = place / name
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(place / f"{name}.lock", wait=False))
        except ConflictError as error:
            raise ConflictError(
                f"this search of {spec.prompt} on {spec.cohort} is under way in "
                "another process. Wait for it, or stop it."
            ) from error
        if restart and not (path / _RESULT).exists():
            shutil.rmtree(path, ignore_errors=True)
        make_folder(path, mode=0o700)
        folder = SearchFolder(workspace, spec, path, actor)
        folder.read(now)
        try:
            yield folder
        finally:
            folder.close()


def read_finished(
    workspace: WorkspacePaths, entry: LedgerEntry
) -> Mapping[str, Any] | None:
    """Return what is kept of the finished search that an entry of the ledger tells of.

    Parameters
    ----------
    entry
        One with the action ``"searched"``.

    Returns
    -------
    Mapping[str, Any] | None
        ``spec``, ``candidates``, ``asked``, ``engines`` and ``result``; None where the
        folder of the search was removed, or a later search has replaced its result.

    Raises
    ------
    DataError
        The result was changed by hand.
    """
    key = str(entry.payload.get("key", ""))
    path = workspace.private / "optimize" / key[:_KEY_SHOWN] / _RESULT
    if not key.isalnum() or not path.exists():
        return None
    data = _parse(read_text(path), path)
    told = data.pop("digest", None)
    known = [one.payload.get("result") for one in _entries(workspace, key)]
    if told != digest_json(data) or told not in known:
        raise _changed(path)
    return data if told == entry.payload.get("result") else None


def _open_journal(path: Path) -> BufferedRandom:
    handle = os.open(path / _JOURNAL, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    return os.fdopen(handle, "a+b")


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise _changed(path) from error
    if not isinstance(data, dict):
        raise _changed(path)
    return data


def _plain(spec: SearchSpec) -> Any:
    """Return `spec` as it is read from a file."""
    return json.loads(canonical_json(asdict(spec)))


def _entries(workspace: WorkspacePaths, key: str) -> list[LedgerEntry]:
    return [
        entry
        for entry in read_ledger(workspace.ledger)
        if entry.action == "searched" and entry.payload.get("key") == key
    ]


def _changed(path: Path) -> DataError:
    return DataError(
        f"{path} was changed by something other than a search. Remove its folder, "
        f"{path.parent.name}, and search again."
    )
