"""The file of users: read strictly, changed whole, by several at once."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.core.errors import DataError, WriteError
from loop.core.ledger import Actor, Event, append_event
from loop.core.people import passwords, roster
from loop.core.people.passwords import Cost, fits
from loop.core.people.roster import (
    Roster,
    add_user,
    disable_user,
    enable_user,
    find_user,
    known_names,
    read_users,
    renew_hash,
    set_password,
    set_roles,
    users_path,
)
from loop.core.people.users import User, UserRole, check_name

GOOD = "correct horse battery"
CHEAP = Cost(n=2**4, r=1, p=1)
HASH = "scrypt$16$1$1$" + "A" * 22 + "==$" + "A" * 43 + "="


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    """Make hashes quick: their cost is the claim of another test."""
    monkeypatch.setattr(passwords, "COST", CHEAP)


def write(workspace, *users):
    """Write a file of users by hand."""
    rows = "\n".join(users)
    users_path(workspace).write_text(f"version: 1\nusers:\n{rows}\n", "utf-8")


def row(name, roles="[admin]", password=HASH, more=""):
    """Return one user as a person would write it."""
    return f"- name: {name}\n  roles: {roles}\n  password: {password}\n{more}"


def test_without_a_file_there_are_no_users(workspace):
    """A fresh workspace."""
    assert read_users(workspace) == ()


def test_an_added_user_is_read_back(workspace):
    """With the password kept as a hash, in a file of its owner's only."""
    added = add_user(
        workspace,
        " Zoe\u0308 ",
        (UserRole.EDITOR, UserRole.READER),
        GOOD,
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert read_users(workspace) == (added,)
    assert added.name == "Zoë"
    assert added.roles == (UserRole.READER, UserRole.EDITOR)
    assert added.created == "2026-01-01T00:00:00Z"
    assert fits(GOOD, added.password_hash)
    assert users_path(workspace).stat().st_mode & 0o777 == 0o600
    assert GOOD not in users_path(workspace).read_text("utf-8")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("aZ0719eéß._-@ ntruflso:", min_size=1, max_size=20))
def test_any_name_survives_the_file(workspace, text):
    """Also null, true, 007, 1e5 and 12:30, which YAML takes for something else."""
    try:
        name = check_name(text)
    except ValueError:
        return
    user = User(name=name, roles=(UserRole.ADMIN,), password_hash=HASH)
    roster._write(workspace, (user,))
    assert read_users(workspace) == (user,)


def test_a_name_is_taken_however_it_is_capitalised(workspace):
    """One person, one history."""
    add_user(workspace, "Zoë", (UserRole.READER,), GOOD)
    with pytest.raises(DataError, match="there is a user 'Zoë' already"):
        add_user(workspace, "ZOË", (UserRole.ADMIN,), GOOD)


@pytest.mark.parametrize(
    ("name", "roles", "password", "why"),
    [
        ("a\x00", (UserRole.READER,), GOOD, "Choose another name"),
        ("ann", (), GOOD, "Give at least one"),
        ("ann", (UserRole.READER,), "short", "Choose another password"),
    ],
)
def test_a_refused_user_leaves_no_file(workspace, name, roles, password, why):
    """Each refusal says what to do."""
    with pytest.raises(DataError, match=why):
        add_user(workspace, name, roles, password)
    assert not users_path(workspace).exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("version: 2\nusers: []\n", "version"),
        ("users: []\n", "version: missing"),
        ("version: 1\nusers:\n- name: [\n", "not valid YAML"),
        ("version: 1\nusers: []\nmore: 1\n", "more: there is no such field"),
        (
            f"version: 1\nusers:\n{row('a', roles='[boss]')}",
            r"users\.0\.roles\.0",
        ),
        (f"version: 1\nusers:\n{row('a', roles='[]')}", r"users\.0\.roles"),
        (f"version: 1\nusers:\n{row('a', password='hunter2-plain')}", "kept password"),
        (f"version: 1\nusers:\n{row('a')}{row('A')}", "occurs twice"),
        ("", "expected form"),
    ],
)
def test_a_broken_file_is_named_and_left_as_it_is(workspace, text, why):
    """What a hand has written wrong, a hand must correct; nothing is lost."""
    users_path(workspace).write_text(text, "utf-8")
    with pytest.raises(DataError, match=why) as refused:
        read_users(workspace)
    assert "hunter2" not in str(refused.value)
    with pytest.raises(DataError, match=why):
        add_user(workspace, "ann", (UserRole.ADMIN,), GOOD)
    assert users_path(workspace).read_text("utf-8") == text


