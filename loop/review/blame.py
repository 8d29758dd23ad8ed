"""Who each line of a prompt version came from: its version, its author, its verdicts.

A line is a row of a guide, a rule of reading, a setting or another line of the
instructions. It came with the version from which on every version has it. Where it
stands in its list does not matter, nor whether that list is the guide's or the
lexicon's; what was taken out and put back came with the version that put it back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Clarification, Exemplar, Guide
from loop.prompts.diff import guide_facts, show_clarification, show_exemplar
from loop.prompts.instructions import list_lines, rule_verdicts
from loop.prompts.version import PromptVersion
from loop.review.revise.draft import render_shown
from loop.review.status import judged_cohorts
from loop.review.submit import decode
from loop.review.verdict import GUIDE_LISTS, Verdict
from loop.run.store import Store

RULE = "general rule"
"""Kind of a line that is a rule of reading."""

_LISTS = {one.kind: one for one in GUIDE_LISTS}
_LOOKUP = 500
"""Ids in one SELECT."""


class PromptLine(NamedTuple):
    """One thing that a version says."""

    label: str
    """Label id; empty for instructions and settings."""

    kind: str
    """``term``, ``lexicon en term``, ``general rule``, ``system.jinja``, ``plan``..."""

    text: str

    @property
    def identity(self) -> tuple[str, str, str]:
        """What two versions have in common that say the same, wherever they say it."""
        return self.label, _list_kind(self.kind), self.text


def _list_kind(kind: str) -> str:
    """Return the kind of a row, in the guide or in a lexicon alike."""
    return kind.split(" ", 2)[2] if kind.startswith("lexicon ") else kind


class LineVerdict(NamedTuple):
    """A verdict that a version answers, as far as it concerns one line."""

    id: str
    reviewer: str
    """Empty where the verdict is not kept here."""

    when: str
    """UTC, ISO 8601; empty where it is not kept here."""

    asked: bool
    """Whether it asks for this line in these words; else it is about its label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOrigin:
    """Where one line of a version came from."""

    line: PromptLine
    version: PromptVersion
    """The one that it came with."""

    drafted_by: str
    """Who wrote the draft, where somebody else committed it; else empty."""

    verdicts: tuple[LineVerdict, ...]
    """Those that ask for the line; where none does, those about its label."""

    unknown: tuple[str, ...]
    """Ids of verdicts that its version answers and that are not kept here, where none
    of the kept ones is about the line: it may be from one of them."""


class _DatedVerdict(NamedTuple):
    """A verdict, and when it was given."""

    verdict: Verdict
    when: str


def read_blame(
    workspace: WorkspacePaths, chain: Sequence[PromptVersion], store: Store | None
) -> tuple[LineOrigin, ...]:
    """Return where each line of the first version of `chain` came from, in its order.

    Parameters
    ----------
    chain
        A version, the one it was revised from, and so on to the first.
    store
        Where verdicts are kept; None where there is none, as in a fresh clone.

    Raises
    ------
    LedgerError
        The ledger is broken.
    StoreError
        A verdict cannot be read.
    """
    since = find_origins([tuple(list_prompt_lines(one)) for one in chain])
    drafters = _find_drafters(workspace)
    wanted = {one for version in chain for one in version.verdicts}
    kept = _find_verdicts(store, wanted) if store else {}
    ruled = [rule_verdicts(version) for version in chain]
    return tuple(
        _origin(line, chain[number], ruled[number], kept, drafters)
        for line, number in since.items()
    )


def list_prompt_lines(version: PromptVersion) -> Iterator[PromptLine]:
    """Yield everything that `version` says, each line once: settings come first."""
    seen = set()
    for line in _every_line(version):
        if line not in seen:
            seen.add(line)
            yield line


def _every_line(version: PromptVersion) -> Iterator[PromptLine]:
    yield PromptLine("", "plan", version.plan.value)
    yield PromptLine("", "contract", version.contract)
    yield PromptLine("", "inputs", ", ".join(version.inputs))
    if version.reads:
        yield PromptLine("", "reads", version.read_words)
    if version.shots:
        yield PromptLine("", "shots", version.shot_words)
    for kind, text in list_lines(version):
        yield PromptLine("", kind, text)
    for guide in version.guides:
        for kind, text in guide_facts(guide):
            yield PromptLine(guide.label, kind, text)


def find_origins(chain: Sequence[Sequence[PromptLine]]) -> dict[PromptLine, int]:
    """Return each line of the first version to the place of the one it came with.

    Parameters
    ----------
    chain
        The lines of a version, of the one it was revised from, and so on.

    Examples
    --------
    >>> old, new = (PromptLine("mass", "term", one) for one in ("mass", "lump"))
    >>> list(find_origins([[new, old], [old], [old, new]]).values())
    [0, 2]
    """
    since = dict.fromkeys((line.identity for line in chain[0]), 0)
    alive = set(since)
    for number, lines in enumerate(chain[1:], 1):
        alive &= {line.identity for line in lines}
        since.update(dict.fromkeys(alive, number))
    return {line: since[line.identity] for line in chain[0]}


