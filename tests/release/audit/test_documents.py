"""The change history: who, when, why, before and after; escaped, and no case text."""

import csv
import io
import json
from shutil import rmtree

import pytest

from loop.core.ledger import Actor
from loop.release.audit.documents import audit_data, render_audit_csv, render_audit_html
from loop.release.audit.prompt_changes import list_audited, read_changes
from loop.release.keys import make_key, signer_for
from tests.evaluate.test_evaluation_html import outline
from tests.release.audit.scenes import ACTOR, clock, make_history

HOSTILE = "<script>alert(1)</script> {{ 7 * 7 }} =cmd|' /C calc'!A0"


@pytest.fixture
def history(tmp_path):
    """Return a history in which everything happened once."""
    made = make_history(tmp_path / "ws")
    gates = {"a": "PASS", "b": "FAIL"}
    for number, score in ((1, "0.5000"), (2, "0.7500")):
        payload = {"cohort": "dev", "cases": 20, "reference": 1, "run": f"r{number}"}
        record = {**payload, "macro_f1": score}
        made.record("evaluated", f"tiny@v{number}", record, at=10)
        decided = {**payload, "labels": dict(gates), "verdict": "FAIL"}
        made.record("gate_decided", f"tiny@v{number}", decided, at=10)
        gates["b"] = "PASS"
    rejected = {"parent_ref": "tiny@v3", "objections": ["broke an anchor"]}
    made.record("draft_rejected", "tiny@draft:d1", rejected, at=11)
    overridden = {"overridden": ["4 labels got worse"]}
    made.record("override", "tiny@v3", overridden, at=12, reason=HOSTILE)
    opened = {"cohort": "held", "prompt": "tiny@v3", "number": 1, "budget": 3}
    made.record("holdout_opened", "held", opened, at=13)
    made.record("frozen", "tiny@v3", {"release": "tiny-v3"}, at=14)
    made.record("withdrawn", "tiny@v3", {"release": "tiny-v3"}, at=15)
    made.record("draft_committed", "other@v1", {"digest": "0"}, at=16)
    return made


def told(history, prompt="tiny"):
    """Return the changes of a prompt."""
    return read_changes(history.workspace, history.audit(), prompt)


def page(history):
    """Return the page of the prompt."""
    audit = history.audit()
    return render_audit_html(audit, [read_changes(history.workspace, audit, "tiny")])


def test_a_check_is_told_by_its_form(tmp_path):
    """Counts of one asking, or what several draws showed."""
    made = make_history(tmp_path / "ws")
    once = {"cohort": "dev", "cases": 20, "runs": ["r1", "r2"], "gained": 3, "lost": 1}
    surplus = {"before": 2, "after": 5, "readings": 6, "interval": ["0.1", "0.8"]}
    drawn = {**once, "form": 2, "draws": 3, "harmed": ["edema sensitivity"]}
    for at, check in enumerate((once, {**drawn, "surplus": surplus}, drawn), 10):
        payload = {"parent_ref": "tiny@v3", "objections": ["-"], "check": check}
        made.record("draft_rejected", "tiny@draft:d1", payload, at=at)
    harm = "evidence of harm: edema sensitivity"
    facts = [one.facts for one in told(made).changes[-3:]]
    assert [one[-2] for one in facts] == [
        "checked on dev, 20 cases: 3 gained, 1 lost",
        "checked on dev, 20 cases, 3 draws: targeted cases right in 5 of 6 readings, "
        f"with the parent in 2; {harm}",
        f"checked on dev, 20 cases, 3 draws: {harm}",
    ]


def test_a_commit_says_in_which_roles_its_verdicts_were_given(tmp_path):
    """As far as it was recorded."""
    made = make_history(tmp_path / "ws")
    payload = {"digest": "0", "verdicts": ["x", "y", "z"]}
    payload["verdict_roles"] = {"editor": 1, "reviewer": 1}
    made.record("draft_committed", "tiny@v4", payload, at=10)
    facts = told(made).changes[-1].facts
    assert "3 verdicts (editor 1, reviewer 1)" in facts


def test_each_entry_says_what_stood_before_and_after(history):
    """Counts of what differs, scores, gates and aliases, each against the last."""
    changes = {one.entry.seq: one for one in told(history).changes}
    assert (changes[2].before, changes[2].after) == ("tiny@v1", "tiny@v2")
    assert changes[2].facts == ("+1 term", "2 verdicts")
    assert (changes[5].before, changes[5].after) == ("v1", "v2")
    assert (changes[9].before, changes[9].after) == (
        "macro-F1 0.5000",
        "macro-F1 0.7500",
    )
    assert (changes[10].before, changes[10].after) == ("1 of 2 pass", "2 of 2 pass")
    assert changes[10].facts == ("FAIL on dev", "FAIL to PASS: b")
    assert changes[11].objections == ("broke an anchor",)
    assert changes[12].objections == ("4 labels got worse",)
    assert changes[13].facts == ("held, opening 1 of 3",)
    assert [changes[n].facts for n in (14, 15)] == [("release tiny-v3",)] * 2


