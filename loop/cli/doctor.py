"""The verb ``doctor``: what works here, what does not, and what to do about it."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

import loop
from loop import __version__
from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    megabytes,
    open_workspace,
    print_json,
    say,
)
from loop.cli.console import note as tell
from loop.core.check_findings import Finding, FindingSeverity, broken, note, ok
from loop.core.config import Config, read_config
from loop.core.digests import digest_json
from loop.core.errors import LoopError, WorkspaceError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths, bundled
from loop.engines.base import masked
from loop.engines.vllm.environment import find_vllm
from loop.engines.vllm.running import list_running
from loop.labels.taxonomy import TAXONOMY, read_taxonomy
from loop.release.state import list_demos, list_state
from loop.run.asking import EngineOptions, choose_engine, opened
from loop.run.store import open_store

_STATES = {
    FindingSeverity.OK: "ok",
    FindingSeverity.NOTE: "remark",
    FindingSeverity.BROKEN: "broken",
}
"""Severity of a finding to its word; a remark is what works can do without."""

_OLDEST = (3, 11)


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("doctor")(doctor)


def doctor(
    engine: Annotated[
        str | None,
        typer.Option("--engine", "-e", help="Open this engine too, and probe it."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the workspace, its settings and the engines.

    Exits with 1 if something is broken. No case is read and none is sent anywhere.
    A missing vLLM is only a note, unless --engine asks for it.
    """
    findings = []
    for finding in _examine(workspace, engine):
        findings.append(finding)
        if not as_json:
            _show(finding)
    healthy = all(finding.holds for finding in findings)
    if as_json:
        found = [
            {"subject": one.check, "state": _STATES[one.severity], "text": one.what}
            for one in findings
        ]
        print_json({"ok": healthy, "findings": found})
    if not healthy:
        raise typer.Exit(1)


def _show(finding: Finding) -> None:
    first, *more = finding.what.splitlines()
    say(f"{_STATES[finding.severity]:<7} {finding.check:<12} {first}")
    for line in more:
        say(" " * 21 + line)


def _examine(explicit: Path | None, engine: str | None) -> Iterator[Finding]:
    """Yield the findings; what needs a workspace only where there is one."""
    yield _check_python()
    yield _name_parts()
    try:
        place = open_workspace(explicit)
    except WorkspaceError as error:
        yield broken("workspace", str(error))
        return
    yield ok("workspace", str(place.root))
    yield _check_private(place)
    yield _check_private_files(place)
    yield _check_store(place)
    yield _check_taxonomy(place)
    yield _list_state(place)
    yield _list_outside(place)
    try:
        config = read_config(place)
    except LoopError as error:
        yield broken("config", str(error))
        config = Config()
    else:
        yield _describe_config(place, config)
    yield from _check_keys(config)
    yield from _check_server(config)
    yield _check_vllm(place, config)
    yield _look_for_gpu()
    if engine is not None:
        yield _open_engine(place, engine)


def _check_python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _OLDEST:
        return broken("python", f"{version}; ranloop needs 3.11 or newer")
    return ok("python", f"{version}, {sys.executable}")


def _name_parts() -> Finding:
    """Return what is called how: the package and the command have different names."""
    command = shutil.which("ranloop") or f"not on PATH; {sys.executable} -m loop is it"
    lines = (
        f"ranloop {__version__}; in Python: import loop ({Path(loop.__file__).parent})",
        f"command ranloop: {command}",
        f"prompts and labels that ship: {bundled()}",
    )
    return ok("ranloop", "\n".join(lines))


def _check_private_files(workspace: WorkspacePaths) -> Finding:
    """Return whether keys and users can be read by their owner alone."""
    paths = [workspace.private / "users.yaml", workspace.store]
    with suppress(OSError):
        paths += sorted(workspace.keys.iterdir())
    open_to_all = []
    for path in paths:
        with suppress(OSError):
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                open_to_all.append(path)
    if not open_to_all:
        return ok("permissions", "keys, users and store are for their owner alone")
    lines = "\n".join(f"chmod 600 {shlex.quote(str(path))}" for path in open_to_all)
    return broken("permissions", f"others may read what is private. Close it:\n{lines}")


def _check_taxonomy(workspace: WorkspacePaths) -> Finding:
    """Return whether the labels can be read, and how many there are."""
    try:
        taxonomy = read_taxonomy(workspace.labels)
    except LoopError as error:
        return broken("taxonomy", str(error))
    text = f"{workspace.labels / TAXONOMY}, {len(taxonomy.labels)} labels"
    return ok("taxonomy", text)


def _list_state(workspace: WorkspacePaths) -> Finding:
    """Return what the private folder holds, with its size and what it is for."""
    try:
        parts = list_state(workspace)
    except OSError as error:
        return broken("state", f"{workspace.private}: {error.strerror}")
    lines = [
        f"{megabytes(one.size):>10}  {one.path.name:<15} {one.purpose}"
        for one in parts
        if one.path.is_relative_to(workspace.private)
    ]
    if not lines:
        return ok("state", "nothing is kept yet")
    lines.append("`ranloop clean` shows what of it may go")
    return ok("state", "\n".join([str(workspace.private), *lines]))


