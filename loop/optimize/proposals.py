"""Proposals: texts that a machine wrote for a prompt, read as guides or refused.

An optimizer changes texts. Here each text is a component of a version: one a guide,
exactly what `dump_guides` writes of it, and one for the words of ``system.jinja``. What
it proposes becomes the version that a commit would make of it, or is refused with one
of the reasons of `Objection`, which documents count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

import yaml

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import ErrorWeight, Guide, PromptTask, Value
from loop.core.safe_text import exposed
from loop.labels.cohort import (
    Cohort,
    CohortRole,
    has_texts,
    iter_items,
    list_cohorts,
    read_cohort,
)
from loop.optimize.terms import ProposalKind
from loop.prompts.catalog import list_drafts, read_version
from loop.prompts.diff import guide_facts
from loop.prompts.guides import dump_guides, parse_guides
from loop.prompts.lint import fold_phrase, has_errors, lint_guide
from loop.prompts.outputs.base import CONTRACTS
from loop.prompts.version import PromptVersion, frozen_blocks, replace_blocks
from loop.review.revise.copies import (
    LONG_RUN,
    REFUSED_RUN,
    NewWording,
    find_windows,
    new_wording,
)
from loop.review.revise.draft import count_change
from loop.review.revise.draft_files import DraftMetadata, DraftOrigin, write_draft
from loop.review.revise.machine_made import MOST_BYTES, MOST_GROWTH
from loop.review.revise.wording import Authorship, build_draft
from loop.run.pool_shots import keep_injected

INSTRUCTIONS: Final = "system.jinja"
"""Name of the component with the words of the system message; no label has a dot."""

_ID_SHOWN: Final = 16
"""Characters of the digest by which a proposed text is known."""

MOST_NAMED: Final = 4
"""Guides that the reason of a draft names; of more it gives the number."""


class Objection(StrEnum):
    """Why a proposal is refused, in words."""

    EMPTY = "empty"
    LONG = "too long"
    SURROGATE = "half of a surrogate pair"
    UNSEEN = "characters that cannot be seen"
    LOOK_ALIKE = "letters that look like others"
    TEMPLATE = "template code"
    MARKUP = "YAML tags or anchors"
    NOT_A_GUIDE = "no guide"
    OTHER_LABEL = "text of another label"
    FROZEN = "frozen text changed"
    ORDER = "orders to the reader"
    NO_TERM = "a wording that names nothing"
    CONTRADICTION = "contradicts itself"
    COPIED = "copied from a case"
    COPIED_COMMENT = "copied from a verdict's comment"
    COSTLY = "too many prompt tokens"
    REFUSED = "refused by a clinician before"


def name_proposal(component: str, said: Guide | str) -> str:
    """Return the id of what was proposed for a component, whatever its order.

    Parameters
    ----------
    said
        A guide, or a whole system template.
    """
    told = said if isinstance(said, str) else sorted(guide_facts(said))
    return f"{component}:{ProposalKind.GUIDE}:{digest_json(told)[:_ID_SHOWN]}"


class RefusedProposal(NamedTuple):
    """A proposal that did not become a version."""

    component: str
    objection: Objection
    detail: str = ""
    """More of it: names and numbers, never text of the proposal."""


class Proposed(NamedTuple):
    """What an optimizer proposed after looking at some cases."""

    candidates: tuple[PromptVersion, ...]
    """Different wordings, none of them the version that it began with."""

    calls: int
    """Cases of candidates that it scored, one candidate on one case each."""

    proposals: int = 0
    """Texts that were proposed, refused ones included."""

    refused: Mapping[Objection, int] = MappingProxyType({})
    """Why proposals were refused, and how often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateWording:
    """Stretches of words that no proposal may hold, in memory alone."""

    dev: frozenset[str] = frozenset()
    """Of dev cases, `LONG_RUN` words each."""

    other: frozenset[str] = frozenset()
    """Of cases of all other cohorts, `REFUSED_RUN` words each."""

    comments: frozenset[str] = frozenset()
    """Of verdicts' comments, `REFUSED_RUN` words each."""

    digest: str = ""
    """Of the cohorts and comments that they were read from."""


