"""BERTScore with an encoder from a local folder; nothing is ever downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.paths import install_command
from loop.engines.model_folders import digest_model
from loop.labels.language import words
from loop.score.metrics.base import (
    Direction,
    Metric,
    MetricInput,
    MetricOptions,
    Scores,
    Unavailable,
    both_texts,
    mean_scores,
    sign,
)

_BATCH = 32
_CHUNK = 256
"""Pairs whose vectors are held at once: those of all would not fit in memory."""

_NO_LIMIT = 10**6
"""A tokenizer that was saved without its longest input gives a number above this."""

_SPECIAL = 2
"""Positions that RoBERTa's position table keeps for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """A tokenizer and the lower layers of a model."""

    tokenizer: Any
    model: Any
    layer: int
    """Hidden layer whose vectors are compared; 0 is the embedding."""

    layers: int
    longest: int
    """Tokens of a text that are read; what follows is not."""

    digest: str
    """Digest of the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Vectors:
    """One text: unit vectors of its tokens, and which of them count."""

    units: Any
    counts: Any
    full: bool
    """Whether it reaches the encoder's limit, so that an end may be missing."""


def load_encoder(folder: Path, layer: int | None = None) -> Encoder:
    """Return the encoder saved in a folder.

    Parameters
    ----------
    folder
        As transformers' ``save_pretrained`` writes it, model and tokenizer.
    layer
        Hidden layer to compare; None for the last one.

    Raises
    ------
    DataError
        The folder holds no encoder, or has no such layer.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    if not (folder / "config.json").is_file():
        raise DataError(
            f"{folder} has no config.json. Name the folder of a model saved by "
            "transformers."
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModel.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"transformers cannot load {folder}: {type(error).__name__}. Name the "
            "folder of a saved encoder with its tokenizer."
        ) from error
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    if tokenizer.pad_token is None:
        raise DataError(
            f"the tokenizer in {folder} has no padding token. Name the folder of an "
            "encoder, for example of the BERT family."
        )
    tokenizer.padding_side = "right"
    layers = int(model.config.num_hidden_layers)
    layer = layers if layer is None else layer
    if not 0 <= layer <= layers:
        raise DataError(f"{folder} has layers 0 to {layers}, not {layer}. Name one.")
    return Encoder(
        tokenizer=tokenizer,
        model=model.eval().to("cuda" if torch.cuda.is_available() else "cpu"),
        layer=layer,
        layers=layers,
        longest=_longest(tokenizer, model.config),
        digest=digest_model(folder),
    )


def bertscore(
    encoder: Encoder, references: Sequence[str], candidates: Sequence[str]
) -> NDArray[np.float64]:
    """Return precision, recall, F and whether a text fills the encoder, of every pair.

    Parameters
    ----------
    encoder
        As `load_encoder` returns it.
    references, candidates
        Texts of equal number; a candidate without a word scores 0.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n_pairs, 4)``. Each token is matched with the nearest one of the other
        side by cosine; no idf weights, no rescaling with a baseline.

    References
    ----------
    Zhang T et al. BERTScore: evaluating text generation with BERT. ICLR 2020.
    """
    scores = np.zeros((len(references), 4))
    pairs = list(zip(references, candidates, strict=True))
    order = sorted(range(len(pairs)), key=lambda row: sum(map(len, pairs[row])))
    for start in range(0, len(order), _CHUNK):
        rows = [row for row in order[start : start + _CHUNK] if _told(pairs[row])]
        encoded = _encode(encoder, {text for row in rows for text in pairs[row]})
        for row in rows:
            scores[row] = _match(*(encoded[text] for text in pairs[row]))
    return scores


def _told(pair: tuple[str, str]) -> bool:
    return all(words(text) for text in pair)


def _longest(tokenizer: Any, config: Any) -> int:
    told = int(tokenizer.model_max_length)
    if told < _NO_LIMIT:
        return told
    return int(getattr(config, "max_position_embeddings", 512)) - _SPECIAL


def _encode(encoder: Encoder, texts: set[str]) -> dict[str, _Vectors]:
    ordered = sorted(texts, key=lambda text: (len(text), text))
    vectors: dict[str, _Vectors] = {}
    for start in range(0, len(ordered), _BATCH):
        batch = ordered[start : start + _BATCH]
        vectors.update(zip(batch, _encode_batch(encoder, batch), strict=True))
    return vectors


def _encode_batch(encoder: Encoder, batch: list[str]) -> list[_Vectors]:
    import torch

    asked = encoder.tokenizer(
        batch,
        padding=True,
        truncation=True,
        max_length=encoder.longest,
        return_tensors="pt",
        return_special_tokens_mask=True,
    )
    special = asked.pop("special_tokens_mask").bool()
    lengths = asked["attention_mask"].sum(dim=1).tolist()
    with torch.no_grad():
        told = encoder.model(
            **asked.to(encoder.model.device), output_hidden_states=True
        )
    hidden = told.hidden_states[encoder.layer].float().cpu()
    units = torch.nn.functional.normalize(hidden, dim=-1)
    return [
        _Vectors(
            units=units[place, :length],
            counts=~special[place, :length],
            full=length >= encoder.longest,
        )
        for place, length in enumerate(lengths)
    ]


def _match(reference: _Vectors, candidate: _Vectors) -> tuple[float, ...]:
    """Return precision, recall, F and whether a text fills the encoder.

    As in the authors' code, the marks at both ends may be what a token is nearest
    to, but have no weight of their own.
    """
    nearness = candidate.units @ reference.units.T
    precision = float(nearness.amax(dim=1)[candidate.counts].mean())
    recall = float(nearness.amax(dim=0)[reference.counts].mean())
    total = precision + recall
    middle = 2 * precision * recall / total if total else 0.0
    return precision, recall, middle, float(reference.full or candidate.full)


def _score(side: MetricInput, options: MetricOptions) -> Scores | Unavailable:
    texts = both_texts(side, "bertscore")
    if isinstance(texts, Unavailable):
        return texts
    lacking = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if lacking:
        return Unavailable(
            "bertscore",
            f"{' and '.join(lacking)} cannot be imported. Install the extra: "
            f"`{install_command('bertscore')}`.",
        )
    if options.bertscore_model is None:
        return Unavailable(
            "bertscore",
            "no encoder is named. Give the folder of a saved one; none is downloaded.",
        )
    try:
        encoder = load_encoder(options.bertscore_model, options.bertscore_layer)
    except DataError as error:
        return Unavailable("bertscore", str(error))
    found = bertscore(encoder, *texts)
    full = int(found[:, 3].sum())
    limit = (
        f"{full} of {len(found)} cases have a text of {encoder.longest} tokens or "
        "more: the rest of it is not read"
    )
    fields = (
        "F",
        f"model:{encoder.digest[:12]}",
        f"layer:{encoder.layer}/{encoder.layers}",
        "idf:no",
        "rescale:no",
        "mean:cases",
    )
    signature = sign("bertscore", *fields, library="transformers", n=len(found))
    return mean_scores(found[:, 2], signature, (limit,) if full else ())


BERTSCORE = Metric(
    name="bertscore",
    title="BERTScore",
    direction=Direction.HIGHER,
    low=-1.0,
    high=1.0,
    needs="texts, the extra `bertscore`, and the folder of an encoder",
    about="F of the nearness of tokens in an encoder's eyes. It hardly sees negation.",
    reference="Zhang T et al. BERTScore. ICLR 2020",
    score=_score,
)
