"""Files in: checked first, imported when confirmed, deleted in any case."""

import json
import re
import shutil
import zlib
from dataclasses import replace
from types import SimpleNamespace

import httpx
import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import read_ledger
from loop.core.people.users import Right, UserRole
from loop.labels.cohort import CohortRole, list_cohorts, read_cohort_file
from loop.labels.reference import list_references
from loop.review.status import read_kept
from loop.ui.pages.files import events, view
from loop.ui.pages.files.state import ImportKind, find_progress
from loop.ui.uploads import open_inbox
from tests.ui.conftest import barriers, sign_in
from tests.ui.visits import SESSION, choose_cohort, enter, opened, until, visit

SITE = """case_id,text,patient,Pneumothorax
x1,Clear lungs. No pneumothorax.,p1,absent
x2,,p2,absent
x3,clear lungs no pneumothorax,p3,absent
"""
VERDICTS = """cohort: demo_dev
verdicts:
- {case: CASE, label: pneumothorax, judgement: model_wrong, comment: "<b>secret</b>"}
"""
WRONG = {
    "program.csv": (b"MZ\x90\x00\x03" * 50, "NUL byte"),
    "wide.csv": ("case_id,text\n".encode("utf-16"), "UTF-16"),
    "latin.csv": (b"case_id,text\na,caf\xe9 \xff\n", "neither UTF-8 nor GBK"),
    "nothing.csv": (b"", "is empty"),
    "header.csv": (b"case_id,text\n", "no case to import"),
    "ragged.csv": (b"case_id,text\na,b,c\n", "line 2"),
    "no_ids.csv": (b"words,text\na,b\n", "line 1"),
    "broken.parquet": (b"PAR1 not really", "cannot be read as Parquet"),
    "broken.jsonl": (b'{"case_id": 1', "line 1"),
    "picture.png": (b"\x89PNG", "cannot tell its format"),
}


@pytest.fixture
def context(demo):
    """Return a context on the demo, ready for uploads."""
    open_inbox(demo)
    with opened(demo) as context:
        yield context


def upload(context, name, content):
    """Put a file where uploads of the session lie; return its id."""
    upload_id = f"{zlib.crc32(name.encode()):032x}"
    folder = context.workspace.private / "uploads" / SESSION / upload_id
    folder.mkdir(parents=True)
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(raw)
    return upload_id


def editor(context):
    """Return the visit of an editor."""
    return visit(context, UserRole.EDITOR, right=Right.IMPORT, name="Dr E")


def cohort_form(file, name="site_b", role="external", **more):
    """Return what the form for a cohort sends; untouched boxes send nothing."""
    fields = events.CohortForm._field_defaults | dict.fromkeys(
        events.CohortForm._fields
    )
    return [*(fields | {"file": file, "name": name, "role": role} | more).values()]


def said(guest, kind):
    """Wait until an upload is no longer under way; return what is said of it."""
    until(lambda: find_progress(guest, kind).finished)
    return events.show_step(guest, kind)[0]


def private_files(context):
    """Return the names of files that wait, or were forgotten."""
    folders = ("uploads", "trials")
    return [
        path.name
        for folder in folders
        for path in (context.workspace.private / folder).rglob("*")
        if path.is_file()
    ]


