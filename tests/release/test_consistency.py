"""A release that was signed by the right people and does not tell the truth."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.gates import GateVerdict
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import certify_evaluation
from loop.release.candidate import claim_facts
from loop.release.consistency import (
    _hedge_problems,
    check_agreement,
    check_claim,
    check_facts,
    check_numbers,
    decide_again,
)
from loop.release.facts import DRAWN_FORMAT, LabelFacts
from loop.release.provenance import evaluation_facts
from loop.release.release_json import format_facts, parse_facts, predicate_of
from loop.release.verify import verify_folder
from loop.stats.confusion import Confusion
from tests.evaluate.scenes import inputs, random_run, silent
from tests.release.small import (
    APPROVER,
    AUTHOR,
    COUNTS,
    PROTOCOL,
    VERSION,
    evaluation,
    make_facts,
    make_files,
    public_key,
    sign,
    typed,
)
from tests.release.small_numbers import label_facts


def changed(facts, path, value):
    """Return a copy of `facts` with `value` at `path`."""
    copy = deepcopy(dict(facts))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy


def told(tmp_path, path, value):
    """Return what is found of a release that says `value` at `path`, well signed."""
    honest = make_facts(tmp_path / "tiny/v1", tmp_path / "ledger.jsonl")
    facts = changed(honest, path, value)
    assert facts != honest
    files = make_files(facts, tmp_path / "tiny/v1", tmp_path / "ledger.jsonl")
    sign(tmp_path / "release", files, facts, (AUTHOR, APPROVER))
    trusted = {one[0].keyid: public_key(one) for one in (AUTHOR, APPROVER)}
    return verify_folder(tmp_path / "release", trusted)


UNTRUE = yaml.safe_load(Path(__file__).with_name("untrue_facts.yaml").read_text())


@pytest.mark.parametrize(
    ("at", "value", "found"),
    [(one["at"], one["says"], one["found"]) for one in UNTRUE],
)
def test_what_is_not_so_is_found_and_said(tmp_path, at, value, found):
    """A signature vouches for who said it; the numbers are made again all the same."""
    path = [int(step) if step.isdigit() else step for step in at.split(".")]
    broken = told(tmp_path, path, value).broken
    assert sorted((one.check, one.what) for one in broken) == sorted(found.items())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("seq", 4, "entry 4 ({})"), ("head", "0" * 64, f"entry 5 ({'0' * 12})")],
)
def test_the_ledger_ends_with_the_entry_that_a_release_names(
    tmp_path, name, value, said
):
    """By its number and by its hash."""
    (found,) = told(tmp_path, ("ledger", name), value).broken
    head = read_ledger(tmp_path / "ledger.jsonl")[-1].hash[:12]
    assert (found.check, found.what) == (
        "ledger",
        f"it ends with entry 5 ({head}), the release names {said.format(head)}",
    )


@pytest.mark.parametrize(
    ("name", "value", "history"),
    [
        (
            "uncertain_answers", "never",
            "the ledger registers another policy for uncertain answers",
        ),
        ("rule", "lower", "the protocol was registered with another rule"),
        ("rule", "none", "the protocol was registered with another rule"),
    ],
)  # fmt: skip
def test_nothing_is_judged_by_a_protocol_that_is_none(tmp_path, name, value, history):
    """Each check that needs it says so, and names the field."""
    broken = told(tmp_path, ("protocol", "content", name), value).broken
    found = {one.check: one.what for one in broken}
    assert found.pop("history") == history
    assert found.keys() == {"numbers", "claim"}
    for what in found.values():
        assert what.startswith("protocol.content of release.json does not have the ")
        assert name in what


def test_the_level_of_a_claim_on_all_is_that_of_its_gates(tmp_path):
    """The family-wise level of a claim on some labels says nothing of it."""
    facts = dict(make_facts(tmp_path / "tiny/v1", tmp_path / "ledger.jsonl"))
    content = PROTOCOL.model_copy(update={"alpha": 0.4}).model_dump(mode="json")
    facts["protocol"] = {**facts["protocol"], "content": content}
    assert "level" not in detail(tmp_path, facts, "claim")
    facts["claim"] = {**facts["claim"], "alpha": 0.4}
    assert "its level is not the protocol's" in detail(tmp_path, facts, "claim")


def detail(folder, facts, check):
    """Return what one check says of facts."""
    found = {one.check: one.what for one in check_all(folder, facts).findings}
    return found[check]


@pytest.mark.parametrize("digits", [3, 8])
def test_rounded_numbers_are_not_those_of_the_counts(tmp_path, digits):
    """Numbers are shipped in full; a rounded one could hide another count."""
    honest = evaluation("locked", "holdout")["macro"]["value"]
    rounded = round(honest, digits)
    found = told(tmp_path, ("evaluations", 1, "macro", "value"), rounded)
    assert "numbers on locked" in [one.check for one in found.broken]


def test_a_difference_below_the_tolerance_is_none(tmp_path):
    """Another machine's last digit is no lie."""
    honest = evaluation("locked", "holdout")["macro"]["value"]
    found = told(tmp_path, ("evaluations", 1, "macro", "value"), honest - 1e-12)
    assert found.holds


