"""What the page Revise shows, component by component."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import DataError
from loop.core.people.users import Right
from loop.evaluate.compare import measure_regression
from loop.evaluate.protocol import protocol_digest, read_protocol
from loop.labels.cohort import read_record
from loop.optimize.decisions import (
    DraftSearch,
    GuideProposal,
    ProposalDecision,
    find_search,
    read_decisions,
)
from loop.optimize.estimate import PARTS
from loop.optimize.terms import TermProposal
from loop.prompts.catalog import latest_version, list_prompts
from loop.prompts.diff import PromptChange, show_clarification, show_exemplar
from loop.prompts.instructions import FrozenBlock, list_frozen
from loop.prompts.outputs.base import CONTRACTS, list_exchangeable
from loop.prompts.version import CallPlan, PromptVersion, can_exchange
from loop.review.revise.blocked import Blocked
from loop.review.revise.changes import (
    CaseChange,
    LabelCheck,
    ShareCheck,
    ShareCriterion,
)
from loop.review.revise.check import Check, CheckTarget, TargetOutcome
from loop.review.revise.check_record import Recalled
from loop.review.revise.draft import (
    DraftCheckStatus,
    DraftInfo,
    Shown,
    find_engine_counter,
    find_fate,
    read_by,
    render_shown,
)
from loop.review.revise.draft_files import DraftOrigin, read_line
from loop.review.revise.draws import POWER
from loop.review.revise.merge import Conflict, merge_versions
from loop.review.status import KeptVerdict, group_by_label
from loop.review.verdict import RECORDED_ONLY, Edits, Judgement, Verdict
from loop.stats.intervals import Interval
from loop.ui.background import JobProgress
from loop.ui.html import notice, show
from loop.ui.pages.base import SAME
from loop.ui.pages.revise.state import (
    INSTRUCTIONS,
    SETTINGS,
    OpenedDraft,
    ReviseState,
    UnsavedGuide,
    check_progress,
    commit_key,
    find_check,
    find_failed,
    find_running,
    find_ticked,
    find_typed,
    find_why,
    guide_mark,
    is_dev,
    is_running,
    keep_draft_open,
    read_open_verdicts,
    read_state,
)
from loop.ui.tryout_panel import TryTurn, render_tryout
from loop.ui.wiring import Visit


class ReviseOutputs(NamedTuple):
    """An update for each component of this name in `ReviseComponents`."""

    opened: Any = SAME
    timer: Any = SAME
    said: Any = SAME
    verdicts: Any = SAME
    drafts: Any = SAME
    draft: Any = SAME
    proposals: Any = SAME
    editing: Any = SAME
    label: Any = SAME
    writing: Any = SAME
    guide: Any = SAME
    setting: Any = SAME
    plan: Any = SAME
    contract: Any = SAME
    parts: Any = SAME
    note: Any = SAME
    trying: Any = SAME
    try_engine: Any = SAME
    keep_label: Any = SAME
    tried: Any = SAME
    heard: Any = SAME
    checking: Any = SAME
    asking: Any = SAME
    engine: Any = SAME
    run: Any = SAME
    check: Any = SAME
    decision: Any = SAME
    deciding: Any = SAME
    why: Any = SAME
    override: Any = SAME
    commit: Any = SAME
    confirm: Any = SAME


class ReviseMessage(NamedTuple):
    """What there is to say of what was just done."""

    said: str = ""
    """HTML, above everything."""

    notes: tuple[str, ...] = ()
    """Remarks on the draft."""

    blocked: tuple[Blocked, ...] = ()
    """Verdicts that a draft could not be built from."""


NO_MESSAGE = ReviseMessage()


def show_page(
    visit: Visit,
    prompt: str | None,
    cohort: str | None,
    ref: str,
    *,
    label: str = "",
    message: ReviseMessage = NO_MESSAGE,
) -> ReviseOutputs:
    """Return the whole page for a prompt and cohort, with the draft `ref` open.

    Where the draft is gone, the page says what became of it.

    Raises
    ------
    LoopError
        Something cannot be read; the page stays as it was.
    """
    if not prompt or not cohort or prompt not in list_prompts(visit.context.workspace):
        return _nothing()
    # Asked first: what ends while the rest is read is shown at the next look.
    running = bool(ref) and is_running(visit.context, ref)
    state = replace(read_state(visit, prompt, cohort, ref, label), running=running)
    said = message.said
    if ref and state.info is None:
        keep_draft_open(visit, prompt, cohort, "")
        said += show_fate(visit, ref)
    return _fill(state, message._replace(said=said))


def _nothing() -> ReviseOutputs:
    hidden = gr.Column(visible=False)
    empty = notice(
        "Add a cohort under Files, or with `ranloop cohort import`.",
        title="No cohort yet",
    )
    return ReviseOutputs(
        opened=OpenedDraft(),
        timer=gr.Timer(active=False),
        said=empty,
        verdicts="",
        drafts="",
        draft="",
        proposals="",
        editing=hidden,
        checking=hidden,
        deciding=hidden,
        decision="",
        trying=hidden,
        tried="",
        heard="",
    )


def _fill(state: ReviseState, message: ReviseMessage) -> ReviseOutputs:
    verdicts = show_verdicts(state, message.blocked)
    outputs = ReviseOutputs(
        opened=state.opened,
        timer=gr.Timer(active=state.running),
        said=message.said,
        verdicts=verdicts,
        drafts=show_drafts(state),
        draft=show_draft_panel(state, message.notes),
        proposals=show_proposals(state),
        confirm=gr.Row(visible=False),
    )
    outputs = _with_trying(_with_editor(outputs, state), state)
    return _with_decision(_with_check(outputs, state), state)


TRY_TURN = TryTurn("revise-try-turn")
"""The button that tries the open draft, or stops the try."""


def _with_trying(outputs: ReviseOutputs, state: ReviseState) -> ReviseOutputs:
    made = state.drafted.draft if state.drafted else None
    if made is None or not state.may:
        hidden = gr.Column(visible=False)
        return outputs._replace(trying=hidden, tried="", heard="")
    names = [(state.names.get(one, one), one) for one in made.labels]
    label = state.label if state.label in made.labels else made.labels[0]
    return outputs._replace(
        trying=gr.Column(visible=True),
        # What was chosen stays: a draft that is saved is tried with the same again.
        try_engine=gr.Dropdown(choices=list(state.engines)),
        keep_label=gr.Dropdown(choices=names, value=label),
        tried=show_try_button(made),
        heard="",
    )


def show_try_button(draft: PromptVersion, said: str = "") -> str:
    """Return the button that tries a draft on what it is made for."""
    turn = TRY_TURN
    if not draft.verdicts:
        turn = TRY_TURN._replace(ask="Try it on the pinned cases")
    return render_tryout(turn=turn, said=said)


def _with_editor(outputs: ReviseOutputs, state: ReviseState) -> ReviseOutputs:
    shown = state.may and state.drafted is not None
    if not shown or state.drafted is None:
        return outputs._replace(editing=gr.Column(visible=False))
    labels = state.drafted.draft.labels
    choices = [
        ("General instructions", INSTRUCTIONS),
        ("Call plan and contract", SETTINGS),
        *((state.names.get(one, one), one) for one in labels),
    ]
    return show_editor(
        outputs._replace(
            editing=gr.Column(visible=True),
            label=gr.Dropdown(choices=choices, value=state.label),
        ),
        state,
    )


def show_editor(outputs: ReviseOutputs, state: ReviseState) -> ReviseOutputs:
    """Return `outputs` with what is edited in the editor, or what was begun."""
    typed = find_typed(state.visit, state.opened.draft, state.label)
    if typed and typed.text == state.guide:
        typed = None  # what was typed last was kept after it had been saved
    text = typed.text if typed else state.guide
    setting = state.label == SETTINGS
    if setting and state.drafted:
        draft = state.drafted.draft
        plan, contract = _read_settings(text) or (draft.plan, draft.contract)
        outputs = outputs._replace(
            plan=gr.Radio(choices=_choices(PLANS), value=plan),
            contract=gr.Radio(choices=_choices(_offered(draft)), value=contract),
        )
    return outputs._replace(
        writing=gr.Column(visible=not setting),
        guide="" if setting else text,
        setting=gr.Column(visible=setting),
        parts=show_parts(state),
        note=show_note(state, typed),
    )


_SETTINGS = re.compile(r"plan: (\w*)\ncontract: (\w*)\n")


def _read_settings(text: str) -> tuple[str, str] | None:
    """Return plan and contract as `settings_text` writes them, if they are known."""
    found = _SETTINGS.fullmatch(text)
    known = found and found[1] in PLANS and found[2] in CONTRACTS
    return (found[1], found[2]) if found and known else None


def _choices(words: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(f"{name}: {meaning}", name) for name, meaning in words.items()]


def show_parts(state: ReviseState) -> str:
    """Return who reads what is in the editor, and what of it is frozen, as HTML."""
    if state.drafted is None:
        return ""
    draft = state.drafted.draft
    reading = read_by(draft)
    if state.label == INSTRUCTIONS:
        shown = {"instructions": reading["instructions"]}
    elif state.label == SETTINGS:
        shown = {one: reading[one] for one in ("plan", "contract")}
    else:
        shown = {one: reading[one] for one in _GUIDE_PARTS}
    frozen: tuple[FrozenBlock, ...] = ()
    if state.label == INSTRUCTIONS:
        with suppress(DataError):
            frozen = list_frozen(draft)
    return show(
        "revise_parts.html.jinja",
        shown=shown,
        frozen=frozen,
        setting=state.label == SETTINGS,
        instructions=state.label == INSTRUCTIONS,
    )


_GUIDE_PARTS = (
    *("definition", "counts", "does not count", "uncertain when", "term", "exclusion"),
    *("clarification", "exemplar", "implies", "lexicon"),
)


def _with_check(outputs: ReviseOutputs, state: ReviseState) -> ReviseOutputs:
    if state.info is None or state.drafted is None:
        return outputs._replace(checking=gr.Column(visible=False))
    changed = not state.drafted.diff.empty
    ready = changed and not state.info.behind and not state.running
    checked = state.recalled.checked if state.recalled else None
    engine = checked.engine if checked else state.engines[0]
    choices = list(dict.fromkeys((engine, *state.engines)))
    return outputs._replace(
        checking=gr.Column(visible=True),
        asking=gr.Row(visible=state.may),
        engine=gr.Dropdown(choices=choices, value=engine),
        run=gr.Button(interactive=ready),
        check=show_check_panel(state),
    )


def show_check_panel(state: ReviseState) -> str:
    """Return the running check, why the last one failed, or what it found."""
    if state.info is None:
        return ""
    job = find_check(state.context, state.info.ref)
    progress = check_progress(job) if job else None
    if progress and not progress.finished:
        return show_progress(progress, "Checking")
    seen = max(state.info.when, state.checked.time if state.checked else "")
    # What failed before the draft was edited, or checked again, is no news.
    late = job is not None and (job.ended or "") >= seen
    said = ""
    if progress and late:
        said = show_failed(progress, "The check was not finished")
    return said + show_checked(state)


def _with_decision(outputs: ReviseOutputs, state: ReviseState) -> ReviseOutputs:
    if state.info is None:
        return outputs._replace(deciding=gr.Column(visible=False), decision="")
    checked = state.checked
    objects = bool(checked and checked.check and checked.objections)
    open_to = checked is not None and checked.check is not None
    return outputs._replace(
        decision=show_decision(state),
        deciding=gr.Column(visible=state.may),
        why=find_why(state.visit, state.info.ref),
        override=gr.Checkbox(value=False, visible=objects),
        commit=gr.Button(
            value="Commit" if state.info.behind else f"Commit as {next_version(state)}",
            interactive=open_to and not state.running,
        ),
    )


def next_version(state: ReviseState) -> str:
    """Return the reference the open draft would be committed as."""
    if state.drafted is None:
        return "a version"
    parent = state.drafted.parent
    return f"{parent.name}@v{parent.number + 1}"


def show_decision(state: ReviseState) -> str:
    """Return what a commit would mean just now, as HTML."""
    if state.info is None:
        return ""
    key = commit_key(state.info.ref)
    running = find_running(state.context, key)
    if running:
        return show_progress(running, f"Committing {next_version(state)}")
    failed = find_failed(state.context, key)
    said = show_failed(failed, "Not committed") if failed else ""
    return said + show(
        "revise_decision.html.jinja",
        info=state.info,
        version=next_version(state),
        recalled=state.recalled,
        checked=state.checked,
        empty=state.drafted is None or state.drafted.diff.empty,
        actor=state.actor,
        may=state.may,
    )


def show_fate(visit: Visit, ref: str, kept: str = "") -> str:
    """Return what became of a draft that is not there any more, as HTML."""
    fate = find_fate(visit.context.workspace, ref)
    return show("revise_fate.html.jinja", ref=ref, fate=fate, kept=kept)


def error_message(text: str, title: str) -> str:
    """Return what somebody has to know before they try again, as HTML."""
    return notice(text, kind="error", title=title)


def blocked_message(number: int, rest: int) -> str:
    """Return that verdicts cannot be applied, and what the others wait for, as HTML."""
    one = number == 1
    others = (
        f"Only the other {rest} {'is' if rest == 1 else 'are'} ticked now: press the "
        f"button again to build a draft from {'it' if rest == 1 else 'them'}."
        if rest
        else "No other was ticked."
    )
    return error_message(
        f"No draft was made. The list says why beside {'it' if one else 'each'}. "
        f"{others} Withdraw in Review what cannot be applied, or say it in other "
        "words.",
        f"{number} verdict{'' if one else 's'} cannot be applied",
    )


def success_message(text: str, title: str = "") -> str:
    """Return what was done, as HTML."""
    return notice(text, kind="good", title=title)


VERDICT_CASES = 8
"""Case ids of one verdict that are listed."""


class _EditList(NamedTuple):
    """One list of edits and how its rows read."""

    kind: str
    added: str
    removed: str
    show: Callable[..., str]


_EDIT_LISTS = (
    _EditList("term", "terms", "remove_terms", str),
    _EditList("exclusion", "exclusions", "remove_exclusions", str),
    _EditList(
        "clarification", "clarifications", "remove_clarifications", show_clarification
    ),
    _EditList("exemplar", "exemplars", "remove_exemplars", show_exemplar),
    _EditList("implies", "implies", "remove_implies", str),
)

JUDGEMENT_WORDS = {
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
    blocked: str
    """Why it cannot be applied, where that was just found; else empty."""


class VerdictGroup(NamedTuple):
    """The verdicts of one label."""

    label: str
    name: str
    rows: tuple[VerdictRow, ...]

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Who gave them, each once."""
        return tuple(dict.fromkeys(row.kept.verdict.reviewer for row in self.rows))


