"""Change the package in one place at a time and see whether its tests notice.

``python -m tests.mutants --sample 300 --seed 1 > mutants.jsonl`` draws that many
mutants of Cosmic Ray's operators (the extra `mutants`), each room of `loop/` in
proportion to what there is to change in it, and runs for each the tests that name its
module, then those of its room. Annotations are not mutated. All these tests are run on
the unchanged package first: where one fails, every mutant would seem to be killed.

One JSON object a line says what was changed and what came of it; the share that was
killed, with its exact 95 % interval, comes last, on stderr. A survivor is read by a
person: some change nothing, some only words.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from pathlib import Path
from queue import SimpleQueue

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

from loop.stats.intervals import clopper_pearson

ROOT = Path(__file__).parent.parent
LIMIT_S = 900

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


def judge(tree, mutant, text):
    """Return what the tests make of a mutant, in a copy of the tree."""
    path = tree / mutant.path
    before = path.read_text("utf-8")
    path.write_text(text, "utf-8")
    try:
        for tests in choose_tests(mutant):
            ended = _pytest(tree, tests)
            if ended != "survived":
                return ended
        return "survived"
    finally:
        path.write_text(before, "utf-8")


def choose_tests(mutant):
    """Yield the test files that name the module, then the others of its room."""
    module = ".".join(mutant.path.with_suffix("").parts)
    every = sorted(ROOT.glob("tests/**/test_*.py"))
    named = [path for path in every if module in path.read_text("utf-8")]
    room = ROOT / "tests" / mutant.room
    rest = [path for path in every if room in path.parents and path not in named]
    for paths in filter(None, (named, rest)):
        yield [path.relative_to(ROOT) for path in paths]


def require_passing(tree, mutants):
    """Refuse to go on where the tests fail without any change."""
    tests = {path for one in mutants for paths in choose_tests(one) for path in paths}
    for path in sorted(tests):
        if _pytest(tree, [path]) != "survived":
            sys.exit(f"{path} fails on the unchanged package: nothing was measured")


def _pytest(tree, tests):
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTEST_ADDOPTS": ""}
    try:
        ended = subprocess.run(
            [*command, *map(str, tests)],
            cwd=tree,
            env=environment,
            timeout=LIMIT_S,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "killed by time"
    # 1: a test fails; 2: a module cannot be imported. 5, no test, kills nothing.
    return "killed" if ended.returncode in (1, 2) else "survived"


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
        trees = copies(given.jobs, folder)
        require_passing(Path(folder) / "0", [mutant for mutant, _ in drawn])

        def one(pair):
            mutant, text = pair
            tree = trees.get()
            try:
                return mutant, text, judge(tree, mutant, text)
            finally:
                trees.put(tree)

        for mutant, text, end in pool.map(one, drawn):
            ends[end.split()[0]] += 1
            about = {
                "end": end,
                "path": str(mutant.path),
                "operator": mutant.operator,
                "diff": mutant.diff(text),
            }
            print(json.dumps(about), flush=True)
    killed, total = ends["killed"], ends.total()
    low, high = clopper_pearson(killed, total)
    print(
        f"{killed} of {total} killed ({killed / total:.1%}, exact 95 % interval "
        f"{low:.1%} to {high:.1%})",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
