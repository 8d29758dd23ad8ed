"""The beginning of a task: a first version, and a ledger that says where it is from."""

from dataclasses import replace

import pytest

from loop import __version__
from loop.core.check_findings import Finding, FindingSeverity, warning
from loop.core.errors import ConflictError, DataError, WorkspaceError, WriteError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.labels.error_categories import read_errors
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import file_digests, list_versions, read_version
from loop.review.start import (
    JudgeOutline,
    PromptOrigin,
    new_prompt,
    start_workspace,
)
from tests.review.revise.conftest import TINY
from tests.review.revise.conftest import setting as setting
from tests.review.revise.conftest import store as store
from tests.review.revise.stepping import FLUID, now
from tests.review.revise.stepping import begin as begin_draft

WHO = Actor(name="Dr A", role="editor")


def test_a_workspace_begins_with_the_shipped_extractor(tmp_path):
    """Its wording is that of the newest one, and the ledger says so in one entry."""
    source = read_version(WorkspacePaths(bundled()), "extractor@latest")
    made = start_workspace(tmp_path / "ws", WHO, now=now)
    assert made.origin is not None
    assert (made.origin.ref, made.origin.digest, made.origin.shipped) == (
        *(source.ref, source.digest, True),
    )
    version = made.version
    assert (version.ref, version.digest) == ("extractor@v1", source.digest)
    assert (version.parent, version.verdicts, version.draft) == (None, (), "")
    assert (version.author, version.time) == ("Dr A", "2026-01-07T10:00:00Z")
    released = f" (release {made.origin.release})" if made.origin.release else ""
    assert version.why == (
        f"first version here, the same prompt as the shipped {source.ref}{released}"
    )
    assert read_version(made.workspace, "extractor") == version
    (entry,) = read_ledger(made.workspace.ledger)
    assert (entry.action, entry.subject, entry.reason, entry.time) == (
        *("draft_committed", "extractor@v1", version.why, version.time),
    )
    assert (entry.actor, entry.role) == ("Dr A", "editor")
    files = file_digests(made.workspace.prompts / "extractor" / "v1")
    assert files
    payload = dict(entry.payload)
    assert payload.pop("labels")
    assert payload == {
        "digest": version.digest,
        "parent": None,
        "verdicts": [],
        "files": files,
        "origin": {
            "version": source.ref,
            "digest": source.digest,
            "same_digest": True,
            "shipped": True,
            "release": made.origin.release,
            "ranloop": __version__,
        },
    }


def test_a_workspace_of_own_labels_begins_with_what_they_say(tmp_path):
    """The reason given, or where it is from."""
    labels = tmp_path / "labels.csv"
    lump, water = "A lump that the report names.", "Water that the report names."
    labels.write_text(f"name,definition\nMass,{lump}\nFluid,{water}\n")
    made = start_workspace(tmp_path / "ws", WHO, labels=labels, prompt="own", now=now)
    assert made.origin is None
    assert made.version.ref == "own@v1"
    assert [one.definition for one in made.version.guides] == [lump, water]
    said = "first version, made from the names and definitions of the labels"
    assert made.version.why == said
    (entry,) = read_ledger(made.workspace.ledger)
    assert entry.payload["origin"] == {"made_from": "labels", "ranloop": __version__}
    other = start_workspace(
        tmp_path / "other", WHO, labels=labels, prompt="own", why=" as agreed "
    )
    assert other.version.why == "as agreed"


@pytest.mark.parametrize("name", ["", "Upper", "1st", "a b", "x" * 70 + "!"])
def test_what_is_no_name_makes_nothing(tmp_path, name):
    """It is cut where it is long."""
    with pytest.raises(DataError) as caught:
        start_workspace(tmp_path / "ws", WHO, prompt=name)
    assert str(caught.value).startswith(f"{name[:60]!r} cannot be the name of a prompt")
    assert not (tmp_path / "ws").exists()


