"""The engine ``chexbert``: a BERT with a head for each of 14 labels.

It reads no prompt: a version only says which of its labels are wanted. Weights are the
user's, in a folder; nothing is downloaded.

References
----------
Smit A et al. CheXbert: combining automatic labelers and expert annotations for accurate
radiology report labeling using BERT. EMNLP 2020:1500-1519.
Irvin J et al. CheXpert: a large chest radiograph dataset with uncertainty labels and
expert comparison. AAAI 2019;33:590-597.
"""

from __future__ import annotations

import json
import pickle
import re
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from loop.core.errors import EngineError
from loop.core.paths import install_command
from loop.core.records import (
    Completion,
    Note,
    Prompt,
    PromptFrame,
    PromptTask,
    Value,
)
from loop.engines.base import Engine, Settings, register
from loop.engines.model_folders import digest_model

HEADS: Final = (
    "enlarged_cardiomediastinum",
    "cardiomegaly",
    "lung_opacity",
    "lung_lesion",
    "edema",
    "consolidation",
    "pneumonia",
    "atelectasis",
    "pneumothorax",
    "pleural_effusion",
    "pleural_other",
    "fracture",
    "support_devices",
    "no_finding",
)
"""Label of each head, in the order of the checkpoint: it knows no others. As one of
them is No Finding, that is not derived."""

CLASSES: Final = (Value.ABSENT, Value.PRESENT, Value.ABSENT, Value.UNCERTAIN)
"""What each class of a head says: blank, positive, negative, uncertain. The head of No
Finding has the first two."""

LONGEST: Final = 512
"""Tokens that are read of a text, both marks included."""

REVISION: Final = 1
"""Raised whenever the same weights may give another answer."""

_BATCH: Final = 32
_NAMED: Final = 20
"""Ids of texts that were cut, named to a person."""

_NO_ENGLISH: Final = "chexbert reads English, and the text is in another language"
_SPACE: Final = re.compile(r"\s+")
_PREFIX: Final = "module."
"""Before every name in the checkpoint of a model that was trained on several GPUs."""

_BUFFER: Final = "bert.embeddings.position_ids"
"""In older checkpoints; numbers from 0, which newer versions make themselves."""


class _LoadedBert(NamedTuple):
    model: Any
    tokenizer: Any
    device: str


