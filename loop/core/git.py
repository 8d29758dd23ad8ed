"""Git, where the workspace is a repository: its state, commits and tags of acts.

The ledger is the record; git is a copy of it that people know how to read. An act has
happened when its ledger entry is written, so whatever git cannot do is a remark in the
log and never an error. Hooks run and commits are signed as the repository has it set
up; a file that a hook changed is put back, since the ledger has its digest. A
workspace in a folder of another repository is none of that repository's business.
"""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from loop.core.config import read_config
from loop.core.errors import LoopError
from loop.core.files import locked, write_atomic
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import printable

_LOG = logging.getLogger("loop.git")

_GIT_S = 10.0
"""How long git may take to answer, seconds."""

_HOOKS_S = 120.0
"""How long hooks and whoever signs may take, seconds."""

_QUIET = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
)
"""Nothing that waits, or goes on in the background."""

_SILENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}

_ELSEWHERE = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_PREFIX",
    }
)
"""What a git that runs ranloop, as in a hook, says of itself and not of us."""


class GitState(NamedTuple):
    """What git says of a folder."""

    revision: str | None
    """Commit hash; None outside a repository or without git."""

    dirty: bool | None
    """Whether tracked files differ from the commit; None if unknown."""


class GitFailure(LoopError):
    """Git did not do what it was asked; the act itself is done and recorded."""


def read_git(root: Path) -> GitState:
    """Return revision and dirty flag of the repository that holds `root`."""
    try:
        revision = _git(root, "rev-parse", "--verify", "HEAD")
    except GitFailure:
        return GitState(None, None)
    try:
        status = _git(root, "status", "--porcelain", "--untracked-files=no")
    except GitFailure:
        return GitState(revision, None)
    return GitState(revision, bool(status))


def commit_paths(
    root: Path, paths: Sequence[Path], message: str, author: str
) -> str | None:
    """Commit exactly `paths` as they are now, by `author`, and return the commit.

    Other files, changed or staged, stay as they are. Where nothing changed since the
    last commit, that one is returned.

    Parameters
    ----------
    root
        The workspace.
    paths
        Files and folders inside it.
    author
        Name of the person who acts; also the committer, where git knows of none.

    Returns
    -------
    str | None
        None where the workspace is not the root of a repository, without git, with
        ``git: off`` in ``.ranloop/config.yaml``, where git ignores the paths, and where
        it failed, as when a hook refuses: then the log says why.
    """
    try:
        folder = _repository(root, paths)
        if folder is None:
            return None
        with locked(folder / "ranloop.lock"):
            kept = _contents(paths)
            try:
                made = _commit(root, [str(path) for path in paths], message, author)
            finally:
                # Hooks that reformat files refuse the commit when they did.
                changed = _put_back(WorkspacePaths(root), kept)
            return None if changed else made
    except LoopError as error:
        _LOG.warning(
            "%s What was done is recorded in the ledger; git has no commit of "
            "it. Commit the files yourself, or write `git: off` in "
            ".ranloop/config.yaml.",
            error,
        )
        return None


def tag(
    root: Path,
    name: str,
    message: str,
    *,
    revision: str = "HEAD",
    tagger: str = "ranloop",
) -> str | None:
    """Tag `revision` as `name`, and return the name.

    Parameters
    ----------
    tagger
        Name for the tag, where git knows of none.

    Returns
    -------
    str | None
        None where `commit_paths` returns None, and where another commit has that tag:
        the log says so.
    """
    try:
        if _repository(root, ()) is None:
            return None
        target = _git(root, "rev-parse", "--verify", f"{revision}^{{commit}}")
        if _tagged(root, name) != target:
            environment = _identity(root, tagger)
            words = ("tag", "-a", "-m", message, "--", name, target)
            _git(root, *words, patience_s=_HOOKS_S, **environment)
    except LoopError as error:
        _LOG.warning("%s The tag %s was not made: make it yourself.", error, name)
        return None
    return name


def _tagged(root: Path, name: str) -> str:
    """Return the commit that has that tag; empty if there is no such tag."""
    try:
        return _git(root, "rev-parse", "--verify", f"refs/tags/{name}^{{commit}}")
    except GitFailure:
        return ""


def _repository(root: Path, paths: Sequence[Path]) -> Path | None:
    """Return git's folder if git is to be used for `paths`; None if not."""
    if read_config(WorkspacePaths(root)).git == "off":
        return None
    try:
        folder = _git(root, "rev-parse", "--absolute-git-dir")
    except GitFailure:
        return None
    top = find_repository(root)
    if top is None or not top.samefile(root) or _is_ignored(root, paths):
        return None
    return Path(folder)


def find_repository(folder: Path) -> Path | None:
    """Return the root of the repository in which `folder` lies; None outside of any."""
    try:
        if _git(folder, "rev-parse", "--is-inside-work-tree") == "true":
            return Path(_git(folder, "rev-parse", "--show-toplevel"))
    except GitFailure:
        pass
    return None


