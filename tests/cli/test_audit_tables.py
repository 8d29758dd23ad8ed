"""The verb ``audit-tables``: published tables in, findings and an exit code out."""

import json

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError
from tests.published.article import write_article

HONEST = "Label,Precision,Recall,F1\nA,0.500,1.000,0.667\n"
WRONG = "Label,Precision,Recall,F1\nA,0.500,1.000,0.700\n"


def call(*arguments):
    """Run the verb."""
    return CliRunner().invoke(app, ["audit-tables", *map(str, arguments)])


@pytest.fixture
def honest(tmp_path):
    """Write a table in which everything holds."""
    path = tmp_path / "honest.csv"
    path.write_text(HONEST, "utf-8")
    return path


def test_exits_with_0_when_all_holds(honest):
    """The last line counts the findings."""
    done = call(honest)
    assert done.exit_code == 0
    assert "0 does not hold" in done.stdout
    assert "F1 from P and R" in done.stdout


def test_exits_with_100_when_something_does_not_hold(tmp_path):
    """With the recomputed number."""
    path = tmp_path / "wrong.csv"
    path.write_text(WRONG, "utf-8")
    done = call(path)
    assert done.exit_code == 100
    assert "printed 0.700, from P and R 0.6667" in done.stdout


def test_a_table_of_which_nothing_could_be_read_does_not_pass(tmp_path):
    """No finding is not the same as nothing wrong."""
    path = tmp_path / "odd.csv"
    path.write_text("Label,System X\nA,good\nB,better\n", "utf-8")
    done = call(path)
    assert isinstance(done.exception, DataError)
    assert "nothing in odd.csv could be checked" in str(done.exception)
    assert "--measure" in str(done.exception)


def test_prints_one_json_object(honest):
    """Findings with their numbers, and how each column was read."""
    data = json.loads(call(honest, "--json").stdout)
    assert data["counts"]["does not hold"] == 0
    assert [column["measure"] for column in data["tables"][0]["columns"]] == [
        "precision", "recall", "f1",
    ]  # fmt: skip
    assert {"check", "table", "subject", "standing", "text", "numbers"} == set(
        data["findings"][0]
    )


def test_the_article_is_audited_with_the_notes_beside_it(tmp_path):
    """No option is needed: article.notes.yaml lies beside article.md."""
    (path,) = write_article(tmp_path, markdown=True)
    done = call(path)
    assert done.exit_code == 100
    assert "105 of 105 intervals are Clopper-Pearson at n = 300" in done.stdout
    assert "So the two headers are swapped." in done.stdout


def test_n_and_measure_stand_in_for_a_caption(tmp_path):
    """Columns of models without a caption."""
    path = tmp_path / "t.csv"
    path.write_text("Label,Model A\nX,0.987\nY,0.988\n", "utf-8")
    assert "Name it with --measure" in call(path).stdout
    done = call(path, "--n", 300, "--measure", "accuracy")
    assert done.exit_code == 100
    assert "Y 0.988 of 300 cases" in done.stdout


def test_documents_are_written_with_all_text_escaped(tmp_path):
    """A name from the table runs neither in a browser nor in Markdown."""
    path, html, out = (tmp_path / name for name in ("t.csv", "t.html", "t.md"))
    path.write_text(WRONG.replace("A,", "a &lt;img src=x&gt; | b,"), "utf-8")
    assert call(path, "--html", html, "--out", out).exit_code == 100
    page = html.read_text("utf-8")
    assert "&lt;img src=x&gt; | b" in page and "<img" not in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "&lt;img src=x> &#124; b" in out.read_text("utf-8")


@pytest.mark.slow
def test_writing_is_the_same_twice(tmp_path):
    """No clock, no order of a set: the same file gives the same bytes."""
    (path,) = write_article(tmp_path, markdown=True)
    pages = []
    for name in ("a.html", "b.html"):
        call(path, "--html", tmp_path / name)
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.parametrize("option", ["--html", "--out"])
def test_the_table_itself_is_not_overwritten(honest, option):
    """A slip of the hand must not cost the input."""
    assert call(honest, option, honest).exit_code == 2
    assert honest.read_text("utf-8") == HONEST


def test_an_unknown_measure_is_a_usage_error(honest):
    """It names the known ones."""
    done = call(honest, "--measure", "speed")
    assert done.exit_code == 2 and "accuracy" in done.output


def test_two_tables_of_one_name_are_refused(honest, tmp_path):
    """A finding must say which table it is about."""
    (tmp_path / "more").mkdir()
    twin = tmp_path / "more" / "honest.csv"
    twin.write_text(HONEST, "utf-8")
    done = call(honest, twin)
    assert isinstance(done.exception, DataError)
    assert "two tables are called" in str(done.exception)


def test_a_missing_file_is_named(tmp_path):
    """The message says what to name instead."""
    done = call(tmp_path / "none.csv")
    assert isinstance(done.exception, DataError)
    assert "is not a file" in str(done.exception)