def test_a_gate_that_did_not_pass_needs_an_override(tmp_path):
    """Released all the same: only with a reason that stands on the card."""
    protocol = PROTOCOL.model_copy(update={"accuracy": 0.999})
    facts = dict(make_facts(tmp_path / "tiny/v1", tmp_path / "ledger.jsonl"))
    facts["protocol"] = {
        **facts["protocol"],
        "content": protocol.model_dump(mode="json"),
    }
    facts["claim"] = {**facts["claim"], "verdict": "FAIL"}
    found = {one.check: one for one in check_all(tmp_path, facts).findings}
    assert "no override says why" in found["claim"].what
    facts["frozen"] = {**facts["frozen"], "override": "urgent"}
    again = {one.check: one for one in check_all(tmp_path, facts).findings}
    assert "override" not in again["claim"].what


def check_all(tmp_path, facts):
    """Return what is found of a release with these facts."""
    files = make_files(facts, tmp_path / "tiny/v1", tmp_path / "ledger.jsonl")
    sign(tmp_path / "release", files, facts, [AUTHOR])
    return verify_folder(tmp_path / "release", {})


def test_a_limit_over_patients_can_only_take_a_pass_away(small):
    """With repeated patients the cases are needed, so less than a pass is believed."""
    facts = deepcopy(dict(small.facts))
    content = facts["protocol"]["content"]
    content |= {"rule": "lower", "accuracy": 0.5, "sensitivity_floor": 0.5}
    content |= {"min_positives": 14, "min_cases": 20, "kappa_floor": 0.0}
    one = facts["evaluations"][0]
    facts["evaluations"], one["labels"] = [one], one["labels"][1:]
    gate = one["labels"][0]["gate"]
    for rule, units, verdict, believed in (
        ("lower", 40, "PASS", True),
        ("lower", 40, "INSUFFICIENT", True),
        ("lower", 40, "FAIL", False),
        ("lower", one["cases"], "PASS", True),
        ("lower", one["cases"], "INSUFFICIENT", False),
        ("point", 40, "PASS", True),
        ("point", 40, "INSUFFICIENT", False),
    ):
        content["rule"] = rule
        one["method"]["units"], gate["verdict"] = units, verdict
        assert (_gates(facts) == []) == believed


def _gates(facts):
    """Return what is said of gates."""
    return [
        one.what for one in check_numbers(typed(facts)) if "its gate says" in one.what
    ]


def test_a_label_without_cases_has_no_numbers(tmp_path):
    """Null, not 0 or 1, where there is no denominator; then it holds."""
    honest = evaluation("locked", "holdout")
    label = honest["labels"][0]
    empty = {"value": None, "low": None, "high": None}
    assert label["tp"] == COUNTS[0].tp
    path = ("evaluations", 1, "labels", 0, "sensitivity")
    assert not told(tmp_path, path, empty).holds


@pytest.mark.slow
def test_a_table_that_says_otherwise_is_found(small):
    """evaluation.csv is for people; it must be what release.json says, cell by cell."""
    path = small.folder / "evaluation.csv"
    lines = path.read_bytes().split(b"\r\n")
    for number in range(len(lines) - 1):
        cells = lines[number].split(b",")
        for column, cell in enumerate(cells):
            spoilt = [*cells[:column], b"9" + cell, *cells[column + 1 :]]
            body = [*lines[:number], b",".join(spoilt), *lines[number + 1 :]]
            path.write_bytes(b"\r\n".join(body))
            found = verify_folder(small.folder, small.trusted)
            assert "evaluation.csv" in [one.check for one in found.broken]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b'"',
        b"cohort,label\r\n",
        b"cohort,cohort,label\r\n",
        b"cohort,label\r\n" + b"dev,fracture\r\n" * 3,
        b"cohort,label\r\n" + b"dev\r\n" * 4,
        b'cohort,label\r\n"' + b"x" * 200_000,
    ],
)
def test_a_table_that_cannot_be_one_is_found(small, raw):
    """Empty, not text, ragged, rows missing."""
    (small.folder / "evaluation.csv").write_bytes(raw)
    found = verify_folder(small.folder, small.trusted)
    assert "evaluation.csv" in [one.check for one in found.broken]


