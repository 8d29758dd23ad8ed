"""Both sides of every pair as codes, whether texts or labels were given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from loop.core.errors import DataError
from loop.core.records import ValueCode
from loop.labels.language import UNKNOWN, guess_language, has_words
from loop.labels.taxonomy import NO_FINDING, SUPPORT_DEVICES, Taxonomy
from loop.run.execute import Problem
from loop.run.runner import Watch
from loop.score.extractor import Extracted, Extractor
from loop.score.records import (
    Codes,
    ExtractorFacts,
    Graded,
    Joined,
    NoFinding,
    PairSide,
)

_LATIN: Final = frozenset({"en", "de", "fr", "es", "it", "pt", "nl"})
"""Languages that a short text cannot be told from English in."""


def grade(
    joined: Joined,
    taxonomy: Taxonomy,
    extractor: Extractor | None,
    no_finding: NoFinding = NoFinding.RAN,
    *,
    watch: Watch | None = None,
) -> Graded:
    """Return the codes of every reference and candidate.

    Texts are read by `extractor`, each distinct one once. A candidate without a word
    says nothing: all its labels are absent, "No Finding" too. A case without a
    candidate is `MISSING`.

    Parameters
    ----------
    joined
        References and candidates; given labels are in the taxonomy's order.
    taxonomy
        The labels, the same as the extractor's.
    extractor
        None where only labels are given.
    no_finding
        How "No Finding" follows from the other labels, for given ones too; or that it
        is as given.
    watch
        Wraps the texts that are asked about, to show progress.

    Raises
    ------
    DataError
        There are texts and no extractor, or "No Finding" is to be read from texts.
    EngineError
        The engine as a whole failed; what it answered until then is kept.
    """
    columns = (joined.reference, *joined.systems)
    written = [column for column in columns if column.texts is not None]
    _check(written, extractor, no_finding)
    found = _read(written, joined, extractor, watch)
    read = iter(() if found is None else np.split(found.codes, len(written)))
    tables = [_table(column, read, taxonomy, no_finding) for column in columns]
    return Graded(
        case_ids=joined.case_ids,
        labels=taxonomy.ids,
        systems=tuple(column.name for column in joined.systems),
        reference=tables[0],
        candidates=np.stack(tables[1:]),
        patients=joined.patients,
        no_finding=no_finding,
        extractor=_facts(extractor, len(written) < len(columns)),
        outcomes=None if found is None else _count(found),
        problems=() if found is None else _name_cases(found, joined.case_ids),
    )


def ungraded(joined: Joined, taxonomy: Taxonomy) -> Graded:
    """Return the same cases with no label read, for metrics that need none.

    Nothing is asked of an engine: every code is `MISSING`.
    """
    shape = (len(joined.case_ids), len(taxonomy.ids))
    return Graded(
        case_ids=joined.case_ids,
        labels=taxonomy.ids,
        systems=tuple(column.name for column in joined.systems),
        reference=np.full(shape, ValueCode.MISSING, dtype=np.int8),
        candidates=np.full(
            (len(joined.systems), *shape), ValueCode.MISSING, dtype=np.int8
        ),
        patients=joined.patients,
    )


def derive_no_finding(codes: Codes, taxonomy: Taxonomy, policy: NoFinding) -> Codes:
    """Return `codes` with "No Finding" derived from the other labels.

    The same as `Taxonomy.derive_no_finding`, for whole tables: nothing is derived
    where a label that the policy looks at has no value.

    Parameters
    ----------
    codes
        Shape ``(..., n_labels)``, the labels of the taxonomy.
    taxonomy
        The labels; without "No Finding" among them there is nothing to derive.
    policy
        ``READ`` leaves the codes as they are.

    Returns
    -------
    Codes
        A new table of the same shape.
    """
    codes = codes.copy()
    if policy is NoFinding.READ or NO_FINDING not in taxonomy.ids:
        return codes
    skipped = {NO_FINDING}
    if policy is NoFinding.CHEXPERT:
        skipped.add(SUPPORT_DEVICES)
    looked = [place for place, name in enumerate(taxonomy.ids) if name not in skipped]
    others = codes[..., looked]
    value = np.where(
        (others == ValueCode.ABSENT).all(axis=-1), ValueCode.PRESENT, ValueCode.ABSENT
    )
    value[(others == ValueCode.MISSING).any(axis=-1)] = ValueCode.MISSING
    value[(others == ValueCode.UNANSWERED).any(axis=-1)] = ValueCode.UNANSWERED
    codes[..., taxonomy.ids.index(NO_FINDING)] = value
    return codes


def _check(
    written: Sequence[PairSide], extractor: Extractor | None, no_finding: NoFinding
) -> None:
    """Refuse texts that nothing can read, or to read "No Finding" from texts."""
    names = ", ".join(column.name for column in written)
    if written and extractor is None:
        raise DataError(
            f"{names}: texts are given, and nothing to read labels out of them. Name "
            "an extractor, or give labels."
        )
    if written and no_finding is NoFinding.READ:
        raise DataError(
            f"{names}: texts are given, and No Finding can only be read where labels "
            "are given. Choose ran or chexpert, which derive it."
        )


def _read(
    written: Sequence[PairSide],
    joined: Joined,
    extractor: Extractor | None,
    watch: Watch | None,
) -> Extracted | None:
    """Return what is read out of all texts, column after column."""
    if extractor is None or not written:
        return None
    looks = [guess_language(text or "") for text in joined.reference.texts or ()]
    texts: list[str] = []
    languages: list[str] = []
    for column in written:
        own = [text or "" for text in column.texts or ()]
        texts += own
        languages += (
            joined.languages
            if joined.languages and column is joined.reference
            else _languages(own, joined.languages, looks)
        )
    return extractor.read(texts, languages, watch)


def _languages(
    texts: Sequence[str], said: Sequence[str], looks: Sequence[str]
) -> list[str]:
    """Return the language of each candidate: that of its case, if it can be so.

    `looks` is what each reference looks like, whatever was said; empty for labels.
    """
    if not said:
        return [guess_language(text) for text in texts]
    return [
        _language(text, case, look)
        for text, case, look in zip(texts, said, looks or said, strict=True)
    ]


def _language(text: str, case: str, look: str) -> str:
    """Return the language of a candidate: that of its case, unless it is plainly not.

    A short text looks English or, without a letter, like nothing; then it has the
    language of its case. So has one that looks like the reference: a copy is read as
    what it is a copy of. What is in a script of its own is not read as if it were not.
    """
    guess = guess_language(text)
    if guess in (case, look) or (guess == "en" and case in _LATIN):
        return case
    if guess == UNKNOWN and not any(map(str.isalpha, text)):
        return case
    return guess


def _table(
    column: PairSide, read: Iterator[Codes], taxonomy: Taxonomy, no_finding: NoFinding
) -> Codes:
    """Return the codes of one column, those of texts taken from `read`."""
    if column.codes is not None:
        return derive_no_finding(column.codes, taxonomy, no_finding)
    codes = find_no_finding(next(read), taxonomy, no_finding)
    silent = [text is not None and not has_words(text) for text in column.texts or ()]
    codes[silent] = ValueCode.ABSENT
    return codes


def find_no_finding(codes: Codes, taxonomy: Taxonomy, policy: NoFinding) -> Codes:
    """Return codes that were read out of texts with "No Finding": read, or derived.

    The same as `Taxonomy.find_no_finding`, for whole tables; see `derive_no_finding`.
    """
    derived = derive_no_finding(codes, taxonomy, policy)
    if NO_FINDING in taxonomy.ids:
        place = taxonomy.ids.index(NO_FINDING)
        read = codes[..., place]
        derived[..., place] = np.where(
            read == ValueCode.MISSING, derived[..., place], read
        )
    return derived


def _facts(extractor: Extractor | None, given: bool) -> ExtractorFacts:
    """Return what read the labels; says so where a side was given as labels."""
    if extractor is None:
        return ExtractorFacts(ref="given", digest="", engine="")
    facts = extractor.facts
    return replace(facts, ref=f"given+{facts.ref}") if given else facts


def _count(found: Extracted) -> dict[str, int]:
    return {
        "answered": found.answered,
        "unparsed": found.unparsed,
        "engine_failed": found.failed,
        "asked": found.asked,
        "cached": found.cached,
    }


def _name_cases(found: Extracted, case_ids: Sequence[str]) -> tuple[Problem, ...]:
    """Return the problems with case ids as examples, in place of keys of texts."""
    names: dict[str, str] = {}
    for place, key in enumerate(found.keys):
        names.setdefault(key, case_ids[place % len(case_ids)])
    return tuple(
        problem._replace(
            examples=tuple(sorted({names[key] for key in problem.examples}))
        )
        for problem in found.problems
    )
