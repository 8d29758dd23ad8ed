"""What the ledger keeps of an evaluation: all that a number rests on, once."""

import hashlib
from dataclasses import replace

import pytest

from loop.core.digests import canonical_json, digest_json, digest_text
from loop.core.ledger import Event, append_event, read_ledger
from loop.core.records import Mark
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.recording import (
    counts_digest,
    digest_answers,
    record_evaluation,
    with_intervals,
)
from loop.evaluate.score_history import score_history
from loop.labels.cohort import read_cohort
from loop.labels.reference import correct_reference, read_reference
from loop.run.store import open_store
from tests.evaluate.tried_scenes import EDITOR


def entries_of(workspace, action):
    """Return the entries of one action."""
    return [one for one in read_ledger(workspace.ledger) if one.action == action]


@pytest.fixture
def measured(trials):
    """Return a workspace with one evaluated run of a version, and its evaluation."""
    trials.version(1, "effusion")
    run = trials.run("tiny@v1")
    found = evaluate_run(trials.workspace, run, resamples=20)
    return trials.workspace, record_evaluation(trials.workspace, found, EDITOR)


def test_score_and_gate_are_recorded_whole_and_once(measured):
    """Digests of prompt, reference, protocol, taxonomy, counts and answers."""
    workspace, found = measured
    (score,), (gate,) = (
        entries_of(workspace, action) for action in ("evaluated", "gate_decided")
    )
    for entry in (score, gate):
        assert (entry.subject, entry.actor) == ("tiny@v1", EDITOR.name)
        assert entry.reason == f"run {found.run.run_id} on dev"
    identity = {
        "run": found.run.run_id,
        "prompt_digest": found.run.prompt_digest,
        "cohort": "dev",
        "reference": 1,
        "reference_digest": read_reference(workspace, "dev").digest,
        "protocol_digest": digest_text(workspace.protocol.read_text("utf-8")),
        "cases": 20,
        "not_run": 0,
        "counts_digest": counts_digest(found),
    }
    with open_store(workspace) as store:
        answers = digest_answers(store, [found.run.run_id])
    cues = found.run.manifest["engine_identity"]["cues"]
    taxonomy = (workspace.labels / "taxonomy.yaml").read_text("utf-8")
    assert score.payload == {
        **identity,
        "macro_f1": f"{found.macro.score.estimate:.4f}",
        "micro_f1": f"{found.micro.score.estimate:.4f}",
        "signature": found.signature,
        "taxonomy_digest": digest_text(taxonomy),
        "cues": cues,
        "answers_digest": answers,
    }
    assert gate.payload == {
        **identity,
        "rule": "point",
        "verdict": found.verdict.value,
        "labels": {one.label: one.gate.verdict.value for one in found.labels},
    }
    assert found.registered == entries_of(workspace, "protocol_set")[0].time
    record_evaluation(workspace, found, EDITOR)
    assert len(entries_of(workspace, "evaluated")) == 1
    assert len(entries_of(workspace, "gate_decided")) == 1
    other = replace(found, not_run=1)
    record_evaluation(workspace, other, EDITOR)
    assert [one.payload["not_run"] for one in entries_of(workspace, "evaluated")] == [
        0,
        1,
    ]


def test_an_entry_from_before_digests_were_kept_says_the_same(measured):
    """What an earlier version did not write makes no second entry; a change does."""
    workspace, found = measured
    (score,) = entries_of(workspace, "evaluated")
    early = {**score.payload, "macro_f1": "0.0001"}
    for name in ("taxonomy_digest", "cues", "answers_digest"):
        early.pop(name)
    event = Event(action="evaluated", subject="tiny@v1", reason="early", payload=early)
    append_event(workspace.ledger, event, EDITOR)
    macro = replace(found.macro, score=found.macro.score._replace(estimate=0.0001))
    record_evaluation(workspace, replace(found, macro=macro), EDITOR)
    assert len(entries_of(workspace, "evaluated")) == 2
    none = replace(found.macro, score=found.macro.score._replace(estimate=None))
    record_evaluation(workspace, replace(found, macro=none), EDITOR)
    scores = [one.payload["macro_f1"] for one in entries_of(workspace, "evaluated")]
    assert scores[1:] == ["0.0001", "not estimable"]


