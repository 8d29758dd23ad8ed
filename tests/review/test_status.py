"""What became of a verdict is derived from what happened since; nothing is erased."""

from datetime import timedelta
from random import Random

import pytest

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.records import ErrorWeight, Mark, Value
from loop.labels.cohort import read_cohort
from loop.labels.reference import correct_reference
from loop.review import status
from loop.review.status import (
    SubmittedVerdict,
    Verdicts,
    VerdictState,
    find_kept,
    find_open,
    find_standing,
    group_by_label,
    judged_cohorts,
    read_kept,
)
from loop.review.submit import (
    stamp,
    submit_verdict,
    submit_verdicts,
    withdraw_verdict,
)
from loop.review.verdict import ErrorVerdict, Judgement
from loop.run.store import open_store
from tests.review.reading.conftest import import_texts
from tests.review.scenes import (
    ANN,
    BEN,
    EDITOR,
    MADE_ON,
    WHEN,
    add_cohort,
    clock,
    commit,
    verdict,
)


@pytest.fixture
def store(workspace):
    """Return the open store of a fresh workspace."""
    with open_store(workspace) as opened:
        yield opened


def test_the_record_comes_back_whole(store):
    """Verdict, circumstances and time."""
    key = submit_verdict(store, verdict(comment="private"), MADE_ON, lambda: WHEN)
    (kept,) = read_kept(store, None, "dev")
    assert (kept.id, kept.verdict) == (key, verdict(comment="private"))
    assert kept.circumstances == MADE_ON
    assert kept.created == "2026-01-05T09:00:00.000000Z"
    assert kept.pairs == (("a", "edema"),)


def test_withdrawing_a_later_verdict_gives_back_the_earlier(store):
    """A withdrawn verdict is as if never given."""
    now = clock()
    first = submit_verdict(store, verdict(), MADE_ON, now)
    later = submit_verdict(store, verdict(comment="no"), MADE_ON, now)
    one, _ = read_kept(store, None, "dev")
    assert (one.state, one.superseded_by) == (VerdictState.SUPERSEDED, later)
    withdraw_verdict(store, later, Actor(name=ANN), "slip", now)
    one, two = read_kept(store, None, "dev")
    assert (one.id, one.state) == (first, VerdictState.OPEN)
    assert two.state is VerdictState.WITHDRAWN


def test_a_verdict_on_several_cases_stands_for_those_not_judged_again(store):
    """It is superseded only when nothing is left of it."""
    now = clock()
    submit_verdict(store, verdict(case_ids=("a", "b")), MADE_ON, now)
    submit_verdict(store, verdict("a"), MADE_ON, now)
    assert read_kept(store, None, "dev")[0].pairs == (("b", "edema"),)
    submit_verdict(store, verdict("b"), MADE_ON, now)
    assert read_kept(store, None, "dev")[0].state is VerdictState.SUPERSEDED


@pytest.mark.parametrize(
    "other",
    [
        {"reviewer": BEN},
        {"label": "fracture"},
        {"case_ids": ("b",)},
        {"case_ids": (), "comment": "a rule for all"},
    ],
)
def test_another_reviewer_label_or_case_supersedes_nothing(store, other):
    """Only the same person on the same pair has said something else."""
    now = clock()
    submit_verdict(store, verdict(), MADE_ON, now)
    submit_verdict(store, verdict(**other), MADE_ON, now)
    assert {one.state for one in read_kept(store, None, "dev")} == {VerdictState.OPEN}


@pytest.mark.parametrize(
    ("mine", "other", "disputed"),
    [
        ({}, {"judgement": Judgement.GUIDELINE_AMBIGUOUS}, True),
        ({"correct_value": Value.PRESENT}, {"correct_value": Value.ABSENT}, True),
        ({"correct_value": Value.PRESENT}, {}, False),
        ({}, {"comment": "the same in other words"}, False),
        ({}, {"case_ids": ("b",), "judgement": Judgement.GUIDELINE_AMBIGUOUS}, False),
    ],
)
def test_disagreement_of_two_people_is_flagged_on_both(store, mine, other, disputed):
    """Neither silently wins."""
    now = clock()
    first = submit_verdict(store, verdict(**mine), MADE_ON, now)
    second = submit_verdict(store, verdict(reviewer=BEN, **other), MADE_ON, now)
    one, two = read_kept(store, None, "dev")
    assert (one.conflicts, two.conflicts) == (
        ((second,), (first,)) if disputed else ((), ())
    )


