"""What another wording of a guide changes in the answers to many texts, and how fast.

Most wordings stand in few reports. Only the sentences that hold one, or a misspelling
that it corrects, are judged again. What stands in them is looked for once for all that
the wording could be taken for: in most reports stand words such as "the".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from threading import Lock
from typing import NamedTuple

from loop.engines.rules.engine import ReportReader
from loop.engines.rules.spelling import SHORTEST, one_edit, respell
from loop.engines.rules.vocabulary import Vocabulary, fold

_RUN = re.compile(r"  +")
_WORD = re.compile(rf"[a-z]{{{SHORTEST},}}")


class ChangedAnswer(NamedTuple):
    """The answers about one text, as the reader wrote them."""

    row: int
    """Index of the text."""

    before: str
    after: str


class AnsweredTexts:
    """Texts with what one reader answers to them; may be asked from any thread.

    Parameters
    ----------
    reader
        Used by nothing else.
    texts
        Each is known by its index.
    """

    def __init__(self, reader: ReportReader, texts: Sequence[str]) -> None:
        self._reader = reader
        self._reports = tuple(reader.split(text) for text in texts)
        self._lock = Lock()
        self._answers: dict[int, str] = {}
        self._rows: dict[str, list[int]] = defaultdict(list)
        for row, report in enumerate(self._reports):
            for _, sentence, _ in report:
                self._rows[sentence].append(row)
        self._sentences = tuple(self._rows)
        self._holding_word: dict[str, list[int]] = defaultdict(list)
        self._starts: list[int] = []
        self._folded = ""
        self._last: tuple[Vocabulary, frozenset[str], Collection[str]] | None = None
        self._index()

    def _index(self) -> None:
        """Lay out every different sentence once, as the reader finds words in it."""
        found, place, speller = [], 0, self._reader.speller
        for number, sentence in enumerate(self._sentences):
            text = _RUN.sub(" ", fold(sentence))
            if speller.works:
                for word in set(_WORD.findall(text)):
                    self._holding_word[word].append(number)
                fixes = speller.fixes(text)
                text = respell(text, None, fixes)[0] if fixes else text
            found.append(text)
            self._starts.append(place)
            place += len(text) + 1
        self._folded = "\n".join(found)

    def compare(
        self, changed: ReportReader, wordings: Collection[str]
    ) -> list[ChangedAnswer]:
        """Return the texts that `changed` answers otherwise, in their order.

        Parameters
        ----------
        changed
            A reader of the same guides, but for some wordings; used by nothing else.
        wordings
            Those, as the guides have them, that only one of the two has or that they
            take for different things.
        """
        with self._lock:
            touched = self._touched(changed, wordings)
            differing = changed.differing(self._reader, touched)
            rows = sorted({row for one in differing for row in self._rows[one]})
            before = [self._answer(row) for row in rows]
            changed.take_over(self._reader)
        after = (self._answered(changed, row) for row in rows)
        both = zip(rows, before, after, strict=True)
        return [ChangedAnswer(*one) for one in both if one[1] != one[2]]

    def _answer(self, row: int) -> str:
        if row not in self._answers:
            self._answers[row] = self._answered(self._reader, row)
        return self._answers[row]

    def _answered(self, reader: ReportReader, row: int) -> str:
        report = self._reports[row]
        return reader.answer_sentences(report) if report else ""

    def _touched(
        self, changed: ReportReader, wordings: Collection[str]
    ) -> Collection[str]:
        """Return the sentences that the two readers may judge in different ways."""
        key = changed.vocabulary, frozenset(wordings)
        # What one phrase could become is asked for thing by thing.
        if self._last and self._last[0] is key[0] and self._last[1] == key[1]:
            return self._last[2]
        strings = {
            (text, entry.prefix)
            for one in (self._reader.vocabulary, changed.vocabulary)
            for text, entry in zip(one.strings, one.entries, strict=True)
            if any(one.wordings[part.wording].text in wordings for part in entry.parts)
        }
        numbers = {number for text, _ in strings for number in self._holding(text)}
        for word in self._spelled_otherwise(changed, strings):
            numbers.update(self._holding_word[word])
        touched = {self._sentences[number] for number in numbers}
        self._last = *key, touched
        return touched

    def _holding(self, words: str) -> Iterator[int]:
        """Yield the sentences in which `words` stand, by number."""
        at = self._folded.find(words)
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            yield number
            if number + 1 == len(self._starts):
                return
            at = self._folded.find(words, self._starts[number + 1])

    def _spelled_otherwise(
        self, changed: ReportReader, strings: Collection[tuple[str, bool]]
    ) -> Iterator[str]:
        """Yield the words that the two readers correct in different ways.

        A word is corrected towards one that is an edit away, so only such words can be;
        the beginning of a word reaches further.
        """
        before, after = self._reader.speller, changed.speller
        near: Iterable[str] = self._holding_word
        if not any(prefix for _, prefix in strings):
            words = {word for text, _ in strings for word in _WORD.findall(text)}
            near = [one for one in near if _is_near(one, words)]
        for word in near:
            if before.fixes(word) != after.fixes(word):
                yield word


def _is_near(word: str, others: Collection[str]) -> bool:
    return word in others or any(
        abs(len(word) - len(one)) < 2 and one_edit(word, one) for one in others
    )
