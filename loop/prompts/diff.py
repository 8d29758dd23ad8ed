"""What changed between two prompt versions: guides by label, templates by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from typing import NamedTuple

from loop.core.records import Clarification, Exemplar, Guide, Lexicon
from loop.prompts.instructions import read_rules
from loop.prompts.version import PromptVersion

_ADDED, _REMOVED = "+", "-"

COUNTED = (
    *("term", "exclusion", "clarification", "exemplar"),
    *("general rule", "instruction line"),
)
"""Kinds of which `VersionDiff.counts` may name several."""


class PromptChange(NamedTuple):
    """One thing that is in only one of the two versions."""

    sign: str
    """``"+"`` in the later version only, ``"-"`` in the earlier only."""

    kind: str
    """``term``, ``exclusion``, ``clarification``, ``exemplar``, ``implies``, ..."""

    text: str


class GuideDiff(NamedTuple):
    """Changes of one label's guide."""

    label: str
    changes: tuple[PromptChange, ...]


class TemplateDiff(NamedTuple):
    """Changes of one template."""

    file: str
    lines: tuple[str, ...]
    """Unified diff without its file header."""


class VersionDiff(NamedTuple):
    """Everything that differs between two versions and changes behaviour."""

    before: str
    after: str
    settings: tuple[PromptChange, ...]
    rules: tuple[PromptChange, ...]
    """General rules; their lines are among those of `templates`, too."""

    guides: tuple[GuideDiff, ...]
    templates: tuple[TemplateDiff, ...]

    @property
    def empty(self) -> bool:
        """Whether the two are the same prompt, apart from the order of guides."""
        return not (self.settings or self.guides or self.templates)

    def counts(self) -> dict[str, int]:
        """Return how many changes there are by sign and kind, ``{"+term": 12}``.

        Settings are not among them. The lines of templates count as changes of kind
        ``"instruction line"``.
        """
        keys = [sign + kind for guide in self.guides for sign, kind, _ in guide.changes]
        keys += [sign + kind for sign, kind, _ in self.rules]
        keys += [
            f"{line[0]}instruction line"
            for template in self.templates
            for line in template.lines
            if line[:1] in (_ADDED, _REMOVED)
        ]
        return dict(Counter(keys))


def diff_versions(before: PromptVersion, after: PromptVersion) -> VersionDiff:
    """Return what `after` adds to and removes from `before`."""
    labels = dict.fromkeys((*before.labels, *after.labels))
    guides = (
        GuideDiff(label, tuple(_guide_changes(before.guide(label), after.guide(label))))
        for label in labels
    )
    return VersionDiff(
        before=before.ref,
        after=after.ref,
        settings=tuple(_setting_changes(before, after)),
        rules=tuple(_rule_changes(before, after)),
        guides=tuple(guide for guide in guides if guide.changes),
        templates=tuple(_template_diffs(before, after)),
    )


def _setting_changes(
    before: PromptVersion, after: PromptVersion
) -> Iterator[PromptChange]:
    rows = (
        ("plan", before.plan.value, after.plan.value),
        ("contract", before.contract, after.contract),
        ("inputs", ", ".join(before.inputs), ", ".join(after.inputs)),
        ("reads", before.read_words, after.read_words),
        ("shots", before.shot_words or "none", after.shot_words or "none"),
        ("order", ", ".join(before.labels), ", ".join(after.labels)),
    )
    for kind, old, new in rows:
        same_labels = kind != "order" or set(before.labels) == set(after.labels)
        if old != new and same_labels:
            yield PromptChange(_REMOVED, kind, old)
            yield PromptChange(_ADDED, kind, new)


def _rule_changes(
    before: PromptVersion, after: PromptVersion
) -> Iterator[PromptChange]:
    old, new = read_rules(before), read_rules(after)
    for sign, rules, others in ((_REMOVED, old, new), (_ADDED, new, old)):
        for rule in rules:
            if rule not in others:
                yield PromptChange(sign, "general rule", rule)


def _guide_changes(before: Guide | None, after: Guide | None) -> Iterator[PromptChange]:
    old, new = list(guide_facts(before)), list(guide_facts(after))
    gone, come = set(old) - set(new), set(new) - set(old)
    for kind, text in old:
        if (kind, text) in gone:
            yield PromptChange(_REMOVED, kind, text)
    for kind, text in new:
        if (kind, text) in come:
            yield PromptChange(_ADDED, kind, text)
    if not gone and not come and old != new:
        yield PromptChange(_ADDED, "order", "same content in another order")


def guide_facts(guide: Guide | None) -> Iterator[tuple[str, str]]:
    """Yield everything a guide says as (kind, text), in reading order."""
    if guide is None:
        return
    yield "name", guide.name
    yield "definition", guide.definition
    yield from _each("counts", guide.counts)
    yield from _each("does not count", guide.does_not_count)
    yield from _each("uncertain when", guide.uncertain_when)
    yield from _wordings(guide)
    yield from _each("exemplar", map(show_exemplar, guide.exemplars))
    yield from _each("implies", guide.implies)
    for lexicon in guide.lexicon:
        for kind, text in _wordings(lexicon):
            yield f"lexicon {lexicon.language} {kind}", text


def _wordings(of: Guide | Lexicon) -> Iterator[tuple[str, str]]:
    yield from _each("term", of.terms)
    yield from _each("exclusion", of.exclusions)
    yield from _each("clarification", map(show_clarification, of.clarifications))


def _each(kind: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((kind, text) for text in texts)


def show_clarification(rule: Clarification) -> str:
    """Return a clarification as one line."""
    return f"{rule.phrase} -> {rule.value}" + (f" ({rule.note})" if rule.note else "")


def show_exemplar(example: Exemplar) -> str:
    """Return an exemplar as one line."""
    why = f"; {example.why}" if example.why else ""
    return f'"{example.text}" -> {example.value} by "{example.evidence}"{why}'


def _template_diffs(
    before: PromptVersion, after: PromptVersion
) -> Iterator[TemplateDiff]:
    pairs = (
        ("system.jinja", before.system, after.system),
        ("user.jinja", before.user, after.user),
    )
    for file, old, new in pairs:
        if old != new:
            lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
            shown = list(lines)[2:] or ["line ends differ"]
            yield TemplateDiff(file, tuple(shown))


def format_diff(diff: VersionDiff) -> list[str]:
    """Return the diff as plain lines for a terminal."""
    if diff.empty:
        return [f"{diff.before} and {diff.after} are the same prompt"]
    lines = [f"{diff.before} -> {diff.after}"]
    changes = (*diff.settings, *diff.rules)
    lines += [f"{sign} {kind}: {text}" for sign, kind, text in changes]
    for guide in diff.guides:
        lines += ["", guide.label]
        lines += [f"  {sign} {kind}: {text}" for sign, kind, text in guide.changes]
    for template in diff.templates:
        lines += ["", template.file]
        lines += [f"  {line}" for line in template.lines]
    return lines


def diff_data(diff: VersionDiff) -> dict[str, object]:
    """Return the diff as JSON data."""
    return {
        "before": diff.before,
        "after": diff.after,
        "same": diff.empty,
        "settings": [change._asdict() for change in diff.settings],
        "rules": [change._asdict() for change in diff.rules],
        "guides": {
            guide.label: [change._asdict() for change in guide.changes]
            for guide in diff.guides
        },
        "templates": {one.file: list(one.lines) for one in diff.templates},
    }
