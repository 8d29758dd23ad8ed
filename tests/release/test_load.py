"""A release is used only when everything about it holds."""

import shutil

import pytest

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import material
from loop.release.keys import load_private, read_public_keys, revoke_key
from loop.release.load import RunRequest, find_request, load_release, verify_release
from loop.release.statement import ENVELOPE
from tests.release.small import NAME, VERSION, at, freeze_small, read_files, sign
from tests.release.small_numbers import ENGINE

ACTOR = Actor(name="C. Other")


@pytest.fixture
def frozen(workspace):
    """Freeze the small release in a workspace."""
    freeze_small(workspace)
    return workspace


def test_a_release_that_holds_is_loaded_by_its_digest(frozen):
    """The version comes from the release folder, with the digest that was signed."""
    release = load_release(frozen, NAME)
    assert release.version.digest == VERSION.digest
    assert release.facts.release.name == NAME
    assert release.verification.holds


def test_an_edited_version_folder_does_not_change_a_release(frozen):
    """What is used is what was signed, whatever stands in prompts/ by now."""
    (frozen.prompts / "tiny/v1/user.jinja").write_text("{{ text }}")
    assert load_release(frozen, NAME).version == VERSION


@pytest.mark.parametrize("name", ["card.md", "prompt/user.jinja", "ledger.jsonl"])
def test_a_changed_release_is_refused(frozen, name):
    """The message says what is off and what to do."""
    path = frozen.releases / NAME / name
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(DataError, match=rf"(?s){name} was changed.*Restore"):
        load_release(frozen, NAME)


def test_a_withdrawn_release_is_refused(frozen):
    """It still verifies as a folder, and is not to be used."""
    event = Event(
        action="withdrawn",
        subject=VERSION.ref,
        reason="misses rib fractures",
        payload={"release": NAME},
    )
    append_event(frozen.ledger, event, ACTOR)
    with pytest.raises(DataError, match=r"by C\. Other.*misses rib fractures\. Use"):
        load_release(frozen, NAME)


def test_a_release_that_the_ledger_does_not_know_is_refused(frozen):
    """A folder put there by hand is no release, however well it is signed."""
    shutil.move(frozen.releases / NAME, frozen.releases / "tiny-v2")
    with pytest.raises(DataError, match="knows of no such release"):
        load_release(frozen, "tiny-v2")


def test_a_release_under_another_name_is_refused(frozen):
    """The name in the folder and the name asked for are one."""
    shutil.copytree(frozen.releases / NAME, frozen.releases / "tiny-v2")
    entry = {"release": "tiny-v2", "statement_sha256": "", "digest": VERSION.digest}
    event = Event(action="frozen", subject="tiny@v2", reason="copy", payload=entry)
    append_event(frozen.ledger, event, ACTOR)
    with pytest.raises(DataError, match="holds the release tiny-v1"):
        load_release(frozen, "tiny-v2")


def test_a_release_signed_anew_is_refused(frozen):
    """Even with the right keys: the ledger recorded another statement."""
    small_files = read_files(frozen.releases / NAME)
    release = load_release(frozen, NAME)
    facts = release.facts
    one = release.verification.approvals[1]
    private = load_private(frozen, one.keyid)
    sign(frozen.releases / NAME, small_files, facts, [(one, private)])
    with pytest.raises(DataError, match=f"{ENVELOPE} is not the one"):
        load_release(frozen, NAME)


def test_a_key_revoked_later_does_not_take_the_release_back(frozen):
    """The ledger knows that the release is older than the revocation."""
    keyid = load_release(frozen, NAME).verification.approvals[1].keyid
    revoke_key(frozen, keyid, ACTOR, "left the hospital", now=lambda: at(14))
    assert read_public_keys(frozen)[keyid].revoked
    assert load_release(frozen, NAME).verification.holds


def test_a_key_revoked_before_does_not_vouch(workspace):
    """A revoked key signs nothing, whatever time the statement names."""
    small = freeze_small(workspace)
    keyid = small.signers[1][0].keyid
    lines = workspace.ledger.read_bytes().splitlines(keepends=True)
    workspace.ledger.write_bytes(b"".join(lines[:-1]))
    revoke_key(workspace, keyid, ACTOR, "lost", now=lambda: at(12))
    again = Event(
        action="frozen",
        subject=VERSION.ref,
        reason="backdated",
        payload={"release": NAME},
    )
    append_event(workspace.ledger, again, ACTOR, now=lambda: at(13))
    found = verify_release(workspace, NAME)
    assert f"approval {keyid[:16]}" in [one.check for one in found.broken]


