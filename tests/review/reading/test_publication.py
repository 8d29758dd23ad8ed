"""Complete readings become votes; what is left out or lost is counted."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import read_ledger
from loop.core.paths import bundled
from loop.core.records import Mark, Value
from loop.labels.ballots import (
    VOTE_CODES,
    read_cohort_votes,
    read_turnout,
    votes_path,
)
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.reference import correct_reference, list_references, read_reference
from loop.labels.votes import import_votes
from loop.review.reading.answers import answer, complete_case
from loop.review.reading.assignment import (
    PlanRequest,
    assign_cases,
    pseudonym_of,
    read_assignment,
    reading_order,
    voted_cases,
)
from loop.review.reading.publication import (
    PublicationDryRun,
    PublishedReader,
    dry_run_publication,
    preview_publication,
    publish_readings,
)
from loop.review.reading.reader_progress import measure_progress
from loop.run.store import StoredVerdict
from tests.review.reading.conftest import (
    EDITOR,
    READ_TWICE,
    WORDS,
    at,
    import_texts,
)


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
    verdict = StoredVerdict("x", "2026-01-05T09:01:00Z", "Dr. A", {"cohort": "read"})
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
    verdict = StoredVerdict("x", "2026-01-05T09:01:00Z", "Dr. A", {"cohort": "read"})
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
    assert publish(need=3).votes.rule.need == 3
    assert read_reference(workspace, "read").mark("c1", "edema") is Mark.NO_MAJORITY
    with pytest.raises(DataError, match="Use 1 to 3"):
        publish(need=4)
    assert publish().votes.rule.need == 3, "as recorded"
    assert publish(need=1).votes.rule.need == 1
    assert read_reference(workspace, "read").mark("c1", "edema") is Mark.PRESENT


@pytest.fixture
def demo(workspace, store):
    """Import the demo's cohort, which six simulated readers read; give who reads it."""
    files = bundled() / "labels" / "demo"
    options = ImportOptions(name="demo", role="dev")
    import_cohort(workspace, files / "dev.jsonl", options, actor=EDITOR)
    asked = read_assignment(workspace, "demo")
    votes = files / "votes_dev.csv"
    import_votes(workspace, asked.cohort, votes, asked.taxonomy, need=4, actor=EDITOR)
    return asked


@pytest.mark.slow
def test_two_new_readers_of_five_cases_judge_no_other(workspace, store, demo):
    """Of 210 cases the 200 that neither read keep every mark, and what is undecided."""
    before = read_reference(workspace, "demo")
    read = set()
    for reader in ("New A", "New B"):
        five = reading_order(demo.cohort, reader)[:5]
        read |= set(five)
        for case in five:
            complete_case(store, demo, reader, case)
    preview = preview_publication(workspace, store, demo, READ_TWICE, EDITOR)
    assert read_reference(workspace, "demo").number == before.number
    made = publish_readings(workspace, store, demo, READ_TWICE, EDITOR)
    assert made == preview
    assert len(made.votes.readers) == 8
    after = read_reference(workspace, "demo")
    unread = [n for n, case in enumerate(demo.cohort.case_ids) if case not in read]
    assert len(unread) >= 200
    assert (after.marks[unread] == before.marks[unread]).all()
    changed = int((after.marks != before.marks).sum())
    assert len(made.votes.changes.rows) == changed
    assert {row.case_id for row in made.votes.changes.rows} <= read
    for row in made.votes.changes.rows:
        assert before.mark(row.case_id, row.label) is row.was
        assert after.mark(row.case_id, row.label) is row.becomes


def test_a_publication_needs_a_reason_that_stands_in_the_ledger(
    workspace, say, publish
):
    """Every accuracy number moves with it."""
    say("Dr. A", "pppp")
    with pytest.raises(DataError, match="needs a reason"):
        publish(reason=" ")
    assert list_references(workspace, "read") == ()
    publish(reason="first reader done")
    assert read_ledger(workspace.ledger)[-1].reason == "first reader done"


@pytest.fixture
def preview(workspace, store, assignment):
    """Return a function that says what a publication would do."""

    def run(*readers, **options):
        wanted = replace(READ_TWICE, readers=readers, **options)
        return preview_publication(workspace, store, assignment, wanted, EDITOR)

    return run


