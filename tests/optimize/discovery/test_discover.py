"""Clusters of a cohort, held against the labels and the newest prompt."""

import csv
import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.discover import show_discovery
from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled, init_workspace
from loop.optimize.discovery.discover import discover_findings
from loop.optimize.discovery.documents import (
    discovery_data,
    discovery_notes,
    render_discovery_csv,
    render_discovery_html,
)
from loop.prompts.catalog import read_version
from loop.review.start import new_prompt
from tests.bench.bench_discover import GOOD, import_all, read_marks, rediscover
from tests.conftest import shipped_workspace
from tests.optimize.discovery.made_reports import WHO, add_cohort, reports

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "discover.md"

SECRETS = ("azygos", "fissure", "anomaly")
"""Words that three made-up reports hold."""


@pytest.fixture(scope="module")
def ready(tmp_path_factory, first_version):
    """Make a workspace with a cohort of made-up reports, and what is discovered."""
    root = tmp_path_factory.mktemp("made") / "ws"
    place = WorkspacePaths(Path(shutil.copytree(first_version.root, root)))
    add_cohort(place, reports())
    return place, discover_findings(place, "made")


@pytest.fixture
def made(tmp_path, ready):
    """Return a copy of that workspace."""
    return WorkspacePaths(
        Path(shutil.copytree(ready[0].root, tmp_path.resolve() / "ws"))
    )


@pytest.fixture
def found(ready):
    """Return what is discovered in it."""
    return ready[1]


def by_name(found):
    """Return the clusters by name."""
    return {one.name: one for one in found.clusters}


def test_a_cluster_names_its_cases_labels_and_places(found):
    """The effusion is a label's, in eight cases; its denials are counted."""
    effusion = by_name(found)["pleural effusion"]
    assert effusion.asserted == tuple(f"r{number}" for number in range(8))
    assert (effusion.hedged, effusion.denied) == (0, 22)
    assert effusion.covered == ("pleural_effusion",)
    assert dict(effusion.found)["pleural_effusion"] == 8
    assert effusion.places == (("pleural", 8),)


def test_what_no_label_names_is_lacking(found):
    """With the cases in which the prompt finds nothing at all."""
    lacking = {one.name: one for one in found.lacking}
    spine = lacking["degenerative changes ... thoracic spine"]
    assert len(spine.asserted) == 12
    assert spine.covered == ()
    # The last four of the twelve have no other finding, or scoliosis.
    assert spine.unlabelled == 4
    assert not [name for name in lacking if "effusion" in name]


def test_clusters_come_by_cases_and_are_numbered(found):
    """c1 is the largest."""
    sizes = [len(one.asserted) for one in found.clusters]
    assert sizes == sorted(sizes, reverse=True)
    assert [one.id for one in found.clusters] == [
        f"c{number}" for number in range(1, len(sizes) + 1)
    ]


@pytest.mark.parametrize(("longer", "name"), [(9, "hiatal hernia"), (6, "hernia")])
def test_a_cluster_is_called_by_the_phrase_that_says_most(workspace, longer, name):
    """The longer one, if nearly all of its cases have it."""
    texts = [f"There is a {'hiatal ' * (n < longer)}hernia. Case." for n in range(10)]
    add_cohort(workspace, texts)
    (cluster,) = discover_findings(workspace, "made").clusters
    assert (cluster.name, cluster.phrases[0].text) == (name, "hernia")


def test_a_place_of_few_cases_is_not_named(workspace):
    """It would say more of them than the phrase does."""
    where = ["lingula"] * 4 + ["apex"] * 5
    texts = [f"There is a nodule in the {one}. C." for one in where]
    add_cohort(workspace, [f"{text} {'D. ' * n}" for n, text in enumerate(texts)])
    (cluster,) = discover_findings(workspace, "made").clusters
    assert (cluster.name, cluster.places) == ("nodule", (("apex", 5),))


