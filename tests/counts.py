"""Count what the package is made of: a report, not a limit.

``python -m tests.counts [FOLDER]`` prints it for `loop/`, or for another version's
folder of that name.
"""

import ast
import sys
import tokenize
from collections import Counter
from pathlib import Path
from statistics import median

import loop

RECORDS = ("NamedTuple", "BaseModel", "dataclass")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def main():
    """Print the counts, one a line."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(loop.__file__).parent)
    counts = count(sorted(folder.rglob("*.py")))
    width = max(map(len, counts))
    for what, number in counts.items():
        print(f"{what:<{width}}  {number:>7,}")


def count(paths):
    """Return numbers by what they count."""
    texts = [path.read_text("utf-8") for path in paths]
    trees = [ast.parse(text) for text in texts]
    lengths = [text.count("\n") for text in texts]
    everything = [node for tree in trees for node in ast.walk(tree)]
    classes = [node for node in everything if isinstance(node, ast.ClassDef)]
    outer = Counter(
        node.name
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    )
    functions = [node for node in everything if isinstance(node, FUNCTIONS)]
    named = Counter(node.id for node in everything if isinstance(node, ast.Name))
    named += Counter(
        node.attr for node in everything if isinstance(node, ast.Attribute)
    )
    docstrings = sum(map(docstring_lines, [*trees, *classes, *functions]))
    blank = sum(not line.strip() for text in texts for line in text.splitlines())
    comments = sum(map(comment_lines, paths))
    return {
        "modules": len(paths),
        "lines": sum(lengths),
        "lines of docstrings": docstrings,
        "blank lines": blank,
        "lines of comments alone": comments,
        "longest module": max(lengths),
        "median module": int(median(lengths)),
        "classes": len(classes),
        "records among them": sum(map(is_record, classes)),
        "class names of several modules": sum(n > 1 for n in outer.values()),
        "functions": len(functions),
        "private functions named once": sum(
            one.name.startswith("_") and named[one.name] == 1 for one in functions
        ),
        "parameters that are packed tuples": sum(map(packed, functions)),
    }


def docstring_lines(node):
    """Return how many lines the docstring of a node takes."""
    first = node.body[0] if node.body else None
    has = ast.get_docstring(node) is not None
    return first.end_lineno - first.lineno + 1 if has else 0


def comment_lines(path):
    """Return how many lines hold a comment and nothing else."""
    with tokenize.open(path) as file:
        tokens = tokenize.generate_tokens(file.readline)
        return sum(
            one.type == tokenize.COMMENT and not one.line[: one.start[1]].strip()
            for one in tokens
        )


def is_record(node):
    """Return whether a class is a plain record."""
    marks = [*node.bases, *node.decorator_list]
    return any(name in ast.unparse(mark) for mark in marks for name in RECORDS)


def packed(function):
    """Return how many parameters are tuples of a fixed number of unlike things."""
    found = 0
    for one in [*function.args.args, *function.args.kwonlyargs]:
        kind = ast.unparse(one.annotation) if one.annotation else ""
        parts = kind.removeprefix("tuple[").removesuffix("]").split(", ")
        if kind.startswith("tuple[") and "..." not in kind and len(set(parts)) > 1:
            found += 1
    return found


if __name__ == "__main__":
    main()