def test_a_preview_is_what_is_published_and_writes_nothing(
    workspace, say, publish, preview
):
    """Decided marks that become undecided stand first."""
    say("A", "ppap")
    publish()
    say("B", "aaap")
    ledger = workspace.ledger.read_bytes()
    kept = votes_path(workspace, "read").read_bytes()
    seen = preview()
    assert workspace.ledger.read_bytes() == ledger
    assert votes_path(workspace, "read").read_bytes() == kept
    changes = seen.votes.changes
    # With the finding, "No Finding" of the case is undecided too.
    assert changes.undecided == len(changes.rows) == 4
    assert changes.shifts[0] == ("edema", Mark.PRESENT, Mark.NO_MAJORITY, 2)
    assert publish(expected=seen.votes.digest) == seen
    again = preview().votes
    assert (again.changes.rows, again.reference) == ((), seen.votes.reference)


@pytest.mark.parametrize("change", ["answer", "votes", "reference", "rule", "readers"])
def test_only_what_was_previewed_is_published(
    workspace, store, assignment, say, publish, preview, change
):
    """Whatever moved in between, the editor looks again."""
    for reader in "ABC":
        say(reader, "ppaa")
    publish("A")
    digest = preview("B").votes.digest
    assert preview("B").votes.digest == digest
    readers, need = ("B",), None
    if change == "answer":
        answer(store, assignment, "B", "c1", {"edema": Value.ABSENT})
    elif change == "votes":
        publish("C")
    elif change == "reference":
        right = {("c1", "edema"): Mark.UNCERTAIN}
        correct_reference(
            workspace, assignment.cohort, right, actor=EDITOR, reason="seen again"
        )
    elif change == "rule":
        need = 2
    else:
        readers = ("B", "C")
    before = workspace.ledger.read_bytes()
    with pytest.raises(ConflictError, match="nothing was published"):
        publish(*readers, need=need, expected=digest)
    assert workspace.ledger.read_bytes() == before


def test_two_editors_who_confirm_at_once_publish_once(workspace, say, publish, preview):
    """The second one is told to look again."""
    say("A", "pppp")
    digest = preview().votes.digest

    def confirm(_):
        try:
            return publish(expected=digest).votes.reference
        except ConflictError:
            return 0

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(confirm, range(2))) == [0, 1]
    assert list_references(workspace, "read") == (1,)


def test_a_preview_of_a_holdout_says_nothing_of_its_marks(workspace, store, tmp_path):
    """Neither which change, nor how many, nor whether the version would be the same."""
    import_texts(workspace, tmp_path, {"h1": "Held out."}, name="held", role="holdout")
    asked = read_assignment(workspace, "held")
    complete_case(store, asked, "A", "h1")
    seen = preview_publication(workspace, store, asked, READ_TWICE, EDITOR).votes
    assert (seen.sealed, seen.marks, seen.changes) == (True, {}, None)
    made = publish_readings(
        workspace, store, asked, replace(READ_TWICE, expected=seen.digest), EDITOR
    ).votes
    assert made.reference == 1
    assert (
        preview_publication(workspace, store, asked, READ_TWICE, EDITOR).votes.reference
        == 2
    )


@pytest.fixture
def foresee(workspace, store, assignment):
    """Return a function that says what publishing now would do."""

    def run(voted=True):
        cohort = read_cohort(workspace, "read")
        turnout = read_turnout(workspace, cohort)
        progress = measure_progress(store, assignment)
        return dry_run_publication(
            workspace, store, assignment, progress, turnout if voted else None
        )

    return run


@pytest.mark.parametrize("pseudonymous", [False, True])
def test_new_replaced_and_lost_cases_are_told_apart(
    store, assignment, say, publish, foresee, pseudonymous
):
    """A reader who took an answer back would lose the votes of that case."""
    say("Dr. A", "paa")
    say("Dr. B", "pa")
    publish(pseudonymous=pseudonymous)
    answer(store, assignment, "Dr. A", "c1", {"edema": None})
    answer(store, assignment, "Dr. A", "c2", {"edema": Value.PRESENT})
    say("Dr. A", "...p")
    first, second = foresee()
    assert (first.reader, first.complete, first.begun) == ("Dr. A", 3, 1)
    assert (first.new, first.again, first.lost) == (1, 2, 1)
    assert (second.new, second.again, second.lost) == (0, 2, 0)
    with pytest.raises(DataError, match="would be lost"):
        publish("Dr. A", pseudonymous=pseudonymous)
    publish("Dr. A", pseudonymous=pseudonymous, replace=True)
    first, _ = foresee()
    assert (first.new, first.again, first.lost) == (0, 3, 0)


