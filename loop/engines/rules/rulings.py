"""What a judge's guides say of wordings: that an error is significant, or none at all.

A clarification of a category rules on its errors by the sentences they are about. One
such as "small for trace" rules where the candidate's sentence has the words before
"for" and the reference's those after it; any other where one of the two has its words.
Of several the longest rules, of equally long ones the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from loop.core.records import ErrorWeight, Guide, Span
from loop.engines.rules.sections import sentences
from loop.engines.rules.vocabulary import GAP, MAX_GAP_WORDS, fold, tidy

_FOR = " for "


class _Ruling(NamedTuple):
    whole: re.Pattern[str]
    halves: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]
    """Words of the candidate and of the reference, for each "for"."""

    weight: ErrorWeight

    def holds(self, reference: str, candidate: str) -> bool:
        """Whether it rules on an error about these sentences, both folded."""
        if self.whole.search(candidate) or self.whole.search(reference):
            return True
        return any(
            given.search(candidate) and wanted.search(reference)
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
            fold(_sentence(text, span)) if span else ""
            for text, span in zip(texts, spans, strict=True)
        )
        ruling = next((one for one in rulings if one.holds(reference, candidate)), None)
        return ruling.weight if ruling else None


def _read_rulings(guide: Guide) -> Iterator[_Ruling]:
    """Yield the rulings of a guide, those first that go before others."""
    known = [
        (tidy(one.phrase), one.value)
        for one in reversed(guide.clarifications)
        if isinstance(one.value, ErrorWeight)
    ]
    for phrase, weight in sorted(known, key=lambda one: -len(one[0])):
        cuts = [one.start() for one in re.finditer(_FOR, phrase)]
        halves = [(phrase[:cut], phrase[cut + len(_FOR) :]) for cut in cuts]
        yield _Ruling(
            _pattern(phrase),
            tuple((_pattern(given), _pattern(wanted)) for given, wanted in halves),
            weight,
        )


def _pattern(phrase: str) -> re.Pattern[str]:
    """Return what finds a tidied phrase in a folded sentence, as whole words."""
    gap = rf"(?:\s+\S+){{0,{MAX_GAP_WORDS}}}\s+"
    parts = (part.split() for part in phrase.split(GAP))
    words = gap.join(r"\s+".join(map(re.escape, part)) for part in parts if part)
    return re.compile(rf"(?<!\w){words}(?!\w)")


def _sentence(text: str, span: Span) -> str:
    """Return the sentence in which a span begins."""
    for offset, sentence in sentences(text, 0, len(text)):
        if offset <= span.start < offset + len(sentence):
            return sentence
    return text[span.start : span.end]
