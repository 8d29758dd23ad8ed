"""What makes a run the same run."""

import pytest

from tests.run.conftest import make_spec


@pytest.mark.parametrize(
    ("name", "taken", "refused"), [("limit", [None, 1], 0), ("draw", [0, 1], -1)]
)
def test_a_number_of_cases_or_of_a_draw_is_checked(name, taken, refused):
    """A run of no case, and a draw before the first, would be made and mean nothing."""
    for value in taken:
        assert getattr(make_spec(**{name: value}), name) == value
    with pytest.raises(ValueError, match=f"{name} must be .* got {refused}"):
        make_spec(**{name: refused})


@pytest.mark.parametrize("change", [{"limit": 5}, {"draw": 1}, {"engine": "rules"}])
def test_another_question_is_another_run(change):
    """Its digest finds what was answered to it before."""
    assert make_spec(**change).digest != make_spec().digest == make_spec().digest
