"""The workspace: found upwards, made from the shipped material, private where due."""

import re
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from loop.core import paths
from loop.core.errors import DataError, WorkspaceError, WriteError
from loop.core.paths import (
    WorkspacePaths,
    bundled,
    find_workspace,
    init_workspace,
    install_command,
    material,
    refuse_workspace,
)


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
            '{"url": "file:///srv/ranloop", "dir_info": {"editable": false}}',
            "'/srv/ranloop[plot]'",
        ),
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


def test_a_workspace_behind_a_link_keeps_its_files_too(tmp_path):
    """Whichever of the two names the document is given by."""
    (tmp_path / "ws" / "prompts").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "ws")
    for root in ("ws", "link"):
        for named in ("ws", "link"):
            with pytest.raises(DataError, match="lies in prompts/"):
                WorkspacePaths(tmp_path / root).require_outside(
                    tmp_path / named / "prompts" / "x.md"
                )


def test_a_workspace_is_the_same_from_wherever_it_was_made(tmp_path, monkeypatch):
    """Its paths stay right when the process goes elsewhere."""
    monkeypatch.chdir(tmp_path)
    assert init_workspace(Path("ws")).root == tmp_path.resolve() / "ws"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("prompts/x.md", "prompts"),
        ("prompts", "prompts"),
        ("labels/cohorts/x.md", "labels"),
        ("reports/releases/x.md", "releases"),
        ("reports/releases", "releases"),
        (".ranloop/x.md", ".ranloop"),
        ("reports/../prompts/x.md", "prompts"),
        ("link/x.md", "labels"),
        ("x.md", None),
        ("reports/x.md", None),
        ("reports/releases.md", None),
        ("prompts2/x.md", None),
        ("../x.md", None),
    ],
)
def test_no_document_is_written_over_the_workspace_s_own_files(tmp_path, name, folder):
    """Nor through a link or by way of a folder beside; all else is its owner's."""
    place = WorkspacePaths(tmp_path / "ws")
    place.labels.mkdir(parents=True)
    (place.root / "link").symlink_to(place.labels)
    if folder is None:
        place.require_outside(place.root / name)
        return
    with pytest.raises(DataError, match=rf" lies in {re.escape(folder)}/, "):
        place.require_outside(place.root / name)


@pytest.mark.parametrize("taxonomy", [None, "a taxonomy\n"])
def test_a_workspace_that_was_not_finished_may_be_made_again(tmp_path, taxonomy):
    """What holds nothing but what is put there loses nothing."""
    place = init_workspace(tmp_path / "ws", taxonomy)
    assert not list(place.prompts.iterdir())
    (place.root / ".gitignore").write_text("mine\n")
    (place.labels / "protocol.yaml").unlink()
    assert init_workspace(tmp_path / "ws", taxonomy) == place
    assert place.protocol.is_file()
    assert (place.root / ".gitignore").read_text() == "mine\n"


@pytest.mark.parametrize("part", ["prompts/extractor", "labels/cohorts"])
def test_a_workspace_that_was_begun_is_not_made_again(tmp_path, part):
    """A prompt or a cohort is somebody's work, either alone."""
    place = init_workspace(tmp_path / "ws")
    (place.root / part).mkdir()
    with pytest.raises(WorkspaceError, match="already a workspace"):
        init_workspace(tmp_path / "ws")


def test_a_workspace_of_another_task_is_not_made_again(tmp_path):
    """Its taxonomy would be lost; and one without a taxonomy is none of ours."""
    place = init_workspace(tmp_path / "ws", "one\n")
    for taxonomy in (None, "another\n"):
        with pytest.raises(WorkspaceError, match="already a workspace"):
            refuse_workspace(tmp_path / "ws", taxonomy)
    refuse_workspace(tmp_path / "ws", "one\n")
    (place.labels / "taxonomy.yaml").unlink()
    with pytest.raises(WorkspaceError, match="already a workspace"):
        refuse_workspace(tmp_path / "ws", "one\n")


def test_a_workspace_of_another_task_has_no_crosswalks_of_chest_x_rays(tmp_path):
    """They lead to labels that it does not have."""
    assert (init_workspace(tmp_path / "chest").labels / "crosswalks").is_dir()
    other = init_workspace(tmp_path / "other", "one\n")
    assert not (other.labels / "crosswalks").exists()
    assert (other.labels / "taxonomy.yaml").read_text() == "one\n"
    assert (other.labels / "errors.yaml").is_file()


