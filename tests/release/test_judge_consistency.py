"""A release of a judge that was signed, and does not follow from its own rows."""

from copy import deepcopy
from types import SimpleNamespace

import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from loop.core.errors import DataError
from loop.evaluate.gates import GateVerdict
from loop.evaluate.protocol import JudgingRules
from loop.judge.rated_rows import (
    RatedRow,
    digest_error_counts,
    digest_rows,
    in_row_order,
)
from loop.release.facts import FACTS
from loop.release.folder import read_contents
from loop.release.judge_consistency import (
    _encloses,
    _error_problems,
    _gate_problems,
    _whole_problems,
    agree_again,
    check_ensembles,
    check_judge_claim,
    check_judge_numbers,
    check_rows,
    decide_again,
    parse_rows,
    rows_table,
)
from loop.release.judge_facts import (
    CheckFacts,
    ErrorFacts,
    EstimateFacts,
    FloorFacts,
    JudgeReleaseFacts,
)
from loop.release.release_json import format_facts, parse_facts
from loop.release.verify import verify_contents, verify_folder
from loop.score.metrics.base import Direction


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


@pytest.mark.parametrize(
    "reads",
    [
        lambda ref, digest: [],
        lambda ref, digest: [{"ref": "extractor@v1", "digest": digest}],
        lambda ref, digest: [{"ref": ref, "digest": "f" * 64}],
        lambda ref, digest: [{"ref": ref, "digest": digest}] * 2,
    ],
)
def test_another_extractor_than_the_prompt_reads_is_noticed(judge_release, reads):
    """What a judge finds depends on it; its prompt names it by digest."""
    ready, found = judge_release
    contents = read_contents(found.folder)
    (one,) = found.facts.reads
    facts = changed(found.facts, ("reads",), reads(one.ref, one.digest))
    files = {**contents.files, FACTS: format_facts(facts)}
    result = verify_contents(
        contents._replace(files=files), {ready.key.keyid: ready.key}
    )
    (prompt,) = (one for one in result.findings if one.check == "prompt")
    assert prompt.what == "what the prompt reads is not what release.json names"


def estimate(value, low=None, high=None):
    """Return a number with its limits."""
    return EstimateFacts(value=value, low=low, high=high, note="")


def test_a_table_is_written_and_read_back_to_the_last_digit():
    """Missing scores stay missing; the parent has a column where it is compared."""
    rows = [RatedRow(1, 1 / 3, -2.0), RatedRow(1, None, 0.1), RatedRow(2, 1e-17, 5.0)]
    raw = rows_table([("b", rows), ("a", rows[:1])])
    assert raw == (
        b"cohort,unit,score,points\r\n"
        b"b,1,0.3333333333333333,-2.0\r\n"
        b"b,1,,0.1\r\n"
        b"b,2,1e-17,5.0\r\n"
        b"a,1,0.3333333333333333,-2.0\r\n"
    )
    assert parse_rows(raw) == {"b": tuple(rows), "a": (rows[0],)}
    with_parent = [rows[0], RatedRow(2, 0.5, 4.0, 0.25)]
    raw = rows_table([("a", with_parent)])
    assert raw == (
        b"cohort,unit,score,points,parent_score\r\n"
        b"a,1,0.3333333333333333,-2.0,\r\n"
        b"a,2,0.5,4.0,0.25\r\n"
    )
    assert parse_rows(raw) == {"a": tuple(with_parent)}
    assert parse_rows(rows_table([])) == {}


@pytest.mark.parametrize(
    "line",
    [
        b"a,1,0.5",
        b"a,1,0.5,1.0,0.5",
        b"a,x,0.5,1.0",
        b"a,1.5,0.5,1.0",
        b"a,1,x,1.0",
        b"a,1,0.5,",
        b"a,1,nan,1.0",
        b"a,1,0.5,inf",
        b'a,1,"0.5,1.0',
    ],
)
def test_a_line_that_is_no_row_is_refused(line):
    """Each cell must be a number that is one; the points must be there."""
    good = b"cohort,unit,score,points\r\na,1,0.5,1.0\r\n"
    assert parse_rows(good) == {"a": (RatedRow(1, 0.5, 1.0),)}
    with pytest.raises(DataError, match="is not a table as ranloop writes it"):
        parse_rows(good + line + b"\r\n")


