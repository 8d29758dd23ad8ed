"""Strict YAML, and files that fit a model: nothing guessed, every wrong field named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError

from loop.core.errors import DataError
from loop.core.files import read_text
from loop.core.safe_text import quoted

Model = TypeVar("Model", bound=BaseModel)


class _StrictLoader(yaml.CSafeLoader):
    """YAML without the surprises: ``no`` is a word, a date is text, keys are unique."""


_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, rx) for tag, rx in pairs if tag == "tag:yaml.org,2002:null"]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
# Numbers as JSON writes them: 007, 1_0, 12:30 and 0x1F are words, such as case ids.
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^-?(?:0|[1-9][0-9]*)$"), list("-0123456789")
)
_FLOAT = re.compile(r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)(?:[eE][-+]?[0-9]+)?$")
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", _FLOAT, list("-0123456789")
)
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool",
    re.compile(r"^(?:true|false)$"),
    list("tf"),
)


def _unique_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> object:
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            # A list or a mapping; the loader says that it cannot be a key.
            continue
        if key.value in seen:
            line = key.start_mark.line + 1
            raise DataError(f"line {line}: key {quoted(key.value)} occurs twice")
        seen.add(key.value)
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _unique_mapping)


_DEEPEST = 200
"""Deepest nesting read; our files need six levels."""

_FEW = 5_000
"""Marks that may open something; a text with fewer cannot exhaust the stack."""


def _check_depth(text: str) -> None:
    """Raise what a loader in Python would; libyaml's stack would end the process."""
    if sum(map(text.count, ("[", "{", "- ", "? "))) < _FEW:
        return
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise RecursionError


_NAMED = re.compile(r"'(.{2,})'", re.DOTALL)
"""An alias or a tag of the file that libyaml quotes."""


def parse_yaml(text: str, source: Path | str) -> object:
    """Return the data of a YAML text; ``no`` stays a word and keys are unique.

    Raises
    ------
    DataError
        The text is not YAML, or a key occurs twice; names `source` and the line.
    """
    try:
        _check_depth(text)
        return yaml.load(text, Loader=_StrictLoader)
    except DataError as error:
        raise DataError(f"{source}, {error}. Keep one of the two.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        problem = _NAMED.sub(lambda found: quoted(found[1]), problem)
        raise DataError(
            f"{source}{where}: not valid YAML ({problem}). Correct that line."
        ) from error
    except RecursionError as error:
        raise DataError(f"{source}: nested too deeply. Flatten it.") from error


def read_model(path: Path, model: type[Model]) -> Model:
    """Return the YAML file `path` as `model`.

    Raises
    ------
    DataError
        The file is missing, not YAML, or does not fit; names each wrong field.
    """
    return parse_model(read_text(path), model, path)


def parse_model(text: str, model: type[Model], source: Path | str) -> Model:
    """Return a YAML text as `model`; equal texts give one object of a frozen model.

    Raises
    ------
    DataError
        The text is not YAML, or does not fit; names `source` and each wrong field.
    """
    if model.model_config.get("frozen"):
        # An error is raised again below, where it names the source.
        with suppress(DataError):
            return cast(Model, _parse_once(text, model))
    return check_model(parse_yaml(text, source), model, source)


@lru_cache(maxsize=128)
def _parse_once(text: str, model: type[BaseModel]) -> BaseModel:
    return check_model(parse_yaml(text, ""), model, "")


def check_model(data: object, model: type[Model], source: Path | str) -> Model:
    """Return `data` validated as `model`; the error lists each wrong field.

    Raises
    ------
    DataError
        The data does not fit.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = [
            f"  {field_name(problem['loc']) or '(file)'}: "
            f"{_reason(problem['type'], problem['msg'])}"
            for problem in error.errors(include_input=False, include_url=False)[:10]
        ]
        detail = "\n".join(lines)
        # Not from the error: a notebook prints causes too, and this one has the input.
        raise DataError(
            f"{source} does not have the expected form:\n{detail}\n"
            "Correct these fields and run the command again."
        ) from None


def field_name(place: Sequence[int | str]) -> str:
    """Return where a field is, as pydantic says it; a key may be anything at all."""
    return ".".join(
        str(part) if isinstance(part, int) else quoted(part).strip("'")
        for part in place
    )


def _reason(kind: str, message: str) -> str:
    """Return what is wrong with a field, in words of a file's author."""
    if kind == "extra_forbidden":
        return "there is no such field; check its spelling and its place"
    # pydantic writes so before what a validator of ours says.
    return "missing" if kind == "missing" else message.removeprefix("Value error, ")


class _Dumper(yaml.CSafeDumper):
    """Block style, keys in order, readable strings."""


# A word such as "1.5e5" is a number to the reader: it must be written in quotes.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-0123456789"))


def dump_yaml(data: object) -> str:
    """Return `data` as block-style YAML, keys in the order given, width 88."""
    text = yaml.dump(
        data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=88
    )
    return str(text)