def show_verdicts(state: ReviseState, blocked: Sequence[Blocked] = ()) -> str:
    """Return step 1, the open verdicts, as HTML; those that are blocked say why."""
    reasons = {one.id: one.reason for one in blocked}
    found = read_open_verdicts(state)
    ticked = find_ticked(state.visit, state.cohort)
    by_id = {one.id: one for one in (*found.wording, *found.reference)}
    drafts = _drafts_by_verdict(state)

    def row(kept: KeptVerdict) -> VerdictRow:
        others = (by_id[one] for one in kept.conflicts if one in by_id)
        return VerdictRow(
            kept,
            JUDGEMENT_WORDS[kept.verdict.judgement],
            kept.verdict.judgement in RECORDED_ONLY,
            tuple(asked(kept.verdict)),
            tuple(case_id for case_id, _ in kept.pairs),
            tuple(dict.fromkeys(one.verdict.reviewer for one in others)),
            drafts.get(kept.verdict.id, ()),
            kept.id in ticked,
            reasons.get(kept.id, ""),
        )

    general = [one for one in found.wording if one.verdict.edits.general_rules]
    grouped = group_by_label(one for one in found.wording if one not in general)
    groups = [
        VerdictGroup(label, state.names.get(label, label), tuple(map(row, rows)))
        for label, rows in grouped.items()
    ]
    if general:
        rows = tuple(map(row, general))
        groups.insert(0, VerdictGroup("", "General instructions", rows))
    newest = _newest(state)
    return show(
        "revise_verdicts.html.jinja",
        prompt=state.prompt,
        cohort=state.cohort,
        dev=is_dev(state.context, state.cohort),
        may=state.may,
        folded=state.info is not None,
        groups=groups,
        labels=len(grouped),
        general=len(general),
        reading=read_by(newest) if newest else {},
        reference=[row(kept) for kept in found.reference],
        next_reference=_next_reference(state) if found.reference else 0,
        names=state.names,
        most=VERDICT_CASES,
        total=len(by_id),
        contracts=_offered(newest) if newest else {},
        contract=newest.contract if newest else "",
    )


