"""The tests of `tests.mutants`: a plugin that chooses them, and a server that forks.

As a plugin of pytest it runs the chosen tests only and keeps the name of the last. With
``-x`` that is the one that failed, or that was running when time was up. Where it is
told to, it lets tests find no Chromium, and they are skipped.

As a script it imports what tests need from other packages, once. Then it reads one JSON
object a line, runs pytest for it in a fork, and answers with the exit code, or null
where the time was up. What is tested is imported in the fork, from the folder given.
"""

import gc
import json
import os
import shutil
import signal
import sys
import time
import traceback
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path

KEPT, CHOSEN, ALONE = "LAST_TEST", "CHOSEN_TESTS", "NO_BROWSER"
"""Variables: the file to keep it in; the file of chosen tests; set for no browser."""

PACKAGES = (
    "pytest", "hypothesis", "httpx", "jinja2", "pydantic", "yaml", "click",
    "rich.table", "numpy", "pandas", "scipy.stats", "pyarrow.parquet", "gradio", "dspy",
    "sklearn.feature_extraction.text", "statsmodels.stats.inter_rater", "openpyxl",
    "matplotlib.figure",
)  # fmt: skip
"""What takes long to import; none has to be there."""

EARLY = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""What pytest says of plugins that the server imported before, is no error."""

_which = shutil.which


def pytest_configure():
    """Hide the browser before a module of tests looks for it."""
    if os.environ.get(ALONE):
        shutil.which = _find_other


def pytest_collection_modifyitems(items):
    """Leave out what was not chosen; a name that is no test any more is no error.

    A line is a test, a file with all its tests, or, after a minus, a test to leave out.
    """
    if CHOSEN not in os.environ:
        return
    lines = {*Path(os.environ[CHOSEN]).read_text("utf-8").splitlines()}
    items[:] = [
        item
        for item in items
        if {item.nodeid, item.nodeid.partition("::")[0]} & lines
        and f"-{item.nodeid}" not in lines
    ]


def pytest_runtest_logstart(nodeid):
    """Keep the test that begins."""
    if KEPT in os.environ:
        Path(os.environ[KEPT]).write_text(nodeid, "utf-8")


def _find_other(name, *args, **options):
    return None if str(name).startswith("chrom") else _which(name, *args, **options)


def serve():
    """Run the tests of each line of standard input in a fork, one line at a time."""
    with redirect_stdout(sys.stderr):
        for name in PACKAGES:
            with suppress(ImportError):
                import_module(name)
        import_module("pytest").main(["--version"])
    gc.freeze()
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            _test(asked)
        print(json.dumps(_wait(child, asked["limit_s"])), flush=True)


def _wait(child, limit_s):
    """Return the code that a child ended with; stop it where it takes too long."""
    ends = time.monotonic() + limit_s
    ended = status = 0
    while not ended and time.monotonic() < ends:
        time.sleep(0.02)
        ended, status = os.waitpid(child, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
        return None
    return os.waitstatus_to_exitcode(status)


def _test(asked):
    """Run pytest in a session of its own, and end."""
    os.setsid()
    os.chdir(asked["tree"])
    sys.path[:0] = [asked["tree"]]
    nothing = os.open(os.devnull, os.O_RDWR)
    errors = os.open(asked["errors"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number, opened in enumerate((nothing, nothing, errors)):
        os.dup2(opened, number)
    sys.stdin, sys.stdout = sys.__stdin__, sys.__stdout__
    code = 1
    try:
        code = import_module("pytest").main([*asked["arguments"], *EARLY])
    except BaseException:  # noqa: BLE001 - nothing is above it
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve()
