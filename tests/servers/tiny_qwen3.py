"""Makes a tiny random Qwen3 that real vLLM serves: two layers, own tokenizer.

Run it with the interpreter that holds vLLM, which has torch, transformers and
tokenizers: ``python tiny_qwen3.py FOLDER TEXT_FILE...``. The tokenizer learns from the
text files. The weights are random, so the answers mean nothing; constrained to a
schema they are valid JSON, and biased so that strings and numbers end soon. A LoRA
adapter as random as the model goes to ``FOLDER-adapter``.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GenerationConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CONTEXT = 32_768
SPACE = "\u0120"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>\n"
    "{% endif %}{% endif %}"
)


def train_tokenizer(texts, vocabulary=2048):
    """Return a byte-level tokenizer trained on `texts`, with the chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        bos_token=None,
        model_max_length=CONTEXT,
    )
    fast.chat_template = TEMPLATE
    return fast


def bias(token):
    """Return how likely `token` is to be written; about 7 logits to the unit."""
    if token in SPECIAL:
        return 0.2 if token == "<|im_end|>" else -1.0
    if any(ord(char) > 126 and char != SPACE for char in token):
        return -1.0
    if '"' in token:
        return 0.6
    if any(char.isdigit() for char in token):
        return -0.3
    return 0.0 if token.count(SPACE) < 2 else -1.0


def make_model(tokenizer):
    """Return a random model whose first hidden dimension is constant.

    That makes the first column of the output head a bias for each token.
    """
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=64,
        max_position_embeddings=CONTEXT,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config).to(torch.float32)
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    chance = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in (model.model.embed_tokens.weight, model.lm_head.weight):
            weight.copy_(torch.randn(weight.shape, generator=chance) * 0.1)
        model.model.embed_tokens.weight[:, 0] = 1.0
        model.lm_head.weight[:, 0] = torch.tensor([bias(token) for token in tokens])
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0
            layer.mlp.down_proj.weight[0] = 0
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    return model


def write_adapter(model, folder, rank=24):
    """Write a random adapter of queries and values, of more rank than vLLM expects."""
    chance = torch.Generator().manual_seed(1)
    parts = {}
    for number, layer in enumerate(model.model.layers):
        for name in ("q_proj", "v_proj"):
            rows, columns = getattr(layer.self_attn, name).weight.shape
            key = f"base_model.model.model.layers.{number}.self_attn.{name}"
            down = torch.randn((rank, columns), generator=chance)
            up = torch.randn((rows, rank), generator=chance)
            parts[f"{key}.lora_A.weight"] = down
            parts[f"{key}.lora_B.weight"] = up
    folder.mkdir(exist_ok=True)
    save_file(parts, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": rank,
        "target_modules": ["q_proj", "v_proj"],
        "bias": "none",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))


def main(folder, *files):
    """Write tokenizer and model to `folder`, and the adapter beside it."""
    texts = [Path(file).read_text("utf-8") for file in files]
    lines = [line for text in texts for line in text.splitlines(keepends=True)]
    tokenizer = train_tokenizer(lines)
    tokenizer.save_pretrained(folder)
    model = make_model(tokenizer)
    model.save_pretrained(folder)
    write_adapter(model, Path(f"{folder}-adapter"))


if __name__ == "__main__":
    main(*sys.argv[1:])
