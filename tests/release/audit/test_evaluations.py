"""Openings and scores must rest on what was recorded before them."""

import shutil

import pytest

from loop.core.check_findings import broken, note, ok, warning
from loop.core.digests import digest_bytes
from loop.core.paths import WorkspacePaths, bundled
from loop.evaluate.gates import GateVerdict
from loop.labels.taxonomy import taxonomy_digest
from loop.release.audit.evaluations import (
    _labels_added_since,
    check_evaluations,
    check_openings,
)
from tests.release.audit.scenes import entries_of

HELD = ("cohort_added", "held", {"role": "holdout"})


def opening(number, budget=2, name="held", **payload):
    """Return what is recorded of an opening."""
    told = {"cohort": name, "number": number, "budget": budget} | payload
    return ("holdout_opened", name, told)


def misused(seq, what, subject="held"):
    """Return what is said of an entry that breaks the promise of a holdout."""
    return broken(
        "openings",
        f"entry {seq} {what}",
        where=f"entry {seq}, {subject}",
        implies="A claim on this holdout may not rest on unseen labels, or an entry "
        "is gone.",
        todo="Make the claim on a new holdout, and say why.",
        seq=seq,
    )


def scoring(action, name="held"):
    """Return what is recorded of a score."""
    return (action, "tiny@v1", {"cohort": name})


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([("cohort_added", "dev", {"role": "dev"})], []),
        ([HELD], [ok("openings", "held: never opened")]),
        (
            [HELD, opening(1), scoring("evaluated")],
            [ok("openings", "held: opened 1 of 2 times")],
        ),
        # Exactly the budget is allowed, and no more.
        (
            [HELD, opening(1), opening(2)],
            [ok("openings", "held: opened 2 of 2 times")],
        ),
        (
            [HELD, opening(1), opening(2), opening(3)],
            [
                misused(4, "is opening 3 of held, and 2 are allowed"),
                note("openings", "held: opened 3 of 2 times"),
            ],
        ),
        (
            [HELD, opening(1), opening(1)],
            [
                misused(3, "says it is opening 1 of held; it is 2"),
                note("openings", "held: opened 2 of 2 times"),
            ],
        ),
        # An early entry says neither its number nor its budget.
        (
            [HELD, ("holdout_opened", "held", {"cohort": "held"})],
            [ok("openings", "held: opened 1 times")],
        ),
        (
            [HELD, opening(1, 3), opening("2", True)],
            [ok("openings", "held: opened 2 of 3 times")],
        ),
        # A retired holdout is one no more.
        (
            [HELD, ("holdout_retired", "held", {}), opening(1), scoring("evaluated")],
            [
                misused(3, "opens held, which was no holdout then"),
                note("openings", "held: opened 1 of 2 times"),
            ],
        ),
        (
            [opening(1, name="unknown")],
            [
                misused(1, "opens unknown, which was no holdout then", "unknown"),
                note("openings", "unknown: opened 1 of 2 times"),
            ],
        ),
        # Three things may be wrong with one opening.
        (
            [opening(2, 0)],
            [
                misused(1, "says it is opening 2 of held; it is 1"),
                misused(1, "is opening 1 of held, and 0 are allowed"),
                misused(1, "opens held, which was no holdout then"),
                note("openings", "held: opened 1 times"),
            ],
        ),
        (
            [
                HELD,
                ("cohort_added", "dev", {"role": "dev"}),
                scoring("evaluated", "dev"),
            ],
            [ok("openings", "held: never opened")],
        ),
        *(
            (
                [HELD, scoring(action), opening(1), scoring(action)],
                [
                    misused(
                        2, "scores holdout held, which was not opened before", "tiny@v1"
                    ),
                    note("openings", "held: opened 1 of 2 times"),
                ],
            )
            for action in ("evaluated", "gate_decided", "judge_evaluated")
        ),
        ([HELD, scoring("searched")], [ok("openings", "held: never opened")]),
    ],
)
def test_openings_are_counted_as_they_were_allowed(tmp_path, told, expected):
    """Number, budget and role are those of the time of the entry."""
    assert check_openings(WorkspacePaths(tmp_path), entries_of(*told)) == expected


def test_openings_of_other_cases_do_not_count(tmp_path):
    """Neither those of another cohort, nor those that come later."""
    other = ("cohort_added", "other", {"role": "holdout"})
    told = [
        HELD,
        other,
        opening(1, name="other", cohort_digest="b"),
        opening(1, cohort_digest="a"),
        opening(2, name="other", cohort_digest="b"),
    ]
    assert check_openings(WorkspacePaths(tmp_path), entries_of(*told)) == [
        ok("openings", "other: opened 2 of 2 times"),
        ok("openings", "held: opened 1 of 2 times"),
    ]