def counted(**changes):
    """Return what is counted of an evaluation, all of it possible."""
    told = {"answered": 7, "unparsed": 1} | changes.pop("statuses", {})
    copies = {"pairs": 3, "best": 2, "unanswered": 1} | changes.pop("copies", {})
    found = {"cases": 8, "rows": 8} | changes
    return SimpleNamespace(statuses=told, copies=SimpleNamespace(**copies), **found)


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({}, []),
        ({"rows": 7}, []),
        ({"cases": 9}, ["the outcomes do not add up to the pairs"]),
        ({"statuses": {"answered": 6}}, ["the outcomes do not add up to the pairs"]),
        ({"rows": 9}, ["more pairs were rated than there are"]),
        ({"copies": {"pairs": 4}}, []),
        (
            {"copies": {"pairs": 2}},
            ["the copy test counts more copies than there are"],
        ),
        (
            {"cases": 7, "rows": 8, "copies": {"best": 3}},
            [
                "the outcomes do not add up to the pairs",
                "more pairs were rated than there are",
                "the copy test counts more copies than there are",
            ],
        ),
    ],
)
def test_counts_of_an_evaluation_are_possible(changes, problems):
    """All that there is may be rated and copied, and no more."""
    assert list(_whole_problems(counted(**changes))) == problems


@pytest.mark.parametrize(
    ("value", "low", "high", "within"),
    [
        (0.5, None, None, True),
        (None, None, None, True),
        (0.5, 0.4, 0.6, True),
        # By resampling, a value may lie outside its own interval.
        (0.9, 0.4, 0.6, True),
        (0.5, 0.0, 1.0, True),
        (0.5, 0.5, 0.5, True),
        (None, -3.0, 4.0, True),
        (0.5, 0.4, None, False),
        (0.5, None, 0.6, False),
        (0.5, 0.6, 0.4, False),
        (None, 0.6, 0.4, False),
        (0.5, -0.1, 0.6, False),
        (0.5, 0.4, 1.1, False),
    ],
)
def test_limits_stand_in_order_and_within_their_range(value, low, high, within):
    """Both or neither."""
    assert _encloses(estimate(value, low, high)) is within


def error(name, tp, fp, fn, f1, limits=(None, None)):
    """Return what is said of one kind of error."""
    return ErrorFacts(
        name=name,
        categories=[name],
        n=8,
        tp=tp,
        fp=fp,
        fn=fn,
        f1=estimate(f1, *limits),
        two_raters=None,
    )


def errors_said(*errors, floors=(), digest=None):
    """Return what is wrong with kinds of errors and the floors of the gate."""
    made = digest_error_counts(one.counted for one in errors)
    said = SimpleNamespace(
        errors=list(errors),
        counts_digest=digest or made,
        floors=[FloorFacts(group=group, f1=f1) for group, f1 in floors],
    )
    return list(_error_problems(said))


def test_f1_of_errors_follows_from_their_counts():
    """Twice the hits, of these and the misses of both sides; nothing of nothing."""
    assert errors_said(error("a", 2, 1, 3, 0.5), error("b", 0, 0, 0, None)) == []
    assert errors_said(error("a", 2.5, 0.5, 1.5, 5 / 7), error("b", 0, 1, 0, 0)) == []
    wrong = "{}: F1 is not what its counts give"
    assert errors_said(
        error("a", 2, 1, 3, 0.51), error("b", 0, 0, 0, 0), error("c", 2, 1, 3, None)
    ) == [wrong.format(one) for one in "abc"]
    # Counts below zero may give the same F1.
    assert errors_said(error("a", 2, -1, 5, 0.5), error("b", 2, 5, -1, 0.5)) == [
        wrong.format("a"),
        wrong.format("b"),
    ]
    assert errors_said(error("a", 2, 1, 3, 0.5, (0.6, 0.4))) == [
        "a: F1 lies outside its interval"
    ]
    assert errors_said(error("a", 2, 1, 3, 0.5), digest="f" * 64) == [
        "the digest of the counts of errors is not theirs"
    ]


