"""Value samples: kept with the ledger, and found by when a reference was made."""

from collections.abc import Callable

import pytest

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LedgerError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths
from loop.labels import value_sample
from loop.labels.cohort import Cohort, CohortRecord, read_record
from loop.labels.value_sample import (
    DrawnCase,
    KeptSample,
    ValueSample,
    find_sample,
    keep_sample,
    newest_sample,
    read_sample,
    sample_path,
)

ACTOR = Actor(name="Dr. Example")

Maker = Callable[..., Cohort]


@pytest.fixture
def cohort(make_cohort: Maker) -> Cohort:
    """Return a cohort of two cases."""
    return make_cohort([("a1", "One."), ("a2", "Two.")])


def _sample(cohort: Cohort, seed: int = 1) -> ValueSample:
    """Return a sample of the first case, drawn with a chance of one half."""
    return ValueSample(
        cohort=cohort.name,
        cohort_digest=cohort.digest,
        population=2,
        seed=seed,
        even=0.25,
        run="r1",
        between=("p@v1",),
        fitted_on="dev",
        drawn=(DrawnCase(case_id="a1", chance=0.5),),
    )


def test_a_sample_is_kept_once_and_another_only_where_that_is_said(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """What readers say of one is weighted by its chances, and by no others."""
    assert newest_sample(workspace, "mine") is None
    one, two = _sample(cohort), _sample(cohort, seed=2)
    assert keep_sample(workspace, cohort, one, actor=ACTOR) == 1
    length = len(read_ledger(workspace.ledger))
    assert keep_sample(workspace, cohort, one, actor=ACTOR) == 1
    assert keep_sample(workspace, cohort, one, actor=ACTOR, replace=True) == 1
    assert len(read_ledger(workspace.ledger)) == length
    with pytest.raises(DataError, match="value sample 1 of cohort mine was drawn"):
        keep_sample(workspace, cohort, two, actor=ACTOR)
    assert keep_sample(workspace, cohort, two, actor=ACTOR, replace=True) == 2
    assert newest_sample(workspace, "mine") == KeptSample(2, two)
    assert read_sample(workspace, "mine", 1) == KeptSample(1, one)
    assert one.chances == {"a1": 0.5}
    for number in (0, 3):
        with pytest.raises(DataError, match=f"mine has no value sample {number}"):
            read_sample(workspace, "mine", number)


def test_the_ledger_says_what_was_drawn_of_what_and_after_which_reference(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """Whoever weighs what readers say must know which chances counted then."""
    sample = _sample(cohort, seed=7)
    keep_sample(workspace, cohort, sample, actor=ACTOR)
    raw = sample_path(workspace, "mine", 1).read_bytes()
    assert ValueSample.model_validate_json(raw) == sample
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.action, entry.subject, entry.actor, entry.reason) == (
        "sample_drawn",
        "mine:sample1",
        "Dr. Example",
        "1 of 2 cases to read, chosen by what reading them is probably worth",
    )
    assert entry.payload == {
        "cohort": "mine",
        "cohort_digest": cohort.digest,
        "number": 1,
        "digest": digest_bytes(raw),
        "size": 1,
        "seed": 7,
        "run": "r1",
        "fitted_on": "dev",
        "reference": 0,
    }


def test_no_sample_is_drawn_of_a_holdout(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Its gates count cases as drawn at random."""
    held = make_cohort([("h1", "One."), ("h2", "Two.")], "held", role="holdout")
    before = read_ledger(workspace.ledger)
    with pytest.raises(DataError, match="cohort held is a holdout: its gates count"):
        keep_sample(workspace, held, _sample(held), actor=ACTOR)
    assert read_ledger(workspace.ledger) == before
    assert not sample_path(workspace, "held", 1).exists()


def test_a_recorded_file_that_is_no_sample_says_nothing(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """As from a later release of ranloop: its digest is right all the same."""
    keep_sample(workspace, cohort, _sample(cohort), actor=ACTOR)
    kept = read_record(workspace, "mine")
    told = {**kept.samples[1], "digest": digest_bytes(b"{}")}
    record = CohortRecord(
        name="mine", added=kept.added, references={}, samples={1: told}
    )
    sample_path(workspace, "mine", 1).write_bytes(b"{}")
    with pytest.raises(DataError, match=r"v1\.json is no value sample\. Restore it"):
        find_sample(workspace, record, 1)


def test_a_sample_that_is_not_recorded_is_not_left_behind(
    workspace: WorkspacePaths, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file alone would be taken for one that was drawn."""

    def refuse(*given: object, **more: object) -> None:
        raise LedgerError("broken")

    monkeypatch.setattr(value_sample, "append_event", refuse)
    with pytest.raises(LedgerError, match="broken"):
        keep_sample(workspace, cohort, _sample(cohort), actor=ACTOR)
    assert not sample_path(workspace, "mine", 1).exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.unlink(), "cannot be read, and without the chances"),
        (lambda path: path.write_bytes(path.read_bytes() + b" "), "was edited"),
    ],
)
def test_a_sample_that_is_gone_or_edited_says_nothing(
    workspace: WorkspacePaths, cohort: Cohort, change: Callable, said: str
) -> None:
    """A rate weighted with other chances would be of another cohort."""
    keep_sample(workspace, cohort, _sample(cohort), actor=ACTOR)
    change(sample_path(workspace, "mine", 1))
    with pytest.raises(DataError, match=f"{said}.* Restore it from version control"):
        newest_sample(workspace, "mine")


def _record(
    workspace: WorkspacePaths, after: tuple[object, object], corrects: dict[int, int]
) -> CohortRecord:
    """Return a record of two samples, drawn after so many versions each."""
    kept = read_record(workspace, "mine")
    return CohortRecord(
        name="mine",
        added=kept.added,
        references={number: {"corrects": of} for number, of in corrects.items()},
        samples={
            number: {**kept.samples[number], "reference": newest}
            for number, newest in zip((1, 2), after, strict=True)
        },
    )


@pytest.mark.parametrize(
    ("after", "version", "found"),
    [
        ((0, 0), 1, 2),
        ((0, 1), 1, 1),
        ((0, 1), 2, 2),
        ((1, 1), 1, None),
        ((1, 2), 2, 1),
        ((2, 2), 3, None),
        ((1, 1), 3, None),
        ((0, 1), 3, 1),
        ((0, 3), 4, 2),
    ],
)
def test_a_version_is_of_the_sample_that_was_drawn_last_before_it(
    workspace: WorkspacePaths,
    cohort: Cohort,
    after: tuple[int, int],
    version: int,
    found: int | None,
) -> None:
    """A correction, here 3 of 1, is of what it corrects."""
    for seed in (1, 2):
        sample = _sample(cohort, seed)
        keep_sample(workspace, cohort, sample, actor=ACTOR, replace=True)
    record = _record(workspace, after, {3: 1})
    kept = find_sample(workspace, record, version)
    assert (kept and kept.number) == found


@pytest.mark.parametrize("newest", [None, "1", True, 1.0])
def test_a_sample_of_which_nobody_knows_when_it_was_drawn_is_refused(
    workspace: WorkspacePaths, cohort: Cohort, newest: object
) -> None:
    """Also where another one would be found."""
    for seed in (1, 2):
        sample = _sample(cohort, seed)
        keep_sample(workspace, cohort, sample, actor=ACTOR, replace=True)
    record = _record(workspace, (0, newest), {})
    with pytest.raises(LedgerError, match=r"mine:sample2 was drawn: no ranloop"):
        find_sample(workspace, record, 1)