PLANS = {
    CallPlan.JOINT.value: "one call that asks for every label",
    CallPlan.PER_LABEL.value: "one call for each label",
}
"""Call plan to what it does."""


def _newest(state: ReviseState) -> PromptVersion | None:
    """Return the newest version; None where it cannot be read."""
    try:
        return latest_version(state.context.workspace, state.prompt)
    except DataError:
        return None


def _offered(version: PromptVersion) -> Mapping[str, str]:
    """Return the contracts in which a version may be answered, and what they say.

    At least the one of now. Answers in another one say the same, and it takes a frozen
    block that says how to answer.
    """
    if version.contract not in CONTRACTS:
        return {version.contract: "as now"}
    own = CONTRACTS[version.contract]
    names = list_exchangeable(own) if can_exchange(version) else (version.contract,)
    return {name: CONTRACTS[name].summary for name in names}


def asked(verdict: Verdict) -> Iterator[PromptChange]:
    """Yield what a verdict asks for: changes of the guide, or of the reference."""
    if verdict.judgement is Judgement.REFERENCE_WRONG and verdict.correct_value:
        yield PromptChange("+", "the reference should say", verdict.correct_value.value)
    yield from _edits(verdict.edits)


def _edits(edits: Edits) -> Iterator[PromptChange]:
    for kind, added, removed, text in _EDIT_LISTS:
        for row in getattr(edits, added):
            yield PromptChange("+", kind, text(row))
        for row in getattr(edits, removed):
            yield PromptChange("-", kind, str(row))
    for rule in edits.general_rules:
        yield PromptChange("+", "general rule", rule)