def test_a_cohort_is_checked_then_imported_then_deleted(context):
    """Nothing changes before the word, and the file is gone after it."""
    guest, entries = editor(context), len(read_ledger(context.workspace.ledger))
    events.check_cohort(guest, *cohort_form(upload(context, "site.csv", SITE)))
    checked = said(guest, ImportKind.COHORT)
    assert "site.csv was checked" in checked
    assert "Nothing has been changed yet" in checked
    assert "no findings and no impression: 1" in checked
    assert "duplicate texts, kept: 1" in checked
    assert "site_b" not in list_cohorts(context.workspace)
    assert len(read_ledger(context.workspace.ledger)) == entries
    events.import_it(guest, ImportKind.COHORT)
    assert "Cohort site_b is there" in said(guest, ImportKind.COHORT)
    assert read_cohort_file(context.workspace, "site_b").role == "external"
    assert read_ledger(context.workspace.ledger)[-1].actor == "Dr E"
    assert private_files(context) == []


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_by_name_and_nothing_stays(context, name):
    """The message says where and what to do; nothing was changed."""
    content, message = WRONG[name]
    guest, before = editor(context), list_cohorts(context.workspace)
    events.check_cohort(guest, *cohort_form(upload(context, name, content)))
    refused = said(guest, ImportKind.COHORT)
    assert message in refused
    assert name in refused
    assert "Nothing was changed" in refused
    assert str(context.workspace.private) not in refused
    assert list_cohorts(context.workspace) == before
    assert private_files(context) == []
    with pytest.raises(DataError, match="Upload it again"):
        events.import_it(guest, ImportKind.COHORT)


def test_what_is_shared_with_another_cohort_is_said_before(context):
    """A case of the holdout in a development file is caught here."""
    case = context.workspace.private / "cases" / "demo_holdout.jsonl"
    case_id = json.loads(case.read_text().splitlines()[0])["case_id"]
    text = f"case_id,text\n{case_id},Clear lungs.\n"
    guest = editor(context)
    events.check_cohort(guest, *cohort_form(upload(context, "a.csv", text), role="dev"))
    checked = said(guest, ImportKind.COHORT)
    assert "demo_holdout: shares" in checked
    assert case_id in checked


def test_hostile_content_of_a_file_is_never_shown_as_markup(context):
    """Ids and column names come from the file; texts never come back at all."""
    text = "case_id,text,<script>x</script>\n<b>1</b>,,y\na,Clear <i>x</i>.,z\n"
    guest = editor(context)
    events.check_cohort(guest, *cohort_form(upload(context, "a.csv", text)))
    checked = said(guest, ImportKind.COHORT)
    assert "&lt;script&gt;" in checked
    assert "<script>" not in checked
    assert "&lt;b&gt;1&lt;/b&gt;" in checked
    assert "Clear" not in checked


def test_discarding_deletes_the_file(context):
    """What was checked and is not wanted does not stay."""
    guest = editor(context)
    events.check_cohort(guest, *cohort_form(upload(context, "site.csv", SITE)))
    said(guest, ImportKind.COHORT)
    assert private_files(context) == ["site.csv"]
    assert events.discard_it(guest, ImportKind.COHORT)[0] == ""
    assert private_files(context) == []


def test_a_new_check_takes_the_place_of_the_last(context):
    """Of one kind, one file waits for each person."""
    guest = editor(context)
    for name in ("one.csv", "two.csv"):
        events.check_cohort(guest, *cohort_form(upload(context, name, SITE)))
        said(guest, ImportKind.COHORT)
    assert private_files(context) == ["two.csv"]


def test_two_people_see_and_import_only_their_own(context):
    """What one checked is not offered to another."""
    guest = editor(context)
    other = visit(context, UserRole.ADMIN, right=Right.IMPORT, name="Dr F")
    events.check_cohort(guest, *cohort_form(upload(context, "site.csv", SITE)))
    said(guest, ImportKind.COHORT)
    assert events.show_step(other, ImportKind.COHORT)[0] == ""
    with pytest.raises(DataError):
        events.import_it(other, ImportKind.COHORT)


def test_two_clicks_import_once(context):
    """A double click does not import a cohort twice."""
    guest = editor(context)
    events.check_cohort(guest, *cohort_form(upload(context, "site.csv", SITE)))
    said(guest, ImportKind.COHORT)
    events.import_it(guest, ImportKind.COHORT)
    with pytest.raises((ConflictError, DataError)):
        events.import_it(guest, ImportKind.COHORT)
    said(guest, ImportKind.COHORT)
    entries = read_ledger(context.workspace.ledger)
    assert sum(one.subject == "site_b" for one in entries) == 1


def test_without_a_file_the_form_says_so(context):
    """Instead of a fault."""
    with pytest.raises(DataError, match="no file is chosen"):
        events.check_cohort(editor(context), *cohort_form(None))


