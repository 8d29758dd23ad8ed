"""A search from the command line."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import history, optimize
from loop.cli.console import ProgressBar
from loop.cli.main import app as whole_app
from loop.cli.optimize import _print_end
from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.engines import base
from loop.optimize.ground import AgreementGain
from loop.optimize.nested_search import SearchEffort
from loop.optimize.search import SearchRequest, search_prompt
from loop.optimize.search_report import Optimizer
from loop.prompts.catalog import list_drafts
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.status import read_kept
from loop.review.verdict_files import read_verdicts
from loop.run.store import open_store
from loop.stats.resampling import Bootstrap
from tests.optimize.made_task import StubReflector, improvable_cases, make_task
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


FOUND = """\
part      parent  found  above the estimate
--------  ------  -----  ------------------
search     0.000  1.000               0.000
select     0.000  1.000               0.000
estimate   0.000  1.000
estimate, pooled over 60 cases: macro-F1 0.000 to 1.000 [0.873, 1.000], gain +1.000 –
candidates tried: 61; if all were equally good, the best one's accuracy on a label would be
overstated by 5.0 percentage points

asked    engine  requests  stored  prompt tokens  output tokens  cost
-------  ------  --------  ------  -------------  -------------  ----
answers   rules       180       0              –              –     –

label                     proposal  for  against  only this    gain        p
----------------  ----------------  ---  -------  ---------  ------  -------
lung_lesion           term: nodule   15        0         15  +1.000  < 0.001
pleural_effusion  term: collection   20        0         20  +1.000  < 0.001
"""  # noqa: E501
"""Two terms, each of which only ever stands where its label is present."""

NOTHING_BETTER = """\
part      parent  found  above the estimate
--------  ------  -----  ------------------
search     0.000  0.000               0.000
select     0.000  0.000               0.000
estimate   0.000  0.000
estimate, pooled over 60 cases: macro-F1 0.000 to 0.000 [0.000, 0.425], gain 0.000 –
candidates tried: 42; if all were equally good, the best one's accuracy on a label would be
overstated by 4.8 percentage points

asked    engine  requests  stored  prompt tokens  output tokens  cost
-------  ------  --------  ------  -------------  -------------  ----
answers   rules        72       0              –              –     –

label             positives  parent  found
----------------  ---------  ------  -----
lung_lesion              15   0.000  0.000
pleural_effusion         13   0.000  0.000
no better prompt found
"""  # noqa: E501

FORECAST = """\
tiny@v1 on dev with terms: NOTHING WAS ASKED
  cases   60
  labels  all

part      splits  cases  positives of a label
--------  ------  -----  --------------------
search         5     36               9 to 12
select         5     12                3 to 4
estimate       5     12                3 to 4

