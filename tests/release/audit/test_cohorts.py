"""Protocol, taxonomy, cues, cohorts and references are held against the ledger."""

import shutil

import pytest

from loop.core.check_findings import broken, note, ok, warning
from loop.core.digests import digest_text
from loop.core.paths import WorkspacePaths, bundled
from loop.engines.rules.cues import read_cues
from loop.labels.expert_ratings import expert_files
from loop.labels.importing.openi import crosswalk_digest
from loop.labels.taxonomy import taxonomy_digest
from loop.release.audit.cohorts import check_basis, check_cohorts, check_protocol
from tests.release.audit.scenes import entries_of

A, B, C = "a" * 64, "b" * 64, "c" * 64


@pytest.fixture
def place(tmp_path):
    """Return a workspace with nothing but the shipped labels."""
    made = WorkspacePaths(tmp_path)
    shutil.copytree(bundled() / "labels", made.labels)
    return made


def registered(*texts):
    """Return entries that register protocols, and one of something else."""
    told = [("protocol_set", "-", {"digest": digest_text(one)}) for one in texts]
    return entries_of(*told, ("draft_committed", "-", {"digest": digest_text("x")}))


def test_the_protocol_is_the_last_an_earlier_or_another(place):
    """Each is said in its own words, with the digest that is there."""

    def told(text, *known):
        if text is None:
            place.protocol.unlink()
        else:
            place.protocol.write_text(text)
        (found,) = check_protocol(place, registered(*known))
        return found

    digest = digest_text("two")[:12]
    assert told("two", "one", "two") == ok(
        "protocol", f"is the one registered last ({digest})"
    )
    assert told("two", "two", "one") == note(
        "protocol", f"is an earlier one that was registered ({digest})"
    )
    assert told("two") == note(
        "protocol", "was never registered: nothing was evaluated yet"
    )
    changed = {
        "where": str(place.protocol),
        "implies": "What was claimed and measured is under the registered one.",
        "todo": "Restore it, or evaluate: that registers it as it is now.",
    }
    assert told("x", "one", "two") == warning(
        "protocol", "was changed since it was registered", **changed
    )
    assert told(None, "one") == warning("protocol", "is gone", **changed)


def rest_on(check, path, number, kind="evaluations"):
    """Return what is said where all entries rest on what is there."""
    return ok(check, f"{path} is what {number} {kind} rest on")


TAXONOMY = "labels/taxonomy.yaml"


def evaluated(digest, **payload):
    """Return what is recorded of an evaluation on a taxonomy."""
    return ("evaluated", "tiny@v1", {"taxonomy_digest": digest, **payload})


def basis_changed(changed, of, seqs, became="was changed"):
    """Return what is said of a taxonomy that was changed since evaluations."""
    return warning(
        "taxonomy",
        f"{TAXONOMY} {became} since {changed} of {of} evaluations (entry {seqs})",
        where=TAXONOMY,
        implies="Their numbers are of the file as it was, not as it is now.",
        todo="Restore it from version control or a backup, or evaluate again.",
    )


def test_what_evaluations_rest_on_is_counted(place):
    """Those that do not say are counted apart; five are named, and how many more."""
    now = taxonomy_digest(place.labels)

    def told(*entries):
        return check_basis(place, entries_of(*entries))

    assert told() == []
    assert told(("gate_decided", "-", {"taxonomy_digest": A})) == []
    unsaid = note(
        "taxonomy",
        f"evaluations of an earlier ranloop that do not say on which {TAXONOMY} they "
        "rest: 2; whether it was changed since is not known",
    )
    early = ("evaluated", "tiny@v1", {})
    assert told(early, early) == [unsaid]
    assert told(early, evaluated(now), early) == [
        unsaid,
        rest_on("taxonomy", TAXONOMY, 1),
    ]
    assert told(evaluated(now), evaluated(A), evaluated(now)) == [
        basis_changed(1, 3, "2")
    ]
    five = "1, 2, 3, 4, 5"
    assert told(*[evaluated(A)] * 5) == [basis_changed(5, 5, five)]
    assert told(*[evaluated(A)] * 6) == [basis_changed(6, 6, f"{five} and 1 more")]
    (place.labels / "taxonomy.yaml").unlink()
    assert told(evaluated(now)) == [basis_changed(1, 1, "1", "is gone or unreadable")]