@pytest.mark.parametrize(
    "change", [disable_user, lambda w, n: set_roles(w, n, (UserRole.READER,))]
)
def test_the_last_admin_stays(workspace, change):
    """A disabled admin is none; without any, nobody could be let in again."""
    write(workspace, row("ann"), row("ben", more="  disabled: true\n"))
    with pytest.raises(DataError, match="the last admin"):
        change(workspace, "ann")
    enable_user(workspace, "ben")
    change(workspace, "ann")


def test_without_an_admin_everything_may_change(workspace):
    """Whoever owns the files is above roles."""
    write(workspace, row("ann", "[reader]"))
    assert set_roles(workspace, "ann", (UserRole.EDITOR,)).roles == (UserRole.EDITOR,)
    assert disable_user(workspace, "ann").disabled


@pytest.mark.parametrize("change", [disable_user, enable_user])
def test_an_unknown_user_is_named(workspace, change):
    """The list says who there is."""
    with pytest.raises(DataError, match=r"no user 'zed'\. `ranloop user list`"):
        change(workspace, "zed")


def test_a_changed_password_replaces_the_old_one(workspace):
    """The old one opens nothing any more."""
    add_user(workspace, "ann", (UserRole.READER,), GOOD)
    changed = set_password(workspace, "ANN", "another horse entirely")
    assert changed.name == "ann"
    assert not fits(GOOD, changed.password_hash)
    assert fits("another horse entirely", changed.password_hash)


def test_a_hash_is_renewed_once_its_password_is_known(workspace, monkeypatch):
    """And only once."""
    user = add_user(workspace, "ann", (UserRole.READER,), GOOD)
    dearer = Cost(n=2**5, r=1, p=1)
    monkeypatch.setattr(passwords, "COST", dearer)
    renewed = renew_hash(workspace, user, GOOD)
    assert fits(GOOD, renewed.password_hash)
    assert "$32$" in renewed.password_hash
    assert renew_hash(workspace, renewed, GOOD) == renewed


def test_a_password_set_meanwhile_is_not_renewed_away(workspace, monkeypatch):
    """And whoever knew the old one does not pass for knowing the new one."""
    user = add_user(workspace, "ann", (UserRole.READER,), GOOD)
    changed = set_password(workspace, "ann", "another horse, please")
    monkeypatch.setattr(passwords, "COST", Cost(n=2**5, r=1, p=1))
    assert renew_hash(workspace, user, GOOD) == user
    assert read_users(workspace) == (changed,)


def test_people_added_at_once_are_all_there(workspace):
    """Each change reads and writes under the lock."""
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda n: add_user(workspace, f"user {n}", (UserRole.READER,), GOOD),
                range(24),
            )
        )
    assert {user.name for user in read_users(workspace)} == {
        f"user {n}" for n in range(24)
    }


def test_a_folder_that_cannot_be_written_says_so(workspace):
    """Nothing is changed then."""
    write(workspace, row("ann"))
    users_path(workspace).rename(users_path(workspace).with_name("kept"))
    users_path(workspace).mkdir()
    with pytest.raises((DataError, WriteError)):
        add_user(workspace, "ben", (UserRole.READER,), GOOD)


def test_a_server_sees_a_change_at_its_next_question(workspace):
    """Disabling must not wait for a restart."""
    add_user(workspace, "ann", (UserRole.READER,), GOOD)
    served = Roster(workspace)
    assert served.find("ANN").disabled is False
    disable_user(workspace, "ann")
    assert served.find("ann").disabled is True
    users_path(workspace).unlink()
    assert served.users() == ()


def test_a_server_lets_nobody_in_on_a_file_that_broke(workspace):
    """What it used to say does not count; the error comes each time until repaired."""
    add_user(workspace, "ann", (UserRole.READER,), GOOD)
    whole = users_path(workspace).read_bytes()
    served = Roster(workspace)
    served.users()
    users_path(workspace).write_bytes(whole[:-40])
    for _ in range(2):
        with pytest.raises(DataError):
            served.users()
    users_path(workspace).write_bytes(whole)
    assert served.find("ann") is not None


def test_an_unchanged_file_is_not_read_again(workspace):
    """A question per request must cost nothing."""
    add_user(workspace, "ann", (UserRole.READER,), GOOD)
    served = Roster(workspace)
    assert served.users()[0] is served.users()[0]