def _drafts_by_verdict(state: ReviseState) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for info in state.infos:
        for one in info.verdicts:
            found[one] = (*found.get(one, ()), info.ref)
    return found


def _next_reference(state: ReviseState) -> int:
    return read_record(state.context.workspace, state.cohort).newest + 1


CHECK_MARKS = {
    DraftCheckStatus.PASSED: ("PASS", "check passed"),
    DraftCheckStatus.OBJECTIONS: ("FAIL", "check objects"),
    DraftCheckStatus.STALE: ("INSUFFICIENT", "check out of date"),
    DraftCheckStatus.NEVER: ("INSUFFICIENT", "not checked"),
}
"""Each state of a check as a glyph and in words."""


class NewerVersion(NamedTuple):
    """What was committed since a draft was begun, and where the two clash."""

    newest: PromptVersion
    conflicts: tuple[Conflict, ...]


def show_drafts(state: ReviseState) -> str:
    """Return the list of open drafts as HTML."""
    return show(
        "revise_drafts.html.jinja",
        prompt=state.prompt,
        infos=list(reversed(state.infos)),
        opened=state.info.ref if state.info else "",
        standing=CHECK_MARKS,
        may=state.may,
    )


def show_draft_panel(state: ReviseState, notes: tuple[str, ...] = ()) -> str:
    """Return the open draft as HTML, with `notes` of what was just done to it."""
    if state.info is None:
        return ""
    drafted = state.drafted
    if drafted is None:
        return _render_broken(state.info)
    return show(
        "revise_draft.html.jinja",
        info=state.info,
        drafted=drafted,
        names=state.names,
        notes=tuple(dict.fromkeys((*notes, *drafted.notes))),
        reading=read_by(drafted.draft),
        behind=_behind(state),
        shown=_render_messages(state),
        may=state.may,
    )


