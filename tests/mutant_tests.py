"""The tests of `tests.mutants`: a plugin that chooses them, and a server that forks.

As a plugin of pytest it runs the chosen tests only and keeps the name of the last. With
``-x`` that is the one that failed, or that was running when time was up. Where it is
told to, it lets tests find no Chromium, and they are skipped.

As a script it reads one JSON object a line, runs tests for it in a fork, and answers
with the exit code, or null where the time was up. Without an argument it has imported
only what tests need from other packages, and pytest is run in the fork: what is tested
is imported there, from the folder given. With a folder and places of tests in it these
are collected first, once. A fork then gives functions the code of another text of their
module, and runs the tests as they are.
"""

import faulthandler
import gc
import inspect
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections import defaultdict
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType

KEPT, CHOSEN, ALONE = "LAST_TEST", "CHOSEN_TESTS", "NO_BROWSER"
"""Variables: the file to keep it in; the file of chosen tests; set for no browser."""

PACKAGES = (
    "pytest", "hypothesis", "httpx", "jinja2", "pydantic", "yaml", "click",
    "rich.table", "numpy", "pandas", "scipy.stats", "pyarrow.parquet", "gradio", "dspy",
    "sklearn.feature_extraction.text", "statsmodels.stats.inter_rater", "openpyxl",
    "matplotlib.figure",
)  # fmt: skip
"""What takes long to import; none has to be there."""

PLUGINS = ("-p", "no:cacheprovider", "-p", "tests.mutant_tests")
EARLY = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""What pytest says of plugins that the server imported before, is no error."""

TEST_LIMIT_S = 120
"""The slowest test takes 25 seconds, most take hundredths of one."""

NOT_EXCHANGED = 70
"""What a fork ends with where a function that differs is none that was imported."""

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


class Requests:
    """What is asked of this process, each answered by a fork.

    They come on standard input and are answered on standard output, which nothing else
    may use.
    """

    def __init__(self):
        self._asked, self._answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
        self._nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(self._nothing, 0)
        os.dup2(2, 1)

    def serve(self, work):
        """Let a fork do `work` with each request; what `work` returns is its code."""
        gc.freeze()
        for line in self._asked:
            asked = json.loads(line)
            child = os.fork()
            if not child:
                self._work(work, asked)
            code = _wait(child, asked["limit_s"])
            print(json.dumps(code), file=self._answers, flush=True)

    def _work(self, work, asked):
        """Do it in a session of its own, and end."""
        code = 1
        try:
            os.setsid()
            # Where pytest keeps what tests write; whoever asked removes it.
            os.environ["PYTEST_DEBUG_TEMPROOT"] = asked["scratch"]
            errors = os.open(asked["errors"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for number, opened in enumerate((self._nothing, errors, errors)):
                os.dup2(opened, number)
            code = work(asked)
        except BaseException:  # noqa: BLE001 - nothing is above it
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)


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


def run_pytest(asked):
    """Run pytest in a tree of which nothing was imported yet."""
    os.chdir(asked["tree"])
    sys.path[:0] = [asked["tree"]]
    return import_module("pytest").main([*asked["arguments"], *EARLY])


class Collected:
    """The plugin of a pytest that collects all tests and then serves some of them."""

    def __init__(self, requests):
        self._requests = requests
        self._tests, self._session = {}, None

    def pytest_runtestloop(self, session):
        """Serve in place of running all."""
        self._session = session
        self._tests = {item.nodeid: item for item in session.items}
        self._requests.serve(self._run)
        return True

    def _run(self, asked):
        """Run tests until one fails; NOT_EXCHANGED where a function was not found."""
        if asked["change"] and not exchange(**asked["change"]):
            return NOT_EXCHANGED
        chosen = [self._tests[name] for name in asked["tests"] if name in self._tests]
        for item, after in zip(chosen, [*chosen[1:], None], strict=True):
            faulthandler.dump_traceback_later(TEST_LIMIT_S, exit=True, file=2)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self._session.testsfailed:
                return 1
        return 0


def exchange(path, before, after):
    """Give the functions of a module the code they have in another text of it.

    Return whether each function that differs was found. What was made at import, such
    as the value of a default, stays: the two texts may differ within functions only.
    """
    old, new = (_find_code(compile(text, path, "exec")) for text in (before, after))
    functions = defaultdict(list)
    # What was frozen before a fork is not among the objects.
    gc.unfreeze()
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == path:
            functions[one.__code__].append(one)
    for name, code in old.items():
        if code == new.get(name, code):
            continue
        try:
            for function in functions[code]:
                function.__code__ = new[name]
        except ValueError:
            # The other code has more or fewer variables of what is around it.
            return False
        if not functions[code] and "<locals>" not in code.co_qualname:
            return False
    return True


def _find_code(module):
    """Return the code of each function of a module by name and number of that name."""
    found, inner = {}, [module]
    while inner:
        code = inner.pop()
        inside = [one for one in code.co_consts if isinstance(one, CodeType)]
        inner += inside
        for one in inside:
            number = sum(name == one.co_qualname for name, _ in found)
            found[one.co_qualname, number] = one
    return {
        name: code
        for name, code in found.items()
        if code.co_flags & inspect.CO_OPTIMIZED
    }


def main(folder=None, *tests):
    """Serve what is asked until there is nothing more."""
    requests = Requests()
    if folder is None:
        for name in PACKAGES:
            with suppress(ImportError):
                import_module(name)
        import_module("pytest").main(["--version"])
        requests.serve(run_pytest)
        return
    os.chdir(folder)
    arguments = ["--capture=sys", *PLUGINS, *tests]
    import_module("pytest").main(arguments, plugins=[Collected(requests)])


if __name__ == "__main__":
    main(*sys.argv[1:])
