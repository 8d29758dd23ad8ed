"""A draft as people look at it: what it changes, what lint says, what it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from loop.core.errors import OverlapError
from loop.core.paths import Workspace
from loop.labels.cohort import CohortRole, read_cohort
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.diff import VersionDiff, diff_versions
from loop.prompts.lint import LintFinding, LintLevel, lint_version
from loop.prompts.version import PromptVersion
from loop.review.copied import Copy
from loop.review.revise.answers import comparable_parent
from loop.review.revise.beside import read_about
from loop.review.revise.copies import check_copies, new_wording
from loop.review.revise.ground import read_line
from loop.review.revise.ready import name_unseen
from loop.review.revise.shown import TokenChange, count_change, find_engine_counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A draft beside the version it was made from."""

    draft: PromptVersion
    parent: PromptVersion
    diff: VersionDiff
    lint: tuple[LintFinding, ...]
    tokens: TokenChange | None
    """None where the draft or its parent cannot be rendered."""

    copies: tuple[Copy, ...] = ()
    """Long copies from cases of the cohort: a warning."""

    skipped: tuple[tuple[str, CohortRole], ...] = ()
    """Cohorts that could not be looked at for copies: their texts are elsewhere."""

    notes: tuple[str, ...] = ()
    behind: bool = False
    """Whether another version was committed since it was made."""

    @property
    def sound(self) -> bool:
        """Whether lint found no error, so that it can be checked."""
        return not any(found.level is LintLevel.ERROR for found in self.lint)


def describe(
    workspace: Workspace,
    parent: PromptVersion,
    draft: PromptVersion,
    engine: str = "rules",
) -> Drafted:
    """Return what `draft` changes against `parent`; case texts are not looked at.

    Parameters
    ----------
    engine
        Engine whose tokens are counted.

    Raises
    ------
    DataError
        The taxonomy or the settings of this machine cannot be read.
    """
    return Drafted(
        draft=draft,
        parent=parent,
        diff=diff_versions(parent, draft),
        lint=lint_draft(workspace, parent, draft),
        tokens=count_change(parent, draft, find_engine_counter(workspace, engine)),
    )


def lint_draft(
    workspace: Workspace, parent: PromptVersion, draft: PromptVersion
) -> tuple[LintFinding, ...]:
    """Return what lint says of `draft` against `parent`, errors first."""
    labels = read_taxonomy(workspace.labels).extracted
    frozen = comparable_parent(parent, draft)
    return tuple(lint_version(draft, labels=labels, parent=frozen))


def show_draft(workspace: Workspace, ref: str, engine: str = "rules") -> Drafted:
    """Return the draft `ref` as it stands, against the version it was made from.

    A draft that copies a case it may not is shown all the same, and says so.

    Raises
    ------
    DataError
        There is no such draft, its files are malformed, or its parent is gone.
    """
    line = read_line(workspace, ref)
    made = describe(workspace, line.parent, line.draft, engine)
    made = replace(made, behind=line.behind)
    cohort = read_about(workspace, line.draft).cohort
    if not cohort:
        return replace(
            made, notes=("nothing says which cohort this draft is to be checked on",)
        )
    wording = new_wording(line.parent, line.draft)
    try:
        copies, skipped = check_copies(
            workspace, wording, read_cohort(workspace, cohort)
        )
    except OverlapError as error:
        return replace(made, notes=(str(error),))
    return replace(made, copies=copies, skipped=skipped, notes=name_unseen(skipped))
