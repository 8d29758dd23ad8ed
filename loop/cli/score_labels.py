"""How ``score`` reads labels: by which extractor, and what that one gets wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import typer

from loop.cli.console import Progress, note
from loop.cli.run_release import Wanted, find_wanted
from loop.cli.score_bias import read_errors
from loop.cli.score_inputs import material
from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.labels.taxonomy import Taxonomy
from loop.prompts.catalog import list_versions, read_aliases
from loop.release.released import list_releases
from loop.report.score.build import Read
from loop.run.asking import Asking
from loop.score.extractor import Extractor
from loop.score.grading import grade
from loop.score.records import Graded, Joined, NoFinding

PROMPT = "extractor"
"""Prompt whose versions are taken where none is named."""

_ALIAS = "production"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the command line says of extractors."""

    version: str | None
    release: str | None
    engine: str | None
    also: str | None
    also_engine: str
    bias: str | None
    asking: Asking


class Choice(NamedTuple):
    """An extractor, and why it is that one."""

    wanted: Wanted
    why: str
    """Empty where it was named."""


def read_labels(
    place: Workspace | None,
    joined: Joined,
    taxonomy: Taxonomy,
    wish: Wish,
    no_finding: NoFinding,
    *,
    quiet: bool,
) -> Read:
    """Return both sides as labels, with all that was asked about extractors.

    Raises
    ------
    DataError
        There is no such extractor, or labels are given and an extractor was named.
    EngineError
        An engine is not available or failed as a whole.
    """
    if all(side.texts is None for side in (joined.reference, *joined.systems)):
        _refuse_extractors(wish)
        return Read(joined=joined, graded=grade(joined, taxonomy, None, no_finding))
    choice = choose(place, wish)
    asking = replace(wish.asking, **choice.wanted.parameters)
    remarks = [choice.why] if choice.why else []
    with _open(place, choice.wanted, asking) as extractor:
        note(f"labels read by {extractor.facts.ref}, engine {extractor.facts.engine}")
        track = Progress("texts", quiet=quiet).track
        graded = grade(joined, taxonomy, extractor, no_finding, watch=track)
        remarks += _other_engine(choice.wanted, extractor)
    errors = None
    if wish.bias is not None:
        found = read_errors(place, choice.wanted, graded.extractor, wish.bias)
        errors = found.by_label
        remarks.append(found.source)
    second = _second(place, joined, taxonomy, wish, no_finding, quiet=quiet)
    return Read(
        joined=joined,
        graded=graded,
        second=second,
        errors=errors,
        remarks=tuple(remarks),
    )


def choose(place: Workspace | None, wish: Wish) -> Choice:
    """Return the extractor that was named, else the newest release, else an alias.

    Raises
    ------
    DataError
        There is none, or the release does not hold.
    typer.BadParameter
        A version and a release were named.
    """
    if wish.version is not None and wish.release is not None:
        raise typer.BadParameter("name a version or a release, not both")
    here = material(place)
    given: Mapping[str, Any] = {}
    if wish.version is not None or wish.release is not None:
        return Choice(
            find_wanted(here, wish.version, wish.release, wish.engine, given), ""
        )
    held = [
        one
        for one in list_releases(here)
        if one.ref.partition("@")[0] == PROMPT and one.withdrawal is None
    ]
    if held:
        name = held[-1].name
        why = f"Extractor: {name}, the newest release that was not withdrawn."
        return Choice(find_wanted(here, None, name, wish.engine, given), why)
    aliased = read_aliases(here, PROMPT).get(_ALIAS)
    if aliased is None and not list_versions(here, PROMPT):
        raise DataError(
            f"there is no prompt {PROMPT!r} in {here.root}. Name an extractor with "
            "--extractor VERSION or --release NAME, or give labels."
        )
    ref = f"{PROMPT}@{aliased or 'latest'}"
    what = f"the alias {_ALIAS}" if aliased else "the newest version"
    why = f"Extractor: {what} of {PROMPT}; there is no release of it here."
    return Choice(find_wanted(here, ref, None, wish.engine, given), why)


def _open(place: Workspace | None, wanted: Wanted, asking: Asking) -> Extractor:
    release = wanted.release.name if wanted.release else ""
    return Extractor.open(place, wanted.prompt, wanted.engine, asking, release=release)


def _refuse_extractors(wish: Wish) -> None:
    """Refuse options that would do nothing: labels are given."""
    named = {
        "--extractor": wish.version,
        "--release": wish.release,
        "--engine": wish.engine,
        "--also": wish.also,
        "--bias": wish.bias,
    }
    for option, value in named.items():
        if value is not None:
            raise DataError(
                f"{option}: all files give labels, so nothing is read by an extractor. "
                "Leave it out, or give texts."
            )


def _other_engine(wanted: Wanted, extractor: Extractor) -> list[str]:
    """Return a remark if a release was asked of another engine than its own."""
    release = wanted.release
    if release is None or extractor.facts.identity == release.facts["engine"]["digest"]:
        return []
    return [
        f"This is not the engine that {release.name} was released with "
        f"({release.facts['engine']['name']}, or its settings): what the release says "
        "of its answers does not hold for these."
    ]


def _second(
    place: Workspace | None,
    joined: Joined,
    taxonomy: Taxonomy,
    wish: Wish,
    no_finding: NoFinding,
    *,
    quiet: bool,
) -> Graded | None:
    """Return the same pairs read by the second extractor; None without one."""
    if wish.also is None:
        return None
    opened = Extractor.open(place, wish.also, wish.also_engine, wish.asking)
    with opened as extractor:
        note(f"read again by {extractor.facts.ref}, engine {extractor.facts.engine}")
        track = Progress("texts", quiet=quiet).track
        return grade(joined, taxonomy, extractor, no_finding, watch=track)