def test_a_phrase_needs_several_patients_and_so_does_a_place(workspace):
    """Reports of one patient are one patient's text; the documents say what counts."""
    texts = ["There is a nodule in the lingula."] * 6
    texts += ["There is a nodule in the apex."] * 5 + ["There is scoliosis."] * 6
    texts = [f"{text} {'D. ' * n}" for n, text in enumerate(texts)]
    who = [*["p0"] * 6, *[f"p{n}" for n in range(5)], *["p9"] * 6]
    add_cohort(workspace, texts, patients=who)
    found = discover_findings(workspace, "made")
    (cluster,) = found.clusters
    assert (cluster.name, cluster.places) == ("nodule", (("apex", 5),))
    assert len(cluster.asserted) == 11
    assert (found.unit, discovery_data(found)["unit"]) == ("patient", "patient")
    assert "cases of at least 5 patients hold it" in discovery_notes(found)[0]


def test_a_case_that_asserts_one_phrase_and_denies_another_asserts(workspace):
    """It counts once."""
    texts = ["There is a calcified granuloma."] * 6
    texts += ["There is a granuloma. No calcified granuloma."] * 5
    add_cohort(workspace, [f"{text} {'D. ' * n}" for n, text in enumerate(texts)])
    found = discover_findings(workspace, "made", cut=0.95)
    cluster = next(one for one in found.clusters if len(one.phrases) > 1)
    denied = {one.text: one.denied for one in cluster.phrases}
    assert denied["calcified granuloma"] == 5
    assert (len(cluster.asserted), cluster.denied, cluster.shares) == (11, 0, (0, 0))


def test_the_nearest_cluster_is_named_by_its_id(workspace):
    """Two findings in the same reports and places, said in other words."""
    texts = ["There is scoliosis. There is levoscoliosis of the spine."] * 9
    add_cohort(workspace, [f"{text} {'Again. ' * n}" for n, text in enumerate(texts)])
    found = discover_findings(workspace, "made", cut=0.1)
    assert {one.id: one.near for one in found.clusters} == {"c1": "c2", "c2": "c1"}


def test_a_label_that_is_only_left_uncertain_does_not_name_a_cluster(tmp_path):
    """It is told apart, on the page too."""
    place = shipped_workspace(tmp_path / "ws")
    add_cohort(place, reports())
    found = discover_findings(place, "made")
    aorta = by_name(found)["aorta ... tortuous"]
    assert (aorta.covered, aorta.unsettled) == ((), ("mediastinal_other",))
    assert aorta in found.lacking
    assert "left uncertain: Mediastinal Other" in render_discovery_html(found)


def test_the_newest_version_of_the_only_prompt_is_taken(made, found):
    """And is named with its digest."""
    version = read_version(made, "extractor@latest")
    assert (found.prompt, found.prompt_digest) == (version.ref, version.digest)


def test_without_a_prompt_labels_are_known_by_name(tmp_path):
    """A taxonomy is enough."""
    place = init_workspace(tmp_path / "bare")
    add_cohort(place, reports())
    found = discover_findings(place, "made")
    assert found.prompt == ""
    assert by_name(found)["pleural effusion"].covered == ("pleural_effusion",)
    assert any("no prompt" in one for one in discovery_notes(found))


def test_no_document_holds_a_rare_phrase(found):
    """Of three reports it is their text."""
    shown = (
        render_discovery_html(found),
        render_discovery_csv(found),
        json.dumps(discovery_data(found)),
    )
    for document in shown:
        assert "scoliosis" in document
        assert not [word for word in SECRETS if word in document.lower()]


def test_the_page_needs_no_network_and_runs_nothing(found):
    """It can be passed on as it is."""
    page = render_discovery_html(found)
    assert "default-src 'none'" in page
    assert not [one for one in ("<script", "http://", "https://") if one in page]


def test_the_table_has_every_phrase(found):
    """One row each, with the cluster's numbers."""
    rows = list(csv.DictReader(io.StringIO(render_discovery_csv(found))))
    assert len(rows) == found.phrases
    assert {row["cluster"] for row in rows} == {one.id for one in found.clusters}


def test_a_prompt_for_something_else_is_refused(tmp_path):
    """A judge names no finding of one report."""
    place = shipped_workspace(tmp_path / "ws")
    add_cohort(place, reports())
    with pytest.raises(DataError, match="does not ask for the labels"):
        discover_findings(place, "made", prompt="green")


def test_of_several_prompts_one_must_be_named(tmp_path):
    """None is taken by chance."""
    place = shipped_workspace(tmp_path / "ws")
    add_cohort(place, reports())
    assert discover_findings(place, "made").prompt.startswith("extractor@v")
    new_prompt(place, "second", WHO)
    with pytest.raises(DataError, match=r"several prompts.*extractor@v.*second@v1"):
        discover_findings(place, "made")
    assert discover_findings(place, "made", prompt="second").prompt == "second@v1"


