"""Assertion cues as data: which words negate, hedge, or end a scope."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.yaml_files import read_model


class Directed(BaseModel):
    """Cues of one kind, by where the words they govern stand."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    before: tuple[str, ...] = ()
    before_near: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    between: tuple[str, ...] = ()


class Statements(BaseModel):
    """Words by which a clause is a statement of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    verbs: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    singular: tuple[str, ...] = ()


class SectionHeadings(BaseModel):
    """Headings by what their text is worth."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ignored: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()
    decisive: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


class Cues(BaseModel):
    """One file of ``labels/cues/``; its comments explain each list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    language: str
    words: bool
    """Whether the language separates words, so that cues match whole words only."""

    negation: Directed = Directed()
    limited: Directed = Directed()
    pseudo: tuple[str, ...] = ()
    uncertain: Directed = Directed()
    probable: Directed = Directed()
    historical: Directed = Directed()
    hypothetical: Directed = Directed()
    terminators: tuple[str, ...] = ()
    affirmations: tuple[str, ...] = ()
    openings: tuple[str, ...] = ()
    gap_stops: tuple[str, ...] = ()
    statements: Statements = Statements()
    sections: SectionHeadings = SectionHeadings()
    inflections: tuple[tuple[str, tuple[str, ...]], ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """Sha256 over the content, so that a comment does not change an answer."""
        return digest_json(self.model_dump(mode="json"))


def read_cues(folder: Path) -> tuple[Cues, ...]:
    """Return the cues of every language in ``<folder>/cues/``, by file name.

    Raises
    ------
    DataError
        There are none, or a file does not have the expected form.
    """
    paths = sorted((folder / "cues").glob("*.yaml"))
    if not paths:
        raise DataError(
            f"no cue files in {folder / 'cues'}. Copy labels/cues/ from a fresh "
            "workspace (`ranloop init DIR`)."
        )
    return tuple(_read_cached(path, path.stat().st_mtime_ns) for path in paths)


@lru_cache(maxsize=64)
def _read_cached(path: Path, _modified: int) -> Cues:
    return read_model(path, Cues)
