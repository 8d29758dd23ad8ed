"""A draft is edited by hand, checked hard, and taken once, with an entry."""

import errno
import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.check_findings import FindingSeverity
from loop.core.digests import digest_text
from loop.core.errors import DataError, UnknownLabelError, WriteError
from loop.core.files import write_error
from loop.core.ledger import Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.yaml_files import parse_yaml
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.reference import reference_path
from loop.labels.taxonomy import read_taxonomy
from loop.optimize.discovery import taxonomy_change
from loop.optimize.discovery.discover import discover_findings
from loop.optimize.discovery.taxonomy_change import (
    MOST_COUNTS,
    _revise_text,
    _shortest,
    check_taxonomy_draft,
    take_taxonomy_draft,
)
from loop.optimize.discovery.taxonomy_draft import (
    digest_phrases,
    format_taxonomy_draft,
    read_taxonomy_draft,
)
from loop.release.audit.audit import audit_workspace
from loop.release.audit.cohorts import check_basis
from loop.run.task import run_prompt
from tests.conftest import shipped_workspace
from tests.optimize.discovery.made_reports import WHO, add_cohort, reports

SPINE = "Degenerative Spine"
DESCRIBED = {
    "name": SPINE,
    "group": "bone",
    "definition": "Wear of the spine: discs, end plates, joints.",
}


@pytest.fixture(scope="module")
def ready(tmp_path_factory, first_version):
    """Make a workspace with a cohort of made-up reports, and a draft of them."""
    root = tmp_path_factory.mktemp("made") / "ws"
    place = WorkspacePaths(Path(shutil.copytree(first_version.root, root)))
    add_cohort(place, reports())
    return place, format_taxonomy_draft(place, discover_findings(place, "made"))


@pytest.fixture
def place(tmp_path, ready):
    """Return a copy of that workspace."""
    return WorkspacePaths(
        Path(shutil.copytree(ready[0].root, tmp_path.resolve() / "ws"))
    )


@pytest.fixture
def draft(tmp_path, ready):
    """Return the file of a draft that nobody has edited."""
    path = tmp_path / "draft.yaml"
    path.write_text(ready[1], "utf-8")
    return path


def edit(path, change):
    """Change the data of a draft."""
    data = yaml.safe_load(path.read_text("utf-8"))
    change(data)
    path.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")


def find(data, word):
    """Return the cluster that has a phrase with that word."""
    return next(c for c in data["clusters"] if any(word in p for p in c["phrases"]))


def decide(word, decision, label=""):
    """Return an edit that decides on one cluster."""

    def change(data):
        find(data, word).update(decision=decision, label=label)

    return change


def name_spine(data):
    """Make a new label of the degenerative spine."""
    decide("degenerative", "new", SPINE)(data)
    data["labels"].append(dict(DESCRIBED))


def test_a_draft_as_written_changes_nothing(place, draft):
    """Every cluster is undecided."""
    change = check_taxonomy_draft(place, draft)
    assert not change.changes
    assert change.findings == ()
    with pytest.raises(DataError, match="changes no label"):
        take_taxonomy_draft(place, draft, WHO, why="nothing")
    shown = ranloop(place, "--take", draft, "--dry-run")
    assert shown.stdout == "clusters: 5 undecided\nno label changes\n"


def test_a_draft_holds_phrases_counts_and_ids_only(draft):
    """What three reports say is in none of it."""
    text = draft.read_text("utf-8").lower()
    assert "scoliosis" in text
    assert "azygos" not in text
    read, digest = read_taxonomy_draft(draft)
    assert digest == digest_text(draft.read_text("utf-8"))
    assert read.made_with["min_reports"] == 5


def test_a_new_label_is_added_and_recorded(place, draft):
    """With its phrases as what counts; the comments of the file stay."""
    before = read_taxonomy(place.labels)
    old = (place.labels / "taxonomy.yaml").read_text("utf-8")
    edit(draft, name_spine)
    change = take_taxonomy_draft(place, draft, WHO, why="the readers asked for it")
    after = read_taxonomy(place.labels)
    assert after.ids == (*before.ids, "degenerative_spine")
    assert after.version == before.version + 1
    new = after.find(SPINE)
    assert (new.group, new.definition) == ("bone", DESCRIBED["definition"])
    assert any("degenerative" in one for one in new.counts)
    assert not any("..." in one for one in new.counts)
    text = (place.labels / "taxonomy.yaml").read_text("utf-8")
    assert change.comments_kept
    assert [line for line in old.splitlines() if line not in text.splitlines()] == [
        f"version: {before.version}"
    ]
    entry = read_ledger(place.ledger)[-1]
    assert (entry.action, entry.subject, entry.actor) == (
        "taxonomy_revised",
        "labels/taxonomy.yaml",
        WHO.name,
    )
    assert entry.reason == "the readers asked for it"
    assert entry.payload["taxonomy_before"] == digest_text(old)
    assert entry.payload["taxonomy_digest"] == digest_text(text)
    assert entry.payload["added"] == {"degenerative_spine": len(new.counts)}
    assert entry.payload["cohort"] == "made"