def test_a_wrong_option_can_be_corrected_without_uploading_again(context):
    """The file stays with the form that was refused."""
    guest, file = editor(context), upload(context, "site.csv", SITE)
    with pytest.raises(DataError, match="unknown encoding"):
        events.check_cohort(guest, *cohort_form(file, encoding="klingon"))
    events.check_cohort(guest, *cohort_form(file))
    assert "site.csv was checked" in said(guest, ImportKind.COHORT)


def test_a_file_of_another_session_is_not_found(context):
    """Also where the same person has signed in twice."""
    file = upload(context, "site.csv", SITE)
    stranger = replace(editor(context), session="another")
    with pytest.raises(DataError, match="not there any more"):
        events.check_cohort(stranger, *cohort_form(file))


@pytest.mark.slow
def test_votes_make_the_next_reference(context):
    """New readers are added, and the summary says what changes."""
    source = context.workspace.cohorts / "demo_dev" / "votes.csv"
    rows = source.read_text().splitlines()
    mine = [rows[0], *(f"r9,{row.partition(',')[2]}" for row in rows[1:40:6])]
    guest, before = editor(context), list_references(context.workspace, "demo_dev")
    file = upload(context, "votes.csv", "\n".join(mine) + "\n")
    events.check_votes(guest, file, "demo_dev", " 7 ", None, None)
    assert "new readers: r9" in said(guest, ImportKind.VOTES)
    assert list_references(context.workspace, "demo_dev") == before
    events.import_it(guest, ImportKind.VOTES)
    assert "is reference version 2" in said(guest, ImportKind.VOTES)
    assert len(list_references(context.workspace, "demo_dev")) == len(before) + 1


def test_votes_for_unknown_cases_are_refused_with_their_line(context):
    """A file for another cohort."""
    guest = editor(context)
    text = "reader,case_id,label,value\nr1,nope,Pneumothorax,present\n"
    events.check_votes(guest, upload(context, "v.csv", text), "demo_dev", "", False, "")
    refused = said(guest, ImportKind.VOTES)
    assert "v.csv, line 2" in refused
    assert "no case" in refused


@pytest.mark.parametrize("need", ["x", "0", "-1", "2.5", "\u0664"])
def test_a_majority_that_is_no_number_is_refused(context, need):
    """Only whole numbers from one on."""
    file = upload(context, "v.csv", "reader,case_id,label,value\n")
    with pytest.raises(DataError, match="not a number from 1"):
        events.check_votes(editor(context), file, "demo_dev", need, False, "")


def test_verdicts_are_kept_as_open_ones_once_confirmed(context):
    """Their comments stay private: the summary does not show them."""
    texts = (context.workspace.private / "cases" / "demo_dev.jsonl").read_text()
    case_id = json.loads(texts.splitlines()[0])["case_id"]
    guest = editor(context)
    file = upload(context, "round.yaml", VERDICTS.replace("CASE", case_id))
    events.check_verdicts(guest, file, "", None)
    checked = said(guest, ImportKind.VERDICTS)
    assert "open verdicts on demo_dev" in checked
    assert "Dr E" in checked
    assert "secret" not in checked
    assert read_kept(context.store, context.workspace, "demo_dev") == ()
    events.import_it(guest, ImportKind.VERDICTS)
    assert "Its verdicts wait under Revise" in said(guest, ImportKind.VERDICTS)
    (kept,) = read_kept(context.store, context.workspace, "demo_dev")
    assert kept.verdict.reviewer == "Dr E"
    assert private_files(context) == []


def test_what_cannot_be_exported_says_why(context):
    """A link that leads nowhere is not offered."""
    shutil.rmtree(context.workspace.cohorts / "demo_dev")
    out, *_ = events.refresh(
        visit(context, right=Right.EXPORT), "extractor", "demo_dev"
    )
    assert "the cohort is not as recorded" in out
    out, *_ = events.refresh(
        visit(context, right=Right.EXPORT), "extractor", "demo_holdout"
    )
    assert "no finished run yet" in out
    assert "no verdict yet" in out
    assert "gates.csv" not in out


