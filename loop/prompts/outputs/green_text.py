"""Reads a judge's answer in four sections, as published for GREEN, without guessing.

::

    [Explanation]: ...
    [Clinically Significant Errors]:
    (a) False report of a finding: 1. effusion on the left; ...
    [Clinically Insignificant Errors]: ...
    [Matched Findings]: 2. normal heart; no pneumothorax

Headings may be bold, marked with hashes, or without brackets, in any case; categories
letters or digits; counts digits or words, with or without a full stop; what is listed
follows the count, or stands in separate lines. Each departure is a repair. What could
mean two things makes the answer unreadable, and so does a section without which there
is no score: nothing that is missing is taken for a candidate without errors.

Only a line that begins with a heading opens a section, unless it stands inside a
quotation: what a report says in its text is not what the judge says of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, NoReturn

from loop.prompts.outputs.judged import NUMBER, read_number
from loop.prompts.outputs.tolerant import UnreadableError


class JudgeSection(StrEnum):
    """A section of a judge's answer, in the order in which they stand."""

    EXPLANATION = "explanation"
    SIGNIFICANT = "significant"
    INSIGNIFICANT = "insignificant"
    MATCHED = "matched"
    SCORE = "score"
    """The judge's own score, which related forms add: it ends the section before."""


class SectionStatus(StrEnum):
    """How one section was read."""

    OK = "ok"
    REPAIRED = "repaired"
    MISSING = "missing"
    CONFLICTING = "conflicting"
    """It could mean two things, so nothing of the answer is believed."""


class ListedCount(NamedTuple):
    """A number, and what was listed for it."""

    number: int
    listed: tuple[str, ...]


class SectionsText(NamedTuple):
    """What the sections of an answer say."""

    significant: Mapping[int, ListedCount]
    """By category, from 0; a category that is not listed has none."""

    insignificant: Mapping[int, ListedCount] | None
    """None where there is no such section."""

    matched: ListedCount
    score: str | None = None
    """The section with the judge's own score; None where there is none."""


MISSING: Final = "the section is missing"

_COUNTED: Final = (
    JudgeSection.SIGNIFICANT,
    JudgeSection.INSIGNIFICANT,
    JudgeSection.MATCHED,
)
_MOST_HEADINGS: Final = 20

_MARKS = r"[ \t]*+(?:[#*_\-•]++[ \t]*+)*+(?:\d[.)][ \t]*+)?(?:[*_]++)?"
_NAMES = (
    r"(?P<explanation>explanations?|解释|说明)"
    r"|(?P<significant>(?:clinically[ \t]+)?significant[ \t]+errors?"
    r"|(?:具?有)?临床(?:上)?(?:显著|重要|有?意义)(?:的|性)?错误)"
    r"|(?P<insignificant>(?:clinically[ \t]+)?(?:in|non-?)significant[ \t]+errors?"
    r"|(?:不具?有?|无)临床(?:上)?(?:显著|重要|意义)(?:的|性)?错误"
    r"|临床(?:上)?(?:不显著|非显著|不重要|无意义)(?:的|性)?错误)"
    r"|(?P<matched>match(?:ed|ing)[ \t]+findings?"
    r"|(?:匹配|相符|一致)的?(?:发现|所见|结果))"
    r"|(?P<score>(?:overall[ \t]+)?accuracy[ \t]+score|(?:总体)?准确(?:性|度)?评分)"
)
_HEADING: Final = re.compile(
    # A line end before it, not "^": what begins with a letter is found much faster.
    rf"\n(?![(\n]){_MARKS}(?P<open>[\[【])?[ \t]*+(?:{_NAMES})[*_ \t]*+"
    r"(?:[\]】]?[*_ \t]*+(?:[:：]|$)|(?(open)[\]】]|(?!)))[*_ \t]*+",
    re.IGNORECASE | re.MULTILINE,
)
_PLAIN: Final[Mapping[str, str]] = {
    JudgeSection.EXPLANATION: "[Explanation]:",
    JudgeSection.SIGNIFICANT: "[Clinically Significant Errors]:",
    JudgeSection.INSIGNIFICANT: "[Clinically Insignificant Errors]:",
    JudgeSection.MATCHED: "[Matched Findings]:",
    JudgeSection.SCORE: "[Overall Accuracy Score]:",
}
_WORD = re.compile(r"\w")
_QUOTE = re.compile(r'(?<!\d)["“”]|(?<=\d)["“”](?!\s*[a-z])')
"""A mark of a quotation; one after a digit and before a word stands for inches."""

