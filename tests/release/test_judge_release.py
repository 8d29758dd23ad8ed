"""A judge becomes a signed release, measured again by whoever has its folder."""

import json
import shutil
import sqlite3
from dataclasses import replace

import pytest
from jinja2 import Environment

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion
from loop.engines import base
from loop.judge.judge_evaluation import evaluate_judge_run, judge_evaluation_data
from loop.labels.cohort import read_cohort
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.release.audit.audit import audit_workspace
from loop.release.export import load_export
from loop.release.folder import JUDGE_REQUIRED
from loop.release.freeze import _released_rows, _supersedes, freeze
from loop.release.judge_consistency import check_judge_numbers, parse_rows
from loop.release.load import load_release, verify_release
from loop.release.released import (
    current_release,
    find_release,
    list_releases,
    withdraw_release,
)
from loop.release.verify import verify_folder
from tests.judge.scenes import POINTS, TEXTS, call, errors
from tests.release.judge_ready import HELD, RULES, make_judge_ready
from tests.release.ready import APPROVER, AUTHOR, rows

pytestmark = pytest.mark.slow

STEPS = ("measured", "opened", "signed", "staged", "published", "recorded")


@pytest.fixture
def ready(workspace, tmp_path):
    """Make a workspace whose judge passes on both cohorts."""
    return make_judge_ready(workspace, tmp_path)


def actions(workspace):
    """Return what the ledger has, in order."""
    return [entry.action for entry in read_ledger(workspace.ledger)]


def broken_in(workspace):
    """Return what an audit finds broken."""
    return [one for one in audit_workspace(workspace).findings if not one.holds]


@pytest.fixture
def released(judge_release, tmp_path):
    """Return a copy of that workspace, to do something to."""
    ready, _ = judge_release
    root = shutil.copytree(ready.workspace.root, tmp_path.resolve() / "copied")
    return replace(ready, workspace=WorkspacePaths(root), folder=tmp_path)


def folder_of(released):
    """Return the folder of the release."""
    return released.workspace.releases / "mine-v1"


@pytest.mark.parametrize(
    ("judge", "rules"),
    [
        ("two_pass@v1", RULES),
        (
            "radfact@v1",
            "\njudging: {score: f1, threshold: 0.3, min_units: 4, copy_test: false}\n",
        ),
    ],
)
def test_a_judge_in_stages_is_released_and_asked_from_its_folder(
    workspace, tmp_path, judge, rules
):
    """The stages before it are pinned by their digests, and found again by them."""
    ready = make_judge_ready(workspace, tmp_path, judge=judge, rules=rules)
    found = ready.freeze()
    assert found.claim.verdict == "PASS"
    alone = verify_folder(found.folder, {ready.key.keyid: ready.key})
    assert alone.holds, alone.broken
    pinned = dict(read_version(workspace, "mine@v1").reads)
    assert {one.ref: one.digest for one in found.facts.reads} == pinned
    pairs = tmp_path / "more.csv"
    pairs.write_text("id,reference,candidate\na,Left effusion.,Left effusion.\n")
    asked = call(workspace, "judge", "mine-v1", "--pairs", pairs, "--json")
    assert asked.exit_code == 0, asked.output
    assert json.loads(asked.stdout)["scores"][0]["value"] == 1.0
    assert audit_workspace(workspace).holds