def read_private_wording(
    workspace: WorkspacePaths, cohort: Cohort, comments: Iterable[str] = ()
) -> PrivateWording:
    """Return what a proposal must not be copied from.

    Parameters
    ----------
    cohort
        The cohort of the search.
    comments
        Comments of the verdicts that the search may have seen.

    Raises
    ------
    DataError
        A cohort cannot be read.
    """
    dev: set[str] = set()
    other: set[str] = set()
    read: dict[str, tuple[str, bool]] = {}
    for name in list_cohorts(workspace):
        one = read_cohort(workspace, name)
        if not has_texts(workspace, name):
            continue
        is_dev = one.role is CohortRole.DEV or name == cohort.name
        run, kept = (LONG_RUN, dev) if is_dev else (REFUSED_RUN, other)
        read[name] = one.digest, is_dev
        for item in iter_items(workspace, one):
            for text in item.variables.values():
                kept.update(find_windows(text, run))
    said = {window for text in comments for window in find_windows(text, REFUSED_RUN)}
    return PrivateWording(
        dev=frozenset(dev),
        other=frozenset(other),
        comments=frozenset(said),
        digest=digest_json([read, sorted(said)]),
    )


def list_components(version: PromptVersion) -> dict[str, str]:
    """Return the texts of `version` that may be changed, by name.

    A guide's name is its label. The system message is a component where it has words
    and, outside frozen blocks, no template code but comments; frozen blocks stand in
    it as their two marks, with nothing between.
    """
    found = {guide.label: dump_guides([guide]) for guide in version.guides}
    words = _folded(version.system)
    if words.strip() and not _codes(words, comments=False):
        found[INSTRUCTIONS] = words
    return found


def _folded(template: str) -> str:
    return replace_blocks(template, lambda _name, _text: "\n")


