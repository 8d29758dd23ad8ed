"""What a machine's owner decides for a workspace: ``.ranloop/config.yaml``.

The file is private like everything in ``.ranloop/``: it names hosts and paths of one
machine. Nothing in it is secret: keys come from the environment only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from loop.core.errors import DataError
from loop.core.files import read_text
from loop.core.paths import WorkspacePaths
from loop.core.yaml_files import check_model, parse_yaml

_NO_HOST = re.compile(r"^$|[\s/@*?#\\]|^[^:]*:[^:]*$|\]:")
"""What a scheme, a port, a path or a wildcard beside a host looks like."""


def _check_host(host: str) -> str:
    if _NO_HOST.search(host):
        raise ValueError(
            "give a host's name or address alone, without http://, port or wildcard"
        )
    return host


Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Host = Annotated[str, AfterValidator(_check_host)]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
KeyName = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")]
"""Capitals only: a key written here by mistake must not pass for a name."""


class _Strict(BaseModel):
    """Unknown fields are errors: a misspelt setting must not be ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelPrice(_Strict):
    """What one model costs, in `currency` for a million tokens."""

    input: Price
    """Prompt tokens that the server had to read."""

    output: Price
    cached_input: Price | None = None
    """Prompt tokens from the server's prefix cache; None for the price of input."""

    currency: str = "USD"

    def cost(self, prompt: int, output: int, cached: int = 0) -> float:
        """Return the price of so many tokens; `cached` of the prompt's are cheaper.

        A server that claims more cached tokens than there are is not believed.

        Examples
        --------
        >>> ModelPrice(input=2.0, output=8.0, cached_input=0.5).cost(1000, 100, 900)
        0.00145
        """
        reread = self.input if self.cached_input is None else self.cached_input
        cached = min(cached, prompt)
        fresh = (prompt - cached) * self.input
        return (fresh + cached * reread + output * self.output) / 1e6


class ServingSettings(_Strict):
    """How an OpenAI-compatible server is asked."""

    url: str = "http://127.0.0.1:8000/v1"
    """Where to ask when the engine's name gives no URL."""

    key_env: KeyName = "RANLOOP_API_KEY"
    """Environment variable that holds the API key; sent if it is set."""

    concurrency: Count | Literal["adaptive"] = "adaptive"
    """Requests under way at a time."""

    max_concurrency: Count = 256
    """Most requests under way with ``adaptive``."""

    timeout_s: Seconds = 300.0
    """Longest wait for one answer, seconds."""

    deadline_s: Seconds | None = None
    """Longest time for a whole run, seconds; what is left can be continued."""

    retries: Annotated[int, Field(ge=0)] = 6
    """How often one request is sent again after a failure worth trying again."""

    retry_unreadable: Annotated[int, Field(ge=0, le=20)] = 2
    """How often a prompt is asked again whose answer cannot be read."""

    patience_s: Seconds = 60.0
    """How long a server may not answer at all before the run stops, seconds."""

    revision: str | None = None
    """Revision of the model's weights, where you know it: part of every cache key."""

    extra_body: Mapping[str, JsonValue] = {}
    """Further fields of every request; null takes a field away that is sent else."""


class VllmSettings(ServingSettings):
    """How vLLM is started and asked."""

    python: str | None = None
    """Interpreter of the environment that holds vLLM."""

    enable_thinking: bool | None = None
    """Sent to the chat template; None leaves it to the model."""

    tensor_parallel_size: Count | None = None
    data_parallel_size: Count | None = None
    quantization: str | None = None
    dtype: str | None = None
    max_model_len: Count | None = None
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    enable_prefix_caching: bool | None = None
    enforce_eager: bool | None = None
    seed: int = 0
    """Seed of the server; each request has its own besides."""

    batch_invariant: bool = False
    """Ask for answers that do not depend on what else is in a batch; slower."""

    lora: Mapping[str, str] = {}
    """Adapter name to its folder; asked as ``vllm:model#name``."""

    extra_args: tuple[str, ...] = ()
    """Further arguments of ``vllm serve``, as they are."""

    environment: Mapping[EnvironmentName, str] = {}
    """Further environment variables of the server."""

    start_timeout_s: Seconds = 900.0
    """Longest wait until the server is ready, seconds."""


class Engines(_Strict):
    """Settings by engine."""

    openai: ServingSettings = ServingSettings()
    vllm: VllmSettings = VllmSettings()


class Config(_Strict):
    """The content of ``.ranloop/config.yaml``."""

    hosts: tuple[Host, ...] = ()
    """Hosts besides this machine that may receive case text."""

    git: Literal["on", "off"] = "on"
    """Whether acts are committed, where the workspace lies in a git repository."""

    engines: Engines = Engines()
    prices: Mapping[str, ModelPrice] = {}
    """Model name to its price."""


def read_config(workspace: WorkspacePaths) -> Config:
    """Return the workspace's settings; the defaults where there is no file or text.

    Raises
    ------
    DataError
        The file cannot be read or is not YAML, or a field is wrong; names each.
    """
    path = workspace.config
    try:
        path.lstat()
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror}. Correct its permissions or owner."
        ) from error
    data = parse_yaml(read_text(path), path)
    return Config() if data is None else check_model(data, Config, path)


def with_changes(settings: VllmSettings, changes: Mapping[str, Any]) -> VllmSettings:
    """Return `settings` with `changes`, checked like the file.

    Raises
    ------
    pydantic.ValidationError
        A change does not fit its field.
    """
    return VllmSettings.model_validate({**settings.model_dump(), **changes})
