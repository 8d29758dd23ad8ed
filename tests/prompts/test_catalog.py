"""Versions on disk: immutable, found by every kind of reference, never half-written."""

import multiprocessing
import os
from dataclasses import replace
from shutil import rmtree

import pytest

from loop.core.errors import ConflictError, DataError, EditedVersionError
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths, bundled
from loop.core.yaml_files import _parse_once
from loop.prompts.catalog import (
    Edit,
    file_digests,
    find_parent,
    inspect_version,
    lineage,
    list_drafts,
    list_prompts,
    list_versions,
    parse_ref,
    read_aliases,
    read_known,
    read_version,
    renumbered,
    write_version,
)
from loop.prompts.history import move_alias
from loop.prompts.version import _digest
from tests.calls import count_calls

EDITOR = Actor(name="Dr A. Example")


@pytest.fixture
def library(workspace, first, second):
    """Return a workspace with two versions of ``tiny``."""
    write_version(workspace, first)
    write_version(workspace, second)
    return workspace


def test_what_is_read_is_what_was_written(library, first, second):
    """Every field survives, not only those in the digest."""
    assert read_version(library, "tiny@v1") == first
    assert read_version(library, "tiny@v2") == second


@pytest.mark.parametrize("ref", ["tiny", "tiny@latest", " tiny@v2 "])
def test_without_a_number_the_newest_is_meant(library, second, ref):
    """``tiny`` alone is the newest committed version."""
    assert read_version(library, ref) == second


def test_a_version_that_is_read_again_is_not_parsed_again(library, second):
    """A history reads every version; its files are looked at each time."""
    lineage(library, "tiny")
    again = count_calls(lambda: lineage(library, "tiny"))
    _parse_once.cache_clear()
    _digest.cache_clear()
    assert count_calls(lambda: lineage(library, "tiny")) > 1.5 * again
    guides = library.prompts / "tiny" / "v2" / "guides.yaml"
    text = guides.read_text(encoding="utf-8")
    guides.write_text(text.replace("name:", "name: Other", 1), encoding="utf-8")
    with pytest.raises(EditedVersionError):
        read_version(library, "tiny")
    guides.write_text(text, encoding="utf-8")
    assert read_version(library, "tiny") == second


def test_an_alias_follows_the_ledger(library):
    """Aliases are read from the ledger, never stored beside it."""
    move_alias(library, "tiny@v2", "production", actor=EDITOR, reason="first")
    move_alias(library, "tiny@v1", "production", actor=EDITOR, reason="roll back")
    assert read_version(library, "tiny@production").number == 1


@pytest.mark.parametrize("alias", ["latest", "draft", "v3", "v03"])
def test_an_alias_cannot_look_like_something_else(library, alias):
    """A reference has one meaning."""
    with pytest.raises(DataError, match="it already means something"):
        move_alias(library, "tiny@v1", alias, actor=EDITOR, reason="why not")


@pytest.mark.parametrize("alias", ["Prod", "a b", "../x", "3d"])
def test_an_alias_that_is_no_name_says_what_a_name_is(library, alias):
    """The true reason, and not one that does not fit."""
    with pytest.raises(DataError, match="Begin with a lower-case letter"):
        move_alias(library, "tiny@v1", alias, actor=EDITOR, reason="why not")


@pytest.mark.parametrize("alias", ["a1", "p2024", "v", "v2a"])
def test_a_letter_and_a_number_can_be_an_alias(library, alias):
    """Only a ``v`` before a number is a version."""
    move_alias(library, "tiny@v1", alias, actor=EDITOR, reason="the ward's name")
    assert read_version(library, f"tiny@{alias}").number == 1


def test_drafts_are_found_by_id_and_newest_first(library, first):
    """A draft is private and needs no number."""
    for name in ("one", "two"):
        write_version(library, replace(first, number=0, draft=name, system=name))
    assert set(list_drafts(library, "tiny")) == {"one", "two"}
    assert read_version(library, "tiny@draft:one").system == "one"
    assert read_version(library, "tiny@draft").draft == list_drafts(library, "tiny")[-1]
    assert list_versions(library, "tiny") == (1, 2)


