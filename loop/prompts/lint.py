"""What is wrong, or likely wrong, with a prompt version before it is ever run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from jinja2 import TemplateError, meta

from loop.core.check_findings import Finding, FindingSeverity, broken, warning
from loop.core.errors import DataError
from loop.core.numbered_phrases import SIDES
from loop.core.records import ErrorWeight, Guide, GuideValue, Lexicon, PromptTask, Value
from loop.prompts.outputs.base import CONTRACTS
from loop.prompts.outputs.binary import BinaryValues
from loop.prompts.outputs.entailment import Entailment
from loop.prompts.render import environment, plan_prompts
from loop.prompts.version import (
    CallPlan,
    PromptVersion,
    frozen_blocks,
    with_masked_shots,
)

MAX_SUFFIX = 200
"""Characters of static text allowed after the case: more would defeat the cache."""

LONG_BYTES = 12_000
"""Bytes of one call for up to 20 labels from which a warning says that it is long."""

LABEL_BYTES = 600
"""Bytes that each label beyond 20 may take."""

MOST_WORDINGS = 12
"""Wordings of one label that a model is shown at most: more are for a lexicon."""

CHARS_PER_TOKEN = 4
"""Rule of thumb for English; real counts depend on the model's tokenizer."""

_VARIABLES = frozenset({"guides", "fields", "name", "shots"})


LEVELS = {FindingSeverity.BROKEN: "error", FindingSeverity.WARNING: "warning"}
"""Severity of what lint found to its word: a version with an error is not committed."""


class LabelMeaning(Protocol):
    """What a label means wherever it is asked for: a label of the taxonomy."""

    @property
    def definition(self) -> str:
        """What the label means, in a sentence or two."""

    @property
    def counts(self) -> tuple[str, ...]:
        """What counts, in a few words each."""

    @property
    def does_not_count(self) -> tuple[str, ...]:
        """What looks like the finding and does not count."""

    @property
    def uncertain_when(self) -> tuple[str, ...]:
        """What leaves the label uncertain."""


def lint_version(
    version: PromptVersion,
    *,
    labels: Collection[str],
    source: str = "label of labels/taxonomy.yaml",
    meanings: Mapping[str, LabelMeaning] | None = None,
    reading: Sequence[str] = (),
    parent: PromptVersion | None = None,
) -> list[Finding]:
    """Return the findings on `version`, errors first; empty when it is clean.

    Parameters
    ----------
    labels
        Label ids that may be asked for; of a judge, categories of errors.
    source
        What these are, and of which file, in words.
    meanings
        Label id to what the taxonomy says of it: guides are held against it, and
        what a language model is shown of them is looked at as well.
    reading
        With `meanings`: the taxonomy's rules of reading, which the prompt should hold.
    parent
        Version it was revised from: its frozen blocks must be unchanged.
    """
    findings = [
        *_lint_variables(version),
        *_lint_inputs(version),
        *_lint_rendering(version),
        *_lint_frozen(version, parent),
        *_lint_answer(version),
        *_lint_values(version),
        *_lint_labels(version, labels, source),
        *(found for guide in version.guides for found in lint_guide(guide)),
        *_lint_shared_terms(version.guides),
    ]
    if meanings is not None:
        findings += _lint_shown(version)
        if _extracts(version):
            findings += _lint_exemplars(version.guides)
        findings += _lint_reading(version, reading)
        findings += _lint_definitions(version.guides, meanings)
        for guide in version.guides:
            if guide.label in meanings:
                findings += _lint_meaning(guide, meanings[guide.label])
    return sorted(findings, key=lambda found: found.holds)


def has_errors(findings: Iterable[Finding]) -> bool:
    """Return whether lint found an error."""
    return not all(found.holds for found in findings)


def lint_data(findings: Iterable[Finding]) -> list[dict[str, str]]:
    """Return what lint found as JSON data."""
    return [
        {"level": LEVELS[one.severity], "where": one.where, "message": one.what}
        for one in findings
    ]


def _error(where: str, message: str) -> Finding:
    return broken("lint", message, where=where)


def _warning(where: str, message: str) -> Finding:
    return warning("lint", message, where=where)


def _judges(version: PromptVersion) -> bool:
    contract = CONTRACTS.get(version.contract)
    return contract is not None and contract.task is PromptTask.JUDGE


def _extracts(version: PromptVersion) -> bool:
    contract = CONTRACTS.get(version.contract)
    return contract is None or contract.task is PromptTask.EXTRACT


