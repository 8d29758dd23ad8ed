"""An earlier run's stored completions, in the form the ``replay`` engine asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from loop.core.errors import DataError, EngineError
from loop.core.paths import Workspace
from loop.core.records import Completion, Prompt
from loop.labels.cohort import Cohort
from loop.prompts.version import CallPlan, PromptVersion
from loop.run.manifest import find_run, read_manifest
from loop.run.store import open_store

_KEY = 32
"""Bytes of one completion key."""


class StoredRun:
    """The answers of one run; a context manager that holds the store open.

    Prompts must be looked for in cohort order, each at most once: the answers are read
    as one stream, however long the run.
    """

    def __init__(self, workspace: Workspace, run_id: str, calls: Sequence[str]) -> None:
        """Prepare to read `run_id`, whose items took the `calls` of their plan.

        Raises
        ------
        DataError
            The run's manifest is missing or was changed.
        """
        self.run_id = run_id
        self._workspace = workspace
        self._place = {call: number for number, call in enumerate(calls)}
        manifest = read_manifest(workspace, run_id)
        try:
            self.parameters: Mapping[str, Any] = dict(manifest["spec"]["parameters"])
            self._identity: Mapping[str, object] = dict(manifest["engine_identity"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"the manifest of run {run_id} does not say which engine answered; "
                "something other than ranloop changed it. Run the same `ranloop run` "
                "again for a new one."
            ) from error
        self._open = ExitStack()

    def identity(self) -> Mapping[str, object]:
        """Return the identity of the engine that answered, through other replays."""
        identity = self._identity
        while isinstance(source := identity.get("source"), Mapping):
            identity = source
        return identity

    def __enter__(self) -> StoredRun:
        self._store = self._open.enter_context(open_store(self._workspace))
        self._rows = self._store.read_keys(self.run_id)
        self._item, self._keys = "", b""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def find(self, prompts: Sequence[Prompt]) -> list[Completion | None]:
        """Return what was answered to each prompt; None where nothing is stored."""
        keys = [self._key(prompt) for prompt in prompts]
        found = self._store.find_completions([key for key in keys if key])
        return [found.get(key) for key in keys]

    def _key(self, prompt: Prompt) -> bytes:
        """Return the key under which a prompt's answer is stored, or nothing."""
        if prompt.item.id != self._item:
            self._advance(self._rows, prompt.item.id)
        start = self._place[prompt.frame.call] * _KEY
        return self._keys[start : start + _KEY]

    def _advance(self, rows: Iterator[tuple[str, bytes]], wanted: str) -> None:
        """Read on to the item `wanted`; without its keys where it is not there."""
        self._item, self._keys = wanted, b""
        for item, keys in rows:
            if item == wanted:
                self._keys = keys
                return


def find_archive(
    workspace: Workspace, ref: str, version: PromptVersion, cohort: Cohort
) -> StoredRun:
    """Return the stored answers of the run `ref`, if it asked the same questions.

    Raises
    ------
    DataError
        There is no such finished run.
    EngineError
        It asked another prompt version or other cases.
    """
    if not ref:
        raise EngineError(
            "a replay needs a run: write replay:RUN, with an id that `ranloop run` "
            "gave, or replay:latest."
        )
    record = find_run(workspace, ref)
    if record.spec.prompt_digest != version.digest:
        raise EngineError(
            f"run {record.id} asked {record.spec.prompt} "
            f"({record.spec.prompt_digest[:12]}), not {version.ref} "
            f"({version.digest[:12]}). A replay gives an earlier run's answers to the "
            "same prompt; ask an engine for another one."
        )
    if record.spec.cohort_digest != cohort.digest:
        raise EngineError(
            f"run {record.id} asked the cases of {record.spec.cohort} "
            f"({record.spec.cohort_digest[:12]}), not those {cohort.name} holds now "
            f"({cohort.digest[:12]}). Ask an engine for these cases."
        )
    return StoredRun(workspace, record.id, _calls(version))


def _calls(version: PromptVersion) -> tuple[str, ...]:
    """Return the names of the calls of one item, as the plan orders them."""
    if version.plan is CallPlan.JOINT:
        return ("joint",)
    return version.labels
