"""The result of a check, kept beside its draft, and whether it still holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from loop.core.check_findings import Finding
from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.files import read_text, write_atomic
from loop.core.paths import WorkspacePaths
from loop.engines.base import DEFAULT_THINKING
from loop.evaluate.protocol import protocol_digest
from loop.labels.cohort import Cohort, read_cohort
from loop.labels.expert_ratings import read_ratings_of
from loop.labels.reference import read_reference, require_random
from loop.prompts.catalog import read_version
from loop.prompts.version import PromptVersion
from loop.review.revise.changes import Changes, ShareCriterion
from loop.review.revise.check import Check, TargetOutcome, Unanswered
from loop.review.revise.draft_files import DraftLineage, beside, read_line
from loop.review.revise.draws import DrawEvidence, ShareName
from loop.review.revise.tries import TriesCount
from loop.review.submit import Anchor, read_anchors
from loop.run.asking import EngineOptions
from loop.run.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A draft measured against its parent, on a ground that is named."""

    draft: str
    """Reference of the draft."""

    parent: str
    """Reference of its parent."""

    ground: CheckInputs
    engine: str
    asking: Mapping[str, Any]
    """How the engine was asked: the fields of `EngineOptions` that are data."""

    lint: tuple[Finding, ...]
    check: Check | None
    """None when lint found errors: nothing was run."""

    changes: Changes
    runs: tuple[str, ...]
    """Ids of the parent's and the draft's run."""

    objections: tuple[str, ...]
    """What stands against a commit; empty when nothing does."""

    skipped: tuple[str, ...]
    """Cohorts that could not be looked at for copied wording."""

    by: str
    looks: tuple[int, ...] = ()
    """Draws at each look at this wording so far, the last look's among them."""

    time: str
    """UTC, ISO 8601."""

    tried: TriesCount | None = None
    """Wordings of the draft that were tried before, and on how many cases; None where
    none was."""

    @property
    def passed(self) -> bool:
        """Whether the draft may be committed as it is."""
        return not self.objections


class Recalled(NamedTuple):
    """A check that was kept, and whether it still holds."""

    checked: Checked
    stale: tuple[str, ...]
    """What has changed since, in words; empty while it holds."""


_ASKING = ("temperature", "max_tokens", "seed", "allow_unconstrained", "batch")


def asking_data(asking: EngineOptions) -> dict[str, Any]:
    """Return the fields of `asking` that are data; `read_asking` is its inverse."""
    told = {name: getattr(asking, name) for name in _ASKING}
    if asking.thinking != DEFAULT_THINKING:
        told["thinking"] = asking.thinking
    return told


def read_asking(checked: Checked) -> EngineOptions:
    """Return how the engine of a check was asked."""
    return EngineOptions(**checked.asking)


def keep_check(
    workspace: WorkspacePaths, draft: PromptVersion, checked: Checked
) -> None:
    """Keep `checked` beside `draft`, in place of an earlier one.

    Raises
    ------
    WriteError
        The workspace cannot be written.
    """
    text = TypeAdapter(Checked).dump_json(checked)
    write_atomic(beside(workspace, draft).check, text, mode=0o600)


def find_check(workspace: WorkspacePaths, draft: PromptVersion) -> Checked | None:
    """Return the last check of `draft`, stale or not; None if it has none.

    A file that something else wrote counts as none: checking again makes it anew.
    """
    try:
        text = read_text(beside(workspace, draft).check)
        return TypeAdapter(Checked).validate_json(text)
    except (DataError, ValidationError):
        return None


def recall_check(
    workspace: WorkspacePaths, store: Store, ref: str, engine: str = ""
) -> Recalled | None:
    """Return the last check of the draft `ref` and what has made it stale.

    Parameters
    ----------
    engine
        Engine the check is wanted for; empty for whichever it was.

    Raises
    ------
    DataError
        There is no such draft, or what it was checked on cannot be read.
    StoreError
        The store cannot be read.
    """
    draft = read_version(workspace, ref)
    checked = find_check(workspace, draft) if draft.draft else None
    if checked is None:
        return None
    line = read_line(workspace, ref)
    return Recalled(checked, name_stale(workspace, store, line, checked, engine))


