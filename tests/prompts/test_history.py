"""The history joins versions with what the ledger says of them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from loop.core.errors import DataError, LedgerError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.prompts.catalog import write_version
from loop.prompts.history import VersionHistory, move_alias, read_history

EDITOR = Actor(name="Dr A. Example")


@pytest.fixture
def library(workspace, first, second):
    """Return a workspace with two versions of ``tiny`` in the ledger."""
    for version in (first, second):
        write_version(workspace, version)
        event = Event(
            action="draft_committed",
            subject=version.ref,
            reason=version.why,
            payload={"digest": version.digest},
        )
        append_event(workspace.ledger, event, EDITOR)
    return workspace


def test_each_version_carries_its_changes_aliases_and_events(library):
    """One row tells what happened to a version."""
    move_alias(library, "tiny@v2", "production", actor=EDITOR, reason="good")
    one, two = read_history(library, "tiny")
    assert (one.problem, two.problem) == ("", "")
    assert two.changes["+term"] == 2
    assert (one.aliases, two.aliases) == ((), ("production",))
    assert [event.action for event in two.events] == ["draft_committed", "alias_moved"]


def test_an_edited_version_is_shown_not_hidden(library):
    """The history still prints, and says which version cannot be trusted."""
    path = library.prompts / "tiny" / "v1" / "system.jinja"
    path.write_text("Guess.\n")
    one, two = read_history(library, "tiny")
    assert one.problem == "edited after it was committed"
    assert two.problem == ""


def test_an_edit_that_also_corrects_the_digest_is_found(library, first):
    """The ledger knows better than prompt.yaml."""
    folder = library.prompts / "tiny" / "v1"
    (folder / "system.jinja").write_text("Guess.\n")
    forged = replace(first, system="Guess.\n").digest
    header = folder / "prompt.yaml"
    header.write_text(header.read_text().replace(first.digest, forged))
    assert read_history(library, "tiny")[0].problem == (
        "differs from what the ledger recorded"
    )


def test_a_version_that_cannot_be_read_does_not_hide_the_others(library):
    """An edit may also break a file."""
    (library.prompts / "tiny" / "v1" / "guides.yaml").write_text("edema: [")
    one, two = read_history(library, "tiny")
    assert one.problem.startswith("cannot be read: ")
    assert two.problem == ""


def test_drafts_that_stayed_drafts_stand_with_their_parent(library):
    """What was tried and did not hold is part of the history."""
    event = Event(
        action="draft_rejected",
        subject="tiny@draft:d1",
        reason="hoped",
        payload={"parent_ref": "tiny@v1"},
    )
    append_event(library.ledger, event, EDITOR)
    one, two = read_history(library, "tiny")
    assert one.events[-1].action == "draft_rejected"
    assert len(two.events) == 1


def test_a_version_without_a_ledger_entry_is_marked(workspace, first):
    """It was not made by the tool."""
    write_version(workspace, first)
    assert read_history(workspace, "tiny")[0].problem == "not in the ledger"


def test_an_unknown_prompt_is_an_error(workspace):
    """Not an empty table."""
    with pytest.raises(DataError, match="no prompt 'nothing'"):
        read_history(workspace, "nothing")


def test_a_broken_ledger_is_an_error(library):
    """A history that cannot be trusted is not shown as one."""
    library.ledger.write_text(library.ledger.read_text().replace("a start", "x"))
    with pytest.raises(LedgerError, match="was edited after it was written"):
        read_history(library, "tiny")


def test_a_moved_alias_says_where_it_was_and_what_it_names_now(library, second):
    """The entry alone tells the move; a name that begins like a version is free."""
    first = move_alias(library, "tiny@v1", "v2-old", actor=EDITOR, reason="keep")
    moved = move_alias(library, "tiny@v2", "v2-old", actor=EDITOR, reason="newer")
    assert first.payload["before"] is None
    assert dict(moved.payload) == {
        "alias": "v2-old",
        "before": "v1",
        "digest": second.digest,
    }


def test_changes_are_those_since_the_version_before(library, second):
    """Not since the first one."""
    third = replace(second, number=3, system=f"{second.system}More.\n")
    write_version(library, third)
    changes = read_history(library, "tiny")[-1].changes
    assert changes == {"+instruction line": 1}


def test_an_alias_in_the_ledger_does_not_make_a_version_committed(library, second):
    """Only its commit does, whatever else was recorded of it."""
    write_version(library, replace(second, number=3))
    move_alias(library, "tiny@v3", "production", actor=EDITOR, reason="early")
    assert read_history(library, "tiny")[-1].problem == "not in the ledger"


def test_a_row_of_the_history_is_told_whole(library, first, second):
    """The version, what it changed, its aliases, and every entry about it."""
    move_alias(library, "tiny@v1", "old", actor=EDITOR, reason="keep")
    move_alias(library, "tiny@v1", "ward", actor=EDITOR, reason="use")
    for action, subject, payload in (
        ("override", "tiny@v1", {}),
        ("frozen", "tiny@v1", {}),
        ("withdrawn", "tiny@v1", {}),
        ("draft_rejected", "tiny@draft:a", {"parent_ref": "tiny@v2"}),
        ("draft_rejected", "tiny@v1", {"parent_ref": "tiny@v2"}),
        ("frozen", "tiny@v11", {}),
    ):
        event = Event(action=action, subject=subject, reason="r", payload=payload)
        append_event(library.ledger, event, EDITOR)
    entries = read_ledger(library.ledger)[-10:]
    one, two = read_history(library, "tiny")
    assert one == VersionHistory(
        version=first,
        number=1,
        problem="",
        changes={},
        aliases=("old", "ward"),
        events=(entries[0], *entries[2:7]),
    )
    assert one.marking == entries[4:7]
    assert two == VersionHistory(
        version=second,
        number=2,
        problem="",
        changes={
            "+term": 2,
            "+exclusion": 1,
            "+clarification": 1,
            "+exemplar": 1,
            "+implies": 1,
        },
        aliases=(),
        events=(entries[1], *entries[7:9]),
    )


def test_a_version_after_one_that_cannot_be_trusted_has_no_changes(library):
    """What it was changed from is not known."""
    (library.prompts / "tiny" / "v1" / "system.jinja").write_text("Guess.\n")
    one, two = read_history(library, "tiny")
    assert (one.version, one.changes, two.changes) == (None, {}, {})
    assert two.version is not None


def test_a_draft_cannot_be_given_an_alias(library, first):
    """It may change tomorrow; nothing is recorded."""
    write_version(library, replace(first, number=0, draft="d"))
    before = library.ledger.read_bytes()
    with pytest.raises(DataError, match=r"tiny@draft:d is a draft\. Commit it with"):
        move_alias(library, "tiny@draft:d", "ward", actor=EDITOR, reason="use")
    assert library.ledger.read_bytes() == before


def test_an_entry_that_moves_an_alias_says_who_why_and_when(library, second):
    """Whole, as the ledger has it."""
    entry = move_alias(
        library,
        "tiny",
        "ward",
        actor=EDITOR,
        reason="use it",
        now=lambda: datetime(2126, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    assert entry == read_ledger(library.ledger)[-1]
    assert (entry.action, entry.subject) == ("alias_moved", "tiny@v2")
    assert (entry.actor, entry.reason) == ("Dr A. Example", "use it")
    assert entry.time == "2126-01-02T03:04:05Z"
