"""What is recorded of judges must rest on what was recorded before it."""

from dataclasses import replace

import pytest

from loop.core.check_findings import Finding, broken, note, ok, warning
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.release.audit.judge_evaluations import check_judge_evaluations
from tests.release.audit.scenes import entries_of

COMMIT = ("draft_committed", "mine@v1", {"digest": "p1"})
PROTOCOL = ("protocol_set", "labels/protocol.yaml", {"digest": "o1"})
RATINGS = ("ratings_added", "rp:ratings1", {"cohort": "rp", "digest": "r1"})
FIT = {"prompt_digest": "p1", "protocol": "o1", "cohort": "rp", "ratings_digest": "r1"}
JUDGED = ("judge_evaluated", "mine@v1", FIT)
MARKED = ("discrimination_measured", "mine@v1", FIT)
AWAY = note(
    "evaluations",
    "no run of 1 evaluations of judges is on this machine: not recounted",
)


def wrong(seq, what, subject="mine@v1"):
    """Return what is said of an entry that contradicts another."""
    return broken(
        "evaluations",
        f"entry {seq} holds a judge against raters: {what}",
        where=f"entry {seq}, {subject}",
        implies="The agreement is not of what its name says.",
        todo="Run and evaluate again, and compare the ledger with a backup.",
        seq=seq,
    )


def odd(seq, what, subject="mine@v1"):
    """Return what is said of an entry that rests on nothing recorded."""
    return warning(
        "evaluations",
        f"entry {seq} holds a judge against raters: {what}",
        where=f"entry {seq}, {subject}",
        implies="What it rests on cannot be shown from this ledger.",
        todo="Evaluate again, or compare the ledger with a backup.",
        seq=seq,
    )


def fits(what):
    """Return what is said where nothing contradicts."""
    return ok("evaluations", f"{what} fit what was recorded before them")


def changed(entry, **payload):
    """Return an entry of `entries_of` with another payload."""
    action, subject, before = entry
    return (action, subject, before | payload)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([COMMIT, PROTOCOL, RATINGS], []),
        (
            [COMMIT, PROTOCOL, RATINGS, JUDGED],
            [fits("1 evaluations of judges"), AWAY],
        ),
        ([COMMIT, PROTOCOL, MARKED], [fits("1 verdicts on marked pairs")]),
        (
            [COMMIT, PROTOCOL, RATINGS, MARKED, JUDGED, MARKED],
            [fits("1 evaluations of judges and 2 verdicts on marked pairs"), AWAY],
        ),
        # Another digest than that of the commit; of a draft nothing is committed.
        (
            [COMMIT, PROTOCOL, RATINGS, changed(JUDGED, prompt_digest="p2")],
            [wrong(4, "mine@v1 with another digest than its commit"), AWAY],
        ),
        (
            [PROTOCOL, RATINGS, JUDGED],
            [odd(3, "mine@v1, which no entry before it committed"), AWAY],
        ),
        (
            [PROTOCOL, RATINGS, ("judge_evaluated", "mine@draft", FIT)],
            [fits("1 evaluations of judges"), AWAY],
        ),
        # What comes after it was not there.
        (
            [COMMIT, RATINGS, JUDGED, PROTOCOL],
            [odd(3, "under a protocol that was not registered before"), AWAY],
        ),
        (
            [COMMIT, PROTOCOL, JUDGED, RATINGS],
            [odd(3, "against ratings that were not recorded before"), AWAY],
        ),
        (
            [COMMIT, PROTOCOL, RATINGS, changed(JUDGED, cohort="other")],
            [odd(4, "against ratings that were not recorded before"), AWAY],
        ),
        (
            [COMMIT, PROTOCOL, RATINGS, changed(JUDGED, ratings_digest="r2")],
            [wrong(4, "against other ratings than the recorded ones"), AWAY],
        ),
        # Ratings that were added later do not forget the earlier ones.
        (
            [COMMIT, PROTOCOL, RATINGS, changed(RATINGS, digest="r2"), JUDGED],
            [fits("1 evaluations of judges"), AWAY],
        ),
        # A verdict on marked pairs needs no ratings, but a prompt and a protocol.
        (
            [changed(MARKED, prompt_digest="p1")],
            [
                odd(1, "mine@v1, which no entry before it committed"),
                odd(1, "under a protocol that was not registered before"),
            ],
        ),
        # A retired holdout lies open: its files have other digests from then on.
        (
            [
                COMMIT,
                PROTOCOL,
                ("holdout_retired", "rp", {"digests": {"a": "r0", "b": "r1"}}),
                JUDGED,
            ],
            [fits("1 evaluations of judges"), AWAY],
        ),
        (
            [COMMIT, PROTOCOL, ("holdout_retired", "rp", {"digests": "r1"}), JUDGED],
            [odd(4, "against ratings that were not recorded before"), AWAY],
        ),
        (
            [
                COMMIT,
                PROTOCOL,
                RATINGS,
                ("holdout_retired", "rp", {"digests": {"a": "r9"}}),
                JUDGED,
                changed(JUDGED, ratings_digest="r9"),
            ],
            [
                fits("2 evaluations of judges"),
                replace(
                    AWAY,
                    what="no run of 2 evalu"
                    "ations of judges is on this machine: not recounted",
                ),
            ],
        ),
    ],
)
def test_an_evaluation_fits_what_was_recorded_before_it(tmp_path, told, expected):
    """Its prompt, its protocol, and what raters said, each by its digest."""
    workspace = WorkspacePaths(tmp_path)
    assert check_judge_evaluations(workspace, entries_of(*told)) == expected


