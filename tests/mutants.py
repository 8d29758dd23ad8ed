"""Change the package in one place at a time and see whether its tests notice.

``python -m tests.mutants --coverage FILE --sample 300 --seed 1 > mutants.jsonl`` draws
that many mutants of Cosmic Ray's operators (the extra `mutants`), each room of `loop/`
in proportion to what there is to change in it; annotations are not mutated, nor how
parameters are passed. FILE says which test executes which line. It is made of the same
tree before, in a separate folder, since coverage removes files whose names begin with
FILE's::

    export NO_BROWSER=yes COVERAGE_FILE=FILE
    pytest -p tests.mutant_tests --cov=loop --cov-context=test --cov-report=

Where only tests were added since, those are run with ``--cov-append``.

To close what a sample shows, go through modules: ``--modules loop/run/cost.py`` changes
each of their statements once, and ``--tests tests/run`` runs only the tests of that
folder: they are collected sooner, and FILE may be made of them alone.

A change within a function that nothing calls at import is made in a process that has
imported everything, which is quick; any other in a copy of the tree.

Each mutant meets the tests that execute the changed statement: those of its module's
own file, then at most `ELSEWHERE` others of its room and as many of other rooms, spread
over files.
What a fixture executes may be looked at by any test of that file, and what is executed
at import by any test that executes a line of the module: these tests follow. What reads
the source instead, `SOURCE`, comes last, for all. A survivor that no other test reaches
is "not covered".

The test that kills a mutant must pass on the unchanged package, where it is run once;
else it is left out, and the mutant is run on without it.

No test starts a browser, not even those of `loop/ui`: what only a browser would notice
is counted as a survivor. So is what only another process executes.

One JSON object a line says what was changed and what came of it; the share that was
killed, with its exact 95 % interval, comes last, on stderr. A survivor is read by a
person: some change nothing, some only words.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from difflib import SequenceMatcher, unified_diff
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from coverage import CoverageData

from loop.stats.intervals import clopper_pearson
from tests import mutant_tests

ROOT = Path(__file__).parent.parent
LIMIT_S = 3600
NOT_EXCHANGED = "not exchanged"

ELSEWHERE = 120
"""How many tests of its room, and of other rooms, are run beside a module's own."""

SOURCE = "tests/test_project.py"
"""Its tests read every module, and execute few."""

OPERATORS = {
    "arithmetic": (
        "ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add",
        "ReplaceBinaryOperator_Mul_Div", "ReplaceBinaryOperator_Div_Mul",
        "ReplaceBinaryOperator_BitAnd_BitOr", "ReplaceBinaryOperator_BitOr_BitAnd",
        "ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Invert",
    ),
    "comparison": (
        "ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq",
        "ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is",
        "ReplaceComparisonOperator_Lt_LtE", "ReplaceComparisonOperator_LtE_Lt",
        "ReplaceComparisonOperator_Gt_GtE", "ReplaceComparisonOperator_GtE_Gt",
    ),
    "condition": (
        "AddNot", "ReplaceUnaryOperator_Delete_Not",
        "ReplaceAndWithOr", "ReplaceOrWithAnd",
    ),
    "constant": ("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "NumberReplacer"),
    "flow": (
        "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop",
        "ExceptionReplacer",
    ),
}  # fmt: skip
"""Kind of change to the names of Cosmic Ray's operators."""

LEFT = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "dist")


class Mutant:
    """One operator at one place of a module."""

    def __init__(self, path, operator, occurrence):
        self.path, self.operator, self.occurrence = path, operator, occurrence
        self.room = path.parts[1]

    def text(self):
        """Return the module with the change; None where nothing is done otherwise."""
        before = (ROOT / self.path).read_text("utf-8")
        operator = get_operator(f"core/{self.operator}")()
        try:
            after = mutate_code(before, operator, self.occurrence)
            same = after is None or _meaning(before) == _meaning(after)
        except (AttributeError, SyntaxError):
            # Cosmic Ray takes every star for a product, and cannot replace an exception
            # that is named with its module.
            return None
        return None if same else after

    def diff(self, after):
        """Return the lines that were changed."""
        before = (ROOT / self.path).read_text("utf-8")
        lines = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        return [line for line in lines if not line.startswith(("---", "+++"))]


