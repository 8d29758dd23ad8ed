"""The change history: who, when, why, before and after; escaped, and no case text."""

import csv
import io
import json
from dataclasses import replace
from shutil import rmtree

import pytest

from loop.core.check_findings import broken, warning
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.prompts.catalog import read_folder, write_version
from loop.prompts.version import CallPlan
from loop.release.audit.audit import LedgerAudit
from loop.release.audit.chain import Ledger, LedgerLine, Trouble
from loop.release.audit.documents import audit_data, render_audit_csv, render_audit_html
from loop.release.audit.prompt_changes import (
    LedgerChange,
    concerns,
    list_audited,
    read_changes,
)
from loop.release.keys import make_key, signer_for
from tests.evaluate.test_evaluation_html import outline
from tests.release.audit.scenes import ACTOR, clock, entries_of, make_history

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


def told_by(tmp_path, *entries, prompt="tiny"):
    """Return the changes of a prompt by entries in no chain, with no version here."""
    lines = [LedgerLine(e.seq, e, e.hash, Trouble.NONE, True) for e in entries]
    ledger = Ledger(tmp_path / "ledger.jsonl", tuple(lines), True)
    audit = LedgerAudit(ledger=ledger, findings=(), time="2026-01-05T09:00:00Z")
    return read_changes(WorkspacePaths(tmp_path), audit, prompt)


FIRST = ("draft_committed", "tiny@v1", {"digest": "a"})


def change_of(tmp_path, action, payload, *before, subject="tiny@v1"):
    """Return how the last of some entries is told."""
    told = entries_of(FIRST, *before, (action, subject, payload))
    changes = told_by(tmp_path, *told).changes
    assert changes[-1].entry.action == action
    return changes[-1]


@pytest.mark.parametrize(
    ("action", "act", "tone", "payload", "facts"),
    [
        ("searched", "Searched by an optimizer", "plain", {}, ()),
        ("override", "Decided against objections", "stop", {}, ()),
        ("key_added", "key_added", "plain", {}, ()),
        (
            "discrimination_measured",
            "Held against injected errors",
            "plain",
            {"rule": "x"},
            (),
        ),
        (
            "holdout_opened",
            "Holdout opened",
            "open",
            {"cohort": "held", "number": 2, "budget": 3},
            ("held, opening 2 of 3",),
        ),
        ("holdout_opened", "Holdout opened", "open", {"cohort": "held"}, ("held",)),
        (
            "holdout_opened",
            "Holdout opened",
            "open",
            {"cohort": "held", "number": 2},
            ("held",),
        ),
        ("frozen", "Released", "release", {}, ("release tiny-v1",)),
        (
            "withdrawn",
            "Release withdrawn",
            "stop",
            {"release": "tiny-v9"},
            ("release tiny-v9",),
        ),
        (
            "exported",
            "Exported",
            "plain",
            {"target": "jinja", "files": 3, "digest": "d"},
            ("target: jinja, digest: d",),
        ),
        (
            "protocol_set",
            "Protocol registered",
            "plain",
            {
                "kappa": 0.6,
                "accuracy": 0.9,
                "rule": "lower",
                "no_finding": "derived",
                "uncertain_answers": "wrong",
                "digest": "d",
            },
            (
                "rule lower, accuracy 0.9, kappa 0.6, uncertain_answers wrong, "
                "no_finding derived",
            ),
        ),
        ("protocol_set", "Protocol registered", "plain", {}, ()),
    ],
)
def test_an_entry_that_changes_no_wording_is_told(
    tmp_path, action, act, tone, payload, facts
):
    """Its act, its tone, and what it names."""
    found = change_of(tmp_path, action, payload)
    assert found == LedgerChange(
        entry=found.entry, act=act, tone=tone, after="tiny@v1", facts=facts
    )


def test_a_kept_draft_is_told_with_its_parent(tmp_path):
    """And what stood against it, wherever that was written down."""
    payload = {"parent_ref": "tiny@v1", "objections": ["one", "two"]}
    found = change_of(tmp_path, "draft_rejected", payload, subject="tiny@draft:d")
    assert found == LedgerChange(
        entry=found.entry,
        act="Draft kept back",
        tone="kept",
        before="tiny@v1",
        after="tiny@draft:d",
        objections=("one", "two"),
    )


@pytest.mark.parametrize(
    ("payload", "objections"),
    [
        ({"override": {"overridden": ["a"]}, "objections": ["b"]}, ("a",)),
        ({"override": {"overridden": []}, "objections": ["b"]}, ("b",)),
        ({"override": "because", "overridden": ["c", 1]}, ("c", "1")),
        ({"objections": [], "overridden": ["c"]}, ("c",)),
        ({"objections": "none"}, ()),
        ({}, ()),
    ],
)
def test_objections_are_read_from_where_they_were_written(
    tmp_path, payload, objections
):
    """Overridden ones before those that were found."""
    assert change_of(tmp_path, "frozen", payload).objections == objections


