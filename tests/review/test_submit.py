"""Verdicts handed in one by one: nothing lost, nothing twice, nothing half."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from loop.core.errors import DataError, StoreError
from loop.core.ledger import Actor
from loop.core.people.users import UserRole
from loop.core.records import Clarification, ErrorWeight, Exemplar, Value
from loop.review.status import VerdictState, read_kept
from loop.review.submit import (
    Anchor,
    VerdictContext,
    decode,
    load_verdicts,
    payload,
    read_anchors,
    save_verdicts,
    submit_verdict,
    submit_verdicts,
    withdraw_verdict,
)
from loop.review.verdict import (
    Context,
    Edits,
    ErrorVerdict,
    Judgement,
    Severity,
    Verdict,
)
from loop.review.working import keep_working, read_working
from loop.run import store as runs
from loop.run.store import Store, open_store
from tests.review.scenes import ANN, BEN, MADE_ON, WHEN, clock, verdict


@pytest.fixture
def store(workspace):
    """Return the open store of a fresh workspace."""
    with open_store(workspace) as opened:
        yield opened


def states(store):
    """Return id to state."""
    return {one.id: one.state for one in read_kept(store, None, "dev")}


def test_two_reviewers_on_one_case_both_stay(store):
    """Nobody overwrites anybody."""
    now = clock()
    submit_verdict(store, verdict(reviewer=ANN), MADE_ON, now)
    submit_verdict(store, verdict(reviewer=BEN), MADE_ON, now)
    assert list(states(store).values()) == [VerdictState.OPEN] * 2


def test_a_double_click_keeps_one(store):
    """The answer to the second is the id of the first."""
    now = clock()
    first = submit_verdict(store, verdict(), MADE_ON, now)
    assert submit_verdict(store, verdict(), MADE_ON, now) == first
    assert len(states(store)) == 1


def test_going_back_to_an_earlier_verdict_counts_as_a_new_one(store):
    """A, then B, then A again: the last word is A."""
    now = clock()
    first = submit_verdict(store, verdict(), MADE_ON, now)
    second = submit_verdict(store, verdict(comment="no"), MADE_ON, now)
    third = submit_verdict(store, verdict(), MADE_ON, now)
    assert third == f"{first}-2"
    assert states(store) == {
        first: VerdictState.SUPERSEDED,
        second: VerdictState.SUPERSEDED,
        third: VerdictState.OPEN,
    }
    assert submit_verdict(store, verdict(), MADE_ON, now) == third


def test_what_says_nothing_of_the_pair_makes_no_verdict_new(store):
    """Neither one that was taken back, nor one on another label of the case."""
    now = clock()
    first = submit_verdict(store, verdict(), MADE_ON, now)
    second = submit_verdict(store, verdict(comment="no"), MADE_ON, now)
    withdraw_verdict(store, second, Actor(name=ANN), "slip", now)
    submit_verdict(store, verdict(label="fracture"), MADE_ON, now)
    submit_verdict(store, verdict("b"), MADE_ON, now)
    assert submit_verdict(store, verdict(), MADE_ON, now) == first


def test_a_verdict_may_be_given_again_after_it_was_withdrawn(store):
    """Taking back is no ban."""
    now = clock()
    first = submit_verdict(store, verdict(), MADE_ON, now)
    withdraw_verdict(store, first, Actor(name=ANN, role="reviewer"), "slip", now)
    again = submit_verdict(store, verdict(), MADE_ON, now)
    assert states(store) == {first: VerdictState.WITHDRAWN, again: VerdictState.OPEN}


def test_the_same_words_on_a_newer_run_are_a_verdict_of_their_own(store):
    """The pair failed again, so it was judged again."""
    now = clock()
    first = submit_verdict(store, verdict(), MADE_ON, now)
    again = submit_verdict(store, verdict(), MADE_ON._replace(run="run-2"), now)
    assert states(store)[first] is VerdictState.SUPERSEDED
    assert states(store)[again] is VerdictState.OPEN


def test_a_clock_that_stands_still_does_not_mix_up_the_order(store):
    """The later submission wins also on a machine whose clock was put back."""
    still = [
        submit_verdict(store, verdict(comment=word), MADE_ON, lambda: WHEN)
        for word in "abc"
    ]
    assert [key for key, state in states(store).items() if state == "open"] == [
        still[-1]
    ]


def test_the_form_is_gone_exactly_when_the_verdict_is_there(store):
    """One transaction: a form is neither lost nor left behind."""
    ann = Actor(name=ANN, role="reviewer")
    keep_working(store, ann, "form:x", {"comment": "half"})
    with store.writing() as connection:
        connection.execute(
            "CREATE TEMP TRIGGER stop BEFORE DELETE ON working "
            "BEGIN SELECT RAISE(ABORT, 'stop'); END"
        )
    with pytest.raises(StoreError):
        submit_verdict(store, verdict(), MADE_ON, finishing="form:x")
    assert states(store) == {}
    with store.writing() as connection:
        connection.execute("DROP TRIGGER stop")
    submit_verdict(store, verdict(), MADE_ON, finishing="form:x")
    assert len(states(store)) == 1
    assert read_working(store, ann, "form:x") is None


def test_nobody_elses_form_is_dropped(store):
    """Two people fill in the form of the same case."""
    for name in (ANN, BEN):
        keep_working(store, Actor(name=name), "form:x", {"by": name})
    submit_verdict(store, verdict(reviewer=ANN), MADE_ON, finishing="form:x")
    kept = read_working(store, Actor(name=BEN), "form:x")
    assert kept is not None
    assert kept.payload == {"by": BEN}


def test_a_verdict_without_a_reviewer_is_a_bug(store):
    """Identity comes from the session, always."""
    with pytest.raises(ValueError, match="names no reviewer"):
        submit_verdict(store, verdict(reviewer=" "), MADE_ON)


def test_verdicts_of_one_batch_do_not_supersede_each_other(store):
    """A file may correct the reference and the wording of one case."""
    both = (verdict(comment="one"), verdict(comment="two"))
    submit_verdicts(store, both, MADE_ON._replace(source="round1.yaml"), clock())
    assert set(states(store).values()) == {VerdictState.OPEN}


def test_only_author_or_editor_withdraws(store):
    """And the refusal says whom to ask."""
    key = submit_verdict(store, verdict(reviewer=ANN), MADE_ON)
    with pytest.raises(DataError, match=r"given by Dr A. Example.*Ask one"):
        withdraw_verdict(store, key, Actor(name=BEN, role="reviewer"), "wrong")
    withdraw_verdict(store, key, Actor(name=BEN, role="editor"), " wrong ")
    (kept,) = read_kept(store, None, "dev")
    assert kept.withdrawal is not None
    assert (kept.withdrawal.actor, kept.withdrawal.reason) == (BEN, "wrong")


@pytest.mark.parametrize(
    ("role", "may"),
    [(role.value, role.value in ("editor", "approver", "admin")) for role in UserRole],
)
def test_who_answers_for_others_may_take_back_their_verdicts(store, role, may):
    """Editor, approver and admin; a reader and a reviewer speak for themselves."""
    key = submit_verdict(store, verdict(reviewer=ANN), MADE_ON)
    other = Actor(name=BEN, role=role)
    if may:
        assert withdraw_verdict(store, key, other, "wrong") == f"dev:{key}"
    else:
        with pytest.raises(DataError, match=f"acts as {role}"):
            withdraw_verdict(store, key, other, "wrong")


@pytest.mark.parametrize("flips", ["", "2 of 3"])
def test_in_how_many_draws_it_failed_is_kept_where_somebody_said_so(store, flips):
    """What was kept before there were draws looks as it did."""
    submit_verdict(store, verdict(), MADE_ON._replace(flips=flips))
    (row,) = store.list_verdicts()
    assert row.payload.get("flips") == (flips or None)
    assert ("flips" in row.payload) is bool(flips)


def test_withdrawing_twice_keeps_the_first_reason(store):
    """Nothing in the record changes."""
    key = submit_verdict(store, verdict(), MADE_ON)
    for reason in ("first", "second"):
        withdraw_verdict(store, key, Actor(name=ANN), reason)
    assert read_kept(store, None, "dev")[0].withdrawal.reason == "first"


@pytest.mark.parametrize(
    ("ref", "reason", "message"),
    [
        ("nothing", "a reason", r"no verdict 'nothing'. See `ranloop verdict list`"),
        ("nothing", " ", "needs a reason. Give one"),
    ],
)
def test_what_cannot_be_withdrawn_is_explained(store, ref, reason, message):
    """The message says what to do."""
    with pytest.raises(DataError, match=message):
        withdraw_verdict(store, ref, Actor(name=ANN), reason)


def test_an_id_of_two_cohorts_must_be_told_apart(store):
    """Case ids, and so verdicts, of two cohorts may be equal."""
    for cohort in ("dev", "other"):
        key = submit_verdict(store, verdict(), MADE_ON._replace(cohort=cohort))
    with pytest.raises(DataError, match=f"dev:{key}, other:{key}"):
        withdraw_verdict(store, key, Actor(name=ANN), "why")
    assert withdraw_verdict(store, f"other:{key}", Actor(name=ANN), "why") == (
        f"other:{key}"
    )


def test_eight_reviewers_at_once_lose_nothing(workspace):
    """Threads of one process, and a second process's store, on the same file."""
    workspace.open_private()
    stores = [Store(workspace.store), Store(workspace.store)]

    def review(number):
        for case in range(25):
            one = verdict(f"c{case}", reviewer=f"Dr {number}")
            submit_verdict(stores[number % 2], one, MADE_ON)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(review, range(8)))
    kept = states(stores[0])
    for store in stores:
        store.close()
    assert len(kept) == 8 * 25
    assert set(kept.values()) == {VerdictState.OPEN}