def _meaning(source):
    """Return what a module does: its tree without annotations."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            node.defaults = [*node.defaults, *filter(None, node.kw_defaults)]
            node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
        for name in ("annotation", "returns"):
            if getattr(node, name, None):
                setattr(node, name, ast.Constant(value=None))
    return ast.dump(tree)


def find_mutants(rooms):
    """Return every mutant by room, of some or all, and then by kind."""
    found = defaultdict(lambda: defaultdict(list))
    for path in sorted(ROOT.glob("loop/*/**/*.py")):
        room = path.relative_to(ROOT).parts[1]
        if rooms and room not in rooms:
            continue
        nodes = list(ast_nodes(get_ast(path.read_text("utf-8"))))
        for kind, names in OPERATORS.items():
            for name in names:
                operator = get_operator(f"core/{name}")()
                many = sum(
                    len(list(operator.mutation_positions(node))) for node in nodes
                )
                for occurrence in range(many):
                    mutant = Mutant(path.relative_to(ROOT), name, occurrence)
                    found[mutant.room][kind].append(mutant)
    return found


def draw(found, size, rng):
    """Return `size` mutants: rooms in proportion, kinds alike."""
    rooms = list(found)
    weights = [sum(map(len, found[room].values())) for room in rooms]
    drawn = {}
    while len(drawn) < size:
        (room,) = rng.choices(rooms, weights)
        mutant = rng.choice(found[room][rng.choice(list(found[room]))])
        text = mutant.text()
        if text is not None:
            drawn[mutant.path, text] = mutant
    return [(mutant, text) for (_, text), mutant in drawn.items()]


def draw_each(modules, rng):
    """Return a mutant of each statement of modules, named by path or folder."""
    found = find_mutants({Path(one).parts[1] for one in modules})
    several = [one for room in found.values() for kind in room.values() for one in kind]
    rng.shuffle(several)
    drawn = {}
    for mutant in several:
        if any(mutant.path.is_relative_to(one) for one in modules):
            text = mutant.text()
            if text is not None:
                before = (ROOT / mutant.path).read_text("utf-8")
                place = mutant.path, min(changed_lines(before, text))
                drawn.setdefault(place, (mutant, text))
    return [drawn[place] for place in sorted(drawn)]


class Unchanged:
    """The unchanged package: whether a test passes there, asked once."""

    def __init__(self, tree):
        self.tree, self.noise = tree, set()
        self._passed, self._lock = {}, Lock()

    def passes(self, tests, imported):
        """Return whether tests pass without any change; one that does not is noise."""
        asked = tests, imported
        with self._lock:
            if asked not in self._passed:
                end, _ = self.tree.test(tests, (Path(), "", "") if imported else None)
                self._passed[asked] = end == "survived"
                if not self._passed[asked] and len(tests) == 1 and "::" in tests[0]:
                    self.noise |= {*tests}
            return self._passed[asked]


def judge(tree, mutant, text, unchanged, reach):
    """Return what the tests make of a mutant, in a copy of the tree, and which did."""
    stages = reach.choose(mutant, text)
    before = (ROOT / mutant.path).read_text("utf-8")
    change = mutant.path, before, text
    if not stages:
        return "not covered", ""
    if _outside(before) == _outside(text) and not reach.at_import(*change):
        end, test = _meet(tree, stages, unchanged, change)
        if end != NOT_EXCHANGED:
            return end, test
    with tree.changed(mutant.path, text):
        return _meet(tree, (*stages, (SOURCE,)), unchanged)


def _meet(tree, stages, unchanged, change=None):
    for tests in stages:
        while True:
            ended, last = tree.test(tests, change, without=unchanged.noise)
            if ended == NOT_EXCHANGED:
                return NOT_EXCHANGED, ""
            if ended == "survived":
                break
            if unchanged.passes(last or tests, bool(change)):
                return ended, " ".join(last or tests)
            if not last:
                return "undecided", " ".join(tests)
    return "survived", ""


def _outside(source):
    """Return what a module does at import: its tree without what functions do."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
    return ast.dump(tree)


