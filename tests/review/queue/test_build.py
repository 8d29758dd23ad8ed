"""The queue of a real small run: what stands beside a pair, what is let through."""

from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Field, Mark, Outcome, Status, Value
from loop.evaluate.failures import Failure, FailureKind
from loop.labels.ballots import votes_path
from loop.labels.cohort import read_cohort, read_record, texts_path
from loop.labels.taxonomy import NO_FINDING, NoFindingPolicy, read_taxonomy
from loop.labels.votes import import_votes
from loop.review.queue.build import (
    QueueIndex,
    build_queue,
    choose_others,
    find_causes,
    read_others,
)
from loop.review.queue.progress import MarkedQueue, mark_progress, measure_pace
from loop.review.queue.records import (
    QueueFilter,
    Reasons,
    ReviewStatus,
    RightKind,
    TextSection,
)
from loop.review.status import read_kept
from loop.review.submit import VerdictContext, submit_verdict, withdraw_verdict
from loop.review.verdict import Judgement
from loop.review.working import Reservation
from loop.run.store import open_store
from loop.run.task import run_prompt
from tests.evaluate.scenes import TAXONOMY, outcome, reference
from tests.review.scenes import (
    ANN,
    BEN,
    EDITOR,
    add_cohort,
    add_prompt,
    clock,
    commit,
    verdict,
)

ROWS = [
    ("e1", "FINDINGS:\nSmall effusion.\n\nIMPRESSION:\nStable.", 1, 0),
    ("f1", "FINDINGS:\nFluid at the base.\n\nIMPRESSION:\nStable.", 1, 0),
    ("f2", "Fluid layers.", 1, 0),
    ("c1", "FINDINGS:\nClear.\n\nIMPRESSION:\nCardiomegaly.", 0, 0),
    ("n1", "Clear lungs.", 0, 0),
]


@pytest.fixture
def place(workspace, tmp_path):
    """Return a workspace in which v1 misses fluid and v2 reads it."""
    add_cohort(workspace, tmp_path, ROWS)
    first = add_prompt(workspace, 1, "effusion")
    run_prompt(workspace, "tiny@v1", "dev")
    add_prompt(workspace, 2, "effusion", "fluid at", parent=first)
    run_prompt(workspace, "tiny@v2", "dev")
    return workspace


@pytest.fixture
def store(place):
    """Return its open store."""
    with open_store(place) as opened:
        yield opened


@pytest.fixture
def queue(place, store):
    """Return the queue of v1's run."""
    return build_queue(place, store, "latest:tiny@v1")


def pairs(items):
    """Return (case, label) of items, sorted."""
    return sorted((item.case_id, item.label) for item in items)


EFFUSIONS = [("f1", "pleural_effusion"), ("f2", "pleural_effusion")]


def test_every_failing_pair_is_there_once_with_its_place(queue):
    """Nothing that fails can be missed."""
    assert pairs(queue.items) == [("c1", "cardiomegaly"), *EFFUSIONS]
    assert [item.place for item in queue.items] == [1, 2, 3]


def test_other_versions_stand_beside_and_make_a_pair_worth_more(queue):
    """v2 found the fluid of f1, so the prompt's versions disagree there."""
    f1, f2 = queue.find("f1", "pleural_effusion"), queue.find("f2", "pleural_effusion")
    assert [(one.prompt, one.value) for one in f1.others] == [
        ("tiny@v2", Value.PRESENT)
    ]
    assert [one.value for one in f2.others] == [Value.ABSENT]
    assert "2 runs of the prompt disagree" in f1.reasons.words
    assert f1.value == f2.value + 1
    assert f1.place < f2.place


def test_the_section_is_that_of_the_evidence(queue):
    """A missed finding has none."""
    assert queue.find("c1", "cardiomegaly").sections == (TextSection.IMPRESSION,)
    assert queue.find("f1", "pleural_effusion").sections == ()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (QueueFilter(labels=frozenset({"cardiomegaly"})), [("c1", "cardiomegaly")]),
        (QueueFilter(kinds=frozenset({FailureKind.FALSE_NEGATIVE})), EFFUSIONS),
        (
            QueueFilter(sections=frozenset({TextSection.IMPRESSION})),
            [("c1", "cardiomegaly")],
        ),
        (QueueFilter(text="FLUID at"), EFFUSIONS[:1]),
        (QueueFilter(text="f2"), EFFUSIONS[1:]),
        (QueueFilter(text="F"), [("c1", "cardiomegaly"), *EFFUSIONS]),
        (QueueFilter(text="no such words"), []),
        (QueueFilter(reviewers=frozenset({ANN})), []),
        (QueueFilter(progress=frozenset({ReviewStatus.ADDRESSED})), []),
        (QueueFilter(reserved=True), []),
        (QueueFilter(reserved=False, text="fluid"), EFFUSIONS),
    ],
)
def test_filters_let_through_what_they_say(queue, wanted, found):
    """One at a time and together."""
    assert pairs(queue.filtered(wanted)) == found


