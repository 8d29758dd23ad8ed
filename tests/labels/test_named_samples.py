"""Drawn cases by name: which names there are, and when a list may be replaced."""

from collections.abc import Callable

import pytest

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import Cohort
from loop.labels.named_samples import (
    ReviewSample,
    check_sample_name,
    keep_review_sample,
    list_samples,
    read_sampled_cases,
)

Maker = Callable[..., Cohort]


@pytest.fixture
def cohort(make_cohort: Maker) -> Cohort:
    """Return a cohort of two cases."""
    return make_cohort([("a1", "One."), ("a2", "Two.")])


def _list(cohort: Cohort, *case_ids: str, name: str = "rare") -> ReviewSample:
    """Return a list for review."""
    return ReviewSample(
        name=name,
        cohort=cohort.name,
        cohort_digest=cohort.digest,
        run="r1",
        seed=1,
        by="length",
        case_ids=case_ids,
    )


@pytest.mark.parametrize(
    "name", ["a", "7", "a-b_c", "a" * 40, "sample", "sample0", "sample01", "sample1a"]
)
def test_a_list_may_have_a_plain_name(name: str) -> None:
    """Of 40 characters at most, which is no name of a value sample."""
    assert check_sample_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", "a" * 41, "A", "-a", "_a", "a b", "a.b", "../a", "a/b", "a\n", "é"),
        *("sample1", "sample10", "sample999999"),
    ],
)
def test_a_name_that_is_no_file_or_a_value_sample_s_is_refused(name: str) -> None:
    """It would be written elsewhere, or never be found again."""
    with pytest.raises(DataError, match="cannot be the name of a list for review"):
        check_sample_name(name)


def test_a_name_stands_for_the_same_cases_of_the_same_cohort(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """In the order drawn; others need another name."""
    keep_review_sample(workspace, _list(cohort, "a2", "a1"))
    keep_review_sample(workspace, _list(cohort, "a2", "a1"))
    keep_review_sample(workspace, _list(cohort, "a1", name="few"))
    assert read_sampled_cases(workspace, "mine", "rare") == ("a2", "a1")
    assert list_samples(workspace, "mine") == ("few", "rare")
    path = workspace.private / "samples" / "mine" / "rare.json"
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    for other in (("a1", "a2"), ("a2",)):
        with pytest.raises(DataError, match="other cases of cohort mine have the name"):
            keep_review_sample(workspace, _list(cohort, *other))
    assert path.read_bytes() == before


def test_a_list_from_before_a_new_import_is_refused_until_it_is_replaced(
    workspace: WorkspacePaths, cohort: Cohort, make_cohort: Maker
) -> None:
    """Its ids may be other cases by now."""
    keep_review_sample(workspace, _list(cohort, "a1"))
    again = make_cohort([("a1", "Other."), ("a2", "Two.")], replace=True)
    with pytest.raises(DataError, match="cohort mine was imported again since 'rare'"):
        read_sampled_cases(workspace, "mine", "rare")
    keep_review_sample(workspace, _list(again, "a2"))
    assert read_sampled_cases(workspace, "mine", "rare") == ("a2",)


def test_a_list_that_is_damaged_or_not_there_says_so(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """And so does a value sample that was never drawn."""
    with pytest.raises(DataError, match="does not exist"):
        read_sampled_cases(workspace, "mine", "rare")
    with pytest.raises(DataError, match="mine has no value sample 2"):
        read_sampled_cases(workspace, "mine", "sample2")
    keep_review_sample(workspace, _list(cohort, "a1"))
    path = workspace.private / "samples" / "mine" / "rare.json"
    path.write_text("{}")
    with pytest.raises(DataError, match="is damaged"):
        read_sampled_cases(workspace, "mine", "rare")
