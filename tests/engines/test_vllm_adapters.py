"""LoRA adapters: their rank is made room for, and what does not fit never starts."""

import json
import struct

import pytest

from loop.core.config import VllmSettings
from loop.core.errors import EngineError
from loop.engines.vllm.adapters import (
    RANKS,
    adapter_arguments,
    check_adapter,
    digest_adapters,
)
from loop.engines.vllm.environment import Installed, batch_command, serve_command

GPU = Installed("/env/python", "vllm", "0.33.0")
LAYER = "base_model.model.model.layers.1.self_attn"


def write_weights(path, shapes):
    """Write a safetensors file of zeros."""
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 4 * shape[0] * shape[1]
        header[name] = {
            "dtype": "F32",
            "shape": list(shape),
            "data_offsets": [end, end + size],
        }
        end += size
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(end))


@pytest.fixture
def model(tmp_path):
    """Write the folder of a model with two layers and hidden states of 64."""
    folder = tmp_path / "model"
    folder.mkdir()
    told = {"hidden_size": 64, "num_hidden_layers": 2}
    (folder / "config.json").write_text(json.dumps(told))
    return folder


@pytest.fixture
def adapter(tmp_path):
    """Return what writes an adapter's folder, of that model unless told otherwise."""

    def write(name="chest", *, hidden=64, layer=LAYER, rank=8, **config):
        folder = tmp_path / name
        folder.mkdir()
        told = {"peft_type": "LORA", "r": rank, "lora_alpha": 16}
        told |= {"target_modules": ["q_proj"], "bias": "none", "modules_to_save": None}
        (folder / "adapter_config.json").write_text(json.dumps(told | config))
        shapes = {
            f"{layer}.q_proj.lora_A.weight": (4, hidden),
            f"{layer}.q_proj.lora_B.weight": (32, 4),
            f"{layer}.o_proj.lora_A.weight": (4, 32),
        }
        write_weights(folder / "adapter_model.safetensors", shapes)
        return folder

    return write


def arguments(model, *folders, **settings):
    """Return the arguments for adapters called a0, a1 ..."""
    lora = {f"a{place}": str(folder) for place, folder in enumerate(folders)}
    given = VllmSettings(lora=lora, **settings)
    return list(adapter_arguments(str(model), given))


@pytest.mark.parametrize(
    ("rank", "more", "wanted"),
    [
        (8, {}, None),
        (16, {}, None),
        (17, {}, "32"),
        (32, {}, "32"),
        (300, {}, "320"),
        (512, {}, "512"),
        (8, {"rank_pattern": {"q_proj": 100}}, "128"),
    ],
)
def test_the_rank_is_made_room_for(model, adapter, rank, more, wanted):
    """With the smallest number that vLLM takes; its default is left alone."""
    found = arguments(model, adapter(rank=rank, **more))
    assert ("--max-lora-rank" in found) is (wanted is not None)
    if wanted:
        assert found[found.index("--max-lora-rank") + 1] == wanted
        assert int(wanted) in RANKS


