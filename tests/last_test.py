"""A plugin of pytest for `tests.mutants`: it runs chosen tests and keeps the last.

With ``-x`` that is the one that failed, or that was running when time was up. Where it
is told to, it lets tests find no Chromium, and they are skipped.
"""

import os
import shutil
from pathlib import Path

KEPT, CHOSEN, ALONE = "LAST_TEST", "CHOSEN_TESTS", "NO_BROWSER"
"""Variables: the file to keep it in; the file of chosen tests; set for no browser."""

_which = shutil.which


def pytest_configure():
    """Hide the browser before a module of tests looks for it."""
    if os.environ.get(ALONE):
        shutil.which = _find_other


def pytest_collection_modifyitems(items):
    """Leave out what was not chosen; a name that is no test any more is no error.

    A line is a test, a file with all its tests, or, after a minus, a test to leave out.
    """
    lines = {*Path(os.environ[CHOSEN]).read_text("utf-8").splitlines()}
    items[:] = [
        item
        for item in items
        if {item.nodeid, item.nodeid.partition("::")[0]} & lines
        and f"-{item.nodeid}" not in lines
    ]


def pytest_runtest_logstart(nodeid):
    """Keep the test that begins."""
    Path(os.environ[KEPT]).write_text(nodeid, "utf-8")


def _find_other(name, *args, **options):
    return None if str(name).startswith("chrom") else _which(name, *args, **options)