def _lint_variables(version: PromptVersion) -> Iterator[Finding]:
    """Undefined and unused template variables, case text in the system message."""
    used: set[str] = set()
    for file, source in _templates(version):
        try:
            names = meta.find_undeclared_variables(environment().parse(source))
        except TemplateError:
            return  # the rendering check says what is wrong and where
        used |= names
        known = _VARIABLES | (set(version.inputs) if file == "user.jinja" else set())
        for name in sorted(names - known):
            yield _error(
                file, f"variable {name!r} is undefined; use {', '.join(sorted(known))}"
            )
    for name in sorted({"guides", *version.inputs} - used):
        yield _error("templates", f"variable {name!r} is never used")


def _lint_inputs(version: PromptVersion) -> Iterator[Finding]:
    """Find texts of the contract that the prompt does not show, and calls too many."""
    contract = CONTRACTS.get(version.contract)
    by_side = isinstance(contract, Entailment)
    plan = CallPlan.PER_LABEL if by_side else CallPlan.JOINT
    if not _extracts(version) and version.plan is not plan:
        calls = "a call for each guide" if by_side else "one call"
        yield _error(
            "prompt.yaml",
            f"the contract {version.contract} is answered in {calls}, and the call "
            f"plan is {version.plan}: set it to {plan}",
        )
    if by_side and set(version.labels) != set(SIDES):
        yield _error(
            "guides.yaml",
            f"the contract {version.contract} asks for {' and '.join(SIDES)}, and the "
            "guides are for something else: have one for each of the two",
        )
    missing = set(contract.inputs) - set(version.inputs) if contract else ()
    for name in sorted(missing):
        yield _error(
            "prompt.yaml",
            f"the contract {version.contract} is about {name!r}, which is none of the "
            f"inputs ({', '.join(version.inputs)}): add it there and to user.jinja, or "
            "choose another contract",
        )


def _templates(version: PromptVersion) -> tuple[tuple[str, str], ...]:
    return (("system.jinja", version.system), ("user.jinja", version.user))


def _lint_rendering(version: PromptVersion) -> Iterator[Finding]:
    """Whether it renders at all, how long it is, and whether the case comes last."""
    try:
        plan = plan_prompts(with_masked_shots(version), lambda fields: {})
    except DataError as error:
        yield _error("templates", str(error))
        return
    if plan.suffix_length > MAX_SUFFIX:
        yield _error(
            "user.jinja",
            f"{plan.suffix_length} characters follow the case text (at most "
            f"{MAX_SUFFIX}): move them before it, so that servers can reuse the prefix",
        )
    size = max(
        sum(len(one.content.encode()) for one in call.frame.messages)
        for call in plan.calls
    )
    allowed = LONG_BYTES + LABEL_BYTES * max(len(version.guides) - 20, 0)
    if size > allowed:
        yield _warning(
            "templates",
            f"one call has {size:,} bytes before the case text (at most {allowed:,}), "
            f"roughly {size // CHARS_PER_TOKEN:,} tokens: put wordings that only "
            "`rules` needs into the lexicon",
        )


def _lint_frozen(
    version: PromptVersion, parent: PromptVersion | None
) -> Iterator[Finding]:
    """Frozen blocks that are malformed, or changed against the parent."""
    before = dict(_templates(parent)) if parent else {}
    for file, source in _templates(version):
        try:
            now, then = frozen_blocks(source), frozen_blocks(before.get(file, ""))
        except DataError as error:
            yield _error(file, str(error))
            continue
        for name in sorted(then):
            if now.get(name) != then[name]:
                what = "was changed" if name in now else "was removed"
                yield _error(
                    file, f"frozen block {name!r} {what}; restore it from the parent"
                )


def _lint_answer(version: PromptVersion) -> Iterator[Finding]:
    """Find a block that asks for the answer of another contract than is read."""
    asked = {
        name: contract.instruction.strip()
        for name, contract in CONTRACTS.items()
        if name != version.contract
    }
    for file, source in _templates(version):
        try:
            block = frozen_blocks(source).get("answer", "").strip()
        except DataError:
            continue  # the check of frozen blocks says what is wrong
        for name, instruction in asked.items():
            if block == instruction:
                yield _error(
                    file,
                    f"frozen block 'answer' asks for the contract {name}, and "
                    f"prompt.yaml names {version.contract}",
                )


