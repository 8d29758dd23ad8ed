"""The draft that several people decide on: each decision is kept, nothing is lost."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from loop.cli import discover as cli
from loop.cli.main import app
from loop.core.errors import ConflictError, DataError, UnknownLabelError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.labels.taxonomy import read_taxonomy
from loop.optimize.discovery.discover import discover_findings
from loop.optimize.discovery.kept_draft import (
    cluster_key,
    cluster_mark,
    cluster_name,
    count_phrase,
    drop_cluster,
    edit_kept_draft,
    is_whole,
    keep_discovery,
    kept_draft_path,
    leave_cluster,
    map_cluster,
    merge_cluster,
    read_found,
    read_kept_draft,
    rename_cluster,
    split_cluster,
    take_kept_draft,
)
from loop.optimize.discovery.taxonomy_change import check_taxonomy_draft
from loop.optimize.discovery.taxonomy_draft import ClusterDecision
from tests.optimize.discovery.made_reports import WHO, add_cohort, reports

SPINE = ("Degenerative Spine", "Wear of the spine: discs, end plates, joints.", "bone")
NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def ready(tmp_path_factory, first_version):
    """Make a workspace in which a cohort of made-up reports was discovered."""
    root = tmp_path_factory.mktemp("kept") / "ws"
    place = WorkspacePaths(Path(shutil.copytree(first_version.root, root)))
    add_cohort(place, reports())
    found = discover_findings(place, "made")
    keep_discovery(place, found)
    return place, found


@pytest.fixture
def place(tmp_path, ready):
    """Return a copy of that workspace."""
    return WorkspacePaths(
        Path(shutil.copytree(ready[0].root, tmp_path.resolve() / "ws"))
    )


def draft_of(place):
    """Return the draft as it is kept."""
    return read_kept_draft(place, "made").draft


def find(place, word):
    """Return the cluster that has a phrase with that word."""
    clusters = draft_of(place).clusters
    return next(c for c in clusters if any(word in p for p in c.phrases))


def key(place, word):
    """Return the key of that cluster."""
    return cluster_key(find(place, word))


def decide(place, word, edit, *given):
    """Decide something of the cluster with that word."""
    name = key(place, word)
    return edit_kept_draft(
        place, "made", name, edit(name, *given), WHO, now=lambda: NOON
    )


def test_a_draft_is_that_of_the_file(place):
    """What is kept can be taken with --take, and says who decided and when."""
    decide(place, "degenerative", rename_cluster, *SPINE)
    path = kept_draft_path(place, "made")
    change = check_taxonomy_draft(place, path)
    assert "degenerative_spine" in change.added
    one = find(place, "degenerative")
    assert (one.by, one.time) == (WHO.name, "2026-11-27T12:00:00Z")
    assert path.stat().st_mode & 0o777 == 0o600
    data = yaml.safe_load(path.read_text("utf-8"))
    assert "by" not in data["clusters"][-1]


def test_a_cluster_has_its_name_and_its_counts(place):
    """For each phrase, also after it was moved."""
    one = find(place, "degenerative")
    assert is_whole(one)
    assert read_found(one).asserted == 12
    counts = count_phrase(draft_of(place), one.phrases[0])
    assert (counts.asserted, counts.hedged, counts.denied) == (12, 0, 0)
    assert "degenerative" in cluster_name(draft_of(place), one)
    assert count_phrase(draft_of(place), "nothing") is None


def test_counts_that_were_edited_by_hand_hinder_nobody(place):
    """They are not needed to decide, and not read to take."""
    path = kept_draft_path(place, "made")
    data = yaml.safe_load(path.read_text("utf-8"))
    data["clusters"][0]["found"] = {"asserted": "many"}
    data["counted"] = {data["clusters"][0]["phrases"][0]: "x"}
    path.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")
    one = draft_of(place).clusters[0]
    assert read_found(one) is None
    assert count_phrase(draft_of(place), one.phrases[0]) is None
    assert cluster_name(draft_of(place), one) == one.phrases[0]


def test_what_is_decided_may_be_decided_otherwise(place):
    """A label that no cluster is part of any more is not described any more."""
    decide(place, "degenerative", rename_cluster, *SPINE)
    assert [one.name for one in draft_of(place).labels] == [SPINE[0]]
    decide(place, "degenerative", map_cluster, "fracture")
    assert find(place, "degenerative").label == "Fracture"
    assert draft_of(place).labels == ()
    decide(place, "degenerative", drop_cluster)
    assert find(place, "degenerative").decision is ClusterDecision.DROP
    decide(place, "degenerative", leave_cluster)
    assert find(place, "degenerative").decision is ClusterDecision.UNDECIDED


def test_a_label_that_is_named_again_is_described_anew(place):
    """An empty definition leaves what is there."""
    decide(place, "degenerative", rename_cluster, *SPINE)
    decide(place, "scoliosis", rename_cluster, "degenerative spine", "", "")
    assert find(place, "scoliosis").label == SPINE[0]
    other = "All that is wrong with the shape of the spine."
    decide(place, "scoliosis", rename_cluster, SPINE[0], other, "spine")
    (label,) = draft_of(place).labels
    assert (label.definition, label.group) == (other, "spine")


def test_the_case_of_a_new_label_is_corrected_where_it_is_used(place):
    """Every cluster of it follows; whoever joins it types the name in any case."""
    decide(place, "degenerative", rename_cluster, "curved spine", SPINE[1])
    decide(place, "scoliosis", rename_cluster, "CURVED SPINE", "")
    assert find(place, "scoliosis").label == "curved spine"
    decide(place, "degenerative", rename_cluster, "Curved Spine", "")
    assert [one.name for one in draft_of(place).labels] == ["Curved Spine"]
    for word in ("degenerative", "scoliosis"):
        assert find(place, word).label == "Curved Spine"


def test_a_decided_cluster_keeps_its_decision_in_an_undecided_one(place):
    """Its label and the definition are not lost."""
    decide(place, "scoliosis", rename_cluster, *SPINE)
    decide(place, "scoliosis", merge_cluster, find(place, "degenerative").phrases[0])
    joined = find(place, "degenerative")
    assert joined == find(place, "scoliosis")
    assert (joined.decision, joined.label) == (ClusterDecision.NEW, SPINE[0])
    assert [one.definition for one in draft_of(place).labels] == [SPINE[1]]


def test_a_cluster_is_merged_with_one_that_is_decided(place):
    """It gets the same decision, by a phrase or by the name of the new label."""
    decide(place, "degenerative", rename_cluster, *SPINE)
    decide(place, "scoliosis", merge_cluster, find(place, "degenerative").phrases[0])
    assert find(place, "scoliosis").label == SPINE[0]
    decide(place, "enlarged", merge_cluster, "degenerative spine")
    assert find(place, "enlarged").decision is ClusterDecision.NEW
    decide(place, "tortuous", map_cluster, "mediastinal other")
    decide(place, "enlarged", merge_cluster, find(place, "tortuous").phrases[0])
    assert find(place, "enlarged").decision is ClusterDecision.MAP


def test_undecided_clusters_are_merged_and_split_again(place):
    """Phrases move; every phrase stays once, and no count is made up."""
    before = draft_of(place)
    decide(place, "scoliosis", merge_cluster, find(place, "degenerative").phrases[0])
    joined = find(place, "scoliosis")
    assert joined == find(place, "degenerative")
    assert not is_whole(joined)
    assert len(draft_of(place).clusters) == len(before.clusters) - 1
    decide(place, "degenerative", split_cluster, find_phrases(joined, "scoliosis"))
    assert not find_phrases(find(place, "degenerative"), "scoliosis")
    assert len(draft_of(place).clusters) == len(before.clusters)
    assert draft_of(place).phrases_digest == before.phrases_digest
    assert is_whole(find(place, "degenerative"))


def find_phrases(cluster, word):
    """Return the phrases of a cluster with that word."""
    return [one for one in cluster.phrases if word in one]


@pytest.mark.parametrize(
    ("edit", "given", "words"),
    [
        (map_cluster, ["no finding"], "nothing can be mapped to No Finding"),
        (map_cluster, [" "], "name the label"),
        (rename_cluster, ["Fracture", SPINE[1]], "is a label already. Map"),
        (rename_cluster, ["Spine", "Too short."], "fewer than 20 characters"),
        (rename_cluster, ["", SPINE[1]], "give the new label a name"),
        (rename_cluster, ["肺炎", SPINE[1]], "no id can be made"),
        (rename_cluster, ["Fracturé", SPINE[1]], "the id 'fracture' already"),
        (merge_cluster, ["nowhere"], "no cluster has that phrase"),
        (merge_cluster, ["Scoliosis ... spine"], "is the cluster itself"),
        (split_cluster, [[]], "tick the phrases"),
        (split_cluster, [["scoliosis ... spine"]], "at least one, not all"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(place, edit, given, words):
    """In words for whoever decides."""
    before = kept_draft_path(place, "made").read_bytes()
    with pytest.raises(DataError, match=words):
        decide(place, "scoliosis", edit, *given)
    assert kept_draft_path(place, "made").read_bytes() == before


def test_a_label_that_is_not_there_is_named_with_the_closest_one(place):
    """A name is typed by hand."""
    with pytest.raises(UnknownLabelError, match="Fracture"):
        decide(place, "scoliosis", map_cluster, "fractur")


def test_whoever_comes_second_is_told(place):
    """Of two who split one cluster, and of a decision after the labels changed."""
    name = key(place, "scoliosis")
    decide(place, "scoliosis", merge_cluster, find(place, "degenerative").phrases[0])
    with pytest.raises(ConflictError, match="split or merged this cluster"):
        edit_kept_draft(place, "made", name, drop_cluster(name), WHO)
    with pytest.raises(DataError, match="nothing was discovered"):
        edit_kept_draft(place, "other", name, drop_cluster(name), WHO)
    path = place.labels / "taxonomy.yaml"
    path.write_text(path.read_text("utf-8") + "# changed\n", "utf-8")
    with pytest.raises(ConflictError, match=r"yaml changed after.*Discover again"):
        decide(place, "tortuous", drop_cluster)


def test_nobody_overwrites_a_decision_that_they_have_not_seen(place):
    """A definition that was typed is not lost, also when only that was changed."""

    def seen():
        return cluster_mark(draft_of(place), find(place, "scoliosis"))

    def drop(mark):
        name = key(place, "scoliosis")
        return edit_kept_draft(
            place, "made", name, drop_cluster(name), WHO, seen=mark, now=lambda: NOON
        )

    first = seen()
    decide(place, "scoliosis", rename_cluster, *SPINE)
    second = seen()
    decide(place, "scoliosis", rename_cluster, SPINE[0], "Another bend of the spine.")
    for mark in (first, second):
        with pytest.raises(ConflictError, match="decided on this cluster meanwhile"):
            drop(mark)
    (label,) = draft_of(place).labels
    assert label.definition == "Another bend of the spine."
    drop(seen())
    assert find(place, "scoliosis").decision is ClusterDecision.DROP


def test_nothing_is_decided_once_the_cohort_was_imported_again(place):
    """It could not be taken."""
    path = kept_draft_path(place, "made")
    data = yaml.safe_load(path.read_text("utf-8"))
    data["cohort_digest"] = "0" * 64
    path.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")
    with pytest.raises(ConflictError, match=r"imported again.*Discover again"):
        decide(place, "tortuous", drop_cluster)


def test_only_what_was_seen_is_taken(place):
    """Somebody decided something between the look and the button."""
    decide(place, "degenerative", rename_cluster, *SPINE)
    seen = read_kept_draft(place, "made").digest
    decide(place, "scoliosis", drop_cluster)
    with pytest.raises(ConflictError, match="decided something since"):
        take_kept_draft(place, "made", seen, WHO, why="seen")
    now = read_kept_draft(place, "made").digest
    take_kept_draft(place, "made", now, WHO, why="seen")
    assert read_taxonomy(place.labels).knows(SPINE[0])
    entry = read_ledger(place.ledger)[-1]
    assert (entry.action, entry.reason) == ("taxonomy_revised", "seen")
    assert entry.payload["draft_sha256"] == now


def test_discovering_again_keeps_what_was_decided(place, ready):
    """A new label that was taken is one that its clusters are mapped to."""
    decide(place, "degenerative", rename_cluster, *SPINE)
    decide(place, "scoliosis", drop_cluster)
    decide(place, "tortuous", map_cluster, "mediastinal other")
    old = read_kept_draft(place, "made").digest
    take_kept_draft(place, "made", old, WHO, why="taken")
    now = replace(ready[1], taxonomy=read_taxonomy(place.labels))
    assert keep_discovery(place, now) == (3, 0, 0)
    spine = find(place, "degenerative")
    assert (spine.decision, spine.label) == (ClusterDecision.MAP, SPINE[0])
    assert spine.by == WHO.name
    assert find(place, "scoliosis").decision is ClusterDecision.DROP
    assert draft_of(place).labels == ()
    folder = kept_draft_path(place, "made").parent / "before"
    assert [one.name for one in folder.iterdir()] == [f"made-{old[:12]}.yaml"]


def test_other_phrases_lose_only_what_is_not_there_any_more(place, ready):
    """The others stay decided; what is lost is counted, and stays in the file."""
    decide(place, "scoliosis", drop_cluster)
    decide(place, "tortuous", map_cluster, "mediastinal other")
    left = [one for one in ready[1].clusters if "tortuous" not in one.name]
    found = replace(ready[1], clusters=tuple(left))
    assert keep_discovery(place, found) == (1, 1, 0)
    assert all("tortuous" not in p for c in draft_of(place).clusters for p in c.phrases)
    assert find(place, "scoliosis").decision is ClusterDecision.DROP


def test_another_cut_gives_the_clusters_that_it_finds(place):
    """A cluster of the same phrases stays decided; others are as they were found."""
    decide(place, "scoliosis", drop_cluster)
    found = discover_findings(place, "made", cut=0.95)
    assert len(found.clusters) < len(draft_of(place).clusters)
    assert keep_discovery(place, found) == (0, 1, 0)
    draft = draft_of(place)
    assert draft.made_with["cut"] == 0.95
    assert [set(one.phrases) for one in draft.clusters] == [
        {phrase.text for phrase in one.phrases} for one in found.clusters
    ]
    assert all(is_whole(one) and read_found(one) for one in draft.clusters)


def test_a_decision_whose_label_is_gone_is_counted_apart(place, ready):
    """The cluster is there, and undecided."""
    decide(place, "scoliosis", map_cluster, "Fracture")
    labels = tuple(o for o in ready[1].taxonomy.labels if o.id != "fracture")
    gone = replace(ready[1].taxonomy, labels=labels)
    assert keep_discovery(place, replace(ready[1], taxonomy=gone)) == (0, 0, 1)
    assert find(place, "scoliosis").decision is ClusterDecision.UNDECIDED


def test_the_verb_keeps_clusters_for_the_page(place, ready, monkeypatch):
    """Where something was decided, too."""
    monkeypatch.setattr(cli, "discover_findings", lambda *_, **__: ready[1])
    decide(place, "scoliosis", drop_cluster)
    words = ["discover", "made", "--keep", "-w", str(place.root)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == (
        "kept for the page Discover; clusters decided as they were: 1, decided and "
        "gone: 0"
    )
    decide(place, "scoliosis", map_cluster, "Fracture")
    labels = tuple(o for o in ready[1].taxonomy.labels if o.id != "fracture")
    gone = replace(ready[1].taxonomy, labels=labels)
    found = replace(ready[1], taxonomy=gone)
    monkeypatch.setattr(cli, "discover_findings", lambda *_, **__: found)
    assert CliRunner().invoke(app, words).stdout.splitlines()[-2:] == [
        "kept for the page Discover; clusters decided as they were: 0, decided and "
        "gone: 0",
        "reset to undecided, since their label no longer exists: 1",
    ]
    monkeypatch.setattr(cli, "discover_findings", lambda *_, **__: ready[1])
    decide(place, "scoliosis", drop_cluster)
    done = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(done.stdout)["decisions"] == {"kept": 1, "lost": 0, "reset": 0}
    wrong = [*words[:1], "--take", "x.yaml", "--keep", "-w", str(place.root)]
    assert CliRunner().invoke(app, wrong).exit_code == 2
