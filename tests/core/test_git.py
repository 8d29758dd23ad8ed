"""Git as a copy of the record: what is committed, by whom, and what never happens."""

import logging
import os
import stat
import subprocess
import sys

import pytest

from loop.core import git as module
from loop.core.git import commit_paths, find_repository, read_git, tag

HOME_VARIABLES = ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "EMAIL")


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Return a function that runs git in an empty repository, without any settings."""
    for name in HOME_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = tmp_path / "repository"
    root.mkdir()

    def run(*arguments):
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    run("init", "-q", "-b", "main")
    run.root = root
    return run


@pytest.fixture
def mine(git):
    """Return the repository with an identity and one commit."""
    git("config", "user.name", "Dr. Ayşe Kaya")
    git("config", "user.email", "kaya@example.org")
    write(git.root / "first", "1")
    git("add", "first")
    git("commit", "-qm", "first")
    return git


def write(path, text):
    """Write a file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def files_of(git, revision="HEAD"):
    """Return the files a commit touched."""
    shown = git("show", "--format=", "--name-only", "-z", revision)
    return {name for name in shown.split("\0") if name}


def test_git_revision_and_dirty_flag(git):
    """A number measured on edited files must say so."""
    assert read_git(git.root) == (None, None)
    write(git.root / "file", "a")
    commit = commit_paths(git.root, [git.root / "file"], "one", "Dr A")
    assert read_git(git.root) == (commit, False)
    write(git.root / "new", "a")
    assert read_git(git.root) == (commit, False)
    write(git.root / "file", "b")
    assert read_git(git.root) == (commit, True)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Dr A", "Dr A"),
        (" .,:;\"'Dr. A.", "Dr. A"),
        ("A <a@b>\n", "A  a@b"),
        ("...", "unnamed"),
        ("<>", "unnamed"),
        ("", "unnamed"),
    ],
)
def test_a_name_is_written_as_git_takes_it(name, written):
    """It strips what it calls crud, and refuses a name of nothing else."""
    assert module._person(name) == written


@pytest.mark.parametrize(
    ("complaint", "said"),
    [
        (b"hint: x\nfatal: no.\nerror: y", "no"),
        (b"warning: w\nerror: y", "y"),
        (b"w\nx", "w"),
        (b"", "it does not say why"),
        (b"fatal: \x1b[31m\xff", "\\x1b[31m\ufffd"),
    ],
)
def test_the_line_that_says_what_is_wrong_is_told(complaint, said):
    """The first such line, as a sentence, with nothing that acts."""
    assert module._fault(complaint) == said


def test_without_git_or_a_repository_nothing_happens(tmp_path, monkeypatch, caplog):
    """Neither is needed, and nobody is told that they are."""
    file = write(tmp_path / "file", "a")
    for path in (os.environ["PATH"], ""):
        monkeypatch.setenv("PATH", path)
        assert read_git(tmp_path) == (None, None)
        assert commit_paths(tmp_path, [file], "one", "Dr A") is None
        assert tag(tmp_path, "v1", "one") is None
    assert not caplog.records


def test_a_commit_holds_its_files_and_no_others(mine):
    """What else is changed, staged or new stays as it is."""
    for name in ("staged", "changed"):
        write(mine.root / name, "1")
    mine("add", ".")
    mine("commit", "-qm", "second")
    write(mine.root / "staged", "2")
    mine("add", "staged")
    write(mine.root / "changed", "2")
    write(mine.root / "new", "1")
    write(mine.root / "prompts" / "v2" / "prompt.yaml", "a")
    write(mine.root / "prompts" / "ledger.jsonl", "b")
    paths = [mine.root / "prompts" / "v2", mine.root / "prompts" / "ledger.jsonl"]
    commit = commit_paths(mine.root, paths, "p@v2\n\nbecause", "Dr A")
    assert commit == mine("rev-parse", "HEAD")
    assert files_of(mine) == {"prompts/v2/prompt.yaml", "prompts/ledger.jsonl"}
    assert mine("status", "--porcelain").splitlines() == [
        "M changed",
        "M  staged",
        "?? new",
    ]
    assert mine("log", "-1", "--format=%B") == "p@v2\n\nbecause"