def test_a_ledger_cut_to_an_earlier_head_is_found(small):
    """The head named in release.json must be its last entry."""
    path = small.folder / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    broken = [one.check for one in verify_folder(small.folder, small.trusted).broken]
    assert {"ledger", "history"} <= set(broken)


def test_a_ledger_that_went_on_is_found(small):
    """What came after the release is not part of it."""
    event = Event(action="exported", subject="tiny@v1", reason="more")
    append_event(small.folder / "ledger.jsonl", event, Actor(name="C. Other"))
    (small.folder / ".ledger.jsonl.lock").unlink()
    broken = [one.check for one in verify_folder(small.folder, small.trusted).broken]
    assert broken == ["files", "ledger"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw[:-1],
        lambda raw: raw[:-40],
        lambda raw: raw.replace(b'"seq": 2', b'"seq": 3'),
        lambda raw: b"".join(reversed(raw.splitlines(keepends=True))),
        lambda raw: b"",
        lambda raw: b"[]\n",
        lambda raw: b"\xff\n",
    ],
)
def test_a_broken_chain_is_found_and_named_without_a_temporary_path(small, spoil):
    """Torn, edited, reordered, empty: the ledger does not hold."""
    path = small.folder / "ledger.jsonl"
    path.write_bytes(spoil(path.read_bytes()))
    found = {one.check: one for one in verify_folder(small.folder, {}).findings}
    assert not found["ledger"].holds
    assert "/ranloop-release-" not in found["ledger"].what


def test_facts_are_read_as_they_were_written(small):
    """release.json is one spelling of its content."""
    facts = typed(small.facts)
    assert parse_facts(format_facts(facts)) == facts


@pytest.mark.parametrize(
    ("name", "raw", "check"),
    [
        ("prompt/user.jinja", b"Text: {{ text }} \n", "prompt"),
        ("prompt/system.jinja", b"{{ 1/0 }}", "prompt"),
        ("prompt/guides.yaml", b"- [", "prompt"),
        ("prompt/prompt.yaml", b"name: tiny\n", "prompt"),
        ("prompt/prompt.yaml", b"\xff", "prompt"),
        ("rendered/user.txt", b"Text: {{ text }}", "rendered"),
        ("schema.json", b"{}\n", "rendered"),
    ],
)
def test_another_prompt_or_message_is_found(small, name, raw, check):
    """The prompt is read and rendered again; a strange one is not rendered at all."""
    (small.folder / name).write_bytes(raw)
    found = verify_folder(small.folder, small.trusted)
    assert check in [one.check for one in found.broken]
    assert "/ranloop-release-" not in " ".join(one.what for one in found.findings)


def hedged(tmp_path, policy, told, **content):
    """Return what is found of the numbers where a policy and hedges are told."""
    facts = deepcopy(dict(make_facts(tmp_path / "tiny/v1", tmp_path / "ledger.jsonl")))
    facts["protocol"]["content"] |= {"uncertain_answers": policy, **content}
    for one in facts["evaluations"]:
        for label in one["labels"]:
            label["answered_uncertain"] = dict(
                zip(("positives", "negatives"), told, strict=True)
            )
    return [one for one in check_numbers(typed(facts)) if not one.holds]


@pytest.mark.parametrize(
    ("policy", "told", "holds"),
    [
        ("wrong", (0, 0), True),
        ("wrong", (1, 0), False),
        ("wrong", (0, 1), False),
        ("absent", (0, 39), True),
        ("absent", (1, 0), False),
        ("present", (12, 0), True),
        ("present", (0, 2), False),
        ("excluded", (0, 0), True),
        ("excluded", (1, 0), False),
    ],
)
def test_uncertain_answers_are_where_the_policy_counts_them(
    tmp_path, policy, told, holds
):
    """A hedge under `wrong` is among the errors; one left out is among the excluded."""
    assert bool(hedged(tmp_path, policy, told)) is not holds