def test_users_are_found_however_they_are_written(workspace):
    """As at the sign-in form."""
    add_user(workspace, "Dr. A", (UserRole.READER,), GOOD)
    users = read_users(workspace)
    assert find_user(users, "dr. a ") == users[0]
    assert find_user(users, "dr a") is None


def test_a_file_kept_elsewhere_by_a_link_is_replaced_whole(workspace, tmp_path):
    """Renaming over a link never writes half a file through it."""
    elsewhere = tmp_path / "users.yaml"
    elsewhere.write_text("version: 1\nusers: []\n", "utf-8")
    os.symlink(elsewhere, users_path(workspace))
    add_user(workspace, "ann", (UserRole.READER,), GOOD)
    assert elsewhere.read_text("utf-8") == "version: 1\nusers: []\n"
    assert len(read_users(workspace)) == 1


def test_nobody_gets_a_name_that_looks_like_one_in_the_history(workspace):
    """Of a user, of who acted, of who got a key: both would read as one person."""
    add_user(workspace, "Ann Cole", (UserRole.ADMIN,), GOOD)
    acted = Actor(name="Bob Reed")
    key = {"key": {"name": "Carl Ohm"}}
    for action, payload in (("alias_moved", {}), ("key_added", key)):
        event = Event(action=action, subject="x", reason="y", payload=payload)
        append_event(workspace.ledger, event, acted)
    a = "\N{CYRILLIC SMALL LETTER A}"
    for name, known in (
        (f"{a}nn Cole", "Ann Cole"),
        ("bob reed", "Bob Reed"),
        (f"C{a}rl Ohm", "Carl Ohm"),
    ):
        with pytest.raises(DataError, match=f"looks like '{known}'") as refused:
            add_user(workspace, name, (UserRole.READER,), GOOD)
        assert a not in str(refused.value)
        assert ("U+0430" in str(refused.value)) == (a in name)
    add_user(workspace, "Bob Reed", (UserRole.READER,), GOOD)