def _lint_values(version: PromptVersion) -> Iterator[Finding]:
    """Count wordings with a value that the task or the contract does not offer."""
    values = [
        *(one.value for guide in version.guides for one in guide.clarifications),
        *(one.value for guide in version.guides for one in guide.exemplars),
    ]
    wanted: type[GuideValue] = ErrorWeight if _judges(version) else Value
    strange = sorted({one for one in values if not isinstance(one, wanted)})
    if strange:
        yield _error(
            "guides",
            f"rules or exemplars say {', '.join(strange)}; this prompt's words are "
            f"{', '.join(wanted)}",
        )
    if _judges(version):
        yield from _lint_rulings(version)
    if version.contract != BinaryValues.name:
        return
    unsure = values.count(Value.UNCERTAIN)
    if unsure:
        yield _warning(
            "guides",
            f"{unsure} rules and exemplars say uncertain, which the contract "
            f"{version.contract} does not offer: `rules` reads them as absent, and a "
            "model is shown a value that it cannot give",
        )


def _lint_rulings(version: PromptVersion) -> Iterator[Finding]:
    """Phrases of a judge's clarifications by which nothing can be found."""
    for guide in version.guides:
        for one in guide.clarifications:
            if not any(sign.isalnum() for sign in one.phrase):
                yield _error(guide.label, "a clarification's phrase has no word in it")
            elif "*" in one.phrase:
                yield _error(
                    guide.label,
                    "a clarification's phrase has a *, which stands for nothing in the "
                    "guide of a judge: write the words as they are",
                )


def _lint_labels(
    version: PromptVersion, labels: Collection[str], source: str
) -> Iterator[Finding]:
    """Labels the taxonomy does not have, as guides or as implications."""
    for guide in version.guides:
        where = f"guide {guide.label}"
        if guide.label not in labels:
            yield _error(where, f"is no {source} that can be asked for")
        for implied in guide.implies:
            if implied not in labels:
                yield _error(where, f"implies the unknown label {implied!r}")
            if implied == guide.label:
                yield _error(where, "implies itself")


def lint_guide(guide: Guide) -> Iterator[Finding]:
    """Yield what is contradictory or repeated inside one guide."""
    where = f"guide {guide.label}"
    every = guide.parts
    terms = _folded(term for one in every for term in one.terms)
    exclusions = _folded(phrase for one in every for phrase in one.exclusions)
    for both in sorted(set(terms) & set(exclusions)):
        yield _error(where, f"{both!r} is both a term and an exclusion; keep one")
    for phrase in _repeated(terms):
        yield _warning(where, f"term {phrase!r} appears twice")
    for phrase in _repeated(exclusions):
        yield _warning(where, f"exclusion {phrase!r} appears twice")
    yield from _lint_stars(guide)
    rules: dict[str, str] = {}
    for rule in (rule for one in every for rule in one.clarifications):
        phrase = fold_phrase(rule.phrase)
        if rules.setdefault(phrase, rule.value) != rule.value:
            yield _error(where, f"{phrase!r} is clarified with two different values")
        if phrase in exclusions and rule.value == "present":
            yield _error(where, f"{phrase!r} is excluded and clarified as present")
    for number, example in enumerate(guide.exemplars, 1):
        if example.evidence.casefold() not in example.text.casefold():
            yield _error(where, f"exemplar {number}: its evidence is not in its text")
    yield from _lint_notes(guide)


def _lint_notes(guide: Guide) -> Iterator[Finding]:
    """Yield reasons that speak of one wording and are given for another, too."""
    phrases: dict[str, list[str]] = {}
    for rule in guide.clarifications:
        if rule.note:
            phrases.setdefault(rule.note, []).append(rule.phrase)
    for note, given in phrases.items():
        said = _stems(note)
        foreign = [phrase for phrase in given if not _stems(phrase) & said]
        if 0 < len(foreign) < len(given):
            names = ", ".join(repr(one) for one in foreign)
            yield _warning(
                f"guide {guide.label}",
                f"the note {note!r} is given for {names}, which it does not speak of",
            )


def _stems(words: str) -> set[str]:
    """Return the first five letters of the words that carry meaning."""
    return {word[:5] for word in re.findall(r"[^\W\d_]{4,}", words.casefold())}


