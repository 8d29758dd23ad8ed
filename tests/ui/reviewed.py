"""A small reviewed workspace, and visits to its page Review without a browser."""

import json
from contextlib import contextmanager
from typing import NamedTuple

from loop.core.people.users import Right, User, UserRole
from loop.run.task import run_prompt
from loop.ui.access.access import Access
from loop.ui.pages.review import events
from loop.ui.pages.review.state import Filters, Place
from loop.ui.pages.review.verdict_form import ReviewForm
from loop.ui.pages.review.view import FILTERS, ReviewOutputs
from loop.ui.serve import opened_context
from loop.ui.wiring import Visit
from tests.review.scenes import ANN, add_cohort, add_prompt

HOSTILE = (
    "Fluid <script>alert(1)</script> <img src=x onerror=alert(2)> **bold** {{ 1/0 }} "
    "\x1b[31mred \u202egnorw"
)
ROWS = [
    ("e1", "FINDINGS:\nSmall effusion.\n\nIMPRESSION:\nStable.", 1, 0),
    ("f1", "FINDINGS:\nFluid at the base.\n\nIMPRESSION:\nStable.", 1, 0),
    ("f2", HOSTILE, 1, 0),
    ("c1", "FINDINGS:\nClear.\n\nIMPRESSION:\nCardiomegaly.", 0, 0),
    ("n1", "Clear lungs.", 0, 0),
]
SHOWN = (*ReviewOutputs._fields, *ReviewForm._fields)


def make_reviewed(workspace, folder):
    """Add a cohort whose fluid version 1 misses, and run it."""
    add_cohort(workspace, folder, ROWS)
    version = add_prompt(workspace, 1, "effusion")
    run_prompt(workspace, "tiny@v1", "dev")
    return version


def run_next(workspace, parent):
    """Run a version 2 that reads more."""
    add_prompt(workspace, 2, "effusion", "fluid at", parent=parent)
    run_prompt(workspace, "tiny@v2", "dev")


@contextmanager
def context_of(workspace):
    """Give the context of a workspace in which one person works alone."""
    access = Access.open(workspace, host="127.0.0.1", local=ANN)
    with opened_context(workspace, access) as context:
        yield context


class Seat(NamedTuple):
    """One person at one browser tab."""

    context: object
    user: User

    def visit(self, right=Right.SEE, **data):
        """Return a visit as the browser's event makes it."""
        actor = self.user.actor(right)
        return Visit(context=self.context, user=self.user, actor=actor, data=data)

    def open(self, place=None, filters=None):
        """Return what opening the page shows, by name."""
        values = events.refresh(
            self.visit(), "tiny", "dev", place or Place(), *(filters or Filters())
        )
        return dict(zip(SHOWN, values[FILTERS:], strict=True))

    def submit(self, place, form, filters=None, token=None):
        """Return what handing in a form shows, by name."""
        token = place.token if token is None else token
        given = (*(filters or Filters()), *form)
        values = events.hand_in(self.visit(Right.JUDGE), place, token, *given)
        return dict(zip(SHOWN, values, strict=True))

    def keep(self, place, form, token=None):
        """Return the line under the form after one of its fields changed."""
        token = place.token if token is None else token
        return events.keep_form(self.visit(Right.JUDGE), place, token, *form)

    def act(self, handler, place, filters=None, *, right=Right.SEE, **data):
        """Return what an event of the queue or the case shows, by name."""
        values = handler(self.visit(right, **data), place, *(filters or Filters()))
        return dict(zip(SHOWN[: len(values)], values, strict=True))

    def offered(self, place, form=None, **data):
        """Return what taking an offer of the page shows, by name."""
        given = (place.token, *Filters(), *(form or ReviewForm()))
        values = events.take_offer(self.visit(**data), place, *given)
        return dict(zip(SHOWN, values, strict=True))

    def submit_together(self, place, form, cases):
        """Return what submitting on like pairs shows, by name."""
        visit = self.visit(Right.JUDGE, act="together", cases=json.dumps(cases))
        given = (place.token, *Filters(), *form)
        values = events.hand_in_together(visit, place, *given)
        return dict(zip(SHOWN, values, strict=True))


def seat(context, name=ANN, *roles):
    """Return a person at a tab; a reviewer where no role is given."""
    return Seat(context, User(name=name, roles=roles or (UserRole.REVIEWER,)))
