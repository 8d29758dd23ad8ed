"""What makes a run the same run."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from loop.run.spec import BLANK_LINES, drawn, read_spec, run_id, spec_data, undrawn
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


@pytest.mark.parametrize("spaced", [False, True])
def test_a_further_draw_has_its_own_seed_and_spacing_and_leads_back(spaced):
    """The first draw is asked as if there were no others, and so is found again."""
    spec = make_spec(parameters={"seed": 7, "temperature": 0.5})
    assert drawn(spec, 0, spaced=spaced) is spec
    assert undrawn(spec) == spec.parameters
    for draw in (1, 3):
        further = drawn(spec, draw, spaced=spaced)
        blank = {BLANK_LINES: draw} if spaced else {}
        assert further.parameters == {"seed": 7 + draw, "temperature": 0.5, **blank}
        assert further.draw == draw
        assert undrawn(further) == spec.parameters
    assert spec.parameters == {"seed": 7, "temperature": 0.5}


def test_a_draw_without_a_seed_leads_back_to_what_it_had():
    """Not every engine takes one."""
    spec = make_spec(parameters={"temperature": 0.5, BLANK_LINES: 2}, draw=2)
    assert undrawn(spec) == {"temperature": 0.5}


def test_a_spec_is_read_as_it_was_written():
    """Nothing in a manifest is guessed: a field that is missing or new is an error."""
    spec = make_spec(parameters={"seed": 1}, limit=2, draw=1, reference=3)
    data = spec_data(spec)
    assert read_spec(data) == spec
    with pytest.raises(TypeError, match="zebra"):
        read_spec({**data, "zebra": 1})
    del data["cohort"]
    with pytest.raises(TypeError, match="cohort"):
        read_spec(data)


def test_the_id_of_a_run_begins_with_the_second_in_utc():
    """So that ids sort by time, wherever a run was started."""
    there = datetime(2026, 1, 2, 0, 30, 5, 999_999, timezone(timedelta(hours=2)))
    assert run_id(there, "0123456789") == "20260101-223005-012345"
    assert run_id(there.astimezone(UTC), "0123456789") == "20260101-223005-012345"