def test_the_author_is_who_acts_and_the_committer_whose_machine_it_is(mine):
    """Git keeps both; an address is never made up."""
    file = write(mine.root / "ledger", "a")
    commit_paths(mine.root, [file], "one", "Dr. Böse <x@y>\n")
    shown = mine("log", "-1", "--format=%an|%ae|%cn|%ce")
    assert shown == "Dr. Böse  x@y||Dr. Ayşe Kaya|kaya@example.org"
    write(file, "b")
    commit_paths(mine.root, [file], "two", "Dr. Ayşe Kaya")
    assert mine("log", "-1", "--format=%ae") == "kaya@example.org"


def test_without_an_identity_the_person_is_the_committer(git):
    """A fresh machine must not lose the commit."""
    file = write(git.root / "ledger", "a")
    assert commit_paths(git.root, [file], "one", "Dr A")
    assert git("log", "-1", "--format=%an|%cn|%ce") == "Dr A|Dr A|"
    assert tag(git.root, "extractor-v1", "a release", tagger="Dr A") == "extractor-v1"
    assert git("cat-file", "-t", "extractor-v1") == "tag"


def test_what_is_unchanged_is_not_committed_again(mine):
    """An act that is finished after a kill makes no second commit."""
    file = write(mine.root / "ledger", "a")
    first = commit_paths(mine.root, [file], "one", "Dr A")
    assert commit_paths(mine.root, [file], "one", "Dr A") == first


def test_what_git_ignores_is_left_alone(mine, caplog):
    """Somebody decided that these files are not for git."""
    write(mine.root / ".gitignore", "prompts/\n")
    file = write(mine.root / "prompts" / "ledger.jsonl", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A") is None
    assert not caplog.records


def test_git_can_be_switched_off(mine):
    """One word in the settings of the machine."""
    write(mine.root / ".ranloop" / "config.yaml", "git: off\n")
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A") is None
    assert tag(mine.root, "v1", "one") is None
    assert mine("log", "-1", "--format=%s") == "first"


def hook(git, name, words):
    """Set up a hook."""
    write(git.root / ".git" / "hooks" / name, f"#!/bin/sh\n{words}\n").chmod(0o755)


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg", "prepare-commit-msg"])
def test_a_hook_that_refuses_is_told(mine, caplog, name):
    """The team's rules hold for ranloop too; the act itself is recorded."""
    hook(mine, name, "echo 'no commits on a Friday' >&2; exit 1")
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A") is None
    assert mine("log", "-1", "--format=%s") == "first"
    assert "git commit failed: no commits on a Friday." in caplog.text
    assert "recorded in the ledger" in caplog.text
    assert file.read_text("utf-8") == "a"


def test_a_hook_runs_and_may_change_the_message(mine):
    """For example to name an issue."""
    hook(mine, "commit-msg", 'echo "Refs #7" >> "$1"')
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "# one", "Dr A")
    assert mine("log", "-1", "--format=%B") == "# one\nRefs #7"


@pytest.mark.parametrize("end", [0, 1])
def test_a_hook_that_changes_a_file_is_told_and_the_file_put_back(mine, caplog, end):
    """The ledger has the digest of every byte; it may have grown meanwhile itself."""
    version = write(mine.root / "prompts" / "v2" / "user.jinja", "a  \n")
    ledger = write(mine.root / "prompts" / "ledger.jsonl", "1\n")
    hook(mine, "pre-commit", f"echo b > '{version}'; echo 2 >> '{ledger}'; exit {end}")
    assert commit_paths(mine.root, [version.parent, ledger], "one", "Dr A") is None
    assert version.read_text("utf-8") == "a  \n"
    assert ledger.read_text("utf-8") == "1\n2\n"
    assert "user.jinja, of which the ledger has the digest" in caplog.text


