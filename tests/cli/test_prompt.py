"""The verbs ``init`` and ``prompt``: begin, read and edit prompts of one's own."""

import json
import shutil
import stat
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from loop.cli import prompt
from loop.cli.main import app
from loop.core.errors import DataError, EngineError, WriteError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths, bundled, init_workspace
from loop.labels.label_list import read_label_list
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import (
    list_drafts,
    list_prompts,
    read_version,
    write_version,
)
from loop.prompts.version import PromptVersion
from loop.review import start
from loop.run.task_fields import require_fields
from loop.score import ran_score
from loop.workspace import Workspace

LABELS = (
    "name,definition\n"
    "Ischaemic infarct,A part of the brain that lost its blood supply.\n"
    "Mass,A space-occupying lesion inside the skull.\n"
)


def call(*words, workspace=None):
    """Run one command."""
    where = ("-w", str(workspace.root)) if workspace else ()
    return CliRunner().invoke(app, [*map(str, words), *where])


@pytest.fixture
def own(tmp_path):
    """Make a workspace of one's own with two labels."""
    (tmp_path / "labels.csv").write_text(LABELS, encoding="utf-8")
    done = call(
        *("init", tmp_path / "own", "--task", "new"),
        *("--labels", tmp_path / "labels.csv"),
    )
    assert done.exit_code == 0, done.output
    assert "Next:" in done.stdout and "ranloop run extractor" in done.stdout
    return WorkspacePaths(tmp_path / "own")


@pytest.fixture
def chest(tmp_path):
    """Make a workspace for chest X-rays."""
    done = call("init", tmp_path / "chest", "--actor", "Dr A", "--json")
    assert done.exit_code == 0, done.output
    return WorkspacePaths(tmp_path / "chest")


def edit_with(monkeypatch, tmp_path, script):
    """Let `script`, a line of sed, be the editor."""
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\nsed -i "{script}" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)


def test_a_new_workspace_has_no_history_but_its_own(chest):
    """One version, whose entry says where it comes from; nothing of the maintainers."""
    (entry,) = read_ledger(chest.ledger)
    version = read_version(chest, "extractor")
    shipped = read_version(WorkspacePaths(bundled()), "extractor@latest")
    assert (entry.subject, entry.actor) == ("extractor@v1", "Dr A")
    assert version.digest == shipped.digest == entry.payload["origin"]["digest"]
    assert entry.payload["origin"] | {"ranloop": ""} == {
        "version": shipped.ref,
        "digest": shipped.digest,
        "same_digest": True,
        "shipped": True,
        "release": "extractor-v11",
        "ranloop": "",
    }
    assert (version.author, version.verdicts, version.parent) == ("Dr A", (), None)
    assert "the same prompt as the shipped extractor@v11" in version.why
    assert not chest.releases.exists() and not (chest.labels / "demo").exists()
    assert (
        chest.protocol.read_bytes()
        == (bundled() / "labels" / "protocol.yaml").read_bytes()
    )
    audit = call("audit", "--json", workspace=chest)
    assert json.loads(audit.stdout)["counts"]["broken"] == 0


def test_a_workspace_that_is_there_stays_as_it_is(chest):
    """And a list of labels that is wrong leaves nothing behind."""
    before = chest.ledger.read_bytes()
    again = call("init", chest.root)
    assert "already a workspace" in str(again.exception)
    assert chest.ledger.read_bytes() == before
    wrong = chest.root / "wrong.csv"
    wrong.write_text("no list")
    new = call("init", chest.root / "x", "--task", "new", "--labels", wrong)
    assert isinstance(new.exception, DataError) and not (chest.root / "x").exists()


def test_a_workspace_that_cannot_be_finished_leaves_nothing(tmp_path, monkeypatch):
    """A folder that was there stays, without becoming a workspace."""

    def full(*_args, **_more):
        raise WriteError("cannot write: the disk is full. Nothing was changed.")

    monkeypatch.setattr(start, "move_folder", full)
    new, there = tmp_path / "new", tmp_path / "there"
    there.mkdir()
    (there / "mine.txt").write_text("mine")
    for folder in (new, there):
        done = call("init", folder)
        assert isinstance(done.exception, WriteError)
    assert not new.exists() and (there / "mine.txt").is_file()
    monkeypatch.undo()
    assert call("init", there).exit_code == 0


