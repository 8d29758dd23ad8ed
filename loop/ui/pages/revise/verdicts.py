"""Step 1 of the page Revise: the open verdicts, and what each asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from loop.core.errors import DataError
from loop.labels.cohort import read_record
from loop.prompts.catalog import latest_version
from loop.prompts.diff import PromptChange, show_clarification, show_exemplar
from loop.prompts.version import can_exchange
from loop.review.status import KeptVerdict, find_open, group_by_label
from loop.review.verdict import RECORDED_ONLY, Edits, Judgement, Verdict
from loop.ui.pages.revise.kept import find_ticked
from loop.ui.pages.revise.state import ReviseState, is_dev
from loop.ui.show import show

CASES_SHOWN = 8
"""Case ids of one verdict that are listed."""


class _List(NamedTuple):
    """One list of edits and how its rows read."""

    kind: str
    added: str
    removed: str
    show: Callable[..., str]


_LISTS = (
    _List("term", "terms", "remove_terms", str),
    _List("exclusion", "exclusions", "remove_exclusions", str),
    _List(
        "clarification", "clarifications", "remove_clarifications", show_clarification
    ),
    _List("exemplar", "exemplars", "remove_exemplars", show_exemplar),
    _List("implies", "implies", "remove_implies", str),
)

JUDGED = {
    Judgement.MODEL_WRONG: "model wrong",
    Judgement.REFERENCE_WRONG: "reference wrong",
    Judgement.GUIDELINE_AMBIGUOUS: "guideline ambiguous",
    Judgement.SOURCE_TEXT_DEFECT: "text defect",
    Judgement.ANSWER_RIGHT: "nothing wrong",
}


class VerdictRow(NamedTuple):
    """One verdict."""

    kept: KeptVerdict
    judged: str
    recorded_only: bool
    asks: tuple[PromptChange, ...]
    cases: tuple[str, ...]
    against: tuple[str, ...]
    """Reviewers whose open verdict says otherwise of a case."""

    drafts: tuple[str, ...]
    """Open drafts that were built from it."""

    ticked: bool


class VerdictGroup(NamedTuple):
    """The verdicts of one label."""

    label: str
    name: str
    rows: tuple[VerdictRow, ...]

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Who gave them, each once."""
        return tuple(dict.fromkeys(row.kept.verdict.reviewer for row in self.rows))


class Sorted(NamedTuple):
    """The open verdicts by what they are for."""

    wording: tuple[KeptVerdict, ...]
    """To build a draft from."""

    reference: tuple[KeptVerdict, ...]
    """To correct the reference from."""


def sort_open(scene: ReviseState) -> Sorted:
    """Return the open verdicts on the prompt and cohort; none where not revised."""
    if not is_dev(scene.desk, scene.cohort):
        return Sorted((), ())
    found = find_open(
        scene.desk.workspace, scene.desk.store, scene.prompt, scene.cohort
    )
    wrong = [v for v in found if v.verdict.judgement is Judgement.REFERENCE_WRONG]
    return Sorted(tuple(v for v in found if v not in wrong), tuple(wrong))


def show_verdicts(scene: ReviseState) -> str:
    """Return the step as HTML."""
    found = sort_open(scene)
    ticked = find_ticked(scene.visit, scene.cohort)
    by_id = {one.id: one for one in (*found.wording, *found.reference)}
    drafts = _drafts_by_verdict(scene)

    def row(kept: KeptVerdict) -> VerdictRow:
        others = (by_id[one] for one in kept.conflicts if one in by_id)
        return VerdictRow(
            kept,
            JUDGED[kept.verdict.judgement],
            kept.verdict.judgement in RECORDED_ONLY,
            tuple(asked(kept.verdict)),
            tuple(case_id for case_id, _ in kept.pairs),
            tuple(dict.fromkeys(one.verdict.reviewer for one in others)),
            drafts.get(kept.verdict.id, ()),
            kept.id in ticked,
        )

    grouped = group_by_label(found.wording)
    return show(
        "revise_verdicts.html.jinja",
        prompt=scene.prompt,
        cohort=scene.cohort,
        dev=is_dev(scene.desk, scene.cohort),
        may=scene.may,
        folded=scene.info is not None,
        groups=[
            VerdictGroup(label, scene.names.get(label, label), tuple(map(row, rows)))
            for label, rows in grouped.items()
        ],
        reference=[row(kept) for kept in found.reference],
        next_reference=_next_reference(scene) if found.reference else 0,
        names=scene.names,
        most=CASES_SHOWN,
        total=len(by_id),
        **_contracts(scene),
    )


ANSWERED = {
    "label_values": "present, absent or uncertain for every label",
    "findings": "a list of the labels that are present or uncertain",
    "binary": "present or absent for every label, never uncertain",
}
"""Output contract to what an answer in it says."""


def _contracts(scene: ReviseState) -> dict[str, object]:
    """Return the contracts that a draft may be answered in, and the one of now."""
    try:
        newest = latest_version(scene.desk.workspace, scene.prompt)
    except DataError:
        return {"contracts": {}, "contract": ""}
    offered = ANSWERED if can_exchange(newest) else {}
    return {"contracts": offered, "contract": newest.contract}


def asked(verdict: Verdict) -> Iterator[PromptChange]:
    """Yield what a verdict asks for: changes of the guide, or of the reference."""
    if verdict.judgement is Judgement.REFERENCE_WRONG and verdict.correct_value:
        yield PromptChange("+", "the reference should say", verdict.correct_value.value)
    yield from _edits(verdict.edits)


def _edits(edits: Edits) -> Iterator[PromptChange]:
    for kind, added, removed, text in _LISTS:
        for row in getattr(edits, added):
            yield PromptChange("+", kind, text(row))
        for row in getattr(edits, removed):
            yield PromptChange("-", kind, str(row))


def _drafts_by_verdict(scene: ReviseState) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for info in scene.infos:
        for one in info.verdicts:
            found[one] = (*found.get(one, ()), info.ref)
    return found


def _next_reference(scene: ReviseState) -> int:
    return read_record(scene.desk.workspace, scene.cohort).newest + 1


def pick(verdicts: Sequence[KeptVerdict], ids: Sequence[str]) -> tuple[str, ...]:
    """Return those of `ids` that are among `verdicts`."""
    known = {one.id for one in verdicts}
    return tuple(one for one in ids if one in known)