def test_a_signature_that_cannot_be_made_is_told(mine, caplog):
    """Whoever signs every commit wants no commit without one."""
    mine("config", "commit.gpgSign", "true")
    mine("config", "tag.gpgSign", "true")
    mine("config", "gpg.program", "/nonexistent")
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A") is None
    assert tag(mine.root, "v1", "one") is None
    assert mine("log", "-1", "--format=%s") == "first"
    assert "git commit failed: " in caplog.text
    assert "git tag failed: " in caplog.text


def test_an_editor_is_never_asked(mine):
    """Nobody sits before it."""
    mine("config", "core.editor", "/nonexistent")
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A")


@pytest.mark.parametrize("word", ["true", "yes", "1"])
def test_whoever_goes_by_the_settings_of_git_is_told_that_they_name_nobody(
    git, caplog, word
):
    """`user.useConfigOnly`: no commit under a name that was made up."""
    git("config", "user.useConfigOnly", word)
    file = write(git.root / "ledger", "a")
    assert commit_paths(git.root, [file], "one", "Dr A") is None
    assert "git commit failed" in caplog.text


def test_a_failure_is_a_remark_with_a_way_out(mine, caplog):
    """Another git holds the index: the act is done all the same."""
    write(mine.root / ".git" / "index.lock", "")
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A") is None
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "recorded in the ledger" in record.getMessage()
    assert "git: off" in record.getMessage()


def test_in_the_middle_of_a_merge_nothing_is_committed(mine, caplog):
    """The merge is somebody's work that is not finished."""
    write(mine.root / ".git" / "MERGE_HEAD", mine("rev-parse", "HEAD") + "\n")
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A") is None
    assert "git commit failed" in caplog.text
    assert mine("log", "-1", "--format=%s") == "first"


def test_a_broken_setting_of_the_machine_is_a_remark(mine, caplog):
    """The act came before: its caller must not learn of a failure."""
    write(mine.root / ".ranloop" / "config.yaml", "git: maybe\n")
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A") is None
    assert "config.yaml does not have the expected form" in caplog.text


def test_a_git_that_hangs_is_stopped(tmp_path, monkeypatch):
    """Nobody waits for ever, and no process stays behind."""
    slow = write(tmp_path / "bin" / "git", "#!/bin/sh\necho $$ > pid\nexec sleep 60\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(module, "_GIT_S", 0.2)
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path / "ledger", "a")
    assert commit_paths(tmp_path, [file], "one", "Dr A") is None
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_names_are_names_and_no_patterns(mine):
    """A folder may be called as git spells a pattern."""
    odd = write(mine.root / ":(glob)*", "a")
    write(mine.root / "other", "a")
    assert commit_paths(mine.root, [odd], "one", "Dr A")
    assert files_of(mine) == {":(glob)*"}


def test_a_star_in_a_name_stands_for_itself(mine):
    """Also where no file has that name any more."""
    odd = write(mine.root / "o*", "a")
    other = write(mine.root / "other", "a")
    assert commit_paths(mine.root, [odd, other], "one", "Dr A")
    odd.unlink()
    write(other, "b")
    assert commit_paths(mine.root, [odd], "two", "Dr A")
    assert files_of(mine) == {"o*"}
    assert mine("status", "--porcelain") == "M other"


@pytest.mark.parametrize(
    "names",
    [
        ("GIT_DIR",),
        ("GIT_WORK_TREE",),
        ("GIT_INDEX_FILE",),
        ("GIT_COMMON_DIR",),
        ("GIT_OBJECT_DIRECTORY",),
        ("GIT_DIR", "GIT_INDEX_FILE"),
    ],
)
def test_nothing_that_git_says_of_itself_moves_a_commit(
    mine, tmp_path, monkeypatch, names
):
    """Inside a hook of another repository they name that one."""
    for name in names:
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    file = write(mine.root / "ledger", "a")
    commit = commit_paths(mine.root, [file], "one", "Dr A")
    monkeypatch.undo()
    assert mine("log", "-1", "--format=%H %s") == f"{commit} one"
    assert files_of(mine) == {"ledger"}
    assert mine("status", "--porcelain") == ""
    assert not (tmp_path / "elsewhere").exists()


