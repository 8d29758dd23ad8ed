"""What a search is asked for, what it found, and what it came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from loop.core.config import read_config
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.documents.numbers import NOT_ESTIMABLE
from loop.optimize.estimate import PARTS, NestedEstimate
from loop.optimize.nested_search import AcceptedScore, GuideEffect, SearchEffort
from loop.optimize.reflect import require_language_model
from loop.optimize.search_labels import FAILING
from loop.optimize.search_record import SearchSpec
from loop.optimize.splits import FOLDS
from loop.optimize.terms import TermProposal
from loop.prompts.version import PromptVersion
from loop.run.cost import EngineUse, RunCost, asked_model, price_use

PROPOSALS: Final = 60
"""Terms and exclusions that are accepted at most, where nothing else is said."""

CASES: Final = 300
"""Cases that each search may score, where nothing else is said."""


class Optimizer(StrEnum):
    """What proposes wordings."""

    TERMS = "terms"
    GEPA = "gepa"
    MIPRO = "mipro"
    BOOTSTRAP = "bootstrap"
    NEAREST = "nearest"

    @property
    def reflects(self) -> bool:
        """Whether it asks a language model what to propose."""
        return self in (Optimizer.GEPA, Optimizer.MIPRO)

    def check_reflects(self, engine: str) -> None:
        """Refuse an engine that cannot propose texts for it, if it needs one.

        Raises
        ------
        EngineError
            It is no language model; names the optimizers that need none.
        """
        if self.reflects:
            others = [one.value for one in Optimizer if not one.reflects]
            require_language_model(engine, asked_by=self.value, others=others)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Packages that its proposals depend on."""
        if self is Optimizer.TERMS:
            return ("ahocorasick-rs", "numpy", "scipy")
        return ("dspy", "gepa", "optuna", "scikit-learn")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to search for, from what, and with what."""

    prompt: str
    """An extractor or a judge: the newest version, ``"extractor"``, or a draft of it;
    with `study` any version, for example ``"extractor@v1"``."""

    cohort: str
    """Dev cohort."""

    optimizer: Optimizer = Optimizer.TERMS
    labels: tuple[str, ...] | None = None
    """Labels whose guides may change; `FAILING` for those that fail their gate; empty
    for all that are wrong somewhere; None for all with terms, else `FAILING`."""

    engine: str = "rules"
    """Engine that answers."""

    reflect: str = ""
    """Engine that proposes, for optimizers that need one."""

    budget: int | None = None
    """With terms the proposals that are accepted at most; else cases that each search
    may score, one candidate on one case each: there is one search a split, and one more
    where these were better. None for `PROPOSALS` or `CASES`."""

    splits: int = FOLDS
    """Nested splits; fewer than `FOLDS` leave cases without an estimate."""

    seed: int = 0
    study: bool = False
    """Whether to report only, from any version: no draft is made."""

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 1:
            raise ValueError(f"budget must be >= 1, got {self.budget}")
        if self.splits < 1:
            raise ValueError(f"splits must be >= 1, got {self.splits}")

    @property
    def wanted(self) -> tuple[str, ...]:
        """`labels` as said, or the default."""
        if self.labels is not None:
            return self.labels
        return () if self.optimizer is Optimizer.TERMS else (FAILING,)

    @property
    def limit(self) -> int:
        """`budget` as said, or the default."""
        if self.budget is not None:
            return self.budget
        return PROPOSALS if self.optimizer is Optimizer.TERMS else CASES


_NEED_EXEMPLARS: Final = (Optimizer.BOOTSTRAP, Optimizer.NEAREST)


class KeptWording(NamedTuple):
    """A wording as the parent with these texts in place."""

    guides: tuple[Guide, ...]
    """Those that differ from the parent's."""

    system: str | None
    """The system template; None where it is the parent's."""

    effects: tuple[GuideEffect, ...] = ()
    """One of each guide and of the system template; none of mined terms, which say
    theirs one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFindings:
    """What a finished search found, as it is kept: private, without text of a case."""

    labels: tuple[str, ...]
    """Labels whose guides could change, those that fail their gate first."""

    estimate: NestedEstimate
    kept: tuple[KeptWording, ...]
    """What becomes drafts, the best first; empty where nothing is better."""

    proposals: tuple[TermProposal, ...]
    """Mined terms, those that promise the most first; none of other optimizers."""

    curve: tuple[AcceptedScore, ...]
    scored: int
    """Different wordings that were scored, the parent not counted."""

    effort: SearchEffort

    @property
    def candidates(self) -> int:
        """All that was tried: wordings that were scored, and terms that were tested."""
        return self.effort.tested + self.scored


FINDINGS: Final[TypeAdapter[SearchFindings]] = TypeAdapter(SearchFindings)
"""Reads and writes the result of a finished search."""

ENGINES: Final[TypeAdapter[tuple[EngineUse, ...]]] = TypeAdapter(tuple[EngineUse, ...])
"""Reads and writes what a finished search asked, of the answering engine first."""


class AskedEngine(NamedTuple):
    """What a search asked one engine, and what that cost."""

    what: str
    """``"answers"`` or ``"proposes"``."""

    use: EngineUse
    cost: RunCost | None
    """Of all answers, stored ones included, by the prices of today."""

    @property
    def is_model(self) -> bool:
        """Whether it reads tokens at all; `rules` does not."""
        return asked_model(self.use.engine) is not None

    @property
    def cost_words(self) -> str:
        """What it cost; ``"unknown"`` without a price, or with uncounted tokens."""
        if not self.is_model:
            return NOT_ESTIMABLE
        if self.cost is None:
            return "unknown"
        return f"{self.cost.amount:,.4f} {self.cost.currency}"

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Of the prompts and of the answers; None where they are not known."""
        if not (self.is_model and self.use.counted):
            return None
        return self.use.used.prompt_tokens, self.use.used.completion_tokens

    @property
    def data(self) -> dict[str, Any]:
        """The same as JSON data."""
        prompt, output = self.tokens or (None, None)
        return {
            "engine": self.use.engine,
            "requests": self.use.requests,
            "stored": self.use.cached,
            "unanswered": self.use.unanswered,
            "prompt_tokens": prompt,
            "output_tokens": output,
            "cost": self.cost.amount if self.cost else None,
            "currency": self.cost.currency if self.cost else "",
        }


