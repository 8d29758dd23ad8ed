"""A judge with shots is released: with ids and digests, and without a text of them."""

import shutil
import sqlite3
from dataclasses import replace

import pytest
import yaml

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.judge.judge import Judge
from loop.labels.cohort import texts_path
from loop.prompts.catalog import read_version
from loop.release.audit.audit import audit_workspace
from loop.release.export import load_export
from loop.release.load import find_request, load_release
from loop.release.verify import verify_folder
from tests.judge.scenes import as_pool, call
from tests.release.judge_ready import make_judge_ready

pytestmark = pytest.mark.slow

WORDS = "zebra"
"""In every text of the pool, in its ratings and nowhere else."""


@pytest.fixture(scope="module")
def frozen(tmp_path_factory, first_version):
    """Release a judge that shows pairs of a private pool."""
    root = tmp_path_factory.mktemp("shots").resolve() / "ws"
    shutil.copytree(first_version.root, root)
    workspace = WorkspacePaths(root)
    assert as_pool(workspace, root.parent).exit_code == 0
    shots = ("--shots", "random:2", "--pool", "pool")
    ready = make_judge_ready(workspace, root.parent, shots=shots)
    return ready, ready.freeze()


@pytest.fixture
def released(frozen, tmp_path):
    """Return a copy of that workspace, to do something to."""
    ready, _ = frozen
    root = shutil.copytree(ready.workspace.root, tmp_path.resolve() / "copied")
    return replace(ready, workspace=WorkspacePaths(root), folder=tmp_path)


def test_it_is_frozen_and_holds_for_whoever_has_the_folder(frozen):
    """Its prompt is rendered with signs in the place of the texts."""
    ready, found = frozen
    assert found.objections == ()
    alone = verify_folder(found.folder, {ready.key.keyid: ready.key})
    assert alone.holds, alone.broken
    shots = read_version(ready.workspace, "mine@v1").shots
    assert found.facts.shots.digest == shots.digest
    assert found.facts.shots.examples == 2
    user = (found.folder / "rendered" / "user.txt").read_text()
    assert f"[candidate of shot 2: {shots.pins[1].digest[:12]}]" in user
    prompt = yaml.safe_load((found.folder / "prompt" / "prompt.yaml").read_text())
    assert prompt["shots"]["examples"] == dict(shots.pins)
    (dev, _) = found.facts.evaluations
    assert f"|{shots.sign}|pairs:" in dev.signature
    card = (found.folder / "card.md").read_text().replace("\\", "")
    assert "2 assessed pairs of the pool pool (random:2, seed 0, score rating" in card
    assert "it can be asked where that pool is" in card


def test_the_word_of_the_pool_is_nowhere_but_in_private_files(frozen):
    """Neither in the release, nor in prompts, labels and the ledger, nor in a log."""
    ready, _ = frozen
    root, private = ready.workspace.root, ready.workspace.private
    open_files = [
        path
        for path in root.rglob("*")
        if path.is_file() and private not in path.parents
    ]
    assert len(open_files) > 50
    for path in open_files:
        assert WORDS.encode() not in path.read_bytes().lower(), path
    with sqlite3.connect(private / "store.db") as store:
        dump = "\n".join(store.iterdump())
    assert WORDS not in dump.lower()
    manifests = [*private.rglob("manifest.json")]
    assert manifests
    assert all(WORDS not in path.read_text().lower() for path in manifests)


def test_a_workspace_with_it_passes_its_audit(frozen):
    """The ledger has the version's files."""
    ready, _ = frozen
    found = audit_workspace(ready.workspace)
    assert found.holds, [one for one in found.findings if one.severity == "broken"]


def test_it_is_asked_where_the_pool_is(released):
    """From the release, with the shots that it names."""
    found = find_request(released.workspace, release="mine-v1")
    with Judge.open(released.workspace, found.prompt) as judge:
        assert judge.judge(["Clear."], ["Clear."], ["en"]).asked == 1
        assert len(judge.version.shown) == 2


def test_without_the_pool_it_is_not_asked_and_still_holds(released):
    """The error says which pool, what to do, and no text."""
    texts_path(released.workspace, "pool").unlink()
    assert load_release(released.workspace, "mine-v1").verification.holds
    found = find_request(released.workspace, release="mine-v1")
    with pytest.raises(DataError, match="examples of the pool 'pool', which") as said:
        Judge.open(released.workspace, found.prompt)
    assert "Import the cohort again" in str(said.value)
    assert WORDS not in str(said.value).lower()


def test_other_shots_in_its_facts_or_its_prompt_are_noticed(released):
    """Also where somebody signs anew what is not said of the prompt."""
    folder = released.workspace.releases / "mine-v1"
    for name in ("release.json", "prompt/prompt.yaml"):
        path = folder / name
        before = path.read_bytes()
        path.write_bytes(before.replace(b"pool: pool", b"pool: pond"))
        path.write_bytes(path.read_bytes().replace(b'"pool":"pool"', b'"pool":"pond"'))
        assert path.read_bytes() != before
        found = verify_folder(folder, {released.key.keyid: released.key})
        assert not found.holds
        said = " ".join(one.what for one in found.broken)
        path.write_bytes(before)
        assert "shots of the prompt are not" in said or "prompt.yaml" in said
    assert verify_folder(folder, {released.key.keyid: released.key}).holds


@pytest.mark.parametrize("target", ["jinja", "dspy", "openai-batch"])
def test_an_export_would_carry_the_texts_out_and_is_refused(released, target):
    """With the way out: none, or those that ship."""
    out = released.folder / "out"
    done = call(released.workspace, "export", "mine@v1", "--to", target, "--out", out)
    assert done.exit_code != 0
    assert not out.exists()


def test_the_export_of_shots_that_ship_has_them(released):
    """Their texts are in the open."""
    made = call(
        released.workspace,
        *("prompt", "new", "open", "--from", "green@v1", "--shots", "random:2"),
    )
    assert made.exit_code == 0, made.output
    assert "shows 2 of pool synthetic (random:2, seed 0" in made.output
    out = released.folder / "open"
    done = call(released.workspace, "export", "open@v1", "--to", "jinja", "--out", out)
    assert done.exit_code == 0, (done.output, done.exception)
    assert any("<example>" in path.read_text() for path in out.glob("*.jinja"))
    assert load_export(out).version.shots.pool == "synthetic"
