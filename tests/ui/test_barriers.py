"""What the search for barriers finds, although it measures each look a few times."""

import pytest

from tests.ui.conftest import ALIKE, serious

pytestmark = pytest.mark.slow

FINE = '<p style="color: #000; background: #fff">Seen by everybody.</p>'
PALE = '<p style="color: #ccc; background: #fff">Seen by few.</p>'


def shown(page, *parts):
    """Show a page of these parts, and return what stands in a reader's way."""
    page.set_content(
        '<!doctype html><html lang="en"><title>x</title><main><h1>x</h1>'
        f"{''.join(parts)}</main></html>"
    )
    return serious(page)


def test_pale_words_are_found_among_many_that_are_not(new_page):
    """By their colour, by what lies behind them, and by what is laid over them."""
    page = new_page()
    assert shown(page, *[FINE] * 50) == []
    for odd in (
        PALE,
        f'<div style="opacity: 0.3">{FINE}</div>',
        '<div style="background: #333"><p style="color: #000">Dark.</p></div>',
        '<input aria-label="x" value="Dark." style="color: #000; background: #333">',
    ):
        (found,) = shown(page, *[FINE] * 50, odd)
        assert found.startswith("color-contrast: ")


def test_what_is_disabled_hides_no_other_of_its_look(new_page):
    """A control that is off may be pale; the next one may not."""
    off, on = (
        f'<button {state} style="color: #ccc; background: #fff">Go</button>'
        for state in ("disabled", "")
    )
    page = new_page()
    assert shown(page, *[off] * 50) == []
    assert len(shown(page, *[off] * 50, on)) == 1


def test_of_one_look_a_few_are_measured(new_page):
    """A table of a thousand rows takes no longer than one of three."""
    page = new_page()
    assert len(shown(page, *[PALE] * 50)) == ALIKE


def test_other_barriers_are_found_wherever_they_are(new_page):
    """Only contrast is the same wherever the look is."""
    (found,) = shown(new_page(), *[FINE] * 50, "<button></button>")
    assert found.startswith("button-name: ")
