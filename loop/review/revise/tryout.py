"""A draft or a version tried on a case, on pasted words, or on what it is made for.

The parent is asked the same, so that one sees at once what the wording changes. A try
is no run and no check. With an engine that has chance in it, its draws are others than
those of a check (see `loop.run.aside`): however often a wording is tried, a check of
it rests on answers that nobody has seen, so tries spend nothing of its level, and
cannot make its test of harm weaker. What they do is choose among wordings: how many of
a draft were tried, on how many cases, is kept beside it and recorded with its decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_text
from loop.core.errors import DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Field, Item, Outcome, Status
from loop.core.safe_text import quoted
from loop.engines.rules.engine import RulesExplanation
from loop.evaluate.align import AlignedPairs, align
from loop.labels.cohort import (
    REPORT_INPUTS,
    Cohort,
    CohortRole,
    cohort_folder,
    find_item,
    find_record,
    has_texts,
    iter_items,
    list_cohorts,
    read_cohort,
    read_cohort_file,
    report_texts,
)
from loop.labels.importing.source import check_length
from loop.labels.language import guess_language
from loop.labels.reference import Reference, list_references, read_reference
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import read_parent, read_version
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import require_dev
from loop.review.revise.check import CheckTarget, check_pairs
from loop.review.revise.draft_files import read_about, read_line
from loop.review.revise.draws import DrawnAnswers, TargetDraws
from loop.review.revise.tries import note_try, note_wordings
from loop.review.revise.wording import Authorship, build_draft
from loop.review.submit import load_verdicts, read_anchors
from loop.review.verdict import Verdict
from loop.run.aside import AskedAside, Heard, ask_version
from loop.run.asking import HeldEngine, has_chance
from loop.run.store import Store
from loop.run.task import require_unseen
from loop.run.trace import texts_data

PASTED = "pasted"
"""Id of words that are no case."""

UNSAVED = "unsaved"
"""Id of a draft that is made for one try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryRequest:
    """What is tried, and how."""

    prompt: str
    """A draft, as it stands, or a version."""

    cohort: str = ""
    """Dev cohort; empty for the one that the draft is for."""

    label: str = ""
    """Only this label, by id; empty for all."""

    draws: int | None = None
    """How often parent and draft each are asked, of an engine with chance in it; None
    for once."""

    verdict: Verdict | None = None
    """Tries the draft that this verdict alone would make of the prompt; it need not be
    kept, and no draft is."""


class TriedSide(NamedTuple):
    """What one of the two answers."""

    ref: str
    outcomes: tuple[Outcome, ...]
    """One a draw."""

    rules: Mapping[str, RulesExplanation]
    """Why `rules` answers so, by label; empty for other engines."""


class TriedLabel(NamedTuple):
    """What both answer about one label."""

    label: str
    expected: str
    """By the verdict, else by the reference; empty where nothing says it."""

    before: tuple[str, ...]
    """Of each draw; empty without a parent."""

    after: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the two do not answer alike, in whatever order of draws."""
        return bool(self.before) and Counter(self.before) != Counter(self.after)

    @property
    def telling(self) -> bool:
        """Whether it is worth more than a word: wrong, changed, or found alone."""
        alone = not self.before and set(self.after) != {"absent"}
        return self.differs or self.fails or alone

    @property
    def right(self) -> int:
        """Draws in which the draft answers as is right; 0 where nothing says it."""
        return sum(one == self.expected for one in self.after)

    @property
    def fails(self) -> bool:
        """Whether the draft does not answer as is right, in some draw."""
        return bool(self.expected) and self.right < len(self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tryout:
    """One case or text, answered by a draft beside its parent."""

    engine: str
    chance: bool
    """Whether the engine may answer otherwise another time."""

    cohort: str
    """Empty for pasted words."""

    item: Item = field(repr=False)
    """Private."""

    before: TriedSide | None
    """The parent; None for a first version."""

    after: TriedSide
    labels: tuple[TriedLabel, ...]
    """Every label that one of them asks about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsTryout:
    """What a draft is made for and what it must keep, answered beside its parent."""

    prompt: str
    parent: str
    engine: str
    cohort: str
    draws: int
    chance: bool
    targets: tuple[CheckTarget, ...]
    """The pairs that its verdicts are about, by the answer of most draws."""

    anchors: tuple[CheckTarget, ...]
    """The pinned pairs of the cohort."""

    counts: tuple[TargetDraws, ...]
    """How often each pair is right, both kinds; those that nothing decides left out."""

    def counts_of(self, pair: CheckTarget) -> TargetDraws | None:
        """Return how often `pair` is right; None where nothing decides it."""
        return next((one for one in self.counts if _pair(one) == _pair(pair)), None)

    @property
    def failing(self) -> tuple[CheckTarget, ...]:
        """The targets that the draft does not put right."""
        return tuple(one for one in self.targets if _fails(one))

    @property
    def broken(self) -> tuple[CheckTarget, ...]:
        """The anchors that the parent answers right and the draft does not."""
        return tuple(
            one for one in self.anchors if one.before == one.expected and _fails(one)
        )


