"""A cohort is pinned by digest; its texts stay private and are checked when read."""

import hashlib
import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from loop.core.digests import digest_json, digest_text, digest_texts
from loop.core.errors import DataError, LedgerError
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths
from loop.core.records import Item
from loop.core.safe_text import quoted
from loop.labels.cohort import (
    Cohort,
    CohortCase,
    CohortFile,
    CohortRecord,
    as_recorded,
    case_line,
    cases_digest,
    check_name,
    cohort_folder,
    find_item,
    find_record,
    format_cohort_file,
    iter_items,
    list_cohorts,
    read_cohort,
    read_cohort_file,
    read_record,
    recorded_fields,
    report_texts,
    require_recorded,
    texts_path,
)
from tests.calls import count_calls

Maker = Callable[..., Cohort]

ROWS = [("a1", "Lungs are clear.", "P1"), ("a2", "Small effusion.", "P1")]


def test_what_was_imported_is_read_back(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Texts come back byte for byte, in order."""
    cohort = make_cohort(ROWS)
    items = list(iter_items(workspace, cohort))
    assert [(item.id, item.variables["text"]) for item in items] == [
        ("a1", "Lungs are clear."),
        ("a2", "Small effusion."),
    ]
    assert cohort.cases[0].sha256 == digest_text("Lungs are clear.")


def test_no_text_and_no_patient_id_stands_in_the_open(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """labels/ travels in version control; .ranloop/ does not."""
    make_cohort([("a1", "Unmistakable wording.", "Patient Name"), *ROWS[1:]])
    for path in workspace.labels.rglob("*"):
        if path.is_file():
            assert b"Unmistakable" not in path.read_bytes(), path
            assert b"Patient Name" not in path.read_bytes(), path
    assert b"Unmistakable" not in workspace.ledger.read_bytes()


def test_private_files_are_readable_by_their_owner_only(
    workspace: WorkspacePaths, make_cohort: Maker
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
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """A case removed behind the tool's back would change every number."""
    make_cohort(ROWS)
    path = workspace.cohorts / "mine" / "cases.csv"
    path.write_text("\n".join(path.read_text().split("\n")[:2]) + "\n")
    with pytest.raises(DataError, match="changed after the import: 1 cases"):
        read_cohort(workspace, "mine")


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("role: holdout", "role: dev", r"role: is 'dev' now.*recorded 'holdout'"),
        ("not_coded: false", "not_coded: true", "not_coded: is True now"),
        ("pseudonym_key: ", "pseudonym_key: f #", "pseudonym_key: is 'f' now"),
        (
            "not_coded: false",
            "not_coded: false\nnot_comparable: {edema: because}",
            "not_comparable: .* did not record it",
        ),
    ],
)
def test_an_edited_cohort_file_is_refused(
    workspace: WorkspacePaths, make_cohort: Maker, old: str, new: str, field: str
) -> None:
    """A holdout renamed dev would let its failing cases be read."""
    make_cohort(ROWS, role="holdout")
    path = workspace.cohorts / "mine" / "cohort.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError, match=rf"cohort\.yaml, {field}.*--replace"):
        read_cohort(workspace, "mine")