def test_what_was_taken_back_conflicts_with_nothing(store):
    """The dispute ends when one side withdraws."""
    now = clock()
    submit_verdict(store, verdict(), MADE_ON, now)
    other = verdict(reviewer=BEN, judgement=Judgement.GUIDELINE_AMBIGUOUS)
    key = submit_verdict(store, other, MADE_ON, now)
    withdraw_verdict(store, key, Actor(name=BEN), "agreed", now)
    assert not any(one.conflicts for one in read_kept(store, None, "dev"))


def test_a_committed_version_addresses_the_verdicts_it_names(workspace, store):
    """The ledger says which; another prompt's version does not count."""
    now = clock()
    key = submit_verdict(store, verdict(), MADE_ON, now)
    commit(workspace, "other@v2", [key])
    assert read_kept(store, workspace, "dev")[0].state is VerdictState.OPEN
    commit(workspace, "tiny@v2", [key])
    (kept,) = read_kept(store, workspace, "dev")
    assert (kept.state, kept.addressed_by) == (VerdictState.ADDRESSED, "tiny@v2")


def test_what_is_said_again_after_a_version_is_open(workspace, store):
    """The version did not help, so it cannot have answered it."""
    now = clock()
    key = submit_verdict(store, verdict(), MADE_ON, now)
    commit(workspace, "tiny@v2", [key], now())
    again = submit_verdict(store, verdict(), MADE_ON._replace(run="run-2"), now)
    states = {one.id: one.state for one in read_kept(store, workspace, "dev")}
    assert states == {key: VerdictState.ADDRESSED, again: VerdictState.OPEN}


@pytest.mark.parametrize(
    ("after", "state"),
    [(-1, "addressed"), (-0.5, "addressed"), (0, "open"), (0.5, "open"), (1, "open")],
)
def test_what_is_said_again_in_the_second_of_a_version_is_open(
    workspace, store, after, state
):
    """The ledger has whole seconds: whoever said it may have seen the version."""
    now = clock()
    key = submit_verdict(store, verdict(), MADE_ON, now)
    later = MADE_ON._replace(run="run-2")
    said = WHEN + timedelta(seconds=60 + after)
    submit_verdict(store, verdict(), later, lambda: said)
    commit(workspace, "tiny@v2", [key], WHEN + timedelta(seconds=60))
    assert read_kept(store, workspace, "dev")[-1].state.value == state


def test_a_verdict_of_no_prompt_is_about_all_of_them(workspace, store):
    """A file need not say what it was made on."""
    now = clock()
    for number, prompt in enumerate(("tiny@v1", "", "other@v1", "tiny@draft:d1")):
        made_on = MADE_ON._replace(prompt=prompt)
        submit_verdict(store, verdict(comment=f"{number}"), made_on, now)
        submit_verdict(store, verdict("b", comment=f"{number}"), made_on, now)
    for asked in ("tiny", "tiny@v7"):
        found = find_open(workspace, store, asked, "dev")
        assert [one.circumstances.prompt for one in found] == ["tiny@draft:d1"] * 2
    kept = read_kept(store, workspace, "dev")
    bare = [one.id for one in kept if not one.circumstances.prompt]
    commit(workspace, "tiny@v2", bare)
    addressed = {
        one.id for one in read_kept(store, workspace, "dev") if one.addressed_by
    }
    assert addressed == set(bare)


