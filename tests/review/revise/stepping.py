"""What the tests of the steps share: verdicts to begin with, and a committed rival."""

from dataclasses import replace
from datetime import UTC, datetime

from loop.core.ledger import Actor
from loop.prompts.catalog import write_version
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.checking import check_draft_ref
from loop.review.revise.commit import Commitment, commit_draft
from loop.review.verdict import Edits, Judgement, Verdict

OTHER = Actor(name="Dr C. Example")
WHEN = datetime(2026, 1, 7, 10, 0, tzinfo=UTC)

FLUID = Verdict(
    label="pleural_effusion",
    judgement=Judgement.GUIDELINE_AMBIGUOUS,
    case_ids=("f0", "f1"),
    edits=Edits(terms=("fluid ... base",)),
    reviewer="Dr B. Example",
    comment="these say fluid without the word effusion",
)
USELESS = replace(FLUID, edits=Edits(terms=("ascites",)))
WRONG = Verdict(
    label="pleural_effusion",
    judgement=Judgement.REFERENCE_WRONG,
    case_ids=("n1",),
    correct_value="present",
    reviewer="Dr B. Example",
)


def now():
    """Return the time at which these tests act."""
    return WHEN


def begin(setting, store, *verdicts, **options):
    """Begin a draft of ``tiny`` and return what came of it."""
    request = DraftRequest(prompt="tiny", cohort="dev", verdicts=verdicts, **options)
    return begin_draft(setting.workspace, store, request, setting.editor, now=now)


def check(setting, store, draft, how=None):
    """Check a draft and return the check."""
    return check_draft_ref(
        setting.workspace, store, draft.ref, setting.editor, how, now=now
    )


def overtake(setting, **changes):
    """Commit another draft of ``tiny`` first and return its version."""
    rival = replace(
        setting.tiny,
        number=0,
        draft="rival",
        parent=setting.tiny.digest,
        author=OTHER.name,
        time="2026-01-07T09:30:00Z",
        **(changes or {"system": "Read quickly.\n"}),
    )
    write_version(setting.workspace, rival)
    commitment = Commitment(actor=OTHER, reason="faster", evidence={})
    return commit_draft(setting.workspace, rival, commitment, now=now)
