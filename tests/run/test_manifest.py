"""Manifests and the names of runs."""

import json
import stat

import pytest

from loop.core.errors import DataError
from loop.run.manifest import (
    find_run,
    read_environment,
    read_manifest,
    write_manifest,
)
from loop.run.store import open_store


@pytest.fixture
def runs(workspace, kit, clock):
    """Make three finished runs and one unfinished, oldest first; return their ids."""
    ids = []
    with open_store(workspace) as store:
        for prompt in ("extractor@v1", "extractor@v2", "judge@v1"):
            spec = kit.make_spec(prompt=prompt)
            items = kit.make_items("a")
            done = kit.run_items(store, kit.TableEngine(), items, spec=spec, now=clock)
            ids.append(done.run_id)
        spec = kit.make_spec(prompt="extractor@v3")
        ids.append(store.add_run("20270101-000000-abcdef", "2027", "m", spec).id)
    return ids


def test_latest_is_the_newest_finished_run(workspace, runs):
    """A run that was killed has no complete outcomes to evaluate."""
    assert find_run(workspace, "latest").id == runs[2]
    assert find_run(workspace).id == runs[2]


@pytest.mark.parametrize(
    ("ref", "index"),
    [
        ("latest:extractor", 1),
        ("latest:extractor@v2", 1),
        ("latest:extractor@v1", 0),
        ("latest:judge", 2),
    ],
)
def test_latest_of_a_prompt(workspace, runs, ref, index):
    """By name or by version."""
    assert find_run(workspace, ref).id == runs[index]


def test_latest_can_name_the_cohort(workspace, runs, kit):
    """The same version may have been run on several cohorts."""
    cohort = kit.make_spec().cohort
    assert find_run(workspace, f"latest:extractor@v1:{cohort}").id == runs[0]
    with pytest.raises(DataError, match="no finished run of extractor on elsewhere"):
        find_run(workspace, "latest:extractor:elsewhere")


def test_run_of_a_draft_is_latest_only_by_name(workspace, runs, kit, clock):
    """A refused revision must not become what `evaluate` scores by default."""
    draft = "extractor@draft:d1"
    with open_store(workspace) as store:
        spec = kit.make_spec(prompt=draft)
        items = kit.make_items("a")
        done = kit.run_items(store, kit.TableEngine(), items, spec=spec, now=clock)
    assert find_run(workspace, "latest").id == runs[2]
    assert find_run(workspace, "latest:extractor").id == runs[1]
    assert find_run(workspace, f"latest:{draft}").id == done.run_id


def test_a_run_is_found_by_id_and_by_its_unique_beginning(workspace, runs):
    """Ids begin with the time, so a few more characters tell two apart."""
    assert find_run(workspace, runs[0]).id == runs[0]
    assert find_run(workspace, runs[0][:15]).id == runs[0]


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("2026", "fits 3 runs.*Write more of the id"),
        ("2019", "no run '2019'.*Use `latest`"),
        ("", "no run ''"),
        ("%", "no run '%'"),
        ("latest:other", "no finished run of other.*ranloop run"),
        ("2027", "did not finish.*asks only for what is missing"),
    ],
)
def test_a_run_that_cannot_be_used_says_what_to_do(workspace, runs, ref, message):
    """Each message names the way out."""
    with pytest.raises(DataError, match=message):
        find_run(workspace, ref)


def test_no_runs_at_all(workspace):
    """The first thing a newcomer may do is to evaluate nothing."""
    with pytest.raises(DataError, match="no finished run"):
        find_run(workspace)


def test_the_manifest_says_what_was_measured_with_what(workspace, runs):
    """Digests, versions, platform, git, counts: enough to repeat the run."""
    record = find_run(workspace)
    environment = read_environment(workspace.root)
    path = write_manifest(workspace, record, {"engine": "table"}, environment)
    manifest = read_manifest(workspace, record.id)
    assert manifest["run_id"] == record.id
    assert manifest["spec"]["prompt_digest"] == "a" * 64
    assert manifest["spec"]["cohort_digest"] == "b" * 64
    assert manifest["engine_identity"] == {"engine": "table"}
    assert manifest["counts"]["answered"] == 1
    assert manifest["packages"]["numpy"]
    assert set(manifest["git"]) == {"revision", "dirty"}
    assert manifest["created"] <= manifest["finished"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_missing_or_broken_manifest_is_reported(workspace, runs):
    """The path is named."""
    with pytest.raises(DataError, match=r"manifest\.json does not exist"):
        read_manifest(workspace, runs[0])
    path = workspace.private / "runs" / runs[0] / "manifest.json"
    path.write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        read_manifest(workspace, runs[0])
    path.write_text(json.dumps([]))
    with pytest.raises(DataError, match="is not a manifest"):
        read_manifest(workspace, runs[0])
