"""Errors and harmless rewriting put into reports: drawn, checked and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from loop.core.digests import digest_text
from loop.core.errors import DataError, EngineError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths, bundled
from loop.core.safe_text import quoted
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import REVISION
from loop.engines.rules.judging import GreenCategory
from loop.engines.rules.report_findings import FindingReader
from loop.engines.rules.weights import read_judging
from loop.judge.injection.chance import Chance
from loop.judge.injection.error_edits import KINDS, ErrorEditor
from loop.judge.injection.harmless import HarmlessKind, HarmlessRewriter
from loop.judge.injection.injection_bank import InjectionBank, ReadBank, read_bank
from loop.judge.injection.model_injection import (
    ErrorWriter,
    ModelReport,
    VariantChecker,
    list_wanted,
    name_variants,
)
from loop.judge.injection.report_lines import (
    LinedReport,
    ReadFinding,
    line_report,
    read_findings,
)
from loop.judge.injection.text_changes import (
    EditOption,
    TextChange,
    apply_changes,
    combine,
    fits_beside,
    why_wrong,
)
from loop.labels.cohort import CohortCase, cases_digest
from loop.labels.language import guess_language, has_words
from loop.prompts.catalog import read_version
from loop.prompts.outputs.report_changes import REWRITING

if TYPE_CHECKING:
    import pandas as pd

LONGEST: Final = 50_000
"""Characters of a report that errors are put into; the longest one has far fewer."""

MOST_ERRORS: Final = 9
"""Errors that one variant can have."""

SEVERITIES: Final = frozenset({1, 2})
"""How far off a wrong severity can be."""

FEW_PLACES: Final = "fewer places in the report"
NO_WORSE: Final = "no severity that is further off"
UNREAD: Final = "the reader reads something else, too"

EMPTY: Final = "empty"
FOREIGN: Final = "not in English"
SILENT: Final = "holds nothing to read"
NO_PLACE: Final = "no place for any change"
TOO_LONG: Final = f"longer than {LONGEST:,} characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionOptions:
    """What is put into reports."""

    errors: str = "".join(KINDS)
    """Letters of the categories of errors; empty for none."""

    numbers: tuple[int, ...] = (1,)
    """How many changes a variant has; one variant for each."""

    severities: tuple[int, ...] = (1,)
    """How far off a wrong severity is: 1 clearly, 2 further in the same direction; one
    variant for each."""

    harmless: bool = False
    """Whether every kind of rewriting that says the same is made as well."""

    negated: bool = False
    """Whether an omission denies its finding instead of leaving it out."""

    modality: str = "chest_xray"
    """Of the bank: which false findings are plausible."""

    most: int | None = None
    """Variants of each kind, number and severity at most, drawn among all; None for
    all."""

    seed: int = 0

    reread: bool = True
    """Whether a variant is left out in which the embedded reader reads something else,
    too. Then harmless ones read the same to it by construction, and it cannot be
    tested on them."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.errors) - KINDS.keys())
        if unknown or len(set(self.errors)) != len(self.errors):
            raise ValueError(
                f"errors {quoted(self.errors)} are not letters of {''.join(KINDS)}, "
                "each at most once"
            )
        if not self.errors and not self.harmless:
            raise ValueError("nothing is to be made: name errors, or harmless=True")
        wrong = [one for one in self.numbers if not 1 <= one <= MOST_ERRORS]
        if wrong or not self.numbers or len(set(self.numbers)) != len(self.numbers):
            raise ValueError(
                f"numbers of changes are from 1 to {MOST_ERRORS}, each once, and not "
                f"{', '.join(map(str, self.numbers)) or 'none'}"
            )
        far = self.severities
        if not far or not set(far) <= SEVERITIES or len(set(far)) != len(far):
            raise ValueError("severities are 1 and 2, each at most once")
        if far != (1,) and "d" not in self.errors:
            raise ValueError("severities are of errors d, and none are to be made")
        if self.most is not None and self.most < 1:
            raise ValueError(f"at most {self.most} variants are none")
        if self.seed < 0:
            raise ValueError(f"a seed of {self.seed} is below 0")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Ids of the kinds of change, errors first."""
        made = tuple(KINDS[letter].value for letter in sorted(self.errors))
        harmless = tuple(one.value for one in HarmlessKind)
        return made + harmless if self.harmless else made

    @property
    def written(self) -> tuple[str, ...]:
        """Ids of the kinds of change that a model is asked for, errors first."""
        made = tuple(KINDS[letter].value for letter in sorted(self.errors))
        return (*made, REWRITING) if self.harmless else made


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InjectedPair:
    """A report and a variant of it."""

    id: str
    reference_id: str
    reference: str
    candidate: str
    kind: str
    significant: bool
    number: int
    """How many errors, or rewritten places."""

    changes: tuple[TextChange, ...]
    """From the reference to the candidate, in the order of the text."""

    severity: int = 1
    """How far off it is among those of its kind, report and number."""


class UnmadeVariants(NamedTuple):
    """Variants that were not made, by kind, number and reason."""

    kind: str
    number: int
    reason: str
    variants: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Injection:
    """What was made of a source, and what was not."""

    pairs: tuple[InjectedPair, ...]
    options: InjectionOptions
    cases: int
    """Reports that there were."""

    unused: Mapping[str, int]
    """Reports into which nothing was put, by the reason."""

    left_out: tuple[UnmadeVariants, ...]
    tried: Mapping[str, int]
    """Places tried, by kind."""

    read_otherwise: Mapping[str, int]
    """Of those, where the reader of findings found that something else changed."""

    source_digest: str
    """Sha256 over ids and text digests, as of a cohort of the same cases."""

    language: str
    """Of the bank and of all reports that were used."""

    bank_version: int
    bank_digest: str
    wording_digest: str = ""
    """Of the file of other words; empty where the words are the bank's."""

    reader: Mapping[str, str] = field(default_factory=dict)
    """By what reports were read: revision, prompt version and its digest."""

    model: ModelReport | None = None
    """By which model variants were written, and how; None where none was asked."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Ids of the kinds of change, errors first."""
        return self.options.kinds if self.model is None else self.options.written

    @property
    def table(self) -> pd.DataFrame:
        """One row per pair, as in ``pairs.csv``."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "id": one.id,
                    "reference_id": one.reference_id,
                    "reference": one.reference,
                    "candidate": one.candidate,
                    "kind": one.kind,
                    "significant": one.significant,
                    "number": one.number,
                    "severity": one.severity,
                }
                for one in self.pairs
            ]
        )

    def _repr_html_(self) -> str:
        """Return the counts, for a notebook; no text."""
        import pandas as pd

        counts = Counter((one.kind, one.number) for one in self.pairs)
        rows = [(kind, number, n) for (kind, number), n in sorted(counts.items())]
        named = pd.DataFrame(rows, columns=["kind", "number", "pairs"])
        return str(named.to_html(index=False))


class _OpenReader(NamedTuple):
    reader: FindingReader
    about: Mapping[str, str]


@lru_cache(maxsize=1)
def _open_reader() -> _OpenReader:
    """Return what reads findings: as shipped, so that all machines read alike."""
    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    reader = FindingReader(
        version.guides, read_cues(bundled() / "labels"), read_judging()
    )
    about = {
        "engine": f"rules:{REVISION}",
        "guides": version.ref,
        "guides_digest": version.digest,
    }
    return _OpenReader(reader, about)


def inject_errors(
    texts: Mapping[str, str | None] | pd.Series[Any],
    options: InjectionOptions | None = None,
    *,
    languages: Mapping[str, str] | None = None,
    bank: Path | None = None,
    wording: Path | None = None,
    watch: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> Injection:
    """Put errors of a known kind and number into reports, and harmless rewriting.

    No model is asked. What is drawn depends on the seed, the id of the case and its
    text only, and not on the order of the cases or the machine. With several numbers,
    the variant with two errors has the one of the variant with one, and so on.

    Parameters
    ----------
    texts
        Case id to report; a pandas Series is one, too. No text is an empty report.
    options
        What is made; None for one error of each of the six kinds.
    languages
        Case id to ISO 639-1 code; None to guess. Only reports in the language of the
        bank are used.
    bank
        File of what is written; None for the one that ships.
    wording
        File of other words for it, see `read_bank`; None for the words of the bank.
    watch
        Wraps the ids, to show progress.

    Returns
    -------
    Injection
        Pairs whose changes give the candidate exactly, and what was left out and why.

    Raises
    ------
    DataError
        No report is in the language of the bank, two have the same id, or the bank is
        wrong.

    Examples
    --------
    >>> said = "The heart is normal in size. There is a small left pleural effusion."
    >>> made = inject_errors({"a": said}, InjectionOptions(errors="cd"))
    >>> for pair in made.pairs:
    ...     print(pair.id, pair.kind, pair.candidate)
    a-c1 location The heart is normal in size. There is a small right pleural effusion.
    a-d1 severity The heart is normal in size. There is a large left pleural effusion.
    """
    options = options or InjectionOptions()
    read = read_bank(bank, wording)
    opened = _open_reader()
    maker = _Maker(options, read.bank, opened.reader)
    known = _known(texts)
    unused = Counter[str]()
    pairs: list[InjectedPair] = []
    for case, report in _line_all(known, languages, read.bank, opened.reader, watch):
        made = [] if isinstance(report, str) else [*maker.variants(case, report)]
        pairs += made
        if isinstance(report, str):
            unused[report] += 1
        elif not made:
            unused[NO_PLACE] += 1
    _require_some(known, unused, read.bank.language)
    return Injection(
        pairs=tuple(_draw(pairs, options)),
        options=options,
        left_out=maker.left_out(),
        tried=dict(sorted(maker.tried.items())),
        read_otherwise=dict(sorted(maker.otherwise.items())),
        **_basis(known, unused, read, opened),
    )


def inject_by_model(
    texts: Mapping[str, str | None] | pd.Series[Any],
    writer: ErrorWriter,
    options: InjectionOptions | None = None,
    *,
    languages: Mapping[str, str] | None = None,
    bank: Path | None = None,
    region: str = "",
    watch: Callable[[Iterable[Any]], Iterable[Any]] | None = None,
) -> Injection:
    """Let a language model put errors of a known kind and number into reports.

    Each answer is held against the report by code, as `place_changes` says, then read
    by the embedded reader, then shown to the validator. One that is refused is asked
    for in another draw, five times in all; then the variant is left out and counted.
    The variant with two errors need not have the one of the variant with one.

    Parameters
    ----------
    texts, options, languages, bank
        As for `inject_errors`; the bank only tells what words for normal findings are.
        Of the variants of a kind and number, `options.most` are asked for.
    writer
        Who writes; see `ErrorWriter.open`. Its kinds are ``options.written``.
    region
        Region of the body that the reports are of, in words; empty where not known.
    watch
        Wraps what is asked about in each attempt, to show progress.

    Raises
    ------
    ValueError
        `options` ask for denials or severities further off, which a model is not asked
        for.
    DataError
        As for `inject_errors`.
    EngineError
        An engine as a whole failed; what it answered until then is kept.
    StoreError
        The store cannot be read or written.
    """
    options = options or InjectionOptions()
    if options.negated or not options.reread or options.severities != (1,):
        raise ValueError(
            "negated, severities and reread are for injection without a model"
        )
    read = read_bank(bank)
    opened = _open_reader()
    known = _known(texts)
    unused = Counter[str]()
    reports: dict[str, LinedReport] = {}
    for case, report in _line_all(known, languages, read.bank, opened.reader, iter):
        if isinstance(report, str):
            unused[report] += 1
        else:
            reports[case] = report
    _require_some(known, unused, read.bank.language)
    wanted = list_wanted(
        reports, options.written, options.numbers, most=options.most, seed=options.seed
    )
    found, excluded = writer.write(
        wanted,
        reports,
        VariantChecker(read.bank, opened.reader),
        modality=options.modality.replace("_", " "),
        region=region,
        language=read.bank.language,
        watch=watch,
    )
    place = {one: number for number, one in enumerate(wanted)}
    found.sort(key=lambda one: place[one.wanted])
    model = writer.report
    reasons = Counter((one.kind, one.number, why) for one, why in excluded.items())
    return Injection(
        pairs=tuple(
            InjectedPair(
                id=name,
                reference_id=one.wanted.case,
                reference=reports[one.wanted.case].text,
                candidate=one.candidate,
                kind=one.wanted.kind,
                significant=one.wanted.kind != REWRITING,
                number=one.wanted.number,
                changes=one.changes,
            )
            for name, one in name_variants(found)
        ),
        options=options,
        left_out=tuple(
            UnmadeVariants(kind, number, reason, count)
            for (kind, number, reason), count in sorted(reasons.items())
        ),
        tried=model.attempts,
        read_otherwise=model.read_otherwise,
        model=model,
        **_basis(known, unused, read, opened),
    )


class _InjectionBasis(TypedDict):
    """What an injection rests on, whoever writes."""

    cases: int
    unused: Mapping[str, int]
    source_digest: str
    language: str
    bank_version: int
    bank_digest: str
    wording_digest: str
    reader: Mapping[str, str]


def _basis(
    known: Mapping[str, str], unused: Counter[str], read: ReadBank, opened: _OpenReader
) -> _InjectionBasis:
    return _InjectionBasis(
        cases=len(known),
        unused=dict(sorted(unused.items())),
        source_digest=cases_digest(
            CohortCase(case, "", digest_text(text)) for case, text in known.items()
        ),
        language=read.bank.language,
        bank_version=read.bank.version,
        bank_digest=read.sha256,
        wording_digest=read.wording,
        reader=opened.about,
    )


def _known(texts: Mapping[str, str | None] | pd.Series[Any]) -> dict[str, str]:
    """Return the report of each case; no text is an empty one."""
    known = {
        str(case): text if isinstance(text, str) else "" for case, text in texts.items()
    }
    if len(known) != len(texts):
        raise DataError(
            f"ids that another report has: {len(texts) - len(known)} of "
            f"{counted(len(texts), 'report')}. Give every report a different id."
        )
    return known


def _line_all(
    known: Mapping[str, str],
    languages: Mapping[str, str] | None,
    bank: InjectionBank,
    reader: FindingReader,
    watch: Callable[[Iterable[str]], Iterable[str]],
) -> Iterator[tuple[str, LinedReport | str]]:
    """Yield each case with its report, or why nothing can be put into it."""
    for case in watch(known):
        text = known[case]
        reason = _why_unused(text, (languages or {}).get(case), bank.language)
        if reason:
            yield case, reason
            continue
        try:
            yield case, line_report(reader, bank, text)
        except EngineError:
            yield case, SILENT


def _require_some(
    known: Mapping[str, str], unused: Counter[str], language: str
) -> None:
    if known and unused[FOREIGN] == len(known):
        raise DataError(
            f"no report is in the language of the bank, {quoted(language)}. "
            "Name reports in that language, or a bank for theirs."
        )


def _why_unused(text: str, language: str | None, wanted: str) -> str:
    """Return why nothing can be put into a report; empty where it can."""
    if not has_words(text):
        return EMPTY
    if len(text) > LONGEST:
        return TOO_LONG
    return "" if (language or guess_language(text)) == wanted else FOREIGN


def _draw(
    pairs: Sequence[InjectedPair], options: InjectionOptions
) -> Iterator[InjectedPair]:
    """Yield at most so many pairs of each kind, number and severity, in their order.

    Severities are drawn of the same reports as far as these have them: one is compared
    with the other.
    """
    if options.most is None:
        yield from pairs
        return
    chance = Chance(str(options.seed))
    ranked = sorted(pairs, key=lambda one: chance.rank(_plain_id(one)))
    taken = Counter[tuple[str, int, int]]()
    chosen = set()
    for one in ranked:
        key = one.kind, one.number, one.severity
        if taken[key] < options.most:
            taken[key] += 1
            chosen.add(one.id)
    yield from (one for one in pairs if one.id in chosen)


def _plain_id(pair: InjectedPair) -> str:
    """Return the id of the variant whose errors are no further off."""
    return pair.id.removesuffix(f"s{pair.severity}") if pair.severity > 1 else pair.id


class _Maker:
    """Makes the variants of report after report, and counts what it could not."""

    def __init__(
        self, options: InjectionOptions, bank: InjectionBank, reader: FindingReader
    ) -> None:
        self._options = options
        self._reader = reader
        modality = bank.modality(options.modality)
        self._errors = ErrorEditor(bank, modality, negated=options.negated)
        self._harmless = HarmlessRewriter(bank)
        self._letters = {category.value: letter for letter, category in KINDS.items()}
        self._missing = Counter[tuple[str, int, str]]()
        self.tried = Counter[str]()
        self.otherwise = Counter[str]()

    def left_out(self) -> tuple[UnmadeVariants, ...]:
        """Return what was not made, and why."""
        return tuple(
            UnmadeVariants(kind, number, reason, count)
            for (kind, number, reason), count in sorted(self._missing.items())
        )

    def variants(self, case: str, report: LinedReport) -> Iterator[InjectedPair]:
        """Yield the variants of a report."""
        for kind in self._options.kinds:
            taken = self._take(case, kind, report)
            severe = kind == GreenCategory.SEVERITY
            for number in sorted(self._options.numbers):
                if len(taken) < number:
                    self._missing[kind, number, FEW_PLACES] += 1
                    continue
                for severity in sorted(self._options.severities) if severe else (1,):
                    options = taken[:number]
                    if severity > 1:
                        options = [one._replace(changes=one.worse) for one in options]
                    made = self._make(case, kind, report, options, severity)
                    if isinstance(made, str):
                        self._missing[kind, number, made] += 1
                    else:
                        yield made

    def _make(
        self,
        case: str,
        kind: str,
        report: LinedReport,
        options: Sequence[EditOption],
        severity: int,
    ) -> InjectedPair | str:
        """Return one variant, or why there is none."""
        number = len(options)
        if not all(one.changes for one in options):
            return NO_WORSE
        changes = combine(options)
        candidate = apply_changes(report.text, changes)
        reason = why_wrong(report.text, candidate, changes, kind=kind, number=number)
        if not reason and (number > 1 or severity > 1):
            # One alone was read when it was taken.
            reason = self._read_wrongly(kind, report, options, candidate)
        if reason:
            return reason
        name = f"{self._letters.get(kind, kind)}{number}"
        return InjectedPair(
            id=f"{case}-{name}" + (f"s{severity}" if severity > 1 else ""),
            reference_id=case,
            reference=report.text,
            candidate=candidate,
            kind=kind,
            significant=kind in self._letters,
            number=number,
            changes=changes,
            severity=severity,
        )

    def _take(self, case: str, kind: str, report: LinedReport) -> list[EditOption]:
        """Return as many options as the largest number asks for, as far as there are.

        Each one alone leaves all else as the reader reads it.
        """
        source = self._errors if kind in self._letters else self._harmless
        chance = Chance(str(self._options.seed), case, kind)
        taken: list[EditOption] = []
        for one in source.options(kind, report, chance):
            if len(taken) == max(self._options.numbers):
                break
            if not fits_beside(one, taken):
                continue
            self.tried[kind] += 1
            candidate = apply_changes(report.text, one.changes)
            if self._read_wrongly(kind, report, [one], candidate):
                self.otherwise[kind] += 1
                continue
            taken.append(one)
        return taken

    def _read_wrongly(
        self,
        kind: str,
        report: LinedReport,
        options: Sequence[EditOption],
        candidate: str,
    ) -> str:
        """Return that a variant reads otherwise in what should have stayed.

        Of a rewriting nothing may, of an error only the finding that it is about. That
        the reader sees the error itself is not asked for.
        """
        if not self._options.reread:
            return ""
        try:
            found = read_findings(self._reader, candidate)
        except EngineError:
            return UNREAD
        keys = frozenset().union(*(one.keys for one in options))
        before, after = report.read, found
        if kind == GreenCategory.FALSE_FINDING:
            return "" if before <= after else UNREAD
        if kind == GreenCategory.OMISSION:
            same = after <= before and after.total() < before.total()
            return "" if same else UNREAD
        if kind in self._letters:
            same = _only_names(before, keys) == _only_names(after, keys)
        else:
            same = before == after
        return "" if same else UNREAD


def _only_names(
    found: Counter[ReadFinding], keys: frozenset[str]
) -> Counter[tuple[object, ...]]:
    """Return findings as read; of `keys` only what they are and how certain."""
    names = Counter[tuple[object, ...]]()
    for one, count in found.items():
        names[one[:2] if one[0] in keys else one] += count
    return names