def test_clusters_with_one_label_are_merged(place, draft):
    """Both are what counts."""

    def change(data):
        name_spine(data)
        decide("scoliosis", "new", "degenerative spine")(data)

    edit(draft, change)
    counts = " ".join(check_taxonomy_draft(place, draft).added["degenerative_spine"])
    assert "degenerative" in counts and "scoliosis" in counts


def test_a_cluster_is_split_by_moving_phrases(place, draft):
    """What stays behind is decided for itself."""

    def change(data):
        name_spine(data)
        spine = find(data, "degenerative")
        moved = spine["phrases"].pop()
        data["clusters"].append({"decision": "drop", "phrases": [moved]})

    def fuse(data):
        # The made-up reports have one phrase each: first one cluster of two.
        other = find(data, "scoliosis")
        find(data, "degenerative")["phrases"] += other["phrases"]
        data["clusters"].remove(other)

    edit(draft, fuse)
    edit(draft, change)
    assert check_taxonomy_draft(place, draft).changes


def test_what_is_mapped_is_listed_under_its_label(place, draft):
    """Only what it does not list yet, after what it does."""
    edit(draft, decide("tortuous", "map", "mediastinal other"))
    before = read_taxonomy(place.labels).find("mediastinal_other").counts
    change = take_taxonomy_draft(place, draft, WHO, why="decided with the readers")
    assert change.mapped == {"mediastinal_other": ("aorta tortuous",)}
    after = read_taxonomy(place.labels).find("mediastinal_other").counts
    assert after == (*before, "aorta tortuous")
    assert change.comments_kept


def test_what_a_label_lists_already_is_not_listed_again(place, draft):
    """Its name is among that."""
    edit(draft, decide("pleural effusion", "map", "pleural effusion"))
    change = check_taxonomy_draft(place, draft)
    assert (change.mapped, change.changes) == ({}, False)


def test_what_counts_is_listed_without_what_holds_it(workspace, tmp_path):
    """Whoever reads "hernia" needs no "hiatal hernia"."""
    texts = [f"There is a {'hiatal ' * (n < 9)}hernia. Case." for n in range(10)]
    add_cohort(workspace, texts)
    path = tmp_path / "draft.yaml"
    found = discover_findings(workspace, "made")
    path.write_text(format_taxonomy_draft(workspace, found), "utf-8")

    def change(data):
        decide("hiatal", "new", "Hernia")(data)
        data["labels"].append({**DESCRIBED, "name": "Hernia"})

    edit(path, change)
    assert check_taxonomy_draft(workspace, path).added == {"hernia": ("hernia",)}


LAID_OUT = """\
# Ours.
version: 3
labels:
- id: edema
  name: Edema
  counts:
  - fluid
  - a long
    line
  definition: Wet.  # to be discussed

- id: mass
  name: Mass
  definition: A lump.
  counts:
  - lump
"""


def test_a_revised_file_keeps_its_comments_and_its_order():
    """Phrases go to the end of the list of their label, labels to the end of all."""
    mapped = {"mass": ["nodule", "12"], "edema": ["wet: lung"]}
    added = [{"id": "scar", "name": "Scar", "chexpert": None, "counts": ["streak"]}]
    text, kept = _revise_text(LAID_OUT, added, mapped, Path("t.yaml"))
    assert kept
    assert text == (
        LAID_OUT.replace("version: 3", "version: 4")
        .replace("    line\n", "    line\n  - 'wet: lung'\n")
        .replace("  - lump\n", "  - lump\n  - nodule\n  - '12'\n")
        + "\n- id: scar\n  name: Scar\n  chexpert: null\n  counts:\n  - streak\n"
    )
    assert _revise_text(LAID_OUT, [], {}, Path("t.yaml")) == (LAID_OUT, True)


