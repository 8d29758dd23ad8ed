"""Which extractor ``score`` asks, what it is held to, and the second one."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.engines.rules.engine import REVISION
from loop.labels.taxonomy import read_taxonomy
from loop.release.extractors import (
    ExtractorOptions,
    choose_extractor,
    engine_remarks,
    read_errors,
    score_reports,
)
from loop.release.load import find_request
from loop.release.released import withdraw_release
from loop.run.manifest import find_run
from loop.score.documents.score_files import score_data
from loop.score.extractor import Extractor
from loop.score.joining import CandidateFile, join_files
from loop.score.scoring import Counting
from tests.cli.test_score import (
    FINDINGS,
    NEWEST,
    NORMAL,
    QUICK,
    patch_as_released,
    run,
    write,
)
from tests.conftest import shipped_workspace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Return the demo's workspace, which has runs on a dev cohort."""
    folder = tmp_path_factory.mktemp("demo") / "ws"
    made = CliRunner().invoke(app, ["demo", "--rounds", "1", str(folder)])
    assert made.exit_code in (0, 100)
    return folder


@pytest.fixture
def released(tmp_path):
    """Return a fresh workspace, in which the shipped release is in force."""
    return shipped_workspace(tmp_path / "ws")


@pytest.fixture
def as_released(monkeypatch):
    """Let `rules` be the engine that the shipped release was measured with."""
    patch_as_released(monkeypatch)


@pytest.fixture
def files(tmp_path):
    """Return options that name references and two systems."""
    rows = [(f"c{n:02}", FINDINGS[n % 5]) for n in range(20)]
    ref = write(tmp_path / "ref.csv", rows)
    bad = write(tmp_path / "bad.csv", [(name, NORMAL) for name, _ in rows])
    return (f"copy={ref}", f"bad={bad}", "-r", ref, *QUICK)


def data_of(*args):
    """Return the JSON of the verb."""
    return json.loads(run(*args, "--json").stdout)


def test_the_newest_release_is_asked_and_named(released, files):
    """Nobody named an extractor: a signed one is taken, and the document says which."""
    data = data_of(*files, "-w", released.root)
    assert data["extractor"]["ref"] == "extractor@v11"
    assert data["extractor"]["release"] == NEWEST
    assert f"Extractor: {NEWEST}, the newest release" in data["remarks"][0]


def test_a_withdrawn_release_is_not_asked(released, files):
    """It is passed over unasked, and refused when it is named."""
    approver = Actor(name="a", role="approver")
    withdraw_release(released, NEWEST, approver, "it was wrong")
    for older in ("extractor-v10", "extractor-v7"):
        data = data_of(*files, "-w", released.root)
        assert data["extractor"]["release"] == older
        withdraw_release(released, older, approver, "so was this")
    data = data_of(*files, "-w", released.root)
    assert data["extractor"]["release"] == ""
    assert "there is no release of it here" in data["remarks"][0]
    with pytest.raises(DataError, match="was withdrawn by a"):
        run(*files, "-w", released.root, "--release", NEWEST)


def test_a_release_that_was_edited_is_not_asked(released, files):
    """It is verified before it reads a text."""
    guides = released.releases / NEWEST / "prompt" / "guides.yaml"
    guides.write_text(guides.read_text("utf-8") + "# edited\n", "utf-8")
    with pytest.raises(DataError, match="does not hold"):
        run(*files, "-w", released.root)


def test_a_workspace_without_an_extractor_takes_the_shipped_one(released, files):
    """The document says so, and the signature says which version it is."""
    shutil.rmtree(released.prompts / "extractor")
    released.ledger.unlink()
    data = data_of(*files, "-w", released.root)
    assert data["systems"][0]["signature"].startswith("ran|extractor@v11:")
    assert any("as it ships with ranloop" in one for one in data["remarks"])