def test_a_label_that_cannot_be_judged_is_not_forgotten(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """What an evaluation must say of a reference cannot be taken out of its file."""
    make_cohort(ROWS)
    path = workspace.cohorts / "mine" / "cohort.yaml"
    about = read_cohort_file(workspace, "mine")
    record = read_record(workspace, "mine")
    told = replace(record, added={**record.added, "not_comparable": "edema"})
    marked = about.model_copy(update={"not_comparable": {"edema": "because"}})
    require_recorded(marked, path, told)
    with pytest.raises(DataError, match="not_comparable: is '' now"):
        require_recorded(about, path, told)


@pytest.mark.parametrize("reason", ["", "   "])
def test_a_label_cannot_be_left_out_without_a_reason(
    workspace: WorkspacePaths, make_cohort: Maker, reason: str
) -> None:
    """A blank one would leave it out of averages and in the gates."""
    make_cohort(ROWS)
    path = workspace.cohorts / "mine" / "cohort.yaml"
    path.write_text(f"{path.read_text()}not_comparable: {{edema: '{reason}'}}\n")
    with pytest.raises(DataError, match="not_comparable"):
        read_cohort_file(workspace, "mine")


def test_a_cohort_file_that_says_nothing_of_coding_is_not_coded(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Taken for coded, what is absent would count as merely not named."""
    make_cohort(ROWS)
    path = workspace.cohorts / "mine" / "cohort.yaml"
    path.write_text(path.read_text().replace("not_coded: false\n", ""))
    assert "not_coded" not in path.read_text()
    assert read_cohort(workspace, "mine").not_coded is False


def test_an_edited_patient_is_refused(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Patients decide what is resampled together and what two cohorts share."""
    cohort = make_cohort(ROWS)
    path = workspace.cohorts / "mine" / "cases.csv"
    path.write_text(path.read_text().replace(cohort.cases[0].patient, "0" * 16, 1))
    with pytest.raises(DataError, match=r"cases\.csv, cases_sha256"):
        read_cohort(workspace, "mine")


def test_cases_and_their_digest_edited_together_are_refused(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Two files that agree with each other must still agree with the ledger."""
    make_cohort(ROWS, "other")
    make_cohort(ROWS[:1])
    for name in ("cases.csv", "cohort.yaml"):
        text = (workspace.cohorts / "other" / name).read_text()
        (workspace.cohorts / "mine" / name).write_text(text)
    with pytest.raises(DataError, match=r"cohort\.yaml, cases: is 2 now"):
        read_cohort(workspace, "mine")


def test_a_cohort_without_its_ledger_is_refused(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Nothing shows what it was imported as; the message says both ways out."""
    make_cohort(ROWS)
    workspace.ledger.unlink()
    with pytest.raises(DataError, match=r"no entry cohort_added.*--replace"):
        read_cohort(workspace, "mine")


def test_an_import_that_recorded_less_is_named(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """What an earlier ranloop did not record is not taken as checked."""
    make_cohort(ROWS)
    workspace.ledger.unlink()
    event = Event(action="cohort_added", subject="mine", reason="long ago")
    append_event(workspace.ledger, event, Actor(name="Dr. Example"))
    with pytest.raises(DataError, match=r"role: the ledger entry.*earlier ranloop"):
        read_cohort(workspace, "mine")


def test_a_cohort_imported_again_is_held_against_the_last_import(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """--replace may change role and cases; the ledger keeps both imports."""
    make_cohort(ROWS, role="holdout")
    assert make_cohort(ROWS[:1], role="dev", replace=True).role == "dev"


def test_ten_times_the_cases_are_ten_times_the_work(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Checking against the ledger hashes the file once, and reads no case again."""

    def work(number: int) -> int:
        rows = [(f"c{i}", f"Text {i}.", f"P{i}") for i in range(number)]
        make_cohort(rows, replace=number > 100)
        read_cohort(workspace, "mine")
        return count_calls(lambda: read_cohort(workspace, "mine"))

    assert work(100) * 15 > work(1000)


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
    workspace: WorkspacePaths, make_cohort: Maker, edit, message: str
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
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """A cohort from version control arrives without its texts."""
    cohort = make_cohort(ROWS)
    texts_path(workspace, "mine").unlink()
    with pytest.raises(DataError, match="texts are private and do not travel"):
        next(iter_items(workspace, cohort))


def test_an_unknown_cohort_lists_the_known_ones(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """The way out of a typing error is the right name."""
    make_cohort(ROWS)
    with pytest.raises(DataError, match=r"found: mine.*ranloop cohort import"):
        read_cohort(workspace, "min")
    with pytest.raises(DataError, match=r"found: mine.*ranloop cohort import"):
        read_record(workspace, "min")


@pytest.mark.parametrize(
    "name", ["../up", "", "Upper", "a/b", ".hidden", "a..b", "x" * 65]
)
def test_a_name_is_never_a_path(workspace: WorkspacePaths, name: str) -> None:
    """A cohort's name becomes a folder."""
    with pytest.raises(DataError, match="cannot be the name of a cohort"):
        read_cohort(workspace, name)


def test_a_fresh_workspace_has_no_cohorts(workspace: WorkspacePaths) -> None:
    """Nothing real ships."""
    assert list_cohorts(workspace) == ()


def test_a_reference_leads_back_to_the_version_that_was_voted_on():
    """Whatever was corrected on the way, and however often."""
    corrected = {1: {}, 2: {"corrects": 1}, 3: {}, 4: {"corrects": 2}}
    record = CohortRecord(name="dev", added={}, references=corrected)
    assert [record.origin(number) for number in (1, 2, 3, 4, 9)] == [1, 1, 3, 1, 9]


@pytest.mark.parametrize("earlier", [2, 3, 0, -1, "1", None, True, 1.0])
def test_a_ledger_that_runs_in_a_circle_is_refused(earlier):
    """An auditor is given ledgers that others wrote: none may keep them for ever."""
    record = CohortRecord(name="dev", added={}, references={2: {"corrects": earlier}})
    with pytest.raises(LedgerError, match="dev:ref2 corrects"):
        record.origin(2)


def test_texts_are_kept_as_they_are_written():
    """Chinese as well: a person can read it, and it takes half the bytes."""
    item = Item(id="a", variables={"text": "双肺纹理清晰。"}, language="zh")
    assert case_line(item).decode() == (
        '{"case_id": "a", "text": "双肺纹理清晰。", "language": "zh"}\n'
    )


def _found(*told: tuple[str, str, dict[str, object]]) -> CohortRecord:
    """Return what entries (action, subject, payload) hold of cohort ``mine``."""
    entries = [
        SimpleNamespace(action=action, subject=subject, payload=payload)
        for action, subject, payload in told
    ]
    record = find_record(entries, "mine")  # type: ignore[arg-type]
    assert record is not None
    return record


ADDED = ("cohort_added", "mine", {"role": "holdout", "cohort_digest": "c"})


def _version(number: int, **more: object) -> tuple[str, str, dict[str, object]]:
    """Return the entry of a reference version of ``mine``."""
    payload = {"cohort": "mine", "number": number, "digest": f"d{number}", **more}
    return "reference_revised", f"mine:ref{number}", payload


def test_what_was_recorded_before_an_import_belongs_to_what_it_replaced() -> None:
    """And what is of another cohort belongs to that; never added is no record."""
    others = [
        (action, "other", {"cohort": "other", "number": 9, "digest": "o"})
        for action in ("cohort_added", "reference_revised", "holdout_retired")
    ]
    rated = ("ratings_added", "mine", {"cohort": "mine", "number": 1, "digest": "r"})
    drawn = ("sample_drawn", "mine:sample1", {"cohort": "mine", "number": 1})
    record = _found(ADDED, _version(1), *others, rated, drawn)
    assert (*record.references,) == (*record.ratings,) == (*record.samples,) == (1,)
    assert record.added == ADDED[2]
    again = _found(ADDED, _version(1), rated, drawn, ADDED, *others)
    assert not again.references and not again.ratings and not again.samples
    assert find_record([], "mine") is None


def test_a_version_that_is_recorded_again_was_recorded_last() -> None:
    """The highest number is the newest; the votes that count are the last recorded."""
    record = _found(ADDED, _version(1, votes="a"), _version(2, votes="b"))
    assert (record.newest, record.votes, record.newest_digest) == (2, "b", "d2")
    again = _found(
        ADDED, _version(1, votes="a"), _version(2, votes="b"), _version(1, votes="c")
    )
    assert (again.newest, again.votes, again.newest_digest) == (2, "c", "d2")
    assert [*again.references] == [2, 1]
    none = _found(ADDED)
    assert (none.newest, none.votes, none.newest_digest) == (0, None, None)


def test_of_pairs_without_a_reference_the_newest_ratings_are_what_counts() -> None:
    """A reference comes first where there are both."""
    ratings = [
        ("ratings_added", "mine", {"cohort": "mine", "number": n, "digest": f"r{n}"})
        for n in (1, 2)
    ]
    assert _found(ADDED, *ratings).newest_digest == "r2"
    assert _found(ADDED, *ratings, _version(1)).newest_digest == "d1"


def test_a_retired_holdout_is_for_development_and_has_digests_without_a_key() -> None:
    """Only what was sealed then has others; what was imported since is as it was."""
    gone = ("holdout_retired", "mine", {"digests": {"d1": "p1", "v": "pv"}})
    record = _found(ADDED, _version(1, votes="v"), _version(2), gone)
    assert (record.retired, record.is_holdout) == (True, False)
    assert record.added == {**ADDED[2], "role": "dev", "retired": True}
    assert record.references[1]["digest"] == "p1"
    assert record.references[1]["votes"] == "pv"
    assert record.references[2]["digest"] == "d2"
    again = _found(ADDED, gone, ADDED)
    assert (again.retired, again.is_holdout) == (False, True)
    early = _found(("holdout_retired", "mine", {}), ADDED)
    assert (early.retired, early.is_holdout) == (False, True)


def test_the_origin_of_a_version_is_what_was_corrected_first() -> None:
    """One that corrects nothing, or that nobody recorded, is its own."""
    record = _found(
        ADDED, _version(1), _version(2, corrects=1), _version(4, corrects=2)
    )
    assert [record.origin(number) for number in (1, 2, 3, 4)] == [1, 1, 3, 1]


@pytest.mark.parametrize("earlier", [2, 3, 0, -1, True, "1", None, 1.0])
def test_a_correction_of_no_earlier_version_is_refused(earlier: object) -> None:
    """It would be looked for without end, or somewhere else."""
    record = _found(ADDED, _version(1), _version(2, corrects=earlier))
    with pytest.raises(LedgerError, match=r"mine:ref2 corrects .* no earlier version"):
        record.origin(2)


def test_reasons_are_those_of_the_import_for_exactly_its_labels() -> None:
    """Where the import recorded labels alone, these are all that can be compared."""
    reasons = {"edema": "not coded", "nodule": "other"}
    listed = {"not_comparable": "nodule edema"}
    plain = _found(("cohort_added", "mine", dict(listed)))
    assert plain.not_comparable == {"edema", "nodule"}
    assert plain.gave_reasons(reasons)
    assert plain.gave_reasons({**reasons, "edema": "else"})
    assert not plain.gave_reasons({"edema": "not coded"})
    assert not plain.gave_reasons({**reasons, "mass": "x"})
    told = {**listed, "not_comparable_sha256": digest_json(reasons)}
    whole = _found(("cohort_added", "mine", dict(told)))
    assert whole.gave_reasons(reasons)
    assert not whole.gave_reasons({**reasons, "edema": "else"})
    assert _found(ADDED).gave_reasons({})


def test_one_case_is_found_by_its_id_alone(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """First, middle or last, with a comma in it or as the beginning of another."""
    rows = [("a", "One."), ("a,1", "Two."), ("a1", "Three."), ("a11", "Four.")]
    make_cohort(rows)
    for case_id, text in rows:
        item = find_item(workspace, "mine", case_id)
        assert (item.id, dict(item.variables)) == (case_id, {"text": text})
    for wrong in ("", "a,", "a111", "1", "A", "case_id"):
        with pytest.raises(DataError, match="cohort mine has no case") as told:
            find_item(workspace, "mine", wrong)
        listed = cohort_folder(workspace, "mine") / "cases.csv"
        assert str(told.value) == (
            f"cohort mine has no case {quoted(wrong)}. See its ids in {listed}."
        )


@pytest.mark.parametrize(
    "edit",
    [
        lambda raw: raw.replace(b"clear", b"dense"),
        lambda raw: raw.split(b"\n", 1)[1],
        lambda raw: b"",
        lambda raw: raw.replace(b'"a1", "text"', b'"a1", "words"'),
    ],
)
def test_one_case_whose_text_is_not_the_pinned_one_is_refused(
    workspace: WorkspacePaths, make_cohort: Maker, edit: Callable[[bytes], bytes]
) -> None:
    """Changed, left out, gone or under another name; the others are still found."""
    make_cohort([("a1", "Lungs are clear."), ("a2", "Other words.")])
    path = texts_path(workspace, "mine")
    changed = edit(path.read_bytes())
    path.write_bytes(changed)
    with pytest.raises(DataError) as told:
        find_item(workspace, "mine", "a1")
    assert str(told.value) == (
        f"{path} does not hold the text of case 'a1' that was imported. Import the "
        "cohort again from its source with --replace."
    )
    if changed:
        assert find_item(workspace, "mine", "a2").variables["text"] == "Other words."
    path.unlink()
    with pytest.raises(DataError, match="texts are private and do not travel"):
        find_item(workspace, "mine", "a2")


def test_texts_that_may_not_be_read_are_no_missing_ones(
    workspace: WorkspacePaths, make_cohort: Maker, monkeypatch
) -> None:
    """The reason of the system is told, and no other import is asked for."""
    cohort = make_cohort(ROWS)
    opened = Path.open

    def refuse(path: Path, *args: object, **options: object) -> object:
        if path.suffix == ".jsonl":
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    path = texts_path(workspace, "mine")
    for read in (
        lambda: next(iter_items(workspace, cohort)),
        lambda: find_item(workspace, "mine", cohort.case_ids[0]),
    ):
        with pytest.raises(DataError) as told:
            read()
        assert str(told.value) == f"cannot read {path}: Permission denied."


def test_a_list_of_cases_that_is_torn_is_refused_with_its_line(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Before anything is made of its digest."""
    make_cohort(ROWS)
    path = cohort_folder(workspace, "mine") / "cases.csv"
    raw = path.read_bytes()
    head, first, *rest = raw.split(b"\n")
    for content, said in (
        (b"\n".join([b"id,text", first, *rest]), "line 1: the columns are not case_id"),
        (b"\n".join([head, first, b"torn"]), "line 3: not 3 cells"),
        (b"\n".join([head, b'"' + first]), "cannot read"),
        (b"\n".join([head, b"\xff"]), "cannot read"),
        (b"", "line 1: the columns are not case_id"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=said) as told:
            read_cohort(workspace, "mine")
        assert str(path) in str(told.value)
        assert "Restore the file" in str(told.value)


def test_what_is_drawn_is_the_patient_or_else_the_reference() -> None:
    """Candidates of one reference are no independent cases, nor are two exams."""
    cells = {"case_id": "a", "sha256": "d", "system": "s"}
    for patient, reference, unit in (
        ("p1", "r1", "p1"),
        ("p1", "", "p1"),
        ("", "r1", "reference r1"),
        ("", "", ""),
    ):
        case = CohortCase(patient=patient, reference_id=reference, **cells)
        assert case.unit == unit


def test_patients_are_known_where_every_case_names_one(make_cohort: Maker) -> None:
    """One unknown patient is enough to draw cases, and of no case nothing is known."""
    cohort = make_cohort(ROWS)
    known, other = cohort.cases
    unknown = other._replace(patient="")
    for cases, told in (
        ((known, other), True),
        ((known, unknown), False),
        ((unknown, unknown), False),
        ((), False),
    ):
        assert replace(cohort, cases=cases).patients_known is told
    assert cohort.case_ids == ("a1", "a2")


def test_a_source_says_in_any_case_that_its_texts_are_made_up(
    make_cohort: Maker,
) -> None:
    """A claim on such texts must say so, however the source is spelled."""
    cohort = make_cohort(ROWS)
    for source, told in (
        ("Synthetic reports", True),
        ("made up, SYNTHETIC", True),
        ("A hospital", False),
    ):
        assert replace(cohort, source=source).synthetic is told


@pytest.mark.parametrize("name", ["a", "0", "x" * 64, "a.b-c_d", "9-"])
def test_a_name_may_be_this(name: str) -> None:
    """The twin of what may not be a name."""
    assert check_name(name) == name


def test_only_folders_that_can_be_cohorts_are_listed(workspace: WorkspacePaths) -> None:
    """Sorted; one without its file, or with a name that is none, is no cohort."""
    for name in ("b", "a.1", "a", "Upper"):
        (workspace.cohorts / name).mkdir(parents=True)
        (workspace.cohorts / name / "cohort.yaml").write_text("")
    (workspace.cohorts / "empty").mkdir()
    assert list_cohorts(workspace) == ("a", "a.1", "b")


@pytest.mark.parametrize(
    ("old", "new"),
    [("cases: 2", "cases: 1"), ("cases: 2", "cases: 3"), ("digest: ", "digest: f")],
)
def test_a_cohort_file_that_does_not_fit_its_cases_says_both(
    workspace: WorkspacePaths, make_cohort: Maker, old: str, new: str
) -> None:
    """Fewer, more, or others: each alone is enough."""
    cohort = make_cohort(ROWS)
    folder = cohort_folder(workspace, "mine")
    path = folder / "cohort.yaml"
    text = path.read_text()
    path.write_text(text.replace(old, new))
    assert path.read_text() != text
    about = read_cohort_file(workspace, "mine")
    with pytest.raises(DataError) as told:
        read_cohort(workspace, "mine")
    assert str(told.value) == (
        f"{folder / 'cases.csv'} was changed after the import: 2 cases with digest "
        f"{cohort.digest[:12]}, cohort.yaml says {about.cases} with "
        f"{about.digest[:12]}. Restore the file, or import the cohort again under "
        "another name."
    )


def test_a_digest_that_differs_is_shown_by_its_beginning(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """Twelve characters of each; a number is shown whole."""
    make_cohort(ROWS)
    path = cohort_folder(workspace, "mine") / "cohort.yaml"
    about = read_cohort_file(workspace, "mine")
    record = read_record(workspace, "mine")
    for field, found, kept, shown in (
        ("pseudonym_key", "a" * 16, "b" * 16, ("'aaaaaaaaaaaa'", "'bbbbbbbbbbbb'")),
        ("cases", 1234567890123, 2, ("1234567890123", "2")),
    ):
        told = replace(record, added={**record.added, field: kept})
        with pytest.raises(DataError) as caught:
            require_recorded(about.model_copy(update={field: found}), path, told)
        assert str(caught.value) == (
            f"{path}, {field}: is {shown[0]} now, but the ledger recorded {shown[1]} "
            "at the import. Restore the file, or import the cohort again with "
            "--replace."
        )


ABOUT: dict[str, object] = {
    "name": "mine",
    "role": "dev",
    "source": "s",
    "licence": "l",
    "language": "en",
    "cases": 3,
    "digest": "c",
    "pseudonym_key": "k",
}
REASONS = {"nodule": "other", "edema": "not coded"}


def test_a_cohort_file_is_recorded_with_what_changes_a_claim() -> None:
    """Inputs and labels that cannot be judged only where there is something to say."""
    plain = CohortFile.model_validate(ABOUT)
    least = {
        "role": "dev",
        "not_coded": False,
        "pseudonym_key": "k",
        "cases": 3,
        "cohort_digest": "c",
    }
    assert recorded_fields(plain) == least
    more = {"inputs": ["reference", "candidate"], "not_comparable": REASONS}
    full = CohortFile.model_validate({**ABOUT, **more})
    assert recorded_fields(full) == {
        **least,
        "not_comparable": "edema nodule",
        "not_comparable_sha256": digest_json(REASONS),
        "inputs": "reference candidate",
    }
    written = format_cohort_file(plain)
    assert "inputs" not in written and "not_comparable" not in written
    written = format_cohort_file(full)
    assert "inputs:" in written and "not_comparable:" in written


def test_a_cohort_file_is_as_recorded_in_every_field_or_not_at_all() -> None:
    """Without a record it never is; reasons count where the import recorded them."""
    plain = CohortFile.model_validate(ABOUT)
    full = CohortFile.model_validate({**ABOUT, "not_comparable": REASONS})
    other = full.model_copy(update={"not_comparable": {**REASONS, "edema": "else"}})
    pairs = plain.model_copy(update={"inputs": ["reference", "candidate"]})

    def among(added: dict[str, object] | None) -> list[bool]:
        record = None if added is None else CohortRecord(**_record(added))
        return [as_recorded(about, record) for about in (plain, full, other, pairs)]

    assert among(None) == [False, False, False, False]
    assert among(recorded_fields(plain)) == [True, False, False, False]
    assert among({**recorded_fields(plain), "cases": 4}) == [False] * 4
    assert among(recorded_fields(full)) == [False, True, False, False]
    assert among(recorded_fields(pairs)) == [False, False, False, True]
    listed = {**recorded_fields(plain), "not_comparable": "edema nodule"}
    assert among(listed) == [False, True, True, False]
    inputs = {**recorded_fields(plain), "inputs": "text"}
    assert among(inputs) == [True, False, False, False]


def _record(added: dict[str, object]) -> dict[str, object]:
    """Return what a record of ``mine`` holds without any version."""
    return {"name": "mine", "added": added, "references": {}}


@pytest.mark.parametrize(
    "inputs",
    [[], ["candidate", "reference"], ["reference"], ["text", "context"], ["words"]],
)
def test_a_case_holds_a_report_or_a_pair_and_nothing_else(inputs: list[str]) -> None:
    """In their order, with or without what is known of the patient."""
    for known in (
        ["text"],
        ["reference", "candidate"],
        ["reference", "candidate", "context"],
    ):
        given = {**ABOUT, "inputs": known}
        assert CohortFile.model_validate(given).inputs == known
    with pytest.raises(ValueError, match="none of text; reference, candidate"):
        CohortFile.model_validate({**ABOUT, "inputs": inputs})


def test_context_is_no_report() -> None:
    """Age and indication are not compared with the reports of another cohort."""
    texts = {"reference": "One.", "candidate": "Two.", "context": "62, cough"}
    assert report_texts(Item(id="a", variables=texts)) == ("One.", "Two.")
    assert report_texts(Item(id="a", variables={"text": "One."})) == ("One.",)


def test_the_digest_of_cases_tells_ids_texts_and_their_order() -> None:
    """What runs over from an id to its digest, or from a case to the next, differs."""

    def digest(*cases: tuple[str, str]) -> str:
        return cases_digest(CohortCase(name, "p", text) for name, text in cases)

    told = [
        digest(),
        digest(("a", "b")),
        digest(("ab", "")),
        digest(("", "ab")),
        digest(("a", "b"), ("c", "d")),
        digest(("c", "d"), ("a", "b")),
    ]
    assert len(set(told)) == len(told)
    assert digest(("é", "f")) == hashlib.sha256("1:éf\n".encode()).hexdigest()


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ({"text": ""}, True),
        ({"texts": {"reference": "One.", "candidate": ""}}, True),
        ({"texts": {"reference": "One.", "candidate": 2}}, False),
        ({"texts": {}}, False),
        ({"texts": "One."}, False),
        ({"text": 1}, False),
        ({"text": "One.", "language": 1}, False),
        ({"texts": {"reference": "One."}, "language": None}, False),
    ],
)
def test_a_line_of_texts_is_a_report_or_texts_by_name(
    workspace: WorkspacePaths, make_cohort: Maker, line, read
) -> None:
    """An empty report is one as well; whatever else stands there is no text."""
    cohort = make_cohort(ROWS[:1])
    texts = line.get("texts", {"text": line.get("text")})
    (case,) = cohort.cases
    if isinstance(texts, dict) and all(isinstance(t, str) for t in texts.values()):
        case = case._replace(sha256=digest_texts(texts))
    whole = {"case_id": "a1", "language": "en", **line}
    texts_path(workspace, "mine").write_text(json.dumps(whole) + "\n")
    items = iter_items(workspace, replace(cohort, cases=(case,)))
    if not read:
        with pytest.raises(DataError, match=r"line 1: not the text of case 'a1'"):
            list(items)
    else:
        assert [dict(item.variables) for item in items] == [texts]