class Reach:
    """Which tests execute which lines of the package."""

    def __init__(self, database, tests=("tests",)):
        self._tests = tuple(tests)
        self._data = CoverageData(database)
        self._data.read()
        self._names = {
            Path("loop", name.rpartition("/loop/")[2]): name
            for name in self._data.measured_files()
        }
        self._known, self._lock = {}, Lock()

    def _module(self, path):
        """Return the contexts of each line of a module."""
        with self._lock:
            if path not in self._known:
                name = self._names.get(path, "")
                self._known[path] = {
                    line: [
                        one
                        for one in contexts
                        if not one or one.startswith(self._tests)
                    ]
                    for line, contexts in self._data.contexts_by_lineno(name).items()
                }
            return self._known[path]

    def at_import(self, path, before, text):
        """Return whether something executes what differs before any test begins."""
        contexts = self._module(path)
        return any("" in contexts.get(line, ()) for line in changed_lines(before, text))

    def choose(self, mutant, text):
        """Return tests of the module's file, of its room and of others; some or none.

        The nearer a test is to the statement, the earlier it is chosen: what executes
        it, what shares a file with such a fixture, what executes its module.
        """
        lines = self._module(mutant.path)
        every = defaultdict(set)
        for context in set().union(*lines.values()) - {""}:
            test = context.rpartition("|")[0]
            every[test.partition("::")[0]].add(test)
        tiers = {}
        reached = set()
        for line in changed_lines((ROOT / mutant.path).read_text("utf-8"), text):
            reached |= {*lines.get(line, ())}
        for context in reached - {""}:
            tiers[context.rpartition("|")[0]] = 0
        for context in reached:
            if context.endswith("|setup"):
                for test in every[context.partition("::")[0]]:
                    tiers.setdefault(test, 1)
        if "" in reached:
            for test in set().union(*every.values()):
                tiers.setdefault(test, 2)
        package, stem = mutant.path.with_suffix("").parts[-2:]
        room = f"tests/{mutant.room}/"
        own = re.compile(rf"{room}(.*/)?test_({package}_)?{stem}\.py::")
        stages = ({}, {}, {})
        for test, tier in tiers.items():
            near = 0 if own.match(test) else 1 if test.startswith(room) else 2
            stages[near][test] = tier
        near, *far = map(spread, stages)
        return [*filter(None, (near, *(tests[:ELSEWHERE] for tests in far)))]


def changed_lines(before, after):
    """Return the lines of the statement that differs, of a function all of them."""
    old = before.splitlines()
    matcher = SequenceMatcher(None, old, after.splitlines(), autojunk=False)
    changes = [one for one in matcher.get_opcodes() if one[0] != "equal"]
    first, last = changes[0][1] + 1, max(changes[-1][2], changes[0][1] + 1)
    around = [
        one
        for one in ast.walk(ast.parse(before))
        if isinstance(one, ast.stmt) and one.lineno <= first <= last <= one.end_lineno
    ]
    if not around:
        return range(first, last + 1)
    statement = min(around, key=lambda one: one.end_lineno - one.lineno)
    body = getattr(statement, "body", None)
    if not body or isinstance(
        statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ):
        return range(statement.lineno, statement.end_lineno + 1)
    head = max(statement.lineno, body[0].lineno - 1)
    return range(*((statement.lineno, head + 1) if last <= head else (first, last + 1)))


def spread(tiers):
    """Return tests by their tier, there each file in turn.

    Of a file the first cases of parametrised tests come first.
    """
    turns = []
    cases, files = Counter(), Counter()
    for tier, test in sorted((tier, test) for test, tier in tiers.items()):
        function = test.partition("[")[0]
        turns.append((tier, cases[function], test.partition("::")[0], test))
        cases[function] += 1
    placed = []
    for tier, _, file, test in sorted(turns):
        placed.append((tier, files[tier, file], file, test))
        files[tier, file] += 1
    return tuple(test for *_, test in sorted(placed))