_CATEGORY = re.compile(
    r"^[ \t*_\-•#]*+(?:[(（]([A-Za-z1-9])[)）]|([A-Za-z1-9])[)）]"
    r"|([A-Ga-g])\.(?=[ *_]))[*_ \t]*+[.:：]?[*_ \t]*+(.*)$"
)
_PUBLISHED = re.compile(
    r"^\(([a-z])\) [^:：(（\n]*+: ([0-9]{1,3})\.(?!\d)[ \t]*+(?!\d)([^:：\n]*+)$",
    re.MULTILINE,
)
_PUBLISHED_MATCHES = re.compile(r"([0-9]{1,3})\.(?!\d)[ \t]*+(?!\d)([^:：]*+)")
_BULLET = re.compile(
    r"^[ \t]*+(?:[-•·–—]++|\*(?!\*)|[(（]?(?P<number>\d{1,2})[.)）](?!\d)|[①-⑳])[ \t]*+"
    r"(.+)$"
)
_COUNT = re.compile(
    rf"[*_ \t(（]*+(?P<number>{NUMBER})(?P<after>[*_)） \t]*+"
    r"(?:(?:clinically[ \t]+)?(?:in)?(?:significant[ \t]+)?(?:errors?|findings?)"
    r"(?:[ \t]+(?:found|noted|identified|present|reported|detected))?"
    r"|match(?:ed|ing)[ \t]+findings?|match(?:es)?|[个处项条])?[*_)） \t]*+)"
    r"(?:(?P<stop>[.。](?!\d))|[:：;；,，、—–-](?![ \t]*\d)|$"
    r"|[(（](?![^)）]*(?:\d|\bor\b|\bpossibl|\bperhaps|\bmaybe)))",
    re.IGNORECASE,
)
_GLUED = re.compile(
    rf"[*_ \t(（]*+(?P<number>{NUMBER})[*_)）]*+[ \t]++(?![ \t\d])(?P<rest>\S.*)$",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?:[^:：(（]|[(（][^()（）]*+[)）])*+[:：][*_ \t]*+(?P<value>.*)$"
)
_COUNT_NAMED = re.compile(r"[(（ –—-](\d{1,3})[)）]?[*_ \t]*+[:：][*_ \t]*+$")
_COUNT_LAST = re.compile(rf"[ (（–—-](?P<number>{NUMBER})[)）]?[.。]?$", re.IGNORECASE)
_SIZE = re.compile(r"[*_ \t(（]*+\d+(?:[.,]\d+)?[ \t]*+(?:cm|mm)\b", re.IGNORECASE)
_AGAIN = re.compile(r"[ \t]*+\d{1,3}(?:[.。](?!\d)|[ \t]*+$)")
_ENDS_OPEN = re.compile(r"[^\w\n]{0,9}[^:：\n]{3,80}[:：\]][*_]*$")
_LABEL = re.compile(
    r"^[*_ \t]*(?:total|counts?|number(?: of match(?:ed|ing) findings)?)[*_ \t]*[:：]",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^[ \t]*(?P<number>\d{1,2})[.)）](?!\d)[ \t]*+\S")