def name_stale(
    workspace: WorkspacePaths,
    store: Store,
    line: DraftLineage,
    checked: Checked,
    engine: str = "",
) -> tuple[str, ...]:
    """Return what has changed since `checked`, in words; empty while it holds."""
    stale: list[str] = []
    if line.behind:
        stale.append(f"{line.newest.ref} was committed by {line.newest.author} since")
    if engine and engine != checked.engine:
        stale.append(f"it asked {checked.engine}, not {engine}")
    now = read_ground(workspace, store, line.draft, checked.ground.cohort)
    return (*stale, *name_changes(checked.ground, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInputs:
    """Everything that decides the outcome of a check, besides the engine."""

    draft_digest: str
    parent_digest: str
    cohort: str
    cohort_digest: str
    reference: int
    """Number of the reference version scored against; of pairs, of the ratings."""

    reference_digest: str
    protocol_digest: str
    verdicts: tuple[str, ...]
    """Ids of the verdicts whose cases are targeted."""

    anchors_digest: str
    """Over the pinned cases of the cohort."""

    not_comparable: tuple[str, ...] | None = None
    """Labels that the reference cannot judge, sorted; None in a check kept before this
    was asked."""


def read_ground(
    workspace: WorkspacePaths, store: Store, draft: PromptVersion, cohort: str
) -> CheckInputs:
    """Return what a check of `draft` on `cohort` would rest on now.

    Raises
    ------
    DataError
        The cohort, its reference or the protocol cannot be used.
    StoreError
        The store cannot be read.
    """
    about = read_cohort(workspace, cohort)
    basis = read_basis(workspace, about)
    return CheckInputs(
        draft_digest=draft.digest,
        parent_digest=draft.parent or "",
        cohort=cohort,
        cohort_digest=about.digest,
        reference=basis.number,
        reference_digest=basis.digest,
        protocol_digest=protocol_digest(workspace),
        verdicts=draft.verdicts,
        anchors_digest=digest_anchors(read_anchors(store, cohort)),
        not_comparable=tuple(sorted(about.not_comparable)),
    )


class CheckBasis(NamedTuple):
    """What the answers on a cohort are held against."""

    number: int
    """Of the reference version, or of the version of ratings."""

    digest: str


def read_basis(workspace: WorkspacePaths, cohort: Cohort) -> CheckBasis:
    """Return what is newest: the reference labels, or of pairs the experts' ratings.

    Raises
    ------
    DataError
        There is none, it was edited, or its cases are of a value sample.
    """
    if cohort.holds_pairs:
        ratings = read_ratings_of(workspace, cohort.name)
        return CheckBasis(ratings.number, ratings.digest)
    reference = require_random(read_reference(workspace, cohort.name))
    return CheckBasis(reference.number, reference.digest)


def digest_anchors(anchors: tuple[Anchor, ...]) -> str:
    """Sha256 over pinned cases and what is right in them, whatever their order."""
    return digest_json(
        sorted((a.case_id, a.label, a.value or "", *(a.counts or ())) for a in anchors)
    )


def name_changes(then: CheckInputs, now: CheckInputs) -> Iterator[str]:
    """Yield what has changed since a check, in words; nothing while it holds."""
    if then.draft_digest != now.draft_digest:
        yield "the draft was edited since"
    if then.parent_digest != now.parent_digest:
        yield "the draft has another parent now"
    if then.cohort_digest != now.cohort_digest:
        yield f"cohort {now.cohort} holds other cases now"
    if then.reference_digest != now.reference_digest:
        yield (
            f"it was scored against {then.cohort}:ref{then.reference}, and "
            f"{now.cohort}:ref{now.reference} is the newest reference"
        )
    if then.protocol_digest != now.protocol_digest:
        yield "the protocol was changed since"
    if then.verdicts != now.verdicts:
        yield "the draft names other verdicts now"
    if then.anchors_digest != now.anchors_digest:
        yield "other cases are pinned now"
    if then.not_comparable not in (None, now.not_comparable):
        labels = ", ".join(now.not_comparable or ()) or "none"
        yield f"the labels that the reference cannot judge are others now: {labels}"


def evidence(checked: Checked) -> dict[str, object]:
    """Return what a decision rests on, for the ledger: counts, names and run ids."""
    found: dict[str, object] = {
        "cohort": checked.ground.cohort,
        "engine": checked.engine,
        "runs": list(checked.runs),
        "not_searched_for_copies": list(checked.skipped),
    }
    if checked.tried:
        found["tried"] = checked.tried._asdict()
    return found | (summarise(checked.check) if checked.check else {})


def summarise(check: Check) -> dict[str, object]:
    """Return the counts of a check for the ledger: no case ids, no text."""
    if check.over_draws is not None:
        return _summarise_draws(check, check.over_draws)
    return {
        "cases": check.cases,
        "targets": {p.value: check.count(p) for p in TargetOutcome if check.count(p)},
        "anchors_broken": len(check.broken_anchors),
        "anchors_unanswered": len(check.unanswered_anchors),
        "anchors_missing": len(check.missing_anchors),
        "lost": check.lost,
        "gained": check.gained,
        "labels_worse": [one.label for one in check.labels if not one.passed],
        "judged_by_counts": check.judged_by(ShareCriterion.COUNTS),
        "not_judged": check.judged_by(ShareCriterion.NOTHING),
        "unanswered": _shares(check.unanswered),
    }


def _summarise_draws(check: Check, evidence: DrawEvidence) -> dict[str, object]:
    """Return the second form of a check in the ledger, which names its procedure."""
    surplus = evidence.surplus
    margins = [(one.label, test) for one in evidence.labels for test in one.margins]
    return {
        "form": 2,
        "procedure": (
            "harm: sign-flip test, Tarone, Holm; surplus: Miettinen-Nurminen by case; "
            "margins: Tango"
        ),
        "draws": evidence.draws,
        "look": evidence.look,
        "cases": check.cases,
        "targets": {p.value: check.count(p) for p in TargetOutcome if check.count(p)},
        "surplus": None
        if surplus is None
        else {
            "before": surplus.before,
            "after": surplus.after,
            "readings": surplus.readings,
            "interval": [f"{limit:.4f}" for limit in surplus.interval],
        },
        "anchors_broken": len(check.broken_anchors),
        "anchors_unanswered": len(check.unanswered_anchors),
        "anchors_missing": len(check.missing_anchors),
        "tests": evidence.tests,
        "tested": evidence.tested,
        "alpha": str(evidence.alpha),
        "harmed": [
            f"{one.label or 'rare labels'} {test.share.value}"
            for one in evidence.every()
            for test in one.harmed
        ],
        "not_shown": {
            share.value: [
                label
                for label, test in margins
                if test.share is share and not test.shown
            ]
            for share in (ShareName.ACCURACY, ShareName.SENSITIVITY)
        },
        "unanswered": _shares(check.unanswered),
    }


def _shares(unanswered: Unanswered) -> dict[str, str]:
    return {
        "before": f"{unanswered.before:.4f}",
        "after": f"{unanswered.after:.4f}",
    }