def test_open_verdicts_are_found_and_the_label_with_most_comes_first(workspace, store):
    """Those that still wait, of the prompt or of none."""
    now, made = clock(), []
    asked = ("tiny@v1", "", "other@v1", "tiny@v2", "tiny@v1")
    labels = ("edema", "fracture", "edema", "fracture", "edema")
    for number, (prompt, label) in enumerate(zip(asked, labels, strict=True)):
        one = verdict(f"c{number}", label=label)
        made.append(submit_verdict(store, one, MADE_ON._replace(prompt=prompt), now))
    withdraw_verdict(store, made[4], EDITOR, "slip", now)
    found = find_open(workspace, store, "tiny@v9", "dev")
    assert [one.id for one in found] == [made[0], made[1], made[3]]
    groups = group_by_label(found)
    assert [(label, len(group)) for label, group in groups.items()] == [
        *(("fracture", 2), ("edema", 1))
    ]


def test_what_was_addressed_can_be_withdrawn(workspace, store):
    """It is then neither open nor answered."""
    key = submit_verdict(store, verdict(), MADE_ON, clock())
    commit(workspace, "tiny@v2", [key])
    withdraw_verdict(store, key, EDITOR, "slip")
    (kept,) = read_kept(store, workspace, "dev")
    assert (kept.state, kept.addressed_by) == (VerdictState.WITHDRAWN, "tiny@v2")


def test_one_person_does_not_disagree_with_themselves(store):
    """Two verdicts of one file may name two faults of one case."""
    both = (verdict(), verdict(judgement=Judgement.GUIDELINE_AMBIGUOUS))
    submit_verdicts(store, both, MADE_ON._replace(source="round.yaml"), clock())
    assert [one.conflicts for one in read_kept(store, None, "dev")] == [(), ()]


def test_a_batch_is_what_came_in_one_file():
    """Two files of one moment are two batches: the later takes over."""
    given = [
        SubmittedVerdict(f"{n}", stamp(WHEN), verdict(), MADE_ON._replace(source=name))
        for n, name in enumerate(("one.yaml", "one.yaml", "two.yaml"))
    ]
    standing = find_standing(given, ())
    assert [standing[one.id].superseded_by for one in given] == ["2", "2", ""]


def test_what_a_batch_takes_over_is_taken_by_its_last():
    """Two faults of one case, handed in after an earlier verdict on it."""
    given = [
        SubmittedVerdict(f"{n}", stamp(WHEN), verdict(), MADE_ON._replace(source=name))
        for n, name in enumerate(("one.yaml", "two.yaml", "two.yaml"))
    ]
    standing = find_standing(given, ())
    assert [standing[one.id].superseded_by for one in given] == ["2", "", ""]


def test_verdicts_of_one_moment_stand_in_one_order(store):
    """Whoever kept up with them sees the order that a fresh reading gives."""
    both = (verdict(reviewer=ANN), verdict(reviewer=BEN))
    cached = Verdicts(store)
    for one in sorted(both, key=lambda one: one.id, reverse=True):
        submit_verdict(store, one, MADE_ON, lambda: WHEN)
        cached.read("dev")
    assert [one.id for one in cached.read("dev")] == sorted(one.id for one in both)
    assert cached.read("dev") == read_kept(store, None, "dev")


def test_a_corrected_reference_addresses_what_called_it_wrong(
    workspace, store, tmp_path
):
    """And a further correction opens it again."""
    add_cohort(workspace, tmp_path, [("a", "Clear lungs.", 1, 0)])
    wrong = verdict(
        label="pleural_effusion",
        judgement=Judgement.REFERENCE_WRONG,
        correct_value=Value.ABSENT,
    )
    submit_verdict(store, wrong, MADE_ON)
    verdicts, found = Verdicts(store, workspace), []
    for mark in (None, Mark.ABSENT, Mark.PRESENT):
        if mark:
            pairs = {("a", "pleural_effusion"): mark}
            cohort = read_cohort(workspace, "dev")
            correct_reference(workspace, cohort, pairs, actor=EDITOR, reason="a test")
        (kept,) = verdicts.read("dev")
        found.append((kept.state.value, kept.addressed_by))
    assert found == [("open", ""), ("addressed", "dev:ref2"), ("open", "")]