def test_a_label_without_a_list_of_what_counts_gets_one():
    """Nothing shows where to insert it, so the whole file is written again."""
    before = LAID_OUT.replace("  counts:\n  - lump\n", "")
    text, kept = _revise_text(before, [], {"mass": ["lump"]}, Path("t.yaml"))
    assert not kept
    wanted = parse_yaml(LAID_OUT.replace("version: 3", "version: 4"), Path("t.yaml"))
    assert parse_yaml(text, Path("t.yaml")) == wanted
    assert "# Ours." not in text


def test_what_counts_is_said_in_the_fewest_words():
    """A phrase that holds another one is found by it; a gap is no word."""
    told = ["lung nodule", "nodule", "old ... scar", "scar of old age", "nodule"]
    assert _shortest(told) == ("nodule", "old scar")


def test_what_is_mapped_to_a_label_with_a_long_list_is_listed(place, draft):
    """What it lists already does not use up the places; what is beyond is counted."""
    path = place.labels / "taxonomy.yaml"
    data = yaml.safe_load(path.read_text("utf-8"))
    entry = next(one for one in data["labels"] if one["id"] == "mediastinal_other")
    entry["counts"] = [f"whorl{letter}" for letter in "abcdefghijkl"]
    path.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")

    def widen(more):
        def change(data):
            phrases = [*entry["counts"], *more, "aorta ... tortuous"]
            find(data, "tortuous").update(
                decision="map", label="mediastinal other", phrases=phrases
            )
            data["taxonomy_digest"] = digest_text(path.read_text("utf-8"))
            every = [p for one in data["clusters"] for p in one["phrases"]]
            data["phrases_digest"] = digest_phrases(every)

        return change

    edit(draft, widen([]))
    change = check_taxonomy_draft(place, draft)
    assert change.mapped == {"mediastinal_other": ("aorta tortuous",)}
    assert change.unlisted == {}
    edit(draft, widen([f"twirl{letter}" for letter in "abcdefghijklmn"]))
    change = check_taxonomy_draft(place, draft)
    assert len(change.mapped["mediastinal_other"]) == MOST_COUNTS
    assert change.unlisted == {"mediastinal_other": 3}
    told = ranloop(place, "--take", draft, "--dry-run")
    assert "and 3 more that are not listed" in " ".join(told.output.split())


def test_a_change_needs_a_reason(place, draft):
    """It stands in the ledger."""
    edit(draft, name_spine)
    with pytest.raises(DataError, match="Give one with --why"):
        take_taxonomy_draft(place, draft, WHO, why=" ")


def test_a_file_laid_out_otherwise_is_written_anew_and_that_is_said(place, draft):
    """The labels are right; the comments are gone."""
    path = place.labels / "taxonomy.yaml"
    data = yaml.safe_load(path.read_text("utf-8"))
    flow = yaml.safe_dump(data, sort_keys=False, default_flow_style=True)
    path.write_text(f"# ours\n{flow}", "utf-8")
    draft.write_text(
        format_taxonomy_draft(place, discover_findings(place, "made")), "utf-8"
    )
    edit(draft, name_spine)
    shown = ranloop(place, "--take", draft, "--dry-run").stdout
    assert shown.endswith(
        "\ndry run: nothing was changed. Take it with --why REASON\n"
        "the comments of labels/taxonomy.yaml cannot be kept\n"
    )
    change = take_taxonomy_draft(place, draft, WHO, why="another layout")
    assert not change.comments_kept
    assert read_taxonomy(place.labels).knows(SPINE)


def test_what_would_break_is_named(place, draft):
    """The prompt does not ask for the label, the reference says nothing of it."""
    source = place.root.parent / "dev.csv"
    rows = [f"d{n},Text number {n} of a report.,present" for n in range(4)]
    source.write_text("\n".join(["id,text,atelectasis", *rows]), "utf-8")
    import_cohort(place, source, ImportOptions(name="dev", role="dev"), actor=WHO)
    edit(draft, name_spine)
    said = [(one.check, one.what) for one in check_taxonomy_draft(place, draft).breaks]
    (prompt,) = [what for check, what in said if check == "prompts"]
    assert "extractor@v1 does not ask for degenerative_spine" in prompt
    assert "No Finding no longer follows" in prompt
    (reference,) = [what for check, what in said if check == "references"]
    assert "says nothing of degenerative_spine" in reference


