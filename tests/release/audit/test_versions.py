"""Version folders and aliases are held against the ledger, whatever they say."""

import shutil
from dataclasses import replace

import pytest

from loop.core.ledger import read_ledger
from loop.core.yaml_files import dump_yaml
from loop.prompts.catalog import Header, read_folder
from tests.release.audit.scenes import make_history, rehashed


@pytest.fixture
def history(tmp_path):
    """Return a fresh history."""
    return make_history(tmp_path / "ws")


@pytest.fixture
def folder(history):
    """Return the folder of the second version."""
    return history.workspace.prompts / "tiny" / "v2"


def fix_digest(folder):
    """Write the digest of the wording that stands there into ``prompt.yaml``."""
    version, header = read_folder(folder)
    fixed = header.model_copy(update={"digest": version.digest})
    text = dump_yaml(Header.model_dump(fixed, mode="json"))
    (folder / "prompt.yaml").write_text(text)


def test_another_wording_with_a_fitting_digest_is_found(history, folder):
    """Who edits a version and its prompt.yaml together cannot edit the ledger."""
    path = folder / "guides.yaml"
    path.write_text(path.read_text().replace("fluid", "water"))
    fix_digest(folder)
    ((check, what),) = history.broken()
    assert check == "versions"
    assert "tiny@v2 has another wording" in what
    assert "given the digest of the new wording" in what


def test_a_version_replaced_by_another_is_found(history, folder):
    """A whole folder put in place of another has a true digest, of another wording."""
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("v3"), folder)
    assert "tiny@v2 has another wording" in history.broken()[0][1]


def test_another_author_in_the_same_wording_is_found(history, folder):
    """Who and why are no part of the digest; the file is pinned to the byte."""
    path = folder / "prompt.yaml"
    path.write_text(path.read_text().replace("Dr A. Example", "Dr Z. Nobody"))
    ((_, what),) = history.broken()
    assert what == "tiny@v2 has the recorded wording in other files (prompt.yaml)"


@pytest.mark.parametrize("name", ["prompt.yaml", "guides.yaml", "user.jinja"])
def test_a_missing_or_malformed_file_is_found(history, folder, name):
    """A folder that cannot be read is not passed over."""
    (folder / name).write_bytes(b"\xff")
    assert "cannot be read as a version" in history.broken()[0][1]
    (folder / name).unlink()
    assert "tiny@v2" in history.broken()[0][1]


def test_a_missing_folder_breaks_the_version_and_the_alias_to_it(history, folder):
    """What is recorded and gone was deleted; who uses the alias must know."""
    shutil.rmtree(folder)
    checks = [check for check, _ in history.broken()]
    assert checks == ["versions", "aliases"]


def test_a_folder_that_no_entry_speaks_of_is_found(history, folder):
    """A version that nobody committed has no author, time or reason to believe."""
    shutil.copytree(folder, folder.with_name("v9"))
    assert history.broken() == [("versions", "tiny@v9 has no entry in the ledger")]


def test_links_and_strays_are_told(history, folder, tmp_path):
    """A link's target changes without a trace here."""
    (folder / "notes.txt").write_text("x")
    path = folder / "user.jinja"
    path.rename(tmp_path / "user.jinja")
    path.symlink_to(tmp_path / "user.jinja")
    whats = [one.what for one in history.audit().findings if one.check == "versions"]
    assert whats == [
        "tiny@v2: user.jinja is a link",
        "tiny@v2 has files that are no part of a version: notes.txt",
    ]


def test_several_links_are_links(history, folder, tmp_path):
    """One warning names them all."""
    for name in ("guides.yaml", "user.jinja"):
        (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to(tmp_path / name)
    whats = [one.what for one in history.audit().findings if one.check == "versions"]
    assert whats == ["tiny@v2: guides.yaml, user.jinja are links"]


def test_a_version_committed_twice_with_two_digests_is_found(history):
    """Otherwise a second entry would quietly take the place of the first."""
    payload = {"digest": "f" * 64, "parent": None}
    history.record("draft_committed", "tiny@v1", payload)
    whats = [what for _, what in history.broken()]
    assert "tiny@v1 was committed twice, with two digests" in whats


def test_a_version_of_a_parent_that_nobody_committed_is_told(history):
    """It came from elsewhere, or an entry is gone; of others nothing is told."""

    def told():
        return [
            one.what
            for one in history.audit().findings
            if "that no entry before it committed" in one.what
        ]

    assert told() == []
    for ref, parent in (("tiny@v8", "b" * 64), ("tiny@v9", "a" * 64)):
        payload = {"digest": "a" * 64, "parent": parent}
        history.record("draft_committed", ref, payload)
    assert told() == [
        "tiny@v8 was revised from a version that no entry before it committed"
    ]


def test_a_version_that_no_name_fits_is_not_a_path(history):
    """A subject is never joined to a path before it has the form of a version."""
    for ref in ("../../etc@v1", "tiny@v1/../v2", "tiny@latest", ""):
        history.record("draft_committed", ref, {"digest": "f" * 64, "parent": None})
    whats = [what for _, what in history.broken()]
    assert sum("is no version of a prompt" in what for what in whats) == 4


def test_an_alias_moved_to_nothing_or_with_another_digest_is_found(history):
    """An alias is what production systems ask for."""
    history.record("alias_moved", "tiny@v8", {"alias": "beta", "before": None})
    payload = {"alias": "beta", "before": "v8", "digest": "0" * 64}
    history.record("alias_moved", "tiny@v1", payload)
    assert [what for _, what in history.broken()] == [
        "alias 'beta' was moved to tiny@v8, which is not there",
        "alias 'beta' was moved to tiny@v1 with another digest",
    ]


def test_a_move_that_was_taken_out_shows_in_the_next_one(history):
    """Even in a chain made anew, each move says where the alias came from."""
    entries = history.entries()
    del entries[4]
    history.write(rehashed([replace(one) for one in entries], 5))
    assert read_ledger(history.path)
    (found,) = [one for one in history.audit().findings if one.check == "aliases"]
    assert found.severity == "warning"
    assert "came from v2, by its entry; by the entries before it, from v1" in found.what


def test_hostile_payloads_do_not_stop_the_audit(history):
    """An entry made by hand may hold anything."""
    for action in ("draft_committed", "alias_moved", "protocol_set", "frozen"):
        for payload in ({}, {"digest": []}, {"files": 3, "digest": {}, "release": 1}):
            history.record(action, "tiny@v1", payload)
    for payload in ({}, {"cohort": [], "number": "x"}, {"number": 1, "cohort": "d"}):
        history.record("reference_revised", "d:ref1", payload)
        history.record("cohort_added", "../d", payload)
        history.record("evaluated", "tiny@v1", {**payload, "labels": 3})
        history.record("gate_decided", "tiny@v1", {**payload, "labels": {"a": []}})
        history.record("holdout_opened", "d", {"budget": "many", "number": True})
        history.record("holdout_sealed", "d", {"result_digest": 3, "candidate": ".."})
        history.record("key_added", "k", {"key": {"keyid": []}})
        history.record("key_revoked", "k", {})
        history.record("withdrawn", "tiny-v1", {"release": ["x"]})
        history.record("ledger_repaired", "x", {"file": "../../x"})
    assert not history.audit().holds
