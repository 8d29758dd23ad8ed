"""One reference per case and one candidate per case and system, side by side."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from loop.core.errors import DataError
from loop.labels.language import UNKNOWN, guess_language
from loop.labels.texts import has_words
from loop.score.reading.entries import Entries, SideRow
from loop.score.records import MISSING, Codes, Coverage, Joined, PairSide

REFERENCE: Final = "reference"
_SHOWN: Final = 3
"""Ids of each kind that a message names."""


class Sides(NamedTuple):
    """What was read of both sides."""

    reference: Entries
    systems: Mapping[str, Entries]
    n_labels: int
    notes: tuple[str, ...] = ()
    """What was noticed while reading."""


def assemble(sides: Sides, *, language: str = "") -> Joined:
    """Return candidates and references joined by id, cases sorted by id.

    Parameters
    ----------
    sides
        What was read; systems stay in the order given.
    language
        ISO 639-1 code of every case; empty: as given, else as the text itself says.

    Raises
    ------
    DataError
        No reference says anything, a system shares no id with the references, or one
        side holds texts and labels.
    """
    references = sides.reference.by_id
    silent = tuple(sorted(i for i, entry in references.items() if _is_silent(entry)))
    case_ids = tuple(sorted(references.keys() - set(silent)))
    if not case_ids:
        raise DataError(
            "no reference holds a word, so there is nothing to compare with. Check "
            "that this is the file of references and that its texts are there."
        )
    for system, entries in sides.systems.items():
        _require_common(system, entries, sides.reference)
    patients, lacking = _patients(case_ids, references)
    return Joined(
        case_ids=case_ids,
        reference=_column(REFERENCE, case_ids, sides.reference, sides.n_labels),
        systems=tuple(
            _column(system, case_ids, entries, sides.n_labels)
            for system, entries in sides.systems.items()
        ),
        coverage=tuple(
            _coverage(system, case_ids, entries, references)
            for system, entries in sides.systems.items()
        ),
        empty_references=silent,
        patients=patients,
        languages=tuple(language or _language(case_id, sides) for case_id in case_ids),
        repeated_references=sides.reference.repeated,
        notes=tuple(dict.fromkeys((*sides.notes, *lacking, *_notes(sides)))),
    )


def fold_id(case_id: str) -> str:
    """Return an id without case, leading zeros and a trailing ``.0``.

    Only to say that ids look alike: they are never joined so.

    Examples
    --------
    >>> fold_id("P007") == fold_id("p7"), fold_id("123.0") == fold_id("00123")
    (True, True)
    """
    plain = unicodedata.normalize("NFKC", case_id).casefold()
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"(?<=\d)\.0+$", "", plain))


def quote_ids(ids: Sequence[str]) -> str:
    """Return the first few of `ids` in words, for messages."""
    shown = ", ".join(repr(case_id[:40]) for case_id in ids[:_SHOWN])
    return f"{shown} and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else shown


def _is_silent(entry: SideRow) -> bool:
    return entry.content.text is not None and not has_words(entry.content.text)


def _column(
    name: str, case_ids: Sequence[str], entries: Entries, n_labels: int
) -> PairSide:
    """Return one side in the order of `case_ids`."""
    _require_one_kind(name, entries)
    found = [entries.by_id.get(case_id) for case_id in case_ids]
    if next(iter(entries.by_id.values())).content.codes is None:
        texts = tuple(None if entry is None else entry.content.text for entry in found)
        return PairSide(name=name, texts=texts)
    return PairSide(name=name, texts=None, codes=_codes(found, n_labels))


def _codes(found: Sequence[SideRow | None], n_labels: int) -> Codes:
    codes = np.full((len(found), n_labels), MISSING, dtype=np.int8)
    for row, entry in enumerate(found):
        if entry is not None and entry.content.codes is not None:
            codes[row] = entry.content.codes
    return codes


def _require_one_kind(name: str, entries: Entries) -> None:
    """Refuse a side that is partly texts and partly labels."""
    kinds: dict[bool, str] = {}
    for entry in entries.by_id.values():
        kinds.setdefault(entry.content.codes is None, entry.where)
    if len(kinds) > 1:
        raise DataError(
            f"system {name!r} is texts at {kinds[True]} and labels at {kinds[False]}. "
            "Give one of the two, or two names."
        )


def _require_common(system: str, entries: Entries, reference: Entries) -> None:
    """Refuse a system of which no id is among the references."""
    if entries.by_id.keys() & reference.by_id.keys():
        return
    near = _look_alike(list(reference.by_id), list(entries.by_id))
    hint = (
        f"{len(near)} of them differ only in case, leading zeros or a trailing .0."
        if near
        else "Check that both name the same cases, and --id-column."
    )
    raise DataError(
        f"no id of {system!r} is among the references: it has "
        f"{quote_ids(list(entries.by_id))}; they have "
        f"{quote_ids(list(reference.by_id))}. {hint} Give both sides the same ids."
    )


def _coverage(
    system: str,
    case_ids: Sequence[str],
    entries: Entries,
    references: Mapping[str, SideRow],
) -> Coverage:
    paired = [case_id for case_id in case_ids if case_id in entries.by_id]
    return Coverage(
        system=system,
        rows=entries.rows,
        paired=len(paired),
        missing=tuple(i for i in case_ids if i not in entries.by_id),
        extra=tuple(sorted(entries.by_id.keys() - references.keys())),
        repeated=entries.repeated,
        empty=tuple(i for i in paired if _is_silent(entries.by_id[i])),
    )


def _patients(
    case_ids: Sequence[str], references: Mapping[str, SideRow]
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the patient of each case if all are known; else None, and a note."""
    found = tuple(references[case_id].content.patient for case_id in case_ids)
    known = sum(map(bool, found))
    if known == len(found):
        return found, ()
    if not known:
        return None, ()
    return None, (
        f"{len(found) - known:,} of {len(found):,} cases have no patient: intervals "
        "are over cases, as if all were of different patients.",
    )


