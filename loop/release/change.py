"""What a release changes against what is in use: wording, and answers that got worse.

The words are those of a predetermined change control plan: what was modified, of which
class, and what it did to every label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from loop.core.digests import digest_json
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.evaluate.compare import Comparison, LabelChange, compare_runs
from loop.evaluate.gates import GateVerdict
from loop.evaluate.inputs import read_inputs
from loop.prompts.catalog import find_parent, read_version
from loop.prompts.diff import PromptChange, VersionDiff, diff_data, diff_versions
from loop.prompts.version import PromptVersion
from loop.release.candidate import Candidate, Watching, ask_draws
from loop.release.facts import ChangedLabelFacts, ChangeFacts, WorseFacts
from loop.release.released import Released, current_release
from loop.review.revise.draws import (
    DrawEvidence,
    DrawnAnswers,
    DrawnVerdict,
    weigh_draws,
)
from loop.run.asking import HeldEngine, has_chance

_CLASSES: Mapping[str, str] = {
    "term": "R1",
    "exclusion": "R1",
    "definition": "R2",
    "clarification": "R2",
    "implies": "R2",
    "name": "R2",
    "order": "R2",
    "exemplar": "R3",
}


class Base(NamedTuple):
    """What a candidate is held against: the release in use, else its parent."""

    release: Released | None
    version: PromptVersion | None
    """None for the first version of a prompt."""


def find_base(workspace: WorkspacePaths, version: PromptVersion) -> Base:
    """Return the release of the prompt in use, else the parent of `version`.

    Raises
    ------
    DataError
        The release in use is of a version that is no longer here.
    """
    release = current_release(workspace, version.name)
    if release is not None and release.digest != version.digest:
        return Base(release, read_version(workspace, release.ref))
    return Base(None, find_parent(workspace, version))


class Compared(NamedTuple):
    """A candidate beside what it is held against, on the dev cohort."""

    base: Base
    comparison: Comparison | None
    """None for the first version of a prompt."""

    over_draws: DrawEvidence | None = None
    """What several draws of both showed, for an engine with chance in it."""

    @property
    def losses(self) -> tuple[str, ...]:
        """What the candidate may have lost by more than the protocol allows.

        Over several draws: what it has lost by the evidence, and, if the protocol wants
        that, on which labels it is not shown to be no worse.
        """
        if self.comparison is None or self.base.version is None:
            return ()
        if self.over_draws is not None:
            return tuple(self._drawn_losses(self.over_draws, self.base.version.ref))
        worse = [
            row.name
            for row in self.comparison.labels
            if row.judged and _balance(row) < 0 and row.verdict is not GateVerdict.PASS
        ]
        if not worse:
            return ()
        return (
            f"{', '.join(worse)}: may be worse than in {self.base.version.ref} by more "
            "than the protocol's margin",
        )

    def _drawn_losses(self, evidence: DrawEvidence, base: str) -> Iterator[str]:
        if harmed := list(evidence.describe_harm()):
            yield f"evidence that it is worse than {base}: {'; '.join(harmed)}"
        open_ones = [
            one.label
            for one in evidence.labels
            if one.verdict in (DrawnVerdict.NOT_SHOWN, DrawnVerdict.INSUFFICIENT)
        ]
        if self.comparison and self.comparison.protocol.not_worse and open_ones:
            yield (
                f"{', '.join(open_ones)}: not shown to be no worse than in {base} by "
                "the protocol's margins, which it demands of a release (`not_worse`)"
            )


def compare_with_base(
    workspace: WorkspacePaths,
    candidate: Candidate,
    engine: HeldEngine,
    actor: Actor,
    watching: Watching,
) -> Compared:
    """Ask the same of what the candidate is held against, and compare the answers.

    Answers that the store has are taken.

    Raises
    ------
    DataError
        What it is held against is no longer here, or was edited.
    EngineError
        The engine cannot answer.
    """
    base = find_base(workspace, candidate.version)
    if base.version is None:
        return Compared(base, None)
    cohort = candidate.evaluation.cohort.name
    before = ask_draws(workspace, base.version.ref, cohort, engine, actor, watching)
    after = candidate.runs
    return Compared(
        base,
        compare_runs(workspace, before[0], after[0]),
        _weigh(workspace, before, after) if has_chance(engine) else None,
    )


def _weigh(
    workspace: WorkspacePaths, before: Sequence[str], after: Sequence[str]
) -> DrawEvidence:
    """Return what the draws show, without the first where there are more.

    On draw 0 of the version before, cases were chosen that the candidate was to put
    right.
    """
    sides = [
        [read_inputs(workspace, run) for run in runs[1:] or runs]
        for runs in (before, after)
    ]
    drawn = DrawnAnswers(*(tuple(one.judged_pairs for one in side) for side in sides))
    return weigh_draws(drawn, {}, sides[0][0].protocol)


class DiffFacts(NamedTuple):
    """What a version changes, in words: fields of the changes of both forms."""

    previous: str
    from_ref: str
    classes: list[str]
    labels: list[ChangedLabelFacts]
    diff_digest: str
    rollback: str


def diff_facts(version: PromptVersion, base: Base) -> DiffFacts:
    """Return what `version` changes against `base`, in words."""
    diff = diff_versions(base.version, version) if base.version else None
    return DiffFacts(
        previous=base.release.name if base.release else "",
        from_ref=base.version.ref if base.version else "",
        classes=list(_classes(diff)) if diff else [],
        labels=_labels(diff) if diff else [],
        diff_digest=digest_json(diff_data(diff)) if diff else "",
        rollback=_rollback(base),
    )


def change_facts(version: PromptVersion, compared: Compared) -> ChangeFacts:
    """Return what `version` changes, in words and in answers on the dev cohort."""
    rows = compared.comparison.labels if compared.comparison else ()
    judged = [row for row in rows if row.judged]
    return ChangeFacts(
        **diff_facts(version, compared.base)._asdict(),
        improved=[row.label for row in judged if _balance(row) > 0],
        unchanged=[row.label for row in judged if _balance(row) == 0],
        worse=[_worse(row) for row in judged if _balance(row) < 0],
        harm=None
        if compared.over_draws is None
        else list(compared.over_draws.describe_harm()),
    )


def _rollback(base: Base) -> str:
    if base.release:
        return base.release.name
    return base.version.ref if base.version else ""


def _classes(diff: VersionDiff) -> Iterable[str]:
    kinds = {change.kind for guide in diff.guides for change in guide.changes}
    yield from sorted({_CLASSES.get(kind, "R2") for kind in kinds})
    if diff.templates:
        yield "template"
    if diff.settings:
        yield "plan"


def _labels(diff: VersionDiff) -> list[ChangedLabelFacts]:
    return [
        ChangedLabelFacts(
            label=guide.label,
            added=_signed(guide.changes, "+"),
            removed=_signed(guide.changes, "-"),
            changed=0,
        )
        for guide in diff.guides
    ]


def _signed(changes: Sequence[PromptChange], sign: str) -> list[str]:
    return [f"{one.kind}: {one.text}" for one in changes if one.sign == sign]


def _balance(row: LabelChange) -> int:
    return row.accuracy.difference.gained - row.accuracy.difference.lost


def _worse(row: LabelChange) -> WorseFacts:
    interval = row.accuracy.interval
    return WorseFacts(
        label=row.label,
        before=row.f1_before,
        after=row.f1_after,
        lost=row.accuracy.difference.lost,
        gained=row.accuracy.difference.gained,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
    )
