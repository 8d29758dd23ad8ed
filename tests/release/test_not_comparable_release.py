"""A label that a reference cannot judge, from its cohort to the signed card."""

from dataclasses import replace

import pytest

from loop.core.check_findings import FindingSeverity
from loop.core.errors import DataError
from loop.core.ledger import Event, append_event, read_ledger
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.gates import GateVerdict
from loop.evaluate.plan import plan_cohort
from loop.evaluate.plan_text import plan_data, plan_notes
from loop.evaluate.recording import with_intervals
from loop.evaluate.results import certify_evaluation
from loop.evaluate.score_history import main_scores, score_history
from loop.evaluate.stability import read_draws
from loop.labels.cohort import find_record, read_cohort
from loop.labels.importing import importer
from loop.labels.taxonomy import read_taxonomy
from loop.release.audit.audit import audit_workspace
from loop.release.candidate import claim_facts
from loop.release.documents.spreadsheet import evaluation_table
from loop.release.extractors import read_errors
from loop.release.keys import load_private
from loop.release.load import find_request, verify_release
from loop.release.provenance import evaluation_facts
from loop.release.release_json import format_facts, parse_facts
from loop.release.statement import Approval
from loop.release.verify import verify_folder
from loop.run.store import open_store
from loop.score.extractor import Extractor
from tests.release.ready import APPROVER, make_ready, rows
from tests.release.small import make_facts, make_files, read_files, sign

pytestmark = pytest.mark.slow

REASON = "the code also means a tortuous aorta"
OUT = GateVerdict.NOT_COMPARABLE


def mark(monkeypatch, labels):
    """Import from now on sources that cannot judge `labels`."""
    plain = importer.open_source

    def opened(*args):
        marked = dict.fromkeys(labels, REASON)
        return replace(plain(*args), not_comparable=marked)

    monkeypatch.setattr(importer, "open_source", opened)


@pytest.fixture
def others(workspace):
    """Return every label but the one that the tiny prompt always reads right."""
    ids = read_taxonomy(workspace.labels).ids
    return tuple(label for label in ids if label != "cardiomegaly")


@pytest.fixture
def ready(workspace, tmp_path, monkeypatch, others):
    """Make a version of which only Cardiomegaly can be judged; effusions fail."""
    with monkeypatch.context() as patch:
        mark(patch, others)
        made = make_ready(workspace, tmp_path, wrong=(30, 30))
    workspace.protocol.write_text("rule: lower\nclaim: all\nmin_positives: 14\n")
    return made


def labels_of(facts):
    """Return label to verdict, cohort by cohort."""
    return {
        one.cohort: {label.label: label.gate.verdict for label in one.labels}
        for one in facts.evaluations
    }


def test_it_stops_no_release_and_the_card_says_why(ready, others):
    """A failing label is shown and is no part of the claim, by what was imported."""
    found = ready.freeze()
    assert found.objections == ()
    assert found.claim.verdict is GateVerdict.PASS
    assert [one.label for one in found.claim.labels] == ["cardiomegaly"]
    for verdicts in labels_of(found.facts).values():
        assert verdicts.pop("cardiomegaly") is GateVerdict.PASS
        assert set(verdicts.values()) == {OUT}
    effusion = next(
        one
        for one in found.facts.evaluations[0].labels
        if one.label == "pleural_effusion"
    )
    assert effusion.fn == 30
    for name in ("card.md", "card.html", "change-record.md"):
        text = (found.folder / name).read_text()
        assert "Pleural Effusion: shown, not part of the claim" in text
        assert REASON in text
    card = (found.folder / "card.md").read_text()
    assert "every label that the reference can judge reaches" in card
    assert "labels without a pass" not in card
    table = (found.folder / "evaluation.csv").read_text()
    assert table.count("NOT COMPARABLE") == 2 * len(others)


def test_the_release_verifies_and_so_does_the_ledger(ready):
    """What it leaves out is what its cohorts were imported with."""
    name = ready.freeze().name
    assert verify_release(ready.workspace, name).holds
    audit = audit_workspace(ready.workspace)
    assert audit.holds
    assert not [one for one in audit.findings if "not comparable" in one.what]
    assert not [one for one in audit.findings if "cannot judge" in one.what]


def test_facts_are_written_and_read_the_same(ready):
    """The reasons stand with the cohort, once."""
    facts = ready.freeze().facts
    raw = format_facts(facts)
    assert parse_facts(raw) == facts
    assert set(facts.cohorts[0].not_comparable.values()) == {REASON}


def test_facts_without_such_a_label_have_no_word_of_it(tmp_path):
    """A release of before is the same bytes."""
    facts = make_facts(tmp_path / "tiny/v1", tmp_path / "ledger.jsonl")
    files = make_files(facts, tmp_path / "tiny/v1", tmp_path / "ledger.jsonl")
    assert b"not_comparable" not in files["release.json"]
    assert b"without:" not in files["release.json"]