def _find_drafters(workspace: WorkspacePaths) -> dict[str, str]:
    """Return references of versions to who drafted them, where that is recorded."""
    found = {}
    for entry in read_ledger(workspace.ledger):
        if entry.action == "draft_committed":
            check = entry.payload.get("check")
            drafter = check.get("drafted_by") if isinstance(check, Mapping) else None
            found[entry.subject] = str(drafter or "")
    return found


def _find_verdicts(store: Store, ids: set[str]) -> dict[str, _DatedVerdict]:
    """Return the kept verdicts of any cohort with these ids; the oldest of each."""
    keys = sorted(f"{cohort}:{one}" for cohort in judged_cohorts(store) for one in ids)
    rows: list[tuple[str, str, str]] = []
    for start in range(0, len(keys), _LOOKUP):
        part = keys[start : start + _LOOKUP]
        marks = ",".join("?" * len(part))
        rows += store.read(
            f"SELECT created, id, payload FROM verdicts WHERE id IN ({marks})", part
        )
    found: dict[str, _DatedVerdict] = {}
    for created, key, payload in sorted(rows):
        found.setdefault(
            key.rpartition(":")[2], _DatedVerdict(decode(key, payload)[0], created)
        )
    return found


def _origin(
    line: PromptLine,
    version: PromptVersion,
    ruled: Mapping[str, str],
    kept: Mapping[str, _DatedVerdict],
    drafters: Mapping[str, str],
) -> LineOrigin:
    concerned = {
        one: _asks(kept[one].verdict, line)
        for one in version.verdicts
        if one in kept and _concerns(kept[one].verdict, line)
    }
    if line.kind == RULE and line.text in ruled:
        concerned = {ruled[line.text]: True}
    asked = [one for one, asks in concerned.items() if asks]
    chosen = asked or list(concerned)
    return LineOrigin(
        line=line,
        version=version,
        drafted_by=drafters.get(version.ref, ""),
        verdicts=tuple(_name(one, kept.get(one), concerned[one]) for one in chosen),
        unknown=()
        if chosen
        else tuple(one for one in version.verdicts if one not in kept),
    )


def _name(verdict: str, kept: _DatedVerdict | None, asked: bool) -> LineVerdict:
    if kept is None:
        return LineVerdict(verdict, "", "", asked)
    return LineVerdict(verdict, kept.verdict.reviewer, kept.when, asked)


def _concerns(verdict: Verdict, line: PromptLine) -> bool:
    """Whether a verdict changes the part of the prompt that a line is in."""
    if line.label:
        return verdict.label == line.label and verdict.edits.in_guide
    return line.kind == RULE and bool(verdict.edits.general_rules)


def _asks(verdict: Verdict, line: PromptLine) -> bool:
    """Whether a verdict asks for a line in the words of the line."""
    if line.kind == RULE:
        rules = verdict.edits.general_rules
        return line.text in {" ".join(rule.split()) for rule in rules}
    rows = _LISTS.get(_list_kind(line.kind))
    if rows is None:
        return False
    return line.text in map(rows.show, getattr(verdict.edits, rows.name))


class LineGroup(NamedTuple):
    """The lines of one label that came with one version, from the same verdicts."""

    origin: LineOrigin
    """Of the first of them."""

    lines: tuple[PromptLine, ...]

    @property
    def by_kind(self) -> dict[str, tuple[str, ...]]:
        """Texts of the lines by kind, in order."""
        found: dict[str, tuple[str, ...]] = {}
        for line in self.lines:
            found[line.kind] = (*found.get(line.kind, ()), line.text)
        return found


def group_origins(origins: Iterable[LineOrigin]) -> dict[str, tuple[LineGroup, ...]]:
    """Return label ids to their lines by origin, the newest version first.

    Settings and instructions come under the empty label.
    """
    found: dict[str, dict[object, list[LineOrigin]]] = {}
    for one in origins:
        origin = one.version.ref, one.verdicts, one.unknown
        found.setdefault(one.line.label, {}).setdefault(origin, []).append(one)
    return {
        label: tuple(
            LineGroup(same[0], tuple(one.line for one in same))
            for same in sorted(groups.values(), key=lambda same: origin_age(same[0]))
        )
        for label, groups in found.items()
    }


def origin_age(origin: LineOrigin) -> tuple[bool, int]:
    """Return what sorts drafts first, then the newest version."""
    return bool(origin.version.number), -origin.version.number


