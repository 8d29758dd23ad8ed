"""A version becomes a signed release, or nothing at all."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from threading import Barrier, Thread

import pytest

from loop.core.errors import ConflictError, DataError, SealedError, WriteError
from loop.core.ledger import Actor, read_ledger
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.recording import record_evaluation
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.release.audit.audit import audit_workspace
from loop.release.freeze import freeze
from loop.release.keys import make_key, read_public_keys, revoke_key
from loop.release.load import load_release, verify_release
from loop.release.release_json import format_facts, parse_facts
from loop.release.released import (
    current_release,
    find_release,
    find_unrecorded,
    list_releases,
    withdraw_release,
)
from loop.release.verify import verify_folder
from loop.run.manifest import find_run
from loop.run.task import run_prompt
from tests.release.ready import APPROVER, AUTHOR, PROTOCOL, TINY, make_ready, rows

pytestmark = pytest.mark.slow

STEPS = ("measured", "opened", "signed", "staged", "published", "recorded")


@pytest.fixture
def ready(workspace, tmp_path):
    """Make a workspace whose version passes on both cohorts."""
    return make_ready(workspace, tmp_path)


def actions(workspace):
    """Return what the ledger has, in order."""
    return [entry.action for entry in read_ledger(workspace.ledger)]


def test_a_version_that_passes_is_released_signed_and_holds(ready):
    """The folder verifies with the public key alone; the ledger has its digest."""
    found = ready.freeze()
    assert found.name == "tiny-v1"
    assert found.objections == ()
    assert found.claim.verdict == "PASS"
    assert tuple(ready.steps) == STEPS
    alone = verify_folder(found.folder, {ready.key.keyid: ready.key})
    assert alone.holds, alone.broken
    assert load_release(ready.workspace, "tiny-v1").version.digest == TINY.digest
    assert actions(ready.workspace)[-1] == "frozen"
    released = find_release(ready.workspace, "tiny-v1")
    assert (released.ref, released.entry.actor) == ("tiny@v1", "Dr Approver")
    assert not released.entry.payload["development_only"]


def test_a_release_tells_what_it_rests_on(ready):
    """Both cohorts, the one opening, and a claim on the holdout."""
    facts = ready.freeze().facts
    assert [one.cohort for one in facts.evaluations] == ["dev", "held"]
    assert facts.claim.cohort == "held"
    certified = {one.label for one in facts.claim.labels if one.certified}
    assert certified == {"pleural_effusion", "cardiomegaly"}
    (opening,) = facts.openings
    assert (opening.number, opening.budget) == (1, 3)
    assert opening.actor == "Dr Approver"
    assert facts.frozen.override == ""


def test_the_run_over_the_holdout_is_nobodys_latest(ready):
    """What one does next with the newest run is about the dev cohort."""
    ready.freeze()
    assert find_run(ready.workspace, "latest").spec.cohort == "dev"
    assert find_run(ready.workspace, "latest:tiny").spec.cohort == "dev"
    assert find_run(ready.workspace, "latest:tiny:held").spec.cohort == "held"


def test_no_text_of_a_case_is_in_a_release(ready):
    """Nor the id of one."""
    folder = ready.freeze().folder
    for path in folder.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            assert b"There is" not in raw and b"helde1" not in raw, path.name


def test_without_a_holdout_it_says_so_in_large_letters(ready):
    """And carries the estimate corrected for the versions tried."""
    found = ready.freeze(holdout="", why=" to try it ", override=" not needed ")
    assert found.facts.development_only is True
    # Nothing stood against it, so nothing was overridden.
    assert found.facts.frozen.model_dump(exclude={"time"}) == {
        "actor": "Dr Approver",
        "role": "approver",
        "meaning": "approval",
        "why": "to try it",
        "objections": [],
        "override": "",
    }
    assert found.facts.openings == []
    assert (found.objections, found.completed) == ((), False)
    assert "DEVELOPMENT DATA ONLY" in (found.folder / "card.md").read_text()
    assert "holdout_opened" not in actions(ready.workspace)
    assert found.facts.selection.tried == 1
    released = find_release(ready.workspace, "tiny-v1")
    assert released.entry.payload["development_only"]


def test_a_gate_on_the_dev_cohort_stops_it_before_the_holdout_is_opened(
    workspace, tmp_path
):
    """An opening is not spent on a version that fails where everybody may look."""
    ready = make_ready(workspace, tmp_path, wrong=(60, 0))
    # Nothing of effusion is found; the other label alone must not carry the claim.
    ready.workspace.protocol.write_text("accuracy: 0.95\nkappa: 0.8\n")
    found = ready.freeze()
    assert found.folder is None
    assert "the gate on dev says FAIL" in found.objections[0]
    assert (found.claim.cohort, found.facts, found.entry) == ("dev", None, None)
    assert "holdout_opened" not in actions(workspace)
    assert list_releases(workspace) == ()
    assert not (workspace.releases / "tiny-v1").exists()


def test_a_verdict_of_the_holdout_is_overridden_only_once_it_is_known(
    workspace, tmp_path
):
    """An override given before cannot have meant it; the reason stays on the card."""
    ready = make_ready(workspace, tmp_path, wrong=(0, 60))
    workspace.protocol.write_text("accuracy: 0.95\nkappa: 0.8\nmin_positives: 10\n")
    first = ready.freeze(override="the site accepts it")
    assert first.folder is None
    assert first.objections == (
        "the gate on dev says INSUFFICIENT (2 PASS, 0 FAIL, 19 INSUFFICIENT)",
        "the gate on held says FAIL (1 PASS, 1 FAIL, 19 INSUFFICIENT)",
    )
    assert (first.claim.cohort, first.claim.verdict) == ("held", "FAIL")
    second = ready.freeze(override="the site accepts it, knowing this")
    assert second.folder is not None
    assert actions(workspace).count("holdout_opened") == 1
    assert "the site accepts it, knowing this" in (
        second.folder / "card.md"
    ).read_text().replace("\\", "")
    assert "override" in actions(workspace)
    assert verify_release(workspace, "tiny-v1").holds


def test_a_protocol_that_came_after_the_measurement_objects(ready):
    """A claim chosen when the numbers were known is no claim."""
    ready.freeze(holdout="", prompt="tiny@v1")
    ready.commit(replace(TINY, number=2, parent=TINY.digest, system="Read it.\n"))
    late = "# later\nrule: lower\nclaim: subset\nmin_positives: 14\n"
    measure(ready, "tiny@v2")
    ready.workspace.protocol.write_text(late)
    found = ready.freeze(prompt="tiny@v2")
    assert found.folder is None
    assert any("registered after" in one for one in found.objections)


def measure(ready, prompt):
    """Run and score a version on the dev cohort."""
    run = run_prompt(ready.workspace, prompt, "dev").run_id
    record_evaluation(ready.workspace, evaluate_run(ready.workspace, run), AUTHOR)


def test_whoever_wrote_a_version_does_not_approve_it_alone(ready):
    """The key of an approver is not enough."""
    actor = Actor(name=AUTHOR.name, role="approver")
    key = make_key(ready.workspace, actor.name, actor.role, AUTHOR)
    found = freeze(ready.desk(actor, key), ready.request())
    assert found.folder is None
    assert "Dr Author wrote tiny@v1 and may not approve it alone" in found.objections


@pytest.mark.parametrize(
    ("actor", "what"),
    [
        (Actor(name="Dr Approver", role="editor"), "acts as editor"),
        (Actor(name="Somebody", role="approver"), "no key of Somebody as approver"),
        (Actor(name="Dr Approver", role="admin"), "no key of Dr Approver as admin"),
    ],
)
def test_who_may_not_approve_gets_no_further(ready, actor, what):
    """Role and name are those of the key, not those that were typed."""
    with pytest.raises(DataError, match=what):
        freeze(ready.desk(actor), ready.request())
    assert "evaluated" not in actions(ready.workspace)


def test_a_revoked_key_signs_nothing(ready):
    """The key as the ledger has it now."""
    revoke_key(ready.workspace, ready.key.keyid, AUTHOR, "lost")
    key = read_public_keys(ready.workspace)[ready.key.keyid]
    with pytest.raises(DataError, match="was revoked"):
        freeze(ready.desk(key=key), ready.request())


def test_a_clock_at_which_the_key_does_not_count_stops_it_at_the_start(ready):
    """A release dated before its key could never be verified, nor corrected."""
    desk = replace(ready.desk(), now=lambda: datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(DataError, match="at 2020-01-01T00:00:00Z, the time of this"):
        freeze(desk, ready.request())
    assert "evaluated" not in actions(ready.workspace)


def test_nobody_signs_twice(ready):
    """Said before anything is measured: a holdout must not be opened in vain."""
    desk = ready.desk()
    desk = replace(desk, signing=(*desk.signing, *desk.signing))
    with pytest.raises(DataError, match="somebody signs twice"):
        freeze(desk, ready.request())
    assert "evaluated" not in actions(ready.workspace)


@pytest.mark.parametrize("where", ["request", "key"])
def test_a_signature_means_something_that_there_is(ready, where):
    """It is printed beside the name; nothing is measured for another word."""
    desk, request = ready.desk(), ready.request()
    if where == "request":
        request = ready.request(meaning="presence")
    else:
        (one,) = desk.signing
        desk = replace(desk, signing=(replace(one, meaning="presence"),))
    with pytest.raises(DataError) as refused:
        freeze(desk, request)
    assert str(refused.value) == (
        "a signature means authorship, review, approval, responsibility, not "
        "'presence'."
    )
    assert "evaluated" not in actions(ready.workspace)


@pytest.mark.parametrize("where", ["why", "override"])
def test_a_reason_that_is_no_text_stops_it_at_the_start(ready, where):
    """A shell hands over any bytes, and the reason is signed."""
    with pytest.raises(DataError, match="not UTF-8"):
        ready.freeze(**{where: "caf\udce9"})
    assert "evaluated" not in actions(ready.workspace)


def test_what_would_not_verify_is_not_released(ready):
    """A release is never changed: what is wrong with it must show before."""
    desk = ready.desk()
    render = desk.render
    desk = replace(desk, render=lambda *given: {**render(*given), "more.md": b""})
    with pytest.raises(DataError, match="tiny-v1 would not pass its own checks: names"):
        freeze(desk, ready.request())
    assert not (ready.workspace.releases / "tiny-v1").exists()
    assert ready.freeze().folder is not None
    assert actions(ready.workspace).count("holdout_opened") == 1


def test_a_ledger_that_was_set_back_objects(ready, monkeypatch, tmp_path):
    """Else a holdout is opened anew after a look at it, from yesterday's copy."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yesterday = ready.workspace.ledger.read_bytes()
    assert ready.freeze().folder is not None
    ready.workspace.ledger.write_bytes(yesterday)
    for folder in (ready.workspace.releases / "tiny-v1", ready.workspace.private):
        shutil.rmtree(folder / "openings" if folder.name == ".ranloop" else folder)
    stopped = ready.freeze()
    assert stopped.folder is None
    assert "which this machine has seen" in stopped.objections[0]
    assert "holdout_opened" not in actions(ready.workspace)
    assert ready.freeze(override="a restored backup").facts.frozen.objections


