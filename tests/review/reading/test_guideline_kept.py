"""Which guideline was read is kept with plans, answers and votes, and told apart."""

from loop.core.ledger import Actor, read_ledger
from loop.core.records import Value
from loop.labels.taxonomy import read_taxonomy
from loop.labels.votes import import_votes
from loop.review.guideline import build_guideline
from loop.review.reading.answers import (
    UNKNOWN,
    answer,
    complete_case,
    defer_case,
    read_guidelines,
)
from loop.review.reading.assignment import (
    PlanRequest,
    assign_cases,
    clear_plans,
    plan_guideline,
    pseudonym_of,
    read_assignment,
    read_plans,
)
from loop.review.reading.publication import preview_publication, publish_readings
from loop.review.reading.reader_progress import (
    find_way,
    measure_progress,
    read_standing,
)
from tests.review.reading.conftest import CASES, EDITOR, READ_TWICE

NEW = "volume loss by itself"


def edit(workspace):
    """Change a definition, as somebody may in the middle of a reading."""
    path = workspace.labels / "taxonomy.yaml"
    text = path.read_text(encoding="utf-8")
    assert "volume loss alone" in text
    path.write_text(text.replace("volume loss alone", NEW), encoding="utf-8")
    return read_assignment(workspace, "read")


def kept(store):
    """Return the guideline of every row of readings, oldest first."""
    rows = store.read("SELECT guideline FROM readings ORDER BY number")
    return [row[0] for row in rows]


def test_it_is_known_by_what_the_guideline_shows(workspace, assignment):
    """The digits on the page are those in store and ledger."""
    taxonomy = read_taxonomy(workspace.labels)
    assert taxonomy.digest.startswith(assignment.guideline)
    (source,) = build_guideline(taxonomy).sources
    assert source.endswith(f"digest {assignment.guideline}")


def test_every_answer_is_kept_with_the_guideline(workspace, store, assignment):
    """However it was given; one taken back or put off as well."""
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT})
    defer_case(store, assignment, "Dr. A", "c1")
    later = edit(workspace)
    assert later.guideline != assignment.guideline
    answer(store, later, "Dr. A", "c1", {"edema": None})
    complete_case(store, later, "Dr. A", "c1")
    assert set(kept(store)[:2]) == {assignment.guideline}
    assert set(kept(store)[2:]) == {later.guideline}
    assert len(kept(store)) == 2 + 1 + 20


def test_the_same_answer_by_another_guideline_is_kept_anew(
    workspace, store, assignment
):
    """Whoever looks again and says the same has read the new definition."""
    for _ in range(2):
        answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT})
    assert len(kept(store)) == 1
    later = edit(workspace)
    assert read_standing(store, later, "Dr. A").other_guideline == {"c1"}
    answer(store, later, "Dr. A", "c1", {"edema": Value.PRESENT})
    answer(store, later, "Dr. A", "c1", {"fracture": None})
    assert kept(store) == [assignment.guideline, later.guideline]
    assert read_standing(store, later, "Dr. A").other_guideline == frozenset()


def test_answers_by_another_guideline_are_counted(workspace, store, assignment, say):
    """For the reader in cases, for whoever looks on in answers; all still count."""
    say("Dr. A", "pp")
    assert find_way(store, assignment, "Dr. A").other_guideline == 0
    later = edit(workspace)
    way = find_way(store, later, "Dr. A")
    assert (way.complete, way.other_guideline) == (2, 2)
    assert find_way(store, later, "Dr. B").other_guideline == 0
    (one,) = measure_progress(store, later).readers
    assert (one.complete, one.answers, one.other_guideline) == (2, 40, 40)
    answer(store, later, "Dr. A", "c1", {"edema": Value.ABSENT})
    (one,) = measure_progress(store, later).readers
    assert (one.answers, one.other_guideline) == (40, 39)
    (one,) = measure_progress(store, assignment).readers
    assert one.other_guideline == 1, "the taxonomy was put back"


def test_a_plan_is_kept_with_the_guideline(workspace, store, assignment):
    """A taxonomy edited after cases were given can be told to the reader."""
    wanted = PlanRequest(readers=("Dr. A",), cases=2)
    (plan,) = assign_cases(store, assignment, wanted, EDITOR)
    later = edit(workspace)
    assert plan.guideline == assignment.guideline != later.guideline
    assert read_plans(store, later)["Dr. A"].guideline == assignment.guideline
    assert plan_guideline(store, later, "Dr. A") == assignment.guideline
    assert plan_guideline(store, later, "Dr. B") is None
    assign_cases(store, later, wanted, EDITOR)
    assert plan_guideline(store, later, "Dr. A") == later.guideline
    clear_plans(store, later, ["Dr. A"], EDITOR)
    assert plan_guideline(store, later, "Dr. A") is None