def test_a_reference_that_cannot_be_read_is_not_called_sealed(place, draft):
    """Sealed is a note; edited or lost is a warning that says so."""
    for name, role in (("held", "holdout"), ("dev", "dev")):
        source = place.root.parent / f"{name}.csv"
        rows = [f"d{n},Text {n} of a report {name}.,present" for n in range(4)]
        source.write_text("\n".join(["id,text,atelectasis", *rows]), "utf-8")
        import_cohort(place, source, ImportOptions(name=name, role=role), actor=WHO)
    edit(draft, name_spine)

    def said():
        change = check_taxonomy_draft(place, draft)
        found = [one for one in change.findings if one.check == "references"]
        return {one.where: (one.severity, one.what) for one in found}

    severity, what = said()["held"]
    assert severity is FindingSeverity.NOTE
    assert "is sealed, so whether it covers the new labels is unknown" in what
    path = reference_path(place, "dev", 1)
    path.write_text(path.read_text("utf-8").replace("present", "absent", 1), "utf-8")
    severity, what = said()["dev"]
    assert severity is FindingSeverity.WARNING
    assert "of dev cannot be read" in what and "was edited" in what
    path.unlink()
    severity, what = said()["dev"]
    assert severity is FindingSeverity.WARNING
    assert "of dev cannot be read" in what and "is gone" in what


def test_a_guide_that_says_otherwise_is_named(tmp_path):
    """Lint of the newest version, as it would be."""
    place = shipped_workspace(tmp_path / "ws")
    add_cohort(place, reports())
    path = tmp_path / "draft.yaml"
    found = discover_findings(place, "made", prompt="extractor@latest")
    path.write_text(format_taxonomy_draft(place, found), "utf-8")
    edit(path, decide("tortuous", "map", "calcification"))
    said = [one.what for one in check_taxonomy_draft(place, path).breaks]
    assert [one for one in said if "counts leaves out" in one and "tortuous" in one]


def test_a_draft_is_taken_once(place, draft):
    """The second time it says so, with the entry."""
    edit(draft, name_spine)
    take_taxonomy_draft(place, draft, WHO, why="once")
    count = len(read_ledger(place.ledger))
    with pytest.raises(DataError, match=rf"taken already \(ledger entry {count}\)"):
        take_taxonomy_draft(place, draft, WHO, why="twice")
    assert len(read_ledger(place.ledger)) == count


def test_audit_knows_a_change_that_is_on_record(place, draft):
    """A note; what is edited by hand afterwards is a warning again."""
    before = digest_text((place.labels / "taxonomy.yaml").read_text("utf-8"))
    scored = Event(
        action="evaluated",
        subject="extractor@v1",
        reason="made up",
        payload={"taxonomy_digest": before},
    )
    append_event(place.ledger, scored, WHO)
    edit(draft, name_spine)
    take_taxonomy_draft(place, draft, WHO, why="readers")

    def said():
        entries = read_ledger(place.ledger)
        found = check_basis(place, entries)
        return next(one for one in found if one.check == "taxonomy"), entries[-1].seq

    found, seq = said()
    assert found.severity is FindingSeverity.NOTE
    assert f"was revised (entry {seq}) since 1 of 1 evaluations" in found.what
    with (place.labels / "taxonomy.yaml").open("a", encoding="utf-8") as stream:
        stream.write("# by hand\n")
    assert said()[0].severity is FindingSeverity.WARNING


def test_audit_counts_what_was_scored_before_with_the_labels_of_then(place, draft):
    """No Finding does not follow from the old answers any more; it did then."""
    source = place.root.parent / "dev.csv"
    rows = [f"d{n},Text {n}: {report},present" for n, report in enumerate(reports(6))]
    source.write_text("\n".join(["id,text,pleural_effusion", *rows]), "utf-8")
    import_cohort(place, source, ImportOptions(name="dev", role="dev"), actor=WHO)
    run_prompt(place, "extractor", "dev")
    scored = CliRunner().invoke(app, ["evaluate", "-w", str(place.root)])
    assert "gate" in scored.output

    def said():
        found = audit_workspace(place).findings
        return [one for one in found if one.check == "evaluations"]

    before = [one.what for one in said()]
    assert "1 of 1 scored runs give the recorded counts" in before
    edit(draft, name_spine)
    take_taxonomy_draft(place, draft, WHO, why="readers")
    assert [one.what for one in said()] == before