def test_another_file_of_the_same_size_and_time_is_another_file(workspace):
    """A copy put back keeps both; who was shut out stays shut out."""
    write(workspace, row("Ann"))
    path, served = users_path(workspace), Roster(workspace)
    assert served.find("Ann")
    seen = path.stat()
    other = path.with_name("other.yaml")
    other.write_text(path.read_text("utf-8").replace("Ann", "Bob"), "utf-8")
    os.utime(other, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    os.replace(other, path)
    assert [user.name for user in served.users()] == ["Bob"]


def test_a_broken_file_lets_nobody_in_however_often_it_is_read(workspace):
    """Not even when it comes back as it was before it was read once."""
    write(workspace, row("Ann"))
    path, served = users_path(workspace), Roster(workspace)
    assert served.find("Ann")
    path.write_text("version: 2\n", "utf-8")
    for _ in range(2):
        with pytest.raises(DataError):
            served.find("Ann")
    write(workspace, row("Ann"))
    assert served.find("ann")


def test_what_changes_nothing_writes_nothing(workspace):
    """Nor does it end anybody's session."""
    add_user(workspace, "Ann", (UserRole.ADMIN,), GOOD)
    before = users_path(workspace).stat()
    set_roles(workspace, "ANN", (UserRole.ADMIN,))
    enable_user(workspace, "Ann")
    after = users_path(workspace).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_name_that_looks_like_another_is_refused_with_its_letters(workspace):
    """Five of them, each once and in order; one of ASCII has none to name."""
    add_user(workspace, "acceops", (UserRole.ADMIN,), GOOD)
    cyrillic = "\u0430\u0441\u0441\u0435\u043e\u0440\u0455"
    letters = "U+0430, U+0435, U+043E, U+0440, U+0441"
    with pytest.raises(DataError, match=rf"\(it holds {re.escape(letters)}\) looks"):
        roster.require_distinct(workspace, cyrillic)
    with pytest.raises(DataError, match="the name 'Acce0ps' looks like 'acceops'"):
        roster.require_distinct(workspace, "Acce0ps")


def test_the_file_has_each_user_whole_and_in_order(workspace):
    """As a person reads it who repairs it by hand."""
    users = (
        User(name="Zoë", roles=(UserRole.ADMIN,), password_hash=HASH, created="2026"),
        User(
            name="007",
            roles=(UserRole.EDITOR, UserRole.READER),
            password_hash=HASH,
            disabled=True,
        ),
    )
    roster._write(workspace, users)
    assert users_path(workspace).read_text("utf-8") == (
        "# The users of this workspace. Change them with `ranloop user`, which keeps "
        "the file\n# whole while others write; passwords are kept as scrypt hashes "
        "only.\n"
        "version: 1\nusers:\n"
        f"- name: Zoë\n  roles:\n  - admin\n  password: {HASH}\n"
        "  disabled: false\n  created: '2026'\n"
        f"- name: '007'\n  roles:\n  - reader\n  - editor\n  password: {HASH}\n"
        "  disabled: true\n  created: ''\n"
    )
    assert read_users(workspace) == users
    assert Roster(workspace).users() == users


def test_the_names_that_are_known_are_those_of_users_actors_and_keys(workspace):
    """Each once, in that order; only what adds a key has a name in it."""
    ledger = workspace.ledger
    before = known_names(workspace)
    write(workspace, row("Ann"), row("Bob"))
    for name, action, payload in (
        ("Carl", "alias_moved", {"key": {"name": "Nobody"}}),
        ("Bob", "key_added", {"key": {"name": "Dora"}}),
        ("Ann", "key_added", {"key": "Nobody"}),
        ("Ann", "key_added", {}),
    ):
        event = Event(action=action, subject="x", reason="y", payload=payload)
        append_event(ledger, event, Actor(name=name))
    assert known_names(workspace) == ("Ann", "Bob", *before, "Carl", "Dora")


def test_new_names_are_held_against_each_other_and_against_further_ones(workspace):
    """Two of one list may look alike too; a name itself is no other."""
    a = "\N{CYRILLIC SMALL LETTER A}"
    roster.require_distinct(workspace, "Cate", "Dora", others=["Emil", "Cate"])
    with pytest.raises(DataError, match="looks like 'Cate'"):
        roster.require_distinct(workspace, "Cate", f"C{a}te")
    with pytest.raises(DataError, match="looks like 'Emma'"):
        roster.require_distinct(workspace, "Cate", f"Emm{a}", others=["Emma"])


def test_a_file_that_cannot_be_asked_for_lets_nobody_in(workspace):
    """A folder that is none any more, as when a disk is gone."""
    served = Roster(workspace)
    folder = workspace.private
    folder.rename(folder.with_name("elsewhere"))
    folder.write_text("")
    with pytest.raises(DataError, match=r"cannot read .*users\.yaml: Not a directory"):
        served.users()


def test_a_role_that_is_given_twice_is_held_once(workspace):
    """In the order of the roles; and without one the user is as before."""
    add_user(workspace, "Ann", (UserRole.ADMIN,), GOOD)
    wanted = (UserRole.ADMIN, UserRole.READER, UserRole.ADMIN)
    changed = set_roles(workspace, "ann", wanted)
    assert changed.roles == (UserRole.READER, UserRole.ADMIN)
    with pytest.raises(DataError, match="reader, reviewer, editor, approver, admin"):
        set_roles(workspace, "ann", ())
    assert read_users(workspace) == (changed,)


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda w: set_password(w, "zed", GOOD), "there is no user 'zed'"),
        (lambda w: set_password(w, "Ann", "short"), "Choose another password"),
        (lambda w: set_roles(w, "zed", (UserRole.READER,)), "there is no user 'zed'"),
    ],
)
def test_a_refused_change_leaves_the_user_as_it_was(workspace, act, why):
    """And tells what to do."""
    write(workspace, row("Ann"))
    before = users_path(workspace).read_bytes()
    with pytest.raises(DataError, match=why):
        act(workspace)
    assert users_path(workspace).read_bytes() == before


def test_a_link_to_nowhere_is_not_taken_for_no_users(workspace):
    """Where there are none, whoever is at the machine may do everything."""
    users_path(workspace).symlink_to(workspace.private / "elsewhere.yaml")
    with pytest.raises(DataError, match="does not exist"):
        read_users(workspace)


def test_a_file_that_was_edited_in_place_is_read_again(workspace):
    """Also where it has as many bytes as before."""
    path, served = users_path(workspace), Roster(workspace)
    write(workspace, row("Ann"), row("Eve"))
    assert served.find("Eve")
    size = path.stat().st_size
    write(workspace, row("Ann"), row("Bob"))
    os.utime(path, ns=(1, 1))
    assert path.stat().st_size == size
    assert [user.name for user in served.users()] == ["Ann", "Bob"]