@pytest.mark.parametrize("policy", ["wrong", "absent", "present", "excluded"])
def test_uncertain_answers_are_left_out_by_one_policy_alone(policy):
    """Under the others each is among the counts, as right or as an error."""
    label = label_facts(VERSION.guides[0], COUNTS[0])
    label["answered_uncertain"] = {"positives": 0, "negatives": 1}
    label["excluded"] |= {"uncertain_predicted": 1, "uncertain_reference": 1}
    label |= {"tn": 47, "fp": 1} if policy in ("wrong", "present") else {}
    told = Protocol(uncertain_answers=policy)
    found = list(_hedge_problems(LabelFacts.model_validate(label), told))
    counted = "its uncertain answers are not counted as"
    assert found == ([] if policy == "excluded" else [f"{counted} {policy}"])
    label["excluded"]["uncertain_predicted"] = 0
    found = list(_hedge_problems(LabelFacts.model_validate(label), told))
    assert (found == []) is (policy != "excluded")


@pytest.mark.parametrize("kind", ["unparsed", "failed", "not_asked"])
@pytest.mark.parametrize(
    ("silent", "uncertain", "enough"),
    [(6, 0, True), (7, 0, False), (7, 6, True), (8, 6, False)],
)
def test_missing_answers_are_a_share_of_all_that_could_be_scored(
    kind, silent, uncertain, enough
):
    """One in ten may be missing, whatever the reason, the uncertain ones counted."""
    label = label_facts(VERSION.guides[1], Confusion(20, 0, 0, 38 - (silent > 6)))
    label["excluded"] |= {kind: silent, "uncertain_predicted": uncertain}
    share = Protocol(min_cases=20, max_unanswered=0.1)
    gate = decide_again(LabelFacts.model_validate(label), share)
    total = label["n"] + silent + uncertain
    assert (silent / total <= 0.1) is enough
    assert (gate.verdict is GateVerdict.PASS) is enough
    assert enough or f"{silent} of {total} cases" in gate.reasons[0]


def test_an_evaluation_of_a_part_certifies_nothing_and_fails_all_the_same(tmp_path):
    """Cases that were not asked take a pass away, and no failure."""
    facts = make_facts(tmp_path / "tiny/v1", tmp_path / "ledger.jsonl")
    (number,) = (
        at
        for at, one in enumerate(facts["evaluations"])
        if one["cohort"] == facts["claim"]["cohort"]
    )
    verdict = facts["claim"]["verdict"]
    part = facts["evaluations"][number]
    for not_run in (0, 1):
        part["not_run"] = not_run
        problem = f"its verdict is {verdict}, the gates give INSUFFICIENT"
        assert (problem in check_claim(typed(facts)).what) is (not_run == 1)
    for label in part["labels"]:
        label["gate"]["verdict"] = "FAIL"
    told = check_numbers(typed(facts))[number].what
    assert "the verdict is PASS, its gates give FAIL" in told


def test_parts_that_contradict_each_other_are_named(tmp_path):
    """Each with its neighbour that is right: a limit that is reached, a late start."""
    facts = make_facts(tmp_path / "tiny/v1", tmp_path / "ledger.jsonl")
    dev, locked = facts["evaluations"]
    twice = "a cohort is listed twice"
    late = {"protocol": facts["protocol"] | {"registered": "2026-03-01T11:00:00Z"}}
    said_late = [one | {"registered_late": True} for one in (dev, locked)]

    def drawn(*runs):
        both = [one | {"draws": 2} for one in (dev, locked)]
        both = [one | {"runs": [run or one["run"] for run in runs]} for one in both]
        return {"format": DRAWN_FORMAT, "evaluations": both}

    for changes, said in (
        ({}, ""),
        ({"evaluations": [dev, locked, dev]}, twice),
        ({"cohorts": [*facts["cohorts"], facts["cohorts"][0]]}, twice),
        (late, "the protocol is younger"),
        (late | {"evaluations": said_late}, ""),
        ({"openings": [facts["openings"][0] | {"budget": 1}]}, ""),
        ({"openings": [facts["openings"][0] | {"budget": 0}]}, "more often than"),
        (drawn("", "second"), ""),
        (drawn("", ""), "are not those of its draws"),
        (drawn("first", "second"), "are not those of its draws"),
        (drawn("", "second") | {"format": facts["format"]}, "the format is not"),
    ):
        found = check_facts(typed(facts | changes))
        assert (found.holds, said in found.what) == (not said, True), changes