def test_a_version_that_is_named_is_asked(workspace, files):
    """With its digest in the signature, so that two scores can be told apart."""
    data = data_of(*files, "-w", workspace.root, "--extractor", "extractor@v1")
    assert data["systems"][0]["signature"].startswith("ran|extractor@v1:")
    assert data["remarks"] == []


def test_choosing_asks_nothing(workspace):
    """Without a release or an alias it is the newest version, and that is said."""
    choice = choose_extractor(workspace, ExtractorOptions())
    assert choice.request.prompt == "extractor@latest"
    assert "the newest version of extractor" in choice.why


def test_texts_are_asked_once(released, files):
    """The second scoring of the same texts takes every answer from the store."""
    first = data_of(*files, "-w", released.root)["extractor"]["outcomes"]
    again = data_of(*files, "-w", released.root)["extractor"]["outcomes"]
    assert (first["asked"], first["cached"]) == (6, 0)
    assert (again["asked"], again["cached"]) == (0, 6)


def test_scoring_leaves_runs_as_they_were(demo, files):
    """What is scored is no run: `latest` still names the demo's."""
    before = find_run(WorkspacePaths(demo)).id
    run(*files, "-w", demo)
    assert find_run(WorkspacePaths(demo)).id == before


def test_a_second_extractor_shows_what_depends_on_the_first(released, files):
    """Both scores of every system, and who changes places."""
    data = data_of(*files, "-w", released.root, "--also", "extractor@v1")
    panel = data["second_extractor"]
    assert panel["first"]["ref"] == "extractor@v11"
    assert panel["second"]["ref"] == "extractor@v1"
    assert [row["system"] for row in panel["systems"]] == ["copy", "bad"]


@pytest.mark.usefixtures("as_released")
def test_the_correction_says_what_it_assumes(released, files):
    """A release brings the errors that were measured on its dev cohort."""
    data = data_of(*files, "-w", released.root, "--bias", "auto")
    assert data["systems"][0]["corrected"] is not None
    assert data["assumptions"]
    assert any("openi_dev, 300 cases" in text for text in data["remarks"])
    assert any("Digest of the counts: " in text for text in data["remarks"])
    assert data["extractor"]["asked"]["name"] == "rules"
    assert data_of(*files, "-w", released.root)["systems"][0]["corrected"] is None


@pytest.mark.usefixtures("as_released")
def test_a_release_does_not_correct_what_another_engine_read(released):
    """Its prompt asked of a language model makes other errors than with `rules`."""
    wanted = find_request(released, release=NEWEST)
    with Extractor.open(released, wanted.prompt) as extractor:
        facts = extractor.facts
    assert read_errors(released, wanted, facts, "auto").by_label
    other = replace(facts, engine="openai:qwen", identity="0" * 64, asked="")
    with pytest.raises(DataError, match=r", and labels are read by openai:qwen: its"):
        read_errors(released, wanted, other, "auto")


def test_a_later_rules_corrects_nothing_with_the_errors_of_an_earlier_one(released):
    """It reads more, so it makes other errors; the document says so."""
    wanted = find_request(released, release="extractor-v7")
    with Extractor.open(released, wanted.prompt) as extractor:
        with pytest.raises(DataError) as refused:
            read_errors(released, wanted, extractor.facts, "auto")
        (told,) = engine_remarks(wanted, extractor)
    assert str(refused.value).startswith(
        "extractor-v7 was measured with rules, revision 3, and labels are read by "
        f"rules, revision {REVISION}: its errors are others"
    )
    assert told.startswith(
        "This is not the engine that extractor-v7 was released with (rules, "
        "revision 3, or its settings):"
    )


@pytest.mark.usefixtures("as_released")
def test_an_engine_without_a_schema_is_named(released):
    """As the manual says of its documents."""
    wanted = find_request(released, release=NEWEST)
    with Extractor.open(released, wanted.prompt) as extractor:
        asked = json.loads(extractor.facts.asked)
        assert asked["name"] == "rules" and not engine_remarks(wanted, extractor)
        asked["identity"]["constrained"] = False
        extractor.facts = replace(extractor.facts, asked=json.dumps(asked))
        (told,) = engine_remarks(wanted, extractor)
    assert told == (
        "rules was not held to the JSON schema of an answer (--allow-unconstrained)."
    )


