"""Committing, keeping and giving up: on a check that holds, recorded, one at a time."""

import multiprocessing
import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from loop.core.errors import ConflictError, DataError, LedgerError, WriteError
from loop.core.files import locked
from loop.core.ledger import Event, append_event, read_ledger
from loop.core.people.roster import add_user
from loop.core.people.users import UserRole
from loop.prompts.catalog import (
    file_digests,
    list_drafts,
    list_versions,
    read_version,
    renumbered,
    write_version,
)
from loop.review.revise.commit import (
    CommitDecision,
    Commitment,
    commit_checked,
    commit_draft,
    discard_draft,
    keep_draft,
    reject_draft,
)
from loop.review.revise.corrections import correct_reference_from
from loop.review.revise.draft import list_open_drafts
from loop.review.revise.draft_files import beside, find_commit, is_recorded
from loop.run.store import open_store
from tests.review.revise.stepping import (
    FLUID,
    OTHER,
    USELESS,
    WRONG,
    begin,
    check,
    now,
    overtake,
)

WORDY = replace(
    FLUID.edits, terms=("fluid ... base", "blunting of the left costophrenic angle")
)


@pytest.fixture
def draft(setting, store):
    """Begin a draft and check it."""
    made = begin(setting, store, FLUID).draft
    check(setting, store, made)
    return made


def commit(setting, store, draft, why="bases were missed", override=""):
    """Commit a draft as another person than the one who began it."""
    return commit_checked(
        setting.workspace,
        store,
        draft.ref,
        OTHER,
        CommitDecision(why, override),
        now=now,
    ).version


def test_a_checked_draft_becomes_the_next_version(setting, store, draft):
    """With its reason, its evidence, its run, and both names."""
    version = commit(setting, store, draft)
    assert (version.ref, version.author, version.why) == (
        "tiny@v2",
        OTHER.name,
        "bases were missed",
    )
    assert read_version(setting.workspace, "tiny") == version
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert (entry.action, entry.actor) == ("draft_committed", OTHER.name)
    assert entry.payload["check"]["drafted_by"] == setting.editor.name
    assert entry.payload["check"]["targets"] == {"fixed": 2}
    assert store.find_runs()[0].spec.prompt == "tiny@v2"
    assert list_drafts(setting.workspace, "tiny") == ()
    assert not any(path.exists() for path in beside(setting.workspace, draft))


def test_a_commit_records_in_which_roles_its_verdicts_were_given(setting, store):
    """An auditor has the ledger and no store; a giver without a role is not counted."""
    roles = [UserRole.REVIEWER, UserRole.EDITOR]
    add_user(setting.workspace, FLUID.reviewer, roles, "a long password to keep")
    own = replace(FLUID, reviewer=OTHER.name, case_ids=("f2",))
    strange = replace(FLUID, reviewer="Dr D. Stranger", case_ids=("f3",))
    made = begin(setting, store, FLUID, USELESS, own, strange).draft
    check(setting, store, made)
    version = commit(setting, store, made, override="the test is of the entry")
    (entry,) = (
        one
        for one in read_ledger(setting.workspace.ledger)
        if (one.action, one.subject) == ("draft_committed", version.ref)
    )
    assert len(entry.payload["verdicts"]) == 4
    assert entry.payload["verdict_roles"] == {"reviewer and editor": 2, "editor": 1}


def test_a_commit_of_unknown_people_s_verdicts_records_no_role(setting, store, draft):
    """As entries before roles were recorded: nothing is guessed."""
    commit(setting, store, draft)
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert entry.payload["verdicts"] and "verdict_roles" not in entry.payload


def test_an_unchecked_draft_is_refused(setting, store):
    """Nothing is committed on hope."""
    made = begin(setting, store, FLUID).draft
    with pytest.raises(DataError, match="was not checked yet"):
        commit(setting, store, made, override="anyway")


def test_a_stale_check_is_refused_by_name(setting, store, draft):
    """The message says what has changed."""
    begin(setting, store, WRONG)
    correct_reference_from(setting.workspace, store, "dev", (WRONG.id,), setting.editor)
    with pytest.raises(ConflictError, match=r"does not hold any more.*dev:ref2"):
        commit(setting, store, draft, override="anyway")
    assert list_versions(setting.workspace, "tiny") == (1,)