_SEVERAL = re.compile(r"[,，、.。]|\band\b|[和及]", re.IGNORECASE)
_STRANGE = re.compile(
    r"\W*+(?:\d|(?:i{1,3}|i?v|vi{1,3}|i?x)[.)](?:\s|$))", re.IGNORECASE
)
_QUOTED = re.compile('["“][^"“”]*+["”]')
_HIDDEN = re.compile(r"(?<!\d)[:：][^\w\n]{0,4}\d{1,3}(?:[.。:：](?!\d)|[*_ \t]*+$)")
_HEADED = re.compile(r"\W{0,9}\[[^\]\n]{3,80}\][*_ \t]*(?:[:：]|$)|[ \t]*#{1,6}[ \t]")
_NOTHING = (
    r"(?:none|nil|n/?a|not applicable|no|无|没有|未见|未发现"
    r"|(?:0|zero|零)(?: (?:clinically )?(?:(?:in)?significant )?(?:errors?|findings?))?"
    r"|(?:there (?:is|are|were) )?(?:no|none)(?: of)?(?: (?:other|such|additional))?"
    r"(?: clinically)?(?: (?:in)?significant)?(?: or (?:in)?significant)?"
    r"(?: (?:errors?|discrepanc(?:y|ies)|match(?:ed|ing)? findings?|matches|findings?))"
    r"(?: (?:were|was|are))?"
    r"|(?:无|没有|未发现|未见)(?:任何)?"
    r"(?:具?有?临床(?:上)?(?:不?显著|不?重要|意义)?(?:的|性)?)?"
    r"(?:错误|匹配的?发现))"
    r"(?: (?:were |was )?(?:found|noted|identified|present|detected|reported|observed"
    r"|to report))?"
    r"(?! .*\b(?:but|except|however|although|though|other|apart|besides)\b)"
    r"(?: (?:in|between|by) (?:the )?"
    r"(?:candidate|generated|predicted|two|both|reports?)"
    r"(?: [a-z]+){0,5})?"
)
_NONE = re.compile(
    rf"(?:[*_ \t(（\"“•-]*+{_NOTHING}|[-–—]+)[*_ \t)）\"”.。!]*+$", re.IGNORECASE
)
_NONE_BEGINS: Final = frozenset('0nNtTzZ-–—•无没未零(（*_"“')
_NONE_BUT = re.compile(
    r"[*_ \t(（]*+(?:none\b|nil\b|n/a|no (?:clinically |(?:in)?significant |errors?\b"
    r"|match|discrepanc)|(?:无|没有|未发现|未见)(?:临床|错误|匹配|任何))",
    re.IGNORECASE,
)
_SPLIT = re.compile("[;；]")
_EDGES = " \t*_.。-•"


def read_text(text: str, categories: int, notes: list[str]) -> SectionsText | None:
    """Return what the four sections of an answer say; None if it has no sections.

    Parameters
    ----------
    text
        The answer without thinking and code fences.
    categories
        How many are asked; the first one is (a).
    notes
        Takes the repairs, each as ``"SECTION: WHAT"``.

    Raises
    ------
    UnreadableError
        A section without which there is no score is missing, or something could mean
        two things.
    """
    text = f"\n{text}"
    heads = list(_HEADING.finditer(text))
    if not heads:
        return None
    bodies = _cut(text, heads, notes)
    significant, insignificant, matched = (
        _lines(section, bodies.get(section, ""), notes) for section in _COUNTED
    )
    if not significant or not matched:
        missing = JudgeSection.MATCHED if significant else JudgeSection.SIGNIFICANT
        raise UnreadableError(f"{missing}: {MISSING}")
    for optional in (JudgeSection.EXPLANATION, JudgeSection.INSIGNIFICANT):
        if not bodies.get(optional, "").strip():
            notes.append(f"{optional}: {MISSING}")
    return SectionsText(
        _read_errors(JudgeSection.SIGNIFICANT, significant, categories, notes),
        _read_errors(JudgeSection.INSIGNIFICANT, insignificant, categories, notes)
        if insignificant
        else None,
        _read_matched(matched, notes),
        bodies.get(JudgeSection.SCORE),
    )


def read_score_text(text: str, notes: list[str]) -> str | None:
    """Return the section with the score of an answer that explains and scores only.

    Parameters
    ----------
    notes
        Takes the repairs.

    Returns
    -------
    str or None
        None if the answer has no sections.

    Raises
    ------
    UnreadableError
        There is no such section, or two, or they are not in their order.
    """
    text = f"\n{text}"
    heads = list(_HEADING.finditer(text))
    if not heads:
        return None
    bodies = _cut(text, heads, notes)
    if JudgeSection.SCORE not in bodies:
        raise UnreadableError(f"{JudgeSection.SCORE}: {MISSING}")
    if not bodies.get(JudgeSection.EXPLANATION, "").strip():
        notes.append(f"{JudgeSection.EXPLANATION}: {MISSING}")
    if any(section in bodies for section in _COUNTED):
        notes.append("sections that were not asked for ignored")
    return bodies[JudgeSection.SCORE]