def test_the_correction_takes_a_run_on_a_dev_cohort(demo, files):
    """Without a release, the newest run of this very extractor."""
    args = (*files, "-w", demo, "--extractor", "extractor@v1")
    auto = data_of(*args, "--bias", "auto")
    assert any("errors are those of run" in text for text in auto["remarks"])
    named = data_of(*args, "--bias", "latest:extractor@v1")
    assert named["systems"] == auto["systems"]


def test_a_run_of_another_extractor_does_not_correct(demo, files):
    """Its errors are not those of the one that read the texts."""
    args = (*files, "-w", demo, "--extractor", "extractor@v2")
    with pytest.raises(DataError, match=r"asked extractor@v1 .*Name a run of that one"):
        run(*args, "--bias", "latest:extractor@v1")


def test_without_a_measurement_the_correction_says_how_to_get_one(released, files):
    """No run of v1 here: the command that makes one is in the message."""
    args = (*files, "-w", released.root, "--extractor", "extractor@v1")
    with pytest.raises(DataError, match="Make one with `ranloop run extractor@v1"):
        run(*args, "--bias", "auto")


def test_the_second_extractor_may_be_a_release(released, files):
    """By its name, verified, with the engine that it was released with."""
    args = (*files, "-w", released.root, "--extractor", "extractor@v1")
    panel = data_of(*args, "--also", NEWEST)["second_extractor"]
    assert panel["second"]["ref"] == "extractor@v11"
    assert panel["second"]["release"] == NEWEST


@pytest.mark.parametrize(
    "wish", [("--also", "extractor@v99"), ("--bias", "no-such-run")]
)
def test_what_was_named_wrongly_is_told_before_a_text_is_read(released, files, wish):
    """Not after hours of a language model."""
    args = (*files, "-w", released.root, "--extractor", "extractor@v1", *wish)
    done = CliRunner().invoke(app, ["score", *map(str, args)])
    assert isinstance(done.exception, DataError)
    assert "labels read by" not in done.output


def test_labels_that_were_given_are_not_corrected(released, files, tmp_path):
    """The extractor errs in what it reads; a reference by people it did not read."""
    rows = [(f"c{n:02}", n % 2, 1 - n % 2) for n in range(20)]
    truth = write(tmp_path / "y.csv", rows, ("id", "Edema", "Fracture"))
    args = (*files[:2], "-r", truth, *QUICK, "-w", released.root)
    with pytest.raises(DataError, match="reference gives labels"):
        run(*args, "--bias", "auto")
    done = run(*args, "--out", tmp_path / "out")
    page = (tmp_path / "out" / "score.md").read_text("utf-8")
    assert "by the same extractor" not in page and "some files giving" in page, done


@pytest.mark.usefixtures("as_released")
def test_a_function_does_whatever_the_verb_does(released, files):
    """A notebook gets the same numbers, a second extractor and the correction too."""
    verb = (
        *(*files[:4], *QUICK[:4], "--metric", "bleu_4", "-w", released.root),
        *("--release", NEWEST, "--also", "extractor@v1", "--bias", "auto"),
    )
    data_of(*verb)
    told = data_of(*verb)  # every answer is now in the store
    taxonomy = read_taxonomy(released.labels)
    systems = [
        CandidateFile(Path(path), name)
        for name, _, path in (str(one).partition("=") for one in files[:2])
    ]
    document = score_reports(
        join_files(Path(files[3]), systems, taxonomy),
        released,
        extractor=ExtractorOptions(release=NEWEST, also="extractor@v1", bias="auto"),
        counting=Counting(metrics=("bleu_4",), resamples=50, permutations=50),
    )
    assert json.loads(json.dumps(score_data(document))) == told