PROPOSAL_CASES = 5
"""Case ids for a proposal, and against it, that are listed."""


class ProposalRow(NamedTuple):
    """One proposal of an optimizer."""

    proposal: TermProposal | GuideProposal
    name: str
    """Of its label, or that of the instructions."""

    decision: ProposalDecision | None
    """None while it is open."""


def show_proposals(state: ReviseState, said: str = "") -> str:
    """Return what an optimizer proposed for the open draft, as HTML.

    Empty where a person began the draft.

    Parameters
    ----------
    said
        What was just decided, in words.
    """
    if state.info is None or state.drafted is None:
        return ""
    if state.info.origin != DraftOrigin.OPTIMIZER:
        return ""
    rows: list[ProposalRow] = []
    search: DraftSearch | None = None
    try:
        search = find_search(state.context.workspace, state.drafted.draft)
        if search is not None:
            kept = state.context.kept_verdicts(search.cohort)
            decided = read_decisions(state.context.workspace, kept, search)
            found: tuple[TermProposal | GuideProposal, ...] = (
                *search.proposals,
                *search.guides,
            )
            for one in found:
                name = state.names.get(one.label, one.label)
                if one.label not in state.drafted.draft.labels:
                    name = "General instructions"
                rows.append(ProposalRow(one, name, decided.get(one.id)))
    except DataError as error:
        title = "What the optimizer proposed cannot be read"
        return notice(str(error), kind="error", title=title)
    return show(
        "revise_proposals.html.jinja",
        search=search,
        parts=PARTS,
        rows=rows,
        most=PROPOSAL_CASES,
        changed=len(state.drafted.diff.guides),
        said=said,
        # A whole guide is decided on by editing the draft.
        may=state.may
        if search and search.guides
        else state.visit.user.may(Right.JUDGE),
    )


