"""The settings of a machine: strict, without secrets, and optional."""

import pytest

from loop.core.config import Config, ModelPrice, read_config
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
        ("prices: {m: {input: -1, output: 1}}\n", "prices.m.input"),
    ],
)
def test_a_wrong_field_is_named_and_its_value_is_not(workspace, text, field):
    """A key written into the wrong place must not end in a log."""
    write(workspace, text)
    with pytest.raises(DataError) as caught:
        read_config(workspace)
    assert field in str(caught.value)
    assert "sk-not" not in str(caught.value)


def test_without_a_price_of_its_own_the_cache_costs_as_much_as_the_rest():
    """Never cheaper than what is known."""
    plain = ModelPrice(input=2.0, output=8.0)
    assert plain.cost(1000, 0, 900) == plain.cost(1000, 0, 0) == pytest.approx(0.002)
