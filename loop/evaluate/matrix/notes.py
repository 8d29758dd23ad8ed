"""What a reader of a matrix must know beside its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loop.evaluate.matrix.records import EngineColumn, MatrixRow
from loop.evaluate.results import Evaluation


def matrix_notes(
    columns: Sequence[EngineColumn], rows: Sequence[MatrixRow], cases: int
) -> Iterator[str]:
    """Yield the caveats, most important first.

    Parameters
    ----------
    cases
        Cases that every run holds.
    """
    if any(column.left_out for column in columns):
        left = ", ".join(
            f"{one.key} {one.left_out}" for one in columns if one.evaluation
        )
        yield (
            f"The runs hold different cases: every column counts the {cases} cases "
            f"that all of them hold. Left out: {left}."
        )
    done = {
        column.key: column.evaluation
        for column in columns
        if column.evaluation is not None
    }
    yield from _unlike(done)
    unranked = sum(not row.ranked for row in rows)
    if unranked:
        yield (
            f"No engine is ranked on {unranked} of {len(rows)} labels: too few cases, "
            "positives or readable answers, or no other engine to rank against."
        )
    yield from _said_of(done)


def _unlike(done: Mapping[str, Evaluation]) -> Iterator[str]:
    """Say when the engines were not asked alike, and in what."""
    asked = {key: _parameters(one) for key, one in done.items()}
    names = dict.fromkeys(name for how in asked.values() for name in how)
    unlike = [text for name in names if (text := _differences(name, asked))]
    if unlike:
        yield f"The engines were asked differently: {'; '.join(unlike)}."


def _differences(name: str, asked: Mapping[str, Mapping[str, object]]) -> str:
    """Return the values of one parameter with their engines, if they differ."""
    engines: dict[object, list[str]] = {}
    for key, how in asked.items():
        engines.setdefault(how.get(name, "none"), []).append(key)
    if len(engines) < 2:
        return ""
    values = (f"{value} ({', '.join(keys)})" for value, keys in engines.items())
    return f"{name} {', '.join(values)}"


def _said_of(done: Mapping[str, Evaluation]) -> Iterator[str]:
    """Yield the notes of the evaluations, each once, with the engines it is about."""
    about: dict[str, list[str]] = {}
    for key, one in done.items():
        late = ("The protocol was registered after the run began.",)
        for text in (*(late if one.registered_late else ()), *one.notes):
            about.setdefault(text, []).append(key)
    for text, keys in about.items():
        yield text if len(keys) == len(done) else f"{', '.join(keys)}: {text}"


def _parameters(evaluation: Evaluation) -> Mapping[str, object]:
    """Return parameters and draw as the manifest has them."""
    spec = evaluation.run.manifest.get("spec")
    if not isinstance(spec, Mapping):
        return {"draw": 0}
    return {**spec.get("parameters", {}), "draw": spec.get("draw", 0)}