def test_what_is_served_and_claimed_is_recorded_where_there_is_any(measured):
    """A model by its identity, draws by their runs, a subset by what it certifies."""
    workspace, found = measured
    identity = {"model": "m", "server": {"weights": "w"}, "cues": "none"}
    manifest = {**found.run.manifest, "engine_identity": identity}
    protocol = found.protocol.model_copy(update={"claim": "subset"})
    other = replace(
        found,
        run=replace(found.run, manifest=manifest),
        protocol=protocol,
        runs=(found.run.run_id, "gone"),
    )
    record_evaluation(workspace, other, EDITOR)
    score = entries_of(workspace, "evaluated")[-1].payload
    gate = entries_of(workspace, "gate_decided")[-1].payload
    assert score["engine_digest"] == digest_json(identity)
    assert score["runs"] == gate["runs"] == [found.run.run_id, "gone"]
    # One of the runs is not in the store, and the engine has no list of cues.
    assert "answers_digest" not in score and "cues" not in score
    assert gate["claim"] == {"verdict": "INSUFFICIENT", "certified": []}


def test_the_digest_of_answers_is_of_every_value_in_the_order_of_runs(trials):
    """Case, outcome and values; another run, or one more, is another digest."""
    trials.version(1, "effusion")
    trials.version(2, "fluid")
    runs = [trials.run("tiny@v1"), trials.run("tiny@v2")]
    with open_store(trials.workspace) as store:
        lines = b""
        for run in runs:
            for one in store.read_outcomes(run):
                values = {name: str(f.value) for name, f in one.fields.items()}
                lines += canonical_json([run, one.item_id, "answered", values]) + b"\n"
        assert digest_answers(store, runs) == hashlib.sha256(lines).hexdigest()
        assert digest_answers(store, runs[::-1]) != digest_answers(store, runs)
        assert digest_answers(store, [runs[0], "gone"]) is None
        assert digest_answers(store, runs[:1]) != digest_answers(store, runs)
        assert digest_answers(store, [runs[0], *runs]) not in (
            None,
            digest_answers(store, runs),
        )


def test_intervals_are_filled_in_only_where_the_score_is_the_recorded_one(measured):
    """Four decimals of it were kept; what differs by more is left as it stands."""
    workspace, _ = measured
    (row,) = score_history(workspace, "tiny", "dev")
    with open_store(workspace) as store:

        def filled(**changes):
            return with_intervals(
                workspace, store, [replace(row, **changes)], resamples=20
            )[0]

        exact = filled().macro_f1
        assert (filled().low, filled().high) != (None, None)
        assert filled(macro_f1=exact + 0.00005).low is not None
        for change in (
            {"macro_f1": exact + 0.00006},
            {"macro_f1": exact - 0.00006},
            {"macro_f1": None},
            {"comparable": False},
            {"run": ""},
            {"run": "gone"},
            {"runs": (row.run, "gone")},
            {"reference_digest": "other"},
            {"reference": 7},
        ):
            assert filled(**change) == replace(row, **change), change
        gone = replace(row, run="gone")
        kept = with_intervals(workspace, store, [gone, row], resamples=20)
        assert kept == (gone, filled())


def test_scores_are_measured_on_the_reference_of_the_last_that_can_be(measured):
    """One that does not compare, or has no run, does not say on which."""
    workspace, _ = measured
    (row,) = score_history(workspace, "tiny", "dev")
    other = replace(row, comparable=False, reference=7, reference_digest="other")
    bare = replace(row, run="", reference=7, reference_digest="other")
    early = replace(row, reference=7, reference_digest="other")
    with open_store(workspace) as store:
        (alone,) = with_intervals(workspace, store, [row], resamples=20)
        found = with_intervals(
            workspace, store, [early, row, other, bare], resamples=20
        )
    limits = {"macro_f1": alone.macro_f1, "low": alone.low, "high": alone.high}
    assert alone.low is not None
    assert found == (replace(early, **limits), alone, other, bare)


def test_a_score_on_an_earlier_reference_keeps_its_interval(measured):
    """Comparable rows are measured on the reference that they name."""
    workspace, found = measured
    (row,) = score_history(workspace, "tiny", "dev")
    cohort = read_cohort(workspace, "dev")
    marks = {("n0", "pleural_effusion"): Mark.PRESENT}
    correct_reference(workspace, cohort, marks, actor=EDITOR, reason="misread")
    with open_store(workspace) as store:
        (kept,) = with_intervals(workspace, store, [row], resamples=20)
    assert kept.macro_f1 == found.macro.score.estimate
    assert (kept.low, kept.high) == (found.macro.score.low, found.macro.score.high)


def test_an_evaluation_says_when_its_protocol_was_registered(trials):
    """Nothing before it was; then the time of the entry, however often it is used."""
    trials.version(1, "effusion")
    run = trials.run("tiny@v1")
    first = evaluate_run(trials.workspace, run, resamples=20)
    assert (first.registered, first.registered_late) == ("", True)
    told = record_evaluation(trials.workspace, first, EDITOR)
    (entry,) = entries_of(trials.workspace, "protocol_set")
    again = evaluate_run(trials.workspace, run, resamples=20)
    assert again.registered == told.registered == entry.time