def test_what_was_killed_after_the_entry_goes_on(place, draft, monkeypatch):
    """The file is written, and nothing is recorded twice."""
    edit(draft, name_spine)

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(taxonomy_change, "write_atomic", die)
        with pytest.raises(KeyboardInterrupt):
            take_taxonomy_draft(place, draft, WHO, why="killed")
    entries = read_ledger(place.ledger)
    count = len(entries)
    assert not read_taxonomy(place.labels).knows(SPINE)
    (told,) = [one for one in check_basis(place, entries) if one.check == "taxonomy"]
    assert told.severity is FindingSeverity.WARNING
    assert f"entry {count} revised labels/taxonomy.yaml, and the file is" in told.what
    take_taxonomy_draft(place, draft, WHO, why="killed")
    assert not [one for one in check_basis(place, entries) if one.check == "taxonomy"]
    assert len(read_ledger(place.ledger)) == count
    assert read_taxonomy(place.labels).knows(SPINE)


def test_a_full_disk_after_the_entry_is_not_called_no_change(place, draft, monkeypatch):
    """The message says what was recorded, and what to do."""
    edit(draft, name_spine)

    def full(path, _):
        cause = OSError(errno.ENOSPC, "No space left on device")
        raise write_error(path, cause) from cause

    monkeypatch.setattr(taxonomy_change, "write_atomic", full)
    with pytest.raises(WriteError, match=r"No space.*the ledger has the entry") as told:
        take_taxonomy_draft(place, draft, WHO, why="full")
    assert "Nothing was changed" not in str(told.value)
    assert read_ledger(place.ledger)[-1].action == "taxonomy_revised"


def test_a_draft_of_another_taxonomy_is_refused(place, draft):
    """Somebody changed the labels in between."""
    path = place.labels / "taxonomy.yaml"
    path.write_text(path.read_text("utf-8") + "# changed\n", "utf-8")
    with pytest.raises(DataError, match=r"was changed since.*carry your decisions"):
        check_taxonomy_draft(place, draft)


def test_a_draft_of_a_cohort_imported_again_is_refused(place, draft):
    """It would claim cases that are not there."""
    edit(draft, lambda data: data.update(cohort_digest="0" * 64))
    with pytest.raises(DataError, match="imported again"):
        check_taxonomy_draft(place, draft)


@pytest.mark.parametrize("role", ["holdout", "external"])
def test_a_draft_that_names_a_cohort_of_claims_is_refused(place, draft, role):
    """Labels would say of themselves that they were designed on what measures them."""
    held = read_cohort(place, add_cohort(place, reports(), name="held", role=role))

    def change(data):
        data.update(cohort="held", cohort_digest=held.digest)

    edit(draft, change)
    edit(draft, name_spine)
    count = len(read_ledger(place.ledger))
    with pytest.raises(DataError, match=f"'held' has the role {role}.*designed"):
        take_taxonomy_draft(place, draft, WHO, why="a reason")
    assert len(read_ledger(place.ledger)) == count


def lose(data):
    """Take a phrase out."""
    find(data, "scoliosis")["phrases"][:] = ["something of my own"]


def repeat(data):
    """Write a phrase twice."""
    data["clusters"][0]["phrases"] *= 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lose, "not exactly the"),
        (repeat, "stands more than once"),
        (lambda data: data["clusters"].pop(), "not exactly the"),
        (decide("scoliosis", "maybe"), "clusters.*decision"),
        (decide("scoliosis", "drop", "Fracture"), "names a label and is drop"),
        (decide("scoliosis", "map"), "names no label"),
        (decide("scoliosis", "map", "No Finding"), "nothing can be mapped"),
        (decide("scoliosis", "new", "Fracture"), "is a label already"),
        (decide("scoliosis", "new", "Scoliosis"), "is not described"),
        (lambda data: data["labels"].append(DESCRIBED), "no cluster is part of"),
        (lambda data: data["labels"].append({"name": "X"}), "definition"),
        (lambda data: data.update(extra=1), "no such field"),
        (lambda data: data.pop("clusters"), "missing"),
        (
            lambda data: (name_spine(data), data["labels"][0].update(id="fracture")),
            "'fracture' of a new label is taken",
        ),
        (
            lambda data: (
                decide("scoliosis", "new", "脊柱侧弯")(data),
                data["labels"].append({**DESCRIBED, "name": "脊柱侧弯"}),
            ),
            "no id can be made",
        ),
    ],
)
def test_a_draft_that_contradicts_itself_is_refused(place, draft, change, says):
    """With what is wrong, and nothing is written."""
    before = (place.labels / "taxonomy.yaml").read_bytes()
    count = len(read_ledger(place.ledger))
    edit(draft, change)
    with pytest.raises(DataError, match=says):
        take_taxonomy_draft(place, draft, WHO, why="hostile")
    assert (place.labels / "taxonomy.yaml").read_bytes() == before
    assert len(read_ledger(place.ledger)) == count