def _fails(one: CheckTarget) -> bool:
    return not one.expected or one.after != one.expected


def _pair(one: CheckTarget | TargetDraws) -> tuple[str, str]:
    return one.case_id, one.label


class _TriedVersions(NamedTuple):
    """A draft or version with its parent, and the dev cohort it is tried on."""

    after: PromptVersion
    before: PromptVersion | None
    cohort: str
    label: str
    verdict: Verdict | None = None
    """What the draft is made of, if it is made for this try only."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels to show: all that either asks about, or the one wanted."""
        known = dict.fromkeys(name for one in self.versions for name in one.labels)
        return tuple(one for one in known if self.label in ("", one))

    @property
    def versions(self) -> tuple[PromptVersion, ...]:
        """The parent, if there is one, and the draft."""
        return (self.before, self.after) if self.before else (self.after,)


def try_case(
    workspace: WorkspacePaths,
    store: Store,
    request: TryRequest,
    case_id: str,
    actor: Actor,
    *,
    engine: HeldEngine,
    now: Clock = utc_now,
    heard: Callable[[Heard], None] | None = None,
) -> Tryout:
    """Return what a draft or version answers to one dev case, beside its parent.

    Nothing of it becomes a run. For whoever may read the case: its text is in it. The
    try of a draft is noted beside it.

    Parameters
    ----------
    heard
        Told what a server writes, while it writes it; see `ask_version`.

    Raises
    ------
    DataError
        There is no such prompt or case, the prompt's parent is gone, or its cohort is
        none to revise on; a case of a holdout is refused for everybody.
    OverlapError
        The case shares its id, its patient or its reference with a shot.
    EngineError
        The engine failed, or repeats itself and is to be asked several times.
    StoreError
        The store cannot be read or written.
    """
    sides = _find_sides(workspace, request)
    cohort = _require_dev(workspace, sides)
    item = find_item(workspace, cohort.name, case_id)
    for version in sides.versions:
        require_unseen(workspace, version, cohort, (item,))
    asked = _ask(workspace, store, sides, (item,), engine, request.draws, heard=heard)
    verdicts = _verdicts(store, sides)
    _note(workspace, sides, (case_id,), engine, actor, now)
    right = _find_expected(workspace, cohort, item, verdicts)
    return _compare(sides, asked, item, engine, right)


def try_text(
    workspace: WorkspacePaths,
    store: Store,
    request: TryRequest,
    text: str,
    *,
    engine: HeldEngine,
    language: str = "auto",
    heard: Callable[[Heard], None] | None = None,
) -> Tryout:
    """Return what a draft or version answers to `text`, beside its parent.

    The words are kept nowhere, nor is any answer to them.

    Parameters
    ----------
    language
        ISO 639-1 code of the text; ``auto`` to tell it by letters and words.
    heard
        Told what a server writes, while it writes it; see `ask_version`.

    Raises
    ------
    DataError
        There is no such prompt, or its parent is gone; the text is empty, or too long
        for a report, or it is that of a holdout's case.
    EngineError
        The engine failed, or repeats itself and is to be asked several times.
    StoreError
        The store cannot be read.
    """
    words = text.strip()
    if not words:
        raise DataError("the text is empty. Paste the words to be read.")
    check_length(words, "the pasted text")
    refuse_holdout(workspace, words)
    sides = _find_sides(workspace, request)
    known = guess_language(words) if language == "auto" else language
    item = Item(id=PASTED, variables={"text": words}, language=known)
    asked = _ask(
        workspace,
        store,
        sides,
        (item,),
        engine,
        request.draws,
        keep=False,
        heard=heard,
    )
    return _compare(sides._replace(cohort=""), asked, item, engine, {})