def test_a_judge_that_passes_is_released_signed_and_holds(ready):
    """In the order of the promise: claim, dev cohort, holdout, folder, ledger."""
    found = ready.freeze()
    assert (found.name, found.objections) == ("mine-v1", ())
    assert (found.claim.kind, found.claim.verdict) == ("judging", "PASS")
    assert found.claim.cohort == "rp_test"
    assert tuple(ready.steps) == STEPS
    alone = verify_folder(found.folder, {ready.key.keyid: ready.key})
    assert alone.holds, alone.broken
    assert load_release(ready.workspace, "mine-v1").facts == found.facts
    assert actions(ready.workspace)[-6:] == [
        "protocol_set",
        "judge_evaluated",
        "holdout_opened",
        "judge_evaluated",
        "holdout_sealed",
        "frozen",
    ]
    assert set(alone.files) - {one for one in alone.files if "rendered" in one} == (
        JUDGE_REQUIRED
    )
    audit = audit_workspace(ready.workspace)
    assert audit.holds, [one for one in audit.findings if one.severity == "broken"]
    said = [one.what for one in audit.findings if one.check == "evaluations"]
    assert "2 evaluations of judges fit what was recorded before them" in said
    assert any("1 of 2 evaluations of judges give the recorded rows" in s for s in said)


def test_it_says_what_evaluate_says(judge_release):
    """The release, the card and `evaluate` have one number and one interval."""
    ready, found = judge_release
    facts = found.facts
    dev = facts.evaluations[0]
    found = evaluate_judge_run(ready.workspace, dev.run)
    said = {one["score"]: one for one in judge_evaluation_data(found)["agreement"]}
    assert dev.agreement.tau_b.model_dump() == said["own"]["tau_b"]
    assert dev.agreement.n == len(TEXTS)
    assert [one.what for one in dev.gate] == [one.what for one in found.gate.checks]
    assert [one.name for one in dev.errors][:4] == [
        "all categories",
        "false predictions",
        "omissions",
        "attributes",
    ]


def test_nothing_of_a_case_is_in_a_release(released):
    """No text, no id, no patient, no words of a finding; units have other numbers."""
    folder = folder_of(released)
    for path in folder.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            for words in (b"zebra", b"pleural effusion.", b"h-pat", b"well aerated"):
                assert words not in raw, path.name
    held = parse_rows((folder / "rows.csv").read_bytes())["rp_test"]
    assert len(held) == len(HELD)
    assert [one.unit for one in held] == sorted(one.unit for one in held)
    assert len({one.unit for one in held}) == len(HELD) - 1
    lowest = [min(r.points for r in held if r.unit == n) for n in range(1, 8)]
    assert lowest == sorted(lowest)


def test_the_card_says_what_left_the_vault(released):
    """And what the judge reads, and that no checklist is there."""
    card = (folder_of(released) / "card.md").read_text().replace("\\", "")
    assert "So much of the holdout rp_test left the vault: 8 rows" in card
    assert "Whoever has the texts of these pairs and asks the judge again" in card
    assert "extractor@v11" in card
    assert "it reads both texts by the guides of extractor@v11" in card
    assert "MI-CLEAR-LLM" in card
    assert not (folder_of(released) / "tripod-llm.md").exists()
    page = (folder_of(released) / "card.html").read_text()
    assert "checks pass" in page
    assert "labels" not in page.partition("<main>")[2].partition("</header>")[2][:900]


def test_a_gate_on_the_holdout_stops_it_and_is_overridden_once_it_is_known(
    workspace, tmp_path
):
    """It is opened once, whatever happens after."""
    against = tuple(6 - one for one in POINTS)
    ready = make_judge_ready(workspace, tmp_path, held=against)
    first = ready.freeze(override="the site accepts it")
    assert first.folder is None
    assert first.claim.verdict == "FAIL"
    assert any("the gate on rp_test says FAIL" in one for one in first.objections)
    stopped = ready.freeze()
    assert stopped.folder is None
    assert list_releases(workspace) == ()
    second = ready.freeze(override="the site accepts it, knowing this")
    assert second.folder is not None
    assert actions(workspace).count("holdout_opened") == 1
    assert verify_release(workspace, "mine-v1").holds
    card = (second.folder / "card.md").read_text().replace("\\", "")
    assert "the site accepts it, knowing this" in card


