"""Which of two systems a judge prefers, asked about each case in both orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from loop import __version__
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Status
from loop.judge.judge import FOLDER
from loop.judge.shots import find_shared_pairs, shot_notes, shots_data
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.rubric_rating import PREFERENCE, SIDES, RubricPreference
from loop.prompts.shot_records import Shots
from loop.prompts.version import PromptVersion
from loop.run.asking import EngineOptions
from loop.run.execute import Problem
from loop.run.pool_shots import UNKNOWN_PATIENTS, require_apart
from loop.run.runner import ItemAnswer, PromptRunner, RunnerOptions, Watch
from loop.score.records import Joined
from loop.stats.intervals import Estimate, clopper_pearson

_INPUTS: Final = ("candidate_a", "candidate_b")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairwiseResult:
    """What a judge prefers, case by case."""

    ref: str
    digest: str
    engine: str
    identity: str
    systems: tuple[str, str]
    case_ids: tuple[str, ...]
    """Cases for which both systems have a candidate."""

    preferred: tuple[tuple[str, str], ...]
    """For each case, the system preferred when the first system is shown first, and
    when the second is; empty without a readable answer."""

    confidence: float = 0.95
    problems: tuple[Problem, ...] = ()
    """Why answers are unreadable; the examples name no case."""

    shots: Shots | None = None
    """Which examples the judge is shown."""

    patients_compared: bool = True
    """Whether the patients of the cases could be compared with those of the shots."""

    @property
    def unanswered(self) -> int:
        """Cases without a readable answer in one order or both."""
        return sum("" in one for one in self.preferred)

    @property
    def changed(self) -> int:
        """Cases for which the other system is preferred when the order is reversed."""
        return sum(
            "" not in one and len(set(one)) == len(one) for one in self.preferred
        )

    @property
    def changed_to_first(self) -> int:
        """Those of `changed` in which the candidate shown first is always preferred."""
        return self.preferred.count(self.systems)

    def wins(self, system: str) -> int:
        """Return for how many cases a system is preferred in both orders."""
        return self.preferred.count((system, system))

    @property
    def share(self) -> Estimate:
        """Share of the decided cases in which the first system is preferred.

        Decided are those with the same answer in both orders. Limits are exact
        (Clopper-Pearson), over cases. None without a decided case.
        """
        first, second = map(self.wins, self.systems)
        if not first + second:
            return Estimate(None, None, None, "not estimable: no case is decided")
        limits = clopper_pearson(first, first + second, confidence=self.confidence)
        return Estimate(first / (first + second), *limits)


def is_pairwise(version: PromptVersion) -> bool:
    """Whether a judge says which of two candidates is better."""
    return isinstance(get_contract(version.contract), RubricPreference)


def compare_pairwise(
    joined: Joined,
    workspace: WorkspacePaths | None,
    version: PromptVersion,
    engine: str = "rules",
    asking: EngineOptions | None = None,
    *,
    watch: Watch | None = None,
) -> PairwiseResult:
    """Return which of two systems a judge prefers, case by case.

    Each case is asked about twice, once in each order: a preference that changes with
    the order is one for a place. A case that one of the systems lacks is not asked
    about.

    Parameters
    ----------
    joined
        References, and the candidates of exactly two systems, as texts.
    workspace
        Where answers are kept; None: nowhere.
    watch
        Wraps the prompts that have to be asked, to show progress.

    Raises
    ------
    DataError
        The judge does not compare two candidates, there are not two systems, one side
        has labels instead of texts, or no case has candidates of both.
    OverlapError
        A case shares its id, its patient or its reference with a shot of the judge.
    EngineError
        The engine is not available, or failed as a whole; what it answered until then
        is kept.
    StoreError
        The store cannot be read or written.
    """
    if not is_pairwise(version):
        raise DataError(
            f"{version.ref} does not compare two candidates: its contract is "
            f"{version.contract}. Name rating_pairwise."
        )
    if len(joined.systems) != len(SIDES):
        raise DataError(
            f"{version.ref} compares two systems, but {len(joined.systems)} were "
            "given. Give two files of candidates, A=FILE B=FILE."
        )
    references = joined.reference.texts
    first, second = (one.texts for one in joined.systems)
    if references is None or first is None or second is None:
        raise DataError(
            "a judge compares texts, but labels were given. Give files with a column "
            "text."
        )
    rows = [
        row
        for row, texts in enumerate(zip(references, first, second, strict=True))
        if None not in texts
    ]
    if not rows:
        raise DataError(
            "no case has candidates of both systems. Check that both files use the "
            "same ids."
        )
    shared = find_shared_pairs(workspace, version, joined)
    require_apart(version, shared, "Leave these cases out, or choose other shots.")
    orders = ((first, second), (second, first))
    items = [
        {
            "reference": references[row] or "",
            **{
                name: side[row] or "" for name, side in zip(_INPUTS, order, strict=True)
            },
        }
        for order in orders
        for row in rows
    ]
    languages = [joined.languages[row] for row in rows] * len(orders)
    options = RunnerOptions(folder=FOLDER, fields=(PREFERENCE,), about="reference")
    runner = PromptRunner.open(workspace, version, engine, asking, options)
    try:
        asked = runner.ask(items, languages, watch)
        facts = runner.engine, runner.identity
    finally:
        runner.close()
    names = joined.systems[0].name, joined.systems[1].name
    told = [_chosen(one) for one in asked.answers]
    return PairwiseResult(
        ref=version.ref,
        digest=version.digest,
        engine=facts[0],
        identity=facts[1],
        systems=names,
        case_ids=tuple(joined.case_ids[row] for row in rows),
        preferred=tuple(
            (_name(straight, names), _name(turned, names[::-1]))
            for straight, turned in zip(
                told[: len(rows)], told[len(rows) :], strict=True
            )
        ),
        problems=asked.problems,
        shots=version.shots,
        patients_compared=shared.patients_compared,
    )


def _chosen(answer: ItemAnswer | None) -> str:
    """Return A or B; empty without a readable answer."""
    if answer is None or answer.status is not Status.ANSWERED:
        return ""
    return str(answer.values[0])


def _name(side: str, names: Sequence[str]) -> str:
    return names[SIDES.index(side)] if side in SIDES else ""


def pairwise_rows(found: PairwiseResult) -> list[tuple[str, str]]:
    """Return the counts with their names, for a table of two columns."""
    first, second = found.systems
    changed, to_first = found.changed, found.changed_to_first
    return [
        ("cases", str(len(found.case_ids))),
        (f"{first} preferred in both orders", str(found.wins(first))),
        (f"{second} preferred in both orders", str(found.wins(second))),
        ("changed with the order", str(changed)),
        ("of these, whichever was first", str(to_first)),
        ("of these, whichever was second", str(changed - to_first)),
        ("without a readable answer", str(found.unanswered)),
    ]


def pairwise_notes(found: PairwiseResult) -> list[str]:
    """Return what a reader of the numbers must know, as sentences."""
    told = []
    if found.shots is not None:
        told += shot_notes(found.shots, found.engine)
        if not found.patients_compared:
            told.append(UNKNOWN_PATIENTS)
    told += [
        f"{one.text} ({counted(one.cases, 'prompt')})" for one in found.problems[:3]
    ]
    return told


def pairwise_data(found: PairwiseResult) -> dict[str, Any]:
    """Return the result as JSON data; ids and names only."""
    share = found.share
    return {
        "format": 1,
        "ranloop": __version__,
        "judge": {
            "prompt": found.ref,
            "digest": found.digest,
            "engine": found.engine,
            "identity": found.identity,
            **({"shots": shots_data(found.shots)} if found.shots else {}),
        },
        "systems": list(found.systems),
        "cases": len(found.case_ids),
        "preferred": {name: found.wins(name) for name in found.systems},
        "share": {
            "system": found.systems[0],
            "value": share.value,
            "low": share.low,
            "high": share.high,
            "confidence": found.confidence,
        },
        "changed_with_the_order": found.changed,
        "of_these_the_first": found.changed_to_first,
        "unanswered": found.unanswered,
        "problems": [
            {"text": one.text, "prompts": one.cases} for one in found.problems
        ],
        "by_case": [
            {"id": case, "in_order": straight or None, "turned": turned or None}
            for case, (straight, turned) in zip(
                found.case_ids, found.preferred, strict=True
            )
        ],
    }