def test_an_init_that_was_killed_is_finished_by_the_same_command(tmp_path):
    """Until the last rename there is no prompt; a workspace of another task stays."""
    labels = tmp_path / "labels.csv"
    labels.write_text(LABELS, encoding="utf-8")
    init_workspace(tmp_path / "ws", read_label_list(labels))
    other = call("init", tmp_path / "ws")
    assert "already a workspace" in str(other.exception)
    done = call("init", tmp_path / "ws", "--task", "new", "--labels", labels)
    assert done.exit_code == 0, done.output
    place = WorkspacePaths(tmp_path / "ws")
    assert read_version(place, "extractor").number == len(read_ledger(place.ledger))
    assert [one.name for one in place.prompts.iterdir() if one.is_dir()] == [
        "extractor"
    ]


def test_a_task_and_its_labels_belong_together(tmp_path):
    """One without the other is a slip."""
    assert call("init", tmp_path / "a", "--task", "new").exit_code == 2
    assert call("init", tmp_path / "a", "--labels", tmp_path).exit_code == 2


def test_a_first_prompt_speaks_of_any_report_and_lints(own):
    """No word of chest X-rays; what lint still asks for are examples."""
    shown = call("prompt", "show", "extractor", workspace=own)
    assert "chest" not in shown.stdout.casefold() and "Ischaemic" in shown.stdout
    lint = call("lint", "extractor", "--json", workspace=own)
    found = json.loads(lint.stdout)["findings"]
    assert lint.exit_code == 0 and all("exemplar" in one["message"] for one in found)
    data = json.loads(
        call("prompt", "show", "extractor", "--json", workspace=own).stdout
    )
    assert data["labels"] == ["ischaemic_infarct", "mass"]
    rendered = call("prompt", "show", "extractor", "--rendered", workspace=own)
    assert "## ischaemic_infarct: Ischaemic infarct" in rendered.stdout


@pytest.fixture
def changed(chest):
    """Add a version in which one label has another term."""
    first = read_version(chest, "extractor")
    guides = tuple(
        replace(one, terms=("feeding button", *one.terms))
        if one.label == "support_devices"
        else one
        for one in first.guides
    )
    second = replace(first, number=2, parent=first.digest, guides=guides, author="Dr B")
    write_version(chest, second)
    return chest


def test_a_version_is_shown_with_what_changed_since_its_parent(changed):
    """The messages whole, each line of the parent's that is another marked."""
    shown = call("prompt", "show", "extractor", "--changes", workspace=changed)
    assert shown.exit_code == 0, shown.output
    marked = [one for one in shown.stdout.splitlines() if one[:1] in ("+", "-")]
    assert [one[:2] for one in marked] == ["- ", "+ "]
    assert "feeding button" in marked[1] and "button" not in marked[0]
    data = json.loads(
        call(
            "prompt", "show", "extractor", "--changes", "--json", workspace=changed
        ).stdout
    )
    assert (data["prompt"], data["parent"]) == ("extractor@v2", "extractor@v1")
    assert data["calls"][0]["changes"] == 2 and data["gone"] == []


def test_calls_that_only_the_parent_made_are_told(capsys):
    """Beside the lines of each call, with their signs."""
    lines = [SimpleNamespace(sign=sign, text=text) for sign, text in LINES]
    call = SimpleNamespace(
        name="edema",
        changes=1,
        messages=[SimpleNamespace(role="user", lines=lines)],
    )
    for gone, last in (((), ""), (("mass", "joint"), GONE)):
        prompt._print_changes(SimpleNamespace(calls=[call, call], gone=gone))
        shown = "\n# call edema: 1 line changed\n## user\n  One.\n\n- Two.\n+ Three.\n"
        assert capsys.readouterr().out == 2 * shown + last


LINES = (("", "One."), ("", ""), ("-", "Two."), ("+", "Three."))
GONE = "\ncalls that are made no more: mass, joint\n"


