"""What is wrong, or likely wrong, with a prompt version before it is ever run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from jinja2 import TemplateError, meta

from loop.core.errors import DataError
from loop.core.findings import Finding, FindingSeverity, broken, warning
from loop.core.records import Guide, Value
from loop.prompts.outputs.base import CONTRACTS, get_contract
from loop.prompts.outputs.binary import BinaryValues
from loop.prompts.render import PromptPlan, environment, plan_prompts
from loop.prompts.version import PromptVersion, frozen_blocks

MAX_SUFFIX = 200
"""Characters of static text allowed after the case: more would defeat the cache."""

LONG_CHARS = 40_000
"""Characters of one call from which a warning says that it is long."""

CHARS_PER_TOKEN = 4
"""Rule of thumb for English; real counts depend on the model's tokenizer."""

_VARIABLES = frozenset({"guides", "fields", "name"})


LEVELS = {FindingSeverity.BROKEN: "error", FindingSeverity.WARNING: "warning"}
"""Severity of what lint found to its word: a version with an error is not committed."""


def lint_version(
    version: PromptVersion,
    *,
    labels: Collection[str],
    parent: PromptVersion | None = None,
) -> list[Finding]:
    """Return the findings on `version`, errors first; empty when it is clean.

    Parameters
    ----------
    labels
        Label ids that may be asked for.
    parent
        Version it was revised from: its frozen blocks must be unchanged.
    """
    findings = [
        *_lint_variables(version),
        *_lint_rendering(version),
        *_lint_frozen(version, parent),
        *_lint_answer(version),
        *_lint_values(version),
        *_lint_labels(version, labels),
        *(found for guide in version.guides for found in lint_guide(guide)),
        *_lint_shared_terms(version.guides),
    ]
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


def _templates(version: PromptVersion) -> tuple[tuple[str, str], ...]:
    return (("system.jinja", version.system), ("user.jinja", version.user))


def _lint_rendering(version: PromptVersion) -> Iterator[Finding]:
    """Whether it renders at all, how long it is, and whether the case comes last."""
    try:
        plan = plan_prompts(version, lambda fields: {})
    except DataError as error:
        yield _error("templates", str(error))
        return
    if plan.suffix_length > MAX_SUFFIX:
        yield _error(
            "user.jinja",
            f"{plan.suffix_length} characters follow the case text (at most "
            f"{MAX_SUFFIX}): move them before it, so that servers can reuse the prefix",
        )
    chars = prompt_length(plan)
    if chars > LONG_CHARS:
        yield _warning(
            "templates",
            f"one call has {chars} characters before the case text, roughly "
            f"{chars // CHARS_PER_TOKEN} tokens (estimate: characters / 4)",
        )


def prompt_length(plan: PromptPlan) -> int:
    """Characters of the longest call of a plan, without the case text."""
    return max(
        sum(len(message.content) for message in call.frame.messages)
        + sum(len(after) for _, after in call.pieces)
        for call in plan.calls
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
        name: get_contract(name).instruction.strip()
        for name in CONTRACTS
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
    """Count wordings with a value that the contract does not offer."""
    if version.contract != BinaryValues.name:
        return
    values = [
        *(one.value for guide in version.guides for one in guide.clarifications),
        *(one.value for guide in version.guides for one in guide.exemplars),
    ]
    unsure = values.count(Value.UNCERTAIN)
    if unsure:
        yield _warning(
            "guides",
            f"{unsure} rules and exemplars say uncertain, which the contract "
            f"{version.contract} does not offer: `rules` reads them as absent, and a "
            "model is shown a value that it cannot give",
        )


def _lint_labels(version: PromptVersion, labels: Collection[str]) -> Iterator[Finding]:
    """Labels the taxonomy does not have, as guides or as implications."""
    for guide in version.guides:
        where = f"guide {guide.label}"
        if guide.label not in labels:
            yield _error(where, "is not a label of the taxonomy that can be asked for")
        for implied in guide.implies:
            if implied not in labels:
                yield _error(where, f"implies the unknown label {implied!r}")
            if implied == guide.label:
                yield _error(where, "implies itself")


def lint_guide(guide: Guide) -> Iterator[Finding]:
    """Yield what is contradictory or repeated inside one guide."""
    where = f"guide {guide.label}"
    terms, exclusions = _folded(guide.terms), _folded(guide.exclusions)
    for both in sorted(set(terms) & set(exclusions)):
        yield _error(where, f"{both!r} is both a term and an exclusion; keep one")
    for phrase in _repeated(terms):
        yield _warning(where, f"term {phrase!r} appears twice")
    for phrase in _repeated(exclusions):
        yield _warning(where, f"exclusion {phrase!r} appears twice")
    yield from _lint_stars(guide)
    rules: dict[str, str] = {}
    for rule in guide.clarifications:
        phrase = fold_phrase(rule.phrase)
        if rules.setdefault(phrase, rule.value) != rule.value:
            yield _error(where, f"{phrase!r} is clarified with two different values")
        if phrase in exclusions and rule.value == "present":
            yield _error(where, f"{phrase!r} is excluded and clarified as present")
    for number, example in enumerate(guide.exemplars, 1):
        if example.evidence.casefold() not in example.text.casefold():
            yield _error(where, f"exemplar {number}: its evidence is not in its text")


def _lint_stars(guide: Guide) -> Iterator[Finding]:
    """Yield wordings with a ``*`` where no engine reads it as "any ending"."""
    rules = (rule.phrase for rule in guide.clarifications)
    for phrase in (*guide.terms, *guide.exclusions, *rules):
        parts = [part.strip() for part in phrase.replace("…", "...").split("...")]
        if any("*" in part[:-1] or part == "*" for part in parts):
            yield _error(
                f"guide {guide.label}",
                f"{phrase!r}: * stands only after the last word, or after the last "
                "word before ...; elsewhere the wording never matches",
            )


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