def test_one_that_does_not_fit_hides_no_other(tmp_path):
    """Every entry is looked at, and then nothing is said to fit."""
    bad = changed(JUDGED, prompt_digest="p2", protocol="o2", ratings_digest="r2")
    told = entries_of(COMMIT, PROTOCOL, RATINGS, bad, JUDGED, bad)
    found = check_judge_evaluations(WorkspacePaths(tmp_path), told)
    assert [one.seq for one in found] == [4, 4, 4, 6, 6, 6, 0]
    assert found[:3] == [
        wrong(4, "mine@v1 with another digest than its commit"),
        odd(4, "under a protocol that was not registered before"),
        wrong(4, "against other ratings than the recorded ones"),
    ]


@pytest.fixture(scope="module")
def judged(judge_release):
    """Return a workspace with a judge's release, and the entries of its ledger."""
    ready, _ = judge_release
    return ready.workspace, read_ledger(ready.workspace.ledger)


def changed_dev(entries, **payload):
    """Return entries with another payload in the first evaluation of a judge.

    What is None there is left out.
    """
    made = []
    for one in entries:
        if one.action == "judge_evaluated" and payload:
            new = {**one.payload, **payload}
            kept = {name: value for name, value in new.items() if value is not None}
            one, payload = replace(one, payload=kept), {}
        made.append(one)
    return tuple(made)


def recounted(number, of=2, severity=ok):
    """Return how many evaluations are said to give their rows."""
    away = "" if number == of else "; the others are sealed, or not here"
    return severity(
        "evaluations",
        f"{number} of {of} evaluations of judges give the recorded rows{away}",
    )


ANSWERS = ok("evaluations", "2 of 2 evaluations: answers as scored")


def told_of(judged, **payload):
    """Return what is found with another payload, without what is said of entries."""
    workspace, entries = judged
    found = check_judge_evaluations(workspace, changed_dev(entries, **payload))
    return [one for one in found if "against raters" not in one.what]


def test_rows_are_made_again_where_ratings_lie_open(judged):
    """Those of a holdout are sealed, which is said and no fault."""
    assert told_of(judged) == [fits("2 evaluations of judges"), ANSWERS, recounted(1)]


def test_other_rows_than_recorded_are_found(judged):
    """With the run and the entry."""
    workspace, entries = judged
    first = next(one for one in entries if one.action == "judge_evaluated")
    found = told_of(judged, rows_digest="f" * 64)
    assert found == [
        fits("2 evaluations of judges"),
        ANSWERS,
        broken(
            "evaluations",
            f"run {first.payload['run']} gives other rows than entry {first.seq} "
            "recorded",
            where=f"entry {first.seq}",
            implies="Answers in the store, the ratings or the entry were changed.",
            todo="Run the judge again and evaluate it; stored answers are taken.",
            seq=first.seq,
        ),
        recounted(0, severity=note),
    ]
    assert workspace.store.is_file()


@pytest.mark.parametrize(
    "payload",
    [
        {"run": "20250101-000000-gone"},
        {"cohort_digest": "f" * 64},
        {"ratings": "rp"},
        {"ratings": "rp:ratings9"},
        {"score": "nothing"},
    ],
)
def test_what_cannot_be_recounted_is_no_fault(judged, payload):
    """A run that is gone, another cohort, and what nobody can read."""
    found = told_of(judged, **payload, answers_digest="")
    assert [one for one in found if one.severity == "broken"] == []
    assert found[-1] == recounted(0, severity=note)


def test_an_evaluation_without_rows_is_counted_apart(judged):
    """An earlier ranloop recorded none; the others are of those that have some."""
    early = note(
        "evaluations", "evaluations of judges of an earlier ranloop, without rows: 1"
    )
    found = told_of(judged, rows_digest=None)
    assert found == [
        fits("2 evaluations of judges"),
        ANSWERS,
        recounted(0, of=1, severity=note),
        early,
    ]
    workspace, entries = judged
    alone = tuple(
        replace(one, payload={**one.payload, "rows_digest": ""}) for one in entries
    )
    found = check_judge_evaluations(workspace, alone)
    assert found[2:] == [replace(early, what=early.what[:-1] + "2")]


def test_answers_are_held_against_every_run_of_an_evaluation(judged):
    """Those of all draws, where there are several; the run itself without a list."""
    _, entries = judged
    (first, second) = (one for one in entries if one.action == "judge_evaluated")
    both = [first.payload["run"], second.payload["run"]]

    def edited(**payload):
        found = told_of(judged, **payload)
        return [one.what for one in found if isinstance(one, Finding) and one.seq]

    said = "in the store are not those that entry"
    for runs in (None, [], "no list"):
        assert edited(runs=runs) == []
        assert edited(runs=runs, answers_digest="f" * 64) == [
            f"the answers of run {both[0]} {said} {first.seq} scored"
        ]
        assert edited(runs=runs, answers_digest="") == []
    assert edited(runs=both) == [
        f"the answers of run {', '.join(both)} {said} {first.seq} scored"
    ]