def test_results_are_held_against_the_files_that_keep_them(tmp_path):
    """Kept, changed, away: each is said, and none hides the next."""
    workspace = WorkspacePaths(tmp_path)
    folder = workspace.private / "openings"
    folder.mkdir(parents=True)
    (folder / "kept.json").write_bytes(b"kept")
    (folder / "changed.json").write_bytes(b"other")

    kept = digest_bytes(b"kept")

    def sealing(candidate, digest=kept):
        told = {"cohort": "held", "candidate": candidate, "result_digest": digest}
        return ("holdout_sealed", "held", told)

    told = [
        sealing("nothing", None),
        sealing("gone"),
        # A name cannot lead out of the folder.
        sealing("../elsewhere/kept"),
        sealing("changed"),
        sealing("kept"),
    ]
    found = check_openings(workspace, entries_of(*told))
    assert found == [
        note("openings", "held: the result in entry 2 is not on this machine"),
        ok("openings", "held: the result of an opening is as recorded"),
        misused(4, "recorded another result than changed.json holds"),
        ok("openings", "held: the result of an opening is as recorded"),
    ]


COMMIT = ("draft_committed", "tiny@v1", {"digest": "p1"})
PROTOCOL = ("protocol_set", "-", {"digest": "o1", "uncertain_answers": "wrong"})
REVISED = ("reference_revised", "-", {"cohort": "dev", "number": 1, "digest": "q1"})
FIT = {
    "run": "r",
    "prompt_digest": "p1",
    "protocol_digest": "o1",
    "cohort": "dev",
    "reference": 1,
    "reference_digest": "q1",
    "signature": "acc|unc:wrong|n:4",
}
SCORED = ("evaluated", "tiny@v1", FIT)
GATED = ("gate_decided", "tiny@v1", FIT)


def changed(entry, **payload):
    """Return an entry with another payload."""
    action, subject, before = entry
    return (action, subject, before | payload)


def away(number):
    """Return what is said where no run is here."""
    what = f"none of {number} scored runs is on this machine: not recounted"
    return note("evaluations", what)


def fits(number):
    """Return what is said where nothing contradicts."""
    what = f"{number} entries fit what was recorded before them"
    return ok("evaluations", what)


def wrong(seq, what, subject="tiny@v1"):
    """Return what is said of an entry that contradicts another."""
    return broken(
        "evaluations",
        f"entry {seq} scores {what}",
        where=f"entry {seq}, {subject}",
        implies="The score is not of what its name says.",
        todo="Run and evaluate again, and compare the ledger with a backup.",
        seq=seq,
    )


def odd(seq, what, subject="tiny@v1"):
    """Return what is said of an entry that rests on nothing recorded."""
    return warning(
        "evaluations",
        f"entry {seq} scores {what}",
        where=f"entry {seq}, {subject}",
        implies="What it rests on cannot be shown from this ledger.",
        todo="Evaluate again, or compare the ledger with a backup.",
        seq=seq,
    )


POLICY = "by another policy for uncertain answers than registered"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([COMMIT, PROTOCOL, REVISED], []),
        # A gate's entry after that of its evaluation is of the same run.
        ([COMMIT, PROTOCOL, REVISED, SCORED, GATED], [fits(2), away(1)]),
        (
            [COMMIT, PROTOCOL, REVISED, SCORED, changed(SCORED, run="s")],
            [fits(2), away(2)],
        ),
        (
            [COMMIT, PROTOCOL, REVISED, changed(SCORED, prompt_digest="p2")],
            [wrong(4, "tiny@v1 with another digest than its commit"), away(1)],
        ),
        (
            [PROTOCOL, REVISED, SCORED],
            [odd(3, "tiny@v1, which no entry before it committed"), away(1)],
        ),
        ([PROTOCOL, REVISED, ("evaluated", "tiny@draft", FIT)], [fits(1), away(1)]),
        (
            [COMMIT, REVISED, SCORED, PROTOCOL],
            [odd(3, "under a protocol that was not registered before"), away(1)],
        ),
        (
            [COMMIT, PROTOCOL, SCORED, REVISED],
            [odd(3, "against a reference that was not recorded before"), away(1)],
        ),
        (
            [COMMIT, PROTOCOL, REVISED, changed(SCORED, reference=2)],
            [odd(4, "against a reference that was not recorded before"), away(1)],
        ),
        (
            [COMMIT, PROTOCOL, REVISED, changed(SCORED, cohort="other")],
            [odd(4, "against a reference that was not recorded before"), away(1)],
        ),
        (
            [COMMIT, PROTOCOL, REVISED, changed(SCORED, reference_digest="q2")],
            [wrong(4, "against another reference than the recorded one"), away(1)],
        ),
        # Recorded again, with other marks: both were the reference once.
        (
            [COMMIT, PROTOCOL, REVISED, changed(REVISED, digest="q2"), SCORED],
            [fits(1), away(1)],
        ),
        *(
            (
                [
                    COMMIT,
                    changed(PROTOCOL, uncertain_answers=policy),
                    REVISED,
                    changed(SCORED, signature=f"acc|{sign}"),
                ],
                [fits(1) if held else wrong(4, POLICY), away(1)],
            )
            for policy, sign, held in (
                ("wrong", "unc:wrong", True),
                ("absent", "unc:neg", True),
                ("present", "unc:pos", True),
                ("excluded", "unc:excl", True),
                ("absent", "unc:wrong", False),
                ("wrong", "unc:excl", False),
                ("unheard of", "unc:excl", True),
                ("absent", "", True),
                ("absent", "n:unc:wrong", True),
            )
        ),
        # An early protocol says nothing of uncertain answers: they were left out.
        (
            [
                COMMIT,
                ("protocol_set", "-", {"digest": "o1"}),
                REVISED,
                changed(SCORED, signature="unc:excl"),
                changed(SCORED, signature="unc:wrong"),
            ],
            [wrong(5, POLICY), away(1)],
        ),
    ],
)
def test_a_score_fits_what_was_recorded_before_it(tmp_path, told, expected):
    """Its prompt, its protocol and its reference, each by its digest."""
    workspace = WorkspacePaths(tmp_path)
    assert check_evaluations(workspace, entries_of(*told)) == expected


