"""A holdout opens once for each frozen candidate, within a budget, and on record."""

import dataclasses
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
import yaml

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, SealedError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.protocol import protocol_digest, register_protocol
from loop.labels.cohort import read_cohort, read_record
from loop.labels.holdout import retire_holdout
from loop.labels.reference import read_reference, reference_path
from loop.labels.sealing import sealed_path, unseal, vault_key
from loop.prompts.catalog import read_version, write_version
from loop.release import vault
from loop.release.vault import (
    Claimant,
    OpeningFacts,
    find_openings,
    keep_result,
    open_holdout,
    read_result,
)
from loop.run.task import prepare_run, run_task
from tests.review.scenes import add_cohort, add_prompt

ACTOR = Actor(name="Dr. Approver", role="approver")
ROWS = [
    ("h1", "There is a pleural effusion.", 1, 0),
    ("h2", "Cardiomegaly is seen.", 0, 1),
    ("h3", "Lungs are clear.", 0, 0),
]


@pytest.fixture
def place(workspace, tmp_path):
    """Make a workspace with a small prompt, a holdout and a registered protocol."""
    first = add_prompt(workspace, 1, "effusion")
    second = add_prompt(workspace, 2, "effusion", "fluid", parent=first)
    add_prompt(workspace, 3, "effusion", "fluid", "pleura", parent=second)
    add_cohort(workspace, tmp_path, ROWS, name="held", role="holdout")
    register_protocol(workspace, ACTOR)
    return workspace


def candidate(workspace, number=1, **changes):
    """Return the candidate of a version on the holdout as it is."""
    record = read_record(workspace, "held")
    fields = {
        "prompt": f"tiny@v{number}",
        "prompt_digest": read_version(workspace, f"tiny@v{number}").digest,
        "engine_digest": "e" * 64,
        "protocol_digest": protocol_digest(workspace),
        "cohort": "held",
        "cohort_digest": str(record.added["cohort_digest"]),
        "reference_digest": str(record.newest_digest),
    }
    return Claimant(**(fields | changes))


def openings(workspace):
    """Return the ledger's entries of openings."""
    entries = read_ledger(workspace.ledger)
    return [entry for entry in entries if entry.action == "holdout_opened"]


def test_a_run_on_the_holdout_is_scored_with_its_opening_alone(place):
    """From opening to numbers, and not without it."""
    opening = open_holdout(place, candidate(place), ACTOR, "release")
    run = run_task(place, prepare_run(place, "tiny@v1", opening)).run_id
    with pytest.raises(SealedError):
        evaluate_run(place, run, resamples=100)
    found = evaluate_run(place, run, opening=opening, resamples=100)
    assert found.cohort.role == "holdout"
    assert found.cases == len(ROWS)


def test_another_version_is_neither_asked_nor_scored_with_it(place):
    """An opening is for the version that was frozen."""
    first = open_holdout(place, candidate(place), ACTOR, "release")
    with pytest.raises(SealedError, match="holds no opening"):
        prepare_run(place, "tiny@v2", first)
    second = open_holdout(place, candidate(place, 2), ACTOR, "release")
    run = run_task(place, prepare_run(place, "tiny@v2", second)).run_id
    with pytest.raises(SealedError, match="holds no opening"):
        evaluate_run(place, run, opening=first, resamples=100)


def test_an_opening_says_who_why_for_what_and_which_one(place):
    """It is printed on every later document."""
    open_holdout(place, candidate(place), ACTOR, "release of v1")
    (entry,) = openings(place)
    assert (entry.actor, entry.role, entry.reason) == (
        "Dr. Approver",
        "approver",
        "release of v1",
    )
    said = {name: entry.payload[name] for name in ("prompt", "number", "budget")}
    assert said == {"prompt": "tiny@v1", "number": 1, "budget": 3}


def test_a_file_that_cannot_be_decrypted_does_not_hold_the_opening_back(place):
    """Proof that nothing is decrypted before the entry: the file is damaged."""
    path = sealed_path(reference_path(place, "held", 1))
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    opening = open_holdout(place, candidate(place), ACTOR, "release")
    with pytest.raises(DataError, match="its seal does not hold"):
        read_reference(place, "held", opening=opening)
    raw[-1] ^= 1
    path.write_bytes(raw)
    again = open_holdout(place, candidate(place), ACTOR, "release")
    assert again == opening
    assert read_reference(place, "held", opening=again).number == 1