def test_without_texts_everything_but_the_search_works(place, store):
    """A cohort may have come without its texts."""
    texts_path(place, "dev").unlink()
    queue = build_queue(place, store, "latest:tiny@v1")
    assert len(queue.filtered(QueueFilter())) == 3
    with pytest.raises(DataError, match="not on this machine"):
        queue.filtered(QueueFilter(text="fluid"))
    assert pairs(queue.filtered(QueueFilter(text="f2"))) == EFFUSIONS[1:]


@pytest.mark.slow
def test_no_finding_names_the_labels_that_make_it_so(place, store, tmp_path):
    """Those are what can be judged; "No Finding" itself only follows."""
    folder = tmp_path / "full"
    folder.mkdir()
    made = CliRunner().invoke(
        app, ["demo", str(folder / "ws"), "--rounds", "0", "--json"]
    )
    assert made.exit_code == 0
    demo = WorkspacePaths(folder / "ws")
    with open_store(demo) as opened:
        queue = build_queue(demo, opened, "latest")
    derived = [one for one in queue.items if one.label == NO_FINDING]
    assert derived and all(one.causes for one in derived)
    for one in derived:
        assert all(
            cause.fails is (queue.find(one.case_id, cause.label) is not None)
            for cause in one.causes
        )
        assert one.causes[0].fails
    assert not any(one.causes for one in queue.items if one.label != NO_FINDING)


def test_votes_are_counted_per_value(place, store, tmp_path):
    """The reviewer sees that the readers were split."""
    path = tmp_path / "votes.csv"
    lines = [f"{who},f1,pleural_effusion,{said}" for who, said in
             (("r1", "present"), ("r2", "present"), ("r3", "absent"))]  # fmt: skip
    path.write_text("reader,case_id,label,value\n" + "\n".join(lines) + "\n")
    cohort, taxonomy = read_cohort(place, "dev"), read_taxonomy(place.labels)
    import_votes(place, cohort, path, taxonomy, need=None, actor=EDITOR)
    queue = build_queue(place, store, "latest:tiny@v1", reference=2)
    item = queue.find("f1", "pleural_effusion")
    assert item.votes == ((Value.PRESENT, 2), (Value.ABSENT, 1))
    assert "the readers disagree" in item.reasons.words
    recorded = read_record(place, "dev").votes
    votes_path(place, "dev").write_text("reader,case_id,label,value\n")
    with pytest.raises(DataError) as refused:
        build_queue(place, store, "latest:tiny@v1", reference=2)
    assert str(refused.value) == (
        f"{votes_path(place, 'dev')} is not what the ledger recorded "
        f"({recorded[:12]}). Restore it from version control or a backup."
    )


def test_a_holdout_has_no_queue(place, store, tmp_path):
    """Whoever has read its failing cases has used it up."""
    add_cohort(place, tmp_path, ROWS, role="holdout", replace=True)
    with pytest.raises(DataError, match="failing cases stay unseen"):
        build_queue(place, store, "latest:tiny:dev")


def marked(place, store, queue, reserved=()):
    """Return (progress, reviewers, reserved by) of f1."""
    kept = read_kept(store, place, "dev")
    item = mark_progress(queue, kept, reserved).find("f1", "pleural_effusion")
    return item.progress.value, item.reviewers, item.reserved_by


def judge(store, now, reviewer=ANN, **changes):
    """Hand in a verdict on f1; return its id."""
    made_on = VerdictContext("dev", "tiny@v1", "", "run-1")
    one = verdict("f1", reviewer, label="pleural_effusion", **changes)
    return submit_verdict(store, one, made_on, now)


def test_progress_follows_the_verdicts(place, store, queue):
    """Unreviewed, reviewed by two, and back when both withdraw."""
    now = clock()
    assert marked(place, store, queue) == ("unreviewed", (), "")
    ids = [judge(store, now, who) for who in (ANN, BEN)]
    assert marked(place, store, queue) == ("reviewed", (ANN, BEN), "")
    for key in ids:
        withdraw_verdict(store, key, EDITOR, "slip", now)
    assert marked(place, store, queue) == ("unreviewed", (), "")