def test_a_watcher_of_files_is_not_asked(mine, tmp_path):
    """It may not answer, and may go on in the background."""
    seen = tmp_path / "seen"
    watcher = write(tmp_path / "watcher", f"#!/bin/sh\necho $1 >> '{seen}'\n")
    watcher.chmod(0o755)
    mine("config", "core.fsmonitor", str(watcher))
    mine("status")
    assert seen.exists()
    seen.unlink()
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A")
    assert read_git(mine.root).dirty is False
    assert not seen.exists()


def test_hooks_and_whoever_signs_may_take_longer_than_git(mine, monkeypatch):
    """Two minutes instead of ten seconds: where a commit or a tag is made."""
    real, noted = module._wait, {}

    def wait(git, patience_s):
        """Note the command and for how long it is waited."""
        command = git.args[len(module._QUIET) + 3]
        noted.setdefault(patience_s, set()).add(command)
        return real(git, patience_s)

    monkeypatch.setattr(module, "_wait", wait)
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A")
    assert tag(mine.root, "v1", "one")
    assert noted.pop(120.0) == {"commit", "tag"}
    assert {*noted} == {10.0}


def test_a_keystroke_that_ends_us_does_not_end_a_git(mine, tmp_path):
    """It has a session of its own: half a commit would leave a lock behind."""
    hook(
        mine,
        "pre-commit",
        f"'{sys.executable}' -c 'import os; print(os.getsid(0))' > '{tmp_path}/sid'",
    )
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "one", "Dr A")
    assert int((tmp_path / "sid").read_text()) != os.getsid(0)


def test_a_line_of_the_reason_is_no_remark_of_git(mine):
    """Whatever the person has set up for messages that they type."""
    mine("config", "commit.cleanup", "strip")
    file = write(mine.root / "ledger", "a")
    assert commit_paths(mine.root, [file], "p@v2\n\n# 3 of 4 are fixed", "Dr A")
    assert mine("log", "-1", "--format=%B") == "p@v2\n\n# 3 of 4 are fixed"


def test_a_ledger_that_grows_meanwhile_was_changed_by_nobody(mine, caplog):
    """Others go on acting while the hooks run."""
    ledger = write(mine.root / "prompts" / "ledger.jsonl", "1\n")
    hook(mine, "pre-commit", f"echo 2 >> '{ledger}'")
    commit = commit_paths(mine.root, [ledger], "one", "Dr A")
    assert commit == mine("rev-parse", "HEAD")
    assert not caplog.records
    assert ledger.read_text("utf-8") == "1\n2\n"


def test_a_ledger_that_a_hook_rewrites_is_told_and_never_written_back(mine, caplog):
    """What somebody else added to it meanwhile would be lost."""
    ledger = write(mine.root / "prompts" / "ledger.jsonl", "1\n")
    hook(mine, "pre-commit", f"echo 3 > '{ledger}'")
    assert commit_paths(mine.root, [ledger], "one", "Dr A") is None
    assert "ledger.jsonl, of which the ledger has the digest" in caplog.text
    assert ledger.read_text("utf-8") == "3\n"


def test_a_tag_is_made_once(mine, caplog):
    """The same release is tagged again without a word; another one is refused."""
    first = mine("rev-parse", "HEAD")
    assert tag(mine.root, "extractor-v1", "a release") == "extractor-v1"
    assert tag(mine.root, "extractor-v1", "a release") == "extractor-v1"
    assert mine("rev-parse", "extractor-v1^{commit}") == first
    file = write(mine.root / "ledger", "a")
    second = commit_paths(mine.root, [file], "one", "Dr A")
    assert tag(mine.root, "extractor-v1", "again", revision=second) is None
    assert "already exists" in caplog.text
    assert tag(mine.root, "older", "x", revision=first) == "older"
    assert mine("rev-parse", "older^{commit}") == first


