"""The verb ``run`` on the command line."""

import json

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import run as verb
from loop.core.errors import DataError, EngineError
from loop.core.ledger import Actor
from loop.core.records import Completion
from loop.engines import base
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions


@pytest.fixture
def app():
    """Return an app with this verb and a second one, as the real one has."""
    app = typer.Typer()
    app.callback()(lambda: None)
    verb.register(app)
    return app


@pytest.fixture
def cohort(workspace, tmp_path):
    """Import three cases."""
    source = tmp_path / "small.csv"
    texts = ["Small left pleural effusion.", "No acute disease seen.", "Lungs clear."]
    rows = [f"c{number},{text}" for number, text in enumerate(texts)]
    source.write_text("\n".join(["case_id,text", *rows]) + "\n")
    options = ImportOptions(name="small", role="dev", source="test", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="t"))
    return ["run", "extractor", "--cohort", "small", "-w", str(workspace.root)]


def test_counts_are_printed(app, cohort):
    """Every outcome and what came from the store."""
    first = CliRunner().invoke(app, cohort)
    assert first.exit_code == 0, first.output
    assert "answered       3" in first.stdout
    assert "asked          3 (from the store: 0)" in first.stdout
    again = CliRunner().invoke(app, cohort)
    assert "asked          0 (from the store: 3)" in again.stdout
    assert "cases/s" in again.stdout


def test_json_is_one_object_and_nothing_else(app, cohort):
    """Scripts read stdout; progress goes elsewhere."""
    result = CliRunner().invoke(app, [*cohort, "--json", "--limit", "2"])
    printed = json.loads(result.stdout)
    assert (printed["items"], printed["answered"]) == (2, 2)
    assert printed["prompt"].startswith("extractor@v")
    assert printed["cohort"] == "small"


@pytest.fixture
def mixed(workspace, tmp_path, cohort):
    """Return a function that runs cases in the languages named."""

    def run(*languages):
        source = tmp_path / "mixed.csv"
        rows = [f"m{n},Pleural effusion {n}.,{one}" for n, one in enumerate(languages)]
        source.write_text("\n".join(["case_id,text,language", *rows]) + "\n")
        options = ImportOptions(name="mixed", role="dev", source="-", licence="-")
        import_cohort(workspace, source, options, actor=Actor(name="t"))
        return [*cohort[:3], "mixed", *cohort[4:]]

    return run


def test_cases_that_the_engine_cannot_read_are_counted_before_it_is_asked(app, mixed):
    """Once, by language, with the way on; a part without them says nothing."""
    arguments = mixed("en", "de", "fr", "de", "und")
    found = CliRunner().invoke(app, [*arguments, "--json"])
    told = (
        "rules reads en, zh (labels/cues/), and 4 of 5 cases are in de (2), fr (1), a "
        "language that was not recognised (1): these get no answer. Ask a language "
        "model with --engine"
    )
    assert told in " ".join(found.stderr.split())
    assert "labels/cues/LANGUAGE.yaml" in found.stderr
    assert json.loads(found.stdout)["answered"] == 1
    part = CliRunner().invoke(app, [*arguments, "--json", "--limit", "1"])
    assert part.exit_code == 0 and "reads" not in part.stderr


def test_cases_in_several_languages_none_of_which_is_read_are_refused(
    app, mixed, workspace
):
    """Before any is asked, and before anything is recorded."""
    arguments = mixed("de", "fr", "de")
    before = workspace.ledger.read_bytes()
    found = CliRunner().invoke(app, arguments)
    assert isinstance(found.exception, EngineError)
    assert "the cases of mixed are in de (2), fr (1). Ask" in str(found.exception)
    assert "a column `language`" in str(found.exception)
    assert workspace.ledger.read_bytes() == before


def test_an_unknown_cohort_is_an_error_of_ours(app, cohort):
    """The entry point prints it without a traceback and exits with 1."""
    cohort[3] = "nowhere"
    result = CliRunner().invoke(app, cohort)
    assert isinstance(result.exception, DataError)


def test_a_limit_of_zero_is_a_usage_error(app, cohort):
    """Exit code 2 is for the command line itself."""
    assert CliRunner().invoke(app, [*cohort, "--limit", "0"]).exit_code == 2


class Costly:
    """Answers with token counts; the case c1 fails."""

    def __init__(self, name, settings):
        """Take what a factory is given."""
        self.settings = settings

    def identity(self):
        """Return the model, by which prices are found."""
        return {"engine": "costly", "model": "m"}

    def complete(self, prompts):
        """Yield one answer per prompt."""
        for index, prompt in enumerate(prompts):
            if prompt.item.id == "c1":
                yield index, Completion("", "error", "HTTP 500 after 7 attempts")
                continue
            answer = dict.fromkeys(prompt.frame.fields, "absent")
            yield index, Completion(json.dumps(answer), "stop", "", 0.1, 1000, 50, 800)