def test_a_gate_on_the_dev_cohort_stops_it_before_the_holdout_is_opened(
    ready, workspace
):
    """An opening is not spent on a judge that fails where everybody may look."""
    text = workspace.protocol.read_text()
    workspace.protocol.write_text(text.replace("min_units: 4", "min_units: 400"))
    found = ready.freeze()
    assert found.folder is None
    assert "the gate on rp says INSUFFICIENT" in found.objections[0]
    assert "holdout_opened" not in actions(workspace)


class _Killed(BaseException):
    """What a process meets that is killed."""


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_the_same_call_goes_on(ready, step):
    """The holdout is opened once, and the ledger tells of one release."""

    def reached(name):
        if name == step:
            raise _Killed

    with pytest.raises(_Killed):
        freeze(ready.desk(reached=reached), ready.request())
    if step == "recorded":
        with pytest.raises(ConflictError, match="was released as mine-v1"):
            ready.freeze()
    else:
        assert ready.freeze().folder is not None
    for action in ("frozen", "holdout_opened", "holdout_sealed"):
        assert actions(ready.workspace).count(action) == 1
    assert actions(ready.workspace).count("judge_evaluated") == 2
    assert verify_release(ready.workspace, "mine-v1").holds


def test_one_flipped_byte_of_any_file_is_noticed(released, tmp_path):
    """At its start, in its middle and at its end."""
    folder = folder_of(released)
    trusted = {released.key.keyid: released.key}
    copy = tmp_path / "copy" / "mine-v1"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 14
    for path in files:
        raw = path.read_bytes()
        for place in (0, len(raw) // 2, len(raw) - 1):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(folder, copy)
            changed = bytearray(raw)
            changed[place] ^= 1
            (copy / path.relative_to(folder)).write_bytes(changed)
            assert not verify_folder(copy, trusted).holds, (path.name, place)


def test_a_file_more_or_less_is_noticed(released, tmp_path):
    """A table of labels has no place beside a judge, nor rows beside an extractor."""
    folder = folder_of(released)
    trusted = {released.key.keyid: released.key}
    (folder / "evaluation.csv").write_text("cohort\r\n")
    (names, *_) = verify_folder(folder, trusted).findings
    assert "evaluation.csv does not belong to a release of this form" in names.what
    (folder / "evaluation.csv").unlink()
    (folder / "rows.csv").unlink()
    found = verify_folder(folder, trusted)
    assert {one.check for one in found.broken} >= {"names", "files", "rows.csv"}


def test_rows_of_a_holdout_that_left_the_vault_are_told_for_ever(released):
    """Of that holdout alone, and not where nobody can say what was released."""
    place = released.workspace
    holdout = read_cohort(place, "rp_test")
    (told,) = _released_rows(place, holdout)
    assert told.startswith("rows of scores and points of rp_test left the vault before")
    assert not list(_released_rows(place, replace(holdout, digest="0" * 64)))
    (folder_of(released) / "release.json").write_bytes(b"{")
    assert not list(_released_rows(place, holdout))
    shutil.rmtree(folder_of(released))
    assert not list(_released_rows(place, holdout))


def test_a_release_that_does_not_hold_has_no_engine_to_compare_with(released):
    """It is superseded by its name all the same."""
    place = released.workspace
    known = current_release(place, "mine")
    assert _supersedes(place, None) is None
    found = _supersedes(place, known)
    assert (found.name, found.ref) == ("mine-v1", "mine@v1")
    assert found.statement_sha256 == known.statement
    assert found.engine is not None
    with (folder_of(released) / "card.md").open("a") as stream:
        stream.write("x")
    assert _supersedes(place, known) == found.model_copy(update={"engine": None})


def test_it_is_withdrawn(released):
    """Nothing loads it any more; its folder stays."""
    folder = folder_of(released)
    withdraw_release(released.workspace, "mine-v1", APPROVER, "too lenient")
    with pytest.raises(DataError, match="was withdrawn by Dr Approver"):
        load_release(released.workspace, "mine-v1")
    assert folder.is_dir()
    assert audit_workspace(released.workspace).holds


def test_the_audit_finds_a_release_that_was_edited_or_removed(released):
    """By its files, and by the entry that speaks of it."""
    folder = folder_of(released)
    table = folder / "rows.csv"
    raw = table.read_bytes()
    table.write_bytes(raw.replace(b"rp,1,", b"rp,2,", 1))
    broken = broken_in(released.workspace)
    assert any("rows.csv was changed after it was signed" in one.what for one in broken)
    shutil.rmtree(folder)
    broken = broken_in(released.workspace)
    assert any("its folder is gone" in one.what for one in broken)


def test_the_audit_finds_answers_that_were_edited(released):
    """In the store, after the judge was held against raters."""
    with sqlite3.connect(released.workspace.store) as store:
        (other,) = store.execute(
            "SELECT fields FROM outcomes WHERE item_id = 'p0'"
        ).fetchone()
        store.execute("UPDATE outcomes SET fields = ? WHERE item_id = 'p7'", [other])
    said = " ".join(one.what for one in broken_in(released.workspace))
    assert "in the store are not those that entry" in said
    assert "gives other rows than entry" in said


def test_it_is_exported_and_loads_back(released, tmp_path):
    """With the prompt's digest, as a release."""
    done = call(
        released.workspace,
        "export",
        "mine-v1",
        "--to",
        "jinja",
        "--out",
        tmp_path / "x",
    )
    assert done.exit_code == 0, done.output
    loaded = load_export(tmp_path / "x")
    assert (
        loaded.prompt_digest
        == load_release(released.workspace, "mine-v1").version.digest
    )
    assert loaded.release == "mine-v1"


@pytest.mark.parametrize("target", ["openai-batch", "vllm-batch"])
def test_it_is_exported_as_requests_about_pairs(released, tmp_path, target):
    """A template of both texts, or the texts; either loads back, a changed one not."""
    asked = ("export", "mine-v1", "--to", target, "--model", "m", "--out")
    done = call(released.workspace, *asked, tmp_path / "empty")
    assert done.exit_code == 0, done.output
    source = (tmp_path / "empty" / "request.jsonl.jinja").read_text("utf-8")
    texts = {"reference": 'Small "left" effusion.\n', "candidate": "Clear {{ x }}."}
    made = Environment(autoescape=False).from_string(source)
    written = json.loads(made.render(custom_id="a", **texts))
    said = written["body"]["messages"][-1]["content"]
    assert all(text in said for text in texts.values())
    assert load_export(tmp_path / "empty").cases == 0
    done = call(released.workspace, *asked, tmp_path / "full", "--cohort", "rp")
    assert done.exit_code == 0, done.output
    assert load_export(tmp_path / "full").cases == len(TEXTS)
    (requests,) = (tmp_path / "full").glob("requests-*")
    raw = requests.read_bytes()
    requests.write_bytes(raw.replace(b"Cardiomegaly", b"Cardiomegali", 1))
    with pytest.raises(DataError, match="was changed after the export"):
        load_export(tmp_path / "full")
    sealed = call(released.workspace, *asked, tmp_path / "no", "--cohort", "rp_test")
    assert sealed.exit_code != 0
    table = tmp_path / "single.csv"
    table.write_text("id,text\n1,Small effusion.\n")
    refused = call(released.workspace, *asked, tmp_path / "no", "--input", table)
    assert "mine@v1 reads reference, candidate, and single.csv has text" in str(
        refused.exception
    )
    table.write_text("id,reference,candidate\n1,Effusion.,No effusion.\n")
    done = call(released.workspace, *asked, tmp_path / "one", "--input", table)
    assert done.exit_code == 0, done.output


def test_texts_that_cannot_be_told_apart_are_refused(released, tmp_path):
    """A request is read back from its words alone."""
    version = read_version(released.workspace, "mine@v1")
    plan = plan_prompts(version, get_contract(version.contract).schema)
    between = plan.calls[0].pieces[0][1]
    table = tmp_path / "odd.json"
    odd = {"id": "1", "reference": f"Mass.{between}Mass.", "candidate": "Clear."}
    table.write_text(json.dumps([odd]))
    asked = ("export", "mine-v1", "--to", "vllm-batch", "--model", "m", "--out")
    done = call(released.workspace, *asked, tmp_path / "out", "--input", table)
    assert "could not be read back" in str(done.exception), done.output
    assert not (tmp_path / "out").exists()


def test_it_is_run_as_a_release(released):
    """With the extractor it reads, which its folder names by digest alone."""
    done = call(
        released.workspace, "run", "--release", "mine-v1", "--cohort", "rp", "--json"
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["answered"] == len(TEXTS)


def test_it_judges_files_as_a_release(released, tmp_path):
    """Verified first; with the answers of the version, and never an extractor's."""
    table = tmp_path / "pairs.csv"
    table.write_text("id,reference,candidate\n1,Left effusion.,Right effusion.\n")
    asked = ("--pairs", table, "--json")
    ((first,), (second,)) = (
        json.loads(call(released.workspace, "judge", name, *asked).stdout)["systems"]
        for name in ("mine-v1", "mine@v1")
    )
    assert first["errors"] == second["errors"]
    assert (first["cached"], second["cached"]) == (0, 1)
    other = call(
        released.workspace, "judge", "mine-v1", "--pairs", table, "-e", "openai:m"
    )
    assert "This is not the engine that mine-v1 was released with" in other.stderr
    withdraw_release(released.workspace, "mine-v1", APPROVER, "too lenient")
    refused = call(released.workspace, "judge", "mine-v1", "--pairs", table)
    assert "was withdrawn by" in str(refused.exception)
    unknown = call(released.workspace, "judge", "mine-v9", "--pairs", table)
    assert "there is no release mine-v9" in str(unknown.exception)


def test_it_reads_no_labels(released, tmp_path):
    """Where an extractor is asked for, the refusal says what it is."""
    path = tmp_path / "s.csv"
    path.write_text("id,text\n1,Small effusion.\n")
    done = call(
        released.workspace, "score", path, "--reference", path, "--release", "mine-v1"
    )
    assert done.exit_code != 0


def test_without_a_holdout_it_says_so_in_large_letters(ready):
    """And that nothing corrects its numbers."""
    found = ready.freeze(holdout="")
    assert found.facts.development_only is True
    card = (found.folder / "card.md").read_text()
    assert "DEVELOPMENT DATA ONLY" in card
    assert "Rows of single pairs" in card
    assert "holdout_opened" not in actions(ready.workspace)
    assert verify_release(ready.workspace, "mine-v1").holds


def test_a_draft_is_refused(ready, workspace):
    """Only what is committed can be released."""
    assert call(workspace, "draft", "begin", "mine", "--cohort", "rp").exit_code == 0
    with pytest.raises(DataError, match="is a draft"):
        ready.freeze(prompt="mine@draft")


def test_what_cannot_be_held_against_raters_opens_nothing(workspace, tmp_path):
    """No claim, no points, no pairs: each is refused before anything is asked."""
    ready = make_judge_ready(workspace, tmp_path, held=None)
    with pytest.raises(DataError, match="cohort rp_test has no points of raters"):
        ready.freeze()
    ready.add_cohort("single", "holdout", rows("held")[:3])
    with pytest.raises(DataError, match="reads reference, candidate"):
        ready.freeze(holdout="single")
    text = workspace.protocol.read_text()
    workspace.protocol.write_text(text.replace(RULES, ""))
    with pytest.raises(DataError, match="has no section judging"):
        ready.freeze()
    assert "holdout_opened" not in actions(workspace)


def test_a_patient_on_both_sides_is_refused(ready):
    """A reference too, and no override helps."""
    ready.add_pairs("again", "holdout", [TEXTS[2]], (1,), prefix="x")
    with pytest.raises(DataError, match="share 1 text"):
        ready.freeze(holdout="again", override="all the same")


def test_a_suspicious_number_stops_it(ready):
    """Raters who agree less with each other than with the judge were not met by it."""
    ready.add_pairs("odd", "dev", TEXTS, prefix="o", second=(5, 5, 1, 1, 3, 3, 4, 2))
    stopped = ready.freeze(cohort="odd", holdout="")
    assert stopped.folder is None
    assert any(
        one.startswith("suspicious on odd: its tau-b") for one in stopped.objections
    )
    found = ready.freeze(cohort="odd", holdout="", override="the raters were new")
    assert found.folder is not None
    card = (found.folder / "card.md").read_text().replace("\\", "")
    assert "Suspicious: its tau-b with one rater" in card
    assert verify_release(ready.workspace, "mine-v1").holds


@pytest.fixture
def second(ready):
    """Release the first version, and commit a second one."""
    text = ready.workspace.protocol.read_text()
    ready.workspace.protocol.write_text(text.rstrip() + "\n  margin: 0.1\n")
    ready.freeze()
    first = read_version(ready.workspace, "mine@v1")
    guide, *others = first.guides
    changed = replace(guide, counts=(*guide.counts, "something of no place"))
    ready.commit(
        replace(
            first,
            number=2,
            parent=first.digest,
            guides=(changed, *others),
            why="said more plainly",
        )
    )
    return ready


def test_the_next_version_is_held_against_the_release_in_use(second):
    """Its change, its parent's scores beside its own, and what was open before."""
    found = second.freeze(prompt="mine@v2")
    assert found.folder is not None, found.objections
    change = found.facts.change
    assert (change.previous, change.from_ref) == ("mine-v1", "mine@v1")
    assert change.agreement.before == change.agreement.after
    assert {one.name for one in change.f1} >= {"omissions"}
    header = (found.folder / "rows.csv").read_text().splitlines()[0]
    assert header == "cohort,unit,score,points,parent_score"
    assert [one.aspect for one in found.facts.evaluations[0].gate][-2:] == [
        "parent",
        "copy test",
    ]
    assert "parent" not in [one.aspect for one in found.facts.evaluations[1].gate]
    assert verify_release(second.workspace, "mine-v2").holds
    trusted = {second.key.keyid: second.key}
    raw = (found.folder / "rows.csv").read_bytes()
    forged = raw.replace(b",5.0,1.0\r\n", b",5.0,0.1\r\n", 1)
    assert forged != raw
    assert "not the numbers that its rows" in " ".join(
        one.what for one in check_judge_numbers(found.facts, forged)
    )
    dropped = b"\r\n".join(line.rpartition(b",")[0] for line in raw.splitlines())
    assert "parent's: the gate says PASS, its rows and counts give" in " ".join(
        one.what for one in check_judge_numbers(found.facts, dropped + b"\r\n")
    )
    assert verify_folder(found.folder, trusted).holds
    remarks = " ".join(found.facts.separation.remarks)
    assert "left the vault before, with mine-v1" in remarks
    before = find_release(second.workspace, "mine-v1")
    assert before.superseded_by == "mine-v2"
    assert len(found.facts.openings) == 2
    assert found.facts.history[0].observed is not None
    assert audit_workspace(second.workspace).holds


def test_a_judge_with_chance_in_it_is_asked_as_often_as_the_protocol_says(
    ready, monkeypatch
):
    """Its first draw is held against raters; the others show whether it repeats."""
    wrong = {1, 2, 3, 5, 7}

    class Fickle:
        retry_unreadable = 0

        def __init__(self, draw=0):
            self.draw = draw

        def identity(self):
            return {"engine": "fickle"}

        def redraw(self, draw):
            return Fickle(draw)

        def complete(self, prompts):
            for index, prompt in enumerate(prompts):
                number = int(prompt.item.id[1:])
                more = [("false_finding", True)] * (self.draw == 2)
                said = [("omission", True)] * (number in wrong)
                yield index, Completion(errors(*said, *more))

    monkeypatch.setitem(base._FACTORIES, "fickle", lambda *_: Fickle())
    call(ready.workspace, "prompt", "new", "listed", "--from", "one_pass@v1")
    text = ready.workspace.protocol.read_text()
    ready.workspace.protocol.write_text(text.replace("score: own", "score: green"))
    found = ready.freeze(prompt="listed@v1", engine="fickle", override="as a test")
    assert found.folder is not None, found.objections
    for one in found.facts.evaluations:
        assert (one.draws, len(set(one.runs))) == (3, 3)
        assert one.repeats.pairs == 8
    assert verify_release(ready.workspace, "listed-v1").holds
    assert "asked 3 times" in (found.folder / "card.md").read_text()


def test_radpref_cut_by_patient_becomes_a_release(workspace, data_folder):
    """By the command line, with the engine that needs no model, and checked by it."""
    text = workspace.protocol.read_text()
    claim = "judging: {score: own, threshold: 0.5, min_units: 20, copy_test: false}\n"
    workspace.protocol.write_text(f"{text}\n{claim}")
    part = ("cohort", "import", data_folder / "radpref")
    who = ("--actor", APPROVER.name)
    for arguments in (
        ("prompt", "new", "green", "--from", "green@v1", "--actor", AUTHOR.name),
        (*part, "--name", "rp", "--role", "dev", "--part", "1/2"),
        (*part, "--name", "rp_test", "--role", "holdout", "--part", "2/2"),
        ("cohort", "check"),
        ("key", "new", APPROVER.name, "--role", "approver"),
    ):
        done = call(workspace, *arguments)
        assert done.exit_code == 0, done.output
    wish = ("green@v1", "--cohort", "rp", "--holdout", "rp_test", "--why", "a test")
    found = json.loads(call(workspace, "freeze", *wish, *who, "--json").stdout)
    assert found["released"], found["objections"]
    assert found["claim"] == {"kind": "judging", "verdict": "PASS", "cohort": "rp_test"}
    said = call(workspace, "verify", "green-v1")
    assert said.exit_code == 0, said.output
    assert "numbers on rp_test: tau-b and the gate recomputed from 52 rows" in (
        said.stdout
    )
    assert "52 rows of unit, score and points of holdout rp_test" in said.stdout
    folder = workspace.releases / "green-v1"
    texts = workspace.private / "cases"
    cases = [
        json.loads(line)
        for path in texts.glob("rp*.jsonl")
        for line in path.read_text("utf-8").splitlines()
    ]
    released = "\n".join(
        path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()
    )
    for one in cases:
        assert one["case_id"] not in released
        for words in one["texts"].values():
            assert len(words) < 60 or words[:60] not in released


@pytest.mark.parametrize(
    ("claim", "name"),
    [
        ("score: errors\n  threshold: 0.3", "GREEN-EC"),
        ("score: green\n  threshold: 0.01\n  measure: alpha", "GREEN"),
        ("score: formula\n  threshold: 0.3\n  rule: lower", "Formula"),
    ],
)
def test_every_claim_is_made_again_from_the_rows(ready, claim, name):
    """A score of which less is better, agreement of values, and lower limits."""
    text = ready.workspace.protocol.read_text()
    changed = text.replace("score: own\n  threshold: 0.5", claim)
    assert changed != text
    ready.workspace.protocol.write_text(changed)
    found = ready.freeze(override="as a test")
    if found.folder is None:
        found = ready.freeze(override="as a test")
    assert found.facts.score.title == name
    held = verify_release(ready.workspace, "mine-v1")
    assert held.holds, held.broken
    assert audit_workspace(ready.workspace).holds
