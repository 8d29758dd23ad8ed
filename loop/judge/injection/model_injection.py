"""Errors and harmless rewriting that a language model writes, each checked by code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Field, Item, Status
from loop.engines.rules.judging import GreenCategory
from loop.engines.rules.report_findings import FindingReader
from loop.judge.injection.chance import Chance
from loop.judge.injection.error_edits import KINDS
from loop.judge.injection.injection_bank import InjectionBank
from loop.judge.injection.report_lines import (
    LinedReport,
    ReadFinding,
    read_findings,
)
from loop.judge.injection.stated_changes import (
    PlacedChanges,
    number_sentences,
    place_changes,
)
from loop.judge.injection.text_changes import TextChange
from loop.prompts.catalog import read_known
from loop.prompts.outputs.plausible import PLAUSIBLE, Plausible
from loop.prompts.outputs.report_changes import (
    REWRITING,
    ReportChanges,
    stated_rewrite,
)
from loop.prompts.version import PromptVersion
from loop.run.asking import EngineOptions
from loop.run.runner import PromptRunner, RunnerOptions

FOLDER: Final = "inject"
"""Folder of the store of answers, in the private part of a workspace."""

MOST_ATTEMPTS: Final = 5
"""How often a variant is asked for at most."""

PROMPTS: Final[Mapping[str, str]] = {
    **{category.value: f"inject_{letter}" for letter, category in KINDS.items()},
    REWRITING: "rewrite",
}
"""Kind of change to the prompt that asks for it."""

VALIDATOR: Final = "validate"

FEW_SENTENCES: Final = "fewer sentences in the report"
UNREADABLE: Final = "the answer cannot be read"
FAILED: Final = "the engine failed"
READ_OTHERWISE: Final = "the reader reads something else, too"
IMPLAUSIBLE: Final = "the validator calls it implausible"
NOT_VALIDATED: Final = "the validator's answer cannot be read"

_UNKNOWN: Final = "not stated"
_PURPOSES: Final[Mapping[str, str]] = {
    GreenCategory.FALSE_FINDING: "a finding that the patient does not have",
    GreenCategory.OMISSION: "a finding left out",
    GreenCategory.LOCATION: "another side or place of a finding",
    GreenCategory.SEVERITY: "another severity or size of a finding",
    GreenCategory.COMPARISON: "a comparison that was not made",
    GreenCategory.OMITTED_CHANGE: "a change since an earlier examination left out",
    REWRITING: "other words that say exactly the same, nothing more and nothing less",
}


class Wanted(NamedTuple):
    """A variant that is asked for."""

    case: str
    kind: str
    number: int


class WrittenVariant(NamedTuple):
    """A variant that passed every check."""

    wanted: Wanted
    candidate: str
    changes: tuple[TextChange, ...]
    attempt: int
    """Which attempt gave it, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """By whom variants were written and looked at."""

    engine: str
    engine_digest: str
    """Sha256 of the engine's identity and parameters."""

    validator: str
    validator_digest: str
    prompts: Mapping[str, str]
    """Reference of each prompt version that was asked, to its digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """How a model's variants came to be, in counts."""

    facts: ModelFacts
    attempts: Mapping[str, int]
    """By kind: answers that were asked for."""

    accepted: Mapping[int, int]
    """Number of the attempt to how many variants it gave."""

    rejected: Mapping[str, int]
    """Why answers were refused, also those that a later one took the place of."""

    read_otherwise: Mapping[str, int]
    """By kind: answers in which the reader saw more change than was stated."""

    asked: int
    """Prompts that the engines were asked, by this process."""

    cached: int
    """Prompts whose answer was there already."""

    def data(self) -> dict[str, Any]:
        """Return it as ``inject.json`` has it: counts and digests, no text."""
        facts = self.facts
        return {
            "engine": facts.engine,
            "engine_digest": facts.engine_digest,
            "validator": facts.validator,
            "validator_digest": facts.validator_digest,
            "prompts": dict(facts.prompts),
            "most_attempts": MOST_ATTEMPTS,
            "attempts": dict(self.attempts),
            "accepted_at": {str(one): count for one, count in self.accepted.items()},
            "rejected": dict(self.rejected),
        }