def test_marks_may_be_laid_over_marks(place, store, queue):
    """The workbench marks what it marked last: the result must not remember."""
    now = clock()
    held = [Reservation("dev", "f1", BEN, "2026-01-05T09:20:00.000000Z")]
    key = judge(store, now)
    before = mark_progress(queue, read_kept(store, place, "dev"), held)
    withdraw_verdict(store, key, EDITOR, "slip", now)
    kept = read_kept(store, place, "dev")
    assert mark_progress(before, kept).items == mark_progress(queue, kept).items


def test_what_a_version_answered_returns_when_it_still_fails(place, store, queue):
    """On the run of v1 it is done; on a run of v2 somebody must look again."""
    key = judge(store, clock())
    commit(place, "tiny@v2", [key])
    assert marked(place, store, queue)[0] == "addressed"
    f2 = verdict("f2", label="pleural_effusion")
    key = submit_verdict(store, f2, VerdictContext("dev", "tiny@v1", ""), clock())
    commit(place, "tiny@v2", [key])
    later = build_queue(place, store, "latest:tiny@v2")
    kept = read_kept(store, place, "dev")
    items = mark_progress(later, kept).filtered(
        QueueFilter(progress=frozenset({ReviewStatus.RETURNED}))
    )
    assert pairs(items) == EFFUSIONS[1:]


def test_a_reference_corrected_before_the_run_was_scored_returns_too(
    place, store, queue
):
    """Scored on the older reference, the pair is done; on the newer it still fails."""
    wrong = {"judgement": Judgement.REFERENCE_WRONG, "correct_value": Value.PRESENT}
    judge(store, clock(), **wrong)
    assert marked(place, store, queue)[0] == "returned"


def test_a_reserved_case_names_who_has_it(place, store, queue):
    """All of its pairs, and nobody else's."""
    reserved = [Reservation("dev", "f1", BEN, "2026-01-05T09:20:00.000000Z")]
    assert marked(place, store, queue, reserved) == ("unreviewed", (), BEN)
    marks = mark_progress(queue, (), reserved)
    assert pairs(marks.filtered(QueueFilter(reserved=True))) == EFFUSIONS[:1]


def test_marks_that_are_brought_up_to_date_are_those_of_a_fresh_marking(
    place, store, queue
):
    """The workbench touches only what a verdict changed."""
    marks, now, ids, taken = MarkedQueue(queue), clock(), [], []
    held = [Reservation("dev", "f1", BEN, "2026-01-05T09:20:00.000000Z")]

    def agree(reserved=()):
        kept = read_kept(store, place, "dev")
        taken.append(kept)
        marked = marks.mark(kept, reserved)
        assert marked.items == mark_progress(queue, kept, reserved).items

    agree()
    for who in (ANN, BEN, ANN):
        ids.append(judge(store, now, who, comment=f"{now()}"))
        agree(held)
    withdraw_verdict(store, ids[1], EDITOR, "slip", now)
    agree()
    commit(place, "tiny@v2", [ids[2]])
    agree(held)
    # A thread that read earlier may come later.
    before = marks.mark(taken[1], ())
    assert before.items == mark_progress(queue, taken[1]).items


def test_nothing_changed_makes_no_new_items(place, store, queue):
    """Five thousand items are looked at for each click."""
    again = mark_progress(queue, read_kept(store, place, "dev"))
    assert all(a is b for a, b in zip(again.items, queue.items, strict=True))


def test_a_pace_is_the_median_gap_without_pauses(place, store, queue):
    """A lunch is no slow case, and four verdicts are no pace."""
    now = clock()
    judge(store, now)
    marked_queue = mark_progress(queue, read_kept(store, place, "dev"))
    times = [f"2026-01-05T{at}:00.5Z" for at in
             ("09:00", "09:02", "09:04", "12:00", "12:02", "12:03")]  # fmt: skip
    pace = measure_pace(marked_queue.items, ANN, times)
    assert (pace.judged, pace.total, pace.minutes) == (1, 3, 4)
    assert measure_pace(marked_queue.items, ANN, times[:4]).minutes is None
    apart = [f"2026-01-0{day}T09:00:00Z" for day in range(1, 7)]
    assert measure_pace(marked_queue.items, BEN, apart) == (0, 3, None)


def test_right_answers_are_none_of_the_failing_pairs(place, store, queue):
    """One is drawn of seven, and the failing pairs stand as they stood without it."""
    drawn = build_queue(place, store, "latest:tiny@v1", right_every=20)
    (one,) = (item for item in drawn.items if item.right)
    assert (drawn.right_total, queue.right_total) == (7, 0)
    assert one.label != NO_FINDING
    assert pairs(drawn.failing) == pairs(queue.items)
    assert [i.audit for i in drawn.failing] == [i.audit for i in queue.items]
    assert [item.place for item in drawn.items] == [1, 2, 3, 4]
    wanted = QueueFilter(kinds=frozenset({RightKind.RIGHT}))
    assert drawn.filtered(wanted) == (one,)
    again = build_queue(place, store, "latest:tiny@v1", right_every=20)
    assert again.items == drawn.items