SAVED = datetime(2026, 1, 5, tzinfo=UTC)

FROM_FILE = VerdictContext(cohort="dev", prompt="extractor@v1", source="round1.yaml")


def pin(case_id, value=None):
    """Return an anchoring verdict."""
    return Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        case_ids=(case_id,),
        correct_value=value,
        anchor=True,
        reviewer="Dr A. Example",
    )


def test_saving_twice_keeps_one(workspace):
    """A round that is run again does not multiply its verdicts."""
    with open_store(workspace) as store:
        save_verdicts(store, [pin("a")], FROM_FILE, SAVED)
        save_verdicts(store, [pin("a")], FROM_FILE, SAVED)
        (kept,) = store.list_verdicts()
    assert kept.actor == "Dr A. Example"
    assert kept.payload["prompt"] == "extractor@v1"
    assert kept.payload["verdict"]["case_ids"] == ["a"]


def test_anchors_are_those_of_the_cohort_with_what_is_right(workspace):
    """Case ids of two cohorts may be equal."""
    with open_store(workspace) as store:
        save_verdicts(store, [pin("a"), pin("b", Value.UNCERTAIN)], FROM_FILE, SAVED)
        save_verdicts(store, [pin("z")], FROM_FILE._replace(cohort="other"), SAVED)
        anchors = read_anchors(store, "dev")
    assert set(anchors) == {
        Anchor("a", "edema", None),
        Anchor("b", "edema", Value.UNCERTAIN),
    }


