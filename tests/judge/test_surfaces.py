"""Surfaces of scores, against the table of worked numbers; and the manual's figure.

``python -m tests.judge.test_surfaces`` writes the figure again.
"""

from pathlib import Path

import numpy as np
import pytest

from loop.documents.svg import as_file
from loop.judge.counts import find_score
from loop.judge.surfaces import score_surface, surfaces_svg
from loop.score.experts.error_counts import Empty
from tests.documents.figures_scenes import SVG, parsed

FIGURE = Path(__file__).parents[2] / "docs" / "_static" / "surfaces.svg"

# M, S, I and GREEN, GREEN-F1, Formula, worked out by hand.
WORKED = (
    (0, 1, 0, 0, 0, 0),
    (1, 0, 0, 1, 1, 1),
    (1, 1, 0, 0.5, 0.6667, 0.3333),
    (3, 1, 0, 0.75, 0.8571, 0.6),
    (3, 1, 2, 0.75, 0.8571, 0.5),
    (8, 4, 4, 0.6667, 0.8, 0.4444),
    (10, 3, 2, 0.7692, 0.8696, 0.5882),
    (1, 5, 0, 0.1667, 0.2857, 0.0909),
    (2, 4, 0, 0.3333, 0.5, 0.2),
)


@pytest.mark.parametrize(("m", "s", "i", "green", "f1", "formula"), WORKED)
def test_a_surface_is_the_score_of_its_counts(m, s, i, green, f1, formula):
    """By the published forms."""
    named = {"green": green, "green_f1": f1, "formula": formula}
    for name, expected in named.items():
        values = score_surface(find_score(name), i).values
        assert values[s, m] == pytest.approx(expected, abs=5e-5)


def test_nothing_matched_and_nothing_wrong_is_not_defined():
    """Unless a policy says what it scores; insignificant errors decide Formula."""
    assert np.isnan(score_surface(find_score("green"), 0).values[0, 0])
    assert score_surface(find_score("green"), 0, Empty.ONE).values[0, 0] == 1
    assert score_surface(find_score("formula"), 2).values[0, 0] == 0


def test_scores_never_rise_with_an_error_nor_fall_with_a_match():
    """On the whole surface."""
    for name in ("green", "green_f1", "formula"):
        values = score_surface(find_score(name), 2, Empty.ONE).values
        assert (np.diff(values[1:], axis=0) <= 0).all()
        assert (np.diff(values[1:], axis=1) >= 0).all()


def test_the_figure_has_every_cell():
    """Four surfaces of 77 cells."""
    tree = parsed(surfaces_svg())
    assert len(tree.findall(f"{SVG}svg")) == 4
    assert len([one for one in tree.iter(f"{SVG}rect")]) == 4 * 77


def test_the_manual_shows_it_as_it_is():
    """A figure that nobody made again would be of other scores."""
    assert FIGURE.read_text("utf-8") == as_file(surfaces_svg())


if __name__ == "__main__":
    FIGURE.write_text(as_file(surfaces_svg()), "utf-8")