def test_tokens_are_counted_by_section_and_by_label(changed):
    """Beside the parent's; whose tokens they are is said."""
    shown = call("prompt", "show", "extractor", "--tokens", workspace=changed).stdout
    assert "estimated" in shown
    (devices,) = (
        one.split() for one in shown.splitlines() if one.startswith("support_devices ")
    )
    assert int(devices[1]) - int(devices[2]) == int(devices[3]) > 0
    words = ("prompt", "show", "extractor", "--tokens", "--json")
    tokens = json.loads(call(*words, workspace=changed).stdout)["tokens"]
    assert (
        sum(one["tokens"] or 0 for one in tokens["sections"])
        == tokens["total"]["tokens"]
    )
    assert tokens["exact"] is False
    page = Workspace(changed.root).prompt_page("extractor")
    assert page.tokens.total.tokens == tokens["total"]["tokens"]
    assert repr(page).startswith("<page of extractor@v2: ") and len(repr(page)) < 80


def test_who_each_line_is_from_is_shown(changed):
    """The newest first; a label's own with --label."""
    words = ("prompt", "show", "extractor", "--blame", "--label", "support_devices")
    shown = call(*words, workspace=changed).stdout
    lines = shown.splitlines()
    assert lines[2] == "support_devices" and lines[3].endswith("Dr B")
    assert lines[4] == "    term: feeding button"
    assert lines[5].endswith("Dr A") and "cardiomegaly" not in shown
    data = json.loads(call(*words, "--json", workspace=changed).stdout)
    (new,) = (one for one in data["lines"] if one["version"] == "extractor@v2")
    assert (new["label"], new["text"], new["author"], new["verdicts"]) == (
        *("support_devices", "feeding button"),
        *("Dr B", []),
    )