def test_a_statement_says_what_the_facts_say_and_no_more(tmp_path):
    """Another value, the same value of another kind, or one thing more."""
    facts = typed(make_facts(tmp_path / "tiny/v1", tmp_path / "ledger.jsonl"))
    expected = predicate_of(facts)

    def told(**changes):
        approvals = [one[0] for one in (AUTHOR, APPROVER)]
        said = SimpleNamespace(predicate=expected | changes, approvals=approvals)
        return check_agreement(said, facts)

    assert told().holds
    for key in expected:
        assert (
            f"the statement and release.json differ in {key}"
            in told(**{key: "another"}).what
        )
    flags = [key for key, value in expected.items() if isinstance(value, bool)]
    assert flags
    for key in flags:
        found = told(**{key: int(expected[key])}).what
        assert f"the statement and release.json differ in {key}" in found
    assert "says things that" in told(further=1).what


def _facts_of(evaluation, protocol, folder):
    """Return the facts of a release that rests on one evaluation alone."""
    facts = make_facts(folder / "tiny/v1", folder / "ledger.jsonl")
    content = protocol.model_dump(mode="json")
    frozen = facts["frozen"] | {"override": "known"}
    claim = claim_facts(certify_evaluation(evaluation), evaluation.cohort.name)
    facts |= {"frozen": frozen, "development_only": True, "openings": []}
    facts |= {"protocol": facts["protocol"] | {"content": content}}
    return typed(facts).model_copy(
        update={"evaluations": [evaluation_facts(evaluation)], "claim": claim}
    )


def _evaluate(protocol, draws):
    """Score made-up answers, some unreadable, of which one label is never asked."""
    made = [random_run(150, noise=1 + number) for number in range(draws)]
    read = []
    for outcomes, truth in made:
        asked = [
            silent(one.item_id)
            if number == 7
            else replace(one, fields={k: v for k, v in one.fields.items() if k != left})
            for left in ("edema",)
            for number, one in enumerate(outcomes)
        ]
        read.append(inputs(asked, truth, protocol=protocol))
    runs = tuple(f"run-{number}" for number in range(draws)) if draws > 1 else ()
    further = tuple(one.pairs for one in read[1:])
    whole = replace(read[0], further=further, runs=runs)
    return evaluate_inputs(whole, resamples=20)


@pytest.mark.parametrize("draws", [1, 3])
@pytest.mark.parametrize(
    ("policy", "claim"),
    [
        (None, "subset"),
        ("wrong", "all"),
        ("absent", "subset"),
        ("present", "all"),
        ("excluded", "subset"),
    ],
)
def test_what_an_evaluation_says_follows_from_its_counts(
    tmp_path, policy, claim, draws
):
    """Gates, intervals, averages and claim: made twice, from cases and from counts."""
    told = {"uncertain_answers": policy} if policy else {}
    plan = Protocol(claim=claim, accuracy=0.9, kappa=0.5, min_cases=20, **told)
    positives = sorted(one.confusion.positives for one in _evaluate(plan, draws).labels)
    # As many positives as a label of them has.
    least = max(positives[len(positives) // 2] // draws, 1)
    plan = plan.model_copy(update={"min_positives": least})
    found = _evaluate(plan, draws)
    facts = _facts_of(found, plan, tmp_path)
    (numbers,) = check_numbers(facts)
    assert numbers.holds, numbers.what
    assert check_claim(facts).holds, check_claim(facts).what
    again = [
        decide_again(one, plan, draws=draws) for one in facts.evaluations[0].labels
    ]
    assert again == [one.gate for one in found.labels]
    assert len({gate.verdict for gate in again}) > 1
    if claim == "subset":
        empty = facts.claim.model_copy(update={"labels": []})
        bare = check_claim(facts.model_copy(update={"claim": empty}))
        assert "it is not about every label" in bare.what


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ((None, None, None), True),
        ((None, 0.0, 1.0), True),
        ((0.5, None, None), False),
        ((None, 0.0, None), False),
        ((None, 0.2, 1.0), False),
    ],
)
def test_without_a_denominator_there_is_no_number(tmp_path, said, right):
    """Nothing, or the interval from 0 to 1 that says nothing."""
    facts = make_facts(tmp_path / "tiny/v1", tmp_path / "ledger.jsonl")
    label = label_facts(VERSION.guides[0], Confusion(0, 0, 0, 60))
    rate = dict(zip(("value", "low", "high"), said, strict=True))
    facts["evaluations"][0]["labels"][0] = label | {"sensitivity": rate}
    numbers = check_numbers(typed(facts))[0].what
    assert ("sensitivity has a value without a denominator" in numbers) is not right