def test_a_workspace_in_a_folder_of_another_repository_is_none_of_its_business(
    mine, caplog
):
    """Whose history that is, ranloop cannot know."""
    root = mine.root / "clinic" / "ws"
    file = write(root / "prompts" / "ledger.jsonl", "a")
    assert commit_paths(root, [file], "one", "Dr A") is None
    assert tag(root, "v1", "one") is None
    assert mine("log", "--format=%s") == "first"
    assert mine("status", "--porcelain") == "?? clinic/"
    assert not mine("tag") and not caplog.records
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    assert commit_paths(root, [file], "one", "Dr A")


def test_the_repository_of_a_folder_is_found_from_inside(mine, tmp_path):
    """Not from outside, nor in the folder that git itself uses."""
    inner = mine.root / "a" / "b"
    inner.mkdir(parents=True)
    assert find_repository(inner) == find_repository(mine.root) == mine.root.resolve()
    assert find_repository(mine.root / ".git") is None
    assert find_repository(tmp_path) is None
    assert find_repository(tmp_path / "nowhere") is None


def test_a_repository_that_cannot_tell_what_changed_still_has_its_commit(mine):
    """Whether files differ from it is not known then."""
    commit = mine("rev-parse", "HEAD")
    write(mine.root / ".git" / "index", "no index")
    assert read_git(mine.root) == (commit, None)


def test_a_file_that_cannot_be_read_is_a_remark(mine, caplog, monkeypatch):
    """Its bytes could not be put back after a hook; so it is not committed."""
    file = write(mine.root / "ledger", "a")

    def broken(path):
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr("pathlib.Path.read_bytes", broken)
    assert commit_paths(mine.root, [file], "one", "Dr A") is None
    monkeypatch.undo()
    assert f"cannot read {file}: Input/output error." in caplog.text
    assert mine("log", "-1", "--format=%s") == "first"


def test_a_file_that_a_hook_removes_is_put_back(mine, caplog):
    """With all that a folder holds; what it added is its own business."""
    one = write(mine.root / "prompts" / "v2" / "a" / "one", "1")
    two = write(mine.root / "prompts" / "v2" / "two", "2")
    hook(mine, "pre-commit", f"rm '{one}'; echo 3 > '{two.with_name('three')}'")
    folder = mine.root / "prompts" / "v2"
    assert commit_paths(mine.root, [folder], "one", "Dr A") is None
    assert (one.read_text("utf-8"), two.read_text("utf-8")) == ("1", "2")
    assert "one, of which the ledger has the digest" in caplog.text


def test_the_address_of_somebody_else_is_never_given(mine):
    """Nor one that git does not have."""
    file = write(mine.root / "ledger", "a")
    mine("config", "--unset", "user.email")
    commit_paths(mine.root, [file], "one", "Dr. Ayşe Kaya")
    assert mine("log", "-1", "--format=%an|%ae|%cn") == ("Dr. Ayşe Kaya||Dr. Ayşe Kaya")
    write(file, "b")
    mine("config", "user.email", "kaya@example.org")
    commit_paths(mine.root, [file], "two", "Dr. Kaya")
    assert mine("log", "-1", "--format=%an|%ae|%ce") == "Dr. Kaya||kaya@example.org"


def test_a_tag_has_its_message_and_who_made_it(git):
    """Where git knows of nobody; else it is whose machine it is."""
    file = write(git.root / "ledger", "a")
    commit_paths(git.root, [file], "one", "Dr A")
    tag(git.root, "one", "a release", tagger="Dr B")
    shown = git("for-each-ref", "--format=%(taggername)|%(contents:subject)")
    assert shown.splitlines()[-1] == "Dr B|a release"
    git("config", "user.name", "Dr C")
    git("config", "user.email", "c@example.org")
    tag(git.root, "two", "another", tagger="Dr B")
    shown = git("for-each-ref", "--format=%(taggername)|%(contents:subject)")
    assert "Dr C|another" in shown.splitlines()


def test_a_revision_that_is_none_cannot_be_tagged(mine, caplog):
    """The log says that it was not made, and nothing is raised."""
    assert tag(mine.root, "one", "x", revision="nowhere") is None
    assert "The tag one was not made: make it yourself." in caplog.text
    assert mine("tag") == ""
