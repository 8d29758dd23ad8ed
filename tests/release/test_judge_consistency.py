"""A release of a judge that was signed, and does not follow from its own rows."""

from copy import deepcopy

import pytest

from loop.core.errors import DataError
from loop.judge.rated_rows import RatedRow, digest_rows, in_row_order
from loop.release.facts import FACTS
from loop.release.folder import read_contents
from loop.release.judge_consistency import (
    check_judge_claim,
    check_judge_numbers,
    check_rows,
    parse_rows,
    rows_table,
)
from loop.release.judge_facts import JudgeReleaseFacts
from loop.release.release_json import format_facts, parse_facts
from loop.release.verify import verify_contents, verify_folder


@pytest.fixture
def honest(judge_release):
    """Return the facts and the rows of a release that holds."""
    _, found = judge_release
    return found.facts, (found.folder / "rows.csv").read_bytes()


def changed(facts, path, value):
    """Return facts that say `value` at `path`."""
    copy = deepcopy(facts.model_dump())
    place = copy
    for step in path[:-1]:
        place = place[step]
    assert place[path[-1]] != value
    place[path[-1]] = value
    return JudgeReleaseFacts.model_validate(copy)


def with_rows(facts, rows, cohort=1):
    """Return facts that name other rows, with their digest."""
    name = facts.evaluations[cohort].cohort
    facts = changed(facts, ("evaluations", cohort, "rows_digest"), digest_rows(rows))
    if len(rows) != facts.evaluations[cohort].rows:
        facts = changed(facts, ("evaluations", cohort, "rows"), len(rows))
    return facts, name


def said(findings):
    """Return what is broken, as one text."""
    return " ".join(one.what for one in findings if not one.holds)


def test_what_was_released_follows_from_its_rows(honest):
    """The agreement to the last digit, and every check of the gate."""
    facts, raw = honest
    assert said(check_judge_numbers(facts, raw)) == ""
    assert check_judge_claim(facts).holds
    assert check_rows(raw, facts).holds
    assert parse_facts(format_facts(facts)) == facts


def test_a_row_that_was_changed_and_signed_again_is_noticed(honest):
    """Its digests agree; tau-b does not follow from it, nor does the gate."""
    facts, raw = honest
    tables = parse_rows(raw)
    rows = list(tables["rp_test"])
    lowest, best = rows[0], rows[-1]
    rows[0] = lowest._replace(score=best.score)
    rows[-1] = best._replace(score=lowest.score)
    rows = in_row_order(rows)
    forged, name = with_rows(facts, rows)
    raw = rows_table([("rp", tables["rp"]), (name, rows)])
    assert check_rows(raw, forged).holds
    found = said(check_judge_numbers(forged, raw))
    assert "tau-b is not what its rows give" in found
    assert "the gate says PASS, its rows and counts give" in found


def test_a_row_more_is_noticed(honest):
    """So that nobody adds the pairs that were missing."""
    facts, raw = honest
    tables = parse_rows(raw)
    rows = in_row_order((*tables["rp_test"], RatedRow(8, 1.0, 5.0)))
    forged, name = with_rows(facts, rows)
    raw = rows_table([("rp", tables["rp"]), (name, rows)])
    found = said(check_judge_numbers(forged, raw))
    assert "more pairs were rated than there are" in found
    assert "its rows are others" in found


EVALUATION = ("evaluations", 1)


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        ((*EVALUATION, "agreement", "tau_b", "value"), 0.99, "tau-b is not what"),
        ((*EVALUATION, "agreement", "tau_b", "low"), 0.9, "tau-b: its interval"),
        ((*EVALUATION, "agreement", "pearson", "high"), 1.0, "Pearson's coefficient"),
        ((*EVALUATION, "agreement", "n"), 7, "its rows are others"),
        ((*EVALUATION, "gate", 2, "observed"), 0.99, "not the numbers"),
        ((*EVALUATION, "gate", 2, "threshold"), 0.1, "not the numbers"),
        ((*EVALUATION, "gate", 2, "verdict"), "FAIL", "the gate says FAIL"),
        ((*EVALUATION, "gate", 0, "aspect"), "units", "other checks than the protocol"),
        ((*EVALUATION, "verdict"), "FAIL", "the verdict is FAIL, its gate gives PASS"),
        ((*EVALUATION, "statuses", "answered"), 7, "do not add up to the pairs"),
        ((*EVALUATION, "errors", 0, "tp"), 9.0, "the digest of the counts of errors"),
        ((*EVALUATION, "errors", 2, "fn"), 9.0, "omissions: F1 is not what its counts"),
        ((*EVALUATION, "floors", 0, "f1", "value"), 0.41, "is not the one counted"),
        ((*EVALUATION, "copies", "best"), 1, "the gate says PASS"),
        ((*EVALUATION, "copies", "best"), 9, "more copies than there are"),
        (("score", "name"), "green", "its score is not the one of the protocol"),
        (("score", "name"), "zebra", "its score is not one that ranloop knows"),
    ],
)
def test_a_number_that_does_not_follow_is_named(honest, path, value, what):
    """Which check finds it, in words."""
    facts, raw = honest
    assert what in said(check_judge_numbers(changed(facts, path, value), raw))


