"""The contents page of CONTRIBUTING.md: one line a module, as its docstring begins.

``python -m tests.contents`` writes it again.
"""

import ast
from pathlib import Path

import loop

PACKAGE = Path(loop.__file__).parent
PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"
TITLE = "## Contents\n"


def contents():
    """Return the page: a heading for each folder, below it its modules."""
    lines = [TITLE, "Written by `python -m tests.contents` from the docstrings."]
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        modules = sorted(folder.glob("*.py"))
        about = folder / "__init__.py"
        said = first_line(about) if about.is_file() else ""
        lines += ["", f"### {folder.relative_to(PACKAGE.parent)}/", "", said, "", "```"]
        width = max(len(path.stem) for path in modules)
        lines += [
            f"{path.stem:<{width}}  {first_line(path)}"
            for path in modules
            if path.name != "__init__.py"
        ]
        lines += ["```"]
    return "\n".join(lines) + "\n"


def first_line(path):
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")[0]


def written():
    """Return CONTRIBUTING.md as it must be."""
    before, _, _ = PAGE.read_text("utf-8").partition(f"\n{TITLE}")
    return f"{before.rstrip()}\n\n{contents()}"


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
