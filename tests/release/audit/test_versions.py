"""Version folders and aliases are held against the ledger, whatever they say."""

import errno
import shutil
from dataclasses import replace

import pytest

from loop.core.check_findings import broken, note, ok, warning
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.yaml_files import dump_yaml
from loop.prompts.catalog import Header, read_folder
from loop.release.audit import versions
from loop.release.audit.versions import check_aliases, check_versions
from tests.release.audit.scenes import entries_of, make_history, rehashed


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


BROKEN = {
    "implies": "Runs and releases of this version were made with something else than "
    "what the folder holds now.",
    "todo": "Restore the folder from version control or a backup; new wording is the "
    "next version, made by `ranloop revise`.",
}


def versions_told(history, *told):
    """Return what is found of versions, by the ledger and by `told`."""
    entries = (*history.entries(), *entries_of(*told))
    return check_versions(history.workspace, entries)


def differs(seq, what, ref="tiny@v2"):
    """Return what is said of a version that is not as recorded."""
    where = f"prompts/{ref.replace('@', '/')}, entry {seq}"
    return broken("versions", f"{ref} {what}", where=where, seq=seq, **BROKEN)


def test_what_holds_is_counted(history):
    """Versions and files, of every prompt; without a version nothing is said."""
    assert versions_told(history) == [
        ok("versions", "3 versions have the digest recorded at their commit"),
        ok("versions", "12 of their files are the recorded ones, to the byte"),
    ]
    assert check_versions(WorkspacePaths(history.path.parent / "none"), ()) == []


def test_each_way_to_differ_has_its_words(history, folder):
    """What was recorded, what is there, and in which files."""
    version, header = read_folder(folder)
    recorded = version.digest
    guides, prompt = folder / "guides.yaml", folder / "prompt.yaml"
    before = guides.read_bytes(), prompt.read_bytes()

    def write(**changes):
        changed = header.model_copy(update=changes)
        prompt.write_text(dump_yaml(Header.model_dump(changed, mode="json")))

    guides.write_bytes(before[0].replace(b"fluid", b"water"))
    now = read_folder(folder)[0].digest
    said = f"has another wording: digest {recorded[:12]} recorded, {now[:12]} found"
    fixed = "; prompt.yaml was given the digest of the new wording"
    assert versions_told(history) == [differs(2, f"{said} (guides.yaml)")]
    write(digest=now)
    assert versions_told(history) == [
        differs(2, f"{said} (prompt.yaml, guides.yaml){fixed}")
    ]
    guides.write_bytes(before[0])
    write(author="Dr Z. Nobody")
    assert versions_told(history) == [
        differs(2, "has the recorded wording in other files (prompt.yaml)")
    ]
    write(digest="f" * 64)
    # Without its files in the entry, as early commits are, the digest still tells.
    early = ("draft_committed", "tiny@v2", {"digest": recorded})
    assert differs(1, "names another digest in prompt.yaml") in versions_told(
        history, early
    )
    prompt.write_bytes(b"[")
    assert versions_told(history) == [
        differs(2, "cannot be read as a version: files are malformed")
    ]
    shutil.rmtree(folder)
    assert versions_told(history) == [
        differs(2, "was committed, and its folder is gone")
    ]


def test_a_folder_that_says_it_is_another_version_is_found(history, folder):
    """Its wording is that of the commit, and its number is not."""
    version, header = read_folder(folder)
    changed = header.model_copy(update={"number": 7})
    (folder / "prompt.yaml").write_text(
        dump_yaml(Header.model_dump(changed, mode="json"))
    )
    assert read_folder(folder)[0].digest == version.digest
    assert versions_told(history) == [differs(2, "says that it is tiny@v7")]


def test_a_file_that_is_a_folder_is_told(history, folder):
    """It holds no wording, and ends no audit."""
    (folder / "system.jinja").unlink()
    (folder / "system.jinja").mkdir()
    (found,) = versions_told(history)
    assert found == differs(2, "cannot be read as a version: files are malformed")