_CODE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|\{\{|\{%|\{#", re.DOTALL)

_ESCAPED = "{{'{'}}"


def _codes(template: str, *, comments: bool = True) -> list[str]:
    """Return the template code of `template`; an escaped brace is none."""
    found = (one[0] for one in _CODE.finditer(template))
    return [
        one
        for one in found
        if one != _ESCAPED and (comments or not one.startswith("{#"))
    ]


class ProposalReader:
    """Reads what is proposed in place of components of one version."""

    def __init__(
        self,
        parent: PromptVersion,
        private: PrivateWording | None = None,
        refused: Collection[str] = (),
    ) -> None:
        """Read proposals for `parent`, with which a search began.

        Parameters
        ----------
        private
            What none may be copied from; None where that is looked for later.
        refused
            Ids of proposals, see `name_proposal`, that a clinician refused.
        """
        self.parent: Final = parent
        self._refused = frozenset(refused)
        self._private = private or PrivateWording()
        self._known: dict[tuple[str, str], Guide | str | RefusedProposal] = {}

    @cached_property
    def components(self) -> dict[str, str]:
        """What may be changed, see `list_components`."""
        return list_components(self.parent)

    @cached_property
    def _scripts(self) -> frozenset[str]:
        texts = [dump_guides(self.parent.guides), self.parent.system, self.parent.user]
        return frozenset(
            script for text in texts for script in map(_script, text) if script
        )

    @cached_property
    def _windows(self) -> dict[str, frozenset[str]]:
        """Stretches of words by which the guide of each label is recognised."""
        found = {
            guide.label: frozenset(find_windows(dump_guides([guide]), REFUSED_RUN))
            for guide in self.parent.guides
        }
        return {
            label: own.difference(*(o for name, o in found.items() if name != label))
            for label, own in found.items()
        }

    def read(self, texts: Mapping[str, str]) -> PromptVersion | RefusedProposal:
        """Return the version that `texts` make of the parent, or why they do not.

        Parameters
        ----------
        texts
            Component to proposed text; components that are left out stay as they are.

        Raises
        ------
        ValueError
            There is no such component.
        """
        guides: dict[str, Guide] = {}
        system = self.parent.system
        for name, text in texts.items():
            if name not in self.components:
                raise ValueError(f"{self.parent.ref} has no component {name!r}")
            if text == self.components[name]:
                continue
            read = self._known.get((name, text))
            if read is None:
                read = self._known[name, text] = self._read_component(name, text)
            if isinstance(read, RefusedProposal):
                return read
            if isinstance(read, Guide):
                guides[name] = read
            else:
                system = read
        made = replace(
            self.parent,
            guides=tuple(guides.get(one.label, one) for one in self.parent.guides),
            system=system,
        )
        several = len(guides) + (system != self.parent.system) > 1
        objection = self._object_to_cost(made) if several else None
        return RefusedProposal("together", *objection) if objection else made

    def _object_to_cost(self, changed: PromptVersion) -> tuple[Objection, str] | None:
        """Say that `changed` takes too many tokens, or cannot be rendered."""
        tokens = count_change(self.parent, changed)
        if tokens is None:
            return Objection.CONTRADICTION, "it cannot be rendered"
        if tokens.after > (1 + MOST_GROWTH) * tokens.before:
            return Objection.COSTLY, f"{tokens.before} tokens became {tokens.after}"
        return None

    def _read_component(self, name: str, text: str) -> Guide | str | RefusedProposal:
        objection = _object_to_text(text, len(self.components[name].encode()))
        if objection:
            return RefusedProposal(name, *objection)
        read: Guide | str | RefusedProposal = (
            self._read_instructions(text)
            if name == INSTRUCTIONS
            else self._read_guide(name, text)
        )
        if isinstance(read, RefusedProposal):
            return read
        if name_proposal(name, read) in self._refused:
            return RefusedProposal(name, Objection.REFUSED)
        changed = (
            replace(self.parent, system=read)
            if isinstance(read, str)
            else replace(
                self.parent,
                guides=tuple(
                    read if one.label == name else one for one in self.parent.guides
                ),
            )
        )
        objection = self._object_to_wording(name, changed)
        return RefusedProposal(name, *objection) if objection else read

    def _read_instructions(self, text: str) -> str | RefusedProposal:
        known = self.parent.system
        codes = _codes(text)
        if any(one not in _codes(_folded(known)) for one in codes):
            return RefusedProposal(INSTRUCTIONS, Objection.TEMPLATE)
        try:
            found = frozen_blocks(text)
        except DataError:
            return RefusedProposal(INSTRUCTIONS, Objection.FROZEN)
        blocks = frozen_blocks(known)
        if list(found) != list(blocks):
            return RefusedProposal(INSTRUCTIONS, Objection.FROZEN)
        if any(now.strip() and now != blocks[name] for name, now in found.items()):
            return RefusedProposal(INSTRUCTIONS, Objection.FROZEN)
        if known.endswith("\n") and not text.endswith("\n"):
            text += "\n"
        return replace_blocks(text, lambda name, _: blocks[name])

    def _read_guide(self, label: str, text: str) -> Guide | RefusedProposal:
        if _has_markup(text):
            return RefusedProposal(label, Objection.MARKUP)
        try:
            guides = parse_guides(text, f"the proposed guide of {label}")
        except (DataError, ValueError):
            return RefusedProposal(label, Objection.NOT_A_GUIDE)
        if not guides:
            return RefusedProposal(label, Objection.EMPTY)
        labels = [one.label for one in guides]
        if labels != [label]:
            return RefusedProposal(label, Objection.OTHER_LABEL)
        (guide,) = guides
        before = self.parent.guide(label)
        if (
            before is not None
            and list(_wordings(before))
            and not list(_wordings(guide))
        ):
            return RefusedProposal(label, Objection.EMPTY, "no wording is left")
        objection = _object_to_guide(guide, before, self._task, self._implied)
        return RefusedProposal(label, *objection) if objection else guide

    @cached_property
    def _task(self) -> PromptTask:
        contract = CONTRACTS.get(self.parent.contract)
        return PromptTask.EXTRACT if contract is None else contract.task

    @cached_property
    def _implied(self) -> frozenset[str]:
        named = (label for one in self.parent.guides for label in one.implies)
        return frozenset((*self.parent.labels, *named))

    def _object_to_wording(
        self, component: str, changed: PromptVersion
    ) -> tuple[Objection, str] | None:
        """Say what is wrong with what `changed` says and the parent does not."""
        wording = list(new_wording(self.parent, changed))
        for objection, found in (
            (Objection.TEMPLATE, any(_codes(one.text) for one in wording)),
            (Objection.ORDER, any(_ORDER.search(one.text) for one in wording)),
            (Objection.LOOK_ALIKE, any(self._looks_alike(one) for one in wording)),
        ):
            # The words of the system message were looked at with their comments.
            is_known = objection is Objection.TEMPLATE and component == INSTRUCTIONS
            if found and not is_known:
                return objection, ""
        windows = {
            run: {one for said in wording for one in find_windows(said.text, run)}
            for run in (REFUSED_RUN, LONG_RUN)
        }
        if windows[REFUSED_RUN] & self._private.comments:
            return Objection.COPIED_COMMENT, f"{REFUSED_RUN} words in a row"
        if windows[REFUSED_RUN] & self._private.other:
            return Objection.COPIED, f"{REFUSED_RUN} words in a row"
        if windows[LONG_RUN] & self._private.dev:
            return Objection.COPIED, f"{LONG_RUN} words in a row"
        for label, own in self._windows.items():
            if label != component and windows[REFUSED_RUN] & own:
                return Objection.OTHER_LABEL, label
        return self._object_to_cost(changed)

    def _looks_alike(self, wording: NewWording) -> bool:
        """Whether letters stand there that only look like others."""
        if _RADICAL.search(wording.text):
            return True
        for word in re.findall(r"[^\W_]+", wording.text):
            if any(
                unicodedata.category(one).startswith("L")
                and unicodedata.normalize("NFKC", one) != one
                for one in word
            ):
                return True
            scripts = {script for script in map(_script, word) if script}
            if not scripts <= self._scripts | {"LATIN"}:
                return True
            if len(scripts - {"CJK"}) > 1:
                return True
        return False


_RADICAL = re.compile("[\u2e80-\u2fdf]")
"""Radicals of Chinese characters, which look like whole ones."""


def _object_to_text(text: str, before: int) -> tuple[Objection, str] | None:
    """Say what is wrong with a text before it is read as anything."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return Objection.SURROGATE, ""
    if size > max(MOST_BYTES, before):
        return Objection.LONG, f"{size:,} bytes"
    if not text.strip():
        return Objection.EMPTY, ""
    if exposed(text) != text:
        return Objection.UNSEEN, ""
    return None


def _object_to_guide(
    guide: Guide, before: Guide | None, task: PromptTask, implied: frozenset[str]
) -> tuple[Objection, str] | None:
    """Say what is wrong with a guide as such."""
    written = dump_guides([guide])
    try:
        written.encode()
    except UnicodeEncodeError:
        return Objection.SURROGATE, ""
    # An escape in quotes may hold what the text does not show.
    passages = [guide.name, guide.definition, *_passages(guide)]
    if any(exposed(one) != one for one in passages):
        return Objection.UNSEEN, ""
    known = set(_wordings(before)) if before else set()
    for phrase in _wordings(guide):
        if phrase not in known and not _names_something(phrase):
            return Objection.NO_TERM, ""
    if not set(guide.implies) <= implied:
        return Objection.OTHER_LABEL, "implies what is not asked for"
    words = ErrorWeight if task is PromptTask.JUDGE else Value
    values = [one.value for one in guide.clarifications]
    values += [one.value for one in guide.exemplars]
    if not all(isinstance(one, words) for one in values):
        return Objection.NOT_A_GUIDE, "a value of another task"
    if has_errors(lint_guide(guide)):
        return Objection.CONTRADICTION, ""
    return None


def _passages(guide: Guide) -> Iterator[str]:
    yield from (*guide.counts, *guide.does_not_count, *guide.uncertain_when)
    yield from _wordings(guide)
    for part in guide.parts:
        yield from (rule.note for rule in part.clarifications)
    for example in guide.exemplars:
        yield from (example.text, example.evidence, example.why)


def _wordings(guide: Guide) -> Iterator[str]:
    """Yield what the cue engine looks for by a guide."""
    for part in guide.parts:
        yield from (*part.terms, *part.exclusions)
        yield from (rule.phrase for rule in part.clarifications)


_WORDS = (
    "a about all also an and any are as at be been both but by can could do does for"
    " from had has have if in into is it its may might more most no none nor not of on"
    " or other our over same shall should so some such than that the their them then"
    " there these they this those to under up was we were which while will with"
    " without would yes patient report study image images film exam examination chest"
    " finding findings impression normal unremarkable left right present absent"
    " uncertain negative positive seen noted evidence"
)
_FUNCTION_WORDS: Final = frozenset(_WORDS.split())
"""Words by which no finding is told from another."""

_SHORTEST_STEM: Final = 4
"""Letters that a single word before a ``*`` must have."""


def _names_something(phrase: str) -> bool:
    """Whether a wording can name a finding at all.

    Examples
    --------
    >>> [_names_something(one) for one in ("*", "no", "x y", "ef*", "edema*")]
    [False, False, False, False, True]
    """
    words = re.findall(r"[^\W\d_]+\*?", fold_phrase(phrase.replace("…", "...")))
    told = [one for one in words if one.rstrip("*") not in _FUNCTION_WORDS]
    if len(words) == 1 and told and told[0].endswith("*"):
        return len(told[0]) > _SHORTEST_STEM or not told[0][0].isascii()
    return any(len(one) > 1 or not one.isascii() for one in told)


def _has_markup(text: str) -> bool:
    """Whether YAML uses more than plain keys, lists and words."""
    special = (yaml.TagToken, yaml.AnchorToken, yaml.AliasToken, yaml.DirectiveToken)
    try:
        return any(
            isinstance(one, special) for one in yaml.scan(text, Loader=yaml.CSafeLoader)
        )
    except yaml.YAMLError:
        return False  # parsing says that it is no YAML


_GUIDE_WORDS = (
    r"(?:guides?|guidelines?|instructions?|rules?|definitions?|prompts?|labels?"
    r"|wordings?|above|previous|everything|anything)"
)

_ORDER = re.compile(
    rf"\b(?:ignore|disregard|forget|override|overrule|bypass)\b[^.\n]{{0,60}}"
    rf"\b{_GUIDE_WORDS}\b"
    r"|\b(?:always|regardless|in (?:every|all) (?:case|report)s?|whatever|no matter)\b"
    r"[^.\n]{0,60}\b(?:answer|say|return|output|respond|report|label|write)\b"
    r"|\b(?:answer|say|return|output|respond|write)\b[^.\n]{0,40}"
    r"\b(?:always|regardless|in (?:every|all) (?:case|report)s?|whatever|no matter)\b"
    r"|\b(?:system prompt|as an ai|you are now|new instructions)\b"
    r"|(?:忽略|无视|不要理会).{0,12}(?:指南|指示|说明|规则|以上|之前)"
    r"|(?:总是|一律|始终).{0,6}(?:回答|输出)",
    re.IGNORECASE,
)
"""Orders that would undo a guide, as a report with an injected text may hold them."""


def _script(char: str) -> str:
    r"""Return the script of a letter by its Unicode name; empty for what is no letter.

    Examples
    --------
    >>> [_script(one) for one in ("a", "\u0430", "肺", "3")]
    ['LATIN', 'CYRILLIC', 'CJK', '']
    """
    if char.isascii():
        return "LATIN" if char.isalpha() else ""
    if not unicodedata.category(char).startswith("L"):
        return ""
    name = unicodedata.name(char, "UNNAMED").split()[0]
    return "CJK" if name in ("CJK", "KANGXI", "IDEOGRAPHIC") else name


def draft_proposal(
    workspace: WorkspacePaths,
    base: PromptVersion,
    wording: PromptVersion,
    cohort: str,
    by: Authorship,
    *,
    search: str = "",
) -> PromptVersion:
    """Return the draft that says what `wording` says, written, its origin an optimizer.

    An open draft with the same wording and parent is returned as it is.

    Parameters
    ----------
    base
        The version or draft that was searched from.
    by
        Who is answerable, when, and the reason, to which is added what is changed.
    search
        Key of the search that found the wording.

    Raises
    ------
    WriteError
        The workspace cannot be written.
    """
    parent = base.parent if base.draft else base.digest
    for draft in list_drafts(workspace, base.name):
        there = read_version(workspace, f"{base.name}@draft:{draft}")
        if (there.digest, there.parent) == (wording.digest, parent):
            return there
    names = diff_components(base, wording)
    changed = ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} guides"
    made = replace(
        build_draft(base, (), by).draft,
        guides=wording.guides,
        system=wording.system,
        why=f"{by.why}; changes {changed}",
    )
    about = DraftMetadata(
        cohort=cohort,
        origin=DraftOrigin.OPTIMIZER,
        begun_by=by.author,
        begun=made.time,
        search=search,
        wording=made.digest,
    )
    keep_injected(workspace, made)
    return write_draft(workspace, made, about)


def diff_components(before: PromptVersion, after: PromptVersion) -> Sequence[str]:
    """Return the names of the components by which two versions differ."""
    old, new = list_components(before), list_components(after)
    return [name for name in old if new.get(name) != old[name]]
