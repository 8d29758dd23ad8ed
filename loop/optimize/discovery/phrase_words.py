"""The words by which phrases are taken out of reports: ``labels/discovery.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from loop.core.digests import digest_json
from loop.core.paths import WorkspacePaths, bundled
from loop.core.yaml_files import read_model
from loop.engines.rules.cues import Cues
from loop.engines.rules.vocabulary import inflected

DISCOVERY: Final = "discovery.yaml"
"""Name of the file, in a folder of labels."""


class PhraseWords(BaseModel):
    """The file; its comments explain each list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    language: str
    articles: frozenset[str]
    links: frozenset[str]
    modifiers: frozenset[str]
    breaks: frozenset[str]
    normal: frozenset[str]
    relative: frozenset[str]
    places: frozenset[str]
    plain: frozenset[str]
    titles: frozenset[str]
    titles_after: frozenset[str]
    dates: frozenset[str]
    acronyms: frozenset[str]
    eponyms: frozenset[str]
    abbreviations: Mapping[str, Annotated[str, Field(pattern=r"\w")]]

    @cached_property
    def digest(self) -> str:
        """Sha256 over everything in the file; the order of a list does not count."""
        data = self.model_dump()
        return digest_json(
            {
                name: sorted(one) if isinstance(one, frozenset) else one
                for name, one in data.items()
            }
        )

    @cached_property
    def ending(self) -> frozenset[str]:
        """Words that end a phrase."""
        return self.breaks | self.normal | self.dates | self.titles | self.titles_after

    @cached_property
    def skipped(self) -> frozenset[str]:
        """Words that are left out inside a phrase."""
        return self.articles | self.links | self.modifiers

    @cached_property
    def unnamed(self) -> frozenset[str]:
        """Words that name no finding, however many of them stand together."""
        return self.places | self.plain

    @cached_property
    def small(self) -> frozenset[str]:
        """Words that are no name of a person in whatever letters they are written."""
        return frozenset(
            {*self.acronyms, *self.eponyms, *self.abbreviations, *self.places}
        )


def read_phrase_words(workspace: WorkspacePaths | None = None) -> PhraseWords:
    """Return the words of a workspace that has a file of its own, else those shipped.

    Raises
    ------
    DataError
        The file cannot be read or does not have the expected form.
    """
    shipped = bundled() / "labels" / DISCOVERY
    own = workspace.labels / DISCOVERY if workspace else shipped
    path = own if own.is_file() else shipped
    return read_model(path, PhraseWords)


class WordForms:
    """One form for the inflections and spellings of a word, as the cues have them.

    Two words are one where a cue file inflects either to the other and both stand in
    the reports; the shorter one is the form, of equally long ones the first by
    alphabet.

    Parameters
    ----------
    words
        Those of the reports.
    cues
        Of the language of the reports.
    """

    def __init__(self, words: Iterable[str], cues: Cues) -> None:
        self._spellings = cues.spellings
        self._parents: dict[str, str] = {}
        known = set(words)
        for word in sorted(known):
            for form in inflected(word, cues.inflections):
                if form != word and form in known:
                    self._join(word, form)

    def of(self, word: str) -> str:
        """Return the one form of a word."""
        form = self._root(word)
        for one, other in self._spellings:
            form = form.replace(other, one)
        return form

    def all_of(self, words: Iterable[str]) -> frozenset[str]:
        """Return words with their one forms."""
        return frozenset(form for word in words for form in (word, self.of(word)))

    def _root(self, word: str) -> str:
        while word in self._parents:
            word = self._parents[word]
        return word

    def _join(self, one: str, other: str) -> None:
        first, second = sorted(
            (self._root(one), self._root(other)), key=lambda word: (len(word), word)
        )
        if first != second:
            self._parents[second] = first
