"""A plugin of pytest for `tests.mutants`: it keeps which test began last.

With ``-x`` that is the one that failed, or that was running when time was up. Where it
is told to, it lets tests find no Chromium, and they are skipped.
"""

import os
import shutil
from pathlib import Path

KEPT, ALONE = "LAST_TEST", "NO_BROWSER"
"""Names of the variables: the file to keep it in; whether there is no browser."""

_which = shutil.which


def pytest_configure():
    """Hide the browser before a module of tests looks for it."""
    if os.environ.get(ALONE):
        shutil.which = _find_other


def pytest_runtest_logstart(nodeid):
    """Keep the test that begins."""
    Path(os.environ[KEPT]).write_text(nodeid, "utf-8")


def _find_other(name, *args, **options):
    return None if str(name).startswith("chrom") else _which(name, *args, **options)