def name_origin(origin: LineOrigin) -> str:
    """Return where a line came from, in words: version, day, people and verdicts."""
    version = origin.version
    parts = [version.tag if version.number else "draft", version.time[:10]]
    if origin.drafted_by:
        drafted = f"drafted by {origin.drafted_by}"
        parts.append(f"{drafted}, committed by {version.author}")
    else:
        parts.append(version.author)
    for verdict in origin.verdicts:
        whose = f" of {verdict.reviewer}, {verdict.when[:10]}" if verdict.when else ""
        how = "asked for by" if verdict.asked else "with"
        parts.append(f"{how} verdict {verdict.id}{whose}")
    if origin.unknown:
        count = len(origin.unknown)
        some = f"one of {count} verdicts that are" if count > 1 else "a verdict that is"
        parts.append(f"perhaps from {some} not kept here")
    return "; ".join(parts)


_BEGIN, _NAMED, _END = "\uf8f0", "\uf8f1", "\uf8f2"
"""What encloses a row of a guide, and its number, while a prompt is rendered."""

_SIGN = re.compile(f"{_BEGIN}([0-9]+){_NAMED}|{_END}|\n")

LineSources = tuple[tuple[PromptLine, ...], ...]
"""Of each line of a message, what of the version it shows."""


def find_sources(version: PromptVersion) -> dict[str, tuple[LineSources, ...]]:
    """Return names of calls to what each line of each of its messages shows.

    The guides are rendered with a sign around every row. What a template makes of them
    otherwise, as one that counts their letters may, cannot be told, and is left out.

    Raises
    ------
    DataError
        The version cannot be rendered.
    """
    rows: list[PromptLine] = []
    signed = tuple(_signed(guide, rows) for guide in version.guides)
    plain = _render(version)
    found: dict[str, tuple[LineSources, ...]] = {}
    static = _find_static(version)
    for name, texts in _render(replace(version, guides=signed)).items():
        pieces = [_SIGN.sub(_keep_break, text) for text in texts]
        if pieces == plain.get(name):
            found[name] = tuple(_read_signs(text, rows, static) for text in texts)
    return found


def _keep_break(sign: re.Match[str]) -> str:
    return "\n" if sign[0] == "\n" else ""


def _render(version: PromptVersion) -> dict[str, list[str]]:
    """Return names of calls to their messages, with a placeholder for the case."""
    shown = render_shown(version)
    return {call.name: [one.content for one in call.messages] for call in shown.calls}


def _signed(guide: Guide, rows: list[PromptLine]) -> Guide:
    """Return a guide with a sign around each of its texts; add its rows to `rows`."""

    def sign(kind: str, row: str, *texts: str) -> list[str]:
        rows.append(PromptLine(guide.label, kind, row))
        begin = f"{_BEGIN}{len(rows) - 1}{_NAMED}"
        return [f"{begin}{text}{_END}" if text else text for text in texts]

    def each(kind: str, texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(sign(kind, text, text)[0] for text in texts)

    def clarify(rule: Clarification) -> Clarification:
        row = show_clarification(rule)
        phrase, note = sign("clarification", row, rule.phrase, rule.note)
        return replace(rule, phrase=phrase, note=note)

    def exemplify(one: Exemplar) -> Exemplar:
        texts = (one.text, one.evidence, one.why)
        text, evidence, why = sign("exemplar", show_exemplar(one), *texts)
        return replace(one, text=text, evidence=evidence, why=why)

    return replace(
        guide,
        name=sign("name", guide.name, guide.name)[0],
        definition=sign("definition", guide.definition, guide.definition)[0],
        counts=each("counts", guide.counts),
        does_not_count=each("does not count", guide.does_not_count),
        uncertain_when=each("uncertain when", guide.uncertain_when),
        terms=each("term", guide.terms),
        exclusions=each("exclusion", guide.exclusions),
        clarifications=tuple(map(clarify, guide.clarifications)),
        exemplars=tuple(map(exemplify, guide.exemplars)),
        implies=each("implies", guide.implies),
    )


def _find_static(version: PromptVersion) -> Callable[[str], tuple[PromptLine, ...]]:
    """Return what finds the line of the instructions that a rendered line is."""
    lines = [PromptLine("", *one) for one in list_lines(version)]
    whole = {line.text: line for line in reversed(lines)}
    rules = [line for line in lines if line.kind == RULE]

    def find(text: str) -> tuple[PromptLine, ...]:
        bare = text.rstrip()
        said = bare.removeprefix("- ").strip()
        if not said:
            return ()
        if bare in whole:
            return (whole[bare],)
        return tuple(rule for rule in rules if said in rule.text)[:1]

    return find


def _read_signs(
    text: str,
    rows: Sequence[PromptLine],
    static: Callable[[str], tuple[PromptLine, ...]],
) -> LineSources:
    """Return what each line of a signed message shows."""
    found: list[dict[PromptLine, None]] = [{}]
    within: list[PromptLine] = []
    for sign in _SIGN.finditer(text):
        if sign[1]:
            within.append(rows[int(sign[1])])
            found[-1][within[-1]] = None
        elif sign[0] == "\n":
            found.append(dict.fromkeys(within))
        elif within:
            within.pop()
    lines = text.split("\n")
    return tuple(
        tuple(shown) or static(line) for shown, line in zip(found, lines, strict=True)
    )