def _lines(section: JudgeSection, body: str, notes: list[str]) -> list[str]:
    """Return the lines of a section that say something."""
    lines = body.strip().splitlines()
    kept = [line for line in lines if _WORD.search(line)] or lines[:1]
    if len(kept) < len(lines):
        notes.append(f"{section}: lines without words ignored")
    return kept


_ORDER: Final = tuple(JudgeSection)


def _cut(text: str, heads: list[re.Match[str]], notes: list[str]) -> dict[str, str]:
    """Return the sections of an answer, each once and in their order."""
    if len(heads) > _MOST_HEADINGS:
        raise UnreadableError(f"there are more than {_MOST_HEADINGS} headings")
    if '"' in text or "“" in text:
        heads = _unquoted(text, heads, notes)
    bodies: dict[str, str] = {}
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        section = head.lastgroup or ""
        if section in bodies:
            raise UnreadableError(f"{section}: there are two such sections")
        bodies[section] = text[head.end() : end]
        if head[0].strip() != _PLAIN[section]:
            notes.append(f"{section}: heading spelled differently")
    if [*bodies] != [section for section in _ORDER if section in bodies]:
        raise UnreadableError("the sections are not in their order")
    return bodies


def _unquoted(
    text: str, heads: Sequence[re.Match[str]], notes: list[str]
) -> list[re.Match[str]]:
    """Return the headings that stand in no quotation: those that a judge wrote."""
    marks = [found.start() for found in _QUOTE.finditer(text)]
    kept = [
        head
        for head in heads
        # Inside a pair if an odd number of marks is before it, and one after it.
        if not (before := bisect_left(marks, head.start())) % 2 or before == len(marks)
    ]
    if len(kept) < len(heads):
        notes.append("a heading inside a quotation ignored")
    return kept


class _CountReader:
    """A count that is being read, line by line, with what is listed for it."""

    def __init__(self, section: JudgeSection, notes: list[str]) -> None:
        self._section, self._notes = section, notes
        self._number: int | None = None
        self._glued = self._plain = False
        self._items: list[list[str]] = []

    def begin(self, value: str) -> None:
        """Take what stands after the category, or the first line of the matches."""
        found = _COUNT.match(value)
        if found is not None:
            self._declare(found["number"])
            if found["stop"] != "." or found.start("number") or found["after"]:
                self.note("a count spelled differently")
            rest = value[found.end() :]
            if _AGAIN.match(rest) or _hides_count(rest):
                self.conflict("two counts")
            self._list(rest)
        elif _NONE.match(value):
            self._declare("0")
            self.note("a count spelled differently")
        elif _NONE_BUT.match(value):
            self.conflict('"none", and more is said')
        elif _SIZE.match(value):
            self._list(value)
        elif glued := _GLUED.match(value):
            # "2 effusions; a nodule" says two, and "2 views of a nodule" does not.
            self._declare(glued["number"])
            self._glued = True
            self._list(glued["rest"])
        elif _STRANGE.match(value) or _hides_count(value):
            self.conflict("a count that is not understood")
        elif value.startswith(("[", "【")):
            self.conflict("a heading that is not known")
        else:
            self._list(value)

    @property
    def _begun(self) -> bool:
        return self._number is not None or bool(self._items)

    @property
    def declared(self) -> bool:
        """Whether a count was given, not only things that are listed."""
        return self._number is not None

    def _declare(self, word: str) -> None:
        self._number = read_number(word)
        if not (word.isascii() and word.isdigit()):
            self.note("a count spelled as a word")

    def add(self, line: str) -> None:
        """Take one more line: something listed, or the end of what was listed last."""
        bullet = _BULLET.match(line)
        if bullet and bullet["number"] not in (None, "1") and not self._begun:
            # A count that stands in the line after its category.
            self.begin(line.strip())
            return
        if _hides_count(line) or (
            bullet and not self._begun and _NUMBERED.match(bullet[2])
        ):
            self.conflict("a count without a category")
        if _HEADED.match(line):
            self.conflict("a heading that is not known")
        if bullet is not None:
            self.note("listed in lines of their own")
            bare = bullet[2].strip(_EDGES)
            if bare and not _is_none(bare):
                self._items.append([bare])
            return
        if _AGAIN.fullmatch(line.strip(" \t*_")):
            self.conflict("two counts")
        if _ENDS_OPEN.match(line):
            self.conflict("a heading that is not known")
        if self._items:
            self._items[-1].append(line.strip())
        else:
            self._plain = True
            self._list(line)

    def _list(self, words: str) -> None:
        self._items += [[one] for one in _list(words)]

    def close(self) -> ListedCount:
        """Return the count: as declared, else of what is listed."""
        number = self._number
        listed = tuple([" ".join(parts).strip(_EDGES) for parts in self._items])
        if number is None:
            if not listed or self._plain:
                self.conflict("no count")
            self.note("what is listed was counted")
            return ListedCount(len(listed), listed)
        if self._glued:
            if number != len(listed):
                self.conflict("a count that is not understood")
            self.note("a count spelled differently")
        if number != len(listed):
            self.note("a declared count differs from what is listed")
        return ListedCount(number, listed)

    def note(self, what: str) -> None:
        """Keep a repair."""
        self._notes.append(f"{self._section}: {what}")

    def conflict(self, what: str) -> NoReturn:
        """Give up, because what is said could mean two things."""
        raise UnreadableError(f"{self._section}: {what}")


