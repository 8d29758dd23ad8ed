"""What ``score`` is given: files by name, and the words of its options."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from loop.labels.taxonomy import Taxonomy
from loop.score.experts.radpref import read_radpref
from loop.score.experts.ratings import Ratings
from loop.score.experts.reading import read_ratings
from loop.score.joining import CandidateFile, join_files, join_pairs, join_texts
from loop.score.metrics.registry import find
from loop.score.reading.options import ReadingOptions
from loop.score.records import Joined


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreInputs:
    """Where the rows to score are."""

    reference: Path | None
    candidates: tuple[str, ...]
    """``FILE`` or ``NAME=FILE`` each."""

    pairs: Path | None
    radpref: Path | None
    ratings: Path | None


def check_given(given: ScoreInputs) -> None:
    """Refuse what cannot be scored together.

    Raises
    ------
    typer.BadParameter
        Nothing, half of what is needed, or two ways at once were given.
    """
    files = given.reference is not None or bool(given.candidates)
    ways = (files, given.pairs is not None, given.radpref is not None)
    if sum(ways) > 1:
        raise typer.BadParameter(
            "give references and candidates, or --pairs, or --radpref: one of the three"
        )
    if not any(ways):
        raise typer.BadParameter(
            "give candidates and their references with --reference, or --pairs FILE"
        )
    if files and given.reference is None:
        raise typer.BadParameter("name the references with --reference FILE")
    if files and not given.candidates:
        raise typer.BadParameter("name at least one file of candidates")
    if given.radpref is not None and given.ratings is not None:
        raise typer.BadParameter("--radpref brings its ratings: leave --ratings out")


def read_policy(words: Sequence[str]) -> dict[str, str]:
    """Return what words of label cells mean, from ``WORD=VALUE`` each.

    Raises
    ------
    typer.BadParameter
        There is no ``=``, or a word stands twice.
    """
    policy: dict[str, str] = {}
    for text in words:
        word, sign, meaning = text.rpartition("=")
        if not sign:
            raise typer.BadParameter(
                f"--value {text[:40]}: write WORD=VALUE, for example yes=present"
            )
        if policy.setdefault(word, meaning) != meaning:
            raise typer.BadParameter(f"--value {word[:40]}: it is given two meanings")
    return policy


def read_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics that are asked for; none of them for ``none``.

    Raises
    ------
    DataError
        Nothing is called so.
    typer.BadParameter
        ``none`` and others at once.
    """
    if "none" in names:
        if len(names) > 1:
            raise typer.BadParameter("--metric none leaves no room for others")
        return ()
    find(names)
    return tuple(names)


def join_given(
    given: ScoreInputs, taxonomy: Taxonomy, options: ReadingOptions
) -> Joined:
    """Return the pairs, joined by id.

    Raises
    ------
    DataError
        A file is missing or malformed, or rows cannot be joined.
    """
    if given.radpref is not None:
        found = read_radpref(given.radpref)
        joined = join_texts(
            found.references,
            found.candidates,
            taxonomy,
            patients=found.patients,
            options=options,
        )
        return replace(joined, files=found.files)
    if given.pairs is not None:
        return join_pairs(given.pairs, taxonomy, options=options)
    if given.reference is None:
        raise ValueError("there is nothing to join")
    files = [_candidate(text) for text in given.candidates]
    return join_files(given.reference, files, taxonomy, options=options)


def read_points(given: ScoreInputs) -> Ratings | None:
    """Return the experts' points; None where there are none."""
    if given.radpref is not None:
        return read_radpref(given.radpref).ratings
    return None if given.ratings is None else read_ratings(given.ratings)


def add_rated_file(joined: Joined, given: ScoreInputs) -> Joined:
    """Return `joined` with the file of points among its files, once it was read."""
    if given.ratings is None:
        return joined
    digest = hashlib.sha256(given.ratings.read_bytes()).hexdigest()
    return replace(joined, files=(*joined.files, (given.ratings.name, digest)))


def _candidate(text: str) -> CandidateFile:
    """Return a file and maybe the name of its system; a name may hold no ``=``."""
    name, sign, path = text.partition("=")
    if not sign or os.path.exists(text):
        return CandidateFile(Path(text))
    return CandidateFile(Path(path), name)