def test_what_cannot_be_told_is_no_empty_list(changed):
    """The first version is gone: nobody is named, and the command fails."""
    shutil.rmtree(changed.prompts / "extractor" / "v1")
    done = call("prompt", "show", "extractor", "--blame", workspace=changed)
    assert "Restore the missing folder" in str(done.exception)
    tokens = call("prompt", "show", "extractor", "--tokens", workspace=changed)
    assert tokens.exit_code == 0 and "Restore the missing folder" in tokens.stderr
    assert tokens.stdout.startswith("extractor@v2, its parent is gone")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tokens", "--blame"), "Give one of them"),
        (("--label", "support_devices"), "--label is for --blame"),
        (("--blame", "--label", "spleen"), "has no guide for 'spleen'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(chest, words, message):
    """With what to give instead."""
    done = call("prompt", "show", "extractor", *words, workspace=chest)
    assert isinstance(done.exception, DataError) and message in str(done.exception)


def test_a_second_prompt_begins_with_a_version_or_with_labels(chest, tmp_path):
    """A shipped version where the workspace has none of that number."""
    made = call("prompt", "new", "short", "--from", "extractor@v7", workspace=chest)
    assert "taken from the shipped extractor@v7" in made.stdout
    source = read_version(WorkspacePaths(bundled()), "extractor@v7")
    assert read_version(chest, "short").guides == source.guides
    few = tmp_path / "few.csv"
    means = read_taxonomy(chest.labels).find("edema").definition
    few.write_text(f'name,definition\nEdema,"{means}"\n', encoding="utf-8")
    done = call("prompt", "new", "one", "--labels", few, "--json", workspace=chest)
    assert json.loads(done.stdout)["labels"] == ["edema"]
    assert list_prompts(chest) == ("extractor", "one", "short")
    twice = call("prompt", "new", "one", workspace=chest)
    assert "there is a prompt one already" in str(twice.exception)
    named = call("prompt", "new", "No Name", workspace=chest)
    assert "cannot be the name of a prompt" in str(named.exception)
    gone = call("prompt", "new", "x", "--from", "extractor@v99", workspace=chest)
    assert "has no version v99" in str(gone.exception)


def test_a_prompt_of_other_labels_is_refused(own):
    """Before it exists, and where it exists all the same, before it is run."""
    done = call("prompt", "new", "chest", "--from", "extractor@v11", workspace=own)
    assert "asks for no label of labels/taxonomy.yaml" in str(done.exception)
    assert list_prompts(own) == ("extractor",)
    shipped: PromptVersion = read_version(WorkspacePaths(bundled()), "extractor@v1")
    with pytest.raises(DataError, match="no answer could be scored"):
        require_fields(own, shipped)


def test_a_run_without_an_answer_is_no_success(own, tmp_path):
    """Every case has one outcome, and none of them is an answer."""
    source = tmp_path / "empty.csv"
    source.write_text("case_id,text\na,INDICATION: Mass?\nb,INDICATION: Infarct?\n")
    call("cohort", "import", source, "--name", "dev", "--language", "en", workspace=own)
    done = call("run", "extractor", "--cohort", "dev", "--json", workspace=own)
    assert json.loads(done.stdout)["failed"] == 2
    assert done.exit_code == 1 and isinstance(done.exception, EngineError)
    assert "no case of run" in str(done.exception)


def test_instructions_are_edited_in_an_editor(own, tmp_path, monkeypatch):
    """What was changed becomes a draft; nothing changed, no draft."""
    add_dev(own, tmp_path)
    edit_with(monkeypatch, tmp_path, "s/You read one report/You read one MRI report/")
    done = call("prompt", "edit", "extractor", "-c", "dev", "--json", workspace=own)
    draft = json.loads(done.stdout)["draft"]
    assert read_version(own, draft).system.startswith("You read one MRI report")
    edit_with(monkeypatch, tmp_path, "s/nowhere/x/")
    same = call("prompt", "edit", draft, workspace=own)
    assert "nothing to save" in str(same.exception)
    assert len(list_drafts(own, "extractor")) == 1


def test_a_guide_that_cannot_be_read_is_kept_for_the_next_try(
    own, tmp_path, monkeypatch
):
    """And leaves no draft behind; the second time it is opened as it was typed."""
    add_dev(own, tmp_path)
    ask = ("prompt", "edit", "extractor", "--label", "mass", "-c", "dev", "--json")
    edit_with(monkeypatch, tmp_path, "s/definition:/defintion:/")
    wrong = call(*ask, workspace=own)
    assert "there is no such field" in str(wrong.exception)
    assert not list_drafts(own, "extractor")
    edit_with(monkeypatch, tmp_path, "s/defintion: .*/definition: Any lesion./")
    done = call(*ask, workspace=own)
    assert "your text that could not be saved" in done.stderr
    guide = read_version(own, json.loads(done.stdout)["draft"]).guide("mass")
    assert guide is not None and guide.definition == "Any lesion."
    assert not any((own.private / "editing").iterdir())


def test_shipped_versions_still_score_in_a_workspace_of_ones_own(chest, tmp_path):
    """By the name of a release too; the signature says which version read."""
    for name, text in (("ref", "Small pleural effusion."), ("ours", "Edema.")):
        (tmp_path / f"{name}.csv").write_text(f"case_id,text\na,{text}\nb,No edema.\n")
    files = (tmp_path / "ref.csv", tmp_path / "ours.csv")
    for how, said in (
        ((), "extractor@v1:1da4a3"),
        (("--extractor", "extractor@v7"), "extractor@v7:"),
        (("--release", "extractor-v11"), "extractor@v11:1da4a3"),
    ):
        done = call("score", "--reference", *files, *how, "--json", workspace=chest)
        assert done.exit_code == 0, done.output
        assert said in done.stdout
    texts = {"a": "Edema.", "b": "No edema."}
    found = ran_score(texts, texts, workspace=chest, resamples=10, permutations=10)
    assert found.signature.startswith("ran|extractor@v11:1da4a3")


def add_dev(own, tmp_path):
    """Import a small dev cohort."""
    source = tmp_path / "dev.csv"
    source.write_text("case_id,text\na,There is a mass.\nb,No infarct.\n")
    done = call("cohort", "import", source, "--name", "dev", workspace=own)
    assert done.exit_code == 0, done.output