def test_the_same_candidate_gets_the_opening_it_had(place):
    """A second opening would be a second look."""
    first = open_holdout(place, candidate(place), ACTOR, "release")
    assert open_holdout(place, candidate(place), ACTOR, "again") == first
    assert len(openings(place)) == 1


def test_two_at_once_open_once(place):
    """Two people freeze the same version in the same second."""
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda _: open_holdout(place, candidate(place), ACTOR, "release"),
                range(8),
            )
        )
    assert len(set(found)) == 1
    assert len(openings(place)) == 1


def test_the_budget_is_the_protocols(place):
    """Refused, and said what to do; nothing is recorded."""
    set_budget(place, 2)
    for number in (1, 2):
        open_holdout(place, candidate(place, number), ACTOR, "release")
    with pytest.raises(SealedError, match=r"opened 2 times, .*cohort retire held"):
        open_holdout(place, candidate(place, 3), ACTOR, "release")
    assert [facts.number for facts in find_openings(place, "held")] == [1, 2]


def set_budget(workspace, openings_):
    """Write and register a protocol with another budget."""
    content = yaml.safe_load(workspace.protocol.read_text())
    content["holdout_openings"] = openings_
    workspace.protocol.write_text(yaml.safe_dump(content))
    register_protocol(workspace, ACTOR)


def test_a_budget_cannot_be_raised_after_a_look(place):
    """A new protocol after the first opening would be chosen in the light of it."""
    set_budget(place, 1)
    open_holdout(place, candidate(place), ACTOR, "release")
    set_budget(place, 9)
    with pytest.raises(SealedError, match="opened 1 times, and 1 are allowed"):
        open_holdout(place, candidate(place, 2), ACTOR, "release")


def test_no_opening_allowed_opens_nothing(place):
    """A protocol may leave the holdout for another day."""
    set_budget(place, 0)
    with pytest.raises(SealedError, match="opened 0 times, and 0 are allowed"):
        open_holdout(place, candidate(place), ACTOR, "release")


def test_importing_the_same_cases_again_does_not_give_a_new_budget(place, tmp_path):
    """Neither in its place nor under another name."""
    set_budget(place, 1)
    open_holdout(place, candidate(place), ACTOR, "release")
    add_cohort(place, tmp_path, ROWS, name="held", role="holdout", replace=True)
    with pytest.raises(SealedError, match="opened 1 times"):
        open_holdout(place, candidate(place, 2), ACTOR, "release")
    add_cohort(place, tmp_path, ROWS, name="new", role="holdout")
    record = read_record(place, "new")
    renamed = candidate(
        place, 2, cohort="new", reference_digest=str(record.newest_digest)
    )
    with pytest.raises(SealedError, match="opened 1 times"):
        open_holdout(place, renamed, ACTOR, "release")


def test_cases_that_were_open_before_are_no_holdout(place, tmp_path):
    """Retired, or for development once: the labels were seen."""
    retire_holdout(place, "held", ACTOR, "given up")
    add_cohort(place, tmp_path, ROWS, name="held", role="holdout", replace=True)
    with pytest.raises(SealedError, match="were open before: see entry"):
        open_holdout(place, candidate(place), ACTOR, "release")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt_digest": "0" * 64}, "the prompt is not the one"),
        ({"protocol_digest": "0" * 64}, "the protocol is not the one"),
        ({"cohort_digest": "0" * 64}, "the cohort is not the one"),
        ({"reference_digest": "0" * 64}, "the reference is not the one"),
    ],
)
def test_a_candidate_must_be_what_the_workspace_holds(place, changes, message):
    """Otherwise the opening would be for something nobody has."""
    with pytest.raises(DataError, match=message):
        open_holdout(place, candidate(place, **changes), ACTOR, "release")
    assert openings(place) == []


def test_what_is_not_the_candidate_is_told_by_both_digests(place):
    """So that anyone can see which of them is old."""
    wanted = candidate(place, cohort_digest="0" * 64)
    with pytest.raises(DataError) as refused:
        open_holdout(place, wanted, ACTOR, "release")
    there = str(read_record(place, "held").added["cohort_digest"])[:12]
    assert str(refused.value) == (
        f"the cohort is not the one of the candidate (digest {there}, candidate "
        "000000000000). Begin again with the workspace as it is now."
    )


