"""A workspace in which a version is ready to be released."""

import csv
from dataclasses import dataclass, field, replace
from pathlib import Path

from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths
from loop.evaluate.protocol import register_protocol
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import write_version
from loop.release.candidate import FreezeRequest
from loop.release.documents.documents import render_documents
from loop.release.freeze import FreezeContext, Frozen, Signing, freeze
from loop.release.keys import PublicKey, load_private, make_key
from tests.review.revise import conftest

AUTHOR = Actor(name="Dr Author", role="editor")
APPROVER = Actor(name="Dr Approver", role="approver")
PROTOCOL = "rule: lower\nclaim: subset\nmin_positives: 14\n"

TINY = replace(conftest.TINY, author=AUTHOR.name)


def rows(prefix, wrong=0):
    """Return 180 cases; `wrong` effusions are worded so that the prompt misses them."""
    made = []
    for n in range(60):
        said = "fluid at the base" if n < wrong else "small pleural effusion"
        made.append((f"{prefix}e{n}", f"There is {said} in {prefix} {n}.", 1, 0))
        made.append((f"{prefix}c{n}", f"There is cardiomegaly in {prefix} {n}.", 0, 1))
        made.append((f"{prefix}n{n}", f"The lungs are clear in {prefix} {n}.", 0, 0))
    return made


@dataclass
class Ready:
    """The workspace, and how its approver freezes there."""

    workspace: WorkspacePaths
    folder: Path
    key: PublicKey = None
    steps: list[str] = field(default_factory=list)

    def add_cohort(self, name, role, cases):
        """Import cases of (id, text, effusion, cardiomegaly)."""
        path = self.folder / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["case_id", "text", "pleural_effusion", "cardiomegaly"])
            writer.writerows(cases)
        options = ImportOptions(name=name, role=role, source="synthetic", licence="-")
        import_cohort(self.workspace, path, options, actor=AUTHOR)

    def commit(self, version):
        """Write a version and its ledger entry."""
        write_version(self.workspace, version)
        event = Event(
            action="draft_committed",
            subject=version.ref,
            reason=version.why,
            payload={"digest": version.digest},
        )
        append_event(self.workspace.ledger, event, AUTHOR, now=lambda: conftest.WHEN)

    def desk(self, actor=APPROVER, key=None, reached=None):
        """Return where the approver works."""
        key = key or self.key
        private = load_private(self.workspace, key.keyid)
        return FreezeContext(
            workspace=self.workspace,
            actor=actor,
            signing=(Signing(key=key, private=private, meaning="approval"),),
            render=render_documents,
            reached=reached or self.steps.append,
        )

    def request(self, **changes):
        """Return the wish to release the newest version on the holdout."""
        wish = {"prompt": "tiny", "cohort": "dev", "holdout": "held", "why": "first"}
        return FreezeRequest(**(wish | changes))

    def freeze(self, **changes) -> Frozen:
        """Freeze as the approver."""
        return freeze(self.desk(), self.request(**changes))


def make_ready(workspace: WorkspacePaths, folder: Path, *, wrong=(0, 0)) -> Ready:
    """Make it; `wrong` effusions are missed on the dev cohort and on the holdout."""
    made = Ready(workspace, folder)
    workspace.protocol.write_text(PROTOCOL)
    made.commit(TINY)
    register_protocol(workspace, AUTHOR)
    made.add_cohort("dev", "dev", rows("dev", wrong[0]))
    made.add_cohort("held", "holdout", rows("held", wrong[1]))
    made.key = make_key(workspace, APPROVER.name, APPROVER.role, AUTHOR)
    return made