def test_a_workspace_is_begun_once(tmp_path):
    """The second is told; the first stays as it is."""
    made = start_workspace(tmp_path / "ws", WHO)
    before = made.workspace.ledger.read_bytes()
    with pytest.raises(WorkspaceError):
        start_workspace(tmp_path / "ws", WHO)
    assert made.workspace.ledger.read_bytes() == before


@pytest.mark.parametrize("there", [False, True])
def test_a_workspace_that_cannot_be_finished_is_taken_back(
    tmp_path, monkeypatch, there
):
    """All of it where there was nothing before; else what was there stays."""
    target = tmp_path / "ws"
    if there:
        target.mkdir()
        (target / "notes.txt").write_text("mine")

    def fail(*_args):
        raise DataError("no")

    monkeypatch.setattr("loop.review.start._lint", fail)
    with pytest.raises(DataError, match="no"):
        start_workspace(target, WHO)
    assert target.exists() is there
    if there:
        assert (target / "notes.txt").read_text() == "mine"
        assert not WorkspacePaths(target).prompts.exists()


def test_a_new_prompt_from_one_of_the_workspace_keeps_what_it_asks(setting):
    """Its origin is told; guides that are left out are implied by none."""
    place = setting.workspace
    made = new_prompt(place, "copy", WHO, source="tiny", now=now)
    assert made.origin == PromptOrigin(
        ref="tiny@v1", digest=TINY.digest, shipped=False, release=""
    )
    assert replace(made.version, name="tiny").digest == TINY.digest
    assert made.version.why == "first version here, taken from tiny@v1"
    assert read_version(place, "copy@v1") == made.version
    part = new_prompt(place, "part", WHO, source="tiny", labels=("cardiomegaly",))
    assert part.version.labels == ("cardiomegaly",)
    assert part.version.why == "first version here, taken from tiny@v1"
    entry = read_ledger(place.ledger)[-1]
    assert (entry.subject, entry.reason) == ("part@v1", part.version.why)
    assert entry.payload["origin"] == {
        "version": "tiny@v1",
        "digest": TINY.digest,
        "same_digest": False,
        "shipped": False,
        "release": "",
        "ranloop": __version__,
    }
    assert "labels" not in entry.payload
    with pytest.raises(DataError, match=r"tiny@v1 asks for no .*leave --from out"):
        new_prompt(place, "none", WHO, source="tiny", labels=("edema",))


def test_labels_that_imply_each_other_are_cut_with_their_guides(setting, store):
    """What is no longer asked is not implied either."""
    first = TINY.guides[0]
    implying = replace(first, implies=("cardiomegaly", "edema"))
    draft = begin_draft(setting, store, guides={first.label: implying}).draft
    both = new_prompt(setting.workspace, "both", WHO, source=draft.ref)
    assert both.version.guides[0].implies == ("cardiomegaly", "edema")
    alone = new_prompt(
        setting.workspace, "alone", WHO, source=draft.ref, labels=(first.label,)
    )
    assert alone.version.guides[0].implies == ()


def test_a_prompt_of_some_labels_asks_for_them_in_the_order_of_the_taxonomy(setting):
    """An unknown one, and one that follows from others, cannot be asked for."""
    place = setting.workspace
    made = new_prompt(place, "some", WHO, labels=("fracture", "edema"))
    order = read_taxonomy(place.labels).extracted
    wanted = sorted(("fracture", "edema"), key=order.index)
    assert list(made.version.labels) == wanted
    for name in ("nothing", "no_finding", "z" * 70):
        with pytest.raises(DataError) as caught:
            new_prompt(place, "other", WHO, labels=("edema", name))
        said = f"{name[:60]!r} is no label of labels/taxonomy.yaml that can be asked"
        assert str(caught.value).startswith(said)
    assert list_versions(place, "other") == ()