def _render_broken(info: DraftInfo) -> str:
    return notice(
        info.problem or "Its files were removed just now. Open the page again.",
        kind="error",
        title=f"{info.ref} cannot be used",
    )


def _behind(state: ReviseState) -> NewerVersion | None:
    """Return what the draft has to be brought to; None while its parent is newest."""
    if state.info is None or not state.info.behind:
        return None
    line = read_line(state.context.workspace, state.info.ref)
    merged = merge_versions(line.parent, line.draft, line.newest, {})
    return NewerVersion(line.newest, merged.conflicts)


def _render_messages(state: ReviseState) -> Shown | None:
    """Return the messages a model receives; None where they cannot be rendered."""
    if state.drafted is None:
        return None
    counter = find_engine_counter(state.context.workspace, state.engines[0])
    try:
        return render_shown(state.drafted.draft, counter)
    except DataError:
        return None


def show_note(state: ReviseState, typed: UnsavedGuide | None, error: str = "") -> str:
    """Return what is said below the editor, as HTML.

    Parameters
    ----------
    typed
        A text that was begun and not saved.
    error
        Why the text was not saved.
    """
    moved = typed is not None and typed.guide != guide_mark(state.guide)
    lint = state.drafted.lint if state.drafted and not typed else ()
    return show(
        "revise_note.html.jinja",
        found=[one for one in lint if one.where in _places(state.label)],
        error=error,
        typed=typed,
        moved=moved,
        current=state.guide if error and moved else "",
        author=state.drafted.draft.author if state.drafted else "",
        name=state.editing,
    )


def _places(label: str) -> frozenset[str]:
    """Return where lint says that a finding is which concerns what is edited."""
    if label in (INSTRUCTIONS, SETTINGS):
        return frozenset({"system.jinja", "user.jinja", "templates"})
    return frozenset({f"guide {label}"})


CHANGED_CASES = 60
"""ChangedCases of one kind and label that are listed; the others are counted."""

TARGET_OUTCOMES = (
    (TargetOutcome.FIXED, "fixed"),
    (TargetOutcome.IMPROVED, "improved"),
    (TargetOutcome.ALREADY_RIGHT, "already right"),
    (TargetOutcome.UNCHANGED, "unchanged"),
    (TargetOutcome.WORSE, "worse"),
    (TargetOutcome.UNDECIDED, "undecided"),
    (TargetOutcome.UNANSWERED, "unanswered"),
    (TargetOutcome.GONE, "not in the cohort"),
)
"""What may become of a targeted case, good first."""

GOOD = frozenset(
    {TargetOutcome.FIXED, TargetOutcome.IMPROVED, TargetOutcome.ALREADY_RIGHT}
)


