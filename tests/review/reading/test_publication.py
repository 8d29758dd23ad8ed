"""Complete readings become votes; what is left out or lost is counted."""

import pytest

from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.core.records import Mark, Value
from loop.labels.reference import list_references, read_reference
from loop.labels.votes import import_votes, read_cohort_votes, votes_path
from loop.review.reading.answers import answer
from loop.review.reading.publication import pseudonym_of
from loop.run.store import Verdict
from tests.review.reading.conftest import EDITOR


def test_complete_cases_make_votes_and_a_reference(workspace, assignment, say, publish):
    """The majority of three, with "No Finding" derived for each reader."""
    say("Dr. A", "ppaa")
    say("Dr. B", "paaa")
    say("Dr. C", "puua")
    published = publish()
    assert [(r.reader, r.complete) for r in published.readers] == [
        ("Dr. A", 4), ("Dr. B", 4), ("Dr. C", 4),
    ]  # fmt: skip
    reference = read_reference(workspace, "read")
    marks = [reference.mark(case, "edema") for case in assignment.cohort.case_ids]
    assert marks == [Mark.PRESENT, Mark.NO_MAJORITY, Mark.ABSENT, Mark.ABSENT]
    assert reference.mark("c1", "no_finding") is Mark.ABSENT
    assert reference.mark("c4", "no_finding") is Mark.PRESENT
    votes = read_cohort_votes(workspace, assignment.cohort, assignment.taxonomy)
    assert votes.count == 3 * 4 * 21
    assert published.votes.not_voted == ()


def test_a_case_that_is_begun_is_left_out_and_counted(
    workspace, store, assignment, say, publish
):
    """One open label: nothing of that case is published, not even what was said."""
    say("Dr. A", "pp")
    answer(store, assignment, "Dr. A", "c3", {"edema": Value.PRESENT})
    (one,) = publish().readers
    assert (one.complete, one.begun) == (2, 1)
    votes = read_cohort_votes(workspace, assignment.cohort, assignment.taxonomy)
    assert votes.count == 2 * 21
    assert read_reference(workspace, "read").mark("c3", "edema") is Mark.MISSING


def test_only_the_readers_named_are_published(workspace, assignment, say, publish):
    """And they can be added later."""
    say("Dr. A", "pppp")
    say("Dr. B", "pppp")
    assert publish("Dr. B").votes.readers == ("Dr. B",)
    report = publish("Dr. A").votes
    assert (report.readers, report.added) == (("Dr. A", "Dr. B"), ("Dr. A",))


@pytest.mark.parametrize("readers", [(), ("Dr. A",), ("Dr. A", "Dr. B")])
def test_nothing_complete_is_nothing_to_publish(
    workspace, store, assignment, publish, readers
):
    """The message says what makes a case complete."""
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT})
    with pytest.raises(DataError, match=r"no complete case.*every label has a value"):
        publish(*readers)
    assert list_references(workspace, "read") == ()


def test_corrections_replace_the_votes_of_that_reader(
    workspace, store, assignment, say, publish
):
    """Published again without a change nothing happens; with one, a new version."""
    say("Dr. A", "pppp")
    say("Dr. B", "pppp")
    assert publish().votes.reference == 1
    assert publish().votes.reference == 1
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.ABSENT})
    report = publish("Dr. A").votes
    assert report.reference == 2
    assert [(r.reader, r.lost) for r in report.replaced] == [("Dr. A", 0)]
    assert read_reference(workspace, "read").mark("c1", "edema") is Mark.NO_MAJORITY


def test_votes_are_not_lost_without_a_word(workspace, store, assignment, say, publish):
    """A case taken back would lose its votes: refused, then allowed and counted."""
    say("Dr. A", "pppp")
    publish()
    answer(store, assignment, "Dr. A", "c1", {"edema": None})
    before = votes_path(workspace, "read").read_bytes()
    with pytest.raises(DataError, match=r"lost: 21 of 'Dr. A'.*--replace"):
        publish()
    assert votes_path(workspace, "read").read_bytes() == before
    assert publish(replace=True).votes.replaced[0].lost == 21


def test_votes_that_were_edited_stop_a_publication(workspace, say, publish):
    """Replacing one reader must not throw the others away with them."""
    say("Dr. A", "pppp")
    say("Dr. B", "pppp")
    publish()
    path = votes_path(workspace, "read")
    path.write_text(path.read_text().replace("present", "absent", 1))
    with pytest.raises(DataError, match="was recorded with"):
        publish("Dr. A", replace=True)


def test_readers_from_a_file_keep_their_votes(
    workspace, assignment, say, publish, tmp_path
):
    """Published readings are added to imported votes."""
    path = tmp_path / "votes.csv"
    path.write_text("reader,case_id,label,value\nDr. Z,c1,edema,absent\n")
    import_votes(
        workspace,
        assignment.cohort,
        path,
        assignment.taxonomy,
        need=None,
        actor=EDITOR,
    )
    say("Dr. A", "pppp")
    assert publish().votes.readers == ("Dr. A", "Dr. Z")


def test_who_was_not_blind_stands_in_the_ledger(
    workspace, store, assignment, say, publish
):
    """Also after another reader is published, and not for who was blind."""
    say("Dr. A", "pppp", minute=5)
    say("Dr. B", "pppp", minute=5)
    verdict = Verdict("x", "2026-01-05T09:01:00Z", "Dr. A", {"cohort": "read"})
    store.add_verdicts([verdict])
    published = publish()
    assert [r.blind for r in published.readers] == [False, True]
    assert published.votes.not_blind == ("Dr. A",)
    assert read_ledger(workspace.ledger)[-1].payload["not_blind"] == ["Dr. A"]
    say("Dr. B", "aaaa", minute=6)
    assert publish("Dr. B").votes.not_blind == ("Dr. A",)
    assert read_ledger(workspace.ledger)[-1].payload["not_blind"] == ["Dr. A"]


def test_pseudonyms_keep_names_out_of_votes_and_ledger(workspace, store, say, publish):
    """The same pseudonym every time; nobody votes twice under two names."""
    say("Dr. A", "pppp", minute=5)
    verdict = Verdict("x", "2026-01-05T09:01:00Z", "Dr. A", {"cohort": "read"})
    store.add_verdicts([verdict])
    (one,) = publish(pseudonymous=True).readers
    assert one.published_as == pseudonym_of(workspace, "Dr. A")
    assert one.published_as.startswith("reader-")
    assert publish(pseudonymous=True).votes.readers == (one.published_as,)
    assert b"Dr. A" not in votes_path(workspace, "read").read_bytes()
    assert b"Dr. A" not in workspace.ledger.read_bytes()
    with pytest.raises(DataError, match=r"would vote twice.*--pseudonyms"):
        publish()


def test_a_published_name_cannot_become_a_pseudonym(say, publish):
    """The other way round."""
    say("Dr. A", "pppp")
    publish()
    with pytest.raises(DataError, match=r"would vote twice.*--pseudonyms"):
        publish(pseudonymous=True)


def test_another_need_is_passed_on(workspace, say, publish):
    """All three instead of two."""
    for reader, edema in (("A", "pppp"), ("B", "pppp"), ("C", "aaaa")):
        say(reader, edema)
    assert publish(need=3).votes.need == 3
    assert read_reference(workspace, "read").mark("c1", "edema") is Mark.NO_MAJORITY
    with pytest.raises(DataError, match="Use 2 to 3"):
        publish(need=1)
