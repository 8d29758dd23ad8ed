"""A draft rewritten by hand: its guides, its instructions, its plan and its contract.

A draft keeps its id while it is edited. What decides between two editors is the guide,
or the instructions, and not the draft: of two labels both edits are kept, of one label
the second editor is told of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import yaml
from pydantic import ValidationError

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import ConflictError, DataError
from loop.core.files import write_atomic
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.core.safe_text import quoted
from loop.core.yaml_files import field_name
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import header_text, version_folder
from loop.prompts.first import first_guide
from loop.prompts.guides import dump_guides, parse_guides
from loop.prompts.instructions import edit_instructions, instructions_text
from loop.prompts.version import CallPlan, PromptVersion, frozen_blocks
from loop.review.revise.begin import require_dev, with_guides
from loop.review.revise.commit import record_attempt
from loop.review.revise.copies import check_copies, name_unseen, new_wording
from loop.review.revise.draft import (
    Drafted,
    answered_in,
    comparable_parent,
    describe,
)
from loop.review.revise.draft_files import (
    DraftLineage,
    drafts_locked,
    read_about,
    read_line,
)
from loop.review.revise.tries import find_wording

_SOURCE = "the guide"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideEdit:
    """One label's guide as somebody wants it."""

    label: str
    text: str
    """As `guide_text` writes it."""

    seen: str = ""
    """The text that was edited; empty to write over whatever is there now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsEdit:
    """What is changed of a draft beside its guides; what is empty stays as it is."""

    instructions: str = ""
    """Both templates, as `instructions_text` writes them; see `edit_instructions`."""

    seen: str = ""
    """The text that was edited: the instructions, or without any, plan and contract as
    `settings_text` writes them. Empty to write over whatever is there now."""

    plan: CallPlan | None = None
    contract: str = ""
    """Name of another output contract; its words take the place of the old one's."""


_UNCHANGED = SettingsEdit()


def guide_text(guide: Guide) -> str:
    """Return `guide` as YAML, its label on the first line; empty lists left out."""
    return dump_guides((guide,))


_TEMPLATE = """\
  # What follows is optional; take out the # of what you fill in.
  # terms: [other words for it, "words ... in between", "ending*"]
  # exclusions: [wordings that only look like it]
  # clarifications:
  # - {phrase: a wording, value: uncertain, note: why}
  # exemplars:
  # - {text: A short statement., value: present, evidence: statement, why: the reason}
"""


def find_guide_text(
    workspace: WorkspacePaths, version: PromptVersion, label: str
) -> str:
    """Return the guide of a label as YAML; of one without a guide, a template.

    The template has what the taxonomy says of the label, and what may be added.

    Raises
    ------
    DataError
        The version has no guide of `label`, and the taxonomy no such label that can
        be asked for.
    """
    guide = version.guide(label)
    if guide is not None:
        return guide_text(guide)
    taxonomy = read_taxonomy(workspace.labels)
    if label not in taxonomy.extracted:
        raise DataError(
            f"{version.ref} has no guide for {label[:80]}, and labels/taxonomy.yaml no "
            "such label that can be asked for. Name one of "
            f"{', '.join(taxonomy.extracted)}, or add the label to that file."
        )
    return guide_text(first_guide(taxonomy.find(label))) + _TEMPLATE


def parse_guide_text(text: str, label: str) -> Guide:
    """Return the guide of `label` that `text` holds, as `guide_text` writes it.

    Raises
    ------
    DataError
        It is not YAML, a field does not fit, or it is the guide of another label;
        names the line.
    """
    try:
        guides = parse_guides(text, _SOURCE)
    except DataError as error:
        if isinstance(error.__context__, ValidationError):
            raise DataError(_name_lines(text, error.__context__)) from None
        raise
    if [guide.label for guide in guides] != [label]:
        found = ", ".join(quoted(one.label) for one in guides[:5]) or "nothing"
        raise DataError(
            f"{_SOURCE}, line 1: holds {found}, and the guide of {label} is "
            f"wanted. Begin it with `{label}:` and indent everything else."
        )
    return guides[0]


def _name_lines(text: str, error: ValidationError) -> str:
    """Return what does not fit, each with its line."""
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    lines = []
    for problem in error.errors(include_input=False, include_url=False)[:10]:
        where = field_name(problem["loc"][1:]) or "guide"
        unknown = problem["type"] == "extra_forbidden"
        reason = "there is no such field" if unknown else problem["msg"]
        lines.append(f"line {_find_line(root, problem['loc'])}, {where}: {reason}")
    return f"{_SOURCE}, {'; '.join(lines)}. Correct it."


def _find_line(node: yaml.Node | None, path: Sequence[int | str]) -> int:
    """Return the line of the deepest node on `path`, counted from 1."""
    line = node.start_mark.line + 1 if node else 1
    for part in path:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            pairs = {key.value: (key, value) for key, value in node.value}
            if part not in pairs:
                break
            key, node = pairs[part]
            line = key.start_mark.line + 1
        else:
            break
    return line


def edit_draft(
    workspace: WorkspacePaths,
    ref: str,
    edits: Sequence[GuideEdit],
    actor: Actor,
    *,
    settings: SettingsEdit = _UNCHANGED,
    now: Clock = utc_now,
) -> Drafted:
    """Return the draft `ref` with these guides and settings in place of its own.

    An earlier check of it is stale from now on; if the wording was measured, that
    stands in the ledger first. A kill leaves the old guides or the new ones.

    Raises
    ------
    DataError
        There is no such draft, a text is no guide of its label or no template (names
        the line), or the instructions change a frozen block of the version it is made
        from.
    OverlapError
        Wording is copied from a case of a cohort that is not for development.
    ConflictError
        Somebody else edited one of these guides, the instructions, the plan or the
        contract meanwhile; says who.
    WriteError
        The workspace cannot be written; the draft is as it was.
    """
    guides = {one.label: parse_guide_text(one.text, one.label) for one in edits}
    with drafts_locked(workspace, ref):
        line = read_line(workspace, ref)
        for one in edits:
            _require_seen(line.draft, one)
        edited = _with_settings(line, with_guides(line.draft, guides), settings)
        return _keep(workspace, line, edited, actor, now)