def try_pairs(
    workspace: WorkspacePaths,
    store: Store,
    request: TryRequest,
    actor: Actor,
    *,
    engine: HeldEngine,
    now: Clock = utc_now,
    heard: Callable[[Heard], None] | None = None,
) -> PairsTryout:
    """Return how a draft does on all pairs of its verdicts and on the pinned ones.

    No other case is asked: what else the wording changes, only a check shows.

    Parameters
    ----------
    heard
        Told what a server writes, while it writes it; see `ask_version`.

    Raises
    ------
    DataError
        There is no such draft, or it has neither verdicts nor pinned cases.
    OverlapError
        A case shares its id, its patient or its reference with a shot.
    EngineError
        The engine failed, or repeats itself and is to be asked several times.
    StoreError
        The store cannot be read or written.
    """
    sides = _find_sides(workspace, request)
    if sides.before is None:
        raise DataError(
            f"{sides.after.ref} has no parent to be held against. Name a draft, or try "
            "one case with --case."
        )
    cohort = _require_dev(workspace, sides)
    verdicts = _verdicts(store, sides)
    anchors = read_anchors(store, cohort.name)
    wanted = {
        pair
        for pair in (*_targets(verdicts), *(one[:2] for one in anchors))
        if request.label in ("", pair[1])
    }
    with_pairs = {case_id for case_id, _ in wanted}
    ids = tuple(one for one in cohort.case_ids if one in with_pairs)
    if not ids:
        raise DataError(
            f"{sides.after.ref} names no verdict on a case of {cohort.name}, and no "
            "case is pinned there. Try one case with --case."
        )
    items = [find_item(workspace, cohort.name, one) for one in ids]
    for version in sides.versions:
        require_unseen(workspace, version, cohort, items)
    asked = _ask(workspace, store, sides, items, engine, request.draws, heard=heard)
    _note(workspace, sides, ids, engine, actor, now)
    before, after = (_align(workspace, cohort, one.draws) for one in asked)
    judged = check_pairs(DrawnAnswers(before, after), verdicts, anchors)
    return PairsTryout(
        prompt=sides.after.ref,
        parent=sides.before.ref,
        engine=engine.name,
        cohort=cohort.name,
        draws=len(after),
        chance=has_chance(engine),
        targets=tuple(one for one in judged.targets if _pair(one) in wanted),
        anchors=tuple(one for one in judged.anchors if _pair(one) in wanted),
        counts=tuple(one for one in judged.counts if _pair(one) in wanted),
    )


def _find_sides(workspace: WorkspacePaths, request: TryRequest) -> _TriedVersions:
    version, cohort = read_version(workspace, request.prompt), request.cohort
    if request.verdict:
        by = Authorship("", utc_now(), "")
        built = build_draft(version, (request.verdict,), by).draft
        after = replace(built, draft=UNSAVED)
        sides = _TriedVersions(after, version, cohort, request.label, request.verdict)
    elif version.draft:
        parent = read_line(workspace, version.ref).parent
        cohort = cohort or read_about(workspace, version).cohort
        sides = _TriedVersions(version, parent, cohort, request.label)
    else:
        before = read_parent(workspace, version)
        sides = _TriedVersions(version, before, cohort, request.label)
    if not sides.labels:
        raise DataError(
            f"neither {version.ref} nor its parent asks about {quoted(request.label)}. "
            "Name one of their labels by id, or leave the label out."
        )
    return sides


def _verdicts(store: Store, sides: _TriedVersions) -> Sequence[Verdict]:
    if sides.verdict:
        return (sides.verdict,)
    return load_verdicts(store, sides.cohort, sides.after.verdicts)


def _note(
    workspace: WorkspacePaths,
    sides: _TriedVersions,
    cases: Sequence[str],
    engine: HeldEngine,
    actor: Actor,
    now: Clock,
) -> None:
    """Note the try beside the draft, or beside what one would be made of."""
    if sides.verdict is None or sides.before is None:
        note_try(workspace, sides.after, cases, engine.name, actor, now=now)
        return
    note_wordings(
        workspace,
        sides.before,
        {sides.after.digest: cases},
        engine.name,
        actor,
        label=sides.verdict.label,
        now=now,
    )