def test_git_never_sees_a_draft(library, first):
    """It may quote cases, and a clone of a workspace has no private folder yet."""
    rmtree(library.private)
    write_version(library, replace(first, number=3))
    assert not library.private.exists()
    write_version(library, replace(first, number=0, draft="one"))
    assert (library.private / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("tin", "Did you mean 'tiny'"),
        ("tiny@v9", "there are v1 to v2"),
        ("tiny@production", "Set one with `ranloop alias tiny@v2 production"),
        ("tiny@draft:x", "no draft 'x'"),
        ("tiny@draft", "--verdicts FILE` makes one"),
        ("../tiny", "not a prompt reference"),
        ("tiny@draft:../../x", "not a prompt reference"),
    ],
)
def test_an_unknown_reference_says_what_there_is(library, ref, message):
    """What, where, what next."""
    with pytest.raises(DataError) as caught:
        read_version(library, ref)
    assert message in str(caught.value)


def test_a_version_is_never_overwritten(library, first):
    """Immutable means immutable, for the tool too."""
    with pytest.raises(ConflictError, match="immutable"):
        write_version(library, replace(first, system="other"))
    assert read_version(library, "tiny@v1") == first


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("guides.yaml", "A broken bone.", "A bent bone."),
        ("system.jinja", "Read.", "Read!"),
        ("prompt.yaml", "plan: joint", "plan: per_label"),
    ],
)
def test_an_edited_version_is_refused_with_two_ways_out(library, file, old, new):
    """Restore it, or save the change as the next version."""
    path = library.prompts / "tiny" / "v1" / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(EditedVersionError, match=r"git checkout -- .* next version"):
        read_version(library, "tiny@v1")


@pytest.fixture
def recorded(library, first):
    """Return the workspace with v1 in the ledger, its files included."""
    event = Event(
        action="draft_committed",
        subject=first.ref,
        reason="a start",
        payload={
            "digest": first.digest,
            "files": file_digests(library.prompts / "tiny" / "v1"),
        },
    )
    append_event(library.ledger, event, EDITOR)
    return library


def test_an_edit_that_also_corrects_prompt_yaml_is_refused(recorded, first):
    """The ledger knows what was committed; the header can be edited along."""
    folder = recorded.prompts / "tiny" / "v1"
    (folder / "system.jinja").write_text("Guess.\n")
    forged = replace(first, system="Guess.\n").digest
    header = folder / "prompt.yaml"
    header.write_text(header.read_text().replace(first.digest, forged))
    with pytest.raises(
        EditedVersionError, match=r"ledger recorded digest .*git checkout.*ranloop rev"
    ):
        read_version(recorded, "tiny@v1")
    assert inspect_version(recorded, "tiny", 1).edit is not None


def test_an_edit_of_author_or_reason_is_refused(recorded):
    """They are not part of the digest, and still part of the record."""
    header = recorded.prompts / "tiny" / "v1" / "prompt.yaml"
    header.write_text(header.read_text().replace("Dr A.", "Dr B."))
    with pytest.raises(EditedVersionError, match=r"recorded another prompt\.yaml"):
        read_version(recorded, "tiny@v1")


def test_a_version_the_ledger_does_not_know_is_read(library, first):
    """Prompts made elsewhere are usable; the history warns of them."""
    assert inspect_version(library, "tiny", 1) == (first, None)


def test_a_deleted_newest_version_is_missed(library, second):
    """An older version must not silently become the newest, nor a number be reused."""
    event = Event(action="draft_committed", subject="tiny@v3", reason="third")
    append_event(library.ledger, event, EDITOR)
    with pytest.raises(EditedVersionError, match=r"tiny@v3 is in the ledger"):
        read_version(library, "tiny")
    assert read_version(library, "tiny@v2") == second