def test_a_floor_is_held_by_the_f1_that_was_counted():
    """Of its group, which is named in the plural."""
    omissions = error("omissions", 2, 1, 3, 0.5)
    predictions = error("false predictions", 1, 0, 0, 1.0)
    both = (omissions, predictions)
    held = [("omission", estimate(0.5, 0.2, 0.8)), ("false_prediction", estimate(1.0))]
    assert errors_said(*both, floors=held) == []
    assert errors_said(omissions, floors=held) == [
        "the F1 of false_prediction in the gate is not the one counted"
    ]
    other = [("omission", estimate(0.6, 0.8, 0.2))]
    assert errors_said(*both, floors=other) == [
        "the F1 of omission in the gate is not the one counted",
        "the F1 of omission lies outside its limits",
    ]


def check(aspect="agreement", verdict="PASS", observed=0.5, **more):
    """Return one line of a gate."""
    told = {"limit": 0.4, "threshold": 0.3, "reason": "", "needs": ""} | more
    return CheckFacts(
        aspect=aspect, what=aspect, verdict=verdict, observed=observed, **told
    )


def gate_said(said, made, verdict="PASS"):
    """Return what is wrong with a gate beside the one that is made again."""
    gate = SimpleNamespace(checks=[one.check for one in made])
    facts = SimpleNamespace(gate=said, verdict=GateVerdict(verdict))
    return list(_gate_problems(facts, gate))


def test_a_gate_has_the_checks_verdicts_and_numbers_that_its_rows_give():
    """Each line by itself, and the verdict of them all."""
    two = [check(), check("units", observed=7)]
    assert gate_said(two, two) == []
    # What is said in words is no number.
    assert gate_said(two, [check(reason="x", needs="y"), two[1]]) == []
    assert gate_said(two, two[::-1]) == ["its gate has other checks than the protocol"]
    assert gate_said(two, two[:1]) == ["its gate has other checks than the protocol"]
    numbers = "agreement: not the numbers that its rows and counts give"
    for name, value in (
        ("observed", 0.6),
        ("limit", None),
        ("limit", 0.41),
        ("threshold", 0.31),
    ):
        assert gate_said(two, [check(**{name: value}), two[1]]) == [numbers], name
    failed = check("units", "FAIL", 7)
    assert gate_said([two[0], failed], [check(observed=0.6), two[1]], "FAIL") == [
        numbers,
        "units: the gate says FAIL, its rows and counts give PASS",
    ]
    assert gate_said(two, two, "FAIL") == ["the verdict is FAIL, its gate gives PASS"]
    assert gate_said([two[0], failed], [two[0], failed]) == [
        "the verdict is PASS, its gate gives FAIL"
    ]


@pytest.mark.parametrize("direction", list(Direction)[:2])
def test_the_agreement_of_rows_is_that_of_scipy(direction):
    """Turned where less is better; of the rows that have a score."""
    scores = (0.1, None, 0.9, 0.4, 0.4)
    points = (1.0, 2.0, 5.0, 1.5, 3.0)
    rows = tuple(
        RatedRow(n, score, given)
        for n, (score, given) in enumerate(zip(scores, points, strict=True), 1)
    )
    how = SimpleNamespace(resamples=20, seed=0)
    found = agree_again(how, rows, direction)
    kept = [(s, p) for s, p in zip(scores, points, strict=True) if s is not None]
    sign = -1 if direction is Direction.LOWER else 1
    x, y = [sign * one for one, _ in kept], [one for _, one in kept]
    assert found.tau_b.value == pytest.approx(kendalltau(x, y).statistic)
    assert found.spearman.value == pytest.approx(spearmanr(x, y).statistic)
    assert found.pearson.value == pytest.approx(pearsonr(x, y).statistic)
    assert (found.n, found.n_units) == (4, 4)
    assert agree_again(how, rows[:2], direction) is None
    assert agree_again(how, (), direction) is None
    assert agree_again(how, rows[:3], direction).n == 2


def rows_said(tables, *evaluations, raw=None):
    """Return what is said of a table beside the rows that evaluations name."""
    made = [
        SimpleNamespace(
            cohort=cohort,
            rows=len(rows) if number is None else number,
            rows_digest=digest or digest_rows(rows),
        )
        for cohort, rows, number, digest in evaluations
    ]
    facts = SimpleNamespace(evaluations=made)
    found = check_rows(rows_table(tables) if raw is None else raw, facts)
    return found.holds, found.what