def _require_dev(workspace: WorkspacePaths, sides: _TriedVersions) -> Cohort:
    if not sides.cohort:
        raise DataError(
            f"nothing says of which cohort the case is that {sides.after.ref} is to be "
            "tried on. Name a dev cohort with --cohort."
        )
    return require_dev(workspace, sides.cohort)


def refuse_holdout(workspace: WorkspacePaths, words: str) -> None:
    """Refuse words that are, to the letter, a text of a holdout's case.

    Raises
    ------
    DataError
        They are; or the cases of a holdout cannot be read, or the texts of a holdout of
        pairs are not on this machine.
    """
    forms = {words, words.replace("\r\n", "\n")}
    entries = read_ledger(workspace.ledger)
    for name in list_cohorts(workspace):
        record = find_record(entries, name)
        about = read_cohort_file(workspace, name)
        if about.role is not CohortRole.HOLDOUT and not (record and record.is_holdout):
            continue
        pairs = tuple(about.inputs) != REPORT_INPUTS
        if (_among_pairs if pairs else _among_reports)(workspace, name, forms):
            raise DataError(
                f"the text is that of a case of holdout {name}: what is answered about "
                "it stays unseen, or it can no longer decide anything. Try a dev case."
            )


def _among_reports(workspace: WorkspacePaths, name: str, forms: Set[str]) -> bool:
    """Whether words are a report of a holdout, whose digests travel with it."""
    try:
        cases = (cohort_folder(workspace, name) / "cases.csv").read_bytes()
    except OSError as error:
        raise DataError(
            f"cannot read the cases of holdout {name}: {error.strerror}. Restore "
            "the file: what is in it must not be tried."
        ) from error
    return any(digest_text(one).encode() in cases for one in forms)


def _among_pairs(workspace: WorkspacePaths, name: str, forms: Set[str]) -> bool:
    """Whether words are a report of a pair, of which only both have a digest."""
    cohort = read_cohort(workspace, name)
    if not has_texts(workspace, name):
        raise DataError(
            f"the pairs of holdout {name} are not on this machine, so nothing says "
            "whether the text is one of theirs. Import the cohort again from its "
            "source with --replace, or try a dev case."
        )
    items = iter_items(workspace, cohort)
    return any(not forms.isdisjoint(report_texts(one)) for one in items)


def _ask(
    workspace: WorkspacePaths,
    store: Store,
    sides: _TriedVersions,
    items: Sequence[Item],
    engine: HeldEngine,
    draws: int | None,
    *,
    keep: bool = True,
    heard: Callable[[Heard], None] | None,
) -> list[AskedAside]:
    """Return what the parent, if there is one, and then the draft answer."""
    return [
        ask_version(
            workspace,
            store,
            one,
            items,
            engine,
            label=sides.label,
            draws=draws,
            keep=keep,
            heard=heard,
        )
        for one in sides.versions
    ]


def _compare(
    sides: _TriedVersions,
    asked: Sequence[AskedAside],
    item: Item,
    engine: HeldEngine,
    right: Mapping[str, str],
) -> Tryout:
    *parent, after = (
        TriedSide(version.ref, tuple(one for (one,) in found.draws), found.rules)
        for version, found in zip(sides.versions, asked, strict=True)
    )
    before = parent[0] if parent else None
    return Tryout(
        engine=engine.name,
        chance=has_chance(engine),
        cohort=sides.cohort,
        item=item,
        before=before,
        after=after,
        labels=tuple(
            TriedLabel(
                label,
                right.get(label, ""),
                _answers(before, sides.before, label),
                _answers(after, sides.after, label),
            )
            for label in sides.labels
        ),
    )


def count_answers(answers: Sequence[str]) -> str:
    """Return answers with how many draws gave each, where they are not alike.

    Examples
    --------
    >>> count_answers(("present",) * 2), count_answers(("absent", "present", "absent"))
    ('present', '2 absent, 1 present')
    """
    counts = Counter(answers).most_common()
    if len(counts) == 1:
        return counts[0][0]
    return ", ".join(f"{count} {answer}" for answer, count in counts)