def price_engines(
    workspace: WorkspacePaths, uses: Sequence[EngineUse]
) -> tuple[AskedEngine, ...]:
    """Return what a search asked, with what that costs by the prices of today.

    Parameters
    ----------
    uses
        As `ENGINES` reads them: the answering engine first.

    Raises
    ------
    DataError
        The settings of this machine are malformed.
    """
    prices = read_config(workspace).prices
    return tuple(
        AskedEngine(what, use, price_use(use, prices))
        for what, use in zip(("answers", "proposes"), uses, strict=False)
    )


class FoundDraft(NamedTuple):
    """A draft that a search made, checked."""

    ref: str
    objections: tuple[str, ...]
    """What its regression check says against it; empty where it passed."""

    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReport:
    """What a search came to."""

    spec: SearchSpec
    findings: SearchFindings
    engines: tuple[AskedEngine, ...]
    """What was asked: of the answering engine, then of the one that proposes, if one
    does; none where an earlier version searched, which did not count."""

    not_estimable: tuple[str, ...]
    """Labels below the protocol's minimum of positives: nothing is claimed of them."""

    found: tuple[PromptVersion, ...]
    """The wordings that are better, the best first."""

    expected_excess: float
    """By how much the accuracy of the best of so many candidates on one label is
    overstated where it was chosen, if all are equally good."""

    remembered: bool
    """Whether it was found before, and nothing was asked."""

    stale: tuple[str, ...] = ()
    """What has changed since it began, in words."""

    drafts: tuple[FoundDraft, ...] = ()
    """Those that were made, or that say the same already, the best first."""

    @property
    def better(self) -> bool:
        """Whether a wording was kept."""
        return bool(self.findings.kept)

    @property
    def words(self) -> str:
        """How it ended, in one line."""
        findings = self.findings
        if not findings.labels:
            asked = self.spec.settings.get("labels")
            # A category of a judge has no gate: it fails where it is wrong.
            gates = not findings.estimate.counts_errors
            if gates and isinstance(asked, list) and FAILING in asked:
                return (
                    "nothing to search for: no label that can be estimated fails its "
                    "gate; try --labels all"
                )
            return "nothing to search for: no label that can be estimated is wrong"
        if not self.better and findings.estimate.better:
            return (
                "the search gains on unseen cases, but its last run, over all cases, "
                "found nothing better: no draft"
            )
        if not self.better:
            why = ""
            if self.spec.optimizer in _NEED_EXEMPLARS and not findings.scored:
                why = (
                    ": no approved exemplar could be added"
                    if findings.effort.proposed
                    else ": no exemplar is approved for these labels"
                )
            return f"no better prompt found{why}"
        if not self.drafts:
            return "a better prompt was found; no draft: this is a study"
        return counted(len(self.drafts), "draft")

    @property
    def data(self) -> dict[str, Any]:
        """The report as JSON data."""
        findings, estimate = self.findings, self.findings.estimate
        effort, agreement = findings.effort, estimate.agreement
        return {
            "prompt": self.spec.prompt,
            "cohort": self.spec.cohort,
            "engine": self.spec.engine,
            "optimizer": self.spec.optimizer,
            "seed": self.spec.seed,
            "search": self.spec.key,
            "better": self.better,
            "remembered": self.remembered,
            "stale": list(self.stale),
            "labels": list(findings.labels),
            "not_estimable": list(self.not_estimable),
            "candidates": findings.candidates,
            "expected_excess": self.expected_excess,
            "effort": {**effort._asdict(), "refused": dict(effort.refused)},
            "asked": {one.what: one.data for one in self.engines},
            "parts": {part: estimate.mean(part)._asdict() for part in PARTS},
            "score": estimate.score,
            "estimate": {
                "parent": estimate.parent._asdict(),
                "found": estimate.found._asdict(),
                "gain": estimate.gain._asdict(),
                "kappa_gain": estimate.kappa_gain._asdict(),
                "cases": estimate.cases,
                "left_out": estimate.left_out,
            },
            "agreement": None
            if agreement is None
            else agreement._asdict()
            | {
                name: getattr(agreement, name)._asdict()
                for name in ("parent", "found", "gain")
            },
            "per_label": [one._asdict() for one in estimate.labels],
            "curve": [one._asdict() for one in findings.curve],
            "proposals": [one.data for one in findings.proposals],
            "drafts": [
                {
                    "ref": one.ref,
                    "objections": list(one.objections),
                    "notes": list(one.notes),
                }
                for one in self.drafts
            ],
        }
