"""Committing is one at a time: the second of two keeps a draft, nobody loses work."""

import multiprocessing
import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from loop.core.errors import ConflictError, LedgerError, WriteError
from loop.core.files import locked
from loop.core.ledger import Event, append_event, read_ledger
from loop.prompts.catalog import (
    list_drafts,
    list_versions,
    read_version,
    renumbered,
    write_version,
)
from loop.review.revise.commit import (
    Commitment,
    commit_draft,
    find_commit,
    is_recorded,
)

WHEN = datetime(2026, 1, 6, tzinfo=UTC)


def make_draft(setting, draft):
    """Write a draft of ``tiny`` that differs from every other one."""
    version = replace(
        setting.tiny,
        number=0,
        draft=draft,
        parent=setting.tiny.digest,
        system=f"Read the report, says {draft}.\n",
        why=f"wish of {draft}",
    )
    return write_version(setting.workspace, version)


def commitment(setting):
    """Return a commitment without objections."""
    return Commitment(actor=setting.editor, reason="tested", evidence={"gained": 1})


def commit_and_report(setting, draft, start, results):
    """Commit in another process, at the same moment as the others."""
    start.wait()
    try:
        version = commit_draft(setting.workspace, draft, commitment(setting))
        results.put((draft.draft, version.ref))
    except ConflictError as error:
        results.put((draft.draft, str(error)))


@pytest.mark.slow
def test_of_processes_committing_at_once_exactly_one_wins(setting):
    """Real processes on real locks: one version, the others keep their drafts."""
    context = multiprocessing.get_context("spawn")
    names = [f"writer{n}" for n in range(3)]
    drafts = [make_draft(setting, name) for name in names]
    start, results = context.Event(), context.Queue()
    workers = [
        context.Process(target=commit_and_report, args=(setting, one, start, results))
        for one in drafts
    ]
    for worker in workers:
        worker.start()
    start.set()
    said = dict(results.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    winners = [name for name in names if said[name] == "tiny@v2"]
    losers = [name for name in names if name not in winners]
    assert len(winners) == 1
    assert all("The draft is kept" in said[name] for name in losers)
    assert sorted(list_drafts(setting.workspace, "tiny")) == sorted(losers)
    assert list_versions(setting.workspace, "tiny") == (1, 2)
    events = [e for e in read_ledger(setting.workspace.ledger) if "tiny" in e.subject]
    assert [event.subject for event in events] == ["tiny@v1", "tiny@v2"]


def test_the_second_draft_of_the_same_parent_is_told_what_to_do(setting):
    """The message names the other version and the way out."""
    first, second = make_draft(setting, "first"), make_draft(setting, "second")
    commit_draft(setting.workspace, first, commitment(setting))
    with pytest.raises(
        ConflictError, match=r"tiny@v2 was committed .* rebase tiny@draft:second"
    ):
        commit_draft(setting.workspace, second, commitment(setting))
    assert read_version(setting.workspace, "tiny@draft:second") == second


def test_the_number_is_taken_under_the_lock(setting):
    """A commit waits for the one before it instead of racing it."""
    draft = make_draft(setting, "first")
    lock = setting.workspace.private / "locks" / "prompt-tiny.lock"
    with locked(lock), pytest.raises(ConflictError), locked(lock, wait=False):
        pytest.fail("the lock can be taken twice")
    assert commit_draft(setting.workspace, draft, commitment(setting)).number == 2


def test_a_broken_ledger_leaves_no_version_behind(setting):
    """Version and ledger entry come together or not at all."""
    draft = make_draft(setting, "first")
    ledger = setting.workspace.ledger
    ledger.write_text(ledger.read_text().replace("a start", "a fake"))
    with pytest.raises(LedgerError, match="was edited"):
        commit_draft(setting.workspace, draft, commitment(setting))
    assert list_versions(setting.workspace, "tiny") == (1,)
    assert list_drafts(setting.workspace, "tiny") == ("first",)


def test_no_override_stands_without_its_commit(setting, monkeypatch):
    """Both entries are one write: when it fails, neither is in the ledger."""
    draft = make_draft(setting, "first")
    overriding = replace(
        commitment(setting), objections=("worse",), override_reason="I know"
    )
    before = setting.workspace.ledger.read_bytes()
    real = os.fsync

    def full(handle):
        if os.path.samestat(os.fstat(handle), os.stat(setting.workspace.ledger)):
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(WriteError):
        commit_draft(setting.workspace, draft, overriding)
    monkeypatch.undo()
    assert setting.workspace.ledger.read_bytes() == before
    assert list_versions(setting.workspace, "tiny") == (1,)
    commit_draft(setting.workspace, draft, overriding)
    actions = [entry.action for entry in read_ledger(setting.workspace.ledger)][-2:]
    assert actions == ["draft_committed", "override"]


def test_a_full_disk_leaves_no_version_behind(setting, monkeypatch):
    """A write that fails half-way is taken back and says so."""
    draft = make_draft(setting, "first")

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(WriteError, match="disk is full"):
        commit_draft(setting.workspace, draft, commitment(setting))
    monkeypatch.undo()
    assert list_versions(setting.workspace, "tiny") == (1,)
    names = [path.name for path in (setting.workspace.prompts / "tiny").iterdir()]
    assert names == ["v1"]


def test_only_its_own_commit_records_a_version(setting):
    """Neither another version's commit nor another entry about it is one."""
    draft, ledger = make_draft(setting, "first"), setting.workspace.ledger
    version = write_version(setting.workspace, renumbered(draft, 2))
    moved = Event(action="alias_moved", subject="tiny@v2", reason="w", payload={})
    append_event(ledger, moved, setting.editor)
    assert not is_recorded(setting.workspace, version)
    commit_draft(setting.workspace, draft, commitment(setting))
    append_event(ledger, moved, setting.editor)
    assert is_recorded(setting.workspace, version)
    assert find_commit(setting.workspace, draft) == version