def _read_errors(
    section: JudgeSection, lines: Sequence[str], categories: int, notes: list[str]
) -> dict[int, ListedCount]:
    """Return the errors of a section by category."""
    if len(lines) == 1 and _NONE.match(lines[0]):
        return {}
    found = _read_published(lines, categories)
    if found is None:
        found = _read_spelled(section, lines, categories, notes)
    if found and len(found) < categories:
        notes.append(f"{section}: categories that are not listed have none")
    return found


def _read_published(
    lines: Sequence[str], categories: int
) -> dict[int, ListedCount] | None:
    """Return what lines in the published spelling say; None if one of them is not.

    Says what `_read_spelled` says, in a third of the time.
    """
    rows = _PUBLISHED.findall("\n".join(lines))
    if len(rows) != len(lines):
        return None
    found: dict[int, ListedCount] = {}
    for letter, digits, rest in rows:
        place = ord(letter) - _A
        zero = digits == "0" and not rest
        counted = _ZERO if zero else _count_listed(digits, rest)
        if counted is None or place in found or place >= categories:
            return None
        found[place] = counted
    return found


def _count_listed(digits: str, rest: str) -> ListedCount | None:
    """Return a count and what is listed for it; None where the two differ."""
    number, listed = int(digits), _list(rest)
    return ListedCount(number, tuple(listed)) if number == len(listed) else None


_A: Final = ord("a")
_ZERO: Final = ListedCount(0, ())


def _list(words: str) -> list[str]:
    """Return things that are listed in one line."""
    if not words or words.isspace():
        return []
    listed = [one.strip(_EDGES) for one in words.replace("；", ";").split(";")]
    return [
        one
        for one in listed
        if one and (one[0] not in _NONE_BEGINS or not _is_none(one))
    ]


def _hides_count(words: str) -> bool:
    """Whether a count stands among words, outside what they quote."""
    if ":" not in words and "：" not in words:
        return False
    return _HIDDEN.search(_QUOTED.sub("", words)) is not None


def _is_none(words: str) -> bool:
    return words[0] in _NONE_BEGINS and _NONE.match(words) is not None


def _read_spelled(
    section: JudgeSection, lines: Sequence[str], categories: int, notes: list[str]
) -> dict[int, ListedCount]:
    """Return what lines say whose categories and counts may be spelled otherwise."""
    marks = [_CATEGORY.match(line) for line in lines]
    letters = any(mark is not None and _mark(mark).isalpha() for mark in marks)
    found: dict[int, ListedCount] = {}
    places: list[tuple[int, _CountReader]] = []
    before: list[str] = []
    for line, mark in zip(lines, marks, strict=True):
        if mark is not None and _mark(mark).isalpha() is letters:
            places.append((_place(_mark(mark)), _CountReader(section, notes)))
            _begin(places[-1][1], mark, letters)
        elif places:
            places[-1][1].add(line)
        else:
            before.append(line)
    for place, one in places:
        counted = one.close()
        if place in found:
            one.conflict("a category occurs twice")
        if place < categories:
            found[place] = counted
        elif counted.number:
            one.conflict("a category that was not asked for")
        else:
            one.note("a category that was not asked for ignored")
    _check_before(section, before, found, notes)
    return found