def test_a_run_that_asks_the_same_again_has_the_same_draw(place, store):
    """Whoever repeats a run, on any machine, is shown the same random pairs."""
    drawn = []
    for _ in range(3):
        run = run_prompt(place, "tiny@v1", "dev").run_id
        drawn.append(build_queue(place, store, run, right_every=1).items)
    assert len({item.right for item in drawn[0]}) == 2
    assert drawn[0] == drawn[1] == drawn[2]


def test_a_right_answer_of_which_all_was_answered_has_not_returned(place, store):
    """Only what fails comes back."""
    drawn = build_queue(place, store, "latest:tiny@v2", right_every=20)
    (one,) = (item for item in drawn.items if item.right)
    made_on = VerdictContext(cohort="dev", prompt="tiny@v1", source="")
    said = verdict(one.case_id, label=one.label)
    submit_verdict(store, said, made_on, clock())
    commit(place, "tiny@v2", [said.id])
    marked = mark_progress(drawn, read_kept(store, place, "dev"))
    assert marked.find(one.case_id, one.label).progress is ReviewStatus.ADDRESSED


def test_an_earlier_reading_takes_back_all_that_came_later(place, store, queue):
    """As many verdicts may have gone and changed as there are left."""
    marks, now = MarkedQueue(queue), clock()
    first = judge(store, now, ANN)
    early = read_kept(store, place, "dev")
    for who in (BEN, EDITOR.name):
        judge(store, now, who)
    withdraw_verdict(store, first, EDITOR, "slip", now)
    late = read_kept(store, place, "dev")
    for kept in (late, early, late):
        assert marks.mark(kept, ()).items == mark_progress(queue, kept).items


def run_of(name, **changes):
    """Return a finished run, as the store lists them."""
    spec = {
        "cohort": "dev",
        "cohort_digest": "c",
        "engine": "rules",
        "limit": None,
        "prompt": "tiny@v1",
        "prompt_digest": "v1",
        "draw": 0,
    }
    return SimpleNamespace(id=name, spec=SimpleNamespace(**(spec | changes)))


def chosen(record, *runs):
    """Return the ids of the runs that are compared with a run."""
    store = SimpleNamespace(find_runs=lambda finished: runs)
    return [one.id for one in choose_others(store, record)]


def test_repeats_come_first_and_then_the_newest_of_each_other_version():
    """Of the same prompt name, cases and engine; the newest run is listed first."""
    runs = [
        run_of("other engine", engine="vllm:m", prompt_digest="v2"),
        run_of("other cohort", cohort="more", prompt_digest="v2"),
        run_of("other cases", cohort_digest="d", prompt_digest="v2"),
        run_of("a part", limit=3, prompt_digest="v2"),
        run_of("other prompt", prompt="tinier@v1", prompt_digest="x"),
        run_of("repeat of another", prompt="tiny@v2", prompt_digest="v2", draw=1),
        run_of("third draw", draw=3),
        run_of("v2 new", prompt="tiny@v2", prompt_digest="v2"),
        run_of("first draw", draw=1),
        run_of("first draw, older", draw=1),
        run_of("v2 old", prompt="tiny@v2", prompt_digest="v2"),
        run_of("draft", prompt="tiny@draft:d1", prompt_digest="d1"),
        run_of("the same again"),
    ]
    every = ["first draw", "third draw", "v2 new", "draft"]
    assert chosen(run_of("this"), *runs) == every
    more = run_of("v3", prompt="tiny@v3", prompt_digest="v3")
    assert chosen(run_of("this"), *runs, more) == every
    assert chosen(run_of("this"), *runs[:7], more) == ["third draw", "v3"]
    of_a_repeat = chosen(run_of("this", draw=1), *runs)
    assert of_a_repeat == ["the same again", "third draw", "v2 new", "draft"]