def test_a_copied_folder_is_not_another_version(library):
    """v3 must say that it is v3."""
    source = library.prompts / "tiny" / "v1"
    target = library.prompts / "tiny" / "v3"
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    with pytest.raises(DataError, match=r"says it is tiny@v1"):
        read_version(library, "tiny@v3")


def test_a_missing_file_is_named(library):
    """An incomplete folder is not a version."""
    (library.prompts / "tiny" / "v1" / "user.jinja").unlink()
    with pytest.raises(DataError, match=r"user\.jinja does not exist"):
        read_version(library, "tiny@v1")


def test_lineage_goes_back_to_the_first(library, first, second):
    """Parents are named by digest, so the chain cannot be forged by renaming."""
    assert lineage(library, "tiny") == (second, first)


def test_a_missing_ancestor_is_reported(library, second):
    """A history with a hole is no history."""
    orphan = replace(second, number=3, parent="f" * 64, system="x")
    write_version(library, orphan)
    with pytest.raises(DataError, match=r"names the parent ffffffffffff"):
        lineage(library, "tiny")


def _write(workspace, version, results):
    try:
        write_version(workspace, version)
        results.put("written")
    except ConflictError:
        results.put("conflict")


@pytest.mark.slow
def test_of_two_processes_writing_one_number_one_wins(workspace, first):
    """Even without the lock of `revise`, a folder is never mixed from two writers."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    versions = [replace(first, system=f"writer {n}\n") for n in range(3)]
    workers = [
        context.Process(target=_write, args=(workspace, version, results))
        for version in versions
    ]
    for worker in workers:
        worker.start()
    said = sorted(results.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    assert said == ["conflict", "conflict", "written"]
    assert read_version(workspace, "tiny@v1") in versions
    folders = [path.name for path in (workspace.prompts / "tiny").iterdir()]
    assert folders == ["v1"]


def test_prompts_are_listed_by_name(library):
    """Stray folders are not prompts."""
    (library.prompts / "empty").mkdir()
    assert {"tiny", "extractor"} <= set(list_prompts(library))
    assert "empty" not in list_prompts(library)


def test_an_unknown_draft_is_refused_with_those_there_are(library, first):
    """A slip in the id is seen; "none" would send people to make another draft."""
    with pytest.raises(DataError, match=r"no draft \'x\' \(known: none\)"):
        read_version(library, "tiny@draft:x")
    write_version(library, replace(first, number=0, draft="one"))
    with pytest.raises(DataError, match=r"no draft \'x\' \(known: one\)"):
        read_version(library, "tiny@draft:x")


def test_a_version_that_is_not_there_is_told_which_are(workspace, first):
    """From the first to the last, also where there is but one."""
    for number, there in ((1, "is only v1"), (2, "are v1 to v2"), (3, "are v1 to v3")):
        write_version(workspace, replace(first, number=number))
        with pytest.raises(DataError, match=rf"has no version v9 \(there {there}\)"):
            read_version(workspace, "tiny@v9")


@pytest.mark.parametrize(
    ("ref", "parts"),
    [
        ("tiny", ("tiny", "latest")),
        (" tiny@latest ", ("tiny", "latest")),
        ("tiny@v3", ("tiny", "v3")),
        ("tiny@production", ("tiny", "production")),
        ("tiny@draft", ("tiny", "draft")),
        ("tiny@draft:", ("tiny", "draft:")),
        ("tiny@draft:d-1", ("tiny", "draft:d-1")),
        ("a" * 64, ("a" * 64, "latest")),
        ("tiny@", None),
        ("tiny@@v3", None),
        ("tiny@V3", None),
        ("@v3", None),
        ("", None),
        ("a" * 65, None),
        ("tiny@draft:a b", None),
        ("tiny@draft:draft:x", None),
    ],
)
def test_a_reference_is_taken_apart(ref, parts):
    """Into name and selector; what has another form is refused with the forms."""
    if parts:
        assert parse_ref(ref) == parts
        return
    with pytest.raises(
        DataError, match=r"is not a prompt reference\. Write NAME, NAME@"
    ):
        parse_ref(ref)


def test_prompts_and_versions_are_listed_in_their_order(library, first):
    """By number and not by letter; what only looks like a version is none."""
    for number in (10, 3):
        write_version(library, replace(first, number=number))
    folder = library.prompts / "tiny"
    for name in ("v0", "v04", "v5x", "w6", "vx"):
        (folder / name).mkdir()
    (folder / "v7").write_text("no folder")
    assert list_versions(library, "tiny") == (1, 2, 3, 10)
    assert list_versions(library, "none") == ()
    write_version(library, replace(first, name="another"))
    (library.prompts / "file").write_text("")
    assert list_prompts(library) == ("another", "extractor", "tiny")
    rmtree(library.prompts)
    assert list_prompts(library) == ()


def test_drafts_are_listed_by_age(library, first):
    """And not by name; what is no draft's name is left out."""
    assert list_drafts(library, "tiny") == ()
    for at, name in enumerate(("b", "c", "a")):
        write_version(library, replace(first, number=0, draft=name))
        folder = library.private / "drafts" / "tiny" / name
        os.utime(folder, (at + 1, at + 1))
    (library.private / "drafts" / "tiny" / ".c.new-x").mkdir()
    assert list_drafts(library, "tiny") == ("b", "c", "a")
    assert read_version(library, "tiny@draft").draft == "a"
    assert read_version(library, "tiny@draft:").draft == "a"


