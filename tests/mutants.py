"""Change the package in one place at a time and see whether its tests notice.

``python -m tests.mutants --sample 300 --seed 1 > mutants.jsonl`` draws that many
mutants of Cosmic Ray's operators (the extra `mutants`), each room of `loop/` in
proportion to what there is to change in it; annotations are not mutated. Each mutant
meets the tests of its module, those that name it (of other rooms a dozen files at
most), then the others of its room that import it, directly or not; where there are
none, a dozen files of other rooms that do.

The test that kills a mutant must pass on the unchanged package, where it is run once;
else it is left out, and the mutant is run on without it.

No test starts a browser, those of the room ui neither: what only they would notice is
counted as a survivor. So is what only the tests of another room's commands would.

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
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from difflib import unified_diff
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

from loop.stats.intervals import clopper_pearson
from tests import last_test

ROOT = Path(__file__).parent.parent
LIMIT_S = 900
TEST_LIMIT_S = 120
"""The slowest test takes 25 seconds, most take hundredths of one."""

ELSEWHERE = 12
"""How many files of other rooms that name a module are run."""

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
        """Return the module with the change; None where only annotations change."""
        before = (ROOT / self.path).read_text("utf-8")
        after = mutate_code(
            before, get_operator(f"core/{self.operator}")(), self.occurrence
        )
        if after is None or _meaning(before) == _meaning(after):
            return None
        return after

    def diff(self, after):
        """Return the lines that were changed."""
        before = (ROOT / self.path).read_text("utf-8")
        lines = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        return [line for line in lines if not line.startswith(("---", "+++"))]


def _meaning(source):
    """Return what a module does: its tree without annotations."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None):
                setattr(node, name, ast.Constant(value=None))
    return ast.dump(tree)


def find_mutants():
    """Return every mutant by room and then by kind."""
    found = defaultdict(lambda: defaultdict(list))
    for path in sorted(ROOT.glob("loop/*/**/*.py")):
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


class Unchanged:
    """The unchanged package: whether a test passes there, asked once."""

    def __init__(self, tree):
        self.tree, self.noise = tree, set()
        self._passed, self._lock = {}, Lock()

    def passes(self, tests):
        """Return whether tests pass without any change; one that does not is noise."""
        with self._lock:
            if tests not in self._passed:
                self._passed[tests] = _pytest(self.tree, tests)[0] == "survived"
                if not self._passed[tests] and "::" in tests[0]:
                    self.noise |= {*tests}
            return self._passed[tests]


def judge(tree, mutant, text, unchanged):
    """Return what the tests make of a mutant, in a copy of the tree, and which did."""
    path = tree / mutant.path
    before = path.read_text("utf-8")
    path.write_text(text, "utf-8")
    try:
        for tests in choose_tests(mutant):
            while True:
                ended, last = _pytest(tree, tests, without=tuple(unchanged.noise))
                if ended == "survived":
                    break
                if unchanged.passes(last or tests):
                    return ended, " ".join(last or tests)
                if not last:
                    return "undecided", " ".join(tests)
        return "survived", ""
    finally:
        path.write_text(before, "utf-8")


def choose_tests(mutant):
    """Yield the test files of the module, others that name it, the rest of its room."""
    package, stem = mutant.path.with_suffix("").parts[-2:]
    own = re.compile(rf"test_({package}_)?{stem}\.py")
    module = ROOT / mutant.path
    stages = ([], [], [], [], [])
    for path in sorted(ROOT.glob("tests/**/test_*.py"), key=lambda p: p.stat().st_size):
        inside = path.relative_to(ROOT / "tests").parts[0] == mutant.room
        if inside and own.fullmatch(path.name):
            stages[0].append(path)
        elif module in _imports(path):
            stages[1 if inside else 2].append(path)
        elif module in _reach(path):
            stages[3 if inside else 4].append(path)
    del stages[2][ELSEWHERE:], stages[4][0 if any(stages[:4]) else ELSEWHERE :]
    for paths in filter(None, stages):
        yield tuple(str(path.relative_to(ROOT)) for path in paths)


@cache
def _imports(path):
    """Return the files of the package and of its tests that a file names."""
    source = path.read_text("utf-8")
    names = set(re.findall(r"\b(?:loop|tests)(?:\.\w+)+", source))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{one.name}" for one in node.names}
    ends = (".py", "/__init__.py")
    files = {ROOT / f"{name.replace('.', '/')}{end}" for name in names for end in ends}
    if "import_module(" in source:
        files |= {*path.parent.glob("*.py")}
    return {one for one in files if one.is_file()}


@cache
def _reach(path):
    """Return the files that a test imports, directly or not, with its fixtures."""
    found, new = set(), {path, *(one / "conftest.py" for one in path.parents)}
    while new := {one for one in new - found if one.is_file()}:
        found |= new
        new = set().union(*map(_imports, new))
    return found


def _pytest(tree, tests, without=()):
    """Return what came of tests and, where one failed or did not end, which."""
    kept = tree.with_suffix(".last")
    kept.write_text("", "utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "tests.last_test", "-o", f"faulthandler_timeout={TEST_LIMIT_S}"]
    command += ["-o", "faulthandler_exit_on_timeout=true", *tests]
    command += [f"--deselect={one}" for one in without]
    variables = {"PYTHONPATH": str(tree), "PYTEST_ADDOPTS": ""}
    variables |= {last_test.KEPT: str(kept), last_test.ALONE: "yes"}
    with tree.with_suffix(".err").open("w+b") as errors:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=os.environ | variables,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        errors.seek(0)
        late = code is None or b"Timeout (" in errors.read()
    # 0: all pass; 5: there is none. All else is a failure, of an import too.
    if code in (0, 5):
        return "survived", ()
    last = kept.read_text("utf-8")
    return "killed by time" if late else "killed", (last,) if last else ()


def copies(many, folder):
    """Return a queue of as many copies of the tree."""
    queue = SimpleQueue()
    for number in range(many):
        tree = Path(folder) / str(number)
        shutil.copytree(ROOT, tree, ignore=LEFT)
        queue.put(tree)
    return queue


def main():
    """Draw, judge and count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    given = parser.parse_args()
    drawn = draw(find_mutants(), given.sample, random.Random(given.seed))
    ends = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(given.jobs) as pool,
    ):
        trees = copies(given.jobs + 1, folder)
        unchanged = Unchanged(trees.get())

        def one(pair):
            tree = trees.get()
            try:
                return *pair, *judge(tree, *pair, unchanged)
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
