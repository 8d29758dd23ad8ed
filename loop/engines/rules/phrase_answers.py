"""What `rules` answers to the two stages of a judge of phrases.

A report is taken apart into its sentences. A phrase is entailed by the same words.
Else it is entailed if every finding that it states matches one of the other report
with no other error, and the other report denies all that it denies. One in
which nothing is found, such as "The heart is normal.", is entailed by another in which
nothing is found and that is about the same part of the body, as far as they share the
word for it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from loop.core.errors import EngineError
from loop.engines.rules.judging import GreenCategory, PairError, judge_pair
from loop.engines.rules.report_findings import (
    FindingReader,
    ReportFinding,
    ReportFindings,
)

_END = ".\n\n"
"""Behind each phrase of the other report, where they are read as one text: a section
that is not read, as which a phrase may begin, ends with its paragraph."""


def list_phrases(reader: FindingReader, text: str) -> list[str]:
    """Return the sentences of a report that are read, in order.

    None of a text without a letter or digit, or that says only "none": it states
    nothing.

    Raises
    ------
    EngineError
        The text is not in the reader's language, or it has words and none is read.
    """
    if not any(map(str.isalnum, text)):
        return []
    reader.read(text)
    read = (text[one.start : one.end].strip() for one in reader.read_sentences(text))
    # The number of a list item is a sentence by itself.
    phrases = [one for one in read if any(map(str.isalpha, one))]
    if not phrases:
        raise EngineError(
            "a text has numbers, but no words to read. Leave the pair out, or choose "
            "an engine with a model."
        )
    return [one for one in phrases if _fold(one) != "none"]


def entail_phrases(
    reader: FindingReader, held: Sequence[str], against: Sequence[str]
) -> list[dict[str, object]]:
    """Return what the contract ``entailment`` says of each phrase of `held`.

    Raises
    ------
    EngineError
        A phrase is not in the reader's language, or holds nothing that is read.
    """
    starts: list[int] = []
    whole = ""
    for one in against:
        starts.append(len(whole))
        whole += one.rstrip(" .") + _END
    folded = [_fold(one) for one in against]
    said: list[dict[str, object]] = []
    for number, phrase in enumerate(held):
        evidence = [n for n, one in enumerate(folded) if one == _fold(phrase)]
        if not evidence:
            places = _find_evidence(reader, phrase, whole)
            evidence = sorted({bisect_right(starts, place) - 1 for place in places})
        if not evidence and (words := _neutral_words(reader, phrase)):
            evidence = [
                place
                for place, one in enumerate(against)
                if words & _neutral_words(reader, one)
            ]
        said.append(
            {"phrase": number, "entailed": bool(evidence), "evidence": evidence}
        )
    return said


def _fold(phrase: str) -> str:
    return " ".join(phrase.split()).casefold().rstrip(" .")


def _find_evidence(reader: FindingReader, phrase: str, whole: str) -> list[int]:
    """Return where the other report states what `phrase` states; nowhere if not all."""
    if not whole:
        return []
    said, given = reader.read(whole), reader.read(phrase)
    judged = judge_pair(reader, whole, phrase)
    places = [one.reference_span for one in judged.matched]
    for one in judged.errors:
        if one.candidate_span is None:
            continue
        if one.reference_span is None or _says_more(one, said, given):
            return []
        places.append(one.reference_span)
    if not given.denied.keys() <= said.denied.keys():
        return []
    places += [said.denied[key] for key in given.denied]
    return [one.start for one in places] if given.findings or given.denied else []


def _says_more(error: PairError, said: ReportFindings, given: ReportFindings) -> bool:
    """Whether a phrase states what is wrong; else it leaves something out."""
    pairs = [
        (one, other)
        for one in given.findings
        if one.span == error.candidate_span
        for other in said.findings
        if other.span == error.reference_span
    ]
    if error.category is GreenCategory.OMITTED_CHANGE:
        return any(one.said.change for one, _ in pairs)
    if error.category is GreenCategory.SEVERITY and pairs:
        return any(_is_graver(one, other) for one, other in pairs)
    if error.category is GreenCategory.LOCATION and pairs:
        return any(
            one.said.side not in (0, other.said.side)
            or not one.said.places <= other.said.places
            for one, other in pairs
        )
    return True


def _is_graver(one: ReportFinding, other: ReportFinding) -> bool:
    """Whether one of two statements of a finding says what the other does not."""
    return (
        one.certain > other.certain
        or one.said.degree not in (0, other.said.degree)
        or one.said.size_mm not in (0, other.said.size_mm)
        or not one.said.characters <= other.said.characters
        or not one.said.reads <= other.said.reads
    )


def _neutral_words(reader: FindingReader, phrase: str) -> frozenset[str]:
    """Return the words that say what a phrase is about in which nothing is found."""
    if reader.speaks(phrase):
        read = reader.read(phrase)
        if read.findings or read.denied:
            return frozenset()
    words = {word.casefold() for word in _WORD.findall(phrase)}
    return frozenset(word for word in words if len(word) > 3) - _NORMAL


_WORD = re.compile(r"[^\W\d_]+")
_NORMAL = frozenset(
    (
        *("appear", "appearance", "appears", "clear", "contour", "contours", "grossly"),
        *("intact", "limits", "normal", "otherwise", "overall", "size", "stable"),
        *("that", "there", "unremarkable", "well", "with", "within", "without"),
    )
)
"""Words by which two sentences are not about the same thing."""