def revised(before, after, **payload):
    """Return what is recorded of a revision of the taxonomy."""
    told = {"taxonomy_before": before, "taxonomy_digest": after, **payload}
    return ("taxonomy_revised", TAXONOMY, told)


def test_a_revision_that_is_on_record_is_no_fault(place):
    """If all that evaluations rest on was revised away, and led to what is there."""
    now = taxonomy_digest(place.labels)

    def told(*entries):
        return check_basis(place, entries_of(*entries))

    said = note(
        "taxonomy",
        f"{TAXONOMY} was revised (entry 4) since 2 of 2 evaluations: their numbers "
        "are of the labels as they were",
        where=TAXONOMY,
        todo="Evaluate again what you claim.",
    )
    assert told(evaluated(A), revised(A, B), evaluated(B), revised(B, now)) == [said]
    # One of them is of a taxonomy that nobody revised.
    assert told(evaluated(C), revised(A, B), evaluated(B), revised(B, now)) == [
        basis_changed(2, 2, "1, 3")
    ]
    # The last revision did not lead to what is there.
    steps = [revised(C, A), revised(A, now), revised(now, B)]
    assert told(evaluated(A), *steps) == [
        basis_changed(1, 1, "1"),
        warning(
            "taxonomy",
            f"entry 4 revised {TAXONOMY}, and the file is as it was before: the "
            "command was stopped, or the file put back",
            where=TAXONOMY,
            todo="Give the draft to `ranloop discover --take` again.",
        ),
    ]
    (place.labels / "taxonomy.yaml").unlink()
    assert told(revised(now, B)) == []


def test_cues_and_crosswalks_are_of_those_that_used_them(place):
    """Of evaluations by rules, and of imports of the coded collection."""
    cues = {one.language: one.digest for one in read_cues(place.labels)}
    walk, path = crosswalk_digest(place.labels), "labels/crosswalks/openi_mesh.yaml"

    def told(*entries):
        found = check_basis(place, entries_of(*entries))
        return [one for one in found if one.check != "taxonomy"]

    rules = {"cues": cues, "signature": "acc|rules|n:3"}
    model = {"cues": {}, "signature": "acc|model|n:3"}
    coded = {"crosswalk_digest": walk, "format": "openi"}
    other = {"crosswalk_digest": A, "format": "csv"}
    assert told(
        ("evaluated", "-", rules),
        ("evaluated", "-", model),
        ("cohort_added", "x", coded),
        ("cohort_added", "y", other),
    ) == [
        rest_on("cues", "labels/cues", 1),
        rest_on("crosswalks", path, 1, "imports"),
    ]
    some = dict(list(cues.items())[1:])
    found = told(
        ("evaluated", "-", rules | {"cues": some}),
        ("cohort_added", "x", coded | {"crosswalk_digest": A}),
    )
    assert [(one.check, one.severity.value, one.what) for one in found] == [
        (
            "cues",
            "warning",
            "labels/cues was changed since 1 of 1 evaluations (entry 1)",
        ),
        ("crosswalks", "warning", f"{path} was changed since 1 of 1 imports (entry 2)"),
    ]
    shutil.rmtree(place.labels / "cues")
    (found,) = told(("evaluated", "-", rules))
    assert found.what == (
        "labels/cues is gone or unreadable since 1 of 1 evaluations (entry 1)"
    )


def test_cohorts_that_are_away_or_of_nobody_are_told(place):
    """A shipped history speaks of cohorts that do not ship."""
    for name in ("beta", "alpha"):
        (place.cohorts / name).mkdir(parents=True)
        (place.cohorts / name / "cohort.yaml").write_text("x")
    told = [("cohort_added", name, {}) for name in ("gone", "../up", "lost")]
    assert check_cohorts(place, entries_of(*told)) == [
        note("cohorts", "recorded, and not on this machine: gone, ../up, lost"),
        *(
            warning(
                "cohorts",
                f"{name} has no entry in the ledger",
                where=str(place.cohorts / name),
                implies="Nothing shows that its role and cases are those it was "
                "imported with; no command uses it.",
                todo="Import it again with --replace, or move the folder away.",
            )
            for name in ("alpha", "beta")
        ),
    ]