def test_aliases_are_those_of_the_prompt_and_the_last_that_was_said(library, first):
    """Other prompts, and other acts, have their own."""
    write_version(library, replace(first, name="other"))
    for ref, alias in (
        ("tiny@v1", "ward"),
        ("other@v1", "ward"),
        ("tiny@v1", "lab"),
        ("tiny@v2", "ward"),
    ):
        move_alias(library, ref, alias, actor=EDITOR, reason="so")
    event = Event(
        action="evaluated", subject="tiny@v1", reason="r", payload={"alias": "x"}
    )
    append_event(library.ledger, event, EDITOR)
    assert read_aliases(library, "tiny") == {"ward": "v2", "lab": "v1"}
    assert read_aliases(library, "other") == {"ward": "v1"}
    with pytest.raises(DataError, match=r"tiny has no alias 'x' \(known: ward, lab\)"):
        read_version(library, "tiny@x")


def test_what_was_edited_is_told_with_both_digests(recorded, first, second):
    """By its own header, by the digest of the ledger, or by the digest of a file."""
    folder = recorded.prompts / "tiny" / "v1"
    before = {path: path.read_text() for path in folder.iterdir()}

    def find(**edits):
        for path, text in before.items():
            path.write_text(text)
        for name, (old, new) in edits.items():
            path = folder / f"{name}.{'yaml' if name == 'prompt' else 'jinja'}"
            path.write_text(path.read_text().replace(old, new))
        return inspect_version(recorded, "tiny", 1).edit

    assert find() is None
    other = replace(first, system="Guess.\n").digest
    assert find(system=("Read.", "Guess.")) == Edit(
        "edited after it was committed",
        f"recorded digest {first.digest[:12]}, found {other[:12]}",
    )
    forged = (first.digest, other)
    assert find(system=("Read.", "Guess."), prompt=forged) == Edit(
        "differs from what the ledger recorded",
        f"the ledger recorded digest {first.digest[:12]}, found {other[:12]}",
    )
    assert find(prompt=("Dr A.", "Dr B.")) == Edit(
        "differs from what the ledger recorded",
        "the ledger recorded another prompt.yaml",
    )
    find()
    for name, text in (("guides.yaml", "# edited\n"), ("prompt.yaml", "# edited\n")):
        (folder / name).write_text(before[folder / name] + text)
    assert inspect_version(recorded, "tiny", 1).edit.detail == (
        "the ledger recorded another guides.yaml and prompt.yaml"
    )


