"""The page Revise on a tiny prompt: a context, visitors, and verdicts that are open."""

import signal
from dataclasses import replace
from datetime import UTC, datetime
from threading import enumerate as threads

import pytest

from loop.core.people.users import Right, User, UserRole
from loop.core.records import Value
from loop.review.job_work import work_through
from loop.review.submit import VerdictContext, save_verdicts
from loop.run.jobs import JobQueue
from loop.ui.access.access import Access
from loop.ui.context import AppContext
from loop.ui.pages.revise.state import OpenedDraft
from loop.ui.wiring import Visit
from tests.review.revise.conftest import setting as setting
from tests.review.revise.conftest import store as store
from tests.review.revise.conftest import wavering as wavering
from tests.review.revise.stepping import FLUID, USELESS, WHEN, WRONG

PLACE = ("tiny", "dev")
AGAINST = replace(
    WRONG, judgement="model_wrong", case_ids=("f0",), correct_value=Value.ABSENT
)


@pytest.fixture
def context(setting, store, monkeypatch):
    """Return the context of the tiny workspace, in which no process is started."""
    monkeypatch.setattr(JobQueue, "_launch", lambda self, connection, number: None)
    return AppContext(
        workspace=setting.workspace,
        store=store,
        access=Access.open(setting.workspace, host="127.0.0.1", local="Dr A. Example"),
        now=lambda: datetime.now(UTC),
    )


@pytest.fixture
def given(store):
    """Keep open verdicts: two on the wording, one of the reference."""
    circumstances = VerdictContext(cohort="dev", prompt="tiny@v1", source="")
    save_verdicts(store, (FLUID, USELESS, WRONG), circumstances, WHEN)


class Visitor:
    """Somebody in front of one browser tab."""

    def __init__(self, context, name="Dr A. Example", role=UserRole.EDITOR):
        self.context = context
        self.user = User(name=name, roles=(role,))
        self.opened = OpenedDraft()
        self.seen = {}

    def visit(self, right=Right.REVISE, **data):
        """Return one visit of theirs."""
        actor = self.user.actor(right)
        return Visit(context=self.context, user=self.user, actor=actor, data=data)

    def does(self, handler, *values, right=Right.REVISE, here=False, **data):
        """Let them do something, and keep what their tab shows then."""
        inputs = (*PLACE, self.opened, *values) if here else (*PLACE, *values)
        outputs = handler(self.visit(right, **data), *inputs)
        for name, value in outputs._asdict().items():
            if not (isinstance(value, dict) and set(value) == {"__type__"}):
                self.seen[name] = value
        self.opened = self.seen.get("opened", self.opened)
        return self

    def __getitem__(self, name):
        """Return what a component shows."""
        return self.seen[name]


@pytest.fixture
def editor(context):
    """Return an editor in front of the page."""
    return Visitor(context)


@pytest.fixture
def colleague(context):
    """Return another editor, in front of a page of their own."""
    return Visitor(context, "Dr C. Example")


def finish_jobs(context):
    """Do what waits in the queue, and wait for the work in threads."""
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    try:
        work_through(context.queue, "here", lambda name: None)
    finally:
        for one, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(one, handler)
    for thread in threads():
        if thread.name.startswith("job "):
            thread.join()
