"""The general instructions of a version: what its templates say around the guides.

They are both templates, written as one text. Rules of reading, which hold for every
label, are a list in them::

    Rules of reading:
    - "No" and "without" reach every finding of their list.
    - "Resolved" and "removed": absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any, NamedTuple

from jinja2 import TemplateError

from loop.core.errors import DataError
from loop.prompts.guides import dump_guides
from loop.prompts.lint import fold_phrase
from loop.prompts.render import environment, plan_prompts
from loop.prompts.version import (
    PromptVersion,
    frozen_blocks,
    replace_blocks,
    with_masked_shots,
)

SYSTEM, USER = "[system.jinja]", "[user.jinja]"
"""The line above each template."""

_TEMPLATES = {"system": "system.jinja", "user": "user.jinja"}


def instructions_text(version: PromptVersion, *, folded: bool = False) -> str:
    """Return both templates of `version` as one text, each below a line of its name.

    Parameters
    ----------
    folded
        Whether frozen blocks are left empty, to be filled again by `edit_instructions`.

    Raises
    ------
    DataError
        With `folded`: a frozen block is malformed.
    """
    system, user = version.system, version.user
    if folded:
        system, user = (replace_blocks(one, _nothing) for one in (system, user))
    if not system.endswith("\n"):
        system += "\n"
    return f"{SYSTEM}\n{system}{USER}\n{user}"


def version_facts(version: PromptVersion) -> dict[str, Any]:
    """Return what is recorded of a version, without what it says."""
    facts = {
        "prompt": version.ref,
        "digest": version.digest,
        "parent": version.parent or "none",
        "author": version.author,
        "time": version.time,
        "why": version.why,
        "plan": version.plan.value,
        "contract": version.contract,
    }
    if version.reads:
        facts["reads"] = version.read_words
    if version.shots:
        facts["shots"] = version.shots.words
    return facts


def version_text(version: PromptVersion) -> str:
    """Return what is recorded of a version, its instructions and its guides as text."""
    facts = "\n".join(f"{name:9} {one}" for name, one in version_facts(version).items())
    guides = f"[guides.yaml]\n{dump_guides(version.guides)}"
    parts = (facts, instructions_text(version), guides)
    return "\n\n".join(part.rstrip("\n") for part in parts)


def _nothing(_name: str, _text: str) -> str:
    """Return what stands in an empty frozen block: the end of its first line."""
    return "\n"


LONGEST = 50_000
"""Characters of instructions that can be edited; a whole prompt needs a quarter."""


def parse_instructions(text: str) -> tuple[str, str]:
    """Return the system and the user template that a text holds.

    Raises
    ------
    DataError
        One of the two lines with their names is missing or there twice.
    """
    lines = text.replace("\r\n", "\n").splitlines(keepends=True)
    marks = [one for one in lines if one.rstrip() in (SYSTEM, USER)]
    if [one.rstrip() for one in marks] != [SYSTEM, USER] or lines[0] is not marks[0]:
        raise DataError(
            f"the instructions hold both templates: a line {SYSTEM} first, then the "
            f"system message, a line {USER}, then the user message. Begin with what "
            "`ranloop draft show DRAFT --instructions` prints."
        )
    cut = next(n for n, one in enumerate(lines) if one is marks[1])
    return "".join(lines[1:cut]), "".join(lines[cut + 1 :])


def edit_instructions(version: PromptVersion, text: str) -> PromptVersion:
    """Return `version` with the templates that `text` holds.

    A frozen block that is empty in `text` keeps what it holds in `version`.

    Raises
    ------
    DataError
        `text` is longer than `LONGEST`, does not hold both templates, or one of them
        is no template; names the line of `text`, counted from 1.
    """
    if len(text) > LONGEST:
        raise DataError(
            f"the instructions have {len(text):,} characters, at most {LONGEST:,} can "
            "be edited. Shorten them: every case is asked with all of them."
        )
    system, user = parse_instructions(text)
    if system == f"{version.system}\n":  # the text of a last line without an end
        system = version.system
    above = {"system": 1, "user": system.count("\n") + 2}
    edited: dict[str, Any] = {"system": system, "user": user}
    for name, template in edited.items():
        _require_template("\n" * above[name] + template)
        known = _readable_blocks(getattr(version, name))

        def keep(block: str, now: str, known: Mapping[str, str] = known) -> str:
            return now if now.strip() else known.get(block, now)

        edited[name] = replace_blocks(template, keep)
    return replace(version, **edited)


def _readable_blocks(template: str) -> Mapping[str, str]:
    """Return the frozen blocks of a template; none where a mark is broken."""
    try:
        return frozen_blocks(template)
    except DataError:
        return {}


def _require_template(source: str) -> None:
    """Refuse what cannot be read as a template; the source is padded to its lines."""
    try:
        environment().parse(source)
    except TemplateError as error:
        line = getattr(error, "lineno", "?")
        raise DataError(
            f"the instructions, line {line}: {error}. Correct the template."
        ) from error
    try:
        frozen_blocks(source)
    except DataError as error:
        raise DataError(
            f"the instructions, {error}. Put the marks back as they were."
        ) from error


class FrozenBlock(NamedTuple):
    """A part of a template that nobody edits by hand."""

    file: str
    name: str
    text: str


def list_frozen(version: PromptVersion) -> tuple[FrozenBlock, ...]:
    """Return the frozen blocks of both templates, in order.

    Raises
    ------
    DataError
        A block is malformed.
    """
    return tuple(
        FrozenBlock(file, block, text.strip("\n"))
        for name, file in _TEMPLATES.items()
        for block, text in frozen_blocks(getattr(version, name)).items()
    )


_HEADING = re.compile(r"[#*\s]*rules of reading[*:\s]*", re.IGNORECASE)

_ITEM = re.compile(r"[-*] +(?=\S)")

_REASON = re.compile(r"\{# verdict ([\w-]+) #\}")
"""A line above a rule: the verdict that asked for it. It renders to nothing."""

_WIDTH = 88

_BRACE = "{{'{'}}"
"""Template source of a brace that begins no template code."""


class _Rules(NamedTuple):
    """The list of the rules of reading."""

    name: str
    """Field of the version that holds it: ``"system"`` or ``"user"``."""

    start: int
    """Index of the line after the heading."""

    end: int
    """Index of the line after the last rule."""

    texts: tuple[str, ...]
    """Source of each rule, as one line."""


def _find_rules(version: PromptVersion) -> _Rules | None:
    """Return the first list of rules outside frozen blocks; None if there is none."""
    for name in _TEMPLATES:
        try:
            # Without a word and with as many lines.
            shown = replace_blocks(
                getattr(version, name), lambda _, text: "\n" * text.count("\n")
            )
        except DataError:
            continue
        lines = shown.split("\n")
        for number, line in enumerate(lines, 1):
            if _HEADING.fullmatch(line):
                end, texts = _read_list(lines, number)
                return _Rules(name, number, end, tuple(texts))
    return None


def _read_list(lines: Sequence[str], start: int) -> tuple[int, list[str]]:
    """Return the index after a list, and its items, each as one line."""
    end, items = start, list[str]()
    for number, line in enumerate(lines[start:], start + 1):
        if _ITEM.match(line):
            items.append(_ITEM.sub("", line, count=1).strip())
        elif items and line.startswith("  ") and line.strip():
            items[-1] += f" {line.strip()}"
        elif _REASON.fullmatch(line) or not (items or line.strip()):
            continue
        else:
            break
        end = number
    return end, items


def read_rules(version: PromptVersion) -> tuple[str, ...]:
    """Return the rules of reading in the instructions, each as one line.

    Empty where the instructions have no such list. Template code in a rule is given
    as it is written there.
    """
    found = _find_rules(version)
    return tuple(map(_unescaped, found.texts)) if found else ()


def rule_verdicts(version: PromptVersion) -> dict[str, str]:
    """Return each rule of reading that a verdict asked for to the id of that verdict.

    It stands in the comment above the rule, which `add_rules` writes.
    """
    found = _find_rules(version)
    if found is None:
        return {}
    lines = getattr(version, found.name).split("\n")
    named: dict[str, str] = {}
    for number in range(found.start, found.end):
        reason = _REASON.fullmatch(lines[number])
        _, texts = _read_list(lines[: found.end], number + 1) if reason else (0, [])
        if reason and texts:
            named[_unescaped(texts[0])] = reason[1]
    return named


def list_lines(version: PromptVersion) -> Iterator[tuple[str, str]]:
    """Yield what the instructions say, as (kind, text), in order.

    The kind is ``"general rule"``, or else the template's file; empty lines are left
    out, and so are the comments above rules.
    """
    found = _find_rules(version)
    for name, file in _TEMPLATES.items():
        for number, line in enumerate(getattr(version, name).split("\n")):
            if found and name == found.name and found.start <= number < found.end:
                continue
            if line.strip():
                yield file, line.rstrip()
            if found and name == found.name and number == found.start - 1:
                yield from (("general rule", rule) for rule in read_rules(version))


def without_rules(version: PromptVersion) -> PromptVersion:
    """Return `version` without the items of its rules of reading."""
    found = _find_rules(version)
    if found is None:
        return version
    lines = getattr(version, found.name).split("\n")
    del lines[found.start : found.end]
    changes: dict[str, Any] = {found.name: "\n".join(lines)}
    return replace(version, **changes)


def _with_heading(version: PromptVersion) -> PromptVersion:
    """Return `version` with an empty list of rules at the end of its system message."""
    said = version.system.rstrip("\n")
    gap = "\n\n" if said else ""
    return replace(version, system=f"{said}{gap}Rules of reading:\n")


class RulesAdded(NamedTuple):
    """A version with general rules, and those that it had already."""

    version: PromptVersion
    known: tuple[str, ...]


def add_rules(version: PromptVersion, rules: Mapping[str, str]) -> RulesAdded:
    """Return `version` with general rules at the end of its rules of reading.

    Instructions without such a list get one at the end of the system message, which
    every call begins with.

    Parameters
    ----------
    rules
        Each rule to the id of the verdict that asks for it, which stands above the
        rule in a comment that no model is shown. A rule is text: what looks like
        template code in it is shown to a model as it stands. Line breaks become
        spaces.

    Raises
    ------
    DataError
        What stands in its rules of reading does not reach a model exactly once.
    """
    known = []
    for text, verdict in rules.items():
        found = _find_rules(version)
        if found is None:
            version = _with_heading(version)
            found = _find_rules(version)
        if found is None:
            raise DataError(
                f"{version.ref}: its frozen blocks are malformed, so that its general "
                "instructions have no place for a rule. Correct the templates."
            )
        rule = " ".join(text.split())
        if fold_phrase(rule) in {fold_phrase(one) for one in read_rules(version)}:
            known.append(rule)
            continue
        item = fill(
            _escaped(rule),
            _WIDTH,
            initial_indent="- ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines = getattr(version, found.name).split("\n")
        lines[found.end : found.end] = [f"{{# verdict {verdict} #}}", item]
        changes: dict[str, Any] = {found.name: "\n".join(lines)}
        longer = replace(version, **changes)
        _require_shown(version, longer, rule)
        version = longer
    return RulesAdded(version, tuple(known))


def _require_shown(before: PromptVersion, after: PromptVersion, rule: str) -> None:
    """Refuse a place from which a rule does not reach a model, or more than once."""
    try:
        old, new = _rendered(before), _rendered(after)
    except DataError:
        return  # lint says why it cannot be rendered
    item = f"- {rule}"
    parts = new.split(item)
    without = (
        f"{item.join(parts[:cut])} {item.join(parts[cut:])}"
        for cut in range(1, len(parts))
    )
    if not any(one.split() == old.split() for one in without):
        raise DataError(
            f"{before.ref}: what stands below its line `Rules of reading:` does not "
            "reach a model exactly once. Move that list out of comments, conditions "
            "and loops of the general instructions."
        )


def _rendered(version: PromptVersion) -> str:
    """Return all that the first call says before and after the case, as one line."""
    call = plan_prompts(with_masked_shots(version), lambda fields: {}).calls[0]
    said = [one.content for one in call.frame.messages]
    return " ".join(" ".join((*said, *(text for _, text in call.pieces))).split())


def _escaped(text: str) -> str:
    """Return `text` as template source that renders to it."""
    return re.sub(r"\{(?=[{%#])", _BRACE, text)


def _unescaped(source: str) -> str:
    return source.replace(_BRACE, "{")