def _check_before(
    section: JudgeSection,
    before: Sequence[str],
    found: Mapping[int, ListedCount],
    notes: list[str],
) -> None:
    """Look at the lines before the first category: they must not say more."""
    nothing = [line for line in before if _NONE.match(line)]
    others = [line for line in before if not _NONE.match(line)]
    if any(not line.rstrip(" \t*_").endswith((":", "：")) for line in others):
        raise UnreadableError(f"{section}: words without a category")
    if nothing and any(one.number for one in found.values()):
        raise UnreadableError(f"{section}: errors, and that there are none")
    if not found and not nothing:
        raise UnreadableError(f"{section}: no category")
    if before:
        notes.append(f"{section}: words before the categories ignored")


def _mark(found: re.Match[str]) -> str:
    return found[1] or found[2] or found[3]


def _place(mark: str) -> int:
    """Return the place of a category: (a) and (1) are the first."""
    return int(mark) - 1 if mark.isdigit() else ord(mark.lower()) - ord("a")


def _begin(current: _CountReader, mark: re.Match[str], letters: bool) -> None:
    """Read a category's own line: what it is called, then the count."""
    rest = mark[4].rstrip(" \t*_")
    if mark.start(1) != 1 or not mark[1].islower():
        current.note("a category spelled differently")
    named = _NAMED.match(rest)
    if named is not None:
        value = named["value"]
        counted = _COUNT_NAMED.search(rest[: named.start("value")])
        current.begin(f"({counted[1]}): {value}" if counted else value)
    elif _COUNT.match(rest) or _NONE.match(rest):
        current.note("a category spelled differently")
        current.begin(rest)
    elif counted := _COUNT_LAST.search(rest, max(len(rest) - 20, 0)):
        current.begin(counted["number"])
    if not letters and not current.declared:
        # "1) ..." may be the first of a list as well as the first category.
        current.conflict("numbers that may be categories or a list")


def _begins_list(lines: Sequence[str], current: _CountReader) -> bool:
    """Whether the first line of the matched findings is a finding, and no count."""
    if _NUMBERED.match(lines[0]) is None:
        bullet = _BULLET.match(lines[0])
        return bullet is not None and _NUMBERED.match(bullet[2]) is None
    # "1. a" and "2. b" in two lines are a list; "2. a; b" in one is a count.
    numbers = [int(found["number"]) for found in map(_NUMBERED.match, lines) if found]
    listed = len(numbers) > 1 and numbers[1] == numbers[0] + 1
    if listed and (numbers[0] != 1 or any(map(_SPLIT.search, lines))):
        current.conflict("numbers that may be a count or a list")
    return listed


def _read_matched(lines: list[str], notes: list[str]) -> ListedCount:
    """Return the matched findings."""
    if len(lines) == 1 and (plain := _PUBLISHED_MATCHES.fullmatch(lines[0])):
        published = _count_listed(plain[1], plain[2])
        if published is not None:
            return published
    current = _CountReader(JudgeSection.MATCHED, notes)
    if all(map(_NONE.match, lines)):
        return ListedCount(0, ())
    first, *rest = lines
    listed = _begins_list(lines, current)
    if first.rstrip(" \t*_").endswith((":", "：")) and rest:
        lines = rest
    elif not listed:
        value = _LABEL.sub("", first, count=1).strip()
        if rest and _NONE.match(value):
            current.conflict('"none", and more is said')
        current.begin(value)
        several = _SEVERAL.search(value.strip(_EDGES)) and not _SPLIT.search(value)
        if not current.declared and (several or rest):
            current.conflict("no count")
        lines = rest
    for line in lines:
        current.add(line)
    return current.close()
