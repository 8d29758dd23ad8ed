"""Verdicts that no draft can be made from: refused when handed in, else named by id.

What can be known when a verdict is handed in is refused there. What only later makes it
impossible, such as a version that took the same wording out, is told by the revision.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from loop.core.clock import utc_now
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import Cohort
from loop.prompts.catalog import latest_version
from loop.prompts.version import PromptVersion
from loop.review.revise.copies import NewWording, check_copies, new_wording
from loop.review.revise.draft import lint_draft
from loop.review.revise.wording import Authorship, build_draft, refuse_contradictions
from loop.review.verdict import Edits, Verdict, check_verdicts, read_asked


class Blocked(NamedTuple):
    """A verdict that cannot be applied."""

    id: str
    label: str
    reason: str

    @property
    def words(self) -> str:
        """Verdict, label and reason in one line."""
        return f"{self.id} on {self.label}: {self.reason}"


def refuse_blocked(
    workspace: WorkspacePaths,
    verdicts: Sequence[Verdict],
    *,
    prompt: str,
    cohort: Cohort,
    known: Collection[str] = (),
) -> None:
    """Refuse verdicts, handed in together, that no draft could be made from now.

    That is wording copied from a case of a cohort that is not for development; verdicts
    that contradict each other; and, of the newest version of the prompt: a label
    without a guide, an entry to remove that is not there, a general rule without a
    place, and whatever lint would call an error.

    Parameters
    ----------
    prompt
        What was judged, ``"extractor@v3"``; empty, or one that is not here, leaves out
        what depends on it.
    known
        Ids of verdicts that are kept already: they may have been answered since.

    Raises
    ------
    OverlapError
        Wording is copied; names the verdict by its number.
    DataError
        One of the other reasons; names the verdict by its number.
    """
    fresh = [v if v.id not in known else replace(v, edits=Edits()) for v in verdicts]
    if not any(verdict.edits for verdict in fresh):
        return
    base = _find_newest(workspace, prompt)
    if base is None:
        refuse_contradictions(fresh)
    else:
        draft = _build(base, fresh)
        _refuse_errors(workspace, base, draft)
    wording = [
        NewWording(f"verdict {number}, {where}", text)
        for number, verdict in enumerate(fresh, 1)
        for where, text in _wording(base, verdict)
    ]
    check_copies(workspace, wording, cohort)


def _find_newest(workspace: WorkspacePaths, prompt: str) -> PromptVersion | None:
    name = prompt.partition("@")[0]
    try:
        return latest_version(workspace, name) if name else None
    except DataError:
        return None


def _build(base: PromptVersion, verdicts: Sequence[Verdict]) -> PromptVersion:
    return build_draft(base, verdicts, Authorship("", utc_now(), "")).draft


def _wording(base: PromptVersion | None, verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Yield where it stands and the text of everything a verdict adds."""
    if base is not None:
        yield from new_wording(base, _build(base, (verdict,)))
        return
    edits = verdict.edits
    for name in ("terms", "exclusions", "general_rules"):
        yield from ((name, text) for text in getattr(edits, name))
    for rule in edits.clarifications:
        yield from (("clarification", text) for text in (rule.phrase, rule.note))
    for one in edits.exemplars:
        yield from (("exemplar", text) for text in (one.text, one.evidence, one.why))


def _refuse_errors(
    workspace: WorkspacePaths, base: PromptVersion, draft: PromptVersion
) -> None:
    """Refuse a draft in which lint finds an error that its base does not have."""
    before = {
        (one.where, one.what)
        for one in lint_draft(workspace, base, base)
        if not one.holds
    }
    for one in lint_draft(workspace, base, draft):
        if not one.holds and (one.where, one.what) not in before:
            raise DataError(f"{one.where}: {one.what}. Correct the verdict.")


def find_blocked(
    workspace: WorkspacePaths,
    base: PromptVersion,
    verdicts: Sequence[Verdict],
    cohort: Cohort,
) -> tuple[Blocked, ...]:
    """Return the verdicts that cannot be applied to `base`, each with its reason.

    Of two that contradict each other the earlier one stands.
    """
    asked, cases = read_asked(workspace, cohort), frozenset(cohort.case_ids)
    usable: list[Verdict] = []
    blocked: list[Blocked] = []
    for verdict in verdicts:
        try:
            tried = check_verdicts((*usable, verdict), asked, cases)
            draft = _build(base, tried)
            if verdict.edits:
                _refuse_errors(workspace, base, draft)
                found = _wording(base, tried[-1])
                check_copies(workspace, (NewWording(*one) for one in found), cohort)
        except DataError as error:
            blocked.append(Blocked(verdict.id, verdict.label, _plain(str(error))))
        else:
            usable.append(verdict)
    return tuple(blocked)


def _plain(message: str) -> str:
    """Return a message without numbers that count verdicts nobody numbered."""
    message = re.sub(r"^verdict \d+: ", "", message)
    return re.sub(r"^verdicts \d+ and \d+ disagree", "two verdicts disagree", message)


def name_blocked(blocked: Sequence[Blocked]) -> str:
    """Return which verdicts cannot be applied, and the way on."""
    named = "; ".join(one.words.rstrip(".") for one in blocked)
    number = len(blocked)
    return (
        f"{counted(number, 'verdict')} cannot be applied: {named}. "
        "Withdraw a kept one with `ranloop verdict withdraw ID --why REASON`, take one "
        "of a file out of it, or apply all others with --skip-blocked."
    )