def test_the_cache_sees_what_another_connection_wrote(workspace, store):
    """A colleague uses the command line while the workbench is open."""
    verdicts = Verdicts(store, workspace)
    assert verdicts.read("dev") == ()
    with open_store(workspace) as other:
        key = submit_verdict(other, verdict(), MADE_ON)
        assert [one.id for one in verdicts.read("dev")] == [key]
        withdraw_verdict(other, key, EDITOR, "slip")
    assert verdicts.read("dev")[0].state is VerdictState.WITHDRAWN


@pytest.mark.parametrize("seed", range(6))
def test_the_cache_says_what_a_fresh_reading_says(store, seed):
    """It works out only what is new: standing, conflicts and withdrawals included."""
    draw, now, ids = Random(seed), clock(), []
    verdicts = Verdicts(store)
    for number in range(40):
        if ids and draw.random() < 0.25:
            withdraw_verdict(store, draw.choice(ids), EDITOR, "slip", now)
        else:
            cases = tuple(draw.sample("abcde", draw.randint(0, 3)))
            judgement = draw.choice(
                [Judgement.MODEL_WRONG, Judgement.GUIDELINE_AMBIGUOUS]
            )
            said = verdict(
                case_ids=cases,
                reviewer=draw.choice([ANN, BEN]),
                judgement=judgement,
                comment=f"why {number}",
            )
            ids.append(submit_verdict(store, said, MADE_ON, now))
        assert verdicts.read("dev") == read_kept(store, None, "dev")


def test_cohorts_do_not_mix(store):
    """``dev`` is not ``dev2``, whatever the ids begin with."""
    for cohort in ("dev", "dev2", "dev-3"):
        submit_verdict(store, verdict(), MADE_ON._replace(cohort=cohort))
    assert judged_cohorts(store) == ("dev", "dev-3", "dev2")
    assert [one.cohort for one in read_kept(store, None, "dev")] == ["dev"]


def test_kept_verdicts_are_found_by_their_ids(store):
    """With or without the cohort, each once, the oldest first; with its number too."""
    now = clock()
    first = submit_verdict(store, verdict("a"), MADE_ON, now)
    second = submit_verdict(store, verdict("b"), MADE_ON, now)
    found = find_kept(store, "dev", [second, f"dev:{first}", first])
    assert found == (verdict("a"), verdict("b"))
    submit_verdict(store, verdict("a", comment="x"), MADE_ON, now)
    again = submit_verdict(store, verdict("a"), MADE_ON, now)
    assert again == f"{first}-2"
    assert find_kept(store, "dev", [again]) == (verdict("a"),)
    assert find_kept(store, "dev", []) == ()
    for cohort, name in (("dev", "dev"), ("", r"\(none named\)")):
        said = f"no verdict {'z' * 40}, 1 is kept for cohort {name}"
        with pytest.raises(DataError, match=said):
            find_kept(store, cohort, [*([first] if cohort else []), "z" * 50, "1"])


def counted(*right, reviewer=ANN):
    """Return a verdict on a judge that calls so many errors right."""
    errors = tuple(
        ErrorVerdict(words=f"{n}", said=ErrorWeight.SIGNIFICANT, right=one)
        for n, one in enumerate(right)
    )
    return verdict(reviewer=reviewer, label="severity", errors=errors)


@pytest.mark.parametrize(
    ("mine", "other", "disputed"),
    [
        (("significant",), ("insignificant",), True),
        (("significant",), ("significant", "no_error"), False),
        (("significant",), ("significant", "significant"), True),
        (("significant",), (), False),
        (("no_error",), ("insignificant",), True),
    ],
)
def test_two_people_disagree_on_the_errors_of_a_judge_by_their_counts(
    store, mine, other, disputed
):
    """Who leaves the counts to the raters disagrees with nobody."""
    now = clock()
    for reviewer, said in ((ANN, mine), (BEN, other)):
        one = counted(*map(ErrorWeight, said), reviewer=reviewer)
        submit_verdict(store, one, MADE_ON, now)
    found = read_kept(store, None, "dev")
    assert [bool(one.conflicts) for one in found] == [disputed] * 2