def test_an_exemplar_taken_from_the_holdout_refuses_the_freeze(ready):
    """No override helps: the claim would be about a case that was seen."""
    from loop.core.records import Exemplar, Value

    text = "There is small pleural effusion in held 7."
    guide = replace(
        TINY.guides[0],
        exemplars=(Exemplar(text=text, value=Value.PRESENT, evidence="effusion"),),
    )
    ready.commit(replace(TINY, number=2, parent=TINY.digest, guides=(guide,)))
    with pytest.raises(DataError, match="cannot be released on held") as caught:
        ready.freeze(prompt="tiny@v2", override="we want it")
    assert text not in str(caught.value)
    assert "copied wording takes a new version" in str(caught.value)
    assert "holdout_opened" not in actions(ready.workspace)


def test_cases_that_were_measured_on_before_are_told_of_for_ever(ready):
    """An external cohort made a holdout: somebody saw its numbers, and says so."""
    ready.add_cohort("site", "external", rows("site"))
    run = run_prompt(ready.workspace, "tiny", "site").run_id
    record_evaluation(ready.workspace, evaluate_run(ready.workspace, run), AUTHOR)
    path = ready.folder / "site.csv"
    options = ImportOptions(
        name="site", role="holdout", source="-", licence="-", replace=True
    )
    import_cohort(ready.workspace, path, options, actor=AUTHOR)
    first = ready.freeze(holdout="site")
    assert first.folder is None
    (objection,) = first.objections
    assert "no longer unseen" in objection
    assert "measured on them once" in objection
    assert "holdout_opened" not in actions(ready.workspace)
    found = ready.freeze(holdout="site", override="no other cases can be had")
    assert found.facts.frozen.objections == [objection]
    assert "no longer unseen" in (found.folder / "card.html").read_text()
    assert verify_release(ready.workspace, "tiny-v1").holds


