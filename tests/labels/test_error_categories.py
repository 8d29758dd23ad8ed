"""The categories of errors: what they mean, and how each one counts."""

import pytest

from loop.core.errors import DataError, UnknownLabelError
from loop.labels.error_categories import ERRORS, CountsAs, ErrorGroup, read_errors

PREDICTION, OMISSION = CountsAs.FALSE_PREDICTION, CountsAs.OMISSION
DIGEST = "e50faa1ebb62e4f01c9d65ad7250d195d7153fd3002e0ddfefe6f8c4f0dd922e"


@pytest.fixture
def write(tmp_path, labels_folder):
    """Return a function that writes the shipped file with a change."""
    text = (labels_folder / ERRORS).read_text("utf-8")

    def changed(old, new):
        assert old in text
        (tmp_path / ERRORS).write_text(text.replace(old, new, 1), "utf-8")
        return tmp_path

    return changed


def test_the_categories_are_the_published_ones_by_letter(labels_folder):
    """An answer names them by letter; RadEval adds the last."""
    found = read_errors(labels_folder)
    assert [(one.letter, one.id, one.counts_as) for one in found.categories] == [
        ("a", "false_finding", PREDICTION),
        ("b", "omission", OMISSION),
        ("c", "location", CountsAs.BOTH),
        ("d", "severity", CountsAs.BOTH),
        ("e", "comparison", PREDICTION),
        ("f", "omitted_change", OMISSION),
        ("g", "wording", CountsAs.NOT_CLINICAL),
    ]
    assert found.ids[-1] == "wording" and found.clinical == found.ids[:-1]
    weights = [one.id for one in found.significances]
    assert weights == ["significant", "insignificant"]


def test_an_error_is_a_false_prediction_an_omission_both_or_neither(labels_folder):
    """False predictions lower precision, omissions lower recall."""
    found = read_errors(labels_folder).categories
    assert [one.false_predictions for one in found] == [1, 0, 1, 1, 1, 0, 0]
    assert [one.omissions for one in found] == [0, 1, 1, 1, 0, 1, 0]


def test_what_ships_is_pinned(labels_folder, write):
    """A result rests on these meanings: another text is another digest, and said so."""
    shipped = read_errors(labels_folder).digest
    assert shipped == DIGEST
    assert read_errors(write("version: 1", "version: 1 # note")).digest == shipped
    assert read_errors(write("leaves out a finding", "omits a finding")).digest != (
        shipped
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("id: omission", "id: false_finding", "category 'false_finding' appears twice"),
        ("id: insignificant", "id: significant", "'significant' appears twice"),
        ("letter: b", "letter: h", "'ahcdefg': they must go on from a without a gap"),
        ("counts_as: omission", "counts_as: miss", "counts_as"),
        ("definition: The candidate leaves", "why: The candidate leaves", "why"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(write, old, new, said):
    """It is edited by hand."""
    with pytest.raises(DataError, match=said) as told:
        read_errors(write(old, new))
    assert ERRORS in str(told.value)


def test_a_workspace_from_before_says_how_to_get_it(tmp_path):
    """Workspaces of earlier versions have none."""
    with pytest.raises(
        DataError, match=r"no .*errors.yaml. Take the one .*ranloop upgrade"
    ):
        read_errors(tmp_path)


@pytest.mark.parametrize("name", ["omitted_change", "Omitted Change", "omitted-change"])
def test_a_category_is_found_by_id_or_name(labels_folder, name):
    """Case, spaces, hyphens and underscores do not matter; others are not guessed."""
    found = read_errors(labels_folder)
    one = found.find(name)
    assert one.id == "omitted_change"
    assert found.find(one.name) is one
    with pytest.raises(UnknownLabelError) as told:
        found.find("omitted_changes")
    assert str(told.value) == (
        "no category of errors is called 'omitted_changes'. Known: "
        f"{', '.join(found.ids)}. Correct the name, or remove it."
    )


def test_groups_hold_every_category_of_clinical_content_once(labels_folder):
    """An attribute counts as both a false prediction and an omission."""
    found = read_errors(labels_folder)
    assert {group: group.counts_as for group in ErrorGroup} == {
        ErrorGroup.FALSE_PREDICTION: CountsAs.FALSE_PREDICTION,
        ErrorGroup.OMISSION: CountsAs.OMISSION,
        ErrorGroup.ATTRIBUTE: CountsAs.BOTH,
    }
    grouped = [one for group in ErrorGroup for one in found.of_group(group)]
    assert sorted(grouped) == sorted(found.clinical)