def test_what_other_runs_say_stands_with_the_pairs_that_are_asked_for():
    """In the order of the runs; no answer is none, and "No Finding" is derived."""
    taxonomy = read_taxonomy(WorkspacePaths(bundled()).labels)
    present, absent = Field(Value.PRESENT), Field(Value.ABSENT)

    def said(case_id, status=Status.ANSWERED, **fields):
        return Outcome(item_id=case_id, status=status, fields=fields)

    rest = dict.fromkeys(taxonomy.extracted, absent)
    outcomes = {
        "one": [
            said("a", **(rest | {"edema": present})),
            said("b", **rest),
            said("z", **rest),
        ],
        "two": [said("a", Status.UNPARSED), said("b", fracture=present)],
    }
    store = SimpleNamespace(read_outcomes=outcomes.__getitem__)
    runs = [run_of("one"), run_of("two", prompt="tiny@v2", draw=2)]
    asked = [("a", "edema"), ("a", NO_FINDING), ("b", "edema"), ("b", NO_FINDING)]
    found = read_others(store, runs, asked, taxonomy)
    first, second = ("one", "tiny@v1", 0), ("two", "tiny@v2", 2)
    assert found == {
        ("a", "edema"): ((*first, Value.PRESENT), (*second, None)),
        ("a", NO_FINDING): ((*first, Value.ABSENT), (*second, None)),
        ("b", "edema"): ((*first, Value.ABSENT), (*second, None)),
        ("b", NO_FINDING): (
            (*first, Value.PRESENT),
            (*second, taxonomy.derive_no_finding({"fracture": Value.PRESENT})),
        ),
    }


def test_what_makes_a_no_finding_is_told_with_what_fails_first():
    """Where the answer is present or uncertain, or the reference is present."""
    outcomes = [
        outcome("a", {"edema": 1, "fracture": 0, "mass": 0, "support_devices": 1}),
        outcome("b", {"edema": 0, "fracture": -1, "mass": 0}),
        outcome("c", {"edema": 1}),
    ]
    rows = {
        "c": {"edema": 1, "fracture": 0},
        "b": {"edema": 1, "fracture": 0},
        "a": {"edema": 1, "fracture": 1},
    }
    standard = reference(rows, ["edema", "fracture"])
    failing = [
        Failure(case, label, FailureKind.FALSE_NEGATIVE, None, None, (), "")
        for case, label in (
            ("a", NO_FINDING),
            ("a", "fracture"),
            ("b", NO_FINDING),
            ("b", "edema"),
            ("c", "edema"),
        )
    ]
    found = find_causes(outcomes, failing, standard, TAXONOMY)
    assert set(found) == {("a", NO_FINDING), ("b", NO_FINDING)}
    told = {
        case: [(one.label, one.predicted, one.reference, one.fails) for one in causes]
        for (case, _), causes in found.items()
    }
    assert told["b"] == [
        ("edema", Value.ABSENT, Mark.PRESENT, True),
        ("fracture", Value.UNCERTAIN, Mark.ABSENT, False),
    ]
    fracture, *others = told["a"]
    assert fracture == ("fracture", Value.ABSENT, Mark.PRESENT, True)
    assert others[0] == ("edema", Value.PRESENT, Mark.PRESENT, False)
    ignores = TAXONOMY.no_finding_policy is NoFindingPolicy.CHEXPERT
    named = {label for label, *_ in told["a"]}
    assert ("support_devices" in named) is (
        not ignores and "support_devices" in TAXONOMY.ids
    )


def test_a_right_answer_says_by_what_chance_it_is_there(place, store):
    """Drawn among all that are right, and worth nothing of its own."""
    drawn = build_queue(place, store, "latest:tiny@v1", right_every=20)
    (one,) = (item for item in drawn.items if item.right)
    assert one.reasons == Reasons(
        words=("drawn at random among 7 right answers (1 for every 20 errors)",)
    )
    assert (one.audit, one.causes, one.value) == (False, (), 0)
    assert drawn.line.others == tuple(
        run.id for run in store.find_runs() if run.spec.prompt == "tiny@v2"
    )
    assert (drawn.line.cohort, drawn.line.prompt, drawn.line.reference) == (
        *("dev", "tiny@v1", 1),
    )


def test_a_filter_that_is_used_again_finds_the_same(queue):
    """Of the last thirty-two each is looked for once."""
    asked = []

    def find(number):
        def look():
            asked.append(number)
            return (number,)

        return look

    index = QueueIndex(queue.items)
    filters = [QueueFilter(text=f"{n}") for n in range(33)]
    for number, one in enumerate(filters[:32]):
        assert index.fitting(one, find(number)) == (number,)
    index.fitting(filters[0], find(0))
    index.fitting(filters[32], find(32))
    for number in (0, 2, 31, 32):
        assert index.fitting(filters[number], find(number)) == (number,)
    assert asked == list(range(33))
    index.fitting(filters[1], find(1))
    assert asked == [*range(33), 1]
    assert index.cases == {item.case_id: [at] for at, item in enumerate(queue.items)}
