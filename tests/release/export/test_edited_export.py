"""Any change of an export is refused, also one whose digests were corrected."""

import json
import os
import shutil

import pytest

from loop.core.digests import digest_bytes, digest_json
from loop.core.errors import DataError
from loop.release.export import load_export
from loop.release.export.contents import read_plain
from tests.release.export.scenes import PER_LABEL, TEXTS, VERSION, exported


def reseal(folder):
    """Correct every digest of the manifest, as whoever changed a file would."""
    path = folder / "ranloop.json"
    manifest = json.loads(path.read_text())
    manifest["files"] = {
        name: digest_bytes((folder / name).read_bytes())
        for name in sorted(
            str(found.relative_to(folder))
            for found in folder.rglob("*")
            if found.is_file() and found != path
        )
    }
    del manifest["digest"]
    manifest["digest"] = digest_json(manifest)
    path.write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")


def edit(path, old, new):
    """Replace something that is there."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.fixture
def batch(workspace, tmp_path):
    """Return an export with the requests of three cases."""
    return exported(workspace, tmp_path / "x", "vllm-batch", texts=TEXTS)


@pytest.fixture
def plain(workspace, tmp_path):
    """Return an export of templates."""
    return exported(workspace, tmp_path / "x", "jinja")


def test_resealing_alone_changes_nothing(plain):
    """The enemy of these tests writes what we write."""
    before = (plain / "ranloop.json").read_bytes()
    reseal(plain)
    assert (plain / "ranloop.json").read_bytes() == before
    assert load_export(plain).prompt_digest == VERSION.digest


@pytest.mark.slow
@pytest.mark.parametrize(("flip", "step"), [(0x01, 1), (0x20, 11), (0x80, 13)])
def test_every_flipped_byte_is_refused(plain, flip, step):
    """All bytes of all files: 100 %; of other flips a sample."""
    flipped = 0
    for path in sorted(plain.rglob("*")):
        if not path.is_file():
            continue
        whole = path.read_bytes()
        for place in range(0, len(whole), step):
            changed = bytearray(whole)
            changed[place] ^= flip
            path.write_bytes(changed)
            with pytest.raises(DataError):
                load_export(plain)
            flipped += 1
        path.write_bytes(whole)
    assert load_export(plain).prompt_digest == VERSION.digest
    assert flipped > 3_000 / step


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("system.jinja", "Read", "Skip"),
        ("user.jinja", "edema: Fluid", "edema: No fluid"),
        ("schema.json", "uncertain", "unlikely"),
        ("prompt/system.jinja", "Read", "Skip"),
        ("prompt/guides.yaml", "Fluid", "Air"),
    ],
)
def test_a_change_with_corrected_digests_is_refused(plain, name, old, new):
    """What is loaded must be what the prompt makes, and the prompt has one digest."""
    edit(plain / name, old, new)
    reseal(plain)
    with pytest.raises(DataError, match="Export it again"):
        load_export(plain)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("contract", "findings/1"),
        ("labels", ["edema"]),
        ("remarks", []),
        ("plan", "per_label"),
        ("target", "dspy"),
        ("target", "another"),
        ("format", "ranloop-export/2"),
        ("cases", {"origin": "x", "count": 0, "digest": ""}),
        ("batch_metadata", {"a": "b"}),
        ("unknown", 1),
    ],
)
def test_a_manifest_that_says_something_else_is_refused(plain, key, value):
    """Even with its own digest corrected."""
    path = plain / "ranloop.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    reseal(plain)
    with pytest.raises(DataError):
        load_export(plain)


def test_another_prompt_has_another_digest(plain, workspace, tmp_path):
    """Whoever changes everything consistently has made another prompt, and it shows."""
    other = exported(workspace, tmp_path / "y", "jinja", version=PER_LABEL)
    assert load_export(other).prompt_digest != load_export(plain).prompt_digest


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:-1],
        lambda lines: [*lines, lines[0]],
        lambda lines: lines[::-1],
        lambda lines: [lines[0].replace(b"No edema", b"Edema"), *lines[1:]],
        lambda lines: [lines[0].replace(b'"seed":7', b'"seed":8'), *lines[1:]],
        lambda lines: [lines[0].rstrip(b"\n"), *lines[1:]],
        lambda lines: [*lines, b"\n"],
        lambda lines: [],
    ],
)
def test_requests_that_were_changed_are_refused(batch, change):
    """Cut, doubled, reordered, edited: the cases have a digest of their own."""
    path = batch / "requests-0001.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    reseal(batch)
    with pytest.raises(DataError):
        load_export(batch)


def test_the_calls_of_a_case_stay_together(workspace, tmp_path):
    """Every label of a case is asked about the same text."""
    folder = exported(
        workspace, tmp_path / "x", "vllm-batch", version=PER_LABEL, texts=TEXTS
    )
    path = folder / "requests-0001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1], lines[3] = lines[3], lines[1]
    path.write_bytes(b"".join(lines))
    reseal(folder)
    with pytest.raises(DataError):
        load_export(folder)


def test_a_file_too_many_is_refused_by_name(plain):
    """Something may load it."""
    (plain / "extra.jinja").write_text("x")
    with pytest.raises(DataError, match=r"extra\.jinja is not part"):
        load_export(plain)
    reseal(plain)
    with pytest.raises(DataError, match=r"extra\.jinja is not part"):
        load_export(plain)


def test_a_missing_file_is_refused_by_name(plain):
    """Also with the manifest corrected."""
    (plain / "schema.json").unlink()
    with pytest.raises(DataError, match=r"schema\.json is missing"):
        load_export(plain)
    reseal(plain)
    with pytest.raises(DataError, match=r"schema\.json is missing"):
        load_export(plain)


def test_links_pipes_and_folders_are_refused(plain, tmp_path):
    """Without opening them."""
    (tmp_path / "same").write_bytes((plain / "schema.json").read_bytes())
    (plain / "schema.json").unlink()
    (plain / "schema.json").symlink_to(tmp_path / "same")
    with pytest.raises(DataError, match=r"'schema\.json' is not a regular file"):
        load_export(plain)
    (plain / "schema.json").unlink()
    os.mkfifo(plain / "schema.json")
    with pytest.raises(DataError, match=r"'schema\.json' is not a regular file"):
        load_export(plain)
    (plain / "schema.json").unlink()
    (plain / "ranloop.json").unlink()
    os.mkfifo(plain / "ranloop.json")
    with pytest.raises(DataError, match="is not a regular file"):
        load_export(plain)


def test_a_folder_that_is_none_is_refused(plain, tmp_path):
    """With what to name instead."""
    with pytest.raises(DataError, match="cannot read"):
        load_export(tmp_path / "nowhere")
    (tmp_path / "link").symlink_to(plain)
    with pytest.raises(DataError, match="Name the folder of an export"):
        load_export(tmp_path / "link")


def test_a_deep_folder_inside_is_refused(plain):
    """Only prompt/ is a folder."""
    shutil.copytree(plain / "prompt", plain / "prompt" / "prompt")
    with pytest.raises(DataError, match="not a regular file"):
        load_export(plain)


def test_a_file_that_became_a_link_is_not_followed(tmp_path):
    """It was a file when the folder was listed; it may lead anywhere now."""
    path = tmp_path / "plain"
    path.write_bytes(b"1")
    assert read_plain(path) == b"1"
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(DataError, match="cannot read"):
        read_plain(tmp_path / "link")
