"""Visits without a browser: a context on a workspace, and who comes to it."""

import time
from contextlib import contextmanager
from datetime import UTC, datetime

from loop.core.people.users import Right, User, UserRole
from loop.run.store import open_store
from loop.ui.access.access import Access
from loop.ui.context import AppContext
from loop.ui.wiring import Visit
from tests.ui.conftest import open_tab

SESSION = "0" * 32
"""Id of the session in which these visits take place."""


@contextmanager
def opened(workspace, **options):
    """Give a context on `workspace` with its real access."""
    access = Access.open(workspace, host="127.0.0.1", local="Dr Local", **options)
    with open_store(workspace) as store:
        yield AppContext(
            workspace=workspace,
            store=store,
            access=access,
            now=lambda: datetime.now(UTC),
        )


def visit(context, *roles, right=Right.SEE, name="Dr A", **data):
    """Return the visit of someone with `roles`, by default all of them."""
    user = User(name=name, roles=roles or tuple(UserRole))
    return Visit(
        context=context, user=user, actor=user.actor(right), data=data, session=SESSION
    )


def enter(page, url, tab):
    """Open the workbench and choose one of its pages once it is there."""
    page.goto(url)
    page.wait_for_selector("#bar .who-name")
    open_tab(page, tab)


def choose_cohort(page, name):
    """Choose a cohort at the top, and wait until the page was loaded with it.

    A browser that is closed in the middle of a reload may never say that it is.
    """
    page.evaluate("window.loadedBefore = true")
    page.click("#cohort input")
    page.get_by_role("option", name=name).click()
    page.wait_for_function(
        "!window.loadedBefore && document.querySelector('#bar .who-name')"
    )


def until(done, limit_s=60):
    """Wait until `done` returns something true, and return that."""
    end = time.monotonic() + limit_s
    while not (found := done()):
        if time.monotonic() > end:
            raise TimeoutError("it took too long")
        time.sleep(0.01)
    return found