def test_a_failing_label_cannot_leave_the_claim_once_it_was_imported(
    workspace, tmp_path, monkeypatch, others
):
    """Neither in the cohort's file nor in its reasons."""
    with monkeypatch.context() as patch:
        mark(patch, [one for one in others if one != "pleural_effusion"])
        ready = make_ready(workspace, tmp_path, wrong=(30, 30))
    workspace.protocol.write_text("rule: lower\nclaim: all\nmin_positives: 14\n")
    stopped = ready.freeze(holdout="")
    assert stopped.folder is None
    assert stopped.claim.verdict is GateVerdict.FAIL
    path = workspace.cohorts / "dev" / "cohort.yaml"
    honest = path.read_text()
    path.write_text(
        honest.replace(
            "not_comparable:\n", f"not_comparable:\n  pleural_effusion: {REASON}\n"
        )
    )
    assert path.read_text() != honest
    with pytest.raises(DataError, match="not_comparable: is"):
        ready.freeze(holdout="")
    assert not audit_workspace(workspace).holds
    path.write_text(honest.replace(REASON, "another reason", 1))
    with pytest.raises(DataError, match="not_comparable_sha256: is"):
        ready.freeze(holdout="")
    path.write_text(honest)
    assert ready.freeze(holdout="").folder is None


def test_labels_that_were_recorded_without_reasons_are_held_all_the_same(
    workspace, tmp_path, monkeypatch
):
    """A workspace of before goes on, and its labels cannot change."""
    mark(monkeypatch, ["edema"])
    make_ready(workspace, tmp_path)
    record = find_record(read_ledger(workspace.ledger), "dev")
    early = {k: v for k, v in record.added.items() if k != "not_comparable_sha256"}
    cohort = read_cohort(workspace, "dev", record=replace(record, added=early))
    assert dict(cohort.not_comparable) == {"edema": REASON}
    assert replace(record, added=early).gave_reasons({"edema": "any"})
    assert not record.gave_reasons({"edema": "any"})
    assert not record.gave_reasons({})
    with pytest.raises(DataError, match="not_comparable: is"):
        other = replace(record, added={**early, "not_comparable": "edema fracture"})
        read_cohort(workspace, "dev", record=other)


@pytest.fixture
def failing(workspace, tmp_path):
    """Release, by override, a version that misses half of the effusions."""
    ready = make_ready(workspace, tmp_path, wrong=(30, 0))
    workspace.protocol.write_text("rule: lower\nclaim: all\nmin_positives: 14\n")
    return ready, ready.freeze(holdout="", override="urgent")


def forge(ready, found, reasons):
    """Return the facts as if the cohort had been imported with `reasons`."""
    facts = found.facts
    read = read_draws(ready.workspace, facts.evaluations[0].run)
    made = evaluate_inputs(replace(read, not_comparable=reasons))
    made = replace(made, registered=facts.protocol.registered)
    cohort = facts.cohorts[0].model_copy(update={"not_comparable": reasons})
    return facts.model_copy(
        update={
            "evaluations": [evaluation_facts(made)],
            "claim": claim_facts(certify_evaluation(made), "dev"),
            "cohorts": [cohort],
        }
    )


def verify_signed(ready, found, facts):
    """Sign `facts` in place of those that were released, and return what is broken."""
    files = read_files(found.folder)
    files |= {"release.json": format_facts(facts)}
    files |= {"evaluation.csv": evaluation_table(facts)}
    key, time = ready.key, facts.frozen.time
    approval = Approval(key.keyid, key.name, key.role, "approval", time)
    folder = ready.folder / "forged"
    sign(folder, files, facts, [(approval, load_private(ready.workspace, key.keyid))])
    verified = verify_folder(folder, {key.keyid: key})
    return {one.check: one.what for one in verified.broken}


def test_a_forged_release_that_leaves_out_what_failed_is_found(failing, others):
    """All its numbers agree with each other, and the ledger with none of it."""
    ready, found = failing
    assert verify_signed(ready, found, found.facts) == {}
    forged = forge(ready, found, dict.fromkeys(others, REASON))
    assert forged.claim.verdict is GateVerdict.PASS
    assert found.facts.claim.verdict is GateVerdict.FAIL
    broken = verify_signed(ready, found, forged)
    assert set(broken) == {"history"}
    assert "another verdict" in broken["history"]


def test_one_that_changes_no_verdict_is_found_too(failing):
    """A label less that was open anyway still makes the others look better."""
    ready, found = failing
    forged = forge(ready, found, {"fracture": REASON})
    assert forged.claim.verdict is found.facts.claim.verdict
    broken = verify_signed(ready, found, forged)
    assert set(broken) == {"history"}
    assert "leaves out other labels than its cohort" in broken["history"]