def test_the_last_commit_of_a_version_is_what_counts(recorded, first):
    """Other acts, and commits of other versions, say nothing of it."""
    for action, subject in (("draft_committed", "tiny@v2"), ("evaluated", "tiny@v1")):
        event = Event(
            action=action, subject=subject, reason="r", payload={"digest": "f" * 64}
        )
        append_event(recorded.ledger, event, EDITOR)
    assert inspect_version(recorded, "tiny", 1).edit is None
    event = Event(
        action="draft_committed",
        subject="tiny@v1",
        reason="again",
        payload={"digest": "f" * 64},
    )
    append_event(recorded.ledger, event, EDITOR)
    assert inspect_version(recorded, "tiny", 1).edit.detail == (
        f"the ledger recorded digest {'f' * 12}, found {first.digest[:12]}"
    )


def test_a_parent_is_found_by_its_digest_among_earlier_versions(library, first, second):
    """The nearest one before it; a later one is nobody's parent."""
    assert find_parent(library, second) == first
    assert find_parent(library, first) is None
    draft = replace(second, number=0, draft="d", parent=second.digest)
    assert find_parent(library, draft) == second
    later = replace(second, number=2, parent=second.digest)
    assert find_parent(library, later) is None
    assert renumbered(draft, 3) == replace(draft, number=3, draft="")


def test_a_version_is_the_workspace_s_or_else_the_one_that_ships(library):
    """The number decides only where the workspace has no such prompt or number."""
    shipped = WorkspacePaths(bundled())
    numbers = list_versions(shipped, "extractor")
    assert list_versions(library, "extractor") == (1,) != numbers
    for ref, wanted, ships in (
        ("tiny@v1", "tiny@v1", False),
        ("extractor", "extractor@v1", False),
        ("extractor@v1", "extractor@v1", False),
        (f"extractor@v{numbers[-1]}", f"extractor@v{numbers[-1]}", True),
        ("green", "green@v1", True),
        ("green@v1", "green@v1", True),
    ):
        found = read_known(library, ref)
        assert (found.version.ref, found.shipped) == (wanted, ships), ref
    move_alias(library, "extractor@v1", "ward", actor=EDITOR, reason="so")
    assert read_known(library, "extractor@ward").shipped is False
    for ref, said in (
        ("green@v99", "no prompt 'green' under"),
        ("extractor@v99", "extractor has no version v99"),
        ("nothing", "no prompt 'nothing'"),
    ):
        with pytest.raises(DataError, match=said):
            read_known(library, ref)


def test_a_prompt_that_is_not_there_is_told_with_what_is(library):
    """Those known, the nearest by name, or the one that ships and how to begin it."""
    with pytest.raises(DataError) as refused:
        read_version(library, "tinny")
    assert str(refused.value) == (
        f"no prompt 'tinny' under {library.prompts} (known: extractor, tiny). Did you "
        "mean 'tiny'?"
    )
    with pytest.raises(DataError) as refused:
        read_version(library, "green")
    assert str(refused.value).endswith(
        "(known: extractor, tiny). green@v1 ships with ranloop: `ranloop prompt new "
        "green --from green@v1` begins it here."
    )
    with pytest.raises(DataError, match=r"\(known: extractor, tiny\)\.$"):
        read_version(library, "qqq")


def test_a_folder_that_says_it_is_nothing_is_named(library):
    """A number that no version has, in a file that was edited."""
    path = library.prompts / "tiny" / "v1" / "prompt.yaml"
    path.write_text(path.read_text().replace("number: 1", "number: 0"))
    with pytest.raises(DataError, match=rf"^{path}: tiny: number 0 .* Correct it\.$"):
        read_version(library, "tiny@v1")