@pytest.mark.slow
def test_the_same_cohort_gives_the_same_bytes_in_another_process(made, found):
    """Whatever the order of sets there."""
    code = (
        "import sys; from pathlib import Path\n"
        "from loop.core.paths import WorkspacePaths\n"
        "from loop.optimize.discovery.discover import discover_findings\n"
        "from loop.optimize.discovery.documents import render_discovery_html\n"
        "place = WorkspacePaths(Path(sys.argv[1]))\n"
        "print(render_discovery_html(discover_findings(place, 'made')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(made.root)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout == render_discovery_html(found) + "\n"


@pytest.mark.parametrize("role", ["holdout", "external"])
def test_cohorts_that_claims_rest_on_are_refused(made, role):
    """Labels designed on them would be measured on them."""
    texts = [f"Other {role} text {number}." for number in range(6)]
    add_cohort(made, texts, name="other", role=role)
    with pytest.raises(DataError, match=f"has the role {role}.*taxonomy or dev"):
        discover_findings(made, "other")


def test_a_dev_cohort_may_be_read(workspace):
    """Its cases are read anyway."""
    add_cohort(workspace, reports(), role="dev")
    assert discover_findings(workspace, "made").clusters


def test_other_languages_are_left_out_and_counted(workspace):
    """Never silently."""
    texts = [*reports(), "右侧胸腔积液。", "左肺结节。"]
    add_cohort(workspace, texts, language=["en"] * 30 + ["zh"] * 2)
    found = discover_findings(workspace, "made")
    assert (found.cases, found.left_out) == (30, 2)
    assert any("2 cases in other languages" in one for one in discovery_notes(found))


def test_chinese_reports_are_refused_with_the_reason(workspace):
    """There are no spaces between words to count by."""
    add_cohort(workspace, [f"右侧胸腔积液{'。' * n}" for n in range(6)], language="zh")
    with pytest.raises(DataError, match="Chinese reports are not supported"):
        discover_findings(workspace, "made")


def test_a_cohort_too_small_shows_nothing(workspace):
    """And fails in no other way."""
    add_cohort(workspace, reports(4))
    found = discover_findings(workspace, "made")
    assert found.clusters == ()
    assert found.rare > 0
    assert "There is none." in render_discovery_html(found)


def test_an_own_file_of_words_is_read(made):
    """A hospital's own plain words, or another language."""
    shipped = (bundled() / "labels" / "discovery.yaml").read_text("utf-8")
    own = shipped.replace("breaks: [\n", "breaks: [\n  scoliosis,", 1)
    (made.labels / "discovery.yaml").write_text(own, "utf-8")
    assert not [n for n in by_name(discover_findings(made, "made")) if "scolio" in n]


@pytest.mark.parametrize(
    ("language", "says"), [("zh", "no spaces between words"), ("de", "no cues for it")]
)
def test_a_file_of_words_needs_a_language_that_can_be_read(made, language, says):
    """With cues, and spaces between words."""
    shipped = (bundled() / "labels" / "discovery.yaml").read_text("utf-8")
    own = shipped.replace("language: en", f"language: {language}")
    (made.labels / "discovery.yaml").write_text(own, "utf-8")
    with pytest.raises(DataError, match=says):
        discover_findings(made, "made")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"min_reports": 4}, "5 or more, got 4"),
        ({"longest": 0}, "1 to 6 words, got 0"),
        ({"cut": 0.0}, r"\(0, 1\), got 0"),
        ({"cut": 1.0}, r"\(0, 1\), got 1"),
    ],
)
def test_settings_out_of_range_are_refused(made, settings, says):
    """Fewer than five reports would show their patients' text."""
    with pytest.raises(ValueError, match=says):
        discover_findings(made, "made", **settings)


def ranloop(place, *words):
    """Return what the command does in a workspace."""
    return CliRunner().invoke(app, ["discover", *words, "--workspace", str(place.root)])