def test_a_draft_opens_nothing(place):
    """Its wording can still change after the look."""
    version = dataclasses.replace(
        read_version(place, "tiny@v1"), number=0, draft="d1", parent="tiny@v1"
    )
    write_version(place, version)
    drafted = candidate(place, prompt=version.ref, prompt_digest=version.digest)
    with pytest.raises(DataError, match=r"tiny@draft:d1 is a draft.*draft commit"):
        open_holdout(place, drafted, ACTOR, "release")
    assert openings(place) == []


def test_a_protocol_that_nobody_registered_opens_nothing(place):
    """What is claimed must be fixed before."""
    content = place.protocol.read_text()
    place.protocol.write_text(content + "# changed\n")
    with pytest.raises(DataError, match="protocol is not in the ledger"):
        open_holdout(place, candidate(place), ACTOR, "release")


def test_a_missing_key_is_said_before_an_opening_is_spent(place):
    """Nothing could be read with it."""
    vault_key(place).unlink()
    with pytest.raises(DataError, match=r"vault.key is not on this machine"):
        open_holdout(place, candidate(place), ACTOR, "release")
    assert openings(place) == []


def test_labels_in_plain_open_nothing(place):
    """Whoever could read them needed no opening."""
    path = reference_path(place, "held", 1)
    path.write_bytes(unseal(place, path))
    with pytest.raises(DataError, match="ranloop cohort seal"):
        open_holdout(place, candidate(place), ACTOR, "release")


def test_an_opening_needs_a_reason(place):
    """It stands in the ledger for ever."""
    with pytest.raises(DataError, match="needs a reason"):
        open_holdout(place, candidate(place), ACTOR, " ")


def test_a_kept_result_ends_the_opening(place):
    """The labels are closed; the same candidate gets what was found."""
    wanted = candidate(place)
    opening = open_holdout(place, wanted, ACTOR, "release")
    assert read_result(place, wanted) is None
    keep_result(place, opening, {"accuracy": 0.5})
    assert read_result(place, wanted) == {"accuracy": 0.5}
    with pytest.raises(SealedError, match="is over"):
        read_reference(place, "held", opening=opening)
    with pytest.raises(SealedError, match="is over"):
        keep_result(place, opening, {"accuracy": 0.9})
    (facts,) = find_openings(place, "held")
    assert len(facts.result_digest) == 64
    assert read_ledger(place.ledger)[-1].actor == "Dr. Approver"


def test_a_result_is_private_and_cannot_be_edited(place):
    """Its digest is in the ledger."""
    wanted = candidate(place)
    keep_result(place, open_holdout(place, wanted, ACTOR, "release"), {"accuracy": 0.5})
    (path,) = (place.private / "openings").glob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text('{"accuracy":0.9}\n')
    with pytest.raises(DataError, match="is not as recorded"):
        read_result(place, wanted)
    path.unlink()
    with pytest.raises(DataError, match="is gone"):
        read_result(place, wanted)


def test_a_result_whose_entry_was_not_written_does_not_count(place):
    """Killed between file and ledger: the opening still holds, and is used again."""
    wanted = candidate(place)
    opening = open_holdout(place, wanted, ACTOR, "release")
    path = vault._result_path(place, opening.candidate)
    path.parent.mkdir()
    path.write_text('{"accuracy":0.9}\n')
    assert read_result(place, wanted) is None
    keep_result(place, opening, {"accuracy": 0.5})
    assert read_result(place, wanted) == {"accuracy": 0.5}


def test_the_number_of_a_version_is_no_part_of_the_candidate(place):
    """The same wording committed again must not get a second look."""
    one = candidate(place)
    assert one.key == dataclasses.replace(one, prompt="tiny@v9").key
    for field in dataclasses.fields(one):
        if field.name != "prompt":
            assert dataclasses.replace(one, **{field.name: "other"}).key != one.key


def test_a_cohort_for_development_is_not_opened(place, tmp_path):
    """There is nothing to open."""
    add_cohort(place, tmp_path, [("d1", "Something else.", 0, 0)], name="dev")
    with pytest.raises(DataError, match="there is nothing to open"):
        open_holdout(place, candidate(place, cohort="dev"), ACTOR, "release")
    assert read_cohort(place, "dev").role == "dev"