def test_the_largest_of_several_counts_and_the_config_has_the_last_word(model, adapter):
    """One limit is for all of a server's adapters."""
    both = adapter("one", rank=8), adapter("two", rank=64)
    assert arguments(model, *both)[-2:] == ["--max-lora-rank", "64"]
    for own in (
        ["--max-lora-rank", "256"],
        ["--max-lora-rank=256"],
        ["--max_lora_rank=64"],
    ):
        assert "--max-lora-rank" not in arguments(model, *both, extra_args=own)
    for own in (["--max-lora-rank", "32"], ["--max_lora_rank=8"]):
        with pytest.raises(EngineError, match=r"no room for an adapter of rank 64"):
            arguments(model, *both, extra_args=own)
    # Of several the last one counts; what is no number is left to vLLM.
    for own in (
        ["--max-lora-rank", "8", "--max-lora-rank", "64"],
        ["--max-lora-rank", "auto"],
        ["--max-lora-rank=auto"],
        ["--max-lora-rank"],
    ):
        assert "--max-lora-rank" not in arguments(model, *both, extra_args=own)
    settings = VllmSettings(lora={"one": str(both[1])})
    for made in (
        serve_command(GPU, str(model), settings, 8123),
        batch_command(GPU, str(model), settings, (model / "in", model / "out")),
    ):
        place = made.arguments.index("--max-lora-rank")
        assert made.arguments[place + 1] == "64"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rank": 513}, "has rank 513, and vLLM takes 512 at most"),
        ({"rank": 0}, "its rank .* is not a whole number above 0"),
        ({"rank": True}, "is not a whole number"),
        ({"rank_pattern": {"q": "x"}}, "is not a whole number"),
        ({"peft_type": "IA3"}, "is 'IA3', and vLLM loads LoRA only"),
        ({"use_dora": True}, r"has DoRA \(use_dora\)"),
        ({"lora_bias": True}, "has a LoRA bias"),
        ({"bias": "all"}, "has trained biases"),
        ({"modules_to_save": ["score", "lm_head"]}, "has trained 'lm_head' as a whole"),
        ({"init_lora_weights": "PiSSA_niter_4"}, "began with 'PiSSA_niter_4'"),
        ({"hidden": 128}, "hidden states of 128, and those of the model have 64"),
        (
            {"layer": LAYER.replace("layers.1", "layers.2")},
            "for a model of more than 2 layers",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_a_server_starts(
    model, adapter, change, words
):
    """With the reason; a server would die of it half a minute later."""
    with pytest.raises(EngineError, match=words):
        arguments(model, adapter(**change))


def test_a_folder_without_an_adapter_is_refused(model, tmp_path, adapter):
    """Nothing there, no JSON, no weights that can be read."""
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(EngineError, match=r"no readable adapter_config\.json"):
        arguments(model, empty)
    (empty / "adapter_config.json").write_text("[]")
    with pytest.raises(EngineError, match="is not a JSON object"):
        arguments(model, empty)
    for place, raw in enumerate((b"", b"\xff" * 40, struct.pack("<Q", 2) + b"[]")):
        folder = adapter(f"broken{place}")
        (folder / "adapter_model.safetensors").write_bytes(raw)
        with pytest.raises(EngineError, match="Export it again"):
            arguments(model, folder)
    # Weights of another form are vLLM's to judge.
    other = adapter("other")
    (other / "adapter_model.safetensors").unlink()
    assert "--enable-lora" in arguments(model, other)


def test_a_model_that_is_not_here_is_known_by_its_name(adapter):
    """Of names on the hub; a folder where it was trained says nothing."""
    mine = adapter("mine", base_model_name_or_path="Qwen/Qwen3-14B")
    assert "--enable-lora" in arguments("qwen/qwen3-14b", mine)
    with pytest.raises(EngineError, match="was trained on 'Qwen/Qwen3-14B'"):
        arguments("Qwen/Qwen3-8B", mine)
    elsewhere = adapter("elsewhere", base_model_name_or_path="/data/base")
    assert "--enable-lora" in arguments("Qwen/Qwen3-8B", elsewhere)
    relative = adapter("relative", base_model_name_or_path="../models/base")
    assert "--enable-lora" in arguments("Qwen/Qwen3-8B", relative)
    # Nor can the rank of an adapter on the hub be known.
    assert arguments("Qwen/Qwen3-8B", "org/adapter")[-1] == "a0=org/adapter"


def test_what_vllm_takes_is_not_refused(model, adapter, tmp_path):
    """Heads of a classifier, plain beginnings, images, models without a config."""
    for place, fine in enumerate(
        (
            {"modules_to_save": ["score"]},
            {"init_lora_weights": "gaussian"},
            {"init_lora_weights": True},
            {"layer": "base_model.model.vision_model.encoder.layers.9", "hidden": 32},
        )
    ):
        assert "--enable-lora" in arguments(model, adapter(f"fine{place}", **fine))
    mine = adapter("mine", base_model_name_or_path="Qwen/Qwen3-14B")
    (model / "config.json").unlink()
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    for other in (model, file):
        assert "--enable-lora" in arguments(other, mine)


def test_an_adapter_without_its_scale_is_refused(model, adapter):
    """What vLLM wants to know stands in its config, whoever wrote it."""
    folder = adapter()
    path = folder / "adapter_config.json"
    told = json.loads(path.read_text())
    del told["lora_alpha"]
    path.write_text(json.dumps(told))
    with pytest.raises(EngineError, match="says nothing of lora_alpha"):
        arguments(model, folder)
    path.write_text("[" * 100_000)
    with pytest.raises(EngineError, match=r"no readable adapter_config\.json"):
        arguments(model, folder)


def test_a_model_of_several_kinds_is_known_by_its_part_that_reads_text(model, adapter):
    """What it does not say of itself is not compared."""
    path = model / "config.json"
    inner = {"hidden_size": 64, "num_hidden_layers": 2}
    path.write_text(json.dumps({"hidden_size": 1, "text_config": inner}))
    assert "--enable-lora" in arguments(model, adapter("fits"))
    with pytest.raises(EngineError, match="and those of the model have 64"):
        arguments(model, adapter("wide", hidden=128))
    with pytest.raises(EngineError, match="for a model of more than 2 layers"):
        arguments(model, adapter("deep", layer=LAYER.replace("layers.1", "layers.2")))
    for told in ({}, {"hidden_size": "64"}, {"text_config": 7, "hidden_size": True}):
        path.write_text(json.dumps(told))
        for name in ("wide", "deep"):
            assert "--enable-lora" in arguments(model, model.parent / name)


def test_a_header_of_more_than_64_mib_is_refused(model, adapter):
    """One that claims exactly that size is still read."""
    folder = adapter()
    path = folder / "adapter_model.safetensors"
    path.write_bytes(struct.pack("<Q", 64 * 2**20) + b"{}")
    assert "--enable-lora" in arguments(model, folder)
    path.write_bytes(struct.pack("<Q", 64 * 2**20 + 1) + b"{}")
    with pytest.raises(EngineError, match="has no header"):
        arguments(model, folder)


def test_what_a_header_says_beside_weights_has_no_shape(model, adapter):
    """Notes of who saved them, numbers, and what is no list."""
    folder = adapter()
    path = folder / "adapter_model.safetensors"

    def write(width):
        header = {
            "__metadata__": {"format": "pt"},
            "none": 3,
            f"{LAYER}.k_proj.lora_A.weight": {"shape": []},
            f"{LAYER}.v_proj.lora_A.weight": {"shape": "x"},
            f"{LAYER}.q_proj.lora_A.weight": {"shape": [4, width]},
        }
        raw = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(raw)) + raw)

    write(64)
    assert "--enable-lora" in arguments(model, folder)
    write(65)
    with pytest.raises(EngineError, match="hidden states of 65, and those of the mod"):
        arguments(model, folder)


def test_an_adapter_that_is_not_here_is_known_by_its_name(adapter):
    """Nothing else is known of its weights."""
    mine = adapter()
    settings = VllmSettings(lora={"chest": str(mine), "spine": "org/spine"})
    found = digest_adapters(settings)
    assert found["spine"] == "org/spine" and len(found["chest"]) == 64
    for name in (None, "chest", "spine"):
        check_adapter(name, settings)
    with pytest.raises(
        EngineError, match=r"no adapter 'x' is configured \(known: none"
    ):
        check_adapter("x", VllmSettings())