def test_what_may_not_be_read_is_told(history, monkeypatch):
    """It ends no audit either."""

    def denied(_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(versions, "read_folder", denied)
    assert [one.what for one in versions_told(history)] == [
        f"{one} cannot be read: Permission denied"
        for one in ("tiny@v1", "tiny@v2", "tiny@v3")
    ]


def test_every_false_commit_is_named(history):
    """The first digest counts; each later one is told, and no parent before it."""
    told = [
        ("draft_committed", "tiny@v1", {"digest": "a" * 64, "parent": "b" * 64}),
        ("draft_committed", "tiny@v1", {"digest": "c" * 64, "parent": "a" * 64}),
        ("draft_committed", "Tiny@v1", {"digest": "d" * 64, "parent": ""}),
    ]
    found = versions_told(history, *told)
    twice, orphan = (
        {
            "implies": "A version never changes: one of the two entries is false.",
            "todo": "Find out from a backup which of the two was first.",
        },
        {
            "implies": "The parent came from another workspace, or its entry is gone.",
            "todo": "Compare the ledger with a backup.",
        },
    )
    said = "tiny@v1 was committed twice, with two digests"
    assert found[:4] == [
        broken("versions", said, where="entry 1", seq=1, **twice),
        broken("versions", said, where="entry 2", seq=2, **twice),
        warning(
            "versions",
            "tiny@v1 was revised from a version that no entry before it committed",
            where="entry 1",
            seq=1,
            **orphan,
        ),
        found[3],
    ]
    assert [(one.what.partition(":")[0], one.seq) for one in found[3:]] == [
        ("tiny@v1 has another wording", 2),
        ("Tiny@v1 is no version of a prompt, and was committed as one", 3),
    ]


def test_strays_and_folders_of_nobody_are_told_in_full(history, folder, tmp_path):
    """Where they lie, and what to do."""
    for name in ("notes.txt", "about.md"):
        (folder / name).write_text("x")
    shutil.copytree(folder.with_name("v1"), folder.with_name("v4"))
    shutil.copytree(folder.with_name("v1"), folder.parents[1] / "else" / "v1")
    (history.workspace.prompts / "README.md").write_text("x")
    nobody = {
        "implies": "Nothing says who made it, when and why; or a commit was killed.",
        "todo": "Run the same commit again if there was one; else move the folder "
        "away.",
    }
    assert versions_told(history) == [
        note(
            "versions",
            "tiny@v2 has files that are no part of a version: about.md, notes.txt",
            where=str(folder),
            todo="Move them elsewhere.",
        ),
        *(
            broken(
                "versions",
                f"{name}@v{number} has no entry in the ledger",
                where=str(history.workspace.prompts / name / f"v{number}"),
                **nobody,
            )
            for name, number in (("else", 1), ("tiny", 4))
        ),
    ]


def aliases_told(history, *told):
    """Return what is found of aliases, by the ledger and by `told`."""
    entries = (*history.entries(), *entries_of(*told))
    return check_aliases(history.workspace, entries)


def moved(ref, before, alias="beta", **payload):
    """Return what is recorded of a move."""
    return ("alias_moved", ref, {"alias": alias, "before": before, **payload})


FITS = "every move fits the one before it: tiny@production is v3"
GONE = {
    "implies": "Whoever uses the alias gets no version, or another one.",
    "todo": "Restore the version, or move the alias with `ranloop alias`.",
}
OTHER = {
    "implies": "The version was not then what it was committed as.",
    "todo": "Compare the version and the ledger with a backup.",
}
LEAP = {
    "implies": "Two people moved it at once, or an entry between is gone.",
    "todo": "Compare the ledger with a backup.",
}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([], [ok("aliases", FITS)]),
        (
            [moved("tiny@v1", None), moved("tiny@v2", "v1")],
            [ok("aliases", f"{FITS}, tiny@beta is v2")],
        ),
        (
            [moved("tiny@v1", "v3", "production", digest="0")],
            [
                broken(
                    "aliases",
                    "alias 'production' was moved to tiny@v1 with another digest",
                    where="entry 1",
                    seq=1,
                    **OTHER,
                )
            ],
        ),
        (
            [moved("tiny@v8", None), moved("tiny@v1", "v8")],
            [
                broken(
                    "aliases",
                    "alias 'beta' was moved to tiny@v8, which is not there",
                    where="entry 1",
                    seq=1,
                    **GONE,
                )
            ],
        ),
        (
            [moved("tiny@v1", "v2"), moved("tiny@v2", None)],
            [
                warning(
                    "aliases",
                    "alias 'beta' came from v2, by its entry; by the entries before "
                    "it, from None",
                    where="entry 1",
                    seq=1,
                    **LEAP,
                ),
                warning(
                    "aliases",
                    "alias 'beta' came from None, by its entry; by the entries before "
                    "it, from v1",
                    where="entry 2",
                    seq=2,
                    **LEAP,
                ),
            ],
        ),
    ],
)
def test_every_move_is_held_against_the_one_before(history, told, expected):
    """Of the same alias of the same prompt."""
    assert aliases_told(history, *told) == expected


def test_without_a_move_nothing_is_said_of_aliases(history):
    """There is nothing that could fit."""
    assert check_aliases(history.workspace, history.entries()[:3]) == []


def test_an_alias_of_a_version_whose_folder_is_gone_is_broken(history, folder):
    """Its commit alone gives nobody a version."""
    shutil.rmtree(folder)
    assert aliases_told(history) == [
        broken(
            "aliases",
            "alias 'production' was moved to tiny@v2, which is not there",
            where="entry 5",
            seq=5,
            **GONE,
        )
    ]