def test_a_withdrawn_verdict_pins_nothing(workspace):
    """Whoever took it back no longer says that the case must stay right."""
    with open_store(workspace) as store:
        save_verdicts(store, [pin("a")], FROM_FILE, SAVED)
        withdraw_verdict(store, pin("a").id, Actor(name="Dr A. Example"), "slip")
        assert read_anchors(store, "dev") == ()


@pytest.mark.parametrize(
    ("reviewer", "value"),
    [("Dr A. Example", Value.ABSENT), ("Dr B. Example", Value.PRESENT)],
)
@pytest.mark.parametrize("says", [Value.ABSENT, None])
def test_a_pin_follows_its_own_reviewer_only(workspace, reviewer, value, says):
    """A later word of the same person is right; another's opens a dispute."""
    later = replace(pin("a", says), anchor=False, reviewer=reviewer, comment="later")
    value = value if says else Value.PRESENT
    with open_store(workspace) as store:
        save_verdicts(store, [pin("a", Value.PRESENT)], FROM_FILE, SAVED)
        submit_verdict(store, later, FROM_FILE)
        assert read_anchors(store, "dev") == (Anchor("a", "edema", value),)


def test_a_kept_verdict_comes_back_as_it_was(workspace):
    """A later round needs its cases, whatever it asked for."""
    verdict = Verdict(
        label="edema",
        judgement=Judgement.GUIDELINE_AMBIGUOUS,
        case_ids=("a", "b"),
        edits=Edits(
            terms=("wet",),
            clarifications=(Clarification(phrase="hazy", value=Value.UNCERTAIN),),
            exemplars=(Exemplar(text="Wet.", value=Value.PRESENT, evidence="Wet"),),
        ),
        correct_value=Value.PRESENT,
        comment="private",
    )
    with open_store(workspace) as store:
        save_verdicts(store, [verdict, pin("a")], FROM_FILE, SAVED)
        (loaded,) = load_verdicts(store, "dev", [verdict.id, "0" * 12])
        assert load_verdicts(store, "other", [verdict.id]) == ()
    assert loaded == verdict
    assert loaded.id == verdict.id