def test_cases_that_prompts_were_revised_on_are_never_a_holdout(ready):
    """No override helps: the prompt was made from them."""
    path = ready.folder / "dev.csv"
    options = ImportOptions(name="seen", role="holdout", source="-", licence="-")
    import_cohort(ready.workspace, path, options, actor=AUTHOR)
    with pytest.raises(DataError, match="cannot be released on seen"):
        ready.freeze(holdout="seen", override="we want to")
    assert "holdout_opened" not in actions(ready.workspace)


def test_a_cohort_from_the_source_of_one_that_is_gone_is_told_of(ready):
    """Leaving one case out makes another cohort, of cases that were seen."""
    ready.add_cohort("site", "dev", rows("site"))
    path = ready.folder / "site.csv"
    options = ImportOptions(
        name="site",
        role="holdout",
        source="-",
        licence="-",
        replace=True,
        exclude=("sitee0",),
    )
    import_cohort(ready.workspace, path, options, actor=AUTHOR)
    found = ready.freeze(holdout="site")
    assert found.folder is None
    assert any(
        "from a source file that site comes from too" in o for o in found.objections
    )


def test_a_holdout_that_is_none_is_named_before_anything_is_asked(ready):
    """Asking an engine may take hours."""
    for name, what in (("hled", "no cohort 'hled'"), ("dev", "has the role dev")):
        with pytest.raises(DataError, match=what):
            ready.freeze(holdout=name)
    assert "evaluated" not in actions(ready.workspace)


