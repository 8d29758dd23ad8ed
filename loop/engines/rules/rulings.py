"""What a judge's guides say of wordings: that an error is significant, or none at all.

A clarification of a category rules on its errors by the words around the finding they
are about: those of its clause, between commas, "and", "with" and "but", so that another
finding of the sentence keeps its own. One such as "small for trace" rules where the
candidate's clause has the words before "for" and the reference's those after it; any
other where one of the two has its words. Of several the longest rules, of equally long
ones the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from loop.core.records import ErrorWeight, Guide, Span
from loop.engines.rules.sections import sentences
from loop.engines.rules.vocabulary import GAP, MAX_GAP_WORDS, fold, tidy

_FOR = " for "
_BORDER = re.compile(r"[,;:]|(?<!\w)(?:and|or|with|without|but|which|while)(?!\w)")
_MARKS = str.maketrans(dict.fromkeys("()[]{}\"'", " "))


class _Around(NamedTuple):
    """A sentence, folded, and the clause of what an error is about in it."""

    sentence: str
    start: int
    end: int

    def has(self, words: re.Pattern[str]) -> bool:
        """Whether the words stand in the clause, or reach into it."""
        return any(
            found.start() < self.end and found.end() > self.start
            for found in words.finditer(self.sentence)
        )


_NOWHERE = _Around("", 0, 0)
"""Of a text that says nothing of what an error is about: it has no words."""


class _Ruling(NamedTuple):
    whole: re.Pattern[str]
    halves: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]
    """Words of the candidate and of the reference, for each "for"."""

    weight: ErrorWeight

    def holds(self, reference: _Around, candidate: _Around) -> bool:
        """Whether it rules on an error about these places."""
        if candidate.has(self.whole) or reference.has(self.whole):
            return True
        return any(
            candidate.has(given) and reference.has(wanted)
            for given, wanted in self.halves
        )


class Rulings:
    """The clarifications of a judge's guides, by category.

    Parameters
    ----------
    guides
        Of the judge; values of another task, as an extractor's, rule nothing.
    """

    def __init__(self, guides: Iterable[Guide] = ()) -> None:
        self._by_category = {
            guide.label: tuple(_read_rulings(guide))
            for guide in guides
            if guide.clarifications
        }

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._by_category)

    def weigh(
        self, category: str, texts: Sequence[str], spans: Sequence[Span | None]
    ) -> ErrorWeight | None:
        """Return what the guide of a category says of an error; None for nothing.

        Parameters
        ----------
        texts, spans
            Of the reference and of the candidate; a span is what the error is about,
            None where that text says nothing of it.
        """
        rulings = self._by_category.get(category, ())
        if not rulings:
            return None
        reference, candidate = (
            _around(text, span) if span else _NOWHERE
            for text, span in zip(texts, spans, strict=True)
        )
        ruling = next((one for one in rulings if one.holds(reference, candidate)), None)
        return ruling.weight if ruling else None


def _read_rulings(guide: Guide) -> Iterator[_Ruling]:
    """Yield the rulings of a guide, those first that go before others."""
    known = [
        (" ".join(tidy(one.phrase).translate(_MARKS).split()), one.value)
        for one in reversed(guide.clarifications)
        if isinstance(one.value, ErrorWeight) and has_words(one.phrase)
    ]
    for phrase, weight in sorted(known, key=lambda one: -len(one[0])):
        cuts = [one.start() for one in re.finditer(_FOR, phrase)]
        halves = [(phrase[:cut], phrase[cut + len(_FOR) :]) for cut in cuts]
        yield _Ruling(
            _pattern(phrase),
            tuple(
                (_pattern(given), _pattern(wanted))
                for given, wanted in halves
                if has_words(given) and has_words(wanted)
            ),
            weight,
        )


def has_words(phrase: str) -> bool:
    """Whether a phrase has a letter or a digit: nothing is found by others."""
    return any(one.isalnum() for one in phrase)


def _pattern(phrase: str) -> re.Pattern[str]:
    """Return what finds a tidied phrase in a folded sentence, as whole words."""
    gap = rf"(?:\s+\S+){{0,{MAX_GAP_WORDS}}}\s+"
    parts = (part.split() for part in phrase.split(GAP))
    words = gap.join(r"\s+".join(map(re.escape, part)) for part in parts if part)
    return re.compile(rf"(?<!\w){words}(?!\w)")


def _around(text: str, span: Span) -> _Around:
    """Return the sentence in which a span begins, and the clause around the span."""
    begin, end = span.start, span.end
    for offset, sentence in sentences(text, 0, len(text)):
        if offset <= span.start < offset + len(sentence):
            begin, end = offset, offset + len(sentence)
            break
    words = fold(text[begin:end]).translate(_MARKS)
    start, stop = span.start - begin, span.end - begin
    borders = [found.span() for found in _BORDER.finditer(words)]
    return _Around(
        words,
        max((after for _, after in borders if after <= start), default=0),
        min((before for before, _ in borders if before >= stop), default=len(words)),
    )