class CheXbertEngine:
    """Answers with what the heads say of a text.

    As a context manager it holds the weights in memory.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        """Prepare to answer by the weights in a folder; they are read once opened."""
        self._folder = folder
        self._tell = settings.tell
        self._loaded: _LoadedBert | None = None
        self._digest = ""
        self._cut: dict[str, None] = {}

    @property
    def languages(self) -> Collection[str]:
        """English: what it was trained on."""
        return ("en",)

    def __enter__(self) -> CheXbertEngine:
        if self._loaded is None:
            self._loaded = _load(self._folder)
            self._digest = digest_model(self._folder)
        return self

    def __exit__(self, *error: object) -> None:
        self._loaded = None
        if self._cut:
            named = ", ".join(islice(self._cut, _NAMED))
            self._tell(
                f"{len(self._cut):,} texts are longer than {LONGEST} tokens, and their "
                f"ends were not read: {named}"
            )

    def for_task(self, task: PromptTask) -> Engine:
        """Return the engine for extractors.

        Raises
        ------
        EngineError
            `task` is another one.
        """
        if task is not PromptTask.EXTRACT:
            raise EngineError(
                "chexbert reads labels out of reports and does nothing else. Name it "
                "with a version of an extractor."
            )
        return self

    def identity(self) -> Mapping[str, object]:
        """Return digest, classes and what is done with them.

        Raises
        ------
        EngineError
            It is not open.
        """
        self._open()
        return {
            "engine": "chexbert",
            "revision": REVISION,
            "weights": self._digest,
            "tokens": LONGEST,
            "blank": Value.ABSENT.value,
            "uncertain": "as it is; absent where a version knows no uncertain",
            "no_finding": "read",
        }

    def account(self) -> Mapping[str, object]:
        """Return the ids of the texts whose ends were not read."""
        return {"cut": list(self._cut)}

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield an answer to each prompt; see `loop.engines.base.Engine`."""
        numbered = enumerate(prompts)
        while batch := list(islice(numbered, _BATCH)):
            began = time.perf_counter()
            found = self._read([one.item.variables.get("text", "") for _, one in batch])
            each = (time.perf_counter() - began) / len(batch)
            for (index, prompt), (values, tokens) in zip(batch, found, strict=True):
                if prompt.item.language not in self.languages:
                    yield index, Completion("", "error", _NO_ENGLISH)
                    continue
                if tokens > LONGEST:
                    self._cut[prompt.item.id] = None
                yield (
                    index,
                    Completion(
                        _answer(prompt.frame, values, cut=tokens > LONGEST),
                        latency_s=each,
                        prompt_tokens=min(tokens, LONGEST),
                        completion_tokens=0,
                    ),
                )

    def _open(self) -> _LoadedBert:
        if self._loaded is None:
            raise EngineError("chexbert is not open. Use it in a `with` block.")
        return self._loaded

    def _read(self, texts: Sequence[str]) -> list[tuple[Mapping[str, Value], int]]:
        """Return the values of each text, and how many tokens it has."""
        import torch

        loaded = self._open()
        marks = loaded.tokenizer.token_to_id
        first, last = marks("[CLS]"), marks("[SEP]")
        plain = [_SPACE.sub(" ", text.strip()) for text in texts]
        ids = [
            one.ids
            for one in loaded.tokenizer.encode_batch(plain, add_special_tokens=False)
        ]
        rows = [[first, *one[: LONGEST - 2], last] for one in ids]
        width = max(map(len, rows))
        padded = torch.zeros((len(rows), width), dtype=torch.long)
        mask = torch.zeros((len(rows), width), dtype=torch.long)
        for place, row in enumerate(rows):
            padded[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
        with torch.inference_mode():
            heads = loaded.model(padded.to(loaded.device), mask.to(loaded.device))
        classes = [head.argmax(dim=1).tolist() for head in heads]
        return [
            (
                {
                    label: CLASSES[one[place]]
                    for label, one in zip(HEADS, classes, strict=True)
                },
                len(tokens) + 2,
            )
            for place, tokens in enumerate(ids)
        ]


def _answer(frame: PromptFrame, values: Mapping[str, Value], *, cut: bool) -> str:
    """Return the answer to the fields of a call, as the contracts of extractors read.

    Raises
    ------
    EngineError
        A field is none of its labels: it was asked by a plan that was not narrowed.
    """
    unknown = set(frame.fields) - values.keys()
    if unknown:
        raise EngineError(f"chexbert does not know {min(unknown)}.")
    binary = Value.UNCERTAIN.value not in json.dumps(frame.schema)
    said: dict[str, object] = {}
    for name in frame.fields:
        value = values[name]
        if binary and value is Value.UNCERTAIN:
            value = Value.ABSENT
        if cut:
            said[name] = {"value": value.value, "notes": [Note.CUT.value]}
        elif value is Value.ABSENT:
            said[name] = value.value
        else:
            said[name] = {"value": value.value}
    return json.dumps(said)


def _load(folder: Path) -> _LoadedBert:
    """Return the model with the weights in a folder.

    Raises
    ------
    EngineError
        torch or transformers is missing, or the folder does not hold CheXbert.
    """
    lacking = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if lacking:
        raise EngineError(
            f"chexbert needs {' and '.join(lacking)}, which cannot be imported. "
            f"Install the extra: {install_command('chexbert')}"
        )
    import torch

    if not folder.is_dir():
        raise EngineError(
            f"{folder} is no folder. Name the one that holds CheXbert's checkpoint, as "
            "chexbert:FOLDER."
        )
    found = sorted(folder.glob("*.pth"))
    if len(found) != 1:
        raise EngineError(
            f"{folder} has {len(found)} files *.pth, and should have one: CheXbert's "
            "checkpoint."
        )
    (checkpoint,) = found
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = _read_vocabulary(folder)
    model = _make_model(folder, tokenizer.get_vocab_size())
    try:
        # Names and numbers only: a checkpoint is a pickle, and that can hold code.
        with warnings.catch_warnings(action="ignore"):
            told = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except (
        OSError,
        RuntimeError,
        ValueError,
        EOFError,
        pickle.UnpicklingError,
    ) as error:
        raise EngineError(
            f"{checkpoint} cannot be read as weights alone ({type(error).__name__}): "
            "it is damaged, or a pickle that holds code, which is never run. Name a "
            "checkpoint as CheXbert publishes it."
        ) from error
    _put_in(model, told, checkpoint)
    return _LoadedBert(model.eval().to(device), tokenizer, device)


def _read_vocabulary(folder: Path) -> Any:
    """Return the tokenizer of BERT, uncased, with the vocabulary of a folder."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    path = folder / "vocab.txt"
    try:
        # A word may be one of the other characters that end a line for Python.
        words = path.read_text("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(
            f"{path} is missing or no text. Put BERT's vocabulary there: vocab.txt of "
            "bert-base-uncased."
        ) from error
    vocabulary = {word: number for number, word in enumerate(words)}
    if {"[PAD]", "[UNK]", "[CLS]", "[SEP]"} - vocabulary.keys():
        raise EngineError(
            f"{path} lacks BERT's marks, such as [CLS]. Put vocab.txt of "
            "bert-base-uncased there."
        )
    made = Tokenizer(
        models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def _make_model(folder: Path, words: int) -> Any:
    """Return a model without weights, of the shape that a folder's config says.

    Without ``config.json`` it is that of bert-base-uncased.
    """
    import torch
    from transformers import BertConfig, BertModel

    path = folder / "config.json"
    if path.is_file():
        try:
            given = json.loads(path.read_bytes())
            config = BertConfig(**{**given, "vocab_size": words})
        except (OSError, TypeError, ValueError) as error:
            raise EngineError(
                f"{path} is no configuration of BERT. Put config.json of "
                "bert-base-uncased there, or leave it out."
            ) from error
    else:
        config = BertConfig(vocab_size=words)

    class Labeler(torch.nn.Module):  # type: ignore[misc]
        """BERT, and a linear head on its first token for each label."""

        def __init__(self) -> None:
            super().__init__()
            self.bert = BertModel(config)
            sizes = [len(CLASSES)] * (len(HEADS) - 1) + [2]
            self.linear_heads = torch.nn.ModuleList(
                torch.nn.Linear(config.hidden_size, size) for size in sizes
            )

        def forward(self, ids: Any, mask: Any) -> list[Any]:
            """Return the scores of the classes of each head, (n_texts, n_classes)."""
            first = self.bert(ids, attention_mask=mask).last_hidden_state[:, 0]
            return [head(first) for head in self.linear_heads]

    return Labeler()


def _put_in(model: Any, told: object, checkpoint: Path) -> None:
    """Put the weights of a checkpoint into a model of the same shape."""
    weights = told.get("model_state_dict", told) if isinstance(told, dict) else None
    if not isinstance(weights, Mapping):
        raise EngineError(f"{checkpoint} holds no weights. Name CheXbert's checkpoint.")
    plain = {str(name).removeprefix(_PREFIX): one for name, one in weights.items()}
    plain.pop(_BUFFER, None)
    try:
        model.load_state_dict(plain)
    except (RuntimeError, TypeError, AttributeError) as error:
        wanted = model.state_dict()
        odd = sorted(wanted.keys() ^ plain.keys()) or sorted(
            name
            for name, one in wanted.items()
            if getattr(plain[name], "shape", None) != one.shape
        )
        raise EngineError(
            f"{checkpoint} has not the shape of CheXbert"
            + (f": {odd[0]} is missing, or is another one" if odd else "")
            + ". Put the config.json and vocab.txt beside it that it was trained with."
        ) from error


@register("chexbert")
def _make(rest: str, settings: Settings) -> Engine:
    if not rest:
        raise EngineError("name the folder of the weights, as chexbert:FOLDER.")
    return CheXbertEngine(Path(rest).expanduser(), settings)
