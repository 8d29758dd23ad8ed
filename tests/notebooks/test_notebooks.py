"""The notebooks: executed from a clean kernel, and as they are committed."""

import json
import re

import nbformat
import pytest

from tests.notebooks.kernel import execute
from tests.notebooks.write import FOLDER, METADATA

NAMES = ("01_the_loop.ipynb", "02_ran_score.ipynb", "03_judges.ipynb")

_MASKS = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?", "TIME"),
    (r"\b\d{8}-\d{6}-[0-9a-f]{6}(-\d+)?\b", "RUN"),
    (r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,64}\b", "DIGEST"),
    (r"\b\d+(\.\d+)? (s|ms|seconds)\b", "DURATION"),
)
"""What may differ from one execution to the next."""

_PATHS = re.compile(
    r"(?<![\w.…])/(root|home|Users|tmp|work|var|private|opt|usr|etc|mnt)/|[A-Z]:\\\\"
)


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """Return the name of a notebook; fail where the notebooks were left behind."""
    if not (FOLDER / request.param).is_file():
        pytest.fail(
            f"{request.param} is not in {FOLDER}: where the tests are copied, copy "
            "notebooks/ beside tests/"
        )
    return request.param


@pytest.fixture(scope="module")
def committed(name: str) -> nbformat.NotebookNode:
    """Return a notebook as it is committed."""
    return nbformat.read(FOLDER / name, as_version=4)


@pytest.fixture(scope="module")
def executed(name: str, tmp_path_factory: pytest.TempPathFactory):
    """Return the same notebook, executed now."""
    with pytest.MonkeyPatch.context() as patch:
        # What IPython, Jupyter and matplotlib leave behind stays out of the home.
        home = tmp_path_factory.mktemp("home")
        for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
            patch.setenv(variable, str(home / variable.lower()))
        patch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        patch.setenv("PYTHONWARNINGS", "error::DeprecationWarning:__main__")
        return execute(FOLDER / name)


def code_cells(notebook):
    """Return the cells with code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell) -> str:
    """Return the text that a cell shows, without what differs each time."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stderr":
            continue
        data = output.get("data", {})
        parts.append(output.get("text") or data.get("text/plain", ""))
        parts += re.findall(r">([^<>]+)<", data.get("image/svg+xml", ""))
    text = "\n".join(parts)
    for pattern, word in _MASKS:
        text = re.sub(pattern, word, text)
    return text


def kinds(cell) -> list[list[str]]:
    """Return what forms the outputs of a cell have."""
    return [sorted(output.get("data", {})) for output in cell.outputs]


@pytest.mark.slow
def test_executed_anew_it_shows_what_is_committed(committed, executed):
    """Numbers in a notebook that no code gives any more would be false claims."""
    for old, new in zip(code_cells(committed), code_cells(executed), strict=True):
        assert shown(new) == shown(old), old.source


@pytest.mark.slow
def test_executed_anew_it_has_the_same_figures_and_tables(committed, executed):
    """A figure that became its own description would go unseen."""
    for old, new in zip(code_cells(committed), code_cells(executed), strict=True):
        assert kinds(new) == kinds(old), old.source


@pytest.mark.slow
def test_nothing_is_said_on_stderr(executed):
    """A warning in a walk-through is the first thing that its reader meets."""
    said = [
        output.text
        for cell in code_cells(executed)
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stderr"
    ]
    assert [text for text in said if "font cache" not in text] == []


def test_every_cell_was_executed_once_and_in_order(committed):
    """Else the outputs are not those of the notebook."""
    counts = [cell.execution_count for cell in code_cells(committed)]
    assert counts == list(range(1, len(counts) + 1))


def test_outputs_are_committed(committed):
    """Most readers see a notebook on a page that executes nothing."""
    outputs = [output for cell in code_cells(committed) for output in cell.outputs]
    forms = {form for output in outputs for form in output.get("data", {})}
    assert {"text/html", "image/png"} <= forms
    assert all(output.output_type != "error" for output in outputs)


def test_no_path_of_a_machine_is_committed(committed):
    """A path says who works where, and changes with whoever executes it."""
    texts = [cell.source for cell in committed.cells]
    for cell in code_cells(committed):
        for output in cell.outputs:
            forms = dict(output.get("data", {}), text=output.get("text", ""))
            forms.pop("image/png", None)
            texts += map(str, forms.values())
    assert [found[0] for text in texts if (found := _PATHS.search(text))] == []


def test_nothing_of_a_machine_is_in_the_metadata(committed):
    """Versions and times there would change with each execution, for nothing."""
    assert committed.metadata == METADATA
    assert {json.dumps(cell.metadata) for cell in committed.cells} == {"{}"}


def test_a_link_to_another_notebook_leads_there(committed):
    """A walk-through that ends in nothing ends too early."""
    for cell in committed.cells:
        for target in re.findall(r"\]\(([\w./-]+\.ipynb)\)", cell.source):
            assert (FOLDER / target).is_file()
