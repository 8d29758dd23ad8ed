"""A prompt version as a model reads it: what changed in it, and what its tokens go to.

Texts are compared as they are sent, not as they stand in the files: templates rendered,
with a placeholder where the case goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile, zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from loop.core.errors import DataError, LedgerError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Guide, Message
from loop.prompts.catalog import find_parent, lineage, read_known, read_version
from loop.prompts.instructions import without_rules
from loop.prompts.version import (
    CallPlan,
    PromptVersion,
    frozen_blocks,
    replace_blocks,
)
from loop.review.blame import (
    LineOrigin,
    LineSources,
    PromptLine,
    find_sources,
    read_blame,
)
from loop.review.revise.draft import (
    Shown,
    ShownCall,
    find_engine_counter,
    render_shown,
)
from loop.run.store import Store, open_store
from loop.run.tokens import TokenCounter, find_counter

Made = TypeVar("Made")

_WORD = re.compile(r"[\w-]+|\s+|[^\w\s]")

_ALIKE = 0.5
"""Least share of the shorter of two lines that the other has too, to be its change."""

_MOST_PAIRS = 2_000_000
"""Pairs of words or lines that are compared; beyond, all but the ends is another."""


class LinePiece(NamedTuple):
    """Words of a line."""

    text: str
    changed: bool
    """Whether the other version does not have them there."""


class ChangedLine(NamedTuple):
    """One line of a message, or one that the parent has in its place."""

    sign: str
    """``"+"`` in the version only, ``"-"`` in its parent only, empty in both."""

    pieces: tuple[LinePiece, ...]
    sources: tuple[PromptLine, ...] = ()
    """What of the version it shows, as far as that can be told."""

    @property
    def text(self) -> str:
        """The line whole."""
        return "".join(one.text for one in self.pieces)


class ChangedMessage(NamedTuple):
    """One message as it is sent."""

    role: str
    lines: tuple[ChangedLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCall:
    """One call, with what its parent says otherwise."""

    name: str
    """``"joint"`` or a label id."""

    tokens: int
    messages: tuple[ChangedMessage, ...]

    @property
    def changes(self) -> int:
        """How many lines are not in the parent, or only there."""
        return sum(bool(line.sign) for one in self.messages for line in one.lines)


class TokenShare(NamedTuple):
    """What one part of a prompt takes: by so much it is shorter without it."""

    part: str
    tokens: int | None
    """None where the prompt cannot be rendered without it; 0 where it is gone."""

    before: int | None
    """In the parent; None where there is none, or where it cannot be rendered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTokens:
    """What the static text of all calls about one case takes, and for what."""

    total: TokenShare
    labels: tuple[TokenShare, ...]
    """Of each guide; with one call per label, of its whole call."""

    sections: tuple[TokenShare, ...]
    """Of each part of the guides, the rules of reading, frozen blocks, and the rest,
    which holds those without a number."""

    exact: bool
    """Whether they were counted with the model's own tokenizer."""

    remark: str
    """How they were counted, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPage:
    """A version as a model reads it, and where it came from."""

    version: PromptVersion
    parent: PromptVersion | None
    """None for the first, and where it is not among the versions."""

    calls: tuple[ChangedCall, ...]
    gone: tuple[str, ...]
    """Calls that only the parent makes."""

    tokens: PromptTokens | None
    """None where the version cannot be rendered."""

    lines: tuple[LineOrigin, ...]
    problems: tuple[str, ...]
    """Why a part is missing."""

    def __repr__(self) -> str:
        """Return a line: all that it holds would fill a notebook."""
        tokens = f"{self.tokens.total.tokens:,} tokens" if self.tokens else "no tokens"
        return f"<page of {self.version.ref}: {tokens}, {len(self.lines):,} lines>"


def read_prompt_page(
    workspace: WorkspacePaths,
    ref: str,
    store: Store | None = None,
    counter: TokenCounter | None = None,
) -> PromptPage:
    """Return the page of the version or draft `ref`.

    What cannot be told is named and hides nothing else: a template that cannot be
    rendered, or an ancestor that is gone.

    Parameters
    ----------
    store
        Where verdicts are kept; None where there is none.
    counter
        How tokens are counted; None for an estimate.

    Raises
    ------
    DataError
        There is no such version.
    LedgerError
        The ledger is broken.
    StoreError
        A verdict cannot be read.
    """
    version = read_version(workspace, ref)
    counter = counter or find_counter(None)
    troubles = _Troubles()
    none: tuple[PromptVersion, ...] = ()
    chain = troubles.told(lambda: lineage(workspace, version.ref), none)
    parent = (
        (*chain, None)[1]
        if chain
        else troubles.told(lambda: find_parent(workspace, version), None)
    )
    shown = troubles.told(lambda: render_shown(version, counter), None)
    before = None
    if parent is not None:
        known = parent
        before = troubles.told(lambda: render_shown(known, counter), None)
    lines = read_blame(workspace, chain, store) if chain else ()
    sources = find_sources(version) if shown and lines else {}
    return PromptPage(
        version=version,
        parent=parent,
        calls=mark_changes(before, shown, sources) if shown else (),
        gone=_gone(before, shown),
        tokens=count_parts(version, parent, counter) if shown else None,
        lines=lines,
        problems=tuple(dict.fromkeys(troubles)),
    )


class _Troubles(list[str]):
    """What could not be told, and why."""

    def told(self, make: Callable[[], Made], otherwise: Made) -> Made:
        """Return what `make` makes, or `otherwise` where its data do not allow it."""
        try:
            return make()
        except LedgerError:
            raise
        except DataError as error:
            self.append(str(error))
            return otherwise


def open_prompt_page(
    workspace: WorkspacePaths, ref: str, engine: str = "rules"
) -> PromptPage:
    """Return the page of a version of a workspace, or else of one that ships.

    Parameters
    ----------
    engine
        Engine whose tokens are counted.

    Raises
    ------
    DataError
        There is no such version, or the settings of this machine are malformed.
    LedgerError
        The ledger is broken.
    StoreError
        A verdict cannot be read.
    """
    counter = find_engine_counter(workspace, engine)
    known = read_known(workspace, ref)
    if known.shipped or not workspace.store.is_file():
        place = WorkspacePaths(bundled()) if known.shipped else workspace
        return read_prompt_page(place, known.version.ref, None, counter)
    with open_store(workspace) as store:
        return read_prompt_page(workspace, known.version.ref, store, counter)


def _gone(before: Shown | None, after: Shown | None) -> tuple[str, ...]:
    kept = {call.name for call in after.calls} if after else set[str]()
    calls = before.calls if before and after else ()
    return tuple(call.name for call in calls if call.name not in kept)


def mark_changes(
    before: Shown | None,
    after: Shown,
    sources: Mapping[str, tuple[LineSources, ...]] = MappingProxyType({}),
) -> tuple[ChangedCall, ...]:
    """Return the calls of `after` with what `before` says otherwise.

    Without `before` nothing is marked. A call that it does not make is new throughout.

    Parameters
    ----------
    sources
        What each line of `after` shows, as `find_sources` finds it.
    """
    known = {call.name: call for call in before.calls} if before else {}
    return tuple(
        ChangedCall(
            name=call.name,
            tokens=call.tokens,
            messages=tuple(
                _messages(
                    before, known.get(call.name), call, sources.get(call.name, ())
                )
            ),
        )
        for call in after.calls
    )


def _messages(
    before: Shown | None,
    old: ShownCall | None,
    new: ShownCall,
    sources: tuple[LineSources, ...],
) -> Iterator[ChangedMessage]:
    earlier: Sequence[Message] = old.messages if old else ()
    if before is None:
        earlier = new.messages
    sides = zip_longest(new.messages, earlier[: len(new.messages)], sources)
    for message, was, shown in sides:
        lines = compare_lines(was.content if was else None, message.content)
        yield ChangedMessage(message.role, tuple(_with_sources(lines, shown or ())))


def _with_sources(
    lines: Iterable[ChangedLine], sources: LineSources
) -> Iterator[ChangedLine]:
    """Yield the lines with what each shows; a line of the parent only shows nothing."""
    rest = iter(sources)
    for line in lines:
        yield line if line.sign == "-" else line._replace(sources=next(rest, ()))


def compare_lines(before: str | None, after: str) -> Iterator[ChangedLine]:
    r"""Yield the lines of `after`, and those of `before` that are not among them.

    Examples
    --------
    >>> for sign, pieces, _ in compare_lines("a b\nc", "a d\nc"):
    ...     print(sign, [piece.text for piece in pieces if piece.changed])
    - ['b']
    + ['d']
     []
    """
    old = before.split("\n") if before is not None else []
    new = after.split("\n")
    for same, was, now in _compare(old, new):
        if same:
            yield from (ChangedLine("", (LinePiece(line, False),)) for line in now)
            continue
        for one, other in zip_longest(was, now):
            yield from _line_pair(one, other)


def _line_pair(old: str | None, new: str | None) -> Iterator[ChangedLine]:
    """Yield a line that became another, with the words that differ."""
    parts: list[tuple[bool, Sequence[str], Sequence[str]]] = []
    if old is not None and new is not None:
        parts = list(_compare(_WORD.findall(old), _WORD.findall(new)))
    shared = sum(len("".join(now)) for same, _, now in parts if same)
    alike = bool(parts) and shared >= _ALIKE * min(len(old or ""), len(new or ""))
    for sign, text in (("-", old), ("+", new)):
        if text is None:
            continue
        pieces = [
            LinePiece("".join(now if sign == "+" else was), not same)
            for same, was, now in parts
        ]
        whole = [LinePiece(text, True)]
        shown = pieces if alike else whole
        yield ChangedLine(sign, tuple(one for one in shown if one.text))


def _compare(
    old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[bool, Sequence[str], Sequence[str]]]:
    """Yield stretches of both, each with whether they are the same."""
    head = sum(1 for _ in takewhile(_same, zip(old, new, strict=False)))
    ends = zip(reversed(old[head:]), reversed(new[head:]), strict=False)
    tail = sum(1 for _ in takewhile(_same, ends))
    low, high = len(old) - tail, len(new) - tail
    was, now = old[head:low], new[head:high]
    yield True, old[:head], new[:head]
    if len(was) * len(now) > _MOST_PAIRS:
        yield False, was, now
    else:
        matcher = SequenceMatcher(None, was, now)
        for how, a, b, c, d in matcher.get_opcodes():
            yield how == "equal", was[a:b], now[c:d]
    yield True, old[low:], new[high:]


def _same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


_PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("names and definitions", ("name", "definition")),
    ("what counts", ("counts",)),
    ("terms", ("terms",)),
    ("what does not count, and exclusions", ("does_not_count", "exclusions")),
    ("when uncertain", ("uncertain_when",)),
    ("clarifications", ("clarifications",)),
    ("exemplars", ("exemplars",)),
    ("implied labels", ("implies",)),
)
"""Sections of all guides together, each with the fields that it is made of."""

REST = "the rest of the instructions"


@lru_cache(maxsize=8)
def count_parts(
    version: PromptVersion, parent: PromptVersion | None, counter: TokenCounter
) -> PromptTokens:
    """Return what each label and each section of `version` takes, beside its parent.

    A part takes what the prompt is shorter by without it, with whatever its templates
    write around it. What a template does not do without has no number, and is counted
    with the rest. What only the parent has is there as well.

    Raises
    ------
    DataError
        The version cannot be rendered.
    """
    now = _PartCounter(version, counter)
    then = _PartCounter(parent, counter) if parent else None
    if then is not None and then.total is None:
        then = None
    if now.total is None:
        raise DataError(f"{version.ref} cannot be rendered: see `ranloop lint`.")
    sections = _shares(now.sections(), then.sections() if then else None)
    return PromptTokens(
        total=TokenShare("all", now.total, then.total if then else None),
        labels=tuple(_shares(now.labels(), then.labels() if then else None)),
        sections=tuple(sorted(sections, key=lambda one: one.part == REST)),
        exact=counter.exact,
        remark=counter.remark,
    )


def _shares(
    new: Mapping[str, int | None], old: Mapping[str, int | None] | None
) -> Iterator[TokenShare]:
    """Yield the parts of a version, then those that only its parent has."""
    for part in {**new, **(old or {})}:
        before = None if old is None else old.get(part, 0)
        yield TokenShare(part, new.get(part, 0), before)


class _PartCounter:
    """The tokens of one version, whole and without its parts."""

    def __init__(self, version: PromptVersion, counter: TokenCounter) -> None:
        self._version = version
        self._counter = counter
        self.total = self._count(version)

    def _count(self, version: PromptVersion) -> int | None:
        try:
            return render_shown(version, self._counter).tokens
        except DataError:
            return None

    def _without(self, version: PromptVersion) -> int | None:
        left = self._count(version)
        return None if left is None or self.total is None else self.total - left

    def labels(self) -> dict[str, int | None]:
        """Return label ids to tokens; None where the rest cannot be rendered alone."""
        version = self._version
        if version.plan is CallPlan.PER_LABEL or len(version.guides) == 1:
            shown = render_shown(version, self._counter)
            return dict(
                zip(version.labels, (one.tokens for one in shown.calls), strict=True)
            )
        return {
            guide.label: self._without(
                replace(
                    version,
                    guides=tuple(one for one in version.guides if one is not guide),
                )
            )
            for guide in version.guides
        }

    def sections(self) -> dict[str, int | None]:
        """Return sections to tokens, together the total; None where not known."""
        version = self._version
        found = {
            name: self._without(_emptied(version, names)) for name, names in _PARTS
        }
        found["rules of reading"] = self._without(without_rules(version))
        for name, less in _without_blocks(version):
            found[f"frozen block {name}"] = self._without(less)
        shown = {name: tokens for name, tokens in found.items() if tokens != 0}
        known = sum(tokens or 0 for tokens in shown.values())
        return {**shown, REST: (self.total or 0) - known}


def _emptied(version: PromptVersion, names: Sequence[str]) -> PromptVersion:
    """Return `version` with some fields of every guide empty."""

    def empty(guide: Guide) -> Guide:
        values: dict[str, Any] = {name: type(getattr(guide, name))() for name in names}
        return replace(guide, **values)

    return replace(version, guides=tuple(map(empty, version.guides)))


def _without_blocks(version: PromptVersion) -> Iterator[tuple[str, PromptVersion]]:
    """Yield each frozen block with the version as it is without its words."""
    for field in ("system", "user"):
        source = getattr(version, field)
        try:
            names = tuple(frozen_blocks(source))
        except DataError:
            continue
        for name in names:

            def cut(block: str, text: str, gone: str = name) -> str:
                return "\n" if block == gone else text

            changes: dict[str, Any] = {field: replace_blocks(source, cut)}
            yield name, replace(version, **changes)