at most  engine  requests  prompt tokens  output tokens  cost
-------  ------  --------  -------------  -------------  ----
answers   rules     1,260              0              0     -
"""
"""Of 60 cases three fifths are searched; 15 and 20 of them are positive."""


def test_a_search_ends_with_a_draft_to_commit(bench):
    """The three scores, the candidates, the proposals and what to do next."""
    said = run(bench, "tiny", "--with", "terms", "--cohort", "dev")
    (draft,) = list_drafts(bench.workspace, "tiny")
    assert said == FOUND + (
        f"draft tiny@draft:{draft}: its check passed\n"
        f'commit it with `ranloop draft commit tiny@draft:{draft} --why "..."`\n'
    )
    told = run(bench, "tiny", "--events", verb=history)
    assert "searched by Dr A. Example: terms scored" in told


def test_nothing_better_is_a_good_result(bench):
    """It says so and ends with 0, as where there is nothing to search for."""
    bench.cohort(hopeless(1), replace=True)
    assert run(bench, "tiny", "-c", "dev") == NOTHING_BETTER
    bench.cohort(learnable(), replace=True)
    bench.version(2, **{EFFUSION: ["collection"], LESION: ["nodul*"]})
    assert run(bench, "tiny", "-c", "dev").endswith(
        ": no label that can be estimated is wrong\n"
    )


def test_a_study_begins_with_any_version_and_writes_a_page(bench, tmp_path):
    """It makes no draft."""
    bench.version(2, **{LESION: ["nodul*"]})
    page = tmp_path / "search.html"
    words = ("tiny@v1", "-c", "dev", "--study", "--accept-all", "--html", str(page))
    assert run(bench, *words).endswith(
        "\nall 2 proposals accepted: macro-F1 1.000 on the cases that were searched; "
        "no draft: this is a study\n"
    )
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


def test_what_commits_a_draft_is_told_with_what_its_check_says(bench, capsys):
    """Objections need an override, and the command that is shown has one."""
    asked = SearchRequest(prompt="tiny", cohort="dev")
    report = search_prompt(bench.workspace, asked, SEARCHER)
    (draft,) = report.drafts
    _print_end(report, accepted=False)
    command = f"ranloop draft commit {draft.ref} --why"
    assert capsys.readouterr().out.endswith(f'commit it with `{command} "..."`\n')
    draft = draft._replace(objections=("a label may be worse",))
    _print_end(replace(report, drafts=(draft,)), accepted=False)
    told = capsys.readouterr().out
    assert "its check objects\n  - a label may be worse\n" in told
    assert told.endswith(f'commit it anyway with `{command} "..." --override "..."`\n')


@pytest.mark.parametrize(
    ("score", "from_what"),
    [("macro-F1", "more findings"), ("negative distance", "counting fewer errors")],
)
def test_what_a_reader_must_know_of_a_search_is_printed(
    bench, capsys, score, from_what
):
    """One candidate is no choice; a gain in the score alone may come from bias."""
    asked = SearchRequest(prompt="tiny", cohort="dev", study=True)
    report = search_prompt(bench.workspace, asked, SEARCHER)

    def limits(estimate, low, high):
        return Bootstrap(estimate, low, high, 9, 0)

    estimate = replace(
        report.findings.estimate,
        score=score,
        parent=limits(0.25, 0.125, 0.375),
        found=limits(0.75, 0.5, 0.875),
        gain=limits(0.5, 0.25, 0.625),
        kappa_gain=limits(0.125, -0.25, 0.25),
        left_out=1,
        agreement=AgreementGain(
            *("tau-b", "GREEN", "3 raters' points"),
            *(limits(0.5, 0.25, 0.75), limits(0.375, 0.125, 0.625)),
            *(limits(-0.125, -0.25, 0.125), 60),
        ),
    )
    effort = SearchEffort(
        proposed=3, refused=(("too long", 2), ("known", 1)), calls=1, reflections=1
    )
    findings = replace(
        report.findings,
        estimate=estimate,
        kept=(),
        proposals=(),
        scored=1,
        effort=effort,
    )
    known = {"not_estimable": ("edema", "fracture"), "remembered": True}
    optimize._print_report(
        replace(report, findings=findings, stale=("the cohort is new",), **known),
        accepted=True,
    )
    told = capsys.readouterr()
    said = " ".join(told.out.partition("estimate, pooled ")[2].split())
    before, after = said.split("answers rules 180 0 – – –")
    assert before.partition(" asked engine")[0] == (
        f"over 60 cases: {score} 0.250 to 0.750 [0.500, 0.875], gain +0.500 [+0.250, "
        "+0.625] tau-b of GREEN on these: 0.500 [0.250, 0.750] to 0.375 [0.125, "
        "0.625], gain −0.125 [−0.250, +0.125], with 3 raters' points; it does not "
        "influence the search candidates tried: 1 texts proposed: 3, refused: 2 too "
        "long, 1 known; 1 case scored, 1 question answered left out, because the "
        "engine failed: 1 case not estimable, too few positives: edema, fracture"
    )
    assert after == (
        " label positives parent found ---------------- --------- ------ ----- "
        "lung_lesion 15 0.000 1.000 pleural_effusion 20 0.000 1.000 no better prompt "
        f"found the gain in {score} alone is above 0: that in kappa is +0.125 [−0.250, "
        f"+0.250], so it may come from {from_what}"
    )
    assert told.err == (
        "out of date: the cohort is new. Search again.\n"
        "this search was finished before: nothing was asked\n"
    )


def test_json_is_one_object(bench):
    """With what a script needs."""
    data = json.loads(run(bench, "tiny", "-c", "dev", "--study", "--json"))
    assert data["better"]
    assert {one["wording"] for one in data["proposals"]} == {"collection", "nodule"}
    asked = data["asked"]["answers"]
    assert data["asked"].keys() == {"answers"}
    assert (asked["engine"], asked["stored"], asked["cost"]) == ("rules", 0, None)
    assert asked["requests"] > 60
    assert asked["prompt_tokens"] is None


def test_a_dry_run_asks_nothing(bench):
    """As a table, and as JSON."""
    assert run(bench, "tiny", "-c", "dev", "--dry-run") == FORECAST
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
        ("--why", "too wide"),
        ("--dry-run", "--refuse", f"{EFFUSION}:term:collection", "--why", "too wide"),
        ("--dry-run", "--html", "search.html"),
        ("--dry-run", "--verdicts", "proposals.yaml"),
        ("--labels", " , "),
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


@pytest.fixture
def place(workspace, tmp_path, monkeypatch):
    """Return a workspace with the made task, and the stub that reflects."""
    monkeypatch.setitem(base._FACTORIES, "stub", StubReflector)
    monkeypatch.setattr(StubReflector, "asked", ())
    monkeypatch.setattr(StubReflector, "said", "")
    return make_task(workspace, tmp_path, improvable_cases(100))


def call(place, *words):
    """Run the verb in the workspace."""
    options = ("--workspace", str(place.root), "--cohort", "dev")
    return CliRunner().invoke(whole_app, ["optimize", "tiny", *options, *words])


@pytest.mark.slow
def test_a_search_names_its_draft(place):
    """With scores on the three parts side by side, and what it cost."""
    done = call(place, "--with", "gepa", "--reflect", "stub:x", "--budget", "100")
    assert done.exit_code == 0
    (draft,) = list_drafts(place, "tiny")
    assert f"draft tiny@draft:{draft}: its check passed" in done.stdout
    for part in ("search", "select", "estimate"):
        assert f"\n{part}" in done.stdout
    assert "estimate, pooled over 100 cases" in done.stdout
    again = call(place, "--with", "gepa", "--reflect", "stub:x", "--budget", "100")
    assert "finished before: nothing was asked" in again.stderr
    assert again.stdout == done.stdout


@pytest.mark.slow
def test_a_page_says_it_all(place, tmp_path):
    """The three parts, what was tried and refused, and each draft; no wording."""
    page = tmp_path / "search.html"
    words = ("--with", "gepa", "--reflect", "stub:x", "--budget", "100")
    done = call(place, *words, "--html", str(page))
    assert done.exit_code == 0
    text = page.read_text("utf-8")
    (draft,) = list_drafts(place, "tiny")
    for said in (
        "A better wording was found",
        f"tiny@draft:{draft}</code>. Its check has no objections",
        "estimate, pooled",
        "Candidates tried:",
        "questions answered:",
    ):
        assert said in text
    assert "hydrothorax" not in text


@pytest.mark.slow
def test_no_better_guide_is_no_failure(place):
    """It ends with 0 and makes no draft."""
    StubReflector.said = "no idea"
    done = call(place, "--with", "gepa", "--reflect", "stub:x", "--budget", "60")
    assert done.exit_code == 0
    assert "no better prompt found" in done.stdout
    assert "refused" in done.stdout
    assert not list_drafts(place, "tiny")


def test_what_was_refused_is_printed_where_nothing_was_scored(capsys):
    """As of `bootstrap`, which asks about exemplars and no cases."""
    effort = SearchEffort(proposed=2, refused=(("too long", 2),))
    report = SimpleNamespace(findings=SimpleNamespace(effort=effort))
    optimize._print_effort(report)
    assert "texts proposed: 2, refused: 2 too long" in capsys.readouterr().out


def test_the_bar_counts_searches(bench, monkeypatch):
    """One a split, and one more."""
    told = []
    monkeypatch.setattr(ProgressBar, "count", lambda self, *words: told.append(words))
    run(bench, "tiny", "-c", "dev", "--study")
    assert told == [(done, 6) for done in range(1, 7)]


@pytest.mark.parametrize(
    ("words", "requests"),
    [
        # The version on 100 cases, 2 x 8 wordings on them, 10 for the Pareto set, and
        # in six searches 3 wordings on `select` and on `search`.
        (("--with", "nearest"), 100 + 1600 + 1000 + 5 * 3 * 80 + 3 * 100),
        (("--with", "nearest", "--labels", "cardiomegaly"), 2700 + 5 * 2 * 80 + 200),
        # A budget of one case is overrun by two minibatches of 6 and by `select`.
        (
            ("--with", "gepa", "--reflect", "openai:m", "--budget", "1"),
            2700 + 6 * (1 + 12 + 20) + 5 * 60 + 80,
        ),
    ],
)
def test_a_forecast_is_an_upper_bound(place, words, requests):
    """Of what every search may ask, ties and the overrun of GEPA included."""
    data = json.loads(call(place, *words, "--dry-run", "--json").stdout)
    assert data["answering"]["requests"] == requests


@pytest.mark.slow
def test_json_holds_what_is_printed(place):
    """For scripts."""
    words = ("--with", "gepa", "--reflect", "stub:x", "--budget", "100", "--json")
    data = json.loads(call(place, *words).stdout)
    assert data["better"]
    assert data["estimate"]["gain"]["low"] > 0
    assert [one["objections"] for one in data["drafts"]] == [[]]
    assert data["effort"]["reflections"] > 0


@pytest.mark.parametrize("optimizer", list(Optimizer))
@pytest.mark.slow
def test_no_optimizer_asks_in_a_dry_run(place, optimizer):
    """It says splits, requests, tokens and cost, and leaves nothing behind."""
    before = read_ledger(place.ledger)
    reflect = ("--reflect", "openai:m") if optimizer.reflects else ()
    unnamed = call(place, "--with", optimizer, "--dry-run")
    assert unnamed.exit_code == 0
    assert ("any, with --reflect" in unnamed.stdout) is bool(reflect)
    done = call(place, "--with", optimizer, "--dry-run", *reflect)
    assert done.exit_code == 0
    assert "NOTHING WAS ASKED" in done.stdout
    assert ("proposes" in done.stdout) is bool(reflect)
    assert read_ledger(place.ledger) == before
    assert not (place.private / "optimize").exists()
    data = json.loads(
        call(place, "--with", optimizer, "--dry-run", *reflect, "--json").stdout
    )
    assert data["answering"]["requests"] >= 100 * 6
    assert [part["name"] for part in data["parts"]] == ["search", "select", "estimate"]
    assert bool(data["reflecting"]) is bool(reflect)


@pytest.mark.slow
def test_a_price_makes_a_cost(place):
    """Of both engines, as the settings say."""
    place.open_private()
    place.config.write_text("prices:\n  m:\n    input: 2\n    output: 8\n", "utf-8")
    words = ("--with", "gepa", "-e", "openai:m", "--reflect", "openai:m", "--dry-run")
    data = json.loads(call(place, *words, "--json").stdout)
    assert data["answering"]["cost"] > data["reflecting"]["cost"] > 0
    assert "USD" in call(place, *words).stdout


@pytest.mark.slow
def test_rules_cannot_reflect(place):
    """Before anything is asked, dry or not."""
    for more in ((), ("--dry-run",)):
        done = call(place, "--with", "gepa", "--reflect", "rules", *more)
        assert done.exit_code != 0
        assert "terms, bootstrap, nearest" in str(done.exception)
