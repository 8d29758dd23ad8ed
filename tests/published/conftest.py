"""The published article, audited once for all its facts."""

import pytest

from loop.published.claims import read_notes
from loop.published.table_audit import audit_tables, read_tables
from tests.published.article import write_article


@pytest.fixture(scope="session", params=["csv", "markdown"])
def article(request, tmp_path_factory):
    """Return the audit of the five published tables, from CSV and from Markdown."""
    folder = tmp_path_factory.mktemp("article")
    paths = write_article(folder, markdown=request.param == "markdown")
    notes = read_notes(folder / "article.notes.yaml")
    return audit_tables(read_tables(paths, notes), notes)