def test_an_unknown_label_names_the_closest(place, draft):
    """A typing error is not a new label."""
    edit(draft, decide("scoliosis", "map", "fractur"))
    with pytest.raises(UnknownLabelError, match="Did you mean 'Fracture'"):
        check_taxonomy_draft(place, draft)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "a: &a [*a]", "!!python/object:os.system x", "x" * 6_000_000, "\0"],
    ids=["empty", "list", "anchor", "tag", "huge", "null"],
)
def test_hostile_files_are_refused(place, tmp_path, text):
    """No form, no draft."""
    path = tmp_path / "hostile.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError):
        check_taxonomy_draft(place, path)


def test_an_error_never_shows_a_phrase_that_may_be_text(place, draft):
    """Somebody may paste a sentence of a report."""
    secret = "the patient was told of the mass"

    def paste(data):
        find(data, "scoliosis")["phrases"] += [secret, secret]

    edit(draft, paste)
    with pytest.raises(DataError) as refused:
        check_taxonomy_draft(place, draft)
    assert secret not in str(refused.value)


def ranloop(place, *words):
    """Return what the command does in a workspace."""
    line = ["discover", *map(str, words), "--workspace", str(place.root)]
    return CliRunner().invoke(app, line)


def test_the_verb_writes_a_draft_and_takes_it(place, tmp_path):
    """From the cohort to the label."""
    path = tmp_path / "draft.yaml"
    assert ranloop(place, "made", "--draft", path).exit_code == 0
    edit(path, name_spine)
    shown = ranloop(place, "--take", path, "--dry-run")
    assert shown.exit_code == 0
    words = "clusters: 1 new, 4 undecided\n"
    words += "new label degenerative_spine: degenerative changes thoracic spine\n"
    gaps = (
        "  warning  extractor@v1 does not ask for degenerative_spine, and No Finding "
        "no longer follows from\n           its answers\n"
    )
    assert shown.stdout == (
        f"{words}what would no longer fit:\n{gaps}"
        "dry run: nothing was changed. Take it with --why REASON\n"
    )
    assert not read_taxonomy(place.labels).knows(SPINE)
    assert ranloop(place, "--take", path).exit_code == 1
    data = json.loads(ranloop(place, "--take", path, "--dry-run", "--json").stdout)
    digest = data.pop("taxonomy_digest")
    assert data == {
        "dry_run": True,
        "draft_sha256": sha256(path.read_bytes()).hexdigest(),
        "decisions": {"new": 1, "undecided": 4},
        "added": {"degenerative_spine": ["degenerative changes thoracic spine"]},
        "mapped": {},
        "unlisted": {},
        "comments_kept": True,
        "findings": [
            {
                "check": "prompts",
                "severity": "warning",
                "where": "extractor@v1",
                "what": "extractor@v1 does not ask for degenerative_spine, and No "
                "Finding no longer follows from its answers",
                "todo": "Add a guide to each in a draft, and commit it.",
            }
        ],
    }
    taken = ranloop(place, "--take", path, "--why", "asked for")
    assert taken.stdout == (
        f"{words}what no longer fits:\n{gaps}"
        f"labels/taxonomy.yaml was revised ({digest[:12]}) and recorded\n"
    )
    assert read_taxonomy(place.labels).knows(SPINE)


def test_words_are_read_without_the_space_around_them(place, draft):
    """One character is a word; space alone is none."""

    def describe(name):
        def change(data):
            decide("degenerative", "new", "X")(data)
            find(data, "degenerative")["phrases"][0] += " "
            data["labels"] = [{**DESCRIBED, "name": name, "group": " b "}]

        return change

    whole = read_taxonomy_draft(draft)[0]
    edit(draft, describe(" X "))
    read, _ = read_taxonomy_draft(draft)
    assert [(one.name, one.group) for one in read.labels] == [("X", "b")]
    assert [one.phrases for one in read.clusters] == [
        one.phrases for one in whole.clusters
    ]
    assert set(check_taxonomy_draft(place, draft).added) == {"x"}
    edit(draft, describe(" "))
    with pytest.raises(DataError, match=r"labels.*name"):
        read_taxonomy_draft(draft)