@pytest.mark.parametrize(
    ("payload", "facts"),
    [
        ({}, ("first version",)),
        ({"verdicts": []}, ("first version",)),
        ({"verdicts": ["x"]}, ("first version", "1 verdict")),
        (
            {"verdicts": ["x", "y"], "verdict_roles": {"editor": 2}},
            ("first version", "2 verdicts (editor 2)"),
        ),
        ({"verdicts": 3, "check": {"cohort": "dev"}}, ("first version",)),
        (
            {"check": {"cohort": "dev", "cases": 9, "runs": [1, 2], "form": 1}},
            (
                "first version",
                "checked on dev, 9 cases: None gained, None lost",
                "runs 1, 2",
            ),
        ),
        (
            {
                "check": {
                    "cohort": "dev",
                    "cases": 9,
                    "runs": ["r"],
                    "form": 2,
                    "draws": 3,
                    "harmed": ["edema", "mass"],
                    "surplus": {"before": 1, "after": 4, "readings": 6},
                }
            },
            (
                "first version",
                "checked on dev, 9 cases, 3 draws: targeted cases right in 4 of 6 "
                "readings, with the parent in 1; evidence of harm: edema, mass",
                "runs r",
            ),
        ),
        (
            {"check": {"cohort": "dev", "cases": 9, "runs": ["r"], "form": 2}},
            (
                "first version",
                "checked on dev, 9 cases, None draws: evidence of harm: none",
                "runs r",
            ),
        ),
    ],
)
def test_a_commit_is_told_with_its_evidence(tmp_path, payload, facts):
    """Verdicts by role, and what the check of the draft found."""
    digest = {"digest": "z", "parent": None}
    found = change_of(tmp_path, "draft_committed", digest | payload, subject="tiny@v2")
    assert found == LedgerChange(
        entry=found.entry,
        act="Version committed",
        tone="commit",
        after="tiny@v2",
        facts=facts,
    )


def test_a_parent_is_the_last_version_before_with_its_digest(tmp_path):
    """Of the same prompt; not the version itself, nor one that came later."""
    told = entries_of(
        FIRST,
        ("draft_committed", "tiny@v2", {"digest": "a", "parent": "a"}),
        ("draft_committed", "other@v1", {"digest": "a", "parent": "a"}),
        ("draft_committed", "tiny@v3", {"digest": "b", "parent": "a"}),
        ("draft_committed", "tiny@v4", {"digest": "c", "parent": "d"}),
        ("draft_committed", "tiny@v5", {"digest": "d", "parent": "d"}),
    )
    found = told_by(tmp_path, *told)
    assert [one.before for one in found.changes] == ["", "tiny@v1", "tiny@v2", "", ""]
    assert (found.prompt, found.versions, found.releases) == ("tiny", 5, 0)


def test_scores_and_gates_are_held_against_the_last_on_the_cohort(tmp_path):
    """Each cohort has its own; the first has nothing before it."""

    def scored(cohort, score, run, subject="tiny@v1"):
        told = {"cohort": cohort, "cases": 20, "reference": 2, "run": run}
        return ("evaluated", subject, told | ({"macro_f1": score} if score else {}))

    def gated(cohort, **labels):
        told = {"cohort": cohort, "labels": labels, "verdict": "FAIL"}
        return ("gate_decided", "tiny@v1", told)

    told = entries_of(
        FIRST,
        scored("dev", "0.5", "r1"),
        scored("held", None, "r2"),
        scored("dev", "0.7", "r3", "tiny@v2"),
        scored("dev", "0.6", "r4"),
        gated("dev", a="PASS", b="FAIL", c="FAIL"),
        gated("held", a="FAIL"),
        gated("dev", a="FAIL", b="PASS", c="PASS", d="PASS"),
        ("gate_decided", "tiny@v1", {"cohort": "dev", "labels": 3, "verdict": "X"}),
    )
    found = told_by(tmp_path, *told).changes[1:]
    assert [(one.before, one.after, one.facts) for one in found] == [
        ("", "macro-F1 0.5", ("dev, 20 cases, reference v2", "run r1")),
        ("", "macro-F1 not recorded", ("held, 20 cases, reference v2", "run r2")),
        (
            "macro-F1 0.5",
            "macro-F1 0.7",
            ("dev, 20 cases, reference v2", "run r3", "before: tiny@v1"),
        ),
        (
            "macro-F1 0.7",
            "macro-F1 0.6",
            ("dev, 20 cases, reference v2", "run r4", "before: tiny@v2"),
        ),
        ("", "1 of 3 pass", ("FAIL on dev",)),
        ("", "0 of 1 pass", ("FAIL on held",)),
        (
            "1 of 3 pass",
            "3 of 4 pass",
            ("FAIL on dev", "PASS to FAIL: a", "FAIL to PASS: b, c"),
        ),
        ("3 of 4 pass", "0 of 0 pass", ("X on dev",)),
    ]
    assert {(one.act, one.tone) for one in found} == {
        ("Evaluated", "plain"),
        ("Gates decided", "plain"),
    }


