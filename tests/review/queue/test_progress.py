"""How far a review is: verdicts and reservations laid over a queue without a store."""

import random
from datetime import timedelta

import pytest

from loop.core.records import Mark, Value
from loop.evaluate.failures import Failure, FailureKind
from loop.review.queue.build import CaseTexts, Queue, QueueIndex
from loop.review.queue.progress import (
    MarkedQueue,
    hide_others,
    mark_progress,
    measure_pace,
)
from loop.review.queue.records import (
    QueueItem,
    Reasons,
    ReviewStatus,
    RightAnswer,
    RunLine,
)
from loop.review.status import KeptVerdict, VerdictState
from loop.review.submit import stamp
from loop.review.working import Reservation
from tests.review.scenes import ANN, BEN, MADE_ON, WHEN, verdict

EDEMA = "edema"


def item(case_id, label=EDEMA, *, right=False, reviewers=()):
    """Return one pair of a queue."""
    said = (case_id, label, Value.PRESENT, Mark.ABSENT, ())
    failure = Failure(case_id, label, FailureKind.FALSE_POSITIVE, *said[2:], "")
    return QueueItem(
        failure=RightAnswer(*said) if right else failure,
        place=1,
        reasons=Reasons(),
        reviewers=reviewers,
    )


def queue(*items, prompt="tiny@v2", reference=2):
    """Return these pairs as the queue of a run."""
    return Queue(
        line=RunLine(run_id="r", cohort="dev", prompt=prompt, reference=reference),
        items=items,
        texts=CaseTexts(None, "dev", ()),
        index=QueueIndex(items),
    )


def kept(case_id="a", by="", *, state=None, reviewer=ANN, number=0):
    """Return what is kept of a verdict: open, or what addressed it."""
    known = VerdictState.ADDRESSED if by else VerdictState.OPEN
    return KeptVerdict(
        id=f"{number * 7919 % 10007:05}",
        verdict=verdict(case_id, reviewer),
        circumstances=MADE_ON,
        created=stamp(WHEN + timedelta(seconds=number)),
        state=state or known,
        pairs=((case_id, EDEMA),),
        addressed_by=by,
    )


@pytest.mark.parametrize(
    ("answers", "prompt", "status"),
    [
        ([""], "tiny@v2", ReviewStatus.REVIEWED),
        (["tiny@v1"], "tiny@v2", ReviewStatus.RETURNED),
        (["tiny@v2"], "tiny@v2", ReviewStatus.RETURNED),
        (["tiny@v3"], "tiny@v2", ReviewStatus.ADDRESSED),
        (["tiny@v10"], "tiny@v9", ReviewStatus.ADDRESSED),
        (["other@v1"], "tiny@v2", ReviewStatus.ADDRESSED),
        (["tiny@v9"], "tiny@draft:d1", ReviewStatus.RETURNED),
        (["other@v1"], "tiny@draft:d1", ReviewStatus.ADDRESSED),
        (["dev:ref2"], "tiny@v2", ReviewStatus.RETURNED),
        (["dev:ref3"], "tiny@v2", ReviewStatus.ADDRESSED),
        (["tiny@v1", "tiny@v3"], "tiny@v2", ReviewStatus.ADDRESSED),
        (["tiny@v1", "dev:ref1"], "tiny@v2", ReviewStatus.RETURNED),
        (["tiny@v1", ""], "tiny@v2", ReviewStatus.REVIEWED),
    ],
)
def test_a_pair_is_returned_when_every_answer_came_before_the_run(
    answers, prompt, status
):
    """Until then somebody's verdict waits for it, or a later version has it."""
    said = [kept(by=by, number=at) for at, by in enumerate(answers)]
    for right in (False, True):
        (found,) = mark_progress(
            queue(item("a", right=right), prompt=prompt), said
        ).items
        # Nothing is left to put right where nothing fails.
        done = right and status is ReviewStatus.RETURNED
        assert found.progress is (ReviewStatus.ADDRESSED if done else status)
        assert found.reviewers == (ANN,)


