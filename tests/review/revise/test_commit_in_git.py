"""A workspace in a git repository: each act is one commit of what belongs to it."""

import shutil
import subprocess
from dataclasses import replace

import pytest

from loop.core.ledger import Actor, read_ledger
from loop.core.records import Mark
from loop.labels.cohort import read_cohort
from loop.labels.reference import correct_reference
from loop.prompts.catalog import read_version, write_version
from loop.prompts.history import move_alias
from loop.release.keys import (
    make_key,
    read_public_keys,
    signature_problem,
    signer_for,
)
from loop.review.revise.commit import Commitment, commit_draft


@pytest.fixture
def git(setting, monkeypatch, tmp_path):
    """Return a function that runs git in the workspace, which is a repository."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    root = str(setting.workspace.root)

    def run(*arguments):
        command = ["git", "-C", root, "-c", "user.name=Owner", "-c", "user.email=o@x"]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    run("init", "-q")
    run("add", ".")
    run("commit", "-qm", "start")
    return run


def commit(setting, actor=None, prompt=None):
    """Commit a draft of ``tiny`` or of another prompt; return the version."""
    prompt = prompt or setting.tiny
    version = replace(
        prompt,
        number=0,
        draft="first",
        parent=prompt.digest,
        system="Read the report twice.\n",
        why="a wish",
    )
    draft = write_version(setting.workspace, version)
    decision = Commitment(
        actor=actor or setting.editor, reason="tested", evidence={"gained": 1}
    )
    return commit_draft(setting.workspace, draft, decision)


def files_of(git):
    """Return the files of the newest commit."""
    return set(git("show", "--format=", "--name-only").splitlines())


def test_a_version_is_one_commit_of_its_files_by_its_author(setting, git):
    """Nothing of the person's own work goes with it."""
    own = setting.workspace.root / "notes.txt"
    own.write_text("mine")
    git("add", "notes.txt")
    version = commit(setting)
    assert files_of(git) == {
        "prompts/ledger.jsonl",
        "prompts/tiny/v2/guides.yaml",
        "prompts/tiny/v2/prompt.yaml",
        "prompts/tiny/v2/system.jinja",
        "prompts/tiny/v2/user.jinja",
    }
    assert git("log", "-1", "--format=%an|%s") == f"{setting.editor.name}|tiny@v2"
    assert f"Digest: {version.digest}" in git("log", "-1", "--format=%B")
    assert git("status", "--porcelain") == "A  notes.txt"
    assert git("rev-list", "--count", "HEAD") == "2"


def test_a_reference_corrected_on_the_way_goes_with_the_version(setting, git):
    """The version was tested on it: one does not make sense without the other."""
    cohort = read_cohort(setting.workspace, "dev")
    wrong = {("s1", "cardiomegaly"): Mark.PRESENT}
    correct_reference(
        setting.workspace, cohort, wrong, actor=setting.editor, reason="judged wrong"
    )
    commit(setting)
    assert "labels/cohorts/dev/reference/v2.csv" in files_of(git)
    assert git("status", "--porcelain") == ""


def test_what_another_prompt_committed_meanwhile_ends_nothing(setting, git):
    """References corrected before and after it go with the version all the same."""
    config = setting.workspace.private / "config.yaml"
    config.write_text("git: off\n")
    cohort = read_cohort(setting.workspace, "dev")

    def correct(label):
        wrong = {("s1", label): Mark.PRESENT}
        correct_reference(
            setting.workspace, cohort, wrong, actor=setting.editor, reason="wrong"
        )

    correct("cardiomegaly")
    other = write_version(setting.workspace, replace(setting.tiny, name="other"))
    assert commit(setting, prompt=other).ref == "other@v2"
    correct("pleural_effusion")
    config.unlink()
    commit(setting)
    assert {name for name in files_of(git) if name.startswith("labels/")} == {
        "labels/cohorts/dev/reference/v2.csv",
        "labels/cohorts/dev/reference/v3.csv",
    }


def test_an_alias_is_one_commit_of_the_ledger(setting, git):
    """Who put what into production stands in git as it does in the ledger."""
    other = Actor(name="Dr B. Example")
    move_alias(setting.workspace, "tiny@v1", "production", actor=other, reason="good")
    assert files_of(git) == {"prompts/ledger.jsonl"}
    shown = git("log", "-1", "--format=%an|%s|%b")
    assert shown == "Dr B. Example|tiny@production is tiny@v1|good"


def test_a_commit_killed_before_git_is_finished_by_the_next_call(setting, git):
    """The version and its entry are there, the draft too, and git knows of nothing."""
    git("config", "user.name", "Owner")
    (setting.workspace.private / "config.yaml").write_text("git: off\n")
    version = commit(setting)
    assert git("rev-list", "--count", "HEAD") == "1"
    (setting.workspace.private / "config.yaml").unlink()
    assert commit(setting) == version
    assert git("rev-list", "--count", "HEAD") == "2"
    assert "prompts/tiny/v2/prompt.yaml" in files_of(git)
    commits = [
        entry
        for entry in read_ledger(setting.workspace.ledger)
        if entry.subject == version.ref
    ]
    assert len(commits) == 1


def test_a_git_that_fails_loses_no_act(setting, git, caplog):
    """The version is committed in the ledger; a remark says what git lacks."""
    lock = setting.workspace.root / ".git" / "index.lock"
    lock.touch()
    assert commit(setting).ref == "tiny@v2"
    move_alias(
        setting.workspace, "tiny@v2", "best", actor=setting.editor, reason="good"
    )
    assert len(caplog.records) == 2
    assert "index.lock" in caplog.text
    assert read_version(setting.workspace, "tiny@best").number == 2
    lock.unlink()


def test_without_a_repository_nothing_changes(setting, git, caplog):
    """Everything works as it did."""
    shutil.rmtree(setting.workspace.root / ".git")
    assert commit(setting).ref == "tiny@v2"
    assert not caplog.records


def test_who_has_a_key_signs_versions_and_aliases(setting):
    """Both entries are theirs, as anyone with the public key can tell."""
    place, name = setting.workspace, setting.editor.name
    key = make_key(place, name, "editor", setting.editor)
    actor = replace(setting.editor, signer=signer_for(place, name))
    commit(setting, actor)
    move_alias(place, "tiny@v2", "best", actor=actor, reason="good")
    for entry in read_ledger(place.ledger)[-2:]:
        assert entry.keyid == key.keyid
        assert signature_problem(entry, read_public_keys(place)) == ""