def test_objections_need_an_override_with_a_reason(setting, store):
    """Both stand in the ledger."""
    made = begin(setting, store, USELESS).draft
    check(setting, store, made)
    with pytest.raises(DataError, match="no targeted case was fixed"):
        commit(setting, store, made)
    commit(setting, store, made, override="needed elsewhere")
    committed, override = read_ledger(setting.workspace.ledger)[-2:]
    assert committed.payload["override"]["reason"] == "needed elsewhere"
    assert override.action == "override"


def test_lint_errors_cannot_be_overridden(setting, store):
    """A contradictory guide is nobody's decision."""
    guide = replace(setting.tiny.guides[0], exclusions=("pleural effusion",))
    made = begin(setting, store, guides={guide.label: guide}).draft
    check(setting, store, made)
    with pytest.raises(DataError, match="cannot be overridden"):
        commit(setting, store, made, override="anyway")


def test_a_holdout_imported_after_the_check_is_looked_at(setting, store):
    """A check cannot know of it, the commit must."""
    made = begin(setting, store, replace(FLUID, edits=WORDY)).draft
    check(setting, store, made)
    text = "Blunting of the left costophrenic angle by fluid at base today."
    setting.add_cohort("held", "holdout", [("h1", text, 1, 0)])
    with pytest.raises(DataError, match="h1 of cohort held"):
        commit(setting, store, made, override="anyway")
    assert list_versions(setting.workspace, "tiny") == (1,)


def test_whoever_comes_second_is_told_who_was_first(setting, store, draft):
    """Their draft is kept and can be rebased."""
    overtake(setting)
    with pytest.raises(ConflictError, match=r"tiny@v2 .* Dr C. Example at 2026-01-07"):
        commit(setting, store, draft)
    assert read_version(setting.workspace, draft.ref) == draft


def test_a_commit_killed_before_its_ledger_entry_is_finished(setting, store, draft):
    """The version stands there without an entry: the same call writes it."""
    write_version(setting.workspace, renumbered(draft, 2))
    (info,) = list_open_drafts(setting.workspace, store, "tiny")
    assert not info.behind
    assert commit(setting, store, draft).ref == "tiny@v2"
    entries = read_ledger(setting.workspace.ledger)
    assert [entry.subject for entry in entries][-1] == "tiny@v2"
    assert list_versions(setting.workspace, "tiny") == (1, 2)
    assert list_drafts(setting.workspace, "tiny") == ()


def test_a_commit_killed_before_its_draft_was_removed_is_finished(
    setting, store, draft
):
    """The draft is no longer offered, and committing again commits nothing twice."""
    commit(setting, store, draft)
    left = write_version(setting.workspace, draft)
    assert list_open_drafts(setting.workspace, store, "tiny") == ()
    check_less = setting.workspace.ledger.read_bytes()
    with pytest.raises(DataError, match="was not checked yet"):
        commit(setting, store, left)
    assert setting.workspace.ledger.read_bytes() == check_less
    discard_draft(setting.workspace, left.ref, setting.editor, "left over")
    assert list_drafts(setting.workspace, "tiny") == ()


def test_a_broken_ledger_commits_nothing(setting, store, draft):
    """Nothing is added to a history that cannot be trusted."""
    ledger = setting.workspace.ledger
    ledger.write_text(ledger.read_text().replace("a start", "a fake"))
    with pytest.raises(LedgerError, match="was edited"):
        commit(setting, store, draft)
    assert list_versions(setting.workspace, "tiny") == (1,)
    assert list_drafts(setting.workspace, "tiny") == (draft.draft,)