def test_a_row_of_before_keeps_its_meaning_and_its_id(workspace):
    """Severity and cause were written into every verdict; ledgers name such ids."""
    said = {
        "label": "edema",
        "judgement": "model_wrong",
        "severity": "major",
        "context": "other",
        "case_ids": ["a"],
        "reviewer": "Dr A. Example",
    }
    row = runs.StoredVerdict("dev:x", "2026-01-05T09:00:00Z", "", {"verdict": said})
    with open_store(workspace) as store:
        store.add_verdicts([row])
        (loaded,) = load_verdicts(store, "dev", ["x"])
    assert (loaded.severity, loaded.context) == (Severity.MAJOR, Context.OTHER)
    assert loaded.id == "362b85cac9a9"


def test_a_verdict_changed_in_the_store_is_an_error(workspace):
    """Not a verdict without cases."""
    payload = {"verdict": {"label": 1}}
    row = runs.StoredVerdict("dev:x", "2026-01-05T09:00:00Z", "", payload)
    with open_store(workspace) as store:
        store.add_verdicts([row])
        with pytest.raises(StoreError, match=r"dev:x cannot be read.*backup"):
            load_verdicts(store, "dev", ["x"])


@pytest.mark.parametrize("others", [0, 499, 500, 501, 1_200])
def test_verdicts_are_found_among_any_number_of_ids(store, others):
    """The ids of a long history fit into no one question."""
    now = clock()
    ids = [
        submit_verdict(store, verdict(comment=word), MADE_ON, now) for word in "abcde"
    ]
    unknown = [f"{number:012}" for number in range(others)]
    found = load_verdicts(store, "dev", [*unknown, *ids])
    assert [one.comment for one in found] == list("abcde")


def test_pins_are_found_beside_what_pins_nothing(store):
    """Whatever comes first: another cohort's, a withdrawn one, one without a pin."""
    now = clock()
    submit_verdict(store, pin("a"), FROM_FILE._replace(cohort="aaa"), now)
    gone = submit_verdict(store, pin("b", Value.ABSENT), FROM_FILE, now)
    withdraw_verdict(store, gone, Actor(name=ANN), "slip", now)
    submit_verdict(store, replace(pin("d"), anchor=False), FROM_FILE, now)
    both = replace(pin("a", Value.ABSENT), case_ids=("c", "a"))
    submit_verdict(store, both, FROM_FILE, now)
    submit_verdict(store, pin("a", Value.PRESENT), FROM_FILE, now)
    assert read_anchors(store, "dev") == (
        Anchor("c", "edema", Value.ABSENT),
        Anchor("a", "edema", Value.PRESENT),
    )


def test_a_pin_on_a_judge_says_how_many_errors_are_right(store):
    """And follows its reviewer's later counts, also without a pin of their own."""
    error = ErrorVerdict(
        words="x", said=ErrorWeight.SIGNIFICANT, right=ErrorWeight.INSIGNIFICANT
    )
    now = clock()
    first = replace(pin("a"), label="severity", errors=(error,))
    submit_verdict(store, first, FROM_FILE, now)
    assert read_anchors(store, "dev") == (Anchor("a", "severity", None, (0, 1)),)
    worse = replace(error, right=ErrorWeight.SIGNIFICANT)
    later = replace(first, anchor=False, errors=(error, worse, worse))
    submit_verdict(store, later, FROM_FILE, now)
    assert read_anchors(store, "dev") == (Anchor("a", "severity", None, (2, 1)),)
    submit_verdict(store, replace(later, reviewer=BEN, errors=()), FROM_FILE, now)
    assert read_anchors(store, "dev") == (Anchor("a", "severity", None, (2, 1)),)


