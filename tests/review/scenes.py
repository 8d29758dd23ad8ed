"""Made-up verdicts, clocks and a small reviewed workspace."""

import csv
from datetime import UTC, datetime, timedelta
from itertools import count

from loop.core.ledger import Actor, Event, append_event
from loop.core.records import Guide
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import write_version
from loop.prompts.version import PromptVersion
from loop.review.submit import VerdictContext
from loop.review.verdict import Judgement, Verdict

WHEN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
EDITOR = Actor(name="Dr E. Example")
ANN = "Dr A. Example"
BEN = "Dr B. Example"
MADE_ON = VerdictContext(cohort="dev", prompt="tiny@v1", source="", run="run-1")


def clock(start=WHEN):
    """Return a clock that goes on a second each time it is asked."""
    ticks = count()
    return lambda: start + timedelta(seconds=next(ticks))


def verdict(case_id="a", reviewer=ANN, **changes):
    """Return a verdict on edema of one case."""
    fields = {
        "label": "edema",
        "judgement": Judgement.MODEL_WRONG,
        "case_ids": (case_id,),
        "reviewer": reviewer,
    }
    return Verdict(**(fields | changes))


def commit(workspace, ref, verdicts, when=WHEN):
    """Record in the ledger that a version answers these verdict ids."""
    event = Event(
        action="draft_committed",
        subject=ref,
        reason="a test",
        payload={"verdicts": list(verdicts)},
    )
    append_event(workspace.ledger, event, EDITOR, now=lambda: when)


def add_cohort(workspace, folder, rows, *, name="dev", role="dev", replace=False):
    """Import rows of (id, text, pleural_effusion, cardiomegaly)."""
    path = folder / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["case_id", "text", "pleural_effusion", "cardiomegaly"])
        writer.writerows(rows)
    options = ImportOptions(
        name=name, role=role, source="synthetic", licence="-", replace=replace
    )
    import_cohort(workspace, path, options, actor=EDITOR)


def add_prompt(workspace, number, *terms, parent=None, guides=None):
    """Write and record a version that reads `terms` as pleural effusion."""
    guides = guides or (
        Guide(
            label="pleural_effusion",
            name="Pleural Effusion",
            definition="Fluid in the pleural space.",
            terms=terms,
        ),
        Guide(
            label="cardiomegaly",
            name="Cardiomegaly",
            definition="The heart is enlarged.",
            terms=("cardiomegaly",),
        ),
    )
    version = PromptVersion(
        name="tiny",
        number=number,
        system="Read.\n",
        user="{% for guide in guides %}{{ guide.name }}\n{% endfor %}\n{{ text }}\n",
        guides=guides,
        parent=parent.digest if parent else None,
    )
    write_version(workspace, version)
    event = Event(
        action="draft_committed",
        subject=version.ref,
        reason="a test",
        payload={"digest": version.digest, "verdicts": []},
    )
    append_event(workspace.ledger, event, EDITOR, now=lambda: WHEN)
    return version
