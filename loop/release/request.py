"""What is asked of which engine, where a prompt or a release is named."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from loop.core.paths import Workspace
from loop.prompts.version import PromptVersion
from loop.release.candidate import engine_facts
from loop.release.load import Release, load_release
from loop.run.manifest import read_manifest

ENGINE = "rules"
"""Engine that is asked where neither the caller nor a release names one."""


class RunRequest(NamedTuple):
    """A prompt and the engine it is asked of, before a run is prepared."""

    prompt: str | PromptVersion
    engine: str
    parameters: Mapping[str, Any]
    """Of ``temperature``, ``max_tokens`` and ``seed`` those that are known."""

    release: Release | None = None
    """The release it is from; it has been verified."""


def find_request(
    place: Workspace,
    prompt: str | None = None,
    release: str | None = None,
    *,
    engine: str | None = None,
    parameters: Mapping[str, Any] = MappingProxyType({}),
) -> RunRequest:
    """Return what to ask of what; a release is verified first.

    Parameters
    ----------
    prompt
        Reference of a version, for example ``"extractor@v7"``; not read here.
    release
        Name of a release, which brings its prompt, engine and parameters.
    engine
        Asked instead of the release's; default ``"rules"`` without a release.
    parameters
        Take precedence over those of the release.

    Raises
    ------
    DataError
        The release does not hold.
    """
    if release is None:
        return RunRequest(prompt or "", engine or ENGINE, parameters)

    found = load_release(place, release)
    frozen = found.facts.engine
    known: dict[str, Any] = {
        name: frozen.parameters[name]
        for name in ("temperature", "max_tokens", "seed")
        if name in frozen.parameters
    }
    return RunRequest(
        prompt=found.version,
        engine=engine or frozen.name,
        parameters={**known, **parameters},
        release=found,
    )


def is_released_engine(place: Workspace, release: Release, run_id: str) -> bool:
    """Whether a run asked the very engine of a release, with the same parameters."""
    asked = engine_facts(read_manifest(place, run_id))
    return asked.digest == release.facts.engine.digest


def engine_remark(release: Release) -> str:
    """Return that a release was asked of another engine than it was measured with."""
    return (
        f"This is not the engine that {release.name} was released with "
        f"({release.facts.engine.name}, or its settings): what the release says "
        "of its answers does not hold for these."
    )