def test_who_disagrees_is_named_on_each_of_three(store):
    """Two who say the same are both against the third, on whichever case."""
    now = clock()
    other = Judgement.GUIDELINE_AMBIGUOUS
    ids = [
        submit_verdict(store, verdict(case_ids=cases, **said), MADE_ON, now)
        for cases, said in (
            (("a", "b"), {"reviewer": ANN}),
            (("a",), {"reviewer": BEN}),
            (("b", "a"), {"reviewer": "Dr C", "judgement": other}),
            (("z",), {"reviewer": "Dr D", "judgement": other}),
        )
    ]
    conflicts = {one.id: one.conflicts for one in read_kept(store, None, "dev")}
    assert conflicts == {
        ids[0]: (ids[2],),
        ids[1]: (ids[2],),
        ids[2]: (ids[0], ids[1]),
        ids[3]: (),
    }


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "addressed"),
        ({"case_ids": ("a", "b")}, "addressed"),
        ({"case_ids": ("a", "c")}, "open"),
        ({"case_ids": ("a", "unknown")}, "open"),
        ({"correct_value": Value.ABSENT}, "open"),
        ({"label": "cardiomegaly"}, "open"),
        ({"label": "fracture"}, "open"),
        ({"judgement": Judgement.MODEL_WRONG}, "open"),
    ],
)
def test_a_reference_answers_a_verdict_when_it_says_so_of_every_case(
    workspace, store, tmp_path, changes, state
):
    """Of each of them, and of that label."""
    rows = [("a", "One.", 1, 0), ("b", "Two.", 1, 0), ("c", "Three.", 0, 1)]
    add_cohort(workspace, tmp_path, rows)
    said = {
        "label": "pleural_effusion",
        "judgement": Judgement.REFERENCE_WRONG,
        "correct_value": Value.PRESENT,
    }
    submit_verdict(store, verdict(**(said | changes)), MADE_ON)
    (kept,) = read_kept(store, workspace, "dev")
    by = "dev:ref1" if state == "addressed" else ""
    assert (kept.state.value, kept.addressed_by) == (state, by)
    assert read_kept(store, None, "dev")[0].state is VerdictState.OPEN


@pytest.mark.parametrize("part", [1, 2, 3, 5, 6])
def test_verdicts_are_read_in_parts_and_none_is_left_out(store, monkeypatch, part):
    """However many one question takes; oldest first, whatever their ids."""
    monkeypatch.setattr(status, "_LOOKUP", part)
    now, verdicts = clock(), Verdicts(store)
    for number in (0, 5, 6, 11):
        known = len(verdicts.read("dev"))
        for case in range(known, number):
            submit_verdict(store, verdict(f"c{case}"), MADE_ON, now)
        found = [one.verdict.case_ids for one in verdicts.read("dev")]
        assert found == [(f"c{case}",) for case in range(number)]


def test_a_withdrawal_of_what_is_not_there_hinders_nothing(store):
    """As after a restore of half of the store."""
    key = submit_verdict(store, verdict(), MADE_ON)
    with store.writing() as connection:
        connection.execute(
            "INSERT INTO withdrawals VALUES ('dev:gone', '2026-01-05', 'Ann', 'slip')"
        )
    (kept,) = read_kept(store, None, "dev")
    assert (kept.id, kept.state) == (key, VerdictState.OPEN)


def test_where_there_is_no_reference_none_answers_a_verdict(workspace, store, tmp_path):
    """The cohort waits for its readers."""
    import_texts(workspace, tmp_path, {"a": "Clear lungs."}, name="dev")
    wrong = verdict(judgement=Judgement.REFERENCE_WRONG, correct_value=Value.ABSENT)
    submit_verdict(store, wrong, MADE_ON)
    assert [one.state for one in read_kept(store, workspace, "dev")] == [
        VerdictState.OPEN
    ]