def test_a_full_disk_commits_nothing_and_keeps_the_check(
    setting, store, draft, monkeypatch
):
    """After freeing space the same commit goes through."""

    def full(*_args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(WriteError, match="disk is full"):
            commit(setting, store, draft)
    assert list_versions(setting.workspace, "tiny") == (1,)
    assert commit(setting, store, draft).ref == "tiny@v2"


def test_a_draft_kept_on_purpose_stands_in_the_ledger(setting, store, draft):
    """With the reason, and what its check showed."""
    entry = keep_draft(setting.workspace, draft.ref, OTHER, "after the meeting")
    assert (entry.action, entry.reason) == ("draft_rejected", "after the meeting")
    assert entry.payload["parent_ref"] == "tiny@v1"
    assert entry.payload["check"]["gained"] == 4
    assert list_drafts(setting.workspace, "tiny") == (draft.draft,)
    assert commit(setting, store, draft).ref == "tiny@v2"


def test_a_checked_draft_leaves_a_trace_when_it_is_given_up(setting, store, draft):
    """Once: giving up what was kept on purpose adds nothing."""
    keep_draft(setting.workspace, draft.ref, OTHER, "after the meeting")
    before = read_ledger(setting.workspace.ledger)
    entry = discard_draft(setting.workspace, draft.ref, OTHER, "no use")
    assert entry == before[-1]
    assert read_ledger(setting.workspace.ledger) == before
    assert list_drafts(setting.workspace, "tiny") == ()


def test_an_unchecked_draft_is_given_up_without_a_trace(setting, store):
    """It was private work."""
    made = begin(setting, store, FLUID).draft
    before = setting.workspace.ledger.read_bytes()
    assert discard_draft(setting.workspace, made.ref, OTHER, "no use") is None
    assert setting.workspace.ledger.read_bytes() == before
    assert list_drafts(setting.workspace, "tiny") == ()


def test_a_damaged_draft_can_be_given_up_by_its_id(setting, store, draft):
    """Nobody has to look for its folder."""
    folder = setting.workspace.private / "drafts" / "tiny" / draft.draft
    (folder / "guides.yaml").write_text("- no guides")
    with pytest.raises(DataError, match="guides"):
        discard_draft(setting.workspace, "tiny@draft", OTHER, "damaged")
    assert discard_draft(setting.workspace, draft.ref, OTHER, "damaged") is None
    assert list_drafts(setting.workspace, "tiny") == ()
    assert not any(path.exists() for path in beside(setting.workspace, draft))


@pytest.mark.parametrize("ref", ["../x@draft:d1", "tiny@draft:../d", "a/b@draft:d1"])
def test_a_reference_is_never_a_path(setting, ref):
    """Not even for the lock that is taken first."""
    before = sorted(setting.workspace.root.rglob("*"))
    with pytest.raises(DataError, match="is not a prompt reference"):
        discard_draft(setting.workspace, ref, OTHER, "no use")
    assert sorted(setting.workspace.root.rglob("*")) == before


def commit_and_report(setting, ref, start, results):
    """Commit in another process, at the same moment as the other."""
    with open_store(setting.workspace) as store:
        start.wait()
        try:
            done = commit_checked(
                setting.workspace, store, ref, OTHER, CommitDecision("now"), now=now
            )
            results.put((ref, done.version.ref))
        except ConflictError as error:
            results.put((ref, str(error)))


@pytest.mark.slow
def test_of_two_editors_committing_at_once_one_commits_and_one_rebases(setting, store):
    """Real processes on real locks; nobody's draft is lost."""
    ours = begin(setting, store, FLUID).draft
    theirs = begin(
        setting, store, replace(FLUID, edits=replace(FLUID.edits, terms=("fluid",)))
    ).draft
    for one in (ours, theirs):
        check(setting, store, one)
    context = multiprocessing.get_context("spawn")
    start, results = context.Event(), context.Queue()
    workers = [
        context.Process(
            target=commit_and_report, args=(setting, one.ref, start, results)
        )
        for one in (ours, theirs)
    ]
    for worker in workers:
        worker.start()
    start.set()
    said = dict(results.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    assert sorted(word == "tiny@v2" for word in said.values()) == [False, True]
    (loser,) = [ref for ref, word in said.items() if word != "tiny@v2"]
    assert "draft rebase" in said[loser]
    (left,) = list_open_drafts(setting.workspace, store, "tiny")
    assert (left.ref, left.behind) == (loser, True)
    assert os.path.isdir(setting.workspace.prompts / "tiny" / "v2")


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


def commit_at_once(setting, draft, start, results):
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
        context.Process(target=commit_at_once, args=(setting, one, start, results))
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


def test_a_commit_is_recorded_whole(setting):
    """What was decided, on what, by whom, and against which objections."""
    draft = make_draft(setting, "first")
    draft = replace(draft, verdicts=("v1",))
    overriding = replace(
        commitment(setting),
        objections=("worse", "worse still"),
        override_reason="I know",
        verdict_roles={"editor": 1},
    )
    version = commit_draft(setting.workspace, draft, overriding, now=now)
    assert version.ref == "tiny@v2"
    committed, override = read_ledger(setting.workspace.ledger)[-2:]
    files = file_digests(setting.workspace.prompts / "tiny" / "v2")
    assert files
    said = ("action", "subject", "reason", "actor")
    assert [getattr(committed, name) for name in said] == [
        *("draft_committed", "tiny@v2", "tested"),
        setting.editor.name,
    ]
    assert dict(committed.payload) == {
        "digest": version.digest,
        "parent": setting.tiny.digest,
        "draft": "tiny@draft:first",
        "verdicts": ["v1"],
        "files": files,
        "check": {"gained": 1},
        "verdict_roles": {"editor": 1},
        "override": {
            "reason": "I know",
            "overridden": ["worse", "worse still"],
        },
    }
    assert [getattr(override, name) for name in said] == [
        *("override", "tiny@v2", "I know"),
        setting.editor.name,
    ]
    assert dict(override.payload) == {
        "digest": version.digest,
        "overridden": ["worse", "worse still"],
    }


def test_a_plain_commit_records_no_override(setting):
    """Nor roles that nobody knows."""
    commit_draft(setting.workspace, make_draft(setting, "first"), commitment(setting))
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert entry.action == "draft_committed"
    assert set(entry.payload) == {
        *("digest", "parent", "draft", "verdicts", "files", "check")
    }


def test_a_draft_that_stays_one_is_recorded_whole(setting):
    """What stood against it, and what was measured."""
    draft = make_draft(setting, "first")
    entry = reject_draft(
        setting.workspace,
        replace(draft, verdicts=("v1", "v2")),
        "tiny@v1",
        replace(commitment(setting), objections=("worse",)),
        now=now,
    )
    assert entry == read_ledger(setting.workspace.ledger)[-1]
    said = ("action", "subject", "reason", "actor")
    assert [getattr(entry, name) for name in said] == [
        *("draft_rejected", draft.ref, "tested"),
        setting.editor.name,
    ]
    assert dict(entry.payload) == {
        "digest": draft.digest,
        "parent": setting.tiny.digest,
        "parent_ref": "tiny@v1",
        "verdicts": ["v1", "v2"],
        "objections": ["worse"],
        "check": {"gained": 1},
    }


@pytest.mark.parametrize(
    ("why", "wish", "reason"),
    [
        ("meeting", "mine", "meeting"),
        ("", "mine", "mine"),
        ("", " ", "no reason was given"),
    ],
)
def test_a_draft_kept_without_a_check_says_why_as_far_as_anybody_said(
    setting, why, wish, reason
):
    """The reason given, the draft's own, or that there was none."""
    draft = replace(make_draft(setting, "first"), draft="other", why=wish)
    write_version(setting.workspace, draft)
    entry = keep_draft(setting.workspace, draft.ref, OTHER, why, now=now)
    assert (entry.reason, entry.actor, entry.payload["check"]) == (
        reason,
        OTHER.name,
        {},
    )


def test_a_check_of_another_wording_is_not_recorded_as_its_own(setting, store, draft):
    """Edited since: what is kept or given up was not measured."""
    edited = replace(draft, system="Read slowly.\n")
    discard_only = setting.workspace.private / "drafts" / "tiny" / draft.draft
    (discard_only / "system.jinja").write_text(edited.system)
    entry = keep_draft(setting.workspace, draft.ref, OTHER, "later")
    assert entry.payload["check"] == {}
    assert discard_draft(setting.workspace, draft.ref, OTHER, "no use") is None


def test_the_reasons_of_a_draft_and_an_override_are_taken_without_blanks(
    setting, store
):
    """The draft's own reason where none is given."""
    made = begin(setting, store, USELESS, why=" as they wished ").draft
    check(setting, store, made)
    with pytest.raises(DataError, match=f"{made.ref} stays a draft: .*override"):
        commit(setting, store, made, why=" ", override="  ")
    version = commit(setting, store, made, why=" ", override=" needed ")
    assert version.why == "as they wished"
    committed, override = read_ledger(setting.workspace.ledger)[-2:]
    assert (committed.reason, override.reason) == ("as they wished", "needed")
    assert committed.payload["check"]["drafted_by"] == setting.editor.name


def test_who_commits_the_own_draft_is_named_once(setting, store, draft):
    """Nobody else drafted it."""
    version = commit_checked(
        setting.workspace,
        store,
        draft.ref,
        setting.editor,
        CommitDecision("mine"),
        now=now,
    ).version
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert (version.author, entry.actor) == (setting.editor.name,) * 2
    assert "drafted_by" not in entry.payload["check"]
    assert version.time == "2026-01-07T10:00:00Z"