def _contents(paths: Sequence[Path]) -> Mapping[Path, bytes]:
    """Return what is in the files at and below `paths`."""
    every = (each for path in paths for each in (path, *path.rglob("*")))
    try:
        return {path: path.read_bytes() for path in every if path.is_file()}
    except OSError as error:
        raise GitFailure(f"cannot read {error.filename}: {error.strerror}.") from error


def _put_back(workspace: WorkspacePaths, kept: Mapping[Path, bytes]) -> bool:
    """Write files that a hook changed as they were, say so, and return whether it did.

    The ledger grows while others act: it is never written back.
    """
    changed = [
        path
        for path, before in kept.items()
        if not path.is_file() or not path.read_bytes().startswith(before)
    ]
    for path in changed:
        if path != workspace.ledger:
            write_atomic(path, kept[path])
    if changed:
        _LOG.warning(
            "a hook of git changed %s, of which the ledger has the digest: it was put "
            "back. If git has a commit, it may hold what the hook made of it. Let that "
            "hook leave out the files of the workspace, and commit them again.",
            changed[0],
        )
    return bool(changed)


def _is_ignored(root: Path, paths: Sequence[Path]) -> bool:
    """Whether git was told to leave one of `paths` alone."""
    if not paths:
        return False
    try:
        # It refuses to run where names are taken as they are; these are absolute.
        names = [str(path.absolute()) for path in paths]
        _git(root, "check-ignore", "--quiet", "--", *names, GIT_LITERAL_PATHSPECS="0")
    except GitFailure:
        return False
    return True


def _commit(root: Path, paths: Sequence[str], message: str, author: str) -> str:
    """Stage `paths` and commit them alone, unless they are as in the last commit."""
    _git(root, "add", "--all", "--", *paths)
    if _git(root, "status", "--porcelain", "--", *paths):
        name = _person(author)
        _git(
            root,
            *("commit", "--quiet", "--only"),
            *("--cleanup=whitespace", f"--message={message}"),
            "--",
            *paths,
            patience_s=_HOOKS_S,
            GIT_AUTHOR_NAME=name,
            GIT_AUTHOR_EMAIL=_email(root, name),
            **_identity(root, name),
        )
    return _git(root, "rev-parse", "--verify", "HEAD")


def _identity(root: Path, name: str) -> Mapping[str, str]:
    """Return the committer to name, where the person told git of none.

    Whoever told git to go by its settings only is named by nobody else.
    """
    try:
        words = ("config", "--type=bool", "--default=false", "--get")
        if _git(root, *words, "user.useConfigOnly") == "true":
            return {}
        _git(root, "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT")
    except GitFailure:
        return {"GIT_COMMITTER_NAME": _person(name), "GIT_COMMITTER_EMAIL": ""}
    return {}


def _email(root: Path, name: str) -> str:
    """Return the address git has for that person; empty for anybody else."""
    try:
        known = _git(root, "config", "user.name")
        return _git(root, "config", "user.email") if known == name else ""
    except GitFailure:
        return ""


def _person(name: str) -> str:
    """Return `name` without what git does not allow in one."""
    kept = "".join(" " if char in "<>\n\r\0" else char for char in name)
    return kept.strip(" .,:;\"'") or "unnamed"


def _git(
    root: Path, *arguments: str, patience_s: float = 0.0, **environment: str
) -> str:
    """Return git's answer, for which `_GIT_S` or so long is waited.

    Raises
    ------
    GitFailure
        There is no git or no repository, or git refused or took too long.
    """
    inherited = {k: v for k, v in os.environ.items() if k not in _ELSEWHERE}
    try:
        done = subprocess.Popen(
            ["git", *_QUIET, "-C", str(root), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=inherited | _SILENT | environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise GitFailure("git could not be started.") from error
    answer, complaint = _wait(done, max(patience_s, _GIT_S))
    if done.returncode:
        raise GitFailure(f"git {arguments[0]} failed: {_fault(complaint)}.")
    return answer.decode("utf-8", "replace").strip()


def _wait(git: subprocess.Popen[bytes], patience_s: float) -> tuple[bytes, bytes]:
    """Return what git printed; stop it when it takes too long."""
    try:
        return git.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired as error:
        # Asked to stop, git takes its lock file along; killed, it would leave it.
        git.terminate()
        try:
            git.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            git.kill()
        raise GitFailure(f"git took longer than {patience_s:.0f} s.") from error


def _fault(complaint: bytes) -> str:
    """Return the line in which git says what is wrong, as a sentence."""
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    told = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    said = (told or lines or ["it does not say why"])[0]
    return printable(said.removeprefix("fatal: ").removeprefix("error: ")).rstrip(".")