def _language(case_id: str, sides: Sides) -> str:
    """Return the language of one case: as said of its reference, else as that looks.

    Where the reference is labels: as said of a system, else as its text looks.
    """
    everyone = (sides.reference, *sides.systems.values())
    contents = [
        entries.by_id[case_id].content
        for entries in everyone
        if case_id in entries.by_id
    ]
    own = sides.reference.by_id[case_id].content
    if own.text and not own.language:
        # What a system says of its texts decides nothing about the reference.
        return guess_language(own.text)
    said = next((each.language for each in contents if each.language), "")
    text = next((each.text for each in contents if each.text), "")
    return said or (guess_language(text) if text else UNKNOWN)


def _say_labels(sides: Sides) -> list[str]:
    """Say who gave labels where others gave texts."""
    everyone = [(REFERENCE, sides.reference), *sides.systems.items()]
    given = [
        name
        for name, entries in everyone
        if any(one.content.codes is not None for one in entries.by_id.values())
    ]
    if len(given) in (0, len(everyone)):
        return []
    return [
        f"Labels of {', '.join(given)} are as given, and not read by the extractor, as "
        "those of the others are."
    ]


def _notes(sides: Sides) -> list[str]:
    """Return what a reader should know of ids that stand twice or look alike."""
    notes = _say_labels(sides)
    # A list, as a system may be called "reference" too.
    for name, entries in [(REFERENCE, sides.reference), *sides.systems.items()]:
        if entries.conflicting:
            notes.append(
                f"{name}: {len(entries.conflicting):,} id(s) stood more than once with "
                f"different content ({quote_ids(entries.conflicting)}); one was chosen."
            )
    for name, entries in sides.systems.items():
        missing = sorted(sides.reference.by_id.keys() - entries.by_id.keys())
        extra = sorted(entries.by_id.keys() - sides.reference.by_id.keys())
        near = _look_alike(missing, extra)
        if near:
            notes.append(
                f"{name}: {len(near):,} id(s) differ from that of a reference only in "
                f"case, leading zeros or a trailing .0 ({quote_ids(near)}); they were "
                "not joined. Give both sides the same ids."
            )
    return notes


def _look_alike(references: Sequence[str], candidates: Sequence[str]) -> list[str]:
    """Return the `candidates` that are a reference after folding."""
    folded = {fold_id(case_id) for case_id in references}
    return [case_id for case_id in candidates if fold_id(case_id) in folded]
