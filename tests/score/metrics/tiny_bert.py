"""A random encoder of the BERT family, some kilobytes, written to a folder."""

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

LONGEST = 64
LAYERS = 3
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = (
    "the chest x - ray shows evidence of pneumonia no pleural effusion is present "
    "lungs show infection and a small visible . ,"
)


def write_tokenizer(folder, *, longest=LONGEST):
    """Write a WordPiece tokenizer of a few words; `longest` None says no limit."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [*SPECIAL, *dict.fromkeys([*WORDS.split(), *letters])]
    pieces += [f"##{letter}" for letter in letters]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")],
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    marks = dict(zip(names, SPECIAL, strict=True))
    limit = {} if longest is None else {"model_max_length": longest}
    PreTrainedTokenizerFast(tokenizer_object=made, **marks, **limit).save_pretrained(
        folder
    )
    return len(vocabulary)


def write_encoder(folder, *, longest=LONGEST):
    """Write a tokenizer and a model with random weights, always the same ones."""
    size = write_tokenizer(folder, longest=longest)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=size,
        hidden_size=16,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LONGEST,
    )
    BertModel(config).save_pretrained(folder)