TABLES = """\
made: 30 cases, 5 phrases in 5 clusters

no label names these 4
cluster                                  asserted  hedged  denied  no label          most found
---------------------------------------  --------  ------  ------  --------  ------------------
degenerative changes ... thoracic spine        12       0       0         4  pleural_effusion 8
scoliosis ... spine                             9       0       0         1  pleural_effusion 8
heart ... enlarged                              7       0       0         0  pleural_effusion 7
aorta ... tortuous                              6       0       0         0  pleural_effusion 6

labels name these 1
cluster           asserted  hedged  denied  no label          most found
----------------  --------  ------  ------  --------  ------------------
pleural effusion         8       0      22         0  pleural_effusion 8
"""  # noqa: E501
"""How many of the first reports hold each phrase; all thirty speak of effusions."""


def test_the_verb_prints_tables_and_writes_documents(made, tmp_path):
    """What no label names comes first."""
    page, table = tmp_path / "c.html", tmp_path / "c.csv"
    done = ranloop(made, "made", "--html", str(page), "--csv", str(table))
    assert done.exit_code == 0, done.output
    assert done.stdout.partition("\nnote: ")[0] == TABLES
    assert done.stdout.count("\nnote: ") == 3
    assert "scoliosis" in page.read_text("utf-8")
    assert "scoliosis" in table.read_text("utf-8")


def test_json_is_one_object(made):
    """And nothing else on stdout."""
    done = CliRunner().invoke(app, ["discover", "made", "--json", "-w", str(made.root)])
    assert json.loads(done.stdout)["cases"] == 30


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("made", "--take", "x"),
        ("made", "--why", "x"),
        ("made", "--dry-run"),
        ("made", "--cut", "0"),
        ("made", "--cut", "1"),
        ("--take", "x", "--html", "y"),
        ("--take", "x", "--csv", "y"),
        ("--take", "x", "--draft", "y"),
        ("--take", "x", "--prompt", "y"),
        ("--take", "x", "--keep"),
        ("--take", "x", "--min-cases", "6"),
        ("--take", "x", "--words", "2"),
        ("--take", "x", "--cut", "0.9"),
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(made, words):
    """Exit code 2."""
    assert ranloop(made, *words).exit_code == 2


def test_documents_are_not_written_over_the_workspace(made):
    """Its own files are not for that."""
    done = ranloop(made, "made", "--html", str(made.labels / "taxonomy.yaml"))
    assert done.exit_code == 1
    assert (made.labels / "taxonomy.yaml").read_text("utf-8").startswith("#")


@pytest.mark.data
@pytest.mark.slow
def test_open_i_alone_finds_sixteen_of_the_twenty_labels(tmp_path, data_folder):
    """And names what the taxonomy lacks; no label takes part in the clusters."""
    found = discover_findings(import_all(data_folder, tmp_path), "openi_all")
    again = rediscover(found.clusters, read_marks(data_folder))
    assert len(again) == 20
    assert sum(one.f1 >= GOOD for one in again) >= 16
    told = PAGE.read_text("utf-8")
    assert f"{sum(one.f1 >= GOOD for one in again)} of the 20 labels" in told
    lacking = {p.text: one for one in found.lacking for p in one.phrases}
    for phrase, said in (
        ("degenerative", "degenerative changes ({} reports"),
        ("scoliosis", "scoliosis ({})"),
        ("tortuous", "tortuous aorta ({})"),
        ("granulomatous disease", "granulomatous disease ({})"),
        ("hyperexpanded", "hyperexpanded ({})"),
        ("hyperinflated", "hyperinflated lungs ({})"),
    ):
        words = " ".join(told.split())
        assert said.format(len(lacking[phrase].asserted)) in words
    assert all(
        p.asserted >= found.min_reports and not any(map(str.isdigit, p.text))
        for one in found.clusters
        for p in one.phrases
    )


def test_of_many_clusters_of_a_kind_twenty_are_printed(found, capsys):
    """And how many more there are; of twenty all."""
    lacking = found.lacking[0]
    named = next(one for one in found.clusters if one.covered)
    many = [replace(lacking, id=f"a{n}") for n in range(21)]
    few = [replace(named, id=f"b{n}") for n in range(20)]
    show_discovery(replace(found, clusters=(*many, *few)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "made: 30 cases, 41 phrases in 41 clusters"
    first, second = (
        lines.index(title)
        for title in ("no label names these 21", "labels name these 20")
    )
    assert lines[first + 23 : first + 25] == [
        "and 1 more: --html, --csv and --json have all",
        "",
    ]
    assert lines[second + 23] == ""