def test_a_label_that_got_worse_by_more_than_agreed_objects(ready):
    """Against the parent, which is asked the same if nobody has."""
    better = replace(TINY, number=2, parent=TINY.digest, system="Read it.\n")
    ready.commit(better)
    blind = replace(TINY.guides[1], exclusions=("cardiomegaly in dev",))
    worse = replace(
        TINY, number=3, parent=better.digest, guides=(TINY.guides[0], blind)
    )
    ready.commit(worse)
    found = ready.freeze(prompt="tiny@v3", holdout="")
    assert found.folder is None
    assert any(
        "Cardiomegaly: may be worse than in tiny@v2" in o for o in found.objections
    )


def test_a_version_is_released_once(ready):
    """A release is never changed, only superseded or withdrawn."""
    folder = ready.freeze().folder
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(ConflictError, match="was released as tiny-v1"):
        ready.freeze(why="again")
    assert all(path.read_bytes() == raw for path, raw in before.items())


def test_the_next_release_supersedes_and_names_the_last(ready):
    """With what changed since, and where to go back to."""
    first = ready.freeze()
    guide = replace(TINY.guides[0], terms=("pleural effusion", "fluid at the base"))
    second = replace(TINY, number=2, parent=TINY.digest, guides=(guide, TINY.guides[1]))
    ready.commit(second)
    found = ready.freeze(prompt="tiny@v2", why="a second term")
    assert found.folder is not None
    assert found.facts.release.model_dump(mode="json") == {
        "name": "tiny-v2",
        "prompt": "tiny",
        "version": 2,
        "ref": "tiny@v2",
        "digest": second.digest,
        "parent": TINY.digest,
        "parent_ref": "tiny@v1",
        "author": AUTHOR.name,
        "time": second.time,
        "why": second.why,
        "contract": "label_values/1",
        "plan": "joint",
        "labels": ["pleural_effusion", "cardiomegaly"],
        "languages": ["en"],
    }
    assert first.facts.release.parent_ref == ""
    assert first.facts.supersedes is None
    assert found.facts.supersedes.ref == "tiny@v1"
    assert found.facts.supersedes.name == first.name
    assert found.facts.supersedes.engine == first.facts.engine
    assert found.facts.change.classes == ["R1"]
    assert found.facts.change.rollback == "tiny-v1"
    assert len(found.facts.openings) == 2
    assert find_release(ready.workspace, "tiny-v1").superseded_by == "tiny-v2"
    assert verify_release(ready.workspace, "tiny-v2").holds
    assert verify_release(ready.workspace, "tiny-v1").holds