def test_whoever_keeps_a_result_is_named_with_it(place):
    """It need not be the one who opened."""
    opening = open_holdout(place, candidate(place), ACTOR, "release")
    keep_result(place, opening, {"accuracy": 0.5}, Actor(name="Dr. Other"))
    assert read_ledger(place.ledger)[-1].actor == "Dr. Other"


def test_an_opening_and_its_end_are_told_in_full(place):
    """By whom, when, why, for what, which one of how many, and with which result."""
    wanted = candidate(place)
    when = {"now": lambda: datetime(2031, 5, 1, 9, tzinfo=UTC)}
    opening = open_holdout(place, wanted, ACTOR, "  release of v1 ", **when)
    entry = read_ledger(place.ledger)[-1]
    facts = OpeningFacts(
        seq=entry.seq,
        hash=entry.hash,
        time="2031-05-01T09:00:00Z",
        actor="Dr. Approver",
        why="release of v1",
        candidate=wanted.key,
        prompt="tiny@v1",
        number=1,
        budget=3,
        result_digest="",
    )
    assert find_openings(place, "held") == (facts,)
    assert entry.payload == {
        **dataclasses.asdict(wanted),
        "candidate": wanted.key,
        "number": 1,
        "budget": 3,
    }
    said = (opening.cohort, opening.seq, opening.hash, opening.candidate)
    assert said == ("held", entry.seq, entry.hash, wanted.key)
    later = open_holdout(place, candidate(place, 2), ACTOR, "another", **when)
    keep_result(place, opening, {"b": 1, "a": [0.5]}, **when)
    raw = (place.private / "openings" / f"{wanted.key}.json").read_bytes()
    assert raw == b'{"a":[0.5],"b":1}\n'
    end = read_ledger(place.ledger)[-1]
    assert (end.action, end.subject, end.actor, end.role, end.time) == (
        *("holdout_sealed", "held", "Dr. Approver", "approver"),
        "2031-05-01T09:00:00Z",
    )
    assert end.reason == f"closed again: opening {entry.seq} has its result"
    assert end.payload == {
        "cohort": "held",
        "cohort_digest": wanted.cohort_digest,
        "opening": entry.seq,
        "candidate": wanted.key,
        "result_digest": digest_bytes(raw),
    }
    first, second = find_openings(place, "held")
    assert first == facts._replace(result_digest=digest_bytes(raw))
    assert (second.seq, second.number, second.result_digest) == (later.seq, 2, "")
    # The other candidate has no result of its own.
    assert read_result(place, candidate(place, 2)) is None
    assert read_result(place, wanted) == {"a": [0.5], "b": 1}


def test_the_least_budget_that_ever_stood_counts(place):
    """Between two openings, it can only become less."""
    set_budget(place, 2)
    open_holdout(place, candidate(place), ACTOR, "one")
    set_budget(place, 3)
    open_holdout(place, candidate(place, 2), ACTOR, "two")
    assert [one.budget for one in find_openings(place, "held")] == [2, 2]
    with pytest.raises(SealedError, match="opened 2 times, and 2 are allowed"):
        open_holdout(place, candidate(place, 3), ACTOR, "three")


@pytest.mark.parametrize(
    ("roles", "seen", "opens"),
    [
        (["external"], False, False),
        (["external"], True, True),
        (["dev"], True, False),
        (["external", "dev"], True, False),
        (["dev", "external"], True, False),
    ],
)
def test_cases_that_were_only_measured_on_open_for_who_knows(place, roles, seen, opens):
    """Cases for development never do, whatever else they were."""
    wanted = candidate(place)
    for role in roles:
        payload = {"role": role, "cohort_digest": wanted.cohort_digest}
        event = Event(action="cohort_added", subject="x", reason="-", payload=payload)
        append_event(place.ledger, event, ACTOR)
    if opens:
        open_holdout(place, wanted, ACTOR, "known", seen=seen)
        assert len(openings(place)) == 1
        return
    at = next(
        one.seq
        for one in read_ledger(place.ledger)
        if one.subject == "x" and (one.payload["role"] == "dev" or not seen)
    )
    with pytest.raises(
        SealedError, match=f"'held' were open before: see entry {at} of"
    ):
        open_holdout(place, wanted, ACTOR, "known", seen=seen)
    assert openings(place) == []