def test_a_ledger_that_was_rewritten_since_is_noticed(frozen):
    """The head in the release is not in a ledger that begins anew."""
    lines = frozen.ledger.read_bytes().splitlines(keepends=True)
    frozen.ledger.write_bytes(lines[0])
    payload = {"release": NAME, "statement_sha256": "", "digest": VERSION.digest}
    event = Event(action="frozen", subject=VERSION.ref, reason="x", payload=payload)
    for _ in range(10):
        append_event(frozen.ledger, event, ACTOR)
    details = " ".join(one.what for one in verify_release(frozen, NAME).broken)
    assert "not a part of the workspace's" in details


def test_a_linked_release_folder_is_refused(frozen, tmp_path):
    """A release lies in the workspace, not behind a link."""
    shutil.move(frozen.releases / NAME, tmp_path / NAME)
    (frozen.releases / NAME).symlink_to(tmp_path / NAME)
    with pytest.raises(DataError, match="is a link, which is not followed"):
        load_release(frozen, NAME)


@pytest.mark.parametrize(
    "name", ["", "tiny", "../tiny-v1", "tiny-v0", "TINY-v1", "/v1"]
)
def test_a_name_that_is_none_is_refused(frozen, name):
    """No path is made of it."""
    with pytest.raises(DataError, match="is not the name of a release"):
        load_release(frozen, name)


def test_an_unknown_release_names_the_known_ones(frozen):
    """The way out is in the message."""
    with pytest.raises(DataError, match=r"no release tiny-v3 \(known: tiny-v1\)"):
        load_release(frozen, "tiny-v3")


def test_without_a_release_only_what_is_named_is_asked():
    """Of the rules where no engine is named."""
    place = material(None)
    assert find_request(place) == RunRequest("", "rules", {})
    given = {"engine": "replay:x", "parameters": {"seed": 3}}
    assert find_request(place, "tiny@v1", **given) == RunRequest(
        "tiny@v1", "replay:x", {"seed": 3}
    )


def test_what_is_named_goes_before_what_a_release_was_asked_with(workspace):
    """A release that the workspace lacks is one of those that ship with ranloop."""
    name = "extractor-v11"
    plain = find_request(workspace, release=name)
    assert plain.prompt == plain.release.version
    assert plain.release.facts.release.name == name
    known = {"temperature": 0.0, "max_tokens": 2048, "seed": 0}
    assert (plain.engine, plain.parameters) == ("rules", known)
    changed = {"seed": 5, "thinking": "low"}
    other = find_request(workspace, release=name, engine="openai:m", parameters=changed)
    assert (other.engine, other.parameters) == ("openai:m", known | changed)
    assert other.release.facts == plain.release.facts


@pytest.mark.parametrize(
    ("frozen", "asked", "thinks"),
    [
        ("openai:m", None, True),
        ("openai:m", "vllm:m", True),
        ("openai:m", "replay:x", False),
        ("rules", None, False),
        ("rules", "openai:m", True),
    ],
)
def test_no_engine_but_a_language_model_is_asked_to_think(
    workspace, frozen, asked, thinks
):
    """The engine that is asked decides; everything else is as it was released."""
    parameters = {"temperature": 0.5, "seed": 4, "top_p": 1, "thinking": "low"}
    engine = ENGINE | {"name": frozen, "parameters": parameters}
    freeze_small(workspace, engine=engine | {"digest": digest_json(engine)})
    found = find_request(workspace, release=NAME, engine=asked)
    known = {"temperature": 0.5, "seed": 4}
    assert found.engine == (asked or frozen)
    assert found.parameters == known | ({"thinking": "low"} if thinks else {})


@pytest.mark.parametrize("lost", ["entry", "folder"])
def test_what_is_left_of_a_release_is_not_replaced_by_one_that_ships(workspace, lost):
    """Neither without its entry in the ledger nor without its folder is it another."""
    name = "extractor-v11"
    assert find_request(workspace, release=name).release.name == name
    if lost == "entry":
        (workspace.releases / name).mkdir(parents=True)
        said = "knows of no such release"
    else:
        payload = {"release": name, "statement_sha256": "", "digest": VERSION.digest}
        event = Event(action="frozen", subject="x@v11", reason="x", payload=payload)
        append_event(workspace.ledger, event, ACTOR)
        said = r"was frozen, and its folder .*/extractor-v11 is gone\. Restore it"
    with pytest.raises(DataError, match=said):
        find_request(workspace, release=name)