WITHOUT_ANSWER = {
    Status.ANSWERED: "not asked",
    Status.UNPARSED: "unparsed",
    Status.ENGINE_FAILED: "engine failed",
}
"""In place of an answer about a label."""


def answer_about(outcome: Outcome, label: str) -> str:
    """Return what an outcome says about `label`, or why nothing, in words."""
    found = outcome.fields.get(label)
    return str(found.value) if found else WITHOUT_ANSWER[outcome.status]


def _answers(
    side: TriedSide | None, version: PromptVersion | None, label: str
) -> tuple[str, ...]:
    """Return the answer of each draw about `label`, in words."""
    if side is None or version is None:
        return ()
    if label not in version.labels:
        return ("not asked",) * len(side.outcomes)
    return tuple(answer_about(one, label) for one in side.outcomes)


def _find_expected(
    workspace: WorkspacePaths, cohort: Cohort, item: Item, verdicts: Sequence[Verdict]
) -> dict[str, str]:
    """Return label to what is right in one case, where anything says it."""
    nothing = Outcome(item_id=item.id, status=Status.ANSWERED)
    (pairs,) = _align(workspace, cohort, ((nothing,),))
    words = {0: "absent", 1: "present"}
    marks = pairs.binary_reference[0]
    right = {
        label: words[int(mark)]
        for label, mark in zip(pairs.labels, marks, strict=True)
        if int(mark) in words
    }
    for verdict in verdicts:
        if verdict.correct_value and (item.id, verdict.label) in verdict.targets:
            right[verdict.label] = str(verdict.correct_value)
    return right


def _align(
    workspace: WorkspacePaths, cohort: Cohort, draws: Sequence[Sequence[Outcome]]
) -> tuple[AlignedPairs, ...]:
    """Return the outcomes of each draw beside the newest reference, if there is one."""
    taxonomy = read_taxonomy(workspace.labels)
    if list_references(workspace, cohort.name):
        reference = read_reference(workspace, cohort.name)
    else:
        nothing = np.zeros((0, 0), dtype=np.int8)
        reference = Reference(
            cohort=cohort.name, number=0, digest="", case_ids=(), labels=(),
            marks=nothing,
        )  # fmt: skip
    return tuple(
        align(outcomes, reference, taxonomy).leave_open(cohort.not_comparable)
        for outcomes in draws
    )


def _targets(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, str]]:
    for verdict in verdicts:
        yield from verdict.targets


def tryout_data(found: Tryout) -> dict[str, Any]:
    """Return a try as JSON data, nothing cut; the text is in it."""
    return {
        "prompt": found.after.ref,
        "parent": found.before.ref if found.before else None,
        "engine": found.engine,
        "cohort": found.cohort or None,
        "case": found.item.id if found.cohort else None,
        "language": found.item.language,
        **texts_data(found.item),
        "draws": len(found.after.outcomes),
        "labels": [
            {
                **one._asdict(),
                "before": list(one.before),
                "after": list(one.after),
                "differs": one.differs,
            }
            for one in found.labels
        ],
        "answers": {
            "before": _side_data(found.before) if found.before else None,
            "after": _side_data(found.after),
        },
    }


def _side_data(side: TriedSide) -> list[dict[str, Any]]:
    return [
        {
            "status": one.status.value,
            "problem": one.problem,
            "repairs": list(one.repairs),
            "fields": {name: _field_data(each) for name, each in one.fields.items()},
        }
        for one in side.outcomes
    ]


def _field_data(one: Field) -> dict[str, Any]:
    return {"value": one.value, "spans": [span.data for span in one.spans]}


def pairs_data(found: PairsTryout) -> dict[str, Any]:
    """Return a try of all pairs as JSON data: ids and answers, no text."""
    return {
        "prompt": found.prompt,
        "parent": found.parent,
        "engine": found.engine,
        "cohort": found.cohort,
        "draws": found.draws,
        "targets": [asdict(one) for one in found.targets],
        "anchors": [asdict(one) for one in found.anchors],
        "counts": [one._asdict() for one in found.counts],
        "failing": len(found.failing),
        "broken": len(found.broken),
    }