@pytest.mark.parametrize("parts", [(), ("prompts",), ("labels",)])
def test_a_folder_with_one_of_the_two_is_no_workspace(tmp_path, parts):
    """Any project may have a folder of prompts; the search goes on above it."""
    outer, inner = tmp_path / "ws", tmp_path / "ws" / "inner"
    for part in ("prompts", "labels", *(f"inner/{part}" for part in parts)):
        (outer / part).mkdir(parents=True)
    inner.mkdir(exist_ok=True)
    assert find_workspace(inner).root == outer
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        find_workspace(tmp_path, inner)
    refuse_workspace(inner)


def test_each_thing_has_its_place(tmp_path):
    """All of them, from the root."""
    place = WorkspacePaths(tmp_path)
    found = {
        name: getattr(place, name).relative_to(tmp_path).as_posix()
        for name, value in vars(WorkspacePaths).items()
        if isinstance(value, property)
    }
    assert found == {
        "prompts": "prompts",
        "labels": "labels",
        "cohorts": "labels/cohorts",
        "ledger": "prompts/ledger.jsonl",
        "protocol": "labels/protocol.yaml",
        "private": ".ranloop",
        "store": ".ranloop/store.db",
        "config": ".ranloop/config.yaml",
        "keys": ".ranloop/keys",
        "releases": "reports/releases",
    }


def test_without_a_workspace_the_shipped_material_is_read(workspace):
    """With one, its own."""
    assert material(workspace) is workspace
    assert material(None) == WorkspacePaths(bundled())


def test_a_workspace_is_found_by_its_whole_name(tmp_path, monkeypatch):
    """Named in a short way or come upon, it is the same one."""
    place = init_workspace(tmp_path / "ws")
    monkeypatch.chdir(tmp_path)
    assert find_workspace(tmp_path, paths.Path("ws")) == place
    assert find_workspace(paths.Path("ws/labels")) == place
    with pytest.raises(WorkspaceError) as refused:
        find_workspace(tmp_path, paths.Path("other"))
    assert str(refused.value) == (
        "other is not a workspace: it has no prompts/ and labels/. "
        "Make one with `ranloop init other`."
    )
    with pytest.raises(WorkspaceError, match=f"no workspace at {tmp_path} or above"):
        find_workspace(paths.Path())


def test_where_a_file_lies_no_workspace_is_made(tmp_path):
    """The message is about the folder that was asked for."""
    (tmp_path / "ws").write_text("mine")
    with pytest.raises(WriteError, match=r"^cannot write /.*/ws: Not a directory"):
        init_workspace(tmp_path / "ws")
    (tmp_path / "other" / "labels" / "cues" / "en.yaml").mkdir(parents=True)
    with pytest.raises(WriteError, match=r"^cannot write /.*/other: .*Is a directory"):
        init_workspace(tmp_path / "other")
    assert not (tmp_path / "other" / "prompts").exists()
    closed = WorkspacePaths(tmp_path / "ws")
    with pytest.raises(WriteError, match=r"^cannot write /.*/ws/\.ranloop: Not a di"):
        closed.open_private()


def test_what_somebody_wrote_beside_the_private_files_stays(tmp_path):
    """The folder is opened again and again."""
    place = WorkspacePaths(tmp_path)
    assert place.open_private() == tmp_path / ".ranloop"
    assert place.private.stat().st_mode & 0o777 == 0o700
    (place.private / ".gitignore").write_text("mine\n")
    place.open_private()
    assert (place.private / ".gitignore").read_text() == "mine\n"
    (place.private / ".gitignore").unlink()
    place.open_private()
    assert (place.private / ".gitignore").read_text() == "*\n"


def test_files_for_git_keep_private_what_is_and_whole_what_is_pinned(tmp_path):
    """Both texts, as they are written."""
    place = init_workspace(tmp_path / "ws")
    assert (place.root / ".gitignore").read_text() == ".ranloop/\n"
    assert (place.root / ".gitattributes").read_text() == (
        "prompts/** -text\nlabels/cohorts/** -text\nreports/releases/** -text\n"
    )