def test_a_withdrawn_release_is_not_loaded_any_more(ready):
    """It stays what it was, and what was before it comes back."""
    ready.freeze()
    withdraw_release(ready.workspace, "tiny-v1", APPROVER, "a label was misread")
    with pytest.raises(DataError, match="a label was misread"):
        load_release(ready.workspace, "tiny-v1")
    assert current_release(ready.workspace, "tiny") is None
    with pytest.raises(ConflictError, match="withdrawn already"):
        withdraw_release(ready.workspace, "tiny-v1", APPROVER, "twice")
    with pytest.raises(DataError, match="there is no release"):
        withdraw_release(ready.workspace, "tiny-v9", APPROVER, "none")


@pytest.mark.parametrize(
    ("actor", "why", "what"),
    [(APPROVER, " ", "needs a reason"), (AUTHOR, "misread", "takes an approver")],
)
def test_a_withdrawal_takes_an_approver_and_a_reason(ready, actor, why, what):
    """Otherwise the release stays what it is."""
    ready.freeze()
    with pytest.raises(DataError, match=what):
        withdraw_release(ready.workspace, "tiny-v1", actor, why)
    assert current_release(ready.workspace, "tiny").name == "tiny-v1"
    assert "withdrawn" not in actions(ready.workspace)


def test_the_budget_of_openings_ends(ready):
    """The fourth candidate is refused, whoever asks."""
    before = TINY
    for number in range(2, 5):
        version = replace(
            TINY, number=number, parent=before.digest, system=f"Read it, {number}.\n"
        )
        ready.commit(version)
        assert ready.freeze(prompt=version.ref).folder is not None
        before = version
    last = replace(TINY, number=5, parent=before.digest, system="Read it, five.\n")
    ready.commit(last)
    with pytest.raises(SealedError, match="3 times"):
        ready.freeze(prompt=last.ref)
    assert find_release(ready.workspace, "tiny-v5") is None