def _lint_stars(guide: Guide) -> Iterator[Finding]:
    """Yield wordings with a ``*`` where no engine reads it as "any ending"."""
    for phrase in (phrase for one in guide.parts for phrase in _all(one)):
        parts = [part.strip() for part in _dots(phrase).split("...")]
        if any("*" in part[:-1] or part == "*" for part in parts):
            yield _error(
                f"guide {guide.label}",
                f"{phrase!r}: * stands only after the last word, or after the last "
                "word before ...; elsewhere the wording never matches",
            )


def _all(of: Guide | Lexicon) -> tuple[str, ...]:
    rules = (rule.phrase for rule in of.clarifications)
    return (*of.terms, *of.exclusions, *rules)


def _lint_shown(version: PromptVersion) -> Iterator[Finding]:
    """Yield guides that show a model what only `rules` has a use for."""
    many, spelled = [], []
    for guide in version.guides:
        if len(guide.terms) > MOST_WORDINGS:
            many.append(f"{guide.label} ({len(guide.terms)})")
        shown = _all(guide)
        if not all(is_shown(wording, guide) for wording in shown):
            spelled.append(guide.label)
    if many:
        yield _warning(
            "guides",
            f"a language model is shown more than {MOST_WORDINGS} wordings of "
            f"{', '.join(many)}: move the others to the lexicon, which `rules` reads",
        )
    if spelled:
        yield _warning(
            "guides",
            "a language model is shown wordings with * or ..., or of another script, "
            f"in {', '.join(spelled)}: move them to the lexicon, which `rules` reads",
        )


def _lint_exemplars(guides: Iterable[Guide]) -> Iterator[Finding]:
    """Yield labels without an example of each kind."""
    kinds = {"present": {Value.PRESENT}, "absent": {Value.ABSENT, Value.UNCERTAIN}}
    for kind, values in kinds.items():
        lacking = [
            guide.label
            for guide in guides
            if not any(one.value in values for one in guide.exemplars)
        ]
        if lacking:
            what = "that is present" if kind == "present" else "that only looks like it"
            yield _warning("guides", f"no exemplar {what}: {', '.join(lacking)}")


def _lint_reading(version: PromptVersion, rules: Sequence[str]) -> Iterator[Finding]:
    """Yield rules of reading that the prompt's own words leave out."""
    words = " ".join(f"{version.system} {version.user}".split())
    missing = [rule for rule in rules if " ".join(rule.split()) not in words]
    if missing:
        yield _warning(
            "templates",
            f"leaves out {len(missing)} of the {len(rules)} rules of reading of the "
            f"taxonomy: {' / '.join(missing)}",
        )


def _lint_definitions(
    guides: Iterable[Guide], meanings: Mapping[str, LabelMeaning]
) -> Iterator[Finding]:
    """Yield labels that readers and models are told to mean different things."""
    other = [
        guide.label
        for guide in guides
        if guide.label in meanings
        and guide.definition.split() != meanings[guide.label].definition.split()
    ]
    if other:
        yield _warning(
            "guides",
            f"the taxonomy defines otherwise: {', '.join(other)}; readers are told "
            "its definition, models that of the guide",
        )


def is_pattern(wording: str) -> bool:
    """Whether a wording is a pattern that only `rules` reads, not words."""
    return "*" in wording or "..." in _dots(wording)


def is_shown(wording: str, guide: Guide) -> bool:
    """Whether a language model is to be shown a wording of a guide.

    Not a pattern, nor words in another script than the guide's definition.
    """
    foreign = _is_latin(guide.definition) and not _is_latin(wording)
    return not is_pattern(wording) and not foreign


def _is_latin(text: str) -> bool:
    return all(char < "\u0250" for char in text if char.isalpha())


def _lint_meaning(guide: Guide, meaning: LabelMeaning) -> Iterator[Finding]:
    """Yield where a guide reads the taxonomy's own words otherwise than it says.

    Every wording of the guide is looked for in what the taxonomy lists, and decides as
    it would in a report: the longest one, an exclusion or a clarification before a
    term. What the guide has no wording for is no contradiction.
    """
    expected = (
        ("counts", meaning.counts, (Value.PRESENT,)),
        ("does_not_count", meaning.does_not_count, (Value.ABSENT,)),
        ("uncertain_when", meaning.uncertain_when, (Value.UNCERTAIN, Value.ABSENT)),
    )
    wordings = list(_guide_wordings(guide))
    for listed, items, right in expected:
        own = {fold_phrase(one) for one in getattr(guide, listed)}
        for item in items:
            for found in _decide(wordings, item):
                if found.value not in right:
                    yield _warning(
                        f"guide {guide.label}",
                        f"{found.kind} {found.phrase!r} makes {item!r} {found.value}; "
                        f"the taxonomy lists it under {listed}",
                    )
        missing = [one for one in items if own and fold_phrase(one) not in own]
        if missing:
            yield _warning(
                f"guide {guide.label}",
                f"{listed} leaves out what the taxonomy lists: "
                f"{', '.join(repr(one) for one in missing)}",
            )