def test_without_votes_everything_complete_is_new(say, publish, foresee):
    """The first publication replaces nothing."""
    say("Dr. A", "pa")
    publish()
    (one,) = foresee(voted=False)
    assert (one.new, one.again, one.lost) == (2, 0, 0)


def test_votes_of_others_are_nobody_elses(workspace, assignment, say, publish):
    """A reader who was not published has no voted case."""
    say("Dr. A", "pa")
    publish()
    turnout = read_turnout(workspace, assignment.cohort)
    assert voted_cases(workspace, turnout, "Dr. A") == {"c1", "c2"}
    assert voted_cases(workspace, turnout, "Dr. C") == frozenset()
    assert voted_cases(workspace, None, "Dr. A") == frozenset()


def test_what_became_of_each_reader_is_told(workspace, assignment, say, publish):
    """By name and once, under what name, and beside which guideline."""
    say("Dr. B", "pp", minute=5)
    say("Dr. A", "p", minute=5)
    common = {"blind": True, "guidelines": (assignment.guideline,), "begun": 0}
    found = publish("Dr. B", " Dr. A ", "Dr. B").readers
    assert found == (
        PublishedReader(reader="Dr. A", published_as="Dr. A", complete=1, **common),
        PublishedReader(reader="Dr. B", published_as="Dr. B", complete=2, **common),
    )


def test_everything_that_publishing_would_do_is_foreseen(
    store, assignment, say, publish, foresee
):
    """Of each reader, by name; a plan says what is given and shared."""
    say("Dr. B", "pa", minute=5)
    publish()
    say("Dr. B", "..p", minute=6)
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT}, at(7))
    plan = PlanRequest(readers=("Dr. B", "Dr. A"), among=("c1", "c3"))
    assign_cases(store, assignment, plan, EDITOR)
    assert foresee() == (
        PublicationDryRun(
            reader="Dr. A",
            complete=0,
            begun=1,
            given=2,
            given_complete=0,
            shared=2,
            blind=True,
            new=0,
            again=0,
            lost=0,
            last="2026-01-05T09:07:00Z",
        ),
        PublicationDryRun(
            reader="Dr. B",
            complete=3,
            begun=0,
            given=2,
            given_complete=2,
            shared=2,
            blind=True,
            new=1,
            again=2,
            lost=0,
            last="2026-01-05T09:06:00Z",
        ),
    )


def test_those_without_a_complete_case_are_named(say, publish):
    """Up to five, as they were written; those that have one are not."""
    say("Dr. A", "p")
    names = [f"Dr. {number}" for number in range(7)]
    with pytest.raises(DataError) as caught:
        publish("Dr. A", *names)
    told = ", ".join(repr(name) for name in names[:5])
    assert f"no complete case of {told} to publish" in str(caught.value)


def test_the_values_of_votes_are_those_that_were_read(
    workspace, assignment, say, publish
):
    """Each in its place: case, label and reader."""
    say("Dr. B", "pu")
    say("Dr. A", ".ap", label="fracture")
    publish()
    votes = read_cohort_votes(workspace, assignment.cohort, assignment.taxonomy)
    assert votes.readers == ("Dr. A", "Dr. B")
    assert votes.case_ids == ("c1", "c2", "c3", "c4")
    words = {code: word for word, value in WORDS.items()
             for code in (VOTE_CODES[value],)}  # fmt: skip

    def said(label):
        table = votes.values[:, votes.labels.index(label), :]
        return ["".join(words.get(code, ".") for code in row) for row in table.tolist()]

    assert said("edema") == [".p", "au", "a.", ".."]
    assert said("fracture") == [".a", "aa", "p.", ".."]
    assert said("no_finding") == [".a", "pa", "a.", ".."]