def test_what_is_said_again_and_again_is_counted_on(store):
    """The third time it has a three; the ids of others are left alone."""
    now = clock()
    ids = [
        submit_verdict(store, verdict(comment=word), MADE_ON, now) for word in "abababb"
    ]
    a, b = ids[:2]
    assert ids == [a, b, f"{a}-2", f"{b}-2", f"{a}-3", f"{b}-3", f"{b}-3"]
    assert [one.id for one in read_kept(store, None, "dev")] == ids[:-1]


def test_verdicts_handed_in_together_have_one_time_after_all_before(store):
    """Also when another reviewer of the batch said something later."""
    later = WHEN.replace(hour=10)
    submit_verdict(store, verdict(reviewer=BEN), MADE_ON, lambda: later)
    both = (verdict("b", reviewer=ANN), verdict("b", reviewer=BEN))
    submit_verdicts(store, both, MADE_ON, lambda: WHEN)
    submit_verdict(store, verdict("c", reviewer="Dr C"), MADE_ON, lambda: WHEN)
    assert [row.created for row in read_kept(store, None, "dev")] == [
        "2026-01-05T09:00:00.000000Z",
        "2026-01-05T10:00:00.000000Z",
        "2026-01-05T10:00:00.000001Z",
        "2026-01-05T10:00:00.000001Z",
    ]


def test_the_forms_of_all_who_hand_in_together_are_done(store):
    """And no other form of theirs."""
    for name in (ANN, BEN):
        for subject in ("form:x", "form:y"):
            keep_working(store, Actor(name=name), subject, {"by": name})
    both = (verdict(reviewer=ANN), verdict(reviewer=BEN))
    submit_verdicts(store, both, MADE_ON, finishing="form:x")
    left = store.read("SELECT actor, subject FROM working ORDER BY actor")
    assert left == [(ANN, "form:y"), (BEN, "form:y")]


@pytest.mark.parametrize("text", ["{", "[]", "null", "{}", '{"verdict": 3}'])
def test_a_row_that_is_no_verdict_is_told_by_its_key(store, text):
    """Whatever something else made of it."""
    with pytest.raises(StoreError, match="kept verdict dev:x cannot be read"):
        decode("dev:x", text)


def test_a_row_says_what_it_was_made_on_as_far_as_it_knows():
    """What was not kept then is empty."""
    said = {"label": "edema", "judgement": "model_wrong", "case_ids": ["a"]}
    row = {"verdict": said, "cohort": "dev", "run": "run-7"}
    assert decode("dev:x", json.dumps(row)) == (
        Verdict(label="edema", judgement=Judgement.MODEL_WRONG, case_ids=("a",)),
        VerdictContext(cohort="dev", prompt="", source="", run="run-7", flips=""),
    )
    full = VerdictContext("dev", "tiny@v1", "f.yaml", "run-1", "1 of 2")
    one = verdict(comment="why")
    assert decode("x", json.dumps(payload(one, full))) == (one, full)


@pytest.mark.parametrize(("run", "kept"), [("", 1), ("run-2", 2)])
def test_a_row_that_names_no_run_was_of_none(store, run, kept):
    """Handed in again without one it is the same verdict."""
    said = {"cohort": "dev", "verdict": verdict().data}
    row = runs.StoredVerdict(
        f"dev:{verdict().id}", "2026-01-05T08:00:00.000000Z", ANN, said
    )
    store.add_verdicts([row])
    submit_verdict(store, verdict(), MADE_ON._replace(run=run), clock())
    assert len(states(store)) == kept


def test_what_is_no_id_of_a_verdict_is_cut_where_it_is_long(store):
    """A whole file name or a line of a table may have been pasted."""
    with pytest.raises(DataError) as caught:
        withdraw_verdict(store, "z" * 90, Actor(name=ANN), " ")
    said = f"withdrawing verdict {'z' * 80} needs a reason. Give one."
    assert str(caught.value) == said
