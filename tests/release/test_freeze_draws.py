"""A version is released with an engine that has chance in it."""

import csv
import json
from dataclasses import replace

import pytest

from loop.core.ledger import read_ledger
from loop.evaluate.matrix.runs import EngineRun, read_matrix
from loop.release.audit.evaluations import check_evaluations
from loop.release.release_json import format_facts, parse_facts
from loop.release.verify import verify_folder
from loop.run.task import run_prompt
from tests.release.ready import TINY, make_ready

pytestmark = pytest.mark.slow

REWORDED = replace(
    TINY, number=2, parent=TINY.digest, system="Read the report with care.\n"
)


@pytest.fixture
def ready(workspace, tmp_path, wavering, monkeypatch):
    """Make a workspace whose version passes over three draws on both cohorts."""
    monkeypatch.setattr(wavering, "errors", 1)
    return make_ready(workspace, tmp_path)


def test_every_gate_of_a_release_is_over_all_draws(ready, wavering):
    """Dev cohort and holdout alike, as many as the protocol says."""
    found = ready.freeze(engine="wavering")
    assert found.objections == ()
    assert [one.draws for one in found.facts.evaluations] == [3, 3]
    assert {seed for seed, _ in wavering.asked} == {0, 1, 2}
    for one in found.facts.evaluations:
        assert sum(one.statuses.values()) == 3 * one.cases == 540
        assert len(set(one.runs)) == 3
        assert one.signature.endswith("|draws:3")
    assert len(found.facts.openings) == 1
    alone = verify_folder(found.folder, {ready.key.keyid: ready.key})
    assert alone.holds, alone.broken


def test_documents_say_over_how_many_draws(ready):
    """Card, table and JSON."""
    folder = ready.freeze(engine="wavering").folder
    facts = json.loads((folder / "release.json").read_text())
    assert facts["format"] == "ranloop-release/2"
    with (folder / "evaluation.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["draws"] for row in rows} == {"3"}
    texts = "".join(
        path.read_text() for path in folder.iterdir() if path.suffix in (".md", ".html")
    )
    assert "Every case was asked 3 times" in texts
    assert "of 180 cases, 3 draws" in texts


def test_a_release_of_one_draw_is_written_as_before(ready):
    """The first format, without a word of draws."""
    folder = ready.freeze().folder
    raw = (folder / "release.json").read_bytes()
    for one in json.loads(raw)["evaluations"]:
        assert {"draws", "runs"}.isdisjoint(one)
    assert b'"format":"ranloop-release/1"' in raw
    assert format_facts(parse_facts(raw)) == raw
    with (folder / "evaluation.csv").open(newline="") as stream:
        assert "draws" not in next(csv.reader(stream))


@pytest.mark.parametrize("change", ["draws", "runs", "format"])
def test_other_draws_than_those_of_the_counts_are_noticed(ready, change):
    """Whoever writes fewer draws makes limits narrower."""
    found = ready.freeze(engine="wavering")
    facts = found.facts
    one, two = facts.evaluations
    if change == "draws":
        facts = facts.model_copy(
            update={"evaluations": [one.model_copy(update={"draws": 2}), two]}
        )
    elif change == "runs":
        facts = facts.model_copy(
            update={"evaluations": [one.model_copy(update={"runs": one.runs[:2]}), two]}
        )
    else:
        facts = facts.model_copy(update={"format": "ranloop-release/1"})
    folder = found.folder
    folder.chmod(0o755)
    path = folder / "release.json"
    path.chmod(0o644)
    path.write_bytes(format_facts(facts))
    broken = verify_folder(folder, {ready.key.keyid: ready.key}).broken
    said = " ".join(one.what for one in broken)
    wanted = {
        "draws": "answers are accounted for, 180 cases were asked 2 times",
        "runs": "are not those of its draws",
        "format": "the format is not that of as many draws",
    }
    assert wanted[change] in said


def test_the_ledger_names_the_runs_of_all_draws_and_audit_counts_them(ready):
    """Recounted from the store, and a recount of fewer would differ."""
    ready.freeze(engine="wavering")
    entries = read_ledger(ready.workspace.ledger)
    scored = [one for one in entries if one.action == "evaluated"]
    assert [len(one.payload["runs"]) for one in scored] == [3, 3]
    found = check_evaluations(ready.workspace, entries)
    assert not [one for one in found if one.severity == "broken"]
    assert any("scored runs give the recorded counts" in one.what for one in found)
    less = [
        replace(one, payload={**one.payload, "runs": one.payload["runs"][:2]})
        if one.payload.get("runs") and one.payload["cohort"] == "dev"
        else one
        for one in entries
    ]
    found = check_evaluations(ready.workspace, tuple(less))
    assert any("gives other counts than entry" in one.what for one in found)


def test_what_chance_changed_stops_no_release(ready, wavering):
    """A version that says the same in other words is not called worse."""
    ready.freeze(engine="wavering")
    ready.commit(REWORDED)
    found = ready.freeze(engine="wavering", prompt="tiny@v2")
    assert not [one for one in found.objections if "worse" in one]
    assert found.facts.change.harm == []
    card = (found.folder / "card.md").read_text()
    assert "there is no evidence that any label got worse" in card
    record = (found.folder / "change-record.md").read_text()
    assert "Evidence of harm over all draws" in record


def test_harm_by_the_evidence_stops_a_release_and_stands_on_its_card(ready, wavering):
    """A guide that names every report costs specificity in every draw."""
    ready.freeze(engine="wavering")
    effusion, heart = TINY.guides
    wide = replace(effusion, terms=("there", "the"))
    ready.commit(replace(REWORDED, guides=(wide, heart)))
    stopped = ready.freeze(engine="wavering", prompt="tiny@v2")
    (said,) = [one for one in stopped.objections if "evidence that it is worse" in one]
    assert "pleural_effusion (specificity" in said
    assert stopped.folder is None


def test_the_protocol_may_demand_that_nothing_is_worse(ready, wavering):
    """Shown by the margins: more than the absence of evidence."""
    path = ready.workspace.protocol
    path.write_text(path.read_text() + "not_worse: true\n")
    ready.freeze(engine="wavering")
    ready.commit(REWORDED)
    found = ready.freeze(engine="wavering", prompt="tiny@v2")
    (said,) = [one for one in found.objections if "not shown to be no worse" in one]
    assert "`not_worse`" in said
    assert found.folder is None


def test_draws_cannot_be_chosen_in_a_matrix(ready, wavering):
    """Whichever draw is named, all of them count."""
    ready.freeze(engine="wavering")
    latest = run_prompt(ready.workspace, "tiny@v1", "dev", engine="wavering", draw=2)
    found = read_matrix(ready.workspace, [EngineRun("wavering", latest.run_id)])
    (column,) = found.columns
    assert column.evaluation.draws == 3
