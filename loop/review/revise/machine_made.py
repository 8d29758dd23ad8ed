"""Wording that a machine made is held tighter than what a person wrote.

An optimizer sees the cases it is scored on and what clinicians said of them, and copies
both if it helps. What a person may be warned about is refused here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from loop.core.check_findings import Finding, broken
from loop.core.errors import OverlapError
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.prompts.guides import dump_guides
from loop.prompts.version import PromptVersion
from loop.review.revise.copies import (
    LONG_RUN,
    REFUSED_RUN,
    Copy,
    NewWording,
    find_copies,
    new_wording,
)
from loop.review.revise.draft_files import DraftOrigin, read_about
from loop.review.status import read_kept
from loop.run.store import Store

MOST_BYTES: Final = 4096
"""Bytes of one guide as its file has it, at most; a longer one may not grow."""

MOST_GROWTH: Final = 0.2
"""Share by which the static tokens may grow over the parent's."""

SHORTEST: Final = 3
"""Letters and digits of a wording that `rules` looks for, at least; two in Chinese."""

_CHECK: Final = "machine-made"
_WORD = re.compile(r"[^\W\d_\u3400-\u9fff]+")
"""Letters of a word, without Chinese ones: they may follow others, as in "CT检查"."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def is_machine_made(workspace: WorkspacePaths, version: PromptVersion) -> bool:
    """Whether a version is a draft that an optimizer made, edited since or not."""
    if not version.draft:
        return False
    return read_about(workspace, version).origin is DraftOrigin.OPTIMIZER


def lint_machine_made(
    parent: PromptVersion, draft: PromptVersion, tokens: tuple[int, int] | None = None
) -> tuple[Finding, ...]:
    """Return the errors in what a machine wrote; empty when it is clean.

    Parameters
    ----------
    tokens
        Static tokens of the parent and of the draft; None where they are not known.
    """
    return tuple(_find(parent, draft, tokens))


def _find(
    parent: PromptVersion, draft: PromptVersion, tokens: tuple[int, int] | None
) -> Iterator[Finding]:
    for guide in draft.guides:
        old = parent.guide(guide.label)
        if old == guide:
            continue
        size = _size(guide)
        if size > max(MOST_BYTES, _size(old) if old else 0):
            yield broken(
                _CHECK,
                f"takes {size:,} bytes, and {MOST_BYTES:,} are the most",
                where=f"guide {guide.label}",
            )
        yield from _lint_wordings(guide, old)
    if tokens is not None and tokens[1] > (1 + MOST_GROWTH) * tokens[0]:
        yield broken(
            _CHECK,
            f"takes {tokens[1]:,} tokens, and the parent {tokens[0]:,}: at most "
            f"{MOST_GROWTH:.0%} more",
            where="prompt",
        )
    for one in new_wording(parent, draft):
        if problem := _strange(one.text):
            yield broken(_CHECK, problem, where=one.where)


def _size(guide: Guide) -> int:
    return len(dump_guides((guide,)).encode("utf-8"))


def _lint_wordings(guide: Guide, old: Guide | None) -> Iterator[Finding]:
    """Yield new wordings that are found everywhere."""
    known = set(_searched(old)) if old else set()
    for wording in _searched(guide):
        letters = sum(char.isalnum() for char in wording)
        cjk = any("\u3400" <= char <= "\u9fff" for char in wording)
        if wording not in known and letters < (2 if cjk else SHORTEST):
            yield broken(
                _CHECK,
                f"{wording!r} is too short to tell anything",
                where=f"guide {guide.label}",
            )


def _searched(guide: Guide) -> Iterator[str]:
    for part in guide.parts:
        yield from part.terms
        yield from part.exclusions
        yield from (rule.phrase for rule in part.clarifications)


def _strange(text: str) -> str:
    """Say which characters have no place in a guide, without repeating the text."""
    for char in text:
        if char not in "\n\t" and unicodedata.category(char) in _UNSEEN:
            return f"holds the character U+{ord(char):04X}, which cannot be seen"
    for word in _WORD.findall(text):
        scripts = {_script(char) for char in word}
        if len(scripts) > 1:
            named = " and ".join(sorted(scripts))
            return f"mixes {named} letters in one word, as look-alikes do"
    return ""


def _script(char: str) -> str:
    """Return the script of a letter, by the first word of its Unicode name."""
    return unicodedata.name(char, "unnamed").partition(" ")[0].capitalize()


def refuse_copied(
    workspace: WorkspacePaths,
    store: Store,
    wording: Iterable[NewWording],
    cohort: str,
    copies: Sequence[Copy],
) -> None:
    """Refuse what a machine copied from cases or from what clinicians said of them.

    Parameters
    ----------
    copies
        Long copies from cases for development, which a person is warned of.

    Raises
    ------
    OverlapError
        Something was copied; says where, and from what, without repeating it.
    StoreError
        The verdicts cannot be read.
    """
    if copies:
        first = copies[0]
        raise OverlapError(
            f"{first.where}: {LONG_RUN} or more consecutive words also occur in case "
            f"{first.case_id} of cohort {first.cohort}. What an optimizer writes must "
            "not repeat a case. Search again, or say it in your own words in a draft "
            "that you begin yourself."
        )
    comments = (
        (one.id, one.verdict.comment)
        for one in read_kept(store, workspace, cohort)
        if one.verdict.comment
    )
    for one in find_copies(wording, comments, REFUSED_RUN, cohort)[:1]:
        raise OverlapError(
            f"{one.where}: {REFUSED_RUN} or more consecutive words also occur in the "
            f"comment of verdict {one.case_id}. Comments are private, and a prompt is "
            "not. Search again."
        )