def test_aliases_are_told_from_where_to_where(tmp_path):
    """Each by its name, and where all are in the end."""
    told = entries_of(
        FIRST,
        ("alias_moved", "tiny@v1", {"alias": "live"}),
        ("alias_moved", "tiny@v2", {"alias": "test"}),
        ("alias_moved", "other@v9", {"alias": "live"}),
        ("alias_moved", "tiny@v3", {"alias": "live"}),
    )
    found = told_by(tmp_path, *told)
    assert [(one.before, one.after, one.facts) for one in found.changes[1:]] == [
        ("", "v1", ("alias live",)),
        ("", "v2", ("alias test",)),
        ("v1", "v3", ("alias live",)),
    ]
    assert found.aliases == {"live": "v3", "test": "v2"}
    assert told_by(tmp_path, *entries_of(FIRST)).aliases == {}


@pytest.mark.parametrize(
    ("action", "subject", "payload", "belongs"),
    [
        ("protocol_set", "labels/protocol.yaml", {}, True),
        ("evaluated", "tiny@v1", {}, True),
        ("evaluated", "tiny2@v1", {}, False),
        ("holdout_opened", "held", {"prompt": "tiny@v1"}, True),
        ("holdout_opened", "held", {"prompt": "other@v1"}, False),
        ("frozen", "x", {"release": "tiny-v1"}, True),
        ("withdrawn", "x", {"release": "tiny-v1"}, True),
        ("exported", "x", {"release": "tiny-v1"}, False),
        ("frozen", "x", {"release": "tiny-v1-v2"}, False),
    ],
)
def test_an_entry_belongs_to_the_prompt_it_speaks_of(action, subject, payload, belongs):
    """By its subject, its prompt or its release; a protocol belongs to all."""
    (entry,) = entries_of((action, subject, payload))
    assert concerns(entry, "tiny") is belongs


def test_a_prompt_that_the_ledger_never_heard_of_is_refused(tmp_path):
    """With those it knows, each once; a draft alone makes none known."""
    told = entries_of(
        ("draft_committed", "zeta@v1", {}),
        FIRST,
        FIRST,
        ("draft_rejected", "draft@draft:x", {}),
    )
    with pytest.raises(DataError, match=r"'draft' \(known: tiny, zeta\)\. Correct"):
        told_by(tmp_path, *told, prompt="draft")
    with pytest.raises(DataError, match=r"'tiny' \(known: none\)\. Correct the name"):
        told_by(tmp_path)


def test_a_fact_that_the_reason_says_is_not_repeated(tmp_path):
    """The reason stands beside it; empty facts are left out."""
    (entry,) = entries_of(("frozen", "tiny@v1", {}))
    said = replace(entry, seq=2, reason="as release tiny-v1, after all", hash="x")
    found = told_by(tmp_path, *entries_of(FIRST), said)
    assert found.changes[-1].facts == ()
    assert found.releases == 1
    longer = replace(said, reason="as release tiny-v10, or prerelease tiny-v1")
    found = told_by(tmp_path, *entries_of(FIRST), longer)
    assert found.changes[-1].facts == ("release tiny-v1",)


def test_only_what_is_broken_about_an_entry_is_a_doubt(tmp_path):
    """Each finding stands beside its entry, in the order in which it was found."""
    told = entries_of(FIRST, ("evaluated", "tiny@v1", {}))
    lines = [LedgerLine(e.seq, e, e.hash, Trouble.NONE, True) for e in told]
    audit = LedgerAudit(
        ledger=Ledger(tmp_path / "ledger.jsonl", tuple(lines), True),
        findings=(
            broken("x", "of the whole"),
            broken("x", "first", seq=2),
            warning("x", "a warning", seq=2),
            broken("y", "second", seq=2),
        ),
        time="2026-01-05T09:00:00Z",
    )
    changes = read_changes(WorkspacePaths(tmp_path), audit, "tiny").changes
    assert [one.doubts for one in changes] == [(), ("first", "second")]


def test_versions_that_differ_are_told_by_kind(tmp_path):
    """Counts with their signs; a setting by what it became; the same wording so."""
    made = make_history(tmp_path / "ws")
    last, _ = read_folder(made.workspace.prompts / "tiny" / "v3")
    same = replace(last, number=4, parent=last.digest, why="the same")
    other = replace(
        same,
        number=5,
        system="Look.\nRead.\n",
        guides=(replace(last.guides[0], terms=("effusion",), exclusions=("no",)),),
        plan=CallPlan.PER_LABEL,
    )
    for one in (same, other):
        digest = write_version(made.workspace, one).digest
        payload = {"digest": digest, "parent": one.parent}
        made.record("draft_committed", one.ref, payload)
    facts = [one.facts for one in told(made).changes if one.act == "Version committed"]
    assert facts[3] == ("the same wording",)
    assert facts[4] == (
        f"plan {CallPlan.PER_LABEL.value}, -2 terms, +1 exclusion, +1 instruction line",
    )