def test_a_table_has_the_rows_that_are_named():
    """In their order, as many, with their digest, and written in one way."""
    one = (RatedRow(1, 0.1, 1.0), RatedRow(2, 0.2, 2.0))
    two = (RatedRow(1, 0.3, 3.0),)
    tables = [("a", one), ("b", two)]
    first, second = ("a", one, None, ""), ("b", two, None, "")
    assert rows_said(tables, first, second) == (
        True,
        "3 rows, as named in release.json",
    )
    # A cohort of which nobody rated a pair has no row.
    assert rows_said(tables, first, second, ("c", (), None, ""))[0]
    order = "its cohorts are not those of the evaluations, in their order"
    assert rows_said(tables, second, first) == (False, order)
    assert rows_said(tables, first) == (False, order)
    assert rows_said(tables, first, ("b", two, 2, "")) == (
        False,
        "b: 1 rows, release.json names 2",
    )
    assert rows_said(tables, ("a", one, None, "f" * 64), ("b", two, 4, "")) == (
        False,
        "a: its rows are not those of release.json; b: 1 rows, release.json names 4",
    )
    turned = [("a", one[::-1]), ("b", two)]
    assert rows_said(turned, ("a", one[::-1], None, ""), second) == (
        False,
        "a: its rows are not in their one order",
    )
    loose = rows_table(tables).replace(b"0.3,3.0", b"0.30,3.0")
    assert rows_said(tables, first, second, raw=loose) == (
        False,
        "its cells are right, and not written as ranloop writes them",
    )
    assert check_rows(None, SimpleNamespace(evaluations=[])).what == (
        "not checked: it is missing"
    )


def claim_said(verdict="PASS", cohort="held", gate="PASS", suspicious=(), override=""):
    """Return what is said of a claim beside the evaluation that it is of."""
    told = [
        SimpleNamespace(
            cohort=name, role=role, verdict=GateVerdict(made), suspicious=list(odd)
        )
        for name, role, made, odd in (
            ("dev", "dev", "FAIL", ()),
            ("held", "holdout", gate, suspicious),
        )
    ]
    facts = SimpleNamespace(
        claim=SimpleNamespace(
            kind="judging", verdict=GateVerdict(verdict), cohort=cohort
        ),
        evaluations=told,
        frozen=SimpleNamespace(override=override, objections=[]),
        development_only=False,
    )
    found = check_judge_claim(facts)
    return found.holds, found.what


def test_a_claim_is_of_its_cohort_and_its_gate():
    """What is suspicious needs an override, and what fails another."""
    assert claim_said() == (True, "judging on held: PASS")
    assert claim_said(gate="FAIL") == (
        False,
        "its verdict is PASS, the gate gives FAIL",
    )
    odd = "a number is suspicious, and no override answers it"
    assert claim_said(suspicious=["tau-b"]) == (False, odd)
    assert claim_said(suspicious=["tau-b"], override=" ") == (False, odd)
    assert claim_said(suspicious=["tau-b"], override="known")[0]
    assert claim_said("FAIL", gate="FAIL", override="known") == (
        True,
        "judging on held: FAIL",
    )
    assert claim_said(cohort="other") == (
        False,
        "a holdout was evaluated, and it is not about the holdout; it is about a "
        "cohort without an evaluation",
    )


def ensembles_said(files, *refs):
    """Return what is said of ensembles by the files that are there."""
    named = [SimpleNamespace(ref=ref) for ref in refs]
    found = check_ensembles(files, SimpleNamespace(ensembles=named))
    return [(one.check, one.holds, one.what) for one in found]