class Tree:
    """A copy of the project, and the processes that fork what tests it."""

    def __init__(self, path, tests=("tests",)):
        self.path, self._tests = path, tests
        self._errors, self._scratch = path.with_suffix(".err"), path.with_suffix(".tmp")
        self._kept, self._chosen = path.with_suffix(".last"), path.with_suffix(".tests")
        self._changes = count(int(path.stat().st_mtime))
        self._servers = {}

    def _server(self, *folder):
        """Return the process that collected tests of a tree, or none of any yet."""
        if folder not in self._servers:
            variables = {"PYTHONPATH": str(self.path), "PYTEST_ADDOPTS": ""}
            variables |= {mutant_tests.KEPT: str(self._kept), mutant_tests.ALONE: "yes"}
            if not folder:
                variables |= {mutant_tests.CHOSEN: str(self._chosen)}
            self._servers[folder] = subprocess.Popen(
                [sys.executable, "-P", mutant_tests.__file__, *folder],
                env=os.environ | variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        return self._servers[folder]

    def close(self):
        """End the processes."""
        for server in self._servers.values():
            server.stdin.close()
            server.wait()

    @contextmanager
    def changed(self, path, text):
        """Let a module have another text meanwhile.

        No two texts are written within one second, or Python would use what it compiled
        from the first for a second one of equal length.
        """
        path = self.path / path
        before = path.read_text("utf-8")
        for value in (text, before):
            path.write_text(value, "utf-8")
            os.utime(path, times=(next(self._changes),) * 2)
            if value is text:
                yield

    def test(self, tests, change=None, without=()):
        """Return what came of tests and, where one failed or did not end, which.

        With a change, a path and the texts of the module before and after, it is made
        within functions of what was imported; NOT_EXCHANGED comes back where it cannot.
        """
        self._kept.write_text("", "utf-8")
        self._scratch.mkdir(mode=0o700)
        asked = {"errors": str(self._errors), "limit_s": LIMIT_S}
        asked |= {"scratch": str(self._scratch)}
        if change:
            server = self._server(str(self.path), *self._tests)
            path, before, after = change
            about = {"path": str(self.path / path), "before": before, "after": after}
            asked |= {"change": about}
            asked |= {"tests": [test for test in tests if test not in {*without}]}
        else:
            server = self._server()
            left_out = [f"-{test}" for test in tuple(without)]
            self._chosen.write_text("\n".join([*tests, *left_out]), "utf-8")
            limit = f"faulthandler_timeout={mutant_tests.TEST_LIMIT_S}"
            arguments = ["-x", "-q", *mutant_tests.PLUGINS, "-o", limit]
            arguments += ["-o", "faulthandler_exit_on_timeout=true"]
            arguments += dict.fromkeys(test.partition("::")[0] for test in tests)
            asked |= {"tree": str(self.path), "arguments": arguments}
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        code = json.loads(server.stdout.readline())
        shutil.rmtree(self._scratch, ignore_errors=True)
        late = code is None or b"Timeout (" in self._errors.read_bytes()
        if code == mutant_tests.NOT_EXCHANGED:
            return NOT_EXCHANGED, ()
        # 0: all pass; 5: there is none. All else is a failure, of an import too.
        if code in (0, 5):
            return "survived", ()
        last = self._kept.read_text("utf-8")
        return "killed by time" if late else "killed", (last,) if last else ()


@contextmanager
def copies(many, folder, tests):
    """Keep as many copies of the tree in a queue, each with what is collected of it."""
    queue, trees = SimpleQueue(), []
    for number in range(many):
        path = Path(folder) / str(number)
        shutil.copytree(ROOT, path, ignore=LEFT)
        trees.append(Tree(path, tests))
        queue.put(trees[-1])
    try:
        yield queue
    finally:
        for tree in trees:
            tree.close()


def main():
    """Draw, judge and count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--coverage", required=True, help="database with contexts")
    parser.add_argument("--sample", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--rooms", nargs="*", help="draw from these only")
    parser.add_argument("--modules", nargs="*", help="change each statement of these")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="run only these")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    drawn = (
        draw_each(given.modules, rng)
        if given.modules
        else draw(find_mutants(given.rooms), given.sample, rng)
    )
    ends = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        copies(given.jobs + 1, folder, given.tests) as trees,
        ThreadPoolExecutor(given.jobs) as pool,
    ):
        unchanged, reach = Unchanged(trees.get()), Reach(given.coverage, given.tests)

        def one(pair):
            tree = trees.get()
            try:
                return *pair, *judge(tree, *pair, unchanged, reach)
            finally:
                trees.put(tree)

        for done in as_completed([pool.submit(one, pair) for pair in drawn]):
            mutant, text, end, test = done.result()
            ends[end.split()[0]] += 1
            about = {
                "end": end,
                "path": str(mutant.path),
                "operator": mutant.operator,
                "diff": mutant.diff(text),
                "test": test,
            }
            print(json.dumps(about), flush=True)
    del ends["undecided"]
    killed, total = ends["killed"], ends.total()
    low, high = clopper_pearson(killed, total)
    print(
        f"{killed} of {total} killed ({killed / total:.1%}, exact 95 % interval "
        f"{low:.1%} to {high:.1%})",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