@pytest.fixture
def costly(monkeypatch, workspace):
    """Register the engine ``costly`` and give its model a price."""
    monkeypatch.setitem(base._FACTORIES, "costly", Costly)
    workspace.open_private()
    workspace.config.write_text(
        "prices:\n  m: {input: 2.0, output: 8.0, cached_input: 0.5, currency: EUR}\n"
    )
    return ["--engine", "costly:m"]


def test_tokens_cost_and_failing_cases_are_printed(app, cohort, costly):
    """Two answers: 400 tokens at 2, 1,600 at 0.5, 100 written at 8 a million."""
    shown = CliRunner().invoke(app, [*cohort, *costly]).stdout
    assert "2,000 prompt (1,600 from the server's prefix cache), 100 output" in shown
    assert "cost           0.0024 EUR" in shown
    assert "engine failed  1" in shown
    assert "1 × HTTP 500 after 7 attempts (c1)" in shown


def test_a_model_without_a_price_has_no_cost(app, cohort, costly, workspace):
    """An unknown price is not zero."""
    workspace.config.write_text("prices: {}\n")
    shown = CliRunner().invoke(app, [*cohort, *costly]).stdout
    assert "tokens" in shown and "  cost  " not in shown


def test_repeats_are_runs_of_their_own(app, cohort):
    """Each is shown with its number; JSON gives the first and the ids of all."""
    shown = CliRunner().invoke(app, [*cohort, "--repeats", "2"]).stdout
    assert shown.count("cases          3") == 2
    assert "draw           1 of 2" in shown and "draw           2 of 2" in shown
    data = json.loads(
        CliRunner().invoke(app, [*cohort, "--repeats", "2", "--json"]).stdout
    )
    assert data["run_id"] == data["draws"][0] and len(set(data["draws"])) == 2
    assert [one["answered"] for one in data["outcomes_of_draws"]] == [3, 3]
    assert data["problems"] == [] and data["spent"]["answers"] == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--engine", "replay:latest", "--repeats", "2"], "gives new answers"),
        (["--batch"], "vllm:MODEL"),
        (["--temperature", "-1"], "temperature"),
        (["--temperature", "inf"], "temperature"),
    ],
)
def test_what_cannot_be_asked_for_is_a_usage_error(app, cohort, arguments, reason):
    """Refused before anything is asked."""
    result = CliRunner().invoke(app, [*cohort, *arguments])
    assert result.exit_code == 2 and reason in result.output


def test_a_wrong_setting_is_named(app, cohort, workspace):
    """A misspelt setting must not be ignored."""
    workspace.open_private()
    workspace.config.write_text("engines:\n  openai: {concurency: 4}\n")
    result = CliRunner().invoke(app, cohort)
    assert "engines.openai.concurency" in str(result.exception)


class Prose:
    """Answers with prose at first, then as it should."""

    retry_unreadable = 1

    def __init__(self, name, settings):
        """Take what a factory is given."""
        self.left = int(name)

    def identity(self):
        """Return a name."""
        return {"engine": "prose"}

    def complete(self, prompts):
        """Yield prose as often as is left."""
        for index, prompt in enumerate(prompts):
            self.left -= 1
            answer = dict.fromkeys(prompt.frame.fields, "absent")
            yield index, Completion("Well." if self.left >= 0 else json.dumps(answer))


def test_what_could_not_be_read_is_asked_again_and_said(app, cohort, monkeypatch):
    """By itself as often as is set; then when the command says so."""
    monkeypatch.setitem(base._FACTORIES, "prose", Prose)
    first = CliRunner().invoke(app, [*cohort, "--engine", "prose:6"])
    # Nothing was answered: all is stored and shown, and it is no success.
    assert first.exit_code == 1 and isinstance(first.exception, EngineError)
    assert "no JSON object in the answer" in str(first.exception)
    assert "--again unparsed" in str(first.exception)
    assert "unparsed       3" in first.stdout
    assert (
        "asked again    3 unreadable answers, of which 0 calls could be read"
        in first.stdout
    )
    monkeypatch.setattr(Prose, "__init__", lambda self, *_: setattr(self, "left", 0))
    same = CliRunner().invoke(app, [*cohort, "--engine", "prose:0"])
    assert "unparsed       3" in same.stdout
    again = [*cohort, "--engine", "prose:0", "--again", "unparsed"]
    second = CliRunner().invoke(app, again)
    assert second.exit_code == 0, second.output
    assert "answered       3" in second.stdout
    assert "asked          3 (from the store: 6)" in second.stdout
    assert "of which 3 calls could be read in the end" in second.stdout


def test_only_what_is_unparsed_can_be_asked_again(app, cohort):
    """Anything else is a usage error."""
    assert CliRunner().invoke(app, [*cohort, "--again", "failed"]).exit_code == 2
