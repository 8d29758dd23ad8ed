"""Executes the notebooks anew and writes what they show.

Run with ``python -m tests.notebooks.write [NAME ...]``.
"""

import sys
from pathlib import Path

import nbformat

from tests.notebooks.kernel import execute

FOLDER = Path(__file__).parents[2] / "notebooks"

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
"""Nothing of the machine: versions there would change with each execution."""


def write(path: Path) -> None:
    """Execute a notebook and put its outputs into its file."""
    notebook = execute(path)
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
    nbformat.write(notebook, path)


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(path.name for path in FOLDER.glob("*.ipynb"))
    for name in names:
        write(FOLDER / name)
        print(f"wrote {FOLDER / name}")