@pytest.mark.parametrize("state", [VerdictState.SUPERSEDED, VerdictState.WITHDRAWN])
def test_what_does_not_stand_says_nothing(state):
    """Neither of who judged a pair nor of how far it is."""
    marked = mark_progress(queue(item("a")), [kept(state=state)])
    assert marked.items == (item("a"),)


FATES = (
    (None, ""),
    (None, "tiny@v1"),
    (None, "tiny@v3"),
    (VerdictState.WITHDRAWN, ""),
    (VerdictState.SUPERSEDED, ""),
)


def test_marking_again_and_again_gives_what_marking_anew_would():
    """Verdicts come, change, are taken back; cases are reserved and given back."""
    rng, cases = random.Random(5), "abcdef"
    fresh = queue(*(item(case, right=case == "f") for case in cases))
    marked, given, held = MarkedQueue(fresh), {}, {}
    for number in range(300):
        case, who = rng.choice(cases), rng.choice((ANN, BEN))
        held.pop(rng.choice(cases), None)
        if number % 3:
            held[case] = Reservation("dev", case, who, "")
        if given and number % 4 == 0:
            del given[rng.choice(list(given))]
        state, by = rng.choice(FATES)
        # Some are new, and some are those that were there, with another fate.
        place = rng.choice([*given, number]) if number % 2 else number
        if place in given:
            case, who = given[place].pairs[0][0], given[place].verdict.reviewer
        given[place] = kept(case, by, state=state, reviewer=who, number=place)
        said = [given[one] for one in sorted(given)]
        found = marked.mark(said, held.values())
        assert found.items == mark_progress(fresh, said, held.values()).items


def test_verdicts_that_are_gone_are_noticed_beside_as_many_new_ones():
    """Two make room for one; one for one."""
    fresh = queue(*map(item, "abc"))
    marked = MarkedQueue(fresh)
    for said in (
        [kept("a", number=1), kept("b", number=2)],
        [kept("c", number=3)],
        [kept("a", number=4)],
        [],
    ):
        assert marked.mark(said, ()).items == mark_progress(fresh, said).items


def test_who_judges_blind_sees_their_own_verdicts_alone():
    """Of the others' not even that there are any."""
    said = [kept("a"), kept("b", reviewer=BEN), kept("c"), kept("c", reviewer=BEN)]
    marked = mark_progress(queue(*map(item, "abcd")), said)
    shown = {one.case_id: one for one in hide_others(marked, ANN).items}
    assert [shown[case].reviewers for case in "abcd"] == [(ANN,), (), (ANN, BEN), ()]
    assert [shown[case].progress.value for case in "abcd"] == [
        *("reviewed", "unreviewed", "reviewed", "unreviewed")
    ]


def times(*gaps):
    """Return times with these seconds between them."""
    made = [WHEN]
    for gap in gaps:
        made.append(made[-1] + timedelta(seconds=gap))
    return [one.isoformat() for one in made]


@pytest.mark.parametrize(
    ("gaps", "minutes"),
    [
        ([60] * 3, None),
        ([60] * 4, 4),
        ([300] * 4, 20),
        ([301] * 4, None),
        ([301, 60, 301, 60], 4),
        ([240] * 60 + [30] * 39, 2),
        ([240] * 60 + [30] * 38, 2),
    ],
)
def test_the_pace_is_that_of_late_without_the_pauses(gaps, minutes):
    """Known from five submissions on; five minutes are still a slow case."""
    items = [
        item(case, reviewers=(ANN,) if case == "a" else (BEN,)) for case in "abcde"
    ]
    items += [item("f", right=True), item("g", "")]
    found = measure_pace(items, ANN, times(*gaps))
    assert (found.judged, found.total, found.minutes) == (1, 5, minutes)


def test_an_item_a_minute_takes_as_many_minutes_as_items():
    """What is left is told in minutes, however much it is."""
    items = [item(f"c{number}") for number in range(100)]
    assert measure_pace(items, ANN, times(*[60] * 4)) == (0, 100, 100)
