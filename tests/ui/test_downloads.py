"""Files out: made for whoever may have them, and kept nowhere."""

import csv
import io

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.people.roster import add_user
from loop.core.people.users import Right, UserRole
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.review.verdict_files import ImportDefaults, read_verdicts, take_file
from loop.run.store import open_store
from loop.ui.access.rules import find_rule
from loop.ui.documents import DOCUMENTS
from loop.ui.downloads import PATH, add_downloads
from loop.ui.pages import overview
from tests.ui.conftest import PASSWORD
from tests.ui.visits import enter, opened, visit

VERDICTS = """cohort: demo_dev
reviewer: Dr A
verdicts:
- {case: demo-dev-001, label: pneumothorax, judgement: model_wrong, comment: "=1+1"}
"""
HERE = {"prompt": "extractor", "cohort": "demo_dev"}


@pytest.fixture
def app():
    """Return an application without anything else."""
    return FastAPI()


@pytest.fixture
def client(demo, app):
    """Return a client of the person who works alone on the demo."""
    with opened(demo) as desk:
        add_downloads(app, desk)
        with TestClient(app) as client:
            yield client


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_every_document_comes_as_a_file_that_nobody_keeps(client, demo, name, tmp_path):
    """An attachment, not stored, not sniffed, without rights in the browser."""
    path = tmp_path / "round.yaml"
    path.write_text(VERDICTS)
    with open_store(demo) as store:
        take_file(demo, store, path, ImportDefaults("Dr A"))
    answer = client.get(f"/download/{name}", params=HERE)
    assert answer.status_code == 200, answer.text
    headers = answer.headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in headers["content-security-policy"]
    assert headers["content-disposition"].startswith("attachment; filename=")
    assert len(answer.content) > 100


def test_a_refusal_does_not_say_where_the_workspace_lies(client, demo):
    """It names the file all the same, as whoever runs ranloop knows it."""
    path = demo.root / "labels" / "cohorts" / "demo_dev" / "cohort.yaml"
    path.write_text("name: [", "utf-8")
    answer = client.get("/download/gates.csv", params=HERE)
    assert answer.status_code == 409
    assert str(path.relative_to(demo.root)) in answer.text
    assert str(demo.root) not in answer.text


def test_a_table_has_the_mark_that_excel_needs(client):
    """Without it names in Chinese come out as rubbish."""
    answer = client.get("/download/gates.csv", params=HERE)
    assert answer.content.startswith(b"\xef\xbb\xbflabel,")
    rows = csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"), newline=""))
    assert len(list(rows)) == 21


@pytest.mark.parametrize(
    "name", ["verdicts-with-notes.csv", "verdicts-with-notes.yaml"]
)
def test_verdicts_that_were_taken_out_can_be_brought_in_again(
    client, demo, name, tmp_path
):
    """The formula in a comment is defused in the table, and itself again when read."""
    path = tmp_path / "round.yaml"
    path.write_text(VERDICTS)
    with open_store(demo) as store:
        take_file(demo, store, path, ImportDefaults("Dr A"))
    answer = client.get(f"/download/{name}", params=HERE)
    if name.endswith("csv"):
        assert "'=1+1" in answer.text
    (tmp_path / name).write_bytes(answer.content)
    assert read_verdicts(tmp_path / name).verdicts == read_verdicts(path).verdicts


@pytest.mark.parametrize("name", ["verdicts.csv", "verdicts.yaml"])
def test_notes_are_taken_out_only_when_asked_for(client, demo, name, tmp_path):
    """A note was written for the team, and a file goes further."""
    path = tmp_path / "round.yaml"
    path.write_text(VERDICTS)
    with open_store(demo) as store:
        take_file(demo, store, path, ImportDefaults("Dr A"))
    answer = client.get(f"/download/{name}", params=HERE)
    assert answer.status_code == 200
    assert "=1+1" not in answer.text