class _LintWording(NamedTuple):
    kind: str
    phrase: str
    value: GuideValue
    outranks: bool


def _guide_wordings(guide: Guide) -> Iterator[_LintWording]:
    for one in guide.parts:
        for term in one.terms:
            yield _LintWording("term", term, Value.PRESENT, False)
        for phrase in one.exclusions:
            yield _LintWording("exclusion", phrase, Value.ABSENT, True)
        for rule in one.clarifications:
            yield _LintWording("clarification", rule.phrase, rule.value, True)


def _decide(wordings: Iterable[_LintWording], item: str) -> list[_LintWording]:
    """Return the wordings that decide what a guide says of a few words, if any do."""
    words = re.findall(r"\w+", fold_phrase(item))
    hits = [
        (one, found)
        for one in wordings
        if (found := _find(one.phrase, words)) is not None
    ]
    hits.sort(key=lambda hit: (hit[0].outranks, len(hit[0].phrase)), reverse=True)
    kept: list[tuple[_LintWording, tuple[int, int]]] = []
    for one, (start, end) in hits:
        over = (other for other in kept if other[1][0] < end and start < other[1][1])
        if not any(other.outranks for other, _ in over):
            kept.append((one, (start, end)))
    for value in (Value.PRESENT, Value.UNCERTAIN, Value.ABSENT):
        deciding = [one for one, _ in kept if one.value is value]
        if deciding:
            return deciding
    return []


_GAP = 5
"""Words that ``...`` may stand for."""


def _find(wording: str, words: Sequence[str]) -> tuple[int, int] | None:
    """Return where a wording is among words, as a half-open range; None if nowhere.

    The last word of a part may be in the plural, or go on where the part ends in a
    star. Takes time in proportion to parts times words, whatever the wording is.
    """
    parts = [part.split() for part in fold_phrase(_dots(wording)).split("...")]
    parts = [part for part in parts if part]
    ends: dict[int, int] = {}
    for number, part in enumerate(parts):
        found: dict[int, int] = {}
        for start in range(len(words) - len(part) + 1):
            if number == 0:
                first = start
            else:
                before = (ends.get(start - gap) for gap in range(_GAP + 1))
                known = [one for one in before if one is not None]
                if not known:
                    continue
                first = max(known)
            if _says(part, words[start : start + len(part)]):
                found.setdefault(start + len(part), first)
        ends = found
    return next(((first, end) for end, first in ends.items()), None)


def _says(part: Sequence[str], words: Sequence[str]) -> bool:
    *head, last = part
    if list(words[:-1]) != head:
        return False
    if last.endswith("*"):
        return words[-1].startswith(last[:-1])
    stem = last.removesuffix("y")
    return words[-1] in (last, f"{last}s", f"{last}es", f"{stem}ies")


def _dots(wording: str) -> str:
    return wording.replace("…", "...")


def _lint_shared_terms(guides: Iterable[Guide]) -> Iterator[Finding]:
    """Terms that name two labels: usually a question of which label owns them."""
    owners: dict[str, list[str]] = {}
    for guide in guides:
        for term in dict.fromkeys(_folded(guide.terms)):
            owners.setdefault(term, []).append(guide.label)
    for term, labels in owners.items():
        if len(labels) > 1:
            yield _warning(
                f"guide {labels[0]}",
                f"term {term!r} also names {', '.join(labels[1:])}",
            )


def fold_phrase(phrase: str) -> str:
    """Return `phrase` with case, hyphens and runs of spaces folded away.

    Examples
    --------
    >>> fold_phrase("Plate-like  opacity")
    'plate like opacity'
    """
    return " ".join(phrase.casefold().replace("-", " ").split())


def _folded(phrases: Iterable[str]) -> list[str]:
    return [fold_phrase(phrase) for phrase in phrases]


def _repeated(phrases: Iterable[str]) -> list[str]:
    return sorted(phrase for phrase, count in Counter(phrases).items() if count > 1)
