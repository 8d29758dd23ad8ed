"""Assertion cues as data: which words negate, hedge, or end a scope."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.safe_text import quoted
from loop.core.yaml_files import read_model

MOST_FORMS = 2_000
"""Phrases that one cue with slots may stand for."""


class Directed(BaseModel):
    """Cues of one kind, by where the words they govern stand."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    before: tuple[str, ...] = ()
    before_near: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


class Statements(BaseModel):
    """Words by which a clause is a statement of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    verbs: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    singular: tuple[str, ...] = ()
    pronouns: tuple[str, ...] = ()


class OtherStudies(BaseModel):
    """Words by which a sentence speaks of another examination than this one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reported: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    modalities: tuple[str, ...] = ()
    studies: tuple[str, ...] = ()
    current: tuple[str, ...] = ()
    still: tuple[str, ...] = ()
    prepositions: tuple[str, ...] = ()
    adverbs: tuple[str, ...] = ()


class ChangeWords(BaseModel):
    """Words after a negation by which it denies a change and not a finding."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    degrees: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class Boxes(BaseModel):
    """Boxes of a form, and words that may follow them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    empty: tuple[str, ...] = ()
    ticked: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    yes: tuple[str, ...] = ()


class SideWords(BaseModel):
    """Words for the two sides of a patient."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()


class LostStops(BaseModel):
    """Capitalised words that begin a sentence where its full stop was lost."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    openers: tuple[str, ...] = ()
    never_after: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


_ENDINGS = ("s", "es", "d", "ed", "ing", "ly", "al")


class Spelling(BaseModel):
    """Whether and how words of a report are corrected towards the guides' words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    correct: bool = False
    known: tuple[str, ...] = ()

    @cached_property
    def forms(self) -> frozenset[str]:
        """The known words with every ending that is no misspelling."""
        return frozenset(word + end for word in self.known for end in ("", *_ENDINGS))


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

    slots: Mapping[str, tuple[str, ...]] = {}
    """What may stand for ``<name>`` in a phrase of this file."""

    negation: Directed = Directed()
    limited: Directed = Directed()
    pseudo: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    uncertain: Directed = Directed()
    deniable: tuple[str, ...] = ()
    probable: Directed = Directed()
    historical: Directed = Directed()
    hypothetical: Directed = Directed()
    pending: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    terminators: tuple[str, ...] = ()
    boxes: Boxes = Boxes()
    affirmations: tuple[str, ...] = ()
    openings: tuple[str, ...] = ()
    restarts: tuple[str, ...] = ()
    lost_stops: LostStops = LostStops()
    gap_stops: tuple[str, ...] = ()
    qualifiers: tuple[str, ...] = ()
    sides: SideWords = SideWords()
    statements: Statements = Statements()
    changes: ChangeWords = ChangeWords()
    other_studies: OtherStudies = OtherStudies()
    sections: SectionHeadings = SectionHeadings()
    inflections: tuple[tuple[str, tuple[str, ...]], ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()
    spelling: Spelling = Spelling()

    @property
    def digest(self) -> str:
        """Sha256 over the content, so that a comment does not change an answer."""
        return digest_json(self.model_dump(mode="json"))

    def spelled_out(self, phrase: str) -> Iterator[str]:
        """Yield `phrase` with everything that may stand in its slots.

        Raises
        ------
        DataError
            It names a slot that the file does not have, or stands for too much.
        """
        pieces = re.split(r"<(\w*)>", phrase)
        names = pieces[1::2]
        unknown = [name for name in names if name not in self.slots]
        if unknown:
            raise DataError(
                f"the cues of {self.language!r} have no slot "
                f"{quoted(unknown[0])}, which a cue of {len(phrase.split())} words "
                "names. Add it to slots, or correct the cue."
            )
        if math.prod(len(self.slots[name]) for name in names) > MOST_FORMS:
            raise DataError(
                f"a cue of {len(phrase.split())} words of {self.language!r} stands for "
                f"more than {MOST_FORMS:,} phrases. Use fewer slots."
            )
        for words in product(*(self.slots[name] for name in names)):
            filled = [*words, ""]
            yield "".join(
                plain + word for plain, word in zip(pieces[::2], filled, strict=True)
            )


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
    return tuple(read_model(path, Cues) for path in paths)
