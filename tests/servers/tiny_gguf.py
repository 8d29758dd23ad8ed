"""Writes a tiny random model as GGUF: a real model file for llama.cpp, in a second.

Needs ``gguf`` and ``tokenizers``. The weights are random, so what it says means
nothing; what a server does with it is as real as with any other model.
"""

import json
from functools import cache
from pathlib import Path

import gguf
import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from loop.core.paths import bundled

CONTEXT = 65_536
"""Tokens the model claims to take."""

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
VOCABULARY = 4096
WIDTH, HIDDEN, LAYERS, HEADS, KEY = 64, 128, 1, 1, 64

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def corpus():
    """Return the texts that the tokenizer is trained on: shipped ones only."""
    root = bundled()
    texts = [path.read_text("utf-8") for path in root.glob("prompts/*/v*/*")]
    lines = (root / "labels/demo/dev.jsonl").read_text("utf-8").splitlines()
    texts += [json.loads(line)["text"] for line in lines]
    answer = {"edema": {"value": "present", "evidence": "x", "span": [0, 1]}}
    return [*texts, *[json.dumps(answer)] * 50]


@cache
def train_tokenizer():
    """Return vocabulary in order of ids, and merges, of a byte-level tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    data = json.loads(tokenizer.to_str())["model"]
    words = sorted(data["vocab"], key=data["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["merges"]]
    return words, merges


def bias_of(word):
    """Return what is added to the score of a token.

    Random models love control bytes, which servers cannot send as text, and never
    end a string or a number: tokens of odd bytes, space and digits are pushed down,
    quotes are pulled up.
    """
    if word in SPECIAL:
        return 1.0 if word == "<|im_end|>" else -20.0
    if any(ord(char) > 126 and char != "\u0120" for char in word):
        return -20.0
    if not word.strip("\u0120"):
        return -10.0
    if word.isdigit() or "{" in word:
        return -0.5
    return 8.0 if '"' in word else 0.0


def write_model(path: Path, *, seed=0, name="tiny-random"):
    """Write a model to `path`; another seed gives another one."""
    words, merges = train_tokenizer()
    writer = gguf.GGUFWriter(path, "qwen3")
    _describe(writer, name, len(words))
    _add_tokenizer(writer, words, merges)
    bias = np.array([bias_of(word) for word in words], np.float32)
    for tensor, values in _weights(np.random.default_rng(seed), bias).items():
        writer.add_tensor(tensor, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _describe(writer, name, n_words):
    writer.add_name(name)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_key_length(KEY)
    writer.add_value_length(KEY)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(n_words)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def _add_tokenizer(writer, words, merges):
    kinds = gguf.TokenType
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types(
        [kinds.CONTROL if word in SPECIAL else kinds.NORMAL for word in words]
    )
    writer.add_token_merges(merges)
    writer.add_eos_token_id(words.index("<|im_end|>"))
    writer.add_pad_token_id(words.index("<|endoftext|>"))
    writer.add_bos_token_id(words.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def _weights(rng, bias):
    """Return the tensors by name.

    Dimension 0 of the residual stream is constant, so that column 0 of the output
    matrix adds to the score of each token. Attention is sharp: it must look at single
    words, or every answer to the same instructions would be the same.
    """

    def noise(*shape, scale=0.1):
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    def ones(size):
        return np.ones(size, np.float32)

    embedding = noise(len(bias), WIDTH)
    output = noise(len(bias), WIDTH, scale=0.45)
    embedding[:, 0], output[:, 0] = 1.0, bias
    tensors = {
        "token_embd.weight": embedding,
        "output_norm.weight": ones(WIDTH),
        "output.weight": output,
    }
    for layer in range(LAYERS):
        attention, down = noise(WIDTH, HEADS * KEY), noise(WIDTH, HIDDEN)
        attention[0], down[0] = 0, 0
        block = {
            "attn_norm": ones(WIDTH),
            "attn_q": noise(HEADS * KEY, WIDTH),
            "attn_k": noise(HEADS * KEY, WIDTH),
            "attn_v": noise(HEADS * KEY, WIDTH),
            "attn_output": attention,
            "attn_q_norm": ones(KEY) * 3,
            "attn_k_norm": ones(KEY) * 3,
            "ffn_norm": ones(WIDTH),
            "ffn_gate": noise(HIDDEN, WIDTH),
            "ffn_up": noise(HIDDEN, WIDTH),
            "ffn_down": down,
        }
        tensors |= {f"blk.{layer}.{part}.weight": it for part, it in block.items()}
    return tensors