def test_files_of_ensembles_are_those_that_are_named(monkeypatch):
    """Each of them there, read, and of no more rows than are fitted again."""
    monkeypatch.setattr("loop.release.judge_consistency.MOST_ROWS", 2)
    assert ensembles_said({"card.md": b""}) == []
    stray = {"ensembles/x-v1.csv": b"", "ensembles/a-v1.csv": b"", "card.md": b""}
    assert ensembles_said(stray) == [
        (
            "ensembles",
            False,
            "ensembles/a-v1.csv is not named in release.json; ensembles/x-v1.csv is "
            "not named in release.json",
        )
    ]
    both = {"ensembles/a-v1.yaml": b"[", "ensembles/a-v1.csv": b"x\ny\n"}
    for gone in both:
        less = {name: raw for name, raw in both.items() if name != gone}
        assert ensembles_said(less, "a@v1") == [
            ("ensembles", False, "a@v1: a file of it is missing")
        ]
    unread = "a@v1: its files cannot be read, or are not of one ensemble"
    assert ensembles_said(both, "a@v1") == [("ensembles", False, unread)]
    many = both | {"ensembles/a-v1.csv": b"x\ny\nz\n"}
    assert ensembles_said(many, "a@v1") == [
        ("ensembles", False, "a@v1: it has more than 2 rows")
    ]


def decided(**changes):
    """Return the gate of six rows, decided again, aspect by aspect."""
    rows = tuple(RatedRow(n, n / 6, float(n)) for n in range(1, 7))
    told = {
        "statuses": {"answered": 6, "unparsed": 2},
        "cases": 8,
        "copies": SimpleNamespace(pairs=4, best=3, unanswered=0),
        "gate": [],
        "floors": [FloorFacts(group="omission", f1=estimate(0.5, 0.3, 0.7))],
        "resamples": 20,
        "seed": 0,
    } | changes
    rules = JudgingRules(
        score="own",
        threshold=0.5,
        min_units=6,
        max_unanswered=0.25,
        f1_floors={"omission": 0.4},
    )
    gate = decide_again(SimpleNamespace(**told), rows, rules, 0.95)
    return {one.aspect.value: one for one in gate.checks}


def test_a_gate_is_decided_again_from_all_that_is_shipped():
    """What was answered, how many units there are, the copies and the floors."""
    found = decided()
    assert list(found) == ["answers", "units", "agreement", "F1", "copy test"]
    # Two of eight were not answered, which is just as many as may be.
    assert (found["answers"].observed, found["answers"].verdict) == (
        0.25,
        GateVerdict.PASS,
    )
    assert (found["units"].observed, found["units"].verdict) == (6, GateVerdict.PASS)
    assert found["agreement"].observed == pytest.approx(1.0)
    assert found["F1"].observed == 0.5
    assert found["copy test"].observed == pytest.approx(3 / 4)
    assert found["copy test"].verdict is GateVerdict.FAIL
    more = decided(statuses={"answered": 5, "unparsed": 3})
    assert more["answers"].observed == pytest.approx(3 / 8)
    assert more["answers"].verdict is not GateVerdict.PASS
    none = decided(statuses={}, cases=0)["answers"]
    assert none.observed == 1.0
    one = decided(statuses={"answered": 1}, cases=1)["answers"]
    assert one.observed == 0.0
    silent = SimpleNamespace(pairs=4, best=3, unanswered=1)
    assert decided(copies=silent)["copy test"].verdict is GateVerdict.INSUFFICIENT
    nothing = SimpleNamespace(pairs=0, best=0, unanswered=0)
    assert decided(copies=nothing).get("copy test") != found["copy test"]


def numbers_said(content, score="own", raw=b"cohort,unit,score,points\r\n"):
    """Return what stops the numbers from being made again."""
    facts = SimpleNamespace(
        protocol=SimpleNamespace(content=content),
        score=SimpleNamespace(name=score),
        evaluations=[],
    )
    return [(one.check, one.what) for one in check_judge_numbers(facts, raw)]


def test_numbers_that_cannot_be_made_again_say_why():
    """No protocol, no table, no claim, or another score than is claimed."""
    claim = {"judging": {"score": "own", "threshold": 0.5}}
    assert numbers_said(claim) == []
    assert numbers_said({}) == [
        ("numbers", "the protocol claims nothing of judges"),
    ]
    assert numbers_said(claim, score="green") == [
        ("numbers", "its score is not the one of the protocol"),
    ]
    assert numbers_said(claim, score="zebra") == [
        ("numbers", "its score is not one that ranloop knows"),
    ]
    ((check, said),) = numbers_said({"judging": 3})
    assert check == "numbers" and "protocol.content of release.json" in said
    for raw in (None, b"", b"\xff"):
        ((check, said),) = numbers_said(claim, raw=raw)
        assert check == "numbers" and "is not a table as ranloop writes it" in said