def test_a_name_is_taken_once(setting):
    """Also where the folder is gone and the ledger still has it."""
    place = setting.workspace
    before = place.ledger.read_bytes()
    with pytest.raises(ConflictError, match=r"a prompt tiny already.*prompt edit tiny"):
        new_prompt(place, "tiny", WHO)
    made = new_prompt(place, "mine", WHO)
    assert place.ledger.read_bytes().startswith(before)
    folder = place.prompts / "mine"
    folder.rename(place.root / "away")
    with pytest.raises(ConflictError, match="there is a prompt mine already"):
        new_prompt(place, "mine", WHO)
    assert not folder.exists()
    assert made.version.ref == "mine@v1"


def test_a_first_judge_asks_for_the_errors_that_matter_or_those_named(setting):
    """Of the categories in their order; another word is none."""
    place = setting.workspace
    errors = read_errors(place.labels)
    outline = JudgeOutline(contract="green_sections", reads="tiny")
    made = new_prompt(place, "judge", WHO, judge=outline)
    clinical = [one.id for one in errors.categories if one.id in errors.clinical]
    assert list(made.version.labels) == clinical
    assert made.version.contract == "green_sections"
    two = [errors.ids[1], errors.ids[0]]
    some = new_prompt(place, "some", WHO, judge=outline, labels=two)
    assert list(some.version.labels) == two[::-1]
    with pytest.raises(
        DataError, match=r"'edema' is no category of labels/errors\.yaml"
    ):
        new_prompt(place, "none", WHO, judge=outline, labels=("edema",))


def test_what_lint_refuses_is_no_first_version(setting, store):
    """With what it found; nothing is written."""
    guide = replace(TINY.guides[0], exclusions=("pleural effusion",))
    draft = begin_draft(setting, store, guides={guide.label: guide}).draft
    before = setting.state()
    with pytest.raises(DataError) as caught:
        new_prompt(setting.workspace, "bad", WHO, source=draft.ref)
    said = str(caught.value)
    assert said.startswith("bad@v1 would not pass lint:\n  error: ")
    assert said.endswith("\nCorrect the labels, or name another version.")
    assert setting.state() == before


@pytest.mark.parametrize(
    ("ended", "released"), [((), "two"), (("one",), "two"), (("one", "two"), "")]
)
def test_the_release_of_a_shipped_version_is_told_while_it_is_in_force(
    setting, tmp_path, monkeypatch, ended, released
):
    """Its own and no other; one that was withdrawn is none any more."""
    shipped = WorkspacePaths(tmp_path / "shipped")
    shipped.prompts.mkdir(parents=True)
    source = read_version(WorkspacePaths(bundled()), "extractor@latest")
    for release, digest in (("one", "0" * 64), ("two", source.digest), ("three", "1")):
        facts = {"release": release, "digest": digest}
        event = Event(action="frozen", subject="x", reason="why", payload=facts)
        append_event(shipped.ledger, event, WHO)
    for release in ended:
        facts = {"release": release}
        event = Event(action="withdrawn", subject="x", reason="why", payload=facts)
        append_event(shipped.ledger, event, WHO)
    monkeypatch.setattr("loop.review.start.bundled", lambda: shipped.root)
    made = new_prompt(setting.workspace, "copy", WHO, source=source.ref)
    assert made.origin == PromptOrigin(
        ref=source.ref, digest=source.digest, shipped=True, release=released
    )
    said = f" (release {released})" if released else ""
    assert made.version.why.endswith(f" the shipped {source.ref}{said}")


def test_a_first_version_answers_no_verdict(setting, store):
    """What its source answers was said of the source."""
    draft = begin_draft(setting, store, FLUID).draft
    assert draft.verdicts
    made = new_prompt(setting.workspace, "copy", WHO, source=draft.ref)
    assert (made.version.verdicts, made.version.draft) == ((), "")


def test_a_first_version_without_its_entry_is_no_version(setting, monkeypatch):
    """The name is free again."""
    before = setting.state()

    def fail(*_args):
        raise WriteError("no")

    with monkeypatch.context() as patch:
        patch.setattr("loop.review.start.append_event", fail)
        with pytest.raises(WriteError, match="no"):
            new_prompt(setting.workspace, "mine", WHO)
    assert setting.state() == before
    assert new_prompt(setting.workspace, "mine", WHO).version.ref == "mine@v1"


