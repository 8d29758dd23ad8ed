"""The settings of a machine: strict, without secrets, and optional."""

import re
import shutil

import pytest
from pydantic import ValidationError

from loop.core.config import (
    Config,
    ModelPrice,
    VllmSettings,
    read_config,
    with_changes,
)
from loop.core.errors import DataError


def write(workspace, text):
    """Write the workspace's config file."""
    workspace.open_private()
    workspace.config.write_text(text)


def test_without_a_file_only_this_machine_may_receive_case_text(workspace):
    """Nothing has to be configured to be safe."""
    assert read_config(workspace) == Config()
    assert read_config(workspace).hosts == ()


def test_every_part_of_the_file_is_read(workspace):
    """Hosts, engines and prices."""
    write(
        workspace,
        "hosts: [gpu.hospital.example]\n"
        "engines:\n"
        "  openai: {concurrency: 32, key_env: HOSPITAL_KEY}\n"
        "  vllm: {python: /opt/vllm/bin/python, tensor_parallel_size: 2}\n"
        "prices:\n"
        "  Qwen/Qwen3-14B: {input: 0.1, output: 0.4}\n",
    )
    config = read_config(workspace)
    assert config.hosts == ("gpu.hospital.example",)
    assert config.engines.openai.concurrency == 32
    assert config.engines.vllm.tensor_parallel_size == 2
    assert config.prices["Qwen/Qwen3-14B"].currency == "USD"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("host: [a]\n", "host"),
        ("engines: {openai: {concurrency: 0}}\n", "engines.openai.concurrency"),
        ("engines: {openai: {key_env: 'sk-not a name'}}\n", "engines.openai.key_env"),
        ("engines: {vllm: {gpu_memory_utilization: 1.5}}\n", "gpu_memory_utilization"),
        ("engines: {openai: {key_env: hf_sk-not}}\n", "engines.openai.key_env"),
        ("engines: {openai: {timeout_s: inf}}\n", "engines.openai.timeout_s"),
        ("engines: {openai: {deadline_s: 1.0e999}}\n", "engines.openai.deadline_s"),
        ("engines: {vllm: {environment: {A=B: c}}}\n", "engines.vllm.environment"),
        ("prices: {m: {input: -1, output: 1}}\n", "prices.m.input"),
        ("prices: {m: {input: nan, output: 1}}\n", "prices.m.input"),
    ],
)
def test_a_wrong_field_is_named_and_its_value_is_not(workspace, text, field):
    """A key written into the wrong place must not end in a log."""
    write(workspace, text)
    with pytest.raises(DataError) as caught:
        read_config(workspace)
    assert field in str(caught.value)
    assert "sk-not" not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    ["http://gpu", "gpu:8000", "*.example", "10.0.0.0/8", "[::2]:80", "me@gpu", '""'],
)
def test_a_host_that_would_never_match_is_an_error(workspace, host):
    """Silently ignored it would send its author round in circles."""
    write(workspace, f"hosts: [gpu, {host!r}]\n" if host != '""' else 'hosts: [""]\n')
    with pytest.raises(DataError, match=r"hosts\.[01]: .* name or address alone"):
        read_config(workspace)


@pytest.mark.parametrize("host", ["GPU.example.", "10.1.2.3", "::2", "[fe80::1%eth0]"])
def test_names_and_addresses_are_hosts(workspace, host):
    """In every spelling that is compared later."""
    write(workspace, f'hosts: ["{host}"]\n')
    assert read_config(workspace).hosts == (host,)


def test_the_defaults_are_these():
    """Every one: some are in the cache keys of runs."""
    serving = {
        "url": "http://127.0.0.1:8000/v1",
        "key_env": "RANLOOP_API_KEY",
        "concurrency": "adaptive",
        "max_concurrency": 256,
        "timeout_s": 300.0,
        "deadline_s": None,
        "retries": 6,
        "retry_unreadable": 2,
        "patience_s": 60.0,
        "revision": None,
        "extra_body": {},
    }
    vllm = {
        "python": None,
        "enable_thinking": None,
        "tensor_parallel_size": None,
        "data_parallel_size": None,
        "quantization": None,
        "dtype": None,
        "max_model_len": None,
        "gpu_memory_utilization": None,
        "enable_prefix_caching": None,
        "enforce_eager": None,
        "seed": 0,
        "batch_invariant": False,
        "lora": {},
        "extra_args": (),
        "environment": {},
        "start_timeout_s": 900.0,
    }
    assert Config().model_dump() == {
        "hosts": (),
        "git": "on",
        "engines": {"openai": serving, "vllm": serving | vllm},
        "prices": {},
    }