def restore_tried(
    workspace: WorkspacePaths,
    ref: str,
    digest: str,
    actor: Actor,
    *,
    now: Clock = utc_now,
) -> Drafted:
    """Return the draft `ref` with the wording that it had in an earlier try.

    Its verdicts and its parent stay as they are. An earlier check is stale from now on,
    as after any edit.

    Parameters
    ----------
    digest
        Of the wording, as `list_tries` has it; its first characters are enough.

    Raises
    ------
    DataError
        There is no such draft; no try of that wording, several, or one whose text is
        not kept any more; or the parent has other frozen blocks by now.
    OverlapError
        Wording is copied from a case of a cohort that is not for development.
    WriteError
        The workspace cannot be written; the draft is as it was.
    """
    with drafts_locked(workspace, ref):
        line = read_line(workspace, ref)
        wording = find_wording(workspace, line.draft, digest)
        edited = replace(
            line.draft,
            system=wording.system,
            user=wording.user,
            guides=parse_guides(wording.guides, _SOURCE),
            plan=wording.plan,
            contract=wording.contract,
        )
        _require_frozen(line.parent, edited)
        return _keep(workspace, line, edited, actor, now)


def _keep(
    workspace: WorkspacePaths,
    line: DraftLineage,
    edited: PromptVersion,
    actor: Actor,
    now: Clock,
) -> Drafted:
    """Write the edited draft, if anything is changed, and describe it."""
    edited = replace(edited, author=actor.name, time=format_time(now()))
    made = _describe(workspace, line, edited)
    if edited.digest != line.draft.digest:
        record_attempt(workspace, line, actor, "edited after its check", now)
        _rewrite(workspace, edited)
    return made


def _with_settings(
    line: DraftLineage, draft: PromptVersion, edit: SettingsEdit
) -> PromptVersion:
    """Return the draft with other instructions, another plan or another contract."""
    if edit.instructions:
        known = (instructions_text(draft), _folded_instructions(draft))
        if edit.seen and edit.seen not in known:
            raise _conflict(line.draft, "the instructions")
        draft = edit_instructions(draft, edit.instructions)
    elif edit.seen and edit.seen != settings_text(draft):
        raise _conflict(line.draft, "the call plan or the contract")
    if edit.plan is not None:
        draft = replace(draft, plan=edit.plan)
    draft = answered_in(draft, edit.contract)
    _require_frozen(line.parent, draft)
    return draft


def settings_text(version: PromptVersion) -> str:
    """Return call plan and contract of `version` as text, to tell one from another."""
    return f"plan: {version.plan}\ncontract: {version.contract}\n"


def _folded_instructions(draft: PromptVersion) -> str:
    try:
        return instructions_text(draft, folded=True)
    except DataError:
        return ""


def _require_frozen(parent: PromptVersion, draft: PromptVersion) -> None:
    """Refuse instructions that change what is marked as frozen."""
    comparable = comparable_parent(parent, draft)
    for file, before, after in (
        ("system.jinja", comparable.system, draft.system),
        ("user.jinja", comparable.user, draft.user),
    ):
        kept, now = frozen_blocks(before), frozen_blocks(after)
        changed = [name for name, text in kept.items() if now.get(name) != text]
        if changed:
            raise DataError(
                f"{file}: the frozen block {changed[0]!r} of {parent.ref} was changed "
                "or removed. Restore it: how answers are written and where the case "
                "stands is set with the contract, not by hand."
            )


def _conflict(draft: PromptVersion, what: str) -> ConflictError:
    return ConflictError(
        f"{draft.author} edited {what} in {draft.ref} at {draft.time}, after you "
        "opened it. Keep your text, open the draft again and make your change there. "
        "Nothing was changed."
    )


def _require_seen(draft: PromptVersion, edit: GuideEdit) -> None:
    guide = draft.guide(edit.label)
    current = guide_text(guide) if guide else ""
    if edit.seen and edit.seen != current:
        raise _conflict(draft, f"the guide of {edit.label}")


def _describe(
    workspace: WorkspacePaths, line: DraftLineage, edited: PromptVersion
) -> Drafted:
    made = replace(describe(workspace, line.parent, edited), behind=line.behind)
    name = read_about(workspace, line.draft).cohort
    if not name:
        return made
    copies, skipped = check_copies(
        workspace, new_wording(line.parent, edited), require_dev(workspace, name)
    )
    notes = (*made.notes, *name_unseen(skipped))
    return replace(made, copies=copies, skipped=skipped, notes=notes)


def _rewrite(workspace: WorkspacePaths, draft: PromptVersion) -> None:
    """Write the guides and the templates, and then who wrote them.

    The digest in ``prompt.yaml`` of a draft decides nothing, so that a kill between
    the writes leaves a draft like one that was edited in an editor.
    """
    folder = version_folder(workspace, draft)
    write_atomic(folder / "system.jinja", draft.system)
    write_atomic(folder / "user.jinja", draft.user)
    write_atomic(folder / "guides.yaml", dump_guides(draft.guides))
    write_atomic(folder / "prompt.yaml", header_text(draft))
