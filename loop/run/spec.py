"""What one run is: everything that decides its outcomes, in one frozen record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from loop.core.digests import digest_json

BLANK_LINES = "blank_lines"
"""Parameter of a further draw: how many blank lines more its prompt has between two
paragraphs. Draws before this was done, and engines without chance, have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One prompt version x one cohort x one engine with parameters.

    Names are for people; digests are what counts. The spec is in the store before the
    first prompt is asked, and in the run's manifest once it has finished.
    """

    prompt: str
    """Resolved reference of the prompt version, for example ``"extractor@v3"``."""

    prompt_digest: str
    """Digest of what changes the version's behaviour, 64 hex characters."""

    contract: str
    """Output contract and version of its parser, for example ``"label_values/1"``."""

    cohort: str
    """Cohort name, for example ``"openi_dev"``."""

    cohort_digest: str
    """Digest over the cohort's case ids and text digests."""

    engine: str
    """Engine name, for example ``"rules"``."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Engine parameters as JSON data, for example ``{"temperature": 0.0}``."""

    reference: int | None = None
    """Number of the newest reference version when the run began; None without one."""

    reference_digest: str | None = None
    protocol_digest: str | None = None
    """Sha256 of the bytes of labels/protocol.yaml when the run began; None without."""

    limit: int | None = None
    """Only the first so many items of the cohort; None for all."""

    draw: int = 0
    """Number of the repeat: the same question asked again, never from the cache."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit must be >= 1, got {self.limit}")
        if self.draw < 0:
            raise ValueError(f"draw must be >= 0, got {self.draw}")

    @property
    def digest(self) -> str:
        """Sha256 over the whole spec, 64 hex characters."""
        return digest_json(asdict(self))


def drawn(spec: RunSpec, draw: int, *, spaced: bool) -> RunSpec:
    """Return the spec of one draw: its own number, seed and, where told, spacing."""
    if draw == 0:
        return spec
    parameters = {**spec.parameters, "seed": spec.parameters["seed"] + draw}
    if spaced:
        parameters[BLANK_LINES] = draw
    return replace(spec, draw=draw, parameters=parameters)


def undrawn(spec: RunSpec) -> dict[str, Any]:
    """Return the parameters of the draw 0 that `spec` is a further draw of."""
    parameters = dict(spec.parameters)
    if "seed" in parameters:
        parameters["seed"] -= spec.draw
    parameters.pop(BLANK_LINES, None)
    return parameters


def spec_data(spec: RunSpec) -> dict[str, Any]:
    """Return `spec` as JSON data; `read_spec` is its inverse."""
    data = asdict(spec)
    data["parameters"] = dict(spec.parameters)
    return data


def read_spec(data: Mapping[str, Any]) -> RunSpec:
    """Return the spec that `spec_data` wrote.

    Raises
    ------
    TypeError
        A field is missing or unknown.
    """
    return RunSpec(**data)


def run_id(created: datetime, digest: str) -> str:
    """Return an id that sorts by time: UTC second of creation and a short digest.

    Examples
    --------
    >>> run_id(datetime(2026, 11, 21, 22, 33, 1, tzinfo=UTC), "ab12cd34")
    '20261121-223301-ab12cd'
    """
    return f"{created.astimezone(UTC):%Y%m%d-%H%M%S}-{digest[:6]}"