def test_a_change_is_made_to_the_settings_of_the_file_and_checked_like_it():
    """What is not changed stays as the file has it."""
    settings = VllmSettings(seed=3, retries=1, lora={"a": "/adapters/a"})
    changed = with_changes(settings, {"seed": 4, "dtype": "float16"})
    assert changed == VllmSettings(
        seed=4, retries=1, lora={"a": "/adapters/a"}, dtype="float16"
    )
    assert with_changes(settings, {}) == settings
    for wrong in ({"retries": -1}, {"sede": 4}):
        with pytest.raises(ValidationError, match=next(iter(wrong))):
            with_changes(settings, wrong)


@pytest.mark.parametrize("text", ["", "# hosts: [gpu]\n"])
def test_a_file_without_settings_sets_nothing(workspace, text):
    """It is what is left when everything is commented out."""
    write(workspace, text)
    assert read_config(workspace) == Config()


def test_a_link_to_nowhere_is_not_taken_for_no_file(workspace):
    """Its owner believes that the settings count."""
    workspace.open_private()
    workspace.config.symlink_to(workspace.private / "elsewhere.yaml")
    with pytest.raises(DataError, match="does not exist"):
        read_config(workspace)


def test_a_private_place_that_is_no_folder_is_said(workspace):
    """A way out in place of an exception of the operating system."""
    if workspace.private.exists():
        shutil.rmtree(workspace.private)
    workspace.private.write_text("")
    with pytest.raises(DataError, match=r"cannot read .* Not a directory"):
        read_config(workspace)


def test_without_a_price_of_its_own_the_cache_costs_as_much_as_the_rest():
    """Never cheaper than what is known."""
    plain = ModelPrice(input=2.0, output=8.0)
    assert plain.cost(1000, 0, 900) == plain.cost(1000, 0, 0) == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("prompt", "output", "cached", "cost"),
    [
        (1000, 100, 0, 0.0028),
        (1000, 100, 400, 0.0022),
        (1000, 100, 1000, 0.0013),
        (1000, 100, 5000, 0.0013),
        (0, 0, 10, 0.0),
    ],
)
def test_cached_tokens_have_their_price_and_are_part_of_the_prompt(
    prompt, output, cached, cost
):
    """By hand, for a million: 2 read, 0.50 from the cache, 8 written.

    What a server claims beyond the prompt would make the rest cost less than nothing.
    """
    price = ModelPrice(input=2.0, output=8.0, cached_input=0.5)
    assert price.cost(prompt, output, cached) == pytest.approx(cost)


def test_a_cache_may_be_free():
    """Nought is a price, and not the absence of one."""
    free = ModelPrice(input=2.0, output=8.0, cached_input=0.0)
    assert free.cost(1000, 0, 400) == pytest.approx(0.0012)


@pytest.mark.parametrize(
    "text",
    [
        "engines: {openai: {concurrency: 1, max_concurrency: 1, retries: 0}}\n",
        "engines: {openai: {retry_unreadable: 0, timeout_s: 0.1}}\n",
        "engines: {openai: {retry_unreadable: 20}}\n",
        "engines: {vllm: {gpu_memory_utilization: 1}}\n",
        "engines: {vllm: {tensor_parallel_size: 1, max_model_len: 1}}\n",
        "prices: {m: {input: 0, output: 0, cached_input: 0}}\n",
    ],
)
def test_a_setting_at_its_limit_is_taken(workspace, text):
    """The limit itself is allowed."""
    write(workspace, text)
    assert read_config(workspace) != Config()


@pytest.mark.parametrize(
    "setting",
    [
        "openai: {concurrency: many}",
        "openai: {max_concurrency: 0}",
        "openai: {retries: -1}",
        "openai: {retry_unreadable: -1}",
        "openai: {retry_unreadable: 21}",
        "openai: {patience_s: 0}",
        "vllm: {gpu_memory_utilization: 0}",
        "vllm: {gpu_memory_utilization: 1.01}",
        "vllm: {tensor_parallel_size: 0}",
    ],
)
def test_a_setting_beside_its_limit_is_refused(workspace, setting):
    """One step further, and an engine could not run."""
    write(workspace, f"engines: {{{setting}}}\n")
    with pytest.raises(DataError, match=re.escape(setting.split("{")[1].split(":")[0])):
        read_config(workspace)
