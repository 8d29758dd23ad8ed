"""The workspace: found upwards, made from the shipped material, private where due."""

import sys
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest
import yaml

from loop.core import paths
from loop.core.errors import WorkspaceError
from loop.core.paths import bundled, find_workspace, init_workspace, install_command


def test_fresh_workspace_has_the_shipped_material(workspace):
    """A newcomer starts with taxonomy, cues, protocol and the extractor."""
    for part in ("taxonomy.yaml", "protocol.yaml", "cues/en.yaml"):
        assert (workspace.labels / part).is_file()
    assert (workspace.prompts / "extractor" / "v1" / "prompt.yaml").is_file()
    assert workspace.ledger.is_file()


def test_private_folder_is_closed_and_ignored(workspace):
    """Clinical text stays with its owner and out of version control."""
    assert workspace.private.stat().st_mode & 0o777 == 0o700
    assert (workspace.private / ".gitignore").read_text() == "*\n"
    assert ".ranloop/" in (workspace.root / ".gitignore").read_text()
    attributes = (workspace.root / ".gitattributes").read_text()
    assert "reports/releases/** -text" in attributes


def test_found_from_a_folder_below(workspace):
    """Commands work anywhere inside a workspace."""
    inner = workspace.labels / "cohorts"
    inner.mkdir(exist_ok=True)
    assert find_workspace(inner).root == workspace.root


def test_missing_workspace_says_how_to_make_one(tmp_path):
    """The error is the way out."""
    with pytest.raises(WorkspaceError, match="ranloop init"):
        find_workspace(tmp_path)
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        find_workspace(tmp_path, tmp_path)


def test_existing_workspace_is_not_overwritten(workspace):
    """Init never touches a workspace that is there."""
    with pytest.raises(WorkspaceError, match="already a workspace"):
        init_workspace(workspace.root)


def test_shipped_material_is_found():
    """One function finds it in a checkout and in a wheel."""
    assert (bundled() / "labels" / "taxonomy.yaml").is_file()


def test_a_new_workspace_says_what_an_uncertain_answer_counts_as(tmp_path):
    """A hedge is an error: what the shipped release was judged by."""
    made = yaml.safe_load(init_workspace(tmp_path / "ws").protocol.read_text("utf-8"))
    assert (made["uncertain_answers"], made["max_uncertain"]) == ("wrong", 0.05)


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (None, "'ranloop[plot]'"),
        ('{"url": "https://host.example/r.whl"}', "'ranloop[plot]'"),
        (
            '{"url": "file:///home/a%20b/ranloop", "dir_info": {"editable": true}}',
            "-e '/home/a b/ranloop[plot]'",
        ),
        ('{"url": "file:///srv/ranloop", "dir_info": {}}', "'/srv/ranloop[plot]'"),
        (
            '{"url": "file:///srv/r-1-py3-none-any.whl", "archive_info": {}}',
            "'/srv/r-1-py3-none-any.whl[plot]'",
        ),
    ],
)
def test_an_extra_is_added_as_ranloop_was_installed(monkeypatch, record, shown):
    """The package may be in no index: the command must work where it is read."""
    found = SimpleNamespace(read_text=lambda name: record)
    monkeypatch.setattr(paths, "distribution", lambda name: found)
    assert install_command("plot") == f"{sys.executable} -m pip install {shown}"


def test_a_source_tree_that_is_not_installed_names_the_package(monkeypatch):
    """There is no record to read."""

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(paths, "distribution", missing)
    assert install_command("plot").endswith(" -m pip install 'ranloop[plot]'")