def test_a_prompt_has_only_its_own_history(history):
    """What happened to another prompt stands on its own page."""
    assert list_audited(history.audit()) == ("other", "tiny")
    assert [one.entry.seq for one in told(history, "other@v1").changes] == [16]
    assert told(history).aliases == {"production": "v3"}
    assert (told(history).versions, told(history).releases) == (3, 1)


def test_an_edited_version_is_not_diffed(history):
    """A difference to wording that was not committed would be a false before."""
    path = history.workspace.prompts / "tiny" / "v2" / "guides.yaml"
    path.write_text(path.read_text().replace("fluid", "water"))
    change = told(history).changes[1]
    assert "how they differ is not shown" in change.facts[0]
    assert "tiny@v2 has another wording" in change.doubts[0]


@pytest.mark.parametrize(
    "damage", [rmtree, lambda at: (at / "guides.yaml").write_text("- [")]
)
def test_a_version_that_cannot_be_read_ends_no_history(history, damage):
    """All other entries are still told."""
    whole = told(history).changes
    damage(history.workspace.prompts / "tiny" / "v2")
    changes = told(history).changes
    assert [one.entry for one in changes] == [one.entry for one in whole]
    assert "how they differ is not shown" in changes[1].facts[0]
    assert changes[0].facts == whole[0].facts


def test_the_page_is_whole_escaped_and_asks_for_nothing(history):
    """Reasons are typed by people: on the page they are text and nothing else."""
    html = page(history)
    parsed = outline(html)
    assert "<script" not in html
    assert not [attrs for tag, attrs in parsed.tags if tag in ("script", "link", "img")]
    assert HOSTILE in " ".join(parsed.words)
    assert "default-src 'none'" in html


def test_the_page_says_first_what_is_broken(history):
    """A reader must not find it below a clean history."""
    lines = history.lines()
    lines[1] = lines[1].replace(b'"why"', b'"hmm"')
    history.write(lines)
    words = " ".join(outline(page(history)).words)
    assert "First broken link:" in words
    assert words.index("line 2 was edited") < words.index("Version committed")


def test_a_signed_entry_says_whose_key(history):
    """Name, time and meaning belong to a signature that people can read."""
    make_key(history.workspace, ACTOR.name, "approver", ACTOR, now=clock(17))
    signer = Actor(name=ACTOR.name, role="approver", signer=_signer(history))
    history.record("alias_moved", "tiny@v1", {"alias": "x"}, actor=signer, at=18)
    assert told(history).changes[-1].signed == ACTOR.name
    assert "signed with the key of Dr A. Example" in page(history)


def _signer(history):
    return signer_for(history.workspace, ACTOR.name)


def test_the_page_claims_no_more_than_it_shows(history):
    """Words of approval are for people and authorities, not for a tool."""
    text = page(history).casefold()
    for word in ("compliant", "validated", "certified", "guarantee"):
        assert word not in text


def test_no_spreadsheet_runs_a_reason(history):
    """A cell that begins like a formula is written as text."""
    history.record("alias_moved", "tiny@v1", {"alias": "x"}, at=19, reason="=1+1")
    text = render_audit_csv(history.audit())
    rows = list(csv.DictReader(io.StringIO(text)))
    assert next(row["reason"] for row in rows if row["seq"] == "17") == "'=1+1"
    assert {row["row"] for row in rows} == {"entry", "finding"}
    assert sum(row["row"] == "entry" for row in rows) == 17


def test_the_data_hold_everything(history):
    """Whoever checks with a program of their own gets every entry and finding."""
    data = audit_data(history.audit())
    assert len(data["entries"]) == 16
    assert data["head"].startswith("16:")
    assert data["holds"] is False
    assert data["counts"]["broken"] == sum(
        one["severity"] == "broken" for one in data["findings"]
    )


def test_a_row_of_the_table_is_its_entry(history):
    """Whoever checks the chain in a spreadsheet needs every hash."""
    audit = history.audit()
    rows = list(csv.DictReader(io.StringIO(render_audit_csv(audit))))
    names = ("time", "actor", "role", "action", "subject", "reason", "meaning")
    for entry, row in zip(audit.entries, rows, strict=False):
        assert row["seq"] == str(entry.seq)
        assert row["hash"] == entry.hash
        assert {n: row[n] for n in names} == {n: getattr(entry, n) for n in names}
        assert json.loads(row["payload"]) == entry.payload
