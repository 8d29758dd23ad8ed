"""Manifests and the names of runs."""

import json
import platform
import stat
from importlib.metadata import version

import pytest

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.records import Completion
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.run import manifest
from loop.run.manifest import (
    find_run,
    list_runs,
    name_part,
    ran_freely,
    read_environment,
    read_manifest,
    say_part,
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


@pytest.fixture
def add(workspace, kit, clock):
    """Return what adds a finished run with its own spec, and returns its id."""

    def add_run(*texts, **changes):
        spec = kit.make_spec(**changes)
        items = kit.make_items(*(texts or ("a",)))
        with open_store(workspace) as store:
            done = kit.run_items(store, kit.TableEngine(), items, spec=spec, now=clock)
        return done.run_id

    return add_run


@pytest.mark.parametrize(
    ("texts", "limit", "part"),
    [
        ("abc", None, ""),
        ("abc", 3, "the first 3 cases"),
        ("abc", 4, ""),
        ("a", 1, "the first case"),
        (map(str, range(1200)), 1200, "the first 1,200 cases"),
    ],
)
def test_a_run_knows_whether_it_asked_a_part(workspace, add, texts, limit, part):
    """Of a cohort with fewer cases than the limit, all were asked."""
    run = add(*texts, limit=limit)
    with open_store(workspace) as store:
        (record,) = store.find_runs(ids=[run])
    assert name_part(record) == part
    said = f"Run {run} asked {part} of dev only; `latest` never names it, "
    assert say_part(record) == (f"{said}and no history shows it." if part else "")


def test_a_part_with_cases_that_failed_is_a_part(workspace, kit, add):
    """What the engine did not answer was asked too."""
    whole = add("a", "b")
    spec = kit.make_spec(limit=2)
    engine = kit.TableEngine({"c": Completion("", "error", "timeout"), "d": "?"})
    with open_store(workspace) as store:
        part = kit.run_items(store, engine, kit.make_items("c", "d"), spec=spec)
    assert (part.failed, part.unparsed) == (1, 1)
    assert name_part(find_run(workspace, part.run_id)) == "the first 2 cases"
    assert find_run(workspace).id == whole


def test_a_part_of_a_cohort_is_never_the_latest(workspace, add):
    """The refusal names the newest; a whole one is found behind it."""
    add("a", limit=1)
    newest = add("a", "b", limit=2)
    with pytest.raises(DataError) as refused:
        find_run(workspace, "latest:extractor:dev")
    assert str(refused.value) == (
        "there is no finished run of extractor on dev over a whole cohort. Run "
        f"{newest} asked the first 2 cases only: name it, or run without --limit."
    )
    whole = add("a", "b", "c")
    last = add("a", "c", limit=2)
    assert find_run(workspace).id == whole
    assert find_run(workspace, last).id == last


def test_of_repeated_runs_the_first_is_the_latest(workspace, add):
    """But of a draft any draw is: its checks begin where they like."""
    first = add(draw=0)
    add(draw=1)
    assert find_run(workspace).id == first
    drawn = add(prompt="extractor@draft:d1", draw=2)
    assert find_run(workspace, "latest:extractor@draft:d1").id == drawn


@pytest.mark.parametrize(
    ("ref", "prompt", "cohort"),
    [
        ("latest:extractor@v1:other", "extractor@v1", "other"),
        ("latest:extractor@draft:d1:other", "extractor@draft:d1", "other"),
        ("latest:extractor@draft:d1", "extractor@draft:d1", "dev"),
        ("latest:extractor@v1", "extractor@v1", "dev"),
    ],
)
def test_a_draft_s_colon_is_not_that_before_a_cohort(
    workspace, add, ref, prompt, cohort
):
    """Prompt and cohort are told apart in every form."""
    made = {
        (name, place): add(prompt=name, cohort=place)
        for place in ("other", "dev")
        for name in ("extractor@v1", "extractor@draft:d1")
    }
    assert find_run(workspace, ref).id == made[prompt, cohort]


def test_a_run_of_another_prompt_with_the_same_beginning_is_not_meant(workspace, add):
    """A name is whole, and a version too."""
    add(prompt="extractor@v12")
    add(prompt="extractors@v1")
    with pytest.raises(DataError, match="no finished run of extractor@v1\\. Make one"):
        find_run(workspace, "latest:extractor@v1")


def test_an_id_is_its_own_run_although_others_begin_with_it(workspace, kit):
    """Two runs of the same second and question differ by a number at the end."""
    with open_store(workspace) as store:
        for number in range(6):
            at = f"20270101-000000-abcde{number}"
            run = store.add_run(at, f"2027-01-0{number + 1}", "m", kit.make_spec()).id
            store.finish_run(run, "2027", {})
        first = "20270101-000000-abcde"
        store.add_run(first, "2026", "m", kit.make_spec())
        store.finish_run(first, "2027", {})
    assert find_run(workspace, first).id == first
    with pytest.raises(DataError) as refused:
        find_run(workspace, first[:-1])
    newest = ", ".join(f"{first}{number}" for number in (5, 4, 3, 2, 1))
    assert str(refused.value) == (
        f"'{first[:-1]}' fits 7 runs: {newest}. Write more of the id."
    )


def test_no_run_on_a_holdout_is_listed(workspace, add, tmp_path):
    """Nor one on a cohort that the ledger does not know: it may be a holdout."""
    for name, role in (("open", "dev"), ("outside", "external"), ("held", "holdout")):
        source = tmp_path / f"{name}.csv"
        source.write_text(f"case_id,text\n{name}1,Clear lungs in {name}.\n")
        options = ImportOptions(name=name, role=role, source="test", licence="none")
        import_cohort(workspace, source, options, actor=Actor(name="t"))
    runs = [add(cohort=name) for name in ("outside", "unknown", "open", "held")]
    with open_store(workspace) as store:
        listed = [one.id for one in list_runs(workspace, store)]
    assert listed == [runs[2], runs[0]]
    assert find_run(workspace, "latest").id == runs[2]
    assert find_run(workspace, "latest:extractor:held").id == runs[3]


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
    kept = read_manifest(workspace, record.id)
    assert kept["run_id"] == record.id
    assert kept["spec"]["prompt_digest"] == "a" * 64
    assert kept["spec"]["cohort_digest"] == "b" * 64
    assert kept["engine_identity"] == {"engine": "table"}
    assert kept["counts"]["answered"] == 1
    assert kept["packages"]["numpy"]
    assert set(kept["git"]) == {"revision", "dirty"}
    assert kept["created"] <= kept["finished"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_manifest_keeps_what_an_engine_counted(workspace, runs, monkeypatch):
    """Null where it counts nothing; so is a package that is not installed."""
    record = find_run(workspace)
    monkeypatch.setattr(manifest, "_PACKAGES", ("numpy", "not-installed"))
    environment = read_environment(workspace.root)
    assert environment.packages["not-installed"] is None
    for account in (None, {}, {"batches": 3}):
        write_manifest(workspace, record, {}, environment, account)
        kept = read_manifest(workspace, record.id)
        assert kept["engine_account"] == account
    assert kept["packages"]["not-installed"] is None


@pytest.mark.parametrize(
    ("told", "freely"),
    [({"constrained": False}, True), ({"constrained": True}, False), ({}, False)],
)
def test_a_run_asked_freely_only_if_its_engine_says_so(workspace, runs, told, freely):
    """An engine that knows no schema says nothing."""
    record = find_run(workspace, runs[0])
    environment = read_environment(workspace.root)
    write_manifest(workspace, record, {"engine": "table", **told}, environment)
    assert ran_freely(workspace, record.id) is freely


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


def test_a_manifest_holds_the_record_the_engine_and_the_machine(workspace, runs):
    """Whole, as it is read back; its names are the ones that other programs read."""
    record = find_run(workspace, runs[0])
    environment = read_environment(workspace.root)
    assert environment.python == platform.python_version()
    assert environment.platform == platform.platform()
    assert environment.packages["scipy"] == version("scipy")
    assert len(environment.packages) == 9
    identity = {"engine": "table", "name": "é"}
    path = write_manifest(workspace, record, identity, environment, {"asked": 3})
    assert path == workspace.private / "runs" / record.id / "manifest.json"
    assert "é" in path.read_text("utf-8")
    assert read_manifest(workspace, record.id) == {
        "run_id": record.id,
        "created": record.created,
        "finished": record.finished,
        "counts": {
            "items": 1,
            "asked": 1,
            "cached": 0,
            "answered": 1,
            "unparsed": 0,
            "failed": 0,
        },
        "spec": {
            "prompt": "extractor@v1",
            "prompt_digest": "a" * 64,
            "contract": "label_values/1",
            "cohort": "dev",
            "cohort_digest": "b" * 64,
            "engine": "table",
            "parameters": {"temperature": 0.0},
            "reference": None,
            "reference_digest": None,
            "protocol_digest": None,
            "limit": None,
            "draw": 0,
        },
        "engine_identity": identity,
        "engine_account": {"asked": 3},
        "python": environment.python,
        "platform": environment.platform,
        "packages": dict(environment.packages),
        "git": {"revision": None, "dirty": None},
    }