def test_a_cohort_that_is_not_as_recorded_is_broken(place):
    """What it says of itself is not believed, and its references are looked at."""
    folder = place.cohorts / "dev"
    (folder / "reference").mkdir(parents=True)
    for file in ("v1.csv", "v3.csv", "v2.csv", "notes.txt"):
        (folder / "reference" / file).write_text(file)
    (folder / "cohort.yaml").write_text("[")

    def revision(number, digest):
        told = {"cohort": "dev", "number": number, "digest": digest}
        return ("reference_revised", f"dev:ref{number}", told)

    found = check_cohorts(
        place,
        entries_of(
            ("cohort_added", "dev", {"role": "dev"}),
            revision(1, digest_text("v1.csv")),
            revision(2, A),
            revision(4, A),
            revision("5", A),
        ),
    )
    fault = {
        "where": "labels/cohorts/dev",
        "implies": "Numbers measured on it cannot be reproduced from what is there.",
        "todo": "Restore the file from version control or a backup.",
    }
    assert (found[0].check, found[0].severity, found[0].where) == (
        "cohorts",
        "broken",
        "labels/cohorts/dev",
    )
    assert found[1:] == [
        ok("references", "dev:ref1: as recorded"),
        broken("references", "dev:ref2: edited after it was recorded", **fault),
        broken("references", "dev:ref4: recorded, and gone", **fault),
        broken("references", "dev: reference v3.csv is not in the ledger", **fault),
    ]


def test_votes_and_ratings_are_held_against_the_ledger_too(place):
    """Words of findings are private: where they are not here, nothing is said."""
    folder = place.cohorts / "dev"
    folder.mkdir(parents=True)
    (folder / "cohort.yaml").write_text("[")
    (folder / "votes.csv").write_text("votes")
    said = {"votes": digest_text("votes"), "cohort": "dev", "number": 1}
    rated = {"cohort": "dev", "number": 1, "ratings": A, "findings": B}
    rated["findings_file"] = "dev-0123456789ab.jsonl"
    entries = entries_of(
        ("cohort_added", "dev", {"role": "dev"}),
        ("reference_revised", "dev:ref1", {**said, "digest": A}),
        ("ratings_added", "dev:ratings1", rated),
    )

    def told():
        return [(one.severity.value, one.what) for one in check_cohorts(place, entries)]

    ratings, findings = expert_files(place, "dev", rated)
    gone = ("broken", f"dev:ratings1, {ratings.name}: recorded, and gone")
    assert told()[1:] == [
        ("broken", "dev:ref1: recorded, and gone"),
        ("ok", "dev: votes: as recorded"),
        gone,
    ]
    findings.parent.mkdir(parents=True)
    findings.write_text("words")
    (folder / "votes.csv").write_text("other votes")
    assert told()[2:] == [
        ("broken", "dev: votes: edited after it was recorded"),
        gone,
        ("broken", f"dev:ratings1, {findings.name}: edited after it was recorded"),
    ]


def test_labels_of_a_holdout_are_sealed_or_that_is_told(place):
    """In plain anyone may have read them; sealed they take the key."""
    folder = place.cohorts / "held"
    folder.mkdir(parents=True)
    (folder / "cohort.yaml").write_text("[")
    said = {"votes": A, "cohort": "held", "number": 1}
    entries = entries_of(
        ("cohort_added", "held", {"role": "holdout"}),
        ("reference_revised", "held:ref1", {**said, "digest": A}),
    )
    (folder / "votes.csv").write_text("votes")
    assert check_cohorts(place, entries)[2] == warning(
        "references",
        "held: votes: lies open, although held is a holdout",
        where="labels/cohorts/held",
        implies="Anyone may have read it; a claim on this cohort is worth less.",
        todo="Seal it with `ranloop cohort seal held --why ...`.",
    )
    (folder / "votes.csv").rename(folder / "votes.csv.sealed")
    found = check_cohorts(place, entries)[2]
    assert found.severity.value == "note"
    assert found.what.startswith("held: votes: sealed, and not checked: ")