@dataclass(slots=True)
class _AttemptTally:
    attempts: Counter[str] = field(default_factory=Counter)
    accepted: Counter[int] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    otherwise: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    cached: int = 0


class ErrorWriter:
    """A language model that writes errors into reports, and one that looks at them.

    Make one with `open`; a context manager.
    """

    def __init__(
        self, writers: Mapping[str, PromptRunner], validator: PromptRunner
    ) -> None:
        """Prepare to ask; `open` says what each is."""
        self._writers = writers
        self._validator = validator
        self._tally = _AttemptTally()
        self._stack = ExitStack()

    @classmethod
    def open(
        cls,
        workspace: WorkspacePaths | None,
        kinds: Sequence[str],
        engine: str,
        validator: str = "",
        asking: EngineOptions | None = None,
    ) -> ErrorWriter:
        """Return a writer whose engines start with the first report.

        Parameters
        ----------
        workspace
            Whose prompts are asked, and where answers are kept, so that none is asked
            for twice; None for those shipped with ranloop, without a store.
        kinds
            What it is to write: ids of `PROMPTS`.
        engine
            Engine that writes, for example ``"openai:MODEL@URL"``.
        validator
            Engine that looks at what was written; empty for the same.
        asking
            How the engines are asked; None for greedily.

        Raises
        ------
        DataError
            A prompt is not there, or is answered in another contract.
        EngineError
            There is no such engine, or it is no language model.
        StoreError
            The store cannot be opened.
        """
        place = workspace or WorkspacePaths(bundled())
        contract = ReportChanges.name
        versions = {kind: _read(place, PROMPTS[kind], contract) for kind in kinds}
        looked_at = _read(place, VALIDATOR, Plausible.name)
        options = RunnerOptions(folder=FOLDER, about="text", retries=0)
        looking = RunnerOptions(folder=FOLDER, about="text")
        with ExitStack() as stack:
            first, *others = kinds
            runner = stack.enter_context(
                PromptRunner.open(workspace, versions[first], engine, asking, options)
            )
            writers = {first: runner}
            for kind in others:
                writers[kind] = runner.beside(versions[kind], options)
            if validator and validator != engine:
                second = stack.enter_context(
                    PromptRunner.open(workspace, looked_at, validator, asking, looking)
                )
            else:
                second = runner.beside(looked_at, looking)
            made = cls(writers, second)
            made._stack = stack.pop_all()
        return made

    def close(self) -> None:
        """Let go of the engines and the store; what was answered stays."""
        self._stack.close()

    def __enter__(self) -> ErrorWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def report(self) -> ModelReport:
        """How all that was asked for came to be; opens the engines."""
        tally = self._tally
        runners = [*self._writers.values(), self._validator]
        writer = runners[0]
        return ModelReport(
            facts=ModelFacts(
                engine=writer.engine,
                engine_digest=writer.identity,
                validator=self._validator.engine,
                validator_digest=self._validator.identity,
                prompts={one.version.ref: one.version.digest for one in runners},
            ),
            attempts=dict(sorted(tally.attempts.items())),
            accepted=dict(sorted(tally.accepted.items())),
            rejected=dict(sorted(tally.rejected.items())),
            read_otherwise=dict(sorted(tally.otherwise.items())),
            asked=tally.asked,
            cached=tally.cached,
        )

    def write(
        self,
        wanted: Sequence[Wanted],
        reports: Mapping[str, LinedReport],
        checker: VariantChecker,
        *,
        modality: str = "",
        region: str = "",
        language: str = "en",
        watch: Callable[[Iterable[Item]], Iterable[Item]] | None = None,
    ) -> tuple[list[WrittenVariant], dict[Wanted, str]]:
        """Return the variants that passed, and why each of the others did not.

        What is refused is asked for again, in another draw, `MOST_ATTEMPTS` times in
        all; the reason is that of the last attempt. An answer that was stored is not
        asked for again, whatever became of it.

        Parameters
        ----------
        reports
            Of every case that is wanted.
        checker
            Looks at answers before the validator does.
        modality, region
            Of the examinations, in words; empty where they are not known.
        watch
            Wraps the reports that are asked about, to show progress.

        Raises
        ------
        EngineError
            An engine as a whole failed; what it answered until then is kept.
        StoreError
            The store cannot be read or written.
        """
        about = {"modality": modality or _UNKNOWN, "region": region or _UNKNOWN}
        found: list[WrittenVariant] = []
        open_ = {one: "" for one in wanted}
        for one in wanted:
            if one.number > len(reports[one.case].lines):
                open_[one] = FEW_SENTENCES
        excluded = {one: why for one, why in open_.items() if why}
        left = [one for one in wanted if one not in excluded]
        reasons: dict[Wanted, str] = {}
        for attempt in range(MOST_ATTEMPTS):
            placed: dict[Wanted, PlacedChanges] = {}
            for kind in self._writers:
                own = [one for one in left if one.kind == kind]
                placed |= self._ask(
                    own, reports, about, checker, attempt, language, watch
                )
            problems = {one: got.problem for one, got in placed.items()}
            passed = [one for one in left if not problems[one]]
            problems |= self._validate(passed, placed, reports, about, language)
            for one in left:
                if problems[one]:
                    reasons[one] = problems[one]
                    self._tally.rejected[problems[one]] += 1
                    self._tally.otherwise[one.kind] += problems[one] == READ_OTHERWISE
                    continue
                got = placed[one]
                self._tally.accepted[attempt + 1] += 1
                found.append(
                    WrittenVariant(one, got.candidate, got.changes, attempt + 1)
                )
            left = [one for one in left if problems[one]]
            if not left:
                break
        return found, excluded | {one: reasons[one] for one in left}

    def _ask(
        self,
        wanted: Sequence[Wanted],
        reports: Mapping[str, LinedReport],
        about: Mapping[str, str],
        checker: VariantChecker,
        draw: int,
        language: str,
        watch: Callable[[Iterable[Item]], Iterable[Item]] | None,
    ) -> dict[Wanted, PlacedChanges]:
        """Return what an attempt gave for variants of one kind, checked by code."""
        if not wanted:
            return {}
        kind = wanted[0].kind
        runner = self._writers[kind]
        if draw:
            options = RunnerOptions(about="text", retries=0)
            runner = runner.beside(runner.version, options, draw=draw)
        texts = [
            {
                **about,
                "text": reports[one.case].text,
                "sentences": number_sentences(reports[one.case]),
                "number": str(one.number),
            }
            for one in wanted
        ]
        self._tally.attempts[kind] += len(wanted)
        answers = self._answers(runner, texts, language, watch)
        return {
            one: checker.check(reports[one.case], one, answer)
            if isinstance(answer, Mapping)
            else PlacedChanges("", (), answer)
            for one, answer in zip(wanted, answers, strict=True)
        }

    def _validate(
        self,
        passed: Sequence[Wanted],
        placed: Mapping[Wanted, PlacedChanges],
        reports: Mapping[str, LinedReport],
        about: Mapping[str, str],
        language: str,
    ) -> dict[Wanted, str]:
        """Return why the validator refuses variants; empty words where it does not."""
        texts = [
            {
                **about,
                "purpose": _PURPOSES[one.kind],
                "text": reports[one.case].text,
                "changes": _list_changes(placed[one].changes),
            }
            for one in passed
        ]
        said = {}
        answers = self._answers(self._validator, texts, language, None)
        for one, answer in zip(passed, answers, strict=True):
            if not isinstance(answer, Mapping):
                said[one] = NOT_VALIDATED if answer == UNREADABLE else answer
            else:
                said[one] = "" if answer[PLAUSIBLE].value else IMPLAUSIBLE
        return said

    def _answers(
        self,
        runner: PromptRunner,
        texts: Sequence[Mapping[str, str]],
        language: str,
        watch: Callable[[Iterable[Item]], Iterable[Item]] | None,
    ) -> list[Mapping[str, Field] | str]:
        """Return the fields of each answer, or why there are none."""
        if not texts:
            return []
        languages = [language] * len(texts)
        asked = runner.ask(texts, languages, watch)
        self._tally.asked += asked.asked
        self._tally.cached += asked.cached
        whole = runner.outcomes(texts, languages)
        found: list[Mapping[str, Field] | str] = []
        for brief, one in zip(asked.answers, whole, strict=True):
            if (
                brief is not None
                and brief.status is Status.ANSWERED
                and one is not None
            ):
                found.append(one.fields)
            elif brief is not None and brief.status is Status.UNPARSED:
                found.append(UNREADABLE)
            else:
                found.append(FAILED)
        return found