IMPORT = ("cohort_added", "dev", {"cohort_digest": "c", "not_comparable": "mass edema"})


def left_out(*labels, cohort="dev", signature="unc:wrong"):
    """Return a gate that judges `nodule`, and calls `labels` not comparable."""
    verdicts = dict.fromkeys(labels, GateVerdict.NOT_COMPARABLE.value) | {
        "nodule": "PASS"
    }
    return changed(GATED, cohort=cohort, labels=verdicts, signature=signature)


@pytest.mark.parametrize(
    ("gate", "extra"),
    [
        (left_out("mass", "edema"), ""),
        (left_out("mass"), ""),
        (left_out(), ""),
        (left_out("mass", "fracture", "device"), "device, fracture"),
        (left_out(signature="unc:wrong|without:mass,edema"), ""),
        (left_out(signature="without:mass,fracture|unc:wrong"), "fracture"),
        (changed(GATED, labels="none"), ""),
    ],
)
def test_a_gate_leaves_out_what_its_cohort_was_imported_without(tmp_path, gate, extra):
    """No label is left out of a claim that its cohort was imported to judge."""
    told = entries_of(COMMIT, PROTOCOL, REVISED, IMPORT, gate)
    found = check_evaluations(WorkspacePaths(tmp_path), told)
    said = f"without {extra}, which its cohort was imported to judge"
    assert found == [wrong(5, said) if extra else fits(1), away(1)]


def test_without_an_import_nothing_may_be_left_out(tmp_path):
    """Nobody recorded that its reference cannot judge anything."""
    told = entries_of(COMMIT, PROTOCOL, REVISED, left_out("mass"))
    said = "without mass, which its cohort was imported to judge"
    assert check_evaluations(WorkspacePaths(tmp_path), told)[0] == wrong(4, said)


def test_a_label_is_not_called_incomparable_after_gates_judged_it(tmp_path):
    """On the same cases, under whatever name; said once, by the first such import."""
    plain = ("cohort_added", "dev", {"cohort_digest": "c"})
    late = {"cohort_digest": "c", "not_comparable": "nodule mass edema"}
    gate = changed(GATED, labels={"nodule": "PASS", "mass": "FAIL"})
    told = entries_of(
        COMMIT,
        PROTOCOL,
        REVISED,
        plain,
        gate,
        ("cohort_added", "other", {"cohort_digest": "d", "not_comparable": "mass"}),
        ("cohort_added", "again", late),
        ("cohort_added", "dev", late),
    )
    found = check_evaluations(WorkspacePaths(tmp_path), told)
    assert found == [
        note(
            "evaluations",
            "entry 7 imports again, and says that its reference cannot judge mass, "
            "nodule, after gates had judged that on these cases: see what they said, "
            "and whether the reason holds",
            where="entry 7, again",
        ),
        away(1),
    ]


def test_labels_that_were_added_since_are_known_from_the_revisions(tmp_path):
    """Back from the taxonomy as it is, one step at a time; others lead nowhere."""
    workspace = WorkspacePaths(tmp_path)
    shutil.copytree(bundled() / "labels", workspace.labels)
    now = taxonomy_digest(workspace.labels)

    def revised(before, after, *labels):
        told = {"taxonomy_before": before, "taxonomy_digest": after}
        return ("taxonomy_revised", "-", told | {"added": dict.fromkeys(labels, "")})

    action, subject, payload = revised("a", "b", "one")
    told = entries_of(
        (action, subject, payload | {"added": ["odd"]}),
        revised("x", "y", "away"),
        revised("b", "c", "two", "three"),
        ("evaluated", "-", {"taxonomy_digest": now, "taxonomy_before": "z"}),
        revised("c", now, "four"),
    )
    assert _labels_added_since(workspace, told) == {
        "c": frozenset({"four"}),
        "b": frozenset({"two", "three", "four"}),
        "a": frozenset({"two", "three", "four"}),
    }
    # Taken back and revised again: what was added since the last time counts.
    again = (*told, *entries_of(revised(now, "c"), revised("c", now, "five")))
    assert _labels_added_since(workspace, again)["c"] == frozenset({"five"})
    (workspace.labels / "taxonomy.yaml").unlink()
    assert _labels_added_since(workspace, told) == {}
