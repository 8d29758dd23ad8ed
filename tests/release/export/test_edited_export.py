"""Any change of an export is refused, also one whose digests were corrected."""

import json
import os
import shutil

import pytest

from loop.core.digests import digest_bytes, digest_json
from loop.core.errors import DataError
from loop.release.export import contents, load_export
from loop.release.export.contents import digest_files, read_plain
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


def test_a_case_is_asked_about_every_label(workspace, tmp_path):
    """Also where whoever cut the last question off counts the cases as they are now."""
    texts = {name: TEXTS[name] for name in ("a", "b 2")}
    whole = exported(
        workspace, tmp_path / "x", "vllm-batch", version=PER_LABEL, texts=TEXTS
    )
    short = exported(
        workspace, tmp_path / "y", "vllm-batch", version=PER_LABEL, texts=texts
    )
    lines = (whole / "requests-0001.jsonl").read_bytes().splitlines(keepends=True)
    assert (short / "requests-0001.jsonl").read_bytes() == b"".join(lines[:4])
    (short / "requests-0001.jsonl").write_bytes(b"".join(lines[:5]))
    reseal(short)
    with pytest.raises(DataError, match=r"requests-0001\.jsonl is not what"):
        load_export(short)


def test_what_keeps_git_away_from_texts_is_part_of_the_export(batch):
    """Changed, the next commit would take the texts along."""
    (batch / ".gitignore").write_text("")
    reseal(batch)
    with pytest.raises(DataError, match=r"\.gitignore is not what"):
        load_export(batch)
    (batch / ".gitignore").unlink()
    reseal(batch)
    with pytest.raises(DataError, match=r"cannot read .*\.gitignore"):
        load_export(batch)


def test_files_of_requests_are_numbered_without_a_gap(batch):
    """A service is sent all of them: one that is missing would not be missed."""
    (batch / "requests-0001.jsonl").rename(batch / "requests-0002.jsonl")
    reseal(batch)
    with pytest.raises(DataError, match=r"requests-0002\.jsonl is not part"):
        load_export(batch)


def test_templates_keep_no_file_of_requests(plain):
    """Nor what keeps git away: nothing in them is anybody's text."""
    for name in ("requests-0001.jsonl", ".gitignore"):
        (plain / name).write_text("*\n")
        reseal(plain)
        with pytest.raises(DataError) as refused:
            load_export(plain)
        assert str(refused.value) == (
            f"{plain / name} is not part of the export. Remove it, or export again."
        )
        (plain / name).unlink()


def test_another_prompt_in_the_folder_is_named(plain):
    """Which one is there, and which one was exported."""
    path = plain / "ranloop.json"
    edit(path, VERSION.digest, "0" * 64)
    reseal(plain)
    with pytest.raises(DataError) as refused:
        load_export(plain)
    assert str(refused.value) == (
        f"{plain / 'prompt'} is the prompt version {VERSION.digest[:12]}, and the "
        "export is of 000000000000. Export it again."
    )


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


def test_files_are_digested_in_a_real_folder_only(plain, tmp_path):
    """Names sorted, with a slash between folders."""
    assert list(digest_files(plain)) == [
        "prompt/guides.yaml",
        "prompt/prompt.yaml",
        "prompt/system.jinja",
        "prompt/user.jinja",
        "ranloop.json",
        "schema.json",
        "system.jinja",
        "user.jinja",
    ]
    (tmp_path / "link").symlink_to(plain)
    for path in (plain / "schema.json", tmp_path / "link", tmp_path / "nowhere"):
        with pytest.raises(DataError) as refused:
            digest_files(path)
        assert str(refused.value) == (
            f"{path} is not a folder. Name the folder of an export."
        )


def test_a_file_has_a_largest_size(tmp_path, monkeypatch):
    """The limit itself is read whole; one byte more is refused."""
    monkeypatch.setattr(contents, "MAX_BYTES", 4)
    path = tmp_path / "plain"
    path.write_bytes(b"1234")
    assert read_plain(path) == b"1234"
    path.write_bytes(b"12345")
    with pytest.raises(DataError, match="plain is larger than any file of an export"):
        read_plain(path)


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