def test_rows_from_before_are_unknown_and_not_said_to_be_other(
    workspace, store, assignment, say
):
    """An upgrade invents no past."""
    say("Dr. A", "p")
    assign_cases(store, assignment, PlanRequest(readers=("Dr. A",)), EDITOR)
    with store.writing() as connection:
        connection.execute("UPDATE readings SET guideline = NULL")
        connection.execute("UPDATE reading_plans SET guideline = NULL")
    assert find_way(store, assignment, "Dr. A").other_guideline == 0
    assert measure_progress(store, assignment).readers[0].other_guideline == 0
    assert plan_guideline(store, assignment, "Dr. A") is None
    assert read_guidelines(store, assignment, "Dr. A", ["c1"]) == (UNKNOWN,)
    publish_readings(workspace, store, assignment, READ_TWICE, EDITOR)
    said = read_ledger(workspace.ledger)[-1].payload["guidelines"]
    assert said == {"Dr. A": [UNKNOWN]}


def test_the_ledger_names_the_guidelines_of_published_cases(
    workspace, store, assignment, say, tmp_path
):
    """Of each reader, also after others are published; begun cases do not count."""
    say("Dr. A", "pp")
    later = edit(workspace)
    complete_case(store, later, "Dr. B", "c1")
    complete_case(store, later, "Dr. A", "c3")
    answer(store, assignment, "Dr. B", "c4", {"edema": Value.PRESENT})
    both = sorted([assignment.guideline, later.guideline])
    seen = preview_publication(workspace, store, later, READ_TWICE, EDITOR)
    assert [list(one.guidelines) for one in seen.readers] == [both, [later.guideline]]
    publish_readings(workspace, store, later, READ_TWICE, EDITOR)
    said = read_ledger(workspace.ledger)[-1].payload["guidelines"]
    assert said == {"Dr. A": both, "Dr. B": [later.guideline]}
    path = tmp_path / "votes.csv"
    rows = [f"Dr. Z,{case},edema,absent" for case in CASES]
    path.write_text("\n".join(["reader,case_id,label,value", *rows]) + "\n")
    import_votes(workspace, later.cohort, path, later.taxonomy, need=None, actor=EDITOR)
    said = read_ledger(workspace.ledger)[-1].payload["guidelines"]
    assert said == {"Dr. A": both, "Dr. B": [later.guideline]}, "nothing of Dr. Z"


def test_a_publication_that_was_looked_at_names_the_same_guidelines(
    workspace, store, assignment, say
):
    """What the ledger will say is part of what is confirmed."""
    say("Dr. A", "p")
    seen = preview_publication(workspace, store, assignment, READ_TWICE, EDITOR)
    later = edit(workspace)
    answer(store, later, "Dr. A", "c1", {"edema": Value.PRESENT})
    again = preview_publication(workspace, store, later, READ_TWICE, EDITOR)
    assert again.votes.marks == seen.votes.marks
    assert again.votes.digest != seen.votes.digest


def test_pseudonyms_name_no_reader_there_either(workspace, store, assignment, say):
    """The ledger is shown to others."""
    say("Dr. A", "p")
    wanted = READ_TWICE.__class__(reason="read", pseudonymous=True)
    publish_readings(workspace, store, assignment, wanted, EDITOR)
    said = read_ledger(workspace.ledger)[-1].payload["guidelines"]
    assert list(said) == [pseudonym_of(workspace, "Dr. A")]
    assert b"Dr. A" not in workspace.ledger.read_bytes()


def test_imported_votes_alone_say_nothing_of_a_guideline(
    workspace, assignment, tmp_path
):
    """Nobody knows what those readers were given: entries stay as they were."""
    path = tmp_path / "votes.csv"
    path.write_text("reader,case_id,label,value\nDr. Z,c1,edema,absent\n")
    import_votes(
        workspace,
        assignment.cohort,
        path,
        assignment.taxonomy,
        need=None,
        actor=Actor(name="Dr. E"),
    )
    assert "guidelines" not in read_ledger(workspace.ledger)[-1].payload
