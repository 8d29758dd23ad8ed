"""A search from the command line."""

import json

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import history, optimize
from loop.core.errors import DataError
from loop.prompts.catalog import list_drafts
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.status import read_kept
from loop.review.verdict_files import read_verdicts
from loop.run.store import open_store
from tests.optimize.scenes import EFFUSION, LESION, SEARCHER, Bench, hopeless, learnable


@pytest.fixture
def bench(workspace, tmp_path):
    """Give a workspace on which a better wording can be found."""
    made = Bench(workspace, tmp_path)
    made.version()
    made.cohort(learnable())
    return made


def run(bench, *words, verb=optimize):
    """Run a verb; return what it printed."""
    app = typer.Typer(rich_markup_mode=None)
    verb.register(app)
    place = ["--workspace", str(bench.workspace.root)]
    actor = ["--actor", "Dr A. Example"] if verb is optimize else []
    done = CliRunner().invoke(app, [*words, *place, *actor], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_a_search_ends_with_a_draft_to_commit(bench):
    """The three scores, the candidates, the proposals and what to do next."""
    said = run(bench, "tiny", "--with", "terms", "--cohort", "dev")
    for words in (
        "search ",
        "select ",
        "estimate ",
        "candidates tried",
        "term: nodule",
    ):
        assert words in said
    (draft,) = list_drafts(bench.workspace, "tiny")
    assert f"ranloop draft commit tiny@draft:{draft}" in said
    told = run(bench, "tiny", "--events", verb=history)
    assert "searched by Dr A. Example: terms scored" in told


def test_nothing_better_is_a_good_result(bench):
    """It says so and ends with 0, as where there is nothing to search for."""
    bench.cohort(hopeless(1), replace=True)
    assert run(bench, "tiny", "-c", "dev").endswith("no better prompt found\n")
    bench.cohort(learnable(), replace=True)
    bench.version(2, **{EFFUSION: ["collection"], LESION: ["nodul*"]})
    assert run(bench, "tiny", "-c", "dev").endswith(": no label is wrong\n")


def test_a_study_begins_with_any_version_and_writes_a_page(bench, tmp_path):
    """It makes no draft."""
    bench.version(2, **{LESION: ["nodul*"]})
    page = tmp_path / "search.html"
    words = ("tiny@v1", "-c", "dev", "--study", "--accept-all", "--html", str(page))
    assert "all 2 proposals accepted: macro-F1 1.000" in run(bench, *words)
    assert "Search, select, estimate" in page.read_text("utf-8")
    assert not list_drafts(bench.workspace, "tiny")


def test_proposals_become_the_verdicts_of_whoever_accepts_them(bench, tmp_path):
    """A file to go through: what is left of it builds the same draft, with a name."""
    file = tmp_path / "proposals.yaml"
    run(bench, "tiny", "-c", "dev", "--study", "--verdicts", str(file))
    text = file.read_text("utf-8")
    assert "imaged" not in text
    file.write_text(text.replace("- nodule\n", "- nodule or mass\n"), "utf-8")
    told = read_verdicts(file, reviewer="Dr C. Example")
    assert (told.cohort, told.prompt) == ("dev", "tiny@v1")
    assert {one.reviewer for one in told.verdicts} == {"Dr C. Example"}
    request = DraftRequest(prompt="tiny", cohort="dev", verdicts=told.verdicts)
    with open_store(bench.workspace) as store:
        made = begin_draft(bench.workspace, store, request, SEARCHER)
        kept = read_kept(store, bench.workspace, "dev")
    assert made.draft.guide(EFFUSION).terms == ("collection",)
    assert made.draft.guide(LESION).terms == ("nodule or mass",)
    assert len(kept) == 2


def test_json_is_one_object(bench):
    """With what a script needs."""
    data = json.loads(run(bench, "tiny", "-c", "dev", "--study", "--json"))
    assert data["better"]
    assert {one["wording"] for one in data["proposals"]} == {"collection", "nodule"}


def test_a_dry_run_asks_nothing(bench):
    """As a table, and as JSON."""
    said = run(bench, "tiny", "-c", "dev", "--dry-run")
    assert "NOTHING WAS ASKED" in said
    assert "rules     1,740              0" in said
    data = json.loads(run(bench, "tiny", "-c", "dev", "--dry-run", "--json"))
    assert [one["cases"] for one in data["parts"]] == [[36] * 5, [12] * 5, [12] * 5]
    assert not (bench.workspace.private / "optimize").exists()


def test_a_refusal_is_remembered(bench):
    """What is refused is not proposed, now or later."""
    refused = f"{EFFUSION}:term:collection"
    words = ("tiny", "-c", "dev", "--study", "--json")
    data = json.loads(run(bench, *words, "--refuse", refused, "--why", "too broad"))
    assert refused not in [one["id"] for one in data["proposals"]]
    again = json.loads(run(bench, *words))
    assert again["remembered"]


def test_a_page_over_the_workspaces_files_is_refused(bench):
    """Before anything is asked."""
    page = bench.workspace.private / "x.html"
    with pytest.raises(DataError, match="holds the workspace's own files"):
        run(bench, "tiny", "-c", "dev", "--html", str(page))


@pytest.mark.parametrize(
    "words",
    [
        ("--accept-all",),
        ("--with", "nearest", "--study", "--accept-all"),
        ("--with", "nearest", "--refuse", "edema:term:fluid"),
        ("--with", "nearest", "--verdicts", "proposals.yaml"),
    ],
)
def test_options_that_have_no_meaning_are_refused(bench, words):
    """Not ignored, and before anything is done."""
    app = typer.Typer(rich_markup_mode=None)
    optimize.register(app)
    place = ("--workspace", str(bench.workspace.root))
    done = CliRunner().invoke(app, ["tiny", "-c", "dev", *words, *place])
    assert done.exit_code == 2
    assert not (bench.workspace.private / "optimize").exists()


def test_the_help_fits_a_terminal(bench):
    """Of 80 columns."""
    app = typer.Typer(rich_markup_mode=None)
    optimize.register(app)
    said = CliRunner().invoke(app, ["--help"], terminal_width=80).stdout
    assert "--with" in said
    assert max(map(len, said.splitlines())) <= 80