KILL = """
import os, signal, sys
from pathlib import Path
from loop.core.paths import WorkspacePaths
from loop.release.freeze import freeze
from loop.release.keys import find_key
from tests.release.ready import Ready
ready = Ready(WorkspacePaths(Path(sys.argv[1])), Path(sys.argv[1]))
ready.key = find_key(ready.workspace, "Dr Approver")
def reached(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
freeze(ready.desk(reached=reached), ready.request())
"""


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_there_is_no_release_or_a_complete_one(ready, step):
    """And freezing again ends what was begun, with the one opening."""
    done = subprocess.run(
        [sys.executable, "-c", KILL, str(ready.workspace.root), step],
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    folder = ready.workspace.releases / "tiny-v1"
    assert folder.exists() == (step in ("published", "recorded"))
    if folder.exists():
        assert verify_folder(folder, {ready.key.keyid: ready.key}).holds
    if step == "recorded":
        with pytest.raises(ConflictError, match="was released"):
            ready.freeze()
    else:
        found = ready.freeze()
        assert found.folder is not None
        assert found.completed == (step == "published")
    assert verify_release(ready.workspace, "tiny-v1").holds
    assert actions(ready.workspace).count("holdout_opened") == 1
    assert actions(ready.workspace).count("frozen") == 1
    assert not (ready.workspace.private / "freezing").exists()


@pytest.mark.parametrize("step", ["signed", "staged", "published"])
def test_on_a_full_disk_there_is_no_release_or_one_to_be_completed(ready, step):
    """As after a kill; here no file can grow from a step on."""
    free = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(reached):
        if reached == step:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1, free[1]))

    try:
        with pytest.raises(WriteError, match="File too large"):
            freeze(ready.desk(reached=fill), ready.request())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, free)
    there = (ready.workspace.releases / "tiny-v1").exists()
    assert there == (step == "published")
    assert verify_release(ready.workspace, ready.freeze().name).holds
    assert actions(ready.workspace).count("holdout_opened") == 1


def test_of_two_freezes_at_once_one_is_told_to_wait(ready):
    """Neither is lost, and the release is there once."""
    barrier, seen = Barrier(2), []

    def reached(step):
        if step == "measured":
            barrier.wait(timeout=60)
            barrier.wait(timeout=60)

    first = Thread(
        target=lambda: seen.append(freeze(ready.desk(reached=reached), ready.request()))
    )
    first.start()
    barrier.wait(timeout=60)
    with pytest.raises(ConflictError, match="held by another"):
        ready.freeze()
    barrier.wait(timeout=60)
    first.join(timeout=120)
    assert seen[0].folder is not None
    assert actions(ready.workspace).count("frozen") == 1


def test_a_folder_nobody_froze_is_not_taken_for_an_unfinished_release(ready):
    """Otherwise whoever can write a folder could release."""
    folder = ready.workspace.releases / "tiny-v1"
    folder.mkdir(parents=True)
    (folder / "release.json").write_text("{}\n")
    with pytest.raises(DataError, match="no release that can be completed"):
        ready.freeze()
    assert find_release(ready.workspace, "tiny-v1") is None


def test_a_release_of_another_history_is_not_completed(ready):
    """It could never be loaded: its head is no entry of this ledger."""
    ready.freeze()
    lines = ready.workspace.ledger.read_bytes().splitlines(keepends=True)
    ready.workspace.ledger.write_bytes(b"".join(lines[:-3]))
    with pytest.raises(DataError, match="is not a part of the workspace's"):
        find_unrecorded(ready.workspace, "tiny-v1")


def test_an_unfinished_release_is_completed_by_who_froze_it(ready):
    """Not by the next person, whose name would stand in the ledger."""
    found = ready.freeze()
    lines = ready.workspace.ledger.read_bytes().splitlines(keepends=True)
    ready.workspace.ledger.write_bytes(b"".join(lines[:-1]))
    unfinished = find_unrecorded(ready.workspace, "tiny-v1")
    assert format_facts(unfinished) == (found.folder / "release.json").read_bytes()
    other = Actor(name="Dr Other", role="approver")
    key = make_key(ready.workspace, other.name, other.role, AUTHOR)
    with pytest.raises(ConflictError, match="Let Dr Approver freeze it again"):
        freeze(ready.desk(other, key), ready.request())