def _read(place: WorkspacePaths, name: str, contract: str) -> PromptVersion:
    """Return the newest version of a prompt, of the workspace or else shipped."""
    found = read_known(place, name).version
    if found.contract != contract:
        raise DataError(
            f"{found.ref} is answered in {found.contract}, and injection reads "
            f"{contract}. Give your prompt another name, or revise it."
        )
    return found


def _list_changes(changes: Sequence[TextChange]) -> str:
    """Return changes as the validator is shown them, in the order of the text."""
    lines = []
    for number, one in enumerate(changes, 1):
        before = f'"{one.before.strip()}"' if one.before.strip() else "nothing"
        after = f'"{one.after.strip()}"' if one.after.strip() else "nothing"
        lines.append(f"{number}. {before} became {after}")
    return "\n".join(lines)


class VariantChecker:
    """Looks at answers by code: what they state, and what a reader makes of it."""

    def __init__(self, bank: InjectionBank, reader: FindingReader) -> None:
        self._bank = bank
        self._reader = reader

    def check(
        self, report: LinedReport, wanted: Wanted, fields: Mapping[str, Field]
    ) -> PlacedChanges:
        """Return the changes of an answer, or why it is refused."""
        placed = place_changes(
            report,
            self._bank,
            stated_rewrite(fields),
            kind=wanted.kind,
            number=wanted.number,
        )
        if not placed.problem and self._reads_otherwise(report, wanted, placed):
            return PlacedChanges("", (), READ_OTHERWISE)
        return placed

    def _reads_otherwise(
        self, report: LinedReport, wanted: Wanted, placed: PlacedChanges
    ) -> bool:
        """Whether a reader finds a change in what should have stayed.

        A model writes about findings that the reader need not know, so the reader need
        not see the error itself. A false finding takes none away, an omission brings
        none, and neither is more findings than were asked for. Where a finding stays,
        it keeps its name and how certain it is. A rewriting reads the same in
        everything.
        """
        kind = wanted.kind
        try:
            after = read_findings(self._reader, placed.candidate)
        except EngineError:
            return True
        if kind == REWRITING:
            return after != report.read
        before, now = _names(report.read), _names(after)
        if kind == GreenCategory.FALSE_FINDING:
            return not before <= now or (now - before).total() > wanted.number
        if kind == GreenCategory.OMISSION:
            return not now <= before or (before - now).total() > wanted.number
        return before != now