class ShareRow(NamedTuple):
    """One share of right answers before and after."""

    check: ShareCheck
    interval: Interval | None
    """Two-sided, of the difference."""

    basis: str
    """What it was judged by, in words."""


class NonInferiorityRow(NamedTuple):
    """One label in the table of non-inferiority."""

    label: str
    name: str
    accuracy: ShareRow
    sensitivity: ShareRow
    passed: bool

    @property
    def moved(self) -> bool:
        """Whether any answer became right or wrong."""
        return any(self.accuracy.check.difference[:2])


class ChangedCases(NamedTuple):
    """The cases of one label that changed alike."""

    label: str
    name: str
    rows: tuple[CaseChange, ...]


class TargetGroup(NamedTuple):
    """The targeted cases that ended alike."""

    word: str
    good: bool
    targets: tuple[CheckTarget, ...]


_CRITERIA = {
    ShareCriterion.MARGIN: "",
    ShareCriterion.COUNTS: "by counts",
    ShareCriterion.NOTHING: "no case",
}


def show_checked(state: ReviseState) -> str:
    """Return the last check of the open draft as HTML."""
    recalled = state.recalled
    if state.info is None or state.drafted is None:
        return ""
    if recalled is None:
        return notice(
            "The check runs the parent and the draft on the same cases and compares "
            "them label by label. Nothing can be committed without it.",
            title="Not checked yet",
        )
    context = state.context
    key = (
        "revise check",
        state.info.ref,
        *(recalled.checked.time, recalled.checked.ground.draft_digest, recalled.stale),
        protocol_digest(context.workspace),
        tuple(state.names.items()),
    )
    return str(context.cache.get(key, lambda: _render_check(state, recalled)))


def _render_check(state: ReviseState, recalled: Recalled) -> str:
    checked = recalled.checked
    check = checked.check
    confidence = read_protocol(state.context.workspace).confidence
    changes = checked.changes
    return show(
        "revise_checked.html.jinja",
        checked=checked,
        stale=recalled.stale,
        check=check,
        evidence=check.over_draws if check else None,
        power=POWER,
        confidence=confidence,
        names=state.names,
        rows=[_non_inferiority_row(state, one, confidence) for one in check.labels]
        if check
        else (),
        fates=_group_targets(check) if check else (),
        changes=changes,
        kinds=(
            ("Fixed", "wrong before, right now", _by_label(state, changes.fixed)),
            ("Broken", "right before, wrong now", _by_label(state, changes.broken)),
            ("Still wrong", "before and after", _by_label(state, changes.unchanged)),
            (
                "Changed where the reference decides nothing",
                "neither right nor wrong",
                _by_label(state, changes.unjudged),
            ),
        ),
        most=CHANGED_CASES,
    )


def _non_inferiority_row(
    state: ReviseState, one: LabelCheck, confidence: float
) -> NonInferiorityRow:
    return NonInferiorityRow(
        one.label,
        state.names.get(one.label, one.label),
        _share(one.accuracy, confidence),
        _share(one.sensitivity, confidence),
        one.passed,
    )


def _share(check: ShareCheck, confidence: float) -> ShareRow:
    judged = measure_regression(check.difference, check.margin, confidence)
    return ShareRow(check, judged.interval, _CRITERIA[check.basis])


def _group_targets(check: Check) -> Sequence[TargetGroup]:
    found = (
        TargetGroup(
            word,
            outcome in GOOD,
            tuple(t for t in check.targets if t.progress is outcome),
        )
        for outcome, word in TARGET_OUTCOMES
    )
    return [one for one in found if one.targets]


def _by_label(
    state: ReviseState, rows: Iterable[CaseChange]
) -> tuple[ChangedCases, ...]:
    found: dict[str, list[CaseChange]] = {}
    for one in rows:
        found.setdefault(one.label, []).append(one)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    return tuple(
        ChangedCases(label, state.names.get(label, label), tuple(rows))
        for label, rows in ordered
    )


def show_progress(progress: JobProgress, title: str) -> str:
    """Return how far long work is, as HTML."""
    return show("revise_progress.html.jinja", progress=progress, title=title)


def show_failed(progress: JobProgress, title: str) -> str:
    """Return why long work came to nothing, as HTML."""
    return notice(progress.error, kind="error", title=f"{title} ({progress.by})")
