"""Step 2 of the page Revise: the open drafts, and one of them beside its parent."""

from __future__ import annotations

from typing import NamedTuple

from loop.core.errors import DataError
from loop.prompts.version import PromptVersion
from loop.review.revise.draft import (
    DraftCheckStatus,
    DraftInfo,
    Shown,
    find_engine_counter,
    render_shown,
)
from loop.review.revise.draft_files import read_line
from loop.review.revise.merge import Conflict, merge_versions
from loop.ui.pages.revise.kept import Typed
from loop.ui.pages.revise.state import ReviseState, guide_mark
from loop.ui.show import notice, show

STANDING = {
    DraftCheckStatus.PASSED: ("PASS", "check passed"),
    DraftCheckStatus.OBJECTIONS: ("FAIL", "check objects"),
    DraftCheckStatus.STALE: ("INSUFFICIENT", "check out of date"),
    DraftCheckStatus.NEVER: ("INSUFFICIENT", "not checked"),
}
"""Each standing as a glyph and in words."""


class Behind(NamedTuple):
    """What was committed since a draft was begun, and where the two clash."""

    newest: PromptVersion
    conflicts: tuple[Conflict, ...]


def show_drafts(scene: ReviseState) -> str:
    """Return the list of open drafts as HTML."""
    return show(
        "revise_drafts.html.jinja",
        prompt=scene.prompt,
        infos=list(reversed(scene.infos)),
        opened=scene.info.ref if scene.info else "",
        standing=STANDING,
        may=scene.may,
    )


def show_draft_panel(scene: ReviseState, notes: tuple[str, ...] = ()) -> str:
    """Return the open draft as HTML, with `notes` of what was just done to it."""
    if scene.info is None:
        return ""
    drafted = scene.drafted
    if drafted is None:
        return _broken(scene.info)
    return show(
        "revise_draft.html.jinja",
        info=scene.info,
        drafted=drafted,
        names=scene.names,
        notes=tuple(dict.fromkeys((*notes, *drafted.notes))),
        behind=_behind(scene),
        shown=_rendered(scene),
        may=scene.may,
    )


def _broken(info: DraftInfo) -> str:
    return notice(
        info.problem or "Its files were removed just now. Open the page again.",
        kind="error",
        title=f"{info.ref} cannot be used",
    )


def _behind(scene: ReviseState) -> Behind | None:
    """Return what the draft has to be brought to; None while its parent is newest."""
    if scene.info is None or not scene.info.behind:
        return None
    line = read_line(scene.desk.workspace, scene.info.ref)
    merged = merge_versions(line.parent, line.draft, line.newest, {})
    return Behind(line.newest, merged.conflicts)


def _rendered(scene: ReviseState) -> Shown | None:
    """Return the messages a model receives; None where they cannot be rendered."""
    if scene.drafted is None:
        return None
    counter = find_engine_counter(scene.desk.workspace, scene.engines[0])
    try:
        return render_shown(scene.drafted.draft, counter)
    except DataError:
        return None


def show_note(scene: ReviseState, typed: Typed | None, error: str = "") -> str:
    """Return what is said below the editor, as HTML.

    Parameters
    ----------
    typed
        A text that was begun and not saved.
    error
        Why the text was not saved.
    """
    moved = typed is not None and typed.guide != guide_mark(scene.guide)
    return show(
        "revise_note.html.jinja",
        error=error,
        typed=typed,
        moved=moved,
        current=scene.guide if error and moved else "",
        author=scene.drafted.draft.author if scene.drafted else "",
        name=scene.names.get(scene.label, scene.label),
    )