def _names(found: Counter[ReadFinding]) -> Counter[tuple[str, bool]]:
    """Return findings by what they are and how certain."""
    names = Counter[tuple[str, bool]]()
    for one, count in found.items():
        names[one[:2]] += count
    return names


def list_wanted(
    cases: Iterable[str],
    kinds: Sequence[str],
    numbers: Sequence[int],
    *,
    most: int | None,
    seed: int,
) -> list[Wanted]:
    """Return the variants to ask for, in the order of the cases.

    Parameters
    ----------
    most
        Of each kind and number at most, drawn by `seed`; None for all.
    """
    chance = Chance(str(seed))
    known = list(cases)
    drawn: dict[tuple[str, int], set[str]] = {}
    for kind in kinds:
        for number in numbers:
            ranked = sorted(known, key=lambda one: chance.rank(f"{one}-{kind}{number}"))
            drawn[kind, number] = set(ranked if most is None else ranked[:most])
    return [
        Wanted(case, kind, number)
        for case in known
        for kind in kinds
        for number in sorted(numbers)
        if case in drawn[kind, number]
    ]


def name_variants(
    found: Iterable[WrittenVariant],
) -> Iterator[tuple[str, WrittenVariant]]:
    """Yield variants with their ids, as those that no model wrote are called."""
    letters = {category.value: letter for letter, category in KINDS.items()}
    for one in found:
        case, kind, number = one.wanted
        yield f"{case}-{letters.get(kind, kind)}{number}", one
