"""Counts tokens: with the model's own tokenizer if it is here, else by an estimate.

Nothing is ever downloaded. The model's tokenizer is read from its own folder or from
the local Hugging Face cache, and only if the package ``tokenizers`` is installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loop.core.paths import install_command

Count = Callable[[str], int]
"""Text to its number of tokens, without the marks of a chat template."""

ERROR_PERCENT = 5
"""What `estimate_tokens` is off at most over many texts, percent; see there."""

_WORD = re.compile(r"[A-Za-z]+")
_CAPITALS = re.compile(r"[A-Z]{3,}")
_DIGITS = re.compile(r"[0-9]{1,3}")
_LINE_BREAKS = re.compile(r"[\r\n]+")
_MARKS = re.compile(r"[!-/:-@\[-`{-~]+")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_OTHER = re.compile(r"[^\x00-\x7f\u3400-\u9fff\uf900-\ufaff]")

_COMMON = 6
"""Letters of a word that mostly cost one token together."""

_COMMON_CAPITALS = 3
"""The same for capitals in a row, as in headings."""

_PER_WORD = 0.83
_PER_FURTHER_LETTER = 0.275
_PER_FURTHER_CAPITAL = 0.36
_PER_DIGITS = 2.3
_PER_LINE_BREAK = 0.9
_PER_MARKS = 1.3
_PER_FURTHER_MARK = 0.13
_PER_HAN = 1.3
_PER_OTHER = 0.6

_MODEL = re.compile(r"[\w.-]+(?:/[\w.-]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """A way to count tokens, and how far it can be trusted."""

    count: Count
    exact: bool
    """Whether this is the model's own tokenizer."""

    remark: str
    """How the tokens were counted, in words."""


def estimate_tokens(text: str) -> int:
    """Return about how many tokens `text` takes.

    Each class of characters has its price: a word, each letter of it after the sixth,
    each capital after the third in a row, a group of up to three digits, a run of line
    breaks or of marks, each further mark of a run, a Chinese character, any other
    character beyond ASCII.

    The prices were fitted to the mean of three tokenizers (cl100k, o200k, tekken) on
    extractor@v1 to v7, 300 reports of Open-i and answers about them. Summed
    over such a set, the estimate is off by -2.8 to +3.3 percent from any of the three;
    on texts it was not fitted to by -2.5 to +1.7 percent (1,348 other reports of
    Open-i) and -3.6 to +1.0 percent (210 reports of the demo). A single report of
    Open-i is off by 4 percent in the mean and by more than 9 in one of twenty. Chinese
    was seen only as single terms inside the prompts, other scripts were not looked at.
    Older vocabularies of 32,000 pieces need more tokens than these.

    Examples
    --------
    >>> estimate_tokens("No focal consolidation, effusion or pneumothorax.")
    12
    """
    words = _WORD.findall(text)
    marks = _MARKS.findall(text)
    total = (
        _PER_WORD * len(words)
        + _PER_FURTHER_LETTER
        * sum(len(word) - _COMMON for word in words if len(word) > _COMMON)
        + _PER_FURTHER_CAPITAL
        * sum(len(run) - _COMMON_CAPITALS for run in _CAPITALS.findall(text))
        + _PER_DIGITS * len(_DIGITS.findall(text))
        + _PER_LINE_BREAK * len(_LINE_BREAKS.findall(text))
        + _PER_MARKS * len(marks)
        + _PER_FURTHER_MARK * (sum(map(len, marks)) - len(marks))
    )
    if not text.isascii():
        total += _PER_HAN * len(_HAN.findall(text))
        total += _PER_OTHER * len(_OTHER.findall(text))
    return round(total)


def find_counter(
    model: str | None,
    revision: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
) -> TokenCounter:
    """Return the best way to count the tokens of `model` on this machine.

    Parameters
    ----------
    model
        Name of the model, or its folder; None for an engine without a model.
    revision
        Revision of its weights; None for the newest that was cached.
    environment
        Where the Hugging Face cache is named, if it is not in its usual place.
    """
    if model is None:
        return _estimate("the engine has no tokenizer")
    path = find_tokenizer(model, revision, environment)
    if path is None:
        return _estimate(f"no tokenizer.json of {model} on this machine")
    if importlib.util.find_spec("tokenizers") is None:
        add = install_command("tokens")
        return _estimate(f"to count with the model's own tokenizer: `{add}`")
    if not _is_tokenizer(path):
        return _estimate(f"the tokenizer.json of {model} cannot be read")
    return TokenCounter(
        count=_load(path), exact=True, remark=f"counted with the tokenizer of {model}"
    )


def _estimate(why: str) -> TokenCounter:
    return TokenCounter(
        count=estimate_tokens,
        exact=False,
        remark=f"estimated, +-{ERROR_PERCENT} % for English ({why})",
    )


def find_tokenizer(
    model: str, revision: str | None, environment: Mapping[str, str]
) -> Path | None:
    """Return the tokenizer.json of a model folder or of the local cache, if any."""
    folder = Path(model)
    if folder.is_dir():
        return _existing(folder / "tokenizer.json")
    if not _MODEL.fullmatch(model):
        return None
    cached = _cache(environment) / f"models--{model.replace('/', '--')}"
    snapshot = revision or _newest(cached)
    # A revision is a folder's name here, never a path.
    if not snapshot or not re.fullmatch(r"[\w-][\w.-]*", snapshot):
        return None
    named = cached / "refs" / snapshot
    commit = named.read_text("utf-8").strip() if named.is_file() else snapshot
    return _existing(cached / "snapshots" / commit / "tokenizer.json")


def _newest(cached: Path) -> str:
    """Return what the cache calls ``main``, else its last snapshot."""
    if (cached / "refs" / "main").is_file():
        return "main"
    snapshots = sorted(path.name for path in cached.glob("snapshots/*"))
    return snapshots[-1] if snapshots else ""


def _cache(environment: Mapping[str, str]) -> Path:
    """Return the folder in which Hugging Face libraries keep models."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environment.get(name):
            return Path(environment[name])
    if environment.get("HF_HOME"):
        return Path(environment["HF_HOME"]) / "hub"
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "huggingface" / "hub"


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None


def _is_tokenizer(path: Path) -> bool:
    """Whether a file looks like a tokenizer: the library says so less politely."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and isinstance(data.get("model"), dict)


def _load(path: Path) -> Count:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(text: str) -> int:
        # A lone surrogate is sent as a question mark, and is not text to the library.
        whole = text.encode("utf-8", "replace").decode("utf-8")
        return len(tokenizer.encode(whole, add_special_tokens=False).ids)

    return count
