"""Which cases of a source enter the cohort, and what is counted on the way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256

from loop.core.digests import framed
from loop.core.errors import DataError
from loop.core.safe_text import quoted
from loop.labels.importing.source import (
    MAX_GENERATED,
    MAX_ID,
    ImportOptions,
    SourceCase,
    check_id,
    check_length,
    language_code,
    parse_part,
)
from loop.labels.language import fold_text, guess_language
from loop.labels.taxonomy import CHEST

_SPINE = re.compile(r"\b(?:thoracic|t)[ -]?spine\b", re.IGNORECASE)
_CHEST = re.compile(
    r"\b(?:chest|cxr|thorax|thoracic|lungs?|pulmonary|ribs?|babygram)\b|胸|肺|肋",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:abdom(?:en|inal)|kub|pelvi[cs]|hips?|femurs?|knees?|tibia|fibula|ankles?|"
    r"foot|feet|toes?|shoulders?|humerus|elbows?|forearms?|wrists?|hands?|fingers?|"
    r"thumbs?|skull|head|brain|sinus(?:es)?|orbits?|facial|mandible|neck|"
    r"(?:cervical|lumbar|lumbosacral|thoracic|[clt])[ -]?spine|spine|sacrum|coccyx|"
    r"mammo(?:gram|graphy)|breasts?|extremit(?:y|ies)|barium|esophagram|renal|kidneys?|"
    r"liver|thyroid|scrot(?:um|al)|scoliosis)\b"
    r"|腹|盆|髋|膝|踝|足|肩|肘|腕|手|颅|头|鼻窦|颈椎|腰椎|脊柱|骶|乳腺|股骨|胫|肱骨",
    re.IGNORECASE,
)


def is_chest(exam: str) -> bool:
    """Whether `exam`, the words for what was examined, can be a chest study.

    False only when another region is named and the chest is not: an empty or unclear
    text never excludes a case.

    Examples
    --------
    >>> is_chest("CHEST (PA AND LAT)"), is_chest("RIGHT KNEE"), is_chest("")
    (True, False, True)
    """
    if _CHEST.search(_SPINE.sub(" ", exam)):
        return True
    return _ELSEWHERE.search(exam) is None


EXAMPLES = 10
"""Case ids kept of each kind."""

ON_REQUEST = "on request"
OTHER_PART = "of another part"
DUPLICATE = "exact duplicate"


class Screening:
    """Refuses what is wrong, leaves out what is useless, counts both."""

    def __init__(self, options: ImportOptions, region: str = CHEST):
        """Screen for studies of `region`, as a taxonomy names it."""
        self.options = options
        self._only_chest = region == CHEST
        self.excluded: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}
        self.duplicates = 0
        self.seen = 0
        """Cases that came, whatever became of them."""

        self._ids: dict[str, str] = {}
        self._texts: set[int] = set()
        self._contents: dict[bytes, str] = {}
        self._kept: set[bytes] = set()
        self._references: dict[str, int] = {}

    def passed(self, cases: Iterable[SourceCase]) -> Iterator[SourceCase]:
        """Yield the cases that enter, with their final id and language.

        Raises
        ------
        DataError
            An id is missing, unusable or appears twice; a text is too long.
        """
        for given in cases:
            self.seen += 1
            _check_lengths(given)
            content = self._digest(given)
            if content and self._contents.get(content) == given.case_id:
                self._leave_out(DUPLICATE, self.options.id_prefix + given.case_id)
                continue
            case = replace(given, case_id=self._take_id(given))
            asked = given.case_id in self.options.exclude
            elsewhere = not asked and not self._is_of_part(given)
            if given.pair and not asked and not elsewhere:
                self._check_pair(given)
            known = DUPLICATE if content in self._kept else ""
            reason = ON_REQUEST if asked else OTHER_PART if elsewhere else ""
            reason = reason or self._reason_to_exclude(case) or known
            if content:
                self._contents.setdefault(content, given.case_id)
            if reason:
                self._leave_out(reason, case.case_id)
                continue
            if content:
                self._kept.add(content)
            self._count_duplicate(case)
            yield replace(case, language=self._language(case))

    def _is_of_part(self, case: SourceCase) -> bool:
        """Whether a case belongs to the part that is wanted, by the digest of its unit.

        Unkeyed: the same source is cut in the same way on every machine.
        """
        if not self.options.part:
            return True
        wanted, count = parse_part(self.options.part)
        reference = case.reference_id or (case.pair and case.pair["reference"])
        unit = case.patient.strip() or reference or case.case_id
        cut = int.from_bytes(sha256(framed(["part", unit])).digest()[:8], "big")
        return cut % count == wanted - 1

    def _leave_out(self, reason: str, case_id: str) -> None:
        self.excluded[reason] += 1
        if reason != OTHER_PART:
            self._keep(reason, case_id)

    def require_excluded(self) -> None:
        """Refuse ids to leave out that the source does not have.

        Raises
        ------
        DataError
            There is one: a typing error would leave its case in.
        """
        prefix = self.options.id_prefix
        unknown = [i for i in self.options.exclude if prefix + i not in self._ids]
        if unknown:
            raise DataError(
                f"the source has no case {quoted(unknown[0])} to leave out. Correct "
                "the id given with --exclude."
            )

    def summary(self) -> str:
        """Return how many cases were left out and why, in words."""
        parts = [f"{count} {reason}" for reason, count in self.excluded.items()]
        return ", ".join(parts) or "it holds none"

    def _take_id(self, case: SourceCase) -> str:
        if not case.case_id:
            raise DataError(f"{case.where}: no case id. Give every case an id.")
        case_id = self.options.id_prefix + case.case_id
        check_id(case_id, case.where)
        if case_id in self._ids:
            raise DataError(
                f"{case.where}: case id {quoted(case_id)} already appears at "
                f"{self._ids[case_id]}. Give every case an id of its own, or remove "
                "one of the two."
            )
        self._ids[case_id] = case.where
        return case_id

    def _digest(self, case: SourceCase) -> bytes:
        """Return what tells a text, patient and labels from others; empty if unasked.

        Of 256 bits, since a case that is left out must be the same and not only likely.
        """
        if not self.options.drop_duplicates:
            return b""
        marks = (f"{label}={mark}" for label, mark in sorted(case.marks.items()))
        texts = case.texts.values()
        return sha256(framed([*texts, case.patient, case.language, *marks])).digest()

    def _check_pair(self, case: SourceCase) -> None:
        """Refuse a pair that cannot be judged: without a reference, or with two."""
        reference = case.pair["reference"]
        if not fold_text(reference):
            raise DataError(
                f"{case.where}: the reference of the pair is empty, so nothing can be "
                "said of its candidate. Fill it in, or leave the pair out with "
                "--exclude."
            )
        for what, name in (("reference", case.reference_id), ("system", case.system)):
            if len(name) > MAX_ID or not name.isprintable():
                raise DataError(
                    f"{case.where}: the name of the {what} is longer than {MAX_ID} "
                    "characters or holds a control character. Give it a short name."
                )
        if not case.reference_id:
            return
        known = self._references.setdefault(case.reference_id, hash(reference))
        if known != hash(reference):
            raise DataError(
                f"{case.where}: reference {quoted(case.reference_id)} has another text "
                "in an earlier row. Give every reference its own id."
            )

    def _count_duplicate(self, case: SourceCase) -> None:
        folded = hash(tuple(map(fold_text, case.reports)))
        if folded in self._texts:
            self.duplicates += 1
            self._keep("duplicate text", case.case_id)
        self._texts.add(folded)

    def _keep(self, kind: str, case_id: str) -> None:
        kept = self.examples.setdefault(kind, [])
        if len(kept) < EXAMPLES:
            kept.append(case_id)

    def _language(self, case: SourceCase) -> str:
        named = self.options.language
        given = case.language if named == "auto" else named
        if not given:
            return guess_language(" ".join(case.reports))
        return language_code(given, case.where)

    def _reason_to_exclude(self, case: SourceCase) -> str:
        """Return why `case` stays out, or an empty string."""
        if case.unusable:
            return case.unusable
        if self._only_chest and not is_chest(case.exam):
            return "non-chest"
        # A system may have said nothing; that is an answer, and a case to be judged.
        return "" if case.pair or fold_text(case.text) else "empty"


def _check_lengths(case: SourceCase) -> None:
    """Refuse a text that cannot be one report; a candidate may be far longer."""
    for name, text in case.texts.items():
        if name != "candidate":
            check_length(text, case.where)
        elif len(text) > MAX_GENERATED:
            raise DataError(
                f"{case.where}: a candidate of {len(text):,} characters; at most "
                f"{MAX_GENERATED:,} are read. Look for a quote that is never closed."
            )