def _list_outside(workspace: WorkspacePaths) -> Finding:
    """Return what this machine keeps outside of the workspace, and what runs."""
    with suppress(OSError):
        lines = [
            f"{one.path}  {one.purpose}"
            for one in list_state(workspace)
            if not one.path.is_relative_to(workspace.private)
        ]
        lines += [f"{one.path}  {one.purpose}" for one in list_demos()]
        lines += [
            f"a vLLM server runs: {one}"
            for one in list_running(workspace.private / "serve")
        ]
        if lines:
            return ok("outside", "\n".join(lines))
    return ok("outside", "nothing is kept outside of the workspace")


def _check_private(workspace: WorkspacePaths) -> Finding:
    """Return whether the folder of clinical text is private and can be written."""
    folder = workspace.private
    if not folder.exists():
        return ok("private", f"{folder} is made when it is needed")
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        text = f"{folder} can be read by others. Close it:\nchmod 700 {folder}"
        return broken("private", text)
    effective = os.access in os.supports_effective_ids
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=effective):
        text = f"{folder} cannot be written. Correct its owner, or:\nchmod 700 {folder}"
        return broken("private", text)
    return ok("private", str(folder))


def _check_store(workspace: WorkspacePaths) -> Finding:
    """Return whether the store of answers and runs can be used."""
    if not os.path.exists(workspace.store):
        return ok("store", f"{workspace.store} is made when it is needed")
    try:
        with open_store(workspace) as store:
            runs = len(store.find_runs())
    except LoopError as error:
        return broken("store", str(error))
    return ok("store", f"{workspace.store}, {counted(runs, 'run')}")


def _describe_config(workspace: WorkspacePaths, config: Config) -> Finding:
    """Return which settings are set, and which hosts may receive case text."""
    hosts = ", ".join(config.hosts) or "none besides this machine"
    lines = [f"hosts that may receive case text: {hosts}"]
    if workspace.config.exists():
        fields = ", ".join(_name_fields(config.model_dump(exclude_unset=True)))
        lines.insert(0, f"{workspace.config} sets {fields or 'nothing'}")
    else:
        lines.insert(0, f"no {workspace.config}: defaults")
    return ok("config", "\n".join(lines))


def _name_fields(data: object, name: str = "") -> Iterator[str]:
    """Yield the dotted names of what is set: values may be private."""
    deep = ("", "engines", "engines.openai", "engines.vllm")
    if isinstance(data, dict) and name in deep:
        for key, value in data.items():
            yield from _name_fields(value, f"{name}.{key}".strip("."))
    else:
        yield name


def _check_keys(config: Config) -> Iterator[Finding]:
    """Yield whether the variables of API keys are set, never what to."""
    engines = config.engines
    named: dict[str, list[str]] = {}
    for scheme, serving in (("openai", engines.openai), ("vllm", engines.vllm)):
        named.setdefault(serving.key_env, []).append(scheme)
    for variable, schemes in named.items():
        state = "is set" if os.environ.get(variable) else "is not set"
        text = f"${variable} {state} (for {' and '.join(schemes)})"
        yield ok("API key", text)


def _check_server(config: Config) -> Iterator[Finding]:
    """Yield whether a server that the config names answers, if it is on this machine.

    Nothing is sent to it; others are asked only with ``--engine``.
    """
    if "url" not in config.engines.openai.model_fields_set:
        return
    try:
        found = urlsplit(config.engines.openai.url)
        host, port = found.hostname or "", found.port
    except ValueError:
        yield broken("server", "engines.openai.url is not valid. Correct it.")
        return
    if host not in ("127.0.0.1", "localhost", "::1"):
        text = f"{host} is not asked here; --engine openai:MODEL probes it"
        yield note("server", text)
        return
    port = port or (443 if found.scheme == "https" else 80)
    try:
        socket.create_connection((host, port), timeout=2.0).close()
    except OSError:
        text = f"nothing answers at {host}:{port}. Start it, or correct the url"
        yield note("server", f"{text} under engines: openai: in the config")
    else:
        yield ok("server", f"something answers at {host}:{port}")


def _check_vllm(workspace: WorkspacePaths, config: Config) -> Finding:
    try:
        found = find_vllm(config.engines.vllm.python, config=workspace.config)
    except LoopError as error:
        return note("vLLM", str(error))
    return ok("vLLM", f"{found.distribution} {found.version}, {found.python}")


def _look_for_gpu() -> Finding:
    """Return what ``nvidia-smi`` lists, where there is one."""
    if shutil.which("nvidia-smi") is None:
        return note("GPU", "none seen: there is no nvidia-smi")
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return note("GPU", "none seen: nvidia-smi does not answer")
    return ok("GPU", listed) if listed else note("GPU", "none listed")


def _open_engine(workspace: WorkspacePaths, engine: str) -> Finding:
    """Return whether `engine` opens: that includes its start-up probe."""
    try:
        chosen = choose_engine(workspace, engine, EngineOptions(tell=tell))
        with opened(chosen.engine) as ready:
            digest = digest_json(ready.identity())
    except LoopError as error:
        return broken("engine", f"{masked(engine)}: {error}")
    text = f"{engine} is there and does what it is asked; identity {digest[:12]}"
    return ok("engine", text)