def test_a_claim_is_that_of_its_gate(honest):
    """Nothing passes without its override."""
    facts, _ = honest
    other = changed(facts, ("claim", "verdict"), "FAIL")
    assert "the gate gives PASS" in check_judge_claim(other).what
    assert "no override says why" in check_judge_claim(other).what
    dev = changed(facts, ("claim", "cohort"), "rp")
    assert "it is not about the holdout" in check_judge_claim(dev).what
    nowhere = changed(facts, ("claim", "cohort"), "elsewhere")
    assert "a cohort without an evaluation" in check_judge_claim(nowhere).what
    odd = changed(facts, (*EVALUATION, "suspicious"), ["too good"])
    assert "suspicious, and no override answers it" in check_judge_claim(odd).what


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"cohort,unit", b"unit,cohort"),
        (b"\r\n", b"\n"),
        (b"rp,1,", b"rp,one,"),
        (b"rp,1,", b"rp,1,nan,"),
        (b"rp_test,1,", b"rp_best,1,"),
        (b",5.0\r\n", b",5\r\n"),
        (b",5.0\r\n", b",inf\r\n"),
        (b",5.0\r\n", b",\r\n"),
        (b",5.0\r\n", b",4.0\r\n"),
    ],
)
def test_a_table_that_is_not_the_one_named_is_refused(honest, old, new):
    """Other bytes, other cells, or cells that are no numbers."""
    facts, raw = honest
    assert old in raw
    assert not check_rows(raw.replace(old, new), facts).holds


def test_rows_in_another_order_are_refused(honest):
    """The one order says nothing of the cases; another one could."""
    facts, raw = honest
    tables = parse_rows(raw)
    rows = (*tables["rp_test"][1:], tables["rp_test"][0])
    forged, name = with_rows(facts, rows)
    found = check_rows(rows_table([("rp", tables["rp"]), (name, rows)]), forged)
    assert "not in their one order" in found.what


def test_a_table_of_too_many_rows_is_refused(monkeypatch):
    """Agreement takes the square of them; just the most are read."""
    monkeypatch.setattr("loop.release.judge_consistency.MOST_ROWS", 2)
    most = (RatedRow(1, 1.0, 1.0),) * 2
    assert parse_rows(rows_table([("a", list(most))])) == {"a": most}
    with pytest.raises(DataError, match="not a table as ranloop writes it"):
        parse_rows(rows_table([("a", [RatedRow(1, 1.0, 1.0)] * 3)]))


def test_hostile_bytes_end_in_findings(judge_release, tmp_path):
    """Whatever the table holds, every check is made and none fails to say so."""
    ready, found = judge_release
    contents = read_contents(found.folder)
    for raw in (b"", b"\xff", b"cohort,unit,score,points\r\n", b'"' * 10):
        files = {**contents.files, "rows.csv": raw}
        result = verify_contents(
            contents._replace(files=files), {ready.key.keyid: ready.key}
        )
        broken = {one.check for one in result.broken}
        assert {"files", "rows.csv"} <= broken
    files = {**contents.files, FACTS: b'{"format": "ranloop-release/3"}\n'}
    result = verify_contents(contents._replace(files=files), {})
    assert result.facts is None
    assert "rows.csv" in {one.check for one in result.broken}
    assert verify_folder(found.folder, {ready.key.keyid: ready.key}).holds


def test_another_claim_than_the_registered_one_is_noticed(judge_release):
    """Whoever lowers the bar afterwards is told by the ledger that is shipped."""
    ready, found = judge_release
    contents = read_contents(found.folder)
    trusted = {ready.key.keyid: ready.key}
    path = ("protocol", "content", "judging", "threshold")
    lower = format_facts(changed(found.facts, path, 0.4))
    files = {**contents.files, FACTS: lower}
    result = verify_contents(contents._replace(files=files), trusted)
    (history,) = (one for one in result.findings if one.check == "history")
    assert "registered with another claim of judges" in history.what