def test_who_may_not_import_sees_no_form(context):
    """A reviewer exports files and imports none."""
    reviewer = visit(context, UserRole.REVIEWER, right=Right.EXPORT)
    out, section, *_ = events.refresh(reviewer, "extractor", "demo_dev")
    assert "gates.csv" in out
    assert section.visible is False


@pytest.mark.slow
def test_the_page_says_export_and_import_and_how_long_an_upload_is_kept(
    shared_alone, new_page
):
    """The usual words, and no file that stays behind unknown to who sent it."""
    page = new_page()
    enter(page, shared_alone, "Files")
    page.wait_for_selector("#files-out table.shelves")
    text = page.inner_text("#pages")
    assert re.search("^Export$", text, re.M) and re.search("^Import$", text, re.M)
    assert "deleted when your session ends" in text and "200 MB" in text
    assert not re.search("take out|taken out|bring in|brought in", text, re.I)


@pytest.mark.slow
def test_a_reviewer_cannot_import_by_hand(shared, new_page):
    """Neither upload nor check nor import, by their names."""
    page = new_page()
    sign_in(page, shared, "Dr Reviewer")
    jar = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    with httpx.Client(
        base_url=shared, cookies=jar, headers={"Origin": shared}
    ) as client:
        sent = client.post("/upload?name=a.csv", content=b"x")
        assert sent.status_code == 403
        for name in ("import_cohort", "discard_votes", "poll_verdicts"):
            answer = client.post(f"/gradio_api/run/{name}", json={"data": []})
            assert "takes the role" in answer.text, name


@pytest.mark.slow
def test_no_serious_barrier(shared_alone, new_page):
    """Readable for everyone, in both themes and sizes, without scrolling sideways."""
    page = new_page()
    enter(page, shared_alone, "Files")
    page.wait_for_selector("#files-out table.shelves")
    assert barriers(page) == []
    assert page.complaints == []


@pytest.mark.slow
def test_a_cohort_is_imported_with_the_browser(served_alone, new_page, tmp_path):
    """Check, reload, import; then it can be chosen at the top of the page."""
    (tmp_path / "site.csv").write_text(SITE)
    page = new_page()
    enter(page, served_alone, "Files")
    page.fill("#cohort-name input, #cohort-name textarea", "site_b")
    page.set_input_files("#cohort-file input[type=file]", tmp_path / "site.csv")
    page.wait_for_selector("#cohort-file [data-state=there]")
    page.click("#cohort-check")
    page.wait_for_selector("#cohort-said .found")
    enter(page, served_alone, "Files")
    page.wait_for_selector("#cohort-said .found")
    page.click("#cohort-import")
    page.wait_for_selector("#cohort-said .is-done")
    choose_cohort(page, "site_b")
    assert page.complaints == []


@pytest.mark.parametrize(
    ("role", "said"),
    [
        (CohortRole.HOLDOUT, "never: a holdout's cases stay unseen"),
        (CohortRole.DEV, ""),
    ],
)
def test_only_a_holdout_is_closed_for_good(context, monkeypatch, role, said):
    """Whoever looks for its failing cases is told why there are none."""
    monkeypatch.setattr(view, "read_cohort", lambda *_: SimpleNamespace(role=role))
    assert view._closed(context, "any") == said


def test_what_the_check_takes_each_column_for_is_shown_before(context):
    """A wrong column is seen before anything is imported, and named in a field."""
    text = "Nr,Befund,text\na,Clear lungs.,short\n"
    guest = editor(context)
    events.check_cohort(guest, *cohort_form(upload(context, "a.csv", text)))
    assert "field “Column of the case ids”" in said(guest, ImportKind.COHORT)
    form = cohort_form(
        upload(context, "b.csv", text), id_column="Nr", text_column="Befund"
    )
    events.check_cohort(guest, *form)
    checked = re.sub(r"<[^>]*>", "", said(guest, ImportKind.COHORT))
    assert "columns taken: Befund as text, Nr as case id" in checked
    assert "columns not used: text" in checked