@pytest.mark.parametrize(
    ("name", "asked", "status"),
    [
        ("../store.db", HERE, 404),
        ("secrets.csv", HERE, 404),
        ("gates.csv", HERE | {"cohort": "../../x"}, 409),
        ("gates.csv", HERE | {"prompt": "<script>alert(1)</script>"}, 409),
        ("gates.csv", {}, 409),
        ("gates.csv", HERE | {"cohort": "demo_holdout"}, 409),
        ("verdicts.csv", HERE, 409),
    ],
)
def test_what_is_not_there_is_refused_in_words(client, name, asked, status):
    """Names are looked up, never used; nothing of them comes back."""
    answer = client.get(f"/download/{name}", params=asked)
    assert answer.status_code == status
    assert "<script>alert" not in answer.text
    if "/" not in name:
        assert "Back to the workbench" in answer.text


def test_a_broken_ledger_can_still_be_taken_out(client, demo):
    """It is what one needs to see then."""
    with demo.ledger.open("a") as stream:
        stream.write("broken\n")
    answer = client.get("/download/ledger.jsonl")
    assert answer.status_code == 200
    assert answer.text.endswith("broken\n")


@pytest.mark.slow
def test_rights_are_asked_of_the_session(demo, app):
    """A reader gets nothing, a reviewer no holdout, nobody without a session."""
    add_user(demo, "Dr Reader", (UserRole.READER,), PASSWORD)
    add_user(demo, "Dr Reviewer", (UserRole.REVIEWER,), PASSWORD)
    with opened(demo, sign_in=True) as desk:
        add_downloads(app, desk)
        with TestClient(app) as client:

            def ask(name, cohort="demo_dev"):
                token = desk.access.enter(name, PASSWORD, "").token if name else "x"
                client.cookies.clear()
                client.cookies.set("ranloop-80", token)
                return client.get(
                    "/download/gates.csv", params=HERE | {"cohort": cohort}
                )

            assert ask("").status_code == 403
            refused = ask("Dr Reader")
            assert refused.status_code == 403
            assert "takes the role" in refused.text
            assert ask("Dr Reviewer").status_code == 200
            assert "no such cohort" in ask("Dr Reviewer", "demo_holdout").text


@pytest.mark.slow
def test_the_browser_gets_the_file_and_stays_on_the_page(shared_alone, new_page):
    """A click downloads; the page is as it was."""
    page = new_page()
    enter(page, shared_alone, "Files")
    page.wait_for_selector("#files-out table.shelves")
    with page.expect_download() as download:
        page.get_by_role("link", name="Gate table as CSV").click()
    assert download.value.suggested_filename == "extractor-demo_dev-gates.csv"
    assert page.locator("#files-out table.shelves").is_visible()


@pytest.mark.slow
def test_nothing_tells_how_a_model_does_on_a_holdout(client, demo, tmp_path):
    """It decides a release: who reads it blind and reviews elsewhere must not peek."""
    close_cohort(demo, tmp_path)
    documents = ("gates.csv", "evaluation.html", "evaluation.md", "failures.csv")
    for name in (*documents, "labels.csv", "labels.parquet", "labels.xlsx"):
        answer = client.get(f"/download/{name}", params=HERE)
        assert answer.status_code == 409, name
        assert "holdout" in answer.text
    with opened(demo) as desk, pytest.raises(DataError, match="holdout"):
        overview.refresh(visit(desk), **HERE)


def close_cohort(workspace, folder):
    """Import other texts, as a holdout, under the name of the cohort that was run."""
    path = folder / "again.jsonl"
    path.write_text('{"case_id": "a", "text": "Normal heart."}\n')
    again = ImportOptions(
        name=HERE["cohort"],
        role="holdout",
        source="written for a test",
        licence="CC0-1.0",
        replace=True,
        reason="closed",
    )
    import_cohort(workspace, path, again, actor=Actor(name="Dr A", role="editor"))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_is_let_through_the_gate(name):
    """A link under Files that leads nowhere would be found by its user."""
    assert find_rule("GET", f"{PATH}{name}").right is Right.EXPORT
