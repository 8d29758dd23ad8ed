"""A cohort is pinned by digest; its texts stay private and are checked when read."""

import stat
from collections.abc import Callable

import pytest

from loop.core.digests import digest_text
from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.labels.cohort import (
    Cohort,
    count_cases,
    iter_items,
    list_cohorts,
    read_cohort,
    texts_path,
)

Maker = Callable[..., Cohort]

ROWS = [("a1", "Lungs are clear.", "P1"), ("a2", "Small effusion.", "P1")]


def test_what_was_imported_is_read_back(
    workspace: Workspace, make_cohort: Maker
) -> None:
    """Texts come back byte for byte, in order."""
    cohort = make_cohort(ROWS)
    items = list(iter_items(workspace, cohort))
    assert [(item.id, item.variables["text"]) for item in items] == [
        ("a1", "Lungs are clear."),
        ("a2", "Small effusion."),
    ]
    assert cohort.cases[0].sha256 == digest_text("Lungs are clear.")
    assert count_cases(workspace, "mine") == 2


def test_no_text_and_no_patient_id_stands_in_the_open(
    workspace: Workspace, make_cohort: Maker
) -> None:
    """labels/ travels in version control; .ranloop/ does not."""
    make_cohort([("a1", "Unmistakable wording.", "Patient Name"), *ROWS[1:]])
    for path in workspace.labels.rglob("*"):
        if path.is_file():
            assert b"Unmistakable" not in path.read_bytes(), path
            assert b"Patient Name" not in path.read_bytes(), path
    assert b"Unmistakable" not in workspace.ledger.read_bytes()


def test_private_files_are_readable_by_their_owner_only(
    workspace: Workspace, make_cohort: Maker
) -> None:
    """Other users of the machine must not read reports or the key."""
    make_cohort(ROWS)
    for path in (texts_path(workspace, "mine"), workspace.private / "keys/pseudonym"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(workspace.private.stat().st_mode) == 0o700


def test_one_patient_has_one_pseudonym(make_cohort: Maker) -> None:
    """Resampling by patient needs it; the pseudonym is the same in every cohort."""
    first, second = make_cohort(ROWS).cases
    again = make_cohort([("b1", "Other.", "P1"), ("b2", "More.", "P2")], "again")
    assert first.patient == second.patient == again.cases[0].patient
    assert len(first.patient) == 16
    assert again.cases[1].patient != first.patient


def test_the_digest_does_not_depend_on_name_and_role(make_cohort: Maker) -> None:
    """The same cases are the same cases, whatever they are used for."""
    one = make_cohort(ROWS, "one", role="dev")
    two = make_cohort(ROWS, "two", role="external")
    assert one.digest == two.digest


def test_an_edited_case_list_is_noticed(
    workspace: Workspace, make_cohort: Maker
) -> None:
    """A case removed behind the tool's back would change every number."""
    make_cohort(ROWS)
    path = workspace.cohorts / "mine" / "cases.csv"
    path.write_text("\n".join(path.read_text().split("\n")[:2]) + "\n")
    with pytest.raises(DataError, match="changed after the import: 1 cases"):
        read_cohort(workspace, "mine")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda raw: raw.replace(b"clear", b"dense"), "line 1: not the text of case"),
        (lambda raw: raw.split(b"\n")[0] + b"\n", "ends after 1 of 2"),
        (lambda raw: raw + raw, "more than 2 cases"),
        (lambda raw: b"{" + raw, "line 1: not the text of case"),
        (lambda raw: b"[]\n" + raw, "line 1: not the text of case"),
        (lambda raw: b"", "ends after 0 of 2"),
    ],
)
def test_an_edited_text_is_noticed_and_not_shown(
    workspace: Workspace, make_cohort: Maker, edit, message: str
) -> None:
    """The case is named, its text never is."""
    cohort = make_cohort(ROWS)
    path = texts_path(workspace, "mine")
    path.write_bytes(edit(path.read_bytes()))
    with pytest.raises(DataError, match=message) as caught:
        list(iter_items(workspace, cohort))
    assert "dense" not in str(caught.value)
    assert "--replace" in str(caught.value)


def test_missing_texts_say_how_to_get_them(
    workspace: Workspace, make_cohort: Maker
) -> None:
    """A cohort from version control arrives without its texts."""
    cohort = make_cohort(ROWS)
    texts_path(workspace, "mine").unlink()
    with pytest.raises(DataError, match="texts are private and do not travel"):
        next(iter_items(workspace, cohort))


def test_an_unknown_cohort_lists_the_known_ones(
    workspace: Workspace, make_cohort: Maker
) -> None:
    """The way out of a typing error is the right name."""
    make_cohort(ROWS)
    with pytest.raises(DataError, match=r"there: mine.*ranloop cohort import"):
        read_cohort(workspace, "min")


@pytest.mark.parametrize(
    "name", ["../up", "", "Upper", "a/b", ".hidden", "a..b", "x" * 65]
)
def test_a_name_is_never_a_path(workspace: Workspace, name: str) -> None:
    """A cohort's name becomes a folder."""
    with pytest.raises(DataError, match="cannot be the name of a cohort"):
        read_cohort(workspace, name)


def test_a_fresh_workspace_has_no_cohorts(workspace: Workspace) -> None:
    """Nothing real ships."""
    assert list_cohorts(workspace) == ()
