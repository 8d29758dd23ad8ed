"""Texts of failing cases, read once and only when they are wanted."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from threading import Lock

from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.core.records import Span
from loop.labels.cohort import has_texts, iter_items, read_cohort
from loop.labels.importing.sections import split_sections
from loop.review.queue.records import TextSection

_MARKER = 0xF0000
"""First of the private-use characters that mark a place in a text."""


class CaseTexts:
    """The texts of some cases of a cohort; may be asked from any thread."""

    def __init__(
        self, workspace: Workspace, cohort: str, case_ids: Collection[str]
    ) -> None:
        self._workspace = workspace
        self._cohort = cohort
        self._wanted = frozenset(case_ids)
        self._lock = Lock()
        self._texts: Mapping[str, str] | None = None
        self._folded: Mapping[str, str] | None = None

    @property
    def here(self) -> bool:
        """Whether the texts of the cohort are on this machine."""
        return has_texts(self._workspace, self._cohort)

    def read(self, case_id: str) -> str:
        """Return the text of one of the cases, for display only.

        Raises
        ------
        DataError
            It is not one of these cases, or the texts are not on this machine.
        """
        text = self._read().get(case_id)
        if text is None:
            raise DataError(
                f"case {case_id[:80]!r} is not among the failing cases of cohort "
                f"{self._cohort}. Choose one of the queue."
            )
        return text

    def find(self, words: str) -> frozenset[str]:
        """Return the cases whose text or id holds `words`, in any case.

        The words are no pattern: each character stands for itself, after both sides
        are composed (NFC).

        Raises
        ------
        DataError
            No id holds them, and the texts are not on this machine.
        """
        wanted = _fold(words)
        named = frozenset(key for key in self._wanted if wanted in _fold(key))
        if named and not self.here:
            return named
        texts = self._read()
        with self._lock:
            if self._folded is None:
                self._folded = {key: _fold(text) for key, text in texts.items()}
        return named | {key for key, text in self._folded.items() if wanted in text}

    def _read(self) -> Mapping[str, str]:
        with self._lock:
            if self._texts is None:
                cohort = read_cohort(self._workspace, self._cohort)
                self._texts = {
                    item.id: item.variables["text"]
                    for item in iter_items(self._workspace, cohort)
                    if item.id in self._wanted
                }
            return self._texts


def find_sections(text: str, spans: Sequence[Span]) -> list[TextSection | None]:
    """Return the section that each span begins in; None in a text without headings.

    Each place is marked in the text before it is taken apart, so that the same words
    in two sections are told from each other.
    """
    marked, end = [], len(text)
    for number, span in sorted(
        enumerate(spans), key=lambda row: row[1].start, reverse=True
    ):
        start = min(span.start, end)
        marked += [text[start:end], chr(_MARKER + number)]
        end = start
    parts = split_sections("".join(reversed([*marked, text[:end]])))
    if not parts.headed:
        return [None] * len(spans)
    return [_section(parts.findings, parts.impression, n) for n in range(len(spans))]


def _section(findings: str, impression: str, number: int) -> TextSection:
    marker = chr(_MARKER + number)
    if marker in impression:
        return TextSection.IMPRESSION
    return TextSection.FINDINGS if marker in findings else TextSection.OTHER


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
