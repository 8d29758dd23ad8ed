"""Files of ``labels/`` that ship with ranloop: as copied, as here, as shipped now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum

from loop import __version__
from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_bytes
from loop.core.files import locked, write_atomic
from loop.core.git import commit_paths
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.labels.error_categories import ERRORS
from loop.labels.taxonomy import TAXONOMY

_FOLDERS = ("cues", "crosswalks")


class CopyState(StrEnum):
    """How a file of ``labels/`` compares with the shipped one."""

    SAME = "same"
    UPDATE = "update"
    """Not edited here, and another one ships now."""

    NEW = "new"
    """It ships now and did not when the workspace was made."""

    EDITED = "edited"
    """Edited here; the shipped one is as it was."""

    BOTH = "edited, and another ships"
    """Edited here, and another one ships now: a person has to join them."""

    UNKNOWN = "differs"
    """The workspace does not say what it began with: taken as edited."""

    REMOVED = "removed"
    """Removed here, and left so."""


_TAKEN = (CopyState.UPDATE, CopyState.NEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsCopy:
    """One file of ``labels/`` that ships with ranloop."""

    name: str
    """Its path within ``labels/``."""

    state: CopyState
    here: str
    """Its text; empty where there is none."""

    shipped: str

    @property
    def taken(self) -> bool:
        """Whether an upgrade puts the shipped one in its place."""
        return self.state in _TAKEN

    @property
    def diff(self) -> str:
        """What the shipped one would change, as a unified diff; empty for the same."""
        lines = unified_diff(
            self.here.splitlines(),
            self.shipped.splitlines(),
            f"labels/{self.name} (here)",
            f"labels/{self.name} (ranloop {__version__})",
            lineterm="",
        )
        return "\n".join(lines)


def digest_copied(workspace: WorkspacePaths) -> dict[str, str]:
    """Return the sha256 of each file of ``labels/`` that is as it ships.

    For the first ledger entry of a workspace, so that `compare_labels` can tell a file
    that was edited from one that is old.
    """
    return {
        name: digest_bytes(raw)
        for name, raw in _read_shipped().items()
        if _read(workspace, name) == raw
    }


def compare_labels(workspace: WorkspacePaths) -> tuple[LabelsCopy, ...]:
    """Return the files of ``labels/`` that ship with ranloop, as they are here.

    A taxonomy of one's own is not among them, and neither are crosswalks to the
    shipped one then.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    known = _read_recorded(workspace)
    rows = []
    for name, raw in _read_shipped().items():
        here = _read(workspace, name)
        own = known and TAXONOMY not in known
        if own and name not in known and not name.startswith(("cues/", ERRORS)):
            continue
        rows.append(
            LabelsCopy(
                name=name,
                state=_compare(known, name, here, raw),
                here=(here or b"").decode("utf-8", "replace"),
                shipped=raw.decode("utf-8"),
            )
        )
    return tuple(rows)


def upgrade_labels(
    workspace: WorkspacePaths, actor: Actor, *, why: str = "", now: Clock = utc_now
) -> tuple[LabelsCopy, ...]:
    """Take the files that ship now in place of those that were not edited here.

    Returns
    -------
    tuple of LabelsCopy
        Every file as it was before.

    Raises
    ------
    LedgerError
        The ledger is broken; nothing was changed.
    WriteError
        A file cannot be written. The same call goes on where it was.
    """
    lock = workspace.open_private() / "locks" / "upgrade.lock"
    with locked(lock):
        found, known = compare_labels(workspace), _read_recorded(workspace)
        for one in found:
            if one.taken:
                write_atomic(workspace.labels / one.name, one.shipped)
        now_here = digest_copied(workspace)
        changed = {
            name: digest
            for name, digest in now_here.items()
            if known.get(name) != digest
        }
        # Of an upgrade that was killed, too: written, and not recorded.
        if changed:
            _record(workspace, changed, actor, why, now)
    return found


def _record(
    workspace: WorkspacePaths,
    changed: Mapping[str, str],
    actor: Actor,
    why: str,
    now: Clock,
) -> None:
    reason = why.strip() or f"labels as they ship with ranloop {__version__}"
    event = Event(
        action="labels_upgraded",
        subject="labels",
        reason=reason,
        payload={"labels": dict(changed), "ranloop": __version__},
    )
    append_event(workspace.ledger, event, actor, now=now)
    paths = [workspace.labels / name for name in changed]
    commit_paths(workspace.root, [*paths, workspace.ledger], reason, actor.name)


def _compare(
    known: Mapping[str, str], name: str, here: bytes | None, shipped: bytes
) -> CopyState:
    copied = known.get(name)
    if here != shipped and not known:
        return CopyState.UNKNOWN
    if here is None:
        return CopyState.NEW if copied is None else CopyState.REMOVED
    if here == shipped:
        return CopyState.SAME
    if copied is None:
        return CopyState.UNKNOWN
    if digest_bytes(here) == copied:
        return CopyState.UPDATE
    return CopyState.EDITED if digest_bytes(shipped) == copied else CopyState.BOTH


def _read_recorded(workspace: WorkspacePaths) -> dict[str, str]:
    """Return the digests of the files that were copied last, as the ledger says."""
    known: dict[str, str] = {}
    for entry in read_ledger(workspace.ledger):
        if entry.seq == 1 or entry.action == "labels_upgraded":
            labels = entry.payload.get("labels")
            if isinstance(labels, Mapping):
                known |= {str(name): str(digest) for name, digest in labels.items()}
    return known


def _read_shipped() -> dict[str, bytes]:
    """Return the shipped files by their path within ``labels/``."""
    source = bundled() / "labels"
    files: Sequence[str] = [
        TAXONOMY,
        ERRORS,
        *(
            path.relative_to(source).as_posix()
            for folder in _FOLDERS
            for path in sorted((source / folder).glob("*.yaml"))
        ),
    ]
    return {name: (source / name).read_bytes() for name in files}


def _read(workspace: WorkspacePaths, name: str) -> bytes | None:
    path = workspace.labels / name
    return path.read_bytes() if path.is_file() else None