def test_a_first_version_is_committed_with_the_ledger_by_who_made_it(
    setting, monkeypatch
):
    """Nothing else of the workspace, and the message says which wording it is."""
    asked = []
    monkeypatch.setattr(
        "loop.review.start.commit_paths", lambda *given: asked.append(given)
    )
    place = setting.workspace
    made = new_prompt(place, "mine", WHO, why=" a task of ours ")
    folder = place.prompts / "mine" / "v1"
    message = f"mine@v1\n\na task of ours\n\nDigest: {made.version.digest}"
    assert asked == [(place.root, [folder, place.ledger], message, "Dr A")]


def test_a_name_that_aliases_had_is_not_taken_again(setting):
    """They would point at another wording from then on."""
    facts = {"alias": "production", "digest": TINY.digest}
    event = Event(action="alias_moved", subject="old@v3", reason="why", payload=facts)
    append_event(setting.workspace.ledger, event, WHO)
    with pytest.raises(ConflictError, match="there is a prompt old already"):
        new_prompt(setting.workspace, "old", WHO)
    assert new_prompt(setting.workspace, "new", WHO).version.ref == "new@v1"


def test_the_end_of_a_new_ledger_is_remembered(tmp_path, monkeypatch):
    """One that is put in its place later is seen to be another."""
    asked = []
    monkeypatch.setattr(
        "loop.review.start.record_head", lambda *told: asked.append(told)
    )
    made = start_workspace(tmp_path / "ws", WHO)
    assert asked == [(tmp_path / "ws", tuple(read_ledger(made.workspace.ledger)))]


@pytest.mark.parametrize("source", ["radfact@v1", "green@v1"])
def test_a_judge_that_is_taken_over_keeps_what_it_is_asked_about(setting, source):
    """Also what is no category of errors."""
    found = read_version(WorkspacePaths(bundled()), source)
    made = new_prompt(setting.workspace, "own", WHO, source=source)
    assert made.version.labels == found.labels
    assert made.version.contract == found.contract


def test_a_long_word_is_cut_where_it_is_no_category(setting):
    """It may be a line of a table."""
    outline = JudgeOutline(contract="green_sections", reads="tiny")
    with pytest.raises(DataError) as caught:
        new_prompt(setting.workspace, "none", WHO, judge=outline, labels=("z" * 70,))
    said = f"{'z' * 60!r} is no category of labels/errors.yaml. Name one of "
    assert str(caught.value).startswith(said)


def test_only_what_does_not_hold_is_told_of_a_version_that_is_refused(
    setting, monkeypatch
):
    """Warnings hinder nobody."""
    found = [
        warning("lint", "a long list", where="guide edema"),
        Finding(
            check="lint", severity=FindingSeverity.BROKEN, what="torn", where="user"
        ),
    ]
    monkeypatch.setattr("loop.review.start.lint_prompt", lambda *_: found)
    with pytest.raises(DataError) as caught:
        new_prompt(setting.workspace, "bad", WHO)
    assert str(caught.value) == (
        "bad@v1 would not pass lint:\n  error: user: torn\nCorrect the labels, or name "
        "another version."
    )
    found.pop()
    made = new_prompt(setting.workspace, "good", WHO)
    assert made.lint == tuple(found)


def test_an_outline_without_a_contract_is_one_of_an_extractor(setting):
    """It asks for the labels, as without an outline."""
    made = new_prompt(setting.workspace, "plain", WHO, judge=JudgeOutline())
    assert made.version.labels == read_taxonomy(setting.workspace.labels).extracted


def test_no_finding_alone_cannot_be_asked_for(setting, monkeypatch):
    """It follows from labels that there are none of."""
    taxonomy = read_taxonomy(setting.workspace.labels)
    alone = replace(taxonomy, labels=(taxonomy.find("no_finding"),))
    monkeypatch.setattr("loop.review.start.read_taxonomy", lambda _: alone)
    with pytest.raises(DataError, match="Give at least one besides No Finding"):
        new_prompt(setting.workspace, "none", WHO)
