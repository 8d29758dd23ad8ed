"""What `rules` answers to the two stages of a judge of phrases.

A report is taken apart into its sentences. A phrase is entailed if every finding that
it states matches one of the other report without an error of its own, or if it denies
only what the other report denies; a phrase of which nothing is found is entailed by the
same words and by nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from loop.engines.rules.judging import GreenCategory, judge_pair
from loop.engines.rules.report_findings import FindingReader

_END = ".\n"


def list_phrases(reader: FindingReader, text: str) -> list[str]:
    """Return the sentences of a report that are read, in order; none of no report.

    Raises
    ------
    EngineError
        The text is not in the reader's language.
    """
    if not reader.speaks(text):
        return []
    reader.read(text)
    return [text[one.start : one.end].strip() for one in reader.read_sentences(text)]


def entail_phrases(
    reader: FindingReader, held: Sequence[str], against: Sequence[str]
) -> list[dict[str, object]]:
    """Return what the contract ``entailment`` says of each phrase of `held`.

    Raises
    ------
    EngineError
        A phrase is not in the reader's language.
    """
    starts: list[int] = []
    whole = ""
    for one in against:
        starts.append(len(whole))
        whole += one.rstrip(" .") + _END
    said: list[dict[str, object]] = []
    for number, phrase in enumerate(held):
        places = _find_evidence(reader, phrase, whole)
        evidence = sorted({bisect_right(starts, place) - 1 for place in places})
        if not evidence:
            evidence = [n for n, one in enumerate(against) if _same(one, phrase)]
        said.append(
            {"phrase": number, "entailed": bool(evidence), "evidence": evidence}
        )
    return said


def _find_evidence(reader: FindingReader, phrase: str, whole: str) -> list[int]:
    """Return where the other report states what `phrase` states; nowhere if not all."""
    if not reader.speaks(phrase) or not reader.speaks(whole):
        return []
    said, given = reader.read(whole), reader.read(phrase)
    judged = judge_pair(reader, whole, phrase)
    if any(
        one.candidate_span is not None
        and one.category is not GreenCategory.OMITTED_CHANGE
        for one in judged.errors
    ):
        return []
    if given.findings:
        return [one.reference_span.start for one in judged.matched]
    if given.denied and given.denied.keys() <= said.denied.keys():
        return [said.denied[key].start for key in given.denied]
    return []


def _same(one: str, other: str) -> bool:
    return one.casefold().rstrip(" .") == other.casefold().rstrip(" .")