def test_a_table_of_pairs_needs_no_command_line(context):
    """Columns of any names, and a part of it."""
    text = "case_id,Wahr,Modell,Name\n" + "".join(
        f"p{n},Left effusion {n}.,Right effusion {n}.,m{n % 2}\n" for n in range(8)
    )
    guest = editor(context)
    form = cohort_form(
        upload(context, "a.csv", text),
        role="dev",
        reference_column="Wahr",
        candidate_column="Modell",
        system_column="Name",
        part="1/2",
    )
    events.check_cohort(guest, *form)
    checked = re.sub(r"<[^>]*>", "", said(guest, ImportKind.COHORT))
    assert "Wahr as reference" in checked and "Modell as candidate" in checked
    events.import_it(guest, ImportKind.COHORT)
    said(guest, ImportKind.COHORT)
    about = read_cohort_file(context.workspace, "site_b")
    assert about.inputs == ["reference", "candidate"]
    assert about.cases == 4


def test_a_file_as_it_comes_needs_no_command_line(context):
    """No ids, exact copies, and words of another language in the label cells."""
    text = "text,Pneumothorax\nClear.,nein\nClear.,nein\nAir.,ja\n"
    guest = editor(context)
    more = {"number_rows": True, "drop_duplicates": True}
    form = cohort_form(upload(context, "a.csv", text), **more, values="ja = present")
    events.check_cohort(guest, *form)
    refused = said(guest, ImportKind.COHORT)
    assert "the field “What words of label cells mean”" in refused
    more["values"] = "ja=present\n\nnein=absent\n"
    events.check_cohort(guest, *cohort_form(upload(context, "b.csv", text), **more))
    checked = said(guest, ImportKind.COHORT)
    assert "the rows are numbered" in checked
    assert "left out, exact duplicate" in checked
    events.import_it(guest, ImportKind.COHORT)
    said(guest, ImportKind.COHORT)
    assert read_cohort_file(context.workspace, "site_b").cases == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [("ja", "write WORD=VALUE"), ("ja=present\nja=absent", "two meanings")],
)
def test_a_meaning_that_is_none_is_refused_at_once(context, values, message):
    """Before the file is looked at; it is deleted when the next one comes."""
    form = cohort_form(upload(context, "a.csv", SITE), values=values)
    with pytest.raises(DataError, match=message):
        events.check_cohort(editor(context), *form)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("headerless.csv", "x1,Clear lungs with MARKERWORD.,absent\n", "line 1"),
        ("huge.csv", f"case_id,text\na,{'MARKERWORD ' * 150_000}\n", "line 2"),
        ("binary.xlsx", b"\x00MARKERWORD\xff" * 99, "binary.xlsx"),
    ],
)
def test_no_refusal_shows_what_stands_in_a_cell(context, name, content, message):
    """A headerless table, a cell without an end, and no table at all."""
    guest = editor(context)
    events.check_cohort(guest, *cohort_form(upload(context, name, content)))
    refused = said(guest, ImportKind.COHORT)
    assert message in refused
    assert "MARKERWORD" not in refused
    assert private_files(context) == []


def test_a_command_in_a_message_stays_a_command():
    """Only what is an option of this form becomes its field."""
    told = "use --replace, or `ranloop cohort votes dev FILE --replace`."
    shown = view._in_fields(told, ImportKind.VOTES)
    assert shown.startswith("use the box “Replace all earlier votes”, or `ranloop ")
    assert shown.endswith("FILE --replace`.")
    assert view._in_fields(told, ImportKind.VERDICTS) == told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("verdicts.yaml", "YAML"),
        ("verdicts-with-notes.csv", "CSV with notes"),
        ("labels.parquet", "PARQUET"),
    ],
)
def test_a_link_says_which_form_a_file_has(name, told):
    """And whether it holds the notes of reviewers."""
    assert view._format_of(name) == told