def test_a_draft_is_not_released(ready):
    """Only what was committed, with its entry in the ledger."""
    from loop.prompts.catalog import drafts_folder, write_folder

    draft = replace(TINY, number=0, draft="d1", parent=TINY.digest)
    write_folder(drafts_folder(ready.workspace, "tiny") / "d1", draft)
    with pytest.raises(DataError, match="is a draft"):
        ready.freeze(prompt="tiny@draft:d1")


def test_two_people_may_sign_each_with_their_meaning(ready):
    """Both names, roles and meanings stand in the statement and are checked."""
    from loop.release.freeze import Signing
    from loop.release.keys import load_private

    reviewer = make_key(ready.workspace, "Dr Reviewer", "reviewer", AUTHOR)
    desk = ready.desk()
    second = Signing(
        key=reviewer,
        private=load_private(ready.workspace, reviewer.keyid),
        meaning="review",
    )
    found = freeze(replace(desk, signing=(*desk.signing, second)), ready.request())
    keys = read_public_keys(ready.workspace)
    checked = verify_folder(found.folder, keys)
    assert checked.holds
    assert [(one.name, one.meaning) for one in checked.approvals] == [
        ("Dr Approver", "approval"),
        ("Dr Reviewer", "review"),
    ]


def hedging_rows(prefix, wrong=0):
    """Return the usual cases, the first effusion only a possible one."""
    (case, _, *marks), *others = rows(prefix, wrong)
    return [
        (case, f"There is a possible pleural effusion in {prefix}.", *marks),
        *others,
    ]


@pytest.mark.parametrize(
    ("policy", "counts", "left_out"),
    [("wrong", (59, 0, 1, 120), 0), ("excluded", (59, 0, 0, 120), 1)],
)
def test_a_release_carries_its_policy_for_uncertain_answers(
    workspace, tmp_path, monkeypatch, policy, counts, left_out
):
    """Measured, signed, verified, recounted and shown under the same policy."""
    said = f"uncertain_answers: {policy}\n"
    monkeypatch.setattr("tests.release.ready.PROTOCOL", PROTOCOL + said)
    monkeypatch.setattr("tests.release.ready.rows", hedging_rows)
    ready = make_ready(workspace, tmp_path)
    found = ready.freeze()
    facts = parse_facts((found.folder / "release.json").read_bytes())
    assert facts.protocol.content["uncertain_answers"] == policy
    for evaluation in facts.evaluations:
        sign = {"wrong": "unc:wrong", "excluded": "unc:excl"}[policy]
        assert sign in evaluation.signature.split("|")
        effusion = next(
            one for one in evaluation.labels if one.label == "pleural_effusion"
        )
        assert effusion.confusion == counts
        assert effusion.hedges == (1, 0)
        assert effusion.excluded.uncertain_predicted == left_out
    alone = verify_folder(found.folder, {ready.key.keyid: ready.key})
    assert alone.holds, alone.broken
    assert not [one for one in audit_workspace(workspace).findings if not one.holds]
    card = (found.folder / "card.md").read_text("utf-8")
    assert f"Uncertain answers: {policy}" in card.replace("**", "")
    assert "uncertain_of_positives" in (found.folder / "evaluation.csv").read_text()
    assert any(one.measured for one in facts.history)


def test_a_release_under_an_early_protocol_is_as_it_was(ready):
    """Nothing is written of what its protocol does not say."""
    found = ready.freeze()
    text = (found.folder / "release.json").read_text("utf-8")
    assert "uncertain_answers" not in text and "answered_uncertain" not in text
    assert "uncertain_of_positives" not in (found.folder / "evaluation.csv").read_text()