def test_a_label_is_left_out_only_as_its_cohort_says(ready, others):
    """Label, reason, gate, claim and signature say the same."""
    found = ready.freeze(holdout="")
    facts = found.facts
    assert verify_signed(ready, found, facts) == {}
    (cohort,) = facts.cohorts
    nothing = facts.model_copy(
        update={"cohorts": [cohort.model_copy(update={"not_comparable": {}})]}
    )
    broken = verify_signed(ready, found, nothing)
    assert "its cohort says that the reference can judge it" in str(broken)
    reasons = {**cohort.not_comparable, "edema": "because"}
    other = facts.model_copy(
        update={"cohorts": [cohort.model_copy(update={"not_comparable": reasons})]}
    )
    broken = verify_signed(ready, found, other)
    assert "for another reason than its cohort gives" in str(broken)
    assert "history" in broken
    (told,) = facts.evaluations
    signature = told.signature.replace("without:", "all:")
    unsaid = facts.model_copy(
        update={"evaluations": [told.model_copy(update={"signature": signature})]}
    )
    assert "names other labels that are left out" in str(
        verify_signed(ready, found, unsaid)
    )
    labels = [*facts.claim.labels]
    more = labels[0].model_copy(update={"label": "edema"})
    claim = facts.claim.model_copy(update={"labels": [*labels, more]})
    broken = verify_signed(ready, found, facts.model_copy(update={"claim": claim}))
    assert "not about every label that can be judged" in str(broken)


def test_a_cohort_imported_again_without_a_label_that_failed_is_noticed(
    failing, monkeypatch
):
    """It may be done, and whoever reads the ledger sees when."""
    ready, _ = failing
    assert not [
        one
        for one in audit_workspace(ready.workspace).findings
        if "judged that" in one.what
    ]
    mark(monkeypatch, ["pleural_effusion"])
    ready.add_cohort("again", "dev", rows("dev", 30))
    ready.add_cohort("thrice", "dev", rows("dev", 30))
    found = [
        one
        for one in audit_workspace(ready.workspace).findings
        if "judged that" in one.what
    ]
    (finding,) = found
    assert finding.severity is FindingSeverity.NOTE
    assert "imports again, and says" in finding.what
    assert "pleural_effusion" in finding.what


@pytest.mark.parametrize(
    ("action", "payload"),
    [
        ("gate_decided", {"labels": {"fracture": "NOT COMPARABLE"}}),
        ("evaluated", {"signature": "acc+f1|tiny|rules|dev:ref1|without:fracture"}),
    ],
)
def test_an_entry_that_leaves_out_what_its_cohort_judges_is_broken(
    failing, action, payload
):
    """The ledger alone shows it."""
    ready, _ = failing
    event = Event(
        action=action,
        subject="tiny@v1",
        reason="run x on dev",
        payload={"cohort": "dev", **payload},
    )
    append_event(ready.workspace.ledger, event, APPROVER)
    broken = [
        one.what
        for one in audit_workspace(ready.workspace).findings
        if "without fracture" in one.what
    ]
    assert len(broken) == 1


def test_the_history_and_the_corrected_score_leave_it_out_alike(ready):
    """The score of the page, of the ledger and of the correction is one."""
    facts = ready.freeze(holdout="").facts
    workspace = ready.workspace
    (score,) = main_scores(score_history(workspace, "tiny", "dev")).values()
    macro = facts.evaluations[0].macro.value
    assert macro == 1.0
    assert facts.selection.apparent == pytest.approx(macro)
    assert score.without == set(facts.cohorts[0].not_comparable)
    assert (score.labels_passed, score.labels) == (1, 1)
    with open_store(workspace) as store:
        (filled,) = with_intervals(workspace, store, [score])
    assert filled.low is not None


def test_no_cases_are_asked_for_it(ready):
    """No number of cases makes a reference judge what it cannot."""
    plan = plan_cohort(ready.workspace, "dev")
    assert [one.counted.label for one in plan.labels] == ["cardiomegaly"]
    assert "Pleural Effusion" in plan.not_comparable
    assert any(
        "Pleural Effusion is not planned" in one and REASON in one
        for one in plan_notes(plan)
    )
    assert len(plan_data(plan)["labels"]) == 1


@pytest.mark.parametrize("source", ["auto", "run"])
def test_an_extractor_is_not_corrected_by_errors_that_nobody_knows(ready, source):
    """Of such a label the reference tells no error, so it stays as it was read."""
    frozen = ready.freeze(holdout="").facts
    wanted = find_request(ready.workspace, release="tiny-v1")
    bias = "auto" if source == "auto" else frozen.evaluations[0].run
    with Extractor.open(ready.workspace, wanted.prompt) as extractor:
        found = read_errors(ready.workspace, wanted, extractor.facts, bias)
    assert set(found.by_label) == {"cardiomegaly"}
    assert "Not known for Atelectasis" in found.source
    assert "Pleural Effusion" in found.source
