"""What the tests of the steps share: verdicts to begin with, and a committed rival."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime

from loop.core.ledger import Actor
from loop.core.records import Completion
from loop.prompts.catalog import write_version
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.commit import Commitment, commit_draft
from loop.review.revise.run_check import check_draft_ref
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


class Wavering:
    """A model that finds what a guide's terms name, and errs by the exact prompt.

    It errs in a tenth of the answers, on other cases as soon as a byte of the prompt
    is another; asked the same once more, it says the same.
    """

    retry_unreadable = 0
    weights = ""
    """Another model errs on other cases."""

    errors = 26
    """Of 256 answers."""

    revision = None
    asked: tuple[tuple[int, str], ...] = ()
    """Seed and first terms of each stream of prompts."""

    def __init__(self, name, settings, draw=0):
        """Take what a factory is given."""
        self.settings, self.seed = settings, settings.seed + draw

    def identity(self):
        """Return a name."""
        return {"engine": "wavering", "revision": self.revision}

    def redraw(self, draw):
        """Return the engine with another seed."""
        return Wavering("", self.settings, draw)

    def complete(self, prompts):
        """Yield an answer to each prompt."""
        for index, prompt in enumerate(prompts):
            frame, text = prompt.frame, prompt.item.variables["text"].lower()
            terms = " ".join(frame.guides[0].terms)
            if index == 0:
                Wavering.asked += ((self.seed, terms),)
            answer = {}
            for guide in frame.guides:
                words = [term.split()[0] for term in guide.terms]
                found = any(word in text for word in words)
                told = repr((frame.messages, prompt.item.id, guide.label))
                told += self.weights
                errs = hashlib.sha256(told.encode()).digest()[0] < self.errors
                answer[guide.label] = "present" if found != errs else "absent"
            yield index, Completion(json.dumps(answer), "stop")
