"""What a phrase could become in a guide, and which dev cases each of that would change.

With `rules` a phrase is tried: every case that it can touch is read again with the
guide as a draft would have it, so the counts are those of a check. For another engine
they are an estimate by wording: the cases that hold the phrase and are not answered as
the part of the guide would say. That shows no answer of any new wording, so that only
what `rules` answers is noted as a try; see `loop.review.revise.tries`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, NamedTuple

from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import (
    Clarification,
    Exemplar,
    Guide,
    Item,
    PromptFrame,
    Status,
    Value,
)
from loop.core.safe_text import quoted
from loop.engines.rules.engine import ReportReader, RulesEngine
from loop.engines.rules.rewording import AnsweredTexts
from loop.engines.rules.vocabulary import (
    GAP,
    MAX_GAP_WORDS,
    Wording,
    fold,
    guide_wordings,
    has_cjk,
    tidy,
)
from loop.evaluate.align import decided_reference
from loop.labels.cohort import (
    Cohort,
    iter_items,
    read_record,
    require_reports,
    single_report,
)
from loop.labels.reference import list_references, read_reference
from loop.labels.taxonomy import NO_FINDING, read_taxonomy
from loop.prompts.catalog import find_parent, read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.version import PromptVersion, with_masked_shots
from loop.review.revise.begin import require_dev
from loop.review.revise.draft_files import read_about
from loop.review.revise.tries import note_wordings
from loop.review.revise.tryout import WITHOUT_ANSWER, answer_about
from loop.review.revise.wording import Authorship, build_draft
from loop.review.verdict import Edits, Judgement, Verdict
from loop.run.aside import plan_version
from loop.run.asking import EngineOptions, check_engine, choose_engine
from loop.run.manifest import say_part
from loop.run.store import RunRecord, Store

LONGEST_PHRASE = 300
"""Characters of a phrase; a wording of a guide has far fewer."""

MOST_CASES = 20_000
"""Cases of a cohort that are searched; of more, only a check of a draft tells."""

NOT_KNOWN = "not known"
"""In place of an answer that nobody has asked for."""

_RULES = "rules"
_VALUES = frozenset(str(value) for value in Value)
_SPACES = re.compile(r"\s+")


class GuidePart(StrEnum):
    """What a phrase could become."""

    TERM = "term"
    EXCLUSION = "exclusion"
    CLARIFICATION = "clarification"
    EXEMPLAR = "exemplar"


_PARTS = (
    (GuidePart.TERM, None),
    (GuidePart.EXCLUSION, None),
    *((GuidePart.CLARIFICATION, value) for value in Value),
    *((GuidePart.EXEMPLAR, value) for value in (Value.PRESENT, Value.ABSENT)),
)


class TriedChange(NamedTuple):
    """One answer that would be another."""

    case_id: str
    label: str
    before: str
    after: str
    expected: str
    """By the reference; empty where it decides nothing."""

    @property
    def gained(self) -> bool:
        """Whether it would be right and is not."""
        wrong = self.before in _VALUES and self.before != self.expected
        return wrong and self.after == self.expected

    @property
    def lost(self) -> bool:
        """Whether it is right and would not be."""
        return bool(self.expected) and self.before == self.expected != self.after

    @property
    def judged(self) -> bool:
        """Whether it is known what is right, and what is answered now."""
        return bool(self.expected) and self.before != NOT_KNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedPart:
    """What a phrase would change as one part of a guide."""

    part: GuidePart
    value: Value | None
    """Of a clarification or an exemplar."""

    problem: str = ""
    """Why it cannot become that, or changes nothing; in words."""

    changes: tuple[TriedChange, ...] = ()
    """Of the label that was asked for, in the order of the cohort."""

    others: tuple[TriedChange, ...] = ()
    """Of other labels: by an implication, or where two findings share a sentence."""

    @property
    def name(self) -> str:
        """The part and its value in words."""
        return f"{self.part}: {self.value}" if self.value else str(self.part)

    @property
    def unjudged(self) -> int:
        """Changes of which nobody knows whether an answer becomes right or wrong."""
        return sum(not one.judged for one in self.changes)

    @property
    def gained(self) -> int | None:
        """Answers about the label that would become right; None if all are unjudged."""
        return self._count([one.gained for one in self.changes])

    @property
    def lost(self) -> int | None:
        """Answers about it that would no longer be right; None if all are unjudged."""
        return self._count([one.lost for one in self.changes])

    def _count(self, found: Sequence[bool]) -> int | None:
        return None if found and self.unjudged == len(found) else sum(found)

    @property
    def ways(self) -> tuple[tuple[str, str, int], ...]:
        """Answer before, answer after and how many cases; the most frequent first."""
        counts = Counter((one.before, one.after) for one in self.changes)
        return tuple((*way, count) for way, count in counts.most_common())


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseTryout:
    """What one phrase could become in the guide of a label."""

    prompt: str
    cohort: str
    cases: int
    engine: str
    label: str
    phrase: str = field(repr=False)
    """May be the words of a case: private."""

    holding: int
    """Cases in which it stands, in whatever section."""

    estimated: bool
    """Whether it is counted by wording, without asking the engine."""

    run: str
    """Whose answers an estimate is held against; empty where there is none, and then
    nobody knows what would become right or wrong."""

    parts: tuple[TriedPart, ...]


class PhraseRequest(NamedTuple):
    """Which phrase is tried, and where."""

    prompt: str
    """A draft, as it stands, or a version."""

    label: str
    """By id or name."""

    phrase: str
    cohort: str = ""
    """Dev cohort; empty for the one that the draft is for."""

    engine: str = _RULES


class PhraseBase:
    """A prompt and a dev cohort, ready for many phrases; for any thread.

    Holds the texts of the cohort. It stays right as long as `key` does.

    Raises
    ------
    DataError
        The cohort has too many cases, or its texts are not on this machine.
    """

    def __init__(
        self, workspace: WorkspacePaths, version: PromptVersion, cohort: Cohort
    ) -> None:
        if len(cohort.cases) > MOST_CASES:
            raise DataError(
                f"cohort {cohort.name} has {len(cohort.cases):,} cases; phrases are "
                f"counted in up to {MOST_CASES:,}. Begin a draft and check it instead."
            )
        self.version = version
        self.cohort = cohort
        self.items = tuple(iter_items(workspace, cohort))
        self._workspace = workspace
        self._lock = Lock()
        self._read: dict[int, _ReadCall] = {}

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """The texts as wordings are looked for in them."""
        return tuple(_SPACES.sub(" ", fold(single_report(item))) for item in self.items)

    @cached_property
    def expected(self) -> Mapping[tuple[str, str], str]:
        """Case and label to what is right, by the newest reference."""
        if not list_references(self._workspace, self.cohort.name):
            return {}
        taxonomy = read_taxonomy(self._workspace.labels)
        reference = read_reference(self._workspace, self.cohort.name)
        ids = [item.id for item in self.items]
        codes = decided_reference(reference, ids, taxonomy)
        open_labels = self.cohort.not_comparable
        return {
            (case_id, label): "present" if code else "absent"
            for case_id, row in zip(ids, codes.tolist(), strict=True)
            for label, code in zip(taxonomy.ids, row, strict=True)
            if code >= 0 and label not in open_labels
        }

    def calls(self, label: str) -> Iterator[_ReadCall]:
        """Yield the calls of the prompt that see the guide of `label`."""
        rules = choose_engine(self._workspace, _RULES, EngineOptions()).engine
        if not isinstance(rules, RulesEngine):
            raise TypeError(f"rules is made as {type(rules).__name__}")
        version = with_masked_shots(self.version)
        for number, frame in enumerate(plan_version(version).frames):
            if all(guide.label != label for guide in frame.guides):
                continue
            with self._lock:
                if number not in self._read:
                    self._read[number] = _ReadCall(rules, frame, self.items)
                call = self._read[number]
            yield call


class _ReadCall:
    """One call with what `rules` answers to it."""

    def __init__(
        self, rules: RulesEngine, frame: PromptFrame, items: Iterable[Item]
    ) -> None:
        self.rules = rules
        self.frame = frame
        self.items = tuple(
            one
            for one in items
            if one.language in rules.languages and single_report(one).strip()
        )
        texts = [single_report(one) for one in self.items]
        self.texts = AnsweredTexts(rules.compile(frame), texts)


def phrase_key(
    workspace: WorkspacePaths, version: PromptVersion, cohort: Cohort
) -> tuple[object, ...]:
    """Return what names a `PhraseBase`: all that it depends on."""
    rules = choose_engine(workspace, _RULES, EngineOptions()).engine
    taxonomy = read_taxonomy(workspace.labels)
    newest = read_record(workspace, cohort.name).newest
    cues = digest_json(dict(rules.identity()))
    return version.digest, cohort.name, cohort.digest, newest, taxonomy.digest, cues


def find_base(
    workspace: WorkspacePaths, prompt: str, cohort: str
) -> tuple[PromptVersion, Cohort]:
    """Return the version or draft `prompt`, and the dev cohort to try phrases on.

    Raises
    ------
    DataError
        There is no such prompt, or no cohort is named, or it is not one to revise on,
        or it holds pairs.
    """
    version = read_version(workspace, prompt)
    if version.draft and not cohort:
        cohort = read_about(workspace, version).cohort
    found = require_dev(workspace, cohort)
    require_reports(found, "counting a phrase")
    return version, found


def try_phrase(
    workspace: WorkspacePaths,
    store: Store,
    request: PhraseRequest,
    actor: Actor,
    *,
    base: PhraseBase | None = None,
    run: RunRecord | None = None,
    now: Clock = utc_now,
) -> PhraseTryout:
    """Return what a phrase could become in the guide of a label, and what that changes.

    With `rules`, what is shown is noted beside the draft or version. Labels that follow
    from the others, such as "No Finding", are not counted.

    Parameters
    ----------
    base
        The prompt and the cohort, where they are at hand.
    run
        For another engine than `rules`: the run whose answers are estimated upon; None
        for the newest one of the prompt, or of a draft's parent.

    Raises
    ------
    DataError
        There is no such prompt or label; the phrase is empty, too long or holds no
        word; the cohort is none to revise on, or too large.
    EngineError
        There is no such engine.
    StoreError
        The store cannot be read.
    """
    phrase = _require_phrase(request.phrase)
    if base is None:
        version, cohort = find_base(workspace, request.prompt, request.cohort)
    else:
        version, cohort = base.version, require_dev(workspace, base.cohort.name)
    guide = _find_guide(workspace, version, request.label)
    check_engine(request.engine)
    base = base or PhraseBase(workspace, version, cohort)
    holding = [
        item.id
        for item, text in zip(base.items, base.folded, strict=True)
        if holds(text, phrase)
    ]
    estimated = request.engine != _RULES
    drafts = list(_drafts(version, guide.label, phrase))
    if estimated:
        run = run or _find_run(workspace, store, version, cohort, request.engine)
        parts = tuple(_estimate(base, store, guide, holding, drafts, run))
    else:
        parts = tuple(_read_again(base, guide, phrase, drafts))
        seen = {
            draft.digest: [one.case_id for one in (*tried.changes, *tried.others)]
            for draft, tried in zip(drafts, parts, strict=True)
            if isinstance(draft, PromptVersion)
        }
        seen.pop(version.digest, None)
        note_wordings(
            workspace,
            version,
            seen,
            request.engine,
            actor,
            label=guide.label,
            now=now,
        )
    return PhraseTryout(
        prompt=version.ref,
        cohort=cohort.name,
        cases=len(base.items),
        engine=request.engine,
        label=guide.label,
        phrase=phrase,
        holding=len(holding),
        estimated=estimated,
        run=run.id if estimated and run else "",
        parts=parts,
    )


def _require_phrase(phrase: str) -> str:
    words = " ".join(phrase.split())
    if not words:
        raise DataError("the phrase is empty. Mark or type the words to be tried.")
    if len(words) > LONGEST_PHRASE:
        raise DataError(
            f"the phrase has {len(words):,} characters; at most {LONGEST_PHRASE} are "
            "tried. Take fewer words: a guide needs only those that decide."
        )
    try:
        words.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"character {error.start + 1} of the phrase is incomplete. Type it again."
        ) from error
    if not any(char.isalnum() for char in words):
        raise DataError("the phrase holds no word. Take words that a report has.")
    return words


def _find_guide(workspace: WorkspacePaths, version: PromptVersion, name: str) -> Guide:
    label = read_taxonomy(workspace.labels).find(name).id
    if label == NO_FINDING:
        raise DataError(
            "No Finding follows from the other labels and has no guide. Name the label "
            "that is wrong in the case."
        )
    guide = next((one for one in version.guides if one.label == label), None)
    if guide is None:
        raise DataError(
            f"{version.ref} has no guide for {quoted(label)}. Name one of "
            f"{', '.join(version.labels)}."
        )
    return guide


def _drafts(
    version: PromptVersion, label: str, phrase: str
) -> Iterator[PromptVersion | str]:
    """Yield for each part the draft that a verdict would make, or why it makes none."""
    by = Authorship("", utc_now(), "")
    for part, value in _PARTS:
        verdict = Verdict(
            label=label,
            case_ids=("-",),
            judgement=Judgement.MODEL_WRONG,
            reviewer="-",
            edits=_edits(part, value or Value.PRESENT, phrase),
        )
        try:
            yield build_draft(version, (verdict,), by).draft
        except DataError as error:
            yield str(error).removeprefix("verdict 1: ")


def _edits(part: GuidePart, value: Value, phrase: str) -> Edits:
    if part is GuidePart.TERM:
        return Edits(terms=(phrase,))
    if part is GuidePart.EXCLUSION:
        return Edits(exclusions=(phrase,))
    if part is GuidePart.CLARIFICATION:
        return Edits(clarifications=(Clarification(phrase=phrase, value=value),))
    # What it is an example of stands in its evidence; `rules` reads nothing else.
    example = Exemplar(text=phrase, value=value, evidence=phrase)
    return Edits(exemplars=(example,))


def _read_again(
    base: PhraseBase,
    guide: Guide,
    phrase: str,
    drafts: Sequence[PromptVersion | str],
) -> Iterator[TriedPart]:
    """Yield what `rules` answers otherwise with each of the drafts."""
    calls = [_Rereading(base, call, guide) for call in base.calls(guide.label)]
    for (part, value), draft in zip(_PARTS, drafts, strict=True):
        changed = _changed_guide(draft, guide)
        if isinstance(changed, str):
            yield TriedPart(part=part, value=value, problem=changed)
            continue
        found = [one for call in calls for one in call.changes(changed, phrase)]
        yield TriedPart(
            part=part,
            value=value,
            changes=tuple(one for one in found if one.label == guide.label),
            others=tuple(one for one in found if one.label != guide.label),
        )


def _changed_guide(draft: PromptVersion | str, guide: Guide) -> Guide | str:
    """Return `guide` as a draft has it, or why a part would not change it."""
    if isinstance(draft, str):
        return draft
    changed = draft.guide(guide.label)
    return changed if changed and changed != guide else "is there already"


class _Rereading:
    """One call, read again with other wordings of one guide."""

    def __init__(self, base: PhraseBase, call: _ReadCall, guide: Guide) -> None:
        self._base = base
        self._call = call
        self._guide = guide
        self._compiled: tuple[Wording, ReportReader] | None = None
        self._values: dict[tuple[int, str], list[str]] = {}
        self._known: dict[frozenset[object], tuple[TriedChange, ...]] = {}

    def changes(self, guide: Guide, phrase: str) -> tuple[TriedChange, ...]:
        """Return the answers that are other ones with `guide`."""
        before, after = (Counter(guide_wordings(one)) for one in (self._guide, guide))
        key = frozenset(after.items())
        if key not in self._known:
            compared = self._call.texts.compare(
                self._reader(guide, before, after),
                {wording for wording, _, _ in (after - before) | (before - after)},
            )
            self._known[key] = tuple(
                one
                for row, *answers in compared
                for one in self._differing(row, *answers)
            )
        return self._known[key]

    def _reader(
        self, guide: Guide, before: Counter[Wording], after: Counter[Wording]
    ) -> ReportReader:
        """Return a reader with `guide`: the one at hand where only a value differs."""
        added = list((after - before).elements())
        if len(added) != 1 or before - after or added[0] in before:
            return self._compile(guide)
        text, value, clarifies = added[0]
        if self._compiled is None or self._compiled[0][0] != text:
            self._compiled = added[0], self._compile(guide)
        old, reader = self._compiled
        return reader.retaking(guide.label, old, value, clarifies=clarifies)

    def _compile(self, guide: Guide) -> ReportReader:
        frame = self._call.frame
        guides = tuple(
            guide if one.label == guide.label else one for one in frame.guides
        )
        return self._call.rules.compile(replace(frame, guides=guides))

    def _differing(self, row: int, before: str, after: str) -> Iterator[TriedChange]:
        olds, news = self._read(row, before), self._read(row, after)
        if olds == news:
            return
        case_id = self._call.items[row].id
        for label, old, new in zip(self._call.frame.fields, olds, news, strict=True):
            if old != new:
                right = self._base.expected.get((case_id, label), "")
                yield TriedChange(case_id, label, old, new, right)

    def _read(self, row: int, answer: str) -> list[str]:
        """Return what an answer says of each label, read as in a run."""
        if (row, answer) not in self._values:
            labels = self._call.frame.fields
            contract = get_contract(self._base.version.contract)
            fields = contract.read(answer, labels, self._call.items[row]).fields or {}
            unread = WITHOUT_ANSWER[Status.UNPARSED]
            self._values[row, answer] = [
                str(fields[one].value) if one in fields else unread for one in labels
            ]
        return self._values[row, answer]


_SAYS = {GuidePart.TERM: Value.PRESENT, GuidePart.EXCLUSION: Value.ABSENT}


def _estimate(
    base: PhraseBase,
    store: Store,
    guide: Guide,
    holding: Sequence[str],
    drafts: Sequence[PromptVersion | str],
    run: RunRecord | None,
) -> Iterator[TriedPart]:
    """Yield the cases that hold the phrase and are not answered as a part would say."""
    label = guide.label
    outcomes = store.read_outcomes(run.id) if run else iter(())
    answers = {one.item_id: answer_about(one, label) for one in outcomes}
    for (part, value), draft in zip(_PARTS, drafts, strict=True):
        changed = _changed_guide(draft, guide)
        if isinstance(changed, str):
            yield TriedPart(part=part, value=value, problem=changed)
            continue
        says = str(value or _SAYS[part])
        changes = (
            TriedChange(
                case_id,
                label,
                answers.get(case_id, NOT_KNOWN),
                says,
                base.expected.get((case_id, label), ""),
            )
            for case_id in holding
        )
        differing = tuple(one for one in changes if one.before != says)
        yield TriedPart(part=part, value=value, changes=differing)


def holds(text: str, phrase: str) -> bool:
    """Whether a folded text holds a wording, as `rules` looks for its letters.

    Examples
    --------
    >>> holds("fluid at both bases", "Fluid ... base*")
    True
    >>> holds("effusions", "effusion")
    False
    """
    first, *others = _patterns(phrase)
    ends = [found.end() for found in first.finditer(text)]
    for part in others:
        # The nearest one or none, as `rules` has it: in a long text as fast as in many.
        places = [found.span() for found in part.finditer(text)] if ends else []
        following = ((end, bisect_left(places, (end,))) for end in ends)
        near = [(end, *places[at]) for end, at in following if at < len(places)]
        ends = sorted({stop for end, at, stop in near if _are_few(text, end, at)})
    return bool(ends)


def _are_few(text: str, start: int, end: int) -> bool:
    """Whether no more words than a gap may have stand between two places."""
    for _ in range(MAX_GAP_WORDS + 2):
        start = text.find(" ", start, end) + 1
        if not start:
            return True
    return False


@lru_cache(maxsize=8)
def _patterns(phrase: str) -> tuple[re.Pattern[str], ...]:
    parts = [tidy(one) for one in phrase.replace("…", GAP).split(GAP)]
    return tuple(re.compile(_bounded(one)) for one in parts if one.strip("*"))


def _bounded(part: str) -> str:
    text = re.escape(part.removesuffix("*"))
    if has_cjk(part):
        return text
    left = r"\b" if part[:1].isalnum() else ""
    right = r"\w*" if part.endswith("*") else r"\b" if part[-1:].isalnum() else ""
    return f"{left}{text}{right}"


def _find_run(
    workspace: WorkspacePaths,
    store: Store,
    version: PromptVersion,
    cohort: Cohort,
    engine: str,
) -> RunRecord | None:
    """Return the newest run that says what the prompt answers now, if there is one."""
    wanted = {version.digest}
    parent = find_parent(workspace, version) if version.draft else None
    wanted |= {parent.digest} if parent else set()
    return next(
        (
            run
            for run in store.find_runs(finished=True)
            if run.spec.prompt_digest in wanted
            and (run.spec.cohort, run.spec.engine) == (cohort.name, engine)
            and run.spec.cohort_digest == cohort.digest
            and not say_part(run)
        ),
        None,
    )


def phrase_data(found: PhraseTryout) -> dict[str, Any]:
    """Return a try of a phrase as JSON data: ids and answers, no text of a case."""
    return {
        "prompt": found.prompt,
        "cohort": found.cohort,
        "cases": found.cases,
        "engine": found.engine,
        "label": found.label,
        "phrase": found.phrase,
        "holding": found.holding,
        "estimated": found.estimated,
        "run": found.run or None,
        "parts": [
            {
                "part": one.part.value,
                "value": one.value.value if one.value else None,
                "problem": one.problem,
                "gained": one.gained,
                "lost": one.lost,
                "unjudged": one.unjudged,
                "ways": [list(way) for way in one.ways],
                "changes": [each._asdict() for each in one.changes],
                "others": [each._asdict() for each in one.others],
            }
            for one in found.parts
        ],
    }
